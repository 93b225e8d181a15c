"""Lists of bones whose active row is a window manager property that gets and sets the active bone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import bpy

from .operators.active import armature, obstacle
from .playing import kept


class BoneList(bpy.types.UIList):
    """A list of some bones of an armature, with a search by name."""

    def listed(self, ob: bpy.types.Object) -> Iterable[str]:
        """Return the names of the bones to list."""
        raise NotImplementedError

    def draw_filter(self, _context: bpy.types.Context, layout: bpy.types.UILayout) -> None:
        """Draw the search field."""
        layout.prop(self, "filter_name", text="", icon="VIEWZOOM")

    def filter_items(self, context: bpy.types.Context, pose: Any, name: str) -> tuple[list[int], list[int]]:
        """Show the listed bones that match the search, in the order of the armature."""

        def flags() -> list[int]:
            wanted = {bone for bone in self.listed(pose.id_data) if self.filter_name.lower() in bone.lower()}
            return [self.bitflag_filter_item if bone.name in wanted else 0 for bone in getattr(pose, name)]

        return kept(context, pose.id_data, (type(self).__name__, self.filter_name), flags), []


@dataclass(frozen=True)
class ActiveRow:
    """The active row of a list, as an index into the bones of the active armature."""

    property: str
    """Name of the window manager property."""
    label: str
    description: str
    find: Callable[[bpy.types.Context], bpy.types.PoseBone | None]
    """Finds the bone of the active row."""
    choose: Callable[[bpy.types.Context, bpy.types.PoseBone], None]
    """Called with the bone of the row that the user clicks."""

    def draw(
        self, layout: bpy.types.UILayout, context: bpy.types.Context, kind: type[BoneList], least: int, most: int
    ) -> None:
        """Draw a list that is from `least` to `most` rows high, as it has entries."""
        pose, manager = armature(context).pose, context.window_manager
        layout.template_list(kind.__name__, "", pose, "bones", manager, self.property, rows=least, maxrows=most)

    def register(self) -> None:
        """Add the property to the window manager."""

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
        """Remove the property."""
        delattr(bpy.types.WindowManager, self.property)
