"""Name the sidebar tab after the preferences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import bpy

from ...core import preferences

_panels: list[Any] = []
"""The panels of the tab, parents before their sub-panels."""


def register(classes: Iterable[type]) -> None:
    """Move the panels among registered classes to the tab named in the preferences, now and when it is renamed."""
    _panels.extend(cls for cls in classes if issubclass(cls, bpy.types.Panel) and hasattr(cls, "bl_category"))
    preferences.on_tab_renamed.append(rename)
    rename()


def unregister() -> None:
    """Forget the panels and leave them in their tab."""
    preferences.on_tab_renamed.remove(rename)
    _panels.clear()


def rename() -> None:
    """Move the panels to the tab named in the preferences; Blender reads the name only on registration."""
    name = preferences.tab()
    if all(panel.bl_category == name for panel in _panels):
        return
    for panel in reversed(_panels):
        bpy.utils.unregister_class(panel)
        panel.bl_category = name
    for panel in _panels:
        bpy.utils.register_class(panel)
