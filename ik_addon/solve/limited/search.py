"""From where to start, and what to take of what is found.

Every attempt is a descent. The first one starts near the FK pose, so that neighbouring targets lead to neighbouring
poses; where it does not arrive, Newton's method goes on from where it ends. What is found then is mostly what can be
found at all. Where the limits themselves do not show that it is, a few descents from a fixed table of poses do, and
only where these disagree is there a need for many. Trees are the other way round: their joints get in each other's way,
so that Newton's method takes long where a few descents from the table mostly arrive. Of all that arrive the pose
nearest to FK is taken: restarts are what takes Newton's method with joint limits from a quarter of all targets missed
to none (P. Beeson and B. Ames, "TRAC-IK", Humanoids 2015, doi 10.1109/HUMANOIDS.2015.7363472), here without a random
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
"""Up to so many bones for each objective are brought down one body after the other, in plain floats, and so many bodies
polished."""
_STEPS = 30
"""Steps of the first descent. They arrive, or Newton's method goes on from there."""
_TOGETHER = 20
"""The same where poles and orientations count as well."""
_AWAY = 8
"""The same where targets are farther away than chains are long: to stretch towards them takes no more."""
_POLISH = 40
"""Newton steps that may be spent on coming as near as possible."""
_BRIEF, _PULL = 8, 1.0
"""Steps of the other descents, and what they go after in a step: they are not to be near anything."""
_STILL = 1e-3
"""Radians: how near such a descent can come is clear when Newton's steps are as short as this."""
_ROUNDS = (0, 4, 4, 20), (4, 28, 8, 20), (4, 28, 28, _POLISH)
"""First pose of the table to start from, how many, how many of these are followed further, and in how many steps. The
last round is for targets that are missed by a hair: straight chains hide solutions next to where they are stuck."""
_BRANCHED = (0, 8, 6, 12), (8, 24, 6, 12)
"""The same for bodies that are not a chain, whose joints get in each other's way: there restarts lead to more."""
_EARLY = (0, 1), (1, 1), (2, 2), (4, 4)
"""First pose and how many: the first round of these is gone through bit by bit, before Newton's method."""
_CLEAR = 1e-2
"""Radians: how near these can come is clear when Newton's steps are as short as this."""
_ENOUGH = 3
"""When so many poses are among the best, none will be better."""
_COUNTS = (1e-2, 1e-3), (1e-3, 1e-4), (1e-4, 1e-9)
"""What poles, orientations and being a radian away from the FK pose count, as a part of what is missing: less and less,
so that they decide where a target out of reach leaves joints a choice, as it does the twist of a straight branch. And
by how many radians the last of Newton's steps turns joints: all but the last count only lead the way."""
_LAST = 3e-3
"""What being a radian away from the FK pose counts beside poles and orientations."""
_SETTLE = 60
"""Newton steps that may be spent on each of these."""
_LIGHT = 0.1
"""What the squares of poles and orientations count beside those of distances, where a target can be reached."""

Found = tuple[Floats, Floats, Ints]
"""Joint angles (3, n, B), what is missing (B,) and the steps taken (B,)."""


def search(
    body: Body,
    turns: Floats,
    goals: Goals,
    iterations: int,
    start: Floats | None = None,
    *,
    is_first_attempt: bool = False,
) -> tuple[Floats, Ints]:
    """Return the joint angles (3, n, B) that suit the goals best, and the steps (B,) it took to find them.

    Places come first; poles and orientations share what these leave; then the pose nearest to FK is taken.

    Args:
        body: B bodies, the longest chain of each as long as 1.
        turns: (4, n, B) rotations of the joints in the FK pose.
        goals: what they are to do.
        iterations: cap on the steps of a descent.
        start: (3, n, B) joint angles within the limits that the first descent starts from, before one near the FK pose
            where that does not arrive; None: near the FK pose.
        is_first_attempt: see `Problem.is_first_attempt`.
    """
    task = _Task(body, goals, iterations)
    places = task.places()
    fk, near = first_guess(body, turns, goals, task.few // 2)
    if is_first_attempt:
        return task.first(near if start is None else start)
    angles, error, steps = task.approached(near if start is None else start)
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
        # All that a body can do for targets that are all out of its reach is to stretch towards them.
        far = out_of_length(body.members(stuck), goals.members(stuck))
        left, early = _early(task, fk, stuck[~far], angles, error, steps)
        elsewhere, open_, stuck = stuck[~far][~left], stuck[~far][left], stuck[error[stuck] > ARRIVED]
        angles[..., stuck], error[stuck], more = places.members(stuck).polished(angles[..., stuck], _POLISH)
        steps[stuck] += more
        left = error[open_] > ARRIVED
        stuck, early = open_[left], (early[0][left], early[1][left])
    if len(stuck):
        # Of poses that nearly arrive none is as good as one that does.
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
    """Descend from a few poses of the table until one arrives, in place.

    Returns:
        left: (s,) which of the stuck members have not arrived.
        early: of these the joint angles (l, k, n, 3) that all descents came to, and what was missing (l, k).
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
    """Decide what places leave open, by poles and orientations, then by the FK pose, in place."""
    again = elsewhere[error[elsewhere] <= ARRIVED]
    if len(again) and not task.goals.only_places:
        # A pose that places alone have led to.
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
    """B bodies and what they are to do."""

    body: Body
    goals: Goals
    iterations: int

    def members(self, chosen: Bools | Ints) -> _Task:
        """Return the chosen members alone, or each as often as it is named."""
        return replace(self, body=self.body.members(chosen), goals=self.goals.members(chosen))

    def places(self) -> _Task:
        """Return the same without orientations and poles."""
        return replace(self, goals=self.goals.places())

    @property
    def few(self) -> int:
        """Up to how many bodies it is quicker to bring down one by one."""
        goals = self.goals
        objectives = len(self.body.segments) + len(goals.orientations) + len(goals.poles)
        return max(1, _FEW * objectives // len(self.body.parents))

    def first(self, start: Floats) -> tuple[Floats, Ints]:
        """Make one descent, and another one to places alone where that does not arrive: angles and steps."""
        angles, error, steps = self.descended(start, _TOGETHER)
        off = np.flatnonzero(error > ARRIVED)
        if len(off) and not self.goals.only_places:
            angles[..., off], _, more = self.members(off).places().descended(angles[..., off], _BRIEF)
            steps[off] += more
        return angles, steps

    def approached(self, start: Floats) -> Found:
        """Make an attempt, and where that of a chain does not arrive bring it as near as Newton's method does."""
        angles, error, steps = self.attempt(start)
        stuck = np.flatnonzero(error > ARRIVED)
        if len(stuck) and self.body.is_serial:
            some = self.members(stuck).places()
            angles[..., stuck], error[stuck], more = some.polished(angles[..., stuck], _POLISH)
            steps[stuck] += more
        return angles, error, steps

    def attempt(self, start: Floats) -> Found:
        """Go to places, orientations and poles together, then to places alone, with what these leave of the others."""
        most = _STEPS if self.goals.only_places else _TOGETHER
        angles, error, steps = self.descended(start, np.where(out_of_length(self.body, self.goals), _AWAY, most))
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
        """Return what brief descents from poses of the table come to: first all of the first member."""
        members = self.goals.target.shape[2]
        some = self.members(np.repeat(np.arange(members), count))
        return some.descended(np.tile(table(self.body, number, count), members), _BRIEF, _PULL)

    def descended(self, start: Floats, most: Ints | float = np.inf, pull: float = PULL) -> Found:
        """Return what descents of so many steps at most come to, of all members or of each; see `descent.descend`."""
        cap = per_member(np.minimum(most, self.iterations), start.shape[2])

        def method(system: System, member: int | None, members: int) -> Found:
            return descend(system, as_row(start, member), members, cap if member is None else cap[member], pull)

        return self._run(method, start, self.few)

    def polished(
        self, start: Floats, iterations: int, still: float = STILL, anchor: tuple[Floats, Floats] | None = None
    ) -> Found:
        """Return what Newton's method comes to, see `newton.polish`; the anchor is angles (3, n, B) and shares (B,)."""
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
