from collections.abc import Callable
from typing import Any

import bpy
import numpy as np
import pytest
from numpy.typing import NDArray

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import whole_file
from tests.rigs import HAS_SLOTS as SLOTS

Floats = NDArray[np.float64]
FRAMES = np.arange(10.0, 21.0)


@pytest.fixture
def keys(addon: Addon) -> Any:
    return addon.module("core.keyframes")


@pytest.fixture
def rig() -> bpy.types.Object:
    return make_rig("Rig", ["upper", 'lo"wer', "other"])


def make_rig(name: str, bones: list[str]) -> bpy.types.Object:
    ob = rigs.armature(name)
    for i, bone in enumerate(bones):
        rigs.add_bones(ob, [(0, i, 0), (0, i + 1, 0)], [bone])
    return ob


def animate(ob: bpy.types.Object, bones: list[str], seed: int = 0) -> None:
    """Add keys in and out of the range, with every kind of handle and interpolation."""
    rng = np.random.default_rng(seed)
    for bone in bones:
        for frame in (1, 7.5, 9, 10, 14, 20, 21, 40, 60):
            ob.pose.bones[bone].rotation_quaternion = rng.normal(size=4)
            ob.pose.bones[bone].keyframe_insert("rotation_quaternion", frame=frame, group=bone)
    for curve in rigs.fcurves(ob):
        for i, point in enumerate(curve.keyframe_points):
            point.interpolation = ("BEZIER", "LINEAR", "CONSTANT", "BEZIER", "BOUNCE")[i % 5]
            point.handle_left_type = ("AUTO_CLAMPED", "FREE", "ALIGNED", "AUTO", "VECTOR")[i % 5]
            point.handle_right_type = ("AUTO_CLAMPED", "FREE", "ALIGNED", "AUTO")[i % 4]
            point.easing = "EASE_IN"
        curve.update()


def quaternion(keys: Any, bone: str, frames: Floats = FRAMES, seed: int = 1) -> list[Any]:
    values = np.random.default_rng(seed).normal(size=(4, len(frames)))
    return [keys.Channel(bone, "rotation_quaternion", i, values[i]) for i in range(4)]


def points(ob: bpy.types.Object, channel: Any) -> Any:
    return rigs.curve_owner(ob).fcurves.find(channel.data_path, index=channel.index).keyframe_points


def test_keys_play_the_written_pose(keys: Any, rig: bpy.types.Object) -> None:
    channels = [*quaternion(keys, "upper"), *quaternion(keys, 'lo"wer', seed=2)]
    keys.write_channels(rig, channels, FRAMES)
    for i, frame in enumerate(FRAMES):
        bpy.context.scene.frame_set(int(frame))
        for channel in channels:
            bone = rig.pose.bones[channel.bone]
            assert bone.rotation_quaternion[channel.index] == np.float32(channel.values[i])
    assert {curve.group.name for curve in rigs.fcurves(rig)} == {"upper", 'lo"wer'}


def test_keys_on_every_frame_are_linear_and_others_are_smooth(keys: Any, rig: bpy.types.Object) -> None:
    channels = quaternion(keys, "upper")
    keys.write_channels(rig, channels, FRAMES)
    assert {p.interpolation for p in points(rig, channels[0])} == {"LINEAR"}
    assert not any(p.select_control_point or p.select_left_handle for p in points(rig, channels[0]))
    sparse = np.arange(10.0, 21.0, 5.0)
    smooth = quaternion(keys, "other", sparse)
    keys.write_channels(rig, smooth, sparse)
    assert {p.interpolation for p in points(rig, smooth[0])} == {"BEZIER"}
    assert {p.handle_left_type for p in points(rig, smooth[0])} == {"AUTO_CLAMPED"}
    middle = points(rig, smooth[0])[1]
    assert middle.handle_left[0] < middle.co[0] < middle.handle_right[0]


def test_a_curve_held_after_the_range_stays_held(keys: Any, rig: bpy.types.Object) -> None:
    bone = rig.pose.bones["upper"]
    for frame in (20, 30):
        bone.keyframe_insert("rotation_quaternion", frame=frame)
    for curve in rigs.fcurves(rig):
        for point in curve.keyframe_points:
            point.interpolation = "CONSTANT"
    channels = quaternion(keys, "upper")
    keys.write_channels(rig, channels, FRAMES)
    assert rigs.fcurves(rig)[1].evaluate(29.5) == np.float32(channels[1].values[-1])


@pytest.mark.parametrize("new_action", [False, True])
@pytest.mark.parametrize("start", ["nothing", "empty animation data", "other bones", "same bones", "fake user"])
def test_reverting_restores_everything(keys: Any, rig: bpy.types.Object, start: str, new_action: bool) -> None:
    if start == "empty animation data":
        rig.animation_data_create()
    elif start != "nothing":
        animate(rig, ["other"] if start == "other bones" else ["upper", "other"])
        rig.animation_data.action.use_fake_user = start == "fake user"
    before = whole_file()
    take_back = keys.write_channels(
        rig, [*quaternion(keys, "upper"), *quaternion(keys, 'lo"wer')], FRAMES, new_action=new_action
    )
    assert whole_file() != before
    take_back()
    assert whole_file() == before


def test_nan_and_infinite_values_are_refused(keys: Any, rig: bpy.types.Object) -> None:
    animate(rig, ["upper"])
    before = whole_file()
    values = np.where(FRAMES == 13, np.nan, 1.0)
    with pytest.raises(keys.UserError, match="'location' of bone 'upper' in 'Rig' is not a finite number on frame 13"):
        keys.write_channels(rig, [keys.Channel("upper", "location", 0, values)], FRAMES)
    assert whole_file() == before


@pytest.mark.skipif(not SLOTS, reason="slots came with Blender 4.4")
def test_an_empty_action_without_a_slot_gets_one(keys: Any, rig: bpy.types.Object) -> None:
    data: Any = rig.animation_data_create()
    data.action = bpy.data.actions.new("Empty")
    channels = quaternion(keys, "upper")
    take_back = keys.write_channels(rig, channels, FRAMES)
    bpy.context.scene.frame_set(12)
    assert rig.pose.bones["upper"].rotation_quaternion[1] == np.float32(channels[1].values[2])
    take_back()
    assert (len(data.action.layers), len(data.action.slots), data.action_slot) == (0, 0, None)


def test_an_action_shared_by_two_objects_is_refused(keys: Any, rig: bpy.types.Object) -> None:
    animate(rig, ["upper"])
    second = make_rig("Second", ["upper"])
    data = second.animation_data_create()
    data.action = rig.animation_data.action
    if SLOTS:
        data.action_slot = rig.animation_data.action_slot
    before = whole_file()
    with pytest.raises(keys.UserError, match=r"also animates 'Second'.*new action"):
        keys.write_channels(rig, quaternion(keys, "upper"), FRAMES)
    assert whole_file() == before
    keys.write_channels(rig, quaternion(keys, "upper"), FRAMES, new_action=True)
    assert data.action != rig.animation_data.action


def _strip(ob: bpy.types.Object) -> Any:
    """Add an NLA strip of the action, and return its track."""
    data: Any = ob.animation_data
    data.nla_tracks.new().strips.new("strip", 1, data.action)
    return data.nla_tracks[0]


def _tweak(ob: bpy.types.Object) -> None:
    data, track = ob.animation_data, _strip(ob)
    data.action = None
    track.strips[0].select = track.select = True
    data.nla_tracks.active, data.use_tweak_mode = track, True


def _add(ob: bpy.types.Object) -> None:
    _strip(ob)
    ob.animation_data.action_blend_type = "ADD"


OBSTACLES: dict[str, tuple[Callable[[Any], object], str]] = {
    "driver": (lambda ob: ob.pose.bones["upper"].driver_add("rotation_quaternion", 2), "bone 'upper'"),
    "locked": (lambda ob: setattr(rigs.fcurves(ob)[2], "lock", True), "bone 'upper'"),
    "locked group": (lambda ob: setattr(rigs.fcurves(ob)[2].group, "lock", True), "bone 'upper'"),
    "muted": (lambda ob: setattr(rigs.fcurves(ob)[2], "mute", True), "bone 'upper'"),
    "modifier": (lambda ob: rigs.fcurves(ob)[2].modifiers.new("CYCLES"), "bone 'upper'"),
    "samples": (lambda ob: rigs.fcurves(ob)[2].convert_to_samples(1, 60), "bone 'upper'"),
    "tweak": (_tweak, "NLA Editor"),
    "solo": (lambda ob: setattr(_strip(ob), "is_solo", True), "NLA Editor"),
    "blend": (_add, "NLA Editor"),
}


@pytest.mark.parametrize("fault", OBSTACLES)
def test_obstacles_are_named(keys: Any, rig: bpy.types.Object, fault: str) -> None:
    animate(rig, ["upper"])
    spoil, named = OBSTACLES[fault]
    spoil(rig)
    before = whole_file()
    with pytest.raises(keys.UserError, match=named):
        keys.write_channels(rig, quaternion(keys, "upper"), FRAMES)
    assert whole_file() == before


def test_a_muted_modifier_and_a_driver_elsewhere_do_not_matter(keys: Any, rig: bpy.types.Object) -> None:
    animate(rig, ["upper"])
    rigs.fcurves(rig)[0].modifiers.new("CYCLES").mute = True
    rig.pose.bones["upper"].driver_add("scale", 0)
    keys.write_channels(rig, quaternion(keys, "upper"), FRAMES)
    assert len(rigs.fcurves(rig)[0].modifiers) == 1


def test_a_linked_action_is_refused(keys: Any, rig: bpy.types.Object, tmp_path: Any) -> None:
    animate(rig, ["upper"])
    library = str(tmp_path / "library.blend")
    bpy.data.libraries.write(library, {rig.animation_data.action})
    handle = rig.animation_data.action_slot_handle if SLOTS else 0
    data = rig.animation_data
    (data.action,) = rigs.from_library(library, "actions", "RigAction")
    if SLOTS:
        data.action_slot = next(slot for slot in data.action.slots if slot.handle == handle)
    with pytest.raises(keys.UserError, match=r"linked from another file. Bake into a new action"):
        keys.write_channels(rig, quaternion(keys, "upper"), FRAMES)
    keys.write_channels(rig, quaternion(keys, "upper"), FRAMES, new_action=True)
    assert data.action.library is None


@pytest.mark.parametrize("group", ["Object Transforms", "Target"])
def test_a_refused_channel_of_an_object_is_not_called_a_bones(addon: Addon, group: str) -> None:
    ob = rigs.empty("Target")
    keyframes = addon.module("core.keyframes")
    channel = keyframes.Channel(group, "location", 0, np.full(2, np.nan), of_object=True)
    with pytest.raises(keyframes.UserError, match=r"^'location' of 'Target' is not a finite number on frame 1"):
        keyframes.write_channels(ob, [channel], np.array([1.0, 2.0]))
    ob.driver_add("location", 0)
    with pytest.raises(keyframes.UserError, match=r"^A driver sets 'location' of 'Target', so"):
        keyframes.check(ob, [channel])
