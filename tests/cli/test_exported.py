"""`ik_bake --skeleton --export`: the deform skeleton of a baked shot, saved in the file and exported."""

import importlib
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest

from tests.bake.test_skeleton import CLOSE, DEFORM, character, enable, heads, imported
from tests.cli.conftest import Command
from tests.cli.test_command import moving_arm
from tests.reliability.states import snapshot


@pytest.fixture(autouse=True)
def _exporters() -> None:
    for name in ("io_scene_gltf2", "io_scene_fbx"):
        enable(name)


@pytest.mark.parametrize("kind", ["glb", "fbx"])
def test_the_skeleton_is_saved_and_exported(ik_bake: Command, tmp_path: Path, kind: str) -> None:
    ob = character()
    before = heads(ob, DEFORM)
    bpy.context.scene.frame_end = 60
    output = tmp_path / "walk.blend"
    arguments = ["--range", 1, 40, "--skeleton", "--root", "root", "--root-turn", "--export", kind]
    (entry,) = ik_bake.report(0, *arguments, "--output", output)["armatures"]
    assert bpy.context.scene.frame_end == 60, "the range of the scene is as it was"
    assert entry["skeleton"] == {"armature": "Figure Skeleton", "frames": 40, "remarks": []}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json", "walk.blend", f"walk.{kind}"]
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert np.abs(heads(bpy.data.objects["Figure Skeleton"], DEFORM) - before).max() < CLOSE
    span: Any = imported(tmp_path / f"walk.{kind}").animation_data.action.frame_range
    assert round(span[1] - span[0]) == 39


def test_an_export_that_fails_writes_nothing(ik_bake: Command, tmp_path: Path) -> None:
    character()
    (tmp_path / "walk.glb").mkdir()
    before, wanted = snapshot(), ("--skeleton", "--export", "glb", "--output", tmp_path / "walk.blend")
    assert "--export names" in ik_bake.errors(2, *wanted)
    assert snapshot() == before, "it is found out before anything is baked"
    (tmp_path / "walk.glb").rmdir()
    for bone in bpy.data.objects["Figure"].data.bones:
        bone.use_deform = False
    assert "has no deform bone" in ik_bake.errors(2, *wanted)
    assert not list(tmp_path.iterdir())


def test_a_disabled_exporter_is_named(ik_bake: Command, tmp_path: Path) -> None:
    moving_arm()
    importlib.import_module("addon_utils").disable("io_scene_fbx")
    wanted = ("--skeleton", "--export", "fbx", "--output", tmp_path / "walk.blend")
    assert "Enable the add-on io_scene_fbx" in ik_bake.errors(2, *wanted)
