"""Snapping between FK and IK: goals move to the pose, or the solved pose becomes the FK pose."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix

from tests import rigs
from tests.conftest import Capture
from tests.reliability import states
from tests.reliability.states import activate, joints, refused, said, turns

PLACED = Matrix.LocRotScale((3.0, -2.0, 1.0), Euler((0.4, -1.1, 2.0)), (1.5, 1.5, 1.5))
POINTS = [(0, 0, 0), (0.1, -0.3, 0.9), (0.0, 0.2, 1.8), (0.2, 0.0, 2.5)]


def limb(count: int = 2, matrix: Matrix | None = None, straight: bool = False) -> bpy.types.Object:
    """Return a limb with a chain, an FK pose, and a target and a pole placed somewhere."""
    ob = rigs.limb(rigs.straight(count) if straight else POINTS[: count + 1], "abc"[:count])
    ob.matrix_world = matrix or Matrix.Identity(4)
    tip = "abc"[count - 1]
    target, pole = rigs.empty("Target", (0.7, 0.5, 1.1)), rigs.empty("Pole", (1.0, -2.0, 0.5))
    target.matrix_world = ob.matrix_world @ target.matrix_basis
    pole.matrix_world = ob.matrix_world @ pole.matrix_basis
    rigs.chain(ob, tip, target, count, pole=pole, pole_angle=0.4)
    if not straight:
        for i, bone in enumerate(ob.pose.bones):
            bone.rotation_quaternion = Euler((0.3, -0.2, 0.4 * i)).to_quaternion()
    bpy.context.view_layer.update()
    return ob


def size(ob: bpy.types.Object) -> float:
    return math.fsum(bone.length for bone in ob.data.bones)


def assert_same_pose(ob: bpy.types.Object, before: Any, turned: Any) -> None:
    assert np.abs(joints(ob) - before).max() < 1e-4 * size(ob)
    angles = [a.rotation_difference(b).angle for a, b in zip(turned, turns(ob), strict=True)]
    assert max(min(angle, 2.0 * math.pi - angle) for angle in angles) < 1e-3


@contextmanager
def same_pose(ob: bpy.types.Object) -> Iterator[None]:
    """Assert that the code inside leaves the pose as it is."""
    before = joints(ob), turns(ob)
    yield
    assert_same_pose(ob, *before)


def keyed(ob: bpy.types.Object) -> dict[str, list[float]]:
    """Return the frames of an object's keys, by path."""
    return {path: frames for (path, _index), frames in states.keyed(ob).items()}


# ---- snapping on the current frame


@pytest.mark.parametrize("kind", ["two bones", "three bones", "with rotation", "straight", "goals with parents"])
@pytest.mark.parametrize("matrix", [None, PLACED])
def test_solving_a_snapped_chain_moves_nothing(kind: str, matrix: Matrix | None) -> None:
    count = 3 if kind in {"three bones", "with rotation"} else 2
    ob = limb(count, matrix, straight=kind == "straight")
    chain = ob.pose.bones["abc"[count - 1]].ik_addon
    chain.use_rotation = kind == "with rotation"
    if kind == "goals with parents":
        chain.target.parent = rigs.empty("Parent", (1, 2, 3))
        chain.target.parent.scale = (2, 2, 2)
        chain.pole.parent = chain.target
    with same_pose(ob):
        with same_pose(ob):
            assert bpy.ops.ik_addon.snap_target() == {"FINISHED"}
        with same_pose(ob):
            bpy.ops.ik_addon.solve()
        ob.ik_addon.live = True


@pytest.mark.parametrize("enabled", [False, True])
def test_takes_the_fk_pose_of_a_live_chain(enabled: bool) -> None:
    ob = limb()
    chain = ob.pose.bones["b"].ik_addon
    with same_pose(ob):
        with same_pose(ob):
            chain.enabled = enabled
            rigs.go_live(ob)
            bpy.ops.ik_addon.snap_target(pose="FK")
            assert chain.enabled == enabled
        chain.enabled = True


def test_takes_the_shown_pose_of_a_chain_that_misses_its_target() -> None:
    ob = limb()
    chain = ob.pose.bones["b"].ik_addon
    chain.target.location = (3.0, 3.0, 3.0)
    rigs.go_live(ob)
    with same_pose(ob):
        bpy.ops.ik_addon.snap_target(pose="SHOWN")
    assert rigs.miss(ob, "b") < 1e-4


@pytest.mark.parametrize("live", [False, True])
def test_the_animators_placement_stays_when_the_chain_is_on(live: bool) -> None:
    ob = limb()
    chain = ob.pose.bones["b"].ik_addon
    ob.ik_addon.live = live
    chain.target.location = (0.2, 0.8, 1.2)
    if not live:
        bpy.ops.ik_addon.solve()
    placed = chain.target.location.copy()
    with same_pose(ob):
        bpy.ops.ik_addon.snap_target()
    assert (chain.target.location - placed).length < 1e-4


def test_bones_as_goals_are_snapped() -> None:
    ob = limb()
    rigs.add_bones(ob, [(0.5, 0, 0), (0.5, 0, 0.5)], ["body"])
    rigs.add_bones(ob, [(1, 0, 1), (1, 0, 1.3)], ["hand"], parent="body")
    rigs.add_bones(ob, [(1, -2, 1), (1, -2, 1.3)], ["elbow"])
    ob.pose.bones["body"].rotation_quaternion = Euler((0.3, 0.2, 0.1)).to_quaternion()
    chain = ob.pose.bones["b"].ik_addon
    chain.target, chain.target_bone, chain.pole, chain.pole_bone = ob, "hand", ob, "elbow"
    activate(ob, "b")
    before = rigs.tail(ob, "b"), rigs.tail(ob, "a")
    bpy.ops.ik_addon.snap_target()
    assert rigs.miss(ob, "b") < 1e-4
    ob.ik_addon.live = True
    for bone, place in zip("ba", before, strict=True):
        assert np.linalg.norm(rigs.tail(ob, bone) - place) < 1e-4, bone


def test_chains_attached_to_others_are_snapped_to_their_solved_place() -> None:
    ob = limb()
    rigs.add_bones(ob, [POINTS[2], (0.3, 0.3, 2.6), (0.0, 0.0, 3.3)], ["d", "e"], parent="b")
    target = rigs.empty("Second", (1.0, 1.0, 2.0))
    rigs.chain(ob, "e", target, 2)
    activate(ob, "e")
    rigs.go_live(ob)
    ob.pose.bones["e"].ik_addon.enabled = False
    with same_pose(ob):
        bpy.ops.ik_addon.snap_target()
        ob.pose.bones["e"].ik_addon.enabled = True


# ---- keys


def test_keys_nothing_without_auto_keying() -> None:
    ob = limb()
    bpy.ops.ik_addon.snap_target()
    bpy.ops.ik_addon.apply_pose()
    assert not keyed(ob.pose.bones["b"].ik_addon.target)
    assert not keyed(ob)


@pytest.mark.usefixtures("auto_keying")
def test_auto_keying_keys_what_moved() -> None:
    bpy.context.scene.frame_set(7)
    ob = limb()
    chain = ob.pose.bones["b"].ik_addon
    bpy.ops.ik_addon.snap_target()
    assert keyed(chain.target) == {"location": [7.0]}
    assert keyed(chain.pole) == {"location": [7.0]}
    assert not keyed(ob)
    chain.target.location.x += 0.3
    bpy.ops.ik_addon.apply_pose()
    assert keyed(ob) == {f'pose.bones["{name}"].rotation_quaternion': [7.0] for name in "ab"}


def test_warns_that_keys_or_a_constraint_hold_the_target(capfd: Capture) -> None:
    target = limb().pose.bones["b"].ik_addon.target
    target.keyframe_insert("location", frame=1)
    assert "'Target' is animated and reverts on the next frame change" in said(capfd, bpy.ops.ik_addon.snap_target)
    rigs.change(target.constraints.new("COPY_LOCATION"), target=rigs.empty("Else", (5, 5, 5)))
    assert "held these back from their places: 'Target'" in said(capfd, bpy.ops.ik_addon.snap_target)


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("enabled", [False, True])
def test_warns_that_softness_holds_a_straight_limb_back(capfd: Capture, live: bool, enabled: bool) -> None:
    ob = limb(straight=True)
    chain = ob.pose.bones["b"].ik_addon
    ob.ik_addon.live, chain.enabled = live, enabled
    bpy.context.view_layer.update()
    assert said(capfd, bpy.ops.ik_addon.snap_target, pose="FK") == "Info: Snapped the target"
    chain.softness = 0.1
    report = said(capfd, bpy.ops.ik_addon.snap_target, pose="FK")
    assert "Solving moves the chain on 'b' by" in report
    assert (ob.ik_addon.live, chain.enabled) == (live, enabled)
    assert rigs.held(ob) == (["a", "b"] if live and enabled else [])


@pytest.mark.parametrize(("softness", "degrees"), [(0.01, 0.0), (0.01, 1.0), (0.01, 15.0), (0.001, 0.0), (0.001, 4.0)])
@pytest.mark.parametrize("way", ["SNAP", "RANGE", "SWITCH"])
def test_a_soft_limb_that_fk_straightened_keeps_its_pose(softness: float, degrees: float, way: str) -> None:
    ob = rigs.limb(rigs.bent(2), "ab")
    chain = rigs.chain(ob, "b", rigs.empty("Target", (0.0, 0.5, 1.2)), 2, softness=softness).ik_addon
    rigs.change(ob.pose.bones["b"], rotation_quaternion=Euler((0.3 + math.radians(degrees), 0.0, 0.0)).to_quaternion())
    before = joints(ob)
    if way == "SWITCH":
        chain.influence, ob.ik_addon.live = 0.0, True
        bpy.ops.ik_addon.switch_ik_fk(to="IK")
    else:
        bpy.ops.ik_addon.snap_target(frame_range="SCENE" if way == "RANGE" else "PRESENT")
        rigs.go_live(ob)
    assert np.abs(joints(ob) - before).max() < 1e-6 * size(ob)


@pytest.mark.parametrize("policy", ["PUSH_ROOT", "STRETCH", "EXTEND"])
def test_what_softness_does_not_keep_bent_has_its_target_at_its_tip(policy: str) -> None:
    ob = limb(3)
    rigs.chain(ob, "b", rigs.empty("Other"), 2, enabled=policy == "EXTEND")  # as in a tree
    rigs.change(ob.pose.bones["c"].ik_addon, softness=0.8, out_of_reach=policy)
    bpy.ops.ik_addon.snap_target()
    assert rigs.miss(ob, "c") < 1e-5


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("enabled", [False, True])
def test_takes_and_keeps_an_unkeyed_pose(live: bool, enabled: bool) -> None:
    ob = limb()
    chain = ob.pose.bones["b"].ik_addon
    for bone in ob.pose.bones:
        bone.keyframe_insert("rotation_quaternion", frame=1)
    ob.ik_addon.live, chain.enabled = live, enabled
    bpy.context.view_layer.update()
    rigs.change(chain, enabled=False)
    ob.pose.bones["a"].rotation_quaternion = Euler((0.1, 0.7, 0.2)).to_quaternion()
    before = rigs.tail(ob, "b")
    with same_pose(ob):
        bpy.ops.ik_addon.snap_target()
    assert np.linalg.norm(rigs.position(chain.target) - before) < 1e-4


def animate(ob: bpy.types.Object) -> None:
    """Key the bones of a limb, and animate its armature."""
    for i, bone in enumerate(ob.pose.bones):
        turns = {frame: Euler((0.2 + turn, 0.3 * i, turn)) for frame, turn in ((1, 0.0), (6, 0.5), (11, -0.4))}
        rigs.key(bone, "rotation_quaternion", {frame: turn.to_quaternion() for frame, turn in turns.items()})
    rigs.key(ob, "location", {1: (0, 0, 0), 11: (2, 1, 0)})


# ---- applying


@pytest.mark.parametrize("live", [False, True])
def test_applied_pose_stays_when_the_chain_is_switched_off(live: bool) -> None:
    ob = limb()
    ob.ik_addon.live = live
    if not live:
        bpy.ops.ik_addon.solve()
    with same_pose(ob):
        with same_pose(ob):
            assert bpy.ops.ik_addon.apply_pose() == {"FINISHED"}
        ob.pose.bones["b"].ik_addon.enabled = False
        ob.ik_addon.live = False


def test_applied_pose_leaves_other_chains_alone() -> None:
    ob = limb()
    rigs.add_arm(ob, 2, "de", "Second")
    fk = [tuple(ob.pose.bones[name].rotation_quaternion) for name in "de"]
    activate(ob, "b")
    rigs.go_live(ob)
    before = rigs.tail(ob, "b")
    with same_pose(ob):
        bpy.ops.ik_addon.apply_pose()
    ob.ik_addon.live = False
    assert [tuple(ob.pose.bones[name].rotation_quaternion) for name in "de"] == fk
    assert np.linalg.norm(rigs.tail(ob, "b") - before) < 1e-4


def test_warns_that_an_applied_pose_of_keyed_bones_goes_back(capfd: Capture) -> None:
    ob = limb()
    ob.pose.bones["a"].keyframe_insert("rotation_quaternion", frame=1)
    rigs.go_live(ob)
    with same_pose(ob):
        assert "'a' is animated and reverts on the next frame change" in said(capfd, bpy.ops.ik_addon.apply_pose)
        ob.ik_addon.live = False


@pytest.mark.parametrize("live", [False, True])
def test_applies_a_range_and_leaves_the_chain_on(capfd: Capture, live: bool) -> None:
    ob = limb()
    chain = ob.pose.bones["b"].ik_addon
    rigs.key(chain.target, "location", {1: (0.7, 0.5, 1.1), 6: (0.2, 0.9, 0.9)})
    ob.ik_addon.live = live
    capfd.readouterr()
    bpy.ops.ik_addon.apply_pose(frame_range="CUSTOM", frame_start=1, frame_end=6)
    assert "Info: Applied the solved pose to 'b' on 6 frames\n" in capfd.readouterr().out
    assert chain.enabled
    assert keyed(ob)['pose.bones["a"].rotation_quaternion'] == list(range(1, 7))
    ob.ik_addon.live = False
    assert max(rigs.on_frames((1, 3, 6), lambda: rigs.miss(ob, "b")).values()) < 1e-4


# ---- refusals


def test_needs_a_chain_a_target_and_frames() -> None:
    ob, snap, apply = limb(), bpy.ops.ik_addon.snap_target, bpy.ops.ik_addon.apply_pose
    chain = ob.pose.bones["b"].ik_addon
    for change, operator, options, why in (
        ({}, snap, {"frame_range": "CUSTOM", "frame_start": 5, "frame_end": 1}, "The frame range is empty"),
        ({}, apply, {"frame_range": "PREVIEW"}, "has no preview range"),
        ({"enabled": False}, apply, {}, "None of these chains is enabled"),
        ({"enabled": True, "target": None}, snap, {}, "The chain on 'b' has no target"),
        ({}, apply, {}, "The chain on 'b' can't be solved. No target"),
        ({"is_chain": False}, snap, {}, "has no chain"),
    ):
        rigs.change(chain, **change)
        with refused(why):
            operator(**options)
    chain.is_chain = True
    activate(ob, None)
    with refused("No chain is active"):
        snap()


def test_refuses_a_bone_that_cannot_move() -> None:
    ob = limb()
    rigs.add_bones(ob, [(1, 0, 0), (1, 0, 1), (1, 0, 2)], ["body", "hand"])
    chain = ob.pose.bones["b"].ik_addon
    chain.target, chain.target_bone = ob, "hand"
    activate(ob, "b")
    with refused("Bone 'hand' is connected to its parent and can't be moved"):
        bpy.ops.ik_addon.snap_target()
    chain.target_bone = "gone"
    with refused("has no bone 'gone'"):
        bpy.ops.ik_addon.snap_target()
    assert chain.target == ob


@pytest.mark.parametrize("role", ["target", "pole"])
def test_refuses_a_deleted_goal(role: str) -> None:
    ob = limb()
    ob.pose.bones["b"].ik_addon.is_chain = False
    bpy.ops.ik_addon.chain_add(with_pole=True)
    goal = getattr(ob.pose.bones["b"].ik_addon, role)
    rigs.delete(goal)
    for frame_range in ("PRESENT", "SCENE"):
        with refused(f"'IK {role.title()} b' was deleted"):
            bpy.ops.ik_addon.snap_target(frame_range=frame_range)
    if role == "pole":
        assert bpy.ops.ik_addon.snap_target(poles="KEEP") == {"FINISHED"}
