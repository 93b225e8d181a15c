"""Damped Gauss-Newton steps on joint angles that stay inside the limits.

Levenberg-Marquardt in its dual form: few effectors, many joints, and of all steps that do the same the shortest. A
joint that a step would take out of its limits goes to their boundary and keeps only what it can do along it; the step
is then found again for the others, so that they take over what it leaves. P. Baerlocher and R. Boulic, "An inverse
kinematics architecture enforcing an arbitrary number of strict priority levels", The Visual Computer 20, 2004, doi
10.1007/s00371-004-0244-4, do so with limits that are intervals.

The pull of a distant target is cut short. So the effector goes to it on a nearly straight way, by which neighbouring
targets lead to neighbouring poses.
"""

from __future__ import annotations

import numpy as np

from .aims import Aims
from .articulated import Body, Pose, allowed_angles, pose_of, split
from .cones import nearest_swing
from .problem import Bools, Floats, Ints
from .products import applied, back_applied, solved, times_back

EXACT = 1e-8
"""Distance in chain lengths at which an effector stands on its target."""
PULL = 0.1
"""How much of what is missing, in chain lengths, a step goes after."""
LONGEST = 0.7
"""Radians that a joint may turn in one step."""
DAMPING = 1e-3
SOFTEST, HARDEST = 1e-9, 1e4
ROUNDS = 3
"""How often, at most, a step is found again without what leaves its limits: what still does is put back afterwards."""
PATIENCE, GAIN = 3, 0.1
"""Steps that bring less than `GAIN` of what they went after, after which a descent is over."""
_THOROUGH = 6, 0.005
"""The same where more than places counts: on the way to these, poles and orientations come last."""
OUTSIDE = 1e-13
"""A swing this far off the allowed ones has left them; less is rounding."""


def descend(body: Body, angles: Floats, aims: Aims, iterations: int, pull: float = PULL) -> tuple[Floats, Floats, Ints]:
    """Return joint angles from which no small change brings the effectors nearer to their aims.

    Args:
        body: B bodies.
        angles: (B, n, 3) to start from, inside the limits.
        aims: what the effectors are to do.
        iterations: cap on the steps.
        pull: how much of what is missing a step goes after.

    Returns:
        angles: (B, n, 3) inside the limits.
        cost: (B,) what is missing, the root of the weighted sum of squares.
        steps: (B,) how many were taken.
    """
    patience, gain = _THOROUGH if aims.turns or aims.bends else (PATIENCE, GAIN)
    descent = _Descent(body, angles, aims, pull)
    solved = angles.copy()
    cost, steps = np.zeros(len(angles)), np.zeros(len(angles), dtype=np.int64)
    idle = np.zeros(len(angles), dtype=np.int64)
    for done in range(iterations + 1):
        missing = np.sqrt(descent.cost)
        ended = (missing <= EXACT) | (idle >= patience)
        if done == iterations:
            ended[:] = True
        if ended.any():
            index = descent.members[ended]
            solved[index], cost[index], steps[index] = descent.angles[ended], missing[ended], done
            descent.keep(~ended)
            idle, missing = idle[~ended], missing[~ended]
        if not len(idle):
            break
        descent.step()
        idle = np.where(missing - np.sqrt(descent.cost) > gain * np.minimum(missing, pull), 0, idle + 1)
    return solved, cost, steps


class _Descent:
    """The members of a batch that are still on their way."""

    def __init__(self, body: Body, angles: Floats, aims: Aims, pull: float) -> None:
        self.members = np.arange(len(angles))
        self.body, self.angles, self.aims, self.pull = body, angles, aims, pull
        self.damping = np.full(len(angles), DAMPING)
        self.pose = pose_of(body, angles)
        self.missing = aims.missing(body, self.pose)
        self.cost = _square(self.missing)

    def keep(self, chosen: Bools) -> None:
        """Let the members go that are not chosen (B,)."""
        for name in ("members", "angles", "damping", "missing", "cost"):
            setattr(self, name, getattr(self, name)[chosen])
        self.body, self.aims = self.body.members(chosen), self.aims.members(chosen)
        self.pose = Pose(*(part[:, chosen] for part in self.pose))

    def step(self) -> None:
        """Take one step, or where it would not help none, and the next one shorter."""
        move = self._direction()
        size = np.abs(move).reshape(len(move), -1).max(axis=1)
        move *= np.minimum(1.0, LONGEST / np.maximum(size, 1e-30))[:, None, None]
        angles = allowed_angles(self.body, self.angles + move)
        pose = pose_of(self.body, angles)
        missing = self.aims.missing(self.body, pose)
        cost = _square(missing)
        better = cost < self.cost
        self.damping = np.clip(self.damping * np.where(better, 0.2, 6.0), SOFTEST, HARDEST)
        self.angles = np.where(better[:, None, None], angles, self.angles)
        self.missing = np.where(better[:, None], missing, self.missing)
        self.cost = np.where(better, cost, self.cost)
        chosen = better.reshape(1, -1, 1)
        self.pose = Pose(
            np.where(chosen[..., None], pose.zeros, self.pose.zeros),
            np.where(chosen[..., None], pose.frames, self.pose.frames),
            np.where(chosen, pose.points, self.pose.points),
        )

    def _direction(self) -> Floats:
        """Return the step (B, n, 3) in joint angles."""
        body, cone = self.body, self.body.cone
        ease = np.sqrt(body.ease)
        units = ease * [0.5, 0.5, 1.0]
        matrix = self.aims.jacobian(body, self.pose, self.angles) * ease.reshape(-1)
        left = matrix.reshape(len(matrix), -1, *ease.shape)
        wanted = self.missing * np.minimum(1.0, self.pull / np.maximum(np.sqrt(self.cost), 1e-30))[:, None]
        swing, twist = split(self.angles)
        swing_units = units.T[:2, None]
        fixed = np.zeros_like(self.angles)
        held, stopped = np.zeros(twist.shape, dtype=bool), np.zeros(twist.shape, dtype=bool)
        for rounds in range(ROUNDS + 1):
            rest = wanted - applied(matrix, fixed.reshape(len(fixed), -1))
            free = _damped(left.reshape(matrix.shape), rest, self.damping).reshape(fixed.shape)
            move = (fixed + free) * units
            ahead, turned = split(self.angles + move)
            # Those that are held stay where they were put.
            ahead = np.where(held, 0.0, ahead)
            inside, end = nearest_swing(ahead, cone), np.clip(turned, cone.twist_low, cone.twist_high)
            off = ahead - inside
            leaving = np.abs(off).max(axis=0) > OUTSIDE
            over = (turned != end) & ~stopped
            if rounds == ROUNDS or not (leaving.any() or over.any()):
                break
            held, stopped = held | leaving, stopped | over
            # Out of the cone is the way back into it, seen in the units of the step.
            normal = np.where(leaving, off * swing_units, 0.0)
            normal /= np.maximum(np.hypot(normal[0], normal[1]), 1e-200)
            way = (inside - swing) / np.maximum(swing_units, 1e-12)
            depth = normal[0] * way[0] + normal[1] * way[1]
            out = left[..., 0] * normal[0][:, None] + left[..., 1] * normal[1][:, None]
            left = left - np.stack([out * normal[0][:, None], out * normal[1][:, None], np.zeros_like(out)], axis=-1)
            left[..., 2] = np.where(over[:, None], 0.0, left[..., 2])
            fixed[..., :2] += np.moveaxis(depth * normal, 0, -1)
            fixed[..., 2] = np.where(over, (end - twist) / np.maximum(units[:, 2], 1e-12), fixed[..., 2])
        return np.asarray(move)


def _damped(matrix: Floats, wanted: Floats, damping: Floats) -> Floats:
    """Return the shortest steps (B, k) that nearly bring what is wanted (B, m), for matrices (B, m, k)."""
    square = times_back(matrix, matrix)
    diagonal = np.arange(square.shape[1])
    square[:, diagonal, diagonal] += damping[:, None]
    return back_applied(matrix, solved(square, wanted))


def _square(missing: Floats) -> Floats:
    return np.asarray(np.cumsum(missing**2, axis=1)[:, -1])
