"""Control bones of an armature: bones with a custom shape, for chains to follow."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Literal, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ..anatomy.parts import side_of
from ..core.goals import MADE
from ..core.skeleton import inverse_of_one, matrix_array, size_of
from ..core.untyped import Value, has_mark, own_object, set_mark
from ..rig.plan.presence import Presence, is_in
from ..rig.read.orientation import orientation
from ..solve.problem import Floats

Palette = Literal["THEME01", "THEME04", "THEME09"]
GROUP = "IK"
"""The bone collection for control bones."""
SHAPE = "IK Shape {kind}"
"""Names of the objects that control bones show."""
AROUND = 16
"""Number of points of a circle."""
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


def can_be_made(context: bpy.types.Context, ob: bpy.types.Object) -> bool:
    """Return whether bones can be added to an armature object.

    Not if it is linked, overridden, hidden here, or shares its data with other objects.
    """
    data = ob.data
    is_own = all(part.library is None and part.override_library is None for part in (ob, data))
    is_own &= data.users - data.use_fake_user == 1
    return bool(is_own and Presence(context.view_layer).evaluates(ob) and ob.visible_get(view_layer=context.view_layer))


def add(context: bpy.types.Context, ob: bpy.types.Object, wanted: Sequence[Control]) -> list[str]:
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


def image_of(ob: bpy.types.Object, name: str, world: Matrix) -> Control:
    """Return the mirrored counterpart of a control bone, at a place in world space."""
    bone = ob.pose.bones[name]
    scale = float(size_of(matrix_array(ob.matrix_world)))
    is_box = bone.custom_shape == _shape("CUBE")
    parent_bone = "" if bone.parent is None else bpy.utils.flip_name(bone.parent.name)
    parent_bone = parent_bone if parent_bone in ob.pose.bones else ""
    size = scale * bone.bone.length / LENGTH
    return Control(bpy.utils.flip_name(name), world, "CUBE" if is_box else "SPHERE", size, parent_bone)


def dress(bone: bpy.types.PoseBone, up: Floats, size: float, along: float = 0.0) -> None:
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


def dressed(ob: bpy.types.Object) -> list[str]:
    """Return the bones that show the circle of `dress`."""
    circle = _circle_shape()
    return [bone.name for bone in ob.pose.bones if circle is not None and bone.custom_shape == circle]


def undress(ob: bpy.types.Object) -> None:
    """Take the shapes and colors of `dress` off again."""
    for name in dressed(ob):
        bone = ob.pose.bones[name]
        bone.custom_shape, bone.use_custom_shape_bone_size = None, True
        bone.custom_shape_scale_xyz, bone.custom_shape_rotation_euler = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)
        bone.custom_shape_translation = (0.0, 0.0, 0.0)
        bone.color.palette, bone.bone.show_wire = "DEFAULT", False
    _forget([_circle_shape()])


def _circle_shape() -> bpy.types.Object | None:
    return own_object(SHAPE.format(kind="Circle"))


def remove(context: bpy.types.Context, ob: bpy.types.Object, names: Collection[str]) -> None:
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


def _forget(shapes: Iterable[bpy.types.Object | None]) -> None:
    """Delete shapes that were made here and that no bone shows any more."""
    for shape in shapes:
        if shape is not None and has_mark(shape, MADE) and not shape.users:
            mesh: Value = shape.data
            bpy.data.objects.remove(shape)
            bpy.data.meshes.remove(mesh)


@contextmanager
def editing(context: bpy.types.Context, ob: bpy.types.Object) -> Iterator[bpy.types.ArmatureEditBones]:
    """Yield the edit bones of an armature object; everything selected keeps its mode, and the active object stays."""
    with keeping_modes(context):
        _enter("EDIT", [ob], context)
        yield ob.data.edit_bones


@contextmanager
def keeping_modes(context: bpy.types.Context) -> Iterator[None]:
    """Put back the modes of all objects of a view layer, the selection and the active object afterwards."""
    objects = context.view_layer.objects
    active = objects.active
    modes = {own: own.mode for own in objects}
    selected = [own for own in objects if own.select_get()]
    try:
        yield
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


def _enter(mode: Value, obs: Sequence[bpy.types.Object], context: bpy.types.Context) -> None:
    """Switch these objects, and no others, to a mode. Blender takes all that are selected along."""
    objects = context.view_layer.objects
    for own in objects:
        own.select_set(own in obs)
    objects.active = obs[0]
    bpy.ops.object.mode_set(mode=mode)


def _shape(kind: str) -> bpy.types.Object:
    """Return an object that shows a control bone: a wire around its head, one unit long."""
    name = SHAPE.format(kind=kind.title())
    found = own_object(name)
    if found is not None and has_mark(found, MADE):
        return found
    mesh = bpy.data.meshes.new(name)
    points, edges = WIRES[kind]()
    mesh.from_pydata([(0.5 * x, 0.5 * y, 0.5 * z) for x, y, z in points], edges, [])
    made = bpy.data.objects.new(name, mesh)
    set_mark(made, MADE)
    return made


Wire = tuple[list[tuple[float, float, float]], list[tuple[int, int]]]


def _box() -> Wire:
    points = [(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)]
    return points, [(i, i | bit) for i in range(8) for bit in (1, 2, 4) if not i & bit]


def _circles(axes: Iterable[int]) -> Wire:
    """Return circles across these axes."""
    points: list[tuple[float, float, float]] = []
    edges: list[tuple[int, int]] = []
    for axis in axes:
        start = len(points)
        for i in range(AROUND):
            point = [math.cos(2.0 * math.pi * i / AROUND), math.sin(2.0 * math.pi * i / AROUND)]
            point.insert(axis, 0.0)
            points.append((point[0], point[1], point[2]))
            edges.append((start + i, start + (i + 1) % AROUND))
    return points, edges


WIRES: dict[str, Callable[[], Wire]] = {
    "CUBE": _box,
    "SPHERE": partial(_circles, (0, 1, 2)),
    "CIRCLE": partial(_circles, (1,)),
}
"""The wires of each kind of control."""
