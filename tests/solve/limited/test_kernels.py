"""Kernels that solve bodies within limits: plain floats for one against arrays for many, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.cases import CHAINS, Rig, chain, degrees, random_ranges, tree_y
from ik_addon.solve.limited.body import Body, allowed_angles, as_row, axes_of, pose_of
from ik_addon.solve.limited.descent import PULL, Reaching, State, _direction
from ik_addon.solve.limited.goals import Goals, OrientationGoal, PoleGoal, System, masses_of
from ik_addon.solve.limited.newton import STILL, polish
from ik_addon.solve.limited.newton_step import Anchor, Held, newton_step
from ik_addon.solve.limited.restarts import may_be_missed
from ik_addon.solve.maths.calculus import Row
from ik_addon.solve.maths.cones import Cone, cone_of
from ik_addon.solve.maths.reaching import step_to
from ik_addon.solve.problem import Floats

from ..chains import for_each, random_rotations, unit

BALL = degrees((-60, 60), (-45, 45), (-60, 60))
FREE = degrees((-np.inf, np.inf), (-np.inf, np.inf), (-np.inf, np.inf))


def body_of(rig: Rig, count: int, free: tuple[int, ...] = ()) -> Body:
    """Return `count` copies of the body of a rig, some of whose bones do not inherit rotation."""
    rest, heads = rig.rest(), rig.heads.copy()
    for i, parent in enumerate(rig.parents):
        if parent >= 0:
            heads[i] = rig.frames[parent].T @ (rig.heads[i] - rig.heads[parent])
    tips = [int(np.arange(rig.bones)[tip]) for tip in rig.tips]
    ends = np.zeros((3, len(tips), count))
    ends[1] = rig.lengths[tips][:, None]
    cone = cone_of(rig.ranges[:, [0, 2]].reshape(-1, 4), rig.ranges[:, 1])
    mobility = (rig.ranges[:, [0, 2, 1], 0] != rig.ranges[:, [0, 2, 1], 1]).astype(np.float64)
    return Body(
        tuple(rig.parents.tolist()),
        tuple(bool(parent < 0 or i in free) for i, parent in enumerate(rig.parents)),
        tuple(tips),
        np.repeat(rest.transpose(1, 2, 0)[..., None], count, axis=3),
        np.repeat(heads.T[..., None], count, axis=2),
        ends,
        Cone(*(part[..., None] for part in cone)),
        np.ascontiguousarray(mobility.T)[..., None],
    )


def goals_of(body: Body, rng: np.random.Generator, wishes: str = "") -> Goals:
    """Return goals in and out of reach, with a pole or an orientation for the first end effector."""
    count = body.rest.shape[-1]
    target = unit(rng.normal(size=(len(body.segments), count, 3))).transpose(2, 0, 1) * rng.uniform(0.3, 1.2, count)
    turns: tuple[OrientationGoal, ...] = ()
    poles: tuple[PoleGoal, ...] = ()
    if "turn" in wishes:
        turns = (OrientationGoal(0, random_rotations(rng, count).transpose(1, 2, 0)),)
    if "pole" in wishes:
        bones = body.path(0)[-3:]
        joints = rng.uniform(0.5, 1.0, (3, len(bones) + 1, count))
        angle = rng.uniform(-1.0, 1.0, count)
        poles = (PoleGoal(0, bones, rng.normal(size=(3, count)), angle, masses_of(joints)),)
    weight = rng.uniform(0.5, 1.0, len(body.segments))
    return Goals(np.ascontiguousarray(target), weight / weight.max(), turns, poles)


def angles_inside(body: Body, rng: np.random.Generator, size: float = 0.5) -> Floats:
    """Return random joint angles (3, n, B) within the limits."""
    return allowed_angles(body, rng.uniform(-size, size, (3, len(body.parents), body.rest.shape[-1])))


RIGS: dict[str, Callable[[np.random.Generator], tuple[Rig, tuple[int, ...]]]] = {
    "limits-45": lambda rng: (chain(5, CHAINS["limits-45"]), ()),
    "limits-asym": lambda rng: (chain(9, CHAINS["limits-asym"]), ()),
    "hinges": lambda rng: (chain(3, CHAINS["hinges"]), ()),
    "one bone": lambda rng: (chain(1, BALL), ()),
    "random": lambda rng: (chain(6, random_ranges(rng, 6)), ()),
    "bones that start anew": lambda rng: (chain(6, BALL), (2, 4)),
    "tree": lambda rng: (tree_y(BALL), (5,)),
    "one branch of a tree": lambda rng: (replace(tree_y(BALL), tips=(6,)), ()),
}


@for_each(name=("limits-45", "limits-asym", "hinges", "one bone", "random"))
def test_a_step_to_a_place_is_the_general_step(name: str) -> None:
    count = 60
    rng = np.random.default_rng(len(name))
    body = body_of(RIGS[name](rng)[0], count)
    goals, taken, angles = goals_of(body, rng, ""), 0, angles_inside(body, rng, 0.2)
    ends = np.stack(pose_of(body.skeleton(), as_row(angles, None)).ends[0])
    goals.target[:, 0] = ends + rng.normal(scale=0.01, size=ends.shape)
    for i in range(count):
        system, row = System.of(body, goals, i), as_row(angles, i)
        general, own = State.of(system, row), Reaching.of(system, row)
        assert general.error == pytest.approx(own.error, abs=1e-12)
        np.testing.assert_allclose(own.residual, general.residual, atol=1e-12)
        for damping in (1e-1, 1e-3, 1e-8):
            step = step_to(own.reach, system.skeleton.joints, row, damping, PULL)
            if step is not None:
                np.testing.assert_allclose(step, _direction(system, [[]], general, damping, PULL), atol=1e-9)
            taken += step is not None
    assert taken > 10


def numbers_of(system: System, angles: Floats) -> Floats:
    """Return the residual (m, B) at joint angles (3, n, B)."""
    return np.stack(State.of(system, as_row(angles, None)).residual)


@for_each(name=RIGS)
def test_the_jacobian_matches_finite_differences(name: str) -> None:
    count, size = 10, 1e-6
    rng = np.random.default_rng(2)
    body = body_of(RIGS[name](rng)[0], count, RIGS[name](rng)[1])
    # Use small rotation residuals: only these turn as the bone does.
    angles, goals = angles_inside(body, rng, 0.3), goals_of(body, rng, "pole")
    frame = np.stack(pose_of(body.skeleton(), as_row(angles, None)).frames[0])[:, :, body.segments[0]]
    goals = replace(goals, orientations=(OrientationGoal(0, frame),))
    system = System.of(body, goals)
    state = State.of(system, as_row(angles, None))
    axes, bones = axes_of(system.skeleton.do, state.pose, state.angles), len(body.parents)

    def whole(blocks: list[Row]) -> Floats:
        rows = [(row, path) for block, path in zip(blocks, system.paths(), strict=True) for row in block[0]]
        found = np.zeros((len(rows), 3, bones, count))
        for whole_row, (row, path) in zip(found, rows, strict=True):
            for k in range(3):
                whole_row[k, slice(None) if path is None else list(path)] = row[k]
        return found

    shrinks = whole(system.jacobian(state.pose, axes))
    pulls = np.concatenate([np.stack(pull) for pull in system.pulls(state.pose, state.residual)])
    falls = (whole(system.exact_jacobian(state.pose, axes)) * pulls[:, None, None]).sum(axis=0)
    for i in range(bones):
        for k in range(3):
            moved = np.zeros_like(angles)
            moved[k, i] = size * (0.5 if k < 2 else 1.0)
            before, after = numbers_of(system, angles - moved), numbers_of(system, angles + moved)
            # The side's descent direction is not its derivative: a branch should go round its line, not nearer to it.
            np.testing.assert_allclose(shrinks[:-1, k, i], ((before - after) / (2.0 * size))[:-1], atol=1e-7)
            np.testing.assert_allclose(falls[k, i], (before**2 - after**2).sum(axis=0) / (4.0 * size), atol=1e-7)


@for_each(free=((), (2,), (1, 3)), wishes=("", "turn", "pole"))
def test_newtons_steps_follow_the_curvature_of_the_cost(wishes: str, free: tuple[int, ...]) -> None:
    bones, count = 4, 20
    rng = np.random.default_rng(1)
    body = body_of(chain(bones, degrees((-90, 90), (-90, 90), (-90, 90))), count, free)
    angles = rng.uniform(-0.3, 0.3, (3, bones, count))
    goals = goals_of(body, rng, wishes)
    # Use a branch of all bones, since the pole objective ignores joints above a branch.
    poles = tuple(replace(pole, bones=body.path(0), masses=np.full((bones + 1, count), 0.2)) for pole in goals.poles)
    system = System.of(body, replace(goals, poles=poles))

    def cost(step: Floats) -> Floats:
        moved = angles + step.reshape(bones, 3).T[..., None] * np.array([0.5, 0.5, 1.0])[:, None, None]
        return np.asarray((numbers_of(system, moved) ** 2).sum(axis=0) / 2.0)

    size, damping = 1e-3, 0.1
    steps = size * np.eye(3 * bones)
    slope = np.stack([cost(a) - cost(-a) for a in steps], axis=-1) / (2.0 * size)
    differences = [[cost(a + b) - cost(a - b) - cost(b - a) + cost(-a - b) for b in steps] for a in steps]
    curve = np.moveaxis(np.array(differences), -1, 0) / (2.0 * size) ** 2
    # An anchor without weight: it only keeps pivots from being raised.
    row = as_row(angles, None)
    state = State.of(system, row)
    found = newton_step(system, Held(state, state.residual), np.full(count, damping), Anchor(row, np.zeros(count)))
    ((x, z, twist),) = found[0]
    for i in range(count):
        wanted = upwards(curve[i], -slope[i], damping)
        own = np.stack([x[:, i], z[:, i], twist[:, i]], axis=1).ravel()
        np.testing.assert_allclose(own, wanted, atol=1e-4 * np.abs(wanted).max())


def upwards(matrix: Floats, wanted: Floats, damping: float) -> Floats:
    """Solve equations from the last to the first, with negative pivots made positive and all pivots damped."""
    left, factor, pivots = matrix[::-1, ::-1].copy(), np.eye(len(matrix)), np.empty(len(matrix))
    for k in range(len(matrix)):
        pivots[k] = abs(left[k, k]) + damping
        factor[k + 1 :, k] = left[k + 1 :, k] / pivots[k]
        left -= pivots[k] * np.outer(factor[:, k], factor[:, k])
    return np.asarray(np.linalg.solve(factor @ np.diag(pivots) @ factor.T, wanted[::-1])[::-1], dtype=np.float64)


@for_each(name=("limits-30", "limits-asym", "hinges"))
def test_newtons_method_ends_where_no_small_change_improves(name: str) -> None:
    rng = np.random.default_rng(3)
    body = body_of(chain(5, CHAINS[name]), 30)
    target = (unit(rng.normal(size=(30, 3))) * rng.uniform(0.6, 1.4, (30, 1))).T[:, None]
    system = System.of(body, Goals(np.ascontiguousarray(target), np.ones(1)))
    angles, error, _ = polish(system, as_row(np.zeros((3, 5, 30)), None), 30, 60, STILL)
    for _ in range(50):
        tried = allowed_angles(body, angles + 1e-4 * rng.normal(size=angles.shape) * body.mobility)
        assert (error - np.sqrt((numbers_of(system, tried) ** 2).sum(axis=0))).max() < 1e-8


@for_each(name=("limits-30", "limits-90", "limits-asym", "random"))
def test_no_pose_beats_the_lower_bound_that_limits_imply(name: str) -> None:
    rng = np.random.default_rng(4)
    body = body_of(chain(4, random_ranges(rng, 4) if name == "random" else CHAINS[name]), 60)
    goals = Goals(np.ascontiguousarray(1.5 * unit(rng.normal(size=(60, 3))).T[:, None]), np.ones(1))
    system = System.of(body, goals)
    angles, error, _ = polish(system, as_row(angles_inside(body, rng, 1.0), None), 60, 60)
    least = error - may_be_missed(body, goals, angles)
    for _ in range(300):
        tried = allowed_angles(body, rng.uniform(-1.0, 1.0, angles.shape) * body.mobility)
        assert (np.sqrt((numbers_of(system, tried) ** 2).sum(axis=0)) > least).all()
    if name in ("limits-30", "limits-90"):
        assert np.count_nonzero(error - least < 1e-9) > 50
