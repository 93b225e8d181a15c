"""Which bones carry a target, a pole or an armature, and the order of chains that follows from it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import bpy

Node = TypeVar("Node", bound=Hashable)

FOLLOWING = (
    bpy.types.ChildOfConstraint,
    bpy.types.CopyLocationConstraint,
    bpy.types.CopyTransformsConstraint,
)
"""Constraints that take an object along with another one, or with a bone."""
LEANING = (
    bpy.types.ArmatureConstraint,
    bpy.types.FloorConstraint,
    bpy.types.LimitDistanceConstraint,
    bpy.types.PivotConstraint,
    bpy.types.TransformConstraint,
)
"""Constraints by which a bone has another say in where an object is."""


class Carrier(NamedTuple):
    """A bone of an armature object."""

    armature: int
    """`session_uid` of the object."""
    bone: str


class Hold(NamedTuple):
    """What something hangs on."""

    carrier: Carrier
    turns: bool
    """It is turned with the carrier, and not only moved."""


def holds_of(ob: bpy.types.Object | None, bone: str = "") -> tuple[Hold, ...]:
    """The bones that take an object along, or one of its bones, nearest first.

    By itself or through its parents, as a child or by a constraint; and what takes along the armatures of these bones.
    """
    found = []
    seen: set[tuple[int, str]] = set()
    turns = True
    while ob is not None and (ob.session_uid, bone) not in seen:
        seen.add((ob.session_uid, bone))
        path: tuple[Any, ...] = (ob,)
        if bone and ob.type == "ARMATURE":
            found.append(Hold(Carrier(ob.session_uid, bone), turns))
            own: Any = ob.pose.bones.get(bone)
            path = (ob,) if own is None else (own, *own.parent_recursive, ob)
        constraint: Any = next((c for part in path for c in part.constraints if _takes_along(c)), None)
        if constraint is None:
            ob, bone = ob.parent, ob.parent_bone if ob.parent_type == "BONE" else ""
        else:
            turns &= not isinstance(constraint, bpy.types.CopyLocationConstraint)
            ob, bone = constraint.target, constraint.subtarget
    return tuple(found)


def _takes_along(constraint: Any) -> bool:
    """Whether a constraint makes its object or bone follow another one."""
    return isinstance(constraint, FOLLOWING) and _is_on(constraint) and constraint.target is not None


def _is_on(constraint: bpy.types.Constraint) -> bool:
    return not constraint.mute and constraint.influence > 0.0


def _is_bone(aim: Any) -> bool:
    """Whether the target of a constraint, or of one of several that it has, is a bone."""
    return aim.target is not None and aim.target.type == "ARMATURE" and bool(aim.subtarget)


def all_carriers_of(ob: bpy.types.Object | None, bone: str = "") -> Iterator[Carrier]:
    """All bones that have a say in where an object, or one of its bones, is."""
    yield from (hold.carrier for hold in holds_of(ob, bone))
    while ob is not None:
        for constraint in ob.constraints:
            if isinstance(constraint, LEANING) and _is_on(constraint):
                aims: Iterable[Any] = getattr(constraint, "targets", (constraint,))
                yield from (Carrier(aim.target.session_uid, aim.subtarget) for aim in aims if _is_bone(aim))
        ob = ob.parent


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
