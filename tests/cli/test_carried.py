"""What the command line says of targets that another chain carries."""

from __future__ import annotations

import json
from pathlib import Path

import bpy
import pytest

from tests import rigs
from tests.cli.conftest import Command
from tests.live.carried import FRAMES, KINDS, build


@pytest.mark.parametrize("kind", ["bone parent", "vertex of a skin", "driver"])
def test_the_report_says_reached_where_blender_shows_the_tip_at_its_target(
    ik_bake: Command, kind: str, tmp_path: Path
) -> None:
    own = build(KINDS[kind])
    scene, path = bpy.context.scene, tmp_path / "report.json"
    scene.frame_start, scene.frame_end = FRAMES[0], FRAMES[-1]
    assert ik_bake("--strict", "--report", path) == 0
    report = json.loads(path.read_text(encoding="utf-8"))
    assert report["reached"]
    for frame in FRAMES:
        scene.frame_set(frame)
        assert rigs.miss(own.arm) < 1e-4, f"frame {frame}"
