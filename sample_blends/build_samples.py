"""Builds the sample files in this folder: `python3 tools/dev.py samples`.

Each shows one solver, moves, and is solved live. The saved pose is in the file: it opens the same without the add-on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import bpy
from mathutils import Quaternion, Vector

from tools import blender, scenery

FOLDER = Path(__file__).resolve().parent
SHOWN = 30
"""The frame on which the files open."""

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
    scenery.stage((2.9, 0.1, 1.3), (0.0, 0.15, 0.4), lens=42)
    save(rig, "finger_limits")


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


def save(rig: bpy.types.Object, name: str) -> None:
    """Switch Live on and save the file."""
    rig.ik_addon.live = True
    bpy.context.scene.frame_set(SHOWN)
    # The file browser remembers the folder of whoever runs this.
    for space in (space for screen in bpy.data.screens for area in screen.areas for space in area.spaces):
        if isinstance(space, bpy.types.SpaceFileBrowser) and space.params is not None:
            space.params.directory = b"//"
    bpy.ops.wm.save_as_mainfile(filepath=str(FOLDER / f"{name}.blend"), compress=True)


if __name__ == "__main__":
    two_bone_arm()
    tentacle()
    torso_tree()
    finger_limits()
    blender.leave(0)
