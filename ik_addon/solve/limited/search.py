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
from typing import Any, NamedTuple

from ..maths.numbers import Numbers
from ..maths.vectors import Vector
from .body import Body
from .descent import EXACT, PULL, State, descended
from .fabrik import Passes
from .goals import System
from .newton import SAME, STILL, polished
from .newton_step import Anchor
from .objectives import Orientation, Place, Pole
from .restarts import ARRIVED, may_be_missed, nearest_to_fk, table
from .skeleton import Angles, Skeleton, pose_of

STEPS = 30
"""Maximum steps of the first descent. If it has not arrived by then, Newton's method goes on from there."""
TOGETHER = 20
"""The same if there are poles or orientations too."""
AWAY = 8
"""The same if targets are farther away than chains are long: stretching towards them takes no more."""
_POLISH = 40
"""Maximum Newton steps to come as near as possible."""
_BRIEF, _PULL = 8, 1.0
"""Maximum steps of the other descents, and their pull (see `descended`): they need not stay near any pose."""
_STILL = 1e-3
"""Radians: once Newton's steps are this short, it is clear how near such a descent can come."""
_ROUNDS = (0, 4, 4, 20), (4, 28, 8, 20), (4, 28, 28, _POLISH)
"""First pose of the table to start from, number of poses, how many of them are polished, and maximum Newton steps. The
last round is for targets missed by very little: straight chains hide solutions next to where they get stuck."""
_BRANCHED = (0, 8, 6, 12), (8, 24, 6, 12)
"""The same for bodies that are not serial chains: their joints get in each other's way, so restarts find more."""
_CLEAR = 1e-2
"""The same as `_STILL`, for bodies that are not serial chains."""
_ENOUGH = 3
"""Trees: once this many poses are among the best, none will be better."""
_PASSES = 3
"""Trees out of reach: FABRIK passes that stretch them."""
_STAGES = (1e-2, 1e-3), (1e-3, 1e-4), (1e-4, 1e-9)
"""Weights of poles, orientations and being a radian away from the FK pose, as fractions of the error: so small that
they only decide where a target out of reach leaves joints a choice, like the twist of a straight branch. And the
length, in radians, of Newton's last step. Places need only the last stage: 3 to 12 steps, instead of 9 to 25 in three
stages. Orientations need two, without which a free chain settles only to 5e-4 radians, and poles all three."""
_LAST = 3e-3
"""Weight of being a radian away from the FK pose, relative to poles and orientations."""
_SETTLE = 200
"""Maximum Newton steps for each of these stages."""
_LIGHT = 0.1
"""Weight of squared poles and orientations, relative to squared distances, if a target can be reached."""
_CERTAIN = 1e-9
"""How much farther than a straight chain's a pose may end that is proven to be the nearest, in chain lengths."""

_EARLY = (0, 1), (1, 1), (2, 2), (4, 4)
"""First pose and number of poses: before Newton's method, trees do their first round in these parts."""
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
    away: Sequence[float]
    """How far each target is from the root."""
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
        state, steps = polished(system, ask.angles, ask.most, ask.still, ask.anchor)
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
            angles, more = yield from self._settled(angles, error, _STAGES[self._first_stage :])
            steps += more
        return angles, steps

    @cached_property
    def is_far(self) -> bool:
        """Whether all targets are farther from the root than the chains to them are long."""
        reaches = self.body.reaches[:, self.member].tolist()
        return all(distance > length + ARRIVED for distance, length in zip(self.away, reaches, strict=True))

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
        if error > self.away[0] - float(self.body.reaches[0, self.member]) + _CERTAIN:
            if is_turned:
                # An orientation may be half a turn away, from where rounding would say which way to turn.
                return None
            angles, error, steps = yield from _one(Ask(angles, _POLISH, is_whole=False))
            if not self._is_best(angles, error):
                return None
        angles, more = yield from self._settled(angles, error, _STAGES[1 if is_turned else 2 :])
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
        steps = 0
        early: list[Found] = []
        is_serial = self.body.is_serial
        if not is_serial:
            if not self.is_far:
                angles, error, steps, early = yield from self._early(angles, error)
                if error <= ARRIVED:
                    return angles, error, steps, True
            angles, error, more = yield from _one(Ask(angles, _POLISH, is_whole=False))
            steps += more
            if self.is_far or error <= ARRIVED:
                return angles, error, steps, False
        if self._is_best(angles, error):
            return angles, error, steps, False
        tried, errors, taken = [angles], [error], 0
        still = _STILL if is_serial else _CLEAR
        for k, (number, count, kept, most) in enumerate(_ROUNDS if is_serial else _BRANCHED):
            found = early if early and k == 0 else (yield from self._from_table(number, count))
            best = [found[i] for i in sorted(sorted(range(count), key=lambda i: found[i][1])[:kept])]
            asks = [Ask(pose, most, still=still, is_whole=False) for pose, there, _ in best if there > ARRIVED]
            more = iter((yield asks))
            best = [_further(each, next(more)) if each[1] > ARRIVED else each for each in best]
            tried, errors = [*tried, *(pose for pose, _, _ in best)], [*errors, *(there for _, there, _ in best)]
            steps += max(used for _, _, used in best)
            taken = nearest_to_fk(tried, errors, self.fk)
            least = min(errors)
            alike = [other <= least + SAME for other in errors]
            if is_serial:
                agree = alike[0] and sum(alike) >= kept
                is_open = least > ARRIVED and (least < SAME or (not agree and k == 0))
            else:
                is_open = least > ARRIVED and sum(alike) < _ENOUGH
            if not is_open:
                break
        return tried[taken], errors[taken], steps, taken > 0

    def _is_best(self, angles: Angles, error: float) -> bool:
        """Whether the limits alone prove that no pose of a chain comes nearer to its target."""
        place = self.system.objectives[0]
        assert isinstance(place, Place)
        end = pose_of(self.system.skeleton, angles).ends[0]
        # A pose that arrives is better than one that nearly does.
        return may_be_missed(self.body, self.member, place.target, end) <= (SAME if error > SAME else ARRIVED)

    def _early(self, angles: Angles, error: float) -> Searching:
        """Descend from a few poses of the table until one arrives; return it, or all descents from them."""
        steps = 0
        found: list[Found] = []
        for number, count in _EARLY:
            new = yield from self._from_table(number, count)
            found += new
            steps += max(used for _, _, used in new)
            taken = nearest_to_fk([each[0] for each in found], [each[1] for each in found], self.fk)
            if found[taken][1] <= ARRIVED:
                return found[taken][0], found[taken][1], steps, []
        return angles, error, steps, found

    def _from_table(self, number: int, count: int) -> Searching:
        """Return where brief descents to places from poses of the table end."""
        poses = table(self.body, number, count)
        return (yield [self._ask(angles, _BRIEF, _PULL, is_whole=False) for angles in poses])

    @property
    def _first_stage(self) -> int:
        if self.only_places:
            return 2
        return 0 if isinstance(self.system.objectives[-1], Pole) else 1

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
