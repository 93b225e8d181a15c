"""Operators that add, remove and select chains."""

from __future__ import annotations

import bpy
from bpy.props import BoolProperty, EnumProperty, IntProperty, StringProperty

from .. import compat, setup
from ..rig.chain import ChainError
from ..settings import chain_of
from .active import ArmatureOperator, active_bone, active_chain, armature


class IK_ADDON_OT_chain_add(ArmatureOperator):
    """Put a chain on the active bone."""

    bl_idname = "ik_addon.chain_add"
    bl_label = "Add Chain"
    bl_description = "Put an IK chain on the active bone, with a target at its tip; the pose stays as it is"
    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012 - as Blender wants it

    chain_length: IntProperty(
        name="Chain Length",
        description="How many bones the chain has, counted from the active bone up; 0: up to the armature's root",
        default=2,
        min=0,
        soft_max=64,
    )
    with_pole: BoolProperty(
        name="Pole",
        description="Make a pole that a chain of two bones bends towards",
        default=True,
    )

    @classmethod
    def missing(cls, _context: bpy.types.Context, ob: bpy.types.Object) -> str:
        """A chain needs the active bone."""
        return "" if active_bone(ob) else f"'{ob.name}' has no active bone; select the last bone of the chain"

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Add the chain."""
        ob = armature(context)
        assert ob is not None
        tip = active_bone(ob)
        assert tip is not None
        try:
            bones = setup.add_chain(context, ob, tip, self.chain_length, self.with_pole)
        except ChainError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        count = len(bones)
        if self.chain_length > count:
            self.report(
                {"WARNING"},
                f"Added a chain of {count}: Chain Length is {self.chain_length}, "
                f"but '{tip.name}' has only {count - 1} parents",
            )
        else:
            self.report({"INFO"}, f"Added a chain from '{bones[0].name}' to '{tip.name}'")
        return {"FINISHED"}


class IK_ADDON_OT_chain_remove(ArmatureOperator):
    """Take a chain off."""

    bl_idname = "ik_addon.chain_remove"
    bl_label = "Remove Chain"
    bl_description = "Take the chain off the active bone and put its bones back into their FK pose"
    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012 - as Blender wants it

    remove_targets: BoolProperty(
        name="Remove Targets",
        description="Delete the target and the pole too, where Add Chain made them and nothing else uses them",
        default=True,
    )

    @classmethod
    def missing(cls, context: bpy.types.Context, _ob: bpy.types.Object) -> str:
        """There must be a chain to remove."""
        return "" if active_chain(context) else "Select a bone of a chain"

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Remove the chain."""
        tip = active_chain(context)
        assert tip is not None
        kept = setup.remove_chain(context, tip, self.remove_targets)
        message = f"Removed the chain on '{tip.name}'"
        if kept:
            names = " and ".join(f"'{name}'" for name in kept)
            message += f"; kept {names}, which something else uses or which is animated"
        self.report({"INFO"}, message)
        return {"FINISHED"}


class IK_ADDON_OT_chain_select(ArmatureOperator):
    """Go to a chain from its row in the panel."""

    bl_idname = "ik_addon.chain_select"
    bl_label = "Select Chain"
    bl_description = "Make the tip of this chain the active bone"
    bl_options = {"UNDO", "INTERNAL"}  # noqa: RUF012 - as Blender wants it

    tip: StringProperty(name="Tip", description="The bone that carries the chain", options={"HIDDEN", "SKIP_SAVE"})

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Select the bone."""
        ob = armature(context)
        assert ob is not None
        bone: bpy.types.PoseBone | None = ob.pose.bones.get(self.tip)
        if bone is None:
            self.report({"ERROR"}, f"'{ob.name}' has no bone '{self.tip}'")
            return {"CANCELLED"}
        context.view_layer.objects.active = ob
        compat.select_bone(ob, bone)
        return {"FINISHED"}


class IK_ADDON_OT_setting_key(ArmatureOperator):
    """Key a number of a chain: Blender knows no animation path to it from its own button."""

    bl_idname = "ik_addon.setting_key"
    bl_label = "Key Setting"
    bl_description = "Insert a keyframe for this setting of the chain on the present frame"
    bl_options = {"REGISTER", "UNDO", "INTERNAL"}  # noqa: RUF012 - as Blender wants it

    tip: StringProperty(name="Tip", description="The bone that carries the chain", options={"HIDDEN", "SKIP_SAVE"})
    setting: EnumProperty(
        name="Setting",
        description="Which setting is keyed",
        items=(
            ("influence", "Influence", ""),
            ("pole_angle", "Pole Angle", ""),
            ("softness", "Softness", ""),
            ("push_limit", "Push Limit", ""),
        ),
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Insert the key."""
        ob = armature(context)
        assert ob is not None
        bone: bpy.types.PoseBone | None = ob.pose.bones.get(self.tip)
        if bone is None or not chain_of(bone).is_chain:
            self.report({"ERROR"}, f"'{ob.name}' has no chain on a bone '{self.tip}'")
            return {"CANCELLED"}
        try:
            ob.keyframe_insert(f"{bone.path_from_id()}.ik_addon.{self.setting}", group=bone.name)
        except RuntimeError as error:
            self.report({"ERROR"}, f"Can't key '{ob.name}': {error}")
            return {"CANCELLED"}
        frame = context.scene.frame_current
        self.report({"INFO"}, f"Keyed {self.setting.replace('_', ' ')} of the chain on '{bone.name}' on frame {frame}")
        return {"FINISHED"}


CLASSES = (IK_ADDON_OT_chain_add, IK_ADDON_OT_chain_remove, IK_ADDON_OT_chain_select, IK_ADDON_OT_setting_key)
