"""Targets and poles: control bones of the armature, empties and their collection, and what poles follow."""

from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix

from tests import rigs, rigs_named
from tests.chains.test_end_bone import body, body_poses
from tests.conftest import Addon
from tests.reliability.states import activate, add, snapshot
from tests.rig.test_ends import PLACE, TURN, turn_between, world
from tests.rigs_named import RIGS

MATRICES = [
    Matrix.Identity(4),
    Matrix.LocRotScale((3, -2, 1), Euler((0.4, -1.1, 2.0)), (2.5, 2.5, 2.5)),
    Matrix.LocRotScale((0.5, 0.2, 0), Euler((0.3, 0.7, 1.0)), (-1.0, 1.0, 1.0)),
]


def contents() -> dict[str, Any]:
    """Return everything in a file that Add Chain could leave behind."""
    lists: Any = (bpy.data.objects, bpy.data.meshes, bpy.data.collections)
    bones = {ob.name: [b.name for b in ob.data.bones] for ob in bpy.data.objects if ob.type == "ARMATURE"}
    groups = {a.name: [group.name for group in a.collections] for a in bpy.data.armatures}
    return {"names": [sorted(own.keys()) for own in lists], "bones": bones, "groups": groups}


@pytest.mark.parametrize("mode", ["OBJECT", "POSE"])
@pytest.mark.parametrize("matrix", MATRICES, ids=["plain", "scaled", "mirrored"])
def test_the_pose_stays_and_the_foot_follows_its_bone(matrix: Matrix, mode: str) -> None:
    ob = body(matrix)
    for name in ("hips", "thigh.L", "foot.L"):
        ob.pose.bones[name].rotation_quaternion = Euler((0.2, 0.1, -0.1)).to_quaternion()
    bpy.ops.object.mode_set(mode=mode)
    bpy.context.view_layer.update()
    before = body_poses(ob)
    assert bpy.ops.ik_addon.chain_add(controls="BONES", live=True) == {"FINISHED"}
    assert ob.mode == mode
    assert np.abs(body_poses(ob) - before).max() < 2e-6
    chain = ob.pose.bones["shin.L"].ik_addon
    assert (chain.target, chain.target_bone) == (ob, "IK Target shin.L")
    assert (chain.pole, chain.pole_bone) == (ob, "IK Pole shin.L")
    assert chain.use_end_rotation
    control = ob.pose.bones["IK Target shin.L"]
    assert control.parent is None
    assert not control.bone.use_deform
    assert control.custom_shape is not None
    foot = world(ob, "foot.L")
    rigs.change(ob.pose.bones["hips"], location=(0.01, -0.05, 0.02))
    assert turn_between(world(ob, "foot.L"), foot) < TURN
    assert (world(ob, "foot.L").translation - foot.translation).length < 2.5 * PLACE
    rigs.change(control, rotation_quaternion=Euler((0.3, 0, 0)).to_quaternion())
    assert abs(turn_between(world(ob, "foot.L"), foot) - 0.3) < 1e-4
    before = body_poses(ob)
    add(ob, "shin.R", controls="BONES")
    bpy.context.view_layer.update()
    assert np.abs(body_poses(ob) - before).max() < 2e-6, "a second chain does not affect the first"


@pytest.mark.parametrize("controls", ["EMPTIES", "BONES"])
@pytest.mark.parametrize("live", [False, True])
def test_remove_chain_leaves_no_trace(live: bool, controls: str) -> None:
    ob = body()
    ob.pose.bones["thigh.L"].rotation_quaternion = Euler((0.3, -0.4, 0.5)).to_quaternion()
    rigs.change(ob.ik_addon, live=live)
    before, data = contents(), snapshot()
    chain = add(ob, "shin.L", controls=controls, live=live)
    assert contents() != before
    chain.softness, chain.solver, chain.out_of_reach = 0.2, "FABRIK", "STRETCH"
    goal = ob.pose.bones[chain.target_bone] if controls == "BONES" else chain.target
    rigs.shift(goal, x=0.05)
    bpy.ops.ik_addon.solve()
    activate(ob, "shin.L")
    assert bpy.ops.ik_addon.chain_remove() == {"FINISHED"}
    assert contents() == before
    assert snapshot() == data


def key_it(ob: bpy.types.Object) -> None:
    ob.pose.bones["IK Target shin.L"].keyframe_insert("location", frame=1)


def hang_on_it(ob: bpy.types.Object) -> None:
    child = rigs.empty("Child")
    child.parent, child.parent_type, child.parent_bone = ob, "BONE", "IK Target shin.L"


def constrain_to_it(ob: bpy.types.Object) -> None:
    rigs.constrain(rigs.empty("Follower"), "COPY_LOCATION", target=ob, subtarget="IK Target shin.L")


@pytest.mark.parametrize("use", [key_it, hang_on_it, constrain_to_it])
def test_a_control_bone_in_use_is_kept(use: Any) -> None:
    ob = body()
    bpy.ops.ik_addon.chain_add(controls="BONES")
    use(ob)
    activate(ob, "IK Target shin.L")  # makes its chain active
    bpy.ops.ik_addon.chain_remove()
    assert "IK Target shin.L" in ob.pose.bones
    assert "IK Pole shin.L" not in ob.pose.bones


def test_the_mirrored_chain_gets_its_own_control_bones() -> None:
    ob = body()
    bpy.ops.ik_addon.chain_add(controls="BONES")
    count = len(ob.pose.bones)
    before = body_poses(ob)
    assert bpy.ops.ik_addon.mirror_chain() == {"FINISHED"}
    image = ob.pose.bones["shin.R"].ik_addon
    assert (image.target_bone, image.pole_bone, image.end_bone) == ("IK Target shin.R", "IK Pole shin.R", "foot.R")
    assert len(ob.pose.bones) == count + 2
    rigs.go_live(ob)
    assert np.abs(body_poses(ob) - before).max() < 2e-6
    assert bpy.ops.ik_addon.mirror_chain() == {"FINISHED"}
    assert len(ob.pose.bones) == count + 2, "those that are there are taken"


def test_a_linked_armature_gets_empties(tmp_path: Any) -> None:
    ob = body()
    ob.data.name = "Linked"
    path = str(tmp_path / "library.blend")
    bpy.data.libraries.write(path, {ob.data})
    bpy.data.objects.remove(ob)
    bpy.data.armatures.remove(bpy.data.armatures["Linked"])
    own = bpy.data.objects.new("Own", rigs.from_library(path, "armatures", "Linked")[0])
    bpy.context.scene.collection.objects.link(own)
    bpy.context.view_layer.update()
    add(own, "shin.L", tip="shin.L", controls="BONES")
    assert own.pose.bones["shin.L"].ik_addon.target.type == "EMPTY"


# ---- modes


def posed_and_not(*modes: str) -> list[bpy.types.Object]:
    """Return selected armatures in these modes; the first is active and has a tip as its active bone."""
    made = [body(), *(rigs.limb(rigs.straight(2), "ab", f"Other {i}") for i in range(1, len(modes)))]
    for own, mode in zip(made, modes, strict=True):
        own.select_set(mode == "POSE")
    if "POSE" in modes:
        bpy.context.view_layer.objects.active = made[modes.index("POSE")]
        bpy.ops.object.mode_set(mode="POSE")
    for own in made:
        own.select_set(True)
    activate(made[0], "shin.L")
    return made


@pytest.mark.parametrize("modes", [("POSE", "POSE"), ("OBJECT", "OBJECT", "OBJECT"), ("POSE", "OBJECT", "POSE")])
def test_all_armatures_stay_in_their_modes(modes: tuple[str, ...]) -> None:
    made = posed_and_not(*modes)

    def stands() -> bool:
        objects = bpy.context.view_layer.objects
        is_alike = tuple(own.mode for own in made) == modes and objects.active == made[0]
        return is_alike and all(own.select_get() for own in made)

    assert stands()
    assert bpy.ops.ik_addon.chain_add(controls="BONES") == {"FINISHED"}
    assert stands()
    assert bpy.ops.ik_addon.chain_remove() == {"FINISHED"}
    assert stands()


# ---- controls that are empties: the collection in which they are made


def collection(name: str, *objects: bpy.types.Object, parent: bpy.types.Collection | None = None) -> Any:
    """A new collection in the scene, or in a parent, with objects that leave the Scene Collection."""
    made = bpy.data.collections.new(name)
    (parent or bpy.context.scene.collection).children.link(made)
    for ob in objects:
        made.objects.link(ob)
        if ob.name in bpy.context.scene.collection.objects:
            bpy.context.scene.collection.objects.unlink(ob)
    return made


def add_chain(ob: bpy.types.Object) -> str:
    """Add a chain; return the name of the collection that holds the new one, of targets."""
    add(ob, "b", live=True)
    every = (bpy.context.scene.collection, *bpy.data.collections)
    (holder,) = (own.name for own in every if "Rig IK" in own.children)
    return holder


def test_targets_are_made_beside_the_armature_in_the_first_collection_in_use() -> None:
    ob = rigs.limb(rigs.bent(2), "ab")
    collection("Excluded", ob)
    bpy.context.view_layer.layer_collection.children["Excluded"].exclude = True
    collection("Disabled", ob).hide_viewport = True
    collection("Hero", ob, parent=collection("Set"))
    collection("Second", ob)
    assert add_chain(ob) == "Hero"


def link(path: Path, name: str) -> bpy.types.Object:
    """Link a collection into an empty file, as an editable override; return its armature."""
    rigs.into_library(path)
    (linked,) = rigs.from_library(path, "collections", name)
    scene = bpy.context.scene
    scene.collection.children.link(linked)
    linked.override_hierarchy_create(scene, bpy.context.view_layer, do_fully_editable=True)
    scene.collection.children.unlink(linked)
    bpy.context.view_layer.update()
    (ob,) = (ob for ob in scene.objects if ob.type == "ARMATURE")
    return ob


def test_targets_are_linked_with_the_character(tmp_path: Path) -> None:
    ob = rigs.limb(rigs.bent(2), "ab")
    collection("Hero", ob)
    add_chain(ob)
    ob = link(tmp_path / "hero.blend", "Hero")
    chain = ob.pose.bones["b"].ik_addon
    assert {chain.target.name, chain.pole.name} < set(bpy.context.scene.objects.keys())
    rigs.shift(chain.target, x=0.2)
    assert abs(rigs.tail(ob, "b") - rigs.position(chain.target)).max() < 1e-4


def test_a_chain_added_to_an_override_has_its_target_in_the_scene(tmp_path: Path) -> None:
    ob = rigs.limb(rigs.bent(2), "ab")
    collection("Hero", ob)
    ob = link(tmp_path / "hero.blend", "Hero")
    assert add_chain(ob) == bpy.context.scene.collection.name, "an overridden collection can't be changed"


@pytest.mark.parametrize("role", ["target", "pole"])
def test_a_goal_that_was_left_in_the_library_is_named(addon: Addon, tmp_path: Path, role: str) -> None:
    ob = rigs.limb(rigs.bent(2), "ab")
    target, pole = rigs.empty("Target", (1.0, 0.5, 1.0)), rigs.empty("Pole", (0.0, 3.0, 0.0))
    rigs.chain(ob, "b", target, 2, pole=pole)
    ob.ik_addon.live = True
    collection("Hero", ob, pole if role == "target" else target)
    ob = link(tmp_path / "hero.blend", "Hero")
    bpy.context.scene.frame_set(2)
    bpy.context.view_layer.update()
    message = addon.report(ob, "b").message
    assert message.startswith(f"'{role.title()}' was not linked with the character. In 'hero.blend', move")
    activate(ob, "b")
    assert bpy.ops.ik_addon.fix(tip="b") == {"FINISHED"}
    bpy.context.view_layer.update()
    assert not addon.report(ob, "b").failed


# ---- poles follow the body


TURNED = Matrix.LocRotScale((3.0, -2.0, 1.0), Euler((0.4, -1.1, 2.0)), (1.5, 1.5, 1.5))


def leg(matrix: Matrix | None = None) -> bpy.types.Object:
    """Return Manny with a chain on his left leg."""
    ob = rigs_named.build(RIGS["Manny"])
    rigs.change(ob, matrix_world=matrix or Matrix.Identity(4))
    add(ob, "calf_l")
    return ob


def seen_from(ob: bpy.types.Object, bone: str, goal: bpy.types.Object) -> np.ndarray:
    """Return the place of a goal relative to a bone."""
    pose_bone = rigs.evaluated(ob).pose.bones[bone]
    return np.array((ob.matrix_world @ pose_bone.matrix).inverted() @ rigs.evaluated(goal).matrix_world.translation)


@pytest.mark.parametrize("matrix", [None, TURNED])
def test_the_pole_follows_the_pelvis(matrix: Matrix | None) -> None:
    ob = leg(matrix)
    pole = ob.pose.bones["calf_l"].ik_addon.pole
    rigs.go_live_unmoved(ob, 2e-5)
    ob.ik_addon.live = False
    before = seen_from(ob, "pelvis", pole)
    knee = rigs.head(ob, "calf_l")
    line = rigs.tail(ob, "calf_l") - rigs.head(ob, "thigh_l")
    assert abs((rigs.position(pole) - knee) @ line) < 0.1 * np.linalg.norm(line) ** 2, "beside the knee"
    ob.pose.bones["pelvis"].rotation_quaternion = Euler((0.3, -0.5, 0.9)).to_quaternion()
    rigs.change(ob.pose.bones["root"], location=(0.2, 0.4, -0.3))
    assert pole.parent_bone == "pelvis"
    assert seen_from(ob, "pelvis", pole) == pytest.approx(before, abs=1e-5)


def test_the_mirrored_pole_is_parented_too() -> None:
    ob = leg(TURNED)
    bpy.ops.ik_addon.mirror_chain()
    pole, mirrored = (ob.pose.bones[f"calf_{side}"].ik_addon.pole for side in "lr")
    assert mirrored.parent_bone == "pelvis"
    to_object = ob.matrix_world.inverted()
    there = np.array(to_object @ rigs.evaluated(mirrored).matrix_world.translation)
    here = np.array(to_object @ rigs.evaluated(pole).matrix_world.translation)
    assert there == pytest.approx(here * (-1.0, 1.0, 1.0), abs=1e-5)


def test_a_chain_at_the_top_leaves_its_pole_without_a_parent() -> None:
    ob, _target = rigs.arm()
    ob.pose.bones["lower"].ik_addon.is_chain = False
    add(ob, "lower")
    assert ob.pose.bones["lower"].ik_addon.pole.parent is None


def test_a_pole_is_not_parented_to_bones_solved_with_its_chain() -> None:
    ob = rigs.limb(rigs.bent(5), list("abcde"))
    for tip in "de":
        add(ob, tip, tip=tip, chain_length=2)
    poles = [ob.pose.bones[tip].ik_addon.pole.parent_bone for tip in "de"]
    assert poles == ["b", "b"], "'c' is a bone of the first chain, which shares 'd' with the second"
    assert bpy.ops.ik_addon.solve() == {"FINISHED"}
