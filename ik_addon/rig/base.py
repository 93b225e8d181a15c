"""The FK base: what the channels of a solved bone held before a solution was written over them.

It is stored on the bones themselves, so that it survives saving, undo and duplicating, and comes back bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable

import bpy
import numpy as np

from ..settings import IKAddonBase, chain_of
from ..solve.problem import Ints
from . import channels
from .channels import Row


def _base(ob: bpy.types.Object, bone: int) -> IKAddonBase:
    return chain_of(ob.pose.bones[bone]).base


def _is_usable(base: IKAddonBase) -> bool:
    """Whether there is a base, of numbers and a rotation mode that are some: a file may be made by hand."""
    try:
        return base.stored and base.rotation_mode in channels.MODES and bool(np.isfinite(base.channels).all())
    except UnicodeDecodeError:
        return False


def stored_bones(ob: bpy.types.Object) -> list[int]:
    """Indices of the bones that have a base."""
    return [i for i, bone in enumerate(ob.pose.bones) if chain_of(bone).base.stored]


def store(ob: bpy.types.Object, bone: int, row: Row) -> None:
    """Make a row of channels (17,) the base of a bone."""
    base = _base(ob, bone)
    base.channels = row.tolist()
    base.rotation_mode = ob.pose.bones[bone].rotation_mode
    base.stored = True


def load(ob: bpy.types.Object, bones: Ints, present: Row) -> tuple[Row, list[int]]:
    """The base (k, 17) of bones, and the positions (in `bones`) of those that had none: they take what is present.

    A base that was stored under another rotation mode is converted to the present one, as Blender converts the
    channels when a user changes the mode.
    """
    rows = present.copy()
    new = []
    for k, bone in enumerate(bones.tolist()):
        base = _base(ob, bone)
        if not _is_usable(base):
            store(ob, bone, present[k])
            new.append(k)
            continue
        rows[k] = np.array(base.channels, dtype=np.float32)
        mode = ob.pose.bones[bone].rotation_mode
        if base.rotation_mode != mode:
            rows[k] = channels.convert_rotation(rows[k], base.rotation_mode, mode)
            store(ob, bone, rows[k])
    return rows, new


def held(ob: bpy.types.Object, bones: Ints) -> Row:
    """The base (k, 17) as `load` has it, with what was moved by hand since it was written over; changes nothing."""
    present = channels.read(ob, bones)
    rows = present.copy()
    for k, bone in enumerate(bones.tolist()):
        base = _base(ob, bone)
        if not base.stored:
            continue
        mode = ob.pose.bones[bone].rotation_mode
        rows[k] = np.array(base.channels, dtype=np.float32)
        if base.rotation_mode != mode:
            rows[k] = channels.convert_rotation(rows[k], base.rotation_mode, mode)
        written = np.array(base.written, dtype=np.float32) if base.noted else present[k]
        for columns in channels.FIELDS.values():
            if not np.array_equal(written[columns], present[k, columns]):
                rows[k, columns] = present[k, columns]
    return rows


def note_written(ob: bpy.types.Object, bones: Ints, rows: Row) -> None:
    """Note on the bones what was written into them, to tell later whether they were moved by hand since."""
    for bone, row in zip(bones.tolist(), rows, strict=True):
        base = _base(ob, bone)
        base.written = row.tolist()
        base.noted = True


def take_written(ob: bpy.types.Object, bones: Ints, present: Row) -> Row:
    """What `note_written` noted (k, 17), and forget it; what is present where there is no note."""
    rows = present.copy()
    for k, bone in enumerate(bones.tolist()):
        base = _base(ob, bone)
        if base.stored and base.noted:
            rows[k] = np.array(base.written, dtype=np.float32)
            base.noted = False
    return rows


def restore(ob: bpy.types.Object, bones: Iterable[int]) -> None:
    """Put the base of these bones back into their channels; bones without one are left alone."""
    stored = np.array([bone for bone in bones if _base(ob, bone).stored], dtype=np.int64)
    rows, _new = load(ob, stored, channels.read(ob, stored))
    channels.write(ob, stored, rows)


def release(ob: bpy.types.Object, bones: Iterable[int]) -> None:
    """Put the base of these bones back into their channels and forget it; bones without one are left alone."""
    bones = list(bones)
    restore(ob, bones)
    forget(ob, bones)


def forget(ob: bpy.types.Object, bones: Iterable[int]) -> None:
    """Drop the base of these bones; the channels stay as they are."""
    for bone in bones:
        base = _base(ob, bone)
        base.stored = base.noted = False
