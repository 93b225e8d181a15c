"""Baked keys play like live solving, whatever the targets read from the scene, and the scene stays unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import bpy
import numpy as np
import pytest
from numpy.typing import NDArray

from tests import rigs

FRAMES = list(range(1, 21))
CLOSE = 1e-5
"""In chain lengths."""


def crowded_arm() -> tuple[bpy.types.Object, bpy.types.Object]:
    """A live arm and its target, in a scene with another animated object."""
    ob, target = rigs.arm()
    rigs.key(ob.pose.bones["upper"], "rotation_quaternion", {1: (1, 0, 0, 0), 20: (0.9, 0.1, 0.3, 0.0)})
    rigs.key(rigs.empty("Extra"), "location", {1: (0, 0, 0), 20: (1, 0, 0)})
    ob.ik_addon.live = True
    return ob, target


def drive(owner: Any, path: str, index: int, expression: str, read: Any = None, read_path: str = "") -> Any:
    """Drive a number; `f` in the expression is a value read from another data-block."""
    driver = owner.driver_add(path, index).driver
    driver.type, driver.expression = "SCRIPTED", expression
    if read is not None:
        variable = driver.variables.new()
        variable.name, variable.type = "f", "SINGLE_PROP"
        variable.targets[0].id_type = "SCENE" if isinstance(read, bpy.types.Scene) else "OBJECT"
        variable.targets[0].id, variable.targets[0].data_path = read, read_path
    return driver


def key_control(scene: bpy.types.Scene) -> None:
    """Key a custom property of a scene."""
    for frame, value in ((1, 0.0), (20, 1.0)):
        scene["control"] = value
        scene.keyframe_insert('["control"]', frame=frame)


def by_frame(_ob: bpy.types.Object, target: bpy.types.Object) -> None:
    drive(target, "location", 0, "0.6 - 0.06 * f", bpy.context.scene, "frame_current")


def by_property(_ob: bpy.types.Object, target: bpy.types.Object) -> None:
    key_control(bpy.context.scene)
    drive(target, "location", 0, "0.6 - 1.2 * f", bpy.context.scene, '["control"]')


def by_expression(_ob: bpy.types.Object, target: bpy.types.Object) -> None:
    drive(target, "location", 0, "0.6 - 0.06 * frame")


def by_python(_ob: bpy.types.Object, target: bpy.types.Object) -> None:
    drive(target, "location", 0, "0.6 - 0.06 * frame_of_the_window()")


def by_driven_constraint(_ob: bpy.types.Object, target: bpy.types.Object) -> None:
    constraint = target.constraints.new("COPY_LOCATION")
    constraint.target = rigs.empty("Place", (-0.6, 0.4, 1.2))
    key_control(bpy.context.scene)
    drive(constraint, "influence", -1, "f", bpy.context.scene, '["control"]')


def remapped(ob: bpy.types.Object, target: bpy.types.Object) -> None:
    bpy.context.scene.render.frame_map_old, bpy.context.scene.render.frame_map_new = 100, 150
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 20: (-0.5, 0.9, 0.8)})
    by_frame(ob, target)


def by_background(_ob: bpy.types.Object, target: bpy.types.Object) -> None:
    """The target reads the background scene and an object in it."""
    set_scene = bpy.data.scenes.new("Set")
    dial = bpy.data.objects.new("Dial", None)
    set_scene.collection.objects.link(dial)
    rigs.key(dial, "location", {1: (0, 0, 0), 20: (1, 0, 0)})
    key_control(set_scene)
    drive(target, "location", 0, "0.6 - 1.2 * f", dial, "location[0]")
    drive(target, "location", 1, "0.5 - 0.3 * f", set_scene, '["control"]')
    bpy.context.scene.background_set = set_scene


def by_handler(_ob: bpy.types.Object, target: bpy.types.Object) -> None:
    """Another add-on places the target, according to the scene in the context."""

    def place(_scene: bpy.types.Scene) -> None:
        target.location.x = 0.6 - 0.06 * bpy.context.scene.frame_current

    bpy.app.handlers.frame_change_pre.append(place)


READ: dict[str, Callable[[bpy.types.Object, bpy.types.Object], None]] = {
    "frame of the scene": by_frame,
    "property of the scene": by_property,
    "frame in an expression": by_expression,
    "Python": by_python,
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
        FRAMES,
        lambda: (rigs.head(ob, "upper"), rigs.head(ob, "lower"), rigs.tail(ob, "lower"), rigs.position(target)),
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
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 20: (-0.5, 0.9, 0.8)})
    ob.ik_addon.live = False
    scene: Any = bpy.context.scene
    extra = bpy.data.objects["Extra"]
    other = rigs.armature("Other")
    rigs.add_bones(other, rigs.straight(2), ["a", "b"])
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
        (ob.pose.bones["lower"].ik_addon, "pole_angle", 0.125),
    ]
    for owner, path, value in edits:
        setattr(owner, path, value)
    scene["control"], extra["dial"] = 0.75, 3.0
    bpy.context.view_layer.update()
    bake.bake(bpy.context, ob, ["lower"], FRAMES)
    for _ in range(2):
        assert scene.frame_current == 7
        found = [getattr(owner, path) for owner, path, _ in edits]
        assert [tuple(value) if hasattr(value, "__len__") else value for value in found] == [
            value for *_, value in edits
        ]
        assert (scene["control"], extra["dial"]) == (0.75, 3.0)
        bpy.context.view_layer.update()
