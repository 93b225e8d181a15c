"""Searches of many chains to places, all of them at once.

Whenever a search asks for a descent or a run of Newton's method, it waits until all others ask as well. Then those that
ask for the same get it together, on arrays, by the same steps as one would alone: a step takes as many operations on
arrays as it takes operations on floats for one chain. So 400 chains of ten bones take a third of the time that they
would take one by one, or half of it if limits keep a quarter of them from their targets. Members end at different
steps, and are left out once enough have ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from functools import partial

import numpy as np

from ..maths.cones import at_limit
from ..maths.numbers import MANY, Nested, is_crowd, member, members
from ..maths.products import times_back
from ..maths.rotations import norm, unit
from ..maths.vectors import Vector
from ..problem import Floats, Ints, OutOfReach, Problem, Solution, Solver, goal_of, status_of
from . import descent, newton
from .descent import Advance, State, finished
from .newton import Anchor
from .objectives import Place, System
from .search import Ask, Found, Search, Searching, straightened
from .skeleton import FEW, Angles, Body, Skeleton, Standing, arrays_of, posed, rows_of
from .starts import guess_of

Run = descent.Run | newton.Run
LAST = 12
"""Maximum number of runs of Newton's method that go on one by one: a step on arrays takes as long as a dozen on floats.
Of descents it is `FEW`."""
MOST = 2048
"""Maximum number of chains on arrays at once: more would not be faster, and with all their restarts take gigabytes."""


def suits(problem: Problem) -> bool:
    """Whether a problem is of chains to places that neither move the root nor lengthen bones, see `Standing.suits`."""
    goal, policy = problem.goal, problem.out_of_reach
    is_place = goal.rotation is None and goal.pole is None and not problem.others
    return is_place and policy is OutOfReach.EXTEND and problem.solver is not Solver.FABRIK


def solve_together(
    problem: Problem, solution: Solution, index: Ints, standing: Standing, turns: Floats | None = None
) -> None:
    """Solve the members `index` (k,) of a problem that suits, and write them; `turns` see `search.solve_alone`."""
    body, scale, each = standing.body, standing.scale, standing.lengths[:, 0]
    settings = problem.softness, problem.tolerance
    softness, tolerance = (np.broadcast_to(value, len(solution.status))[index] for value in settings)
    target = ((np.asarray(problem.goal.target, np.float64)[index] - standing.origin) / scale[:, None]).T
    distance, longest = norm(target), standing.steps.max(axis=0)
    reached, _, _, beyond = goal_of(MANY, distance, longest, softness, 0.0, OutOfReach.EXTEND)
    wanted = np.where(softness > 0.0, unit(target) * reached, target)
    guess = guess_of(standing, None, None if turns is None else turns[index])
    fks, nears = (np.moveaxis(arrays_of(every), 2, 0) for every in (guess.fk, guess.bent(tuple(wanted), None)))
    searches, running = [], []
    for i, (place, away) in enumerate(zip(wanted.T.tolist(), norm(wanted).tolist(), strict=True)):
        lay_out = partial(_system, body.skeleton, i, tuple(place))
        searches.append(Search(body, i, lay_out, rows_of(fks[i]), [away - 1.0], problem.iterations, only_places=True))
        near = rows_of(nears[i])
        running.append(searches[i].first(near) if problem.is_first_attempt else searches[i].best(near))
    found = _searched(_system(body.skeleton, None, tuple(wanted)), body, searches, running)
    angles = np.stack([arrays_of(own) for own, _ in found], axis=2)
    frames, points = posed(body, angles)
    error = norm(target - points[:, -1].T) * scale
    solution.rotations[index] = times_back(frames, standing.frames)
    solution.joints[index] = points * scale[:, None, None] + standing.origin[:, None]
    solution.stretch[index], solution.error[index] = 1.0, error
    solution.iterations[index] = [used for _, used in found]
    solution.at_limit[index] = at_limit(angles[:2], angles[2], body.cone).T & standing.limited
    solution.status[index] = status_of(MANY, error <= tolerance * each, beyond, tolerance)


def _system(skeleton_of: Callable[[int | None], Skeleton], member: int | None, target: Vector) -> System:
    skeleton = skeleton_of(member)
    return System.of(skeleton, [Place.of(skeleton, 0, target, 1.0)])


def _searched(system: System, body: Body, searches: list[Search], running: list[Searching]) -> list[tuple[Angles, int]]:
    """Return the joint angles and the steps of the searches of B chains to places."""
    results: list[Nested] = [None] * len(searches)
    asked: dict[int, list[Ask]] = {}

    def go_on(i: int, found: list[Found] | None) -> None:
        try:
            asked[i] = running[i].send(found) if found is not None else next(running[i])
        except StopIteration as end:
            results[i] = end.value

    for i in range(len(searches)):
        go_on(i, None)
    while asked:
        # Those that settle wait for all others, which settle with them.
        together = {i: asks for i, asks in asked.items() if not any(ask.anchor for ask in asks)} or asked
        asked = {i: asks for i, asks in asked.items() if i not in together}
        alike: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
        found: dict[tuple[int, int], Found] = {}
        for i, asks in together.items():
            for k, ask in enumerate(asks):
                alike[ask.pull, ask.still, ask.anchor is None, ask.is_straight].append((i, k))
        groups = (every[first : first + MOST] for every in alike.values() for first in range(0, len(every), MOST))
        for group in groups:
            asks, own = [together[i][k] for i, k in group], [searches[i] for i, _ in group]
            if len(group) > _last(asks[0]):
                index = np.array([i for i, _ in group])
                found.update(zip(group, _found(system, index, asks, own), strict=True))
            else:
                for at, ask, search in zip(group, asks, own, strict=True):
                    found[at] = search.found(ask)
        for i, asks in together.items():
            go_on(i, [found[i, k] for k in range(len(asks))])
    return results


def _found(system: System, index: Ints, asks: list[Ask], searches: list[Search]) -> list[Found]:
    """Do what the chains with an index (k,) ask for, which differs only in where they start."""
    one = asks[0]
    system = members(system, index)
    if one.is_straight:
        system = system._replace(skeleton=straightened(system.skeleton))
    most = np.array([ask.most for ask in asks])
    state = State.of(system, rows_of(_stacked([ask.angles for ask in asks])))
    run: Run
    advance: Advance[Run]
    if one.pull is not None:
        run, advance = descent.begun(state), partial(descent.advanced, pull=one.pull)
        most = np.where(state.error <= descent.EXACT, 0, most)
    else:
        anchors = [ask.anchor for ask in asks if ask.anchor is not None]
        anchor = None
        if anchors:
            kept = rows_of(_stacked([each.angles for each in anchors]))
            anchor = Anchor(kept, np.array([each.share for each in anchors]))
        run = newton.begun(state, anchor, np.array([ask.known for ask in asks]))
        advance = partial(newton.advanced, still=one.still)
    return _run_together(system, run, advance, most, lambda i: searches[i].system_for(one), _last(one))


def _last(ask: Ask) -> int:
    return LAST if ask.pull is None else FEW


def _stacked(angles: list[Angles]) -> Floats:
    """Return the angles of B bodies as an array (3, n, B)."""
    every: Floats = np.array(angles)
    return np.ascontiguousarray(every.transpose(2, 1, 0))


def _run_together(
    system: System, run: Run, advance: Advance[Run], most: Ints, alone: Callable[[int], System], last: int
) -> list[Found]:
    """Return where the runs of B chains end.

    Args:
        system: the chains.
        run: where each of them is.
        advance: makes one step.
        most: (B,) maximum number of steps.
        alone: returns one of the chains in floats.
        last: how many go on one by one.
    """
    found: list[Found] = [([], 0.0, 0)] * len(most)
    index, done = np.arange(len(most)), 0
    running, ended = np.ones(len(most), dtype=bool), most <= 0
    while True:
        ended = (ended | (done >= most)) & running
        if ended.any():
            angles = np.moveaxis(arrays_of(members(run.best.angles, ended)), 2, 0)
            errors = run.best.error[ended].tolist()
            for i, own, error in zip(index[ended].tolist(), angles, errors, strict=True):
                found[i] = rows_of(own), error, done
        running &= ~ended
        left = np.flatnonzero(running)
        if len(left) <= last:
            break
        if not is_crowd(len(left), len(running)):
            system, run, most = members((system, run, most), left)
            index, running = index[left], np.ones(len(left), dtype=bool)
        run, ended = advance(system, run)
        done += 1
    for i in left.tolist():
        one, used = finished(alone(int(index[i])), member(run, i), advance, int(most[i]), done)
        found[index[i]] = one.best.angles, one.best.error, used
    return found
