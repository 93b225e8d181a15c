"""Targets and poles to be moved: their channels, how these are keyed, and what the goals follow."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np
from bpy.types import Object, PoseBone
from mathutils import Euler

from ..core import keyframes
from ..core.channels import FIELDS, Row, rotation_field, turned, with_rotation
from ..core.constraints import is_on
from ..core.goals import Goal, group_of
from ..core.settings import chain_of, goal_of
from ..core.translation.sentences import say
from ..core.untyped import Struct
from ..rig.plan.chain import takes_orientation
from ..solve.problem import Floats


def target_of(tip: PoseBone) -> Goal | None:
    """Return the target of a chain; None if it has none."""
    chain = chain_of(tip)
    return None if chain.target is None else Goal(chain.target, chain.target_bone, takes_orientation(tip))


def pole_of(tip: PoseBone) -> Goal | None:
    """Return the pole of a chain; None if it has none."""
    chain = chain_of(tip)
    return None if chain.pole is None else Goal(chain.pole, chain.pole_bone)


def why_lacking(tip: PoseBone, role: str = "target") -> str:
    """Return that a chain has no target or no pole, and what to do; empty if it has one."""
    if goal_of(chain_of(tip), role)[0] is not None:
        return ""
    lacking = {
        "target": "The chain on '{tip}' has no target. Pick one",
        "pole": "The chain on '{tip}' has no pole. Pick one",
    }
    return say(lacking[role], tip=tip.name)


def goals_of(tip: PoseBone) -> list[Goal]:
    """Return the target and the pole of a chain, as far as it has them."""
    return [goal for goal in (target_of(tip), pole_of(tip)) if goal is not None]


def parents_of(ob: Object | None, bone: str) -> Iterator[Goal]:
    """Yield what an evaluated object or its bone follows, by parenting or a Child Of constraint, nearest first."""
    seen: set[tuple[str, str]] = set()
    while ob is not None and (ob.name_full, bone) not in seen:
        seen.add((ob.name_full, bone))
        own: Struct = ob.pose.bones.get(bone) if bone and ob.pose is not None else None
        owner: Struct = ob if own is None else own
        taken = next((c for c in owner.constraints if c.type == "CHILD_OF" and is_on(c) and c.target is not None), None)
        if taken is not None:
            ob, bone = taken.target, taken.subtarget
        elif own is not None:
            ob, bone = ob, "" if own.parent is None else own.parent.name
        else:
            ob, bone = ob.parent, ob.parent_bone if ob.parent_type == "BONE" else ""
        if ob is not None:
            yield Goal(ob, bone)


def locked(goal: Goal, before: Row, row: Row) -> Row:
    """Return channels (17,) as they were before where the goal is locked, as Blender's own transforms leave them."""
    holder, row = goal.holder, row.copy()
    mode, place, turn = holder.rotation_mode, FIELDS["location"], FIELDS[rotation_field(holder.rotation_mode)]
    row[place] = np.where(holder.lock_location[:], before[place], row[place])
    if all(holder.lock_rotation):
        row[turn] = before[turn]
    elif mode not in {"QUATERNION", "AXIS_ANGLE"}:
        row[turn] = np.where(holder.lock_rotation[:], before[turn], row[turn])
    elif any(holder.lock_rotation):  # Blender applies locks to these as to Euler angles
        was = turned(before[turn].tolist(), mode).to_euler("XYZ")
        now = turned(row[turn].tolist(), mode).to_euler("XYZ", was)
        kept = Euler(np.where(holder.lock_rotation[:], was[:], now[:]).tolist()).to_matrix()
        row = with_rotation(row[None], np.array(kept)[None], np.array([mode]))[0]
    return row


# ---- keys


def key_goals(goals: Sequence[Goal], rows: Row, times_of_keys: Floats, undo: ExitStack) -> None:
    """Key channels (F, g, 17) of goals at times (F,); `undo` restores the old keys and channels."""
    for g, goal in enumerate(goals):
        undo.callback(goal.set_row, goal.row())
        undo.callback(keyframes.write_channels(goal.ob, channels_of(goal, rows[:, g]), times_of_keys))


def channels_of(goal: Goal, rows: Row) -> list[keyframes.Channel]:
    """Return the channels of a goal to key, with values from rows (F, 17)."""
    return [
        keyframes.Channel(group_of(goal.holder), field, i, column, of_object=not goal.is_bone)
        for field in goal.fields
        for i, column in enumerate(rows[:, FIELDS[field]].T.astype(np.float64))
    ]
