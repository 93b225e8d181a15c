"""Poles made by Add Chain follow the body."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix

from tests import rigs, rigs_named
from tests.reliability.states import add
from tests.rigs_named import RIGS

TURNED = Matrix.LocRotScale((3.0, -2.0, 1.0), Euler((0.4, -1.1, 2.0)), (1.5, 1.5, 1.5))


def leg(matrix: Matrix | None = None) -> bpy.types.Object:
    """Return Manny with a chain on his left leg."""
    ob = rigs_named.build(RIGS["Manny"])
    rigs.change(ob, matrix_world=matrix or Matrix.Identity(4))
    add(ob, "calf_l")
    return ob


def seen_from(ob: bpy.types.Object, bone: str, goal: bpy.types.Object) -> np.ndarray:
    """Return the place of a goal relative to a bone."""
    pose_bone = rigs.evaluated(ob).pose.bones[bone]
    return np.array((ob.matrix_world @ pose_bone.matrix).inverted() @ rigs.evaluated(goal).matrix_world.translation)


@pytest.mark.parametrize("matrix", [None, TURNED])
def test_the_pole_follows_the_pelvis(matrix: Matrix | None) -> None:
    ob = leg(matrix)
    pole = ob.pose.bones["calf_l"].ik_addon.pole
    at_rest = rigs.pose(ob)
    rigs.go_live(ob)
    assert np.abs(rigs.pose(ob) - at_rest).max() < 2e-5, "going live moves nothing"
    ob.ik_addon.live = False
    before = seen_from(ob, "pelvis", pole)
    knee = rigs.head(ob, "calf_l")
    line = rigs.tail(ob, "calf_l") - rigs.head(ob, "thigh_l")
    assert abs((rigs.position(pole) - knee) @ line) < 0.1 * np.linalg.norm(line) ** 2, "beside the knee"
    ob.pose.bones["pelvis"].rotation_quaternion = Euler((0.3, -0.5, 0.9)).to_quaternion()
    rigs.change(ob.pose.bones["root"], location=(0.2, 0.4, -0.3))
    assert pole.parent_bone == "pelvis"
    assert seen_from(ob, "pelvis", pole) == pytest.approx(before, abs=1e-5)


def test_the_mirrored_pole_is_parented_too() -> None:
    ob = leg(TURNED)
    bpy.ops.ik_addon.mirror_chain()
    pole, mirrored = (ob.pose.bones[f"calf_{side}"].ik_addon.pole for side in "lr")
    assert mirrored.parent_bone == "pelvis"
    to_object = ob.matrix_world.inverted()
    there = np.array(to_object @ rigs.evaluated(mirrored).matrix_world.translation)
    here = np.array(to_object @ rigs.evaluated(pole).matrix_world.translation)
    assert there == pytest.approx(here * (-1.0, 1.0, 1.0), abs=1e-5)


def test_a_chain_at_the_top_leaves_its_pole_without_a_parent() -> None:
    ob, _target = rigs.arm()
    ob.pose.bones["lower"].ik_addon.is_chain = False
    add(ob, "lower")
    assert ob.pose.bones["lower"].ik_addon.pole.parent is None


def test_a_pole_is_not_parented_to_bones_solved_with_its_chain() -> None:
    ob = rigs.limb(rigs.bent(5), list("abcde"))
    for tip in "de":
        add(ob, tip, tip=tip, chain_length=2)
    poles = [ob.pose.bones[tip].ik_addon.pole.parent_bone for tip in "de"]
    assert poles == ["b", "b"], "'c' is a bone of the first chain, which shares 'd' with the second"
    assert bpy.ops.ik_addon.solve() == {"FINISHED"}
