"""The scene of `make demo`, without its pictures: Blender's human metarig, with four chains attached to a fifth."""

from __future__ import annotations

import bpy
import pytest

from tests import rigs
from tools import blender, demo


def test_demo_bake_matches_its_live_solution_without_the_addon() -> None:
    """All five chains reach their targets on every frame, no bone is stretched, and the bake moves no joint."""
    rig = demo.new_scene()
    demo.set_live(rig, True)
    live = demo.play(rig)
    for frame in (1, 25, 48, 74, 110):
        bpy.context.scene.frame_set(frame)
        for bone in rigs.evaluated(rig).pose.bones:
            assert (bone.tail - bone.head).length == pytest.approx(bone.bone.length, rel=1e-4, abs=1e-6)
            assert not bone.bone.use_connect or (bone.head - bone.parent.tail).length < 1e-6
    demo.OPERATORS.ik_addon.bake()
    blender.disable()
    assert list(demo.complaints(live, demo.play(rig))) == []
    assert all(error > 0.0 for error in live.errors.values())
