"""A drag follows the 3D cursor. Blender's own operators, which move the cursor, are tested in a window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Quaternion, Vector

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import activate, snapshot

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


@pytest.fixture(params=[True, False], ids=["live", "not live"])
def arm(request: pytest.FixtureRequest) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return an arm, solved once."""
    ob, target = rigs.arm()
    ob.ik_addon.live = request.param
    bpy.context.view_layer.update()
    bpy.ops.ik_addon.solve()
    return ob, target


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
    cursor.location.z += 0.1
    bpy.context.view_layer.update()
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
    bpy.context.view_layer.update()
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


def test_cancelling_restores_everything_exactly(arm: Any, cursor: Any, hold: Any) -> None:
    ob, target = arm
    before, posed = snapshot(), rigs.pose(ob)
    drag = hold()
    cursor.matrix = Matrix.Translation((0.1, 0.0, 0.1)) @ Matrix.Rotation(0.4, 4, Vector((1, 2, 3)))
    bpy.context.view_layer.update()
    assert snapshot() != before
    drag.cancel(bpy.context)
    assert snapshot() == before
    assert np.array_equal(rigs.pose(ob), posed)
    assert tuple(target.rotation_euler) == (0.0, 0.0, 0.0)
    assert (*cursor.location, *cursor.rotation_euler) == AT


def test_the_pole_moves_and_the_chain_bends_towards_it(arm: Any, cursor: Any, hold: Any) -> None:
    ob, target = arm
    pole = rigs.empty("Pole", (1.0, -1.0, 0.5))
    ob.pose.bones["lower"].ik_addon.pole = pole
    bpy.context.view_layer.update()
    drag = hold("pole")
    place = rigs.position(target)
    cursor.location = (-1.0, 1.5, 0.5)
    bpy.context.view_layer.update()
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
    bpy.context.view_layer.update()
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
    bpy.context.view_layer.update()
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
