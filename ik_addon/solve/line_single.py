"""The descent of one chain in plain floats: for a few chains, numpy's calls take longer than what they compute.

Every operation is that of `line_descent` in the same order, so that the result is the same to the bit. Sines come from
numpy too, because those of the standard library are not to the bit the same.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from .articulated import RIM, STEEPEST
from .cones import STEPS
from .descent import DAMPING, EXACT, GAIN, HARDEST, LONGEST, OUTSIDE, PATIENCE, ROUNDS, SOFTEST
from .line_descent import solved_symmetric
from .lines import Lines
from .problem import Floats
from .tuples import Vector, norm

Pair = tuple[float, float]
Matrix = tuple[Vector, Vector, Vector]
"""Its rows."""
_NONE = (0.0, 0.0, 0.0)


class Joint(NamedTuple):
    """What of a joint and its bone stays the same."""

    rest: Matrix
    arm: Vector
    low: Pair
    high: Pair
    twist_low: float
    twist_high: float
    ease: Vector
    units: Vector


class OnePose(NamedTuple):
    """See `lines.LinePose`."""

    zeros: list[Matrix]
    along: list[Vector]
    arms: list[Vector]
    missing: Vector


def descend_one(lines: Lines, angles: Floats, member: int, iterations: int, pull: float) -> tuple[Floats, float, int]:
    """Return the joint angles (3, n) to which one of the chains descends, what is missing, and the steps it took.

    See `line_descent.descend`; `angles` are (3, n, B).
    """
    joints, target = joints_of_one(lines, member), vector_of(lines.target[:, member].tolist())
    now = [vector_of(angle) for angle in angles[..., member].T.tolist()]
    damping, idle = DAMPING, 0
    pose = pose_of_one(joints, target, now)
    missing = norm(pose.missing)
    done = 0
    while not (missing <= EXACT or idle >= PATIENCE or done == iterations):
        move = _direction(joints, now, pose, missing, pull, damping)
        size = max([max(abs(x), abs(z), abs(twist)) for x, z, twist in move])
        share = min(1.0, LONGEST / max(size, 1e-30))
        tried = [
            inside(joint, x * share + old_x, z * share + old_z, twist * share + old)
            for joint, (x, z, twist), (old_x, old_z, old) in zip(joints, move, now, strict=True)
        ]
        there = pose_of_one(joints, target, tried)
        left, before = norm(there.missing), missing
        if left < missing:
            now, pose, missing = tried, there, left
            damping = min(max(damping * 0.2, SOFTEST), HARDEST)
        else:
            damping = min(max(damping * 6.0, SOFTEST), HARDEST)
        idle = 0 if before - missing > GAIN * min(before, pull) else idle + 1
        done += 1
    return np.array(now).T, missing, done


def joints_of_one(lines: Lines, member: int) -> list[Joint]:
    """Return what of one of the chains stays the same."""
    low, high, twist_low, twist_high = (part[..., 0].T.tolist() for part in lines.cone)
    ease = np.sqrt(lines.ease[..., 0])
    units = ease * np.array([[0.5], [0.5], [1.0]])
    parts = lines.rest[..., member].transpose(2, 0, 1), lines.arms[..., member].T, ease.T, units.T
    rests, arms, eases, of_step = (part.tolist() for part in parts)
    return [
        Joint(
            (vector_of(rests[i][0]), vector_of(rests[i][1]), vector_of(rests[i][2])),
            vector_of(arms[i]),
            low[i],
            high[i],
            twist_low[i],
            twist_high[i],
            vector_of(eases[i]),
            vector_of(of_step[i]),
        )
        for i in range(len(arms))
    ]


def vector_of(values: list[float]) -> Vector:
    """Return three numbers as a vector."""
    x, y, z = values
    return x, y, z


def pose_of_one(joints: list[Joint], target: Vector, angles: list[Vector]) -> OnePose:
    """See `lines.pose_of`."""
    halves = np.tan(np.array([0.5 * angle[2] for angle in angles])).tolist()
    zeros, along, segments = [], [], []
    frame = None
    for joint, (x, z, _), half in zip(joints, angles, halves, strict=True):
        square = half * half
        share = 1.0 / (1.0 + square)
        c, s = (1.0 - square) * share, 2.0 * half * share
        xx, zz = x * x, z * z
        w = 2.0 * sqrt(max(1.0 - xx - zz, 0.0))
        xx *= 2.0
        zz *= 2.0
        xz, wx, wz = 2.0 * x * z, w * x, w * z
        left, right = 1.0 - zz, 1.0 - xx
        local = _product(
            joint.rest,
            (
                (left * c - xz * s, -wz, left * s + xz * c),
                (wz * c + wx * s, right - zz, wz * s - wx * c),
                (xz * c - right * s, wx, xz * s + right * c),
            ),
        )
        zero, frame = (joint.rest, local) if frame is None else (_product(frame, joint.rest), _product(frame, local))
        (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = frame
        a, b, c = joint.arm
        zeros.append(zero)
        along.append((xy, yy, zy))
        segments.append((xx * a + xy * b + xz * c, yx * a + yy * b + yz * c, zx * a + zy * b + zz * c))
    arms = segments
    x, y, z = segments[-1]
    for i in range(len(segments) - 2, -1, -1):
        a, b, c = segments[i]
        x, y, z = arms[i] = a + x, b + y, c + z
    return OnePose(zeros, along, arms, (target[0] - x, target[1] - y, target[2] - z))


def _product(one: Matrix, other: Matrix) -> Matrix:
    (a, b, c), (d, e, f), (g, h, i) = one
    (j, k, m), (n, o, p), (q, r, s) = other
    return (
        (a * j + b * n + c * q, a * k + b * o + c * r, a * m + b * p + c * s),
        (d * j + e * n + f * q, d * k + e * o + f * r, d * m + e * p + f * s),
        (g * j + h * n + i * q, g * k + h * o + i * r, g * m + h * p + i * s),
    )


def inside(joint: Joint, x: float, z: float, twist: float) -> Vector:
    """See `lines.allowed_angles`."""
    x, z = nearest_swing_of_one(x, z, joint.low, joint.high)
    room = min(1.0, RIM / max(sqrt(x * x + z * z), 1e-30))
    return x * room, z * room, min(max(twist, joint.twist_low), joint.twist_high)


def _direction(
    joints: list[Joint], angles: list[Vector], pose: OnePose, missing: float, pull: float, damping: float
) -> list[Vector]:
    """See `line_descent._Descent._direction`."""
    rows = []
    for joint, angle, zero, along, arm in zip(joints, angles, *pose[:3], strict=True):
        (ax, bx, cx), (ay, by, cy), (az, bz, cz) = speeds_of_one(axes_of_one(angle, zero, along), arm)
        u, v, w = joint.ease
        rows.append(((ax * u, bx * v, cx * w), (ay * u, by * v, cy * w), (az * u, bz * v, cz * w)))
    share = min(1.0, pull / max(missing, 1e-30))
    x, y, z = pose.missing
    wanted = x * share, y * share, z * share
    found = _damped(rows, wanted, damping)
    move = [(a * u, b * v, c * w) for (a, b, c), (_, _, _, _, _, _, _, (u, v, w)) in zip(found, joints, strict=True)]
    left = rows.copy()
    fixed = [_NONE] * len(rows)
    held, stopped = [False] * len(rows), [False] * len(rows)
    for _ in range(ROUNDS):
        again = False
        for i, joint in enumerate(joints):
            angle, (x, z, twist) = angles[i], move[i]
            x, z, twist = (0.0, 0.0, angle[2] + twist) if held[i] else (angle[0] + x, angle[1] + z, angle[2] + twist)
            end = min(max(twist, joint.twist_low), joint.twist_high)
            over = twist != end and not stopped[i]
            inside = nearest_swing_of_one(x, z, joint.low, joint.high)
            off_x, off_z = x - inside[0], z - inside[1]
            leaving = max(abs(off_x), abs(off_z)) > OUTSIDE
            if not (leaving or over):
                continue
            again = True
            (ax, bx, cx), (ay, by, cy), (az, bz, cz) = left[i]
            u, v, w = joint.units
            p, q, r = fixed[i]
            if leaving:
                held[i] = True
                off_x, off_z = off_x * u, off_z * v
                size = max(sqrt(off_x * off_x + off_z * off_z), 1e-200)
                off_x, off_z = off_x / size, off_z / size
                out_x, out_y, out_z = ax * off_x + bx * off_z, ay * off_x + by * off_z, az * off_x + bz * off_z
                ax, ay, az = ax - out_x * off_x, ay - out_y * off_x, az - out_z * off_x
                bx, by, bz = bx - out_x * off_z, by - out_y * off_z, bz - out_z * off_z
                depth = off_x * ((inside[0] - angle[0]) / max(u, 1e-12))
                depth += off_z * ((inside[1] - angle[1]) / max(v, 1e-12))
                p, q = p + depth * off_x, q + depth * off_z
            if over:
                stopped[i] = True
                cx = cy = cz = 0.0
                r = (end - angle[2]) / max(w, 1e-12)
            left[i], fixed[i] = ((ax, bx, cx), (ay, by, cy), (az, bz, cz)), (p, q, r)
        if not again:
            break
        x = y = z = 0.0
        for ((ax, bx, cx), (ay, by, cy), (az, bz, cz)), (p, q, r) in zip(rows, fixed, strict=True):
            x += ax * p + bx * q + cx * r
            y += ay * p + by * q + cy * r
            z += az * p + bz * q + cz * r
        found = _damped(left, (wanted[0] - x, wanted[1] - y, wanted[2] - z), damping)
        move = [
            (u * (p + a), v * (q + b), w * (r + c))
            for (a, b, c), (p, q, r), (_, _, _, _, _, _, _, (u, v, w)) in zip(found, fixed, joints, strict=True)
        ]
    return move


def axes_of_one(angle: Vector, zero: Matrix, along: Vector) -> Matrix:
    """Return the axes, a row a component, about which a bone turns with its joint's angles, see `lines.axes_of`."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = zero
    x, z, _ = angle
    p, q = x * x, z * z
    rest = sqrt(max(1.0 - p - q, STEEPEST**2))
    both = x * z / rest
    p, q = p / rest + rest, q / rest + rest
    return (
        (xx * p + xy * z + xz * both, xx * both - xy * x + xz * q, along[0]),
        (yx * p + yy * z + yz * both, yx * both - yy * x + yz * q, along[1]),
        (zx * p + zy * z + zz * both, zx * both - zy * x + zz * q, along[2]),
    )


def speeds_of_one(axes: Matrix, arm: Vector) -> Matrix:
    """Return how a point moves, a row a component, while its arm turns about the columns of `axes`."""
    (ax, bx, cx), (ay, by, cy), (az, bz, cz) = axes
    x, y, z = arm
    return (
        (ay * z - az * y, by * z - bz * y, cy * z - cz * y),
        (az * x - ax * z, bz * x - bx * z, cz * x - cx * z),
        (ax * y - ay * x, bx * y - by * x, cx * y - cy * x),
    )


def _damped(rows: list[Matrix], wanted: Vector, damping: float) -> list[Vector]:
    """See `line_descent._damped`."""
    xx = yx = yy = zx = zy = zz = 0.0
    for (ax, bx, cx), (ay, by, cy), (az, bz, cz) in rows:
        xx += ax * ax + bx * bx + cx * cx
        yx += ay * ax + by * bx + cy * cx
        yy += ay * ay + by * by + cy * cy
        zx += az * ax + bz * bx + cz * cx
        zy += az * ay + bz * by + cz * cy
        zz += az * az + bz * bz + cz * cz
    x, y, z = solved_symmetric(xx + damping, yx, yy + damping, zx, zy, zz + damping, wanted)
    return [
        (ax * x + ay * y + az * z, bx * x + by * y + bz * z, cx * x + cy * y + cz * z)
        for (ax, bx, cx), (ay, by, cy), (az, bz, cz) in rows
    ]


def nearest_swing_of_one(x: float, z: float, low: Pair, high: Pair) -> Pair:
    """See `cones.nearest_swing`."""
    a = low[0] if x < 0.0 else high[0]
    b = low[1] if z < 0.0 else high[1]
    p, q = x / max(a, 1e-12), z / max(b, 1e-12)
    if not p * p + q * q > 1.0:
        return x, z
    aa, bb = a * a, b * b
    p, q = a * abs(x), b * abs(z)
    t = max(p - aa, q - bb, 1e-100)
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
