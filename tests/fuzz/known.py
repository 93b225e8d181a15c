"""The values that channels of bones would hold without the add-on: set by the test, or given by F-curves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

REST = {
    "location": (0, 0, 0),
    "rotation_quaternion": (1, 0, 0, 0),
    "rotation_euler": (0, 0, 0),
    "rotation_axis_angle": (0, 0, 1, 0),
    "scale": (1, 1, 1),
}
Channels = dict[str, NDArray[np.float32]]
"""The transform channels of one bone, by name."""
PATH = re.compile(r'pose\.bones\["(?P<name>(?:[^"\\]|\\.)*)"\]\.(?P<field>\w+)')


def channels(bone: bpy.types.PoseBone) -> Channels:
    """The transform channels of a bone."""
    return {field: np.array(getattr(bone, field), dtype=np.float32) for field in REST}


def rotation_field(mode: str) -> str:
    """The channel of a rotation mode."""
    fields = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
    return fields.get(mode, "rotation_euler")


class Known:
    """The channels of all bones of a scene, as they would be without solutions."""

    def __init__(self, armatures: Iterable[bpy.types.Object]) -> None:
        """Take the current channels, before anything is solved."""
        self.rows: dict[tuple[str, str], Channels] = {}
        """By names of object and bone."""
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
        return new

    def keep(self, armatures: Iterable[bpy.types.Object]) -> None:
        """Forget bones that no longer exist."""
        there = {(ob.name, bone.name) for ob in armatures for bone in ob.pose.bones}
        self.rows = {key: row for key, row in self.rows.items() if key in there}

    def rest(self, ob: bpy.types.Object) -> None:
        """Record that all bones of an armature were put into the rest pose."""
        for bone in ob.pose.bones:
            for field, row in REST.items():
                self.rows[ob.name, bone.name][field] = np.array(row, dtype=np.float32)

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

    def duplicate(self, old: str, new: str) -> None:
        """Record that an object was duplicated."""
        copied = self.copy()
        for ob, bone in copied.rows:
            if ob == old:
                self.rows[new, bone] = copied.rows[ob, bone]


def driven_fields(ob: bpy.types.Object) -> set[tuple[str, str]]:
    """Names of bones and channels that have drivers."""
    drivers: Iterator[Any] = iter(ob.animation_data.drivers if ob.animation_data else ())
    found = (PATH.fullmatch(curve.data_path) for curve in drivers)
    return {(bpy.utils.unescape_identifier(match["name"]), match["field"]) for match in found if match}


def animated(ob: bpy.types.Object, owner: Any, frame: float) -> dict[tuple[str, str, int], float]:
    """Evaluate F-curves of an armature on a frame; return values by bone, channel and index."""
    names = {bone.path_from_id(): bone.name for bone in ob.pose.bones}
    found = {}
    for curve in owner.fcurves:
        prefix, _, field = curve.data_path.rpartition(".")
        if prefix in names and field in REST and not curve.mute:
            found[names[prefix], field, curve.array_index] = curve.evaluate(frame)
    return found
