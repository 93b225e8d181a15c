"""Runs, crawls, sitting down and cartwheels from motion capture: what holds for a walk holds for these.

They are imported with different up axes and units, and mirrored.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from tests import motions, rigs
from tests.conftest import Addon
from tests.reliability.test_walks import PARTS, check, degrees, limbs_of
from tests.targets.walking import played

FRAMES = range(1, motions.FRAMES + 1)
VARIANTS = {
    "run": (0.01, "Z", "Y", -1.0),
    "crawl": (1.0, "Y", "-Z", -1.0),
    "sit": (0.01, "X", "Y", 1.0),
    "cartwheel": (1.0, "Z", "Y", 1.0),
}
"""For each motion: scale, up axis, forward axis, and the X scale, -1 where mirrored."""


def mover(motion: str, folder: Path) -> bpy.types.Object:
    """Import a skeleton with a motion, on its first frame."""
    importlib.import_module("addon_utils").enable("io_anim_bvh")
    size, up, forward, mirrored = VARIANTS[motion]
    path = motions.write(motion, folder / "motion.bvh")
    bpy.ops.import_anim.bvh(filepath=str(path), global_scale=size, axis_up=up, axis_forward=forward)
    ob: Any = bpy.context.object
    ob.matrix_world = Matrix.Diagonal((mirrored, 1.0, 1.0, 1.0))
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = FRAMES[0], FRAMES[-1]
    scene.frame_set(FRAMES[0])
    return ob


@pytest.mark.parametrize("motion", motions.MOTIONS)
def test_knees_and_elbows_never_flip(motion: str, tmp_path: Path) -> None:
    ob = mover(motion, tmp_path)
    chains = [[f"{side}{upper}", f"{side}{lower}"] for side in ("Left", "Right") for upper, lower in PARTS]
    check(ob, limbs_of(ob, chains), FRAMES)


@pytest.mark.parametrize(
    ("motion", "poles", "beneath"),
    [("run", "TWIST", "rest"), ("crawl", "FOOT", "rest"), ("sit", "MATCH", "FK"), ("cartwheel", "FOOT", "rest")],
)
def test_a_snapped_character_keeps_its_hands_and_feet_and_no_limb_turns_too_fast(
    addon: Addon, motion: str, poles: str, beneath: str, tmp_path: Path
) -> None:
    ob = mover(motion, tmp_path)
    before = played(ob, FRAMES)
    assert bpy.ops.ik_addon.character_setup(live=False) == {"FINISHED"}
    remarks = " ".join(addon.module("chains.character").last(ob).remarks)
    assert "Press Targets to Pose (Range) to transfer their animation to the targets" in remarks
    assert bpy.ops.ik_addon.snap_target(chains="ALL", frame_range="SCENE", poles=poles) == {"FINISHED"}
    bones = ob.data.bones
    tips = [bone for bone in ob.pose.bones if bone.ik_addon.end_bone]
    limbs = [name for tip in tips for name in (bones[tip.name].parent.name, tip.name)]
    assert len(limbs) == 8
    if beneath == "rest":
        delete_keys(addon, ob, limbs)
    ob.ik_addon.live = True
    after = played(ob, FRAMES)
    for tip in tips:
        end = int(bones.find(tip.ik_addon.end_bone))
        own, was = after[:, end], before[:, end]
        assert np.abs(own[:, 3, :3] - was[:, 3, :3]).max() < 1e-5 * rigs.length(ob, tip.name, 2)
        assert degrees(own[:, :3, :3], was[:, :3, :3]).max() < 0.05
    for name in limbs:
        bone = int(bones.find(name))
        own, was = (degrees(found[1:, bone, :3, :3], found[:-1, bone, :3, :3]) for found in (after, before))
        assert (own < 1.5 * was + 5.0).all(), name


def delete_keys(addon: Addon, ob: bpy.types.Object, bones: list[str]) -> None:
    """Delete all keys of these bones and reset them to rest."""
    curves = addon.module("core.compat").curve_owner(ob).fcurves
    for name in bones:
        bone = ob.pose.bones[name]
        for curve in [curve for curve in curves if curve.data_path.startswith(bone.path_from_id() + ".")]:
            curves.remove(curve)
        bone.rotation_euler = (0.0, 0.0, 0.0)
        bone.location = (0.0, 0.0, 0.0)
