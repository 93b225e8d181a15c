"""Matrices from transform channels, computed as in Blender, and channels that are continuous from frame to frame."""

import math
from collections.abc import Sequence

import numpy as np

from ..solve.maths.rotations import multiply
from ..solve.problem import Bools, Floats, Ints
from .channels import FIELDS, Row, rotation_field


def _entries() -> Floats:
    """Return the entries (16, 9) of a rotation matrix, from the products of any two parts of a unit quaternion."""
    found, eye = np.zeros((4, 4, 3, 3)), np.eye(3)
    found[0, 0] = eye
    for i in range(3):
        found[0, 1 + i] = 2.0 * np.cross(eye[i], eye).T
        found[1 + i, 1 + i] = -eye
        for j in range(3):
            found[1 + i, 1 + j, i, j] += 2.0
    return found.reshape(16, 9)


_ENTRIES = _entries()


def rotations(values: Floats | Row, mode: str) -> Floats:
    """Rotation matrices (..., 3, 3) of a rotation channel (..., 3 or 4) in a rotation mode."""
    q = values.astype(np.float64) if mode == "QUATERNION" else quaternions(values, mode)
    squares = (q * q).sum(axis=-1, keepdims=True)
    if not squares.all():  # Blender takes a quaternion of zero length for half a turn about X
        q, squares = np.where(squares > 0.0, q, [0.0, 1.0, 0.0, 0.0]), np.where(squares > 0.0, squares, 1.0)
    products = q[..., :, None] * (q / squares)[..., None, :]
    return np.asarray((products.reshape(*q.shape[:-1], 16) @ _ENTRIES).reshape(*q.shape[:-1], 3, 3))


def quaternions(values: Floats | Row, mode: str) -> Floats:
    """Unit quaternions (..., 4) of a rotation channel (..., 3 or 4) in another rotation mode than quaternions."""
    values = values.astype(np.float64)
    half = 0.5 * values
    if mode == "AXIS_ANGLE":
        length = np.linalg.norm(values[..., 1:], axis=-1, keepdims=True)
        axis = values[..., 1:] / np.where(length > 0.0, length, 1.0)
        sine = np.where(length > 0.0, np.sin(half[..., :1]), 0.0)
        return np.concatenate([np.where(length > 0.0, np.cos(half[..., :1]), 1.0), sine * axis], axis=-1)
    cosine, sine = np.cos(half), np.sin(half)
    found: Floats | None = None
    for letter in mode:
        k = "XYZ".index(letter)
        turn = np.zeros((4, *values.shape[:-1]))
        turn[0], turn[1 + k] = cosine[..., k], sine[..., k]
        found = turn if found is None else multiply(turn, found)
    return np.moveaxis(np.asarray(found), 0, -1)


def matrices(location: Floats, rotation: Floats, scale: Floats) -> Floats:
    """Affine matrices (..., 4, 4) from locations (..., 3), rotations (..., 3, 3) and scales (..., 3)."""
    out = np.zeros((*np.broadcast_shapes(location.shape[:-1], rotation.shape[:-2], scale.shape[:-1]), 4, 4))
    out[..., :3, :3] = rotation * scale[..., None, :]
    out[..., :3, 3] = location
    out[..., 3, 3] = 1.0
    return out


def basis(rows: Row, modes: Sequence[str], connected: Bools) -> Floats:
    """Basis matrices (..., k, 4, 4) of the channels (..., k, 17) of k bones.

    Args:
        rows: the channels.
        modes: (k,) rotation modes.
        connected: (k,) whether a bone is connected, so that Blender ignores its location.
    """
    values, found = rows.astype(np.float64), set(modes)
    out = np.zeros((*rows.shape[:-1], 4, 4))
    for mode in found:
        own = np.s_[:] if len(found) == 1 else [k for k, other in enumerate(modes) if other == mode]
        out[..., own, :3, :3] = rotations(values[..., own, FIELDS[rotation_field(mode)]], mode)
    out[..., :3, :3] *= values[..., None, FIELDS["scale"]]
    out[..., :3, 3], out[..., 3, 3] = values[..., FIELDS["location"]], 1.0
    out[..., connected, :3, 3] = 0.0
    return out


# ---- from frame to frame, so that interpolation between frames stays between their poses


def continuous(rows: Row, modes: Sequence[str]) -> Row:
    """Rewrite rows (F, k, 17) with the same rotations, each nearest to the frame before."""
    out = rows.copy()
    for mode in set(modes):
        own = [k for k, other in enumerate(modes) if other == mode]
        columns = FIELDS[rotation_field(mode)]
        out[:, own, columns] = nearest(out[:, own, columns], mode)
    return out


def nearest(values: Row, mode: str) -> Row:
    """Rewrite rotation channels (F, ..., 3 or 4) of one mode with the same rotations, each nearest to the frame before.

    A quaternion has two signs, a rotation has two triples of Euler angles and two axes, and any number of full turns
    can be added to an angle.
    """
    if mode == "QUATERNION":
        opposite = np.einsum("f...i,f...i->f...", values[1:], values[:-1]) < 0.0
        flipped = np.concatenate([np.zeros_like(values[:1, ..., 0], dtype=bool), np.logical_xor.accumulate(opposite)])
        return np.where(flipped[..., None], -values, values)
    out = values.astype(np.float64)
    for t in range(1, len(out)):
        if mode == "AXIS_ANGLE":
            out[t] = _nearest_axis_angle(out[t], out[t - 1])
        else:
            out[t] = _nearest_euler(out[t], out[t - 1], middle="XYZ".index(mode[1]))
    return out.astype(values.dtype)


def turns(values: Row, mode: str, steps: Floats) -> tuple[Floats, Ints]:
    """Return the largest angle per frame between the rotations of successive frames.

    Args:
        values: (F, k, 3 or 4) rotation channels of one mode, with F at least 2.
        mode: the rotation mode.
        steps: (F-1,) distance in frames from each one to the next.

    Returns:
        (F-1,) the angles in radians per frame, and for each the bone that turns by it.
    """
    q = values if mode == "QUATERNION" else quaternions(values, mode)
    square = np.einsum("fki,fki->fk", q, q)
    chord = q[1:] - q[:-1]
    gap = np.einsum("fki,fki->fk", chord, chord)
    total = square[1:] + square[:-1]
    gap = np.minimum(gap, 2.0 * total - gap) / np.maximum(total, 1e-30)  # for the nearer of both signs
    angles = 4.0 * np.arcsin(np.sqrt(np.clip(0.5 * gap.max(axis=1), 0.0, 1.0))) / steps
    return angles, gap.argmax(axis=1)


def _nearest_euler(values: Floats, before: Floats, middle: int) -> Floats:
    twins = values + math.pi
    twins[..., middle] = math.pi - values[..., middle]
    own, twins = _unwound(values, before), _unwound(twins, before)
    farther = np.abs(own - before).sum(axis=-1) > np.abs(twins - before).sum(axis=-1)
    return np.where(farther[..., None], twins, own)


def _nearest_axis_angle(values: Floats, before: Floats) -> Floats:
    out = values.copy()
    # Without a rotation there is no axis: any will do.
    none = np.abs(np.sin(0.5 * values[..., 0])) < 1e-7
    out[none, 1:] = before[none, 1:]
    opposite = ~none & ((out[..., 1:] * before[..., 1:]).sum(axis=-1) < 0.0)
    out[opposite] = -values[opposite]
    out[..., 0] = _unwound(out[..., 0], before[..., 0])
    return out


def _unwound(angles: Floats, near: Floats) -> Floats:
    """Add the full turns to angles that bring them nearest to `near`."""
    return angles + 2.0 * math.pi * np.round((near - angles) / (2.0 * math.pi))
