"""Where descents start, and which of the poses that they find is taken.

Every attempt is a descent. The first one starts near the FK pose, so that neighboring targets lead to neighboring
poses; if it does not arrive, Newton's method goes on from where it ends. Mostly no pose is better than the one found
then. If the limits alone do not prove that, a few descents from a fixed table of poses show it, and only if these
disagree are many needed. Trees are the other way round: their joints get in each other's way, so that Newton's
method takes long, while a few descents from the table mostly arrive. Of all poses that arrive, the one nearest to
FK is taken. With restarts, Newton's method with joint limits misses no targets, instead of a quarter of them
(P. Beeson and B. Ames, "TRAC-IK", Humanoids 2015, doi 10.1109/HUMANOIDS.2015.7363472); here they need no random
generator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..problem import Bools, Floats, Ints
from .body import Body, as_row
from .descent import EXACT, PULL, descend
from .goals import Goals, System
from .guess import first_guess
from .newton import STILL, Chart, polish
from .newton_step import Anchor
from .restarts import ARRIVED, SAME, may_be_missed, nearest_to_fk, out_of_length, table
from .task import per_member

_FEW, _SOME = 64, 12
"""Bodies descend one by one, in plain floats, if they have at most this many bones in total for each objective; and
they are polished one by one if there are at most this many."""
STEPS = 30
"""Maximum steps of the first descent. If it has not arrived by then, Newton's method goes on from there."""
TOGETHER = 20
"""The same if there are poles or orientations too."""
AWAY = 8
"""The same if targets are farther away than chains are long: stretching towards them takes no more."""
_POLISH = 40
"""Maximum Newton steps to come as near as possible."""
_BRIEF, _PULL = 8, 1.0
"""Maximum steps of the other descents, and their pull (see `descend`): they need not stay near any pose."""
_STILL = 1e-3
"""Radians: once Newton's steps are this short, it is clear how near such a descent can come."""
_ROUNDS = (0, 4, 4, 20), (4, 28, 8, 20), (4, 28, 28, _POLISH)
"""First pose of the table to start from, number of poses, how many of them are polished, and maximum Newton steps. The
last round is for targets missed by very little: straight chains hide solutions next to where they get stuck."""
_BRANCHED = (0, 8, 6, 12), (8, 24, 6, 12)
"""The same for bodies that are not serial chains: their joints get in each other's way, so restarts find more."""
_EARLY = (0, 1), (1, 1), (2, 2), (4, 4)
"""First pose and number of poses: before Newton's method, trees do their first round in these parts."""
_CLEAR = 1e-2
"""The same as `_STILL`, for bodies that are not serial chains."""
_ENOUGH = 3
"""Trees: once this many poses are among the best, none will be better."""
_COUNTS = (1e-2, 1e-3), (1e-3, 1e-4), (1e-4, 1e-9)
"""Weights of poles, orientations and being a radian away from the FK pose, as fractions of the error. They decrease, so
that they only decide where a target out of reach leaves joints a choice, like the twist of a straight branch. And the
length, in radians, of Newton's last step: all stages but the last only lead the way."""
_LAST = 3e-3
"""Weight of being a radian away from the FK pose, relative to poles and orientations."""
_SETTLE = 200
"""Maximum Newton steps for each of these stages."""
_LIGHT = 0.1
"""Weight of squared poles and orientations, relative to squared distances, if a target can be reached."""

Found = tuple[Floats, Floats, Ints]
"""Joint angles (3, n, B), errors (B,) and the number of steps taken (B,)."""


def search(
    body: Body,
    turns: Floats,
    goals: Goals,
    iterations: int,
    start: Floats | None = None,
    *,
    begun: tuple[Floats, Found] | None = None,
    is_first_attempt: bool = False,
) -> tuple[Floats, Ints]:
    """Return the joint angles (3, n, B) that meet the goals best, and the number of steps (B,) taken.

    Places come first; poles and orientations share the freedom that these leave; then the pose nearest to FK is taken.

    Args:
        body: B bodies, whose longest chains have length 1.
        turns: (4, n, B) rotations of the joints in the FK pose.
        goals: their goals.
        iterations: maximum number of steps of a descent.
        start: (3, n, B) joint angles within the limits from which the first descent starts; if it does not arrive, one
            near the FK pose follows. None: near the FK pose.
        begun: (3, n, B) joint angles of the FK pose within the limits, and where the first descent from near it ended;
            None: not begun.
        is_first_attempt: see `Problem.is_first_attempt`.
    """
    task = _Task(body, goals, iterations)
    places = task.places()
    fk, near = first_guess(body, turns, goals, task.few // 2) if begun is None else (begun[0], begun[0])
    first = None if begun is None else begun[1]
    if is_first_attempt:
        return task.first(near if start is None else start, first)
    angles, error, steps = task.approached(near if start is None else start, first)
    stuck = np.flatnonzero(error > ARRIVED)
    if start is not None and len(stuck):
        found, there, more = task.members(stuck).approached(near[..., stuck])
        steps[stuck] += more
        nearer = there < error[stuck] - SAME
        angles[..., stuck[nearer]], error[stuck[nearer]] = found[..., nearer], there[nearer]
        stuck = stuck[error[stuck] > ARRIVED]
    if not len(stuck):
        return angles, steps
    elsewhere, early = stuck[:0], None
    if not body.is_serial:
        # If all its targets are out of reach, the best that a body can do is to stretch towards them.
        far = out_of_length(body.members(stuck), goals.members(stuck))
        left, early = _early(task, fk, stuck[~far], angles, error, steps)
        elsewhere, open_, stuck = stuck[~far][~left], stuck[~far][left], stuck[error[stuck] > ARRIVED]
        angles[..., stuck], error[stuck], more = places.members(stuck).polished(angles[..., stuck], _POLISH)
        steps[stuck] += more
        left = error[open_] > ARRIVED
        stuck, early = open_[left], (early[0][left], early[1][left])
    if len(stuck):
        # A pose that arrives is better than one that nearly does.
        enough = np.where(error[stuck] > SAME, SAME, ARRIVED)
        worth = may_be_missed(body.members(stuck), goals.members(stuck), angles[..., stuck]) > enough
        stuck, early = stuck[worth], None if early is None else (early[0][worth], early[1][worth])
    tried, costs = _first(angles[..., stuck])[:, None], error[stuck][:, None]
    for k, (number, count, kept_most, most) in enumerate(_ROUNDS if body.is_serial else _BRANCHED):
        if not len(stuck):
            break
        some = places.members(np.repeat(stuck, count))
        if early is not None and k == 0:
            found, there = _last(early[0].reshape(-1, *early[0].shape[2:])), early[1].ravel()
            used = np.zeros(len(there), dtype=np.int64)
        else:
            found, there, used = places.members(stuck).from_table(number, count)
        best = np.sort(np.argsort(there.reshape(-1, count), axis=1, kind="stable")[:, :kept_most], axis=1)
        best = (best + count * np.arange(len(stuck))[:, None]).ravel()
        found, there, more = some.members(best).polished(found[..., best], most, _STILL if body.is_serial else _CLEAR)
        steps[stuck] += (used[best] + more).reshape(-1, kept_most).max(axis=1)
        tried = np.concatenate([tried, _first(found).reshape(len(stuck), kept_most, *tried.shape[2:])], axis=1)
        costs = np.concatenate([costs, there.reshape(-1, kept_most)], axis=1)
        rows, taken = np.arange(len(stuck)), nearest_to_fk(tried, costs, _first(fk[..., stuck]))
        angles[..., stuck] = _last(tried[rows, taken])
        least = costs.min(axis=1)
        error[stuck] = costs[rows, taken]
        alike = costs <= least[:, None] + SAME
        if body.is_serial:
            agree = alike[:, 0] & (np.count_nonzero(alike, axis=1) >= kept_most)
            left = (least > ARRIVED) & ((least < SAME) | (~agree & (k == 0)))
        else:
            left = (least > ARRIVED) & (np.count_nonzero(alike, axis=1) < _ENOUGH)
        elsewhere = np.concatenate([elsewhere, stuck[(taken > 0) & ~left]])
        stuck, tried, costs, taken = stuck[left], tried[left], costs[left], taken[left]
    if len(stuck):
        elsewhere = np.concatenate([elsewhere, stuck[taken > 0]])
    if len(elsewhere):
        angles[..., elsewhere], error[elsewhere], more = places.members(elsewhere).polished(
            angles[..., elsewhere], _POLISH
        )
        steps[elsewhere] += more
    _settle(task, fk, angles, error, steps, elsewhere)
    return angles, steps


def _early(
    task: _Task, fk: Floats, stuck: Ints, angles: Floats, error: Floats, steps: Ints
) -> tuple[Bools, tuple[Floats, Floats]]:
    """Descend from a few poses of the table until one arrives; changes the arrays in place.

    Returns:
        left: (s,) which of the stuck members have not arrived.
        early: for these the joint angles (l, k, n, 3) at which all descents ended, and their errors (l, k).
    """
    bones, left = angles.shape[1], np.ones(len(stuck), dtype=bool)
    tried, costs = np.empty((len(stuck), 0, bones, 3)), np.empty((len(stuck), 0))
    for number, count in _EARLY:
        some = stuck[left]
        if not len(some):
            break
        found, there, used = task.places().members(some).from_table(number, count)
        tried = np.concatenate([tried, _first(found).reshape(len(some), count, bones, 3)], axis=1)
        costs = np.concatenate([costs, there.reshape(-1, count)], axis=1)
        steps[some] += used.reshape(-1, count).max(axis=1)
        rows, taken = np.arange(len(some)), nearest_to_fk(tried, costs, _first(fk[..., some]))
        there = costs[rows, taken]
        good = there <= ARRIVED
        angles[..., some[good]], error[some[good]] = _last(tried[rows, taken][good]), there[good]
        left[left] = ~good
        tried, costs = tried[~good], costs[~good]
    return left, (tried, costs)


def _settle(task: _Task, fk: Floats, angles: Floats, error: Floats, steps: Ints, elsewhere: Ints) -> None:
    """Decide what places leave open, by poles and orientations, then by the FK pose; changes the arrays in place."""
    again = elsewhere[error[elsewhere] <= ARRIVED]
    if len(again) and not task.goals.only_places:
        # These poses were found for places alone.
        found, there, more = task.members(again).attempt(angles[..., again])
        steps[again] += more
        good = there <= ARRIVED
        angles[..., again[good]] = found[..., good]
    missed = np.flatnonzero(error > ARRIVED)
    if not len(missed):
        return
    some, last = task.members(missed), 1.0 if task.goals.only_places else _LAST
    some = replace(some, body=some.body.straightened)
    for count, end in _COUNTS:
        share = count * error[missed]
        light = replace(some, goals=replace(some.goals, share=share))
        angles[..., missed], _, more = light.polished(
            angles[..., missed], _SETTLE, end, (fk[..., missed], last * share)
        )
        steps[missed] += more


@dataclass(frozen=True)
class _Task:
    """B bodies and their goals."""

    body: Body
    goals: Goals
    iterations: int

    def members(self, chosen: Bools | Ints) -> _Task:
        """Return only the chosen members, each as often as its index occurs."""
        return replace(self, body=self.body.members(chosen), goals=self.goals.members(chosen))

    def places(self) -> _Task:
        """Return the same without orientations and poles."""
        return replace(self, goals=self.goals.places())

    @property
    def few(self) -> int:
        """Maximum number of bodies for which it is faster to descend one by one."""
        goals = self.goals
        objectives = len(self.body.segments) + len(goals.orientations) + len(goals.poles)
        return max(1, _FEW * objectives // len(self.body.parents))

    def first(self, start: Floats, begun: Found | None) -> tuple[Floats, Ints]:
        """Make one descent, and another one to places alone if it does not arrive; return angles and steps."""
        angles, error, steps = self.descended(start, TOGETHER) if begun is None else begun
        off = np.flatnonzero(error > ARRIVED)
        if len(off) and not self.goals.only_places:
            angles[..., off], _, more = self.members(off).places().descended(angles[..., off], _BRIEF)
            steps[off] += more
        return angles, steps

    def approached(self, start: Floats, begun: Found | None = None) -> Found:
        """Make an attempt; if that of a chain does not arrive, polish it by Newton's method."""
        angles, error, steps = self.attempt(start, begun)
        stuck = np.flatnonzero(error > ARRIVED)
        if len(stuck) and self.body.is_serial:
            some = self.members(stuck).places()
            angles[..., stuck], error[stuck], more = some.polished(angles[..., stuck], _POLISH)
            steps[stuck] += more
        return angles, error, steps

    def attempt(self, start: Floats, begun: Found | None = None) -> Found:
        """Go to places, orientations and poles together, then to places alone, keeping what it can of the others."""
        most = STEPS if self.goals.only_places else TOGETHER
        if begun is None:
            begun = self.descended(start, np.where(out_of_length(self.body, self.goals), AWAY, most))
        angles, error, steps = begun
        if self.goals.only_places:
            return angles, error, steps
        off = np.flatnonzero(error > ARRIVED)
        if len(off):
            angles[..., off], _, more = self.members(off).polished(angles[..., off], _POLISH, _STILL)
            steps[off] += more
        near = np.flatnonzero(error > EXACT)
        if len(near):
            angles[..., near], error[near], more = self.members(near).places().descended(angles[..., near])
            steps[near] += more
        off = off[error[off] <= ARRIVED]
        if len(off):
            some = self.members(off)
            light = replace(some, goals=replace(some.goals, share=np.full(len(off), _LIGHT)))
            found, _, more = light.polished(angles[..., off], _POLISH, _STILL)
            steps[off] += more
            found, there, more = some.places().descended(found)
            good = there <= ARRIVED
            angles[..., off[good]], error[off[good]] = found[..., good], there[good]
            steps[off] += more
        return angles, error, steps

    def from_table(self, number: int, count: int) -> Found:
        """Return where brief descents from poses of the table end; first all of the first member."""
        members = self.goals.target.shape[2]
        some = self.members(np.repeat(np.arange(members), count))
        return some.descended(np.tile(table(self.body, number, count), members), _BRIEF, _PULL)

    def descended(self, start: Floats, most: Ints | float = np.inf, pull: float = PULL) -> Found:
        """Return where descents end after at most this many steps, given for all members or for each; see `descend`."""
        cap = per_member(np.minimum(most, self.iterations), start.shape[2])

        def method(system: System, member: int | None, members: int) -> Found:
            return descend(system, as_row(start, member), members, cap if member is None else cap[member], pull)

        return self._run(method, start, self.few)

    def polished(
        self, start: Floats, iterations: int, still: float = STILL, anchor: tuple[Floats, Floats] | None = None
    ) -> Found:
        """Return where Newton's method ends, see `newton.polish`; the anchor is angles (3, n, B) and shares (B,)."""
        if not self.body.is_unlimited.any():
            return self._polished(start, iterations, still, anchor)
        chart = Chart.at(self.body, start)
        anchor = None if anchor is None else (chart.enter(anchor[0]), anchor[1])
        there = replace(self, body=chart.body)
        found, error, steps = there._polished(chart.enter(start), iterations, still, anchor)
        return chart.leave(found), error, steps

    def _polished(self, start: Floats, iterations: int, still: float, anchor: tuple[Floats, Floats] | None) -> Found:
        def method(system: System, member: int | None, members: int) -> Found:
            kept = None
            if anchor is not None:
                share = anchor[1] if member is None else float(anchor[1][member])
                kept = Anchor(as_row(anchor[0], member), share)
            return polish(system, as_row(start, member), members, iterations, still, kept)

        return self._run(method, start, _SOME)

    def _run(self, method: Callable[[System, int | None, int], Found], start: Floats, few: int) -> Found:
        members = start.shape[2]
        if members > few:
            return method(System.of(self.body, self.goals), None, members)
        angles, error, steps = np.empty_like(start), np.empty(members), np.empty(members, dtype=np.int64)
        for i in range(members):
            found = method(System.of(self.body, self.goals, i), i, 1)
            angles[..., i], error[i], steps[i] = found[0][..., 0], found[1][0], found[2][0]
        return angles, error, steps


def _last(angles: Floats) -> Floats:
    """Return joint angles (B, n, 3) with the members last."""
    return np.ascontiguousarray(angles.transpose(2, 1, 0))


def _first(angles: Floats) -> Floats:
    """Return joint angles (3, n, B) with the members first."""
    return np.ascontiguousarray(angles.transpose(2, 1, 0))
