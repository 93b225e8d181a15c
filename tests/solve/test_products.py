"""Products of matrices against those of a BLAS, and one by one against many at once."""

from __future__ import annotations

import numpy as np
import pytest

from ik_addon.solve import products


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_a_product_is_the_same_among_many(columns: int) -> None:
    rng = np.random.default_rng(columns)
    a, b = rng.normal(size=(2 * products.MANY, 3, 3)), rng.normal(size=(2 * products.MANY, 3, columns))
    many = products.times(a, b)
    np.testing.assert_allclose(many, a @ b, rtol=0.0, atol=1e-14)
    for count in (1, 2, products.MANY - 1, products.MANY):
        np.testing.assert_array_equal(products.times(a[:count], b[:count]), many[:count])


@pytest.mark.parametrize("unknowns", [1, 3, 6, 18, 40])
def test_equations_are_solved_one_by_one_as_many_at_once(unknowns: int) -> None:
    rng = np.random.default_rng(unknowns)
    rows = rng.normal(size=(20, unknowns, unknowns + 5))
    matrix, wanted = products.times_back(rows, rows), rng.normal(size=(20, unknowns))
    found = products.solved(matrix, wanted)
    np.testing.assert_allclose(products.applied(matrix, found), wanted, rtol=0.0, atol=1e-9)
    for i in range(20):
        np.testing.assert_array_equal(products.solved(matrix[i : i + 1], wanted[i : i + 1])[0], found[i])
