"""Joint limits: elliptical cones for the swing of a joint and an interval for its twist.

A joint rotation, measured from rest, is a twist about the bone's Y axis followed by the swing, the smallest rotation
that takes Y to its new direction. The swing's axis lies in the XZ plane; its components times the sine of half the
angle are the swing's coordinates, in which Blender's own IK also measures limits. They map all directions onto the
unit disc: rest in the middle, a rotation by 180 degrees on the rim. The four angles of a cone are the half-axes of an
ellipse per quadrant, after A. Aristidou and J. Lasenby, doi 10.1016/j.gmod.2011.05.003; in these coordinates every
angle up to 180 degrees is an ordinary point, and an axis without limit makes a strip.

Swings are (2, ...), about X and about Z; twists (...) are radians; quaternions (4, ...) have w first.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ..problem import Bools, Floats
from .rotations import dot, norm, stacked

_UNLIMITED = 1e8
"""The half-axis of an ellipse for an axis without limit: the ellipse is a strip."""
STEPS = 6
"""Maximum number of Newton steps to the nearest point of an ellipse."""
RIM = 1.0 - 1e-7
"""The largest swing: just short of half a turn, where swing and twist cannot be told apart."""
TIE = 1e-9
"""Limits whose distances differ by no more than this, in radians or as cosines, are equally near: half a turn away,
where a joint may be exactly, rounding would choose between them."""
_AT = 1e-6
"""A joint is at a limit if it is within about this fraction of it."""


class Cone(NamedTuple):
    """The allowed rotations of joints, as arrays that broadcast against theirs."""

    low: Floats
    """(2, ...) half-axes for negative rotations about X and Z; 0: locked, `_UNLIMITED`: free."""
    high: Floats
    """(2, ...) half-axes for positive rotations about X and Z."""
    twist_low: Floats
    """(...) smallest twist in radians, at most 0; -inf: free."""
    twist_high: Floats
    """(...) largest twist in radians, at least 0; inf: free."""


def cone_of(angles: Floats, twist: Floats) -> Cone:
    """Return the cones of joints.

    Args:
        angles: (n, 4) minimum and maximum rotation about X, then about Z, in radians; infinite: no limit.
        twist: (n, 2) minimum and maximum twist.
    """
    half = np.sin(np.minimum(np.abs(angles), np.pi) / 2.0)
    axes = np.where(np.isfinite(angles), half, _UNLIMITED).T
    free = np.abs(twist) >= np.pi
    low, high = np.where(free, np.copysign(np.inf, [-1.0, 1.0]), twist).T
    # An interval with one open side has only one end on the circle: close it at half a turn.
    low = np.where(np.isinf(low) & np.isfinite(high), -np.pi, low)
    high = np.where(np.isinf(high) & np.isfinite(low), np.pi, high)
    return Cone(axes[::2], axes[1::2], low, high)


def swing_twist(q: Floats) -> tuple[Floats, Floats]:
    """Return the swings (2, ...) and the twists (...), from -pi to pi, of unit quaternions (4, ...)."""
    w, x, y, z = np.where(q[0] < 0.0, -q, q)
    size = np.hypot(w, y)
    safe = np.maximum(size, 1e-200)
    cosine, sine = np.where(size > 0.0, w / safe, 1.0), y / safe
    return stacked(x * cosine + z * sine, z * cosine - x * sine), 2.0 * np.arctan2(sine, cosine)


def joint_rotation(swing: Floats, twist: Floats) -> Floats:
    """Return the unit quaternions (4, ...) of swings (2, ...), inside the unit disc, after twists (...)."""
    x, z = swing
    rest = np.sqrt(np.maximum(1.0 - x * x - z * z, 0.0))
    cosine, sine = np.cos(twist / 2.0), np.sin(twist / 2.0)
    return stacked(rest * cosine, x * cosine - z * sine, rest * sine, z * cosine + x * sine)


def nearest_swing(swing: Floats, cone: Cone) -> Floats:
    """Return the points (2, ...) of the cones that are nearest to swings (2, ...), in the plane of the swings."""
    axes = np.where(swing < 0.0, cone.low, cone.high)
    outside = np.flatnonzero(_level(swing, axes) > 1.0)
    if not len(outside):
        return swing
    nearest = swing.copy()
    flat = nearest.reshape(2, -1)
    flat[:, outside] = _nearest_of_ellipse(flat[:, outside], axes.reshape(2, -1)[:, outside])
    return nearest


def nearest_swing_of_one(
    x: float, z: float, low: tuple[float, float], high: tuple[float, float]
) -> tuple[float, float]:
    """Return the point of a cone that is nearest to a swing; see `nearest_swing`."""
    a = low[0] if x < 0.0 else high[0]
    b = low[1] if z < 0.0 else high[1]
    # Not `max`, which takes longer than all the rest.
    p, q = x / (a if a > 1e-12 else 1e-12), z / (b if b > 1e-12 else 1e-12)
    if not p * p + q * q > 1.0:
        return x, z
    aa, bb = a * a, b * b
    p, q = a * abs(x), b * abs(z)
    t = max(p - aa, q - bb, sqrt(p * p + q * q) - max(aa, bb), 1e-100)
    for _ in range(STEPS):
        along, across = p / (t + aa), q / (t + bb)
        level = along * along + across * across
        over = sqrt(level) - 1.0
        if not over > 0.0:
            break
        t += level * over / max(along * along / (t + aa) + across * across / (t + bb), 1e-200)
    x, z = x * (aa / (t + aa)), z * (bb / (t + bb))
    p, q = x / max(a, 1e-12), z / max(b, 1e-12)
    size = sqrt(max(p * p + q * q, 1.0))
    return x / size, z / size


def nearest_direction(swing: Floats, cone: Cone) -> Floats:
    """Return the points (2, ...) of the cones nearest in direction to swings (2, ...), also the other way round.

    Beyond half a turn the opposite side of the cone may be nearer than the side that the swing left.
    """
    near, behind = nearest_swing(swing, cone), nearest_swing(-swing, cone)
    there = _direction(swing)
    return np.where(dot(there, _direction(behind)) > dot(there, _direction(near)) + TIE, behind, near)


def nearest_twist(twist: Floats, cone: Cone) -> Floats:
    """Return the allowed twists (...) nearest on the circle to twists (...), from -pi to pi."""
    over = np.maximum(cone.twist_low - twist, twist - cone.twist_high)
    if not (over > 0.0).any():
        return twist
    past_low = _arc(twist - np.where(np.isinf(cone.twist_low), 0.0, cone.twist_low))
    past_high = _arc(twist - np.where(np.isinf(cone.twist_high), 0.0, cone.twist_high))
    return np.where(over <= 0.0, twist, np.where(past_low < past_high - TIE, cone.twist_low, cone.twist_high))


def clamp(q: Floats, cone: Cone) -> Floats:
    """Return the allowed joint rotations (4, ...) nearest to unit quaternions (4, ...), swing and twist each."""
    swing, twist = swing_twist(q)
    return joint_rotation(nearest_direction(swing, cone), nearest_twist(twist, cone))


def violation(q: Floats, cone: Cone) -> Floats:
    """Return how far (...) unit quaternions (4, ...) are outside their cones, in radians of swing or of twist."""
    swing, twist = swing_twist(q)
    chord = norm(_direction(swing) - _direction(nearest_direction(swing, cone)))
    over = 2.0 * np.arcsin(np.minimum(chord / 2.0, 1.0))
    return np.maximum(over, _arc(twist - nearest_twist(twist, cone)))


def at_limit(swing: Floats, twist: Floats, cone: Cone) -> Bools:
    """Return which swings (2, ...) or twists (...) are at a limit of their joint; locked axes do not count."""
    axes = np.where(swing < 0.0, cone.low, cone.high)
    room = cone.low + cone.high > 0.0
    swung = room.any(axis=0) & (_level(np.where(room, swing, 0.0), np.where(room, axes, 1.0)) > 1.0 - _AT)
    # Where rest itself is the limit, as in a knee that does not bend back, no ellipse shows it.
    at_rest = ((cone.low == 0.0) & (swing <= _AT)) | ((cone.high == 0.0) & (swing >= -_AT))
    swung |= (room & at_rest).any(axis=0)
    turned = (twist <= cone.twist_low + _AT) | (twist >= cone.twist_high - _AT)
    return np.asarray(swung | (turned & (cone.twist_high > cone.twist_low)))


def _level(swing: Floats, axes: Floats) -> Floats:
    """Return the square of the factor (...) by which the ellipses must grow to pass through the swings."""
    share = swing / np.maximum(axes, 1e-12)
    return np.asarray(share[0] ** 2 + share[1] ** 2)


def _nearest_of_ellipse(point: Floats, axes: Floats) -> Floats:
    """Return the points (2, k) nearest to points outside ellipses with half-axes (2, k), one of which may be 0.

    The nearest point is axes^2 * point / (t + axes^2) for the t that puts it on the ellipse. Newton's method gets there
    from the left without ever passing it, and sooner when it looks for the zero of one minus the inverse of the level's
    root, which is nearly a straight line (J. Moré and D. Sorensen, "Computing a trust region step", doi
    10.1137/0904038). It starts from the t for which both half-axes are as long as the longer one: for circles, the
    solution.
    """
    size, square = axes * np.abs(point), axes**2
    t = np.sqrt(size[0] * size[0] + size[1] * size[1]) - np.maximum(square[0], square[1])
    t = np.maximum(np.maximum(np.maximum(size[0] - square[0], size[1] - square[1]), t), 1e-100)
    for _ in range(STEPS):
        below = t + square
        share = size / below
        share *= share
        level = share[0] + share[1]
        over = np.maximum(np.sqrt(level) - 1.0, 0.0)
        if not over.any():
            break
        slope = share / below
        t = t + level * over / np.maximum(slope[0] + slope[1], 1e-200)
    near = point * (square / (t + square))
    return np.asarray(near / np.sqrt(np.maximum(_level(near, axes), 1.0)))


def _arc(angle: Floats) -> Floats:
    """Return the lengths (...) of the shorter arcs of angles (...)."""
    return np.asarray(np.abs(angle - 2.0 * np.pi * np.round(angle / (2.0 * np.pi))))


def _direction(swing: Floats) -> Floats:
    """Return where swings (2, ...) take the Y axis, (3, ...)."""
    square = swing[0] ** 2 + swing[1] ** 2
    double = 2.0 * np.sqrt(np.maximum(1.0 - square, 0.0))
    return np.stack([-double * swing[1], 1.0 - 2.0 * square, double * swing[0]])
