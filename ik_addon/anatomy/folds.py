"""How the joints of a limb of more than two bones fold: stifle and hock to alternate sides, a split thigh not at all.

A limb folds at its knee or elbow to its bend side. What is a part of the same segment, as two bones of a thigh, is
rigid; what follows, as the hock of a leg on its toes, folds as it is bent, and a straight one to alternate sides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..solve.problem import Floats
from .figure import Figure
from .limbs import elbow, limb_of, part_of
from .parts import EXTREMITIES

SHOWN = np.radians(2.0)
"""A joint that is bent by more shows to which side it folds."""
CLEAR = np.radians(10.0)
"""A joint that is bent by more at rest is one, whatever the names of its bones say."""
LEAST = 0.5
"""The least share of a joint, of the largest one: one that is straight at rest folds along with the others."""
MOST = 6
"""A longer chain without telling names is a tail, whatever its shape."""


def leading_joint(figure: Figure, row: list[int], at_rest: Floats) -> int | None:
    """The joint whose side is that of a chain, root first: its knee or elbow, else the first of alternate ones.

    Args:
        figure: the skeleton at rest.
        row: the bones of the chain.
        at_rest: (n, 3) bend of each joint: its axis times its angle, in radians.

    Returns:
        The index of the bone that it turns; None where all joints together show the side.
    """
    found = elbow(figure, row)
    return 1 if found is None and alternates(at_rest) else found


def alternates(bends: Floats) -> bool:
    """Whether joints that are bent by (n, 3) are clearly those of a leg: in one plane, each to the other side."""
    if not 3 <= len(bends) <= MOST:
        return False
    angles = np.linalg.norm(bends[1:], axis=1)
    if angles.min() < CLEAR:
        return False
    cosines = (bends[1:-1] * bends[2:]).sum(axis=1) / (angles[:-1] * angles[1:])
    return bool(cosines.max() < -np.cos(np.radians(30.0)))


def folds_of(figure: Figure, row: list[int], shown: Sequence[Floats]) -> tuple[float, ...]:
    """How the joints of a chain fold, root first; empty where they all bend to its side.

    Args:
        figure: the skeleton at rest.
        row: the bones of the chain.
        shown: (n,) by how many radians joints are bent to the side of the chain: at rest, then by what tells less.

    Returns:
        Of each bone the share of its joint, the largest being 1; negative away from the side, 0: rigid, as the root's.
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
    """Shares of which the largest is 1, and none that is one too small."""
    sizes = np.abs(shares) / np.abs(shares).max()
    return tuple((np.sign(shares) * np.where(shares == 0.0, 0.0, np.maximum(sizes, LEAST))).tolist())
