"""Add Chain, Remove Chain and the selection of a chain."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import activate, add, joints, refused, said, turns
from tests.rigs_generated import armature_of, rigify

__all__ = ["rigify"]
IDENTITY = Matrix.Identity(4)
TURNED = Matrix.LocRotScale((3.0, -2.0, 1.0), Euler((0.4, -1.1, 2.0)), None)
SCALED = Matrix.LocRotScale((0.5, 0.2, 0.0), Euler((0.3, 0.0, 1.0)), (2.5, 2.5, 2.5))
UNEVEN = Matrix.LocRotScale((0.5, 0.2, 0.0), Euler((0.3, 0.7, 1.0)), (0.5, 2.0, 1.3))
MIRRORED = Matrix.LocRotScale(None, Euler((0.3, 0.7, 1.0)), (-1.0, 1.0, 1.0))
TINY = Matrix.Diagonal((1e-3, 1e-3, 1e-3, 1.0))


def limb(points: list[Any], matrix: Matrix = IDENTITY) -> bpy.types.Object:
    """Build an armature with bones a, b, c ... along points, the last one active."""
    ob = rigs.limb(points, "abcdefgh"[: len(points) - 1])
    rigs.change(ob, matrix_world=matrix)
    return ob


def bend_bones(ob: bpy.types.Object) -> None:
    """Pose all bones by hand."""
    for i, bone in enumerate(ob.pose.bones):
        bone.rotation_quaternion = Euler((0.3 + 0.2 * i, -0.4, 0.5 * i)).to_quaternion()
    bpy.context.view_layer.update()


def assert_solving_keeps_the_pose(ob: bpy.types.Object) -> None:
    before, turned = joints(ob), turns(ob)
    length = float(np.linalg.norm(before[:, 1] - before[:, 0], axis=1).sum())
    assert bpy.ops.ik_addon.solve() == {"FINISHED"}
    assert np.abs(joints(ob) - before).max() < 1e-5 * length
    angles = [a.rotation_difference(b).angle for a, b in zip(turned, turns(ob), strict=True)]
    assert max(min(angle, 2 * math.pi - angle) for angle in angles) < math.radians(0.01)


# ---- targets and poles


def test_makes_target_and_pole_in_their_own_collection() -> None:
    ob = limb(rigs.bent(3))
    chain = add(ob, "c", chain_length=2)
    assert chain.is_chain
    assert chain.chain_length == 2
    assert (chain.target.name, chain.pole.name) == ("IK Target c", "IK Pole c")
    assert list(bpy.context.scene.collection.children) == [bpy.data.collections["Rig IK"]]
    assert {o.name for o in bpy.data.collections["Rig IK"].objects} == {"IK Target c", "IK Pole c"}
    assert {o.name for o in bpy.context.scene.collection.objects} == {"Rig"}


def test_target_is_at_the_tip_with_the_bones_orientation() -> None:
    ob = limb(rigs.bent(2), TURNED)
    bend_bones(ob)
    bpy.ops.ik_addon.chain_add()
    target = ob.pose.bones["b"].ik_addon.target
    assert np.allclose(rigs.position(target), rigs.tail(ob, "b"), atol=1e-6)
    bone = rigs.evaluated(ob).matrix_world @ rigs.evaluated(ob).pose.bones["b"].matrix
    assert target.matrix_world.to_quaternion().rotation_difference(bone.to_quaternion()).angle < 1e-3


def test_pole_is_a_chain_length_from_the_elbow_on_its_side() -> None:
    ob = limb([(0, 0, 0), (0, -0.3, 1), (0, 0, 2)])
    bpy.ops.ik_addon.chain_add()
    pole = rigs.position(ob.pose.bones["b"].ik_addon.pole)
    assert np.allclose(pole, (0, -0.3 - rigs.length(ob, "b", 2), 1), atol=1e-6)


def test_sizes_follow_the_bone() -> None:
    ob = limb(rigs.bent(2), SCALED)
    chain = add(ob, "b")
    assert 0.1 < chain.target.empty_display_size / 2.5 < 0.5
    assert 0.05 < chain.pole.empty_display_size / 2.5 < 0.5


def test_two_armatures_have_two_collections_but_two_chains_share_one() -> None:
    first = limb(rigs.straight(4))
    bpy.ops.ik_addon.chain_add(chain_length=2)
    add(first, "b", chain_length=2)
    second = limb(rigs.straight(2))
    bpy.ops.ik_addon.chain_add(chain_length=2)
    assert {c.name: len(c.objects) for c in bpy.data.collections} == {"Rig IK": 4, f"{second.name} IK": 2}


def test_leaves_a_collection_of_the_user_alone() -> None:
    own = bpy.data.collections.new("Rig IK")
    bpy.context.scene.collection.children.link(own)
    ob = limb(rigs.straight(2))
    bpy.ops.ik_addon.chain_add()
    assert not own.objects
    assert ob.pose.bones["b"].ik_addon.target.users_collection[0] != own


def test_pole_is_made_only_for_two_bones_and_on_request() -> None:
    ob = limb(rigs.bent(3))
    bpy.ops.ik_addon.chain_add(chain_length=3)
    assert ob.pose.bones["c"].ik_addon.pole is None
    ob = limb(rigs.bent(2))
    bpy.ops.ik_addon.chain_add(with_pole=False)
    assert ob.pose.bones["b"].ik_addon.pole is None


def test_chain_length_zero_goes_to_the_root(capfd: pytest.CaptureFixture[str]) -> None:
    ob = limb(rigs.straight(5))
    assert "Added a chain from 'a' to 'e'" in said(capfd, bpy.ops.ik_addon.chain_add, chain_length=0)
    assert ob.pose.bones["e"].ik_addon.chain_length == 0


def test_a_chain_longer_than_its_parents_is_clamped_with_a_remark(capfd: pytest.CaptureFixture[str]) -> None:
    ob = limb(rigs.straight(3))
    report = said(capfd, bpy.ops.ik_addon.chain_add, chain_length=7)
    assert "Added a chain of only 3 bones. Chain Length is 7, but 'a' has no parent" in report
    assert ob.pose.bones["c"].ik_addon.chain_length == 3


# ---- the pose stays


@pytest.mark.parametrize("matrix", [IDENTITY, TURNED, SCALED, UNEVEN, MIRRORED, TINY])
@pytest.mark.parametrize("kind", ["bent", "straight", "posed", "nearly straight"])
def test_solving_keeps_the_pose(kind: str, matrix: Matrix) -> None:
    angle = {"bent": 0.4, "nearly straight": 0.02}.get(kind, 0.0)
    for count in (1, 2, 4):
        rigs.new_file()
        ob = limb(rigs.bent(count + 1, angle=angle), matrix)
        if kind == "posed":
            bend_bones(ob)
        bpy.ops.ik_addon.chain_add(chain_length=count)
        assert_solving_keeps_the_pose(ob)


@pytest.mark.parametrize("matrix", [IDENTITY, UNEVEN])
@pytest.mark.parametrize("kind", ["apart", "apart and posed", "mirrored", "folded", "XYZ", "AXIS_ANGLE"])
def test_solving_keeps_the_pose_of_a_limb_that_is(kind: str, matrix: Matrix) -> None:
    ob = limb([(0, 0, 0), (0, 0, 1), (0, 0.02, 0.01)] if kind == "folded" else rigs.bent(2), matrix)
    if "apart" in kind:
        rigs.add_bones(ob, [(0.3, 0.2, 2.2), (0.5, 0.8, 3.0)], ["hand"], parent="b", connect=False)
        activate(ob, "hand")
    if "posed" in kind:
        bend_bones(ob)
        ob.pose.bones["hand"].location = (0.1, 0.2, 0.05)
    elif kind == "mirrored":
        ob.pose.bones["b"].scale = (-1.0, 1.0, 1.0)
    elif kind in {"XYZ", "AXIS_ANGLE"}:
        for bone in ob.pose.bones:
            bone.rotation_mode = kind
    bpy.context.view_layer.update()
    bpy.ops.ik_addon.chain_add(chain_length=2)
    assert_solving_keeps_the_pose(ob)


# ---- refusals


@pytest.mark.parametrize("operator", ["chain_add", "chain_remove", "solve", "restore_pose"])
def test_refuses_in_edit_mode(operator: str) -> None:
    ob, _target = rigs.arm()
    with rigs.edit_mode(ob), refused("Switch to Pose Mode or Object Mode"):
        getattr(bpy.ops.ik_addon, operator)()


def test_refuses_without_an_armature_or_a_bone_or_for_a_second_chain() -> None:
    for active in (None, rigs.empty("Empty")):
        bpy.context.view_layer.objects.active = active
        with refused("Select an armature"):
            bpy.ops.ik_addon.chain_add()
    ob = limb(rigs.straight(2))
    with refused("has no chain. Select a bone and press Add Chain"):
        bpy.ops.ik_addon.chain_remove()
    activate(ob, None)
    with refused("'Rig' has no active bone. Click a bone of the limb, finger or tail in Pose Mode"):
        bpy.ops.ik_addon.chain_add()
    add(ob, "b")
    with refused("Bone 'b' already has a chain. Change its settings, or remove it first"):
        bpy.ops.ik_addon.chain_add()
    with refused("'Rig' has no bone 'gone'"):
        bpy.ops.ik_addon.chain_select(tip="gone")
    rigs.armature()
    with refused("has no bones. Add them in Edit Mode"):
        bpy.ops.ik_addon.character_setup()


def test_a_chain_may_share_bones_with_another_and_keeps_the_pose() -> None:
    ob = limb(rigs.bent(4))
    add(ob, "c", chain_length=2)
    before = rigs.pose(ob)
    add(ob, "d", chain_length=2)
    bpy.ops.ik_addon.solve()
    assert np.abs(rigs.pose(ob) - before).max() < 1e-4


@pytest.mark.parametrize("kind", ["IK", "COPY_ROTATION"])
def test_refuses_a_conflicting_constraint(kind: str) -> None:
    ob = limb(rigs.straight(3))
    constraint = rigs.constrain(ob.pose.bones["b"], kind, target=rigs.empty("Other"))
    bpy.context.view_layer.update()
    with refused(f"The constraint '{constraint.name}' on bone 'b' also moves bones of this chain. Mute it"):
        bpy.ops.ik_addon.chain_add()
    constraint.mute = True
    assert bpy.ops.ik_addon.chain_add() == {"FINISHED"}


@pytest.mark.parametrize(
    ("owner", "field", "value", "message"),
    [
        ("ob", "scale", (0.0, 1.0, 1.0), "'Rig' is scaled to zero"),
        ("ob", "location", (math.nan, 0.0, 0.0), "The transform of 'Rig' is not a finite number"),
        ("bone", "location", (math.nan, 0.0, 0.0), "The transform of bone 'a' is not a finite number. Reset it"),
        ("ob", "location", (0.0, 0.0, math.inf), "'Rig' is too far away, or scaled too much. Reset"),
        ("ob", "scale", (1.0, 1.0, math.inf), "'Rig' is too far away, or scaled too much. Reset"),
        ("bone", "scale", (0.0, 0.0, 0.0), "The chain that ends in 'b' has no length in this pose. Reset its bones"),
    ],
)
def test_refuses_transforms_in_which_nothing_can_be_placed(owner: str, field: str, value: Any, message: str) -> None:
    ob = limb(rigs.straight(2))
    setattr(ob if owner == "ob" else ob.pose.bones["a"], field, value)
    bpy.context.view_layer.update()
    with refused(message):
        bpy.ops.ik_addon.chain_add()


def test_refuses_if_the_target_would_not_move() -> None:
    ob = limb(rigs.straight(4))
    bpy.ops.ik_addon.chain_add(chain_length=2)
    activate(ob, "b")
    layer = bpy.context.view_layer.layer_collection.children["Rig IK"]
    layer.exclude = True
    with refused("The collection 'Rig IK' is disabled or excluded from this view layer"):
        bpy.ops.ik_addon.chain_add(chain_length=2)


@pytest.mark.parametrize("operator", ["chain_add", "chain_remove", "solve", "restore_pose", "character_setup"])
def test_refuses_linked_data(operator: str, tmp_path: Path) -> None:
    rigs.arm()
    library = tmp_path / "library.blend"
    rigs.into_library(library)
    (ob,) = rigs.from_library(library, "objects", "Rig")
    bpy.context.scene.collection.objects.link(ob)
    bpy.context.view_layer.objects.active = ob
    with refused("'Rig' is linked from another file and can't be posed. Make a library override of it"):
        getattr(bpy.ops.ik_addon, operator)()


# ---- removing


def added(**options: Any) -> bpy.types.Object:
    """Return an armature with a chain on 'b', posed by hand before."""
    ob = limb(rigs.bent(2))
    bend_bones(ob)
    bpy.ops.ik_addon.chain_add(**options)
    return ob


def test_remove_from_any_bone_of_the_chain_can_keep_targets() -> None:
    ob = added()
    activate(ob, "a")
    bpy.ops.ik_addon.chain_remove(remove_targets=False)
    assert not ob.pose.bones["b"].ik_addon.is_chain
    assert {o.name for o in bpy.context.scene.objects} == {"Rig", "IK Target b", "IK Pole b"}


def test_remove_keeps_objects_that_the_user_made() -> None:
    ob = added(with_pole=False)
    own = rigs.empty("Own")
    bpy.data.collections["Rig IK"].objects.link(own)
    ob.pose.bones["b"].ik_addon.target = own
    bpy.ops.ik_addon.chain_remove()
    assert {o.name for o in bpy.data.collections["Rig IK"].objects} == {"Own", "IK Target b"}


USES: dict[str, Callable[[bpy.types.Object, bpy.types.Object], object]] = {
    "as a parent": lambda target, _ob: setattr(rigs.empty("Child"), "parent", target),
    "by a constraint": lambda target, _ob: rigs.constrain(rigs.empty("A"), "COPY_LOCATION", target=target),
    "by keys": lambda target, _ob: target.keyframe_insert("location", frame=1),
    "by another chain": lambda target, ob: rigs.chain(ob, "a", target, 1, enabled=False),
    "with a constraint": lambda target, _ob: rigs.constrain(target, "COPY_LOCATION", target=rigs.empty("Prop")),
}


@pytest.mark.parametrize("use", USES)
def test_remove_keeps_a_target_in_use(use: str, capfd: pytest.CaptureFixture[str]) -> None:
    ob = added()
    target = ob.pose.bones["b"].ik_addon.target
    USES[use](target, ob)
    activate(ob, "b")
    assert "Kept what is animated or used elsewhere: 'IK Target b'" in said(capfd, bpy.ops.ik_addon.chain_remove)
    assert bpy.data.objects.get("IK Target b") == target
    assert "IK Pole b" not in bpy.data.objects


def test_remove_leaves_other_chains_solved_and_their_reports(addon: Addon) -> None:
    ob = limb(rigs.bent(4))
    bpy.ops.ik_addon.chain_add(chain_length=2)
    add(ob, "b", chain_length=2)
    for bone in ("b", "d"):
        ob.pose.bones[bone].ik_addon.target.location.y += 0.2
    bpy.ops.ik_addon.solve()
    solved = np.array(ob.pose.bones["d"].rotation_quaternion)
    bpy.ops.ik_addon.chain_remove()
    assert np.array_equal(ob.pose.bones["d"].rotation_quaternion, solved)
    assert tuple(ob.pose.bones["b"].rotation_quaternion) == (1.0, 0.0, 0.0, 0.0)
    assert addon.report(ob, "b") is None
    assert addon.report(ob, "d").reached


# ---- selecting


@pytest.mark.parametrize("mode", ["POSE", "OBJECT"])
def test_select_makes_the_tip_active(mode: str) -> None:
    ob = limb(rigs.straight(3))
    bpy.ops.ik_addon.chain_add()
    activate(ob, "a")
    bpy.ops.object.mode_set(mode=mode)
    bpy.ops.ik_addon.chain_select(tip="c")
    assert ob.data.bones.active.name == "c"
    holders = ob.pose.bones if bpy.app.version >= (5, 0, 0) else ob.data.bones
    assert [bone.name for bone in holders if bone.select] == ["c"]


# ---- reports and settings


def test_keys_a_setting_of_a_chain(capfd: pytest.CaptureFixture[str]) -> None:
    ob = limb(rigs.bent(2))
    chain = add(ob, "b")
    for frame, influence in ((1, 0.0), (11, 1.0)):
        bpy.context.scene.frame_set(frame)
        chain.influence = influence
        assert bpy.ops.ik_addon.setting_key(tip="b", setting="influence") == {"FINISHED"}
    bpy.context.scene.frame_set(6)
    assert chain.influence == pytest.approx(0.5, abs=0.05)
    with refused("'Rig' has no chain on bone 'a'"):
        bpy.ops.ik_addon.setting_key(tip="a", setting="influence")
    assert "Keyed Pole Angle of the chain on 'b'" in said(
        capfd, bpy.ops.ik_addon.setting_key, tip="b", setting="pole_angle"
    )


@pytest.mark.parametrize("by", ["collection", "bone"])
def test_in_object_mode_a_hidden_active_bone_is_refused(by: str) -> None:
    ob = limb(rigs.bent(2))
    hidden = ob.data.collections.new("Hidden")
    if by == "collection":
        hidden.assign(ob.data.bones["b"])
        hidden.is_visible = False
    else:
        (ob.pose.bones["b"] if bpy.app.version >= (5, 0) else ob.data.bones["b"]).hide = True
    bpy.ops.object.mode_set(mode="OBJECT")
    with refused("The active bone 'b' is hidden. Click a bone of the limb, finger or tail in Pose Mode"):
        bpy.ops.ik_addon.chain_add()
    assert not ob.pose.bones["b"].ik_addon.is_chain
    bpy.ops.object.mode_set(mode="POSE")
    assert bpy.ops.ik_addon.chain_add() == {"FINISHED"}


@pytest.mark.usefixtures("rigify")
def test_in_object_mode_a_bone_that_nobody_picked_is_refused() -> None:
    """In Blender's human metarig as it is added, all bones are selected, and an eyebrow bone is active."""
    ob = armature_of("human")
    assert "brow" in ob.data.bones.active.name
    with refused("No bone of 'metarig' is selected. Click a bone of the limb, finger or tail in Pose Mode"):
        bpy.ops.ik_addon.chain_add()
    ob.data.bones.active = ob.data.bones["shin.L"]
    assert bpy.ops.ik_addon.chain_add() == {"FINISHED"}
    assert ob.pose.bones["shin.L"].ik_addon.is_chain
