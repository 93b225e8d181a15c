"""A rig has the same pose whichever view layers it and its targets are in."""

import random
from functools import partial
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.renders import Recorder, recorder, render, set_up

__all__ = ["recorder"]
FIRST, SECOND = "First", "Second"
FRAMES = list(range(1, 13))
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
COMBINATIONS = [(keyed, shown) for keyed in (True, False) for shown in (FIRST, SECOND)]
"""Whether bones are keyed, and the view layer that is shown."""


def arm(keyed: bool) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a live arm with a moving target; its bones are keyed, or none."""
    rigs.new_file()
    ob, target = rigs.animated_arm()
    rigs.key(ob.pose.bones["upper"], "location", {1: (0, 0, 0), 20: (0.2, 0.1, 0), 50: (0, 0.1, 0.3)})
    rigs.key(ob.pose.bones["lower"], "rotation_mode", {1: "QUATERNION", 7: "XYZ"})
    if not keyed:
        ob.animation_data_clear()
    return ob, target


def arm_in_layers(excluded: str, shown: str, keyed: bool = True) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a live arm in two view layers, one of them shown, and its target."""
    ob, target = arm(keyed)
    scene = bpy.context.scene
    ob.ik_addon.live = False
    rigs.in_collection("Character", ob)
    rigs.in_collection("Controls", target)
    scene.view_layers[0].name = FIRST
    scene.view_layers.new(SECOND)
    collections, layer = EXCLUDED[excluded]
    for collection in collections:
        scene.view_layers[layer].layer_collection.children[collection].exclude = True
    bpy.context.window.view_layer = scene.view_layers[shown]
    scene.frame_set(50)
    rigs.go_live(ob)
    return ob, target


def layers_with(*objects: bpy.types.Object) -> list[bpy.types.ViewLayer]:
    """Return the view layers that contain all these objects."""
    return [layer for layer in bpy.context.scene.view_layers if all(ob in list(layer.objects) for ob in objects)]


def pose_in(layer: bpy.types.ViewLayer, ob: bpy.types.Object) -> Any:
    """Return the pose of an armature as a view layer shows it."""
    layer.update()
    return rigs.pose(ob, layer.depsgraph)


@pytest.mark.parametrize("excluded", EXCLUDED)
def test_every_layer_that_has_the_rig_shows_and_renders_the_solved_pose(
    addon: Addon, excluded: str, recorder: type[Recorder], tmp_path: Path
) -> None:
    for keyed, shown in COMBINATIONS:
        alone, _target = arm(keyed)
        expected = rigs.poses_at(alone, FRAMES)
        alone.ik_addon.live = False
        fk = rigs.poses_at(alone, [9])[9]

        ob, target = arm_in_layers(excluded, shown, keyed)
        where = f"keyed: {keyed}, shown: {shown}"
        set_up(bpy.context.scene, tmp_path)
        whole = {layer.name for layer in layers_with(ob, target)}
        assert len(whole) == (2 if excluded == "nothing" else 1)
        for order in ORDERS:
            recorder.seen = []
            render(5, 6)
            assert whole <= {layer for _scene, layer, _frame, _pose in recorder.seen}
            for _scene, name, at, pose in recorder.seen:
                assert name not in whole or not rigs.apart({at: pose}, {at: expected[at]}), f"{where}: {name}"
            for at in order:
                bpy.context.scene.frame_set(at)
                for layer in layers_with(ob):
                    assert not rigs.apart({at: pose_in(layer, ob)}, {at: expected[at]}), f"{where}: {layer.name}"
                assert addon.report(ob).message == "Reached", where

        ob.ik_addon.live = False
        bpy.context.scene.frame_set(9)
        for layer in layers_with(ob):
            assert np.array_equal(pose_in(layer, ob), fk), f"{where}: the FK pose in {layer.name}"


@pytest.mark.parametrize("excluded", EXCLUDED)
def test_a_moved_target_is_followed_in_every_layer(addon: Addon, excluded: str) -> None:
    for keyed, shown in COMBINATIONS:
        ob, target = arm_in_layers(excluded, shown, keyed)
        target.animation_data_clear()
        for x in (-0.4, 0.1, 0.3):
            target.location = (x, 0.4, 1.2)
            for layer in bpy.context.scene.view_layers:
                layer.update()
            for layer in layers_with(ob):
                layer.update()
                done = ob.evaluated_get(layer.depsgraph)
                tip = np.array(done.matrix_world @ done.pose.bones["lower"].tail)
                assert np.linalg.norm(tip - target.location) < 1e-5, f"keyed: {keyed}, {shown} shown: {layer.name}"
            assert addon.report(ob).message == "Reached"


def test_a_rig_that_follows_one_solved_in_another_layer_is_baked_there() -> None:
    leader, target = arm_in_layers("the target from the first", SECOND)
    follower, goal = rigs.arm()
    follower.name = "Follower"
    goal.parent, goal.parent_type, goal.parent_bone = leader, "BONE", "lower"
    rigs.go_live(follower)
    scene = bpy.context.scene
    for name in (FIRST, SECOND):
        layer = bpy.context.window.view_layer = scene.view_layers[name]
        layer.objects.active = follower
        bake = partial(bpy.ops.ik_addon.bake, frame_range="CUSTOM", frame_start=20, frame_end=22)
        if target not in list(layer.objects):
            with pytest.raises(RuntimeError, match=r"'Follower' follows .* missing in this view layer"):
                bake()
            continue
        played = rigs.poses_at(follower, (20, 22))
        assert bake() == {"FINISHED"}
        assert not rigs.apart(rigs.poses_at(follower, (20, 22)), played)
