"""The script of the guide that poses a body on frames, as it stands on the page."""

from __future__ import annotations

import shutil
from pathlib import Path

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.documents import examples

SAMPLE = Path(__file__).resolve().parents[2] / "sample_blends" / "posing_human.blend"


def test_the_hand_circles_and_the_feet_stay(tmp_path: Path) -> None:
    (script,) = examples("guide/posing.md")
    file = shutil.copy(SAMPLE, tmp_path)
    bpy.ops.wm.open_mainfile(filepath=str(file))
    feet = {name: rigs.head(bpy.data.objects["Figure"], name) for name in ("foot.L", "foot.R")}
    script.run()
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "posed.blend"))
    rig = bpy.data.objects["Figure"]
    for frame in range(1, 49):
        bpy.context.scene.frame_set(frame)
        angle = 2.0 * np.pi * (frame - 1) / 48.0
        place = np.array((0.4 * np.sin(angle), -0.5, 1.1 - 0.4 * np.cos(angle)))
        assert rigs.head(rig, "hand.L") == pytest.approx(place, abs=1e-3), frame
        for name, held in feet.items():
            assert rigs.head(rig, name) == pytest.approx(held, abs=1e-3), frame
