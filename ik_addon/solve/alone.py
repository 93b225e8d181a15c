"""One chain that has a place to reach, and perhaps a pole: from its goal to its solution, in plain floats."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import cos, sin

import numpy as np

from .free.reach import goal_of, status_of
from .limb.limb import Aim
from .limited.descent import State
from .limited.guess import guess_of
from .limited.objectives import SIDE, TURN, Objective, Orientation, Place, Pole, System, masses_of
from .limited.search import Search
from .limited.skeleton import arrays_of
from .limited.task import Standing
from .maths import products
from .maths.cones import at_limit
from .maths.numbers import ONE, Vector, minus, norm, over, plus, times, unit
from .problem import Floats, Ints, OutOfReach, Problem, Solution, Status


@dataclass(frozen=True)
class Alone:
    """One member of a problem in FK, laid out for its goals."""

    standing: Standing
    """Of this member alone."""
    iterations: int

    @classmethod
    def of(cls, problem: Problem, i: int) -> Alone:
        """Lay out the valid member i."""
        return cls(Standing.of(problem, np.array([i])), problem.iterations)

    @cached_property
    def origin(self) -> Vector:
        """Place of the root."""
        x, y, z = self.standing.origin[0].tolist()
        return x, y, z

    @cached_property
    def scale(self) -> float:
        """Length of the chain."""
        return float(self.standing.scale[0])

    @cached_property
    def _longest(self) -> float:
        return float(self.standing.steps.max())

    @cached_property
    def _place(self) -> Place:
        return Place.of(self.standing.body.skeleton(0), 0, (0.0, 0.0, 0.0), 1.0)

    @cached_property
    def _masses(self) -> list[float]:
        """Weights of its joints in the centroid that its pole sees."""
        masses: list[float] = masses_of(self.standing.points[:, self.standing.path].transpose(2, 1, 0))[:, 0].tolist()
        return masses

    def solved(self, aim: Aim, *, is_first_attempt: bool = False, turns: Floats | None = None) -> SolvedAlone:
        """Return the solution for a finite goal.

        Args:
            aim: the goal.
            is_first_attempt: see `Problem`.
            turns: (n, 3, 3) rotations from FK of the bones in a pose that stands in for the FK pose; None: FK.
        """
        body = self.standing.body
        target = over(minus(aim.target, self.origin), self.scale)
        distance = norm(target)
        reached, _, _, beyond = goal_of(ONE, distance, self._longest, aim.softness, aim.push_limit, OutOfReach.EXTEND)
        wanted = times(unit(target), reached) if aim.softness > 0.0 else target
        pole = None if aim.pole is None else over(minus(aim.pole, self.origin), self.scale)
        system = self._system(wanted, pole, aim)
        guess = guess_of(body, self.standing.turns, 0)
        if turns is not None:
            frames = products.times(turns, self.standing.frames[0]).reshape(-1, 9)
            guess = guess.from_frames(list(map(tuple, frames.tolist())))
        away = (norm(wanted),)
        search = Search(body, 0, lambda: system, guess.fk, away, self.iterations, only_places=system.only_places)
        near = guess.bent(wanted, pole)
        angles, steps = search.alone(search.first(near) if is_first_attempt else search.best(near))
        state = State.of(system, angles)
        error = norm(minus(target, state.pose.ends[0])) * self.scale
        reached = error <= aim.tolerance * self.scale
        return SolvedAlone(self, state, error, status_of(ONE, reached, beyond, aim.tolerance, Status.LIMITED), steps)

    def _system(self, target: Vector, pole: Vector | None, aim: Aim) -> System:
        skeleton, place = self.standing.body.skeleton(0), self._place._replace(target=target)
        objectives: list[Objective] = [place]
        if aim.rotation is not None:
            rotation = tuple(part for row in zip(*aim.rotation, strict=True) for part in row)
            objectives.append(Orientation.of(skeleton, 0, rotation, TURN))
        if pole is not None:
            half = cos(aim.pole_angle / 2.0), sin(aim.pole_angle / 2.0)
            objectives.append(Pole(0, place.path, 0, target, pole, half, self._masses, SIDE))
        return System.of(skeleton, objectives)


@dataclass(frozen=True)
class SolvedAlone:
    """The solution of one chain; see `Solution`."""

    chain: Alone
    state: State
    error: float
    status: Status
    iterations: int

    @property
    def rotations(self) -> Floats:
        """(n, 3, 3) how the frames turn from FK."""
        return products.times(np.array(self.state.pose.frames).reshape(-1, 3, 3), self.chain.standing.backs[0])

    @property
    def joints(self) -> list[Vector]:
        """(n + 1, 3) in the problem's space."""
        origin, scale = self.chain.origin, self.chain.scale
        points = [*self.state.pose.points, *self.state.pose.ends]
        return [plus(times(point, scale), origin) for point in points]

    @property
    def at_limit(self) -> list[bool]:
        """(n,) which joints are at a limit."""
        angles, standing = arrays_of(self.state.angles)[..., None], self.chain.standing
        found: list[bool] = (at_limit(angles[:2], angles[2], standing.body.cone)[:, 0] & standing.limited).tolist()
        return found


Known = dict[tuple[int, int | None], Alone]
"""Members that were solved alone, by index and the bone of the effector."""


def suits(problem: Problem) -> bool:
    """Whether the members of a problem have one effector, whose place does not move the root or lengthen bones."""
    return not problem.others and problem.out_of_reach is OutOfReach.EXTEND


def solved_alone(
    problem: Problem, known: Known, i: int, aim: Aim, *, is_first_attempt: bool, turns: Floats | None = None
) -> SolvedAlone:
    """Solve the valid member i of a problem that suits; what stays the same with other goals is kept in `known`."""
    key = i, problem.goal.segment
    if key not in known:
        known[key] = Alone.of(problem, i)
    return known[key].solved(aim, is_first_attempt=is_first_attempt, turns=turns)


def solve_alone(problem: Problem, known: Known, solution: Solution, index: Ints, turns: Floats | None = None) -> None:
    """Solve the valid members `index` (k,) of a problem that suits, and write them into the solution.

    With `turns` (B, n, 3, 3), rotations of the bones from FK, the pose that they make stands in for the FK pose.
    """
    is_first = problem.is_first_attempt
    for i, aim in zip(index.tolist(), Aim.each(problem, index), strict=True):
        own = None if turns is None else turns[i]
        solved = solved_alone(problem, known, i, aim, is_first_attempt=is_first, turns=own)
        solution.joints[i], solution.rotations[i], solution.stretch[i] = solved.joints, solved.rotations, 1.0
        solution.error[i], solution.status[i] = solved.error, solved.status
        solution.iterations[i], solution.at_limit[i] = solved.iterations, solved.at_limit
