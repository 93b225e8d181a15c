"""The transform channels of pose bones as rows of numbers, and rotations in each bone's own mode."""

import math
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import permutations

import numpy as np
from bpy.types import Object, PoseBone
from mathutils import Euler, Matrix, Quaternion
from numpy.typing import NDArray

from ..solve.maths.rotations import about_vectors, inverse, matrices, multiply, quaternions, vectors_of
from ..solve.problem import Floats, Ints
from .data_paths import below_bone
from .untyped import Struct

Row = NDArray[np.float32]
"""Channel values of bones, (..., 17), in the precision in which Blender stores them."""

FIELDS: dict[str, slice] = {
    "location": slice(0, 3),
    "rotation_quaternion": slice(3, 7),
    "rotation_euler": slice(7, 10),
    "rotation_axis_angle": slice(10, 14),
    "scale": slice(14, 17),
}
WIDTH = 17
_ZEROS = {name: (0.0,) * (columns.stop - columns.start) for name, columns in FIELDS.items()}
REST: Row = np.array([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1], dtype=np.float32)
"""(17,) the channels of a bone that was never posed."""
MODES = frozenset(("QUATERNION", "AXIS_ANGLE", *map("".join, permutations("XYZ"))))
"""The rotation modes of bones."""
MANY = 16
"""So many times as many bones are read at once sooner than some of them one by one."""
SAME = 1e-5
"""Maximum difference between matrices of the same rotation in different channels."""


@lru_cache(maxsize=2**16)
def channel_of(path: str) -> tuple[str, str] | None:
    """Return the bone and the field that a data path of an armature object leads to; None if it is no channel."""
    name, rest = below_bone(path)
    return (name, rest) if rest in FIELDS else None


def rotation_field(mode: str) -> str:
    """Return the name of the rotation channel that a bone uses in a rotation mode."""
    if mode == "QUATERNION":
        return "rotation_quaternion"
    return "rotation_axis_angle" if mode == "AXIS_ANGLE" else "rotation_euler"


def is_finite(bone: PoseBone) -> bool:
    """Return whether all channels of a bone are finite numbers."""
    return all(math.isfinite(number) for field in FIELDS for number in getattr(bone, field))


def read(ob: Object, bones: Ints, names: Sequence[str] | None = None, fields: Collection[str] = FIELDS) -> Row:
    """Read the channels (len(bones), 17) of the pose bones with these indices.

    Args:
        ob: the armature object.
        bones: indices of pose bones.
        names: the names of all pose bones, if known: Blender finds names sooner.
        fields: the fields to read; the others are 0.
    """
    pose_bones = ob.pose.bones
    count = len(pose_bones if names is None else names)
    if 0 < MANY * len(bones) < count:
        values: list[float] = []
        for own in some(ob, bones, names):
            for name, zeros in _ZEROS.items():
                values += getattr(own, name)[:] if name in fields else zeros
        return np.array(values, dtype=np.float32).reshape(-1, WIDTH)
    rows = np.zeros((len(bones), WIDTH), dtype=np.float32)
    for name in fields:
        rows[:, FIELDS[name]] = _of_all(ob, count, name).take(bones, axis=0)
    return rows


def some(ob: Object, bones: Ints, names: Sequence[str] | None) -> Iterator[PoseBone]:
    """Yield the pose bones with these indices; those that were renamed since the names were read, too."""
    every = ob.pose.bones
    for bone in bones.tolist():
        yield (None if names is None else every.get(names[bone])) or every[bone]


def _of_all(ob: Object, count: int, name: str) -> Row:
    """Read a field (count, 3 or 4) of all pose bones."""
    values = np.empty((count, FIELDS[name].stop - FIELDS[name].start), dtype=np.float32)
    ob.pose.bones.foreach_get(name, values.ravel())
    return values


def write(ob: Object, bones: Ints, rows: Row, current: Row | None = None) -> bool:
    """Set the channels of these bones where they differ; return whether any did.

    Args:
        ob: the armature object.
        bones: (k,) indices of pose bones.
        rows: (k, 17) their new channels.
        current: (k, 17) their current channels, if known.
    """
    different = (read(ob, bones) if current is None else current) != rows
    if not different.any():
        return False
    changed = [name for name, columns in FIELDS.items() if different[:, columns].any()]
    for name in changed:
        put(ob, bones, name, rows)
        if ob.override_library is not None and ob.override_library.is_system_override:
            # Blender silently ignores bulk assignments there.
            for bone, value in zip(bones.tolist(), rows[:, FIELDS[name]].tolist(), strict=True):
                setattr(ob.pose.bones[bone], name, value)
    tag(ob, int(bones[0]), changed[-1])
    return True


def put(ob: Object, bones: Ints, name: str, rows: Row, names: Sequence[str] | None = None) -> None:
    """Set a field of the bones with these indices from rows (len(bones), 17), without notifying Blender.

    `names` as in `read`.
    """
    count = len(ob.pose.bones if names is None else names)
    if MANY * len(bones) < count:
        own: Struct
        for own, row in zip(some(ob, bones, names), rows, strict=True):
            own.path_resolve(name, False).foreach_set(row[FIELDS[name]])
    else:
        values = _of_all(ob, count, name)
        values[bones] = rows[:, FIELDS[name]]
        ob.pose.bones.foreach_set(name, values.ravel())


def tag(ob: Object, bone: int, name: str = "location") -> None:
    """Notify Blender of an edited channel, as an edit in the interface would; bulk assignments do not."""
    pose_bone = ob.pose.bones[bone]
    setattr(pose_bone, name, getattr(pose_bone, name)[:])


def read_pose(ob: Object, bones: Ints, names: Sequence[str] | None = None) -> Floats:
    """Read the pose matrices (len(bones), 4, 4) of these bones in armature space; `names` as in `read`."""
    pose_bones = ob.pose.bones
    if MANY * len(bones) < len(pose_bones if names is None else names):
        matrices = [bone.matrix.copy() for bone in some(ob, bones, names)]
        rows = [matrix[row][:] for matrix in matrices for row in range(4)]
        return np.array(rows, dtype=np.float64).reshape(-1, 4, 4)
    values = np.empty(len(pose_bones) * 16, dtype=np.float32)
    pose_bones.foreach_get("matrix", values)
    return values.reshape(-1, 4, 4)[bones].transpose(0, 2, 1).astype(np.float64)  # Blender stores columns


def basis_rotation(basis: Floats, rows: Row) -> Floats:
    """Rotation part (..., 3, 3) of basis matrices (..., 4, 4) that come from channels (..., 17).

    Signs are taken from the scale channel, so that a mirrored bone keeps its rotation. An axis that is scaled to zero
    has no direction left in the matrix and is derived from the other axes.
    """
    scale = rows[..., FIELDS["scale"]].astype(np.float64)
    flat = (scale == 0.0).any(axis=-1)
    rotation = np.asarray(basis[..., :3, :3] / np.where(scale == 0.0, 1.0, scale)[..., None, :])
    with np.errstate(invalid="ignore"):  # zero lengths and non-finite values are left to the caller
        rotation = rotation / np.where(flat[..., None], 1.0, np.linalg.norm(rotation, axis=-2))[..., None, :]
    if flat.any():
        u, _s, vt = np.linalg.svd(rotation[flat])
        u[..., 2] *= np.linalg.det(u @ vt)[..., None]
        rotation[flat] = u @ vt
    return rotation


def with_rotation(rows: Row, rotations: Floats, modes: NDArray[np.str_]) -> Row:
    """Set the rotation channel of each bone's mode (...) in rows (..., 17) to rotations (..., 3, 3).

    Each row is set on its own: signs and full turns are chosen nearest to its previous values.
    """
    out = rows.copy()
    found = set(modes.ravel().tolist())
    for mode in found:
        own = np.s_[...] if len(found) == 1 else modes == mode
        out[own, FIELDS[rotation_field(mode)]] = _channel_of(rotations[own], rows[own], mode)
    return out


def _channel_of(rotations: Floats, old: Row, mode: str) -> Floats | Row:
    """Rotation channel (..., 3 or 4), in one mode, for rotations (..., 3, 3): nearest to that of old rows (..., 17)."""
    old = old[..., FIELDS[rotation_field(mode)]]
    if mode not in {"QUATERNION", "AXIS_ANGLE"}:
        pairs = zip(rotations.reshape(-1, 3, 3).tolist(), old.reshape(-1, 3).tolist(), strict=True)
        return np.array([Matrix(m).to_euler(mode, Euler(o, mode))[:] for m, o in pairs]).reshape(old.shape)
    q = quaternions(rotations.T.swapaxes(0, 1)).T
    if mode == "AXIS_ANGLE":
        both = zip(np.where(q[..., :1] < 0.0, -q, q).reshape(-1, 4), old.reshape(-1, 4), strict=True)
        return np.array([_axis_angle(*pair) for pair in both]).reshape(old.shape)
    near = (q * old).sum(axis=-1, keepdims=True)
    away = near < 0.0
    if not near.all():  # if both signs are equally near, the first number decides
        away |= (near == 0.0) & (q[..., :1] < 0.0)
    return np.where(away, -q, q) if away.any() else q


def _axis_angle(quaternion: Floats, old: Row) -> list[float]:
    axis, angle = Quaternion(quaternion.tolist()).to_axis_angle()
    if axis.dot(old[1:].tolist()) < 0.0:
        axis, angle = -axis, -angle
    turn = 2.0 * math.pi
    return [angle + turn * round((float(old[0]) - angle) / turn), *axis[:]]


def slerp(start: Floats, end: Floats, share: Floats) -> Floats:
    """Interpolate between rotations (..., 3, 3) on the shorter path, by a factor (...) from 0 to 1."""
    a, b = (quaternions(np.moveaxis(own, (-2, -1), (0, 1))) for own in (start, end))
    turns = about_vectors(share * vectors_of(multiply(b, inverse(a))))
    return np.ascontiguousarray(np.moveaxis(matrices(multiply(turns, a)), (0, 1), (-2, -1)))


def matrix_of(row: Row, mode: str) -> Floats:
    """Rotation matrix (3, 3) of a row (17,) of a bone in a rotation mode."""
    return np.array(turned(row[FIELDS[rotation_field(mode)]].tolist(), mode), dtype=np.float64)


def turned(values: Sequence[float], mode: str) -> Matrix:
    """Rotation matrix of a rotation channel (3 or 4 values) in a rotation mode, rounded as in Blender."""
    if mode == "QUATERNION":
        return Quaternion(values).normalized().to_matrix()
    if mode == "AXIS_ANGLE":
        return Quaternion(values[1:], values[0]).to_matrix()
    return Euler(values, mode).to_matrix()


def convert_rotation(row: Row, old_mode: str, new_mode: str) -> Row:
    """Return a row (17,) as Blender leaves it when a bone's rotation mode is changed.

    The channel of the new mode gets the same rotation. Between orders of Euler angles Blender keeps the angles, which
    then make a different rotation (`BKE_rotMode_change_values`).
    """
    if rotation_field(old_mode) == rotation_field(new_mode):
        return row.copy()
    return with_rotation(row[None], matrix_of(row, old_mode)[None], np.array([new_mode]))[0]


def as_converted(row: Row, old_mode: str, current: Row, mode: str) -> Row:
    """Return a row (17,) with its rotation as Blender converted it when the rotation mode was changed.

    The row stays as it is if the mode is the same, or if the current rotation is a different one.
    """
    if old_mode == mode or not np.allclose(matrix_of(row, old_mode), matrix_of(current, mode), atol=SAME):
        return row
    converted = row.copy()
    converted[FIELDS[rotation_field(mode)]] = current[FIELDS[rotation_field(mode)]]
    if np.allclose(matrix_of(row, old_mode), matrix_of(current, old_mode), atol=SAME):
        converted[FIELDS[rotation_field(old_mode)]] = current[FIELDS[rotation_field(old_mode)]]  # Blender normalized it
    return converted
