"""How the joints of three-segment legs and of split thighs fold, found when their chains are set up."""

from __future__ import annotations

import math
from itertools import pairwise

import bpy
import numpy as np
import pytest
from mathutils import Euler, Quaternion, Vector

from tests import rigs, rigs_named
from tests.reliability.states import add
from tests.rigs_named import RIGS

LEG = ["thigh.L", "shin.L", "hind_foot.L"]
HORSE = [(0.1, 0.0, 1.0), (0.1, -0.18, 0.68), (0.1, 0.12, 0.36), (0.1, 0.02, 0.02), (0.1, -0.1, 0.0)]
"""Hip, stifle, hock, fetlock and toe of a leg that faces -Y."""
STRAIGHT = [(0.1, 0.0, z) for z in (1.0, 0.66, 0.33, 0.02)] + [(0.1, -0.1, 0.0)]


def leg(joints: list[tuple[float, float, float]], names: list[str], *, toe: bool = True) -> bpy.types.Object:
    """Build a leg below a body."""
    ob = rigs.armature()
    rigs.add_bones(ob, [(0.1, 0.3, 1.1), (0.1, 0.0, 1.1)], ["hips"])
    rigs.add_bones(ob, joints[: None if toe else -1], [*names, "toe.L"] if toe else names)
    with rigs.edit_mode(ob) as bones:
        bones[names[0]].parent = bones["hips"]
    return ob


def folds(ob: bpy.types.Object, chain: list[str]) -> list[float]:
    """Return the folds stored for the joints of a chain, from the second bone on."""
    return list(ob.pose.bones[chain[-1]].ik_addon.folds)[: len(chain) - 1][::-1]


def bends(ob: bpy.types.Object, chain: list[str]) -> np.ndarray:
    """Return the angles of a chain's joints about X in degrees: positive where the end of the leg goes back."""
    joints = [Vector(rigs.head(ob, name)) for name in chain] + [Vector(rigs.tail(ob, chain[-1]))]
    steps = [b - a for a, b in pairwise(joints)]
    return np.degrees([math.atan2(a.cross(b).x, a.dot(b)) for a, b in pairwise(steps)])


def lower(ob: bpy.types.Object, part: float, size: float) -> None:
    """Lower the body by a share of the length of its leg."""
    ob.pose.bones["hips"].matrix_basis.identity()
    bpy.context.view_layer.update()
    matrix = ob.pose.bones["hips"].matrix.copy()
    matrix.translation.z -= part * size
    ob.pose.bones["hips"].matrix = matrix
    bpy.context.view_layer.update()


@pytest.mark.parametrize("pole", [False, True], ids=["no pole", "pole"])
@pytest.mark.parametrize("preset", [False, True], ids=["plain", "limits"])
def test_stifle_and_hock_stay_on_their_sides_down_to_40_percent(pole: bool, preset: bool) -> None:
    ob = leg(HORSE, LEG)
    add(ob, LEG[-1], tip=LEG[-1], chain_length=3, with_pole=pole, live=True)
    assert (ob.pose.bones[LEG[-1]].ik_addon.pole is not None) == pole
    if preset:
        for name, low, high in ((LEG[1], -30, 120), (LEG[2], -120, 30)):
            bone = ob.pose.bones[name]
            bone.use_ik_limit_x, bone.ik_min_x, bone.ik_max_x = True, math.radians(low), math.radians(high)
            bone.lock_ik_y = bone.lock_ik_z = True
    at_rest = bends(ob, LEG)
    assert at_rest[0] > 20.0
    assert at_rest[1] < -20.0
    size = math.fsum(ob.data.bones[name].length for name in LEG)
    place = rigs.position(ob.pose.bones[LEG[-1]].ik_addon.target)
    last = at_rest
    for part in np.linspace(0.0, 0.55, 12):
        lower(ob, float(part), size)
        now = bends(ob, LEG)
        assert np.abs(rigs.tail(ob, LEG[-1]) - place).max() < 1e-5
        assert now[0] >= last[0] - 0.1
        assert now[1] <= last[1] + 0.1
        assert np.abs(now - last).max() < 30.0
        assert rigs.head(ob, LEG[1])[0] == pytest.approx(0.1, abs=1e-4), "the leg stays in its plane"
        last = now


def test_going_live_moves_nothing() -> None:
    ob = leg(HORSE, LEG)
    before = rigs.pose(ob)
    add(ob, LEG[-1], tip=LEG[-1], chain_length=3, live=True)
    bpy.context.view_layer.update()
    assert np.abs(rigs.pose(ob) - before).max() < 1e-6


def test_bend_shares_are_those_of_the_rest_pose() -> None:
    ob = leg(HORSE, LEG)
    add(ob, LEG[-1], tip=LEG[-1], chain_length=3)
    angles = np.tan(np.radians(bends(ob, LEG)) / 2.0)
    assert folds(ob, LEG) == pytest.approx((angles / np.abs(angles).max()).tolist(), abs=1e-5)


def test_a_straight_leg_folds_as_animated_or_else_to_alternate_sides() -> None:
    ob = leg(STRAIGHT, LEG)
    add(ob, LEG[-1], tip=LEG[-1], chain_length=3)
    assert folds(ob, LEG) == [1.0, -1.0]
    ob = leg(STRAIGHT, LEG)
    for frame, angle in ((1, 0.0), (10, -40.0)):
        for name in LEG[1:]:
            bone = ob.pose.bones[name]
            bone.rotation_mode = "XYZ"
            bone.rotation_euler = Euler((math.radians(angle), 0.0, 0.0))
            bone.keyframe_insert("rotation_euler", frame=frame)
    bpy.context.scene.frame_set(1)
    add(ob, LEG[-1], tip=LEG[-1], chain_length=3)
    assert not any(folds(ob, LEG)), "both joints go to one side, so it bends evenly"


def test_legs_are_recognized_without_names() -> None:
    """In an insect's leg, the first joint goes up and the next one down."""
    insect = [(0.0, 0.0, 0.0), (0.3, 0.0, 0.2), (0.7, 0.0, -0.2), (0.9, 0.0, -0.1)]
    ob = rigs.armature()
    rigs.add_bones(ob, insect, list("abc"))
    add(ob, "c", tip="c", chain_length=3)
    assert any(ob.pose.bones["c"].ik_addon.bend_side)
    first, second = folds(ob, list("abc"))
    assert first * second < 0.0
    tail = rigs.armature("Tail")
    rigs.add_bones(tail, [(0.0, 0.0, 0.0), (0.3, 0.0, 0.01), (0.6, 0.0, -0.01), (0.9, 0.0, 0.0)], list("abc"))
    add(tail, "c", tip="c", chain_length=3)
    assert tail.pose.bones["c"].ik_addon.bends_both_ways
    assert not any(folds(tail, list("abc")))


def turn(ob: bpy.types.Object, bone: str) -> Quaternion:
    """Return a bone's rotation from rest, in armature space."""
    posed: Quaternion = rigs.evaluated(ob).pose.bones[bone].matrix.to_quaternion()
    return posed @ ob.data.bones[bone].matrix_local.to_quaternion().inverted()


@pytest.mark.parametrize("name", ["MakeHuman", "Daz", "Advanced Skeleton", "MMD"])
@pytest.mark.parametrize("is_straight", [False, True], ids=["bent", "straight"])
def test_thighs_of_two_bones_are_one_segment(name: str, is_straight: bool) -> None:
    ob = rigs_named.build(RIGS[name], is_straight=is_straight)
    chains = [chain for chain in rigs_named.limbs(RIGS[name], ob) if len(chain) > 2]
    assert chains
    for chain in chains:
        add(ob, chain[0], live=True)
        found = folds(ob, chain)
        assert [share for share in found if share] == [1.0], "the knee alone"
        at = found.index(1.0) + 1
        goal = ob.pose.bones[chain[-1]].ik_addon.target
        place, root = Vector(rigs.position(goal)), Vector(rigs.head(ob, chain[0]))
        for part in (0.002, 0.1, 0.5):
            goal.location = place.lerp(root, part)
            bpy.context.view_layer.update()
            assert (Vector(rigs.tail(ob, chain[-1])) - goal.location).length < 1e-5
            for half in (chain[:at], chain[at:]):
                for bone in half[1:]:
                    angle = turn(ob, half[0]).rotation_difference(turn(ob, bone)).angle
                    assert min(angle, 2.0 * math.pi - angle) < 1e-3, (bone, part)
