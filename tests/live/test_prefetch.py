"""Playback solves frames in advance; this changes nothing but the time that frames take."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.live.characters import (
    CHARACTERS,
    LAST,
    Build,
    all_keyed,
    below_a_chain,
    body_keyed,
    character,
    in_limits,
    place,
    rig,
    with_attached_goals,
    with_controls,
    with_limits,
)
from tests.rigs import apart, poses_at


@pytest.fixture(autouse=True)
def _however_long_it_takes(addon: Addon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addon.module("live.prefetch"), "BUDGET", 60.0)


def ahead(addon: Addon, ob: bpy.types.Object) -> bool:
    """Whether the next frame is prefetched."""
    return addon.module("live.registry").has_prefetched(ob, bpy.context.scene.frame_current + 1)


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

    def on(frame: int) -> rigs.Poses:
        bpy.context.scene.frame_set(frame)
        place = rigs.evaluated(skin).data.vertices[0].co
        return {frame: np.array([place, rigs.position(child), rigs.evaluated(child).matrix_world.to_euler()])}

    single = {frame: on(frame) for frame in range(40, 0, -3)}
    assert np.abs(single[40][40] - single[1][1]).max() > 0.01
    for frame in range(1, 41):
        assert not apart(on(frame), single.get(frame, on(frame)))
    assert ahead(addon, ob)


def test_a_target_that_was_moved_after_prefetching_is_reached(addon: Addon) -> None:
    ob = rig()
    ob.ik_addon.live = True
    target = bpy.data.objects["target"]
    poses_at(ob, range(1, 10))
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


Edit = Callable[[bpy.types.Object], object]


def bone(name: str, field: str, value: object) -> Edit:
    """Return an edit that sets a property of a pose bone."""
    return lambda ob: setattr(ob.pose.bones[name], field, value)


def move_armature(ob: bpy.types.Object) -> None:
    ob.location, ob.rotation_euler.z = (0.1, -0.2, 0.1), 0.4


def limit(ob: bpy.types.Object) -> None:
    ob.pose.bones["b4"].ik_addon.use_limits = True
    ob.pose.bones["b2"].use_ik_limit_x = True
    ob.pose.bones["b2"].ik_max_x = 0.1


def key_rotation(name: str) -> Edit:
    turns: dict[int, object] = {1: (1.0, 0.0, 0.0, 0.0), LAST: (0.9, 0.4, 0.0, 0.2)}
    return lambda ob: rigs.key(ob.pose.bones[name], "rotation_quaternion", turns)


FK_EDITS: dict[str, Edit] = {
    "a bone is turned": bone("b1", "rotation_quaternion", (0.9, 0.4, 0.0, 0.1)),
    "the root is moved": bone("b0", "location", (0.1, 0.0, 0.2)),
    "a bone is scaled": bone("b2", "scale", (1.0, 1.3, 1.0)),
}
CHAIN_EDITS: dict[str, Edit] = {
    **FK_EDITS,
    "the armature is moved": move_armature,
    "the chain is softened": lambda ob: setattr(ob.pose.bones["b4"].ik_addon, "softness", 0.3),
    "a bone is limited": limit,
    "a bone is keyed": key_rotation("b0"),
    "a rotation mode is changed": bone("b3", "rotation_mode", "ZXY"),
}


def play_and_edit(addon: Addon, kind: Build, edit: Edit, update: bool) -> bpy.types.Object:
    """Play a rig in a new file, with the next frames solved in advance, and edit it; return it."""
    rigs.new_file()
    ob = kind()
    ob.ik_addon.live = True
    poses_at(ob, range(1, 12))
    assert ahead(addon, ob)
    edit(ob)
    if update:
        bpy.context.view_layer.update()
    return ob


def assert_played_as_opened(addon: Addon, ob: bpy.types.Object, frames: list[int], what: str = "") -> None:
    """Assert that frames play as in a session that begins with the file as it is now."""
    after = poses_at(ob, frames)
    addon.module("live.registry").clear()
    assert not apart(poses_at(ob, sorted(frames, key=lambda frame: frame * 7 % 11)), after), what


@pytest.mark.parametrize("update", [False, True])
def test_an_edit_during_playback_takes_effect_on_the_next_frame(addon: Addon, update: bool) -> None:
    for name, edit in CHAIN_EDITS.items():
        ob = play_and_edit(addon, rig, edit, update)
        assert_played_as_opened(addon, ob, list(range(12, 25)), name)
    for name, edit in FK_EDITS.items():
        ob = play_and_edit(addon, rig, edit, update)
        poses_at(ob, range(12, 20))
        ob.ik_addon.live = False
        fk = rigs.channels(ob)
        rigs.new_file()
        ob = rig()
        assert not np.array_equal(rigs.channels(ob), fk)
        edit(ob)
        assert np.array_equal(rigs.channels(ob), fk), f"{name}: it becomes the FK pose"


def test_a_channel_written_on_another_frame_does_not_leak_into_prefetched_frames(addon: Addon) -> None:
    """Only on odd frames, which are not prefetched here, is the root pushed."""
    ob = rig(2, out_of_reach="PUSH_ROOT", push_limit=0.2)
    target = bpy.data.objects["target"]
    target.animation_data_clear()
    rigs.key(target, "location", {frame: (0.1 * (frame % 7), 0.3, 1.5 if frame % 2 else 0.6) for frame in range(1, 90)})
    ob.ik_addon.live = True
    poses_at(ob, (2, 4, 6, 8, 10))
    assert addon.module("live.registry").has_prefetched(ob, 12)
    assert_played_as_opened(addon, ob, [11, 12])


# ---- animated armatures


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
    addon: Addon, kind: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For both Blender tags the scene, as it also does when relations between objects change."""
    ob = kind()
    scene: Any = bpy.context.scene
    rigs.key(scene, "gravity", {1: (0.0, 0.0, -9.0), LAST: (0.0, 0.0, -1.0)})
    for _ in range(2):
        poses_at(ob, range(1, LAST + 1))
    counted = solves(addon, monkeypatch)
    for frame in range(1, LAST + 1):
        ob.select_set(frame % 2 == 0)
        scene.frame_set(frame)
    assert counted == []


@pytest.mark.parametrize("kind", list(CHARACTERS.values())[::2], ids=list(CHARACTERS)[::2])
def test_frames_of_a_character_are_solved_once(addon: Addon, kind: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    ob = kind()
    counted = solves(addon, monkeypatch)
    poses_at(ob, range(1, LAST + 1))
    # The number of frames per solve depends on how long they take.
    assert 1 < len(counted) < LAST // 3
    assert sum(counted) < 2 * LAST
    poses_at(ob, range(1, LAST + 1))
    counted.clear()
    poses_at(ob, range(1, LAST + 1))
    assert counted == []
    # Moving keys solves frames again, and every frame is then right.
    owner = addon.module("compat").curve_owner(ob) or addon.module("compat").curve_owner(bpy.data.objects["target.L"])
    for curve in owner.fcurves:
        for point in curve.keyframe_points:
            point.co[1] += 0.03
        curve.update()
    assert_played_as_opened(addon, ob, list(range(1, LAST + 1)))
    assert counted != []


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
    played: rigs.Poses = {}
    for frame in range(1, LAST):
        solved.clear()
        played |= poses_at(ob, [frame])
        took.append(len(solved))
    # A frame that nothing is known of is solved by itself, and the first of those in advance are solved at once.
    assert took[4:].count(1) >= 4
    assert set(took[4:]) == {0, 1}
    addon.module("live.registry").clear()
    assert not apart(poses_at(ob, range(LAST - 1, 0, -1)), played)
    # What is under way is finished, or dropped, when its frames are no longer as they were.
    for half in (16, 17, 18, 19):
        poses_at(ob, range(1, half))
        for curve in curves_of(bpy.data.objects["target"]):
            curve.keyframe_points[4].co[1] += 0.05
            curve.update()
        assert_played_as_opened(addon, ob, list(range(half, 40)))


@pytest.mark.parametrize("kind", [all_keyed, with_controls])
def test_jumping_to_a_frame_also_solves_the_frames_around_it(
    addon: Addon, kind: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    ob = kind()
    random = np.random.default_rng(3).permutation(np.arange(1, LAST + 1)).tolist()
    poses_at(ob, random[:2])  # live, with one jump behind it
    counted = solves(addon, monkeypatch)
    scrubbed = poses_at(ob, random)
    assert len(counted) < LAST // 3
    assert sum(counted) < 3 * LAST
    addon.module("live.registry").clear()
    assert not apart(poses_at(ob, range(1, LAST + 1)), scrubbed)


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


def constrain_body(ob: bpy.types.Object) -> None:
    constraint = ob.pose.bones["body.chest"].constraints.new("COPY_ROTATION")
    constraint.target, constraint.influence = rigs.empty("aside"), 0.5


def drive(ob: bpy.types.Object) -> bpy.types.FCurve:
    curve: Any = ob.pose.bones["body.chest"].driver_add("rotation_quaternion", 1)
    curve.driver.expression = "0.01 * frame"
    return curve


def curve_owner(ob: bpy.types.Object) -> Any:
    action = ob.animation_data.action
    if bpy.app.version < (4, 4, 0):
        return action
    return action.layers[0].strips[0].channelbag(ob.animation_data.action_slot)


def curves_of(ob: bpy.types.Object) -> list[Any]:
    return list(curve_owner(ob).fcurves)


EDITS: dict[str, Edit] = {
    "keys are moved": edit_key,
    "F-curves are muted": mute_curves,
    "F-curves are removed": remove_curves,
    "the action is unassigned": lambda ob: setattr(ob.animation_data, "action", None),
    "the action is pushed down": rigs.into_strip,
    "the action is pushed down and muted": lambda ob: setattr(rigs.into_strip(ob), "mute", True),
    "a bone is driven": drive,
    "a muted driver is added": lambda ob: setattr(drive(ob), "mute", True),
    "the body is constrained": constrain_body,
    "a limb is posed": bone("limb.upper.L", "rotation_quaternion", (0.9, 0.4, 0.0, 0.1)),
    "the body is posed": bone("body.chest", "rotation_quaternion", (0.9, 0.4, 0.0, 0.1)),
    "a limb is keyed": key_rotation("limb.upper.L"),
    "a pole is cleared": lambda ob: setattr(ob.pose.bones["limb.lower.L"].ik_addon, "pole", None),
    "the armature is moved": move_armature,
}


@pytest.mark.parametrize(("kind", "update"), [(all_keyed, False), (body_keyed, False), (with_controls, True)])
def test_an_edit_of_a_character_during_playback_takes_effect_on_the_next_frame(
    addon: Addon, kind: Build, update: bool
) -> None:
    for name, edit in EDITS.items():
        ob = play_and_edit(addon, kind, edit, update)
        assert_played_as_opened(addon, ob, [*range(12, 20), 5, 30, 3], name)


# ---- goals moved while the frame stays the same


MOVED = ("target.L", "target.L", "pole.R", "target.R", "target.L", "pole.L")
STILL = (character, below_a_chain, all_keyed, body_keyed, with_attached_goals, in_limits)


@pytest.mark.parametrize(("kind", "played"), list(zip(STILL, (False, True) * 3, strict=True)))
def test_a_moved_goal_poses_as_a_frame_change_does_and_solves_only_its_own_chain(
    addon: Addon, kind: Build, played: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ob = kind()
    for goal in {*MOVED}:
        bpy.data.objects[goal].animation_data_clear()
    poses_at(ob, range(12, 20) if played else [19])
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
            after.append({19: rigs.pose(ob)})
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
            assert not apart({19: rigs.pose(ob)}, after[-1])
    assert all(apart(one, other) for one, other in itertools.combinations(after, 2))
    for (goal, place), pose in zip(reversed(before), reversed(after), strict=True):
        addon.module("live.registry").clear()
        poses_at(ob, [5])
        assert not apart(poses_at(ob, [19]), pose)
        bpy.data.objects[goal].location = place


@pytest.mark.parametrize(
    ("together", "alone", "evaluation", "count"),
    [
        (0.0, 1e-4, 0.0, 64),  # of 0.1 ms each, 64 frames fit into 10 ms and 128 do not
        (0.0, 1e-4, 0.01, 128),  # or into two and a half times what Blender takes for a frame
        (0.0, 1e-1, 0.0, 4),
        (0.1, 1e-3, 0.004, 32),  # the fixed cost is shared by as many frames as hardly add to it
    ],
)
def test_portions_grow_as_long_as_that_pays_and_shrink_when_frames_take_long(
    addon: Addon, monkeypatch: pytest.MonkeyPatch, together: float, alone: float, evaluation: float, count: int
) -> None:
    prefetch = addon.module("live.prefetch")
    monkeypatch.setattr(prefetch, "BUDGET", 0.01)
    portion, counts = prefetch.Portion(), list[int]()
    for number in range(60):
        slow = 50.0 if number % 7 == 5 else 1.0  # other programs delay some portions
        portion.adapt(portion.count, slow * (together + alone * portion.count), evaluation)
        portion.adapt(1, 1e-9, evaluation)  # the remainder of a portion says nothing about a whole one
        counts.append(portion.count)
    assert all(after <= 2 * before for before, after in itertools.pairwise(counts))
    assert np.median(counts[-15:]) == count
    for _ in range(80):
        portion.adapt(portion.count, 1.0 * portion.count, evaluation)
        counts.append(portion.count)
    assert np.median(counts[-15:]) == prefetch.LEAST
