"""Physics on a live rig: where its solved bones have no keys, simulations see the solved pose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.live.test_simulations import cloth, mesh, soft
from tests.reliability.test_neighbors import handlers

__all__ = ["handlers"]
LAST = 20
Shapes = list[np.ndarray[Any, Any]]


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
    soft(rig)
    body = bpy.data.objects["Belly"]
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


def played(body: bpy.types.Object) -> Shapes:
    """Return the shape or place of what is simulated, on each frame of a first play."""
    found: Shapes = []
    for frame in range(1, LAST + 1):
        bpy.context.scene.frame_set(frame)
        done: Any = rigs.evaluated(body)
        values = np.empty(3 * len(done.data.vertices), dtype=np.float32)
        done.data.vertices.foreach_get("co", values)
        points = values.reshape(-1, 3).astype(np.float64)
        world = np.array(done.matrix_world)
        found.append(points @ world[:3, :3].T + world[:3, 3])
    return found


def expected(kind: str) -> Shapes:
    """Return the same for an arm whose solved pose is keyed."""
    ob, _body = build(kind)
    bones = list(ob.pose.bones)
    rigs.go_live(ob)
    turns = {}
    for frame in range(1, LAST + 1):
        bpy.context.scene.frame_set(frame)
        turns[frame] = [bone.rotation_quaternion[:] for bone in bones]
    ob, body = build(kind)
    for frame, rows in turns.items():
        for bone, row in zip(ob.pose.bones, rows, strict=True):
            bone.rotation_quaternion = row
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    return played(body)


@pytest.mark.parametrize("neighbor", [False, True], ids=["alone", "beside a neighbor's handler"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_simulation_sees_the_solved_pose_where_no_keys_overwrite_it(
    handlers: Callable[[str, Callable[..., None], bool], None], kind: str, neighbor: bool
) -> None:
    wanted = expected(kind)
    ob, body = build(kind)
    if neighbor:
        handlers("frame_change_post", lambda *_: None, False)
    rigs.go_live(ob)
    off = [float(np.abs(shape - other).max()) for shape, other in zip(played(body), wanted, strict=True)]
    assert max(off) < 1e-4, off
