"""Problems for tests of the solvers: chains in all starting poses, with targets for them."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from inspect import Parameter, signature
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from ik_addon.solve import Goal, Limits, Problem, Solution, Status, solve
from ik_addon.solve.maths.cones import Cone, joint_rotation, nearest_direction, nearest_twist, swing_twist
from ik_addon.solve.maths.numbers import MANY
from ik_addon.solve.maths.rotations import about_vectors, matrices
from ik_addon.solve.maths.turns import direction_of
from ik_addon.solve.maths.vectors import minus, size_of
from ik_addon.solve.problem import Floats
from tests.conftest import sampled

ACROSS = np.diag([-1.0, 1.0, 1.0])
POSES = ("straight", "bent", "curled", "wavy", "wild", "folded")


def unit(vectors: Floats) -> Floats:
    """Return vectors (..., 3) scaled to length 1."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def random_rotations(rng: Generator, count: int) -> Floats:
    """Return uniformly distributed rotation matrices (count, 3, 3)."""
    q, r = np.linalg.qr(rng.normal(size=(count, 3, 3)))
    q = q * np.sign(np.einsum("bii->bi", r))[:, None, :]
    q[:, :, 0] *= np.linalg.det(q)[:, None]
    return np.asarray(q)


def turn_about(axis: Floats, angle: float) -> Floats:
    """Return the matrix (3, 3) of a rotation by an angle in radians."""
    return np.asarray(matrices(about_vectors(unit(axis)[:, None] * angle))[..., 0])


def pose_directions(rng: Generator, count: int, bones: int, pose: str) -> Floats:
    """Return unit bone directions (count, bones, 3) of a pose whose line is near Y and which bends about X."""
    if pose in ("wild", "wavy"):
        noise = rng.normal(size=(count, bones, 3))
        return unit(noise if pose == "wild" else 0.4 * noise + [0.0, 1.0, 0.0])
    middle = np.arange(bones) - (bones - 1) / 2
    turns = {"straight": 0.0, "bent": 0.4 / bones, "curled": 8.0 / bones, "folded": 0.0}
    angles = np.broadcast_to(middle * turns[pose], (count, bones))
    if pose == "folded":
        angles = angles + np.pi * (np.arange(bones) % 2)
    return np.stack([np.zeros_like(angles), np.cos(angles), np.sin(angles)], axis=-1)


def make_chains(rng: Generator, count: int, bones: int, pose: str = "bent", *, uneven: bool = False) -> Problem:
    """Return `count` chains of length 1 at random places and orientations, each with its FK tip as its target."""
    lengths = rng.uniform(0.2, 2.0, (count, bones)) if uneven else np.ones((count, bones))
    lengths = lengths / lengths.sum(axis=1, keepdims=True)
    directions = pose_directions(rng, count, bones, pose)
    x = np.broadcast_to([1.0, 0.0, 0.0], directions.shape)
    if pose in ("wild", "wavy"):
        x = unit(np.cross(directions, rng.normal(size=(count, bones, 3))))
    frames = np.stack([x, directions, np.cross(x, directions)], axis=-1)
    world = random_rotations(rng, count)
    joints = np.zeros((count, bones + 1, 3))
    joints[:, 1:] = np.cumsum(directions * lengths[..., None], axis=1)
    joints = np.einsum("bij,bnj->bni", world, joints) + rng.normal(size=(count, 1, 3))
    return Problem(joints=joints, frames=world[:, None] @ frames, goal=Goal(target=joints[:, -1].copy()))


def lengths_of(joints: Floats) -> Floats:
    """Return the segment lengths (B, n)."""
    return np.asarray(np.linalg.norm(np.diff(joints, axis=1), axis=-1))


def inner_radius(problem: Problem) -> Floats:
    """Return the least distance (B,) that each chain can reach."""
    lengths = lengths_of(problem.joints)
    return np.maximum(0.0, 2 * lengths.max(axis=1) - lengths.sum(axis=1))


def aim(problem: Problem, rng: Generator, low: float, high: float, *, pole: bool = False) -> Problem:
    """Set targets in random directions, at `low` to `high` of the way from the inner reach to full extension."""
    count = len(problem.joints)
    inner = inner_radius(problem)
    distance = inner + (1.0 - inner) * rng.uniform(low, high, count)
    target = problem.joints[:, 0] + unit(rng.normal(size=(count, 3))) * distance[:, None]
    poles = problem.joints[:, 0] + rng.normal(size=(count, 3)) * 2 if pole else None
    angle = rng.uniform(-3, 3, count) if pole else None
    return replace(problem, goal=Goal(target, poles, angle))


def mirrored(problem: Problem) -> Problem:
    """Return the mirror image of a problem in the plane X = 0, whose bones keep the sides that their X axes have."""

    def turned(frames: Floats) -> Floats:
        return np.asarray(ACROSS @ frames @ ACROSS)

    def goal_of(goal: Goal) -> Goal:
        image: dict[str, Any] = {"target": goal.target @ ACROSS}
        if goal.pole is not None:
            image["pole"] = goal.pole @ ACROSS
        if goal.pole_angle is not None:
            image["pole_angle"] = -goal.pole_angle
        if goal.rotation is not None:
            image["rotation"] = turned(goal.rotation)
        return replace(goal, **image)

    image: dict[str, Any] = {"goal": goal_of(problem.goal), "others": tuple(map(goal_of, problem.others))}
    for name, sign in (("plane", 1.0), ("bend_side", 1.0), ("folds", -1.0)):
        own = getattr(problem, name)
        image[name] = None if own is None else sign * own @ ACROSS
    if problem.limits is not None:
        rest, root, cones, twist = vars(problem.limits).values()
        # Mirroring keeps rotations about X, and reverses those about Z and Y.
        cones = np.concatenate([cones[..., :2], -cones[..., :1:-1]], axis=-1)
        image["limits"] = Limits(turned(rest), turned(root), cones, -twist[..., ::-1])
    return replace(problem, joints=problem.joints @ ACROSS, frames=turned(problem.frames), **image)


def assert_mirrored(problem: Problem, within: float | Floats = 1e-7) -> None:
    """Assert that a problem's mirror image has the mirror image of its solution, within (B, 1, 1, 1) or a number."""
    one, other = solve(problem), solve(mirrored(problem))
    assert one.status.tolist() == other.status.tolist()
    bound = np.reshape(within, (-1, 1, 1))
    assert (np.abs(other.joints - one.joints @ ACROSS) <= bound).all()
    assert (np.abs(other.rotations - ACROSS @ one.rotations @ ACROSS) <= bound[..., None]).all()
    np.testing.assert_allclose(other.stretch, one.stretch, rtol=0.0, atol=1e-9)


def bends(joints: Floats) -> Floats:
    """Return the angle (B, n - 1) in radians by which each joint after the root bends."""
    directions = unit(np.diff(joints, axis=1))
    return np.asarray(np.arccos(np.clip((directions[:, 1:] * directions[:, :-1]).sum(axis=-1), -1.0, 1.0)))


def led_by_tip(joints: Floats, forward: Floats) -> float:
    """Return the share of the bend of one chain (n+1, 3), from its former direction on, in its last three joints."""
    own = bends(np.concatenate([joints[:1] - forward, joints])[None])[0]
    return float(own[-3:].sum() / own.sum())


def repeated(problem: Problem, targets: Floats) -> Problem:
    """Return copies of a problem's first member, one for each target (F, 3)."""
    return replace(problem.members(np.zeros(len(targets), dtype=np.int64)), goal=Goal(targets))


def on_path(one: Problem, path: Floats) -> Problem:
    """Return copies of a single chain with targets on a path (F, 3), in axes of which Y points to the chain's tip."""
    forward = unit(one.joints[0, -1] - one.joints[0, 0])
    across = unit(np.cross(forward, [0.3, 0.2, 0.9]))
    basis = np.stack([across, forward, np.cross(across, forward)], axis=-1)
    return repeated(one, one.joints[:, 0] + path @ basis.T)


def member(problem: Problem, i: int) -> Problem:
    """Return one member of a batch as a batch of its own."""
    return problem.members(np.arange(len(problem.joints)) == i)


def solve_together(*problems: Problem) -> list[Solution]:
    """Return the solutions of problems of one shape and with the same settings, solved in one batch."""

    def joined(parts: list[Floats | None]) -> Any:
        return None if parts[0] is None else np.concatenate(parts)

    def goal_of(*goals: Goal) -> Goal:
        names = ("target", "pole", "pole_angle", "rotation")
        return replace(goals[0], **{name: joined([getattr(goal, name) for goal in goals]) for name in names})

    first, *others = map(goal_of, *(problem.goals for problem in problems))
    bounds = [problem.limits for problem in problems if problem.limits is not None]
    limits = replace(bounds[0], root=joined([each.root for each in bounds])) if bounds else None
    joints, frames = (joined([getattr(problem, name) for problem in problems]) for name in ("joints", "frames"))
    all_of = solve(replace(problems[0], joints=joints, frames=frames, goal=first, others=tuple(others), limits=limits))
    count, names = len(problems[0].joints), Solution.__dataclass_fields__
    starts = range(0, len(joints), count)
    return [Solution(*(getattr(all_of, name)[i : i + count] for name in names)) for i in starts]


def reached(problem: Problem) -> Solution:
    """Solve a problem, and assert that all of its targets are reached."""
    solution = solve(problem)
    assert (solution.status == Status.REACHED).all()
    return solution


def for_each(**shapes: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for every combination of the values of these arguments, as one test; a failure names its own."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(pytestconfig: pytest.Config, **fixtures: Any) -> None:
            for values in sampled(list(product(*shapes.values())), pytestconfig):
                chosen = dict(zip(shapes, values, strict=True))
                try:
                    test(**chosen, **fixtures)
                except BaseException as error:
                    error.add_note(f"with {', '.join(f'{name}={value}' for name, value in chosen.items())}")
                    raise

        own = signature(test)
        rest = [parameter for name, parameter in own.parameters.items() if name not in shapes]
        run.__signature__ = own.replace(parameters=[*rest, Parameter("pytestconfig", Parameter.KEYWORD_ONLY)])
        return run

    return decorate


def assert_alike(one: Solution, other: Solution, size: Floats | float = 1.0, within: float = 1e-9) -> None:
    """Assert that two solutions agree to `within`, in places times the sizes (B,) of their chains."""
    sizes = np.broadcast_to(size, len(one.joints))
    assert one.status.tolist() == other.status.tolist()
    for name in ("joints", "error", "rotations", "stretch"):
        ours, theirs = getattr(one, name), getattr(other, name)
        scale = sizes if name in ("joints", "error") else np.ones(len(sizes))
        with np.errstate(invalid="ignore"):
            gap = np.abs(ours - theirs) / scale.reshape(-1, *(1,) * (ours.ndim - 1))
        off = ~((gap < within) | (ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
        assert not off.any(), f"{name} differ by {gap[off].max():.2g}, first at {np.argwhere(off)[0].tolist()}"


def clamp(q: Floats, cone: Cone) -> Floats:
    """Return the allowed joint rotations (4, ...) nearest to unit quaternions (4, ...), swing and twist each."""
    swing, twist = swing_twist(q)
    return joint_rotation(nearest_direction(swing, cone), nearest_twist(twist, cone))


def violation(q: Floats, cone: Cone) -> Floats:
    """Return how far (...) unit quaternions (4, ...) are outside their cones, in radians of swing or of twist."""
    swing, twist = swing_twist(q)
    near = nearest_direction(swing, cone)
    ways = (direction_of(MANY, x, z) for x, z in (swing, near))
    over = 2.0 * np.arcsin(np.minimum(size_of(MANY, minus(*ways)) / 2.0, 1.0))
    arc = twist - nearest_twist(twist, cone)
    return np.asarray(np.maximum(over, np.abs(arc - 2.0 * np.pi * np.round(arc / (2.0 * np.pi)))))
