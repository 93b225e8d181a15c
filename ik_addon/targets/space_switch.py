"""The spaces that a target or pole can follow, and switching from one to another at a frame, without a jump.

Each switch adds a Child Of constraint whose influence is keyed, with constant interpolation, from the frame of the
switch to the frame of the next one. The constraint's inverse keeps the goal in place at the switch, so no channel of
the goal needs a key: its F-curves continue in the new space, and neither frames nor subframes before the switch change.

A parent would go on moving the goal in any space. The first switch therefore replaces the parent by such a constraint,
which moves nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import NamedTuple

import bpy
import numpy as np
from bpy.types import ChildOfConstraint, Context, Depsgraph, Object, PoseBone, ViewLayer
from mathutils import Matrix

from ..anatomy.body import chest_of, head_of, parent_bone_of
from ..anatomy.figure import Figure
from ..bake.sampling import at_frame
from ..bake.scene import SceneSnapshot, time_scale
from ..chains.make_controls import can_be_made, editing
from ..core import compat
from ..core.goals import Goal
from ..core.key_curve import SAME_FRAME
from ..core.keyframes import Channel, key_step
from ..core.skeleton import inverse, matrix_array
from ..core.translation.sentences import UserError, say
from ..core.untyped import Struct, has_mark, set_mark
from ..rig.plan.chain import chain_bones, check
from ..rig.plan.inputs import RIDDEN as INHERITED
from ..solve.maths.products import times
from ..solve.problem import Floats
from .movable import parents_of, target_of

WORLD = "IK World"
"""Name of the empty that stands for the world, since a Child Of constraint needs a target."""
WORLD_MARK = "ik_addon_world"
"""Custom property that marks this empty."""
PREFIX = "IK Space"
"""Prefix of the constraints' names."""
KEPT = 1e-4
"""A goal that a switch moves by more than this is held by something else. Relative to its distance from the origin, or
to one unit if that is larger."""
ON = 0.5
"""A space is active where its influence is above this."""


class Space(NamedTuple):
    """Something that a target or pole can follow."""

    identifier: str
    """The kind of space, for scripts: WORLD, PARENT, CHEST, HEAD or OBJECT."""
    ob: Object | None = None
    """None: the world."""
    bone: str = ""

    @property
    def name(self) -> str:
        """The name shown in messages."""
        return say("the world") if self.ob is None else f"'{self.bone or self.ob.name}'"


def spaces_of(tip: PoseBone, other: Object | None, bone: str) -> Iterator[Space]:
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


def world_empty(context: Context, goal: Goal, undo: ExitStack) -> Object:
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


def space_name(tip: PoseBone) -> str:
    """Return the name of what the target of a chain follows; empty if it has no target."""
    target = target_of(tip)
    if target is None:
        return ""
    found = next(parents_of(target.ob, target.bone if target.is_bone else ""), None)
    if found is None or has_mark(found.ob, WORLD_MARK) or (found.ob == target.ob and not found.bone):
        return say("World")
    return found.name


# ---- switching


class _Visit(NamedTuple):
    """The time that a goal spends in a space, from one switch to the next."""

    goal: Goal
    constraint: ChildOfConstraint
    start: float
    """Frame in the action at which it begins; a former parent comes before all others."""

    @property
    def influence(self) -> str:
        """The data path of what is keyed."""
        return self.constraint.path_from_id("influence")

    def key(self, frames: tuple[float, float], values: tuple[float, float], undo: ExitStack) -> None:
        """Key a step of the influence on two frames of the action."""
        channel = Channel(self.goal.name, self.influence, 0, np.array(values), of_object=True)
        key_step(self.goal.ob, [channel], frames, undo, held=True)

    def remove(self) -> None:
        """Remove the constraint and its keys."""
        curve = compat.find_curve(self.goal.ob, self.influence)
        if curve is not None:
            compat.curves_of(self.goal.ob).remove(curve)
        self.goal.holder.constraints.remove(self.constraint)

    def to_world(self, depsgraph: Depsgraph) -> Floats:
        """Return the matrix (4, 4) by which the constraint moves the goal in world space."""
        inside = inverse(self._owner(depsgraph))
        return times(self._target(depsgraph), times(matrix_array(self.constraint.inverse_matrix), inside))

    def place(self, where: Floats, unplaced: Floats, depsgraph: Depsgraph) -> None:
        """Set the inverse so that the constraint moves the goal from `unplaced` to `where`, world matrices (4, 4).

        Raises:
            UserError: the goal or the constraint's target is scaled to zero.
        """
        inside = times(inverse(unplaced), self._owner(depsgraph))
        found = times(times(inverse(self._target(depsgraph)), where), inside)
        if not np.isfinite(found).all():
            raise UserError(
                "'{constraint}' or its goal is scaled to zero. Reset the scale", constraint=self.constraint.name
            )
        self.constraint.inverse_matrix = Matrix(found.tolist())

    def _target(self, depsgraph: Depsgraph) -> Floats:
        target: Struct = self.constraint.target  # `_visits` leaves out constraints without one
        return matrix_array(Goal(target, self.constraint.subtarget).world(depsgraph))

    def _owner(self, depsgraph: Depsgraph) -> Floats:
        """Return the world matrix (4, 4) of the space in which the constraint evaluates its owner.

        For a bone, this is the matrix of its armature object.
        """
        if self.constraint.owner_space == "WORLD":
            return np.eye(4)
        return matrix_array(Goal(self.constraint.id_data).world(depsgraph))


def switch(context: Context, tip: PoseBone, goal: Goal, space: Space) -> int:
    """Switch a goal of the chain on `tip` to a space from the current frame on, without moving it.

    Replaces a switch on the same frame. Later switches stay and start from where the goal is by then. Clearing the
    parent of a bone takes its armature through Edit Mode: look up pose bones again afterwards.

    Returns:
        The number of later switches.

    Raises:
        UserError: the goal can't be switched; nothing has changed.
    """
    goal.check_movable()
    own = Goal(goal.ob, goal.bone if goal.is_bone else "")
    if space.ob is not None and own in [Goal(space.ob, space.bone), *parents_of(space.ob, space.bone)]:
        raise UserError("{space} itself follows '{goal}'. Pick another space", space=space.name, goal=goal.name)
    ob, name, view_layer, scene = tip.id_data, tip.name, context.view_layer, context.scene
    view_layer.update()
    scale = time_scale(scene)
    now = scene.frame_current_final * scale
    where = matrix_array(goal.world(view_layer.depsgraph))
    with ExitStack() as undo:
        undo.callback(view_layer.update)
        if goal.holder.parent is not None:
            _turn_parent(context, goal, now - scale, undo)
            view_layer.update()
        visits = _visits(goal)
        replaced = [visit for visit in visits if abs(visit.start - now) <= SAME_FRAME]
        others = [visit for visit in visits if visit not in replaced]
        before, later = ([v for v in others if (v.start > now) is is_later] for is_later in (False, True))
        unplaced = _unconstrained(replaced or before[-1:], where, view_layer.depsgraph)
        target = world_empty(context, goal, undo) if space.ob is None else space.ob
        visit = _Visit(goal, _constraint(goal, target, space.bone, undo), now)
        visit.place(where, unplaced, view_layer.depsgraph)
        visit.key((now - scale, now), (0.0, 1.0), undo)
        for following in later[:1]:
            visit.key((max(now, following.start - scale), following.start), (1.0, 0.0), undo)
        visit.constraint.influence = 1.0
        for last in before[-1:]:
            undo.callback(setattr, last.constraint, "influence", last.constraint.influence)
            last.key((max(last.start, now - scale), now), (1.0, 0.0), undo)
            last.constraint.influence = 0.0
        for old in replaced:
            undo.callback(setattr, old.constraint, "mute", old.constraint.mute)
            old.constraint.mute = True
        view_layer.update()
        _check_kept(goal, where, view_layer.depsgraph)
        check(ob, ob.pose.bones[name], view_layer)
        if later:
            _place_later(view_layer, ob, goal, [visit, *later], scale)
        undo.pop_all()
    for old in replaced:
        old.remove()
    view_layer.update()
    return len(later)


def _turn_parent(context: Context, goal: Goal, before: float, undo: ExitStack) -> None:
    """Replace the parent of an object or bone by a constraint that is active up to a frame of the action."""
    parent, inside = _cleared_bone(context, goal, undo) if goal.is_bone else _cleared_object(goal.ob, undo)
    made = _constraint(goal, parent.ob, parent.bone, undo)
    made.inverse_matrix = inside
    goal.holder.constraints.move(len(goal.holder.constraints) - 1, 0)  # before all other constraints, as the parent was
    _Visit(goal, made, before).key((before - 1.0, before), (1.0, 1.0), undo)
    made.influence = 1.0


def _cleared_object(ob: Struct, undo: ExitStack) -> tuple[Goal, Matrix]:
    """Clear the parent of an object; return the parent and the Child Of inverse that has the same effect."""
    if ob.parent_type not in INHERITED:
        raise UserError(
            "'{object}' is parented to parts of '{parent}'. Clear its parent", object=ob.name, parent=ob.parent.name
        )
    bone = ob.parent.pose.bones[ob.parent_bone] if ob.parent_type == "BONE" else None
    inside = ob.matrix_parent_inverse.copy()
    if bone is not None:  # children of a bone are placed at its tail
        inside = Matrix.Translation((0.0, bone.bone.length, 0.0)) @ inside
    parent = Goal(ob.parent, "" if bone is None else bone.name)
    for name in ("matrix_parent_inverse", "parent_bone", "parent_type", "parent"):  # the last is put back first
        value = getattr(ob, name)
        undo.callback(setattr, ob, name, value.copy() if name == "matrix_parent_inverse" else value)
    ob.parent = None
    return parent, inside


def _cleared_bone(context: Context, goal: Goal, undo: ExitStack) -> tuple[Goal, Matrix]:
    """Clear the parent of a bone in Edit Mode; return the parent and the Child Of inverse that has the same effect."""
    ob, bone = goal.ob, goal.ob.data.bones[goal.bone]
    above = bone.parent
    is_plain = bone.use_inherit_rotation and bone.inherit_scale == "FULL" and bone.use_local_location
    if not (is_plain and can_be_made(context, ob) and ob.data.users == 1):
        kept = "Bone '{bone}' can't be released from its parent '{above}'. Clear its parent"
        raise UserError(kept, bone=bone.name, above=above.name)
    parent, inside = Goal(ob, above.name), above.matrix_local.inverted_safe()
    undo.callback(_set_parent, context, goal, above.name)
    _set_parent(context, goal, "")
    return parent, inside


def _set_parent(context: Context, goal: Goal, parent: str) -> None:
    with editing(context, goal.ob) as bones:
        bones[goal.bone].parent = bones[parent] if parent else None


def _constraint(goal: Goal, target: Object, bone: str, undo: ExitStack) -> Struct:
    """Add a constraint with influence 0 after the goal's others, and return it."""
    constraints = goal.holder.constraints
    made = constraints.new("CHILD_OF")
    made.name = f"{PREFIX} {bone or target.name}"
    name = made.name
    undo.callback(lambda: constraints.remove(constraints[name]))
    made.influence = 0.0
    made.target, made.subtarget = target, bone
    return made


def _visits(goal: Goal) -> list[_Visit]:
    """Return the spaces that a goal is switched to, ordered by frame."""
    found = []
    for constraint in goal.holder.constraints:
        if constraint.type != "CHILD_OF" or not constraint.name.startswith(PREFIX) or constraint.target is None:
            continue
        curve = compat.find_curve(goal.ob, constraint.path_from_id("influence"))
        keys = () if curve is None else [point.co[0] for point in curve.keyframe_points if point.co[1] > ON]
        if keys:
            found.append(_Visit(goal, constraint, min(keys)))
    return sorted(found, key=lambda visit: visit.start)


def _unconstrained(active: Sequence[_Visit], where: Floats, depsgraph: Depsgraph) -> Floats:
    """Return the world matrix (4, 4) that a goal at `where` would have without the active visits.

    Raises:
        UserError: the current space is scaled to zero.
    """
    found = where
    for visit in active:
        found = times(inverse(visit.to_world(depsgraph)), found)
    if not np.isfinite(found).all():
        raise UserError("Its current space is scaled to zero. Reset the scale")
    return found


def _place_later(view_layer: ViewLayer, ob: Object, goal: Goal, visits: Sequence[_Visit], scale: float) -> None:
    """Make each visit but the first start where the visit before it leaves the goal."""
    before = SceneSnapshot(view_layer, ob)
    try:
        for last, visit in pairwise(visits):
            depsgraph = at_frame(view_layer, visit.start / scale)
            unplaced = _unconstrained([visit], matrix_array(goal.world(depsgraph)), depsgraph)
            visit.place(times(last.to_world(depsgraph), unplaced), unplaced, depsgraph)
    finally:
        before.restore()


def _check_kept(goal: Goal, where: Floats, depsgraph: Depsgraph) -> None:
    moved = matrix_array(goal.world(depsgraph)) - where
    if not np.abs(moved).max() < KEPT * max(1.0, float(np.abs(where).max())):
        raise UserError(
            "Another constraint or a driver holds '{goal}'. Mute it, or switch its target instead", goal=goal.name
        )
