"""Works beside other add-ons, which may move things, and while the extension is disabled, enabled and reloaded."""

import importlib
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Quaternion

from tests import rigs
from tests.conftest import Addon
from tests.panels import drawn, sidebar
from tests.reliability.states import activate, disabled
from tests.renders import Recorder, recorder, render, set_up
from tests.rigs import animated_arm, apart, miss, poses_at
from tools import blender

__all__ = ["recorder", "sidebar"]
SOLVED = 1e-5
FRAMES = (1, 9, 20, 35)
LISTS = ("frame_change_pre", "frame_change_post", "depsgraph_update_post")


Add = Callable[[str, Callable[..., None], bool], None]
"""Adds a handler to a list, before all others or after them."""


@pytest.fixture
def handlers() -> Iterator[Add]:
    """Return a function that adds a handler before or after all others; they are removed at the end."""
    added: list[tuple[list[Any], Callable[..., None]]] = []

    def add(name: str, function: Callable[..., None], first: bool) -> None:
        handlers: list[Any] = getattr(bpy.app.handlers, name)
        handlers.insert(0 if first else len(handlers), function)
        added.append((handlers, function))

    yield add
    for handlers, function in added:
        handlers.remove(function)


# ---- other add-ons


def clear(names: Sequence[str]) -> None:
    """Remove all handlers from lists."""
    for name in names:
        getattr(bpy.app.handlers, name).clear()


CLEARED = (
    *((name, "frame") for name in LISTS),
    *((name, "update") for name in LISTS[:2]),
    *((name, "undo") for name in (*LISTS, "all")),
    *(("all", way) for way in ("render", "overlay", "panel", "Solve IK")),
)
"""Lists that another add-on clears, and what happens next by which the extension may notice."""


@pytest.mark.usefixtures("sidebar")
@pytest.mark.parametrize(("cleared", "way"), CLEARED)
def test_chains_are_solved_after_another_add_on_cleared_the_handlers(
    addon: Addon, recorder: type[Recorder], cleared: str, way: str, tmp_path: Path
) -> None:
    ob, target = animated_arm()
    scene = bpy.context.scene
    activate(ob, "lower")
    scene.frame_set(9)
    assert "Reached" in drawn()
    for message in ("begin", "again"):
        bpy.ops.ed.undo_push(message=message)
    clear(LISTS if cleared == "all" else [cleared])
    if way == "undo":
        bpy.ops.ed.undo()
        ob, scene = bpy.data.objects["Rig"], bpy.context.scene
    elif way == "update":
        target.animation_data_clear()
        rigs.change(target, location=(0.3, 0.6, 1.1))
        assert miss(ob) < SOLVED
    elif way == "overlay":
        addon.module("ui.overlay.draw").draw_viewport()
    elif way == "panel":
        scene.frame_set(20)
        assert miss(ob) > SOLVED
        assert "Reached" not in drawn()
    elif way == "Solve IK":
        scene.frame_set(20)
        assert bpy.ops.ik_addon.solve() == {"FINISHED"}
        assert miss(ob) < SOLVED
        assert "Reached" in drawn()
    elif way == "render":
        set_up(scene, tmp_path)
        render(20, 20)
        rendered = next(pose for _scene, _layer, frame, pose in recorder.seen if frame == 20)
        scene.frame_set(20)
        assert np.allclose(rendered, rigs.pose(ob), atol=1e-6)
    for frame in FRAMES:
        scene.frame_set(frame)
        assert miss(ob) < SOLVED, frame
    assert "Reached" in drawn()


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """Return the timers that were registered: without a window, Blender runs none."""
    registered: list[Callable[[], object]] = []
    register: Any = bpy.app.timers.register

    def remember(function: Callable[[], object], **options: Any) -> None:
        registered.append(function)
        register(function, **options)

    monkeypatch.setattr(bpy.app.timers, "register", remember)
    return registered


def test_a_pose_pasted_while_the_handlers_were_cleared_takes_no_target(
    addon: Addon, timers: list[Callable[[], object]]
) -> None:
    ob, target = rigs.arm()
    ob.select_set(True)
    bpy.context.view_layer.update()
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="SELECT")
    bpy.ops.pose.copy()
    clear(LISTS)
    bpy.ops.pose.paste()
    addon.module("ui.overlay.draw").draw_viewport()
    for timer in timers:
        timer()
    assert ob.pose.bones["lower"].ik_addon.target == target


def test_nothing_is_left_to_do_where_the_extension_is_disabled_after_handlers_were_cleared(
    timers: list[Callable[[], object]],
) -> None:
    ob, _target = rigs.arm()
    ob.ik_addon.live = True
    bpy.app.handlers.frame_change_post.clear()
    bpy.context.scene.frame_set(3)
    assert any(map(bpy.app.timers.is_registered, timers))
    with disabled():
        assert not any(map(bpy.app.timers.is_registered, timers))


def test_a_handler_that_writes_chain_bones_before_the_frame_sets_their_fk_pose(handlers: Add) -> None:
    ob, _target = rigs.arm()

    def pose(scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph | None) -> None:
        ob.pose.bones["lower"].rotation_quaternion = (1.0, 0.0, 0.001 * scene.frame_current, 0.2)

    handlers("frame_change_pre", pose, True)
    ob.ik_addon.live = True
    expected = poses_at(ob, FRAMES)
    assert apart({0: expected[1]}, {0: expected[35]})
    assert not apart(poses_at(ob, FRAMES[::-1]), expected)
    bpy.context.scene.frame_set(30)
    assert miss(ob) < SOLVED
    ob.ik_addon.live = False
    assert ob.pose.bones["lower"].rotation_quaternion[:] == pytest.approx((1.0, 0.0, 0.03, 0.2))


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("first", [True, False])
def test_handlers_that_change_chain_bones_after_the_frame_do_not_accumulate(
    handlers: Add, first: bool, keyed: bool
) -> None:
    """Wiggle add-ons do this. Where their handlers run last, their pose is shown, but nothing accumulates."""
    ob, _target = animated_arm() if keyed else rigs.arm()
    ob.ik_addon.live = False
    bpy.context.scene.frame_set(9)
    fk = rigs.channels(ob).tobytes()
    ob.ik_addon.live = True
    handlers("frame_change_post", lambda *_: None, False)
    solved = poses_at(ob, FRAMES)

    def wiggle(name: str) -> Callable[[bpy.types.Scene, bpy.types.Depsgraph], None]:
        def handler(scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph) -> None:
            bone = ob.pose.bones[name]
            bone.rotation_quaternion @= Quaternion((0.0, 1.0, 0.0), 0.001 * scene.frame_current)
            bone.location.x += 0.01

        return handler

    for name in ("upper", "lower"):
        handlers("frame_change_post", wiggle(name), first)
    expected = poses_at(ob, FRAMES)
    if first:
        assert not apart(expected, solved)
    for frame in (2, 3, 4, 30, 9):
        bpy.context.scene.frame_set(frame)
    assert not apart(poses_at(ob, FRAMES[::-1]), expected)
    bpy.context.scene.frame_set(9)
    ob.ik_addon.live = False
    assert rigs.channels(ob).tobytes() == fk


@pytest.mark.expects_traceback
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("name", LISTS)
def test_an_error_in_another_add_on_changes_nothing(handlers: Add, name: str, first: bool) -> None:
    ob, target = animated_arm()
    expected = poses_at(ob, FRAMES)

    def broken(*_arguments: object) -> None:
        raise ZeroDivisionError("of another add-on")

    handlers(name, broken, first)
    assert not apart(poses_at(ob, FRAMES), expected)
    target.animation_data_clear()
    rigs.change(target, location=(0.1, 0.8, 1.1))
    assert miss(ob) < SOLVED


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("gone", ["Rig", "Target"])
def test_another_add_on_may_delete_the_rig_or_its_target(handlers: Add, gone: str, first: bool) -> None:
    animated_arm()

    def delete(_scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph | None) -> None:
        if gone in bpy.data.objects:
            bpy.data.objects.remove(bpy.data.objects[gone])

    handlers("frame_change_pre", delete, first)
    for frame in (2, 3):
        bpy.context.scene.frame_set(frame)
    bpy.context.view_layer.update()
    assert gone not in bpy.data.objects


# ---- disabling, enabling and reloading


@pytest.mark.parametrize(
    ("frames", "anew"),
    [((), False), ((3, 17, 9), False), ((), True)],
    ids=["at rest", "while frames change", "modules are imported anew"],
)
def test_disabling_and_enabling_while_live_keeps_the_poses(addon: Addon, frames: tuple[int, ...], anew: bool) -> None:
    """Developers import modules anew, and so does installing a newer version over a running one."""
    ob, _target = animated_arm()
    ob.ik_addon.live = False
    bpy.context.scene.frame_set(9)
    fk = rigs.channels(ob)
    ob.ik_addon.live = True
    expected = poses_at(ob, FRAMES)
    for _ in range(2):
        bpy.context.scene.frame_set(9)
        blender.disable()
        bpy.context.view_layer.update()
        assert frames or not apart({9: rigs.pose(ob)}, {9: expected[9]})
        assert not hasattr(ob, "ik_addon")
        for frame in frames:
            bpy.context.scene.frame_set(frame)
        for name in [name for name in sys.modules if anew and name.startswith(addon.package)]:
            del sys.modules[name]
        blender.enable()
        bpy.context.view_layer.update()
        assert frames or not apart({9: rigs.pose(ob)}, {9: expected[9]})
        assert ob.ik_addon.live
        assert not apart(poses_at(ob, FRAMES), expected)
    bpy.context.scene.frame_set(9)
    ob.ik_addon.live = False
    assert np.array_equal(rigs.channels(ob), fk)


def test_works_after_new_files_and_factory_settings(tmp_path: Path) -> None:
    renewals: tuple[Callable[[], object], ...] = (
        lambda: bpy.ops.wm.read_homefile(use_empty=True),
        lambda: bpy.ops.wm.read_homefile(use_factory_startup=True),
        lambda: bpy.ops.wm.read_factory_settings(use_empty=True),
    )
    for renew in renewals:
        ob, _target = animated_arm()
        assert miss(ob) < SOLVED
        path = tmp_path / "file.blend"
        bpy.ops.wm.save_as_mainfile(filepath=str(path))
        renew()
        if not blender.is_enabled():
            addon_utils: Any = importlib.import_module("addon_utils")
            addon_utils.enable("bl_pkg")
            blender.enable()
        bpy.ops.wm.open_mainfile(filepath=str(path))
        ob = bpy.data.objects["Rig"]
        bpy.context.scene.frame_set(12)
        assert miss(ob) < SOLVED
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)


@pytest.fixture
def second_copy(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A second copy of the extension under another name, as from another repository."""
    with zipfile.ZipFile(package) as archive:
        archive.extractall(tmp_path / "ik_second_copy")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("ik_second_copy")
    for name in [name for name in sys.modules if name.startswith("ik_second_copy")]:
        del sys.modules[name]


def test_a_second_copy_does_nothing_and_says_so(second_copy: Any, sidebar: None) -> None:
    ob, _target = animated_arm()
    expected = poses_at(ob, FRAMES)
    before = {name: len(getattr(bpy.app.handlers, name)) for name in LISTS}
    second_copy.register()
    said = " ".join(drawn("VIEW3D_PT_ik_addon_second_copy"))
    assert said == "IK Chains is enabled twice, so 'ik_second_copy' does nothing. Disable both, then enable one"
    second_copy.unregister()
    assert {name: len(getattr(bpy.app.handlers, name)) for name in LISTS} == before
    assert not apart(poses_at(ob, FRAMES), expected)
    blender.disable()
    second_copy.register()
    try:
        assert not apart(poses_at(ob, FRAMES), expected)
        blender.enable()
        assert not apart(poses_at(ob, FRAMES), expected)
    finally:
        second_copy.unregister()
    blender.enable()
    assert not apart(poses_at(ob, FRAMES), expected)


# ---- what other add-ons move before or after a frame is followed, wherever their handlers are in the lists


TIMES = (5, 9, 20, 5)
Moved = tuple[bpy.types.Object, Callable[..., None]]
"""An arm, and a handler that moves something of it by the frame."""


def circling(target: bpy.types.Object) -> Callable[..., None]:
    """Return a handler that moves a target by the frame."""
    name = target.name

    def move(scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph | None = None) -> None:
        x = 0.02 * scene.frame_current
        bpy.data.objects[name].location = (0.6 - x, 0.5, 1.0 + 0.5 * x)

    return move


def _live_already() -> Moved:
    ob, target = rigs.arm()
    rigs.go_live(ob)
    return ob, circling(target)


def _bone_above() -> Moved:
    ob, _target = rigs.arm()
    rigs.add_bones(ob, [(0, 0, -1), (0, 0, -0.5)], ["hips"])
    with rigs.edit_mode(ob) as bones:
        bones["upper"].parent = bones["hips"]
    ob.pose.bones["lower"].ik_addon.out_of_reach = "STRETCH"

    def bend(scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph | None = None) -> None:
        ob.pose.bones["hips"].rotation_quaternion = (1.0, 0.02 * scene.frame_current, 0.0, 0.0)

    return ob, bend


def _parent() -> Moved:
    ob, target = rigs.arm()
    target.parent, target.location = rigs.empty("Prop"), (0.0, 0.0, 0.1)
    return ob, circling(target.parent)


def _circled(arm: Callable[[], tuple[bpy.types.Object, bpy.types.Object]]) -> Moved:
    ob, target = arm()
    return ob, circling(target)


MOVED: dict[str, Callable[[], Moved]] = {
    "target": lambda: _circled(rigs.arm),
    "target of a live arm": _live_already,
    "bone above": _bone_above,
    "keyed target": lambda: _circled(animated_arm),  # a jiggle: Blender shows the target where the handler left it
    "parent": _parent,
}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("where", ["frame_change_pre", "frame_change_post"])
@pytest.mark.parametrize("moved", MOVED)
def test_what_is_moved_around_the_frame_is_followed(
    addon: Addon, moved: str, handlers: Add, where: str, first: bool
) -> None:
    ob, handler = MOVED[moved]()
    handlers(where, handler, first)
    ob.ik_addon.live = False
    fk = rigs.on_frames(TIMES, lambda: [ob.pose.bones[name].rotation_quaternion[:] for name in ("upper", "lower")])
    rigs.go_live(ob)
    found: rigs.Poses = {}
    for frame in TIMES:
        bpy.context.scene.frame_set(frame)
        assert miss(ob) < SOLVED, f"frame {frame}"
        assert addon.report(ob).reached
        assert not apart({frame: rigs.pose(ob)}, {frame: found.setdefault(frame, rigs.pose(ob))})
    ob.ik_addon.live = False
    assert [ob.pose.bones[name].rotation_quaternion[:] for name in ("upper", "lower")] == fk[TIMES[-1]]


@pytest.mark.parametrize("first", [True, False])
def test_a_render_shows_the_tip_at_a_target_that_is_moved_after_the_frame(
    recorder: type[Recorder], handlers: Add, first: bool, tmp_path: Path
) -> None:
    ob, target = rigs.arm()
    rigs.go_live(ob)
    handlers("frame_change_post", circling(target), first)

    def distance(depsgraph: bpy.types.Depsgraph) -> float:
        rig: Any = ob.evaluated_get(depsgraph)
        tip = rig.matrix_world @ rig.pose.bones["lower"].tail
        return float(np.linalg.norm(np.array(tip - target.evaluated_get(depsgraph).matrix_world.translation)))

    recorder.note = staticmethod(distance)
    set_up(bpy.context.scene, tmp_path)
    render(3, 6)
    assert [frame for _scene, _layer, frame, _noted in recorder.seen] == [3, 4, 5, 6]
    assert max(noted for *_others, noted in recorder.seen) < 1e-4
