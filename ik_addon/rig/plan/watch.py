"""Watch animated or driven settings that a plan was made from, as their values may differ on another frame.

A plan holds structure. Channels, transforms and the numbers of a chain are the state of a frame and are read with it.
Everything else that F-curves, drivers or NLA strips reach is watched, and the plan is made again when it changes.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, Self

import numpy as np
from bpy.types import ID, Depsgraph, Object

from ...core import compat
from ...core.channels import FIELDS
from ...core.constraints import strength
from ...core.data_paths import below_bone, value_at
from ...core.untyped import Shaped, Struct
from ...solve.problem import Floats
from .presence import Reference


class Settings(NamedTuple):
    """The settings of a chain that are read on each frame: single numbers, or arrays over frames and chains."""

    pole_angle: Shaped
    """In radians."""
    softness: Shaped
    """As a fraction of the chain's length, like the two below."""
    push_limit: Shaped
    """How far the root may be pushed."""
    tolerance: Shaped
    """The error that counts as reached."""
    influence: Shaped
    """From 0, the FK pose, to 1."""

    @classmethod
    def of(cls, columns: Floats) -> Self:
        """Return the settings in the columns of an array (..., S)."""
        return cls(*np.moveaxis(columns, -1, 0))


OBJECT_FIELDS = {
    "location": 3,
    "rotation_quaternion": 4,
    "rotation_euler": 3,
    "rotation_axis_angle": 4,
    "scale": 3,
    "delta_location": 3,
    "delta_rotation_quaternion": 4,
    "delta_rotation_euler": 3,
    "delta_scale": 3,
}
"""The properties that place an object, and their number of elements."""
BYSTANDERS = ("[", "modifiers[", "color", "hide_render")
"""Prefixes of an object's data paths that do not affect its transform; paths of bones are checked separately."""
MARKS = frozenset(("contact", "heel_pivot", "toe_pivot", "pin", "give", "stamp", "resting"))
"""Settings of a bone that are not read when a frame is solved."""
BONE_BYSTANDERS = (
    *("[", "bbone_", "color", "custom_shape", "hide", "lock_location", "lock_rotation", "lock_scale"),
    *(f"ik_addon.{name}" for name in sorted(MARKS)),
)
"""The same for paths below a pose bone, or a bone of an armature."""
READ = frozenset((*FIELDS, *(f"ik_addon.{name}" for name in Settings._fields)))
"""The properties of a pose bone that are read on each frame."""

Values = tuple[object, ...]


class Watched(NamedTuple):
    """Settings of one object, or of its data, that a plan depends on and that may change from frame to frame."""

    reference: Reference
    is_data: bool
    paths: tuple[str, ...]

    def values(self, depsgraph: Depsgraph) -> Iterator[object]:
        """Yield the values where a depsgraph is evaluated."""
        ob = self.reference.find()
        seen = None if ob is None else ob.evaluated_get(depsgraph)
        owner = seen.data if self.is_data and seen is not None else seen
        for path in self.paths:
            value = None if owner is None else value_at(owner, path)
            yield strength(value) if path.endswith(".influence") and value is not None else value


def values_of(watch: Iterable[Watched], depsgraph: Depsgraph) -> Values:
    """Return the watched values on the frame at which a depsgraph is evaluated."""
    return tuple(value for own in watch for value in own.values(depsgraph))


def watch(ob: Object, bones: Collection[str], others: Iterable[Object]) -> tuple[Watched, ...]:
    """Watch an armature object, the bones that its chains depend on, and other objects.

    Args:
        ob: the armature object, the original one.
        bones: names of the bones of chains, and of their ancestors.
        others: the goals of its chains, and the objects that these are attached to.
    """
    own = *goal_paths(ob), *_of_bones(ob, bones)
    found = [
        Watched(Reference.of(ob), False, tuple(dict.fromkeys(own))),
        Watched(Reference.of(ob), True, tuple(_of_bones(ob.data, bones))),
        *(Watched(Reference.of(o), False, tuple(goal_paths(o.original))) for o in others if o.original != ob),
    ]
    return tuple(each for each in found if each.paths)


def is_animated(ob: Object) -> bool:
    """Whether anything but the user may change an object's pose from frame to frame."""
    if compat.evaluated_tracks(ob.animation_data) or compat.drivers_of(ob):
        return True
    curves = compat.curves_of(ob)
    if compat.action_of(ob) is None:
        return False
    return not curves or any(below_bone(own.data_path)[1].removeprefix("ik_addon.") not in MARKS for own in curves)


def animated_paths(owner: ID) -> Iterator[str]:
    """Yield the data paths that F-curves, drivers and NLA strips reach, each once."""
    yield from dict.fromkeys(curve.data_path for curve in compat.animating(owner))


def _of_bones(owner: Struct, bones: Collection[str]) -> Iterator[str]:
    """Yield paths of an armature object, or of its data, that concern these bones, apart from `goal_paths`."""
    for path in animated_paths(owner):
        name, rest = below_bone(path)
        is_watched = rest not in READ and not rest.startswith((*BONE_BYSTANDERS, "constraints["))
        if path == "pose_position" or (name in bones and is_watched):
            yield path


def goal_paths(ob: Object) -> Iterator[str]:
    """Yield all paths except transforms that affect how a goal is placed: an object, or one of its bones."""
    for path in animated_paths(ob):
        name, rest = below_bone(path)
        if name:  # how much each target of a constraint does is no structure
            places = rest == "rotation_mode" or (rest.startswith("constraints[") and not rest.endswith(".weight"))
        else:
            places = path not in OBJECT_FIELDS and (path == "hide_render" or not path.startswith(BYSTANDERS))
        if places:
            yield path
