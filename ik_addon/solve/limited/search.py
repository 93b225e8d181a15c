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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from ..maths.vectors import Vector, minus, norm
from .body import Body
from .descent import EXACT, State, descended
from .fabrik import Passes
from .goals import System
from .newton import SAME, STILL, polished
from .newton_step import Anchor
from .objectives import Orientation, Place
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
length, in radians, of Newton's last step. Only the last stage counts; the others lead the way where it is long."""
_AT_ONCE = 10
"""Steps of the last stage after which the way is long: places alone take 3 to 9 from where nothing is left to gain, or
30 to 170 if many joints can twist."""
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
"""Joint angles, the residual of places, and the number of steps taken."""


@dataclass(frozen=True)
class Search:
    """A body and its goals. Places come first; poles and orientations share the freedom that these leave."""

    body: Body
    """B bodies, whose longest chains have length 1."""
    member: int
    """Which of them."""
    system: System
    """The body and its goals."""
    fk: Angles
    """The FK pose within the limits: of the poses that meet the goals best, the nearest to it is taken."""
    iterations: int
    """Maximum number of steps of a descent."""

    def first(self, near: Angles, begun: tuple[State, int] | None = None) -> tuple[Angles, int]:
        """Make one descent from a pose, and another one to places alone if it does not arrive; return angles and steps.

        Args:
            near: where to start.
            begun: where the first descent ended, and its steps; None: not begun.
        """
        state, steps = self._descended(near, TOGETHER) if begun is None else begun
        if state.error <= ARRIVED or self.system.only_places:
            return state.angles, steps
        state, more = self._places._descended(state.angles, _BRIEF)
        return state.angles, steps + more

    def best(
        self, near: Angles, start: Angles | None = None, begun: tuple[State, int] | None = None
    ) -> tuple[Angles, int]:
        """Return the joint angles that meet the goals best, and the number of steps taken.

        Args:
            near: where to start: near the FK pose.
            start: where to start before that, within the limits; None: nowhere.
            begun: where the first descent from `near` ended, and its steps; None: not begun.
        """
        if self.is_far and start is None:
            straight = self._stretched()
            if straight is not None:
                return straight
        angles, error, steps = self._approached(near if start is None else start, begun)
        if start is not None and error > ARRIVED:
            other, there, more = self._approached(near)
            steps += more
            if there < error - SAME:
                angles, error = other, there
        if error <= ARRIVED:
            return angles, steps
        angles, error, more, is_elsewhere = self._restarted(angles, error)
        steps += more
        if is_elsewhere:
            angles, error, more = self._places._polished(angles, _POLISH)
            steps += more
            if error <= ARRIVED and not self.system.only_places:
                # This pose was found for places alone.
                found, there, more = self._attempt(angles)
                steps += more
                angles = found if there <= ARRIVED else angles
        if error > ARRIVED:
            angles, more = self._settled(angles, error, _STAGES[1:])
            steps += more
        return angles, steps

    @cached_property
    def is_far(self) -> bool:
        """Whether all targets are farther from the root than the chains to them are long."""
        return all(distance > length + ARRIVED for distance, length in self._distances)

    @property
    def _distances(self) -> list[tuple[float, float]]:
        """How far each target is from the root, and how long the chain to it is."""
        reaches, bones = self.body.reaches[:, self.member].tolist(), self.system.skeleton.bones
        places = [each for each in self.system.objectives if isinstance(each, Place)]
        away = [norm(minus(place.target, bones[place.path[0]].head)) for place in places]
        return list(zip(away, reaches, strict=True))

    def _stretched(self) -> tuple[Angles, int] | None:
        """Return the pose of a body stretched towards targets that are all too far; None: that is not the best one.

        That a chain misses by no more than its target is too far proves that no pose is nearer.
        """
        if not self.body.is_serial:
            if not self.system.only_places:
                return None
            angles = Passes(self.system).towards_targets(self.fk, _PASSES)
            return self._settled(angles, self._missed(angles), _STAGES[2:])
        angles = Passes(self.system).stretched(self.fk)
        ((distance, length),), error = self._distances, self._missed(angles)
        if error > distance - length + _CERTAIN:
            return None
        is_turned = any(isinstance(each, Orientation) for each in self.system.objectives)
        return self._settled(angles, error, _STAGES[1 if is_turned else 2 :])

    def _missed(self, angles: Angles) -> float:
        system = self._places.system
        error: float = State.of(system, angles).error
        return error

    def _approached(self, start: Angles, begun: tuple[State, int] | None = None) -> Found:
        """Make an attempt; if that of a chain does not arrive, polish it by Newton's method."""
        angles, error, steps = self._attempt(start, begun)
        if error > ARRIVED and self.body.is_serial:
            angles, error, more = self._places._polished(angles, _POLISH)
            steps += more
        return angles, error, steps

    def _is_best(self, angles: Angles, error: float) -> bool:
        """Whether the limits alone prove that no pose of a chain comes nearer to its target."""
        place = self.system.objectives[0]
        assert isinstance(place, Place)
        end = pose_of(self.system.skeleton, angles).ends[0]
        # A pose that arrives is better than one that nearly does.
        return may_be_missed(self.body, self.member, place.target, end) <= (SAME if error > SAME else ARRIVED)

    def _attempt(self, start: Angles, begun: tuple[State, int] | None = None) -> Found:
        """Go to places, orientations and poles together, then to places alone, keeping what it can of the others."""
        only_places = self.system.only_places
        if begun is None:
            begun = self._descended(start, AWAY if self.is_far else STEPS if only_places else TOGETHER)
        state, steps = begun
        angles, error = state.angles, state.error
        if only_places or error <= EXACT:
            return angles, error, steps
        is_off = error > ARRIVED
        if is_off:
            angles, _, more = self._polished(angles, _POLISH, _STILL)
            steps += more
        state, more = self._places._descended(angles)
        angles, error, steps = state.angles, state.error, steps + more
        if is_off and error <= ARRIVED:
            found, _, more = replace(self, system=self.system.lighter(_LIGHT))._polished(angles, _POLISH, _STILL)
            state, extra = self._places._descended(found)
            steps += more + extra
            if state.error <= ARRIVED:
                angles, error = state.angles, state.error
        return angles, error, steps

    def _restarted(self, angles: Angles, error: float) -> tuple[Angles, float, int, bool]:
        """Return the best pose that restarts find, its residual, the steps taken, and whether it is another one."""
        places, steps = self._places, 0
        early: list[Found] = []
        is_serial = self.body.is_serial
        if not is_serial:
            if not self.is_far:
                angles, error, steps, early = self._early(angles, error)
                if error <= ARRIVED:
                    return angles, error, steps, True
            angles, error, more = places._polished(angles, _POLISH)
            steps += more
            if self.is_far or error <= ARRIVED:
                return angles, error, steps, False
        if self._is_best(angles, error):
            return angles, error, steps, False
        tried, errors, taken = [angles], [error], 0
        for k, (number, count, kept, most) in enumerate(_ROUNDS if is_serial else _BRANCHED):
            found = early if early and k == 0 else self._from_table(number, count)
            best = sorted(sorted(range(count), key=lambda i: found[i][1])[:kept])
            used = 0
            for i in best:
                pose, there, more = found[i]
                if there > ARRIVED:
                    pose, there, extra = places._polished(pose, most, _STILL if is_serial else _CLEAR)
                    more += extra
                tried, errors, used = [*tried, pose], [*errors, there], max(used, more)
            steps += used
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

    def _early(self, angles: Angles, error: float) -> tuple[Angles, float, int, list[Found]]:
        """Descend from a few poses of the table until one arrives; return it, or all descents from them."""
        steps, found = 0, []
        for number, count in _EARLY:
            new = self._from_table(number, count)
            found += new
            steps += max(used for _, _, used in new)
            taken = nearest_to_fk([each[0] for each in found], [each[1] for each in found], self.fk)
            if found[taken][1] <= ARRIVED:
                return found[taken][0], found[taken][1], steps, []
        return angles, error, steps, found

    def _from_table(self, number: int, count: int) -> list[Found]:
        """Return where brief descents to places from poses of the table end."""
        found = []
        for angles in table(self.body, number, count):
            state, steps = descended(self._places.system, angles, min(_BRIEF, self.iterations), _PULL)
            found.append((state.angles, state.error, steps))
        return found

    def _settled(self, angles: Angles, error: float, stages: Sequence[tuple[float, float]]) -> tuple[Angles, int]:
        """Decide what places out of reach leave open, by poles and orientations, then by the FK pose."""
        system, steps = self.system, 0
        last = 1.0 if system.only_places else _LAST
        straight = system._replace(skeleton=straightened(system.skeleton))

        def settled(stage: tuple[float, float], most: int) -> int:
            nonlocal angles
            share = stage[0] * error
            state, used = polished(straight.lighter(share), angles, most, stage[1], Anchor(self.fk, last * share))
            angles = state.angles
            return used

        if system.only_places:
            steps = settled(_STAGES[-1], _AT_ONCE)
            stages = () if steps < _AT_ONCE else _STAGES[::2]
        for stage in stages:
            steps += settled(stage, _SETTLE)
        return angles, steps

    def _descended(self, start: Angles, most: float = inf) -> tuple[State, int]:
        return descended(self.system, start, min(most, self.iterations))

    def _polished(self, angles: Angles, most: int, still: float = STILL) -> Found:
        state, steps = polished(self.system, angles, most, still)
        return state.angles, self.system.distance(state.residual), steps

    @cached_property
    def _places(self) -> Search:
        """The same without orientations and poles."""
        return self if self.system.only_places else replace(self, system=self.system.places)


def straightened(skeleton: Skeleton) -> Skeleton:
    """Return a skeleton with points that are on the axis of a bone, but for rounding, exactly on it.

    Then the twist of such a bone has no effect at all, instead of a tiny one.
    """
    bones = [bone._replace(head=_on_axis(bone.head)) for bone in skeleton.bones]
    return skeleton._replace(bones=bones, ends=list(map(_on_axis, skeleton.ends)))


def _on_axis(point: Vector) -> Vector:
    x, y, z = point
    return (0.0, y, 0.0) if max(abs(x), abs(z)) < HAIR * abs(y) else point
