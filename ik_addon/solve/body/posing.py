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
from math import sqrt
from typing import NamedTuple

import numpy as np

from ..maths.cones import joint_rotation, swing_twist
from ..maths.numbers import ONE
from ..maths.products import applied, back_applied, lengths_of, times, times_back
from ..maths.rotations import (
    about_vectors,
    cross,
    inverse,
    matrices,
    multiply,
    norm,
    quaternion_of,
    quaternions,
    rotate,
    vectors_of,
)
from ..maths.turns import vector_of
from ..problem import Floats
from .equations import Cost, Equations
from .problem import STRENGTH, Body, Grab, Pin, PosedBody, check_shape
from .tree import EYE, FREE, HELD_BACK, YIELD, Bound, Ends, Posed, Pull, Tree, joints_between, pull_of, ranges_of


def released(bound: Bound, twist: float, out: float) -> Bound:
    """Return a bound without the limits from which forces on the twist and on the swing push a joint away."""
    if bound.normal and out < -1e-12:
        bound = bound._replace(normal=None, depth=0.0, curvature=0.0)
    if bound.sign and bound.sign * twist < -1e-12:
        bound = bound._replace(sign=0.0, way=0.0)
    return bound


def resistance(turns: Floats, hardening: Floats) -> tuple[Floats, Floats]:
    """Return the derivatives of the cost of joints by rotation vectors, at rotations (4, m).

    A joint turned by an angle a costs a^2 / 2 + h a^4 / 4, where h is its hardening (m,): the farther it is turned, the
    less it gives, so that its neighbors take over.

    Returns:
        The first derivative of the cost (3, m), and the second (m, 3, 3).
    """
    sine = np.maximum(norm(turns[1:]), 1e-150)
    half = np.arctan2(sine, np.abs(turns[0]))
    size = half / sine
    vectors, square = turns[1:] * np.copysign(2.0 * size, turns[0]), 4.0 * half * half
    # Across the axis of the rotation the cost grows more slowly than along it.
    across, stretch = size * np.abs(turns[0]), 1.0 + hardening * square
    along = (1.0 - across) / square * stretch + 2.0 * hardening
    second = along * vectors[:, None] * vectors + across * stretch * EYE[:, :, None]
    return vectors * stretch, second.transpose(2, 0, 1)


LARGEST_WAY = 0.15
"""The target moves away in steps of at most this part of the body's size."""
PASSES = 42
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
        self._begin = tree.posed(tree.turns, tree.angles_of(tree.turns), np.zeros(3))
        carriers = tree.carriers[self.ends.orientations]
        self._is_carried = carriers >= 0
        self._still = self._begin.ends, self._begin.frames[carriers]
        give = np.ones(len(body.parents)) if body.give is None else np.asarray(body.give, np.float64)
        self._costs, self._moving = (1.0 + CARRIED * _carried(body)[joints]) / give[joints], ROOT_MOVES
        if tree.has_root:
            self._costs[0], self._moving = ROOT_TURNS / give[joints[0]], float(ROOT_MOVES / give[joints[0]])
        self._limbs = [self._limb(grab) for grab in grabs if grab.target is not None]
        # What multiplies rotations by the inverse of the initial ones.
        self._back = np.array([multiply(one[:, None], inverse(tree.turns)) for one in np.eye(4)]).transpose(2, 1, 0)
        self._bent_by = np.zeros((3, len(joints)))
        if body.bends is not None:
            bends = back_applied(self._begin.frames[:-1], np.asarray(body.bends, np.float64)[joints])
            self._bent_by = rotate(tree.turns, bends.T)
        hardening = np.zeros(len(body.parents)) if body.hardening is None else np.asarray(body.hardening, np.float64)
        self._hardening = hardening[tree.bones]
        self._hardening[: int(tree.has_root)] = 0.0

    @property
    def units(self) -> tuple[Floats, float]:
        """The rotation of each joint (m,) that costs one, and such a move of the root, where nothing is dragged."""
        return self._weights(np.zeros((0, 3)))

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
        turning, moving, most = self._costs.copy(), self._moving, 0.0
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
        places, spins = begin.ends.copy(), np.zeros((3, len(ends.orientations)))
        dragged = ends.pinned + np.array(ends.placed_grabs, dtype=np.int64)
        places[dragged] = (wanted - self.tree.origin) / self.size
        ways = places - begin.ends
        for i, rotation in zip(ends.turned_grabs, rotations, strict=True):
            end = ends.pinned + i
            now = np.asarray(self.body.frames[ends.points[end][0]], np.float64)
            turn = quaternions(times_back(np.asarray(rotation, np.float64), now))
            spins[:, ends.orientations == end] = vectors_of(turn)[:, None]
        far = max(float(lengths_of(ways).max(initial=0.0)), float(norm(spins).max(initial=0.0)) / np.pi)
        steps = min(max(1, int(np.ceil(far / LARGEST_WAY))), PASSES // 2)
        weights = self._weights(wanted)
        state = self._at_rest(self._bent(min(1.0, far / LARGEST_WAY)), np.zeros(3), weights)
        passes, largest = 0, np.inf
        while passes < PASSES and len(self.tree.bones):
            passes += 1
            if passes <= steps:
                goals = self._goals(passes / steps * ways, passes / steps * spins)
            before = largest
            state, largest = self._pass(state, *goals)
            if passes < steps:
                state = state._replace(step=np.zeros_like(state.step), share=1.0, near=False)
            elif _rest(largest, before) < SETTLED:
                break
        return self._finished(state, (places, self._still[1]), passes)

    def _bent(self, share: float) -> Floats:
        """Return the rotations (4, m) with which a search begins: those of the initial pose, straight joints bent."""
        if not self._bent_by.any():
            return self.tree.turns
        turns = multiply(about_vectors(share * self._bent_by), self.tree.turns)
        swing, twist = swing_twist(turns)
        angles = self.tree.allowed(np.array([*swing, twist]))
        return joint_rotation(angles[:2], angles[2])

    def _at_rest(self, turns: Floats, offset: Floats, weights: tuple[Floats, float]) -> _State:
        """Return the state in which a search begins: no forces, no limits held, no last step."""
        joints, ends = len(self.tree.bones), len(self.ends.strengths)
        still, free = np.zeros((joints + 1, 3)), [FREE] * joints
        return _State(
            turns, self.tree.angles_of(turns), offset, np.zeros((ends, 3)), free, still, 1.0, 0, False, *weights
        )

    def _finished(self, state: _State, goals: tuple[Floats, Floats], passes: int) -> PosedBody:
        """Bring pins to their goals, which takes more passes, and return the body."""
        now = state
        for count in range(FINISH + 1):
            posed = self.tree.posed(now.turns, now.angles, now.offset)
            gaps = self._gaps(posed, *goals)
            if count == FINISH or float(lengths_of(gaps[self.ends.hard]).max(initial=0.0)) < HELD:
                break
            begin = self._at_rest(now.turns, now.offset, (now.units, now.slide))
            now, _ = self._pass(begin, *goals, pins_alone=True)
        return self._posed(posed, gaps, passes + count, state)

    def _gaps(self, posed: Posed, goals: Floats, frames: Floats) -> Floats:
        """Return what ends lack (places + orientations, 3): vectors to places, in body sizes, and rotation vectors."""
        now = posed.frames[self.tree.carriers[self.ends.orientations]]
        turns = map(quaternion_of, times_back(frames, now).reshape(-1, 9).tolist())
        left = np.array([vector_of(ONE, turn) for turn in turns]).reshape(-1, 3) * self._is_carried[:, None]
        return np.concatenate([(goals - posed.ends)[self.ends.places], left])

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
        posed = tree.posed(state.turns, state.angles, state.offset)
        gaps = self._gaps(posed, goals, frames)
        pull = pull_of(gaps, state.forces, ends.strengths, np.full(len(ends.strengths), YIELD), near=state.near)
        cost = self._cost(state, posed)
        if pins_alone:
            gaps = np.where(ends.hard[:, None], gaps, 0.0)
            pull = Pull(np.where(ends.hard, YIELD, LOOSE), {})
            cost = cost._replace(slope=0.0 * cost.slope)
        equations = Equations.of(tree, posed, *units, cost, gaps, pull, state.forces)
        now, stiffer = posed.angles, max(0, state.stiffer - 1)
        bounds = state.bounds[:]
        for i in [i for i, bound in enumerate(bounds) if bound != FREE]:
            bounds[i] = tree.limits[i].kept(bounds[i], now[:, i].tolist())
        for _ in range(ROUNDS):
            step = equations.solved(bounds, stiffer)
            stiffer = step.stiffer
            share = _share(step.whole, state)
            turning, moving = share * step.whole[1:].T * state.units, share * step.whole[0] * state.slide
            largest = max(float(np.abs(turning).max()), float(np.abs(moving).max()))
            if largest > FARTHEST:
                turning, moving, largest = turning * (FARTHEST / largest), moving * (FARTHEST / largest), FARTHEST
            reached = posed.angles + HALVES * turning
            allowed = tree.allowed(reached)
            before, bounds = bounds, bounds[:]
            for i, twist, out in step.pushed:
                bounds[i] = released(bounds[i], twist, out)
            for i in np.flatnonzero((np.abs(reached - allowed) > HELD_BACK).any(axis=0)).tolist():
                way = (each[:, i].tolist() for each in (now, reached, allowed))
                bounds[i] = tree.limits[i].crossed(bounds[i], *way)
            if bounds == before:
                break
        near = largest < NEAR and not stiffer
        if state.near and not near:
            excess = lengths_of(step.forces) / ends.strengths
            excess[list(pull.thrusts)] = 0.0
            if excess.max() > 1.0:
                # An end that was expected to reach its target does not: the next pass pulls it, from the same pose.
                forces, end = state.forces.copy(), int(excess.argmax())
                forces[end] *= ends.strengths[end] / max(float(lengths_of(forces[end])), 1e-200)
                return state._replace(forces=forces), largest
        offset, angles = state.offset + moving, np.where(tree.is_limited, allowed, 0.0)
        turns = tree.turned(state.turns, allowed)
        return _State(turns, angles, offset, step.forces, before, step.whole, share, stiffer, near, *units), largest

    def _cost(self, state: _State, posed: Posed) -> Cost:
        """Return how the cost of the joints and of the root's offset depends on them, at a state."""
        resisting, second = resistance(applied(self._back, posed.turns.T).T, self._hardening)
        axes, slope = posed.own, resisting.T
        stiff, stiffness = axes, self.tree.stiffness
        if stiffness is not None:
            slope, stiff = applied(stiffness, applied(stiffness, slope)), stiffness @ axes
        second = stiff.swapaxes(1, 2) @ second @ stiff
        # Its swing turns the axis of a joint's twist.
        turning = 0.5 * back_applied(axes[:, :, :2], cross(axes[:, :, 2].T, slope.T).T)
        second[:, :2, 2] += turning
        second[:, 2, :2] += turning
        slopes = np.concatenate([state.offset[None] / state.slide, back_applied(axes, slope) / state.units[:, None]])
        return Cost(slopes, second)

    def _goals(self, ways: Floats, spins: Floats) -> tuple[Floats, Floats]:
        """Return the places (ends, 3) of ends moved by `ways`, and orientations (o, 3, 3) of joints turned by `spins`.

        Both start from the initial pose; o is the number of ends with an orientation.
        """
        places, frames = self._still
        if spins.any():
            frames = times(matrices(about_vectors(spins)).transpose(2, 0, 1), frames)
        return places + ways, frames

    def _posed(self, posed: Posed, gaps: Floats, passes: int, state: _State) -> PosedBody:
        tree, body, ends = self.tree, self.body, self.ends
        heads, frames = tree.carried(body, self._begin, posed)
        places, hard, missed = len(ends.places), ends.hard, lengths_of(gaps)
        missed[:places] *= self.size
        at_limit = np.zeros(len(heads), dtype=bool)
        at_limit[tree.bones] = [bound != FREE for bound in state.bounds]
        error, pulls = float(missed[:places][ends.dragged[:places]].max(initial=0.0)), lengths_of(state.forces) * hard
        strong = np.flatnonzero(pulls > max(0.5 * pulls.max(initial=0.0), HOLDS_BACK)).tolist()
        pin_error = float(missed[:places][hard[:places]].max(initial=0.0))
        pin_turn = float(missed[places:][hard[places:]].max(initial=0.0))
        held_by = tuple({ends.points[ends.wanted[i]][0]: None for i in strong}) if error > MISSES * tree.size else ()
        return PosedBody(heads, frames, error, pin_error, pin_turn, passes, at_limit, held_by)


class _State(NamedTuple):
    """The current state of a search."""

    turns: Floats
    """(4, m) rotations of the joints from rest."""
    angles: Floats
    """(3, m) their angles, see `Tree.angles_of`."""
    offset: Floats
    """(3,) by which the root has moved, in body sizes."""
    forces: Floats
    """(places + orientations, 3) that held the ends in the last step."""
    bounds: list[Bound]
    """The limits that held in the last step."""
    step: Floats
    """(m + 1, 3) the last step, see `Step.whole`; zero: there was none."""
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
