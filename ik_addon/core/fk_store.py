"""The FK store: the channels of solved bones as they were before a solution was written over them.

It is stored on the bones themselves, so that it survives saving, undo and duplicating, renaming and reparenting, and is
restored bit for bit.
"""

from collections.abc import Iterable

import numpy as np
from bpy.types import Object, PoseBone

from ..solve.problem import Bools, Ints
from . import channels
from .chain_settings import IKAddonFKStore
from .channels import Row
from .settings import OF_BONES, chain_of, has_settings
from .stamps import content, set_content
from .stamps import forget as forget_stamp
from .untyped import Json


def _is_stored(bone: PoseBone) -> bool:
    return has_settings(bone) and bool(chain_of(bone).base.stored)


def stored_bones(ob: Object) -> list[int]:
    """Return the indices of the bones whose FK pose is stored."""
    return [i for i, bone in enumerate(ob.pose.bones) if _is_stored(bone)]


def store(ob: Object, bones: Iterable[int], rows: Iterable[Row]) -> None:
    """Store rows of channels (17,) as the FK pose of bones."""
    for bone, row in zip(bones, rows, strict=True):
        kept = _opened(ob.pose.bones[bone])
        kept.channels, kept.stored = row.tolist(), True


def _opened(bone: PoseBone) -> IKAddonFKStore:
    """Return the store of a bone, to write channels into that are in the bone's rotation mode."""
    chain = chain_of(bone)
    forget_stamp(chain)
    chain.base.rotation_mode = bone.rotation_mode
    return chain.base


def _row_of(bone: PoseBone) -> Row | None:
    """Return the stored FK pose (17,) of a bone; None if there is none, or none that is valid in a file made by hand.

    A pose stored in a different rotation mode is converted to the current one, just as Blender converts the channels
    when a user or animation changes the mode.
    """
    if not _is_stored(bone):
        return None
    try:
        kept = chain_of(bone).base
        old, row = kept.rotation_mode, np.array(kept.channels, dtype=np.float32)
    except UnicodeDecodeError:
        return None
    if old not in channels.MODES or not np.isfinite(row).all():
        return None
    return row if old == bone.rotation_mode else channels.convert_rotation(row, old, bone.rotation_mode)


def load(ob: Object, bones: Ints, present: Row) -> tuple[Row, list[int]]:
    """Return the stored FK pose (k, 17) of bones, and the positions in `bones` of those without one.

    Bones without one take `present` as their FK pose, which is stored.
    """
    rows = present.copy()
    new, changed = [], []
    for k, index in enumerate(bones.tolist()):
        bone = ob.pose.bones[index]
        row = _row_of(bone)
        if row is None:
            new.append(k)
            continue
        rows[k] = row
        if chain_of(bone).base.rotation_mode != bone.rotation_mode:
            changed.append(k)
    if new or changed:
        store(ob, bones[new + changed].tolist(), rows[new + changed])
    return rows, new


def held(ob: Object, bones: Ints, animated: Bools | None = None) -> Row:
    """Return the stored FK pose (k, 17) as `load` does, with changes made by hand since; store nothing.

    Values that are `animated` (k, 17) may differ because the frame does, so each of them counts alone. A change by hand
    takes over the whole channel.
    """
    present = channels.read(ob, bones)
    rows = present.copy()
    for k, index in enumerate(bones.tolist()):
        bone = ob.pose.bones[index]
        row = _row_of(bone)
        if row is None:
            continue
        rows[k] = row
        moved = (_written(bone, present[k]) if _is_noted(bone) else present[k]) != present[k]
        if animated is not None:
            rows[k] = np.where(moved & animated[k], present[k], rows[k])
            moved &= ~animated[k]
        for columns in channels.FIELDS.values():
            if moved[columns].any():
                rows[k, columns] = present[k, columns]
    return rows


def note_written(ob: Object, bones: Ints, rows: Row) -> None:
    """Note on the bones what was written into them, to find out later whether they were moved by hand."""
    for bone, row in zip(bones.tolist(), rows, strict=True):
        kept = _opened(ob.pose.bones[bone])
        kept.written, kept.noted = row.tolist(), True


def _is_noted(bone: PoseBone) -> bool:
    return has_settings(bone) and bool(chain_of(bone).base.noted)


def _written(bone: PoseBone, present: Row) -> Row:
    """Return what `note_written` noted (17,), in the current rotation mode."""
    kept = chain_of(bone).base
    row, old = np.array(kept.written, dtype=np.float32), kept.rotation_mode
    return channels.as_converted(row, old, present, bone.rotation_mode) if old in channels.MODES else row


def take_written(ob: Object, bones: Ints, present: Row) -> Row:
    """Return and forget what `note_written` noted (k, 17); `present` for bones without a note."""
    rows = present.copy()
    for k, bone in enumerate(ob.pose.bones[index] for index in bones.tolist()):
        if _is_noted(bone):
            rows[k] = _written(bone, present[k])
            forget_stamp(chain_of(bone))
            chain_of(bone).base.noted = False
            if not chain_of(bone).base.stored:
                _clear(bone)
    return rows


def restore(ob: Object, bones: Iterable[int]) -> None:
    """Put the stored FK pose of these bones back into their channels; leave bones without one alone."""
    stored = np.array(sorted(set(stored_bones(ob)).intersection(bones)), dtype=np.int64)
    rows, _new = load(ob, stored, channels.read(ob, stored))
    channels.write(ob, stored, rows)


def release(ob: Object, bones: Iterable[int]) -> None:
    """Put the stored FK pose of these bones back into their channels and forget it; leave others alone."""
    bones = list(bones)
    restore(ob, bones)
    forget(ob, bones)


def forget(ob: Object, bones: Iterable[int]) -> None:
    """Drop the stored FK pose of these bones; the channels stay as they are."""
    for bone in bones:
        _clear(ob.pose.bones[bone])


def _clear(bone: PoseBone) -> None:
    """Clear the data on a bone. On an override of a linked bone the data must stay, see `overrides`."""
    if not has_settings(bone):
        return
    chain = chain_of(bone)
    forget_stamp(chain)
    if bone.id_data.override_library is not None:
        chain.base.stored = chain.base.noted = False
    elif any(map(chain.is_property_set, ("is_chain", *OF_BONES))):
        chain.property_unset("base")  # the rest is the user's, and someone may be reading it
    else:
        bone.property_unset("ik_addon")


def snapshot(ob: Object) -> dict[int, Json]:
    """Take a copy of all stored FK poses, by index of their bone, to restore them later."""
    found = {i: content(chain_of(bone).base) for i, bone in enumerate(ob.pose.bones) if has_settings(bone)}
    return {i: base for i, base in found.items() if base}


def put_back(ob: Object, stored: dict[int, Json]) -> None:
    """Restore all stored FK poses; the channels stay as they are."""
    now = snapshot(ob)
    for bone in now.keys() | stored.keys():
        if bone not in stored:
            _clear(ob.pose.bones[bone])
        elif now.get(bone) != stored[bone]:
            chain = chain_of(ob.pose.bones[bone])
            forget_stamp(chain)
            set_content(chain.base, stored[bone])
