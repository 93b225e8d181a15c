"""End bones: a hand or foot that takes an orientation within its limits."""

from __future__ import annotations

import numpy as np

from ik_addon.solve import Limits
from ik_addon.solve.limb.end_rotation import turned
from ik_addon.solve.maths.cones import cone_of
from ik_addon.solve.maths.products import back_times, times
from ik_addon.solve.maths.rotations import matrices, quaternions
from ik_addon.solve.problem import Floats
from tests.solve.chains import violation

FREE = (-np.inf, np.inf)


def rotations(rng: np.random.Generator, count: int) -> Floats:
    q = rng.normal(size=(4, count))
    return matrices(q / np.linalg.norm(q, axis=0)).transpose(2, 0, 1)


def limits(rng: np.random.Generator, count: int, ranges: list[tuple[float, float]]) -> Limits:
    x, z, y = np.array(ranges)
    return Limits(rotations(rng, 1), rotations(rng, count), np.array([[*x, *z]]), y[None])


def test_without_limits_the_end_bone_takes_the_wanted_orientation() -> None:
    rng = np.random.default_rng(1)
    fk, wanted = rotations(rng, 20), rotations(rng, 20)
    for own in (None, limits(rng, 20, [FREE] * 3)):
        found, at_limit = turned(fk, wanted, own)
        assert np.array_equal(found, wanted)
        assert not at_limit.any()


def test_the_end_bone_stays_within_limits_and_takes_allowed_orientations_exactly() -> None:
    rng = np.random.default_rng(2)
    own = limits(rng, 400, [(-0.4, 1.2), (-0.2, 0.3), (-0.5, 0.9)])
    fk, wanted = rotations(rng, 400), rotations(rng, 400)
    cone = cone_of(own.cones, own.twist)

    def outside(frames: Floats) -> Floats:
        rest = times(own.root, np.broadcast_to(own.rest, (400, 3, 3)))
        return violation(quaternions(back_times(rest, frames).transpose(1, 2, 0)), cone)

    found, at_limit = turned(fk, wanted, own)
    assert outside(wanted).max() > 1.0
    assert outside(found).max() < 1e-9
    again, _ = turned(fk, found, own)
    assert np.abs(again - found).max() < 1e-9, "what the limits allow is taken as it is"
    inside = outside(wanted) == 0.0
    assert np.array_equal(found[inside], wanted[inside])
    assert at_limit[~inside].all()


def test_a_locked_end_bone_keeps_its_fk_rotation() -> None:
    rng = np.random.default_rng(3)
    fk, wanted = rotations(rng, 5), rotations(rng, 5)
    found, at_limit = turned(fk, wanted, limits(rng, 5, [(0.0, 0.0)] * 3))
    assert np.array_equal(found, fk)
    assert not at_limit.any()
