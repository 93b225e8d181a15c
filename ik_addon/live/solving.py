"""Solve armatures in the current state: one on request, or all live ones in order of their dependencies."""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress

import bpy
import numpy as np
from bpy.types import Depsgraph, Object

from ..core import compat, fk_store, hooks
from ..core.settings import chain_of, object_of
from ..core.translation.sentences import say
from ..rig.plan import chain
from ..rig.plan.groups import LOOP_OF_ARMATURES
from ..rig.plan.inputs import Numbers
from ..rig.plan.order import in_order
from ..rig.plan.plan import Plan, in_loops
from ..rig.plan.presence import Layer, Presence, why_closed
from ..rig.read.sample import own_transforms, sample, take_animated
from ..rig.write.waves import pose
from . import renames, reports
from .registry import LiveArmature, paused, registry, unpaused
from .rig import Rig, State, View

log = logging.getLogger(__name__)

ROUNDED = 1e-6
"""Numbers that differ by less, relative to their size where that is above 1, are the same but for rounding."""


def solve_now(ob: Object, depsgraph: Depsgraph, only: Collection[str] | None = None) -> list[reports.Report]:
    """Solve chains of an armature on the current frame, whether it is live or not, and return a report on each.

    Args:
        ob: the armature object.
        depsgraph: evaluated at the current frame.
        only: tip bones of the chains to solve; None: all enabled ones.
    """
    if obstacle := why_closed(ob):
        reports.fail(ob, [tip.name for tip in chain.tips(ob)], obstacle)
        return _reports(ob, [tip.name for tip in chain.tips(ob) if only is None or tip.name in only])
    live = object_of(ob).live
    rig = rig_of(ob, depsgraph) if live else Rig(ob, Plan.of(ob, depsgraph, only), Layer.of(depsgraph.view_layer))
    rig.absorb_edits(ob)
    solve_still(ob, rig, depsgraph)
    with paused(ob):
        _ask(depsgraph, [ob], {other.session_uid for other in unpaused(depsgraph.scene.original)})
    if not live and rig.bones.fk is not None:
        solved = (rig.bones.written != rig.bones.fk).any(axis=1)
        fk_store.note_written(ob, rig.plan.live[solved], rig.bones.written[solved])
        fk_store.forget(ob, rig.plan.live[~solved].tolist())  # these bones still show their FK pose
    return _reports(ob, [*(plan.tip for plan in rig.plan.chains), *rig.plan.faults])


def _reports(ob: Object, tips: Collection[str]) -> list[reports.Report]:
    return [report for tip in tips if (report := reports.get(ob, tip)) is not None]


def rig_of(ob: Object, depsgraph: Depsgraph) -> Rig:
    """Return the rig of a live armature, with its plan for the view layer and frame of a depsgraph.

    The plan is made again if bones or settings changed.
    """
    layer = Layer.of(depsgraph.view_layer)
    own = registry.of(ob)
    rig = own.rig
    view = None if rig is None or rig.is_stale else rig.views.get(layer)
    plan = None if view is None else view.find(depsgraph)
    if plan is None:
        plan = Plan.of(ob, depsgraph, aside=own.failed)
        renames.remember(ob)
    if rig is None:
        rig = Rig(ob, plan, layer)
        rig.bones.begin(ob, depsgraph.scene.frame_current_final)
        own.state = State.UNKNOWN
    elif rig.is_stale or (
        plan is not rig.plan
        and (plan.skeleton.names != rig.plan.skeleton.names or not np.array_equal(plan.live, rig.plan.live))
    ):
        rig = rig.planned_anew(ob, plan, layer, depsgraph)
    else:
        if layer not in rig.views:
            rig.views[layer] = View(plan, rig.state)
        rig.view = rig.views[layer]
    if plan.modes != tuple(rig.bones.modes):
        rig.bones.fk = None  # in other rotation modes the same channels are another pose
    rig.view.take(plan)
    own.rig, rig.is_stale = rig, False
    return rig


def solve_frame(ob: Object, rig: Rig, depsgraph: Depsgraph, in_step: Presence | None, *, again: bool = False) -> bool:
    """Solve a frame that Blender has evaluated, and write the solution; return whether that moves anything.

    Args:
        ob: the armature object.
        rig: what is known of it.
        depsgraph: evaluated at the frame.
        in_step: the view layer whose originals are on this frame, too; None if there is none.
        again: whether Blender evaluated it once more, after a first solution was written. What has changed by no more
            than rounding is solved, too: the first solution was that of another frame's pose.
    """
    before = rig.numbers if again else None
    with paused():
        numbers, shown = rig.read(ob, depsgraph)
    if before is not None and before.tobytes() == numbers.tobytes():
        return False
    is_still = before is not None and are_alike(numbers, before)
    known = rig.solved(ob, depsgraph, numbers)
    is_flushed = in_step is not None and in_step.has(ob)
    if not is_flushed and (known.channels != shown).any():
        take_animated(ob, depsgraph)
    is_written = rig.put(ob, known.channels, shown, in_step=is_flushed)
    rig.report(ob)
    if is_written:
        owe(ob, depsgraph)
    return is_written and not is_still


def evaluate_moved(armatures: Sequence[Object], depsgraph: Depsgraph, in_step: Presence | None) -> None:
    """Have Blender evaluate what another add-on moved after it evaluated a frame: originals say something else then."""
    moved: list[Object] = []

    def look(ob: Object) -> None:
        rig = rig_of(ob, depsgraph)
        is_flushed = in_step is not None and in_step.has(ob)
        before = own_transforms(rig.plan, depsgraph) if is_flushed else rig.originals
        if before is not None and own_transforms(rig.plan) != before:
            moved.append(ob)
            rig.read(ob, depsgraph)  # afterwards Blender doesn't animate what it copies
            if not is_flushed:
                take_animated(ob, depsgraph)

    for ob in armatures:
        guarded(look, ob)
    if moved:
        with paused():
            compat.update_in_handler(depsgraph)


def solve_still(ob: Object, rig: Rig, depsgraph: Depsgraph) -> bool:
    """Solve the current frame, while the channels may hold a solution; return whether anything was written."""
    with paused():  # finding the FK pose may update the depsgraph
        numbers, shown = rig.read_still(ob, depsgraph)
    known = rig.solved(ob, depsgraph, numbers, hurried=registry.is_hurried)
    is_written = rig.put(ob, known.channels, shown)
    owe(ob, depsgraph)
    rig.report(ob)
    return is_written


def are_alike(one: Numbers, other: Numbers) -> bool:
    """Whether two frames (1, w) are the same within what Blender rounds."""
    return one.shape == other.shape and np.allclose(one, other, rtol=ROUNDED, atol=ROUNDED, equal_nan=True)


def owe(ob: Object, depsgraph: Depsgraph) -> None:
    """Note which other view layers Blender will update because of what was written."""
    own = registry.of(ob)
    if own.rig is not None and len(own.rig.views) > 1:
        own.owed = own.rig.views.keys() - {Layer.of(depsgraph.view_layer)}


def guarded(step: Callable[..., object], ob: Object, *arguments: object) -> None:
    """Run a step for an armature if it can be posed; an error switches off the failing chains, or the armature."""
    try:
        if _may_be_posed(ob, registry.of(ob)):
            step(ob, *arguments)
    except Exception as error:
        with hooks.apart(ob.name):
            _switch_off(ob, registry.of(ob), error)


def guarded_rig(step: Callable[..., object], ob: Object, *arguments: object) -> None:
    """Run a step that takes the rig of an armature, if that is planned; the rest as in `guarded`."""
    rig = registry.of(ob).rig
    if rig is not None:
        guarded(step, ob, rig, *arguments)


def _may_be_posed(ob: Object, own: LiveArmature) -> bool:
    if obstacle := why_closed(ob):
        if own.state is not State.READ_ONLY:
            registry.armatures[ob.session_uid] = LiveArmature(own.reference, state=State.READ_ONLY)
            reports.fail(ob, [tip.name for tip in chain.tips(ob)], obstacle)
        return False
    if own.state is State.READ_ONLY:
        own.state = State.UNKNOWN
    return own.state is not State.FAILED and ob.mode != "EDIT"


def _switch_off(ob: Object, own: LiveArmature, error: Exception) -> None:
    """Switch off the failing chains, or the armature: log once and report in the panel while it lasts."""
    if _set_failed_aside(ob, own):
        return
    own.state, own.rig = State.FAILED, None
    log.exception("IK of '%s' is off until one of its settings changes", ob.name)
    message = say("Internal error ({error}); see the console", error=error)
    reports.fail(ob, [tip.name for tip in chain.tips(ob)], message)
    with suppress(Exception):
        fk_store.restore(ob, fk_store.stored_bones(ob))


def _set_failed_aside(ob: Object, own: LiveArmature) -> bool:
    """Set aside the chains that raise an error when solved alone; return False if none of them or all of them do."""
    enabled = [tip.name for tip in chain.tips(ob) if chain_of(tip).enabled and tip.name not in own.failed]
    faulty: dict[str, str] = {}
    layer = bpy.context.view_layer
    depsgraph = None if layer is None else layer.depsgraph
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
    if own.rig is not None:
        own.rig.is_stale = True
    reports.fail(ob, [*faulty], say("Internal error; see the console"))
    compat.tag(ob)  # the update that follows solves the other chains
    return True


def in_dependency_order(
    depsgraph: Depsgraph, solve: Callable[[Object, Rig], bool], in_step: Presence | None, *, is_still: bool = True
) -> None:
    """Solve all live armatures that a depsgraph evaluates, those that carry others' targets first.

    `solve` returns whether it wrote anything.
    What only Blender can place once bones are solved is read again after it has evaluated them. Armatures in a
    dependency loop are left in their FK pose. An armature whose goals are complete only in another view layer is left
    to that layer.
    """
    presence = Presence(depsgraph.view_layer)
    armatures: dict[int, Object] = {}

    def plan(ob: Object) -> None:
        if presence.has(ob):
            armatures[ob.session_uid] = ob
            rig_of(ob, depsgraph)

    for ob in unpaused(depsgraph.scene.original):
        guarded(plan, ob)
    plans = {uid: rig.plan for uid, rig in registry.rigs() if uid in armatures and not rig.plan.is_elsewhere}
    if registry.order is None or registry.order[0] != list(plans.values()):
        ordered, mutual = in_order(plans, {uid: plan.leaders for uid, plan in plans.items()})
        registry.order = [*plans.values()], (ordered, mutual, in_loops(plans) if mutual else set())
    ordered, mutual, knotted = registry.order[1]  # those that need each other, and those of them in a loop
    solved: list[int] = []

    def step(ob: Object, rig: Rig) -> None:
        if solve(ob, rig):
            solved.append(ob.session_uid)

    followers = [uid for uid in (*ordered, *mutual) if uid not in knotted]
    for uid in followers:
        guarded_rig(step, armatures[uid])
    if solved:
        _ask(depsgraph, [armatures[uid] for uid in followers], set(armatures), in_step)
    names = " and ".join(f"'{armatures[uid].name}'" for uid in mutual if uid in knotted)

    def leave_in_fk(ob: Object, rig: Rig) -> None:
        with paused():
            numbers, shown = rig.read_still(ob, depsgraph) if is_still else rig.read(ob, depsgraph)
        rig.put(ob, rig.plan.numbers.fk(numbers)[0], shown, in_step=in_step is not None)
        message = say(LOOP_OF_ARMATURES, names=names)
        reports.fail(ob, [tip.name for tip in chain.tips(ob) if chain_of(tip).enabled], message)

    for uid in mutual:
        if uid in knotted:
            guarded_rig(leave_in_fk, armatures[uid])


def _ask(depsgraph: Depsgraph, armatures: Sequence[Object], live: set[int], in_step: Presence | None = None) -> None:
    """Have Blender pose solved bones, and solve again what then stands elsewhere, until nothing does."""
    rigs = {ob.session_uid: rig for ob in armatures if (rig := registry.of(ob).rig) is not None}
    plans = {uid: rig.plan for uid, rig in rigs.items() if rig.plan.asks or rig.plan.asked & live}
    asking = [ob for ob in armatures if ob.session_uid in plans]
    if not asking:
        return

    def again() -> bool:
        moved = False

        def step(ob: Object, rig: Rig) -> None:
            nonlocal moved
            moved |= solve_frame(ob, rig, depsgraph, in_step, again=True)

        for ob in asking:
            guarded_rig(step, ob)
        return moved

    until_still(depsgraph, [rig.plan for rig in rigs.values()], again)


def until_still(depsgraph: Depsgraph, plans: Iterable[Plan], again: Callable[[], bool]) -> None:
    """Have Blender evaluate a solution that was written, and solve `again`, until that moves nothing any more."""
    for _ in range(1 + sum(len(plan.waves) for plan in plans)):
        with paused():
            compat.update_in_handler(depsgraph)
        if not again():
            return
