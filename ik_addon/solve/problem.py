"""Input and output of the solvers, plain arrays without Blender, and what a chain can reach.

Of a target that is too far or too near, `reachable` keeps what a chain can reach of it; its lengths are fractions of
the chain's length.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import repeat
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .maths.numbers import ONE, Nested, Number, Numbers
from .maths.turns import Frame, transposed
from .maths.vectors import Vector

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
    """Passes that reach backward from the target and forward from the root: the tip leads, the root stays at rest."""
    EVEN_BEND = "EVEN_BEND"
    """The chain is turned to its target as a whole and bent like a bow."""


class OutOfReach(enum.Enum):
    """What a chain does when its target is farther or nearer than it can reach."""

    EXTEND = "EXTEND"
    """Point straight at the target, or fold onto the line to it."""
    PUSH_ROOT = "PUSH_ROOT"
    """Move the root towards (or away from) the target, by at most `Problem.push_limit`."""
    STRETCH = "STRETCH"
    """Lengthen the bones; a target that is too near is handled as with EXTEND."""


class Status(enum.IntEnum):
    """How one solve ended."""

    REACHED = 0
    """The tip is at its target, to within the tolerance, with the help of the out-of-reach policy if needed."""
    TOO_FAR = 1
    """The target is past full extension, or in the last part of the reach, where softness holds the tip back."""
    TOO_NEAR = 2
    """One bone is longer than all others together, and the target is nearer to the root than they can bring the tip."""
    NOT_CONVERGED = 3
    """The target is within reach, but the search ended at the maximum number of passes."""
    INVALID = 4
    """The input was not finite or the chain has no length: the FK pose is returned unchanged."""
    LIMITED = 5
    """No pose was found that reaches the target within the limits, or that meets all goals of a tree."""


@dataclass(frozen=True)
class Goal:
    """Where the end of a chain should be, for a batch of B chains, in the space of the problem's joints."""

    target: Floats
    """(B, 3) position of the end effector."""
    pole: Floats | None = None
    """(B, 3) point towards which the chain bends; None, or on the line to the target: natural roll."""
    pole_angle: Floats | None = None
    """(B,) radians that turn the bend plane about the line from root to target, right-handed; None: 0."""
    rotation: Floats | None = None
    """(B, 3, 3) orientation that the goal's bone should have; None: any."""
    segment: int | None = None
    """Index of the bone that the end effector belongs to; None: the last one."""
    weight: float = 1.0
    """Weight of the squared distance, where goals of a tree pull against each other."""

    def members(self, chosen: Bools | Ints) -> Goal:
        """Return the goal of the chosen members alone; indices may repeat."""
        return _some(self, ("target", "pole", "pole_angle", "rotation"), chosen)


@dataclass(frozen=True)
class Limits:
    """How far the joints of n bones may turn from rest.

    The rotation of a joint is a twist about the bone's Y axis and then a swing, the smallest rotation that takes Y to
    its new direction. The allowed swings about X and Z are bounded by an ellipse in each quadrant, see `cones`. A joint
    that is locked on all three axes keeps its FK rotation.
    """

    rest: Floats
    """(n, 3, 3), or (B, n, 3, 3) where members differ: rest orientation of each bone relative to its parent, or in
    the problem's space for bones that do not inherit rotation."""
    root: Floats
    """(B, 3, 3) posed orientation of the root bones' parents."""
    cones: Floats
    """(n, 4) minimum and maximum rotation about X, then about Z, in radians: -pi to 0 and 0 to pi; both 0: locked, both
    infinite: not limited."""
    twist: Floats
    """(n, 2) minimum and maximum twist, in the same way."""

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
    parent with negative scale; if joints have limits, so must be all frames of that member and `Limits.root`."""
    goal: Goal
    inherits: Bools | None = None
    """(n,) whether bone i is rotated by bone i - 1; if not, it starts from its FK orientation. None: all are."""
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
    """Maximum number of passes over free chains and of FABRIK, and of steps of each descent within limits. There, what
    descents leave is up to Newton's method, which ends by itself."""
    limits: Limits | None = None
    """None: joints turn freely."""
    stiffness: Floats | None = None
    """(n, 3) stiffness of each joint about X, Y and Z, from 0 (turns as readily as others) to 0.99; None: 0.

    In a free chain it distributes an even bend; two-bone chains and FABRIK ignore it.
    """
    bend_lead: float = 0.0
    """Which joints of an even bend turn most: from -1, those next to the root, to 1, those next to the tip."""
    bend_side: Floats | None = None
    """(B, 3) direction, turned with the root bone in the FK pose, to which a chain bends however its FK pose is bent;
    zero for members without a bend side, None if none has one. Trees have none; with FABRIK it applies to straight
    chains only. Where the last of three bones takes an orientation, it is the side of the other two, whose knee a pole
    then directs."""
    folds: Floats | None = None
    """(B, n, 3) for chains with a bend side whose joints do not all fold to it: for each bone the axis, turned with the
    bone above in the FK pose, about which the bone turns when the chain gets shorter, times its share of the fold, see
    `folds`. A joint with a zero vector is rigid; all are zero in members that bend evenly; None: all members do."""
    plane: Floats | None = None
    """(B, 3) normal of the plane through the root in which a free chain stays; the target is projected onto it. Ignored
    where joints have limits, the tip takes an orientation, or bones make a tree."""
    parents: Ints | None = None
    """(n,) for a tree: the parent of each bone, an earlier one, or -1; None: a chain."""
    others: tuple[Goal, ...] = ()
    """Further goals of a tree, after `goal`."""
    is_first_attempt: bool = False
    """Make a single attempt within limits and for trees, for callers that cannot wait: limits hold, but a target within
    reach may be missed, and one out of reach may be missed by more than necessary."""

    @property
    def goals(self) -> tuple[Goal, ...]:
        """All goals, in the order of their end effectors."""
        return (self.goal, *self.others)

    @property
    def is_free(self) -> bool:
        """Whether these are chains of free joints with a place to reach, and nothing more."""
        more = self.limits, self.parents, self.goal.rotation, self.goal.segment
        return not self.others and all(part is None for part in more)

    @property
    def bends_evenly(self) -> bool:
        """Whether no joint of an even bend takes more of it than others."""
        return self.bend_lead == 0.0 and (self.stiffness is None or not np.any(self.stiffness))

    def members(self, chosen: Bools | Ints) -> Problem:
        """Return the problem of the chosen members alone; indices may repeat."""
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
    """Solved positions, shaped like those of the problem; `joints[:, 0]` moves only with PUSH_ROOT."""
    rotations: Floats
    """(B, n, 3, 3) rotation of each bone's FK frame: the solved frame is `rotations @ frames`."""
    stretch: Floats
    """(B, n) uniform scale factor of each bone."""
    error: Floats
    """(B,) distance from tip to target, in the problem's unit; NaN where INVALID. (B, E) with more than one goal."""
    status: NDArray[np.int8]
    """(B,) values of `Status`."""
    iterations: Ints
    """(B,) number of passes; 0 where a closed form was enough."""
    at_limit: Bools = field(repr=False)
    """(B, n) whether each bone is at a joint limit."""

    @classmethod
    def unsolved(cls, problem: Problem) -> Solution:
        """Return a solution that leaves all members in their FK pose."""
        members, bones = np.shape(problem.frames)[:2]
        return cls(
            joints=np.array(problem.joints, dtype=np.float64),
            rotations=np.full((members, bones, 3, 3), np.eye(3)),
            stretch=np.ones((members, bones)),
            error=np.full((members, 1 + len(problem.others)) if problem.others else members, np.nan),
            status=np.full(members, Status.INVALID, dtype=np.int8),
            iterations=np.zeros(members, dtype=np.int64),
            at_limit=np.zeros((members, bones), dtype=bool),
        )

    @property
    def reached(self) -> Bools:
        """(B,) whether the tip is at its target, within the tolerance."""
        return np.asarray(self.status == Status.REACHED)

    def members(self, chosen: Bools | Ints) -> Solution:
        """Return the solution of the chosen members alone."""
        return _some(self, tuple(vars(self)), chosen)

    def copy(self) -> Solution:
        """Return a copy with arrays of its own."""
        return Solution(*(array.copy() for array in vars(self).values()))

    def write(self, problem: Problem, solved: dict[int, Solved]) -> None:
        """Write members, by their indices."""
        index: Nested = list(solved)
        columns: list[Nested] = list(zip(*solved.values(), strict=True))
        if len(solved) == 1:
            # A number takes a third of the time of a list of one.
            index, columns = index[0], [column[0] for column in columns]
        fk = np.asarray(problem.frames, dtype=np.float64)[index]
        self.rotations[index] = np.array(columns[0]).swapaxes(-1, -2) @ fk.swapaxes(-1, -2)
        for name, values in zip(Solved._fields[1:], columns[1:], strict=True):
            getattr(self, name)[index] = values

    def replaced(self, chosen: Bools | Ints, other: Solution) -> Solution:
        """Return a copy with the chosen members taken from another solution."""
        own = self.copy()
        for name, value in vars(own).items():
            value[chosen] = vars(other)[name]
        return own


class Solved(NamedTuple):
    """The solution of one member; see `Solution`."""

    frames: list[Frame]
    joints: list[Vector]
    stretch: Sequence[float]
    error: Nested
    """A float, or a list of them for several goals."""
    status: Status
    iterations: int
    at_limit: list[bool]


_DIRECTIONS = ("bend_side", "folds", "plane")

Part = TypeVar("Part", Goal, Problem, Solution)


def _some(whole: Part, names: tuple[str, ...], chosen: Bools | Ints) -> Part:
    """Return a copy with only the chosen members in those of the named arrays that have members."""
    arrays = {name: np.asarray(value) for name in names if np.ndim(value := getattr(whole, name))}
    some: dict[str, Nested] = {name: array[chosen] for name, array in arrays.items()}
    return replace(whole, **some)


def path_of(parents: Sequence[int], bone: int) -> tuple[int, ...]:
    """Return the bones from the root to a bone."""
    found = []
    while bone >= 0:
        found.append(bone)
        bone = parents[bone]
    return tuple(found[::-1])


def shape_of(problem: Problem) -> tuple[Ints, Bools, Ints]:
    """Return the parents (n,), which bones are free (n,), see `Body.free`, and the bones of the effectors (E,)."""
    bones = np.shape(problem.frames)[1]
    parents = np.arange(bones) - 1 if problem.parents is None else np.asarray(problem.parents)
    inherits = np.ones(bones, dtype=bool) if problem.inherits is None else np.asarray(problem.inherits, dtype=bool)
    segments = np.array([bones - 1 if goal.segment is None else goal.segment for goal in problem.goals])
    return parents, (parents < 0) | ~inherits, segments


def chain_lengths(problem: Problem, index: Ints | slice = np.s_[:]) -> Floats:
    """Return the lengths (E, k) of the chains of the members `index` from their root to each effector."""
    joints, (parents, _, segments) = np.asarray(problem.joints, dtype=np.float64)[index], shape_of(problem)
    lengths = []
    for e, segment in enumerate(segments.tolist()):
        points = [len(parents) + e, *path_of(parents.tolist(), segment)[::-1]]
        steps = joints[:, points[1:]] - joints[:, points[:-1]]
        lengths.append(np.cumsum(np.sqrt((steps * steps).sum(axis=-1)), axis=1)[:, -1])
    return np.stack(lengths)


def check_input(problem: Problem) -> None:
    """Raise ValueError, naming what does not fit or is outside its range, if there is anything."""
    shape, goals, limits = np.shape(problem.joints), problem.goals, problem.limits
    if len(shape) != 3 or shape[2] != 3 or shape[1] < 1 + len(goals):
        ends = f"{len(goals)}" if len(goals) > 1 else "1"
        raise ValueError(f"joints must have the shape (B, n+{ends}, 3) with n of at least 1, not {shape}")
    members, bones = shape[0], shape[1] - len(goals)
    wanted = [
        ("frames", problem.frames, (members, bones, 3, 3)),
        ("inherits", problem.inherits, (bones,)),
        ("bend_side", problem.bend_side, (members, 3)),
        ("folds", problem.folds, (members, bones, 3)),
        ("plane", problem.plane, (members, 3)),
        ("stretch_weights", problem.stretch_weights, (bones,)),
        ("parents", problem.parents, (bones,)),
        ("stiffness", problem.stiffness, (bones, 3)),
    ]
    settings = [(name, getattr(problem, name)) for name in ("softness", "push_limit", "tolerance")]
    softness, push_limit, tolerance = (np.asarray(value) for _, value in settings)
    for e, goal in enumerate(goals):
        name = f"others[{e - 1}]" if e else "goal"
        wanted.append((f"{name}.target", goal.target, (members, 3)))
        wanted.append((f"{name}.pole", goal.pole, (members, 3)))
        wanted.append((f"{name}.rotation", goal.rotation, (members, 3, 3)))
        settings.append((f"{name}.pole_angle", goal.pole_angle))
        if goal.segment is not None and not 0 <= goal.segment < bones:
            raise ValueError(f"{name}.segment must be the index of one of the {bones} bones, not {goal.segment}")
        if not (np.isfinite(goal.weight) and goal.weight > 0.0):
            raise ValueError(f"{name}.weight must be greater than 0, not {goal.weight}")
    if limits is not None:
        wanted += [
            ("limits.rest", limits.rest, (members, bones, 3, 3) if np.ndim(limits.rest) == 4 else (bones, 3, 3)),
            ("limits.root", limits.root, (members, 3, 3)),
            ("limits.cones", limits.cones, (bones, 4)),
            ("limits.twist", limits.twist, (bones, 2)),
        ]
    for name, array, expected in wanted:
        if array is not None and np.shape(array) != expected:
            raise ValueError(f"{name} must have the shape {expected} to go with the joints, not {np.shape(array)}")
    for name, value in settings:
        if value is not None and np.shape(value) not in ((), (members,)):
            raise ValueError(f"{name} must be one number or have the shape ({members},), not {np.shape(value)}")
    given = (problem.parents, problem.stiffness, problem.stretch_weights)
    parents, stiffness, weights = (None if value is None else np.asarray(value) for value in given)
    is_tree = parents is None or (parents < np.arange(bones)).all()
    is_stiff = stiffness is None or ((stiffness >= 0.0) & (stiffness < 1.0)).all()
    is_weight = weights is None or (np.isfinite(weights) & (weights >= 0.0)).all()
    for is_right, rule in (
        (is_tree, "parents must name an earlier bone for each bone, or -1"),
        (is_stiff, "stiffness must be at least 0 and less than 1"),
        (-1.0 <= problem.bend_lead <= 1.0, "bend_lead must be between -1 and 1"),
        (not ((softness < 0.0) | (softness > 1.0)).any(), "softness must be between 0 and 1"),
        (not ((push_limit < 0.0).any() or (tolerance < 0.0).any()), "push_limit and tolerance must not be negative"),
        (problem.iterations >= 0, "iterations must not be negative"),
        (is_weight, "stretch_weights must be finite and not negative"),
    ):
        if not is_right:
            raise ValueError(rule)
    if limits is not None:
        check_ranges(limits)


def check_ranges(limits: Limits) -> None:
    """Raise ValueError, naming joint and axis, if a range of limits is not valid."""
    for joint, values in enumerate(np.concatenate([limits.cones, limits.twist], axis=1).tolist()):
        for axis, low, high in zip("XZY", values[::2], values[1::2], strict=True):
            if low <= 0.0 <= high:
                continue
            if np.isnan(low) or np.isnan(high):
                raise ValueError(f"joint {joint}: a limit about {axis} is not a number")
            if low > high:
                raise ValueError(f"joint {joint}: the least rotation about {axis} is above the greatest")
            raise ValueError(f"joint {joint}: the limits about {axis} do not contain the rest pose")
    if np.ndim(limits.rest) == 3 and not np.isfinite(limits.rest).all():
        raise ValueError("limits.rest must be finite")


ROUNDING = 1e-15
"""A shortfall below this fraction of the distance is rounding."""
FULL, FARTHEST = 1e-12, 1.25
"""Targets are placed to bring soft chains this near to full extension, but no farther from the root."""


class Aim(NamedTuple):
    """The goal of one chain in floats, or of many in arrays; see `Goal` and `Problem`."""

    target: Vector
    pole: Vector | None
    pole_angle: Number
    rotation: Frame | None
    softness: Number
    push_limit: Number
    tolerance: Number

    @classmethod
    def each(cls, problem: Problem, index: Ints) -> Iterator[Aim]:
        """Yield the goals of the members `index` (k,)."""
        goal, none = problem.goal, repeat(None)
        poles = none if goal.pole is None else lists_of(goal.pole, index)
        rotations = none if goal.rotation is None else map(transposed, lists_of(goal.rotation, index))
        angle = 0.0 if goal.pole_angle is None else goal.pole_angle
        every = (angle, problem.softness, problem.push_limit, problem.tolerance)
        numbers = [np.asarray(value, dtype=np.float64) for value in every]
        angles, *settings = (each[index].tolist() if each.ndim else repeat(each.item()) for each in numbers)
        return map(cls, lists_of(goal.target, index), poles, angles, rotations, *settings)


def lists_of(array: Floats, index: list[int] | Ints) -> list[Nested]:
    """Return the rows of chosen members as plain floats."""
    rows: list[Nested] = np.asarray(array, dtype=np.float64)[index].tolist()
    return rows


class Reach(NamedTuple):
    """What remains to be solved: a distance that is always within reach of the stretched bones."""

    distance: Number
    """From the pushed root to the place for the tip, along the line to the target."""
    push: Number
    """How far the root moves along that line."""
    stretch: Sequence[Number]
    """Uniform scale of each bone."""
    shortfall: Number
    """How far the tip then falls short: positive where the target is too far, negative where it is too near."""


def goal_of(
    do: Numbers, distance: Number, longest: Number, softness: Number, push_limit: Number, policy: OutOfReach
) -> tuple[Number, Number, Number, Number]:
    """Return the goal of a chain of length 1 for a target at a distance.

    Up to 1 - softness it is the distance itself; from there it approaches 1 exponentially, with the same slope.

    Args:
        do: kernel for one chain or for many.
        distance: from root to target.
        longest: length of the longest bone.
        softness: fraction of the reach that eases into extension.
        push_limit: how far the root may be pushed.
        policy: what to do about a target out of reach.

    Returns:
        The distance to reach, how far the root is pushed, how much longer the chain gets, and the shortfall of the tip.
    """
    inner, goal = do.most(0.0, 2.0 * longest - 1.0), distance
    # Easing must not start inside the inner reach, where the chain cannot follow.
    softness = do.least(softness, 1.0 - inner)
    start = 1.0 - softness
    past = distance > start
    if do.any(past):
        width = do.most(softness, 1e-12)
        fallen = do.expm1(-do.most(distance - start, 0.0) / width)
        goal = do.where(past, start - width * fallen * (softness > 0.0), distance)
    goal = do.most(goal, inner)
    push = longer = 0.0 * distance
    if policy is OutOfReach.PUSH_ROOT:
        push = do.least(do.most(distance - goal, -push_limit), push_limit)
    elif policy is OutOfReach.STRETCH:
        # The lengthened chain is as extended as the eased one, so the bend does not jump at the transition.
        past = distance > goal
        longer = do.where(past, do.most(distance / do.most(goal, 1e-12) - 1.0, 0.0), 0.0)
        goal = do.where(past, distance, goal)
    lack = distance - push - goal
    return goal, push, longer, do.where(abs(lack) <= ROUNDING * do.most(distance, goal), 0.0, lack)


def target_for(reached: Floats, longest: Floats, softness: Floats) -> Floats:
    """Return the distances of targets for which chains that only extend reach given ones: the inverse of `goal_of`."""
    softness = np.minimum(softness, 1.0 - np.maximum(2.0 * longest - 1.0, 0.0))
    left = np.maximum(1.0 - reached, FULL)
    eased = 1.0 - softness + softness * np.log(np.maximum(softness, left) / left)
    return np.asarray(np.where(left < softness, np.clip(eased, reached, FARTHEST), reached))


def reachable(do: Numbers, lengths: Sequence[Number], distance: Number, aim: Aim, problem: Problem) -> Reach:
    """Return the goal of a chain for a target at a distance, with the policy and the weights of a problem.

    Args:
        do: for one chain or for many.
        lengths: of the bones, which add up to 1.
        distance: from root to target.
        aim: the goal.
        problem: its policy, and the share of the lengthening that each bone takes; all zero: equal.
    """
    policy, stretch = problem.out_of_reach, [1.0] * len(lengths)
    longest = reduce(do.most, lengths)
    # Most targets: the result of `goal_of`, without calls to the kernel, for which limbs took 5 % longer.
    is_hard = do is ONE and (aim.softness == 0.0 or distance <= 1.0 - aim.softness)
    if is_hard and policy is OutOfReach.EXTEND and 2.0 * longest - 1.0 < distance:
        goal = min(distance, 1.0)
        return Reach(goal, 0.0, stretch, 0.0 if distance - goal <= ROUNDING * distance else distance - goal)
    goal, push, longer, lack = goal_of(do, distance, longest, aim.softness, aim.push_limit, policy)
    if policy is OutOfReach.STRETCH and do.any(longer > 0.0):
        weights = problem.stretch_weights
        shares = stretch if weights is None else np.asarray(weights, dtype=np.float64).tolist()
        total = sum(share * length for share, length in zip(shares, lengths, strict=True))
        weighed = total > 0.0
        longer = longer / do.where(weighed, total, 1.0)
        stretch = [1.0 + do.where(weighed, share, 1.0) * longer for share in shares]
    return Reach(goal, push, stretch, lack)


def status_of(
    do: Numbers, reached: Number, beyond: Number, tolerance: Number, otherwise: Status = Status.LIMITED
) -> Number:
    """Return the status of chains: too far or too near is only what the policy leaves unreached.

    Args:
        do: for one chain or for many.
        reached: whether the tip is at its target.
        beyond: how far the target is beyond the reach; negative: inside the inner reach.
        tolerance: the error that counts as reached.
        otherwise: the status of chains that miss a target within reach.
    """
    missed = do.where(beyond < -tolerance, Status.TOO_NEAR, otherwise)
    return do.where(reached, Status.REACHED, do.where(beyond > tolerance, Status.TOO_FAR, missed))
