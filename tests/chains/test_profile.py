"""Presets of chains: what they do to a limb's joints, and how they are saved and removed."""

import math
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Quaternion

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import activate, add, said, turns

SHIPPED = ("Human_Elbow", "Human_Finger", "Human_Knee", "Human_Spine", "No_Limits", "Tail", "Tentacle")
Limits = dict[str, tuple[float, float] | str]


def file_of(name: str) -> Path:
    find: Any = bpy.utils.preset_find  # the stubs do not know its result
    path = find(name, "ik_addon")
    assert path is not None, name
    return Path(path)


def apply(name: str) -> None:
    assert bpy.ops.ik_addon.preset_apply(filepath=str(file_of(name))) == {"FINISHED"}


def limits(bone: bpy.types.PoseBone) -> Limits:
    """Return the limits by axis: a range in degrees, locked, or free."""
    found: Limits = {}
    for axis in "xyz":
        low, high = (round(math.degrees(getattr(bone, f"ik_{end}_{axis}")), 1) + 0.0 for end in ("min", "max"))
        limited = (low, high) if getattr(bone, f"use_ik_limit_{axis}") else "free"
        found[axis] = "locked" if getattr(bone, f"lock_ik_{axis}") else limited
    return found


def limb(bend: float, roll: float = 0.0, side: float = 1.0) -> bpy.types.Object:
    """Return an arm along X whose forearm points forward (to -Y) by an angle; `bend` and `roll` are in degrees."""
    angle = math.radians(bend)
    hand = (side * (1.5 + math.cos(angle)), -math.sin(angle), 1.0)
    ob = rigs.limb([(0.5 * side, 0, 1), (1.5 * side, 0, 1), hand], ["upper_arm", "forearm"])
    rigs.roll_bones(ob, math.radians(roll))
    add(ob, "forearm")
    return ob


def chained(points: list[Any], names: list[str], bone: str, **options: Any) -> bpy.types.Object:
    """Return bones along points with a chain, added from a bone."""
    ob = rigs.limb(points, names)
    add(ob, bone, **options)
    return ob


def flexion(ob: bpy.types.Object) -> float:
    """Return the evaluated angle of the elbow in degrees; negative if it is bent backward, to +Y."""
    upper, lower = (rigs.tail(ob, name) - rigs.head(ob, name) for name in ("upper_arm", "forearm"))
    turn = upper[0] * lower[1] - upper[1] * lower[0]
    forward = -math.copysign(1.0, turn * upper[0])
    return forward * math.degrees(math.atan2(abs(turn), float(upper @ lower)))


@pytest.mark.parametrize("roll", [0.0, 90.0, 180.0, -90.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_an_elbow_bends_about_its_own_axis(roll: float, side: float) -> None:
    ob = limb(30.0, roll, side)
    apply("Human_Elbow")
    bone = ob.pose.bones["forearm"]
    found = limits(bone)
    bend, other = ("x", "z") if isinstance(found["x"], tuple) else ("z", "x")
    assert found[other] == "locked"
    assert sorted(abs(angle) for angle in found[bend]) == pytest.approx([30.0, 120.0], abs=0.1)
    for end in ("min", "max"):
        angle = getattr(bone, f"ik_{end}_{bend}")
        rigs.change(bone, rotation_quaternion=Quaternion([float(axis == bend) for axis in "xyz"], angle))
        assert min(abs(flexion(ob) - stop) for stop in (0.0, 150.0)) < 0.1, end


@pytest.mark.parametrize("roll", [12.0, 40.0, 102.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_an_arm_whose_elbow_is_at_an_angle_to_its_bend_straightens_without_rolling(roll: float, side: float) -> None:
    ob = limb(22.0, roll, side)
    rest = turns(ob)
    apply("Human_Elbow")
    rigs.go_live(ob)
    np.testing.assert_allclose(turns(ob), rest, atol=1e-5)
    target = ob.pose.bones["forearm"].ik_addon.target
    reach = target.location.x - 0.5 * side
    last = None
    for share in (1.0, 1.01, 1.015, 1.018, 1.02, 1.3):
        rigs.change(target.location, x=0.5 * side + share * reach)
        upper = turns(ob)[0]
        assert last is None or math.degrees(upper.rotation_difference(last).angle) < 9.0
        last = upper
    # The stretched arm also switches to FK and back without a jump.
    there = turns(ob)
    for way in ("FK", "IK"):
        assert bpy.ops.ik_addon.switch_ik_fk(to=way) == {"FINISHED"}
        assert max(a.rotation_difference(b).angle for a, b in zip(there, turns(ob), strict=True)) < 1e-3


@pytest.mark.parametrize("roll", [0.0, 90.0])
def test_a_limited_elbow_never_bends_backwards(roll: float) -> None:
    ob = limb(30.0, roll)
    apply("Human_Elbow")
    target = ob.pose.bones["forearm"].ik_addon.target
    ob.pose.bones["forearm"].ik_addon.pole = None
    for place in ((1.2, 0.9, 1.0), (1.0, -0.8, 1.3), (0.4, 1.0, 0.6), (2.4, 0.1, 1.1), (0.9, 0.5, 1.5)):
        target.location = place
        bpy.ops.ik_addon.solve()
        assert rigs.tail(ob, "forearm") == pytest.approx(rigs.position(target), abs=1e-4)
        hinge, bone = rigs.evaluated(ob).pose.bones["forearm"].matrix_basis.to_quaternion(), ob.pose.bones["forearm"]
        bend, other = "xz" if bone.lock_ik_z else "zx"
        assert abs(getattr(hinge, other)) < 1e-3, "a hinge has one axis"
        angle = 2.0 * math.atan2(getattr(hinge, bend), hinge.w)
        assert getattr(bone, f"ik_min_{bend}") - 1e-3 < angle < getattr(bone, f"ik_max_{bend}") + 1e-3


def test_a_knee_bends_backward_and_its_hip_forward() -> None:
    ob = chained([(0.1, 0, 1), (0.1, -0.05, 0.5), (0.1, 0, 0)], ["thigh.L", "shin.L"], "shin.L")
    apply("Human_Knee")
    for name, angle, forward in (("shin.L", 90.0, False), ("thigh.L", 90.0, True)):
        bone = ob.pose.bones[name]
        found = limits(bone)
        axis = "x" if name == "thigh.L" or found["z"] == "locked" else "z"
        stops = found[axis]
        assert isinstance(stops, tuple)
        wide = math.radians(angle if stops[1] > -stops[0] else -angle)
        rigs.change(bone, rotation_quaternion=Quaternion([float(a == axis) for a in "xyz"], wide))
        went = rigs.tail(ob, name)[1] - rigs.head(ob, name)[1]
        assert bool(went < -0.3) == forward, name
        bone.rotation_quaternion = (1, 0, 0, 0)


def test_bones_outside_the_limb_stay_unchanged() -> None:
    points = [(0, 0, 1), (0, 0, 1.4), (0.2, 0, 1.4), (0.6, 0.05, 1.4), (1.0, 0, 1.4)]
    ob = chained(points, ["chest", "shoulder.L", "upper_arm.L", "forearm.L"], "forearm.L", chain_length=0)
    ob.pose.bones["chest"].lock_ik_y = True
    apply("Human_Elbow")
    assert limits(ob.pose.bones["chest"]) == {"x": "free", "y": "locked", "z": "free"}
    assert limits(ob.pose.bones["upper_arm.L"]) == {"x": "free", "y": "free", "z": "free"}
    assert "locked" in limits(ob.pose.bones["forearm.L"]).values()


def test_a_three_bone_finger_gets_limits() -> None:
    names = ["f_index.01.R", "f_index.02.R", "f_index.03.R"]
    ob = chained([(-1, 0, 1), (-1.4, 0, 1), (-1.7, 0, 0.95), (-1.9, 0, 0.85)], names, names[1])
    apply("Human_Finger")
    for name, count in zip(names, (1, 2, 2), strict=True):
        assert list(limits(ob.pose.bones[name]).values()).count("locked") == count


def test_a_tail_is_stiffest_at_its_root() -> None:
    ob = chained(rigs.straight(9), [f"tail.{i}" for i in range(9)], "tail.4")
    apply("Tail")
    stiff = [ob.pose.bones[f"tail.{i}"].ik_stiffness_x for i in range(9)]
    assert stiff == sorted(stiff, reverse=True)
    assert (round(stiff[0], 2), stiff[-1]) == (0.6, 0.0)
    apply("No_Limits")
    assert all(set(limits(bone).values()) == {"free"} for bone in ob.pose.bones)
    assert all(bone.ik_stiffness_x == 0.0 for bone in ob.pose.bones)


def test_settings_that_a_preset_omits_stay() -> None:
    ob = limb(20.0)
    chain = ob.pose.bones["forearm"].ik_addon
    chain.softness, chain.solver = 0.1, "TWO_BONE"
    apply("Human_Elbow")
    assert (round(chain.softness, 3), chain.solver) == (0.1, "TWO_BONE")
    apply("Tentacle")
    assert chain.solver == "EVEN_BEND"


def test_every_preset_can_be_solved() -> None:
    for name in SHIPPED:
        limb(30.0)
        apply(name)
        assert bpy.ops.ik_addon.solve() == {"FINISHED"}, name


def test_following_the_message_about_a_slanted_hinge_mends_it(capfd: pytest.CaptureFixture[str]) -> None:
    ob = limb(30.0, roll=45.0)
    preset = str(file_of("Human_Elbow"))
    bpy.ops.ik_addon.find_bend_side()
    said_this = said(capfd, bpy.ops.ik_addon.preset_apply, filepath=preset)
    assert "bends up to 45° off the axes of 'forearm'. Recalculate the roll" in said_this
    assert "Recalculate the roll in Edit Mode, press Find Bend Side and apply the preset again" in said_this
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.armature.select_all(action="SELECT")
    bpy.ops.armature.calculate_roll(type="GLOBAL_POS_Z")
    bpy.ops.object.mode_set(mode="POSE")
    activate(ob, "forearm")
    bpy.ops.ik_addon.find_bend_side()
    assert said(capfd, bpy.ops.ik_addon.preset_apply, filepath=preset) == "Info: Applied preset Human Elbow"


def test_bones_without_a_chain_get_the_limits_that_a_chain_would(capfd: pytest.CaptureFixture[str]) -> None:
    ob = limb(30.0)
    upper, lower = (ob.pose.bones[name] for name in ("upper_arm", "forearm"))
    apply("Human_Elbow")
    wanted = limits(upper), limits(lower)
    apply("No_Limits")
    bpy.ops.ik_addon.chain_remove()
    assert limits(lower) != wanted[1]
    bpy.ops.object.mode_set(mode="POSE")
    for bone in ("forearm", "upper_arm"):
        activate(ob, bone)
        capfd.readouterr()
        apply("Human_Elbow")
        assert "Applied preset Human Elbow to 'upper_arm', 'forearm'" in capfd.readouterr().out
        assert (limits(upper), limits(lower)) == wanted
        assert not lower.ik_addon.is_chain
        apply("No_Limits")


def test_live_follows_a_preset_at_once() -> None:
    ob = limb(30.0)
    ob.ik_addon.live = True
    ob.pose.bones["forearm"].ik_addon.pole = None
    rigs.change(ob.pose.bones["forearm"].ik_addon.target, location=(0.8, 0.02, 1.0))
    before = rigs.pose(ob).tobytes()
    apply("Human_Finger")
    assert rigs.pose(ob).tobytes() != before


# ---- the user's own presets


def test_a_users_preset_is_saved_applied_to_the_other_side_and_removed(addon: Addon) -> None:
    ob = rigs.armature()
    for side, x in (("L", 1.0), ("R", -1.0)):
        points = [(0.5 * x, 0, 1), (1.5 * x, 0.2, 1), (2.4 * x, 0, 1.1)]
        rigs.add_bones(ob, points, [f"upper_arm.{side}", f"forearm.{side}"])
        add(ob, f"forearm.{side}")
    activate(ob, "forearm.L")
    apply("Human_Elbow")
    rigs.limit(ob.pose.bones["upper_arm.L"], y=(-10, 70), z=(-20, 50))
    assert bpy.ops.ik_addon.preset_add(name="My Arm") == {"FINISHED"}
    wanted = [limits(ob.pose.bones[f"{name}.L"]) for name in ("upper_arm", "forearm")]

    menu = addon.module("ui.panels.folded")
    assert menu.is_own(menu.IK_ADDON_MT_presets.bl_label)
    apply("No_Limits")
    assert menu.IK_ADDON_MT_presets.bl_label == "No Limits"
    assert not menu.is_own("No Limits"), "the panel offers to remove what the user made, nothing else"
    apply("My_Arm")
    assert [limits(ob.pose.bones[f"{name}.L"]) for name in ("upper_arm", "forearm")] == wanted
    bpy.ops.ik_addon.mirror_chain()
    mirrored = [limits(ob.pose.bones[f"{name}.R"]) for name in ("upper_arm", "forearm")]
    activate(ob, "forearm.R")
    apply("No_Limits")
    apply("My_Arm")
    again = [limits(ob.pose.bones[f"{name}.R"]) for name in ("upper_arm", "forearm")]
    for one, other in zip(again, mirrored, strict=True):
        for axis in "xyz":
            assert one[axis] == pytest.approx(other[axis], abs=0.2) or one[axis] == other[axis], axis

    path = file_of("My_Arm")
    assert path.exists()
    assert bpy.ops.ik_addon.preset_add(name="My Arm", remove_name=True) == {"FINISHED"}
    assert not path.exists()
    assert not menu.is_own(menu.IK_ADDON_MT_presets.bl_label)


def test_shipped_presets_cannot_be_removed(addon: Addon) -> None:
    limb(30.0)
    path = file_of("Tail")
    assert path.parent == addon.module("chains.profile").SHIPPED
    with pytest.raises(RuntimeError, match="'Tail' comes with the extension"):
        bpy.ops.ik_addon.preset_add(name="Tail", remove_name=True)
    assert path.exists()


def test_other_files_are_never_run(tmp_path: Path) -> None:
    limb(30.0)
    file = tmp_path / "other.py"
    file.write_text("raise SystemExit")
    with pytest.raises(RuntimeError, match="is not a chain preset"):
        bpy.ops.ik_addon.preset_apply(filepath=str(file))


JOINT = "joint = profile.joints.add()\n"
WRONG: dict[str, tuple[str, str]] = {
    "code": ("import bpy\nbpy.context.window_manager.ik_addon_profile.joints.add()\nnonsense\n", ""),
    "number in place of a list": ("profile.joints = 5", "line 1: 'joints' can't be 5"),
    "list of a set": (JOINT + "joint.limited = {[1]}", "line 2: 'limited' can't be {[1]}"),
    "unknown names": (JOINT + "joint.locked = {'elbow'}", "line 2: 'locked' can't be {'elbow'}"),
    "text in place of a number": ("profile.iterations = 'many'", "line 1: 'iterations' can't be 'many'"),
    "infinite": (JOINT + "joint.bend = (-1e999, 1)", "line 2: 'bend' can't be (-1e999, 1)"),
    "giant": ("profile.iterations = 1" + "0" * 40, "line 1: 'iterations' can't be 1000"),
    "long text": (f"profile.solver = '{'x' * 300_000}'", "line 1: 'solver' can't be 'xxx"),
    "what cannot be set": ("profile.rna_type = 1", "line 1: 'rna_type' can't be 1"),
    "deep": (f"profile.softness = {'-' * 300_000}1", "it is nested too deeply"),
    "zeros": ("profile.softness = 0\0", "line 1 is not a setting of a preset"),
    "bytes": ("\udcff", "it is not text"),
    "huge": ("# " + "x" * 2_000_000, "it is larger than 1 MB"),
}
"""Contents of preset files, and the messages about them."""


@pytest.mark.parametrize("kind", WRONG)
def test_an_invalid_handmade_preset_is_refused_in_one_sentence(kind: str) -> None:
    ob = limb(30.0)
    apply("Human_Elbow")
    before = [limits(bone) for bone in ob.pose.bones], ob.pose.bones[-1].ik_addon.iterations
    text, expected = WRONG[kind]
    folder = Path(bpy.utils.user_resource("SCRIPTS", path="presets/ik_addon", create=True))
    file = folder / "By Hand.py"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    try:
        with pytest.raises(RuntimeError) as refusal:
            bpy.ops.ik_addon.preset_apply(filepath=str(file))
    finally:
        file.unlink()
    said = str(refusal.value).strip()
    assert said.startswith(f"Error: The preset 'By Hand' can't be read: {expected}")
    assert said.endswith(f". Fix or remove '{file}'")
    assert len(said.splitlines()) == 1
    assert len(said) < 300
    assert ([limits(bone) for bone in ob.pose.bones], ob.pose.bones[-1].ik_addon.iterations) == before


def test_presets_are_found_only_while_the_extension_is_enabled() -> None:
    from tools import blender

    assert bpy.utils.preset_paths("ik_addon")
    blender.disable()
    assert not [path for path in bpy.utils.preset_paths("ik_addon") if "user_default" in path]
