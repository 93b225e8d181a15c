"""Pose Body folds an arm or leg before the body walks, from straight limbs too, whatever the axes of the bones."""

from __future__ import annotations

from pathlib import Path

import bpy
import numpy as np
import pytest
from mathutils import Vector

from benchmarks import folds
from benchmarks.folds import LEG, figure
from tests import imports, rigs
from tests.imports import FRONT
from tests.reliability.states import said

ARM = 0.52
"""Length of an arm of the figure, in meters."""


@pytest.mark.parametrize("place", folds.PLACES)
@pytest.mark.parametrize("stance", folds.STANCES)
def test_the_arm_folds_before_the_hips_walk(stance: str, place: str, tmp_path: Path) -> None:
    ob = figure("VRM", imports.AIMS[folds.STANCES.index(stance)], stance, tmp_path)
    fold = folds.drag(ob, "VRM", "LeftHand", folds.place_of(ob, "VRM", place))
    assert fold.missed < 1e-3
    assert fold.bends[0] > {"shoulder": 110.0, "mouth": 95.0, "arm": 55.0}[place]
    assert fold.hips < 0.02
    assert max(fold.turned) < 12.0


def test_what_the_arm_cannot_reach_comes_from_the_shoulder_then_the_spine(tmp_path: Path) -> None:
    ob = figure("VRM", "CHILD", "STANDING", tmp_path)
    place = Vector(rigs.head(ob, imports.named("VRM", "LeftArm"))) + 1.4 * ARM * FRONT
    fold = folds.drag(ob, "VRM", "LeftHand", place)
    assert fold.missed < 1e-3
    assert fold.turned[0] > 15.0
    assert fold.hips < 0.25


@pytest.mark.parametrize("aim", imports.AIMS)
@pytest.mark.parametrize(("dragged", "offset"), [("Hips", (0.0, 0.0, -0.2 * LEG)), ("LeftFoot", (0.0, -0.1, 0.25))])
def test_straight_legs_bend_their_knees_forward(
    dragged: str, offset: tuple[float, float, float], aim: str, tmp_path: Path
) -> None:
    ob = figure("Biped", aim, "T", tmp_path)
    place = Vector(rigs.head(ob, imports.named("Biped", dragged))) + Vector(offset)
    fold = folds.drag(ob, "Biped", dragged, place)
    assert fold.missed < 1e-4
    assert len(fold.bends) == (2 if dragged == "Hips" else 1)
    assert min(fold.bends) > 50.0
    assert fold.aside < 5.0, "forward, whatever the roll"


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
