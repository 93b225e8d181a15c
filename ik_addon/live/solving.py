"""Solve armatures in the current state: one on request, or all live ones in order of their dependencies."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import suppress

import bpy
import numpy as np

from ..data import fk_store
from ..data.settings import chain_of, object_of
from ..pose import channels
from ..rig.plan import chain
from ..rig.plan.dependencies import in_loops
from ..rig.plan.groups import LOOP_OF_ARMATURES
from ..rig.plan.order import in_order
from ..rig.plan.plan import Plan
from ..rig.plan.presence import Layer, Presence, why_closed
from ..rig.read.sample import Sample, sample
from ..rig.write.waves import Moves, pose
from ..translation.sentences import say
from . import renames, reports
from .registry import LiveArmature, paused, registry, unpaused
from .rig import Rig
from .state import State

log = logging.getLogger(__name__)


def solve_now(
    ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, only: Collection[str] | None = None
) -> list[reports.Report]:
    """Solve chains of an armature on the current frame, whether it is live or not, and return a report on each.

    Args:
        ob: the armature object.
        depsgraph: evaluated at the current frame.
        only: tip bones of the chains to solve; None: all enabled ones.
    """
    obstacle = why_closed(ob)
    if obstacle:
        reports.fail(ob, [tip.name for tip in chain.tips(ob)], obstacle)
        return _reports(ob, [tip.name for tip in chain.tips(ob) if only is None or tip.name in only])
    live = object_of(ob).live
    if live:
        rig = rig_of(ob, depsgraph)
    else:
        layer = Layer.of(depsgraph.view_layer)
        rig = Rig(ob, Plan.of(ob, depsgraph, only), layer)
    rig.absorb_edits(ob)
    solve_again(ob, rig, depsgraph, {})
    if not live and rig.bones.fk is not None:
        solved = (rig.bones.written != rig.bones.fk).any(axis=1)
        fk_store.note_written(ob, rig.plan.live[solved], rig.bones.written[solved])
        fk_store.forget(ob, rig.plan.live[~solved].tolist())  # these bones still show their FK pose
    return _reports(ob, [*(plan.tip for plan in rig.plan.chains), *rig.plan.faults])


def _reports(ob: bpy.types.Object, tips: Collection[str]) -> list[reports.Report]:
    return [report for tip in tips if (report := reports.get(ob, tip)) is not None]


def rig_of(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> Rig:
    """Return the rig of a live armature, with its plan for the view layer and frame of a depsgraph.

    The plan is made again if bones or settings changed.
    """
    uid, layer = ob.session_uid, Layer.of(depsgraph.view_layer)
    own = registry.of(ob)
    rig = own.rig
    others = (other.plan for known, other in registry.rigs() if known != uid)
    followed = {parent.bone for plan in others for parent in plan.parent_bones if parent.armature == uid}
    view = None if rig is None or own.is_stale else rig.views.get(layer)
    plan = None if view is None else view.find(depsgraph)
    if plan is None or not followed.issubset(plan.skeleton.names[bone] for bone in plan.followed):
        plan = Plan.of(ob, depsgraph, followed=followed, aside=own.failed)
        renames.remember(ob)
    if rig is None:
        rig = Rig(ob, plan, layer)
        rig.bones.begin(ob, depsgraph.scene.frame_current_final)
        if own.state is State.RESTORED:
            rig.enter(State.RESTORED)
        own.state = State.UNKNOWN
    elif own.is_stale or plan.skeleton.names != rig.plan.skeleton.names or not np.array_equal(plan.live, rig.plan.live):
        rig = rig.planned_anew(ob, plan, layer)
    else:
        rig.turn_to(layer, plan)
    rig.view.take(plan)
    own.rig, own.is_stale = rig, False
    return rig


def solve_and_write(
    ob: bpy.types.Object,
    rig: Rig,
    depsgraph: bpy.types.Depsgraph,
    frame: Sample,
    moves: Moves,
    shown: channels.Row | None = None,
) -> Moves:
    """Solve a sampled frame and write the solution; `moves` as in `pose`, `shown` as in `Rig.write`."""
    posed = rig.solve(ob, depsgraph, frame, moves, hurried=registry.is_hurried)
    rig.write(ob, posed.channels[0], shown)
    owe(ob, depsgraph)
    reports.update(ob, rig.plan, lambda _: (frame, posed))
    return posed.moves


def solve_again(ob: bpy.types.Object, rig: Rig, depsgraph: bpy.types.Depsgraph, moves: Moves) -> Moves:
    """Solve the current frame, while the channels may hold a solution."""
    return solve_and_write(ob, rig, depsgraph, read_again(ob, rig, depsgraph), moves)


def read_again(ob: bpy.types.Object, rig: Rig, depsgraph: bpy.types.Depsgraph) -> Sample:
    """Sample the current frame, while the channels may hold a solution."""
    with paused():  # finding the FK pose may update the depsgraph
        return rig.read_known_fk(ob, depsgraph)


def owe(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> None:
    """Note which other view layers Blender will update because of what was written."""
    own = registry.of(ob)
    if own.rig is not None and len(own.rig.views) > 1:
        own.owed = own.rig.views.keys() - {Layer.of(depsgraph.view_layer)}


def guarded(step: Callable[..., object], ob: bpy.types.Object, *arguments: object) -> None:
    """Run a step for an armature if it can be posed; an error switches off the failing chains, or the armature."""
    own = registry.of(ob)
    obstacle = why_closed(ob)
    if obstacle:
        if own.state is not State.READ_ONLY:
            registry.armatures[ob.session_uid] = LiveArmature(state=State.READ_ONLY)
            reports.fail(ob, [tip.name for tip in chain.tips(ob)], obstacle)
        return
    if own.state is State.READ_ONLY:
        own.state = State.UNKNOWN
    if own.state is State.FAILED or ob.mode == "EDIT":
        return
    try:
        step(ob, *arguments)
    except Exception as error:
        # Log once and report in the panel while it lasts, not on every frame.
        if _set_failed_aside(ob, own):
            return
        own.state, own.rig = State.FAILED, None
        log.exception("IK of '%s' is off until one of its settings changes", ob.name)
        reports.fail(
            ob, [tip.name for tip in chain.tips(ob)], say("Internal error ({error}); see the console", error=error)
        )
        with suppress(Exception):
            fk_store.restore(ob, fk_store.stored_bones(ob))


def _set_failed_aside(ob: bpy.types.Object, own: LiveArmature) -> bool:
    """Set aside the chains that raise an error when solved alone; return False if none of them or all of them do."""
    enabled = [tip.name for tip in chain.tips(ob) if chain_of(tip).enabled and tip.name not in own.failed]
    faulty: dict[str, str] = {}
    depsgraph = bpy.context.view_layer.depsgraph
    for tip in enabled if depsgraph is not None else ():
        try:
            plan = Plan.of(ob, depsgraph, [tip])
            pose(ob, plan, sample(ob, plan, depsgraph))
        except Exception as error:
            faulty[tip] = say("Internal error ({error}); see the console", error=error)
            log.exception("The chain on '%s' of '%s' is off until one of its settings changes", tip, ob.name)
    if not 0 < len(faulty) < len(enabled):
        return False
    own.failed.update(faulty)
    own.is_stale = True
    reports.fail(ob, [*faulty], say("Internal error; see the console"))
    ob.update_tag()  # the update that follows solves the other chains
    return True


Step = Callable[[bpy.types.Object, Rig, Moves], Moves]
Read = Callable[[bpy.types.Object, Rig], Sample]


def in_dependency_order(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph, step: Step, read: Read) -> None:
    """Run a step for each live armature that a depsgraph evaluates, those that carry others' targets first.

    Armatures in a dependency loop are left in the FK pose that `read` returns. An armature whose goals are complete
    only in another view layer is left to that layer.
    """
    presence = Presence(depsgraph.view_layer)
    armatures = {ob.session_uid: ob for ob in unpaused(scene) if presence.has(ob)}
    if not armatures:
        return
    for _ in range(2):  # only the first plan of an armature says which bones of others its targets are attached to
        for ob in armatures.values():
            guarded(rig_of, ob, depsgraph)
    plans = {uid: rig.plan for uid, rig in registry.rigs() if uid in armatures and not rig.plan.is_elsewhere}
    needs = {uid: {c.armature for c in plan.parent_bones} - {uid} for uid, plan in plans.items()}
    ordered, mutual = in_order(plans, needs)
    knotted = in_loops(plans) if mutual else set()
    circle = [uid for uid in mutual if uid in knotted]
    solved = [*ordered, *(uid for uid in mutual if uid not in circle)]
    moves: Moves = {}

    def solve(ob: bpy.types.Object) -> None:
        nonlocal moves
        rig = registry.of(ob).rig
        assert rig is not None
        moves = step(ob, rig, moves)

    # Armatures that need each other through different chains are solved until the last of these has what it needs.
    for _ in range(1 if len(solved) == len(ordered) else 1 + sum(len(plan.chains) for plan in plans.values())):
        before = moves
        for uid in solved:
            guarded(solve, armatures[uid])
        if before.keys() == moves.keys() and all(np.array_equal(before[key], moves[key]) for key in moves):
            break
    names = " and ".join(f"'{armatures[uid].name}'" for uid in circle)

    def leave_in_fk(ob: bpy.types.Object) -> None:
        rig = registry.of(ob).rig
        assert rig is not None
        rows = read(ob, rig).channels[0]
        rig.write(ob, rows, rows)
        message = say(LOOP_OF_ARMATURES, names=names)
        reports.fail(ob, [tip.name for tip in chain.tips(ob) if chain_of(tip).enabled], message)

    for uid in circle:
        guarded(leave_in_fk, armatures[uid])
