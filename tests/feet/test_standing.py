"""Planted feet hold still where they touch, and nothing else changes more than necessary."""

from __future__ import annotations

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
    return addon.module("feet.foot_track").Foot(
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
    foot = addon.module("feet.foot_track").Foot(frames[:, :3, 3], still, pivots, contacts)
    planted = module.plant(foot, BLEND)
    assert planted.slide() < 1e-12
    assert np.ptp(planted.points(1), axis=0).max() < 1e-12, "one contact of the toe from beginning to end"
