"""Files of other versions of the extension: each released one has a sample here that must stay readable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.live.test_handlers import animated_arm
from tests.reliability.released import write_sample
from tools import extension
from tools.environments import OLDEST

if TYPE_CHECKING:
    from tests.conftest import Addon

SAMPLES = sorted(Path(write_sample.__file__).parent.glob("*.blend"))
ALIKE = 2e-3
"""A later solver may share a bend among the bones a hair differently."""

# What the extension adds to Blender is unknown to the types of bpy.
OPERATORS: Any = bpy.ops


@pytest.fixture(params=SAMPLES, ids=lambda path: path.stem)
def sample(request: pytest.FixtureRequest) -> tuple[Path, dict[str, Any]]:
    """A file of a released version, and what that version found in it."""
    path: Path = request.param
    return path, json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def assert_as_released(found: dict[str, Any]) -> None:
    """Settings, poses and base of the open file are those that the older version knew."""
    settings = write_sample.settings()
    for chain, values in found["settings"].items():
        assert {name: settings[chain][name] for name in values} == values
    assert settings.keys() == found["settings"].keys()
    for frame, expected in found["poses"].items():
        bpy.context.scene.frame_set(int(frame))
        for ob in write_sample.armatures():
            assert np.abs(rigs.pose(ob) - np.array(expected[ob.name], np.float32)).max() < ALIKE
    bpy.context.scene.frame_set(write_sample.SHOWN)
    for ob in write_sample.armatures():
        bpy.context.view_layer.objects.active = ob
        if ob.name == "Solved":
            OPERATORS.ik_addon.solve()  # takes what was moved by hand since into the base
        if ob.name != "Controls":
            OPERATORS.ik_addon.restore_pose()
        assert rigs.channels(ob).tolist() == found["fk"][ob.name]


def test_this_version_has_a_sample() -> None:
    assert extension.version() in {path.stem for path in SAMPLES}, "run `python3 tools/dev.py release-sample`"


def test_a_sample_is_written_by_the_oldest_supported_blender(sample: tuple[Path, dict[str, Any]]) -> None:
    bpy.ops.wm.open_mainfile(filepath=str(sample[0]))
    assert bpy.data.version[:2] == tuple(map(int, OLDEST.version.split(".")[:2]))


def test_opens(addon: Addon, sample: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    path, found = sample
    bpy.ops.wm.open_mainfile(filepath=str(path))
    newest = addon.module("data.versions").newest()
    assert {ob.name: ob.ik_addon.layout for ob in write_sample.armatures()} == {
        "Controls": 0,
        "Live": newest,
        "Solved": newest,
        "Tree": newest,
    }
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "again.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "again.blend"))
    assert_as_released(found)


def test_bases_at_rest_become_compact() -> None:
    """0.1.0 stored them on each bone, which Blender copies on each frame."""
    bpy.ops.wm.open_mainfile(filepath=str(SAMPLES[0]))
    bones = bpy.data.objects["Tree"].pose.bones
    assert [bone.name for bone in bones if bone.is_property_set("ik_addon")] == ["a.L", "b.L", "b.R"]


def test_is_appended(sample: tuple[Path, dict[str, Any]]) -> None:
    path, found = sample
    libraries: Any = bpy.data.libraries  # the stubs know of no result
    with libraries.load(str(path)) as (source, wanted):
        wanted.objects = source.objects
    for ob in wanted.objects:
        bpy.context.scene.collection.objects.link(ob)
    assert_as_released(found)


def test_is_overridden(addon: Addon, sample: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    path, found = sample
    libraries: Any = bpy.data.libraries  # the stubs know of no result
    with libraries.load(str(path), link=True) as (_source, wanted):
        wanted.objects = ["Live", "Live Target", "Live Pole"]
    for ob in wanted.objects:
        bpy.context.scene.collection.objects.link(ob)
    bpy.data.objects["Live"].override_hierarchy_create(
        bpy.context.scene, bpy.context.view_layer, do_fully_editable=True
    )
    for i in range(2):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / f"shot{i}.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / f"shot{i}.blend"))
        (ob,) = (ob for ob in bpy.data.objects if ob.type == "ARMATURE" and ob.library is None)
        assert ob.ik_addon.layout == addon.module("data.versions").newest()
        for frame, expected in found["poses"].items():
            bpy.context.scene.frame_set(int(frame))
            assert np.abs(rigs.pose(ob) - np.array(expected["Live"], np.float32)).max() < ALIKE
    bpy.context.scene.frame_set(write_sample.SHOWN)
    ob.ik_addon.live = False
    assert rigs.channels(ob).tolist() == found["fk"]["Live"]


def test_each_step_is_taken_once_whichever_way_a_rig_comes(
    addon: Addon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A step of the future, which halves the softness."""
    ob, _target = animated_arm()
    ob.pose.bones["lower"].ik_addon.softness = 0.5
    path = tmp_path / "old.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    versions = addon.module("data.versions")

    def halve(ob: bpy.types.Object) -> None:
        ob.pose.bones["lower"].ik_addon.softness *= 0.5

    monkeypatch.setattr(versions, "STEPS", [*versions.STEPS, halve])

    def softness() -> list[float]:
        return [ob.pose.bones["lower"].ik_addon.softness for ob in bpy.data.objects if ob.type == "ARMATURE"]

    bpy.ops.wm.open_mainfile(filepath=str(path))
    assert softness() == [0.25]
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "new.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "new.blend"))
    assert softness() == [0.25]
    bpy.ops.ed.undo_push(message="before")
    bpy.ops.wm.append(directory=f"{path}/Object/", filename="Rig")
    bpy.context.view_layer.update()
    assert softness() == [0.25, 0.25]
    bpy.ops.ed.undo_push(message="appended")
    bpy.ops.ed.undo()
    bpy.ops.ed.redo()
    bpy.context.view_layer.update()
    assert softness() == [0.25, 0.25]
    bpy.data.objects["Rig"].copy()
    bpy.context.view_layer.update()
    assert softness() == [0.25, 0.25, 0.25]


def test_a_file_of_a_newer_version_is_solved_and_told(addon: Addon, tmp_path: Path) -> None:
    ob, _target = animated_arm()
    ob.ik_addon.layout = addon.module("data.versions").newest() + 3
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "newer.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "newer.blend"))
    ob = bpy.data.objects["Rig"]
    assert ob.ik_addon.layout == addon.module("data.versions").newest() + 3
    report = addon.module("live.reports").get(ob, "lower")
    assert report.reached
    assert "newer version" in report.remarks[0]
