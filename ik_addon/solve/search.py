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

from .body import Body, as_row, pose_of
from .choice import ARRIVED, SAME, nearest_to_fk
from .descent import EXACT, PULL, descend
from .goals import Goals, System
from .guess import first_guess
from .newton import STILL, Anchor, polish
from .problem import Bools, Floats, Ints
from .rotations import dot
from .table import table

_FEW, _SOME = 64, 12
"""Up to so many bones for each objective are brought down one body after the other, in plain floats, and so many bodies
polished."""
_STEPS = 30
"""Steps of the first descent. They arrive, or Newton's method goes on from there."""
_TOGETHER = 20
"""The same where poles and orientations count as well."""
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
_HOLD = 1e-3
"""What poles, orientations and being a radian away from the FK pose count, as a part of the square of what is missing:
they decide where a target out of reach leaves joints a choice, as it does the twist of a straight branch."""
_SLIDE, _SETTLE = (20, 1e-3), (60, 1e-8)
"""Newton steps that may be spent on that, and by how many radians the last one turns joints: in chains, and in trees,
where joints slide along their limits for long before they settle."""
_LIGHT = 0.1
"""What the squares of poles and orientations count beside those of distances, where a target can be reached."""

Found = tuple[Floats, Floats, Ints]
"""Joint angles (3, n, B), what is missing (B,) and the steps taken (B,)."""


def search(
    body: Body, turns: Floats, goals: Goals, iterations: int, start: Floats | None = None
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
    """
    task = _Task(body, goals, iterations)
    places = task.places()
    fk, near = first_guess(body, turns, goals, task.few // 2)
    angles, missing, steps = task.approached(near if start is None else start)
    stuck = np.flatnonzero(missing > ARRIVED)
    if start is not None and len(stuck):
        found, there, more = task.members(stuck).approached(near[..., stuck])
        steps[stuck] += more
        nearer = there < missing[stuck] - SAME
        angles[..., stuck[nearer]], missing[stuck[nearer]] = found[..., nearer], there[nearer]
        stuck = stuck[missing[stuck] > ARRIVED]
    elsewhere, early = stuck[:0], None
    if len(stuck) and not body.is_serial:
        left, early = _early(task, fk, stuck, angles, missing, steps)
        elsewhere, stuck = stuck[~left], stuck[left]
        angles[..., stuck], missing[stuck], more = places.members(stuck).polished(angles[..., stuck], _POLISH)
        steps[stuck] += more
        left = missing[stuck] > ARRIVED
        stuck, early = stuck[left], (early[0][left], early[1][left])
    missed = stuck
    if len(stuck):
        # Of poses that nearly arrive none is as good as one that does.
        enough = np.where(missing[stuck] > SAME, SAME, ARRIVED)
        stuck = stuck[may_be_missed(body.members(stuck), goals.members(stuck), angles[..., stuck]) > enough]
    first = angles.copy()
    tried, costs = _first(angles[..., stuck])[:, None], missing[stuck][:, None]
    for k, (number, count, ahead, most) in enumerate(_ROUNDS if body.is_serial else _BRANCHED):
        if not len(stuck):
            break
        some = places.members(np.repeat(stuck, count))
        if early is not None and k == 0:
            found, there = _last(early[0].reshape(-1, *early[0].shape[2:])), early[1].ravel()
            used = np.zeros(len(there), dtype=np.int64)
        else:
            found, there, used = places.members(stuck).from_table(number, count)
        best = np.sort(np.argsort(there.reshape(-1, count), axis=1, kind="stable")[:, :ahead], axis=1)
        best = (best + count * np.arange(len(stuck))[:, None]).ravel()
        found, there, more = some.members(best).polished(found[..., best], most, _STILL if body.is_serial else _CLEAR)
        steps[stuck] += (used[best] + more).reshape(-1, ahead).max(axis=1)
        tried = np.concatenate([tried, _first(found).reshape(len(stuck), ahead, *tried.shape[2:])], axis=1)
        costs = np.concatenate([costs, there.reshape(-1, ahead)], axis=1)
        rows, taken = np.arange(len(stuck)), nearest_to_fk(tried, costs, _first(fk[..., stuck]))
        angles[..., stuck] = _last(tried[rows, taken])
        least = costs.min(axis=1)
        missing[stuck] = costs[rows, taken]
        alike = costs <= least[:, None] + SAME
        if body.is_serial:
            agree = alike[:, 0] & (np.count_nonzero(alike, axis=1) >= ahead)
            left = (least > ARRIVED) & ((least < SAME) | (~agree & (k == 0)))
        else:
            left = (least > ARRIVED) & (np.count_nonzero(alike, axis=1) < _ENOUGH)
        elsewhere = np.concatenate([elsewhere, stuck[(taken > 0) & ~left]])
        stuck, tried, costs, taken = stuck[left], tried[left], costs[left], taken[left]
    if len(stuck):
        elsewhere = np.concatenate([elsewhere, stuck[taken > 0]])
    if len(elsewhere):
        angles[..., elsewhere], missing[elsewhere], more = places.members(elsewhere).polished(
            angles[..., elsewhere], _POLISH
        )
        steps[elsewhere] += more
    if task.leaves_choice:
        _settle(task, fk, first, angles, missing, steps, missed, elsewhere)
    return angles, steps


def _early(
    task: _Task, fk: Floats, stuck: Ints, angles: Floats, missing: Floats, steps: Ints
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
        angles[..., some[good]], missing[some[good]] = _last(tried[rows, taken][good]), there[good]
        left[left] = ~good
        tried, costs = tried[~good], costs[~good]
    return left, (tried, costs)


def _settle(
    task: _Task, fk: Floats, first: Floats, angles: Floats, missing: Floats, steps: Ints, missed: Ints, elsewhere: Ints
) -> None:
    """Decide what places leave open, by poles and orientations, then by the FK pose, in place."""
    again = elsewhere[missing[elsewhere] <= ARRIVED]
    if len(again) and not task.goals.only_places:
        # A pose that places alone have led to.
        found, there, more = task.members(again).attempt(angles[..., again])
        steps[again] += more
        good = there <= ARRIVED
        angles[..., again[good]] = found[..., good]
    missed = missed[missing[missed] > ARRIVED]
    if not len(missed):
        return
    # The first pose is tried too, where restarts led to another one.
    other = np.flatnonzero((first[..., missed] != angles[..., missed]).any(axis=(0, 1)))
    both = np.concatenate([missed, missed[other]])
    tried = np.concatenate([angles[..., missed], first[..., missed[other]]], axis=2)
    hold = _HOLD * missing[both] ** 2
    light = replace(task.members(both), goals=replace(task.goals.members(both), share=hold))
    anchor = fk[..., both], hold * (1.0 if task.goals.only_places else _HOLD)
    tried, costs, more = light.polished(tried, *(_SLIDE if task.body.is_serial else _SETTLE), anchor)
    angles[..., missed] = tried[..., : len(missed)]
    steps[missed] += more[: len(missed)]
    if len(other):
        pairs = np.stack([len(missed) + np.arange(len(other)), other], axis=1)
        best = nearest_to_fk(_first(tried)[pairs], costs[pairs], _first(fk[..., missed[other]]))
        angles[..., missed[other]] = tried[..., pairs[np.arange(len(other)), best]]


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
        objectives = len(self.body.segments) + len(goals.turns) + len(goals.poles)
        return max(1, _FEW * objectives // len(self.body.parents))

    @property
    def leaves_choice(self) -> bool:
        """Whether there is more to decide than where one end is."""
        return not (self.goals.only_places and self.body.is_serial)

    def approached(self, start: Floats) -> Found:
        """Make an attempt, and where that of a chain does not arrive bring it as near as Newton's method does."""
        angles, missing, steps = self.attempt(start)
        stuck = np.flatnonzero(missing > ARRIVED)
        if len(stuck) and self.body.is_serial:
            some = self.members(stuck).places()
            angles[..., stuck], missing[stuck], more = some.polished(angles[..., stuck], _POLISH)
            steps[stuck] += more
        return angles, missing, steps

    def attempt(self, start: Floats) -> Found:
        """Go to places, orientations and poles together, then to places alone, with what these leave of the others."""
        if self.goals.only_places:
            return replace(self, iterations=min(self.iterations, _STEPS)).descended(start, PULL)
        angles, missing, steps = replace(self, iterations=min(self.iterations, _TOGETHER)).descended(start, PULL)
        off = np.flatnonzero(missing > ARRIVED)
        if len(off):
            angles[..., off], _, more = self.members(off).polished(angles[..., off], _POLISH, _STILL)
            steps[off] += more
        near = np.flatnonzero(missing > EXACT)
        if len(near):
            angles[..., near], missing[near], more = self.members(near).places().descended(angles[..., near], PULL)
            steps[near] += more
        off = off[missing[off] <= ARRIVED]
        if len(off):
            some = self.members(off)
            light = replace(some, goals=replace(some.goals, share=np.full(len(off), _LIGHT)))
            found, _, more = light.polished(angles[..., off], _POLISH, _STILL)
            steps[off] += more
            found, there, more = some.places().descended(found, PULL)
            good = there <= ARRIVED
            angles[..., off[good]], missing[off[good]] = found[..., good], there[good]
            steps[off] += more
        return angles, missing, steps

    def from_table(self, number: int, count: int) -> Found:
        """Return what brief descents from poses of the table come to: first all of the first member."""
        members = self.goals.target.shape[2]
        some = self.members(np.repeat(np.arange(members), count))
        brief = replace(some, iterations=min(self.iterations, _BRIEF))
        return brief.descended(np.tile(table(self.body, number, count), members), _PULL)

    def descended(self, start: Floats, pull: float) -> Found:
        """Return what descents come to, see `descent.descend`."""

        def method(system: System, member: int | None, members: int) -> Found:
            return descend(system, as_row(start, member), members, self.iterations, pull)

        return self._run(method, start, self.few)

    def polished(
        self, start: Floats, iterations: int, still: float = STILL, anchor: tuple[Floats, Floats] | None = None
    ) -> Found:
        """Return what Newton's method comes to, see `newton.polish`; the anchor is angles (3, n, B) and shares (B,)."""

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
        angles, missing, steps = np.empty_like(start), np.empty(members), np.empty(members, dtype=np.int64)
        for i in range(members):
            found = method(System.of(self.body, self.goals, i), i, 1)
            angles[..., i], missing[i], steps[i] = found[0][..., 0], found[1][0], found[2][0]
        return angles, missing, steps


def may_be_missed(body: Body, goals: Goals, angles: Floats) -> Floats:
    """Return by how much (B,) other poses than the given ones can come nearer to the targets, at most.

    A joint turns its bone and the one before apart by no more than it may swing, whatever other joints do. So no bone
    points more towards the target than all swings up to its own together let it. That is all there is to say of a
    straight chain that is bent as far as it can be; of others it says less, and of trees nothing.
    """
    if len(body.segments) != 1:
        return np.full(angles.shape[2], np.inf)
    system = System.of(body, goals.places())
    pose = pose_of(system.skeleton, as_row(angles, None))
    ((end,), target) = pose.ends, goals.target[:, 0]
    missing = target - np.stack(end)
    towards = missing / np.maximum(np.sqrt(dot(missing, missing)), 1e-200)
    path = list(body.path(0))
    arms = np.concatenate([body.heads[:, path[1:]], body.ends], axis=1)
    lengths = np.sqrt(dot(arms, arms))
    # What lies between the bones at rest comes on top, and between a bone's axis and the line to the next one.
    rest = body.rest[:, 1, path]
    apart = np.arccos(np.clip(rest[1], -1.0, 1.0))
    apart[0] = -np.arccos(np.clip(dot(rest[:, 0], towards), -1.0, 1.0))
    apart += 2.0 * np.arcsin(np.minimum(np.maximum(body.cone.low, body.cone.high).max(axis=0)[path], 1.0))
    apart[[i for i, bone in enumerate(path) if i and body.free[bone]]] = np.inf
    off = np.arccos(np.clip(arms[1] / np.maximum(lengths, 1e-200), -1.0, 1.0))
    nearest = np.minimum(np.cumsum(apart, axis=0) + off, 0.0)
    farthest = np.cumsum(lengths * np.cos(nearest), axis=0)[-1]
    return np.asarray(farthest - dot(target - missing, towards))


def _last(angles: Floats) -> Floats:
    """Return joint angles (B, n, 3) with the members last."""
    return np.ascontiguousarray(angles.transpose(2, 1, 0))


def _first(angles: Floats) -> Floats:
    """Return joint angles (3, n, B) with the members first."""
    return np.ascontiguousarray(angles.transpose(2, 1, 0))
