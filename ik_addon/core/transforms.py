"""Matrices from transform channels, computed as in Blender, for many bones and frames at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..solve.maths.rotations import multiply
from ..solve.problem import Bools, Floats
from .channels import FIELDS, Row, rotation_field, rotations_of


def rotations(values: Floats | Row, mode: str) -> Floats:
    """Rotation matrices (..., 3, 3) of a rotation channel (..., 3 or 4) in a rotation mode."""
    return rotations_of(quaternions(values, mode))


def quaternions(values: Floats | Row, mode: str) -> Floats:
    """Unit quaternions (..., 4) of a rotation channel (..., 3 or 4) in a rotation mode."""
    values = values.astype(np.float64)
    if mode == "QUATERNION":
        length = np.linalg.norm(values, axis=-1, keepdims=True)
        # For a quaternion of zero length Blender uses half a turn about X.
        return np.where(length > 0.0, values / np.where(length > 0.0, length, 1.0), [0.0, 1.0, 0.0, 0.0])
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
    shape = np.broadcast_shapes(location.shape[:-1], rotation.shape[:-2], scale.shape[:-1])
    out = np.zeros((*shape, 4, 4))
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
    turns = np.empty((*rows.shape[:-1], 3, 3))
    found = set(modes)
    for mode in found:
        own = np.s_[:] if len(found) == 1 else [k for k, other in enumerate(modes) if other == mode]
        turns[..., own, :, :] = rotations(rows[..., own, FIELDS[rotation_field(mode)]], mode)
    values = rows.astype(np.float64)
    out = matrices(values[..., FIELDS["location"]], turns, values[..., FIELDS["scale"]])
    out[..., connected, :3, 3] = 0.0
    return out
