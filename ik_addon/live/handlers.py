"""The handlers decide what to solve and when; `rig/` knows how.

A frame is read and solved once Blender has evaluated it, a moved target or bone after the update that it caused. The
pose is a pure function of the frame. `live.state` lists what the channels may hold; docs/live.md has the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import bpy
import numpy as np
from bpy.app.handlers import persistent

from ..core import channels, compat, fk_keys, hooks, stamps
from ..core.hooks import others_follow_frames
from ..core.settings import object_of
from ..rig.plan.presence import Layer, Presence, are_related_anew
from . import renames
from .frame_steps import before_frame, made_of, stand_by, take_edits
from .registry import clear, has_new_armatures, live_armatures, registry, unpaused
from .rig import Rig, moment_of
from .solving import evaluate_moved, guarded, in_dependency_order, solve_frame, solve_still
from .state import State


@persistent
def _frame_change_pre(scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph | None) -> None:
    # Blender calls this once for each view layer, without saying for which.
    hooks.put_back()
    hooks.keep_last("frame_change_post")
    if registry.is_paused:
        return
    registry.is_changing = True
    # Armatures appended or copied just now; objects that share an older armature's data are found after the frame.
    for ob in unpaused(scene, count=has_new_armatures()):
        guarded(before_frame, ob, scene)


def _in_step(depsgraph: bpy.types.Depsgraph) -> Presence | None:
    """Return the view layer whose original objects are at the frame of a depsgraph; None if there is none.

    Blender writes evaluated values back to the originals only for the view layer of a window, or without windows for a
    scene's only view layer.
    """
    shown = bpy.context.view_layer
    if depsgraph.mode != "VIEWPORT" or shown is None or shown.depsgraph is None:
        return None
    now, address = moment_of(depsgraph), depsgraph.as_pointer()
    if address == shown.depsgraph.as_pointer():
        registry.flushed = now
    elif address != depsgraph.view_layer.depsgraph.as_pointer() or registry.flushed != now:
        return None
    return Presence(shown)


@persistent
def _frame_change_post(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    hooks.put_back()
    registry.is_changing = False
    if registry.is_paused:
        return
    is_related, is_shown = are_related_anew(depsgraph) or registry.is_edited, depsgraph.mode == "VIEWPORT"
    registry.is_edited = False
    if is_related and is_shown:
        registry.forget_deleted()
    armatures = unpaused(scene, count=is_related)
    if not armatures:
        return
    in_step = _in_step(depsgraph)
    edited = list(_edited_armatures(depsgraph)) if is_shown else []
    if edited or (is_related and is_shown):  # a script edited something
        renames.follow(edited)
        for ob in armatures:
            guarded(_look_again, ob, depsgraph, is_related and in_step is not None)
    if others_follow_frames():
        evaluate_moved(armatures, depsgraph, in_step)

    def step(ob: bpy.types.Object, rig: Rig) -> bool:
        is_written = solve_frame(ob, rig, depsgraph, in_step)
        rig.foretell(ob, scene.frame_current_final)
        return is_written

    in_dependency_order(scene, depsgraph, step, in_step, is_still=False)
    for uid, rig in registry.rigs():
        if rig.plan.is_elsewhere:
            for ob in (ob for ob in armatures if ob.session_uid == uid):
                guarded(stand_by, ob, depsgraph)


def _edited_armatures(depsgraph: bpy.types.Depsgraph) -> Iterator[bpy.types.Armature]:
    """Yield armatures that were edited before a frame changed; animation tags its own on each frame."""
    if depsgraph.id_type_updated("ARMATURE"):
        for original in [update.id.original for update in depsgraph.updates]:
            if isinstance(original, bpy.types.Armature) and next(compat.animating(original), None) is None:
                yield original


def _look_again(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, is_related: bool) -> None:
    """Have an armature planned anew that a script edited, without an update that other handlers hear of."""
    own = registry.of(ob)
    if own.rig is not None:
        own.is_stale |= not own.rig.plan.is_as_made(ob)
        if is_related:
            _look_for_goals(ob, depsgraph, set())


def _look_for_goals(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, updated: set[int]) -> None:
    """Have an armature planned anew that, or whose goals, a view layer lacks or has again, and add it to `updated`."""
    own = registry.of(ob)
    view = None if own.rig is None else own.rig.views.get(Layer.of(depsgraph.view_layer))
    if view is not None and not view.plan.is_shown_alike(ob, Presence(depsgraph.view_layer, depsgraph)):
        own.is_stale = True
        updated.add(ob.session_uid)


@persistent
def _depsgraph_update_post(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    hooks.put_back()
    if registry.is_paused:
        return
    if registry.is_changing:  # another add-on updates the depsgraph while the frame changes, which takes the tags
        registry.is_edited |= are_related_anew(depsgraph) or depsgraph.id_type_updated("ARMATURE")
        return
    is_related = are_related_anew(depsgraph)
    if is_related:
        registry.forget_deleted()
    originals = [update.id.original for update in depsgraph.updates]
    updated = {original.session_uid for original in originals}
    for original in originals:
        if isinstance(original, bpy.types.Object) and original.type == "ARMATURE":
            own = registry.armatures.get(original.session_uid)
            if own is not None and own.state is State.FAILED:
                own.state = State.UNKNOWN
            if own is None and original.pose is not None and object_of(original).live:
                registry.live.clear()  # appended or duplicated
    renames.follow(original for original in originals if isinstance(original, bpy.types.Armature))
    armatures = unpaused(scene, count=is_related)
    for ob in registry.objects():
        guarded(_take_edits_of_others, ob, depsgraph, originals, updated)
    for ob in armatures:
        if is_related:
            guarded(_look_for_goals, ob, depsgraph, updated)
        guarded(_take_edits, ob, depsgraph, updated)
    registry.undone.clear()

    if all(
        (rig := registry.of(ob).rig) is not None
        and not registry.of(ob).is_stale
        and updated.isdisjoint(rig.plan.inputs)
        for ob in armatures
    ):
        return

    def step(ob: bpy.types.Object, rig: Rig) -> bool:
        updated.add(ob.session_uid)  # for armatures whose targets are attached to this one
        return solve_still(ob, rig, depsgraph)

    def is_concerned(rig: Rig) -> bool:
        return not updated.isdisjoint(rig.plan.inputs)

    in_dependency_order(scene, depsgraph, step, Presence(depsgraph.view_layer), is_concerned)


def _take_edits_of_others(
    ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, originals: Sequence[bpy.types.ID], updated: set[int]
) -> None:
    """Add an armature to what is updated if its goals, or what carries them, were edited or have other settings now."""
    own = registry.of(ob)
    if own.rig is None:
        return
    if own.rig.plan.is_outdated(originals):
        updated.add(ob.session_uid)
        own.is_stale = True
    elif own.rig.plan.watch and Layer.of(depsgraph.view_layer) in own.rig.views and not own.rig.plan.fits(depsgraph):
        updated.add(ob.session_uid)


def _take_edits(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, updated: set[int]) -> None:
    own, layer = registry.of(ob), Layer.of(depsgraph.view_layer)
    if own.rig is not None and layer in own.rig.views and own.rig.plan.skeleton.matches(ob):
        own.rig.catch_up(ob, depsgraph)
    if updated.isdisjoint(made_of(ob)):
        return
    if layer in own.owed:
        own.owed.discard(layer)
    else:
        take_edits(ob, depsgraph, updated, in_actions=depsgraph.id_type_updated("ACTION"))


@persistent
def _after_undo(_file: object, _unused: object = None) -> None:
    """Forget everything after undo and redo: what is kept belongs to data that is gone."""
    hooks.put_back()
    clear()
    fk_keys.put_again()
    for ob in live_armatures(bpy.context.scene):
        registry.undone[ob.session_uid] = channels.read(ob, np.arange(len(ob.pose.bones)))


@persistent
def _after_load(_file: object, _unused: object = None) -> None:
    """Solve after loading: Blender evaluates animated channels when it opens a file, and calls no other handler."""
    hooks.put_back()
    clear()
    renames.clear()
    fk_keys.forget()
    scene = bpy.context.scene
    if live_armatures(scene):
        depsgraph = bpy.context.evaluated_depsgraph_get()
        step = partial(solve_still, depsgraph=depsgraph)
        in_dependency_order(scene, depsgraph, step, Presence(depsgraph.view_layer))


@persistent
def _before_playing(_scene: object, _unused: object = None) -> None:
    """Miss no frame of a playback or render that begins."""
    hooks.put_back()


def _missed() -> None:
    """Forget what is known: frames, edits and moved goals may have been missed. Catch up once Blender allows it."""
    clear()
    if not bpy.app.timers.is_registered(_catch_up):
        bpy.app.timers.register(_catch_up)


def _catch_up() -> None:
    """Put back what was pasted over, and solve."""
    stamps.after_undo(None)
    for ob in live_armatures(bpy.context.scene):
        compat.tag(ob)


HANDLERS = (
    ("frame_change_pre", _frame_change_pre),
    ("frame_change_post", _frame_change_post),
    ("frame_change_post", stamps.learn),
    ("depsgraph_update_post", stamps.after_update),
    ("depsgraph_update_post", _depsgraph_update_post),
    ("depsgraph_update_post", stamps.learn),
    ("undo_post", stamps.after_undo),
    ("undo_post", _after_undo),
    ("redo_post", stamps.after_undo),
    ("redo_post", _after_undo),
    ("load_post", stamps.after_load),
    ("load_post", _after_load),
    ("animation_playback_pre", _before_playing),
    ("render_init", _before_playing),
)
LISTENERS = ((hooks.on_put_back, _missed),)


def unregister() -> None:
    """Forget everything."""
    if bpy.app.timers.is_registered(_catch_up):
        bpy.app.timers.unregister(_catch_up)
    clear()
