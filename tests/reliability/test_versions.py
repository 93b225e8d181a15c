"""Files of other versions of the extension: each released version has a sample here that must stay readable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.operators.states import activate
from tests.reliability.released import write_sample
from tests.rigs import animated_arm
from tools import version
from tools.environments import OLDEST

if TYPE_CHECKING:
    from tests.conftest import Addon

SAMPLES = sorted(Path(write_sample.__file__).parent.glob("*.blend"))
ALIKE = 2e-3
"""Tolerance: a later solver may distribute a bend slightly differently."""

# The type stubs of bpy do not know what the extension adds to Blender.
OPERATORS: Any = bpy.ops


@pytest.fixture(params=SAMPLES, ids=lambda path: path.stem)
def sample(request: pytest.FixtureRequest) -> tuple[Path, dict[str, Any]]:
    """A file of a released version, and its content according to that version."""
    path: Path = request.param
    return path, json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def assert_as_released(found: dict[str, Any]) -> None:
    """Assert that settings, poses and FK poses of the open file are those that the older version recorded."""
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
            OPERATORS.ik_addon.solve()  # takes later changes by hand into the FK pose
        if ob.name != "Controls":
            OPERATORS.ik_addon.restore_pose()
        assert rigs.channels(ob).tolist() == found["fk"][ob.name]


def test_each_released_version_has_a_sample() -> None:
    missing = set(version.released()) - {path.stem for path in SAMPLES}
    assert not missing, "run `python3 tools/dev.py release-sample`"


def test_no_sample_is_kept_of_an_unreleased_version() -> None:
    """The format of a version could still change before its release."""
    assert {path.stem for path in SAMPLES} <= set(version.released())


def test_a_sample_is_written_by_the_oldest_supported_blender(sample: tuple[Path, dict[str, Any]]) -> None:
    bpy.ops.wm.open_mainfile(filepath=str(sample[0]))
    assert bpy.data.version[:2] == tuple(map(int, OLDEST.version.split(".")[:2]))


def test_a_sample_opens(addon: Addon, sample: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
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


def test_stored_fk_poses_at_rest_become_compact() -> None:
    """0.1.0 stored the FK pose on each bone, which Blender copies on each frame."""
    bpy.ops.wm.open_mainfile(filepath=str(SAMPLES[0]))
    bones = bpy.data.objects["Tree"].pose.bones
    assert [bone.name for bone in bones if bone.is_property_set("ik_addon")] == ["a.L", "b.L", "b.R"]


def test_a_sample_can_be_appended(sample: tuple[Path, dict[str, Any]]) -> None:
    path, found = sample
    libraries: Any = bpy.data.libraries  # the stubs declare no result
    with libraries.load(str(path)) as (source, wanted):
        wanted.objects = source.objects
    for ob in wanted.objects:
        bpy.context.scene.collection.objects.link(ob)
    assert_as_released(found)


def test_a_sample_can_be_overridden(addon: Addon, sample: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    path, found = sample
    libraries: Any = bpy.data.libraries  # the stubs declare no result
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


def test_each_upgrade_step_runs_once_however_a_rig_arrives(
    addon: Addon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Adds an upgrade step that halves the softness."""
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


def test_a_file_of_a_newer_version_is_solved_with_a_remark(addon: Addon, tmp_path: Path) -> None:
    ob, _target = animated_arm()
    ob.ik_addon.layout = addon.module("data.versions").newest() + 3
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "newer.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "newer.blend"))
    ob = bpy.data.objects["Rig"]
    assert ob.ik_addon.layout == addon.module("data.versions").newest() + 3
    report = addon.module("live.reports").get(ob, "lower")
    assert report.reached
    assert "newer version" in report.remarks[0]


def tail(bones: int = 5) -> tuple[bpy.types.Object, bpy.types.PoseBone]:
    """A live chain with a keyed target."""
    ob = rigs.armature()
    rigs.add_bones(ob, rigs.bent(bones), [f"t{i}" for i in range(bones)])
    target = rigs.empty("Target")
    rigs.key(target, "location", {1: (0.3, 0.5, 0.6 * bones), 20: (-0.4, 0.2, 0.5 * bones)})
    tip = rigs.chain(ob, f"t{bones - 1}", target, bones)
    ob.ik_addon.live = True
    return ob, tip


def poses(ob: bpy.types.Object) -> np.ndarray[Any, Any]:
    found = []
    for frame in (1, 7, 20):
        bpy.context.scene.frame_set(frame)
        found.append(rigs.pose(ob))
    return np.array(found)


def reopened(path: Path) -> bpy.types.Object:
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.open_mainfile(filepath=str(path))
    return bpy.data.objects["Rig"]


def test_fabrik_in_the_first_layouts_becomes_even_bend(addon: Addon, tmp_path: Path) -> None:
    ob, tip = tail()
    expected = poses(ob)
    tip.ik_addon.solver = "EVEN_BEND"
    assert (poses(ob) == expected).all()
    tip.ik_addon.solver = "FABRIK"
    led_by_tip = poses(ob)
    assert np.abs(led_by_tip - expected).max() > 0.1
    ob.ik_addon.layout = 1
    ob = reopened(tmp_path / "old.blend")
    tip = ob.pose.bones["t4"]
    assert tip.ik_addon.solver == "EVEN_BEND"
    assert (poses(ob) == expected).all()
    tip.ik_addon.solver = "FABRIK"
    ob = reopened(tmp_path / "new.blend")
    assert ob.pose.bones["t4"].ik_addon.solver == "FABRIK"
    assert (poses(ob) == led_by_tip).all()
    assert ob.ik_addon.layout == addon.module("data.versions").newest()


def test_a_solver_set_now_has_the_meaning_of_this_version() -> None:
    """Also if it is the first thing that a script sets on an armature that was not upgraded yet."""
    ob, tip = tail()
    other = rigs.chain(ob, "t1", tip.ik_addon.target, 1, solver="FABRIK")
    ob.ik_addon.layout = 0
    tip.ik_addon.solver = "FABRIK"
    assert (tip.ik_addon.solver, other.ik_addon.solver) == ("FABRIK", "EVEN_BEND")


def test_a_linked_chain_keeps_the_meaning_of_its_version(addon: Addon, tmp_path: Path) -> None:
    ob, tip = tail()
    tip.ik_addon.solver = "FABRIK"
    tip.ik_stiffness_x = 0.5
    ob.ik_addon.live = False
    bpy.context.view_layer.update()
    ob.ik_addon.layout = 1
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "library.blend"))
    bpy.ops.wm.read_homefile(use_empty=True)
    libraries: Any = bpy.data.libraries  # the stubs declare no result
    with libraries.load(str(tmp_path / "library.blend"), link=True) as (_source, wanted):
        wanted.objects = ["Rig", "Target"]
    for linked in wanted.objects:
        bpy.context.scene.collection.objects.link(linked)
    bpy.context.view_layer.update()
    versions, solver = addon.module("data.versions"), addon.module("solve").Solver
    chain = wanted.objects[0].pose.bones["t4"].ik_addon
    assert (chain.solver, wanted.objects[0].ik_addon.layout) == ("FABRIK", 1)
    assert versions.solver_of(chain) is solver.EVEN_BEND
    assert not versions.stiffness_is_shared(chain)
    wanted.objects[0].override_hierarchy_create(bpy.context.scene, bpy.context.view_layer, do_fully_editable=True)

    def own() -> Any:
        (ob,) = (ob for ob in bpy.data.objects if ob.type == "ARMATURE" and ob.library is None)
        return ob.pose.bones["t4"].ik_addon

    bpy.context.view_layer.update()
    assert (own().solver, versions.stiffness_is_shared(own())) == ("EVEN_BEND", False)
    for chosen in ("FABRIK", "EVEN_BEND"):
        own().solver = chosen
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
        assert own().solver == chosen
        assert versions.solver_of(own()) is solver(chosen)


def test_stiffness_in_the_first_layouts_keeps_its_effect(tmp_path: Path) -> None:
    """It does so until a button is pressed; in this version stiffness distributes the bend, starting from zero."""
    ob, _tip = tail()
    even = poses(ob)
    for bone in ob.pose.bones:
        bone.ik_stiffness_x = bone.ik_stiffness_y = bone.ik_stiffness_z = 1e-6
    bpy.context.view_layer.update()
    assert np.abs(poses(ob) - even).max() < 1e-4
    for i, bone in enumerate(ob.pose.bones):
        bone.ik_stiffness_x = bone.ik_stiffness_y = bone.ik_stiffness_z = 0.9 if i < 3 else 0.0
    shared = poses(ob)
    assert np.abs(shared - even).max() > 0.1
    ob.ik_addon.layout = 1
    ob = reopened(tmp_path / "old.blend")
    chain = ob.pose.bones["t4"].ik_addon
    assert chain.stiff_as_limited
    old = poses(ob)
    assert np.abs(old - shared).max() > 0.05
    ob.pose.bones["t4"].use_ik_limit_x = True
    ob.pose.bones["t4"].ik_min_x, ob.pose.bones["t4"].ik_max_x = -3.14, 3.14
    near = poses(ob)
    assert np.abs(near - old).max() < 0.05, "with hardly a limit the pose is that of stiffness alone"
    ob.pose.bones["t4"].use_ik_limit_x = False
    activate(ob, "t4")
    assert (poses(ob) == old).all()
    assert OPERATORS.ik_addon.stiffness_share() == {"FINISHED"}
    assert (poses(ob) == shared).all()
    with pytest.raises(RuntimeError, match="already"):
        OPERATORS.ik_addon.stiffness_share()
    ob = reopened(tmp_path / "new.blend")
    assert (poses(ob) == shared).all()


def test_stiffness_can_be_shared_on_a_chain_whose_tip_takes_an_orientation() -> None:
    ob, _tip = tail()
    chain = ob.pose.bones["t4"].ik_addon
    chain.use_rotation = chain.stiff_as_limited = True
    ob.pose.bones["t4"].ik_stiffness_x = 0.9
    activate(ob, "t4")
    assert OPERATORS.ik_addon.stiffness_share() == {"FINISHED"}
    assert not chain.stiff_as_limited
