"""Keep chains on overrides of linked armatures when a file is saved."""

from __future__ import annotations

import bpy
from bpy.app.handlers import persistent

from .settings import chain_of


@persistent
def _save_pre(_file: object, _unused: object = None) -> None:
    """Give linked bones the settings that their overrides have, at their defaults.

    Blender 5 stores an overridden setting as a difference to the linked one. If the library has no such setting, it
    stores something that it can't read back. Reading the settings of a bone makes Blender create them.
    """
    for ob in bpy.data.objects:
        linked = None if ob.override_library is None else ob.override_library.reference
        if isinstance(linked, bpy.types.Object) and linked.type == "ARMATURE":
            for bone in () if linked.pose is None else linked.pose.bones:
                _ = chain_of(bone).base.stored


def register() -> None:
    """Add the handler."""
    bpy.app.handlers.save_pre.append(_save_pre)


def unregister() -> None:
    """Remove the handler."""
    bpy.app.handlers.save_pre.remove(_save_pre)
