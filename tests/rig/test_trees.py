"""Chains that share bones, in the written pose as the depsgraph evaluates it."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np

from tests import rigs
from tests.conftest import Addon


def torso() -> tuple[bpy.types.Object, bpy.types.Object, bpy.types.Object]:
    """Return a spine of three bones with two arms, whose chains share the spine, and the targets of both hands."""
    ob = rigs.armature()
    rigs.add_bones(ob, [(0, 0, 0), (0, -0.02, 0.3), (0, -0.02, 0.6), (0, 0, 0.9)], ["s0", "s1", "s2"])
    for side, x in (("L", 1.0), ("R", -1.0)):
        rigs.add_bones(
            ob,
            [(0.2 * x, 0, 0.85), (0.5 * x, 0.05, 0.8), (0.8 * x, 0, 0.75)],
            [f"upper.{side}", f"lower.{side}"],
            parent="s2",
            connect=False,
        )
        target = rigs.empty(f"Hand.{side}", (0.6 * x, -0.3, 0.9))
        rigs.chain(ob, f"lower.{side}", target, 5)
    return ob, bpy.data.objects["Hand.L"], bpy.data.objects["Hand.R"]


def missed(ob: bpy.types.Object, side: str) -> float:
    """Return the world distance from a hand to its target."""
    return rigs.miss(ob, f"lower.{side}")


def test_weights_decide_between_conflicting_targets(addon: Addon) -> None:
    ob, left, right = torso()
    left.location, right.location = (3.0, 0.0, 0.5), (-3.0, 0.0, 0.5)
    ob.ik_addon.live = True
    short = {}
    for weight in (1.0, 20.0):
        ob.pose.bones["lower.L"].ik_addon.weight = weight
        bpy.context.view_layer.update()
        short[weight] = missed(ob, "L"), missed(ob, "R")
    assert short[20.0][0] < short[1.0][0] - 0.01
    assert short[20.0][1] > short[1.0][1] + 0.01
    for side in "LR":
        report: Any = addon.report(ob, f"lower.{side}")
        assert not report.reached
        assert report.error > 0.1


def test_a_pole_works_in_a_tree() -> None:
    ob, _left, _right = torso()
    sides = {}
    for y in (-2.0, 2.0):
        pole = rigs.empty("Pole", (0.6, y, 0.8))
        ob.pose.bones["lower.L"].ik_addon.pole = pole
        rigs.go_live(ob)
        assert missed(ob, "L") < 1e-4
        elbow, shoulder = rigs.head(ob, "lower.L"), rigs.head(ob, "upper.L")
        middle = (shoulder + rigs.tail(ob, "lower.L")) / 2
        sides[y] = elbow[1] - middle[1]
    assert sides[-2.0] < 0.0 < sides[2.0]


def test_a_chain_that_leaves_a_tree_releases_its_bones() -> None:
    ob, _left, _right = torso()
    before = rigs.channels(ob)
    rigs.go_live(ob)
    ob.pose.bones["lower.R"].ik_addon.enabled = False
    bpy.context.view_layer.update()
    assert missed(ob, "L") < 1e-4
    assert ob.pose.bones["lower.R"].matrix_basis == ob.pose.bones["lower.R"].matrix_basis.Identity(4)
    ob.ik_addon.live = False
    assert np.array_equal(rigs.channels(ob), before)
