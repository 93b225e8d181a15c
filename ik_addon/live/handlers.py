"""The handlers: they decide what to solve and when. How is in `rig/`.

A frame change puts the base back before Blender evaluates the frame and solves after it; a moved target or bone is
solved after the update that it caused. The pose is a pure function of the frame. What the channels hold meanwhile, in
each view layer, is one of the states of `live.state`; docs/architecture.md has the table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import bpy
import numpy as np
from bpy.app.handlers import persistent

from .. import compat
from ..data import fk_store, settings, versions
from ..data.settings import chain_of, object_of
from ..pose import channels
from ..rig.plan import chain
from ..rig.plan.attachments import in_order
from ..rig.plan.plan import Plan, in_a_circle
from ..rig.plan.presence import Layer, Presence, with_sets
from ..rig.plan.reference import Reference
from ..rig.read import fcurves
from ..rig.read.sample import Sample, sample, take_animated
from ..rig.write.waves import Moves, pose
from . import renames, reports
from .rig import Moment, Rig, moment_of
from .state import State

log = logging.getLogger(__name__)


@dataclass
class _Armature:
    """What is known of one armature object."""

    rig: Rig | None = None
    """Its states in the view layers, and all that is known with them."""
    state: State = State.UNKNOWN
    """What holds in every view layer where there is no rig: it is FAILED or READ_ONLY, or was not planned yet."""
    is_stale: bool = False
    """Its settings or bones changed."""
    aside: dict[str, str] = field(default_factory=dict)
    """Chains, by tip bone, that raised an error nobody expected, and that error; the others go on."""
    owed: set[Layer] = field(default_factory=set)
    """View layers that Blender will update only because the add-on wrote to the channels for another one."""


@dataclass
class _State:
    armatures: dict[int, _Armature] = field(default_factory=dict)
    """By `session_uid` of the object."""
    live: dict[int, list[Reference]] = field(default_factory=dict)
    """The live armatures, by `session_uid` of the scene."""
    all_objects: int = 0
    """How many objects the file had: the sign of a live armature that was appended or copied."""
    objects: dict[Layer, int] = field(default_factory=dict)
    """How many objects a view layer had: the sign of a deleted target."""
    changing: bool = False
    """A frame change has begun and is not solved yet."""
    flushed: Moment | None = None
    """The last frame whose evaluation Blender wrote back to the original objects."""
    paused: int = 0
    paused_rigs: list[int] = field(default_factory=list)

    def rigs(self) -> Iterator[tuple[int, Rig]]:
        for uid, own in self.armatures.items():
            if own.rig is not None:
                yield uid, own.rig

    def of(self, ob: bpy.types.Object) -> _Armature:
        uid = ob.session_uid
        own = self.armatures.get(uid)
        if own is None:
            own = self.armatures[uid] = _Armature()
        return own


_state = _State()


def clear() -> None:
    """Forget everything that is known of the scene, after which it is read anew."""
    global _state
    _state = _State(paused=_state.paused, paused_rigs=_state.paused_rigs)
    reports.clear()


def state_of(ob: bpy.types.Object, view_layer: bpy.types.ViewLayer) -> State:
    """What the channels of a live armature hold, as a view layer knows it."""
    own = _state.armatures.get(ob.session_uid, _Armature())
    if own.rig is None:
        return own.state
    view = own.rig.views.get(Layer.of(view_layer))
    return State.UNKNOWN if view is None else view.state


def foresees(ob: bpy.types.Object, frame: float) -> bool:
    """Whether a frame of a live armature is solved before it is played."""
    rig = _state.of(ob).rig
    return rig is not None and rig.view.following is not None and rig.view.following.foresees(frame)


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
    rig = _state.of(ob).rig
    return None if rig is None else rig.copy()


def put_back(ob: bpy.types.Object, rig: Rig | None) -> None:
    """Go back to a `snapshot` of an armature: frame, channels, bases and settings are as they were then."""
    own = _state.of(ob)
    own.rig, own.is_stale = rig, rig is not None


def live_armatures(scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """The armature objects of a scene, and of those shown behind it, that are solved live."""
    count = len(bpy.data.objects)
    if count != _state.all_objects:
        _state.all_objects = count
        _state.live.clear()
        versions.bring_up_all()
    known = _state.live.get(scene.session_uid)
    if known is not None:
        found: list[bpy.types.Object] = []
        for reference in known:
            ob = reference.find()
            if ob is None or ob.name != reference.name:
                break
            found.append(ob)
        else:
            return found
    objects = {
        ob.session_uid: ob
        for shown in with_sets(scene)
        for ob in shown.objects
        if ob.type == "ARMATURE" and ob.pose is not None and object_of(ob).live
    }
    _state.live[scene.session_uid] = [Reference.of(ob) for ob in objects.values()]
    return list(objects.values())


def is_solved(scene: bpy.types.Scene) -> bool:
    """Whether the handlers solve any chain when the frame of a scene changes."""
    return any(chain_of(tip).enabled for ob in _unpaused(scene) for tip in chain.tips(ob))


def _unpaused(scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """The live armatures that may be solved now."""
    armatures = () if _state.paused else live_armatures(scene)
    return [ob for ob in armatures if ob.session_uid not in _state.paused_rigs]


# ---- what the settings call


def settings_changed(ob: bpy.types.Object) -> None:
    """A chain of this armature was added, removed, switched or given another goal."""
    versions.bring_up(ob)
    own = _state.of(ob)
    own.is_stale = True
    own.aside.clear()
    if own.state is State.FAILED:
        own.state = State.UNKNOWN
    if ob.session_uid in _state.paused_rigs:
        return  # whoever paused it changes more, and calls this afterwards
    if object_of(ob).live:
        ob.update_tag()
    elif ob.is_editable:
        _release_unused(ob)


def number_changed(ob: bpy.types.Object) -> None:
    """A number that is read on each frame was set."""
    rig = _state.of(ob).rig
    if rig is not None:
        rig.stop_following()


def live_switched(ob: bpy.types.Object) -> None:
    """Live was switched on or off for this armature."""
    _state.live.clear()
    rig = _state.of(ob).rig
    _state.armatures.pop(ob.session_uid)
    if object_of(ob).live:
        ob.update_tag()
    elif ob.is_editable:  # an override that is not editable holds what its library had solved: that goes, too
        if rig is not None and rig.plan.skeleton.matches(ob):
            rig.release(ob, rig.plan.live.tolist())
        _give_back(ob, fk_store.stored_bones(ob))
    if not object_of(ob).live:
        reports.clear(ob)


def _release_unused(ob: bpy.types.Object) -> None:
    """Give back the FK pose of bones that no chain poses any more, as far as the solution still stands in them."""
    stored = fk_store.stored_bones(ob)
    if not stored:
        return
    index = {bone.name: i for i, bone in enumerate(ob.pose.bones)}
    used = {index[b.name] for tip in chain.tips(ob) if chain_of(tip).enabled for b in chain.chain_bones(tip)}
    _give_back(ob, set(stored) - used)


def _give_back(ob: bpy.types.Object, stored: Collection[int]) -> None:
    """Put bones back into their base and forget it, but for what moved since the solution was written over it."""
    bones = np.array(sorted(stored), dtype=np.int64)
    channels.write(ob, bones, fk_store.held(ob, bones, fcurves.animated(ob, bones)))
    fk_store.forget(ob, bones.tolist())


# ---- solving


def solve_now(
    ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, only: Collection[str] | None = None
) -> list[reports.Report]:
    """Solve chains of an armature on the current frame, whether it is live or not, and report on each.

    Args:
        ob: the armature object.
        depsgraph: evaluated at the current frame.
        only: tip bones of the chains to solve; None: all enabled ones.
    """
    obstacle = chain.why_closed(ob)
    if obstacle:
        reports.fail(ob, [tip.name for tip in chain.tips(ob)], obstacle)
        return _reports(ob, [tip.name for tip in chain.tips(ob) if only is None or tip.name in only])
    versions.bring_up(ob)
    live = object_of(ob).live
    if live:
        rig = _rig(ob, depsgraph)
    else:
        layer = Layer.of(depsgraph.view_layer)
        rig = Rig(ob, Plan.of(ob, depsgraph, only), layer)
    rig.absorb_edits(ob)
    _solve_again(ob, rig, depsgraph, {})
    if not live and rig.fk is not None:
        solved = (rig.written != rig.fk).any(axis=1)
        fk_store.note_written(ob, rig.plan.live[solved], rig.written[solved])
        fk_store.forget(ob, rig.plan.live[~solved].tolist())  # there is nothing to go back to
    return _reports(ob, [*(plan.tip for plan in rig.plan.chains), *rig.plan.faults])


def _reports(ob: bpy.types.Object, tips: Collection[str]) -> list[reports.Report]:
    return [report for tip in tips if (report := reports.get(ob, tip)) is not None]


def _rig(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> Rig:
    """What is known of a live armature, with its plan for the view layer and frame of a depsgraph.

    It is planned anew where its bones or settings changed.
    """
    uid, layer = ob.session_uid, Layer.of(depsgraph.view_layer)
    own = _state.of(ob)
    rig = own.rig
    others = (other.plan for known, other in _state.rigs() if known != uid)
    followed = {carrier.bone for plan in others for carrier in plan.carriers if carrier.armature == uid}
    view = None if rig is None or own.is_stale else rig.views.get(layer)
    plan = None if view is None else view.find(depsgraph)
    if plan is None or not followed.issubset(plan.skeleton.names[bone] for bone in plan.followed):
        plan = Plan.of(ob, depsgraph, followed=followed, aside=own.aside)
        if plan.carriers:
            renames.remember(ob)
    if rig is None:
        rig = Rig(ob, plan, layer)
        rig.begin(ob, depsgraph.scene.frame_current_final)
        if own.state is State.AT_BASE:
            rig.enter(State.AT_BASE)
        own.state = State.UNKNOWN
    elif own.is_stale or plan.skeleton.names != rig.plan.skeleton.names or not np.array_equal(plan.live, rig.plan.live):
        rig = rig.planned_anew(ob, plan, layer)
    else:
        rig.turn_to(layer, plan)
    rig.view.take(plan)
    own.rig, own.is_stale = rig, False
    return rig


def _put_base_back(ob: bpy.types.Object, evaluated: Callable[[], Sequence[bpy.types.Depsgraph]]) -> None:
    """Take over what a user moved, and have the frame evaluated from the base."""
    own = _state.of(ob)
    rig = own.rig
    if rig is None or not rig.plan.skeleton.matches(ob):
        # It is planned after the frame, when the view layer is up to date.
        own.is_stale = True
        fk_store.restore(ob, fk_store.stored_bones(ob))
        if rig is None:
            own.state = State.AT_BASE
        else:
            rig.enter(State.AT_BASE)
    else:
        rig.absorb_edits(ob, evaluated())
        rig.restore_base(ob, rig.written)


def _before_frame(ob: bpy.types.Object, scene: bpy.types.Scene) -> None:
    own = _state.of(ob)
    if own.rig is not None and own.rig.state is State.FOLLOWING and not own.is_stale:
        own.rig.lead(ob, scene.frame_current_final)
    else:
        _put_base_back(ob, lambda: _evaluated(scene))


def _take_edits(ob: bpy.types.Object) -> None:
    """A user changed something on the armature: bones that were moved, or what is to be solved."""
    own = _state.of(ob)
    if own.rig is not None and own.rig.plan.skeleton.matches(ob):
        own.rig.absorb_edits(ob)
    own.is_stale = True


def _solve(
    ob: bpy.types.Object,
    rig: Rig,
    depsgraph: bpy.types.Depsgraph,
    frame: Sample,
    moves: Moves,
    shown: channels.Row | None = None,
) -> Moves:
    posed = rig.solve(ob, depsgraph, frame, moves)
    rig.write(ob, posed.channels[0], shown)
    _owe(ob, depsgraph)
    reports.update(ob, rig.plan, lambda _: (frame, posed))
    return posed.moves


def _owe(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> None:
    """Note which other view layers will be updated for what was written."""
    own, layer = _state.of(ob), Layer.of(depsgraph.view_layer)
    if own.rig is not None and len(own.rig.views) > 1:
        own.owed = own.rig.views.keys() - {layer}


def _solve_again(ob: bpy.types.Object, rig: Rig, depsgraph: bpy.types.Depsgraph, moves: Moves) -> Moves:
    return _solve(ob, rig, depsgraph, _read_again(ob, rig, depsgraph), moves)


def _read_again(ob: bpy.types.Object, rig: Rig, depsgraph: bpy.types.Depsgraph) -> Sample:
    with paused():  # finding out the FK pose may update the depsgraph
        return rig.read_known_fk(ob, depsgraph)


def _guarded(step: Callable[..., object], ob: bpy.types.Object, *arguments: object) -> None:
    own = _state.of(ob)
    obstacle = chain.why_closed(ob)
    if obstacle:
        if own.state is not State.READ_ONLY:
            _state.armatures[ob.session_uid] = _Armature(state=State.READ_ONLY)
            reports.fail(ob, [tip.name for tip in chain.tips(ob)], obstacle)
        return
    if own.state is State.READ_ONLY:
        own.state = State.UNKNOWN
    if own.state is State.FAILED or ob.mode == "EDIT":
        return
    try:
        step(ob, *arguments)
    except Exception as error:
        # Once in the console, and in the panel for as long as it stands; never once a frame.
        if _put_aside(ob, own):
            return
        own.state, own.rig = State.FAILED, None
        log.exception("IK of '%s' is off until a setting of it changes", ob.name)
        reports.fail(ob, [tip.name for tip in chain.tips(ob)], f"Internal error ({error}); see the console")
        with suppress(Exception):
            fk_store.restore(ob, fk_store.stored_bones(ob))


def _put_aside(ob: bpy.types.Object, own: _Armature) -> bool:
    """Put aside the chains that raise an error by themselves; return whether there are any, and others that do not."""
    enabled = [tip.name for tip in chain.tips(ob) if chain_of(tip).enabled and tip.name not in own.aside]
    faulty: dict[str, str] = {}
    depsgraph = bpy.context.view_layer.depsgraph
    for tip in enabled if depsgraph is not None else ():
        try:
            plan = Plan.of(ob, depsgraph, [tip])
            pose(ob, plan, sample(ob, plan, depsgraph))
        except Exception as error:
            faulty[tip] = f"Internal error ({error}); see the console"
            log.exception("The chain on '%s' of '%s' is off until a setting of it changes", tip, ob.name)
    if not 0 < len(faulty) < len(enabled):
        return False
    own.aside.update(faulty)
    own.is_stale = True
    reports.fail(ob, [*faulty], "Internal error; see the console")
    ob.update_tag()  # the others are solved with the update that follows
    return True


Step = Callable[[bpy.types.Object, Rig, Moves], Moves]
Read = Callable[[bpy.types.Object, Rig], Sample]


def _in_order(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph, step: Step, read: Read) -> None:
    """Take a step with each live armature that a depsgraph evaluates, first with those that carry targets of others.

    Those that follow each other in a circle are left in the FK pose that is read. Those of which another view layer has
    all goals are left to that one.
    """
    presence = Presence(depsgraph.view_layer)
    armatures = {ob.session_uid: ob for ob in _unpaused(scene) if presence.has(ob)}
    if not armatures:
        return
    for _ in range(2):  # the first plan of one tells which bones of another its targets are attached to
        for ob in armatures.values():
            _guarded(_rig, ob, depsgraph)
    plans = {uid: rig.plan for uid, rig in _state.rigs() if uid in armatures and not rig.plan.is_elsewhere}
    needs = {uid: {c.armature for c in plan.carriers} - {uid} for uid, plan in plans.items()}
    ordered, mutual = in_order(plans, needs)
    knotted = in_a_circle(plans) if mutual else set()
    circle = [uid for uid in mutual if uid in knotted]
    solved = [*ordered, *(uid for uid in mutual if uid not in circle)]
    moves: Moves = {}

    def solve(ob: bpy.types.Object) -> None:
        nonlocal moves
        rig = _state.of(ob).rig
        assert rig is not None
        moves = step(ob, rig, moves)

    # Armatures that need each other, by different chains, are solved until the last of these chains has what it needs.
    for _ in range(1 if len(solved) == len(ordered) else 1 + sum(len(plan.chains) for plan in plans.values())):
        before = moves
        for uid in solved:
            _guarded(solve, armatures[uid])
        if before.keys() == moves.keys() and all(np.array_equal(before[key], moves[key]) for key in moves):
            break
    names = " and ".join(f"'{armatures[uid].name}'" for uid in circle)

    def leave_in_fk(ob: bpy.types.Object) -> None:
        rig = _state.of(ob).rig
        assert rig is not None
        rows = read(ob, rig).channels[0]
        rig.write(ob, rows, rows)
        message = f"The armatures {names} follow each other in a circle; give a chain of one another target"
        reports.fail(ob, [tip.name for tip in chain.tips(ob) if chain_of(tip).enabled], message)

    for uid in circle:
        _guarded(leave_in_fk, armatures[uid])


# ---- handlers


@persistent
def _frame_change_pre(scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph | None) -> None:
    # Blender calls this for each view layer, and does not say for which.
    if _state.paused:
        return
    _state.changing = True
    for ob in _unpaused(scene):
        _guarded(_before_frame, ob, scene)


def _evaluated(scene: bpy.types.Scene, *more: bpy.types.Depsgraph) -> list[bpy.types.Depsgraph]:
    """Wherever a scene may be evaluated."""
    return [*more, *(layer.depsgraph for layer in scene.view_layers if layer.depsgraph is not None)]


def _follow(
    ob: bpy.types.Object, scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph, in_step: Presence | None
) -> None:
    """Look whether an armature that follows its goals was posed right for the frame."""
    own = _state.of(ob)
    rig = own.rig
    assert rig is not None
    is_own = rig.is_seen_by(depsgraph)
    is_flushed = in_step is not None and in_step.has(ob)
    following = rig.follow(ob, depsgraph, in_step=is_flushed) if is_own else None
    if following is not None:
        reports.update(ob, rig.plan, following.posed)
        return
    rig.stop_following()
    # Something changed since the last frame: go back to where that is looked for, and solve as on any other frame.
    is_viewport = is_own and depsgraph.mode == "VIEWPORT"  # everything in a render is new
    edited = is_viewport and depsgraph.id_type_updated("ARMATURE")
    own.is_stale |= edited or (is_viewport and depsgraph.id_type_updated("SCENE"))
    if rig.plan.skeleton.matches(ob):
        rig.absorb_edits(ob, [] if edited else _evaluated(scene, depsgraph))
        if not own.is_stale and rig.stands_alone(ob):
            rig.keep_fk(depsgraph)
            return
        if not is_flushed:
            rig.enter(State.UNKNOWN)  # this evaluation cannot be repeated; F-curves tell its FK pose
            return
        if own.is_stale:
            rig = _rig(ob, depsgraph)  # what is no longer animated has another base
    _put_base_back(ob, lambda: [] if edited else _evaluated(scene, depsgraph))
    with paused():
        rig.evaluate_base(ob, depsgraph)


def _in_step(depsgraph: bpy.types.Depsgraph) -> Presence | None:
    """The view layer that has set the originals of its objects to the frame of a depsgraph; None: there is none.

    Blender writes back what it evaluates for a window, or for the only view layer where there is none.
    """
    shown = bpy.context.view_layer
    if depsgraph.mode != "VIEWPORT" or shown is None or shown.depsgraph is None:
        return None
    now, address = moment_of(depsgraph), depsgraph.as_pointer()
    if address == shown.depsgraph.as_pointer():
        _state.flushed = now
    elif address != depsgraph.view_layer.depsgraph.as_pointer() or _state.flushed != now:
        return None
    return Presence(shown)


@persistent
def _frame_change_post(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    _state.changing = False
    if _state.paused:
        return
    armatures = _unpaused(scene)
    if not armatures:
        return
    in_step = _in_step(depsgraph)
    for ob in armatures:
        if state_of_channels(ob) is State.FOLLOWING:
            _guarded(_follow, ob, scene, depsgraph, in_step)
    if all(state_of_channels(ob) is State.FOLLOWING for ob in armatures):
        return

    def read(ob: bpy.types.Object, rig: Rig) -> Sample:
        frame = rig.read_fk(ob, depsgraph) if rig.state is State.AT_BASE else _read_again(ob, rig, depsgraph)
        if in_step is None or not in_step.has(ob):
            take_animated(ob, depsgraph)
        return frame

    def step(ob: bpy.types.Object, rig: Rig, moves: Moves) -> Moves:
        if rig.state is State.FOLLOWING:
            return moves
        frame = read(ob, rig)
        rig.steady(ob, frame)
        moves = _solve(ob, rig, depsgraph, frame, moves, frame.channels[0])
        rig.begin_to_follow(ob, frame)
        return moves

    _in_order(scene, depsgraph, step, read)
    for ob in armatures:
        _guarded(_stand_by, ob, depsgraph)


def state_of_channels(ob: bpy.types.Object) -> State:
    """What the channels of an armature hold, as the view layer knows it that solved it last."""
    own = _state.of(ob)
    return own.state if own.rig is None else own.rig.state


def _stand_by(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> None:
    """Change nothing in a view layer where an armature or a goal is missing, and another layer has them all."""
    rig = _state.of(ob).rig
    if rig is None or rig.state is not State.AT_BASE:
        return
    rig.stand_by(ob, depsgraph, is_shown=Presence(depsgraph.view_layer).has(ob))
    _owe(ob, depsgraph)
    if rig.state is State.AT_BASE:
        rig.enter(State.UNKNOWN)


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
    if _state.paused or _state.changing:  # another add-on may update while the frame changes
        return
    layer = Layer.of(depsgraph.view_layer)
    if depsgraph.id_type_updated("SCENE"):  # relations may have changed, which is told to this handler alone
        _state.live.clear()
        for _, rig in _state.rigs():
            rig.stop_following()
    originals = [update.id.original for update in depsgraph.updates]
    updated = {original.session_uid for original in originals}
    renamed = []
    for original in originals:
        if isinstance(original, bpy.types.Armature):
            renamed.append(original)
        if isinstance(original, bpy.types.Object) and original.type == "ARMATURE":
            own = _state.armatures.get(original.session_uid)
            if own is not None and own.state is State.FAILED:
                own.state = State.UNKNOWN
            if own is None and original.pose is not None and object_of(original).live:
                _state.live.clear()  # appended or duplicated
    renames.follow(renamed)
    count = len(depsgraph.view_layer.objects)
    is_counted = _state.objects.get(layer) not in {None, count}
    _state.objects[layer] = count
    for uid, own in _state.armatures.items():
        if own.rig is None:
            continue
        if is_counted or own.rig.plan.is_outdated(originals):
            updated.add(uid)
            own.is_stale = True
        elif own.rig.plan.watch and layer in own.rig.views and not own.rig.plan.fits(depsgraph):
            updated.add(uid)
    for ob in _unpaused(scene):
        own = _state.of(ob)
        if not updated.isdisjoint(_own(ob)):
            if layer in own.owed:
                own.owed.discard(layer)
            else:
                _guarded(_take_edits, ob)

    owns = [(ob, _state.of(ob)) for ob in _unpaused(scene)]
    followed = {ob.session_uid for ob, own in owns if _follow_aside(ob, own, depsgraph, updated)}
    if all(
        ob.session_uid in followed
        or (own.rig is not None and not own.is_stale and updated.isdisjoint(own.rig.plan.inputs))
        for ob, own in owns
    ):
        return

    def step(ob: bpy.types.Object, rig: Rig, moves: Moves) -> Moves:
        if ob.session_uid in followed or updated.isdisjoint(rig.plan.inputs):
            return moves
        is_edited = ob.session_uid in updated
        updated.add(ob.session_uid)  # for those whose targets are attached to it
        frame = _read_again(ob, rig, depsgraph)
        moves = _solve(ob, rig, depsgraph, frame, moves)
        if not is_edited:
            rig.begin_to_follow(ob, frame, is_aside=True)
        return moves

    _in_order(scene, depsgraph, step, lambda ob, rig: _read_again(ob, rig, depsgraph))


def _follow_aside(ob: bpy.types.Object, own: _Armature, depsgraph: bpy.types.Depsgraph, updated: set[int]) -> bool:
    """Pose an armature that follows its goals anew where only these were moved; return whether that was done."""
    rig = own.rig
    if rig is None or own.is_stale or rig.state is not State.FOLLOWING or not rig.is_seen_by(depsgraph):
        return False
    if updated.isdisjoint(rig.plan.inputs) or not updated.isdisjoint(_own(ob)):
        return False
    following = rig.follow_aside(ob, depsgraph)
    if following is None:
        return False
    _owe(ob, depsgraph)
    reports.update(ob, rig.plan, following.posed)
    updated.add(ob.session_uid)  # for those whose targets are attached to it
    return True


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
            depsgraph,
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
