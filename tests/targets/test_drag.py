"""The pose shown during a drag, in which it settles, and a drag that reaches over a range of frames."""

from contextlib import ExitStack
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Quaternion, Vector

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import refused

BONES = 6
OFFSETS = ((0.0, 0.3, -0.2), (0.5, 1.6, 0.9), (-0.3, -0.4, -0.5), (-1.9, 0.2, 0.3))
"""Within the reach of the chains, and out of it."""


def limited(by_bone: bool, live: bool) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return two chains with limits and poles; the first one's target is a bone of the armature, or an object."""
    ob = rigs.armature()
    goals = []
    for x, side in ((0.0, "A"), (2.0, "B")):
        joints = [(x + px, py, pz) for px, py, pz in rigs.bent(BONES, 1.0 / BONES, 0.3)]
        rigs.add_bones(ob, joints, [f"{side}{i}" for i in range(BONES)])
        goals.append(rigs.empty(f"Target {side}", tuple(np.add(joints[-1], (0.0, 0.05, -0.1)))))
        pole = rigs.empty(f"Pole {side}", (x + 0.4, 1.5, 0.5))
        rigs.chain(ob, f"{side}{BONES - 1}", goals[-1], BONES, pole=pole)
    rigs.add_bones(ob, [(0.0, 0.2, 0.8), (0.0, 0.4, 0.8)], ["control"])
    for bone in ob.pose.bones:
        rigs.limit(bone, x=(-40, 40), z=(-23, 23))
    chain: Any = ob.pose.bones[f"A{BONES - 1}"].ik_addon
    if by_bone:
        chain.target, chain.target_bone = ob, "control"
    ob.ik_addon.live = live
    bpy.context.scene.frame_set(1)
    return ob, goals[1]


def bits(ob: bpy.types.Object) -> bytes:
    bpy.context.view_layer.update()
    return rigs.channels(ob).tobytes()


@pytest.mark.parametrize("live", [True, False], ids=["live", "not live"])
@pytest.mark.parametrize("by_bone", [False, True], ids=["object", "bone"])
def test_a_drag_settles_in_the_pose_of_a_frame_change(addon: Addon, by_bone: bool, live: bool) -> None:
    drag = addon.module("targets.drag")
    ob, other = limited(by_bone, live)
    gesture = drag.Drag(bpy.context, ob.pose.bones[f"A{BONES - 1}"])
    differ = False
    for number, offset in enumerate(OFFSETS):
        with addon.module("live.registry").hurried():
            gesture.move(bpy.context, Vector(offset))
        hurried = bits(ob)
        if number == 2:
            # Another chain is solved fully beside the dragged one, and does not change it.
            other.location.z -= 0.1
        if live and number % 2:
            bpy.context.scene.frame_set(1)
            played = bits(ob)
        gesture.settle(bpy.context)
        settled = bits(ob)
        if live:
            assert not number % 2 or played == settled, "a frame change finishes a hurried solve"
            bpy.context.scene.frame_set(1)
            assert bits(ob) == settled
            addon.module("live.registry").clear()
            bpy.context.scene.frame_set(1)
            assert bits(ob) == settled
        else:
            addon.module("live.solving").solve_now(ob, bpy.context.evaluated_depsgraph_get(), [f"A{BONES - 1}"])
            assert bits(ob) == settled
        differ |= hurried != settled
    assert differ, "no first attempt was other than the settled pose: this shows nothing"


# ---- a drag that reaches over a range of frames


NOW, REACH = 30, 10


def smooth(frame: float) -> float:
    near = max(0.0, 1.0 - abs(frame - NOW) / REACH)
    return near * near * (3.0 - 2.0 * near)


@pytest.fixture
def arm() -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return an armature with a live arm whose target moves and turns, with keys on frames 1 to 60."""
    ob, target = rigs.arm()
    target.rotation_mode = "XYZ"
    frames = range(1, 61)
    rigs.key(target, "location", {i: (0.3 * np.sin(i / 9.0), 0.4, 1.0 + 0.2 * np.cos(i / 7.0)) for i in frames})
    rigs.key(target, "rotation_euler", {i: (0.2 * np.sin(i / 5.0), 0.01 * i, 0.7) for i in frames})
    rigs.go_live(ob)
    bpy.context.scene.frame_set(NOW)
    return ob, target


def keys(target: bpy.types.Object, field: str = "location") -> Any:
    """Return frames (K,) and values (K, 3) of the keys of a property."""
    curves = [curve for curve in rigs.fcurves(target) if curve.data_path == field]
    points = np.array([[key.co[:] for key in curve.keyframe_points] for curve in curves])
    return points[0, :, 0], points[:, :, 1].T


def test_neighbors_take_their_share(arm: Any) -> None:
    _ob, target = arm
    offset = np.array((0.1, -0.2, 0.3))
    frames, before = keys(target)
    bpy.ops.ik_addon.drag_target(offset=offset, range=REACH)
    after = keys(target)[1]
    assert (keys(target)[0] == frames).all(), "no new key"
    shares = np.array([smooth(frame) for frame in frames])
    assert np.allclose(after - before, shares[:, None] * offset, atol=1e-5)
    outside = np.abs(frames - NOW) >= REACH
    assert (after[outside] == before[outside]).all()
    dragged = target.location.copy()
    bpy.context.scene.frame_set(NOW + 1)
    bpy.context.scene.frame_set(NOW)
    assert target.location == dragged


def test_without_a_range_no_other_key_changes(arm: Any) -> None:
    before = keys(arm[1])[1]
    bpy.ops.ik_addon.drag_target(offset=(0.1, 0.0, 0.0))
    assert (keys(arm[1])[1] == before).all()


def test_a_rotation_is_added_as_a_rotation(addon: Addon, arm: Any) -> None:
    ob, target = arm
    before = keys(target, "rotation_euler")[1]
    turn = Quaternion((0.3, 0.5, 0.8), 1.2)
    drag = addon.module("targets.drag")
    reach = addon.module("targets.edit_range").EditRange(REACH)
    held = drag.Drag(bpy.context, ob.pose.bones["lower"], turns=True, reach=reach)
    held.move(bpy.context, Vector(), turn)
    held.finish(bpy.context)
    for frame, one, other in zip(*keys(target, "rotation_euler"), before, strict=True):
        turned = Euler(one).to_quaternion() @ Euler(other).to_quaternion().inverted()
        expected = Quaternion().slerp(turn, smooth(frame))
        assert turned.rotation_difference(expected).angle < 1e-3, frame


def test_an_edit_that_returns_to_its_start_leaves_keys_as_they_were(addon: Addon, arm: Any) -> None:
    target, before = arm[1], keys(arm[1])[1]
    goal, reach = addon.module("core.goals").Goal(target), addon.module("targets.edit_range").EditRange(REACH)
    (spread,) = reach.spreads(bpy.context.scene, {0: goal}).values()
    start = target.location.copy()
    with ExitStack() as undo:
        for offset in (0.0, 0.1, 0.0):
            target.location = start + Vector((offset, 0.0, 0.0))
            spread.put(undo)
            assert np.allclose(keys(target)[1], before, atol=1e-6) is (offset == 0.0)


def test_an_unkeyed_target_gets_no_keys(arm: Any) -> None:
    _ob, target = arm
    target.animation_data_clear()
    bpy.ops.ik_addon.drag_target(offset=(0.1, 0.0, 0.0), range=REACH)
    assert target.animation_data is None


def test_sparse_keys_get_one_here_and_at_the_ends(arm: Any) -> None:
    _ob, target = arm
    for curve in rigs.fcurves(target):
        for key in reversed(curve.keyframe_points):
            if key.co.x % 8 != 1:
                curve.keyframe_points.remove(key)
            else:
                key.interpolation = "BEZIER"
        curve.update()
    every = [frame / 2.0 for frame in range(2, 116)]
    before = np.array([[curve.evaluate(frame) for curve in rigs.fcurves(target, "location")] for frame in every])
    bpy.ops.ik_addon.drag_target(offset=(0.1, 0.2, 0.3), range=REACH)
    after = np.array([[curve.evaluate(frame) for curve in rigs.fcurves(target, "location")] for frame in every])
    assert set(keys(target)[0]) == {*range(1, 61, 8), NOW, NOW - REACH, NOW + REACH}
    outside = np.abs(np.array(every) - NOW) >= REACH
    assert np.allclose(after[outside], before[outside], atol=1e-6)
    assert (after - before)[every.index(NOW)] == pytest.approx((0.1, 0.2, 0.3), abs=1e-6)


def test_a_planted_contact_moves_as_a_whole(arm: Any) -> None:
    ob, target = arm
    contacts: dict[int, object] = {1: set(), 26: {"HEEL"}, 36: set(), 42: {"HEEL"}, 44: set()}
    rigs.key(ob.pose.bones["lower"], "ik_addon.contact", contacts)
    bpy.context.scene.frame_set(NOW)
    frames, before = keys(target)
    bpy.ops.ik_addon.drag_target(offset=(0.1, 0.2, 0.3), range=REACH)
    moved = (keys(target)[1] - before)[:, 1] / 0.2
    at = {round(frame): share for frame, share in zip(frames, moved, strict=True)}
    assert [at[frame] for frame in range(26, 36)] == pytest.approx([1.0] * 10, abs=1e-5)
    assert at[42] == pytest.approx(at[43], abs=1e-5)
    assert 0.0 < at[43] < 1.0
    assert at[26 - REACH] == at[35 + REACH] == 0.0, "the range is counted from the ends of the contact"


def test_keys_that_cannot_be_written_leave_everything_as_it_was(arm: Any) -> None:
    _ob, target = arm
    rigs.fcurves(target, "location")[2].lock = True
    before = keys(target)[1]
    with refused("locked"):
        bpy.ops.ik_addon.drag_target(offset=(0.1, 0.2, 0.3), range=REACH)
    assert (keys(target)[1] == before).all()
