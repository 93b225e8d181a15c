"""The side to which a chain bends, from what its bones show: poses, animation, limits, anatomy.

A side is a vector in the rest space of the chain's root bone, across its first segment: the direction to which the
middle of the chain goes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum

import bpy
import numpy as np

from ..anatomy import sides
from ..anatomy.figure import Figure
from ..data import fk_store
from ..pose import channels, transforms
from ..pose.skeleton import Skeleton, orthonormal
from ..rig.plan import limits
from ..rig.plan.chain import ChainError
from ..rig.read import fcurves
from ..solve.problem import Floats
from ..solve.rotations import hinge
from .present import Limb, read_poses

BENT = math.radians(2.0)
"""A chain whose joints bend by less than this altogether shows no side."""
FAINTLY_BENT = 1e-3
"""Radians: bends as small as this count where nothing else shows a side."""
CLEARLY_BENT = math.radians(20.0)
"""A knee or elbow that bends by less than this to the wrong side may be hyperextended."""
CLEARLY_BENT_AT_REST = math.radians(10.0)
ONE_SIDED = math.radians(10.0)
"""A joint whose limits allow more than this to one side than to the other is a hinge."""
FRAMES = 48
"""On how many frames animation is looked at."""


class Evidence(Enum):
    """What a bend side was found from, in words for the user."""

    REST = "its rest pose"
    POSE = "its current pose"
    ANIMATION = "its animation"
    LIMITS = "its IK limits"
    ANATOMY = "the anatomy of the character"
    ROLL = "its bone roll alone"


def find(
    ob: bpy.types.Object, bones: Sequence[bpy.types.PoseBone], depsgraph: bpy.types.Depsgraph
) -> tuple[Floats, Evidence] | None:
    """Find the side of a chain; None where it has none, as spines and tails, which bend to all sides.

    A pose that is bent by little counts only where nothing that tells more contradicts it.

    Args:
        ob: the armature object.
        bones: of the chain, root first.
        depsgraph: in which the current pose is evaluated.
    """
    figure = Figure.of(ob)
    if not sides.can_have_side(figure, [figure.names.index(bone.name) for bone in bones]):
        return None
    skeleton = Skeleton.of(ob)
    indices = [skeleton.names.index(bone.name) for bone in bones]
    first = _first_segment(skeleton, indices)
    known = _anatomy(figure, skeleton, indices)
    moving = _animation(ob, skeleton, indices)
    rest, pose = _bend(_rest_limb(skeleton, indices)), _pose(ob, skeleton, indices, depsgraph)
    if known is None and np.linalg.norm(pose) > CLEARLY_BENT and rest.dot(pose) < 0.0:
        rest = np.zeros(3)  # posed like that on purpose, and nothing says that it cannot be
    shown = (
        (rest, Evidence.REST, CLEARLY_BENT_AT_REST, (known,)),
        (pose, Evidence.POSE, CLEARLY_BENT, (moving, known)),
        (moving, Evidence.ANIMATION, CLEARLY_BENT, (known,)),
    )
    for bend, evidence, clear, against in shown:
        contradicted = any(other is not None and bend.dot(other) < 0.0 for other in against)
        if np.linalg.norm(bend) > (clear if contradicted else BENT) and _is_across(bend, first):
            return _side(bend, first), evidence
    for normal, evidence in ((_limits(skeleton, indices, bones), Evidence.LIMITS), (known, Evidence.ANATOMY)):
        if normal is not None and _is_across(normal, first):
            return _side(normal, first), evidence
    for bend, evidence, _clear, _against in shown:
        if np.linalg.norm(bend) > FAINTLY_BENT and _is_across(bend, first):
            return _side(bend, first), evidence
    return roll_side(skeleton, indices), Evidence.ROLL


def shown_by(
    ob: bpy.types.Object, bones: Sequence[bpy.types.PoseBone], skeleton: Skeleton, poses: Floats
) -> Floats | None:
    """The side (3,) to which a chain, root first, is bent in pose matrices (m, 4, 4); None: it shows or has none."""
    if not can_be_found(ob, bones):
        return None
    indices = [skeleton.names.index(bone.name) for bone in bones]
    bend = _bend_in(skeleton, indices, poses)
    return _side(bend, _first_segment(skeleton, indices)) if np.linalg.norm(bend) > BENT else None


def can_be_found(ob: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]) -> bool:
    """Whether a chain, root first, is one that bends to one side."""
    figure = Figure.of(ob)
    return sides.can_have_side(figure, [figure.names.index(bone.name) for bone in bones])


def opposed_by_limits(ob: bpy.types.Object, bones: Sequence[bpy.types.PoseBone], side: Floats) -> bool:
    """Whether the limits of a chain, root first, let it bend to the other side of a side (3,)."""
    skeleton = Skeleton.of(ob)
    indices = [skeleton.names.index(bone.name) for bone in bones]
    found = _limits(skeleton, indices, bones)
    return found is not None and bool(found.dot(np.cross(side, _first_segment(skeleton, indices))) < 0.0)


def hyperextension(ob: bpy.types.Object, bones: Sequence[bpy.types.PoseBone], side: Floats, frame: float) -> float:
    """By how many radians the FK pose of a chain, root first, bends away from its side (3,) on a frame; 0: it does not.

    Only F-curves and the stored FK pose are asked; what constraints and drivers do is not known here.
    """
    skeleton = Skeleton.of(ob)
    indices = [skeleton.names.index(bone.name) for bone in bones]
    below = np.array(indices[1:], dtype=np.int64)
    if not len(below):
        return 0.0
    try:
        rows = fcurves.at_frame(ob, below, fk_store.held(ob, below), frame)
    except fcurves.Untold:
        return 0.0
    bend = _bends_by(ob, skeleton, indices, rows[None])[0]
    normal = np.cross(side, _first_segment(skeleton, indices))
    away = -float(bend.dot(normal) / max(float(np.linalg.norm(normal)), 1e-12))
    return away if away > 0.0 else 0.0


def is_from_roll(ob: bpy.types.Object, bones: Sequence[bpy.types.PoseBone], side: Floats) -> bool:
    """Whether nothing at rest but the roll of the root bone speaks for a side (3,)."""
    skeleton = Skeleton.of(ob)
    indices = [skeleton.names.index(bone.name) for bone in bones]
    if np.abs(side - roll_side(skeleton, indices)).max() > 1e-6:
        return False
    at_rest = np.linalg.norm(_bend(_rest_limb(skeleton, indices))) > FAINTLY_BENT
    return (
        not at_rest and _limits(skeleton, indices, bones) is None and _anatomy(Figure.of(ob), skeleton, indices) is None
    )


def roll_side(skeleton: Skeleton, bones: Sequence[int]) -> Floats:
    """The side (3,) to which a straight chain bends without being told: about the X axis of its root bone."""
    first = _first_segment(skeleton, bones)
    return _side(hinge(np.eye(3), first), first)


def normal_of(skeleton: Skeleton, bones: Sequence[int], side: Floats) -> Floats:
    """The axis (3,), in armature space at rest, about which a chain with this side bends by positive rotations."""
    frame = orthonormal(skeleton.rest[bones[0], :3, :3])
    return np.asarray(frame.dot(np.cross(side, _first_segment(skeleton, bones))))


# ---- what shows a side: bend vectors in the axes of the root bone, each joint's axis times its angle


def _side(normal: Floats, first: Floats) -> Floats:
    """The side (3,) of a chain that bends about an axis (3,) and begins in a direction (3,)."""
    side = np.cross(first, normal)
    return np.asarray(side / np.linalg.norm(side))


def _is_across(normal: Floats, first: Floats) -> bool:
    """Whether a chain that begins in a direction (3,) can bend about an axis (3,)."""
    return bool(np.linalg.norm(np.cross(first, normal)) > 0.1 * np.linalg.norm(normal))


def _first_segment(skeleton: Skeleton, bones: Sequence[int]) -> Floats:
    """Direction (3,) of the first segment that has a length, in the rest axes of the root bone."""
    limb = _rest_limb(skeleton, bones)
    steps = np.diff(limb.joints, axis=0)
    long = np.flatnonzero(limb.segments > 1e-6 * limb.length)
    step = steps[long[0]] if len(long) else limb.frames[0, :, 1]
    local = limb.frames[0].T.dot(step)
    return np.asarray(local / np.linalg.norm(local))


def _rest_limb(skeleton: Skeleton, bones: Sequence[int]) -> Limb:
    return Limb.of(skeleton, bones, skeleton.rest)


def _bend(limb: Limb) -> Floats:
    """The bend of a limb in one pose."""
    steps = limb.frames[0].T.dot(np.diff(limb.joints, axis=0).T).T
    return _bend_of(steps[None])[0]


def _bend_of(steps: Floats) -> Floats:
    """Bend vectors (F, 3) of chains of segments (F, n, 3)."""
    sizes = np.linalg.norm(steps, axis=2)
    total = sizes.sum(axis=1)
    found = np.zeros((len(steps), 3))
    for frame in range(len(steps)):
        units = steps[frame][sizes[frame] > 1e-6 * total[frame]]
        units = units / np.linalg.norm(units, axis=1)[:, None]
        axes = np.cross(units[:-1], units[1:])
        sines = np.linalg.norm(axes, axis=1)
        angles = np.arctan2(sines, (units[:-1] * units[1:]).sum(axis=1))
        found[frame] = (axes * (angles / np.maximum(sines, 1e-12))[:, None]).sum(axis=0)
    return found


def _pose(ob: bpy.types.Object, skeleton: Skeleton, bones: Sequence[int], depsgraph: bpy.types.Depsgraph) -> Floats:
    """The bend of the current pose; none where that is a solution."""
    if not set(bones).isdisjoint(fk_store.stored_bones(ob)):
        return np.zeros(3)
    return _bend_in(skeleton, bones, read_poses(ob, depsgraph))


def _bend_in(skeleton: Skeleton, bones: Sequence[int], poses: Floats) -> Floats:
    """The bend in pose matrices (m, 4, 4); none where these are no numbers."""
    limb = Limb.of(skeleton, bones, poses)
    return _bend(limb) if np.isfinite(limb.joints).all() and limb.length > 0.0 else np.zeros(3)


def _animation(ob: bpy.types.Object, skeleton: Skeleton, bones: Sequence[int]) -> Floats:
    """The mean bend over the animation of a chain, of the frames on which it shows."""
    own = [ob.pose.bones[bone] for bone in bones[1:]]
    paths = tuple(f"{bone.path_from_id()}." for bone in own)
    below = np.array(bones[1:])
    try:
        curves = [curve for path, found in fcurves.in_force(ob).items() if path.startswith(paths) for curve in found]
        if not curves:
            return np.zeros(3)
        ranges = np.array([curve.range() for curve in curves])
        frames = np.unique(np.round(np.linspace(ranges[:, 0].min(), ranges[:, 1].max(), FRAMES)))
        held = channels.read(ob, below)
        rows = np.stack([fcurves.at_frame(ob, below, held, frame) for frame in frames.tolist()])
    except fcurves.Untold:
        return np.zeros(3)
    bends = _bends_by(ob, skeleton, bones, rows)
    bends = bends[np.isfinite(bends).all(axis=1)]
    bends = bends[np.linalg.norm(bends, axis=1) > BENT]
    # Weighted by the bend itself: a step that bends the knee by 60 degrees counts more than ten locked ones.
    weights = np.linalg.norm(bends, axis=1)
    return np.asarray((bends * weights[:, None]).sum(axis=0) / weights.sum()) if len(bends) else np.zeros(3)


def _bends_by(ob: bpy.types.Object, skeleton: Skeleton, bones: Sequence[int], rows: channels.Row) -> Floats:
    """The bends (F, 3) that the channels (F, n-1, 17) of all bones of a chain but its root make."""
    below = np.array(bones[1:])
    own = [ob.pose.bones[bone] for bone in bones[1:]]
    connected = np.array([bone.bone.use_connect for bone in own], dtype=bool)
    basis = transforms.basis(rows, [bone.rotation_mode for bone in own], connected)
    local = skeleton.offsets[below] @ basis
    poses = [np.broadcast_to(np.eye(4), local[:, 0].shape)]
    for k in range(len(below)):
        poses.append(poses[-1] @ local[:, k])
    heads = [pose[:, :3, 3] for pose in poses]
    heads.append(heads[-1] + poses[-1][:, :3, 1] * skeleton.lengths[bones[-1]])
    return _bend_of(np.diff(np.array(heads), axis=0).transpose(1, 0, 2))


def _limits(skeleton: Skeleton, bones: Sequence[int], posed: Sequence[bpy.types.PoseBone]) -> Floats | None:
    """The axis about which the limits of a chain let its joints bend more one way than the other."""
    found = np.zeros(3)
    root = skeleton.rest[bones[0], :3, :3]
    for bone, index in zip(posed[1:], bones[1:], strict=True):
        try:
            ranges = limits.ranges_of(bone)
        except ChainError:
            continue
        for axis, (low, high) in zip((0, 2), ranges[:2], strict=True):
            if math.isfinite(low + high) and abs(low + high) > ONE_SIDED:
                found += (low + high) * root.T.dot(skeleton.rest[index, :3, axis])
    return found if np.linalg.norm(found) > ONE_SIDED else None


def _anatomy(figure: Figure, skeleton: Skeleton, bones: Sequence[int]) -> Floats | None:
    side = sides.side_of_row(figure, [figure.names.index(skeleton.names[bone]) for bone in bones])
    if side is None:
        return None
    limb = _rest_limb(skeleton, bones)
    return np.asarray(limb.frames[0].T.dot(np.cross(side, limb.joints[-1] - limb.joints[0])) / limb.length)
