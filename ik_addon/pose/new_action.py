"""A copy of an action that takes the keys, so that the original keeps what it has."""

from __future__ import annotations

from contextlib import ExitStack

import bpy

from .. import compat


def use_new_action(ob: bpy.types.Object, undo: ExitStack) -> None:
    """Let a copy of an object's action take its keys from now on; nothing where it has none. `undo` takes it back."""
    action = ob.animation_data.action if ob.animation_data else None
    if action is None:
        return
    if action.is_editable and not action.use_fake_user:  # it may have no other user
        action.use_fake_user = True
        undo.callback(setattr, action, "use_fake_user", False)
    compat.use_copy_of_action(ob, f"{action.name} Baked", undo)
