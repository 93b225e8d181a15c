"""What a figure does by default when it is dragged: what moves freely, how much follows, and how joints fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
from bpy.types import Object

from ..anatomy.body import LIMBS, Region, find_members, root_of
from ..anatomy.chain_ends import joints_of
from ..anatomy.figure import Figure
from ..anatomy.limbs import elbow
from ..anatomy.sides import side_of_row
from ..solve.problem import Floats

BENT = np.sin(np.radians(5.0))
"""A joint bent at rest by more than this, as the sine of the angle, shows how it folds."""


class Fold(NamedTuple):
    """How an elbow, knee or hock folds, or a joint of a spine or neck."""

    axes: Floats
    """(3, 3) in its columns, at rest: the unit axis about which it folds, the direction of the segment below, across
    the first, and the axis across both."""
    twists: bool
    """Whether the bone can twist too, as forearms and spines do."""
    hardens: bool = False
    """Whether it gets stiffer the farther it bends, so that the whole spine bends."""


def folds_of(figure: Figure) -> dict[int, Fold]:
    """Return how joints fold: elbows, knees and hocks by the bone below, spine and neck bones forward and back.

    Joints whose fold is unknown are left out.
    """
    found = {}
    for limb in find_members(figure):
        row = list(limb.row)
        if limb.region not in LIMBS:
            side = side_of_row(figure, row)
            if side is not None:
                points = joints_of(figure, row)
                line = points[-1] - points[0]
                found.update(dict.fromkeys(row, Fold(_axes(np.cross(side, line), line), twists=True, hardens=True)))
            continue
        points = joints_of(figure, row)
        segments = np.diff(points, axis=0)
        side, lower = side_of_row(figure, row), elbow(figure, row)
        across = np.zeros(3) if side is None else np.cross(side, points[-1] - points[0])
        for bone, before, after in zip(row[1:], segments, segments[1:], strict=False):
            axis = np.cross(before, after)
            if np.linalg.norm(axis) <= BENT * np.linalg.norm(before) * np.linalg.norm(after):
                axis = across if lower is not None and bone == row[lower] else np.zeros(3)  # a split bone does not fold
            if axis.any():
                found[bone] = Fold(_axes(axis, after), limb.region is Region.ARM)
    return found


def _axes(axis: Floats, along: Floats) -> Floats:
    """Return the axes (3, 3) of a fold about an axis (3,) whose segment points along a direction (3,)."""
    z = np.cross(axis, along)
    x, z = axis / np.linalg.norm(axis), z / np.linalg.norm(z)
    return np.stack([x, np.cross(z, x), z], axis=1)


class Free(Enum):
    """What holds a figure without pins."""

    FEET = "FEET"
    """Its feet stay in place."""
    ROOT = "ROOT"
    """Its root stays in place, and the joints from there to the dragged joint turn."""
    CHAIN = "CHAIN"
    """Only the connected bones up from the dragged joint turn, as with Blender's Auto IK."""


@dataclass(frozen=True)
class Extent:
    """The part of an armature that may move."""

    root: str
    """The bone that moves freely; empty: none."""
    turning: frozenset[str] | None
    """The bones that may turn; None: all."""
    length: int
    """How many bones turn, counted up from the dragged joint; 0: the whole body follows."""
    longest: int
    """The largest such number: up to the root, and including it."""

    @classmethod
    def of(
        cls,
        ob: Object,
        figure: Figure,
        grabbed: Sequence[int],
        *,
        use_tail: bool,
        length: int = 0,
        without_pins: Free | None = None,
    ) -> Extent:
        """Find the part that may move.

        Args:
            ob: the armature object.
            figure: its bones.
            grabbed: the bone that is dragged, then its mirror image if that is dragged too.
            use_tail: whether their tails are dragged.
            length: maximum number of bones that turn, counted up; 0: as the other arguments say.
            without_pins: what holds the body if it has no pins; None: it has pins.
        """
        root = root_of(figure, grabbed[0])
        fixed = set(figure.up(root))
        # Turning a bone does not move its own head, unless the bone moves freely.
        rows = [list(figure.up(bone))[0 if use_tail or bone in fixed else 1 :] for bone in grabbed]
        longest = sum(bone not in fixed for bone in rows[0]) + 1
        if length == 0 and without_pins is Free.CHAIN:
            length = _connected(ob, figure, rows[0])
        if 0 < length < longest:
            tops = {row[min(length, len(row)) - 1] for row in rows} - fixed
            turning = frozenset(figure.names[bone] for top in tops for bone in figure.below(top))
            return cls("", turning, length, longest)
        if without_pins is Free.ROOT and root != grabbed[0]:
            return cls("", None, 0, longest)
        return cls(_movable(ob, figure, root), None, 0, longest)


def _connected(ob: Object, figure: Figure, row: Sequence[int]) -> int:
    """Return how many bones at the start of an upward row are connected to one another."""
    loose = (count for count, bone in enumerate(row, 1) if not ob.data.bones[figure.names[bone]].use_connect)
    return next(loose, len(row))


def _movable(ob: Object, figure: Figure, root: int) -> str:
    """Return the first bone from the root up that can move: a connected bone can't move away from its parent."""
    above = (ob.data.bones[figure.names[bone]] for bone in figure.up(root))
    return next(bone.name for bone in above if bone.parent is None or not bone.use_connect)
