"""One Newton step of a body: linear equations for the cheapest step that brings its ends where they should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..limited.newton import Room, equation_of
from ..limited.objectives import Pulls, couplings_of, moved
from ..limited.skeleton import STEEPEST, Nine
from ..maths.numbers import MANY, Vector
from ..maths.products import times_back
from ..maths.rotations import norm
from ..maths.sweep import (
    NOTHING,
    Column,
    Form,
    Joint,
    Six,
    Swept,
    add_orientation,
    add_place,
    add_thrust,
    eliminated,
    pushed,
    substituted,
)
from ..problem import Floats
from .ends import Pull
from .limits import FREE, Bound
from .tree import Posed, Tree

STIFFER = ((0.0, 0.05), (0.03, 0.2), (0.1, 0.3), (0.3, 0.9), (1.0, 0.2))
"""Pairs to try in turn; the first that suffices is used, and the last always does. First: the share to add of the
stiffness that is sure to keep every joint from turning over by itself. Second: the least stiffness (pivot) that a joint
may then have, as a fraction of its stiffness without forces."""
EYE = np.eye(3)
UNIT = EYE.tolist()
ABOUT_Z = 0.0, 1.0


class Step(NamedTuple):
    """A step that limits allow, in units in which all joints have the same weight."""

    turns: Floats
    """(3, m) change of each joint's angles: of its swing about X and about Z, as of `Pose.axes`, and of its twist."""
    offset: Vector
    """By which the root moves."""
    forces: Floats
    """(places + orientations, 3) that hold the ends after the step."""
    pushed: list[tuple[int, float, float]]
    """Joints at limits, and the forces that still push them on: the twist, then the swing out of its cone."""
    swept: Mapping[int, Swept]
    """Results of the sweep, to be used again."""
    stiffer: int
    """Index of the pair in `STIFFER` that was used."""


class Cost(NamedTuple):
    """Derivatives of the cost of m joints and of the root's offset, without the ends, in units of equal weight."""

    slope: Floats
    """(m, 3) first derivative for each joint's angles."""
    second: Floats
    """(m, 3, 3) second derivative, without that of the angles' axes."""
    offset: Floats
    """(3,) first derivative for the offset; the second is 1."""


class Wanted(NamedTuple):
    """What ends should do: p places and o orientations."""

    gaps: Floats
    """(p + o, 3) vectors to their places and rotation vectors to their orientations."""
    pull: Pull
    """How the ends are held."""
    forces: Floats
    """(p + o, 3) that act on the ends before the step."""


@dataclass(frozen=True)
class Equations:
    """Linear equations for a step of m joints.

    A joint has three unknowns: its twist, its swing out of a cone that holds it or else about Z, and its swing along
    the rim of that cone or else about X.
    """

    tree: Tree
    posed: Posed
    units: Floats
    """(m,) of steps of joints."""
    cost: Cost
    wanted: Wanted
    slide: Joint
    """The offset of the root, as a joint above it."""
    places: list[Vector]
    """Positions of the ends with a place, as those of the skeleton."""

    @classmethod
    def of(cls, tree: Tree, posed: Posed, units: tuple[Floats, float], cost: Cost, wanted: Wanted) -> Equations:
        """Set up the equations.

        Args:
            tree: the joints.
            posed: their current pose.
            units: of steps of joints (m,), and of the offset.
            cost: derivatives of the cost of joints and offset, without the ends.
            wanted: what the ends should do.
        """
        turns, slide = units
        way = slide * tree.has_root
        columns = [[0.0] * (3 + axis) + [way] + [0.0] * (5 - axis) for axis in range(3)]
        places = ((posed.ends[tree.ends.places] - tree.origin) / tree.size).tolist()
        return cls(tree, posed, turns, cost, wanted, Joint(columns, UNIT, (-cost.offset).tolist()), places)

    def solved(self, bounds: Sequence[Bound], stiffer: int, earlier: Mapping[int, Swept]) -> Step:
        """Return the step that solves the equations.

        Args:
            bounds: limits that fix parts of the step.
            stiffer: index of the pair in `STIFFER` to try first.
            earlier: results of the sweep for other bounds, used again for joints that are the same; may be empty.
        """
        tree, fixed = self.tree, [i for i, bound in enumerate(bounds) if bound != FREE]
        normals, curvatures = np.tile(ABOUT_Z, (len(bounds), 1)), np.array([bound.curvature for bound in bounds])
        is_open, ways = ~tree.locked[::-1].T, np.zeros((len(bounds), 3))
        shifts: list[Column | None] = [None] * len(bounds)
        for i in fixed:
            (_, z, x), (normal, depth, _, sign, way) = is_open[i], bounds[i]
            is_open[i, 0] &= not sign
            ways[i, :2] = way / self.units[i], 2.0 * depth / self.units[i]
            if normal is not None:
                normals[i], is_open[i, 1:] = normal, (False, x and z)
        columns, own, slopes = self._equations(normals, curvatures)
        right = slopes * is_open
        for i in fixed:
            matrix = _whole(columns[i], own[i])
            right[i] -= is_open[i] * (matrix @ ways[i])
            shifts[i] = (ways[i] @ columns[i]).tolist() if ways[i].any() else None
        closed, closed_own = columns * is_open[:, :, None], np.where(is_open[:, :, None] & is_open[:, None], own, EYE)
        laid, rest, swept, sums = closed.tolist(), (right.tolist(), shifts), earlier, None
        while True:
            share, least = STIFFER[stiffer]
            stiff = closed_own
            if share:
                sums = self._sums(closed, closed_own) if sums is None else sums
                stiff = stiff + np.maximum(share * sums, 0.0)[:, :, None] * EYE
            joints = [self.slide, *map(Joint, laid, stiff.tolist(), *rest)]
            swept = eliminated(tree.order, tree.children, joints, self._forms, least, swept)
            if 0 in swept:
                break
            stiffer += 1
        (offset, *found), twists = substituted([-1, *(above + 1 for above in tree.skeleton.parents)], swept)
        ways += np.array(found).reshape(-1, 3)
        pushes = []
        for i in fixed:
            joint = Joint(columns[i].tolist(), _whole(columns[i], own[i]).tolist(), slopes[i].tolist())
            above = twists[tree.skeleton.parents[i] + 1]
            twist, out, _ = pushed(joint, swept[i + 1].carried, above, twists[i + 1], ways[i].tolist())
            pushes.append((i, twist, out))
        (about, across, along), (p, q) = ways.T, normals.T
        turns = np.stack([q * along + p * across, q * across - p * along, about])
        return Step(turns, offset, self._forces(twists), pushes, swept, stiffer)

    def _equations(self, normals: Floats, curvatures: Floats) -> tuple[Floats, Floats, Floats]:
        """Return columns (m, 3, 9), see `sweep.Joint`, second derivatives (m, 3, 3) and slopes down (m, 3) of joints.

        Args:
            normals: (m, 2) out of the cones that hold joints.
            curvatures: (m,) of these cones.
        """
        pose, unit, (p, q), is_held = self.posed.pose, self.units, normals.T, (normals != ABOUT_Z).any()

        def turned(vectors: Floats) -> Floats:
            """Return vectors (..., 3, m) with the part about Z, then that about X, turned to the normals."""
            if not is_held:
                return vectors
            x, z, twist = (vectors[..., axis, :] for axis in range(3))
            return np.stack([q * x - p * z, p * x + q * z, twist], axis=-2)

        axes = np.array(pose.axes).reshape(-1, 3, 3).transpose(1, 2, 0) * unit
        couplings: Floats = np.array(self._couplings).reshape(-1, 9).T
        # The whole cost bends with the axes of the joints.
        moments = couplings[[7, 2, 3]] - couplings[[5, 6, 1]]
        bends = (self.cost.slope.T - (axes * moments[:, None]).sum(axis=0)) * unit
        *turning, slope, bend, angles = turned(np.array([*axes, self.cost.slope.T, bends, self.posed.angles]))
        room = Room((1.0, 0.0), np.maximum(-bend[1], 0.0) * curvatures / 2.0, (True, True, True))
        turns: Any = np.concatenate(turning), np.array(pose.points).reshape(-1, 3).T
        columns, parts, right, *_ = equation_of(MANY, (*turns, couplings), room, angles, (slope, bend), 0.0)
        own = turned(turned(self.cost.second.transpose(1, 2, 0)).swapaxes(0, 1))[::-1, ::-1]
        for row, line in zip(own, parts, strict=True):
            for place, part in zip(row, line, strict=True):
                place += part
        return np.array(columns).transpose(2, 0, 1), own.transpose(2, 0, 1), np.array(right).T

    @cached_property
    def _couplings(self) -> list[Nine]:
        """How forces at the ends couple each joint with rotations above it."""
        ends, carriers = self.tree.ends, self.tree.carriers.tolist()
        forces, count = list(map(tuple, self.wanted.forces.tolist())), len(self.places)
        pulls = Pulls([], [])
        for end, place, force in zip(ends.places.tolist(), self.places, forces, strict=False):
            if carriers[end] >= 0:
                pulls.points.append((carriers[end], place, force))
        for end, torque in zip(ends.orientations.tolist(), forces[count:], strict=True):
            if carriers[end] >= 0:
                pulls.torques.append((carriers[end], torque))
        return couplings_of(self.tree.skeleton, self.posed.pose, pulls)

    @cached_property
    def _forms(self) -> list[Form | None]:
        """The cost of ends as forms of the offset and of the joints that carry them; None for those without ends."""
        found: list[Form | None] = [None] * (1 + len(self.units))
        gaps, (yields, thrusts), _ = self.wanted
        carriers = self.tree.carriers[self.tree.ends.wanted].tolist()
        for i, (joint, gap, stiffness) in enumerate(zip(carriers, gaps.tolist(), (1.0 / yields).tolist(), strict=True)):
            if joint < 0:
                continue
            form = found[joint + 1] = found[joint + 1] or NOTHING[:]
            place = self.places[i] if i < len(self.places) else None
            if place is None:
                add_orientation(form, gap, stiffness)
            else:
                add_place(form, place, gap, stiffness)
            if i in thrusts:
                direction, most = thrusts[i]
                add_thrust(form, place, gap, direction, stiffness, most)
        return found

    def _forces(self, twists: list[Six]) -> Floats:
        """Return the forces (p + o, 3) that hold the ends after a step."""
        gaps, (yields, thrusts), _ = self.wanted
        done = np.zeros_like(gaps)
        for end, joint in enumerate(self.tree.carriers[self.tree.ends.wanted].tolist()):
            if joint >= 0:
                twist = twists[joint + 1]
                done[end] = moved(twist, self.places[end]) if end < len(self.places) else twist[:3]
        forces = (gaps - done) / yields[:, None]
        for end, (direction, most) in thrusts.items():
            along = np.array(direction)
            forces[end] += (most - along @ forces[end]) * along
        return np.asarray(forces)

    def _sums(self, columns: Floats, own: Floats) -> Floats:
        """Return the stiffness (m, 3) to add to each unknown so that no joint turns over, whatever the others do.

        It makes every row of the second derivatives diagonally dominant.
        """
        upper, lower = self.tree.pairs
        blocks = np.abs(times_back(columns[upper, :, :3], columns[lower, :, 6:]))
        found = _whole(columns, own)
        diagonal = found[:, range(3), range(3)]
        sums = np.abs(found).sum(axis=2) - diagonal - np.abs(diagonal) + 1.0
        of = np.concatenate([np.arange(len(sums)), upper, lower])
        every = np.concatenate([sums, blocks.sum(axis=2), blocks.sum(axis=1)])
        return np.stack([np.bincount(of, each) for each in every.T], axis=1)


def _whole(columns: Floats, own: Floats) -> Floats:
    """Return the second derivatives (..., 3, 3) of joints, with the coupling in their columns (..., 3, 9)."""
    found = np.triu(own + times_back(columns[..., :3], columns[..., 6:]))
    return found + np.triu(found, 1).swapaxes(-1, -2)


def released(bound: Bound, twist: float, out: float) -> Bound:
    """Return a bound without the limits from which forces on the twist and on the swing push a joint away."""
    if bound.normal and out < -1e-12:
        bound = bound._replace(normal=None, depth=0.0, curvature=0.0)
    if bound.sign and bound.sign * twist < -1e-12:
        bound = bound._replace(sign=0.0, way=0.0)
    return bound


def resistance(vectors: Floats, hardening: Floats) -> tuple[Floats, Floats]:
    """Return the derivatives of the cost of joints turned by rotation vectors (3, m).

    A joint turned by an angle a costs a^2 / 2 + h a^4 / 4, where h is its hardening (m,): the farther it is turned, the
    less it gives, so that its neighbors take over.

    Returns:
        The first derivative of the cost (3, m), and the second (m, 3, 3).
    """
    angle = norm(vectors)
    small = angle < 2e-3
    half = 0.5 * np.where(small, 1.0, angle)
    # Across the axis of the rotation the cost grows more slowly than along it.
    across = np.where(small, 1.0, half / np.tan(half))
    stretch = 1.0 + hardening * angle * angle
    along = np.where(small, 0.0, (1.0 - across) / (4.0 * half * half)) * stretch + 2.0 * hardening
    second = along * vectors[:, None] * vectors[None] + across * stretch * np.eye(3)[:, :, None]
    return vectors * stretch, second.transpose(2, 0, 1)


def axes_at_rest(angles: Floats) -> Floats:
    """Return the axes (m, 3, 3) of `Pose.axes` for angles (3, m) as columns, in the axes of joints at rest."""
    x, z, _ = angles
    p, q = x * x, z * z
    w = np.sqrt(np.maximum(1.0 - p - q, STEEPEST**2))
    both = x * z / w
    columns = [(p / w + w, z, both), (both, -x, q / w + w), (-2.0 * w * z, 1.0 - 2.0 * (p + q), 2.0 * w * x)]
    return np.array(columns).transpose(2, 1, 0)
