"""Planted feet hold still in playback, the hips move so that legs reach, and cancelling changes nothing."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Vector

from tests import recorded, rigs
from tests.conftest import Addon, Capture
from tests.feet import clips, walker
from tests.feet.walker import SLIDE
from tests.reliability.states import activate, said

SHINS, THIGHS = ("shin.L", "shin.R"), ("thigh.L", "thigh.R")


def hips_of(ob: bpy.types.Object, poses: Any) -> Any:
    return poses[:, ob.pose.bones.find("hips"), :3, 3]


def moved(ob: bpy.types.Object, poses: Any, before: Any) -> Any:
    """Return how far (F,) the hips are from where they were."""
    return np.linalg.norm(hips_of(ob, poses) - hips_of(ob, before), axis=1)


def test_knees_hardly_turn_faster_than_in_the_clip(
    addon: Addon, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    faster, off = [], []
    cases = "turn 0.008 3, turn 0.03 3, run 0.03 3, run 0.008 6, run 0.03 10, stairs 0.03 3, stairs 0.03 6"
    for name, *numbers in map(str.split, cases.split(",")):
        slide, bend = map(float, numbers)
        monkeypatch.setattr(clips, "SLIDE", slide)
        ob = walker.walking(name, bend)
        source = knees(ob, walker.play(ob))
        bpy.ops.ik_addon.find_contacts()
        message = said(capfd, bpy.ops.ik_addon.plant)
        poses = walker.play(ob)
        planted = knees(ob, poses)
        before, now = (np.abs(np.diff(own, axis=0)) for own in (source, planted))
        assert f"Knees turn by up to {now.max():.0f}° a frame, {before.max():.0f}° before" in message
        assert walker.slide(addon, ob, poses) < SLIDE
        faster += (now - before).max(axis=0).tolist()
        off += stances_off(addon, ob, planted - source, SHINS)
    assert max(faster) < 8.0
    assert max(off) < 4.0


@pytest.mark.parametrize(("rate", "step"), [(30, 4), (60, 2), (120, 1), (24, 1)])
def test_knees_of_the_recorded_walk_stay_as_recorded_where_feet_stand(addon: Addon, rate: int, step: int) -> None:
    """Straight legs and feet that slide by 5 % of the leg; at 24 in slow motion, as Blender imports it."""
    ob, scene = recorded.walk(), bpy.context.scene
    for curve in rigs.fcurves(ob):  # this many frames of 120 a second are one
        for key in curve.keyframe_points:
            key.co.x = (key.co.x + step - 1.0) / step
        curve.update()
    scene.render.fps, scene.frame_start, scene.frame_end = rate, 2, 524 // step
    shins, thighs = ("LeftLeg", "RightLeg"), ("LeftUpLeg", "RightUpLeg")
    source = knees(ob, walker.play(ob), shins, thighs)
    set_up(ob)
    poses = walker.plant(ob)
    planted = knees(ob, poses, shins, thighs)
    assert walker.slide(addon, ob, poses) < SLIDE
    assert (np.abs(np.diff(planted, axis=0)) - np.abs(np.diff(source, axis=0))).max() < 10.0
    assert max(stances_off(addon, ob, planted - source, shins)) < 4.0


def set_up(ob: bpy.types.Object) -> None:
    """Set up the legs of a recorded figure, and snap their targets to it."""
    bpy.context.view_layer.objects.active = ob
    bpy.ops.ik_addon.character_setup(regions={"LEG"}, with_poles=False, controls="EMPTIES")
    bpy.ops.ik_addon.snap_target(chains="ALL", frame_range="SCENE")


def stances_off(addon: Addon, ob: bpy.types.Object, off: Any, shins: Sequence[str]) -> list[float]:
    """Return the largest differences of knees, given all of them (F, k), on frames on which the foot stands flat."""
    stands = [walker.contacts(addon, ob.pose.bones[shin]).all(axis=0) for shin in shins]
    return [float(np.abs(own[flat]).max()) for own, flat in zip(off.T, stands, strict=True)]


def knees(ob: bpy.types.Object, poses: Any, shins: Sequence[str] = SHINS, thighs: Sequence[str] = THIGHS) -> Any:
    """Return the bends (F, k) of knees in degrees."""
    along = [poses[..., :3, 1][:, [ob.pose.bones.find(name) for name in names]] for names in (shins, thighs)]
    return np.degrees(np.arctan2(np.linalg.norm(np.cross(*along), axis=-1), (along[0] * along[1]).sum(axis=-1)))


def test_hips_move_to_let_legs_reach(addon: Addon) -> None:
    ob = walker.figure("turn", excess=0.015)
    before = walker.play(ob)
    poses = walker.plant(ob, hips=False)
    assert walker.slide(addon, ob, poses) > SLIDE, "legs are too short"
    assert moved(ob, poses, before).max() < 1e-6
    bpy.context.scene.frame_set(60)
    assert bpy.ops.ik_addon.plant() == {"FINISHED"}
    shown = rigs.pose(ob)
    poses = walker.play(ob)
    bpy.context.scene.frame_set(60)
    assert np.abs(rigs.pose(ob) - shown).max() < 1e-6, "the current frame showed it at once"
    assert walker.slide(addon, ob, poses) < SLIDE
    assert 0.01 < moved(ob, poses, before).max() < 0.06
    assert np.abs(np.diff(moved(ob, poses, before))).max() * 30.0 < 0.6, "meters a second"


def test_hips_stay_within_their_cap_and_misses_are_reported(capfd: Capture) -> None:
    ob = walker.figure("turn", excess=0.05)
    before = walker.play(ob)
    assert moved(ob, walker.plant(ob, cap=0.01), before).max() < 0.0101 * walker.LENGTH
    assert "misses its target by up to" in capfd.readouterr().out


@pytest.mark.parametrize("why", ["attached to the hips", "A chain poses 'hips'"])
def test_hips_that_cannot_be_moved_are_left_alone_with_the_reason(why: str, capfd: Capture) -> None:
    ob = walker.figure("turn", excess=0.05)
    bpy.ops.ik_addon.find_contacts()
    if why.startswith("attached"):
        target = ob.pose.bones["shin.R"].ik_addon.target
        target.parent, target.parent_type, target.parent_bone = ob, "BONE", "hips"
    else:
        rigs.chain(ob, "hips", rigs.empty("Above", (0.0, 0.0, 2.0)), 1)
    bpy.context.view_layer.update()
    before = walker.play(ob)
    assert f"{why}, so the hips were left alone" in said(capfd, bpy.ops.ik_addon.plant)
    assert moved(ob, walker.play(ob), before).max() < 1e-6


def with_arm(name: str = "turn", parent: bpy.types.Object | None = None) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a figure with an arm whose target and pole are keyed, and the target of the arm."""
    ob = walker.figure(name, excess=0.015)
    bpy.context.scene.frame_end = 100
    ob.ik_addon.live = False
    head = ob.data.bones["chest"].tail_local
    points = [head, head + Vector((0.0, 0.05, -0.25)), head + Vector((0.0, 0.0, -0.5))]
    rigs.add_bones(ob, points, ["upper", "lower"], parent="chest", connect=False)
    target, pole = rigs.empty("Hand", points[2]), rigs.empty("Elbow", points[1] + Vector((0.0, 0.5, 0.0)))
    for goal in (target, pole):
        rigs.key(goal, "location", {frame: goal.location + Vector((0.001 * frame, 0.0, 0.0)) for frame in (1, 75, 150)})
    target.parent = parent
    rigs.chain(ob, "lower", target, 2, pole=pole)
    ob.ik_addon.live = True
    activate(ob, "shin.L")
    return ob, target


def place_of(thing: bpy.types.Object) -> Any:
    return walker.world_of(thing)[:, :3, 3]


def test_hands_follow_the_hips_except_in_contact() -> None:
    ob, target = with_arm()
    pole = bpy.data.objects["Elbow"]

    def places() -> Any:
        return np.array([hips_of(ob, walker.play(ob)), place_of(target), place_of(pole)])

    before = places()
    bpy.ops.ik_addon.find_contacts()
    for _again in range(2):
        bpy.ops.ik_addon.plant()
        away = places() - before
        assert np.abs(away[0]).max() > 0.01
        assert np.abs(away[1:] - away[0]).max() < 1e-5
    activate(ob, "lower")
    bpy.ops.ik_addon.mark_contact(contact="HEEL", action="ADD", frame_start=60, frame_end=80)
    for chains in ("LEGS", "ALL"):
        bpy.ops.ik_addon.plant(chains=chains)
        now = places()
        away = now - before
        assert np.abs(away[1, :50] - away[0, :50]).max() < 1e-5
        still = np.ptp(now[1, 59:80], axis=0) if chains == "ALL" else np.abs(away[1, 59:80])
        assert still.max() < 1e-5, "it stays as it was, or is planted"


@pytest.mark.parametrize("what", ["PARENT", "CONSTRAINT", "LOCK", "HIPS OFF"])
def test_hands_that_cannot_follow_the_hips_stay(what: str) -> None:
    prop = rigs.empty("Prop") if what == "PARENT" else None
    ob, target = with_arm(parent=prop)
    bpy.context.scene.frame_end = 40
    if what == "CONSTRAINT":
        target.constraints.new("LIMIT_LOCATION")
    elif what == "LOCK":
        for curve in rigs.fcurves(target):
            curve.lock = True
    hand, before = place_of(target), walker.play(ob)
    poses = walker.plant(ob, hips=what != "HIPS OFF")
    assert (moved(ob, poses, before).max() > 0.01) == (what != "HIPS OFF")
    assert np.array_equal(place_of(target), hand)
    assert len(rigs.fcurves(target)[0].keyframe_points) == 3


def test_legs_on_keyed_targets_are_compared_with_their_solved_motion() -> None:
    """The FK pose of these legs is still, so compared with FK every movement would look like a flip."""
    ob = walker.figure("turn", excess=-0.02)
    source = walker.play(ob)
    poses = walker.plant(ob, chains="ALL")
    assert (_turns(poses) - _turns(source)).max() * bpy.context.scene.render.fps < 150.0, "degrees a second"
    assert moved(ob, poses, source).max() < 0.01


def test_softness_keeps_knees_bent(addon: Addon) -> None:
    ob = walker.figure("turn", excess=0.015)
    for end in "LR":
        ob.pose.bones[f"shin.{end}"].ik_addon.softness = 0.02
    poses: Any = walker.plant(ob)
    assert walker.slide(addon, ob, poses) < SLIDE
    thigh, foot = (poses[:, ob.pose.bones.find(name), :3, 3] for name in ("thigh.L", "foot.L"))
    reach = np.linalg.norm(foot - thigh, axis=1) / rigs.length(ob, "shin.L", 2)
    assert reach[walker.contacts(addon, ob.pose.bones["shin.L"]).any(axis=0)].max() < 0.9801


def test_hips_move_where_joint_limits_let_legs_reach(addon: Addon, capfd: Capture) -> None:
    """Knees are limited to at least the bend of the rest pose."""
    ob = walker.figure("turn", frames=190)
    for end in "LR":
        knee = ob.pose.bones[f"shin.{end}"]
        rigs.limit(knee, x=(-150, 0), y=(0, 0), z=(0, 0))
        knee.ik_addon.use_limits = True
    walker.plant(ob, hips=False)
    assert "misses its target by up to" in capfd.readouterr().out
    assert bpy.ops.ik_addon.plant() == {"FINISHED"}
    assert "misses" not in capfd.readouterr().out
    assert walker.slide(addon, ob, walker.play(ob)) < SLIDE


def test_feet_on_a_lift_hold_still_relative_to_it(addon: Addon) -> None:
    ob = walker.figure("turn")
    lift = rigs.empty("Lift")
    for end in "LR":
        target = ob.pose.bones[f"shin.{end}"].ik_addon.target
        target.parent = lift
    ob.parent = lift
    rigs.key(lift, "location", {1: (0, 0, 0), 100: (0.5, 0, 2.0)})
    rigs.key(lift, "rotation_euler", {1: (0, 0, 0), 100: (0, 0, 1.0)})
    bpy.ops.ik_addon.find_contacts(on="Lift")
    assert len(walker.keys(addon, ob, "L")) > 8
    assert bpy.ops.ik_addon.plant(on="Lift") == {"FINISHED"}
    poses = walker.play(ob)
    assert walker.slide(addon, ob, poses) > 0.1, "in the world they go along"
    riding = np.linalg.inv(walker.world_of(lift))[:, None] @ poses
    walker.assert_hold(addon, ob, riding)


def test_what_cannot_be_planted_is_refused() -> None:
    ob = walker.figure("turn", frames=60)

    def refuses(operator: Any, why: str, **options: str) -> None:
        with pytest.raises(RuntimeError, match=why):
            operator(**options)

    refuses(bpy.ops.ik_addon.find_contacts, "no object 'Nowhere'", on="Nowhere")
    refuses(bpy.ops.ik_addon.find_contacts, "stand on itself", on="Figure")
    refuses(bpy.ops.ik_addon.plant, "Find contacts first")
    bpy.ops.ik_addon.find_contacts()
    refuses(bpy.ops.ik_addon.plant, "no object 'Nowhere'", ground="Nowhere")
    ob.pose.bones["shin.R"].ik_addon.target.animation_data_clear()
    before = walker.play(ob)
    refuses(bpy.ops.ik_addon.plant, "'Target R' has no keys")
    assert np.array_equal(walker.play(ob), before)
    rigs.change(ob.pose.bones["thigh.L"], scale=(0.0, 0.0, 0.0))
    for operator in (bpy.ops.ik_addon.find_contacts, bpy.ops.ik_addon.plant):
        refuses(operator, "scaled to zero")


def test_a_foot_that_ignores_its_targets_rotation_is_held_at_its_joint(addon: Addon, capfd: Capture) -> None:
    ob: Any = walker.figure("turn")
    bpy.ops.ik_addon.find_contacts()
    tip = ob.pose.bones["shin.L"]
    tip.ik_addon.use_end_rotation = False
    bpy.ops.ik_addon.plant()
    assert "'foot.L' doesn't turn with its target" in capfd.readouterr().out
    joint = walker.play(ob)[:, ob.pose.bones.find("foot.L"), :3, 3]
    for start, end in addon.module("feet.filling").runs(walker.contacts(addon, tip).any(axis=0)):
        assert np.abs(joint[start:end] - joint[start]).max() < SLIDE


def test_a_chain_without_contacts_keeps_its_keys() -> None:
    ob = walker.figure("turn")
    activate(ob, "shin.R")
    bpy.ops.ik_addon.find_contacts(chains="ACTIVE")
    target = ob.pose.bones["shin.L"].ik_addon.target
    for curve in rigs.fcurves(target):
        for key in reversed(curve.keyframe_points[1:-1]):
            curve.keyframe_points.remove(key)
    assert bpy.ops.ik_addon.plant() == {"FINISHED"}
    assert {len(curve.keyframe_points) for curve in rigs.fcurves(target)} == {2}


def places(ob: bpy.types.Object) -> Any:
    """Return the world matrices of the hips and feet, (frames, 3, 4, 4)."""
    poses: Any = walker.play(ob)
    return np.stack([poses[:, ob.pose.bones.find(name)] for name in ("hips", "foot.L", "foot.R")], axis=1)


def test_planting_again_starts_from_the_unplanted_motion(addon: Addon) -> None:
    ob = walker.figure("turn", excess=0.015)
    bpy.ops.ik_addon.find_contacts()
    wanted = [walker.keys(addon, ob, end) for end in "LR"]
    bpy.ops.ik_addon.plant()
    planted = places(ob)
    rigs.empty("Ground").location.z = 0.3
    bpy.ops.ik_addon.plant(ground="Ground", cap=0.5)
    assert np.abs(places(ob) - planted).max() > 0.2
    bpy.ops.ik_addon.find_contacts()
    assert [walker.keys(addon, ob, end) for end in "LR"] == wanted, "they are found where they were recorded"
    bpy.ops.ik_addon.plant()
    assert np.abs(places(ob) - planted).max() < 1e-5
    activate(ob, "shin.L")
    bpy.ops.ik_addon.plant(chains="ACTIVE")
    assert walker.slide(addon, ob, walker.play(ob)) < SLIDE, "the other foot still holds"
    bpy.ops.ik_addon.plant()
    assert np.abs(places(ob) - planted).max() < 1e-5


@pytest.mark.parametrize("height", [0.02, 0.3])
@pytest.mark.parametrize("slope", [0.0, 0.1])
def test_the_other_foot_holds_however_often_one_is_planted_again(addon: Addon, height: float, slope: float) -> None:
    ob = walker.figure("turn", excess=0.015)
    ground = rigs.empty("Ground", (0.0, 0.0, height))
    rigs.change(ground.rotation_euler, x=slope)
    bpy.ops.ik_addon.find_contacts()
    bpy.ops.ik_addon.plant(ground="Ground", cap=0.5)
    activate(ob, "shin.L")
    for _ in range(2):
        assert bpy.ops.ik_addon.plant(chains="ACTIVE", ground="Ground", cap=0.5) == {"FINISHED"}
        assert walker.slide(addon, ob, walker.play(ob)) < SLIDE


def test_edits_after_planting_are_kept() -> None:
    ob = walker.figure("turn")
    bpy.ops.ik_addon.find_contacts()
    bpy.ops.ik_addon.plant()
    target: Any = ob.pose.bones["shin.L"].ik_addon.target
    for curve in rigs.fcurves(target):
        if curve.data_path == "location" and curve.array_index == 0:
            for key in curve.keyframe_points:
                key.co.y += 0.05
            curve.update()
    before = places(ob)
    bpy.ops.ik_addon.plant()
    assert np.abs(places(ob) - before)[:, 1, :3, 3].max() < 0.01


def test_a_cancelled_plant_changes_nothing(addon: Addon) -> None:
    ob = walker.figure("turn", excess=0.015)
    bpy.ops.ik_addon.find_contacts()
    before = walker.play(ob)
    bpy.context.scene.frame_set(30)
    plant = addon.module("feet.plant")
    tips = [ob.pose.bones[f"shin.{end}"] for end in "LR"]
    for share in (0.0, 0.3, 0.6, 0.75):
        with closing(plant.plant_feet(bpy.context, ob, tips, range(1, 110), plant.Options())) as todo:
            while next(todo) < share:
                pass
        assert bpy.context.scene.frame_current == 30
    assert np.array_equal(walker.play(ob), before)


def test_a_foot_rolls_about_the_users_own_pivot(addon: Addon) -> None:
    ob = walker.figure("turn")
    tip: Any = ob.pose.bones["shin.L"]
    tip.ik_addon.toe_pivot = (0.02, 0.3, 0.05)
    tip.ik_addon.heel_pivot = (0.0, -0.1, 0.0)
    bpy.ops.ik_addon.find_contacts()
    assert tuple(tip.ik_addon.toe_pivot) == pytest.approx((0.02, 0.3, 0.05))
    bpy.ops.ik_addon.plant()
    assert walker.slide(addon, ob, walker.play(ob)) < SLIDE
    activate(ob, "shin.L")
    bpy.ops.ik_addon.find_pivots()
    assert tuple(tip.ik_addon.toe_pivot) != pytest.approx((0.02, 0.3, 0.05))


def test_the_recorded_walk_is_planted_within_the_published_figures(addon: Addon) -> None:
    """Sliding, orientation, depth, and added speed compared with the recording are as docs/lab/quality.md says."""
    ob = recorded.walk()
    scene = bpy.context.scene
    scene.render.fps, scene.frame_start = 120, 2
    source = walker.play(ob)
    set_up(ob)
    bpy.ops.ik_addon.find_contacts()
    assert walker.slide(addon, ob, source) > 0.02
    length = rigs.length(ob, "LeftLeg", 2)
    level = float(lowest(ob, source)) + 0.02 * length
    rigs.empty("Floor", (0.0, 0.0, level))
    poses: Any = walker.plant(ob, ground="Floor")
    assert lowest(ob, poses) >= level
    walker.assert_hold(addon, ob, poses)
    away = (poses - source)[:, ob.pose.bones.find("Hips"), :3, 3] / length * 0.9
    assert np.linalg.norm(np.diff(away, axis=0), axis=1).max() * 120.0 < 0.6, "meters a second"
    assert (_turns(poses) - _turns(source)).max() * 120.0 < 300.0, "degrees a second"


@pytest.mark.parametrize("change", ["backwards", "noise", "part"])
def test_variants_of_a_walk_are_planted(addon: Addon, change: str) -> None:
    """The walk backwards, with 2 mm of noise, and a part of it that begins and ends during contacts."""
    random = np.random.default_rng(1)
    ob = walker.figure("turn")
    for end in "LR":
        for curve in rigs.fcurves(ob.pose.bones[f"shin.{end}"].ik_addon.target):
            keys = np.empty(2 * len(curve.keyframe_points))
            curve.keyframe_points.foreach_get("co", keys)
            if change == "backwards":
                keys[1::2] = keys[::-2]
            elif change == "noise":
                keys[1::2] += random.normal(0.0, 0.002, len(keys) // 2)
            curve.keyframe_points.foreach_set("co", keys)
            curve.update()
    if change == "part":
        bpy.context.scene.frame_start, bpy.context.scene.frame_end = 10, 90
    source = walker.play(ob)
    poses = walker.plant(ob)
    assert walker.slide(addon, ob, source) > 0.002
    walker.assert_hold(addon, ob, poses)
    assert np.linalg.norm(np.diff(hips_of(ob, poses), axis=0), axis=1).max() * 30.0 < 0.6, "meters a second"


def lowest(ob: bpy.types.Object, poses: Any) -> Any:
    """Return the height of the lowest pivot over all frames."""
    return min(walker.pivots(ob, poses, tip.name)[..., 2].min() for tip in walker.limbs(ob))


def _turns(poses: Any) -> Any:
    """Return the rotation of bones in degrees from each frame to the next."""
    axes = poses[..., :3, :3] / np.linalg.norm(poses[..., :3, :3], axis=-2, keepdims=True)
    chords = np.linalg.norm(np.diff(axes, axis=0), axis=(2, 3)) / np.sqrt(8.0)
    return np.degrees(2.0 * np.arcsin(np.minimum(chords, 1.0)))
