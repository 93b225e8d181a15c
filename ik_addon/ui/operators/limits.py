"""Operators that set joint limits, which are Blender's own IK limits, from the pose or from another bone."""

from __future__ import annotations

import math

import bpy
from bpy.props import BoolProperty, EnumProperty

from ...chains.joint_names import names_of
from ...core import compat
from ...core.skeleton import angles_of
from ...core.translation.sentences import UserError, count, marked, say
from ...rig.plan.limits import SETTINGS
from .active import ArmatureOperator, active_bone
from .settings import asked

SIDES = {
    "UP": ("x", "max"),
    "DOWN": ("x", "min"),
    "LEFT": ("z", "max"),
    "RIGHT": ("z", "min"),
    "TWIST_MAX": ("y", "max"),
    "TWIST_MIN": ("y", "min"),
}
"""Axis and end of each limit, by the name that scripts use; `joint_names` has the names shown to users."""
DIRECTIONS = (
    ("ALL", "All", "All limits in the directions in which the bone is rotated"),
    ("UP", "Max X", "Maximum rotation around X"),
    ("DOWN", "Min X", "Minimum rotation around X"),
    ("LEFT", "Max Z", "Maximum rotation around Z"),
    ("RIGHT", "Min Z", "Minimum rotation around Z"),
    ("TWIST_MAX", "Max Twist", "Maximum rotation around Y"),
    ("TWIST_MIN", "Min Twist", "Minimum rotation around Y"),
)
REST = math.radians(0.05)
"""A bone rotated by less than this, in radians, counts as at rest."""


def selected(ob: bpy.types.Object) -> list[bpy.types.PoseBone]:
    """Return the active bone, then all others that are selected in Pose Mode."""
    active = active_bone(ob)
    candidates = ob.pose.bones if ob.mode == "POSE" else ()
    others = [bone for bone in candidates if bone != active and compat.is_selected(bone)]
    return others if active is None else [active, *others]


class LimitsOperator(ArmatureOperator):
    """Base of operators on the limits of bones."""

    @classmethod
    def why_unavailable(cls, _context: bpy.types.Context, ob: bpy.types.Object) -> str:
        """Require an active bone."""
        return "" if active_bone(ob) else say("'{object}' has no active bone. Select one", object=ob.name)


class IK_ADDON_OT_limit_from_pose(LimitsOperator):
    """Set limits from the pose."""

    bl_idname = "ik_addon.limit_from_pose"
    bl_label = "Limit from Pose"
    bl_description = "Set this limit to the bone's current angle"

    direction: asked(EnumProperty, "Direction", "The limit to set", items=DIRECTIONS, default="ALL")
    all_selected: BoolProperty(
        name="All Selected",
        description="Set the limit of every selected bone from its own pose, not just of the active bone",
    )

    def perform_on(self, context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Set the limits."""
        evaluated = ob.evaluated_get(context.evaluated_depsgraph_get())
        bones = selected(ob) if self.all_selected else selected(ob)[:1]
        said = []
        for bone in bones:
            degrees = limit_from_pose(bone, evaluated.pose.bones[bone.name], self.direction)
            said += [f"'{bone.name}' {name} {angle:.1f}°" for name, angle in degrees.items()]
        if not said:
            at_rest = marked("The selected bones are at rest. Pose the limit first")
            not_turned = marked("The selected bones are not turned in this direction. Pose the limit first")
            raise UserError(at_rest if self.direction == "ALL" else not_turned)
        return self.done(say("Limited {what}", what=", ".join(said)))


def limit_from_pose(bone: bpy.types.PoseBone, evaluated: bpy.types.PoseBone, direction: str) -> dict[str, float]:
    """Set limits to the current angles of a bone; return the angles in degrees, by the names of their directions.

    Args:
        bone: the bone whose limits to set.
        evaluated: its evaluated copy, from which the angles are measured.
        direction: a key of `SIDES`, or ALL.
    """
    angles = dict(zip("xyz", angles_of(evaluated), strict=True))
    found, names = {}, names_of(bone)
    for name in SIDES if direction == "ALL" else (direction,):
        axis, end = SIDES[name]
        angle = angles[axis]
        if angle <= REST if end == "max" else angle >= -REST:
            continue
        setattr(bone, f"ik_{end}_{axis}", angle)
        setattr(bone, f"use_ik_limit_{axis}", True)
        found[names[name]] = math.degrees(angle)
    return found


class IK_ADDON_OT_limits_copy(LimitsOperator):
    """Copy limits to other bones."""

    bl_idname = "ik_addon.limits_copy"
    bl_label = "Copy Limits to Selected"
    bl_description = "Copy the limits, locks and stiffness of the active bone to all selected bones"

    @classmethod
    def why_unavailable(cls, context: bpy.types.Context, ob: bpy.types.Object) -> str:
        """Require an active bone and other selected bones."""
        if reason := super().why_unavailable(context, ob):
            return reason
        return "" if len(selected(ob)) > 1 else say("Select several bones in Pose Mode, the one to copy from last")

    def perform_on(self, _context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Copy the limits."""
        source, *others = selected(ob)
        for bone in others:
            for name in SETTINGS:
                setattr(bone, name, getattr(source, name))
        to = count(len(others), "1 bone", "{count} bones")
        return self.done(say("Copied the limits of '{source}' to {bones}", source=source.name, bones=to))
