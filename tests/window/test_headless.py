"""Blender without a window: install, solve, bake and render from the command line."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.window.driving import INSIDE, changed, differences, pixels
from tools.window import Program

FRAMES = [10, 12, 14]


@pytest.fixture(scope="module")
def played(program: Program, nobody: Path, baked: Path) -> list[dict[str, list[float]]]:
    """The poses of the baked scene, evaluated without the extension."""
    found: list[dict[str, list[float]]] = program.ask(nobody, baked, INSIDE, "poses", FRAMES)
    return found


def test_bake_keeps_the_poses_without_the_extension(
    program: Program, farm: Path, nobody: Path, scene: Path, played: list[dict[str, list[float]]]
) -> None:
    live = program.ask(farm, scene, INSIDE, "poses", FRAMES)
    assert not differences(played, live, 1e-5)
    assert differences(program.ask(nobody, scene, INSIDE, "poses", FRAMES), live, 1e-2), "unlike what was not baked"


def test_a_render_shows_the_solved_pose(
    program: Program, farm: Path, nobody: Path, scene: Path, baked: Path, scratch: Path
) -> None:
    engines, frame, other = ("WORKBENCH", "CYCLES"), 14, 1

    def rendered(name: str, user: Path, file: Path, *frames: int) -> list[list[Any]]:
        jobs = {str(scratch / f"{name}-{engine}-{f}.png"): (engine, f) for f in frames for engine in engines}
        program.ask(user, file, INSIDE, "render_stills", jobs)
        found = [pixels(Path(path)) for path in jobs]
        return [found[i : i + len(engines)] for i in range(0, len(found), len(engines))]

    expected, elsewhere = rendered("baked", nobody, baked, frame, other)
    (live,) = rendered("live", farm, scene, frame)
    (unsolved,) = rendered("unsolved", nobody, scene, frame)
    for picture, same in zip(expected, live, strict=True):
        assert changed(same, picture) == 0
    for wrong in (unsolved, elsewhere):
        for unlike, picture in zip(wrong, expected, strict=True):
            assert changed(unlike, picture) > 100, "a wrong pose is seen"


def test_ctrl_c_ends_a_bake_without_writing_anything(program: Program, farm: Path, scene: Path, scratch: Path) -> None:
    """Without a window Blender only records the first Ctrl-C; the command itself has to end."""
    file = scratch / "interrupted.blend"
    shutil.copy(scene, file)
    press = (
        "import bpy, os, signal; bpy.app.handlers.frame_change_post.append("
        "lambda scene: scene.frame_current == 12 and os.kill(os.getpid(), signal.SIGINT))"
    )
    before = file.read_bytes()
    ended = program.run(farm, "-b", file, "--python-expr", press, "--command", "ik_bake", "--overwrite")
    assert ended.returncode == 130, ended.stdout + ended.stderr
    assert "ik_bake: Interrupted; nothing was written" in ended.stderr
    assert file.read_bytes() == before


def test_ik_bake_bakes_many_files_and_continues_after_a_bad_one(
    program: Program, farm: Path, nobody: Path, scene: Path, played: list[dict[str, list[float]]], scratch: Path
) -> None:
    shots = [scratch / f"{name}.blend" for name in ("first", "broken", "last")]
    for shot in shots:
        shutil.copy(scene, shot)
    shots[1].write_bytes(b"nothing")
    folder = scratch / "many"
    folder.mkdir()
    report = folder / "report.json"
    ended = program.run(farm, "-b", "--command", "ik_bake", *shots, "--output", folder, "--report", report)
    assert ended.returncode == 3, ended.stdout + ended.stderr
    assert [one["exit_code"] for one in json.loads(report.read_text())["files"]] == [0, 2, 0]
    for name in ("first", "last"):
        assert not differences(program.ask(nobody, folder / f"{name}.blend", INSIDE, "poses", FRAMES), played, 1e-9)
