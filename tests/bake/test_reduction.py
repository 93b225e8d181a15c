"""Reducing keys: no point moves by more than its bound, whatever bones it is attached to."""

from __future__ import annotations

from typing import Any

import numpy as np

from ik_addon.bake.reduction import Part, Reduction
from ik_addon.solve.maths.products import times
from ik_addon.solve.maths.rotations import about_vectors, matrices
from ik_addon.solve.problem import Floats

FRAMES = 120


def turned(vectors: Floats, origins: Floats) -> Floats:
    """Return matrices (F, 4, 4) that rotate by rotation vectors (F, 3) about points (F, 3)."""
    turns = matrices(about_vectors(vectors.T)).transpose(2, 0, 1)
    out = np.tile(np.eye(4), (len(vectors), 1, 1))
    out[:, :3, :3] = turns
    out[:, :3, 3] = origins - np.einsum("fij,fj->fi", turns, origins)
    return out


class Arm:
    """Bones of length 1 in a row, whose channels are rotation vectors recorded with some noise."""

    def __init__(self, rng: Any, bones: int, noise: float, still: tuple[int, int] | None = None) -> None:
        """The channel of the bone `still` does not change."""
        time = np.arange(FRAMES)[:, None]
        self.channels = []
        for _ in range(bones):
            rate, phase, size = rng.uniform(0.01, 0.08, 3), rng.uniform(0.0, 6.0, 3), rng.uniform(0.1, 0.6, 3)
            self.channels.append(size * np.sin(rate * time + phase) + rng.normal(scale=noise, size=(FRAMES, 3)))
        if still is not None:
            self.channels[still[0]][:, still[1]] = 0.25
        rest = [np.tile([0.0, float(i), 0.0], (FRAMES, 1)) for i in range(bones + 1)]
        self.origins = rest[:-1]
        whole = np.tile(np.eye(4), (FRAMES, 1, 1))
        self.poses = []
        for channels, origin in zip(self.channels, rest[:-1], strict=True):
            whole = times(whole, turned(channels, origin))
            self.poses.append(whole)
        ends = [pose[:, :3, :3] @ (0.0, i + 1.0, 0.0) + pose[:, :3, 3] for i, pose in enumerate(self.poses)]
        self.points = np.stack(ends, axis=1)

    def parts(self) -> list[Part]:
        found = []
        for i, channels in enumerate(self.channels):
            before = self.poses[i - 1] if i else np.tile(np.eye(4), (FRAMES, 1, 1))
            own: Floats = np.linalg.inv(self.poses[i]).astype(np.float64)

            def displacement(values: Floats, before: Floats = before, own: Floats = own, i: int = i) -> Floats:
                return times(times(before, turned(values, self.origins[i])), own)

            found.append(Part(i - 1, channels, displacement))
        return found

    def played(self, reduction: Reduction) -> Floats:
        """Return the ends (F, bones, 3) of bones that play the curves of a reduction."""
        whole, ends = np.tile(np.eye(4), (FRAMES, 1, 1)), []
        for i, origin in enumerate(self.origins):
            values = np.stack([curve.on_frames() for curve in reduction.curves(i)], axis=1)
            whole = times(whole, turned(values, origin))
            ends.append(whole[:, :3, :3] @ (0.0, i + 1.0, 0.0) + whole[:, :3, 3])
        return np.stack(ends, axis=1)


def reduced(arm: Arm, bound: float, world: Floats | None = None) -> Reduction:
    count = len(arm.channels)
    axes = np.tile(np.eye(3) if world is None else world, (FRAMES, 1, 1))
    reduction = Reduction(arm.parts(), arm.points, np.arange(count), axes)
    for steps in (reduction.refine, reduction.thin):
        for _step in steps(np.full(count, bound)):
            pass
    return reduction


def count(reduction: Reduction, bones: int) -> int:
    return sum(len(curve.keys) for bone in range(bones) for curve in reduction.curves(bone))


def test_no_point_moves_by_more_than_its_bound() -> None:
    for seed, (bound, noise) in enumerate(((0.03, 0.0), (0.003, 0.0), (0.03, 1e-3), (0.003, 1e-3))):
        arm = Arm(np.random.default_rng(seed), 4, noise)
        reduction = reduced(arm, bound)
        away = np.linalg.norm(arm.played(reduction) - arm.points, axis=2)
        assert 0.3 * bound < away.max() <= bound, seed
        assert count(reduction, 4) < 4 * 3 * FRAMES * (0.1 if noise == 0.0 else 0.6), seed


def test_distances_are_measured_in_world_space() -> None:
    arm = Arm(np.random.default_rng(1), 3, 0.0)
    large = reduced(arm, 0.01, 10.0 * np.eye(3))
    assert np.linalg.norm(arm.played(large) - arm.points, axis=2).max() <= 0.001
    assert count(large, 3) > count(reduced(arm, 0.01), 3)


def test_a_constant_channel_keeps_two_keys() -> None:
    arm = Arm(np.random.default_rng(2), 2, 0.0, still=(1, 2))
    curves = reduced(arm, 0.005).curves(1)
    assert curves[2].keys.tolist() == [0, FRAMES - 1]
    assert len(curves[0].keys) > 2


def test_unneeded_keys_are_removed_again() -> None:
    arm = Arm(np.random.default_rng(3), 4, 1e-3)
    reduction = Reduction(arm.parts(), arm.points, np.arange(4), np.tile(np.eye(3), (FRAMES, 1, 1)))
    bounds = np.full(4, 0.01)
    for _step in reduction.refine(bounds):
        pass
    before = count(reduction, 4)
    for _step in reduction.thin(bounds):
        pass
    assert count(reduction, 4) < 0.98 * before
    assert np.linalg.norm(arm.played(reduction) - arm.points, axis=2).max() <= 0.01


def test_a_bound_below_rounding_terminates() -> None:
    reduction = reduced(Arm(np.random.default_rng(4), 1, 1e-3), 1e-17)
    assert all(len(curve.keys) == FRAMES for curve in reduction.curves(0))
