"""Brings pins of a body to their places in many poses at once, by the shortest way that limits allow.

A place is an affine matrix (4, 4) without scale: an orientation, and a point.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..maths.cones import joint_rotation, swing_twist
from ..maths.products import applied, back_applied, back_times, lengths_of, times, times_back
from ..maths.rotations import about_vectors, matrices, quaternions, vectors_of
from ..problem import Floats, path_of
from .posing import FARTHEST, HELD, ROUNDS, Poser
from .problem import Body, Pin
from .tree import HELD_BACK, YIELD, Limit

PASSES = 8
"""Maximum number of passes."""
BENDING = 0.15
"""Straight joints begin to bend in full where a pin is off by this much."""


class Holding:
    """A body in poses on F frames, held by p pins."""

    def __init__(
        self, body: Body, pins: Sequence[Pin], size: float, bones: Sequence[int], places: Floats, pinned: Floats
    ) -> None:
        """Prepare the body.

        Args:
            body: the body of n bones, in any pose.
            pins: its pins; all hold whatever it takes.
            size: the unit in which the ways of pins are measured.
            bones: those that follow, parents first; others stay.
            places: (F, n, 4, 4) the places of bones in these poses.
            pinned: (F, p, 4, 4) the places of pins.
        """
        self._pins, self._size, self._bones = pins, size, bones
        self._places, self._pinned, self._parents = places, pinned, np.asarray(body.parents)
        self._carriers = [pin.bone for pin in pins]
        poser = Poser(body, [replace(pin, strength=np.inf) for pin in pins], [])
        tree, (turning, sliding) = poser.tree, poser.units
        self.joints, self._root = tree.bones, body.root
        self._rest, stiffness = np.asarray(body.rest)[self.joints], np.asarray(body.stiffness)[self.joints]
        self._bends = back_applied(body.frames, np.asarray(body.bends))[self.joints]
        self._turned_by = np.zeros((len(pins), 2, len(self.joints)), dtype=bool)
        for row, pin, joint in zip(self._turned_by, pins, tree.carriers.tolist(), strict=True):
            if joint >= 0:
                row[:, list(path_of(tree.parents, joint))] = [[pin.location], [pin.rotation]]
        slides = np.array([[pin.location * sliding * tree.has_root, 0.0] for pin in pins])
        self._slides = (slides[..., None, None] * np.eye(3)).reshape(-1, 3)
        self._scale = turning[:, None] * np.sqrt(1.0 - stiffness) * ~tree.locked[[0, 2, 1]].T
        self._scale[: tree.has_root] = turning[: tree.has_root, None]
        angles = self._angles(np.eye(3))
        self._limits = {
            (f, i): Limit.of(tree.limits[i].locked, tuple(own), *tree.limits[i][3:])
            for i in np.flatnonzero(tree.is_limited).tolist()
            for f, own in enumerate(angles[:, i].tolist())
        }

    def brought(self, goals: Floats) -> Floats:
        """Return the places of bones (F, n, 4, 4) with which pins are where they should be (F, p, 4, 4)."""
        share = np.minimum(1.0, lengths_of(self._gaps(goals)).max(axis=(1, 2), initial=0.0) / BENDING)
        self._turn(self._within(share[:, None, None] * applied(self._frames, self._bends))[0], np.zeros(3))
        for _ in range(PASSES):
            gaps = self._gaps(goals)
            if lengths_of(gaps).max(initial=0.0) < HELD:
                break
            self._pass(gaps)
        return self._places

    @property
    def _frames(self) -> Floats:
        """(F, m, 3, 3) the orientations of joints."""
        return self._places[:, self.joints, :3, :3]

    @property
    def _heads(self) -> Floats:
        """(F, m, 3) the heads of joints."""
        return self._places[:, self.joints][..., :3, 3]

    @property
    def _rests(self) -> Floats:
        """(F, m, 3, 3) the orientations of joints at rest."""
        above = self._parents[self.joints]
        return times(np.where((above < 0)[:, None, None], np.eye(3), self._places[:, above, :3, :3]), self._rest)

    def _gaps(self, goals: Floats) -> Floats:
        return gaps_of(self._pins, self._pinned, goals, self._size) * self._turned_by.any(axis=2, keepdims=True)

    def _angles(self, turned: Floats) -> Floats:
        """Return the angles (F, m, 3) of joints, as those of `Tree`, that are turned by rotations (F, m, 3, 3)."""
        swing, twist = swing_twist(_quaternions(back_times(self._rests, times(turned, self._frames))))
        return np.moveaxis(np.array([*swing, twist]), 0, -1)

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
        self._turn(turned, share * moving * self._size)

    def _step(self, basis: Floats, gaps: Floats) -> tuple[Floats, Floats]:
        """Return rotation vectors (F, m, 3) of joints, and the root's move (F, 3), in sizes of the body.

        Args:
            basis: (F, m, 3, 3) as columns, the rotations of joints that cost one.
            gaps: (F, p, 2, 3) to close.
        """
        axes, count = basis.swapaxes(-1, -2)[:, None], gaps[0].size
        ways = self._pinned[:, :, None, :3, 3] - self._heads[:, None]
        turns = np.cross(axes, ways[..., None, :] / self._size)  # (F, p, m, axis, 3)
        lines = np.stack([turns, np.broadcast_to(axes, turns.shape)], axis=2) * self._turned_by[..., None, None]
        lines = np.moveaxis(lines, -1, 3).reshape(len(gaps), count, -1)
        lines = np.concatenate([lines, np.broadcast_to(self._slides, (len(gaps), count, 3))], axis=2)
        whole = times_back(lines, lines) + YIELD * np.eye(count)
        forces = np.asarray(np.linalg.solve(whole, gaps.reshape(len(gaps), count, 1)), np.float64)
        found = back_times(lines, forces)[..., 0]
        return applied(basis, found[:, :-3].reshape(basis.shape[:3])), self._slides.max(initial=0.0) * found[:, -3:]

    def _within(self, turning: Floats) -> tuple[Floats, Floats]:
        """Return rotations (F, m, 3, 3) by vectors, as far as limits allow, and the angles (F, m, 3) they cut off."""
        turned, beyond = _matrices(about_vectors(np.moveaxis(turning, -1, 0))), np.zeros(turning.shape)
        if self._limits:
            angles = self._angles(turned)
            allowed = angles.copy()
            for place, limit in self._limits.items():
                allowed[place] = limit.allowed(*angles[place].tolist())
            beyond = np.where(np.abs(angles - allowed) > HELD_BACK, angles - allowed, 0.0)
            x, z, twist = np.moveaxis(allowed, -1, 0)
            own = times(self._rests, _matrices(joint_rotation(np.array([x, z]), twist)))
            turned = np.where(lengths_of(beyond)[..., None, None] > 0.0, times_back(own, self._frames), turned)
        return turned, beyond

    def _turn(self, turned: Floats, moving: Floats) -> None:
        """Turn joints about their heads by rotations (F, m, 3, 3), and move the root."""
        whole = np.broadcast_to(np.eye(4), (len(turned), len(self._parents), 4, 4)).copy()
        whole[:, self.joints, :3, :3] = turned
        whole[:, self.joints, :3, 3:] = (self._heads - applied(turned, self._heads))[..., None]
        if self._root is not None:
            whole[:, self._root, :3, 3] += moving
        for bone in self._bones:
            if self._parents[bone] >= 0:
                whole[:, bone] = times(whole[:, self._parents[bone]], whole[:, bone])
        self._places, self._pinned = times(whole, self._places), times(whole[:, self._carriers], self._pinned)


def gaps_of(pins: Sequence[Pin], places: Floats, goals: Floats, size: float) -> Floats:
    """Return what pins at places (F, p, 4, 4) lack (F, p, 2, 3) to be at their goals (F, p, 4, 4).

    These are vectors between points, in the body's size, and rotation vectors between orientations.
    """
    held = np.array([[pin.location, pin.rotation] for pin in pins]).reshape(-1, 2, 1)
    turns = vectors_of(_quaternions(times_back(goals[..., :3, :3], places[..., :3, :3])))
    ways = (goals - places)[..., :3, 3] / size
    return np.asarray(np.stack([ways, np.moveaxis(turns, 0, -1)], axis=2) * held)


def _quaternions(turns: Floats) -> Floats:
    """Return the quaternions (4, ...) of rotations (..., 3, 3)."""
    return quaternions(np.moveaxis(turns, (-2, -1), (0, 1)))


def _matrices(turns: Floats) -> Floats:
    """Return the rotations (..., 3, 3) of quaternions (4, ...)."""
    return np.asarray(np.moveaxis(matrices(turns), (0, 1), (-2, -1)))
