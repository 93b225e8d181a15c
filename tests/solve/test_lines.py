"""Chains laid out for many, against bodies of any shape; and the curvature that Newton's method goes by."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.cases import CHAINS, Rig, chain, degrees, random_ranges
from ik_addon.solve import (
    descent,
    line_descent,
    line_guess,
    line_newton,
    line_newton_single,
    line_search,
    line_single,
    lines,
)
from ik_addon.solve.aims import Aims
from ik_addon.solve.articulated import Body, allowed_angles, pose_of, split
from ik_addon.solve.cones import Cone, cone_of, joint_rotation
from ik_addon.solve.problem import Floats

from .chains import unit


def body_of(rig: Rig, count: int) -> Body:
    """Return `count` times the body of a chain."""
    heads = np.zeros((count, rig.bones, 3))
    heads[:, 1:, 1] = rig.lengths[:-1]
    ends = np.zeros((count, 1, 3))
    ends[..., 1] = rig.lengths[-1]
    cone = cone_of(rig.ranges[:, [0, 2]].reshape(-1, 4), rig.ranges[:, 1])
    cone = Cone(cone.low[:, None], cone.high[:, None], cone.twist_low[None], cone.twist_high[None])
    ease = (rig.ranges[:, [0, 2, 1], 0] != rig.ranges[:, [0, 2, 1], 1]).astype(np.float64)
    rest = np.tile(rig.rest(), (count, 1, 1, 1))
    return Body(rig.parents, rig.parents < 0, np.array([rig.bones - 1]), rest, heads, ends, cone, ease)


def last(angles: Floats) -> Floats:
    """Return joint angles (B, n, 3) with the members last."""
    return np.ascontiguousarray(angles.transpose(2, 1, 0))


@pytest.mark.parametrize("name", ["limits-45", "limits-asym", "hinges", "random"])
@pytest.mark.parametrize("bones", [2, 5, 9])
def test_chains_laid_out_for_many_take_the_steps_of_any_body(name: str, bones: int) -> None:
    rng = np.random.default_rng(bones)
    body = body_of(chain(bones, random_ranges(rng, bones) if name == "random" else CHAINS[name]), 40)
    angles = allowed_angles(body, rng.uniform(-0.5, 0.5, (40, bones, 3)))
    target = unit(rng.normal(size=(40, 3))) * rng.uniform(0.3, 1.2, (40, 1))
    many = lines.Lines.of(body, target)
    missing = target - pose_of(body, angles).points[-1]
    np.testing.assert_allclose(lines.pose_of(many, last(angles)).missing, missing.T, atol=1e-14)
    for steps in (1, 3):
        one, cost, _ = descent.descend(body, angles, Aims(target[:, None], np.ones(1)), steps)
        other, missing, _ = line_descent.descend(many, last(angles), steps, descent.PULL)
        np.testing.assert_allclose(other, last(one), atol=1e-9)
        np.testing.assert_allclose(missing, cost, atol=1e-9)


@pytest.mark.parametrize("name", ["limits-45", "limits-asym", "hinges", "random"])
@pytest.mark.parametrize("bones", [1, 2, 5, 12])
def test_one_chain_in_plain_floats_does_what_many_do(name: str, bones: int) -> None:
    rng = np.random.default_rng(bones)
    body = body_of(chain(bones, random_ranges(rng, bones) if name == "random" else CHAINS[name]), 40)
    # Straight, closed, and any chains, with targets anywhere, on their line and exactly behind them.
    angles = allowed_angles(body, rng.uniform(-0.5, 0.5, (40, bones, 3)) * (np.arange(40) % 3 > 0)[:, None, None])
    target = unit(rng.normal(size=(40, 3))) * rng.uniform(0.3, 1.2, (40, 1))
    target[:12] = (0.7 * (-1.0) ** np.arange(12))[:, None] * pose_of(body, angles).points[-1][:12]
    many = lines.Lines.of(body, target)
    many.arms[..., 12:16] *= (-1.0) ** np.arange(bones)[:, None]
    swing, twist = split(angles)
    turns = np.ascontiguousarray(joint_rotation(swing, twist).swapaxes(1, 2))
    fk, start = line_guess.bent_towards(many, turns, 0)
    np.testing.assert_allclose(fk, last(angles), atol=1e-12)
    np.testing.assert_array_equal(line_guess.bent_towards(many, turns, 40), (fk, start))
    found, missing, steps = line_descent.descend(many, start, 30, descent.PULL)
    for i in range(40):
        one, there, used = line_single.descend_one(many, start, i, 30, descent.PULL)
        np.testing.assert_array_equal(one, found[..., i])
        assert (there, used) == (missing[i], steps[i])
    end, missing, steps = line_newton.polish(many, found, 40)
    for i in range(40):
        one, there, used = line_newton_single.polish_one(many, found, i, 40, line_newton.STILL)
        np.testing.assert_array_equal(one, end[..., i])
        assert (there, used) == (missing[i], steps[i])


def test_newtons_steps_go_by_the_curvature_of_the_distance() -> None:
    bones, count = 4, 20
    rng = np.random.default_rng(1)
    body = body_of(chain(bones, degrees((-90, 90), (-90, 90), (-90, 90))), count)
    angles = last(rng.uniform(-0.3, 0.3, (count, bones, 3)))
    many = lines.Lines.of(body, rng.normal(size=(count, 3)))

    def cost(step: Floats) -> Floats:
        moved = angles + step.reshape(bones, 3).T[..., None] * np.array([0.5, 0.5, 1.0])[:, None, None]
        return np.asarray((lines.pose_of(many, moved).missing ** 2).sum(axis=0) / 2.0)

    size, damping = 1e-3, 0.1
    steps = size * np.eye(3 * bones)
    slope = np.stack([cost(a) - cost(-a) for a in steps], axis=-1) / (2.0 * size)
    differences = [[cost(a + b) - cost(a - b) - cost(b - a) + cost(-a - b) for b in steps] for a in steps]
    curve = np.moveaxis(np.array(differences), -1, 0) / (2.0 * size) ** 2
    found = line_newton.step(many, angles, lines.pose_of(many, angles), np.full(count, damping))
    for i in range(count):
        wanted = upwards(curve[i], -slope[i], damping)
        np.testing.assert_allclose(found[..., i].T.ravel(), wanted, atol=1e-4 * np.abs(wanted).max())


def upwards(matrix: Floats, wanted: Floats, damping: float) -> Floats:
    """Return the solution of equations whose negative pivots are turned positive, and all damped."""
    left, factor, pivots = matrix.copy(), np.eye(len(matrix)), np.empty(len(matrix))
    for k in range(len(matrix)):
        pivots[k] = abs(left[k, k]) + damping
        factor[k + 1 :, k] = left[k + 1 :, k] / pivots[k]
        left -= pivots[k] * np.outer(factor[:, k], factor[:, k])
    return np.asarray(np.linalg.solve(factor @ np.diag(pivots) @ factor.T, wanted), dtype=np.float64)


@pytest.mark.parametrize("name", ["limits-30", "limits-asym", "hinges"])
def test_newtons_method_ends_where_no_small_change_is_better(name: str) -> None:
    rng = np.random.default_rng(3)
    body = body_of(chain(5, CHAINS[name]), 30)
    target = unit(rng.normal(size=(30, 3))) * rng.uniform(0.6, 1.4, (30, 1))
    many = lines.Lines.of(body, target)
    angles, missing, _ = line_newton.polish(many, np.zeros((3, 5, 30)), 60)
    for _ in range(50):
        tried = lines.allowed_angles(many, angles + 1e-4 * rng.normal(size=angles.shape) * many.ease)
        there = lines.pose_of(many, tried).missing
        assert (missing - np.sqrt((there**2).sum(axis=0))).max() < 1e-8


@pytest.mark.parametrize("name", ["limits-30", "limits-90", "limits-asym", "random"])
def test_no_pose_comes_nearer_than_the_limits_seem_to_let_it(name: str) -> None:
    rng = np.random.default_rng(4)
    body = body_of(chain(4, random_ranges(rng, 4) if name == "random" else CHAINS[name]), 60)
    many = lines.Lines.of(body, 1.5 * unit(rng.normal(size=(60, 3))))
    start = last(allowed_angles(body, rng.uniform(-1.0, 1.0, (60, 4, 3))))
    angles, missing, _ = line_newton.polish(many, start, 60)
    least = missing - line_search.may_be_missed(many, angles)
    for _ in range(300):
        tried = lines.allowed_angles(many, rng.uniform(-1.0, 1.0, angles.shape) * many.ease)
        there = lines.pose_of(many, tried).missing
        assert (np.sqrt((there**2).sum(axis=0)) > least).all()
    if name in ("limits-30", "limits-90"):
        assert np.count_nonzero(missing - least < 1e-9) > 50
