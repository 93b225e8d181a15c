"""Add Chain and Set Up Character on the rigs that each Blender's own Rigify generates."""

from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Vector

from tests import rigs
from tests.anatomy.test_chain_ends import assert_found, meant
from tests.conftest import Addon
from tests.reliability.states import activate, add, refused
from tests.rigs_generated import Generated, generated, kept, rigify

__all__ = ["generated", "kept", "rigify"]


def test_a_generated_rigify_rig_gets_chains_on_its_fk_limbs(generated: Generated) -> None:
    ob = generated("basic_human")
    toes = ("foot_fk.L", "toe_fk.L", "MCH-foot_fk.L", "DEF-foot.L", "foot_ik.L")
    halves = ("thigh_parent.L", "thigh_ik.L", "ORG-thigh.L", "ORG-shin.L", "DEF-thigh.L", "DEF-shin.L.001")
    assert_found(ob, ["thigh_fk.L", "shin_fk.L"], (*toes, *halves))
    lower = ["ORG-forearm.R", "DEF-upper_arm.R.001", "hand_fk.R", "DEF-hand.R"]
    assert_found(ob, ["upper_arm_fk.R", "forearm_fk.R"], lower)
    assert_found(ob, ["upper_arm_fk.L", "forearm_fk.L"], ["ORG-shoulder.L", "DEF-shoulder.L", "shoulder.L"])
    found = meant(ob)
    for name in ("spine_fk.002", "spine_fk.003", "spine_fk", "torso", "neck", "head", "ORG-spine.002"):
        assert found(name) == [name], "between mechanism bones that constraints move"
    followed = {"DEF-spine.006": "head", "DEF-spine.005": "tweak_spine.005", "ORG-breast.L": "breast.L"}
    for name, control in followed.items():
        assert found(name) == [control], "in the place of a bone that follows it"


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
def test_feet_and_hands_of_a_generated_rig_follow_their_targets(
    generated: Generated, kind: str, bone: str, end: str, deform: str
) -> None:
    ob = generated(kind)
    controls: Any = ob.pose.bones
    for control in controls:
        if "IK_FK" in control:
            control["IK_FK"] = 1.0
    ob.update_tag()
    add(ob, bone, live=True)
    (tip,) = [b for b in ob.pose.bones if b.ik_addon.is_chain]
    chain, size = tip.ik_addon, rigs.length(ob, tip.name, 2)
    assert (chain.end_bone, chain.use_end_rotation) == (end, True)
    target = chain.target
    target.location += size * Vector((0.05, -0.03, 0.1))
    target.rotation_euler.rotate_axis("X", 0.3)
    rigs.change(ob.pose.bones["torso"], location=size * Vector((0.03, 0.05, -0.04)))
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
"""For rigs that Rigify generates: the bones of a chain, and other bones that lead to it."""


@pytest.mark.parametrize("kind", GENERATED)
def test_generated_animals_get_chains_on_their_fk_limbs_but_no_character(generated: Generated, kind: str) -> None:
    """The feet of their deform bones stand on toes; those of their FK bones are below mechanism bones."""
    ob = generated(kind)
    for text in GENERATED[kind]:
        chain, _, also = text.partition("<")
        assert_found(ob, chain.split(), also.split())
    with refused("No chain was added"):
        bpy.ops.ik_addon.character_setup()


@pytest.mark.parametrize("bone", ["shoulder.L", "ORG-Wing.L", "DEF-Wing.002.L", "tweak_Wing.001.L", "Wing.001.L"])
def test_the_wing_of_a_generated_bird_names_the_constraint_to_mute(generated: Generated, bone: str) -> None:
    ob = generated("bird")
    activate(ob, bone)
    with refused("The constraint 'Copy Rotation' on bone 'Wing.001.L' also moves bones of this chain. Mute it"):
        bpy.ops.ik_addon.chain_add()


def test_controls_of_a_generated_rig_are_dragged_or_refused_with_the_reason(generated: Generated) -> None:
    generated("basic_human")
    for bone in ("torso", "hand_fk.L"):
        assert bpy.ops.ik_addon.pose_body(bone=bone, offset=(0, -0.05, 0.05)) == {"FINISHED"}
    with refused("A constraint or driver moves 'MCH-hand_ik.parent.L'"):
        bpy.ops.ik_addon.pose_body(bone="hand_ik.L", offset=(0, -0.05, 0.05))


def test_a_body_with_converted_limbs_is_shown_in_a_drag_as_it_stays(generated: Generated, addon: Addon) -> None:
    ob, module = generated("basic_human"), addon.module("posing.drag")
    bpy.ops.ik_addon.convert_constraints()
    skin = [bone.name for bone in ob.pose.bones if bone.bone.use_deform]
    before = [rigs.head(ob, name) for name in ("DEF-foot.L", "DEF-foot.R")]
    body = module.BodyDrag(bpy.context, ob, module.Ask("tweak_spine"))
    body.move(bpy.context, Vector((0.0, 0.0, -0.2)))
    shown = [rigs.head(ob, name) for name in skin]
    assert np.abs(np.array([shown[skin.index(f"DEF-foot.{side}")] for side in "LR"]) - before).max() < 1e-4
    assert body.finish(bpy.context) == []
    assert np.abs(np.array([rigs.head(ob, name) for name in skin]) - shown).max() < 1e-4
