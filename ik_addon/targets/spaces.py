"""The spaces that a target or pole can follow: the world, parts of the body, another object."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import bpy

from ..anatomy.body import chest_of, head_of, parent_bone_of
from ..anatomy.figure import Figure
from ..core.goals import Goal
from ..core.translation.sentences import say
from ..core.untyped import has_mark, set_mark
from ..rig.plan.chain import chain_bones
from .movable import parents_of, target_of

WORLD = "IK World"
"""Name of the empty that stands for the world, since a Child Of constraint needs a target."""
WORLD_MARK = "ik_addon_world"
"""Custom property that marks this empty."""


@dataclass(frozen=True)
class Space:
    """Something that a target or pole can follow."""

    identifier: str
    """The kind of space, for scripts: WORLD, PARENT, CHEST, HEAD or OBJECT."""
    ob: bpy.types.Object | None = None
    """None: the world."""
    bone: str = ""

    @property
    def name(self) -> str:
        """The name shown in messages."""
        return say("the world") if self.ob is None else f"'{self.bone or self.ob.name}'"


def spaces_of(tip: bpy.types.PoseBone, other: bpy.types.Object | None, bone: str) -> Iterator[Space]:
    """Yield the spaces for goals of a chain: the world, the limb's parent bone, the chest, the head, another object.

    If the other object is an armature with a bone named `bone`, the space is that bone.
    """
    yield Space("WORLD")
    ob, figure = tip.id_data, Figure.of(tip.id_data)
    parent_bone = parent_bone_of(figure, [figure.names.index(own.name) for own in chain_bones(tip)])
    for identifier, found in (("PARENT", parent_bone), ("CHEST", chest_of(figure)), ("HEAD", head_of(figure))):
        if found is not None:
            yield Space(identifier, ob, figure.names[found])
    if other is not None:
        yield Space("OBJECT", other, bone if other.type == "ARMATURE" and bone in other.pose.bones else "")


def follows(space: Space, goal: Goal) -> bool:
    """Whether a space follows the goal itself, which would be a dependency loop."""
    if space.ob is None:
        return False
    own = Goal(goal.ob, goal.bone if goal.is_bone else "")
    return own in [Goal(space.ob, space.bone), *parents_of(space.ob, space.bone)]


def world_empty(context: bpy.types.Context, goal: Goal, undo: ExitStack) -> bpy.types.Object:
    """Return the empty that stands for the world.

    If the view layer has none, make one in a collection of the goal; `undo` removes it.
    """
    layer = context.view_layer.objects
    known = next((ob for ob in layer if has_mark(ob, WORLD_MARK) and ob.library is None), None)
    if known is not None:
        return known
    empty = bpy.data.objects.new(WORLD, None)
    undo.callback(bpy.data.objects.remove, empty)
    set_mark(empty, WORLD_MARK)
    empty.empty_display_size = 0.01
    empty.hide_select = empty.hide_render = True
    for lock in ("lock_location", "lock_rotation", "lock_scale"):
        setattr(empty, lock, (True, True, True))
    shared = [collection for collection in goal.ob.users_collection if collection.is_editable]
    (shared[0] if shared else context.scene.collection).objects.link(empty)
    if empty.name in layer:
        empty.hide_set(True)
    context.view_layer.update()
    return empty


def space_name(tip: bpy.types.PoseBone) -> str:
    """Return the name of what the target of a chain follows; empty if it has no target."""
    target = target_of(tip)
    if target is None:
        return ""
    found = next(parents_of(target.ob, target.bone if target.is_bone else ""), None)
    if found is None or has_mark(found.ob, WORLD_MARK) or (found.ob == target.ob and not found.bone):
        return say("World")
    return found.name
