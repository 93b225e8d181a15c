"""Contacts are found where they are marked: on synthetic clips, and on the recorded walk."""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from tests import recorded, rigs
from tests.conftest import Addon
from tests.feet import clips, walker

UP = np.array([0.0, 0.0, 1.0])
CLOSE = 2
"""Tolerance in frames."""
FOUND = 0.95
RATES = 24, 30, 60, 120


def found(addon: Addon, points: clips.Array, rate: float, part: str, length: float = clips.LEG) -> clips.Marks:
    """Return first and last frames of the contacts found; the first point is frame 1."""
    contacts = addon.module("feet.contacts")
    criteria = {"heel": contacts.HEEL, "toe": contacts.TOE}[part]
    flags = contacts.find_contacts(contacts.Path(points, UP, length, rate), criteria)
    return [(start + 1, end) for start, end in addon.module("feet.filling").runs(flags)]


def close(marked: clips.Marks, got: clips.Marks) -> tuple[int, int]:
    """Count the ends of marked contacts, and those that were found; asserts the same number of contacts."""
    assert len(got) == len(marked), (marked, got)
    gaps = np.abs(np.array(marked) - np.array(got))
    return gaps.size, int((gaps <= CLOSE).sum())


@pytest.mark.parametrize("name", clips.MADE)
def test_contacts_of_made_clips_are_found(addon: Addon, name: str) -> None:
    clip, counts = clips.make(name), []
    for foot in clip.feet.values():
        for part, point in (("heel", clips.HEEL), ("toe", clips.TOE)):
            counts.append(close(foot.marks[part], found(addon, foot.path(point), clip.rate, part)))
    marked, right = np.sum(counts, axis=0)
    assert right >= FOUND * marked


@pytest.mark.parametrize("noise", [0.001, 0.003])
@pytest.mark.parametrize("name", clips.MADE)
def test_feet_that_are_never_quite_still_touch_too(
    addon: Addon, monkeypatch: pytest.MonkeyPatch, name: str, noise: float
) -> None:
    """Noise of millimeters from frame to frame is up to ten times that of the other clips."""
    monkeypatch.setattr(clips, "NOISE", noise)
    test_contacts_of_made_clips_are_found(addon, name)


@pytest.mark.parametrize("leaf", [None, "ToeBase", "Foot"])
def test_contacts_of_the_walk_are_found(addon: Addon, leaf: str | None) -> None:
    """Wherever an importer put the tails of bones without children: here a shin's length away."""
    ob = recorded.walk()
    for side in ("Left", "Right") if leaf else ():
        with rigs.edit_mode(ob) as bones:
            bone = bones[f"{side}{leaf}"]
            for below in bone.children_recursive:
                bones.remove(below)
            bone.length = bones[f"{side}Leg"].length
    noted, counts, gaps = clips.read("walk"), [], []
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 524
    poses = walker.play(ob)
    for side in ("Left", "Right"):
        tip, end = ob.pose.bones[f"{side}Leg"], ob.pose.bones.find(f"{side}Foot")
        tip.ik_addon.end_bone = f"{side}Foot"
        tip.ik_addon.chain_length, tip.ik_addon.is_chain = 2, True
        pivots = addon.module("feet.pivots").found(addon.module("anatomy.figure").Figure.of(ob), tip)
        length = rigs.length(ob, f"{side}Leg", 2)
        for part, pivot in zip(("heel", "toe"), pivots, strict=True):
            points = poses[:, end, :3, :3] @ pivot + poses[:, end, :3, 3]
            counts.append(close(clips.marks_of(noted[side])[part], found(addon, points, 120.0, part, length)))
            ends = [_ends(addon, _resampled(points[1:], rate / 120.0), rate, part, length) for rate in RATES]
            gaps.append(30.0 * np.abs(np.array(ends[:-1]) - ends[-1]).ravel())
    marked, right = np.sum(counts, axis=0)
    assert marked == 32
    assert right >= FOUND * marked
    gaps_of_all = np.concatenate(gaps)
    assert np.mean(gaps_of_all <= 1.0) >= FOUND
    assert gaps_of_all.max() < 1.5


def _resampled(points: clips.Array, share: float) -> clips.Array:
    """Resample points to `share` times as many frames."""
    frames = np.arange(len(points))
    return np.stack(
        [np.interp(np.arange(0.0, len(points) - 1.0, 1.0 / share), frames, own) for own in points.T], axis=1
    )


def test_contacts_are_the_same_at_any_frame_rate(addon: Addon, monkeypatch: pytest.MonkeyPatch) -> None:
    """With much noise, at normal speed and 2.5 times slower; compared in frames of synthetic clips at 30 per second."""
    monkeypatch.setattr(clips, "NOISE", 0.003)
    gaps = []
    for name in clips.MADE:
        for slow in (1.0, 2.5):
            made = [clips.make(name, rate=rate * slow) for rate in RATES]
            for side in ("Left", "Right"):
                for part, point in (("heel", clips.HEEL), ("toe", clips.TOE)):
                    ends = [_ends(addon, clip.feet[side].path(point), clip.rate / slow, part) for clip in made]
                    assert {len(own) for own in ends} == {len(made[0].feet[side].marks[part])}
                    gaps.append((30.0 / slow * np.abs(np.array(ends[:-1]) - ends[-1])).ravel())
    gaps_of_all = np.concatenate(gaps)
    assert np.mean(gaps_of_all <= 1.0) >= FOUND
    assert gaps_of_all.max() < 2.5


def _ends(addon: Addon, points: clips.Array, rate: float, part: str, length: float = clips.LEG) -> clips.Array:
    """Return the times in seconds when contacts begin and end: between two frames, or with the clip."""
    own = np.array(found(addon, points, rate, part, length)) + np.array([-1.5, -0.5])
    return np.clip(own, 0.0, len(points) - 1.0) / rate


def test_a_held_up_foot_touches_nothing(addon: Addon) -> None:
    clip, noted = clips.make("stairs"), clips.read("stairs")
    held = noted["held"]
    path = clip.feet[held["side"]].path(clips.TOE)
    start, end = held["frames"]
    steps = np.linalg.norm(np.diff(path[start:end], axis=0), axis=1)
    assert steps.max() * clip.rate < 0.1, "it does rest"
    assert not any(first < end and last > start for first, last in found(addon, path, clip.rate, "toe"))


def rests(
    addon: Addon, levels: tuple[float, float], tilts: tuple[float, float], above: tuple[float, float] | None = None
) -> list[bool]:
    """Return whether each of two feet still touches, resting at these heights and, if given, so far above a ground."""
    contacts = addon.module("feet.contacts")
    frames = np.ones((2, 50))
    feet = [
        contacts.Rests(
            frames > 0.0,
            levels[i] * frames,
            None if above is None else above[i] * frames,
            np.full(50, np.sin(tilts[i])),
        )
        for i in range(2)
    ]
    return [bool(own.all()) for own in contacts.without_held(feet)]


def test_a_foot_that_never_comes_down_touches_if_level_or_on_the_ground(addon: Addon) -> None:
    assert rests(addon, (0.0, 0.3), (0.0, 0.5)) == [True, False], "held up, the toes hang down"
    assert rests(addon, (0.3, 0.0), (0.5, 0.0)) == [False, True]
    assert rests(addon, (0.0, 0.3), (0.0, 0.1)) == [True, True], "on a ledge"
    assert rests(addon, (0.0, 0.05), (0.0, 0.5)) == [True, True], "on tiptoe"
    assert rests(addon, (0.0, 0.3), (0.0, 0.0), (0.0, 0.3)) == [True, False], "level, but over a floor"
    assert rests(addon, (0.0, 0.3), (0.0, 0.5), (0.0, 0.01)) == [True, True], "the ledge is there"
    assert rests(addon, (0.0, 0.3), (0.0, 0.0), (0.2, 0.5)) == [True, False], "all of the clip is too high"
    assert rests(addon, (0.0, 0.0), (0.0, 0.0), (0.0, 0.3)) == [True, True], "a level walk, put on a hill"
    assert rests(addon, (0.0, 0.3), (0.0, 0.0), (np.nan, np.nan)) == [True, True], "there is no ground there"


def test_a_foot_that_never_moves_touches_all_the_time(addon: Addon) -> None:
    path = np.random.default_rng(1).normal(0.0, 0.0003, (100, 3))
    assert found(addon, path, 24.0, "heel") == [(1, 100)]


def test_next_to_a_spin_slow_steps_are_no_rests(addon: Addon) -> None:
    """What counts as slow has a cap, however fast the point gets elsewhere."""
    walked = np.stack([np.arange(60.0) * clips.LEG / 20.0, np.zeros(60), np.zeros(60)], axis=1)
    around = np.linspace(0.0, 6.0 * np.pi, 40)
    spin = walked[-1] + clips.LEG * np.stack([np.sin(around), 1.0 - np.cos(around), np.zeros(40)], axis=1)
    path = np.concatenate([walked, spin, np.tile(spin[-1], (30, 1))])
    assert [start > 95 for start, _end in found(addon, path, 30.0, "heel")] == [True], "it stands only after the spin"


def jump(addon: Addon, feet: int, above: float | None = None) -> bool:
    """Return whether the first of some feet touches while it rests in mid-air, between two rests on the floor."""
    contacts = addon.module("feet.contacts")
    levels = np.repeat([0.0, 0.2, 0.4, 0.2, 0.0], 10)
    on = np.repeat([True, False, True, False, True], 10)
    others = [np.repeat([True, False, False, False, True], 10)] * (feet - 1)
    ground = None if above is None else np.tile(levels * (above / 0.4), (2, 1))
    made = [
        contacts.Rests(np.stack([own, own]), np.tile(levels, (2, 1)), ground, np.zeros(50)) for own in (on, *others)
    ]
    return bool(contacts.without_held(made)[0][:, 20:30].any())


def test_a_foot_that_rests_at_the_top_of_a_jump_is_in_the_air(addon: Addon) -> None:
    assert not jump(addon, 2)
    assert not jump(addon, 2, above=0.4), "there is no box"
    assert jump(addon, 2, above=0.0), "it steps onto a box"
    assert jump(addon, 1), "nothing is known of the other foot"
