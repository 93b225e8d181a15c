"""Fixes that let the operators run at all: select the armature, change the mode, override a linked armature."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import bpy

from ....core.translation.sentences import UserError, say
from ....rig.plan.chain import tips
from ....rig.plan.presence import is_in
from ..active import ReportingOperator, candidate, obstacle
from .chains import Fix


def rig_fix_of(context: bpy.types.Context) -> Fix | None:
    """Return a fix for the obstacle that the panel shows; None: no simple fix."""
    return next(_fixes(context), None) if obstacle(context) else None


def _fixes(context: bpy.types.Context) -> Iterator[Fix]:
    ob = candidate(context)
    if ob is None or ob.type != "ARMATURE":
        inside = _instanced(ob)
        if ob is not None and inside is not None:
            yield Fix(say("Make Library Override"), partial(_override_instance, context, ob, inside))
            return
        rig = _armature_for(context, ob)
        if rig is not None:
            yield Fix(say("Select '{object}'", object=rig.name), partial(_select, context, rig))
        return
    if ob.mode not in {"POSE", "OBJECT"}:
        yield Fix(say("Pose Mode"), partial(bpy.ops.object.mode_set, mode="POSE"))
    elif not ob.is_editable:
        yield Fix(say("Make Library Override"), partial(_override, context, ob))
    elif ob.override_library is not None and ob.override_library.is_system_override:
        yield Fix(say("Make Override Editable"), lambda: setattr(ob.override_library, "is_system_override", False))


def _instanced(ob: bpy.types.Object | None) -> bpy.types.Object | None:
    """Return the armature in the linked collection that an empty instances."""
    shown: Any = None if ob is None else ob.instance_collection
    if shown is None or shown.library is None:
        return None
    return next((own for own in shown.all_objects if own.type == "ARMATURE"), None)


def _armature_for(context: bpy.types.Context, ob: bpy.types.Object | None) -> bpy.types.Object | None:
    """Return the armature of an object, or the first visible armature, preferring one with chains."""
    if ob is not None:
        modifiers = (m.object for m in ob.modifiers if isinstance(m, bpy.types.ArmatureModifier))
        own = next((found for found in (*modifiers, ob.parent) if found is not None and found.type == "ARMATURE"), None)
        if own is not None and own.visible_get():
            return own
    rigs = [found for found in context.view_layer.objects if found.type == "ARMATURE" and found.visible_get()]
    return min(rigs, key=lambda rig: not tips(rig), default=None)


def _select(context: bpy.types.Context, rig: bpy.types.Object) -> None:
    if context.active_object is not None and context.active_object.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    for other in context.selected_objects:
        other.select_set(False)
    rig.select_set(True)
    context.view_layer.objects.active = rig


def _override(context: bpy.types.Context, ob: bpy.types.Object) -> None:
    """Override a linked armature, together with the collection it was linked in, and select the override."""
    collections: list[Any] = [context.scene.collection, *bpy.data.collections]
    holders = [own for own in collections if own.is_editable]
    roots = (child for own in holders for child in own.children if child.library is not None)
    root = next((child for child in roots if is_in(child.all_objects, ob)), None)
    _override_with(context, ob if root is None else root, ob)
    for own in holders:
        if root is not None and root in own.children.values():
            own.children.unlink(root)


def _override_instance(context: bpy.types.Context, empty: bpy.types.Object, ob: bpy.types.Object) -> None:
    """Override the collection that an empty instances, and remove the empty."""
    _override_with(context, empty.instance_collection, ob, empty)
    bpy.data.objects.remove(empty)


def _override_with(
    context: bpy.types.Context, linked: Any, ob: bpy.types.Object, reference: bpy.types.Object | None = None
) -> None:
    """Override linked data, and select the override of an armature object in it.

    Raises:
        UserError: Blender can't override it.
    """
    scene, view_layer = context.scene, context.view_layer
    made = linked.override_hierarchy_create(scene, view_layer, reference=reference, do_fully_editable=True)
    found = (own for own in view_layer.objects if own.override_library and own.override_library.reference == ob)
    rig = next(found, None)
    if made is None or rig is None:
        raise UserError(
            "Blender can't override '{object}'. Choose Library Override > Make in the Object menu", object=ob.name
        )
    _select(context, rig)


class IK_ADDON_OT_rig_fix(ReportingOperator):
    """Fix what keeps the chains from being edited, as the button says."""

    bl_label = "Fix Armature"
    bl_options = {"REGISTER", "UNDO", "INTERNAL"}  # noqa: RUF012 - as Blender wants it

    def perform(self, context: bpy.types.Context) -> set[str]:
        """Apply the fix."""
        fix = rig_fix_of(context)
        if fix is None:
            return self.refuse(obstacle(context) or say("Nothing to fix"))
        try:
            fix.apply()
        except RuntimeError as error:
            return self.refuse(str(error))
        return self.done(fix.label)
