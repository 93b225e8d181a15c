"""Matrix products compared with a BLAS, and one by one compared with many at once."""

from __future__ import annotations

import numpy as np
import pytest

from ik_addon.solve.maths import products


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_a_product_is_the_same_alone_and_in_a_batch(columns: int) -> None:
    rng = np.random.default_rng(columns)
    a, b = rng.normal(size=(2 * products.MANY, 3, 3)), rng.normal(size=(2 * products.MANY, 3, columns))
    many = products.times(a, b)
    np.testing.assert_allclose(many, a @ b, rtol=0.0, atol=1e-14)
    for count in (1, 2, products.MANY - 1, products.MANY):
        np.testing.assert_array_equal(products.times(a[:count], b[:count]), many[:count])
