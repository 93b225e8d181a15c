"""Searches of many chains to places, all of them at once.

Whenever a search asks for a descent or a run of Newton's method, it waits until all others ask as well. Then those that
ask for the same get it together, on arrays, by the same steps as one would alone: a step takes as many operations on
arrays as it takes operations on floats for one chain. So 400 chains of ten bones take a third of the time that they
would take one by one, or half of it if limits keep a quarter of them from their targets. Members end at different
steps, and are left out once enough have ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..maths.numbers import is_crowd, member, members
from ..problem import Floats, Ints
from . import descent, newton
from .descent import State
from .newton import Anchor
from .objectives import Goals, System
from .search import Ask, Found, Search, Searching, straightened
from .skeleton import FEW, Angles, Body, arrays_of, rows_of

MOST = 2048
"""Maximum number of chains on arrays at once: more would not be faster, and with all their restarts take gigabytes."""
Advance = Callable[[System, Any], tuple[Any, Any]]
"""Returns a run after one step, and which members (B,) have come to their end."""


def search_together(
    body: Body, goals: Goals, searches: list[Search], running: list[Searching]
) -> list[tuple[Angles, int]]:
    """Return the joint angles and the steps of the searches of B chains to places."""
    results: list[Any] = [None] * len(searches)
    asked: dict[int, list[Ask]] = {}

    def go_on(i: int, found: list[Found] | None) -> None:
        try:
            asked[i] = running[i].send(found) if found is not None else next(running[i])
        except StopIteration as end:
            results[i] = end.value

    system = goals.system(body)
    for i in range(len(searches)):
        go_on(i, None)
    while asked:
        together, asked = asked, {}
        alike: dict[Any, list[tuple[int, int]]] = defaultdict(list)
        found: dict[tuple[int, int], Found] = {}
        for i, asks in together.items():
            for k, ask in enumerate(asks):
                alike[ask.pull, ask.still, ask.anchor is None, ask.is_straight].append((i, k))
        groups = (every[first : first + MOST] for every in alike.values() for first in range(0, len(every), MOST))
        for group in groups:
            asks, own = [together[i][k] for i, k in group], [searches[i] for i, _ in group]
            if len(group) > FEW and body.are_limited:
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
    run: Any
    advance: Advance
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
    return _run_together(system, run, advance, most, lambda i: searches[i].system_for(one))


def _stacked(angles: list[Angles]) -> Floats:
    """Return the angles of B bodies as an array (3, n, B)."""
    every: Floats = np.array(angles)
    return np.ascontiguousarray(every.transpose(2, 1, 0))


def _run_together(
    system: System, run: Any, advance: Advance, most: Ints, alone: Callable[[int], System]
) -> list[Found]:
    """Return where the runs of B chains end.

    Args:
        system: the chains.
        run: see `descent.Run` and `newton.Run`.
        advance: makes one step.
        most: (B,) maximum number of steps.
        alone: returns one of the chains in floats; the last few go on one by one.
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
        if len(left) <= FEW:
            break
        if not is_crowd(len(left), len(running)):
            system, run, most = members((system, run, most), left)
            index, running = index[left], np.ones(len(left), dtype=bool)
        run, ended = advance(system, run)
        done += 1
    for i in left.tolist():
        own, one, used, is_ended = alone(int(index[i])), member(run, i), done, False
        while not is_ended and used < most[i]:
            one, is_ended = advance(own, one)
            used += 1
        found[index[i]] = one.best.angles, one.best.error, used
    return found
