"""Frames that are played one after the other are solved ahead, and that shows in nothing but the time they take."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

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
    """A live chain whose target goes round, far away at times."""
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


KINDS = (free, with_limits, with_pole, stretched, pushed, in_euler_angles, planar, half_on, tree)


def poses(ob: bpy.types.Object, frames: Iterable[int]) -> dict[int, bytes]:
    found = {}
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        found[frame] = rigs.pose(ob).tobytes() + rigs.channels(ob).tobytes()
    return found


def ahead(addon: Addon, ob: bpy.types.Object) -> bool:
    """Whether the next frame is known."""
    return addon.module("live.handlers").foresees(ob, bpy.context.scene.frame_current + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_played_frames_have_the_bits_of_single_ones(addon: Addon, kind: Callable[[], bpy.types.Object]) -> None:
    ob = kind()
    ob.ik_addon.live = True
    order = np.random.default_rng(1).permutation(np.arange(1, LAST + 1)).tolist()
    single = poses(ob, order)
    played = poses(ob, range(1, LAST))
    assert ahead(addon, ob)
    assert [frame for frame in played if played[frame] != single[frame]] == []
    backwards = poses(ob, range(LAST, 0, -1))
    assert backwards == single
    # Also as they are rendered: some frames after a new start.
    addon.module("live.handlers").clear()
    assert poses(ob, (31, 30, 7)) == {frame: single[frame] for frame in (31, 30, 7)}


@pytest.mark.parametrize("kind", KINDS)
def test_reports_of_played_frames_are_those_of_single_ones(addon: Addon, kind: Callable[[], bpy.types.Object]) -> None:
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


def test_what_hangs_on_the_pose_follows_on_the_same_frame(addon: Addon) -> None:
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


def test_a_goal_that_is_elsewhere_than_foreseen_is_reached(addon: Addon) -> None:
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
def test_a_change_while_frames_are_played_is_seen_on_the_next(
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
    # As it is for who opens the file and never saw it otherwise.
    addon.module("live.handlers").clear()
    expected = poses(ob, range(24, 11, -2))
    for frame, pose in expected.items():
        found, wanted = (np.frombuffer(bits, dtype=np.float32) for bits in (after[frame], pose))
        np.testing.assert_allclose(found, wanted, atol=4e-6)


def test_a_channel_that_is_written_beside_a_block_does_not_stay_in_it(addon: Addon) -> None:
    """The root is pushed on the frames that are not played, and on no other."""
    ob = pushed()
    target = bpy.data.objects["target"]
    target.animation_data_clear()
    rigs.key(target, "location", {frame: (0.1 * (frame % 7), 0.3, 1.5 if frame % 2 else 0.6) for frame in range(1, 90)})
    ob.ik_addon.live = True
    poses(ob, (2, 4, 6, 8, 10))
    assert addon.module("live.handlers").foresees(ob, 12)
    pushed_at, played = poses(ob, (11,))[11], poses(ob, (12,))[12]
    addon.module("live.handlers").clear()
    single = poses(ob, (11, 12))
    assert pushed_at == single[11]
    assert played == single[12]


def test_fk_comes_back_to_the_bit(addon: Addon) -> None:
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
def test_an_edit_while_frames_are_played_becomes_the_fk_pose(
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
