"""Limbs in closed form: two bones with limits and a pole, and the hand or foot at their end."""

from dataclasses import replace

import numpy as np
from numpy.random import Generator

from benchmarks.cases import CHAINS, FREE, LOCKED, Rig, bone_steps, chain, degrees, random_ranges
from ik_addon.solve import Limits, OutOfReach, Problem, Solution, Status, solve
from ik_addon.solve.limb.end_rotation import turned
from ik_addon.solve.maths.cones import cone_of
from ik_addon.solve.maths.products import back_times, times
from ik_addon.solve.maths.rotations import matrices, quaternions
from ik_addon.solve.problem import Floats
from tests.fuzz.problems import random_case
from tests.fuzz.verdict import assert_valid, check

from ..chains import aim, assert_mirrored, for_each, make_chains, random_rotations, unit, violation

KNEE = degrees((0, 150), LOCKED, LOCKED)
HIP = degrees((-110, 40), (-45, 45), (-60, 30))
LEG = np.stack([HIP, KNEE])
BALL = np.stack([HIP, degrees((-20, 120), (-30, 30), (-40, 25))])


def bent_rig(rng: Generator, ranges: Floats) -> Rig:
    """Return a limb at rest with a bent knee, bones of unequal lengths, and joints rolled about their bones."""
    frames = random_rotations(rng, 2)
    turn = random_rotations(rng, 1)[0]
    angle = rng.uniform(-0.5, 0.5)
    frames[1] = frames[0] @ matrices(np.array([[np.cos(angle)], [np.sin(angle)], [0.0], [0.0]]))[..., 0]
    frames = turn @ frames
    lengths = rng.uniform(0.5, 2.0, 2)
    lengths /= lengths.sum()
    heads = np.stack([np.zeros(3), frames[0, :, 1] * lengths[0]])
    return Rig(np.array([-1, 0]), heads, frames, lengths, ranges)


def random_problem(rng: Generator, rig: Rig, count: int, *, pole: bool = True) -> Problem:
    """Return targets that a limb can reach within its limits, from poses within them."""
    joints, _ = rig.pose(rig.turns_inside(rng, count))
    problem = rig.problem(rig.turns_inside(rng, count), joints[:, 2:], tolerance=1e-9)
    if pole:
        wanted = replace(problem.goal, pole=rng.normal(size=(count, 3)) * 2.0, pole_angle=rng.uniform(-1, 1, count))
        problem = replace(problem, goal=wanted)
    return problem


def rigs(rng: Generator) -> list[Rig]:
    """Return limbs with all kinds of joints."""
    ranges = [LEG, BALL, *(np.stack([CHAINS[name]] * 2) for name in CHAINS if name != "hinges")]
    ranges += [random_ranges(rng, 2) for _ in range(12)]
    ranges.append(np.stack([HIP, degrees(FREE, FREE, (-20, 70))]))
    ranges.append(np.stack([degrees(FREE, FREE, FREE), KNEE]))
    return [bent_rig(rng, each) if i % 2 else chain(2, each) for i, each in enumerate(ranges)]


@for_each(pole=(False, True), rounded=(False, True))
def test_targets_within_the_limits_are_reached_exactly_without_a_search(pole: bool, rounded: bool) -> None:
    """Also if rounding to single precision puts the ends of bones beside their axes."""
    rng = np.random.default_rng(1)
    for rig in rigs(rng):
        problem = random_problem(rng, rig, 60, pole=pole)
        if rounded:
            problem = replace(problem, joints=problem.joints.astype(np.float32).astype(np.float64))
        solution = solve(problem)
        assert solution.error.max() < (1e-7 if rounded else 1e-12)
        assert rounded or (solution.status == Status.REACHED).all()
        assert (solution.iterations == 0).all()
        assert_valid(problem, solution)


@for_each(pose=("straight", "bent", "curled", "wild"), pole=(False, True))
def test_limits_that_do_not_bind_give_the_pose_of_a_free_chain(pose: str, pole: bool) -> None:
    rng = np.random.default_rng(2)
    free = aim(make_chains(rng, 200, 2, pose, uneven=True), rng, 0.05, 0.999, pole=pole)
    wanted = solve(free)
    rig = chain(2, degrees((-180, 180), (-180, 180), (-180, 180)))
    limits = rig.problem(rig.at_rest(200), np.zeros((200, 1, 3))).limits
    assert limits is not None
    solution = solve(replace(free, limits=replace(limits, root=random_rotations(rng, 200))))
    np.testing.assert_allclose(solution.joints, wanted.joints, atol=1e-9)
    np.testing.assert_allclose(solution.rotations, wanted.rotations, atol=1e-9)
    assert (solution.iterations == 0).all()


def rolled(problem: Problem, roll: Floats, turn: Floats) -> tuple[Floats, Floats]:
    """Return the frames (k, 2, 3, 3) and knees (k, 3) of poses in which a single limb reaches its target.

    Args:
        problem: one member, whose bones point along their Y axes.
        roll: (k,) rotation of the knee in radians about the line from root to target, from the pole's side.
        turn: (k,) rotation of the upper bone in radians about its length; 0: its X axis is the knee's axis.
    """
    joints = problem.joints[0]
    first, second = np.linalg.norm(np.diff(joints, axis=0), axis=1)
    target = problem.goal.target[0] - joints[0]
    distance = np.linalg.norm(target)
    line = target / distance
    assert problem.goal.pole is not None
    assert problem.goal.pole_angle is not None
    across = unit(np.cross(line, np.cross(problem.goal.pole[0] - joints[0], line)))
    angle = roll + problem.goal.pole_angle[0]
    side = np.cos(angle)[:, None] * across + np.sin(angle)[:, None] * np.cross(line, across)
    along = (distance**2 + first**2 - second**2) / (2.0 * distance)
    knee = along * line + np.sqrt(first**2 - along**2) * side
    axes = []
    for y in (knee / first, (target - knee) / second):
        x = np.cross(side, line)
        axes.append(np.stack([x, y, np.cross(x, y)], axis=-1))
    spin = np.zeros((len(turn), 3, 3))
    spin[:, 0, 0] = spin[:, 2, 2] = np.cos(turn)
    spin[:, 0, 2], spin[:, 1, 1], spin[:, 2, 0] = np.sin(turn), 1.0, -np.sin(turn)
    return np.stack([axes[0] @ spin, axes[1]], axis=1), knee


def allowed(rig: Rig, frames: Floats) -> tuple[Floats, Floats]:
    """Return how far hips and the swings of knees (k,) are outside of their limits, in radians."""
    over = []
    rest = rig.rest()
    for i, turn in enumerate((np.swapaxes(rest[:1], -1, -2) @ frames[:, 0], None)):
        if turn is None:
            turn = np.swapaxes(frames[:, 0] @ rest[1], -1, -2) @ frames[:, 1]
        cone = cone_of(rig.ranges[i : i + 1, [0, 2]].reshape(-1, 4), rig.ranges[i : i + 1, 1])
        if i == 1:
            cone = cone._replace(twist_low=np.array([-np.inf]), twist_high=np.array([np.inf]))
        over.append(violation(quaternions(turn.transpose(1, 2, 0)), cone))
    return over[0], over[1]


def test_no_allowed_pose_has_its_knee_nearer_to_the_pole() -> None:
    rng = np.random.default_rng(3)
    grid = np.radians(np.arange(-180.0, 180.0, 4.0))
    roll, turn = (values.ravel() for values in np.meshgrid(grid, grid))
    bound = 0
    for rig in rigs(rng):
        if (rig.ranges[1] == 0.0).all(axis=-1)[[0, 2]].any():
            continue
        for _ in range(6):
            problem = random_problem(rng, rig, 1)
            solution = solve(problem)
            own = roll_of(problem, solution)
            assert own is not None
            hip, knee = allowed(rig, rolled(problem, roll, turn)[0])
            there = (hip < 1e-9) & (knee < 1e-9)
            best = np.abs(roll[there]).min() if there.any() else np.pi
            assert abs(own) <= best + 1e-6
            bound += abs(own) > 1e-3
    assert bound > 20


def roll_of(problem: Problem, solution: Solution) -> float | None:
    """Return the angle in radians from the pole's side to the knee; None if the knee is on the line to the target."""
    joints = solution.joints[0]
    line = unit(problem.goal.target[0] - joints[0])
    assert problem.goal.pole is not None
    assert problem.goal.pole_angle is not None
    across, knee = (np.cross(point - joints[0], line) for point in (problem.goal.pole[0], joints[1]))
    if np.linalg.norm(knee) < 1e-9:
        return None
    angle = np.arctan2(line @ np.cross(across, knee), across @ knee) - problem.goal.pole_angle[0]
    return float((angle + np.pi) % (2.0 * np.pi) - np.pi)


def test_a_knee_follows_its_pole_if_the_hip_allows_it() -> None:
    rng = np.random.default_rng(4)
    rig = chain(2, np.stack([degrees(FREE, FREE, FREE), KNEE]))
    for _ in range(50):
        problem = random_problem(rng, rig, 1)
        # A nearly straight knee is hardly off the line, so rounding affects its direction.
        assert abs(roll_of(problem, solve(problem)) or 0.0) < 1e-7


def test_a_smooth_path_makes_a_smooth_motion() -> None:
    rig = chain(2, LEG)
    time = np.linspace(0.0, 2.0 * np.pi, 600)
    targets = np.stack([0.15 * np.sin(time), 0.75 + 0.1 * np.cos(2 * time), -0.2 + 0.3 * np.sin(time)], axis=-1)
    for pole in (None, np.array([0.2, 0.5, -2.0])):
        problem = rig.problem(rig.at_rest(600), targets[:, None])
        if pole is not None:
            problem = replace(problem, goal=replace(problem.goal, pole=np.tile(pole, (600, 1))))
        solution = solve(problem)
        assert solution.reached.mean() > 0.9
        assert bone_steps(solution.rotations @ problem.frames).max() < 4.0


def legs(rng: Generator, count: int, foot: Floats) -> tuple[Rig, Problem]:
    """Return a leg with a foot whose joint has limits (3, 2), and the problem of reaching poses of its end and foot."""
    frames = np.tile(np.eye(3), (3, 1, 1))
    frames[2] = [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]
    heads = np.array([[0.0, 0.0, 0.0], [0.0, 0.45, 0.0], [0.0, 0.87, 0.0]])
    rig = Rig(np.array([-1, 0, 1]), heads, frames, np.array([0.45, 0.42, 0.13]), np.stack([HIP, KNEE, foot]))
    joints, wanted = rig.pose(rig.turns_inside(rng, count))
    problem = rig.problem(rig.turns_inside(rng, count, 0.5), joints[:, 3:], tolerance=1e-9)
    goal = replace(problem.goal, rotation=wanted[:, 2], pole=rng.normal(size=(count, 3)) * 2.0)
    return rig, replace(problem, goal=goal)


def loose_legs(seed: int) -> tuple[Rig, Problem]:
    """Return legs with feet of which only the knees have limits, and problems of poses as of legs with limits."""
    free = degrees(FREE, FREE, FREE)
    rig, problem = legs(np.random.default_rng(seed), 200, free)
    rig = replace(rig, ranges=np.stack([free, KNEE, free]))
    return rig, replace(problem, limits=rig.problem(rig.at_rest(200), np.zeros((200, 1, 3))).limits)


@for_each(pole=(False, True))
def test_a_foot_takes_its_orientation_while_its_limb_reaches_its_target(pole: bool) -> None:
    rng = np.random.default_rng(10)
    # The hip's twist follows the foot's orientation; a foot that swings freely takes any.
    _rig, problem = legs(rng, 100, degrees((-60, 60), (-40, 40), (-40, 40)))
    problem = replace(problem, goal=replace(problem.goal, pole=problem.goal.pole if pole else None))
    solution = solve(problem)
    closed = solution.iterations == 0
    assert closed.mean() > 0.95
    assert solution.error[closed].max() < 1e-12
    assert problem.goal.rotation is not None
    off = solution.rotations[:, 2] @ problem.frames[:, 2] - problem.goal.rotation
    assert np.abs(off[closed]).max() < 1e-12
    assert_valid(problem, solution)


def test_with_a_foot_and_a_bend_side_the_knee_follows_the_pole() -> None:
    _rig, problem = loose_legs(12)
    solution = solve(replace(problem, bend_side=np.tile([0.0, 0.0, 1.0], (200, 1))))
    assert (solution.iterations == 0).all()
    assert problem.goal.pole is not None
    line = unit(solution.joints[:, 2])
    bend, pole = (np.cross(line, points) for points in (solution.joints[:, 1], problem.goal.pole))
    off = np.arctan2((line * np.cross(pole, bend)).sum(axis=1), (pole * bend).sum(axis=1))
    bent = np.linalg.norm(solution.joints[:, 2], axis=1) < 0.87 - 1e-6
    assert bent.mean() > 0.5
    assert np.abs(off[bent]).max() < 1e-6


def test_with_a_foot_all_three_bones_follow_the_pole() -> None:
    rig, problem = loose_legs(11)
    solution = solve(problem)
    assert (solution.iterations == 0).all()
    line = unit(problem.goal.target)
    middles = (solution.joints[:, 1:] + solution.joints[:, :-1]) / 2.0
    assert problem.goal.pole is not None
    bend = np.cross(line, (middles * rig.lengths[:, None]).sum(axis=1))
    side = np.cross(line, problem.goal.pole)
    off = np.arctan2((line * np.cross(side, bend)).sum(axis=1), (side * bend).sum(axis=1))
    # If the foot alone moves the centroid too far off, no roll brings it to the pole's side.
    assert (np.abs(off) < 1e-6).mean() > 0.3
    ankle = solution.joints[:, 2]
    for k in np.flatnonzero(np.abs(off) > 1e-6)[:20]:
        own = unit(ankle[k])
        angle = np.linspace(-np.pi, np.pi, 721)[:, None]
        knee = solution.joints[k, 1]
        rolled_knee = (
            own * (own @ knee) + np.cos(angle) * (knee - own * (own @ knee)) + np.sin(angle) * np.cross(own, knee)
        )
        centroid = rig.lengths @ middles[k] + (rolled_knee - knee) * (rig.lengths[0] + rig.lengths[1]) / 2.0
        bends = np.cross(line[k], centroid)
        across = np.abs(bends @ np.cross(line[k], side[k])) / np.linalg.norm(side[k])
        own_across = abs(bend[k] @ np.cross(line[k], side[k])) / np.linalg.norm(side[k])
        assert own_across < across.min() + 1e-9 or side[k] @ bend[k] > 0.0


@for_each(pole=(False, True), policy=(*OutOfReach,), softness=(0.0, 0.1))
def test_free_limbs_with_feet_are_solved_alike_alone_and_together(
    pole: bool, policy: OutOfReach, softness: float
) -> None:
    rng = np.random.default_rng(13)
    _rig, problem = legs(rng, 60, degrees(FREE, FREE, FREE))
    goal = replace(problem.goal, target=problem.goal.target * rng.uniform(0.0, 1.3, (60, 1)))
    problem = replace(problem, limits=None, out_of_reach=policy, softness=softness, push_limit=0.2)
    problem = replace(problem, goal=goal if pole else replace(goal, pole=None))
    together, alone = solve(problem), [solve(problem.members([i])) for i in range(60)]
    for name in ("joints", "rotations", "stretch", "error", "status", "at_limit"):
        own = np.concatenate([getattr(each, name) for each in alone])
        np.testing.assert_allclose(getattr(together, name), own, rtol=0.0, atol=1e-9)


def test_left_and_right_limbs_are_mirror_images() -> None:
    rng = np.random.default_rng(6)
    for rig in rigs(rng):
        assert_mirrored(random_problem(rng, rig, 30))


def dense_search(rig: Rig, targets: Floats) -> list[float]:
    """Return the least distances from targets (k, 3) that a limb's end can have in an allowed pose.

    Poses are sampled evenly over the limits; the best are refined by a random walk with shrinking steps.
    """
    rng = np.random.default_rng(7)
    cone = cone_of(rig.ranges[:, [0, 2]].reshape(-1, 4), rig.ranges[:, 1])
    low, high = np.maximum(cone.twist_low, -np.pi), np.minimum(cone.twist_high, np.pi)
    spread, twists = inside_disc(rng, 40000), rng.uniform(low, high, (40000, 2))
    twists[::2] = np.where(rng.uniform(size=(20000, 2)) < 0.5, low, high)
    # Optima are often at the edges of limits.
    spread[..., ::3] /= np.maximum(np.hypot(*spread[..., ::3]), 1e-9)
    ends = ends_of(rig, spread, twists)
    least = []
    for target in targets:
        misses = np.linalg.norm(ends - target, axis=1)
        best = np.argsort(misses)[:30]
        shares, twist, misses = spread[..., best], twists[best], misses[best]
        for step in 0.3 * 0.93 ** np.arange(150):
            moved = shares[..., None] + step * rng.normal(size=(*shares.shape, 12))
            size = np.hypot(*moved)
            moved = np.where(rng.uniform(size=size.shape) < 0.5, moved / np.maximum(size, 1.0), moved / size)
            turned = np.clip(twist[..., None] + step * rng.normal(size=(*twist.shape, 12)), low[:, None], high[:, None])
            flat = np.moveaxis(moved, 2, 3).reshape(2, 2, -1)
            there = ends_of(rig, flat, np.moveaxis(turned, 1, 2).reshape(-1, 2))
            tried = np.linalg.norm(there - target, axis=1).reshape(12, -1)
            first, rows = tried.argmin(axis=0), np.arange(tried.shape[1])
            better = tried[first, rows] < misses
            shares = np.where(better, moved[..., rows, first], shares)
            twist = np.where(better[:, None], turned[rows, :, first], twist)
            misses = np.where(better, tried[first, rows], misses)
        least.append(float(misses.min()))
    return least


def ends_of(rig: Rig, shares: Floats, twist: Floats) -> Floats:
    """Return the ends (B, 3) of a limb for shares (2, 2, B) of the way to the limits and twists (B, 2)."""
    hip, knee = np.moveaxis(matrices(np.moveaxis(rig.turns(np.moveaxis(shares, -1, 1), twist), -1, 0)), -1, 0)
    rest, across = rig.rest(), rig.frames[0].T @ (rig.heads[1] - rig.heads[0])
    below = across[:, None] + rig.lengths[1] * (rest[1] @ knee[:, 1])
    return np.asarray(rig.heads[0] + (rest[0] @ np.einsum("ijb,jb->ib", hip, below)).T)


def inside_disc(rng: Generator, count: int) -> Floats:
    """Return points (2, 2, count) in the unit disc, for two joints."""
    angle, radius = rng.uniform(0.0, 2.0 * np.pi, (2, count)), np.sqrt(rng.uniform(size=(2, count)))
    return np.asarray(np.stack([np.cos(angle), np.sin(angle)]) * radius)


def test_out_of_reach_no_allowed_pose_comes_nearer() -> None:
    rng = np.random.default_rng(8)
    missed = 0
    for rig in rigs(rng):
        targets = unit(rng.normal(size=(3, 3))) * rng.uniform(0.2, 1.4, (3, 1))
        solution = solve(rig.problem(rig.turns_inside(rng, 3), targets[:, None]))
        # No pose can come nearer than this.
        far = solution.error > 1e-9
        assert (solution.error[far] <= np.array(dense_search(rig, targets[far])) + 1e-9).all()
        missed += int(np.count_nonzero(solution.error > 1e-3))
    assert missed > 30


def test_no_knee_leaves_a_cone_as_thin_as_a_line() -> None:
    """A case found by long runs: far out of reach, with the knee on the other side of its line."""
    case = random_case(20052029)
    check(case, solve(case.problem))


@for_each(
    ranges=(((-30, 180), (-20, 30)), ((-20, 30), (-180, 10)), ((-180, 180), (-20, 30))),
    twist=((-20, 30), (-2, 1), LOCKED),
    pole=(False, True),
)
def test_half_a_turn_is_made_about_an_axis_that_the_limits_allow(
    ranges: tuple[tuple[float, float], ...], twist: tuple[float, float], pole: bool
) -> None:
    """If a bone points straight back, at its hip or its knee, its direction does not show how it got there."""
    rng = np.random.default_rng(15)
    joint, other = degrees(ranges[0], twist, ranges[1]), degrees((-40, 40), (-20, 30), (-40, 40))
    for both, back in ((np.stack([joint, other]), -1.0), (np.stack([other, joint]), 0.2)):
        rig = chain(2, both)
        along = rig.heads[1] - rig.heads[0]
        targets = rig.heads[0] + back * np.tile(unit(along[None]), (12, 1))
        problem = rig.problem(rig.turns_inside(rng, 12), targets[:, None], tolerance=1e-9)
        if pole:
            problem = replace(problem, goal=replace(problem.goal, pole=rng.normal(size=(12, 3)) * 2.0))
        solution = solve(problem)
        assert_valid(problem, solution)


# ---- end bones: a hand or foot that takes an orientation within its limits


def turns(rng: np.random.Generator, count: int) -> Floats:
    q = rng.normal(size=(4, count))
    return matrices(q / np.linalg.norm(q, axis=0)).transpose(2, 0, 1)


def limits(rng: np.random.Generator, count: int, ranges: list[tuple[float, float]]) -> Limits:
    x, z, y = np.array(ranges)
    return Limits(turns(rng, 1), turns(rng, count), np.array([[*x, *z]]), y[None])


def test_without_limits_the_end_bone_takes_the_wanted_orientation() -> None:
    rng = np.random.default_rng(1)
    fk, wanted = turns(rng, 20), turns(rng, 20)
    for own in (None, limits(rng, 20, [FREE] * 3)):
        found, at_limit = turned(fk, wanted, own)
        assert np.array_equal(found, wanted)
        assert not at_limit.any()


def test_the_end_bone_stays_within_limits_and_takes_allowed_orientations_exactly() -> None:
    rng = np.random.default_rng(2)
    own = limits(rng, 400, [(-0.4, 1.2), (-0.2, 0.3), (-0.5, 0.9)])
    fk, wanted = turns(rng, 400), turns(rng, 400)
    cone = cone_of(own.cones, own.twist)

    def outside(frames: Floats) -> Floats:
        rest = times(own.root, np.broadcast_to(own.rest, (400, 3, 3)))
        return violation(quaternions(back_times(rest, frames).transpose(1, 2, 0)), cone)

    found, at_limit = turned(fk, wanted, own)
    assert outside(wanted).max() > 1.0
    assert outside(found).max() < 1e-9
    again, _ = turned(fk, found, own)
    assert np.abs(again - found).max() < 1e-9, "what the limits allow is taken as it is"
    inside = outside(wanted) == 0.0
    assert np.array_equal(found[inside], wanted[inside])
    assert at_limit[~inside].all()


def test_a_locked_end_bone_keeps_its_fk_rotation() -> None:
    rng = np.random.default_rng(3)
    fk, wanted = turns(rng, 5), turns(rng, 5)
    found, at_limit = turned(fk, wanted, limits(rng, 5, [(0.0, 0.0)] * 3))
    assert np.array_equal(found, fk)
    assert not at_limit.any()
