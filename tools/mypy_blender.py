"""A plugin for mypy: what Blender's stubs call None but is not, attributes and what functions return.

The stubs take it from Blender that any pointer may be None, though some are not wherever the extension runs. A check
for each of them would hide those that matter: for a target, a parent or an action.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.maptype import map_instance_to_supertype
from mypy.plugin import AttributeContext, FunctionContext, MethodContext, Plugin
from mypy.types import AnyType, Instance, NoneType, Type, TypeOfAny, UnionType
from mypy.types_utils import remove_optional

ALWAYS = frozenset(
    {
        "bpy.types.Context.scene",
        "bpy.types.Context.view_layer",
        "bpy.types.Context.window_manager",
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
RETURNING = frozenset(
    {
        "blf.dimensions",
        "bpy.app.translations.pgettext_rpt",
        "bpy.props.BoolProperty",
        "bpy.props.IntProperty",
        "bpy.types.BlendDataLibraries.load",
        "bpy.types.WindowManager.invoke_props_dialog",
        "bpy.utils.preset_find",
        "bpy.utils.register_cli_command",
        "gpu.shader.from_builtin",
        "gpu.state.blend_get",
        "gpu.state.viewport_get",
        "mathutils.bvhtree.BVHTree.FromPolygons",
    }
)
"""Functions that return something."""


class BlenderPlugin(Plugin):
    """Tells mypy which attributes are never None, and which functions return something."""

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        """Return what gives an attribute its type."""
        return _without_none if fullname in ALWAYS else None

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """Return what gives the result of a function its type."""
        return _anything if fullname in RETURNING else None

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        """Return what gives the result of a method its type."""
        if fullname.startswith("bpy.types.") and fullname.endswith(".get"):
            return _item
        return _anything if fullname in RETURNING else None


def _without_none(context: AttributeContext) -> Type:
    return remove_optional(context.default_attr_type)


def _item(context: MethodContext) -> Type:
    """Return what `get` returns, where the stubs say None: an item of a collection or None, or a custom property."""
    own = context.type
    if isinstance(own, Instance):
        for base in own.type.mro:
            if base.name == "bpy_prop_collection":
                return UnionType([*map_instance_to_supertype(own, base).args, NoneType()])
    return AnyType(TypeOfAny.special_form)


def _anything(_context: FunctionContext | MethodContext) -> Type:
    return AnyType(TypeOfAny.special_form)


def plugin(_version: str) -> type[Plugin]:
    """Return the plugin, as mypy wants it."""
    return BlenderPlugin
