"""Products of matrices and vectors in bulk, whose rounding depends on nothing but their numbers.

`@` and `numpy.linalg` leave products to a BLAS. Some round by where a matrix lies in memory, some share out matrices of
18 by 18 among threads, which beside a busy program wait for each other a thousand times as long as they compute. numpy's
own loops behind `einsum` do neither, and for these sizes they are as fast. They get arrays in one piece, because they
take another way through what lies apart. This is the only module that calls them, and none in here calls a BLAS.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .problem import Floats

Floating = TypeVar("Floating", NDArray[np.float32], Floats)


def times(a: Floats, b: Floats) -> Floats:
    """Return the products (..., i, k) of matrices (..., i, j) and (..., j, k)."""
    return _summed("...ij,...jk->...ik", a, b)


def back_times(a: Floats, b: Floats) -> Floats:
    """Return the products (..., i, k) of matrices (..., j, i), transposed, and (..., j, k)."""
    return _summed("...ji,...jk->...ik", a, b)


def times_back(a: Floats, b: Floats) -> Floats:
    """Return the products (..., i, k) of matrices (..., i, j) and (..., k, j), transposed."""
    return _summed("...ij,...kj->...ik", a, b)


def applied(a: Floats, v: Floats) -> Floats:
    """Return vectors (..., j) multiplied by matrices (..., i, j)."""
    return _summed("...ij,...j->...i", a, v)


def back_applied(a: Floats, v: Floats) -> Floats:
    """Return vectors (..., j) multiplied by matrices (..., j, i), transposed."""
    return _summed("...ji,...j->...i", a, v)


def combined(weights: Floating, v: Floating) -> Floating:
    """Return the sums (..., m) of vectors (..., k, m) times their weights (..., k)."""
    return _summed("...k,...km->...m", weights, v)


def determinants(a: Floats) -> Floats:
    """Return the determinants (...) of matrices (..., 3, 3)."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = np.moveaxis(a, (-2, -1), (0, 1))
    return np.asarray(xx * (yy * zz - yz * zy) - xy * (yx * zz - yz * zx) + xz * (yx * zy - yy * zx))


def lengths_of(v: Floats) -> Floats:
    """Return the lengths (...) of vectors (..., 3)."""
    x, y, z = np.moveaxis(v, -1, 0)
    return np.sqrt(x * x + y * y + z * z)


def solved(matrix: Floats, wanted: Floats) -> Floats:
    """Return the solutions (B, m) of equations with symmetric positive matrices (B, m, m) and right-hand sides (B, m)."""
    # Below the rows of the matrix, what is wanted is treated as they are.
    rows = np.concatenate([matrix, wanted[:, None]], axis=1)
    unknowns = wanted.shape[1]
    for k in range(unknowns):
        factor = rows[:, k + 1 : unknowns, k] / rows[:, k, k, None]
        rows[:, k + 1 :, k + 1 :] -= rows[:, k + 1 :, k, None] * factor[:, None]
    found = np.empty_like(wanted)
    for k in range(unknowns - 1, -1, -1):
        found[:, k] = rows[:, -1, k] / rows[:, k, k]
        rows[:, -1, :k] -= rows[:, k, :k] * found[:, k, None]
    return found


def _summed(subscripts: str, a: Floating, b: Floating) -> Floating:
    return np.asarray(np.einsum(subscripts, np.ascontiguousarray(a), np.ascontiguousarray(b)))
