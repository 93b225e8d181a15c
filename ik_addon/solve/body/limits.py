"""Joint limits during a drag: which part of a step they allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import copysign, sqrt
from typing import NamedTuple

import numpy as np

from ..maths.cones import (
    RIM,
    Cone,
    joint_rotation,
    nearest_swing,
    nearest_twist,
    swing_twist,
)
from ..maths.numbers import ONE
from ..maths.numbers import nearest_twist as nearest_turn
from ..maths.rotations import cross, dot, stacked
from ..problem import Bools, Floats, Ints

STEEPEST = 1e-3
"""Least cosine of half the swing angle to reckon with: near half a turn a swing turns the bone about itself ever
faster."""
HELD = 1e-9
"""A limit holds a coordinate back if it moves it by more than this."""

PROBE = 1e-4
"""How far to move a joint to see whether it is at a limit."""

SIDEWAYS = 1e-3
"""How far to each side the normals of a limit are compared to find its curvature."""
SHARPEST = 100.0
"""Largest curvature that a limit counts as having."""


CLEAR = 1e-6
"""A direction is independent of others if more than this fraction of it is perpendicular to them."""
IDENTITY = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
NONE = [[0.0, 0.0, 0.0]] * 3


class Bounds(NamedTuple):
    """Limits and locks that fix part of a step: how far a joint's coordinates move along certain directions."""

    normals: Floats
    """(3, 3, k) up to three directions per joint, in its coordinates; zero: none. The first two are of the swing, the
    last of the twist."""
    steps: Floats
    """(3, k) how far the coordinates move along each direction."""
    held: Bools
    """(3, k) which directions are limits; the others are locks, which always hold."""


class Opening(NamedTuple):
    """The steps that bounds leave open to joints."""

    axes: Floats
    """(m, 3, 3) rows: perpendicular unit vectors along which a joint may step, then rows of zeros."""
    fixed: Floats | None
    """(m, 3) the part of each step that limits prescribe; None: no joint has one."""
    open_: list[int]
    """Number of open directions of each joint."""
    bounds: Bounds
    """The bounds from which this was made."""
    new: Ints
    """Joints that differ from the earlier opening; all of them if there was none."""


@dataclass(frozen=True)
class JointLimits:
    """Limits of k joints. A joint that is outside at the start of a drag may stay as far outside.

    The coordinates (3, k) of joints are their swings about X and Z and their twists; see `cones`.
    """

    joints: Ints
    """(k,) joints of the tree that have limits."""
    cone: Cone
    locked: Bools
    """(3, k) coordinates that stay as they are."""
    origin: Floats
    """(3, k) where coordinates are measured from: locked ones from where they are, the others from 0."""
    excess: Floats
    """(2, k) how far outside swing and twist may be."""

    @classmethod
    def of(cls, joints: Ints, cone: Cone, locked: Bools, turns: Floats) -> JointLimits:
        """Return limits that allow joints to keep their rotations `turns` (4, k)."""
        swing, twist = swing_twist(turns)
        origin = np.where(locked, stacked(*swing, twist), 0.0)
        gap = _gap(stacked(*swing, twist) - origin, cone)
        size = np.sqrt(gap[0] * gap[0] + gap[1] * gap[1])
        return cls(joints, cone, locked, origin, stacked(size, np.abs(gap[2])))

    @cached_property
    def _each(self) -> list[_One]:
        """The limits of each joint, in plain floats."""
        cone, rows = self.cone, zip(self.locked.T.tolist(), self.origin.T.tolist(), self.excess.T.tolist(), strict=True)
        swings = zip(cone.low.T.tolist(), cone.high.T.tolist(), strict=True)
        twists = zip(cone.twist_low.tolist(), cone.twist_high.tolist(), strict=True)
        return [_One(*row, *swing, *twist) for row, swing, twist in zip(rows, swings, twists, strict=True)]

    def allowed(self, coordinates: Floats) -> Floats:
        """Return the allowed coordinates nearest to given ones (3, k)."""
        own = coordinates - self.origin
        own[self.locked] = 0.0
        swing, twist = own[:2], own[2]
        axes = np.maximum(np.where(swing < 0.0, self.cone.low, self.cone.high), 1e-12)
        level = swing / axes
        level *= level
        outside = level[0] + level[1] > 1.0
        outside |= (twist < self.cone.twist_low) | (twist > self.cone.twist_high)
        own += self.origin
        squares = own[:2] * own[:2]
        outside |= squares[0] + squares[1] > RIM * RIM
        for k in np.flatnonzero(outside).tolist():
            own[:, k] = self._each[k].allowed(*coordinates[:, k].tolist())
        return own

    def coordinates(self, turns: Floats) -> Floats:
        """Return the coordinates of joint rotations (4, k)."""
        swing, twist = swing_twist(turns)
        return stacked(*swing, twist)

    def rotation(self, coordinates: Floats) -> Floats:
        """Return the joint rotations (4, k) of coordinates."""
        return joint_rotation(coordinates[:2], coordinates[2])

    def locks(self) -> Bounds:
        """Return the bounds that hold in every step: the locks."""
        k = len(self.joints)
        bounds = Bounds(np.zeros((3, 3, k)), np.zeros((3, k)), np.zeros((3, k), dtype=bool))
        for axis in range(3):
            bounds.normals[axis, axis] = self.locked[axis]
        return bounds

    def curvatures(self, now: Floats, bounds: Bounds, joints: Ints) -> tuple[Floats, Floats]:
        """Return the curvature (j,) of the limits that hold the swings of joints (j,), and the tangents (2, j)."""
        normals, held = bounds.normals[:2, :2, joints].transpose(1, 0, 2), bounds.held[:2, joints]
        across = np.where(held, normals, 0.0).sum(axis=1)
        found = []
        for k, (x, z, twist), (p, q) in zip(joints.tolist(), now[:, joints].T.tolist(), across.T.tolist(), strict=True):
            curved, less = 0.0, None
            for side in (-SIDEWAYS, SIDEWAYS):
                u, v = x + (PROBE * p + side * -q), z + (PROBE * q + side * p)
                near = self._each[k].allowed(u, v, twist)
                u, v = u - near[0], v - near[1]
                size = sqrt(u * u + v * v)
                if not size > HELD:
                    break
                u, v = u / size, v / size
                if less is not None:
                    curved = ((u - less[0]) * -q + (v - less[1]) * p) / (2.0 * SIDEWAYS)
                less = u, v
            found.append(min(max(curved, 0.0), SHARPEST))
        return np.array(found), stacked(-across[1], across[0])

    def with_limits(self, bounds: Bounds, now: Floats, wanted: Floats, allowed: Floats) -> Bounds:
        """Return bounds with the limits added that joints would cross on the way from `now` to `wanted`.

        Args:
            bounds: to add to; returned as they are if there is nothing to add.
            now: (3, k) coordinates of the joints.
            wanted: (3, k) coordinates that a step would give them.
            allowed: (3, k) allowed coordinates nearest to the wanted ones.
        """
        gap = wanted - allowed
        gap[self.locked] = 0.0
        if not (np.abs(gap) > HELD).any():
            return bounds
        normals, steps, held = bounds.normals.copy(), bounds.steps.copy(), bounds.held.copy()
        for k in np.flatnonzero((np.abs(gap) > HELD).any(axis=0)).tolist():
            x, z, turned = gap[:, k].tolist()
            here, (p, q, r) = now[:, k].tolist(), (wanted[:, k] - now[:, k]).tolist()
            # If the joint is at its limit already, a short step along the way gives the limit's normal.
            share = min(1.0, PROBE / max(abs(p), abs(q), abs(r), 1e-30))
            near = here[0] + p * share, here[1] + q * share, here[2] + r * share
            there = self._each[k].allowed(*near)
            u, v = near[0] - there[0], near[1] - there[1]
            if max(abs(u), abs(v)) > HELD:
                x = 0.0 if self.locked[0, k] else u
                z = 0.0 if self.locked[1, k] else v
            size = sqrt(x * x + z * z)
            # A swing with one locked axis has one direction left: put its limit in the slot without a lock.
            slot = 1 if self.locked[0, k] else 0
            if size > HELD and not held[slot, k]:
                x, z = x / size, z / size
                normals[slot, :, k] = x, z, 0.0
                steps[slot, k] = x * (allowed[0, k] - here[0]) + z * (allowed[1, k] - here[1])
                held[slot, k] = True
            if abs(turned) > HELD and not held[2, k]:
                normals[2, 2, k] = copysign(1.0, turned)
                steps[2, k] = normals[2, 2, k] * (allowed[2, k] - here[2])
                held[2, k] = True
        return bounds if (held == bounds.held).all() else Bounds(normals, steps, held)


class _One(NamedTuple):
    """The limits of one joint."""

    locked: tuple[bool, bool, bool]
    origin: tuple[float, float, float]
    excess: tuple[float, float]
    low: tuple[float, float]
    high: tuple[float, float]
    twist_low: float
    twist_high: float

    def allowed(self, x: float, z: float, twist: float) -> tuple[float, float, float]:
        """Return the allowed coordinates nearest to given ones."""
        (no_x, no_z, no_twist), (from_x, from_z, from_twist), (outside, turned), low, high, *ends = self
        x, z, twist = x - from_x, z - from_z, twist - from_twist
        x, z, twist = 0.0 if no_x else x, 0.0 if no_z else z, 0.0 if no_twist else twist
        u, v = ONE.nearest_swing(x, z, low, high)
        u, v = x - u, z - v
        if u or v:
            share = max(0.0, 1.0 - outside / max(sqrt(u * u + v * v), 1e-30))
            x, z = x - u * share, z - v * share
        beyond = twist - nearest_turn(ONE, twist, *ends)
        if beyond:
            twist -= beyond * max(0.0, 1.0 - turned / max(abs(beyond), 1e-30))
        x, z, twist = x + from_x, z + from_z, twist + from_twist
        share = min(1.0, RIM / max(sqrt(x * x + z * z), 1e-30))
        return x * share, z * share, twist


def coordinate_changes(coordinates: Floats) -> Floats:
    """Return the Jacobian (3, 3, k) of coordinates (3, k) with respect to rotations about the axes at rest."""
    x, z, _ = coordinates
    p, q = x * x, z * z
    w = np.sqrt(np.maximum(1.0 - p - q, STEEPEST**2))
    both = x * z / w
    about_x = stacked(p / w + w, z, both)
    about_z = stacked(both, -x, q / w + w)
    along = stacked(-2.0 * w * z, 1.0 - 2.0 * (p + q), 2.0 * w * x)
    rows = cross(about_z, along), cross(along, about_x), cross(about_x, about_z)
    size = dot(about_x, rows[0])
    # A swing's coordinate is the sine of half its angle: about_x and about_z are half the rotations per unit of it.
    return stacked(0.5 * rows[0] / size, 0.5 * rows[1] / size, rows[2] / size)


def opening_of(joints: int, limited: Ints, changes: Floats, bounds: Bounds, earlier: Opening | None) -> Opening:
    """Return the steps that bounds leave open.

    Args:
        joints: their number m.
        limited: (k,) joints with limits.
        changes: (3, 3, k) how the coordinates of each limited joint change with its step.
        bounds: on these coordinates.
        earlier: the opening that other bounds left, with the same `changes`; only what differs is computed again.
    """
    if earlier is None:
        axes, fixed, open_ = np.empty((joints, 3, 3)), None, [3] * joints
        axes[:] = IDENTITY
        is_other = bounds.normals.any(axis=(0, 1))
    else:
        axes, fixed, open_ = earlier.axes.copy(), earlier.fixed, earlier.open_[:]
        is_other = (bounds.normals != earlier.bounds.normals).any(axis=(0, 1))
        is_other |= (bounds.steps != earlier.bounds.steps).any(axis=0)
    own = np.flatnonzero(is_other)
    chosen = limited[own]
    new = np.arange(joints) if earlier is None else chosen
    if not len(own):
        return Opening(axes, fixed, open_, bounds, new)
    normals, wanted = bounds.normals[:, :, own], bounds.steps[:, own]
    rows = (normals[:, :, None] * changes[:, :, own]).sum(axis=1)
    every, steps = [], []
    for joint, three, ways in zip(chosen.tolist(), rows.transpose(2, 0, 1).tolist(), wanted.T.tolist(), strict=True):
        closed, way = _closed(three, ways)
        every.append(_across(closed) + NONE[: len(closed)])
        steps.append(way)
        open_[joint] = 3 - len(closed)
    axes[chosen] = every
    if not bounds.steps.any():
        return Opening(axes, None, open_, bounds, new)
    fixed = np.zeros((joints, 3)) if fixed is None else fixed.copy()
    fixed[chosen] = steps
    return Opening(axes, fixed, open_, bounds, new)


def _closed(rows: Sequence[Sequence[float]], ways: Sequence[float]) -> tuple[list[list[float]], list[float]]:
    """Return perpendicular directions closed to a joint, and the step that goes the given way along each row."""
    found: list[list[float]] = []
    x, y, z = 0.0, 0.0, 0.0
    for (p, q, r), way in zip(rows, ways, strict=True):
        size = sqrt(p * p + q * q + r * r)
        if size == 0.0:
            continue
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
    """Return the perpendicular directions that complete closed ones to three."""
    if not closed:
        return IDENTITY
    if len(closed) == 3:
        return []
    x, y, z = closed[0]
    if len(closed) == 2:
        p, q, r = closed[1]
        return [[y * r - z * q, z * p - x * r, x * q - y * p]]
    # The direction is crossed with the axis that is farthest from it.
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
