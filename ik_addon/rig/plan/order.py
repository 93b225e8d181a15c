"""Order chains so that those that move a root or a goal of another one come first."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def in_order(nodes: Iterable[Node], needs: Mapping[Node, Iterable[Node]]) -> tuple[list[Node], list[Node]]:
    """Return the nodes, each after those that it needs, otherwise in the given order; and the nodes in loops."""
    waiting = list(nodes)
    mutual = [node for node in waiting if node in all_needs(node, needs)]
    waiting = [node for node in waiting if node not in mutual]
    done: list[Node] = []
    while waiting:
        open_ = set(waiting)
        ready = next(node for node in waiting if open_.isdisjoint(needs.get(node, ())))
        waiting.remove(ready)
        done.append(ready)
    return done, mutual


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
