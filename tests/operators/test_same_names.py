"""Linked objects with the same names as local ones, which Blender allows, are never confused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
import pytest

from tests import rigs
from tests.operators.states import activate

if TYPE_CHECKING:
    from tests.conftest import Addon


def link_first(path: Path, ob: bpy.types.Object) -> bpy.types.Object:
    """Link an object with the same name as another, into a collection that Blender searches first."""
    name = ob.name
    ob.name = "Another"
    double = ob.copy()
    double.name = name
    collection = bpy.data.collections.new("Set")
    collection.objects.link(double)
    bpy.data.libraries.write(str(path), {collection})
    bpy.data.collections.remove(collection)
    bpy.data.objects.remove(double)
    ob.name = name
    libraries: Any = bpy.data.libraries
    with libraries.load(str(path), link=True) as (_found, wanted):
        wanted.collections = ["Set"]
    children = bpy.context.scene.collection.children
    own = children[:]
    children.link(wanted.collections[0])
    for later in own:
        children.unlink(later)
        children.link(later)
    bpy.context.view_layer.update()
    linked: bpy.types.Object = wanted.collections[0].objects[0]
    assert (linked.name, linked != ob) == (name, True)
    assert bpy.context.view_layer.objects.get(name) == linked
    return linked


@pytest.mark.parametrize("where", ["object", "collection"])
def test_the_fix_applies_to_the_target_itself(addon: Addon, tmp_path: Path, where: str) -> None:
    fix, reports = addon.module("operators.mends.chains"), addon.module("live.reports")
    ob, target = rigs.arm()
    hidden: Any = target
    if where == "collection":
        hidden = bpy.data.collections.new("Hidden")
        bpy.context.scene.collection.children.link(hidden)
        bpy.context.scene.collection.objects.unlink(target)
        hidden.objects.link(target)
    hidden.hide_viewport = True
    link_first(tmp_path / "set.blend", target)
    activate(ob, "lower")
    ob.ik_addon.live = True
    bpy.context.view_layer.update()
    report = reports.get(ob, "lower")
    assert report.failed
    found = fix.fix_of(ob.pose.bones["lower"], report, bpy.context.view_layer)
    assert found.label == "Enable Target in Viewports"
    found.apply()
    assert not hidden.hide_viewport
    assert ob.pose.bones["lower"].ik_addon.target == target


def test_the_panel_shows_the_rig_that_follows_the_active_target(addon: Addon, tmp_path: Path) -> None:
    active = addon.module("operators.active")
    ob, _target = rigs.arm()
    activate(ob, "lower")
    bpy.ops.ik_addon.chain_remove()
    bpy.ops.ik_addon.chain_add()
    target = ob.pose.bones["lower"].ik_addon.target
    for bone in link_first(tmp_path / "set.blend", ob).pose.bones:
        bone.ik_addon.is_chain = False
    bpy.context.view_layer.objects.active = target
    assert active.armature(bpy.context) == ob
    assert active.active_chain(bpy.context) == ob.pose.bones["lower"]


def test_a_mirrored_target_is_never_linked(tmp_path: Path) -> None:
    ob = rigs.armature()
    for side, x in ((".L", 1.0), (".R", -1.0)):
        rigs.add_bones(ob, [(x, 0, 0), (x, -0.2, 1), (x, 0, 2)], [f"upper{side}", f"lower{side}"])
    activate(ob, "lower.L")
    bpy.ops.ik_addon.chain_add()
    bpy.ops.ik_addon.mirror_chain()
    image = ob.pose.bones["lower.R"].ik_addon.target
    linked = link_first(tmp_path / "set.blend", image)
    bpy.data.objects.remove(image)
    assert ob.pose.bones["lower.R"].ik_addon.target is None
    place = linked.matrix_world.copy()
    activate(ob, "lower.L")
    bpy.ops.ik_addon.mirror_chain()
    again = ob.pose.bones["lower.R"].ik_addon.target
    assert again.library is None
    assert linked.matrix_world == place
