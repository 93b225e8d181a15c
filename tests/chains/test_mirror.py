"""Mirroring a chain: its pose, its limits, what it follows, and what prevents it."""

import math
from collections.abc import Callable
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix
from numpy.typing import NDArray

from tests import rigs
from tests.reliability.states import activate, add, joints, refused, said, settings

ACROSS = np.diag([-1.0, 1.0, 1.0])
PLACED = Matrix.LocRotScale((3.0, -2.0, 1.0), Euler((0.4, -1.1, 2.0)), (1.5, 1.5, 1.5))


def symmetrical(seed: int, count: int = 2) -> bpy.types.Object:
    """Return a rig with a limb of random shape and roll, and its mirror image, made by Blender's Symmetrize."""
    random = np.random.default_rng(seed)
    ob = rigs.armature()
    steps = random.normal((0.3, 0.0, -0.3), 0.25, (count, 3))
    points = np.cumsum([(0.4, 0.1, 0.9), *steps], axis=0).tolist()
    rigs.add_bones(ob, points, [f"bone{i}.L" for i in range(count)])
    with rigs.edit_mode(ob) as bones:
        for bone in bones:
            bone.roll = random.uniform(-math.pi, math.pi)
        bpy.ops.armature.select_all(action="SELECT")
        bpy.ops.armature.symmetrize()
    activate(ob, f"bone{count - 1}.L")
    return ob


def roll(ob: bpy.types.Object, bone: str, angle: float) -> None:
    """Roll a bone at rest."""
    with rigs.edit_mode(ob) as bones:
        bones[bone].roll += angle


def limit(ob: bpy.types.Object, seed: int) -> None:
    """Limit the bones of the left side, with different angles in each direction."""
    random = np.random.default_rng(seed)
    for bone in ob.pose.bones:
        for axis in "xyz" if bone.name.endswith(".L") else "":
            rigs.limit(bone, **{axis: (-random.uniform(6, 40), random.uniform(6, 40))})


def turns(ob: bpy.types.Object, names: list[str]) -> NDArray[np.float64]:
    """Return the rotations (n, 3, 3) of bones from rest, in armature space."""
    bones = rigs.evaluated(ob).pose.bones
    return np.array(
        [np.array((bones[n].matrix @ bones[n].bone.matrix_local.inverted()).to_3x3().normalized()) for n in names]
    )


def heads(ob: bpy.types.Object, names: list[str]) -> NDArray[np.float64]:
    """Return the heads and tails (n, 2, 3) of bones in armature space."""
    return joints(ob)[[ob.pose.bones.find(name) for name in names]]


def assert_poses_are_mirror_images(ob: bpy.types.Object, left: list[str]) -> None:
    right = [bpy.utils.flip_name(name) for name in left]
    size = length(ob, left)
    assert np.abs(heads(ob, right) - heads(ob, left) @ ACROSS).max() < 1e-4 * size
    assert np.abs(turns(ob, right) - ACROSS @ turns(ob, left) @ ACROSS).max() < 1e-4


def length(ob: bpy.types.Object, bones: list[str]) -> float:
    return math.fsum(ob.data.bones[name].length for name in bones)


def place(ob: bpy.types.Object, target: bpy.types.Object, matrix: Matrix) -> None:
    """Move a target to a matrix in armature space."""
    target.matrix_world = ob.matrix_world @ matrix


def mirrored(matrix: Matrix) -> Matrix:
    across = Matrix.Diagonal((-1.0, 1.0, 1.0, 1.0))
    return across @ matrix @ across


def left_bones(ob: bpy.types.Object) -> list[str]:
    return [bone.name for bone in ob.pose.bones if bone.name.endswith(".L")]


def move_goals_and_compare(ob: bpy.types.Object, tip: str, seed: int, reach: float) -> None:
    """Assert that mirrored places of targets and poles give mirrored poses."""
    random = np.random.default_rng(seed)
    left, right = (ob.pose.bones[name].ik_addon for name in (tip, bpy.utils.flip_name(tip)))
    chain = [ob.pose.bones[tip], *ob.pose.bones[tip].parent_recursive][: left.chain_length]
    root = chain[-1].bone.head_local
    for _ in range(6):
        spot = Matrix.Translation(root) @ Matrix.Translation(random.uniform(-0.5, 0.5, 3) * reach)
        place(ob, left.target, spot)
        place(ob, right.target, mirrored(spot))
        if left.pole is not None:
            spot = Matrix.Translation(root) @ Matrix.Translation(random.normal(size=3) * reach)
            place(ob, left.pole, spot)
            place(ob, right.pole, mirrored(spot))
        bpy.context.view_layer.update()
        assert_poses_are_mirror_images(ob, [bone.name for bone in chain])


# ---- the pose


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("seed", range(2))
def test_poses_of_any_rig_are_mirrored(seed: int, count: int) -> None:
    ob = symmetrical(seed, count)
    ob.matrix_world = PLACED
    random = np.random.default_rng(seed)
    for name in left_bones(ob):
        w, x, y, z = np.array([1.0, *random.normal(0.0, 0.2, 3)]).tolist()
        ob.pose.bones[name].rotation_quaternion = (w, x, y, z)
        ob.pose.bones[bpy.utils.flip_name(name)].rotation_quaternion = (w, x, -y, -z)
    bpy.ops.ik_addon.chain_add(chain_length=count)
    chain = ob.pose.bones[f"bone{count - 1}.L"].ik_addon
    chain.pole_angle = 0.7
    ob.ik_addon.live = True
    bpy.ops.ik_addon.mirror_chain()
    move_goals_and_compare(ob, f"bone{count - 1}.L", seed, length(ob, left_bones(ob)))


@pytest.mark.parametrize(("seed", "angle"), list(enumerate((0.0, 0.5 * math.pi, math.pi, -0.5 * math.pi))))
def test_mirrored_limits_allow_exactly_the_mirrored_poses(seed: int, angle: float) -> None:
    ob = symmetrical(seed)
    bones = left_bones(ob)
    for name in bones:
        roll(ob, bpy.utils.flip_name(name), angle)
    limit(ob, seed)
    add(ob, "bone1.L", with_pole=False)
    bpy.ops.ik_addon.mirror_chain()
    random = np.random.default_rng(seed)
    for _ in range(3):
        # Far beyond the limb's reach, so that it is at its limits.
        place(ob, ob.pose.bones["bone1.L"].ik_addon.target, Matrix.Translation(random.uniform(-3.0, 3.0, 3)))
        rigs.go_live(ob)
        turned, tip = turns(ob, bones), heads(ob, bones)[-1, 1]
        ob.ik_addon.live = False
        # A limb that is on its target and within its limits does not change.
        for name, turn in zip(bones, turned, strict=True):
            image = ob.pose.bones[bpy.utils.flip_name(name)]
            wanted = Matrix(ACROSS @ turn @ ACROSS).to_4x4() @ image.bone.matrix_local
            wanted.translation = image.head
            rigs.change(image, matrix=wanted)
        place(ob, ob.pose.bones["bone1.R"].ik_addon.target, Matrix.Translation(tip * (-1, 1, 1)))
        rigs.go_live(ob)
        images = turns(ob, [bpy.utils.flip_name(name) for name in bones])
        assert np.abs(images - ACROSS @ turned @ ACROSS).max() < 1e-4
        assert np.abs(turned - np.eye(3)).max() > 0.1
        ob.ik_addon.live = False


def test_limits_about_x_stay_and_the_others_are_mirrored() -> None:
    ob = symmetrical(0)
    limit(ob, 0)
    left, right = ob.pose.bones["bone0.L"], ob.pose.bones["bone0.R"]
    left.lock_ik_y, left.ik_stiffness_z, left.ik_stretch = True, 0.3, 0.2
    bpy.ops.ik_addon.chain_add()
    bpy.ops.ik_addon.mirror_chain()
    assert (right.ik_min_x, right.ik_max_x) == (left.ik_min_x, left.ik_max_x)
    assert (right.ik_min_y, right.ik_max_y) == (-left.ik_max_y, -left.ik_min_y)
    assert (right.ik_min_z, right.ik_max_z) == (-left.ik_max_z, -left.ik_min_z)
    assert (right.lock_ik_x, right.lock_ik_y) == (False, True)
    assert right.ik_stiffness_z == left.ik_stiffness_z
    assert right.ik_stretch == left.ik_stretch


def test_says_which_limits_cannot_be_mirrored_exactly(capfd: pytest.CaptureFixture[str]) -> None:
    ob = symmetrical(0)
    roll(ob, "bone1.R", 0.6)
    bpy.ops.ik_addon.chain_add()
    report = said(capfd, bpy.ops.ik_addon.mirror_chain)
    assert "Warning" in report
    assert "The roll of 'bone1.R' doesn't mirror 'bone1.L'" in report


# ---- targets and poles


def test_mirroring_can_be_reversed() -> None:
    ob = symmetrical(1)
    bpy.ops.ik_addon.chain_add()
    before = settings(ob.pose.bones["bone1.L"])
    place = rigs.position(ob.pose.bones["bone1.L"].ik_addon.target)
    bpy.ops.ik_addon.mirror_chain()
    activate(ob, "bone1.R")
    bpy.ops.ik_addon.mirror_chain()
    after = settings(ob.pose.bones["bone1.L"])
    assert after.pop("bend_side") == pytest.approx(before.pop("bend_side"), abs=1e-6)
    assert after == before
    assert np.allclose(rigs.position(ob.pose.bones["bone1.L"].ik_addon.target), place, atol=1e-6)


def test_leaves_an_object_of_the_user_alone() -> None:
    ob = symmetrical(1)
    bpy.ops.ik_addon.chain_add()
    own = rigs.empty("IK Target bone1.R", (7, 7, 7))
    bpy.ops.ik_addon.mirror_chain()
    assert ob.pose.bones["bone1.R"].ik_addon.target != own
    assert tuple(own.location) == (7, 7, 7)


def test_copies_the_users_target_without_its_animation_and_constraints() -> None:
    ob = symmetrical(1)
    own = rigs.empty("Hand.L", (0.9, 0.2, 0.4))
    rigs.constrain(own, "COPY_LOCATION", target=rigs.empty("Elsewhere"), influence=0.0)
    rigs.key(own, "rotation_euler", {1: (0, 0, 0)})
    rigs.chain(ob, "bone1.L", own, 2)
    bpy.ops.ik_addon.mirror_chain()
    copy = ob.pose.bones["bone1.R"].ik_addon.target
    assert copy.name == "Hand.R"
    assert not copy.constraints
    assert copy.animation_data is None or copy.animation_data.action is None
    assert own.animation_data.action is not None
    assert np.allclose(rigs.position(copy), (-0.9, 0.2, 0.4), atol=1e-6)


def test_a_target_attached_to_a_bone_is_attached_to_its_counterpart() -> None:
    ob = symmetrical(1)
    for name, x in (("body.L", 1), ("body.R", -1)):
        rigs.add_bones(ob, [(x, 0, 0), (x, 0, 1)], [name])
    activate(ob, "bone1.L")
    own = rigs.empty("Hand.L", (0.9, 0.2, 0.4))
    rigs.change(own, parent=ob, parent_type="BONE", parent_bone="body.L")
    rigs.chain(ob, "bone1.L", own, 2)
    bpy.ops.ik_addon.mirror_chain()
    copy = ob.pose.bones["bone1.R"].ik_addon.target
    assert (copy.parent, copy.parent_bone) == (ob, "body.R")
    assert np.allclose(rigs.position(copy), rigs.position(own) * (-1, 1, 1), atol=1e-6)


def test_goal_bones_are_replaced_by_their_counterparts() -> None:
    ob = symmetrical(1)
    for name, x in (("hand.L", 1), ("hand.R", -1), ("middle", 0)):
        rigs.add_bones(ob, [(x, 0, 0), (x, 0, 1)], [name])
    activate(ob, "bone1.L")
    rigs.chain(ob, "bone1.L", ob, 2, target_bone="hand.L", pole=ob, pole_bone="middle", pole_angle=0.3)
    bpy.ops.ik_addon.mirror_chain()
    chain = ob.pose.bones["bone1.R"].ik_addon
    assert (chain.target, chain.target_bone, chain.pole, chain.pole_bone) == (ob, "hand.R", ob, "middle")
    assert chain.pole_angle == pytest.approx(-0.3)


def test_copies_all_other_settings() -> None:
    ob = symmetrical(1)
    chain = add(ob, "bone1.L")
    chain.influence, chain.iterations, chain.out_of_reach, chain.use_limits = 0.3, 17, "STRETCH", False
    chain.tolerance, chain.solver, chain.weight, chain.bend_lead, chain.planar = 1e-4, "FABRIK", 3.0, 0.5, True
    bpy.ops.ik_addon.mirror_chain()
    own = {"target_object", "pole_object", "pole_angle", "bend_side"}
    left, right = (settings(ob.pose.bones[name]) for name in ("bone1.L", "bone1.R"))
    assert {k: v for k, v in left.items() if k not in own} == {k: v for k, v in right.items() if k not in own}


def test_angles_change_their_sign_and_every_kind_of_setting_is_known() -> None:
    ob = symmetrical(1)
    left = add(ob, "bone1.L")
    known = [setting for setting in left.bl_rna.properties if setting.type == "FLOAT" and not setting.is_hidden]
    assert {setting.subtype for setting in known} == {"NONE", "FACTOR", "ANGLE", "XYZ", "XYZ_LENGTH", "QUATERNION"}, (
        "decide in `settings.mirrored` what a new kind is on the other side"
    )
    angles = [setting.identifier for setting in known if setting.subtype == "ANGLE"]
    for i, name in enumerate(angles):
        setattr(left, name, 0.3 + i)
    bpy.ops.ik_addon.mirror_chain()
    right = ob.pose.bones["bone1.R"].ik_addon
    assert [getattr(right, name) for name in angles] == [-getattr(left, name) for name in angles]


# ---- refusals


def rename(ob: bpy.types.Object, old: str, new: str) -> None:
    ob.pose.bones[old].name = new


def hold(ob: bpy.types.Object, name: str) -> None:
    """Give the chain a target bone."""
    rigs.add_bones(ob, [(1, 0, 0), (1, 0, 1)], [name])
    activate(ob, "bone1.L")
    rigs.chain(ob, "bone1.L", ob, 2, target_bone=name)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda ob: rename(ob, "bone1.L", "tip"), "Bone 'tip' has no side in its name"),
        (lambda ob: rename(ob, "bone1.R", "other"), "'Rig' has no bone 'bone1.R' for"),
        (lambda ob: rename(ob, "bone0.R", "other"), "'other' is not the mirror image of 'bone0.L'"),
        (lambda ob: hold(ob, "hand.L"), "The target of the chain is bone 'hand.L', but 'Rig' has no bone 'hand.R'"),
        (lambda ob: rigs.delete(ob.pose.bones["bone1.L"].ik_addon.target), "'IK Target bone1.L' was deleted"),
        (lambda ob: rigs.delete(ob.pose.bones["bone1.L"].ik_addon.pole), "'IK Pole bone1.L' was deleted"),
        (lambda ob: bpy.ops.ik_addon.chain_remove(), "has no chain. Select a bone and press Add Chain"),
    ],
)
def test_refuses_what_cannot_be_mirrored(spoil: Callable[[Any], Any], reason: str) -> None:
    ob = symmetrical(1)
    bpy.ops.ik_addon.chain_add(with_pole=True)
    spoil(ob)
    with refused(reason):
        bpy.ops.ik_addon.mirror_chain()


def test_the_counterparts_fk_store_stays_its_own() -> None:
    ob = symmetrical(3)
    for side in "LR":
        target = rigs.empty(f"Goal {side}", (0.9 if side == "L" else -0.9, 0.2, 0.5))
        rigs.chain(ob, f"bone1.{side}", target, 2)
    for name in ("bone0.L", "bone1.L"):
        ob.pose.bones[name].rotation_quaternion = (0.9, 0.1, 0.3, -0.2)
    before = rigs.channels(ob)
    rigs.go_live(ob)
    assert bpy.ops.ik_addon.mirror_chain() == {"FINISHED"}
    bpy.ops.ed.undo_push(message="Mirror")
    rigs.shift(bpy.data.objects["Goal R"], z=-0.1)
    bpy.ops.ed.undo_push(message="Move")
    bpy.ops.ed.undo()
    ob = bpy.data.objects["Rig"]
    ob.ik_addon.live = False
    assert np.array_equal(rigs.channels(ob), before)
