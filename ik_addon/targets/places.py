"""Compute where targets and poles belong for given poses of a limb, on many frames at once."""

import numpy as np

from ..chains.current_pose import Limb
from ..solve import pole_angle
from ..solve.limb.two_bones import Hinge
from ..solve.maths.products import applied
from ..solve.maths.rotations import cross, dot, norm, reject
from ..solve.maths.rotations import unit as unit_of
from ..solve.problem import Bools, Floats

NEAR = 0.1
"""A pole closer than this to the line from root to tip, in chain lengths, is moved away from it."""
STILL = 1e-5
"""A knee that moved less than this, in lengths of its upper bone, stands where it was."""
ALONGSIDE = 1e-4
"""Radians: poles that differ by less bend a limb to the same side."""
SHOWS = (0.2, 0.4)
"""How much of a hinge axis is perpendicular to its limb: below the first value the hinge is ignored, from the second on
it decides the bend, and in between the two blend."""


def distances(limbs: Limb, poles: Floats) -> Floats:
    """Return the distances (F,) of poles (F, 3) from the line through root and tip."""
    return np.asarray(norm(reject((poles - limbs.joints[:, 0]).T, _line(limbs))))


def poles(
    limbs: Limb, side: Floats, angles: Floats, distance: float, hinges: Floats | None, folds: bool, knee: Hinge | None
) -> Floats:
    """Return pole positions (F, 3) that keep the current bend of a limb.

    Args:
        limbs: the poses to keep.
        side: (3,) bend side of the chain.
        angles: (F,) pole angles of the chain, in radians.
        distance: distance of the poles from the line through root and tip.
        hinges: (F, 3) axes about which the limb should bend instead, used where they are clearly across the limb.
        folds: whether the chain has folds; see `pole_angle`.
        knee: its hinge, see `pole_angle`.
    """
    line = _line(limbs)
    across = unit_of(cross(line, np.eye(3)[np.abs(line).argmin(axis=0)].T))
    middle = (limbs.joints[:, 0] + 0.5 * limbs.line).T
    points = limbs.joints[:, -1], (middle + across).T
    needed = pole_angle(limbs.joints, limbs.frames, *points, _own(limbs, side), folds=folds, hinge=knee)
    bend = _rolled(across, line, needed)
    if hinges is not None:
        across = cross(hinges.T, line)
        share = norm(across) / np.maximum(norm(hinges.T), 1e-300)
        share = np.clip((share - SHOWS[0]) / (SHOWS[1] - SHOWS[0]), 0.0, 1.0)
        turn = np.arctan2(dot(cross(bend, across), line), dot(bend, across))
        bend = _rolled(bend, line, share * turn)
    return np.asarray((middle + distance * _rolled(bend, line, -angles)).T)


def hinges_of(limbs: Limb, bend_side: Floats) -> Floats:
    """Return axes (F, 3), fixed to the root bone, about which the chain bends to its bend side (3,).

    They do not depend on how the limb is bent.
    """
    first = limbs.joints[:, 1] - limbs.joints[:, 0]
    return np.asarray(cross(first.T, _own(limbs, bend_side).T).T)


def bend_turn(before: Floats, after: Floats) -> Floats:
    """Return the angles (F,), in radians, by which the bend of a limb turned about its line from root to tip.

    If the knee moved, it decides; else the plane in which the limb bends, as when a bone turns about itself.

    Args:
        before: (F, 3, 3) root, knee and tip; the line is that of this pose.
        after: (F, 3, 3) the same joints after an edit.
    """
    line = unit_of((before[:, 2] - before[:, 0]).T)
    knees = [(joints[:, 1] - joints[:, 0]).T for joints in (before, after)]
    normals = [
        cross(knee, (joints[:, 2] - joints[:, 1]).T) for knee, joints in zip(knees, (before, after), strict=True)
    ]
    moved = norm(knees[1] - knees[0]) > STILL * norm(knees[0])
    old, new = (reject(np.where(moved, *pair), line) for pair in zip(knees, normals, strict=True))
    return np.asarray(np.arctan2(dot(cross(old, new), line), dot(old, new)))


def on_one_side(joints: Floats, one: Floats, other: Floats) -> Bools:
    """Return (F,) whether two poles (F, 3) bend a limb, whose joints are (F, 3, 3), to the same side."""
    line = unit_of((joints[:, 2] - joints[:, 0]).T)
    a, b = (reject((pole - joints[:, 0]).T, line) for pole in (one, other))
    return np.asarray((dot(a, b) > 0.0) & (norm(cross(a, b)) < ALONGSIDE * norm(a) * norm(b)))


def turned_about(joints: Floats, points: Floats, angles: Floats) -> Floats:
    """Turn points (F, 3) by angles (F,) about the line from root to tip of joints (F, 3, 3)."""
    line = unit_of((joints[:, 2] - joints[:, 0]).T)
    own = (points - joints[:, 0]).T
    along = dot(own, line) * line
    return np.asarray(joints[:, 0] + (along + _rolled(own - along, line, angles)).T)


def _own(limbs: Limb, bend_side: Floats) -> Floats:
    """Return the bend side (3,) of a chain in object space on each frame, (F, 3)."""
    return applied(limbs.frames[:, 0], np.broadcast_to(bend_side, (len(limbs.frames), 3)))


def _line(limbs: Limb) -> Floats:
    """Return unit vectors (3, F) from root to tip, or along the root bone where root and tip coincide."""
    size = np.linalg.norm(limbs.line, axis=1)[:, None]
    return np.asarray(np.where(size > 0.0, limbs.line / np.maximum(size, 1e-300), limbs.frames[:, 0, :, 1]).T)


def _rolled(side: Floats, line: Floats, angles: Floats) -> Floats:
    """Rotate vectors (3, F) about lines (3, F) perpendicular to them, by angles (F,)."""
    return side * np.cos(angles) + cross(line, side) * np.sin(angles)
