"""Figures as importers make them: bones that don't point at their child, rest poses that nobody stands in."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Vector
from numpy.typing import NDArray

from tests import motions, rigs

Array = NDArray[np.float64]
SIDES = ("Left", "Right")
UP, LEFT, FRONT = Vector((0.0, 0.0, 1.0)), Vector((1.0, 0.0, 0.0)), Vector((0.0, -1.0, 0.0))
AIMS = ("CHILD", "CROSS", "UP")
"""Where bones point: at their child, across it as in many FBX files, or all upward as in many glTF files."""
RESTS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "T": {},
    "A": {"Arm": (50.0, 0.0)},
    "STAR": {"UpLeg": (-90.0, 0.0), "Arm": (0.0, 0.0)},
    "LINE": {"UpLeg": (-95.0, 0.0), "Foot": (0.0, 65.2), "ToeBase": (0.0, 24.8)},
    "BENT": {"UpLeg": (0.0, -30.0), "Leg": (0.0, 50.0), "ForeArm": (0.0, -25.0)},
}
"""Rest poses: degrees by which bones are turned from the T-pose, downward on the left side, and about its X axis."""
NAMES: Mapping[str, Mapping[str, str]] = {
    "Mixamo": {"": "mixamorig:"},
    "Biped": {
        "Hips": "Bip01 Pelvis",
        "Neck": "Bip01 Neck",
        "Head": "Bip01 Head",
        "Spine": "Bip01 Spine",
        "UpLeg": "Bip01 {s} Thigh",
        "Leg": "Bip01 {s} Calf",
        "Foot": "Bip01 {s} Foot",
        "ToeBase": "Bip01 {s} Toe0",
        "Shoulder": "Bip01 {s} Clavicle",
        "Arm": "Bip01 {s} UpperArm",
        "ForeArm": "Bip01 {s} Forearm",
        "Hand": "Bip01 {s} Hand",
    },
    "VRM": {
        "Hips": "J_Bip_C_Hips",
        "Neck": "J_Bip_C_Neck",
        "Head": "J_Bip_C_Head",
        "Spine": "J_Bip_C_Spine",
        "Spine1": "J_Bip_C_Chest",
        "UpLeg": "J_Bip_{s}_UpperLeg",
        "Leg": "J_Bip_{s}_LowerLeg",
        "Foot": "J_Bip_{s}_Foot",
        "ToeBase": "J_Bip_{s}_ToeBase",
        "Shoulder": "J_Bip_{s}_Shoulder",
        "Arm": "J_Bip_{s}_UpperArm",
        "ForeArm": "J_Bip_{s}_LowerArm",
        "Hand": "J_Bip_{s}_Hand",
    },
    "BVH": {},
}
"""Bone names by those in `motions.SKELETON`."""


def named(kind: str, name: str) -> str:
    """Return what a kind of rig calls a bone of `motions.SKELETON`."""
    side = next((side for side in SIDES if name.startswith(side)), "")
    found = NAMES[kind].get(name.removeprefix(side))
    return NAMES[kind].get("", "") + name if found is None else found.replace("{s}", side[:1])


def limbs(kind: str) -> list[list[str]]:
    """Return the bones of legs and arms, root first, each with its foot or hand."""
    rows = (("UpLeg", "Leg", "Foot"), ("Arm", "ForeArm", "Hand"))
    return [[named(kind, side + part) for part in row] for row in rows for side in SIDES]


def moving(motion: str, folder: Path) -> bpy.types.Object:
    """Import a motion of `motions`, or `walk`, the recorded one."""
    if motion == "walk":
        from tests.recorded import walk

        return walk()
    importlib.import_module("addon_utils").enable("io_anim_bvh")
    bpy.ops.import_anim.bvh(filepath=str(motions.write(motion, folder / "motion.bvh")), global_scale=0.01)
    ob: Any = bpy.context.object
    return ob


def recast(
    source: bpy.types.Object, kind: str, aim: str = "CHILD", rest: str = "T", frames: Sequence[int] = (), seed: int = 0
) -> bpy.types.Object:
    """Build a figure that moves exactly like another one, with other names, bone axes and rest pose.

    Args:
        source: the figure with the animation, whose rest pose is a T-pose.
        kind: a key of `NAMES`.
        aim: one of `AIMS`; the roll is random.
        rest: a key of `RESTS`.
        frames: the frames to copy, to consecutive frames from 1; none: no animation.
        seed: makes other rolls.
    """
    rng = np.random.default_rng(seed)
    bones = list(source.data.bones)
    index = {bone.name: i for i, bone in enumerate(bones)}
    parents = [-1 if bone.parent is None else index[bone.parent.name] for bone in bones]
    turns, heads = _posed(bones, parents, RESTS[rest])
    ob = rigs.armature(kind)
    with rigs.edit_mode(ob) as made:
        for i, bone in enumerate(bones):
            new = made.new(named(kind, bone.name))
            new.parent = made[named(kind, bone.parent.name)] if bone.parent else None
            below = [heads[k] - heads[i] for k, parent in enumerate(parents) if parent == i]
            step = max(below, key=lambda way: way.length, default=turns[i] @ (bone.tail_local - bone.head_local))
            if step.length < 1e-4:
                step = 0.05 * UP
            any_way = Vector(rng.normal(size=3).tolist())
            way = {"CHILD": step, "CROSS": step.cross(any_way), "UP": UP.copy()}[aim].normalized()
            new.head, new.tail = heads[i], heads[i] + step.length * way
            new.align_roll(Vector(rng.normal(size=3).tolist()))
    _copy_motion(source, ob, turns, parents, frames)
    return ob


def _posed(
    bones: Sequence[Any], parents: Sequence[int], turned: Mapping[str, tuple[float, float]]
) -> tuple[list[Matrix], list[Vector]]:
    """Return rotations from the rest pose, and heads, of bones that are turned by degrees."""
    turns: list[Matrix] = []
    heads: list[Vector] = []
    for bone, parent in zip(bones, parents, strict=True):
        side = next((side for side in SIDES if bone.name.startswith(side)), "")
        down, about = turned.get(bone.name.removeprefix(side), (0.0, 0.0))
        sign = 1.0 if side == "Left" else -1.0
        own = Matrix.Rotation(np.radians(sign * down), 3, "Y") @ Matrix.Rotation(np.radians(about), 3, "X")
        if bone.name.endswith("ForeArm"):
            own = Matrix.Rotation(np.radians(sign * about), 3, "Z")
        above = Matrix.Identity(3) if parent < 0 else turns[parent]
        start = bone.head_local if parent < 0 else heads[parent] + above @ (bone.head_local - bones[parent].head_local)
        turns.append(above @ own)
        heads.append(start)
    return turns, heads


def _copy_motion(
    source: bpy.types.Object, ob: bpy.types.Object, turns: list[Matrix], parents: list[int], frames: Sequence[int]
) -> None:
    """Key what a source does on some frames; `turns` are the rotations (3, 3) from its rest pose to that of `ob`."""
    rest = [bone.matrix_local.copy() for bone in ob.data.bones]
    back = [
        bone.matrix_local.to_3x3().inverted() @ turn.inverted() @ new.to_3x3()
        for bone, turn, new in zip(source.data.bones, turns, rest, strict=True)
    ]
    for bone in ob.pose.bones:
        bone.rotation_mode = "QUATERNION"
    for frame, at in enumerate(frames, 1):
        bpy.context.scene.frame_set(at)
        posed = [
            Matrix.Translation(bone.head) @ (bone.matrix.to_3x3() @ turn).to_4x4()
            for bone, turn in zip((source.pose.bones[b.name] for b in source.data.bones), back, strict=True)
        ]
        for i, bone in enumerate(ob.data.bones):
            parent, new = parents[i], ob.pose.bones[bone.name]
            offset = rest[i] if parent < 0 else rest[parent].inverted() @ rest[i]
            local = posed[i] if parent < 0 else posed[parent].inverted() @ posed[i]
            place, turn, _size = (offset.inverted() @ local).decompose()
            if frame > 1 and turn.dot(new.rotation_quaternion) < 0.0:
                turn.negate()
            new.location, new.rotation_quaternion = place, turn
            new.keyframe_insert("rotation_quaternion", frame=frame)
            if parent < 0:
                new.keyframe_insert("location", frame=frame)
    if frames:
        bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, len(frames)
    bpy.data.objects.remove(source)
    bpy.context.view_layer.objects.active = ob
    bpy.context.scene.frame_set(1)


def record(ob: bpy.types.Object, rows: Sequence[Sequence[str]], every: int = 1) -> Array:
    """Return where (F, r, n, 3) the heads of rows of bones are on the scene's frames, or on every nth one."""
    scene, found = bpy.context.scene, []
    for frame in range(scene.frame_start, scene.frame_end + 1, every):
        scene.frame_set(frame)
        seen = rigs.evaluated(ob)
        found.append([[np.array(seen.pose.bones[name].head) for name in row] for row in rows])
    return np.array(found, dtype=np.float64)


def bends(joints: Array) -> Array:
    """Return vectors (..., 3) from the middle of three joints (..., 3, 3) away from the line between the others."""
    line = joints[..., 2, :] - joints[..., 0, :]
    upper = joints[..., 1, :] - joints[..., 0, :]
    share = (upper * line).sum(axis=-1) / (line * line).sum(axis=-1)
    return np.asarray(upper - share[..., None] * line)
