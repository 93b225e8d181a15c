"""The meshes that an armature deforms, and copies of them for another armature."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import bpy
from mathutils import Matrix


def meshes_of(view_layer: bpy.types.ViewLayer, ob: bpy.types.Object) -> list[bpy.types.Object]:
    """Return the meshes of a view layer that an armature deforms with a modifier."""
    return [other for other in view_layer.objects if other.type == "MESH" and _modifiers(other, ob)]


def copies(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    made: bpy.types.Object,
    placed: Mapping[str, Matrix],
    undo: ExitStack,
) -> list[bpy.types.Object]:
    """Copy the meshes that an armature deforms for another armature; the copies share their data.

    Args:
        context: gives the scene.
        ob: the armature object.
        made: the other armature object, which has no transform of its own.
        placed: world matrices, by the names of the meshes.
        undo: removes the copies.
    """
    found = []
    for mesh in meshes_of(context.view_layer, ob):
        copy = mesh.copy()
        undo.callback(bpy.data.objects.remove, copy)
        copy.name = f"{mesh.name} Skeleton"
        context.scene.collection.objects.link(copy)
        copy.parent, copy.parent_type = made, "OBJECT"
        copy.matrix_parent_inverse, copy.matrix_basis = Matrix(), placed[mesh.name]
        for modifier in _modifiers(copy, ob):
            modifier.object = made
        found.append(copy)
    return found


def _modifiers(mesh: bpy.types.Object, ob: bpy.types.Object) -> list[Any]:
    modifiers: Any = mesh.modifiers
    return [modifier for modifier in modifiers if modifier.type == "ARMATURE" and modifier.object == ob]
