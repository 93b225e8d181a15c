"""Rotations written frame by frame so that the pose between two frames is between their poses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..solve.problem import Floats
from .channels import FIELDS, Row, quaternions_of, rotation_field
from .transforms import rotations


def continuous(rows: Row, modes: Sequence[str]) -> Row:
    """Rows (F, k, 17) with the same rotations, each written nearest to that of the frame before."""
    out = rows.copy()
    for mode in set(modes):
        own = [k for k, other in enumerate(modes) if other == mode]
        columns = FIELDS[rotation_field(mode)]
        out[:, own, columns] = nearest(out[:, own, columns], mode)
    return out


def nearest(values: Row, mode: str) -> Row:
    """Rotation channels (F, ..., 3 or 4) of one mode, each written nearest to that of the frame before.

    A quaternion has two signs; a rotation has two triples of Euler angles and two axes; an angle may have any number
    of full turns added.
    """
    if mode == "QUATERNION":
        return _nearest_quaternions(values)
    out = values.astype(np.float64)
    for t in range(1, len(out)):
        if mode == "AXIS_ANGLE":
            out[t] = _nearest_axis_angle(out[t], out[t - 1])
        else:
            out[t] = _nearest_euler(out[t], out[t - 1], middle="XYZ".index(mode[1]))
    return out.astype(values.dtype)


def turns(values: Row, mode: str) -> Floats:
    """Angles (F-1, k), in radians, between the rotations of successive frames, from channels (F, k, 3 or 4)."""
    found = np.empty((max(len(values) - 1, 0), values.shape[1]))
    for k in range(values.shape[1]):
        found[:, k] = _angles(quaternions_of(rotations(values[:, k], mode)))
    return found


def _angles(q: Floats) -> Floats:
    """Angles (F-1,) between successive unit quaternions (F, 4)."""
    gap = np.linalg.norm(q[1:] - q[:-1], axis=1)
    other = np.linalg.norm(q[1:] + q[:-1], axis=1)
    return 4.0 * np.arcsin(np.minimum(0.5 * np.minimum(gap, other), 1.0))


def _nearest_quaternions(values: Row) -> Row:
    opposite = np.einsum("f...i,f...i->f...", values[1:], values[:-1]) < 0.0
    if not opposite.any():
        return values
    flipped = np.concatenate([np.zeros_like(opposite[:1]), np.logical_xor.accumulate(opposite, axis=0)])
    return np.where(flipped[..., None], -values, values)


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


def _unwound(angles: Any, near: Any) -> Any:
    """Angles with full turns added that bring them nearest to `near`."""
    return angles + 2.0 * math.pi * np.round((near - angles) / (2.0 * math.pi))
