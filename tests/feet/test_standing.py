"""Planted feet hold still where they touch, and nothing else changes more than necessary."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.conftest import Addon
from tests.feet import clips

BLEND = 6


def foot_of(addon: Addon, foot: clips.Foot) -> Any:
    """Return the same foot in the product's form."""
    contacts = np.zeros((2, len(foot.frames)), dtype=bool)
    for pivot, part in enumerate(("heel", "toe")):
        for first, last in foot.marks[part]:
            contacts[pivot, first - 1 : last] = True
    rotations = addon.module("solve.maths.rotations")
    return addon.module("feet.standing").Foot(
        places=foot.frames[:, :3, 3],
        turns=rotations.quaternions(np.moveaxis(foot.frames[:, :3, :3], 0, -1)),
        pivots=np.array([clips.HEEL, clips.TOE]),
        contacts=contacts,
    )


def turns(addon: Addon, foot: Any) -> clips.Array:
    """Return the orientations (F, 3, 3) of a foot."""
    return np.moveaxis(addon.module("solve.maths.rotations").matrices(foot.turns), -1, 0)


@pytest.fixture
def feet(addon: Addon) -> dict[str, tuple[Any, Any]]:
    """Return the feet of all clips, as they are and planted."""
    found = {}
    for name in clips.MADE:
        for side, foot in clips.make(name).feet.items():
            source = foot_of(addon, foot)
            found[f"{name} {side}"] = source, addon.module("feet.standing").plant(source, BLEND)
    return found


def test_contacts_hold_their_place_and_nothing_moves_farther(addon: Addon, feet: dict[str, tuple[Any, Any]]) -> None:
    for name, (source, planted) in feet.items():
        assert source.slide() > 0.005 * clips.LEG, name
        assert planted.slide() < 1e-12, name
        moved = np.linalg.norm(planted.places - source.places, axis=1)
        assert moved.max() < 2.0 * clips.SLIDE, name
        touching = source.contacts.any(axis=0)
        near = np.convolve(touching, np.ones(2 * BLEND + 1), mode="same") > 0
        assert moved[~near].max(initial=0.0) < 1e-12, name
        steps = np.linalg.norm(np.diff(planted.places - source.places, axis=0), axis=1)
        # Less than half of what the ankle of any of these feet moves where it does not lean.
        assert steps.max() < 0.27 * clips.SLIDE, f"{name}: without a jump where a contact begins or ends"
        again = addon.module("feet.standing").plant(planted, BLEND)
        assert np.abs(again.places - planted.places).max() < 1e-12, name


def test_a_tilted_foot_is_eased_to_its_contacts_orientation_and_back(addon: Addon) -> None:
    clip = clips.make("turn", is_recorded=False).feet["Left"]
    wobble = 0.2 * np.sin(np.arange(len(clip.frames)) / 5.0)
    for frame, angle in zip(clip.frames, wobble, strict=True):
        c, s = np.cos(angle), np.sin(angle)
        frame[:3, :3] = frame[:3, :3] @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    source = foot_of(addon, clip)
    planted = addon.module("feet.standing").plant(source, BLEND)
    assert planted.slide() < 1e-12
    frames = turns(addon, planted)
    steps = np.arccos(np.clip((np.einsum("fij,fij->f", frames[1:], frames[:-1]) - 1.0) / 2.0, -1.0, 1.0))
    before = turns(addon, source)
    own = np.arccos(np.clip((np.einsum("fij,fij->f", before[1:], before[:-1]) - 1.0) / 2.0, -1.0, 1.0))
    assert (steps - own).max() < np.radians(8.0), "no jump where a contact begins or ends"


def test_a_foot_that_turns_while_it_stands_flat_points_to_the_middle_of_that(addon: Addon) -> None:
    clip = clips.make("turn", is_recorded=False).feet["Left"]
    spans = addon.module("feet.filling").runs(foot_of(addon, clip).contacts.all(axis=0))
    wanted = {span: clip.frames[span[0], :3, :3].copy() for span in spans}
    for start, end in spans:
        for frame, angle in zip(clip.frames[start:end], np.linspace(-0.1, 0.1, end - start), strict=True):
            c, s = np.cos(angle), np.sin(angle)
            frame[:3, :3] = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ frame[:3, :3]
    planted = addon.module("feet.standing").plant(foot_of(addon, clip), BLEND)
    for (start, end), turn in wanted.items():
        assert np.abs(turns(addon, planted)[start:end] - turn).max() < 1e-6


def test_a_foot_turns_about_its_toe_where_that_slides_as_the_heel_rises(addon: Addon) -> None:
    clip = clips.make("run", is_recorded=False)
    source = foot_of(addon, clip.feet["Left"])
    (start, end), *_ = addon.module("feet.filling").runs(source.contacts[1] & ~source.contacts[0])
    arm = (source.places - source.points(1))[end - 1]
    way = np.cross([1.0, 0.0, 0.0], arm) / np.linalg.norm(arm)
    source.places[start:end] += 0.02 * np.linspace(0.0, 1.0, end - start)[:, None] * way
    planted = addon.module("feet.standing").plant(source, 1)
    assert planted.slide() < 1e-12
    assert np.linalg.norm(planted.places - source.places, axis=1)[end - 1] < 0.004


def test_feet_whose_heels_rise_and_fall_pivot_about_the_toe(addon: Addon) -> None:
    """Heels rise twice while the toes stay: contacts that overlap are held as one."""
    count = 60
    contacts = np.ones((2, count), dtype=bool)
    contacts[0, 15:25] = contacts[0, 40:50] = False
    frames = np.repeat(np.eye(4)[None], count, axis=0)
    frames[:, :3, 3] = np.random.default_rng(3).normal(0.0, 0.01, (count, 3))
    still = np.repeat([[1.0], [0.0], [0.0], [0.0]], count, axis=1)
    module = addon.module("feet.standing")
    pivots = np.array([clips.HEEL, clips.TOE])
    foot = addon.module("feet.standing").Foot(frames[:, :3, 3], still, pivots, contacts)
    planted = module.plant(foot, BLEND)
    assert planted.slide() < 1e-12
    assert np.ptp(planted.points(1), axis=0).max() < 1e-12, "one contact of the toe from beginning to end"


# ---- on a ground feet rest, follow it, and never go through it


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
        ends = [self.height(points + way) - self.height(points - way) for way in step * np.eye(3)]
        rises = [rise / (2.0 * step) for rise in ends]
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
