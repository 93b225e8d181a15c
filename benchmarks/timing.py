"""Benchmark cases, how their sides are timed, and the rows of results."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

ALL_GARBAGE = 2
"""The oldest generation of Python's garbage collector."""
PATIENCE = 1.0
"""Seconds after which a run of many steps ends early, once it has taken its minimum number."""
OF_THE_FLOOR = 1.25
"""The most that playback may cost, in multiples of the floor."""


@dataclass(frozen=True)
class Run:
    """One run of one side."""

    time: float
    """In the case's unit; of a run of many steps the mean step."""
    median: float | None = None
    """The median step; None if the run has no steps."""
    worst: float | None = None
    """The longest step relative to the median one, except those in which Python collected all garbage."""


Measure = Callable[[int], Run]
"""Sets up and times one run; both sides of a case get the same numbers 0, 1, ... for their runs."""


@dataclass(frozen=True)
class Case:
    """One line of the table: what is measured, and against what."""

    unit: str
    ours: Measure
    blender: Measure
    """Blender's own IK, or whatever ours is compared with."""
    before: Measure | None = None
    """The floor: a handler that writes the finished pose before Blender evaluates the frame."""
    after: Measure | None = None
    """The same handler, after Blender has evaluated the frame."""
    is_keyed: bool = False
    """The solved bones are keyed, so a pose can't be written before the frame: the second floor counts."""
    aim: float | None = None
    """The ratio to aim for."""
    of_the_floor: float | None = OF_THE_FLOOR
    """The aim in multiples of the floor; None if the floor sets no aim."""


@dataclass(frozen=True)
class Row:
    """Results of a case: medians of the runs."""

    case: str
    ours: float
    blender: float
    unit: str
    ratio: float
    """Ours / Blender's: smaller is better."""
    median_ratio: float | None
    """Ours / Blender's by the median step, which leaves out what few steps do for many others."""
    aim: float | None
    before: float | None
    after: float | None
    floor_aim: float | None
    """The ratio that the floor of these runs allows."""
    worst: float | None
    """Our longest step relative to our median step."""
    blender_worst: float | None
    runs: int


def steps(work: Iterable[Callable[[], object]], least: int) -> Run:
    """Return a run of steps, in milliseconds.

    Args:
        work: the steps.
        least: number of steps taken no matter how slow they are; a slow run ends early after that, see `PATIENCE`.
    """
    took: list[float] = []
    collected: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == ALL_GARBAGE:
            collected.append(len(took))

    gc.collect()
    gc.callbacks.append(note)
    begin = time.perf_counter()
    for step in work:
        start = time.perf_counter()
        step()
        end = time.perf_counter()
        took.append(1e3 * (end - start))
        if len(took) >= least and end - begin > PATIENCE:
            break
    gc.callbacks.remove(note)
    median = statistics.median(took)
    undisturbed = (step for number, step in enumerate(took) if number not in collected)
    return Run(statistics.fmean(took), median, max(undisturbed) / median)


def measure(name: str, case: Case, runs: int) -> Row:
    """Return the row of a case. The sides take turns."""
    sides = [case.ours, case.blender, case.before, case.after]
    found: list[list[Run]] = [[] for _ in sides]
    for number in range(runs):
        for side, done in zip(sides, found, strict=True):
            if side is not None:
                done.append(side(number))
    ours, blender, before, after = (_median([run.time for run in side]) for side in found)
    assert ours is not None
    assert blender is not None
    medians = [_median([run.median for run in side if run.median is not None]) for side in found[:2]]
    floor = after if case.is_keyed else before
    return Row(
        case=name,
        ours=ours,
        blender=blender,
        unit=case.unit,
        ratio=ours / blender,
        median_ratio=None if medians[0] is None or medians[1] is None else medians[0] / medians[1],
        aim=case.aim,
        before=before,
        after=after,
        floor_aim=None if floor is None or case.of_the_floor is None else case.of_the_floor * floor / blender,
        worst=_median([run.worst for run in found[0] if run.worst is not None]),
        blender_worst=_median([run.worst for run in found[1] if run.worst is not None]),
        runs=runs,
    )


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None
