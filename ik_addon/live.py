"""The handlers: they decide what to solve and when. How is in `rig/`.

A frame change restores the base before Blender evaluates the frame and solves after it; a moved target or bone is
solved after the update that it caused. The pose is a pure function of the frame, see docs/architecture.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import bpy
import numpy as np
from bpy.app.handlers import persistent

from . import compat, renames, reports, settings, versions
from .rig import base, chain, channels, curves
from .rig.carrier import in_order
from .rig.plan import in_a_circle
from .rig.pose import Moves
from .rig.read import Sample, take_animated
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
    all_objects: int = 0
    """How many objects the file had: the sign of a live armature that was appended or copied."""
    objects: int = 0
    """How many objects the view layer had: the sign of a deleted target."""
    is_between: bool = False
    """A frame change has begun and is not solved yet: the channels hold the base, and what is known is of before."""
    paused: int = 0
    paused_rigs: list[int] = field(default_factory=list)


_state = _State()


def clear() -> None:
    """Forget everything that is known of the scene, after which it is read anew."""
    global _state
    _state = _State(paused=_state.paused, paused_rigs=_state.paused_rigs)
    reports.clear()


@contextmanager
def paused(ob: bpy.types.Object | None = None) -> Iterator[None]:
    """Keep the handlers from solving one armature, or all, while the caller steps through frames or writes poses."""
    if ob is None:
        _state.paused += 1
    else:
        _state.paused_rigs.append(ob.session_uid)
    uid = None if ob is None else ob.session_uid
    try:
        yield
    finally:
        if uid is None:
            _state.paused -= 1
        else:
            _state.paused_rigs.remove(uid)


def snapshot(ob: bpy.types.Object) -> Rig | None:
    """What is known of an armature at this moment."""
    rig = _state.rigs.get(ob.session_uid)
    return None if rig is None else rig.copy()


def put_back(ob: bpy.types.Object, rig: Rig | None) -> None:
    """Go back to a `snapshot` of an armature: frame, channels, bases and settings are as they were then."""
    _state.rigs.pop(ob.session_uid, None)
    if rig is not None:
        _state.rigs[ob.session_uid] = rig
        _state.stale.add(ob.session_uid)


def live_armatures(scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """The armature objects of a scene that are solved live."""
    count = len(bpy.data.objects)
    if count != _state.all_objects:
        _state.all_objects = count
        _state.live.clear()
        versions.bring_up_all()
    known = _state.live.get(scene.session_uid)
    if known is not None:
        found: list[bpy.types.Object] = []
        for uid, name in known:
            ob: bpy.types.Object | None = scene.objects.get(name)
            if ob is None or ob.session_uid != uid:
                break  # it was renamed or deleted
            found.append(ob)
        else:
            return found
    objects = [ob for ob in scene.objects if ob.type == "ARMATURE" and object_of(ob).live]
    _state.live[scene.session_uid] = [(ob.session_uid, ob.name) for ob in objects]
    return objects


def is_solved(scene: bpy.types.Scene) -> bool:
    """Whether the handlers solve any chain when the frame of a scene changes."""
    armatures = () if _state.paused else live_armatures(scene)
    return any(
        chain_of(tip).enabled for ob in armatures if ob.session_uid not in _state.paused_rigs for tip in chain.tips(ob)
    )


# ---- what the settings call


def settings_changed(ob: bpy.types.Object) -> None:
    """A chain of this armature was added, removed, switched or given another goal."""
    versions.bring_up(ob)
    _state.stale.add(ob.session_uid)
    _state.failed.discard(ob.session_uid)
    if ob.session_uid in _state.paused_rigs:
        return  # whoever paused it changes more, and calls this afterwards
    if object_of(ob).live:
        ob.update_tag()
    else:
        _release_unused(ob)


def number_changed(ob: bpy.types.Object) -> None:
    """A number that is read on each frame was set."""
    rig = _state.rigs.get(ob.session_uid)
    if rig is not None:
        rig.stop_following()


def live_switched(ob: bpy.types.Object) -> None:
    """Live was switched on or off for this armature."""
    _state.live.clear()
    _state.failed.discard(ob.session_uid)
    rig = _state.rigs.pop(ob.session_uid, None)
    if object_of(ob).live:
        ob.update_tag()
    else:
        if rig is not None and rig.plan.skeleton.matches(ob):
            rig.release(ob, rig.plan.live.tolist())
        _give_back(ob, base.stored_bones(ob))
        reports.clear(ob)


def _release_unused(ob: bpy.types.Object) -> None:
    """Give back the FK pose of bones that no chain poses any more, as far as the solution still stands in them."""
    stored = base.stored_bones(ob)
    if not stored:
        return
    index = {bone.name: i for i, bone in enumerate(ob.pose.bones)}
    used = {index[b.name] for tip in chain.tips(ob) if chain_of(tip).enabled for b in chain.chain_bones(tip)}
    _give_back(ob, set(stored) - used)


def _give_back(ob: bpy.types.Object, stored: Collection[int]) -> None:
    """Put bones back into their base and forget it, but for what moved since the solution was written over it."""
    bones = np.array(sorted(stored), dtype=np.int64)
    channels.write(ob, bones, base.held(ob, bones, curves.animated(ob, bones)))
    base.forget(ob, bones.tolist())


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
    versions.bring_up(ob)
    live = object_of(ob).live
    rig = _rig(ob, depsgraph.view_layer) if live else Rig(ob, depsgraph.view_layer, only)
    rig.absorb_edits(ob)
    _solve_again(ob, rig, depsgraph, {})
    if not live and rig.fk is not None:
        solved = (rig.written != rig.fk[0]).any(axis=1)
        base.note_written(ob, rig.plan.live[solved], rig.written[solved])
        base.forget(ob, rig.plan.live[~solved].tolist())  # there is nothing to go back to
    tips = [plan.tip for plan in rig.plan.chains] + list(rig.plan.faults)
    return [report for tip in tips if (report := reports.get(ob, tip)) is not None]


def _rig(ob: bpy.types.Object, view_layer: bpy.types.ViewLayer) -> Rig:
    """What is known of a live armature, planned anew where its bones or settings changed."""
    uid = ob.session_uid
    rig = _state.rigs.get(uid)
    others = (other for known, other in _state.rigs.items() if known != uid)
    followed = {carrier.bone for other in others for carrier in other.plan.carriers if carrier.armature == uid}
    if rig is None:
        rig = Rig(ob, view_layer, followed=followed)
        rig.begin(ob, view_layer.id_data.frame_current_final)
    elif uid in _state.stale or not followed.issubset(rig.plan.skeleton.names[bone] for bone in rig.plan.followed):
        rig = rig.planned_anew(ob, view_layer, followed)
    if rig.plan.carriers and rig is not _state.rigs.get(uid):
        renames.remember(ob)
    _state.stale.discard(uid)
    _state.rigs[uid] = rig
    return rig


def _before_frame(
    ob: bpy.types.Object, scene: bpy.types.Scene, evaluated: Callable[[], Sequence[bpy.types.Depsgraph]]
) -> None:
    rig = _state.rigs.get(ob.session_uid)
    if rig is not None and rig.follows and ob.session_uid not in _state.stale:
        rig.is_put_back = False
        rig.lead(ob, scene.frame_current_final)
    elif rig is None or not rig.plan.skeleton.matches(ob):
        # It is planned after the frame, when the view layer is up to date.
        _state.stale.add(ob.session_uid)
        base.restore(ob, base.stored_bones(ob))
        if rig is not None:
            rig.is_put_back = True
    else:
        rig.absorb_edits(ob, evaluated())
        # Who plans it anew takes for the FK pose what was evaluated.
        rig.is_put_back = ob.session_uid in _state.stale or not rig.stands_alone(ob)
        if rig.is_put_back:
            rig.restore_base(ob, rig.written)


def _take_edits(ob: bpy.types.Object) -> None:
    """A user changed something on the armature: bones that were moved, or what is to be solved."""
    rig = _state.rigs.get(ob.session_uid)
    if rig is not None and rig.plan.skeleton.matches(ob):
        rig.absorb_edits(ob)
    _state.stale.add(ob.session_uid)


def _solve(ob: bpy.types.Object, rig: Rig, frame: Sample, moves: Moves) -> Moves:
    posed = rig.solve(ob, frame, moves)
    rig.write(ob, posed.channels[0])
    reports.update(ob, rig.plan, lambda _: (frame, posed))
    return posed.moves


def _solve_again(ob: bpy.types.Object, rig: Rig, depsgraph: bpy.types.Depsgraph, moves: Moves) -> Moves:
    return _solve(ob, rig, _read_again(ob, rig, depsgraph), moves)


def _read_again(ob: bpy.types.Object, rig: Rig, depsgraph: bpy.types.Depsgraph) -> Sample:
    with paused():  # finding out the FK pose may update the depsgraph
        return rig.read_known_fk(ob, depsgraph)


def _guarded(step: Callable[..., object], ob: bpy.types.Object, *arguments: object) -> None:
    if ob.session_uid in _state.failed or ob.mode == "EDIT":
        return
    try:
        step(ob, *arguments)
    except Exception as error:
        # Once in the console, and in the panel for as long as it stands; never once a frame.
        _state.failed.add(ob.session_uid)
        log.exception("IK of '%s' is off until a setting of it changes", ob.name)
        reports.fail(ob, [tip.name for tip in chain.tips(ob)], f"Internal error ({error}); see the console")


Step = Callable[[bpy.types.Object, Rig, Moves], Moves]
Read = Callable[[bpy.types.Object, Rig], Sample]


def _in_order(scene: bpy.types.Scene, view_layer: bpy.types.ViewLayer, step: Step, read: Read) -> None:
    """Take a step with each live armature, first with those whose bones carry targets of others.

    Those that follow each other in a circle are left in the FK pose that is read.
    """
    if _state.paused:
        return
    armatures = {ob.session_uid: ob for ob in live_armatures(scene) if ob.session_uid not in _state.paused_rigs}
    if not armatures:
        return
    for _ in range(2):  # the first plan of one tells which bones of another its targets hang on
        for ob in armatures.values():
            _guarded(_rig, ob, view_layer)
    plans = {uid: rig.plan for uid, rig in _state.rigs.items() if uid in armatures}
    needs = {uid: {c.armature for c in plan.carriers} - {uid} for uid, plan in plans.items()}
    ordered, mutual = in_order(armatures, needs)
    knotted = in_a_circle(plans) if mutual else set()
    circle = [uid for uid in mutual if uid in knotted]
    solved = [*ordered, *(uid for uid in mutual if uid not in circle)]
    moves: Moves = {}

    def solve(ob: bpy.types.Object) -> None:
        nonlocal moves
        moves = step(ob, _state.rigs[ob.session_uid], moves)

    # Armatures that need each other, by different chains, are solved until the last of these chains has what it needs.
    for _ in range(1 if len(solved) == len(ordered) else 1 + sum(len(plan.chains) for plan in plans.values())):
        before = moves
        for uid in solved:
            _guarded(solve, armatures[uid])
        if before.keys() == moves.keys() and all(np.array_equal(before[key], moves[key]) for key in moves):
            break
    names = " and ".join(f"'{armatures[uid].name}'" for uid in circle)

    def leave_in_fk(ob: bpy.types.Object) -> None:
        rig = _state.rigs[ob.session_uid]
        rig.write(ob, read(ob, rig).channels[0])
        message = f"The armatures {names} follow each other in a circle; give a chain of one another target"
        reports.fail(ob, [tip.name for tip in chain.tips(ob) if chain_of(tip).enabled], message)

    for uid in circle:
        _guarded(leave_in_fk, armatures[uid])


# ---- handlers


@persistent
def _frame_change_pre(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph | None) -> None:
    if _state.paused:
        return
    _state.is_between = True
    for ob in live_armatures(scene):
        if ob.session_uid not in _state.paused_rigs:
            _guarded(_before_frame, ob, scene, lambda: _evaluated(scene, depsgraph))


def _evaluated(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph | None) -> list[bpy.types.Depsgraph]:
    """Wherever a scene may be evaluated."""
    shown = (layer.depsgraph for layer in scene.view_layers)
    return [known for known in (depsgraph, *shown) if known is not None]


def _follow(ob: bpy.types.Object, rig: Rig, scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    following = rig.follow(ob, depsgraph)
    if following is not None:
        reports.update(ob, rig.plan, following.posed)
        return
    # Something changed since the last frame: go back to where that is looked for, and solve as on any other frame.
    edited = depsgraph.id_type_updated("ARMATURE")
    rig.is_put_back = True
    _before_frame(ob, scene, lambda: [] if edited else _evaluated(scene, depsgraph))
    changed = edited or depsgraph.id_type_updated("SCENE")
    if changed and depsgraph.mode == "VIEWPORT" and ob.session_uid not in _state.stale:
        # What is planned may be another thing by now; everything in a render is new.
        _state.stale.add(ob.session_uid)
        rig.restore_base(ob)
    if rig.is_put_back:
        with paused():
            rig.evaluate_base(ob, depsgraph)


@persistent
def _frame_change_post(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    _state.is_between = False
    if _state.paused:
        return
    rigs = [(ob, _state.rigs.get(ob.session_uid)) for ob in live_armatures(scene)]
    for ob, rig in rigs:
        if rig is not None and rig.follows and ob.session_uid not in _state.paused_rigs:
            _guarded(_follow, ob, rig, scene, depsgraph)
    if all(rig is not None and rig.follows for _, rig in rigs):
        return

    def step(ob: bpy.types.Object, rig: Rig, moves: Moves) -> Moves:
        if rig.follows:
            return moves
        frame = rig.read_fk(ob, depsgraph)
        if depsgraph.mode == "RENDER":
            take_animated(ob, depsgraph)
        rig.steady(ob, frame)
        moves = _solve(ob, rig, frame, moves)
        rig.begin_to_follow(ob, frame)
        return moves

    _in_order(scene, depsgraph.view_layer, step, lambda ob, rig: rig.read_fk(ob, depsgraph))


def _own(ob: bpy.types.Object) -> Iterator[int]:
    """`session_uid` of what an armature's pose is made of; where F-curves are removed Blender tags the action alone."""
    yield ob.session_uid
    yield ob.data.session_uid
    data: Any = ob.animation_data
    if data is not None:
        users = (data, *compat.strips_of(data))
        yield from (user.action.session_uid for user in users if user.action is not None)


@persistent
def _depsgraph_update_post(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    if _state.paused or _state.is_between:  # another add-on may update while the frame changes
        return
    if depsgraph.id_type_updated("SCENE"):  # relations may have changed, which is told to this handler alone
        for rig in _state.rigs.values():
            rig.stop_following()
    updated = set()
    renamed = []
    for update in depsgraph.updates:
        original = update.id.original
        updated.add(original.session_uid)
        if isinstance(original, bpy.types.Armature):
            renamed.append(original)
        if isinstance(original, bpy.types.Object) and original.type == "ARMATURE":
            _state.failed.discard(original.session_uid)
            if original.session_uid not in _state.rigs and object_of(original).live:
                _state.live.clear()  # appended or duplicated
    renames.follow(renamed)
    count = len(depsgraph.view_layer.objects)
    if count != _state.objects:
        _state.objects = count
        _state.stale.update(_state.rigs)
        updated.update(_state.rigs)
    # What stood in the way of a chain may be gone with a change of its target.
    _state.stale.update(uid for uid, rig in _state.rigs.items() if rig.plan.faults and updated & rig.plan.inputs)
    for ob in live_armatures(scene):
        if ob.session_uid not in _state.paused_rigs and not updated.isdisjoint(_own(ob)):
            _guarded(_take_edits, ob)

    def step(ob: bpy.types.Object, rig: Rig, moves: Moves) -> Moves:
        if updated.isdisjoint(rig.plan.inputs):
            return moves
        updated.add(ob.session_uid)  # for those whose targets hang on it
        return _solve_again(ob, rig, depsgraph, moves)

    _in_order(scene, depsgraph.view_layer, step, lambda ob, rig: _read_again(ob, rig, depsgraph))


@persistent
def _forget_everything(_file: object, _unused: object = None) -> None:
    """After undo, redo and loading: whatever is kept belongs to data that is gone."""
    clear()


@persistent
def _after_load(_file: object, _unused: object = None) -> None:
    """Blender evaluates animated channels anew when it opens a file, and calls no other handler then."""
    clear()
    renames.clear()
    scene = bpy.context.scene
    if live_armatures(scene):
        depsgraph = bpy.context.evaluated_depsgraph_get()
        _in_order(
            scene,
            depsgraph.view_layer,
            lambda ob, rig, moves: _solve_again(ob, rig, depsgraph, moves),
            lambda ob, rig: _read_again(ob, rig, depsgraph),
        )


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
    settings.on_chain_changed.append(settings_changed)
    settings.on_number_changed.append(number_changed)
    settings.on_live_switched.append(live_switched)
    for name, handler in _HANDLERS:
        getattr(bpy.app.handlers, name).append(handler)


def unregister() -> None:
    """Remove the handlers."""
    for name, handler in reversed(_HANDLERS):
        getattr(bpy.app.handlers, name).remove(handler)
    settings.on_live_switched.remove(live_switched)
    settings.on_number_changed.remove(number_changed)
    settings.on_chain_changed.remove(settings_changed)
    clear()
