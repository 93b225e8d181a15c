"""Converting control rigs whose drivers switch constraints on and off; Rigify itself generates its rigs."""

from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from tests import rigs
from tests.chains.test_convert import PLACES, constraint, degrees_between, limb, matrices, state
from tests.conftest import Addon
from tests.reliability.states import refused, said
from tests.rigs_generated import Generated, generated, kept, rigify

__all__ = ["generated", "kept", "rigify"]
SWITCH = "switch"
"""A custom property of the armature object."""


def drive(ob: bpy.types.Object, made: Any, expression: str | None = None) -> Any:
    """Drive a constraint's mute by the switch of its armature."""
    curve = rigs.drive(made, "mute", -1, expression or "", ob, f'["{SWITCH}"]')
    if expression is None:
        curve.driver.type = "SUM"
    return curve


def turn(ob: bpy.types.Object, value: int) -> None:
    """Set the switch."""
    ob[SWITCH] = value
    ob.update_tag()
    bpy.context.view_layer.update()


def switched_limb(seed: int, way: str) -> tuple[bpy.types.Object, bpy.types.Object, Any]:
    """Return a limb that follows its target while the switch is 0, by the driver, its keys, or its modifier."""
    ob, target, made = limb(seed, pole=True)
    ob[SWITCH] = 0
    curve = drive(ob, made, "min(f, 1)" if way == "expression" else None)
    for modifier in list(curve.modifiers):
        curve.modifiers.remove(modifier)
    if way == "modifier":
        line: Any = curve.modifiers.new("GENERATOR")
        line.coefficients = (0.0, 1.0)
    elif way == "keys":
        for key in ((0.0, 0.0), (1.0, 1.0)):
            curve.keyframe_points.insert(*key).interpolation = "LINEAR"
    turn(ob, 0)
    return ob, target, made


def drivers(ob: bpy.types.Object) -> list[tuple[str, bool]]:
    """Return the paths of drivers, and whether they are muted."""
    return sorted((curve.data_path, curve.mute) for curve in ob.animation_data.drivers)


def switched(ob: bpy.types.Object, at: int) -> tuple[dict[int, list[Matrix]], Any, Any]:
    """Return the poses by the values of the switch, and state and drivers at one of these."""
    poses = {}
    for value in (0, 1):
        turn(ob, value)
        poses[value] = matrices(ob)
    assert degrees_between(poses[0], poses[1]) > 5.0
    turn(ob, at)
    return poses, state(ob), drivers(ob)


def assert_restored(ob: bpy.types.Object, before: Any, driven: Any) -> None:
    """Convert back; assert that everything is as it was."""
    assert bpy.ops.ik_addon.restore_constraints() == {"FINISHED"}
    assert state(ob) == before
    assert drivers(ob) == driven


WAYS = ("expression", "modifier", "keys", "plain")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("at", [0, 1])
def test_the_driver_of_a_constraint_switches_the_chain(way: str, at: int) -> None:
    ob, target, _made = switched_limb(3, way)
    poses, before, driven = switched(ob, at)
    assert bpy.ops.ik_addon.convert_constraints() == {"FINISHED"}
    for value in (0, 1, 0):
        turn(ob, value)
        assert degrees_between(poses[value], matrices(ob)) < 0.1
    target.location = PLACES[3]
    turn(ob, 0)
    assert np.linalg.norm(rigs.tail(ob, "lower") - rigs.position(target)) < 1e-5
    target.location = PLACES[0]
    turn(ob, at)
    assert_restored(ob, before, driven)


@pytest.mark.parametrize("at", [0, 1])
def test_drivers_of_the_pole_switch_the_chains_pole(at: int) -> None:
    ob, target, with_pole = limb(1, pole=True)
    without = constraint(ob, "lower", target, 2)
    without.name = "Without"
    ob[SWITCH] = 0
    drive(ob, with_pole, "1 - f")
    drive(ob, without, "f")
    places, before, driven = switched(ob, at)
    assert bpy.ops.ik_addon.convert_constraints() == {"FINISHED"}
    assert [bone.name for bone in ob.pose.bones if bone.ik_addon.is_chain] == ["lower"]
    for value in (0, 1, 0, 1):
        turn(ob, value)
        assert rigs.evaluated(ob).pose.bones["lower"].ik_addon.use_pole == bool(value)
        if value == at:
            assert degrees_between(places[value], matrices(ob)) < 0.1
        if value:  # without a pole there are many solutions
            elbow, before_it = matrices(ob)[1].translation, places[value][1].translation
            assert (elbow - before_it).length < 1e-3
    turn(ob, at)
    assert_restored(ob, before, driven)
    for value in (0, 1):
        turn(ob, value)
        assert (with_pole.mute, without.mute) == (not value, bool(value))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda made, curve: setattr(made, "influence", 0.5),
        lambda made, curve: made.keyframe_insert("influence", frame=1),
        lambda made, curve: curve.modifiers.new("CYCLES"),
    ],
)
def test_a_switch_that_cannot_become_an_influence_is_refused(spoil: Any) -> None:
    ob, _target, made = switched_limb(2, "plain")
    spoil(made, next(iter(ob.animation_data.drivers)))
    turn(ob, 0)
    before, driven = state(ob), drivers(ob)
    with refused("'IK' on 'lower' was not converted: its Enabled setting is driven"):
        bpy.ops.ik_addon.convert_constraints()
    assert state(ob) == before
    assert drivers(ob) == driven


def test_a_muted_driver_stays_muted() -> None:
    ob, _target, _made = switched_limb(2, "plain")
    next(iter(ob.animation_data.drivers)).mute = True
    turn(ob, 1)
    before, driven = state(ob), drivers(ob)
    bpy.ops.ik_addon.convert_constraints()
    assert ob.pose.bones["lower"].ik_addon.influence == 1.0
    assert_restored(ob, before, driven)


def test_a_keyed_pole_switch_is_followed_and_baked() -> None:
    ob, target, made = limb(4, pole=True)
    bpy.ops.ik_addon.convert_constraints()
    rigs.key(target, "location", {1: PLACES[0], 20: PLACES[1]})
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 20
    rigs.key(ob.pose.bones["lower"], "ik_addon.use_pole", {1: True, 11: False})
    live = rigs.on_frames((1, 5, 10, 11, 15, 20, 3), lambda: matrices(ob))
    made.pole_target.location = (-3.0, 1.0, 0.0)
    moved = rigs.on_frames(live, lambda: matrices(ob))
    for frame, before in live.items():
        turned = degrees_between(before, moved[frame])
        assert turned > 5.0 if frame < 11 else turned < 1e-3, frame
    assert bpy.ops.ik_addon.bake() == {"FINISHED"}
    for frame, baked in rigs.on_frames(live, lambda: matrices(ob)).items():
        assert degrees_between(moved[frame], baked) < 0.01, frame


# ---- Rigify


CONTROLS = ("foot_ik.L", "hand_ik.R")
STEPS = ((0.0, 0.0, 0.0), (0.02, -0.05, 0.1), (-0.03, 0.05, 0.15))
LIMBS = {"MCH-shin_ik.L", "MCH-shin_ik.R", "MCH-forearm_ik.L", "MCH-forearm_ik.R"}


def unstretched(ob: bpy.types.Object) -> bpy.types.Object:
    """Return a rig whose bones do not stretch within reach, since those of chains do not either."""
    for bone in ob.pose.bones:
        bone.ik_stretch = 0.0
    return ob


@pytest.fixture
def rig(generated: Generated) -> bpy.types.Object:
    """Return a human rig."""
    return unstretched(generated("basic_human"))


def pose(ob: bpy.types.Object, pole: bool, fk: float, step: tuple[float, float, float]) -> list[Any]:
    """Return the deform bones, with the rig's switches set and its controls moved by a step."""
    parents: list[Any] = [ob.pose.bones[f"{limb}_parent.{side}"] for limb in ("thigh", "upper_arm") for side in "LR"]
    for bone in parents:
        bone["pole_vector"], bone["IK_FK"] = pole, fk
    for name in CONTROLS:
        ob.pose.bones[name].location = step
    ob.update_tag()
    bpy.context.view_layer.update()
    return [bone.matrix.copy() for bone in rigs.evaluated(ob).pose.bones if bone.name.startswith("DEF-")]


def test_a_rigify_rig_keeps_its_switches(rig: bpy.types.Object, capfd: pytest.CaptureFixture[str]) -> None:
    keys = [(pole, fk, step) for pole in (True, False) for fk in (0.0, 0.5, 1.0) for step in STEPS]
    before = {key: pose(rig, *key) for key in keys}
    pose(rig, False, 0.0, STEPS[0])
    whole, driven = state(rig), drivers(rig)
    text = said(capfd, bpy.ops.ik_addon.convert_constraints)
    assert text.startswith("Info: Converted 4 IK constraints. Live turned on")
    assert {bone.name for bone in rig.pose.bones if bone.ik_addon.is_chain} == LIMBS
    for key, held in before.items():
        after = pose(rig, *key)
        places = [(a.translation - b.translation).length for a, b in zip(held, after, strict=True)]
        assert max(places) < 2e-3, key  # Blender's own solver misses its targets by this much
        assert degrees_between(held, after) < 0.5, key
    knee = rig.pose.bones["thigh_ik_target.L"]
    bent = pose(rig, True, 0.0, STEPS[1])
    knee.location.x += 0.5
    assert degrees_between(bent, pose(rig, True, 0.0, STEPS[1])) > 5.0
    knee.location.x = 0.0
    pose(rig, False, 0.0, STEPS[0])
    bpy.ops.ik_addon.restore_constraints()
    pose(rig, False, 0.0, STEPS[0])
    assert state(rig) == whole
    assert drivers(rig) == driven
    assert all(degrees_between(held, pose(rig, *key)) < 1e-4 for key, held in before.items())


def test_three_segment_legs_move_as_before_though_constraints_depend_on_each_other(generated: Generated) -> None:
    ob = unstretched(generated("basic_quadruped"))
    foot = ob.pose.bones["foot_ik.L"]

    def stepped(step: tuple[float, float, float]) -> list[Any]:
        rigs.change(foot, location=step)
        return matrices(ob)

    before = {step: stepped(step) for step in STEPS}
    stepped(STEPS[0])
    bpy.ops.ik_addon.convert_constraints()
    assert ob.pose.bones["MCH-shin_ik.L"].ik_addon.is_chain
    assert ob.pose.bones["MCH-shin_ik2.L"].ik_addon.is_chain

    def off(step: tuple[float, float, float]) -> float:
        return max((a.translation - b.translation).length for a, b in zip(before[step], stepped(step), strict=True))

    assert max(map(off, STEPS)) < 1e-2
    stepped(STEPS[0])
    bpy.ops.ik_addon.restore_constraints()
    assert max(map(off, STEPS)) < 1e-6


def test_a_rigify_character_is_set_up_by_conversion(
    rig: bpy.types.Object, capfd: pytest.CaptureFixture[str], addon: Addon
) -> None:
    with refused("Convert IK Constraints turns them into chains: left leg, right leg, left arm, right arm"):
        bpy.ops.ik_addon.character_setup()
    bpy.ops.ik_addon.convert_constraints()
    assert "These parts already have chains: left leg" in said(capfd, bpy.ops.ik_addon.character_setup)
    assert all(addon.report(rig, tip).reached for tip in LIMBS)
