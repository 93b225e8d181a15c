"""What panels find out about a rig, kept for a second: Blender draws the sidebar on every frame and every move."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import bpy

from .operators.active import active_bone, active_chain, candidate
from .operators.progress import redraw_sidebars

PATIENCE = 1.0
"""Seconds for which something is kept."""

Found = TypeVar("Found")

_kept: dict[Hashable, tuple[float, Any]] = {}


def is_playing(context: bpy.types.Context) -> bool:
    """Whether the animation plays in this window."""
    return context.screen is not None and context.screen.is_animation_playing


def kept(
    context: bpy.types.Context, ob: bpy.types.Object, name: Hashable, find: Callable[[], Found], *, always: bool = False
) -> Found:
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
    now = time.monotonic()
    for key in [key for key, (since, _found) in _kept.items() if now - since > PATIENCE]:
        del _kept[key]
    if (ob.session_uid, name) not in _kept:
        _kept[ob.session_uid, name] = now, find()
    elif not is_playing(context) and not bpy.app.timers.is_registered(_draw_again):
        bpy.app.timers.register(_draw_again, first_interval=PATIENCE)
    return _kept[ob.session_uid, name][1]


def _draw_again() -> None:
    """Draw sidebars that show what may be old by now."""
    for window in bpy.context.window_manager.windows:
        redraw_sidebars(window.screen)


def register() -> None:
    """Begin with nothing."""
    _kept.clear()


def unregister() -> None:
    """Forget everything."""
    _kept.clear()
    if bpy.app.timers.is_registered(_draw_again):
        bpy.app.timers.unregister(_draw_again)


def shown_chain(context: bpy.types.Context) -> bpy.types.PoseBone | None:
    """Return the tip of the active chain, see `operators.active`."""
    ob, active = candidate(context), context.active_object
    if ob is None or active is None or ob.pose is None or not is_playing(context):
        return active_chain(context)
    bone = active_bone(ob)
    name = ("active", active.session_uid, "" if bone is None else bone.name)

    def tip() -> str:
        found = active_chain(context)
        return "" if found is None else found.name

    return ob.pose.bones.get(kept(context, ob, name, tip))
