"""The order of solving, as a graph of dependencies."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Addon

Graph = dict[int, set[int]]


@pytest.fixture
def order(addon: Addon) -> Any:
    return addon.module("rig.plan.order")


def graph(seed: int) -> Graph:
    """Return the needs of each of some nodes, sometimes with loops."""
    rng = random.Random(seed)
    count = rng.randint(1, 9)
    return {node: {rng.randrange(count) for _ in range(rng.choice((0, 0, 1, 1, 2)))} for node in range(count)}


def reached(node: int, needs: Graph) -> set[int]:
    """Return everything a node needs, found in as many steps as there are nodes."""
    found = set(needs[node])
    for _ in needs:
        found |= {other for known in found for other in needs[known]}
    return found


@pytest.mark.parametrize("seed", range(60))
def test_needs_come_first_and_loops_are_left_out(order: Any, seed: int) -> None:
    needs = graph(seed)
    assert {node: order.all_needs(node, needs) for node in needs} == {node: reached(node, needs) for node in needs}
    ordered, mutual = order.in_order(needs, needs)
    assert sorted([*ordered, *mutual]) == sorted(needs)
    assert set(mutual) == {node for node in needs if node in reached(node, needs)}
    for i, node in enumerate(ordered):
        assert needs[node] - set(mutual) <= set(ordered[:i])


def test_nodes_without_needs_keep_their_order(order: Any) -> None:
    assert order.in_order([3, 1, 2], {}) == ([3, 1, 2], [])
