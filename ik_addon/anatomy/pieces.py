"""Limbs without informative names whose halves are several bones each, as in rigs with twist bones in line.

Such a limb has two straight halves of about equal length. A hand or foot follows, which turns away from the line or
branches into fingers. Unlike a spine, the limb has a mirror image.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..solve.problem import Floats
from .figure import Figure

TURN = 3.0
"""Degrees: joints that bend less than this at rest do not show where the halves of a limb meet."""
MOST = 6
"""A row of more bones than this is not a limb."""
HALVES = 0.75
"""Smallest ratio of the lengths of the halves."""
LONGER = 1.5
"""If two bones are longer than the third longest by this factor, each of them is a half by itself."""
AWAY = 45.0
"""Degrees: a foot turns away from the line of its leg by more than this."""
FOOT = 0.05
"""Minimum distance that a foot reaches from its leg, in lengths of the leg."""
FINGERS = 3
"""A bone with at least this many children is a hand."""
SAME = 0.01
"""Points closer together than this, in lengths of the limb, are the same."""


def limb_in_pieces(figure: Figure, bone: int) -> list[int]:
    """Return the limb, root first, in which a bone is a segment, the hand or the foot; empty if there is none."""
    above = [*figure.up(bone)][: MOST + 1][::-1]
    way = [*above, *figure.down(bone)[1 : MOST + 1]]
    at = len(above) - 1
    found: list[int] = []
    for first in range(at + 1):
        for last in range(max(first + 2, at - 1), min(first + MOST, len(way) - 1)):
            row, end = way[first : last + 1], way[last + 1]
            if len(row) > len(found) and _is_limb(figure, row, end):
                found = row
    return found


def bent_most(joints: Floats) -> int:
    """Return the index of the segment with which the lower half of a limb with these joints (n+1, 3) begins."""
    sizes = np.linalg.norm(np.diff(joints, axis=0), axis=1)
    turns = _turns(joints)
    if turns.max() > np.radians(TURN):
        return int(turns.argmax()) + 1
    along = np.cumsum(sizes)
    return int(np.abs(along[:-1] - 0.5 * along[-1]).argmin()) + 1


def _is_limb(figure: Figure, row: list[int], end: int) -> bool:
    joints = figure.heads[[*row, end]]
    sizes = np.linalg.norm(np.diff(joints, axis=0), axis=1)
    _, second, third = sorted(sizes, reverse=True)[:3]
    if sizes.min() < SAME * sizes.sum() or second > LONGER * third or (_turns(joints) > np.radians(TURN)).sum() > 1:
        return False
    lower = bent_most(joints)
    halves = sizes[:lower].sum(), sizes[lower:].sum()
    return min(halves) > HALVES * max(halves) and _ends(figure, joints, end) and _has_mirror_image(figure, row, joints)


def _ends(figure: Figure, joints: Floats, end: int) -> bool:
    """Return whether a bone is the hand or foot of a limb with these joints (n+1, 3)."""
    if len(figure.children[end]) >= FINGERS:
        return True
    below = [bone for bone in figure.below(end) if bone != end]
    steps = np.concatenate([figure.heads[below], figure.tails[[end, *below]]]) - joints[-1]
    sizes, line = np.linalg.norm(steps, axis=1), joints[-1] - joints[-2]
    aside = steps.dot(line) < np.cos(np.radians(AWAY)) * sizes * float(np.linalg.norm(line))
    is_far = sizes > FOOT * float(np.linalg.norm(joints[-1] - joints[0]))
    return bool((aside & is_far).any())


def _has_mirror_image(figure: Figure, row: Sequence[int], joints: Floats) -> bool:
    """Return whether a row of other bones has these joints (n+1, 3), mirrored across a plane."""
    sizes = np.linalg.norm(np.diff(joints, axis=0), axis=1)
    near = SAME * float(sizes.sum())
    for bone in range(len(figure.names)):
        way = [bone]
        for size in sizes if bone not in row else ():
            gaps = ((child, abs(figure.gap(way[-1], child) - size)) for child in figure.children[way[-1]])
            way += [child for child, gap in gaps if gap < near][:1]
        if len(way) == len(joints) and _are_mirrored(joints, figure.heads[way], near):
            return True
    return False


def _are_mirrored(joints: Floats, others: Floats, near: float) -> bool:
    apart, middles = others - joints, 0.5 * (others + joints)
    size = float(np.linalg.norm(apart[0]))
    if size < near:
        return False
    normal = apart[0] / size
    aside = apart - np.outer(apart.dot(normal), normal)
    return bool(np.linalg.norm(aside, axis=1).max() < near and np.ptp(middles.dot(normal)) < near)


def _turns(joints: Floats) -> Floats:
    """Angles (n-1,) in radians by which the path along joints (n+1, 3) turns at its inner joints."""
    steps = np.diff(joints, axis=0)
    units = steps / np.maximum(np.linalg.norm(steps, axis=1), 1e-30)[:, None]
    return np.asarray(np.arccos(np.clip((units[1:] * units[:-1]).sum(axis=1), -1.0, 1.0)))
