"""Continuous rotation channels from frame to frame, so that interpolation between frames stays between their poses."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..solve.problem import Floats, Ints
from .channels import FIELDS, Row, rotation_field
from .transforms import quaternions


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
        return _nearest_quaternions(values)
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


def _unwound(angles: Floats, near: Floats) -> Floats:
    """Add the full turns to angles that bring them nearest to `near`."""
    return angles + 2.0 * math.pi * np.round((near - angles) / (2.0 * math.pi))
