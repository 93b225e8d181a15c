"""Set Up Character and Snap Range on figures of others, whose bones and rest poses are as importers make them."""

import importlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest

from tests import imports, rigs
from tests.chains.test_character import chains, places
from tests.chains.test_profile import file_of
from tests.conftest import Addon
from tests.recorded import WALK, walk
from tests.reliability.states import activate, said

FRAMES = 24
KINDS = ("Mixamo", "Biped", "VRM", "BVH")
FIGURES = [
    (KINDS[(a + r) % 4], aim, rest, ("run", "walk")[(a + r) % 2])
    for a, aim in enumerate(imports.AIMS)
    for r, rest in enumerate(("T", "A", "STAR", "LINE", "BENT"))
] + [("Biped", "CHILD", "BENT", "run")]


def figure(kind: str, aim: str, rest: str, motion: str, folder: Path) -> bpy.types.Object:
    """Build an animated figure, on its first frame."""
    source = imports.moving(motion, folder)
    last = source.animation_data.action.frame_range[1]
    frames = np.linspace(1, last if motion == "walk" else FRAMES, FRAMES).round().astype(int).tolist()
    return imports.recast(source, kind, aim, rest, frames, seed=len(kind + aim + rest))


def set_up(ob: bpy.types.Object, size: float, **options: Any) -> None:
    """Set up a character; assert that no joint moved by more than 1e-6 of the figure."""
    before = places(ob)
    assert bpy.ops.ik_addon.character_setup(**{"controls": "EMPTIES", **options}) == {"FINISHED"}
    after = places(ob)
    moved = {name: float(np.abs(after[name] - place)[0].max()) / size for name, place in before.items()}
    assert max(moved.values()) < 1e-6, max(moved, key=lambda name: moved[name])


def follow_its_record(ob: bpy.types.Object, rows: Sequence[Sequence[str]]) -> None:
    """Set up a figure and snap it; assert that limbs follow the record, and keep their side when goals move."""
    record = imports.record(ob, rows)
    size = float(np.ptp(record[0].reshape(-1, 3), axis=0).max())
    bpy.context.scene.frame_set(1)
    set_up(ob, size)
    scene = bpy.context.scene
    span = {"frame_range": "CUSTOM", "frame_start": scene.frame_start, "frame_end": scene.frame_end}
    assert bpy.ops.ik_addon.snap_target(chains="ALL", **span) == {"FINISHED"}
    off = np.linalg.norm(imports.record(ob, rows) - record, axis=-1) / size
    assert off[:, :, 1].max() < 1e-2, "knees and elbows"
    assert off[:, :, 2].max() < 1e-6, "feet and hands"
    bends = imports.bends(record)
    clear = np.linalg.norm(bends, axis=-1) > 0.02 * size
    assert clear.any(axis=0).sum() >= 3, "most limbs bend"
    every = 3 + len(record) // 100
    for lift, lower in ((0.02, 0.0), (0.1, 0.0), (0.0, 0.05)):
        for tip in map(ob.pose.bones.get, chains(ob)):
            if tip.ik_addon.end_bone:
                tip.ik_addon.target.delta_location.z = lift * size
        ob.delta_location.z = -lower * size
        now = imports.bends(imports.record(ob, rows, every))
        assert not ((bends[::every] * now).sum(axis=-1) < 0.0)[clear[::every]].any(), "wrong side"


@pytest.mark.parametrize(("kind", "aim", "rest", "motion"), FIGURES)
def test_knees_and_elbows_follow_the_record(kind: str, aim: str, rest: str, motion: str, tmp_path: Path) -> None:
    follow_its_record(figure(kind, aim, rest, motion, tmp_path), imports.limbs(kind))


def test_the_whole_recorded_walk_is_followed(capfd: pytest.CaptureFixture[str]) -> None:
    """Its thighs go a little beyond human limits here and there, and one of them far beyond."""
    ob = walk()
    follow_its_record(ob, imports.limbs("BVH"))
    assert "widened the human limits of these joints: 'RightUpLeg'" in capfd.readouterr().out
    thigh = ob.pose.bones["RightUpLeg"]
    assert -35.0 < math.degrees(thigh.ik_min_x) < -30.1, "by no more than needed"
    assert math.degrees(thigh.ik_max_x) == pytest.approx(120.0)


@pytest.mark.parametrize("aim", imports.AIMS)
@pytest.mark.parametrize("rest", ["T", "A", "LINE"])
def test_straight_legs_bend_forward_without_animation(aim: str, rest: str, tmp_path: Path) -> None:
    """Where the rest pose shows nothing, with limbs and feet in one line, the current pose does."""
    source = imports.moving("run", tmp_path)
    source.animation_data_clear()
    for bone in source.pose.bones:
        bone.matrix_basis.identity()
    bpy.context.view_layer.update()
    ob = imports.recast(source, "Biped", aim, rest, [1])
    ob.animation_data_clear()
    rows = imports.limbs("Biped")[:2]
    set_up(ob, 1.4, regions={"LEG"}, with_presets=False)
    for row in rows:
        ob.pose.bones[row[1]].ik_addon.target.location.z += 0.2
    bpy.context.view_layer.update()
    for row in rows:
        hip, knee, ankle = (rigs.head(ob, name) for name in row)
        bend = imports.bends(np.array([hip, knee, ankle]))
        assert bend[1] < -0.9 * np.linalg.norm(bend), "forward"
        assert np.linalg.norm(bend) > 0.1


def test_limits_stay_off_bones_whose_axes_do_not_fit_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ob = figure("Biped", "CROSS", "T", "run", tmp_path)
    message = said(capfd, bpy.ops.ik_addon.character_setup)
    assert "The bone axes of these parts don't match how they bend, so no limits were added" in message
    assert not any(getattr(bone, f"use_ik_limit_{axis}") for bone in ob.pose.bones for axis in "xyz")
    activate(ob, "Bip01 L Calf")
    message = said(capfd, bpy.ops.ik_addon.preset_apply, filepath=str(file_of("Human_Knee")))
    assert "'Bip01 L Thigh', 'Bip01 L Calf' don't point at the next joint" in message


def test_limits_stay_off_joints_that_go_beyond_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Snap Range says so where limits keep a chain from its record."""
    ob = figure("Biped", "CHILD", "BENT", "run", tmp_path)
    message = said(capfd, bpy.ops.ik_addon.character_setup)
    assert "far beyond human limits, so these joints got none" in message
    span = {"frame_range": "CUSTOM", "frame_start": 1, "frame_end": FRAMES}
    assert "from the record" not in said(capfd, lambda: bpy.ops.ik_addon.snap_target(chains="ALL", **span))
    calf = ob.pose.bones["Bip01 L Calf"]
    rigs.limit(calf, x=(-6, 6), z=(-6, 6))
    message = said(capfd, lambda: bpy.ops.ik_addon.snap_target(chains="ALL", **span))
    assert "the chain on 'Left Leg' is" in message
    assert "of its length away from the record" in message
    assert bpy.ops.ik_addon.fix(tip=calf.name) == {"FINISHED"}
    assert not calf.use_ik_limit_x
    assert "from the record" not in said(capfd, lambda: bpy.ops.ik_addon.snap_target(chains="ALL", **span))
    with pytest.raises(RuntimeError, match="Nothing to fix"):
        bpy.ops.ik_addon.fix(tip=calf.name)


def test_limits_are_widened_on_the_side_that_the_animation_leaves(addon: Addon) -> None:
    """A knee that locks stays a hinge; one that bends to the side by more has no limits that fit it."""
    ob = rigs.limb(rigs.straight(2), ["thigh", "shin"])
    tip, fitting = rigs.chain(ob, "shin", None, 2), addon.module("chains.profile")
    tip.rotation_mode, tip.use_ik_limit_x, tip.lock_ik_y, tip.lock_ik_z = "XYZ", True, True, True
    tip.ik_min_x, tip.ik_max_x = -2.0, 0.0
    rigs.key(tip, "rotation_euler", {1: (-1.0, 0.0, 0.0), 9: (0.03, 0.0, 1e-6), 99: (-2.0, 0.0, 0.0)})
    fitting.fit(fitting.exceeded(tip))
    assert (tip.ik_min_x, tip.ik_max_x) == pytest.approx((-2.0, 0.03), abs=1e-4)
    assert tip.lock_ik_y
    assert tip.lock_ik_z
    assert not fitting.exceeded(tip)
    tip.rotation_euler.z = 0.1
    tip.keyframe_insert("rotation_euler", frame=50)
    fitting.fit(fitting.exceeded(tip))
    assert not any(getattr(tip, f"{kind}_{axis}") for kind in ("use_ik_limit", "lock_ik") for axis in "xyz")
    assert not fitting.exceeded(tip)


# ---- what importers make of files with other axes


def exported(ob: bpy.types.Object, path: Path) -> bpy.types.Object:
    """Export an armature with its animation, remove it, and import it again as Blender's importers do by default."""
    rigs.select(ob)
    if path.suffix == ".fbx":
        importlib.import_module("addon_utils").enable("io_scene_fbx")
        options = {"primary_bone_axis": "X", "secondary_bone_axis": "-Y", "add_leaf_bones": False}
        bpy.ops.export_scene.fbx(filepath=str(path), use_selection=True, bake_anim_simplify_factor=0.0, **options)
    elif path.suffix == ".glb":
        importlib.import_module("addon_utils").enable("io_scene_gltf2")
        bpy.ops.export_scene.gltf(filepath=str(path), use_selection=True)
    else:
        scene = bpy.context.scene
        bpy.ops.export_anim.bvh(filepath=str(path), frame_start=scene.frame_start, frame_end=scene.frame_end)
    bpy.data.objects.remove(ob)
    if path.suffix == ".fbx":
        bpy.ops.import_scene.fbx(filepath=str(path))
    elif path.suffix == ".glb":
        bpy.ops.import_scene.gltf(filepath=str(path), bone_heuristic="BLENDER")
    else:
        bpy.ops.import_anim.bvh(filepath=str(path), axis_forward="Y", axis_up="Z")
    found: Any = next(ob for ob in bpy.data.objects if ob.type == "ARMATURE")
    bpy.context.view_layer.objects.active = found
    return found


@pytest.mark.parametrize(
    ("suffix", "aim", "rest"), [("fbx", "CHILD", "T"), ("glb", "UP", "A"), ("bvh", "CHILD", "STAR")]
)
def test_imported_files_keep_their_motion(suffix: str, aim: str, rest: str, tmp_path: Path) -> None:
    ob = exported(figure("Mixamo", aim, rest, "run", tmp_path), tmp_path / f"figure.{suffix}")
    follow_its_record(ob, imports.limbs("Mixamo"))


def test_leaf_bones_as_long_as_a_shin_are_no_feet(addon: Addon, tmp_path: Path) -> None:
    """Heel and toe stay within a foot's length of the ankle, wherever an importer put the tails of bones."""
    for aim in imports.AIMS:
        ob = figure("Biped", aim, "T", "run", tmp_path)
        with rigs.edit_mode(ob) as bones:
            for side in "LR":
                bones.remove(bones[f"Bip01 {side} Toe0"])
                bone = bones[f"Bip01 {side} Foot"]
                bone.tail = bone.head + 0.6 * (bone.tail - bone.head).normalized()
        soles, ends = addon.module("anatomy.body"), addon.module("anatomy.figure").Figure.of(ob)
        row = [ends.names.index(f"Bip01 L {part}") for part in ("Thigh", "Calf", "Foot")]
        ankle = ends.heads[row[2]]
        for point in soles.pivots_of(ends, row[:2], row[2]):
            assert np.linalg.norm(point - ankle) < 0.4 * 0.83, aim
        bpy.data.objects.remove(ob)


# ---- files that nobody here made


def knight(clip: str) -> bpy.types.Object:
    """Import the knight with one of its clips; skip the test if the file is missing."""
    file = WALK.with_name("kaykit_knight.glb")
    if not file.is_file():
        pytest.skip(f"needs {file.name} in ../shared/data, which is not part of the project")
    importlib.import_module("addon_utils").enable("io_scene_gltf2")
    bpy.ops.import_scene.gltf(filepath=str(file))
    ob: Any = next(ob for ob in bpy.data.objects if ob.type == "ARMATURE")
    (strip,) = next(track.strips for track in ob.animation_data.nla_tracks if track.name == clip)
    action, slot = strip.action, getattr(strip, "action_slot", None)
    for track in list(ob.animation_data.nla_tracks):
        ob.animation_data.nla_tracks.remove(track)
    ob.animation_data.action = action
    if slot is not None:
        ob.animation_data.action_slot = slot
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = (round(frame) for frame in action.frame_range)
    bpy.context.view_layer.objects.active = ob
    return ob


@pytest.mark.parametrize("clip", ["Running_A", "Unarmed_Melee_Attack_Kick", "Sit_Floor_Down"])
def test_the_knight_keeps_its_clips(clip: str) -> None:
    rows = [
        [f"{part}.{side}" for part in parts]
        for parts in (("upperleg", "lowerleg", "foot"), ("upperarm", "lowerarm", "wrist"))
        for side in "lr"
    ]
    follow_its_record(knight(clip), rows)


def test_straight_legs_of_a_vrm_file_bend_forward() -> None:
    file = WALK.with_name("vrm_basic_armature.blend")
    if not file.is_file():
        pytest.skip(f"needs {file.name} in ../shared/data, which is not part of the project")
    bpy.ops.wm.open_mainfile(filepath=str(file))
    ob: Any = next(ob for ob in bpy.data.objects if ob.type == "ARMATURE")
    bpy.context.view_layer.objects.active = ob
    bpy.context.view_layer.update()
    set_up(ob, float(np.ptp(np.array(list(places(ob).values())).reshape(-1, 3), axis=0).max()))
    for side in "LR":
        row = [f"{part}.{side}" for part in ("upper_leg", "lower_leg", "foot")]
        rigs.shift(ob.pose.bones[row[1]].ik_addon.target, z=0.2)
        bend = imports.bends(np.array([rigs.head(ob, name) for name in row]))
        assert bend[1] < -0.05, "forward"
