"""Brings pins of a body back to where they were on many frames at once, by the shortest way that limits allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core.channels import quaternions_of, rotations_of
from ..core.skeleton import inverse, orthonormal
from ..solve import Body, Pin, Poser
from ..solve.body.tree import HELD_BACK as WITHIN
from ..solve.body.tree import Limit, ranges_of
from ..solve.maths.cones import joint_rotation, range_of, swing_twist
from ..solve.maths.products import applied, back_applied, back_times, lengths_of, times, times_back
from ..solve.maths.rotations import about_vectors, vectors_of
from ..solve.problem import Floats, Ints
from .read import Stand

HELD = 1e-6
"""A pin that is off by less than this on a frame, in sizes of the body and in radians, holds there."""
PASSES = 8
"""Maximum number of passes."""
ROUNDS = 3
"""Maximum number of times that a pass chooses which limits hold."""
BENDING = 0.15
"""Straight joints begin to bend in full where a pin is off by this much."""
FARTHEST = 0.45
"""Maximum radians that a joint turns in a pass."""
YIELD = 1e-7
"""How far a pin gives way to a unit force; keeps redundant equations solvable."""


@dataclass(frozen=True)
class Moved:
    """What a drag moved."""

    stand: Stand
    body: Body
    bones: Ints
    """The bones of the body that moved."""
    pins: Sequence[Pin]
    size: float
    solved: frozenset[int]
    """The bones that live chains pose."""

    def points(self, poses: Floats) -> Floats:
        """Return where the points of pins (..., p, 3) are in poses (..., n, 4, 4)."""
        bones, start = [pin.bone for pin in self.pins], self.stand.pose
        at = [start[pin.bone, :3, 3] if pin.point is None else pin.point for pin in self.pins]
        own = applied(inverse(start[bones])[:, :3], np.array([[*point, 1.0] for point in at]).reshape(-1, 4))
        there = poses[..., bones, :, :]
        return applied(there[..., :3, :3], own) + there[..., :3, 3]

    def gaps(self, poses: Floats, others: Floats) -> Floats:
        """Return what pins lack (F, p, 2, 3) in poses (F, n, 4, 4) to be as in others.

        These are vectors to their places, in sizes of the body, and rotation vectors to their orientations.
        """
        bones, held = [pin.bone for pin in self.pins], np.array([[pin.location, pin.rotation] for pin in self.pins])
        frames = (orthonormal(own[:, bones, :3, :3]) for own in (others, poses))
        turns = vectors_of(quaternions_of(times_back(*frames)).T).T
        places = (self.points(others) - self.points(poses)) / self.size
        return np.stack([places, turns], axis=2) * held.reshape(-1, 2, 1)


class Holding:
    """A body in poses on F frames, held by its pins."""

    def __init__(self, moved: Moved, poses: Floats, bones: Sequence[int]) -> None:
        """Prepare the body.

        Args:
            moved: the body, and its pins.
            poses: (F, n, 4, 4) from where the pins are brought back.
            bones: those that follow, parents first; others stay.
        """
        self._moved, self._bones, body = moved, bones, moved.body
        poser = Poser(body, [replace(pin, strength=np.inf) for pin in moved.pins], [])
        tree, (turning, sliding) = poser.tree, poser.units
        self.poses, self.joints, self._parents = poses, tree.bones, np.asarray(body.parents)
        self._rest, stiffness = np.asarray(body.rest)[self.joints], np.asarray(body.stiffness)[self.joints]
        self._bends = back_applied(body.frames, np.asarray(body.bends))[self.joints]
        self._turned_by = np.zeros((len(moved.pins), 2, len(self.joints)), dtype=bool)
        for row, pin, joint in zip(self._turned_by, moved.pins, tree.carriers.tolist(), strict=True):
            if joint >= 0:
                row[:, list(tree.skeleton.path(joint))] = [[pin.location], [pin.rotation]]
        slides = np.array([[pin.location * sliding * tree.has_root, 0.0] for pin in moved.pins])
        self._slides = (slides[..., None, None] * np.eye(3)).reshape(-1, 3)
        self._scale = turning[:, None] * np.sqrt(1.0 - stiffness) * ~tree.locked[[0, 2, 1]].T
        self._scale[: tree.has_root] = turning[: tree.has_root, None]
        every, angles = ranges_of(body)[self.joints].tolist(), self._angles(np.eye(3))
        self._limits = {
            (f, i): Limit.of(tree.limits[i].locked, tuple(own), *range_of(*every[i]))
            for i in np.flatnonzero(tree.is_limited).tolist()
            for f, own in enumerate(angles[:, i].tolist())
        }

    def brought(self, goals: Floats) -> Floats:
        """Return poses (F, n, 4, 4) in which pins are where they are in others (F, n, 4, 4)."""
        share = np.minimum(1.0, lengths_of(self._gaps(goals)).max(axis=(1, 2), initial=0.0) / BENDING)
        self._turn(self._within(share[:, None, None] * applied(self._frames, self._bends))[0], np.zeros(3))
        for _ in range(PASSES):
            gaps = self._gaps(goals)
            if lengths_of(gaps).max(initial=0.0) < HELD:
                break
            self._pass(gaps)
        return self.poses

    def _gaps(self, goals: Floats) -> Floats:
        return self._moved.gaps(self.poses, goals) * self._turned_by.any(axis=2, keepdims=True)

    @property
    def _heads(self) -> Floats:
        """(F, m, 3) the heads of joints."""
        return self.poses[:, self.joints][..., :3, 3]

    @property
    def _frames(self) -> Floats:
        """(F, m, 3, 3) the orientations of joints."""
        return orthonormal(self.poses[:, self.joints, :3, :3])

    @property
    def _rests(self) -> Floats:
        """(F, m, 3, 3) the orientations of joints at rest."""
        above = self._parents[self.joints]
        parents = np.where((above < 0)[:, None, None], np.eye(3), orthonormal(self.poses[:, above, :3, :3]))
        return times(parents, self._rest)

    def _angles(self, turned: Floats) -> Floats:
        """Return the angles (F, m, 3) of joints, as those of `Tree`, that are turned by rotations (F, m, 3, 3)."""
        swing, twist = swing_twist(quaternions_of(back_times(self._rests, times(turned, self._frames))).T)
        return np.array([*swing, twist]).T

    def _pass(self, gaps: Floats) -> None:
        """Take the shortest step that closes gaps (F, p, 2, 3)."""
        rests = self._rests
        basis = rests * self._scale[:, None]
        for _ in range(ROUNDS):
            turning, moving = self._step(basis, gaps)
            largest = np.maximum(np.abs(turning).max(axis=(1, 2)), np.abs(moving).max(axis=1))
            share = np.minimum(1.0, FARTHEST / np.maximum(largest, 1e-200))[:, None]
            turned, beyond = self._within(share[:, None] * turning)
            if not beyond.any():
                break
            # At its limit, a joint turns no farther in that direction.
            out = back_applied(basis, applied(rests, beyond[..., [0, 2, 1]]))
            out[lengths_of(out) < 0.03 * self._scale.max(axis=-1) * lengths_of(beyond)] = 0.0
            out /= np.maximum(lengths_of(out), 1e-200)[..., None]
            basis = basis - applied(basis, out)[..., None] * out[..., None, :]
        self._turn(turned, share * moving * self._moved.size)

    def _step(self, basis: Floats, gaps: Floats) -> tuple[Floats, Floats]:
        """Return rotation vectors (F, m, 3) of joints, and the root's move (F, 3), in sizes of the body.

        Args:
            basis: (F, m, 3, 3) as columns, the rotations of joints that cost one.
            gaps: (F, p, 2, 3) to close.
        """
        axes, count = basis.swapaxes(-1, -2)[:, None], gaps[0].size
        ways = self._moved.points(self.poses)[:, :, None] - self._heads[:, None]
        turns = np.cross(axes, ways[..., None, :] / self._moved.size)  # (F, p, m, axis, 3)
        lines = np.stack([turns, np.broadcast_to(axes, turns.shape)], axis=2) * self._turned_by[..., None, None]
        lines = np.moveaxis(lines, -1, 3).reshape(len(gaps), count, -1)
        lines = np.concatenate([lines, np.broadcast_to(self._slides, (len(gaps), count, 3))], axis=2)
        whole = times_back(lines, lines) + YIELD * np.eye(count)
        forces = np.asarray(np.linalg.solve(whole, gaps.reshape(len(gaps), count, 1)), np.float64)
        found = back_times(lines, forces)[..., 0]
        return applied(basis, found[:, :-3].reshape(basis.shape[:3])), self._slides.max(initial=0.0) * found[:, -3:]

    def _within(self, turning: Floats) -> tuple[Floats, Floats]:
        """Return rotations (F, m, 3, 3) by vectors, as far as limits allow, and the angles (F, m, 3) they cut off."""
        turned, beyond = rotations_of(about_vectors(turning.T).T), np.zeros(turning.shape)
        if self._limits:
            angles = self._angles(turned)
            allowed = angles.copy()
            for place, limit in self._limits.items():
                allowed[place] = limit.allowed(*angles[place].tolist())
            beyond = np.where(np.abs(angles - allowed) > WITHIN, angles - allowed, 0.0)
            own = times(self._rests, rotations_of(joint_rotation(allowed.T[:2], allowed.T[2]).T))
            turned = np.where(lengths_of(beyond)[..., None, None] > 0.0, times_back(own, self._frames), turned)
        return turned, beyond

    def _turn(self, turned: Floats, moving: Floats) -> None:
        """Turn joints about their heads by rotations (F, m, 3, 3), and move the root."""
        whole = np.broadcast_to(np.eye(4), self.poses.shape).copy()
        whole[:, self.joints, :3, :3] = turned
        whole[:, self.joints, :3, 3:] = (self._heads - applied(turned, self._heads))[..., None]
        if self._moved.body.root is not None:
            whole[:, self._moved.body.root, :3, 3] += moving
        for bone in self._bones:
            if self._parents[bone] >= 0:
                whole[:, bone] = times(whole[:, self._parents[bone]], whole[:, bone])
        self.poses = times(whole, self.poses)
