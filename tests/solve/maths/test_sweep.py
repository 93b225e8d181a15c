"""Trees swept joint by joint, compared with solving the same equations as one matrix."""

from __future__ import annotations

import numpy as np

from ik_addon.solve.maths.sweep import (
    NOTHING,
    Form,
    Joint,
    Swept,
    add_orientation,
    add_place,
    add_thrust,
    eliminated,
    pushed,
    substituted,
)
from ik_addon.solve.problem import Floats
from tests.solve.chains import for_each

TREES = [[-1], [-1, 0, 1, 2], [-1, -1, 0, 1, 0], [-1, 0, 0, 1, 2, 1, 0, 5, 5], [-1, 0, 1, 1, 1, 0, 5, 6, 6]]
STIFF, FORCE = 30.0, 4.0


def skew(point: Floats) -> Floats:
    """Return the matrix (3, 6) that gives a point's displacement from a twist."""
    x, y, z = point
    return np.array([[0.0, z, -y, 1.0, 0.0, 0.0], [-z, 0.0, x, 0.0, 1.0, 0.0], [y, -x, 0.0, 0.0, 0.0, 1.0]])


def random_joint(random: np.random.Generator, count: int, *, shifted: bool) -> Joint:
    """Return a random joint with `count` open unknowns."""
    columns, is_open = random.normal(size=(3, 9)), np.arange(3) < count
    columns[:, 6:] *= 0.1
    columns[~is_open] = 0.0
    own = random.normal(size=(3, 3))
    own = np.where(is_open & is_open[:, None], own @ own.T, 0.0) + 3.0 * np.eye(3)
    says = columns[:, :3] @ columns[:, 6:].T  # own excludes the columns' products with one another
    own += 0.5 * (says.T - says)
    shift = random.normal(size=9).tolist() if shifted else None
    return Joint(columns.tolist(), own.tolist(), (random.normal(size=3) * is_open).tolist(), shift)


def swept(
    parents: list[int], joints: list[Joint], forms: list[Form | None], *earlier: dict[int, Swept]
) -> dict[int, Swept]:
    """Sweep from the last joint to the first, accepting any pivot."""
    children = [[i for i, parent in enumerate(parents) if parent == joint][::-1] for joint in range(len(parents))]
    return eliminated(range(len(parents))[::-1], children, joints, forms, 1e-3, *earlier)


def case(parents: list[int], seed: int, *, shifted: bool) -> tuple[list[Joint], list[Form | None], Floats, Floats]:
    """Return joints with one to three unknowns, their forms, and the equations (n, n) and (n,) that they make."""
    random, m = np.random.default_rng(seed), len(parents)
    joints = [random_joint(random, 1 + joint % 3, shifted=shifted and joint % 2 == 0) for joint in range(m)]
    starts = np.cumsum([0, *(len(joint.columns) for joint in joints)])
    n = int(starts[-1])
    matrix, right = np.zeros((n, n)), np.zeros(n)
    twists, still = np.zeros((m, 6, n)), np.zeros((m, 6))
    forms: list[Form | None] = [None] * m
    for j, (parent, joint) in enumerate(zip(parents, joints, strict=True)):
        columns, here = np.array(joint.columns), slice(starts[j], starts[j + 1])
        above, fixed = (twists[parent], still[parent]) if parent >= 0 else (np.zeros((6, n)), np.zeros(6))
        says = columns[:, :3] @ columns[:, 6:].T
        matrix[here, here] += np.array(joint.own) + 0.5 * (says + says.T) - 0.5 * (says.T - says)
        right[here] += joint.right
        coupled = columns[:, 6:] @ above[:3]
        matrix[here] += coupled
        matrix[:, here] += coupled.T
        right[here] -= columns[:, 6:] @ fixed[:3]
        twists[j], still[j] = above, fixed
        twists[j][:, here] += columns[:, :6].T
        if joint.shift is not None:
            shift = np.array(joint.shift)
            right -= above[:3].T @ shift[6:]
            still[j] = fixed + shift[:6]
        if j % 2 == 0 or j == m - 1:
            form, point, gap = NOTHING[:], random.normal(size=3), random.normal(size=3)
            add_place(form, point.tolist(), gap.tolist(), STIFF)
            add_orientation(form, gap.tolist(), 2.0)
            forms[j] = form
            for rows, stiffness in ((skew(point), STIFF), (np.eye(3, 6), 2.0)):
                own = rows @ twists[j]
                matrix += stiffness * own.T @ own
                right += stiffness * own.T @ (gap - rows @ still[j])
    return joints, forms, matrix, right


@for_each(shifted=(False, True), parents=TREES)
def test_a_sweep_solves_the_equations_of_the_whole_matrix(parents: list[int], *, shifted: bool) -> None:
    joints, forms, matrix, right = case(parents, 1, shifted=shifted)
    found, _ = substituted(parents, swept(parents, joints, forms))
    np.testing.assert_allclose(np.concatenate(found), np.linalg.solve(matrix, right), atol=1e-9)


def test_a_solution_leaves_no_push() -> None:
    parents = [-1, 0, 1, 0]
    joints, forms, *_ = case(parents, 2, shifted=False)
    done = swept(parents, joints, forms)
    found, twists = substituted(parents, done)
    columns, own, right, *_ = joints[2]
    says = np.array(columns)[:, :3] @ np.array(columns)[:, 6:].T
    whole = Joint(columns, (np.array(own) + says).tolist(), right)
    np.testing.assert_allclose(pushed(whole, done[2].carried, twists[1], twists[2], found[2]), 0.0, atol=1e-10)
    there = pushed(whole, done[2].carried, twists[1], twists[1], [0.0, 0.0, 0.0])
    assert np.linalg.norm(there) > 0.1, "it is pushed where it has not gone yet"


def test_unchanged_joints_are_reused_from_the_previous_sweep() -> None:
    parents = [-1, 0, 1, 0, 3, 3]
    joints, forms, *_ = case(parents, 4, shifted=True)
    before = swept(parents, joints, forms)
    others = [*joints[:4], joints[4]._replace(right=[1.0, -2.0, 3.0]), joints[5]]
    after = swept(parents, others, forms, before)
    assert [i for i in range(6) if after[i] is before[i]] == [1, 2, 5]
    assert after == swept(parents, others, forms)


def test_reused_joints_still_need_their_pivots() -> None:
    joints, forms, *_ = case([-1, 0], 4, shifted=False)
    before = swept([-1, 0], joints, forms)
    assert len(eliminated([1, 0], [[1], []], joints, forms, before[1].pivot + 1e-9, before)) == 0
    assert 1 in eliminated([1, 0], [[1], []], joints, forms, before[1].pivot - 1e-9, before)


@for_each(at=([0.3, -0.2, 0.5], None))
def test_a_thrust_replaces_a_spring_along_its_direction(at: list[float] | None) -> None:
    random = np.random.default_rng(3)
    form, gap, direction = NOTHING[:], random.normal(size=3), np.array([2.0, -1.0, 2.0]) / 3.0
    if at is None:
        add_orientation(form, gap.tolist(), STIFF)
    else:
        add_place(form, at, gap.tolist(), STIFF)
    add_thrust(form, at, gap.tolist(), direction.tolist(), STIFF, FORCE)
    upper, (mixed, lower) = np.zeros((3, 3)), np.zeros((2, 3, 3))
    upper[np.triu_indices(3)], mixed[:], lower[np.triu_indices(3)] = (
        form[:6],
        np.reshape(form[6:15], (3, 3)),
        form[15:21],
    )
    upper, lower = (part + np.triu(part, 1).T for part in (upper, lower))
    rows = np.eye(3, 6) if at is None else skew(np.array(at))
    across = np.eye(3) - np.outer(direction, direction)
    np.testing.assert_allclose(np.block([[upper, mixed], [mixed.T, lower]]), STIFF * rows.T @ across @ rows, atol=1e-12)
    np.testing.assert_allclose(form[21:], rows.T @ (STIFF * across @ gap + FORCE * direction), atol=1e-12)


def test_a_pivot_that_is_too_small_is_detected() -> None:
    column = [1.0] + [0.0] * 8
    joint = Joint([column, [0.0] * 9, [0.0] * 9], np.diag([-1.0, 1.0, 1.0]).tolist(), [1.0, 0.0, 0.0])
    assert not eliminated([0], [[]], [joint], [None], 0.2)
    form = NOTHING[:]
    add_orientation(form, [0.0, 0.0, 0.0], 2.0)
    assert 0 in eliminated([0], [[]], [joint], [form], 0.2)
