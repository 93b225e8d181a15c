"""Physics on a live rig see the solved pose where its bones have no keys; else they are named, with what to do."""

import logging
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

__all__ = ["handlers", "recorder"]
Make = Callable[[bpy.types.Object], object]
LAST = 20


def mesh(name: str) -> bpy.types.Object:
    """Add a strip of two faces along the forearm."""
    points = [(0.1 * x, 0.0, 1.2 + 0.3 * z) for z in range(3) for x in range(2)]
    return rigs.mesh(name, points, [(0, 1, 3, 2), (2, 3, 5, 4)])


def skin(name: str, rig: bpy.types.Object) -> bpy.types.Object:
    """Add a mesh that the forearm deforms."""
    return rigs.deform(mesh(name), rig, {"lower": range(6)})


def cloth(rig: bpy.types.Object) -> bpy.types.Object:
    shirt = skin("Shirt", rig)
    made: Any = shirt.modifiers.new("Cloth", "CLOTH")
    shirt.vertex_groups.new(name="pin").add((0, 1), 1.0, "REPLACE")
    made.settings.vertex_group_mass = "pin"
    return shirt


def soft(rig: bpy.types.Object) -> bpy.types.Object:
    body = skin("Belly", rig)
    body.modifiers.new("Softbody", "SOFT_BODY")
    body.soft_body.goal_default = 0.8
    return body


def pinned_cloth_that_the_body_pushes(rig: bpy.types.Object) -> None:
    skin("Body", rig).modifiers.new("Collision", "COLLISION")
    mesh("Curtain").modifiers.new("Cloth", "CLOTH")


def cloth_below_an_empty(rig: bpy.types.Object) -> None:
    flag = mesh("Flag")
    flag.parent = rigs.empty("Holder")
    rigs.constrain(flag.parent, "CHILD_OF", target=rig, subtarget="lower")
    flag.modifiers.new("Cloth", "CLOTH")


def particles(rig: bpy.types.Object) -> None:
    skin("Fur", rig).modifiers.new("Sparks", "PARTICLE_SYSTEM")


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


def unrelated(_rig: bpy.types.Object) -> None:
    mesh("Curtain").modifiers.new("Cloth", "CLOTH")


def still_hair(rig: bpy.types.Object) -> None:
    made: Any = skin("Fur", rig).modifiers.new("Hair", "PARTICLE_SYSTEM")
    made.particle_system.settings.type = "HAIR"


DEPENDENT: dict[str, tuple[Make, str]] = {
    "cloth": (cloth, "'Cloth' of 'Shirt'"),
    "soft body": (soft, "'Softbody' of 'Belly'"),
    "cloth that a skin pushes": (pinned_cloth_that_the_body_pushes, "'Cloth' of 'Curtain'"),
    "cloth below a constrained empty": (cloth_below_an_empty, "'Cloth' of 'Flag'"),
    "particles": (particles, "'Sparks' of 'Fur'"),
    "rigid bodies": (pushed_ball, "'Rigid Body World' of 'Scene'"),
}


def moving_arm() -> bpy.types.Object:
    """Return an arm whose target moves, not live yet."""
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), LAST: (-0.6, 0.7, 0.8)})
    bpy.context.scene.frame_end = LAST
    bpy.context.scene.frame_set(1)
    return ob


def live_arm() -> bpy.types.Object:
    ob = moving_arm()
    for name in ("upper", "lower"):
        rigs.key(ob.pose.bones[name], "rotation_quaternion", {1: (1.0, 0.1, 0.0, 0.0), 20: (1.0, 0.2, 0.0, 0.0)})
    rigs.go_live(ob)
    return ob


def said(addon: Addon, ob: bpy.types.Object) -> str:
    """Return what the panel says."""
    simulations = addon.module("live.simulations")
    return str(simulations.warning(ob, bpy.context.scene)) if simulations.is_late(ob) else ""


@pytest.mark.parametrize("kind", DEPENDENT)
def test_physics_on_a_live_rig_are_named_until_it_is_baked(addon: Addon, kind: str) -> None:
    make, name = DEPENDENT[kind]
    ob = live_arm()
    assert not said(addon, ob)
    make(ob)
    bpy.context.view_layer.update()
    assert said(addon, ob) == f"Physics don't see what Live solves: {name}. Bake IK first, then simulate"
    ob.ik_addon.live = False
    assert not said(addon, ob)
    ob.ik_addon.live = True
    rigs.bake(ob, 1, 5)
    assert not said(addon, ob)


@pytest.mark.parametrize("make", [unrelated, still_hair])
def test_other_physics_are_not_mentioned(addon: Addon, make: Make) -> None:
    ob = live_arm()
    make(ob)
    bpy.context.view_layer.update()
    assert not said(addon, ob)


def test_a_render_says_so_before_it_begins(
    recorder: type[Recorder], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    cloth(live_arm())
    set_up(bpy.context.scene, tmp_path)
    with caplog.at_level(logging.WARNING):
        render(1, 2)
    (record,) = [record for record in caplog.records if "Physics" in record.getMessage()]
    assert record.getMessage().startswith("Rig: Physics don't see what Live solves: 'Cloth' of 'Shirt'")
    assert len(recorder.seen) == 2


# ---- bones without keys

SOLVED = {"cloth": cloth, "soft body": soft, "rigid bodies": pushed_ball}


def build(kind: str) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return such an arm, and what is simulated on it, in an empty file."""
    rigs.new_file()
    ob = moving_arm()
    return ob, SOLVED[kind](ob)


def played(body: bpy.types.Object) -> dict[float, Any]:
    """Return the shape or place of what is simulated, on each frame of a first play."""
    return rigs.on_frames(range(1, LAST + 1), lambda: rigs.vertices(body))


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
@pytest.mark.parametrize("kind", SOLVED)
def test_a_simulation_sees_the_solved_pose_where_no_keys_overwrite_it(handlers: Add, kind: str, neighbor: bool) -> None:
    wanted = expected(kind)
    ob, body = build(kind)
    if neighbor:
        handlers("frame_change_post", lambda *_: None, False)
    rigs.go_live(ob)
    off = [float(np.abs(shape - wanted[frame]).max()) for frame, shape in played(body).items()]
    assert max(off) < 1e-4, off
