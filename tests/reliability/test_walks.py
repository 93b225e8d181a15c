"""Walks with locking knees, on skeletons that characters come with, and other motions: knees and elbows never flip.

Limbs of these rigs are straight or nearly straight at rest, with any roll, in mirrored, rotated and scaled
armatures. The walk straightens limbs and bends them backwards. Targets are at the ankles
and wrists of the FK pose, or raised.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix, Vector
from numpy.typing import NDArray

from tests import motions, rigs, rigs_named
from tests.conftest import Addon
from tests.reliability.states import activate
from tests.rigs_named import RIGS
from tests.targets.test_snap_range import played

Points = NDArray[np.float64]

FRAMES = 33
PARTS = ("UpLeg", "Leg"), ("Arm", "ForeArm")
RAISED = (0.0, 0.005, 0.1)
"""Distances by which targets move towards the root, in limb lengths."""
BENT = 2.0
"""Degrees: a limb bent at least this much moves by no more than 1e-6 of its length while its target stays put."""
WRONG = 1e-4
"""In limb lengths: farther off than this a joint is on the wrong side. A straight limb in single precision is less."""


@dataclass
class Limb:
    """A limb of a walker."""

    bones: list[str]
    """Upper and lower bone."""
    side: Vector
    """Direction in which the knee or elbow bends, in the rest axes of the root bone."""

    def length(self, ob: bpy.types.Object) -> float:
        """Length of both bones."""
        return math.fsum(ob.pose.bones[name].length for name in self.bones)

    def joints(self, ob: bpy.types.Object) -> Points:
        """Root, middle and tip (3, 3) in armature space."""
        upper, lower = (ob.pose.bones[name] for name in self.bones)
        return np.array([upper.head, lower.head, lower.tail])

    def turns(self, ob: bpy.types.Object) -> Points:
        """Orientations (2, 3, 3) of the bones in armature space."""
        return np.array([ob.pose.bones[name].matrix.to_3x3().normalized() for name in self.bones])

    def off(self, ob: bpy.types.Object) -> float:
        """How far the middle joint is on its proper side of the line from root to tip, in limb lengths."""
        root, middle, tip = (Vector(joint) for joint in self.joints(ob).tolist())
        turn: Matrix = ob.pose.bones[self.bones[0]].matrix.to_3x3().normalized()
        hinge = (turn @ self.side).cross(middle - root)
        across = hinge.cross(tip - root)
        # The side tilts with the upper bone; the direction across the hinge does not.
        size = (middle - root).length + (tip - middle).length
        return -(middle - root).dot(across.normalized()) / size


@dataclass
class Frame:
    """All limbs on one frame."""

    joints: Points
    """(limbs, 3, 3)"""
    turns: Points
    """(limbs, 2, 3, 3)"""
    off: Points
    """(limbs,)"""

    @classmethod
    def of(cls, ob: bpy.types.Object, limbs: Sequence[Limb]) -> Frame:
        return cls(
            np.array([limb.joints(ob) for limb in limbs]),
            np.array([limb.turns(ob) for limb in limbs]),
            np.array([limb.off(ob) for limb in limbs]),
        )


def degrees(some: Points, others: Points) -> Points:
    """Angles in degrees (...) between orientations (..., 3, 3)."""
    chords = np.linalg.norm(some - others, axis=(-2, -1)) / math.sqrt(8.0)
    return np.asarray(np.degrees(2.0 * np.arcsin(np.minimum(chords, 1.0))))


def speeds(frames: Sequence[Frame]) -> Points:
    """Degrees (frames - 1, limbs, 2) by which bones turn from frame to frame."""
    turns = np.array([frame.turns for frame in frames])
    return degrees(turns[1:], turns[:-1])


def bends(frame: Frame) -> Points:
    """Bend of each limb in degrees (limbs,)."""
    steps = np.diff(frame.joints, axis=1)
    sizes = np.linalg.norm(steps, axis=2)
    cosines = (steps[:, 0] * steps[:, 1]).sum(axis=1) / (sizes[:, 0] * sizes[:, 1])
    sines = np.linalg.norm(np.cross(steps[:, 0], steps[:, 1]), axis=1) / (sizes[:, 0] * sizes[:, 1])
    return np.asarray(np.degrees(np.arctan2(sines, cosines)))


def key_walk(ob: bpy.types.Object, limbs: Sequence[Limb]) -> None:
    """Key a walk in place: legs and arms swing, knees and elbows lock and go 3 degrees past straight."""
    for i, limb in enumerate(limbs):
        for bone, is_upper in zip(limb.bones, (True, False), strict=True):
            pose = ob.pose.bones[bone]
            rest: Matrix = pose.bone.matrix_local.to_3x3()
            root: Matrix = ob.data.bones[limb.bones[0]].matrix_local.to_3x3()
            line = Vector(ob.data.bones[limb.bones[1]].tail_local) - Vector(ob.data.bones[limb.bones[0]].head_local)
            axis = rest.inverted() @ (root @ limb.side).cross(line).normalized()
            along = rest.inverted() @ line.normalized()
            pose.rotation_mode = "QUATERNION"
            for frame in range(1, FRAMES + 1):
                phase = 2.0 * math.pi * ((frame - 1) / (FRAMES - 1) + 0.5 * i)
                swing = 22.0 * math.sin(phase) if is_upper else 27.0 - 30.0 * math.cos(phase - 0.6)
                twist = 6.0 * math.cos(phase) if is_upper else 0.0
                turn = Matrix.Rotation(math.radians(swing * (-1 if is_upper else 1)), 3, axis)
                pose.rotation_quaternion = (turn @ Matrix.Rotation(math.radians(twist), 3, along)).to_quaternion()
                pose.keyframe_insert("rotation_quaternion", frame=frame)


def play(
    ob: bpy.types.Object, limbs: Sequence[Limb], frames: range, raised: float, places: Sequence[Points] | None
) -> list[Frame]:
    """Play frames with the targets at these places, raised; with None, play the FK pose."""
    found = []
    for i, frame in enumerate(frames):
        bpy.context.scene.frame_set(frame)
        if places is not None:
            for limb, (root, _middle, tip) in zip(limbs, places[i], strict=True):
                size = limb.length(ob)
                line = (root - tip) / np.linalg.norm(root - tip)
                target = ob.pose.bones[limb.bones[-1]].ik_addon.target
                target.location = ob.matrix_world @ Vector((tip + raised * size * line).tolist())
            bpy.context.view_layer.update()
        found.append(Frame.of(ob, limbs))
    return found


def check(ob: bpy.types.Object, limbs: Sequence[Limb], frames: range, raised: Sequence[float] = RAISED) -> None:
    """Play frames and assert that no joint flips, moves too fast, or moves while its target stays put."""
    ob.ik_addon.live = False
    fk = play(ob, limbs, frames, 0.0, None)
    places = [frame.joints for frame in fk]
    ob.ik_addon.live = True
    for part in raised:
        solved = play(ob, limbs, frames, part, places)
        off = np.array([frame.off for frame in solved])
        assert off.min() > -WRONG, f"raised by {part}: a joint on the wrong side on {(off < -WRONG).sum()} frames"
        assert (speeds(solved) - 1.5 * speeds(fk)).max() < 5.0, f"raised by {part}"
        if part == 0.0:
            for before, after in zip(fk, solved, strict=True):
                check_unmoved(ob, limbs, before, after)


def check_unmoved(ob: bpy.types.Object, limbs: Sequence[Limb], before: Frame, after: Frame) -> None:
    """Assert that limbs whose targets are at their tips have not moved."""
    sizes = np.array([limb.length(ob) for limb in limbs])
    moved = np.abs(after.joints - before.joints).max(axis=(1, 2)) / sizes
    bent = bends(before)
    allowed = np.where(bent < BENT, 1e-4, 1e-6)
    right = before.off >= 0.0
    assert (moved[right] < allowed[right]).all()


def limbs_of(ob: bpy.types.Object, chains: Sequence[Sequence[str]]) -> list[Limb]:
    """Add chains to the limbs of a walker; return the limbs."""
    found = []
    for chain in chains:
        activate(ob, chain[0])
        assert bpy.ops.ik_addon.chain_add(with_pole=False) == {"FINISHED"}
        tip = ob.pose.bones[chain[-1]].ik_addon
        assert tip.is_chain
        found.append(Limb(list(chain), Vector(tip.bend_side)))
    return found


VARIANTS = {
    "upright": Matrix.Identity(4),
    "mirrored": Matrix.Diagonal((-1.0, 1.0, 1.0, 1.0)),
    "small": Matrix.Diagonal((0.01, 0.01, 0.01, 1.0)),
    "turned": Matrix.LocRotScale(Vector((3.0, -2.0, 1.0)), Euler((0.4, 0.2, 2.0)), None),
}


@pytest.mark.parametrize(
    ("name", "world", "is_straight", "roll", "raised"),
    [
        ("Mixamo", "mirrored", True, None, RAISED),
        ("Manny", "turned", True, None, RAISED),
        ("VRM", "small", False, None, RAISED),
        *(("SMPL", "upright", True, roll, (0.0, 0.02)) for roll in (90, 180)),
    ],
)
def test_knees_and_elbows_that_lock_never_flip(
    name: str, world: str, is_straight: bool, roll: int | None, raised: Sequence[float]
) -> None:
    ob = rigs_named.build(RIGS[name], is_straight=is_straight)
    rigs.roll_bones(ob, math.radians(sum(map(ord, name + world)) % 360 if roll is None else roll), 0.1)
    ob.matrix_world = VARIANTS[world]
    limbs = limbs_of(ob, rigs_named.limbs(RIGS[name], ob))
    assert len(limbs) == 4
    key_walk(ob, limbs)
    check(ob, limbs, range(1, FRAMES + 1), raised)


# ---- runs, crawls, sitting down and cartwheels, imported with different up axes and units, and mirrored


SPAN = range(1, motions.FRAMES + 1)
FORMS = {
    "run": (0.01, "Z", "Y", -1.0),
    "crawl": (1.0, "Y", "-Z", -1.0),
    "sit": (0.01, "X", "Y", 1.0),
    "cartwheel": (1.0, "Z", "Y", 1.0),
}
"""For each motion: scale, up axis, forward axis, and the X scale, -1 where mirrored."""


def mover(motion: str, folder: Path) -> bpy.types.Object:
    """Import a skeleton with a motion, on its first frame."""
    importlib.import_module("addon_utils").enable("io_anim_bvh")
    size, up, forward, mirrored = FORMS[motion]
    path = motions.write(motion, folder / "motion.bvh")
    bpy.ops.import_anim.bvh(filepath=str(path), global_scale=size, axis_up=up, axis_forward=forward)
    ob: Any = bpy.context.object
    ob.matrix_world = Matrix.Diagonal((mirrored, 1.0, 1.0, 1.0))
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = SPAN[0], SPAN[-1]
    scene.frame_set(SPAN[0])
    return ob


@pytest.mark.parametrize("motion", motions.MOTIONS)
def test_knees_and_elbows_never_flip(motion: str, tmp_path: Path) -> None:
    ob = mover(motion, tmp_path)
    chains = [[f"{side}{upper}", f"{side}{lower}"] for side in ("Left", "Right") for upper, lower in PARTS]
    check(ob, limbs_of(ob, chains), SPAN)


@pytest.mark.parametrize(
    ("motion", "poles", "beneath"),
    [("run", "TWIST", "rest"), ("crawl", "FOOT", "rest"), ("sit", "MATCH", "FK"), ("cartwheel", "FOOT", "rest")],
)
def test_a_snapped_character_keeps_its_hands_and_feet_and_no_limb_turns_too_fast(
    addon: Addon, motion: str, poles: str, beneath: str, tmp_path: Path
) -> None:
    ob = mover(motion, tmp_path)
    before = played(ob, SPAN)
    assert bpy.ops.ik_addon.character_setup(live=False) == {"FINISHED"}
    remarks = " ".join(addon.module("chains.character").last(ob).remarks)
    assert "Press Targets to Pose (Range) to transfer their animation to the targets" in remarks
    assert bpy.ops.ik_addon.snap_target(chains="ALL", frame_range="SCENE", poles=poles) == {"FINISHED"}
    bones = ob.data.bones
    tips = [bone for bone in ob.pose.bones if bone.ik_addon.end_bone]
    limbs = [name for tip in tips for name in (bones[tip.name].parent.name, tip.name)]
    assert len(limbs) == 8
    if beneath == "rest":
        delete_keys(ob, limbs)
    ob.ik_addon.live = True
    after = played(ob, SPAN)
    for tip in tips:
        end = int(bones.find(tip.ik_addon.end_bone))
        own, was = after[:, end], before[:, end]
        assert np.abs(own[:, 3, :3] - was[:, 3, :3]).max() < 1e-5 * rigs.length(ob, tip.name, 2)
        assert degrees(own[:, :3, :3], was[:, :3, :3]).max() < 0.05
    for name in limbs:
        bone = int(bones.find(name))
        own, was = (degrees(found[1:, bone, :3, :3], found[:-1, bone, :3, :3]) for found in (after, before))
        assert (own < 1.5 * was + 5.0).all(), name


def delete_keys(ob: bpy.types.Object, bones: list[str]) -> None:
    """Delete all keys of these bones and reset them to rest."""
    for bone in map(ob.pose.bones.get, bones):
        rigs.remove_curves(ob, f"{bone.path_from_id()}.")
        bone.rotation_euler = bone.location = (0.0, 0.0, 0.0)
