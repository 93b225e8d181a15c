"""Chains that only have to bring their end to a place: bodies laid out for many of them at once.

One joint after the other hangs on the one before, and a place has three coordinates. So the bones are gone through
once, and nothing larger than three equations is ever solved. Components come first and members last, so that each
operation runs over contiguous memory, and sums are written out, so that a member gets the bits it would get alone.

Joint angles are (3, n, B): the two coordinates of the swing and the twist, see `cones`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .articulated import RIM, STEEPEST, Body
from .cones import Cone, nearest_swing
from .problem import Bools, Floats, Ints
from .rotations import cross, stacked

CROWD = 0.75
"""Members that have ended are carried along until no more than this share of them is left: to pick the others out takes
as long as a step."""


@dataclass(frozen=True)
class Lines:
    """B chains of n bones with a target each, the root at the origin."""

    rest: Floats
    """(3, 3, n, B) orientation at rest seen from the bone before, of the root bone in space."""
    arms: Floats
    """(3, n, B) from a bone's head to the next one, of the last bone to the chain's end; seen from the bone."""
    target: Floats
    """(3, B)"""
    cone: Cone
    """Limits of the joints: swings (2, n, 1), twists (n, 1)."""
    ease: Floats
    """(3, n, 1) how readily a joint turns, from 0 to 1: swing about X and Z, twist; 0: locked."""

    @classmethod
    def of(cls, body: Body, target: Floats) -> Lines:
        """Lay out bodies that `are_lines`, with targets (B, 3)."""
        low, high, twist_low, twist_high = body.cone
        arms = np.concatenate([body.heads[:, 1:], body.ends], axis=1)
        return cls(
            np.ascontiguousarray(body.rest.transpose(2, 3, 1, 0)),
            np.ascontiguousarray(arms.transpose(2, 1, 0)),
            np.ascontiguousarray(target.T),
            Cone(low[:, 0, :, None], high[:, 0, :, None], twist_low[0][:, None], twist_high[0][:, None]),
            np.ascontiguousarray(body.ease.T)[..., None],
        )

    def members(self, chosen: Bools | Ints) -> Lines:
        """Return the chosen members alone, or each as often as it is named."""
        return replace(self, rest=self.rest[..., chosen], arms=self.arms[..., chosen], target=self.target[..., chosen])


def are_lines(body: Body) -> bool:
    """Return whether bodies are chains whose joints all turn their one effector."""
    bones = len(body.parents)
    return (
        np.array_equal(body.parents, np.arange(bones) - 1)
        and np.array_equal(body.segments, [bones - 1])
        and not body.free[1:].any()
    )


class LinePose(NamedTuple):
    """Chains with their joints at certain angles."""

    zeros: Floats
    """(3, 3, n, B) orientation that each bone has when its joint is at rest."""
    along: Floats
    """(3, n, B) the Y axis of each bone."""
    arms: Floats
    """(3, n, B) from the head of each bone to the chain's end."""
    missing: Floats
    """(3, B) from the chain's end to its target."""

    def members(self, chosen: Bools | Ints) -> LinePose:
        """Return the chosen members alone."""
        return LinePose(*(part[..., chosen] for part in self))


def pose_of(lines: Lines, angles: Floats) -> LinePose:
    """Return where joint angles (3, n, B) put the bones."""
    bones = angles.shape[1]
    turns = _turns(angles)
    local, frames, zeros, part = (np.empty_like(turns) for _ in range(4))
    _multiply(lines.rest, turns, local, part)
    frames[:, :, 0] = local[:, :, 0]
    for i in range(1, bones):
        _multiply(frames[:, :, i - 1], local[:, :, i], frames[:, :, i], part[:, :, i])
    zeros[:, :, 0] = lines.rest[:, :, 0]
    _multiply(frames[:, :, :-1], lines.rest[:, :, 1:], zeros[:, :, 1:], part[:, :, 1:])
    segments = frames * lines.arms
    arms = segments[:, 0] + segments[:, 1]
    arms += segments[:, 2]
    for i in range(bones - 2, -1, -1):
        arms[:, i] += arms[:, i + 1]
    return LinePose(zeros, frames[:, 1], arms, lines.target - arms[:, 0])


def _multiply(a: Floats, b: Floats, out: Floats, part: Floats) -> None:
    """Put the products of matrices (3, 3, ...) into `out`; `part` is overwritten."""
    np.multiply(a[:, 0, None], b[0], out=out)
    np.multiply(a[:, 1, None], b[1], out=part)
    out += part
    np.multiply(a[:, 2, None], b[2], out=part)
    out += part


def _turns(angles: Floats) -> Floats:
    """Return the matrices (3, 3, n, B) of joint angles: the swing's, times the twist's."""
    x, z, twist = angles
    xx, zz = x * x, z * z
    w = 2.0 * np.sqrt(np.maximum(1.0 - xx - zz, 0.0))
    xx *= 2.0
    zz *= 2.0
    xz, wx, wz = 2.0 * x * z, w * x, w * z
    left, right = 1.0 - zz, 1.0 - xx
    # By half the angle: numpy's tangent is ten times as fast as its sine.
    half = np.tan(0.5 * twist)
    square = half * half
    share = 1.0 / (1.0 + square)
    cosine, sine = (1.0 - square) * share, 2.0 * half * share
    turns = np.empty((3, 3, *x.shape))
    turns[0, 0] = left * cosine - xz * sine
    turns[1, 0] = wz * cosine + wx * sine
    turns[2, 0] = xz * cosine - right * sine
    turns[0, 1], turns[1, 1], turns[2, 1] = -wz, right - zz, wx
    turns[0, 2] = left * sine + xz * cosine
    turns[1, 2] = wz * sine - wx * cosine
    turns[2, 2] = xz * sine + right * cosine
    return turns


def axes_of(pose: LinePose, angles: Floats) -> Floats:
    """Return the axes (3, 3, n, B), components first, about which bones turn with their joint angles.

    The unit of a swing's coordinate is half a radian, see `articulated.axes_of`.
    """
    x, z, _ = angles
    xx, zz = x * x, z * z
    rest = np.sqrt(np.maximum(1.0 - xx - zz, STEEPEST**2))
    both = x * z / rest
    zeros = pose.zeros
    axes = np.empty((3, 3, *x.shape))
    axes[:, 0] = zeros[:, 0] * (xx / rest + rest) + zeros[:, 1] * z + zeros[:, 2] * both
    axes[:, 1] = zeros[:, 0] * both - zeros[:, 1] * x + zeros[:, 2] * (zz / rest + rest)
    axes[:, 2] = pose.along
    return axes


def speeds_of(pose: LinePose, axes: Floats) -> Floats:
    """Return how chains' ends move (3, 3, n, B), components first, while bones turn about axes (3, 3, n, B)."""
    return cross(axes, pose.arms[:, None])


def allowed_angles(lines: Lines, angles: Floats) -> Floats:
    """Return the joint angles within the limits that are nearest to the given ones, angle by angle."""
    swing = nearest_swing(angles[:2], lines.cone)
    size = np.sqrt(swing[0] * swing[0] + swing[1] * swing[1])
    swing = swing * np.minimum(1.0, RIM / np.maximum(size, 1e-30))
    return stacked(swing[0], swing[1], np.minimum(np.maximum(angles[2], lines.cone.twist_low), lines.cone.twist_high))
