"""What a plan was made from: everything about its objects but transforms and the numbers of a frame.

The depsgraph says which objects were edited, but not what was edited, so facts are read again and compared. When a
script changes the frame right after an edit, not even that is known.

Channels, transforms and the numbers of a chain are the state of a frame and are read with it. Everything else that
F-curves, drivers or NLA strips reach is watched: its values may differ on another frame, which then has another plan.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from operator import attrgetter
from typing import NamedTuple, Self

import bpy
import numpy as np
from bpy.types import ID, ChildOfConstraint, Constraint, Depsgraph, Object
from mathutils import Matrix

from ...core import compat
from ...core.chain_settings import IKAddonChain
from ...core.channels import FIELDS
from ...core.constraints import CARRIED, strength, targets_of
from ...core.data_paths import below_bone, value_at
from ...core.settings import chain_of, value_of
from ...core.untyped import Shaped, Struct, Versioned
from ...solve.problem import Floats
from . import limits
from .chain import tips
from .presence import Reference

BONE_FACTS = (
    "length",
    "use_connect",
    "use_inherit_rotation",
    "inherit_scale",
    "use_local_location",
    "use_relative_parent",
)
"""The facts of a bone at rest that a plan depends on, besides its matrix and its parent."""
_flags_of, _limits_of = attrgetter(*BONE_FACTS), attrgetter(*limits.SETTINGS)
"""Read these of a bone, and limits and locks of a pose bone, at once, in half the time of reading one by one."""

Facts = tuple[object, ...]


class Origin(NamedTuple):
    """An object that a plan was made from."""

    reference: Reference
    read: Callable[[Object], Facts]
    facts: Facts
    """What reading it returned then."""

    def is_same(self) -> bool:
        """Whether the object still exists, with these facts."""
        ob = self.reference.find()
        return ob is not None and self.read(ob) == self.facts


def facts_of(ob: Object) -> Facts:
    """Return what a plan depends on in a goal, or in an object that a goal is attached to: all but its transform."""
    ob = ob.original
    return *_bones(ob), *_flags(ob), *_placing(ob), *goal_paths(ob)


def own_facts(posed: Iterable[int], others: Iterable[int], ob: Object) -> Facts:
    """Return what a plan depends on in its armature object.

    Read again after each edit of the armature, because the depsgraph does not say what was edited.

    Args:
        posed: indices of the pose bones that chains pose.
        others: indices of the other bones that matter, which are ancestors of these or goals.
        ob: the armature object, the original one.
    """
    joints = [ob.pose.bones[bone] for bone in posed]
    every = [*joints, *(ob.pose.bones[bone] for bone in others)]
    return (
        *_bones(ob),
        *_placing(ob),
        *((joint.ik_stretch, _limits_of(joint)) for joint in joints),
        *((bone.rotation_mode, _flags_of(bone.bone)) for bone in every),
        *(None if (parent := bone.parent) is None else parent.name for bone in every),
        *(value for tip in tips(ob) for value in _settings(chain_of(tip))),
        *_animation(ob),
        *_animation(ob.data),
    )


def _bones(ob: Object) -> Facts:
    """Return the names and rest matrices of an armature object's bones, and its pose position."""
    if ob.type != "ARMATURE":
        return ()
    bones = ob.data.bones
    rest = np.empty(16 * len(bones), dtype=np.float32)
    bones.foreach_get("matrix_local", rest)
    return *bones.keys(), rest.tobytes(), ob.data.pose_position


def _flags(ob: Object) -> Iterator[bytes]:
    """Yield the rotation modes and inheritance flags of an armature object's bones."""
    if ob.type == "ARMATURE" and ob.pose is not None:
        for name, bones in (("rotation_mode", ob.pose.bones), *((name, ob.data.bones) for name in BONE_FACTS)):
            values = np.empty(len(bones), dtype=np.float32)
            bones.foreach_get(name, values)
            yield values.tobytes()


def _settings(chain: IKAddonChain) -> Iterator[object]:
    """Yield the settings of a chain as values that can be compared."""
    for name in _names():
        value = value_of(chain, name)
        if isinstance(value, ID):
            value = value.session_uid
        elif isinstance(value, bpy.types.bpy_struct):
            continue  # the FK store, or the RNA type
        yield value if isinstance(value, str | int | float | set | None) else tuple(value)


@cache
def _names() -> tuple[str, ...]:
    """Return the names of a chain's settings."""
    return tuple(name for setting in IKAddonChain.bl_rna.properties if (name := setting.identifier) not in MARKS)


def _animation(owner: Struct) -> Facts:
    """Return what reveals that other properties of a data-block may be animated now."""
    data = owner.animation_data
    if data is None:
        return ()
    return (
        *_curves(data),
        _mutes(data.drivers),
        *(driver.data_path for driver in data.drivers),
        *(fact for strip in compat.strips_of(data.nla_tracks) for fact in (strip.mute, *_curves(strip))),
        *(mark for track in data.nla_tracks for mark in (track.mute, track.is_solo)),
        data.use_nla,
        data.use_tweak_mode,
    )


def _curves(user: Versioned) -> Facts:
    """Return which action animation data or an NLA strip uses, and which of its F-curves and groups are muted."""
    if user.action is None:
        return (None,)
    curves = compat.curve_owner_of(user)
    return (user.action.session_uid, *(() if curves is None else (_mutes(curves.fcurves), _mutes(curves.groups))))


def _mutes(curves: Struct) -> bytes:
    """Return which F-curves, drivers or groups are muted."""
    muted = np.zeros(len(curves), dtype=bool)
    curves.foreach_get("mute", muted)
    return muted.tobytes()


def _placing(ob: Object) -> Facts:
    """Return what places an object apart from its transform, and what moves its bones."""
    bones = ob.pose.bones if ob.pose is not None else ()
    parenting: Facts = ()
    if ob.parent is not None:
        along = getattr(ob, "parent_bone_head_tail_factor", None)
        parenting = ob.parent.session_uid, ob.parent_type, ob.parent_bone, _rows(ob.matrix_parent_inverse), along
    return (
        ob.hide_viewport,
        ob.hide_render,
        *parenting,
        ob.rigid_body is not None,
        *(("", *_facts(constraint)) for constraint in ob.constraints),
        *((bone.name, *_facts(constraint)) for bone in bones for constraint in bone.constraints),
    )


def _facts(constraint: Constraint) -> Facts:
    carried: Facts = ()
    if isinstance(constraint, ChildOfConstraint):
        carried = *(getattr(constraint, name) for name in CARRIED), *_rows(constraint.inverse_matrix)
    return (
        constraint.type,
        constraint.mute,
        strength(constraint.influence),
        *carried,
        getattr(constraint, "chain_count", None),
        getattr(constraint, "use_tail", None),
        *((target.session_uid, bone) for target, bone in targets_of(constraint)),
    )


def _rows(matrix: Matrix) -> Facts:
    return tuple(matrix[row][:] for row in range(4))


# ---- what may differ from frame to frame


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
