"""Targets and poles to be moved: their channels, how these are keyed, and what the goals follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np

from ..core import channels, compat, keyframes
from ..core.channels import FIELDS, Row
from ..core.constraints import is_on
from ..core.settings import chain_of, goal_of
from ..core.transforms import rotations
from ..core.translation.sentences import say
from ..rig.plan.chain import takes_orientation
from ..solve.maths.products import determinants, times
from ..solve.maths.rotations import matrices, quaternions
from ..solve.problem import Floats
from .autokey import keyed_indices, path_of

Spot = tuple[bpy.types.Object, str]
"""An object, or one of its bones."""


@dataclass(frozen=True)
class MovableGoal:
    """A target or pole to be placed."""

    ob: bpy.types.Object
    bone: str
    turns: bool = False
    """Its rotation is set too."""

    @property
    def holder(self) -> Any:
        """The object or bone that is moved."""
        return self.ob.pose.bones[self.bone] if self.is_bone else self.ob

    @property
    def is_bone(self) -> bool:
        """Whether a bone is moved, rather than the object."""
        return bool(self.bone) and self.ob.type == "ARMATURE"

    @property
    def name(self) -> str:
        """The name shown in messages."""
        return self.bone or self.ob.name

    @property
    def fields(self) -> tuple[str, ...]:
        """The channels that are set."""
        turned = (channels.rotation_field(self.holder.rotation_mode),) if self.turns else ()
        return ("location", *turned)

    @property
    def is_keyed(self) -> bool:
        """Whether the location or rotation has F-curves."""
        fields = "location", channels.rotation_field(self.holder.rotation_mode)
        return any(keyed_indices(self.holder, field) for field in fields)

    @property
    def why_fixed(self) -> str:
        """Why it can't be moved by itself, and what to do; empty if it can."""
        if not self.ob.is_editable:
            return say("'{goal}' is linked from another file and can't be moved", goal=self.ob.name)
        bone = self.ob.data.bones.get(self.bone) if self.is_bone else None
        if self.is_bone and bone is None:
            return say("'{ob}' has no bone '{bone}'", ob=self.ob.name, bone=self.bone)
        if bone is not None and bone.use_connect and bone.parent is not None:
            return say("Bone '{bone}' is connected to its parent and can't be moved by itself", bone=self.bone)
        return ""

    def row(self) -> Row:
        """Return the current channels (17,)."""
        row = np.zeros(channels.WIDTH, dtype=np.float32)
        for field, columns in FIELDS.items():
            row[columns] = getattr(self.holder, field)
        return row

    def set_row(self, row: Row) -> None:
        """Set the properties in `fields` from channels (17,)."""
        for field in self.fields:
            setattr(self.holder, field, row[FIELDS[field]].tolist())

    def rows(self, basis: Floats) -> Row:
        """Return channels (F, 17) that give basis matrices (F, 4, 4); those not in `fields` keep their values."""
        rows = np.repeat(self.row()[None], len(basis), axis=0)
        rows[:, FIELDS["location"]] = basis[:, :3, 3] - self._delta("location")
        if self.turns:
            mode = self.holder.rotation_mode
            axes = basis[:, :3, :3] / np.maximum(np.linalg.norm(basis[:, :3, :3], axis=1, keepdims=True), 1e-30)
            axes *= np.where(determinants(axes) < 0.0, -1.0, 1.0)[:, None, None]
            turned = np.moveaxis(matrices(quaternions(np.moveaxis(axes, 0, -1))), -1, 0)
            if mode != "AXIS_ANGLE" and not self.is_bone:  # Blender applies no delta to axis and angle
                delta = rotations(self._delta(channels.rotation_field(mode)), mode)
                turned = times(np.swapaxes(delta, -1, -2)[None], turned)
            rows = channels.with_rotation(rows, turned, np.full(len(rows), mode))
        return rows

    def _delta(self, field: str) -> Any:
        """Return an object's delta transform for a property; zeros for bones, which have none."""
        width = FIELDS[field].stop - FIELDS[field].start
        return np.zeros(width) if self.is_bone else np.array(getattr(self.ob, f"delta_{field}"))

    def keyed(self, times_of_keys: Floats) -> Row:
        """Return the keyed channels (F, 17) at times (F,) of the action; channels not in `fields` are zero."""
        rows = np.zeros((len(times_of_keys), channels.WIDTH), dtype=np.float32)
        for field in self.fields:
            path, columns = path_of(self.holder, field), FIELDS[field]
            rows[:, columns] = self.row()[columns]
            for i in range(columns.stop - columns.start):
                curve = compat.find_curve(self.ob, path, i)
                if curve is not None:
                    rows[:, columns.start + i] = [curve.evaluate(time) for time in times_of_keys.tolist()]
        return rows

    def show_keys(self, frame: float) -> None:
        """Set the channels to the values of their F-curves on a frame of the action."""
        self.set_row(self.keyed(np.array([frame]))[0])


def target_of(tip: bpy.types.PoseBone) -> MovableGoal | None:
    """Return the target of a chain; None if it has none."""
    chain = chain_of(tip)
    return None if chain.target is None else MovableGoal(chain.target, chain.target_bone, takes_orientation(tip))


def pole_of(tip: bpy.types.PoseBone) -> MovableGoal | None:
    """Return the pole of a chain; None if it has none."""
    chain = chain_of(tip)
    return None if chain.pole is None else MovableGoal(chain.pole, chain.pole_bone)


def why_lacking(tip: bpy.types.PoseBone, role: str = "target") -> str:
    """Return that a chain has no target or no pole, and what to do; empty if it has one."""
    if goal_of(chain_of(tip), role)[0] is not None:
        return ""
    lacking = {
        "target": "The chain on '{tip}' has no target. Pick one",
        "pole": "The chain on '{tip}' has no pole. Pick one",
    }
    return say(lacking[role], tip=tip.name)


def goals_of(tip: bpy.types.PoseBone) -> list[MovableGoal]:
    """Return the target and the pole of a chain, as far as it has them."""
    return [goal for goal in (target_of(tip), pole_of(tip)) if goal is not None]


def parents_of(ob: bpy.types.Object | None, bone: str) -> Iterator[Spot]:
    """Yield what an evaluated object or its bone follows, by parenting or a Child Of constraint, nearest first."""
    seen: set[tuple[str, str]] = set()
    while ob is not None and (ob.name_full, bone) not in seen:
        seen.add((ob.name_full, bone))
        own: Any = ob.pose.bones.get(bone) if bone and ob.pose is not None else None
        taken = next((c for c in (ob if own is None else own).constraints if _takes_along(c)), None)
        if taken is not None:
            ob, bone = taken.target, taken.subtarget
        elif own is not None:
            ob, bone = ob, "" if own.parent is None else own.parent.name
        else:
            ob, bone = ob.parent, ob.parent_bone if ob.parent_type == "BONE" else ""
        if ob is not None:
            yield ob, bone


def _takes_along(constraint: Any) -> bool:
    return is_on(constraint) and constraint.type == "CHILD_OF" and constraint.target is not None


# ---- keys


def key_goals(goals: Sequence[MovableGoal], rows: Row, times_of_keys: Floats, undo: ExitStack) -> None:
    """Key channels (F, g, 17) of goals at times (F,); `undo` restores the old keys."""
    for g, goal in enumerate(goals):
        undo.callback(keyframes.write_channels(goal.ob, channels_of(goal, rows[:, g]), times_of_keys))


def channels_of(goal: MovableGoal, rows: Row) -> list[keyframes.Channel]:
    """Return the channels of a goal to key, with values from rows (F, 17)."""
    kind: Callable[..., keyframes.Channel] = keyframes.Channel if goal.is_bone else keyframes.ObjectChannel
    group = goal.name if goal.is_bone else "Object Transforms"
    return [
        kind(group, field, i, column)
        for field in goal.fields
        for i, column in enumerate(rows[:, FIELDS[field]].T.astype(np.float64))
    ]
