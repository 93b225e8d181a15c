"""Each solver in the written pose, as the depsgraph evaluates it: solved live, by button, by bake and by drag."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.reliability.states import activate

BONES = 6
FRAMES = (1, 13, 4, 20, 9, 13, 1)
CASES: dict[str, dict[str, Any]] = {
    "even bend": {"solver": "EVEN_BEND"},
    "led from the root": {"solver": "EVEN_BEND", "bend_lead": -0.7},
    "led from the tip": {"bend_lead": 1.0},
    "fabrik": {"solver": "FABRIK"},
    "fabrik with a pole": {"solver": "FABRIK", "pole": True},
    "fabrik with its target's rotation": {"solver": "FABRIK", "use_rotation": True},
    "planar fabrik": {"solver": "FABRIK", "planar": True},
    "planar, led from the tip": {"solver": "EVEN_BEND", "bend_lead": 1.0, "planar": True},
    "fabrik with limits": {"solver": "FABRIK", "limits": True},
    "stiff": {"solver": "EVEN_BEND", "stiff": True},
    "planar and stiff": {"solver": "EVEN_BEND", "stiff": True, "planar": True},
}


def tail(name: str, *, keyed: bool) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a chain whose target is keyed and, on demand, its FK pose too."""
    settings = dict(CASES[name])
    ob = rigs.armature()
    rigs.add_bones(ob, rigs.bent(BONES), [f"t{i}" for i in range(BONES)])
    if settings.pop("limits", False):
        for bone in ob.pose.bones:
            bone.use_ik_limit_x = bone.use_ik_limit_z = bone.lock_ik_y = True
            bone.ik_min_x = bone.ik_min_z = -1.0
            bone.ik_max_x = bone.ik_max_z = 1.0
    if settings.pop("stiff", False):
        for i, bone in enumerate(ob.pose.bones):
            bone.ik_stiffness_x, bone.ik_stiffness_z = (0.9, 0.5) if i < BONES // 2 else (0.0, 0.0)
    if settings.pop("pole", False):
        settings["pole"] = rigs.empty("Pole", (3.0, 1.0, 2.0))
    target = rigs.empty("Target")
    rigs.key(target, "location", {1: (0.3, 0.5, 0.6 * BONES), 10: (1.5, -0.4, 2.0), 20: (-0.4, 0.2, 0.5 * BONES)})
    rigs.chain(ob, f"t{BONES - 1}", target, BONES, **settings)
    if keyed:
        turns = {1: (1.0, 0.0, 0.0, 0.0), 20: (0.95, 0.2, 0.1, -0.1)}
        rigs.key(ob.pose.bones["t2"], "rotation_quaternion", turns)
    return ob, target


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_a_frame_has_the_same_pose_by_jump_and_by_playback(name: str, keyed: bool) -> None:
    ob, _target = tail(name, keyed=keyed)
    ob.ik_addon.live = True
    by_jumps, in_order = rigs.poses_at(ob, FRAMES), rigs.poses_at(ob, range(1, 21))
    assert not rigs.apart(by_jumps, {frame: in_order[frame] for frame in by_jumps})
    if "planar" not in name:
        for frame in (1, 7, 20):
            bpy.context.scene.frame_set(frame)
            assert rigs.miss(ob, f"t{BONES - 1}") < 1e-4 * BONES


@pytest.mark.parametrize("name", CASES)
def test_bake_matches_live(name: str) -> None:
    ob, _target = tail(name, keyed=True)
    ob.ik_addon.live = True
    live = rigs.poses_at(ob, range(1, 21))
    rigs.bake(ob, 1, 20)
    for frame, pose in rigs.poses_at(ob, live).items():
        np.testing.assert_allclose(pose, live[frame], atol=2e-4)


@pytest.mark.parametrize("name", CASES)
def test_drag_matches_a_fresh_solve(name: str) -> None:
    ob, target = tail(name, keyed=False)
    target.animation_data_clear()
    target.location = (0.4, 0.3, 0.6 * BONES)
    rigs.go_live(ob)
    activate(ob, f"t{BONES - 1}")
    assert bpy.ops.ik_addon.drag_target(offset=(0.3, -0.5, -0.4)) == {"FINISHED"}
    dragged = rigs.pose(ob)
    bpy.context.scene.frame_set(2)
    bpy.context.scene.frame_set(1)
    np.testing.assert_allclose(rigs.pose(ob), dragged, atol=1e-5)


def test_fabrik_is_led_by_its_tip() -> None:
    """Move the target by a fiftieth of the chain's length, and look at the pose shown."""
    turned = {}
    for solver in ("FABRIK", "EVEN_BEND"):
        ob = rigs.armature(solver)
        rigs.add_bones(ob, [(0.0, 0.0, 0.1 * i) for i in range(11)], [f"{solver}{i}" for i in range(10)])
        rigs.chain(ob, f"{solver}9", rigs.empty(f"At {solver}", (0.02, 0.0, 0.98)), 10, solver=solver)
        rigs.go_live(ob)
        bones = rigs.evaluated(ob).pose.bones
        angles = [bones[f"{solver}{i}"].matrix_basis.to_quaternion().angle for i in range(10)]
        turned[solver] = sum(angles[-3:]) / sum(angles)
    assert turned["FABRIK"] > 0.9
    assert turned["EVEN_BEND"] < 0.25
