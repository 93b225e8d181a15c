"""The extension's entries in Blender's lists of handlers, added again where another add-on has cleared a list."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import bpy
from bpy.app.handlers import persistent

log = logging.getLogger(__name__)

Handler = Callable[..., None]
_ours: list[tuple[str, Handler]] = []
on_put_back: list[Callable[[], None]] = []
"""Called when handlers were missing and have been added again: they did not hear of everything."""


def join(module: object) -> None:
    """Add the `HANDLERS` of a module to the lists in `bpy.app.handlers`, and its `LISTENERS` to lists of our own."""
    for listeners, listener in getattr(module, "LISTENERS", ()):
        listeners.append(listener)
    for name, handler in getattr(module, "HANDLERS", ()):
        getattr(bpy.app.handlers, name).append(handler)
        _ours.append((name, handler))


def leave(module: object) -> None:
    """Remove what `join` added."""
    for listeners, listener in getattr(module, "LISTENERS", ()):
        listeners.remove(listener)
    for name, handler in getattr(module, "HANDLERS", ()):
        _ours.remove((name, handler))
        entries: list[Handler] = getattr(bpy.app.handlers, name)
        if handler in entries:
            entries.remove(handler)


@contextmanager
def apart(name: str) -> Iterator[None]:
    """Log a fault that concerns one object, by name, and go on: others must not depend on it."""
    try:
        yield
    except Exception:
        log.exception("Something failed for '%s'; everything else goes on", name)


def keep_last(name: str) -> None:
    """Move our entries of a list to its end, so that they see what others do. Not while the list is gone through."""
    entries: list[Handler] = getattr(bpy.app.handlers, name)
    ours = [handler for known, handler in _ours if known == name]
    if entries[-len(ours) :] != ours:
        for handler in ours:
            if handler in entries:
                entries.remove(handler)
                entries.append(handler)


@persistent
def put_back(_scene: object = None, _unused: object = None) -> None:
    """Add missing handlers again. Called by whatever may still be called: other handlers, and each redraw."""
    lost = [(name, handler) for name, handler in _ours if handler not in getattr(bpy.app.handlers, name)]
    for name, handler in lost:
        getattr(bpy.app.handlers, name).append(handler)
    for listener in on_put_back if lost else ():
        listener()


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
