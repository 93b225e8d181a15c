"""The controls of a figure: the targets and poles of its chains, and its shoulders, hips and root."""

from collections.abc import Sequence

from bpy.types import Context, Object, PoseBone

from ..chains import make_controls
from ..core import channels, compat
from ..core.goals import Goal, group_of
from ..rig.plan.chain import posed_bones, tips
from .movable import goals_of


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


def select(context: Context, goals: Sequence[Goal]) -> int:
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


def key(context: Context, goals: Sequence[Goal]) -> None:
    """Key location and rotation of these controls on the current frame, whether or not they have keys already."""
    keytype = context.scene.tool_settings.keyframe_type
    for goal in goals:
        group = group_of(goal.holder)
        for field in ("location", channels.rotation_field(goal.holder.rotation_mode)):
            goal.holder.keyframe_insert(field, group=group, keytype=keytype)
