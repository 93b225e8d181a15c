"""Bones of a body that limbs are attached to."""

from __future__ import annotations

from typing import Any

import pytest

from tests import rigs, rigs_named
from tests.conftest import Addon
from tests.rigs_named import RIGS


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
    ob = rigs.armature()
    rigs.add_bones(ob, rigs.bent(5), list("abcde"))
    figure, body = figure_of(addon, ob), addon.module("anatomy.body")
    assert body.parent_bone_of(figure, [3, 4]) == 2
    assert body.parent_bone_of(figure, [3, 4], {2, 1}) == 0
    assert body.parent_bone_of(figure, [0, 1]) is None
    assert body.chest_of(figure) is None
    assert body.head_of(figure) is None
