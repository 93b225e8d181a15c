"""A bake in parts, each in its own Blender, gives the keys of a single bake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.operators.states import snapshot
from tests.shots.test_command import keyed, moving_arm
from tools.environments import ROOT

if TYPE_CHECKING:
    from tests.conftest import Addon
    from tests.shots.conftest import Command


def tumbling(*, driven: bool = False) -> None:
    """Build two arms that tumble: quaternions change sign, and Euler angles go past a full turn.

    The second arm follows the first. Its target is out of reach for a while, which pushes its root.
    """
    leader, follower = moving_arm("Leader"), moving_arm("Follower")
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 60
    for ob in (leader, follower):
        for bone, mode in (("upper", "QUATERNION"), ("thigh", "ZXY"), ("shin", "AXIS_ANGLE")):
            ob.pose.bones[bone].rotation_mode = mode
        for tip in ("lower", "shin"):
            target = ob.pose.bones[tip].ik_addon.target
            target.animation_data_clear()
            x = target.location.x if tip == "lower" else 3.0
            turn = np.linspace(0.0, 6.0 * np.pi, 10)
            places = zip(
                range(1, 61, 6), x + 0.8 * np.cos(turn), 0.8 * np.sin(turn), 1.0 + 0.3 * turn / 6.0, strict=False
            )
            rigs.key(target, "location", {frame: place for frame, *place in places})
    chain = follower.pose.bones["lower"].ik_addon
    chain.target, chain.target_bone = leader, "lower"
    far = follower.pose.bones["shin"].ik_addon
    far.out_of_reach = "PUSH_ROOT"
    rigs.key(far.target, "location", {40: (3.0, 0.0, 4.0)})
    if driven:  # so that Blender has to evaluate each frame
        driver = leader.pose.bones["lower"].ik_addon.target.driver_add("location", 2).driver
        driver.expression = "1 + frame / 60"
    bpy.context.view_layer.update()


def keys(addon: Addon) -> dict[tuple[str, str, int], Any]:
    """Return all keys of the armatures."""
    found = {}
    for name in ("Leader", "Follower"):
        curves = addon.module("compat").curve_owner(bpy.data.objects[name]).fcurves
        for curve in curves:
            found[name, curve.data_path, curve.array_index] = np.array([point.co[:] for point in curve.keyframe_points])
    return found


def without_places(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report without the accuracy of compared frames, since parts compare different frames."""
    for entry in report["armatures"]:
        assert entry.pop("position") < 1e-5
        assert entry.pop("angle") < 1e-4
    return {name: value for name, value in report.items() if name != "saved"}


def solved(ik_bake: Command, folder: Path, of: int) -> list[Path]:
    """Solve the open file in parts, and open it again; return the parts."""
    file, places = folder / "shot.blend", [folder / f"{number}of{of}.npz" for number in range(1, of + 1)]
    if not file.exists():
        bpy.ops.wm.save_as_mainfile(filepath=str(file))
    for number, place in enumerate(places, 1):
        bpy.ops.wm.open_mainfile(filepath=str(file))
        assert ik_bake("--part", f"{number}/{of}", "--output", place) == 0
    bpy.ops.wm.open_mainfile(filepath=str(file))
    return places


def solved_by_several(package: Path, folder: Path, of: int) -> list[Path]:
    """Solve the open file in parts, each in its own Blender, all at the same time; return the parts."""
    script, file = Path(__file__).with_name("bake_part.py"), folder / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(file))
    places, blenders = [], []
    for number in range(1, of + 1):
        places.append(folder / f"{number}of{of}.npz")
        command = [sys.executable, str(script), str(package), str(folder / f"blender{number}"), str(file)]
        command += ["--part", f"{number}/{of}", "--output", str(places[-1])]
        blenders.append(subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}))
    try:
        assert [blender.wait(300) for blender in blenders] == [0] * of
    finally:
        for blender in blenders:
            blender.kill()
    return places


@pytest.mark.parametrize("driven", [False, True], ids=["keyed, by several Blenders", "driven, by one"])
def test_parts_give_the_keys_of_a_single_bake(
    addon: Addon, package: Path, ik_bake: Command, tmp_path: Path, driven: bool
) -> None:
    tumbling(driven=driven)
    parts = solved(ik_bake, tmp_path, 3) if driven else solved_by_several(package, tmp_path, 3)
    shot = tmp_path / "shot.blend"
    content = shot.read_bytes()
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    assert ik_bake("--report", tmp_path / "one.json", "--output", tmp_path / "one.blend") == 0
    one = keys(addon)
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    joined = tmp_path / "joined.blend"
    in_disorder = (parts[1], parts[0], parts[2])
    assert ik_bake("--join", *in_disorder, "--report", tmp_path / "joined.json", "--output", joined) == 0
    bpy.ops.wm.open_mainfile(filepath=str(joined))
    found = keys(addon)
    assert found.keys() == one.keys()
    assert ("Follower", 'pose.bones["thigh"].location', 0) in one, "it is pushed in one of the parts alone"
    assert all(np.array_equal(found[path], one[path]) for path in one)
    assert not bpy.data.objects["Follower"].pose.bones["shin"].ik_addon.enabled
    reports = [without_places(json.loads((tmp_path / name).read_text())) for name in ("one.json", "joined.json")]
    assert reports[0] == reports[1]
    assert shot.read_bytes() == content


def test_parts_respect_the_frame_step(addon: Addon, ik_bake: Command, tmp_path: Path) -> None:
    moving_arm()
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    for number in (1, 2):
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
        assert ik_bake("--part", f"{number}/2", "--step", 4, "--output", tmp_path / f"{number}.npz") == 0
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    assert ik_bake("--join", tmp_path / "1.npz", tmp_path / "2.npz") == 0
    assert keyed(addon, bpy.data.objects["Rig"])["lower"] == [1, 5, 9, 10]


def test_a_missing_or_foreign_part_is_refused(
    ik_bake: Command, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    moving_arm()
    thirds, halves = solved(ik_bake, tmp_path, 3), solved(ik_bake, tmp_path, 2)
    (tmp_path / "note.npz").write_text("no part")
    np.save(tmp_path / "array.npy", np.zeros(3))
    (tmp_path / "cut.npz").write_bytes(thirds[2].read_bytes()[:-300])
    before = snapshot()
    for parts, sentence in (
        (thirds[:2], "Missing parts (of 3): 3"),
        ([*thirds, thirds[0]], "are both part 1 of 3"),
        ([thirds[0], halves[1]], "is one of 2 parts"),
        ([tmp_path / "note.npz"], "is not a part of a bake"),
        ([tmp_path / "array.npy"], "is not a part of a bake"),
        ([*thirds[:2], tmp_path / "cut.npz"], "is not a part of a bake"),
        ([tmp_path / "gone.npz"], "is not a part of a bake"),
    ):
        assert ik_bake("--join", *parts, "--output", tmp_path / "joined.blend") == 2
        assert sentence in capfd.readouterr().err
    assert snapshot() == before
    assert not (tmp_path / "joined.blend").exists()


@pytest.mark.parametrize("change", ["motion", "chain", "mode", "armature"])
def test_a_file_changed_between_parts_is_refused(
    ik_bake: Command, capfd: pytest.CaptureFixture[str], tmp_path: Path, change: str
) -> None:
    ob = moving_arm()
    parts = solved(ik_bake, tmp_path, 2)
    ob = bpy.data.objects["Rig"]
    if change == "motion":
        rigs.key(ob, "location", {1: (0, 0, 0), 10: (0, 0, 1)})
        ob.pose.bones["upper"].keyframe_insert("location", frame=1)
        ob.pose.bones["upper"].location = (0.0, 0.3, 0.0)
        ob.pose.bones["upper"].keyframe_insert("location", frame=10)
    elif change == "chain":
        ob.pose.bones["shin"].ik_addon.enabled = False
    elif change == "mode":
        ob.pose.bones["lower"].rotation_mode = "XYZ"
    else:
        ob.name = "Other"
    bpy.context.scene.frame_set(1)
    before = snapshot()
    assert ik_bake("--join", *parts, "--output", tmp_path / "joined.blend") == 2
    assert {
        "motion": "doesn't play as the parts were solved",
        "chain": "The chain on 'shin' of 'Rig' is disabled",
        "mode": "solved with different chains",
        "armature": "no armature 'Rig'",
    }[change] in capfd.readouterr().err
    assert snapshot() == before
    assert not (tmp_path / "joined.blend").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--part", "1/2"], "--part needs --output"),
        (["--part", "3/2", "--output", "part.npz"], "'3/2' is not a part such as 2/4"),
        (["--part", "half", "--output", "part.npz"], "'half' is not a part such as 2/4"),
        (["--part", "1/2", "--output", "part.blend"], "--output must end in '.npz'"),
        (["--part", "1/2", "--action", "--output", "part.npz"], "--part can't be combined with --action"),
        (["--part", "1/2", "--new-action", "--output", "part.npz"], "--part can't be combined with --new-action"),
        (["--part", "1/2", "--plant", "--output", "part.npz"], "--part can't be combined with --plant"),
        (["--part", "1/20", "--output", "part.npz"], "10 frames can't be split into 20 parts"),
        (["--join", "1.npz", "--range", "1", "5"], "--join can't be combined with --range"),
        (["--join", "1.npz", "--preview"], "--join can't be combined with --preview"),
        (["--join", "1.npz", "--part", "1/2"], "not allowed with argument"),
        (["shot.blend", "--join", "1.npz"], "--join can't be combined with several files"),
    ],
)
def test_contradictory_options_are_refused(
    ik_bake: Command,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    moving_arm()
    before = snapshot()
    assert ik_bake(*arguments) == 2
    assert sentence in capfd.readouterr().err
    assert snapshot() == before
    assert not list(tmp_path.iterdir())
