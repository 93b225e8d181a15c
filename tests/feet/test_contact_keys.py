"""Contacts are constant keys on the chain, found or made by hand, and they do not slow down a live rig."""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.feet import walker
from tests.reliability.states import activate, said


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
    after = walker.keys(addon, ob, "L")
    assert [key for key in after if key[0] < 60] == [key for key in before if key[0] < 60]
    assert [key for key in after if key[0] > 110] == [key for key in before if key[0] > 110]


def test_only_the_active_leg_is_searched_if_chosen(addon: Addon) -> None:
    ob = walker.figure()
    activate(ob, "shin.R")
    assert bpy.ops.ik_addon.find_contacts(chains="ACTIVE") == {"FINISHED"}
    assert walker.keys(addon, ob, "R")
    assert not walker.keys(addon, ob, "L")


def test_a_clip_in_place_is_named_as_such(addon: Addon, capfd: pytest.CaptureFixture[str]) -> None:
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
    bpy.context.scene.frame_set(free + 3)
    bpy.ops.ik_addon.mark_contact(contact="TOE")
    bpy.context.scene.frame_set(free + 2)
    bpy.ops.ik_addon.mark_contact(contact="TOE")
    bpy.context.scene.frame_set(free + 3)
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
    bpy.ops.ik_addon.mark_contact(contact="HEEL")
    wanted[0, 3:41] = True
    assert np.array_equal(flags(addon, ob), wanted)
    bpy.ops.ik_addon.mark_contact(contact="HEEL")
    wanted[0, 3:41] = False
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
