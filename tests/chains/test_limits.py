"""Limits taken from the pose, copied to other bones, and named for what they do."""

import math
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Quaternion

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import activate, add, refused, said
from tests.solve.chains import violation

ENDS = [
    ("UP", "X", 40.0, "ik_max_x"),
    ("DOWN", "X", -40.0, "ik_min_x"),
    ("LEFT", "Z", 25.0, "ik_max_z"),
    ("RIGHT", "Z", -25.0, "ik_min_z"),
    ("TWIST_MAX", "Y", 70.0, "ik_max_y"),
    ("TWIST_MIN", "Y", -70.0, "ik_min_y"),
]


def posed(*turns: tuple[str, float], name: str = "lower") -> bpy.types.Object:
    """Return an arm whose lower bone is posed by the rotations in degrees, one after another."""
    ob, _target = rigs.arm()
    ob.matrix_world = Matrix.Rotation(0.4, 4, "Z") @ Matrix.Diagonal((-2.0, 1.0, 1.5, 1.0))
    ob.pose.bones["upper"].rotation_quaternion = (0.8, 0.4, 0.2, 0.4)
    q = Quaternion()
    for axis, angle in turns:
        q = q @ Quaternion({"X": (1, 0, 0), "Y": (0, 1, 0), "Z": (0, 0, 1)}[axis], math.radians(angle))
    ob.pose.bones[name].rotation_quaternion = q
    activate(ob, name)
    bpy.context.view_layer.update()
    return ob


@pytest.mark.parametrize(("direction", "axis", "angle", "name"), ENDS)
@pytest.mark.parametrize("asked", ["one", "all"])
@pytest.mark.parametrize("bone", ["upper", "lower"])
def test_the_pose_becomes_the_limit(direction: str, axis: str, angle: float, name: str, asked: str, bone: str) -> None:
    ob = posed((axis, angle), name=bone)
    limited = ob.pose.bones[bone]
    other = name.replace("min", "MAX").replace("max", "min").replace("MAX", "max")
    before = getattr(limited, other)
    bpy.ops.ik_addon.limit_from_pose(direction=direction if asked == "one" else "ALL")
    assert math.degrees(getattr(limited, name)) == pytest.approx(angle, abs=1e-3)
    assert getattr(limited, other) == before
    used = {a: getattr(limited, f"use_ik_limit_{a}") for a in "xyz"}
    assert used == {a: a == axis.lower() for a in "xyz"}


@pytest.mark.parametrize(("direction", "axis", "angle", "name"), ENDS[:4])
def test_a_bone_at_its_limit_is_where_the_solver_stops(
    addon: Addon, direction: str, axis: str, angle: float, name: str
) -> None:
    cones, rotations = addon.module("solve.maths.cones"), addon.module("solve.maths.rotations")
    ob = posed((axis, angle), ("Y", 30.0))
    bpy.ops.ik_addon.limit_from_pose(direction=direction)
    bone = ob.pose.bones["lower"]
    x, z, y = addon.module("rig.plan.limits").ranges_of(bone)
    cone = cones.cone_of(np.array([[*x, *z]]), np.array([y]))
    q = np.array(bone.rotation_quaternion)[:, None]
    assert violation(q, cone)[0] < 1e-6
    further = rotations.multiply(
        np.array(Quaternion((1, 0, 0) if axis == "X" else (0, 0, 1), math.copysign(0.02, angle)))[:, None], q
    )
    assert violation(further, cone)[0] > 0.01


def test_a_bone_at_rest_gives_no_limit() -> None:
    ob = posed()
    with refused("The selected bones are at rest. Pose the limit first"):
        bpy.ops.ik_addon.limit_from_pose()
    assert not ob.pose.bones["lower"].use_ik_limit_x


def test_a_bone_turned_the_other_way_is_reported() -> None:
    posed(("X", 40.0))
    with refused("The selected bones are not turned in this direction"):
        bpy.ops.ik_addon.limit_from_pose(direction="DOWN")


def test_the_new_limits_are_reported(capfd: pytest.CaptureFixture[str]) -> None:
    posed(("X", 40.0))
    assert "'lower' Forward 40.0°" in said(capfd, bpy.ops.ik_addon.limit_from_pose)


def select_all(ob: bpy.types.Object, addon: Addon) -> None:
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="SELECT")
    assert all(addon.module("core.compat").is_selected(bone) for bone in ob.pose.bones)


def test_all_selected_bones_use_their_own_pose(addon: Addon) -> None:
    ob = posed(("X", 40.0))
    upper = ob.pose.bones["upper"]
    upper.rotation_quaternion = Quaternion((1, 0, 0), math.radians(-15))
    select_all(ob, addon)
    bpy.ops.ik_addon.limit_from_pose(all_selected=True)
    assert math.degrees(upper.ik_min_x) == pytest.approx(-15.0, abs=1e-3)
    assert math.degrees(ob.pose.bones["lower"].ik_max_x) == pytest.approx(40.0, abs=1e-3)


def test_limits_are_copied_with_locks_and_stiffness(addon: Addon) -> None:
    ob = posed(("X", 40.0))
    source, other = ob.pose.bones["lower"], ob.pose.bones["upper"]
    bpy.ops.ik_addon.limit_from_pose()
    source.lock_ik_z, source.ik_stiffness_y = True, 0.5
    select_all(ob, addon)
    bpy.ops.ik_addon.limits_copy()
    for name in addon.module("ui.operators.limits").SETTINGS:
        assert getattr(other, name) == getattr(source, name)


def test_copying_needs_other_bones() -> None:
    posed()
    with refused("Select several bones in Pose Mode"):
        bpy.ops.ik_addon.limits_copy()


def test_a_live_chain_respects_its_new_limit() -> None:
    ob, target = rigs.arm()
    ob.ik_addon.live = True
    rigs.change(target, location=(0.0, 0.4, 1.7))
    bpy.ops.ik_addon.limit_from_pose()
    limited = rigs.pose(ob)
    rigs.change(target, location=(0.0, 0.8, 0.8))
    lower = ob.pose.bones["lower"]
    held = rigs.pose(ob)
    assert (held != limited).any()
    rigs.change(lower, use_ik_limit_x=False, use_ik_limit_y=False, use_ik_limit_z=False)
    assert np.abs(rigs.pose(ob) - held).max() > 0.1
    assert np.allclose(rigs.tail(ob, "lower"), rigs.position(target), atol=1e-4)


# ---- directions are named for what they do: a knee bends, a thigh moves forward and outward, a tail moves up


Points = list[tuple[float, float, float]]
LEG = [(0.1, 0.0, 1.0), (0.1, -0.03, 0.5), (0.1, 0.0, 0.05), (0.1, -0.15, 0.0)]
ARM = [(0.2, 0.0, 1.4), (0.5, 0.02, 1.4), (0.8, 0.0, 1.4), (0.9, 0.0, 1.4)]


def limb(points: Points, names: list[str], roll: float, mirrored: bool) -> bpy.types.Object:
    ob = rigs.armature()
    points = [(-x, y, z) for x, y, z in points] if mirrored else points
    rigs.add_bones(ob, points, [f"{name}.{'R' if mirrored else 'L'}" for name in names])
    with rigs.edit_mode(ob) as bones:
        for bone in bones:
            bone.roll += roll
    add(ob, f"{names[1]}.{'R' if mirrored else 'L'}")
    return ob


def names(addon: Addon, bone: bpy.types.PoseBone) -> dict[str, str]:
    return dict(addon.module("chains.profile").names_of(bone))


def moved(addon: Addon, bone: bpy.types.PoseBone, direction: str) -> Any:
    """Return the place of a bone's tail after the bone has turned in a direction."""
    axis, sign = addon.module("chains.profile").DIRECTIONS[direction]
    before = rigs.tail(bone.id_data, bone.name)
    bone.rotation_mode = "QUATERNION"
    rigs.change(bone, rotation_quaternion=Quaternion([float(axis == own) for own in "xyz"], 0.2 * sign))
    after = rigs.tail(bone.id_data, bone.name)
    rigs.change(bone, rotation_quaternion=(1.0, 0.0, 0.0, 0.0))
    return after - before


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("roll", [0.0, np.pi / 2, np.pi, -np.pi / 2])
@pytest.mark.parametrize(
    ("points", "bones", "bends_to"),
    [(LEG, ["thigh", "shin", "foot"], (1, 1.0)), (ARM, ["upper_arm", "forearm", "hand"], (1, -1.0))],
)
def test_hinges_and_roots_move_in_the_named_direction(
    addon: Addon, points: Points, bones: list[str], bends_to: tuple[int, float], roll: float, mirrored: bool
) -> None:
    ob = limb(points, bones, roll, mirrored)
    side = "R" if mirrored else "L"
    hinge, root = ob.pose.bones[f"{bones[1]}.{side}"], ob.pose.bones[f"{bones[0]}.{side}"]
    found = names(addon, hinge)
    assert {"Bend", "Straighten"} <= set(found.values())
    bend = next(key for key, word in found.items() if word == "Bend")
    axis, sign = bends_to
    assert moved(addon, hinge, bend)[axis] * sign > 0.05, "a knee goes back, an elbow forward"
    outward = -1.0 if mirrored else 1.0
    where = {
        "Up": (2, 1.0), "Down": (2, -1.0), "Forward": (1, -1.0), "Back": (1, 1.0),
        "Outward": (0, outward), "Inward": (0, -outward),
    }  # fmt: skip
    found = names(addon, root)
    assert not {"Bend", "Straighten"} & set(found.values())
    for key in ("UP", "DOWN", "LEFT", "RIGHT"):
        axis, sign = where[found[key]]
        assert moved(addon, root, key)[axis] * sign > 0.02, (key, found[key])


def test_a_tail_moves_up_and_to_the_sides(addon: Addon) -> None:
    ob = rigs.limb([(0.0, 0.2 * i, 1.0) for i in range(5)], [f"tail.{i}" for i in range(4)])
    found = names(addon, ob.pose.bones["tail.1"])
    assert {found[key] for key in ("UP", "DOWN")} == {"Up", "Down"}
    assert moved(addon, ob.pose.bones["tail.1"], next(k for k in found if found[k] == "Left"))[0] > 0.02
    assert (found["TWIST_MAX"], found["TWIST_MIN"]) == ("Twist", "Twist Back")


def test_every_direction_has_a_distinct_name_however_a_bone_lies(addon: Addon) -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        ob = rigs.limb(rng.normal(size=(2, 3)).tolist(), ["bone"])
        found = names(addon, ob.pose.bones["bone"])
        assert len(set(found.values())) == 6, found
