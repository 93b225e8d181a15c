"""What is done with one live armature before and after a frame is evaluated, and when goals are moved on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import bpy

from .. import compat
from ..data import fk_store
from ..rig.plan.presence import Presence
from . import reports
from .registry import LiveArmature, paused, registry
from .solving import owe, rig_of
from .state import State


def restore_fk(ob: bpy.types.Object, evaluated: Callable[[], Sequence[bpy.types.Depsgraph]]) -> None:
    """Take over what a user moved, and have the frame evaluated from the stored FK pose."""
    own = registry.of(ob)
    rig = own.rig
    if rig is None or not rig.plan.skeleton.matches(ob):
        # It is planned after the frame, when the view layer is up to date.
        own.is_stale = True
        fk_store.restore(ob, fk_store.stored_bones(ob))
        if rig is None:
            own.state = State.RESTORED
        else:
            rig.enter(State.RESTORED)
    else:
        rig.absorb_edits(ob, evaluated())
        rig.restore_fk(ob, rig.bones.written)


def before_frame(ob: bpy.types.Object, scene: bpy.types.Scene) -> None:
    """Write the solution of a frame that is about to be evaluated, where it is known, or restore the FK pose."""
    own = registry.of(ob)
    if own.rig is not None and own.rig.state is State.PLAYBACK and not own.is_stale:
        own.rig.pose_early(ob, scene.frame_current_final)
    else:
        restore_fk(ob, lambda: evaluated_in(scene))


def take_edits(ob: bpy.types.Object) -> None:
    """A user changed something on the armature: bones that were moved, or what is to be solved."""
    own = registry.of(ob)
    if own.rig is None or not own.rig.plan.skeleton.matches(ob):
        own.is_stale = True
    else:
        own.rig.absorb_edits(ob)
        own.is_stale |= not own.rig.plan.is_current(ob)


def evaluated_in(scene: bpy.types.Scene, *more: bpy.types.Depsgraph) -> list[bpy.types.Depsgraph]:
    """Wherever a scene may be evaluated."""
    return [*more, *(layer.depsgraph for layer in scene.view_layers if layer.depsgraph is not None)]


def play(
    ob: bpy.types.Object, scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph, in_step: Presence | None
) -> None:
    """Look whether an armature that follows its goals was posed right for the frame."""
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
    # Something changed since the last frame: go back to where that is looked for, and solve as on any other frame.
    is_viewport = is_own and depsgraph.mode == "VIEWPORT"  # everything in a render is new
    edited = is_viewport and depsgraph.id_type_updated("ARMATURE")
    own.is_stale |= edited or (is_viewport and depsgraph.id_type_updated("SCENE"))
    if rig.plan.skeleton.matches(ob):
        rig.absorb_edits(ob, [] if edited else evaluated_in(scene, depsgraph))
        if not own.is_stale and rig.stands_alone(ob):
            rig.keep_fk(depsgraph)
            return
        if not is_flushed:
            rig.enter(State.UNKNOWN)  # this evaluation cannot be repeated; F-curves determine its FK pose
            return
        if own.is_stale:
            rig = rig_of(ob, depsgraph)  # what is no longer animated has another stored pose
    restore_fk(ob, lambda: [] if edited else evaluated_in(scene, depsgraph))
    with paused():
        rig.evaluate_fk(ob, depsgraph)


def stand_by(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> None:
    """Change nothing in a view layer where an armature or a goal is missing, and another layer has them all."""
    rig = registry.of(ob).rig
    if rig is None or rig.state is not State.RESTORED:
        return
    rig.stand_by(ob, depsgraph, is_shown=Presence(depsgraph.view_layer).has(ob))
    owe(ob, depsgraph)
    if rig.state is State.RESTORED:
        rig.enter(State.UNKNOWN)


def made_of(ob: bpy.types.Object) -> Iterator[int]:
    """`session_uid` of what an armature's pose is made of; where F-curves are removed Blender tags the action alone."""
    yield ob.session_uid
    yield ob.data.session_uid
    data: Any = ob.animation_data
    if data is not None:
        users = (data, *compat.strips_of(data))
        yield from (user.action.session_uid for user in users if user.action is not None)


def play_again(ob: bpy.types.Object, own: LiveArmature, depsgraph: bpy.types.Depsgraph, updated: set[int]) -> bool:
    """Pose an armature that follows its goals anew where only these were moved; return whether that was done."""
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
    updated.add(ob.session_uid)  # for those whose targets are attached to it
    return True
