"""Newton's method of `polish` for chains that only have to bring their end to a place."""

from __future__ import annotations

import numpy as np

from .choice import SAME
from .lines import CROWD, LinePose, Lines, allowed_angles, axes_of, pose_of, speeds_of
from .newton import Model, newton_step
from .problem import Floats, Ints
from .rotations import cross, dot

STILL = 1e-6
"""Radians: a step that brings something and is shorter shows that there is nothing left to bring."""
ROUNDING = 1e-5
"""Radians: so does a step that brings nothing and is shorter than this."""
LONGEST = 0.5
DAMPING, SOFTEST, HARDEST = 1e-1, 1e-9, 1e3


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
    return newton_step(Model(speeds - cross(missing, axes), speeds, slope), lines.cone, lines.ease, angles, damping)
