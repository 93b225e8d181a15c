"""Feet on a ground: they rest on it, follow it, and never go through it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.conftest import Addon
from tests.feet import clips
from tests.feet.test_standing import BLEND, foot_of, turns

MARGIN = 1e-5
SUDDEN = 0.02
Height = Callable[[clips.Array], clips.Array]
"""Height of the ground at points (n, 3)."""


class Field:
    """A ground given by a height field."""

    def __init__(self, height: Height) -> None:
        self.height = height

    def look(self, _frames: Any, points: clips.Array, *, only_inside: bool = False) -> tuple[clips.Array, clips.Array]:
        step = 1e-4
        rises = [
            (self.height(points + step * axis) - self.height(points - step * axis)) / (2.0 * step) for axis in np.eye(3)
        ]
        normals = np.stack([-rises[0], -rises[1], np.ones(len(points))], axis=1)
        return self.height(points) - points[:, 2], normals / np.linalg.norm(normals, axis=1)[:, None]


def ground_of(addon: Addon, height: Height, frames: int, slope: float = 0.7, pull: float = 0.5) -> Any:
    up = np.broadcast_to([0.0, 0.0, 1.0], (frames, 3))
    return addon.module("feet.standing").Ground(Field(height), up, slope, pull, MARGIN, SUDDEN)


def planted_on(addon: Addon, foot: Any, height: Height, **options: float) -> Any:
    ground = ground_of(addon, height, len(foot.places), **options)
    return addon.module("feet.standing").plant(foot, BLEND, ground)


def depths(foot: Any, height: Height) -> clips.Array:
    """Return how far (2, F) heel and toe are below the ground."""
    return np.stack([height(foot.points(pivot)) - foot.points(pivot)[:, 2] for pivot in (0, 1)])


def tilted(pitch: float, roll: float = 0.0) -> Height:
    return lambda points: pitch * points[:, 1] + roll * points[:, 0]


def standing(addon: Addon, count: int = 60, contacts: slice = slice(0, 60)) -> Any:
    """Return a foot that stands still, and touches on some frames."""
    clip = clips.Foot(np.repeat(np.eye(4)[None], count, axis=0), {"heel": [], "toe": []})
    foot = foot_of(addon, clip)
    foot.places[:, 2] = 0.08
    foot.contacts[:, contacts] = True
    return foot


def test_feet_follow_slopes_up_to_a_maximum_angle(addon: Addon) -> None:
    foot = standing(addon)
    for slope, limit in ((0.2, 0.7), (0.2, 0.1), (1.0, 0.5)):
        height = tilted(slope)
        planted = planted_on(addon, foot, height, slope=limit)
        forward = turns(addon, planted)[30] @ [0.0, 1.0, 0.0]
        assert np.arcsin(forward[2]) == pytest.approx(min(np.arctan(slope), limit), abs=1e-3)
        assert depths(planted, height).max() <= 0.0
        assert depths(planted, height).max(axis=0)[30] > -2.0 * MARGIN, "it stands on what is higher"


def test_a_foot_over_an_edge_stays_level(addon: Addon) -> None:
    def height(points: clips.Array) -> clips.Array:
        return np.where(points[:, 1] > 0.05, 0.1, 0.0)

    planted = planted_on(addon, standing(addon), height, slope=1.2)
    assert np.abs(turns(addon, planted)[30] - np.eye(3)).max() < 1e-6
    assert planted.points(1)[30, 2] == pytest.approx(0.1, abs=1e-4)


def test_a_foot_in_the_air_rises_smoothly_over_obstacles(addon: Addon) -> None:
    def height(points: clips.Array) -> clips.Array:
        return np.where(np.abs(points[:, 1] - 0.5) < 0.05, 0.1, 0.0)

    clip = clips.Foot(np.repeat(np.eye(4)[None], 60, axis=0), {"heel": [], "toe": []})
    foot = foot_of(addon, clip)
    foot.places[:, 1], foot.places[:, 2] = np.linspace(0.0, 1.0, 60), 0.1
    planted = planted_on(addon, foot, height)
    assert depths(planted, height).max() <= 0.0
    moved = np.linalg.norm(planted.places - foot.places, axis=1)
    assert moved[[0, -1]].max() == 0.0
    assert np.diff(moved).max() < 0.5 * moved.max(), "it rises before it is there"


def stepping(addon: Addon, lands: bool = False) -> Any:
    """Return a foot that leaves the ground heel up and moves on until it stands flat, or the same in reverse."""
    clip = clips.Foot(np.repeat(np.eye(4)[None], 60, axis=0), {"heel": [(1, 11), (45, 60)], "toe": [(1, 20), (45, 60)]})
    for frame, pose in enumerate(clip.frames, 1):
        down = np.interp(frame, [11, 20, 26, 45], [0.0, 0.9, 1.1, 0.0])
        pose[1:3, 1:3] = [[np.cos(down), np.sin(down)], [-np.sin(down), np.cos(down)]]
        share = np.interp(frame, [20, 45], [0.0, 1.0])
        toe = np.array([0.0, 0.14 + 0.7 * share * share * (3.0 - 2.0 * share), 0.16 * share * (1.0 - share)])
        pose[:3, 3] = toe - pose[:3, :3] @ clips.TOE
    if lands:
        clip.frames = clip.frames[::-1].copy()
        clip.marks = {part: [(61 - last, 61 - first) for first, last in own[::-1]] for part, own in clip.marks.items()}
    return foot_of(addon, clip)


@pytest.mark.parametrize("lands", [False, True])
@pytest.mark.parametrize("edge", [0.141, 0.145, 0.17])
def test_a_foot_in_front_of_an_edge_rises_before_it_moves_forward(addon: Addon, edge: float, lands: bool) -> None:
    """It neither turns abruptly nor moves faster than it needs to."""

    def height(points: clips.Array) -> clips.Array:
        return np.where(points[:, 1] > edge, 0.08, 0.0)

    foot = stepping(addon, lands)
    planted = addon.module("feet.standing").plant(foot, 2 * BLEND, ground_of(addon, height, len(foot.places)))
    assert depths(planted, height).max() <= 0.0
    assert planted.slide() < 1e-9
    before, after = (np.diff(turns(addon, own), axis=0) for own in (foot, planted))
    faster = np.linalg.norm(after, axis=(1, 2)) - np.linalg.norm(before, axis=(1, 2))
    assert faster.max() < 0.05
    moved = planted.places - foot.places
    assert np.linalg.norm(np.diff(moved, axis=0), axis=1).max() < 0.033


def test_a_foot_in_the_air_returns_to_its_own_orientation(addon: Addon) -> None:
    foot = standing(addon, contacts=slice(0, 20))
    foot.places[20:, 2] += 0.2
    planted = planted_on(addon, foot, tilted(0.3))
    assert np.abs(turns(addon, planted)[45] - np.eye(3)).max() < 1e-9
    steps = np.abs(np.diff(turns(addon, planted), axis=0)).max(axis=(1, 2))
    assert steps.max() < 0.1, "without a jump"
