"""What can be animated: every property that Blender lets a user key, found by walking its own description of data.

`walk(ob)` yields those of a data-block and of all that is part of it (pose bones, constraints, settings of the
extension), or of one part of it: `walk(ob, 'pose.bones["upper"]')`. Each comes with two values that differ, by its
range and kind, and can be set, keyed and driven.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import bpy
from mathutils import Matrix

BEGIN, TURN = 1, 11
"""Frames of the two keys: the first value holds before `TURN`, the second from there on."""


@dataclass(frozen=True)
class Animatable:
    """A property, or one component of it. It holds names alone, so it outlives the file that it was found in."""

    kind: str
    """The collection of `bpy.data` that its data-block is in: "objects", "armatures"."""
    owner: str
    """Name of the data-block."""
    path: str
    """Data path from the data-block on."""
    index: int
    """Component of a vector; -1: it has one value."""
    type: str
    """BOOLEAN, INT, FLOAT, ENUM, or FLAGS where several items of an enumeration may be chosen."""
    values: tuple[Any, Any]
    """The value that it has, and another one; sets of identifiers for FLAGS."""

    @property
    def name(self) -> str:
        """Its name in tests and patterns: `objects/Rig/pose.bones["upper"].scale[1]`."""
        component = "" if self.index < 0 else f"[{self.index}]"
        return f"{self.kind}/{self.owner}/{self.path}{component}"

    @property
    def change(self) -> str:
        """Its name and the other value: `objects/Rig/pose.bones["upper"].rotation_mode=XYZ`."""
        return f"{self.name}={self.values[1]}"

    def block(self) -> bpy.types.ID:
        """The data-block, in the current file."""
        block: bpy.types.ID = getattr(bpy.data, self.kind)[self.owner]
        return block

    def set(self, value: Any) -> None:
        """Set it by hand."""
        holder, identifier = self._place()
        if self.index < 0:
            setattr(holder, identifier, value)
            return
        numbers = getattr(holder, identifier)
        if isinstance(numbers, Matrix):  # F-curves count along its columns
            column, row = divmod(self.index, len(numbers))
            numbers[row][column] = value
        else:
            numbers[self.index] = value

    def is_keyed(self) -> bool:
        """Whether an F-curve animates it."""
        return any(True for _ in self._own_curves())

    def release(self) -> None:
        """Take away the F-curve that animates it, if there is one."""
        for owner, curve in list(self._own_curves()):
            owner.remove(curve)

    def key(self) -> None:
        """Key the first value at `BEGIN` and the second at `TURN`, constant in between, and nothing on other frames."""
        self.release()
        for frame, value in zip((BEGIN, TURN), self.values, strict=True):
            self.set(value)
            self.block().keyframe_insert(self.path, index=self.index, frame=frame)
        for _, curve in self._own_curves():
            for point in curve.keyframe_points:
                point.interpolation = "CONSTANT"

    def drive(self, switch: bpy.types.Object, prop: str) -> None:
        """Let a custom property of an object choose: 0 for the first value, 1 for the second."""
        self.release()
        # A driver counts the items of an enumeration by their numbers.
        first, second = (self._number(value) for value in self.values)
        curve: Any = self.block().driver_add(self.path, self.index)
        variable = curve.driver.variables.new()
        variable.name, variable.type = "chosen", "SINGLE_PROP"
        variable.targets[0].id, variable.targets[0].data_path = switch, f'["{prop}"]'
        curve.driver.expression = f"{first!r} + chosen * {second - first!r}"

    def _own_curves(self) -> Iterator[tuple[Any, Any]]:
        """Its F-curves, each with the list that it is in."""
        for owner, curve in _curves(self.block()):
            if (curve.data_path, curve.array_index) == (self.path, max(self.index, 0)):
                yield owner, curve

    def _place(self) -> tuple[Any, str]:
        """What it is a property of, and its name there."""
        struct, _, identifier = self.path.rpartition(".")
        block: Any = self.block()
        return (block.path_resolve(struct) if struct else block), identifier

    def _number(self, value: Any) -> float:
        if self.type in {"ENUM", "FLAGS"}:
            holder, identifier = self._place()
            items = holder.bl_rna.properties[identifier].enum_items
            return float(sum(items[item].value for item in ({value} if self.type == "ENUM" else value)))
        return float(value)


def walk(block: bpy.types.ID, path: str = "") -> Iterator[Animatable]:
    """Every animatable property of a data-block, or of the part of it at a data path, and of their parts.

    A part is what Blender names by a path that continues this one, or a group of settings of an extension that somebody
    has set; what is only pointed to, such as a bone's parent, is part of something else.
    """
    whole: Any = block
    struct = whole.path_resolve(path) if path else whole
    prefix = f"{path}." if path else ""
    for prop in struct.bl_rna.properties:
        if prop.identifier == "rna_type":
            continue  # the description itself
        if prop.type == "POINTER":
            part = getattr(struct, prop.identifier)
            if _is_part(struct, prop.identifier, part, prefix + prop.identifier):
                yield from walk(block, prefix + prop.identifier)
        elif prop.type == "COLLECTION":
            for part in getattr(struct, prop.identifier):
                found = _path_of(part)
                if found is None or not found.startswith(f"{prefix}{prop.identifier}["):
                    break  # a list of what belongs to something else
                yield from walk(block, found)
        elif prop.is_animatable and not struct.is_property_readonly(prop.identifier):
            yield from _components(block, struct, prop, prefix + prop.identifier)


def _is_part(struct: Any, identifier: str, part: Any, path: str) -> bool:
    if part is None or isinstance(part, bpy.types.ID):
        return False
    if isinstance(part, bpy.types.PropertyGroup):
        return bool(struct.is_property_set(identifier))
    return _path_of(part) == path


def _path_of(part: Any) -> str | None:
    """Where Blender finds a part in its data-block; None where it cannot say, so that nothing can be keyed there."""
    if isinstance(part, bpy.types.ID):
        return None
    try:
        path: str = part.path_from_id()
    except ValueError:
        return None
    return path


def _components(block: bpy.types.ID, struct: Any, prop: Any, path: str) -> Iterator[Animatable]:
    kind = {"OBJECT": "objects", "ARMATURE": "armatures"}[block.id_type]
    value = getattr(struct, prop.identifier)
    if prop.type == "ENUM" and prop.is_enum_flag:
        first = prop.enum_items[0].identifier
        yield Animatable(kind, block.name, path, -1, "FLAGS", (value, value ^ {first}))
    elif prop.type == "ENUM":
        others = [item for item in _accepted(struct, prop.identifier) if item != value]
        if others:  # not the same one everywhere
            other = random.Random(f"{block.name} {path}").choice(others)
            yield Animatable(kind, block.name, path, -1, "ENUM", (value, other))
    elif getattr(prop, "is_array", False):
        rows: Any = value.transposed() if isinstance(value, Matrix) else [value]
        for i, number in enumerate(number for row in rows for number in row):
            yield Animatable(kind, block.name, path, i, prop.type, (number, _another(prop, number)))
    else:
        yield Animatable(kind, block.name, path, -1, prop.type, (value, _another(prop, value)))


def _accepted(struct: Any, identifier: str) -> list[str]:
    """The items of an enumeration that may be chosen where things stand: Blender names them when it refuses another."""
    try:
        setattr(struct, identifier, "no such item")
    except TypeError as error:
        return re.findall(r"'(\w+)'", str(error))
    raise AssertionError(f"{identifier} takes anything")


def _another(prop: Any, value: Any) -> Any:
    """A value that differs from the one that a property has, so far that it shows, within its range."""
    if prop.type == "BOOLEAN":
        return not value
    low, high = max(prop.soft_min, prop.hard_min), min(prop.soft_max, prop.hard_max)
    if prop.subtype == "FACTOR":
        return low if value > low else high  # what is blended in is switched off, or fully on
    step = 1 if prop.type == "INT" else 0.375
    if prop.type == "FLOAT" and high - low < 2.0 * step:
        step = 0.5 * (high - low)
    return value + step if value + step <= high else value - step


def _curves(block: bpy.types.ID) -> Iterator[tuple[Any, Any]]:
    """The F-curves of a data-block's action, each with the list that it is in."""
    data: Any = getattr(block, "animation_data", None)
    if data is None or data.action is None:
        return
    action = data.action
    for bag in [action] if hasattr(action, "fcurves") else action.layers[0].strips[0].channelbags:
        yield from ((bag.fcurves, curve) for curve in bag.fcurves)


def reason(patterns: dict[str, str], name: str) -> str | None:
    """The reason beside the first of these patterns that a property's name, or its `change`, matches.

    In a pattern `*` stands for anything, as in `*.hide_render`; one that ends in `=ITEM` means changes to that item.
    """
    return next((why for pattern, why in patterns.items() if _matches(pattern.replace("[", "[[]"), name)), None)


def _matches(pattern: str, name: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}=*")
