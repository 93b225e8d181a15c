"""Which bone of a figure moves freely, and what stays without being pinned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bpy
import pytest

from tests import rigs, rigs_named
from tests.anatomy.test_chain_ends_named import armature_of, rigify
from tests.rigs_named import RIGS

if TYPE_CHECKING:
    from tests.conftest import Addon

__all__ = ["rigify"]


def found(addon: Addon, ob: bpy.types.Object, bone: str) -> tuple[str, set[str]]:
    """The bone that moves freely when a bone is dragged, and the feet."""
    figure = addon.module("anatomy.figure").Figure.of(ob)
    module = addon.module("posing.figure")
    root = module.root_of(figure, figure.names.index(bone))
    return figure.names[root], {figure.names[foot] for foot in module.feet_of(figure)}


@pytest.mark.usefixtures("rigify")
@pytest.mark.parametrize(
    ("kind", "bone", "root", "feet"),
    [
        ("human", "hand.L", "spine", {"foot.L", "foot.R"}),
        ("human", "foot.L", "spine", {"foot.L", "foot.R"}),
        ("horse", "head", "spine.001", {"r_toe.L", "r_toe.R", "f_toe.L", "f_toe.R"}),
        ("bird", "head", "spine.003", {"foot.L", "foot.R"}),  # the parent of the tail, too
    ],
)
def test_metarigs_stand_on_their_feet(addon: Addon, kind: str, bone: str, root: str, feet: set[str]) -> None:
    assert found(addon, armature_of(kind), bone) == (root, feet)


def test_a_bone_for_the_whole_character_stays_where_it_is(addon: Addon) -> None:
    ob = rigs_named.build(RIGS["Manny"])
    assert found(addon, ob, "hand_l") == ("pelvis", {"foot_l", "foot_r"})
    assert found(addon, ob, "root")[0] == "root"


def test_without_legs_it_is_where_the_bones_branch(addon: Addon) -> None:
    ob = rigs.armature()
    rigs.add_bones(ob, rigs.straight(3), ["ground", "body", "tip"])
    rigs.add_bones(ob, [(0, 0, 2), (1, 0, 2), (2, 0, 2)], ["side", "end"], parent="body")
    assert found(addon, ob, "end") == ("body", set())
    assert found(addon, ob, "ground") == ("ground", set())
