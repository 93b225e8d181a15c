"""Add Chain on rigs as they are published: every bone of a limb gives the same chain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import bpy
import pytest

from tests import rigs_named
from tests.anatomy.test_chain_ends import added
from tests.operators.states import activate
from tests.rigs_named import RIGS

if TYPE_CHECKING:
    from tests.conftest import Addon


@pytest.mark.parametrize("name", RIGS)
def test_every_bone_of_a_limb_gives_the_same_chain(addon: Addon, name: str) -> None:
    ob = rigs_named.build(RIGS[name])
    ends, figures = addon.module("anatomy.chain_ends"), addon.module("anatomy.figure")
    figure = figures.Figure.of(ob)
    for chain, meant in rigs_named.both(RIGS[name]):
        for bone in meant:
            found = figure.row(*ends.find(figure, figure.names.index(bone)))
            assert [figure.names[i] for i in found] == chain, f"from '{bone}'"


@pytest.mark.parametrize("name", RIGS)
def test_a_limb_gets_a_pole_however_many_bones_it_has(name: str) -> None:
    ob = rigs_named.build(RIGS[name])
    limbs = rigs_named.limbs(RIGS[name], ob)
    assert len(limbs) == 4
    for chain in limbs:
        activate(ob, chain[0])
        assert bpy.ops.ik_addon.chain_add() == {"FINISHED"}
        assert ob.pose.bones[chain[-1]].ik_addon.pole is not None, chain
        bpy.ops.ik_addon.chain_remove()


# ---- generated Rigify rigs and Rigify's animals


@pytest.fixture
def rigify() -> Iterator[None]:
    import addon_utils

    addon_utils.enable("rigify", default_set=True)
    yield
    addon_utils.disable("rigify", default_set=True)
    for handler in [h for h in bpy.app.handlers.load_post if h.__module__.startswith("rigify")]:
        bpy.app.handlers.load_post.remove(handler)


def armature_of(kind: str) -> bpy.types.Object:
    """One of Rigify's metarigs."""
    getattr(bpy.ops.object, f"armature_{kind}_metarig_add")()
    ob: Any = bpy.context.object
    return ob


@pytest.mark.usefixtures("rigify")
def test_a_generated_rigify_rig_gets_chains_on_its_fk_limbs() -> None:
    meta = armature_of("basic_human")
    bpy.ops.pose.rigify_generate()
    (ob,) = [ob for ob in bpy.data.objects if ob.type == "ARMATURE" and ob != meta]
    meta.hide_set(True)
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="POSE")
    for name in (
        *("thigh_fk.L", "shin_fk.L", "foot_fk.L", "toe_fk.L", "MCH-foot_fk.L", "thigh_parent.L", "thigh_ik.L"),
        *("ORG-thigh.L", "ORG-shin.L", "DEF-thigh.L", "DEF-shin.L.001", "DEF-foot.L", "foot_ik.L"),
    ):
        assert added(ob, name) == ["thigh_fk.L", "shin_fk.L"], f"from '{name}'"
    for name in ("upper_arm_fk.R", "forearm_fk.R", "ORG-forearm.R", "DEF-upper_arm.R.001", "hand_fk.R", "DEF-hand.R"):
        assert added(ob, name) == ["upper_arm_fk.R", "forearm_fk.R"], f"from '{name}'"
    for name in ("spine_fk.002", "spine_fk.003", "spine_fk", "torso"):
        assert added(ob, name) == [name], "between mechanism bones that constraints move"


@pytest.mark.usefixtures("rigify")
def test_a_generated_quadruped_gets_chains_on_its_fk_legs() -> None:
    """The feet of its deform bones stand on toes, those of its FK bones have none."""
    meta = armature_of("basic_quadruped")
    bpy.ops.pose.rigify_generate()
    (ob,) = [ob for ob in bpy.data.objects if ob.type == "ARMATURE" and ob != meta]
    meta.hide_set(True)
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="POSE")
    for name in ("thigh_fk.L", "foot_fk.L", "ORG-thigh.L", "ORG-foot.L", "DEF-shin.L.001", "DEF-toe.L", "foot_ik.L"):
        assert added(ob, name) == ["thigh_fk.L", "shin_fk.L"], f"from '{name}'"
    for name in ("front_shin_fk.R", "ORG-front_foot.R", "DEF-front_thigh.R", "front_foot_ik.R"):
        assert added(ob, name) == ["front_thigh_fk.R", "front_shin_fk.R"], f"from '{name}'"


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
def test_animals(addon: Addon, kind: str) -> None:
    ob = armature_of(kind)
    ends = addon.module("anatomy.chain_ends")
    figure = addon.module("anatomy.figure").Figure.of(ob)
    for text in ANIMALS[kind]:
        chain, _, also = text.partition("<")
        for bone in (*chain.split(), *also.split()):
            found = figure.row(*ends.find(figure, figure.names.index(bone)))
            assert [figure.names[i] for i in found] == chain.split(), f"from '{bone}'"
