"""Edits by operators: those of the extension, and Blender's Apply Pose as Rest Pose."""

from collections.abc import Callable
from typing import Any

import bpy
import numpy as np

from tests import rigs as measure

from .case import SAME_POSE, Case
from .known import channels
from .rigs import armatures, choose, rank, scene_objects


def pressed(case: Case, ob: bpy.types.Object, name: str, **options: object) -> bool:
    """Run an operator of the extension; return whether it finished."""
    operator: Any = getattr(bpy.ops.ik_addon, name)
    bpy.context.view_layer.objects.active = ob
    tips = case.chain.tips(ob)
    if tips:
        ob.data.bones.active = choose(case.rng, tips).bone
    if not operator.poll():
        return False
    try:
        return bool(operator(**options) == {"FINISHED"})
    except RuntimeError as refused:  # refused, with a reason
        case.log.append(f"({str(refused).strip()[:90]})")
        return False


def some_armature(case: Case) -> bpy.types.Object:
    """An armature, of those in the view layer if there are any."""
    shown = [ob for ob in armatures() if ob.name in bpy.context.view_layer.objects]
    return choose(case.rng, shown or armatures())


def solve_and_restore(case: Case) -> None:
    """Solve once, perhaps go to another frame, and restore the FK pose."""
    ob = some_armature(case)
    if ob.ik_addon.live or not pressed(case, ob, "solve", chains="ALL"):
        return
    if case.rng.random() < 0.5:
        case.go(choose(case.rng, [2, 8, 20]), 0.0)
    pressed(case, ob, "restore_pose", chains="ALL")


def bake(case: Case) -> None:
    """Bake some frames, which disables the chains."""
    ob = some_armature(case)
    options = {
        "chains": choose(case.rng, ["ALL", "ACTIVE"]),
        "frame_start": 1,
        "frame_end": choose(case.rng, [2, 6]),
        "step": choose(case.rng, [1, 3]),
        "new_action": bool(case.rng.random() < 0.3),
    }
    pressed(case, ob, "bake", frame_range="CUSTOM", **options)


def apply_pose(case: Case) -> None:
    """Apply the solved pose as the FK pose: it stays when Live is turned off."""
    ob = some_armature(case)
    if not ob.ik_addon.live:
        return
    posed = {bone.name for tip in case.chain.tips(ob) for bone in case.chain.posed_bones(tip)}
    ob.update_tag()  # muting F-curves tags nothing
    bpy.context.view_layer.update()
    before = measure.pose(ob)
    if not pressed(case, ob, "apply_pose", chains="ALL"):
        return
    measure.change(ob.ik_addon, live=False)
    if not case.animated(ob):
        gap = np.abs(measure.pose(ob) - before).max()
        assert gap < SAME_POSE * max(1.0, np.abs(before).max()), f"the applied pose differs by {gap}"
    take_channels(case, ob, posed)
    ob.ik_addon.live = True


def snap_target(case: Case) -> None:
    """Snap targets to the pose, unless one is a bone: moving that would be like posing it by hand."""
    ob = some_armature(case)
    chains = [tip.ik_addon for tip in case.chain.tips(ob)]
    if not any(chain.target_bone or chain.pole_bone for chain in chains):
        pressed(case, ob, "snap_target", chains="ALL", pose=choose(case.rng, ["FK", "SHOWN"]))


def convert(case: Case) -> None:
    """Convert Blender's IK constraints to chains or back, which makes the current pose of some bones the FK pose."""
    ob = some_armature(case)
    moved = with_other_fk(ob)
    pressed(case, ob, choose(case.rng, ["convert_constraints", "restore_constraints"]))
    moved |= with_other_fk(ob)
    for other in scene_objects():
        if not rank(other):  # a new target
            other["rank"] = 1 + max(map(rank, scene_objects()))
    was_live, ob.ik_addon.live = ob.ik_addon.live, False
    bpy.context.view_layer.update()
    take_channels(case, ob, moved)
    ob.ik_addon.live = was_live


def with_other_fk(ob: bpy.types.Object) -> set[str]:
    """Names of bones that store the FK pose from before their conversion."""
    bones: Any = ob.pose.bones  # the stubs declare no custom properties
    return {bone.name for bone in bones if "ik_addon_fk_before" in bone}


def take_channels(case: Case, ob: bpy.types.Object, bones: set[str]) -> None:
    """Record the current channels of bones as their known values."""
    for name in bones:
        case.known.rows[ob.name, name] = channels(ob.pose.bones[name])


def apply_as_rest(case: Case) -> None:
    """Make the current pose the rest pose, with Blender's operator."""
    ob = some_armature(case)
    pose = measure.pose(ob)
    linear = pose.reshape(-1, 4, 4)[:, :3, :3]
    if not len(ob.pose.bones) or not np.isfinite(pose).all() or (np.abs(np.linalg.det(linear)) < 1e-3).any():
        return
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.armature_apply(selected=False)
    bpy.ops.object.mode_set(mode="OBJECT")
    case.known.rest(ob)
    case.after_edit_mode()


EDITS: list[Callable[[Case], None]] = [solve_and_restore, bake, apply_pose, snap_target, convert, apply_as_rest]
