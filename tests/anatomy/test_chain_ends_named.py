"""Add Chain on rigs as they are published: every bone of a limb gives the same chain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
import pytest
from mathutils import Vector

from tests import rigs, rigs_games, rigs_named
from tests.anatomy.test_chain_ends import added
from tests.operators.states import activate, refused
from tests.rigs_named import RIGS

if TYPE_CHECKING:
    from tests.conftest import Addon


PUBLISHED = {**RIGS, **rigs_games.RIGS}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_bone_of_a_limb_gives_the_same_chain(addon: Addon, name: str) -> None:
    ob = rigs_named.build(PUBLISHED[name])
    ends, figures = addon.module("anatomy.chain_ends"), addon.module("anatomy.figure")
    figure = figures.Figure.of(ob)
    for chain, meant in rigs_named.both(PUBLISHED[name]):
        for bone in meant:
            found = figure.row(*ends.find(figure, figure.names.index(bone)))
            assert [figure.names[i] for i in found] == chain, f"from '{bone}'"


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
@pytest.mark.parametrize("language", rigs_games.FOREIGN)
def test_names_in_other_languages_are_no_hindrance(addon: Addon, language: str, is_straight: bool) -> None:
    rig = rigs_games.FOREIGN[language]
    ob = rigs_named.build(rig, is_straight=is_straight)
    for chain, meant in rigs_named.both(rig):
        for bone in (name for name in meant if name in chain or language == "German"):
            assert added(ob, bone) == chain, f"from '{bone}'"
        activate(ob, chain[0])
        bpy.ops.ik_addon.chain_add()
        settings = ob.pose.bones[chain[-1]].ik_addon
        assert (settings.end_bone, settings.pole is not None) == (meant[-1], True)
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


def generated(kind: str) -> bpy.types.Object:
    """The rig that Rigify makes of one of its metarigs, in Pose Mode."""
    meta = armature_of(kind)
    bpy.ops.pose.rigify_generate()
    (ob,) = [ob for ob in bpy.data.objects if ob.type == "ARMATURE" and ob != meta]
    meta.hide_set(True)
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="POSE")
    return ob


@pytest.mark.usefixtures("rigify")
def test_a_generated_rigify_rig_gets_chains_on_its_fk_limbs() -> None:
    ob = generated("basic_human")
    for name in (
        *("thigh_fk.L", "shin_fk.L", "foot_fk.L", "toe_fk.L", "MCH-foot_fk.L", "thigh_parent.L", "thigh_ik.L"),
        *("ORG-thigh.L", "ORG-shin.L", "DEF-thigh.L", "DEF-shin.L.001", "DEF-foot.L", "foot_ik.L"),
    ):
        assert added(ob, name) == ["thigh_fk.L", "shin_fk.L"], f"from '{name}'"
    for name in ("upper_arm_fk.R", "forearm_fk.R", "ORG-forearm.R", "DEF-upper_arm.R.001", "hand_fk.R", "DEF-hand.R"):
        assert added(ob, name) == ["upper_arm_fk.R", "forearm_fk.R"], f"from '{name}'"
    for name in ("ORG-shoulder.L", "DEF-shoulder.L", "shoulder.L"):
        assert added(ob, name) == ["upper_arm_fk.L", "forearm_fk.L"], f"from '{name}'"
    for name in ("spine_fk.002", "spine_fk.003", "spine_fk", "torso", "neck", "head", "ORG-spine.002"):
        assert added(ob, name) == [name], "between mechanism bones that constraints move"
    for name, control in (
        ("DEF-spine.006", "head"),
        ("DEF-spine.005", "tweak_spine.005"),
        ("ORG-breast.L", "breast.L"),
    ):
        assert added(ob, name) == [control], "in the place of a bone that follows it"


@pytest.mark.usefixtures("rigify")
@pytest.mark.parametrize(
    ("kind", "bone", "end", "deform"),
    [
        ("basic_human", "ORG-thigh.L", "foot_fk.L", "foot"),
        ("basic_human", "DEF-forearm.R", "hand_fk.R", "hand"),
        ("basic_quadruped", "ORG-front_thigh.L", "front_foot_fk.L", "front_foot"),
        ("horse", "DEF-thigh.R", "hind_foot_fk.R", "hind_foot"),
        ("horse", "shoulder.L", "forefoot_fk.L", "forefoot"),
        ("wolf", "foot_ik.L", "foot_fk.L", "foot"),
        ("cat", "thigh_fk.R", "foot_fk.R", "foot"),
        ("bird", "DEF-shin.L", "foot_fk.L", "foot"),
    ],
)
def test_feet_and_hands_of_a_generated_rig_go_with_their_targets(kind: str, bone: str, end: str, deform: str) -> None:
    ob = generated(kind)
    controls: Any = ob.pose.bones
    for control in controls:
        if "IK_FK" in control:
            control["IK_FK"] = 1.0
    ob.update_tag()
    activate(ob, bone)
    assert bpy.ops.ik_addon.chain_add(live=True) == {"FINISHED"}
    (tip,) = [b for b in ob.pose.bones if b.ik_addon.is_chain]
    chain, size = tip.ik_addon, rigs.length(ob, tip.name, 2)
    assert (chain.end_bone, chain.use_end_rotation) == (end, True)
    target = chain.target
    target.location += size * Vector((0.05, -0.03, 0.1))
    target.rotation_euler.rotate_axis("X", 0.3)
    ob.pose.bones["torso"].location = size * Vector((0.03, 0.05, -0.04))
    bpy.context.view_layer.update()
    bpy.context.view_layer.update()
    wanted = target.matrix_world.to_3x3().normalized() @ chain.end_offset.to_matrix()
    for name in (end, f"DEF-{deform}{end[-2:]}"):
        assert np.linalg.norm(rigs.head(ob, name) - rigs.position(target)) < 1e-5
        turned = rigs.evaluated(ob).pose.bones[name].matrix.to_3x3().normalized()
        assert np.abs(np.array(turned) - np.array(wanted)).max() < 1e-4


GENERATED = {
    "basic_quadruped": (
        "thigh_fk.L shin_fk.L < foot_fk.L ORG-thigh.L ORG-foot.L DEF-shin.L.001 DEF-toe.L foot_ik.L",
        "front_thigh_fk.R front_shin_fk.R < ORG-front_foot.R DEF-front_thigh.R front_foot_ik.R",
    ),
    "horse": (
        "thigh_fk.L lower_leg_fk.L < hind_foot_fk.L ORG-thigh.L ORG-hind_foot.L DEF-lower_leg.L.001 DEF-r_toe.L "
        "hind_foot_ik.L hind_foot_heel_ik.L thigh_ik_target.L thigh_parent.L ORG-pelvis.L",
        "upper_arm_fk.R forearm_fk.R < forefoot_fk.R ORG-forearm.R ORG-f_hoof.R DEF-upper_arm.R shoulder.R "
        "forefoot_ik.R upper_arm_ik_target.R DEF-shoulder.R",
        "tweak_neck.001 < DEF-neck.001 ORG-neck.001",
        "head < DEF-head",
    ),
    "wolf": (
        "thigh_fk.L shin_fk.L < foot_fk.L ORG-shin.L DEF-toe.L foot_ik.L foot_heel_ik.L thigh_ik_target.L",
        "front_thigh_fk.L front_shin_fk.L < DEF-front_foot.L front_thigh_ik_target.L ORG-shoulder.L front_foot_ik.L",
        "ORG-pelvis.R",
    ),
    "cat": (
        "thigh_fk.R shin_fk.R < foot_fk.R ORG-pelvis.R ORG-foot.R DEF-thigh.R.001 foot_ik.R thigh_ik_target.R",
        "upper_arm_fk.L forearm_fk.L < ORG-shoulder.L DEF-hand.L hand_ik.L upper_arm_ik_target.L",
    ),
    "bird": ("thigh_fk.L shin_fk.L < ORG-thigh.L DEF-foot.L ORG-toe.L foot_ik.L thigh_ik_target.L",),
    "shark": ("tweak_spine.003 < DEF-spine.003", "head < DEF-spine.007"),
}
"""Of the rigs that Rigify generates: bones of a chain, and others that mean it."""


@pytest.mark.usefixtures("rigify")
@pytest.mark.parametrize("kind", GENERATED)
def test_generated_animals_get_chains_on_their_fk_limbs(kind: str) -> None:
    """The feet of their deform bones stand on toes; those of their FK bones hang below mechanism bones."""
    ob = generated(kind)
    for text in GENERATED[kind]:
        chain, _, also = text.partition("<")
        for bone in (*chain.split(), *also.split()):
            assert added(ob, bone) == chain.split(), f"from '{bone}'"


@pytest.mark.usefixtures("rigify")
@pytest.mark.parametrize("bone", ["shoulder.L", "ORG-Wing.L", "DEF-Wing.002.L", "tweak_Wing.001.L", "Wing.001.L"])
def test_the_wing_of_a_generated_bird_says_which_constraint_to_mute(bone: str) -> None:
    ob = generated("bird")
    activate(ob, bone)
    with refused("The constraint 'Copy Rotation' on bone 'Wing.001.L' also moves bones of this chain. Mute it"):
        bpy.ops.ik_addon.chain_add()


@pytest.mark.usefixtures("rigify")
@pytest.mark.parametrize("kind", GENERATED)
def test_a_generated_animal_is_not_set_up_on_its_mechanism(kind: str) -> None:
    ob = generated(kind)
    with refused("No chain was added"):
        bpy.ops.ik_addon.character_setup()
    assert not any(bone.ik_addon.is_chain for bone in ob.pose.bones)


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
