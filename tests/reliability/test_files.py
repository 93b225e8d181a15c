"""Chains survive everything that Blender does with files, objects and scenes."""

from pathlib import Path
from typing import Any

import bpy
import pytest

from tests import rigs
from tests.animatable import walk
from tests.conftest import Addon
from tests.reliability.states import disabled, settings
from tests.reliability.test_libraries import as_override, own_rig
from tests.rigs import animated_arm, apart, edit_mode, from_library, miss, new_file, save_and_open

FRAMES = (1, 9, 20)
SOLVED = 1e-5


def keyed_arm(live: bool = True) -> tuple[bpy.types.Object, bytes, rigs.Poses]:
    """An arm with a keyed target, the upper bone keyed, the lower one posed by hand; FK channels, and live poses.

    It is on frame 9, whose FK channels they are.
    """
    ob, _target = animated_arm()
    ob.pose.bones["lower"].ik_addon.softness = 0.01
    ob.ik_addon.live = False
    fk = fk_channels(ob, 9)
    ob.ik_addon.live = True
    expected = poses(ob)
    ob.ik_addon.live = live
    bpy.context.scene.frame_set(9)
    return ob, fk, expected


def poses(ob: bpy.types.Object) -> rigs.Poses:
    """The live poses on some frames."""
    return rigs.poses_at(ob, FRAMES)


def fk_channels(ob: bpy.types.Object, frame: int) -> bytes:
    """The channels on a frame of an armature whose chains are off."""
    bpy.context.scene.frame_set(frame)
    return rigs.channels(ob).tobytes()


def only_armature() -> bpy.types.Object:
    (ob,) = (ob for ob in bpy.context.scene.objects if ob.type == "ARMATURE")
    return ob


# ---- saving and loading


def test_saving_changes_neither_the_solved_nor_the_fk_pose(tmp_path: Path) -> None:
    ob, fk, _expected = keyed_arm()
    solved = rigs.channels(ob).tobytes()
    for i in range(3):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / f"{i}.blend"), copy=bool(i))
        assert rigs.channels(ob).tobytes() == solved
    ob.ik_addon.live = False
    assert fk_channels(ob, 9) == fk


@pytest.mark.parametrize("turn_off", ["live", "enabled", "restore", "remove"])
def test_the_fk_pose_is_restored_exactly_after_loading(tmp_path: Path, turn_off: str) -> None:
    _ob, fk, expected = keyed_arm()
    for i in range(2):
        save_and_open(tmp_path / f"{i}.blend")
    ob = only_armature()
    assert not apart({9: rigs.pose(ob)}, {9: expected[9]})
    assert not apart(poses(ob), expected)
    save_and_open(tmp_path / "again.blend")
    ob = only_armature()
    bpy.context.view_layer.objects.active = ob
    if turn_off == "live":
        ob.ik_addon.live = False
    elif turn_off == "enabled":
        ob.pose.bones["lower"].ik_addon.enabled = False
    elif turn_off == "restore":
        bpy.ops.ik_addon.restore_pose()
    else:
        bpy.ops.object.mode_set(mode="POSE")
        ob.data.bones.active = ob.data.bones["lower"]
        bpy.ops.ik_addon.chain_remove()
    bpy.context.view_layer.update()
    assert fk_channels(ob, 9) == fk


def test_without_the_add_on_the_pose_stays_and_nothing_is_lost(tmp_path: Path) -> None:
    ob, fk, expected = keyed_arm()
    solved = ob.pose.bones["lower"].rotation_quaternion[:]
    path = tmp_path / "file.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    with disabled():
        for _ in range(2):
            bpy.ops.wm.open_mainfile(filepath=str(path))
            ob = only_armature()
            assert ob.pose.bones["lower"].rotation_quaternion[:] == solved
            bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.open_mainfile(filepath=str(path))
    ob = only_armature()
    chain = ob.pose.bones["lower"].ik_addon
    assert (chain.is_chain, chain.target.name, chain.chain_length) == (True, "Target", 2)
    assert ob.ik_addon.live
    assert not apart(poses(ob), expected)
    ob.ik_addon.live = False
    assert fk_channels(ob, 9) == fk


# ---- append and link


def test_rigs_appended_repeatedly_are_live_at_once_and_solved_independently(tmp_path: Path) -> None:
    _ob, fk, expected = keyed_arm()
    path = tmp_path / "library.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    new_file()
    objects = [from_library(path, "objects", "Rig", link=False)[0] for _ in range(3)]
    for ob in objects:
        for own in (ob, ob.pose.bones["lower"].ik_addon.target):
            bpy.context.scene.collection.objects.link(own)
        assert not apart(poses(ob), expected)
    objects[1].ik_addon.live = False
    assert fk_channels(objects[1], 9) == fk
    assert not apart(poses(objects[2]), expected)


# ---- library overrides


def overridden(folder: Path, live: bool = True) -> tuple[bpy.types.Object, bytes, rigs.Poses]:
    """An override of a rig and its target, in another file, and the rig's FK channels and live poses."""
    ob, fk, expected = keyed_arm(live)
    rigs.in_collection("Character", ob, ob.pose.bones["lower"].ik_addon.target)
    return as_override(folder), fk, expected


def test_settings_of_an_override_are_kept(tmp_path: Path) -> None:
    ob, _fk, _expected = overridden(tmp_path)
    chain = ob.pose.bones["lower"].ik_addon
    for own in walk(ob, 'pose.bones["lower"].ik_addon'):
        own.set(own.values[1])
    chain.target = chain.pole = rigs.empty("Own", (0.3, 0.4, 1.5))
    chain.target_bone, chain.pole_bone, chain.end_bone = "some", "other", "hand"
    expected = settings(ob.pose.bones["lower"])
    for i in range(3):
        save_and_open(tmp_path / f"shot{i}.blend")
        assert settings(own_rig().pose.bones["lower"]) == expected


@pytest.mark.parametrize("turned", ["on", "off"])
def test_live_turned_on_or_off_on_an_override_stays_so(tmp_path: Path, turned: str) -> None:
    ob, fk, _expected = overridden(tmp_path, turned == "off")
    ob.ik_addon.live = turned == "on"
    expected = poses(ob)
    for i in range(2):
        save_and_open(tmp_path / f"shot{i}.blend")
        ob = own_rig()
        assert ob.ik_addon.live == (turned == "on")
        assert not apart(poses(ob), expected)
    ob.ik_addon.live = False
    assert fk_channels(ob, 9) == fk


def test_an_override_follows_changes_of_its_library(tmp_path: Path) -> None:
    overridden(tmp_path)
    bpy.context.scene.frame_set(9)
    shot = tmp_path / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "library.blend"))
    ob = only_armature()
    rigs.add_bones(ob, [(0, 0, 2), (0, 0, 3)], ["hand"], "lower")
    ob.pose.bones["lower"].ik_addon.softness = 0.03
    bpy.ops.wm.save_mainfile()
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    ob = own_rig()
    assert "hand" in ob.pose.bones
    assert ob.pose.bones["lower"].ik_addon.softness == pytest.approx(0.03)
    bpy.context.view_layer.update()
    assert miss(ob) < SOLVED
    bpy.context.scene.frame_set(15)
    assert miss(ob) < SOLVED


def test_an_override_survives_a_missing_and_a_reloaded_library(tmp_path: Path) -> None:
    ob, _fk, expected = overridden(tmp_path)
    path, shot = tmp_path / "library.blend", tmp_path / "shot.blend"
    assert not apart(poses(ob), expected)
    bpy.data.libraries[0].reload()
    bpy.context.view_layer.update()
    assert not apart(poses(own_rig()), expected)
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    path.rename(tmp_path / "away.blend")
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    bpy.context.scene.frame_set(3)
    (tmp_path / "away.blend").rename(path)
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    assert not apart(poses(own_rig()), expected)


# ---- objects


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("by", ["operator", "script"])
def test_a_duplicate_is_independent(linked: bool, by: str) -> None:
    ob, fk, expected = keyed_arm()
    if by == "operator":
        rigs.select(ob)
        bpy.ops.object.duplicate(linked=linked)
        twin = bpy.context.object
    else:
        twin = ob.copy()
        twin.data = ob.data if linked else ob.data.copy()
        bpy.context.scene.collection.objects.link(twin)
    assert twin != ob
    assert not apart(poses(twin), expected)  # without an update of the view layer in between
    ob.ik_addon.live = False
    assert fk_channels(ob, 9) == fk
    assert not apart(poses(twin), expected)
    twin.ik_addon.live = False
    assert fk_channels(twin, 9) == fk


POSED = {"none": (), "upper": ("upper",), "lower": ("lower",), "both": ("upper", "lower")}
"""The bones that are posed; the others are at rest."""


def two_limbs(posed: str = "lower") -> bpy.types.Object:
    """An armature with two arms, each with its target."""
    ob = rigs.armature("Rig")
    for side, x in (("L", 1.0), ("R", -1.0)):
        rigs.add_arm(ob, x, [f"upper.{side}", f"lower.{side}"], f"Target {side}")
        for name in POSED[posed]:
            ob.pose.bones[f"{name}.{side}"].rotation_quaternion = (0.98, 0.0, 0.17, 0.1 * x)
    return ob


def rotations(ob: bpy.types.Object) -> dict[str, tuple[float, ...]]:
    return {bone.name: bone.rotation_quaternion[:] for bone in ob.pose.bones}


@pytest.mark.parametrize("posed", POSED)
def test_separated_bones_keep_their_chains_fk_pose_and_live(posed: str) -> None:
    ob = two_limbs(posed)
    fk = rotations(ob)
    rigs.go_live(ob)
    solved = rotations(ob)
    rigs.select(ob)
    with edit_mode(ob) as bones:
        rigs.select_edit_bones(bones, "R")
        bpy.ops.armature.separate()
    bpy.context.view_layer.update()
    parts = [ob for ob in bpy.context.scene.objects if ob.type == "ARMATURE"]
    assert {name for part in parts for name in part.pose.bones.keys()} == set(fk)  # noqa: SIM118
    for part in parts:
        assert len(part.pose.bones) == 2
        assert part.ik_addon.live
        tip = part.pose.bones[1].name
        assert miss(part, tip) < SOLVED
        assert rotations(part) == {name: solved[name] for name in rotations(part)}
        rigs.shift(part.pose.bones[tip].ik_addon.target, x=0.1)
        assert miss(part, tip) < SOLVED
        part.ik_addon.live = False
        assert rotations(part) == {name: fk[name] for name in rotations(part)}


@pytest.mark.parametrize("posed", POSED)
@pytest.mark.parametrize("other_live", [True, False])
def test_joined_armatures_with_the_same_bone_names_keep_their_chains(other_live: bool, posed: str) -> None:
    first, second = (plain_arm(f"Rig {x}", x, posed) for x in (0.0, 3.0))
    fk = [rotations(first), rotations(second)]
    first.ik_addon.live, second.ik_addon.live = True, other_live
    bpy.context.view_layer.update()
    rigs.select(first, second)
    bpy.ops.object.join()
    bpy.context.view_layer.update()
    assert sorted(first.pose.bones.keys()) == ["lower", "lower.001", "upper", "upper.001"]
    assert first.ik_addon.live
    for tip in ("lower", "lower.001"):
        assert miss(first, tip) < SOLVED
    first.ik_addon.live = False
    after = rotations(first)
    assert {name: after[name] for name in ("upper", "lower")} == fk[0]
    assert {name: after[f"{name}.001"] for name in ("upper", "lower")} == fk[1]


def plain_arm(name: str, x: float, posed: str = "both") -> bpy.types.Object:
    """An arm without animation, at a given x."""
    ob = rigs.armature(name)
    rigs.add_arm(ob, x, ["upper", "lower"], f"Target {name}")
    for bone in POSED[posed]:
        ob.pose.bones[bone].rotation_quaternion = (0.98, 0.0, 0.17 if bone == "upper" else 0.3, 0.1 * x)
    bpy.context.view_layer.update()
    return ob


# ---- names


@pytest.mark.parametrize("posed", POSED)
@pytest.mark.parametrize("through", ["frame", "update"])
def test_colliding_and_swapped_bone_names_keep_the_fk_pose(through: str, posed: str) -> None:
    ob = two_limbs(posed)
    fk = rotations(ob)
    ob.pose.bones["upper.L"].rotation_quaternion = fk["upper.L"] = (0.8, 0.6, 0.0, 0.0)
    rigs.go_live(ob)
    bones = ob.data.bones
    bones["lower.L"].name = "lower.R"
    assert set(bones.keys()) == {"upper.L", "lower.R.001", "upper.R", "lower.R"}
    fk["lower.R.001"] = fk.pop("lower.L")
    step(through)
    bones["upper.L"].name = "spare"
    bones["upper.R"].name = "upper.L"
    bones["spare"].name = "upper.R"
    fk["upper.L"], fk["upper.R"] = fk["upper.R"], fk["upper.L"]
    step(through)
    for tip in ("lower.R", "lower.R.001"):
        assert miss(ob, tip) < SOLVED
    ob.ik_addon.live = False
    assert rotations(ob) == {name: pytest.approx(value) for name, value in fk.items()}


@pytest.mark.parametrize("posed", POSED)
def test_inserting_a_bone_into_a_chain_keeps_the_fk_pose(posed: str) -> None:
    ob = plain_arm("Rig", 0.0, posed)
    fk = rotations(ob)
    rigs.go_live(ob)
    with edit_mode(ob) as bones:
        middle = bones.new("middle")
        middle.head, middle.tail, middle.parent = bones["lower"].head, (0.0, -0.1, 1.5), bones["upper"]
        bones["lower"].use_connect = False
        bones["lower"].head, bones["lower"].parent = middle.tail, middle
    bpy.context.view_layer.update()
    bpy.context.scene.frame_set(2)
    ob.ik_addon.live = False
    assert rotations(ob) == {**fk, "middle": (1.0, 0.0, 0.0, 0.0)}


def step(through: str) -> None:
    if through == "frame":
        bpy.context.scene.frame_set(bpy.context.scene.frame_current + 1)
    else:
        bpy.context.view_layer.update()


def arm_on_controls() -> tuple[bpy.types.Object, bpy.types.Object]:
    """A live arm whose target and pole are bones of another armature."""
    controls = rigs.limb([(0.6, 0.5, 1.0), (0.6, 0.5, 1.5)], ["hand"], name="Controls")
    rigs.add_bones(controls, [(0.0, -3.0, 1.0), (0.0, -3.0, 1.5)], ["elbow"])
    ob = plain_arm("Rig", 0.0)
    chain = ob.pose.bones["lower"].ik_addon
    chain.target, chain.target_bone = controls, "hand"
    chain.pole, chain.pole_bone = controls, "elbow"
    rigs.go_live(ob)
    return ob, controls


@pytest.mark.parametrize("mode", ["EDIT", "OBJECT", "POSE"])
def test_a_renamed_target_bone_is_followed(addon: Addon, mode: str) -> None:
    ob, controls = arm_on_controls()
    rigs.select(controls)
    bpy.ops.ed.undo_push(message="before")
    bpy.ops.object.mode_set(mode=mode)
    bones: Any = {"EDIT": controls.data.edit_bones, "OBJECT": controls.data.bones, "POSE": controls.pose.bones}[mode]
    bones["hand"].name = "elbow"  # the name is taken, so Blender appends a number
    bones["elbow"].name = "joint"
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.update()
    chain = ob.pose.bones["lower"].ik_addon
    assert (chain.target_bone, chain.pole_bone) == ("elbow.001", "joint")
    assert addon.report(ob).reached
    bpy.ops.ed.undo_push(message="renamed")
    for turn, names in ((bpy.ops.ed.undo, ("hand", "elbow")), (bpy.ops.ed.redo, ("elbow.001", "joint"))):
        turn()
        bpy.context.view_layer.update()
        chain = bpy.data.objects["Rig"].pose.bones["lower"].ik_addon
        assert (chain.target_bone, chain.pole_bone) == names


# ---- scenes


@pytest.mark.parametrize("kind", ["LINK_COPY", "FULL_COPY"])
def test_a_copy_of_the_scene_is_solved_too(kind: str) -> None:
    ob, _fk, expected = keyed_arm()
    bpy.ops.scene.new(type=kind)
    copy = bpy.context.scene
    other = only_armature()
    assert (other == ob) == (kind == "LINK_COPY")
    if kind == "FULL_COPY":
        target = other.pose.bones["lower"].ik_addon.target
        assert target.name in copy.objects
        assert target != ob.pose.bones["lower"].ik_addon.target
    assert not apart(poses(other), expected)
    bpy.context.window.scene = bpy.data.scenes[0] if bpy.data.scenes[0] != copy else bpy.data.scenes[1]
    assert not apart(poses(ob), expected)


def test_a_rig_pasted_from_the_clipboard_is_live() -> None:
    ob, _fk, expected = keyed_arm()
    rigs.select(ob)
    assert bpy.ops.view3d.copybuffer() == {"FINISHED"}
    new_file()
    assert bpy.ops.view3d.pastebuffer() == {"FINISHED"}
    ob = only_armature()
    target = ob.pose.bones["lower"].ik_addon.target
    if target.name not in bpy.context.scene.objects:
        bpy.context.scene.collection.objects.link(target)
    bpy.context.view_layer.update()
    assert not apart(poses(ob), expected)


def test_a_file_notes_the_layout_of_its_settings_and_a_newer_one_is_solved_with_a_remark(
    addon: Addon, tmp_path: Path
) -> None:
    newer = addon.module("core.settings").LAYOUT + 3
    animated_arm()
    rigs.save_and_open(tmp_path / "rig.blend")
    ob = bpy.data.objects["Rig"]
    assert ob.ik_addon.layout == newer - 3
    ob.ik_addon.layout = newer
    rigs.save_and_open(tmp_path / "newer.blend")
    ob = bpy.data.objects["Rig"]
    report = addon.report(ob)
    assert report.reached
    assert "newer version" in report.remarks[0]
    rigs.change(ob.pose.bones["lower"].ik_addon, softness=0.1, planar=True)
    assert ob.ik_addon.layout == newer
