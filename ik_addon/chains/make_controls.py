"""Targets and poles made by Add Chain: empties in a collection, or control bones with a custom shape."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Literal, NamedTuple

import bmesh
import bpy
import numpy as np
from bpy.types import ArmatureEditBones, Context, LayerCollection, Object, PoseBone, SpaceView3D
from mathutils import Matrix, Vector

from ..anatomy import body
from ..anatomy.figure import Figure
from ..anatomy.parts import side_of
from ..core.constraints import targets_of
from ..core.goals import MADE, Goal
from ..core.skeleton import inverse_of_one, matrix_array, size_of
from ..core.translation.sentences import UserError
from ..core.untyped import Value, has_mark, own_object, set_mark, users_of
from ..rig.plan.chain import chain_bones, tips
from ..rig.plan.facts import animated_paths
from ..rig.plan.followers import followers, goals_of, mark, owner_of
from ..rig.plan.presence import Presence, all_layers, is_in
from ..rig.read.sample import orientation
from ..solve.problem import Floats


class Controls(Enum):
    """The form in which targets and poles are made."""

    EMPTIES = "EMPTIES"
    BONES = "BONES"
    """Control bones of the armature. A linked or overridden armature can't have any and gets empties."""


def check(context: Context, ob: Object, controls: Controls) -> None:
    """Raise `UserError` if `make` can't make anything that would move."""
    if can_be_made(context, ob) and controls is Controls.BONES:
        return
    if not context.scene.is_editable:
        linked = "The scene '{scene}' is linked from another file and can't hold a target"
        raise UserError(linked, scene=context.scene.name)
    collection = made_collection(ob)
    layer = None if collection is None else _layer_of(context, collection)
    if collection is not None and (collection.hide_viewport or (layer is not None and layer.exclude)):
        raise UserError(
            "The collection '{collection}' is disabled or excluded from this view layer, "
            "so a target in it would not move. Enable it",
            collection=collection.name,
        )


def make(context: Context, ob: Object, controls: Controls, wanted: Sequence[Control]) -> list[Goal]:
    """Make targets and poles for the chains of an armature object.

    Making bones takes the armature through Edit Mode, so pose bones have to be looked up again.
    """
    if controls is Controls.BONES and can_be_made(context, ob):
        return [Goal(ob, name) for name in add_bones(context, ob, wanted)]
    collection = collection_of(context, ob)
    return [Goal(_empty(context, ob, own, collection)) for own in wanted]


def is_needed(goal: Goal) -> bool:
    """Return whether a target or pole holds a user's work, or something else refers to it."""
    if is_moved(goal) or followers(goal.ob, goal.bone):
        return True
    if not goal.is_bone:
        kinds = bpy.types
        places = (kinds.Collection, kinds.Scene, kinds.Screen, kinds.WorkSpace, kinds.WindowManager)
        return any(not isinstance(user, places) for user in users_of(goal.ob))
    if goal.holder.children or any(o.parent == goal.ob and o.parent_bone == goal.bone for o in bpy.data.objects):
        return True
    holders = [*bpy.data.objects, *(bone for o in bpy.data.objects if o.pose is not None for bone in o.pose.bones)]
    targets = (target for holder in holders for constraint in holder.constraints for target in targets_of(constraint))
    return (goal.ob, goal.bone) in targets


def is_moved(goal: Goal) -> bool:
    """Return whether a user animated or constrained a target or pole that was made."""
    if goal.holder.constraints:
        return True
    if goal.is_bone:
        path = f"{goal.holder.path_from_id()}."
        return any(found.startswith(path) for found in animated_paths(goal.ob))
    data = goal.ob.animation_data
    return data is not None and bool(data.action or data.nla_tracks or data.drivers)


def is_free(goal: Goal, rig: Object) -> bool:
    """Return whether only the user, and the body of the armature, move a target or pole that was made."""
    return not is_moved(goal) and (goal.is_bone or goal.ob.parent in (None, rig))


def place(goal: Goal, world: Vector) -> None:
    """Move a target or pole to a place in world space; `is_free` must hold."""
    ob, own = goal.ob, goal.holder
    if not goal.is_bone:
        ob.matrix_world = Matrix.Translation(world - ob.matrix_world.translation) @ ob.matrix_world
        return
    moved = own.matrix.copy()
    moved.translation = ob.matrix_world.inverted_safe() @ world
    own.matrix = moved


def delete(context: Context, goals: Iterable[Goal]) -> None:
    """Delete targets and poles, and the collection made for them if it ends up empty."""
    bones: dict[Object, list[str]] = {}
    for goal in goals:
        ob = goal.ob
        if goal.is_bone:
            bones.setdefault(ob, []).append(goal.bone)
            continue
        collections = list(ob.users_collection)
        bpy.data.objects.remove(ob)
        for collection in collections:
            if has_mark(collection, MADE) and not collection.all_objects and not collection.children:
                bpy.data.collections.remove(collection)
    for ob, names in bones.items():
        remove_bones(context, ob, names)


# ---- empties and their collection


def made_collection(ob: Object) -> bpy.types.Collection | None:
    """Return the collection made for the targets and poles of an armature: the one that holds some of its own."""
    goals = (goal.ob for tip in tips(ob) for goal in goals_of(tip) if owner_of(goal.ob, goal.bone) == ob)
    found = (collection for goal in goals for collection in goal.users_collection)
    return next((collection for collection in found if has_mark(collection, MADE) and collection.is_editable), None)


def _layer_of(context: Context, collection: bpy.types.Collection) -> LayerCollection | None:
    layers = all_layers(context.view_layer.layer_collection)
    return next((layer for layer in layers if layer.collection == collection), None)


def _home(context: Context, ob: Object) -> bpy.types.Collection:
    """Return the collection that holds an armature, so that whoever links it into another file gets the targets too.

    The Scene Collection counts only if no other is in use here and can be changed.
    """
    own, *others = all_layers(context.view_layer.layer_collection)
    for layer in others:
        holder = layer.collection
        is_own = holder.library is None and holder.override_library is None
        if is_own and not (layer.exclude or holder.hide_viewport) and is_in(holder.objects, ob):
            return holder
    return own.collection


def collection_of(context: Context, ob: Object) -> bpy.types.Collection:
    """Return the collection for an armature's targets and poles, making it beside the armature if needed."""
    collection = made_collection(ob)
    if collection is None:
        collection = bpy.data.collections.new(f"{ob.name} IK")
        set_mark(collection, MADE)
    if _layer_of(context, collection) is None:
        _home(context, ob).children.link(collection)
    return collection


def _empty(context: Context, ob: Object, wanted: Control, collection: bpy.types.Collection) -> Object:
    empty = bpy.data.objects.new(wanted.name, None)
    mark(empty, ob)
    empty.empty_display_type = wanted.shape
    empty.empty_display_size = wanted.size
    empty.show_in_front = True
    empty.matrix_basis = wanted.world
    collection.objects.link(empty)
    space = context.space_data
    if isinstance(space, SpaceView3D) and space.local_view is not None:
        empty.local_view_set(space, True)
    if wanted.parent_bone:
        bone = ob.pose.bones[wanted.parent_bone]
        empty.parent, empty.parent_type, empty.parent_bone = ob, "BONE", bone.name
        # Children of bones are placed at the tail.
        tail = bone.matrix @ Matrix.Translation((0.0, bone.bone.length, 0.0))
        empty.matrix_parent_inverse = (ob.matrix_world @ tail).inverted_safe()
    return empty


def parent_bone_of(ob: Object, bones: list[PoseBone]) -> str:
    """Return the bone that carries a chain, whose bones are given root first; empty if nothing is above the chain."""
    figure = Figure.of(ob)
    row = [figure.names.index(bone.name) for bone in bones]
    chains = [{figure.names.index(bone.name) for bone in chain_bones(tip)} for tip in tips(ob)]
    solved = set(row)  # and the bones of all chains that share bones with these, directly or through other chains
    while any(not solved.isdisjoint(own) and not own <= solved for own in chains):
        solved = solved.union(*(own for own in chains if not solved.isdisjoint(own)))
    parent_bone = body.parent_bone_of(figure, row, solved)
    return "" if parent_bone is None else figure.names[parent_bone]


# ---- control bones

Palette = Literal["THEME01", "THEME04", "THEME09"]
GROUP = "IK"
"""The bone collection for control bones."""
SHAPE = "IK Shape {kind}"
"""Names of the objects that control bones show."""
AROUND = 16
"""Number of points of a circle."""
CIRCLES = {"CUBE": "", "SPHERE": "XYZ", "CIRCLE": "X"}
"""The circles of each kind of shape, by the axes about which one across Z is turned by a right angle."""
COLORS: dict[int, Palette] = {1: "THEME04", 0: "THEME09", -1: "THEME01"}
"""Bone colors of controls on the left, in the middle and on the right: blue, yellow and red in Blender's themes."""
LENGTH = 2.0
"""Length of a control bone, in sizes of its shape."""


class Control(NamedTuple):
    """A target or pole to make, as a bone or as an empty."""

    name: str
    world: Matrix
    """Location and rotation in world space."""
    shape: Literal["CUBE", "SPHERE"]
    size: float
    """Size of the shape, in world space."""
    parent_bone: str = ""
    """The bone it is parented to; empty for no parent."""


def can_be_made(context: Context, ob: Object) -> bool:
    """Return whether bones can be added to an armature object.

    Not if it is linked, overridden, hidden here, or shares its data with other objects.
    """
    data = ob.data
    is_own = all(part.library is None and part.override_library is None for part in (ob, data))
    is_own &= data.users - data.use_fake_user == 1
    return bool(is_own and Presence(context.view_layer).evaluates(ob) and ob.visible_get(view_layer=context.view_layer))


def add_bones(context: Context, ob: Object, wanted: Sequence[Control]) -> list[str]:
    """Add control bones at places in world space; return their names."""
    to_object = inverse_of_one(matrix_array(ob.matrix_world))
    scale = float(size_of(to_object))
    names = []
    posed = {own.parent_bone: matrix_array(ob.pose.bones[own.parent_bone].matrix) for own in wanted if own.parent_bone}
    with editing(context, ob) as bones:
        for own in wanted:
            seen = to_object.dot(matrix_array(own.world))
            if own.parent_bone:  # the new bone is placed as it is when its parent is at rest
                rest = matrix_array(bones[own.parent_bone].matrix)
                seen = rest.dot(inverse_of_one(posed[own.parent_bone])).dot(seen)
            frame = np.eye(4)
            frame[:3, :3], frame[:3, 3] = orientation(seen), seen[:3, 3]
            bone = bones.new(own.name)
            bone.tail = Vector((0.0, LENGTH * scale * own.size, 0.0))
            bone.matrix = Matrix(frame.tolist())
            bone.parent = bones[own.parent_bone] if own.parent_bone else None
            bone.use_deform = bone.select = bone.select_head = bone.select_tail = False
            names.append(bone.name)
    group = ob.data.collections.get(GROUP) or ob.data.collections.new(GROUP)
    for name, own in zip(names, wanted, strict=True):
        pose_bone = ob.pose.bones[name]
        set_mark(pose_bone.bone, MADE)
        group.assign(pose_bone.bone)
        pose_bone.custom_shape = _shape(own.shape)
        pose_bone.use_custom_shape_bone_size = True
        pose_bone.color.palette = COLORS[side_of(name)]
        pose_bone.bone.show_wire = True
    context.view_layer.update()
    return names


def image_of(ob: Object, name: str, world: Matrix) -> Control:
    """Return the mirrored counterpart of a control bone, at a place in world space."""
    bone = ob.pose.bones[name]
    scale = float(size_of(matrix_array(ob.matrix_world)))
    is_box = bone.custom_shape == _shape("CUBE")
    parent_bone = "" if bone.parent is None else bpy.utils.flip_name(bone.parent.name)
    parent_bone = parent_bone if parent_bone in ob.pose.bones else ""
    size = scale * bone.bone.length / LENGTH
    return Control(bpy.utils.flip_name(name), world, "CUBE" if is_box else "SPHERE", size, parent_bone)


def dress(bone: PoseBone, up: Floats, size: float, along: float = 0.0) -> None:
    """Make a bone easy to see and to click as it is: a circle around it, and a color.

    A bone that has a shape already keeps it.

    Args:
        bone: the bone; it gets no constraint, and none is added below it.
        up: (3,) the direction across the circle at rest, in the armature's object space.
        size: diameter of the circle, in the armature's unit.
        along: how far along the bone, from its head, the circle is, in the same unit.
    """
    if bone.custom_shape is not None:
        return
    bone.custom_shape = _shape("CIRCLE")
    bone.use_custom_shape_bone_size = False
    bone.custom_shape_scale_xyz = (size, size, size)
    bone.custom_shape_translation = (0.0, along, 0.0)
    across = bone.bone.matrix_local.to_3x3().inverted_safe() @ Vector(up.tolist())
    bone.custom_shape_rotation_euler = Vector((0.0, 1.0, 0.0)).rotation_difference(across).to_euler()
    bone.color.palette = COLORS[side_of(bone.name)]
    bone.bone.show_wire = True


def dressed(ob: Object) -> list[str]:
    """Return the bones that show the circle of `dress`."""
    circle = _circle_shape()
    return [bone.name for bone in ob.pose.bones if circle is not None and bone.custom_shape == circle]


def undress(ob: Object) -> None:
    """Take the shapes and colors of `dress` off again."""
    for name in dressed(ob):
        bone = ob.pose.bones[name]
        bone.custom_shape, bone.use_custom_shape_bone_size = None, True
        bone.custom_shape_scale_xyz, bone.custom_shape_rotation_euler = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)
        bone.custom_shape_translation = (0.0, 0.0, 0.0)
        bone.color.palette, bone.bone.show_wire = "DEFAULT", False
    _forget([_circle_shape()])


def _circle_shape() -> Object | None:
    return own_object(SHAPE.format(kind="Circle"))


def remove_bones(context: Context, ob: Object, names: Collection[str]) -> None:
    """Remove control bones, with their collection and shapes if nothing else uses them."""
    shapes = {ob.pose.bones[name].custom_shape for name in names}
    with editing(context, ob) as bones:
        for name in names:
            bones.remove(bones[name])
    group = ob.data.collections.get(GROUP)
    if group is not None and not group.bones and not group.children:
        ob.data.collections.remove(group)
    _forget(shapes)
    context.view_layer.update()


def _forget(shapes: Iterable[Object | None]) -> None:
    """Delete shapes that were made here and that no bone shows any more."""
    for shape in shapes:
        if shape is not None and has_mark(shape, MADE) and not shape.users:
            mesh: Value = shape.data
            bpy.data.objects.remove(shape)
            bpy.data.meshes.remove(mesh)


@contextmanager
def editing(context: Context, ob: Object) -> Iterator[ArmatureEditBones]:
    """Yield the edit bones of an armature object; modes, selection and active object are put back."""
    objects = context.view_layer.objects
    active = objects.active
    modes = {own: own.mode for own in objects}
    selected = [own for own in objects if own.select_get()]
    try:
        _enter("EDIT", [ob], context)
        yield ob.data.edit_bones
    finally:
        modes = {own: mode for own, mode in modes.items() if is_in(objects, own)}
        for own, mode in modes.items():
            if own.mode not in ("OBJECT", mode):
                _enter("OBJECT", [own], context)
        for mode in {mode for own, mode in modes.items() if own.mode != mode}:
            _enter(mode, [own for own in modes if modes[own] == mode != own.mode], context)
        for own in modes:
            own.select_set(own in selected)
        objects.active = active


def _enter(mode: Value, obs: Sequence[Object], context: Context) -> None:
    """Switch these objects, and no others, to a mode. Blender takes all that are selected along."""
    objects = context.view_layer.objects
    for own in objects:
        own.select_set(own in obs)
    objects.active = obs[0]
    bpy.ops.object.mode_set(mode=mode)


def _shape(kind: str) -> Object:
    """Return an object that shows a control bone: a wire around its head, one unit long."""
    name = SHAPE.format(kind=kind.title())
    found = own_object(name)
    if found is not None and has_mark(found, MADE):
        return found
    wire = bmesh.new()
    for axis in CIRCLES[kind]:
        bmesh.ops.create_circle(wire, segments=AROUND, radius=0.5, matrix=Matrix.Rotation(math.radians(90.0), 4, axis))
    if kind == "CUBE":
        bmesh.ops.create_cube(wire, size=1.0)
        bmesh.ops.delete(wire, geom=wire.faces[:], context="FACES_ONLY")
    mesh = bpy.data.meshes.new(name)
    wire.to_mesh(mesh)
    wire.free()
    made = bpy.data.objects.new(name, mesh)
    set_mark(made, MADE)
    return made
