"""The program without a window: install, solve, bake and render from the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.window.driving import INSIDE, REACHED, SAMPLES, changed, differences, pixels
from tools.window import Program

FRAMES = [10, 12, 14]


def test_installed_from_the_command_line_it_is_enabled(program: Program, farm: Path, nobody: Path) -> None:
    assert program.ask(farm, SAMPLES / "two_bone_arm.blend", INSIDE, "is_enabled")
    assert not program.ask(nobody, SAMPLES / "two_bone_arm.blend", INSIDE, "is_enabled")


def test_bake_keeps_the_poses_without_the_extension(
    program: Program, farm: Path, nobody: Path, scene: Path, baked: Path
) -> None:
    misses = program.ask(farm, scene, INSIDE, "misses")
    assert max(misses.values()) < REACHED, "it is solved when it is opened"
    live = program.ask(farm, scene, INSIDE, "poses", FRAMES)
    played = program.ask(nobody, baked, INSIDE, "poses", FRAMES)
    assert not differences(played, live, 1e-5)
    assert differences(program.ask(nobody, scene, INSIDE, "poses", FRAMES), live, 1e-2), "unlike what was not baked"


def test_a_render_shows_the_solved_pose(
    program: Program, farm: Path, nobody: Path, scene: Path, baked: Path, scratch: Path
) -> None:
    engines, frame, other = ("WORKBENCH", "CYCLES"), 14, 1

    def rendered(name: str, user: Path, file: Path, frame: int = frame) -> list[Any]:
        jobs = {str(scratch / f"{name}-{engine}.png"): (engine, frame) for engine in engines}
        program.ask(user, file, INSIDE, "render_stills", jobs)
        return [pixels(Path(path)) for path in jobs]

    expected = rendered("baked", nobody, baked)
    for live, picture in zip(rendered("live", farm, scene), expected, strict=True):
        assert changed(live, picture) == 0
    for wrong in (rendered("unsolved", nobody, scene), rendered("elsewhere", nobody, baked, other)):
        for unlike, picture in zip(wrong, expected, strict=True):
            assert changed(unlike, picture) > 100, "a wrong pose is seen"


def test_ctrl_c_ends_a_bake_and_nothing_is_written(program: Program, farm: Path, scene: Path, scratch: Path) -> None:
    """Blender without a window only takes note of the first Ctrl-C: the command itself has to end."""
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


def test_ik_pose_poses_a_body_that_plays_without_the_extension(
    program: Program, farm: Path, nobody: Path, scratch: Path
) -> None:
    posed, report = scratch / "posed.blend", scratch / "report.json"
    file, goals = SAMPLES / "posing_horse.blend", SAMPLES / "posing_horse.json"
    options = ["--strict", "--output", posed, "--report", report]
    ended = program.run(farm, "-b", file, "--command", "ik_pose", goals, *options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Posed 48 frames into 'HorseAction'. All goals were reached" in ended.stdout
    (told,) = json.loads(report.read_text())["armatures"]
    assert told["missed"] == []
    stands, grazes = program.ask(nobody, posed, INSIDE, "poses", [1, 13])
    assert differences(stands, grazes, 0.5), "its head goes down"
    assert not [line for line in differences(stands, grazes, 2e-3) if "hoof" in line], "its hooves stay"
    refused = program.run(farm, "-b", file, "--command", "ik_pose", report, "--output", posed)
    assert refused.returncode == 2
    assert f"ik_pose: '{report}': the file has no 'frames'" in refused.stderr


def test_ik_bake_bakes_many_files_and_a_bad_one_ends_nothing(
    program: Program, farm: Path, nobody: Path, scene: Path, baked: Path, scratch: Path
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
    expected = program.ask(nobody, baked, INSIDE, "poses", FRAMES)
    for name in ("first", "last"):
        assert not differences(program.ask(nobody, folder / f"{name}.blend", INSIDE, "poses", FRAMES), expected, 1e-9)


def test_parts_are_joined(program: Program, farm: Path, nobody: Path, scene: Path, baked: Path, scratch: Path) -> None:
    parts = [scratch / f"{number}.npz" for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        ended = program.run(farm, "-b", scene, "--command", "ik_bake", "--part", f"{number}/2", "--output", part)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    joined = scratch / "joined.blend"
    ended = program.run(farm, "-b", scene, "--command", "ik_bake", "--join", *parts, "--output", joined)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    poses, expected = (program.ask(nobody, file, INSIDE, "poses", FRAMES) for file in (joined, baked))
    assert not differences(poses, expected, 1e-9)
