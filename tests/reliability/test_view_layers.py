"""A rig has the same pose whichever view layers it and its targets are in."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
import pytest
from numpy.typing import NDArray

from tests import rigs
from tests.live.test_handlers import animated_arm

if TYPE_CHECKING:
    from tests.conftest import Addon

Floats = NDArray[np.float32]

FIRST, SECOND = "First", "Second"
FRAMES = list(range(1, 21))
ORDERS = (FRAMES, FRAMES[::-1], random.Random(7).sample(FRAMES, len(FRAMES)))
EXCLUDED = {
    "nothing": ([], FIRST),
    "the rig from the first": (["Character"], FIRST),
    "the rig from the second": (["Character"], SECOND),
    "the target from the first": (["Controls"], FIRST),
    "the target from the second": (["Controls"], SECOND),
    "both from the first": (["Character", "Controls"], FIRST),
    "both from the second": (["Character", "Controls"], SECOND),
}
"""Collections to exclude, and from which view layer."""
SAME = 1e-6

excluding = pytest.mark.parametrize("excluded", EXCLUDED)
showing = pytest.mark.parametrize("shown", [FIRST, SECOND])
keyed_or_not = pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "unkeyed"])


def arm(keyed: bool) -> tuple[bpy.types.Object, bpy.types.Object]:
    """A live arm with a moving target; one bone is keyed, or none."""
    ob, target = animated_arm()
    if not keyed:
        ob.animation_data_clear()
    return ob, target


def in_collection(name: str, *objects: bpy.types.Object) -> None:
    """Move objects into a collection of the scene."""
    scene = bpy.context.scene
    collection = bpy.data.collections.new(name)
    scene.collection.children.link(collection)
    for ob in objects:
        scene.collection.objects.unlink(ob)
        collection.objects.link(ob)


def arm_in_layers(
    excluded: str, shown: str, keyed: bool = True
) -> tuple[bpy.types.Object, bpy.types.Object, dict[int, Floats]]:
    """A live arm in two view layers, one of them shown; its target; its poses in a single view layer."""
    expected = poses_alone(keyed)
    scene = bpy.context.scene
    ob, target = arm(keyed)
    ob.ik_addon.live = False
    in_collection("Character", ob)
    in_collection("Controls", target)
    scene.view_layers[0].name = FIRST
    scene.view_layers.new(SECOND)
    collections, layer = EXCLUDED[excluded]
    for collection in collections:
        scene.view_layers[layer].layer_collection.children[collection].exclude = True
    bpy.context.window.view_layer = scene.view_layers[shown]
    scene.frame_set(50)
    ob.ik_addon.live = True
    bpy.context.view_layer.update()
    return ob, target, expected


@cache
def poses_alone(keyed: bool) -> dict[int, Floats]:
    """The poses of a live arm in a single view layer; an empty file is open afterwards."""
    ob, _ = arm(keyed)
    found = {}
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        found[frame] = pose_in(bpy.context.view_layer, ob)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    return found


def layers_with(*objects: bpy.types.Object) -> list[bpy.types.ViewLayer]:
    """The view layers that contain all these objects."""
    return [layer for layer in bpy.context.scene.view_layers if all(ob in list(layer.objects) for ob in objects)]


def pose_in(layer: bpy.types.ViewLayer, ob: bpy.types.Object) -> Floats:
    """The pose of an armature as a view layer shows it."""
    layer.update()
    return evaluated_pose(ob, layer.depsgraph)


def evaluated_pose(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> Floats:
    """The pose matrices of an armature in a depsgraph."""
    bones = ob.evaluated_get(depsgraph).pose.bones
    values = np.empty(16 * len(bones), dtype=np.float32)
    bones.foreach_get("matrix", values)
    return values


def off(pose: Floats, expected: Floats) -> float:
    """Largest difference between two poses' matrices."""
    return float(np.abs(pose - expected).max())


def message(addon: Addon, ob: bpy.types.Object) -> str:
    """The message that the panel shows for the chain."""
    told: str = addon.module("live.reports").get(ob, "lower").message
    return told


@excluding
@showing
@keyed_or_not
def test_every_layer_that_has_the_rig_shows_the_solved_pose(
    addon: Addon, keyed: bool, shown: str, excluded: str
) -> None:
    ob, _, expected = arm_in_layers(excluded, shown, keyed)
    for frame in (frame for order in ORDERS for frame in order):
        bpy.context.scene.frame_set(frame)
        for layer in layers_with(ob):
            assert off(pose_in(layer, ob), expected[frame]) < SAME, f"frame {frame} in {layer.name}"
        assert message(addon, ob) == "Reached"


@excluding
@showing
@keyed_or_not
def test_a_moved_target_is_followed_in_every_layer(addon: Addon, keyed: bool, shown: str, excluded: str) -> None:
    ob, target, _ = arm_in_layers(excluded, shown, keyed)
    target.animation_data_clear()
    for x in (-0.4, 0.1, 0.3):
        target.location = (x, 0.4, 1.2)
        for layer in bpy.context.scene.view_layers:
            layer.update()
        for layer in layers_with(ob):
            layer.update()
            done = ob.evaluated_get(layer.depsgraph)
            tip = np.array(done.matrix_world @ done.pose.bones["lower"].tail)
            assert np.linalg.norm(tip - target.location) < 1e-5, layer.name
        assert message(addon, ob) == "Reached"


@excluding
@keyed_or_not
def test_all_frames_play_with_the_same_plan(
    addon: Addon, keyed: bool, excluded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan: Any = addon.module("rig.plan.plan").Plan
    make, made = plan.of.__func__, []

    def counted(*arguments: Any, **named: Any) -> Any:
        made.append(arguments)
        return make(*arguments, **named)

    monkeypatch.setattr(plan, "of", classmethod(counted))
    arm_in_layers(excluded, SECOND if EXCLUDED[excluded][1] == FIRST else FIRST, keyed)
    bpy.context.scene.frame_set(1)
    assert made
    made.clear()
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
    assert not made


@excluding
@showing
@keyed_or_not
def test_turning_live_off_restores_the_fk_pose(keyed: bool, shown: str, excluded: str) -> None:
    ob, _ = arm(keyed)
    ob.ik_addon.live = False
    bpy.context.scene.frame_set(9)
    fk = pose_in(bpy.context.view_layer, ob)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    ob, _, _ = arm_in_layers(excluded, shown, keyed)
    scene = bpy.context.scene
    for frame in (3, 12, 9):
        scene.frame_set(frame)
    ob.ik_addon.live = False
    scene.frame_set(9)
    for layer in layers_with(ob):
        assert np.array_equal(pose_in(layer, ob), fk), layer.name


class _Layers(bpy.types.RenderEngine):
    """Renders nothing; records the pose in each view layer."""

    bl_idname = "IK_TEST_LAYERS"
    bl_label = "Layers"
    bl_use_preview = False

    seen: dict[tuple[str, int], Floats]
    rig: str

    def render(self, depsgraph: bpy.types.Depsgraph) -> None:
        """Record the pose."""
        pose = evaluated_pose(bpy.data.objects[type(self).rig], depsgraph)
        type(self).seen[depsgraph.view_layer.name, depsgraph.scene.frame_current] = pose


@pytest.fixture
def engine() -> Iterator[type[_Layers]]:
    """The engine above, registered."""
    bpy.utils.register_class(_Layers)
    _Layers.seen = {}
    yield _Layers
    other: Any = "BLENDER_WORKBENCH"
    for scene in bpy.data.scenes:
        scene.render.engine = other
    bpy.utils.unregister_class(_Layers)


def rendered(engine: type[_Layers], ob: bpy.types.Object, frames: Sequence[int], folder: Path) -> None:
    """Render these frames in all view layers."""
    scene: Any = bpy.context.scene
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    scene.collection.objects.link(camera)
    scene.camera, scene.render.engine = camera, engine.bl_idname
    scene.render.resolution_x = scene.render.resolution_y = 8
    scene.render.filepath = str(folder / "frame")
    scene.frame_start, scene.frame_end = frames[0], frames[-1]
    engine.rig = ob.name
    bpy.ops.render.render(animation=True)


@excluding
@showing
@keyed_or_not
def test_every_layer_that_has_rig_and_target_renders_the_solved_pose(
    engine: type[_Layers], keyed: bool, shown: str, excluded: str, tmp_path: Path
) -> None:
    ob, target, expected = arm_in_layers(excluded, shown, keyed)
    frames = [5, 6, 7]
    rendered(engine, ob, frames, tmp_path)
    whole = layers_with(ob, target)
    assert len(whole) == (2 if excluded == "nothing" else 1)
    for layer in whole:
        for frame in frames:
            assert off(engine.seen[layer.name, frame], expected[frame]) < SAME, f"frame {frame} in {layer.name}"


def test_a_rig_that_follows_one_solved_in_another_layer_is_baked_there() -> None:
    leader, target, _ = arm_in_layers("the target from the first", SECOND)
    follower, goal = rigs.arm()
    follower.name = "Follower"
    goal.parent, goal.parent_type, goal.parent_bone = leader, "BONE", "lower"
    follower.ik_addon.live = True
    bpy.context.view_layer.update()
    scene = bpy.context.scene
    for name in (FIRST, SECOND):
        layer = bpy.context.window.view_layer = scene.view_layers[name]
        layer.objects.active = follower
        bake = partial(bpy.ops.ik_addon.bake, frame_range="CUSTOM", frame_start=20, frame_end=22)
        if target not in list(layer.objects):
            with pytest.raises(RuntimeError, match=r"'Follower' follows .* missing in this view layer"):
                bake()
            continue
        played = {}
        for frame in (20, 22):
            scene.frame_set(frame)
            played[frame] = pose_in(layer, follower)
        assert bake() == {"FINISHED"}
        for frame, pose in played.items():
            scene.frame_set(frame)
            assert off(pose_in(layer, follower), pose) < SAME
