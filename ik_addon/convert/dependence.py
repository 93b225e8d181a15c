"""Finding IK constraints that depend on others in ways that chains can't follow.

Chains are solved in order if one carries the root or a goal of another, as a parent or by a constraint that attaches.
If another constraint acts in between, Blender would have to evaluate it after one chain and before the other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import bpy

from ..pose.constraints import is_on, moved_by
from ..rig.plan.attachments import PARENTING
from ..setup.constraints import Source


def dependent(ob: bpy.types.Object, chosen: Sequence[Source]) -> Source | None:
    """Return the first of these constraints that depends on another in such a way; None if none does."""
    moved = [{bone.name for bone in source.bones} for source in chosen]
    kept = _moved_by_others(ob, [constraint for source in chosen for constraint in source.constraints])
    for source, own in zip(chosen, moved, strict=True):
        needed = _needed(ob, source, kept) - own
        if any(not needed.isdisjoint(others) for others in moved if others is not own):
            return source
    return None


def _moved_by_others(ob: bpy.types.Object, converted: Collection[bpy.types.Constraint]) -> set[str]:
    """Return names of the bones moved by IK constraints that are not converted."""
    owners = ((bone, constraint) for bone in ob.pose.bones for constraint in bone.constraints)
    return {
        name
        for bone, constraint in owners
        if is_on(constraint) and constraint not in converted
        for name in moved_by(bone, constraint)
    }


def _needed(ob: bpy.types.Object, source: Source, kept: Collection[str]) -> set[str]:
    """Return names of the bones that move a constraint's root or goals through constraints, other than by attaching."""
    root, constraint = source.bones[0].parent, source.constraint
    goals = ((constraint.target, constraint.subtarget), (constraint.pole_target, constraint.pole_subtarget))
    waiting = [("" if root is None else root.name, False)]
    waiting += [(bone, False) for goal, bone in goals if goal == ob]
    seen: set[tuple[str, bool]] = set()
    while waiting:
        name, is_loose = waiting.pop()
        start: bpy.types.PoseBone | None = ob.pose.bones.get(name)
        if start is None or (name, is_loose) in seen:
            continue
        seen.add((name, is_loose))
        for bone in (start, *start.parent_recursive):
            seen.add((bone.name, is_loose))
            for other in filter(is_on, bone.constraints):
                attaches = isinstance(other, PARENTING)
                waiting += [(entry, is_loose or not attaches) for entry in _bones_of(ob, other)]
                is_loose |= not attaches and bool(_bones_of(ob, other))
            # A bone moved by a remaining constraint doesn't move rigidly with its parents.
            is_loose |= bone.name in kept
    return {name for name, is_loose in seen if is_loose}


def _bones_of(ob: bpy.types.Object, constraint: Any) -> list[str]:
    """Return the bones of the same armature that a constraint aims at, with a weight if it has several targets."""
    entries = [entry for entry in getattr(constraint, "targets", (constraint,)) if getattr(entry, "weight", 1.0) > 0.0]
    return [
        entry.subtarget for entry in entries if getattr(entry, "target", None) == ob and getattr(entry, "subtarget", "")
    ]
