"""A drag moves the owner of a target or pole exactly, or not at all."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Quaternion, Vector

from tests import rigs
from tests.conftest import Addon

TURN = Quaternion((0.4, 1.0, -0.3), 0.6)


@pytest.fixture
def handle(addon: Addon) -> Any:
    def taken(ob: bpy.types.Object, bone: str, *, turns: bool = False) -> Any:
        return addon.module("targets.drag").Handle(addon.module("core.goals").Goal(ob, bone, turns))

    return taken


def test_a_bone_turns_about_its_head_as_requested(handle: Any) -> None:
    ob = rigs.limb([(0.2, 0.1, 0.3), (0.2, 0.9, 0.5)], ["base"])
    rigs.add_bones(ob, [(0.5, 0.5, 0.5), (0.9, 0.6, 0.8)], ["control"], parent="base")
    ob.matrix_world = Euler((0.3, 0.2, 0.1)).to_matrix().to_4x4()
    ob.pose.bones["base"].rotation_quaternion = (0.8, 0.3, 0.2, 0.4)
    bone = ob.pose.bones["control"]
    bone.rotation_quaternion = (0.9, 0.0, 0.3, 0.2)
    for inherits in (True, False):
        bone.bone.use_inherit_rotation = inherits
        bpy.context.view_layer.update()
        head, frame = rigs.head(ob, "control"), (ob.matrix_world @ bone.matrix).to_quaternion()
        handle(ob, "control").move(Vector((0.1, 0.0, 0.2)), TURN)
        bpy.context.view_layer.update()
        assert np.allclose(rigs.head(ob, "control") - head, (0.1, 0.0, 0.2), atol=1e-5)
        turned = (ob.matrix_world @ bone.matrix).to_quaternion()
        assert abs((TURN @ frame).normalized().dot(turned.normalized())) == pytest.approx(1.0, abs=1e-5)


def test_euler_angles_continue_from_their_values(handle: Any) -> None:
    goal = rigs.empty("Goal")
    goal.rotation_euler = (0.0, 0.0, 7.0)  # more than a full turn
    bpy.context.view_layer.update()
    handle(goal, "").move(Vector(), Quaternion((0.0, 0.0, 1.0), 0.1))
    assert tuple(goal.rotation_euler) == pytest.approx((0.0, 0.0, 7.1), abs=1e-5)


def test_locked_channels_keep_their_exact_values(handle: Any) -> None:
    goal = rigs.empty("Goal", (1.0, 2.0, 3.0))
    goal.rotation_euler = (0.3, 0.2, 0.1)
    goal.lock_location[1] = goal.lock_rotation[2] = True
    bpy.context.view_layer.update()
    before = goal.location.y, goal.rotation_euler.z
    handle(goal, "").move(Vector((0.1, 0.2, 0.3)), TURN)
    assert (goal.location.y, goal.rotation_euler.z) == before
    assert goal.location.x == pytest.approx(1.1)
    assert goal.rotation_euler.x != pytest.approx(0.3)


def test_turning_alone_needs_no_unlocked_location(handle: Any, addon: Addon) -> None:
    goal = rigs.empty("Goal")
    goal.lock_location = (True, True, True)
    bpy.context.view_layer.update()
    handle(goal, "", turns=True)
    refused = addon.module("core.translation.sentences").UserError
    with pytest.raises(refused, match="location of 'Goal' is locked"):
        handle(goal, "")
    goal.lock_location, goal.lock_rotation = (False, False, False), (True, True, True)
    handle(goal, "")
    with pytest.raises(refused, match="rotation of 'Goal' is locked"):
        handle(goal, "", turns=True)


def test_scaled_and_mirrored_matrices_give_the_rotation_blender_shows(addon: Addon) -> None:
    target: Any = rigs.empty("Target")
    target.rotation_mode = "QUATERNION"
    rng = np.random.default_rng(3)
    basis = np.repeat(np.eye(4)[None], 40, axis=0)
    for own in basis:
        size = rng.uniform(0.2, 3.0, 3) * rng.choice([-1.0, 1.0], 3)
        own[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0] * size
        own[:3, 3] = rng.normal(size=3)
    movable = addon.module("core.goals")
    rows = movable.Goal(target, "", turns=True).rows(basis)
    turned = rows[:, addon.module("core.channels").FIELDS["rotation_quaternion"]]
    expected = []
    for own in basis:
        target.matrix_basis = own.T.tolist()  # Blender takes columns
        expected.append(target.rotation_quaternion[:])
    assert np.abs(np.abs((turned * np.array(expected)).sum(axis=1)) - 1.0).max() < 1e-6
    assert np.abs(rows[:, :3] - basis[:, :3, 3]).max() < 1e-6
