"""The geometry of the overlay as lines, triangles and points in world space; no gpu."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...solve.problem import Floats
from .colors import Palette
from .limits import Part, arrow, limit, plane
from .shown import Active, Chains, State

Singles = NDArray[np.float32]

DASHES = 12
"""Number of dashes in a line to a target or pole."""
ARRIVED = 1e-3
"""A tip closer to its target than this, in lengths of its last segment, gets no line to it."""
_IS_CALM = np.isin(list(State), (State.UNKNOWN, State.REACHED))
"""For each state, whether a chain in it needs no attention."""
FAINT = 0.4
"""Opacity of inactive chains in those states."""


@dataclass(frozen=True)
class Painted:
    """Lines, each from two points in a row, or triangles from three."""

    points: Singles
    """(k, 3)"""
    colors: Singles
    """(k, 4)"""

    def __add__(self, other: Painted) -> Painted:
        """Concatenate the points and colors of both."""
        return Painted(np.concatenate([self.points, other.points]), np.concatenate([self.colors, other.colors]))


@dataclass(frozen=True)
class Drawing:
    """All geometry that does not depend on the view, in world space."""

    segments: Painted
    """Wide lines."""
    edges: Painted
    """Thin lines."""
    faces: Painted
    dots: Singles
    """(k, 3) joints at a limit."""


def drawing(chains: Chains, actives: Sequence[Active], palette: Palette) -> Drawing:
    """Return the geometry of all chains, with the limits of the active ones."""
    moved: list[Part] = []
    filled: list[Part] = []
    with np.errstate(all="ignore"):  # NaN is left out below
        for active in actives:
            parts = [limit(joint, palette) for joint in active.limits]
            parts += [] if active.plane is None else [plane(active.plane, palette)]
            parts += [] if active.bend is None else [([(arrow(active.bend), palette.states[active.state])], [])]
            moved += [(transformed(active.world, points), color) for edges, _ in parts for points, color in edges]
            filled += [(transformed(active.world, points), color) for _, faces in parts for points, color in faces]
        dashed, wide = goal_lines(chains, palette), segments(chains, palette)
        ends = [
            (transformed(active.world, active.end), palette.states[active.state])
            for active in actives
            if active.end is not None
        ]
    return Drawing(
        segments=wide + _painted(ends),
        edges=dashed + _painted(moved),
        faces=_painted(filled),
        dots=chains.joints[chains.at_limit & np.isfinite(chains.joints).all(axis=1)].astype(np.float32),
    )


def transformed(matrix: Floats, points: Floats) -> Floats:
    """Transform points (..., 3) by an affine matrix (4, 4)."""
    return np.asarray(points @ matrix[:3, :3].T + matrix[:3, 3])


# ---- chains


def segments(chains: Chains, palette: Palette) -> Painted:
    """Return the segments of all chains in the colors of their states."""
    is_start = np.ones(len(chains.joints), dtype=bool)
    is_start[chains.ends] = False
    first = np.flatnonzero(is_start)
    joints = chains.joints.astype(np.float32)
    counts = np.diff(chains.ends, prepend=-1) - 1
    colors = np.repeat(_state_colors(chains, palette).astype(np.float32), counts, axis=0)
    return _finite_lines(np.stack([joints[first], joints[first + 1]], axis=1), colors)


def goal_lines(chains: Chains, palette: Palette) -> Painted:
    """Return dashed lines from each tip to its target, and from the middle of each chain to its pole."""
    starts = np.concatenate([[0], chains.ends[:-1] + 1]).astype(np.int64)[: len(chains.ends)]
    middle = (starts + chains.ends) // 2
    colors = _state_colors(chains, palette)
    tips = chains.joints[chains.ends]
    arrived = np.linalg.norm(chains.targets - tips, axis=1) < ARRIVED * np.linalg.norm(
        tips - chains.joints[chains.ends - 1], axis=1
    )
    away = np.flatnonzero(~arrived & np.isfinite(chains.targets).all(axis=1))
    bent = np.flatnonzero(np.isfinite(chains.poles).all(axis=1))
    points = np.concatenate(
        [dashes(tips[away], chains.targets[away]), dashes(chains.joints[middle[bent]], chains.poles[bent])]
    )
    faint = colors[bent] * [1.0, 1.0, 1.0, 0.5]
    tints = np.repeat(np.concatenate([colors[away], faint]), DASHES, axis=0)
    return _finite_lines(points.reshape(-1, 2, 3).astype(np.float32), tints.astype(np.float32))


def dashes(start: Floats, end: Floats) -> Floats:
    """Return the ends (k, 2 DASHES, 3) of the dashes of lines between points (k, 3)."""
    share = np.arange(2 * DASHES) / (2 * DASHES - 1)
    return np.asarray(start[:, None] + share[:, None] * (end - start)[:, None])


def _state_colors(chains: Chains, palette: Palette) -> Floats:
    """Return the color (C, 4) of each chain; inactive ones in a calm state are faint, so that others stand out."""
    colors = np.array(palette.states)[chains.states]
    colors[~chains.active & _IS_CALM[chains.states], 3] *= FAINT
    return colors


def _finite_lines(points: Singles, colors: Singles) -> Painted:
    """Return lines between pairs of points (k, 2, 3) in colors (k, 4), leaving out those that are not finite."""
    if not np.isfinite(points).all():
        keep = np.isfinite(points).all(axis=(1, 2))
        points, colors = points[keep], colors[keep]
    return Painted(points.reshape(-1, 3), np.repeat(colors, 2, axis=0))


def _painted(parts: Sequence[Part]) -> Painted:
    """Return the points of all parts in their colors, leaving out parts that are not finite."""
    usable = [(points, color) for points, color in parts if np.isfinite(points).all()]
    points = [np.zeros((0, 3)), *(points for points, _ in usable)]
    colors = [np.zeros((0, 4)), *(np.tile(color, (len(points), 1)) for points, color in usable)]
    return Painted(np.concatenate(points).astype(np.float32), np.concatenate(colors).astype(np.float32))
