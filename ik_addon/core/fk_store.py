"""The FK store: the channels of solved bones as they were before a solution was written over them.

It is stored on the bones themselves, so that it survives saving, undo and duplicating, and is restored bit for bit. If
the FK pose is the rest pose, the tip of the chain only notes the bone's name: Blender copies all data of a bone each
time it evaluates the armature, which would take most of a frame's time in rigs with many bones.
"""

import json
import math
import re
from collections.abc import Collection, Iterable

import numpy as np
from bpy.types import Object, PoseBone

from ..solve.problem import Bools, Ints
from . import channels
from .chain_settings import IKAddonChain, IKAddonFKStore
from .channels import REST, Row
from .settings import OF_BONES, chain_of, has_settings, is_tip, text_of
from .stamps import content, set_content
from .stamps import forget as forget_stamp
from .untyped import Json

NEAR = 1e-4
"""In lengths of the tip: bones of a path that differ by less than this begin in the same place."""


def _is_stored(bone: PoseBone) -> bool:
    return has_settings(bone) and bool(chain_of(bone).base.stored)


# ---- bones whose stored FK pose is the rest pose


def _noted(chain: IKAddonChain) -> dict[str, float | None]:
    """Read what `_note` wrote: bones from the tip up, with their distances if in rest pose; empty if it is invalid."""
    try:
        text = text_of(chain, "resting")
        noted = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(noted, dict) or re.search("[\ud800-\udfff]", "".join(noted)):
        return {}  # Blender can't look up a bone whose name holds a lone surrogate
    distances = [value for value in noted.values() if value is not None]
    return noted if all(isinstance(value, float) and math.isfinite(value) for value in distances) else {}


def _distance(tip: PoseBone, bone: PoseBone) -> float:
    """Distance between two bones' heads at rest, in lengths of the tip; joining or flipping armatures keeps it."""
    return float((bone.bone.head_local - tip.bone.head_local).length / (tip.bone.length or 1.0))


def _resting(ob: Object) -> dict[int, set[int]]:
    """Return the bones whose stored FK pose is the rest pose, by the bone that notes them, even if renamed since."""
    found: dict[int, set[int]] = {}
    bones = ob.pose.bones
    for tip, bone in enumerate(bones):
        noted = _noted(chain_of(bone)) if has_settings(bone) else {}
        if noted:
            path = [bone, *bone.parent_recursive]
            names = {own.name for own in path}
            found[tip] = {
                bones.find(name if name in names or place >= len(path) else _now(ob, path, noted, place))
                for place, (name, distance) in enumerate(noted.items())
                if distance is not None
            } - {-1}
    return found


def _now(ob: Object, path: list[PoseBone], noted: dict[str, float | None], place: int) -> str:
    """Return the current name of the bone noted at a place on the path up from the tip, if it left that path.

    It was deleted, reparented or renamed. It was renamed if the bone now in its place was nowhere on the path, and
    either no bone has the old name or the bone now in its place begins where the old one began.
    """
    name, there = list(noted)[place], path[place]
    distance = noted[name] or 0.0
    moved = abs(_distance(path[0], there) - distance) > NEAR * (1.0 + distance)
    return name if there.name in noted or (name in ob.pose.bones and moved) else there.name


def _note(ob: Object, tip: int, resting: Collection[int]) -> None:
    """Note on a bone which bones, itself or its ancestors, have the rest pose as their FK pose.

    All others on the path are noted by name, to tell them from renamed bones. Bones that are not ancestors any more,
    because they were reparented, store the rest pose themselves.
    """
    bones = ob.pose.bones
    path = {bones.find(bone.name): bone for bone in (bones[tip], *bones[tip].parent_recursive)}
    astray = set(resting) - path.keys()
    note: dict[str, float | None] = {}
    if len(astray) < len(resting):
        note = {bone.name: _distance(bones[tip], bone) if i in resting else None for i, bone in path.items()}
    if list(_noted(chain_of(bones[tip])).items()) != list(note.items()):
        forget_stamp(chain_of(bones[tip]))
        chain_of(bones[tip]).resting = json.dumps(note) if note else ""
    for bone in astray:
        _store_row(bones[bone], REST)


def _note_rest(ob: Object, bones: set[int]) -> set[int]:
    """Note that the FK pose of these bones is the rest pose; return those that no chain runs through."""
    left = set(bones)
    known = _resting(ob) if left else {}
    for tip, bone in enumerate(ob.pose.bones) if left else ():
        if left and is_tip(bone):
            path = {ob.pose.bones.find(other.name) for other in (bone, *bone.parent_recursive)}
            if path & left:
                _note(ob, tip, known.get(tip, set()) | (path & left))
                left -= path
    return left


def _drop_rest(ob: Object, bones: set[int]) -> None:
    for tip, resting in _resting(ob).items() if bones else ():
        if resting & bones:
            _note(ob, tip, resting - bones)


# ---- all stored FK poses


def stored_bones(ob: Object) -> list[int]:
    """Return the indices of the bones whose FK pose is stored."""
    explicit = {i for i, bone in enumerate(ob.pose.bones) if _is_stored(bone)}
    return sorted(explicit.union(*_resting(ob).values()))


def store(ob: Object, bones: Iterable[int], rows: Iterable[Row]) -> None:
    """Store rows of channels (17,) as the FK pose of bones."""
    content = dict(zip(bones, rows, strict=True))
    resting = {bone for bone, row in content.items() if row.tobytes() == REST.tobytes()}
    resting -= _note_rest(ob, resting)
    _drop_rest(ob, content.keys() - resting)
    for bone, row in content.items():
        if bone in resting:
            _clear(ob.pose.bones[bone])
        else:
            _store_row(ob.pose.bones[bone], row)


def _opened(bone: PoseBone) -> IKAddonFKStore:
    """Return the store of a bone, to write channels into that are in the bone's rotation mode."""
    chain = chain_of(bone)
    forget_stamp(chain)
    chain.base.rotation_mode = bone.rotation_mode
    return chain.base


def _store_row(bone: PoseBone, row: Row) -> None:
    kept = _opened(bone)
    kept.channels, kept.stored = row.tolist(), True


def _row_of(bone: PoseBone, *, rests: bool) -> Row | None:
    """Return the stored FK pose (17,) of a bone; None if there is none, or none that is valid in a file made by hand.

    A pose stored in a different rotation mode is converted to the current one, just as Blender converts the channels
    when a user or animation changes the mode.
    """
    if not _is_stored(bone):
        return REST.copy() if rests else None
    kept = chain_of(bone).base
    old, row = text_of(kept, "rotation_mode"), np.array(kept.channels, dtype=np.float32)
    if old not in channels.MODES or not np.isfinite(row).all():
        return None
    return row if old == bone.rotation_mode else channels.convert_rotation(row, old, bone.rotation_mode)


def load(ob: Object, bones: Ints, present: Row) -> tuple[Row, list[int]]:
    """Return the stored FK pose (k, 17) of bones, and the positions in `bones` of those without one.

    Bones without one take `present` as their FK pose, which is stored.
    """
    rows = present.copy()
    known = _resting(ob)
    for tip, noted in known.items():
        _note(ob, tip, noted)  # before renamed bones are renamed again
    resting = set().union(*known.values())
    new, changed = [], []
    for k, index in enumerate(bones.tolist()):
        bone = ob.pose.bones[index]
        row = _row_of(bone, rests=index in resting)
        if row is None:
            new.append(k)
            continue
        rows[k] = row
        if _is_stored(bone) and chain_of(bone).base.rotation_mode != bone.rotation_mode:
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
    resting = set().union(*_resting(ob).values())
    for k, index in enumerate(bones.tolist()):
        bone = ob.pose.bones[index]
        row = _row_of(bone, rests=index in resting)
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
    row, old = np.array(kept.written, dtype=np.float32), text_of(kept, "rotation_mode")
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
    bones = set(bones)
    _drop_rest(ob, bones)
    for bone in bones:
        _clear(ob.pose.bones[bone])


def _clear(bone: PoseBone) -> None:
    """Clear the data on a bone. On an override of a linked bone the data must stay, see `settings`."""
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


Stored = dict[int, tuple[str, Json]]
"""What bones hold, by index: the note of a tip, and the FK store as `stamps.content`."""


def snapshot(ob: Object) -> Stored:
    """Take a copy of all stored FK poses, to restore them later."""
    own = {i: chain_of(bone) for i, bone in enumerate(ob.pose.bones) if has_settings(bone)}
    found = {i: (text_of(chain, "resting"), content(chain.base)) for i, chain in own.items()}
    return {i: held for i, held in found.items() if any(held)}


def put_back(ob: Object, stored: Stored) -> None:
    """Restore all stored FK poses; the channels stay as they are."""
    now = snapshot(ob)
    for bone in now.keys() | stored.keys():
        (note, base), (_, base_now) = (held.get(bone, ("", {})) for held in (stored, now))
        if now.get(bone) == stored.get(bone):
            continue
        chain = chain_of(ob.pose.bones[bone])
        forget_stamp(chain)
        chain.resting = note
        if base:
            set_content(chain.base, base)
        elif base_now:
            _clear(ob.pose.bones[bone])
