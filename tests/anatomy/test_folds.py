"""How the joints of three-segment legs and of split thighs fold, found when their chains are set up."""

import math
from itertools import pairwise

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Quaternion, Vector

from tests import rigs, rigs_named
from tests.reliability.states import add
from tests.rigs_generated import armature_of
from tests.rigs_named import ANIMALS, RIGS

LEG = ["thigh.L", "shin.L", "hind_foot.L"]
HORSE = [(0.1, 0.0, 1.0), (0.1, -0.18, 0.68), (0.1, 0.12, 0.36), (0.1, 0.02, 0.02), (0.1, -0.1, 0.0)]
"""Hip, stifle, hock, fetlock and toe of a leg that faces -Y."""
STRAIGHT = [(0.1, 0.0, z) for z in (1.0, 0.66, 0.33, 0.02)] + [(0.1, -0.1, 0.0)]


def leg(joints: list[tuple[float, float, float]]) -> bpy.types.Object:
    """Build a leg below a body."""
    ob = rigs.limb([(0.1, 0.3, 1.1), (0.1, 0.0, 1.1)], ["hips"])
    rigs.add_bones(ob, joints, [*LEG, "toe.L"])
    with rigs.edit_mode(ob) as bones:
        bones[LEG[0]].parent = bones["hips"]
    return ob


def folds(ob: bpy.types.Object, chain: list[str]) -> list[float]:
    """Return the folds stored for the joints of a chain, from the second bone on."""
    return list(ob.pose.bones[chain[-1]].ik_addon.folds)[: len(chain) - 1][::-1]


def bends(ob: bpy.types.Object, chain: list[str]) -> np.ndarray:
    """Return the angles of a chain's joints in degrees: positive where the end of the leg goes back."""
    joints = [Vector(rigs.head(ob, name)) for name in chain] + [Vector(rigs.tail(ob, chain[-1]))]
    steps = [b - a for a, b in pairwise(joints)]
    return np.degrees([math.copysign(a.angle(b), a.cross(b).x) for a, b in pairwise(steps)])


HINGES = ((1, -30, 120), (2, -120, 30))
"""Joints of an animal's leg, and their limits about X in degrees, as presets set them."""
LEGS = (
    ("horse", "r_hoof.L", "spine.001", 3, False, False),
    ("horse", "shoulder.L", "spine.001", 3, True, False),
    ("wolf", "toe.L", "spine.004", 3, True, False),
    ("wolf", "toe.L", "spine.004", 3, True, True),
    ("wolf", "toe.L", "spine.004", 3, False, True),
    ("wolf", "front_shin.L", "spine.004", 3, False, False),
    ("cat", "thigh.L", "spine", 3, False, False),
    ("cat", "hand.L", "spine", 2, True, False),
    ("bird", "foot.L", "spine.003", 2, False, False),
    ("own horse", "Left_Tibia", "Pelvis", 3, True, False),
    ("own horse", "Left_Scapula", "Pelvis", 3, False, False),
    ("own dog", "foot_l", "pelvis", 3, True, False),
)
"""An animal, a bone of its leg, its body, the number of bones of the chain, whether with a pole, and with limits."""


def lower(ob: bpy.types.Object, bone: str, by: float) -> None:
    """Lower a body from its place at rest."""
    pose = ob.pose.bones[bone]
    rigs.change(pose, matrix=Matrix.Translation((0.0, 0.0, -by)) @ pose.bone.matrix_local)


@pytest.mark.usefixtures("rigify")
@pytest.mark.parametrize(("kind", "bone", "body", "count", "pole", "limited"), LEGS)
def test_joints_keep_their_sides_down_to_40_percent_and_the_foot_stays(
    kind: str, bone: str, body: str, count: int, pole: bool, limited: bool
) -> None:
    ob = rigs_named.build(ANIMALS[kind[4:]]) if kind.startswith("own ") else armature_of(kind)
    before = rigs.pose(ob)
    add(ob, bone, with_pole=pole, live=True)
    (tip,) = [own for own in ob.pose.bones if own.ik_addon.is_chain]
    chain = [above.name for above in [tip, *tip.parent_recursive][: tip.ik_addon.chain_length]][::-1]
    assert len(chain) == count
    size = math.fsum(ob.data.bones[name].length for name in chain)
    assert np.abs(rigs.pose(ob) - before).max() < 1e-6 * size
    assert (tip.ik_addon.pole is not None) == pole
    for joint, low, high in HINGES if limited else ():
        rigs.limit(ob.pose.bones[chain[joint]], x=(low, high), y=(0, 0), z=(0, 0))
    end = rigs.evaluated(ob).pose.bones[tip.ik_addon.end_bone].matrix.copy()
    last = signs = bends(ob, chain)
    for part in np.linspace(0.0, 0.55, 12):
        lower(ob, body, float(part) * size)
        now = bends(ob, chain)
        assert (now * signs >= 0.0).all(), (part, now)
        assert (np.abs(now) > np.abs(last) - 0.1).all()
        assert np.abs(now - last).max() < 30.0
        foot = rigs.evaluated(ob).pose.bones[tip.ik_addon.end_bone].matrix
        assert (foot.translation - end.translation).length < 1e-5 * size
        assert np.abs(np.array(foot.to_3x3()) - np.array(end.to_3x3())).max() < 1e-5
        last = now


def test_a_straight_carpus_folds_away_from_the_elbow() -> None:
    ob = rigs_named.build(ANIMALS["horse"])
    add(ob, "Left_Radius", live=True)
    assert folds(ob, ["Left_Humerus", "Left_Radius", "Left_Metacarpus"]) == [1.0, -0.5]


def test_bend_shares_are_those_of_the_rest_pose() -> None:
    ob = leg(HORSE)
    add(ob, LEG[-1], tip=LEG[-1], chain_length=3)
    angles = np.tan(np.radians(bends(ob, LEG)) / 2.0)
    assert folds(ob, LEG) == pytest.approx((angles / np.abs(angles).max()).tolist(), abs=1e-5)


def test_a_straight_leg_folds_as_animated_or_else_to_alternate_sides() -> None:
    ob = leg(STRAIGHT)
    add(ob, LEG[-1], tip=LEG[-1], chain_length=3)
    assert folds(ob, LEG) == [1.0, -1.0]
    ob = leg(STRAIGHT)
    for frame, angle in ((1, 0.0), (10, -40.0)):
        for name in LEG[1:]:
            ob.pose.bones[name].rotation_mode = "XYZ"
            rigs.key(ob.pose.bones[name], "rotation_euler", {frame: (math.radians(angle), 0.0, 0.0)})
    bpy.context.scene.frame_set(1)
    add(ob, LEG[-1], tip=LEG[-1], chain_length=3)
    assert not any(folds(ob, LEG)), "both joints go to one side, so it bends evenly"


def test_legs_are_recognized_without_names() -> None:
    """In an insect's leg, the first joint goes up and the next one down."""
    insect = [(0.0, 0.0, 0.0), (0.3, 0.0, 0.2), (0.7, 0.0, -0.2), (0.9, 0.0, -0.1)]
    ob = rigs.limb(insect, list("abc"))
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
            assert (Vector(rigs.tail(ob, chain[-1])) - goal.location).length < 1e-5
            for half in (chain[:at], chain[at:]):
                for bone in half[1:]:
                    angle = turn(ob, half[0]).rotation_difference(turn(ob, bone)).angle
                    assert min(angle, 2.0 * math.pi - angle) < 1e-3, (bone, part)
