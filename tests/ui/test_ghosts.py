"""What a drag over a range shows of other frames."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Vector

from tests import rigs
from tests.conftest import Addon

NOW, REACH = 20, 6


@pytest.fixture
def arm() -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return an armature with a live arm whose target moves, with a key on every second frame."""
    ob, target = rigs.arm()
    places = {i: (0.3 * np.sin(i / 9.0), 0.4, 1.0 + 0.2 * np.cos(i / 7.0)) for i in range(1, 41, 2)}
    rigs.key(target, "location", places)
    rigs.go_live(ob)
    bpy.context.scene.frame_set(NOW)
    return ob, target


def begin(addon: Addon, ob: bpy.types.Object, frames: int = REACH) -> tuple[Any, Any]:
    """Return a drag of the target that reaches over frames, and what is shown of these."""
    reach = addon.module("targets.edit_range").EditRange(frames)
    drag = addon.module("targets.drag").Drag(bpy.context, ob.pose.bones["lower"], reach=reach)
    return drag, addon.module("ui.overlay.ghosts").Ghosts.of(bpy.context, drag)


def test_ghosts_and_trail_are_where_live_solving_poses_them(addon: Addon, arm: Any) -> None:
    ob, target = arm
    _drag, ghosts = begin(addon, ob)
    assert bpy.context.scene.frame_current == NOW
    frames = [NOW - 6, NOW - 3, NOW + 3, NOW + 6]
    ends = rigs.on_frames(frames, lambda: [(rigs.head(ob, bone), rigs.tail(ob, bone)) for bone in ("upper", "lower")])
    seen = ghosts.bones.reshape(len(frames), -1, 2, 3)
    names = [bone.name for bone in ob.pose.bones]
    for frame, lines in zip(frames, seen, strict=True):
        assert np.allclose(lines[[names.index("upper"), names.index("lower")]], ends[frame], atol=1e-5)
    path = rigs.on_frames(range(NOW - REACH, NOW + REACH + 1), lambda: rigs.position(target))
    assert np.allclose(ghosts.trail, list(path.values()), atol=1e-6)
    assert [NOW - REACH + i for i in np.flatnonzero(ghosts.keyed)] == [14, 15, 17, 19, 20, 21, 23, 25, 26]


def test_the_trail_moves_as_the_keys_will(addon: Addon, arm: Any) -> None:
    ob, target = arm
    drag, ghosts = begin(addon, ob)
    offset = Vector((0.1, -0.05, 0.1))
    drag.move(bpy.context, offset)
    drag.finish(bpy.context)
    trail = ghosts.moved(np.array(offset))
    for frame, place in rigs.on_frames((15, 17, 19, 20, 21, 23, 25), lambda: rigs.position(target)).items():
        assert np.allclose(place, trail[int(frame) - NOW + REACH], atol=1e-5)


def test_nothing_is_shown_without_a_range(addon: Addon, arm: Any) -> None:
    assert begin(addon, arm[0], 0)[1] is None
