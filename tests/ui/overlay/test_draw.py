"""What the overlay reads from the scene, and that it can be drawn; how it looks is tested in a window."""

import importlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Vector

from tests import rigs
from tests.conftest import Addon
from tests.faults import Limb
from tests.reliability.states import activate

OFFSCREEN = pytest.mark.skipif(bpy.app.version < (5, 2, 0), reason="no drawing without a window before 5.2")


@dataclass
class Seen:
    """What is shown, and what is shown of the active chain, if there is one."""

    chains: Any
    actives: tuple[Any, ...]

    @property
    def limits(self) -> Any:
        return self.actives[0].limits if self.actives else ()

    @property
    def reach(self) -> Any:
        return self.actives[0].reach if self.actives else None

    @property
    def plane(self) -> Any:
        return self.actives[0].plane if self.actives else None


@pytest.fixture
def states(addon: Addon) -> Any:
    return addon.module("ui.overlay.geometry").State


def read(addon: Addon, tip: bpy.types.PoseBone | None = None, **wanted: bool) -> tuple[Any, list[Seen]]:
    """Read what the overlay shows, outside any viewport, with this bone active: a signature, and the chains if any."""
    for ob in bpy.context.view_layer.objects:
        if ob.type == "ARMATURE" and ob.mode != "EDIT":
            ob.data.bones.active = None if tip is None else ob.data.bones[tip.name]
    bpy.context.view_layer.update()
    reader = addon.module("ui.overlay.draw").state.reader
    rigs_ = reader.rigs(bpy.context.view_layer, None)
    signature, shown = reader.read(bpy.context.view_layer, rigs_, addon.module("ui.overlay.read").Wanted(**wanted))
    return signature, [] if shown is None else [Seen(shown.chains, shown.actives)]


def seen(addon: Addon, tip: bpy.types.PoseBone | None = None, **wanted: bool) -> Seen:
    """Return what is shown with a bone active; there is something."""
    (found,) = read(addon, tip, **wanted)[1]
    return found


def drawn(addon: Addon, seen: Seen) -> Any:
    """Return the geometry of what is shown."""
    colors = addon.module("ui.overlay.geometry").themed(bpy.context.preferences.themes[0])
    return addon.module("ui.overlay.geometry").drawing(seen, colors)


@contextmanager
def viewport() -> Iterator[None]:
    """Be in a 3D viewport for a while."""
    area = next(area for area in bpy.context.window.screen.areas if area.type == "VIEW_3D")
    with bpy.context.temp_override(area=area, region=area.regions[-1]):
        yield


def test_joints_targets_and_states_are_read(addon: Addon, states: Any, limb: Limb) -> None:
    limb.ob.matrix_world = Matrix.Translation((1, 2, 3)) @ Matrix.Rotation(0.7, 4, "X") @ Matrix.Diagonal((2, 1, -1, 1))
    limb.target.location = (1.2, 2.4, 3.5)
    assert seen(addon).chains.states.tolist() == [states.UNKNOWN]
    bpy.ops.ik_addon.solve()
    rig = seen(addon)
    assert rig.chains.states.tolist() == [states.REACHED]
    expected = [rigs.head(limb.ob, "upper"), rigs.head(limb.ob, "lower"), rigs.tail(limb.ob, "lower")]
    assert np.allclose(rig.chains.joints, expected, atol=1e-5)
    assert np.allclose(rig.chains.targets, [rigs.position(limb.target)])
    assert np.isnan(rig.chains.poles).all()
    limb.target.location = (9.0, 9.0, 9.0)
    assert seen(addon).chains.states.tolist() == [states.UNKNOWN], "nobody has solved for this target yet"
    bpy.ops.ik_addon.solve()
    assert seen(addon).chains.states.tolist() == [states.OUT_OF_REACH]
    limb.chain.target = None
    with pytest.raises(RuntimeError):
        bpy.ops.ik_addon.solve()
    assert seen(addon).chains.states.tolist() == [states.FAILED]


def test_limits_and_reach_are_those_of_the_active_chain(addon: Addon, limb: Limb) -> None:
    rigs.limit(limb.lower, x=(0.0, 90.0))
    rig = seen(addon)
    assert (rig.limits, rig.reach) == ((), None)
    rig = seen(addon, limb.lower)
    (joint,) = rig.limits
    assert np.allclose(joint.head, limb.lower.head)
    assert np.degrees(joint.cone[:2]) == pytest.approx((0.0, 90.0))
    assert rig.reach is None, "calm where nothing is missed"
    rig = seen(addon, limb.lower, is_dragging=True)
    center, radius = rig.reach
    assert np.allclose(center, 0.0)
    assert radius == pytest.approx(rigs.length(limb.ob, "lower", 2))
    assert seen(addon, limb.lower, is_dragging=True, reach=False).reach is None
    limb.target.location = (9.0, 9.0, 9.0)
    assert seen(addon, limb.lower).reach is None, "nobody knows yet that it is missed"
    bpy.ops.ik_addon.solve()
    assert seen(addon, limb.lower).reach is not None
    assert seen(addon, limb.lower, reach=False).reach is None
    limb.chain.use_limits = False
    assert seen(addon, limb.lower).limits == ()


def test_the_plane_of_a_planar_chain_is_the_one_it_stays_in(addon: Addon) -> None:
    ob = rigs.limb([(0, 0, 0), (0, 0, 1)], ["body"])
    rigs.add_bones(ob, [(0, 0, 1), (0.3, 0, 2), (0, 0, 3), (0, 0, 3.8)], ["a", "b", "c"], parent="body")
    target = rigs.empty("Target", (1.5, 0.8, 1.5))
    tip = rigs.chain(ob, "c", target, 3, planar=True)
    ob.pose.bones["body"].rotation_quaternion = (0.9, 0.1, 0.4, 0.2)
    rigs.change(ob, matrix_world=Matrix.Rotation(0.7, 4, "X") @ Matrix.Diagonal((2, 2, 2, 1)))
    bpy.ops.ik_addon.solve()
    rig = seen(addon, tip)
    assert np.allclose(rig.plane.center, ob.pose.bones["a"].head, atol=1e-6)
    done = rigs.evaluated(ob).pose.bones
    for name in "abc":
        assert abs((np.array(done[name].tail) - rig.plane.center) @ rig.plane.normal) < 1e-5
    assert np.linalg.norm(rig.plane.normal) == pytest.approx(1.0)
    assert rig.plane.radius == pytest.approx(rigs.length(ob, "c", 3))
    assert seen(addon, tip, limits=False).plane is None
    assert seen(addon, None).plane is None
    rigs.limit(tip, x=(-40.0, 40.0))
    assert seen(addon, tip).plane is None, "Planar has no effect beside limits"
    tip.use_ik_limit_x = False
    rigs.chain(ob, "b", target, 2)
    assert seen(addon, tip).plane is None, "nor in a tree"


def test_limits_are_measured_from_rest_in_the_posed_parent(addon: Addon) -> None:
    ob, _target = rigs.arm()
    upper, tip = ob.pose.bones["upper"], ob.pose.bones["lower"]
    rigs.limit(tip, x=(0.0, 90.0))
    upper.rotation_quaternion = (0.8, 0.4, 0.2, 0.4)
    tip.rotation_quaternion = (0.9, 0.3, 0.0, 0.1)
    (joint,) = seen(addon, tip).limits
    done = rigs.evaluated(ob).pose.bones
    at_rest = done["upper"].matrix @ upper.bone.matrix_local.inverted() @ tip.bone.matrix_local
    assert np.allclose(joint.rest, at_rest.to_3x3(), atol=1e-5)
    assert np.allclose(joint.frame, done["lower"].matrix.to_3x3(), atol=1e-5)


def test_the_signature_changes_only_with_what_is_shown(addon: Addon, limb: Limb) -> None:
    rigs.limit(limb.lower, x=(-50.0, 50.0))
    changes: tuple[Callable[[], object], ...] = (
        lambda: setattr(limb.target, "location", (0.7, 0.5, 1.0)),
        lambda: setattr(limb.upper, "rotation_quaternion", (0.9, 0.1, 0.0, 0.0)),
        lambda: setattr(limb.ob, "location", (0.0, 0.0, 1.0)),
        lambda: setattr(limb.lower, "ik_max_x", 0.3),
        bpy.ops.ik_addon.solve,
        lambda: setattr(limb.chain, "chain_length", 1),
    )
    seen = [read(addon, limb.lower)[0]]
    assert read(addon, limb.lower)[0] == seen[0]
    for change in changes:
        change()
        seen.append(read(addon, limb.lower)[0])
    assert len(set(seen)) == len(seen)


def test_the_cache_is_dropped_when_chains_change(addon: Addon) -> None:
    ob, target = rigs.arm()
    rigs.add_bones(ob, [(2, 0, 0), (2, 0, 1)], ["other"])
    assert seen(addon).chains.ends.tolist() == [2]
    rigs.chain(ob, "other", target)
    assert seen(addon).chains.ends.tolist() == [2, 4]
    bpy.ops.ed.undo_push(message="two chains")
    ob.pose.bones["lower"].ik_addon.is_chain = False
    assert seen(addon).chains.ends.tolist() == [1]
    bpy.ops.ed.undo_push(message="one chain")
    name = ob.name
    bpy.ops.ed.undo()
    assert seen(addon).chains.ends.tolist() == [2, 4]
    ob = bpy.data.objects[name]
    ob.data.bones["lower"].name = "renamed"
    assert seen(addon).chains.ends.tolist() == [2, 4]
    ob.pose.bones["renamed"].ik_addon.chain_length = 1
    assert seen(addon).chains.ends.tolist() == [1, 3]


def test_only_the_active_chain_has_a_line_to_its_pole(addon: Addon, limb: Limb) -> None:
    limb.chain.pole = rigs.empty("Pole", (1.0, 2.0, 3.0))
    assert np.isnan(seen(addon).chains.poles).all()
    assert np.allclose(seen(addon, limb.lower).chains.poles, [(1.0, 2.0, 3.0)])
    assert seen(addon, limb.lower).chains.active.tolist() == [True]
    assert seen(addon).chains.active.tolist() == [False]


def test_the_chain_of_the_active_target_or_target_bone_is_active(addon: Addon, limb: Limb) -> None:
    bpy.context.view_layer.objects.active = rigs.empty("Other")
    assert seen(addon).actives == ()
    bpy.context.view_layer.objects.active = limb.target
    assert len(seen(addon).actives) == 1
    rigs.add_bones(limb.ob, [(0.5, 0.5, 0.5), (0.5, 0.5, 0.8)], ["control"])
    chain = limb.chain
    assert seen(addon, limb.ob.pose.bones["control"]).actives == ()
    chain.target, chain.target_bone = limb.ob, "control"
    assert len(seen(addon, limb.ob.pose.bones["control"]).actives) == 1


def test_the_arrow_shows_the_bend_side(addon: Addon) -> None:
    ob, target = rigs.arm()
    bpy.ops.ik_addon.chain_remove()
    bpy.ops.ik_addon.chain_add(tip="lower", chain_length=2, live=True)
    tip = ob.pose.bones["lower"]
    target = tip.ik_addon.target
    for place in ((0.4, 0.5, 0.6), (-0.5, 0.3, 0.9)):
        target.location = place
        joint, point = seen(addon, tip).actives[0].bend[:2]
        root, elbow, end = rigs.head(ob, "upper"), rigs.head(ob, "lower"), rigs.tail(ob, "lower")
        line = (end - root) / np.linalg.norm(end - root)
        side = (elbow - root) - ((elbow - root) @ line) * line
        assert (point - joint) @ side == pytest.approx(np.linalg.norm(point - joint) * np.linalg.norm(side), rel=1e-4)
        assert np.allclose(joint, elbow, atol=1e-6)
    tip.ik_addon.bend_side = (0.0, 0.0, 0.0)
    assert seen(addon, tip).actives[0].bend is None


@pytest.mark.parametrize(("mode", "selected"), [("POSE", True), ("POSE", False), ("OBJECT", True)])
def test_there_is_no_cone_where_blender_draws_arcs(addon: Addon, mode: Any, selected: bool, limb: Limb) -> None:
    rigs.limit(limb.lower, x=(0.0, 90.0))
    bpy.ops.object.mode_set(mode=mode)
    holder: Any = limb.lower if hasattr(limb.lower, "select") else limb.lower.bone
    holder.select = selected
    has_arc = addon.module("ui.overlay.read").has_arc
    assert has_arc(limb.lower) == (mode == "POSE" and selected)
    limb.lower.use_ik_limit_x, limb.lower.use_ik_limit_y, limb.lower.ik_max_y = False, True, 0.5
    assert not has_arc(limb.lower), "Blender draws none for twists"
    limb.lower.use_ik_limit_x = True
    assert seen(addon, limb.lower).limits[0].has_arc == has_arc(limb.lower)


def test_hidden_and_disabled_chains_and_those_in_edit_mode_are_not_shown(addon: Addon, limb: Limb) -> None:
    assert len(read(addon)[1]) == 1
    limb.chain.enabled = False
    assert read(addon)[1] == []
    limb.chain.enabled = True
    limb.ob.hide_set(True)
    assert read(addon)[1] == []
    limb.ob.hide_set(False)
    bpy.ops.object.mode_set(mode="EDIT")
    assert read(addon)[1] == []


def test_several_armatures_are_drawn_as_one(addon: Addon, states: Any) -> None:
    first, target = rigs.arm()
    second, other = rigs.arm()
    rigs.add_bones(second, [(2, 0, 0), (2, 0, 1), (2, 0, 2), (2, 0, 3)], ["x", "y", "z"])
    rigs.chain(second, "z", target, 3)
    second.matrix_world = Matrix.Translation((1, 2, 3)) @ Matrix.Rotation(0.7, 4, "X")
    other.location = second.matrix_world @ Vector((0.3, 0.3, 0.3))
    rigs.limit(second.pose.bones["lower"], x=(-5.0, 5.0), z=(-5.0, 5.0))
    bpy.context.view_layer.update()
    for ob in (first, second):
        activate(ob, "lower")
        bpy.ops.ik_addon.solve()
    found = seen(addon, second.pose.bones["lower"])
    expected = []
    for ob, bones in ((first, ("upper", "lower")), (second, ("upper", "lower")), (second, ("x", "y", "z"))):
        expected += [*(rigs.head(ob, bone) for bone in bones), rigs.tail(ob, bones[-1])]
    assert np.allclose(found.chains.joints, expected, atol=1e-5)
    assert found.chains.ends.tolist() == [2, 5, 9]
    assert np.allclose(found.chains.targets, [rigs.position(target), rigs.position(other), rigs.position(target)])
    assert found.chains.states.tolist()[:2] == [states.REACHED, states.HELD]
    assert np.flatnonzero(found.chains.at_limit).tolist() == [4]
    (active,) = found.actives
    assert np.allclose(active.world, second.matrix_world)
    assert len(drawn(addon, found).segments.points) == 2 * (2 + 2 + 3)
    second.hide_set(True)
    assert seen(addon).chains.ends.tolist() == [2]


def test_a_pose_that_is_not_a_number_is_not_drawn(addon: Addon, limb: Limb) -> None:
    rigs.limit(limb.lower, x=(-50.0, math.inf))
    limb.upper.location.x = math.nan
    rig = seen(addon, limb.lower)
    found = drawn(addon, rig)
    assert len(found.segments.points) == len(found.faces.points) == 0


def test_an_error_is_reported_once_and_ends_when_switched_on_again(
    addon: Addon, caplog: pytest.LogCaptureFixture
) -> None:
    draw = addon.module("ui.overlay.draw")
    rigs.arm()
    draw.state.reader = None
    with viewport():
        for _ in range(3):
            draw.draw_viewport()
    assert caplog.text.count("overlay is off") == 1
    bpy.context.scene.ik_addon.show_overlay = True
    assert not draw.state.broken
    assert draw.state.reader is not None


@pytest.mark.parametrize("bone", ["upper", "lower"])
def test_renaming_any_bone_of_a_chain_leaves_it_shown(
    addon: Addon, caplog: pytest.LogCaptureFixture, bone: str, limb: Limb
) -> None:
    before = read(addon, limb.ob.pose.bones[-1], is_dragging=True)[0]
    limb.ob.data.bones[bone].name = "renamed"
    with viewport():
        assert read(addon, limb.ob.pose.bones[-1], is_dragging=True)[0] == before
        assert len(read(addon, limb.ob.pose.bones[-1])[1]) == 1
    assert caplog.text == ""


def test_a_fault_hides_its_chain_alone(
    addon: Addon, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, reading = addon.module("ui.overlay.draw"), addon.module("ui.overlay.read")
    ob, target = rigs.arm()
    rigs.add_bones(ob, [(2, 0, 0), (2, 0, 1)], ["other"])
    rigs.chain(ob, "other", target)
    activate(ob, "other")
    place = reading._place

    def fail(chain: Any, role: str, depsgraph: Any) -> Any:
        if chain == ob.pose.bones["lower"].ik_addon:
            raise ZeroDivisionError("nothing to see")
        return place(chain, role, depsgraph)

    monkeypatch.setattr(reading, "_place", fail)
    monkeypatch.setattr(draw, "batches", lambda shown: shown)
    monkeypatch.setattr(draw, "draw", lambda *_drawn: None)
    with viewport():
        for _ in range(3):
            draw.draw_viewport()
    assert caplog.text.count("hides the chain on 'lower'") == 1
    assert not draw.state.broken
    assert seen(addon, ob.pose.bones["other"]).chains.ends.tolist() == [1]
    assert draw.state.reader.why_hidden(ob.pose.bones["lower"]) == "ZeroDivisionError: nothing to see"
    assert draw.state.reader.why_hidden(ob.pose.bones["other"]) == ""
    monkeypatch.setattr(reading, "_place", place)
    bpy.context.scene.ik_addon.show_overlay = True
    assert seen(addon, ob.pose.bones["other"]).chains.ends.tolist() == [2, 4]


def test_nothing_is_read_while_the_overlay_is_off(addon: Addon, caplog: pytest.LogCaptureFixture) -> None:
    draw = addon.module("ui.overlay.draw")
    rigs.arm()
    bpy.context.scene.ik_addon.show_overlay = False
    draw.state.reader = None
    with viewport():
        draw.draw_viewport()
        bpy.context.scene.ik_addon.show_overlay = True
        draw.state.reader = None
        bpy.context.space_data.overlay.show_overlays = False
        draw.draw_viewport()
    draw.switched(bpy.context.scene)
    assert caplog.text == ""


@OFFSCREEN
def test_a_chain_is_drawn_in_its_color(addon: Addon) -> None:
    gpu: Any = importlib.import_module("gpu")  # the stubs know little of it
    gpu.init()
    draw = addon.module("ui.overlay.draw")
    ob, _target = rigs.arm()
    tip = ob.pose.bones["lower"]
    rigs.limit(tip, x=(-120.0, 120.0), y=(-60.0, 60.0), z=(-60.0, 60.0))
    bpy.ops.ik_addon.solve()
    rig = seen(addon, tip)
    colors = addon.module("ui.overlay.geometry").themed(bpy.context.preferences.themes[0])
    picture = gpu.types.GPUOffScreen(128, 128)
    with picture.bind():
        gpu.state.active_framebuffer_get().clear(color=(0.0, 0.0, 0.0, 0.0))
        with gpu.matrix.push_pop(), gpu.matrix.push_pop_projection():
            # Seen from the side: Y to the right, Z up.
            gpu.matrix.load_matrix(Matrix(((0, 1, 0, 0), (0, 0, 1, 0), (1, 0, 0, 0), (0, 0, 0, 1))))
            gpu.matrix.load_projection_matrix(Matrix.Diagonal((0.5, 0.5, 0.1, 1.0)))
            sizes = addon.module("ui.overlay.geometry").Sizes(3.0, 1.5, 7.0)
            draw.draw(draw.batches(drawn(addon, rig)), [], colors, sizes)
        pixels = np.array(gpu.state.active_framebuffer_get().read_color(0, 0, 128, 128, 4, 0, "FLOAT").to_list())
    picture.free()
    for joint in rig.chains.joints:
        column, row = (int(64 + 32 * joint[axis]) for axis in (1, 2))
        near = pixels[max(row - 3, 0) : row + 4, max(column - 3, 0) : column + 4, :3].reshape(-1, 3)
        reached = np.array(colors.states[addon.module("ui.overlay.geometry").State.REACHED][:3])
        assert np.abs(near - reached).sum(axis=1).min() < 0.1, joint
    filled = (pixels[..., 3] > 0.0).mean()
    assert 0.02 < filled < 0.5
    assert gpu.state.blend_get() == "NONE"


def test_the_hand_at_the_end_of_a_chain_is_drawn(addon: Addon, states: Any, limb: Limb) -> None:
    rigs.add_bones(limb.ob, [(0.05, 0.0, 2.1), (0.05, 0.0, 2.3)], ["hand"], parent="lower")
    bpy.context.view_layer.update()
    lower, hand = limb.lower, limb.ob.pose.bones["hand"]
    assert seen(addon, lower).actives[0].end is None
    lower.ik_addon.target, lower.ik_addon.end_bone = limb.target, "hand"
    assert np.allclose(seen(addon, lower).actives[0].end, [hand.head, hand.tail], atol=1e-6), "also if it does not turn"
    lower.ik_addon.use_end_rotation = True
    rigs.limit(hand, x=(-20.0, 20.0), z=(-20.0, 20.0))
    limb.target.rotation_euler = (2.0, 0.0, 0.0)
    rigs.go_live(limb.ob)
    rig = seen(addon, hand)
    assert rig.chains.states.tolist() == [states.REACHED]
    assert np.allclose(rig.chains.joints[-1], rigs.head(limb.ob, "hand"), atol=1e-6)
    assert np.allclose(rig.actives[0].end, [rigs.head(limb.ob, "hand"), rigs.tail(limb.ob, "hand")], atol=1e-6)
    assert rig.chains.at_limit.tolist() == [False, False, True]
    assert [joint.at_limit for joint in rig.limits] == [True]
    assert drawn(addon, rig) is not None


# ---- what a drag over a range shows of other frames

NOW, REACH = 20, 6


@pytest.fixture
def arm() -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return an armature with a live arm whose target moves, with a key on every second frame."""
    ob, target = rigs.arm()
    places = {i: (0.3 * np.sin(i / 9.0), 0.4, 1.0 + 0.2 * np.cos(i / 7.0)) for i in range(1, 41, 2)}
    rigs.key(target, "location", places)
    rigs.go_live(ob)
    bpy.context.scene.frame_set(NOW)
    return ob, target


def begin(addon: Addon, ob: bpy.types.Object, frames: int = REACH) -> tuple[Any, Any]:
    """Return a drag of the target that reaches over frames, and what is shown of these."""
    reach = addon.module("targets.edit_range").EditRange(frames)
    drag = addon.module("targets.drag").Drag(bpy.context, ob.pose.bones["lower"], reach=reach)
    return drag, addon.module("ui.overlay.read").Ghosts.of(bpy.context, drag)


def test_ghosts_and_trail_are_where_live_solving_poses_them(addon: Addon, arm: Any) -> None:
    ob, target = arm
    _drag, ghosts = begin(addon, ob)
    assert bpy.context.scene.frame_current == NOW
    frames = [NOW - 6, NOW - 3, NOW + 3, NOW + 6]
    ends = rigs.on_frames(frames, lambda: [(rigs.head(ob, bone), rigs.tail(ob, bone)) for bone in ("upper", "lower")])
    seen = ghosts.bones.reshape(len(frames), -1, 2, 3)
    names = [bone.name for bone in ob.pose.bones]
    for frame, lines in zip(frames, seen, strict=True):
        assert np.allclose(lines[[names.index("upper"), names.index("lower")]], ends[frame], atol=1e-5)
    path = rigs.on_frames(range(NOW - REACH, NOW + REACH + 1), lambda: rigs.position(target))
    assert np.allclose(ghosts.trail, list(path.values()), atol=1e-6)
    assert [NOW - REACH + i for i in np.flatnonzero(ghosts.keyed)] == [14, 15, 17, 19, 20, 21, 23, 25, 26]


def test_the_trail_moves_as_the_keys_will(addon: Addon, arm: Any) -> None:
    ob, target = arm
    drag, ghosts = begin(addon, ob)
    offset = Vector((0.1, -0.05, 0.1))
    drag.move(bpy.context, offset)
    drag.finish(bpy.context)
    trail = ghosts.trail + ghosts.shares[:, None] * np.array(offset)
    for frame, place in rigs.on_frames((15, 17, 19, 20, 21, 23, 25), lambda: rigs.position(target)).items():
        assert np.allclose(place, trail[int(frame) - NOW + REACH], atol=1e-5)
    assert begin(addon, ob, 0)[1] is None, "without a range"
