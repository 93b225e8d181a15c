"""Copy an action to key the copy and leave the original as it is."""

from __future__ import annotations

from contextlib import ExitStack

import bpy

from .. import compat


def use_new_action(ob: bpy.types.Object, undo: ExitStack) -> None:
    """Give an object with an action a copy of it, so that keys go there; `undo` gets callbacks to revert that."""
    action = ob.animation_data.action if ob.animation_data else None
    if action is None:
        return
    if action.is_editable and not action.use_fake_user:  # it may have no other user
        action.use_fake_user = True
        undo.callback(setattr, action, "use_fake_user", False)
    compat.use_copy_of_action(ob, f"{action.name} Baked", undo)
