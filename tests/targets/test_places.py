"""Places of targets and poles for given poses of a limb."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import Addon

COUNT = 200


def rotations(rng: np.random.Generator, count: int) -> Any:
    """Return random rotation matrices (count, 3, 3)."""
    q, r = np.linalg.qr(rng.normal(size=(count, 3, 3)))
    q *= np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None]
    q[..., 0] *= np.linalg.det(q)[:, None]
    return q


def limbs(addon: Addon, bends: Any, seed: int = 1) -> Any:
    """Return two-bone limbs whose knees bend by angles (F,) towards their X axis, with random orientations."""
    rng = np.random.default_rng(seed)
    count = len(bends)
    turns, lengths = rotations(rng, count), rng.uniform(0.5, 2.0, size=(count, 2))
    lower = np.stack([-np.sin(bends), np.cos(bends), np.zeros(count)], axis=1)
    knee = np.stack([np.zeros(count), lengths[:, 0], np.zeros(count)], axis=1)
    local = np.stack([np.zeros((count, 3)), knee, knee + lengths[:, 1:] * lower], axis=1)
    # The knee is on the +X side of the line if the lower bone points to -X.
    frames = np.empty((count, 2, 3, 3))
    frames[:, 0] = np.eye(3)
    frames[:, 1] = np.stack(
        [np.stack([lower[:, 1], -lower[:, 0], np.zeros(count)], 1), lower, [[0, 0, 1.0]] * count], 2
    )
    joints = np.einsum("fij,fnj->fni", turns, local) + rng.normal(size=(count, 1, 3))
    return addon.module("chains.current_pose").Limb(joints, np.einsum("fij,fnjk->fnik", turns, frames))


@pytest.mark.parametrize("side", [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)])
def test_the_pole_is_where_the_knee_points(addon: Addon, side: Any) -> None:
    places = addon.module("targets.places")
    rng = np.random.default_rng(2)
    own = limbs(addon, rng.uniform(0.05, 2.5, COUNT))
    found = places.poles(own, np.array(side), np.zeros(COUNT), 3.0)
    line = own.line / np.linalg.norm(own.line, axis=1)[:, None]
    across = found - own.joints[:, 0]
    assert (across * line).sum(axis=1) == pytest.approx(0.5 * np.linalg.norm(own.line, axis=1))
    across -= (across * line).sum(axis=1)[:, None] * line
    assert np.linalg.norm(across, axis=1) == pytest.approx(np.full(COUNT, 3.0))
    assert np.allclose(across / 3.0, _knees(own, line), atol=1e-6)
    assert places.distances(own, found) == pytest.approx(np.full(COUNT, 3.0))


def _knees(own: Any, line: Any) -> Any:
    seen = own.joints[:, 1] - own.joints[:, 0]
    seen = seen - (seen * line).sum(axis=1)[:, None] * line
    return seen / np.linalg.norm(seen, axis=1)[:, None]


def test_the_pole_of_a_straight_limb_is_on_its_bend_side_and_never_flips(addon: Addon) -> None:
    places = addon.module("targets.places")
    bends = np.linspace(0.02, -0.02, 81)  # from bent through straight to hyperextended
    own = limbs(addon, np.r_[bends], seed=4)
    one = type(own)(np.repeat(own.joints[:1], 81, axis=0), np.repeat(own.frames[:1], 81, axis=0))
    size = np.linalg.norm(one.joints[:, 2] - one.joints[:, 1], axis=1)[:, None]
    upper = one.frames[:, 0]
    lower = upper[:, :, 1] * np.cos(bends)[:, None] - upper[:, :, 0] * np.sin(bends)[:, None]
    one.joints[:, 2] = one.joints[:, 1] + size * lower
    found = places.poles(one, np.array([1.0, 0.0, 0.0]), np.zeros(81), 1.0)
    steps = np.linalg.norm(np.diff(found, axis=0), axis=1)
    assert steps.max() < 0.01
    assert ((found - one.joints[:, 1]) * upper[:, :, 0]).sum(axis=1).min() > 0.9
