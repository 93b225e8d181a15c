"""The lower bound for anything solved in a handler: a handler that writes the finished pose and does nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import bpy
import numpy as np
from bpy.app import handlers
from mathutils import Euler, Matrix, Quaternion
from numpy.typing import NDArray

Rows = NDArray[np.float32]
QUATERNION = "rotation_quaternion"
EULER = "rotation_euler"


@dataclass(frozen=True)
class Finished:
    """Rotations of solved bones on all frames."""

    channel: str
    """`QUATERNION` or `EULER`: the channel that all of these bones use."""
    bones: Sequence[int]
    """Indices of the bones."""
    turns: Mapping[int, Rows]
    """Rotations (k, 4) or (k, 3), by frame."""


def finished(ob: bpy.types.Object, names: Sequence[str], frames: range) -> list[Finished]:
    """Return the channels that reproduce, without constraints, the pose that an armature's constraints give to bones.

    The bones must have parents and inherit all of their transforms.
    """
    bones = [ob.pose.bones[name] for name in names]
    rests = [bone.bone.matrix_local.inverted() @ bone.parent.bone.matrix_local for bone in bones]
    placed = {}
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        placed[frame] = [
            rest @ bone.parent.matrix.inverted() @ bone.matrix for rest, bone in zip(rests, bones, strict=True)
        ]
    found = []
    for channel in (QUATERNION, EULER):
        own = [i for i, bone in enumerate(bones) if (channel == QUATERNION) == (bone.rotation_mode == "QUATERNION")]
        if own:
            turns = {
                frame: np.array([_turn(matrices[i], bones[i].rotation_mode) for i in own], dtype=np.float32)
                for frame, matrices in placed.items()
            }
            found.append(Finished(channel, [ob.pose.bones.find(names[i]) for i in own], turns))
    return found


def _turn(matrix: Matrix, mode: str) -> Quaternion | Euler:
    return matrix.to_quaternion() if mode == "QUATERNION" else matrix.to_euler(mode)


Poses = Mapping[str, Sequence[Finished]]
"""Armatures by name."""


@contextmanager
def writing_before(poses: Poses) -> Iterator[None]:
    """Write the pose of each armature before Blender evaluates a frame.

    Keyed bones go where their keys put them: for an armature whose solved bones are keyed, this measures only the cost.
    """
    values: dict[tuple[str, str], Rows] = {}

    def write(scene: bpy.types.Scene, _depsgraph: object) -> None:
        for name, parts in poses.items():
            ob = bpy.data.objects[name]
            for pose in parts:
                if (name, pose.channel) not in values:
                    values[name, pose.channel] = _turns_of(ob, pose.channel)
                rows = values[name, pose.channel]
                rows[pose.bones] = pose.turns[scene.frame_current]
                _put(ob, rows, pose.channel)

    with _added(handlers.frame_change_pre, write):
        yield


@contextmanager
def writing_after(poses: Poses) -> Iterator[None]:
    """Write the pose of each armature after Blender has evaluated a frame; Blender evaluates it again."""

    def write(scene: bpy.types.Scene, _depsgraph: object) -> None:
        for name, parts in poses.items():
            ob = bpy.data.objects[name]
            for pose in parts:
                rows = _turns_of(ob, pose.channel)
                rows[pose.bones] = pose.turns[scene.frame_current]
                _put(ob, rows, pose.channel)

    with _added(handlers.frame_change_post, write):
        yield


@contextmanager
def writing_on_updates(ob: bpy.types.Object, poses: Rows) -> Iterator[None]:
    """Write one pose (F, bones, 4) of an armature after another, each after an update of the scene."""
    name, waiting = ob.name, iter(poses)

    def write(_scene: bpy.types.Scene, _depsgraph: object) -> None:
        _put(bpy.data.objects[name], next(waiting))

    with _added(handlers.depsgraph_update_post, write):
        yield


def _turns_of(ob: bpy.types.Object, channel: str) -> Rows:
    values = np.empty((len(ob.pose.bones), 4 if channel == QUATERNION else 3), dtype=np.float32)
    ob.pose.bones.foreach_get(channel, values.ravel())
    return values


def _put(ob: bpy.types.Object, values: Rows, channel: str = QUATERNION) -> None:
    ob.pose.bones.foreach_set(channel, values.ravel())
    # Pretend that the object has moved: its pose is evaluated again, but the armature is not copied.
    ob.update_tag(refresh={"OBJECT"})


@contextmanager
def _added(place: list[Callable[[bpy.types.Scene, object], None]], handler: Callable[..., None]) -> Iterator[None]:
    place.append(handler)
    try:
        yield
    finally:
        place.remove(handler)
