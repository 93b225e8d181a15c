"""A rig or chain that is broken or not ready does not stop others from being solved, and deleted ones are forgotten."""

import gc
import itertools
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import bpy
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.faults import FAULTS, Limb
from tests.reliability.states import failing


def unlinked(name: str = "Unlinked") -> bpy.types.Object:
    """An armature object as importers create it: in no scene yet and without a pose."""
    ob = bpy.data.objects.new(name, bpy.data.armatures.new(name))
    assert ob.pose is None
    return ob


def limbs(name: str, x: float) -> bpy.types.Object:
    """A live armature with two arms, "a" and "b"."""
    ob = rigs.armature(name)
    for i, arm in enumerate("ab"):
        rigs.add_arm(ob, x + 3.0 * i, [f"upper {arm}", f"lower {arm}"], f"{name} {arm}")
    rigs.go_live(ob)
    return ob


def steps() -> list[Callable[[], object]]:
    """Actions that make handlers run: moving targets, and stepping frames forward and back."""
    scene = bpy.context.scene

    def move() -> None:
        for ob in scene.objects:
            if ob.type == "EMPTY" and math.isfinite(ob.location.x):
                ob.location.x -= 0.05
        bpy.context.view_layer.update()

    return [move, lambda: scene.frame_set(scene.frame_current + 1), move, lambda: scene.frame_set(1), move]


def assert_solved(addon: Addon, ob: bpy.types.Object, *arms: str, what: str = "") -> None:
    """Assert that the arms are at their targets and that the panel says so."""
    for arm in arms:
        assert addon.report(ob, f"lower {arm}").message == "Reached", f"{what}: {ob.name} {arm}"
        assert rigs.miss(ob, f"lower {arm}") < 1e-5, f"{what}: {ob.name} {arm}"


OF_THE_ARMATURE = (
    *("rest position", "armature nowhere", "infinitely far armature"),
    *("armature scaled to zero", "armature scaled unevenly", "flat armature"),
)
"""Faults that keep all chains of the armature from being solved."""


# ---- armatures that have no pose yet


@pytest.mark.parametrize(
    "how", ["it exists", "it is live already", "it has the same data", "beside a copy", "disabled", "excluded"]
)
@pytest.mark.parametrize("before", [True, False], ids=["made before", "made while live"])
def test_an_armature_without_a_pose_disturbs_nothing(addon: Addon, before: bool, how: str, tmp_path: Path) -> None:
    new = unlinked() if before else None
    ob = limbs("Rig", 0.0)
    new = new or unlinked()
    if how == "it is live already":
        new.ik_addon.live = True
    elif how == "it has the same data":
        new.data = ob.data
    elif how == "beside a copy":
        ob.copy()
    elif how == "disabled":
        new.hide_viewport = True
        bpy.context.scene.collection.objects.link(new)
    elif how == "excluded":
        hidden = bpy.data.collections.new("Hidden")
        bpy.context.scene.collection.children.link(hidden)
        bpy.context.view_layer.layer_collection.children["Hidden"].exclude = True
        hidden.objects.link(new)
    for step in steps():
        step()
        assert_solved(addon, ob, "a", "b")
    bpy.ops.ed.undo_push(message="Test")
    bpy.ops.ed.undo_push(message="Test")
    bpy.ops.ed.undo()
    bpy.data.objects["Unlinked"].use_fake_user = True
    rigs.save_and_open(tmp_path / "shot.blend")
    ob = bpy.data.objects["Rig"]
    for step in steps():
        step()
        assert_solved(addon, ob, "a", "b")


def test_an_armature_is_solved_once_it_is_linked(addon: Addon) -> None:
    ob = limbs("Rig", 0.0)
    new = unlinked()
    new.ik_addon.live = True
    bpy.context.scene.frame_set(2)
    bpy.context.scene.collection.objects.link(new)
    rigs.add_bones(new, [(0.0, 5.0, 0.0), (0.0, 4.8, 1.0), (0.0, 5.0, 2.0)], ["upper c", "lower c"])
    rigs.chain(new, "lower c", rigs.empty("c", (0.5, 5.0, 1.2)), 2)
    bpy.context.view_layer.update()
    assert_solved(addon, new, "c")
    assert_solved(addon, ob, "a", "b")


@pytest.mark.parametrize("role", ["target", "pole"])
def test_a_goal_without_a_pose_is_reported(addon: Addon, role: str) -> None:
    ob = limbs("Rig", 0.0)
    tip = ob.pose.bones["lower a"].ik_addon
    setattr(tip, role, unlinked())
    setattr(tip, f"{role}_bone", "hand")
    for step in steps():
        step()
        assert addon.report(ob, "lower a").failed
        assert addon.report(ob, "lower a").message.startswith(f"'{getattr(tip, role).name}' was deleted or is excluded")
        assert "Internal error" not in addon.report(ob, "lower a").message
        assert_solved(addon, ob, "b")


def test_the_panel_and_all_operators_report_what_is_missing(addon: Addon) -> None:
    new = unlinked("New")
    new.hide_viewport = True
    bpy.context.scene.collection.objects.link(new)
    bpy.context.view_layer.objects.active = new
    assert bpy.context.active_object == new
    words = "'New' has no pose until it is shown for the first time. Enable it in viewports"
    assert addon.module("ui.operators.active").obstacle(bpy.context) == words
    for name in dir(bpy.ops.ik_addon):
        operator: Any = getattr(bpy.ops.ik_addon, name)
        if name not in {"drag_wheel", "grab", "lock_interface", "release"}:  # which need no armature
            with pytest.raises(RuntimeError, match="'New' has no pose"):
                operator()
    assert new.pose is None
    for name in dir(bpy.types):
        panel: Any = getattr(bpy.types, name)
        if name.startswith("VIEW3D_PT_ik_addon_") and hasattr(panel, "poll"):
            assert not panel.poll(bpy.context), name


# ---- faults


def test_a_fault_in_one_chain_leaves_the_others_solved(addon: Addon, tmp_path: Path) -> None:
    """Every other fault is found when the file is opened."""
    for opened, (name, fault) in zip(itertools.cycle((True, False)), FAULTS.items(), strict=False):
        rigs.new_file()
        other = limbs("Other", 10.0)
        ob = limbs("Rig", 0.0)
        fault.make(Limb(ob.pose.bones["lower a"]))
        bpy.context.view_layer.update()
        if opened:
            bpy.context.view_layer.objects.active = ob
            rigs.save_and_open(tmp_path / "shot.blend")
            other, ob = bpy.data.objects["Other"], bpy.data.objects["Rig"]
        for step in steps():
            step()
            if name not in OF_THE_ARMATURE:
                assert_solved(addon, ob, "b", what=name)
            assert_solved(addon, other, "a", "b", what=name)
            assert "Internal error" not in addon.report(ob, "lower a").message, name


@pytest.mark.expects_traceback  # printed to the console once
def test_an_unexpected_error_is_logged_once_and_leaves_the_other_chains_solved(
    addon: Addon, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ob = limbs("Rig", 0.0)
    groups = addon.module("rig.plan.groups")
    check = groups.check_numbers

    def fails(bone: bpy.types.PoseBone, *, limits: bool) -> None:
        if bone.name == "lower a":
            raise ZeroDivisionError("a fault in the extension itself")
        check(bone, limits=limits)

    monkeypatch.setattr(groups, "check_numbers", fails)
    ob.ik_addon.live = True
    for step in steps():
        step()
    assert_solved(addon, ob, "b")
    assert len(caplog.records) == 1
    assert "Internal error" in addon.report(ob, "lower a").message
    monkeypatch.undo()
    ob.pose.bones["lower a"].ik_addon.use_limits = not ob.pose.bones["lower a"].ik_addon.use_limits
    for step in steps():
        step()
    assert_solved(addon, ob, "a", "b")


# ---- errors anywhere, and deleted armatures

PLACES = 25
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
    "jump": lambda _targets: bpy.context.scene.frame_set(15),
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
    for number in range(0, len(called), max(1, len(called) // PLACES)):
        rigs.new_file()
        (sick, _), (healthy, _) = arms = two_arms()
        with failing(number, partial(is_about, sick, addon.package)) as names:
            STEPS[step]([target for _ob, target in arms])
        assert rigs.miss(healthy) < 1e-5, f"{names[-1]} failed"
        next_frame([])
        assert rigs.miss(healthy) < 1e-5, f"{names[-1]} failed on the frame before"
        rigs.change(sick, location=(0.01, 0.0, 0.0))
        assert rigs.miss(sick) < 1e-5, f"{names[-1]} failed before an edit"


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
