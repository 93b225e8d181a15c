"""Limits of single joints in plain floats are those of many in arrays."""

from __future__ import annotations

import numpy as np

from ik_addon.solve.maths.cones import cone_of, nearest_twist
from ik_addon.solve.maths.numbers import ONE
from ik_addon.solve.maths.numbers import nearest_twist as nearest_turn


def test_the_nearest_twist_is_the_same_alone_and_in_a_batch() -> None:
    random = np.random.default_rng(1)
    ends = random.uniform([-3.5, 0.0], [0.0, 3.5], (300, 2))
    ends[::5, 0], ends[::7, 1], ends[::11] = -np.inf, np.inf, 0.0
    cone = cone_of(np.tile([-np.inf, np.inf], (300, 2)), ends)
    twists = random.uniform(-np.pi, np.pi, 300)
    twists[:4] = cone.twist_low[:4]
    many = nearest_twist(twists, cone)
    rows = zip(twists.tolist(), cone.twist_low.tolist(), cone.twist_high.tolist(), strict=True)
    np.testing.assert_allclose([nearest_turn(ONE, *row) for row in rows], many, atol=1e-12)
    assert 50 < np.count_nonzero(many != twists) < 250
