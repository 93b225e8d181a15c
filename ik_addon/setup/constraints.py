"""The IK constraints of an armature object, and the drivers that switch them on and off.

Where two constraints on one bone differ in their pole alone, drivers switch the pole on and off: they belong together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import bpy

SHARED = ("target", "subtarget", "chain_count", "use_tail", "use_rotation", "use_stretch", "weight", "influence")
"""Settings in which constraints agree that drivers switch between."""


@dataclass(frozen=True)
class Source:
    """What one chain is made from."""

    owner: bpy.types.PoseBone
    """The bone with the constraint."""
    constraint: bpy.types.KinematicConstraint
    twin: bpy.types.KinematicConstraint | None = None
    """The same without a pole, which drivers enable in its place."""

    @property
    def tip(self) -> bpy.types.PoseBone:
        """The last bone that is moved; None where there is none."""
        return self.owner if self.constraint.use_tail else self.owner.parent

    @property
    def bones(self) -> list[bpy.types.PoseBone]:
        """The bones that are moved, root first."""
        return [self.tip, *self.tip.parent_recursive][: self.constraint.chain_count or None][::-1]

    @property
    def constraints(self) -> list[bpy.types.KinematicConstraint]:
        """One, or both."""
        return [self.constraint] if self.twin is None else [self.constraint, self.twin]


def sources(ob: bpy.types.Object) -> Iterator[Source]:
    """The IK constraints of an armature object that are enabled, or that a driver may enable."""
    for owner in ob.pose.bones:
        own = [made for made in owner.constraints if isinstance(made, bpy.types.KinematicConstraint)]
        own = [made for made in own if not made.mute or mute_driver(ob, made) is not None]
        pairs = [(made, _twin_of(ob, made, own)) for made in own]
        twins = [twin for _made, twin in pairs if twin is not None]
        yield from (Source(owner, made, twin) for made, twin in pairs if made not in twins)


def _twin_of(
    ob: bpy.types.Object, constraint: bpy.types.KinematicConstraint, own: Iterable[bpy.types.KinematicConstraint]
) -> bpy.types.KinematicConstraint | None:
    """The constraint that drivers enable in place of one with a pole, among those of its bone."""
    if constraint.pole_target is None or (inputs := _inputs(ob, constraint)) is None:
        return None
    return next(
        (
            twin
            for twin in own
            if twin.pole_target is None
            and all(getattr(twin, name) == getattr(constraint, name) for name in SHARED)
            and _inputs(ob, twin) == inputs
        ),
        None,
    )


def _inputs(ob: bpy.types.Object, constraint: bpy.types.KinematicConstraint) -> list[tuple[object, str]] | None:
    """What the driver that mutes a constraint reads; None where there is none."""
    curve = mute_driver(ob, constraint)
    if curve is None:
        return None
    return [(target.id, target.data_path) for variable in curve.driver.variables for target in variable.targets]


# ---- drivers


def mute_driver(
    ob: bpy.types.Object, constraint: bpy.types.KinematicConstraint, is_silent: bool = False
) -> bpy.types.FCurve | None:
    """The driver that mutes a constraint, which is in force, or is silent; None where there is none."""
    if ob.animation_data is None:
        return None
    path = f"{constraint.path_from_id()}.mute"
    return next((c for c in ob.animation_data.drivers if c.data_path == path and c.mute == is_silent), None)


def silence(ob: bpy.types.Object, constraint: bpy.types.KinematicConstraint) -> None:
    """Take the switch of a constraint away from its driver."""
    if (driver := mute_driver(ob, constraint)) is not None:
        driver.mute = True


def give_back(ob: bpy.types.Object, constraint: bpy.types.KinematicConstraint) -> None:
    """Let a driver have the switch of a constraint again."""
    if (driver := mute_driver(ob, constraint, is_silent=True)) is not None:
        driver.mute = False


def can_be_inverted(curve: bpy.types.FCurve) -> bool:
    """Whether what a driver's curve makes of its value can be turned round."""
    return not len(curve.modifiers) or _line_of(curve) is not None


def _line_of(curve: bpy.types.FCurve) -> bpy.types.FModifierGenerator | None:
    """The modifier that makes a straight line of a driver's curve, as Blender adds it; None where it has another."""
    if len(curve.modifiers) != 1:
        return None
    line: Any = curve.modifiers[0]
    is_line = isinstance(line, bpy.types.FModifierGenerator) and line.mode == "POLYNOMIAL" and line.poly_order == 1
    return line if is_line and not (line.mute or line.use_additive or line.use_restricted_range) else None


def invert(curve: bpy.types.FCurve) -> None:
    """Make a driver's curve 1 where it was 0, and 0 where it was 1."""
    line = _line_of(curve)
    if line is not None:
        line.coefficients = (1.0 - line.coefficients[0], -line.coefficients[1])
    elif len(curve.keyframe_points):
        for key in curve.keyframe_points:
            for point in (key.co, key.handle_left, key.handle_right):
                point[1] = 1.0 - point[1]
        curve.update()
    else:
        made: Any = curve.modifiers.new("GENERATOR")
        made.mode, made.poly_order, made.coefficients = "POLYNOMIAL", 1, (1.0, -1.0)
