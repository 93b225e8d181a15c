"""Controls belong to the armature whose chains follow them, whatever it is called and however it was copied."""

import re
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import activate


def two_arms(name: str = "metarig") -> bpy.types.Object:
    ob = rigs.limb([(0, 0, 0), (0, 0, 1)], ["spine"], name=name)
    for side, x in (("L", 1), ("R", -1)):
        points = [(x * 0.2, 0, 1), (x * 0.6, 0.05, 1), (x, 0, 1), (x * 1.2, 0, 1)]
        names = [f"{part}.{side}" for part in ("upper_arm", "forearm", "hand")]
        rigs.add_bones(ob, points, names, parent="spine", connect=False)
    return ob


def with_chains(controls: str = "EMPTIES") -> bpy.types.Object:
    """Return an armature with live chains on both arms."""
    ob = two_arms()
    activate(ob, "forearm.L")
    assert bpy.ops.ik_addon.chain_add(live=True, controls=controls) == {"FINISHED"}
    assert bpy.ops.ik_addon.mirror_chain() == {"FINISHED"}
    return ob


def goals(ob: bpy.types.Object) -> list[bpy.types.Object]:
    chains = [bone.ik_addon for bone in ob.pose.bones if bone.ik_addon.is_chain]
    return [goal for chain in chains for goal in (chain.target, chain.pole)]


def duplicate(*objects: bpy.types.Object) -> bpy.types.Object:
    """Duplicate objects, as Shift D does; return the duplicate of the first."""
    rigs.select(*objects)
    assert bpy.ops.object.duplicate() == {"FINISHED"}
    bpy.context.view_layer.update()
    copy = bpy.context.view_layer.objects.active
    assert copy is not None
    return copy


def shown_by(goal: bpy.types.Object) -> bool:
    """Whether the panel shows a chain while an object is active."""
    bpy.context.view_layer.objects.active = goal
    return bool(bpy.ops.ik_addon.drag_target.poll())


def remarks(addon: Addon, ob: bpy.types.Object, part: str = "") -> list[str]:
    """Return what is remarked about the left chain of an armature, or what of it says this."""
    found = addon.module("rig.plan.chain").check(ob, ob.pose.bones["forearm.L"], bpy.context.view_layer)
    return [remark for remark in found if part in remark]


def names() -> set[str]:
    return {own.name for own in (*bpy.data.objects, *bpy.data.collections)}


@pytest.mark.parametrize("is_own", [False, True])
def test_a_selected_target_shows_the_chain_of_a_renamed_armature(is_own: bool) -> None:
    ob = with_chains()
    if is_own:
        ob.pose.bones["forearm.L"].ik_addon.target = rigs.empty("Ball", (0.8, 0.0, 1.0))
    ob.name = "Hero"
    assert all(map(shown_by, goals(ob)))
    bpy.context.view_layer.objects.active = ob.pose.bones["forearm.L"].ik_addon.target
    assert bpy.ops.ik_addon.chain_remove() == {"FINISHED"}
    assert not ob.pose.bones["forearm.L"].ik_addon.is_chain
    assert ob.pose.bones["forearm.R"].ik_addon.is_chain


def test_an_object_that_nobody_follows_shows_no_chain() -> None:
    ob = with_chains()
    stray = rigs.empty("Stray")
    assert not shown_by(stray)
    ob.pose.bones["forearm.L"].ik_addon.pole = stray
    assert shown_by(stray)
    ob.pose.bones["forearm.L"].ik_addon.pole = None
    assert not shown_by(stray)


def test_a_renamed_armature_keeps_its_controls_in_one_collection() -> None:
    ob = with_chains()
    ob.name = "Hero"
    before = names()
    activate(ob, "forearm.L")
    for _ in range(2):
        assert bpy.ops.ik_addon.mirror_chain() == {"FINISHED"}
    assert names() == before, "Mirror Chain takes what the other side has"
    assert bpy.ops.ik_addon.chain_add(tip="spine", chain_length=1) == {"FINISHED"}
    assert [own.name for own in bpy.data.collections] == ["metarig IK"]


def test_the_duplicate_of_a_character_with_its_controls_stands_on_its_own() -> None:
    ob = with_chains()
    copy = duplicate(ob, *goals(ob))
    assert set(goals(copy)).isdisjoint(goals(ob))
    assert all(map(shown_by, goals(copy)))
    ob.name, copy.name = "Hero", "metarig"
    copy.location.y = 3.0
    rigs.shift(copy.pose.bones["forearm.L"].ik_addon.target, y=3.2)
    before, pose, held = names(), rigs.pose(ob), [goal.matrix_world.copy() for goal in goals(ob)]
    activate(copy, "forearm.L")
    assert bpy.ops.ik_addon.mirror_chain() == {"FINISHED"}
    assert names() == before
    assert np.array_equal(rigs.pose(ob), pose)
    assert [goal.matrix_world for goal in goals(ob)] == held
    left, right = (rigs.position(copy.pose.bones[f"forearm.{side}"].ik_addon.target) for side in "LR")
    assert np.allclose(right, left * (-1.0, 1.0, 1.0), atol=1e-6)


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("first", ["metarig", "A copy"])
def test_a_copy_without_controls_says_so_and_makes_its_own(addon: Addon, live: bool, first: str) -> None:
    ob = with_chains()
    ob.ik_addon.live = live
    ob.pose.bones["forearm.R"].ik_addon.target.keyframe_insert("location", frame=1)
    bpy.context.view_layer.update()
    copy = duplicate(ob)
    copy.name = first
    rigs.change(copy.location, y=3.0)
    tip = copy.pose.bones["forearm.L"]

    assert remarks(addon, copy, "own targets")
    assert not remarks(addon, ob, "own targets")
    report = addon.report(copy, tip.name)
    assert (report is not None) is live
    assert addon.fix(tip).label == "Make Own Targets"
    activate(copy, tip.name)
    before = len(bpy.data.objects)
    assert bpy.ops.ik_addon.fix(tip=tip.name) == {"FINISHED"}
    assert len(bpy.data.objects) == before + 4
    homes = [{collection.name for goal in goals(rig) for collection in goal.users_collection} for rig in (ob, copy)]
    assert [len(names) for names in homes] == [1, 1]
    assert homes[0] != homes[1]
    assert set(goals(copy)).isdisjoint(goals(ob))
    assert not remarks(addon, copy, "own targets")
    own, other = (rig.pose.bones["forearm.L"].ik_addon for rig in (copy, ob))
    assert np.allclose(rigs.position(own.target), rigs.position(other.target) + np.array([0.0, 3.0, 0.0]), atol=1e-5)
    assert np.allclose(rigs.position(own.pole), rigs.position(other.pole) + np.array([0.0, 3.0, 0.0]), atol=1e-5)
    keyed, source = (rig.pose.bones["forearm.R"].ik_addon.target.animation_data for rig in (copy, ob))
    assert keyed.action is not None
    assert keyed.action != source.action
    own.target.location.z += 0.1
    held = rigs.pose(ob)
    bpy.context.view_layer.update()
    assert np.array_equal(rigs.pose(ob), held)


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("poled", [True, False])
def test_a_copy_is_told_from_the_original_for_good(addon: Addon, tmp_path: Path, poled: bool, seen: bool) -> None:
    ob = with_chains()
    for bone in ob.pose.bones if not poled else ():
        bone.ik_addon.pole = None
    for own in goals(ob) if poled else ():
        own.parent = None
    third = duplicate(ob, *filter(None, goals(ob)))  # as Shift D does when its controls are selected, too
    copies = [duplicate(ob), duplicate(third)] if seen else [own.copy() for own in (ob, third)]
    last = duplicate(copies[0]) if seen else copies[0].copy()
    for each, name in zip((last, *copies, third, ob), ("A", "B", "C", "D", "E"), strict=True):
        each.name = name
        each.use_fake_user = True
    rigs.save_and_open(tmp_path / "file.blend", 2)
    lender = {}
    for each in filter(lambda own: own.type == "ARMATURE", bpy.data.objects):
        (lender[each.name],) = [re.findall("belong to '(.)'", remark) for remark in remarks(addon, each, "own")] or [[]]
    assert lender == {"A": ["E"], "B": ["E"], "C": ["D"], "D": [], "E": []}


def test_a_target_belongs_to_the_armature_it_was_made_for(addon: Addon) -> None:
    older, ob = two_arms("Older"), with_chains()
    for own in goals(ob):
        own.parent = None
    rigs.chain(older, "forearm.L", ob.pose.bones["forearm.L"].ik_addon.target, 2)
    bpy.context.view_layer.update()
    assert not remarks(addon, ob)
    assert "belong to 'metarig'" in remarks(addon, older)[0]


def test_a_copy_has_its_own_control_bones_and_leaves_the_file_with_them(addon: Addon) -> None:
    ob = with_chains("BONES")
    copy = duplicate(ob)
    assert set(goals(copy)) == {copy}
    for rig in (ob, copy):
        assert (remarks(addon, rig), rig.users) == ([], 1)
    still, moving = rigs.tail(ob, "forearm.L"), rigs.tail(copy, "forearm.L")
    rigs.shift(copy.pose.bones["IK Target forearm.L"], z=0.1)
    assert np.array_equal(rigs.tail(ob, "forearm.L"), still)
    assert np.linalg.norm(rigs.tail(copy, "forearm.L") - moving) > 0.01
    assert bpy.ops.object.delete() == {"FINISHED"}
    assert [rig.name for rig in bpy.data.objects if rig.type == "ARMATURE"] == [ob.name]


def test_mirroring_keeps_what_the_user_chose_for_the_other_side() -> None:
    ob = two_arms()
    left, right = rigs.empty("Hand.L", (0.8, -0.1, 1.0)), rigs.empty("Hand.R", (-0.8, 0.1, 1.1))
    rigs.chain(ob, "forearm.L", left, 2)
    rigs.chain(ob, "forearm.R", right, 2)
    bpy.context.view_layer.update()
    before, place = names(), right.location.copy()
    activate(ob, "forearm.L")
    for _ in range(3):
        assert bpy.ops.ik_addon.mirror_chain() == {"FINISHED"}
    assert names() == before
    assert ob.pose.bones["forearm.R"].ik_addon.target == right
    assert right.location == place


@pytest.mark.parametrize("controls", ["EMPTIES", "BONES"])
def test_mirroring_keeps_a_bone_that_the_user_chose_for_the_other_side(controls: str) -> None:
    ob, prop = two_arms(), rigs.armature("Prop")
    rigs.add_bones(prop, rigs.bent(2), ["grip", "end"])
    rigs.chain(ob, "forearm.R", prop, 2, target_bone="grip")
    activate(ob, "forearm.L")
    assert bpy.ops.ik_addon.chain_add(live=True, with_pole=False, controls=controls) == {"FINISHED"}
    before = names(), len(ob.data.bones)
    assert bpy.ops.ik_addon.mirror_chain() == {"FINISHED"}
    chain = ob.pose.bones["forearm.R"].ik_addon
    assert (chain.target, chain.target_bone) == (prop, "grip")
    assert (names(), len(ob.data.bones)) == before


@pytest.mark.parametrize("roll", [0.0, 1.0])
def test_mirroring_again_moves_control_bones_as_it_moves_empties(roll: float) -> None:
    ob = with_chains("BONES")
    left, right = (ob.pose.bones[f"forearm.{side}"].ik_addon.target_bone for side in "LR")
    with rigs.edit_mode(ob) as bones:
        bones[right].roll += roll
    rigs.change(ob.pose.bones[left], location=(0.1, -0.2, -0.1), rotation_quaternion=(0.9, 0.2, 0.3, 0.1))
    activate(ob, "forearm.L")
    for _ in range(2):
        assert bpy.ops.ik_addon.mirror_chain() == {"FINISHED"}
    hands = [np.array(rigs.evaluated(ob).pose.bones[f"hand.{side}"].matrix) for side in "LR"]
    across = np.diag([-1.0, 1.0, 1.0, 1.0])
    assert np.allclose(across @ hands[0] @ across, hands[1], atol=1e-5)
    ob.pose.bones[right].keyframe_insert("location", frame=1)
    place = ob.pose.bones[right].matrix.copy()
    ob.pose.bones[left].location.z += 0.1
    assert bpy.ops.ik_addon.mirror_chain() == {"FINISHED"}
    assert ob.pose.bones[right].matrix == place, "an animated control stays"


def test_mirroring_takes_a_target_that_was_left() -> None:
    ob = with_chains()
    activate(ob, "forearm.R")
    assert bpy.ops.ik_addon.chain_remove(remove_targets=False) == {"FINISHED"}
    before = names()
    activate(ob, "forearm.L")
    assert bpy.ops.ik_addon.mirror_chain() == {"FINISHED"}
    assert names() == before


@pytest.mark.parametrize("controls", ["EMPTIES", "BONES"])
@pytest.mark.parametrize("name", ["forearm.L", "elbow.L", "forearm.L.001"])
def test_a_chain_without_a_target_is_offered_the_one_it_had(addon: Addon, controls: str, name: str) -> None:
    ob = with_chains(controls)
    chain = ob.pose.bones["forearm.L"].ik_addon
    had = chain.target, chain.target_bone
    tip = without_target(ob, "forearm.L", name)
    assert addon.fix(tip).label == "Use 'IK Target forearm.L'"
    activate(ob, "forearm.R")
    before = names()
    assert bpy.ops.ik_addon.fix(tip=tip.name) == {"FINISHED"}
    assert (tip.ik_addon.target, tip.ik_addon.target_bone) == had
    assert names() == before


@pytest.mark.parametrize("controls", ["EMPTIES", "BONES"])
def test_renamed_chains_without_targets_are_offered_the_nearest_that_they_had(addon: Addon, controls: str) -> None:
    ob = with_chains(controls)
    for side, name in (("L", "elbow"), ("R", "ellbogen")):
        without_target(ob, f"forearm.{side}", name)
    offered = [addon.fix(ob.pose.bones[name]).label for name in ("elbow", "ellbogen")]
    assert offered == ["Use 'IK Target forearm.L'", "Use 'IK Target forearm.R'"]


def without_target(ob: bpy.types.Object, tip: str, name: str) -> bpy.types.PoseBone:
    """Rename the tip of a chain, and take its target away."""
    bone = ob.pose.bones[tip]
    bone.name = name
    rigs.change(bone.ik_addon, target=None, target_bone="")
    return bone


def test_a_chain_on_a_numbered_bone_is_offered_the_target_it_had(addon: Addon) -> None:
    ob = rigs.limb(rigs.bent(3), ["tail", "tail.001", "tail.002"])
    activate(ob, "tail.002")
    assert bpy.ops.ik_addon.chain_add(live=True, controls="EMPTIES") == {"FINISHED"}
    assert addon.fix(without_target(ob, "tail.002", "tail.002")).label == "Use 'IK Target tail.002'"


def test_the_target_of_another_armature_is_not_offered(addon: Addon) -> None:
    other = two_arms("Other")
    activate(other, "forearm.L")
    assert bpy.ops.ik_addon.chain_add() == {"FINISHED"}
    without_target(other, "forearm.L", "elbow.L")
    tip = without_target(with_chains(), "forearm.L", "front.L")
    assert addon.fix(tip).label == "Use 'IK Target forearm.L.001'"


def test_a_character_overridden_with_its_armature_alone_keeps_the_targets_of_its_library(
    addon: Addon, tmp_path: Path
) -> None:
    ob = with_chains()
    path = str(tmp_path / "library.blend")
    bpy.data.libraries.write(path, {ob, *goals(ob)})
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    (linked,) = rigs.from_library(tmp_path / "library.blend", "objects", "metarig")
    own: Any = linked.override_create(remap_local_usages=True)
    for each in (own, *goals(own)):
        bpy.context.scene.collection.objects.link(each)
    bpy.context.view_layer.update()
    assert set(goals(own)) == set(goals(linked))
    assert not remarks(addon, own, "own targets")
    assert all(map(shown_by, goals(own)))


def test_undo_keeps_controls_with_their_armature() -> None:
    ob = with_chains()
    bpy.ops.ed.undo_push(message="before")
    ob.pose.bones["forearm.L"].ik_addon.target = rigs.empty("Ball", (0.8, 0.0, 1.0))
    assert shown_by(bpy.data.objects["Ball"])
    assert not shown_by(bpy.data.objects["IK Target forearm.L"])
    bpy.ops.ed.undo_push(message="another target")
    bpy.ops.ed.undo()
    assert shown_by(bpy.data.objects["IK Target forearm.L"])
    bpy.ops.ed.redo()
    assert shown_by(bpy.data.objects["Ball"])
    assert not shown_by(bpy.data.objects["IK Target forearm.L"])
