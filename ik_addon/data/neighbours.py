"""Whether other add-ons affect what a frame shows."""

from __future__ import annotations

import bpy

_PACKAGE = __package__.rpartition(".")[0]
_OWN = 2
"""Number of frame change handlers that the extension has."""


def others_handle_frames() -> bool:
    """Return whether other add-ons handle frame changes; they may then set the FK pose of each frame."""
    handlers = bpy.app.handlers
    if len(handlers.frame_change_pre) + len(handlers.frame_change_post) == _OWN:
        return False  # called on each frame, so the usual case comes first
    every = (*handlers.frame_change_pre, *handlers.frame_change_post)
    return any(not str(getattr(handler, "__module__", "")).startswith(_PACKAGE) for handler in every)
