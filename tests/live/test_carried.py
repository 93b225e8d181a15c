"""Targets that another live chain carries: the tip is where Blender shows the target, or nothing says Reached."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import bpy
import pytest
from mathutils import Vector

from tests import rigs
from tests.conftest import Addon
from tests.live import carried
from tests.live.carried import FRAMES, KINDS, Carried, Carry, build, on_skin
from tests.rigs import apart, miss, poses_at

NEAR = 1e-5
EACH = [
    pytest.param(kind, shared, id=f"{kind}, {'one armature' if shared else 'two armatures'}")
    for kind, shared in itertools.product(KINDS, (True, False))
]
"""All ways to carry the target, in one armature and between two."""


def live(kind: str, shared: bool) -> Carried:
    """Return an arm and a spine that are live."""
    own = build(KINDS[kind], shared=shared)
    rigs.go_live(*{own.spine, own.arm})
    return own


def assert_there(addon: Addon, own: Carried, when: str) -> None:
    """Assert that the arm reaches its target as Blender shows it, and that the panel says so."""
    assert miss(own.arm) < NEAR, when
    assert addon.report(own.arm, "lower").reached, when


def assert_in_any_order(arm: bpy.types.Object, check: Callable[[str], None]) -> None:
    """Go to frames in order and again in disorder: check each, and that the pose is the same."""
    expected: rigs.Poses = {}
    for frame in (*FRAMES, 9, 21, 1, 17, 5, 13, 13):
        found = poses_at(arm, [frame])
        expected = found | expected
        assert not apart(found, {frame: expected[frame]}), f"frame {frame} again"
        check(f"frame {frame}")


@pytest.mark.parametrize(("kind", "shared"), EACH)
def test_a_carried_target_is_reached_on_all_frames_and_when_something_moves(
    addon: Addon, kind: str, shared: bool
) -> None:
    own = live(kind, shared)
    assert_in_any_order(own.arm, lambda when: assert_there(addon, own, when))
    bpy.context.scene.frame_set(9)
    own.bend.animation_data_clear()
    for moved, place in ((own.bend, (-0.3, 0.2, 0.8)), (own.target, None), (own.bend, (0.2, 0.3, 0.8))):
        rigs.change(moved, location=place or own.target.location + Vector((0.0, 0.0, 0.05)))
        assert_there(addon, own, f"after '{moved.name}' was moved to {moved.location[:]}")


@pytest.mark.parametrize(("kind", "shared"), EACH)
def test_a_bake_with_a_carried_target_reaches_it_or_says_that_it_does_not(
    addon: Addon, kind: str, shared: bool
) -> None:
    own = build(KINDS[kind], shared=shared)
    baking = addon.module("bake.baking")
    tips = ["spine2", "lower"] if shared else ["spine2"]
    reports = [baking.bake(bpy.context, own.spine, tips, range(1, 22))]
    if not shared:
        reports.append(baking.bake(bpy.context, own.arm, ["lower"], range(1, 22)))
    assert [report.missed for report in reports] == [0] * len(reports)
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        assert miss(own.arm) < 1e-4, f"frame {frame}"


def off_the_pole(arm: bpy.types.Object) -> float:
    """Return the angle by which the elbow bends to another side than that of the pole as Blender shows it."""
    places = (rigs.head(arm, "upper"), rigs.head(arm, "lower"), rigs.tail(arm, "lower"))
    shoulder, elbow, wrist = map(Vector, places)
    chain = arm.pose.bones["lower"].ik_addon
    pole = Vector(rigs.head(chain.pole, chain.pole_bone) if chain.pole_bone else rigs.position(chain.pole))
    axis = (wrist - shoulder).normalized()
    sides = [(point - shoulder) - axis * (point - shoulder).dot(axis) for point in (elbow, pole)]
    return float(sides[0].angle(sides[1]))


@pytest.mark.parametrize(("kind", "shared"), EACH)
def test_a_carried_pole_is_followed_on_all_frames_in_any_order(kind: str, shared: bool) -> None:
    own = build(KINDS[kind], shared=shared)
    chain = own.arm.pose.bones["lower"].ik_addon
    chain.pole, chain.pole_bone = chain.target, chain.target_bone
    chain.target, chain.target_bone, chain.out_of_reach = rigs.empty("Place", (0.5, -0.35, 1.1)), "", "EXTEND"
    rigs.go_live(*{own.spine, own.arm})

    def towards_it(when: str) -> None:
        assert off_the_pole(own.arm) < 1e-4, when

    assert_in_any_order(own.arm, towards_it)


# ---- loops


def _lattice(own: Carried) -> None:
    """Let a lattice on the tip deform what carries the target."""
    skin = carried.add_skin(own.arm)
    skin.modifiers.clear()
    lattice = bpy.data.objects.new("Lattice", bpy.data.lattices.new("Lattice"))
    bpy.context.scene.collection.objects.link(lattice)
    carried.to_bone(lattice, own.arm, "lower")
    lattice.matrix_parent_inverse = own.arm.data.bones["lower"].matrix_local.inverted()
    lattice.location, lattice.scale = (0.3, -0.2, 0.6), (2.0, 2.0, 2.0)
    deform: Any = skin.modifiers.new("lattice", "LATTICE")
    deform.object = lattice
    carried.on_vertex(own.target, skin)


def _driven_influence(own: Carried) -> None:
    aim = {"bone_target": "upper", "transform_type": "ROT_X", "transform_space": "LOCAL_SPACE"}
    path = 'pose.bones["lower"].ik_addon.influence'
    carried.driven(own.arm, path, -1, own.arm, "0.5 + abs(value)", **aim)


def _on_tip(kind: str, own: Carried) -> object:
    return carried.constraint(own.target, kind, own.arm, "lower")


LOOPS: dict[str, Carry] = {
    "vertex of its skin": on_skin("VERTEX", "arm", "lower"),
    "vertex group of its skin": on_skin("COPY_LOCATION", "arm", "lower"),
    "Shrinkwrap to its skin": on_skin("SHRINKWRAP", "arm", "lower"),
    "lattice on its tip": _lattice,
    "driver by its tip": lambda own: carried.drive(own.target, own.arm, "lower"),
    "Copy Location of its tip, with offset": lambda own: carried.constraint(
        own.target, "COPY_LOCATION", own.arm, "lower", use_offset=True
    ),
    "influence driven by its bone": _driven_influence,
    **{
        f"{kind} by its tip": partial(_on_tip, kind)
        for kind in ("LIMIT_DISTANCE", "ARMATURE", "FLOOR", "PIVOT", "TRANSFORM")
    },
}


@pytest.mark.parametrize("kind", LOOPS)
def test_a_chain_whose_target_follows_the_chain_itself_says_so(addon: Addon, kind: str) -> None:
    own = build(LOOPS[kind], shared=False)
    rigs.go_live(own.arm)
    for frame in (1, 9, 20):
        bpy.context.scene.frame_set(frame)
        report = addon.report(own.arm, "lower")
        assert report.failed, f"frame {frame}"
        assert "chain" in report.message, "what is wrong"


@pytest.mark.parametrize("weight", [0.0, 0.5], ids=["elsewhere", "here"])
def test_a_target_on_a_body_that_the_chain_deforms_is_reached_or_refused(addon: Addon, weight: float) -> None:
    """One mesh for the whole body: the arm deforms other vertices, or also the one that carries the target."""

    def carry(own: Carried) -> None:
        body = carried.add_skin(own.spine)
        group = body.vertex_groups.new(name="lower")
        group.add([1], 1.0, "REPLACE")
        if weight:
            group.add([0], weight, "REPLACE")
        carried.on_vertex(own.target, body)

    own = build(carry)
    rigs.go_live(own.spine)
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        report = addon.report(own.arm, "lower")
        assert (report.failed and "chain" in report.message) or (miss(own.arm) < NEAR and report.reached), frame


def test_armatures_that_carry_each_other_have_the_same_pose_to_the_last_bit_on_a_frame() -> None:
    own = build(KINDS["bone parent"], shared=False)
    rigs.add_bones(own.arm, [(0, 0, -1), (0, 0, 0)], ["base"])
    own.spine.parent, own.spine.parent_type, own.spine.parent_bone = own.arm, "BONE", "base"
    rigs.key(own.bend, "location", {frame: (0.1, -0.3, 0.8 + 1e-7 * frame) for frame in FRAMES})  # hardly moves
    rigs.go_live(own.spine, own.arm)
    found: dict[int, set[bytes]] = {frame: set() for frame in FRAMES}
    for frame in (*FRAMES, *FRAMES[::-1], *FRAMES[::2], *FRAMES):
        bpy.context.scene.frame_set(frame)
        found[frame].add(rigs.channels(own.arm).tobytes())
    assert len(set.union(*found.values())) > 1, "it moves"
    assert not [frame for frame, poses in found.items() if len(poses) > 1]
