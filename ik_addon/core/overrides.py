"""Keep chains on overrides of linked armatures when a file is saved."""

import bpy
from bpy.app.handlers import persistent
from bpy.types import Object, PoseBone

from .settings import chain_of, has_settings


@persistent
def _save_pre(_file: object, _unused: object = None) -> None:
    """Where only one of a linked bone and its override has settings, give the other one the same, at their defaults.

    Blender 5 stores an overridden setting as a difference to the linked one. If only one of them has settings at all,
    it stores something that it can't read back, even if nobody changed anything. Reading the settings of a bone makes
    Blender create them. Bones without any stay without, so armatures without chains are saved as they are.
    """
    for ob in bpy.data.objects:
        linked = None if ob.override_library is None else ob.override_library.reference
        if not isinstance(linked, Object) or ob.pose is None or linked.pose is None:
            continue
        for own in ob.pose.bones:
            other: PoseBone | None = linked.pose.bones.get(own.name)
            if other is not None and (has_settings(own) or has_settings(other)):
                _ = chain_of(own).base.stored, chain_of(other).base.stored


HANDLERS = (("save_pre", _save_pre),)
