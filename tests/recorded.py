"""A recorded walk, which is not part of the project."""

import importlib
from pathlib import Path
from typing import Any

import bpy
import pytest

WALK = Path(__file__).resolve().parents[2] / "shared" / "data" / "cmu_12_01_walk.bvh"


def walk() -> bpy.types.Object:
    """Import the walk and set the scene's frame range to it; skip the test if the file is missing."""
    if not WALK.is_file():
        pytest.skip(f"needs the recorded walk, which is not part of the project, as {WALK.name} in ../shared/data")
    importlib.import_module("addon_utils").enable("io_anim_bvh")
    bpy.ops.import_anim.bvh(filepath=str(WALK))
    ob: Any = bpy.context.object
    first, last = (round(frame) for frame in ob.animation_data.action.frame_range)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = first, last
    return ob
