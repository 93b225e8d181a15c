"""Pose Body folds an arm or leg before the body walks, whatever the axes of the bones; which bone moves freely."""

from pathlib import Path

import bpy
import numpy as np
import pytest
from mathutils import Vector

from benchmarks import folds
from benchmarks.folds import LEG, figure
from ik_addon.anatomy.body import LIMBS, find_members
from ik_addon.anatomy.parts import side_of
from tests import imports, rigs, rigs_named
from tests.conftest import Addon, Capture
from tests.imports import FRONT
from tests.reliability.states import said
from tests.rigs_generated import armature_of
from tests.rigs_named import RIGS

ARM = 0.52
"""Length of an arm of the figure, in meters."""


@pytest.mark.parametrize("place", folds.PLACES)
@pytest.mark.parametrize("stance", folds.STANCES)
def test_the_arm_folds_before_the_hips_walk(stance: str, place: str, tmp_path: Path) -> None:
    ob = figure("VRM", imports.AIMS[folds.STANCES.index(stance)], stance, tmp_path)
    fold = folds.drag(ob, "VRM", "LeftHand", folds.place_of(ob, "VRM", place))
    assert fold.missed < 1e-3
    assert fold.bends[0] > {"shoulder": 110.0, "mouth": 95.0, "arm": 55.0}[place]
    assert fold.hips < 0.02
    assert max(fold.turned) < 12.0


def test_what_the_arm_cannot_reach_comes_from_the_shoulder_then_the_spine(tmp_path: Path) -> None:
    ob = figure("VRM", "CHILD", "STANDING", tmp_path)
    place = Vector(rigs.head(ob, imports.named("VRM", "LeftArm"))) + 1.4 * ARM * FRONT
    fold = folds.drag(ob, "VRM", "LeftHand", place)
    assert fold.missed < 1e-3
    assert fold.turned[0] > 15.0
    assert fold.hips < 0.25


@pytest.mark.parametrize("aim", imports.AIMS)
@pytest.mark.parametrize(("dragged", "offset"), [("Hips", (0.0, 0.0, -0.2 * LEG)), ("LeftFoot", (0.0, -0.1, 0.25))])
def test_straight_legs_bend_their_knees_forward(
    dragged: str, offset: tuple[float, float, float], aim: str, tmp_path: Path
) -> None:
    ob = figure("Biped", aim, "T", tmp_path)
    place = Vector(rigs.head(ob, imports.named("Biped", dragged))) + Vector(offset)
    fold = folds.drag(ob, "Biped", dragged, place)
    assert fold.missed < 1e-4
    assert len(fold.bends) == (2 if dragged == "Hips" else 1)
    assert min(fold.bends) > 50.0
    assert fold.aside < 5.0, "forward, whatever the roll"


def test_a_straight_knee_bends_to_the_side_of_its_chain(tmp_path: Path) -> None:
    """Even backward, as asked with Flip Bend; the other one bends forward."""
    ob = figure("Biped", "CHILD", "T", tmp_path)
    rows = imports.limbs("Biped")[:2]
    bpy.ops.ik_addon.character_setup(regions={"LEG"}, live=False)
    ob.data.bones.active = ob.data.bones[rows[0][1]]
    bpy.ops.ik_addon.flip_bend()
    bpy.ops.ik_addon.pose_body(bone=imports.named("Biped", "Hips"), offset=(0.0, 0.0, -0.1))
    left, right = (imports.bends(np.array([rigs.head(ob, name) for name in row])) for row in rows)
    assert left[1] > 0.05
    assert right[1] < -0.05


def test_a_message_says_why_a_joint_stopped_short(tmp_path: Path, capfd: Capture) -> None:
    ob = figure("Biped", "CHILD", "T", tmp_path)
    hand, hips = (imports.named("Biped", name) for name in ("LeftHand", "Hips"))
    away = {"bone": hand, "offset": (0.0, 0.0, 3.0)}
    assert "of the body's size. Held by: " in said(capfd, bpy.ops.ik_addon.pose_body, **away)
    for bone in ob.pose.bones:
        bone.matrix_basis.identity()
    assert "size. It is out of reach" in said(capfd, bpy.ops.ik_addon.pose_body, without_pins="ROOT", **away)
    for bone in ob.pose.bones:
        bone.matrix_basis.identity()
    for name in (row[1] for row in imports.limbs("Biped")[:2]):
        rigs.limit(ob.pose.bones[name], x=(-6, 6), z=(-6, 6))
    message = said(capfd, bpy.ops.ik_addon.pose_body, bone=hips, offset=(0.0, 0.0, -0.4))
    assert "Held by: left leg, right leg. At a limit: " in message
    assert "Bip01 R Calf" in message


# ---- which bone of a figure moves freely, and which stay without being pinned


def found(addon: Addon, ob: bpy.types.Object, bone: str) -> tuple[str, set[str]]:
    """Return the free root when a bone is dragged, and the feet."""
    figure = addon.module("anatomy.figure").Figure.of(ob)
    module = addon.module("anatomy.body")
    root = module.root_of(figure, figure.names.index(bone))
    return figure.names[root], {figure.names[foot] for foot in module.ends_of(figure, module.Region.LEG)}


@pytest.mark.usefixtures("rigify")
def test_metarigs_stand_on_their_feet(addon: Addon) -> None:
    for kind, bone, root, feet in (
        ("human", "hand.L", "spine", {"foot.L", "foot.R"}),
        ("human", "foot.L", "spine", {"foot.L", "foot.R"}),
        ("horse", "head", "spine.001", {"r_toe.L", "r_toe.R", "f_toe.L", "f_toe.R"}),
        ("cat", "spine.006", "spine", {"r_toe.L", "r_toe.R", "hand.L", "hand.R"}),
        ("bird", "head", "spine.003", {"foot.L", "foot.R"}),  # also the tail's parent
    ):
        assert found(addon, armature_of(kind), bone) == (root, feet), kind


def test_a_root_bone_of_the_whole_character_stays_in_place(addon: Addon) -> None:
    ob = rigs_named.build(RIGS["Manny"])
    assert found(addon, ob, "hand_l") == ("pelvis", {"foot_l", "foot_r"})
    assert found(addon, ob, "root")[0] == "root"


def test_without_legs_the_free_root_is_where_bones_branch(addon: Addon) -> None:
    ob = rigs.limb(rigs.straight(3), ["ground", "body", "tip"])
    rigs.add_bones(ob, [(0, 0, 2), (1, 0, 2), (2, 0, 2)], ["side", "end"], parent="body")
    assert found(addon, ob, "end") == ("body", set())
    assert found(addon, ob, "ground") == ("ground", set())


@pytest.mark.usefixtures("rigify")
def test_limbs_fold_in_their_plane_and_trunks_forward_and_back(addon: Addon) -> None:
    for kind, folding, twisting, trunk in (
        ("human", {"shin"}, {"forearm"}, {f"spine.00{i}" for i in range(1, 7)}),
        ("bird", {"shin"}, {"Wing.001"}, {"spine.005", "spine.006", "neck.001", "neck.002", "head"}),
        ("horse", {"lower_leg", "hind_foot", "forearm", "forefoot"}, set(), None),
    ):
        figure = addon.module("anatomy.figure").Figure.of(armature_of(kind))
        folds = addon.module("posing.read").folds_of(figure)
        found = {figure.names[bone]: fold for bone, fold in folds.items()}
        limbs = {name: fold for name, fold in found.items() if side_of(name)}
        assert {name for name, fold in limbs.items() if not fold.twists} == {f"{n}.{s}" for n in folding for s in "LR"}
        assert {name for name, fold in limbs.items() if fold.twists} == {f"{n}.{s}" for n in twisting for s in "LR"}
        for name, fold in found.items():
            assert fold.axes.T @ fold.axes == pytest.approx(np.eye(3))
            if not fold.twists:
                assert abs(fold.axes[0, 0]) > 0.99, name
        if trunk is not None:
            assert found.keys() - limbs.keys() == trunk
            assert all(found[name].twists and abs(found[name].axes[0, 0]) > 0.99 for name in trunk)


def test_a_straight_limb_folds_to_the_side_of_its_kind(addon: Addon) -> None:
    ob = rigs.limb([(0, 0, 2), (0, 0, 3)], ["hips"])
    for side, x in (("L", 0.3), ("R", -0.3)):
        places = [(x, 0, 2), (x, 0, 1), (x, 0, 0.1), (x, -0.3, 0)]
        rigs.add_bones(ob, places, [f"{name}.{side}" for name in ("thigh", "shin", "foot")], parent="hips")
    figure = addon.module("anatomy.figure").Figure.of(ob)
    folds = addon.module("posing.read").folds_of(figure)
    assert {figure.names[bone] for bone in folds} == {"shin.L", "shin.R"}
    assert all(abs(fold.axes[0, 0]) > 0.99 for fold in folds.values())


def test_limbs_fold_once_if_their_bones_are_split(addon: Addon) -> None:
    for rig in ("mGear", "MakeHuman", "Mixamo"):
        figure = addon.module("anatomy.figure").Figure.of(rigs_named.build(RIGS[rig]))
        folds = addon.module("posing.read").folds_of(figure)
        limbs = {bone for limb in find_members(figure) if limb.region in LIMBS for bone in limb.row}
        assert len(limbs & set(folds)) == 4, rig
