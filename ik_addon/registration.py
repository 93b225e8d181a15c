"""Everything the extension registers with Blender, in order; unregistered in reverse order."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Final

import bpy

from .data import overrides, preferences, settings, versions
from .drag import cursor
from .live import handlers
from .operators import bake as bake_operators
from .operators import bend as bend_operators
from .operators import chain as chain_operators
from .operators import character as character_operators
from .operators import convert as convert_operators
from .operators import drag as drag_operators
from .operators import gesture
from .operators import limits as limit_operators
from .operators import presets as preset_operators
from .operators import solve as solve_operators
from .operators.body import pins as pin_operators
from .operators.body import pose as body_operators
from .operators.body import tool as body_tool
from .operators.clip import contacts as contact_operators
from .operators.clip import plant as plant_operators
from .operators.clip import skeleton as skeleton_operators
from .operators.goals import ik_fk as ik_fk_operators
from .operators.goals import snap as snap_operators
from .operators.goals import space_switch as space_operators
from .operators.mends import chains as fix_operators
from .operators.mends import rig as rig_fix_operators
from .overlay import draw as overlay
from .pose import interruption
from .posing.command import command as pose_command
from .rig.plan import followers
from .setup import new_chain, profile
from .shots.command import command as bake_command
from .solve.memory import keep_freed_memory
from .translation import catalogs
from .ui import bake_report, gizmos, graph, menus, panel, presets, toolbar
from .ui.panels import body, chain, chains, character, clip, limits, tools
from .ui.preferences import drawing as drawn_preferences
from .ui.preferences import keymap, tab

CLASSES: Final = tuple(
    cls
    for module in (
        preferences,
        settings,
        profile,
        chain_operators,
        bend_operators,
        solve_operators,
        bake_operators,
        convert_operators,
        character_operators,
        snap_operators,
        ik_fk_operators,
        space_operators,
        contact_operators,
        plant_operators,
        skeleton_operators,
        limit_operators,
        gesture,
        drag_operators,
        body_operators,
        pin_operators,
        body_tool,
        fix_operators,
        rig_fix_operators,
        preset_operators,
        panel,
        chains,
        chain,
        limits,
        bake_report,
        character,
        menus,
        body,
        clip,
        tools,
        presets,
        gizmos,
    )
    for cls in module.CLASSES
)

PARTS: Final[tuple[Any, ...]] = (
    settings,
    profile,
    versions,
    followers,
    new_chain,
    handlers,
    overrides,
    overlay,
    menus,
    chains,
    body,
    graph,
    presets,
    keymap,
    drawn_preferences,
    toolbar,
    bake_command,
    pose_command,
    interruption,
)
"""Modules with a `register` and an `unregister` of their own."""

_registered: ExitStack | None = None
"""Removes everything that is registered, last first; None: nothing is."""


def register() -> None:
    """Add classes, settings and handlers; a second call does nothing.

    Raises:
        RuntimeError: another copy of the extension is enabled. Both would solve, and disabling one would remove the
            settings of the other.
    """
    global _registered
    if _registered is not None:
        return
    other = settings.registered_by()
    if other is not None and other != __package__:
        enabled = other.rpartition(".")[0] or other
        raise RuntimeError(f"IK Chains is enabled already, as '{enabled}'; disable that add-on first")
    keep_freed_memory()
    with ExitStack() as undo:  # after an error, nothing stays registered
        catalogs.register()
        undo.callback(catalogs.unregister)
        for cls in CLASSES:
            bpy.utils.register_class(cls)
            undo.callback(bpy.utils.unregister_class, cls)
        cursor.register()
        undo.callback(cursor.unregister)
        for macro in (*drag_operators.MACROS, *body_tool.MACROS):
            gesture.compose(*macro)
        for part in PARTS:
            part.register()
            undo.callback(part.unregister)
        tab.register(CLASSES)
        undo.callback(tab.unregister)
        _registered = undo.pop_all()


def unregister() -> None:
    """Remove classes, settings and handlers; a second call does nothing."""
    global _registered
    if _registered is not None:
        _registered.close()
        _registered = None
