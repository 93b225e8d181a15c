"""Order chains so that those that move a root or a goal of another one come first."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def in_order(nodes: Iterable[Node], needs: Mapping[Node, Iterable[Node]]) -> tuple[list[Node], list[Node]]:
    """Return the nodes, each after those that it needs, and the nodes in loops."""
    every = {node: all_needs(node, needs) for node in nodes}
    # What a node needs has fewer needs than the node itself, except in a loop.
    ordered = sorted(every, key=lambda node: len(every[node]))
    return [node for node in ordered if node not in every[node]], [node for node in every if node in every[node]]


def all_needs(node: Node, needs: Mapping[Node, Iterable[Node]]) -> set[Node]:
    """Return everything that a node needs, directly or through others."""
    found: set[Node] = set()
    waiting = list(needs.get(node, ()))
    while waiting:
        other = waiting.pop()
        if other not in found:
            found.add(other)
            waiting.extend(needs.get(other, ()))
    return found
