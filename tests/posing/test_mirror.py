"""X-Axis Mirror: the other side follows a drag, and pins are set on both sides."""

from __future__ import annotations

import bpy
import pytest
from mathutils import Quaternion, Vector

from tests.conftest import Addon
from tests.posing.test_drag import angle, drag, goes, head, pose, turn

SIGNS = Vector((-1.0, 1.0, 1.0))
OFFSET = Vector((0.1, -0.4, 0.3))


def mirrored(turned: Quaternion) -> Quaternion:
    return Quaternion((turned.w, turned.x, -turned.y, -turned.z))


@pytest.fixture
def both(human: bpy.types.Object) -> bpy.types.Object:
    """Return the human metarig with X-Axis Mirror on."""
    human.pose.use_mirror_x = True
    return human


def test_the_other_hand_goes_to_the_mirrored_place(both: bpy.types.Object) -> None:
    drag(both, "hand.L", OFFSET, 1e-3)
    for bone in both.pose.bones:
        image = bpy.utils.flip_name(bone.name)
        assert (head(both, image) - SIGNS * head(both, bone.name)).length < 1e-3, bone.name


def test_without_mirror_the_other_hand_is_not_dragged(human: bpy.types.Object) -> None:
    pose(bone="hand.L", offset=OFFSET)
    assert (head(human, "hand.R") - SIGNS * head(human, "hand.L")).length > 0.1


def test_relative_mirror_keeps_the_difference_between_sides(both: bpy.types.Object) -> None:
    both.pose.bones["upper_arm.R"].rotation_quaternion = Quaternion((1.0, 0.0, 0.0), 0.4)
    bpy.context.view_layer.update()
    both.pose.use_mirror_relative = True
    with goes(both, "hand.R", SIGNS * OFFSET / 2.0, 1e-3):
        pose(bone="hand.L", offset=OFFSET / 2.0)
    both.pose.use_mirror_relative = False
    pose(bone="hand.L", offset=(0.0, 0.0, 0.0))
    assert (head(both, "hand.R") - SIGNS * head(both, "hand.L")).length < 1e-3


@pytest.mark.parametrize("relative", [False, True])
def test_both_hands_turn(both: bpy.types.Object, addon: Addon, relative: bool) -> None:
    both.pose.use_mirror_relative = relative
    module = addon.module("posing.drag")
    body = module.BodyDrag(bpy.context, both, module.Ask("hand.L"))
    body.move(bpy.context, OFFSET)
    rests = {name: turn(both, name) for name in ("hand.L", "hand.R")}
    spin = Quaternion((0.3, 1.0, 0.5), 0.6)
    body.move(bpy.context, OFFSET, spin)
    assert angle(turn(both, "hand.L"), spin @ rests["hand.L"]) < 0.5
    assert angle(turn(both, "hand.R"), mirrored(spin) @ rests["hand.R"]) < 0.5


def test_a_pinned_counterpart_follows_and_a_constrained_one_does_not(both: bpy.types.Object) -> None:
    bpy.ops.ik_addon.pin()
    assert {bone.name for bone in both.pose.bones if bone.ik_addon.pin} == {"hand.L", "hand.R"}
    pose(bone="hand.L", offset=OFFSET / 2.0)
    assert (head(both, "hand.R") - SIGNS * head(both, "hand.L")).length < 1e-3
    both.pose.bones["hand.R"].constraints.new("COPY_ROTATION").target = both
    drag(both, "hand.L", OFFSET / 4.0, 1e-3)


def test_a_short_length_applies_to_both_sides(both: bpy.types.Object) -> None:
    pose(bone="hand.L", offset=(0.05, -0.2, 0.1), length=2)
    moved = {bone.name for bone in both.pose.bones if bone.rotation_quaternion.angle > 1e-6}
    assert moved == {"upper_arm.L", "forearm.L", "upper_arm.R", "forearm.R"}
    left, right = (both.pose.bones[f"forearm.{side}"].rotation_quaternion.angle for side in "LR")
    assert left == pytest.approx(right, abs=1e-4)
