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


def kept(context: bpy.types.Context, ob: bpy.types.Object, name: Hashable, find: Callable[[], Found]) -> Found:
    """Return what `find` returns; in playback as it was up to a second ago.

    Args:
        context: tells whether the animation plays.
        ob: the armature object that it is about.
        name: tells it from what else is kept about this object.
        find: finds it; its result must not refer to Blender's data, which may be gone later.
    """
    if not is_playing(context):
        _kept.clear()
        return find()
    key, now = (ob.session_uid, name), time.monotonic()
    since, found = _kept.get(key, (-PATIENCE, None))
    if key not in _kept or now - since > PATIENCE:
        found = find()
        _kept[key] = now, found
    return found  # type: ignore[return-value]


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
