"""Armature objects without a pose: Blender makes it when they are shown for the first time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
import pytest

from tests import rigs

if TYPE_CHECKING:
    from tests.conftest import Addon

PLACES = ("nowhere", "disabled", "disabled collection", "excluded collection")


def unposed(place: str) -> bpy.types.Object:
    """An armature with a bone, as an importer creates it, before Blender has shown it."""
    other = rigs.armature("Shown")
    rigs.add_bones(other, [(0, 0, 0), (0, 0, 1)], ["hand"])
    ob = bpy.data.objects.new("New", other.data)
    scene, layer = bpy.context.scene, bpy.context.view_layer.layer_collection
    if place == "disabled":
        ob.hide_viewport = True
        scene.collection.objects.link(ob)
    elif place != "nowhere":
        collection = bpy.data.collections.new("Hidden")
        collection.hide_viewport = place == "disabled collection"
        scene.collection.children.link(collection)
        collection.objects.link(ob)
        layer.children["Hidden"].exclude = place == "excluded collection"
    assert ob.pose is None
    return ob


@pytest.mark.parametrize("place", PLACES)
def test_live_works_beside_an_armature_without_a_pose(addon: Addon, place: str, tmp_path: Path) -> None:
    ob, target = rigs.arm()
    rigs.go_live(ob)
    unposed(place)
    rigs.key(target, "location", {1: (0.5, 0.4, 1.0), 10: (-0.4, 0.6, 1.3)})

    def is_solved() -> bool:
        report = addon.module("live.reports").get(ob, "lower")
        gap = float(np.linalg.norm(rigs.tail(ob, "lower") - rigs.position(target)))
        return bool(report.reached) and gap < 1e-4

    for frame in (1, 5, 10):
        bpy.context.scene.frame_set(frame)
        assert is_solved()
    target.location.x += 0.1
    bpy.context.view_layer.update()
    assert is_solved()
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "file.blend"), copy=True)
    assert addon.module("shots.command").main([]) == 0
    ob.ik_addon.live = False


def test_the_panel_and_all_operators_report_what_is_missing(addon: Addon) -> None:
    new = unposed("disabled")
    bpy.context.view_layer.objects.active = new
    assert bpy.context.active_object == new
    words = "'New' has no pose until it is shown for the first time. Enable it in viewports"
    assert addon.module("operators.active").obstacle(bpy.context) == words
    for name in dir(bpy.ops.ik_addon):
        operator: Any = getattr(bpy.ops.ik_addon, name)
        if name not in {"lock_interface", "release"}:  # which need no armature
            with pytest.raises(RuntimeError, match="'New' has no pose"):
                operator()
    assert new.pose is None
    for name in dir(bpy.types):
        panel: Any = getattr(bpy.types, name)
        if name.startswith("VIEW3D_PT_ik_addon_") and hasattr(panel, "poll"):
            assert not panel.poll(bpy.context), name
