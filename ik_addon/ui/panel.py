"""What the panels and lists of the "IK" tab in the sidebar have in common.

Blender draws the sidebar on every frame and every move: in playback, panels show what they found a second ago.
"""

import time
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

import bpy
from bpy.props import IntProperty
from bpy.types import Context, Object, Panel, Pose, PoseBone, UILayout, UIList, WindowManager

from ..core.preferences import PACKAGE
from ..core.translation.sentences import say
from ..core.untyped import Value
from ..rig.plan.chain import tips
from .operators.active import active_bone, active_chain, armature, candidate, obstacle
from .operators.progress import redraw_sidebars
from .text import draw_message


class IKPanel(Panel):
    """Base of all panels in the tab."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "IK"


class ArmaturePanel(IKPanel):
    """Base of sub-panels that need a usable armature."""

    bl_parent_id = "VIEW3D_PT_ik_addon"

    @classmethod
    def poll(cls, context: Context) -> bool:
        """Whether the panel is shown."""
        return not obstacle(context) and cls.is_of_use(context, armature(context))

    @classmethod
    def is_of_use(cls, _context: Context, _ob: Object) -> bool:
        """Whether there is something to show about an armature."""
        return True

    def draw(self, context: Context) -> None:
        """Draw what there is to show about the active armature."""
        self.draw_rig(self.layout, context, armature(context))

    def draw_rig(self, layout: UILayout, context: Context, ob: Object) -> None:
        """Draw what there is to show about an armature."""
        raise NotImplementedError


class FoldedPanel(ArmaturePanel):
    """Base of sub-panels that are closed at first."""

    bl_options = {"DEFAULT_CLOSED"}  # noqa: RUF012 - as Blender wants it


def is_chained(context: Context, ob: Object) -> bool:
    """Whether an armature has chains."""
    return kept(context, ob, "chained", lambda: bool(tips(ob)))


def draw_aside(layout: UILayout, text: str) -> None:
    """Draw a dimmed text at the right."""
    aside = layout.row()
    aside.alignment = "RIGHT"
    aside.active = False
    aside.label(text=text, translate=False)


class BoneList(UIList):
    """A list of some bones of an armature, with a search by name, whose active row is the active bone."""

    row: str
    """Name of the window manager property with the index of the active row among all bones of the armature."""
    label: str
    description: str
    listed: Callable[[Object], Iterable[str]]
    """Returns the names of the bones to list."""
    active: Callable[[Context], PoseBone | None]
    """Returns the bone of the active row."""
    choose: Callable[[PoseBone], object]
    """Makes a bone active, whose row the user has clicked."""

    def draw_row(self, context: Context, layout: UILayout, bone: PoseBone) -> None:
        """Draw the row of a bone."""
        raise NotImplementedError

    @classmethod
    def draw_list(cls, layout: UILayout, context: Context, ob: Object, least: int, most: int) -> None:
        """Draw the list of bones of an armature, from `least` to `most` rows high, as it has entries."""
        manager = context.window_manager
        layout.template_list(cls.__name__, "", ob.pose, "bones", manager, cls.row, rows=least, maxrows=most)

    def draw_item(
        self, context: Context, layout: UILayout, _pose: object, bone: PoseBone, _icon: int, _data: object, _name: str
    ) -> None:
        """Draw a row."""
        self.draw_row(context, layout, bone)

    def draw_filter(self, _context: Context, layout: UILayout) -> None:
        """Draw the search field."""
        layout.prop(self, "filter_name", text="", icon="VIEWZOOM")

    def filter_items(self, context: Context, pose: Pose, name: str) -> tuple[list[int], list[int]]:
        """Show the listed bones that match the search, in the order of the armature."""

        def flags() -> list[int]:
            wanted = {bone for bone in self.listed(pose.id_data) if self.filter_name.lower() in bone.lower()}
            return [self.bitflag_filter_item if bone.name in wanted else 0 for bone in getattr(pose, name)]

        return kept(context, pose.id_data, (type(self).__name__, self.filter_name), flags), []

    @classmethod
    def register(cls) -> None:
        """Add the property to the window manager; Blender calls this once it knows the class."""

        def get(_manager: WindowManager) -> int:  # Blender takes functions, not methods
            bone = None if obstacle(bpy.context) else cls.active(bpy.context)
            return -1 if bone is None else bone.id_data.pose.bones.find(bone.name)

        def choose(_manager: WindowManager, index: int) -> None:
            bones = [] if obstacle(bpy.context) else armature(bpy.context).pose.bones
            if 0 <= index < len(bones):
                cls.choose(bones[index])

        setattr(WindowManager, cls.row, IntProperty(name=cls.label, description=cls.description, get=get, set=choose))

    @classmethod
    def unregister(cls) -> None:
        """Remove the property."""
        delattr(WindowManager, cls.row)


class SecondCopyPanel(IKPanel):
    """All that is registered beside another copy of the extension; says which copy does nothing."""

    bl_idname = "VIEW3D_PT_ik_addon_second_copy"
    bl_label = "IK Chains"

    def draw(self, context: Context) -> None:
        """Draw what to do."""
        text = say("IK Chains is enabled twice, so '{copy}' does nothing. Disable both, then enable one", copy=PACKAGE)
        draw_message(self.layout, context, text, icon="ERROR")


# ---- what panels find out about a rig, kept for a second

PATIENCE = 1.0
"""Seconds for which something is kept."""

Found = TypeVar("Found")

_kept: dict[Hashable, tuple[float, Value]] = {}


def is_playing(context: Context) -> bool:
    """Whether the animation plays in this window."""
    return context.screen is not None and context.screen.is_animation_playing


def kept(context: Context, ob: Object, name: Hashable, find: Callable[[], Found], *, always: bool = False) -> Found:
    """Return what `find` returns; in playback as it was up to a second ago.

    Args:
        context: tells whether the animation plays.
        ob: the armature object that it is about.
        name: tells it from what else is kept about this object.
        find: finds it; its result must not refer to Blender's data, which may be gone later.
        always: keep it also while nothing plays, since finding it takes long; the sidebar is drawn again in time.
    """
    if not (always or is_playing(context)):
        return find()
    now, key = time.monotonic(), (ob.session_uid, name)
    if key not in _kept or now - _kept[key][0] > PATIENCE:
        for old in [old for old, (since, _found) in _kept.items() if now - since > PATIENCE]:
            del _kept[old]
        _kept[key] = now, find()
    elif not is_playing(context) and not bpy.app.timers.is_registered(_draw_again):
        bpy.app.timers.register(_draw_again, first_interval=PATIENCE)
    return _kept[key][1]


def _draw_again() -> None:
    """Draw sidebars that show what may be old by now."""
    for window in bpy.context.window_manager.windows:
        redraw_sidebars(window.screen)


def unregister() -> None:
    """Forget everything."""
    _kept.clear()
    if bpy.app.timers.is_registered(_draw_again):
        bpy.app.timers.unregister(_draw_again)


def shown_chain(context: Context) -> PoseBone | None:
    """Return the tip of the active chain, see `operators.active`."""
    ob, active = candidate(context), context.active_object
    if ob is None or active is None or ob.pose is None or not is_playing(context):
        return active_chain(context)
    bone = active_bone(ob)
    name = ("active", active.session_uid, "" if bone is None else bone.name)
    return ob.pose.bones.get(kept(context, ob, name, lambda: getattr(active_chain(context), "name", "")))
