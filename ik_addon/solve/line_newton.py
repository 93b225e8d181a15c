"""Newton's method of `polish` for chains that only have to bring their end to a place.

Of such a chain the curvature of the cost between two joints is a product of three numbers that belong to the one with
three that belong to the other: a joint turns what the joints after it do to the end. A matrix like that is factorized
by going once through the joints (R. Vandebril, M. Van Barel, N. Mastronardi, "Matrix computations and semiseparable
matrices", 2008), so that a step costs as much as a descent's. Where the cost curves downwards the pivot's sign is
turned, so that the step leads away from the saddle.
"""

from __future__ import annotations

import numpy as np

from .articulated import STEEPEST, swing_curvature
from .choice import SAME
from .lines import CROWD, LinePose, Lines, allowed_angles, axes_of, pose_of, speeds_of
from .problem import Bools, Floats, Ints
from .rotations import cross, dot, stacked

STILL = 1e-6
"""Radians: a step that brings something and is shorter shows that there is nothing left to bring."""
ROUNDING = 1e-5
"""Radians: so does a step that brings nothing and is shorter than this."""
LONGEST = 0.5
DAMPING, SOFTEST, HARDEST = 1e-1, 1e-9, 1e3
ON_RIM = 1e-9
"""A swing is on the rim of its cone when it is within about this fraction of the half-axes."""


def polish(lines: Lines, angles: Floats, iterations: int, still: float = STILL) -> tuple[Floats, Floats, Ints]:
    """Return joint angles in whose neighbourhood none inside the limits bring the chains' ends nearer to their targets.

    Args:
        lines: B chains.
        angles: (3, n, B) to start from, inside the limits.
        iterations: cap on the steps.
        still: radians, how short a step shows that there is little left to bring, in chains that are not nearly there.

    Returns:
        angles: (3, n, B) inside the limits.
        missing: (B,) distance from end to target.
        steps: (B,) how many were taken.
    """
    members = angles.shape[2]
    solved, final = np.empty_like(angles), np.empty(members)
    steps = np.zeros(members, dtype=np.int64)
    index, running = np.arange(members), np.ones(members, dtype=bool)
    damping = np.full(members, DAMPING)
    pose = pose_of(lines, angles)
    cost = dot(pose.missing, pose.missing)
    ended = np.zeros(members, dtype=bool)
    for done in range(iterations + 1):
        if done == iterations:
            ended = running
        if ended.any():
            where = index[ended]
            solved[..., where], final[where], steps[where] = angles[..., ended], cost[ended], done
            running &= ~ended
            left = np.count_nonzero(running)
            if not left:
                break
            if left < CROWD * len(running):
                lines, pose, angles = lines.members(running), pose.members(running), angles[..., running]
                cost, damping, index, running = cost[running], damping[running], index[running], running[running]
        move = step(lines, angles, pose, damping)
        size = np.abs(move).max(axis=(0, 1))
        move *= np.minimum(1.0, LONGEST / np.maximum(size, 1e-30))
        move[:2] *= 0.5
        move += angles
        tried = allowed_angles(lines, move)
        there = pose_of(lines, tried)
        costs = dot(there.missing, there.missing)
        better = costs < cost
        # Scaled down, a step that is too long goes mostly where the cost hardly changes.
        grown = np.where(better, np.where(size > LONGEST, 1.0, 0.1), 4.0)
        damping = np.minimum(np.maximum(damping * grown, SOFTEST), HARDEST)
        worse = np.flatnonzero(~better)
        if len(worse):
            costs[worse], tried[..., worse] = cost[worse], angles[..., worse]
            for part, old in zip(there, pose, strict=True):
                part[..., worse] = old[..., worse]
        angles, pose, cost = tried, there, costs
        short = np.where(better, np.where(cost > SAME**2, still, STILL), ROUNDING)
        ended = running & ((size < short) | (damping >= HARDEST))
    return solved, np.sqrt(final), steps


def step(lines: Lines, angles: Floats, pose: LinePose, damping: Floats) -> Floats:
    """Return Newton steps (3, n, B), a radian being the unit of all joint angles."""
    axes = axes_of(pose, angles)
    speeds = speeds_of(pose, axes)
    missing = pose.missing[:, None, None]
    slope = -dot(speeds, missing)
    # The product of this at one joint with the speed at a later one is the curvature of the cost between them.
    bends = speeds - cross(missing, axes)
    along, across, rim, room = _room(lines, angles, slope)
    x, z, _ = angles
    first, second, both = swing_curvature(x, z, np.maximum(1.0 - x * x - z * z, STEEPEST**2), slope)
    rim_first, rim_second = along
    # On a rim the first of the two coordinates of a swing is the one along it, and the second has none.
    free = np.stack([room[0] | (rim & room[1]), room[1] & ~rim, room[2]])
    bends, speeds = (_along(part, along, free) for part in (bends, speeds))
    slope = _along(slope[None], along, free)[0]
    diagonal = dot(bends, speeds)
    diagonal[0] += across + rim_first * rim_first * first + rim_second * rim_second * second
    diagonal[0] += 2.0 * rim_first * rim_second * both
    diagonal[1] += second
    diagonal = np.where(free, diagonal, 1.0)
    # Two coordinates of one swing do not come one after the other.
    skew = 0.5 * (dot(bends[:, 1], speeds[:, 0]) - dot(bends[:, 0], speeds[:, 1])) + both
    skew = np.where(free[0] & free[1], skew, 0.0)
    found = _solved(bends, speeds, diagonal, skew, -slope, damping) * free
    return stacked(found[0] * rim_first, found[0] * rim_second + found[1], found[2])


def _along(values: Floats, along: Floats, free: Bools) -> Floats:
    """Return values (..., 3, n, B) in the coordinates that the limits leave."""
    found = np.where(free, values, 0.0)
    found[:, 0] = values[:, 0] * along[0] + values[:, 1] * along[1]
    return found


def _room(lines: Lines, angles: Floats, slope: Floats) -> tuple[Floats, Floats, Bools, Bools]:
    """Return where joints can go.

    Returns:
        along: (2, n, B) direction of the first coordinate of a swing: along the rim of its cone, if it is pushed there.
        across: (n, B) what the bend of the rim adds to the curvature of the cost along it.
        rim: (n, B) whether the swing is held by the rim.
        room: (3, n, B) whether a joint angle can change at all.
    """
    swing, twist = angles[:2], angles[2]
    cone, free = lines.cone, lines.ease > 0.0
    # At zero the slope tells which quadrant a swing would go to.
    low = (swing < 0.0) | ((swing == 0.0) & (slope[:2] > 0.0))
    half = np.where(low, cone.low, cone.high)
    safe = np.maximum(half, 1e-9)
    share = swing / safe * free[:2]
    normal = share / safe
    size = np.sqrt(normal[0] * normal[0] + normal[1] * normal[1])
    normal /= np.maximum(size, 1e-200)
    push = -(normal[0] * slope[0] + normal[1] * slope[1])
    rim = (share[0] * share[0] + share[1] * share[1] > 1.0 - ON_RIM) & (push > 0.0)
    turn = normal[::-1] / safe
    bend = push * (turn[0] * turn[0] + turn[1] * turn[1]) / np.maximum(size, 1e-200) / 2.0
    room = np.empty(angles.shape, dtype=bool)
    # An axis with no room to the side that the slope points to holds too.
    room[:2] = free[:2] & ~((half <= 0.0) & (swing == 0.0))
    low_end, high_end = (twist <= cone.twist_low) & (slope[2] > 0.0), (twist >= cone.twist_high) & (slope[2] < 0.0)
    room[2] = free[2] & ~(low_end | high_end)
    along = stacked(np.where(rim, -normal[1], 1.0) * room[0], np.where(rim, normal[0], 0.0) * room[1])
    return along, np.where(rim, bend, 0.0), rim, room


def _solved(bends: Floats, speeds: Floats, diagonal: Floats, skew: Floats, wanted: Floats, damping: Floats) -> Floats:
    """Return the solutions (3, n, B) of equations with symmetric matrices, damped and made positive.

    Args:
        bends: (3, 3, n, B) components of one factor of the matrix above its diagonal, that of its rows,
        speeds: (3, 3, n, B) and of the other factor, that of its columns.
        diagonal: (3, n, B)
        skew: (n, B) what is added between the first two coordinates of a joint.
        wanted: (3, n, B) right-hand side.
        damping: (B,) added to the pivots.
    """
    bones, members = skew.shape
    # Below the rows of one factor stands the right-hand side, which is treated as they are.
    rows = np.concatenate([bends, wanted[None]])
    done = np.zeros((4, 3, members))
    factors, pivots, values = np.empty_like(speeds), np.empty_like(diagonal), np.empty_like(wanted)
    sides = np.empty_like(skew)
    pivot = factor = value = damping
    for i in range(bones):
        for k in range(3):
            column = speeds[:, k, i]
            row = done[:, 0] * column[0]
            row += done[:, 1] * column[1]
            row += done[:, 2] * column[2]
            taken = row[0] * column[0]
            taken += row[1] * column[1]
            taken += row[2] * column[2]
            if k == 1:
                # `factor` and `pivot` are still those of the first coordinate.
                side = sides[i] = skew[i] / pivot
                taken += skew[i] * (2.0 * dot(factor, column) + side)
                row[:3] += skew[i] * factor
                row[3] += side * value
            np.subtract(rows[:, k, i], row, out=row)
            pivot, factor, value = pivots[k, i], factors[:, k, i], row[3]
            np.subtract(diagonal[k, i], taken, out=pivot)
            np.abs(pivot, out=pivot)
            pivot += damping
            np.divide(row[:3], pivot, out=factor)
            done += row[:, None] * factor
            values[k, i] = value
    values /= pivots
    behind = np.zeros((3, members))
    for i in range(bones - 1, -1, -1):
        for k in (2, 1, 0):
            value = values[k, i]
            back = factors[:, k, i] * behind
            value -= back[0]
            value -= back[1]
            value -= back[2]
            if k == 0:
                value -= sides[i] * values[1, i]
            behind += speeds[:, k, i] * value
    return values
