"""Trees swept joint by joint, compared with solving the same equations as one matrix."""

import numpy as np

from ik_addon.solve.maths.sweep import NOTHING, Form, Joint, add_place, eliminated, substituted
from ik_addon.solve.problem import Floats
from tests.solve.chains import for_each

TREES = [[-1], [-1, 0, 1, 2], [-1, -1, 0, 1, 0], [-1, 0, 0, 1, 2, 1, 0, 5, 5], [-1, 0, 1, 1, 1, 0, 5, 6, 6]]
STIFF = 30.0


def skew(point: Floats) -> Floats:
    """Return the matrix (3, 6) that gives a point's displacement from a twist."""
    x, y, z = point
    return np.array([[0.0, z, -y, 1.0, 0.0, 0.0], [-z, 0.0, x, 0.0, 1.0, 0.0], [y, -x, 0.0, 0.0, 0.0, 1.0]])


def random_joint(random: np.random.Generator, count: int) -> Joint:
    """Return a random joint with `count` open unknowns."""
    columns, is_open = random.normal(size=(3, 9)), np.arange(3) < count
    columns[:, 6:] *= 0.1
    columns[~is_open] = 0.0
    own = random.normal(size=(3, 3))
    own = np.where(is_open & is_open[:, None], own @ own.T, 0.0) + 3.0 * np.eye(3)
    says = columns[:, :3] @ columns[:, 6:].T  # own excludes the columns' products with one another
    own += 0.5 * (says.T - says)
    return Joint(columns.tolist(), own.tolist(), (random.normal(size=3) * is_open).tolist())


def case(parents: list[int], seed: int) -> tuple[list[Joint], list[Form | None], Floats, Floats]:
    """Return joints with one to three unknowns, their forms, and the equations (n, n) and (n,) that they make."""
    random, m = np.random.default_rng(seed), len(parents)
    joints = [random_joint(random, 1 + joint % 3) for joint in range(m)]
    starts = np.cumsum([0, *(len(joint.columns) for joint in joints)])
    n = int(starts[-1])
    matrix, right = np.zeros((n, n)), np.zeros(n)
    twists = np.zeros((m, 6, n))
    forms: list[Form | None] = [None] * m
    for j, (parent, joint) in enumerate(zip(parents, joints, strict=True)):
        columns, here = np.array(joint.columns), slice(starts[j], starts[j + 1])
        above = twists[parent] if parent >= 0 else np.zeros((6, n))
        says = columns[:, :3] @ columns[:, 6:].T
        matrix[here, here] += np.array(joint.own) + 0.5 * (says + says.T) - 0.5 * (says.T - says)
        right[here] += joint.right
        coupled = columns[:, 6:] @ above[:3]
        matrix[here] += coupled
        matrix[:, here] += coupled.T
        twists[j] = above
        twists[j][:, here] += columns[:, :6].T
        if j % 2 == 0 or j == m - 1:
            form, point = NOTHING[:], random.normal(size=3)
            add_place(form, point.tolist(), STIFF)
            forms[j], own = form, skew(point) @ twists[j]
            matrix += STIFF * own.T @ own
    return joints, forms, matrix, right


@for_each(parents=TREES)
def test_a_sweep_solves_the_equations_of_the_whole_matrix(parents: list[int]) -> None:
    joints, forms, matrix, right = case(parents, 1)
    found = substituted(parents, eliminated(parents, joints, forms, None, 0.0, {}), {})
    np.testing.assert_allclose(np.concatenate(found), np.linalg.solve(matrix, right), atol=1e-9)
