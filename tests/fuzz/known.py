"""What the channels of bones hold without the add-on: what a test set itself, or what the F-curves say."""

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
"""By how much the matrices of a rotation may differ that was converted in single precision, again and again."""
Channels = dict[str, NDArray[np.float32]]
"""The transform channels of one bone by name."""
PATH = re.compile(r'pose\.bones\["(?P<name>(?:[^"\\]|\\.)*)"\]\.(?P<field>\w+)')


def channels(bone: bpy.types.PoseBone) -> Channels:
    """The transform channels of a bone."""
    return {field: np.array(getattr(bone, field), dtype=np.float32) for field in FIELDS}


def rotation_field(mode: str) -> str:
    """The channel of a rotation mode."""
    fields = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
    return fields.get(mode, "rotation_euler")


def rotation(row: NDArray[np.float32], mode: str) -> Matrix:
    """The rotation that a channel holds."""
    values = row.tolist()
    if mode == "QUATERNION":
        return Quaternion(values).normalized().to_matrix()
    if mode == "AXIS_ANGLE":
        return Quaternion(values[1:], values[0]).to_matrix()
    return Euler(values, mode).to_matrix()


def in_mode(turn: Matrix, mode: str) -> NDArray[np.float32]:
    """A rotation as a channel."""
    quaternion = turn.to_quaternion()
    if mode == "QUATERNION":
        return np.array(quaternion, dtype=np.float32)
    if mode == "AXIS_ANGLE":
        axis, angle = quaternion.to_axis_angle()
        return np.array((angle, axis.x, axis.y, axis.z), dtype=np.float32)
    return np.array(turn.to_euler(mode), dtype=np.float32)


class Known:
    """The channels of all bones of a scene, but for the solutions in them."""

    def __init__(self, armatures: Iterable[bpy.types.Object]) -> None:
        """Take the current channels: at the beginning, before anything is solved."""
        self.rows: dict[tuple[str, str], Channels] = {}
        """By names of object and bone."""
        self.converted: dict[tuple[str, str], dict[str, str]] = {}
        """Channels in which a rotation is known but not its numbers, because a mode was changed, with these modes."""
        self.add(armatures)

    def add(self, armatures: Iterable[bpy.types.Object]) -> None:
        """Take the current channels of armatures."""
        for ob in armatures:
            for bone in ob.pose.bones:
                self.rows[ob.name, bone.name] = channels(bone)

    def copy(self) -> Known:
        """What is known, as of now."""
        new = Known(())
        new.rows = {key: {field: row.copy() for field, row in known.items()} for key, known in self.rows.items()}
        new.converted = {key: dict(modes) for key, modes in self.converted.items()}
        return new

    def keep(self, armatures: Iterable[bpy.types.Object]) -> None:
        """Forget bones that are not there."""
        there = {(ob.name, bone.name) for ob in armatures for bone in ob.pose.bones}
        self.rows = {key: row for key, row in self.rows.items() if key in there}
        self.converted = {key: modes for key, modes in self.converted.items() if key in there}

    def put(self, ob: str, bone: str, field: str, row: NDArray[np.float32]) -> None:
        """A channel of a bone was set."""
        self.rows[ob, bone][field] = row
        self.converted.get((ob, bone), {}).pop(field, None)

    def put_number(self, ob: str, bone: str, field: str, index: int, value: float) -> None:
        """A number of a channel was set."""
        self.rows[ob, bone][field][index] = value
        self.converted.get((ob, bone), {}).pop(field, None)

    def rest(self, ob: bpy.types.Object) -> None:
        """All bones of an armature were put to rest."""
        for bone in ob.pose.bones:
            for field, row in REST.items():
                self.put(ob.name, bone.name, field, np.array(row, dtype=np.float32))

    def convert(self, ob: str, bone: str, old: str, new: str) -> None:
        """The rotation mode of a bone was changed, over a solution; between orders of Euler angles these stay."""
        if rotation_field(old) == rotation_field(new):
            return
        row = self.rows[ob, bone]
        row[rotation_field(new)] = in_mode(rotation(row[rotation_field(old)], old), new)
        self.converted.setdefault((ob, bone), {})[rotation_field(new)] = new

    def rename_bone(self, ob: str, old: str, new: str) -> None:
        """A bone got another name."""
        self._rename((ob, old), (ob, new))

    def rename_object(self, old: str, new: str) -> None:
        """An object got another name."""
        for ob, bone in list(self.rows):
            if ob == old:
                self._rename((ob, bone), (new, bone))

    def _rename(self, old: tuple[str, str], new: tuple[str, str]) -> None:
        self.rows[new] = self.rows.pop(old)
        if old in self.converted:
            self.converted[new] = self.converted.pop(old)

    def duplicate(self, old: str, new: str) -> None:
        """An object was copied."""
        copied = self.copy()
        for ob, bone in copied.rows:
            if ob == old:
                self.rows[new, bone] = copied.rows[ob, bone]
                self.converted[new, bone] = copied.converted.get((ob, bone), {})

    def holds(self, ob: str, bone: str, field: str, now: NDArray[np.float32]) -> bool:
        """Whether a channel is as it should be."""
        row, mode = self.rows[ob, bone][field], self.converted.get((ob, bone), {}).get(field)
        if mode is None or np.array_equal(row, now):
            return np.array_equal(row, now)
        return bool(np.abs(np.array(rotation(row, mode)) - np.array(rotation(now, mode))).max() < SAME_ROTATION)


def driven_fields(ob: bpy.types.Object) -> set[tuple[str, str]]:
    """Bones and channels that have drivers."""
    drivers: Iterator[Any] = iter(ob.animation_data.drivers if ob.animation_data else ())
    found = (PATH.fullmatch(curve.data_path) for curve in drivers)
    return {(bpy.utils.unescape_identifier(match["name"]), match["field"]) for match in found if match}


def animated(ob: bpy.types.Object, sources: Iterable[tuple[Any, float]]) -> dict[tuple[str, str, int], float]:
    """What F-curves say of an armature, by bone, channel and index.

    Args:
        ob: the armature object.
        sources: what holds F-curves, and the frame to look at; the last has the last word.
    """
    names = {bone.path_from_id(): bone.name for bone in ob.pose.bones}
    found = {}
    for owner, frame in sources:
        for curve in owner.fcurves:
            prefix, _, field = curve.data_path.rpartition(".")
            if prefix in names and field in FIELDS and not curve.mute:
                found[names[prefix], field, curve.array_index] = curve.evaluate(frame)
    return found
