"""What the overlay shows, as arrays: all chains, and the limits and reach of the active ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np

from ...solve.problem import Bools, Floats, Ints


class State(IntEnum):
    """Outcome of a chain's last solve; each value has a color."""

    UNKNOWN = 0
    REACHED = 1
    HELD = 2
    """Limits or the targets of other chains keep the tip from its target."""
    OUT_OF_REACH = 3
    FAILED = 4


@dataclass(frozen=True)
class Chains:
    """C chains with J joints in all, in world space."""

    joints: Floats
    """(J, 3) joints of the first chain, from its root to its end effector, then those of the next chain."""
    ends: Ints
    """(C,) index of each chain's end effector among the joints."""
    targets: Floats
    """(C, 3) positions; NaN for a chain without target."""
    poles: Floats
    """(C, 3) positions, for active chains only; NaN for all others."""
    states: Ints
    """(C,) values of `State`."""
    at_limit: Bools
    """(J,) whether a joint is at a limit."""
    active: Bools
    """(C,) whether a chain is active."""

    @classmethod
    def joined(cls, parts: Sequence[Chains]) -> Chains:
        """Return chains of several armatures as one."""
        whole = {part.name: np.concatenate([getattr(own, part.name) for own in parts]) for part in fields(cls)}
        firsts = np.cumsum([0, *(len(own.joints) for own in parts)])
        ends = [own.ends + first for own, first in zip(parts, firsts, strict=False)]
        return cls(**{**whole, "ends": np.concatenate(ends)})


@dataclass(frozen=True)
class Joint:
    """A bone with limits."""

    head: Floats
    """(3,)"""
    length: float
    rest: Floats
    """(3, 3) frame from which the limits are measured; its columns are X, Y and Z."""
    frame: Floats
    """(3, 3) current frame."""
    cone: tuple[float, float, float, float]
    """Minimum and maximum rotation about X, then about Z, in radians; infinite: no limit."""
    twist: tuple[float, float]
    """Minimum and maximum rotation about Y, in radians; infinite: no limit."""
    at_limit: bool
    has_arc: bool
    """Blender draws arcs for the same limits."""


@dataclass(frozen=True)
class Plane:
    """The plane that a planar chain stays in."""

    center: Floats
    """(3,) the root of the chain."""
    normal: Floats
    """(3,) unit vector."""
    radius: float
    """Length of the chain."""


@dataclass(frozen=True)
class Bend:
    """The side to which a chain bends."""

    joint: Floats
    """(3,) the middle joint."""
    side: Floats
    """(3,) unit vector in which the joint moves when the chain bends."""
    across: Floats
    """(3,) unit vector from root to tip."""
    size: float
    """Length of the chain."""


@dataclass(frozen=True)
class Active:
    """What is shown only of an active chain, in armature space."""

    world: Floats
    """(4, 4) matrix from armature space to world space."""
    limits: tuple[Joint, ...]
    """The bones with limits."""
    state: int
    """A value of `State`."""
    reach: tuple[Floats, float] | None
    """Root (3,) and length of the chain, shown during a drag and while the target is missed."""
    bend: Bend | None
    end: Floats | None
    """(2, 3) head and tail of the end bone."""
    plane: Plane | None
    """The plane in which a planar chain stays."""


@dataclass(frozen=True)
class Shown:
    """What a viewport shows for all armatures."""

    chains: Chains
    actives: tuple[Active, ...]
    """The active chain, or the chains that follow the active object, at most one per armature."""
