"""Whatever is animated, a pose depends on the frame alone: not on where a session began, nor on who evaluates it.

A small character has each property that Blender can animate keyed in turn, on its bones, constraints, targets and all
that carries these. Its poses are compared with those that it has where the same value was set by hand, in sessions that
begin on different frames, in renders, and after a bake.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
import pytest
from numpy.typing import NDArray

from tests import rigs
from tests.animatable import BEGIN, TURN, Animatable, reason, walk

if TYPE_CHECKING:
    from tests.conftest import Addon

# What the extension adds to Blender is unknown to the types of bpy.
OPERATORS: Any = bpy.ops

LAST = 20
FRAMES = (BEGIN, TURN - 1, TURN, LAST)
"""The first and the last on which either value holds."""
SAME = 1e-6
"""In lengths of the shorter chain."""
ARMATURES = ("Other", "Rig")
"""In the order in which they can be baked: a target of the second can be carried by the first."""

Poses = dict[int, NDArray[np.float64]]
"""By frame: all pose matrices of all armatures."""


# ---- the character


def build() -> None:
    """An arm with a pole and a tail with limits, whose targets are carried in different ways, and a second armature."""
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = BEGIN, LAST
    other = rigs.armature("Other")
    rigs.add_bones(other, [(2.0, 0.0, 0.0), (2.0, -0.2, 1.0), (2.0, 0.0, 2.0)], ["upper", "lower"])
    rigs.chain(other, "lower", rigs.empty("Point"), 2)
    ob = rigs.armature("Rig")
    rigs.add_bones(ob, [(0.0, 0.0, 1.0), (0.0, 0.0, 1.3), (0.0, 0.05, 1.8)], ["hips", "chest"])
    rigs.add_bones(ob, [(0.0, -0.3, 1.5), (0.0, -0.5, 1.5)], ["handle"], parent="hips")
    arm = [(0.2, 0.0, 1.8), (0.9, 0.15, 1.8), (1.6, 0.0, 1.8), (1.8, 0.0, 1.8)]
    rigs.add_bones(ob, arm, ["upper", "lower", "hand"], parent="chest")
    tail = [(0.0, 0.1, 1.0), (0.0, 0.5, 0.9), (0.0, 0.9, 0.9), (0.0, 1.3, 1.0), (0.0, 1.7, 1.2)]
    rigs.add_bones(ob, tail, ["tail1", "tail2", "tail3", "tail4"], parent="hips")
    hand, lure, elbow = rigs.empty("Hand"), rigs.empty("Lure"), rigs.empty("Elbow", (0.4, 0.6, 0.3))
    prop, guide = rigs.empty("Prop", (0.3, -0.2, 0.4)), rigs.empty("Guide")
    guide.rotation_euler = (0.2, 0.5, -0.3)
    _carry(hand, prop)
    _carry(lure, other, "lower").influence = 0.0
    lure.parent = prop
    elbow.parent, elbow.parent_type, elbow.parent_bone = ob, "BONE", "handle"
    for owner, kind, aim in (
        ("chest", "COPY_ROTATION", guide),
        ("upper", "COPY_ROTATION", guide),
        ("hand", "IK", prop),
    ):
        constraint: Any = ob.pose.bones[owner].constraints.new(kind)
        constraint.target, constraint.influence = aim, 0.5
        constraint.mute = owner != "chest"
    ob.pose.bones["hand"].constraints[0].chain_count = 3
    rigs.chain(ob, "lower", hand, 2, pole=elbow)
    rigs.chain(ob, "tail4", lure, 4, softness=0.02)
    for bone in ob.pose.bones:
        _limit(bone)
        if bone.name not in {"hips", "handle"}:
            bone.rotation_quaternion = (0.98, 0.05, -0.08, 0.1)
    _animate(ob)


def _carry(ob: bpy.types.Object, carrier: bpy.types.Object, bone: str = "") -> Any:
    constraint: Any = ob.constraints.new("CHILD_OF")
    constraint.target, constraint.subtarget = carrier, bone
    bpy.context.view_layer.update()
    frame = carrier.matrix_world @ carrier.pose.bones[bone].matrix if bone else carrier.matrix_world
    constraint.inverse_matrix = frame.inverted()
    return constraint


def _limit(bone: bpy.types.PoseBone) -> None:
    """Narrow limits on each bone, of which those about X hold back, and only those of the tail."""
    for axis in "xyz":
        setattr(bone, f"ik_min_{axis}", -0.5)
        setattr(bone, f"ik_max_{axis}", 0.4)
    bone.use_ik_limit_x = bone.name in {"tail2", "tail3"}
    bone.ik_stiffness_x = 0.2 if bone.name == "tail3" else 0.0


def _animate(ob: bpy.types.Object) -> None:
    moves = {
        "Point": {1: (2.6, 0.4, 1.0), 20: (1.6, 0.9, 0.9)},
        "Hand": {1: (0.9, 0.3, 2.2), 20: (0.8, -0.6, 1.4)},
        "Lure": {1: (0.3, 1.5, 0.3), 20: (-0.4, 1.2, 1.1)},
        "Prop": {1: (0.3, -0.2, 0.4), 20: (0.1, 0.1, 0.6)},
    }
    for name, places in moves.items():
        rigs.key(bpy.data.objects[name], "location", dict(places))
    rigs.key(bpy.data.objects["Prop"], "rotation_euler", {1: (0.0, 0.0, 0.0), 20: (0.1, -0.3, 0.2)})
    hips: Any = ob.pose.bones["hips"]
    rigs.key(hips, "rotation_quaternion", {1: (1.0, 0.0, 0.0, 0.0), 20: (0.95, 0.1, 0.2, -0.1)})


@dataclass(frozen=True)
class Character:
    """The character in a file, not live, and what of it can be animated."""

    file: Path
    properties: dict[str, Animatable]
    """By their names."""
    size: float
    """Length of its shorter chain."""


def in_file(folder: Path) -> Character:
    """Build the character and save it; what is open is lost."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    build()
    bpy.context.scene.frame_set(BEGIN)
    found = [prop for ob in list(bpy.data.objects) for prop in walk(ob)]
    found += [prop for armature in bpy.data.armatures for prop in walk(armature)]
    size = rigs.length(bpy.data.objects["Rig"], "lower", 2)
    _prepare_rendering()
    file = folder / "character.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(file))
    return Character(file, {prop.name: prop for prop in found}, size)


# ---- ways to a pose


class _Poses(bpy.types.RenderEngine):
    """Renders nothing; notes the poses that a render engine sees on the frames."""

    bl_idname = "IK_TEST_POSES"
    bl_label = "Poses"
    bl_use_preview = False

    seen: Poses
    order: Iterable[int]

    def render(self, depsgraph: bpy.types.Depsgraph) -> None:
        """Note the poses."""
        for frame in type(self).order:
            self.frame_set(frame, 0.0)
            type(self).seen[frame] = _pose(depsgraph)


def _prepare_rendering() -> None:
    scene = bpy.context.scene
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    scene.collection.objects.link(camera)
    scene.camera = camera
    scene.render.resolution_x = scene.render.resolution_y = 8


@contextmanager
def engine() -> Iterator[None]:
    """The render engine above can be used."""
    bpy.utils.register_class(_Poses)
    try:
        yield
    finally:
        bpy.utils.unregister_class(_Poses)


def _pose(depsgraph: bpy.types.Depsgraph) -> NDArray[np.float64]:
    parts = []
    for name in ARMATURES:
        bones = bpy.data.objects[name].evaluated_get(depsgraph).pose.bones
        values = np.empty(16 * len(bones), dtype=np.float32)
        bones.foreach_get("matrix", values)
        parts.append(values)
    return np.concatenate(parts).astype(np.float64)


def _played(frames: Iterable[int]) -> Poses:
    found = {}
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        found[frame] = _pose(bpy.context.evaluated_depsgraph_get())
    return found


def _rendered(frames: Iterable[int]) -> Poses:
    scene: Any = bpy.context.scene
    scene.render.engine = _Poses.bl_idname
    _Poses.seen, _Poses.order = {}, frames
    bpy.ops.render.render()
    scene.render.engine = "BLENDER_WORKBENCH"
    return _Poses.seen


def _baked(frames: Sequence[int]) -> Poses:
    """Frames that follow each other, baked one armature after the other, and played without a live chain."""
    for name in ARMATURES:
        bpy.context.view_layer.objects.active = bpy.data.objects[name]
        OPERATORS.ik_addon.bake(frame_range="CUSTOM", frame_start=min(frames), frame_end=max(frames))
    _live(False)
    return _played(frames)


def _live(live: bool) -> None:
    for name in ARMATURES:
        bpy.data.objects[name].ik_addon.live = live


def _begin(frame: int, file: Path) -> None:
    """Begin a session on a frame: save the character there, live, and open it."""
    _live(False)
    bpy.context.scene.frame_set(frame)
    _live(True)
    bpy.context.view_layer.update()
    bpy.ops.wm.save_as_mainfile(filepath=str(file))
    bpy.ops.wm.open_mainfile(filepath=str(file))


def by_hand(character: Character, prop: Animatable) -> Poses:
    """The poses with the values that hold on the frames, where nothing but these is set and nothing animates them."""
    found = {}
    for value, frames in zip(prop.values, (FRAMES[:2], FRAMES[2:]), strict=True):
        bpy.ops.wm.open_mainfile(filepath=str(character.file))
        prop.release()
        prop.set(value)
        bpy.context.scene.frame_set(frames[0])
        _live(True)
        found.update(_played(frames))
    return found


def ways(folder: Path) -> Iterator[tuple[str, Poses]]:
    """Each way to the poses of the character that is open, by its name."""
    first, second = folder / "first.blend", folder / "second.blend"
    _live(False)
    bpy.context.scene.frame_set(LAST)
    _live(True)
    bpy.context.view_layer.update()
    bpy.ops.wm.save_as_mainfile(filepath=str(second))
    _begin(BEGIN, first)
    yield "rendered from the first frame", _rendered(FRAMES)
    yield "played from the first frame", _played(FRAMES)
    yield "baked", _baked(FRAMES[1:3])
    bpy.ops.wm.open_mainfile(filepath=str(second))
    yield "rendered from the last frame", _rendered(FRAMES[::-1])
    yield "played from the last frame", _played(FRAMES[::-1])
    yield "played in disorder", _played(random.Random(3).sample(FRAMES, len(FRAMES)))


def check_property(character: Character, prop: Animatable, folder: Path) -> list[str]:
    """Key a property and compare all ways to the poses; return what differs, in sentences."""
    expected = by_hand(character, prop)
    bpy.ops.wm.open_mainfile(filepath=str(character.file))
    prop.key()
    wrong = []
    for way, found in ways(folder):
        off = {f: float(np.abs(found[f] - expected[f]).max()) / character.size for f in sorted(found)}
        if not max(off.values()) <= SAME:
            wrong.append(f"{way}: " + ", ".join(f"frame {f} by {distance:.1e}" for f, distance in off.items()))
    return wrong
