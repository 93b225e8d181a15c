"""Files tell which version of the extension stored their settings, so that each version knows what it reads."""

from __future__ import annotations

from pathlib import Path

import bpy

from tests import rigs
from tests.conftest import Addon
from tests.rigs import animated_arm


def test_a_chain_notes_the_layout_of_its_settings(addon: Addon, tmp_path: Path) -> None:
    ob = rigs.armature()
    rigs.add_bones(ob, rigs.bent(2), ["upper", "lower"])
    rigs.chain(ob, "lower", rigs.empty("Target"), 2)
    rigs.save_and_open(tmp_path / "rig.blend")
    assert bpy.data.objects["Rig"].ik_addon.layout == addon.module("core.settings").LAYOUT


def test_a_file_of_a_newer_version_is_solved_with_a_remark(addon: Addon, tmp_path: Path) -> None:
    newer = addon.module("core.settings").LAYOUT + 3
    ob, _target = animated_arm()
    ob.ik_addon.layout = newer
    rigs.save_and_open(tmp_path / "newer.blend")
    ob = bpy.data.objects["Rig"]
    report = addon.report(ob)
    assert report.reached
    assert "newer version" in report.remarks[0]
    ob.pose.bones["lower"].ik_addon.softness = 0.1
    ob.pose.bones["lower"].ik_addon.planar = True
    bpy.context.view_layer.update()
    assert ob.ik_addon.layout == newer
