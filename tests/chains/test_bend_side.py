"""The bend side of a chain is found when the chain is set up, and stored with it."""

import math
from dataclasses import replace

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix, Quaternion, Vector

from tests import rigs, rigs_named
from tests.conftest import Addon
from tests.reliability.states import activate, add, said
from tests.rigs_named import RIGS

FRONT = Vector((0.0, -1.0, 0.0))
LYING = Matrix.Rotation(math.radians(-90.0), 4, "X") @ Matrix.Rotation(math.radians(37.0), 4, "Z")
"""Armatures as importers make them that keep Y up, and rotated as well."""


def side_at_rest(ob: bpy.types.Object, chain: list[str]) -> Vector:
    """Return the stored side of a chain, in armature space at rest."""
    root = ob.data.bones[chain[0]]
    turn: Matrix = root.matrix_local.to_3x3()
    return turn @ Vector(ob.pose.bones[chain[-1]].ik_addon.bend_side)


# ---- found from the anatomy


@pytest.mark.parametrize("name", [name for name in RIGS if name != "bird"])
def test_straight_limbs_bend_as_bodies_do_whatever_their_roll(name: str) -> None:
    turn = LYING if len(name) % 2 else Matrix.Identity(4)
    limbs = rigs_named.limbs(RIGS[name], rigs_named.build(RIGS[name], is_straight=True))
    ob = rigs_named.build(RIGS[name], is_straight=True, turn=turn)
    rigs.roll_bones(ob, math.radians(sum(map(ord, name)) % 360))
    assert len(limbs) == 4
    front = turn.to_3x3() @ FRONT
    places = {**rigs_named.PLACES, **rigs_named.STRAIGHT}
    for chain in limbs:
        add(ob, chain[0])
        side = side_at_rest(ob, chain)
        leg = abs((turn.inverted() @ ob.data.bones[chain[0]].head_local).z - places["hip"][2]) < 0.1
        assert side.length == pytest.approx(1.0, abs=1e-5)
        assert side.dot(front) * (1.0 if leg else -1.0) > 0.97, chain
        line = ob.data.bones[chain[-1]].tail_local - ob.data.bones[chain[0]].head_local
        assert abs(side.dot(line.normalized())) < 1e-4


def test_elbows_of_arms_that_point_forward_go_down() -> None:
    places = {"elbow": (0.17, -0.24, 1.42), "wrist": (0.17, -0.49, 1.42), "knuckle": (0.17, -0.57, 1.42)}
    ob = rigs_named.build(replace(RIGS["SMPL"], places=places))
    add(ob, "L_Elbow")
    assert side_at_rest(ob, ["L_Shoulder", "L_Elbow"]).dot(Vector((0, 0, -1))) > 0.97


@pytest.mark.parametrize("side", ["l", "r"])
def test_fingers_bend_towards_the_palm(side: str) -> None:
    places = {"finger2": (0.775, 0.01, 1.41), "finger3": (0.81, 0.01, 1.41), "fingertip": (0.84, 0.01, 1.41)}
    ob = rigs_named.build(replace(RIGS["Manny"], places=places))
    add(ob, f"index_02_{side}")
    # In a T-pose palms face down, so knuckles go up.
    assert side_at_rest(ob, [f"index_01_{side}", f"index_03_{side}"]).z > 0.9


def test_straight_front_legs_of_animals_fold_backward() -> None:
    """Even if their bones are named like those of hind legs."""
    front = {
        place: (0.15, -0.5, z) for place, z in (("point", 1.1), ("elbow", 0.85), ("carpus", 0.6), ("ffetlock", 0.2))
    }
    dog = rigs_named.ANIMALS["dog"]
    ob = rigs_named.build(replace(dog, places={**dog.places, **front}))
    chain = [f"frontleg_{bone}_l" for bone in ("upper", "lower", "foot")]
    add(ob, chain[0])
    assert side_at_rest(ob, chain).dot(FRONT) < -0.97


BACK = {"spine1": (0.0, 0.0, 1.05), "spine2": (0.0, 0.0, 1.15), "neck2": (0.0, -0.005, 1.52)}
"""A straight spine."""


@pytest.mark.parametrize("roll", [0, 100, 250])
@pytest.mark.parametrize("name", ["Manny", "Mixamo"])
def test_a_straight_spine_bends_forward_whatever_its_roll(name: str, roll: int) -> None:
    rig = RIGS[name]
    ob = rigs_named.build(replace(rig, places={**rig.places, **BACK}))
    rigs.roll_bones(ob, math.radians(roll))
    chain = next(names.split() for names in rig.chains if "pine" in names)
    add(ob, chain[0])
    settings = ob.pose.bones[chain[-1]].ik_addon
    assert settings.bends_both_ways
    assert side_at_rest(ob, chain).dot(FRONT) < -0.97
    ob.ik_addon.live = True
    rigs.shift(settings.target, z=-0.05)
    assert rigs.tail(ob, chain[-1]) == pytest.approx(np.array(settings.target.location), abs=1e-5)
    assert max(rigs.head(ob, bone)[1] for bone in chain) > 0.03, "its middle goes to the back"
    bpy.ops.ik_addon.flip_bend()
    bpy.context.view_layer.update()
    assert min(rigs.head(ob, bone)[1] for bone in chain) < -0.03


@pytest.mark.parametrize("angle", [-25.0, -1.0, 1.0, 25.0])
@pytest.mark.parametrize("names", ["a b c d e", "neck head"])
def test_a_spine_bends_to_the_side_it_is_posed(names: str, angle: float) -> None:
    """Even backward: the stored side is only for straight poses."""
    bones = names.split()
    ob = rigs.limb(rigs.straight(len(bones)), bones)
    add(ob, bones[0])
    tip = ob.pose.bones[bones[-1]].ik_addon
    assert tip.bends_both_ways
    for bone in bones[1:]:
        ob.pose.bones[bone].rotation_quaternion = Euler((math.radians(angle), 0.0, 0.0)).to_quaternion()
    bpy.context.view_layer.update()
    bpy.ops.ik_addon.snap_target()
    rigs.go_live_unmoved(ob, 1e-5)
    root = rigs.head(ob, bones[0])

    def off() -> float:
        line, middle = rigs.tail(ob, bones[-1]) - root, rigs.head(ob, bones[len(bones) // 2]) - root
        return float(np.cross(line, middle)[0])

    was = off()
    rigs.change(tip.target, location=Vector(root.tolist()).lerp(tip.target.location, 0.8))
    assert off() * was > 0.0
    assert abs(off()) > abs(was)


# ---- priority of the sources


def leg(bend: float, *, foot: bool = True) -> bpy.types.Object:
    """Return a leg bent at rest by degrees, forward if positive; its roll says that it bends to the right."""
    ob = rigs.armature()
    half = math.radians(bend / 2)
    knee = Vector((0.0, 0.0, 1.0)) + Vector((0.0, -math.sin(half), -math.cos(half)))
    ankle = knee + Vector((0.0, math.sin(half), -math.cos(half)))
    names = ["thigh.L", "shin.L"] if foot else ["a", "b"]
    rigs.add_bones(ob, [(0, 0, 1), tuple(knee), tuple(ankle)], names)
    if foot:
        rigs.add_bones(ob, [tuple(ankle), tuple(ankle + Vector((0, -0.2, -0.05)))], ["foot.L"], parent="shin.L")
    rigs.roll_bones(ob, math.radians(90.0))
    return ob


def key_knee(ob: bpy.types.Object, bone: str, degrees: dict[int, float]) -> None:
    """Key a forward bend of the knee."""
    pose = ob.pose.bones[bone]
    axis = pose.bone.matrix_local.to_3x3().inverted() @ Vector((1.0, 0.0, 0.0))
    turns = {frame: Quaternion(axis, math.radians(angle)) for frame, angle in degrees.items()}
    rigs.key(pose, "rotation_quaternion", turns)


def found(ob: bpy.types.Object, capfd: pytest.CaptureFixture[str]) -> tuple[Vector, str]:
    """Return the bend side of the chain on the second bone, and the source it was found from."""
    root, tip = ob.pose.bones[0], ob.pose.bones[1]
    if not tip.ik_addon.is_chain:
        add(ob, tip.name, tip=tip.name, chain_length=2)
    tip.ik_addon.bend_side = (0.0, 0.0, 0.0)
    activate(ob, tip.name)
    text = said(capfd, bpy.ops.ik_addon.find_bend_side)
    return side_at_rest(ob, [root.name, tip.name]), text.strip().rpartition(" from ")[2]


def test_the_rest_pose_has_priority_unless_it_is_hyperextended(capfd: pytest.CaptureFixture[str]) -> None:
    """Even over the anatomy: a leg of an animal, say."""
    for bend, source, way in ((-30.0, "its rest pose", -1.0), (-4.0, "the anatomy of the character", 1.0)):
        side, evidence = found(leg(bend), capfd)
        assert evidence == source
        assert side.dot(FRONT) * way > 0.9


def test_the_current_pose_is_next_unless_it_is_hyperextended(capfd: pytest.CaptureFixture[str]) -> None:
    for angle, expected in ((30.0, 1.0), (-30.0, -1.0), (-8.0, 1.0)):
        ob = leg(0.0)
        key_knee(ob, "shin.L", {1: angle})
        ob.animation_data_clear()
        bpy.context.view_layer.update()
        side, evidence = found(ob, capfd)
        assert (evidence == "its current pose") == (angle != -8.0)
        assert side.dot(FRONT) * expected > 0.9


def test_bent_frames_of_the_animation_are_next(capfd: pytest.CaptureFixture[str]) -> None:
    ob = leg(0.0, foot=False)
    key_knee(ob, "b", {1: 0.0, 10: -5.0, 15: -5.0, 20: 50.0, 30: 0.0})
    bpy.context.scene.frame_set(12)
    side, evidence = found(ob, capfd)
    assert evidence == "its animation"
    assert side.dot(FRONT) > 0.99


def test_limits_are_next(capfd: pytest.CaptureFixture[str]) -> None:
    ob = leg(0.0)
    for bone in ob.pose.bones:
        axis = bone.bone.matrix_local.to_3x3().inverted() @ Vector((1.0, 0.0, 0.0))
        assert abs(axis.z) > 0.99
        bone.use_ik_limit_z, bone.lock_ik_x = True, True
        bone.ik_min_z, bone.ik_max_z = (0.0, 2.5) if axis.z < 0.0 else (-2.5, 0.0)
    side, evidence = found(ob, capfd)
    assert evidence == "its IK limits"
    assert side.dot(FRONT) < -0.99, "a positive bend about X goes to the front"


def test_the_anatomy_is_next_and_the_roll_is_last(capfd: pytest.CaptureFixture[str], addon: Addon) -> None:
    side, evidence = found(leg(0.0), capfd)
    assert evidence == "the anatomy of the character"
    assert side.dot(FRONT) > 0.99
    ob = leg(0.0, foot=False)
    side, evidence = found(ob, capfd)
    assert evidence == "only its bone roll"
    assert abs(side.dot(FRONT)) < 0.01
    bend_side = addon.module("chains.bend_side")
    bones = list(ob.pose.bones)
    assert bend_side.is_from_roll(bones[1], np.array(bones[1].ik_addon.bend_side))


def test_a_solved_pose_is_no_source(capfd: pytest.CaptureFixture[str]) -> None:
    ob = leg(0.0)
    add(ob, "shin.L", live=True)
    ob.pose.bones["shin.L"].ik_addon.bend_side = (0.0, 0.0, 0.0)
    ob.pose.bones["shin.L"].ik_addon.pole = None
    rigs.shift(ob.pose.bones["shin.L"].ik_addon.target, z=0.2)
    assert found(ob, capfd)[1] == "the anatomy of the character"


# ---- flipped, mirrored, copied, converted, used by presets


@pytest.mark.parametrize("controls", ["EMPTIES", "BONES"])
def test_flip_bend_flips_the_side_and_the_pole(controls: str) -> None:
    ob = leg(10.0)
    add(ob, "shin.L", controls=controls)

    def side_and_pole() -> tuple[Vector, np.ndarray]:
        chain = ob.pose.bones["shin.L"].ik_addon
        pole = rigs.head(ob, chain.pole_bone) if chain.pole_bone else rigs.position(chain.pole)
        return side_at_rest(ob, ["thigh.L", "shin.L"]), pole - rigs.head(ob, "shin.L")

    before = side_and_pole()
    for way in (-1.0, 1.0):
        assert bpy.ops.ik_addon.flip_bend() == {"FINISHED"}
        side, pole = side_and_pole()
        assert (side - way * before[0]).length < 1e-5
        assert np.abs(pole - way * before[1]).max() < 1e-4


def test_flip_bend_leaves_the_users_pole_and_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    ob = leg(10.0)
    add(ob, "shin.L", with_pole=False)
    pole = ob.pose.bones["shin.L"].ik_addon.pole = rigs.empty("Mine", (0, -2, 0))
    assert "The pole 'Mine' stays where it is" in said(capfd, bpy.ops.ik_addon.flip_bend)
    assert tuple(pole.location) == (0, -2, 0)


def test_a_converted_constraint_bends_as_before() -> None:
    ob = leg(20.0)
    goals = {"target": rigs.empty("Target", (0, 0, -0.6)), "pole_target": rigs.empty("Pole", (2.0, 0.0, 0.0))}
    rigs.constrain(ob.pose.bones["shin.L"], "IK", chain_count=2, **goals)
    bpy.context.view_layer.update()
    knee = Vector(rigs.head(ob, "shin.L"))
    assert abs(knee.y) < 0.01 < knee.x, "the constraint bends it to its pole"
    assert bpy.ops.ik_addon.convert_constraints() == {"FINISHED"}
    tip = ob.pose.bones["shin.L"]
    assert (Vector(rigs.head(ob, "shin.L")) - knee).length < 3e-4, "no farther than the constraint was from its target"
    turn: Matrix = rigs.evaluated(ob).pose.bones["thigh.L"].matrix.to_3x3()
    posed = turn @ Vector(tip.ik_addon.bend_side)
    across = knee - Vector((0, 0, 0.2))
    assert posed.normalized().dot(across.normalized()) > 0.7


@pytest.mark.parametrize("roll", [0, 45, 90, 180, 270])
def test_the_knee_preset_makes_a_hinge_towards_the_bend_side(roll: int, addon: Addon) -> None:
    ob = leg(0.0)
    rigs.roll_bones(ob, math.radians(roll))
    add(ob, "shin.L")
    preset = addon.module("chains.profile").SHIPPED / "Human_Knee.py"
    assert bpy.ops.ik_addon.preset_apply(filepath=str(preset)) == {"FINISHED"}
    shin = ob.pose.bones["shin.L"]
    letter = "x" if shin.lock_ik_z else "z"
    low, high = getattr(shin, f"ik_min_{letter}"), getattr(shin, f"ik_max_{letter}")
    angles = {"x": 0.0, "z": 0.0, "y": 0.0, letter: high if high > -low else low}
    bent = shin.bone.matrix_local.to_3x3() @ Euler((angles["x"], 0.0, angles["z"])).to_matrix() @ Vector((0, 1, 0))
    assert bent.dot(FRONT) < -0.3, "the foot goes back"


def test_a_bend_side_that_is_no_number_is_an_error_on_the_chain(addon: Addon) -> None:
    ob = leg(0.0)
    add(ob, "shin.L")
    chain = ob.pose.bones["shin.L"].ik_addon
    chain.bend_side = (math.nan, 0.0, 0.0)
    assert ("bend_side", "Bend Side") in list(addon.module("core.settings").unusable(chain))


# ---- solved


@pytest.mark.parametrize("preset", [False, True], ids=["plain", "preset"])
@pytest.mark.parametrize("pole", [False, True], ids=["no pole", "pole"])
def test_a_hyperextended_knee_bends_forward_and_the_foot_stays(pole: bool, preset: bool, addon: Addon) -> None:
    """FK goes through straight to 4 degrees of hyperextension, with a target raised by a little and by more."""
    ob = leg(0.0)
    key_knee(ob, "shin.L", {1: 12.0, 20: -4.0, 30: -4.0, 40: 3.0})
    add(ob, "shin.L", with_pole=pole)
    if preset:
        path = addon.module("chains.profile").SHIPPED / "Human_Knee.py"
        assert bpy.ops.ik_addon.preset_apply(filepath=str(path)) == {"FINISHED"}
    target = ob.pose.bones["shin.L"].ik_addon.target
    for raised in (0.0, 0.01, 0.2):
        toes = []
        for frame in range(1, 41, 3):
            ob.ik_addon.live = False
            bpy.context.scene.frame_set(frame)
            hip, ankle = rigs.head(ob, "thigh.L"), rigs.tail(ob, "shin.L")
            target.location = ankle + raised * (hip - ankle) / 2.0
            rigs.go_live(ob)
            knee, tip = rigs.head(ob, "shin.L"), rigs.tail(ob, "shin.L")
            assert np.abs(tip - rigs.position(target)).max() < 1e-4
            line = (tip - hip) / np.linalg.norm(tip - hip)
            across = knee - hip - (knee - hip).dot(line) * line
            assert across.dot(FRONT) > -1e-4, f"frame {frame}, raised by {raised}"
            toes.append(rigs.tail(ob, "foot.L") - rigs.head(ob, "foot.L"))
        assert min(toe[1] for toe in toes) < 0.0
        assert max(toe[1] for toe in toes) < 0.0, "no foot is turned round"


@pytest.mark.parametrize("live", [False, True])
def test_hyperextension_of_an_fk_pose(live: bool, addon: Addon) -> None:
    ob = leg(0.0)
    key_knee(ob, "shin.L", {1: 12.0, 20: -8.0})
    add(ob, "shin.L", live=live)
    hyperextension = addon.module("chains.bend_side").hyperextension
    side = np.array(ob.pose.bones["shin.L"].ik_addon.bend_side)
    for frame, expected in ((1, 0.0), (20, 8.0)):
        bpy.context.scene.frame_set(frame)
        bones = [ob.pose.bones[name] for name in ("thigh.L", "shin.L")]
        assert math.degrees(hyperextension(bones[-1], side, frame)) == pytest.approx(expected, abs=0.01)
