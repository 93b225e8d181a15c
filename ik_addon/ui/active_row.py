"""The active row of a list of bones: a property of the window manager that follows the active bone, and sets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import bpy

from ..operators.active import armature, obstacle


@dataclass(frozen=True)
class ActiveRow:
    """Where a list finds its active row among the bones of the active armature."""

    property: str
    """Of the window manager."""
    label: str
    description: str
    find: Callable[[bpy.types.Context], bpy.types.PoseBone | None]
    """The bone of the row."""
    choose: Callable[[bpy.types.Context, bpy.types.PoseBone], None]
    """Called with the bone of a row that is clicked."""

    def register(self) -> None:
        """Make the property."""

        def get(_manager: bpy.types.WindowManager) -> int:  # Blender takes functions, not methods
            bone = None if obstacle(bpy.context) else self.find(bpy.context)
            return -1 if bone is None else bone.id_data.pose.bones.find(bone.name)

        def choose(_manager: bpy.types.WindowManager, index: int) -> None:
            ob = None if obstacle(bpy.context) else armature(bpy.context)
            if ob is not None and 0 <= index < len(ob.pose.bones):
                self.choose(bpy.context, ob.pose.bones[index])

        properties: Any = bpy.props
        made = properties.IntProperty(name=self.label, description=self.description, get=get, set=choose)
        setattr(bpy.types.WindowManager, self.property, made)

    def unregister(self) -> None:
        """Take it away."""
        delattr(bpy.types.WindowManager, self.property)
