"""Bodies posed on frames and keyed: goals are reached, pins hold what each frame has, and the keys play it."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Quaternion, Vector

from tests import rigs
from tests.operators.states import snapshot
from tests.posing.test_drag import FEET, HEIGHT, angle, head, human, turn
from tests.rigs_generated import rigify

if TYPE_CHECKING:
    from tests.conftest import Addon

__all__ = ["human", "rigify"]

Pose = Callable[[dict[str, Any]], Any]


@pytest.fixture
def pose(addon: Addon, human: bpy.types.Object, tmp_path: Path) -> Pose:
    """Return a function that poses the human as a script says."""

    def run(content: dict[str, Any], **options: Any) -> Any:
        path = tmp_path / "goals.json"
        path.write_text(json.dumps(content))
        script = addon.module("posing.script").read(path)
        return addon.module("posing.frames").pose_frames(bpy.context, human, script, **options)

    return run


def to_the(place: Vector, frame: int, **more: Any) -> dict[str, Any]:
    return {"frame": frame, "goals": [{"bone": "hand.L", "location": place[:], **more}]}


def keyed(addon: Addon, ob: bpy.types.Object) -> dict[tuple[str, int], Any]:
    """Return the F-curves by data path."""
    owner = addon.module("compat").curve_owner(ob)
    return {} if owner is None else {(curve.data_path, curve.array_index): curve for curve in owner.fcurves}


def test_the_hand_circles_and_the_feet_stay(addon: Addon, human: bpy.types.Object, pose: Pose) -> None:
    scene = bpy.context.scene
    scene.frame_set(7)
    start, feet = head(human, "hand.L"), [head(human, foot) for foot in FEET]
    ways = [0.3 * Vector((np.cos(a) - 1.0, -np.sin(a), 0.3 * np.sin(2.0 * a))) for a in np.linspace(0.0, 6.0, 12)]
    report = pose({"frames": [to_the(start + way, 10 + i) for i, way in enumerate(ways)]})
    assert scene.frame_current == 7
    assert report.missed == []
    assert report.position < 1e-5
    assert "Posed 12 frames into" in report.message
    assert "All goals were reached, and all pins hold. Playback matches the poses" in report.message
    for i, way in enumerate(ways):
        scene.frame_set(10 + i)
        assert (head(human, "hand.L") - start - way).length < 1e-4 * HEIGHT
        for foot, place in zip(FEET, feet, strict=True):
            assert (head(human, foot) - place).length < 1e-4 * HEIGHT
    frames = {tuple(point.co[0] for point in curve.keyframe_points) for curve in keyed(addon, human).values()}
    assert frames == {tuple(float(10 + i) for i in range(12))}
    bones = {path.split('"')[1] for path, _index in keyed(addon, human)}
    assert {"forearm.L", "thigh.R", "spine"} <= bones
    assert not {"f_index.01.L", "forearm.R"} & bones, "what does not take part is not keyed"
    located = {path.split('"')[1] for path, _index in keyed(addon, human) if path.endswith("location")}
    assert located == {"spine"}


def test_a_bone_turns_as_asked_in_the_named_space(human: bpy.types.Object, pose: Pose) -> None:
    human.matrix_world = Matrix.LocRotScale((3.0, -2.0, 0.5), Quaternion((0.8, 0.2, -0.1, 0.5)).normalized(), None)
    bpy.context.view_layer.update()
    place = head(human, "hand.L") + Vector((-0.1, 0.1, 0.1))
    wanted = Quaternion((0.7, -0.3, 0.5, 0.2)).normalized()
    pose({"frames": [to_the(place, 1, rotation=wanted[:])]})
    bpy.context.scene.frame_set(1)
    assert (head(human, "hand.L") - place).length < 1e-4
    assert angle(turn(human, "hand.L"), wanted) < 0.1
    seen = human.matrix_world.inverted()
    content = to_the(seen @ place, 2, rotation=(seen.to_quaternion() @ wanted)[:])
    pose({"space": "ARMATURE", "frames": [content]})
    bpy.context.scene.frame_set(2)
    assert (head(human, "hand.L") - place).length < 1e-4
    assert angle(turn(human, "hand.L"), wanted) < 0.1


def test_pins_hold_the_animation_of_each_frame(human: bpy.types.Object, pose: Pose) -> None:
    """The body walks in place: its left foot is raised, and stays so."""
    scene, thigh = bpy.context.scene, human.pose.bones["thigh.L"]
    for frame, lifted in ((1, 0.0), (11, 0.6)):
        thigh.rotation_quaternion = Quaternion((1.0, 0.0, 0.0), lifted)
        thigh.keyframe_insert("rotation_quaternion", frame=frame)
    feet, hands = {}, {}
    for frame in (1, 6, 11):
        scene.frame_set(frame)
        feet[frame] = [head(human, foot) for foot in FEET]
        hands[frame] = head(human, "hand.L") + Vector((-0.2, -0.3, -0.2))
    assert (feet[1][0] - feet[11][0]).length > 0.1
    report = pose({"frames": [to_the(place, frame) for frame, place in hands.items()]})
    assert report.missed == []
    for frame, places in feet.items():
        scene.frame_set(frame)
        assert (head(human, "hand.L") - hands[frame]).length < 1e-4 * HEIGHT
        for foot, place in zip(FEET, places, strict=True):
            assert (head(human, foot) - place).length < 1e-4 * HEIGHT


def test_the_scripts_pins_hold_instead_of_the_feet(human: bpy.types.Object, pose: Pose) -> None:
    scene = bpy.context.scene
    hand, foot, start = head(human, "hand.R"), head(human, "foot.L"), head(human, "hand.L")
    pins = [{"bone": "hand.R", "rotation": False}]
    pose({"pins": pins, "frames": [to_the(start + Vector((0.5, -0.3, 0.3)), 3)]})
    scene.frame_set(3)
    assert (head(human, "hand.R") - hand).length < 1e-4 * HEIGHT
    assert (head(human, "foot.L") - foot).length > 0.01


def test_two_goals_at_once_are_reached(human: bpy.types.Object, pose: Pose) -> None:
    places = {bone: head(human, bone) + Vector((0.0, -0.25, 0.1)) for bone in ("hand.L", "hand.R")}
    goals = [{"bone": bone, "location": place[:]} for bone, place in places.items()]
    pose({"frames": [{"frame": 1, "goals": goals}]})
    bpy.context.scene.frame_set(1)
    for bone, place in places.items():
        assert (head(human, bone) - place).length < 1e-4 * HEIGHT


def test_a_named_root_moves_and_no_bone_above_it(addon: Addon, human: bpy.types.Object, pose: Pose) -> None:
    start, shoulder = head(human, "hand.L"), head(human, "shoulder.L")
    place = start + Vector((1.0, 0.0, 0.0))
    assert pose({"root": "shoulder.L", "frames": [to_the(place, 1)]}).missed == []
    bpy.context.scene.frame_set(1)
    assert (head(human, "hand.L") - place).length < 1e-4 * HEIGHT
    assert (head(human, "shoulder.L") - shoulder).length > 0.1
    bones = {path.split('"')[1] for path, _index in keyed(addon, human)}
    assert bones <= {"shoulder.L", "upper_arm.L", "forearm.L"}


def test_without_a_root_the_hips_stay(human: bpy.types.Object, pose: Pose) -> None:
    hips = head(human, "spine")
    place = head(human, "hand.L") + Vector((-0.1, -0.2, 0.1))
    assert pose({"root": None, "pins": [], "frames": [to_the(place, 1)]}).missed == []
    bpy.context.scene.frame_set(1)
    assert (head(human, "hand.L") - place).length < 1e-4 * HEIGHT
    assert (head(human, "spine") - hips).length < 1e-6


@pytest.mark.parametrize("mode", ["QUATERNION", "XYZ", "AXIS_ANGLE"])
def test_rotations_do_not_jump_between_frames(addon: Addon, human: bpy.types.Object, pose: Pose, mode: str) -> None:
    """The hips make two full turns; subframes, too, lie between the poses of their frames."""
    human.pose.bones["spine"].rotation_mode = mode
    bpy.context.view_layer.update()
    place, rest = head(human, "spine"), turn(human, "spine")
    turns = [Quaternion((0.3, 1.0, 0.2), a) @ rest for a in np.linspace(0.0, 4.0 * np.pi, 25)]
    goal = {"bone": "spine", "location": place[:]}
    frames = [{"frame": 1 + i, "goals": [{**goal, "rotation": q[:]}]} for i, q in enumerate(turns)]
    report = pose({"pins": [], "frames": frames})
    assert report.missed == [], report.each
    for i, (one, other) in enumerate(pairwise(turns)):
        bpy.context.scene.frame_set(1 + i, subframe=0.5)
        assert angle(turn(human, "spine"), one.slerp(other, 0.5)) < 5.0, f"after frame {1 + i}"
    field = addon.module("pose.channels").rotation_field(mode)
    curves = [curve for (path, _i), curve in keyed(addon, human).items() if path.endswith(f'["spine"].{field}')]
    assert len(curves) >= 3


def test_only_the_scripts_frames_are_keyed(addon: Addon, human: bpy.types.Object, pose: Pose) -> None:
    bone = human.pose.bones["forearm.L"]
    for frame in (1, 15, 30):
        bone.keyframe_insert("rotation_quaternion", frame=frame)
    start = head(human, "hand.L")
    pose({"frames": [to_the(start + Vector((0, -0.1 * i, 0)), frame) for i, frame in enumerate((10, 14, 20))]})
    curve = keyed(addon, human)['pose.bones["forearm.L"].rotation_quaternion', 1]
    assert [point.co[0] for point in curve.keyframe_points] == [1.0, 10.0, 14.0, 20.0, 30.0]


def test_a_new_action_leaves_the_old_one(addon: Addon, human: bpy.types.Object, pose: Any) -> None:
    human.pose.bones["forearm.L"].keyframe_insert("rotation_quaternion", frame=3)
    old = human.animation_data.action
    pose({"frames": [to_the(head(human, "hand.L") + Vector((0, -0.1, 0)), 1)]}, new_action=True)
    assert human.animation_data.action != old
    curves = old.fcurves if hasattr(old, "fcurves") else addon.module("compat").curve_owner(human).fcurves
    assert len(curves) >= 4


def test_missed_goals_are_counted_and_reported(human: bpy.types.Object, pose: Pose) -> None:
    start = head(human, "hand.L")
    report = pose({"frames": [to_the(start, 1), to_the(start + Vector((9.0, 0.0, 0.0)), 2)]})
    assert report.missed == [2]
    assert report.each[1].error > 1.0
    assert report.each[1].pin_error < 1e-4
    assert "Goals or pins were missed on 1 frame (2). Worst on frame 2: " in report.message


def test_limits_that_hold_a_bone_back_are_reported(human: bpy.types.Object, pose: Pose) -> None:
    forearm = human.pose.bones["forearm.L"]
    for axis in "xyz":
        setattr(forearm, f"use_ik_limit_{axis}", True)
        setattr(forearm, f"ik_min_{axis}", 0.0)
        setattr(forearm, f"ik_max_{axis}", 0.2)
    report = pose({"root": None, "pins": [], "frames": [to_the(head(human, "upper_arm.L"), 1)]})
    assert "forearm.L" in report.each[0].limited


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"frames": [{"frame": 1, "goals": [{"bone": "nose9", "location": [0, 0, 0]}]}]}, "has no bone 'nose9'"),
        ({"pins": [{"bone": "toe9"}], "frames": [{"frame": 1}]}, "has no bone 'toe9'"),
        ({"root": "tail9", "frames": [{"frame": 1}]}, "has no bone 'tail9'"),
        ({"root": "thigh.L", "frames": [to_the(Vector(), 1)]}, "'hand.L' is not below 'thigh.L'"),
        ({"root": "spine.003", "frames": [to_the(Vector(), 1)]}, "'spine.003' is connected to its parent"),
        ({"frames": [to_the(Vector(), 1), {"frame": 2, "goals": [{"bone": "forearm.R", "location": [0, 0, 0]}]}]}, ""),
    ],
)
def test_bad_scripts_change_nothing(
    addon: Addon, human: bpy.types.Object, pose: Pose, content: dict[str, Any], sentence: str
) -> None:
    """The last one fails on the second frame, after the first was posed: a constraint moves the bone."""
    human.pose.bones["forearm.R"].constraints.new("COPY_ROTATION").target = rigs.empty("Target")
    bpy.context.view_layer.update()
    before = snapshot()
    with pytest.raises(addon.module("posing.script").ScriptError, match=sentence or "driver moves 'forearm.R'"):
        pose(content)
    assert snapshot() == before
    assert not keyed(addon, human)


def test_unwritable_keys_are_reported(addon: Addon, human: bpy.types.Object, pose: Pose) -> None:
    human.pose.bones["spine"].driver_add("location", 0)
    before = snapshot()
    with pytest.raises(addon.module("pose.keyframes").KeysError, match="A driver sets"):
        pose({"frames": [to_the(head(human, "hand.L") + Vector((0, -0.8, 0)), 1)]})
    assert snapshot() == before


def test_the_pose_of_live_chains_is_used_and_their_targets_are_keyed(
    addon: Addon, human: bpy.types.Object, pose: Pose
) -> None:
    bpy.ops.ik_addon.character_setup(live=True, with_presets=False, regions={"ARM", "LEG"})
    scene = bpy.context.scene
    scene.frame_set(1)
    start, held = head(human, "hand.L"), {name: head(human, name) for name in (*FEET, "hand.R")}
    ways = {frame: Vector((-0.15, -0.1 * frame, 0.05)) for frame in (1, 2, 5)}
    report = pose({"frames": [to_the(start + way, frame) for frame, way in ways.items()]})
    assert report.missed == []
    assert report.remarks == []
    assert human.ik_addon.live
    for frame, way in ways.items():
        scene.frame_set(frame)
        assert (head(human, "hand.L") - start - way).length < 1e-4 * HEIGHT
        for name, place in held.items():
            assert (head(human, name) - place).length < 1e-4 * HEIGHT, name
    target = addon.module("data.settings").chain_of(human.pose.bones["forearm.L"]).target
    scene.frame_set(5)
    assert (target.matrix_world.translation - head(human, "hand.L")).length < 1e-4 * HEIGHT


def test_an_interrupt_reverts_changes_to_live_chains(human: bpy.types.Object, pose: Any) -> None:
    bpy.ops.ik_addon.character_setup(live=True, with_presets=False, regions={"ARM", "LEG"})
    bpy.context.view_layer.update()
    before = snapshot()
    place = head(human, "hand.L") + Vector((0, -0.4, 0))
    for last in (2, 3, 5):
        calls = iter(range(100))

        def go_on(last: int = last, calls: Any = calls) -> None:
            if next(calls) == last:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            pose({"frames": [to_the(place, 1), to_the(place, 4)]}, go_on=go_on)
        assert snapshot() == before


def test_a_goal_can_be_an_orientation_alone(human: bpy.types.Object, pose: Pose) -> None:
    wanted = (Quaternion((0.0, 1.0, 0.0), 0.3) @ turn(human, "spine.006")).normalized()
    place, foot = head(human, "foot.L"), (Quaternion((0.0, 0.0, 1.0), 0.4) @ turn(human, "foot.L")).normalized()
    goals = [{"bone": "spine.006", "rotation": wanted[:]}]
    report = pose({"frames": [{"frame": 1, "goals": [*goals, {"bone": "foot.L", "rotation": foot[:]}]}]})
    assert report.missed == []
    bpy.context.scene.frame_set(1)
    assert angle(turn(human, goals[0]["bone"]), wanted) < 0.1
    assert angle(turn(human, "foot.L"), foot) < 0.1, "a pinned foot turns as asked"
    assert (head(human, "foot.L") - place).length < 1e-4 * HEIGHT, "and keeps its place"


def test_an_interrupt_during_the_comparison_removes_the_keys(addon: Addon, human: bpy.types.Object, pose: Any) -> None:
    calls = iter(range(100))

    def go_on() -> None:
        if next(calls) == 3:
            raise KeyboardInterrupt

    start = head(human, "hand.L")
    with pytest.raises(KeyboardInterrupt):
        pose({"frames": [to_the(start + Vector((0, -0.1, 0)), frame) for frame in (1, 2)]}, go_on=go_on)
    assert not keyed(addon, human)
