"""Physics on a live rig: where its solved bones have no keys, simulations see the solved pose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.live.test_simulations import cloth, mesh, skin, vertices
from tests.reliability.test_neighbors import Add, handlers

__all__ = ["handlers"]
LAST = 20


def pushed_ball(rig: bpy.types.Object) -> bpy.types.Object:
    """Let a hand, which is parented to the forearm, push a ball."""
    bpy.ops.rigidbody.world_add()
    world: Any = bpy.context.scene.rigidbody_world
    world.collection = bpy.data.collections.new("Bodies")
    hand, ball = mesh("Hand"), mesh("Ball")
    hand.parent, hand.parent_type, hand.parent_bone = rig, "BONE", "lower"
    hand.location, ball.location = (0.0, 0.0, -1.2), (-0.1, 0.6, 0.1)
    for body in (hand, ball):
        world.collection.objects.link(body)
        bpy.context.view_layer.objects.active = body
        if body.rigid_body is None:
            bpy.ops.rigidbody.object_add()
        body.rigid_body.type = "PASSIVE" if body == hand else "ACTIVE"
        body.rigid_body.kinematic = body == hand
    return ball


def belly(rig: bpy.types.Object) -> bpy.types.Object:
    body = skin("Belly", rig)
    body.modifiers.new("Softbody", "SOFT_BODY")
    body.soft_body.goal_default = 0.8
    return body


KINDS: dict[str, Callable[[bpy.types.Object], bpy.types.Object]] = {
    "cloth": cloth,
    "soft body": belly,
    "rigid bodies": pushed_ball,
}


def build(kind: str) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return an arm whose target moves, not live yet, and what is simulated on it, in an empty file."""
    rigs.new_file()
    scene = bpy.context.scene
    scene.frame_end = LAST
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), LAST: (-0.6, 0.7, 0.8)})
    scene.frame_set(1)
    return ob, KINDS[kind](ob)


def played(body: bpy.types.Object) -> dict[float, Any]:
    """Return the shape or place of what is simulated, on each frame of a first play."""
    return rigs.on_frames(range(1, LAST + 1), lambda: vertices(body))


def expected(kind: str) -> dict[float, Any]:
    """Return the same for an arm whose solved pose is keyed."""
    ob, _body = build(kind)
    rigs.go_live(ob)
    turns = rigs.on_frames(range(1, LAST + 1), lambda: {b.name: b.rotation_quaternion[:] for b in ob.pose.bones})
    ob, body = build(kind)
    for bone in ob.pose.bones:
        rigs.key(bone, "rotation_quaternion", {int(frame): row[bone.name] for frame, row in turns.items()})
    return played(body)


@pytest.mark.parametrize("neighbor", [False, True], ids=["alone", "beside a neighbor's handler"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_simulation_sees_the_solved_pose_where_no_keys_overwrite_it(handlers: Add, kind: str, neighbor: bool) -> None:
    wanted = expected(kind)
    ob, body = build(kind)
    if neighbor:
        handlers("frame_change_post", lambda *_: None, False)
    rigs.go_live(ob)
    off = [float(np.abs(shape - wanted[frame]).max()) for frame, shape in played(body).items()]
    assert max(off) < 1e-4, off
