"""What a script edits between two frames counts on the next one, with or without an update in between."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import bpy
import pytest

from tests import rigs
from tests.conftest import Addon

AFTER = (8, 9, 3)
"""The frames shown after an edit on frame 7."""

Step = Callable[[], None]


def build(*, keyed: bool) -> None:
    """Make a live arm whose target is keyed, in a collection of its own, with constraints that are off."""
    ob, target = rigs.arm()
    rigs.in_collection("Goals", target)
    rigs.in_collection("Rigs", ob)
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 20: (-0.4, 0.6, 1.3)})
    other = rigs.empty("Other", (0.5, 0.3, 0.2))
    other.rotation_euler = (0.3, 0.2, 0.4)
    followers: tuple[tuple[Any, str], ...] = (
        (target, "COPY_LOCATION"),
        (ob.pose.bones["upper"], "COPY_ROTATION"),
    )
    for follower, kind in followers:
        constraint = follower.constraints.new(kind)
        constraint.target, constraint.mute = other, True
    if keyed:
        turns: dict[int, object] = {1: (1.0, 0.0, 0.0, 0.0), 20: (0.9, 0.3, 0.2, 0.1)}
        rigs.key(ob.pose.bones["upper"], "rotation_quaternion", turns)
    rigs.go_live(ob)


def rig() -> bpy.types.Object:
    return bpy.data.objects["Rig"]


def target() -> bpy.types.Object:
    return bpy.data.objects["Target"]


def layer(name: str) -> bpy.types.LayerCollection:
    return bpy.context.view_layer.layer_collection.children[name]


def lower() -> bpy.types.PoseBone:
    return rig().pose.bones["lower"]


def sets(owner: Callable[[], Any], name: str, *values: object) -> tuple[Step, ...]:
    return tuple(lambda value=value: setattr(owner(), name, value) for value in values)


def unlinks(name: str, ob: Callable[[], bpy.types.Object]) -> tuple[Step, Step]:
    def objects() -> Any:
        return bpy.data.collections[name].objects

    return lambda: objects().unlink(ob()), lambda: objects().link(ob())


def limit() -> None:
    lower().use_ik_limit_x, lower().ik_min_x, lower().ik_max_x = True, -0.2, 0.1
    lower().ik_addon.use_limits = True


def swap_armature() -> None:
    other = rigs.armature("Longer")
    rigs.add_bones(other, [(0, 0, 0), (0, -0.4, 1.5), (0, 0, 2.5)], ["upper", "lower"])
    rig().data = other.data


EDITS: dict[str, tuple[Step, ...]] = {
    "the target is hidden and shown": sets(target, "hide_viewport", True, False),
    "the target's collection is excluded and included": sets(lambda: layer("Goals"), "exclude", True, False),
    "the rig's collection is excluded and included": sets(lambda: layer("Rigs"), "exclude", True, False),
    "the target's collection is disabled and enabled": sets(
        lambda: bpy.data.collections["Goals"], "hide_viewport", True, False
    ),
    "the target is unlinked and linked": unlinks("Goals", target),
    "the rig is unlinked and linked": unlinks("Rigs", rig),
    "the rest position is shown and left": sets(lambda: rig().data, "pose_position", "REST", "POSE"),
    "a constraint on the target is switched on": sets(lambda: target().constraints[0], "mute", False),
    "a constraint on a bone is switched on and off": sets(
        lambda: rig().pose.bones["upper"].constraints[0], "mute", False, True
    ),
    "a rotation mode is changed and changed back": sets(lower, "rotation_mode", "XYZ", "QUATERNION"),
    "the rig is parented and unparented": (
        lambda: setattr(rig(), "parent", bpy.data.objects["Other"]),
        lambda: setattr(rig(), "parent", None),
    ),
    "the armature is replaced": (swap_armature,),
    "a limit is set": (limit, lambda: setattr(lower(), "ik_max_x", 1.2)),
    "the chain gets shorter": sets(lambda: lower().ik_addon, "chain_length", 1),
}
UPDATES: dict[str, Step] = {
    "no update": lambda: None,
    "an update": lambda: bpy.context.view_layer.update(),
    "a frame": lambda: bpy.context.scene.frame_set(7),
}


@pytest.mark.parametrize("keyed", [False, True])
def test_an_edit_by_a_script_counts_on_the_next_frame(addon: Addon, keyed: bool) -> None:
    """One walk through all edits, each with every kind of update between its steps, and some after them."""
    build(keyed=keyed)
    rng = random.Random(3)
    walk = [(edit, between, rng.choice(list(UPDATES)[:2])) for edit in EDITS for between in UPDATES]
    rng.shuffle(walk)
    for edit, between, at_the_end in walk:
        rigs.poses_at(rig(), (5, 6, 7))
        first, *rest = EDITS[edit]
        first()
        for step in rest:
            UPDATES[between]()
            step()
        UPDATES[at_the_end]()
        after = rigs.poses_at(rig(), AFTER)
        addon.module("live.registry").clear()
        bpy.context.scene.frame_set(20)
        assert not rigs.apart(rigs.poses_at(rig(), AFTER), after), f"{edit}: {between} between, {at_the_end} at the end"
