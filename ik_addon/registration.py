"""Everything the extension registers with Blender, in order; unregistered in reverse order."""

from collections.abc import Iterator
from contextlib import ExitStack
from types import ModuleType
from typing import Final

import bpy
from bpy.types import WorkSpaceTool

from .chains import new_chain, profile
from .cli import command as bake_command
from .core import chain_settings, hooks, interruption, preferences, settings, stamps
from .core.translation import catalogs
from .live import handlers, simulations
from .rig.plan import followers
from .targets import cursor, edits
from .ui import menus, panel, toolbar
from .ui.operators import bake, body, chain, character, controls, drag, feet, fixes, limits, solve
from .ui.overlay import draw as overlay
from .ui.panels import bake_report, folded, main
from .ui.panels import chain as chain_panel

MODULES: Final[tuple[ModuleType, ...]] = (
    *(preferences, chain_settings, settings, stamps, profile, followers, simulations, new_chain, handlers, edits),
    overlay,
    *(chain, solve, bake, controls, character, feet, limits, drag, body, fixes),  # operators
    *(panel, main, chain_panel, folded, bake_report, menus, toolbar),  # the interface
    *(bake_command, interruption),
)
"""Modules with classes for Blender, handlers, listeners, or a `register` and an `unregister` of their own."""


def _classes(module: ModuleType) -> Iterator[type]:
    """Yield the classes of a module that Blender is to know, in order; base classes have other names."""
    for name, cls in vars(module).items():
        is_own = name.startswith(("IK_ADDON_", "IKAddon", "VIEW3D_PT_")) and cls.__module__ == module.__name__
        if not is_own or issubclass(cls, WorkSpaceTool):  # `toolbar` registers tools
            continue
        if "bl_idname" not in vars(cls):  # operators, panels, menus, lists and gizmos are known by their classes' names
            cls.bl_idname = name.replace("IK_ADDON_OT_", "ik_addon.")
        if name.startswith("IK_ADDON_OT_"):  # their tooltips are their docstrings
            cls.bl_description = " ".join(str(cls.__doc__).split()).removesuffix(".")
        yield cls


CLASSES: Final = tuple(cls for module in MODULES for cls in _classes(module))

_registered: ExitStack | None = None
"""Removes everything that is registered, last first; None: nothing is."""


def register() -> None:
    """Add classes, settings and handlers; a second call does nothing.

    Beside another copy of the extension, only a panel that says so is added: both would solve, and disabling one would
    remove the settings of the other.
    """
    global _registered
    if _registered is not None:
        return
    with ExitStack() as undo:  # after an error, nothing stays registered
        if settings.registered_by() not in (None, __package__):
            bpy.utils.register_class(panel.SecondCopyPanel)
            undo.callback(bpy.utils.unregister_class, panel.SecondCopyPanel)
            _registered = undo.pop_all()
            return
        for first in (catalogs, cursor):  # classes are shown in the language, and macros use the cursor's properties
            first.register()
            undo.callback(first.unregister)
        for cls in CLASSES:
            bpy.utils.register_class(cls)
            undo.callback(bpy.utils.unregister_class, cls)
        for module in MODULES:
            getattr(module, "register", lambda: None)()
            undo.callback(getattr(module, "unregister", lambda: None))
            hooks.join(module)
            undo.callback(hooks.leave, module)
        preferences.show(CLASSES)
        undo.callback(preferences.hide)
        _registered = undo.pop_all()


def unregister() -> None:
    """Remove classes, settings and handlers; a second call does nothing."""
    global _registered
    if _registered is not None:
        _registered.close()
        _registered = None
