"""What the overlay shows, as arrays: chains, and the limits and reach of those that are active."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from ..solve.problem import Bools, Floats, Ints


class State(IntEnum):
    """How the last solve of a chain ended, as a colour."""

    UNKNOWN = 0
    REACHED = 1
    HELD = 2
    """Limits, or the targets of other chains, keep the tip from its target."""
    OUT_OF_REACH = 3
    FAILED = 4


@dataclass(frozen=True)
class Chains:
    """C chains with J joints in all, in world space."""

    joints: Floats
    """(J, 3) the joints of the first chain, root first, with the tip's end; then those of the next."""
    ends: Ints
    """(C,) index of the end of each chain's tip."""
    targets: Floats
    """(C, 3), not a number where there is none."""
    poles: Floats
    """(C, 3), likewise; those of active chains alone."""
    states: Ints
    """(C,) values of `State`."""
    at_limit: Bools
    """(J,) joints that stand at a limit."""
    active: Bools
    """(C,) the active chains."""


@dataclass(frozen=True)
class Joint:
    """A bone with limits."""

    head: Floats
    """(3,)"""
    length: float
    rest: Floats
    """(3, 3) the frame from which its limits are measured, columns are X, Y and Z."""
    frame: Floats
    """(3, 3) its current frame."""
    cone: tuple[float, float, float, float]
    """Minimum and maximum rotation about X, then about Z, in radians; infinite: no limit."""
    twist: tuple[float, float]
    """Minimum and maximum rotation about Y."""
    at_limit: bool
    has_arc: bool
    """Blender draws arcs for the same limits."""


@dataclass(frozen=True)
class Plane:
    """The plane that a planar chain stays in."""

    centre: Floats
    """(3,) the root of the chain."""
    normal: Floats
    """(3,) of length 1."""
    radius: float
    """How far the chain reaches."""


@dataclass(frozen=True)
class Bend:
    """The side to which a chain bends."""

    joint: Floats
    """(3,) the middle joint."""
    side: Floats
    """(3,) where it goes when the chain bends, of length 1."""
    across: Floats
    """(3,) the direction from root to tip, of length 1."""
    size: float
    """Length of the chain."""


@dataclass(frozen=True)
class Active:
    """What is shown of an active chain alone, in the space of its armature."""

    world: Floats
    """(4, 4) from there to world space."""
    limits: tuple[Joint, ...]
    """The bones with limits."""
    state: int
    """A value of `State`."""
    reach: tuple[Floats, float] | None
    """Root (3,) and length of the chain, where they are of use: during a drag, and where the target is missed."""
    bend: Bend | None
    end: Floats | None
    """(2, 3) head and tail of its hand or foot."""
    plane: Plane | None
    """In which the chain stays."""


@dataclass(frozen=True)
class Shown:
    """What a viewport shows of all armatures."""

    chains: Chains
    actives: tuple[Active, ...]
    """The active chain, or those that follow the active object: at most one of each armature."""
