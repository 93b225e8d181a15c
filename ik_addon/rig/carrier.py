"""Which bone carries a target or pole, and the order of chains that follows from it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, TypeVar

import bpy

Node = TypeVar("Node", bound=Hashable)

FOLLOWING = (
    bpy.types.ChildOfConstraint,
    bpy.types.CopyLocationConstraint,
    bpy.types.CopyTransformsConstraint,
)
"""Constraints that take an object along with a bone."""


class Carrier(NamedTuple):
    """A bone of an armature object."""

    armature: int
    """`session_uid` of the object."""
    bone: str


def carrier_of(goal: bpy.types.Object | None, goal_bone: str) -> Carrier | None:
    """The bone that a goal is, or hangs on: by itself or through its parents, as a child or by a constraint."""
    if goal is not None and goal.type == "ARMATURE" and goal_bone:
        return Carrier(goal.session_uid, goal_bone)
    seen: set[int] = set()
    while goal is not None and goal.session_uid not in seen:
        seen.add(goal.session_uid)
        for constraint in goal.constraints:
            if isinstance(constraint, FOLLOWING) and not constraint.mute and constraint.influence > 0.0:
                holder = constraint.target
                if holder is not None and holder.type == "ARMATURE" and constraint.subtarget:
                    return Carrier(holder.session_uid, constraint.subtarget)
        if goal.parent is not None and goal.parent_type == "BONE":
            return Carrier(goal.parent.session_uid, goal.parent_bone)
        goal = goal.parent
    return None


def in_order(nodes: Iterable[Node], needs: Mapping[Node, Iterable[Node]]) -> tuple[list[Node], list[Node]]:
    """Nodes with those that they need before them, otherwise in the order given; and those that need each other."""
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
    """What a node needs, directly or through others."""
    found: set[Node] = set()
    ahead = list(needs.get(node, ()))
    while ahead:
        other = ahead.pop()
        if other not in found:
            found.add(other)
            ahead.extend(needs.get(other, ()))
    return found
