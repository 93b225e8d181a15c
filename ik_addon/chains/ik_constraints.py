"""The IK constraints of an armature object, and the drivers that turn them on and off.

Two constraints on one bone that differ only in their pole, with drivers to switch it, count as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import bpy

from ..core.untyped import Struct

SHARED = ("target", "subtarget", "chain_count", "use_tail", "use_rotation", "use_stretch", "weight", "influence")
"""Settings that are equal in two constraints between which drivers switch."""


@dataclass(frozen=True)
class Source:
    """The IK constraints that become one chain."""

    owner: bpy.types.PoseBone
    """The bone with the constraint."""
    constraint: bpy.types.KinematicConstraint
    twin: bpy.types.KinematicConstraint | None = None
    """The same constraint without a pole, which drivers enable in its place."""

    @property
    def ob(self) -> bpy.types.Object:
        """The armature object."""
        return self.owner.id_data

    @property
    def tip(self) -> Struct:
        """The last bone that the constraint moves; None if there is none, which `obstacle` refuses."""
        return self.owner if self.constraint.use_tail else self.owner.parent

    @property
    def bones(self) -> list[bpy.types.PoseBone]:
        """The bones that the constraint moves, root first."""
        return [self.tip, *self.tip.parent_recursive][: self.constraint.chain_count or None][::-1]

    @property
    def constraints(self) -> list[bpy.types.KinematicConstraint]:
        """The constraint, and its twin if there is one."""
        return [self.constraint] if self.twin is None else [self.constraint, self.twin]


def sources(ob: bpy.types.Object) -> Iterator[Source]:
    """Yield the IK constraints of an armature object that are enabled, or that a driver may enable."""
    for owner in ob.pose.bones:
        own = [made for made in owner.constraints if isinstance(made, bpy.types.KinematicConstraint)]
        own = [made for made in own if not made.mute or mute_driver(made) is not None]
        pairs = [(made, _twin_of(made, own)) for made in own]
        twins = [twin for _made, twin in pairs if twin is not None]
        yield from (Source(owner, made, twin) for made, twin in pairs if made not in twins)


def _twin_of(
    constraint: bpy.types.KinematicConstraint, own: Iterable[bpy.types.KinematicConstraint]
) -> bpy.types.KinematicConstraint | None:
    """Return the constraint on the same bone that drivers enable in place of one with a pole; None if there is none."""
    if constraint.pole_target is None or (inputs := _inputs(constraint)) is None:
        return None
    for twin in own:
        is_alike = all(getattr(twin, name) == getattr(constraint, name) for name in SHARED)
        if is_alike and twin.pole_target is None and _inputs(twin) == inputs:
            return twin
    return None


def _inputs(constraint: bpy.types.KinematicConstraint) -> list[tuple[object, str]] | None:
    """Return what the driver that mutes a constraint reads; None if there is no driver."""
    curve = mute_driver(constraint)
    if curve is None:
        return None
    return [(target.id, target.data_path) for variable in curve.driver.variables for target in variable.targets]


# ---- drivers


def mute_driver(constraint: bpy.types.KinematicConstraint, is_silent: bool = False) -> bpy.types.FCurve | None:
    """Return the driver that mutes a constraint: the active driver, or with `is_silent` a muted one; else None."""
    data, path = constraint.id_data.animation_data, f"{constraint.path_from_id()}.mute"
    drivers = () if data is None else data.drivers
    return next((c for c in drivers if c.data_path == path and c.mute == is_silent), None)


def silence(constraint: bpy.types.KinematicConstraint) -> None:
    """Mute the driver that mutes a constraint, so that it no longer controls the constraint."""
    if (driver := mute_driver(constraint)) is not None:
        driver.mute = True


def give_back(constraint: bpy.types.KinematicConstraint) -> None:
    """Let a driver mute and unmute a constraint again."""
    if (driver := mute_driver(constraint, is_silent=True)) is not None:
        driver.mute = False


def can_be_inverted(curve: bpy.types.FCurve) -> bool:
    """Return whether `invert` can invert a driver's curve."""
    return not len(curve.modifiers) or _line_of(curve) is not None


def _line_of(curve: bpy.types.FCurve) -> bpy.types.FModifierGenerator | None:
    """Return the only modifier of a driver's curve if it is a straight line, as Blender adds it; None otherwise."""
    if len(curve.modifiers) != 1:
        return None
    line = curve.modifiers[0]
    if not isinstance(line, bpy.types.FModifierGenerator) or line.mode != "POLYNOMIAL" or line.poly_order != 1:
        return None
    return line if not (line.mute or line.use_additive or line.use_restricted_range) else None


def invert(curve: bpy.types.FCurve) -> None:
    """Invert a driver's curve, so that it is 1 where it was 0, and 0 where it was 1."""
    line = _line_of(curve)
    if line is not None:
        line.coefficients = (1.0 - line.coefficients[0], -line.coefficients[1])
    elif len(curve.keyframe_points):
        for key in curve.keyframe_points:
            for point in (key.co, key.handle_left, key.handle_right):
                point[1] = 1.0 - point[1]
        curve.update()
    else:
        made: Struct = curve.modifiers.new("GENERATOR")
        made.mode, made.poly_order, made.coefficients = "POLYNOMIAL", 1, (1.0, -1.0)
