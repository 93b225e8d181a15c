"""A bake never destroys: when it fails, the animation is as before; what it does not bake stays unchanged."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import FaultError, failing, whole_file
from tests.rigs import HAS_SLOTS as SLOTS

FRAMES = list(range(5, 15))
FAULTS = 8
"""Number of places in a bake where an error is raised."""


def changes(before: dict[str, Any], part: str = "") -> set[str]:
    """Return what is otherwise in the file now, of what has this in its path."""
    bpy.context.view_layer.update()
    after = whole_file()
    return {path for path in before.keys() | after.keys() if part in path and before.get(path) != after.get(path)}


def keys_outside(ob: bpy.types.Object) -> dict[tuple[str, int], list[dict[str, str]]]:
    """Return all of the keys before and after `FRAMES`, by F-curve."""
    return {
        (curve.data_path, curve.array_index): [
            {name: repr(getattr(key, name)) for name in key.bl_rna.properties.keys() if name != "rna_type"}  # noqa: SIM118
            for key in curve.keyframe_points
            if not FRAMES[0] <= key.co[0] <= FRAMES[-1]
        ]
        for curve in rigs.fcurves(ob)
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


def counts(folder: Path, frame: FrameType) -> bool:
    """Whether a function of the extension is entered (generators at each step), and not by Blender."""
    # A generator expression is entered once more when it is discarded, where errors are lost.
    own = frame.f_code.co_filename.startswith(str(folder)) and frame.f_code.co_name != "<genexpr>"
    return own and not is_called_by_blender(frame)


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

    entered = partial(counts, Path(bake.__file__).parents[1])
    for _ in range(2):  # the first run fills caches, and so enters more functions than the second
        ob = fresh()
        with failing(None, entered) as called:
            bake.bake(bpy.context, ob, ["lower"], FRAMES, new_action=new_action)
    last = len(called) - 2
    assert last > 300
    ob = fresh()
    before = whole_file()
    for at in sorted({*np.linspace(0, last, FAULTS).astype(int).tolist(), *range(last - 5, last + 1)}):
        with pytest.raises(FaultError), failing(at, entered):
            bake.bake(bpy.context, ob, ["lower"], FRAMES, new_action=new_action)
        assert not changes(before), f"after an error at {at} of {last}, in {called[at]}"


@pytest.mark.parametrize("undone", ["undo", "undo and redo and undo"])
def test_undo_after_a_bake_restores_every_key(undone: str) -> None:
    ob = busy_arm()
    bpy.context.view_layer.objects.active = ob
    bpy.ops.ed.undo_push(message="before")
    before = whole_file()
    assert bpy.ops.ik_addon.bake(frame_start=5, frame_end=14) == {"FINISHED"}
    bpy.ops.ed.undo_push(message="Bake IK")
    for step in undone.split(" and "):
        bpy.ops.ed.undo() if step == "undo" else bpy.ops.ed.redo()
    assert not changes(before)


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
    before, outside, frame = whole_file(), keys_outside(ob), bpy.context.scene.frame_current
    assert bake.bake(bpy.context, ob, ["lower"], FRAMES).plays_alike
    assert not changes(before, ".animation_data")
    assert bpy.context.scene.frame_current == frame
    assert keys_outside(ob) == outside
    baked = {
        path.removesuffix("data_path") + "keyframe_points"
        for path, value in before.items()
        if path.endswith("data_path") and ('"upper"' in value or '"lower"' in value) and "channelbags[1]" not in path
    }
    assert len(baked) == 8
    changed = changes(before, "actions[")
    assert {path for path in baked if any(each.startswith(path) for each in changed)} == baked
    assert not {path for path in changed if not path.startswith(tuple(baked))}


def test_strips_below_the_action_stay(bake: Any) -> None:
    ob = busy_arm()
    data: Any = ob.animation_data
    action = data.action
    strip = data.nla_tracks.new().strips.new("strip", 1, action)
    if SLOTS:
        strip.action_slot = data.action_slot
    strip.blend_type, strip.influence, strip.use_animated_influence = "ADD", 0.5, True
    data.action = None
    before = whole_file()
    bake.bake(bpy.context, ob, ["lower"], FRAMES)
    assert not changes(before, f"actions[{action.name}]")
    assert not changes(before, ".nla_tracks")
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
