"""A bake never destroys: when it fails, the animation is as before; what it does not bake stays unchanged."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.rigs import HAS_SLOTS as SLOTS

FRAMES = list(range(5, 15))
FAULTS = 8
"""Number of places in a bake where an error is raised."""


def values(thing: Any, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return every plain property of a Blender data-block or part of one, numbers unrounded."""
    found = {}
    for name, prop in thing.bl_rna.properties.items():
        if name in without or prop.type in {"POINTER", "COLLECTION"}:
            continue
        value = getattr(thing, name)
        found[name] = tuple(value) if getattr(prop, "is_array", False) else value
    return found


def curve_content(curve: Any) -> Any:
    keys = [values(key, without=("co_ui",)) for key in curve.keyframe_points]
    modifiers = [(modifier.type, values(modifier)) for modifier in curve.modifiers]
    return values(curve, without=("is_valid",)), curve.group and curve.group.name, keys, modifiers


def action_content(action: Any) -> Any:
    owners: list[tuple[Any, Any]] = [(0, action)]
    if SLOTS:
        bags = [bag for layer in action.layers for strip in layer.strips for bag in strip.channelbags]
        owners = [(bag.slot_handle, bag) for bag in bags]
    curves = {
        (handle, curve.data_path, curve.array_index): curve_content(curve)
        for handle, owner in owners
        for curve in owner.fcurves
    }
    groups = [(handle, [values(group) for group in owner.groups]) for handle, owner in owners]
    slots = [(slot.handle, slot.identifier) for slot in action.slots] if SLOTS else []
    return action.use_fake_user, slots, groups, curves


def animation_content(ob: bpy.types.Object) -> Any:
    data: Any = ob.animation_data
    if data is None:
        return None
    tracks = [(values(track), [values(strip) for strip in track.strips]) for track in data.nla_tracks]
    drivers = [(values(d, without=("is_valid",)), d.driver.expression, d.driver.type) for d in data.drivers]
    slot = data.action_slot_handle if SLOTS else 0
    return data.action and data.action.name, slot, data.use_nla, tracks, drivers


def everything() -> Any:
    """Return all animation of the file, the poses, and which chains are enabled."""
    scene = bpy.context.scene
    armatures = [ob for ob in bpy.data.objects if ob.type == "ARMATURE"]
    return {
        "frame": (scene.frame_current, scene.frame_subframe),
        "scenes": [other.name for other in bpy.data.scenes],
        "actions": {action.name: action_content(action) for action in bpy.data.actions},
        "animation": {ob.name: animation_content(ob) for ob in bpy.data.objects},
        "channels": {ob.name: rigs.channels(ob).tobytes() for ob in armatures},
        "poses": {ob.name: rigs.pose(ob).tobytes() for ob in armatures},
        "chains": {(ob.name, bone.name): bone.ik_addon.enabled for ob in armatures for bone in ob.pose.bones},
    }


def busy_arm() -> bpy.types.Object:
    """An arm with keys of every kind on the bones to bake, surrounded by everything that a bake might harm."""
    ob, target = rigs.arm()
    rigs.add_bones(ob, [(2, 0, 0), (2, 0, 1), (2, 0, 2)], ["other", "locked"])
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 10: (-0.4, 0.7, 1.2), 20: (0.2, -0.9, 0.8)})
    rng = np.random.default_rng(7)
    for bone in ob.pose.bones:
        for frame in (1, 6, 9, 14, 15, 30):
            bone.rotation_quaternion = rng.normal(size=4)
            bone.keyframe_insert("rotation_quaternion", frame=frame, group=bone.name)
    ob.keyframe_insert("location", frame=3)
    for i, curve in enumerate(rigs.fcurves(ob)):
        for j, key in enumerate(curve.keyframe_points):
            key.interpolation = ("BEZIER", "LINEAR", "CONSTANT", "BOUNCE")[(i + j) % 4]
            key.handle_left_type = key.handle_right_type = ("AUTO_CLAMPED", "FREE", "ALIGNED", "AUTO")[(i + j) % 4]
            key.easing, key.type = "EASE_IN", "BREAKDOWN"
        curve.update()
    others = {curve.data_path: curve for curve in rigs.fcurves(ob)}
    others['pose.bones["other"].rotation_quaternion'].modifiers.new("NOISE").strength = 0.3
    locked = others['pose.bones["locked"].rotation_quaternion']
    locked.lock = True
    if locked.group is not None:
        locked.group.lock = True
    ob.pose.bones["other"].lock_location = (True, True, False)
    ob.pose.bones["other"].driver_add("scale", 1).driver.expression = "1.25"
    bpy.context.scene.frame_set(12)
    return ob


def must_be_stepped(ob: bpy.types.Object) -> None:
    """Make a bake evaluate each frame, by a constraint on the target."""
    ob.pose.bones["lower"].ik_addon.target.constraints.new("COPY_LOCATION")
    bpy.context.view_layer.update()


def is_called_by_blender(frame: FrameType | None) -> bool:
    """Whether a handler or a property called the function; Blender prints their errors and goes on."""
    every: Any = bpy.app.handlers
    lists = (every.frame_change_pre, every.frame_change_post, every.depsgraph_update_post)
    called = {"_changed", *(handler.__name__ for handlers in lists for handler in handlers)}
    while frame is not None:
        if frame.f_code.co_name in called:
            return True
        frame = frame.f_back
    return False


class _Injected(Exception):  # noqa: N818 - thrown in, not reported
    """An error that a test raises inside a bake."""


@contextmanager
def fault(folder: Path, at: int) -> Iterator[list[int]]:
    """Count entries into functions of the extension (generators at each step), and raise at entry number `at`."""
    entered = [0]

    def trace(frame: FrameType, event: str, _argument: object) -> None:
        own = event == "call" and frame.f_code.co_filename.startswith(str(folder))
        # A generator expression is entered once more when it is discarded, where errors are lost.
        if own and frame.f_code.co_name != "<genexpr>" and not is_called_by_blender(frame):
            entered[0] += 1
            if entered[0] == at:
                sys.settrace(None)
                raise _Injected

    sys.settrace(trace)
    try:
        yield entered
    finally:
        sys.settrace(None)


@pytest.mark.parametrize("way", ["told", "stepped"])
@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("new_action", [False, True])
def test_an_error_anywhere_leaves_everything_as_it_was(bake: Any, way: str, live: bool, new_action: bool) -> None:
    def fresh() -> bpy.types.Object:
        rigs.new_file()
        ob = busy_arm()
        if way == "stepped":
            must_be_stepped(ob)
        ob.ik_addon.live = live
        bpy.context.scene.frame_set(12)
        return ob

    folder = Path(bake.__file__).parents[1]
    for _ in range(2):  # the first run fills caches, and so enters more functions than the second
        ob = fresh()
        with fault(folder, at=-1) as entered:
            bake.bake(bpy.context, ob, ["lower"], FRAMES, new_action=new_action)
    total = entered[0]
    assert total > 300
    places = sorted({*np.linspace(1, total - 1, FAULTS).astype(int).tolist(), *range(total - 6, total)})
    ob = fresh()
    before = everything()
    for at in places:
        with pytest.raises(_Injected), fault(folder, at):
            bake.bake(bpy.context, ob, ["lower"], FRAMES, new_action=new_action)
        bpy.context.view_layer.update()
        after = everything()
        for what, was in before.items():
            assert after[what] == was, f"{what} after an error at {at} of {total}"


@pytest.mark.parametrize("undone", ["undo", "undo and redo and undo"])
def test_undo_after_a_bake_restores_every_key(undone: str) -> None:
    ob = busy_arm()
    bpy.context.view_layer.objects.active = ob
    bpy.ops.ed.undo_push(message="before")
    before = everything()
    assert bpy.ops.ik_addon.bake(frame_start=5, frame_end=14) == {"FINISHED"}
    bpy.ops.ed.undo_push(message="Bake IK")
    for step in undone.split(" and "):
        bpy.ops.ed.undo() if step == "undo" else bpy.ops.ed.redo()
    after = everything()
    assert after["actions"] == before["actions"]
    assert after["animation"] == before["animation"]
    assert after["chains"] == before["chains"]


def baked_curves(content: Any) -> set[Any]:
    return {path for path in content if '"upper"' in path[1] or '"lower"' in path[1]}


@pytest.mark.parametrize("way", ["told", "stepped"])
def test_everything_that_is_not_baked_stays(bake: Any, way: str) -> None:
    ob = busy_arm()
    if way == "stepped":
        must_be_stepped(ob)
    if SLOTS:
        second, _target = rigs.arm()
        data: Any = second.animation_data_create()
        data.action = ob.animation_data.action
        data.action_slot = data.action.slots.new(id_type="OBJECT", name="Second")
        second.pose.bones["upper"].keyframe_insert("rotation_quaternion", frame=8)
    before = everything()
    name = ob.animation_data.action.name
    assert bake.bake(bpy.context, ob, ["lower"], FRAMES).plays_alike
    after = everything()
    assert after["animation"] == before["animation"]
    assert after["frame"] == before["frame"]
    assert after["actions"].keys() == before["actions"].keys()
    was, now = before["actions"][name][-1], after["actions"][name][-1]
    handle = ob.animation_data.action_slot_handle if SLOTS else 0
    baked = {path for path in baked_curves(was) if path[0] == handle}
    assert len(baked) == 8
    assert was.keys() == now.keys()
    assert {path for path in was if was[path] != now[path]} == baked
    for path in baked:
        (settings, *_), (settings_now, *_) = was[path], now[path]
        assert settings == settings_now
        outside = [[key for key in content[path][2] if not 5 <= key["co"][0] <= 14] for content in (was, now)]
        assert outside[0] == outside[1]
    assert before["actions"][name][:3] == after["actions"][name][:3]


def test_strips_below_the_action_stay(bake: Any) -> None:
    ob = busy_arm()
    data: Any = ob.animation_data
    action = data.action
    strip = data.nla_tracks.new().strips.new("strip", 1, action)
    if SLOTS:
        strip.action_slot = data.action_slot
    strip.blend_type, strip.influence, strip.use_animated_influence = "ADD", 0.5, True
    data.action = None
    before = everything()
    bake.bake(bpy.context, ob, ["lower"], FRAMES)
    after = everything()
    assert after["actions"][action.name] == before["actions"][action.name]
    assert after["animation"][ob.name][3] == before["animation"][ob.name][3]
    assert ob.animation_data.action != action


@pytest.mark.skipif(os.name != "posix", reason="limits the size of files as POSIX does")
@pytest.mark.parametrize("place", ["--overwrite", "--output"])
def test_a_full_disk_leaves_the_files_as_they_were(
    addon: Addon, tmp_path: Path, place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    import resource

    busy_arm()
    mesh = bpy.data.meshes.new("Large")
    mesh.from_pydata(np.random.default_rng(1).normal(size=(30_000, 3)).tolist(), [], [])
    mesh.use_fake_user = True
    rig, output = tmp_path / "rig.blend", tmp_path / "out.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(rig))
    output.write_bytes(b"what was there before")
    content = rig.read_bytes()
    arguments = [place] if place == "--overwrite" else [place, str(output)]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
    try:
        code = addon.module("cli.command").main(["--range", "5", "14", *arguments])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code == 2
    assert "ik_bake: " in capfd.readouterr().err
    assert rig.read_bytes() == content
    assert output.read_bytes() == b"what was there before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.blend", "rig.blend"]
    bpy.ops.wm.open_mainfile(filepath=str(rig))
    assert bpy.data.objects["Rig"].pose.bones["lower"].ik_addon.enabled


def test_a_chain_that_stays_live_keeps_its_fk_pose_when_another_is_baked_twice(
    bake: Any, addon: Addon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addon.module("bake.sampling"), "NOISE", -1.0)  # so that F-curves are never trusted
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 20: (-0.4, 0.7, 1.2)})
    rigs.add_bones(ob, [(2, 0, 0), (2, -0.2, 1), (2, 0, 2)], ["thigh", "shin"])
    ob.pose.bones["shin"].rotation_quaternion = (0.9, 0.3, 0.2, 0.1)
    rigs.chain(ob, "shin", target, 2)
    bpy.context.scene.frame_set(1)
    before = [ob.pose.bones[name].rotation_quaternion[:] for name in ("thigh", "shin")]
    rigs.go_live(ob)
    todo = bake.bake_stepwise(bpy.context, ob, ["lower"], FRAMES)
    assert len(list(todo)) > len(FRAMES)
    assert not ob.pose.bones["lower"].ik_addon.enabled
    ob.ik_addon.live = False
    assert [ob.pose.bones[name].rotation_quaternion[:] for name in ("thigh", "shin")] == before
