"""The steps for one live armature: before and after a frame is evaluated, and when its goals move."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import bpy
import numpy as np

from .. import compat
from ..data import fk_store
from ..pose import channels
from ..rig.plan.presence import Presence, are_related_anew
from . import reports
from .registry import LiveArmature, paused, registry
from .rig import Rig, moment_of
from .solving import owe, read_again, rig_of
from .state import State

on_edit: list[Callable[[bpy.types.Object, Rig, bpy.types.Depsgraph], set[int]]] = []
"""Called when bones may have been moved on a still frame, before that becomes FK; returns `session_uid` of goals that
followed, see `goals.edits`."""


def restore_fk(ob: bpy.types.Object, evaluated: Callable[[], Sequence[bpy.types.Depsgraph]]) -> None:
    """Absorb the user's edits and restore the FK pose, so that Blender evaluates the frame from it."""
    own = registry.of(ob)
    rig = own.rig
    if rig is None or not rig.plan.skeleton.matches(ob):
        # The armature is planned after the frame, when the view layer is up to date.
        own.is_stale = True
        fk_store.restore(ob, fk_store.stored_bones(ob))
        if rig is None:
            own.state = State.RESTORED
        else:
            rig.enter(State.RESTORED)
    else:
        shown = channels.read(ob, rig.plan.live) if rig.is_still else None
        rig.absorb_edits(ob, evaluated())
        if shown is not None:  # a script may have keyed a bone without an update in between
            rig.key_fk(ob, shown)
        rig.restore_fk(ob, rig.bones.written)


def before_frame(ob: bpy.types.Object, scene: bpy.types.Scene) -> None:
    """Before Blender evaluates a frame, write its solution if it is known, or else restore the FK pose."""
    own = registry.of(ob)
    if own.rig is not None and _is_edited(ob, own.rig):
        own.is_stale = True
    if own.rig is not None and own.rig.state is State.PLAYBACK and not own.is_stale:
        own.rig.pose_early(ob, scene.frame_current_final)
    else:
        restore_fk(ob, lambda: evaluated_in(scene))


def _is_edited(ob: bpy.types.Object, rig: Rig) -> bool:
    """Whether a script has edited what the plan was made from, and changed the frame without an update in between."""
    if rig.state is State.PLAYBACK:
        return not rig.plan.frame_facts.hold(ob)
    # Originals that are on another frame, as in a render, may have other values where settings are animated.
    is_known = not rig.plan.watch or registry.flushed == rig.at
    return is_known and rig.plan.skeleton.matches(ob) and not rig.plan.is_as_made(ob)


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
    read_again(ob, rig, depsgraph)
    rig.enter(State.SOLVED)
    channels.write(ob, everything, present)
    with paused():
        compat.update_in_handler(depsgraph)


def evaluated_in(scene: bpy.types.Scene, *more: bpy.types.Depsgraph) -> list[bpy.types.Depsgraph]:
    """Return all depsgraphs in which a scene may be evaluated: `more`, and those of its view layers."""
    return [*more, *(layer.depsgraph for layer in scene.view_layers if layer.depsgraph is not None)]


def play(
    ob: bpy.types.Object, scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph, in_step: Presence | None
) -> None:
    """Pose an armature in PLAYBACK for a new frame, or go back to where it is solved like on any other frame."""
    own = registry.of(ob)
    rig = own.rig
    assert rig is not None
    is_own = rig.is_seen_by(depsgraph)
    is_flushed = in_step is not None and in_step.has(ob)
    playback = rig.play(ob, depsgraph, in_step=is_flushed) if is_own else None
    if playback is not None:
        reports.update(ob, rig.plan, playback.posed)
        return
    rig.stop_playback()
    # Something changed since the last frame: go back to the state that looks for changes, and solve as on other frames.
    is_viewport = is_own and depsgraph.mode == "VIEWPORT"  # in a render everything counts as new
    edited = is_viewport and depsgraph.id_type_updated("ARMATURE")
    own.is_stale |= edited or (is_viewport and are_related_anew(depsgraph))
    if rig.plan.skeleton.matches(ob):
        rig.absorb_edits(ob, [] if edited else evaluated_in(scene, depsgraph))
        if not own.is_stale and rig.stands_alone(ob):
            rig.keep_fk(depsgraph)
            return
        if not is_flushed:
            rig.enter(State.UNKNOWN)  # this evaluation can't be repeated; the FK pose is found from F-curves
            return
        if own.is_stale:
            rig = rig_of(ob, depsgraph)  # channels that are no longer animated have another stored pose
    restore_fk(ob, lambda: [] if edited else evaluated_in(scene, depsgraph))
    with paused():
        rig.evaluate_fk(ob, depsgraph)


def stand_by(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> None:
    """Change nothing in a view layer where the armature or a goal is missing, if another layer has them all."""
    rig = registry.of(ob).rig
    if rig is None or rig.state is not State.RESTORED:
        return
    rig.stand_by(ob, depsgraph, is_shown=Presence(depsgraph.view_layer).has(ob))
    owe(ob, depsgraph)
    if rig.state is State.RESTORED:
        rig.enter(State.UNKNOWN)


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


def play_again(ob: bpy.types.Object, own: LiveArmature, depsgraph: bpy.types.Depsgraph, updated: set[int]) -> bool:
    """Pose an armature in PLAYBACK again if only its goals moved; return whether this was done."""
    rig = own.rig
    if rig is None or own.is_stale or rig.state is not State.PLAYBACK or not rig.is_seen_by(depsgraph):
        return False
    if updated.isdisjoint(rig.plan.inputs) or not updated.isdisjoint(made_of(ob)):
        return False
    playback = rig.play_again(ob, depsgraph, hurried=registry.is_hurried)
    if playback is None:
        return False
    owe(ob, depsgraph)
    reports.update(ob, rig.plan, playback.posed)
    updated.add(ob.session_uid)  # for armatures whose targets are attached to this one
    return True
