"""The values that channels of bones would hold without the add-on: set by the test, or given by F-curves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import bpy
import numpy as np
from mathutils import Euler, Matrix, Quaternion
from numpy.typing import NDArray

FIELDS = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "scale")
REST = {
    "location": (0, 0, 0),
    "rotation_quaternion": (1, 0, 0, 0),
    "rotation_euler": (0, 0, 0),
    "rotation_axis_angle": (0, 0, 1, 0),
    "scale": (1, 1, 1),
}
SAME_ROTATION = 1e-4
"""Largest difference allowed between matrices of a rotation converted repeatedly in single precision."""
Channels = dict[str, NDArray[np.float32]]
"""The transform channels of one bone, by name."""
PATH = re.compile(r'pose\.bones\["(?P<name>(?:[^"\\]|\\.)*)"\]\.(?P<field>\w+)')


def channels(bone: bpy.types.PoseBone) -> Channels:
    """The transform channels of a bone."""
    return {field: np.array(getattr(bone, field), dtype=np.float32) for field in FIELDS}


def rotation_field(mode: str) -> str:
    """The channel of a rotation mode."""
    fields = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
    return fields.get(mode, "rotation_euler")


def rotation(row: NDArray[np.float32], mode: str) -> Matrix:
    """Return the rotation that a channel holds, as a matrix."""
    values = row.tolist()
    if mode == "QUATERNION":
        return Quaternion(values).normalized().to_matrix()
    if mode == "AXIS_ANGLE":
        return Quaternion(values[1:], values[0]).to_matrix()
    return Euler(values, mode).to_matrix()


def in_mode(turn: Matrix, mode: str) -> NDArray[np.float32]:
    """Convert a rotation to the channel of a rotation mode."""
    quaternion = turn.to_quaternion()
    if mode == "QUATERNION":
        return np.array(quaternion, dtype=np.float32)
    if mode == "AXIS_ANGLE":
        axis, angle = quaternion.to_axis_angle()
        return np.array((angle, axis.x, axis.y, axis.z), dtype=np.float32)
    return np.array(turn.to_euler(mode), dtype=np.float32)


class Known:
    """The channels of all bones of a scene, as they would be without solutions."""

    def __init__(self, armatures: Iterable[bpy.types.Object]) -> None:
        """Take the current channels, before anything is solved."""
        self.rows: dict[tuple[str, str], Channels] = {}
        """By names of object and bone."""
        self.converted: dict[tuple[str, str], dict[str, str]] = {}
        """Channels, with their modes, of which only the rotation is known, not the numbers: their mode was changed."""
        self.add(armatures)

    def add(self, armatures: Iterable[bpy.types.Object]) -> None:
        """Take the current channels of armatures."""
        for ob in armatures:
            for bone in ob.pose.bones:
                self.rows[ob.name, bone.name] = channels(bone)

    def copy(self) -> Known:
        """Return a copy."""
        new = Known(())
        new.rows = {key: {field: row.copy() for field, row in known.items()} for key, known in self.rows.items()}
        new.converted = {key: dict(modes) for key, modes in self.converted.items()}
        return new

    def keep(self, armatures: Iterable[bpy.types.Object]) -> None:
        """Forget bones that no longer exist."""
        there = {(ob.name, bone.name) for ob in armatures for bone in ob.pose.bones}
        self.rows = {key: row for key, row in self.rows.items() if key in there}
        self.converted = {key: modes for key, modes in self.converted.items() if key in there}

    def put(self, ob: str, bone: str, field: str, row: NDArray[np.float32]) -> None:
        """Record that a channel of a bone was set."""
        self.rows[ob, bone][field] = row
        self.converted.get((ob, bone), {}).pop(field, None)

    def put_number(self, ob: str, bone: str, field: str, index: int, value: float) -> None:
        """Record that one number of a channel was set."""
        self.rows[ob, bone][field][index] = value
        self.converted.get((ob, bone), {}).pop(field, None)

    def rest(self, ob: bpy.types.Object) -> None:
        """Record that all bones of an armature were put into the rest pose."""
        for bone in ob.pose.bones:
            for field, row in REST.items():
                self.put(ob.name, bone.name, field, np.array(row, dtype=np.float32))

    def convert(self, ob: str, bone: str, old: str, new: str) -> None:
        """Record that the mode of a solved bone was changed; between Euler orders the angles stay."""
        if rotation_field(old) == rotation_field(new):
            return
        row = self.rows[ob, bone]
        row[rotation_field(new)] = in_mode(rotation(row[rotation_field(old)], old), new)
        self.converted.setdefault((ob, bone), {})[rotation_field(new)] = new

    def rename_bone(self, ob: str, old: str, new: str) -> None:
        """Record that a bone was renamed."""
        self._rename((ob, old), (ob, new))

    def rename_object(self, old: str, new: str) -> None:
        """Record that an object was renamed."""
        for ob, bone in list(self.rows):
            if ob == old:
                self._rename((ob, bone), (new, bone))

    def _rename(self, old: tuple[str, str], new: tuple[str, str]) -> None:
        self.rows[new] = self.rows.pop(old)
        if old in self.converted:
            self.converted[new] = self.converted.pop(old)

    def duplicate(self, old: str, new: str) -> None:
        """Record that an object was duplicated."""
        copied = self.copy()
        for ob, bone in copied.rows:
            if ob == old:
                self.rows[new, bone] = copied.rows[ob, bone]
                self.converted[new, bone] = copied.converted.get((ob, bone), {})

    def holds(self, ob: str, bone: str, field: str, now: NDArray[np.float32]) -> bool:
        """Whether a channel holds its known value."""
        row, mode = self.rows[ob, bone][field], self.converted.get((ob, bone), {}).get(field)
        if mode is None or np.array_equal(row, now):
            return np.array_equal(row, now)
        return bool(np.abs(np.array(rotation(row, mode)) - np.array(rotation(now, mode))).max() < SAME_ROTATION)


def driven_fields(ob: bpy.types.Object) -> set[tuple[str, str]]:
    """Names of bones and channels that have drivers."""
    drivers: Iterator[Any] = iter(ob.animation_data.drivers if ob.animation_data else ())
    found = (PATH.fullmatch(curve.data_path) for curve in drivers)
    return {(bpy.utils.unescape_identifier(match["name"]), match["field"]) for match in found if match}


def animated(ob: bpy.types.Object, sources: Iterable[tuple[Any, float]]) -> dict[tuple[str, str, int], float]:
    """Evaluate F-curves of an armature; return values by bone, channel and index.

    Args:
        ob: the armature object.
        sources: owners of F-curves, each with the frame to evaluate; later ones override earlier ones.
    """
    names = {bone.path_from_id(): bone.name for bone in ob.pose.bones}
    found = {}
    for owner, frame in sources:
        for curve in owner.fcurves:
            prefix, _, field = curve.data_path.rpartition(".")
            if prefix in names and field in FIELDS and not curve.mute:
                found[names[prefix], field, curve.array_index] = curve.evaluate(frame)
    return found
