"""The tab of the sidebar, which has the name that the preferences give it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import bpy

from ...data import preferences

_panels: list[Any] = []
"""The panels of the tab, each after its parent."""


def register(classes: Iterable[type]) -> None:
    """Keep the panels of a tab, among some registered classes, in the one of the preferences."""
    _panels.extend(cls for cls in classes if issubclass(cls, bpy.types.Panel) and hasattr(cls, "bl_category"))
    preferences.on_tab_renamed.append(rename)
    rename()


def unregister() -> None:
    """Leave them where they are."""
    preferences.on_tab_renamed.remove(rename)
    _panels.clear()


def rename() -> None:
    """Move the panels to the tab of the preferences: Blender reads it when a panel is registered."""
    name = preferences.tab()
    if all(panel.bl_category == name for panel in _panels):
        return
    for panel in reversed(_panels):
        bpy.utils.unregister_class(panel)
        panel.bl_category = name
    for panel in _panels:
        bpy.utils.register_class(panel)
