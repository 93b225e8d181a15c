"""Add Chain finds the ends of a chain from any of its bones."""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import bpy
import pytest
from mathutils import Vector

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import activate, add, refused
from tests.rigs_generated import armature_of
from tools import blender

Tree = dict[str, Any]
"""Bones by name, each with its children. A name may end in `=LENGTH`; the length is 1 otherwise."""


def build(tree: Tree, parent: str | None = None, ob: bpy.types.Object | None = None) -> bpy.types.Object:
    """Build an armature of a tree of bones, with siblings spread apart."""
    ob = rigs.armature() if ob is None else ob
    for i, (entry, below) in enumerate(tree.items()):
        name, _, length = entry.partition("=")
        start = Vector((0.0, 0.0, 0.0)) if parent is None else ob.data.bones[parent].tail_local
        direction = Vector((0.7 * (i - 0.5 * (len(tree) - 1)), 0.1, 1.0)).normalized()
        rigs.add_bones(ob, [tuple(start), tuple(start + float(length or 1.0) * direction)], [name], parent=parent)
        build(below, name, ob)
    return ob


def row(*names: str, end: Tree | None = None) -> Tree:
    """Return bones in a row, with `end` as the children of the last one."""
    found = end or {}
    for name in reversed(names):
        found = {name: found}
    return found


def added(ob: bpy.types.Object, active: str) -> list[str]:
    """Add a chain, remove it again and return its bones, root first."""
    activate(ob, active)
    assert bpy.ops.ik_addon.chain_add() == {"FINISHED"}
    (tip,) = [bone for bone in ob.pose.bones if bone.ik_addon.is_chain]
    bones = [tip, *tip.parent_recursive][: tip.ik_addon.chain_length][::-1]
    bpy.ops.ik_addon.chain_remove()
    return [bone.name for bone in bones]


def meant(ob: bpy.types.Object) -> Callable[[str], list[str]]:
    """Return a function from a bone to the bones of the chain that Add Chain finds there, root first; adds no chain."""
    extension = f"{blender.PACKAGE}.ik_addon"
    ends, constraints = import_module(f"{extension}.anatomy.chain_ends"), import_module(f"{extension}.core.constraints")
    figure = import_module(f"{extension}.anatomy.figure").Figure.of(ob, constraints.steered_bones(ob))

    def found(bone: str) -> list[str]:
        return [figure.names[i] for i in ends.find(figure, figure.names.index(bone))]

    return found


def assert_found(ob: bpy.types.Object, chain: Iterable[str], also: Iterable[str] = ()) -> None:
    """Assert that Add Chain finds the chain from its bones and those in `also`, and adds it from the first bone."""
    expected, found = list(chain), meant(ob)
    for name in (*expected, *also):
        assert found(name) == expected, f"from '{name}'"
    assert added(ob, expected[0]) == expected


# ---- names of common rigs


@pytest.mark.usefixtures("rigify")
def test_metarig_limbs_are_found() -> None:
    metarig = armature_of("human")
    bpy.ops.object.mode_set(mode="POSE")
    for side in "LR":
        arm = (f"upper_arm.{side}", f"forearm.{side}")
        assert_found(metarig, arm, also=(f"shoulder.{side}", f"hand.{side}"))
        leg = (f"thigh.{side}", f"shin.{side}")
        assert_found(metarig, leg, also=(f"foot.{side}", f"toe.{side}", f"heel.02.{side}"))
        for finger in ("f_index", "f_pinky", "thumb"):
            assert_found(metarig, [f"{finger}.0{i}.{side}" for i in (1, 2, 3)])
    assert_found(metarig, ["spine.001", "spine.002", "spine.003"], also=["spine"])
    assert_found(metarig, ["spine.004", "spine.005", "spine.006"])
    assert_found(metarig, ["tongue", "tongue.001", "tongue.002"])


LIMBS = (
    "J_Bip_L_UpperLeg J_Bip_L_LowerLeg < J_Bip_L_Foot J_Bip_L_ToeBase",
    "shoulder.R elbow.R < wrist.R",
    "hip_r knee_r < ankle_r",
    "DEF-thigh.L DEF-thigh.L.001 DEF-shin.L DEF-shin.L.001 < DEF-foot.L",
    "Leg.L Knee.L < Foot.L",
)
"""The bones of a chain, and those below it."""


@pytest.mark.parametrize("bones", LIMBS)
def test_limbs_of_other_rigs_are_found(bones: str) -> None:
    chain, also = (part.split() for part in bones.split("<"))
    assert_found(build(row("chest", *chain, *also)), chain, also)


# ---- rigs without meaningful names


TAILS: dict[str, tuple[Tree, list[str]]] = {
    "below legs": (
        {"hips": {**row(*(f"tail.{i:03}" for i in range(20))), "thigh.L": {}, "thigh.R": {}}},
        [f"tail.{i:03}" for i in range(20)],
    ),
    "on a single hip bone": (row("root", "tail_01", "tail_02", "tail_03"), ["tail_01", "tail_02", "tail_03"]),
    "with fins": ({"tail1": {"tail2": {"tail3": {}, "fin.L": {}, "fin.R": {}}}}, ["tail1", "tail2", "tail3"]),
    "numbered bones": (row("lamp", "cable", *(f"strand.{i}" for i in range(5))), [f"strand.{i}" for i in range(5)]),
    "nameless and tapering": (
        row("Bone=1", "Bone.001=0.8", "Bone.002=0.6", "Bone.003=0.5", "Bone.004=0.4"),
        ["Bone", "Bone.001", "Bone.002", "Bone.003", "Bone.004"],
    ),
}


@pytest.mark.parametrize("kind", TAILS)
def test_a_tail_is_found_from_each_of_its_bones(kind: str) -> None:
    tree, names = TAILS[kind]
    assert_found(build(tree), names)


def test_the_two_long_bones_of_a_nameless_limb_are_a_chain() -> None:
    ob = build(row("Bone=0.6", "Bone.001=2", "Bone.002=1.8", "Bone.003=0.5", "Bone.004=0.3"))
    assert_found(ob, ["Bone.001", "Bone.002"], ["Bone", "Bone.003", "Bone.004"])


def test_nameless_legs_end_where_the_hips_branch() -> None:
    ob = build({"Bone": {"Bone.001": {"Bone.002": {}}, "Bone.003": {"Bone.004": {}}, "Bone.005": {}}})
    assert_found(ob, ["Bone.001", "Bone.002"])
    assert_found(ob, ["Bone.003", "Bone.004"])
    assert added(ob, "Bone") == ["Bone"]


def test_arms_end_at_a_nameless_hand() -> None:
    hand: Tree = {f"finger{i}=0.2": {} for i in range(3)}
    assert_found(build(row("x=1.1", "y", "z=0.3", end=hand)), ["x", "y"], also=["z"])


# ---- the operator


def test_given_lengths_and_tips_are_kept() -> None:
    ob = build(row(*(f"tail.{i}" for i in range(6))))
    activate(ob, "tail.3")
    bpy.ops.ik_addon.chain_add(chain_length=3)
    assert ob.pose.bones["tail.3"].ik_addon.chain_length == 3
    bpy.ops.ik_addon.chain_add(tip="tail.5")
    assert ob.pose.bones["tail.5"].ik_addon.is_chain


def test_adjusting_keeps_an_edited_length_and_repeating_searches_again() -> None:
    """Adjust Last Operation reruns the operator with its values; Repeat Last does so on a different active bone."""
    ob = build({"hips": {**row("thigh.L", "shin.L", "foot.L"), **row("thigh.R", "shin.R", "foot.R")}})
    activate(ob, "foot.L")
    bpy.ops.ik_addon.chain_add(tip="shin.L", chain_length=1, found_from="foot.L")
    assert ob.pose.bones["shin.L"].ik_addon.chain_length == 1
    activate(ob, "foot.R")
    bpy.ops.ik_addon.chain_add(tip="shin.L", chain_length=1, found_from="foot.L")
    assert ob.pose.bones["shin.R"].ik_addon.chain_length == 2


def test_the_tip_becomes_active_unless_the_active_bone_is_in_the_chain() -> None:
    ob = build(row("upper_arm", "forearm", "hand"))
    activate(ob, "hand")
    bpy.ops.ik_addon.chain_add()
    assert ob.data.bones.active.name == "forearm"
    activate(ob, "upper_arm")
    bpy.ops.ik_addon.chain_remove()
    bpy.ops.ik_addon.chain_add()
    assert ob.data.bones.active.name == "upper_arm"


def test_a_hand_belongs_to_the_chain_of_its_arm_or_gets_its_own() -> None:
    ob = build(row("upper_arm", "forearm", "hand"))
    activate(ob, "hand")
    bpy.ops.ik_addon.chain_add()
    activate(ob, "hand")
    with pytest.raises(RuntimeError, match="Bone 'forearm' already has a chain"):
        bpy.ops.ik_addon.chain_add()
    ob.pose.bones["forearm"].ik_addon.end_bone = ""
    bpy.ops.ik_addon.chain_add()
    assert ob.pose.bones["hand"].ik_addon.is_chain
    assert ob.pose.bones["hand"].ik_addon.chain_length == 1


def test_a_missing_tip_is_named() -> None:
    activate(build(row("a", "b")), "a")
    with refused("'Rig' has no bone 'c'"):
        bpy.ops.ik_addon.chain_add(tip="c")


@pytest.mark.parametrize("options", [{}, {"live": True}])
def test_a_chain_can_be_live_at_once(options: dict[str, bool]) -> None:
    ob = build({"hips": row("thigh.L", "shin.L")})
    before = rigs.pose(ob)
    chain = add(ob, "shin.L", **options)
    assert ob.ik_addon.live == bool(options), "a script that asks for nothing leaves it as it is"
    assert abs(rigs.pose(ob) - before).max() < 1e-5
    chain.target.location.z -= 0.5
    assert (rigs.miss(ob, "shin.L") < 1e-5) == bool(options)


def test_words_of_a_name(addon: Addon) -> None:
    words = addon.module("anatomy.parts").words
    assert words("mixamorig:LeftUpLeg") == ["up", "leg"]
    assert words("DEF-upper_arm.L.001") == words("upper_arm_r") == words("LUpperArm") == ["upper", "arm"]
    assert words("Bip001 R Finger01") == ["finger"]
    assert words("lfemur") == ["femur"]


def test_vertebra_names_have_no_side(addon: Addon) -> None:
    """Xsens names vertebrae L5, T8 and so on."""
    assert [addon.module("anatomy.parts").side_of(name) for name in ("L5", "T8", "L_Arm")] == [0, 0, 1]
    limbs: Tree = {f"{side}{bone}": {} for side in ("Left", "Right") for bone in ("UpperArm", "UpperLeg")}
    arms, legs = ({name: own for name, own in limbs.items() if part in name} for part in ("Arm", "Leg"))
    ob = build({"Pelvis": {**legs, **row("L5", "L3", "T12", "T8", end={**arms, **row("Neck", "Head")})}})
    assert_found(ob, ("L5", "L3", "T12", "T8"), ("Pelvis",))


def test_the_chain_goes_to_the_bones_that_a_copying_bone_follows() -> None:
    """A control rig drives a game skeleton; the names give nothing away."""
    ob = rigs.limb(rigs.bent(2), ["control.a", "control.b"])
    rigs.add_bones(ob, rigs.bent(2), ["between.a", "between.b"])
    rigs.add_bones(ob, rigs.bent(2), ["game.a", "game.b"])
    for prefix, followed in (("game", "between"), ("between", "control")):
        for part in ("a", "b"):
            source = {"target": ob, "subtarget": f"{followed}.{part}"}
            rigs.constrain(ob.pose.bones[f"{prefix}.{part}"], "COPY_TRANSFORMS", **source)
    bpy.context.view_layer.update()
    assert_found(ob, ["control.a", "control.b"], ["game.a", "game.b", "between.a"])


def test_the_chain_goes_to_the_namesakes_of_driven_bones() -> None:
    ob = rigs.limb(rigs.bent(3), ["tail.1", "tail.2", "tail.3"])
    rigs.add_bones(ob, rigs.bent(3), ["DEF-tail.1", "DEF-tail.2", "DEF-tail.3"])
    for i in (1, 2, 3):
        ob.pose.bones[f"DEF-tail.{i}"].driver_add("rotation_quaternion", 0)
    assert_found(ob, [f"tail.{i}" for i in (1, 2, 3)], [f"DEF-tail.{i}" for i in (1, 2, 3)])


def test_a_limb_that_stretches_to_another_bone_is_refused() -> None:
    """The bone that a forearm stretches to is not a limb that could have the chain instead."""
    ob = rigs.limb(rigs.bent(3), ["upper_arm.L", "forearm.L", "hand.L"])
    rigs.add_bones(ob, [(1, 0, 2), (1, 0, 3)], ["control.L"])
    rigs.constrain(ob.pose.bones["forearm.L"], "STRETCH_TO", target=ob, subtarget="control.L")
    bpy.context.view_layer.update()
    activate(ob, "forearm.L")
    with refused("The constraint 'Stretch To' on bone 'forearm.L' also moves bones of this chain. Mute it"):
        bpy.ops.ik_addon.chain_add()
