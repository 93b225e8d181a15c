"""Fixes for the target or pole of a chain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import bpy
import numpy as np

from ....chains.make_controls import can_be_made, editing
from ....chains.new_chain import follow, left_for, make_target
from ....core.chain_settings import IKAddonChain
from ....core.channels import FIELDS, REST, is_finite, rotation_field
from ....core.constraints import is_on, targets_of
from ....core.settings import chain_of, goal_of
from ....core.skeleton import FARTHEST, is_flat, is_usable, matrix_array
from ....core.translation.sentences import say
from ....rig.plan.chain import posed_bones, tips
from ....rig.plan.presence import all_layers, is_in
from ....rig.plan.sources import Part, Sources, uid_of
from .fix import Fix, mute_label, set_all

IN_VIEWPORTS = {"target": "Enable Target in Viewports", "pole": "Enable Pole in Viewports"}
IN_RENDERS = {"target": "Enable Target in Renders", "pole": "Enable Pole in Renders"}
NO_BONE = {"target": "Clear Target Bone", "pole": "Clear Pole Bone"}
"""Labels of buttons, by the role of the goal."""


def fixes_of_goal(tip: bpy.types.PoseBone, role: str, view_layer: bpy.types.ViewLayer) -> Iterator[Fix]:
    """Yield fixes for a target or pole, in the order in which `rig.plan.chain.check` finds the problems."""
    chain = chain_of(tip)
    goal, bone = getattr(chain, role), getattr(chain, f"{role}_bone")
    if goal is None:
        if role == "target":
            left = left_for(tip, view_layer)
            if left is not None:
                yield Fix(say("Use '{target}'", target=left.name), partial(follow, tip, left))
            yield Fix(say("Make Target"), partial(make_target, bpy.context, tip))
        return
    layer = view_layer.layer_collection
    if not is_in(view_layer.objects, goal):
        excluded = [own for own in all_layers(layer) if own.exclude and is_in(own.collection.objects, goal)]
        if excluded:
            label = say("Include '{collection}'", collection=excluded[0].name)
            yield Fix(label, lambda: setattr(excluded[0], "exclude", False))
        else:
            yield _without(tip, role)
    elif off := disabled(goal, layer, "hide_viewport"):
        yield Fix(say(IN_VIEWPORTS[role]), partial(set_all, off, ("hide_viewport",), False))
    elif bone and goal.type == "ARMATURE" and bone not in goal.pose.bones:
        yield Fix(say(NO_BONE[role]), lambda: setattr(chain, f"{role}_bone", ""))
    elif _rides_on(goal, bone, {own.name for own in posed_bones(tip)}, tip.id_data):
        yield from _detached(tip, goal, bone, role)


def fixes_in_renders(chain: IKAddonChain, view_layer: bpy.types.ViewLayer) -> Iterator[Fix]:
    """Yield fixes that enable goals in renders, so that they move there."""
    for role in ("target", "pole"):
        goal, _bone = goal_of(chain, role)
        if goal is not None and (off := disabled(goal, view_layer.layer_collection, "hide_render")):
            yield Fix(say(IN_RENDERS[role]), partial(set_all, off, ("hide_render",), False))


def fixes_of_loop(tip: bpy.types.PoseBone, in_loop: Callable[[str], bool]) -> Iterator[Fix]:
    """Yield fixes that break a dependency loop: give the chain on `tip`, or another in the loop, its own target.

    A chain in the loop because of its pole loses the pole; the last fix disables the chain on `tip`.
    """
    ob = tip.id_data
    on = [other for other in tips(ob) if chain_of(other).enabled]
    for own in (tip, *(other for other in on if other != tip and in_loop(other.name))):
        chain = chain_of(own)
        moved = {bone.name for other in on if other != own for bone in posed_bones(other)}
        if chain.target is not None and _rides_on(chain.target, chain.target_bone, moved, ob, others=True):
            for_other = say("Make Own Target for '{tip}'", tip=own.name)
            yield Fix(say("Make Own Target") if own == tip else for_other, partial(make_target, bpy.context, own))
        elif chain.pole is not None and _rides_on(chain.pole, chain.pole_bone, moved, ob, others=True):
            for_other = say("Clear Pole for '{tip}'", tip=own.name)
            yield Fix(say("Clear Pole") if own == tip else for_other, partial(setattr, chain, "pole", None))
    yield Fix(say("Turn Off '{tip}'", tip=tip.name), lambda: setattr(chain_of(tip), "enabled", False))


def fixes_of_transforms(tip: bpy.types.PoseBone) -> Iterator[Fix]:
    """Yield fixes that reset transforms with which nothing can be solved: not finite, too large, or scaled to zero."""
    ob, chain = tip.id_data, chain_of(tip)
    world = matrix_array(ob.matrix_world)
    if is_flat(world):
        yield Fix(say("Reset Scale of '{object}'", object=ob.name), partial(_reset, [ob], ("scale",)))
    elif not is_usable(world):
        yield Fix(say("Reset Transform of '{object}'", object=ob.name), partial(_reset, [ob]))
    posed = posed_bones(tip)
    bones = {bone.name: bone for bone in (*posed, *posed[0].parent_recursive)}.values()
    yield from _fixes_of_posed([bone for bone in bones if not is_finite(bone)])
    for own in (goal for goal in (chain.target, chain.pole) if goal is not None):
        place = np.abs(matrix_array(own.matrix_world))
        if not (place < FARTHEST).all():
            yield Fix(say("Reset Transform of '{object}'", object=own.name), partial(_reset, [own]))
    yield from _fixes_of_posed([bone for bone in bones if not all(bone.scale[:])])


def _fixes_of_posed(broken: list[bpy.types.PoseBone]) -> Iterator[Fix]:
    if broken:
        one = say("Reset '{bone}'", bone=broken[0].name)
        label = one if len(broken) == 1 else say("Reset {count} Bones", count=len(broken))
        yield Fix(label, partial(_reset, broken))


def _rides_on(
    goal: bpy.types.Object, bone: str, moved: set[str], ob: bpy.types.Object, *, others: bool = False
) -> bool:
    """Whether a goal follows any of the `moved` bones of an armature or, with `others`, a bone of another armature."""
    carriers = Sources().carriers([Part(goal, bone)])
    return any(own.bone in moved if own.armature == uid_of(ob) else others for own in carriers)


def _detached(tip: bpy.types.PoseBone, goal: bpy.types.Object, bone: str, role: str) -> Iterator[Fix]:
    """Yield fixes that detach a goal from the bones of its own chain and keep it in place."""
    if not goal.is_editable:
        return
    is_bone = bool(bone) and goal.type == "ARMATURE"
    holder: Any = goal.pose.bones[bone] if is_bone else goal
    holding = [c for c in holder.constraints if is_on(c) and any(own == tip.id_data for own, _name in targets_of(c))]
    if holding:
        yield Fix(mute_label(holding), partial(_mute_in_place, goal, holding))
    elif not is_bone and goal.parent is not None:
        yield Fix(say("Clear Parent"), partial(_clear_parent, goal))
    elif is_bone and holder.parent is not None and holder not in posed_bones(tip):
        if goal == tip.id_data and can_be_made(bpy.context, goal):
            yield Fix(say("Clear Parent"), partial(_clear_parent_bone, goal, bone))
    else:
        yield _without(tip, role)


def _without(tip: bpy.types.PoseBone, role: str) -> Fix:
    """Return the fix that does without a goal: another target, or no pole."""
    if role == "target":
        return Fix(say("Make New Target"), partial(make_target, bpy.context, tip))
    return Fix(say("Clear Pole"), lambda: setattr(chain_of(tip), "pole", None))


def _mute_in_place(goal: bpy.types.Object, constraints: list[Any]) -> None:
    world = goal.matrix_world.copy()
    set_all(constraints, ("mute",), True)
    bpy.context.view_layer.update()
    if isinstance(constraints[0].id_data, bpy.types.Object) and constraints[0] in list(goal.constraints):
        goal.matrix_world = world


def _clear_parent(goal: bpy.types.Object) -> None:
    world = goal.matrix_world.copy()
    goal.parent = None
    goal.matrix_world = world


def _clear_parent_bone(ob: bpy.types.Object, bone: str) -> None:
    with editing(bpy.context, ob) as bones:
        bones[bone].use_connect = False
        bones[bone].parent = None


def _reset(owners: Iterable[Any], what: tuple[str, ...] = ("location", "rotation", "scale")) -> None:
    for owner in owners:
        for name in what:
            field = rotation_field(owner.rotation_mode) if name == "rotation" else name
            setattr(owner, field, REST[FIELDS[field]].tolist())


# ---- disabled objects


def disabled(
    goal: bpy.types.Object, layer: bpy.types.LayerCollection, switch: str
) -> list[bpy.types.Object | bpy.types.Collection]:
    """Return what keeps an object from being evaluated: the object, or collections on one path to it.

    The list is empty if the object is evaluated.
    """
    own = [goal] if getattr(goal, switch) else []
    ways = list(_ways_to(goal, layer))
    off = [[found.collection for found in way if getattr(found.collection, switch)] for way in ways]
    return [*own, *min(off, key=len, default=[])]


def _ways_to(goal: bpy.types.Object, layer: bpy.types.LayerCollection) -> Iterator[list[bpy.types.LayerCollection]]:
    if layer.exclude:
        return
    if is_in(layer.collection.objects, goal):
        yield [layer]
    for child in layer.children:
        for way in _ways_to(goal, child):
            yield [layer, *way]
