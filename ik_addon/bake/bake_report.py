"""The result of a bake, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import bpy

from ..live.reports import percent

NAMED = 5
"""Maximum number of chains or joints that are named."""

_last: dict[int, BakeReport] = {}
"""By `session_uid` of the armature object, which no other gets until Blender is closed."""


@dataclass(frozen=True)
class ChainReport:
    """The result of baking one chain."""

    chain: str
    """The tip bone."""
    missed: int
    """Number of frames on which it did not reach its target."""
    error: float
    """Largest distance from its tip to the target, in chain lengths; the next one is the mean over the frames."""
    mean_error: float


@dataclass(frozen=True)
class LimitReport:
    """A joint that stood at a limit."""

    bone: str
    frames: int
    """On how many."""


@dataclass(frozen=True)
class BakeReport:
    """The result of a bake."""

    chains: tuple[str, ...]
    """Tip bones of the baked chains."""
    frames: int
    """Number of keyed frames."""
    action: str
    """Name of the action that holds the keys."""
    missed: int
    """Number of frames on which a chain did not reach its target."""
    error: float
    """Largest distance from a tip to its target, in chain lengths; the next one is the mean."""
    mean_error: float
    each: tuple[ChainReport, ...]
    """The same chain by chain."""
    limited: tuple[LimitReport, ...]
    """The joints that stood at a limit on any frame, most often first."""
    turn: float
    """The largest rotation of a joint between two frames, in degrees."""
    turning_bone: str
    """Whose joint that is; empty where there is a single frame."""
    turning_frame: int
    """The frame at which it has turned."""
    position: float
    """Largest distance between a bone as it plays and as it was solved, in chain lengths."""
    angle: float
    """Largest angle between them, in radians."""

    @property
    def plays_alike(self) -> bool:
        """Whether the keys visibly play as they were solved."""
        return self.position < 1e-4 and self.angle < 1e-3

    @property
    def message(self) -> str:
        """The report as a sentence."""
        chains, frames = _count(len(self.chains), "chain"), _count(self.frames, "frame")
        reached = "all reached"
        if self.missed:
            reached = f"{self.missed} not reached, by up to {percent(self.error)} of the chain's length"
        return f"Baked {chains} on {frames} into '{self.action}' ({reached}); {self.playback}"

    @property
    def playback(self) -> str:
        """How the keys play, as the end of a sentence."""
        if self.plays_alike:
            return "playback matches the live result"
        return f"playback is off by up to {percent(self.position)} of the length and {math.degrees(self.angle):.2g}°"


def remember(ob: bpy.types.Object, report: BakeReport) -> None:
    """Make this the last report on an armature object."""
    _last[ob.session_uid] = report


def last(ob: bpy.types.Object) -> BakeReport | None:
    """The report on the last bake of an armature object in this session."""
    return _last.get(ob.session_uid)


def sentences(report: BakeReport) -> Iterator[tuple[str, bool]]:
    """The sentences of a report, each with whether it needs attention."""
    yield f"{_count(report.frames, 'frame')} of {_count(len(report.chains), 'chain')} in '{report.action}'", False
    if not report.missed:
        yield "All targets were reached", False
    for chain in sorted(report.each, key=lambda chain: -chain.missed)[:NAMED]:
        if chain.missed:
            yield (
                f"'{chain.chain}' missed its target on {_count(chain.missed, 'frame')}, "
                f"by up to {percent(chain.error)} of its length",
                True,
            )
    more = sum(chain.missed > 0 for chain in report.each) - NAMED
    if more > 0:
        yield f"{_count(more, 'more chain')} missed a target", True
    yield f"Max error {percent(report.error)}, mean {percent(report.mean_error)}", False
    for joint in report.limited[:NAMED]:
        yield f"'{joint.bone}' stood at a limit on {_count(joint.frames, 'frame')}", False
    if len(report.limited) > NAMED:
        yield f"{_count(len(report.limited) - NAMED, 'more joint')} stood at a limit", False
    if report.turning_bone:
        before, after = report.turning_frame - 1, report.turning_frame
        yield f"Fastest joint: '{report.turning_bone}', {report.turn:.3g}° from frame {before} to {after}", False
    playback = report.playback
    yield playback[0].upper() + playback[1:], not report.plays_alike


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
