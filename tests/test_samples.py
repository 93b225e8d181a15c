"""The sample files, as somebody opens them."""

from __future__ import annotations

import random
from pathlib import Path

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.rig.test_limits import ALLOWED
from tests.rig.test_limits import beyond as beyond_limits
from tools import blender

FOLDER = Path(__file__).resolve().parents[1] / "sample_blends"
ARM, TENTACLE, TORSO, FINGER = "two_bone_arm", "tentacle", "torso_tree", "finger_limits"
BONES = {ARM: 2, TENTACLE: 24, TORSO: 11, FINGER: 4}
CHAINS = {
    "Arm": {"forearm": (2, "Target")},
    "Tentacle": {"tentacle.24": (24, "Target")},
    "Torso": {
        "head": (5, "Target head"),
        "forearm.L": (6, "Target forearm.L"),
        "forearm.R": (6, "Target forearm.R"),
    },
    "Finger": {"finger.3": (3, "Target")},
}
"""By armature, for each tip bone: how many bones the chain has, and its target."""
SOLVED = 1e-5
"""Of a chain's length."""


def open_sample(name: str) -> bpy.types.Object:
    """Open a sample and return its armature."""
    return open_file(FOLDER / f"{name}.blend")


def open_file(path: Path) -> bpy.types.Object:
    """Open a file and return its one armature."""
    bpy.ops.wm.open_mainfile(filepath=str(path))
    (rig,) = (ob for ob in bpy.context.scene.objects if ob.type == "ARMATURE")
    return rig


def frames() -> range:
    """All frames of the open file."""
    return range(bpy.context.scene.frame_start, bpy.context.scene.frame_end + 1)


def miss(rig: bpy.types.Object) -> float:
    """Largest distance from a tip to its target, in chain lengths."""
    found = []
    for tip, (count, target) in CHAINS[rig.name].items():
        distance = np.linalg.norm(rigs.tail(rig, tip) - rigs.position(bpy.data.objects[target]))
        found.append(float(distance) / rigs.length(rig, tip, count))
    return max(found)


def reach(rig: bpy.types.Object) -> float:
    """Distance from the arm's root to the target, in chain lengths."""
    distance = np.linalg.norm(rigs.head(rig, "upper_arm") - rigs.position(bpy.data.objects["Target"]))
    return float(distance) / rigs.length(rig, "forearm", 2)


@pytest.mark.parametrize("name", BONES)
def test_sample_is_small_and_shows_what_it_says(name: str) -> None:
    assert (FOLDER / f"{name}.blend").stat().st_size < 500_000
    rig = open_sample(name)
    assert rig.ik_addon.live
    assert len(rig.pose.bones) == BONES[name]
    assert bpy.context.scene.camera
    (body,) = (ob for ob in bpy.context.scene.objects if ob.find_armature() == rig)
    assert {group.name for group in body.vertex_groups} == set(rig.pose.bones.keys())


@pytest.mark.parametrize("name", [TENTACLE, TORSO, FINGER])
def test_tips_stay_on_their_targets(name: str) -> None:
    rig = open_sample(name)
    for frame in frames():
        bpy.context.scene.frame_set(frame)
        assert miss(rig) < SOLVED, f"frame {frame}"


def test_arm_reaches_what_it_can_and_eases_towards_the_rest() -> None:
    rig = open_sample(ARM)
    softness = rig.pose.bones["forearm"].ik_addon.softness
    assert softness > 0.0
    beyond, elbows = [], []
    for frame in frames():
        bpy.context.scene.frame_set(frame)
        if reach(rig) <= 1.0 - softness:
            assert miss(rig) < SOLVED, f"frame {frame}"
        else:
            beyond.append(frame)
            root, target = rigs.head(rig, "upper_arm"), rigs.position(bpy.data.objects["Target"])
            arm = rigs.tail(rig, "forearm") - root
            assert np.linalg.norm(arm) < rigs.length(rig, "forearm", 2), f"frame {frame}: softness keeps it bent"
            direction = (target - root) / np.linalg.norm(target - root)
            assert np.linalg.norm(arm) * direction == pytest.approx(arm, abs=1e-5), f"frame {frame}"
        elbows.append(rigs.head(rig, "forearm"))
    assert beyond
    assert any(frame not in beyond for frame in range(beyond[-1], frames()[-1])), "it comes back"
    assert np.linalg.norm(np.diff(elbows, axis=0), axis=1).max() < 0.1, "the elbow does not snap"


@pytest.mark.parametrize("name", [TORSO, FINGER])
def test_limits_hold_on_every_frame(name: str) -> None:
    rig = open_sample(name)
    limited = [bone.name for bone in rig.pose.bones if bone.use_ik_limit_x]
    assert len(limited) == BONES[name] - (name == FINGER)
    for frame in frames():
        bpy.context.scene.frame_set(frame)
        for bone in limited:
            assert beyond_limits(rig, bone) < ALLOWED, f"'{bone}' on frame {frame}"


def test_arm_bends_towards_its_pole() -> None:
    rig = open_sample(ARM)
    for frame in frames():
        bpy.context.scene.frame_set(frame)
        root, tail = rigs.head(rig, "upper_arm"), rigs.tail(rig, "forearm")
        line = (tail - root) / np.linalg.norm(tail - root)
        elbow, pole = (
            point - root - (point - root).dot(line) * line
            for point in (rigs.head(rig, "forearm"), rigs.position(bpy.data.objects["Pole"]))
        )
        cosine = elbow.dot(pole) / np.linalg.norm(elbow) / np.linalg.norm(pole)
        assert cosine > 0.999, f"frame {frame}"


@pytest.mark.parametrize("name", BONES)
def test_sample_plays_alike_in_any_order(name: str) -> None:
    rig = open_sample(name)
    poses: dict[int, bytes] = {}
    shuffled = random.Random(7).sample(frames(), len(frames()))
    for order in (frames(), shuffled):
        for frame in order:
            bpy.context.scene.frame_set(frame)
            pose = rigs.pose(rig).tobytes()
            assert poses.setdefault(frame, pose) == pose, f"frame {frame}"
    assert len(set(poses.values())) > 100


@pytest.mark.parametrize("name", BONES)
def test_sample_opens_solved(name: str) -> None:
    rig = open_sample(name)
    assert miss(rig) < SOLVED
    opened = rigs.pose(rig)
    bpy.context.scene.frame_set(bpy.context.scene.frame_current)
    assert opened == pytest.approx(rigs.pose(rig), abs=1e-6)


@pytest.mark.parametrize("name", BONES)
def test_sample_opens_solved_without_the_addon(name: str) -> None:
    blender.disable()
    rig = open_sample(name)
    assert not hasattr(rig, "ik_addon")
    assert miss(rig) < SOLVED


@pytest.mark.parametrize("name", BONES)
def test_sample_that_is_saved_opens_without_the_addon_in_the_same_pose(name: str, tmp_path: Path) -> None:
    rig = open_sample(name)
    bpy.context.scene.frame_set(77)
    saved = rigs.pose(rig)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "saved.blend"), copy=True)
    blender.disable()
    rig = open_file(tmp_path / "saved.blend")
    assert rigs.pose(rig).tobytes() == saved.tobytes()


@pytest.mark.parametrize("name", BONES)
def test_sample_follows_a_target_that_is_dragged(name: str) -> None:
    rig = open_sample(name)
    (_count, target_name), *_ = CHAINS[rig.name].values()
    target = bpy.data.objects[target_name]
    target.animation_data_clear()
    target.location.z -= 0.03
    bpy.context.view_layer.update()
    assert miss(rig) < SOLVED


@pytest.mark.parametrize("name", BONES)
def test_sample_gives_its_rest_pose_back(name: str) -> None:
    rig = open_sample(name)
    rig.ik_addon.live = False
    bpy.context.view_layer.update()
    for bone in rigs.evaluated(rig).pose.bones:
        assert np.array(bone.matrix) == pytest.approx(np.array(bone.bone.matrix_local), abs=1e-6)
