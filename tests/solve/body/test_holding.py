"""Pins are brought back to their places on many frames at once, within limits."""

from dataclasses import replace

import numpy as np
import pytest

from ik_addon.solve import Body, Pin
from ik_addon.solve.body.holding import Holding
from ik_addon.solve.maths.rotations import about_vectors, matrices
from ik_addon.solve.problem import Floats
from tests.solve.body.figures import BONE, broken, figure, local

FRAMES = 12


def poses_of(heads: Floats, frames: Floats) -> Floats:
    found = np.tile(np.eye(4), (*heads.shape[:-1], 1, 1))
    found[..., :3, :3], found[..., :3, 3] = frames, heads
    return found


def body_of(*, limits: bool) -> Body:
    body = figure()
    still = np.zeros((len(body.parents), 3))
    free = np.tile([-np.inf, np.inf], (len(body.parents), 3))
    ranges = {} if limits else {"cones": free[:, :4], "twist": free[:, 4:]}
    return replace(body, stiffness=still, bends=still, **ranges)


@pytest.mark.parametrize("limits", [False, True])
def test_pins_hold_on_all_frames_within_limits(limits: bool) -> None:
    body, random = body_of(limits=limits), np.random.default_rng(4)
    pins = [Pin(BONE["foot.L"]), Pin(BONE["foot.R"]), Pin(BONE["hand.L"], rotation=False)]
    goals = np.repeat(poses_of(body.heads, body.frames)[None], FRAMES, axis=0)
    away = np.zeros((FRAMES, 3)), random.normal(size=(FRAMES, 3)) * 0.06 - (0.0, 0.0, 0.05)
    away[0][:] = random.normal(size=(FRAMES, 3)) * 0.15
    away[0][0], away[1][0] = 0.0, 0.0
    turn = matrices(about_vectors(away[0].T)).transpose(2, 0, 1)[:, None]
    way = np.einsum("fnij,nj->fni", turn, body.heads - body.heads[0]) + away[1][:, None]
    start = poses_of(way + body.heads[0], turn @ body.frames)
    bones = [pin.bone for pin in pins]

    def brought(start: Floats, goals: Floats) -> Floats:
        return Holding(body, pins, 1.0, range(15), start, start[:, bones]).brought(goals[:, bones])

    found = brought(start, goals)
    for pin in pins:
        assert np.abs(found - goals)[:, pin.bone, :3, 3].max() < 1e-5
        assert not pin.rotation or np.abs(found - goals)[:, pin.bone].max() < 1e-5
    np.testing.assert_allclose(found[0], goals[0], atol=1e-6)
    for pose in found:
        assert broken(body, replace(body, heads=pose[:, :3, 3], frames=pose[:, :3, :3])).max() < 1e-6
    seen = [np.linalg.inv(own[:, body.parents[1:]]) @ own[:, 1:] for own in (found, goals)]
    np.testing.assert_allclose(seen[0][..., :3, 3], seen[1][..., :3, 3], atol=1e-9, err_msg="bones are rigid")
    bent = [np.array([local(body.parents, own[:, :3, :3]) for own in each]) for each in (found, start)]
    assert np.abs(bent[0] - bent[1]).mean() < 0.1, "by a short way"
    for f in (3, 7):
        alone = brought(start[f : f + 1], goals[f : f + 1])
        np.testing.assert_allclose(alone[0], found[f], atol=1e-5)
