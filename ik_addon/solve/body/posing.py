"""Poses a body: pinned bones stay, dragged bones go to their targets, and the rest of the body follows.

The result is the pose of least cost among those within limits in which pins hold. A joint costs the square of the
angle by which it turns from its initial pose, times its weight, and more if it hardens; the root also costs the square
of the distance that it moves. Dragged bones are pulled to their targets by a force of limited strength, so a target is
reached where that force suffices, and approached smoothly where it does not. Newton's method lowers the cost, always
from the initial pose, while the target moves away from its starting point: the pose depends on the target alone, not on
the path that the mouse took to it. `Equations` give its steps: the cheapest one that brings the ends where they should
be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import NamedTuple

import numpy as np

from ..limited.newton import Room, equation_of
from ..limited.objectives import Pulls, couplings_of, moved
from ..limited.skeleton import Nine
from ..maths import sweep
from ..maths.cones import joint_rotation, swing_twist
from ..maths.numbers import MANY, Nested
from ..maths.products import applied, back_applied, back_times, lengths_of, times, times_back
from ..maths.rotations import (
    about_vectors,
    cross,
    dot,
    inverse,
    matrices,
    multiply,
    norm,
    quaternions,
    rotate,
    vectors_of,
)
from ..maths.sweep import NOTHING, Column, Form, Joint, Six
from ..maths.vectors import Vector
from ..problem import Floats
from .problem import STRENGTH, Body, Grab, Pin, PosedBody, check_shape
from .tree import FREE, HELD_BACK, YIELD, Bound, Ends, Posed, Pull, Tree, joints_between, pull_of, ranges_of

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
    slide: float
    """The unit of the root's offset."""
    cost: Cost
    """Without that of the ends."""
    gaps: Floats
    """(places + orientations, 3) vectors to the places of the ends and rotation vectors to their orientations."""
    pull: Pull
    """How the ends are held."""
    forces: Floats
    """(places + orientations, 3) that act on the ends before the step."""

    @cached_property
    def places(self) -> list[Vector]:
        """Positions of the ends with a place, as those of the skeleton."""
        tree = self.tree
        found: list[Vector] = ((self.posed.ends[tree.ends.places] - tree.origin) / tree.size).tolist()
        return found

    @property
    def _offset(self) -> Joint:
        """The offset of the root, as a joint above it."""
        way = self.slide * self.tree.has_root
        columns = [[0.0] * (3 + axis) + [way] + [0.0] * (5 - axis) for axis in range(3)]
        return Joint(columns, UNIT, (-self.cost.offset).tolist())

    def solved(self, bounds: Sequence[Bound], stiffer: int) -> Step:
        """Return the step that solves the equations.

        Args:
            bounds: limits that fix parts of the step.
            stiffer: index of the pair in `STIFFER` to try first.
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
        laid, rest, sums = closed.tolist(), (right.tolist(), shifts), None
        parents = [-1, *(above + 1 for above in tree.skeleton.parents)]
        while True:
            share, least = STIFFER[stiffer]
            stiff = closed_own
            if share:
                sums = self._sums(closed, closed_own) if sums is None else sums
                stiff = stiff + np.maximum(share * sums, 0.0)[:, :, None] * EYE
            joints = [self._offset, *map(Joint, laid, stiff.tolist(), *rest)]
            swept = sweep.eliminated(parents, joints, self._forms, least)
            if swept is not None:
                break
            stiffer += 1
        (offset, *found), twists = sweep.substituted(parents, swept)
        ways += np.array(found).reshape(-1, 3)
        pushes = []
        for i in fixed:
            joint = Joint(columns[i].tolist(), _whole(columns[i], own[i]).tolist(), slopes[i].tolist())
            above = twists[parents[i + 1]]
            twist, out, _ = sweep.pushed(joint, swept[i + 1].carried, above, twists[i + 1], ways[i].tolist())
            pushes.append((i, twist, out))
        (about, across, along), (p, q) = ways.T, normals.T
        turns = np.stack([q * along + p * across, q * across - p * along, about])
        return Step(turns, offset, self._forces(twists), pushes, stiffer)

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
        turns: Nested = np.concatenate(turning), np.array(pose.points).reshape(-1, 3).T
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
        forces, count = list(map(tuple, self.forces.tolist())), len(self.places)
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
        gaps, (yields, thrusts) = self.gaps, self.pull
        carriers = self.tree.carriers[self.tree.ends.wanted].tolist()
        for i, (joint, gap, stiffness) in enumerate(zip(carriers, gaps.tolist(), (1.0 / yields).tolist(), strict=True)):
            if joint < 0:
                continue
            form = found[joint + 1] = found[joint + 1] or NOTHING[:]
            place = self.places[i] if i < len(self.places) else None
            if place is None:
                sweep.add_orientation(form, gap, stiffness)
            else:
                sweep.add_place(form, place, gap, stiffness)
            if i in thrusts:
                direction, most = thrusts[i]
                sweep.add_thrust(form, place, gap, direction, stiffness, most)
        return found

    def _forces(self, twists: list[Six]) -> Floats:
        """Return the forces (p + o, 3) that hold the ends after a step."""
        gaps, (yields, thrusts) = self.gaps, self.pull
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


LARGEST_WAY = 0.15
"""The target moves away in steps of at most this part of the body's size."""
PASSES = 38
"""Maximum number of passes."""
SETTLED = 2e-5
"""Radians: the search ends when the remaining motion of every joint is less than this."""
SHORT = 1e-3
"""Radians: after passes that turn joints by less, the remaining motion is extrapolated; see `_rest`."""
FARTHEST = 0.45
"""Maximum radians that a joint turns in a pass."""
FINISH = 8
"""Maximum number of passes for pins alone."""
HELD = 1e-6
"""A pin holds if it is off by less than this, in body sizes and in radians."""
LOOSE = 1e9
"""An end that gives way by this to a unit force is free."""
LEAST, MOST = 0.2, 1.0
"""Smallest and largest share of a step to take."""
NEAR = 0.1
"""A pass that turns no joint by more is near the end of the search."""
MISSES = 1e-3
"""A dragged point farther from its target than this, in body sizes, is held back."""
HOLDS_BACK = 0.1 * STRENGTH
"""The least force of a pin that holds a dragged point back."""
ROUNDS = 3
"""Maximum number of times that a pass chooses which limits hold."""
ROOT_TURNS = 6.0
"""Weight of turning the root, compared with a joint that carries nothing."""
ROOT_MOVES = 8.0
"""Weight of moving the root by the body's size."""
LIMB = 40.0
"""A dragged limb follows this much more readily than by its size where it reaches its target alone."""
HIPS = 4.0
"""The root follows this much less readily then."""
REACHES = 0.85, 1.0
"""Distances from a limb's first joint, in its lengths: up to the first one a limb follows alone, from the second one on
the whole body follows."""
HALVES = np.array([[0.5], [0.5], [1.0]])
"""How much the angles of a joint change per radian about their axes, see `Pose.axes`."""
CARRIED = 4.0
"""Weight added to a joint that carries the whole body; others get their share."""


def pose_body(body: Body, pins: Sequence[Pin], grabs: Sequence[Grab]) -> PosedBody:
    """Return the pose of a body with its grabbed bones at their targets, or as near as possible, while pins hold.

    Raises:
        ValueError: if shapes do not fit together, a bone does not exist, or a target is not finite.
    """
    rotations = [grab.rotation for grab in grabs if grab.rotation is not None]
    targets = [grab.target for grab in grabs if grab.target is not None]
    return Poser(body, pins, grabs).pose(targets, rotations)


class Poser:
    """A body with pins and grabs, prepared once and then posed for any number of targets."""

    def __init__(self, body: Body, pins: Sequence[Pin], grabs: Sequence[Grab]) -> None:
        """Prepare the body in its initial pose; of the targets in `grabs`, only their presence matters.

        Raises:
            ValueError: if shapes do not fit together or a bone does not exist.
        """
        check_shape(body)
        self.body = body
        self.ends = Ends.of(body, pins, grabs)
        ranges = ranges_of(body)
        joints = joints_between(body, self.ends, (ranges == 0.0).all(axis=1))
        self.tree = tree = Tree.of(body, joints, self.ends)
        self.size = tree.size
        self._begin = tree.posed(*tree.split(tree.turns), np.zeros(3))
        carriers = tree.carriers[self.ends.orientations]
        self._is_carried = carriers >= 0
        self._still = self._begin.ends, self._begin.frames(carriers.tolist())
        self._costs = self._costs_of()
        self._limbs = [self._limb(grab) for grab in grabs if grab.target is not None]
        self._back, self._bent_by = inverse(tree.turns), np.zeros((3, len(joints)))
        if body.bends is not None:
            bends = back_applied(self._begin.frames(range(len(joints))), np.asarray(body.bends, np.float64)[joints])
            self._bent_by = rotate(tree.turns, bends.T)
        hardening = np.zeros(len(body.parents)) if body.hardening is None else np.asarray(body.hardening, np.float64)
        self._hardening = hardening[tree.bones]
        self._hardening[: int(tree.has_root)] = 0.0

    @property
    def units(self) -> tuple[Floats, float]:
        """The rotation of each joint (m,) that costs one, and such a move of the root, where nothing is dragged."""
        return self._weights(np.zeros((0, 3)))

    def _costs_of(self) -> tuple[Floats, float]:
        """Return the weights of turning each joint (m,), and of moving the root.

        The root moves in units of the body's size.
        """
        body, joints = self.body, self.tree.bones
        give = np.ones(len(body.parents)) if body.give is None else np.asarray(body.give, np.float64)
        costs = (1.0 + CARRIED * _carried(body)[joints]) / give[joints]
        if not self.tree.has_root:
            return costs, ROOT_MOVES
        costs[0] = ROOT_TURNS / give[body.root]
        return costs, float(ROOT_MOVES / give[body.root])

    def _limb(self, grab: Grab) -> tuple[list[int], Floats, float]:
        """Return the joints between a dragged point and the top of its limb, where that is (3,), and their length."""
        parents, heads = np.asarray(self.body.parents).tolist(), np.asarray(self.body.heads, np.float64)
        points, bones, bone = [heads[grab.bone] if grab.point is None else grab.point], [], grab.bone
        while bone >= 0 and grab.limb is not None and grab.limb not in bones:
            bones.append(bone)
            points.append(heads[bone])
            bone = parents[bone]
        length = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
        is_whole = grab.limb in bones and self.body.root not in bones
        return [i for i, own in enumerate(self.tree.bones) if is_whole and own in bones], points[-1], length

    def _weights(self, places: Floats) -> tuple[Floats, float]:
        """Return the units of joints (m,) and of the root's move in a search for dragged points at places."""
        (turning, moving), most = self._costs, 0.0
        turning = turning.copy()
        for place, (own, start, length) in zip(places, self._limbs, strict=True):
            if own and length > 0.0:
                far = (float(np.linalg.norm(place - start)) / length - REACHES[0]) / (REACHES[1] - REACHES[0])
                alone = 1.0 - min(1.0, max(0.0, far)) ** 2 * (3.0 - 2.0 * min(1.0, max(0.0, far)))
                turning[own] /= LIMB**alone
                most = max(most, alone)
        if self.tree.has_root:
            turning[0], moving = turning[0] * HIPS**most, moving * HIPS**most
        return 1.0 / np.sqrt(turning), 1.0 / sqrt(moving)

    def pose(self, targets: Sequence[Floats], rotations: Sequence[Floats] = ()) -> PosedBody:
        """Return the body with its dragged points at their targets, or as near as possible.

        Args:
            targets: (3,) for each grab made with a target.
            rotations: (3, 3) for each grab made with a rotation.

        Raises:
            ValueError: if a target is not finite, or the number of targets or rotations differs from that of the grabs.
        """
        ends, begin = self.ends, self._begin
        wanted = np.array(targets, np.float64).reshape(-1, 3)
        if len(wanted) != len(ends.placed_grabs) or not np.isfinite(wanted).all():
            raise ValueError(f"targets must be {len(ends.placed_grabs)} finite points, not {targets}")
        ways, spins = np.zeros_like(begin.ends), np.zeros((3, len(ends.orientations)))
        dragged = ends.pinned + np.array(ends.placed_grabs, dtype=np.int64)
        ways[dragged] = wanted - begin.ends[dragged]
        for i, rotation in zip(ends.turned_grabs, rotations, strict=True):
            end = ends.pinned + i
            now = np.asarray(self.body.frames[ends.points[end][0]], np.float64)
            turn = quaternions(times_back(np.asarray(rotation, np.float64), now))
            spins[:, ends.orientations == end] = vectors_of(turn)[:, None]
        far = max(float(lengths_of(ways).max(initial=0.0)) / self.size, float(norm(spins).max(initial=0.0)) / np.pi)
        steps = min(max(1, int(np.ceil(far / LARGEST_WAY))), PASSES // 2)
        weights = self._weights(wanted)
        state = self._at_rest(self._bent(min(1.0, far / LARGEST_WAY)), np.zeros(3), weights)
        passes, largest = 0, np.inf
        while passes < PASSES and len(self.tree.bones):
            passes += 1
            share = min(1.0, passes / steps)
            goals = self._goals(share * ways, share * spins)
            before = largest
            state, largest = self._pass(state, *goals)
            if share < 1.0:
                state = replace(state, step=np.zeros_like(state.step), share=1.0, near=False)
            elif _rest(largest, before) < SETTLED:
                break
        posed, passes = self._finished(state, self._still, passes)
        return self._posed(posed, passes, state, (begin.ends + ways, self._still[1]))

    def _bent(self, share: float) -> Floats:
        """Return the rotations (4, m) with which a search begins: those of the initial pose, straight joints bent."""
        turns = multiply(about_vectors(share * self._bent_by), self.tree.turns)
        swing, twist = swing_twist(turns)
        angles = self._allowed(np.array([*swing, twist]))
        return joint_rotation(angles[:2], angles[2]) if self._bent_by.any() else self.tree.turns

    def _allowed(self, angles: Floats) -> Floats:
        """Return the allowed angles nearest to given ones (3, m)."""
        found = angles.copy()
        for i in np.flatnonzero(self.tree.is_limited).tolist():
            found[:, i] = self.tree.limits[i].allowed(*angles[:, i].tolist())
        return found

    def _at_rest(self, turns: Floats, offset: Floats, weights: tuple[Floats, float]) -> _State:
        """Return the state in which a search begins: no forces, no limits held, no last step."""
        joints, ends = len(self.tree.bones), len(self.ends.strengths)
        still, free = np.zeros((joints + 1, 3)), [FREE] * joints
        return _State(*self.tree.split(turns), offset, np.zeros((ends, 3)), free, still, 1.0, 0, False, *weights)

    def _finished(self, state: _State, goals: tuple[Floats, Floats], passes: int) -> tuple[Posed, int]:
        """Bring pins to their goals, and count the passes that this takes."""
        for count in range(FINISH + 1):
            posed = self.tree.posed(state.begin, state.angles, state.offset)
            gaps = self._gaps(posed, *goals)
            if count == FINISH or float(lengths_of(gaps[self.ends.hard]).max(initial=0.0)) < HELD:
                break
            begin = self._at_rest(self.tree.joined(state.begin, state.angles), state.offset, (state.units, state.slide))
            state, _ = self._pass(begin, *goals, pins_alone=True)
        return posed, passes + count

    def _gaps(self, posed: Posed, goals: Floats, frames: Floats) -> Floats:
        """Return what ends lack (places + orientations, 3): vectors to places, in body sizes, and rotation vectors."""
        places = self.ends.places
        return np.concatenate([(goals - posed.ends)[places] / self.tree.size, self._left(posed, frames)])

    def _pass(self, state: _State, goals: Floats, frames: Floats, *, pins_alone: bool = False) -> tuple[_State, float]:
        """Take one step towards the goals of the ends; see `_goals`.

        Args:
            state: where the step begins.
            goals: (ends, 3) places.
            frames: (orientations, 3, 3) orientations of the joints that carry the ends.
            pins_alone: only bring pins back, by the shortest way.

        Returns:
            The new state, and the largest angle by which a joint turned; the root's move counts as well.
        """
        tree, ends, units = self.tree, self.ends, (state.units, state.slide)
        posed = tree.posed(state.begin, state.angles, state.offset)
        gaps = self._gaps(posed, goals, frames)
        pull = pull_of(gaps, state.forces, ends.strengths, np.full(len(ends.strengths), YIELD), near=state.near)
        cost = self._cost(state, posed)
        if pins_alone:
            gaps = np.where(ends.hard[:, None], gaps, 0.0)
            pull = Pull(np.where(ends.hard, YIELD, LOOSE), {})
            cost = Cost(0.0 * cost.slope, cost.second, 0.0 * cost.offset)
        equations = Equations(tree, posed, *units, cost, gaps, pull, state.forces)
        now, stiffer = posed.angles, max(0, state.stiffer - 1)
        bounds = state.bounds[:]
        for i in [i for i, bound in enumerate(bounds) if bound != FREE]:
            bounds[i] = tree.limits[i].kept(bounds[i], now[:, i].tolist())
        for _ in range(ROUNDS):
            step = equations.solved(bounds, stiffer)
            stiffer = step.stiffer
            whole = np.array([*step.turns.T, step.offset])
            share = _share(whole, state)
            turning, moving = share * whole[:-1].T * state.units, share * whole[-1] * state.slide
            largest = max(float(np.abs(turning).max()), float(np.abs(moving).max()))
            if largest > FARTHEST:
                turning, moving, largest = turning * (FARTHEST / largest), moving * (FARTHEST / largest), FARTHEST
            reached = posed.angles + HALVES * turning
            allowed = self._allowed(reached)
            before, bounds = bounds, bounds[:]
            for i, twist, out in step.pushed:
                bounds[i] = released(bounds[i], twist, out)
            for i in np.flatnonzero((np.abs(reached - allowed) > HELD_BACK).any(axis=0)).tolist():
                way = (each[:, i].tolist() for each in (now, reached, allowed))
                bounds[i] = tree.limits[i].crossed(bounds[i], *way)
            if bounds == before:
                break
        near = largest < NEAR and not stiffer
        excess = lengths_of(step.forces) / ends.strengths
        excess[list(pull.thrusts)] = 0.0
        if state.near and not near and excess.max() > 1.0:
            # An end that was expected to reach its target does not: the next pass pulls it, from the same pose.
            forces, end = state.forces.copy(), int(excess.argmax())
            forces[end] *= ends.strengths[end] / max(float(lengths_of(forces[end])), 1e-200)
            return replace(state, forces=forces), largest
        offset = state.offset + moving
        begin, angles = state.begin, np.where(tree.is_limited, allowed, 0.0)
        if not tree.is_limited.all():
            turns = multiply(begin, joint_rotation(allowed[:2], allowed[2]))
            begin = np.where(tree.is_limited, begin, turns / np.sqrt((turns * turns).sum(axis=0)))
        return _State(begin, angles, offset, step.forces, before, whole, share, stiffer, near, *units), largest

    def _cost(self, state: _State, posed: Posed) -> Cost:
        """Return how the cost of the joints and of the root's offset depends on them, at a state."""
        turns = self.tree.joined(state.begin, state.angles)
        resisting, second = resistance(vectors_of(multiply(turns, self._back)), self._hardening)
        # In the axes of joints at rest.
        axes, slope = back_times(posed.rests, np.array(posed.pose.axes).reshape(-1, 3, 3)), resisting.T
        stiff, stiffness = axes, self.tree.stiffness
        if stiffness is not None:
            slope, stiff = applied(stiffness, applied(stiffness, slope)), times(stiffness, axes)
        second = back_times(stiff, times(second, stiff))
        # Its swing turns the axis of a joint's twist.
        turned = cross(axes[:, :, :2].transpose(1, 0, 2), axes[:, :, 2:].transpose(1, 0, 2))
        turning = 0.5 * dot(slope.T[:, :, None], turned)
        second[:, :2, 2] += turning
        second[:, 2, :2] += turning
        return Cost(back_applied(axes, slope) / state.units[:, None], second, state.offset / state.slide)

    def _goals(self, ways: Floats, spins: Floats) -> tuple[Floats, Floats]:
        """Return the places (ends, 3) of ends moved by `ways`, and orientations (o, 3, 3) of joints turned by `spins`.

        Both start from the initial pose; o is the number of ends with an orientation.
        """
        places, frames = self._still
        return places + ways, times(matrices(about_vectors(spins)).transpose(2, 0, 1), frames)

    def _left(self, posed: Posed, frames: Floats) -> Floats:
        """Return the rotation vectors (orientations, 3) by which joints still have to turn to reach `frames`."""
        now = posed.frames(self.tree.carriers[self.ends.orientations].tolist())
        left: Floats = vectors_of(quaternions(times_back(frames, now).transpose(1, 2, 0))).T
        return left * self._is_carried[:, None]

    def _posed(self, posed: Posed, passes: int, state: _State, goals: tuple[Floats, Floats]) -> PosedBody:
        tree, body, ends = self.tree, self.body, self.ends
        heads, frames = tree.carried(body, self._begin, posed)
        gaps, left = lengths_of(goals[0] - posed.ends), lengths_of(self._left(posed, goals[1]))
        places, hard = len(ends.places), ends.hard
        missed = np.concatenate([gaps[ends.places], left])
        at_limit = np.zeros(len(heads), dtype=bool)
        at_limit[tree.bones] = [bound != FREE for bound in state.bounds]
        error, pulls = float(missed[:places][ends.dragged[:places]].max(initial=0.0)), lengths_of(state.forces) * hard
        strong = np.flatnonzero(pulls > max(0.5 * pulls.max(initial=0.0), HOLDS_BACK)).tolist()
        pin_error = float(missed[:places][hard[:places]].max(initial=0.0))
        pin_turn = float(left[hard[places:]].max(initial=0.0))
        held_by = tuple({ends.points[ends.wanted[i]][0]: None for i in strong}) if error > MISSES * tree.size else ()
        return PosedBody(heads, frames, error, pin_error, pin_turn, passes, at_limit, held_by)


@dataclass(frozen=True)
class _State:
    """The current state of a search."""

    begin: Floats
    """(4, m) rotations from which the angles of joints are measured, see `Tree.split`."""
    angles: Floats
    """(3, m) angles of the joints."""
    offset: Floats
    """(3,) by which the root has moved, in body sizes."""
    forces: Floats
    """(places + orientations, 3) that held the ends in the last step."""
    bounds: list[Bound]
    """The limits that held in the last step."""
    step: Floats
    """(m + 1, 3) the last step, of the joints and the root's offset, in units of equal weight; zero: there was none."""
    share: float
    """The share of the last step that was taken."""
    stiffer: int
    """Index in `STIFFER` that the last step used. The next one starts one below it, so few are tried in vain."""
    near: bool
    """Whether the last step was short, so that the search is near its end."""
    units: Floats
    """(m,) the rotation of each joint that costs one."""
    slide: float
    """The move of the root that costs one."""


def _rest(way: float, before: float) -> float:
    """Return the remaining motion of a search, extrapolated from that of the last pass and of the one before it."""
    if way > SHORT or way >= 0.5 * before:
        return way
    return way * way / (before - way)


def _share(step: Floats, state: _State) -> float:
    """Return the share of a step to take: less if it reverses the last step, which overshot, then all of it again."""
    square = float((state.step * state.step).sum())
    if square == 0.0:
        return 1.0
    along = float((step * state.step).sum()) / square
    return min(MOST, max(LEAST, state.share / max(1.0 - along, 0.1)))


def _carried(body: Body) -> Floats:
    """Return how much of the body each bone carries (n,), by length, from 0 to 1."""
    parents, heads = np.asarray(body.parents).tolist(), np.asarray(body.heads, np.float64)
    carried = np.zeros(len(parents))
    for bone in reversed(range(len(parents))):
        if parents[bone] >= 0:
            carried[parents[bone]] += carried[bone] + float(norm(heads[bone] - heads[parents[bone]]))
    return np.asarray(carried / max(float(carried.max(initial=0.0)), 1e-200))
