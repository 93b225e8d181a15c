"""Finding the hand or foot of a limb."""

from __future__ import annotations

import bpy
import pytest

from tests import rigs_named
from tests.anatomy.test_chain_ends import Tree, build, row
from tests.anatomy.test_chain_ends_named import PUBLISHED
from tests.conftest import Addon


def found(addon: Addon, ob: bpy.types.Object, chain: list[str]) -> str | None:
    figure = addon.module("anatomy.figure").Figure.of(ob)
    end = addon.module("anatomy.chain_ends").end_below(figure, [figure.names.index(name) for name in chain])
    return None if end is None else figure.names[end]


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_limb_of_a_published_rig_has_an_end_bone(addon: Addon, name: str) -> None:
    ob = rigs_named.build(PUBLISHED[name])
    for chain in rigs_named.limbs(PUBLISHED[name], ob):
        end = found(addon, ob, chain)
        assert end is not None, chain
        assert ob.data.bones[chain[-1]] in ob.data.bones[end].parent_recursive
        assert rigs_named.place(PUBLISHED[name], ob, end) in ("wrist", "ankle"), end


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
    assert found(addon, build(tree), chain) == expected


def test_a_bone_moved_by_a_constraint_is_no_end_bone(addon: Addon) -> None:
    ob = build(row("thigh.L", "shin.L", "foot.L=0.3"))
    ob.pose.bones["foot.L"].constraints.new("COPY_ROTATION").target = ob
    assert addon.module("chains.end_bone").find(ob, [ob.pose.bones[name] for name in ("thigh.L", "shin.L")]) is None
