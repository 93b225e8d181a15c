"""The pie menu, and entries in Blender's own menus and popovers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import bpy
from bpy.types import Context, Menu, Panel, SpaceView3D, UILayout

from ..core import preferences
from ..core.settings import object_of, overlay_of
from .operators.active import active_chain, armature, obstacle


class IK_ADDON_MT_pie(Menu):
    """The most used operators in a pie menu."""

    bl_label = "IK Chains"

    def draw(self, context: Context) -> None:
        """Draw the entries in Blender's order for pie menus: W, E, S, N, NW, NE, SW, SE."""
        pie = self.layout.menu_pie()
        pie.operator(PIE[0], icon=ICONS[PIE[0]])
        if obstacle(context):
            pie.separator()
        else:
            live = object_of(armature(context))
            pie.prop(live, "live", toggle=True, icon="PAUSE" if live.live else "PLAY")
        for operator in PIE[1:]:
            pie.operator(operator, icon=ICONS[operator])


ENTRIES: tuple[dict[str, bpy.stub_internal.rna_enums.IconItems], ...] = (
    {
        "ik_addon.chain_add": "ADD",
        "ik_addon.character_setup": "OUTLINER_OB_ARMATURE",
        "ik_addon.mirror_chain": "MOD_MIRROR",
        "ik_addon.chain_remove": "REMOVE",
        "ik_addon.chains_remove": "X",
    },
    {
        "ik_addon.drag_target": "VIEW_PAN",
        "ik_addon.solve": "CON_KINEMATIC",
        "ik_addon.restore_pose": "LOOP_BACK",
        "ik_addon.bake": "KEYFRAME_HLT",
    },
    {
        "ik_addon.switch_ik_fk": "UV_SYNC_SELECT",
        "ik_addon.snap_target": "SNAP_ON",
        "ik_addon.apply_pose": "ARMATURE_DATA",
        "ik_addon.switch_space": "CON_CHILDOF",
    },
    {"ik_addon.select_controls": "RESTRICT_SELECT_OFF", "ik_addon.key_controls": "KEYINGSET"},
    {
        "ik_addon.flip_bend": "ARROW_LEFTRIGHT",
        "ik_addon.find_bend_side": "VIEWZOOM",
        "ik_addon.follow_rotation": "CON_ROTLIKE",
    },
    {"ik_addon.pose_body": "MOD_ARMATURE", "ik_addon.pin": "PINNED", "ik_addon.pin_release": "UNPINNED"},
    {
        "ik_addon.find_contacts": "VIEWZOOM",
        "ik_addon.mark_contact": "KEYFRAME",
        "ik_addon.remove_contact": "X",
        "ik_addon.find_pivots": "ORIENTATION_LOCAL",
        "ik_addon.plant": "SNAP_FACE",
        "ik_addon.bake_skeleton": "EXPORT",
    },
    {"ik_addon.limit_from_pose": "POSE_HLT", "ik_addon.limits_copy": "PASTEDOWN"},
    {"ik_addon.convert_constraints": "CON_KINEMATIC", "ik_addon.restore_constraints": "LOOP_BACK"},
)
"""The entries of Pose > IK Chains in groups, each an operator with its icon; Blender's menu search finds them here."""
ICONS = {operator: icon for group in ENTRIES for operator, icon in group.items()}
PIE = (
    *("ik_addon.solve", "ik_addon.drag_target", "ik_addon.chain_add", "ik_addon.select_controls"),
    *("ik_addon.key_controls", "ik_addon.switch_ik_fk", "ik_addon.snap_target"),
)
"""Entries of the pie menu, beside Live in second place."""
CHAIN = (
    *("ik_addon.drag_target", "ik_addon.flip_bend", "ik_addon.switch_ik_fk", "ik_addon.snap_target"),
    *("ik_addon.apply_pose", "ik_addon.switch_space", "ik_addon.mirror_chain", "ik_addon.chain_remove"),
)
"""Context menu entries for a bone of a chain."""


def draw_entries(layout: UILayout, entries: Iterable[str]) -> None:
    """Draw operators into a menu so that they open dialogs and follow the mouse, unlike in scripts."""
    layout.operator_context = "INVOKE_DEFAULT"
    for operator in entries:
        layout.operator(operator, icon=ICONS[operator])


class IK_ADDON_MT_pose(Menu):
    """The submenu IK Chains of the Pose menu."""

    bl_label = "IK Chains"

    def draw(self, _context: Context) -> None:
        """Draw the entries."""
        for i, group in enumerate(ENTRIES):
            if i:
                self.layout.separator()
            draw_entries(self.layout, group)
        self.layout.separator()
        self.layout.operator("wm.url_open", text="Guide", icon="HELP").url = preferences.guide()


def draw_pose_entry(menu: Menu, _context: Context) -> None:
    """Draw the submenu into the Pose menu."""
    menu.layout.separator()
    menu.layout.menu(IK_ADDON_MT_pose.__name__)


def draw_object_entry(menu: Menu, context: Context) -> None:
    """Draw the submenu into the Object menu if an armature is active: in Object Mode the menu search skips Pose."""
    if not obstacle(context):
        draw_pose_entry(menu, context)


def draw_bone_entries(menu: Menu, context: Context) -> None:
    """Draw the operators for the clicked bone and its chain into the context menu of Pose Mode."""
    if not obstacle(context):
        menu.layout.separator()
        draw_entries(menu.layout, ("ik_addon.chain_add",) if active_chain(context) is None else CHAIN)


def draw_overlay_options(panel: Panel, context: Context) -> None:
    """Draw the options of the overlay into the Overlays popover."""
    options, space = overlay_of(context.scene), context.space_data
    layout = panel.layout
    layout.active = isinstance(space, SpaceView3D) and space.overlay.show_overlays
    layout.label(text="Inverse Kinematics")
    split = layout.split()
    left, right = split.column(align=True), split.column(align=True)
    left.prop(options, "show_overlay")
    for column, part in ((right, "show_limits"), (left, "show_reach"), (right, "show_pins")):
        row = column.row()
        row.active = options.show_overlay
        row.prop(options, part)


_ADDED: tuple[tuple[str, Callable[..., None]], ...] = (
    ("VIEW3D_PT_overlay", draw_overlay_options),
    ("VIEW3D_MT_pose", draw_pose_entry),
    ("VIEW3D_MT_object", draw_object_entry),
    ("VIEW3D_MT_pose_context_menu", draw_bone_entries),
)


def register() -> None:
    """Add the entries."""
    for menu, draw in _ADDED:
        getattr(bpy.types, menu).append(draw)


def unregister() -> None:
    """Remove the entries."""
    for menu, draw in reversed(_ADDED):
        getattr(bpy.types, menu).remove(draw)
