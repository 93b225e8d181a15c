"""What panels find out about a rig, kept while the animation plays: Blender then draws the sidebar on every frame."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import TypeVar

import bpy

from ..operators.active import active_bone, active_chain, armature

PATIENCE = 1.0
"""Seconds for which something is kept in playback."""

Found = TypeVar("Found")

_kept: dict[Hashable, tuple[float, object]] = {}


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
        always: it may be a second old even while nothing plays, since finding it takes longer in a large scene.
    """
    if not (always or is_playing(context)):
        return find()
    now = time.monotonic()
    for key in [key for key, (since, _found) in _kept.items() if now - since > PATIENCE]:
        del _kept[key]
    if (ob.session_uid, name) not in _kept:
        _kept[ob.session_uid, name] = now, find()
    return _kept[ob.session_uid, name][1]  # type: ignore[return-value]


def shown_chain(context: bpy.types.Context) -> bpy.types.PoseBone | None:
    """Return the tip of the active chain, see `operators.active`."""
    ob = armature(context)
    if ob is None or ob.pose is None or not is_playing(context):
        return active_chain(context)
    bone = active_bone(ob)
    name = ("active", context.active_object.session_uid, "" if bone is None else bone.name)

    def tip() -> str:
        found = active_chain(context)
        return "" if found is None else found.name

    return ob.pose.bones.get(kept(context, ob, name, tip))
