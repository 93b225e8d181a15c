"""Contacts are found where they are marked, on synthetic clips and the recorded walk, and keyed on chains."""

from typing import Any

import bpy
import numpy as np
import pytest

from tests import recorded, rigs
from tests.conftest import Addon, Capture
from tests.feet import clips, walker
from tests.reliability.states import activate, said

CLOSE = 2
"""Tolerance in frames."""
FOUND = 0.95
RATES = 24, 30, 60, 120


def found(addon: Addon, points: clips.Array, rate: float, part: str, length: float = clips.LEG) -> clips.Marks:
    """Return first and last frames of the contacts found; the first point is frame 1."""
    contacts = addon.module("feet.contacts")
    criteria = {"heel": contacts.HEEL, "toe": contacts.TOE}[part]
    flags = contacts.find_contacts(contacts.Path(points, length, rate), criteria)
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
        pivots = addon.module("feet.sampled_feet").found_pivots(addon.module("anatomy.figure").Figure.of(ob), tip)
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
    frames, times = np.arange(len(points)), np.arange(0.0, len(points) - 1.0, 1.0 / share)
    return np.stack([np.interp(times, frames, own) for own in points.T], axis=1)


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


RESTS: Any = (
    ((0.0, 0.3), (0.0, 0.5), None, [True, False], "held up, the toes hang down"),
    ((0.3, 0.0), (0.5, 0.0), None, [False, True], "the other one is"),
    ((0.0, 0.3), (0.0, 0.1), None, [True, True], "on a ledge"),
    ((0.0, 0.05), (0.0, 0.5), None, [True, True], "on tiptoe"),
    ((0.0, 0.3), (0.0, 0.0), (0.0, 0.3), [True, False], "level, but over a floor"),
    ((0.0, 0.3), (0.0, 0.5), (0.0, 0.01), [True, True], "the ledge is there"),
    ((0.0, 0.3), (0.0, 0.0), (0.2, 0.5), [True, False], "all of the clip is too high"),
    ((0.0, 0.0), (0.0, 0.0), (0.0, 0.3), [True, True], "a level walk, put on a hill"),
    ((0.0, 0.3), (0.0, 0.0), (np.nan, np.nan), [True, True], "there is no ground there"),
)
"""Heights, tilts, heights above a ground if it is known, whether each foot touches, and why."""


def test_a_foot_that_never_comes_down_touches_if_level_or_on_the_ground(addon: Addon) -> None:
    contacts, frames = addon.module("feet.contacts"), np.ones((2, 50))
    for levels, tilts, above, touch, why in RESTS:
        grounds = [None, None] if above is None else [height * frames for height in above]
        feet = [
            contacts.Rests(frames > 0.0, level * frames, ground, np.full(50, np.sin(tilt)))
            for level, tilt, ground in zip(levels, tilts, grounds, strict=True)
        ]
        assert [bool(own.all()) for own in contacts.without_held(feet)] == touch, why


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
    heights, flat = np.tile(levels, (2, 1)), np.zeros(50)
    made = [contacts.Rests(np.stack([own, own]), heights, ground, flat) for own in (on, *others)]
    return bool(contacts.without_held(made)[0][:, 20:30].any())


def test_a_foot_that_rests_at_the_top_of_a_jump_is_in_the_air(addon: Addon) -> None:
    assert not jump(addon, 2)
    assert not jump(addon, 2, above=0.4), "there is no box"
    assert jump(addon, 2, above=0.0), "it steps onto a box"
    assert jump(addon, 1), "nothing is known of the other foot"


# ---- contacts are constant keys on the chain, found or made by hand, and they do not slow down a live rig


def test_found_contacts_are_constant_keys_at_changes(addon: Addon) -> None:
    ob = walker.figure()
    assert bpy.ops.ik_addon.find_contacts() == {"FINISHED"}
    keys = walker.keys(addon, ob, "L")
    assert keys[0] == (1, 3)
    assert [value for _frame, value in keys[1:5]] in ([2, 0, 1, 3], [2, 0, 3, 2], [0, 1, 3, 2])
    curve = addon.module("core.contact_keys").curve_of(ob.pose.bones["shin.L"])
    assert {key.interpolation for key in curve.keyframe_points} == {"CONSTANT"}
    shown = []
    for frame in (1, keys[2][0]):
        bpy.context.scene.frame_set(frame)
        shown.append(set(ob.pose.bones["shin.L"].ik_addon.contact))
    assert shown[0] == {"HEEL", "TOE"} != shown[1]


def test_keys_outside_the_range_stay(addon: Addon) -> None:
    ob = walker.figure()
    bpy.ops.ik_addon.find_contacts()
    before = walker.keys(addon, ob, "L")
    bpy.ops.ik_addon.find_contacts(frame_range="CUSTOM", frame_start=60, frame_end=110)
    outside = [[key for key in keys if not 60 <= key[0] <= 110] for keys in (before, walker.keys(addon, ob, "L"))]
    assert outside[0] == outside[1] != []


def test_only_the_active_leg_is_searched_if_chosen(addon: Addon) -> None:
    ob = walker.figure()
    activate(ob, "shin.R")
    assert bpy.ops.ik_addon.find_contacts(chains="ACTIVE") == {"FINISHED"}
    assert walker.keys(addon, ob, "R")
    assert not walker.keys(addon, ob, "L")


def test_a_clip_in_place_is_named_as_such(addon: Addon, capfd: Capture) -> None:
    ob = walker.figure(frames=72)
    for end, lag in (("L", 0.0), ("R", np.pi)):
        target = ob.pose.bones[f"shin.{end}"].ik_addon.target
        x, _y, z = target.location
        turns = {frame: lag + frame * np.pi / 12.0 for frame in range(1, 73)}
        around = {frame: (x, 0.3 * np.cos(turn), z + 0.15 * np.sin(turn)) for frame, turn in turns.items()}
        rigs.key(target, "location", around)
    message = said(capfd, bpy.ops.ik_addon.find_contacts)
    assert "the feet never stand still. Is this clip in place?" in message
    assert not any(value for _frame, value in walker.keys(addon, ob, "L"))


def test_the_fk_pose_is_searched_if_a_target_has_no_keys(addon: Addon) -> None:
    ob = walker.figure()
    bpy.ops.ik_addon.find_contacts()
    wanted = walker.keys(addon, ob, "L")
    bpy.ops.ik_addon.bake()
    for end in "LR":
        ob.pose.bones[f"shin.{end}"].ik_addon.target.animation_data_clear()
        ob.pose.bones[f"shin.{end}"].ik_addon.enabled = True
    bpy.ops.ik_addon.find_contacts()
    found = walker.keys(addon, ob, "L")
    assert [value for _frame, value in found] == [value for _frame, value in wanted]
    assert max(abs(a - b) for (a, _), (b, _) in zip(found, wanted, strict=True)) <= 2


@pytest.mark.parametrize("moves", [False, True])
def test_a_foot_held_above_the_ground_touches_nothing(addon: Addon, moves: bool) -> None:
    ob = walker.figure()
    floor = rigs.empty("Floor")
    if moves:
        rigs.key(floor, "location", {1: (0.0, 0.0, 0.0), 100: (0.1, 0.0, 0.0)})
    target = ob.pose.bones["shin.L"].ik_addon.target
    for curve in rigs.fcurves(target, "location"):
        if curve.array_index == 2:
            for key in curve.keyframe_points:
                key.co.y += 0.3
            curve.update()
    bpy.ops.ik_addon.find_contacts()
    right = walker.keys(addon, ob, "R")
    assert flags(addon, ob).any(), "it might stand on a ledge"
    bpy.ops.ik_addon.find_contacts(ground="Floor")
    assert not flags(addon, ob).any()
    assert walker.keys(addon, ob, "R") == right
    rigs.empty("Ledge", (0.0, 0.0, 0.3))
    bpy.ops.ik_addon.find_contacts(ground="Ledge")
    assert flags(addon, ob).any()


def flags(addon: Addon, ob: bpy.types.Object, end: str = "L") -> np.ndarray:
    """Return whether heel and toe (2, F) of a leg touch, on frames from 0 on."""
    frames = np.arange(0.0, bpy.context.scene.frame_end + 10.0)
    found: np.ndarray = addon.module("core.contact_keys").read(ob.pose.bones[f"shin.{end}"], frames)
    return found


def test_marks_change_only_their_frames_and_split_contacts(addon: Addon) -> None:
    ob = walker.figure()
    bpy.ops.ik_addon.find_contacts()
    wanted, before = flags(addon, ob), walker.keys(addon, ob, "L")
    free = next(frame for frame, value in before if value == 0)
    bpy.context.scene.frame_set(free + 2)
    assert bpy.ops.ik_addon.mark_contact(contact="TOE") == {"FINISHED"}
    assert ob.pose.bones["shin.L"].ik_addon.contact == {"TOE"}
    wanted[1, free + 2] = True
    assert np.array_equal(flags(addon, ob), wanted)
    for frame in (free + 3, free + 2, free + 3):
        bpy.context.scene.frame_set(frame)
        bpy.ops.ik_addon.mark_contact(contact="TOE")
    assert walker.keys(addon, ob, "L") == before, "no key is left behind"
    bpy.context.scene.frame_set(5)
    bpy.ops.ik_addon.mark_contact(contact="HEEL")
    wanted = flags(addon, ob)
    assert wanted[0, :8].tolist() == [True] * 5 + [False] + [True] * 2


def test_a_preview_range_is_marked_and_unmarked_as_a_whole(addon: Addon) -> None:
    ob = walker.figure()
    bpy.ops.ik_addon.find_contacts()
    scene, wanted = bpy.context.scene, flags(addon, ob)
    scene.use_preview_range, scene.frame_preview_start, scene.frame_preview_end = True, 3, 40
    assert not wanted[0, 3:41].all()
    for is_marked in (True, False):
        bpy.ops.ik_addon.mark_contact(contact="HEEL")
        wanted[0, 3:41] = is_marked
        assert np.array_equal(flags(addon, ob), wanted)
    bpy.ops.ik_addon.mark_contact(contact="TOE", action="ADD", frame_start=30, frame_end=33)
    wanted[1, 30:34] = True
    assert np.array_equal(flags(addon, ob), wanted)
    with pytest.raises(RuntimeError, match="before the first"):
        bpy.ops.ik_addon.mark_contact(frame_start=30, frame_end=29)


def test_random_marks_change_only_their_frames(addon: Addon) -> None:
    ob, random = walker.figure(), np.random.default_rng(1)
    bpy.context.scene.render.frame_map_old = 200
    wanted = flags(addon, ob)
    assert not wanted.any()
    for _ in range(60):
        start = int(random.integers(1, 60))
        end = start + int(random.integers(0, 12))
        name, on = ("HEEL", "TOE")[flag := int(random.integers(2))], bool(random.integers(2))
        bpy.ops.ik_addon.mark_contact(contact=name, action="ADD" if on else "REMOVE", frame_start=start, frame_end=end)
        wanted[flag, 2 * start : 2 * (end + 1)] = on
        assert np.array_equal(flags(addon, ob), wanted)


def test_a_contact_is_removed_as_a_whole(addon: Addon) -> None:
    ob = walker.figure()
    bpy.ops.ik_addon.find_contacts()
    wanted = flags(addon, ob)
    contacts = addon.module("feet.filling").runs(wanted.any(axis=0))
    for start, end in (contacts[1], contacts[0], contacts[-1]):
        bpy.context.scene.frame_set((start + end) // 2)
        assert bpy.ops.ik_addon.remove_contact() == {"FINISHED"}
        wanted[:, start:end] = False
        assert np.array_equal(flags(addon, ob), wanted)
        assert not ob.pose.bones["shin.L"].ik_addon.contact
    with pytest.raises(RuntimeError, match="no contact on the current frame"):
        bpy.ops.ik_addon.remove_contact()


def test_a_chain_without_keys_gets_its_first_contact_by_hand(addon: Addon) -> None:
    ob = walker.figure()
    bpy.context.scene.frame_set(10)
    bpy.ops.ik_addon.mark_contact(contact="HEEL")
    assert np.flatnonzero(flags(addon, ob)[0]).tolist() == [10]
    assert not flags(addon, ob)[1].any()


def test_a_locked_curve_is_refused_without_changes(addon: Addon) -> None:
    ob = walker.figure()
    bpy.ops.ik_addon.find_contacts()
    before = walker.keys(addon, ob, "L")
    addon.module("core.contact_keys").curve_of(ob.pose.bones["shin.L"]).lock = True
    for operator in (bpy.ops.ik_addon.find_contacts, bpy.ops.ik_addon.mark_contact):
        with pytest.raises(RuntimeError, match="locked"):
            operator()
    assert walker.keys(addon, ob, "L") == before
