"""The handlers decide what to solve and when; `rig/` knows how.

A frame is read and solved once Blender has evaluated it, a moved target or bone after the update that it caused. The
pose is a pure function of the frame. `State` lists what the channels may hold; docs/live.md has the table.
"""

from collections.abc import Callable, Collection
from functools import partial

import bpy
import numpy as np
from bpy.app.handlers import persistent
from bpy.types import Armature, Depsgraph, Object, Scene

from ..core import chain_settings, channels, compat, fk_keys, fk_store, hooks, settings, stamps
from ..core.settings import LAYOUT, chain_of, object_of
from ..rig.plan import chain
from ..rig.plan.presence import Layer, Presence, are_related_anew
from ..rig.read import fcurves
from ..rig.read.sample import own_transforms
from . import renames, reports
from .registry import clear, live_armatures, paused, registry, unpaused
from .rig import Rig, State, moment_of
from .solving import evaluate_moved, guarded, guarded_rig, in_dependency_order, owe, rig_of, solve_frame, solve_still

on_edit: list[Callable[[Object, Rig, Depsgraph], set[int]]] = []
"""Called when bones may have been moved on a still frame, before that becomes FK; returns `session_uid` of goals that
followed, see `targets.edits`."""


# ---- when a frame changes


@persistent
def _frame_change_pre(scene: Scene, _depsgraph: Depsgraph | None) -> None:
    # Blender calls this once for each view layer, without saying for which.
    hooks.put_back()
    hooks.keep_last("frame_change_post")
    if registry.is_paused:
        return
    registry.is_changing = True
    graphs = _graphs(scene)
    is_tagged = not graphs or any(map(_is_tagged, graphs))
    # Objects that share an older armature's data and are new are found after the frame.
    for ob in unpaused(scene):
        guarded_rig(_before_frame, ob, scene, graphs, is_tagged)


def _is_tagged(depsgraph: Depsgraph) -> bool:
    """Whether anything that a plan may be made from was edited since a depsgraph was evaluated."""
    tagged = depsgraph.id_type_updated
    return tagged("OBJECT") or tagged("ARMATURE") or tagged("ACTION") or tagged("SCENE")


def _before_frame(ob: Object, rig: Rig, scene: Scene, graphs: list[Depsgraph], is_tagged: bool) -> None:
    """Before Blender evaluates a frame, take edits, and write the solution of the frame if it is foretold.

    If a script has edited something (`is_tagged`), no update handler hears of it.
    """
    now = scene.session_uid, scene.frame_current_final
    # While a window plays, nobody edits anything between two frames.
    is_edited = is_tagged and not getattr(bpy.context.screen, "is_animation_playing", False)
    if (is_edited or rig.is_stale) and not rig.plan.skeleton.matches(ob):
        rig.is_stale = True
        return
    if is_edited:
        rig.is_stale |= not rig.plan.is_as_made_from(rig.plan.origins)
    shown = rig.bones.written
    # The shown view layer may come before another one that solves: the originals then have the animation of this frame.
    is_animated = rig.at not in {None, now} and registry.flushed == now
    if not is_animated and (is_tagged or rig.is_still or hooks.others_handle_frames()):
        rig.absorb_edits(ob, graphs)
    if rig.is_still:  # a script may have keyed the solution without an update in between
        rig.key_fk(ob, shown)
    rig.is_still = rig.is_read = False
    rig.foretold = None
    rig.originals = own_transforms(rig.plan) if hooks.others_follow_frames() else None
    if is_tagged:
        rig.doubt(scene.frame_current_final)
    if not rig.is_stale:
        rig.put_early(ob, scene.frame_current_final, graphs)


def _graphs(scene: Scene) -> list[Depsgraph]:
    return [layer.depsgraph for layer in scene.view_layers if layer.depsgraph is not None]


def _in_step(depsgraph: Depsgraph) -> Presence | None:
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
def _frame_change_post(scene: Scene, depsgraph: Depsgraph) -> None:
    graphs = _graphs(scene)
    for ob in registry.objects():  # first: what is put back forgets the rigs
        guarded_rig(lambda ob, rig: rig.unmute(ob, graphs), ob)
    hooks.put_back()
    registry.is_changing = False
    if registry.is_paused:
        return
    is_related, is_shown = are_related_anew(depsgraph) or registry.is_edited, depsgraph.mode == "VIEWPORT"
    registry.is_edited = False
    if is_related and is_shown:
        registry.forget_deleted()
    armatures = unpaused(scene)
    if not armatures:
        return
    in_step = _in_step(depsgraph)
    edited: list[Armature] = []
    if is_shown and depsgraph.id_type_updated("ARMATURE"):  # animation tags its own on each frame
        originals = [update.id.original for update in depsgraph.updates]
        edited = [own for own in originals if isinstance(own, Armature) and next(compat.animating(own), None) is None]
    if edited or (is_related and is_shown):  # a script edited something
        renames.follow(edited)
        for ob in armatures:
            guarded_rig(_look_again, ob, depsgraph, is_related and in_step is not None)
    if hooks.others_follow_frames():
        evaluate_moved(armatures, depsgraph, in_step)

    def step(ob: Object, rig: Rig) -> bool:
        is_written = solve_frame(ob, rig, depsgraph, in_step)
        rig.foretell(ob, scene.frame_current_final)
        return is_written

    in_dependency_order(depsgraph, step, in_step, is_still=False)
    for ob in armatures:
        guarded_rig(_stand_by, ob, depsgraph)


def _look_again(ob: Object, rig: Rig, depsgraph: Depsgraph, is_related: bool) -> None:
    """Have an armature planned anew that a script edited, without an update that other handlers hear of."""
    rig.is_stale |= not rig.plan.is_as_made_from(rig.plan.origins)
    if is_related:
        _look_for_goals(ob, rig, depsgraph, set())


def _stand_by(ob: Object, rig: Rig, depsgraph: Depsgraph) -> None:
    """Leave a frame to the view layer that has the armature and all goals, and show its solution, if it has one."""
    if rig.plan.is_elsewhere:
        if rig.known is not None and rig.at == moment_of(depsgraph) and Presence(depsgraph.view_layer).has(ob):
            rig.put(ob, rig.known.channels, channels.read(ob.evaluated_get(depsgraph), rig.plan.live))
        owe(ob, depsgraph)


# ---- when anything is edited


def _look_for_goals(ob: Object, rig: Rig, depsgraph: Depsgraph, updated: set[int]) -> None:
    """Have an armature planned anew that, or whose goals, a view layer lacks or has again, and add it to `updated`."""
    view = rig.views.get(Layer.of(depsgraph.view_layer))
    if view is not None and not view.plan.is_shown_alike(ob, Presence(depsgraph.view_layer, depsgraph)):
        rig.is_stale = True
        updated.add(ob.session_uid)


@persistent
def _depsgraph_update_post(scene: Scene, depsgraph: Depsgraph) -> None:
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
    for own in (registry.armatures[uid] for uid in updated & registry.armatures.keys()):
        if own.state is State.FAILED:
            own.state = State.UNKNOWN
    renames.follow(original for original in originals if isinstance(original, Armature))
    armatures = unpaused(scene)
    for ob in registry.objects():
        guarded_rig(_take_edits_of_others, ob, depsgraph, updated)
    for ob in armatures:
        if is_related:
            guarded_rig(_look_for_goals, ob, depsgraph, updated)
        guarded(_take_edits, ob, depsgraph, updated)
    registry.undone.clear()

    rigs = [registry.of(ob).rig for ob in armatures]
    if all(rig is not None and not rig.is_stale and updated.isdisjoint(rig.plan.inputs) for rig in rigs):
        return

    def step(ob: Object, rig: Rig) -> bool:
        if updated.isdisjoint(rig.plan.inputs):
            return False
        updated.add(ob.session_uid)  # for armatures whose targets are attached to this one
        return solve_still(ob, rig, depsgraph)

    in_dependency_order(depsgraph, step, Presence(depsgraph.view_layer))


def _take_edits_of_others(ob: Object, rig: Rig, depsgraph: Depsgraph, updated: set[int]) -> None:
    """Add an armature to what is updated if its goals, or what carries them, were edited or have other settings now."""
    view = rig.views.get(Layer.of(depsgraph.view_layer))
    if not rig.plan.is_as_made_from(updated - {ob.session_uid}):
        updated.add(ob.session_uid)
        rig.is_stale = True
    elif view is not None and view.find(depsgraph) is not view.plan:
        updated.add(ob.session_uid)


def _take_edits(ob: Object, depsgraph: Depsgraph, updated: set[int]) -> None:
    """Take a user's edits to the armature: bones that were moved, keys, or changes to what is solved.

    If actions were edited, keys may be new, and F-curves may be gone, which tags the action alone, as when a bone is
    renamed in another armature that shares it. Goals that followed an edit are added to `updated`.
    """
    own, layer = registry.of(ob), Layer.of(depsgraph.view_layer)
    if own.rig is not None and layer in own.rig.views and own.rig.plan.skeleton.matches(ob):
        own.rig.catch_up(ob, depsgraph)
    data = ob.animation_data
    users = () if data is None else (data, *compat.strips_of(data.nla_tracks))
    actions = {user.action.session_uid for user in users if user.action is not None}
    if updated.isdisjoint({ob.session_uid, ob.data.session_uid, *actions}):
        return
    if layer in own.owed:
        own.owed.discard(layer)
        return
    if own.rig is None and ob.session_uid in registry.undone:
        _recover(ob, depsgraph, registry.undone[ob.session_uid])
    if (rig := own.rig) is None:
        return
    if not rig.plan.skeleton.matches(ob):
        rig.is_stale = True
        return
    rig.is_still, in_actions = True, depsgraph.id_type_updated("ACTION")
    shown = channels.read(ob, rig.plan.live)
    if rig.bones.fk is not None and rig.at == moment_of(depsgraph):
        for follow in on_edit:
            updated |= follow(ob, rig, depsgraph)
    rig.absorb_edits(ob)
    if in_actions and rig.key_fk(ob, shown):
        with paused():
            compat.update_in_handler(depsgraph)
    is_current = rig.plan.is_as_made_from({ob.session_uid})
    animated = rig.bones.animated
    rig.is_stale |= not is_current or (in_actions and (fcurves.animated(ob, rig.plan.live) != animated).any())


def _recover(ob: Object, depsgraph: Depsgraph, undone: channels.Row) -> None:
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


# ---- when data is exchanged


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
    for ob in bpy.data.objects:
        with hooks.apart(ob.name):
            renames.remember(ob)
    if live_armatures(bpy.context.scene):
        depsgraph = bpy.context.evaluated_depsgraph_get()
        in_dependency_order(depsgraph, partial(solve_still, depsgraph=depsgraph), Presence(depsgraph.view_layer))


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


# ---- when settings change


def settings_changed(ob: Object) -> None:
    """Plan again: a chain of this armature was added, removed, switched or given another goal."""
    if ob.library is None and object_of(ob).layout < LAYOUT:  # else a newer version stores its settings
        object_of(ob).layout = LAYOUT
    own = registry.of(ob)
    if own.rig is not None:
        own.rig.is_stale = True
    own.failed.clear()
    if own.state is State.FAILED:
        own.state = State.UNKNOWN
    if ob.session_uid in registry.paused:
        return  # the caller that paused it makes more changes, and calls this afterwards
    renames.remember(ob)
    if object_of(ob).live:
        compat.tag(ob)
    elif ob.is_editable and (stored := fk_store.stored_bones(ob)):  # bones that no chain poses any more are released
        used = {bone.name for tip in chain.tips(ob) if chain_of(tip).enabled for bone in chain.posed_bones(tip)}
        _give_back(ob, [bone for bone in stored if ob.pose.bones[bone].name not in used])


def _live_switched(ob: Object) -> None:
    """Start solving live, or restore the FK pose: Live was switched on or off for this armature."""
    registry.live.clear()
    rig = registry.of(ob).rig
    registry.armatures.pop(ob.session_uid)
    if object_of(ob).live:
        compat.tag(ob)
    elif ob.is_editable:  # a non-editable override keeps what its library had solved; that is dropped as well
        if rig is not None and rig.plan.skeleton.matches(ob):
            rig.bones.release(ob, rig.plan.live.tolist())
        _give_back(ob, fk_store.stored_bones(ob))
    if not object_of(ob).live:
        reports.clear(ob)


def _give_back(ob: Object, stored: Collection[int]) -> None:
    """Put bones back into their stored FK pose and forget it, except where they moved since the last solution."""
    bones = np.array(sorted(stored), dtype=np.int64)
    channels.write(ob, bones, fk_store.held(ob, bones, fcurves.animated(ob, bones)))
    fk_store.forget(ob, bones.tolist())


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
    ("animation_playback_pre", hooks.put_back),  # misses no frame
    ("render_init", hooks.put_back),
)
LISTENERS = (
    (chain_settings.on_chain_changed, settings_changed),
    (settings.on_live_switched, _live_switched),
    (hooks.on_put_back, _missed),
)


def unregister() -> None:
    """Forget everything."""
    if bpy.app.timers.is_registered(_catch_up):
        bpy.app.timers.unregister(_catch_up)
    clear()
