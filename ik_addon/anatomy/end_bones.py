"""The hand or foot at the end of a limb, which moves and turns with the limb's target."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..solve.problem import Floats
from .chain_ends import LONGER, next_of
from .figure import Figure
from .limbs import NO_SEGMENT, limb_of, part_of
from .parts import ARM, EXTREMITIES, Part, is_end

NUB = 0.02
"""A bone shorter than this, in lengths of its limb, only marks where the limb ends."""


def end_below(figure: Figure, row: list[int]) -> int | None:
    """Return the hand or foot below the last bone of a limb, root first; None if there is none.

    Names decide. Without informative names, it is the bone that continues two that are by far longer.
    """
    tip = row[-1]
    size = float(np.linalg.norm(figure.heads[tip] - figure.heads[row[0]])) + figure.length(tip)
    children = [bone for bone in _next(figure, tip, size) if bone not in figure.steered]
    limb = limb_of(figure, tip)
    if limb:
        if tip != limb[-1] or len(row) < 2:
            return None
        wanted: tuple[Part, ...] = EXTREMITIES if part_of(figure, limb[0]) in ARM else (Part.FOOT,)
        if part_of(figure, limb[0]) is Part.UNKNOWN:
            wanted = (Part.UNKNOWN,)
        named = [
            b for b in children if part_of(figure, b) in wanted or (is_end(figure.labels[b]) and len(children) == 1)
        ]
        found = max(named, key=lambda b: float(figure.reaches[b]), default=None)
        return None if found is None or _is_nub(figure, row, found) else found
    end = next_of(figure, tip)
    is_plain = len(row) == 2 and all(part_of(figure, b) is Part.UNKNOWN for b in row)
    if not is_plain or end not in children or is_end(figure.labels[end]) or _is_nub(figure, row, end):
        return None
    joints = np.array([*(figure.heads[bone] for bone in row), figure.heads[end]])
    shortest = float(np.linalg.norm(np.diff(joints, axis=0), axis=1).min())
    return end if shortest > LONGER * figure.length(end) else None


def joints_of(figure: Figure, row: list[int]) -> Floats:
    """Return the joints (n+1, 3) of a chain, root first: the heads of its bones, then where it ends.

    That is the head of its hand or foot, as importers leave the tails of bones anywhere; without one, its tip's tail.
    """
    end = end_below(figure, row)
    return np.array([*figure.heads[row], figure.tails[row[-1]] if end is None else figure.heads[end]])


def _next(figure: Figure, bone: int, size: float) -> Iterator[int]:
    """Yield the children of the last bone of a limb; the children of mechanism bones in place of those bones.

    `size` is the length of the limb.
    """
    for child in figure.children[bone]:
        steps = figure.heads[list(figure.children[child])] - figure.heads[child]
        is_no_segment = len(steps) == 1 and float(np.linalg.norm(steps[0])) < NO_SEGMENT * size
        if is_no_segment or part_of(figure, child) is Part.HELPER:
            yield from _next(figure, child, size)
        else:
            yield child


def _is_nub(figure: Figure, row: list[int], bone: int) -> bool:
    """Return whether a bone below a limb, root first, has no children and is too short to show a direction."""
    size = float(np.linalg.norm(figure.heads[bone] - figure.heads[row[0]]))
    return not figure.children[bone] and figure.length(bone) < NUB * size
