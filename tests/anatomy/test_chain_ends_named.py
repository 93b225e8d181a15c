"""On published rigs, Add Chain finds the same chain from every bone of a limb."""

from __future__ import annotations

import bpy
import pytest

from tests import rigs_named
from tests.anatomy.test_chain_ends import meant
from tests.conftest import Addon
from tests.reliability.states import activate
from tests.rigs_generated import armature_of, rigify
from tests.rigs_named import RIGS

__all__ = ["rigify"]
PUBLISHED = {**RIGS, **rigs_named.GAMES}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_bone_of_a_limb_gives_the_same_chain(addon: Addon, name: str) -> None:
    ob = rigs_named.build(PUBLISHED[name])
    found = meant(ob)
    for chain, known in rigs_named.both(PUBLISHED[name]):
        for bone in known:
            assert found(bone) == chain, f"from '{bone}'"


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_limb_gets_a_pole_however_many_bones_it_has(name: str) -> None:
    ob = rigs_named.build(PUBLISHED[name])
    limbs = rigs_named.limbs(PUBLISHED[name], ob)
    assert len(limbs) == 4
    for chain in limbs:
        activate(ob, chain[0])
        assert bpy.ops.ik_addon.chain_add() == {"FINISHED"}
        assert ob.pose.bones[chain[-1]].ik_addon.pole is not None, chain
        bpy.ops.ik_addon.chain_remove()


@pytest.mark.parametrize("is_straight", [False, True], ids=["bent", "straight"])
@pytest.mark.parametrize("language", rigs_named.FOREIGN)
def test_names_in_other_languages_work(addon: Addon, language: str, is_straight: bool) -> None:
    rig = rigs_named.FOREIGN[language]
    ob = rigs_named.build(rig, is_straight=is_straight)
    found = meant(ob)
    for chain, known in rigs_named.both(rig):
        for bone in (name for name in known if name in chain or language == "German"):
            assert found(bone) == chain, f"from '{bone}'"
        activate(ob, chain[0])
        bpy.ops.ik_addon.chain_add()
        settings = ob.pose.bones[chain[-1]].ik_addon
        assert (settings.end_bone, settings.pole is not None) == (known[-1], True)
        bpy.ops.ik_addon.chain_remove()


# ---- Rigify's animals


ANIMALS = {
    "horse": (
        "spine.003 spine.004 spine.005 < spine.001 spine.002",
        "spine.006 neck.001 neck.002 neck.003 neck.004 head",
        "tail.001 tail.002 tail.003 tail.004 tail.005",
        "upper_arm.L forearm.L forefoot.L < shoulder.L f_toe.L f_hoof.L",
        "thigh.R lower_leg.R hind_foot.R < pelvis.R r_toe.R r_hoof.R",
        "abdomen",
    ),
    "wolf": (
        "spine.006 spine.007 spine.008 < spine.004 spine.005",
        "spine.009 spine.010 spine.011",
        "spine.003 spine.002 spine.001 spine",
        "front_thigh.L front_shin.L front_foot.L < shoulder.L front_toe.L",
        "thigh.L shin.L foot.L < toe.L",
    ),
    "basic_quadruped": (
        "front_thigh.L front_shin.L front_foot.L < shoulder.L front_toe.L",
        "thigh.L shin.L foot.L < toe.L",
    ),
    "cat": (
        "spine.001 spine.002 spine.003 < spine",
        "spine.004 spine.005 spine.006",
        "upper_arm.L forearm.L < shoulder.L hand.L",
        "thigh.L shin.L foot.L < pelvis.L r_toe.L",
        "belly.C",
    ),
    "bird": (
        "spine.005 < spine.004 spine.003",
        "spine.006 neck.001 neck.002 head",
        "spine.002 spine.001 spine",
        "Wing.L Wing.001.L < shoulder.L Wing.002.L",
        "thigh.L shin.L < foot.L toe.L",
    ),
}


@pytest.mark.usefixtures("rigify")
@pytest.mark.parametrize("kind", ANIMALS)
def test_every_bone_of_an_animals_limb_gives_the_same_chain(addon: Addon, kind: str) -> None:
    found = meant(armature_of(kind))
    for text in ANIMALS[kind]:
        chain, _, also = text.partition("<")
        for bone in (*chain.split(), *also.split()):
            assert found(bone) == chain.split(), f"from '{bone}'"
