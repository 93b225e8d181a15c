"""What an edit of a solved bone means: a hand moves the target or the pole, anything else is FK, and FK is keyed."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import bpy
import numpy as np
import pytest
from mathutils import Quaternion, Vector

from tests import rigs
from tests.conftest import Addon
from tests.faults import Limb, on

FK = (0.9, 0.1, 0.3, 0.1)
PLACE = (0.6, 0.5, 1.0)
"""Where the target is."""


def posed(*selected: str, **settings: Any) -> bpy.types.Object:
    """Return a live arm in Pose Mode, posed in FK, with bones selected."""
    ob, _target = rigs.arm()
    rigs.change(ob.pose.bones["lower"].ik_addon, **settings)
    rigs.change(ob.pose.bones["upper"], rotation_quaternion=Quaternion(FK).normalized())
    start(ob, *selected)
    return ob


def start(ob: bpy.types.Object, *selected: str) -> None:
    """Turn Live on and select bones in Pose Mode; begin to record undo steps."""
    ob.ik_addon.live = True
    bpy.context.view_layer.objects.active = ob
    ob.select_set(True)
    bpy.ops.object.mode_set(mode="POSE")
    rigs.select_bones(ob, *selected)
    bpy.context.view_layer.update()
    bpy.ops.ed.undo_push(message="Posed")


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


def keyed(bone: str = "upper", field: str = "rotation_quaternion") -> list[tuple[float, ...]]:
    """Return the values of the keys of a bone, by frame."""
    curves = rigs.fcurves(rig(), rig().pose.bones[bone].path_from_id(field))
    return list(zip(*([key.co.y for key in curve.keyframe_points] for curve in curves), strict=True))


def assert_is_fk(bone: str) -> None:
    """Assert that an edit of a bone left the target alone and changed the FK pose."""
    assert target().matrix_world.translation[:] == pytest.approx(PLACE, abs=1e-6)
    assert fk_of(bone).rotation_difference(Quaternion(FK) if bone == "upper" else Quaternion()).angle > 0.1


def fk_of(bone: str = "upper") -> Quaternion:
    """Turn Live off to see the FK pose."""
    rigs.change(rig().ik_addon, live=False)
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
def test_insert_keyframe_keys_the_fk_pose(how: str) -> None:
    ob = posed("upper", "lower")
    fk, shown = Quaternion(FK).normalized(), rigs.pose(ob)
    insert_key(ob, how)
    assert keyed() == [pytest.approx(fk[:], abs=1e-6)]
    assert np.abs(rigs.pose(ob) - shown).max() < 1e-6, "the solution is still shown"
    assert np.abs(rigs.poses_at(ob, (2, 1))[1] - shown).max() < 1e-5
    bpy.ops.ik_addon.restore_pose()
    assert ob.pose.bones["upper"].rotation_quaternion[:] == pytest.approx(fk[:], abs=1e-6)


def test_keys_are_fk_through_undo_and_redo() -> None:
    ob = posed("upper", "lower")
    fk, before = Quaternion(FK).normalized(), seen()
    insert_key(ob, "menu")
    after = seen()
    assert keyed() == [pytest.approx(fk[:], abs=1e-6)]
    slide(1.0)
    assert_steps(before, after, after)
    assert fk_of()[:] == pytest.approx(fk[:], abs=1e-6)


def test_a_replaced_key_holds_the_fk_pose_of_its_frame() -> None:
    ob = posed("upper", "lower")
    rigs.key(ob.pose.bones["upper"], "rotation_quaternion", {1: (1, 0, 0, 0), 21: (0.8, 0, 0.6, 0)})
    bpy.context.scene.frame_set(11)
    before = keyed()
    insert_key(ob, "menu")
    (first, middle, last) = keyed()
    assert [first, last] == before
    assert middle == pytest.approx((0.9, 0.0, 0.3, 0.0), abs=1e-6)
    insert_key(ob, "menu")
    assert keyed() == [first, pytest.approx(middle, abs=1e-6), last]


def test_a_script_that_steps_through_frames_keys_what_it_sees() -> None:
    ob = posed()
    rigs.key(target(), "location", {1: (0.6, 0.5, 1.0), 5: (0.2, 0.7, 1.2)})
    shown = []
    for frame in range(1, 6):
        bpy.context.scene.frame_set(frame)
        shown.append(ob.pose.bones["upper"].rotation_quaternion[:])
        ob.pose.bones["upper"].keyframe_insert("rotation_quaternion")
    assert np.allclose(keyed(), shown, atol=1e-6)


# ---- transforms by hand


def turn(angle: float = 0.3, axis: str = "Y", *, by_hand: bool = True) -> None:
    """Rotate the selected bones as Blender does: a hand's operator can be repeated, a script's can't."""
    bpy.ops.transform.rotate("EXEC_DEFAULT", by_hand, value=angle, orient_axis=axis)
    bpy.context.view_layer.update()


def assert_reached() -> None:
    bpy.context.view_layer.update()
    assert np.linalg.norm(rigs.tail(rig(), "lower") - rigs.position(target())) < 1e-5


def assert_same(pose: Any, tolerance: float = 1e-5) -> None:
    bpy.context.view_layer.update()
    assert np.abs(rigs.pose(rig()) - pose).max() < tolerance


class Seen(NamedTuple):
    """What an edit may change."""

    places: dict[str, tuple[float, float, float]]
    """Of targets and poles, by name."""
    keys: dict[str, Any]
    """Frames and values of each F-curve, by the name of the object."""
    actions: int
    """How many there are in the file."""
    pose: Any


def seen() -> Seen:
    bpy.context.view_layer.update()
    goals = {ob.name: (ob.location.x, ob.location.y, ob.location.z) for ob in bpy.data.objects if ob.type == "EMPTY"}
    curves = {ob.name: rigs.fcurves(ob) for ob in bpy.data.objects}
    keys = {name: [[tuple(key.co) for key in own.keyframe_points] for own in every] for name, every in curves.items()}
    return Seen(goals, {name: own for name, own in keys.items() if own}, len(bpy.data.actions), rigs.pose(rig()))


def assert_steps(*states: Seen) -> None:
    """Assert that undo leads back through states, which are given in order, and redo forward again; twice."""
    for _ in range(2):
        for step, wanted in [*((undo, each) for each in states[-2::-1]), *((redo, each) for each in states[1:])]:
            step()
            assert seen()[:-1] == wanted[:-1]
            assert_same(wanted.pose)


def slide(value: float) -> None:
    """Change a setting in a panel: a step that no operator makes."""
    bpy.context.scene.cursor.location.x = value
    bpy.ops.ed.undo_push(message="Changed a setting")


def leg(*selected: str, limb: int = 2) -> bpy.types.Object:
    """Return a live leg with a foot that takes its target's orientation, and a pole."""
    ob = rigs.limb([(0, 0, 3), (0, 0, 2)], ["hips"])
    rigs.add_bones(
        ob,
        [(0, 0, 2), (0, -0.1, 1), (0, 0, 0), (0, -0.3, -0.1)],
        ["thigh", "shin", "foot"],
        parent="hips",
        connect=False,
    )
    target, pole = rigs.empty("Target", (0.1, -0.2, 0.4)), rigs.empty("Pole", (0.2, -2.0, 1.0))
    tip = rigs.chain(ob, "shin" if limb == 2 else "foot", target, limb, pole=pole)
    if limb == 2:
        tip.ik_addon.end_bone = "foot"
        tip.ik_addon.use_end_rotation = True
    else:
        tip.ik_addon.use_rotation = True
    rigs.change(ob.pose.bones["thigh"], rotation_quaternion=Quaternion(FK).normalized())
    start(ob, *selected)
    return ob


def test_a_tip_turned_by_hand_takes_its_target_along() -> None:
    posed("lower")
    before = target().location.copy()
    turn()
    assert (target().location - before).length > 0.1
    assert_reached()
    assert fk_of()[:] == pytest.approx(Quaternion(FK).normalized()[:], abs=1e-6)


def test_an_arm_without_a_pole_leaves_its_upper_bone_to_fk() -> None:
    posed("upper")
    states = [seen()]
    for _ in range(2):
        turn(0.5)
        states.append(seen())
    assert_steps(*states)
    assert_is_fk("upper")


def test_an_edit_by_a_script_after_one_by_hand_is_fk() -> None:
    ob = posed("lower")
    turn()
    before = target().location.copy()
    rigs.change(ob.pose.bones["lower"], rotation_quaternion=(0.8, 0.0, 0.6, 0.0))
    assert target().location == before
    assert fk_of("lower")[:] == pytest.approx((0.8, 0.0, 0.6, 0.0), abs=1e-6)


def test_an_edit_by_hand_is_one_undo_step() -> None:
    posed("lower")
    first = seen()
    turn()
    second = seen()
    assert second.places != first.places
    assert_steps(first, second)
    slide(1.0)
    turn(0.2)
    assert_steps(first, second, second, seen())


@pytest.mark.parametrize("limb", [2, 3])
def test_a_foot_turned_by_hand_takes_its_targets_orientation_along(limb: int) -> None:
    leg("foot", limb=limb)
    rotation = target().rotation_euler.to_quaternion()
    before = seen().places
    turn(0.4, "X")
    assert rotation.rotation_difference(target().rotation_euler.to_quaternion()).angle == pytest.approx(0.4, abs=1e-4)
    if limb == 2:
        assert target().location[:] == pytest.approx(before["Target"], abs=1e-5)
    assert seen().places["Pole"] == before["Pole"]


def test_one_edit_of_two_armatures_is_one_undo_step() -> None:
    posed("lower")
    bpy.ops.object.mode_set(mode="OBJECT")
    rig().name, target().name = "Left Rig", "Left"
    right, goal = rigs.arm()
    right.location.x = goal.location.x = 5.0
    bpy.data.objects["Left Rig"].select_set(True)
    start(right, "lower")

    before = seen()
    turn()
    after = seen()
    assert all(after.places[name] != before.places[name] for name in ("Left", "Target"))
    assert_steps(before, after)


@pytest.mark.parametrize("how", ["paste", "turn"])
def test_what_blender_only_rounds_is_no_edit(how: str) -> None:
    posed("upper")
    bpy.ops.pose.copy()
    if how == "paste":
        target().location.x += 1e-7  # as if the pose had been solved with other rounding
        bpy.context.view_layer.update()
        paste()
    else:
        turn(1e-7)
    assert fk_of()[:] == pytest.approx(Quaternion(FK).normalized()[:], abs=1e-6)


@pytest.mark.parametrize("softness", [0.0, 0.3])
def test_a_foot_moved_by_hand_takes_its_target_along(softness: float) -> None:
    ob = leg("foot")
    rigs.change(ob.pose.bones["shin"].ik_addon, softness=softness)
    place = rigs.head(ob, "foot")
    bpy.ops.transform.translate("EXEC_DEFAULT", True, value=(0.05, 0.1, 0.2))
    bpy.context.view_layer.update()
    assert (target().location - Vector(place))[:] == pytest.approx((0.05, 0.1, 0.2), abs=1e-5)
    assert softness or rigs.head(rig(), "foot") == pytest.approx(target().location[:], abs=1e-5)


@pytest.mark.parametrize("bone", ["thigh", "shin"])
def test_a_leg_bone_turned_by_hand_takes_the_pole_along(bone: str) -> None:
    leg(bone)
    before, knee = seen(), rigs.head(rig(), "shin")
    turn(0.3, "Z")
    after = seen()
    assert after.places["Target"] == before.places["Target"]
    assert np.linalg.norm(np.subtract(after.places["Pole"], before.places["Pole"])) > 0.1
    assert np.linalg.norm(rigs.head(rig(), "shin") - knee) > 0.02, "the knee follows"
    assert rigs.head(rig(), "foot") == pytest.approx(after.places["Target"], abs=1e-5)
    assert_steps(before, after)


def test_a_knee_goes_where_the_thigh_takes_it() -> None:
    ob = leg("thigh")
    start, place = rigs.head(ob, "thigh"), Vector(rigs.position(target()))
    line = (place - Vector(start)).normalized()
    rows = ob.pose.bones["thigh"].rotation_quaternion.copy()
    turn(0.3, "Z")
    shown = Vector(rigs.head(rig(), "shin")) - Vector(start)
    rig().ik_addon.live = False
    rigs.change(rig().pose.bones["thigh"], rotation_quaternion=rows)
    turn(0.3, "Z", by_hand=False)
    wanted = Vector(rigs.head(rig(), "shin")) - Vector(start)
    across = [(v - v.dot(line) * line).normalized() for v in (shown, wanted)]
    assert across[0].dot(across[1]) > 0.9999


@pytest.mark.parametrize("influence", [0.1, 0.5, 0.9])
def test_a_tip_between_fk_and_ik_is_shown_where_the_hand_puts_it(influence: float) -> None:
    ob = posed("lower", influence=influence)
    fk, first = Quaternion(FK).normalized(), seen()
    root, reach = Vector(rigs.head(ob, "lower")), Vector(rigs.tail(ob, "lower")) - Vector(rigs.head(ob, "lower"))
    ways = [root + Quaternion((0, 1, 0), angle) @ reach for angle in (0.3, -0.3)]  # Blender 4 turns the other way
    turn()
    (wanted,) = (way for way in ways if (Vector(rigs.tail(rig(), "lower")) - way).length < 1e-5)
    assert target().location[:] == pytest.approx(wanted[:], abs=1e-5)
    assert_steps(first, seen())
    undo()
    assert fk_of()[:] == pytest.approx(fk[:], abs=1e-6)
    redo()
    rig().pose.bones["lower"].ik_addon.influence = 0.0
    assert rigs.tail(rig(), "lower") == pytest.approx(wanted[:], abs=1e-5), "FK has followed"


@pytest.mark.parametrize("name", ["foot", "thigh", "shin"])
def test_a_leg_between_fk_and_ik_is_shown_as_the_hand_poses_it(name: str) -> None:
    ob = leg(name)
    rigs.change(ob.pose.bones["shin"].ik_addon, influence=0.4)
    bpy.ops.ed.undo_push(message="Blended")
    start_pose = {bone.name: bone.matrix.copy() for bone in ob.pose.bones}
    turn(0.3)
    shown = {bone.name: bone.matrix.copy() for bone in rig().pose.bones}
    if name == "foot":
        turned = shown[name].to_quaternion() @ start_pose[name].to_quaternion().inverted()
        assert abs(turned.to_axis_angle()[0].y) > 0.999
        assert abs(turned.angle) == pytest.approx(0.3, abs=1e-4)
        assert np.allclose(shown[name].translation, start_pose[name].translation, atol=1e-4)
    else:
        assert np.allclose(shown["foot"].translation, target().location, atol=1e-4)


def _follow(limb: Limb) -> None:
    limb.chain.target, limb.chain.target_bone = rigs.limb(rigs.straight(2), ["one", "two"], "Other"), "two"
    start(limb.ob, "lower")


def _hold(limb: Limb) -> None:
    limb.target.constraints.new("COPY_LOCATION").target = rigs.empty("Place", PLACE)


UNMOVABLE: Mapping[str, Callable[[Limb], object]] = {
    "no influence": on("chain", influence=0.0),
    "disabled": on("chain", enabled=False),
    "linked bone": _follow,
    "locked": on("target", lock_location=(True, True, True)),
    "constraint": _hold,
    "driver": lambda limb: setattr(limb.target.driver_add("location", 0).driver, "expression", str(PLACE[0])),
}


@pytest.mark.parametrize("why", UNMOVABLE)
def test_what_has_no_target_to_move_leaves_edits_to_fk(why: str) -> None:
    UNMOVABLE[why](Limb(posed("lower").pose.bones["lower"]))
    bpy.context.view_layer.update()
    turn()
    assert_is_fk("lower")


def test_a_target_stays_on_a_locked_axis() -> None:
    posed("lower")
    target().lock_location[2] = True
    before = target().location.copy()
    turn()
    assert target().location.z == before.z
    assert target().location.x != before.x


def test_bones_between_root_and_tip_are_fk_and_the_status_line_says_so(addon: Addon) -> None:
    ob = rigs.limb(rigs.bent(4), "abcd")
    rigs.chain(ob, "d", rigs.empty("Target", PLACE), 4)
    start(ob, "b")
    note_on = addon.module("live.reports").note_on
    assert not note_on(ob.pose.bones["d"], 1.0)
    turn()
    assert "'b'" in note_on(ob.pose.bones["d"], 1.0)
    assert not note_on(ob.pose.bones["d"], 2.0)
    assert_is_fk("b")
    start(ob, "d")
    turn()
    assert not note_on(ob.pose.bones["d"], 1.0)


# ---- auto keying


@pytest.fixture(params=[False, True], ids=["by hand", "auto keying"])
def auto(request: pytest.FixtureRequest) -> None:
    """Run the test without auto keying and with it."""
    if request.param:
        request.getfixturevalue("auto_keying")


def reach(frame: int, frames: int = 10) -> None:
    """Let edits reach over frames, and go to a frame."""
    scene = bpy.context.scene
    scene.ik_addon.edit_range, scene.ik_addon.edit_falloff = frames, "LINEAR"
    scene.frame_set(frame)


@pytest.mark.usefixtures("auto")
def test_an_edit_by_hand_reaches_over_a_range() -> None:
    ob, goal = rigs.arm()
    rigs.key(goal, "location", {frame: (0.6 + 0.01 * frame, 0.5, 1.0) for frame in range(1, 41)})
    reach(20)
    start(ob, "lower")
    first = seen()
    turn()
    second = seen()
    change = np.array(second.places["Target"]) - first.places["Target"]
    assert np.abs(change).max() > 0.05
    shares = np.clip(1.0 - np.abs(np.arange(1, 41) - 20) / 10.0, 0.0, 1.0)
    for i, (before, after) in enumerate(zip(first.keys["Target"], second.keys["Target"], strict=True)):
        moved = np.array(after)[:, 1] - np.array(before)[:, 1]
        assert moved == pytest.approx(shares * change[i], abs=1e-5)
    assert_steps(first, second)
    for frame in (2, 20):
        bpy.context.scene.frame_set(frame)
    assert_same(second.pose)


@pytest.mark.usefixtures("auto")
def test_an_edit_that_becomes_fk_reaches_over_a_range() -> None:
    ob = rigs.limb([(0, 0, z) for z in range(5)], ["hips", "middle", "chest", "lower"])
    rigs.chain(ob, "lower", rigs.empty("Target", (0.5, 0.3, 3.5)), 4)
    turns = {i: Quaternion((1.0, 0.01 * i, 0.1, -0.005 * i)).normalized() for i in range(1, 41)}
    rigs.key(ob.pose.bones["middle"], "rotation_quaternion", turns)
    reach(20)
    start(ob, "middle")
    first, before = seen(), keyed("middle")
    turn()
    second, after = seen(), keyed("middle")
    assert second.places == first.places
    assert np.abs(second.pose - first.pose).max() > 0.01
    whole = Quaternion(after[19]) @ Quaternion(before[19]).inverted()
    assert whole.angle > 0.2
    for frame, (old, new) in enumerate(zip(before, after, strict=True), 1):
        share = max(0.0, 1.0 - abs(frame - 20) / 10.0)
        expected = Quaternion().slerp(whole, share) @ Quaternion(old)
        assert expected.rotation_difference(Quaternion(new)).angle < 2e-3, frame
        assert share or new == old
    for frame in (2, 20):
        bpy.context.scene.frame_set(frame)
    assert_same(second.pose)
    assert_steps(first, second)


@pytest.mark.usefixtures("auto_keying")
def test_auto_keying_keys_fk_and_the_target() -> None:
    posed("lower")
    fk = (1.0, 0.0, 0.0, 0.0)
    first = seen()
    assert not first.keys
    turn()
    second = seen()
    assert second.keys["Target"] == [[(1.0, pytest.approx(value, abs=1e-6))] for value in second.places["Target"]]
    assert keyed("lower") == [pytest.approx(fk, abs=1e-6)]
    assert_steps(first, second)
    for frame in (2, 1):
        bpy.context.scene.frame_set(frame)
    assert_same(second.pose)


@pytest.mark.parametrize("start", [1.0, 21.0])
@pytest.mark.usefixtures("auto_keying")
def test_auto_keying_in_an_nla_strip_is_one_step(start: float) -> None:
    posed("lower")
    target().keyframe_insert("location", frame=1)
    rigs.into_strip(target()).frame_start_ui = start
    data = target().animation_data
    track = data.nla_tracks[0]
    data.nla_tracks.active, track.strips[0].select, track.select = track, True, True
    data.use_tweak_mode = True
    assert data.use_tweak_mode
    bpy.context.scene.frame_set(31)
    bpy.ops.ed.undo_push(message="Strip")
    first = seen()
    turn()
    second = seen()
    assert [len(second.keys["Target"][i]) for i in (0, 2)] == [2, 2]
    assert_steps(first, second)


def with_made_pole() -> str:
    """Return the name of the pole that Add Chain makes for a leg, whose shin is selected."""
    ob = leg()
    chain = ob.pose.bones["shin"].ik_addon
    chain.is_chain = False
    ob.data.bones.active = ob.data.bones["shin"]
    assert bpy.ops.ik_addon.chain_add("EXEC_DEFAULT", True) == {"FINISHED"}
    rigs.select_bones(ob, "shin")
    slide(0.0)
    name: str = chain.pole.name
    return name


@pytest.mark.usefixtures("auto_keying")
def test_a_pole_without_an_action_is_keyed_and_undone() -> None:
    """Undo frees an action that a step lacks: if the pole still used it, the next step would crash Blender."""
    pole, before = with_made_pole(), seen()
    turn(0.7, "Z")
    after = seen()
    assert after.keys.keys() == {"Rig", pole}
    slide(1.0)
    slide(2.0)
    assert_steps(before, after, after, after)


@pytest.mark.usefixtures("auto")
def test_undo_puts_back_a_pole_that_the_turned_bone_does_not_show() -> None:
    ob = leg()
    shin = ob.pose.bones["shin"]
    shin.ik_addon.use_limits = shin.lock_ik_y = shin.lock_ik_z = shin.use_ik_limit_x = True
    shin.ik_min_x, shin.ik_max_x = 0.3, 1.0
    target().location.z = 0.3
    rigs.select_bones(ob, "shin")
    bpy.context.view_layer.update()
    bpy.ops.ed.undo_push(message="Stretched")
    before, solved = seen(), shin.rotation_quaternion[:]
    turn(0.7, "Y")
    after = seen()
    assert np.linalg.norm(np.subtract(after.places["Pole"], before.places["Pole"])) > 0.1
    assert rig().pose.bones["shin"].rotation_quaternion[:] == solved, "the knee bends as much"
    assert_steps(before, after)


@pytest.mark.usefixtures("auto_keying")
def test_what_makes_no_undo_step_leaves_an_edit_to_the_next_undo() -> None:
    pole, before = with_made_pole(), seen()
    turn(0.7, "Z")
    after = seen()
    assert np.linalg.norm(np.subtract(after.places[pole], before.places[pole])) > 0.1
    assert after.keys.keys() == {"Rig", pole}
    assert bpy.ops.pose.copy("EXEC_DEFAULT", True) == {"FINISHED"}
    rig().update_tag()
    assert_steps(before, after)


# ---- pastes


def paste(*, flipped: bool = False) -> None:
    bpy.ops.pose.paste("EXEC_DEFAULT", True, flipped=flipped)
    bpy.context.view_layer.update()


@pytest.mark.parametrize("pole", [True, False], ids=["pole", "no pole"])
@pytest.mark.parametrize("bones", [("thigh", "foot"), ("thigh", "shin", "foot")], ids=["without tip", "whole"])
def test_a_pasted_limb_takes_its_goals_along(bones: tuple[str, ...], pole: bool) -> None:
    ob = leg(*bones)
    if not pole:
        ob.pose.bones["shin"].ik_addon.pole = None
    wanted = rigs.pose(ob)
    bpy.ops.pose.copy()
    target().rotation_euler.x += 0.3
    if pole:
        bpy.data.objects["Pole"].location.x += 1.0
    bpy.context.view_layer.update()
    bpy.ops.ed.undo_push(message="Moved")
    before = seen()
    assert np.abs(before.pose - wanted).max() > 0.05
    paste()
    after = seen()
    assert np.abs(after.pose - wanted).max() < 1e-4
    assert_steps(before, after)
    chain = rig().pose.bones["shin"].ik_addon
    assert (chain.target, chain.pole) == (target(), bpy.data.objects["Pole"] if pole else None)
    assert fk_of("thigh").rotation_difference(Quaternion(FK).normalized()).angle < 1e-5


def test_a_pasted_pose_that_bends_to_the_pole_leaves_it_there() -> None:
    leg("thigh", "shin", "foot")
    pole = bpy.data.objects["Pole"]
    wanted, place = rigs.pose(rig()), pole.location.copy()
    bpy.ops.pose.copy()
    rigs.shift(target(), z=0.3)
    paste()
    assert_same(wanted)
    assert pole.location == place
