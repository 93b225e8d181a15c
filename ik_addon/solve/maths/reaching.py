"""The steps of one chain to a place, in plain floats: each is one pass down the bones, with nothing but numbers.

These are the operations of `body`, `objectives` and `descent`, whose calls and tuples take two thirds of the time for
few joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, NamedTuple

from .vectors import Matrix, Vector

_IDENTITY: Matrix = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


class Reach(NamedTuple):
    """A chain that should reach a place, in a pose."""

    residual: Vector
    """From the end to the place."""
    error: float
    """Its length."""
    rows: list[tuple[float, ...]]
    """The Jacobian: how the end moves with the angles of each joint, three numbers for each component."""
    square: tuple[float, ...]
    """The lower half of its product with itself."""


def reach_of(
    bones: Sequence[Any],
    end: Vector,
    joints: Sequence[Any],
    angles: Sequence[Vector],
    halves: Sequence[float],
    place: Vector,
    least: float,
) -> Reach:
    """Return how far the end of a chain without branches is from a place, and how its joints move it.

    Args:
        bones: see `body.Bone`; all but the first inherit rotation.
        end: of the last bone, relative to it.
        joints: see `body.Joint`.
        angles: of the joints.
        halves: tangents of half the twists.
        place: where the end should be.
        least: minimum of the square of the cosine of half a swing.
    """
    turning: list[tuple[float, ...]] = []
    (j, k, m), (n, o, p), (q, r, s) = _IDENTITY
    px = py = pz = 0.0
    for (rest, (u, v, w)), (x, z, _), half, joint in zip(bones, angles, halves, joints, strict=True):
        (a, b, c), (d, e, f), (g, h, i) = rest
        if turning:
            px, py, pz = px + (j * u + k * v + m * w), py + (n * u + o * v + p * w), pz + (q * u + r * v + s * w)
            a, b, c, d, e, f, g, h, i = (
                j * a + k * d + m * g,
                j * b + k * e + m * h,
                j * c + k * f + m * i,
                n * a + o * d + p * g,
                n * b + o * e + p * h,
                n * c + o * f + p * i,
                q * a + r * d + s * g,
                q * b + r * e + s * h,
                q * c + r * f + s * i,
            )
        else:
            px, py, pz = u, v, w
        # The turn of the joint, as in `body`.
        square = half * half
        share = 1.0 / (1.0 + square)
        u, v = (1.0 - square) * share, 2.0 * half * share
        xx, zz = x * x, z * z
        rim = 1.0 - xx - zz
        w = 2.0 * sqrt(rim if rim > 0.0 else 0.0)
        dx, dz, xz = 2.0 * xx, 2.0 * zz, 2.0 * x * z
        wx, wz, left, right = w * x, w * z, 1.0 - dz, 1.0 - dx
        j, k, m = left * u - xz * v, -wz, left * v + xz * u
        n, o, p = wz * u + wx * v, right - dz, wz * v - wx * u
        q, r, s = xz * u - right * v, wx, xz * v + right * u
        j, k, m, n, o, p, q, r, s = (
            a * j + b * n + c * q,
            a * k + b * o + c * r,
            a * m + b * p + c * s,
            d * j + e * n + f * q,
            d * k + e * o + f * r,
            d * m + e * p + f * s,
            g * j + h * n + i * q,
            g * k + h * o + i * r,
            g * m + h * p + i * s,
        )
        # The axes about which the bone turns, as in `body.axes_of`.
        rim = sqrt(rim if rim > least else least)
        both = x * z / rim
        xx, zz = xx / rim + rim, zz / rim + rim
        u, v, w = joint.scale
        turning.append(
            (
                (a * xx + b * z + c * both) * u,
                (a * both - b * x + c * zz) * v,
                k * w,
                (d * xx + e * z + f * both) * u,
                (d * both - e * x + f * zz) * v,
                o * w,
                (g * xx + h * z + i * both) * u,
                (g * both - h * x + i * zz) * v,
                r * w,
                px,
                py,
                pz,
            )
        )
    u, v, w = end
    px, py, pz = px + (j * u + k * v + m * w), py + (n * u + o * v + p * w), pz + (q * u + r * v + s * w)
    u, v, w = place[0] - px, place[1] - py, place[2] - pz
    xx = yx = yy = zx = zy = zz = 0.0
    rows: list[tuple[float, ...]] = []
    for a, b, c, d, e, f, g, h, i, x, y, z in turning:
        x, y, z = px - x, py - y, pz - z
        j, k, m = d * z - g * y, e * z - h * y, f * z - i * y
        n, o, p = g * x - a * z, h * x - b * z, i * x - c * z
        q, r, s = a * y - d * x, b * y - e * x, c * y - f * x
        xx += j * j + k * k + m * m
        yx += n * j + o * k + p * m
        yy += n * n + o * o + p * p
        zx += q * j + r * k + s * m
        zy += q * n + r * o + s * p
        zz += q * q + r * r + s * s
        rows.append((j, k, m, n, o, p, q, r, s))
    return Reach((u, v, w), sqrt(u * u + v * v + w * w), rows, (xx, yx, yy, zx, zy, zz))


def step_to(
    reach: Reach, joints: Sequence[Any], angles: Sequence[Vector], damping: float, pull: float
) -> list[Vector] | None:
    """Return the step in joint angles, see `descent`; None if it takes a joint out of its limits."""
    share = pull / reach.error if reach.error > pull else 1.0
    a, b, c = reach.residual
    a, b, c = a * share, b * share, c * share
    xx, yx, yy, zx, zy, zz = reach.square
    xx, yy, zz = xx + damping, yy + damping, zz + damping
    first, second = yx / xx, zx / xx
    yy, zy = yy - first * yx, zy - second * yx
    third = zy / yy
    b, c = b - first * a, c - second * a
    c = (c - third * b) / (zz - second * zx - third * zy)
    b = b / yy - third * c
    a = a / xx - first * b - second * c
    found = []
    for (j, k, m, n, o, p, q, r, s), joint, (x, z, twist) in zip(reach.rows, joints, angles, strict=True):
        low, high, least, most, _, _, (u, v, w) = joint
        move = (j * a + n * b + q * c) * u, (k * a + o * b + r * c) * v, (m * a + p * b + s * c) * w
        x, z, twist = x + move[0], z + move[1], twist + move[2]
        u, v = low[0] if x < 0.0 else high[0], low[1] if z < 0.0 else high[1]
        u, v = x / (u if u > 1e-12 else 1e-12), z / (v if v > 1e-12 else 1e-12)
        if u * u + v * v > 1.0 or twist < least or twist > most:
            return None
        found.append(move)
    return found
