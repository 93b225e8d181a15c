"""Newton's method for one chain in plain floats: what `line_newton` does, in the same order, to the bit."""

from __future__ import annotations

from math import sqrt

import numpy as np

from .articulated import STEEPEST, swing_curvature
from .choice import SAME
from .line_newton import DAMPING, HARDEST, LONGEST, ROUNDING, SOFTEST, STILL
from .line_single import (
    Joint,
    Matrix,
    OnePose,
    axes_of_one,
    inside,
    joints_of_one,
    pose_of_one,
    speeds_of_one,
    vector_of,
)
from .lines import Lines
from .newton import ON_RIM
from .problem import Floats
from .tuples import Vector, dot


def polish_one(lines: Lines, angles: Floats, member: int, iterations: int, still: float) -> tuple[Floats, float, int]:
    """Return the joint angles (3, n) to which one of the chains comes, what is missing, and the steps it took.

    See `line_newton.polish`; `angles` are (3, n, B).
    """
    joints, target = joints_of_one(lines, member), vector_of(lines.target[:, member].tolist())
    now = [vector_of(angle) for angle in angles[..., member].T.tolist()]
    damping = DAMPING
    pose = pose_of_one(joints, target, now)
    cost = dot(pose.missing, pose.missing)
    done, ended = 0, False
    while not (ended or done == iterations):
        move = _step(joints, now, pose, damping)
        size = max([max(abs(x), abs(z), abs(twist)) for x, z, twist in move])
        share = min(1.0, LONGEST / max(size, 1e-30))
        tried = [
            inside(joint, x * share * 0.5 + old_x, z * share * 0.5 + old_z, twist * share + old)
            for joint, (x, z, twist), (old_x, old_z, old) in zip(joints, move, now, strict=True)
        ]
        there = pose_of_one(joints, target, tried)
        left = dot(there.missing, there.missing)
        if left < cost:
            now, pose, cost = tried, there, left
            short = still if cost > SAME**2 else STILL
            damping *= 1.0 if size > LONGEST else 0.1
        else:
            short = ROUNDING
            damping *= 4.0
        damping = min(max(damping, SOFTEST), HARDEST)
        ended = size < short or damping >= HARDEST
        done += 1
    return np.array(now).T, sqrt(cost), done


class _Equation:
    """What one joint has to do with the others: the coordinates that the limits leave of it."""

    __slots__ = ("along", "bends", "diagonal", "free", "skew", "speeds", "wanted")

    def __init__(self, joint: Joint, angle: Vector, zero: Matrix, along: Vector, arm: Vector, missing: Vector) -> None:
        axes = axes_of_one(angle, zero, along)
        (ax, bx, cx), (ay, by, cy), (az, bz, cz) = axes
        (px, qx, rx), (py, qy, ry), (pz, qz, rz) = speeds_of_one(axes, arm)
        x, y, z = missing
        slope = -(px * x + py * y + pz * z), -(qx * x + qy * y + qz * z), -(rx * x + ry * y + rz * z)
        speeds = (px, py, pz), (qx, qy, qz), (rx, ry, rz)
        bends = (
            (px - (y * az - z * ay), py - (z * ax - x * az), pz - (x * ay - y * ax)),
            (qx - (y * bz - z * by), qy - (z * bx - x * bz), qz - (x * by - y * bx)),
            (rx - (y * cz - z * cy), ry - (z * cx - x * cz), rz - (x * cy - y * cx)),
        )
        (first_along, second_along), across, self.free = _room(joint, angle, slope)
        swing_x, swing_z, _ = angle
        rest = max(1.0 - swing_x * swing_x - swing_z * swing_z, STEEPEST**2)
        first, second, both = swing_curvature(swing_x, swing_z, rest, slope)
        self.along = first_along, second_along
        self.speeds = _along(speeds, first_along, second_along)
        self.bends = _along(bends, first_along, second_along)
        self.wanted = -(slope[0] * first_along + slope[1] * second_along), -slope[1], -slope[2]
        on_first = dot(self.bends[0], self.speeds[0])
        on_first += across + first_along * first_along * first + second_along * second_along * second
        on_first += 2.0 * first_along * second_along * both
        on_second = dot(self.bends[1], self.speeds[1]) + second
        self.diagonal = on_first, on_second, dot(self.bends[2], self.speeds[2])
        self.skew = 0.0
        if self.free[0] and self.free[1]:
            self.skew = 0.5 * (dot(self.bends[1], self.speeds[0]) - dot(self.bends[0], self.speeds[1])) + both


def _step(joints: list[Joint], angles: list[Vector], pose: OnePose, damping: float) -> list[Vector]:
    """See `newton.newton_step`."""
    equations = [
        _Equation(*parts, pose.missing) for parts in zip(joints, angles, pose.zeros, pose.along, pose.arms, strict=True)
    ]
    return [
        (x * equation.along[0], x * equation.along[1] + z, twist)
        for (x, z, twist), equation in zip(_solved(equations, damping), equations, strict=True)
    ]


def _room(joint: Joint, angle: Vector, slope: Vector) -> tuple[tuple[float, float], float, tuple[bool, bool, bool]]:
    """See `newton._room`: the direction along the rim, the curvature across it, and which coordinates are free."""
    x, z, twist = angle
    free_x, free_z, free_twist = (ease > 0.0 for ease in joint.ease)
    half_x = joint.low[0] if x < 0.0 or (x == 0.0 and slope[0] > 0.0) else joint.high[0]
    half_z = joint.low[1] if z < 0.0 or (z == 0.0 and slope[1] > 0.0) else joint.high[1]
    safe_x, safe_z = max(half_x, 1e-9), max(half_z, 1e-9)
    share_x, share_z = x / safe_x * free_x, z / safe_z * free_z
    room_x, room_z = free_x and not (half_x <= 0.0 and x == 0.0), free_z and not (half_z <= 0.0 and z == 0.0)
    at_low, at_high = twist <= joint.twist_low and slope[2] > 0.0, twist >= joint.twist_high and slope[2] < 0.0
    room_twist = free_twist and not (at_low or at_high)
    if share_x * share_x + share_z * share_z > 1.0 - ON_RIM:
        a, b = share_x / safe_x, share_z / safe_z
        size = max(sqrt(a * a + b * b), 1e-200)
        a, b = a / size, b / size
        push = -(a * slope[0] + b * slope[1])
        if push > 0.0:
            over, under = b / safe_x, a / safe_z
            bend = push * (over * over + under * under) / size / 2.0
            return (-b * room_x, a * room_z), bend, (room_x or room_z, False, room_twist)
    return (1.0 * room_x, 0.0), 0.0, (room_x, room_z, room_twist)


def _along(values: Matrix, first: float, second: float) -> Matrix:
    (ax, ay, az), (bx, by, bz), twist = values
    return (ax * first + bx * second, ay * first + by * second, az * first + bz * second), values[1], twist


def _solved(equations: list[_Equation], damping: float) -> list[Vector]:
    """See `newton._solved`."""
    a = b = c = d = e = f = g = h = i = u = v = w = 0.0
    taken_up = []
    for equation in equations:
        side, pivot, value, p, q, r = 0.0, 1.0, 0.0, 0.0, 0.0, 0.0
        for k in range(3):
            if not equation.free[k]:
                continue
            x, y, z = equation.speeds[k]
            row_x, row_y, row_z, row = (
                a * x + b * y + c * z,
                d * x + e * y + f * z,
                g * x + h * y + i * z,
                u * x + v * y + w * z,
            )
            taken = row_x * x + row_y * y + row_z * z
            if k == 1:
                skew = equation.skew
                side = skew / pivot
                taken += skew * (2.0 * (p * x + q * y + r * z) + side)
                row_x, row_y, row_z, row = row_x + skew * p, row_y + skew * q, row_z + skew * r, row + side * value
            bend_x, bend_y, bend_z = equation.bends[k]
            row_x, row_y, row_z, value = bend_x - row_x, bend_y - row_y, bend_z - row_z, equation.wanted[k] - row
            pivot = abs(equation.diagonal[k] - taken) + damping
            p, q, r = row_x / pivot, row_y / pivot, row_z / pivot
            a, b, c = a + row_x * p, b + row_x * q, c + row_x * r
            d, e, f = d + row_y * p, e + row_y * q, f + row_y * r
            g, h, i = g + row_z * p, h + row_z * q, i + row_z * r
            u, v, w = u + value * p, v + value * q, w + value * r
            taken_up.append((value / pivot, p, q, r, equation.speeds[k], side))
    found: list[Vector] = []
    x = y = z = 0.0
    for equation in reversed(equations):
        values = [0.0, 0.0, 0.0]
        side = 0.0
        for k in (2, 1, 0):
            if not equation.free[k]:
                continue
            value, p, q, r, (a, b, c), later = taken_up.pop()
            value -= p * x + q * y + r * z
            if k == 0:
                value -= side * values[1]
            elif k == 1:
                side = later
            x, y, z = x + a * value, y + b * value, z + c * value
            values[k] = value
        found.append((values[0], values[1], values[2]))
    return found[::-1]
