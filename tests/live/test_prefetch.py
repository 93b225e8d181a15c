"""Playback solves frames in advance; this changes nothing but the time that frames take."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon

LAST = 60
HELD = (50, LAST)
"""Frames on which nothing moves."""


@pytest.fixture(autouse=True)
def _however_long_it_takes(addon: Addon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addon.module("live.prefetch"), "BUDGET", 60.0)


def rig(bones: int = 5, **settings: object) -> bpy.types.Object:
    """Return an armature with a chain whose target circles, at times out of reach."""
    ob = rigs.armature()
    rigs.add_bones(ob, rigs.bent(bones, 1.0 / bones, 0.3), [f"b{i}" for i in range(bones)])
    target = rigs.empty("target")
    rigs.key(target, "location", {f: place(f) for f in range(1, HELD[0] + 1, 7)})
    rigs.chain(ob, f"b{bones - 1}", target, bones, **settings)
    bpy.context.view_layer.update()
    return ob


def place(frame: int) -> tuple[float, float, float]:
    return 0.7 * math.sin(0.2 * frame), 0.5 * math.cos(0.17 * frame), 0.4 + 0.3 * math.sin(0.1 * frame)


def free() -> bpy.types.Object:
    return rig()


def with_limits() -> bpy.types.Object:
    ob = rig(use_limits=True)
    for bone in ob.pose.bones:
        bone.use_ik_limit_x = bone.use_ik_limit_z = True
        bone.ik_min_x, bone.ik_max_x, bone.ik_min_z, bone.ik_max_z = -0.3, 0.9, -0.5, 0.4
    return ob


def with_pole() -> bpy.types.Object:
    pole = rigs.empty("pole")
    rigs.key(pole, "location", {1: (0.0, 2.0, 0.5), 40: (2.0, 1.0, 0.5)})
    return rig(3, pole=pole)


def stretched() -> bpy.types.Object:
    ob = rig(3, out_of_reach="STRETCH")
    for bone in ob.pose.bones:
        bone.ik_stretch = 0.5
    return ob


def pushed() -> bpy.types.Object:
    return rig(2, out_of_reach="PUSH_ROOT", push_limit=0.2)


def in_euler_angles() -> bpy.types.Object:
    ob = rig(4, softness=0.2)
    ob.pose.bones["b1"].rotation_mode = "XYZ"
    ob.pose.bones["b2"].rotation_mode = "AXIS_ANGLE"
    return ob


def planar() -> bpy.types.Object:
    return rig(6, planar=True)


def half_on() -> bpy.types.Object:
    return rig(4, influence=0.5)


def tree() -> bpy.types.Object:
    ob = rig(4)
    rigs.add_bones(ob, [(0.3, 0.0, 0.5), (0.5, 0.0, 0.8), (0.7, 0.1, 1.0)], ["c0", "c1"])
    bpy.ops.object.mode_set(mode="EDIT")
    ob.data.edit_bones["c0"].parent = ob.data.edit_bones["b1"]
    bpy.ops.object.mode_set(mode="OBJECT")
    other = rigs.empty("other")
    rigs.key(other, "location", {1: (0.6, 0.2, 0.9), 30: (0.4, -0.3, 0.8)})
    rigs.chain(ob, "c1", other, 4)
    return ob


def parented() -> bpy.types.Object:
    """Return an armature whose world matrix is a product, and has other bits in double than in single precision."""
    ob = rig()
    above = [
        rigs.empty(name, location) for name, location in (("above", (0.31, -0.17, 0.73)), ("top", (1.3, 0.6, 0.2)))
    ]
    above[0].rotation_euler, above[0].scale, above[0].parent = (0.3, 1.1, -0.7), (1.3, 0.7, 1.1), above[1]
    above[1].rotation_euler, ob.rotation_euler, ob.parent = (-0.8, 0.37, 1.9), (0.1, 0.57, 0.29), above[0]
    bpy.context.view_layer.update()
    return ob


KINDS = (free, with_limits, with_pole, stretched, pushed, in_euler_angles, planar, half_on, tree, parented)


def poses(ob: bpy.types.Object, frames: Iterable[int]) -> dict[int, bytes]:
    found = {}
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        found[frame] = rigs.pose(ob).tobytes() + rigs.channels(ob).tobytes()
    return found


def ahead(addon: Addon, ob: bpy.types.Object) -> bool:
    """Whether the next frame is prefetched."""
    return addon.module("live.registry").has_prefetched(ob, bpy.context.scene.frame_current + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_played_frames_match_single_frames_exactly(addon: Addon, kind: Callable[[], bpy.types.Object]) -> None:
    ob = kind()
    ob.ik_addon.live = True
    order = np.random.default_rng(1).permutation(np.arange(1, LAST + 1)).tolist()
    single = poses(ob, order)
    played = poses(ob, range(1, LAST))
    assert ahead(addon, ob)
    assert [frame for frame in played if played[frame] != single[frame]] == []
    backwards = poses(ob, range(LAST, 0, -1))
    assert backwards == single
    # Also after a fresh start, as in a render.
    addon.module("live.registry").clear()
    assert poses(ob, (31, 30, 7)) == {frame: single[frame] for frame in (31, 30, 7)}


@pytest.mark.parametrize("kind", KINDS)
def test_played_frames_report_the_same_as_single_ones(addon: Addon, kind: Callable[[], bpy.types.Object]) -> None:
    ob = kind()
    ob.ik_addon.live = True
    reports = addon.module("live.reports")
    tips = [bone.name for bone in ob.pose.bones if bone.ik_addon.is_chain]

    def told(frames: Iterable[int]) -> dict[int, list[object]]:
        found = {}
        for frame in frames:
            bpy.context.scene.frame_set(frame)
            found[frame] = [reports.get(ob, tip) for tip in tips]
        return found

    played = told(range(1, 30))
    assert ahead(addon, ob)
    if kind is free:
        assert {report.reached for all_of in played.values() for report in all_of} == {True, False}
    assert told(range(29, 0, -5)) == {frame: played[frame] for frame in range(29, 0, -5)}


def test_objects_attached_to_bones_follow_on_the_same_frame(addon: Addon) -> None:
    ob = rig()
    mesh = bpy.data.meshes.new("skin")
    mesh.from_pydata([(0.0, 0.0, 1.0)], [], [])
    skin, child = bpy.data.objects.new("skin", mesh), rigs.empty("child")
    bpy.context.scene.collection.objects.link(skin)
    skin.modifiers.new("Armature", "ARMATURE").object = ob
    skin.vertex_groups.new(name="b4").add([0], 1.0, "REPLACE")
    child.parent, child.parent_type, child.parent_bone = ob, "BONE", "b4"
    ob.ik_addon.live = True

    def seen() -> tuple[bytes, bytes]:
        depsgraph = bpy.context.evaluated_depsgraph_get()
        place = skin.evaluated_get(depsgraph).data.vertices[0].co
        return np.array(place).tobytes(), np.array(child.evaluated_get(depsgraph).matrix_world).tobytes()

    single = {}
    for frame in range(40, 0, -3):
        bpy.context.scene.frame_set(frame)
        single[frame] = seen()
    assert len(set(single.values())) == len(single)
    for frame in range(1, 41):
        bpy.context.scene.frame_set(frame)
        assert single.get(frame, seen()) == seen()
    assert ahead(addon, ob)


def test_a_target_that_was_moved_after_prefetching_is_reached(addon: Addon) -> None:
    ob = rig()
    ob.ik_addon.live = True
    target = bpy.data.objects["target"]
    poses(ob, range(1, 10))
    assert ahead(addon, ob)
    rigs.key(target, "location", {10: (0.1, 0.5, 0.3), 11: (0.5, 0.1, 0.3), 12: (0.4, 0.1, 0.5)})
    for frame in (10, 11, 12):
        bpy.context.scene.frame_set(frame)
        assert np.linalg.norm(rigs.tail(ob, "b4") - rigs.position(target)) < 1e-5
    target.animation_data_clear()
    for frame in range(13, 20):
        target.location = place(3 * frame)
        target.location *= 0.9 / target.location.length
        bpy.context.scene.frame_set(frame)
        assert np.linalg.norm(rigs.tail(ob, "b4") - rigs.position(target)) < 1e-5


def edit_chain(ob: bpy.types.Object) -> None:
    ob.pose.bones["b1"].rotation_quaternion = (0.9, 0.4, 0.0, 0.1)


def shift_root(ob: bpy.types.Object) -> None:
    ob.pose.bones["b0"].location = (0.1, 0.0, 0.2)


def scale(ob: bpy.types.Object) -> None:
    ob.pose.bones["b2"].scale = (1.0, 1.3, 1.0)


def move_armature(ob: bpy.types.Object) -> None:
    ob.location, ob.rotation_euler.z = (0.1, -0.2, 0.1), 0.4


def soften(ob: bpy.types.Object) -> None:
    ob.pose.bones["b4"].ik_addon.softness = 0.3


def limit(ob: bpy.types.Object) -> None:
    ob.pose.bones["b4"].ik_addon.use_limits = True
    ob.pose.bones["b2"].use_ik_limit_x = True
    ob.pose.bones["b2"].ik_max_x = 0.1


def key_chain(ob: bpy.types.Object) -> None:
    bone = ob.pose.bones["b0"]
    for frame, x in ((1, 0.0), (40, 0.4)):
        bone.rotation_quaternion = (1.0 - x / 4, x, 0.0, 0.0)
        bone.keyframe_insert("rotation_quaternion", frame=frame)


def hide_in_euler(ob: bpy.types.Object) -> None:
    ob.pose.bones["b3"].rotation_mode = "ZXY"


@pytest.mark.parametrize(
    "change", [edit_chain, shift_root, scale, move_armature, soften, limit, key_chain, hide_in_euler]
)
@pytest.mark.parametrize("update", [False, True])
def test_a_change_during_playback_takes_effect_on_the_next_frame(
    addon: Addon, change: Callable[[bpy.types.Object], None], update: bool
) -> None:
    ob = rig()
    ob.ik_addon.live = True
    poses(ob, range(1, 12))
    assert ahead(addon, ob)
    change(ob)
    if update:
        bpy.context.view_layer.update()
    after = poses(ob, range(12, 25))
    # The expected poses are those of a session that begins with the changed file.
    addon.module("live.registry").clear()
    expected = poses(ob, range(24, 11, -2))
    for frame, pose in expected.items():
        found, wanted = (np.frombuffer(bits, dtype=np.float32) for bits in (after[frame], pose))
        np.testing.assert_allclose(found, wanted, atol=4e-6)


def test_a_channel_written_on_another_frame_does_not_leak_into_prefetched_frames(addon: Addon) -> None:
    """Only on odd frames, which are not prefetched here, is the root pushed."""
    ob = pushed()
    target = bpy.data.objects["target"]
    target.animation_data_clear()
    rigs.key(target, "location", {frame: (0.1 * (frame % 7), 0.3, 1.5 if frame % 2 else 0.6) for frame in range(1, 90)})
    ob.ik_addon.live = True
    poses(ob, (2, 4, 6, 8, 10))
    assert addon.module("live.registry").has_prefetched(ob, 12)
    pushed_at, played = poses(ob, (11,))[11], poses(ob, (12,))[12]
    addon.module("live.registry").clear()
    single = poses(ob, (11, 12))
    assert pushed_at == single[11]
    assert played == single[12]


def test_the_fk_pose_is_restored_exactly(addon: Addon) -> None:
    for kind in KINDS:
        ob = kind()
        fk = rigs.channels(ob).tobytes()
        ob.ik_addon.live = True
        poses(ob, range(1, 20))
        assert ahead(addon, ob)
        ob.ik_addon.live = False
        assert rigs.channels(ob).tobytes() == fk
        bpy.ops.wm.read_homefile(use_empty=True)


@pytest.mark.parametrize("change", [edit_chain, shift_root, scale])
@pytest.mark.parametrize("update", [False, True])
def test_an_edit_during_playback_becomes_the_fk_pose(
    addon: Addon, change: Callable[[bpy.types.Object], None], update: bool
) -> None:
    ob = rig()
    change(ob)
    expected = rigs.channels(ob).tobytes()
    bpy.ops.wm.read_homefile(use_empty=True)
    ob = rig()
    assert rigs.channels(ob).tobytes() != expected
    ob.ik_addon.live = True
    poses(ob, range(1, 12))
    assert ahead(addon, ob)
    change(ob)
    if update:
        bpy.context.view_layer.update()
    poses(ob, range(12, 20))
    ob.ik_addon.live = False
    assert rigs.channels(ob).tobytes() == expected


# ---- animated armatures


def character(*, keyed: tuple[str, ...] = (), controls: bool = False) -> bpy.types.Object:
    """Return a live body with two limbs of two bones, with poles; bones whose names begin as in `keyed` have keys."""
    ob = rigs.armature()
    rigs.add_bones(ob, [(0.0, 0.0, 0.9), (0.0, 0.0, 1.3), (0.0, 0.0, 1.7)], ["body.hips", "body.chest"])
    for side, x in (("L", 0.3), ("R", -0.3)):
        points = [(x, 0.0, 1.6), (1.5 * x, -0.05, 1.3), (1.7 * x, 0.0, 1.0)]
        rigs.add_bones(ob, points, [f"limb.upper.{side}", f"limb.lower.{side}"], parent="body.chest", connect=False)
        if controls:
            rigs.add_bones(ob, [(1.7 * x, 0.0, 1.0), (1.7 * x, 0.1, 1.0)], [f"control.target.{side}"])
            rigs.add_bones(ob, [(1.6 * x, 1.0, 1.3), (1.6 * x, 1.1, 1.3)], [f"control.pole.{side}"], parent="body.hips")
            goals = {"target_bone": f"control.target.{side}", "pole": ob, "pole_bone": f"control.pole.{side}"}
            rigs.chain(ob, f"limb.lower.{side}", ob, 2, **goals)
        else:
            target, pole = rigs.empty(f"target.{side}"), rigs.empty(f"pole.{side}", (1.6 * x, 1.0, 1.3))
            keys = {f: (1.7 * x + 0.2 * math.sin(0.3 * f), 0.2 * math.cos(f), 1.1) for f in range(1, LAST, 9)}
            rigs.key(target, "location", keys)
            rigs.key(pole, "location", {1: (1.6 * x, 1.0, 1.3), LAST: (1.6 * x, 0.8, 1.6)})
            rigs.chain(ob, f"limb.lower.{side}", target, 2, pole=pole)
    rng = np.random.default_rng(7)
    for bone in ob.pose.bones:
        bone.rotation_mode = "XYZ" if bone.name == "limb.lower.R" else "QUATERNION"
        if not bone.name.startswith((*keyed, "control")):
            continue
        for frame in (1, 20, 41, LAST):
            bone.location = rng.normal(scale=0.1, size=3)
            bone.rotation_quaternion = (1.0, *rng.normal(scale=0.2, size=3))
            bone.rotation_euler = rng.normal(scale=0.2, size=3)
            turn = "rotation_euler" if bone.rotation_mode == "XYZ" else "rotation_quaternion"
            for path in ("location", turn, "scale"):
                bone.keyframe_insert(path, frame=frame)
    bpy.context.view_layer.update()
    ob.ik_addon.live = True
    return ob


def all_keyed() -> bpy.types.Object:
    return character(keyed=("body", "limb"))


def body_keyed() -> bpy.types.Object:
    return character(keyed=("body",))


def one_limb_keyed() -> bpy.types.Object:
    return character(keyed=("body", "limb.upper.L", "limb.lower.L"))


def with_controls() -> bpy.types.Object:
    return character(keyed=("body", "limb"), controls=True)


def only_controls() -> bpy.types.Object:
    return character(controls=True)


def with_attached_goals() -> bpy.types.Object:
    """Return a character with poles on a bone and rotating targets; the left limb takes its target's rotation."""
    ob = character(keyed=("body", "limb"))
    for side in ("L", "R"):
        pole, target = bpy.data.objects[f"pole.{side}"], bpy.data.objects[f"target.{side}"]
        pole.parent, pole.parent_type, pole.parent_bone = ob, "BONE", "body.hips"
        target.rotation_mode = "ZXY"
        rigs.key(target, "rotation_euler", {1: (0.3, 0.1, 0.0), LAST: (-0.4, 0.6, 0.9)})
        ob.pose.bones[f"limb.lower.{side}"].ik_addon.use_rotation = side == "L"
    return ob


def with_keyed_influence() -> bpy.types.Object:
    ob = all_keyed()
    for frame, influence in ((1, 0.0), (30, 1.0)):
        ob.pose.bones["limb.lower.L"].ik_addon.influence = influence
        ob.keyframe_insert('pose.bones["limb.lower.L"].ik_addon.influence', frame=frame)
    return ob


def on_the_move() -> bpy.types.Object:
    ob = body_keyed()
    rigs.key(ob, "location", {1: (0.0, 0.0, 0.0), LAST: (0.1, 0.2, 0.0)})
    rigs.key(ob, "rotation_euler", {1: (0.0, 0.0, 0.0), LAST: (0.1, 0.0, 0.3)})
    return ob


def with_keys_of_another_rotation_mode() -> bpy.types.Object:
    """Return a character with keys on channels that its rotation modes do not use."""
    ob = all_keyed()
    for name in ("body.chest", "limb.upper.L", "limb.lower.R"):
        for frame, angle in ((1, 0.2), (LAST, 1.4)):
            ob.pose.bones[name].rotation_axis_angle = (angle, 1.0, 0.0, 0.0)
            ob.pose.bones[name].keyframe_insert("rotation_axis_angle", frame=frame)
    return ob


CHARACTERS = (
    all_keyed,
    with_keys_of_another_rotation_mode,
    body_keyed,
    one_limb_keyed,
    with_controls,
    only_controls,
    with_attached_goals,
    with_keyed_influence,
    on_the_move,
)


@pytest.mark.parametrize("kind", CHARACTERS)
def test_played_frames_of_a_character_match_random_frames_exactly(
    addon: Addon, kind: Callable[[], bpy.types.Object]
) -> None:
    ob = kind()
    registry = addon.module("live.registry")
    random = np.random.default_rng(2).permutation(np.arange(1, LAST + 1)).tolist()
    # As when the file is opened on that frame: nothing is prefetched or remembered.
    single: dict[int, bytes] = {}
    for frame in random[: LAST // 3]:
        registry.clear()
        single |= poses(ob, [frame])
    assert len(set(single.values())) == len(single)
    registry.clear()
    played = poses(ob, range(1, LAST - 5))
    assert ahead(addon, ob)
    assert [frame for frame in played if played[frame] != single.get(frame, played[frame])] == []
    everywhere = poses(ob, random)
    assert everywhere == everywhere | played | single
    assert poses(ob, range(LAST, 0, -1)) == everywhere
    again = poses(ob, [*range(1, LAST), *range(1, LAST)])
    assert everywhere == everywhere | again


@pytest.mark.parametrize("kind", CHARACTERS)
def test_the_fk_pose_of_a_character_is_restored_exactly(addon: Addon, kind: Callable[[], bpy.types.Object]) -> None:
    ob = kind()
    poses(ob, range(1, 20))
    ob.ik_addon.live = False
    fk = poses(ob, (25, 19))
    ob.ik_addon.live = True
    poses(ob, range(1, 20))
    assert ahead(addon, ob)
    ob.ik_addon.live = False
    bpy.context.view_layer.update()
    assert rigs.channels(ob).tobytes() == fk[19][-len(rigs.channels(ob).tobytes()) :]
    assert poses(ob, (25, 19)) == fk


def solves(addon: Addon, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which each later solve appends its number of frames."""
    counted: list[int] = []
    for room, name in (("playback", "posing"), ("rig", "pose")):
        module = addon.module(f"live.{room}")

        def pose(solve: Any, *given: Any, **named: object) -> object:
            counted.append(len(given[2].world))
            return solve(*given, **named)

        monkeypatch.setattr(module, name, partial(pose, getattr(module, name)))
    return counted


@pytest.mark.parametrize("kind", [with_controls, all_keyed, body_keyed])
def test_an_animated_scene_and_selection_leave_playback_alone(
    addon: Addon, kind: Callable[[], bpy.types.Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For both Blender tags the scene, as it also does when relations between objects change."""
    ob = kind()
    scene: Any = bpy.context.scene
    rigs.key(scene, "gravity", {1: (0.0, 0.0, -9.0), LAST: (0.0, 0.0, -1.0)})
    for _ in range(2):
        poses(ob, range(1, LAST + 1))
    counted = solves(addon, monkeypatch)
    for frame in range(1, LAST + 1):
        ob.select_set(frame % 2 == 0)
        scene.frame_set(frame)
    assert counted == []


@pytest.mark.parametrize("kind", CHARACTERS)
def test_frames_of_a_character_are_solved_once(
    addon: Addon, kind: Callable[[], bpy.types.Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    ob = kind()
    counted = solves(addon, monkeypatch)
    poses(ob, range(1, LAST + 1))
    # The number of frames per solve depends on how long they take.
    assert 1 < len(counted) < LAST // 3
    assert sum(counted) < 2 * LAST
    poses(ob, range(1, LAST + 1))
    counted.clear()
    poses(ob, range(1, LAST + 1))
    assert counted == []
    # Moving keys solves frames again, and every frame is then right.
    owner = addon.module("compat").curve_owner(ob) or addon.module("compat").curve_owner(bpy.data.objects["target.L"])
    for curve in owner.fcurves:
        for point in curve.keyframe_points:
            point.co[1] += 0.03
        curve.update()
    after = poses(ob, range(1, LAST + 1))
    assert counted != []
    addon.module("live.registry").clear()
    assert poses(ob, range(LAST, 0, -1)) == after


def test_chains_of_several_shapes_are_solved_in_advance_on_frames_of_their_own(
    addon: Addon, monkeypatch: pytest.MonkeyPatch
) -> None:
    ob = with_limits()
    rigs.add_bones(ob, rigs.bent(3, 0.3, 0.1), ["c0", "c1", "c2"])
    rigs.chain(ob, "c2", bpy.data.objects["target"], 3, use_limits=True)
    for bone in ob.pose.bones:  # with quaternions, chains in one FK pose would not be solved in waves
        bone.rotation_mode = "XYZ"
    for name in ("BUDGET", "OF_A_FRAME"):
        monkeypatch.setattr(addon.module("live.prefetch"), name, 0.0)
    waves = addon.module("rig.write.waves")
    solved: list[int] = []

    def solve_limbs(limbs: Any, *given: object, solve: Any = waves.solve_limbs, **named: object) -> object:
        solved.append(len(limbs.group))
        return solve(limbs, *given, **named)

    monkeypatch.setattr(waves, "solve_limbs", solve_limbs)
    ob.ik_addon.live = True
    took: list[int] = []
    played: dict[int, bytes] = {}
    for frame in range(1, LAST):
        solved.clear()
        played |= poses(ob, [frame])
        took.append(len(solved))
    # A frame that nothing is known of is solved by itself, and the first of those in advance are solved at once.
    assert took[4:].count(1) >= 4
    assert set(took[4:]) == {0, 1}
    addon.module("live.registry").clear()
    assert poses(ob, range(LAST - 1, 0, -1)) == played
    # What is under way is finished, or dropped, when its frames are no longer as they were.
    for half in (16, 17, 18, 19):
        poses(ob, range(1, half))
        for curve in curves_of(bpy.data.objects["target"]):
            curve.keyframe_points[4].co[1] += 0.05
            curve.update()
        after = poses(ob, range(half, 40))
        addon.module("live.registry").clear()
        assert poses(ob, range(39, half - 1, -1)) == {frame: after[frame] for frame in range(39, half - 1, -1)}


@pytest.mark.parametrize("kind", [all_keyed, with_controls])
def test_jumping_to_a_frame_also_solves_the_frames_around_it(
    addon: Addon, kind: Callable[[], bpy.types.Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    ob = kind()
    random = np.random.default_rng(3).permutation(np.arange(1, LAST + 1)).tolist()
    poses(ob, random[:2])  # live, with one jump behind it
    counted = solves(addon, monkeypatch)
    scrubbed = poses(ob, random)
    assert len(counted) < LAST // 3
    assert sum(counted) < 3 * LAST
    addon.module("live.registry").clear()
    assert poses(ob, range(1, LAST + 1)) == scrubbed


def edit_key(ob: bpy.types.Object) -> None:
    for curve in curves_of(ob):
        curve.keyframe_points[2].co[1] += 0.2
        curve.update()


def mute_curves(ob: bpy.types.Object) -> None:
    for curve in curves_of(ob)[::3]:
        curve.mute = True


def remove_curves(ob: bpy.types.Object) -> None:
    owner = curve_owner(ob)
    for curve in list(owner.fcurves)[::3]:
        owner.fcurves.remove(curve)


def take_action_away(ob: bpy.types.Object) -> None:
    ob.animation_data.action = None


def push_down(ob: bpy.types.Object) -> None:
    rigs.into_strip(ob)


def push_down_and_mute(ob: bpy.types.Object) -> None:
    rigs.into_strip(ob).mute = True


def drive(ob: bpy.types.Object) -> None:
    driver = ob.pose.bones["body.chest"].driver_add("rotation_quaternion", 1).driver
    driver.expression = "0.01 * frame"


def drive_muted(ob: bpy.types.Object) -> None:
    curve = ob.pose.bones["body.chest"].driver_add("rotation_quaternion", 1)
    curve.driver.expression, curve.mute = "0.01 * frame", True


def constrain_body(ob: bpy.types.Object) -> None:
    constraint = ob.pose.bones["body.chest"].constraints.new("COPY_ROTATION")
    constraint.target, constraint.influence = rigs.empty("aside"), 0.5


def pose_limb(ob: bpy.types.Object) -> None:
    ob.pose.bones["limb.upper.L"].rotation_quaternion = (0.9, 0.4, 0.0, 0.1)


def pose_body(ob: bpy.types.Object) -> None:
    ob.pose.bones["body.chest"].rotation_quaternion = (0.9, 0.4, 0.0, 0.1)


def key_limb(ob: bpy.types.Object) -> None:
    bone = ob.pose.bones["limb.upper.L"]
    for frame, x in ((1, 0.1), (LAST, 0.5)):
        bone.rotation_quaternion = (1.0, x, 0.0, 0.2)
        bone.keyframe_insert("rotation_quaternion", frame=frame)


def release_pole(ob: bpy.types.Object) -> None:
    ob.pose.bones["limb.lower.L"].ik_addon.pole = None


def curve_owner(ob: bpy.types.Object) -> Any:
    action = ob.animation_data.action
    if bpy.app.version < (4, 4, 0):
        return action
    return action.layers[0].strips[0].channelbag(ob.animation_data.action_slot)


def curves_of(ob: bpy.types.Object) -> list[Any]:
    return list(curve_owner(ob).fcurves)


EDITS = (
    edit_key,
    mute_curves,
    remove_curves,
    take_action_away,
    push_down,
    push_down_and_mute,
    drive,
    drive_muted,
    constrain_body,
    pose_limb,
    pose_body,
    key_limb,
    release_pole,
    move_armature,
)


@pytest.mark.parametrize(("kind", "update"), [(all_keyed, False), (body_keyed, False), (with_controls, True)])
@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_a_character_during_playback_takes_effect_on_the_next_frame(
    addon: Addon, edit: Callable[[bpy.types.Object], None], kind: Callable[[], bpy.types.Object], update: bool
) -> None:
    ob = kind()
    poses(ob, range(1, 25))
    assert ahead(addon, ob)
    edit(ob)
    if update:
        bpy.context.view_layer.update()
    after = poses(ob, [*range(25, 35), 12, 30, 3])
    addon.module("live.registry").clear()
    expected = poses(ob, sorted(after, key=lambda frame: frame * 7 % 11))
    assert [frame for frame in sorted(after) if after[frame] != expected[frame]] == []


# ---- goals moved while the frame stays the same


def nothing_keyed() -> bpy.types.Object:
    return character()


def below_a_chain() -> bpy.types.Object:
    """Return a character whose body is also a chain, which moves the roots of the limbs."""
    ob = character()
    rigs.chain(ob, "body.chest", rigs.empty("target.body", (0.1, 0.1, 1.6)), 2)
    return ob


def in_limits() -> bpy.types.Object:
    ob = character(keyed=("body", "limb"))
    for side in ("L", "R"):
        ob.pose.bones[f"limb.lower.{side}"].ik_addon.use_limits = True
        for name in (f"limb.upper.{side}", f"limb.lower.{side}"):
            bone = ob.pose.bones[name]
            bone.use_ik_limit_x = bone.use_ik_limit_z = True
            bone.ik_min_x, bone.ik_max_x, bone.ik_min_z, bone.ik_max_z = -0.6, 0.9, -0.5, 0.4
    return ob


MOVED = ("target.L", "target.L", "pole.R", "target.R", "target.L", "pole.L")
STILL = (nothing_keyed, below_a_chain, all_keyed, body_keyed, with_attached_goals, in_limits)


@pytest.mark.parametrize("kind", STILL)
@pytest.mark.parametrize("played", [False, True])
def test_a_moved_goal_poses_as_a_frame_change_does_and_solves_only_its_own_chain(
    addon: Addon, kind: Callable[[], bpy.types.Object], played: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ob = kind()
    for goal in {*MOVED}:
        bpy.data.objects[goal].animation_data_clear()
    poses(ob, range(12, 20) if played else [19])
    module = addon.module("rig.write.waves")
    solved: list[int] = []

    def counted(limbs: Any, *others: object, pose_limbs: Any = module.solve_limbs, **named: object) -> object:
        solved.append(len(limbs.group))
        return pose_limbs(limbs, *others, **named)

    before, after = [], []
    with monkeypatch.context() as patched:
        patched.setattr(module, "solve_limbs", counted)
        for goal in MOVED:
            before.append((goal, bpy.data.objects[goal].location.copy()))
            bpy.data.objects[goal].location.x += 0.05
            solved.clear()
            bpy.context.view_layer.update()
            after.append(rigs.pose(ob).tobytes() + rigs.channels(ob).tobytes())
            if len(after) > 2:
                assert solved == [1]
        if kind is below_a_chain:
            target = bpy.data.objects["target.body"]
            place = target.location.copy()
            target.location.x += 0.1
            solved.clear()
            bpy.context.view_layer.update()
            assert sum(solved) == 3
            target.location = place
            bpy.context.view_layer.update()
            assert rigs.pose(ob).tobytes() + rigs.channels(ob).tobytes() == after[-1]
    assert len(set(after)) == len(MOVED)
    for (goal, place), pose in zip(reversed(before), reversed(after), strict=True):
        addon.module("live.registry").clear()
        poses(ob, [5])
        assert poses(ob, [19])[19] == pose
        bpy.data.objects[goal].location = place


@pytest.mark.parametrize(
    ("together", "alone", "evaluation", "count"),
    [
        (0.0, 1e-4, 0.0, 64),  # of 0.1 ms each, 64 frames fit into 10 ms and 128 do not
        (0.0, 1e-4, 0.01, 128),  # or into two and a half times what Blender takes for a frame
        (0.0, 1e-3, 0.0, 8),
        (0.0, 1e-1, 0.0, 4),
        (0.1, 1e-3, 0.004, 32),  # the fixed cost is shared by as many frames as hardly add to it
        (0.1, 1e-3, 0.0, 128),  # and by more where the frames themselves take far less
        (0.1, 1e-5, 0.0, 256),
    ],
)
def test_portions_grow_as_long_as_that_pays(
    addon: Addon, monkeypatch: pytest.MonkeyPatch, together: float, alone: float, evaluation: float, count: int
) -> None:
    monkeypatch.setattr(addon.module("live.prefetch"), "BUDGET", 0.01)
    portion = addon.module("live.prefetch").Portion()
    counts = []
    for number in range(60):
        slow = 50.0 if number % 7 == 5 else 1.0  # other programs delay some portions
        portion.adapt(portion.count, slow * (together + alone * portion.count), evaluation)
        portion.adapt(1, 1e-9, evaluation)  # the remainder of a portion says nothing about a whole one
        counts.append(portion.count)
    assert all(after <= 2 * before for before, after in itertools.pairwise(counts))
    assert np.median(counts[-15:]) == count
    counts.clear()
    for _ in range(80):
        portion.adapt(portion.count, 1.0 * portion.count, evaluation)
        counts.append(portion.count)
    assert np.median(counts[-15:]) == addon.module("live.prefetch").LEAST


def test_portions_hardly_grow_if_each_frame_takes_long(addon: Addon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addon.module("live.prefetch"), "BUDGET", 0.01)
    portion = addon.module("live.prefetch").Portion()
    counts = []
    for _ in range(20):
        portion.adapt(portion.count, 1.0 * portion.count, 1e-3)
        counts.append(portion.count)
    assert max(counts) <= 2 * addon.module("live.prefetch").LEAST
    assert counts[-10:] == [addon.module("live.prefetch").LEAST] * 10
