"""Find what can be animated: every property that Blender lets a user key, found by walking its own description of data.

`walk(ob)` yields the properties of a data-block and of all its parts (pose bones, constraints, settings of the
extension), or those of one part: `walk(ob, 'pose.bones["upper"]')`. Each comes with two different values within its
range and kind, and can be set, keyed and driven.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import bpy
from mathutils import Matrix

BEGIN, TURN = 1, 11
"""Frames of the two keys: the first value holds before `TURN`, the second from `TURN` on."""


NEVER = {
    "*/is_runtime_data": "what Blender makes while it runs is not saved with the file",
    "objects/*/parent_type": "Blender builds its relations from it, and only where it is set by hand",
    "*.use_tail": "Blender builds the order in which bones are evaluated from it, and only where it is set by hand",
    "*_space=CUSTOM": "Blender looks for the object of the space where it is set by hand, and not when it is animated",
    "*.set_inverse_pending": "a button: Blender changes the constraint once and sets it back",
    "*/animation_data.action_slot_handle": "it chooses what animates everything else, so it is another animation",
    "*.matrix[*": "Blender writes it through to the channels, which are keyed by themselves",
}
"""Patterns of properties that depend on the previous frame even with Live off, and why."""


@dataclass(frozen=True)
class Animatable:
    """A property, or one component of it. Contains only names, so it outlives the file it was found in."""

    kind: str
    """The collection of `bpy.data` that contains its data-block: "objects", "armatures"."""
    owner: str
    """Name of the data-block."""
    path: str
    """Data path, starting at the data-block."""
    index: int
    """Component of a vector; -1 for a single value."""
    type: str
    """BOOLEAN, INT, FLOAT, ENUM, or FLAGS for an enumeration of which several items may be chosen."""
    values: tuple[Any, Any]
    """Its current value and another one; sets of identifiers for FLAGS."""

    @property
    def name(self) -> str:
        """Return its name in tests and patterns: `objects/Rig/pose.bones["upper"].scale[1]`."""
        component = "" if self.index < 0 else f"[{self.index}]"
        return f"{self.kind}/{self.owner}/{self.path}{component}"

    @property
    def change(self) -> str:
        """Return its name and the other value: `objects/Rig/pose.bones["upper"].rotation_mode=XYZ`."""
        return f"{self.name}={self.values[1]}"

    def block(self) -> bpy.types.ID:
        """Return the data-block, in the current file."""
        block: bpy.types.ID = getattr(bpy.data, self.kind)[self.owner]
        return block

    def set(self, value: Any) -> None:
        """Set it by hand."""
        holder, identifier = self._place()
        if self.index < 0:
            setattr(holder, identifier, value)
            return
        numbers = getattr(holder, identifier)
        if isinstance(numbers, Matrix):  # F-curves index a matrix by columns
            column, row = divmod(self.index, len(numbers))
            numbers[row][column] = value
        else:
            numbers[self.index] = value

    def is_keyed(self) -> bool:
        """Return whether an F-curve animates it."""
        return any(True for _ in self._own_curves())

    def release(self) -> None:
        """Remove the F-curve that animates it, if there is one."""
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
        """Let a custom property of an object choose the value: 0 for the first, 1 for the second."""
        self.release()
        # A driver gives the items of an enumeration by number.
        first, second = (self._number(value) for value in self.values)
        curve: Any = self.block().driver_add(self.path, self.index)
        variable = curve.driver.variables.new()
        variable.name, variable.type = "chosen", "SINGLE_PROP"
        variable.targets[0].id, variable.targets[0].data_path = switch, f'["{prop}"]'
        curve.driver.expression = f"{first!r} + chosen * {second - first!r}"

    def _own_curves(self) -> Iterator[tuple[Any, Any]]:
        """Yield its F-curves, each with the collection it is in."""
        for owner, curve in _curves(self.block()):
            if (curve.data_path, curve.array_index) == (self.path, max(self.index, 0)):
                yield owner, curve

    def _place(self) -> tuple[Any, str]:
        """Return the struct that has the property, and the property's name there."""
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
    """Yield every animatable property of a data-block, or of the part of it at a data path, and of their parts.

    A part is what Blender names by a path that continues this one, or a group of an extension's settings that has been
    set. What is only pointed to, such as a bone's parent, is not a part.
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
                    break  # a list of things that belong elsewhere
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
    """Return a part's data path in its data-block; None if Blender has none for it, so nothing can be keyed there."""
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
        if others:  # vary the choice from property to property
            other = random.Random(f"{block.name} {path}").choice(others)
            yield Animatable(kind, block.name, path, -1, "ENUM", (value, other))
    elif getattr(prop, "is_array", False):
        rows: Any = value.transposed() if isinstance(value, Matrix) else [value]
        for i, number in enumerate(number for row in rows for number in row):
            yield Animatable(kind, block.name, path, i, prop.type, (number, _another(prop, number)))
    else:
        yield Animatable(kind, block.name, path, -1, prop.type, (value, _another(prop, value)))


def _accepted(struct: Any, identifier: str) -> list[str]:
    """Return the items of an enumeration that can be set now: Blender lists them when it refuses another one."""
    try:
        setattr(struct, identifier, "no such item")
    except TypeError as error:
        return re.findall(r"'(\w+)'", str(error))
    raise AssertionError(f"{identifier} takes anything")


def _another(prop: Any, value: Any) -> Any:
    """Return a value within a property's range that differs visibly from its current value."""
    if prop.type == "BOOLEAN":
        return not value
    low, high = max(prop.soft_min, prop.hard_min), min(prop.soft_max, prop.hard_max)
    if prop.subtype == "FACTOR":
        return low if value > low else high  # a blend factor goes fully off or fully on
    step = 1 if prop.type == "INT" else 0.375
    if prop.type == "FLOAT" and high - low < 2.0 * step:
        step = 0.5 * (high - low)
    return value + step if value + step <= high else value - step


def _curves(block: bpy.types.ID) -> Iterator[tuple[Any, Any]]:
    """Yield the F-curves of a data-block's action, each with the collection it is in."""
    data: Any = getattr(block, "animation_data", None)
    if data is None or data.action is None:
        return
    action = data.action
    for bag in [action] if hasattr(action, "fcurves") else action.layers[0].strips[0].channelbags:
        yield from ((bag.fcurves, curve) for curve in bag.fcurves)


def reason(patterns: dict[str, str], name: str) -> str | None:
    """Return the reason for the first pattern that matches a property's name or its `change`.

    In a pattern `*` matches anything, as in `*.hide_render`; one that ends in `=ITEM` matches changes to that item.
    """
    return next((why for pattern, why in patterns.items() if _matches(pattern.replace("[", "[[]"), name)), None)


def _matches(pattern: str, name: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}=*")
