"""Paste Pose leaves chains and other settings of bones as they are; all else that changes them, as Symmetrize, does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import bpy
import pytest

from tests import rigs
from tests.chains.test_end_bone import body as legs
from tests.conftest import Addon
from tests.faults import stored
from tests.reliability.states import activate, disabled, settings
from tests.reliability.test_libraries import as_override, own_rig

BONES = ("upper", "lower", "hand")
FK = (0.9, 0.1, 0.2, 0.3)


def body(name: str = "Rig", x: float = 0.0) -> bpy.types.Object:
    """Return an armature with two arms, the left one with a chain that has target, pole and an FK pose."""
    ob = rigs.armature(name)
    ob.location.x = 5.0 * x
    for side, y in (("L", 1.0), ("R", -1.0)):
        points = [(y, 0, 0), (y, -0.2, 1), (y, 0, 2), (y, 0, 2.3)]
        rigs.add_bones(ob, points, [f"{bone}.{side}" for bone in BONES])
    target = rigs.empty(f"Target {name}", (0.6 + 5.0 * x, 0.5, 1.0))
    pole = rigs.empty(f"Pole {name}", (1.0 + 5.0 * x, -2.0, 1.0))
    rigs.chain(ob, "lower.L", target, 2, pole=pole, softness=0.2, end_bone="hand.L", heel_pivot=(0.1, 0.2, 0.3))
    ob.pose.bones["hand.R"].ik_addon.pin = {"LOCATION"}
    rigs.change(ob.pose.bones["upper.L"], rotation_quaternion=FK)
    return ob


def pose_mode(ob: bpy.types.Object, *, select: bool = True) -> None:
    """Go to Pose Mode with one armature alone, with all its bones selected or none."""
    rigs.select(ob)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="SELECT" if select else "DESELECT")


def known(ob: bpy.types.Object) -> dict[str, Any]:
    """Return all settings of all bones, without making Blender create any, and the FK store where Live is off.

    Where it is on, pasting edits the pose.
    """
    found: dict[str, Any] = {f"{ob.name}: live": ob.ik_addon.live}
    for bone in ob.pose.bones:
        if not bone.is_property_set("ik_addon"):
            continue
        own = bone.ik_addon
        name = f"{ob.name}: {bone.name}"
        if not ob.ik_addon.live:
            found[f"{name} FK"] = own.base.stored, own.base.noted, own.base.channels[:], own.resting
        elif not own.is_chain and not own.pin and own.give == 1.0:
            continue  # it only stores FK
        found |= {f"{name} {setting}": value for setting, value in settings(bone).items()}
    return found


def all_known() -> dict[str, Any]:
    armatures = [ob for ob in bpy.data.objects if ob.type == "ARMATURE"]
    return {name: value for ob in armatures for name, value in known(ob).items()}


def push(message: str) -> None:
    bpy.ops.ed.undo_push(message=message)


def assert_lasts(
    wanted: dict[str, Any], folder: Path, read: Callable[[], dict[str, Any]] = all_known, steps: int = 2
) -> None:
    """Assert that all settings are as wanted, then after as many steps of undo and redo, and in the file."""
    assert read() == wanted
    bpy.data.objects[0].name = bpy.data.objects[0].name
    push("something else")
    for step in (*[bpy.ops.ed.undo] * steps, *[bpy.ops.ed.redo] * steps):
        step()
        assert read() == wanted, step
    rigs.save_and_open(folder / "lasts.blend")
    assert read() == wanted


@contextmanager
def no_change(folder: Path, begin: str = "begin") -> Iterator[None]:
    """Assert that what is done inside changes no setting, for good."""
    before = all_known()
    push(begin)
    yield
    assert_lasts(before, folder)


def paste(*, flipped: bool = False) -> None:
    """Paste as a user does: the undo step is made before the update that follows."""
    bpy.ops.pose.paste("EXEC_DEFAULT", True, flipped=flipped)


def assert_paste_changes_nothing(folder: Path, *, copies: bool = False, flipped: bool = False) -> None:
    """Paste a pose, which may be copied just before; assert that this changes no setting, for good."""
    with no_change(folder):
        if copies:
            bpy.ops.pose.copy()
        paste(flipped=flipped)


@pytest.fixture(params=["live", "solved", "unsolved"])
def rig(request: pytest.FixtureRequest) -> bpy.types.Object:
    ob = body()
    if request.param == "live":
        rigs.change(ob.ik_addon, live=True)
    elif request.param == "solved":
        pose_mode(ob)
        assert bpy.ops.ik_addon.solve() == {"FINISHED"}
    else:
        rigs.change(ob.pose.bones["lower.L"].ik_addon, pole=ob, pole_bone="upper.R")
    pose_mode(ob)
    return ob


# ---- what is pasted over


@pytest.mark.parametrize("flipped", [False, True])
def test_a_pasted_pose_changes_no_setting(rig: bpy.types.Object, flipped: bool, tmp_path: Path) -> None:
    assert_paste_changes_nothing(tmp_path, copies=True, flipped=flipped)


def test_settings_of_another_time_are_not_pasted(rig: bpy.types.Object, tmp_path: Path) -> None:
    bpy.ops.pose.copy()
    chain = rig.pose.bones["lower.L"].ik_addon
    chain.softness, chain.chain_length, chain.end_bone = 0.4, 1, ""
    rig.pose.bones["hand.R"].ik_addon.pin = {"ROTATION"}
    rigs.change(rig.pose.bones["upper.R"].ik_addon, give=0.3)
    assert_paste_changes_nothing(tmp_path)


def test_a_removed_chain_does_not_come_back(tmp_path: Path) -> None:
    pose_mode(body())
    bpy.ops.pose.copy()
    bone = bpy.data.objects["Rig"].pose.bones["lower.L"]
    bpy.context.object.data.bones.active = bone.bone
    assert bpy.ops.ik_addon.chain_remove(remove_targets=False) == {"FINISHED"}
    assert_paste_changes_nothing(tmp_path)


def other_body(live: bool) -> bpy.types.Object:
    ob = body("Other", 1.0)
    ob.pose.bones["lower.L"].ik_addon.softness = 0.7
    ob.ik_addon.live = live
    return ob


def plain_body() -> bpy.types.Object:
    """Return an armature without chains."""
    return rigs.limb(rigs.straight(3), [f"{bone}.L" for bone in BONES], name="Plain")


def duplicated() -> bpy.types.Object:
    """Return a duplicate of the rig, with targets of its own."""
    rigs.select(*bpy.data.objects)
    bpy.ops.object.duplicate()
    rig = bpy.data.objects["Rig"]
    copy = next(ob for ob in bpy.data.objects if ob.type == "ARMATURE" and ob != rig)
    assert copy.pose.bones["lower.L"].ik_addon.target not in {None, rig.pose.bones["lower.L"].ik_addon.target}
    return copy


@pytest.mark.parametrize("other", [partial(other_body, True), partial(other_body, False), plain_body, duplicated])
@pytest.mark.parametrize("flipped", [False, True])
def test_another_character_keeps_its_own(
    rig: bpy.types.Object, other: Callable[[], bpy.types.Object], flipped: bool, tmp_path: Path
) -> None:
    ob = other()
    bpy.context.view_layer.update()
    pose_mode(rig)
    bpy.ops.pose.copy()
    pose_mode(ob)
    assert_paste_changes_nothing(tmp_path, flipped=flipped)


def test_a_pose_of_another_file_brings_no_chain(tmp_path: Path) -> None:
    pose_mode(body())
    bpy.ops.pose.copy()
    rigs.new_file()
    other = body()
    other.pose.bones["lower.L"].ik_addon.softness = 0.7
    pose_mode(other)
    before = all_known()
    push("begin")
    paste(flipped=True)
    assert all_known() == before
    paste()
    assert_lasts(before, tmp_path)


def test_an_animated_setting_is_pasted_like_the_channels_beside_it() -> None:
    rig = body()
    rigs.key(rig.pose.bones["lower.L"], "ik_addon.influence", {1: 0.25, 20: 1.0})
    bpy.context.scene.frame_set(1)
    pose_mode(rig)
    bpy.ops.pose.copy()
    bpy.context.scene.frame_set(20)
    paste()
    chain = rig.pose.bones["lower.L"].ik_addon
    assert chain.influence == 0.25, "to be keyed here"
    assert chain.target == bpy.data.objects["Target Rig"]
    bpy.context.scene.frame_set(20)
    assert chain.influence == 1.0


def test_a_setting_stays_where_its_keys_left_it(rig: bpy.types.Object, tmp_path: Path) -> None:
    chain = rig.pose.bones["lower.L"].ik_addon
    rigs.key(rig.pose.bones["lower.L"], "ik_addon.influence", {1: 0.25, 20: 1.0})
    bpy.context.view_layer.update()
    bpy.context.scene.frame_set(1)
    rig.animation_data_clear()
    bpy.context.view_layer.update()
    assert chain.influence == 0.25
    assert_paste_changes_nothing(tmp_path, copies=True)


def test_a_deleted_target_stays_deleted(rig: bpy.types.Object, tmp_path: Path) -> None:
    push("begin")
    bpy.ops.pose.copy()
    bpy.data.objects.remove(bpy.data.objects["Target Rig"])
    bpy.context.view_layer.update()
    assert rig.pose.bones["lower.L"].ik_addon.target is None
    with no_change(tmp_path, "deleted"):
        paste()


def test_a_cleared_target_stays_cleared(rig: bpy.types.Object, tmp_path: Path) -> None:
    bpy.ops.pose.copy()
    rig.pose.bones["lower.L"].ik_addon.target = None
    push("cleared")
    bpy.context.view_layer.update()
    assert_paste_changes_nothing(tmp_path)


def test_a_paste_is_undone_after_the_extension_was_off(tmp_path: Path) -> None:
    ob = body()
    before = all_known()
    with disabled():
        pose_mode(ob)
        bpy.ops.pose.copy()
        paste()
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "elsewhere.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "elsewhere.blend"))
    assert all_known() == before


def test_a_setting_that_this_version_does_not_know_costs_no_target(tmp_path: Path) -> None:
    ob = body()
    stored(ob.pose.bones["lower.L"])["solver"] = 99
    rigs.change(ob.pose.bones["lower.L"].ik_addon, softness=0.3)
    pose_mode(ob)
    assert_paste_changes_nothing(tmp_path, copies=True)


def test_settings_stay_known_after_a_bone_without_any_was_pasted(tmp_path: Path) -> None:
    plain, rig = body("Other", 1.0), body()
    empty = plain.pose.bones["hand.R"].ik_addon
    empty.give = 0.5
    for name in ("pin", "give"):
        empty.property_unset(name)
    bpy.context.view_layer.update()
    assert not empty.stamp
    for ob, edit in ((plain, bpy.ops.pose.copy), (rig, paste), (rig, bpy.ops.pose.copy)):
        pose_mode(ob, select=False)
        rigs.select_bones(ob, "hand.R")
        edit()
    rigs.change(rig.pose.bones["hand.R"].ik_addon, pin={"ROTATION"})
    assert_paste_changes_nothing(tmp_path)


# ---- pose assets


def pose_asset() -> bpy.types.Action:
    """Create a pose asset from the selected bones, in this file, and return its action."""
    before = set(bpy.data.actions)
    create: Any = bpy.ops.poselib.create_pose_asset
    options = {"asset_library_reference": "LOCAL", "activate_new_action": False}
    known_options = create.get_rna_type().properties.keys()
    create("EXEC_DEFAULT", True, pose_name="Pose", **{k: v for k, v in options.items() if k in known_options})
    (action,) = set(bpy.data.actions) - before
    return action


def test_a_pose_asset_is_created_without_a_change(rig: bpy.types.Object, tmp_path: Path) -> None:
    with no_change(tmp_path):
        action = pose_asset()
        bags = [action] if hasattr(action, "fcurves") else action.layers[0].strips[0].channelbags
        paths = {curve.data_path for bag in bags for curve in bag.fcurves}
        assert paths
        assert not [path for path in paths if "ik_addon" in path]
        push("created")


@pytest.mark.parametrize("factor", [0.4, 1.0])
def test_a_pose_asset_changes_no_setting(rig: bpy.types.Object, factor: float, tmp_path: Path) -> None:
    action = pose_asset()
    other = body("Other", 1.0)
    rigs.change(other.pose.bones["lower.L"].ik_addon, softness=0.7)
    with no_change(tmp_path):
        for ob in (rig, other):
            ob.pose.blend_pose_from_action(action, blend_factor=factor)
        push("blended")
        bpy.context.view_layer.update()


# ---- what is no paste


def edited(ob: bpy.types.Object, edit: Callable[[Any], object]) -> None:
    bpy.ops.object.mode_set(mode="OBJECT")
    with rigs.edit_mode(ob) as bones:
        edit(bones)
    bpy.context.view_layer.update()


def chains() -> dict[str, dict[str, str | None]]:
    """Return the targets of all chains, by armature and tip."""
    return {
        ob.name: {
            bone.name: bone.ik_addon.target and bone.ik_addon.target.name
            for bone in ob.pose.bones
            if bone.is_property_set("ik_addon") and bone.ik_addon.is_chain
        }
        for ob in bpy.data.objects
        if ob.type == "ARMATURE"
    }


def assert_chains_last(wanted: dict[str, dict[str, str | None]], folder: Path) -> None:
    push("edited")
    assert_lasts(wanted, folder, chains, 1)
    ob = next(each for each in bpy.data.objects if each.type == "ARMATURE")
    pose_mode(ob)
    bpy.ops.pose.copy()
    paste()
    assert chains() == wanted


def test_sides_may_swap_their_names(rig: bpy.types.Object, tmp_path: Path) -> None:
    other = rigs.empty("Target R", (-1.0, 0.3, 1.5))
    rigs.chain(rig, "lower.R", other, 2)
    bpy.context.view_layer.update()
    left, right = rig.data.bones["lower.L"], rig.data.bones["lower.R"]
    left.name, right.name = "aside", "lower.L"
    rigs.change(left, name="lower.R")
    assert_chains_last({"Rig": {"lower.R": "Target Rig", "lower.L": "Target R"}}, tmp_path)


def with_left_bones(operator: Callable[[], object]) -> Callable[[bpy.types.Object], None]:
    """Return an edit by an operator of Edit Mode, with the left bones selected."""

    def edit(bones: Any) -> None:
        rigs.select_edit_bones(bones, ".L")
        operator()

    return lambda ob: edited(ob, edit)


EDITS: dict[str, tuple[Callable[[bpy.types.Object], object], dict[str, dict[str, str | None]]]] = {
    "a bone is renamed": (
        lambda ob: rigs.change(ob.data.bones["lower.L"], name="forearm"),
        {"Rig": {"forearm": "Target Rig"}},
    ),
    "other data": (lambda ob: rigs.change(ob, data=ob.data.copy()), {"Rig": {"lower.L": "Target Rig"}}),
    "duplicated bones": (
        with_left_bones(bpy.ops.armature.duplicate),
        {"Rig": {"lower.L": "Target Rig", "lower.L.001": "Target Rig"}},
    ),
    "separated bones": (with_left_bones(bpy.ops.armature.separate), {"Rig": {}, "Rig.001": {"lower.L": "Target Rig"}}),
}
"""Edits of an armature, and the chains there are then."""


@pytest.mark.parametrize("kind", EDITS)
def test_chains_stay_with_their_bones(rig: bpy.types.Object, kind: str, tmp_path: Path) -> None:
    edit, wanted = EDITS[kind]
    edit(rig)
    assert_chains_last(wanted, tmp_path)


@pytest.mark.parametrize("is_there", [True, False])
def test_symmetrized_bones_have_a_chain(rig: bpy.types.Object, is_there: bool, tmp_path: Path) -> None:
    def symmetrize(bones: Any) -> None:
        if not is_there:
            for name in BONES:
                bones.remove(bones[f"{name}.R"])
        rigs.select_edit_bones(bones, ".L")
        bpy.ops.armature.symmetrize()

    edited(rig, symmetrize)
    found = chains()["Rig"]
    assert found["lower.L"] == "Target Rig"
    assert found.get("lower.R", "Target Rig") == "Target Rig"
    assert is_there or "lower.R" in found
    assert_chains_last({"Rig": found}, tmp_path)


@pytest.mark.parametrize("into_plain", [True, False])
def test_joined_armatures_keep_their_chains_and_end_bones(
    addon: Addon, rig: bpy.types.Object, into_plain: bool, tmp_path: Path
) -> None:
    bpy.ops.object.mode_set(mode="OBJECT")
    other = plain_body() if into_plain else body("Other", 1.0)
    bpy.context.view_layer.update()
    rigs.select(other, rig)
    bpy.ops.object.join()
    end = addon.module("rig.plan.chain").end_of(other.pose.bones["lower.L.001"])
    assert end.name == "hand.L.001"
    wanted: dict[str, str | None] = {"lower.L.001": "Target Rig"}
    if not into_plain:
        wanted["lower.L"] = "Target Other"
    assert_chains_last({other.name: wanted}, tmp_path)


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("kind", ["joined", "duplicated"])
def test_chains_follow_control_bones_that_come_along_under_other_names(kind: str, live: bool, tmp_path: Path) -> None:
    first, other = body("First"), body("Other", 1.0)
    for ob in (first, other):
        with rigs.edit_mode(ob) as bones:
            for name in ("IK.003", "IK.006"):
                bones.new(name).tail = bones["lower.L"].tail
        for tip, name in (("lower.L", "IK.003"), ("upper.R", "IK.006")):
            rigs.chain(ob, tip, ob, 1, target_bone=name)
        ob.ik_addon.live = live
    bpy.context.view_layer.update()
    if not live:
        rigs.save_and_open(tmp_path / "before.blend")
        first, other = (bpy.data.objects[name] for name in ("First", "Other"))
    if kind == "joined":
        rigs.select(first, other)
        bpy.ops.object.join()
    else:
        with rigs.edit_mode(first) as bones:
            rigs.select_edit_bones(bones, "")
            bpy.ops.armature.duplicate()
    for _ in range(2):
        bpy.context.view_layer.update()
        found = {bone.name: bone.ik_addon.target_bone for bone in first.pose.bones if bone.ik_addon.is_chain}
        assert [len(set(found.values())), found["lower.L"], found["upper.R"]] == [4, "IK.003", "IK.006"]
        assert found["lower.L.001"] < found["upper.R.001"]
        rigs.save_and_open(tmp_path / "after.blend")
        first = bpy.data.objects["First"]


def test_a_file_that_knows_nothing_is_right(rig: bpy.types.Object, tmp_path: Path) -> None:
    for bone in rig.pose.bones:
        bone.ik_addon.property_unset("stamp")
    for name in ("known", "goals"):
        rig.ik_addon.property_unset(name)
    rigs.save_and_open(tmp_path / "old.blend")
    assert_chains_last({"Rig": {"lower.L": "Target Rig"}}, tmp_path)


@pytest.mark.parametrize("target", ["Shot", None])
def test_an_override_keeps_what_it_overrides(target: str | None, tmp_path: Path) -> None:
    body()
    rigs.in_collection("Character", *bpy.data.objects)
    bpy.context.view_layer.update()
    ob = as_override(tmp_path)
    chain = ob.pose.bones["lower.L"].ik_addon
    chain.target = rigs.empty("Shot", (0.4, 0.4, 1.4)) if target else None
    chain.softness = 0.6
    rigs.chain(ob, "lower.R", rigs.empty("Shot R", (-0.4, 0.4, 1.4)), 2)
    bpy.context.view_layer.update()

    def tips() -> dict[str, Any]:
        return {setting: value for setting, value in known(own_rig()).items() if ": lower." in setting}

    before = tips()
    for _ in range(2):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
        assert tips() == before
    pose_mode(own_rig())
    push("begin")
    bpy.ops.pose.copy()
    paste(flipped=True)
    paste()
    for step in (None, bpy.ops.ed.undo, bpy.ops.ed.undo, bpy.ops.ed.redo, bpy.ops.ed.redo):
        if step is not None:
            step()
        assert tips() == before, step


# ---- chains name the right bones after Symmetrize and Join, which copy settings as they are


def symmetrize(ob: bpy.types.Object) -> None:
    """Copy the left side of an armature to the right, which may be there already."""
    with rigs.edit_mode(ob) as bones:
        rigs.select_edit_bones(bones, ".L")
        bpy.ops.armature.symmetrize()
    bpy.context.view_layer.update()


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("controls", ["EMPTIES", "BONES"])
def test_a_symmetrized_leg_ends_in_its_own_foot_and_can_be_mirrored(addon: Addon, controls: str, live: bool) -> None:
    chains = addon.module("rig.plan.chain")
    ob = legs()
    assert bpy.ops.ik_addon.chain_add(controls=controls, live=live) == {"FINISHED"}
    symmetrize(ob)
    right = ob.pose.bones["shin.R"]
    assert right.ik_addon.is_chain
    assert chains.end_of(right).name == "foot.R"
    assert not live or right.ik_addon.end_bone == "foot.R", "the panel shows this name"
    activate(ob, "shin.R")
    bpy.ops.ik_addon.solve()
    report = addon.report(ob, "shin.R")
    assert not report.failed
    assert report.remarks == ("The target belongs to the other side. Mirror the chain on 'Left Leg'",)
    assert not addon.report(ob, "shin.L").remarks
    assert bpy.ops.ik_addon.fix(tip="shin.R") == {"FINISHED"}
    bpy.ops.ik_addon.solve()
    report = addon.report(ob, "shin.R")
    assert (report.reached, report.remarks) == (True, ())
    goal = ob.pose.bones["shin.R"].ik_addon
    assert (goal.target_bone or goal.target.name) == "IK Target shin.R"


def test_both_sides_may_follow_a_target_of_neither(addon: Addon) -> None:
    ob = legs()
    sword = rigs.empty("Sword", (0.0, -0.2, 0.4))
    for side in "LR":
        rigs.chain(ob, f"shin.{side}", sword, 2)
    bpy.ops.ik_addon.solve()
    assert not any(addon.report(ob, f"shin.{side}").remarks for side in "LR")


def test_a_child_of_another_name_is_no_end_bone(addon: Addon) -> None:
    ob = legs()
    tip = rigs.chain(ob, "shin.L", rigs.empty("Target"), 2, end_bone="hips")
    assert addon.module("rig.plan.chain").end_of(tip) is None
