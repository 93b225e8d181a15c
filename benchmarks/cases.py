"""Rigs, joint limits and targets for the benchmarks, as plain arrays: no Blender, no files, the same every time.

The axes of a rig at rest are those of its armature: every bone's rest frame is given. Joint rotations are quaternions
(..., 4) with w first, measured from rest. Targets come from forward kinematics within the limits, so they can be
reached.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from ik_addon.solve import Goal, Limits, Problem
from ik_addon.solve.maths.cones import cone_of, joint_rotation
from ik_addon.solve.maths.rotations import matrices
from ik_addon.solve.problem import Floats, Ints

FREE = (-np.inf, np.inf)
INSIDE = 0.97
"""Share of the way to its limit that a joint may turn when a target is made."""


@dataclass(frozen=True)
class Rig:
    """A skeleton of n bones at rest, with its joint limits."""

    parents: Ints
    """(n,), -1 for none."""
    heads: Floats
    """(n, 3) in the armature's space."""
    frames: Floats
    """(n, 3, 3) in the armature's space; bones point along Y."""
    lengths: Floats
    """(n,)"""
    ranges: Floats
    """(n, 3, 2) minimum and maximum rotation about X, Y and Z in radians."""
    tips: tuple[int, ...] = field(default=(-1,))
    """The bones whose tails are the end effectors."""

    @property
    def bones(self) -> int:
        """Return the number of bones."""
        return len(self.parents)

    def rest(self) -> Floats:
        """Return the rest frames (n, 3, 3) relative to the parents'."""
        frames = self.frames.copy()
        for i, parent in enumerate(self.parents):
            if parent >= 0:
                frames[i] = self.frames[parent].T @ self.frames[i]
        return frames

    def pose(self, turns: Floats) -> tuple[Floats, Floats]:
        """Return the joints (B, n+E, 3) and the frames (B, n, 3, 3) for joint rotations (B, n, 4)."""
        local = matrices(np.moveaxis(turns, -1, 0)).transpose(2, 3, 0, 1)
        rest = self.rest()
        frames = np.empty_like(local)
        heads = np.empty((len(turns), self.bones, 3))
        for i, parent in enumerate(self.parents):
            if parent < 0:
                frames[:, i], heads[:, i] = rest[i] @ local[:, i], self.heads[i]
            else:
                frames[:, i] = frames[:, parent] @ rest[i] @ local[:, i]
                offset = self.frames[parent].T @ (self.heads[i] - self.heads[parent])
                heads[:, i] = heads[:, parent] + frames[:, parent] @ offset
        ends = [heads[:, tip] + frames[:, tip, :, 1] * self.lengths[tip] for tip in self.tips]
        return np.concatenate([heads, np.stack(ends, axis=1)], axis=1), frames

    def problem(self, turns: Floats, targets: Floats, **settings: object) -> Problem:
        """Return the problem of reaching targets (B, E, 3) from the pose of joint rotations (B, n, 4)."""
        joints, frames = self.pose(turns)
        root = np.broadcast_to(np.eye(3), (len(turns), 3, 3))
        limits = Limits(self.rest(), root, self.ranges[:, [0, 2]].reshape(-1, 4), self.ranges[:, 1])
        goals = tuple(Goal(targets[:, e], segment=int(np.arange(self.bones)[tip])) for e, tip in enumerate(self.tips))
        parents = None if len(goals) == 1 else self.parents
        return Problem(
            joints,
            frames,
            goals[0],
            others=goals[1:],
            parents=parents,
            limits=limits,
            **settings,
        )

    def turns_inside(self, rng: Generator, count: int, inside: float = INSIDE) -> Floats:
        """Return random joint rotations (count, n, 4) within the limits, spread evenly over each joint's cone."""
        cone = cone_of(self.ranges[:, [0, 2]].reshape(-1, 4), self.ranges[:, 1])
        angle = rng.uniform(0.0, 2.0 * np.pi, (count, self.bones))
        radius = np.sqrt(rng.uniform(0.0, 1.0, (count, self.bones))) * inside
        twist = rng.uniform(0.0, 1.0, (count, self.bones))
        low, high = np.maximum(cone.twist_low, -np.pi), np.minimum(cone.twist_high, np.pi)
        return self.turns(np.stack([np.cos(angle), np.sin(angle)]) * radius, inside * (low + (high - low) * twist))

    def turns(self, shares: Floats, twist: Floats) -> Floats:
        """Return the joint rotations (B, n, 4) for shares (2, B, n) of the way to the limits, and twists (B, n)."""
        cone = cone_of(self.ranges[:, [0, 2]].reshape(-1, 4), self.ranges[:, 1])
        axes = np.where(shares < 0.0, cone.low[:, None], cone.high[:, None])
        return np.moveaxis(joint_rotation(shares * np.minimum(axes, 1.0), twist), 0, -1)

    def at_rest(self, count: int) -> Floats:
        """Return the joint rotations (count, n, 4) of the rest pose."""
        turns = np.zeros((count, self.bones, 4))
        turns[..., 0] = 1.0
        return turns


def degrees(x: tuple[float, float], y: tuple[float, float], z: tuple[float, float]) -> Floats:
    """Return ranges (3, 2) in radians."""
    return np.radians(np.array([x, y, z], dtype=np.float64))


LOCKED = (0.0, 0.0)
CHAINS: dict[str, Floats] = {
    "limits-30": degrees((-30, 30), LOCKED, (-30, 30)),
    "limits-45": degrees((-45, 45), LOCKED, (-45, 45)),
    "limits-90": degrees((-90, 90), LOCKED, (-90, 90)),
    "limits-asym": degrees((-10, 80), LOCKED, (-20, 40)),
    "limits-tight": degrees((-5, 15), LOCKED, (-5, 15)),
    "hinges": degrees((0, 150), LOCKED, LOCKED),
}


def chain(bones: int, ranges: Floats) -> Rig:
    """Return a straight chain of equal bones, one unit long in all, along Y; ranges (3, 2) or (n, 3, 2)."""
    heads = np.zeros((bones, 3))
    heads[:, 1] = np.arange(bones) / bones
    return Rig(
        np.arange(bones) - 1,
        heads,
        np.tile(np.eye(3), (bones, 1, 1)),
        np.full(bones, 1.0 / bones),
        np.array(np.broadcast_to(ranges, (bones, 3, 2))),
    )


def bow(bones: int, ranges: Floats, bend: float = 0.5) -> Rig:
    """Return a chain of equal bones, in all one unit long, that rises along Y and bends by `bend` radians to +X."""
    side, lengths = np.linspace(0.0, bend, bones), np.full(bones, 1.0 / bones)
    return _upright(np.arange(bones) - 1, side, lengths, ranges, (bones - 1,))


def random_ranges(rng: Generator, bones: int) -> Floats:
    """Return limits (n, 3, 2) that differ at each joint, with some axes locked, and all kinds of twist limits."""
    ranges = np.empty((bones, 3, 2))
    for joint in ranges:
        joint[:, 0] = -np.radians(rng.uniform(0.0, 120.0, 3))
        joint[:, 1] = np.radians(rng.uniform(0.0, 120.0, 3))
        joint[1] *= rng.choice([0.0, 0.25, 1.0])
        for axis in (0, 2):
            if rng.uniform() < 0.15:
                joint[axis] = LOCKED
    return ranges


def tree_y(ranges: Floats) -> Rig:
    """Return a trunk of four bones with two branches of three."""
    parents = np.array([-1, 0, 1, 2, 3, 4, 5, 3, 7, 8])
    side = np.radians([0, 0, 0, 0, 35, 35, 35, -35, -35, -35])
    return _upright(parents, side, np.full(10, 0.1), ranges, (6, 9))


def tree_hand() -> Rig:
    """Return an arm of six joints with five fingers of four: 26 joints, five end effectors, limits like a hand's."""
    parents, side, lengths, ranges, tips = [-1, 0, 1, 2, 3, 4], [0.0] * 6, [0.12] * 6, [], []
    ranges += [degrees((-45, 45), (-30, 30), (-45, 45))] * 6
    for finger in range(5):
        for bone in range(4):
            parents.append(5 if bone == 0 else len(parents) - 1)
            side.append(np.radians(30.0 - 15.0 * finger))
            lengths.append(0.08 if bone == 0 else 0.04)
            ranges.append(degrees((-10, 20), LOCKED, (-20, 20)) if bone < 2 else degrees((-5, 100), LOCKED, LOCKED))
        tips.append(len(parents) - 1)
    return _upright(np.array(parents), np.array(side), np.array(lengths), np.array(ranges), tuple(tips))


def _upright(parents: Ints, side: Floats, lengths: Floats, ranges: Floats, tips: tuple[int, ...]) -> Rig:
    """Return a rig of bones in the XY plane, each turned by an angle about Z and starting at its parent's tail."""
    zero, one = np.zeros_like(side), np.ones_like(side)
    frames = np.stack(
        [
            np.stack([np.cos(side), -np.sin(side), zero], axis=-1),
            np.stack([np.sin(side), np.cos(side), zero], axis=-1),
            np.stack([zero, zero, one], axis=-1),
        ],
        axis=1,
    )
    heads = np.zeros((len(parents), 3))
    for i, parent in enumerate(parents):
        if parent >= 0:
            heads[i] = heads[parent] + frames[parent, :, 1] * lengths[parent]
    return Rig(parents, heads, frames, lengths, np.array(np.broadcast_to(ranges, (len(parents), 3, 2))), tips)


def smooth_turns(rng: Generator, rig: Rig, frames: int, speed: float = 3.0) -> Floats:
    """Return joint rotations (frames, n, 4) of a smooth motion within the limits.

    Args:
        rng: source of the motion.
        rig: a rig with locked twists.
        frames: number of frames.
        speed: degrees per frame that the fastest joint turns.
    """
    rate, phase = rng.uniform(0.3, 1.0, (2, rig.bones, 3)), rng.uniform(0.0, 2.0 * np.pi, (2, rig.bones, 3))
    size = rng.uniform(0.3, 1.0, (2, rig.bones, 3))
    size /= size.sum(axis=-1, keepdims=True)

    def motion(pace: float) -> Floats:
        time = np.arange(frames)[:, None, None, None] * pace
        shares = 1.4 * np.moveaxis((size * np.sin(rate * time + phase)).sum(axis=-1), 1, 0)
        shares *= INSIDE / np.sqrt(1.0 + shares[0] ** 2 + shares[1] ** 2)
        return rig.turns(shares, np.zeros((frames, rig.bones)))

    slow, fast = 1e-4, 2.0
    for _ in range(40):
        pace = np.sqrt(slow * fast)
        slow, fast = (pace, fast) if joint_steps(motion(pace)).max() <= speed else (slow, pace)
    return motion(slow)


def joint_steps(turns: Floats) -> Floats:
    """Return the angles in degrees (F-1, n) by which joint rotations (F, n, 4) change from frame to frame."""
    cosine = np.abs((turns[1:] * turns[:-1]).sum(axis=-1))
    return np.degrees(2.0 * np.arccos(np.minimum(cosine, 1.0)))


def bone_steps(frames: Floats) -> Floats:
    """Return the angles in degrees (F-1, n) by which bone frames (F, n, 3, 3) change from frame to frame."""
    trace = np.einsum("fnij,fnij->fn", frames[1:], frames[:-1])
    return np.degrees(np.arccos(np.clip((trace - 1.0) / 2.0, -1.0, 1.0)))
