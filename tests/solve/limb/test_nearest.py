"""Limbs whose hip stands on the edge of its cone: what of the edge is not looked at holds nothing better."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ik_addon.solve.limb.cone_edge import best_on_edge, edge_of
from ik_addon.solve.limb.limb import KnownLimbs
from ik_addon.solve.limb.nearest import EdgeSearch
from ik_addon.solve.maths.vectors import Vector

from ..chains import unit
from .test_limb import rigs


def searches() -> list[EdgeSearch]:
    """Return limbs with all kinds of joints and targets in and out of their reach."""
    rng = np.random.default_rng(30)
    found = []
    for rig in rigs(rng):
        problem = rig.problem(rig.turns_inside(rng, 12), np.zeros((12, 1, 3)))
        limbs = KnownLimbs.of(problem)
        assert limbs is not None
        if not edge_of(limbs.ranges[0])[0]:  # a hip that turns freely
            continue
        for i, place in enumerate((unit(rng.normal(size=(12, 3))) * rng.uniform(0.0, 1.6, (12, 1))).tolist()):
            target: Vector = tuple(place)
            found.append(EdgeSearch(limbs.member(problem, i).unstretched.limb, target))
    return found


def test_no_point_of_an_edge_misses_less_than_it_must() -> None:
    for search in searches():
        points, spans = edge_of(search.limb.hip)
        for span in spans[::3]:
            misses = [search.least(points[i]) for i in (span.first, span.first + 1)]
            for share in (0.0, 0.3, 0.6):
                point = span.piece.at(span.start + share * (span.end - span.start))
                miss, least = sqrt(-2.0 * search.merit(point)[0]), search.least(point)
                assert miss >= least - 1e-9
                assert least >= (sum(misses) - span.way) / 2.0 - 1e-12


def test_the_best_point_of_an_edge_is_the_one_that_a_look_at_all_of_it_finds() -> None:
    for search in searches():
        everywhere = best_on_edge(search.limb.hip, search.merit)[0]
        assert best_on_edge(search.limb.hip, search.merit, least=search.least)[0] == everywhere
