"""Where descents start, and which of the poses that they find is taken: for one body.

Every attempt is a descent. The first one starts near the FK pose, so that neighboring targets lead to neighboring
poses; if it does not arrive, Newton's method goes on from where it ends. Mostly no pose is better than the one found
then. If the limits alone do not prove that, a few descents from a fixed table of poses show it, and only if these
disagree are many needed. Trees are the other way round: their joints get in each other's way, so that Newton's
method takes long, while a few descents from the table mostly arrive. Of all poses that arrive, the one nearest to
FK is taken. With restarts, Newton's method with joint limits misses no targets, instead of a quarter of them
(P. Beeson and B. Ames, "TRAC-IK", Humanoids 2015, doi 10.1109/HUMANOIDS.2015.7363472); here they need no random
generator.

A target farther away than the chain is long asks for no search, if the chain can stretch towards it, see `starts`.

Limits prove that no pose is nearer by what they let a joint do: it turns its bone away from the one before by at most
its largest swing, whatever other joints do. That bounds how far a chain reaches in the direction of its target, which
is tight for one that is bent as far as possible and then straight, and how tightly it curls up: its ends are nearest to
each other if it bends to one side, as far as it can at each joint, as long as it then makes a convex polygon (A. Schur,
"Über die Schwarzsche Extremaleigenschaft des Kreises unter den Kurven konstanter Krümmung", Mathematische Annalen 83,
1921; J. O'Rourke, "An extension of Cauchy's arm lemma with application to curve development", arXiv math/0006096).
"""

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from math import acos, asin, atan2, cos, hypot, inf, pi, sin, sqrt
from typing import NamedTuple, Self

import numpy as np

from ..maths.numbers import ONE, Nested
from ..maths.turns import applied, at_limit, inverse, multiply, tilted, turn_of, vector_of
from ..maths.vectors import ZERO, Vector, dot, minus, norm, over, plus, times, unit
from ..problem import Aim, Floats, Ints, OutOfReach, Problem, Solution, Solved, Solver, path_of, reachable, status_of
from . import descent
from .descent import EXACT, PULL, State, finished
from .newton import SAME, STILL, Anchor, away_from, polished
from .objectives import SIDE, TURN, Orientation, Place, Pole, System, masses_of
from .skeleton import Angles, Body, Skeleton, Standing, pose_of
from .starts import Passes, guess_of, led_by_tips, nearest, table

ARRIVED = 3e-7
"""A pose has arrived if it misses by no more than this, in chain lengths."""
_TIE = 1e-3
"""Poses whose squared distances from FK differ by no more than this fraction count as equally near."""
STEPS = 30
"""Maximum steps of the first descent. If it has not arrived by then, Newton's method goes on from there."""
TOGETHER = 20
"""The same if there are poles or orientations too."""
AWAY = 8
"""The same if targets are farther away than chains are long: stretching towards them takes no more."""
_POLISH = 40
"""Maximum Newton steps to come as near as possible."""
_BRIEF, _LONGER, _PULL = 3, 8, 1.0
"""Maximum steps of other descents, of chains and of trees, and their pull, see `descent.advanced`: they need not stay
near any pose."""
_STILL = 1e-3
"""Radians: once Newton's steps are this short, it is clear how near such a descent can come."""
_ROUNDS = (0, 4, 4, 20), (4, 16, 6, 20), (4, 32, 28, _POLISH)
"""First start and the one after the last, how many of them are polished, and maximum Newton steps; see `nearest`. The
last round is for targets missed by very little: straight chains hide solutions next to where they get stuck. Of 1,260
targets for chains of three to six bones, 5 end more than 1e-3 farther away than from another FK pose; as many did with
28 descents in the second round, which took two thirds more steps in all."""
_CLEAR = 1e-2
"""The same as `_STILL`, for bodies that are not serial chains: their joints get in each other's way."""
_EARLY, _LATE = ((0, 1), (1, 1), (2, 2), (4, 4)), (8, 24)
"""First pose of the table and number of poses from which trees descend: before Newton's method, one part after the
other, and after it."""
_KEPT, _FEWER = 6, 12
"""How many of the early ones and of the late ones are polished, and maximum Newton steps."""
_ENOUGH = 3
"""Trees: once this many poses are among the best, none will be better."""
_PASSES = 3
"""Trees out of reach: FABRIK passes that stretch them."""
_STAGES = (1e-2, 3e-3, 1e-3), (1e-3, 3e-3, 1e-4), (1e-4, 3e-3, 1e-9)
"""What a target out of reach leaves open, like the twist of a straight branch, is decided in stages: weights of squared
poles and orientations, as fractions of the error, so small that they decide nothing else; of being a radian away from
the FK pose, relative to these; and the length, in radians, of Newton's last step. With a place alone, a chain that is
held back by limits needs two stages: 14 steps, in one 15 and in three 17. So do orientations, or a free chain
settles only to 5e-4 radians."""
_MEETING = (0.1, 3e-3, 1e-3), (0.1, 3e-5, 1e-9)
"""The same where a target is reached, but not its pole and orientation as well. Of 3,456 targets of chains and trees
with poles and orientations, input that differs by 1e-13 moves 14 poses by more than 1e-6, and 43 without the FK pose,
as Newton's method then ends before it is done. With one stage, poles and orientations are met less well."""
_SOON, _NEARLY = 20, 0.015
"""If the first of these ends within so many steps, and misses by more than this, in chain lengths, hardly ever can all
be met: of 2,500 orientations that can be met, 20 come that far, and 3 of these look as if they can't."""
_SETTLE = 200
"""Maximum Newton steps for each of these stages."""
_CERTAIN = 1e-9
"""How much farther than a straight chain's a pose may end that is proven to be the nearest, in chain lengths."""

HAIR = 1e-5
"""Offsets from a bone's axis below this fraction of its length are rounding of single precision."""

Found = tuple[Angles, float, int]
"""Joint angles, the residual, and the number of steps taken: of places alone after Newton's method."""
Stage = tuple[float, float, float]
"""See `_STAGES`."""
Searching = Generator[list["Ask"], list[Found], Nested]
"""A search: it asks for descents and runs of Newton's method, and goes on with what they found."""


class Ask(NamedTuple):
    """A descent or a run of Newton's method that a search asks for."""

    angles: Angles
    """Where to start."""
    most: int
    """Maximum number of steps."""
    pull: float | None = None
    """See `descent.advanced`; None: a run of Newton's method."""
    still: float = STILL
    """See `polished`."""
    anchor: Anchor | None = None
    """See `polished`."""
    is_whole: bool = True
    """Whether poles and orientations count too."""
    light: float = 1.0
    """Weight of their squares."""
    known: float = inf
    """See `polished`."""
    is_straight: bool = False
    """Whether points on the axis of a bone, but for rounding, are taken to be on it."""


@dataclass(frozen=True)
class Search:
    """A body and its goals. Places come first; poles and orientations share the freedom that these leave."""

    body: Body
    """B bodies, whose longest chains have length 1."""
    member: int
    """Which of them."""
    lay_out: Callable[[], System]
    """Returns the body and its goals in floats: many chains hardly need them."""
    fk: Angles
    """The FK pose within the limits: of the poses that meet the goals best, the nearest to it is taken."""
    lacks: Sequence[float]
    """How much farther from the root each target is than the chain to it is long."""
    iterations: int
    """Maximum number of steps of a descent."""
    only_places: bool
    """Whether there are no orientations and no poles."""
    ends: dict[int, State] = field(default_factory=dict)
    """Where descents of one body to all its goals have ended, by the identity of the joint angles."""

    def alone(self, searching: Searching) -> tuple[Angles, int]:
        """Run a search of this body; return the joint angles and the steps that it took."""
        try:
            asks = next(searching)
            while True:
                asks = searching.send(list(map(self.found, asks)))
        except StopIteration as end:
            result: tuple[Angles, int] = end.value
            return result

    def found(self, ask: Ask) -> Found:
        """Do what a search asks for."""
        system = self.system_for(ask)
        if ask.pull is None:
            state, steps = polished(system, ask.angles, ask.most, ask.still, ask.anchor, ask.known)
            places = sum(isinstance(objective, Place) for objective in system.objectives)
            return state.angles, sqrt(sum(part * part for part in state.residual[: 3 * places])), steps
        run = descent.begun(State.of(system, ask.angles))
        most = 0 if run.best.error <= EXACT else ask.most
        run, steps = finished(system, run, partial(descent.advanced, pull=ask.pull), most)
        if system is self.system:
            self.ends[id(run.best.angles)] = run.best
        return run.best.angles, run.best.error, steps

    def state(self, angles: Angles) -> State:
        """Return the body in a pose."""
        return self.ends.get(id(angles)) or State.of(self.system, angles)

    def system_for(self, ask: Ask) -> System:
        """Return the body and the goals that count."""
        system = self.system if ask.is_whole else self.system.places
        if ask.light != 1.0 and not system.only_places:
            system = system.lighter(ask.light)
        return system._replace(skeleton=straightened(system.skeleton)) if ask.is_straight else system

    @cached_property
    def system(self) -> System:
        """The body and its goals."""
        return self.lay_out()

    def first(self, near: Angles) -> Searching:
        """Make one descent from a pose, and another one to places alone if it does not arrive."""
        [(angles, error, steps)] = yield [self._ask(near, TOGETHER)]
        if error > ARRIVED and not self.only_places:
            [(angles, error, more)] = yield [self._ask(angles, _BRIEF, is_whole=False)]
            steps += more
        return angles, steps

    def best(self, near: Angles, start: Angles | None = None) -> Searching:
        """Find the joint angles that meet the goals best.

        Args:
            near: where to start: near the FK pose.
            start: where to start before that, within the limits; None: nowhere.
        """
        if self.is_far and start is None:
            straight = yield from self._stretched()
            if straight is not None:
                return straight
        angles, error, steps = yield from self._approached(near if start is None else start)
        if start is not None and error > ARRIVED:
            other, there, more = yield from self._approached(near)
            steps += more
            if there < error - SAME:
                angles, error = other, there
        if error > ARRIVED:
            angles, error, more, is_elsewhere = yield from self._restarted(angles, error)
            steps += more
            if is_elsewhere:
                [(angles, error, more)] = yield [Ask(angles, _POLISH, is_whole=False)]
                steps += more
        if error > ARRIVED:
            objectives = self.system.objectives
            stages = _STAGES[len(objectives) == 1 or isinstance(objectives[-1], Orientation) :]
            angles, more = yield from self._settled(angles, error, stages)
            steps += more
        elif not self.only_places and self.state(angles).error > ARRIVED:
            return (yield from self._met(angles, steps))
        return angles, steps

    def _met(self, angles: Angles, steps: int) -> Searching:
        """Meet poles and orientations as well as a place that is reached allows, from a pose that reaches it."""
        early, more = yield from self._settled(angles, 1.0, _MEETING[:1], _SOON)
        steps += more
        if more == _SOON or self.state(early).error < _NEARLY:
            # From where the place alone leads, which rounding doesn't change: most that can be met are met from there.
            [(found, _, more)] = yield [self._ask(self.fk, TOGETHER, is_whole=False)]
            [(found, error, extra)] = yield [self._ask(found, TOGETHER)]
            steps += more + extra
            if error <= ARRIVED:
                return found, steps
            early, more = yield from self._settled(angles, 1.0, _MEETING[:1])
            steps += more
        found, more = yield from self._settled(early, 1.0, _MEETING[1:])
        # The FK pose keeps poles and orientations that can be met from being met exactly.
        [(there, _, extra)] = yield [Ask(found, _POLISH, light=_MEETING[-1][0])]
        steps += more + extra
        if self.state(there).error <= ARRIVED:
            return there, steps
        [(there, error, more)] = yield [self._ask(found, TOGETHER, is_whole=False)]
        return (there if error <= ARRIVED else angles), steps + more

    @property
    def is_far(self) -> bool:
        """Whether all targets are farther from the root than the chains to them are long."""
        return min(self.lacks) > ARRIVED

    def _stretched(self) -> Searching:
        """Stretch a body towards places that are all too far; None: that does not lead to the best pose.

        That a chain misses by no more than its target is too far proves that no pose is nearer. If a joint is held back
        by its limits, these may prove it as well.
        """
        is_turned = any(isinstance(each, Orientation) for each in self.system.objectives)
        if is_turned or not (self.body.is_serial or self.only_places):
            return None
        passes, angles, steps = Passes(self.system), self.fk, 0
        if self.body.is_serial:
            # All bones turn to the one target.
            angles = passes.outward(angles, passes.targets * (len(angles) + 1))
        else:
            for _ in range(_PASSES):
                angles = passes.outward(angles, passes.inward(angles))
        error = State.of(self.system.places, angles).error
        if self.body.is_serial:
            if error > self.lacks[0] + _CERTAIN:
                [(angles, error, steps)] = yield [Ask(angles, _POLISH, is_whole=False)]
            if error <= self.lacks[0] + _CERTAIN:
                return angles, steps  # joints twist as in FK, and a straight chain shows no side to a pole
            if not self._is_best(angles, error):
                return None
        angles, more = yield from self._settled(angles, error, _STAGES[-1:])
        return angles, steps + more

    def straight(self) -> Angles | None:
        """Return the pose of a chain that is too short for its place and orientation at once, and stretches to both.

        The orientation is missed by as little as the place allows, and joints share the twist by how readily they turn.
        None: the chain is long enough, has a pole as well, or limits keep it from stretching.
        """
        if not self.body.is_serial or [type(each) for each in self.system.objectives] != [Place, Orientation]:
            return None
        skeleton, (place, turned) = self.system.skeleton, self.system.objectives
        assert isinstance(place, Place)
        assert isinstance(turned, Orientation)
        tip, lengths = skeleton.ends[0], [norm(bone.head) for bone in skeleton.bones[1:]]
        reach = max(2.0 * max(lengths, default=0.0) - sum(lengths), 0.0), sum(lengths)
        rotation = turned.rotation
        frame = tilted((rotation[::3], rotation[1::3], rotation[2::3]), tip, place.target, reach)
        head = minus(place.target, applied(frame, tip))
        if norm(head) < reach[1] - EXACT:
            return None
        system = System.of(skeleton, [place, turned._replace(rotation=tuple(chain(*zip(*frame, strict=True))))])
        passes, wanted = Passes(system), [head] * (len(self.fk) + 1)
        # The joints share the part of the tip's turn from FK that is about the line that all bones are on.
        turn = multiply(turn_of(ONE, passes.outward(self.fk, wanted)[-1]), inverse(turn_of(ONE, self.fk[-1])))
        mobility = [joint.mobility[2] for joint in skeleton.joints]
        twist = vector_of(ONE, turn)[1] / max(sum(mobility), 1e-9)
        angles = [(x, z, own + twist * each) for (x, z, own), each in zip(self.fk, mobility, strict=True)]
        angles = passes.outward(angles, wanted)
        missed, off = system.split(State.of(system, angles).residual)
        is_there = hypot(*missed) <= max(self.lacks[0], 0.0) + EXACT and hypot(*off) <= EXACT
        return angles if is_there else None

    def _approached(self, start: Angles) -> Searching:
        """Go to places, orientations and poles together, then to places alone, keeping what it can of the others.

        If a chain does not arrive, Newton's method goes on from there.
        """
        most = AWAY if self.is_far else STEPS if self.only_places else TOGETHER
        [(angles, error, steps)] = yield [self._ask(start, most)]
        if error > EXACT and not self.only_places:
            [(angles, error, more)] = yield [self._ask(angles, self.iterations, is_whole=False)]
            steps += more
        if error > ARRIVED and self.body.is_serial:
            [(angles, error, more)] = yield [Ask(angles, _POLISH, is_whole=False)]
            steps += more
        return angles, error, steps

    def _restarted(self, angles: Angles, error: float) -> Searching:
        """Look for a better pose; return it, its residual, the steps taken, and whether it is another one."""
        if not self.body.is_serial:
            return (yield from self._branched(angles, error))
        if self._is_best(angles, error):
            return angles, error, 0, False
        place, steps = self.system.objectives[0], 0
        assert isinstance(place, Place)
        starts, tried = nearest(self.body, self.member, place.target), [(angles, error, 0)]
        for first, last, kept, most in _ROUNDS:
            found = yield [self._ask(start, _BRIEF, _PULL, is_whole=False) for start in starts[first:last]]
            found, more = yield from self._polished(found, kept, most, _STILL, error)
            tried, steps = tried + found, steps + more
            least = min(there for _, there, _ in tried)
            alike = [there <= least + SAME for _, there, _ in tried]
            if least <= ARRIVED or (least > SAME and (first or (alike[0] and sum(alike) >= kept))):
                break
        return self._taken(tried, steps)

    def _branched(self, angles: Angles, error: float) -> Searching:
        """Do the same for a body that is not a serial chain."""
        steps, found = 0, []
        if not self.is_far:
            for number, count in _EARLY:
                found += yield from self._from_table(number, count)
                early, there, steps, _ = self._taken(found, steps + max(used for _, _, used in found[-count:]))
                if there <= ARRIVED:
                    return early, there, steps, True
        [(angles, error, more)] = yield [Ask(angles, _POLISH, is_whole=False)]
        steps += more
        if self.is_far or error <= ARRIVED or self._is_best(angles, error):
            return angles, error, steps, False
        tried = [(angles, error, 0)]
        for is_late in (False, True):
            if is_late:
                found = yield from self._from_table(*_LATE)
            found, more = yield from self._polished(found, _KEPT, _FEWER, _CLEAR)
            tried, steps = tried + found, steps + more
            least = min(there for _, there, _ in tried)
            if least <= ARRIVED or sum(there <= least + SAME for _, there, _ in tried) >= _ENOUGH:
                break
        return self._taken(tried, steps)

    def _polished(self, found: list[Found], kept: int, most: int, still: float, known: float = inf) -> Searching:
        """Polish the best poses by Newton's method; return them, and the steps taken."""
        best = [found[i] for i in sorted(sorted(range(len(found)), key=lambda i: found[i][1])[:kept])]
        asks = [Ask(pose, most, still=still, is_whole=False, known=known) for pose, error, _ in best if error > ARRIVED]
        more = iter((yield asks))
        best = [(*(new := next(more))[:2], own[2] + new[2]) if own[1] > ARRIVED else own for own in best]
        return best, max(used for _, _, used in best)

    def _taken(self, tried: list[Found], steps: int) -> tuple[Angles, float, int, bool]:
        taken = nearest_to_fk([angles for angles, _, _ in tried], [error for _, error, _ in tried], self.fk)
        return tried[taken][0], tried[taken][1], steps, taken > 0

    def _is_best(self, angles: Angles, error: float) -> bool:
        """Whether the limits alone prove that no pose of a chain comes nearer to its target."""
        place = self.system.objectives[0]
        assert isinstance(place, Place)
        missed = minus(place.target, pose_of(self.system.skeleton, angles).ends[0])
        # A pose that arrives is better than one that nearly does.
        least = norm(missed) - (SAME if error > SAME else ARRIVED)
        return any(bound >= least for bound in bounds(self.body, self.member, place.target, unit(missed), least))

    def _from_table(self, number: int, count: int) -> Searching:
        """Return where brief descents to places from poses of the table end."""
        poses = table(self.body, number, count)
        return (yield [self._ask(angles, _LONGER, _PULL, is_whole=False) for angles in poses])

    def _settled(self, angles: Angles, size: float, stages: Sequence[Stage], most: int = _SETTLE) -> Searching:
        """Decide what places leave open, by poles and orientations, then by the FK pose; weights are times `size`."""
        steps = 0
        for share, last, still in stages:
            light = share * size
            anchor = Anchor(self.fk, light if self.only_places else last * light)
            ask = Ask(angles, most, still=still, anchor=anchor, light=light, is_straight=True)
            [(angles, _, more)] = yield [ask]
            steps += more
        return angles, steps

    def _ask(self, start: Angles, most: int, pull: float = PULL, *, is_whole: bool = True) -> Ask:
        """Return what asks for a descent."""
        return Ask(start, min(most, self.iterations), pull, is_whole=is_whole)


def straightened(skeleton: Skeleton) -> Skeleton:
    """Return a skeleton with points that are on the axis of a bone, but for rounding, exactly on it.

    Then the twist of such a bone has no effect at all, instead of a tiny one.
    """
    do, points = skeleton.do, []
    for x, y, z in (*(bone.head for bone in skeleton.bones), *skeleton.ends):
        near = do.most(abs(x), abs(z)) < HAIR * abs(y)
        points.append((do.where(near, 0.0, x), y, do.where(near, 0.0, z)))
    bones = [bone._replace(head=head) for bone, head in zip(skeleton.bones, points, strict=False)]
    return skeleton._replace(bones=bones, ends=points[len(bones) :])


def nearest_to_fk(tried: Sequence[Angles], errors: Sequence[float], fk: Angles) -> int:
    """Return which of the poses to take: of the best ones, the nearest to FK.

    The first pose, which changes smoothly with the target, is preferred to all others: where many poses are best, which
    of them a restart ends in depends on details.

    Args:
        tried: joint angles.
        errors: residuals of the poses, in chain lengths.
        fk: joint angles of the FK pose.
    """
    least = min(errors)
    enough = ARRIVED if least <= ARRIVED else least + SAME
    if errors[0] <= enough:
        return 0
    ways = (map(away_from, angles, fk) for angles in tried)
    sizes = [sum(dot(each, each) for each in way) for way in ways]
    away = [size if error <= enough else inf for size, error in zip(sizes, errors, strict=True)]
    # Mirror images are equally near; rounding must not choose between them.
    nearest = min(away) * (1.0 + _TIE)
    return next(i for i, size in enumerate(away) if size <= nearest)


WAYS = 4
"""Number of directions from which the farthest place of a joint is approached."""


def bounds(body: Body, member: int, target: Vector, towards: Vector, least: float) -> Iterator[float]:
    """Yield lower bounds of the distances of a body's ends from its target; none for trees.

    The second bound is for a chain with a rigid link to its root, which begins at the target. The others are for parts
    of the chain that cannot curl up as tightly as the joint above them is near to the target: the difference remains,
    however far the joints above move that joint away.

    Args:
        body: bodies.
        member: which of them.
        target: relative to the root, as all places.
        towards: a direction in which it may be hard to reach the target; the first bound is for it.
        least: bounds that are smaller may be left out.
    """
    if len(body.segments) != 1:
        return
    if ("room", member) not in body.kept:
        body.kept["room", member] = _room(body.skeleton(member))
    first, lengths, swings, off = body.kept["room", member]
    limits, whole = [], 0.0
    for swing, own in zip(swings, off, strict=True):
        whole += swing
        limits.append(whole + own)
    apart = _angle(first, towards)
    reach = sum(length * cos(max(apart - limit, 0.0)) for length, limit in zip(lengths, limits, strict=True))
    yield dot(target, towards) - reach
    away = norm(target)
    behind = pi - _angle(first, over(target, max(away, 1e-200)))
    turns = [swing + one + other for swing, one, other in zip(swings, off, [0.0, *off], strict=False)]
    yield _chord([away, *lengths], [behind + turns[0], *turns[1:]])
    for i in range(len(lengths) - 1):
        curled = _chord(lengths[i:], turns[i + 1 :])
        if curled >= least:
            yield curled - _farthest(lengths[:i], limits, away, pi - behind, curled - least)


def _angle(one: Vector, other: Vector) -> float:
    return acos(min(max(dot(one, other), -1.0), 1.0))


def _chord(lengths: list[float], turns: list[float]) -> float:
    """Return the distance between the ends of a polygon that turns to one side; 0 if with its chord it is not convex.

    Args:
        lengths: of its edges.
        turns: between them.
    """
    if max(turns) > pi:
        return 0.0
    x, y, angle = lengths[0], 0.0, 0.0
    for length, turn in zip(lengths[1:], turns, strict=True):
        angle += turn
        x, y = x + length * cos(angle), y + length * sin(angle)
    chord = atan2(y, x)
    return sqrt(x * x + y * y) if 0.0 <= chord <= angle <= chord + pi else 0.0


def _farthest(lengths: list[float], limits: list[float], away: float, apart: float, most: float) -> float:
    """Return how far from its target the first bones of a chain can bring the joint below them.

    Args:
        lengths: of these bones.
        limits: radians by which they can turn from the first bone at rest.
        away: how far the target is from the root.
        apart: radians between the target and the first bone at rest.
        most: once the joint is known to get farther than this, how far it gets does not matter.
    """
    # All lies in a plane: the bones turn away from the target.
    x, y, best = -away * cos(apart), away * sin(apart), away if not lengths else 0.0
    for start in range(WAYS if lengths else 0):
        angle, last = pi * start / WAYS, -1.0
        while best > last + 1e-9 or last < 0.0:
            last, u, v = best, x, y
            for length, limit in zip(lengths, limits, strict=False):
                turn = min(angle, limit)
                u, v = u + length * cos(turn), v + length * sin(turn)
            angle, best = atan2(v, u), max(best, sqrt(u * u + v * v))
            if best > most:
                return best
    return best


def _room(skeleton: Skeleton) -> tuple[Vector, list[float], list[float], list[float]]:
    """Return how far the limits let each bone of a chain turn away from the bone before.

    Returns:
        first: direction of the first bone at rest.
        lengths: of the bones.
        swings: radians by which each may turn away from the one before, the first one from rest.
        off: radians between a bone's axis and the line to the next one.
    """
    path = path_of(skeleton.parents, skeleton.segments[0])
    segments = [*(skeleton.bones[bone].head for bone in path[1:]), skeleton.ends[0]]
    lengths = list(map(norm, segments))
    swings: list[float] = []
    for bone in path:
        joint, apart = skeleton.joints[bone], 0.0
        if swings:
            # Add the angle between the bones at rest.
            apart = inf if skeleton.free[bone] else acos(min(max(skeleton.bones[bone].rest[4], -1.0), 1.0))
        swings.append(apart + 2.0 * asin(min(max(*joint.low, *joint.high), 1.0)))
    off = [_angle((0.0, 1.0, 0.0), over(way, max(size, 1e-200))) for way, size in zip(segments, lengths, strict=True)]
    x, y, z = skeleton.bones[path[0]].rest[1::3]
    return (x, y, z), lengths, swings, off


@dataclass(frozen=True)
class Alone:
    """One member of a problem in FK, laid out for its goals."""

    standing: Standing
    member: int
    """Which of the members of `standing`."""
    origin: Vector
    """Place of the root."""
    scale: float
    """Length of the longest chain."""
    lengths: list[float]
    """Of the chains to its effectors."""
    steps: list[float]
    """Lengths of the segments of the first chain."""
    places: list[Place]
    """Its objectives, with targets at its root."""

    @classmethod
    def of(cls, problem: Problem, index: Ints) -> list[Self]:
        """Lay out the valid members `index` (k,)."""
        standing, most, found = Standing.of(problem, index), max(goal.weight for goal in problem.goals), []
        factors = [sqrt(goal.weight / most) for goal in problem.goals]
        arrays = standing.origin, standing.scale, standing.lengths, standing.steps.T
        rows = zip(*(array.tolist() for array in arrays), strict=True)
        for member, (origin, scale, lengths, steps) in enumerate(rows):
            skeleton = standing.body.skeleton(member)
            places = [Place.of(skeleton, e, ZERO, factor) for e, factor in enumerate(factors)]
            found.append(cls(standing, member, tuple(origin), scale, lengths, steps, places))
        return found

    @cached_property
    def _branches(self) -> list[tuple[int, list[float]]]:
        """Where the part of each chain begins that no other chain shares, on which its pole acts, and its `masses`."""
        found, bones = [], len(self.standing.body.parents)
        for e, place in enumerate(self.places):
            shared = {bone for other in self.places if other is not place for bone in other.path}
            branch = [bone for bone in place.path if bone not in shared] or list(place.path[-1:])
            points = self.standing.points[self.member, [*branch, bones + e]]
            found.append((place.path.index(branch[0]), masses_of(points.T[..., None])[:, 0].tolist()))
        return found

    def solved(
        self, problem: Problem, aims: Sequence[Aim], *, is_first_attempt: bool, turns: Floats | None = None
    ) -> Solved:
        """Return the solution for finite goals, with the settings of a problem; `turns` see `solve_alone`."""
        targets, own, beyond, (aim, *others) = [self._seen(aim.target) for aim in aims], self, 0.0, aims
        wanted, stretch = targets, [1.0] * len(self.standing.limited)
        if not others:
            weights = problem.stretch_weights
            if weights is not None and len(weights) > len(self.steps):
                problem = replace(problem, stretch_weights=np.asarray(weights)[self.standing.path[:-1]])
            reach = reachable(ONE, self.steps, norm(targets[0]), aim, problem)
            beyond = reach.shortfall
            if aim.softness > 0.0:
                # Limits may keep a chain from pointing at a target that is too far: then it goes as near as it can.
                # How far the root is pushed is known only once the limits have taken effect.
                wanted = [times(unit(targets[0]), reach.distance)]
            if set(reach.stretch) != {1.0}:
                for bone, factor in zip(self.places[0].path, reach.stretch, strict=True):
                    stretch[bone] = factor
                standing = self.standing.lengthened(self.member, stretch)
                scale = float(standing.scale[0])
                own = replace(self, standing=standing, member=0, scale=scale, lengths=[scale])
                targets, wanted = ([times(each, self.scale / own.scale) for each in some] for some in (targets, wanted))
        state, steps = own._searched(problem, aims, wanted, is_first_attempt, turns)
        missed, push = list(map(minus, targets, state.pose.ends)), ZERO
        if problem.out_of_reach is OutOfReach.PUSH_ROOT and not others:
            push = times(missed[0], min(1.0, aim.push_limit / max(norm(missed[0]), 1e-200)))
            missed = [minus(missed[0], push)]
        errors = [norm(each) * own.scale for each in missed]
        reached = all(error <= aim.tolerance * length for error, length in zip(errors, self.lengths, strict=True))
        status = status_of(ONE, reached, beyond, aim.tolerance)
        pose, joints = state.pose, self.standing.body.skeleton(self.member).joints
        parts = zip(self.standing.limited.tolist(), state.angles, joints, strict=True)
        held = [limited and at_limit(ONE, angles, *joint[:4]) for limited, angles, joint in parts]
        frames = [(nine[::3], nine[1::3], nine[2::3]) for nine in pose.frames]
        points = [plus(times(plus(point, push), own.scale), self.origin) for point in (*pose.points, *pose.ends)]
        return Solved(frames, points, stretch, errors if others else errors[0], status, steps, held)

    def _seen(self, point: Vector) -> Vector:
        return over(minus(point, self.origin), self.scale)

    def _searched(
        self, problem: Problem, aims: Sequence[Aim], wanted: list[Vector], is_first_attempt: bool, turns: Floats | None
    ) -> tuple[State, int]:
        """Return where a search for the wanted places ends, and the steps taken."""
        standing, member = self.standing, self.member
        skeleton = standing.body.skeleton(member)
        places = [place._replace(target=target) for place, target in zip(self.places, wanted, strict=True)]
        turned, poles = [], []
        ways = [minus(place.target, skeleton.bones[place.path[0]].head) for place in places]
        for e, (place, aim) in enumerate(zip(places, aims, strict=True)):
            if aim.rotation is not None:
                rotation = tuple(part for row in zip(*aim.rotation, strict=True) for part in row)
                turned.append(Orientation.of(skeleton, e, rotation, TURN))
            if aim.pole is not None:
                (first, masses), half = self._branches[e], aim.pole_angle / 2.0
                seen, about = self._seen(aim.pole), (cos(half), sin(half))
                poles.append(Pole(e, place.path, first, place.target, seen, about, masses, SIDE))
        system = System.of(skeleton, [*places, *turned, *poles])
        pole = minus(poles[0].pole, skeleton.bones[places[0].path[0]].head) if poles else None
        guess = guess_of(standing, member, turns)
        lacks = [norm(way) - length / self.scale for way, length in zip(ways, self.lengths, strict=True)]
        most, only_places = problem.iterations, system.only_places
        search = Search(standing.body, member, lambda: system, guess.fk, lacks, most, only_places=only_places)
        start, passes = None, 0
        if problem.solver is Solver.FABRIK:
            start, passes = led_by_tips(system, guess, pole, aims[0].tolerance, problem.iterations)
        straight = None if start else search.straight()
        if straight is not None:
            return State.of(system, straight), 0
        near = guess.bent(ways[0], pole)
        angles, steps = search.alone(search.first(start or near) if is_first_attempt else search.best(near, start))
        return search.state(angles), steps + passes


def solve_alone(
    problem: Problem, known: dict[Hashable, Alone], solution: Solution, index: Ints, turns: Floats | None = None
) -> None:
    """Solve the valid members `index` (k,) one by one, and write them into the solution.

    Those that were solved before are `known`, by index and by the bones and weights of their goals. With `turns`
    (B, n, 3, 3), rotations of the bones from FK, the pose that they make stands in for the FK pose.
    """
    goals = tuple((goal.segment, goal.weight) for goal in problem.goals)
    new = [i for i in index.tolist() if (i, goals) not in known]
    if new:
        known.update(zip([(i, goals) for i in new], Alone.of(problem, np.array(new)), strict=True))
    alike = [problem, *(replace(problem, goal=goal) for goal in problem.others)]
    aims = zip(*(Aim.each(each, index) for each in alike), strict=True)
    is_first, solved = problem.is_first_attempt, {}
    for i, own in zip(index.tolist(), aims, strict=True):
        start = None if turns is None else turns[i]
        solved[i] = known[i, goals].solved(problem, own, is_first_attempt=is_first, turns=start)
    solution.write(problem, solved)
