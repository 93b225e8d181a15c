"""Builds the sample files in this folder: `python3 tools/dev.py samples`.

Each shows one solver, moves, and is solved live. The saved pose is in the file: it opens the same without the add-on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import bpy
from mathutils import Vector

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


def new_file(frames: int) -> None:
    """An empty file with the extension enabled."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    bpy.context.preferences.filepaths.save_version = 0  # no backup beside the file
    blender.enable()
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, frames


def armature(name: str, bones: dict[str, Points]) -> bpy.types.Object:
    """An armature of one chain of bones, each given by its head and its tail."""
    rig = bpy.data.objects.new(name, bpy.data.armatures.new(name))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    rig.show_in_front = True
    bpy.ops.object.mode_set(mode="EDIT")
    above = None
    for bone_name, (head, tail) in bones.items():
        bone = rig.data.edit_bones.new(bone_name)
        bone.head, bone.tail = head, tail
        bone.parent, bone.use_connect = above, above is not None
        above = bone
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def add_chain(rig: bpy.types.Object, tip: str, length: int, with_pole: bool) -> Any:
    """Put a chain on a bone as a user does, and return its settings."""
    rig.data.bones.active = rig.data.bones[tip]
    OPERATORS.ik_addon.chain_add(chain_length=length, with_pole=with_pole)
    chain = rig.pose.bones[tip].ik_addon
    chain.target.name = "Target"
    if chain.pole is not None:
        chain.pole.name = "Pole"
    return chain


def key(ob: bpy.types.Object, places: dict[int, Sequence[float]]) -> None:
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
    blender.leave(0)
