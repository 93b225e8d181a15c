"""Operators on joint limits, which are Blender's own IK limits: set them from the pose, another bone or a preset."""

import math
from pathlib import Path

import bpy
from bl_operators import presets
from bpy.props import BoolProperty, EnumProperty, StringProperty
from bpy.types import Context, Object, PoseBone

from ...anatomy import chain_ends
from ...anatomy.figure import Figure
from ...chains import profile
from ...chains.new_chain import why_unusable
from ...chains.profile import names_of
from ...core import compat
from ...core.skeleton import angles_of
from ...core.translation.sentences import UserError, count, marked, quoted, say
from ...core.untyped import Struct
from ...rig.plan.chain import chain_bones
from ...rig.plan.limits import SETTINGS
from .active import ArmatureOperator, ChainOperator, InternalStep, active_bone, active_chain, active_tip, asked, given

SIDES = {
    "UP": ("x", "max"),
    "DOWN": ("x", "min"),
    "LEFT": ("z", "max"),
    "RIGHT": ("z", "min"),
    "TWIST_MAX": ("y", "max"),
    "TWIST_MIN": ("y", "min"),
}
"""Axis and end of each limit, by the name that scripts use; `profile` has the names shown to users."""
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


def selected(ob: Object) -> list[PoseBone]:
    """Return the active bone, then all others that are selected in Pose Mode."""
    active = active_bone(ob)
    candidates = ob.pose.bones if ob.mode == "POSE" else ()
    others = [bone for bone in candidates if bone != active and compat.is_selected(bone)]
    return others if active is None else [active, *others]


class LimitsOperator(ArmatureOperator):
    """Base of operators on the limits of bones."""

    @classmethod
    def why_unavailable(cls, _context: Context, ob: Object) -> str:
        """Require an active bone."""
        return "" if active_bone(ob) else say("'{object}' has no active bone. Select one", object=ob.name)


class IK_ADDON_OT_limit_from_pose(LimitsOperator):
    """Set this limit to the bone's current angle."""

    bl_label = "Limit from Pose"

    direction: asked(EnumProperty, "Direction", "The limit to set", items=DIRECTIONS, default="ALL")
    all_selected: BoolProperty(
        name="All Selected",
        description="Set the limit of every selected bone from its own pose, not just of the active bone",
    )

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Set the limits."""
        evaluated = ob.evaluated_get(context.evaluated_depsgraph_get())
        said = []
        for bone in selected(ob) if self.all_selected else selected(ob)[:1]:
            angles = dict(zip("xyz", angles_of(evaluated.pose.bones[bone.name]), strict=True))
            for name in SIDES if self.direction == "ALL" else (self.direction,):
                axis, end = SIDES[name]
                angle = angles[axis]
                if angle > REST if end == "max" else angle < -REST:
                    setattr(bone, f"ik_{end}_{axis}", angle)
                    setattr(bone, f"use_ik_limit_{axis}", True)
                    said.append(f"'{bone.name}' {names_of(bone)[name]} {math.degrees(angle):.1f}°")
        if not said:
            at_rest = marked("The selected bones are at rest. Pose the limit first")
            not_turned = marked("The selected bones are not turned in this direction. Pose the limit first")
            raise UserError(at_rest if self.direction == "ALL" else not_turned)
        return self.done(say("Limited {what}", what=", ".join(said)))


class IK_ADDON_OT_limits_copy(LimitsOperator):
    """Copy the limits, locks and stiffness of the active bone to all selected bones."""

    bl_label = "Copy Limits to Selected"

    @classmethod
    def why_unavailable(cls, context: Context, ob: Object) -> str:
        """Require an active bone and other selected bones."""
        several = "" if len(selected(ob)) > 1 else say("Select several bones in Pose Mode, the one to copy from last")
        return super().why_unavailable(context, ob) or several

    def perform_on(self, _context: Context, ob: Object) -> set[str]:
        """Copy the limits."""
        source, *others = selected(ob)
        for bone in others:
            for name in SETTINGS:
                setattr(bone, name, getattr(source, name))
        to = count(len(others), "1 bone", "{count} bones")
        return self.done(say("Copied the limits of '{source}' to {bones}", source=source.name, bones=to))


# ---- presets

MENU = "IK_ADDON_MT_presets"
AddPresetBase: Struct = presets.AddPresetBase  # the stubs have it return nothing


def label_of(file: str) -> str:
    """Return the name that menus show for the file of a preset."""
    return bpy.path.display_name(file, title_case=False)


class IK_ADDON_OT_preset_apply(InternalStep, LimitsOperator):
    """Apply the limits, locks and stiffness of this preset to the bones of the active chain, or to the limb of the
    active bone.
    """

    # Apply a preset; unlike Blender's own operator, this one can be undone.
    bl_label = "Apply Chain Preset"

    filepath: given(StringProperty, "File", "The preset's file", subtype="FILE_PATH")

    @classmethod
    def why_unavailable(cls, context: Context, ob: Object) -> str:
        """Require an active bone or chain."""
        return "" if active_chain(context) is not None else super().why_unavailable(context, ob)

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Read the file into a profile and apply the profile."""
        path = Path(self.filepath)
        if not any(path.parent == Path(folder) for folder in bpy.utils.preset_paths(profile.SUBDIR)):
            raise UserError("'{filepath}' is not a chain preset", filepath=self.filepath)
        found = profile.profile_of(context)
        profile.clear(found)
        try:
            profile.read_file(path, found)
        except UserError as error:
            unreadable = "The preset '{preset}' can't be read: {error}. Fix or remove '{path}'"
            raise UserError(unreadable, preset=path.stem, error=error, path=path) from None
        tip, active = active_chain(context), active_bone(ob)
        name = label_of(path.name)
        done = say("Applied preset {name}", name=name)
        bones = [] if tip is None else chain_bones(tip)
        if tip is None and active is not None:  # those that Add Chain would take
            figure = Figure.of(ob)
            ends = chain_ends.find(figure, figure.names.index(active.name))
            bones = [ob.pose.bones[figure.names[bone]] for bone in ends]
            done = say("Applied preset {name} to {bones}", name=name, bones=quoted([bone.name for bone in bones]))
        remarks = profile.apply(found, bones)
        context.view_layer.update()  # solves if Live is on
        getattr(bpy.types, MENU).bl_label = name
        return self.done(done, remarks)


class IK_ADDON_OT_preset_add(ChainOperator, AddPresetBase):
    """Save the limits and settings of the active chain as a preset for other chains, or remove a preset."""

    bl_label = "Add Chain Preset"
    bl_options = {"REGISTER", "INTERNAL"}  # noqa: RUF012 - as Blender wants it

    preset_menu = MENU
    preset_subdir = profile.SUBDIR
    preset_defines = ("profile = bpy.context.window_manager.ik_addon_profile",)
    preset_values = tuple(f"profile.{name}" for name in ("layout", "joints", "spread", *profile.SETTINGS))

    def perform_on_chain(self, context: Context, tip: PoseBone) -> set[str]:
        """Write or delete the file; presets that came with the extension can't be deleted."""
        path = bpy.utils.preset_find(self.name, profile.SUBDIR, display_name=True)
        if self.properties.remove_name and path and Path(path).parent == profile.SHIPPED:
            raise UserError("'{preset}' comes with the extension and can't be removed", preset=self.name)
        if reason := why_unusable(tip):
            raise UserError(reason)
        try:
            return AddPresetBase.execute(self, context)
        except OSError as error:
            unwritable = "The preset '{preset}' can't be written or removed: {error}"
            raise UserError(unwritable, preset=self.name, error=error) from None

    def pre_cb(self, context: Context) -> None:
        """Fill the profile to be written from the active chain."""
        profile.take(profile.profile_of(context), active_tip(context))
