"""What happens to one live armature before a frame is evaluated, and when its bones or settings are edited."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import bpy
import numpy as np

from ..core import channels, compat
from ..core.hooks import others_follow_frames
from ..rig.plan.presence import Presence
from ..rig.read.sample import own_transforms
from .registry import paused, registry
from .rig import Rig, moment_of
from .solving import owe, rig_of
from .state import State

on_edit: list[Callable[[bpy.types.Object, Rig, bpy.types.Depsgraph], set[int]]] = []
"""Called when bones may have been moved on a still frame, before that becomes FK; returns `session_uid` of goals that
followed, see `targets.edits`."""


def before_frame(ob: bpy.types.Object, scene: bpy.types.Scene) -> None:
    """Before Blender evaluates a frame, take edits, and write the solution of the frame if it is foretold."""
    own = registry.of(ob)
    rig = own.rig
    if rig is None:
        return
    if not rig.plan.skeleton.matches(ob):
        own.is_stale = True
        return
    if not is_played():  # a script may have edited something, and no update handler hears of it
        own.is_stale |= not rig.plan.frame_facts.hold(ob)
    shown = rig.bones.written
    if not rig.bones.are_as_written(ob):
        rig.absorb_edits(ob, [layer.depsgraph for layer in scene.view_layers if layer.depsgraph is not None])
    if rig.is_still:  # a script may have keyed the solution without an update in between
        rig.key_fk(ob, shown)
    rig.is_still = rig.is_read = False
    rig.originals = own_transforms(rig.plan) if others_follow_frames() else None
    if not own.is_stale:
        rig.put_early(ob, scene.frame_current_final)


def is_played() -> bool:
    """Whether a window plays the animation, so that nobody edits anything between two frames."""
    return bpy.context.screen is not None and bpy.context.screen.is_animation_playing


def take_edits(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, updated: set[int], *, in_actions: bool) -> None:
    """Take a user's edits to the armature: bones that were moved, keys, or changes to what is solved.

    With `in_actions`, actions were edited: keys may be new, and F-curves may be gone, as when a bone is renamed in
    another armature that shares the action. Goals that followed an edit are added to `updated`.
    """
    own = registry.of(ob)
    if own.rig is None and ob.session_uid in registry.undone:
        recover(ob, depsgraph, registry.undone[ob.session_uid])
    if own.rig is None or not own.rig.plan.skeleton.matches(ob):
        own.is_stale = True
    else:
        rig = own.rig
        rig.is_still = True
        shown = channels.read(ob, rig.plan.live)
        if rig.bones.fk is not None and rig.at == moment_of(depsgraph):
            for follow in on_edit:
                updated |= follow(ob, rig, depsgraph)
        rig.absorb_edits(ob)
        if in_actions and rig.key_fk(ob, shown):
            with paused():
                compat.update_in_handler(depsgraph)
        own.is_stale |= not rig.plan.is_current(ob)
        own.is_stale |= in_actions and not rig.bones.are_animated_alike(ob)


def recover(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, undone: channels.Row) -> None:
    """Find the FK pose beneath the solution that undo brought back, if an edit has changed that since.

    Adjust Last Operation undoes an operator and runs it again without an update in between. `undone` has the channels
    (bones, 17) of all bones after undo.
    """
    everything = np.arange(len(ob.pose.bones))
    present = channels.read(ob, everything)
    if len(undone) != len(present) or np.array_equal(present, undone):
        return
    channels.write(ob, everything, undone)
    rig = rig_of(ob, depsgraph)
    with paused():
        rig.read_still(ob, depsgraph)
    rig.enter(State.SOLVED)
    channels.write(ob, everything, present)
    with paused():
        compat.update_in_handler(depsgraph)


def stand_by(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> None:
    """Change nothing in a view layer where the armature or a goal is missing, if another layer has them all."""
    rig = registry.of(ob).rig
    assert rig is not None
    rig.stand_by(ob, depsgraph, is_shown=Presence(depsgraph.view_layer).has(ob))
    owe(ob, depsgraph)


def made_of(ob: bpy.types.Object) -> Iterator[int]:
    """Yield the `session_uid` of all data that makes up an armature's pose.

    Actions are included because removing F-curves tags the action alone.
    """
    yield ob.session_uid
    yield ob.data.session_uid
    data: Any = ob.animation_data
    if data is not None:
        users = (data, *compat.strips_of(data.nla_tracks))
        yield from (user.action.session_uid for user in users if user.action is not None)
