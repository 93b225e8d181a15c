"""The progress of long work and the time left; its display and Esc are tested in a window."""

from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon


def test_the_time_left_is_estimated_from_the_progress(addon: Addon) -> None:
    progress = addon.module("ui.operators.progress").Progress("Baking IK", 100.0)
    assert progress.text == "Baking IK: 0%"
    for share, time, text in (
        (0.1, 100.5, "10%"),  # half a second is too short to tell
        (0.25, 110.0, "25%, 30 s left"),
        (0.5, 300.0, "50%, 3 min 20 s left"),
        (1.0, 400.0, "100%, 0 s left"),
    ):
        progress.reach(share, time)
        assert progress.text == f"Baking IK: {text}"


def test_work_that_restarts_is_measured_again(addon: Addon) -> None:
    """A bake falls back to a slower way if a faster one turns out not to be possible."""
    progress = addon.module("ui.operators.progress").Progress("Baking IK", 0.0)
    progress.reach(0.8, 2.0)
    progress.reach(0.0, 10.0)
    assert progress.left is None
    progress.reach(0.1, 20.0)
    assert progress.left is not None
    assert abs(progress.left - 90.0) < 1e-9


# ---- somebody saves, opens a file, disables the extension or deletes the armature while a bake runs


@pytest.fixture
def half_baked(addon: Addon) -> Any:
    """A bake that has begun, of an arm that is solved live on frame 7."""
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 400: (-0.4, 0.7, 1.2)})
    target.constraints.new("COPY_LOCATION")  # so that Blender evaluates each frame
    ob.ik_addon.live = True
    bpy.context.scene.frame_set(7)
    steps = addon.module("bake").bake_stepwise(bpy.context, ob, ["lower"], list(range(1, 401)))
    run = addon.module("ui.operators.progress").Run(bpy.context, steps, "Baking IK")
    for _ in range(30):
        next(steps)
    assert bpy.context.scene.frame_current != 7
    yield run
    run.stop()


def state() -> Any:
    (ob,) = (ob for ob in bpy.data.objects if ob.type == "ARMATURE")
    scene = bpy.context.scene
    return scene.frame_current, rigs.channels(ob), ob.animation_data is None, ob.pose.bones["lower"].ik_addon.enabled


def assert_untouched(before: Any) -> None:
    now = state()
    assert now[0] == before[0] == 7
    assert np.allclose(now[1], before[1], atol=1e-6)
    assert now[2:] == (True, True)


def test_a_file_saved_meanwhile_holds_what_was_there_before(addon: Addon, half_baked: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "meanwhile.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path, copy=True)
    assert half_baked.is_interrupted
    assert addon.module("ui.operators.progress").running() is None
    before = state()
    assert_untouched(before)
    bpy.ops.wm.open_mainfile(filepath=path)
    assert_untouched(before)


def test_disabling_the_extension_ends_a_bake(addon: Addon, half_baked: Any) -> None:
    registration = addon.module("registration")
    registration.unregister()
    try:
        assert half_baked.is_interrupted
        assert bpy.context.scene.frame_current == 7
        assert len(bpy.data.scenes) == 1
    finally:
        registration.register()
    assert_untouched(state())


def test_opening_a_file_ends_a_bake(addon: Addon, half_baked: Any) -> None:
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    assert half_baked.is_interrupted
    assert addon.module("ui.operators.progress").running() is None


def test_deleting_the_armature_ends_the_bake(addon: Addon, half_baked: Any) -> None:
    error = addon.module("core.translation.sentences").UserError
    bpy.data.objects.remove(next(ob for ob in bpy.data.objects if ob.type == "ARMATURE"))
    with pytest.raises(error, match="was deleted, so the work was cancelled"):
        half_baked.go_on(bpy.context)
    half_baked.stop()
    assert addon.module("ui.operators.progress").running() is None
    assert bpy.context.scene.frame_current == 7
