"""What an edit of a solved bone means: a hand moves the target or the pole, anything else is FK, and FK is keyed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Quaternion, Vector

from tests import rigs

if TYPE_CHECKING:
    from tests.conftest import Addon

FK = (0.9, 0.1, 0.3, 0.1)


def posed(*selected: str, **settings: Any) -> bpy.types.Object:
    """Return a live arm in Pose Mode, posed in FK, with bones selected."""
    ob, _target = rigs.arm()
    for name, value in settings.items():
        setattr(ob.pose.bones["lower"].ik_addon, name, value)
    ob.pose.bones["upper"].rotation_quaternion = Quaternion(FK).normalized()
    bpy.context.view_layer.update()
    start(ob, *selected)
    return ob


def start(ob: bpy.types.Object, *selected: str) -> None:
    """Turn Live on and select bones in Pose Mode; begin to record undo steps."""
    ob.ik_addon.live = True
    bpy.context.view_layer.objects.active = ob
    ob.select_set(True)
    bpy.ops.object.mode_set(mode="POSE")
    select(ob, *selected)
    bpy.context.view_layer.update()
    bpy.ops.ed.undo_push(message="Posed")


def select(ob: bpy.types.Object, *names: str) -> None:
    for bone in ob.pose.bones:
        holder: Any = bone if bpy.app.version >= (5, 0, 0) else bone.bone
        holder.select = bone.name in names


def rig() -> bpy.types.Object:
    """The armature: undo gives it a new address."""
    return bpy.data.objects["Rig"]


def target() -> bpy.types.Object:
    return bpy.data.objects["Target"]


def undo() -> None:
    bpy.ops.ed.undo()
    bpy.context.view_layer.update()


def redo() -> None:
    bpy.ops.ed.redo()
    bpy.context.view_layer.update()


def keyed(addon: Addon, bone: str = "upper", field: str = "rotation_quaternion") -> list[tuple[float, ...]]:
    """Return the values of the keys of a bone, by frame."""
    owner = addon.module("compat").curve_owner(rig())
    path = rig().pose.bones[bone].path_from_id(field)
    curves = [] if owner is None else [curve for curve in owner.fcurves if curve.data_path == path]
    return list(zip(*([key.co.y for key in curve.keyframe_points] for curve in curves), strict=True))


def fk_of(bone: str = "upper") -> Quaternion:
    """Turn Live off to see the FK pose."""
    rig().ik_addon.live = False
    bpy.context.view_layer.update()
    return rig().pose.bones[bone].rotation_quaternion.copy()


def insert_key(ob: bpy.types.Object, how: str) -> None:
    """Key the rotation of the selected bones, as one undo step."""
    if how == "menu":
        area = next(area for area in bpy.context.window.screen.areas if area.type == "VIEW_3D")
        with bpy.context.temp_override(area=area):
            bpy.ops.anim.keyframe_insert_by_name(type="Rotation")
    else:
        for bone in ob.pose.bones:
            bone.keyframe_insert("rotation_quaternion")
    bpy.ops.ed.undo_push(message="Insert Keyframe")
    bpy.context.view_layer.update()


# ---- keys


@pytest.mark.parametrize("how", ["menu", "script"])
def test_insert_keyframe_keys_the_fk_pose(addon: Addon, how: str) -> None:
    ob = posed("upper", "lower")
    fk, shown = Quaternion(FK).normalized(), rigs.pose(ob)
    insert_key(ob, how)
    assert keyed(addon) == [pytest.approx(fk[:], abs=1e-6)]
    assert np.abs(rigs.pose(ob) - shown).max() < 1e-6, "the solution is still shown"
    for frame in (2, 1):
        bpy.context.scene.frame_set(frame)
    assert np.abs(rigs.pose(ob) - shown).max() < 1e-5
    bpy.ops.ik_addon.restore_pose()
    assert ob.pose.bones["upper"].rotation_quaternion[:] == pytest.approx(fk[:], abs=1e-6)


def test_keys_are_fk_through_undo_and_redo(addon: Addon) -> None:
    ob = posed("upper", "lower")
    fk = Quaternion(FK).normalized()
    insert_key(ob, "menu")
    bpy.context.scene.cursor.location.x = 1.0
    bpy.ops.ed.undo_push(message="Something else")
    for _ in range(2):
        undo()
        assert keyed(addon) == [pytest.approx(fk[:], abs=1e-6)]
        undo()
        assert keyed(addon) == []
        redo()
        assert keyed(addon) == [pytest.approx(fk[:], abs=1e-6)]
        redo()
        assert keyed(addon) == [pytest.approx(fk[:], abs=1e-6)]
    assert fk_of()[:] == pytest.approx(fk[:], abs=1e-6)


def test_a_replaced_key_holds_the_fk_pose_of_its_frame(addon: Addon) -> None:
    ob = posed("upper", "lower")
    rigs.key(ob.pose.bones["upper"], "rotation_quaternion", {1: (1, 0, 0, 0), 21: (0.8, 0, 0.6, 0)})
    bpy.context.scene.frame_set(11)
    before = keyed(addon)
    insert_key(ob, "menu")
    (first, middle, last) = keyed(addon)
    assert [first, last] == before
    assert middle == pytest.approx((0.9, 0.0, 0.3, 0.0), abs=1e-6)
    insert_key(ob, "menu")
    assert keyed(addon) == [first, pytest.approx(middle, abs=1e-6), last]


def test_a_script_that_steps_through_frames_keys_what_it_sees(addon: Addon) -> None:
    ob = posed()
    rigs.key(target(), "location", {1: (0.6, 0.5, 1.0), 5: (0.2, 0.7, 1.2)})
    shown = []
    for frame in range(1, 6):
        bpy.context.scene.frame_set(frame)
        shown.append(ob.pose.bones["upper"].rotation_quaternion[:])
        ob.pose.bones["upper"].keyframe_insert("rotation_quaternion")
    assert np.allclose(keyed(addon), shown, atol=1e-6)
