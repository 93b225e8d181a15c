"""Builds the sample files in this folder: `python3 tools/dev.py samples`.

Each shows one solver, moves, and is solved live. The saved pose is in the file: it opens the same without the add-on.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import bpy
from mathutils import Matrix, Quaternion, Vector

from tools import blender, demo, scenery

FOLDER = Path(__file__).resolve().parent
SHOWN = 30
"""The frame on which the files open."""

PREVIEW = 128
"""Pixels along a side of an asset's preview."""
CLOSE = 1.6
"""How much closer than the scene it shows."""
FOOT = 0.02
"""Height of the spider's feet that stand on the floor."""

Points = Sequence[Sequence[float]]

# What the extension adds to Blender is unknown to the types of bpy.
OPERATORS: Any = bpy.ops


def two_bone_arm() -> None:
    """An arm whose target also goes where it cannot follow; softness lets it ease into extension."""
    new_file(frames=120)
    rig = armature(
        "Arm", {"upper_arm": ((0, 0, 0.9), (0.7, 0.12, 0.95)), "forearm": ((0.7, 0.12, 0.95), (1.3, 0, 1.0))}
    )
    chain = add_chain(rig, "forearm", 2, with_pole=True)
    chain.softness = 0.05
    key(
        chain.target,
        {
            1: (0.85, -0.35, 1.15),
            25: (0.35, -0.55, 0.55),
            45: (0.90, -0.60, 1.35),
            60: (1.15, -0.95, 1.70),  # out of reach, as is all that is farther than 1.3 from the shoulder
            75: (0.90, -0.30, 1.40),
            100: (0.30, -0.60, 1.45),
            120: (0.85, -0.35, 1.15),
        },
    )
    key(chain.pole, {1: (0.9, 1.2, 0.3), 60: (0.9, 1.2, 0.3), 90: (0.5, 0.6, 2.0), 120: (0.9, 1.2, 0.3)})
    blue = scenery.material("Arm", (0.02, 0.36, 0.50))
    grey = scenery.material("Post", (0.35, 0.34, 0.33))
    scenery.body(rig, [scenery.Part("upper_arm", 0.11, 0.08, blue), scenery.Part("forearm", 0.08, 0.05, blue)])
    scenery.box("Post", (0.22, 0.22, 0.9), (0.0, 0.0, 0.45), grey)
    show_goals(chain, 0.08)
    scenery.stage((1.9, -4.4, 2.0), (0.5, 0.0, 0.85), lens=45)
    save(rig, "two_bone_arm")


def tentacle() -> None:
    """24 bones that follow a target round a loop."""
    new_file(frames=120)
    # At rest it leans a little, each bone more than the one below.
    count, length = 24, 0.1
    points = [Vector((0.0, 0.0, 0.0))]
    for i in range(count):
        lean = 0.02 * i
        points.append(points[-1] + length * Vector((0.0, -math.sin(lean), math.cos(lean))))
    names = [f"tentacle.{i + 1:02}" for i in range(count)]
    rig = armature("Tentacle", dict(zip(names, pairwise(points), strict=True)))
    chain = add_chain(rig, names[-1], 0, with_pole=False)
    key(
        chain.target,
        {
            1: (0.0, -0.5, 2.1),
            20: (1.2, -0.4, 1.3),
            40: (0.7, -0.9, 0.3),
            60: (-0.3, -0.7, 0.9),
            80: (-1.3, 0.2, 1.2),
            100: (-0.7, 0.5, 1.9),
            120: (0.0, -0.5, 2.1),
        },
    )
    looks = [scenery.material("Green", (0.10, 0.42, 0.16)), scenery.material("Light green", (0.42, 0.55, 0.12))]
    thick = [0.13 - 0.1 * i / count for i in range(count + 1)]
    parts = [scenery.Part(name, thick[i], thick[i + 1], looks[i % 2]) for i, name in enumerate(names)]
    scenery.body(rig, parts)
    show_goals(chain, 0.07)
    scenery.stage((1.6, -5.2, 1.9), (0.0, 0.0, 1.1), lens=42)
    save(rig, "tentacle")


def torso_tree() -> None:
    """A spine with a head and two arms: three chains that share the spine, with limits on every joint."""
    new_file(frames=120)
    bones = {
        f"spine.{i + 1}": ((0, 0.02 * (i % 2), 0.9 + 0.2 * i), (0, 0.02 * ((i + 1) % 2), 1.1 + 0.2 * i))
        for i in range(3)
    }
    bones["neck"] = (bones["spine.3"][1], (0, 0, 1.62))
    bones["head"] = ((0, 0, 1.62), (0, 0, 1.82))
    rig = armature("Torso", bones)
    for side, x in (("L", 1.0), ("R", -1.0)):
        arm = {
            f"shoulder.{side}": ((0.04 * x, 0, 1.45), (0.2 * x, 0, 1.43)),
            f"upper_arm.{side}": ((0.2 * x, 0, 1.43), (0.52 * x, 0.04, 1.40)),
            f"forearm.{side}": ((0.52 * x, 0.04, 1.40), (0.82 * x, 0, 1.37)),
        }
        add_bones(rig, arm, parent="spine.3")
        limit(rig, f"shoulder.{side}", x=(-12, 12), z=(-12, 12), y=(0, 0))
        limit(rig, f"upper_arm.{side}", x=(-80, 80), z=(-80, 80), y=(-60, 60))
        limit(rig, f"forearm.{side}", x=(-140, 140), z=(-20, 20), y=(0, 0))
    for i in range(3):
        limit(rig, f"spine.{i + 1}", x=(-25, 35), z=(-20, 20), y=(-20, 20))
    limit(rig, "neck", x=(-30, 30), z=(-25, 25), y=(-40, 40))
    limit(rig, "head", x=(-30, 30), z=(-20, 20), y=(-30, 30))
    tips = ("head", "forearm.L", "forearm.R")
    places = record(
        rig,
        tips,
        {
            "spine.1": (12, 5, 6),
            "spine.2": (10, -8, 6),
            "spine.3": (8, 10, -7),
            "neck": (10, 15, 9),
            "head": (10, -9, 7),
            "upper_arm.L": (35, 20, 40),
            "forearm.L": (60, 0, 10),
            "upper_arm.R": (-40, 15, 35),
            "forearm.R": (70, 0, -9),
        },
    )
    for tip in tips:
        chain = add_chain(rig, tip, 0, with_pole=False, name=f"Target {tip}")
        key(chain.target, places[tip])
        show_goals(chain, 0.06 if tip == "head" else 0.07)
    cloth = scenery.material("Torso", (0.72, 0.30, 0.06))
    blue = scenery.material("Arm", (0.02, 0.36, 0.50))
    skin = scenery.material("Head", (0.75, 0.72, 0.70))
    parts = [scenery.Part(f"spine.{i + 1}", 0.13 + 0.015 * i, 0.145 + 0.015 * i, cloth) for i in range(3)]
    parts += [scenery.Part("neck", 0.06, 0.05, skin), scenery.Part("head", 0.1, 0.09, skin)]
    for side in "LR":
        parts += [
            scenery.Part(f"shoulder.{side}", 0.07, 0.07, cloth),
            scenery.Part(f"upper_arm.{side}", 0.07, 0.055, blue),
            scenery.Part(f"forearm.{side}", 0.055, 0.035, blue),
        ]
    scenery.body(rig, parts)
    scenery.box("Post", (0.3, 0.3, 0.85), (0.0, 0.0, 0.425), scenery.material("Post", (0.35, 0.34, 0.33)))
    scenery.stage((1.1, -4.6, 2.0), (0.0, 0.0, 1.2), lens=48)
    save(rig, "torso_tree")


def finger_limits() -> None:
    """A finger on its hand: hinges that bend one way, and a knuckle that also spreads a little."""
    new_file(frames=120)
    bones = {
        "hand": ((0, -0.75, 0.5), (0, 0, 0.5)),
        "finger.1": ((0, 0, 0.5), (0, 0.45, 0.52)),
        "finger.2": ((0, 0.45, 0.52), (0, 0.75, 0.51)),
        "finger.3": ((0, 0.75, 0.51), (0, 1.0, 0.5)),
    }
    rig = armature("Finger", bones)
    limit(rig, "finger.1", x=(-90, 20), z=(-15, 15), y=(0, 0))
    limit(rig, "finger.2", x=(-110, 0), z=(0, 0), y=(0, 0))
    limit(rig, "finger.3", x=(-80, 0), z=(0, 0), y=(0, 0))
    tip = "finger.3"
    bend = {"finger.1": (30, 0, 6), "finger.2": (45, 0, 0), "finger.3": (30, 0, 0)}
    places = record(rig, (tip,), bend, middle={"finger.1": -28, "finger.2": -52, "finger.3": -36})
    chain = add_chain(rig, tip, 3, with_pole=False)
    key(chain.target, places[tip])
    show_goals(chain, 0.085)
    skin = scenery.material("Finger", (0.78, 0.50, 0.36))
    dark = scenery.material("Hand", (0.55, 0.33, 0.24))
    thick = {"hand": (0.17, 0.14), "finger.1": (0.13, 0.11), "finger.2": (0.11, 0.095), "finger.3": (0.095, 0.07)}
    parts = [scenery.Part(n, a, b, dark if n == "hand" else skin) for n, (a, b) in thick.items()]
    scenery.body(rig, parts)
    scenery.stage((2.9, 0.1, 1.3), (0.0, 0.15, 0.35), lens=42, ground=-0.6)
    save(rig, "finger_limits")


def spider() -> None:
    """A spider that walks in a circle: its body is keyed, its feet stand on targets in the world and step in turns."""
    frames, cycle, swing, radius, height = 120, 20, 8, 0.62, 0.36
    new_file(frames)
    rig = armature("Spider", {"body": ((0, -0.12, height), (0, 0.22, height))})
    add_bones(rig, {"abdomen": ((0, -0.24, height + 0.04), (0, -0.58, height + 0.12))}, parent="body")
    homes: dict[str, Vector] = {}  # where the feet stand under the body
    for side, x in (("L", -1.0), ("R", 1.0)):
        for i, (fore, angle, reach) in enumerate(
            ((0.17, 48, 0.86), (0.06, 17, 0.78), (-0.05, -17, 0.78), (-0.15, -46, 0.92))
        ):
            out = Vector((x * math.cos(math.radians(angle)), math.sin(math.radians(angle)), 0.0))
            hip = Vector((0.11 * x, fore, height))
            knee, foot = hip + 0.46 * reach * out + Vector((0, 0, 0.27)), hip + reach * out
            foot.z = FOOT
            name = f"{side}.{i + 1}"
            add_bones(rig, {f"femur.{name}": (hip, knee), f"tibia.{name}": (knee, foot)}, parent="body")
            homes[name] = foot

    def body_at(frame: float) -> Matrix:
        """The body's place: round the circle, ahead along its Y axis, with a bob at every step."""
        turn = 2.0 * math.pi * (frame - 1) / frames
        beat = 2.0 * math.pi * (frame - 1) / (cycle / 2)
        place = Matrix.Rotation(turn, 4, "Z") @ Matrix.Translation((radius, 0, 0.015 * math.cos(beat)))
        return place @ Matrix.Rotation(math.radians(2.5) * math.sin(0.5 * beat), 4, "Y")

    rest = rig.data.bones["body"].matrix_local
    body = rig.pose.bones["body"]
    body.rotation_mode = "XYZ"
    for frame in range(1, frames + 2, cycle // 4):
        place = rest.inverted() @ body_at(frame) @ rest
        body.location = place.translation
        body.rotation_euler = place.to_euler("XYZ", body.rotation_euler)
        body.keyframe_insert("location", frame=frame)
        body.keyframe_insert("rotation_euler", frame=frame)
    bpy.context.scene.frame_set(1)

    red = scenery.material("Target", (0.9, 0.02, 0.03), glow=0.35)
    for i, (name, home) in enumerate(homes.items()):
        chain = add_chain(rig, f"tibia.{name}", 2, with_pole=True, name=f"Foot {name}")
        knee = rig.data.bones[f"tibia.{name}"].head_local
        hang(chain.pole, rig, "body", Matrix.Translation(knee + Vector((0, 0, 0.5))))
        chain.pole.name, chain.pole_angle = f"Knee {name}", 0.0
        # Neighbours and opposites step in turns: half of the feet are always on the floor.
        odd = (i + (i >= 4)) % 2
        start = 1 + (cycle // 2) * odd + (i % 4) // 2
        steps: dict[int, Vector] = {}
        for lift in range(start - cycle, frames + cycle, cycle):
            down = lift + swing
            # It is set down where it stands right under the body in the middle of the time that it stays there.
            old, new = (
                body_at(middle) @ home for middle in (lift - 0.5 * (cycle - swing), down + 0.5 * (cycle - swing))
            )
            old.z = new.z = FOOT
            steps |= {lift: old, lift + swing // 2: old.lerp(new, 0.5) + Vector((0, 0, 0.16)), down: new}
        key(chain.target, steps)
        scenery.ball("Target ball", 0.035, (0.0, 0.0, 0.0), red).parent = chain.target
    fur = scenery.material("Body", (0.045, 0.035, 0.03), roughness=0.6)
    back = scenery.material("Abdomen", (0.16, 0.05, 0.02), roughness=0.6)
    orange = scenery.material("Femur", (0.66, 0.20, 0.03))
    parts = [scenery.Part("body", 0.13, 0.10, fur, width=1.15), scenery.Part("abdomen", 0.15, 0.19, back, width=1.1)]
    for name in homes:
        parts += [
            scenery.Part(f"femur.{name}", 0.05, 0.036, orange),
            scenery.Part(f"tibia.{name}", 0.036, 0.014, fur),
        ]
    scenery.body(rig, parts)
    white = scenery.material("Eye", (0.8, 0.85, 0.8), roughness=0.1, glow=0.2)
    for x, y, z, size in (
        (-0.05, 0.30, 0.06, 0.034),
        (0.05, 0.30, 0.06, 0.034),
        (-0.1, 0.26, 0.06, 0.02),
        (0.1, 0.26, 0.06, 0.02),
    ):
        hang(scenery.ball("Eye", size, (0, 0, 0), white), rig, "body", Matrix.Translation((x, y, height + z)))
    scenery.stage((1.9, -3.1, 2.3), (0.0, -0.05, 0.14), lens=42)
    save(rig, "spider")


def flat_arm() -> None:
    """A mechanical arm of four links that stays in its plane while it follows a target."""
    new_file(frames=120)
    points = [(0.0, 0.0, 0.5), (-0.15, 0.0, 1.15), (0.3, 0.0, 1.6), (0.8, 0.0, 1.45), (1.05, 0.0, 1.05)]
    names = [f"link.{i + 1}" for i in range(4)]
    rig = armature("Flat arm", dict(zip(names, pairwise(points), strict=True)))
    roll(rig, names, (0, -1, 0))
    chain = add_chain(rig, names[-1], 0, with_pole=False)
    chain.planar = True
    key(
        chain.target,
        {
            1: (1.05, 0, 1.05),
            20: (1.45, 0, 0.45),
            35: (1.45, 0, 0.25),
            60: (0.35, 0, 1.75),
            80: (-0.75, 0, 1.85),
            95: (-1.0, 0, 1.6),
            120: (1.05, 0, 1.05),
        },
    )
    yellow = scenery.material("Link", (0.85, 0.48, 0.02))
    grey = scenery.material("Joint", (0.22, 0.23, 0.25), roughness=0.3)
    parts = []
    for i, name in enumerate(names):
        wide = 0.1 - 0.016 * i
        parts.append(scenery.Part(name, 0.055, 0.055, yellow, width=wide / 0.055))
        # A pin through the joint: short along the bone, round in the plane, longer than the link is thick.
        parts.append(scenery.Part(name, 0.075, 0.075, grey, width=0.8 * wide / 0.075, span=0.0))
    scenery.body(rig, parts)
    scenery.box("Base", (0.5, 0.5, 0.12), (0, 0, 0.06), grey)
    scenery.box("Post", (0.22, 0.16, 0.4), (0, 0, 0.3), grey)
    show_goals(chain, 0.08)
    scenery.stage((1.5, -4.4, 1.7), (0.2, 0.0, 0.85), lens=42)
    save(rig, "flat_arm")


def converted() -> None:
    """Legs that were rigged with Blender's IK constraints, and then converted: the constraints are there, muted."""
    new_file(frames=120)
    rig = armature("Legs", {"pelvis": ((0, 0, 1.0), (0, 0, 1.1))})
    feet: dict[str, dict[int, tuple[float, float, float]]] = {
        "L": {1: (0.16, 0.02, 0.1), 40: (0.16, 0.02, 0.1), 50: (0.3, -0.12, 0.28), 60: (0.42, -0.22, 0.1)},
        "R": {1: (-0.16, 0.02, 0.1), 80: (-0.16, 0.02, 0.1), 90: (-0.25, -0.2, 0.35), 100: (-0.16, 0.02, 0.1)},
    }
    feet["L"] |= {100: (0.42, -0.22, 0.1), 110: (0.3, -0.1, 0.2), 120: (0.16, 0.02, 0.1)}
    for side, x in (("L", 1.0), ("R", -1.0)):
        hip, knee, ankle = Vector((0.14 * x, 0, 0.98)), Vector((0.15 * x, -0.02, 0.55)), Vector((0.16 * x, 0.02, 0.1))
        add_bones(rig, {f"thigh.{side}": (hip, knee), f"shin.{side}": (knee, ankle)}, parent="pelvis")
        add_bones(rig, {f"foot.{side}": (ankle, ankle + Vector((0, -0.19, -0.045)))}, parent=f"shin.{side}")
        rig.data.bones[f"foot.{side}"].use_inherit_rotation = False  # the soles stay level
        roll(rig, (f"thigh.{side}", f"shin.{side}"), (1, 0, 0))  # X axes, which Blender's poles turn, to the front
        bone = rig.pose.bones[f"shin.{side}"]
        constraint = bone.constraints.new("IK")
        constraint.chain_count = 2
        constraint.target, constraint.pole_target = empty(f"Foot {side}"), empty(f"Knee {side}")
        key(constraint.target, feet[side])
        key(constraint.pole_target, {1: (0.2 * x, -0.9, 0.6)})
    OPERATORS.ik_addon.convert_constraints()
    pelvis = rig.pose.bones["pelvis"]  # its Y axis is up, its Z axis to the front
    for frame, place, twist in (
        (1, (0, -0.03, 0), 0),
        (20, (0, -0.36, -0.1), 0),
        (38, (-0.1, -0.06, 0), 6),
        (62, (0.14, -0.2, 0.12), -14),
        (78, (0.3, -0.14, 0.12), -8),
        (100, (0.14, -0.25, 0.1), 0),
        (120, (0, -0.03, 0), 0),
    ):
        pelvis.location = place
        pelvis.rotation_quaternion = Quaternion((0, 1, 0), math.radians(twist))
        pelvis.keyframe_insert("location", frame=frame)
        pelvis.keyframe_insert("rotation_quaternion", frame=frame)
    for side in "LR":
        show_goals(rig.pose.bones[f"shin.{side}"].ik_addon, 0.062)
    white = scenery.material("Leg", (0.62, 0.64, 0.66))
    teal = scenery.material("Shin", (0.02, 0.36, 0.34))
    dark = scenery.material("Pelvis", (0.12, 0.13, 0.15))
    parts = [scenery.Part("pelvis", 0.13, 0.12, dark, width=1.75)]
    for side in "LR":
        parts += [
            scenery.Part(f"thigh.{side}", 0.095, 0.07, white),
            scenery.Part(f"shin.{side}", 0.072, 0.045, teal),
            scenery.Part(f"foot.{side}", 0.05, 0.045, dark),
        ]
    scenery.body(rig, parts)
    scenery.stage((2.1, -3.3, 1.5), (0.02, -0.15, 0.55), lens=56)
    save(rig, "converted")


def character() -> None:
    """A figure of whom Set Up Character made all chains: the hips move, hands and feet stay on their targets."""
    new_file(frames=120)
    rig = human()
    OPERATORS.ik_addon.character_setup(controls="EMPTIES")
    hips = rig.pose.bones["hips"]  # its Y axis is up, its Z axis to the front
    for frame, place, lean in (
        (1, (0, -0.04, 0), 0),
        (22, (0, -0.3, -0.12), 24),
        (42, (0, -0.03, 0), 0),
        (56, (-0.08, -0.05, 0), 0),
        (88, (-0.08, -0.05, 0), 0),
        (104, (0, -0.12, 0), 6),
        (120, (0, -0.04, 0), 0),
    ):
        hips.location, hips.rotation_quaternion = place, Quaternion((1, 0, 0), math.radians(lean))
        hips.keyframe_insert("location", frame=frame)
        hips.keyframe_insert("rotation_quaternion", frame=frame)
    down = {1: (0.5, -0.12, 1.02), 22: (0.3, -0.5, 1.0), 42: (0.5, -0.14, 1.05), 104: (0.4, -0.3, 1.05)}
    out = {56: (0.5, -0.15, 1.35), 72: (0.48, -0.15, 1.45), 88: (0.5, -0.15, 1.35)}
    for side, x in (("L", 1.0), ("R", -1.0)):
        places = {frame: (place[0] * x, *place[1:]) for frame, place in {**down, **out, 120: down[1]}.items()}
        if side == "R":
            places |= {frame: (place[0] - 0.1, *place[1:]) for frame, place in places.items() if frame in out}
        key(rig.pose.bones[f"forearm.{side}"].ik_addon.target, dict(sorted(places.items())))
    key(
        rig.pose.bones["shin.L"].ik_addon.target,
        {56: (0.1, 0, 0.1), 66: (0.16, -0.12, 0.3), 78: (0.16, -0.12, 0.3), 88: (0.1, 0, 0.1)},
    )
    for tip in (bone for bone in rig.pose.bones if bone.ik_addon.is_chain):
        show_goals(tip.ik_addon, 0.045)
    body = dress_human(rig)
    figure = together(rig, body)
    scenery.stage((2.0, -3.9, 1.5), (0.0, -0.05, 0.86), lens=48)
    save(rig, "character")
    mark_as_asset(
        figure, "A figure with chains on arms, legs, spine and head, set up in one click", "rig", "ik", "human"
    )
    save(rig, "character")


def posing_human() -> None:
    """The figure without chains, with the limits of a human and pins on its feet, and its head looks ahead."""
    new_file(frames=48)
    rig = human()
    OPERATORS.ik_addon.character_setup(live=False, controls="EMPTIES")
    for tip in [bone for bone in rig.pose.bones if bone.ik_addon.is_chain]:
        activate(rig, tip.name)
        OPERATORS.ik_addon.chain_remove()
    bpy.ops.object.mode_set(mode="EDIT")
    for name in ("hand.L", "hand.R"):
        rig.data.edit_bones[name].use_connect = True  # as Auto IK wants it
    bpy.ops.object.mode_set(mode="POSE")
    for name in ("foot.L", "foot.R"):
        rig.pose.bones[name].ik_addon.pin = {"LOCATION", "ROTATION"}
    rig.pose.bones["head"].ik_addon.pin = {"ROTATION"}
    dress_human(rig)
    scenery.stage((2.2, -3.9, 1.5), (0.1, -0.2, 0.86), lens=39)
    save_posing(rig, "posing_human", "hand.L")


def posing_horse() -> None:
    """A horse with hinges at its knees and hocks, and pins on its hooves: drag its muzzle to the ground."""
    new_file(frames=48)
    trunk = [(0, 0.62, 1.36), (0, 0.3, 1.36), (0, -0.05, 1.33), (0, -0.45, 1.38), (0, -0.72, 1.62), (0, -0.95, 1.84)]
    names = ("hips", "spine", "chest", "neck.001", "neck.002")
    rig = armature("Horse", dict(zip(names, pairwise(trunk), strict=True)))
    add_bones(rig, {"head": (trunk[-1], (0, -1.38, 1.62))}, parent="neck.002")
    tail = [(0, 0.68, 1.34), (0, 0.86, 1.12), (0, 0.9, 0.86), (0, 0.88, 0.62)]
    add_bones(rig, {f"tail.00{i + 1}": ends for i, ends in enumerate(pairwise(tail))}, parent="hips")
    for side, x in (("L", 1.0), ("R", -1.0)):
        hind = [(0.15, 0.6, 1.27), (0.17, 0.4, 0.98), (0.16, 0.73, 0.62), (0.15, 0.68, 0.2), (0.15, 0.6, 0.03)]
        fore = [(0.08, -0.32, 1.38), (0.15, -0.6, 1.1), (0.16, -0.38, 0.88), (0.15, -0.42, 0.5), (0.15, -0.42, 0.18)]
        for bones, places, above in (
            (("thigh", "shin", "cannon", "hoof"), hind, "hips"),
            (("shoulder", "upper_arm", "forearm", "forecannon", "forehoof"), [*fore, (0.15, -0.5, 0.03)], "chest"),
        ):
            points = [(px * x, py, pz) for px, py, pz in places]
            own = [f"{bone}.{side}" for bone in bones]
            add_bones(rig, dict(zip(own, pairwise(points), strict=True)), parent=above)
            roll(rig, own, (0, 1, 0))  # X is what they bend about
        for name, low, high in (("shin", -60, 40), ("cannon", -40, 70), ("forearm", -20, 80), ("forecannon", -100, 5)):
            limit(rig, f"{name}.{side}", x=(low, high), y=(0, 0), z=(0, 0))
        for name in ("hoof", "forehoof"):
            rig.pose.bones[f"{name}.{side}"].ik_addon.pin = {"LOCATION", "ROTATION"}
    coat = scenery.material("Coat", (0.27, 0.12, 0.05))
    dark = scenery.material("Mane", (0.05, 0.035, 0.03))
    parts = [
        scenery.Part("hips", 0.24, 0.26, coat),
        scenery.Part("spine", 0.26, 0.27, coat),
        scenery.Part("chest", 0.27, 0.21, coat),
        scenery.Part("neck.001", 0.17, 0.13, coat),
        scenery.Part("neck.002", 0.13, 0.1, coat),
        scenery.Part("head", 0.115, 0.065, coat),
        *(scenery.Part(f"tail.00{i}", 0.04, 0.03, dark) for i in (1, 2, 3)),
    ]
    for side in "LR":
        sizes = {"thigh": (0.15, 0.1), "shin": (0.09, 0.055), "cannon": (0.05, 0.038), "hoof": (0.042, 0.05)}
        sizes |= {"shoulder": (0.1, 0.11), "upper_arm": (0.11, 0.08), "forearm": (0.075, 0.05)}
        sizes |= {"forecannon": (0.046, 0.036), "forehoof": (0.04, 0.048)}
        for name, (head, end) in sizes.items():
            parts.append(scenery.Part(f"{name}.{side}", head, end, dark if "hoof" in name else coat))
    scenery.body(rig, parts)
    scenery.stage((3.6, -4.6, 1.7), (0.0, -0.3, 0.85), lens=48, ground=-0.02)
    save_posing(rig, "posing_horse", "head")


def activate(rig: bpy.types.Object, bone: str) -> None:
    """Make a bone the active one, and the only one that is selected, in Pose Mode."""
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="DESELECT")
    rig.data.bones.active = rig.data.bones[bone]


def save_posing(rig: bpy.types.Object, name: str, bone: str) -> None:
    """Save the file in Pose Mode with an active bone, ready to be dragged."""
    activate(rig, bone)
    save(rig, name, live=False)


def human() -> bpy.types.Object:
    """A figure at rest."""
    names = ("hips", "spine.001", "spine.002", "chest", "neck", "head")
    heights = (0.97, 1.05, 1.18, 1.31, 1.46, 1.54, 1.76)
    deep = (0.0, 0.0, -0.015, -0.02, 0.0, -0.01, -0.02)
    trunk = [(0.0, y, z) for y, z in zip(deep, heights, strict=True)]
    rig = armature("Figure", dict(zip(names, pairwise(trunk), strict=True)))
    for side, x in (("L", 1.0), ("R", -1.0)):
        shoulder, elbow, wrist = Vector((0.17 * x, 0, 1.42)), Vector((0.39 * x, 0.01, 1.24)), Vector((0.6 * x, 0, 1.07))
        add_bones(rig, {f"shoulder.{side}": ((0.03 * x, 0, 1.42), shoulder)}, parent="chest")
        add_bones(rig, {f"upper_arm.{side}": (shoulder, elbow), f"forearm.{side}": (elbow, wrist)}, f"shoulder.{side}")
        add_bones(rig, {f"hand.{side}": (wrist, (0.69 * x, -0.01, 0.99))}, parent=f"forearm.{side}")
        roll(rig, (f"upper_arm.{side}", f"forearm.{side}"), (0, 1, 0))  # X is what the elbow bends about
        hip, knee, ankle = Vector((0.1 * x, 0, 0.94)), Vector((0.1 * x, -0.005, 0.52)), Vector((0.1 * x, 0, 0.1))
        add_bones(rig, {f"thigh.{side}": (hip, knee), f"shin.{side}": (knee, ankle)}, parent="hips")
        ball, toe = (0.1 * x, -0.14, 0.035), (0.1 * x, -0.21, 0.035)
        add_bones(rig, {f"foot.{side}": (ankle, ball), f"toe.{side}": (ball, toe)}, parent=f"shin.{side}")
    return rig


def dress_human(rig: bpy.types.Object) -> bpy.types.Object:
    """What shows the figure."""
    cloth = scenery.material("Cloth", (0.07, 0.22, 0.42))
    skin = scenery.material("Skin", (0.72, 0.44, 0.30))
    dark = scenery.material("Shoes", (0.08, 0.08, 0.09))
    parts = [
        scenery.Part("hips", 0.11, 0.11, dark, width=1.5),
        *(scenery.Part(name, 0.1, 0.11, cloth, width=1.3) for name in ("spine.001", "spine.002")),
        scenery.Part("chest", 0.12, 0.1, cloth, width=1.5),
        scenery.Part("neck", 0.05, 0.05, skin),
        scenery.Part("head", 0.08, 0.1, skin, span=0.8),
    ]
    for side in "LR":
        parts += [
            scenery.Part(f"shoulder.{side}", 0.06, 0.07, cloth),
            scenery.Part(f"upper_arm.{side}", 0.06, 0.05, cloth),
            scenery.Part(f"forearm.{side}", 0.048, 0.036, skin),
            scenery.Part(f"hand.{side}", 0.04, 0.03, skin, width=1.4),
            scenery.Part(f"thigh.{side}", 0.09, 0.065, dark),
            scenery.Part(f"shin.{side}", 0.065, 0.045, dark),
            scenery.Part(f"foot.{side}", 0.045, 0.033, dark, width=1.2),
            scenery.Part(f"toe.{side}", 0.033, 0.03, dark, width=1.3),
        ]
    return scenery.body(rig, parts)


def horse() -> None:
    """A horse of which Set Up Character made all chains: it grazes and paws, and its legs fold as a horse's do."""
    new_file(frames=120)
    spine = [(0, y, z) for y, z in ((0.62, 1.4), (0.3, 1.37), (0.0, 1.35), (-0.28, 1.37), (-0.5, 1.42))]
    rig = armature("Horse", dict(zip(("pelvis", "lumbar", "thoracic", "chest"), pairwise(spine), strict=True)))
    nape = [(0, -0.5, 1.46), (0, -0.74, 1.78), (0, -0.98, 2.02), (0, -1.32, 1.7)]
    add_bones(rig, dict(zip(("neck.001", "neck.002", "head"), pairwise(nape), strict=True)), parent="chest")
    add_bones(rig, {"tail": ((0, 0.66, 1.38), (0, 0.82, 0.9))}, parent="pelvis")
    hind = ("femur", "tibia", "metatarsus", "hind_pastern", "hind_hoof")
    fore = ("scapula", "humerus", "radius", "metacarpus", "front_pastern", "front_hoof")
    for side, x in (("L", 0.16), ("R", -0.16)):
        for names, parent, line in (
            (hind, "pelvis", ((0.5, 1.28), (0.34, 0.98), (0.7, 0.62), (0.66, 0.2), (0.6, 0.08), (0.53, 0.03))),
            (
                fore,
                "chest",
                ((-0.3, 1.42), (-0.56, 1.12), (-0.4, 0.88), (-0.44, 0.5), (-0.45, 0.2), (-0.51, 0.08), (-0.58, 0.03)),
            ),
        ):
            joints = pairwise([(x, y, z) for y, z in line])
            add_bones(rig, dict(zip([f"{name}.{side}" for name in names], joints, strict=True)), parent=parent)
    OPERATORS.ik_addon.character_setup(controls="EMPTIES")
    pelvis = rig.pose.bones["pelvis"]  # its Y axis points ahead, its Z axis up
    for frame, place, lean in (
        (1, (0, 0, 0), 0),
        (25, (0, 0, -0.04), -2),
        (48, (0, 0, -0.04), -2),
        (72, (0, -0.06, -0.04), 3),
        (100, (0, -0.06, -0.04), 3),
        (120, (0, 0, 0), 0),
    ):
        pelvis.location, pelvis.rotation_quaternion = place, Quaternion((1, 0, 0), math.radians(lean))
        pelvis.keyframe_insert("location", frame=frame)
        pelvis.keyframe_insert("rotation_quaternion", frame=frame)
    up, low, high = (0, -1.32, 1.7), (0, -1.05, 0.5), (0, -1.24, 1.86)
    stand, bowed = (0, -0.5, 1.42), (0, -0.5, 1.37)
    ground, raised, ahead = (0.16, -0.45, 0.2), (0.16, -0.72, 0.72), (0.16, -0.95, 0.5)
    targets = {
        "chest": {1: stand, 25: bowed, 48: bowed, 72: stand},
        "head": {1: up, 25: low, 36: (0, -1.0, 0.55), 48: low, 72: high, 100: high, 120: up},
        "metacarpus.L": {72: ground, 80: raised, 86: ahead, 92: raised, 100: ground},
    }
    for tip, places in targets.items():
        key(rig.pose.bones[tip].ik_addon.target, places)
    for tip_bone in (bone for bone in rig.pose.bones if bone.ik_addon.is_chain):
        show_goals(tip_bone.ik_addon, 0.05)
    coat = scenery.material("Coat", (0.32, 0.13, 0.05), roughness=0.6)
    dark = scenery.material("Mane", (0.05, 0.03, 0.02), roughness=0.7)
    parts = [
        scenery.Part("pelvis", 0.22, 0.24, coat),
        scenery.Part("lumbar", 0.24, 0.26, coat),
        scenery.Part("thoracic", 0.26, 0.26, coat),
        scenery.Part("chest", 0.25, 0.2, coat),
        scenery.Part("neck.001", 0.16, 0.12, coat),
        scenery.Part("neck.002", 0.12, 0.1, coat),
        scenery.Part("head", 0.11, 0.06, coat),
        scenery.Part("tail", 0.03, 0.07, dark),
    ]
    thick = {"femur": 0.14, "tibia": 0.09, "metatarsus": 0.05, "scapula": 0.12, "humerus": 0.1, "radius": 0.07}
    for side in "LR":
        for name in (*hind, *fore):
            size = thick.get(name, 0.04)
            look = dark if name.endswith(("pastern", "hoof")) else coat
            parts.append(scenery.Part(f"{name}.{side}", size, 0.7 * size if name in thick else size, look))
    scenery.body(rig, parts)
    scenery.stage((4.4, -3.9, 1.8), (0.0, -0.3, 1.08), lens=44)
    save(rig, "horse")


def switches() -> None:
    """A hand goes with a crate from one shelf to another by Switch Space, and waves in FK after Switch IK/FK."""
    new_file(frames=120)
    rig = armature(
        "Helper", {"upper_arm": ((0, 0, 1.0), (0.42, 0.08, 0.85)), "forearm": ((0.42, 0.08, 0.85), (0.8, 0, 0.72))}
    )
    add_bones(rig, {"hand": ((0.8, 0, 0.72), (0.95, -0.02, 0.67))}, parent="forearm")
    chain = add_chain(rig, "forearm", 2, with_pole=True)
    rig.ik_addon.live = True
    wood = scenery.material("Crate", (0.48, 0.27, 0.10))
    crate = scenery.box("Crate", (0.2, 0.2, 0.2), (0.0, 0.0, 0.0), wood)
    low, high = (0.5, -0.35, 0.4), (-0.1, -0.55, 0.7)
    key(crate, {26: low, 45: (0.2, -0.5, 0.75), 62: high})
    start = (0.6, -0.05, 1.2)
    key(chain.target, {1: start, 26: (low[0], low[1], 0.53)})
    scene = bpy.context.scene
    scene.frame_set(26)
    OPERATORS.ik_addon.switch_space(space="OBJECT", object=crate.name)
    scene.frame_set(62)
    OPERATORS.ik_addon.switch_space(space="WORLD")
    scene.frame_set(64)
    OPERATORS.ik_addon.switch_ik_fk(to="FK")
    upper, lower = (rig.pose.bones[name] for name in ("upper_arm", "forearm"))
    for frame, bend in ((80, 20), (86, 65), (92, 20), (98, 65), (104, 20)):
        for bone, angle in ((upper, 50), (lower, bend)):
            bone.rotation_quaternion = Quaternion((1, 0, 0), math.radians(angle))
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    scene.frame_set(104)
    OPERATORS.ik_addon.switch_ik_fk(to="IK")
    to_world = chain.target.matrix_world @ chain.target.matrix_basis.inverted()
    key(chain.target, {120: to_world.inverted() @ Vector(start)})
    blue = scenery.material("Arm", (0.02, 0.36, 0.50))
    grey = scenery.material("Post", (0.35, 0.34, 0.33))
    parts = (("upper_arm", 0.09, 0.06), ("forearm", 0.06, 0.045), ("hand", 0.05, 0.03))
    scenery.body(rig, [scenery.Part(name, head, tail, blue) for name, head, tail in parts])
    scenery.box("Post", (0.2, 0.2, 1.0), (0.0, 0.0, 0.5), grey)
    for x, y, z in (low, high):
        scenery.box("Shelf", (0.3, 0.3, z - 0.1), (x, y, 0.5 * (z - 0.1)), grey)
    show_goals(chain, 0.06)
    scenery.stage((2.1, -3.9, 2.0), (0.2, -0.15, 0.9), lens=42)
    save(rig, "switches")


def limit(rig: bpy.types.Object, name: str, **ranges: tuple[float, float]) -> None:
    """Set the IK limits of a bone about x, y and z, in degrees from rest; (0, 0) locks the axis."""
    bone = rig.pose.bones[name]
    for axis, (low, high) in ranges.items():
        setattr(bone, f"lock_ik_{axis}", low == high)
        setattr(bone, f"use_ik_limit_{axis}", True)
        setattr(bone, f"ik_min_{axis}", math.radians(low))
        setattr(bone, f"ik_max_{axis}", math.radians(high))


def record(
    rig: bpy.types.Object,
    tips: Sequence[str],
    swings: dict[str, tuple[float, float, float]],
    middle: dict[str, float] | None = None,
) -> dict[str, dict[int, Vector]]:
    """Where the tips are, frame by frame, while bones swing within their limits: so all of it can be reached.

    Args:
        rig: the armature object, at rest before and after.
        tips: bones whose tails are followed.
        swings: degrees to either side about x, y and z.
        middle: degrees about x around which a bone swings, 0 where it is not named.
    """
    scene = bpy.context.scene
    places: dict[str, dict[int, Vector]] = {tip: {} for tip in tips}
    for frame in range(scene.frame_start, scene.frame_end + 1):
        turn = 2.0 * math.pi * (frame - scene.frame_start) / (scene.frame_end - scene.frame_start)
        for i, (name, sizes) in enumerate(swings.items()):
            angles = [math.radians(s) * math.sin(turn * (1 + k) + 0.7 * i) for k, s in enumerate(sizes)]
            x, y, z = angles
            swing = Vector((x + math.radians((middle or {}).get(name, 0.0)), 0.0, z))
            turn_y = Quaternion((0.0, 1.0, 0.0), y)
            rig.pose.bones[name].rotation_quaternion = Quaternion(swing, swing.length) @ turn_y
        bpy.context.view_layer.update()
        for tip in tips:
            places[tip][frame] = rig.matrix_world @ rig.pose.bones[tip].tail
    for bone in rig.pose.bones:
        bone.rotation_quaternion = (1.0, 0.0, 0.0, 0.0)
    bpy.context.view_layer.update()
    return places


def new_file(frames: int) -> None:
    """An empty file with the extension enabled."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    bpy.context.preferences.filepaths.save_version = 0  # no backup beside the file
    blender.enable()
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, frames


def armature(name: str, bones: dict[str, Points]) -> bpy.types.Object:
    """An armature, to begin with of one chain of bones, each given by its head and its tail."""
    rig = bpy.data.objects.new(name, bpy.data.armatures.new(name))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    rig.show_in_front = True
    add_bones(rig, bones)
    return rig


def add_bones(rig: bpy.types.Object, bones: dict[str, Points], parent: str | None = None) -> None:
    """Add a chain of bones below `parent`, which need not be where the chain starts."""
    bpy.ops.object.mode_set(mode="EDIT")
    above = None if parent is None else rig.data.edit_bones[parent]
    for i, (bone_name, (head, tail)) in enumerate(bones.items()):
        bone = rig.data.edit_bones.new(bone_name)
        bone.head, bone.tail = head, tail
        bone.parent, bone.use_connect = above, i > 0
        above = bone
    bpy.ops.object.mode_set(mode="OBJECT")


def roll(rig: bpy.types.Object, names: Sequence[str], z_axis: Sequence[float]) -> None:
    """Turn bones about themselves so that their Z axes point as nearly as they can along `z_axis`."""
    bpy.ops.object.mode_set(mode="EDIT")
    for name in names:
        rig.data.edit_bones[name].align_roll(z_axis)
    bpy.ops.object.mode_set(mode="OBJECT")


def empty(name: str) -> bpy.types.Object:
    """An empty as a target."""
    made = bpy.data.objects.new(name, None)
    made.empty_display_size = 0.1
    bpy.context.scene.collection.objects.link(made)
    return made


def hang(ob: bpy.types.Object, rig: bpy.types.Object, bone: str, place: Matrix) -> None:
    """Parent an object to a bone, so that it stands at `place` while the bone is at rest."""
    ob.parent, ob.parent_type, ob.parent_bone = rig, "BONE", bone
    # The place of a child is measured from the bone's tail.
    tail = rig.data.bones[bone].matrix_local @ Matrix.Translation((0, rig.data.bones[bone].length, 0))
    ob.matrix_parent_inverse.identity()
    ob.matrix_basis = tail.inverted() @ place


def add_chain(rig: bpy.types.Object, tip: str, length: int, with_pole: bool, name: str = "Target") -> Any:
    """Put a chain on a bone as a user does, and return its settings."""
    bpy.context.view_layer.objects.active = rig
    rig.data.bones.active = rig.data.bones[tip]
    OPERATORS.ik_addon.chain_add(chain_length=length, with_pole=with_pole)
    chain = rig.pose.bones[tip].ik_addon
    chain.target.name = name
    if chain.pole is not None:
        chain.pole.name = "Pole"
    return chain


def key(ob: bpy.types.Object, places: Mapping[int, Sequence[float]]) -> None:
    """Key the location of an object."""
    for frame, place in places.items():
        ob.location = place
        ob.keyframe_insert("location", frame=frame)


def show_goals(chain: Any, size: float) -> None:
    """Balls on the target and the pole."""
    red = scenery.material("Target", (0.9, 0.02, 0.03), glow=0.35)
    scenery.ball("Target ball", size, (0.0, 0.0, 0.0), red).parent = chain.target
    if chain.pole is not None:
        yellow = scenery.material("Pole", (0.9, 0.6, 0.02), glow=0.35)
        scenery.ball("Pole ball", 0.7 * size, (0.0, 0.0, 0.0), yellow).parent = chain.pole


def together(rig: bpy.types.Object, *parts: bpy.types.Object) -> bpy.types.Collection:
    """Put a rig, what shows it, and the collection of its targets into a collection of the rig's name."""
    scene, whole = bpy.context.scene, bpy.data.collections.new(rig.name)
    for child in scene.collection.children[:]:
        scene.collection.children.unlink(child)
        whole.children.link(child)
    for ob in (rig, *parts):
        scene.collection.objects.unlink(ob)
        whole.objects.link(ob)
    scene.collection.children.link(whole)
    return whole


def mark_as_asset(collection: Any, description: str, *tags: str) -> None:
    """Show a collection in the Asset Browser, by what the camera sees now."""
    collection.asset_mark()
    data = collection.asset_data
    data.description, data.license, data.author = description, "GPL-3.0-or-later", "The IK Chains developers"
    for tag in tags:
        data.tags.new(tag, skip_if_exists=True)
    render: Any = bpy.context.scene.render
    camera = bpy.context.scene.camera.data
    lens, camera.lens = camera.lens, CLOSE * camera.lens
    size, render.resolution_x, render.resolution_y = (render.resolution_x, render.resolution_y), PREVIEW, PREVIEW
    with tempfile.TemporaryDirectory() as folder:
        render.filepath = str(Path(folder, "preview.png"))
        with demo.quiet():
            bpy.ops.render.render(write_still=True)
        preview = collection.preview_ensure()
        preview.image_size = (PREVIEW, PREVIEW)
        preview.image_pixels_float.foreach_set(demo.load(render.filepath).ravel())
    render.filepath, (render.resolution_x, render.resolution_y) = "", size
    camera.lens = lens


def save(rig: bpy.types.Object, name: str, *, live: bool = True) -> None:
    """Switch Live on or off, make renders safe, and save the file."""
    rig.ik_addon.live = live
    bpy.context.scene.render.use_lock_interface = True  # as live chains want it
    bpy.context.scene.frame_set(SHOWN)
    # The file browser remembers the folder of whoever runs this.
    for space in (space for screen in bpy.data.screens for area in screen.areas for space in area.spaces):
        if isinstance(space, bpy.types.SpaceFileBrowser) and space.params is not None:
            space.params.directory = b"//"
    bpy.ops.wm.save_as_mainfile(filepath=str(FOLDER / f"{name}.blend"), compress=True)


SAMPLES: tuple[Callable[[], None], ...] = (
    two_bone_arm,
    tentacle,
    torso_tree,
    finger_limits,
    spider,
    flat_arm,
    converted,
    character,
    horse,
    switches,
    posing_human,
    posing_horse,
)


def main() -> None:
    """Build the samples that are named, or all."""
    parser = argparse.ArgumentParser(prog="make samples", description="Build the sample files.")
    names = [build.__name__ for build in SAMPLES]
    parser.add_argument("sample", nargs="*", choices=[*names, []], help=f"which ones, of {', '.join(names)}; all")
    chosen = parser.parse_args().sample or names
    for build in SAMPLES:
        if build.__name__ in chosen:
            build()


if __name__ == "__main__":
    main()
    blender.leave(0)
