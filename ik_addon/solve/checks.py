"""Check that the arrays and settings of a problem are valid and fit together."""

from __future__ import annotations

import numpy as np

from .problem import Limits, Problem


def checked_shape(problem: Problem) -> tuple[int, int]:
    """Return the numbers of bones and of members, or raise ValueError naming what does not fit."""
    shape = np.shape(problem.joints)
    goals = problem.goals
    if len(shape) != 3 or shape[2] != 3 or shape[1] < 1 + len(goals):
        ends = f"{len(goals)}" if len(goals) > 1 else "1"
        raise ValueError(f"joints must have the shape (B, n+{ends}, 3) with n of at least 1, not {shape}")
    members, bones = shape[0], shape[1] - len(goals)
    wanted = [
        ("frames", problem.frames, (members, bones, 3, 3)),
        ("inherits", problem.inherits, (bones,)),
        ("bend_side", problem.bend_side, (members, 3)),
        ("folds", problem.folds, (members, bones, 3)),
        ("plane", problem.plane, (members, 3)),
        ("stretch_weights", problem.stretch_weights, (bones,)),
        ("parents", problem.parents, (bones,)),
        ("stiffness", problem.stiffness, (bones, 3)),
    ]
    for e, goal in enumerate(goals):
        name = f"others[{e - 1}]" if e else "goal"
        wanted.append((f"{name}.target", goal.target, (members, 3)))
        wanted.append((f"{name}.pole", goal.pole, (members, 3)))
        wanted.append((f"{name}.rotation", goal.rotation, (members, 3, 3)))
        if goal.segment is not None and not 0 <= goal.segment < bones:
            raise ValueError(f"{name}.segment must be the index of one of the {bones} bones, not {goal.segment}")
        if not (np.isfinite(goal.weight) and goal.weight > 0.0):
            raise ValueError(f"{name}.weight must be greater than 0, not {goal.weight}")
    limits = problem.limits
    if limits is not None:
        wanted += [
            ("limits.rest", limits.rest, (members, bones, 3, 3) if np.ndim(limits.rest) == 4 else (bones, 3, 3)),
            ("limits.root", limits.root, (members, 3, 3)),
            ("limits.cones", limits.cones, (bones, 4)),
            ("limits.twist", limits.twist, (bones, 2)),
        ]
    for name, array, expected in wanted:
        if array is not None and np.shape(array) != expected:
            raise ValueError(f"{name} must have the shape {expected} to go with the joints, not {np.shape(array)}")
    if limits is not None:
        check_ranges(limits)
    if problem.parents is not None and (np.asarray(problem.parents) >= np.arange(bones)).any():
        raise ValueError("parents must name an earlier bone for each bone, or -1")
    _check_settings(problem, members)
    return bones, members


def _check_settings(problem: Problem, members: int) -> None:
    """Raise ValueError, naming the setting, if one is not valid."""
    stiffness = problem.stiffness
    if stiffness is not None and not ((np.asarray(stiffness) >= 0.0) & (np.asarray(stiffness) < 1.0)).all():
        raise ValueError("stiffness must be at least 0 and less than 1")
    if not -1.0 <= problem.bend_lead <= 1.0:
        raise ValueError("bend_lead must be between -1 and 1")
    per_member = [
        *(("goal.pole_angle", goal.pole_angle) for goal in problem.goals),
        ("softness", problem.softness),
        ("push_limit", problem.push_limit),
        ("tolerance", problem.tolerance),
    ]
    for name, value in per_member:
        if value is not None and np.shape(value) not in ((), (members,)):
            raise ValueError(f"{name} must be one number or have the shape ({members},), not {np.shape(value)}")
    if ((np.asarray(problem.softness) < 0) | (np.asarray(problem.softness) > 1)).any():
        raise ValueError("softness must be between 0 and 1")
    if (np.asarray(problem.push_limit) < 0).any() or (np.asarray(problem.tolerance) < 0).any():
        raise ValueError("push_limit and tolerance must not be negative")
    if problem.iterations < 0:
        raise ValueError("iterations must not be negative")
    weights = problem.stretch_weights
    if weights is not None and not (np.isfinite(weights).all() and (np.asarray(weights) >= 0).all()):
        raise ValueError("stretch_weights must be finite and not negative")


def check_ranges(limits: Limits) -> None:
    """Raise ValueError, naming joint and axis, if a range of limits is not valid."""
    ranges = np.concatenate([limits.cones, limits.twist], axis=1).astype(np.float64)
    wrong = ~((ranges[:, ::2] <= 0.0) & (ranges[:, 1::2] >= 0.0)).all(axis=1)
    for joint, values in zip(np.flatnonzero(wrong), ranges[wrong], strict=True):
        for axis, low, high in zip("XZY", values[::2], values[1::2], strict=True):
            if np.isnan(low) or np.isnan(high):
                raise ValueError(f"joint {joint}: a limit about {axis} is not a number")
            if low > high:
                raise ValueError(f"joint {joint}: the least rotation about {axis} is above the greatest")
            if low > 0.0 or high < 0.0:
                raise ValueError(f"joint {joint}: the limits about {axis} do not contain the rest pose")
    if np.ndim(limits.rest) == 3 and not np.isfinite(limits.rest).all():
        raise ValueError("limits.rest must be finite")
