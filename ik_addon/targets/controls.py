"""The controls of a figure: the targets and poles of its chains, and its hips and root."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bpy

from ..chains import control_bones
from ..core import channels, compat
from ..core.goals import Goal
from .movable import goals_of


def controls_of(ob: bpy.types.Object, tips: Sequence[bpy.types.PoseBone], *, with_trunk: bool) -> list[Goal]:
    """Return the controls that can be moved: targets and poles of chains, and with the trunk the hips and the root."""
    found = [goal for tip in tips for goal in goals_of(tip)]
    if with_trunk:
        found += [Goal(ob, name) for name in control_bones.dressed(ob)]
    return [goal for goal in dict.fromkeys(found) if not goal.why_fixed]


def select(context: bpy.types.Context, goals: Sequence[Goal]) -> int:
    """Select these controls and nothing else; return how many there are in the view layer."""
    layer: Any = context.view_layer.objects
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


def key(context: bpy.types.Context, goals: Sequence[Goal]) -> None:
    """Key location and rotation of these controls on the current frame, whether or not they have keys already."""
    keytype: Any = context.scene.tool_settings.keyframe_type
    for goal in goals:
        group = goal.name if goal.is_bone else "Object Transforms"
        for field in ("location", channels.rotation_field(goal.holder.rotation_mode)):
            goal.holder.keyframe_insert(field, group=group, keytype=keytype)
