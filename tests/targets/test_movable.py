"""Channels that move targets to given matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests import rigs
from tests.conftest import Addon


def test_scaled_and_mirrored_matrices_give_the_rotation_blender_shows(addon: Addon) -> None:
    target: Any = rigs.empty("Target")
    target.rotation_mode = "QUATERNION"
    rng = np.random.default_rng(3)
    basis = np.repeat(np.eye(4)[None], 40, axis=0)
    for own in basis:
        size = rng.uniform(0.2, 3.0, 3) * rng.choice([-1.0, 1.0], 3)
        own[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0] * size
        own[:3, 3] = rng.normal(size=3)
    movable = addon.module("core.goals")
    rows = movable.Goal(target, "", turns=True).rows(basis)
    turned = rows[:, addon.module("core.channels").FIELDS["rotation_quaternion"]]
    expected = []
    for own in basis:
        target.matrix_basis = own.T.tolist()  # Blender takes columns
        expected.append(target.rotation_quaternion[:])
    assert np.abs(np.abs((turned * np.array(expected)).sum(axis=1)) - 1.0).max() < 1e-6
    assert np.abs(rows[:, :3] - basis[:, :3, 3]).max() < 1e-6
