"""Pose Body together with live chains: the pose shown in a drag stays on release, and targets hold."""

import math

import bpy
import pytest
from mathutils import Quaternion, Vector

from tests.conftest import Addon, Capture
from tests.posing.test_drag import drag, goes, head, held, pose, turn

ENDS = ("hand.L", "hand.R", "foot.L", "foot.R")


@pytest.fixture(params=["EMPTIES", "BONES"])
def character(human: bpy.types.Object, request: pytest.FixtureRequest) -> bpy.types.Object:
    """Return the human metarig with live chains and poles on all limbs; targets and poles are objects, or bones."""
    options = {"regions": {"ARM", "LEG"}, "with_presets": False, "controls": request.param}
    assert bpy.ops.ik_addon.character_setup(live=True, **options) == {"FINISHED"}
    bpy.context.view_layer.update()
    return human


def heads(ob: bpy.types.Object) -> dict[str, Vector]:
    """Return where the bones of the character are, without its controls."""
    return {bone.name: head(ob, bone.name) for bone in ob.pose.bones if not bone.name.startswith("IK ")}


def goal(ob: bpy.types.Object, tip: str, role: str = "target") -> Vector:
    """Return where the target or pole of a chain is."""
    chain = ob.pose.bones[tip].ik_addon
    bone = getattr(chain, f"{role}_bone")
    return head(ob, bone) if bone else getattr(chain, role).matrix_world.translation.copy()


def farthest(ob: bpy.types.Object, before: dict[str, Vector]) -> float:
    return max((head(ob, name) - place).length for name, place in before.items())


def test_the_pose_shown_in_a_drag_stays_on_release(character: bpy.types.Object, addon: Addon) -> None:
    module, scene = addon.module("posing.drag"), bpy.context.scene
    for bone, offset, spin in (
        ("hand.L", (-0.2, -0.4, 0.3), None),
        ("hand.L", (0.1, 0.2, -0.2), Quaternion((1.0, 0.2, 0.0), 0.5)),
        ("forearm.L", (0.0, 0.1, 0.1), None),
        ("foot.R", (-0.1, -0.3, 0.3), None),
        ("spine", (0.1, 0.0, -0.2), None),
        ("spine.004", (0.0, -0.2, -0.1), None),
    ):
        body = module.BodyDrag(bpy.context, character, module.Ask(bone))
        with goes(character, bone, offset, 1e-3):
            body.move(bpy.context, Vector(offset), spin)
        shown, turned = heads(character), turn(character, bone)
        assert body.finish(bpy.context) == []
        assert farthest(character, shown) < 1e-5, bone
        scene.frame_set(scene.frame_current + 1)
        assert farthest(character, shown) < 1e-5, bone
        assert turned.rotation_difference(turn(character, bone)).angle < 0.01, bone


@pytest.mark.parametrize("bone", ["spine", "spine.004", "hand.L"])
def test_the_targets_of_other_chains_stay_and_hold(character: bpy.types.Object, bone: str) -> None:
    targets = {tip.name: goal(character, tip.name) for tip in character.pose.bones if tip.ik_addon.is_chain}
    with held(character, *{*ENDS} - {bone}, near=1e-3):
        pose(bone=bone, offset=(0.0, -0.15, -0.1))
    went = [tip for tip, place in targets.items() if (goal(character, tip) - place).length > 1e-3]
    assert went == (["forearm.L"] if bone == "hand.L" else [])


@pytest.mark.parametrize("use_pole", [True, False])
def test_a_pole_follows_if_its_chain_bends_to_it(character: bpy.types.Object, use_pole: bool) -> None:
    chain = character.pose.bones["forearm.L"].ik_addon
    pole = character.pose.bones[chain.pole_bone] if chain.pole_bone else chain.pole
    chain.use_pole, before = use_pole, pole.location.copy()
    pose(bone="forearm.L", offset=(0.0, 0.1, 0.15))
    assert (pole.location - before).length > 0.05 if use_pole else pole.location == before


def test_with_x_axis_mirror_the_other_sides_target_follows(character: bpy.types.Object) -> None:
    character.pose.use_mirror_x = True
    bpy.ops.ik_addon.pose_body(bone="hand.L", offset=(-0.1, -0.3, 0.2))
    bpy.context.scene.frame_set(bpy.context.scene.frame_current + 1)
    for tip in ("forearm.L", "shin.L"):
        one, other = (character.pose.bones[name] for name in (tip, bpy.utils.flip_name(tip)))
        place = goal(character, one.name)
        mirrored = Vector((-place.x, place.y, place.z))
        assert (goal(character, other.name) - mirrored).length < 1e-3
        assert (head(character, other.name) - Vector((-1, 1, 1)) * head(character, one.name)).length < 1e-3


def test_pins_hold_together_with_targets(character: bpy.types.Object) -> None:
    character.pose.bones["spine.006"].ik_addon.pin = {"LOCATION"}
    with held(character, "spine.006", near=1e-3):
        pose(bone="hand.L", offset=(0.3, -0.3, 0.2))


@pytest.fixture
def whole(human: bpy.types.Object) -> bpy.types.Object:
    """Return the human metarig with live chains on all parts, as Set Up Character makes them."""
    assert bpy.ops.ik_addon.character_setup(live=True) == {"FINISHED"}
    bpy.context.view_layer.update()
    return human


@pytest.mark.parametrize("controls", ["EMPTIES", "BONES"])
@pytest.mark.parametrize("offset", [(0.0, 0.0, -0.45), (0.2, -0.1, -0.2), (0.0, -0.1, 0.0), (0.0, 0.0, -0.02)])
def test_the_hips_of_a_whole_character_arrive(
    human: bpy.types.Object, offset: tuple[float, float, float], controls: str
) -> None:
    assert bpy.ops.ik_addon.character_setup(live=True, controls=controls) == {"FINISHED"}
    before = heads(human)
    with goes(human, "spine", offset, 1e-3), held(human, *ENDS, near=1e-4):
        assert bpy.ops.ik_addon.pose_body(bone="spine", offset=offset) == {"FINISHED"}
        bpy.context.scene.frame_set(bpy.context.scene.frame_current + 1)
    for name in ("spine.004", "spine.006"):  # chest and head go along, for their targets do
        went = head(human, name) - before[name]
        assert went.dot(Vector(offset)) > 0.25 * Vector(offset).length_squared, name


def test_a_hand_beyond_its_arm_takes_the_body_along(whole: bpy.types.Object) -> None:
    chest, offset = head(whole, "spine.004"), (0.5, -0.3, 0.1)
    with goes(whole, "hand.L", offset, 1e-3), held(whole, "foot.L", "foot.R", near=1e-4):
        bpy.ops.ik_addon.pose_body(bone="hand.L", offset=offset)
        bpy.context.scene.frame_set(bpy.context.scene.frame_current + 1)
    assert (head(whole, "spine.004") - chest).length > 0.05


def test_hands_let_go_before_the_hips_are_held_back(whole: bpy.types.Object) -> None:
    for side in "LR":  # arms stretched out to the sides
        bpy.ops.ik_addon.pose_body(bone=f"hand.{side}", offset=(0.4 if side == "L" else -0.4, 0.0, 0.5))
    drag(whole, "spine", (0.0, 0.0, -0.45), 1e-3)


def test_a_message_names_what_holds_a_joint_back(whole: bpy.types.Object, capfd: Capture) -> None:
    bpy.ops.ik_addon.pose_body(bone="spine", offset=(0.0, 0.0, 0.5))
    told = capfd.readouterr().out
    assert "Held by: left leg, right leg" in told, told


def test_the_body_follows_evenly_where_the_legs_hold_the_hips_back(whole: bpy.types.Object, addon: Addon) -> None:
    module = addon.module("posing.drag")
    body, before, jumps = module.BodyDrag(bpy.context, whole, module.Ask("spine")), None, []
    for angle in range(180, 264, 6):  # a circle beyond the reach of the legs
        way = 0.35 * Vector((math.cos(math.radians(angle)), math.sin(math.radians(angle)), 0.0))
        posed = body.move(bpy.context, way)
        assert posed.held_by
        if before is not None:
            jumps.append(float(abs(posed.heads - before).max()))
        before = posed.heads
    assert max(jumps) < 0.25, jumps
