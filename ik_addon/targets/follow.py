"""A target and a pole that follow the pose of their limb while a hand edits it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import bpy
import numpy as np
from bpy.types import Depsgraph, FCurve, Object

from ..core import compat
from ..core.channels import Row
from ..core.fk_keys import time_of
from ..core.goals import Goal, curves_on, insert_key
from ..core.key_curve import SAME_FRAME, Keys, read_keys, write_keys
from ..core.settings import overlay_of
from ..core.skeleton import inverse, moved
from ..core.translation.sentences import UserError
from ..rig.plan.presence import Reference
from ..solve.maths.products import applied
from ..solve.problem import Floats
from .autokey import auto_key
from .movable import locked
from .places import bend_turn, on_one_side, turned_about
from .snap import Poles, Sampled, Snap, rows_of


class Meaning(NamedTuple):
    """What an edit means for one chain."""

    tip: str
    rows: frozenset[int]
    """The edited bones that don't become FK, as rows of the live bones."""
    target: bool
    """Whether the target follows."""
    pole: bool
    """Whether the pole follows."""


class Follower:
    """The goals of one chain that follow an edit."""

    def __init__(self, depsgraph: Depsgraph, ob: Object, meaning: Meaning, *, matches: bool) -> None:
        """Prepare to follow.

        Args:
            depsgraph: of the view layer with the armature and its goals.
            ob: the armature object.
            meaning: what follows.
            matches: whether a pole is placed to match the pose; else it turns about the limb with the edited bone.

        Raises:
            UserError: the goals can't be moved.
        """
        self.tip, self.rows = meaning.tip, meaning.rows
        self._target, self._pole, self._matches = meaning.target, meaning.pole, matches
        poles = Poles.MATCH if meaning.pole else Poles.KEEP
        self._snap = Snap.of(depsgraph.view_layer, ob, [ob.pose.bones[meaning.tip]], True, poles)
        if not matches:  # a hand puts the target itself somewhere
            self._snap = replace(self._snap, chains=[replace(own, is_soft=False) for own in self._snap.chains])
        for goal in self.goals:
            if all(goal.holder.lock_location) and (not goal.turns or any(goal.holder.lock_rotation)):
                raise UserError(
                    "The location of '{owner}' is locked. Unlock it in its Transform panel", owner=goal.holder.name
                )
        self._wanted: Floats | None = None
        """(1, g, 3) where the goals were moved to, in world space."""
        self._start: tuple[Floats, Floats] | None = None
        """The joints (1, 3, 3) of the limb in armature space, and the pole (1, 3) in world space, before the edit."""

    @property
    def lacks_start(self) -> bool:
        """Whether `begin` needs to see the pose before the edit."""
        return self._pole and not self._matches and self._start is None

    @property
    def goals(self) -> list[Goal]:
        """The goals that follow."""
        return [goal for goal, follows in zip(self._snap.goals, (self._target, self._pole), strict=False) if follows]

    def begin(self, depsgraph: Depsgraph) -> None:
        """Note the pose before the edit, if needed; the depsgraph shows it."""
        if self.lacks_start:
            sampled = self._snap.sampler.here(depsgraph)
            self._start = self._joints(sampled), sampled.goals[:, 1, :3, 3].copy()

    def _joints(self, sampled: Sampled) -> Floats:
        """Return hip, knee and ankle, or shoulder, elbow and wrist, (1, 3, 3) in armature space."""
        return self._snap.knee(sampled, self._snap.chains[0]).joints[:, :3]

    def follow(self, depsgraph: Depsgraph) -> None:
        """Move the goals to match the pose that a depsgraph shows, and key them if auto keying is on."""
        sampled = self._snap.sampler.here(depsgraph)
        rows, wanted = self._snap.rows(sampled, self._snap.distances(sampled))
        if self._start is not None:
            before, pole = self._start
            inner = applied(inverse(sampled.world)[:, :3], np.append(pole, [[1.0]], axis=1))
            inner = turned_about(before, inner, bend_turn(before, self._joints(sampled)))
            wanted[:, 1] = applied(sampled.world[:, :3], np.append(inner, [[1.0]], axis=1))
            rows = rows_of(self._snap.goals, sampled, wanted, {})
        elif self._pole:  # a pasted pose that bends to where the pole is leaves it there
            to_object, now = inverse(sampled.world), sampled.goals[:, 1, :3, 3]
            if on_one_side(self._joints(sampled), moved(to_object, wanted[:, 1]), moved(to_object, now)).all():
                wanted[:, 1], rows[0, 1] = now, self._snap.goals[1].row()
        self._wanted = wanted
        row_of = dict(zip(self._snap.goals, rows[0], strict=True))
        for goal in self.goals:
            goal.set_row(locked(goal, goal.row(), row_of[goal]))
            auto_key(bpy.context, goal.holder, goal.fields)

    def is_held(self, depsgraph: Depsgraph) -> bool:
        """Whether a constraint or driver keeps a goal from the place that it was moved to."""
        assert self._wanted is not None
        held = self._snap.held(self._snap.sampler.here(depsgraph), self._wanted)
        return any(goal.name in held and not any(goal.holder.lock_location) for goal in self.goals)


@dataclass(frozen=True)
class Control:
    """A goal's channels and its keys on the current frame, to put them back."""

    ob: Reference
    goal: str
    """The name of its bone; empty for an object."""
    turns: bool
    row: Row
    keys: dict[tuple[str, int], float]
    """The values of its keys on the frame, by field and index."""
    curves: dict[tuple[str, int], Keys]
    """All its keys, if an edit reaches more frames."""
    frame: float
    action: int | None
    """`session_uid` of the action of its object; None if it has none."""

    @classmethod
    def of(cls, goal: Goal) -> Self:
        """Return the current state of a goal."""
        frame, action = bpy.context.scene.frame_current_final, compat.action_of(goal.ob)
        uid = None if action is None else action.session_uid
        reaches = overlay_of(bpy.context.scene).edit_range > 0
        curves = {place: read_keys(curve) for place, curve in _curves(goal)} if reaches else {}
        return cls(Reference.of(goal.ob), goal.bone, goal.turns, goal.row(), _keys(goal, frame), curves, frame, uid)

    @property
    def key(self) -> tuple[int, str]:
        """What it is the state of."""
        return self.ob.uid, self.goal

    def _found(self) -> Goal | None:
        ob = self.ob.find()
        goal = None if ob is None else Goal(ob, self.goal, self.turns)
        return None if goal is None or goal.is_bone != bool(self.goal) else goal

    def is_there(self) -> bool:
        """Whether the goal has these channels now."""
        goal = self._found()
        return goal is not None and np.array_equal(goal.row(), self.row)

    def put_back(self) -> Self:
        """Give the goal these channels and keys, and return its state: it may have another action now."""
        goal = self._found()
        if goal is None:
            return self
        holder = goal.holder
        kept = next((own for own in bpy.data.actions if own.session_uid == self.action), None)
        # The step has it, but Blender kept the goal without it.
        if kept is not None and compat.action_of(goal.ob) is None:
            compat.use_action(goal.ob, kept)
        now = _keys(goal, self.frame)
        for field, index in now.keys() - self.keys.keys():
            holder.keyframe_delete(field, index=index, frame=self.frame)
        goal.set_row(self.row)
        for (field, index), value in self.keys.items():
            if now.get((field, index)) != value:
                insert_key(holder, field, index, value, self.frame)
        for place, curve in _curves(goal):
            if place in self.curves:
                write_keys(curve, self.curves[place])
        action = compat.action_of(goal.ob)
        if action is not None and self.action is None and not len(compat.curves_of(goal.ob)):
            goal.ob.animation_data_clear()
            bpy.data.actions.remove(action)
            action = None
        return replace(self, action=None if action is None else action.session_uid)


def _keys(goal: Goal, frame: float) -> dict[tuple[str, int], float]:
    """Return the values of the keys of a goal on a frame, by field and index."""
    time, found = time_of(goal.ob, frame), {}
    for place, curve in _curves(goal):
        for key in curve.keyframe_points:
            if abs(key.co.x - time) < SAME_FRAME:
                found[place] = key.co.y
    return found


def _curves(goal: Goal) -> Iterator[tuple[tuple[str, int], FCurve]]:
    """Yield the F-curves of a goal, each with its field and index."""
    for field in goal.fields:
        for index, curve in curves_on(goal.holder, field):
            yield (field, index), curve
