"""Watch animated or driven settings that a plan was made from, as their values may differ on another frame.

A plan holds structure. Channels, transforms and the numbers of a chain are the state of a frame and are read with it.
Everything else that F-curves, drivers or NLA strips reach is watched, and the plan is made again when it changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np

from ... import compat
from ...data.settings import chain_of
from ...pose.channels import FIELDS
from ...pose.constraints import CHAIN_CONSTRAINTS
from ...pose.data_paths import BONE_PATH, value_at
from . import limits
from .chain import tips
from .reference import Reference

NUMBERS = ("pole_angle", "softness", "push_limit", "tolerance", "influence")
"""The settings of a chain that are read on each frame, in the order of `Goals.settings`."""
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
MARKS = frozenset(("contact", "heel_pivot", "toe_pivot", "pin", "give"))
"""Settings of a bone that are not read when a frame is solved."""
BONE_BYSTANDERS = (
    *("[", "bbone_", "color", "custom_shape", "hide", "lock_location", "lock_rotation", "lock_scale"),
    *(f"ik_addon.{name}" for name in sorted(MARKS)),
)
"""The same for paths below a pose bone, or a bone of an armature."""
BONE_FACTS = (
    "length",
    "use_connect",
    "use_inherit_rotation",
    "inherit_scale",
    "use_local_location",
    "use_relative_parent",
)
"""The facts of a bone at rest that a plan depends on, besides its matrix and its parent."""
JOINT_FACTS = ("rotation_mode", "ik_stretch", *limits.SETTINGS)
"""The facts of a pose bone that a plan depends on, if a chain poses it."""
READ = frozenset((*FIELDS, *(f"ik_addon.{name}" for name in NUMBERS)))
"""The properties of a pose bone that are read on each frame."""

Value = tuple[object, ...]
Facts = tuple[object, ...]


@dataclass(frozen=True)
class _Owner:
    """Watched paths of one object, or of its data."""

    reference: Reference
    is_data: bool
    paths: tuple[str, ...]

    def values(self, depsgraph: bpy.types.Depsgraph) -> Iterator[object]:
        ob: Any = self.reference.find()
        seen = None if ob is None else ob.evaluated_get(depsgraph)
        owner = seen.data if self.is_data and seen is not None else seen
        for path in self.paths:
            yield None if owner is None else _value(owner, path)


@dataclass(frozen=True)
class Watch:
    """Settings that a plan depends on and that may change from frame to frame."""

    owners: tuple[_Owner, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to watch."""
        return bool(self.owners)

    def values(self, depsgraph: bpy.types.Depsgraph) -> Value:
        """Return the watched values on the frame at which a depsgraph is evaluated."""
        return tuple(value for owner in self.owners for value in owner.values(depsgraph))

    @classmethod
    def of(cls, ob: bpy.types.Object, bones: Collection[str], others: Iterable[bpy.types.Object]) -> Watch:
        """Watch an armature object, the bones that its chains depend on, and other objects.

        Args:
            ob: the armature object, the original one.
            bones: names of the bones of chains, and of their ancestors.
            others: the goals of its chains, and the objects that these are attached to.
        """
        found = [
            _Owner(Reference.of(ob), False, tuple(_of_armature(ob, bones))),
            _Owner(Reference.of(ob), True, tuple(_of_data(ob.data, bones))),
            *(_Owner(Reference.of(other), False, tuple(_of_goal(other.original))) for other in others),
        ]
        return cls(tuple(owner for owner in found if owner.paths))


def is_animated(ob: bpy.types.Object) -> bool:
    """Whether anything but the user may change an object's pose from frame to frame."""
    data = ob.animation_data
    if data is None or data.nla_tracks or data.drivers:
        return data is not None
    owner = compat.curve_owner(ob)
    curves = () if owner is None else owner.fcurves
    return data.action is not None and not (curves and all(_marks(curve.data_path) for curve in curves))


def facts_of(ob: bpy.types.Object) -> Facts:
    """Return what a plan depends on in a goal, or in an object that a goal is attached to: all but its transform."""
    ob = ob.original
    own = (*_bones(ob), *_flags(ob)) if ob.type == "ARMATURE" else ()
    return (*own, *_placing(ob), *(() if ob.animation_data is None else _of_goal(ob)))


def own_facts(ob: bpy.types.Object, posed: Iterable[int], others: Iterable[int]) -> Facts:
    """Return what a plan depends on in its armature object.

    Read again after each edit of the armature, because the depsgraph does not say what was edited.

    Args:
        ob: the armature object, the original one.
        posed: indices of the pose bones that chains pose.
        others: indices of the other bones that matter, which are ancestors of these or goals.
    """
    bones: Any = ob.pose.bones
    posed = [*posed]
    return (
        *_bones(ob),
        *_placing(ob),
        *(getattr(bones[bone], name) for bone in posed for name in JOINT_FACTS),
        *(getattr(bones[bone].bone, name) for bone in (*posed, *others) for name in BONE_FACTS),
        *(bones[bone].rotation_mode for bone in others),
        *(None if (parent := bones[bone].parent) is None else parent.name for bone in (*posed, *others)),
        *(value for tip in tips(ob) for value in _settings(chain_of(tip))),
        *_animation(ob),
        *_animation(ob.data),
    )


def _bones(ob: bpy.types.Object) -> Facts:
    """Return the names and rest matrices of an armature object's bones, and its pose position."""
    if ob.type != "ARMATURE":
        return ()
    bones: Any = ob.data.bones
    rest = np.empty(16 * len(bones), dtype=np.float32)
    bones.foreach_get("matrix_local", rest)
    return *bones.keys(), rest.tobytes(), ob.data.pose_position


def _flags(ob: bpy.types.Object) -> Iterator[bytes]:
    """Yield the rotation modes and inheritance flags of an armature object's bones."""
    if ob.type == "ARMATURE" and ob.pose is not None:
        fields = (("rotation_mode", ob.pose.bones), *((name, ob.data.bones) for name in BONE_FACTS))
        for name, bones in fields:
            values = np.empty(len(bones), dtype=np.float32)
            bones.foreach_get(name, values)
            yield values.tobytes()


def _settings(chain: Any) -> Iterator[object]:
    """Yield the settings of a chain as values that can be compared."""
    for setting in chain.bl_rna.properties:
        if setting.identifier in MARKS:
            continue
        try:
            value: Any = getattr(chain, setting.identifier)
        except UnicodeDecodeError:  # see `settings.unusable`
            value = None
        if isinstance(value, bpy.types.ID):
            value = value.session_uid
        elif isinstance(value, bpy.types.bpy_struct):
            continue  # the FK store, or the RNA type
        yield value if isinstance(value, str | int | float | set | None) else tuple(value)


def _animation(owner: Any) -> Facts:
    """Return what reveals that other properties of a data-block may be animated now."""
    data = owner.animation_data
    if data is None:
        return ()
    return (
        *_curves(data),
        *((driver.data_path, driver.mute) for driver in data.drivers),
        *(fact for strip in compat.strips_of(data) for fact in (strip.mute, *_curves(strip))),
        *(track.mute for track in data.nla_tracks),
        data.use_nla,
        data.use_tweak_mode,
    )


def _curves(user: Any) -> Facts:
    """Return which action animation data or an NLA strip uses, and which of its F-curves are muted."""
    if user.action is None:
        return (None,)
    curves = compat.curve_owner_of(user)
    muted = np.zeros(0 if curves is None else len(curves.fcurves), dtype=bool)
    if curves is not None:
        curves.fcurves.foreach_get("mute", muted)
    return user.action.session_uid, muted.tobytes()


def _placing(ob: bpy.types.Object) -> Facts:
    """Return what places an object apart from its transform, and what moves its bones."""
    bones = ob.pose.bones if ob.pose is not None else ()
    return (
        ob.hide_viewport,
        ob.hide_render,
        *(() if ob.parent is None else _parenting(ob)),
        ob.rigid_body is not None,
        *(("", *_facts(constraint)) for constraint in ob.constraints),
        *((bone.name, *_facts(constraint)) for bone in bones for constraint in bone.constraints),
    )


def _parenting(ob: bpy.types.Object) -> Facts:
    """Return how an object with a parent is attached to it."""
    assert ob.parent is not None
    unparented = ob.matrix_parent_inverse
    return (
        ob.parent.session_uid,
        ob.parent_type,
        ob.parent_bone,
        *(unparented[row][:] for row in range(4)),
        getattr(ob, "parent_bone_head_tail_factor", None),
    )


def _facts(constraint: Any) -> Facts:
    entries = getattr(constraint, "targets", (constraint,))
    targets = [
        (entry.target, getattr(entry, "subtarget", ""))
        for entry in entries
        if getattr(entry, "target", None) is not None
    ]
    return (
        constraint.type,
        constraint.mute,
        constraint.influence > 0.0,
        getattr(constraint, "chain_count", None),
        getattr(constraint, "use_tail", None),
        *((target.session_uid, bone) for target, bone in targets),
    )


def _value(owner: Any, path: str) -> object:
    value = value_at(owner, path)
    # Attachments depend only on whether there is any influence, not on how much.
    return value > 0.0 if path.endswith(".influence") and value is not None else value


def animated_paths(owner: bpy.types.ID) -> Iterator[str]:
    """Yield the data paths that F-curves, drivers and NLA strips reach, each once."""
    yield from dict.fromkeys(curve.data_path for curve in compat.animating(owner))


def _of_armature(ob: bpy.types.Object, bones: Collection[str]) -> Iterator[str]:
    for path in animated_paths(ob):
        match = BONE_PATH.fullmatch(path)
        if match is None:
            if _places(path):
                yield path
        elif match["rest"] not in READ and not match["rest"].startswith(BONE_BYSTANDERS):
            name = bpy.utils.unescape_identifier(match["name"])
            if name in bones or _reaches(ob, name, match["rest"], bones):
                yield path


def _of_data(data: bpy.types.ID, bones: Collection[str]) -> Iterator[str]:
    for path in animated_paths(data):
        match = BONE_PATH.fullmatch(path)
        if match is None:
            if path == "pose_position":
                yield path
        elif bpy.utils.unescape_identifier(match["name"]) in bones and not match["rest"].startswith(BONE_BYSTANDERS):
            yield path


def _of_goal(ob: bpy.types.Object) -> Iterator[str]:
    """Yield all paths except transforms that affect where a goal is: an object, or one of its bones."""
    for path in animated_paths(ob):
        match = BONE_PATH.fullmatch(path)
        if _places(path) if match is None else match["rest"].startswith(("constraints[", "rotation_mode")):
            yield path


def _places(path: str) -> bool:
    return path not in OBJECT_FIELDS and (path == "hide_render" or not path.startswith(BYSTANDERS))


def _marks(path: str) -> bool:
    """Whether a data path belongs to a setting that no solve reads."""
    match = BONE_PATH.fullmatch(path)
    return match is not None and match["rest"].removeprefix("ik_addon.") in MARKS


def _reaches(ob: bpy.types.Object, name: str, rest: str, bones: Collection[str]) -> bool:
    """Whether a path belongs to a constraint that may move bones of a chain above its bone (IK, Spline IK)."""
    owner = ob.pose.bones.get(name) if rest.startswith("constraints[") else None
    if owner is None or not any(isinstance(constraint, CHAIN_CONSTRAINTS) for constraint in owner.constraints):
        return False
    return any(parent.name in bones for parent in owner.parent_recursive)
