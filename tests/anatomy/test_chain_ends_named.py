"""On published rigs, Add Chain finds the same chain from every bone of a limb."""

import bpy
import pytest
from mathutils import Euler

from tests import rigs, rigs_named
from tests.anatomy.test_chain_ends import Tree, added, assert_found, build, meant, row
from tests.conftest import Addon
from tests.reliability.states import activate, add
from tests.rigs_generated import armature_of
from tests.rigs_named import RIGS

PUBLISHED = {**RIGS, **rigs_named.GAMES}
KNOWN = {**PUBLISHED, **{f"own {name}": rig for name, rig in rigs_named.ANIMALS.items()}}


@pytest.mark.parametrize("name", KNOWN)
def test_every_bone_of_a_limb_gives_the_same_chain(name: str) -> None:
    found = meant(rigs_named.build(KNOWN[name]))
    for chain, known in rigs_named.both(KNOWN[name]):
        for bone in known:
            assert found(bone) == chain, f"from '{bone}'"


@pytest.mark.parametrize("point", [(0.1, -0.13, 0.02), (0.1, -0.09, 0.02), (0.1, 0.0, -0.1), (0.1, 0.0, -0.3)])
def test_a_human_stands_on_its_soles_however_its_feet_point(point: tuple[float, float, float]) -> None:
    """Feet are flat, on high heels, or straight down as in much motion capture."""
    human = rigs_named.NamedRig(("l", "r"), RIGS["Manny"].bones, {}, {"ball": point})
    assert meant(rigs_named.build(human))("foot_l") == ["thigh_l", "calf_l"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_limb_gets_a_pole_and_has_an_end_bone_however_many_bones_it_has(addon: Addon, name: str) -> None:
    ob = rigs_named.build(PUBLISHED[name])
    limbs = rigs_named.limbs(PUBLISHED[name], ob)
    assert len(limbs) == 4
    for chain in limbs:
        end = end_of(addon, ob, chain)
        assert end is not None, chain
        assert ob.data.bones[chain[-1]] in ob.data.bones[end].parent_recursive
        assert rigs_named.place(PUBLISHED[name], ob, end) in ("wrist", "ankle"), end
        add(ob, chain[0])
        assert ob.pose.bones[chain[-1]].ik_addon.pole is not None, chain
        bpy.ops.ik_addon.chain_remove()


@pytest.mark.parametrize("is_straight", [False, True], ids=["bent", "straight"])
@pytest.mark.parametrize("language", rigs_named.FOREIGN)
def test_names_in_other_languages_work(language: str, is_straight: bool) -> None:
    rig = rigs_named.FOREIGN[language]
    ob = rigs_named.build(rig, is_straight=is_straight)
    found = meant(ob)
    for chain, known in rigs_named.both(rig):
        for bone in (name for name in known if name in chain or language == "German"):
            assert found(bone) == chain, f"from '{bone}'"
        add(ob, chain[0])
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
def test_every_bone_of_an_animals_limb_gives_the_same_chain(kind: str) -> None:
    found = meant(armature_of(kind))
    for text in ANIMALS[kind]:
        chain, _, also = text.partition("<")
        for bone in (*chain.split(), *also.split()):
            assert found(bone) == chain.split(), f"from '{bone}'"


# ---- the hand or foot of a limb


def end_of(addon: Addon, ob: bpy.types.Object, chain: list[str]) -> str | None:
    figure = addon.module("anatomy.figure").Figure.of(ob)
    end = addon.module("anatomy.chain_ends").end_below(figure, [figure.names.index(name) for name in chain])
    return None if end is None else figure.names[end]


@pytest.mark.parametrize(
    ("tree", "chain", "expected"),
    [
        (row("a", "b", "c=0.3", end=row("d=0.2")), ["a", "b"], "c"),
        (row("a", "b", "c=0.3"), ["a", "b"], "c"),
        (row("a", "b", "c=0.01"), ["a", "b"], None),
        (row("a", "b", "end=0.3"), ["a", "b"], None),
        (row("a", "b", "c", "d"), ["a", "b"], None),
        (row("a", "b", end={"c=0.3": {}, "d=0.3": {}}), ["a", "b"], None),
        (row("a", "b", "c=0.3"), ["b"], None),
        (row("thigh.L", "shin.L", "foot.L=0.01"), ["thigh.L", "shin.L"], None),
        (row("thigh.L", "shin.L", "prop=0.3"), ["thigh.L", "shin.L"], None),
        (row("thigh.L", "shin.L", "foot.L=0.3"), ["thigh.L"], None),
        (row("thigh.L", "shin.L", end={"heel.L=0.1": {}, "foot.L=0.3": {}}), ["thigh.L", "shin.L"], "foot.L"),
        (row("thigh.L", "shin.L", end={"MCH-foot.L=0.02": row("foot.L=0.3")}), ["thigh.L", "shin.L"], "foot.L"),
        (row("thigh.L", "shin.L", end={"shin_twist.L=0.1": {}, "foot.L=0.3": {}}), ["thigh.L", "shin.L"], "foot.L"),
        (row("finger.01", "finger.02", "finger.03=0.3"), ["finger.01", "finger.02"], None),
        (row("tail.1", "tail.2", "tail.3"), ["tail.1", "tail.2"], None),
    ],
)
def test_hands_and_feet_are_told_from_other_bones(
    addon: Addon, tree: Tree, chain: list[str], expected: str | None
) -> None:
    assert end_of(addon, build(tree), chain) == expected


def test_a_bone_moved_by_a_constraint_is_no_end_bone(addon: Addon) -> None:
    ob = build(row("thigh.L", "shin.L", "foot.L=0.3"))
    ob.pose.bones["foot.L"].constraints.new("COPY_ROTATION").target = ob
    limb = [ob.pose.bones[name] for name in ("thigh.L", "shin.L")]
    assert addon.module("chains.new_chain").find_end(ob, limb) is None


# ---- rigs without meaningful names: limbs are found by shape, even if each half is several bones


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
        add(ob, chain[0])
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
    ob = rigs.limb(rigs.straight(6), [f"Bone.{i:03}" for i in range(6)])
    for i in range(6):
        assert len(added(ob, f"Bone.{i:03}")) == 6
