"""Targets and poles that are empties: the collection in which they are made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bpy
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import activate, add


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
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    rigs.new_file()
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
    assert bpy.ops.ik_addon.chain_fix(tip="b") == {"FINISHED"}
    bpy.context.view_layer.update()
    assert not addon.report(ob, "b").failed
