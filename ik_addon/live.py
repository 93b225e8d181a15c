"""The handlers: they decide what to solve and when. How is in `rig/`.

A frame change restores the base before Blender evaluates the frame and solves after it; a moved target or bone is
solved after the update that it caused. The pose is a pure function of the frame, see docs/architecture.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import bpy
from bpy.app.handlers import persistent

from . import reports
from .rig import base, chain
from .rig.rig import Rig
from .settings import chain_of, object_of

log = logging.getLogger(__name__)


@dataclass
class _State:
    rigs: dict[int, Rig] = field(default_factory=dict)
    """By `session_uid` of the armature object."""
    stale: set[int] = field(default_factory=set)
    """Rigs whose settings or bones changed."""
    failed: set[int] = field(default_factory=set)
    """Rigs that raised an error nobody expected: left alone until something on them changes."""
    live: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    """`session_uid` and name of the live armatures, by `session_uid` of the scene."""
    objects: int = 0
    """How many objects the view layer had: the sign of a deleted target."""
    paused: int = 0


_state = _State()


def clear() -> None:
    """Forget everything that is known of the scene, after which it is read anew."""
    global _state
    _state = _State(paused=_state.paused)
    reports.clear()


@contextmanager
def paused() -> Iterator[None]:
    """Keep the handlers from solving while the caller steps through frames or writes poses."""
    _state.paused += 1
    try:
        yield
    finally:
        _state.paused -= 1


def live_armatures(scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """The armature objects of a scene that are solved live."""
    for _ in range(2):
        known = _state.live.get(scene.session_uid)
        if known is None:
            found = [ob for ob in scene.objects if ob.type == "ARMATURE" and object_of(ob).live]
            _state.live[scene.session_uid] = [(ob.session_uid, ob.name) for ob in found]
            return found
        objects = [ob for uid, name in known if (ob := scene.objects.get(name)) and ob.session_uid == uid]
        if len(objects) == len(known):
            return objects
        del _state.live[scene.session_uid]  # renamed or deleted
    raise AssertionError("unreachable: the second pass reads the scene anew")


# ---- what the settings call


def settings_changed(ob: bpy.types.Object) -> None:
    """A chain of this armature was added, removed, switched or given another goal."""
    _state.stale.add(ob.session_uid)
    _state.failed.discard(ob.session_uid)
    if object_of(ob).live:
        ob.update_tag()
    else:
        _release_unused(ob)


def live_switched(ob: bpy.types.Object) -> None:
    """Live was switched on or off for this armature."""
    _state.live.clear()
    _state.failed.discard(ob.session_uid)
    _state.rigs.pop(ob.session_uid, None)
    if object_of(ob).live:
        ob.update_tag()
    else:
        base.release(ob, base.stored_bones(ob))
        reports.clear(ob)


def _release_unused(ob: bpy.types.Object) -> None:
    index = {bone.name: i for i, bone in enumerate(ob.pose.bones)}
    used = {index[b.name] for tip in chain.tips(ob) if chain_of(tip).enabled for b in chain.chain_bones(tip)}
    base.release(ob, set(base.stored_bones(ob)) - used)


# ---- solving


def solve_now(
    ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, only: Collection[str] | None = None
) -> list[reports.Report]:
    """Solve chains of an armature on the present frame, whether it is live or not, and report on each.

    Args:
        ob: the armature object.
        depsgraph: evaluated at the present frame.
        only: tip bones of the chains to solve; None: all enabled ones.
    """
    live = object_of(ob).live
    rig = _rig(ob, depsgraph.view_layer) if live else Rig(ob, depsgraph.view_layer, only)
    rig.absorb_edits(ob)
    _solve_again(ob, rig, depsgraph)
    if not live:
        base.note_written(ob, rig.plan.live, rig.written)
    tips = [plan.tip for plan in rig.plan.chains] + list(rig.plan.faults)
    return [report for tip in tips if (report := reports.get(ob, tip)) is not None]


def _rig(ob: bpy.types.Object, view_layer: bpy.types.ViewLayer) -> Rig:
    uid = ob.session_uid
    rig = _state.rigs.get(uid)
    if rig is None:
        rig = Rig(ob, view_layer)
    elif uid in _state.stale:
        rig = rig.planned_anew(ob, view_layer)
    _state.stale.discard(uid)
    _state.rigs[uid] = rig
    return rig


def _before_frame(ob: bpy.types.Object) -> None:
    rig = _state.rigs.get(ob.session_uid)
    if rig is None:
        base.restore(ob, base.stored_bones(ob))  # it is planned after the frame, when the view layer is up to date
    else:
        rig.absorb_edits(ob)
        rig.restore_base(ob)


def _after_frame(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> None:
    rig = _rig(ob, depsgraph.view_layer)
    frame = rig.read_fk(ob, depsgraph)
    posed = rig.solve(ob, frame)
    rig.write(ob, posed)
    reports.update(ob, rig.plan, frame, posed)


def _solve_again(ob: bpy.types.Object, rig: Rig, depsgraph: bpy.types.Depsgraph) -> None:
    with paused():  # finding out the FK pose may update the depsgraph
        frame = rig.read_known_fk(ob, depsgraph)
    posed = rig.solve(ob, frame)
    rig.write(ob, posed)
    reports.update(ob, rig.plan, frame, posed)


def _after_update(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, updated: set[int]) -> None:
    rig = _rig(ob, depsgraph.view_layer)
    if updated.isdisjoint(rig.plan.inputs):
        return
    rig.absorb_edits(ob)
    if ob.session_uid in updated or ob.data.session_uid in updated:
        _state.stale.add(ob.session_uid)
        rig = _rig(ob, depsgraph.view_layer)
    _solve_again(ob, rig, depsgraph)


def _for_live_armatures(scene: bpy.types.Scene, step: Callable[[bpy.types.Object], None]) -> None:
    if _state.paused:
        return
    for ob in live_armatures(scene):
        if ob.session_uid in _state.failed or ob.mode == "EDIT":
            continue
        try:
            step(ob)
        except Exception as error:
            # Once in the console, and in the panel for as long as it stands; never once a frame.
            _state.failed.add(ob.session_uid)
            log.exception("IK of '%s' is off until a setting of it changes", ob.name)
            reports.fail(ob, [tip.name for tip in chain.tips(ob)], f"Internal error ({error}); see the console")


# ---- handlers


@persistent
def _frame_change_pre(scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph | None) -> None:
    _for_live_armatures(scene, _before_frame)


@persistent
def _frame_change_post(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    _for_live_armatures(scene, lambda ob: _after_frame(ob, depsgraph))


@persistent
def _depsgraph_update_post(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    if _state.paused:
        return
    updated = set()
    for update in depsgraph.updates:
        original = update.id.original
        updated.add(original.session_uid)
        if isinstance(original, bpy.types.Object) and original.type == "ARMATURE":
            _state.failed.discard(original.session_uid)
            if original.session_uid not in _state.rigs and object_of(original).live:
                _state.live.clear()  # appended or duplicated
    count = len(depsgraph.view_layer.objects)
    if count != _state.objects:
        _state.objects = count
        _state.stale.update(_state.rigs)
        updated.update(_state.rigs)
    _for_live_armatures(scene, lambda ob: _after_update(ob, depsgraph, updated))


@persistent
def _forget_everything(_file: object, _unused: object = None) -> None:
    """After undo, redo and loading: whatever is kept belongs to data that is gone."""
    clear()


@persistent
def _after_load(_file: object, _unused: object = None) -> None:
    """Blender evaluates animated channels anew when it opens a file, and calls no other handler then."""
    clear()
    scene = bpy.context.scene
    if live_armatures(scene):
        depsgraph = bpy.context.evaluated_depsgraph_get()
        _for_live_armatures(scene, lambda ob: _solve_again(ob, _rig(ob, depsgraph.view_layer), depsgraph))


_HANDLERS = (
    ("frame_change_pre", _frame_change_pre),
    ("frame_change_post", _frame_change_post),
    ("depsgraph_update_post", _depsgraph_update_post),
    ("undo_post", _forget_everything),
    ("redo_post", _forget_everything),
    ("load_post", _after_load),
)


def register() -> None:
    """Add the handlers."""
    clear()
    for name, handler in _HANDLERS:
        getattr(bpy.app.handlers, name).append(handler)


def unregister() -> None:
    """Remove the handlers."""
    for name, handler in reversed(_HANDLERS):
        getattr(bpy.app.handlers, name).remove(handler)
    clear()
