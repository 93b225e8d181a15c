"""Drag hands, hips and feet with Pose Body: what folds, and what comes along?

    python -m benchmarks.quality --case pose-body

The figure is as importers make it, with exactly straight legs and random rolls of its bones.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Vector

from tests import imports, rigs
from tests.imports import FRONT, UP

STANCES = ("T", "A", "STANDING")
PLACES = ("shoulder", "mouth", "arm")
LEG = 0.83
"""Length of a leg of the figure, in meters."""
LOWERED = 0.2
"""By how much of a leg hips are lowered."""
LIFTED = (0.1, 0.25, 0.4)
"""Meters by which a foot is lifted."""


@dataclass(frozen=True)
class Fold:
    """What a drag did."""

    missed: float
    """Meters from the bone to its place."""
    bends: list[float]
    """Degrees by which elbow or knees are bent."""
    aside: float
    """The largest angle in degrees between straight forward and the side to which they are bent."""
    hips: float
    """How far the hips moved, in lengths of the leg."""
    turned: list[float]
    """Degrees by which the chest and the left shoulder turned."""


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


def place_of(ob: bpy.types.Object, kind: str, name: str) -> Vector:
    """Return where the left hand goes: to one of `PLACES`."""
    heads = {
        part: Vector(rigs.head(ob, imports.named(kind, part)))
        for part in ("LeftArm", "RightArm", "RightForeArm", "Head")
    }
    return {
        "shoulder": heads["LeftArm"] + Vector((0.02, -0.03, 0.02)),
        "mouth": heads["Head"] + Vector((0.0, -0.12, 0.05)),
        "arm": heads["RightArm"].lerp(heads["RightForeArm"], 0.4) + 0.05 * FRONT,
    }[name]


def drag(ob: bpy.types.Object, kind: str, part: str, place: Vector) -> Fold:
    """Drag a hand, the hips or a foot to a place."""
    body = [imports.named(kind, name) for name in ("Spine1", "LeftShoulder")]
    hips, dragged = imports.named(kind, "Hips"), imports.named(kind, part)
    before, start = [ob.pose.bones[name].matrix.copy() for name in body], Vector(rigs.head(ob, hips))
    bpy.ops.ik_addon.pose_body(bone=dragged, location=place)
    bpy.context.view_layer.update()
    rows = [row for row in imports.limbs(kind) if row[2] == dragged] or imports.limbs(kind)[:2]
    joints = np.array([[rigs.head(ob, name) for name in row] for row in rows])
    away = imports.bends(joints)
    return Fold(
        missed=(Vector(rigs.head(ob, dragged)) - place).length,
        bends=[math.degrees(Vector(b - a).angle(Vector(c - b))) for a, b, c in joints],
        aside=float(np.degrees(np.arctan2(np.abs(away[:, 0]), -away[:, 1])).max()),
        hips=(Vector(rigs.head(ob, hips)) - start).length / LEG,
        turned=[_turn(ob.pose.bones[name].matrix, own) for name, own in zip(body, before, strict=True)],
    )


def _turn(now: Matrix, before: Matrix) -> float:
    found = math.degrees((before.to_3x3().inverted() @ now.to_3x3()).to_quaternion().angle)
    return min(found, 360.0 - found)


def drags() -> Iterator[tuple[str, str, Fold]]:
    """Yield what is dragged, from which pose or by how much, and what that did."""
    with tempfile.TemporaryDirectory() as folder:
        for name in PLACES:
            for stance, aim in zip(STANCES, imports.AIMS, strict=True):
                ob = _fresh("VRM", aim, stance, Path(folder))
                yield f"hand to {name}", stance, drag(ob, "VRM", "LeftHand", place_of(ob, "VRM", name))
        for aim in imports.AIMS:
            for part, up in (("Hips", -LOWERED * LEG), *(("LeftFoot", lift) for lift in LIFTED)):
                ob = _fresh("Biped", aim, "T", Path(folder))
                place = Vector(rigs.head(ob, imports.named("Biped", part))) + up * UP
                yield part, f"{up:+.2f} m, bones {aim}", drag(ob, "Biped", part, place)


def _fresh(kind: str, aim: str, stance: str, folder: Path) -> bpy.types.Object:
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    return figure(kind, aim, stance, folder)


def measure() -> list[dict[str, Any]]:
    """Return a row for each drag."""
    from ik_addon.registration import register

    register()
    return [{"dragged": part, "how": how, **asdict(fold)} for part, how, fold in drags()]


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    figures = list(Fold.__annotations__)
    yield " | ".join(["| dragged | how", *figures]) + " |"
    yield "|---" * (2 + len(figures)) + "|"
    for row in rows:
        numbers = (np.round(row[name], 3) for name in figures)
        yield f"| {row['dragged']} | {row['how']} | " + " | ".join(map(str, numbers)) + " |"
