"""What is muted counts as Blender evaluates it, in a live pose and in a bake: glTF imports have muted tracks."""

from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs

FRAMES = range(1, 21)


def mute(ob: bpy.types.Object, what: str) -> None:
    """Mute some of what animates an object: its F-curves, their groups, or the track or strip that it becomes."""
    data: Any = ob.animation_data
    for curve in rigs.fcurves(ob):
        curve.mute = what == "curves"
        curve.group.mute = what in {"group", "group in a strip"}
    if what in {"nothing", "group", "curves"}:
        return
    track = data.nla_tracks.new()
    strip = track.strips.new("strip", 1, data.action)
    if not what.endswith("beside the action"):
        data.action = None
    if "track muted" in what:
        track.mute = True
    elif what == "strip muted":
        strip.mute = True
    elif what == "NLA off":
        data.use_nla = False
    elif "solo" in what:
        other = data.nla_tracks.new()
        if "empty" not in what:
            other.strips.new("other", 1, bpy.data.actions.new("Other"))
        other.is_solo = True


MUTES = (
    *("nothing", "group", "curves", "strip", "track muted", "track muted beside the action", "strip muted", "NLA off"),
    *("another solo", "another solo beside the action", "an empty solo", "an empty solo beside the action"),
    "group in a strip",
)


def posed(what: str) -> bpy.types.Object:
    """Return an arm with a keyed upper bone, part of which is muted, another pose by hand, and a moving target."""
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 20: (-0.5, 0.4, 1.1)})
    bone = ob.pose.bones["upper"]
    for frame, turn in ((1, 0.1), (20, 0.4)):
        bone.rotation_quaternion = (0.9, turn, 0.2, 0.1)
        bone.keyframe_insert("rotation_quaternion", frame=frame, group="upper")
    mute(ob, what)
    bone.rotation_quaternion = (0.5, 0.1, 0.6, 0.6)
    bpy.context.view_layer.objects.active = ob
    return ob


@pytest.mark.parametrize("what", MUTES)
def test_the_fk_pose_is_what_blender_evaluates_and_a_bake_plays_it_or_is_refused(what: str) -> None:
    ob = posed(what)
    bone = ob.pose.bones["upper"]
    by_hand = tuple(bone.rotation_quaternion)
    wanted = rigs.on_frames(FRAMES, lambda: tuple(bone.rotation_quaternion))
    ob.ik_addon.live = True
    for frame in (7, 20, 1, 13, 7):
        bpy.context.scene.frame_set(frame)
        assert rigs.miss(ob) < 1e-5
        shown = rigs.pose(ob)
        rigs.change(ob.ik_addon, live=False)
        assert tuple(bone.rotation_quaternion) == pytest.approx(wanted[frame], abs=1e-6), frame
        ob.ik_addon.live = True
        assert np.abs(rigs.pose(ob) - shown).max() < 1e-5
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = FRAMES[0], FRAMES[-1]
    played = rigs.poses_at(ob, FRAMES)
    refusal = ""
    try:
        bpy.ops.ik_addon.bake(frame_range="SCENE")
    except RuntimeError as error:
        refusal = str(error)
    if refusal:
        assert "so keys would have no effect" in refusal
        assert "solo" in refusal or wanted[7] == by_hand
        return
    for time, pose in rigs.poses_at(ob, FRAMES).items():
        assert np.abs(pose - played[time]).max() < 2e-5, time
