"""Selecting and keying the controls of a figure or of a limb, and auto keying."""

from typing import Any

import bpy
import pytest
from mathutils import Quaternion, Vector

from tests import rigs, rigs_named
from tests.conftest import Capture
from tests.reliability.states import activate, keyed, said
from tests.rigs_generated import armature_of
from tests.rigs_named import RIGS


@pytest.fixture(params=["BONES", "EMPTIES"])
def figure(request: pytest.FixtureRequest) -> bpy.types.Object:
    """Return a figure with chains on all parts, whose left leg is active."""
    ob = rigs_named.build(RIGS["Mixamo"])
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="POSE")
    assert bpy.ops.ik_addon.character_setup(controls=request.param) == {"FINISHED"}
    activate(ob, "mixamorig:LeftLeg")
    return ob


def controls(ob: bpy.types.Object, tips: set[str]) -> set[tuple[str, str]]:
    """Return object and bone of the targets and poles of chains."""
    chains = [ob.pose.bones[tip].ik_addon for tip in tips]
    goals = [(getattr(own, role), getattr(own, f"{role}_bone")) for own in chains for role in ("target", "pole")]
    return {(goal.name, bone) for goal, bone in goals if goal is not None}


def selected(ob: bpy.types.Object, addon: Any) -> set[tuple[str, str]]:
    is_selected = addon.module("core.compat").is_selected
    bones = {(ob.name, bone.name) for bone in ob.pose.bones if is_selected(bone)}
    return bones | {(own.name, "") for own in bpy.context.selected_objects if own != ob}


def fields_keyed(name: str, bone: str) -> set[str]:
    """Return which transform channels of a control have a key on frame 7."""
    owner = bpy.data.objects[name]
    holder = owner.pose.bones[bone] if bone else owner
    fields = ("location", "rotation_euler", "rotation_quaternion")
    return {field for field in fields if keyed(owner).get((holder.path_from_id(field), 0)) == [7.0]}


@pytest.mark.parametrize("chains", ["ALL", "ACTIVE"])
def test_controls_of_the_figure_or_the_limb_are_selected_and_keyed(
    figure: bpy.types.Object, addon: Any, chains: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tips = {bone.name for bone in figure.pose.bones if bone.ik_addon.is_chain}
    wanted = controls(figure, tips if chains == "ALL" else {"mixamorig:LeftLeg"})
    if chains == "ALL":
        own = ("mixamorig:Hips", "mixamorig:LeftShoulder", "mixamorig:RightShoulder")
        wanted |= {(figure.name, bone) for bone in own}
    bpy.context.scene.frame_set(7)
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = False
    monkeypatch.setattr(bpy.context.preferences.edit, "use_keyframe_insert_available", True)
    assert bpy.ops.ik_addon.key_controls(chains=chains) == {"FINISHED"}
    assert all(len(fields_keyed(*control)) == 2 for control in wanted)
    assert not fields_keyed(figure.name, "mixamorig:LeftLeg"), "solved bones have no keys"
    assert bpy.ops.ik_addon.select_controls(chains=chains) == {"FINISHED"}
    assert selected(figure, addon) == wanted


def test_a_pose_pasted_flipped_is_the_mirror_image_of_arms_stretched_from_their_shoulders(rigify: None) -> None:
    ob = armature_of("human")
    bpy.ops.object.mode_set(mode="POSE")
    assert bpy.ops.ik_addon.character_setup() == {"FINISHED"}
    bpy.ops.ik_addon.pose_body(bone="hand.L", offset=(0.1, -0.4, 0.5))
    bpy.context.view_layer.update()
    before = {side: ob.pose.bones[f"hand.{side}"].head.copy() for side in "LR"}
    assert ob.pose.bones["shoulder.L"].matrix_basis.to_quaternion().angle > 0.01, "the shoulder gives way"
    assert bpy.ops.ik_addon.select_controls() == {"FINISHED"}
    bpy.ops.pose.copy()
    bpy.ops.pose.paste(flipped=True)
    bpy.context.view_layer.update()
    for side, other in ("LR", "RL"):
        place = before[other]
        assert (ob.pose.bones[f"hand.{side}"].head - Vector((-place.x, place.y, place.z))).length < 1e-3, side


def test_copy_pose_says_which_controls_it_leaves_out(figure: bpy.types.Object, addon: Any, capfd: Capture) -> None:
    left_out, compat = addon.module("targets.movable").not_copied, addon.module("core.compat")
    is_empty = not figure.pose.bones["mixamorig:LeftLeg"].ik_addon.target_bone
    bpy.ops.ik_addon.select_controls()
    assert bool(left_out(bpy.context, figure)) == is_empty
    if is_empty:
        capfd.readouterr()
        bpy.ops.ik_addon.copy_pose()
        assert "Left out 10 controls: Copy Pose takes no empties" in capfd.readouterr().out
        for bone in figure.pose.bones:
            compat.set_selected(bone, to=True)
        assert left_out(bpy.context, figure) == [], "the limbs are copied as a whole"


# ---- auto keying by preferences and keying sets works as in Blender's own transform operators


@pytest.fixture
def preferences(auto_keying: Any) -> Any:
    """Return the preferences for auto keying, which is on, on frame 7."""
    bpy.context.scene.frame_set(7)
    return auto_keying


@pytest.fixture
def arm(preferences: Any) -> tuple[bpy.types.Object, bpy.types.Object]:
    return rigs.arm()


def use_set(name: str) -> Any:
    """Make one of Blender's keying sets, or the user's own, the active one."""
    scene = bpy.context.scene
    scene.keying_sets_all.active = next(k for k in scene.keying_sets_all if name in (k.bl_idname, k.bl_label))
    scene.tool_settings.use_keyframe_insert_keyingset = True
    return scene.keying_sets_all.active


def paths(ob: bpy.types.Object) -> set[str]:
    return {path for path, _ in keyed(ob)}


OFFSET = (0.1, 0.0, -0.1)


def drag() -> None:
    assert bpy.ops.ik_addon.drag_target(offset=OFFSET) == {"FINISHED"}


@pytest.mark.parametrize("available", [False, True])
def test_a_line_says_that_preferences_prevent_a_first_key(
    arm: Any, preferences: Any, capfd: Capture, available: bool
) -> None:
    preferences.use_keyframe_insert_available = available
    assert ("Press Key Controls" in said(capfd, bpy.ops.ik_addon.drag_target, offset=OFFSET)) == available
    assert ("Press Key Controls" in said(capfd, bpy.ops.ik_addon.snap_target)) == available
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
def test_only_needed_skips_unchanged_channels(
    arm: Any, preferences: Any, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by == "preference":
        preferences.use_auto_keyframe_insert_needed = True
    else:
        own = use_set("Location")
        for name in ("use_insertkey_override_needed", "use_insertkey_needed"):
            monkeypatch.setattr(own, name, True)
    arm[1].keyframe_insert("location", frame=1)
    drag()
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


def test_a_set_that_omits_moved_channels_gets_a_remark(capfd: Capture, arm: Any) -> None:
    ob, _target = arm
    rigs.key(ob.pose.bones["lower"], "rotation_quaternion", {1: Quaternion((1, 0, 0), 0.4)})
    use_set("Location")
    assert "'lower' is animated and reverts" in said(capfd, bpy.ops.ik_addon.apply_pose)


def test_keys_have_the_keyframe_type_that_the_user_chose(arm: Any) -> None:
    bpy.context.scene.tool_settings.keyframe_type = "BREAKDOWN"
    drag()
    assert {point.type for curve in rigs.fcurves(arm[1]) for point in curve.keyframe_points} == {"BREAKDOWN"}
