"""Operators on chain presets: files of Blender's own preset system, shipped or made by the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bpy
from bl_operators import presets
from bpy.props import StringProperty

from ...anatomy import chain_ends
from ...anatomy.figure import Figure
from ...chains import profile
from ...chains.new_chain import why_unusable
from ...core.translation.sentences import UserError, quoted, say
from ...rig.plan.chain import chain_bones
from .active import ArmatureOperator, ChainOperator, active_bone, active_chain, active_tip
from .settings import given

MENU = "IK_ADDON_MT_presets"
AddPresetBase: Any = presets.AddPresetBase  # the stubs have it return nothing


def label_of(file: str) -> str:
    """Return the name that menus show for the file of a preset."""
    return bpy.path.display_name(file, title_case=False)


class IK_ADDON_OT_preset_apply(ArmatureOperator):
    """Apply a preset; unlike Blender's own operator, this one can be undone."""

    bl_idname = "ik_addon.preset_apply"
    bl_label = "Apply Chain Preset"
    bl_description = (
        "Apply the limits, locks and stiffness of this preset to the bones of the active chain, or to the limb of the "
        "active bone"
    )
    bl_options = {"REGISTER", "UNDO", "INTERNAL"}  # noqa: RUF012 - as Blender wants it

    filepath: given(StringProperty, "File", "The preset's file", subtype="FILE_PATH")

    @classmethod
    def why_unavailable(cls, context: bpy.types.Context, ob: bpy.types.Object) -> str:
        """Require an active bone."""
        is_met = active_bone(ob) is not None or active_chain(context) is not None
        return "" if is_met else say("'{object}' has no active bone. Select one", object=ob.name)

    def perform_on(self, context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Read the file into a profile and apply the profile."""
        path = Path(self.filepath)
        if not any(path.parent == Path(folder) for folder in bpy.utils.preset_paths(profile.SUBDIR)):
            raise UserError("'{filepath}' is not a chain preset", filepath=self.filepath)
        found = profile.profile_of(context)
        profile.clear(found)
        try:
            profile.read_file(path, found)
        except UserError as error:
            raise UserError(
                "The preset '{preset}' can't be read: {error}. Fix or remove '{path}'",
                preset=path.stem,
                error=error,
                path=path,
            ) from None
        bones = _bones_for(context, ob)
        remarks = profile.apply(found, bones)
        context.view_layer.update()  # solves if Live is on
        name = getattr(bpy.types, MENU).bl_label = label_of(path.name)
        if active_chain(context) is not None:
            return self.done(say("Applied preset {name}", name=name), remarks)
        names = quoted([bone.name for bone in bones])
        return self.done(say("Applied preset {name} to {bones}", name=name, bones=names), remarks)


def _bones_for(context: bpy.types.Context, ob: bpy.types.Object) -> list[bpy.types.PoseBone]:
    """Return the bones of the active chain, root first, or those that Add Chain would take for the active bone."""
    tip, bone = active_chain(context), active_bone(ob)
    if tip is not None:
        return chain_bones(tip)
    if bone is None:
        return []
    figure = Figure.of(bone.id_data)
    ends = chain_ends.find(figure, figure.names.index(bone.name))
    tip = bone.id_data.pose.bones[figure.names[ends.tip]]
    return [tip, *tip.parent_recursive][: ends.length][::-1]


class IK_ADDON_OT_preset_add(AddPresetBase, ChainOperator):
    """Add or remove a preset."""

    bl_idname = "ik_addon.preset_add"
    bl_label = "Add Chain Preset"
    bl_description = "Save the limits and settings of the active chain as a preset for other chains, or remove a preset"
    bl_options = {"REGISTER", "INTERNAL"}  # noqa: RUF012 - as Blender wants it

    preset_menu = MENU
    preset_subdir = profile.SUBDIR
    preset_defines = ("profile = bpy.context.window_manager.ik_addon_profile",)
    preset_values = tuple(f"profile.{name}" for name in ("layout", "joints", "spread", *profile.SETTINGS))

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Run `perform`; needed because Blender's own class comes first and has its own `execute`."""
        return self.attempt(self.perform, context)

    def perform_on_chain(self, context: bpy.types.Context, tip: bpy.types.PoseBone) -> set[str]:
        """Write or delete the file; presets that came with the extension can't be deleted."""
        find: Any = bpy.utils.preset_find  # the stubs declare no return value
        path = find(self.name, profile.SUBDIR, display_name=True)
        if self.properties.remove_name and path and Path(path).parent == profile.SHIPPED:
            raise UserError("'{preset}' comes with the extension and can't be removed", preset=self.name)
        if reason := why_unusable(tip):
            raise UserError(reason)
        try:
            return super().execute(context)
        except OSError as error:
            raise UserError(
                "The preset '{preset}' can't be written or removed: {error}", preset=self.name, error=error
            ) from None

    def pre_cb(self, context: bpy.types.Context) -> None:
        """Fill the profile to be written from the active chain."""
        profile.take(profile.profile_of(context), active_tip(context))
