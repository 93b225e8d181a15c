"""Edits: anything that a user may do with a scene while its chains are live."""

from collections.abc import Callable
from typing import Any

import bpy
import numpy as np

from tests import rigs as measure

from . import operators, rigs
from .case import SAME_POSE, Case, check
from .known import channels
from .rigs import armatures, choose, numbers


def frame(case: Case) -> None:
    """Go to a frame or sub-frame, forward or back."""
    frame = choose(case.rng, [1, 2, 5, 8, 13, 20, 25])
    case.go(frame, choose(case.rng, [0.0, 0.0, 0.0, 0.25, 0.5]))


def frames_in_another_order(case: Case) -> None:
    """Assert that frames are exactly the same whichever way they are reached."""
    if any(ob.mode == "EDIT" for ob in armatures()):
        return
    places = [(1, 0.0), (5, 0.25), (13, 0.0), (20, 0.0)]
    seen: dict[tuple[int, float], list[Any]] = {}
    for _ in range(2):
        for place in case.rng.permutation(len(places)).tolist():
            case.go(*places[place])
            now = [(ob.name, measure.channels(ob), measure.pose(ob)) for ob in armatures()]
            for before, after in zip(seen.setdefault(places[place], now), now, strict=True):
                where = f"frame {places[place]} of {after[0]}"
                assert np.array_equal(before[1], after[1]), f"{where} has other channels"
                assert np.array_equal(before[2], after[2], equal_nan=True), f"{where} has another pose"


def solve_again(case: Case) -> None:
    """Go to a frame and solve it again: assert that chains that reach their targets did so before."""
    frame(case)
    before = ends(case)
    for ob in armatures():
        ob.update_tag()
    bpy.context.view_layer.update()
    for (ob_name, tip), place in ends(case).items():
        ob = bpy.data.objects[ob_name]
        report, chain = case.reports.get(ob, tip), ob.pose.bones[tip].ik_addon
        if report is not None and report.reached:
            near = SAME_POSE * max(1.0, np.abs(place).max())
            gap = np.abs(place - before[ob_name, tip]).max()
            assert gap < near, f"'{tip}' of '{ob_name}' was off by {gap}"
            if chain.tolerance < SAME_POSE and not chain.planar and not chain.target_bone:
                gap = np.abs(place - measure.position(chain.target)).max()
                assert gap < near, f"'{tip}' of '{ob_name}' is said to be at its target, but is off by {gap}"


def ends(case: Case) -> dict[tuple[str, str], Any]:
    """World positions of the end effectors of live chains, by object and tip bone."""
    live = [ob for ob in armatures() if ob.ik_addon.live and ob.name in bpy.context.view_layer.objects]
    tips = [(ob, tip) for ob in live for tip in case.chain.tips(ob) if tip.ik_addon.enabled]
    return {(ob.name, tip.name): end_effector(case, ob, tip) for ob, tip in tips if tip.ik_addon.influence == 1.0}


def end_effector(case: Case, ob: Any, tip: Any) -> Any:
    """World position of the end effector of the chain on a tip bone."""
    end = case.chain.turning_end(tip)
    if end is not None:
        return measure.head(ob, end.name)
    seen = measure.evaluated(ob)
    return np.array(seen.matrix_world @ (seen.pose.bones[tip.name].matrix @ case.chain.reach_of(tip)))


def move_target(case: Case) -> None:
    """Move an object."""
    ob = choose(case.rng, rigs.scene_objects())
    ob.location = numbers(case.rng)


def move_bone(case: Case) -> None:
    """Pose a bone by hand, and perhaps key it."""
    ob, bone = case.some_bone()
    if bone is None:
        return
    field = rigs.set_rotation(bone, numbers(case.rng)) if case.rng.random() < 0.6 else "location"
    if field == "location":
        bone.location = numbers(case.rng, 0.3)
    case.known.rows[ob.name, bone.name][field] = channels(bone)[field]
    if case.rng.random() < 0.4:  # else only the next frame change reverts the pose of a keyed bone
        bone.keyframe_insert(field, frame=bpy.context.scene.frame_current_final)
        ob.update_tag()


def change_setting(case: Case) -> None:
    """Change a setting of a chain, enable or disable it, or give it another target."""
    ob = choose(case.rng, armatures())
    tips = case.chain.tips(ob)
    if not tips:
        return
    tip, kind = choose(case.rng, tips), case.rng.random()
    if kind < 0.5:
        case.log.append(rigs.change_setting(case.rng, tip))
    elif kind < 0.75:
        tip.ik_addon.enabled = not tip.ik_addon.enabled
    else:
        tip.ik_addon.target = choose(case.rng, [*rigs.scene_objects(), None])


def add_chain(case: Case) -> None:
    """Add a chain."""
    ob = choose(case.rng, armatures())
    rigs.add_chain(case.rng, ob)


def remove_chain(case: Case) -> None:
    """Remove a chain."""
    ob = choose(case.rng, armatures())
    tips = case.chain.tips(ob)
    if tips and ob.mode != "EDIT":
        tip = choose(case.rng, tips)
        bpy.context.view_layer.objects.active = ob
        ob.data.bones.active = tip.bone
        if bpy.ops.ik_addon.chain_remove.poll():
            bpy.ops.ik_addon.chain_remove()


def toggle_live(case: Case) -> None:
    """Turn Live on or off for an armature."""
    ob = choose(case.rng, armatures())
    ob.ik_addon.live = not ob.ik_addon.live


def rename_bone(case: Case) -> None:
    """Rename a bone, perhaps to the name of another bone."""
    ob, bone = case.some_bone()
    if bone is None or ob.mode == "EDIT":
        return
    old = bone.name
    bone.bone.name = choose(case.rng, [*rigs.BONE_NAMES, "new"])
    new = bone.bone.name
    for user in armatures():
        if user.data == ob.data and old != new:
            case.known.rename_bone(user.name, old, new)


def rename_object(case: Case) -> None:
    """Rename an object."""
    ob = choose(case.rng, rigs.scene_objects())
    old = ob.name
    ob.name = choose(case.rng, [*rigs.NAMES, "Goal"])
    if ob.type == "ARMATURE" and ob.name != old:
        case.known.rename_object(old, ob.name)


def delete_object(case: Case) -> None:
    """Delete an object, perhaps a target, but not the last armature."""
    ob = choose(case.rng, rigs.scene_objects())
    if ob.mode != "EDIT" and (ob.type != "ARMATURE" or len(armatures()) > 1):
        bpy.data.objects.remove(ob)


def hide_object(case: Case) -> None:
    """Hide a target, disable it, or move it into a collection that may be excluded."""
    others = [ob for ob in rigs.scene_objects() if ob.type != "ARMATURE"]
    if not others:
        return
    ob, kind = choose(case.rng, others), case.rng.random()
    if kind < 0.3:
        ob.hide_set(not ob.hide_get()) if ob.name in bpy.context.view_layer.objects else None
    elif kind < 0.6:
        ob.hide_viewport = not ob.hide_viewport
    else:
        collection = bpy.data.collections.new("Apart")
        bpy.context.scene.collection.children.link(collection)
        collection.objects.link(ob)
        if kind < 0.9:
            bpy.context.scene.collection.objects.unlink(ob) if ob.name in bpy.context.scene.collection.objects else None
            bpy.context.view_layer.layer_collection.children[collection.name].exclude = kind < 0.75
        bpy.context.view_layer.update()


def duplicate(case: Case) -> None:
    """Duplicate an armature object, with its armature data or sharing it."""
    ob = choose(case.rng, armatures())
    if ob.mode == "EDIT" or len(armatures()) > 4:
        return
    new = ob.copy()
    new["rank"] = 1 + max(map(rigs.rank, rigs.scene_objects()))
    if case.rng.random() < 0.7:
        new.data = ob.data.copy()
    bpy.context.scene.collection.objects.link(new)
    case.known.duplicate(ob.name, new.name)


def reparent_object(case: Case) -> None:
    """Attach an object to something else."""
    ob = choose(case.rng, rigs.scene_objects())
    ob.parent, ob.parent_type = None, "OBJECT"
    rigs.hang(case.rng, ob)


def delete_bone(case: Case) -> None:
    """Delete a bone in Edit Mode."""
    case.edit_bones(lambda bones: bones.remove(choose(case.rng, bones)))


def reparent_bone(case: Case) -> None:
    """Give a bone another parent, or none."""

    def hang(bones: Any) -> None:
        bone = choose(case.rng, bones)
        others = [other for other in bones if other != bone and bone not in other.parent_recursive]
        bone.use_connect = False
        bone.parent = choose(case.rng, [*others, None])

    case.edit_bones(hang)


def move_joint(case: Case) -> None:
    """Move the tail of a bone in Edit Mode, which changes the rest pose."""

    def move(bones: Any) -> None:
        choose(case.rng, bones).tail += measure.Vector(numbers(case.rng, 0.2))

    case.edit_bones(move)


def enter_mode(case: Case) -> None:
    """Go to another mode, and perhaps stay there."""
    case.leave_edit_mode()
    ob = choose(case.rng, armatures())
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode=choose(case.rng, ["POSE", "EDIT", "OBJECT"]))


def undo(case: Case) -> None:
    """Undo some steps, and perhaps redo some."""
    case.leave_edit_mode()
    for _ in range(int(case.rng.integers(1, 4))):
        if case.at > 0:
            bpy.ops.ed.undo()
            case.at -= 1
    for _ in range(int(case.rng.integers(0, 3))):
        if case.at < len(case.steps) - 1:
            bpy.ops.ed.redo()
            case.at += 1
    case.known = case.steps[case.at].copy()
    if any(data.nla_tracks or data.drivers for ob in armatures() if (data := ob.animation_data)):
        # What F-curves alone do not determine is known again with the next frame.
        case.go(bpy.context.scene.frame_current, 0.0)


def save_and_load(case: Case) -> None:
    """Save the file and open it."""
    case.leave_edit_mode()
    measure.save_and_open(case.folder / "file.blend")
    case.steps, case.at = [], -1


for anywhere in (frame, toggle_live, move_target, change_setting):
    anywhere.in_edit_mode = True
"""Edits that a user can make while an armature is in Edit Mode; `settle` pushes no undo step for them."""

EDITS: list[Callable[[Case], None]] = [
    *[frame] * 3,
    *[frames_in_another_order] * 2,
    solve_again,
    *[move_target] * 2,
    *[move_bone] * 3,
    *[change_setting] * 3,
    add_chain,
    remove_chain,
    *[toggle_live] * 2,
    rename_bone,
    rename_object,
    delete_object,
    hide_object,
    duplicate,
    reparent_object,
    delete_bone,
    reparent_bone,
    move_joint,
    enter_mode,
    *[undo] * 2,
    save_and_load,
    *operators.EDITS,
]


def check_seed(seed: int) -> None:
    """Build the scene of a seed, edit it, and raise AssertionError where anything is wrong."""
    check(seed, EDITS)
