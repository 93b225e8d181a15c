"""Limbs whose hip is at the edge of its cone: the search skips parts of the edge, but never the best point."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ik_addon.solve.limb.cone_edge import best_on_edge, edge_of
from ik_addon.solve.limb.limb import KnownLimbs
from ik_addon.solve.limb.nearest import EdgeSearch
from ik_addon.solve.maths.numbers import Vector

from ..chains import unit
from .test_limb import rigs


def searches() -> list[EdgeSearch]:
    """Return searches for limbs with many kinds of joints and targets in and out of reach."""
    rng = np.random.default_rng(30)
    found = []
    for rig in rigs(rng):
        problem = rig.problem(rig.turns_inside(rng, 12), np.zeros((12, 1, 3)))
        limbs = KnownLimbs.of(problem)
        assert limbs is not None
        if not edge_of(limbs.ranges[0])[0]:  # a hip that turns freely
            continue
        limbs.read(problem, np.arange(12))
        for i, place in enumerate((unit(rng.normal(size=(12, 3))) * rng.uniform(0.0, 1.6, (12, 1))).tolist()):
            target: Vector = tuple(place)
            member = limbs.member(i)
            assert member is not None
            found.append(EdgeSearch(member.unstretched.limb, target))
    return found


def test_no_point_of_an_edge_misses_by_less_than_its_lower_bound() -> None:
    for search in searches():
        points, spans = edge_of(search.limb.hip)
        for span in spans[::3]:
            misses = [search.least(points[i]) for i in (span.first, span.first + 1)]
            for share in (0.0, 0.3, 0.6):
                point = span.piece.at(span.start + share * (span.end - span.start))
                miss, least = sqrt(-2.0 * search.merit(point)[0]), search.least(point)
                assert miss >= least - 1e-9
                assert least >= (sum(misses) - span.way) / 2.0 - 1e-12


def test_the_bounded_search_finds_the_same_point_as_a_search_of_the_whole_edge() -> None:
    for search in searches():
        everywhere = best_on_edge(search.limb.hip, search.merit)[0]
        assert best_on_edge(search.limb.hip, search.merit, least=search.least)[0] == everywhere
