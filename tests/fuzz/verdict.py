"""Checks that every solution must pass, computed from problem and solution alone."""

import pickle
import warnings

import numpy as np
import pytest

from ik_addon.solve import OutOfReach, Problem, Solution, Status, solve
from ik_addon.solve.maths.cones import Cone, cone_of, nearest_swing, nearest_twist, swing_twist
from ik_addon.solve.maths.rotations import quaternions
from ik_addon.solve.problem import Bools, Floats
from tests.solve.chains import assert_alike, member, violation

from .problems import Case, is_body, paths, random_case

LIMIT = 1e-6
"""Radians by which a joint may exceed a limit."""
HALF_TURN = LIMIT / 2.0
"""A swing counts as half a turn, within `LIMIT`, if the cosine of half its angle is below this."""
EPS = 1e-13
"""Rounding error allowed, relative to the chain's length or to the largest coordinate."""


def check_seed(seed: int) -> Status | None:
    """Solve the case of a seed and raise AssertionError if anything is wrong.

    Returns:
        The status of its first member; None if the problem must be refused.
    """
    case = random_case(seed)
    before = pickle.dumps(case.problem)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        if case.refused:
            with pytest.raises(ValueError, match=case.refused):
                solve(case.problem)
            return None
        solution = solve(case.problem)
        check(case, solution)
        chosen = int(np.random.default_rng(seed).integers(len(case.problem.joints)))
        alone = solve(member(case.problem, chosen))
    assert pickle.dumps(case.problem) == before, "the problem was changed"
    same = Solution(*(value[chosen : chosen + 1] for value in vars(solution).values()))
    with np.errstate(invalid="ignore"):
        assert_alike(alone, same, np.maximum(1e-300, np.abs(case.problem.joints[chosen]).max()), 1e-6)
    return Status(int(solution.status[0]))


def assert_valid(problem: Problem, solution: Solution) -> None:
    """Assert that a solution is valid for a problem whose members all have some length."""
    check(Case(problem, np.zeros(len(problem.joints), dtype=bool), ""), solution)


def check(case: Case, solution: Solution) -> None:
    """Assert that a solution is valid for its problem."""
    problem = case.problem
    members = len(problem.joints)
    invalid = solution.status == Status.INVALID
    assert np.array_equal(invalid, case.spoiled), f"invalid: {invalid}, spoiled: {case.spoiled}"
    assert np.array_equal(solution.joints[invalid], problem.joints[invalid], equal_nan=True)
    assert (solution.rotations[invalid] == np.eye(3)).all()
    assert (solution.stretch[invalid] == 1.0).all()
    assert np.isnan(solution.error[invalid]).all()
    assert (solution.iterations[invalid] == 0).all()
    assert not solution.at_limit[invalid].any()
    left = np.flatnonzero(~invalid)
    if not len(left):
        return
    for name, value in vars(solution).items():
        assert np.isfinite(value[left]).all(), f"{name} is not finite"
        assert len(value) == members, f"{name} has the shape {value.shape}"
    assert solution.iterations[left].min() >= 0
    rotations = solution.rotations[left]
    assert np.abs(rotations @ rotations.swapaxes(-1, -2) - np.eye(3)).max() < 1e-11, "rotations are not orthonormal"
    assert np.abs(np.linalg.det(rotations) - 1.0).max() < 1e-11, "rotations are reflections"
    _check_joints(problem, solution, left)
    if problem.limits is not None:
        with np.errstate(invalid="ignore"):
            over = violations(problem, solution)[left].max()
        assert over <= LIMIT, f"a limit is passed by {over}"


def _check_joints(problem: Problem, solution: Solution, left: np.ndarray) -> None:
    """Assert that lengths are kept, that joints, rotations and errors agree, and that the status is right."""
    bones = problem.frames.shape[1]
    joints, solved = problem.joints[left], solution.joints[left]
    rotations, stretch = solution.rotations[left], solution.stretch[left]
    parents = (np.arange(bones) - 1 if problem.parents is None else problem.parents).tolist()
    ends = [(bones + e, path[-2]) for e, path in enumerate(paths(problem))]
    steps = [np.linalg.norm(np.diff(joints[:, path], axis=1), axis=2) for path in paths(problem)]
    lengths = np.stack([step.sum(axis=1) for step in steps], axis=1)
    size = lengths.max(axis=1)
    reach = np.abs(joints).max(axis=(1, 2)) + np.abs(solved).max(axis=(1, 2))
    noise = 20 * EPS * bones * (size + reach + np.abs(joints - joints[:, :1]).max(axis=(1, 2)))
    for at, above in [*enumerate(parents), *ends]:
        if above >= 0:
            offset = joints[:, at] - joints[:, above]
            now = solved[:, at] - solved[:, above]
            kept = np.linalg.norm(offset, axis=1) * stretch[:, above]
            # The length and direction of a tiny bone far from the root are rounding error, which stretch magnifies.
            room = noise * np.maximum(stretch[:, above], 1.0)
            assert (np.abs(np.linalg.norm(now, axis=1) - kept) <= room).all(), f"bone {above} changed its length"
            turned = (rotations[:, above] @ offset[..., None])[..., 0] * stretch[:, above, None]
            assert (np.abs(turned - now).max(axis=1) <= room).all() or problem.plane is not None, f"joint {at} is off"
        else:
            moved = solved[:, at] - joints[:, at] - (solved[:, 0] - joints[:, 0])
            assert (np.abs(moved).max(axis=1) <= noise).all(), "a root moved away from the others"
    _check_policy(problem, solved - joints, stretch, lengths, noise, left)
    targets = np.stack([goal.target[left] for goal in problem.goals], axis=1)
    error = solution.error[left].reshape(len(left), -1)
    if problem.plane is not None and not is_body(problem):
        normal = problem.plane[left] / np.linalg.norm(problem.plane[left], axis=1, keepdims=True)
        away = targets - joints[:, :1]
        targets = targets - (away * normal[:, None]).sum(axis=2, keepdims=True) * normal[:, None]
        off = np.abs(((solved - joints[:, :1]) * normal[:, None]).sum(axis=2)).max(axis=1)
        assert (off <= noise * np.maximum(stretch.max(axis=1), 1.0)).all(), f"out of its plane by {off / size}"
    miss = np.linalg.norm(targets - solved[:, bones:], axis=2)
    far = EPS * np.abs(targets - joints[:, :1]).max(axis=(1, 2))
    slack = noise + 10 * far + 1e-10 * size
    assert (np.abs(miss - error) <= slack[:, None]).all(), f"error {error}, but misses by {miss}"
    _check_status(problem, solution, left, error, lengths, steps, targets - joints[:, :1], slack)


def _per_member(value: Floats | float, problem: Problem, left: np.ndarray) -> Floats:
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (len(problem.joints),))[left]


def _check_policy(
    problem: Problem, moved: Floats, stretch: Floats, lengths: Floats, noise: Floats, left: np.ndarray
) -> None:
    """Assert that the root is pushed and bones are stretched only as the out-of-reach policy allows."""
    pushed = np.linalg.norm(moved[:, 0], axis=1)
    single = not problem.others
    if problem.out_of_reach is OutOfReach.PUSH_ROOT and single:
        cap = _per_member(problem.push_limit, problem, left) * lengths[:, 0]
        assert (pushed <= cap + noise + 1e-9 * lengths[:, 0]).all(), "pushed too far"
    else:
        assert (pushed <= noise).all(), "the root was pushed"
    if problem.out_of_reach is OutOfReach.STRETCH and single:
        assert (stretch >= 1.0).all(), "a bone was shortened"
    else:
        assert (stretch == 1.0).all(), "a bone was stretched"


def _check_status(
    problem: Problem,
    solution: Solution,
    left: np.ndarray,
    error: Floats,
    lengths: Floats,
    steps: list[Floats],
    offsets: Floats,
    slack: Floats,
) -> None:
    """Assert that the status agrees with error and reach."""
    status = solution.status[left]
    tolerance = _per_member(problem.tolerance, problem, left)[:, None] * lengths
    reached = status == Status.REACHED
    assert (error <= tolerance + slack[:, None])[reached].all(), "REACHED with too great an error"
    assert (error >= tolerance - slack[:, None])[~reached].any(axis=1).all(), "not REACHED though it was"
    body = is_body(problem)
    assert not (status == (Status.NOT_CONVERGED if body else Status.LIMITED)).any(), "the status of another kernel"
    far, near = status == Status.TOO_FAR, status == Status.TOO_NEAR
    if problem.others:
        assert not (far | near).any(), "a tree is too far or too near"
        return
    length, longest = lengths[:, 0], steps[0].max(axis=1)
    inner = np.maximum(0.0, 2.0 * longest - length)
    softness = np.minimum(_per_member(problem.softness, problem, left) * length, length - inner)
    distance = np.linalg.norm(offsets[:, 0], axis=1)
    # With a tolerance of 0 the error may be rounding alone, which says nothing about reach.
    clear = error[:, 0] > slack
    assert (distance >= length - softness - slack)[far & clear].all(), "TOO_FAR but within reach"
    assert (distance <= inner + slack)[near & clear].all(), "TOO_NEAR but not"


def _at_half_a_turn(q: Floats, cone: Cone) -> float:
    """How far a swing of half a turn is outside a cone, for its best axis: with a suitable twist any axis gives it."""
    own = np.arctan2(q[3], q[1])
    axis = np.concatenate([np.linspace(-np.pi, np.pi, 1441), [own, own + np.pi]])
    swing, double = np.stack([np.cos(axis), np.sin(axis)]), 2.0 * (own - axis)
    twist = np.arctan2(np.sin(double), np.cos(double))
    away = np.linalg.norm(swing - nearest_swing(swing, cone), axis=0)
    turned = twist - nearest_twist(twist, cone)
    return float(np.maximum(away, np.abs(np.arctan2(np.sin(turned), np.cos(turned)))).min())


def _about_one_axis(q: Floats, cone: Cone) -> float:
    """How far a swing must turn about a single axis to be inside the cone.

    The nearest swing in the plane of swings need not be the nearest rotation: if the cone is a line that ends near half
    a turn, the point nearest to a rounding error beside the line is farther along it, and there a step along the line
    turns thousands of times as far as a step aside.
    """
    swing, twist = swing_twist(q[:, None])
    axes = np.where(swing < 0.0, cone.low, cone.high)
    share = swing / np.maximum(axes, 1e-12)
    turned = twist - nearest_twist(twist, cone)
    least = np.inf
    for moved, kept in ((0, 1), (1, 0)):
        if abs(share[kept, 0]) <= 1.0:
            inside = swing.copy()
            inside[moved] = np.sign(swing[moved]) * axes[moved] * np.sqrt(1.0 - share[kept] ** 2)
            least = min(least, float(np.linalg.norm(_pointing(swing) - _pointing(inside))))
    if axes.max() <= 1.0:
        least = min(least, _from_edge(swing, axes))
    return max(least, float(np.abs(np.arctan2(np.sin(turned), np.cos(turned)))[0]))


def _from_edge(swing: Floats, axes: Floats) -> float:
    """Return the distance from where a swing (2, 1) points to the edge of its quadrant, with half-axes (2, 1)."""
    low, high = 0.0, 0.5 * np.pi
    for _ in range(6):
        around = np.linspace(low, high, 1001)
        edge = np.where(swing < 0.0, -axes, axes) * np.stack([np.cos(around), np.sin(around)])
        missed = np.linalg.norm(_pointing(edge) - _pointing(swing), axis=0)
        best = int(missed.argmin())
        low, high = around[max(best - 1, 0)], around[min(best + 1, 1000)]
    return float(missed[best])


def _pointing(swing: Floats) -> Floats:
    """The directions (3, ...) to which swings (2, ...) turn the axes of their bones."""
    square = (swing * swing).sum(axis=0)
    return np.concatenate([2.0 * swing * np.sqrt(np.maximum(1.0 - square, 0.0)), 1.0 - 2.0 * square[None]])


def violations(problem: Problem, solution: Solution) -> Floats:
    """How far joints are outside their limits (B, n), in radians, computed from the solved frames."""
    limits = problem.limits
    assert limits is not None
    members, bones = problem.frames.shape[:2]
    frames, fk = solution.rotations @ problem.frames, problem.frames
    rest = np.broadcast_to(limits.rest, fk.shape)
    ranges = np.concatenate([limits.cones, limits.twist], axis=1)
    locked = (ranges == 0.0).all(axis=1)
    cones = cone_of(limits.cones, limits.twist)
    parents = (np.arange(bones) - 1 if problem.parents is None else problem.parents).tolist()
    inherits: Bools = np.ones(bones, dtype=bool) if problem.inherits is None else problem.inherits
    over = np.zeros((members, bones))
    for i, parent in enumerate(parents):
        if parent < 0 or not inherits[i]:
            above = fk_above = limits.root if inherits[i] else np.tile(np.eye(3), (members, 1, 1))
        else:
            above, fk_above = frames[:, parent], fk[:, parent]
        if locked[i]:
            # A locked joint keeps its FK rotation relative to its parent.
            if parent < 0:
                fk_above = above
            turn = (fk_above.swapaxes(-1, -2) @ fk[:, i]).swapaxes(-1, -2) @ (above.swapaxes(-1, -2) @ frames[:, i])
            over[:, i] = np.linalg.norm(turn - np.eye(3), axis=(1, 2)) / np.sqrt(2.0)
        else:
            zero = above @ rest[:, i]
            joint = zero.swapaxes(-1, -2) @ frames[:, i]
            q = quaternions(joint.transpose(1, 2, 0))
            cone = Cone(*(part[..., i : i + 1] for part in cones))
            over[:, i] = violation(q, cone)
            for far in np.flatnonzero(over[:, i] > LIMIT):
                over[far, i] = min(over[far, i], _about_one_axis(q[:, far], cone))
            for half in np.flatnonzero(np.hypot(q[0], q[2]) < HALF_TURN):
                over[half, i] = min(over[half, i], _at_half_a_turn(q[:, half], cone))
    return over
