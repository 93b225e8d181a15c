"""Armatures don't depend on each other's fate: a fault in one leaves others live, and deleted ones are forgotten."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from types import FrameType

import bpy
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import failing
from tests.rigs import miss

NEAR = 1e-5
FAULTS = 40
"""Number of places, spread evenly over what is called for an armature, at which a fault is tried."""


def is_about(ob: bpy.types.Object, package: str, frame: FrameType) -> bool:
    """Return whether a function of the extension is called with an armature object or one of its bones.

    Leaves out the room `live`, which is what has to catch faults.
    """
    module = str(frame.f_globals.get("__name__", ""))
    if not module.startswith(package) or ".live." in module or frame.f_code.co_name.startswith("<"):
        return False
    return any(
        (isinstance(value, bpy.types.Object) and value.name == ob.name)
        or (isinstance(value, bpy.types.PoseBone) and value.id_data.name == ob.name)
        for value in list(frame.f_locals.values())
    )


def two_arms() -> list[tuple[bpy.types.Object, bpy.types.Object]]:
    """Return two live arms; the first fails in the test. Its name is the first in Blender's lists."""
    found = []
    for name, x in (("A sick rig", 0.0), ("B healthy rig", 3.0)):
        ob = rigs.armature(name)
        target = rigs.add_arm(ob, x, ["upper", "lower"], f"target of {name}")
        rigs.key(target, "location", {1: (x + 0.6, 0.5, 1.0), 20: (x - 0.5, 0.9, 0.8)})
        found.append((ob, target))
    bpy.context.scene.frame_set(1)
    rigs.go_live(*(ob for ob, _target in found))
    return found


def next_frame(_targets: list[bpy.types.Object]) -> None:
    scene = bpy.context.scene
    scene.frame_set(scene.frame_current + 1)


def jump(_targets: list[bpy.types.Object]) -> None:
    bpy.context.scene.frame_set(15)


def move(targets: list[bpy.types.Object]) -> None:
    for target in targets:
        target.animation_data_clear()
        target.location.y += 0.1
    bpy.context.view_layer.update()


def limit(targets: list[bpy.types.Object]) -> None:
    """Change what a plan is made of."""
    for ob in bpy.data.objects:
        if ob.type == "ARMATURE":
            ob.pose.bones["lower"].use_ik_limit_x = True
            ob.data.update_tag()
    move(targets)


STEPS: dict[str, Callable[[list[bpy.types.Object]], None]] = {
    "next frame": next_frame,
    "jump": jump,
    "move": move,
    "structure": limit,
}


@pytest.mark.expects_traceback
@pytest.mark.parametrize("step", STEPS)
def test_a_fault_in_one_armature_leaves_the_other_live(addon: Addon, step: str) -> None:
    (sick, _), _ = arms = two_arms()
    with failing(None, partial(is_about, sick, addon.package)) as called:
        STEPS[step]([target for _ob, target in arms])
    assert called, "there is something to fail"
    for number in range(0, len(called), max(1, len(called) // FAULTS)):
        rigs.new_file()
        (sick, _), (healthy, _) = arms = two_arms()
        with failing(number, partial(is_about, sick, addon.package)) as names:
            STEPS[step]([target for _ob, target in arms])
        assert miss(healthy) < NEAR, f"{names[-1]} failed"
        next_frame([])
        assert miss(healthy) < NEAR, f"{names[-1]} failed on the frame before"


def test_deleted_armatures_are_forgotten(addon: Addon) -> None:
    def remembered() -> int:
        gc.collect()
        return sum(str(type(own).__module__).startswith(addon.package) for own in gc.get_objects())

    def make_and_delete() -> None:
        ob, target = rigs.arm()
        rigs.go_live(ob)
        bpy.context.scene.frame_set(bpy.context.scene.frame_current + 1)
        bpy.data.objects.remove(ob)
        bpy.data.objects.remove(target)
        bpy.context.view_layer.update()
        bpy.context.scene.frame_set(bpy.context.scene.frame_current + 1)

    for _ in range(3):
        make_and_delete()
    before = remembered()
    for _ in range(20):
        make_and_delete()
    assert remembered() < before + 20, "less than one thing for each"


def test_a_deleted_follower_changes_nothing_for_the_armature_that_it_followed() -> None:
    ob, _target = rigs.animated_arm()
    expected = rigs.poses_at(ob, range(1, 20))
    follower, goal = rigs.arm()
    goal.parent, goal.parent_type, goal.parent_bone = ob, "BONE", "lower"
    rigs.go_live(follower)
    rigs.poses_at(ob, (4, 5, 6))
    bpy.data.objects.remove(follower)
    bpy.context.view_layer.update()
    assert not rigs.apart(rigs.poses_at(ob, range(1, 20)), expected)
