"""Bulk products of small matrices and vectors: NaN and infinite members pass through without warnings."""

import numpy as np

from ..problem import Floats


def times(a: Floats, b: Floats) -> Floats:
    """Return the products (..., i, k) of matrices (..., i, j) and (..., j, k)."""
    with np.errstate(all="ignore"):
        return np.asarray(a @ b)


def back_times(a: Floats, b: Floats) -> Floats:
    """Return the products (..., i, k) of matrices (..., j, i), transposed, and (..., j, k)."""
    return times(a.swapaxes(-1, -2), b)


def times_back(a: Floats, b: Floats) -> Floats:
    """Return the products (..., i, k) of matrices (..., i, j) and (..., k, j), transposed."""
    return times(a, b.swapaxes(-1, -2))


# For vectors, `einsum` takes half the time of `@`.
def applied(a: Floats, v: Floats) -> Floats:
    """Return vectors (..., j) multiplied by matrices (..., i, j)."""
    return np.asarray(np.einsum("...ij,...j->...i", a, v))


def back_applied(a: Floats, v: Floats) -> Floats:
    """Return vectors (..., j) multiplied by matrices (..., j, i), transposed."""
    return np.asarray(np.einsum("...ji,...j->...i", a, v))


def determinants(a: Floats) -> Floats:
    """Return the determinants (...) of matrices (..., 3, 3)."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = (a[..., i, j] for i in range(3) for j in range(3))
    return np.asarray(xx * (yy * zz - yz * zy) - xy * (yx * zz - yz * zx) + xz * (yx * zy - yy * zx))


def lengths_of(v: Floats) -> Floats:
    """Return the lengths (...) of vectors (..., 3)."""
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    return np.asarray(np.sqrt(x * x + y * y + z * z))
