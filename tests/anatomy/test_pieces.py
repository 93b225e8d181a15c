"""Limbs on rigs without meaningful names: found by shape, even if each half is several bones."""

from __future__ import annotations

import bpy
import pytest
from mathutils import Euler

from tests import rigs, rigs_named
from tests.anatomy.test_chain_ends import added, assert_found, meant
from tests.reliability.states import activate
from tests.rigs_named import RIGS

TURNS = {"standing": Euler(), "lying": Euler((-1.5708, 0.0, 0.0)), "askew": Euler((0.4, 1.1, -2.0))}
FOOT = {"Daz": ("Foot", "Hand"), "MakeHuman": ("foot", "wrist")}
"""Rigs whose limbs are in pieces, and what the names of their hands and feet contain."""


def nameless(ob: bpy.types.Object) -> dict[str, str]:
    """Rename the bones of a rig to numbers; return the numbers by old name."""
    found = {}
    for i, bone in enumerate(ob.data.bones):
        found[bone.name] = f"Bone.{i:03}"
        bone.name = found[bone.name]
    return found


@pytest.mark.parametrize("name", ["Mixamo", "VRM", "SMPL"])
def test_two_long_bones_are_a_limb(name: str) -> None:
    ob = rigs_named.build(RIGS[name])
    limbs = rigs_named.limbs(RIGS[name], ob)
    numbers = nameless(ob)
    for limb in limbs:
        assert_found(ob, [numbers[bone] for bone in limb])


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("is_straight", [False, True], ids=["bent", "straight"])
@pytest.mark.parametrize("name", FOOT)
def test_two_bones_in_line_are_one_half_and_fold_only_between_the_halves(
    name: str, is_straight: bool, turn: str
) -> None:
    ob = rigs_named.build(RIGS[name], is_straight=is_straight, turn=TURNS[turn].to_matrix().to_4x4())
    limbs = [limb for limb in rigs_named.both(RIGS[name]) if any(part in " ".join(limb[1]) for part in FOOT[name])]
    limbs = [limb for limb in limbs if len(limb[0]) > 2 and "humb" not in limb[0][0]]
    numbers = nameless(ob)
    assert len(limbs) == 4
    found = meant(ob)
    for limb, also in limbs:
        chain = [numbers[bone] for bone in limb]
        (end,) = [bone for bone in also if any(part in bone for part in FOOT[name])]
        for bone in (*limb, end):
            assert found(numbers[bone]) == chain, f"from '{bone}'"
        activate(ob, chain[0])
        bpy.ops.ik_addon.chain_add()
        settings = ob.pose.bones[chain[-1]].ik_addon
        assert settings.end_bone == numbers[end]
        assert settings.pole is not None
        lower = 2 if len(limb) == 4 else 1  # a Daz thigh is two bones, its shin is one
        assert [joint for joint, share in enumerate(settings.folds, 1) if share] == [lower], "counted from the tip"
        bpy.ops.ik_addon.chain_remove()


@pytest.mark.parametrize("name", RIGS)
def test_spines_fingers_and_tails_are_not_limbs(name: str) -> None:
    ob = rigs_named.build(RIGS[name])
    others = [chain for chain, _ in rigs_named.both(RIGS[name]) if chain not in rigs_named.limbs(RIGS[name], ob)]
    numbers = nameless(ob)
    for bones in others:
        for bone in bones:
            activate(ob, numbers[bone])
            bpy.ops.ik_addon.chain_add()
            (tip,) = [own for own in ob.pose.bones if own.ik_addon.is_chain]
            assert not any(tip.ik_addon.folds), bone
            bpy.ops.ik_addon.chain_remove()


def test_a_tail_of_equal_bones_is_a_tail() -> None:
    ob = rigs.armature()
    rigs.add_bones(ob, rigs.straight(6), [f"Bone.{i:03}" for i in range(6)])
    for i in range(6):
        assert len(added(ob, f"Bone.{i:03}")) == 6
