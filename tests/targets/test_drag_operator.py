"""Drag Target as called by scripts, and what cancelling restores; the mouse is tested in a window."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix, Quaternion, Vector

from tests import rigs
from tests.conftest import Addon
from tests.faults import FAULTS, Limb, on
from tests.reliability.states import activate, refused, snapshot


@pytest.fixture(params=[True, False], ids=["live", "not live"])
def arm(request: pytest.FixtureRequest) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a posed arm, solved once."""
    ob, target = rigs.arm()
    ob.matrix_world = Matrix.Translation((0.2, 0.1, 0.0)) @ Matrix.Rotation(0.5, 4, "Y")
    ob.pose.bones["upper"].rotation_quaternion = (0.9, 0.1, 0.3, -0.2)
    ob.ik_addon.live = request.param
    if not request.param:
        bpy.ops.ik_addon.solve()
    bpy.context.view_layer.update()
    return ob, target


def reached(ob: bpy.types.Object, target: bpy.types.Object) -> bool:
    return bool(np.allclose(rigs.tail(ob, "lower"), rigs.position(target), atol=1e-5))


def test_only_the_targets_location_changes(arm: Any) -> None:
    _ob, target = arm
    parent = rigs.empty("Parent", (1.0, 2.0, 3.0))
    rigs.change(parent, matrix_world=Matrix.Rotation(0.6, 4, "X") @ Matrix.Diagonal((2.0, -1.0, 0.5, 1.0)))
    target.rotation_euler, target.scale = (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)
    target.parent = parent
    target.delta_location = (0.05, 0.0, 0.0)
    turned, size, before = tuple(target.rotation_euler), tuple(target.scale), rigs.position(target)
    bpy.ops.ik_addon.drag_target(offset=(0.1, 0.2, -0.1))
    assert np.allclose(rigs.position(target), np.add(before, (0.1, 0.2, -0.1)), atol=1e-5)
    assert (tuple(target.rotation_euler), tuple(target.scale)) == (turned, size)


def test_a_target_bone_is_moved_by_its_head() -> None:
    ob, _target = rigs.arm()
    other = rigs.limb([(0.5, 0.4, 1.0), (0.7, 0.6, 1.0)], ["base"], name="Controls")
    rigs.add_bones(other, [(0.6, 0.4, 1.1), (0.7, 0.9, 1.2)], ["hand"], parent="base")
    other.matrix_world = Matrix.Rotation(0.3, 4, "Z") @ Matrix.Diagonal((1.0, 1.5, -1.0, 1.0))
    other.pose.bones["base"].rotation_quaternion = (0.9, 0.1, 0.1, 0.3)
    other.pose.bones["hand"].rotation_quaternion = (0.9, 0.3, 0.1, 0.3)
    chain = ob.pose.bones["lower"].ik_addon
    chain.target, chain.target_bone = other, "hand"
    activate(ob, "lower")
    before = rigs.head(other, "hand")
    bpy.ops.ik_addon.drag_target(offset=(0.1, 0.1, 0.2))
    assert np.allclose(rigs.head(other, "hand"), np.add(before, (0.1, 0.1, 0.2)), atol=1e-5)


def test_cancelling_restores_everything_exactly(addon: Addon, arm: Any) -> None:
    drag = addon.module("targets.drag")
    ob, target = arm
    before, posed, report = everything(ob), rigs.pose(ob), addon.report(ob)
    gesture = drag.Drag(bpy.context, ob.pose.bones["lower"])
    for step in range(1, 6):
        gesture.move(bpy.context, Vector((0.05, -0.03, 0.1)) * step)
        assert reached(ob, target) == addon.report(ob).reached
    assert everything(ob) != before
    gesture.cancel(bpy.context)
    assert everything(ob) == before
    assert np.array_equal(rigs.pose(ob), posed)
    assert addon.report(ob) == report
    if not ob.ik_addon.live:
        bpy.ops.ik_addon.restore_pose()
        assert ob.pose.bones["upper"].rotation_quaternion[:] == pytest.approx((0.9, 0.1, 0.3, -0.2))


def test_cancelling_before_any_solve_leaves_no_fk_store(addon: Addon) -> None:
    ob, _target = rigs.arm()
    bpy.context.view_layer.update()
    before = everything(ob)
    gesture = addon.module("targets.drag").Drag(bpy.context, ob.pose.bones["lower"])
    gesture.move(bpy.context, Vector((0.0, 0.1, 0.0)))
    gesture.cancel(bpy.context)
    assert everything(ob) == before
    assert addon.report(ob) is None


def everything(ob: bpy.types.Object) -> dict[str, Any]:
    """Return what `snapshot` sees, and the FK store of each bone."""
    stores = [bone.ik_addon.base for bone in ob.pose.bones]
    bases = [(s.stored, s.noted, s.rotation_mode, tuple(s.channels), tuple(s.written)) for s in stores]
    return {**snapshot(), "bases": bases}


def test_undraggable_goals_are_refused() -> None:
    for make, why in (
        (lambda limb: activate(limb.ob, None), "No chain is active. Select a bone of a chain"),
        (on("chain", enabled=False), "is disabled"),
        (FAULTS["no target"].make, "no target"),
        (FAULTS["constraint"].make, "Mute it"),
    ):
        ob, _target = rigs.arm()
        make(Limb(ob.pose.bones["lower"]))
        with refused(why):
            bpy.ops.ik_addon.drag_target(offset=(0.1, 0.0, 0.0))


def test_g_moves_a_target_only_where_that_takes_the_bone_along(addon: Addon) -> None:
    connected_end = addon.module("ui.operators.drag").connected_end
    ob, _target = rigs.arm()
    ob.ik_addon.live = True
    bpy.ops.object.mode_set(mode="POSE")
    tip = ob.pose.bones["lower"]
    addon.module("core.compat").select_bone(tip)
    assert connected_end(bpy.context) == tip
    tip.ik_addon.influence = 0.5
    assert connected_end(bpy.context) is None


def legs() -> tuple[bpy.types.Object, dict[str, bpy.types.Object]]:
    """Return an armature with two legs on chains, in Pose Mode with the left shin active, and the targets."""
    ob, targets = rigs.armature(), {}
    for side, x in (("L", 1.0), ("R", -1.0)):
        rigs.add_bones(ob, [(x, 0, 1), (x, -0.1, 0.5), (x, 0, 0)], [f"thigh.{side}", f"shin.{side}"])
        targets[side] = rigs.empty(f"Target.{side}", (x, 0.0, 0.2))
        targets[side].rotation_mode = "QUATERNION"
        rigs.chain(ob, f"shin.{side}", targets[side], 2)
    activate(ob, "shin.L")
    bpy.ops.object.mode_set(mode="POSE")
    ob.pose.use_mirror_x = True
    return ob, targets


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("live", [False, True])
def test_x_axis_mirror_takes_the_other_sides_target_along(addon: Addon, live: bool, relative: bool) -> None:
    drag = addon.module("targets.drag")
    ob, targets = legs()
    ob.matrix_world = Matrix.Translation((0.3, 0.2, 0.0)) @ Matrix.Rotation(0.5, 4, "Z")
    for target in targets.values():
        target.location = ob.matrix_world @ target.location
    targets["R"].location += ob.matrix_world.to_3x3() @ Vector((0.0, 0.0, 0.1))
    ob.ik_addon.live, ob.pose.use_mirror_relative = live, relative
    bpy.context.view_layer.update()
    inner = ob.matrix_world.inverted()
    before = {side: target.matrix_world.copy() for side, target in targets.items()}
    gesture = drag.Drag(bpy.context, ob.pose.bones["shin.L"])
    turn = Matrix.Rotation(0.4, 3, Vector((1, 2, 3)).normalized()).to_quaternion()
    gesture.move(bpy.context, Vector((0.1, -0.2, 0.15)), turn)
    gesture.settle(bpy.context)
    places = {side: inner @ target.matrix_world.translation for side, target in targets.items()}
    across = Vector((-1.0, 1.0, 1.0))
    if relative:
        moved = {side: places[side] - inner @ before[side].translation for side in targets}
        assert (moved["L"] * across - moved["R"]).length < 1e-6
    else:
        assert (places["L"] * across - places["R"]).length < 1e-6
    flip = Matrix.Diagonal(across)
    turned = {side: inner.to_3x3() @ target.matrix_world.to_3x3() for side, target in targets.items()}
    started = {side: inner.to_3x3() @ before[side].to_3x3() for side in targets}
    own = {side: turned[side] @ started[side].inverted() for side in targets}
    assert np.allclose(flip @ own["L"] @ flip, own["R"], atol=1e-6)
    for side, target in targets.items():
        assert np.allclose(rigs.tail(ob, f"shin.{side}"), rigs.position(target), atol=1e-4)
    gesture.cancel(bpy.context)
    assert {side: target.matrix_world for side, target in targets.items()} == before


@pytest.mark.parametrize("why", ["object mode", "off", "disabled", "locked", "same target"])
def test_x_axis_mirror_takes_nothing_along_that_it_should_not(addon: Addon, why: str) -> None:
    ob, targets = legs()
    other = ob.pose.bones["shin.R"].ik_addon
    if why == "object mode":
        bpy.ops.object.mode_set(mode="OBJECT")
    elif why == "same target":
        other.target = targets["L"]
    ob.pose.use_mirror_x, other.enabled = why != "off", why != "disabled"
    targets["R"].lock_location = [why == "locked"] * 3
    gesture = addon.module("targets.drag").Drag(bpy.context, ob.pose.bones["shin.L"])
    gesture.move(bpy.context, Vector((0.1, 0.0, 0.1)))
    assert targets["L"].location[:] == pytest.approx((1.1, 0.0, 0.3), abs=1e-6)
    assert targets["R"].location[:] == pytest.approx((-1.0, 0.0, 0.2), abs=1e-6)


# ---- the owner of a goal is moved exactly, or not at all

TURN = Quaternion((0.4, 1.0, -0.3), 0.6)


@pytest.fixture
def handle(addon: Addon) -> Any:
    def taken(ob: bpy.types.Object, bone: str, *, turns: bool = False) -> Any:
        return addon.module("targets.drag").Handle(addon.module("core.goals").Goal(ob, bone, turns))

    return taken


def test_a_bone_turns_about_its_head_as_requested(handle: Any) -> None:
    ob = rigs.limb([(0.2, 0.1, 0.3), (0.2, 0.9, 0.5)], ["base"])
    rigs.add_bones(ob, [(0.5, 0.5, 0.5), (0.9, 0.6, 0.8)], ["control"], parent="base")
    ob.matrix_world = Euler((0.3, 0.2, 0.1)).to_matrix().to_4x4()
    ob.pose.bones["base"].rotation_quaternion = (0.8, 0.3, 0.2, 0.4)
    bone = ob.pose.bones["control"]
    bone.rotation_quaternion = (0.9, 0.0, 0.3, 0.2)
    for inherits in (True, False):
        bone.bone.use_inherit_rotation = inherits
        head, frame = rigs.head(ob, "control"), (ob.matrix_world @ bone.matrix).to_quaternion()
        handle(ob, "control").move(Vector((0.1, 0.0, 0.2)), TURN)
        assert np.allclose(rigs.head(ob, "control") - head, (0.1, 0.0, 0.2), atol=1e-5)
        turned = (ob.matrix_world @ bone.matrix).to_quaternion()
        assert abs((TURN @ frame).normalized().dot(turned.normalized())) == pytest.approx(1.0, abs=1e-5)


def test_euler_angles_continue_from_their_values(handle: Any) -> None:
    goal = rigs.empty("Goal")
    goal.rotation_euler = (0.0, 0.0, 7.0)  # more than a full turn
    bpy.context.view_layer.update()
    handle(goal, "").move(Vector(), Quaternion((0.0, 0.0, 1.0), 0.1))
    assert tuple(goal.rotation_euler) == pytest.approx((0.0, 0.0, 7.1), abs=1e-5)


def test_locked_channels_keep_their_exact_values(handle: Any) -> None:
    goal = rigs.empty("Goal", (1.0, 2.0, 3.0))
    goal.rotation_euler = (0.3, 0.2, 0.1)
    goal.lock_location[1] = goal.lock_rotation[2] = True
    bpy.context.view_layer.update()
    before = goal.location.y, goal.rotation_euler.z
    handle(goal, "").move(Vector((0.1, 0.2, 0.3)), TURN)
    assert (goal.location.y, goal.rotation_euler.z) == before
    assert goal.location.x == pytest.approx(1.1)
    assert goal.rotation_euler.x != pytest.approx(0.3)


def test_turning_alone_needs_no_unlocked_location(handle: Any, addon: Addon) -> None:
    goal = rigs.empty("Goal")
    rigs.change(goal, lock_location=(True, True, True))
    handle(goal, "", turns=True)
    refused = addon.module("core.translation.sentences").UserError
    with pytest.raises(refused, match="location of 'Goal' is locked"):
        handle(goal, "")
    goal.lock_location, goal.lock_rotation = (False, False, False), (True, True, True)
    handle(goal, "")
    with pytest.raises(refused, match="rotation of 'Goal' is locked"):
        handle(goal, "", turns=True)


def test_scaled_and_mirrored_matrices_give_the_rotation_blender_shows(addon: Addon) -> None:
    target: Any = rigs.empty("Target")
    target.rotation_mode = "QUATERNION"
    rng = np.random.default_rng(3)
    basis = np.repeat(np.eye(4)[None], 40, axis=0)
    for own in basis:
        size = rng.uniform(0.2, 3.0, 3) * rng.choice([-1.0, 1.0], 3)
        own[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0] * size
        own[:3, 3] = rng.normal(size=3)
    movable = addon.module("core.goals")
    rows = movable.Goal(target, "", turns=True).rows(basis)
    turned = rows[:, addon.module("core.channels").FIELDS["rotation_quaternion"]]
    expected = []
    for own in basis:
        target.matrix_basis = own.T.tolist()  # Blender takes columns
        expected.append(target.rotation_quaternion[:])
    assert np.abs(np.abs((turned * np.array(expected)).sum(axis=1)) - 1.0).max() < 1e-6
    assert np.abs(rows[:, :3] - basis[:, :3, 3]).max() < 1e-6


# ---- a drag follows the 3D cursor; Blender's own operators, which move the cursor, are tested in a window


ROTATE: Any = bpy.ops.transform.rotate
AT = (0.125, 0.25, 0.5, 0.5, 0.25, 0.125)
"""Initial location and rotation of the cursor."""


def following() -> list[Any]:
    """Return the handlers that follow the cursor."""
    return [function for function in bpy.app.handlers.depsgraph_update_post if "cursor" in function.__module__]


@pytest.fixture
def cursor() -> Any:
    """Return the 3D cursor, placed somewhere."""
    found = bpy.context.scene.cursor
    found.rotation_mode = "XYZ"
    found.location, found.rotation_euler = AT[:3], AT[3:]
    return found


def lift(cursor: Any) -> None:
    rigs.shift(cursor, z=0.1)


@pytest.fixture
def hold(addon: Addon) -> Iterator[Any]:
    """Return a function that grabs a goal of the active chain; the goal is released at the end."""
    drags = []

    def begin(role: str = "target") -> Any:
        tip = addon.module("ui.operators.active").active_chain(bpy.context)
        drag = addon.module("targets.drag").Drag(bpy.context, tip, role)
        drags.append(addon.module("targets.cursor").CursorDrag(bpy.context, drag))
        return drags[-1]

    yield begin
    assert not following()


def test_a_target_that_is_only_moved_keeps_its_exact_rotation(arm: Any, cursor: Any, hold: Any) -> None:
    _ob, target = arm
    target.rotation_mode = "QUATERNION"
    target.rotation_quaternion = (0.3, 0.4, -0.2, 0.9)  # not normalized
    bpy.context.view_layer.update()
    before = tuple(target.rotation_quaternion)
    drag = hold()
    lift(cursor)
    drag.end(bpy.context)
    assert tuple(target.rotation_quaternion) == before


@pytest.mark.parametrize("mode", ["QUATERNION", "XYZ", "ZXY", "AXIS_ANGLE"])
@pytest.mark.parametrize("mirrored", [False, True], ids=["", "mirrored"])
def test_the_target_turns_with_the_cursor(cursor: Any, hold: Any, mode: Any, mirrored: bool) -> None:
    _ob, target = rigs.arm()
    parent = rigs.empty("Parent", (1.0, 2.0, 3.0))
    size = -2.0 if mirrored else 2.0
    parent.matrix_world = Matrix.Rotation(0.6, 4, "X") @ Matrix.Diagonal((2.0, 2.0, size, 1.0))
    target.parent, target.rotation_mode = parent, mode
    target.rotation_euler = target.rotation_quaternion[1:] = target.rotation_axis_angle[:3] = (0.5, -0.4, 0.3)
    bpy.context.view_layer.update()
    before = target.matrix_world.copy()
    turn = Quaternion((0.3, 1.0, -0.5), 0.7)
    drag = hold()
    cursor.matrix = Matrix.Translation(cursor.location) @ (turn @ cursor.matrix.to_quaternion()).to_matrix().to_4x4()
    bpy.context.view_layer.update()
    drag.end(bpy.context)
    assert np.allclose(target.matrix_world.to_3x3(), turn.to_matrix() @ before.to_3x3(), atol=1e-5)
    assert np.allclose(target.matrix_world.translation, before.translation, atol=1e-5)


@pytest.mark.parametrize("how", ["saved", "disabled"])
def test_saving_or_disabling_the_extension_cancels_the_drag(
    addon: Addon, arm: Any, cursor: Any, hold: Any, tmp_path: Path, how: str
) -> None:
    ob, target = arm
    before = rigs.position(target), rigs.channels(ob)
    hold()
    cursor.location.z += 0.1
    assert not np.allclose(rigs.position(target), before[0])
    if how == "saved":
        rigs.save_and_open(tmp_path / "dragged.blend")
        ob, target, cursor = bpy.data.objects["Rig"], bpy.data.objects["Target"], bpy.context.scene.cursor
    else:
        addon.module("registration").unregister()
        addon.module("registration").register()
        bpy.context.view_layer.update()
    assert (*cursor.location, *cursor.rotation_euler) == AT
    assert np.allclose(rigs.position(target), before[0], atol=1e-7)
    assert np.allclose(rigs.channels(ob), before[1], atol=1e-6)


def test_cancelling_a_drag_by_the_cursor_restores_everything(arm: Any, cursor: Any, hold: Any) -> None:
    ob, target = arm
    before, posed = snapshot(), rigs.pose(ob)
    drag = hold()
    rigs.change(cursor, matrix=Matrix.Translation((0.1, 0.0, 0.1)) @ Matrix.Rotation(0.4, 4, Vector((1, 2, 3))))
    assert snapshot() != before
    drag.cancel(bpy.context)
    assert snapshot() == before
    assert np.array_equal(rigs.pose(ob), posed)
    assert tuple(target.rotation_euler) == (0.0, 0.0, 0.0)
    assert (*cursor.location, *cursor.rotation_euler) == AT


def test_the_pole_moves_and_the_chain_bends_towards_it(arm: Any, cursor: Any, hold: Any) -> None:
    ob, target = arm
    pole = rigs.empty("Pole", (1.0, -1.0, 0.5))
    rigs.change(ob.pose.bones["lower"].ik_addon, pole=pole)
    drag = hold("pole")
    place = rigs.position(target)
    rigs.change(cursor, location=(-1.0, 1.5, 0.5))
    drag.end(bpy.context)
    assert np.allclose(rigs.position(pole), (-1.0, 1.5, 0.5), atol=1e-6)
    assert np.array_equal(rigs.position(target), place)
    root, elbow = rigs.head(ob, "upper"), rigs.head(ob, "lower")
    line = (place - root) / np.linalg.norm(place - root)
    bend, aim = ((at - root) - ((at - root) @ line) * line for at in (elbow, rigs.position(pole)))
    assert bend @ aim == pytest.approx(np.linalg.norm(bend) * np.linalg.norm(aim), rel=1e-4)


def test_nothing_follows_the_cursor_after_opening_another_file(addon: Addon, arm: Any, cursor: Any, hold: Any) -> None:
    hold()
    rigs.new_file()
    assert not following()
    _ob, target = rigs.arm()
    before = rigs.position(target)
    again = hold()
    bpy.context.scene.cursor.location.z += 0.1
    again.end(bpy.context)
    assert np.allclose(rigs.position(target) - before, (0.0, 0.0, 0.1), atol=1e-6)
    assert addon.module("targets.cursor").current is None


def test_a_second_drag_takes_over(arm: Any, cursor: Any, hold: Any) -> None:
    _ob, target = arm
    hold()
    cursor.location.z += 0.1
    place = rigs.position(target)
    second = hold()
    assert len(following()) == 1
    second.cancel(bpy.context)
    assert np.array_equal(rigs.position(target), place)


def test_the_macros_steps_make_a_drag(arm: Any, cursor: Any) -> None:
    ob, target = arm
    before = rigs.position(target)
    assert bpy.ops.ik_addon.release() == {"CANCELLED"}
    activate(ob, None)
    bpy.ops.ik_addon.goal_hold(tip="lower", role="TARGET")
    assert ob.data.bones.active.name == "lower"
    cursor.location.z += 0.1
    bpy.ops.ik_addon.release()
    assert np.allclose(rigs.position(target) - before, (0.0, 0.0, 0.1), atol=1e-6)
    assert np.allclose(rigs.tail(ob, "lower"), rigs.position(target), atol=1e-5)
    with pytest.raises(RuntimeError, match="has no pole"):
        bpy.ops.ik_addon.goal_hold(role="POLE")


def test_blenders_transforms_are_restored_when_the_extension_is_disabled(addon: Addon) -> None:
    follower = addon.module("targets.cursor")

    def found() -> list[bool]:
        transforms: tuple[Any, ...] = (ROTATE, bpy.ops.transform.trackball, bpy.ops.transform.resize)
        return [follower.SETTING in transform.get_rna_type().properties for transform in transforms]

    assert ROTATE.get_rna_type().properties[follower.SETTING].is_hidden
    assert found() == [True] * 3
    follower.unregister()
    assert found() == [False] * 3
    follower.register()
    follower.register()
    assert found() == [True] * 3
