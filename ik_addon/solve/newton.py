"""A step of Newton's method on joint angles, whatever body they belong to.

A joint turns what the joints after it do to the effectors. So the curvature of the cost between two joints is a product
of a few numbers that belong to the one with as many that belong to the other. A matrix like that is factorized by going
once through the joints (R. Vandebril, M. Van Barel, N. Mastronardi, "Matrix computations and semiseparable matrices",
2008). Where the cost curves downwards the pivot's sign is turned, so that the step leads away from the saddle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .articulated import STEEPEST, swing_curvature
from .cones import Cone
from .problem import Bools, Floats
from .products import sums_over_rows
from .rotations import stacked

ON_RIM = 1e-9
"""A swing is on the rim of its cone when it is within about this fraction of the half-axes."""


class Model(NamedTuple):
    """How a cost changes with the joint angles (3, n, B) of bodies, by m numbers for each."""

    bends: Floats
    """(m, 3, n, B) The product of these at one joint with the speeds at a later one is the curvature between them."""
    speeds: Floats
    """(m, 3, n, B)"""
    slope: Floats
    """(3, n, B)"""
    hold: Floats | float = 0.0
    """(B,) curvature that is added at all joint angles."""


def newton_step(model: Model, cone: Cone, ease: Floats, angles: Floats, damping: Floats) -> Floats:
    """Return Newton steps (3, n, B), a radian being the unit of all joint angles.

    Args:
        model: of the cost.
        cone: limits of the joints: swings (2, n, 1), twists (n, 1).
        ease: (3, n, 1) 0: locked.
        angles: (3, n, B) inside the limits.
        damping: (B,) added to the pivots.
    """
    along, across, rim, room = _room(cone, ease, angles, model.slope)
    x, z, _ = angles
    first, second, both = swing_curvature(x, z, np.maximum(1.0 - x * x - z * z, STEEPEST**2), model.slope)
    rim_first, rim_second = along
    # On a rim the first of the two coordinates of a swing is the one along it, and the second has none.
    free = np.stack([room[0] | (rim & room[1]), room[1] & ~rim, room[2]])
    bends, speeds = (_along(part, along, free) for part in (model.bends, model.speeds))
    slope = _along(model.slope[None], along, free)[0]
    diagonal = summed_products(bends, speeds) + model.hold
    diagonal[0] += across + rim_first * rim_first * first + rim_second * rim_second * second
    diagonal[0] += 2.0 * rim_first * rim_second * both
    diagonal[1] += second
    diagonal = np.where(free, diagonal, 1.0)
    # Two coordinates of one swing do not come one after the other.
    skew = 0.5 * (summed_products(bends[:, 1], speeds[:, 0]) - summed_products(bends[:, 0], speeds[:, 1])) + both
    skew = np.where(free[0] & free[1], skew, 0.0)
    found = _solved((bends, speeds, diagonal, skew), -slope, damping, free)
    return stacked(found[0] * rim_first, found[0] * rim_second + found[1], found[2])


def summed_products(a: Floats, b: Floats) -> Floats:
    """Return the sums (...) of the products of numbers (m, ...)."""
    products = a * b
    sums = products[0].copy()
    for product in products[1:]:
        sums += product
    return np.asarray(sums)


def _along(values: Floats, along: Floats, free: Bools) -> Floats:
    """Return values (..., 3, n, B) in the coordinates that the limits leave."""
    found = np.where(free, values, 0.0)
    found[:, 0] = values[:, 0] * along[0] + values[:, 1] * along[1]
    return found


def _room(cone: Cone, ease: Floats, angles: Floats, slope: Floats) -> tuple[Floats, Floats, Bools, Bools]:
    """Return where joints can go.

    Returns:
        along: (2, n, B) direction of the first coordinate of a swing: along the rim of its cone, if it is pushed there.
        across: (n, B) what the bend of the rim adds to the curvature of the cost along it.
        rim: (n, B) whether the swing is held by the rim.
        room: (3, n, B) whether a joint angle can change at all.
    """
    swing, twist = angles[:2], angles[2]
    free = ease > 0.0
    # At zero the slope tells which quadrant a swing would go to.
    low = (swing < 0.0) | ((swing == 0.0) & (slope[:2] > 0.0))
    half = np.where(low, cone.low, cone.high)
    safe = np.maximum(half, 1e-9)
    share = swing / safe * free[:2]
    normal = share / safe
    size = np.sqrt(normal[0] * normal[0] + normal[1] * normal[1])
    normal /= np.maximum(size, 1e-200)
    push = -(normal[0] * slope[0] + normal[1] * slope[1])
    rim = (share[0] * share[0] + share[1] * share[1] > 1.0 - ON_RIM) & (push > 0.0)
    turn = normal[::-1] / safe
    bend = push * (turn[0] * turn[0] + turn[1] * turn[1]) / np.maximum(size, 1e-200) / 2.0
    room = np.empty(angles.shape, dtype=bool)
    # An axis with no room to the side that the slope points to holds too.
    room[:2] = free[:2] & ~((half <= 0.0) & (swing == 0.0))
    low_end, high_end = (twist <= cone.twist_low) & (slope[2] > 0.0), (twist >= cone.twist_high) & (slope[2] < 0.0)
    room[2] = free[2] & ~(low_end | high_end)
    along = stacked(np.where(rim, -normal[1], 1.0) * room[0], np.where(rim, normal[0], 0.0) * room[1])
    return along, np.where(rim, bend, 0.0), rim, room


def _solved(matrix: tuple[Floats, Floats, Floats, Floats], wanted: Floats, damping: Floats, free: Bools) -> Floats:
    """Return the solutions (3, n, B) of equations with symmetric matrices, damped and made positive.

    Args:
        matrix: one factor (m, 3, n, B) of what is above the diagonal, that of its rows, the other factor, that of its
            columns, the diagonal (3, n, B), and what is added between the first two coordinates of a joint (n, B).
        wanted: (3, n, B) right-hand side.
        damping: (B,) added to the pivots.
        free: (3, n, B) which unknowns there are.
    """
    bends, speeds, diagonal, skew = matrix
    summed = _one_by_one if len(speeds) == 3 else sums_over_rows
    # Below the rows of one factor stands the right-hand side, which is treated as they are.
    rows = np.concatenate([bends, wanted[None]])
    done = np.zeros((len(rows), len(speeds), len(damping)))
    factors, pivots, values = np.empty_like(speeds), np.empty_like(diagonal), np.zeros_like(wanted)
    sides = np.zeros_like(skew)
    unknowns: list[tuple[int, int]] = [(i, k) for i, k in np.argwhere(free.any(axis=2).T).tolist()]
    before = (-1, 0)
    pivot, factor, value = damping, done[0], damping
    for i, k in unknowns:
        column = speeds[:, k, i]
        row = summed(done, column)
        taken = summed(row[None, :-1], column)[0]
        if k == 1 and before == (i, 0):
            # `factor` and `pivot` are still those of the first coordinate.
            side = sides[i] = skew[i] / pivot
            taken += skew[i] * (2.0 * summed_products(factor, column) + side)
            row[:-1] += skew[i] * factor
            row[-1] += side * value
        np.subtract(rows[:, k, i], row, out=row)
        pivot, factor, value = pivots[k, i], factors[:, k, i], row[-1]
        np.subtract(diagonal[k, i], taken, out=pivot)
        np.abs(pivot, out=pivot)
        pivot += damping
        np.divide(row[:-1], pivot, out=factor)
        done += row[:, None] * factor
        np.divide(value, pivot, out=values[k, i])
        before = i, k
    behind = np.zeros((len(speeds), len(damping)))
    for i, k in reversed(unknowns):
        value = values[k, i]
        value -= summed(factors[None, :, k, i], behind)[0]
        if k == 0:
            value -= sides[i] * values[1, i]
        behind += speeds[:, k, i] * value
    return np.where(free, values, 0.0)


def _one_by_one(a: Floats, b: Floats) -> Floats:
    """Return `sums_over_rows` as `line_newton_single` forms them in plain floats."""
    sums = a[:, 0] * b[0]
    for j in range(1, len(b)):
        sums += a[:, j] * b[j]
    return np.asarray(sums)
