"""Whether other add-ons have a say in what a frame shows."""

from __future__ import annotations

import bpy

_PACKAGE = __package__.rpartition(".")[0]
_OWN = 2
"""How many handlers of frame changes the extension has."""


def others_handle_frames() -> bool:
    """Whether other add-ons do something when the frame changes: they may set the FK pose of each frame."""
    handlers = bpy.app.handlers
    if len(handlers.frame_change_pre) + len(handlers.frame_change_post) == _OWN:
        return False  # asked on each frame: the usual case first
    every = (*handlers.frame_change_pre, *handlers.frame_change_post)
    return any(not str(getattr(handler, "__module__", "")).startswith(_PACKAGE) for handler in every)
