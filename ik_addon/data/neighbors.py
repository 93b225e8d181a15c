"""Whether other add-ons affect what a frame shows."""

from __future__ import annotations

import bpy

_PACKAGE = f"{__package__.rpartition('.')[0]}."
"""What the names of all modules of the extension begin with."""


def others_handle_frames() -> bool:
    """Return whether other add-ons handle frame changes; they may then set the FK pose of each frame."""
    every = (*bpy.app.handlers.frame_change_pre, *bpy.app.handlers.frame_change_post)
    return any(not str(getattr(handler, "__module__", "")).startswith(_PACKAGE) for handler in every)
