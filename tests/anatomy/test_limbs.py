"""Animal legs: which bones they have, and how they fold, whichever of their bones is clicked."""

from __future__ import annotations

import math
from itertools import pairwise

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Vector

from tests import rigs, rigs_named
from tests.conftest import Addon
from tests.reliability.states import activate
from tests.rigs_generated import armature_of, rigify
from tests.rigs_named import ANIMALS

__all__ = ["rigify"]


def found_from(addon: Addon, ob: bpy.types.Object, bone: str) -> list[str]:
    figure = addon.module("anatomy.figure").Figure.of(ob)
    ends = addon.module("anatomy.chain_ends").find(figure, figure.names.index(bone))
    return [figure.names[i] for i in figure.row(*ends)]


@pytest.mark.parametrize("name", ANIMALS)
def test_every_bone_of_a_leg_gives_the_same_chain(addon: Addon, name: str) -> None:
    ob = rigs_named.build(ANIMALS[name])
    for chain, meant in rigs_named.both(ANIMALS[name]):
        for bone in meant:
            assert found_from(addon, ob, bone) == chain, f"from '{bone}'"


@pytest.mark.parametrize("point", [(0.1, -0.13, 0.02), (0.1, -0.09, 0.02), (0.1, 0.0, -0.1), (0.1, 0.0, -0.3)])
def test_a_human_stands_on_its_soles_however_its_feet_point(addon: Addon, point: tuple[float, float, float]) -> None:
    """Feet are flat, on high heels, or straight down as in much motion capture."""
    human = rigs_named.NamedRig(("l", "r"), rigs_named.RIGS["Manny"].bones, {}, {"ball": point})
    ob = rigs_named.build(human)
    assert found_from(addon, ob, "foot_l") == ["thigh_l", "calf_l"]


def bends(ob: bpy.types.Object, chain: list[str]) -> np.ndarray:
    """Return the angles of a leg's joints about X, in degrees."""
    joints = [Vector(rigs.head(ob, name)) for name in chain] + [Vector(rigs.tail(ob, chain[-1]))]
    steps = [b - a for a, b in pairwise(joints)]
    return np.degrees([math.copysign(a.angle(b), a.cross(b).x) for a, b in pairwise(steps)])


def lowered(ob: bpy.types.Object, bone: str, by: float) -> None:
    pose = ob.pose.bones[bone]
    pose.matrix = Matrix.Translation((0.0, 0.0, -by)) @ pose.bone.matrix_local
    bpy.context.view_layer.update()


LEGS = (
    ("horse", "r_hoof.L", "spine.001", 3, False),
    ("horse", "shoulder.L", "spine.001", 3, True),
    ("wolf", "toe.L", "spine.004", 3, True),
    ("wolf", "front_shin.L", "spine.004", 3, False),
    ("cat", "thigh.L", "spine", 3, False),
    ("cat", "hand.L", "spine", 2, True),
    ("bird", "foot.L", "spine.003", 2, False),
    ("own horse", "Left_Tibia", "Pelvis", 3, True),
    ("own horse", "Left_Scapula", "Pelvis", 3, False),
    ("own dog", "foot_l", "pelvis", 3, True),
)


@pytest.mark.usefixtures("rigify")
@pytest.mark.parametrize(("kind", "bone", "body", "count", "pole"), LEGS)
def test_joints_keep_their_sides_down_to_40_percent_and_the_foot_stays(
    kind: str, bone: str, body: str, count: int, pole: bool
) -> None:
    ob = rigs_named.build(ANIMALS[kind[4:]]) if kind.startswith("own ") else armature_of(kind)
    before = rigs.pose(ob)
    activate(ob, bone)
    assert bpy.ops.ik_addon.chain_add(with_pole=pole, live=True) == {"FINISHED"}
    (tip,) = [own for own in ob.pose.bones if own.ik_addon.is_chain]
    chain = [above.name for above in [tip, *tip.parent_recursive][: tip.ik_addon.chain_length]][::-1]
    assert len(chain) == count
    bpy.context.view_layer.update()
    size = math.fsum(ob.data.bones[name].length for name in chain)
    assert np.abs(rigs.pose(ob) - before).max() < 1e-6 * size
    assert (tip.ik_addon.pole is not None) == pole
    end = rigs.evaluated(ob).pose.bones[tip.ik_addon.end_bone].matrix.copy()
    last = signs = bends(ob, chain)
    for part in np.linspace(0.0, 0.55, 12):
        lowered(ob, body, float(part) * size)
        now = bends(ob, chain)
        assert (now * signs >= 0.0).all(), (part, now)
        assert (np.abs(now) > np.abs(last) - 0.1).all()
        foot = rigs.evaluated(ob).pose.bones[tip.ik_addon.end_bone].matrix
        assert (foot.translation - end.translation).length < 1e-5 * size
        assert np.abs(np.array(foot.to_3x3()) - np.array(end.to_3x3())).max() < 1e-5
        last = now


def test_a_straight_carpus_folds_away_from_the_elbow() -> None:
    ob = rigs_named.build(ANIMALS["horse"])
    activate(ob, "Left_Radius")
    bpy.ops.ik_addon.chain_add(live=True)
    shares = list(ob.pose.bones["Left_Metacarpus"].ik_addon.folds)[:2][::-1]
    assert shares[0] == 1.0
    assert shares[1] == -0.5
