"""Which bone of a figure moves freely, and which stay without being pinned."""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from ik_addon.anatomy.body import LIMBS, find_members
from ik_addon.anatomy.parts import side_of
from tests import rigs, rigs_named
from tests.conftest import Addon
from tests.rigs_generated import armature_of
from tests.rigs_named import RIGS


def found(addon: Addon, ob: bpy.types.Object, bone: str) -> tuple[str, set[str]]:
    """Return the free root when a bone is dragged, and the feet."""
    figure = addon.module("anatomy.figure").Figure.of(ob)
    module = addon.module("anatomy.body")
    root = module.root_of(figure, figure.names.index(bone))
    return figure.names[root], {figure.names[foot] for foot in module.feet_of(figure)}


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
    ob = rigs.armature()
    rigs.add_bones(ob, rigs.straight(3), ["ground", "body", "tip"])
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
        folds = addon.module("posing.figure").folds_of(figure)
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
    ob = rigs.armature()
    rigs.add_bones(ob, [(0, 0, 2), (0, 0, 3)], ["hips"])
    for side, x in (("L", 0.3), ("R", -0.3)):
        places = [(x, 0, 2), (x, 0, 1), (x, 0, 0.1), (x, -0.3, 0)]
        rigs.add_bones(ob, places, [f"{name}.{side}" for name in ("thigh", "shin", "foot")], parent="hips")
    figure = addon.module("anatomy.figure").Figure.of(ob)
    folds = addon.module("posing.figure").folds_of(figure)
    assert {figure.names[bone] for bone in folds} == {"shin.L", "shin.R"}
    assert all(abs(fold.axes[0, 0]) > 0.99 for fold in folds.values())


def test_limbs_fold_once_if_their_bones_are_split(addon: Addon) -> None:
    for rig in ("mGear", "MakeHuman", "Mixamo"):
        figure = addon.module("anatomy.figure").Figure.of(rigs_named.build(RIGS[rig]))
        folds = addon.module("posing.figure").folds_of(figure)
        limbs = {bone for limb in find_members(figure) if limb.region in LIMBS for bone in limb.row}
        assert len(limbs & set(folds)) == 4, rig
