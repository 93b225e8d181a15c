"""Targets and poles to be moved: their channels, how these are keyed, and what the goals follow."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np
from bpy.types import Context, Object, PoseBone
from mathutils import Euler

from ..chains import make_controls
from ..core import channels, compat, keyframes
from ..core.channels import FIELDS, Row, rotation_field, turned, with_rotation
from ..core.constraints import is_on
from ..core.goals import Goal, group_of
from ..core.names import chain_name
from ..core.settings import chain_of, goal_of
from ..core.translation.sentences import say
from ..core.untyped import Struct
from ..rig.plan.chain import posed_bones, takes_orientation, tips
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
    return say(lacking[role], tip=chain_name(tip))


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


# ---- the controls of a figure: targets and poles of its chains, and its shoulders, hips and root


def controls_of(ob: Object, tips: Sequence[PoseBone], *, with_trunk: bool) -> list[Goal]:
    """Return what can be moved: targets and poles of chains, and with the trunk shoulders, hips and root."""
    found = [goal for tip in tips for goal in goals_of(tip) if not goal.why_fixed]
    if with_trunk and ob.is_editable:
        found += [Goal(ob, name) for name in make_controls.dressed(ob)]
    return list(dict.fromkeys(found))


def not_copied(context: Context, ob: Object) -> list[str]:
    """Return the selected empties among the controls, which Copy Pose leaves out; not where it takes the whole limb."""
    selected = context.selected_objects
    chains = [tip for tip in tips(ob) if not all(map(compat.is_selected, posed_bones(tip)))]
    return [goal.name for tip in chains for goal in goals_of(tip) if not goal.is_bone and goal.ob in selected]


def select_controls(context: Context, goals: Sequence[Goal]) -> int:
    """Select these controls and nothing else; return how many there are in the view layer."""
    layer = context.view_layer.objects
    rigs = {goal.ob for goal in goals if goal.is_bone}
    posed = {own for own in context.view_layer.objects if own.mode == "POSE"}
    for bone in (bone for rig in rigs | posed for bone in rig.pose.bones):
        compat.set_selected(bone, to=False)
    for own in [own for own in context.selected_objects if own not in rigs and own != context.active_object]:
        own.select_set(False)
    found = [goal for goal in goals if goal.ob.name in layer]
    for goal in found:
        if goal.is_bone:
            compat.set_selected(goal.holder, to=True)
        else:
            goal.ob.select_set(True)
    return len(found)


def key_controls(context: Context, goals: Sequence[Goal]) -> None:
    """Key location and rotation of these controls on the current frame, whether or not they have keys already."""
    keytype = context.scene.tool_settings.keyframe_type
    for goal in goals:
        group = group_of(goal.holder)
        for field in ("location", channels.rotation_field(goal.holder.rotation_mode)):
            goal.holder.keyframe_insert(field, group=group, keytype=keytype)
