"""Hands and feet on objects: in playback, none of them is below the ground."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon, Capture
from tests.feet import clips, walker
from tests.feet.walker import SLIDE
from tests.reliability.states import activate

ABOVE = 1e-4
"""Maximum height of contacts above the ground, in meters."""


def plane(name: str = "Ground", size: float = 50.0) -> bpy.types.Object:
    return rigs.mesh(name, [(-size, -size, 0), (size, -size, 0), (size, size, 0), (-size, size, 0)], [(0, 1, 2, 3)])


BOX = [(0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)]


def boxes(name: str, extents: Sequence[tuple[Sequence[float], Sequence[float]]]) -> bpy.types.Object:
    """Add boxes in one mesh, each given by its lowest and its highest corner."""
    corners: list[tuple[float, float, float]] = []
    faces: list[list[int]] = []
    for low, high in extents:
        first = len(corners)
        for z in (low[2], high[2]):
            corners += [(low[0], low[1], z), (high[0], low[1], z), (high[0], high[1], z), (low[0], high[1], z)]
        faces += [[first + corner for corner in face] for face in BOX]
    return rigs.mesh(name, corners, faces)


def gaps(addon: Addon, ob: bpy.types.Object, poses: Any, height: Callable[[Any], Any]) -> tuple[float, float]:
    """Return the least height of feet above the ground, and the greatest where both heel and toe touch."""
    lowest, farthest = np.inf, -np.inf
    for shin in (ob.pose.bones["shin.L"], ob.pose.bones["shin.R"]):
        above = np.array([side[:, 2] - height(side) for side in walker.pivots(ob, poses, shin.name)])
        flat = walker.contacts(addon, shin).all(axis=0)
        lowest, farthest = min(lowest, above.min()), max(farthest, above[:, flat].max())
    return float(lowest), float(farthest)


def flat(z: float) -> Callable[[Any], Any]:
    return lambda own: np.full(len(own), z)


def assert_stand(addon: Addon, ob: bpy.types.Object, poses: Any, height: Callable[[Any], Any]) -> None:
    """Assert that feet hold still on the ground and never go through it."""
    lowest, farthest = gaps(addon, ob, poses, height)
    assert lowest >= 0.0
    assert farthest < ABOVE
    walker.assert_hold(addon, ob, poses)


@pytest.mark.parametrize(("kind", "z"), [("mesh", 0.03), ("upside down", -0.03), ("empty", 0.03)])
def test_feet_stand_on_a_plane(addon: Addon, capfd: Capture, kind: str, z: float) -> None:
    ob = walker.figure("turn")
    ground = rigs.empty("Ground") if kind == "empty" else plane()
    ground.location.z = z
    if kind == "upside down":
        ground.rotation_euler.x = np.pi
    bpy.context.view_layer.update()
    assert_stand(addon, ob, walker.plant(ob, ground="Ground"), flat(z))
    before = re.search(r"Depth in the ground (\S+)% before, 0% now", capfd.readouterr().out)
    assert before is not None
    assert (float(before[1]) > 3.0) == (z > 0.0)


@pytest.mark.parametrize("has_hand", [False, True])
def test_limbs_that_follow_the_hips_do_not_hold_them(addon: Addon, capfd: Capture, has_hand: bool) -> None:
    """Set Up Character parents the targets of spine and head; a user may parent that of a hand resting on the body."""
    ob = walker.figure("turn")
    target = rigs.empty("Carried", ob.pose.bones["chest"].tail)
    tip = rigs.chain(ob, "chest", target, 1)
    if has_hand:
        rigs.add_bones(ob, [(0, 0, 1.5), (0, 0.1, 1.5)], ["hand"], parent="chest")
        tip.ik_addon.end_bone = "hand"
    place = target.matrix_world.copy()
    rigs.change(target, parent=ob, parent_type="BONE", parent_bone="hips")
    target.matrix_world = place
    target.keyframe_insert("location", frame=1)
    rigs.change(plane().location, z=0.3)
    bpy.ops.ik_addon.find_contacts()
    hips = ob.pose.bones.find("hips")
    before = walker.play(ob)[:, hips, 2, 3]
    capfd.readouterr()
    assert bpy.ops.ik_addon.plant(chains="ALL", ground="Ground") == {"FINISHED"}
    poses = walker.play(ob)
    assert poses[:, hips, 2, 3] - before == pytest.approx(0.3, abs=0.02)
    assert walker.slide(addon, ob, poses) < SLIDE
    said = "Target 'Carried' is attached to the hips, so it was not kept out of the ground"
    assert (said in capfd.readouterr().out) == has_hand


def test_feet_follow_a_slope(addon: Addon) -> None:
    ob = walker.figure("turn")
    rigs.change(plane(), rotation_euler=(0.2, 0.1, 0.0))
    world = np.array(bpy.data.objects["Ground"].matrix_world)
    normal = world[:3, 2]
    poses = walker.plant(ob, ground="Ground")
    assert_stand(addon, ob, poses, lambda own: -(own[:, :2] @ normal[:2]) / normal[2])


def test_feet_climb_stairs_of_overlapping_boxes(addon: Addon) -> None:
    """The stairs are 3 cm higher than those of the clip, so feet begin inside them."""
    ob = walker.walking("stairs")
    noted = clips.read("stairs")
    places = [place for side in ("Left", "Right") for place in noted[side]["places"]]
    steps = [((-2.0, y - 0.15, -1.0), (2.0, 50.0, z + 0.03)) for _x, y, z, _yaw in places]
    boxes("Ground", [((-50.0, -50.0, -1.0), (50.0, 50.0, 0.03)), *steps])

    def height(own: Any) -> Any:
        return np.max([np.where(own[:, 1] > low[1], high[2], 0.03) for low, high in steps], axis=0)

    poses = walker.plant(ob, ground="Ground")
    assert gaps(addon, ob, poses, height)[0] >= 0.0
    assert walker.slide(addon, ob, poses) < SLIDE


@pytest.mark.parametrize("rise", [0.03, -0.03])
def test_a_level_walk_goes_up_and_down_stairs(addon: Addon, rise: float) -> None:
    """Feet come down right in front of edges and over them."""
    ob = walker.figure("turn")
    edges = [-0.3 + 0.1 * k for k in range(8)]
    levels = [rise * k for k in range(len(edges) + 1)]
    ends = [-50.0, *edges, 50.0]
    boxes("Stairs", [((-50.0, ends[k], -2.0), (50.0, ends[k + 1], level)) for k, level in enumerate(levels)])
    poses = walker.plant(ob, ground="Stairs", cap=0.5)
    assert gaps(addon, ob, poses, lambda own: np.array(levels)[np.searchsorted(edges, own[:, 1])])[0] >= -1e-6
    walker.assert_hold(addon, ob, poses)


@pytest.mark.parametrize("moving", ["place", "turn"])
def test_feet_hold_still_on_a_moving_ground(addon: Addon, moving: str) -> None:
    ob = walker.figure("turn")
    ground = plane()
    if moving == "place":
        rigs.key(ground, "location", {1: (0, 0, -0.05), 190: (0.3, 0.2, 0.1)})
    else:
        rigs.key(ground, "rotation_euler", {1: (0, 0, 0), 190: (0.08, 0.05, 0.2)})
    poses = walker.plant(ob, ground="Ground")
    assert_stand(addon, ob, np.linalg.inv(walker.world_of(ground))[:, None] @ poses, flat(0.0))


def test_feet_stay_out_of_a_deforming_ground(addon: Addon) -> None:
    ob = walker.figure("turn", frames=190)
    ground = plane()
    ground.shape_key_add(name="Basis")
    risen = ground.shape_key_add(name="Risen")
    for corner in risen.data:
        corner.co.z = 0.1
    rigs.key(risen, "value", {1: 0.0, 190: 1.0})
    poses = walker.plant(ob, ground="Ground")
    levels = rigs.on_frames(range(1, bpy.context.scene.frame_end + 1), lambda: 0.1 * risen.value)
    assert max(levels.values()) > 0.09
    assert gaps(addon, ob, poses, lambda _own: np.array(list(levels.values())))[0] >= -1e-6


def arm(z: float) -> bpy.types.Object:
    """Return an arm whose hand comes down to a height, stays there, and rises again."""
    ob = rigs.limb([(0, 0, 0), (0, 0, 1.4)], ["chest"], name="Figure")
    rigs.add_bones(
        ob,
        [(0.2, 0, 1.4), (0.5, 0.03, 1.3), (0.75, -0.02, 1.1)],
        ["upper_arm.L", "forearm.L"],
        parent="chest",
        connect=False,
    )
    rigs.add_bones(ob, [(0.75, -0.02, 1.1), (0.75, -0.2, 1.1)], ["hand.L"], parent="forearm.L")
    rigs.chain(ob, "forearm.L", rigs.empty("Target", (0.75, -0.02, 1.1)), 2).ik_addon.end_bone = "hand.L"
    activate(ob, "forearm.L")
    bpy.ops.ik_addon.follow_rotation()
    target = bpy.data.objects["Target"]
    rigs.key(target, "location", {1: (0.6, -0.1, 1.3), 20: (0.6, -0.2, z), 40: (0.6, -0.2, z), 60: (0.5, 0.1, 1.4)})
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 60
    ob.ik_addon.live = True
    return ob


@pytest.mark.parametrize("has_contact", [True, False])
def test_a_hand_rests_on_a_table(has_contact: bool) -> None:
    ob = arm(0.96)
    boxes("Table", [((0.2, -1.0, 0.95), (1.2, 0.5, 1.0)), ((0.3, -0.9, 0.0), (0.4, -0.8, 0.97))])
    if has_contact:
        bpy.ops.ik_addon.find_contacts(chains="ALL")
    assert bpy.ops.ik_addon.plant(chains="ALL", ground="Table") == {"FINISHED"}
    poses = walker.play(ob)
    chain: Any = ob.pose.bones["forearm.L"].ik_addon
    if not any(chain.toe_pivot):
        bpy.ops.ik_addon.find_pivots()
    own = walker.pivots(ob, poses, "forearm.L")
    over = (own[..., 0] > 0.2) & (own[..., 1] < 0.5) & (own[..., 1] > -1.0)
    assert (own[..., 2] - 1.0)[over].min() >= 0.0
    assert np.abs(own[:, 25:35, 2] - 1.0).max() < (ABOVE if has_contact else 0.02)


def test_a_hand_below_a_table_stays_there() -> None:
    ob = arm(0.96)
    rigs.key(bpy.data.objects["Target"], "location", dict.fromkeys((1, 20, 40, 60), (0.5, 0.0, 1.0)))
    boxes("Table", [((0.2, -1.0, 1.02), (1.2, 0.5, 1.06))])
    poses = walker.plant(ob, chains="ALL", ground="Table")
    assert walker.pivots(ob, poses, "forearm.L")[0, :, 2] == pytest.approx(1.0, abs=1e-4)


def test_a_roof_is_not_the_ground(addon: Addon) -> None:
    ob = walker.figure("turn")
    corners = [(x, y, z) for z in (0.0, 2.6) for x, y in ((-50, -50), (50, -50), (50, 50), (-50, 50))]
    rigs.mesh("Ground", corners, [(0, 1, 2, 3), (4, 5, 6, 7)])
    assert_stand(addon, ob, walker.plant(ob, ground="Ground"), flat(0.0))


def test_a_chain_without_a_target_is_left_out() -> None:
    ob = walker.figure("turn")
    plane()
    activate(ob, "shin.R")
    bpy.ops.ik_addon.find_contacts(chains="ACTIVE")
    ob.pose.bones["shin.L"].ik_addon.target = None
    assert bpy.ops.ik_addon.plant(ground="Ground") == {"FINISHED"}


def test_an_empty_object_is_no_ground() -> None:
    walker.figure("turn", frames=30)
    bpy.ops.ik_addon.find_contacts()
    for kind in ("CURVE", "FONT", "SURFACE", "META"):
        data: Any = bpy.data.metaballs.new(kind) if kind == "META" else bpy.data.curves.new(kind, kind)
        bpy.context.scene.collection.objects.link(bpy.data.objects.new(kind, data))
        assert bpy.ops.ik_addon.plant(ground=kind) == {"FINISHED"}, kind
