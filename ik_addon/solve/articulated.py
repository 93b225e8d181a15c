"""Bodies of joints with limits: where their bones are for given joint angles, and how they move with them.

Joint angles are (B, n, 3): the two coordinates of the swing and the twist, see `cones`. Points and frames of the bones
come bone by bone, (n, B, ...), because each bone follows from the one before it. Effectors are points on bones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .cones import Cone, nearest_direction, nearest_swing, nearest_twist, swing_twist
from .problem import Bools, Floats, Ints
from .products import applied, times

STEEPEST = 1e-3
"""Near half a turn a swing turns the bone about itself ever faster; from this cosine of the half angle on no more."""
RIM = 1.0 - 1e-7
"""Swings stay this much off half a turn, where there is no telling swing from twist."""


@dataclass(frozen=True)
class Body:
    """B bodies of n bones and E effectors: what of them stays the same whatever the joints do."""

    parents: Ints
    """(n,) the bone that a bone hangs on, before it in order; -1: none."""
    free: Bools
    """(n,) bones whose orientation no other bone has a part in: roots, and those that do not inherit rotation."""
    segments: Ints
    """(E,) the bone that an effector belongs to."""
    rest: Floats
    """(B, n, 3, 3) orientation at rest seen from the parent bone, or in space for free bones."""
    heads: Floats
    """(B, n, 3) head seen from the parent bone, or in space for roots."""
    ends: Floats
    """(B, E, 3) effector seen from its bone."""
    cone: Cone
    """Limits of the joints: swings (2, 1, n), twists (1, n)."""
    ease: Floats
    """(n, 3) how readily a joint turns, from 0 to 1: swing about X and Z, twist; 0: locked."""

    def members(self, chosen: Bools | Ints) -> Body:
        """Return the chosen members alone, or each as often as it is named."""
        return replace(self, rest=self.rest[chosen], heads=self.heads[chosen], ends=self.ends[chosen])

    def path(self, effector: int) -> list[int]:
        """Return the bones from the root to the bone of an effector."""
        bones, bone = [], int(self.segments[effector])
        while bone >= 0:
            bones.append(bone)
            bone = int(self.parents[bone])
        return bones[::-1]


class Pose(NamedTuple):
    """Bodies with their joints at certain angles."""

    zeros: Floats
    """(n, B, 3, 3) orientation that each bone has when its joint is at rest."""
    frames: Floats
    """(n, B, 3, 3) orientation of each bone."""
    points: Floats
    """(n + E, B, 3) heads of the bones, then the effectors."""


def pose_of(body: Body, angles: Floats) -> Pose:
    """Return where joint angles (B, n, 3) put the bones."""
    bones, members = len(body.parents), len(angles)
    rest, heads = body.rest.swapaxes(0, 1), body.heads.swapaxes(0, 1)
    frames = times(rest, _turns(angles))
    for i, parent in enumerate(body.parents):
        if not body.free[i]:
            frames[i] = times(frames[parent], frames[i])
    # Of roots, which hang on nothing, what comes of the last bone is not used.
    above = frames[body.parents]
    zeros = np.where(body.free[:, None, None, None], rest, times(above, rest))
    points = np.empty((bones + len(body.segments), members, 3))
    points[:bones] = np.where(body.parents[:, None, None] < 0, heads, applied(above, heads))
    for i, parent in enumerate(body.parents):
        if parent >= 0:
            points[i] += points[parent]
    points[bones:] = points[body.segments] + applied(frames[body.segments], body.ends.swapaxes(0, 1))
    return Pose(zeros, frames, points)


def _turns(angles: Floats) -> Floats:
    """Return the matrices (n, B, 3, 3) of joint angles (B, n, 3): the swing's, times the twist's."""
    # In one piece: some versions of numpy take other sines for numbers that lie apart.
    x, z, twist = np.ascontiguousarray(angles.transpose(2, 1, 0))
    w = np.sqrt(np.maximum(1.0 - x * x - z * z, 0.0))
    cosine, sine = np.cos(twist), np.sin(twist)
    xx, zz, xz, wx, wz = 2.0 * x * x, 2.0 * z * z, 2.0 * x * z, 2.0 * w * x, 2.0 * w * z
    turns = np.empty((*x.shape, 3, 3))
    turns[..., 0, 0] = (1.0 - zz) * cosine - xz * sine
    turns[..., 1, 0] = wz * cosine + wx * sine
    turns[..., 2, 0] = xz * cosine - (1.0 - xx) * sine
    turns[..., 0, 1], turns[..., 1, 1], turns[..., 2, 1] = -wz, 1.0 - xx - zz, wx
    turns[..., 0, 2] = (1.0 - zz) * sine + xz * cosine
    turns[..., 1, 2] = wz * sine - wx * cosine
    turns[..., 2, 2] = xz * sine + (1.0 - xx) * cosine
    return turns


def split(angles: Floats) -> tuple[Floats, Floats]:
    """Return the swings (2, B, n) and the twists (B, n) of joint angles (B, n, 3)."""
    return np.moveaxis(angles[..., :2], -1, 0), angles[..., 2]


def joined(swing: Floats, twist: Floats) -> Floats:
    """Return the joint angles (B, n, 3) of swings (2, B, n) and twists (B, n)."""
    return np.stack([swing[0], swing[1], twist], axis=-1)


def angles_of(body: Body, turns: Floats) -> Floats:
    """Return the joint angles (B, n, 3) within the limits that are nearest to joint rotations (4, B, n)."""
    swing, twist = swing_twist(turns)
    angles = joined(nearest_direction(swing, body.cone), nearest_twist(twist, body.cone))
    return allowed_angles(body, angles)


def allowed_angles(body: Body, angles: Floats) -> Floats:
    """Return the joint angles (B, n, 3) within the limits that are nearest to the given ones, angle by angle."""
    swing, twist = split(angles)
    swing = nearest_swing(swing, body.cone)
    swing = swing * np.minimum(1.0, RIM / np.maximum(np.hypot(swing[0], swing[1]), 1e-30))
    return joined(swing, np.clip(twist, body.cone.twist_low, body.cone.twist_high))


def swing_curvature(x: Any, z: Any, rest: Any, slope: Any) -> tuple[Any, Any, Any]:
    """Return what the change of a swing's axes with it adds to the curvature of a cost, in the units of `axes_of`.

    In its first coordinate, in its second, and between both; of floats or of arrays alike.

    Args:
        x: first coordinate of the swing.
        z: the second.
        rest: the square of the cosine of half its angle, at least `STEEPEST` squared.
        slope: of the cost, along the first coordinate and along the second.
    """
    share = 0.5 * (x * slope[0] + z * slope[1])
    return share * (1.0 + x * x / rest), share * (1.0 + z * z / rest), share * (x * z / rest)


def axes_of(pose: Pose, angles: Floats) -> Floats:
    """Return the axes (n, B, 3, 3), one a row, about which bones turn with their joint angles.

    The unit of a swing's coordinate is taken as half a radian: then a small change turns a bone by as many radians.
    """
    x, z = angles[..., 0].T, angles[..., 1].T
    rest = np.sqrt(np.maximum(1.0 - x * x - z * z, STEEPEST**2))
    local = np.empty((*x.shape, 3, 2))
    local[..., 0, 0], local[..., 1, 0], local[..., 2, 0] = x * x / rest + rest, z, x * z / rest
    local[..., 0, 1], local[..., 1, 1], local[..., 2, 1] = x * z / rest, -x, z * z / rest + rest
    axes = np.empty_like(pose.frames)
    axes[..., :2, :] = np.swapaxes(times(pose.zeros, local), -1, -2)
    axes[..., 2, :] = pose.frames[..., :, 1]
    return axes
