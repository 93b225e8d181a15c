"""Bakes with fewer keys, as Blender plays them."""

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Vector

from tests import recorded, rigs
from tests.bake.test_bake import FRAMES, animated_arm, circling, curves, keyed, state
from tests.conftest import Addon
from tests.feet import walker
from tests.reliability.states import activate
from tests.rigs_generated import armature_of


def joints(ob: bpy.types.Object, frames: Any = FRAMES) -> Any:
    """Return heads and tails (frames, bones, 2, 3) of all bones in world space, as played."""

    def ends() -> Any:
        seen = rigs.evaluated(ob)
        return [[seen.matrix_world @ bone.head, seen.matrix_world @ bone.tail] for bone in seen.pose.bones]

    return np.array(list(rigs.on_frames(frames, ends).values()))


def reduced(
    bake: Any,
    ob: bpy.types.Object,
    distance: float,
    *,
    tips: Sequence[str] = ("lower",),
    frames: Sequence[int] = FRAMES,
    read: Callable[[bpy.types.Object, Sequence[int]], Any] = joints,
) -> tuple[Any, float]:
    """Bake with fewer keys; return the report, and how far a joint is moved by that: no farther than it may be."""
    full = read(ob, frames)
    report = bake.bake(bpy.context, ob, [*tips], frames, reduce=distance)
    away = float(np.linalg.norm(read(ob, frames) - full, axis=-1).max())
    assert away <= 1.01 * distance
    return report, away


def count(ob: bpy.types.Object, *names: str) -> int:
    """Return how many keys bones have on the baked frames."""
    own = [curve for (path, _), curve in curves(ob).items() if any(f'"{name}"' in path for name in names)]
    return sum(FRAMES[0] <= key.co[0] <= FRAMES[-1] for curve in own for key in curve.keyframe_points)


@pytest.mark.parametrize("mode", ["QUATERNION", "AXIS_ANGLE", "XYZ", "ZXY"])
def test_no_joint_moves_by_more_than_the_maximum_distance(bake: Any, mode: str) -> None:
    ob = animated_arm(mode)
    ob.scale = (2.0, 2.0, 2.0)
    report, away = reduced(bake, ob, 0.01)
    assert report.keys.distance == pytest.approx(away, abs=1e-4)
    assert report.keys.after == count(ob, "upper", "lower") < 0.6 * report.keys.before
    assert report.keys.before == len(FRAMES) * len({name for name in curves(ob) if "other" not in name[0]})
    assert (bpy.context.scene.frame_current, bpy.context.scene.frame_subframe) == (FRAMES[-1], 0.0)


def test_a_distance_below_rounding_keeps_the_keys(bake: Any) -> None:
    report = bake.bake(bpy.context, animated_arm(), ["lower"], FRAMES, reduce=1e-12)
    assert report.keys.after > 0.9 * report.keys.before


def test_bones_below_and_pivots_are_measured_too(bake: Any) -> None:
    """A long hand, and a heel far behind it, are moved most by a rotation of the arm."""
    ob, target = rigs.arm()
    rigs.add_bones(ob, [(0, 0, 2), (0, 0, 8)], ["hand"], parent="lower", connect=False)
    chain = ob.pose.bones["lower"].ik_addon
    chain.end_bone, chain.heel_pivot = "hand", (0.0, -20.0, 0.0)
    chain.use_end_rotation = False
    circling(target)
    ob.ik_addon.live = True

    def hand() -> Any:
        own = rigs.evaluated(ob).pose.bones["hand"]
        return own.tail.copy(), own.matrix @ chain.heel_pivot

    report, _away = reduced(bake, ob, 0.02, read=lambda _ob, frames: np.array([*rigs.on_frames(frames, hand).values()]))
    assert report.keys.after < report.keys.before


@pytest.mark.parametrize("touches", [True, False])
def test_feet_in_contact_still_hold_still(addon: Addon, touches: bool) -> None:
    """However far joints may move, contacts stay within the figures of planting, and cost few more keys."""
    ob = walker.figure("turn", excess=0.015, frames=60)
    walker.plant(ob)
    if not touches:
        for tip in ("shin.L", "shin.R"):
            addon.module("core.contact_keys").curve_of(ob.pose.bones[tip]).mute = True
            ob.pose.bones[tip].ik_addon.contact = set()
    assert bpy.ops.ik_addon.bake(reduce_keys=True, max_distance=0.01) == {"FINISHED"}
    keys = addon.module("bake.bake_report").last(ob).keys
    assert 0.001 < keys.distance <= 0.01
    poses = walker.play(ob)
    if touches:
        walker.assert_hold(addon, ob, poses)
    else:
        assert keys.after < 0.3 * keys.before, "nothing is to be held"


def test_feet_stay_out_of_the_ground_they_were_planted_on(addon: Addon) -> None:
    """However far joints may move: one foot has contacts, the other has none, and the ground rises."""
    ob = walker.figure("turn", frames=60)
    floor = rigs.empty("Floor")
    rigs.key(floor, "location", {1: (0.0, 0.0, 0.03), 60: (0.0, 0.0, 0.05)})
    bpy.context.view_layer.update()
    activate(ob, "shin.L")
    bpy.ops.ik_addon.find_contacts(chains="ACTIVE")
    bpy.ops.ik_addon.plant(ground="Floor")

    def deepest() -> float:
        levels = walker.world_of(floor)[:, 2, 3]
        return max((levels - walker.pivots(ob, walker.play(ob), tip)[..., 2]).max() for tip in ("shin.L", "shin.R"))

    assert deepest() <= 0.0
    assert bpy.ops.ik_addon.bake(reduce_keys=True, max_distance=0.02) == {"FINISHED"}
    assert addon.module("bake.bake_report").last(ob).keys.distance > 0.002
    assert deepest() <= 1e-6


def test_a_deleted_ground_is_forgotten(addon: Addon) -> None:
    ob = walker.figure("turn", frames=30)
    floor, view_layer = rigs.empty("Floor", (0.0, 0.0, 0.02)), bpy.context.view_layer
    walker.plant(ob, ground="Floor")
    of = addon.module("feet.ground_object").planted_on
    floor.name = "Renamed"
    assert of(view_layer, ob).args == (view_layer, floor)
    bpy.data.objects.remove(floor)
    assert of(view_layer, ob) is None
    bpy.ops.ik_addon.plant()
    assert of(view_layer, ob) is None


def test_an_appended_action_brings_no_ground_along(tmp_path: Path) -> None:
    ob = walker.figure("turn", frames=30)
    rigs.empty("Floor", (0.0, 0.0, 0.02))
    walker.plant(ob, ground="Floor")
    name, path = ob.animation_data.action.name, tmp_path / "walk.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    rigs.new_file()
    (action,) = rigs.from_library(path, "actions", name, link=False)
    assert action.name == name
    assert not bpy.data.objects


def test_motion_that_blender_evaluates_is_reduced(bake: Any) -> None:
    """A constraint affects the motion, so Blender evaluates its frames."""
    ob = animated_arm()
    target = ob.pose.bones["lower"].ik_addon.target
    target.constraints.new("COPY_SCALE").target = rigs.empty("Other")
    bpy.context.scene.unit_settings.scale_length = 0.01
    report, away = reduced(bake, ob, 0.02)
    assert report.keys.distance == pytest.approx(0.01 * away, abs=2e-6)
    assert report.keys.after < 0.7 * report.keys.before


def test_pushed_roots_and_stretched_bones_are_reduced(bake: Any) -> None:
    for policy in ("PUSH_ROOT", "STRETCH"):
        ob, target = rigs.arm()
        ob.pose.bones["lower"].ik_addon.out_of_reach = policy
        circling(target, 2.0)
        ob.ik_addon.live = True
        report, _away = reduced(bake, ob, 0.01)
        assert report.keys.after < 0.7 * report.keys.before


def test_frames_between_stepped_keys_are_measured(bake: Any) -> None:
    ob = animated_arm()
    bake.bake(bpy.context, ob, ["lower"], [*FRAMES[::5], 30])
    full = joints(ob)
    again = animated_arm()
    bake.bake(bpy.context, again, ["lower"], [*FRAMES[::5], 30], reduce=0.02)
    assert np.linalg.norm(joints(again) - full, axis=3).max() <= 0.0202


def test_cancelling_at_any_time_restores_everything(bake: Any) -> None:
    ob = animated_arm()
    before = state(ob)
    for share in (0.3, 0.45, 0.55, 0.8, 0.99):
        todo = bake.bake_stepwise(bpy.context, ob, ["lower"], FRAMES, smooth=True, reduce=0.001)
        while next(todo) < share:
            pass
        todo.close()
        assert state(ob) == before, share


def test_motion_that_does_not_repeat_is_not_reduced(bake: Any) -> None:
    """A handler moves the rig at random, so everything is restored."""
    ob = animated_arm()
    before = state(ob)
    rng = np.random.default_rng(1)

    def disturb(_scene: Any, _depsgraph: Any) -> None:
        ob.pose.bones["other"].location.x = rng.normal()

    bpy.app.handlers.frame_change_pre.append(disturb)
    try:
        with pytest.raises(bake.UserError, match="can't be reduced"):
            bake.bake(bpy.context, ob, ["lower"], FRAMES, reduce=0.001)
    finally:
        bpy.app.handlers.frame_change_pre.remove(disturb)
    ob.pose.bones["other"].location.x = 0.0
    counts = [{name: len(own) for name, own in keys.items()} for keys in (before[2], keyed(ob))]
    assert counts[0] == counts[1]
    assert ob.pose.bones["lower"].ik_addon.enabled


def test_the_recorded_walk_keeps_few_keys(addon: Addon, bake: Any) -> None:
    """As in docs/lab/quality.md: four limbs, one millimeter in the recording's units, inches by 0.45."""
    ob = recorded.walk()
    scene = bpy.context.scene
    scene.render.fps, scene.frame_start, scene.frame_end = 120, 2, 300
    scene.unit_settings.scale_length = 0.0254 / 0.45
    bpy.context.view_layer.objects.active = ob
    bpy.ops.ik_addon.character_setup(regions={"ARM", "LEG"}, with_poles=False, with_presets=False)
    bpy.ops.ik_addon.snap_target(chains="ALL", frame_range="SCENE")
    frames = range(2, scene.frame_end + 1)
    full = joints(ob, frames)
    distance = 0.001 / scene.unit_settings.scale_length
    assert bpy.ops.ik_addon.bake(reduce_keys=True, max_distance=distance) == {"FINISHED"}
    keys = addon.module("bake.bake_report").last(ob).keys
    assert keys.after < 0.15 * keys.before
    assert np.linalg.norm(joints(ob, frames) - full, axis=3).max() <= distance * 1.001
    assert 0.0005 < keys.distance <= 0.001


@pytest.mark.usefixtures("rigify")
def test_a_bone_that_does_not_inherit_rotation_keeps_its_keys_where_fewer_dont_hold(bake: Any) -> None:
    """Bones above it move it, but don't turn it, so displacements don't add up as computed."""
    ob = armature_of("human")
    activate(ob, "upper_arm.L")
    ob.data.bones["upper_arm.L"].use_inherit_rotation = False
    rng = random.Random(2)
    for name in ("upper_arm.L", "forearm.L", "thigh.R", "shin.R", "spine", "spine.002", "hand.L"):
        turns = {frame: Euler([rng.uniform(-0.5, 0.5) for _ in range(3)]).to_quaternion() for frame in (1, 13, 27, 40)}
        rigs.key(ob.pose.bones[name], "rotation_quaternion", turns)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 40
    bpy.context.scene.frame_set(1)
    bpy.ops.ik_addon.character_setup(regions={"ARM", "SPINE"})
    bpy.ops.ik_addon.snap_target(chains="ALL", frame_range="SCENE")
    tips = [bone for bone in ob.pose.bones if bone.ik_addon.is_chain]
    for target in [bone.ik_addon.target for bone in tips]:
        for frame in (10, 22, 33):
            bpy.context.scene.frame_set(frame)
            target.location += Vector([rng.uniform(-0.05, 0.05) for _ in range(3)])
            target.keyframe_insert("location", frame=frame)
    reduced(bake, ob, 0.002, tips=[bone.name for bone in tips], frames=range(1, 41))


def test_tiny_bones_without_children_hardly_turn(bake: Any) -> None:
    """However short a head is, it turns no farther than a bone of a tenth of the figure would at that distance."""
    ob, target = rigs.arm()
    rigs.add_bones(ob, [(0, 0, 2), (0, 0, 2.002)], ["head"], parent="lower", connect=False)
    circling(target)
    chain = ob.pose.bones["lower"].ik_addon
    chain.end_bone, chain.use_end_rotation = "head", True
    angles = {frame: [0.6 * math.sin(pace * frame) for pace in (0.31, 0.23, 0.4)] for frame in FRAMES}
    rigs.key(target, "rotation_euler", angles)
    ob.ik_addon.live = True

    def turns() -> list[Any]:
        return [*rigs.on_frames(FRAMES, lambda: rigs.evaluated(ob).pose.bones["head"].matrix.to_quaternion()).values()]

    full = turns()
    report = bake.bake(bpy.context, ob, ["lower"], FRAMES, reduce=0.002)
    off = [np.degrees(a.rotation_difference(b).angle) for a, b in zip(full, turns(), strict=True)]
    assert max(min(angle, 360.0 - angle) for angle in off) < 1.0 + np.degrees(0.002 / 0.2)
    assert report.keys.after < report.keys.before
