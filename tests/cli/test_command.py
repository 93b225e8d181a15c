"""The command line, called with its arguments as Blender calls it."""

import os
import signal
from pathlib import Path
from typing import Any

import bpy
import pytest

from tests import rigs
from tests.cli.conftest import Command
from tests.conftest import Addon, Capture
from tests.reliability import states
from tests.reliability.states import snapshot


def moving_arm(name: str = "Rig", far: float = 0.0) -> bpy.types.Object:
    """Return an arm whose target moves on frames 1 to 10, with another chain on a third bone."""
    ob = rigs.armature(name)
    for x, bones in ((0.0, ("upper", "lower")), (3.0, ("thigh", "shin"))):
        target = rigs.add_arm(ob, x, bones, f"{bones[1]} target")
        rigs.key(target, "location", {1: (x + 0.5, 0.4, 1.0), 10: (x - 0.4 + far, 0.6, 1.3)})
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 10
    return ob


def saved(path: Path) -> bytes:
    """Save the open file under a path; return what it holds."""
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path.read_bytes()


def keyed(ob: bpy.types.Object) -> dict[str, list[float]]:
    """Return the frames of the keys, by bone."""
    return {path.split('"')[1]: frames for (path, _index), frames in states.keyed(ob).items()}


def test_bakes_all_chains_on_the_frames_of_the_scene(ik_bake: Command) -> None:
    ob = moving_arm()
    assert "Rig: Baked 2 chains on 10 frames" in ik_bake.said(0)[0]
    frames = [float(frame) for frame in range(1, 11)]
    assert keyed(ob) == dict.fromkeys(("upper", "lower", "thigh", "shin"), frames)


def test_bakes_a_scene_with_other_objects_if_blender_gives_no_window(ik_bake: Command) -> None:
    """Blender 4 calls a command like this. The bake then makes its own scene, which must be removed again."""
    ob = moving_arm()
    rigs.empty("Bystander")
    with bpy.context.temp_override(window=None):
        assert ik_bake() == 0
    assert set(keyed(ob)) == {"upper", "lower", "thigh", "shin"}
    assert len(bpy.data.scenes) == 1


NAMED = {
    "--range -2 3": range(-2, 4),
    "--range -3 -3": (-3,),
    "--range 1 10 --step 3": (1, 4, 7, 10),
    "--preview": range(4, 7),
    "--scene --step 4": (1, 5, 9, 10),
    "--action": range(2, 9),
}
"""Frames by the arguments that name them."""


def test_bakes_the_named_frames(ik_bake: Command) -> None:
    scene = bpy.context.scene
    for arguments, frames in NAMED.items():
        ob = moving_arm()
        scene.use_preview_range, scene.frame_preview_start, scene.frame_preview_end = True, 4, 6
        if arguments == "--action":
            for frame in (2, 8):
                ob.pose.bones["upper"].keyframe_insert("location", frame=frame)
        assert ik_bake("--armature", ob.name, "--chains", "lower", *arguments.split()) == 0
        assert keyed(ob)["lower"] == list(frames), arguments
        assert "shin" not in keyed(ob)


def test_bakes_the_named_armatures(ik_bake: Command) -> None:
    obs = [moving_arm(name) for name in ("One", "Two", "Three")]
    assert ik_bake("--armature", "One", "--armature", "Three") == 0
    assert [bool(keyed(ob)) for ob in obs] == [True, False, True]


@pytest.mark.parametrize("live", [False, True])
def test_an_armature_that_another_follows_is_baked_first(ik_bake: Command, live: bool) -> None:
    first = moving_arm("Follower")
    second = moving_arm("Leader")
    chain = first.pose.bones["lower"].ik_addon
    chain.target, chain.target_bone = second, "shin"
    first.location = (2.5, 0.3, 0.0)
    first.ik_addon.live = second.ik_addon.live = live
    bpy.context.view_layer.update()
    assert ik_bake() == 0
    assert not rigs.missed(first, (1, 4, 10), 1e-4)


# ---- files


def test_saves_nothing_without_being_told_to(ik_bake: Command, tmp_path: Path) -> None:
    moving_arm()
    file = tmp_path / "rig.blend"
    content = saved(file)
    assert ik_bake() == 0
    assert file.read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["rig.blend"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_saves_the_bake(ik_bake: Command, tmp_path: Path, overwrite: bool) -> None:
    moving_arm()
    file, output = tmp_path / "rig.blend", tmp_path / "baked.blend"
    content = saved(file)
    assert ik_bake(*(["--overwrite"] if overwrite else ["--output", output])) == 0
    assert (file.read_bytes() == content) == (not overwrite)
    bpy.ops.wm.open_mainfile(filepath=str(file if overwrite else output))
    assert len(keyed(bpy.data.objects["Rig"])["lower"]) == 10
    assert not bpy.data.objects["Rig"].pose.bones["lower"].ik_addon.enabled


def test_writes_a_report(ik_bake: Command, tmp_path: Path) -> None:
    moving_arm()
    moving_arm("Far", far=30.0)
    report = ik_bake.report(0, "--output", tmp_path / "baked.blend")
    assert report["saved"] == str(tmp_path / "baked.blend")
    assert report["reached"] is False
    by_name: dict[str, Any] = {entry["armature"]: entry for entry in report["armatures"]}
    assert by_name["Rig"]["chains"] == ["lower", "shin"]
    assert (by_name["Rig"]["frames"], by_name["Rig"]["missed"]) == (10, 0)
    assert by_name["Rig"]["error"] < 1e-4
    assert by_name["Far"]["missed"] > 0
    assert by_name["Far"]["error"] > 1.0
    assert by_name["Far"]["action"] == bpy.data.objects["Far"].animation_data.action.name
    assert "missed its target on" in by_name["Far"]["message"]


def test_a_report_replaces_only_reports(ik_bake: Command, tmp_path: Path) -> None:
    ob = moving_arm()
    for file in ("other.blend", "rig.blend"):
        saved(tmp_path / file)
    (tmp_path / "link.json").symlink_to(tmp_path / "other.blend")
    (tmp_path / "hard.json").hardlink_to(tmp_path / "rig.blend")
    (tmp_path / "folder.json").mkdir()

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}

    before, output = files(), tmp_path / "baked.blend"
    for name in ("rig.blend", "baked.blend", "other.blend", "link.json", "hard.json", "folder.json"):
        assert "ik_bake: --report" in ik_bake.errors(2, "--report", tmp_path / name, "--output", output), name
    assert files() == before
    assert not keyed(ob), "it is found out before anything is baked"


def test_unwritable_paths_are_detected_before_the_bake(ik_bake: Command, tmp_path: Path) -> None:
    ob = moving_arm()
    (tmp_path / "file").touch()
    for option, suffix in (("--output", ".blend"), ("--report", ".json")):
        (tmp_path / f"folder{suffix}").mkdir()
        for name in (300 * "x" + suffix, f"folder{suffix}", f"file/baked{suffix}"):
            assert len(ik_bake.errors(2, option, tmp_path / name).splitlines()) == 1, name
    assert not keyed(ob)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.blend", "folder.json"]


def test_output_does_not_replace_input_files(ik_bake: Command, tmp_path: Path) -> None:
    moving_arm()
    library, file = tmp_path / "library.blend", tmp_path / "rig.blend"
    bpy.data.libraries.write(str(library), {rigs.empty("Prop")})
    (wanted,) = rigs.from_library(library, "objects", "Prop")
    bpy.context.scene.collection.objects.link(wanted)
    before = saved(file), library.read_bytes()
    for path in (library, file):
        assert ik_bake("--output", path) == 2
    assert (file.read_bytes(), library.read_bytes()) == before
    assert not keyed(bpy.data.objects["Rig"])


def test_a_link_stays_a_link(ik_bake: Command, tmp_path: Path) -> None:
    moving_arm()
    file, link = tmp_path / "rig.blend", tmp_path / "link.blend"
    saved(file)
    link.symlink_to(file)
    bpy.ops.wm.open_mainfile(filepath=str(link))
    assert ik_bake("--overwrite") == 0
    assert link.is_symlink()
    bpy.ops.wm.open_mainfile(filepath=str(file))
    assert keyed(bpy.data.objects["Rig"])


def test_a_report_that_fails_after_saving_has_its_own_exit_code(ik_bake: Command, tmp_path: Path) -> None:
    moving_arm()
    report, output = tmp_path / "report.json", tmp_path / "baked.blend"

    def take_its_place(_scene: bpy.types.Scene) -> None:
        report.mkdir(exist_ok=True)

    bpy.app.handlers.frame_change_post.append(take_its_place)
    assert "was saved, but its report" in ik_bake.errors(3, "--output", output, "--report", report)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["baked.blend", "report.json"]
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert keyed(bpy.data.objects["Rig"])


def test_ctrl_c_ends_the_command_and_nothing_is_written(ik_bake: Command, tmp_path: Path) -> None:
    first, second = moving_arm("First"), moving_arm("Second")
    file = tmp_path / "rig.blend"
    content = saved(file)

    def press(scene: bpy.types.Scene) -> None:
        if scene.frame_current == 10 and keyed(first) and not keyed(second):
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    bpy.app.handlers.frame_change_post.append(press)
    said = ik_bake.errors(130, "--overwrite", "--report", tmp_path / "report.json")
    assert said == "ik_bake: Interrupted; nothing was written\n"
    assert file.read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["rig.blend"]
    assert not keyed(second)
    assert second.pose.bones["lower"].ik_addon.enabled
    assert signal.getsignal(signal.SIGINT) is before


# ---- armatures with the same name


def beside_a_linked_one(library: Path, *, chains: bool = True) -> bpy.types.Object:
    """Return an armature in a scene into which another one with the same name is linked."""
    linked = moving_arm()
    if not chains:
        for bone in ("lower", "shin"):
            linked.pose.bones[bone].property_unset("ik_addon")
    bpy.data.libraries.write(str(library), {rigs.in_collection("Set", linked)})
    rigs.new_file()
    ob = moving_arm()
    everything = bpy.context.scene.collection
    rigs.in_collection("Own", *everything.objects)
    (wanted,) = rigs.from_library(library, "collections", "Set")
    everything.children.link(wanted)
    bpy.context.view_layer.update()
    assert [each.name for each in bpy.context.scene.objects if each.type == "ARMATURE"] == [ob.name] * 2
    return ob


@pytest.mark.parametrize("chains", [False, True])
def test_a_linked_armature_does_not_hide_a_local_one_of_its_name(
    ik_bake: Command, capfd: Capture, tmp_path: Path, chains: bool
) -> None:
    ob = beside_a_linked_one(tmp_path / "set.blend", chains=chains)
    report = ik_bake.report(3 if chains else 0)
    assert keyed(ob)
    assert [entry["armature"] for entry in report["armatures"]] == ["Rig"]
    assert [entry["armature"] for entry in report["left_out"]] == ["Rig [set.blend]"] * chains
    said = capfd.readouterr().err
    assert ("'Rig [set.blend]' was left out. 'Rig' is linked from another file" in said) == chains


def test_linked_and_local_armatures_of_one_name_can_be_told_apart(ik_bake: Command, tmp_path: Path) -> None:
    ob = beside_a_linked_one(tmp_path / "set.blend")
    said = ik_bake.errors(2, "--armature", "Rig [set.blend]")
    assert "'Rig [set.blend]' can't be baked. 'Rig' is linked from another file" in said
    assert not keyed(ob)
    known = ik_bake.errors(2, "--armature", "Nobody")
    assert "'Rig'" in known
    assert "'Rig [set.blend]'" in known
    assert ik_bake("--armature", "Rig") == 0
    assert keyed(ob)


# ---- missing libraries


def shot_without_library(folder: Path, wanted: str) -> None:
    """Open a shot with an arm of its own, and what it needs from a library that is gone by now.

    Args:
        folder: where the files are.
        wanted: an override of an "armature" with its targets; or a target of the own arm, "linked" or an "override".
    """
    moving_arm("Linked")
    collection = bpy.data.collections.new("Set")
    for ob in [*bpy.context.scene.collection.objects] if wanted == "armature" else [bpy.data.objects["lower target"]]:
        collection.objects.link(ob)
    bpy.data.libraries.write(str(folder / "set.blend"), {collection})
    rigs.new_file()
    own = moving_arm("Own")
    (chosen,) = rigs.from_library(folder / "set.blend", "collections", "Set")
    linked: Any = chosen
    scene = bpy.context.scene
    if wanted == "linked":
        scene.collection.children.link(linked)
    else:
        linked = linked.override_hierarchy_create(scene, bpy.context.view_layer, do_fully_editable=True)
    if wanted != "armature":
        own.pose.bones["lower"].ik_addon.target = linked.objects[0]
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "shot.blend"))
    (folder / "set.blend").unlink()
    bpy.ops.wm.open_mainfile(filepath=str(folder / "shot.blend"))


def test_an_armature_of_a_missing_library_is_left_out(ik_bake: Command, capfd: Capture, tmp_path: Path) -> None:
    shot_without_library(tmp_path, "armature")
    (left_out,) = ik_bake.report(3, "--strict")["left_out"]
    assert left_out["armature"] == "Linked"
    assert "could not be read from its library '//set.blend'. Make the library available" in left_out["reason"]
    assert "ik_bake: 'Linked' was left out. 'Linked [set.blend]' could not be read" in capfd.readouterr().err
    assert keyed(bpy.data.objects["Own"])
    said = ik_bake.errors(2, "--armature", "Linked", "--chains", "lower")
    assert "ik_bake: 'Linked' can't be baked. 'Linked [set.blend]' could not be read" in said


@pytest.mark.parametrize("wanted", ["linked", "override"])
def test_a_chain_does_not_follow_the_placeholder_of_a_missing_target(
    ik_bake: Command, tmp_path: Path, wanted: str
) -> None:
    shot_without_library(tmp_path, wanted)
    said = ik_bake.errors(2, "--chains", "lower")
    assert "'Own' can't be baked. 'lower target [set.blend]' could not be read" in said
    assert not keyed(bpy.data.objects["Own"])
    assert ik_bake("--chains", "shin") == 0


# ---- exit codes


def test_smooth_and_reduced_bake(ik_bake: Command) -> None:
    moving_arm()
    bpy.context.scene.frame_end = 40
    bpy.context.scene.unit_settings.scale_length = 0.1
    (found,) = ik_bake.report(0, "--smooth", "--reduce", "1mm")["armatures"]
    assert found["live_turn"] >= found["turn"] > 0.0
    assert 0.0 < found["keys"]["distance"] <= 0.001
    assert found["keys"]["after"] < 0.5 * found["keys"]["before"] == 0.5 * 40 * 16
    assert "keys were kept" in found["message"]


def test_a_distance_needs_a_number_and_a_unit(addon: Addon, ik_bake: Command) -> None:
    wrong = ("", "-1mm", "0", "far", "1e999m", "1", "0.001", "nanm", "nan m", "1 lightyear", "1 1mm", "print(1)m")
    for distance in wrong:
        said = ik_bake.errors(2, f"--reduce={distance}")
        assert f"'{distance}' is not a distance" in said
        assert "Traceback" not in said
    parser = addon.module("cli.command")._parser()
    for distance in ("1mm", " 0.1 cm", "1e-3m", "1000µm", "0.00328084'", "0.0393701 in"):
        assert parser.parse_args(["--reduce", distance]).reduce == pytest.approx(1e-3), distance


def test_a_missed_target_is_an_error_only_when_strict(ik_bake: Command) -> None:
    moving_arm(far=30.0)
    assert ik_bake() == 0
    for bone in ("lower", "shin"):
        bpy.data.objects["Rig"].pose.bones[bone].ik_addon.enabled = True
    assert ik_bake("--strict") == 1


def test_keys_that_play_differently_are_an_error_only_when_strict(ik_bake: Command) -> None:
    ob = moving_arm()
    bones = ob.pose.bones

    def move_once_baked(_scene: bpy.types.Scene) -> None:
        bones["upper"].location.x = 0.0 if bones["lower"].ik_addon.enabled else 0.3

    bpy.app.handlers.frame_change_pre.append(move_once_baked)
    for strict in ([], ["--strict"]):
        bones["lower"].ik_addon.enabled = True
        report = ik_bake.report(len(strict), "--chains", "lower", *strict)
        assert (report["reached"], report["plays_alike"]) == (False, False)


def test_a_bake_below_a_soloed_track_is_refused(ik_bake: Command) -> None:
    ob = moving_arm()
    data = ob.animation_data_create()
    data.nla_tracks.new().is_solo = True
    assert "ik_bake: The NLA track 'NlaTrack' of 'Rig' is soloed" in ik_bake.errors(2)
    assert not keyed(ob)
    data.use_nla = False
    assert ik_bake("--strict") == 0


WRONG = (
    ("--range 1", "expected 2 arguments"),
    ("--range one 2", "invalid int value: 'one'"),
    ("--scene --preview", "not allowed with argument"),
    ("--nonsense", "unrecognized arguments: --nonsense"),
    ("--range 5 1", "The frame range is empty: it starts at 5 and ends at 1"),
    ("--range 1 99999999999999999999", "There is no frame 99999999999999999999. Choose frames from"),
    ("--range 1048570 1048590", "There is no frame 1048590. Choose frames from -1048574 to 1048574"),
    ("--range -1048575 1", "There is no frame -1048575"),
    ("--step 0", "The step is 0, but must be 1 frame or more"),
    ("--preview", "The scene has no preview range"),
    ("--action", "'Rig' has no keys in an action"),
    ("--armature Nobody", "The scene 'Scene' has no armature 'Nobody'. It has 'Rig'"),
    ("--chains upper", "There is no chain on bone 'upper'. The chains are on 'lower', 'shin'"),
    ("--overwrite", "--overwrite needs a file"),
    ("--output baked.txt", "--output must end in '.blend'"),
    ("--output nowhere/baked.blend", "Can't write 'baked.blend': the folder 'nowhere' does not exist"),
    ("--report nowhere/report.json", "Can't write 'report.json': the folder 'nowhere' does not exist"),
    ("--on Lift", "--on needs --plant"),
    ("--plant --on Lift", "There is no object 'Lift' in the view layer for the feet to stand on"),
    ("--plant --ground Flor", "There is no object 'Flor' in the view layer for the ground"),
    ("--root root", "--root needs --skeleton"),
    ("--skeleton --root-turn", "--root-turn needs --root"),
    ("--export glb --output walk.blend", "--export needs --skeleton"),
    ("--skeleton --export glb", "so it needs --output or --overwrite"),
    ("--skeleton --export obj --output walk.blend", "invalid choice: 'obj'"),
)
"""Arguments, and what is said about them."""


def test_wrong_arguments_give_a_message_and_change_nothing(ik_bake: Command) -> None:
    moving_arm()
    bpy.context.view_layer.update()
    before = snapshot()
    for arguments, sentence in WRONG:
        said = ik_bake.errors(2, *arguments.split())
        assert sentence in said, arguments
        assert "Traceback" not in said
    assert snapshot() == before
