"""Keys that are inserted on solved bones hold the FK pose, although Blender keys what it finds: the solution.

Blender's undo step is made before a handler hears of a key, so it holds the solution. What was put right is therefore
remembered, and done again when undo or redo bring that step back.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import bpy
import numpy as np
from bpy.types import FCurve, Object

from ..solve.problem import Ints
from . import compat, fk_store
from .channels import FIELDS, Row, channel_of
from .goals import insert_key, path_of
from .key_curve import SAME_FRAME, read_keys
from .settings import object_of
from .untyped import Shaped

REMEMBERED = 4096
"""Maximum number of keys that are remembered."""

Counts = dict[tuple[str, int], int]
"""How many keys each F-curve of live bones has, by data path and index."""


@dataclass(frozen=True)
class _Mend:
    """A key that held the solution."""

    armature: int
    """`session_uid` of the object."""
    bone: str
    field: str
    index: int
    frame: float
    """The frame of the scene."""
    shown: float
    fk: float


_mends: list[_Mend] = []


def is_same(value: Shaped, other: Shaped) -> Shaped:
    """Whether values in single precision are the same: Blender moves a key by a difference, which rounds."""
    return np.isclose(value, other, rtol=1e-6, atol=1e-6)


def count(ob: Object, bones: Ints) -> Counts:
    """Count the keys on the channels of bones."""
    return {(curve.data_path, curve.array_index): len(curve.keyframe_points) for curve, *_place in _curves(ob, bones)}


def put_fk(ob: Object, bones: Ints, counts: Counts, shown: Row, fk: Row, frame: float) -> tuple[Counts, bool]:
    """Put the FK pose into keys that were inserted on a frame with what the bones showed.

    An F-curve that got several keys at once was written by a bake or a script, whose keys are FK as they are.

    Args:
        ob: the armature object.
        bones: (k,) indices of its live bones.
        counts: how many keys there were before.
        shown: (k, 17) the channels that were keyed.
        fk: (k, 17) the FK pose.
        frame: the frame of the scene.

    Returns:
        How many keys there are now, and whether any were changed: then Blender animates the evaluated copy once more.
    """
    after: Counts = {}
    mends, differs = [], ~is_same(shown, fk)
    for curve, row, field, index in _curves(ob, bones):
        name = curve.data_path, curve.array_index
        after[name] = len(curve.keyframe_points)
        column = FIELDS[field].start + index
        if differs[row, column] and after[name] - counts.get(name, 0) in {0, 1}:
            values = float(shown[row, column]), float(fk[row, column])
            mends.append(_Mend(ob.session_uid, ob.pose.bones[bones[row]].name, field, index, frame, *values))
    done = [mend for mend in mends if _apply(ob, mend)]
    _mends.extend(done)
    del _mends[:-REMEMBERED]
    return after, bool(done)


def put_again() -> None:
    """Put the FK pose into the same keys again: undo or redo brought them back as Blender had inserted them."""
    frame = bpy.context.scene.frame_current_final
    mends = [mend for mend in reversed(_mends) if mend.frame == frame]
    armatures = {mend.armature for mend in mends}
    for ob in bpy.data.objects if mends else ():
        if ob.session_uid not in armatures or ob.pose is None or not object_of(ob).live:
            continue
        solved = {ob.pose.bones[bone].name for bone in fk_store.stored_bones(ob)}
        for mend in mends:
            if mend.armature == ob.session_uid and mend.bone in solved:
                _apply(ob, mend)


def forget(ob: Object | None = None) -> None:
    """Forget what was put right in the keys of an armature, whose solution is keyed on purpose; None: of all."""
    _mends[:] = [] if ob is None else [mend for mend in _mends if mend.armature != ob.session_uid]


def _apply(ob: Object, mend: _Mend) -> bool:
    """Put FK into the key of a mend, if there is one with the solution."""
    bone = ob.pose.bones[mend.bone]
    curve = compat.find_curve(ob, path_of(bone, mend.field), mend.index)
    if curve is None:
        return False
    keys = read_keys(curve, ("co",))["co"]
    (found,) = np.nonzero((np.abs(keys[:, 0] - time_of(ob, mend.frame)) < SAME_FRAME) & is_same(keys[:, 1], mend.shown))
    if not len(found):
        return False
    kind = curve.keyframe_points[int(found[0])].type
    insert_key(bone, mend.field, mend.index, mend.fk, mend.frame, options={"INSERTKEY_REPLACE"}, keytype=kind)
    return True


def _curves(ob: Object, bones: Ints) -> Iterator[tuple[FCurve, int, str, int]]:
    """Yield the F-curves of the channels of bones, each with its row, field and index."""
    rows: dict[str, int] = {}
    for curve in compat.curves_of(ob):
        name, field = channel_of(curve.data_path) or ("", "")
        if field:
            rows = rows or {ob.pose.bones[bone].name: row for row, bone in enumerate(bones.tolist())}
            if name in rows and curve.array_index < FIELDS[field].stop - FIELDS[field].start:
                yield curve, rows[name], field, curve.array_index


def time_of(ob: Object, frame: float) -> float:
    """Return the time of a frame in the action of an object, which may be edited within an NLA strip."""
    data = ob.animation_data
    return frame if data is None else data.nla_tweak_strip_time_to_scene(frame, invert=True)
