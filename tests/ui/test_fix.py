"""One click fixes what keeps a chain from being solved, and nothing else."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bpy
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.faults import FAULTS, Limb, on
from tests.reliability.states import activate, add, refused


@pytest.mark.parametrize("live", [True, False], ids=["live", "not live"])
@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.message or fault.label])
def test_each_fault_is_named_and_fixed_by_its_button(addon: Addon, name: str, live: bool) -> None:
    fault = FAULTS[name]
    ob, _target = rigs.arm()
    fk = [bone.rotation_quaternion[:] for bone in ob.pose.bones]
    rigs.change(ob.ik_addon, live=live)
    limb = Limb(ob.pose.bones["lower"])
    fault.make(limb)
    activate(ob, "lower")
    bpy.context.view_layer.update()
    if live:
        bpy.context.scene.frame_set(7)
    else:
        said, _remarks, fix = addon.module("ui.panels.chain").findings(bpy.context, ob.pose.bones["lower"])
        assert fix == fault.label or not (said and fault.label), "it is offered before anything is solved"
        with refused("Nothing was solved"):
            bpy.ops.ik_addon.solve()
    report = addon.report(ob)
    assert report.failed
    assert fault.message in report.message
    assert name == "driver" or [bone.rotation_quaternion[:] for bone in ob.pose.bones[:2]] == fk
    if not fault.label:
        return
    assert addon.fix(ob.pose.bones["lower"]).label == fault.label
    bpy.ops.ik_addon.fix(tip="lower")
    if not live:
        assert addon.report(ob) is None
        bpy.ops.ik_addon.solve()
    assert not addon.report(ob).failed
    with refused("Nothing to fix"):
        bpy.ops.ik_addon.fix(tip="lower")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("location", (math.nan, 0.0, 0.0), "The transform of bone 'spine' is not a finite number. Reset it"),
        ("scale", (0.0, 0.0, 0.0), "'spine' is scaled to zero. Reset its scale"),
    ],
)
def test_the_bone_above_a_chain_is_named_where_it_is_the_cause(
    addon: Addon, field: str, value: Any, message: str
) -> None:
    """The limb, and a pole that the bone carries, are well."""
    ob = rigs.limb([(0.0, 0.0, 0.0), (0.0, 0.0, 1.0)], ["spine"])
    rigs.add_bones(ob, [(0.2, 0.0, 1.0), (0.6, 0.1, 1.0), (1.0, 0.0, 1.0)], ["upper", "lower"], "spine", connect=False)
    add(ob, "lower", live=True, with_pole=True, controls="EMPTIES")
    assert ob.pose.bones["lower"].ik_addon.pole.parent_bone == "spine"
    setattr(ob.pose.bones["spine"], field, value)
    with refused(message):
        bpy.ops.ik_addon.solve()
    assert addon.report(ob).message == message
    assert addon.fix(ob.pose.bones["lower"]).label == "Reset 'spine'"
    assert bpy.ops.ik_addon.chain_remove() == {"FINISHED"}
    activate(ob, "lower")
    with refused(message):
        bpy.ops.ik_addon.chain_add()


@pytest.mark.parametrize(
    "name", ["target on its own chain", "target constrained to its own chain", "its own hand as target"]
)
def test_a_target_detached_from_its_chain_stays_in_place(name: str, limb: Limb) -> None:
    FAULTS[name].make(limb)
    rigs.go_live(limb.ob)

    def place() -> Any:
        return rigs.head(limb.ob, "hand") if "hand" in limb.ob.pose.bones else rigs.position(limb.target)

    before = place()
    bpy.ops.ik_addon.fix(tip="lower")
    assert abs(place() - before).max() < 1e-5


@pytest.mark.parametrize(
    ("end_bone", "location"), [("", (0.6, 0.5, 1.0)), ("hand", (0.6, 0.5, 1.0)), ("", (3.0, 3.0, 3.0))]
)
def test_a_new_target_keeps_the_shown_pose(end_bone: str, location: tuple[float, float, float], limb: Limb) -> None:
    rigs.add_bones(limb.ob, [(0, 0, 2), (0, -0.2, 2.3)], ["hand"], parent="lower")
    chain = limb.chain
    chain.end_bone, chain.use_end_rotation = end_bone, bool(end_bone)
    limb.target.location = location
    rigs.go_live(limb.ob)
    chain.target = None
    before = rigs.pose(limb.ob)
    bpy.ops.ik_addon.fix(tip="lower")
    assert abs(rigs.pose(limb.ob) - before).max() < 1e-4
    assert chain.target.name == "IK Target lower"


def two_arms() -> bpy.types.Object:
    ob, _target = rigs.arm()
    rigs.add_arm(ob, 2, ["upper 2", "lower 2"], "Second")
    return ob


def hang(goal: bpy.types.Object, ob: bpy.types.Object, bone: str) -> None:
    goal.parent, goal.parent_type, goal.parent_bone = ob, "BONE", bone


@pytest.mark.parametrize("tip", ["lower", "lower 2"])
def test_a_dependency_loop_is_broken_with_a_new_target(addon: Addon, tip: str) -> None:
    ob = two_arms()
    for own, other in (("lower", "lower 2"), ("lower 2", "lower")):
        hang(ob.pose.bones[own].ik_addon.target, ob, other)
    rigs.go_live(ob)
    assert addon.report(ob, tip).message.startswith("Dependency loop with")
    assert addon.fix(ob.pose.bones[tip]).label == "Make Own Target"
    bpy.ops.ik_addon.fix(tip=tip)
    assert not any(addon.report(ob, own).failed for own in ("lower", "lower 2"))


def test_a_loop_through_a_root_is_broken_at_an_attached_target(addon: Addon) -> None:
    ob = two_arms()
    rigs.add_bones(ob, [(0, 0, 2), (0, 0.2, 3), (0, 0, 4)], ["above", "top"], parent="lower")
    rigs.chain(ob, "top", rigs.empty("Free", (0.5, 0.4, 3.0)), 2)
    hang(ob.pose.bones["lower"].ik_addon.target, ob, "lower 2")
    hang(ob.pose.bones["lower 2"].ik_addon.target, ob, "top")
    rigs.go_live(ob)
    assert addon.report(ob, "top").message.startswith("Dependency loop with")
    assert addon.fix(ob.pose.bones["top"]).label == "Make Own Target for 'lower'"
    bpy.ops.ik_addon.fix(tip="top")
    assert not any(addon.report(ob, tip).failed for tip in ("lower", "lower 2", "top"))


def test_a_hand_posed_by_two_chains_is_left_to_one(addon: Addon) -> None:
    ob, _target = rigs.arm()
    rigs.add_bones(ob, [(0, 0, 2), (0, 0, 2.4)], ["hand"], parent="lower")
    chain = ob.pose.bones["lower"].ik_addon
    chain.end_bone, chain.use_end_rotation = "hand", True
    rigs.chain(ob, "hand", rigs.empty("Other", (0.3, 0.2, 1.5)), 1)
    rigs.go_live(ob)
    assert addon.fix(ob.pose.bones["lower"]).label == "Set Follow Rotation to None"
    bpy.ops.ik_addon.fix(tip="lower")
    assert not any(addon.report(ob, tip).failed for tip in ("lower", "hand"))


def _push(limb: Limb, *, connected: bool) -> None:
    """Let one bone push its root to its target, which it could reach if it were not connected."""
    limb.chain.chain_length, limb.chain.out_of_reach = 1, "PUSH_ROOT"
    limb.target.location = (0.0, 0.0, 2.0)
    if not connected:
        with rigs.edit_mode(limb.ob) as bones:
            bones["lower"].use_connect = False
        limb.ob.pose.bones["lower"].driver_add("location", 0)


def _lock(limb: Limb) -> None:
    """Lock the upper bone, and make a hinge of the lower one."""
    limb.upper.lock_ik_x = limb.upper.lock_ik_y = limb.upper.lock_ik_z = limb.lower.lock_ik_y = True


REMARKS: tuple[tuple[str, Callable[[Limb], object]], ...] = (
    ("Set Chain Length to 2", on("chain", chain_length=5)),
    ("Disconnect 'lower'", lambda limb: _push(limb, connected=True)),
    ("Mute Drivers", lambda limb: _push(limb, connected=False)),
    ("Unlock 'upper'", _lock),
    ("Enable Target in Renders", on("target", hide_render=True)),
    ("Enable Target in Renders", lambda limb: setattr(rigs.in_collection("T", limb.target), "hide_render", True)),
)
"""Buttons, and what they help with."""


@pytest.mark.parametrize(("label", "make"), REMARKS)
def test_a_remark_has_a_button_that_ends_it(
    addon: Addon, label: str, make: Callable[[Limb], object], limb: Limb
) -> None:
    limb.target.location = (9.0, 0.0, 0.0)
    bpy.ops.ik_addon.solve()
    assert addon.fix(limb.lower) is None, "none helps where a target is out of reach"
    limb.target.location = (0.6, 0.5, 1.0)
    bpy.ops.ik_addon.solve()
    make(limb)
    bpy.ops.ik_addon.solve()
    assert addon.fix(limb.lower).label == label
    bpy.ops.ik_addon.fix(tip="lower")
    bpy.ops.ik_addon.solve()
    assert addon.fix(limb.lower) is None
    assert addon.report(limb.ob).reached
    assert label != "Unlock 'upper'" or limb.lower.lock_ik_y, "a hinge is meant"


# ---- faults of the whole armature


def mended(addon: Addon, label: str) -> None:
    """Press the button that the panel shows, and assert that no fault remains."""
    active, rig = addon.module("ui.operators.active"), addon.module("ui.operators.fixes")
    assert rig.rig_fix_of(bpy.context).label == label
    assert bpy.ops.ik_addon.fix() == {"FINISHED"}
    assert active.obstacle(bpy.context) == ""
    assert rig.rig_fix_of(bpy.context) is None


@pytest.mark.parametrize("active", ["nothing", "an empty", "a skin"])
def test_the_button_selects_an_armature(addon: Addon, active: str, limb: Limb) -> None:
    other, stray = rigs.armature("Another"), rigs.empty("Stray")
    rigs.add_bones(other, rigs.straight(1), ["bone"])
    skin = rigs.mesh("Skin", [], [])
    skin.modifiers.new("Armature", "ARMATURE").object = other
    bpy.context.view_layer.objects.active = {"nothing": None, "an empty": stray, "a skin": skin}[active]
    mended(addon, "Select 'Another'" if active == "a skin" else "Select 'Rig'")
    assert bpy.context.view_layer.objects.active == (other if active == "a skin" else limb.ob)


def test_the_button_leaves_edit_mode(addon: Addon, limb: Limb) -> None:
    bpy.ops.object.mode_set(mode="EDIT")
    mended(addon, "Pose Mode")
    assert limb.ob.mode == "POSE"


@pytest.mark.parametrize("instanced", [False, True])
def test_the_button_overrides_a_linked_armature(addon: Addon, tmp_path: Path, instanced: bool) -> None:
    ob, target = rigs.arm()
    library = tmp_path / "library.blend"
    bpy.data.libraries.write(str(library), {rigs.in_collection("Character", ob, target)})
    rigs.new_file()
    (linked,) = rigs.from_library(library, "collections", "Character")
    scene = bpy.context.scene
    if instanced:
        empty = rigs.empty("Character")
        empty.instance_type, empty.instance_collection = "COLLECTION", linked
        bpy.context.view_layer.objects.active = empty
    else:
        scene.collection.children.link(linked)
        bpy.context.view_layer.objects.active = scene.objects["Rig"]
    bpy.context.view_layer.update()
    mended(addon, "Make Library Override")
    made = bpy.context.view_layer.objects.active
    assert made.override_library is not None
    assert sorted(own.name for own in scene.objects) == ["Rig", "Target"], "nothing is there twice"
    rigs.go_live(made)
    target = made.pose.bones["lower"].ik_addon.target
    assert abs(rigs.tail(made, "lower") - rigs.position(target)).max() < 1e-4
    made.override_library.is_system_override = True
    mended(addon, "Make Override Editable")


def test_more_iterations_are_offered_when_they_ran_out(addon: Addon) -> None:
    ob = rigs.limb([(0.0, 0.0, 0.0), (2.9, -1.5, -0.5), (6.4, -0.4, 0.6), (5.8, -2.5, 0.9)], list("abc"))
    tip = rigs.chain(ob, "c", rigs.empty("Target", (-0.1, -0.9, -0.1)), 3, iterations=1)
    activate(ob, "c")
    bpy.ops.ik_addon.solve()
    before = addon.report(ob, "c")
    assert before.message == "Missed by 4.6% of its length. Increase Iterations"
    assert addon.fix(tip).label == "Increase Iterations to 2"
    bpy.ops.ik_addon.fix(tip="c")
    assert tip.ik_addon.iterations == 2
    bpy.ops.ik_addon.solve()
    assert addon.report(ob, "c").error < 0.1 * before.error


def test_more_iterations_are_not_offered_when_they_change_nothing(addon: Addon) -> None:
    ob = rigs.limb(rigs.bent(3), list("abc"))
    ob.pose.bones["a"].scale = (1.8, 0.6, 2.2)
    tip = rigs.chain(ob, "c", rigs.empty("Target", (-0.3, -0.5, 1.2)), 3)
    activate(ob, "c")
    bpy.ops.ik_addon.solve()
    report = addon.report(ob, "c")
    assert report.message == "Missed by 49% of its length. Use uniform bone scale"
    assert addon.fix(tip) is None
    tip.ik_addon.iterations = 1000
    bpy.ops.ik_addon.solve()
    assert addon.report(ob, "c").error == report.error


def test_lock_interface_is_offered_if_renders_need_it(addon: Addon) -> None:
    needs_lock = addon.module("ui.operators.fixes").needs_lock
    ob, _target = rigs.arm()
    scene, chain = bpy.context.scene, ob.pose.bones["lower"].ik_addon
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    scene.collection.objects.link(camera)
    for owner, setting, value, needed, why in (
        (scene, "frame_end", 250, False, "nothing is live, and there is no camera"),
        (ob.ik_addon, "live", True, False, "nothing can be rendered without a camera"),
        (scene, "camera", camera, True, ""),
        (chain, "enabled", False, False, ""),
        (chain, "enabled", True, True, ""),
        (scene, "frame_end", scene.frame_start, False, "a still has no frames to change while it renders"),
        (scene, "frame_end", 250, True, ""),
    ):
        setattr(owner, setting, value)
        assert needs_lock(bpy.context) == needed, why or setting
    assert bpy.ops.ik_addon.lock_interface() == {"FINISHED"}
    assert scene.render.use_lock_interface
    assert not needs_lock(bpy.context)
