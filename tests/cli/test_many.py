"""Many files with one command: each is baked, one report covers all, and a bad file does not stop the rest."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import bpy
import pytest

from tests import rigs
from tests.cli.conftest import Command
from tests.cli.test_command import keyed, moving_arm, saved
from tests.conftest import Addon
from tools.environments import ROOT


def shot(path: Path, far: float = 0.0, *, constrained: bool = False) -> Path:
    """Save a file with an arm."""
    rigs.new_file()
    ob = moving_arm(far=far)
    if constrained:
        ob.pose.bones["upper"].constraints.new("COPY_ROTATION")
    saved(path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder for results."""
    found = tmp_path / "baked"
    found.mkdir()
    return found


def is_baked(path: Path) -> bool:
    bpy.ops.wm.open_mainfile(filepath=str(path))
    return len(keyed(bpy.data.objects["Rig"]).get("lower", [])) == 10


def test_bakes_each_file_into_a_folder(ik_bake: Command, tmp_path: Path, folder: Path) -> None:
    files = [shot(tmp_path / f"{name}.blend") for name in "abc"]
    contents = [file.read_bytes() for file in files]
    rigs.new_file()
    assert ik_bake(*files, "--output", folder, "--report", folder / "report.json") == 0
    assert [file.read_bytes() for file in files] == contents
    report = json.loads((folder / "report.json").read_text())
    assert report["reached"] is True
    assert report["failed"] == []
    assert [Path(one["file"]).name for one in report["files"]] == ["a.blend", "b.blend", "c.blend"]
    assert [Path(one["saved"]) for one in report["files"]] == [folder / file.name for file in files]
    assert all(one["exit_code"] == 0 and one["armatures"][0]["frames"] == 10 for one in report["files"])
    assert sorted(path.name for path in folder.iterdir()) == ["a.blend", "b.blend", "c.blend", "report.json"]
    assert all(is_baked(folder / file.name) for file in files)


def test_a_file_keeps_its_interface_and_is_baked_in_its_own_view_layer(ik_bake: Command, tmp_path: Path) -> None:
    """The target is missing in the first view layer, which is not the active one."""
    file = shot(tmp_path / "shot.blend")
    scene, target = bpy.context.scene, bpy.data.objects["lower target"]
    collection = bpy.data.collections.new("Animation")
    scene.collection.children.link(collection)
    collection.objects.link(target)
    scene.collection.objects.unlink(target)
    layer = scene.view_layers.new("Animation Layer")
    scene.view_layers[0].layer_collection.children["Animation"].exclude = True
    bpy.context.window.view_layer = layer
    bpy.context.workspace.name = "Animation Desk"
    bpy.ops.wm.save_as_mainfile(filepath=str(file))
    rigs.new_file()
    assert ik_bake(file, "--overwrite") == 0
    rigs.new_file()
    assert is_baked(file)
    assert bpy.context.view_layer.name == "Animation Layer"
    assert bpy.context.workspace.name == "Animation Desk"


def test_a_bad_file_does_not_end_the_others(ik_bake: Command, tmp_path: Path, folder: Path) -> None:
    good, late = shot(tmp_path / "good.blend"), shot(tmp_path / "late.blend")
    stuck = shot(tmp_path / "stuck.blend", constrained=True)
    broken, gone = tmp_path / "broken.blend", tmp_path / "gone.blend"
    broken.write_bytes(b"BLENDER-no")
    ik_bake.capfd.readouterr()
    report = ik_bake.report(3, broken, good, gone, stuck, late, "--output", folder)
    said = ik_bake.capfd.readouterr()
    assert [one["exit_code"] for one in report["files"]] == [2, 0, 2, 2, 0]
    assert report["failed"] == [str(broken), str(gone), str(stuck)]
    assert report["reached"] is False
    assert "can't be baked. The constraint" in report["files"][3]["error"]
    assert f"ik_bake: {stuck}: The chain on 'lower' can't be baked" in said.err
    assert "ik_bake: 3 of 5 files were not baked" in said.err
    assert "Baked 2 of 5 files" in said.out
    assert sorted(path.name for path in folder.iterdir()) == ["good.blend", "late.blend"]
    assert is_baked(folder / "late.blend")


@pytest.mark.parametrize(("kinds", "code"), [("gg", 0), ("gm", 1), ("mb", 3), ("bb", 2)])
def test_the_exit_code_covers_all_files(ik_bake: Command, tmp_path: Path, kinds: str, code: int) -> None:
    """The files are good, miss their target, or are broken."""
    files = []
    for i, kind in enumerate(kinds):
        file = tmp_path / f"{i}.blend"
        if kind == "b":
            file.write_bytes(b"nothing")
        else:
            shot(file, far=30.0 if kind == "m" else 0.0)
        files.append(file)
    assert ik_bake.report(code, *files, "--strict")["reached"] is (code == 0)


def test_ctrl_c_keeps_the_files_already_baked(ik_bake: Command, tmp_path: Path, folder: Path) -> None:
    files = [shot(tmp_path / f"{name}.blend") for name in "abc"]
    bpy.app.handlers.persistent(_press_in_b)
    bpy.app.handlers.load_post.append(_press_in_b)
    try:
        report = ik_bake.report(130, *files, "--output", folder)
    finally:
        bpy.app.handlers.load_post.remove(_press_in_b)
    assert f"Interrupted in '{files[1]}', after baking 1 of 3 files" in ik_bake.capfd.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["a.blend"]
    assert len(report["files"]) == 1


def _press_in_b(*_arguments: object) -> None:
    if Path(bpy.data.filepath).name == "b.blend":
        os.kill(os.getpid(), signal.SIGINT)


def test_invalid_paths_are_refused_before_any_file_is_opened(ik_bake: Command, tmp_path: Path, folder: Path) -> None:
    one = shot(tmp_path / "a.blend")
    (tmp_path / "more").mkdir()
    other = shot(tmp_path / "more" / "a.blend")
    content = one.read_bytes()
    rigs.new_file()
    for arguments, sentence in (
        ([one, "--output", tmp_path / "new.blend"], "--output must be an existing folder"),
        ([one, "--output", tmp_path], "--output would replace"),
        ([one, other, "--output", folder], "Two of the files are called 'a'"),
        ([one, "--output", folder, "--report", tmp_path / "a.blend"], "--report would replace one of the files"),
        ([one, "--output", folder, "--report", tmp_path / "a.txt"], "--report must end in '.json'"),
    ):
        assert sentence in ik_bake.errors(2, *arguments)
    assert not bpy.data.filepath
    assert one.read_bytes() == content


# ---- the job type for Flamenco makes tasks that `ik_bake` accepts; it has not been run on a farm


SCRIPT = ROOT / "docs" / "flamenco" / "ik_bake.js"
MANAGER = """
const path = { join: (...parts) => parts.join("/"), stem: (file) => file.split("/").pop().replace(/\\.[^.]*$/, "") };
const author = {
    Task: (name, type) => ({
        name, type, commands: [], after: [],
        addCommand(command) { this.commands.push(command); },
        addDependency(task) { this.after.push(task.name); },
    }),
    Command: (name, parameters) => ({ name, parameters }),
};
const job = { settings: SETTINGS, tasks: [], addTask(task) { this.tasks.push(task); } };
compileJob(job);
console.log(JSON.stringify({ known: JOB_TYPE.settings.map((setting) => setting.key), tasks: job.tasks }));
"""
"""A stand-in for what a job type sees of the Flamenco Manager."""


def compiled(**settings: Any) -> list[dict[str, Any]]:
    """Return the tasks of a job."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node, to run JavaScript")
    code = SCRIPT.read_text(encoding="utf-8") + MANAGER.replace("SETTINGS", json.dumps(settings))
    answer = subprocess.run([node, "-e", code], capture_output=True, text=True, check=False, timeout=60)
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert set(settings) <= set(found["known"])
    return list(found["tasks"])


def arguments(addon: Addon, task: dict[str, Any]) -> Any:
    """Return the arguments that `ik_bake` parses from a task's command."""
    (command,) = task["commands"]
    assert command["name"] == "blender-render"
    first, second, *own = command["parameters"]["args"]
    assert (first, second) == ("--command", "ik_bake")
    module = addon.module("cli.command")
    options = module._parser().parse_args(own)
    module._check(options)
    return options


def test_each_shot_is_baked_into_the_folder(addon: Addon) -> None:
    shots = "/shots/a.blend; /shots/b.blend;"
    folder, *bakes = compiled(shots=shots, output="/baked", options="--plant --strict", blendfile="/x.blend")
    assert folder["commands"] == [{"name": "make-directory", "parameters": {"path": "/baked"}}]
    assert [task["commands"][0]["parameters"]["blendfile"] for task in bakes] == ["/shots/a.blend", "/shots/b.blend"]
    for name, task in zip("ab", bakes, strict=True):
        options = arguments(addon, task)
        assert (str(options.output), str(options.report)) == (f"/baked/{name}.blend", f"/baked/{name}.json")
        assert options.plant
        assert options.strict
        assert task["after"] == ["folder"]
