"""One chain that has a place to reach, and perhaps a pole: from its goal to its solution, in plain floats."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import cos, sin

import numpy as np

from .free.reach import goal_of
from .limb.limb import Aim
from .limited.body import as_row
from .limited.descent import EXACT, Reaching, State, descended
from .limited.goals import Goals, PoleGoal, System, masses_of
from .limited.guess import guess_of
from .limited.objectives import Carried, Place
from .limited.pole import SIDE, Branch, Pole
from .limited.restarts import ARRIVED
from .limited.search import AWAY, STEPS, TOGETHER, search
from .limited.task import Standing
from .maths import products
from .maths.cones import at_limit
from .maths.kernels import ONE
from .maths.vectors import Vector, minus, norm, over, plus, times, unit
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
    def _reach(self) -> float:
        return float(self.standing.body.reaches[0, 0])

    @cached_property
    def _carried(self) -> Carried:
        return Carried.of(self.standing.body, 0)

    @cached_property
    def _branch(self) -> tuple[Branch, Floats, tuple[float, ...]]:
        """The chain as its pole sees it, with the weights (k, 1) of its joints, and these as floats."""
        body = self.standing.body
        masses = masses_of(self.standing.points[:, self.standing.path].transpose(2, 1, 0))
        return Branch.of(body, 0, body.path(0)), masses, tuple(masses[:, 0].tolist())

    def solved(self, aim: Aim, *, is_first_attempt: bool = False) -> SolvedAlone:
        """Return the solution for a finite goal; `is_first_attempt` as in `Problem`."""
        body, turns = self.standing.body, self.standing.turns
        target = over(minus(aim.target, self.origin), self.scale)
        distance = norm(target)
        reached, _, _, beyond = goal_of(ONE, distance, self._longest, aim.softness, aim.push_limit, OutOfReach.EXTEND)
        wanted = times(unit(target), reached) if aim.softness > 0.0 else target
        pole = None if aim.pole is None else over(minus(aim.pole, self.origin), self.scale)
        objectives: list[Place | Pole] = [Place(self._carried, wanted, 1.0)]
        if pole is not None:
            branch, _, masses = self._branch
            cosine, sine = cos(aim.pole_angle / 2.0), sin(aim.pole_angle / 2.0)
            objectives.append(Pole(branch, wanted, pole, (cosine, sine), masses, SIDE))
        system = System(body.skeleton(0), objectives)
        guess = guess_of(body, turns, 0)
        most = STEPS if pole is None and not is_first_attempt else TOGETHER
        if norm(wanted) > self._reach + ARRIVED and not is_first_attempt:
            most = AWAY
        state: State | Reaching
        state, steps = descended(system, guess.bent(wanted, pole), min(most, self.iterations))
        if state.error > (ARRIVED if pole is None else EXACT):
            fk: Floats = np.array(guess.fk).T[..., None]
            begun = np.array(state.angles).T[..., None], np.array([state.error]), np.array([steps])
            goals = self._goals(wanted, pole, aim.pole_angle)
            angles, used = search(
                body, turns, goals, self.iterations, begun=(fk, begun), is_first_attempt=is_first_attempt
            )
            state, steps = State.of(system, as_row(angles, 0)), int(used[0])
        error = norm(minus(target, state.pose.ends[0])) * self.scale
        if error <= aim.tolerance * self.scale:
            status = Status.REACHED
        elif beyond > aim.tolerance:
            status = Status.TOO_FAR
        else:
            status = Status.TOO_NEAR if beyond < -aim.tolerance else Status.LIMITED
        return SolvedAlone(self, state, error, status, steps)

    def _goals(self, target: Vector, pole: Vector | None, angle: float) -> Goals:
        goals = Goals(np.array(target)[:, None, None], np.ones(1))
        if pole is None:
            return goals
        _, masses, _ = self._branch
        side = PoleGoal(0, self.standing.body.path(0), np.array(pole)[:, None], np.array([angle]), masses)
        return Goals(goals.target, goals.weight, poles=(side,))


@dataclass(frozen=True)
class SolvedAlone:
    """The solution of one chain; see `Solution`."""

    chain: Alone
    state: State | Reaching
    error: float
    status: Status
    iterations: int

    @property
    def rotations(self) -> Floats:
        """(n, 3, 3) how the frames turn from FK."""
        return products.times(np.array(self.state.pose.frames), self.chain.standing.backs[0])

    @property
    def joints(self) -> list[Vector]:
        """(n + 1, 3) in the problem's space."""
        origin, scale = self.chain.origin, self.chain.scale
        points = [*self.state.pose.points, *self.state.pose.ends]
        return [plus(times(point, scale), origin) for point in points]

    @property
    def at_limit(self) -> list[bool]:
        """(n,) which joints are at a limit."""
        angles, standing = np.array(self.state.angles).T[..., None], self.chain.standing
        found: list[bool] = (at_limit(angles[:2], angles[2], standing.body.cone)[:, 0] & standing.limited).tolist()
        return found


Known = dict[tuple[int, int | None], Alone]
"""Members that were solved alone, by index and the bone of the effector."""


def suits(problem: Problem) -> bool:
    """Whether the members of a problem have one place to reach, and perhaps a pole."""
    return problem.goal.rotation is None and not problem.others and problem.out_of_reach is OutOfReach.EXTEND


def solved_alone(problem: Problem, known: Known, i: int, aim: Aim, *, is_first_attempt: bool) -> SolvedAlone:
    """Solve the valid member i of a problem that suits; what stays the same with other goals is kept in `known`."""
    key = i, problem.goal.segment
    if key not in known:
        known[key] = Alone.of(problem, i)
    return known[key].solved(aim, is_first_attempt=is_first_attempt)


def solve_alone(problem: Problem, known: Known, solution: Solution, index: Ints) -> None:
    """Solve the valid members `index` (k,) of a problem that suits, and write them into the solution."""
    for i, aim in zip(index.tolist(), Aim.each(problem, index), strict=True):
        solved = solved_alone(problem, known, i, aim, is_first_attempt=problem.is_first_attempt)
        solution.joints[i], solution.rotations[i], solution.stretch[i] = solved.joints, solved.rotations, 1.0
        solution.error[i], solution.status[i] = solved.error, solved.status
        solution.iterations[i], solution.at_limit[i] = solved.iterations, solved.at_limit
