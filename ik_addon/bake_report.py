"""What became of a bake, in numbers and in words."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class ChainReport:
    """What became of one chain."""

    chain: str
    """The tip bone."""
    missed: int
    """On how many frames it did not reach its target."""
    error: float
    """Largest distance from its tip to the target, in chain lengths; the next one is the mean over the frames."""
    mean_error: float


@dataclass(frozen=True)
class LimitReport:
    """A joint that stood at a limit."""

    bone: str
    frames: int
    """On how many."""


@dataclass(frozen=True)
class BakeReport:
    """What became of a bake."""

    chains: tuple[str, ...]
    """Tip bones of the baked chains."""
    frames: int
    """How many frames were keyed."""
    action: str
    """Name of the action that holds the keys."""
    missed: int
    """On how many frames a chain did not reach its target."""
    error: float
    """Largest distance from a tip to its target, in chain lengths; the next one is the mean."""
    mean_error: float
    each: tuple[ChainReport, ...]
    """The same chain by chain."""
    limited: tuple[LimitReport, ...]
    """The joints that stood at a limit on any frame, most often first."""
    turn: float
    """The most degrees by which a joint turns in a frame."""
    turning_bone: str
    """Whose joint that is; empty where there is a single frame."""
    turning_frame: int
    """The frame at which it has turned."""
    position: float
    """Largest distance between a bone as it plays and as it was solved, in chain lengths."""
    angle: float
    """Largest angle between them, in radians."""

    @property
    def plays_alike(self) -> bool:
        """Whether the keys play as they were solved, to what can be seen."""
        return self.position < 1e-4 and self.angle < 1e-3

    @property
    def message(self) -> str:
        """The report as a sentence."""
        chains = f"{len(self.chains)} chain{'s' * (len(self.chains) != 1)}"
        frames = f"{self.frames} frame{'s' * (self.frames != 1)}"
        reached = "all reached"
        if self.missed:
            reached = f"{self.missed} not reached, farthest by {100.0 * self.error:.3g} % of the chain's length"
        return (
            f"Baked {chains} on {frames} into '{self.action}' ({reached}); playing differs from the solution "
            f"by at most {100.0 * self.position:.1g} % of the chain's length and {math.degrees(self.angle):.1g}°"
        )
