"""The lower bound for anything solved in a handler: a handler that writes the finished pose and does nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import bpy
import numpy as np
from bpy.app import handlers
from numpy.typing import NDArray

Rows = NDArray[np.float32]


@dataclass(frozen=True)
class Finished:
    """Rotations of the solved bones on all frames."""

    bones: Sequence[int]
    """Indices of the bones."""
    turns: Mapping[int, Rows]
    """Quaternions (k, 4), by frame."""


def finished(ob: bpy.types.Object, names: Sequence[str], frames: range) -> Finished:
    """Return the channels that reproduce, without constraints, the pose that an armature's constraints give to bones.

    The bones must have parents and inherit all of their transforms.
    """
    bones = [ob.pose.bones[name] for name in names]
    rests = [bone.bone.matrix_local.inverted() @ bone.parent.bone.matrix_local for bone in bones]
    turns = {}
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        local = [rest @ bone.parent.matrix.inverted() @ bone.matrix for rest, bone in zip(rests, bones, strict=True)]
        turns[frame] = np.array([matrix.to_quaternion() for matrix in local], dtype=np.float32)
    return Finished([ob.pose.bones.find(name) for name in names], turns)


@contextmanager
def writing_before(poses: Mapping[str, Finished]) -> Iterator[None]:
    """Write the pose of each armature, by name, before Blender evaluates a frame.

    Keyed bones go where their keys put them: for an armature whose solved bones are keyed, this measures only the cost.
    """
    values: dict[str, Rows] = {}

    def write(scene: bpy.types.Scene, _depsgraph: object) -> None:
        for name, pose in poses.items():
            ob = bpy.data.objects[name]
            if name not in values:
                values[name] = _turns_of(ob)
            values[name][pose.bones] = pose.turns[scene.frame_current]
            _put(ob, values[name])

    with _added(handlers.frame_change_pre, write):
        yield


@contextmanager
def writing_after(poses: Mapping[str, Finished]) -> Iterator[None]:
    """Write the pose of each armature, by name, after Blender has evaluated a frame; Blender evaluates it again."""

    def write(scene: bpy.types.Scene, _depsgraph: object) -> None:
        for name, pose in poses.items():
            ob = bpy.data.objects[name]
            values = _turns_of(ob)
            values[pose.bones] = pose.turns[scene.frame_current]
            _put(ob, values)

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


def _turns_of(ob: bpy.types.Object) -> Rows:
    values = np.empty((len(ob.pose.bones), 4), dtype=np.float32)
    ob.pose.bones.foreach_get("rotation_quaternion", values.ravel())
    return values


def _put(ob: bpy.types.Object, values: Rows) -> None:
    ob.pose.bones.foreach_set("rotation_quaternion", values.ravel())
    # Pretend that the object has moved: its pose is evaluated again, but the armature is not copied.
    ob.update_tag(refresh={"OBJECT"})


@contextmanager
def _added(place: list[Callable[[bpy.types.Scene, object], None]], handler: Callable[..., None]) -> Iterator[None]:
    place.append(handler)
    try:
        yield
    finally:
        place.remove(handler)
