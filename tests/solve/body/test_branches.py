"""Equations of trees solved joint by joint, compared with the same in one piece."""

from __future__ import annotations

import numpy as np
import pytest

from ik_addon.solve.body.branches import Branches
from ik_addon.solve.problem import Floats

TREES = [[-1], [-1, 0, 1, 2], [-1, -1, 0, 1, 0], [-1, 0, 0, 1, 2, 1, 0, 5, 5], [-1, 0, 1, 1, 1, 0, 5, 6, 6]]


def coupled(parents: list[int], seed: int) -> tuple[Floats, Floats]:
    """Return rows (r, n) of ends, each of which only joints above it move, and the equations that they make."""
    random, m = np.random.default_rng(seed), len(parents)
    rows = np.zeros((3 * m, 3 * m + 3))
    for end in range(m):
        joint = end
        rows[3 * end : 3 * end + 3, -3:] = random.normal(size=(3, 3))
        while joint >= 0:
            rows[3 * end : 3 * end + 3, 3 * joint : 3 * joint + 3] = random.normal(size=(3, 3))
            joint = parents[joint]
    return rows, rows.T @ rows + np.eye(3 * m + 3)


@pytest.mark.parametrize("parents", TREES)
def test_solves_what_the_whole_matrix_says(parents: list[int]) -> None:
    rows, matrix = coupled(parents, 1)
    branches, right = Branches.of(parents), np.random.default_rng(2).normal(size=len(matrix))
    found = branches.solved(branches.along(matrix), matrix[-3:, -3:], right, 1e-3)
    assert found is not None
    np.testing.assert_allclose(matrix @ found, right, atol=1e-9)
    squares = branches.squared(rows, np.full(len(rows), 0.5))
    np.testing.assert_allclose(squares, 2.0 * branches.along(rows.T @ rows), atol=1e-12)


@pytest.mark.parametrize("parents", TREES)
def test_projects_and_sums_as_the_whole_matrix(parents: list[int]) -> None:
    _rows, matrix = coupled(parents, 3)
    branches, m = Branches.of(parents), len(parents)
    random = np.random.default_rng(4)
    project = random.normal(size=(m, 3, 3))
    project = project + project.transpose(0, 2, 1)
    whole = np.eye(3 * m + 3)
    for i in range(m):
        whole[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = project[i]
    own = branches.along(matrix)
    np.testing.assert_allclose(branches.projected(own, project), branches.along(whole @ matrix @ whole), atol=1e-9)
    without = matrix.copy()
    without[:, -3:] = 0.0
    sums = without[:-3].sum(axis=1).reshape(m, 3)
    np.testing.assert_allclose(branches.sums(branches.along(without)), sums, atol=1e-9)


def test_says_where_no_pivot_is_large_enough() -> None:
    branches = Branches.of([-1, 0])
    matrix = np.eye(9)
    matrix[4, 4] = -1.0
    assert branches.solved(branches.along(matrix), matrix[-3:, -3:], np.ones(9), 0.2) is None
