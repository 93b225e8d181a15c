"""Parts of whole figures, found by the bone names and hierarchies of common rigs."""

from typing import Any

import bpy
import pytest
from mathutils import Matrix, Vector

from tests import rigs, rigs_named
from tests.conftest import Addon
from tests.rigs_generated import armature_of
from tests.rigs_named import RIGS, NamedRig

LYING = Matrix.Rotation(-1.57, 4, "X") @ Matrix.Rotation(0.6, 4, "Z")


def parts(addon: Addon, ob: bpy.types.Object) -> tuple[dict[str, list[str]], bool, list[str]]:
    """Return the bones of each part by the part's name, whether the figure is human, and what is missing."""
    members = addon.module("anatomy.body")
    steered: dict[str, list[str]] = addon.module("core.constraints").steered_bones(ob)
    figure = addon.module("anatomy.figure").Figure.of(ob, steered)
    found = members.find_members(figure)
    named = {member.words: [figure.names[bone] for bone in member.row] for member in found}
    assert len(named) == len(found)
    return named, members.is_human(figure, found), members.missing(found, frozenset(members.Region))


def build_without(rig: NamedRig, name: str) -> bpy.types.Object:
    """Build a rig without a bone, on both sides if it has one, and all bones below it."""
    ob = rigs_named.build(rig)
    with rigs.edit_mode(ob) as bones:
        for (gone,) in rig.named(name):
            for bone in [*bones[gone].children_recursive, bones[gone]]:
                bones.remove(bone)
    return ob


@pytest.mark.parametrize("name", RIGS)
def test_all_parts_of_figures_with_common_names_are_found(addon: Addon, name: str) -> None:
    """Every other one is lying."""
    rig, turn = RIGS[name], LYING if len(name) % 2 else Matrix.Identity(4)
    upright = rigs_named.build(rig)
    limbs = rigs_named.limbs(rig, upright)
    found, is_human, missing = parts(addon, rigs_named.build(rig, turn=turn))
    assert missing == []
    assert is_human == (name != "bird")
    own = [f"{side} {limb}" for limb in ("arm", "leg") for side in ("left", "right")]
    assert {*found} == {*own, "spine", "head"}
    assert sorted(found[words] for words in own) == sorted(limbs)
    for words in own:
        side = rig.sides[words.startswith("right")]
        assert all(side in bone for bone in found[words])
    assert found["spine"] in [chain for chain, _meant in rigs_named.both(rig)]
    *neck, head = (rigs_named.place(rig, upright, bone) for bone in found["head"])
    assert {*neck} <= {"neck", "neck2"}
    assert head == "head"


def test_no_part_of_game_figures_is_missing(addon: Addon) -> None:
    own = [f"{side} {limb}" for limb in ("arm", "leg") for side in ("left", "right")]
    for name, rig in rigs_named.GAMES.items():
        if "Bento" not in name:
            ob = rigs_named.build(rig)
            found, is_human, missing = parts(addon, ob)
            assert (is_human, missing, {*found}) == (True, [], {*own, "spine", "head"}), name
            assert sorted(found[words] for words in own) == sorted(rigs_named.limbs(rig, ob)), name
            assert "head" in found["head"][-1].lower(), name


ROWS = {
    # Wings beside a chest do not end the spine.
    "Second Life Bento": {"spine": "mSpine1 mSpine2 mTorso mSpine3 mSpine4 mChest", "head": "mNeck mHead"},
    # Twist bones are part of the neck.
    "Character Creator": {"head": "CC_Base_NeckTwist01 CC_Base_NeckTwist02 CC_Base_Head"},
    # Collarbones on the neck leave it out of the spine.
    "3ds Max Biped": {"spine": "Bip001~Spine1 Bip001~Spine2", "head": "Bip001~Neck Bip001~Head"},
}
"""The bones of parts, by rig and part."""


@pytest.mark.parametrize("name", ROWS)
def test_bones_beside_the_trunk_do_not_change_where_spine_and_head_end(addon: Addon, name: str) -> None:
    find = addon.module("anatomy.body").find_members
    figure = figure_of(addon, rigs_named.build({**RIGS, **rigs_named.GAMES}[name]))
    rows = {member.region.value: [figure.names[bone] for bone in member.row] for member in find(figure)}
    for part, bones in ROWS[name].items():
        assert rows[part] == rigs_named.spaced(bones.split())


@pytest.mark.parametrize(("bone", "missing"), [("{s}Shoulder", "arms"), ("{s}UpLeg", "legs"), ("Neck", "head")])
def test_absent_parts_are_reported_missing(addon: Addon, bone: str, missing: str) -> None:
    found, is_human, lacks = parts(addon, build_without(RIGS["Mixamo"], f"mixamorig:{bone}"))
    assert lacks == [missing]
    assert len(found) == (5 if missing == "head" else 4)
    assert is_human == (missing == "head")


def test_a_limb_on_one_side_is_reported_missing_on_the_other(addon: Addon) -> None:
    ob = rigs_named.build(RIGS["OptiTrack"])
    with rigs.edit_mode(ob) as bones:
        for name in ("RShoulder", "RUArm", "RFArm", "RHand"):
            bones.remove(bones[name])
    found, is_human, missing = parts(addon, ob)
    assert missing == ["right arm"]
    assert not is_human
    assert "left arm" in found


SCHEMES = {
    "Acclaim": (
        *("l", "r", "root", "lowerback", "thorax", "upperneck", "head"),
        *("{s}clavicle", "{s}humerus", "{s}radius", "{s}wrist", "{s}femur", "{s}tibia", "{s}foot"),
    ),
    "le and ri": (
        *("le", "ri", "j_mainroot", "j_spinelower", "j_spineupper", "j_neck", "j_head"),
        *("j_clavicle_{s}", "j_shoulder_{s}", "j_elbow_{s}", "j_wrist_{s}", "j_hip_{s}", "j_knee_{s}", "j_ankle_{s}"),
    ),
}
"""The two sides, and the bone names from the hips to the head, of an arm from the collar, and of a leg."""
PLACES = ("hips", "spine1", "spine4", "neck", "head", "collar", "shoulder", "elbow", "wrist", "hip", "knee", "ankle")
DEPTHS = (0, 1, 2, 3, 4, 3, 4, 5, 6, 1, 2, 3)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_naming_schemes_of_humans_are_recognized(addon: Addon, scheme: str) -> None:
    left, right, *bones = SCHEMES[scheme]
    lines = [f"{' ' * d}{bone} {place}" for d, bone, place in zip(DEPTHS, bones, PLACES, strict=True)]
    found, is_human, missing = parts(addon, rigs_named.build(NamedRig((left, right), "\n".join(lines), {})))
    arm, leg = bones[6:8], bones[9:11]
    assert found == {
        "spine": bones[1:3],
        "head": bones[3:5],
        **{f"{side} arm": [bone.format(s=s) for bone in arm] for side, s in (("left", left), ("right", right))},
        **{f"{side} leg": [bone.format(s=s) for bone in leg] for side, s in (("left", left), ("right", right))},
    }
    assert (is_human, missing) == (True, [])


@pytest.mark.usefixtures("rigify")
@pytest.mark.parametrize("kind", ["horse", "wolf", "cat", "bird", "human"])
def test_parts_of_rigifys_metarigs_are_found(addon: Addon, kind: str) -> None:
    ob: Any = armature_of(kind)
    found, is_human, missing = parts(addon, ob)
    fore = "arm" if kind in {"bird", "human"} else "front leg"
    assert {*found} == {f"{side} {limb}" for side in ("left", "right") for limb in ("leg", fore)} | {"spine", "head"}
    assert missing == []
    assert is_human == (kind == "human")
    if kind == "wolf":
        assert found["left front leg"][0] == "front_thigh.L"
        assert found["spine"][-1] == "spine.008"
        assert found["head"] == ["spine.009", "spine.010", "spine.011"]
    members, sides, figure = addon.module("anatomy.body"), addon.module("anatomy.sides"), figure_of(addon, ob)
    limbs = [member for member in members.find_members(figure) if member.region in members.LIMBS]
    assert sum(sides.is_leg(figure, list(limb.row)) for limb in limbs) == (4 if fore == "front leg" else 2)


@pytest.mark.parametrize("name", rigs_named.FOREIGN)
def test_figures_whose_names_say_nothing_are_found_by_shape(addon: Addon, name: str) -> None:
    """Even lying, with bones that don't point at their children."""
    rig = rigs_named.FOREIGN[name]
    ob = rigs_named.build(rig, turn=LYING)
    with rigs.edit_mode(ob) as bones:
        for bone in bones:
            bone.tail = bone.head + bone.length * Vector((1.0, 0.0, 0.0))
    found, is_human, missing = parts(addon, ob)
    assert (is_human, missing) == (True, [])
    own = [found[f"{side} {limb}"] for side in ("left", "right") for limb in ("arm", "leg")]
    assert sorted(own) == sorted(chain for chain, _meant in rigs_named.both(rig))
    turned = LYING.inverted() @ ob.data.bones[found["left arm"][0]].head_local
    assert turned.x > 0.0
    assert (len(found["spine"]), len(found["head"])) == (2, 2)


@pytest.mark.parametrize(("old", "new"), [("LeftHand", "Lefthand"), ("LeftHand", "Links"), ("LeftFoot", "leftfoot")])
def test_hands_and_feet_are_known_in_any_case(addon: Addon, old: str, new: str) -> None:
    """A bone between forearm and fingers is the hand whatever its name."""
    ob = rigs_named.build(RIGS["Mixamo"])
    ob.data.bones[f"mixamorig:{old}"].name = new
    find, ends = addon.module("anatomy.body").find_members, addon.module("anatomy.chain_ends")
    figure = figure_of(addon, ob)
    rows = {member.words: list(member.row) for member in find(figure)}
    assert len(rows) == 6
    end = ends.end_below(figure, rows["left arm" if "Hand" in old else "left leg"])
    assert figure.names[end] == new


# ---- bones of a body that limbs are attached to


def figure_of(addon: Addon, ob: Any) -> Any:
    return addon.module("anatomy.figure").Figure.of(ob)


@pytest.mark.parametrize("name", RIGS)
def test_a_limb_is_attached_to_the_trunk(addon: Addon, name: str) -> None:
    ob = rigs_named.build(RIGS[name])
    figure, body = figure_of(addon, ob), addon.module("anatomy.body")
    for limb in rigs_named.limbs(RIGS[name], ob):
        row = [figure.names.index(bone) for bone in limb]
        parent_bone = ob.data.bones[figure.names[body.parent_bone_of(figure, row)]]
        assert parent_bone.name not in limb
        assert parent_bone in ob.data.bones[limb[0]].parent_recursive
        assert abs(parent_bone.head_local.x) < 1e-6, "it is on neither side"


def test_hips_chest_and_head_are_found_by_name(addon: Addon) -> None:
    ob = rigs_named.build(RIGS["Manny"])
    figure, body = figure_of(addon, ob), addon.module("anatomy.body")

    def parent_bone(*limb: str) -> str:
        return str(figure.names[body.parent_bone_of(figure, [figure.names.index(bone) for bone in limb])])

    assert parent_bone("thigh_l", "calf_l") == "pelvis"
    assert parent_bone("upperarm_r", "lowerarm_r") == "spine_05"
    assert parent_bone("index_01_l", "index_02_l", "index_03_l") == "index_metacarpal_l"
    assert figure.names[body.chest_of(figure)] == "spine_05"
    assert figure.names[body.head_of(figure)] == "head"


def test_bones_solved_together_are_skipped(addon: Addon) -> None:
    ob = rigs.limb(rigs.bent(5), list("abcde"))
    figure, body = figure_of(addon, ob), addon.module("anatomy.body")
    assert body.parent_bone_of(figure, [3, 4]) == 2
    assert body.parent_bone_of(figure, [3, 4], {2, 1}) == 0
    assert body.parent_bone_of(figure, [0, 1]) is None
    assert body.chest_of(figure) is None
    assert body.head_of(figure) is None
