"""What other add-ons move before or after a frame is followed, wherever their handlers are in the lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.reliability.test_neighbors import Add, handlers
from tests.renders import Recorder, recorder, render, set_up
from tests.rigs import apart, miss

__all__ = ["handlers", "recorder"]
NEAR = 1e-5
FRAMES = (5, 9, 20, 5)


def circling(target: bpy.types.Object) -> Callable[..., None]:
    """Return a handler that moves a target by the frame."""
    name = target.name

    def move(scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph | None = None) -> None:
        x = 0.02 * scene.frame_current
        bpy.data.objects[name].location = (0.6 - x, 0.5, 1.0 + 0.5 * x)

    return move


def bending(ob: bpy.types.Object, bone: str) -> Callable[..., None]:
    """Return a handler that turns a bone by the frame."""

    def move(scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph | None = None) -> None:
        ob.pose.bones[bone].rotation_quaternion = (1.0, 0.02 * scene.frame_current, 0.0, 0.0)

    return move


def arm_on_hips() -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a live arm on another bone, and its target."""
    ob, target = rigs.arm()
    rigs.add_bones(ob, [(0, 0, -1), (0, 0, -0.5)], ["hips"])
    with rigs.edit_mode(ob) as bones:
        bones["upper"].parent = bones["hips"]
    return ob, target


def _target(handlers: Add, where: str, first: bool) -> bpy.types.Object:
    ob, target = rigs.arm()
    handlers(where, circling(target), first)
    return ob


def _live_already(handlers: Add, where: str, first: bool) -> bpy.types.Object:
    ob, target = rigs.arm()
    rigs.go_live(ob)
    handlers(where, circling(target), first)
    return ob


def _bone_above(handlers: Add, where: str, first: bool) -> bpy.types.Object:
    ob, _target = arm_on_hips()
    ob.pose.bones["lower"].ik_addon.out_of_reach = "STRETCH"
    handlers(where, bending(ob, "hips"), first)
    return ob


def _keyed_target(handlers: Add, where: str, first: bool) -> bpy.types.Object:
    """A jiggle on top of keys: Blender shows the target where the handler left it."""
    ob, target = rigs.animated_arm()
    handlers(where, circling(target), first)
    return ob


def _parent(handlers: Add, where: str, first: bool) -> bpy.types.Object:
    ob, target = rigs.arm()
    target.parent, target.location = rigs.empty("Prop"), (0.0, 0.0, 0.1)
    handlers(where, circling(target.parent), first)
    return ob


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("where", ["frame_change_pre", "frame_change_post"])
@pytest.mark.parametrize("moved", [_target, _live_already, _bone_above, _keyed_target, _parent])
def test_what_is_moved_around_the_frame_is_followed(
    addon: Addon, moved: Callable[[Add, str, bool], bpy.types.Object], handlers: Add, where: str, first: bool
) -> None:
    ob = moved(handlers, where, first)
    ob.ik_addon.live = False
    fk = rigs.on_frames(FRAMES, lambda: [ob.pose.bones[name].rotation_quaternion[:] for name in ("upper", "lower")])
    rigs.go_live(ob)
    found: rigs.Poses = {}
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        assert miss(ob) < NEAR, f"frame {frame}"
        assert addon.report(ob).reached
        assert not apart({frame: rigs.pose(ob)}, {frame: found.setdefault(frame, rigs.pose(ob))})
    ob.ik_addon.live = False
    assert [ob.pose.bones[name].rotation_quaternion[:] for name in ("upper", "lower")] == fk[FRAMES[-1]]


@pytest.mark.parametrize("first", [True, False])
def test_a_render_shows_the_tip_at_a_target_that_is_moved_after_the_frame(
    recorder: type[Recorder], handlers: Add, first: bool, tmp_path: Path
) -> None:
    ob, target = rigs.arm()
    rigs.go_live(ob)
    handlers("frame_change_post", circling(target), first)

    def distance(depsgraph: bpy.types.Depsgraph) -> float:
        rig: Any = ob.evaluated_get(depsgraph)
        tip = rig.matrix_world @ rig.pose.bones["lower"].tail
        return float(np.linalg.norm(np.array(tip - target.evaluated_get(depsgraph).matrix_world.translation)))

    recorder.note = staticmethod(distance)
    set_up(bpy.context.scene, tmp_path)
    render(3, 6)
    assert [frame for _scene, _layer, frame, _noted in recorder.seen] == [3, 4, 5, 6]
    assert max(noted for *_others, noted in recorder.seen) < 1e-4
