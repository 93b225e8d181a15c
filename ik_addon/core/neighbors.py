"""Whether other add-ons affect what a frame shows."""

from __future__ import annotations

import bpy

_PACKAGE = f"{__package__.rpartition('.')[0]}."
"""What the names of all modules of the extension begin with."""


def others_handle_frames() -> bool:
    """Return whether other add-ons handle frame changes; they may then set the FK pose of each frame."""
    return any(map(_is_foreign, (*bpy.app.handlers.frame_change_pre, *bpy.app.handlers.frame_change_post)))


def others_follow_frames() -> bool:
    """Return whether other add-ons may move something once a frame is evaluated."""
    return any(map(_is_foreign, bpy.app.handlers.frame_change_post))


def _is_foreign(handler: object) -> bool:
    return not str(getattr(handler, "__module__", "")).startswith(_PACKAGE)
