"""How much of a body follows: which bone moves freely, and which joints may turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import bpy

from ..anatomy.figure import Figure
from .figure import root_of


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
        ob: bpy.types.Object,
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


def _connected(ob: bpy.types.Object, figure: Figure, row: Sequence[int]) -> int:
    """Return how many bones at the start of an upward row are connected to one another."""
    for count, bone in enumerate(row, 1):
        if not ob.data.bones[figure.names[bone]].use_connect:
            return count
    return len(row)


def _movable(ob: bpy.types.Object, figure: Figure, root: int) -> str:
    """Return the first bone from the root up that can move; empty if there is none."""
    for bone in figure.up(root):
        data = ob.data.bones[figure.names[bone]]
        if data.parent is None or not data.use_connect:  # a connected bone can't move away from its parent
            return figure.names[bone]
    return ""
