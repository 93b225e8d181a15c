"""Live solving, as the depsgraph evaluates it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
import pytest
from numpy.typing import NDArray

from tests import rigs

if TYPE_CHECKING:
    from tests.conftest import Addon


def animated_arm() -> tuple[bpy.types.Object, bpy.types.Object]:
    """An arm whose upper bone is keyed and whose lower bone is not, with a moving target."""
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 20: (-0.5, 0.9, 0.8), 50: (0.2, -0.7, 1.4)})
    upper = ob.pose.bones["upper"]
    rigs.key(upper, "rotation_quaternion", {1: (1, 0, 0, 0), 30: (0.9, 0.1, 0.3, 0.0), 50: (0.8, -0.2, 0, 0.3)})
    ob.pose.bones["lower"].rotation_quaternion = (0.98, 0.0, 0.17, 0.1)
    bpy.context.scene.frame_set(1)
    ob.ik_addon.live = True
    return ob, target


def test_follows_in_playback() -> None:
    ob, target = animated_arm()
    for frame in range(1, 51):
        bpy.context.scene.frame_set(frame)
        assert np.linalg.norm(rigs.tail(ob, "lower") - rigs.position(target)) < 1e-5


def test_pose_is_a_pure_function_of_the_frame() -> None:
    ob, _target = animated_arm()
    frames = list(range(1, 51))
    poses: dict[int, bytes] = {}
    for order in (frames, frames[::-1], random.Random(5).sample(frames, len(frames))):
        for frame in order:
            bpy.context.scene.frame_set(frame)
            pose = rigs.pose(ob).tobytes()
            assert poses.setdefault(frame, pose) == pose, f"frame {frame} depends on the frames before it"


def test_follows_while_the_target_moves() -> None:
    ob, target = rigs.arm()
    ob.ik_addon.live = True
    for x in np.linspace(-0.8, 0.8, 9):
        target.location.x = x
        bpy.context.view_layer.update()
        assert np.linalg.norm(rigs.tail(ob, "lower") - rigs.position(target)) < 1e-5


class _Probe(bpy.types.RenderEngine):
    """Renders nothing; records the pose that a render engine sees."""

    bl_idname = "IK_TEST_PROBE"
    bl_label = "Pose Probe"
    bl_use_preview = False

    seen: list[tuple[float, bytes]]
    skin: dict[float, NDArray[np.float32]]
    subframes: tuple[float, ...] = ()

    def render(self, depsgraph: bpy.types.Depsgraph) -> None:
        """Record frame and pose, also at the sub-frames that motion blur samples."""
        frame = depsgraph.scene.frame_current
        self._note(depsgraph, float(frame))
        for part in type(self).subframes:
            whole = math.floor(frame + part)
            self.frame_set(whole, frame + part - whole)
            self._note(depsgraph, frame + part)
        self.frame_set(frame, 0.0)

    def _note(self, depsgraph: bpy.types.Depsgraph, frame: float) -> None:
        ob = bpy.data.objects["Rig"].evaluated_get(depsgraph)
        values = np.empty(16 * len(ob.pose.bones), dtype=np.float32)
        ob.pose.bones.foreach_get("matrix", values)
        type(self).seen.append((frame, values.tobytes()))
        if "Skin" in bpy.data.objects:
            mesh = bpy.data.objects["Skin"].evaluated_get(depsgraph).data
            type(self).skin[frame] = np.array(mesh.vertices[0].co)


@pytest.fixture
def probe() -> Iterator[type[_Probe]]:
    """The probe, as the render engine of a scene with a camera."""
    bpy.utils.register_class(_Probe)
    scene = bpy.context.scene
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    scene.collection.objects.link(camera)
    scene.camera = camera
    scene.render.engine = _Probe.bl_idname
    scene.render.resolution_x = scene.render.resolution_y = 8
    _Probe.seen = []
    _Probe.skin = {}
    _Probe.subframes = ()
    yield _Probe
    scene.render.engine = "BLENDER_WORKBENCH"
    bpy.utils.unregister_class(_Probe)


def render(first: int, last: int, folder: Path) -> None:
    """Render the animation of the scene from the first frame to the last."""
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = first, last
    scene.render.filepath = str(folder / "frame")
    bpy.ops.render.render(animation=True)


def poses_at(ob: bpy.types.Object, frames: Sequence[float]) -> dict[float, bytes]:
    """The live pose on each frame or sub-frame."""
    found = {}
    for frame in frames:
        bpy.context.scene.frame_set(math.floor(frame), subframe=frame - math.floor(frame))
        found[frame] = rigs.pose(ob).tobytes()
    return found


def test_rendered_pose_is_the_live_pose(probe: type[_Probe], tmp_path: Path) -> None:
    ob, _target = animated_arm()
    expected = poses_at(ob, range(10, 15))
    bpy.context.scene.frame_set(3)
    at_three = rigs.pose(ob).tobytes()
    render(10, 14, tmp_path)
    assert dict(probe.seen) == expected
    assert rigs.pose(ob).tobytes() == at_three


@pytest.mark.parametrize("by", ["action", "strip", "meta strip"])
def test_all_other_animation_of_the_rig_renders_at_the_right_frame(
    probe: type[_Probe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    ob, target = rigs.arm()
    rigs.add_bones(ob, [(2, 0, 0), (2, 0, 1)], ["a.b"])
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 20: (-0.5, 0.9, 0.8)})
    rigs.key(ob, "location", {1: (0, 0, 0), 20: (0, 0, 1)})
    bone = ob.pose.bones["a.b"]
    rigs.key(bone, "location", {1: (0, 0, 0), 20: (1, 0, 0)})
    constraint = bone.constraints.new("COPY_ROTATION")
    constraint.target = target
    for frame, value in ((1, 0.0), (20, 1.0)):
        constraint.influence = ob["its [own]"] = bone["own"] = value
        ob.keyframe_insert('["its [own]"]', frame=frame)
        ob.keyframe_insert('pose.bones["a.b"]["own"]', frame=frame)
        ob.keyframe_insert('pose.bones["a.b"].constraints["Copy Rotation"].influence', frame=frame)
    if by != "action":
        rigs.into_strip(ob, meta=by == "meta strip")
    driver = bone.driver_add("scale", 0).driver
    driver.type = "SUM"
    variable = driver.variables.new()
    variable.targets[0].id = ob
    variable.targets[0].data_path = '["its [own]"]'

    def state(depsgraph: bpy.types.Depsgraph) -> list[float]:
        done = ob.evaluated_get(depsgraph)
        other = done.pose.bones["a.b"]
        held = other.constraints[0].influence
        own = [held, done["its [own]"], other["own"], other.scale.x]
        return [*other.location[:], *other.head[:], *done.location[:], *done.matrix_world.translation[:], *own]

    seen: dict[int, list[float]] = {}

    def note(_engine: bpy.types.RenderEngine, depsgraph: bpy.types.Depsgraph) -> None:
        seen[depsgraph.scene.frame_current] = state(depsgraph)

    monkeypatch.setattr(probe, "render", note)
    ob.ik_addon.live = True
    bpy.context.scene.frame_set(3)
    before = state(bpy.context.evaluated_depsgraph_get())
    render(10, 11, tmp_path)
    assert state(bpy.context.evaluated_depsgraph_get()) == before
    for frame in (10, 11):
        bpy.context.scene.frame_set(frame)
        assert seen[frame] == state(bpy.context.evaluated_depsgraph_get())
        assert seen[frame] != before


def test_rendered_mesh_follows(probe: type[_Probe], tmp_path: Path) -> None:
    ob, _target = animated_arm()
    skin = bpy.data.objects.new("Skin", bpy.data.meshes.new("Skin"))
    skin.data.from_pydata([ob.data.bones["lower"].tail_local], [], [])
    bpy.context.scene.collection.objects.link(skin)
    skin.vertex_groups.new(name="lower").add([0], 1.0, "REPLACE")
    skin.modifiers.new("Armature", "ARMATURE").object = ob
    tips = {}
    for frame in (30, 31):
        bpy.context.scene.frame_set(frame)
        tips[frame] = rigs.tail(ob, "lower")
    bpy.context.scene.frame_set(5)
    render(30, 31, tmp_path)
    assert set(probe.skin) == {30.0, 31.0}
    for rendered, point in probe.skin.items():
        assert np.abs(point - tips[int(rendered)]).max() < 1e-5


def test_motion_blur_sees_the_solved_pose_of_its_sub_frames(probe: type[_Probe], tmp_path: Path) -> None:
    ob, _target = animated_arm()
    probe.subframes = (-0.25, 0.25)
    expected = poses_at(ob, [f + part for f in (20, 21) for part in (0.0, -0.25, 0.25)])
    render(20, 21, tmp_path)
    assert dict(probe.seen) == expected


def test_a_second_view_layer_changes_nothing() -> None:
    ob, _target = animated_arm()
    expected = poses_at(ob, range(1, 8))
    bpy.context.scene.view_layers.new("Second")
    assert poses_at(ob, range(1, 8)) == expected


def test_follows_a_targets_parent_and_driver() -> None:
    ob, target = rigs.arm()
    parent = rigs.empty("Parent")
    target.parent = parent
    curve = target.driver_add("location", 1)
    curve.driver.type = "SUM"
    variable = curve.driver.variables.new()
    variable.type = "TRANSFORMS"
    variable.targets[0].id = rigs.empty("Driver", (0.4, 0, 0))
    variable.targets[0].transform_type = "LOC_X"
    ob.ik_addon.live = True
    bpy.context.view_layer.update()
    parent.location = (-0.3, 0.1, 0.2)
    bpy.context.view_layer.update()
    assert np.linalg.norm(rigs.tail(ob, "lower") - rigs.position(target)) < 1e-5
    bpy.data.objects["Driver"].location.x = -0.5
    bpy.context.view_layer.update()
    assert abs(rigs.position(target)[1] - (-0.5 + 0.1)) < 1e-5
    assert np.linalg.norm(rigs.tail(ob, "lower") - rigs.position(target)) < 1e-5


def test_a_bone_moved_by_hand_becomes_the_fk_pose() -> None:
    ob, target = rigs.arm()
    ob.ik_addon.live = True
    bpy.context.view_layer.update()
    by_hand = (0.6, 0.0, 0.8, 0.0)
    ob.pose.bones["lower"].rotation_quaternion = by_hand
    bpy.context.view_layer.update()
    assert np.linalg.norm(rigs.tail(ob, "lower") - rigs.position(target)) < 1e-5
    ob.ik_addon.live = False
    assert ob.pose.bones["lower"].rotation_quaternion[:] == pytest.approx(by_hand)


def test_a_cancelled_gesture_leaves_the_fk_pose_unchanged() -> None:
    ob, _target = rigs.arm()
    before = rigs.channels(ob)
    ob.ik_addon.live = True
    bpy.context.view_layer.update()
    lower = ob.pose.bones["lower"]
    solved = lower.rotation_quaternion.copy()
    for step in (0.1, 0.2, 0.3):
        lower.rotation_quaternion = (1.0, 0.0, step, 0.0)
        bpy.context.view_layer.update()
    lower.rotation_quaternion = solved  # what Esc restores
    bpy.context.view_layer.update()
    ob.ik_addon.live = False
    assert np.array_equal(rigs.channels(ob), before)


def test_follows_when_the_body_is_moved() -> None:
    ob, target = rigs.arm()
    rigs.add_bones(ob, [(0, 0, -1), (0, 0, -0.5)], ["body"])
    bpy.ops.object.mode_set(mode="EDIT")
    ob.data.edit_bones["upper"].parent = ob.data.edit_bones["body"]
    bpy.ops.object.mode_set(mode="OBJECT")
    ob.ik_addon.live = True
    bpy.context.view_layer.update()
    ob.pose.bones["body"].location = (0.2, 0.1, 0.0)
    bpy.context.view_layer.update()
    assert np.linalg.norm(rigs.tail(ob, "lower") - rigs.position(target)) < 1e-5
    ob.location = (0.1, -0.2, 0.1)
    bpy.context.view_layer.update()
    assert np.linalg.norm(rigs.tail(ob, "lower") - rigs.position(target)) < 1e-5


def test_does_nothing_on_frames_where_nothing_moves(addon: Addon, monkeypatch: pytest.MonkeyPatch) -> None:
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 10: (0.6, 0.5, 1.0), 20: (-0.5, 0.9, 0.8)})
    ob.ik_addon.live = True
    expected = poses_at(ob, range(1, 21))
    solved = []
    playback = addon.module("live.playback")
    posing = playback.posing

    def counted(ob: bpy.types.Object, plan: Any, sample: Any, **options: object) -> object:
        solved.append(len(sample.world))
        return posing(ob, plan, sample, **options)

    monkeypatch.setattr(playback, "posing", counted)
    assert poses_at(ob, range(1, 21)) == expected
    # The target does not move up to frame 10, nor after the last key.
    assert sum(solved) <= 13
    written = []
    put = playback.Playback.put

    def noted(*arguments: object, **options: object) -> None:
        written.append(bpy.context.scene.frame_current)
        put(*arguments, **options)

    monkeypatch.setattr(playback.Playback, "put", noted)
    assert poses_at(ob, range(1, 21)) == expected
    assert written == [1, *range(11, 21)]


def test_a_pole_bends_only_its_own_chain() -> None:
    ob = rigs.armature()
    for x, name in ((0.0, "a"), (1.0, "b")):
        rigs.add_bones(ob, [(x, 0, 0), (x, -0.2, 1), (x, 0, 2)], [f"{name}0", f"{name}1"])
        rigs.chain(ob, f"{name}1", rigs.empty(f"Target {name}", (x, 0, 1.5)), 2)
    ob.pose.bones["a1"].ik_addon.pole = rigs.empty("Pole", (5, 0, 1))
    ob.ik_addon.live = True
    bpy.context.view_layer.update()
    assert rigs.tail(ob, "a0")[0] > 0.5
    assert abs(rigs.tail(ob, "a0")[1]) < 1e-6
    assert rigs.tail(ob, "b0")[0] == pytest.approx(1.0)
    assert rigs.tail(ob, "b0")[1] < -0.5


def test_undo_reverts_a_move_of_the_target() -> None:
    ob, target = animated_arm()
    target.animation_data_clear()
    bpy.context.scene.frame_set(12)
    bpy.ops.ed.undo_push(message="before")
    before = rigs.pose(ob)
    target.location = (0.1, 0.9, 1.2)
    bpy.context.view_layer.update()
    bpy.ops.ed.undo_push(message="moved")
    bpy.ops.ed.undo()
    ob, target = bpy.data.objects["Rig"], bpy.data.objects["Target"]
    assert np.array_equal(rigs.pose(ob), before)
    target.location.x += 1e-3
    bpy.context.view_layer.update()
    target.location.x -= 1e-3
    bpy.context.view_layer.update()
    assert np.abs(rigs.pose(ob) - before).max() < 1e-5, "the FK pose is no longer known after undo"


def test_a_live_rig_survives_saving_and_loading(tmp_path: Path) -> None:
    ob, _target = animated_arm()
    before = poses_at(ob, (1, 17, 33))
    bpy.context.scene.frame_set(17)
    path = str(tmp_path / "live.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    ob = bpy.data.objects["Rig"]
    bpy.context.view_layer.update()
    assert rigs.pose(ob).tobytes() == before[17]
    assert poses_at(ob, (33, 1, 17)) == {frame: before[frame] for frame in (33, 1, 17)}
    ob.ik_addon.live = False
    assert ob.pose.bones["lower"].rotation_quaternion[:] == pytest.approx((0.98, 0.0, 0.17, 0.1))


def test_a_duplicate_is_live_on_its_own() -> None:
    ob, target = rigs.arm()
    ob.ik_addon.live = True
    bpy.context.view_layer.update()
    twin = ob.copy()
    bpy.context.scene.collection.objects.link(twin)
    bpy.context.view_layer.update()
    twin.location.x = 0.3
    bpy.context.view_layer.update()
    assert np.linalg.norm(rigs.tail(twin, "lower") - rigs.position(target)) < 1e-5
    assert np.linalg.norm(rigs.tail(ob, "lower") - rigs.position(target)) < 1e-5


def report(addon: Addon, ob: bpy.types.Object, tip: str = "lower") -> Any:
    """The report of a chain, as the panel shows it."""
    return addon.module("live.reports").get(ob, tip)


def test_reports_whether_the_target_was_reached(addon: Addon) -> None:
    ob, target = rigs.arm()
    ob.ik_addon.live = True
    bpy.context.view_layer.update()
    assert report(addon, ob).reached
    target.location = (4.0, 0.0, 0.0)
    bpy.context.view_layer.update()
    verdict = report(addon, ob)
    assert not verdict.reached
    assert not verdict.failed
    assert "Too far" in verdict.message


def shrink_and_turn(ob: bpy.types.Object) -> None:
    ob.pose.bones["lower"].ik_addon.use_rotation = True
    ob.scale = (0, 0, 0)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda ob, target: setattr(ob.pose.bones["lower"].ik_addon, "target", None), "No target"),
        (lambda ob, target: bpy.context.scene.collection.objects.unlink(target), "deleted"),
        (lambda ob, target: setattr(target, "hide_viewport", True), "disabled in viewports"),
        (lambda ob, target: setattr(target, "location", (math.nan, 0, 0)), "not a finite number"),
        (lambda ob, target: setattr(target, "location", (math.inf, 0, 0)), "not a finite number"),
        (lambda ob, target: setattr(ob, "scale", (0, 0, 0)), "scaled to zero"),
        (lambda ob, target: setattr(ob, "scale", (1, 0, 1)), "scaled to zero"),
        (lambda ob, target: shrink_and_turn(ob), "scaled to zero"),
        (lambda ob, target: setattr(ob.pose.bones["upper"], "scale", (0, 0, 0)), "no length"),
        (lambda ob, target: ob.pose.bones["upper"].constraints.new("LIMIT_ROTATION"), "Limit Rotation"),
        (lambda ob, target: rigs.chain(ob, "lower", target, 1, solver="TWO_BONE"), "two bones"),
    ],
)
def test_bad_input_is_reported_and_the_fk_pose_stays(addon: Addon, spoil: Callable[..., None], words: str) -> None:
    ob, target = rigs.arm()
    rotations = [bone.rotation_quaternion[:] for bone in ob.pose.bones]
    ob.ik_addon.live = True
    bpy.context.view_layer.update()
    spoil(ob, target)
    bpy.context.view_layer.update()
    bpy.context.scene.frame_set(7)
    verdict = report(addon, ob)
    assert verdict.failed
    assert words in verdict.message
    assert [bone.rotation_quaternion[:] for bone in ob.pose.bones] == rotations


@pytest.mark.parametrize("role", ["target", "pole"])
@pytest.mark.parametrize("attached", ["parent", "bone"])
def test_a_goal_on_the_chains_own_bone_is_refused(addon: Addon, role: str, attached: str) -> None:
    ob, _target = rigs.arm()
    if attached == "parent":
        goal = rigs.empty("Goal")
        goal.parent, goal.parent_type, goal.parent_bone = ob, "BONE", "lower"
        setattr(ob.pose.bones["lower"].ik_addon, role, goal)
    else:
        setattr(ob.pose.bones["lower"].ik_addon, role, ob)
        setattr(ob.pose.bones["lower"].ik_addon, f"{role}_bone", "upper")
    ob.ik_addon.live = True
    bpy.context.view_layer.update()
    assert report(addon, ob).failed
    assert "of this chain" in report(addon, ob).message


@pytest.mark.expects_traceback
def test_an_unexpected_error_is_logged_once_and_shown_in_the_panel(
    addon: Addon, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ob, target = rigs.arm()
    ob.ik_addon.live = True
    bpy.context.view_layer.update()

    def broken(*_args: object, **_named: object) -> None:
        raise ZeroDivisionError("broken on purpose")

    monkeypatch.setattr(addon.module("live.rig"), "pose", broken)
    monkeypatch.setattr(addon.module("live.playback"), "posing", broken)
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 9: (0.3, 0.5, 1.0)})
    for frame in range(2, 9):
        bpy.context.scene.frame_set(frame)
    assert report(addon, ob).failed
    assert "broken on purpose" in report(addon, ob).message
    assert len(caplog.records) == 1
    monkeypatch.undo()
    ob.pose.bones["lower"].ik_addon.softness = 0.0
    ob.pose.bones["lower"].ik_addon.enabled = True
    bpy.context.view_layer.update()
    assert report(addon, ob).reached


def test_works_on_the_very_first_frame_of_a_new_scene(addon: Addon) -> None:
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 9: (-0.5, 0.9, 0.8)})
    ob.ik_addon.live = True
    bpy.context.scene.frame_set(5)
    assert report(addon, ob).reached


def test_a_frame_change_and_an_update_give_exactly_the_same_pose() -> None:
    ob, target = animated_arm()
    bpy.context.scene.frame_set(23)
    pose = rigs.pose(ob)
    target.update_tag()
    bpy.context.view_layer.update()
    assert np.array_equal(rigs.pose(ob), pose)


def test_a_rig_shown_in_its_rest_position_is_left_alone(addon: Addon) -> None:
    ob, _target = rigs.arm()
    before = rigs.channels(ob)
    ob.ik_addon.live = True
    ob.data.pose_position = "REST"
    bpy.context.view_layer.update()
    assert "Rest Position" in report(addon, ob).message
    assert np.array_equal(rigs.channels(ob), before)
    ob.data.pose_position = "POSE"
    bpy.context.view_layer.update()
    assert report(addon, ob).reached


@pytest.mark.parametrize("switch", ["live", "enabled"])
def test_a_keyed_bone_returns_to_the_fk_pose_of_its_frame_when_turned_off(switch: str) -> None:
    ob, _target = animated_arm()
    ob.ik_addon.live = False
    bpy.context.scene.frame_set(10)
    fk = rigs.channels(ob)
    bpy.context.scene.frame_set(1)
    ob.ik_addon.live = True
    bpy.context.scene.frame_set(10)
    setattr(ob.ik_addon if switch == "live" else ob.pose.bones["lower"].ik_addon, switch, False)
    bpy.context.view_layer.update()
    assert np.array_equal(rigs.channels(ob), fk)


def test_a_target_in_a_disabled_collection_is_reported(addon: Addon) -> None:
    ob, target = rigs.arm()
    collection = bpy.data.collections.new("Controls")
    bpy.context.scene.collection.children.link(collection)
    bpy.context.scene.collection.objects.unlink(target)
    collection.objects.link(target)
    ob.ik_addon.live = True
    bpy.context.view_layer.update()
    assert report(addon, ob).reached
    collection.hide_viewport = True
    bpy.context.view_layer.update()
    ob.update_tag()
    bpy.context.view_layer.update()
    assert "disabled in viewports" in report(addon, ob).message


def test_a_target_disabled_in_renders_gets_a_remark(addon: Addon) -> None:
    ob, target = rigs.arm()
    target.hide_render = True
    ob.ik_addon.live = True
    bpy.context.view_layer.update()
    assert report(addon, ob).reached
    assert "disabled in renders" in report(addon, ob).remarks[0]
