"""What became of each chain at its last solve, in words for the panel."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import bpy
import numpy as np

from .rig.plan import Plan
from .rig.pose import Posed
from .rig.read import Sample
from .solve import Status


@dataclass(frozen=True)
class Report:
    """The verdict on one chain."""

    reached: bool
    failed: bool
    """The chain was not solved at all; `message` says why and what to do."""
    message: str
    error: float = 0.0
    """Distance from tip to target in chain lengths."""
    iterations: int = 0
    remarks: tuple[str, ...] = ()
    """Settings that could not be followed."""
    status: Status = Status.INVALID
    at_limit: tuple[str, ...] = ()
    """Names of the bones that stand at a limit, root first."""


class _Solved(NamedTuple):
    """What a report is made from when somebody asks for it: most frames are solved without that."""

    plan: Plan
    frame: Sample
    posed: Posed
    chain: int


STATUSES = {int(status): status for status in Status}

_reports: dict[tuple[int, str], Report | _Solved] = {}


def get(ob: bpy.types.Object, tip: str) -> Report | None:
    """The last report on the chain of that tip bone; None when it was not solved since the file was opened."""
    found = _reports.get((ob.session_uid, tip))
    if isinstance(found, _Solved):
        found = _reports[ob.session_uid, tip] = of_chain(ob, *found)
    return found


def standing(ob: bpy.types.Object, tips: Iterable[str]) -> Iterator[tuple[Status | None, tuple[str, ...]]]:
    """How the last solve of each chain ended, None where there was none, and its bones at a limit.

    The same as `get` tells, without making sentences of it: cheap enough for each redraw.
    """
    uid = ob.session_uid
    for tip in tips:
        found = _reports.get((uid, tip))
        if isinstance(found, _Solved):
            outcomes = found.posed.outcomes
            if not outcomes.any_at_limit:
                yield STATUSES[outcomes.status[0, found.chain]], ()
                continue
            found = get(ob, tip)
        yield (None, ()) if found is None else (found.status, found.at_limit)


def put(ob: bpy.types.Object, tip: str, report: Report | None) -> None:
    """Make this the last report on a chain; None: it was not solved."""
    if report is None:
        _reports.pop((ob.session_uid, tip), None)
    else:
        _reports[ob.session_uid, tip] = report


def clear(ob: bpy.types.Object | None = None, tips: Collection[str] | None = None) -> None:
    """Forget the reports of one armature, or of all; with `tips`, those of these chains alone."""
    for uid, tip in list(_reports):
        if (ob is None or uid == ob.session_uid) and (tips is None or tip in tips):
            del _reports[uid, tip]


def fail(ob: bpy.types.Object, tips: list[str], message: str) -> None:
    """Report that chains could not be solved."""
    for tip in tips:
        _reports[ob.session_uid, tip] = Report(reached=False, failed=True, message=message)


def update(ob: bpy.types.Object, plan: Plan, frame: Sample, posed: Posed) -> None:
    """Report on one solved frame of an armature."""
    for tip, fault in plan.faults.items():
        fail(ob, [tip], fault)
    for i, chain in enumerate(plan.chains):
        _reports[ob.session_uid, chain.tip] = _Solved(plan, frame, posed, i)


def of_chain(ob: bpy.types.Object, plan: Plan, frame: Sample, posed: Posed, index: int) -> Report:
    """The verdict on the chain with this index in the plan, on the first frame of a solve."""
    chain = plan.chains[index]
    outcome = posed.outcomes[index]
    status = Status(int(outcome.status[0]))
    if status is Status.INVALID:
        return Report(reached=False, failed=True, message=_why_invalid(ob, frame, index), remarks=chain.remarks)
    error = float(outcome.error[0])
    words = {
        Status.REACHED: "Reached",
        Status.TOO_FAR: f"Too far by {_percent(error)} of its length",
        Status.TOO_NEAR: f"Too near by {_percent(error)} of its length",
        Status.NOT_CONVERGED: f"Missed by {_percent(error)} of its length; allow more iterations",
        Status.LIMITED: f"Held back by {_percent(error)} of its length, by limits or other targets",
    }
    return Report(
        reached=status is Status.REACHED,
        failed=False,
        message=words[status],
        error=error,
        iterations=int(outcome.iterations[0]),
        remarks=chain.remarks,
        status=status,
        at_limit=tuple(plan.skeleton.names[chain.bones[i]] for i in np.flatnonzero(outcome.at_limit[0])),
    )


def _percent(fraction: float) -> str:
    return f"{100.0 * fraction:.3g} %"


def _why_invalid(ob: bpy.types.Object, frame: Sample, index: int) -> str:
    world = np.array(ob.matrix_world)
    if not np.isfinite(world).all():
        return f"The transform of '{ob.name}' is not a finite number; reset its location, rotation and scale"
    if abs(np.linalg.det(world[:3, :3])) <= 1e-30:
        return f"'{ob.name}' is scaled to zero; give it a scale in which a target can be placed"
    goal = frame.goals[index]
    if not np.isfinite(goal.target).all():
        return "The target's position is not a finite number; reset its transform"
    if goal.pole is not None and not np.isfinite(goal.pole).all():
        return "The pole's position is not a finite number; reset its transform"
    return "The chain has no length in this pose, or a bone's transform is not a finite number; reset its bones"
