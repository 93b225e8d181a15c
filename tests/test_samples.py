"""The sample files, as a user opens them."""

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.rig.test_limits import ALLOWED
from tests.rig.test_limits import beyond as beyond_limits
from tools import blender, demo

FOLDER = Path(__file__).resolve().parents[1] / "sample_blends"
ARM, TENTACLE, TORSO, FINGER = "two_bone_arm", "tentacle", "torso_tree", "finger_limits"
SPIDER, FLAT, CONVERTED, CHARACTER = "spider", "flat_arm", "converted", "character"
HORSE, SWITCHES = "horse", "switches"
BONES = {ARM: 2, TENTACLE: 24, TORSO: 11, FINGER: 4, SPIDER: 18, FLAT: 4, CONVERTED: 7, CHARACTER: 22}
BONES |= {HORSE: 30, SWITCHES: 3}
LEGS = [f"{side}.{i}" for side in "LR" for i in range(1, 5)]
CHAINS = {
    "Arm": {"forearm": (2, "Target")},
    "Tentacle": {"tentacle.24": (24, "Target")},
    "Torso": {tip: (5 if tip == "head" else 6, f"Target {tip}") for tip in ("head", "forearm.L", "forearm.R")},
    "Finger": {"finger.3": (3, "Target")},
    "Spider": {f"tibia.{leg}": (2, f"Foot {leg}") for leg in LEGS},
    "Flat arm": {"link.4": (4, "Target")},
    "Legs": {f"shin.{side}": (2, f"Foot {side}") for side in "LR"},
    "Horse": {
        **{tip: (3, f"IK Target {tip}") for tip in ("chest", "head")},
        **{f"{tip}.{side}": (3, f"IK Target {tip}.{side}") for tip in ("metacarpus", "metatarsus") for side in "LR"},
    },
    "Helper": {"forearm": (2, "Target")},
    "Figure": {
        tip: (3 if tip == "chest" else 2, f"IK Target {tip}")
        for tip in ("chest", "head", "forearm.L", "forearm.R", "shin.L", "shin.R")
    },
}
"""By armature and tip bone: the number of bones in the chain, and its target."""
LEAVING = {ARM, SWITCHES}
"""Their tips are not always on their targets: one is out of reach for a while, the other is in FK."""
SOLVED = 1e-5
"""Relative to a chain's length."""
PLANTED = 1e-4
"""In meters: a planted foot moves by less."""


def open_sample(name: str) -> bpy.types.Object:
    """Open a sample and return its only armature."""
    bpy.ops.wm.open_mainfile(filepath=str(FOLDER / f"{name}.blend"))
    (rig,) = (ob for ob in bpy.context.scene.objects if ob.type == "ARMATURE")
    return rig


def frames() -> range:
    """Return all frames of the open file."""
    return range(bpy.context.scene.frame_start, bpy.context.scene.frame_end + 1)


def played() -> Iterator[int]:
    """Go to all frames of the open file, one after another, and yield each."""
    for frame in frames():
        bpy.context.scene.frame_set(frame)
        yield frame


def miss(rig: bpy.types.Object) -> float:
    """Return the largest distance from a tip to its target, in chain lengths."""
    found = []
    for tip, (count, target) in CHAINS[rig.name].items():
        distance = np.linalg.norm(rigs.tail(rig, tip) - rigs.position(bpy.data.objects[target]))
        found.append(float(distance) / rigs.length(rig, tip, count))
    return max(found)


def assert_has_body(rig: bpy.types.Object) -> None:
    """Assert that one mesh shows each of the bones."""
    (body,) = (ob for ob in bpy.context.scene.objects if ob.find_armature() == rig)
    assert {group.name for group in body.vertex_groups} == set(rig.pose.bones.keys())


@pytest.mark.parametrize("name", BONES)
def test_sample_is_small_live_and_complete(name: str) -> None:
    assert (FOLDER / f"{name}.blend").stat().st_size < 500_000
    rig = open_sample(name)
    assert rig.ik_addon.live
    assert len(rig.pose.bones) == BONES[name]
    assert bpy.context.scene.camera
    assert bpy.context.scene.render.use_lock_interface, "it renders without a warning"
    assert_has_body(rig)


@pytest.mark.parametrize("name", [TORSO, FINGER])
def test_limits_hold_on_every_frame(name: str) -> None:
    rig = open_sample(name)
    limited = [bone.name for bone in rig.pose.bones if bone.use_ik_limit_x]
    assert len(limited) == BONES[name] - (name == FINGER)
    for frame in played():
        for bone in limited:
            assert beyond_limits(rig, bone) < ALLOWED, f"'{bone}' on frame {frame}"


def test_spider_walks_and_its_planted_feet_do_not_slide() -> None:
    rig = open_sample(SPIDER)
    feet: list[list[np.ndarray]] = []
    bodies = []
    for _frame in played():
        feet.append([rigs.tail(rig, f"tibia.{leg}") for leg in LEGS])
        bodies.append(rigs.head(rig, "body"))
    places = np.array(feet)
    floor = places[:, :, 2].min()
    standing = places[:, :, 2] < floor + PLANTED
    planted = standing[1:] & standing[:-1]
    steps = np.linalg.norm(np.diff(places, axis=0), axis=2)
    assert steps[planted].max() < PLANTED
    assert standing.sum(axis=1).min() >= 4, "it stands on half of its feet at least"
    lifted = (~standing[1:] & standing[:-1]).sum(axis=0)
    assert lifted.min() >= 5, "each foot steps again and again"
    assert len({int(np.argmax(~standing[:, i])) for i in range(len(LEGS))}) >= 4, "they step in turns"
    assert np.linalg.norm(np.diff(bodies, axis=0), axis=1).min() > 0.01, "the body never stands still"
    assert np.linalg.norm(np.diff(bodies, axis=0), axis=1).max() < 0.1


def out_of_plane(rig: bpy.types.Object) -> float:
    """Return how far the flat arm's joints are off the XZ plane."""
    bones = rigs.evaluated(rig).pose.bones
    return max(abs(float(place.y)) for bone in bones for place in (bone.head, bone.tail))


def test_flat_arm_stays_flat() -> None:
    rig = open_sample(FLAT)
    assert rig.pose.bones["link.4"].ik_addon.planar
    for frame in played():
        assert out_of_plane(rig) < 1e-6, f"frame {frame}"


def test_feet_of_the_character_stay_level_while_its_hips_sink() -> None:
    rig = open_sample(CHARACTER)
    assert rig.pose.bones["forearm.L"].lock_ik_z, "it has the limits of a human"
    heights = []
    for frame in played():
        heights.append(rigs.head(rig, "hips")[2])
        for side in "LR":
            if side == "R" or not 56 < frame < 88:
                foot, rest = rigs.evaluated(rig).pose.bones[f"foot.{side}"], rig.data.bones[f"foot.{side}"]
                assert (foot.head - rest.head_local).length < PLANTED, f"frame {frame}"
                assert (foot.tail - rest.tail_local).length < PLANTED, f"frame {frame}"
            assert rigs.head(rig, f"shin.{side}")[1] < rigs.head(rig, f"foot.{side}")[1] + 1e-3, "the knee is in front"
    assert np.ptp(heights) > 0.2


def folds(rig: bpy.types.Object, names: list[str]) -> list[float]:
    """Return the sines of the angles between consecutive bones, seen from the side: positive to the front."""
    bones = rigs.evaluated(rig).pose.bones
    lines = [(bones[name].tail - bones[name].head).normalized() for name in names]
    return [float(a.cross(b).x) for a, b in pairwise(lines)]


def test_horses_legs_fold_the_right_way_and_its_hooves_hold_still() -> None:
    rig = open_sample(HORSE)
    stifles, carpi = [], []
    for frame in played():
        for side in "LR":
            stifle, hock = folds(rig, [f"{name}.{side}" for name in ("femur", "tibia", "metatarsus")])
            assert stifle > 0.5, f"frame {frame}"
            assert hock < -0.5, f"frame {frame}: to the other side"
            elbow, carpus = folds(rig, [f"{name}.{side}" for name in ("humerus", "radius", "metacarpus")])
            assert elbow < -0.3, f"frame {frame}"
            assert carpus > -0.01, f"frame {frame}: to the other side"
            for hoof in ("hind_hoof", "front_hoof"):
                if (hoof, side) != ("front_hoof", "L") or not 72 < frame < 100:
                    rest = rig.data.bones[f"{hoof}.{side}"].tail_local
                    assert rigs.tail(rig, f"{hoof}.{side}") == pytest.approx(rest[:], abs=PLANTED), f"frame {frame}"
            stifles.append(stifle)
            carpi.append(carpus)
    assert np.ptp(stifles) > 0.05
    assert max(carpi) > 0.5, "it lifts a foot"


def test_the_hand_follows_the_crate_and_switching_makes_no_jump() -> None:
    rig = open_sample(SWITCHES)
    hands, crates, misses, shares = [], [], [], []
    for _frame in played():
        hands.append(rigs.head(rig, "hand"))
        crates.append(rigs.position(bpy.data.objects["Crate"]))
        misses.append(miss(rig))
        shares.append(rig.pose.bones["forearm"].ik_addon.influence)
    held = np.array(hands)[25:62] - np.array(crates)[25:62]
    assert np.ptp(crates, axis=0).max() > 0.5
    assert held == pytest.approx(np.tile(held[0], (len(held), 1)), abs=1e-5)
    assert [share == 1.0 for share in shares] == [not 64 <= frame < 104 for frame in frames()]
    assert max(m for m, share in zip(misses, shares, strict=True) if share == 1.0) < SOLVED
    steps = np.linalg.norm(np.diff(hands, axis=0), axis=1)
    assert steps.max() < 0.2
    assert max(steps[frame - 2] for frame in (26, 62, 64, 104)) < 0.03, "from the frame before to that of the switch"
    assert max(misses[69:102]) > 0.5, "it waves while the target stays behind"


def test_converted_sample_matches_its_constraints_and_converts_back() -> None:
    rig = open_sample(CONVERTED)
    constraints = {side: rig.pose.bones[f"shin.{side}"].constraints["IK"] for side in "LR"}
    for side, constraint in constraints.items():
        chain = rig.pose.bones[f"shin.{side}"].ik_addon
        assert constraint.mute
        assert (chain.target, chain.pole, chain.chain_length) == (constraint.target, constraint.pole_target, 2)
    poses = rigs.poses_at(rig, (1, 30, 58, 90))
    bpy.context.view_layer.objects.active = rig
    bpy.ops.ik_addon.restore_constraints()
    assert not any(constraint.mute for constraint in constraints.values())
    assert not any(bone.ik_addon.is_chain for bone in rig.pose.bones)
    for frame, pose in rigs.poses_at(rig, poses).items():
        # Blender's own IK stops within a thousandth of a bone; the converted chains are exact.
        assert pose == pytest.approx(poses[frame], abs=5e-3), f"frame {frame}"


@pytest.mark.parametrize("name", BONES)
def test_sample_plays_on_its_targets_and_above_the_floor_the_same_in_any_order(name: str) -> None:
    rig = open_sample(name)
    assert miss(rig) < SOLVED, "it opens solved"
    opened = {bpy.context.scene.frame_current: rigs.pose(rig)}
    floor = bpy.data.objects["Floor"].data.vertices[0].co.z
    poses: rigs.Poses = {}
    for frame in played():
        poses[frame] = rigs.pose(rig)
        ends = [rig.matrix_world @ end for bone in rig.pose.bones for end in (bone.head, bone.tail)]
        assert min(end.z for end in ends) > floor - 1e-3, f"frame {frame}"
        assert name in LEAVING or miss(rig) < SOLVED, f"frame {frame}"
    assert not rigs.apart(opened, {frame: poses[frame] for frame in opened})
    shuffled = random.Random(7).sample(frames(), len(frames()) // 3)
    assert not rigs.apart(rigs.poses_at(rig, shuffled), {frame: poses[frame] for frame in shuffled})
    assert len({pose.tobytes() for pose in poses.values()}) > 100, "it moves"


@pytest.mark.parametrize("name", [name for name in BONES if name != SWITCHES])
def test_sample_opens_solved_without_the_addon(name: str) -> None:
    blender.disable()
    rig = open_sample(name)
    assert not hasattr(rig, "ik_addon")
    assert miss(rig) < SOLVED


def test_the_character_is_an_asset_that_brings_all_its_data() -> None:
    rigs.new_file()
    libraries: Any = bpy.data.libraries  # the stubs do not know its result
    with libraries.load(str(FOLDER / f"{CHARACTER}.blend"), link=False, assets_only=True) as (source, wanted):
        assert source.collections == ["Figure"]
        wanted.collections = source.collections
    (figure,) = wanted.collections
    assert min(figure.preview.image_size) >= 64
    assert np.ptp(np.array(figure.preview.image_pixels_float)) > 0.5
    scene = bpy.context.scene
    scene.collection.children.link(figure)
    rig = scene.objects["Figure"]
    for frame in (1, 40):
        scene.frame_set(frame)
        assert miss(rig) < SOLVED
    target = scene.objects["IK Target forearm.L"]
    target.animation_data_clear()
    rigs.shift(target, z=0.1)
    assert miss(rig) < SOLVED


# ---- bodies without chains, with pins

PINNED = {
    "posing_human": {"foot.L": True, "foot.R": True, "head": False},
    "posing_horse": {f"{hoof}.{side}": True for hoof in ("hoof", "forehoof") for side in "LR"},
}
"""By sample: the pinned bones (their orientation is pinned), and whether their place is pinned too."""


def ends_of(rig: bpy.types.Object, bones: dict[str, bool]) -> dict[str, np.ndarray]:
    """Return the axes of each bone and, where its place is pinned, its place."""
    posed = rigs.evaluated(rig).pose.bones
    return {bone: np.array(posed[bone].matrix)[:3, : 4 if placed else 3] for bone, placed in bones.items()}


@pytest.mark.parametrize("name", PINNED)
def test_body_opens_ready_to_be_dragged(name: str) -> None:
    assert (FOLDER / f"{name}.blend").stat().st_size < 500_000
    rig = open_sample(name)
    assert rig.mode == "POSE"
    assert not any(bone.ik_addon.is_chain for bone in rig.pose.bones)
    assert [ob.name for ob in bpy.context.scene.objects if ob.type == "EMPTY"] == []
    wanted = {bone: {"LOCATION", "ROTATION"} if placed else {"ROTATION"} for bone, placed in PINNED[name].items()}
    assert {bone.name: set(bone.ik_addon.pin) for bone in rig.pose.bones if bone.ik_addon.pin} == wanted
    assert [bone.name for bone in rig.pose.bones if bone.use_ik_limit_x], "it has limits"
    assert_has_body(rig)


@pytest.mark.parametrize("name", PINNED)
def test_pins_of_a_body_hold_while_its_active_bone_is_dragged(name: str) -> None:
    rig = open_sample(name)
    active = bpy.context.active_pose_bone.name
    pinned = ends_of(rig, PINNED[name])
    for offset in ((0.1, -0.1, 0.2), (-0.1, 0.1, -0.3), (0.2, 0.2, 0.1)):
        before = rigs.head(rig, active)
        bpy.ops.ik_addon.pose_body(offset=offset)
        bpy.context.view_layer.update()
        assert rigs.head(rig, active) - before == pytest.approx(np.array(offset), abs=2e-4)
        for bone, place in ends_of(rig, PINNED[name]).items():
            assert place == pytest.approx(pinned[bone], abs=2e-3), bone


# ---- the scene of `make demo`, without its pictures: a human metarig, with four chains attached to a fifth


def test_demo_bake_matches_its_live_solution_without_the_addon() -> None:
    """All five chains reach their targets on every frame, no bone is stretched, and the bake moves no joint."""
    rig = demo.new_scene()
    demo.set_live(rig, True)
    live = demo.play(rig)
    for frame in (1, 25, 48, 74, 110):
        bpy.context.scene.frame_set(frame)
        for bone in rigs.evaluated(rig).pose.bones:
            assert (bone.tail - bone.head).length == pytest.approx(bone.bone.length, rel=1e-4, abs=1e-6)
            assert not bone.bone.use_connect or (bone.head - bone.parent.tail).length < 1e-6
    demo.OPERATORS.ik_addon.bake()
    blender.disable()
    assert list(demo.complaints(live, demo.play(rig))) == []
    assert all(error > 0.0 for error in live.errors.values())
