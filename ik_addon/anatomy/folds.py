"""How the joints of a limb of more than two bones fold: stifle and hock to opposite sides, a split thigh not at all.

A limb folds to its bend side at its knee or elbow. Bones of the same segment, such as the two bones of a thigh, are
rigid. Joints beyond the knee, such as the hock of a leg on its toes, fold the way they are bent, and to alternating
sides where they are straight.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..solve.problem import Floats
from .figure import Figure
from .limbs import elbow, limb_of, part_of
from .parts import EXTREMITIES
from .sides import is_trunk

SHOWN = np.radians(2.0)
"""A joint bent by more than this shows to which side it folds."""
CLEAR = np.radians(10.0)
"""A joint bent by more than this at rest does fold, whatever the names of its bones say."""
LEAST = 0.5
"""Smallest share of a joint, as a fraction of the largest one, so that a joint that is straight at rest also folds."""
MOST = 6
"""A longer chain without informative names is a tail, whatever its shape."""


def leading_joint(figure: Figure, row: list[int], at_rest: Floats) -> int | None:
    """Return the joint whose side is the side of the chain: its knee or elbow, or the first of joints that alternate.

    Args:
        figure: the skeleton at rest.
        row: the bones of the chain, root first.
        at_rest: (n, 3) bend of each joint: its axis times its angle, in radians.

    Returns:
        The index of the bone that the joint turns; None where all joints together show the side.
    """
    found = elbow(figure, row)
    return 1 if found is None and alternates(at_rest) and not is_trunk(figure, row) else found


def alternates(bends: Floats) -> bool:
    """Return whether joints bent by (n, 3) are clearly those of a leg: in one plane, to alternating sides."""
    if not 3 <= len(bends) <= MOST:
        return False
    angles = np.linalg.norm(bends[1:], axis=1)
    if angles.min() < CLEAR:
        return False
    cosines = (bends[1:-1] * bends[2:]).sum(axis=1) / (angles[:-1] * angles[1:])
    return bool(cosines.max() < -np.cos(np.radians(30.0)))


def folds_of(figure: Figure, row: list[int], shown: Sequence[Floats]) -> tuple[float, ...]:
    """Return how the joints of a chain fold, root first; empty if they all bend to its side.

    Args:
        figure: the skeleton at rest.
        row: the bones of the chain, root first.
        shown: arrays (n,) of the angles in radians by which joints are bent to the chain's side, the one at rest first,
            then less reliable ones.

    Returns:
        For each bone the share of its joint, the largest being 1: negative away from the side, 0 if rigid or the root.
    """
    bend, angles = elbow(figure, row), shown[0]
    if len(row) < 3:
        return ()
    if bend is None:
        shares = np.tan(angles / 2.0)
        shares[0] = 0.0
        alternate = (np.abs(angles[1:]) > CLEAR).all() and (angles[1:-1] * angles[2:] < 0.0).all()
        return _normal(shares) if alternate and len(row) <= MOST else ()
    limb = limb_of(figure, row[-1])
    begin = row.index(limb[0])
    end = max(row.index(bone) for bone in limb if part_of(figure, bone) not in EXTREMITIES)
    shares = np.zeros(len(row))
    for joint in (*range(bend, len(row)), *range(bend - 1, 0, -1)):
        if abs(angles[joint]) > CLEAR and joint != bend:
            shares[joint] = np.tan(angles[joint] / 2.0)
        elif joint == bend:
            shares[joint] = max(np.tan(angles[joint] / 2.0), 1e-3)
        elif joint > end:
            found = next((own[joint] for own in shown if abs(own[joint]) > SHOWN), 0.0)
            shares[joint] = np.tan(found / 2.0) if found else -1e-3 * np.sign(_before(shares, joint))
        elif joint <= begin:
            return ()  # a shoulder that is part of the chain, and shows no hinge
    return _normal(shares) if not (shares[1:] > 0.0).all() else ()


def _before(shares: Floats, joint: int) -> float:
    """The share of the nearest joint above that has one."""
    return float(next((share for share in shares[:joint][::-1] if share), 1.0))


def _normal(shares: Floats) -> tuple[float, ...]:
    """Scale shares so that the largest is 1, and raise those that are too small to `LEAST`."""
    sizes = np.abs(shares) / np.abs(shares).max()
    return tuple((np.sign(shares) * np.where(shares == 0.0, 0.0, np.maximum(sizes, LEAST))).tolist())
