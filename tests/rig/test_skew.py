"""Thighs: the rest matrix that Blender computes for a bone that points against its parent is only nearly a rotation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bpy
import numpy as np
import pytest

from tests import rigs

if TYPE_CHECKING:
    from tests.conftest import Addon

PLACES = ((0.3, -0.3, 0.4), (0.0, 0.4, 0.3), (0.5, 0.2, 0.6))
HIP = (0.098, 0.0124, 1.072)
NEAR = 5e-7
"""Relative to the leg's length of about 1: the accuracy of single precision."""


def leg() -> tuple[bpy.types.Object, bpy.types.Object]:
    """The left leg of the human metarig, and its target."""
    ob = rigs.armature()
    rigs.add_bones(ob, [(0.0, 0.0552, 1.0099), (0.0, 0.0172, 1.1573)], ["pelvis"])
    points = [HIP, (0.098, -0.0286, 0.5372), (0.098, 0.0162, 0.0852)]
    rigs.add_bones(ob, points, ["thigh", "shin"], parent="pelvis", connect=False)
    return ob, rigs.empty("Target", points[-1])


@pytest.mark.parametrize("limits", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_a_leg_reaches_its_target_at_the_first_attempt(
    addon: Addon, monkeypatch: pytest.MonkeyPatch, limits: bool, turned: bool
) -> None:
    ob, target = leg()
    rest = np.array(ob.data.bones["pelvis"].matrix_local.inverted() @ ob.data.bones["thigh"].matrix_local)[:3, :3]
    assert np.abs(rest @ rest.T - np.eye(3)).max() > 1e-6, "the thigh is not what this is about"
    if turned:
        pelvis = ob.pose.bones["pelvis"]
        pelvis.rotation_quaternion, pelvis.scale = (0.9, 0.3, 0.2, -0.1), (0.8, 0.8, 0.8)
    if limits:
        shin = ob.pose.bones["shin"]
        shin.use_ik_limit_x, shin.ik_min_x, shin.ik_max_x = True, 0.0, 2.6
    rigs.chain(ob, "shin", target, 2)
    monkeypatch.setattr(addon.module("rig.write.solving"), "REFINEMENTS", 0)
    ob.ik_addon.live = True
    root = rigs.head(ob, "thigh")
    for place in PLACES:
        away = (np.array(place) - HIP) * (0.8 if turned else 1.0)
        target.location = (root + away).tolist()
        bpy.context.view_layer.update()
        assert np.linalg.norm(rigs.tail(ob, "shin") - rigs.position(target)) < NEAR
