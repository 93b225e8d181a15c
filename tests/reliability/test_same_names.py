"""Objects of this file and linked objects of the same name are told apart."""

from pathlib import Path

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.rigs import apart, poses_at

NAMES = ("Rig", "Target", "Pole", "Controls")
FRAMES = (1, 7, 14, 20, 3)

first_or_last = pytest.mark.parametrize("first", [True, False], ids=["linked first", "linked last"])


def make(offset: float) -> bpy.types.Object:
    """Two live limbs, one with a pole, the other with a bone as target; each object is in its own collection."""
    ob = rigs.armature("Rig")
    ob.location.x = offset
    rigs.add_bones(ob, rigs.bent(3), ["root", "upper", "lower"])
    rigs.add_bones(ob, [(1.0, 0.0, 0.0), (1.0, 0.2, 1.0), (1.0, 0.0, 2.0)], ["thigh", "shin"], parent="root")
    controls = rigs.limb([(0.0, 0.0, 0.0), (0.0, 0.0, 0.3)], ["knob"], name="Controls")
    target, pole = rigs.empty("Target"), rigs.empty("Pole", (offset, 3.0, 1.0))
    rigs.key(target, "location", {1: (offset + 0.9, 0.5, 1.9), 20: (offset - 0.3, 0.9, 1.6)})
    rigs.key(controls, "location", {1: (offset + 1.2, 0.5, 1.0), 20: (offset + 0.8, -0.6, 1.4)})
    rigs.key(pole, "location", {1: (offset, 3.0, 1.0), 20: (offset + 2.0, 2.0, 1.0)})
    rigs.chain(ob, "lower", target, 2, pole=pole)
    rigs.chain(ob, "shin", controls, 2, target_bone="knob")
    ob.ik_addon.live = True
    for part in (ob, target, pole, controls):
        rigs.in_collection(f"In {part.name}", part)
    return ob


def library(folder: Path) -> Path:
    """Save the same rig, at another place, as a library; an empty file is open afterwards."""
    make(50.0)
    bpy.context.view_layer.update()
    path = folder / "library.blend"
    rigs.into_library(path)
    return path


def link(path: Path, names: tuple[str, ...], first: bool) -> list[bpy.types.Object]:
    """Link objects with these names into the scene, before or after its own objects in the Outliner."""
    scene, found = bpy.context.scene, rigs.from_library(path, "objects", *names)
    linked = bpy.data.collections.new("Linked")
    for ob in found:
        linked.objects.link(ob)
    own = list(scene.collection.children)
    scene.collection.children.link(linked)
    if first:
        for collection in own:
            scene.collection.children.unlink(collection)
            scene.collection.children.link(collection)
    bpy.context.view_layer.update()
    return found


def own(name: str) -> bpy.types.Object:
    (ob,) = (ob for ob in bpy.data.objects if ob.name == name and ob.library is None)
    return ob


def messages(addon: Addon, ob: bpy.types.Object) -> list[str]:
    """The messages that the panel shows for the chains."""
    return [addon.report(ob, tip).message for tip in ("lower", "shin")]


@first_or_last
def test_frames_play_and_goals_are_followed_and_baked_as_without_the_linked_objects(
    addon: Addon, first: bool, tmp_path: Path
) -> None:
    path = library(tmp_path)
    for names in (*((name,) for name in NAMES), NAMES):
        rigs.new_file()
        ob = make(0.0)
        expected = poses_at(ob, FRAMES)
        link(path, names, first)
        assert not apart(poses_at(ob, FRAMES), expected), names
        assert messages(addon, ob) == ["Reached", "Reached"]
        rigs.save_and_open(tmp_path / "shot.blend")
        ob = own("Rig")
        assert not apart(poses_at(ob, FRAMES), expected), names
        for moved, tip in (("Target", "lower"), ("Controls", "shin")):
            own(moved).animation_data_clear()
            rigs.change(own(moved), location=(0.5, 0.7, 1.2))
            assert messages(addon, ob) == ["Reached", "Reached"]
            assert rigs.miss(ob, tip) < 1e-5, names
        own("Pole").animation_data_clear()
        rigs.shift(own("Pole"), y=-6.0)
        assert rigs.head(ob, "lower")[1] < 0.3, "the elbow follows the pole"
        solved = poses_at(ob, (3, 7))
        rigs.bake(ob, 1, 20)
        ob.ik_addon.live = False
        for frame, pose in poses_at(ob, (3, 7)).items():
            assert np.abs(pose - solved[frame]).max() < 1e-5, names


@first_or_last
def test_a_linked_target_is_followed_despite_a_local_one_of_the_same_name(
    addon: Addon, first: bool, tmp_path: Path
) -> None:
    path = library(tmp_path)
    ob = make(49.8)
    (linked,) = link(path, ("Target",), first)
    ob.pose.bones["lower"].ik_addon.target = linked
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        assert messages(addon, ob)[0] == "Reached"
        assert rigs.miss(ob) < 1e-4


@first_or_last
@pytest.mark.parametrize(
    ("tip", "goal", "role"), [("lower", "Target", "Target"), ("lower", "Pole", "Pole"), ("shin", "Controls", "Target")]
)
@pytest.mark.parametrize("how", ["disabled", "excluded"])
def test_a_problem_of_a_local_object_is_not_hidden_by_a_linked_one(
    addon: Addon, how: str, tip: str, goal: str, role: str, first: bool, tmp_path: Path
) -> None:
    path = library(tmp_path)
    ob = make(0.0)
    link(path, NAMES, first)
    if how == "disabled":
        own(goal).hide_viewport = True
    else:
        bpy.context.view_layer.layer_collection.children[f"In {goal}"].exclude = True
    bpy.context.view_layer.update()
    told = addon.report(ob, tip)
    assert told.failed
    assert how in told.message
    bone = ob.pose.bones[tip]
    fix = addon.fix(bone)
    assert fix.label == (f"Enable {role} in Viewports" if how == "disabled" else f"Include 'In {goal}'")
    fix.apply()
    bpy.context.view_layer.update()
    assert messages(addon, ob) == ["Reached", "Reached"]


@first_or_last
def test_the_rig_of_an_active_target_is_the_local_one(addon: Addon, first: bool, tmp_path: Path) -> None:
    path = library(tmp_path)
    ob = make(0.0)
    bpy.context.view_layer.objects.active = ob
    tip = ob.pose.bones["lower"]
    tip.ik_addon.is_chain = False
    ob.data.bones.active = ob.data.bones["lower"]
    bpy.ops.ik_addon.chain_add(chain_length=2)
    link(path, NAMES, first)
    bpy.context.view_layer.objects.active = tip.ik_addon.target
    assert addon.module("ui.operators.active").armature(bpy.context) == ob


def test_a_mirrored_chain_gets_a_local_target(tmp_path: Path) -> None:
    def limbs() -> bpy.types.Object:
        ob = rigs.armature("Rig")
        for side, x in ((".L", 0.5), (".R", -0.5)):
            rigs.add_bones(ob, [(x, 0.0, 2.0), (x, -0.2, 1.0), (x, 0.0, 0.0)], [f"upper{side}", f"lower{side}"])
        ob.data.bones.active = ob.data.bones["lower.L"]
        bpy.ops.ik_addon.chain_add(chain_length=2)
        return ob

    limbs()
    bpy.ops.ik_addon.mirror_chain()
    name = next(ob.name for ob in bpy.data.objects if "Target" in ob.name and ob.name.endswith(".R"))
    path = tmp_path / "library.blend"
    rigs.into_library(path)
    ob = limbs()
    (linked,) = link(path, (name,), first=True)
    place = linked.matrix_world.copy()
    bpy.context.view_layer.objects.active = ob
    bpy.ops.ik_addon.mirror_chain()
    target = ob.pose.bones["lower.R"].ik_addon.target
    assert target is not None
    assert target.library is None
    assert linked.matrix_world == place
