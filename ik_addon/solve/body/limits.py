"""The limits of a body's joints during a drag: what of a step they allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from ..maths.cones import RIM, Cone, joint_rotation, nearest_swing, nearest_twist, swing_twist
from ..maths.rotations import cross, dot, stacked
from ..problem import Bools, Floats, Ints

STEEPEST = 1e-3
"""Near half a turn a swing turns the bone about itself ever faster; from this cosine of the half angle on no more."""
HELD = 1e-9
"""A coordinate that a limit moves by more than this is held back by it."""

PROBE = 1e-4
"""How far a joint is moved to see whether it stands at a limit."""

SIDEWAYS = 1e-3
"""How far beside each other two places are whose normals show how a limit is curved."""
SHARPEST = 100.0
"""Limits count as curved by no more than this."""


CLEAR = 1e-6
"""What is left of a direction beside others, as a part of it, that counts as one of its own."""
IDENTITY = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


class Bounds(NamedTuple):
    """The limits that hold joints back in a step: their coordinates move by so much along directions."""

    normals: Floats
    """(3, 3, k) directions of coordinates; zero: none. The first two are of swings, the last of the twist."""
    steps: Floats
    """(3, k) how far along."""
    held: Bools
    """(3, k) those that are limits; the others are locks, which hold always."""


class Opening(NamedTuple):
    """What bounds leave open to joints."""

    axes: Floats
    """(m, 3, 3) rows: perpendicular directions of steps that are open; zero: no more."""
    closed: Floats
    """(m, 3, 3) 1 on the diagonal for each that is zero."""
    fixed: Floats | None
    """(m, 3) the steps that limits ask for; None: none."""


@dataclass(frozen=True)
class JointLimits:
    """Limits of k joints, and how far outside of them they may be, because they were in the beginning.

    The coordinates (3, k) of a joint are its swing about X and Z and its twist, see `cones`.
    """

    joints: Ints
    """(k,) which joints of a tree they are of."""
    cone: Cone
    locked: Bools
    """(3, k) coordinates that stay as they are."""
    origin: Floats
    """(3, k) from where coordinates are measured: locked ones from where they are."""
    excess: Floats
    """(2, k) how far swing and twist may be outside."""

    @classmethod
    def of(cls, joints: Ints, cone: Cone, locked: Bools, turns: Floats) -> JointLimits:
        """Let joints that have rotations (4, k) keep them."""
        swing, twist = swing_twist(turns)
        origin = np.where(locked, stacked(*swing, twist), 0.0)
        gap = _gap(stacked(*swing, twist) - origin, cone)
        size = np.sqrt(gap[0] * gap[0] + gap[1] * gap[1])
        return cls(joints, cone, locked, origin, stacked(size, np.abs(gap[2])))

    def allowed(self, coordinates: Floats) -> Floats:
        """Return the allowed coordinates nearest to others (3, k)."""
        own = coordinates - self.origin
        own[self.locked] = 0.0
        gap = _gap(own, self.cone)
        if gap.any():
            size = np.sqrt(gap[0] * gap[0] + gap[1] * gap[1])
            share = np.maximum(0.0, 1.0 - self.excess[0] / np.maximum(size, 1e-30))
            beyond = np.abs(gap[2])
            turned = np.maximum(0.0, 1.0 - self.excess[1] / np.maximum(beyond, 1e-30))
            own -= gap * stacked(share, share, turned)
        own += self.origin
        size = np.sqrt(own[0] * own[0] + own[1] * own[1])
        own[:2] *= np.minimum(1.0, RIM / np.maximum(size, 1e-30))
        return np.asarray(own)

    def coordinates(self, turns: Floats) -> Floats:
        """Return the coordinates of joint rotations (4, k)."""
        swing, twist = swing_twist(turns)
        return stacked(*swing, twist)

    def rotation(self, coordinates: Floats) -> Floats:
        """Return the joint rotations (4, k) of coordinates."""
        return joint_rotation(coordinates[:2], coordinates[2])

    def locks(self) -> Bounds:
        """Return what holds in every step."""
        k = len(self.joints)
        bounds = Bounds(np.zeros((3, 3, k)), np.zeros((3, k)), np.zeros((3, k), dtype=bool))
        for axis in range(3):
            bounds.normals[axis, axis] = self.locked[axis]
        return bounds

    def curvatures(self, now: Floats, bounds: Bounds) -> tuple[Floats, Floats]:
        """Return how the limits that hold swings are curved (k,), and the directions (2, k) along them."""
        held = np.where(bounds.held[:2], bounds.normals[:2, :2].transpose(1, 0, 2), 0.0).sum(axis=1)
        along = stacked(-held[1], held[0])
        normals = []
        for side in (-SIDEWAYS, SIDEWAYS):
            beside = now.copy()
            beside[:2] += PROBE * held + side * along
            gap = (beside - self.allowed(beside))[:2]
            size = np.sqrt(gap[0] * gap[0] + gap[1] * gap[1])
            normals.append(gap / np.where(size > HELD, size, np.inf))
        less, more = normals
        curved = ((more - less) * along).sum(axis=0) / (2.0 * SIDEWAYS)
        is_clear = (less != 0.0).any(axis=0) & (more != 0.0).any(axis=0)
        return np.where(is_clear, np.clip(curved, 0.0, SHARPEST), 0.0), along

    def with_limits(self, bounds: Bounds, now: Floats, wanted: Floats, allowed: Floats) -> Bounds:
        """Return these and the limits that coordinates would leave on their way from `now` to `wanted` (3, k).

        Those allowed that are nearest to the wanted ones are `allowed`.
        """
        gap = wanted - allowed
        gap[self.locked] = 0.0
        if not (np.abs(gap) > HELD).any():
            return bounds
        on_edge = allowed - now
        # Where a joint stands at its limit already, that is where the limit points.
        near = now + (wanted - now) * np.minimum(1.0, PROBE / np.maximum(np.abs(wanted - now).max(axis=0), 1e-30))
        first = near - self.allowed(near)
        size = np.abs(first)
        gap[:2] = np.where(size[:2].max(axis=0) > HELD, first[:2], gap[:2])
        gap[self.locked] = 0.0
        swing = np.sqrt(gap[0] * gap[0] + gap[1] * gap[1])
        # A swing with a lock has one direction left; its limit goes where the lock is not.
        slot = np.where(self.locked[0], 1, 0)
        is_new = (swing > HELD) & ~bounds.held[slot, np.arange(len(slot))]
        turning = (np.abs(gap[2]) > HELD) & ~bounds.held[2]
        if not (is_new.any() or turning.any()):
            return bounds
        normals, steps, held = bounds.normals.copy(), bounds.steps.copy(), bounds.held.copy()
        for k in np.flatnonzero(is_new):
            normal = gap[:2, k] / swing[k]
            normals[slot[k], :2, k] = normal
            normals[slot[k], 2, k] = 0.0
            steps[slot[k], k] = normal[0] * on_edge[0, k] + normal[1] * on_edge[1, k]
            held[slot[k], k] = True
        for k in np.flatnonzero(turning):
            normals[2, 2, k] = np.sign(gap[2, k])
            steps[2, k] = normals[2, 2, k] * on_edge[2, k]
            held[2, k] = True
        return Bounds(normals, steps, held)


def coordinate_changes(coordinates: Floats) -> Floats:
    """Return how coordinates (3, k) change with a rotation about the axes of the rest frame, (3, 3, k), rows first."""
    x, z, _ = coordinates
    p, q = x * x, z * z
    w = np.sqrt(np.maximum(1.0 - p - q, STEEPEST**2))
    both = x * z / w
    about_x = stacked(p / w + w, z, both)
    about_z = stacked(both, -x, q / w + w)
    along = stacked(-2.0 * w * z, 1.0 - 2.0 * (p + q), 2.0 * w * x)
    rows = cross(about_z, along), cross(along, about_x), cross(about_x, about_z)
    size = dot(about_x, rows[0])
    # The unit of a swing's coordinate is taken as half a radian.
    return stacked(0.5 * rows[0] / size, 0.5 * rows[1] / size, rows[2] / size)


def opening_of(joints: int, limited: Ints, changes: Floats, bounds: Bounds) -> Opening:
    """Return what bounds leave open.

    Args:
        joints: m.
        limited: (k,) those with bounds.
        changes: (3, 3, k) how the coordinates of each of them change with its step.
        bounds: of these coordinates.
    """
    axes, shut, fixed = np.empty((joints, 3, 3)), np.zeros((joints, 3, 3)), None
    axes[:] = IDENTITY
    own = np.flatnonzero(bounds.normals.any(axis=(0, 1)))
    if not len(own):
        return Opening(axes, shut, None)
    normals, wanted = bounds.normals[:, :, own], bounds.steps[:, own]
    rows = (normals[:, :, None] * changes[:, :, own]).sum(axis=1)
    every, diagonals, steps = [], [], []
    for three, ways in zip(rows.transpose(2, 0, 1).tolist(), wanted.T.tolist(), strict=True):
        closed, way = _closed(three, ways)
        every.append([*_across(closed), *([0.0, 0.0, 0.0] for _ in closed)])
        diagonals.append([float(i >= 3 - len(closed)) for i in range(3)])
        steps.append(way)
    axes[limited[own]] = every
    shut[limited[own]] = np.array(diagonals)[:, :, None] * np.eye(3)
    if wanted.any():
        fixed = np.zeros((joints, 3))
        fixed[limited[own]] = steps
    return Opening(axes, shut, fixed)


def _closed(rows: Sequence[Sequence[float]], ways: Sequence[float]) -> tuple[list[list[float]], list[float]]:
    """Directions closed to a joint, perpendicular to each other, and the step that goes a way along each row."""
    found: list[list[float]] = []
    x, y, z = 0.0, 0.0, 0.0
    for (p, q, r), way in zip(rows, ways, strict=True):
        size = sqrt(p * p + q * q + r * r)
        left = way - (p * x + q * y + r * z)
        for a, b, c in found:
            along = p * a + q * b + r * c
            p, q, r = p - along * a, q - along * b, r - along * c
        length = sqrt(p * p + q * q + r * r)
        if length > CLEAR * max(size, 1e-200):
            p, q, r = p / length, q / length, r / length
            x, y, z = x + left / length * p, y + left / length * q, z + left / length * r
            found.append([p, q, r])
    return found, [x, y, z]


def _across(closed: list[list[float]]) -> list[list[float]]:
    """Directions perpendicular to others and to each other, so that there are three in all."""
    if not closed:
        return IDENTITY
    if len(closed) == 3:
        return []
    x, y, z = closed[0]
    if len(closed) == 2:
        p, q, r = closed[1]
        return [[y * r - z * q, z * p - x * r, x * q - y * p]]
    # Beside the axis that is farthest from it.
    if abs(x) <= abs(y) and abs(x) <= abs(z):
        p, q, r = 0.0, z, -y
    elif abs(y) <= abs(z):
        p, q, r = -z, 0.0, x
    else:
        p, q, r = y, -x, 0.0
    size = sqrt(p * p + q * q + r * r)
    p, q, r = p / size, q / size, r / size
    return [[p, q, r], [y * r - z * q, z * p - x * r, x * q - y * p]]


def _gap(own: Floats, cone: Cone) -> Floats:
    swing = own[:2] - nearest_swing(own[:2], cone)
    return stacked(*swing, own[2] - nearest_twist(own[2], cone))
