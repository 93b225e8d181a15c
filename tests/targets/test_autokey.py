"""Auto keying by preferences and by keying sets works as in Blender's own transform operators."""

from __future__ import annotations

from typing import Any

import bpy
import pytest
from mathutils import Quaternion

from tests import rigs
from tests.reliability.states import keyed, said


@pytest.fixture(autouse=True)
def preferences(auto_keying: Any) -> Any:
    """Return the preferences for auto keying, which is on, on frame 7."""
    bpy.context.scene.frame_set(7)
    return auto_keying


@pytest.fixture
def arm() -> tuple[bpy.types.Object, bpy.types.Object]:
    ob, target = rigs.arm()
    return ob, target


def use_set(name: str) -> Any:
    """Make one of Blender's keying sets, or the user's own, the active one."""
    scene = bpy.context.scene
    scene.keying_sets_all.active = next(k for k in scene.keying_sets_all if name in (k.bl_idname, k.bl_label))
    scene.tool_settings.use_keyframe_insert_keyingset = True
    return scene.keying_sets_all.active


def paths(ob: bpy.types.Object) -> set[str]:
    return {path for path, _ in keyed(ob)}


def drag() -> None:
    assert bpy.ops.ik_addon.drag_target(offset=(0.1, 0.0, -0.1)) == {"FINISHED"}


def test_drag_keys_the_location(arm: Any) -> None:
    drag()
    assert keyed(arm[1]) == {("location", i): [7.0] for i in range(3)}


@pytest.mark.parametrize("available", [False, True])
def test_a_line_says_that_preferences_prevent_a_first_key(
    arm: Any, preferences: Any, capfd: pytest.CaptureFixture[str], available: bool
) -> None:
    preferences.use_keyframe_insert_available = available
    for operator, options in (
        (bpy.ops.ik_addon.drag_target, {"offset": (0.1, 0.0, -0.1)}),
        (bpy.ops.ik_addon.snap_target, {}),
    ):
        assert ("Press Key Controls" in said(capfd, operator, **options)) == available
    bpy.ops.ik_addon.key_controls()
    assert "Press Key Controls" not in said(capfd, bpy.ops.ik_addon.snap_target)


@pytest.mark.parametrize("by", ["preference", "keying set"])
def test_only_available_keys_existing_curves(arm: Any, preferences: Any, by: str) -> None:
    if by == "preference":
        preferences.use_keyframe_insert_available = True
    else:
        use_set("Available")
    drag()
    assert not keyed(arm[1])
    arm[1].keyframe_insert("location", index=0, frame=1)
    drag()
    assert keyed(arm[1]) == {("location", 0): [1.0, 7.0]}


@pytest.mark.parametrize("by", ["preference", "keying set"])
def test_only_needed_skips_unchanged_channels(arm: Any, preferences: Any, by: str) -> None:
    own: Any = use_set("Location") if by == "keying set" else None
    preferences.use_auto_keyframe_insert_needed = own is None
    if own is not None:
        own.use_insertkey_override_needed = own.use_insertkey_needed = True
    arm[1].keyframe_insert("location", frame=1)
    try:
        drag()
    finally:
        if own is not None:
            own.use_insertkey_override_needed = own.use_insertkey_needed = False
    found = keyed(arm[1])
    assert found["location", 0] == [1.0, 7.0]
    assert found["location", 1] == [1.0], "it did not move along Y"


@pytest.mark.parametrize("name", ["Location", "LocRotScale", "Rotation", "WholeCharacter"])
def test_a_keying_set_decides_what_is_keyed(arm: Any, name: str) -> None:
    use_set(name)
    drag()
    wanted = {"Location": {"location"}, "Rotation": {"rotation_euler"}, "WholeCharacter": set()}
    assert paths(arm[1]) == wanted.get(name, {"location", "rotation_euler", "scale"})
    assert not keyed(arm[0]), "only what was moved, whatever is selected"


def test_a_set_of_absolute_paths_is_keyed_unchanged(arm: Any) -> None:
    other = rigs.empty("Other")
    own = bpy.context.scene.keying_sets.new(idname="mine", name="Mine")
    own.paths.add(arm[1], "location", index=0)
    own.paths.add(other, "scale", index=-1)
    use_set("mine")
    drag()
    assert keyed(arm[1]) == {("location", 0): [7.0]}
    assert paths(other) == {"scale"}


def test_snap_keys_target_and_pole_according_to_the_set(arm: Any) -> None:
    ob, target = arm
    pole = ob.pose.bones["lower"].ik_addon.pole = rigs.empty("Pole", (0.3, -2.0, 1.0))
    use_set("BUILTIN_KSI_LocRot")
    bpy.ops.ik_addon.snap_target()
    assert paths(target) == paths(pole) == {"location", "rotation_euler"}


def test_apply_keys_bones_according_to_the_set(arm: Any) -> None:
    ob, _target = arm
    use_set("Rotation")
    bpy.ops.ik_addon.apply_pose()
    assert paths(ob) == {f'pose.bones["{name}"].rotation_quaternion' for name in ("upper", "lower")}


def test_a_set_that_omits_moved_channels_gets_a_remark(capfd: pytest.CaptureFixture[str], arm: Any) -> None:
    ob, _target = arm
    ob.pose.bones["lower"].rotation_quaternion = Quaternion((1, 0, 0), 0.4)
    ob.pose.bones["lower"].keyframe_insert("rotation_quaternion", frame=1)
    use_set("Location")
    assert "'lower' is animated and reverts" in said(capfd, bpy.ops.ik_addon.apply_pose)


def test_keys_have_the_keyframe_type_that_the_user_chose(arm: Any) -> None:
    bpy.context.scene.tool_settings.keyframe_type = "BREAKDOWN"
    drag()
    assert {point.type for curve in rigs.fcurves(arm[1]) for point in curve.keyframe_points} == {"BREAKDOWN"}
