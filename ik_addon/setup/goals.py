"""Targets and poles as what a pose places: where they belong for it, and how they are moved and keyed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector

from ..data.settings import chain_of
from ..pose import channels, keyframes
from ..pose.channels import FIELDS, Row
from ..solve import pole_angle
from ..solve.problem import Floats
from . import new_chain
from .autokey import Holder
from .present import Limb, seen_from, world_of

NEAR = 0.1
"""A pole nearer to the limb's line than this, in chain lengths, is moved away from it."""


@dataclass(frozen=True)
class MovableGoal:
    """A target or pole to be placed."""

    ob: bpy.types.Object
    bone: str
    turns: bool
    """It also takes the orientation."""

    @property
    def holder(self) -> Holder:
        """The object or bone that is moved."""
        return self.ob.pose.bones[self.bone] if self.bone and self.ob.type == "ARMATURE" else self.ob

    @property
    def name(self) -> str:
        """For messages."""
        return self.bone or self.ob.name

    @property
    def fields(self) -> tuple[str, ...]:
        """The channels that are set."""
        turned = (channels.rotation_field(self.holder.rotation_mode),) if self.turns else ()
        return ("location", *turned)

    def row(self) -> Row:
        """The current channels (17,)."""
        row = np.zeros(channels.WIDTH, dtype=np.float32)
        for field, columns in FIELDS.items():
            row[columns] = getattr(self.holder, field)
        return row

    def set_row(self, row: Row) -> None:
        """Set those of the channels (17,) that are in `fields`."""
        for field in self.fields:
            setattr(self.holder, field, row[FIELDS[field]].tolist())

    def place(self, world: Matrix) -> None:
        """Move it to a world matrix, with its parents as they are now; channels other than `fields` stay."""
        before = self.row()
        if isinstance(self.holder, bpy.types.Object):
            self.holder.matrix_world = world
        else:
            self.holder.matrix = self.ob.matrix_world.inverted_safe() @ world
        placed = self.row()
        for field, columns in FIELDS.items():
            setattr(self.holder, field, before[columns].tolist())
        self.set_row(placed)


@dataclass(slots=True)
class _ObjectChannel(keyframes.Channel):
    """An animated number of an object."""

    @property
    def data_path(self) -> str:
        """The path of the property from the object."""
        return self.field


# ---- places


def target_place(limb: Limb, world: Matrix) -> Vector:
    """Where in world space a target makes the tip of a limb stay, for the world matrix of its armature."""
    line = limb.tip - limb.joints[0]
    # Rounding that put the target nearer would bend a straight limb.
    beyond = new_chain.BEYOND * limb.length * line / np.linalg.norm(line) if limb.is_straight else 0.0
    return world @ Vector((limb.tip + beyond).tolist())


def pole_place(
    ob: bpy.types.Object, limb: Limb, tip: bpy.types.PoseBone, pole: MovableGoal, depsgraph: bpy.types.Depsgraph
) -> Floats:
    """Where (3,) a pole makes a limb bend as it does, with the pole angle of its chain, as far off as it is now."""
    root, line = limb.joints[0], limb.tip - limb.joints[0]
    size = float(np.linalg.norm(line))
    line = line / size if size > 0.0 else limb.frames[0, :, 1]
    axis = Vector(line.tolist())
    seen = seen_from(ob, world_of(pole.ob, pole.bone, depsgraph).translation, depsgraph) - root
    across = seen - (seen @ line) * line
    distance = float(np.linalg.norm(across))
    along = root + 0.5 * size * line
    if distance < NEAR * limb.length:
        distance, across = limb.length, np.array(axis.orthogonal())
    side = Vector(across.tolist()).normalized()
    own = limb.frames[0].dot(np.array(chain_of(tip).bend_side))
    points = limb.tip[None], (along + np.array(side))[None]
    needed = pole_angle(limb.joints[None], limb.frames[None], *points, own[None])[0]
    angle = chain_of(ob.evaluated_get(depsgraph).pose.bones[tip.name]).pole_angle
    side.rotate(Quaternion(axis, float(needed) - angle))
    return np.asarray(along + distance * np.array(side))


# ---- keys


def key_goals(goals: list[MovableGoal], rows: Row, frames: Sequence[int]) -> None:
    """Key the goals; all of them or none."""
    with ExitStack() as undo:
        for g, goal in enumerate(goals):
            undo.callback(keyframes.write_channels(goal.ob, channels_of(goal, rows[:, g]), np.array(frames, float)))
        undo.pop_all()


def channels_of(goal: MovableGoal, rows: Row) -> list[keyframes.Channel]:
    """What is keyed of a goal with the channels (F, 17)."""
    is_bone = isinstance(goal.holder, bpy.types.PoseBone)
    kind: Callable[..., keyframes.Channel] = keyframes.Channel if is_bone else _ObjectChannel
    group = goal.name if is_bone else "Object Transforms"
    return [
        kind(group, field, i, column)
        for field in goal.fields
        for i, column in enumerate(rows[:, FIELDS[field]].T.astype(np.float64))
    ]
