"""What moves bones of an armature besides animation: constraints and drivers."""

from collections.abc import Collection, Iterable, Iterator

from bpy.types import ChildOfConstraint, Constraint, FCurve, Object, PoseBone

from . import compat
from .channels import rotation_field
from .untyped import Struct

CHAIN_CONSTRAINTS = {"IK", "SPLINE_IK"}
"""Constraints on one bone that move its parents as well."""

CARRIED = tuple(f"use_{part}_{axis}" for part in ("location", "rotation", "scale") for axis in "xyz")
"""What a Child Of constraint may leave out of the transform that it passes on."""

SCALING = {"COPY_SCALE", "LIMIT_SCALE", "MAINTAIN_VOLUME"}
"""Constraints that change neither position nor orientation of a bone."""


def is_on(constraint: Constraint) -> bool:
    """Return whether a constraint has an effect."""
    return not constraint.mute and constraint.influence > 0.0


def strength(influence: float) -> int:
    """Return 0 for no influence, 1 for some, 2 for all: what moves what depends on no more than that."""
    return (influence > 0.0) + (influence >= 1.0)


def carrying(ob: Object) -> ChildOfConstraint | None:
    """Return the Child Of constraint that places an object just as a parent would, if nothing else does."""
    found = list(filter(is_on, ob.constraints))
    if len(found) != 1 or not isinstance(found[0], ChildOfConstraint) or ob.parent is not None:
        return None
    own = found[0]
    if own.target is None or strength(own.influence) < 2 or not all(getattr(own, name) for name in CARRIED):
        return None
    is_bone = own.target.type == "ARMATURE" and own.target.pose is not None and own.subtarget in own.target.pose.bones
    return own if is_bone or not own.subtarget else None


def targets_of(constraint: Struct) -> list[tuple[Object, str]]:
    """Return the targets of a constraint: objects, each with the name of a bone or an empty string."""
    entries = getattr(constraint, "targets", (constraint,))
    return [(entry.target, getattr(entry, "subtarget", "")) for entry in entries if getattr(entry, "target", None)]


def driven_channels(ob: Object, bones: list[PoseBone]) -> Iterator[tuple[str, str]]:
    """Yield bone and channel of the drivers on rotations of these bones."""
    paths = {f"{bone.path_from_id()}.{rotation_field(bone.rotation_mode)}": bone.name for bone in bones}
    for driver in drivers_on(ob, paths):
        yield paths[driver.data_path], driver.data_path.rpartition(".")[2]


def drivers_on(ob: Object, paths: Collection[str]) -> list[FCurve]:
    """Return the drivers of an object that set the properties with these data paths."""
    return [driver for driver in compat.drivers_of(ob) if driver.data_path in paths and not driver.mute]


Owned = tuple[PoseBone, Constraint]
"""A constraint with the bone that owns it."""


def active_constraints(ob: Object) -> list[Owned]:
    """Return the constraints on bones of an armature object that have an effect."""
    return [(owner, constraint) for owner in ob.pose.bones for constraint in owner.constraints if is_on(constraint)]


def fighting_constraints(active: Iterable[Owned], bones: list[PoseBone]) -> Iterator[Owned]:
    """Yield those of the active constraints of an armature that move a bone of the chain after the solve."""
    names = {bone.name for bone in bones}
    for owner, constraint in active:
        if owner.name in names or not names.isdisjoint(moved_by(owner, constraint)):
            yield owner, constraint


def steered_bones(ob: Object) -> dict[str, list[str]]:
    """Return the names of bones that constraints or drivers move, so that a chain of them can't be solved.

    Each comes with the bones of the same armature that it follows.
    """
    found: dict[str, list[str]] = {}
    for owner, constraint in active_constraints(ob):
        for name in (owner.name, *moved_by(owner, constraint)):
            found.setdefault(name, [])
        subtarget = getattr(constraint, "subtarget", "")
        is_followed = constraint.type not in CHAIN_CONSTRAINTS and subtarget in ob.pose.bones
        if is_followed and getattr(constraint, "target", None) == ob:
            found[owner.name].append(subtarget)
    for name, _channel in driven_channels(ob, list(ob.pose.bones)):
        found.setdefault(name, [])
    return found


def moved_by(owner: PoseBone, constraint: Struct) -> list[str]:
    """Return the names of the bones that a chain constraint (IK, Spline IK) on `owner` moves."""
    if constraint.type not in CHAIN_CONSTRAINTS:
        return []
    moved = [owner, *owner.parent_recursive]
    if constraint.type == "IK" and not constraint.use_tail:
        moved = moved[1:]
    return [bone.name for bone in (moved[: constraint.chain_count] if constraint.chain_count else moved)]
