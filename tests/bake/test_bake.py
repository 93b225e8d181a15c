"""Baking, as the depsgraph evaluates the result."""

import math
import re
from collections.abc import Callable
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.live import carried
from tests.panels import drawn, sidebar
from tests.reliability.states import activate

__all__ = ["sidebar"]

FRAMES = list(range(1, 31))
CLOSE = 2e-5
TURNS = "rotation_quaternion"
MODES = ("QUATERNION", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX", "AXIS_ANGLE")


def circling(target: bpy.types.Object, radius: float = 0.9, frames: int = 30, turns: float = 1.0) -> None:
    angles = {frame: 2.0 * math.pi * turns * (frame - 1) / (frames - 1) for frame in range(1, frames + 1)}
    places = {f: (radius * math.cos(a), radius * math.sin(a), 1.0 + 0.3 * math.sin(3.0 * a)) for f, a in angles.items()}
    rigs.key(target, "location", places)


def animated_arm(mode: str = "QUATERNION", **settings: object) -> bpy.types.Object:
    """Return a live arm with a keyed upper bone, a posed lower bone, and a circling target."""
    ob, target = rigs.arm()
    rigs.add_bones(ob, [(1, 0, 0), (1, 0, 1)], ["other"])
    circling(target)
    for bone in ob.pose.bones:
        bone.rotation_mode = mode
        path = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}.get(mode, "rotation_euler")
        if bone.name != "lower":
            width = len(getattr(bone, path))
            values = np.random.default_rng(4).normal(scale=0.3, size=(4, width)) + np.eye(width)[0]
            rigs.key(bone, path, dict(zip((1, 12, 30, 50), values.tolist(), strict=True)))
        else:
            setattr(bone, path, [0.98, 0.0, 0.17, 0.1][: len(getattr(bone, path))])
    rigs.change(chain_of(ob), **settings)
    bpy.context.scene.frame_set(1)
    ob.ik_addon.live = True
    bpy.context.scene.frame_set(7, subframe=0.25)
    return ob


def poses(ob: bpy.types.Object, frames: list[int] = FRAMES) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the evaluated pose matrices (frames, bones * 16); the current frame is restored."""
    scene = bpy.context.scene
    present = scene.frame_current, scene.frame_subframe
    found = np.array(list(rigs.poses_at(ob, frames).values()))
    scene.frame_set(present[0], subframe=present[1])
    return found


def chain_of(ob: bpy.types.Object) -> Any:
    return ob.pose.bones["lower"].ik_addon


def curves(ob: bpy.types.Object) -> dict[tuple[str, int], Any]:
    return {(curve.data_path, curve.array_index): curve for curve in rigs.fcurves(ob)}


def keyed(ob: bpy.types.Object) -> dict[tuple[str, int], list[tuple[float, ...]]]:
    """Return every key with its handles."""
    return {
        name: [(*k.co, *k.handle_left, *k.handle_right, k.interpolation, k.easing) for k in curve.keyframe_points]
        for name, curve in curves(ob).items()
    }


def state(ob: bpy.types.Object) -> Any:
    """Return everything that a bake may change."""
    scene, data = bpy.context.scene, ob.animation_data
    own = [bone.ik_addon for bone in ob.pose.bones]
    bases = [(each.enabled, each.resting, each.base.stored, each.base.channels[:]) for each in own]
    return (
        (scene.frame_current, scene.frame_subframe, ob.ik_addon.live, bases),
        (data and data.action and data.action.name, sorted(a.name for a in bpy.data.actions)),
        keyed(ob),
        rigs.channels(ob).tobytes(),
        rigs.pose(ob).tobytes(),
    )


@pytest.mark.parametrize("mode", MODES)
def test_bake_plays_like_live(bake: Any, mode: str) -> None:
    ob = animated_arm(mode)
    live = poses(ob)
    report = bake.bake(bpy.context, ob, ["lower"], FRAMES)
    assert np.abs(poses(ob) - live).max() < CLOSE
    assert (report.frames, report.chains, report.missed) == (30, ("lower",), 0)
    assert report.plays_alike
    assert not ob.pose.bones["lower"].ik_addon.enabled
    assert (bpy.context.scene.frame_current, bpy.context.scene.frame_subframe) == (7, 0.25)


def test_a_pose_that_was_recorded_is_baked_on_the_current_frame_as_well(bake: Any) -> None:
    """Writing a key over one of the same frame looks like a user's, which is to hold FK."""
    ob = animated_arm()
    for bone in ("upper", "lower"):
        rigs.key(ob.pose.bones[bone], "rotation_quaternion", dict.fromkeys(FRAMES, (0.98, 0.0, 0.17, 0.1)))
    live = poses(ob)
    bpy.context.scene.frame_set(9)
    ob.update_tag()
    bpy.context.view_layer.update()  # an edit on a still frame
    bake.bake(bpy.context, ob, ["lower"], FRAMES)
    assert np.abs(poses(ob) - live).max() < CLOSE


@pytest.mark.parametrize(
    ("policy", "used"), [("EXTEND", set()), ("PUSH_ROOT", {"location"}), ("STRETCH", {"scale"}), ("in reach", set())]
)
def test_location_and_scale_are_keyed_only_if_used(bake: Any, policy: str, used: set[str]) -> None:
    ob, target = rigs.arm()
    ob.pose.bones["lower"].ik_addon.out_of_reach = "PUSH_ROOT" if policy == "in reach" else policy
    circling(target, 0.9 if policy == "in reach" else 2.0)
    ob.ik_addon.live = True
    live = poses(ob)
    bake.bake(bpy.context, ob, ["lower"], FRAMES)
    fields = {path.rsplit(".", 1)[1] for path, _index in curves(ob)}
    assert fields == {"rotation_quaternion"} | used
    located = {path for path, _index in curves(ob) if path.endswith("location")}
    assert located == ({'pose.bones["upper"].location'} if "location" in used else set())
    assert np.abs(poses(ob) - live).max() < CLOSE


def test_bake_with_a_frame_step(bake: Any) -> None:
    ob = animated_arm()
    frames = bake.frames_between(1, 30, 4)
    live = poses(ob, frames)
    bake.bake(bpy.context, ob, ["lower"], frames)
    assert np.abs(poses(ob, frames) - live).max() < CLOSE
    (own,) = rigs.fcurves(ob, 'pose.bones["lower"].rotation_quaternion')[:1]
    assert {key.interpolation for key in own.keyframe_points} == {"BEZIER"}


def test_bake_into_a_new_action(bake: Any) -> None:
    ob = animated_arm()
    old, before = ob.animation_data.action, keyed(ob)
    live = poses(ob)
    report = bake.bake(bpy.context, ob, ["lower"], FRAMES, new_action=True)
    assert report.action == ob.animation_data.action.name == f"{old.name} Baked"
    assert np.abs(poses(ob) - live).max() < CLOSE
    slot = bpy.app.version >= (4, 4, 0) and ob.animation_data.action_slot.identifier
    ob.animation_data.action = old
    if slot:
        ob.animation_data.action_slot = old.slots[slot]
    assert keyed(ob) == before


def stopped(bake: Any, ob: bpy.types.Object, share: float, **options: object) -> None:
    """Bake up to a share of the progress, and cancel."""
    todo = bake.bake_stepwise(bpy.context, ob, ["lower"], FRAMES, **options)
    assert next(done for done in todo if done >= share) >= share
    todo.close()


@pytest.mark.parametrize("way", ["told", "stepped"])
@pytest.mark.parametrize("live", [True, False])
def test_cancel_restores_everything_and_progress_goes_from_0_to_1(bake: Any, way: str, live: bool) -> None:
    ob = animated_arm()
    if way == "stepped":
        # F-curves alone no longer determine the target.
        ob.pose.bones["lower"].ik_addon.target.constraints.new("COPY_LOCATION")
    rigs.change(ob.ik_addon, live=live)
    before, played = state(ob), poses(ob)
    for share in (0.0, 0.3, 0.55, 0.65, 0.85, 0.95, 1.0):
        for new_action in (True, False):
            stopped(bake, ob, share, new_action=new_action)
            bpy.context.view_layer.update()
            assert state(ob) == before, (share, new_action)
    assert poses(ob).tobytes() == played.tobytes()
    assert state(ob) == before
    shares = list(bake.bake_stepwise(bpy.context, ob, ["lower"], FRAMES))
    assert shares == sorted(shares), "progress"
    assert 0.0 <= shares[0] < 0.05
    assert shares[-1] == 1.0
    assert len(shares) > (len(FRAMES) if way == "stepped" else 5)


def test_cancel_after_solve_ik_keeps_the_solution(bake: Any, addon: Addon) -> None:
    ob, target = rigs.arm()
    circling(target)
    addon.module("live.solving").solve_now(ob, bpy.context.evaluated_depsgraph_get())
    before = state(ob)
    stopped(bake, ob, 0.95)
    assert state(ob) == before


@pytest.mark.parametrize("kind", ["bone parent", "vertex of a skin"])
def test_a_file_saved_during_a_bake_has_the_fk_pose(bake: Any, kind: str) -> None:
    own = carried.build(carried.KINDS[kind])
    before = rigs.channels(own.arm)
    todo = bake.bake_stepwise(bpy.context, own.arm, ["spine2", "lower"], range(1, 22))
    for share in todo:
        if share > 0.6:
            break
        assert np.array_equal(rigs.channels(own.arm), before)
    todo.close()


@pytest.mark.parametrize("mode", MODES)
def test_the_pose_between_two_frames_is_interpolated(bake: Any, mode: str) -> None:
    ob, target = rigs.arm()
    for bone in ob.pose.bones:
        bone.rotation_mode = mode
    circling(target, frames=100, turns=1.5)
    bake.bake(bpy.context, ob, ["lower"], list(range(1, 101)))
    # A flipped sign or a full turn would swing the arm right through the armature.
    assert not rigs.missed(ob, np.arange(1.5, 100.0), 0.03)


def spine_and_arm() -> bpy.types.Object:
    """Return a spine with a chain, and an arm with a chain at the spine's end, each with a moving target."""
    ob = rigs.limb(rigs.bent(4), ["spine1", "spine2", "spine3", "spine4"])
    _x, y, z = rigs.bent(4)[-1]
    rigs.add_bones(ob, [(0, y, z), (0.9, y + 0.1, z), (1.8, y, z)], ["arm1", "arm2"], parent="spine4")
    chest, hand = rigs.empty("Chest"), rigs.empty("Hand")
    rigs.key(chest, "location", {1: (0, 1.0, 3.0), 15: (1.0, 0.5, 3.0), 30: (-1.0, 1.5, 2.5)})
    rigs.key(hand, "location", {1: (1.0, 1.0, 3.5), 15: (1.5, 1.5, 2.5), 30: (0.0, 2.0, 2.0)})
    rigs.chain(ob, "spine4", chest, 4)
    rigs.chain(ob, "arm2", hand, 2)
    bpy.context.scene.frame_set(1)
    ob.ik_addon.live = True
    return ob


@pytest.mark.parametrize("tips", [["spine4", "arm2"], ["arm2"], ["spine4"]])
def test_chains_attached_to_chains_are_baked(bake: Any, tips: list[str]) -> None:
    ob = spine_and_arm()
    live = poses(ob)
    report = bake.bake(bpy.context, ob, tips, FRAMES)
    assert report.plays_alike
    assert np.abs(poses(ob) - live).max() < 5 * CLOSE
    named = {path.split('"')[1] for path, _index in curves(ob)}
    bones = {"spine4": {f"spine{i}" for i in range(1, 5)}, "arm2": {"arm1", "arm2"}}
    assert named == set().union(*(bones[tip] for tip in tips))
    assert [tip for tip in ("spine4", "arm2") if not ob.pose.bones[tip].ik_addon.enabled] == sorted(tips, reverse=True)


def two_arms() -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a live arm that follows the hand of another live arm, whose lower bone is keyed too."""
    leader, target = rigs.arm()
    leader.name = "Leader"
    circling(target)
    rigs.key(leader.pose.bones["lower"], "rotation_quaternion", {1: (1, 0, 0, 0), 30: (0.9, 0.1, 0.3, 0.0)})
    follower = rigs.limb([(0.3, 0, 0), (0.3, -0.2, 1), (0.3, 0, 2)], ["upper", "lower"], name="Follower")
    hand = rigs.empty("Hand")
    hand.parent, hand.parent_type, hand.parent_bone = leader, "BONE", "lower"
    rigs.chain(follower, "lower", hand, 2)
    bpy.context.view_layer.update()
    leader.ik_addon.live = follower.ik_addon.live = True
    bpy.context.scene.frame_set(7)
    return leader, follower


def test_a_target_on_another_live_armature_is_followed(bake: Any) -> None:
    leader, follower = two_arms()
    live, leading = poses(follower), poses(leader)
    assert bake.bake(bpy.context, follower, ["lower"], FRAMES).plays_alike
    assert np.abs(poses(follower) - live).max() < CLOSE
    assert poses(leader).tobytes() == leading.tobytes()
    bake.bake(bpy.context, leader, ["lower"], FRAMES)
    assert np.abs(poses(follower) - live).max() < CLOSE


def test_a_loop_that_exists_only_on_another_frame_is_not_baked(bake: Any) -> None:
    leader, follower = two_arms()
    of_leader = leader.pose.bones["lower"].ik_addon
    of_leader.pole = rigs.empty("Pole")
    constraint = rigs.constrain(of_leader.pole, "COPY_LOCATION", target=follower, subtarget="lower")
    rigs.key(constraint, "influence", {1: 0.0, 20: 0.0, 21: 1.0})
    bpy.context.scene.frame_set(7)
    before, pose = state(follower)[:3], rigs.pose(follower)
    with pytest.raises(bake.UserError, match="Dependency loop between 'Follower' and 'Leader'"):
        bake.bake(bpy.context, follower, ["lower"], FRAMES)
    assert state(follower)[:3] == before
    assert np.abs(rigs.pose(follower) - pose).max() < 1e-6
    assert bake.bake(bpy.context, follower, ["lower"], range(1, 20)).plays_alike


def test_another_live_armature_and_its_unkeyed_pose_stay(bake: Any) -> None:
    leader, follower = two_arms()
    edited = (0.8, 0.0, 0.6, 0.0)
    rigs.change(leader.pose.bones["lower"], rotation_quaternion=edited)
    before, pose, switches_and_keys = state(leader), rigs.pose(follower), state(follower)[:3]
    for share in (0.2, 0.8):
        stopped(bake, follower, share)
        bpy.context.view_layer.update()
        assert state(leader) == before, share
        assert state(follower)[:3] == switches_and_keys, share
        # The follower is solved again, from the leader's hand as Blender stores it.
        assert np.abs(rigs.pose(follower) - pose).max() < 1e-6, share
    assert bake.bake(bpy.context, follower, ["lower"], FRAMES).plays_alike
    bpy.context.view_layer.update()
    assert state(leader)[2:] == before[2:]
    leader.ik_addon.live = False
    assert np.allclose(leader.pose.bones["lower"].rotation_quaternion, edited, atol=1e-6)


@pytest.mark.parametrize("blend", ["REPLACE", "ADD"])
def test_keys_play_above_nla_strips(bake: Any, blend: str) -> None:
    ob = animated_arm()
    strip: Any = rigs.into_strip(ob)
    strip.blend_type = blend
    live = poses(ob)
    assert bake.bake(bpy.context, ob, ["lower"], FRAMES).plays_alike
    assert np.abs(poses(ob) - live).max() < CLOSE


REFUSED: dict[str, Callable[[Any], object]] = {
    "has no chain. Select a bone and press Add Chain": lambda ob: setattr(chain_of(ob), "is_chain", False),
    "The chain on 'lower' can't be baked. No target": lambda ob: setattr(chain_of(ob), "target", None),
    "rotation_quaternion of bone 'upper' is driven": lambda ob: ob.pose.bones["upper"].driver_add(TURNS, 1),
    "of bone 'upper' in 'Rig' is locked": lambda ob: setattr(rigs.fcurves(ob, f'"upper"].{TURNS}')[3], "lock", True),
    "mode of bone 'upper' is animated": lambda ob: rigs.key(ob.pose.bones["upper"], "rotation_mode", {1: "XYZ"}),
    "without Smooth": lambda ob: rigs.key(ob.pose.bones["lower"], "ik_stiffness_x", {1: 0.0, 10: 0.5}),
    "Rest Position": lambda ob: setattr(ob.data, "pose_position", "REST"),
    "disabled in viewports": lambda ob: setattr(ob, "hide_viewport", True),
}
"""By what is said: what is wrong."""
OPTIONS: dict[str, dict[str, Any]] = {
    "starts at 9 and ends at 3": {"frame_range": "CUSTOM", "frame_start": 9, "frame_end": 3},
    "no preview range": {"frame_range": "PREVIEW"},
    "without Smooth": {"smooth": True},
}
"""By what is said: options that are wrong."""


@pytest.mark.parametrize("words", sorted({*REFUSED, *OPTIONS}))
def test_operator_refuses_with_a_message_and_changes_nothing(words: str) -> None:
    ob = animated_arm()
    ob.ik_addon.live = "driven" not in words
    if words in REFUSED:
        REFUSED[words](ob)
    bpy.context.view_layer.objects.active = ob
    bpy.context.view_layer.update()
    before = state(ob)
    with pytest.raises(RuntimeError, match=words):
        bpy.ops.ik_addon.bake(**OPTIONS.get(words, {}))
    assert state(ob) == before


def flipping_arm(keyed: bool = True) -> bpy.types.Object:
    """Return an arm without a pole. Its target passes right behind it, so live turns the arm about its length."""
    ob = rigs.limb([(0, 0, 0), (0, 0.1, 1), (0, 0, 2)], ["upper", "lower"])
    target = rigs.empty("Target")
    rigs.chain(ob, "lower", target, 2)
    rigs.key(target, "location", {frame: (0.04 * (frame - 31), 0.01, -1.3) for frame in range(1, 62)})
    if not keyed:
        target.constraints.new("COPY_SCALE").target = ob  # so that F-curves alone do not determine the motion
    ob.ik_addon.live = True
    bpy.context.scene.frame_set(1)
    return ob


@pytest.mark.parametrize("keyed", [True, False], ids=["from F-curves", "evaluated"])
def test_smooth_avoids_a_flip_and_reaches_all_targets(bake: Any, addon: Addon, keyed: bool) -> None:
    ob, frames = flipping_arm(keyed), list(range(1, 62))
    report = bake.bake(bpy.context, ob, ["lower"], frames, smooth=True)
    assert report.live_turn > 60.0
    assert report.turn < 20.0
    assert (report.missed, report.plays_alike) == (0, True)
    assert max(rigs.on_frames(frames, lambda: rigs.miss(ob)).values()) < CLOSE
    said = list(report.sentences())
    assert any("without Smooth" in text for text in said)
    assert "Playback matches the smooth solution" in said


def test_unbaked_chains_stay_as_live_solves_them(bake: Any) -> None:
    """A hand follows a flipping arm that stays live: the arm is not smoothed, although it could be."""
    ob = flipping_arm()
    rigs.add_bones(ob, [(0, 0, 2), (0, 0.1, 2.5), (0, 0, 3)], ["palm", "fingers"], parent="lower", connect=False)
    rigs.chain(ob, "fingers", rigs.empty("Reached", (0.3, 0.2, -0.5)), 2)
    frames = list(range(1, 62))

    def tips() -> Any:
        return np.array(list(rigs.on_frames(frames, lambda: [rigs.tail(ob, n) for n in ("lower", "fingers")]).values()))

    live = tips()
    report = bake.bake(bpy.context, ob, ["fingers"], frames, smooth=True)
    assert report.plays_alike
    assert np.abs(tips() - live).max() < CLOSE


def held_arm() -> bpy.types.Object:
    """Return an arm that swings on frame 3, with its elbow at its limit on frames 6 to 10, where the target is near."""
    ob, target = rigs.arm()
    swinging = {frame: (0.0, -0.5 - 0.5 * (frame >= 3), 1.5) for frame in range(1, 6)}
    rigs.key(target, "location", swinging | dict.fromkeys(range(6, 11), (0.0, -0.4, 0.5)))
    rigs.limit(ob.pose.bones["lower"], x=(-100, 100), y=(0, 0), z=(0, 0))
    chain_of(ob).use_limits = True
    return ob


def test_the_report_has_misses_limits_and_speed(bake: Any, addon: Addon) -> None:
    ob = held_arm()
    length = rigs.length(ob, "lower", 2)
    report = bake.bake(bpy.context, ob, ["lower"], list(range(1, 11)))

    def played() -> tuple[float, list[Any]]:
        return rigs.miss(ob) / length, [bone.rotation_quaternion.copy() for bone in ob.pose.bones]

    errors, angles = zip(*rigs.on_frames(range(1, 11), played).values(), strict=True)
    missed = [error > 1e-3 for error in errors]
    assert missed == [False] * 5 + [True] * 5
    assert (report.missed, [chain.missed for chain in report.each]) == (5, [5])
    assert report.error == report.each[0].error == pytest.approx(max(errors), abs=1e-5)
    assert report.mean_error == report.each[0].mean_error == pytest.approx(np.mean(errors), abs=1e-5)
    assert [(joint.bone, joint.frames) for joint in report.limited] == [("lower", 5)]
    turns = {
        (frame + 1, bone.name): math.degrees(angles[frame][k].rotation_difference(angles[frame - 1][k]).angle)
        for frame in range(1, 10)
        for k, bone in enumerate(ob.pose.bones)
    }
    fastest = max(turns, key=lambda name: turns[name])
    before, after = report.turning_frames
    assert (after, report.turning_bone) == fastest
    assert report.ends[0] <= before == after - 1 < report.ends[1]
    assert report.turn == pytest.approx(turns[fastest], abs=0.01)
    told = list(report.sentences())
    for words in ("Baked 1 chain on 10 frames", "'lower' missed its target on 5 frames", "'lower' was at a limit on 5"):
        assert any(text.startswith(words) for text in told), told
    assert f"Fastest joint: '{fastest[1]}', {report.turn:.3g}° per frame from frame {before} to {after}" in told
    remark = addon.module("core.report").Remark
    assert [isinstance(text, remark) for text in report.sentences()].count(True) == 1
    assert report.plays_alike
    assert report.summary == "Baked 1 chain on 10 frames. Targets were missed, see Last Bake"


def test_the_report_is_shown_until_the_chain_is_solved_again(bake: Any, addon: Addon) -> None:
    ob = held_arm()
    shown = addon.module("ui.panels.bake_report").shown
    assert shown(ob) is None
    report = bake.bake(bpy.context, ob, ["lower"], FRAMES)
    bpy.context.view_layer.objects.active = ob

    def has_panel() -> bool:
        return bool(bpy.types.VIEW3D_PT_ik_addon_bake.poll(bpy.context))

    assert (shown(ob), has_panel()) == (report, True)
    bpy.ops.ik_addon.report_close()
    assert not has_panel()
    addon.module("bake.bake_report").remember(ob, report)
    assert shown(ob) == report
    ob.pose.bones["lower"].ik_addon.enabled = True
    assert (shown(ob), has_panel()) == (None, False)


@pytest.mark.usefixtures("sidebar")
@pytest.mark.parametrize(("step", "last"), [(1, 2), (20, 21), (7, 8), (7, 5)])
def test_the_fastest_joint_is_reported_with_the_keyed_frames_between_which_it_turns(step: int, last: int) -> None:
    """Only two frames are keyed: of more the panel draws a graph, which needs a window."""
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 21: (-0.5, 0.4, 1.1)})
    bpy.context.view_layer.objects.active = ob
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, last
    assert bpy.ops.ik_addon.bake(frame_range="SCENE", step=step) == {"FINISHED"}
    report = " ".join(drawn("VIEW3D_PT_ik_addon_bake"))
    said = re.search(r"Fastest joint: '(\w+)', ([\d.]+)°.* from frame (\d+) to (\d+)", report)
    assert said, report
    assert [int(said[3]), int(said[4])] == [1, last]
    turned = rigs.on_frames((1, last), lambda: ob.pose.bones[said[1]].rotation_quaternion.copy())
    angle = math.degrees(turned[1].rotation_difference(turned[last]).angle)
    assert angle / (last - 1) == pytest.approx(float(said[2]), rel=0.01)


def test_chain_selections(bake: Any) -> None:
    ob = spine_and_arm()
    assert set(bake.chosen_tips(ob, "ALL")) == {"spine4", "arm2"}
    assert bake.chosen_tips(ob, "ACTIVE", ob.pose.bones["spine4"]) == ["spine4"]
    with pytest.raises(bake.UserError, match="not part of an IK chain"):
        bake.chosen_tips(ob, "ACTIVE")
    rigs.select_bones(ob, "arm1")
    assert bake.chosen_tips(ob, "SELECTED") == ["arm2"]
    ob.pose.bones["spine4"].ik_addon.enabled = False
    assert bake.chosen_tips(ob, "ALL") == ["arm2"]
    with pytest.raises(bake.UserError, match="disabled"):
        bake.chosen_tips(ob, "ACTIVE", ob.pose.bones["spine4"])
    activate(ob, "arm1")
    assert bpy.ops.ik_addon.bake(chains="ACTIVE", frame_start=1, frame_end=5) == {"FINISHED"}
    assert {path.split('"')[1] for path, _index in curves(ob)} == {"arm1", "arm2"}
