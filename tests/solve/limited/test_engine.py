"""The engine of bodies within limits, piece by piece: derivatives, Newton's steps, descents together, proofs."""

from collections.abc import Callable
from dataclasses import replace
from math import cos, sin
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cases import CHAINS, Rig, chain, degrees, random_ranges, tree_y
from ik_addon.solve import solve
from ik_addon.solve.limited.descent import State
from ik_addon.solve.limited.newton import Anchor, newton_step, polished, slopes_of
from ik_addon.solve.limited.objectives import SIDE, TURN, Orientation, Place, Pole, System, masses_of, moments_of
from ik_addon.solve.limited.search import bounds
from ik_addon.solve.limited.skeleton import Body, allowed_angles, posed, rows_of
from ik_addon.solve.limited.starts import Passes
from ik_addon.solve.maths.cones import Cone, cone_of
from ik_addon.solve.problem import Floats, path_of

from ..chains import for_each, random_rotations, unit

BALL = degrees((-60, 60), (-45, 45), (-60, 60))
ALL = -np.inf, np.inf
FREE = degrees(ALL, ALL, ALL)


def body_of(rig: Rig, free: tuple[int, ...] = ()) -> Body:
    """Return the body of a rig, some of whose bones do not inherit rotation."""
    heads = rig.heads.copy()
    for i, parent in enumerate(rig.parents):
        if parent >= 0:
            heads[i] = rig.frames[parent].T @ (rig.heads[i] - rig.heads[parent])
    tips = [int(np.arange(rig.bones)[tip]) for tip in rig.tips]
    ends = np.zeros((3, len(tips), 1))
    ends[1] = rig.lengths[tips][:, None]
    cone = cone_of(rig.ranges[:, [0, 2]].reshape(-1, 4), rig.ranges[:, 1])
    mobility = (rig.ranges[:, [0, 2, 1], 0] != rig.ranges[:, [0, 2, 1], 1]).astype(np.float64)
    return Body(
        tuple(rig.parents.tolist()),
        tuple(bool(parent < 0 or i in free) for i, parent in enumerate(rig.parents)),
        tuple(tips),
        rig.rest().transpose(1, 2, 0)[..., None],
        heads.T[..., None],
        ends,
        Cone(*(part[..., None] for part in cone)),
        np.ascontiguousarray(mobility.T)[..., None],
    )


class Bend(NamedTuple):
    """The pole that the branch of the first effector should bend to."""

    bones: tuple[int, ...]
    """The branch from its base to the effector's bone."""
    pole: Floats
    """(3,)"""
    angle: float
    """Radians about the line, added to the direction of the pole."""
    masses: Floats
    """(k + 1,) weight of each joint of the branch in the centroid of its curve, the effector's last."""


def system_of(
    body: Body, targets: Floats, weights: Floats, turn: Floats | None = None, bend: Bend | None = None
) -> System:
    """Return a body with targets (E, 3), their weights (E,), and a turn (3, 3) or a pole for the first effector."""
    skeleton = body.skeleton(0)
    factors, points = np.sqrt(weights).tolist(), targets.tolist()
    objectives: list[Any] = [Place.of(skeleton, e, tuple(points[e]), factor) for e, factor in enumerate(factors)]
    if turn is not None:
        objectives.append(Orientation.of(skeleton, 0, tuple(turn.ravel().tolist()), TURN))
    if bend is not None:
        path, half = path_of(skeleton.parents, skeleton.segments[0]), bend.angle / 2.0
        first, target, pole = path.index(bend.bones[0]), objectives[0].target, tuple(bend.pole.tolist())
        objectives.append(Pole(0, path, first, target, pole, (cos(half), sin(half)), bend.masses.tolist(), SIDE))
    return System.of(skeleton, objectives)


def goals_of(body: Body, rng: np.random.Generator, wishes: str = "") -> dict[str, Any]:
    """Return goals in and out of reach for `system_of`, with a pole or an orientation for the first end effector."""
    ends = len(body.segments)
    weights = rng.uniform(0.5, 1.0, ends)
    found: dict[str, Any] = {"targets": unit(rng.normal(size=(ends, 3))) * rng.uniform(0.3, 1.2)}
    found["weights"] = weights / weights.max()
    if "turn" in wishes:
        found["turn"] = random_rotations(rng, 1)[0]
    if "pole" in wishes:
        bones = path_of(body.parents, body.segments[0])[-3:]
        masses = masses_of(rng.uniform(0.5, 1.0, (3, len(bones) + 1, 1)))[:, 0]
        found["bend"] = Bend(bones, rng.normal(size=3), rng.uniform(-1.0, 1.0), masses)
    return found


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


def residual(system: System, angles: Floats) -> Floats:
    """Return the residual (m,) at joint angles (3, n)."""
    return np.array(State.of(system, rows_of(angles)).residual)


UNITS = np.array([0.5, 0.5, 1.0])[:, None]
"""Factors that convert radians to joint angles."""


def slope_and_curve(system: System, angles: Floats, size: float = 2e-4) -> tuple[Floats, Floats]:
    """Return the first and second derivatives of half the cost at joint angles (3, n), by finite differences."""
    steps = size * np.eye(angles.size)

    def cost(step: Floats) -> float:
        return float((residual(system, angles + step.reshape(-1, 3).T * UNITS) ** 2).sum() / 2.0)

    slope = np.array([cost(a) - cost(-a) for a in steps]) / (2.0 * size)
    curve = np.array([[cost(a + b) - cost(a - b) - cost(b - a) + cost(-a - b) for b in steps] for a in steps])
    return slope, curve / (2.0 * size) ** 2


def dense(system: System, rows: list[tuple[tuple[float, ...], ...]]) -> Floats:
    """Return rows of the Jacobian, joint by joint, as a matrix (m, 3, n)."""
    found = np.zeros((system.size, 3, len(rows)))
    for i, (own, lot) in enumerate(zip(system.equations, rows, strict=True)):
        for number, row in zip(own, lot, strict=True):
            found[number, :, i] = row
    return found


@for_each(name=RIGS)
def test_derivatives_match_finite_differences(name: str) -> None:
    size, rng = 1e-6, np.random.default_rng(2)
    body = body_of(*RIGS[name](rng))
    for _ in range(10):
        angles = angles_inside(body, rng, 0.3)
        # Use small rotation residuals: only these turn as the bone does.
        turn, own = posed(body, angles)[0][0, body.segments[0]], angles[..., 0]
        system = system_of(body, **goals_of(body, rng, "pole"), turn=turn)
        state = State.of(system, rows_of(own))
        shrinks = dense(system, system.rows(state.pose))
        pulls = system.pulls(state.pose, state.residual)
        slopes: Floats = np.array(slopes_of(state.pose, moments_of(system.skeleton, state.pose, pulls))).T
        for i in range(len(body.parents)):
            for k in range(3):
                move = np.zeros_like(own)
                move[k, i] = size
                moved = move * UNITS
                before, after = residual(system, own - moved), residual(system, own + moved)
                # The side's descent direction is not its derivative: a branch should go round its line, not nearer it.
                falls = (before - after) / (2.0 * size) * body.mobility[k, i, 0] ** 0.5
                np.testing.assert_allclose(shrinks[:-1, k, i], falls[:-1], atol=1e-7)
                slope = (after @ after - before @ before) / (4.0 * size)
                np.testing.assert_allclose(slopes[k, i], slope, atol=1e-7)


@for_each(free=((), (2,), (1, 3)), wishes=("", "turn", "pole", "turn and pole"))
def test_newtons_steps_follow_the_curvature_of_the_cost(wishes: str, free: tuple[int, ...]) -> None:
    bones, count, proper = 4, 20, 0
    rng = np.random.default_rng(4)
    body = body_of(chain(bones, FREE), free)
    damping = 1.0 if "pole" in wishes else 0.1
    for _ in range(count):
        own, goals = rng.uniform(-0.3, 0.3, (3, bones)), goals_of(body, rng, wishes)
        if "pole" in wishes:
            # A branch of all bones, as the curvature of a line that joints above move is left out; near its goals, as
            # the step for poles is exact where the curvature, damped a little, is positive.
            joints = posed(body, own[..., None])[1][0]
            goals["targets"] = joints[-1:] + 0.03 * rng.normal(size=(1, 3))
            middle = joints.mean(axis=0) + 0.1 * rng.normal(size=3)
            goals["bend"] = Bend(path_of(body.parents, body.segments[0]), 3.0 * middle, 0.2, np.full(bones + 1, 0.2))
        system = system_of(body, **goals)
        slope, curve = slope_and_curve(system, own)
        if "pole" in wishes and np.linalg.eigvalsh(curve)[0] < -0.09 * damping:
            continue
        # An anchor without weight: it only keeps pivots from being raised.
        state = State.of(system, rows_of(own))
        found, fall, *_ = newton_step(system, state, damping, Anchor(rows_of(own), 0.0))
        whole = curve + damping * np.eye(len(curve))
        wanted = np.linalg.solve(whole, -slope) if "pole" in wishes else upwards(curve, -slope, damping)
        np.testing.assert_allclose(np.array(found).ravel(), wanted, atol=2e-4 * np.abs(wanted).max())
        np.testing.assert_allclose(fall, -slope @ wanted, rtol=1e-3)
        proper += 1
    assert proper >= count // 4


@for_each(limits=((ALL, (-2, 2), ALL), ((-3, 3), ALL, (0, 0))))
def test_a_step_past_limits_ends_at_them_and_other_joints_make_up_for_it(
    limits: tuple[tuple[float, float], ...],
) -> None:
    rng, bones, share, held = np.random.default_rng(6), 4, 0.5, 0
    body = body_of(chain(bones, degrees(*limits)))
    for _ in range(10):
        own = angles_inside(body, rng, 0.02)[..., 0]
        # The anchor, at the pose itself, keeps all curvature positive near goals.
        frames, joints = posed(body, own[..., None] + 0.1 * rng.normal(size=(3, bones, 1)))
        system = system_of(body, joints[0, -1:], np.ones(1), frames[0, -1])
        slope, curve = slope_and_curve(system, own)
        curve += share * np.eye(len(curve))
        found, *_ = newton_step(system, State.of(system, rows_of(own)), 0.0, Anchor(rows_of(own), share))
        moves: Floats = np.array(found)
        inside = allowed_angles(body, (own + moves.T * UNITS)[..., None])[..., 0]
        np.testing.assert_allclose(moves, ((inside - own) / UNITS).T, atol=1e-5)
        # Whatever is neither at a limit nor locked is where the cost, damped, is least.
        edges = allowed_angles(body, (own + 1.001 * moves.T * UNITS)[..., None])[..., 0] - own - 1.001 * moves.T * UNITS
        is_free = ((abs(edges) < 1e-7) & (body.mobility[..., 0] > 0.0)).T.ravel()
        left = curve @ moves.ravel() + slope
        np.testing.assert_allclose(left[is_free], 0.0, atol=1e-3 * np.abs(slope).max())
        held += int(np.count_nonzero(~is_free & (moves.ravel() != 0.0)))
    assert held > 5


def upwards(matrix: Floats, wanted: Floats, damping: float) -> Floats:
    """Solve equations from the last to the first, with negative pivots made positive and all pivots damped."""
    left, factor, pivots = matrix[::-1, ::-1].copy(), np.eye(len(matrix)), np.empty(len(matrix))
    for k in range(len(matrix)):
        pivots[k] = abs(left[k, k]) + damping
        factor[k + 1 :, k] = left[k + 1 :, k] / pivots[k]
        left -= pivots[k] * np.outer(factor[:, k], factor[:, k])
    return np.asarray(np.linalg.solve(factor @ np.diag(pivots) @ factor.T, wanted[::-1])[::-1], dtype=np.float64)


def random_poses(body: Body, rng: np.random.Generator, count: int) -> Floats:
    """Return the ends (count, 3) of a chain in random poses."""
    angles = allowed_angles(body, rng.uniform(-1.0, 1.0, (3, len(body.parents), count)) * body.mobility)
    many = replace(body, **{part: np.repeat(getattr(body, part), count, axis=-1) for part in ("rest", "heads", "ends")})
    return posed(many, angles)[1][:, -1]


@for_each(name=("limits-30", "limits-90", "limits-asym", "random"), size=(0.2, 0.6, 1.5))
def test_no_pose_beats_the_lower_bound_that_limits_imply(name: str, size: float) -> None:
    rng, tight = np.random.default_rng(4), 0
    body = body_of(chain(4, random_ranges(rng, 4) if name == "random" else CHAINS[name]))
    ends = random_poses(body, rng, 20_000)
    for target in size * unit(rng.normal(size=(30, 3))):
        system = system_of(body, target[None], np.ones(1))
        tried = [polished(system, rows_of(angles_inside(body, rng, 1.0)[..., 0]), 60)[0] for _ in range(4)]
        state = min(tried, key=lambda each: float(each.error))
        (end,) = state.pose.ends
        least = max(bounds(body, 0, tuple(target.tolist()), tuple(unit(target - end).tolist()), 0.0))
        assert min(np.linalg.norm(ends - target, axis=1).min(), state.error) > least - 1e-7
        tight += state.error - least < 1e-6
    assert tight > 20 or name not in ("limits-30", "limits-90") or (name, size) == ("limits-90", 0.2)


@for_each(name=("limits-30", "limits-90", "limits-asym"))
def test_a_chain_stretches_by_one_pass_if_that_is_proven_to_be_best(name: str) -> None:
    rng, certain = np.random.default_rng(5), 0
    rig = chain(4, CHAINS[name])
    body = body_of(rig)
    ends = random_poses(body, rng, 20_000)
    forward = rng.normal(size=(60, 3)) + np.array([0.0, 1.0, 0.0])
    for target in unit(forward) * rng.uniform(1.0, 2.0, (60, 1)):
        passes = Passes(system_of(body, target[None], np.ones(1)))
        error = passes.error(passes.outward([(0.0, 0.0, 0.0)] * 4, passes.targets * 5))
        if error > np.linalg.norm(target) - 1.0 + 1e-9:
            continue
        certain += 1
        assert np.linalg.norm(ends - target, axis=1).min() >= error - 1e-12
        solution = solve(rig.problem(rig.at_rest(1), target[None, None]))
        np.testing.assert_allclose(solution.error, error, atol=1e-6)
        assert solution.iterations[0] <= 8
    assert certain > 2
