"""Baked keys play like live solving, whatever the targets read from the scene, and a bake destroys nothing."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import bpy
import numpy as np
import pytest
from numpy.typing import NDArray

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import FaultError, failing, whole_file
from tests.rigs import HAS_SLOTS as SLOTS

FRAMES = list(range(1, 21))
Read = Callable[[bpy.types.Object, bpy.types.Object], None]
"""Lets the target of an armature read from the scene."""
CONTROL = '["control"]'
"""A custom property of a scene."""
CLOSE = 1e-5
"""In chain lengths."""


def crowded_arm() -> tuple[bpy.types.Object, bpy.types.Object]:
    """A live arm and its target, in a scene with another animated object."""
    ob, target = rigs.arm()
    rigs.key(ob.pose.bones["upper"], "rotation_quaternion", {1: (1, 0, 0, 0), 20: (0.9, 0.1, 0.3, 0.0)})
    rigs.key(rigs.empty("Extra"), "location", {1: (0, 0, 0), 20: (1, 0, 0)})
    ob.ik_addon.live = True
    return ob, target


def key_control(scene: bpy.types.Scene) -> None:
    """Key a custom property of a scene."""
    for frame, value in ((1, 0.0), (20, 1.0)):
        scene["control"] = value
        scene.keyframe_insert(CONTROL, frame=frame)


def on_x(expression: str, path: str = "") -> Read:
    """Return what drives the place of the target along X, by a property of the scene or by none."""

    def drive(_ob: bpy.types.Object, target: bpy.types.Object) -> None:
        if path == CONTROL:
            key_control(bpy.context.scene)
        rigs.drive(target, "location", 0, expression, bpy.context.scene if path else None, path)

    return drive


BY_FRAME = on_x("0.6 - 0.06 * f", "frame_current")


def by_driven_constraint(_ob: bpy.types.Object, target: bpy.types.Object) -> None:
    constraint = rigs.constrain(target, "COPY_LOCATION", target=rigs.empty("Place", (-0.6, 0.4, 1.2)))
    key_control(bpy.context.scene)
    rigs.drive(constraint, "influence", -1, "f", bpy.context.scene, CONTROL)


def remapped(ob: bpy.types.Object, target: bpy.types.Object) -> None:
    bpy.context.scene.render.frame_map_old, bpy.context.scene.render.frame_map_new = 100, 150
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 20: (-0.5, 0.9, 0.8)})
    BY_FRAME(ob, target)


def by_background(_ob: bpy.types.Object, target: bpy.types.Object) -> None:
    """The target reads the background scene and an object in it."""
    set_scene = bpy.data.scenes.new("Set")
    dial = bpy.data.objects.new("Dial", None)
    set_scene.collection.objects.link(dial)
    rigs.key(dial, "location", {1: (0, 0, 0), 20: (1, 0, 0)})
    key_control(set_scene)
    rigs.drive(target, "location", 0, "0.6 - 1.2 * f", dial, "location[0]")
    rigs.drive(target, "location", 1, "0.5 - 0.3 * f", set_scene, CONTROL)
    bpy.context.scene.background_set = set_scene


def by_handler(_ob: bpy.types.Object, target: bpy.types.Object) -> None:
    """Another add-on places the target, according to the scene in the context."""

    def place(_scene: bpy.types.Scene) -> None:
        target.location.x = 0.6 - 0.06 * bpy.context.scene.frame_current

    bpy.app.handlers.frame_change_pre.append(place)


READ: dict[str, Read] = {
    "frame of the scene": BY_FRAME,
    "property of the scene": on_x("0.6 - 1.2 * f", CONTROL),
    "frame in an expression": on_x("0.6 - 0.06 * frame"),
    "Python": on_x("0.6 - 0.06 * frame_of_the_window()"),
    "driven constraint": by_driven_constraint,
    "mapped time": remapped,
    "background scene": by_background,
    "handler": by_handler,
}


@pytest.fixture
def _namespace() -> Iterator[None]:
    """Provide the function that a driver calls, and restore the handlers afterwards."""
    handlers = bpy.app.handlers.frame_change_pre[:]
    bpy.app.driver_namespace["frame_of_the_window"] = lambda: bpy.context.scene.frame_current
    yield
    del bpy.app.driver_namespace["frame_of_the_window"]
    bpy.app.handlers.frame_change_pre[:] = handlers


def played(ob: bpy.types.Object) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Joints of the arm (F, 3, 3) and distances of its tip from the target (F,) on all frames, in chain lengths."""
    target, length = ob.pose.bones["lower"].ik_addon.target, rigs.length(ob, "lower", 2)
    rows = rigs.on_frames(
        FRAMES, lambda: (rigs.head(ob, "upper"), rigs.head(ob, "lower"), rigs.tail(ob, "lower"), rigs.position(target))
    )
    found = np.array(list(rows.values())) / length
    return found[:, :3], np.linalg.norm(found[:, 2] - found[:, 3], axis=-1)


def bakes_as_live(bake: Any, ob: bpy.types.Object) -> None:
    """Bake, and check that the keys play like live solving and that the report is true."""
    live, _missing = played(ob)
    assert np.ptp(live[:, 2], axis=0).max() > 0.1
    report = bake.bake(bpy.context, ob, ["lower"], FRAMES)
    keyed, missing = played(ob)
    assert np.linalg.norm(keyed - live, axis=-1).max() < CLOSE
    assert report.plays_alike
    assert report.position < CLOSE
    assert report.missed == np.count_nonzero(missing > 1e-4)
    assert report.error == pytest.approx(missing.max(), abs=CLOSE)


@pytest.mark.usefixtures("_namespace")
@pytest.mark.parametrize("read", READ)
def test_baked_keys_play_like_live_solving(bake: Any, read: str) -> None:
    ob, target = crowded_arm()
    READ[read](ob, target)
    bpy.context.view_layer.update()
    bakes_as_live(bake, ob)


def on_cloth(target: bpy.types.Object) -> None:
    """Parent the target to a vertex of a cloth that wind moves."""
    sheet: Any = rigs.mesh("Sheet", [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)], [(0, 1, 2, 3)])
    cloth = sheet.modifiers.new("Cloth", "CLOTH")
    cloth.settings.effector_weights.gravity = 0.1
    wind = rigs.empty("Wind")
    bpy.context.view_layer.objects.active = wind
    bpy.ops.object.forcefield_toggle()
    wind.field.type, wind.field.strength = "WIND", 60.0
    target.parent, target.parent_type, target.parent_vertices[0] = sheet, "VERTEX", 2
    target.location = (-0.6, -0.4, 1.0)


def test_a_target_on_cloth_is_baked_without_playing_the_cloth_first(bake: Any) -> None:
    def fresh() -> bpy.types.Object:
        rigs.new_file()
        ob, target = crowded_arm()
        on_cloth(target)
        bpy.context.view_layer.update()
        return ob

    live, _missing = played(fresh())
    ob = fresh()
    assert bake.bake(bpy.context, ob, ["lower"], FRAMES).plays_alike
    keyed, _missing = played(ob)
    assert np.linalg.norm(keyed - live, axis=-1).max() < CLOSE


@pytest.mark.parametrize("read", ["keys", "frame in an expression"])
def test_unrelated_cloth_is_not_disturbed(bake: Any, read: str) -> None:
    def fresh() -> bpy.types.Object:
        rigs.new_file()
        ob, target = crowded_arm()
        ob.ik_addon.live = False
        if read == "keys":
            rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 20: (-0.5, 0.9, 0.8)})
        else:
            READ[read](ob, target)
        on_cloth(rigs.empty("Leaf"))
        bpy.context.view_layer.update()
        return ob

    def fallen() -> dict[float, list[float]]:
        return rigs.on_frames(FRAMES, lambda: rigs.position(bpy.data.objects["Leaf"]).tolist())

    fresh()
    expected = fallen()
    assert bake.bake(bpy.context, fresh(), ["lower"], FRAMES).plays_alike
    assert fallen() == expected


def test_the_range_of_the_action_is_in_scene_frames(bake: Any) -> None:
    ob, _target = crowded_arm()
    render = bpy.context.scene.render
    render.frame_map_old, render.frame_map_new = 100, 200
    assert bake.frame_range(bpy.context.scene, ob, "ACTION") == (2, 40)


@pytest.mark.usefixtures("_namespace")
def test_all_frames_are_counted_on_which_blender_shows_a_target_elsewhere(bake: Any) -> None:
    ob, target = crowded_arm()
    ob.ik_addon.live = False
    chain = ob.pose.bones["lower"].ik_addon

    def leave_once_baked(_scene: bpy.types.Scene) -> None:
        target.location.x = 0.6 if chain.enabled or bpy.context.scene.frame_current > 10 else 0.1

    bpy.app.handlers.frame_change_pre.append(leave_once_baked)
    report = bake.bake(bpy.context, ob, ["lower"], FRAMES)
    assert report.missed == 10
    assert report.error == pytest.approx(0.5 / rigs.length(ob, "lower", 2), abs=CLOSE)


def test_unkeyed_values_elsewhere_stay(bake: Any) -> None:
    ob, target = crowded_arm()
    rigs.add_bones(ob, [(2, 0, 0), (2, 0, 1)], ["free"])
    for own, path in ((target, "location"), (ob.pose.bones["free"], "scale")):
        rigs.key(own, path, {1: (0.6, 0.5, 1.0), 20: (-0.5, 0.9, 0.8)})
    ob.ik_addon.live = False
    scene, extra = bpy.context.scene, bpy.data.objects["Extra"]
    other = rigs.limb(rigs.straight(2), ["a", "b"], name="Other")
    rigs.key(other.pose.bones["a"], "rotation_quaternion", {1: (1, 0, 0, 0), 20: (0.9, 0.1, 0.3, 0.0)})
    key_control(scene)
    extra["dial"] = 0.0
    extra.keyframe_insert('["dial"]', frame=1)
    rigs.key(ob, "rotation_euler", {1: (0, 0, 0), 20: (0, 0, 0.5)})
    for frame in (1, 20):
        ob.keyframe_insert('pose.bones["lower"].ik_addon.pole_angle', frame=frame)
    scene.frame_set(7)
    edits: list[tuple[Any, str, Any]] = [
        (extra, "location", (7.0, 8.0, 9.0)),
        (other.pose.bones["a"], "rotation_quaternion", (0.5, 0.5, 0.5, 0.5)),
        (ob, "rotation_euler", (0.25, 0.0, 0.0)),
        (ob.pose.bones["free"], "scale", (2.0, 3.0, 4.0)),
        (ob.pose.bones["lower"].ik_addon, "pole_angle", 0.125),
    ]
    for owner, path, value in edits:
        setattr(owner, path, value)
    scene["control"], extra["dial"] = 0.75, 3.0
    bake.bake(bpy.context, ob, ["lower"], FRAMES)
    for _ in range(2):
        assert scene.frame_current == 7
        for owner, path, value in edits:
            assert getattr(owner, path) == value or tuple(getattr(owner, path)) == value, path
        assert (scene["control"], extra["dial"]) == (0.75, 3.0)
        bpy.context.view_layer.update()


# ---- when a bake fails, the animation is as before; what it does not bake stays unchanged


BAKED = list(range(5, 15))
FAULTS = 8
"""Number of places in a bake where an error is raised."""


def changes(before: dict[str, Any], part: str = "") -> set[str]:
    """Return what is otherwise in the file now, of what has this in its path."""
    bpy.context.view_layer.update()
    after = whole_file()
    return {path for path in before.keys() | after.keys() if part in path and before.get(path) != after.get(path)}


def keys_outside(ob: bpy.types.Object) -> dict[tuple[str, int], list[dict[str, str]]]:
    """Return all of the keys before and after `BAKED`, by F-curve."""
    return {
        (curve.data_path, curve.array_index): [
            {name: repr(getattr(key, name)) for name in key.bl_rna.properties.keys() if name != "rna_type"}  # noqa: SIM118
            for key in curve.keyframe_points
            if not BAKED[0] <= key.co[0] <= BAKED[-1]
        ]
        for curve in rigs.fcurves(ob)
    }


def busy_arm(way: str = "told") -> bpy.types.Object:
    """An arm with keys of every kind on the bones to bake, surrounded by everything that a bake might harm.

    If `way` is "stepped", a constraint on its target makes a bake evaluate each frame.
    """
    ob, target = rigs.arm()
    if way == "stepped":
        rigs.constrain(target, "COPY_LOCATION")
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
        ob = busy_arm(way)
        ob.ik_addon.live = live
        bpy.context.scene.frame_set(12)
        return ob

    entered = partial(counts, Path(bake.__file__).parents[1])
    for _ in range(2):  # the first run fills caches, and so enters more functions than the second
        ob = fresh()
        with failing(None, entered) as called:
            bake.bake(bpy.context, ob, ["lower"], BAKED, new_action=new_action)
    last = len(called) - 2
    assert last > 300
    ob = fresh()
    before = whole_file()
    for at in sorted({*np.linspace(0, last, FAULTS).astype(int).tolist(), *range(last - 5, last + 1)}):
        with pytest.raises(FaultError), failing(at, entered):
            bake.bake(bpy.context, ob, ["lower"], BAKED, new_action=new_action)
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
    ob = busy_arm(way)
    if SLOTS:
        second, _target = rigs.arm()
        data: Any = second.animation_data_create()
        data.action = ob.animation_data.action
        data.action_slot = data.action.slots.new(id_type="OBJECT", name="Second")
        second.pose.bones["upper"].keyframe_insert("rotation_quaternion", frame=8)
    before, outside, frame = whole_file(), keys_outside(ob), bpy.context.scene.frame_current
    assert bake.bake(bpy.context, ob, ["lower"], BAKED).plays_alike
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
    bake.bake(bpy.context, ob, ["lower"], BAKED)
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
    monkeypatch.setattr(addon.module("rig.read.fcurves"), "NOISE", -1.0)  # so that F-curves are never trusted
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 20: (-0.4, 0.7, 1.2)})
    rigs.add_bones(ob, [(2, 0, 0), (2, -0.2, 1), (2, 0, 2)], ["thigh", "shin"])
    ob.pose.bones["shin"].rotation_quaternion = (0.9, 0.3, 0.2, 0.1)
    rigs.chain(ob, "shin", target, 2)
    bpy.context.scene.frame_set(1)
    before = [ob.pose.bones[name].rotation_quaternion[:] for name in ("thigh", "shin")]
    rigs.go_live(ob)
    todo = bake.bake_stepwise(bpy.context, ob, ["lower"], BAKED)
    assert len(list(todo)) > len(BAKED)
    assert not ob.pose.bones["lower"].ik_addon.enabled
    ob.ik_addon.live = False
    assert [ob.pose.bones[name].rotation_quaternion[:] for name in ("thigh", "shin")] == before
