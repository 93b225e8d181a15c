"""Rigs, scenes and names at the limits of what Blender allows."""

import math
import random
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.rigs import apart, poses_at

SOLVED = 1e-5


def reached(ob: bpy.types.Object, tip: str = "lower") -> bool:
    return rigs.miss(ob, tip) < SOLVED


@pytest.mark.parametrize("count", [255, 256, 600])
def test_a_chain_of_many_bones_is_solved(count: int) -> None:
    ob = rigs.armature()
    names = [f"b{i}" for i in range(count)]
    points = [(0.0, 0.1 * math.sin(2.0 * i / count), i / count) for i in range(count + 1)]
    rigs.add_bones(ob, points, names)
    target = rigs.empty("Target", (0.3, 0.2, 0.6))
    rigs.chain(ob, names[-1], target)
    before = rigs.channels(ob)
    rigs.go_live(ob)
    assert reached(ob, names[-1])
    rigs.change(target, location=(-0.2, 0.5, 0.4))
    assert reached(ob, names[-1])
    assert rigs.head(ob, names[0]) == pytest.approx((0, 0, 0), abs=1e-7)
    ob.ik_addon.live = False
    assert np.array_equal(rigs.channels(ob), before)


def comb() -> tuple[bpy.types.Object, list[tuple[str, bpy.types.Object]]]:
    """A live armature of 800 bones in 400 chains, and the tip and target of each chain."""
    ob = rigs.armature()
    with rigs.edit_mode(ob) as bones:
        for i in range(400):
            x = 0.1 * i
            upper, lower = bones.new(f"upper {i}"), bones.new(f"lower {i}")
            upper.head, upper.tail = (x, 0.0, 0.0), (x, -0.1, 0.5)
            lower.head, lower.tail = (x, -0.1, 0.5), (x, 0.0, 1.0)
            lower.parent, lower.use_connect = upper, True
    ob.ik_addon.live = True
    chains = []
    for i in range(400):
        target = rigs.empty(f"Target {i}", (0.1 * i + 0.2, 0.3, 0.7))
        rigs.chain(ob, f"lower {i}", target, 2)
        chains.append((f"lower {i}", target))
    return ob, chains


def test_hundreds_of_chains_in_one_armature_are_solved(addon: Addon) -> None:
    ob, chains = comb()
    before = rigs.channels(ob)
    bpy.context.view_layer.update()
    assert all(addon.report(ob, tip).reached for tip, _target in chains)
    for _tip, target in random.Random(1).sample(chains, 20):
        target.location.z += 0.1
    bpy.context.view_layer.update()
    ends = np.array([ob.pose.bones[tip].tail for tip, _target in chains])
    goals = np.array([target.location for _tip, target in chains])
    assert np.linalg.norm(ends - goals, axis=1).max() < SOLVED
    poses_at(ob, (2, 1))
    ob.ik_addon.live = False
    assert np.array_equal(rigs.channels(ob), before)


# ---- frames and times


@pytest.mark.parametrize("first", [-100_000, 1_048_571])
def test_live_and_baked_at_the_first_and_last_frames_that_blender_allows(first: int) -> None:
    ob, target = rigs.arm()
    scene = bpy.context.scene
    frames = range(first, first + 4)
    rigs.key(target, "location", {frames[0]: (0.6, 0.5, 1.0), frames[-1]: (-0.5, 0.9, 0.8)})
    rigs.key(ob.pose.bones["upper"], "rotation_quaternion", {frames[0]: (1, 0, 0, 0), frames[-1]: (0.9, 0.1, 0.3, 0.0)})
    ob.ik_addon.live = True
    poses = poses_at(ob, frames)
    assert not apart(poses_at(ob, frames[::-1]), poses)
    bpy.context.view_layer.objects.active = ob
    for live in (True, False):
        for frame in frames:
            scene.frame_set(frame)
            assert scene.frame_current == frame
            assert reached(ob)
        if live:
            assert bpy.ops.ik_addon.bake(frame_start=frames[0], frame_end=frames[-1]) == {"FINISHED"}
            ob.ik_addon.live = False


# ---- names

NAMES = {
    "quotes": ["it's", 'the "tip"'],
    "backslashes": ["a\\b", "c\\"],
    "brackets": ['x"]', '["y'],
    "emoji": ["\N{FLEXED BICEPS}", "\N{WAVING HAND SIGN}\N{VARIATION SELECTOR-16}"],
    "63 bytes": ["u" * 63, "l" * 63],
    "63 bytes and cut": ["\N{FLEXED BICEPS}" * 16, "ä" * 40],
    "dots and spaces": [" . ", "..L"],
    "newline": ["a\nb", "\t"],
}


@pytest.mark.parametrize("kind", NAMES)
def test_works_with_names_of_every_kind(kind: str, tmp_path: Any) -> None:
    wanted = NAMES[kind]
    ob = rigs.limb([(0, 0, 0), (0, -0.2, 1), (0, 0, 2)], ["upper", "lower"], name=wanted[0])
    for old, new in zip(("upper", "lower"), wanted, strict=True):
        ob.data.bones[old].name = new
    upper, lower = (bone.name for bone in ob.pose.bones)
    assert upper == wanted[0].encode()[:63].decode(errors="ignore")
    controls = rigs.limb([(0.6, 0.5, 1.0), (0.6, 0.5, 1.5)], ["hand"], name="Controls")
    controls.data.bones["hand"].name = wanted[1]
    rigs.key(controls, "location", {1: (0, 0, 0), 20: (-0.4, 0.3, 0.2)})
    rigs.key(ob.pose.bones[upper], "rotation_quaternion", {1: (0.98, 0.0, 0.17, 0.1)})
    ob.pose.bones[lower].rotation_mode = "XYZ"
    rigs.chain(ob, lower, controls, 2, target_bone=controls.pose.bones[0].name)
    bpy.context.scene.frame_set(9)
    fk = rigs.channels(ob).tobytes()
    ob.ik_addon.live = True

    bpy.context.scene.frame_set(9)
    assert reached(ob, lower)
    rigs.save_and_open(tmp_path / "names.blend")
    ob, controls = (next(o for o in bpy.data.objects if (o.name == "Controls") == is_control) for is_control in (0, 1))
    bpy.context.scene.frame_set(10)
    assert reached(ob, lower)
    bpy.context.scene.frame_set(9)
    assert reached(ob, lower)
    ob.ik_addon.live = False
    assert rigs.channels(ob).tobytes() == fk
    bpy.context.view_layer.objects.active = ob
    assert bpy.ops.ik_addon.bake(frame_start=5, frame_end=9) == {"FINISHED"}
    assert all(rigs.on_frames((5, 9), lambda: reached(ob, lower)).values())
