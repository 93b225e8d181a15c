"""What goes into a solver and what comes out of it: plain arrays, without Blender."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Solver(enum.Enum):
    """Which algorithm solves a chain."""

    AUTO = "AUTO"
    """Two-bone where the chain has two segments with length, an even bend otherwise."""
    TWO_BONE = "TWO_BONE"
    """The law of cosines."""
    FABRIK = "FABRIK"
    """Passes that reach backward from the target and forward from the root: the tip leads, the root rests."""
    EVEN_BEND = "EVEN_BEND"
    """The chain is turned to its target as a whole, and bent as a bow."""


class OutOfReach(enum.Enum):
    """What a chain does when its target is farther or nearer than it can reach."""

    EXTEND = "EXTEND"
    """Point straight at the target, or fold onto the line to it."""
    PUSH_ROOT = "PUSH_ROOT"
    """Move the root towards (or away from) the target, at most by `Problem.push_limit`."""
    STRETCH = "STRETCH"
    """Lengthen the bones; a target that is too near is treated as with EXTEND."""


class Status(enum.IntEnum):
    """How one solve ended."""

    REACHED = 0
    """The tip stands on its target, to within the tolerance; with whatever the out-of-reach policy did for it."""
    TOO_FAR = 1
    """The target is past full extension, or in the last stretch before it that softness keeps the tip from."""
    TOO_NEAR = 2
    """One bone is longer than all others together and the target is nearer to the root than they can bring the tip."""
    NOT_CONVERGED = 3
    """The target could have been reached, but the cap on the passes ended the search."""
    INVALID = 4
    """The input was not finite or the chain has no length: the FK pose is returned unchanged."""
    LIMITED = 5
    """No pose within the limits, or none that suits all goals of a tree, was found that reaches the target."""


@dataclass(frozen=True)
class Goal:
    """Where the end of a chain should be, for a batch of B chains, in the space of the problem's joints."""

    target: Floats
    """(B, 3) position of the end effector."""
    pole: Floats | None = None
    """(B, 3) point towards which the chain bends; None, or a point on the line to the target: natural roll."""
    pole_angle: Floats | None = None
    """(B,) radians that turn the bend plane about the line from root to target, right-handed; None: 0."""
    rotation: Floats | None = None
    """(B, 3, 3) orientation that the goal's bone should have; None: any."""
    segment: int | None = None
    """Index of the bone that the end effector belongs to; None: the last one."""
    weight: float = 1.0
    """What the distance counts, squared, where goals of a tree pull against each other."""

    def members(self, chosen: Bools | Ints) -> Goal:
        """Return the goal of the chosen members alone, or of each as often as it is named."""
        return _some(self, ("target", "pole", "pole_angle", "rotation"), chosen)


@dataclass(frozen=True)
class Limits:
    """How far the joints of n bones may turn from rest.

    The rotation of a joint is a twist about the bone's Y axis and then a swing, the smallest rotation that takes Y to
    where it goes. The allowed swings about X and Z are an ellipse in each quadrant, see `cones`. A joint that is locked
    on all three axes keeps its FK rotation.
    """

    rest: Floats
    """(n, 3, 3), or (B, n, 3, 3) where members differ: rest orientation of each bone, seen from its parent's; in space
    for bones that do not inherit it."""
    root: Floats
    """(B, 3, 3) orientation of the root bones' parents, in the pose."""
    cones: Floats
    """(n, 4) least and greatest rotation about X, then about Z, in radians: -pi to 0 and 0 to pi, both 0: locked, both
    infinite: not limited."""
    twist: Floats
    """(n, 2) least and greatest twist in the same way."""

    def of(self, chosen: Bools | Ints) -> Limits:
        """Return the limits of the chosen (B,) members alone."""
        rest = self.rest[chosen] if np.ndim(self.rest) == 4 else self.rest
        return Limits(rest, self.root[chosen], self.cones, self.twist)


@dataclass(frozen=True)
class Problem:
    """A batch of B chains of n segments, or trees of n bones and E goals, with their FK pose, in one space."""

    joints: Floats
    """(B, n+1, 3) FK positions, root first, the end of the tip last; any unit. For a tree (B, n+E, 3): the head of each
    bone, then the end effector of each goal."""
    frames: Floats
    """(B, n, 3, 3) FK orientation of each bone, orthonormal; the columns are its X, Y and Z axes. Left-handed below a
    parent with negative scale; then all of a member must be, and `Limits.root`, where joints have limits."""
    goal: Goal
    inherits: Bools | None = None
    """(n,) bone i is rotated by bone i - 1; where False it starts from its FK orientation. None: all True."""
    solver: Solver = Solver.AUTO
    out_of_reach: OutOfReach = OutOfReach.EXTEND
    softness: Floats | float = 0.0
    """(B,) or scalar: the last fraction of the reach over which the chain eases into extension, 0 to 1."""
    push_limit: Floats | float = np.inf
    """(B,) or scalar: how far PUSH_ROOT may move the root, in chain lengths."""
    stretch_weights: Floats | None = None
    """(n,) share of the lengthening that each bone takes with STRETCH; None: equal."""
    tolerance: Floats | float = 1e-5
    """(B,) or scalar: the error that counts as reached, in chain lengths."""
    iterations: int = 100
    """Cap on the passes of an iterative solver."""
    limits: Limits | None = None
    """None: joints turn freely."""
    stiffness: Floats | None = None
    """(n, 3) how little each joint turns about X, Y and Z, from 0 (as readily as others) to 0.99; None: 0.

    Of a free chain it shares out an even bend; two bones and FABRIK have no use for it.
    """
    bend_lead: float = 0.0
    """Which joints of an even bend turn most: from -1, those next to the root, to 1, those next to the tip."""
    bend_side: Floats | None = None
    """(B, 3) direction, turned along with the root bone in the FK pose, to which a chain bends however FK does; zero
    for members without one, None: none has one. Trees have none; with FABRIK it is that of straight chains. Where the
    last of three bones takes an orientation it is the side of the other two, whose knee a pole then directs."""
    folds: Floats | None = None
    """(B, n, 3) how the joints of chains with a bend side fold that do not all fold to it: of each bone the axis,
    turned along with the bone above in the FK pose, about which it turns when the chain becomes shorter, times its
    share in that, see `folds`. A joint without one is rigid; zero for members that bend evenly, None: all do."""
    plane: Floats | None = None
    """(B, 3) normal of the plane through the root in which a free chain stays; the target is projected onto it."""
    parents: Ints | None = None
    """(n,) for a tree: the parent of each bone, an earlier one, or -1; None: a chain."""
    others: tuple[Goal, ...] = ()
    """The goals of a tree after `goal`."""
    is_first_attempt: bool = False
    """The search within limits and of trees makes one attempt, for who cannot wait: limits hold, but a target may be
    missed that can be reached, and one that cannot may be missed by more."""

    @property
    def goals(self) -> tuple[Goal, ...]:
        """All goals, in the order of their end effectors."""
        return (self.goal, *self.others)

    def members(self, chosen: Bools | Ints) -> Problem:
        """Return the problem of the chosen members alone, or of each as often as it is named."""
        own = _some(self, ("joints", "frames", "softness", "push_limit", "tolerance", *_DIRECTIONS), chosen)
        return replace(
            own,
            goal=self.goal.members(chosen),
            others=tuple(goal.members(chosen) for goal in self.others),
            limits=None if self.limits is None else self.limits.of(chosen),
        )


@dataclass(frozen=True)
class Solution:
    """A solved batch of B chains, in the space of the problem."""

    joints: Floats
    """Solved positions in the shape of the problem's; `joints[:, 0]` moved only with PUSH_ROOT."""
    rotations: Floats
    """(B, n, 3, 3) rotation of each bone's FK frame: the solved frame is `rotations @ frames`."""
    stretch: Floats
    """(B, n) uniform scale factor of each bone."""
    error: Floats
    """(B,) distance from the end of the tip to the target, in the problem's unit; NaN where INVALID."""
    status: NDArray[np.int8]
    """(B,) values of `Status`."""
    iterations: Ints
    """(B,) passes that were used; 0 where an analytic formula did it."""
    at_limit: Bools = field(repr=False)
    """(B, n) bones that stand at a joint limit."""

    @property
    def reached(self) -> Bools:
        """(B,) whether the tip stands on its target within the tolerance."""
        return np.asarray(self.status == Status.REACHED)

    def members(self, chosen: Bools | Ints) -> Solution:
        """Return the chosen members alone."""
        return _some(self, tuple(vars(self)), chosen)

    def copy(self) -> Solution:
        """Return one with arrays of its own."""
        return Solution(*(array.copy() for array in vars(self).values()))

    def replaced(self, chosen: Bools | Ints, other: Solution) -> Solution:
        """Return the solution with the chosen members as they are in another one."""
        own = self.copy()
        for name, value in vars(own).items():
            value[chosen] = vars(other)[name]
        return own


_DIRECTIONS = ("bend_side", "folds", "plane")

Part = TypeVar("Part", Goal, Problem, Solution)


def _some(whole: Part, names: tuple[str, ...], chosen: Bools | Ints) -> Part:
    """The chosen members of those of its arrays that have members."""
    arrays = {name: np.asarray(value) for name in names if np.ndim(value := getattr(whole, name))}
    some: dict[str, Any] = {name: array[chosen] for name, array in arrays.items()}
    return replace(whole, **some)
