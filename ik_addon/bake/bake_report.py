"""The result of a bake, in numbers and in words."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bpy.types import Object

from ..core.report import Remark, Report, count_of_frames, percent, rounded
from ..core.translation.sentences import count, say

NAMED = 5
"""Maximum number of chains or joints that the report names."""


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
    name: str
    """What the list of chains and the message call it."""


@dataclass(frozen=True)
class LimitReport:
    """A joint that was at a limit."""

    bone: str
    frames: int
    """Number of frames on which it was at a limit."""


@dataclass(frozen=True)
class KeyReport:
    """The result of reducing keys."""

    before: int
    """Number of keys of the full bake; the next one is the number after reducing."""
    after: int
    distance: float
    """Largest distance of a joint from where the full bake has it, in meters by the scene's units."""


@dataclass(frozen=True)
class BakeReport(Report):
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
    """The same for each chain."""
    limited: tuple[LimitReport, ...]
    """The joints that were at a limit on any frame, most frames first."""
    turn: float
    """The largest rotation of a joint between two keyed frames, in degrees per frame."""
    turning_bone: str
    """The bone of that joint; empty if there is only one frame."""
    turning_frames: tuple[int, int]
    """These two frames."""
    turns: tuple[float, ...]
    """The same in each of several equal parts of the range."""
    ends: tuple[int, int]
    """The first and the last keyed frame."""
    position: float
    """Largest distance between a bone in playback and in the solution, in chain lengths."""
    angle: float
    """Largest angle between them, in radians."""
    live_turn: float | None = None
    """The value of `turn` in the live solution, if Smooth baked another one; None if not."""
    keys: KeyReport | None = None
    """The result of reducing keys; None if they were not reduced."""
    blended: int = 0
    """Number of frames on which a chain is blended with FK, and so neither reaches nor misses its target."""

    @property
    def plays_alike(self) -> bool:
        """Whether playback of the keys looks the same as the solution."""
        return self.position < 1e-4 and self.angle < 1e-3

    @property
    def summary(self) -> str:
        """The report in one short line; the panel shows the rest."""
        chains, frames = count_of_chains(len(self.chains)), count_of_frames(self.frames)
        done = say("Baked {chains} on {frames}", chains=chains, frames=frames)
        if not self.plays_alike:
            return say("{done}. Playback differs, see Last Bake", done=done)
        return say("{done}. Targets were missed, see Last Bake", done=done) if self.missed else done

    @property
    def playback(self) -> str:
        """How playback matches the solution, in a sentence."""
        if self.plays_alike and self.keys is not None:
            kept = "{after} of {before} keys were kept, with all joints within {distance} mm of the full bake"
            distance = f"{1000.0 * self.keys.distance:.3g}"
            return say(kept, after=self.keys.after, before=self.keys.before, distance=distance)
        if self.plays_alike and self.live_turn is not None:
            return say("Playback matches the smooth solution")
        if self.plays_alike:
            return say("Playback matches the live result")
        off = "Playback is off by up to {distance} of the chain's length and {angle}°"
        return say(off, distance=percent(self.position), angle=rounded(math.degrees(self.angle)))

    def sentences(self) -> Iterator[str]:
        """Yield how targets were reached, which joints were at a limit or fast, and how the keys play."""
        chains, frames = count_of_chains(len(self.chains)), count_of_frames(self.frames)
        yield say("Baked {chains} on {frames} into '{action}'", chains=chains, frames=frames, action=self.action)
        if not self.missed and self.blended:
            yield say("All targets were reached where Influence is 1")
        elif not self.missed:
            yield say("All targets were reached")
        missing = [chain for chain in sorted(self.each, key=lambda chain: -chain.missed) if chain.missed]
        for chain in missing[:NAMED]:
            missed = "'{chain}' missed its target on {frames}, by up to {error} of its length"
            frames, error = count_of_frames(chain.missed), percent(chain.error)
            yield Remark(say(missed, chain=chain.name, frames=frames, error=error))
        more = len(missing) - NAMED
        if more > 0:
            yield Remark(count(more, "1 more chain missed a target", "{count} more chains missed a target"))
        if self.missed:
            yield say("Max error {error}, mean {mean}", error=percent(self.error), mean=percent(self.mean_error))
        for joint in self.limited[:NAMED]:
            yield say("'{bone}' was at a limit on {frames}", bone=joint.bone, frames=count_of_frames(joint.frames))
        more = len(self.limited) - NAMED
        if more > 0:
            yield count(more, "1 more joint was at a limit", "{count} more joints were at a limit")
        if self.turning_bone:
            fastest = "Fastest joint: '{bone}', {angle}° per frame from frame {before} to {after}"
            before, after = self.turning_frames
            yield say(fastest, bone=self.turning_bone, angle=f"{self.turn:.3g}", before=before, after=after)
        if self.live_turn is not None:
            yield say("Fastest joint without Smooth: {angle}°", angle=f"{self.live_turn:.3g}")
        yield self.playback if self.plays_alike else Remark(self.playback)


_last: dict[int, BakeReport] = {}
"""By `session_uid` of the armature object, which no other object gets until Blender is closed."""


def remember(ob: Object, report: BakeReport) -> None:
    """Remember the last report on an armature object."""
    _last[ob.session_uid] = report


def forget(ob: Object) -> None:
    """Forget the report on an armature object."""
    _last.pop(ob.session_uid, None)


def last(ob: Object) -> BakeReport | None:
    """Return the report on the last bake of an armature object in this session."""
    return _last.get(ob.session_uid)


def count_of_chains(number: int) -> str:
    """Return a number of chains in words."""
    return count(number, "1 chain", "{count} chains")
