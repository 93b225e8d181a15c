"""Conversions of rotations in batches."""

import numpy as np

from ik_addon.solve.maths.rotations import FEW, matrices, quaternions
from tests.solve.chains import for_each


@for_each(count=(1, 2, FEW, FEW + 1))
def test_quaternions_of_few_matrices_match_those_of_many(count: int) -> None:
    q = np.random.default_rng(1).normal(size=(4, 6 * FEW * (FEW + 1)))
    q[:, :4], q[:, 4:8] = np.eye(4), np.array([[0, 0, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, -1]])
    turns = matrices(q / np.sqrt((q * q).sum(axis=0)))
    parts = [quaternions(turns[..., i : i + count]) for i in range(0, turns.shape[2], count)]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), quaternions(turns), atol=1e-12)


def test_quaternions_of_matrices_that_are_not_finite_are_not_finite() -> None:
    turns = np.repeat(np.eye(3)[:, :, None], 3, axis=2)
    turns[0, 0, 1], turns[2, 1, 2] = np.nan, np.inf
    found = quaternions(turns)
    assert found[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert not np.isfinite(found[:, 1:]).all(axis=0).any()
