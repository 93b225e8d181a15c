from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
import pytest
from numpy.typing import NDArray

from tests import rigs

if TYPE_CHECKING:
    from tests.conftest import Addon

Floats = NDArray[np.float64]
FRAMES = np.arange(10.0, 21.0)
SLOTS = bpy.app.version >= (4, 4, 0)
VECTORS = {"co", "handle_left", "handle_right"}
KEY_PROPERTIES = [name for name in bpy.types.Keyframe.bl_rna.properties.keys() if name not in {"rna_type", "co_ui"}]  # noqa: SIM118
BEYOND = [*np.arange(-5, 9, 0.25), *np.arange(21, 70, 0.25)]


@pytest.fixture
def keys(addon: Addon) -> Any:
    return addon.module("core.keyframes")


@pytest.fixture
def compat(addon: Addon) -> Any:
    return addon.module("core.compat")


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
    for curve in curves_of(ob):
        for i, point in enumerate(curve.keyframe_points):
            point.interpolation = ("BEZIER", "LINEAR", "CONSTANT", "BEZIER", "BOUNCE")[i % 5]
            point.handle_left_type = ("AUTO_CLAMPED", "FREE", "ALIGNED", "AUTO", "VECTOR")[i % 5]
            point.handle_right_type = ("AUTO_CLAMPED", "FREE", "ALIGNED", "AUTO")[i % 4]
            point.easing = "EASE_IN"
        curve.update()


def curves_of(ob: bpy.types.Object) -> Any:
    return bag_of(ob).fcurves


def quaternion(keys: Any, bone: str, frames: Floats = FRAMES, seed: int = 1) -> list[Any]:
    values = np.random.default_rng(seed).normal(size=(4, len(frames)))
    return [keys.Channel(bone, "rotation_quaternion", i, values[i]) for i in range(4)]


def content(action: Any) -> Any:
    """Return the exact contents of an action."""
    if SLOTS:
        bags = [
            (bag.slot_handle, bag) for layer in action.layers for strip in layer.strips for bag in strip.channelbags
        ]
        slots = [(slot.handle, slot.identifier) for slot in action.slots]
    else:
        bags, slots = [(0, action)], []
    return action.name, action.use_fake_user, slots, [(handle, bag_content(bag)) for handle, bag in bags]


def bag_content(bag: Any) -> Any:
    curves = {
        (curve.data_path, curve.array_index): (
            [key_content(point) for point in curve.keyframe_points],
            curve.group and curve.group.name,
            curve.extrapolation,
        )
        for curve in bag.fcurves
    }
    return curves, [group.name for group in bag.groups]


def key_content(point: bpy.types.Keyframe) -> dict[str, Any]:
    content = {name: getattr(point, name) for name in KEY_PROPERTIES}
    return {name: content[name][:] if name in VECTORS else content[name] for name in content}


def points(ob: bpy.types.Object, channel: Any) -> Any:
    return curves_of(ob).find(channel.data_path, index=channel.index).keyframe_points


def bag_of(ob: bpy.types.Object) -> Any:
    data = ob.animation_data
    return data.action.layers[0].strips[0].channelbag(data.action_slot) if SLOTS else data.action


def outside(ob: bpy.types.Object) -> Any:
    curves, _groups = bag_content(bag_of(ob))
    return {key: [point for point in data[0] if not 10 <= point["co"][0] <= 20] for key, data in curves.items()}


def test_keys_play_the_written_pose(keys: Any, rig: bpy.types.Object) -> None:
    channels = [*quaternion(keys, "upper"), *quaternion(keys, 'lo"wer', seed=2)]
    keys.write_channels(rig, channels, FRAMES)
    for i, frame in enumerate(FRAMES):
        bpy.context.scene.frame_set(int(frame))
        for channel in channels:
            bone = rig.pose.bones[channel.bone]
            assert bone.rotation_quaternion[channel.index] == np.float32(channel.values[i])
    assert {curve.group.name for curve in curves_of(rig)} == {"upper", 'lo"wer'}


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


def test_everything_else_in_the_action_stays_exactly(keys: Any, rig: bpy.types.Object) -> None:
    animate(rig, ["upper", "other"])
    rig.pose.bones["upper"].keyframe_insert("location", frame=12)
    before, (all_before, _groups) = outside(rig), bag_content(bag_of(rig))
    shapes = [[curve.evaluate(frame) for frame in BEYOND] for curve in curves_of(rig)]
    channels = quaternion(keys, "upper")
    keys.write_channels(rig, channels, FRAMES)
    assert outside(rig) == before
    assert [[curve.evaluate(frame) for frame in BEYOND] for curve in curves_of(rig)] == shapes
    all_after, _groups = bag_content(bag_of(rig))
    written = {(channel.data_path, channel.index) for channel in channels}
    assert {key for key in all_before if all_before[key] != all_after[key]} == written
    for channel in channels:
        inside = [point.co[:] for point in points(rig, channel) if 10 <= point.co[0] <= 20]
        assert inside == list(zip(FRAMES.tolist(), channel.values.astype(np.float32).tolist(), strict=True))


def test_a_curve_held_after_the_range_stays_held(keys: Any, rig: bpy.types.Object) -> None:
    bone = rig.pose.bones["upper"]
    for frame in (20, 30):
        bone.keyframe_insert("rotation_quaternion", frame=frame)
    for curve in curves_of(rig):
        for point in curve.keyframe_points:
            point.interpolation = "CONSTANT"
    channels = quaternion(keys, "upper")
    keys.write_channels(rig, channels, FRAMES)
    assert curves_of(rig)[1].evaluate(29.5) == np.float32(channels[1].values[-1])


@pytest.mark.parametrize("new_action", [False, True])
@pytest.mark.parametrize("start", ["nothing", "empty animation data", "other bones", "same bones", "fake user"])
def test_reverting_restores_everything(keys: Any, rig: bpy.types.Object, start: str, new_action: bool) -> None:
    if start == "empty animation data":
        rig.animation_data_create()
    elif start != "nothing":
        animate(rig, ["other"] if start == "other bones" else ["upper", "other"])
        rig.animation_data.action.use_fake_user = start == "fake user"
    before = everything(rig)
    take_back = keys.write_channels(
        rig, [*quaternion(keys, "upper"), *quaternion(keys, 'lo"wer')], FRAMES, new_action=new_action
    )
    assert everything(rig) != before
    take_back()
    assert everything(rig) == before


def everything(ob: bpy.types.Object) -> Any:
    data = ob.animation_data
    state = None if data is None else (data.action and data.action.name, SLOTS and data.action_slot_handle)
    return state, sorted((content(action) for action in bpy.data.actions), key=str)


@pytest.mark.parametrize("new_action", [False, True])
def test_a_failure_midway_restores_everything(keys: Any, rig: bpy.types.Object, new_action: bool) -> None:
    class Fails:
        def __index__(self) -> int:
            raise RuntimeError("in between")

    animate(rig, ["upper", "other"])
    before = everything(rig)
    last = keys.Channel("other", "rotation_quaternion", Fails(), np.zeros(len(FRAMES)))
    with pytest.raises(TypeError):  # Blender raises this for the error from __index__
        keys.write_channels(
            rig, [*quaternion(keys, "upper"), *quaternion(keys, 'lo"wer'), last], FRAMES, new_action=new_action
        )
    assert everything(rig) == before


def test_nan_and_infinite_values_are_refused(keys: Any, rig: bpy.types.Object) -> None:
    animate(rig, ["upper"])
    before = everything(rig)
    values = np.where(FRAMES == 13, np.nan, 1.0)
    with pytest.raises(keys.KeysError, match="'location' of bone 'upper' in 'Rig' is not a finite number on frame 13"):
        keys.write_channels(rig, [keys.Channel("upper", "location", 0, values)], FRAMES)
    assert everything(rig) == before


def test_a_new_action_is_a_copy_and_the_old_one_stays(keys: Any, rig: bpy.types.Object) -> None:
    animate(rig, ["upper", "other"])
    old = rig.animation_data.action
    before = content(old)
    keys.write_channels(rig, quaternion(keys, "upper"), FRAMES, new_action=True)
    new = rig.animation_data.action
    assert new.name == f"{old.name} Baked"
    assert content(old)[2:] == before[2:]
    assert old.use_fake_user
    other = 'pose.bones["other"].rotation_quaternion'
    assert curves_of(rig).find(other, index=0).evaluate(12) != 0.0


def test_a_new_action_is_made_if_there_was_none(keys: Any, rig: bpy.types.Object) -> None:
    keys.write_channels(rig, quaternion(keys, "upper"), FRAMES, new_action=True)
    assert rig.animation_data.action.name == "RigAction"


@pytest.mark.skipif(not SLOTS, reason="slots came with Blender 4.4")
def test_other_slots_of_the_action_stay(keys: Any, rig: bpy.types.Object) -> None:
    animate(rig, ["upper"])
    second = make_rig("Second", ["upper"])
    action = rig.animation_data.action
    data = second.animation_data_create()
    data.action = action
    data.action_slot = action.slots.new(id_type="OBJECT", name="Second")
    animate(second, ["upper"], seed=3)
    before = bag_content(bag_of(second))
    keys.write_channels(rig, quaternion(keys, "upper"), FRAMES)
    assert bag_content(bag_of(second)) == before
    assert len(action.slots) == 2


@pytest.mark.skipif(not SLOTS, reason="slots came with Blender 4.4")
def test_an_empty_action_without_a_slot_gets_one(keys: Any, rig: bpy.types.Object) -> None:
    rig.animation_data_create().action = bpy.data.actions.new("Empty")
    before = everything(rig)
    channels = quaternion(keys, "upper")
    take_back = keys.write_channels(rig, channels, FRAMES)
    bpy.context.scene.frame_set(12)
    assert rig.pose.bones["upper"].rotation_quaternion[1] == np.float32(channels[1].values[2])
    take_back()
    assert everything(rig) == before


def test_an_action_shared_by_two_objects_is_refused(keys: Any, rig: bpy.types.Object) -> None:
    animate(rig, ["upper"])
    second = make_rig("Second", ["upper"])
    data = second.animation_data_create()
    data.action = rig.animation_data.action
    if SLOTS:
        data.action_slot = rig.animation_data.action_slot
    before = everything(rig)
    with pytest.raises(keys.KeysError, match=r"also animates 'Second'.*new action"):
        keys.write_channels(rig, quaternion(keys, "upper"), FRAMES)
    assert everything(rig) == before
    keys.write_channels(rig, quaternion(keys, "upper"), FRAMES, new_action=True)
    assert data.action != rig.animation_data.action


@pytest.mark.parametrize(
    "fault", ["driver", "locked", "locked group", "muted", "modifier", "samples", "tweak", "blend", "solo"]
)
def test_obstacles_are_named(keys: Any, rig: bpy.types.Object, fault: str) -> None:
    animate(rig, ["upper"])
    curve = curves_of(rig)[2]
    data: Any = rig.animation_data
    if fault == "driver":
        rig.pose.bones["upper"].driver_add("rotation_quaternion", 2)
    elif fault == "locked":
        curve.lock = True
    elif fault == "locked group":
        curve.group.lock = True
    elif fault == "muted":
        curve.mute = True
    elif fault == "modifier":
        curve.modifiers.new("CYCLES")
    elif fault == "samples":
        curve.convert_to_samples(1, 60)
    else:
        strip = data.nla_tracks.new().strips.new("strip", 1, data.action)
        if fault == "tweak":
            data.action = None
            strip.select = True
            data.nla_tracks[0].select = True
            data.nla_tracks.active = data.nla_tracks[0]
            data.use_tweak_mode = True
        elif fault == "solo":
            data.nla_tracks[0].is_solo = True
        else:
            data.action_blend_type = "ADD"
    before = everything(rig)
    named = "NLA Editor" if fault in {"tweak", "blend", "solo"} else "bone 'upper'"
    with pytest.raises(keys.KeysError, match=named):
        keys.write_channels(rig, quaternion(keys, "upper"), FRAMES)
    assert everything(rig) == before


def test_keys_in_a_muted_group_are_refused_where_they_have_no_effect(keys: Any, rig: bpy.types.Object) -> None:
    animate(rig, ["upper"])
    curves_of(rig)[0].group.mute = True
    bone = rig.pose.bones["upper"]
    bone.rotation_quaternion = (0.1, 0.2, 0.3, 0.4)
    bpy.context.scene.frame_set(15)
    if bone.rotation_quaternion[0] == np.float32(0.1):  # Blender did not evaluate it
        with pytest.raises(keys.KeysError, match="muted"):
            keys.write_channels(rig, quaternion(keys, "upper"), FRAMES)
    else:
        keys.write_channels(rig, quaternion(keys, "upper"), FRAMES)


def test_a_muted_modifier_and_a_driver_elsewhere_do_not_matter(keys: Any, rig: bpy.types.Object) -> None:
    animate(rig, ["upper"])
    curves_of(rig)[0].modifiers.new("CYCLES").mute = True
    rig.pose.bones["upper"].driver_add("scale", 0)
    keys.write_channels(rig, quaternion(keys, "upper"), FRAMES)
    assert len(curves_of(rig)[0].modifiers) == 1


def test_a_linked_action_is_refused(keys: Any, rig: bpy.types.Object, tmp_path: Any) -> None:
    animate(rig, ["upper"])
    library = str(tmp_path / "library.blend")
    bpy.data.libraries.write(library, {rig.animation_data.action})
    handle = rig.animation_data.action_slot_handle if SLOTS else 0
    data = rig.animation_data
    (data.action,) = rigs.from_library(library, "actions", "RigAction")
    if SLOTS:
        data.action_slot = next(slot for slot in data.action.slots if slot.handle == handle)
    with pytest.raises(keys.KeysError, match=r"linked from another file. Bake into a new action"):
        keys.write_channels(rig, quaternion(keys, "upper"), FRAMES)
    keys.write_channels(rig, quaternion(keys, "upper"), FRAMES, new_action=True)
    assert data.action.library is None


def test_reverting_undoes_ensure(compat: Any, rig: bpy.types.Object) -> None:
    with ExitStack() as undo:
        owner = compat.ensure_curve_owner(rig, undo)
        assert compat.curve_owner(rig) == owner
    assert rig.animation_data is None
    assert not bpy.data.actions


@pytest.mark.parametrize("group", ["Object Transforms", "Target"])
def test_a_refused_channel_of_an_object_is_not_called_a_bones(addon: Addon, group: str) -> None:
    ob = rigs.empty("Target")
    keyframes = addon.module("core.keyframes")
    channel = keyframes.ObjectChannel(group, "location", 0, np.full(2, np.nan))
    with pytest.raises(keyframes.KeysError, match=r"^'location' of 'Target' is not a finite number on frame 1"):
        keyframes.write_channels(ob, [channel], np.array([1.0, 2.0]))
    ob.driver_add("location", 0)
    with pytest.raises(keyframes.KeysError, match=r"^A driver sets 'location' of 'Target', so"):
        keyframes.check(ob, [channel])
