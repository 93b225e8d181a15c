"""Chains whose targets are attached to bones that other chains move."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from tests import rigs
from tests.conftest import Addon
from tests.rigs import miss


def at_bone(name: str, ob: bpy.types.Object, bone: str, location: rigs.Point) -> bpy.types.Object:
    """An empty parented to a bone, at a world location."""
    goal = rigs.empty(name)
    rigs.change(goal, parent=ob, parent_type="BONE", parent_bone=bone)
    goal.matrix_world = Matrix.Translation(location)
    return goal


def two_arms() -> tuple[bpy.types.Object, bpy.types.Object]:
    """Two arms in one armature, side by side; the leader has a target."""
    ob = rigs.limb([(2, 0, 0), (2, -0.2, 1), (2, 0, 2)], ["upper.B", "lower.B"])
    return ob, rigs.add_arm(ob, 0.0, ["upper.A", "lower.A"], "Leader")


def assert_followed(
    leader: bpy.types.Object, *chains: tuple[bpy.types.Object, str], frames: tuple[int, ...] = (1, 7, 20, 3)
) -> None:
    """Assert that live chains reach their targets while the leader is animated, and when it is moved."""
    rigs.key(leader, "location", {1: (0.1, 0.6, 1.2), 20: (-0.2, -0.3, 0.9)})
    for ob, _tip in chains:
        ob.ik_addon.live = True
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        for ob, tip in chains:
            assert miss(ob, tip) < 1e-5, f"frame {frame}"
    rigs.shift(leader, x=0.3)
    for ob, tip in chains:
        assert miss(ob, tip) < 1e-5, "after a move"


def a_follower(leader_rig: bpy.types.Object, shared: bool) -> tuple[bpy.types.Object, str]:
    """Return an armature and the tip of a chain in it: the leader's second arm, or an armature of its own."""
    return (leader_rig, "lower.B") if shared else (rigs.arm()[0], "lower")


def test_follows_a_target_in_a_skewed_armature() -> None:
    """The last row of a parent inverse can be set too; the world matrix is then not affine."""
    follower, _goal = rigs.arm()
    follower.name = "A follower comes first by name"
    leader_rig, leader = two_arms()
    rigs.add_bones(leader_rig, [(0, 0, 2), (0, 0, 2.3)], ["hand"], parent="lower.A")
    rigs.chain(follower, "lower", leader_rig, 2, target_bone="hand", out_of_reach="STRETCH")
    leader_rig.parent = rigs.empty("Parent")
    leader_rig.matrix_parent_inverse[3] = (0.1, -0.05, 0.2, 0.9)
    assert_followed(leader, (leader_rig, "lower.A"), (follower, "lower"))


@pytest.mark.parametrize(
    "way", ["child", "child of an empty", "Child Of", "Copy Location", "Copy Location of an empty"]
)
def test_an_armature_attached_to_a_chain_of_another_follows_it(way: str) -> None:
    leader_rig, leader = two_arms()
    follower, goal = rigs.arm()
    follower.name = "A follower comes first by name"
    leader_rig.location = (-0.5, 0.3, 0.1)
    holder = follower
    if way == "child of an empty":
        holder = rigs.empty("Between", (0.2, 0.0, 0.3))
        follower.parent = holder
    if way == "Copy Location of an empty":
        between = at_bone("Between", leader_rig, "lower.A", (0.4, 0.5, 1.1))
        rigs.constrain(holder, "COPY_LOCATION", target=between)
    elif way in {"Child Of", "Copy Location"}:
        rigs.constrain(holder, way.upper().replace(" ", "_"), target=leader_rig, subtarget="lower.A")
    else:
        holder.parent, holder.parent_type, holder.parent_bone = leader_rig, "BONE", "lower.A"
    third, _ = rigs.arm()
    rigs.add_bones(follower, [(0, 0, 2), (0, 0, 2.2)], ["hand"], parent="lower")
    rigs.chain(third, "lower", follower, 2, target_bone="hand", out_of_reach="STRETCH")
    rigs.chain(follower, "lower", goal, 2, out_of_reach="STRETCH")
    assert_followed(leader, (leader_rig, "lower.A"), (follower, "lower"), (third, "lower"))


# ---- bones that a chain moves, and the target of another one is on them


def _constrained(kind: str, ob: bpy.types.Object, _leader: bpy.types.Object) -> str:
    """Let a bone beside the chain follow it by a constraint."""
    rigs.add_bones(ob, [(1.5, 0, 1.5), (1.5, 0, 1.7)], ["space"])
    rigs.add_bones(ob, [(1.6, 0.2, 1.5), (1.6, 0.2, 1.7)], ["control"], parent="space")
    # Copy Location moves a bone without turning it; where its children go is only known after Blender's evaluation.
    holder = "control" if kind == "COPY_LOCATION" else "space"
    rigs.constrain(ob.pose.bones[holder], kind, target=ob, subtarget="lower.A")
    return "control"


def _constrained_below(kind: str, connect: bool, ob: bpy.types.Object, _leader: bpy.types.Object) -> str:
    """Constrain a bone below the chain."""
    points = [(0.0, 0.0, 2.0), (0.0, 0.0, 2.3), (0.2, 0.0, 2.5)]
    rigs.add_bones(ob, points, ["hand", "thumb"], parent="lower.A", connect=connect)
    place = rigs.empty("Place", (1.1, 0.4, 1.3))
    place.rotation_euler = (0.3, -0.5, 0.8)
    ob.pose.bones["hand"].constraints.new(kind).target = place
    return "thumb"


def _flat(what: str, ob: bpy.types.Object, _leader: bpy.types.Object) -> str:
    """Scale a bone below the chain, the one above it, or the armature, to zero on one axis."""
    rigs.add_bones(ob, [(0, 0, 2), (0, 0, 2.3)], ["hand"], parent="lower.A")
    ob.location = (-0.5, 0.3, 0.1)
    if what == "armature":
        rigs.key(ob, "scale", {1: (1, 1, 1), 7: (1, 0, 1), 20: (1, 0, 1)})
        return "hand"
    ob.pose.bones["hand"].scale.x = 0.0
    if what == "bone":
        return "hand"
    rigs.add_bones(ob, [(0.1, 0.2, 2.3), (0.4, 0.1, 2.5)], ["thumb"], parent="hand")
    for bone, turn in (("hand", (0.8, 0.3, -0.4, 0.3)), ("thumb", (0.7, -0.2, 0.5, 0.4))):
        ob.pose.bones[bone].rotation_quaternion = turn
    return "thumb"


def _flat_root(inherit: str, axis: int, held: str, ob: bpy.types.Object, leader: bpy.types.Object) -> str:
    """Scale the root of a chain flat: what is attached follows it, although none of its matrices has an inverse."""
    rigs.add_bones(ob, [(0.0, 0.0, 0.0), (0.3, 0.2, 0.3)], ["plate"])
    rigs.add_bones(ob, [(0.1, 0, 0.5), (0.1, -0.2, 0.9), (0.1, 0, 1.4)], ["up", "low"], parent="plate")
    rigs.add_bones(ob, [(0.3, 0.1, 1.5), (0.5, 0.2, 1.7)], ["hand"], parent="low")
    rigs.add_bones(ob, [(0.4, 0.3, 1.6), (0.5, 0.2, 1.9)], ["thumb"], parent="hand")
    ob.pose.bones["plate"].scale[axis] = 0.0
    # Turned, because matrices of bones along the flat axis consist of rounding error, which Blender magnifies.
    ob.pose.bones["up"].rotation_quaternion = (0.9, 0.2, -0.3, 0.2)
    ob.pose.bones["hand"].rotation_quaternion = (0.8, 0.3, -0.4, 0.3)
    ob.data.bones["hand"].inherit_scale = inherit
    rigs.chain(ob, "low", leader, 3)
    return held


KINDS = ("CHILD_OF", "COPY_LOCATION", "COPY_TRANSFORMS")
HOLDS: dict[str, Callable[[bpy.types.Object, bpy.types.Object], str]] = {
    **{f"{kind} to the chain": partial(_constrained, kind) for kind in KINDS},
    **{f"{kind} below the chain": partial(_constrained_below, kind, False) for kind in KINDS},
    **{f"{kind} below the chain, connected": partial(_constrained_below, kind, True) for kind in KINDS},
    **{f"flat {what}": partial(_flat, what) for what in ("armature", "bone", "bone above it")},
    # NONE and AVERAGE magnify rounding here
    "below a flat root": partial(_flat_root, "FULL", 0, "hand"),
    "below a flat root, without shear": partial(_flat_root, "FIX_SHEAR", 1, "thumb"),
    "below a flat root, aligned": partial(_flat_root, "ALIGNED", 2, "thumb"),
}
"""What is done to an armature and the target of its first arm; returns the bone for the target of another chain."""


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("hold", HOLDS)
def test_follows_a_target_on_a_bone_that_a_chain_moves(hold: str, shared: bool) -> None:
    if (hold, shared) == ("flat armature", True):
        return  # nothing of it could be reached
    ob, leader = two_arms()
    held = HOLDS[hold](ob, leader)
    follower, tip = a_follower(ob, shared)
    rigs.chain(follower, tip, ob, 2, target_bone=held, out_of_reach="STRETCH")
    ob.ik_addon.live = True
    leads = [(ob, "lower.A")] if "flat" not in hold else []
    assert_followed(leader, *leads, (follower, tip))


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_target_on_a_flat_bone_gives_the_same_rotation_live_and_baked(mirrored: bool) -> None:
    leader_rig, leader = two_arms()
    rigs.add_bones(leader_rig, [(0, 0, 2), (0, 0.1, 2.3)], ["hand"], parent="lower.A")
    leader_rig.pose.bones["hand"].scale = (-0.7 if mirrored else 0.7, 1.2, 0.0)
    follower = rigs.arm()[0]
    rigs.chain(follower, "lower", leader_rig, 2, target_bone="hand", use_rotation=True)
    rigs.key(leader, "location", {1: (0.1, 0.6, 1.2), 20: (-0.2, -0.3, 0.9)})
    follower.ik_addon.live = leader_rig.ik_addon.live = True
    live = rigs.poses_at(follower, range(1, 21))
    rigs.bake(follower, 1, 20)
    for frame, pose in rigs.poses_at(follower, live).items():
        assert np.abs(pose - live[frame]).max() < 1e-5


def other_armature_with_joints() -> tuple[bpy.types.Object, bpy.types.Object]:
    """An arm whose target is the last of three bones of another armature, keyed as Euler angles."""
    follower = rigs.arm()[0]
    other = rigs.armature("Other")
    rigs.add_bones(other, [(0.4, 0.1, 0.2), (0.5, 0.2, 0.6), (0.3, 0.3, 0.9), (0.4, 0.2, 1.3)], ["a", "b", "c"])
    for bone, turn in (("a", (0.9, 0.5, -0.4)), ("b", (-0.3, 0.6, 0.8))):
        other.pose.bones[bone].rotation_mode = "XYZ"
        other.pose.bones[bone].rotation_euler = turn
    rigs.key(other, "location", {1: (0.0, 0.0, 0.0), 20: (0.2, -0.1, 0.1)})
    rigs.chain(follower, "lower", other, 2, target_bone="c", out_of_reach="STRETCH")
    follower.ik_addon.live = True
    return follower, other


@pytest.mark.parametrize("first", [1, 20])
def test_follows_a_target_below_a_bone_with_a_keyed_rotation_mode(first: int) -> None:
    follower, other = other_armature_with_joints()
    rigs.key(other.pose.bones["a"], "rotation_mode", {1: "YXZ", 11: "ZXY"})
    bpy.context.scene.frame_set(first)
    assert not rigs.missed(follower, (20, 1, 2, 10, 11, 12, 3), 1e-5)


def test_a_chain_without_a_target_follows_the_chain_above_it(addon: Addon) -> None:
    """The FK pose does not change here, so Blender evaluates each frame from the solution of the last."""
    ob, target = rigs.arm()
    rigs.add_bones(ob, [(0.0, 0.1, 2.1), (0.0, 0.2, 2.4), (0.1, 0.1, 2.7)], ["palm", "finger"], parent="lower")
    rigs.chain(ob, "finger", rigs.empty("Gone"), 2)
    gone = bpy.data.objects["Gone"]
    bpy.context.scene.collection.objects.unlink(gone)
    rigs.key(target, "location", {1: (0.1, 0.6, 1.2), 20: (-0.2, -0.3, 0.9)})
    ob.ik_addon.live = True
    bpy.context.scene.frame_set(1)
    before = rigs.evaluated(ob).pose.bones["lower"].matrix.inverted() @ rigs.evaluated(ob).pose.bones["palm"].matrix
    for frame in (2, 3, 4, 12, 20, 7):
        bpy.context.scene.frame_set(frame)
        assert "Internal" not in addon.report(ob).message
        assert miss(ob, "lower") < 1e-5
        bones = rigs.evaluated(ob).pose.bones
        assert np.allclose(bones["lower"].matrix.inverted() @ bones["palm"].matrix, before, atol=1e-5)


@pytest.mark.parametrize("way", ["armatures", "chains", "command"])
def test_a_bake_that_depends_on_another_armature_asks_to_bake_that_one_first(addon: Addon, way: str) -> None:
    one, first = two_arms()
    two, _ = rigs.arm()
    rigs.change(two, location=(0.0, 1.2, 0.2))
    middle = at_bone("On one", one, "lower.A", (0.2, 0.9, 1.3))
    two.pose.bones["lower"].ik_addon.target = middle
    last = at_bone("On two", two, "lower", (0.6, 0.9, 1.4))
    rigs.chain(one, "lower.B", last, 2, out_of_reach="STRETCH")
    two.pose.bones["lower"].ik_addon.out_of_reach = "STRETCH"
    rigs.key(first, "location", {1: first.location[:], 8: (0.2, 0.5, 1.2)})
    one.ik_addon.live = two.ik_addon.live = True
    poses = rigs.on_frames(range(1, 9), lambda: (miss(one, "lower.B"), rigs.pose(one), rigs.pose(two)))
    assert max(off for off, *_poses in poses.values()) < 1e-5
    bake = addon.module("bake")
    with pytest.raises(bake.UserError, match=f"Bake the chain on 'lower' of '{two.name}' first"):
        bake.bake(bpy.context, one, ["lower.A", "lower.B"], range(1, 9))
    if way == "command":
        bpy.context.scene.frame_end = 8
        assert addon.module("cli.command").main([]) == 0
    else:
        if way == "chains":
            bake.bake(bpy.context, one, ["lower.A"], range(1, 9))
        bake.bake(bpy.context, two, ["lower"], range(1, 9))
        bake.bake(bpy.context, one, ["lower.B"] if way == "chains" else ["lower.A", "lower.B"], range(1, 9))
    for frame, (_off, of_one, of_two) in poses.items():
        bpy.context.scene.frame_set(frame)
        np.testing.assert_allclose(rigs.pose(one), of_one, atol=1e-5)
        np.testing.assert_allclose(rigs.pose(two), of_two, atol=1e-5)


def carry(rng: random.Random, goal: bpy.types.Object, ob: bpy.types.Object, bone: str) -> None:
    """Make an object, or its parent, follow a bone in a random way."""
    way = rng.choice(["bone parent", "parent of the parent", "CHILD_OF", "COPY_LOCATION"])
    holder = goal
    if way == "parent of the parent":
        holder = goal.parent = rigs.empty("Holder")
        goal.location = (0.1, 0.0, 0.1)
    if way in {"bone parent", "parent of the parent"}:
        holder.parent, holder.parent_type, holder.parent_bone = ob, "BONE", bone
    else:
        rigs.constrain(holder, way, target=ob, subtarget=bone)


def limbs(count: int, rng: random.Random) -> list[tuple[bpy.types.Object, str]]:
    """Two-bone chains with a hand below each, spread over one to three armatures, with names in random order."""
    found = []
    owners = [rigs.armature(rng.choice("ABCDE")) for _ in range(rng.choice([1, 2, 3]))]
    for i in range(count):
        ob, x = rng.choice(owners), 2.0 * i
        names = [f"{rng.randrange(100)} {part} {i}" for part in ("upper", "lower", "hand")]
        rigs.add_bones(ob, [(x, 0, 0), (x, -0.2, 1), (x, 0, 2), (x, 0.1, 2.3)], names)
        found.append((ob, names[1]))
    return found


def follow_in_a_row(rng: random.Random, chains: list[tuple[bpy.types.Object, str]]) -> None:
    """Give each chain a target that is free or attached to an earlier chain."""
    for i, (ob, tip) in enumerate(chains):
        settings: dict[str, object] = {"out_of_reach": "STRETCH"}
        goal = rigs.empty(
            f"Goal {i}", (2.0 * i + rng.uniform(-0.5, 0.5), rng.uniform(-0.5, 0.5), rng.uniform(0.8, 1.5))
        )
        before = chains[:i]
        if before and rng.random() < 0.8:
            other, bone = rng.choice(before)
            carrier = rng.choice([bone, other.data.bones[bone].children[0].name])
            if rng.random() < 0.2:
                goal, settings["target_bone"] = other, carrier
            else:
                carry(rng, goal, other, carrier)
        else:
            rigs.key(goal, "location", {1: goal.location[:], 20: [x + rng.uniform(-0.4, 0.4) for x in goal.location]})
        rigs.chain(ob, tip, goal, 2, **settings)


@pytest.mark.parametrize("seed", range(12))
def test_any_graph_of_chains_is_solved_in_order(seed: int) -> None:
    rng = random.Random(seed)
    chains = limbs(rng.randrange(2, 7), rng)
    follow_in_a_row(rng, chains)
    rigs.go_live(*{ob for ob, _ in chains})
    for frame in (1, 13, 5):
        bpy.context.scene.frame_set(frame)
        for ob, tip in chains:
            assert miss(ob, tip) < 2e-5, f"{tip} of {ob.name} at {frame}"
    first = chains[0][0].pose.bones[chains[0][1]].ik_addon.target
    rigs.shift(first, z=0.2)
    for ob, tip in chains:
        assert miss(ob, tip) < 2e-5, f"{tip} of {ob.name} after a move"


@pytest.mark.parametrize("seed", range(6))
def test_a_dependency_loop_in_any_graph_is_reported_and_none_of_its_chains_moves(addon: Addon, seed: int) -> None:
    rng = random.Random(seed)
    chains = limbs(rng.randrange(2, 6), rng)
    follow_in_a_row(rng, chains)
    for ob, tip in chains[::2]:
        rigs.key(ob.pose.bones[tip], "rotation_quaternion", {1: (1, 0, 0, 0), 20: (1, 0, 0, 0)})
    before = {ob.name: rigs.channels(ob) for ob, _ in chains}
    rigs.go_live(*{ob for ob, _ in chains})
    size = rng.randrange(2, len(chains) + 1)
    circle = chains[:size]
    for i, (ob, tip) in enumerate(circle):
        chain = ob.pose.bones[tip].ik_addon
        chain.target, chain.target_bone = rigs.empty(f"Round {i}"), ""
        carry(rng, chain.target, *circle[i - 1])
    for frame in (4, 9):
        bpy.context.scene.frame_set(frame)
        for ob, tip in circle:
            report = addon.report(ob, tip)
            assert report.failed
            others = {other.name for other, _ in circle}
            named = others if len(others) > 1 else {other for _, other in circle} - {tip}
            assert all(f"'{name}'" in report.message for name in named), f"{report.message}: {named}"
            moved = [ob.pose.bones[tip], ob.pose.bones[tip].parent]
            assert all(bone.rotation_quaternion[:] == (1.0, 0.0, 0.0, 0.0) for bone in moved)
    for ob in {ob for ob, _ in chains}:
        ob.ik_addon.live = False
        assert np.array_equal(rigs.channels(ob), before[ob.name])


ENDS: dict[str, Callable[[Any], object]] = {
    "disabled": lambda chain: setattr(chain, "enabled", False),
    "without a target": lambda chain: bpy.data.objects.remove(chain.target),
    "shorter": lambda chain: setattr(chain, "chain_length", 1),
}


@pytest.mark.parametrize("change", ENDS)
@pytest.mark.parametrize("keyed", [False, True])
def test_a_chain_follows_bones_that_a_chain_above_it_gives_back(change: str, keyed: bool) -> None:
    ob, _target = rigs.arm()
    rigs.add_bones(ob, [(0.0, 0.0, 2.0), (0.0, 0.2, 2.3)], ["hand"], parent="lower", connect=False)
    rigs.chain(ob, "hand", rigs.empty("Aim", (0.1, 0.6, 2.6)), 1)
    if keyed:
        rigs.key(ob.pose.bones["upper"], "rotation_quaternion", {1: (0.9, 0.1, 0.2, 0.1), 20: (0.9, 0.4, 0.2, 0.1)})
    bpy.context.scene.frame_set(3)
    rigs.go_live(ob)
    before = rigs.pose(ob)
    ENDS[change](ob.pose.bones["lower"].ik_addon)
    bpy.context.view_layer.update()
    at_once = rigs.pose(ob)
    assert np.abs(at_once - before).max() > 1e-3
    bpy.context.scene.frame_set(3)
    np.testing.assert_allclose(at_once, rigs.pose(ob), atol=1e-6)
