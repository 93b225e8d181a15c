"""The least cost of a tree of joints, found by one sweep from its ends to its root and one back, in plain floats.

What a joint, and all below it, costs depends on nothing but how the joint above it moves: on a twist, which is a
rotation in space and the way of the point in the origin. So of all that is below it a joint needs no more than a form:
the cost as a quadratic function of a twist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Form = list[float]
"""A cost V P V / 2 - p V of a twist V: P, the upper half of its three blocks or all of the mixed one, row by row, then
p."""
Six = tuple[float, float, float, float, float, float]
Column = Sequence[float]
"""What one unknown does: the twist that a unit of it brings (6), and the force (3) by which the rotation above the
joint asks for less of it."""

NOTHING: Form = [0.0] * 27


class Joint(NamedTuple):
    """What a joint may do, in unknowns that are open to it."""

    columns: Sequence[Column]
    """Of each unknown."""
    own: Sequence[Sequence[float]]
    """What unknowns cost by themselves, a symmetric matrix, less what their columns say of each other."""
    right: Sequence[float]
    """By how much the cost falls with them."""
    shift: Column | None = None
    """A step that is not open, in the same numbers as a column; None: there is none."""


class Eliminated(NamedTuple):
    """What is left of a joint: its unknowns, told by the twist of the joint above and the unknowns after each."""

    forces: list[Six]
    pivots: list[float]
    rights: list[float]
    factors: list[list[float]]


def add_place(form: Form, point: Sequence[float], gap: Sequence[float], stiffness: float) -> None:
    """Add a spring to a form: a point is to move by a gap."""
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
    """Add a spring to a form: what it is of is to turn by a rotation vector."""
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
    """Put a force in the place of what a spring does in a direction; without a point it is one of an orientation."""
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


def eliminated(
    parents: Sequence[int], joints: Sequence[Joint], forms: Sequence[Form | None], least: float
) -> tuple[list[Eliminated], list[Form]] | None:
    """Sweep from the ends to the root.

    Args:
        parents: the joint above each, an earlier one, or -1.
        joints: what they do.
        forms: of what each joint carries, but for other joints; None: nothing.
        least: no pivot may be less.

    Returns:
        What is left of each joint, and the forms of all that it carries; None: a pivot is less.
    """
    # What joints carry is added up in `all_`, which is each joint's own.
    all_ = [None if form is None else form[:] for form in forms]
    done: list[Eliminated] = []
    for joint in range(len(parents) - 1, -1, -1):
        columns, own, rights, shift = joints[joint]
        form = all_[joint]
        if form is None:
            form = all_[joint] = NOTHING
        a00, a01, a02, a11, a12, a22, b00, b01, b02, b10, b11, b12, b20, b21, b22, *rest = form
        d00, d01, d02, d11, d12, d22, p0, p1, p2, p3, p4, p5 = rest
        if shift is not None:
            t0, t1, t2, l0, l1, l2, c0, c1, c2 = shift
            p0 -= a00 * t0 + a01 * t1 + a02 * t2 + b00 * l0 + b01 * l1 + b02 * l2
            p1 -= a01 * t0 + a11 * t1 + a12 * t2 + b10 * l0 + b11 * l1 + b12 * l2
            p2 -= a02 * t0 + a12 * t1 + a22 * t2 + b20 * l0 + b21 * l1 + b22 * l2
            p3 -= b00 * t0 + b10 * t1 + b20 * t2 + d00 * l0 + d01 * l1 + d02 * l2
            p4 -= b01 * t0 + b11 * t1 + b21 * t2 + d01 * l0 + d11 * l1 + d12 * l2
            p5 -= b02 * t0 + b12 * t1 + b22 * t2 + d02 * l0 + d12 * l1 + d22 * l2
        forces: list[Six] = []
        right: list[float] = []
        for (t0, t1, t2, l0, l1, l2, c0, c1, c2), own_right in zip(columns, rights, strict=True):
            right.append(own_right + p0 * t0 + p1 * t1 + p2 * t2 + p3 * l0 + p4 * l1 + p5 * l2)
            forces.append(
                (
                    a00 * t0 + a01 * t1 + a02 * t2 + b00 * l0 + b01 * l1 + b02 * l2 + c0,
                    a01 * t0 + a11 * t1 + a12 * t2 + b10 * l0 + b11 * l1 + b12 * l2 + c1,
                    a02 * t0 + a12 * t1 + a22 * t2 + b20 * l0 + b21 * l1 + b22 * l2 + c2,
                    b00 * t0 + b10 * t1 + b20 * t2 + d00 * l0 + d01 * l1 + d02 * l2,
                    b01 * t0 + b11 * t1 + b21 * t2 + d01 * l0 + d11 * l1 + d12 * l2,
                    b02 * t0 + b12 * t1 + b22 * t2 + d02 * l0 + d12 * l1 + d22 * l2,
                )
            )
        if shift is not None:
            p0, p1, p2 = p0 - shift[6], p1 - shift[7], p2 - shift[8]
        matrix = [
            [
                entry + t0 * f0 + t1 * f1 + t2 * f2 + l0 * f3 + l1 * f4 + l2 * f5
                for entry, (f0, f1, f2, f3, f4, f5) in zip(row, forces, strict=False)
            ]
            for row, (t0, t1, t2, l0, l1, l2, _, _, _) in zip(own, columns, strict=True)
        ]
        pivots: list[float] = []
        factors: list[list[float]] = []
        for i, row in enumerate(matrix):
            pivot, g, (f0, f1, f2, f3, f4, f5) = row[i], right[i], forces[i]
            if pivot < least:
                return None
            pivots.append(pivot)
            own_factors: list[float] = []
            for j in range(i + 1, len(matrix)):
                factor = row[j] / pivot
                own_factors.append(factor)
                g0, g1, g2, g3, g4, g5 = forces[j]
                forces[j] = (
                    *(g0 - factor * f0, g1 - factor * f1, g2 - factor * f2),
                    *(g3 - factor * f3, g4 - factor * f4, g5 - factor * f5),
                )
                right[j] -= factor * g
                for k in range(j, len(matrix)):
                    matrix[j][k] -= factor * row[k]
            factors.append(own_factors)
            share = f0 / pivot
            a00, a01, a02 = a00 - share * f0, a01 - share * f1, a02 - share * f2
            b00, b01, b02 = b00 - share * f3, b01 - share * f4, b02 - share * f5
            p0 -= share * g
            share = f1 / pivot
            a11, a12 = a11 - share * f1, a12 - share * f2
            b10, b11, b12 = b10 - share * f3, b11 - share * f4, b12 - share * f5
            p1 -= share * g
            share = f2 / pivot
            a22 -= share * f2
            b20, b21, b22 = b20 - share * f3, b21 - share * f4, b22 - share * f5
            p2 -= share * g
            share = f3 / pivot
            d00, d01, d02 = d00 - share * f3, d01 - share * f4, d02 - share * f5
            p3 -= share * g
            share = f4 / pivot
            d11, d12 = d11 - share * f4, d12 - share * f5
            p4 -= share * g
            share = f5 / pivot
            d22 -= share * f5
            p5 -= share * g
        done.append(Eliminated(forces, pivots, right, factors))
        above = parents[joint]
        if above >= 0:
            left = [a00, a01, a02, a11, a12, a22, b00, b01, b02, b10, b11, b12, b20, b21, b22]
            left += (d00, d01, d02, d11, d12, d22, p0, p1, p2, p3, p4, p5)
            other = all_[above]
            all_[above] = left if other is None else [x + y for x, y in zip(other, left, strict=True)]
    done.reverse()
    return done, [form or NOTHING for form in all_]


def substituted(
    parents: Sequence[int], joints: Sequence[Joint], done: Sequence[Eliminated]
) -> tuple[list[list[float]], list[Six]]:
    """Sweep back; return the unknowns of each joint, and its twist."""
    found: list[list[float]] = []
    twists: list[Six] = []
    still = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for above, (columns, _, _, shift), (forces, pivots, rights, factors) in zip(parents, joints, done, strict=True):
        v0, v1, v2, v3, v4, v5 = start = still if above < 0 else twists[above]
        unknowns = [0.0] * len(pivots)
        for i in range(len(pivots) - 1, -1, -1):
            f0, f1, f2, f3, f4, f5 = forces[i]
            left = rights[i] - (f0 * v0 + f1 * v1 + f2 * v2 + f3 * v3 + f4 * v4 + f5 * v5)
            unknown = left / pivots[i]
            for factor, other in zip(factors[i], unknowns[i + 1 :], strict=True):
                unknown -= factor * other
            unknowns[i] = unknown
        twist = start
        for unknown, (t0, t1, t2, l0, l1, l2, _, _, _) in zip(unknowns, columns, strict=True):
            v0, v1, v2, v3, v4, v5 = twist
            twist = (
                *(v0 + unknown * t0, v1 + unknown * t1, v2 + unknown * t2),
                *(v3 + unknown * l0, v4 + unknown * l1, v5 + unknown * l2),
            )
        if shift is not None:
            v0, v1, v2, v3, v4, v5 = twist
            t0, t1, t2, l0, l1, l2, _, _, _ = shift
            twist = v0 + t0, v1 + t1, v2 + t2, v3 + l0, v4 + l1, v5 + l2
        found.append(unknowns)
        twists.append(twist)
    return found, twists


def pushed(joint: Joint, form: Form, above: Six, own: Six, unknowns: Sequence[float]) -> list[float]:
    """Return what pushes each unknown of a joint on, where it and what is below it moved by twists.

    Args:
        joint: with all its unknowns, whether open to it or not.
        form: of all that it carries.
        above: the twist of the joint above.
        own: and its own.
        unknowns: of the joint.
    """
    a00, a01, a02, a11, a12, a22, b00, b01, b02, b10, b11, b12, b20, b21, b22, *rest = form
    d00, d01, d02, d11, d12, d22, p0, p1, p2, p3, p4, p5 = rest
    t0, t1, t2, l0, l1, l2 = own
    w0 = p0 - (a00 * t0 + a01 * t1 + a02 * t2 + b00 * l0 + b01 * l1 + b02 * l2)
    w1 = p1 - (a01 * t0 + a11 * t1 + a12 * t2 + b10 * l0 + b11 * l1 + b12 * l2)
    w2 = p2 - (a02 * t0 + a12 * t1 + a22 * t2 + b20 * l0 + b21 * l1 + b22 * l2)
    w3 = p3 - (b00 * t0 + b10 * t1 + b20 * t2 + d00 * l0 + d01 * l1 + d02 * l2)
    w4 = p4 - (b01 * t0 + b11 * t1 + b21 * t2 + d01 * l0 + d11 * l1 + d12 * l2)
    w5 = p5 - (b02 * t0 + b12 * t1 + b22 * t2 + d02 * l0 + d12 * l1 + d22 * l2)
    v0, v1, v2, _, _, _ = above
    u0, u1, u2 = unknowns
    found = []
    for (t0, t1, t2, l0, l1, l2, c0, c1, c2), row, right in zip(joint.columns, joint.own, joint.right, strict=True):
        force = t0 * w0 + t1 * w1 + t2 * w2 + l0 * w3 + l1 * w4 + l2 * w5
        force -= c0 * v0 + c1 * v1 + c2 * v2 + row[0] * u0 + row[1] * u1 + row[2] * u2
        found.append(right + force)
    return found
