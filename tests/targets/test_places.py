"""Places of poles for given poses of a limb."""

from __future__ import annotations

import numpy as np

from tests.conftest import Addon


def test_the_pole_of_a_straight_limb_is_on_its_bend_side_and_never_flips(addon: Addon) -> None:
    bends = np.linspace(0.02, -0.02, 81)  # from bent through straight to hyperextended, with a knee that points to X
    rng = np.random.default_rng(4)
    turn, _r = np.linalg.qr(rng.normal(size=(3, 3)))
    turn *= np.linalg.det(turn)
    hip, (thigh, shin) = rng.normal(size=3), rng.uniform(0.5, 2.0, size=2)
    lower = turn @ np.stack([-np.sin(bends), np.cos(bends), np.zeros(81)])
    knees = np.tile(hip + thigh * turn[:, 1], (81, 1))
    joints = np.stack([np.tile(hip, (81, 1)), knees, knees + shin * lower.T], axis=1)
    limb = addon.module("chains.current_pose").Limb(joints, np.broadcast_to(turn, (81, 2, 3, 3)))
    found = addon.module("targets.places").poles(limb, np.array([1.0, 0.0, 0.0]), np.zeros(81), 1.0)
    assert np.linalg.norm(np.diff(found, axis=0), axis=1).max() < 0.01
    assert ((found - knees) @ turn[:, 0]).min() > 0.9
