"""Limits are named for what they do: a knee bends, a thigh moves forward and outward, a tail moves up."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Quaternion

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import add

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
    return dict(addon.module("chains.joint_names").names_of(bone))


def moved(addon: Addon, bone: bpy.types.PoseBone, direction: str) -> Any:
    """Return the place of a bone's tail after the bone has turned in a direction."""
    axis, sign = addon.module("chains.joint_names").DIRECTIONS[direction]
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
