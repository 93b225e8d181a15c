"""The FK pose survives edits of bones and of their animation while the channels hold a solution."""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon

POSE = (0.9, 0.3, 0.2, 0.1)


def limb(*names: str) -> bpy.types.Object:
    """An armature of connected, unposed bones; the last two are a chain with a target."""
    ob = rigs.limb(rigs.bent(len(names)), list(names))
    rigs.chain(ob, names[-1], rigs.empty("Target", (0.5, 0.4, 1.5)), 2)
    bpy.context.view_layer.update()
    return ob


def edit_bones(ob: bpy.types.Object, change: Callable[[Any], object]) -> None:
    bpy.context.view_layer.objects.active = ob
    with rigs.edit_mode(ob) as bones:
        change(bones)
    bpy.context.view_layer.update()


def rotation(ob: bpy.types.Object, bone: str) -> tuple[float, ...]:
    return ob.pose.bones[bone].rotation_quaternion[:]


# ---- bones


def test_a_bone_above_one_that_was_deleted_keeps_its_pose() -> None:
    ob = limb("shoulder", "upper", "lower")
    ob.pose.bones["shoulder"].rotation_quaternion = POSE
    posed = rotation(ob, "shoulder")
    rigs.go_live(ob)
    edit_bones(ob, lambda bones: bones.remove(bones["upper"]))
    assert rotation(ob, "shoulder") != posed, "it is a bone of the chain now"
    ob.ik_addon.live = False
    assert rotation(ob, "shoulder") == posed
    assert rotation(ob, "lower") == (1, 0, 0, 0)


@pytest.mark.parametrize("at_once", [True, False])
def test_reparenting_a_limb_keeps_the_fk_pose_of_all_bones(at_once: bool) -> None:
    ob = limb("upper", "lower")
    rigs.add_bones(ob, [(2, 0, 0), (2, 0, 1)], ["other"])
    ob.pose.bones["other"].rotation_quaternion = POSE
    posed = rotation(ob, "other")
    rigs.go_live(ob)

    def hang(bones: Any) -> None:
        bones["lower"].use_connect = False
        bones["lower"].parent = bones["other"]

    edit_bones(ob, hang)
    assert rotation(ob, "upper") == (1, 0, 0, 0), "it belongs to no chain any more"
    if not at_once:
        bpy.context.scene.frame_set(5)
    ob.ik_addon.live = False
    assert {name: rotation(ob, name) for name in ("upper", "lower", "other")} == {
        "upper": (1, 0, 0, 0),
        "lower": (1, 0, 0, 0),
        "other": posed,
    }


@contextmanager
def solved(ob: bpy.types.Object, through: str) -> Iterator[None]:
    """Hold the solved pose of an armature, live or by operators; in the end its FK pose is back."""
    bpy.context.view_layer.objects.active = ob
    if through == "operator":
        assert bpy.ops.ik_addon.solve() == {"FINISHED"}
    else:
        rigs.go_live(ob)
    yield
    bpy.context.view_layer.update()
    if through == "operator":
        bpy.ops.ik_addon.solve()
        bpy.ops.ik_addon.restore_pose()
    else:
        ob.ik_addon.live = False
    bpy.context.view_layer.update()


@pytest.mark.parametrize("through", ["live", "operator"])
@pytest.mark.parametrize("mode", ["XYZ", "AXIS_ANGLE"])
@pytest.mark.parametrize("posed", [True, False])
def test_changing_the_rotation_mode_of_a_solved_bone_keeps_the_fk_pose(posed: bool, mode: str, through: str) -> None:
    ob = limb("upper", "lower")
    bone = ob.pose.bones["lower"]
    if posed:
        bone.rotation_quaternion = POSE
    bpy.context.view_layer.update()
    before = np.array(bone.matrix_basis)
    with solved(ob, through):
        assert np.abs(np.array(bone.matrix_basis) - before).max() > 0.1
        bone.rotation_mode = mode
    assert np.abs(np.array(bone.matrix_basis) - before).max() < 1e-6


@pytest.mark.parametrize("through", ["live", "operator", "driver"])
def test_changing_the_euler_order_of_a_solved_bone_keeps_the_fk_angles(through: str) -> None:
    ob = limb("upper", "lower")
    bone, angles = ob.pose.bones["lower"], (0.4, -0.3, 0.7)
    rigs.change(bone, rotation_mode="XYZ", rotation_euler=angles)
    with solved(ob, through):
        assert np.abs(np.array(bone.rotation_euler) - angles).max() > 0.1
        if through == "driver":
            rigs.drive(bone, "rotation_mode", -1, "6 if frame > 5 else 1")
            for frame in (1, 10, 3, 8):
                bpy.context.scene.frame_set(frame)
        else:
            bone.rotation_mode = "ZYX"
    assert bone.rotation_mode == "ZYX"
    assert bone.rotation_euler[:] == pytest.approx(angles), "Blender keeps the angles, whatever they make"


def test_a_rotation_set_together_with_its_mode_becomes_the_fk_pose() -> None:
    ob = limb("upper", "lower")
    rigs.go_live(ob)
    bone = ob.pose.bones["lower"]
    rigs.change(bone, rotation_mode="XYZ", rotation_euler=(0.1, 0.2, 0.3))
    ob.ik_addon.live = False
    assert bone.rotation_euler[:] == pytest.approx((0.1, 0.2, 0.3))


# ---- animation


def keyed() -> bpy.types.Object:
    """A live limb with keys on its upper bone, on a frame between them."""
    ob = limb("upper", "lower")
    rigs.key(ob.pose.bones["upper"], "rotation_quaternion", {1: (1, 0, 0, 0), 20: POSE})
    bpy.context.scene.frame_set(1)
    rigs.go_live(ob)
    bpy.context.scene.frame_set(12)
    return ob


def remove_curves_of_a_strip(addon: Addon, ob: bpy.types.Object, meta: bool = False) -> None:
    strip = rigs.into_strip(ob, meta=meta)
    bpy.context.scene.frame_set(12)
    found = addon.module("core.compat").curve_owner_of(strip).fcurves
    for curve in list(found):
        found.remove(curve)


def mute(ob: bpy.types.Object, *numbers: int) -> None:
    for number in numbers:
        rigs.change(rigs.fcurves(ob)[number], mute=True)
        bpy.context.scene.frame_set(12)


def rename_in_a_copy(_addon: Addon, ob: bpy.types.Object) -> None:
    """Blender renames the F-curves of the shared action, which then animates no bone of the first armature."""
    copy = ob.copy()
    copy.data = ob.data.copy()
    bpy.context.scene.collection.objects.link(copy)
    copy.data.bones["upper"].name = "other"


ENDS: dict[str, Callable[[Addon, bpy.types.Object], object]] = {
    "F-curves are removed": lambda _addon, ob: rigs.remove_curves(ob),
    "F-curves of a strip are removed": remove_curves_of_a_strip,
    "F-curves of a meta strip are removed": lambda addon, ob: remove_curves_of_a_strip(addon, ob, meta=True),
    "F-curves are muted": lambda _addon, ob: mute(ob, 0, 1, 2, 3),
    "one number is muted": lambda _addon, ob: mute(ob, 1),
    "two numbers are muted": lambda _addon, ob: mute(ob, 1, 2),
    "the action is unlinked": lambda _addon, ob: setattr(ob.animation_data, "action", None),
    "the animation is cleared": lambda _addon, ob: ob.animation_data_clear(),
    "a bone of a copy is renamed": rename_in_a_copy,
}


@pytest.mark.parametrize("change", ENDS)
@pytest.mark.parametrize("steps_on", [True, False])
def test_a_bone_whose_animation_is_removed_keeps_its_last_fk_pose(addon: Addon, change: str, steps_on: bool) -> None:
    found = []
    for live in (False, True):
        rigs.new_file()
        ob = keyed()
        ob.ik_addon.live = live
        bpy.context.scene.frame_set(12)
        ENDS[change](addon, ob)
        bpy.context.view_layer.update()
        if steps_on:
            bpy.context.scene.frame_set(15)
        rigs.change(ob.ik_addon, live=False)
        found.append([rotation(ob, name) for name in ("upper", "lower")])
    assert found[0] == found[1]
    assert found[0][0] != (1, 0, 0, 0)


def undo_something_else() -> None:
    """Add an object and undo that, after which the FK pose has to be found again."""
    bpy.ops.ed.undo_push(message="before")
    rigs.empty("Other")
    bpy.ops.ed.undo_push(message="added")
    bpy.ops.ed.undo()


@pytest.mark.parametrize("end", ["disable", "delete target", "remove keys"])
def test_a_chain_that_ends_after_undo_restores_the_fk_pose_of_its_frame(end: str) -> None:
    ob = keyed()
    ob.ik_addon.live = False
    fk = rotation(ob, "upper")
    rigs.go_live(ob)
    undo_something_else()
    ob = bpy.data.objects["Rig"]
    if end == "disable":
        ob.pose.bones["lower"].ik_addon.enabled = False
    elif end == "delete target":
        bpy.data.objects.remove(bpy.data.objects["Target"])
    else:
        rigs.remove_curves(ob)
    bpy.context.view_layer.update()
    if end == "remove keys":
        ob.ik_addon.live = False
    assert rotation(ob, "upper") == pytest.approx(fk, abs=1e-6)
    assert rotation(ob, "lower") == (1, 0, 0, 0)


# ---- degenerate bones


def a_line(ob: bpy.types.Object) -> None:
    """Flatten the root bone of the chain to a line; its child does not use its axes."""
    ob.data.bones["upper"].use_local_location = False
    ob.data.bones["lower"].use_local_location = False
    ob.pose.bones["upper"].scale = (0.0, 0.0, 0.4)


def nowhere(ob: bpy.types.Object) -> None:
    """Set the root to values that are not numbers, as a constraint may do."""
    ob.pose.bones["root"].location = ob.pose.bones["root"].scale = (math.nan,) * 3


SPOILED: dict[str, Callable[[bpy.types.Object], object]] = {
    "a line": a_line,
    "a point": lambda ob: setattr(ob.pose.bones["root"], "scale", (0.0, 0.0, 0.0)),
    "nowhere": nowhere,
}


@pytest.mark.parametrize("spoil", SPOILED)
def test_a_degenerate_bone_raises_no_error_or_warning(addon: Addon, spoil: str) -> None:
    ob = limb("root", "upper", "lower")
    for name in ("upper", "lower"):
        ob.pose.bones[name].rotation_quaternion = POSE
    ob.pose.bones["lower"].scale = (1.5, 1.5, 1.5)
    SPOILED[spoil](ob)
    before = [rotation(ob, name) for name in ("upper", "lower")]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        rigs.go_live(ob)
        bpy.context.scene.frame_set(3)
    assert "Internal error" not in addon.report(ob).message
    assert np.isfinite([rotation(ob, name) for name in ("upper", "lower")]).all()
    ob.ik_addon.live = False
    assert [rotation(ob, name) for name in ("upper", "lower")] == before


@pytest.mark.parametrize("by", ["action", "strip", "meta strip"])
@pytest.mark.parametrize("frame", [4, 9])
def test_a_chain_turned_off_on_another_frame_than_it_was_solved_on_shows_that_frame(by: str, frame: int) -> None:
    ob, _target = rigs.arm()
    upper, lower = ob.pose.bones["upper"], ob.pose.bones["lower"]
    lower.rotation_quaternion = (0.9, 0.0, 0.3, 0.1)
    for at, turn in ((1, 0.1), (20, 0.6)):
        upper.rotation_quaternion = (0.9, turn, 0.2, 0.1)
        upper.keyframe_insert("rotation_quaternion", frame=at)
        lower.rotation_quaternion = (0.9, -turn, 0.3, 0.1)
        lower.keyframe_insert("rotation_quaternion", index=1, frame=at)
    if by != "action":
        rigs.into_strip(ob, meta=by == "meta strip")
    expected = rigs.on_frames((4, 9), lambda: rigs.channels(ob).tobytes())
    bpy.context.scene.frame_set(4)
    assert bpy.ops.ik_addon.solve() == {"FINISHED"}
    assert rigs.channels(ob).tobytes() != expected[4]
    bpy.context.scene.frame_set(frame)
    lower.ik_addon.enabled = False
    assert rigs.channels(ob).tobytes() == expected[frame]


@pytest.mark.parametrize("end", ["live", "enabled", "bake"])
def test_a_bone_moved_after_solving_stays_there_when_the_chain_is_turned_off(addon: Addon, end: str) -> None:
    ob, _target = rigs.arm()
    assert bpy.ops.ik_addon.solve() == {"FINISHED"}
    upper, lower = ob.pose.bones["upper"], ob.pose.bones["lower"]
    lower.location, upper.rotation_quaternion = (-0.1, 0.3, 0.2), POSE
    bpy.context.view_layer.update()
    if end == "live":
        ob.ik_addon.live = False
    elif end == "enabled":
        lower.ik_addon.enabled = False
    else:  # which keys no locations
        addon.module("bake").bake(bpy.context, ob, ["lower"], range(1, 4))
        bpy.context.scene.frame_set(2)
    assert lower.location[:] == pytest.approx((-0.1, 0.3, 0.2))
    if end != "bake":
        assert rotation(ob, "upper") == pytest.approx(POSE)
        assert rotation(ob, "lower") == (1.0, 0.0, 0.0, 0.0)


def test_a_chain_that_could_not_be_solved_stores_no_fk_pose(addon: Addon) -> None:
    ob, _target = rigs.arm()
    rigs.change(ob.pose.bones["upper"], scale=(0.0, 0.0, 0.0))
    with pytest.raises(RuntimeError, match="no length"):
        bpy.ops.ik_addon.solve()
    assert addon.module("core.fk_store").stored_bones(ob) == []
    rigs.change(ob.pose.bones["upper"], scale=(1.0, 1.0, 1.0))
    assert bpy.ops.ik_addon.solve() == {"FINISHED"}
    assert len(addon.module("core.fk_store").stored_bones(ob)) == 2
