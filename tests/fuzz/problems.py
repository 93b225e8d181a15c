"""Random problems for the solvers, one per seed: every shape, size and setting, solvable or not."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from ik_addon.solve import Goal, Limits, OutOfReach, Problem, Solver
from ik_addon.solve.problem import Bools, Floats, Ints
from tests.solve.chains import POSES, pose_directions, random_rotations, unit

NO_LENGTH = 1e-6
"""In chain lengths: the documentation says that shorter segments are carried along rigidly."""


@dataclass(frozen=True)
class Case:
    """A problem and what to expect of its solution."""

    problem: Problem
    spoiled: Bools
    """Mask (B,) of members that have no length."""
    refused: str
    """Pattern of the ValueError that the problem must raise; empty if it must not raise."""


def random_case(seed: int) -> Case:
    """Return the case of a seed."""
    rng = np.random.default_rng([20, seed])
    kind = rng.choice(["free", "body", "tree", "planar"], p=[0.8, 0.06, 0.04, 0.1])
    bones, members = _size(rng, kind), int(rng.choice([1, 2, 3, 9, 12], p=[0.5, 0.2, 0.15, 0.1, 0.05]))
    if kind in {"body", "tree"}:
        members = 1 if bones > 12 else min(members, 3 if rng.random() < 0.9 else 9)
    problem = _skeleton(rng, members, bones, kind)
    problem = _with_settings(rng, problem, kind)
    if kind in {"body", "tree"}:
        problem = _with_joints(rng, problem)
    spoiled = ~_have_length(problem)
    refused = ""
    if problem.solver is Solver.TWO_BONE and problem.parents is None and (_segments(problem) != 2)[~spoiled].any():
        refused = "two-bone solver needs exactly two segments"
    return Case(problem, spoiled, refused)


def _size(rng: Generator, kind: str) -> int:
    """A number of bones from 1 to 299, mostly small: cases that take long are rare."""
    joints = kind in {"body", "tree"}
    most = int(rng.choice([4, 12, 40, 299], p=[0.7, 0.2945, 0.005, 0.0005] if joints else [0.4, 0.4, 0.15, 0.05]))
    return int(rng.integers(1, most + 1))


def _skeleton(rng: Generator, members: int, bones: int, kind: str) -> Problem:
    """Chains or a tree in a random FK pose, in all sizes and places, with targets."""
    pose = str(rng.choice(POSES))
    directions = pose_directions(rng, members, bones, pose)
    if rng.random() < 0.2:
        # As in rigs: exactly along the axes, and exactly straight or folded.
        directions = np.eye(3)[rng.integers(0, 3, (members, bones))] * rng.choice([-1.0, 1.0], (members, bones, 1))
    lengths = _lengths(rng, members, bones)
    x = unit(np.cross(directions, rng.normal(size=(members, bones, 3))) + 1e-12)
    y = directions if rng.random() < 0.7 else unit(rng.normal(size=directions.shape))
    x = unit(x - (x * y).sum(axis=-1, keepdims=True) * y)
    frames = np.stack([x, y, np.cross(x, y)], axis=-1)
    parents = _parents(rng, bones) if kind == "tree" else np.arange(bones) - 1
    ends = [int(bones - 1)]
    if kind == "tree":
        ends = [int(i) for i in rng.choice(bones, size=min(bones, int(rng.integers(1, 5))), replace=False)]
    steps = directions * lengths[..., None]
    points = np.zeros((members, bones + len(ends), 3))
    for i, parent in enumerate(parents.tolist()):
        points[:, i] = points[:, parent] + steps[:, parent] if parent >= 0 else 0.0
        if kind == "tree":
            # Branches may start away from their parent's tail; further roots always start elsewhere.
            aside = rng.normal(size=(members, 3)) * lengths.max()
            points[:, i] += aside * (rng.random() < 0.3 or (parent < 0 and i > 0)) * (i > 0)
    for e, end in enumerate(ends):
        points[:, bones + e] = points[:, end] + steps[:, end]
    world = random_rotations(rng, members) if rng.random() < 0.8 else np.tile(np.eye(3), (members, 1, 1))
    size = 10.0 ** (rng.uniform(-80, 120) if rng.random() < 0.05 else rng.uniform(-4, 4))
    place = rng.normal(size=(members, 1, 3)) * rng.choice([0.0, 1.0, 1e3, 1e6], p=[0.3, 0.5, 0.15, 0.05])
    joints = (np.einsum("bij,bnj->bni", world, points) + place) * size
    frames = world[:, None] @ frames
    goals = []
    for e, end in enumerate(ends):
        goal = Goal(_target(rng, joints, bones + e, bones, parents, end))
        if kind == "tree":
            goal = replace(goal, segment=end, weight=float(10.0 ** rng.uniform(-3, 1)))
        goals.append(goal)
    tree = parents if kind == "tree" else None
    return Problem(joints, frames, goals[0], others=tuple(goals[1:]), parents=tree)


def _lengths(rng: Generator, members: int, bones: int) -> Floats:
    """Bone lengths (B, n) with a sum of about 1: equal, uneven, zero, or close to zero."""
    shape = members, bones
    kind = rng.choice(["alike", "uneven", "wild", "zeros", "edge", "one long"], p=[0.3, 0.25, 0.15, 0.15, 0.05, 0.1])
    lengths = np.ones(shape)
    if kind == "uneven":
        lengths = rng.uniform(0.2, 2.0, shape)
    elif kind == "wild":
        lengths = 10.0 ** rng.uniform(-4.0, 0.0, shape)
    elif kind in {"zeros", "edge"}:
        lengths = rng.uniform(0.2, 2.0, shape)
        # Not all of them: a chain without any length counts as spoiled.
        none = rng.random(shape) < 0.4
        none[np.arange(members), rng.integers(0, bones, members)] = False
        lengths[none] = 0.0 if kind == "zeros" else NO_LENGTH * 10.0 ** rng.uniform(-1.0, 1.0)
    elif kind == "one long":
        lengths[np.arange(members), rng.integers(0, bones, members)] = bones * rng.uniform(1.0, 4.0)
    return np.asarray(lengths / lengths.sum(axis=1, keepdims=True))


def _parents(rng: Generator, bones: int) -> Ints:
    """Parents (n,) of a random tree, sometimes with several roots."""
    near = rng.random() < 0.5
    return np.array([-1, *(int(rng.integers(max(-1, i - 3) if near else 0, i)) for i in range(1, bones))])


def _target(rng: Generator, joints: Floats, effector: int, bones: int, parents: Ints, end: int) -> Floats:
    """Targets (B, 3) of an effector: near, far, at its place, at the root, on the line to it, exactly at full reach."""
    path = [effector]
    while end >= 0:
        path.append(end)
        end = int(parents[end])
    steps = np.linalg.norm(np.diff(joints[:, path], axis=1), axis=2)
    length, longest = steps.sum(axis=1), steps.max(axis=1)
    root, tip = joints[:, 0], joints[:, effector]
    with np.errstate(all="ignore"):
        line = np.nan_to_num((tip - root) / np.linalg.norm(tip - root, axis=1, keepdims=True))
    away = unit(rng.normal(size=root.shape))
    kind = str(
        rng.choice(["inside", "tip", "root", "line", "behind", "rim", "beyond", "far", "inner", "axis", "close"])
    )
    inner = np.maximum(0.0, 2.0 * longest - length)
    distance = {
        "inside": length * rng.uniform(0.0, 1.0, len(length)),
        "rim": length * (1.0 + rng.choice([-1e-3, -1e-6, -1e-9, -1e-14, 0.0, 1e-14, 1e-9, 1e-6])),
        "beyond": length * rng.uniform(1.0, 3.0, len(length)),
        "far": length * 10.0 ** rng.uniform(1.0, 8.0),
        "inner": inner * rng.choice([0.5, 1.0 - 1e-9, 1.0, 1.0 + 1e-9]),
        "close": length * 10.0 ** rng.uniform(-15.0, -1.0),
    }
    if kind == "tip":
        return tip.copy()
    if kind == "root":
        return root.copy()
    if kind in {"line", "behind"}:
        share = rng.uniform(0.0, 1.2, len(length)) * (-1.0 if kind == "behind" else 1.0)
        return np.asarray(root + line * (share * length)[:, None])
    if kind == "axis":
        axis = np.eye(3)[rng.integers(0, 3)] * rng.choice([-1.0, 1.0])
        return np.asarray(root + axis * (length * rng.uniform(0.0, 1.1))[:, None])
    return np.asarray(root + away * distance[kind][:, None])


def _with_settings(rng: Generator, problem: Problem, kind: str) -> Problem:
    """The problem with random values of all settings of free chains."""
    members, bones = problem.frames.shape[:2]
    size = np.abs(np.diff(problem.joints, axis=1)).sum(axis=(1, 2))[:, None] + 1e-300

    def maybe(value: Any, chance: float) -> Any:
        return value if rng.random() < chance else None

    def aimed(goal: Goal) -> Goal:
        pole = problem.joints[:, 0] + rng.normal(size=(members, 3)) * size
        if rng.random() < 0.2:
            places = (
                goal.target,
                problem.joints[:, 0],
                problem.joints[:, -1],
                (goal.target + problem.joints[:, 0]) / 2.0,
            )
            pole = places[int(rng.integers(4))].copy()
        turn = random_rotations(rng, members) if rng.random() < 0.8 else np.tile(np.eye(3), (members, 1, 1))
        return replace(
            goal,
            pole=maybe(pole, 0.4),
            pole_angle=maybe(rng.uniform(-7, 7, members), 0.3),
            rotation=maybe(turn, 0.25) if kind in {"body", "tree"} else None,
        )

    weights = rng.choice([0.0, 0.3, 1.0, 5.0], size=bones) if rng.random() < 0.7 else np.zeros(bones)
    softness: Floats | float = float(rng.choice([0.0, 0.0, 0.05, 0.3, 1.0]))
    if rng.random() < 0.2:
        softness = rng.uniform(0.0, 1.0, members)
    push: Floats | float = float(rng.choice([np.inf, 0.0, 0.25, 3.0]))
    if rng.random() < 0.2:
        push = rng.uniform(0.0, 2.0, members)
    tolerance: Floats | float = float(10.0 ** rng.uniform(-12, 0)) if rng.random() < 0.9 else 0.0
    solver = rng.choice([Solver.AUTO, Solver.EVEN_BEND, Solver.FABRIK])
    if rng.random() < (0.5 if bones == 2 else 0.05):
        solver = Solver.TWO_BONE
    problem = replace(
        problem,
        goal=aimed(problem.goal),
        others=tuple(map(aimed, problem.others)),
        inherits=maybe(rng.random(bones) < 0.7, 0.25),
        solver=solver,
        out_of_reach=rng.choice(list(OutOfReach)),
        softness=softness,
        push_limit=push,
        stretch_weights=maybe(weights, 0.4),
        bend_lead=float(rng.choice([0.0, 0.0, 0.0, -1.0, 0.3, 1.0])),
        stiffness=maybe(rng.uniform(0.0, 0.99, (bones, 3)) * (rng.random((bones, 3)) < 0.5), 0.2),
        tolerance=tolerance,
        iterations=int(rng.choice([100, 100, 100, 500, 20, 5, 1, 0])),
    )
    if kind == "planar":
        normal = (
            rng.normal(size=(members, 3)) if rng.random() < 0.7 else np.tile(np.eye(3)[rng.integers(3)], (members, 1))
        )
        problem = replace(problem, plane=normal * 10.0 ** rng.uniform(-3, 3))
    return problem


def _with_joints(rng: Generator, problem: Problem) -> Problem:
    """The problem with limits of every kind, stiffness, and sometimes a mirrored member."""
    members, bones = problem.frames.shape[:2]
    if rng.random() < 0.3:
        problem = replace(problem, stiffness=rng.uniform(0.0, 0.99, (bones, 3)) * (rng.random((bones, 3)) < 0.5))
    mirrored = np.where(rng.random(members) < 0.15, -1.0, 1.0)
    if problem.inherits is not None and not problem.inherits.all():
        mirrored[:] = 1.0
    across = np.ones((members, 3))
    across[:, 0] = mirrored
    frames = problem.frames * across[:, None, None, :]
    problem = replace(problem, frames=frames)
    if rng.random() < 0.2:
        return problem
    ranges = np.array([[_range(rng) for _ in range(3)] for _ in range(bones)])
    if rng.random() < 0.5:
        ranges[:] = ranges[0]
    whole = rng.random(bones) < 0.1
    ranges[whole] = 0.0
    root = random_rotations(rng, members) if rng.random() < 0.5 else np.tile(np.eye(3), (members, 1, 1))
    root = root * across[:, None, :]
    if rng.random() < 0.5:
        rest = random_rotations(rng, bones)
        if rng.random() < 0.3:
            rest = np.stack([rest] * members)
    else:
        # The FK pose is the rest pose.
        parents = np.arange(bones) - 1 if problem.parents is None else problem.parents
        rest = np.empty_like(frames)
        for i, parent in enumerate(parents.tolist()):
            hangs = problem.inherits is None or bool(problem.inherits[i])
            above = np.tile(np.eye(3), (members, 1, 1)) if not hangs else root if parent < 0 else frames[:, parent]
            rest[:, i] = above.swapaxes(-1, -2) @ frames[:, i]
    return replace(problem, limits=Limits(rest, root, ranges[:, [0, 2]].reshape(-1, 4), ranges[:, 1]))


def _range(rng: Generator) -> tuple[float, float]:
    """A range of a limit: locked, one-sided, free, half free, tiny, nearly or exactly half a turn, or any."""
    low, high = -rng.uniform(0.0, np.pi), rng.uniform(0.0, np.pi)
    ranges = [
        (0.0, 0.0),
        (0.0, high),
        (low, 0.0),
        (-np.inf, np.inf),
        (-np.inf, high),
        (low, np.inf),
        (low, high),
        (low, high),
        (low / 6.0, high / 6.0),
        (-1e-9, 1e-7),
        (-np.pi, np.pi),
        (-np.pi + 1e-9, np.pi - 1e-4),
        (-np.pi, 0.0),
    ]
    return ranges[int(rng.integers(len(ranges)))]


def is_body(problem: Problem) -> bool:
    """Whether a problem has more than chains of free joints."""
    more = problem.limits, problem.parents, problem.goal.rotation, problem.goal.segment
    return any(part is not None for part in more)


def paths(problem: Problem) -> list[list[int]]:
    """Indices of the points on the path to each effector, root first."""
    bones = problem.frames.shape[1]
    parents = (np.arange(bones) - 1 if problem.parents is None else problem.parents).tolist()
    found = []
    for e, goal in enumerate(problem.goals):
        path, bone = [bones + e], bones - 1 if goal.segment is None else goal.segment
        while bone >= 0:
            path.append(bone)
            bone = parents[bone]
        found.append(path[::-1])
    return found


def _have_length(problem: Problem) -> Bools:
    """Mask (B,) of members in which every effector's chain has some length."""
    steps = [np.abs(np.diff(problem.joints[:, path], axis=1)).max(axis=(1, 2)) for path in paths(problem)]
    return np.asarray(~(np.stack(steps) == 0.0).any(axis=0))


def _segments(problem: Problem) -> Ints:
    """Number of segments (B,) that have a length."""
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(np.diff(problem.joints, axis=1), axis=2)
        return np.asarray((lengths / lengths.sum(axis=1, keepdims=True) > NO_LENGTH).sum(axis=1))
