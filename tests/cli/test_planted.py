"""`ik_bake --plant`: contacts are found, feet planted and everything baked, or nothing is written."""

import importlib
from pathlib import Path

import bpy
import pytest

from tests import motions, rigs
from tests.cli.conftest import Command
from tests.conftest import Addon
from tests.feet import walker
from tests.feet.walker import SLIDE
from tests.reliability.states import activate

FLIGHT = 21, 26
"""Frames of the run on which no foot touches."""


@pytest.mark.parametrize("live", [False, True])
def test_feet_hold_still_in_the_bake_and_in_the_report(
    addon: Addon, ik_bake: Command, tmp_path: Path, live: bool
) -> None:
    ob = walker.figure("turn", excess=0.015)
    ob.ik_addon.live = live
    output = tmp_path / "baked.blend"
    plant = ik_bake.plant("--output", output)
    bpy.ops.wm.open_mainfile(filepath=str(output))
    ob = bpy.data.objects["Figure"]
    assert walker.slide(addon, ob, walker.play(ob)) < SLIDE
    assert plant["chains"] == plant["found"] == ["shin.L", "shin.R"]
    assert plant["snapped"] == []
    assert plant["contacts"] > 4
    assert plant["slide"] < SLIDE < 0.004 < plant["slide_before"]
    assert 0.01 < plant["hips"] < 0.06, "legs are too short without them"
    assert plant["message"].startswith(f"Locked {plant['contacts']} contacts on ")
    assert "The hips moved by up to" in plant["message"]


def test_feet_stay_out_of_the_ground_and_the_report_has_their_former_depth(ik_bake: Command) -> None:
    walker.figure("turn", frames=40)
    rigs.empty("Floor", (0.0, 0.0, 0.02))
    bpy.context.view_layer.update()
    plant = ik_bake.plant("--ground", "Floor")
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
        output = tmp_path / "baked.blend"
        plant = ik_bake.plant("--ground", "Floor", *options, "--output", output)
        bpy.ops.wm.open_mainfile(filepath=str(output))
        ob = bpy.data.objects["Figure"]
        assert plant["slide"] == pytest.approx(walker.slide(addon, ob, walker.play(ob)), rel=1e-3, abs=1e-6)
        told.append((plant["slide"], plant["depth"]))
    reduced, stepped = told
    assert 1e-5 < reduced[0] < SLIDE < 0.001 < stepped[0], "all keys leave less than 1e-5"
    assert reduced[1] == 0.0 < stepped[1]


def test_contacts_marked_by_hand_stay(addon: Addon, ik_bake: Command) -> None:
    ob = walker.figure("turn", frames=60)
    activate(ob, "shin.L")
    bpy.context.scene.frame_set(20)
    bpy.ops.ik_addon.mark_contact(contact="TOE")
    marked = walker.keys(addon, ob, "L")
    assert ik_bake.plant()["found"] == ["shin.R"]
    assert walker.keys(addon, ob, "L") == marked
    assert not ob.pose.bones["shin.L"].ik_addon.enabled


def test_without_contacts_it_bakes_and_reports_that_nothing_was_planted(ik_bake: Command) -> None:
    ob = walker.figure("run")
    assert ik_bake.plant("--range", *FLIGHT, code=3)["contacts"] == 0
    assert "ik_bake: 'Figure': No contacts found, so nothing was planted" in ik_bake.capfd.readouterr().err
    assert not ob.pose.bones["shin.L"].ik_addon.enabled


def test_chains_without_feet_are_only_baked(ik_bake: Command) -> None:
    ob = rigs.armature("Crane")
    rigs.key(rigs.add_arm(ob, 0.0, ["boom", "jib"], "Hook"), "location", {1: (0.5, 0.4, 1.0), 10: (-0.4, 0.6, 1.3)})
    assert "plant" not in ik_bake.report(0, "--plant", "--range", 1, 10)["armatures"][0]


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
    written = ("--output", tmp_path / "baked.blend", "--report", tmp_path / "report.json")
    assert "A driver sets" in ik_bake.errors(2, "--plant", *written)
    assert not list(tmp_path.iterdir())


def test_a_recording_only_needs_chains(ik_bake: Command, tmp_path: Path) -> None:
    """Targets without keys are first snapped to the recorded feet."""
    importlib.import_module("addon_utils").enable("io_anim_bvh")
    bpy.ops.import_anim.bvh(filepath=str(motions.write("run", tmp_path / "run.bvh")))
    scene = bpy.context.scene
    scene.render.fps, scene.frame_end = 60, motions.FRAMES
    bpy.ops.ik_addon.character_setup(with_presets=False)
    (entry,) = ik_bake.report(0, "--plant")["armatures"]
    plant = entry["plant"]
    assert len(plant["snapped"]) == 6, "arms and spine, too, or their targets would stay behind"
    assert plant["slide"] < SLIDE < 0.01 < plant["slide_before"]
    assert entry["error"] < 0.02, entry["message"]
