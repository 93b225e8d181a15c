"""Cost of the ends that a joint carries, as a quadratic function of the joint's twist, in plain floats."""

from __future__ import annotations

from collections.abc import Sequence

Form = list[float]
"""The cost V P V / 2 - p V of a twist V (rotation, then translation), as 27 numbers, row by row: the upper half of P's
rotation block (6), all of its mixed block (9), the upper half of its translation block (6), then p (6)."""
NOTHING: Form = [0.0] * 27


def add_place(form: Form, point: Sequence[float], gap: Sequence[float], stiffness: float) -> None:
    """Add to a form a spring that moves a point by a gap."""
    x, y, z = point
    p, q, r = stiffness * x, stiffness * y, stiffness * z
    u, v, w = gap
    form[0] += q * y + r * z
    form[1] -= p * y
    form[2] -= p * z
    form[3] += p * x + r * z
    form[4] -= q * z
    form[5] += p * x + q * y
    form[7] -= r
    form[8] += q
    form[9] += r
    form[11] -= p
    form[12] -= q
    form[13] += p
    form[15] += stiffness
    form[18] += stiffness
    form[20] += stiffness
    form[21] += q * w - r * v
    form[22] += r * u - p * w
    form[23] += p * v - q * u
    form[24] += stiffness * u
    form[25] += stiffness * v
    form[26] += stiffness * w


def add_orientation(form: Form, gap: Sequence[float], stiffness: float) -> None:
    """Add to a form a spring that turns its joint by a rotation vector."""
    form[0] += stiffness
    form[3] += stiffness
    form[5] += stiffness
    form[21] += stiffness * gap[0]
    form[22] += stiffness * gap[1]
    form[23] += stiffness * gap[2]


def add_thrust(
    form: Form,
    point: Sequence[float] | None,
    gap: Sequence[float],
    direction: Sequence[float],
    stiffness: float,
    force: float,
) -> None:
    """Replace what a spring does along a direction by a constant force.

    Without a point the spring is that of an orientation, and the force a torque.
    """
    a, b, c = direction
    force -= stiffness * (a * gap[0] + b * gap[1] + c * gap[2])
    way = (0.0, 0.0, 0.0, a, b, c)
    if point is None:
        way = (a, b, c, 0.0, 0.0, 0.0)
    else:
        x, y, z = point
        way = (y * c - z * b, z * a - x * c, x * b - y * a, a, b, c)
    at = 0
    for rows, columns in (((0, 1, 2), (0, 1, 2)), ((0, 1, 2), (3, 4, 5)), ((3, 4, 5), (3, 4, 5))):
        for row in rows:
            for column in columns:
                if rows == columns and column < row:
                    continue
                form[at] -= stiffness * way[row] * way[column]
                at += 1
    for i, part in enumerate(way):
        form[21 + i] += force * part
