"""Pose Body: any bone goes where it is asked to, pins hold, and the body follows; with Blender's poses."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix, Quaternion, Vector

from tests import rigs, rigs_named
from tests.conftest import Addon, Capture
from tests.reliability.states import activate, refused, said
from tests.rigs_generated import armature_of

NEAR = 2e-4
"""Rounding allowed in places, in meters."""
FEET = ("foot.L", "foot.R")


def head(ob: bpy.types.Object, bone: str) -> Vector:
    """Return the evaluated head of a bone in world space."""
    evaluated: Any = rigs.evaluated(ob)
    return evaluated.matrix_world @ evaluated.pose.bones[bone].head


def turn(ob: bpy.types.Object, bone: str) -> Quaternion:
    """Return the evaluated orientation of a bone in world space."""
    evaluated: Any = rigs.evaluated(ob)
    return (evaluated.matrix_world @ evaluated.pose.bones[bone].matrix).to_quaternion()


def angle(one: Quaternion, other: Quaternion) -> float:
    return float(np.degrees(2.0 * np.arccos(min(1.0, abs(one.dot(other))))))


def rows(ob: bpy.types.Object) -> dict[str, tuple[tuple[float, ...], tuple[float, ...]]]:
    """Return the location and rotation of each bone."""
    return {bone.name: (tuple(bone.location), tuple(bone.rotation_quaternion)) for bone in ob.pose.bones}


def pose(**options: Any) -> None:
    bpy.ops.ik_addon.pose_body(**options)
    bpy.context.view_layer.update()


@contextmanager
def goes(ob: bpy.types.Object, bone: str, offset: Any, near: float = NEAR) -> Iterator[None]:
    """Assert that the code inside moves the head of a bone by an offset."""
    start = head(ob, bone)
    yield
    assert (head(ob, bone) - start - Vector(offset)).length < near


@contextmanager
def held(ob: bpy.types.Object, *bones: str, turns: bool = False, near: float = NEAR) -> Iterator[None]:
    """Assert that the code inside leaves the heads of bones where they are, and optionally their orientations."""
    before = {bone: (head(ob, bone), turn(ob, bone)) for bone in bones}
    yield
    for bone, (place, turned) in before.items():
        assert (head(ob, bone) - place).length < near, bone
        assert not turns or angle(turn(ob, bone), turned) < 0.1, bone


def drag(ob: bpy.types.Object, bone: str, offset: Any, near: float = NEAR, **options: Any) -> None:
    """Pose the body by a bone, which arrives."""
    with goes(ob, bone, offset, near):
        pose(bone=bone, offset=offset, **options)


def test_the_hand_reaches_its_place_and_the_feet_stay(human: bpy.types.Object) -> None:
    with held(human, *FEET, turns=True):
        drag(human, "hand.L", (-0.3, -0.6, 0.2))
    assert human.pose.bones["spine"].location.length > 1e-3, "the hips come along"


def test_the_active_bones_tail_goes_to_a_place_in_world_space(human: bpy.types.Object) -> None:
    rigs.change(human, matrix_world=Matrix.LocRotScale((3.0, -2.0, 0.5), Euler((0.3, -0.2, 2.0)), (0.5, 0.5, 0.5)))
    evaluated: Any = rigs.evaluated(human)
    place = evaluated.matrix_world @ (evaluated.pose.bones["hand.L"].tail + Vector((-0.2, -0.3, 0.1)))
    pose(location=place, use_tail=True)
    assert (human.matrix_world @ rigs.evaluated(human).pose.bones["hand.L"].tail - place).length < 1e-4


def test_limits_of_the_bones_hold(human: bpy.types.Object) -> None:
    rigs.limit(human.pose.bones["shin.L"], x=(0, 30), y=(0, 0), z=(0, 0))
    pose(bone="spine", offset=(0.0, 0.0, -0.4))
    bone = human.data.bones["shin.L"]
    bent = (bone.parent.matrix_local.inverted() @ bone.matrix_local).to_3x3()
    evaluated: Any = rigs.evaluated(human)
    seen = (evaluated.pose.bones["thigh.L"].matrix.inverted() @ evaluated.pose.bones["shin.L"].matrix).to_3x3()
    turned = (bent.inverted() @ seen).to_euler("XYZ")
    assert turned.x == pytest.approx(np.radians(30), abs=1e-3)
    assert abs(turned.y) + abs(turned.z) < 1e-3


def test_requested_pins_hold_instead_of_the_feet(human: bpy.types.Object) -> None:
    orientation, foot = turn(human, "hand.R"), head(human, "foot.L")
    pins = [{"name": "hand.R", "use_location": True, "use_rotation": False}]
    with held(human, "hand.R"):
        pose(bone="hand.L", offset=(0.5, -0.3, 0.3), pins=pins)
    assert angle(turn(human, "hand.R"), orientation) > 1.0
    assert (head(human, "foot.L") - foot).length > 0.01


def test_stored_pins_hold(human: bpy.types.Object) -> None:
    for bone in ("hand.R", "foot.L"):
        human.pose.bones[bone].ik_addon.pin = {"LOCATION", "ROTATION"}
    other = head(human, "foot.R")
    with held(human, "hand.R", "foot.L"):
        pose(bone="hand.L", offset=(-0.2, -0.5, 0.4))
    assert (head(human, "foot.R") - other).length > 1e-3


def test_a_dragged_pinned_bone_moves_and_keeps_its_orientation(human: bpy.types.Object) -> None:
    orientation = turn(human, "foot.L")
    with held(human, "foot.R"):
        drag(human, "foot.L", (0.1, -0.3, 0.2))
    assert angle(turn(human, "foot.L"), orientation) < 0.1


def test_the_root_can_stay_without_pins(human: bpy.types.Object) -> None:
    before, foot = rigs.channels(human), head(human, "foot.L")
    pose(bone="hand.L", offset=(0.0, -0.2, 0.1), without_pins="ROOT")
    assert human.pose.bones["spine"].location.length < 1e-6
    assert (head(human, "foot.L") - foot).length > 1e-5 or (rigs.channels(human) != before).any()
    bend = human.pose.bones["upper_arm.L"].rotation_quaternion.angle
    assert bend > 0.01


def test_a_bone_with_no_give_stays(human: bpy.types.Object) -> None:
    human.pose.bones["spine.002"].ik_addon.give = 0.0
    pose(bone="hand.L", offset=(-0.3, -0.6, 0.2))
    assert human.pose.bones["spine.002"].rotation_quaternion.angle < 1e-5
    assert human.pose.bones["spine.003"].rotation_quaternion.angle > 0.01


def test_every_rotation_mode_works_and_is_kept_even_where_a_bone_does_not_turn_with_its_parent(
    human: bpy.types.Object,
) -> None:
    upper, lower = human.pose.bones["upper_arm.L"], human.pose.bones["forearm.L"]
    upper.rotation_mode, lower.rotation_mode = "ZYX", "AXIS_ANGLE"
    drag(human, "hand.L", (-0.1, -0.4, 0.1))
    rigs.change(lower.bone, use_inherit_rotation=False)
    drag(human, "hand.L", (0.1, -0.1, 0.1))
    assert (upper.rotation_mode, lower.rotation_mode) == ("ZYX", "AXIS_ANGLE")
    assert Vector(upper.rotation_euler).length > 0.01


def test_auto_keying_keys_the_bones_that_moved(
    human: bpy.types.Object, addon: Addon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bpy.context.preferences.edit, "use_keyframe_insert_available", False)
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    pose(bone="hand.L", offset=(-0.1, -0.4, 0.1))
    curves = addon.module("core.compat").curve_owner(human).fcurves
    paths = {curve.data_path for curve in curves}
    assert 'pose.bones["forearm.L"].rotation_quaternion' in paths
    assert 'pose.bones["spine"].location' in paths
    assert not any("hand.R" in path for path in paths)


def test_one_sentence_warns_about_animated_bones(human: bpy.types.Object, capfd: Capture) -> None:
    for bones, sentence in (
        ([human.pose.bones["forearm.L"]], r"'forearm\.L' is animated"),
        (human.pose.bones, r"'spine\S*', .* and \d+ more are animated"),
    ):
        for bone in bones:
            rigs.key(bone, "rotation_quaternion", {1: (1, 0, 0, 0), 9: (1, 0, 0, 0)})
        bpy.context.view_layer.update()
        message = said(capfd, bpy.ops.ik_addon.pose_body, offset=(-0.1, -0.4, 0.1))
        assert re.search(sentence, message), message
        assert len(re.findall(r"reverts? on the next frame change", message)) == 1


def test_a_place_out_of_reach_is_reported(human: bpy.types.Object, capfd: Capture) -> None:
    assert "stopped short by" in said(capfd, bpy.ops.ik_addon.pose_body, offset=(0.0, 0.0, 5.0))
    assert "Posed the body by 'hand.L'" in said(capfd, bpy.ops.ik_addon.pose_body, offset=(0.0, 0.0, -0.05))


def test_refusals_change_nothing(human: bpy.types.Object) -> None:
    def refuses(why: str, **options: Any) -> None:
        with refused(why):
            bpy.ops.ik_addon.pose_body(**{"bone": "hand.L", "offset": (0.0, 0.0, 1.0), **options})

    refuses("no bone 'nobody'", bone="nobody")
    refuses("no bone 'nobody' to pin", pins=[{"name": "nobody", "use_location": True, "use_rotation": True}])
    refuses("not a finite number", offset=(float("nan"), 0.0, 0.0))
    refuses("not a finite number", location=(0.0, float("nan"), 0.0))
    human.pose.bones["hand.L"].constraints.new("COPY_ROTATION").target = human
    refuses("A constraint or driver moves 'hand.L'")
    for bone in human.pose.bones["shoulder.L"].parent_recursive:
        bone.constraints.new("COPY_ROTATION").target = human
    refuses("A constraint or driver moves 'spine.003'", bone="shoulder.L")
    human.scale.x = 0.0
    refuses("is scaled to zero")


@pytest.mark.parametrize("live", [True, False])
def test_the_target_of_a_posed_chain_follows(human: bpy.types.Object, live: bool) -> None:
    assert bpy.ops.ik_addon.character_setup(live=live, with_presets=False) == {"FINISHED"}
    bpy.context.view_layer.update()
    with held(human, *FEET, near=1e-3):
        drag(human, "hand.L", (-0.1, -0.3, 0.1), 1e-3)
    assert human.ik_addon.live is live
    with held(human, *(bone.name for bone in human.pose.bones), near=1e-3):
        bpy.context.scene.frame_set(bpy.context.scene.frame_current)


def test_a_bone_is_turned_while_its_place_is_held(human: bpy.types.Object, addon: Addon) -> None:
    module = addon.module("posing.drag")
    rigs.change(human, matrix_world=Matrix.LocRotScale((3.0, -2.0, 0.5), Euler((0.3, -0.2, 2.0)), None))
    orientation, before = turn(human, "hand.L"), rows(human)
    drag = module.BodyDrag(bpy.context, human, module.Ask("hand.L"))
    spin = Quaternion((0.2, 1.0, 0.3), 0.5)
    with held(human, "hand.L"):
        drag.move(bpy.context, Vector(), spin)
    assert angle(turn(human, "hand.L"), spin @ orientation) < 0.1
    drag.move(bpy.context, Vector((0.0, 0.0, 0.3)))
    carried = turn(human, "hand.L")
    assert angle(carried, orientation) > 5.0, "as its arm takes it along"
    with held(human, "hand.L"):
        drag.move(bpy.context, Vector((0.0, 0.0, 0.3)), spin)
    assert angle(turn(human, "hand.L"), spin @ carried) < 0.1
    drag.cancel(bpy.context)
    assert rows(human) == before


def test_a_pinned_bone_can_be_turned(human: bpy.types.Object, addon: Addon) -> None:
    module = addon.module("posing.drag")
    drag = module.BodyDrag(bpy.context, human, module.Ask("foot.L"))
    orientation, spin = turn(human, "foot.L"), Quaternion((1.0, 0.0, 0.0), -0.4)
    other = turn(human, "foot.R")
    for turned in (Quaternion(), spin):
        drag.move(bpy.context, Vector((0.0, -0.1, 0.1)), turned)
        assert angle(turn(human, "foot.L"), turned @ orientation) < 0.1
    assert angle(turn(human, "foot.R"), other) < 0.1


# ---- how much of the body follows


def moved(ob: bpy.types.Object) -> set[str]:
    """Return the bones that were rotated or moved."""
    return {bone.name for bone in ob.pose.bones if not np.allclose(bone.matrix_basis, np.eye(4), atol=1e-6)}


def rest(ob: bpy.types.Object) -> None:
    """Put all bones back to rest."""
    for bone in ob.pose.bones:
        bone.matrix_basis = Matrix()
    bpy.context.view_layer.update()


def test_only_as_many_bones_follow_as_chosen_a_tail_by_its_own_bone_first(human: bpy.types.Object) -> None:
    row = ("forearm.L", "upper_arm.L", "shoulder.L")
    for length in (1, 2, 3):
        pose(bone="hand.L", offset=(-0.02, -0.08, 0.04), length=length)
        assert moved(human) == set(row[:length])
    rest(human)
    pose(bone="hand.L", use_tail=True, offset=(0.0, -0.05, 0.02), length=1)
    assert moved(human) == {"hand.L"}


def test_a_length_beyond_the_bones_is_the_whole_body(human: bpy.types.Object) -> None:
    pose(bone="hand.L", offset=(-0.3, -0.6, 0.2))
    one = rigs.channels(human)
    rest(human)
    pose(bone="hand.L", offset=(-0.3, -0.6, 0.2), length=99)
    assert (rigs.channels(human) == one).all()
    assert human.pose.bones["spine"].location.length > 1e-3


def test_a_pin_below_the_bones_that_follow_holds(human: bpy.types.Object) -> None:
    human.pose.bones["hand.R"].ik_addon.pin = {"LOCATION"}
    with held(human, "hand.R"), held(human, *FEET, near=1e-6):
        pose(bone="spine.003", use_tail=True, offset=(0.0, -0.05, 0.0), length=3)
    assert {"upper_arm.R", "spine.001"} <= moved(human)


def test_without_pins_the_chain_alone_turns_as_with_auto_ik(human: bpy.types.Object) -> None:
    pose(bone="hand.L", offset=(-0.05, -0.2, 0.1), without_pins="CHAIN")
    assert moved(human) == {"upper_arm.L", "forearm.L"}
    human.pose.bones["foot.L"].ik_addon.pin = {"LOCATION"}
    pose(bone="hand.L", offset=(-0.05, -0.2, 0.1), without_pins="CHAIN")
    assert "spine" in moved(human), "there is a pin now"


def test_a_drag_can_widen_and_narrow_what_follows(human: bpy.types.Object, addon: Addon) -> None:
    module = addon.module("posing.drag")
    drag = module.BodyDrag(bpy.context, human, module.Ask("hand.L"))
    offset = Vector((-0.1, -0.3, 0.1))
    with goes(human, "hand.L", offset, 1e-3):
        drag.move(bpy.context, offset)
        whole = rows(human)
        assert drag.extent.length == 0
        drag.extend(bpy.context, -1)
    assert drag.extent.length == drag.extent.longest - 1
    assert human.pose.bones["spine"].location.length == 0.0
    for _ in range(20):
        drag.extend(bpy.context, -1)
    assert drag.extent.length == 1
    assert moved(human) == {"forearm.L"}
    for _ in range(20):
        drag.extend(bpy.context, 1)
    assert drag.extent.length == 0
    assert rows(human) == whole


def test_knees_and_hocks_fold_and_hardly_turn_sideways(rigify: None) -> None:
    """They have no limits."""
    ob = armature_of("horse")
    bpy.context.view_layer.update()
    names = ("lower_leg.L", "hind_foot.L", "lower_leg.R", "hind_foot.R")
    before = {name: turn(ob, name) for name in names}
    above = {name: turn(ob, ob.data.bones[name].parent.name) for name in names}
    pose(bone="spine.001", offset=(0.4, 0.0, -0.6))
    folded, sideways = {}, {}
    for name in names:
        parent = turn(ob, ob.data.bones[name].parent.name)
        bent = above[name] @ parent.inverted() @ turn(ob, name) @ before[name].inverted()
        x, y, z = np.degrees(2.0 * np.arcsin(np.array(bent)[1:]))  # at rest, the legs are in planes across X
        folded[name], sideways[name] = abs(x), float(np.hypot(y, z))
    assert min(folded["lower_leg.L"], folded["lower_leg.R"]) > 35.0
    assert max(sideways.values()) < 16.0


def test_a_paw_is_lifted_although_its_toe_is_pinned(addon: Addon) -> None:
    ob = rigs_named.build(rigs_named.ANIMALS["dog"])
    feet = addon.module("posing.pins").extremities(ob, "FEET")
    for name in feet:
        ob.pose.bones[name].ik_addon.pin = {"LOCATION", "ROTATION"}
    before = head(ob, "ball_l")
    with held(ob, *(name for name in feet if name.endswith("_r")), near=1e-3):
        for paw in ("foot_l", "frontleg_foot_l"):
            drag(ob, paw, (0.0, -0.1, 0.2), 1e-3)
    assert head(ob, "ball_l").z > before.z + 0.1


def test_a_body_without_feet_is_said_to_have_none(capfd: Capture) -> None:
    ob = rigs.limb(rigs.bent(4), list("abcd"))
    activate(ob, "d")
    assert "No feet were found" in said(capfd, bpy.ops.ik_addon.pose_body, offset=(0.1, 0.0, -0.2))
    ob.pose.bones["a"].ik_addon.pin = {"LOCATION"}
    assert "No feet were found" not in said(capfd, bpy.ops.ik_addon.pose_body, offset=(0.1, 0.0, -0.2))


# ---- X-Axis Mirror: the other side follows


SIGNS = Vector((-1.0, 1.0, 1.0))
OFFSET = Vector((0.1, -0.4, 0.3))


def mirrored(turned: Quaternion) -> Quaternion:
    return Quaternion((turned.w, turned.x, -turned.y, -turned.z))


@pytest.fixture
def both(human: bpy.types.Object) -> bpy.types.Object:
    """Return the human metarig with X-Axis Mirror on."""
    human.pose.use_mirror_x = True
    return human


def test_the_other_hand_goes_to_the_mirrored_place(both: bpy.types.Object) -> None:
    drag(both, "hand.L", OFFSET, 1e-3)
    for bone in both.pose.bones:
        image = bpy.utils.flip_name(bone.name)
        assert (head(both, image) - SIGNS * head(both, bone.name)).length < 1e-3, bone.name


def test_without_mirror_the_other_hand_is_not_dragged(human: bpy.types.Object) -> None:
    pose(bone="hand.L", offset=OFFSET)
    assert (head(human, "hand.R") - SIGNS * head(human, "hand.L")).length > 0.1


def test_relative_mirror_keeps_the_difference_between_sides(both: bpy.types.Object) -> None:
    rigs.change(both.pose.bones["upper_arm.R"], rotation_quaternion=Quaternion((1.0, 0.0, 0.0), 0.4))
    both.pose.use_mirror_relative = True
    with goes(both, "hand.R", SIGNS * OFFSET / 2.0, 1e-3):
        pose(bone="hand.L", offset=OFFSET / 2.0)
    both.pose.use_mirror_relative = False
    pose(bone="hand.L", offset=(0.0, 0.0, 0.0))
    assert (head(both, "hand.R") - SIGNS * head(both, "hand.L")).length < 1e-3


@pytest.mark.parametrize("relative", [False, True])
def test_both_hands_turn(both: bpy.types.Object, addon: Addon, relative: bool) -> None:
    both.pose.use_mirror_relative = relative
    module = addon.module("posing.drag")
    body = module.BodyDrag(bpy.context, both, module.Ask("hand.L"))
    body.move(bpy.context, OFFSET)
    rests = {name: turn(both, name) for name in ("hand.L", "hand.R")}
    spin = Quaternion((0.3, 1.0, 0.5), 0.6)
    body.move(bpy.context, OFFSET, spin)
    assert angle(turn(both, "hand.L"), spin @ rests["hand.L"]) < 0.5
    assert angle(turn(both, "hand.R"), mirrored(spin) @ rests["hand.R"]) < 0.5


def test_a_pinned_counterpart_follows_and_a_constrained_one_does_not(both: bpy.types.Object) -> None:
    bpy.ops.ik_addon.pin()
    assert {bone.name for bone in both.pose.bones if bone.ik_addon.pin} == {"hand.L", "hand.R"}
    pose(bone="hand.L", offset=OFFSET / 2.0)
    assert (head(both, "hand.R") - SIGNS * head(both, "hand.L")).length < 1e-3
    both.pose.bones["hand.R"].constraints.new("COPY_ROTATION").target = both
    drag(both, "hand.L", OFFSET / 4.0, 1e-3)


def test_a_short_length_applies_to_both_sides(both: bpy.types.Object) -> None:
    pose(bone="hand.L", offset=(0.05, -0.2, 0.1), length=2)
    moved = {bone.name for bone in both.pose.bones if bone.rotation_quaternion.angle > 1e-6}
    assert moved == {"upper_arm.L", "forearm.L", "upper_arm.R", "forearm.R"}
    left, right = (both.pose.bones[f"forearm.{side}"].rotation_quaternion.angle for side in "LR")
    assert left == pytest.approx(right, abs=1e-4)
