"""Pose a whole human in four ways: Pose Body, Auto IK, IK constraints on four limbs of two bones, or up to the root.

Each way gets the same places, from the same pose. Measurements: what reaches its place, holds still, and moves.
Run it with the Python of one of the environments: `python -m benchmarks.beside`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ik_addon.core import compat
from ik_addon.posing.drag import Ask, BodyDrag
from ik_addon.posing.read import Stand
from ik_addon.registration import register
from ik_addon.solve.maths.rotations import norm, quaternions, vectors_of
from ik_addon.solve.problem import Floats
from tools.environments import ROOT

from .bodies import box, outside, sphere
from .metarig import add_metarig

OUTPUT = ROOT / "build" / "beside.json"
HAND, HIPS, HEAD = "hand.L", "spine", "spine.006"
FEET, SHINS, FOREARMS = ("foot.L", "foot.R"), ("shin.L", "shin.R"), ("forearm.L", "forearm.R")
PINS = {**dict.fromkeys(FEET, frozenset(("LOCATION", "ROTATION"))), HEAD: frozenset(("ROTATION",))}
REACHED = 1e-3
"""In meters."""
BACKWARD = 0.01
"""Meters by which a knee is behind the line from hip to ankle, from which it counts as bent backward."""
BROKEN = np.radians(0.5)
"""Radians outside of a joint's limits from which they count as broken."""
TURNED = np.radians(0.1)
"""Radians from which a joint counts as moved."""


class Way(ABC):
    """One way to bring a bone of a human to a place."""

    name = ""
    use_tail = False
    """Whether the bone's tail is brought to the place, rather than its head."""

    def __init__(self, ob: bpy.types.Object) -> None:
        """Take a human in its current pose."""
        self.ob = ob

    def grab(self, bone: str) -> None:
        """Take hold of a bone."""
        self.bone = bone
        self.start = self.ob.matrix_world @ self.ob.pose.bones[bone].head

    @abstractmethod
    def move(self, offset: Vector) -> None:
        """Bring the bone to an offset from where it was, starting from the pose it had when grabbed."""

    @abstractmethod
    def let_go(self) -> None:
        """Restore the human's pose."""


class PoseBody(Way):
    """The solver for whole bodies, with pins."""

    name = "Pose Body"

    def grab(self, bone: str) -> None:
        """Take hold of a bone."""
        super().grab(bone)
        self._drag = BodyDrag(bpy.context, self.ob, Ask(bone, pins=PINS))

    def move(self, offset: Vector) -> None:
        """Solve, and write the pose."""
        self._drag.move(bpy.context, offset)

    def let_go(self) -> None:
        """Restore the human's pose."""
        self._drag.cancel(bpy.context)


class AutoIK(Way):
    """Blender's Move with Auto IK."""

    name = "Auto IK"

    def grab(self, bone: str) -> None:
        """Take hold of a bone; of a connected bone, Blender moves the tail."""
        super().grab(bone)
        self.use_tail = self.ob.data.bones[bone].use_connect

    def move(self, offset: Vector) -> None:
        """Move the bone as Blender does, from the rest pose."""
        self.let_go()
        self.ob.pose.use_auto_ik = True
        compat.select_bone(self.ob.pose.bones[self.bone])
        window = bpy.context.window_manager.windows[0]
        area = next(area for area in window.screen.areas if area.type == "VIEW_3D")
        region = next(region for region in area.regions if region.type == "WINDOW")
        with bpy.context.temp_override(window=window, area=area, region=region):
            bpy.ops.transform.translate(value=offset)
        bpy.context.view_layer.update()

    def let_go(self) -> None:
        """Restore the human's pose."""
        for bone in self.ob.pose.bones:
            bone.matrix_basis = Matrix()
        bpy.context.view_layer.update()


class Constraints(Way):
    """Four IK constraints with targets, and poles at the knees, as in common rigs; feet copy their targets' turns."""

    name = "Four IK constraints, two bones each"
    length = 2

    def grab(self, bone: str) -> None:
        """Add the constraints."""
        super().grab(bone)
        self._made: list[bpy.types.Object] = []
        self._targets = {name: self._target(name) for name in (*FEET, "hand.L", "hand.R")}
        for lower, end in zip((*SHINS, *FOREARMS), self._targets, strict=True):
            constraint = self.ob.pose.bones[lower].constraints.new("IK")
            constraint.target, constraint.chain_count = self._targets[end], self.length
            if end in FEET:
                turn = self.ob.pose.bones[end].constraints.new("COPY_ROTATION")
                turn.target = self._targets[end]
        bpy.context.view_layer.update()

    def _target(self, bone: str) -> bpy.types.Object:
        made = bpy.data.objects.new(bone, None)
        bpy.context.scene.collection.objects.link(made)
        made.matrix_world = self.ob.matrix_world @ self.ob.pose.bones[bone].matrix
        self._made.append(made)
        return made

    def move(self, offset: Vector) -> None:
        """Move the target, or the bone itself if it has none."""
        if self.bone in self._targets:
            self._targets[self.bone].location = self.start + offset
        else:
            bone = self.ob.pose.bones[self.bone]
            bone.location = bone.bone.matrix_local.to_3x3().inverted() @ offset
        bpy.context.view_layer.update()

    def let_go(self) -> None:
        """Remove the constraints."""
        for bone in self.ob.pose.bones:
            for constraint in list(bone.constraints):
                bone.constraints.remove(constraint)
            bone.matrix_basis = Matrix()
        for made in self._made:
            bpy.data.objects.remove(made)
        bpy.context.view_layer.update()


class LongConstraints(Constraints):
    """The same constraints, each up to the root: Blender solves them as one tree."""

    name = "Four IK constraints, up to the root"
    length = 0


WAYS: tuple[type[Way], ...] = (PoseBody, AutoIK, Constraints, LongConstraints)


def figure() -> bpy.types.Object:
    """Return Rigify's human metarig with human joint limits, in Pose Mode."""
    bpy.ops.wm.read_homefile(use_factory_startup=True)
    ob = add_metarig("human")
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.ik_addon.character_setup(live=False)
    bpy.context.view_layer.update()
    return ob


def measure(ob: bpy.types.Object, way: Way, bone: str, offsets: Floats) -> dict[str, object]:
    """Bring a bone to offsets, and measure what happens to the human."""
    before = Stand.of(bpy.context.evaluated_depsgraph_get(), ob, HIPS)
    index = before.index
    loose = outside(before.body, before.body.frames)
    feet = [index[foot] for foot in FEET]
    way.grab(bone)
    misses, slips, turns, looks, backward, broken, moved = ([] for _ in range(7))
    for offset in offsets:
        way.move(Vector(offset))
        stand = Stand.of(bpy.context.evaluated_depsgraph_get(), ob, HIPS)
        now, heads = stand.body, np.asarray(stand.body.heads)
        misses.append(float(np.linalg.norm(_point(stand, way) - _point(before, way) - offset)))
        slips.append(float(np.linalg.norm((heads - before.body.heads)[feet], axis=1).max()))
        angles = _angles(before.body.frames, now.frames)
        turns.append(float(angles[feet].max()))
        looks.append(float(angles[index[HEAD]]))
        backward.append(any(_behind(heads, index, side) > BACKWARD for side in "LR"))
        broken.append(bool((outside(now, now.frames) > loose + BROKEN).any()))
        parents = np.asarray(now.parents)
        moved.append(int((_angles(_local(before.body.frames, parents), _local(now.frames, parents)) > TURNED).sum()))
    way.let_go()
    return {
        "way": way.name,
        "bone": bone,
        "places": len(offsets),
        "reached": float(np.mean(np.array(misses) < REACHED)),
        "miss_cm": 100.0 * float(np.mean(misses)),
        "slip_cm": 100.0 * float(np.max(slips)),
        "foot_turn": float(np.degrees(np.max(turns))),
        "head_turn": float(np.degrees(np.mean(looks))),
        "knees_backward": int(np.sum(backward)),
        "limits_broken": int(np.sum(broken)),
        "joints_moved": float(np.mean(moved)),
    }


def _point(stand: Stand, way: Way) -> Floats:
    bone = stand.index[way.bone]
    return stand.tail(bone) if way.use_tail else np.asarray(stand.body.heads[bone])


def _local(frames: Floats, parents: Floats) -> Floats:
    above = np.where((parents >= 0)[:, None, None], frames[parents], np.eye(3))
    return np.einsum("nji,njk->nik", above, frames)


def _angles(one: Floats, other: Floats) -> Floats:
    q = quaternions(np.einsum("nij,nkj->nik", other, one).transpose(1, 2, 0))
    return norm(vectors_of(q))


def _behind(heads: Floats, index: dict[str, int], side: str) -> float:
    """Return how far a knee is behind the line from hip to ankle; the human faces -Y."""
    hip, knee, ankle = (heads[index[f"{name}.{side}"]] for name in ("thigh", "shin", "foot"))
    line = (ankle - hip) / np.linalg.norm(ankle - hip)
    aside = knee - hip - np.dot(knee - hip, line) * line
    return float(aside[1])


def drags(ob: bpy.types.Object, places: int) -> list[tuple[str, Floats]]:
    """Return what is dragged, with the offsets of each drag."""
    bones = ob.data.bones
    hand, shoulder = (np.array(bones[name].head_local) for name in (HAND, "upper_arm.L"))
    arm = float(np.linalg.norm(hand - shoulder))
    leg = float((bones[HIPS].head_local - bones["foot.L"].head_local).length)
    around = [sphere(shoulder, share * arm, places // 2) - hand for share in (0.9, 1.4)]
    return [(HAND, np.concatenate(around)), (HIPS, box(np.array([0.0, 0.0, -0.25 * leg]), 0.5 * leg, places))]


def ratio(ob: bpy.types.Object, offsets: Floats) -> dict[str, object]:
    """Compare the time of a drag step with that of an update of the same human with IK constraints, taking turns."""
    found: dict[str, list[float]] = {}
    for block in np.array_split(offsets, 10):
        for way in (Constraints(ob), LongConstraints(ob), PoseBody(ob)):
            way.grab(HAND)
            for offset in block:
                begin = time.process_time()
                way.move(Vector(offset))
                found.setdefault(way.name, []).append(time.process_time() - begin)
            way.let_go()
    milliseconds = {name: 1e3 * np.array(own) for name, own in found.items()}
    ours = float(np.median(milliseconds[PoseBody.name]))
    return {
        name: {"ms": [float(np.median(own)), float(np.quantile(own, 0.99))], "ratio": ours / float(np.median(own))}
        for name, own in milliseconds.items()
    }


def table(rows: Sequence[dict[str, object]]) -> str:
    """Return the rows in the form that docs/lab/quality.md has."""
    lines = []
    for row in rows:
        cells = [
            f"{row['bone']}",
            f"{row['way']}",
            f"{100.0 * float(row['reached']):.1f} %",
            f"{row['miss_cm']:.1f} cm",
            f"{row['slip_cm']:.2f} cm, {row['foot_turn']:.1f}°",
            f"{row['head_turn']:.1f}°",
            f"{row['knees_backward']}",
            f"{row['limits_broken']}",
            f"{row['joints_moved']:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--places", type=int, default=400, help="places of each drag (400)")
    arguments = parser.parse_args()
    register()
    ob = figure()
    dragged = drags(ob, arguments.places)
    rows = [measure(ob, way(ob), bone, offsets) for bone, offsets in dragged for way in WAYS]
    cost = ratio(ob, dragged[0][1])
    print(table(rows))
    print(json.dumps(cost))
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps({"rows": rows, "cost": cost}, indent=1) + "\n", encoding="utf-8")
    sys.stdout.flush()
    # Some versions of the module crash when the interpreter shuts down.
    os._exit(0)


if __name__ == "__main__":
    main()
