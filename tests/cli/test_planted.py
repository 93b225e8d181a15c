"""`ik_bake --plant`: contacts are found, feet planted and everything baked, or nothing is written."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import bpy
import pytest

from tests import motions, rigs
from tests.cli.conftest import Command
from tests.conftest import Addon
from tests.feet import walker
from tests.reliability.states import activate

SLIDE = 1e-4
"""In lengths of the leg."""
FLIGHT = 21, 26
"""Frames of the run on which no foot touches."""


def report_of(path: Path) -> dict[str, Any]:
    (entry,) = json.loads(path.read_text())["armatures"]
    return entry


@pytest.mark.parametrize("live", [False, True])
def test_feet_hold_still_in_the_bake_and_in_the_report(
    addon: Addon, ik_bake: Command, tmp_path: Path, live: bool
) -> None:
    ob = walker.figure("turn", excess=0.015)
    ob.ik_addon.live = live
    report, output = tmp_path / "report.json", tmp_path / "baked.blend"
    assert ik_bake("--plant", "--report", report, "--output", output) == 0
    bpy.ops.wm.open_mainfile(filepath=str(output))
    ob = bpy.data.objects["Figure"]
    assert max(walker.slides(addon, ob, walker.play(ob)).values()) < SLIDE
    plant = report_of(report)["plant"]
    assert plant["chains"] == plant["found"] == ["shin.L", "shin.R"]
    assert plant["snapped"] == []
    assert plant["contacts"] > 4
    assert plant["slide"] < SLIDE < 0.004 < plant["slide_before"]
    assert 0.01 < plant["hips"] < 0.06, "legs are too short without them"
    assert plant["message"].startswith(f"Locked {plant['contacts']} contacts on ")
    assert "The hips moved by up to" in plant["message"]


def test_feet_stay_out_of_the_ground_and_the_report_has_their_former_depth(ik_bake: Command, tmp_path: Path) -> None:
    walker.figure("turn", frames=40)
    rigs.empty("Floor", (0.0, 0.0, 0.02))
    bpy.context.view_layer.update()
    assert ik_bake("--plant", "--ground", "Floor", "--report", tmp_path / "report.json") == 0
    plant = report_of(tmp_path / "report.json")["plant"]
    assert plant["depth"] < 1e-6 < 0.01 < plant["depth_before"]
    assert "Depth in the ground" in plant["message"]


def test_the_report_measures_the_saved_keys(addon: Addon, ik_bake: Command, tmp_path: Path) -> None:
    """Not the planted motion: with fewer keys, or keys only on every other frame, feet slide more."""
    walker.figure("turn", frames=60)
    rigs.empty("Floor", (0.0, 0.0, 0.02))
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "turn.blend"))
    told = []
    for options in (("--reduce", "5mm"), ("--step", "5")):
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "turn.blend"))
        report, output = tmp_path / "report.json", tmp_path / "baked.blend"
        assert ik_bake("--plant", "--ground", "Floor", *options, "--report", report, "--output", output) == 0
        bpy.ops.wm.open_mainfile(filepath=str(output))
        ob = bpy.data.objects["Figure"]
        plant = report_of(report)["plant"]
        assert plant["slide"] == pytest.approx(
            max(walker.slides(addon, ob, walker.play(ob)).values()), rel=1e-3, abs=1e-6
        )
        told.append((plant["slide"], plant["depth"]))
    reduced, stepped = told
    assert 1e-5 < reduced[0] < SLIDE < 0.001 < stepped[0], "all keys leave less than 1e-5"
    assert reduced[1] == 0.0 < stepped[1]


def test_contacts_marked_by_hand_stay(addon: Addon, ik_bake: Command, tmp_path: Path) -> None:
    ob = walker.figure("turn", frames=60)
    activate(ob, "shin.L")
    bpy.context.scene.frame_set(20)
    bpy.ops.ik_addon.mark_contact(contact="TOE")
    marked = walker.keys(addon, ob, "L")
    assert ik_bake("--plant", "--report", tmp_path / "report.json") == 0
    assert walker.keys(addon, ob, "L") == marked
    assert report_of(tmp_path / "report.json")["plant"]["found"] == ["shin.R"]
    assert not ob.pose.bones["shin.L"].ik_addon.enabled


def test_without_contacts_it_bakes_and_reports_that_nothing_was_planted(ik_bake: Command, tmp_path: Path) -> None:
    ob = walker.figure("run")
    report = tmp_path / "report.json"
    assert "ik_bake: 'Figure': No contacts found, so nothing was planted" in ik_bake.errors(
        3, "--plant", "--range", *FLIGHT, "--report", report
    )
    assert report_of(report)["plant"]["contacts"] == 0
    assert not ob.pose.bones["shin.L"].ik_addon.enabled


def test_chains_without_feet_are_only_baked(ik_bake: Command, tmp_path: Path) -> None:
    ob = rigs.armature("Crane")
    rigs.key(rigs.add_arm(ob, 0.0, ["boom", "jib"], "Hook"), "location", {1: (0.5, 0.4, 1.0), 10: (-0.4, 0.6, 1.3)})
    assert ik_bake("--plant", "--range", 1, 10, "--report", tmp_path / "report.json") == 0
    assert "plant" not in report_of(tmp_path / "report.json")


def test_new_action_leaves_the_old_one_without_contacts_and_hips(addon: Addon, ik_bake: Command) -> None:
    ob = walker.figure("turn", excess=0.015, frames=60)
    old = ob.animation_data.action
    assert ik_bake("--plant", "--new-action") == 0
    assert ob.animation_data.action != old
    assert len(walker.keys(addon, ob, "L")) > 3
    ob.animation_data.action = old
    assert not walker.keys(addon, ob, "L")
    assert {len(curve.keyframe_points) for curve in rigs.fcurves(ob)} == {1}


def test_nothing_is_written_if_planting_fails(ik_bake: Command, tmp_path: Path) -> None:
    ob = walker.figure("turn", frames=30)
    target = ob.pose.bones["shin.L"].ik_addon.target
    target.driver_add("location", 2).driver.expression = "0.1"
    assert "A driver sets" in ik_bake.errors(
        2, "--plant", "--output", tmp_path / "baked.blend", "--report", tmp_path / "report.json"
    )
    assert not list(tmp_path.iterdir())


def test_a_recording_only_needs_chains(ik_bake: Command, tmp_path: Path) -> None:
    """Targets without keys are first snapped to the recorded feet."""
    importlib.import_module("addon_utils").enable("io_anim_bvh")
    bpy.ops.import_anim.bvh(filepath=str(motions.write("run", tmp_path / "run.bvh")))
    scene, ob = bpy.context.scene, bpy.context.object
    scene.render.fps, scene.frame_end = 60, motions.FRAMES
    bpy.ops.ik_addon.character_setup(with_presets=False)
    assert ik_bake("--plant", "--plots", "--report", tmp_path / "report.json") == 0
    picture = (tmp_path / f"report-{ob.name}.svg").read_text()
    before = re.findall(r'<polyline points="([^"]*)"[^>]*#999999', picture)[0].split()
    heights = [float(point.split(",")[1]) for point in before]
    assert max(heights) - min(heights) > 80.0, "the recorded feet, not those that targets without keys hold back"
    entry = report_of(tmp_path / "report.json")
    plant = entry["plant"]
    assert len(plant["snapped"]) == 6, "arms and spine, too, or their targets would stay behind"
    assert plant["slide"] < SLIDE < 0.01 < plant["slide_before"]
    assert entry["error"] < 0.02, entry["message"]
