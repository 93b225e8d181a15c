"""Chains that only have to bring their end to a place: from where to start, and what to take of what is found.

A descent from near the FK pose, and where it does not arrive, Newton's method from where it ends. What is found then is
mostly what can be found at all. Where the limits themselves do not show that it is, a few descents from elsewhere do,
and only where these disagree is there a need for many.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .articulated import Body
from .choice import ARRIVED, SAME, nearest_to_fk
from .descent import PULL
from .guess import table
from .line_descent import descend
from .line_guess import bent_towards
from .line_newton import STILL, polish
from .line_newton_single import polish_one
from .line_single import descend_one
from .lines import Lines, pose_of
from .problem import Floats, Ints
from .rotations import dot

_FEW, _SOME = 64, 12
"""Up to so many bones are brought down one chain after the other, in plain floats, and so many chains polished."""
_STEPS = 30
"""Steps of the first descent. They arrive, or Newton's method goes on from there."""
_POLISH = 40
"""Newton steps that may be spent on coming as near as possible."""
_BRIEF, _PULL = 8, 1.0
"""Steps of the other descents, and what they go after in a step: they are not to be near anything."""
_STILL = 1e-3
"""Radians: how near such a descent can come is clear when Newton's steps are as short as this."""
_ROUNDS = (0, 4, 4, 20), (4, 28, 8, 20), (4, 28, 28, _POLISH)
"""First pose of the table to start from, how many, how many of these are followed further, and in how many steps. The
last round is for targets that are missed by a hair: straight chains hide solutions next to where they are stuck."""


def search(body: Body, turns: Floats, target: Floats, iterations: int) -> tuple[Floats, Ints]:
    """Return the joint angles (B, n, 3) that bring chains to their targets, or as near as can be, and the steps (B,).

    Args:
        body: B chains that `are_lines`, the longest of each unit long.
        turns: (4, B, n) rotations of the joints in the FK pose.
        target: (B, 3) where to bring the ends.
        iterations: cap on the steps of a descent.
    """
    lines = Lines.of(body, target)
    fk, start = bent_towards(lines, np.ascontiguousarray(turns.swapaxes(1, 2)), _few(lines) // 2)
    angles, missing, steps = _descended(lines, start, min(iterations, _STEPS), PULL)
    stuck = np.flatnonzero(missing > ARRIVED)
    if len(stuck):
        angles[..., stuck], missing[stuck], more = _polished(lines.members(stuck), angles[..., stuck], _POLISH)
        steps[stuck] += more
        stuck = stuck[missing[stuck] > ARRIVED]
        # Of poses that nearly arrive none is as good as one that does.
        enough = np.where(missing[stuck] > SAME, SAME, ARRIVED)
        stuck = stuck[may_be_missed(lines.members(stuck), angles[..., stuck]) > enough]
    tried, costs = _first(angles[..., stuck])[:, None], missing[stuck][:, None]
    elsewhere = stuck[:0]
    for k, (first, count, ahead, most) in enumerate(_ROUNDS):
        if not len(stuck):
            break
        # Of each member one start after another: first all of the first member.
        some = lines.members(np.repeat(stuck, count))
        start = np.tile(_last(table(body, first, count)), len(stuck))
        found, there, used = _descended(some, start, min(iterations, _BRIEF), _PULL)
        best = np.sort(np.argsort(there.reshape(-1, count), axis=1, kind="stable")[:, :ahead], axis=1)
        best = (best + count * np.arange(len(stuck))[:, None]).ravel()
        found, there, more = _polished(some.members(best), found[..., best], most, _STILL)
        steps[stuck] += (used[best] + more).reshape(-1, ahead).max(axis=1)
        tried = np.concatenate([tried, _first(found).reshape(len(stuck), ahead, *tried.shape[2:])], axis=1)
        costs = np.concatenate([costs, there.reshape(-1, ahead)], axis=1)
        rows, taken = np.arange(len(stuck)), nearest_to_fk(tried, costs, _first(fk[..., stuck]))
        angles[..., stuck] = _last(tried[rows, taken])
        least = costs.min(axis=1)
        alike = costs <= least[:, None] + SAME
        agree = alike[:, 0] & (np.count_nonzero(alike, axis=1) >= ahead)
        left = (least > ARRIVED) & ((least < SAME) | (~agree & (k == 0)))
        elsewhere = np.concatenate([elsewhere, stuck[(taken > 0) & ~left]])
        stuck, tried, costs, taken = stuck[left], tried[left], costs[left], taken[left]
    if len(stuck):
        elsewhere = np.concatenate([elsewhere, stuck[taken > 0]])
    if len(elsewhere):
        angles[..., elsewhere], _, more = _polished(lines.members(elsewhere), angles[..., elsewhere], _POLISH)
        steps[elsewhere] += more
    return _first(angles), steps


def _few(lines: Lines) -> int:
    """Return up to how many chains it is quicker to bring down one by one."""
    return max(1, _FEW // int(lines.arms.shape[1]))


def _descended(lines: Lines, start: Floats, iterations: int, pull: float) -> tuple[Floats, Floats, Ints]:
    """Return what descents come to, see `line_descent.descend`."""
    if start.shape[2] > _few(lines):
        return descend(lines, start, iterations, pull)
    return _one_by_one(descend_one, lines, start, iterations, pull)


def _polished(lines: Lines, start: Floats, iterations: int, still: float = STILL) -> tuple[Floats, Floats, Ints]:
    """Return what Newton's method comes to, see `line_newton.polish`."""
    if start.shape[2] > _SOME:
        return polish(lines, start, iterations, still)
    return _one_by_one(polish_one, lines, start, iterations, still)


def _one_by_one(
    method: Callable[[Lines, Floats, int, int, float], tuple[Floats, float, int]],
    lines: Lines,
    start: Floats,
    iterations: int,
    setting: float,
) -> tuple[Floats, Floats, Ints]:
    members = start.shape[2]
    angles, missing, steps = np.empty_like(start), np.empty(members), np.empty(members, dtype=np.int64)
    for i in range(members):
        angles[..., i], missing[i], steps[i] = method(lines, start, i, iterations, setting)
    return angles, missing, steps


def may_be_missed(lines: Lines, angles: Floats) -> Floats:
    """Return by how much (B,) other poses than the given ones can come nearer to the targets, at most.

    A joint turns its bone and the one before apart by no more than it may swing, whatever other joints do. So no bone
    points more towards the target than all swings up to its own together let it. That is all there is to say of a
    straight chain that is bent as far as it can be; of others it says less.
    """
    missing = pose_of(lines, angles).missing
    towards = missing / np.maximum(np.sqrt(dot(missing, missing)), 1e-200)
    lengths = np.sqrt(dot(lines.arms, lines.arms))
    # What lies between the bones at rest comes on top, and between a bone's axis and the line to the next one.
    apart = np.arccos(np.clip(lines.rest[1, 1], -1.0, 1.0))
    apart[0] = -np.arccos(np.clip(dot(lines.rest[:, 1, 0], towards), -1.0, 1.0))
    apart += 2.0 * np.arcsin(np.minimum(np.maximum(lines.cone.low, lines.cone.high).max(axis=0), 1.0))
    off = np.arccos(np.clip(lines.arms[1] / np.maximum(lengths, 1e-200), -1.0, 1.0))
    nearest = np.minimum(np.cumsum(apart, axis=0) + off, 0.0)
    farthest = np.cumsum(lengths * np.cos(nearest), axis=0)[-1]
    return np.asarray(farthest - dot(lines.target - missing, towards))


def _last(angles: Floats) -> Floats:
    """Return joint angles (B, n, 3) with the members last."""
    return np.ascontiguousarray(angles.transpose(2, 1, 0))


def _first(angles: Floats) -> Floats:
    """Return joint angles (3, n, B) with the members first."""
    return np.ascontiguousarray(angles.transpose(2, 1, 0))
