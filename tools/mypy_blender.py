"""A plugin for mypy: attributes that Blender's stubs call optional, but that are not None wherever the extension runs.

The stubs take it from Blender that any pointer may be None. A check for each of them would hide those that matter: for
a target, a parent or an action.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import AttributeContext, Plugin
from mypy.types import Type
from mypy.types_utils import remove_optional

ALWAYS = frozenset(
    {
        "bpy.types.Context.scene",
        "bpy.types.Context.view_layer",
        "bpy.types.Depsgraph.scene",
        "bpy.types.Depsgraph.view_layer",
        "bpy.types.ID.original",
        "bpy.types.Menu.layout",
        "bpy.types.Operator.layout",
        "bpy.types.Panel.layout",
        "bpy.types.Region.data",
        "bpy.types.ViewLayer.depsgraph",
    }
)
"""Attributes that are never None."""


class BlenderPlugin(Plugin):
    """Tells mypy which attributes are never None."""

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        """Return what gives an attribute its type."""
        return _without_none if fullname in ALWAYS else None


def _without_none(context: AttributeContext) -> Type:
    return remove_optional(context.default_attr_type)


def plugin(_version: str) -> type[Plugin]:
    """Return the plugin, as mypy wants it."""
    return BlenderPlugin
