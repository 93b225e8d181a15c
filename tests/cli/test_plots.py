"""`--plots`: motion of feet and hips before and after, as pictures beside the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import bpy
import numpy as np

from tests.cli.conftest import Command
from tests.cli.test_command import moving_arm
from tests.feet import walker

SVG = "{http://www.w3.org/2000/svg}"


def panels(path: Path) -> list[Any]:
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    return root.findall(f"{SVG}g")


def curve(line: Any) -> Any:
    return np.array([[float(number) for number in point.split(",")] for point in line.get("points").split()])


def test_feet_slow_down_in_contact(ik_bake: Command, tmp_path: Path) -> None:
    walker.figure("turn", excess=0.015)
    assert ik_bake("--plant", "--plots", "--report", tmp_path / "report.json") == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report-Figure.svg", "report.json"]
    left, right, hips = panels(tmp_path / "report-Figure.svg")
    frames = bpy.context.scene.frame_end
    for panel in (left, right):
        before, after = (curve(line) for line in panel.findall(f"{SVG}polyline"))
        assert len(before) == len(after) == frames
        ground = after[:, 1].max()
        touches = [(float(box.get("x")), float(box.get("width"))) for box in panel.findall(f"{SVG}rect")]
        assert touches
        for x, width in touches:
            inside = (after[:, 0] > x + 12.0) & (after[:, 0] < x + width - 12.0)
            assert (ground - after[inside, 1]).max(initial=0.0) < 0.2, "it stands still"
        assert np.ptp(before[:, 1]) > 100.0
    titles = [panel.find(f"{SVG}text").text for panel in (left, right, hips)]
    assert titles[0] == "Foot of 'shin.L': speed of heel or toe, whichever is slower, in m/s"
    assert titles[2] == "Height of the hips in m"
    before, after = (curve(line) for line in hips.findall(f"{SVG}polyline"))
    assert np.abs(before - after).max() > 5.0, "the hips help"


def test_without_planting_the_bake_is_plotted(ik_bake: Command, tmp_path: Path) -> None:
    walker.figure("turn", frames=30)
    bpy.context.scene.unit_settings.system = "NONE"
    assert ik_bake("--plots", "--range", 5, 30, "--report", tmp_path / "report.json") == 0
    panel = panels(tmp_path / "report-Figure.svg")[0]
    assert "in units/s" in panel.find(f"{SVG}text").text
    before, after = (curve(line) for line in panel.findall(f"{SVG}polyline"))
    assert np.abs(before - after).max() < 0.5, "it was live"
    assert not panel.findall(f"{SVG}rect")


def test_armatures_without_legs_have_no_plot(ik_bake: Command, tmp_path: Path) -> None:
    ob = moving_arm()
    for name, other in (("upper", "a"), ("lower", "b"), ("thigh", "c"), ("shin", "d")):
        ob.data.bones[name].name = other
    assert ik_bake("--plots", "--report", tmp_path / "report.json") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_each_of_many_files_has_its_own_plots(ik_bake: Command, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.blend" for name in "ab"]
    for file in files:
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        walker.figure("turn", frames=20)
        bpy.ops.wm.save_as_mainfile(filepath=str(file))
    (tmp_path / "out").mkdir()
    assert ik_bake(*files, "--plots", "--range", 1, 20, "--report", tmp_path / "out" / "all.json") == 0
    found = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert found == ["all-a-Figure.svg", "all-b-Figure.svg", "all.json"]
