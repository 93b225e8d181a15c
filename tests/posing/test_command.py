"""The command line for posing bodies, called with its arguments as Blender calls it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
import pytest

from tests import rigs

if TYPE_CHECKING:
    from tests.conftest import Addon

Command = Callable[..., int]
PLACE = (0.9, 0.3, 1.0)


@pytest.fixture
def ik_pose(addon: Addon) -> Command:
    """Return the command, which takes its arguments one by one."""
    main = addon.module("posing.command").main
    return lambda *arguments: main([str(argument) for argument in arguments])


def arm(name: str = "Rig") -> bpy.types.Object:
    """Return an arm of three bones."""
    ob = rigs.armature(name)
    rigs.add_bones(ob, [(0, 0, 0), (0, -0.2, 1), (0, 0, 2), (0, 0, 2.2)], ["upper", "lower", "hand"])
    bpy.context.view_layer.update()
    return ob


def goals(path: Path, armature: str | None = "Rig", place: tuple[float, ...] = PLACE, **more: Any) -> Path:
    """Write a file that brings the hand to a place on frames 3 and 4."""
    frames = [{"frame": frame, "goals": [{"bone": "hand", "location": place}]} for frame in (3, 4)]
    content = {"root": None, "pins": [], "frames": frames, **more}
    path.write_text(json.dumps(content if armature is None else {"armature": armature, **content}))
    return path


def keyed(addon: Addon, ob: bpy.types.Object) -> bool:
    owner = addon.module("compat").curve_owner(ob)
    return owner is not None and bool(len(owner.fcurves))


@pytest.mark.parametrize("overwrite", [False, True])
def test_saves_the_posed_file(addon: Addon, ik_pose: Command, tmp_path: Path, overwrite: bool) -> None:
    arm()
    file, output = tmp_path / "rig.blend", tmp_path / "posed.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(file))
    assert ik_pose(goals(tmp_path / "goals.json"), *(["--overwrite"] if overwrite else ["--output", output])) == 0
    bpy.ops.wm.open_mainfile(filepath=str(file if overwrite else output))
    for frame in (3, 4):
        bpy.context.scene.frame_set(frame)
        assert rigs.head(bpy.data.objects["Rig"], "hand") == pytest.approx(np.array(PLACE), abs=1e-4)
    if not overwrite:
        bpy.ops.wm.open_mainfile(filepath=str(file))
        assert not keyed(addon, bpy.data.objects["Rig"])


def test_saves_nothing_without_being_told_to(
    ik_pose: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arm()
    file = tmp_path / "rig.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(file))
    content = file.read_bytes()
    assert ik_pose(goals(tmp_path / "goals.json", None)) == 0
    assert "Rig: Posed 2 frames into 'RigAction'. All goals were reached" in capfd.readouterr().out
    assert file.read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["goals.json", "rig.blend"]


def test_poses_several_armatures_and_reports(ik_pose: Command, tmp_path: Path) -> None:
    one, two, report = arm("One"), arm("Two"), tmp_path / "report.json"
    files = [goals(tmp_path / "1.json", "One"), goals(tmp_path / "2.json", "Two", (9.0, 0.0, 0.0))]
    assert ik_pose(*files, "--report", report) == 0
    content = json.loads(report.read_text())
    assert (content["saved"], content["reached"]) == (None, False)
    first, second = content["armatures"]
    assert (first["armature"], first["goals"], first["frames"], first["missed"]) == ("One", str(files[0]), 2, [])
    assert (second["armature"], second["missed"]) == ("Two", [3, 4])
    assert second["each"][0]["frame"] == 3
    assert second["each"][0]["error"] > 1.0
    assert second["action"] == two.animation_data.action.name != one.animation_data.action.name
    assert second["position"] < 1e-5


def test_a_missed_goal_is_an_error_only_when_strict(ik_pose: Command, tmp_path: Path) -> None:
    arm()
    far = goals(tmp_path / "goals.json", place=(9.0, 0.0, 0.0))
    assert ik_pose(far) == 0
    assert ik_pose(far, "--strict") == 1
    assert ik_pose(goals(tmp_path / "near.json"), "--strict") == 0


def test_new_action_leaves_the_old_one(ik_pose: Command, tmp_path: Path) -> None:
    ob = arm()
    ob.pose.bones["upper"].keyframe_insert("rotation_quaternion", frame=3)
    old = ob.animation_data.action
    assert ik_pose(goals(tmp_path / "goals.json"), "--new-action") == 0
    assert ob.animation_data.action != old


def test_help_is_printed(ik_pose: Command, capfd: pytest.CaptureFixture[str]) -> None:
    assert ik_pose("--help") == 0
    said = capfd.readouterr().out
    assert "usage: blender -b FILE --command ik_pose" in said
    for option in ("GOALS.json", "--output", "--overwrite", "--report", "--strict", "--new-action"):
        assert option in said


@pytest.mark.parametrize(
    ("files", "arguments", "sentence"),
    [
        ([], [], "the following arguments are required: GOALS.json"),
        ([{}], ["--nonsense"], "unrecognized arguments: --nonsense"),
        ([{"armature": "Nobody"}], [], "The scene 'Scene' has no armature 'Nobody'. It has 'Rig', 'Other'"),
        ([{"armature": None}], [], "has no 'armature', and the scene doesn't have exactly one. It has 'Rig', 'Other'"),
        ([{}, {}], [], "both pose 'Rig'. Put their frames into one file"),
        ([{}, {"armature": "Other", "frames": []}], [], "1.json': 'frames' is empty"),
        ([{}, {"armature": "Other", "root": "tail"}], [], "1.json': 'Other' has no bone 'tail'"),
        ([{}], ["--overwrite"], "--overwrite needs a file"),
        ([{}], ["--output", "posed.txt"], "--output must end in '.blend'"),
        ([{}], ["--report", "nowhere/report.json"], "Can't write 'report.json': the folder 'nowhere' does not exist"),
    ],
)
def test_bad_arguments_give_a_message_and_write_nothing(
    ik_pose: Command,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    files: list[dict[str, Any]],
    arguments: list[str],
    sentence: str,
) -> None:
    arm()
    arm("Other")
    paths = [goals(tmp_path / f"{i}.json", **content) for i, content in enumerate(files)]
    output = [] if {"--overwrite", "--output"} & {*arguments} else ["--output", tmp_path / "posed.blend"]
    assert ik_pose(*paths, *arguments, *output) == 2
    assert sentence in capfd.readouterr().err
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_a_report_replaces_no_file_of_goals(ik_pose: Command, tmp_path: Path) -> None:
    arm()
    path = goals(tmp_path / "goals.json")
    content = path.read_bytes()
    assert ik_pose(path, "--report", path) == 2
    assert path.read_bytes() == content


def test_ctrl_c_ends_the_command_and_nothing_is_written(
    addon: Addon, ik_pose: Command, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ob = arm()
    path = goals(tmp_path / "goals.json")
    bpy.app.handlers.frame_change_post.append(
        lambda scene: os.kill(os.getpid(), signal.SIGINT) if scene.frame_current == 3 and not keyed(addon, ob) else None
    )
    assert ik_pose(path, "--output", tmp_path / "posed.blend") == 130
    assert capfd.readouterr().err == "ik_pose: Interrupted; nothing was written\n"
    assert list(tmp_path.iterdir()) == [path]
    assert not keyed(addon, ob)
