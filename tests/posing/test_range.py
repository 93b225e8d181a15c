"""Pose Body over a range of frames: the drag is added to the keys around it, and what is pinned holds there."""

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Vector
from numpy.typing import NDArray

from tests import motions, recorded, rigs
from tests.conftest import Capture
from tests.reliability.states import activate, said

FEET = ("LeftFoot", "RightFoot")
REACH = 20
DRAGS = (
    ("Hips", 232, (0.0128, 0.0451, -0.0174)),
    ("Hips", 104, (-0.01, 0.05, 0.015)),
    ("Hips", 244, (0.04, 0.02, -0.025)),
    ("LeftHand", 103, (-0.03, -0.16, -0.06)),
)
"""Bones of the recorded walk, frames, and how far they are dragged, in lengths of a leg."""
Poses = NDArray[np.float64]


def poses(ob: bpy.types.Object, frames: Iterable[float]) -> Poses:
    """Return the evaluated pose matrices (F, n, 4, 4) on frames."""
    here, found = bpy.context.scene.frame_current, []
    for frame in frames:
        bpy.context.scene.frame_set(int(frame), subframe=frame % 1.0)
        found.append([np.array(bone.matrix) for bone in rigs.evaluated(ob).pose.bones])
    bpy.context.scene.frame_set(here)
    return np.array(found, dtype=np.float64)


def keys(ob: bpy.types.Object) -> dict[tuple[str, int], NDArray[np.float64]]:
    """Return frames and values (K, 2) of the keys of each F-curve."""
    return {
        (curve.data_path, curve.array_index): np.array([key.co[:] for key in curve.keyframe_points])
        for curve in rigs.fcurves(ob)
    }


def angles(one: Poses, other: Poses) -> Poses:
    """Return the angles (...) between orientations (..., 4, 4)."""
    traces = np.einsum("...ij,...ij->...", one[..., :3, :3], other[..., :3, :3])
    return np.arccos(np.clip(0.5 * (traces - 1.0), -1.0, 1.0))


def leg_of(ob: bpy.types.Object) -> float:
    return float(ob.pose.bones["LeftUpLeg"].length + ob.pose.bones["LeftLeg"].length)


def thin(ob: bpy.types.Object, step: int) -> None:
    """Keep a smooth key on every `step`-th frame, as in a blocked clip."""
    for curve in rigs.fcurves(ob):
        for key in reversed(curve.keyframe_points):
            if round(key.co.x) % step:
                curve.keyframe_points.remove(key)
            else:
                key.interpolation = "BEZIER"
        curve.update()


@pytest.fixture
def run(tmp_path: Path) -> bpy.types.Object:
    """Return a figure that runs, with a key on every frame."""
    importlib.import_module("addon_utils").enable("io_anim_bvh")
    bpy.ops.import_anim.bvh(filepath=str(motions.write("run", tmp_path / "run.bvh")))
    ob: Any = bpy.context.object
    return ob


@pytest.mark.parametrize("seed", range(4))
def test_the_recorded_walk_keeps_its_steps(seed: int) -> None:
    ob, random = recorded.walk(), np.random.default_rng(seed)
    names, leg = [bone.name for bone in ob.pose.bones], leg_of(ob)
    feet = [names.index(foot) for foot in FEET]
    for bone, size in (("Hips", 0.05), ("LeftHand", 0.25)):
        now = int(random.integers(60, 400))
        frames = range(now - REACH - 2, now + REACH + 3)
        activate(ob, bone)
        bpy.context.scene.frame_set(now)
        before, old = poses(ob, frames), keys(ob)
        offset = Vector(random.normal(size=3)).normalized() * size * leg
        bpy.ops.ik_addon.pose_body(bone=bone, offset=offset, range=REACH)
        bpy.context.view_layer.update()
        dragged = np.array([np.array(own.matrix) for own in rigs.evaluated(ob).pose.bones])
        after, here = poses(ob, frames), REACH + 2
        assert np.abs(after[here] - dragged).max() < 1e-6 * leg
        assert np.linalg.norm(dragged[names.index(bone), :3, 3] - before[here, names.index(bone), :3, 3]) > 0.02 * leg
        assert np.abs(after[here + 5] - before[here + 5]).max() > 0.01 * leg, "neighbors follow"
        assert np.linalg.norm((after - before)[:, feet][..., :3, 3], axis=-1).max() < 1e-4 * leg
        assert angles(after[:, feet], before[:, feet]).max() < 2e-3
        faster = angles(after[1:], after[:-1]) - angles(before[1:], before[:-1])
        assert faster.max() < 1.5 / REACH * angles(dragged, before[here]).max()
        for name, own in keys(ob).items():
            outside = np.abs(old[name][:, 0] - now) >= REACH
            assert own.shape == old[name].shape, "no new key"
            assert (own[outside] == old[name][outside]).all()


@pytest.mark.parametrize("is_dense", [False, True])
def test_between_sparse_keys_the_slip_is_reported(run: bpy.types.Object, capfd: Capture, is_dense: bool) -> None:
    thin(run, 8)
    names, leg, frames = [bone.name for bone in run.pose.bones], leg_of(run), range(4, 53)
    feet = [names.index(foot) for foot in FEET]
    activate(run, "Hips")
    bpy.context.scene.frame_set(28)
    before = poses(run, frames)
    options = {"bone": "Hips", "offset": (0.03 * leg, 0.0, -0.05 * leg), "range": 20, "every_frame": is_dense}
    report = said(capfd, bpy.ops.ik_addon.pose_body, **options)
    after = poses(run, frames)
    slips = np.linalg.norm((after - before)[:, feet][..., :3, 3], axis=-1).max(axis=1) / leg
    keyed = [frame in {8, 16, 24, 28, 32, 40, 48} for frame in frames]
    assert slips[keyed].max() < 1e-4
    assert ("slips" in report) is not is_dense
    assert slips.max() < 1e-4 if is_dense else slips.max() > 1e-3
    assert is_dense == (min(np.diff(own[:, 0]).min() for own in keys(run).values()) == 1.0), "one key a frame"


@pytest.mark.parametrize("bone", ["Hips", "LeftHand"])
def test_what_live_chains_hold_stays(run: bpy.types.Object, bone: str) -> None:
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, motions.FRAMES
    bpy.ops.ik_addon.character_setup(live=False, with_presets=False)
    bpy.ops.ik_addon.snap_target(chains="ALL", frame_range="SCENE")
    run.ik_addon.live = True
    names, leg, frames = [own.name for own in run.pose.bones], leg_of(run), range(6, 55)
    activate(run, bone)
    bpy.context.scene.frame_set(30)
    before = poses(run, frames)
    size = {"Hips": 0.05, "LeftHand": 0.25}[bone]
    bpy.ops.ik_addon.pose_body(bone=bone, offset=(0.6 * size * leg, 0.0, -0.8 * size * leg), range=REACH)
    bpy.context.view_layer.update()
    dragged = np.array([np.array(own.matrix) for own in rigs.evaluated(run).pose.bones])
    after = poses(run, frames)
    moved = np.linalg.norm((after - before)[:, :, :3, 3], axis=-1) / leg
    feet, own = [names.index(foot) for foot in FEET], names.index(bone)
    assert moved[:, feet].max() < 1e-4
    assert np.abs(after[24] - dragged).max() < 1e-6 * leg
    assert moved[[4, 44], own].max() < 1e-5
    assert moved[24, own] > 0.04
    assert moved[14, own] == pytest.approx(0.5 * moved[24, own], rel=0.2)


@pytest.fixture
def live_walk() -> bpy.types.Object:
    """Return the recorded walk, set up as a live character; in every step a leg is exactly straight."""
    ob = recorded.walk()
    bpy.ops.ik_addon.character_setup(live=False, with_presets=False)
    bpy.ops.ik_addon.snap_target(chains="ALL", frame_range="SCENE")
    ob.ik_addon.live = True
    return ob


def test_straight_live_legs_turn_no_faster_than_the_edit(live_walk: bpy.types.Object) -> None:
    leg = leg_of(live_walk)
    for bone, now, offset in DRAGS:
        frames = range(now - REACH, now + REACH + 1)
        activate(live_walk, bone)
        bpy.context.scene.frame_set(now)
        before = poses(live_walk, frames)
        bpy.ops.ik_addon.pose_body(bone=bone, offset=leg * Vector(offset), range=REACH)
        after = poses(live_walk, frames)
        faster = angles(after[1:], after[:-1]) - angles(before[1:], before[:-1])
        assert faster.max() < 1.2 * 1.5 / REACH * angles(after[REACH], before[REACH]).max(), (bone, now)
        between = poses(live_walk, [frame + 0.5 for frame in frames[:-1]])
        way = angles(after[:-1], between) + angles(between, after[1:])
        assert way.max() < np.radians(60.0), "live legs don't roll between frames"
