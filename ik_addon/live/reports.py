"""Reports on the last solve of each chain, in words for the panel."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import filterfalse
from typing import NamedTuple

import bpy
import numpy as np
from bpy.types import Object, PoseBone
from mathutils import Matrix, Vector
from numpy.typing import NDArray

from ..core import channels, hooks
from ..core.channels import FIELDS, is_finite
from ..core.goals import Goal
from ..core.report import percent
from ..core.settings import chain_of, goal_of
from ..core.skeleton import matrix_array, orthonormal
from ..core.translation.sentences import say
from ..rig.plan.groups import ChainPlan
from ..rig.plan.plan import Plan
from ..rig.plan.presence import Presence, why_unplaced
from ..rig.read.sample import Sample, orientation
from ..rig.write.waves import Posed
from ..solve import Status
from ..solve.maths.products import times
from ..solve.problem import Bools, Floats

NEAR = 1e-4
"""In chain lengths: a tip this near to its target counts as reached. Nobody sees a smaller distance, and single
precision hardly holds one. Only the numbers in a report are finer."""

ROUNDING = 1e-6
"""What single precision rounds of a distance, relative to the distances of its ends from the origin."""

TURNED_AWAY = math.radians(1.0)
"""Radians: a hand, foot or tip that misses its target's orientation by more is reported."""


@dataclass(frozen=True)
class Report:
    """The result of the last solve of one chain."""

    reached: bool
    """As defined by `has_reached`; `error` and `status` are the solver's."""
    failed: bool
    """Whether the chain was not solved at all; `message` then says why and what to do."""
    message: str
    error: float = 0.0
    """Distance from tip to target in chain lengths."""
    iterations: int = 0
    remarks: tuple[str, ...] = ()
    """Settings that could not be followed."""
    status: Status = Status.INVALID
    at_limit: tuple[str, ...] = ()
    """Names of the bones at a limit, root first."""
    influence: float = 1.0
    """The share of the solution in the pose; below 1, all of the above is of the solution, and only `message` of the
    pose."""

    @property
    def is_blended(self) -> bool:
        """Whether the FK pose is blended in, so that the tip is not where it was solved for."""
        return self.influence < 1.0


Source = Callable[[Object], tuple[Sample, Posed]]
"""Returns a solved frame (F = 1) and its solution. Called on demand, because most reports are never looked at."""


STATUSES = {int(status): status for status in Status}


def has_reached(status: NDArray[np.signedinteger] | int, error: Floats | float) -> Bools:
    """Return whether chains have reached their targets, as used in all reports; errors are in chain lengths."""
    return np.asarray((status == Status.REACHED) | ((status != Status.INVALID) & (np.asarray(error) <= NEAR)))


@dataclass
class _Armature:
    """What is known of the chains of one armature object."""

    known: dict[str, Report | None] = field(default_factory=dict)
    """By tip bone; None: not solved."""
    plan: Plan | None = None
    """The plan of the chains that were solved last, whose reports are made on demand."""
    index: dict[str, int] = field(default_factory=dict)
    """The index of each chain in the plan."""
    source: Source | None = None
    notes: dict[str, str] = field(default_factory=dict)
    """What the last edit by hand meant, by tip bone, where it did not move what was edited."""
    noted_at: float = 0.0
    """The frame of the notes."""

    def solved(self, ob: Object) -> tuple[Sample, Posed]:
        """Return the frame that was solved last and its solution."""
        assert self.source is not None
        frame, posed = self.source(ob)
        self.source = lambda _: (frame, posed)
        return frame, posed


_armatures: dict[int, _Armature] = {}


def get(ob: Object, tip: str) -> Report | None:
    """Return the last report on the chain of a tip bone; None if it was not solved since the file was opened.

    The same if another add-on has cleared our handlers, so that what the report says may be over: they are put back.
    """
    hooks.put_back()
    return _get(ob, tip)


def _get(ob: Object, tip: str) -> Report | None:
    own = _armatures.get(ob.session_uid)
    if own is None:
        return None
    if tip not in own.known and own.plan is not None and tip in own.index:
        frame, posed = own.solved(ob)
        own.known[tip] = of_chain(ob, own.plan, frame, posed, own.index[tip])
    return own.known.get(tip)


class Standing(NamedTuple):
    """The result of the last solve of a chain, as a user sees it."""

    status: Status | None
    """None if it was not solved, or is blended with FK."""
    at_limit: tuple[str, ...]
    """Names of its bones at a limit."""


def standing(ob: Object, tips: Iterable[str]) -> Iterator[Standing]:
    """Yield the result of the last solve of each chain.

    The same as in `get`, but without making sentences or asking Blender: cheap enough for every redraw.
    """
    hooks.put_back()
    own = _armatures.get(ob.session_uid, _Armature())
    quick: list[Standing] = []
    if own.plan is not None:
        frame, posed = own.solved(ob)
        outcomes = posed.outcomes
        if not outcomes.at_limit.any():
            there = has_reached(outcomes.status[0], outcomes.error[0])
            status = np.where(there, Status.REACHED, outcomes.status[0])
            known = ((frame.goals.value.influence[0] == 1.0) | (status == Status.INVALID)).tolist()
            quick = [
                Standing(STATUSES[code] if is_known else None, ())
                for code, is_known in zip(status.tolist(), known, strict=True)
            ]
    for tip in tips:
        if quick and tip not in own.known and tip in own.index:
            yield quick[own.index[tip]]
            continue
        found = _get(ob, tip)
        if found is None or found.is_blended:
            yield Standing(None, ())
        else:
            yield Standing(Status.REACHED if found.reached else found.status, found.at_limit)


def put(ob: Object, tip: str, report: Report | None) -> None:
    """Set the last report on a chain; None: it was not solved."""
    _armatures.setdefault(ob.session_uid, _Armature()).known[tip] = report


def note(ob: Object, notes: dict[str, str], frame: float) -> None:
    """Note what an edit by hand on a frame meant for chains, by tip bone; drops earlier notes."""
    own = _armatures.setdefault(ob.session_uid, _Armature())
    own.notes, own.noted_at = notes, frame


def note_on(tip: PoseBone, frame: float) -> str:
    """Return what the last edit by hand meant for a chain, if it was on this frame; else an empty string."""
    own = _armatures.get(tip.id_data.session_uid)
    return own.notes.get(tip.name, "") if own is not None and own.noted_at == frame else ""


def clear(ob: Object | None = None, tips: Collection[str] | None = None) -> None:
    """Forget the reports of one armature, or of all; with `tips`, only those of these chains."""
    if ob is None:
        _armatures.clear()
    elif tips is None:
        _armatures.pop(ob.session_uid, None)
    else:
        for tip in tips:
            put(ob, tip, None)


def forget(uid: int) -> None:
    """Forget the reports of a deleted armature, by `session_uid`."""
    _armatures.pop(uid, None)


def fail(ob: Object, tips: list[str], message: str) -> None:
    """Report that chains could not be solved."""
    for tip in tips:
        put(ob, tip, Report(reached=False, failed=True, message=message))


def update(ob: Object, plan: Plan, source: Source) -> None:
    """Report on a solved frame of an armature."""
    own = _armatures.get(ob.session_uid) or _armatures.setdefault(ob.session_uid, _Armature())
    if own.plan is not plan:
        # Chains that are not solved this time keep their report.
        own.known.update({tip: _get(ob, tip) for tip in own.index})
        own.plan, own.index = plan, {chain.tip: i for i, chain in enumerate(plan.chains)}
    if own.known:
        for tip in own.index.keys() & own.known.keys():
            del own.known[tip]
    own.source = source
    for tip, fault in plan.faults.items():
        fail(ob, [tip], fault)


def of_chain(ob: Object, plan: Plan, frame: Sample, posed: Posed, index: int) -> Report:
    """Return the report on the chain with this index in the plan, on the first frame of a solve."""
    chain = plan.chains[index]
    outcomes = posed.outcomes
    status = Status(int(outcomes.status[0, index]))
    if status is Status.INVALID:
        return Report(reached=False, failed=True, message=_why_invalid(ob, plan, frame, index), remarks=chain.remarks)
    error = float(outcomes.error[0, index])
    reached = bool(has_reached(status, error))
    used = int(outcomes.iterations[0, index])
    missed = say("Missed by {error} of its length. Increase Iterations", error=percent(error))
    if used < next(wave.shape.iterations for wave in plan.waves if index in wave.chains):
        # The solver converged, so it is uneven scale that shears the bones away from the solution.
        missed = say("Missed by {error} of its length. Use uniform bone scale", error=percent(error))
    words = {
        Status.TOO_FAR: say("Too far by {error} of its length", error=percent(error)),
        Status.TOO_NEAR: say("Too close by {error} of its length", error=percent(error)),
        Status.NOT_CONVERGED: missed,
        Status.LIMITED: say("{error} short (limits or other chains)", error=percent(error)),
    }
    influence = float(frame.goals.value.influence[0, index])
    shown = _shown(ob, plan, chain) if reached and influence == 1.0 else None
    off = 0.0 if shown is None else _off_as_shown(*shown, plan, chain)
    if off > max(NEAR, float(frame.goals.value.tolerance[0, index])):
        text = say("Off by {error} of its length: something else moves its bones or its target", error=percent(off))
        return Report(False, False, text, off, used, chain.remarks, Status.NOT_CONVERGED)
    away = _turned_away(plan, frame, posed, index, shown)
    message = say("Reached") if reached else words[status]
    if reached and away > TURNED_AWAY:
        message = say("Reached, but turned {angle}° away (limits or other chains)", angle=f"{math.degrees(away):.0f}")
    if influence < 1.0:
        message = say("Blended with FK: Influence is {influence}", influence=f"{influence:.3g}")
    if not influence:
        message = say("In FK: Influence is 0")
    return Report(
        reached=reached,
        failed=False,
        message=message,
        error=error,
        iterations=used,
        remarks=chain.remarks,
        status=status,
        at_limit=tuple(plan.skeleton.names[bone] for bone in chain.posed if outcomes.at_limit[0, plan.rows[bone]]),
        influence=influence,
    )


def _shown(ob: Object, plan: Plan, chain: ChainPlan) -> tuple[Object, Matrix] | None:
    """Return the evaluated armature object, and the target of a chain in its space, as Blender shows them.

    None where it can't be told: nothing is shown, or what was solved is not evaluated yet.
    """
    layer = bpy.context.view_layer
    own: PoseBone | None = ob.pose.bones.get(chain.tip)
    if layer is None or layer.depsgraph is None or own is None:
        return None
    goal, name = goal_of(chain_of(own), "target")
    presence = Presence(layer)
    if goal is None or not (presence.has(ob) and presence.has(goal)):
        return None
    seen, bones = ob.evaluated_get(layer.depsgraph), np.array(chain.posed)
    if seen.pose is None or len(seen.pose.bones) != len(plan.skeleton.names):
        return None
    if (channels.read(seen, bones) != channels.read(ob, bones)).any():
        return None
    return seen, seen.matrix_world.inverted_safe() @ Goal(goal, name).world(layer.depsgraph)


def _off_as_shown(seen: Object, target: Matrix, plan: Plan, chain: ChainPlan) -> float:
    """Return the distance from the effector to the target, as in `_shown`, in chain lengths."""
    reach = seen.pose.bones[chain.bones[-1]].matrix @ Vector(chain.reach)
    if chain.is_loose and chain.end is not None:
        reach = seen.pose.bones[chain.end].head
    there = target.translation
    length = plan.length(chain.tip)
    origin = seen.matrix_world.translation
    noise = ROUNDING * max(there.length, reach.length, (origin - seen.matrix_world @ there).length)
    away = (there - reach).length - noise
    return max(away / length, 0.0) if length > 0.0 and math.isfinite(away) else 0.0


def _turned_away(plan: Plan, frame: Sample, posed: Posed, index: int, shown: tuple[Object, Matrix] | None) -> float:
    """Return the angle in radians by which a tip or end bone misses its target's orientation, if it takes it.

    Where the target is attached to solved bones it is compared as `shown`. The angle is unknown, and 0 is returned, if
    nothing is shown then, or if the bone is mirrored.
    """
    chain = plan.chains[index]
    if not chain.takes_rotation or frame.goals.value.influence[0, index] < 1.0:
        return 0.0
    row = plan.rows[chain.posed[-1]]
    pose, wanted = posed.poses_on(slice(0, 1))[0, row, :3, :3], frame.goals.turned[0, index]
    if plan.rides[index][0] >= 0 and plan.moves(plan.rides[index][0]):
        if shown is None:
            return 0.0
        seen, target = shown
        pose = matrix_array(seen.pose.bones[chain.posed[-1]].matrix)[:3, :3]
        wanted = times(orientation(matrix_array(target)), frame.goals.end_axes[0, index])
    if np.linalg.det(pose) <= 0.0 or (posed.channels[0, row, FIELDS["scale"]] < 0.0).any():
        return 0.0
    chord = float(np.linalg.norm(orthonormal(pose) - wanted))
    return 2.0 * math.asin(min(chord / math.sqrt(8.0), 1.0)) if math.isfinite(chord) else 0.0


def _why_invalid(ob: Object, plan: Plan, frame: Sample, index: int) -> str:
    """Say why a chain could not be solved: where the first transform stands that no pose can be found with."""
    world, chain, goal = matrix_array(ob.matrix_world), plan.chains[index], frame.goals[index]
    if reason := why_unplaced(ob, world):
        return reason
    above = ob.pose.bones[plan.skeleton.names[chain.posed[0]]].parent_recursive
    for bone in filterfalse(is_finite, above):
        return say("The transform of bone '{bone}' is not a finite number. Reset it", bone=bone.name)
    if not np.isfinite(goal.target).all():
        return say("The target's position is not a finite number. Reset its transform")
    if goal.pole is not None and not np.isfinite(goal.pole).all():
        return say("The pole's position is not a finite number. Reset its transform")
    for posed in chain.posed:
        if not np.isfinite(frame.channels[0, plan.rows[posed]]).all():
            name = plan.skeleton.names[posed]
            return say("The transform of bone '{bone}' is not a finite number. Reset it", bone=name)
    for bone in above:
        if not all(bone.scale[:]):
            return say("'{object}' is scaled to zero. Reset its scale", object=bone.name)
    return say("The chain that ends in '{bone}' has no length in this pose. Reset its bones", bone=chain.tip)
