"""One Newton step of a body: linear equations for the cheapest step that brings its ends where they should be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..maths.products import applied, back_applied, back_times, times, times_back
from ..maths.rotations import cross, dot, matrices, norm
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
from ..problem import Floats, Ints
from .limits import Bounds, Opening
from .pull import Pull
from .tree import Posed, Tree

STIFFER = ((0.0, 0.05), (0.03, 0.2), (0.1, 0.3), (0.3, 1.0), (1.0, 0.2))
"""Pairs to try in turn; the first that suffices is used, and the last always does. First: the share to add of the
stiffness that is sure to keep every joint from turning over by itself. Second: the least stiffness (pivot) that a joint
may then have, as a fraction of its stiffness without forces."""
EYE = np.eye(3)
UNIT = EYE.tolist()


class Step(NamedTuple):
    """A step that limits allow, in units in which all joints have the same weight."""

    turns: Floats
    """(m, 3) rotation of each joint about the axes of its rest frame."""
    offset: Floats
    """(3,) by which the root moves."""
    forces: Floats
    """(3, places + orientations) that hold the ends after the step."""
    twists: list[Six]
    """Twists of the offset, then of each joint."""
    swept: Mapping[int, Swept]
    """Results of the sweep, to be used again."""
    stiffer: int
    """Index of the pair in `STIFFER` that was used."""


class Cost(NamedTuple):
    """Derivatives of the cost of m joints and of the root's offset, without the ends."""

    pull: Floats
    """(3, m) first derivative for each joint."""
    second: Floats
    """(m, 3, 3) second derivative for each joint."""
    offset: Floats
    """(3,) first derivative for the offset; the second is 1."""


class Wanted(NamedTuple):
    """What ends should do: p places and o orientations."""

    gaps: Floats
    """(3, p + o) vectors to their places and rotation vectors to their orientations."""
    pull: Pull
    """How the ends are held."""
    forces: Floats
    """(3, p + o) that act on the ends before the step."""


@dataclass(frozen=True)
class Equations:
    """Linear equations for a step of m joints.

    A joint's step makes a twist: a rotation in space, and the translation of the point at the origin.
    """

    tree: Tree
    columns: Floats
    """(m, 3, 9) for each axis of a joint its twist and its coupling to rotations above; see `sweep.Column`."""
    own: Floats
    """(m, 3, 3) second derivative of the cost of each joint's own step, without the part in its columns."""
    mixed: Floats
    """(m, 3, 3) the part in its columns: how forces at the ends couple the axes of a joint."""
    pull: Floats
    """(m, 3) first derivative of the cost."""
    slide: Joint
    """The offset of the root, as a joint above it."""
    forms: list[Form | None]
    """Cost of the ends that the offset and each joint carry directly; None: no ends."""
    points: Floats
    """(3, p) current positions of the ends that have a place, from the first joint's head, in body sizes."""
    wanted: Wanted

    @classmethod
    def of(cls, tree: Tree, posed: Posed, units: tuple[Floats, Floats, float], cost: Cost, wanted: Wanted) -> Equations:
        """Set up the equations.

        Args:
            tree: the joints.
            posed: their current pose.
            units: of steps of joints about their axes (3, m), of the offset (3,), and of lengths.
            cost: derivatives of the cost of joints and offset, without the ends.
            wanted: what the ends should do.
        """
        turns, slides, size = units
        origin = posed.heads[:, :1]
        heads, points = (posed.heads - origin) / size, (posed.ends[:, tree.places] - origin) / size
        turning = matrices(posed.rest_frames) * turns
        bends = _bends(tree, heads, points, wanted.forces)
        bending = (bends[:, :, None] * turning).sum(axis=1)
        columns = np.concatenate([turning, cross(heads[:, None], turning), bending]).transpose(2, 1, 0)
        mixed = (turning[:, :, None] * bending[:, None]).sum(axis=0).transpose(2, 0, 1)
        own = cost.second + 0.5 * (mixed.transpose(0, 2, 1) - mixed)
        ways = [float(way) * tree.has_root for way in slides]
        slide = Joint(
            [[0.0] * (3 + axis) + [way] + [0.0] * (5 - axis) for axis, way in enumerate(ways)],
            UNIT,
            (-cost.offset).tolist(),
        )
        forms = _forms(tree, points, wanted)
        return cls(tree, np.ascontiguousarray(columns), own, mixed, cost.pull.T, slide, forms, points, wanted)

    def solved(self, opening: Opening, stiffer: int, earlier: Mapping[int, Swept]) -> Step:
        """Return the step that solves the equations.

        Args:
            opening: the steps that limits leave open to the joints.
            stiffer: index of the pair in `STIFFER` to try first.
            earlier: results of the sweep for an earlier opening, used again for joints that are the same; may be empty.
        """
        axes, fixed, laid = opening.axes, opening.fixed, self._laid(opening, earlier)
        closed = EYE * (np.arange(3) >= np.array(opening.open_)[:, None])[:, None]
        parents = [-1, *(above + 1 for above in self.tree.parents)]
        swept, sums = earlier, None
        while True:
            share, least = STIFFER[stiffer]
            own = self.own
            if share:
                sums = self._sums(axes) if sums is None else sums
                own = own + np.maximum(share * sums, 0.0)[:, :, None] * EYE
            costs = times_back(times(axes, own), axes)
            costs += closed
            joints = [self.slide]
            for (columns, _, right, shift, count), cost in zip(laid, costs.tolist(), strict=True):
                joints.append(Joint(columns, cost, right, shift, count))
            swept = eliminated(self.tree.order, self.tree.children, joints, self.forms, least, swept)
            if 0 in swept:
                break
            stiffer += 1
        found, twists = substituted(parents, swept)
        step = back_applied(axes, np.array(found[1:]))
        if fixed is not None:
            step += fixed
        return Step(step, np.array(found[0]), self._forces(twists), twists, swept, stiffer)

    def _laid(self, opening: Opening, earlier: Mapping[int, Swept]) -> list[Joint]:
        """Return the joints with all but their own costs; those that `opening` left as they were are taken over."""
        new, fixed = opening.new, opening.fixed
        found = [earlier[i].joint for i in range(1, len(earlier))] or [self.slide] * len(new)
        axes, every, pull = opening.axes[new], self.columns[new], self.pull[new]
        shifts: list[Column | None] = [None] * len(new)
        if fixed is not None:
            ways = fixed[new]
            pull = pull + applied(self.own[new] + self.mixed[new], ways)
            for i in np.flatnonzero(ways.any(axis=1)).tolist():
                shifts[i] = back_applied(every[i], ways[i]).tolist()
        columns, rights = times(axes, every).tolist(), applied(axes, -pull).tolist()
        for i, column, right, shift in zip(new.tolist(), columns, rights, shifts, strict=True):
            found[i] = Joint(column, UNIT, right, shift, opening.open_[i])
        return found

    def pushed(self, step: Step, joints: Ints) -> Floats:
        """Return the force (3, j) with which joints (j,) still push on after a step, against the limits they are at."""
        own, columns, pull, steps = self.own + self.mixed, self.columns, self.pull, step.turns
        found = []
        for i in joints.tolist():
            joint = Joint(columns[i].tolist(), own[i].tolist(), (-pull[i]).tolist())
            twist = step.twists[self.tree.parents[i] + 1]
            found.append(pushed(joint, step.swept[i + 1].carried, twist, step.twists[i + 1], steps[i].tolist()))
        return np.array(found).reshape(-1, 3).T

    def _forces(self, twists: list[Six]) -> Floats:
        """Return the forces (3, p + o) that hold the ends after a step."""
        tree, places = self.tree, self.points.shape[1]
        done = np.zeros_like(self.wanted.gaps)
        for end, joint in enumerate(tree.carriers[tree.wanted].tolist()):
            if joint >= 0:
                x, y, z, u, v, w = twists[joint + 1]
                if end < places:
                    p, q, r = self.points[:, end].tolist()
                    x, y, z = u + y * r - z * q, v + z * p - x * r, w + x * q - y * p
                done[:, end] = x, y, z
        gaps, (yields, thrusts), _ = self.wanted
        forces = (gaps - done) / yields
        for end, (direction, most) in thrusts.items():
            along = np.array(direction)
            forces[:, end] += (most - dot(along, forces[:, end])) * along
        return np.asarray(forces)

    def _sums(self, axes: Floats) -> Floats:
        """Return the stiffness (m, 3) to add to each axis so that no joint turns over, whatever the others do.

        It makes every row of the second derivatives diagonally dominant.
        """
        project = back_times(axes, axes)
        columns = times(project, self.columns)
        upper, lower = self.tree.pairs
        blocks = np.abs(times_back(columns[:, :, :3][upper], columns[:, :, 6:][lower]))
        found = times(times(project, self.own + self.mixed), project) + EYE - project
        diagonal = found[:, range(3), range(3)]
        sums = np.abs(found).sum(axis=2) - diagonal - np.abs(diagonal) + 1.0
        of = np.concatenate([np.arange(len(sums)), upper, lower])
        every = np.concatenate([sums, blocks.sum(axis=2), blocks.sum(axis=1)])
        return np.stack([np.bincount(of, each) for each in every.T], axis=1)


def _bends(tree: Tree, heads: Floats, points: Floats, forces: Floats) -> Floats:
    """Return how forces (3, p + o) at the ends couple joints to rotations above them, (3, 3, m).

    This is the part of the second derivatives that arises because a joint also rotates the motion that joints below
    it give to an end.
    """
    pulls, torques = forces[:, : points.shape[1]], 0.5 * forces[:, points.shape[1] :]
    every = np.zeros((12, forces.shape[1]))
    places, orientations = every[:, : points.shape[1]], every[:, points.shape[1] :]
    places[:9] = -(points[:, None] * pulls).reshape(9, -1)
    places[0:9:4] += dot(points, pulls)
    places[9:] = pulls
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        orientations[3 * j + i], orientations[3 * i + j] = torques[k], -torques[k]
    sums = times(every, tree.moved)
    pulls = sums[9:]
    found = sums[:9] + (heads[:, None] * pulls).reshape(9, -1)
    found[0:9:4] -= dot(heads, pulls)
    return found.reshape(3, 3, -1)


def _forms(tree: Tree, points: Floats, wanted: Wanted) -> list[Form | None]:
    """Return the cost of ends as forms of the offset and of the joints that carry them; None for those without ends."""
    found: list[Form | None] = [None] * (1 + len(tree.parents))
    stiffness, gaps = (1.0 / wanted.pull.yields).tolist(), wanted.gaps.T.tolist()
    carriers = tree.carriers[tree.wanted].tolist()
    places = points.T.tolist()
    for i, (joint, gap, strength) in enumerate(zip(carriers, gaps, stiffness, strict=True)):
        if joint < 0:
            continue
        form = found[joint + 1]
        if form is None:
            form = found[joint + 1] = NOTHING[:]
        place = places[i] if i < len(places) else None
        if place is None:
            add_orientation(form, gap, strength)
        else:
            add_place(form, place, gap, strength)
        if i in wanted.pull.thrusts:
            direction, most = wanted.pull.thrusts[i]
            add_thrust(form, place, gap, direction, strength, most)
    return found


def released(changes: Floats, bounds: Bounds, pushed: Floats) -> Bounds:
    """Return bounds without the limits from which forces (3, k) push joints away; the same object if there are none."""
    if not bounds.held.any():
        return bounds
    swings = bounds.normals[:, 0] * dot(changes[0], pushed) + bounds.normals[:, 1] * dot(changes[1], pushed)
    outward = swings + bounds.normals[:, 2] * dot(changes[2], pushed)
    leave = bounds.held & (outward < -1e-12)
    if not leave.any():
        return bounds
    normals, steps = np.where(leave[:, None], 0.0, bounds.normals), np.where(leave, 0.0, bounds.steps)
    return Bounds(normals, steps, bounds.held & ~leave)


def pressure_of(changes: Floats, bounds: Bounds, pushed: Floats) -> Floats:
    """Return how strongly joints (k,) are pushed against the limits of their swings, per unit of a coordinate."""
    if not bounds.held[:2].any():
        return np.zeros(pushed.shape[1])
    held = np.where(bounds.held[:2], bounds.normals[:2, :2].transpose(1, 0, 2), 0.0).sum(axis=1)
    row = held[0] * changes[0] + held[1] * changes[1]
    size = dot(row, row)
    return np.asarray(np.maximum(dot(row, pushed), 0.0) / np.where(size > 0.0, size, np.inf))


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
