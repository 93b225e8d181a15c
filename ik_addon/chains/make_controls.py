"""Targets and poles made by Add Chain: empties in a collection, or control bones of the armature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

import bpy
from mathutils import Matrix, Vector

from ..anatomy import body
from ..anatomy.figure import Figure
from ..core.constraints import targets_of
from ..core.goals import MADE, Goal
from ..core.translation.sentences import UserError
from ..core.untyped import has_mark, set_mark, users_of
from ..rig.plan.chain import chain_bones, tips
from ..rig.plan.followers import followers, goals_of, mark, owner_of
from ..rig.plan.presence import all_layers, is_in
from ..rig.plan.watch import animated_paths
from . import control_bones as control_bones
from .control_bones import Control


class Controls(Enum):
    """The form in which targets and poles are made."""

    EMPTIES = "EMPTIES"
    BONES = "BONES"
    """Control bones of the armature. A linked or overridden armature can't have any and gets empties."""


def check(context: bpy.types.Context, ob: bpy.types.Object, controls: Controls) -> None:
    """Raise `UserError` if `make` can't make anything that would move."""
    if control_bones.can_be_made(context, ob) and controls is Controls.BONES:
        return
    if not context.scene.is_editable:
        raise UserError(
            "The scene '{scene}' is linked from another file and can't hold a target", scene=context.scene.name
        )
    collection = made_collection(ob)
    if collection is None:
        return
    layer = _layer_of(context, collection)
    if collection.hide_viewport or (layer is not None and layer.exclude):
        raise UserError(
            "The collection '{collection}' is disabled or excluded from this view layer, "
            "so a target in it would not move. Enable it",
            collection=collection.name,
        )


def make(context: bpy.types.Context, ob: bpy.types.Object, controls: Controls, wanted: Sequence[Control]) -> list[Goal]:
    """Make targets and poles for the chains of an armature object.

    Making bones takes the armature through Edit Mode, so pose bones have to be looked up again.
    """
    if controls is Controls.BONES and control_bones.can_be_made(context, ob):
        return [Goal(ob, name) for name in control_bones.add(context, ob, wanted)]
    collection = collection_of(context, ob)
    empties = [_empty(context, ob, own, collection) for own in wanted]
    for own, empty in zip(wanted, empties, strict=True):
        if own.parent_bone:
            attach(ob, own.parent_bone, empty)
    return [Goal(empty) for empty in empties]


def is_needed(goal: Goal) -> bool:
    """Return whether a target or pole holds a user's work, or something else refers to it."""
    if is_moved(goal) or followers(goal.ob, goal.bone):
        return True
    if not goal.is_bone:
        places = (bpy.types.Collection, bpy.types.Scene, bpy.types.Screen, bpy.types.WorkSpace, bpy.types.WindowManager)
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


def is_free(goal: Goal, rig: bpy.types.Object) -> bool:
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


def delete(context: bpy.types.Context, goals: Iterable[Goal]) -> None:
    """Delete targets and poles, and the collection made for them if it ends up empty."""
    bones: dict[bpy.types.Object, list[str]] = {}
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
        control_bones.remove(context, ob, names)


# ---- empties and their collection


def made_collection(ob: bpy.types.Object) -> bpy.types.Collection | None:
    """Return the collection made for the targets and poles of an armature: the one that holds some of its own."""
    goals = (goal.ob for tip in tips(ob) for goal in goals_of(tip) if owner_of(goal.ob, goal.bone) == ob)
    found = (collection for goal in goals for collection in goal.users_collection)
    return next((collection for collection in found if has_mark(collection, MADE) and collection.is_editable), None)


def _layer_of(context: bpy.types.Context, collection: bpy.types.Collection) -> bpy.types.LayerCollection | None:
    layers = all_layers(context.view_layer.layer_collection)
    return next((layer for layer in layers if layer.collection == collection), None)


def _home(context: bpy.types.Context, ob: bpy.types.Object) -> bpy.types.Collection:
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


def collection_of(context: bpy.types.Context, ob: bpy.types.Object) -> bpy.types.Collection:
    """Return the collection for an armature's targets and poles, making it beside the armature if needed."""
    collection = made_collection(ob)
    if collection is None:
        collection = bpy.data.collections.new(f"{ob.name} IK")
        set_mark(collection, MADE)
    if _layer_of(context, collection) is None:
        _home(context, ob).children.link(collection)
    return collection


def _empty(
    context: bpy.types.Context, ob: bpy.types.Object, wanted: Control, collection: bpy.types.Collection
) -> bpy.types.Object:
    empty = bpy.data.objects.new(wanted.name, None)
    mark(empty, ob)
    empty.empty_display_type = wanted.shape
    empty.empty_display_size = wanted.size
    empty.show_in_front = True
    empty.matrix_basis = wanted.world
    collection.objects.link(empty)
    space = context.space_data
    if isinstance(space, bpy.types.SpaceView3D) and space.local_view is not None:
        empty.local_view_set(space, True)
    return empty


def parent_bone_of(ob: bpy.types.Object, bones: list[bpy.types.PoseBone]) -> str:
    """Return the bone that carries a chain, whose bones are given root first; empty if nothing is above the chain."""
    figure = Figure.of(ob)
    index = {name: i for i, name in enumerate(figure.names)}
    solved = {index[name] for name in _solved_with(ob, {bone.name for bone in bones})}
    parent_bone = body.parent_bone_of(figure, [index[bone.name] for bone in bones], solved)
    return "" if parent_bone is None else figure.names[parent_bone]


def attach(ob: bpy.types.Object, parent_bone: str, pole: bpy.types.Object) -> None:
    """Parent an object to a bone without moving it."""
    bone = ob.pose.bones[parent_bone]
    pole.parent, pole.parent_type, pole.parent_bone = ob, "BONE", parent_bone
    tail = bone.matrix @ Matrix.Translation((0.0, bone.bone.length, 0.0))  # children of bones are placed at the tail
    pole.matrix_parent_inverse = (ob.matrix_world @ tail).inverted_safe()


def _solved_with(ob: bpy.types.Object, bones: set[str]) -> set[str]:
    """Return the bones of all chains that share bones with these, directly or through other chains."""
    chains = [{bone.name for bone in chain_bones(tip)} for tip in tips(ob)]
    found = set(bones)
    while any(not found.isdisjoint(own) and not own <= found for own in chains):
        found = found.union(*(own for own in chains if not found.isdisjoint(own)))
    return found
