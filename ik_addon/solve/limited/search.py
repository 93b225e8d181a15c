"""Where descents start, and which of the poses that they find is taken: for one body.

Every attempt is a descent. The first one starts near the FK pose, so that neighboring targets lead to neighboring
poses; if it does not arrive, Newton's method goes on from where it ends. Mostly no pose is better than the one found
then. If the limits alone do not prove that, a few descents from a fixed table of poses show it, and only if these
disagree are many needed. Trees are the other way round: their joints get in each other's way, so that Newton's
method takes long, while a few descents from the table mostly arrive. Of all poses that arrive, the one nearest to
FK is taken. With restarts, Newton's method with joint limits misses no targets, instead of a quarter of them
(P. Beeson and B. Ames, "TRAC-IK", Humanoids 2015, doi 10.1109/HUMANOIDS.2015.7363472); here they need no random
generator.

A target farther away than the chain is long asks for no search, if the chain can stretch towards it, see `fabrik`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

from ..maths.numbers import Numbers, Vector
from .bounds import is_nearest
from .descent import EXACT, PULL, State, descended
from .fabrik import Passes
from .newton import SAME, STILL, Anchor, polished
from .objectives import Orientation, Place, System
from .restarts import ARRIVED, nearest, nearest_to_fk, table
from .skeleton import Angles, Body, Skeleton, pose_of

STEPS = 30
"""Maximum steps of the first descent. If it has not arrived by then, Newton's method goes on from there."""
TOGETHER = 20
"""The same if there are poles or orientations too."""
AWAY = 8
"""The same if targets are farther away than chains are long: stretching towards them takes no more."""
_POLISH = 40
"""Maximum Newton steps to come as near as possible."""
_BRIEF, _LONGER, _PULL = 3, 8, 1.0
"""Maximum steps of other descents, of chains and of trees, and their pull, see `descended`: they need not stay near any
pose."""
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
_STAGES = (1e-2, 1e-3), (1e-3, 1e-4), (1e-4, 1e-9)
"""Weights of poles, orientations and being a radian away from the FK pose, as fractions of the error: so small that
they only decide where a target out of reach leaves joints a choice, like the twist of a straight branch. And the
length, in radians, of Newton's last step. A chain that only stretches needs only the last stage: 3 to 12 steps, instead
of 9 to 25 in three stages. One that is held back by limits needs 20 in three, 45 in one. Orientations need two, without
which a free chain settles only to 5e-4 radians."""
_LAST = 3e-3
"""Weight of being a radian away from the FK pose, relative to poles and orientations."""
_SETTLE = 200
"""Maximum Newton steps for each of these stages."""
_LIGHT = 0.1
"""Weight of squared poles and orientations, relative to squared distances, if a target can be reached."""
_CERTAIN = 1e-9
"""How much farther than a straight chain's a pose may end that is proven to be the nearest, in chain lengths."""

HAIR = 1e-5
"""Offsets from a bone's axis below this fraction of its length are rounding of single precision."""

Found = tuple[Angles, float, int]
"""Joint angles, the residual, and the number of steps taken: of places alone after Newton's method."""
Searching = Generator[list["Ask"], list[Found], Any]
"""A search: it asks for descents and runs of Newton's method, and goes on with what they found."""


class Ask(NamedTuple):
    """A descent or a run of Newton's method that a search asks for."""

    angles: Angles
    """Where to start."""
    most: int
    """Maximum number of steps."""
    pull: float | None = None
    """See `descended`; None: a run of Newton's method."""
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
        if ask.pull is not None:
            state, steps = descended(system, ask.angles, ask.most, ask.pull)
            return state.angles, state.error, steps
        state, steps = polished(system, ask.angles, ask.most, ask.still, ask.anchor, ask.known)
        return state.angles, system.distance(state.residual), steps

    def system_for(self, ask: Ask) -> System:
        """Return the body and the goals that count."""
        system = self.system if ask.is_whole else self.places
        if ask.light != 1.0 and not self.only_places:
            system = system.lighter(ask.light)
        return system._replace(skeleton=straightened(system.skeleton)) if ask.is_straight else system

    @cached_property
    def system(self) -> System:
        """The body and its goals."""
        return self.lay_out()

    @cached_property
    def places(self) -> System:
        """The same without orientations and poles."""
        return self.system.places

    def first(self, near: Angles) -> Searching:
        """Make one descent from a pose, and another one to places alone if it does not arrive."""
        angles, error, steps = yield from self._descent(near, TOGETHER)
        if error > ARRIVED and not self.only_places:
            angles, error, more = yield from self._descent(angles, _BRIEF, is_whole=False)
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
        if error <= ARRIVED:
            return angles, steps
        angles, error, more, is_elsewhere = yield from self._restarted(angles, error)
        steps += more
        if is_elsewhere:
            angles, error, more = yield from _one(Ask(angles, _POLISH, is_whole=False))
            steps += more
            if error <= ARRIVED and not self.only_places:
                # This pose was found for places alone.
                found, there, more = yield from self._attempt(angles)
                steps += more
                angles = found if there <= ARRIVED else angles
        if error > ARRIVED:
            angles, more = yield from self._settled(angles, error, self._stages)
            steps += more
        return angles, steps

    @property
    def is_far(self) -> bool:
        """Whether all targets are farther from the root than the chains to them are long."""
        return min(self.lacks) > ARRIVED

    def _stretched(self) -> Searching:
        """Stretch a body towards targets that are all too far; None: that does not lead to the best pose.

        That a chain misses by no more than its target is too far proves that no pose is nearer. If a joint is held back
        by its limits, these may prove it as well.
        """
        passes = Passes(self.system)
        if not self.body.is_serial:
            if not self.only_places:
                return None
            angles = passes.towards_targets(self.fk, _PASSES)
            return (yield from self._settled(angles, self._missed(angles), _STAGES[-1:]))
        angles = passes.stretched(self.fk)
        error, steps = self._missed(angles), 0
        is_turned = any(isinstance(each, Orientation) for each in self.system.objectives)
        if error > self.lacks[0] + _CERTAIN:
            if is_turned:
                # An orientation may be half a turn away, from where rounding would say which way to turn.
                return None
            angles, error, steps = yield from _one(Ask(angles, _POLISH, is_whole=False))
            if not self._is_best(angles, error):
                return None
        angles, more = yield from self._settled(angles, error, _STAGES[-2 if is_turned else -1 :])
        return angles, steps + more

    def _missed(self, angles: Angles) -> float:
        error: float = State.of(self.places, angles).error
        return error

    def _approached(self, start: Angles) -> Searching:
        """Make an attempt; if that of a chain does not arrive, polish it by Newton's method."""
        angles, error, steps = yield from self._attempt(start)
        if error > ARRIVED and self.body.is_serial:
            angles, error, more = yield from _one(Ask(angles, _POLISH, is_whole=False))
            steps += more
        return angles, error, steps

    def _attempt(self, start: Angles) -> Searching:
        """Go to places, orientations and poles together, then to places alone, keeping what it can of the others."""
        most = AWAY if self.is_far else STEPS if self.only_places else TOGETHER
        angles, error, steps = yield from self._descent(start, most)
        if self.only_places or error <= EXACT:
            return angles, error, steps
        is_off = error > ARRIVED
        if is_off:
            angles, _, more = yield from _one(Ask(angles, _POLISH, still=_STILL))
            steps += more
        angles, error, more = yield from self._descent(angles, self.iterations, is_whole=False)
        steps += more
        if is_off and error <= ARRIVED:
            found, _, more = yield from _one(Ask(angles, _POLISH, light=_LIGHT))
            found, there, extra = yield from self._descent(found, self.iterations, is_whole=False)
            steps += more + extra
            if there <= ARRIVED:
                angles, error = found, there
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
        angles, error, more = yield from _one(Ask(angles, _POLISH, is_whole=False))
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
        best = [_further(each, next(more)) if each[1] > ARRIVED else each for each in best]
        return best, max(used for _, _, used in best)

    def _taken(self, tried: list[Found], steps: int) -> tuple[Angles, float, int, bool]:
        taken = nearest_to_fk([angles for angles, _, _ in tried], [error for _, error, _ in tried], self.fk)
        return tried[taken][0], tried[taken][1], steps, taken > 0

    def _is_best(self, angles: Angles, error: float) -> bool:
        """Whether the limits alone prove that no pose of a chain comes nearer to its target."""
        place = self.system.objectives[0]
        assert isinstance(place, Place)
        end = pose_of(self.system.skeleton, angles).ends[0]
        # A pose that arrives is better than one that nearly does.
        return is_nearest(self.body, self.member, place.target, end, SAME if error > SAME else ARRIVED)

    def _from_table(self, number: int, count: int) -> Searching:
        """Return where brief descents to places from poses of the table end."""
        poses = table(self.body, number, count)
        return (yield [self._ask(angles, _LONGER, _PULL, is_whole=False) for angles in poses])

    @property
    def _stages(self) -> Sequence[tuple[float, float]]:
        return _STAGES[1:] if isinstance(self.system.objectives[-1], Orientation) else _STAGES

    def _settled(self, angles: Angles, error: float, stages: Sequence[tuple[float, float]]) -> Searching:
        """Decide what places out of reach leave open, by poles and orientations, then by the FK pose."""
        steps, last = 0, 1.0 if self.only_places else _LAST

        for count, end in stages:
            share = count * error
            anchor = Anchor(self.fk, last * share)
            angles, _, more = yield from _one(
                Ask(angles, _SETTLE, still=end, anchor=anchor, light=share, is_straight=True)
            )
            steps += more
        return angles, steps

    def _descent(self, start: Angles, most: int, *, is_whole: bool = True) -> Searching:
        return (yield from _one(self._ask(start, most, is_whole=is_whole)))

    def _ask(self, start: Angles, most: int, pull: float = PULL, *, is_whole: bool = True) -> Ask:
        return Ask(start, min(most, self.iterations), pull, is_whole=is_whole)


def _one(ask: Ask) -> Searching:
    (found,) = yield [ask]
    return found


def _further(before: Found, after: Found) -> Found:
    return after[0], after[1], before[2] + after[2]


def straightened(skeleton: Skeleton) -> Skeleton:
    """Return a skeleton with points that are on the axis of a bone, but for rounding, exactly on it.

    Then the twist of such a bone has no effect at all, instead of a tiny one.
    """
    do = skeleton.do
    bones = [bone._replace(head=_on_axis(do, bone.head)) for bone in skeleton.bones]
    return skeleton._replace(bones=bones, ends=[_on_axis(do, end) for end in skeleton.ends])


def _on_axis(do: Numbers, point: Vector) -> Vector:
    x, y, z = point
    near = do.most(abs(x), abs(z)) < HAIR * abs(y)
    return do.where(near, 0.0, x), y, do.where(near, 0.0, z)
