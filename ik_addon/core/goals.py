"""Targets and poles: the object or bone behind each, its channels and keys, and whether it can be moved."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from bpy.types import Depsgraph, FCurve, Object, PoseBone
from mathutils import Matrix

from ..solve.maths.products import determinants, times
from ..solve.maths.rotations import matrices, quaternions
from ..solve.problem import Floats
from . import channels, compat
from .channels import FIELDS, Row
from .transforms import rotations
from .translation.sentences import UserError, quoted, say
from .untyped import Struct, Value, has_mark

MADE = "ik_addon_made"
"""Custom property of everything Add Chain made. Nothing else is ever deleted. Of an empty it is the identity of its
armature."""

NAMED = 6
"""Number of names in a sentence: the hands and feet of a figure, with its chest and head."""

Holder = Object | PoseBone
"""The owner of channels: an object or a pose bone."""


def named(names: Sequence[str]) -> str:
    """Return the first names in quotes, and how many more there are: a line has no room for all bones of a body."""
    if len(names) <= NAMED:
        return quoted(names)
    return say("{names} and {count} more", names=quoted(names[:NAMED]), count=len(names) - NAMED)


def keyed_indices(holder: Holder, field: str) -> set[int]:
    """Return the indices of a property that have an F-curve."""
    return {index for index, _curve in curves_on(holder, field)}


def curves_on(holder: Holder, field: str) -> Iterator[tuple[int, FCurve]]:
    """Yield the indices of a property that have an F-curve, each with its curve.

    Blender looks each one up in a list: much faster than comparing the paths of all curves of a character here.
    """
    curves, path = compat.curves_of(holder.id_data), path_of(holder, field)
    for index in range(len(getattr(holder, field)) if curves else 0):
        curve = curves.find(path, index=index)
        if curve is not None:
            yield index, curve


def group_of(holder: Holder) -> str:
    """Return the name of the group of its F-curves, as Blender names it."""
    return holder.name if isinstance(holder, PoseBone) else "Object Transforms"


def insert_key(holder: Holder, field: str, index: int, value: float, frame: float, **options: Value) -> None:
    """Key a value on a frame of the scene and leave the channel as it is.

    Editing a key instead would make Blender animate the channels, and drop the edits of others that have no keys.
    """
    kept = getattr(holder, field)[:]
    setattr(holder, field, [value if i == index else own for i, own in enumerate(kept)])
    holder.keyframe_insert(field, index=index, frame=frame, **options)
    setattr(holder, field, kept)


def path_of(holder: Holder, field: str) -> str:
    """Return the data path of a property, relative to the object."""
    return field if isinstance(holder, Object) else f"{holder.path_from_id()}.{field}"


@dataclass(frozen=True)
class Goal:
    """What a chain follows, or what that follows: an object, or one of its bones."""

    ob: Object
    bone: str = ""
    turns: bool = dataclasses.field(default=False, compare=False)
    """Whether its rotation is set too, when it is brought to a pose."""

    @property
    def is_made(self) -> bool:
        """Whether Add Chain made it."""
        return has_mark(self.ob.data.bones[self.bone] if self.is_bone else self.ob, MADE)

    def world(self, depsgraph: Depsgraph) -> Matrix:
        """Return its evaluated world matrix."""
        seen = self.ob.evaluated_get(depsgraph)
        bone = seen.pose.bones.get(self.bone) if self.bone and seen.type == "ARMATURE" else None
        return seen.matrix_world.copy() if bone is None else seen.matrix_world @ bone.matrix

    @property
    def holder(self) -> Struct:
        """The object or bone that is moved."""
        return self.ob.pose.bones[self.bone] if self.is_bone else self.ob

    @property
    def is_bone(self) -> bool:
        """Whether it is a bone; on objects other than armatures the bone name is ignored."""
        return self.ob.type == "ARMATURE" and bool(self.bone) and self.bone in self.ob.pose.bones

    @property
    def name(self) -> str:
        """The name shown in messages."""
        return self.bone or self.ob.name

    @property
    def fields(self) -> tuple[str, ...]:
        """The channels that are set."""
        return ("location", channels.rotation_field(self.holder.rotation_mode)) if self.turns else ("location",)

    @property
    def is_keyed(self) -> bool:
        """Whether the location or rotation has F-curves."""
        fields = "location", channels.rotation_field(self.holder.rotation_mode)
        return any(keyed_indices(self.holder, field) for field in fields)

    @property
    def last_key(self) -> float:
        """The frame of the last key of the location or rotation; -inf without keys."""
        fields = "location", channels.rotation_field(self.holder.rotation_mode)
        ends = (curve.range()[1] for field in fields for _index, curve in curves_on(self.holder, field))
        data = self.ob.animation_data
        return max((data.nla_tweak_strip_time_to_scene(end) for end in ends), default=-math.inf)

    @property
    def why_fixed(self) -> str:
        """Why it can't be moved by itself, and what to do; empty if it can."""
        if not self.ob.is_editable:
            return say("'{goal}' is linked from another file and can't be moved", goal=self.ob.name)
        bone = self.ob.data.bones[self.bone] if self.is_bone else None
        if bone is None and self.bone and self.ob.type == "ARMATURE":
            return say("'{ob}' has no bone '{bone}'", ob=self.ob.name, bone=self.bone)
        if bone is not None and bone.use_connect and bone.parent is not None:
            return say("Bone '{bone}' is connected to its parent and can't be moved by itself", bone=self.bone)
        return ""

    def check_movable(self) -> None:
        """Raise `UserError` if it can't be moved by itself."""
        if reason := self.why_fixed:
            raise UserError(reason)

    def row(self) -> Row:
        """Return the current channels (17,)."""
        row = np.zeros(channels.WIDTH, dtype=np.float32)
        for field, columns in FIELDS.items():
            row[columns] = getattr(self.holder, field)
        return row

    def set_row(self, row: Row) -> None:
        """Set the properties in `fields` from channels (17,)."""
        for field in self.fields:
            setattr(self.holder, field, row[FIELDS[field]].tolist())

    def rows(self, basis: Floats) -> Row:
        """Return channels (F, 17) that give basis matrices (F, 4, 4); those not in `fields` keep their values."""
        rows = np.repeat(self.row()[None], len(basis), axis=0)
        rows[:, FIELDS["location"]] = basis[:, :3, 3] - self._delta("location")
        if self.turns:
            mode = self.holder.rotation_mode
            axes = basis[:, :3, :3] / np.maximum(np.linalg.norm(basis[:, :3, :3], axis=1, keepdims=True), 1e-30)
            axes *= np.where(determinants(axes) < 0.0, -1.0, 1.0)[:, None, None]
            turned = np.moveaxis(matrices(quaternions(np.moveaxis(axes, 0, -1))), -1, 0)
            if mode != "AXIS_ANGLE" and not self.is_bone:  # Blender applies no delta to axis and angle
                delta = rotations(self._delta(channels.rotation_field(mode)), mode)
                turned = times(np.swapaxes(delta, -1, -2)[None], turned)
            rows = channels.with_rotation(rows, turned, np.full(len(rows), mode))
        return rows

    def _delta(self, field: str) -> Floats:
        """Return an object's delta transform for a property; zeros for bones, which have none."""
        width = FIELDS[field].stop - FIELDS[field].start
        return np.zeros(width) if self.is_bone else np.array(getattr(self.ob, f"delta_{field}"))

    def keyed(self, times_of_keys: Floats) -> Row:
        """Return the keyed channels (F, 17) at times (F,) of the action; channels not in `fields` are zero."""
        rows = np.zeros((len(times_of_keys), channels.WIDTH), dtype=np.float32)
        for field in self.fields:
            columns = FIELDS[field]
            rows[:, columns] = self.row()[columns]
            for i, curve in curves_on(self.holder, field):
                rows[:, columns.start + i] = [curve.evaluate(time) for time in times_of_keys.tolist()]
        return rows

    def show_keys(self, frame: float) -> None:
        """Set the channels to the values of their F-curves on a frame of the action."""
        self.set_row(self.keyed(np.array([frame]))[0])
