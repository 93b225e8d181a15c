"""The job type for Flamenco makes tasks that `ik_bake` accepts; it has not been run on a farm."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from tests.conftest import Addon
from tools.environments import ROOT

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
