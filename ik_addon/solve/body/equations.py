"""Linear equations for a step of a body: the cheapest one that brings its ends where they should be.

They are one matrix, unlike those of chains and trees, which `maths.sweep` solves joint by joint: bodies of 7 to 35
joints, many of them hinges, take 1 ms a pass instead of 2 to 2.4.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from ..problem import Floats, Ints
from .tree import EYE, Bound, Posed, Pull, Tree

STIFFER = ((0.0, 0.05), (0.03, 0.2), (0.1, 0.3), (0.3, 0.9), (1.0, 0.2))
"""Pairs to try in turn; the first that suffices is used, and the last always does. First: the share to add of the
stiffness that is sure to keep every joint from turning over by itself. Second: the least stiffness (pivot) that a joint
may then have, as a fraction of its stiffness without forces."""
CROSSING = np.cross(EYE[:, None], EYE).swapaxes(1, 2).reshape(3, 9)
"""Turns vectors into the matrices (9,) whose products are the cross products of these vectors with others."""
SMALL, PRODUCT = 80, 250_000
"""Unknowns are eliminated in blocks of so many, and matrices multiplied in parts of so many products of numbers: with
more, numpy's library starts threads, which cost more than they bring, ten times as much where other programs are busy.
"""


class Step(NamedTuple):
    """A step that limits allow, in units in which all joints have the same weight."""

    whole: Floats
    """(m + 1, 3) move of the root, then the turns of each joint: of its swing about X and about Z, as of `Posed.axes`,
    and of its twist."""
    forces: Floats
    """(places + orientations, 3) that hold the ends after the step."""
    pushed: list[tuple[int, float, float]]
    """Joints at limits, and the forces that still push them on: the twist, then the swing out of its cone."""
    stiffer: int
    """Index of the pair in `STIFFER` that was used."""


class Cost(NamedTuple):
    """Derivatives of the cost of the root's offset and of m joints, without the ends, in units of equal weight."""

    slope: Floats
    """(m + 1, 3) first derivative for the offset, then for each joint's angles."""
    second: Floats
    """(m, 3, 3) second derivative for each joint, without that of the angles' axes; for the offset it is 1."""


class Equations(NamedTuple):
    """Linear equations for n unknowns, see `Unknowns`."""

    tree: Tree
    units: Floats
    """(m,) of steps of joints."""
    bends: Floats
    """(m, 3) how the whole cost bends with the axes of the joints."""
    own: Floats
    """(n, n) second derivatives of the cost, without that of the ends."""
    held: Floats
    """(n, n) that of the ends, which give way like springs."""
    right: Floats
    """(n,) how fast the cost falls."""
    yielding: Floats
    """(3 h, n) how the forces at the h ends fall that joints carry."""
    forces: Floats
    """(places + orientations, 3) at the ends, where nothing moves."""

    @classmethod
    def of(
        cls, tree: Tree, posed: Posed, units: Floats, slide: float, cost: Cost, gaps: Floats, pull: Pull, forces: Floats
    ) -> Self:
        """Return the equations at a pose.

        Args:
            tree: the joints.
            posed: their pose.
            units: (m,) of steps of joints.
            slide: the unit of the root's offset.
            cost: without that of the ends.
            gaps: (places + orientations, 3) vectors to the places of the ends and rotation vectors to orientations.
            pull: how the ends are held.
            forces: (places + orientations, 3) that act on the ends before the step.
        """
        ends, carried, joints, (places, _, pairs, above) = tree.ends, tree.held, len(units), tree.unknowns
        points, count = posed.ends[ends.places], len(ends.places)
        axes, (springs, wanted) = posed.axes.swapaxes(1, 2) * units[:, None, None], _springs(gaps, pull)
        crossing = (np.concatenate([posed.heads[:-1], points, forces]) @ CROSSING).reshape(-1, 3, 3)
        heads, points, pulls = crossing[:joints], crossing[joints : joints + count], crossing[joints + count :]
        # Twists of joints, and what they do to the ends.
        twists, lines = np.zeros((joints + 1, 3, 6)), np.zeros((len(gaps), 3, 6))
        twists[0, :, 3:], twists[1:, :, :3], twists[1:, :, 3:] = slide * EYE, axes, -axes @ heads
        lines[:count, :, :3], lines[:count, :, 3:], lines[count:, :, :3] = -points, EYE, EYE
        ways = (lines[carried].reshape(-1, 6) @ twists.reshape(-1, 6).T) * tree.moves
        bends = (cost.slope.ravel() - forces[carried].ravel() @ ways).reshape(-1, 3)[1:] * units[:, None]
        ways = ways[:, places]
        # How forces at the ends couple each joint with rotations above it; a torque does it half as much.
        pulls[count:] *= 0.5
        couplings = pulls[carried].transpose(1, 0, 2).reshape(3, -1) @ ways
        coupled = _product(twists.reshape(-1, 6)[places, :3], couplings) * above
        # The axes of a swing change with it.
        second, swings = np.concatenate([EYE[None], cost.second]), posed.own[:, :, :2]
        changing = 0.5 * (bends[:, :2] * posed.angles[:2].T).sum(axis=1)
        second[1:, :2, :2] += changing[:, None, None] * (swings.swapaxes(1, 2) @ swings)
        own = coupled + coupled.T
        own.reshape(-1)[pairs[0]] += second.reshape(-1)[pairs[1]]
        yielding = (springs[carried] @ ways.reshape(len(carried), 3, -1)).reshape(ways.shape)
        right = wanted[carried].ravel() @ ways - cost.slope.ravel()[places]
        return cls(tree, units, bends, own, _product(ways.T, yielding), right, yielding, wanted)

    def solved(self, bounds: Sequence[Bound], stiffer: int) -> Step:
        """Return the step that solves the equations.

        Args:
            bounds: limits that fix parts of the step.
            stiffer: index of the pair in `STIFFER` to try first.
        """
        unknowns, fixed, cones = self.tree.unknowns, [], []
        ways, is_open = np.zeros(len(self.right)), np.ones(len(self.right), dtype=bool)
        for i, (normal, depth, curvature, sign, way) in enumerate(bounds):
            if normal is None and not sign:
                continue
            (x, z, twist), unit = unknowns.numbers[i], float(self.units[i])
            out = [(k, part) for k, part in zip((x, z), normal or (), strict=False) if k >= 0]
            for k, part in out:
                is_open[k], ways[k] = False, part * 2.0 * depth / unit
            if sign:
                is_open[twist], ways[twist] = False, way / unit
            if normal is not None and len(out) == 2:
                # Along the rim of the cone the joint is free, in place of its swing about X.
                is_open[x] = True
                bend = max(-float(self.bends[i, :2] @ normal), 0.0)
                cones.append((x, z, *normal, bend * curvature / 2.0))
            fixed.append((i, twist, out))
        at, rims = np.flatnonzero(is_open), _Rims(cones)
        whole = self.own + self.held
        part, rest = rims.matrix(whole, at), rims.rows(self.right - whole @ ways)[at]
        while True:
            share, least = STIFFER[stiffer]
            stiff = part
            if share:
                # What makes every row of the second derivatives diagonally dominant, so that no joint turns over.
                own = rims.matrix(self.own, at)
                diagonal = np.diagonal(own)
                sums = np.abs(own).sum(axis=1) - diagonal - np.abs(diagonal) + 1.0
                stiff = part + np.diag(np.maximum(share * sums, 0.0))
            found = solved(stiff, rest, least)
            if found is not None:
                break
            stiffer += 1
        turns = np.zeros(len(ways))
        turns[at] = found
        ways += rims.back(turns)
        left = (self.right - whole @ ways).tolist()
        pushed = [(i, left[twist], sum(part * left[k] for k, part in out)) for i, twist, out in fixed]
        step = np.zeros(3 * len(bounds) + 3)
        step[unknowns.places] = ways
        forces = self.forces.copy()
        forces[self.tree.held] -= (self.yielding @ ways).reshape(-1, 3)
        return Step(step.reshape(-1, 3), forces, pushed, stiffer)


class _Rims:
    """Joints held by cones, whose unknown of the swing about X is replaced by one along the rim."""

    def __init__(self, cones: Sequence[tuple[int, int, float, float, float]]) -> None:
        """Take of each joint the numbers of its swings, the normal of its cone, and how stiff it is along the rim."""
        self._any = bool(cones)
        if cones:
            rows = np.array(cones).T
            (self._x, self._z), (self._p, self._q, self._stiff) = rows[:2].astype(int), rows[2:]

    def rows(self, rows: Floats) -> Floats:
        """Return rows (n, ...) of unknowns."""
        if not self._any:
            return rows
        found = rows.copy()
        found[self._x] = (self._q * rows[self._x].T - self._p * rows[self._z].T).T
        return found

    def matrix(self, matrix: Floats, at: Ints) -> Floats:
        """Return a symmetric matrix (n, n) of unknowns, only those (k,) that are open."""
        if self._any:
            matrix = self.rows(self.rows(matrix).T)
            matrix[self._x, self._x] += self._stiff
        return matrix if len(at) == len(matrix) else matrix.take(at, 0).take(at, 1)

    def back(self, ways: Floats) -> Floats:
        """Return the swings about X and Z for given unknowns (n,)."""
        if self._any:
            ways[self._z] -= self._p * ways[self._x]
            ways[self._x] *= self._q
        return ways


def solved(matrix: Floats, right: Floats, least: float) -> Floats | None:
    """Solve equations with a symmetric matrix (n, n); None if a pivot is smaller than `least`."""
    block, beside = matrix[:SMALL, :SMALL], matrix[:SMALL, SMALL:]
    try:
        if (np.diagonal(np.linalg.cholesky(block)) ** 2 < least).any():
            return None
    except np.linalg.LinAlgError:
        return None
    if len(right) <= SMALL:
        return np.asarray(np.linalg.solve(block, right))
    found = _product(np.asarray(np.linalg.inv(block), np.float64), np.column_stack([beside, right[:SMALL]]))
    left = np.column_stack([matrix[SMALL:, SMALL:], right[SMALL:]]) - _product(beside.T, found)
    rest = solved(left[:, :-1], left[:, -1], least)
    return None if rest is None else np.concatenate([found[:, -1] - found[:, :-1] @ rest, rest])


def _product(one: Floats, other: Floats) -> Floats:
    """Return the product of two matrices."""
    rows = max(1, PRODUCT // max(1, other.size))
    return one @ other if len(one) <= rows else np.concatenate([one[:rows] @ other, _product(one[rows:], other)])


def _springs(gaps: Floats, pull: Pull) -> tuple[Floats, Floats]:
    """Return how stiffly ends are held (e, 3, 3), and the forces on them (e, 3)."""
    springs, forces = (1.0 / pull.yields)[:, None, None] * EYE, gaps / pull.yields[:, None]
    for end, (direction, most) in pull.thrusts.items():
        along = np.array(direction)
        springs[end] -= along[:, None] * along / pull.yields[end]
        forces[end] += (most - along @ forces[end]) * along
    return springs, forces
