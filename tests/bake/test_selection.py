from __future__ import annotations

from typing import Any

import bpy
import pytest

from tests import rigs
from tests.bake.test_bake import animated_arm, spine_and_arm


def test_chain_selections(bake: Any) -> None:
    ob = spine_and_arm()
    assert set(bake.chosen_tips(ob, "ALL")) == {"spine4", "arm2"}
    assert bake.chosen_tips(ob, "ACTIVE", ob.pose.bones["spine4"]) == ["spine4"]
    with pytest.raises(bake.UserError, match="not part of an IK chain"):
        bake.chosen_tips(ob, "ACTIVE")
    rigs.select_bones(ob, "arm1")
    assert bake.chosen_tips(ob, "SELECTED") == ["arm2"]
    ob.pose.bones["spine4"].ik_addon.enabled = False
    assert bake.chosen_tips(ob, "ALL") == ["arm2"]
    with pytest.raises(bake.UserError, match="disabled"):
        bake.chosen_tips(ob, "ACTIVE", ob.pose.bones["spine4"])


def test_frame_ranges(bake: Any) -> None:
    ob, scene = animated_arm(), bpy.context.scene
    scene.frame_start, scene.frame_end = 3, 8
    assert bake.frame_range(scene, ob, "SCENE") == (3, 8)
    assert bake.frame_range(scene, ob, "ACTION") == (1, 50)
    with pytest.raises(bake.UserError, match="no preview range"):
        bake.frame_range(scene, ob, "PREVIEW")
    scene.use_preview_range = True
    scene.frame_preview_start, scene.frame_preview_end = 4, 5
    assert bake.frame_range(scene, ob, "PREVIEW") == (4, 5)
    ob.animation_data_clear()
    with pytest.raises(bake.UserError, match="no keys in an action"):
        bake.frame_range(scene, ob, "ACTION")


def test_frames_between(bake: Any) -> None:
    assert bake.frames_between(1, 10, 3) == [1, 4, 7, 10]
    assert bake.frames_between(1, 9, 3) == [1, 4, 7, 9]  # the end of the range is always keyed
    assert bake.frames_between(-3, -3) == [-3]
    with pytest.raises(bake.UserError, match="starts at 9 and ends at 3"):
        bake.frames_between(9, 3)
    with pytest.raises(bake.UserError, match="must be 1 frame or more"):
        bake.frames_between(1, 9, 0)
