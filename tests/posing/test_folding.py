"""Pose Body folds an arm or leg before the body walks, from straight limbs too, whatever the axes of the bones."""

from __future__ import annotations

import math
from pathlib import Path

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Vector

from tests import imports, rigs
from tests.imports import FRONT
from tests.reliability.states import said

STANCES = ("T", "A", "STANDING")
LEG = 0.83
ARM = 0.52


def figure(kind: str, aim: str, stance: str, folder: Path) -> bpy.types.Object:
    """Build a figure with exactly straight legs, in a T-pose, an A-pose or with its arms at its sides."""
    source = imports.moving("run", folder)
    source.animation_data_clear()
    for bone in source.pose.bones:
        bone.matrix_basis.identity()
    bpy.context.view_layer.update()
    ob = imports.recast(source, kind, aim, "A" if stance == "A" else "T")
    turns = [("Arm", 75.0, "Y"), ("ForeArm", -12.0, "X")] if stance == "STANDING" else []
    for part, degrees, axis in turns:
        for side, sign in (("Left", 1.0), ("Right", -1.0 if axis == "Y" else 1.0)):
            bone = ob.pose.bones[imports.named(kind, side + part)]
            turn = Matrix.Rotation(math.radians(sign * degrees), 4, axis)
            bone.matrix = Matrix.Translation(bone.head) @ turn @ Matrix.Translation(-bone.head) @ bone.matrix
            bpy.context.view_layer.update()
    return ob


def angle(ob: bpy.types.Object, row: list[str]) -> float:
    """Return by how many degrees the middle of three joints is bent."""
    a, b, c = (Vector(rigs.head(ob, name)) for name in row)
    return math.degrees((b - a).angle(c - b))


def turned(ob: bpy.types.Object, bone: str, before: Matrix) -> float:
    """Return by how many degrees a bone is turned from an earlier pose."""
    found = math.degrees(
        (before.to_3x3().inverted() @ rigs.evaluated(ob).pose.bones[bone].matrix.to_3x3()).to_quaternion().angle
    )
    return min(found, 360.0 - found)


@pytest.mark.parametrize("place", ["shoulder", "mouth", "arm"])
@pytest.mark.parametrize("stance", STANCES)
def test_the_arm_folds_before_the_hips_walk(stance: str, place: str, tmp_path: Path) -> None:
    aim = imports.AIMS[STANCES.index(stance)]
    ob = figure("VRM", aim, stance, tmp_path)
    hips, chest, clavicle = (imports.named("VRM", name) for name in ("Hips", "Spine1", "LeftShoulder"))
    row = [imports.named("VRM", f"Left{part}") for part in ("Arm", "ForeArm", "Hand")]
    heads = {
        name: Vector(rigs.head(ob, imports.named("VRM", name)))
        for name in ("LeftArm", "RightArm", "RightForeArm", "Head")
    }
    places = {
        "shoulder": heads["LeftArm"] + Vector((0.02, -0.03, 0.02)),
        "mouth": heads["Head"] + Vector((0.0, -0.12, 0.05)),
        "arm": heads["RightArm"].lerp(heads["RightForeArm"], 0.4) + 0.05 * FRONT,
    }
    before, start = {name: ob.pose.bones[name].matrix.copy() for name in (chest, clavicle)}, Vector(rigs.head(ob, hips))
    bpy.ops.ik_addon.pose_body(bone=row[2], location=places[place])
    bpy.context.view_layer.update()
    assert (Vector(rigs.head(ob, row[2])) - places[place]).length < 1e-3
    assert angle(ob, row) > {"shoulder": 110.0, "mouth": 95.0, "arm": 55.0}[place]
    assert (Vector(rigs.head(ob, hips)) - start).length < 0.02 * LEG
    assert max(turned(ob, name, own) for name, own in before.items()) < 12.0


def test_what_the_arm_cannot_reach_comes_from_the_shoulder_then_the_spine(tmp_path: Path) -> None:
    ob = figure("VRM", "CHILD", "STANDING", tmp_path)
    hand, hips, chest = (imports.named("VRM", name) for name in ("LeftHand", "Hips", "Spine1"))
    before, start = ob.pose.bones[chest].matrix.copy(), Vector(rigs.head(ob, hips))
    place = Vector(rigs.head(ob, imports.named("VRM", "LeftArm"))) + 1.4 * ARM * FRONT
    bpy.ops.ik_addon.pose_body(bone=hand, location=place)
    bpy.context.view_layer.update()
    assert (Vector(rigs.head(ob, hand)) - place).length < 1e-3
    assert turned(ob, chest, before) > 15.0
    assert (Vector(rigs.head(ob, hips)) - start).length < 0.25 * LEG


@pytest.mark.parametrize("aim", imports.AIMS)
@pytest.mark.parametrize("dragged", ["Hips", "LeftFoot"])
def test_straight_legs_bend_their_knees_forward(dragged: str, aim: str, tmp_path: Path) -> None:
    ob = figure("Biped", aim, "T", tmp_path)
    bone = imports.named("Biped", dragged)
    offset = Vector((0.0, 0.0, -0.2 * LEG)) if dragged == "Hips" else Vector((0.0, -0.1, 0.25))
    place = Vector(rigs.head(ob, bone)) + offset
    bpy.ops.ik_addon.pose_body(bone=bone, offset=offset)
    bpy.context.view_layer.update()
    assert (Vector(rigs.head(ob, bone)) - place).length < 1e-4
    for row in imports.limbs("Biped")[: 2 if dragged == "Hips" else 1]:
        bend = imports.bends(np.array([rigs.head(ob, name) for name in row]))
        assert bend[1] < -0.1, "forward"
        assert abs(bend[0]) < 0.01, "not sideways, whatever the roll"
        assert angle(ob, row) > 50.0


def test_a_straight_knee_bends_to_the_side_of_its_chain(tmp_path: Path) -> None:
    """Even backward, as asked with Flip Bend; the other one bends forward."""
    ob = figure("Biped", "CHILD", "T", tmp_path)
    rows = imports.limbs("Biped")[:2]
    bpy.ops.ik_addon.character_setup(regions={"LEG"}, live=False)
    ob.data.bones.active = ob.data.bones[rows[0][1]]
    bpy.ops.ik_addon.flip_bend()
    bpy.ops.ik_addon.pose_body(bone=imports.named("Biped", "Hips"), offset=(0.0, 0.0, -0.1))
    bpy.context.view_layer.update()
    left, right = (imports.bends(np.array([rigs.head(ob, name) for name in row])) for row in rows)
    assert left[1] > 0.05
    assert right[1] < -0.05


def test_a_message_says_why_a_joint_stopped_short(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ob = figure("Biped", "CHILD", "T", tmp_path)
    hand, hips = (imports.named("Biped", name) for name in ("LeftHand", "Hips"))
    away = {"bone": hand, "offset": (0.0, 0.0, 3.0)}
    assert "of the body's size. Held by: " in said(capfd, bpy.ops.ik_addon.pose_body, **away)
    for bone in ob.pose.bones:
        bone.matrix_basis.identity()
    assert "size. It is out of reach" in said(capfd, bpy.ops.ik_addon.pose_body, without_pins="ROOT", **away)
    for bone in ob.pose.bones:
        bone.matrix_basis.identity()
    for name in (row[1] for row in imports.limbs("Biped")[:2]):
        ob.pose.bones[name].use_ik_limit_x = ob.pose.bones[name].use_ik_limit_z = True
        for end in ("ik_min_x", "ik_max_x", "ik_min_z", "ik_max_z"):
            setattr(ob.pose.bones[name], end, 0.1 * (1 if "max" in end else -1))
    message = said(capfd, bpy.ops.ik_addon.pose_body, bone=hips, offset=(0.0, 0.0, -0.4))
    assert "Held by: left leg, right leg. At a limit: " in message
    assert "Bip01 R Calf" in message
