"""Hands and feet that Add Chain makes part of their limbs: snapped, applied, mirrored, converted."""

import math
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix, Quaternion, Vector
from numpy.typing import NDArray

from tests import rigs, rigs_named
from tests.conftest import Addon
from tests.reliability.states import activate, add, joints, refused, said, turns
from tests.rig.test_ends import PLACE, TURN, poses, turn_between, world
from tests.rigs_named import RIGS

FEET = ("foot.L", "foot.R")


def body(matrix: Matrix | None = None) -> bpy.types.Object:
    """Return hips with two legs and feet that stand on the ground."""
    ob = rigs.limb([(0, 0, 1.0), (0, 0, 1.2)], ["hips"])
    for side, x in (("L", 0.1), ("R", -0.1)):
        names = [f"{name}.{side}" for name in ("thigh", "shin", "foot", "toe")]
        points = [(x, 0, 1), (x, -0.03, 0.5), (x, 0, 0.1), (1.2 * x, -0.15, 0.02), (1.2 * x, -0.2, 0.02)]
        rigs.add_bones(ob, points, names, parent="hips")
    if matrix is not None:
        ob.matrix_world = matrix
    bpy.context.view_layer.update()
    activate(ob, "shin.L")
    return ob


def key_walk(ob: bpy.types.Object) -> None:
    """Animate hips, knee and foot on frames 1 to 20."""
    rng = np.random.default_rng(1)
    for frame in (1, 7, 14, 20):
        for name, most in (("hips", 0.05), ("thigh.L", 0.2), ("foot.L", 0.4)):
            turn = Euler(rng.uniform(-most, most, 3)).to_quaternion()
            rigs.key(ob.pose.bones[name], "rotation_quaternion", {frame: turn})
        bend = Euler((rng.uniform(0.3, 0.8), 0, 0)).to_quaternion()
        rigs.key(ob.pose.bones["shin.L"], "rotation_quaternion", {frame: bend})
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 20
    bpy.context.scene.frame_set(1)


def body_poses(ob: bpy.types.Object) -> NDArray[np.float64]:
    """Return pose matrices (k, 4, 4) of all but control bones; Blender lists children right after their parents."""
    return np.array([p for p, bone in zip(poses(ob), ob.data.bones, strict=True) if "ik_addon_made" not in bone])


def detach_foot(ob: bpy.types.Object) -> None:
    """Leave a gap between shin and foot."""
    with rigs.edit_mode(ob) as bones:
        foot = bones["foot.L"]
        foot.use_connect = False
        foot.head += foot.head * 0.02


# ---- Add Chain


@pytest.mark.parametrize("controls", ["EMPTIES", "BONES"])
@pytest.mark.parametrize("name", RIGS)
def test_hands_and_feet_stay_when_hips_sink_and_turn(addon: Addon, name: str, controls: str) -> None:
    ob = rigs_named.build(RIGS[name])
    rigs.change(ob, matrix_world=Matrix.LocRotScale((1, 2, 0.5), Euler((0.2, 0.1, 1.0)), (1.5, 1.5, 1.5)))
    before = body_poses(ob)
    ends = []
    for chain in rigs_named.limbs(RIGS[name], ob):
        add(ob, chain[0], controls=controls)
        settings = ob.pose.bones[chain[-1]].ik_addon
        assert (settings.chain_length, settings.use_end_rotation) == (len(chain), True), chain
        length = rigs.length(ob, chain[-1], len(chain))
        ends.append((chain[-1], settings.end_bone, 1.5 * length, world(ob, settings.end_bone)))
    rigs.go_live(ob)
    top = ob.pose.bones[0]
    moved = np.abs(body_poses(ob) - before)
    assert moved[:, 3].max() < 1e-6, "going live moves nothing"
    assert moved.max() < 1e-5
    rng = np.random.default_rng(2)
    steady = 0
    for _ in range(4):
        down = Matrix.Translation(rng.uniform(-0.01, 0.01, 3) - (0.0, 0.0, 0.03))
        turned = down @ Euler(rng.uniform(-0.04, 0.04, 3)).to_matrix().to_4x4()
        rigs.change(top, matrix=turned @ top.bone.matrix_local)
        for tip, end, length, was in ends:
            now = world(ob, end)
            assert turn_between(now, was) < TURN, end
            if addon.report(ob, tip).reached:  # stretched arms can't follow
                assert (now.translation - was.translation).length < PLACE * length, end
                steady += 1
    assert steady >= 8, "both feet, each time"


@pytest.mark.parametrize("button", ["Target to Pose (Range)", "Targets to Pose"])
def test_an_animated_hand_or_foot_waits_for_a_snapped_range(
    button: str, addon: Addon, capfd: pytest.CaptureFixture[str]
) -> None:
    ob = body()
    key_walk(ob)
    text = said(capfd, bpy.ops.ik_addon.chain_add)
    assert "'foot.L' is animated. Bring the target to the pose on a range to turn it with the target" in text
    chain = ob.pose.bones["shin.L"].ik_addon
    assert (chain.end_bone, chain.use_end_rotation) == ("foot.L", False)
    fk = rigs.on_frames(range(1, 21), lambda: poses(ob))
    if button == "Target to Pose (Range)":
        assert bpy.ops.ik_addon.follow_rotation(snap=True, frame_range="SCENE") == {"FINISHED"}
    else:
        assert bpy.ops.ik_addon.snap_target(frame_range="SCENE") == {"FINISHED"}
    assert chain.use_end_rotation
    ob.ik_addon.live = True
    for frame, own in rigs.on_frames(fk, lambda: poses(ob)).items():
        assert np.abs(own - fk[frame]).max() < 1e-5
    hips = ob.pose.bones["hips"]
    hips.driver_add("location", 1).driver.expression = "-0.05"
    bpy.context.scene.frame_set(9)
    foot = [bone.name for bone in ob.pose.bones].index("foot.L")
    assert np.abs(poses(ob)[foot] - fk[9][foot]).max() < 2e-5


def test_a_foot_that_was_switched_off_stays_off_after_snapping_again() -> None:
    ob = body()
    key_walk(ob)
    chain = add(ob, "shin.L")
    bpy.ops.ik_addon.snap_target(frame_range="PRESENT")
    assert not chain.use_end_rotation, "a single frame would take its animation away"
    bpy.ops.ik_addon.snap_target(frame_range="SCENE")
    chain.use_end_rotation = False
    bpy.ops.ik_addon.snap_target(frame_range="SCENE")
    assert not chain.use_end_rotation


def test_a_foot_that_was_not_found_can_be_chosen() -> None:
    ob = body()
    chain = add(ob, "shin.L")
    chain.use_end_rotation, chain.end_bone = False, ""
    with rigs.edit_mode(ob) as bones:
        bones["foot.L"].name = "club"
    with refused("There is no hand or foot below 'shin.L'. Choose an End Bone"):
        bpy.ops.ik_addon.follow_rotation()
    chain.end_bone = "club"
    rigs.change(chain.target, rotation_euler=(1, 2, 3))
    assert bpy.ops.ik_addon.follow_rotation() == {"FINISHED"}
    rigs.go_live_unmoved(ob)


@pytest.mark.parametrize("snap", [False, True])
def test_turning_a_foot_with_a_target_that_cannot_be_moved_is_refused(snap: bool) -> None:
    ob = body()
    detach_foot(ob)
    rigs.add_bones(ob, [(0.1, 0, 0.4), (0.1, 0.3, 0.4), (0.1, 0.6, 0.4)], ["control", "connected"])
    chain = add(ob, "shin.L")
    chain.end_bone = ""
    chain.target, chain.target_bone = ob, "connected"
    with refused("Bone 'connected' is connected to its parent"):
        bpy.ops.ik_addon.follow_rotation(snap=snap)
    assert (chain.end_bone, chain.use_end_rotation) == ("", True)


@pytest.mark.parametrize("live", [False, True])
def test_a_foot_detached_from_its_shin_is_added_without_a_jump(live: bool) -> None:
    ob = body()
    detach_foot(ob)
    chain = add(ob, "shin.L", live=live)
    chain.end_bone = ""
    rigs.change(chain.target, location=rigs.tail(ob, "shin.L") + np.array((0.02, 0.01, 0.05)))
    bpy.ops.ik_addon.solve()
    before, knee = world(ob, "foot.L"), rigs.head(ob, "shin.L")
    assert bpy.ops.ik_addon.follow_rotation() == {"FINISHED"}
    solved = world(ob, "foot.L")
    rigs.go_live(ob)
    for foot in (solved, world(ob, "foot.L")):
        assert (foot.translation - before.translation).length < 1e-5
        assert turn_between(foot, before) < TURN
    assert np.linalg.norm(rigs.head(ob, "shin.L") - knee) < 0.01, (
        "rolled a little, as it is another point that is brought"
    )
    assert np.linalg.norm(rigs.position(chain.target) - rigs.head(ob, "foot.L")) < 1e-5


# ---- chains whose tip takes the target's orientation


@pytest.mark.parametrize(("pole", "live"), [("none", True), ("made", False), ("own", False)])
def test_a_three_bone_chain_with_rotation_keeps_its_knee_in_front(pole: str, live: bool) -> None:
    ob = body()
    chain = add(ob, "foot.L", tip="foot.L", chain_length=3, with_pole=pole == "made", live=live)
    before = poses(ob)
    chain.use_rotation = True
    if pole == "own":
        chain.pole = rigs.empty("Own", (0.1, -1.0, 0.5))
    rigs.go_live(ob)
    assert np.abs(poses(ob) - before).max() < 1e-5, "nothing moves"
    foot = world(ob, "foot.L")
    last = rigs.head(ob, "shin.L")
    for i in range(1, 41):
        ob.pose.bones["hips"].matrix = Matrix.Translation((0, 0, 1.0 - 0.005 * i)) @ Matrix.Rotation(
            math.pi / 2, 4, "X"
        )
        bpy.context.view_layer.update()
        knee, line = rigs.head(ob, "shin.L"), 0.5 * (rigs.head(ob, "thigh.L") + rigs.head(ob, "foot.L"))
        assert knee[1] < line[1] - 0.02
        assert np.linalg.norm(knee - last) < 0.05, "without a jump"
        assert turn_between(world(ob, "foot.L"), foot) < TURN
        last = knee


def test_toggling_rotation_keeps_a_flipped_side() -> None:
    ob = body()
    chain = add(ob, "foot.L", tip="foot.L", chain_length=3, with_pole=False)
    whole = list(chain.bend_side)
    chain.use_rotation = True
    limb = list(chain.bend_side)
    assert np.dot(whole, limb) > 0.9, "the knee decides, with the foot and without"
    bpy.ops.ik_addon.flip_bend()
    assert np.allclose(chain.bend_side, -np.array(limb))
    chain.use_rotation = False
    assert np.allclose(chain.bend_side, -np.array(whole))


# ---- between FK and IK


@pytest.mark.parametrize("scale", [(1.0, 1.0, 1.0), (-2.0, 2.0, 2.0), (0.5, 2.0, 1.3)])
def test_snapping_rotates_the_target_to_match_the_foot(scale: tuple[float, float, float]) -> None:
    ob = body(Matrix.LocRotScale((1, 2, 3), Euler((0.4, -0.3, 0.9)), scale))
    bpy.ops.ik_addon.chain_add()
    for name in ("thigh.L", "foot.L"):
        ob.pose.bones[name].rotation_quaternion = Euler((0.3, 0.2, -0.1)).to_quaternion()
    bpy.context.view_layer.update()
    before = poses(ob)
    assert bpy.ops.ik_addon.snap_target() == {"FINISHED"}
    rigs.go_live(ob)
    assert np.abs(poses(ob) - before).max() < 1e-5


# ---- the other side


@pytest.mark.parametrize("target", ["object", "bone"])
def test_the_mirrored_foot_is_the_mirror_image(target: str) -> None:
    ob = body()
    if target == "bone":
        for side, x in (("L", 0.1), ("R", -0.1)):
            rigs.add_bones(ob, [(x, 0, 0.1), (x, 0.3, 0.3)], [f"control.{side}"])
        bpy.context.view_layer.update()
    chain = add(ob, "shin.L")
    if target == "bone":
        chain.target, chain.target_bone = ob, "control.L"
        bpy.ops.ik_addon.follow_rotation()
    ob.data.bones["toe.R"].use_inherit_rotation = True
    assert bpy.ops.ik_addon.mirror_chain() == {"FINISHED"}
    image = ob.pose.bones["shin.R"].ik_addon
    assert (image.end_bone, image.use_end_rotation) == ("foot.R", True)
    rigs.go_live_unmoved(ob)
    turn = Euler((0.3, 0.4, -0.2)).to_quaternion()
    for side, own in (("L", turn), ("R", Quaternion((turn.w, turn.x, -turn.y, -turn.z)))):
        if target == "bone":
            bone = ob.pose.bones[f"control.{side}"]
            moved = Matrix.LocRotScale(bone.head, own @ bone.matrix.to_quaternion(), None)
            bone.matrix = moved
        else:
            goal = ob.pose.bones[f"shin.{side}"].ik_addon.target
            goal.rotation_euler = (own @ goal.matrix_world.to_quaternion()).to_euler()
        bpy.context.view_layer.update()
    across = Matrix.Diagonal((-1.0, 1.0, 1.0, 1.0))
    left, right = (world(ob, name) for name in FEET)
    rest = [ob.data.bones[name].matrix_local for name in FEET]
    mirrored = across @ left @ rest[0].inverted() @ across @ rest[1]
    assert turn_between(mirrored, right) < TURN
    assert (mirrored.translation - right.translation).length < PLACE
    assert turn_between(left, rest[0]) > 0.3


def test_a_foot_without_a_counterpart_is_named() -> None:
    ob = body()
    bpy.ops.ik_addon.chain_add()
    with rigs.edit_mode(ob) as bones:
        bones["foot.R"].name = "paw.R"
    with pytest.raises(RuntimeError, match=r"There is no bone 'foot.R' below 'shin.R' to mirror"):
        bpy.ops.ik_addon.mirror_chain()


# ---- Blender's own constraints


def constrained() -> tuple[bpy.types.Object, Any]:
    """Return a leg with Blender's IK, and a foot that copies the rotation of the same control bone."""
    ob = body()
    rigs.add_bones(ob, [(0.1, 0, 0.1), (0.12, -0.15, 0.02)], ["control.L"])
    control = ob.pose.bones["control.L"]
    control.location = (0.02, 0.05, 0.1)
    control.rotation_quaternion = Euler((0.2, 0.3, -0.1)).to_quaternion()
    goal = {"target": ob, "subtarget": "control.L"}
    rigs.constrain(ob.pose.bones["shin.L"], "IK", chain_count=2, **goal)
    copy = rigs.constrain(ob.pose.bones["foot.L"], "COPY_ROTATION", **goal)
    bpy.context.view_layer.update()
    return ob, copy


@pytest.mark.parametrize("between", [False, True], ids=["below the shin", "below a mechanism bone"])
def test_copy_rotation_on_the_foot_becomes_end_rotation_and_converts_back(between: bool) -> None:
    ob, copy = constrained()
    if between:
        with rigs.edit_mode(ob) as bones:
            made = bones.new("MCH-foot.L")
            made.head, made.tail = bones["foot.L"].head, bones["foot.L"].head + Vector((0.0, 0.0, 0.02))
            bones["foot.L"].use_connect = False
            made.parent, bones["foot.L"].parent = bones["shin.L"], made
        copy = ob.pose.bones["foot.L"].constraints["Copy Rotation"]
    before = world(ob, "foot.L")
    assert bpy.ops.ik_addon.convert_constraints() == {"FINISHED"}
    chain = ob.pose.bones["shin.L"].ik_addon
    assert (chain.end_bone, chain.use_end_rotation, copy.mute) == ("foot.L", True, True)
    assert turn_between(world(ob, "foot.L"), before) < TURN
    control = ob.pose.bones["control.L"]
    rigs.change(control, rotation_quaternion=Euler((-0.3, 0.1, 0.4)).to_quaternion())
    ours = world(ob, "foot.L")
    assert bpy.ops.ik_addon.restore_constraints() == {"FINISHED"}
    assert (copy.mute, chain.use_end_rotation) == (False, False)
    assert turn_between(world(ob, "foot.L"), ours) < math.radians(0.1)


@pytest.mark.parametrize("switch", ["static", "keys", "driver"])
def test_a_foot_keeps_its_animation_where_the_ik_constraint_is_not_always_on(switch: str) -> None:
    ob, copy = constrained()
    made = ob.pose.bones["shin.L"].constraints["IK"]
    if switch == "static":
        made.influence = 0.5
    elif switch == "keys":
        rigs.key(made, "influence", {1: 0.0, 20: 1.0})
    else:
        made.driver_add("influence").driver.expression = "min(frame / 20, 1)"
    before = rigs.on_frames((1, 10, 20), lambda: world(ob, "foot.L"))
    assert bpy.ops.ik_addon.convert_constraints() == {"FINISHED"}
    assert not copy.mute
    for frame, own in rigs.on_frames(before, lambda: world(ob, "foot.L")).items():
        assert turn_between(own, before[frame]) < TURN, frame


@pytest.mark.parametrize("hindrance", ["influence", "use_y", "subtarget", "space", "apart", "no axes"])
def test_a_copy_rotation_unlike_end_rotation_stays(hindrance: str) -> None:
    ob, copy = constrained()
    values = {"influence": 0.5, "use_y": False, "subtarget": "hips"}
    if hindrance in values:
        setattr(copy, hindrance, values[hindrance])
    elif hindrance == "apart":
        with rigs.edit_mode(ob) as bones:
            bones["foot.L"].use_connect = False
            bones["foot.L"].head.x += 0.01
        copy = ob.pose.bones["foot.L"].constraints[0]
    elif hindrance == "no axes":
        rigs.change(ob.pose.bones["control.L"], scale=(0.0, 0.0, 0.0))
    else:
        copy.owner_space = copy.target_space = "LOCAL"
    assert bpy.ops.ik_addon.convert_constraints() == {"FINISHED"}
    assert not copy.mute
    assert not ob.pose.bones["shin.L"].ik_addon.use_end_rotation


# ---- remarks about orientations that limits don't allow


@pytest.mark.parametrize("matrix", [Matrix.Identity(4), Matrix.LocRotScale((1, 2, 0), Euler((0.2, 0, 1)), (-2, 2, 2))])
@pytest.mark.parametrize("by", ["End Rotation", "Rotation"])
def test_a_foot_kept_from_turning_by_limits_gets_a_remark(by: str, matrix: Matrix, addon: Addon) -> None:
    ob = body(matrix)
    options = {} if by == "End Rotation" else {"tip": "foot.L", "chain_length": 3}
    bpy.ops.ik_addon.chain_add(with_pole=False, live=True, **options)
    tip = next(bone for bone in ob.pose.bones if bone.ik_addon.is_chain)
    tip.ik_addon.use_rotation = by == "Rotation"
    if by == "Rotation":  # the target already has the foot's axes
        foot = rigs.evaluated(ob).pose.bones["foot.L"].matrix
        tip.ik_addon.target.rotation_euler = (
            addon.module("rig.read.sample").target_rotation(ob.matrix_world, foot, np.eye(3)).to_euler()
        )
    rigs.limit(ob.pose.bones["foot.L"], x=(-11, 11), y=(0, 0), z=(0, 0))
    rigs.change(ob.pose.bones["shin.L"], lock_ik_y=True, lock_ik_z=True)
    assert addon.report(ob, tip.name).message == "Reached"
    tip.ik_addon.target.rotation_euler.rotate_axis("Z", 0.8)
    bpy.context.view_layer.update()
    report = addon.report(ob, tip.name)
    assert report.reached
    assert report.message.startswith("Reached, but turned ")
    assert int(report.message.split("turned ")[1].split("°")[0]) in range(2, 60)


# ---- hands that are scaled to zero, to hide them


@pytest.mark.parametrize("controls", ["EMPTIES", "BONES"])
@pytest.mark.parametrize("live", [True, False])
def test_a_hidden_foot_gets_a_chain_and_turns_once_it_is_shown(live: bool, controls: str) -> None:
    ob = body()
    foot, tip = ob.pose.bones["foot.L"], "shin.L"
    rigs.change(foot, rotation_quaternion=Euler((0.2, 0.3, -0.4)).to_quaternion())
    shown = turns(ob)
    rigs.change(foot, scale=(0.0, 0.0, 0.0))
    before = joints(ob)
    add(ob, tip, live=live, controls=controls)
    bpy.context.view_layer.update()
    assert np.allclose(joints(ob)[: len(before)], before, atol=1e-5)
    assert ob.pose.bones[tip].ik_addon.use_end_rotation
    rigs.go_live(ob)
    rigs.change(ob.pose.bones["foot.L"], scale=(1.0, 1.0, 1.0))
    for now, then in zip(turns(ob), shown, strict=False):
        assert now.rotation_difference(then).angle < 1e-3


def test_a_character_with_hidden_hands_is_set_up() -> None:
    ob = rigs_named.build(RIGS["Mixamo"])
    activate(ob, None)
    hands = [bone for bone in ob.pose.bones if bone.name.endswith("Hand")]
    assert len(hands) == 2
    for hand in hands:
        hand.scale = (0.0, 0.0, 0.0)
    bpy.context.view_layer.update()
    before = set(bpy.data.objects)
    assert bpy.ops.ik_addon.character_setup(controls="EMPTIES") == {"FINISHED"}
    chains = [bone.ik_addon for bone in ob.pose.bones if bone.ik_addon.is_chain]
    goals = {goal for chain in chains for goal in (chain.target, chain.pole) if goal is not None}
    made = {own for own in set(bpy.data.objects) - before if not own.name.startswith("IK Shape")}
    assert made == goals, "nothing is left that no chain follows"
    for hand in hands:
        assert hand.parent.ik_addon.is_chain
        assert hand.parent.ik_addon.end_bone == hand.name
