"""What lets the operators work at all: the armature is selected, in a mode in which it is posed, and not linked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import bpy

from ...rig.plan.chain import tips
from ..active import armature, obstacle
from .fix import Fix


def rig_fix_of(context: bpy.types.Context) -> Fix | None:
    """What can be done about the obstacle that the panel shows; None: nothing simple."""
    return next(_fixes(context), None) if obstacle(context) else None


def _fixes(context: bpy.types.Context) -> Iterator[Fix]:
    ob = armature(context)
    if ob is None or ob.type != "ARMATURE":
        rig = _armature_for(context, ob)
        if rig is not None:
            yield Fix(f"Select '{rig.name}'", partial(_select, context, rig))
        return
    if ob.mode not in {"POSE", "OBJECT"}:
        operators: Any = bpy.ops
        yield Fix("Pose Mode", partial(operators.object.mode_set, mode="POSE"))
    elif not ob.is_editable:
        yield Fix("Make Library Override", partial(_override, context, ob))
    elif ob.override_library is not None and ob.override_library.is_system_override:
        yield Fix("Make Override Editable", lambda: setattr(ob.override_library, "is_system_override", False))


def _armature_for(context: bpy.types.Context, ob: bpy.types.Object | None) -> bpy.types.Object | None:
    """The armature that an object belongs to, else the first that can be seen, if possible one with chains."""
    if ob is not None:
        modifiers = (m.object for m in ob.modifiers if isinstance(m, bpy.types.ArmatureModifier))
        own = next((found for found in (*modifiers, ob.parent) if found is not None and found.type == "ARMATURE"), None)
        if own is not None and own.visible_get():
            return own
    rigs = [found for found in context.view_layer.objects if found.type == "ARMATURE" and found.visible_get()]
    return min(rigs, key=lambda rig: not tips(rig), default=None)


def _select(context: bpy.types.Context, rig: bpy.types.Object) -> None:
    operators: Any = bpy.ops
    if context.active_object is not None and context.active_object.mode != "OBJECT":
        operators.object.mode_set(mode="OBJECT")
    for other in context.selected_objects:
        other.select_set(False)
    rig.select_set(True)
    context.view_layer.objects.active = rig


def _override(context: bpy.types.Context, ob: bpy.types.Object) -> None:
    """Override a linked armature with what belongs to it, and go on with that."""
    library: Any = ob
    made = library.override_hierarchy_create(context.scene, context.view_layer, do_fully_editable=True)
    if made is not None:
        _select(context, made)


class IK_ADDON_OT_rig_fix(bpy.types.Operator):
    """Let the armature be worked on."""

    bl_idname = "ik_addon.rig_fix"
    bl_label = "Fix Armature"
    bl_description = "Do what the button says, so that the chains can be worked on"
    bl_options = {"REGISTER", "UNDO", "INTERNAL"}  # noqa: RUF012 - as Blender wants it

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Do it."""
        fix = rig_fix_of(context)
        if fix is None:
            self.report({"ERROR"}, obstacle(context) or "Nothing to fix")
            return {"CANCELLED"}
        try:
            fix.apply()
        except RuntimeError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        self.report({"INFO"}, fix.label)
        return {"FINISHED"}


CLASSES = (IK_ADDON_OT_rig_fix,)
