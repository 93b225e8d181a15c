"""Switching the space of targets and poles on a frame, without a jump."""

from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs, rigs_named
from tests.conftest import Addon, Capture
from tests.reliability.states import activate, add, refused, said
from tests.rigs_named import RIGS

FRAMES = [float(frame) for frame in range(1, 61)]
NEAR = [20.0, 39.75, 40.0, 40.25]
"""Frames around switches, including subframes, which motion blur evaluates."""


def character(*, live: bool = False) -> bpy.types.Object:
    """Return a moving Manny with a chain on an arm, and a prop that moves too."""
    ob = rigs_named.build(RIGS["Manny"])
    for name in ("pelvis", "spine_03", "head", "clavicle_l"):
        bone = ob.pose.bones[name]
        bone.rotation_mode = "XYZ"
        rng = np.random.default_rng(len(name))
        rigs.key(bone, "rotation_euler", {frame: rng.normal(scale=0.3, size=3).tolist() for frame in (1, 15, 35, 60)})
        rigs.key(bone, "location", {frame: rng.normal(scale=0.1, size=3).tolist() for frame in (1, 25, 45, 60)})
    prop = rigs.empty("Prop", (0.6, -0.3, 1.2))
    rigs.key(prop, "location", {1: (0.6, -0.3, 1.2), 60: (0.2, -0.6, 1.5)})
    rigs.key(prop, "rotation_euler", {1: (0, 0, 0), 60: (0.4, 1.0, -0.7)})
    bpy.context.scene.frame_set(1)
    add(ob, "lowerarm_l", live=live)
    return ob


def goal_of(ob: bpy.types.Object, role: str) -> bpy.types.Object:
    return getattr(ob.pose.bones["lowerarm_l"].ik_addon, role.lower())


def at(frame: float) -> None:
    bpy.context.scene.frame_set(int(frame), subframe=frame % 1.0)


def worlds(goal: bpy.types.Object, frames: list[float], bone: str = "") -> Any:
    """Return the evaluated world matrices (frames, 4, 4) of a goal."""

    def world() -> Any:
        seen = rigs.evaluated(goal)
        return np.array(seen.matrix_world @ seen.pose.bones[bone].matrix if bone else seen.matrix_world)

    return np.array(list(rigs.on_frames(frames, world).values()))


def to(space: str, frame: float, role: str = "TARGET", **options: Any) -> None:
    at(frame)
    assert bpy.ops.ik_addon.switch_space(role=role, space=space, **options) == {"FINISHED"}


def spread(matrices: Any) -> float:
    """Return how much matrices (F, 4, 4) differ from one another."""
    return float(np.abs(matrices - matrices[:1]).max())


def give_control(ob: bpy.types.Object, parent: str | None = None) -> None:
    """Let the chain follow a control bone."""
    rigs.add_bones(ob, [(0.7, 0.1, 1.3), (0.7, 0.1, 1.5)], ["control"], parent=parent, connect=False)
    chain = ob.pose.bones["lowerarm_l"].ik_addon
    chain.target, chain.target_bone = ob, "control"
    activate(ob, "lowerarm_l")


CARRIERS = {"PARENT": "spine_05", "CHEST": "spine_05", "HEAD": "head"}


def assert_follows(ob: bpy.types.Object, space: str, found: Any, first: int, last: int) -> None:
    """Assert that world matrices of a goal, on `FRAMES`, stay the same in a space, from one frame to another."""
    frames, own = FRAMES[first - 1 : last], found[first - 1 : last]
    if space == "OBJECT":
        own = np.linalg.inv(worlds(bpy.data.objects["Prop"], frames)) @ own
    elif space != "WORLD":
        own = np.linalg.inv(worlds(ob, frames, CARRIERS[space])) @ own
    assert spread(own) < 1e-5, (space, first)


@pytest.mark.parametrize("role", ["TARGET", "POLE"])
@pytest.mark.parametrize("space", ["WORLD", "PARENT", "CHEST", "HEAD", "OBJECT"])
def test_the_goal_follows_its_new_space_from_the_switch_on(space: str, role: str) -> None:
    ob = character()
    goal = goal_of(ob, role)
    before = worlds(goal, FRAMES)
    to(space, 20, role, object="Prop")
    after = worlds(goal, FRAMES)
    assert np.abs(after[:20] - before[:20]).max() < 2e-6, "up to its frame nothing changes"
    assert_follows(ob, space, after, 20, 60)


@pytest.mark.parametrize(("bone", "parent"), [(False, None), (True, None), (True, "spine_03")])
def test_several_switches_in_a_clip(bone: bool, parent: str | None) -> None:
    ob = character()
    name = ""
    if bone:
        give_control(ob, parent)
        name = "control"
        rigs.key(ob, "location", {1: (0.0, 0.0, 0.0), 60: (1.0, -0.5, 0.1)})
        rigs.key(ob, "rotation_euler", {1: (0.0, 0.0, 0.0), 60: (0.1, 0.4, 0.9)})
    goal = goal_of(ob, "TARGET")
    order = (("CHEST", 10), ("WORLD", 20), ("OBJECT", 30), ("HEAD", 40), ("WORLD", 50))
    start = worlds(goal, FRAMES[:10], name)
    for space, frame in order:
        before = worlds(goal, [frame - 0.25, frame], name)
        to(space, frame, object="Prop")
        assert np.abs(worlds(goal, [frame - 0.25, frame], name) - before).max() < 5e-6
    after = worlds(goal, FRAMES, name)
    pairs = [worlds(goal, [frame - 0.001, frame], name) for _space, frame in order]
    assert max(np.abs(pair[1] - pair[0]).max() for pair in pairs) < 1e-3, "no jump"
    assert np.abs(after[:10] - start).max() < 5e-6
    for space, frame in order:
        assert_follows(ob, space, after, frame, 60 if frame == 50 else frame + 9)


def test_a_switch_between_others_makes_no_jump(capfd: Capture) -> None:
    ob = character()
    target = goal_of(ob, "TARGET")
    to("WORLD", 40)
    to("HEAD", 50)
    at(20)
    text = said(capfd, bpy.ops.ik_addon.switch_space, space="CHEST")
    assert "follows 'spine_05' from frame 20 on. Later switches updated: 2" in text
    assert bpy.context.scene.frame_current == 20
    after = worlds(target, FRAMES)
    assert np.linalg.norm(np.diff(after[:, :3, 3], axis=0), axis=1).max() < 0.1
    for frame in (20, 40, 50):
        pair = worlds(target, [frame - 0.001, frame])
        assert np.abs(pair[1] - pair[0]).max() < 1e-3
    assert_follows(ob, "CHEST", after, 20, 39)
    assert_follows(ob, "WORLD", after, 40, 49)


def test_a_switch_on_the_same_frame_is_replaced() -> None:
    ob = character()
    target = goal_of(ob, "TARGET")
    before = worlds(target, FRAMES)
    to("CHEST", 10)
    to("HEAD", 20)
    to("WORLD", 20)
    assert len(target.constraints) == 2
    after = worlds(target, FRAMES)
    assert_follows(ob, "WORLD", after, 20, 60)
    assert_follows(ob, "CHEST", after, 10, 19)
    assert np.abs(after[:10] - before[:10]).max() < 2e-6


def test_the_goals_own_keys_continue_in_the_new_space(capfd: Capture) -> None:
    ob = character()
    target = goal_of(ob, "TARGET")
    start = np.array(target.location)
    rigs.key(target, "location", {1: start, 40: start + 0.2, 60: start - 0.1})
    before = worlds(target, FRAMES)
    capfd.readouterr()
    to("CHEST", 20)
    assert "Its keys on later frames go along with 'spine_05' now" in capfd.readouterr().out
    after = worlds(target, FRAMES)
    assert np.abs(after[:20] - before[:20]).max() < 2e-6
    inside = np.linalg.inv(worlds(ob, FRAMES[19:], "spine_05")) @ after[19:]
    assert spread(inside) > 0.05, "it moves in the space of the chest"
    assert np.linalg.norm(np.diff(after[:, :3, 3], axis=0), axis=1).max() < 0.1
    capfd.readouterr()
    to("WORLD", 70)
    assert "later frames" not in capfd.readouterr().out


def test_the_tip_follows_live_in_any_order_and_when_baked(addon: Addon) -> None:
    ob = character(live=True)
    target = goal_of(ob, "TARGET")
    for space, start in (("CHEST", 10), ("WORLD", 20), ("HEAD", 40)):
        to(space, start)
    order = [*FRAMES[::3], *NEAR]
    poses: rigs.Poses = {}
    for frame in np.random.default_rng(1).permutation(order).tolist():
        poses |= rigs.poses_at(ob, [frame])
        if addon.report(ob, "lowerarm_l").reached:
            assert np.linalg.norm(rigs.tail(ob, "lowerarm_l") - rigs.position(target)) < 1e-4
    assert not rigs.apart(rigs.poses_at(ob, order), poses)
    rigs.bake(ob, 1, 60)
    for frame, pose in rigs.poses_at(ob, FRAMES[::3]).items():
        assert np.abs(pose - poses[frame]).max() < 2e-5, frame


def test_targets_in_spaces_are_snapped_in_place() -> None:
    ob = character()
    bone = ob.pose.bones["upperarm_l"]
    bone.rotation_mode = "XYZ"
    rigs.key(bone, "rotation_euler", {1: (0.1, 0.2, 0.3), 30: (0.3, 0.1, -0.2), 60: (0.2, 0.3, 0.5)})
    for space, frame in (("CHEST", 10), ("WORLD", 20), ("HEAD", 40)):
        to(space, frame)
    before = worlds(ob, FRAMES, "lowerarm_l")
    bpy.ops.ik_addon.snap_target(frame_range="CUSTOM", frame_start=1, frame_end=60)
    ob.ik_addon.live = True
    assert np.abs(worlds(ob, FRAMES, "lowerarm_l") - before).max() < 5e-5


# ---- refusals


@pytest.mark.parametrize("role", ["TARGET", "POLE"])
def test_refuses_a_space_that_depends_on_the_goal_or_the_limb(role: str) -> None:
    ob = character()
    goal = goal_of(ob, role)
    parent = goal.parent, goal.parent_bone
    for bone in ("lowerarm_l", "hand_l"):
        with refused("part of this chain"):
            bpy.ops.ik_addon.switch_space(role=role, space="OBJECT", object=ob.name, bone=bone)
    bpy.data.objects["Prop"].parent = goal
    with refused(f"'Prop' itself follows '{goal.name}'. Pick another space"):
        bpy.ops.ik_addon.switch_space(role=role, space="OBJECT", object="Prop")
    assert (goal.parent, goal.parent_bone) == parent
    assert not goal.constraints
    assert goal.animation_data is None or goal.animation_data.action is None


def test_refuses_a_bone_whose_parent_cannot_be_cleared() -> None:
    ob = character()
    give_control(ob, "spine_05")
    ob.data.bones["control"].inherit_scale = "ALIGNED"
    with refused("Bone 'control' can't be released from its parent 'spine_05'. Clear its parent"):
        bpy.ops.ik_addon.switch_space(space="WORLD")


def test_refuses_a_goal_held_by_another_constraint() -> None:
    ob = character()
    target = goal_of(ob, "TARGET")
    to("CHEST", 5)
    rigs.constrain(target, "COPY_LOCATION", target=bpy.data.objects["Prop"], influence=0.5)
    at(20)
    with refused("Another constraint or a driver holds 'IK Target lowerarm_l'"):
        bpy.ops.ik_addon.switch_space(space="WORLD")
    assert len(target.constraints) == 2
    assert bpy.data.objects.get("IK World") is None


def test_needs_a_chain_with_the_chosen_goal() -> None:
    ob = character()
    ob.pose.bones["lowerarm_l"].ik_addon.pole = None
    with refused("The chain on 'Left Arm' has no pole"):
        bpy.ops.ik_addon.switch_space(role="POLE", space="WORLD")
    activate(ob, None)
    with refused("No chain is active"):
        bpy.ops.ik_addon.switch_space(space="WORLD")


def test_lists_the_available_spaces(addon: Addon) -> None:
    ob = character()
    spaces = addon.module("targets.space_switch").spaces_of
    found = {s.identifier: s.name for s in spaces(ob.pose.bones["lowerarm_l"], bpy.data.objects["Prop"], "")}
    bones = {"PARENT": "'spine_05'", "CHEST": "'spine_05'", "HEAD": "'head'"}
    assert found == {"WORLD": "the world", **bones, "OBJECT": "'Prop'"}
    arm, _target = rigs.arm()
    assert [space.identifier for space in spaces(arm.pose.bones["lower"], None, "")] == ["WORLD"]
    activate(arm, "lower")
    for space, why in (("HEAD", "No head found in 'Rig.001'. Pick an object"), ("OBJECT", "Pick an object to follow")):
        with refused(why):
            bpy.ops.ik_addon.switch_space(space=space)
