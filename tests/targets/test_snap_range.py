"""Snapping targets and poles over a range of frames: sampled as a bake does, in steps, and fully undoable."""

import math
from collections.abc import Callable
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Vector
from numpy.typing import NDArray

from tests import rigs, rigs_named
from tests.conftest import Addon
from tests.reliability.states import activate, add, refused, snapshot
from tests.rigs_named import RIGS

FRAMES = range(1, 31)


def walker(controls: str = "EMPTIES") -> bpy.types.Object:
    """Return a pelvis with one leg, keyed on all frames, straight on some, with a foot, and with a chain on the leg."""
    ob = rigs.limb([(0, 0, 1.0), (0, 0, 1.2), (0, 0, 1.6), (0, 0, 1.8)], ["hips", "chest", "head"], name="Walker")
    hip, knee, ankle = ((0.1, 0, z) for z in (1.0, 0.5, 0.1))
    rigs.add_bones(ob, [hip, knee, ankle], ["thigh.L", "shin.L"], parent="hips", connect=False)
    rigs.add_bones(ob, [ankle, (0.1, -0.2, 0.0)], ["foot.L"], parent="shin.L")
    for bone in ob.pose.bones:
        bone.rotation_mode = "XYZ"
    bones = ob.pose.bones
    for frame in FRAMES:
        phase = 2.0 * math.pi * frame / 24.0
        bones["hips"].location = (0.05 * math.sin(phase), 0.0, 0.05 * frame)
        bones["hips"].rotation_euler = Euler((0.1, 0.3 * math.sin(phase), 0.02 * frame))
        bones["thigh.L"].rotation_euler = Euler((0.6 * math.sin(phase), 0.2 * math.cos(phase), 0.1))
        bones["shin.L"].rotation_euler = Euler((max(0.0, 0.9 * math.sin(phase + 1.0)), 0.0, 0.0))
        bones["foot.L"].rotation_euler = Euler((0.3 * math.sin(phase), 0.0, 0.2))
        bones["hips"].keyframe_insert("location", frame=frame)
        for name in ("hips", "thigh.L", "shin.L", "foot.L"):
            bones[name].keyframe_insert("rotation_euler", frame=frame)
    bpy.context.scene.frame_set(1)
    add(ob, "shin.L", tip="shin.L", chain_length=2, controls=controls)
    return ob


def played(ob: bpy.types.Object, frames: range = FRAMES) -> NDArray[Any]:
    """Return the evaluated pose matrices (frames, bones, 4, 4)."""
    return np.array([pose.reshape(-1, 4, 4) for pose in rigs.poses_at(ob, frames).values()])


def paths(goal: bpy.types.Object, frames: range = FRAMES) -> NDArray[Any]:
    """Return the world positions (frames, 3) of an object."""
    return np.array(list(rigs.on_frames(frames, lambda: rigs.position(goal)).values()))


def off_the_line(ob: bpy.types.Object, pole: bpy.types.Object, frames: range = FRAMES) -> NDArray[Any]:
    """Return a pole's distance (frames,) from the line from hip to ankle."""

    def off() -> float:
        line = rigs.tail(ob, "shin.L") - rigs.head(ob, "thigh.L")
        line /= np.linalg.norm(line)
        seen = rigs.position(pole) - rigs.head(ob, "thigh.L")
        return float(np.linalg.norm(seen - (seen @ line) * line))

    return np.array(list(rigs.on_frames(frames, off).values()))


RANGE = {"frame_range": "CUSTOM", "frame_start": FRAMES[0], "frame_end": FRAMES[-1]}


def snap(**options: Any) -> None:
    assert bpy.ops.ik_addon.snap_target(**RANGE, **options) == {"FINISHED"}


def keys_of(ob: bpy.types.Object) -> dict[tuple[str, int], list[float]]:
    """Return all keys of an object, by path and index."""
    return {(c.data_path, c.array_index): [v for key in c.keyframe_points for v in key.co] for c in rigs.fcurves(ob)}


def goals_of(ob: bpy.types.Object) -> tuple[bpy.types.Object, bpy.types.Object]:
    chain = ob.pose.bones["shin.L"].ik_addon
    return chain.target, chain.pole


# ---- results


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("controls", ["EMPTIES", "BONES"])
def test_solving_after_snapping_moves_nothing(live: bool, controls: str) -> None:
    ob = walker(controls)
    own = [ob.data.bones.find(name) for name in ("thigh.L", "shin.L", "foot.L")]
    before = played(ob)[:, own]
    ob.ik_addon.live = live
    bpy.context.scene.frame_set(9)
    snap()
    assert bpy.context.scene.frame_current == 9
    assert ob.ik_addon.live == live
    ob.ik_addon.live = True
    assert np.abs(played(ob)[:, own] - before).max() < 2e-5


@pytest.mark.parametrize("turns", [False, True])
def test_a_whole_characters_pose_stays_and_no_frame_is_played(addon: Addon, turns: bool) -> None:
    """The spine moves the shoulders and the poles of the arms; on some frames the hands are out of reach.

    Where chest and head turn with their targets, a spine that can't take an orientation has more than one pose for the
    one that it takes: then the bones within it may settle otherwise, and all others stay.
    """
    ob = rigs_named.build(RIGS["Mixamo"])
    bpy.context.view_layer.objects.active = ob
    assert bpy.ops.ik_addon.character_setup(controls="EMPTIES") == {"FINISHED"}
    hips = ob.pose.bones["mixamorig:Hips"]
    rigs.key(hips, "location", {1: (0, 0, 0), 15: (0.1, -0.08, 0.1), 30: (0, 0, 0)})
    tips = [bone for bone in ob.pose.bones if bone.ik_addon.is_chain]
    within = {"mixamorig:Spine", "mixamorig:Spine1", "mixamorig:Neck"} if turns else set()
    if not turns:
        for tip in tips:
            tip.ik_addon.use_rotation = False
    for i, tip in enumerate(tips):
        place = tip.ik_addon.target.location.copy()
        off = Vector((0.05 * (-1) ** i, -0.1, 0.06 - 0.02 * i))
        rigs.key(tip.ik_addon.target, "location", {1: place, 12: place + off, 30: place - 0.5 * off})
    before = played(ob)
    todo = addon.module("targets.snap").key_range(bpy.context, tips, list(FRAMES), shown=True)
    assert sum(1 for _share in todo) < len(FRAMES)
    after = played(ob)
    others = [i for i, bone in enumerate(ob.pose.bones) if bone.name not in within]
    assert np.abs(after - before)[:, others].max() < (1e-4 if turns else 5e-5)
    for frame in FRAMES[::6]:
        bpy.context.scene.frame_set(frame)
        assert all(addon.report(ob, tip.name).reached for tip in tips), frame


def test_the_pole_keeps_its_distance_from_the_limb() -> None:
    ob = walker()
    _target, pole = goals_of(ob)
    bpy.context.scene.frame_set(7)
    distance = off_the_line(ob, pole, range(7, 8))[0]
    snap()
    assert off_the_line(ob, pole) == pytest.approx(np.full(len(FRAMES), distance), rel=1e-4)
    steps = np.linalg.norm(np.diff(paths(pole), axis=0), axis=1)
    assert steps.max() < 0.5, "half a leg a frame, where the leg is straight as well"


def test_poles_may_be_left_alone() -> None:
    ob = walker()
    target, pole = goals_of(ob)
    snap(poles="KEEP")
    assert keys_of(target)
    assert not keys_of(pole)
    before = played(ob)
    ob.ik_addon.live = True
    tip = ob.data.bones.find("foot.L")
    assert np.abs(played(ob)[:, tip, 3, :3] - before[:, tip, 3, :3]).max() < 2e-5, "the ankle stays"


@pytest.mark.parametrize("pitch", [0.0, 0.8, 1.3, 1.6])
def test_a_pole_follows_the_foot_however_steep_it_is(pitch: float) -> None:
    ob = walker()
    foot = ob.pose.bones["foot.L"]
    rest = foot.bone.matrix_local.to_quaternion()
    for frame in FRAMES:  # lifted, and turned out by the same angle on every frame
        bpy.context.scene.frame_set(frame)
        shin = rigs.evaluated(ob).pose.bones["shin.L"]
        follows = (shin.matrix @ shin.bone.matrix_local.inverted()).to_quaternion()
        turn = Euler((pitch, 0.0, 0.3)).to_quaternion()
        foot.rotation_mode = "QUATERNION"
        rigs.key(foot, "rotation_quaternion", {frame: rest.inverted() @ follows.inverted() @ turn @ rest})
    snap(poles="FOOT")
    _target, pole = goals_of(ob)
    for frame in (5, 14, 26):
        bpy.context.scene.frame_set(frame)
        hip, ankle = rigs.head(ob, "thigh.L"), rigs.tail(ob, "shin.L")
        line = (ankle - hip) / np.linalg.norm(ankle - hip)
        off = rigs.position(pole) - hip
        off = (off - (off @ line) * line) / np.linalg.norm(off - (off @ line) * line)
        front, hinge = np.array([np.sin(0.3), -np.cos(0.3), 0.0]), np.array([np.cos(0.3), np.sin(0.3), 0.0])
        assert abs(off @ hinge) < 1e-3, "the knee goes where the foot goes, seen from above"
        assert off @ front > 0.5


def test_the_pole_of_a_straight_limb_is_on_its_bend_side_and_never_flips(addon: Addon) -> None:
    bends = np.linspace(0.02, -0.02, 81)  # from bent through straight to hyperextended, with a knee that points to X
    rng = np.random.default_rng(4)
    turn, _r = np.linalg.qr(rng.normal(size=(3, 3)))
    turn *= np.linalg.det(turn)
    hip, (thigh, shin) = rng.normal(size=3), rng.uniform(0.5, 2.0, size=2)
    lower = turn @ np.stack([-np.sin(bends), np.cos(bends), np.zeros(81)])
    knees = np.tile(hip + thigh * turn[:, 1], (81, 1))
    joints = np.stack([np.tile(hip, (81, 1)), knees, knees + shin * lower.T], axis=1)
    limb = addon.module("chains.current_pose").Limb(joints, np.broadcast_to(turn, (81, 2, 3, 3)))
    found = addon.module("targets.places").poles(limb, np.array([1.0, 0, 0]), np.zeros(81), 1.0, None, False, None)
    assert np.linalg.norm(np.diff(found, axis=0), axis=1).max() < 0.01
    assert ((found - knees) @ turn[:, 0]).min() > 0.9


def with_noise(ob: bpy.types.Object) -> None:
    """Let the knee wobble sideways, as recorded knees do."""
    rng = np.random.default_rng(6)
    for curve in rigs.fcurves(ob, "shin.L"):
        if curve.array_index:
            for point in curve.keyframe_points:
                point.co[1] += np.radians(rng.normal(scale=3.0))


@pytest.mark.parametrize("poles", ["MATCH", "TWIST"])
def test_thighs_keep_their_twist_when_bones_are_reset_to_rest(poles: str) -> None:
    ob = walker()
    if poles == "TWIST":
        with_noise(ob)
    before = played(ob)
    snap(poles=poles)
    for name in ("thigh.L", "shin.L"):
        bone = ob.pose.bones[name]
        rigs.remove_curves(ob, bone.path_from_id())
        bone.rotation_euler = (0.0, 0.0, 0.0)
    ob.ik_addon.live = True
    after = played(ob)
    thigh = ob.data.bones.find("thigh.L")
    axes = np.degrees(np.arccos(np.clip((before * after)[:, thigh, :3, :3].sum(axis=2), -1.0, 1.0)))
    assert axes.max() < (0.1 if poles == "MATCH" else 5.0), "the wobble itself stays"


# ---- sampling


CHANGES: dict[str, Callable[[bpy.types.Object], None]] = {
    "a parented target": lambda ob: setattr(goals_of(ob)[0], "parent", rigs.empty("Parent", (1, 2, 3))),
    "a pole on the target": lambda ob: setattr(goals_of(ob)[1], "parent", goals_of(ob)[0]),
    "a delta transform": lambda ob: setattr(goals_of(ob)[0], "delta_location", (0.3, 0.1, -0.4)),
    "a constrained pelvis": lambda ob: _limit(ob),
    "a target that is a child by a constraint": lambda ob: _child(ob),
}


def _limit(ob: bpy.types.Object) -> None:
    rigs.constrain(ob.pose.bones["hips"], "LIMIT_LOCATION", use_max_y=True, max_y=0.02, owner_space="LOCAL")


def _child(ob: bpy.types.Object) -> None:
    carrier = rigs.empty("Carrier", (1.0, 0.2, 0.3))
    rigs.key(carrier, "rotation_euler", {1: (0.0, 0.0, 0.0), 30: (0.4, 1.0, -2.0)})
    goals_of(ob)[0].constraints.new("CHILD_OF").target = carrier


@pytest.mark.parametrize("change", CHANGES)
def test_goals_reach_their_place_whatever_moves_them(change: str) -> None:
    ob = walker()
    CHANGES[change](ob)
    rigs.empty("Other")  # left out of the scene copy that is sampled
    before = played(ob)
    snap()
    ob.ik_addon.live = True
    assert np.abs(played(ob) - before).max() < 5e-5


def test_chains_that_move_the_limb_are_solved_while_sampling() -> None:
    ob = walker()
    target = rigs.empty("Spine", (0.3, 0.2, 1.9))
    rigs.key(target, "location", {1: (0.3, 0.2, 1.5), 30: (-0.3, 0.6, 1.7)})
    rigs.chain(ob, "chest", target, 2)
    ob.ik_addon.live = True
    ob.pose.bones["shin.L"].ik_addon.enabled = False
    before = played(ob)
    activate(ob, "shin.L")
    snap(chains="ACTIVE")
    ob.pose.bones["shin.L"].ik_addon.enabled = True
    assert np.abs(played(ob) - before).max() < 5e-5


# ---- cancelling


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_a_cancelled_snap_changes_nothing(addon: Addon, live: bool, share: float) -> None:
    ob = walker()
    target, pole = goals_of(ob)
    rigs.key(target, "location", {1: (0.0, 0.0, 0.5), 50: (1.0, 0.0, 0.5)})
    _limit(ob)  # for many steps
    ob.ik_addon.live = live
    bpy.context.scene.frame_set(12)
    target.location.x += 0.25  # not keyed
    rigs.change(ob.pose.bones["thigh.L"], rotation_euler=Euler((0.3, 0.1, 0.0)))
    before, keys = snapshot(), [keys_of(goal) for goal in (target, pole)]
    todo = addon.module("targets.snap").key_range(bpy.context, [ob.pose.bones["shin.L"]], list(FRAMES))
    for done in todo:
        if done >= share:
            break
    else:
        pytest.fail("it was done before it was cancelled")
    todo.close()
    assert snapshot() == before
    assert [keys_of(goal) for goal in (target, pole)] == keys
    assert bpy.context.scene.frame_current == 12


def test_a_cancelled_snap_does_not_turn_end_rotation_on(addon: Addon) -> None:
    ob = walker()
    todo = addon.module("targets.snap").key_range(bpy.context, [ob.pose.bones["shin.L"]], list(FRAMES))
    next(todo)
    todo.close()
    assert not ob.pose.bones["shin.L"].ik_addon.use_end_rotation
    snap()
    assert ob.pose.bones["shin.L"].ik_addon.use_end_rotation


def test_unkeyed_edits_of_other_objects_stay() -> None:
    ob = walker()
    other = rigs.empty("Other")
    rigs.key(other, "location", {1: (0, 0, 0), 30: (1, 0, 0)})
    bpy.context.scene.frame_set(5)
    other.location = (3.0, 4.0, 5.0)
    snap()
    assert tuple(other.location) == (3.0, 4.0, 5.0)
    target, _pole = goals_of(ob)
    assert rigs.position(target) == pytest.approx(rigs.tail(ob, "shin.L"), abs=1e-5)


def test_an_armature_in_rest_position_is_refused() -> None:
    ob = walker()
    ob.data.pose_position = "REST"
    with refused("is in Rest Position"):
        snap()
