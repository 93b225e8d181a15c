"""Finding where a point of a foot or hand rests, from the speed and height of its path, with hysteresis, and keying it.

Speed limits are fractions of the point's own top speed, so a clip that plays too slowly, as recordings at 120 frames a
second often do, has the same contacts. Speeds are measured over a fraction of the point's pace, not from frame to
frame, so contacts don't depend on the frame rate either. Heights are compared with that of the rest itself: floors of
recordings tilt, and stairs have many heights.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from typing import Literal, NamedTuple

import numpy as np
from bpy.types import Context, Object, PoseBone

from ..bake.scene import over_frames
from ..core import contact_keys, keyframes
from ..core.steps import part
from ..rig.plan.chain import end_of
from ..solve.maths.products import lengths_of
from ..solve.maths.runs import runs
from ..solve.problem import Bools, Floats
from ..targets.snap import Chain
from .filling import smoothed, window
from .ground_object import Ground
from .sampled_feet import Feet, is_of_leg, sample
from .standing import Foot

CALM = 0.5
"""A path is smoothed until noise moves a point at rest no faster than this fraction of what counts as slow."""
SLOWEST = 1.0
"""Maximum pace of a point, in seconds. The pace is the time to cover the length of the limb at top speed."""
FASTEST = 10.0
"""Maximum top speed to reckon with, in limb lengths per second: next to a spin, every other step would be slow."""
STRIDE = 0.05
"""Speeds are measured over this fraction of the pace, however many frames that is."""
WIDEST = 0.25
"""A path is smoothed over at most this fraction of the pace before and after a frame."""
RAISED = 0.1
"""A foot may be held up if it rests higher than another one at the same time by more than this, in limb lengths."""
LEVEL = np.sin(np.radians(15.0))
"""Sine of the largest tilt at which a foot still counts as standing on something."""
BEND_OF_NOISE, STEP_OF_NOISE = 2.7, 1.54
"""For noise with a standard deviation of 1 along each axis: the lower quartile of its second differences, and the
median length of a difference, per unit of its deviation."""
SPIKE = 2
"""Neighbors on each side in the median that gives the top speed: a single jump in a recording must not decide it."""


class Criteria(NamedTuple):
    """What counts as a contact. Heights and speeds are in lengths of the limb."""

    slow: float = 0.13
    """A contact begins where the point is slower than this fraction of its top speed."""
    fast: float = 0.24
    """A contact ends before the point gets faster than this fraction of its top speed."""
    leaving: float = 0.1
    """A contact ends with the last frame before that on which the point is no faster than this fraction."""
    still: float = 0.03
    """Speeds below this, per second, count as slow however little the point moves in the clip."""
    high: float = 0.015
    """A contact also ends where the point is this much higher than its resting height."""
    low: float = 0.015
    """A contact begins where the point is no more than this above its resting height."""
    lift: float = 0.01
    """A point that rests higher than before or after must come from above and leave upwards by at least this much."""
    shortest: float = 0.06
    """Minimum duration in seconds."""


HEEL = Criteria()
"""Criteria for a heel, which hits the ground, rests and then rises slowly."""
TOE = Criteria(slow=0.045, high=0.03, low=0.0055)
"""Criteria for the ball of a foot, which comes down slowly and rises a little with the heel before it takes off."""


class Rests(NamedTuple):
    """Where a leg's foot rests on F frames. Heights are in lengths of the limb."""

    contacts: Bools
    """(2, F) contacts of heel and toe."""
    heights: Floats
    """(2, F) heights of heel and toe."""
    above: Floats | None
    """(2, F) heights above the ground, NaN where there is no ground; None if the ground is not known."""
    tilts: Floats
    """(F,) sines of the tilt of the line from heel to toe."""


class Path(NamedTuple):
    """The path of a point of a limb."""

    points: Floats
    """(F, 3) positions, one per frame."""
    length: float
    """Length of the limb."""
    rate: float
    """Frames per second."""

    def speeds(self, reach: float) -> Floats:
        """Return speeds (F,) in limb lengths per second, over `reach` frames before or after: whichever is slower."""
        count = len(self.points)
        if count < 2:
            return np.zeros(count)
        reach = min(max(reach, 1.0), count - 1.0)
        frames = np.arange(count, dtype=np.float64)
        starts = np.clip(np.append(frames - reach, frames), 0.0, count - 1.0 - reach)
        ways = self._between(starts + reach) - self._between(starts)
        speeds = lengths_of(ways) * (self.rate / self.length / reach)
        before, after = (_medians(own, max(round(reach), 1), "edge") for own in (speeds[:count], speeds[count:]))
        return np.asarray(np.minimum(before, after))

    def _between(self, places: Floats) -> Floats:
        """Return positions (n, 3) of the point at times `places` (n,) between frames."""
        frames = np.arange(len(self.points))
        return np.stack([np.interp(places, frames, own) for own in self.points.T], axis=1)


def find_contacts(path: Path, criteria: Criteria = HEEL) -> Bools:
    """Return whether (F,) a point rests, for each frame."""
    pace = path.rate * min(1.0 / max(_top(path, 1.0), 1e-300), SLOWEST)
    reach = max(STRIDE * pace, 1.0)
    top = min(_top(path, reach), FASTEST)
    path = _calmed(path, CALM * max(criteria.slow * top, criteria.still), reach, WIDEST * pace)
    speeds, heights = path.speeds(reach), path.points[:, 2] / path.length
    parts = (criteria.slow, criteria.fast, criteria.leaving)
    slow, fast, stays = (speeds <= max(part * top, criteria.still) for part in parts)
    found = []
    for start, end in runs(fast):
        rests = slow[start:end]
        if not rests.any():
            continue
        stillest = speeds[start:end] <= np.median(speeds[start:end])
        level = float(np.median(heights[start:end][stillest]))
        for first, last in runs(heights[start:end] <= level + criteria.high):
            down = rests & (heights[start:end] <= level + criteria.low)
            begun = np.flatnonzero((down if down[first:last].any() else rests)[first:last])
            if len(begun):
                begin = start + first + int(begun[0])
                calm = np.flatnonzero(stays[begin : start + last])
                found.append((begin, begin + 1 + int(calm[-1]) if len(calm) else start + last))
    contacts = np.zeros(len(speeds), dtype=bool)
    least = criteria.shortest * path.rate
    for start, end in _standing(found, heights, criteria, least):
        contacts[start:end] = end - start >= least
    return contacts


def _standing(
    found: list[tuple[int, int]], heights: Floats, criteria: Criteria, least: float
) -> Iterator[tuple[int, int]]:
    """Yield the rests that are on something: a foot held up also rests, at the top of its path.

    Paths between rests count if they last `least` frames or more: a clip may begin with one frame in the rest pose.
    """
    levels = [float(np.median(heights[start:end])) for start, end in found]
    for i, (start, end) in enumerate(found):
        before = found[i - 1][1] if i else 0
        after = found[i + 1][0] if i + 1 < len(found) else len(heights)
        ways = [way for way in (heights[before:start], heights[end:after]) if len(way) >= least]
        neighbors = levels[max(i - 1, 0) : i] + levels[i + 1 : i + 2]
        lowest = min([*neighbors, *(float(way.min()) for way in ways)], default=levels[i])
        is_raised = levels[i] > lowest + criteria.high
        if not is_raised or all(way.max() >= levels[i] + criteria.lift for way in ways):
            yield start, end


def without_held(feet: Sequence[Rests]) -> list[Bools]:
    """Return the contacts (2, F) of each foot without those in which it is held up in the air.

    The path of a foot that never comes down doesn't show this. A foot may be held up while another one rests lower. Its
    height above the ground decides if that is known, otherwise its tilt: a foot on a ledge or a stair is level, and has
    the ground close below. While no other foot rests, as in a jump, a foot is in the air if the rests before and after
    are lower.
    """
    return [_without_held(foot, [other for other in feet if other is not foot]) for foot in feet]


def _without_held(foot: Rests, others: Sequence[Rests]) -> Bools:
    contacts = foot.contacts.copy()
    for start, end in runs(np.asarray(foot.contacts.any(axis=0))):
        here = slice(start, end)
        lower = [other for other in others if other.contacts[:, here].any()]
        around = _around((foot, *others), here) if others and not lower else []
        floor = max(around, default=np.inf)
        floor = min((_level(other.contacts, other.heights, here) for other in lower), default=floor)
        if not _level(foot.contacts, foot.heights, here) > floor + RAISED:
            continue
        if not lower:
            is_held = foot.above is None or _level(foot.contacts, foot.above, here) > RAISED
        elif foot.above is not None:
            ground = min(_level(other.contacts, other.above, here) for other in lower if other.above is not None)
            is_held = _level(foot.contacts, foot.above, here) > max(ground, 0.0) + RAISED
        else:
            is_held = foot.heights.min() > floor + RAISED and foot.tilts[here].min() > LEVEL
        contacts[:, here] &= not is_held
    return contacts


def _around(feet: Sequence[Rests], here: slice) -> list[float]:
    """Return the heights of the nearest rests of feet before and after the frames `here`.

    Empty if there is only one of both; without any, as in a clip in place, the lowest height of the first foot.
    """
    found = [(start, end, foot) for foot in feet for start, end in runs(np.asarray(foot.contacts.any(axis=0)))]
    before = max(((end, start, i) for i, (start, end, _) in enumerate(found) if end <= here.start), default=None)
    after = min(((start, end, i) for i, (start, end, _) in enumerate(found) if start >= here.stop), default=None)
    sides = [found[side[2]] for side in (before, after) if side is not None]
    if not sides:
        return [float(feet[0].heights.min())]
    levels = [_level(foot.contacts, foot.heights, slice(start, end)) for start, end, foot in sides]
    return levels if len(levels) == 2 else []


def _level(contacts: Bools, heights: Floats, here: slice) -> float:
    """Return the median height at which a foot rests on the frames `here`."""
    return float(np.median(heights[:, here][contacts[:, here]]))


def _top(path: Path, reach: float) -> float:
    """Return the top speed, in lengths of the limb per second."""
    return float(_medians(path.speeds(reach), SPIKE, "reflect").max(initial=0.0))


def _calmed(path: Path, fastest: float, reach: float, widest: float) -> Path:
    """Return the path, smoothed so that noise moves a resting point no faster than `fastest` over `reach` frames.

    Noise is measured where the path bends least: on a quarter of the frames, movement bends it less than noise does.
    """
    if len(path.points) < 5:
        return path
    bends = lengths_of(np.diff(path.points, 2, axis=0))
    noise = float(np.quantile(bends, 0.25)) / BEND_OF_NOISE * path.rate / path.length
    step = round(reach)
    for width in range(round(widest) + 1):
        weights = np.pad(window(width), (0, step))
        rest = weights - np.roll(weights, step)
        if noise * STEP_OF_NOISE * float(np.sqrt(np.square(rest).sum())) <= fastest * reach:
            break
    return path._replace(points=np.stack([smoothed(own, width) for own in path.points.T], axis=1))


def _medians(values: Floats, reach: int, beyond: Literal["edge", "reflect"]) -> Floats:
    """Return the median of each value (F,) and its neighbors up to `reach` places away, padded as `beyond` says."""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(values, reach, mode=beyond), 2 * reach + 1)
    return np.asarray(np.median(around, axis=1))


# ---- contacts of feet, keyed on their chains


def key_contacts(
    context: Context,
    tips: Sequence[PoseBone],
    frames: Sequence[int],
    *,
    on: Object | None,
    floor: Object | None,
    sensitivity: float = 1.0,
    shortest: float = HEEL.shortest,
) -> Generator[float, None, int]:
    """Find and key contacts on a range of frames; yields progress (0 to 1). Closing the generator undoes everything.

    Args:
        context: gives the scene and the view layer.
        tips: the tip bones of the chains, one or more of one armature.
        frames: ascending frames; contact keys from the first to the last are replaced.
        on: what the feet stand on; None if that doesn't move.
        floor: the ground; None if it is not known; a foot that rests in the air above it doesn't touch it.
        sensitivity: higher values also accept faster and higher contacts.
        shortest: minimum duration of a contact, in seconds.

    Returns:
        The number of contacts found.

    Raises:
        UserError: contacts can't be found or keyed; nothing was changed.
    """
    view_layer, scene, ob = context.view_layer, context.scene, tips[0].id_data
    rate = scene.render.fps / scene.render.fps_base
    with over_frames(view_layer, ob) as (undo, before):
        keyframes.check(ob, [contact_keys.channel(tip, np.zeros(1)) for tip in tips])
        with ExitStack() as aside:
            feet = yield from part(sample(context, tips, frames, on, floor, aside), 0.0, 0.8)
        chains, found, seen = feet.snap.chains, [], []
        for chain in chains:
            tip, foot, length = feet.tip(chain), feet.foot(chain), feet.length(chain)
            feet.keep_pivots(chain, undo)
            parts = (HEEL, TOE) if end_of(tip) is not None else (HEEL,)
            contacts = np.zeros((2, len(frames)), dtype=bool)
            for pivot, criteria in enumerate(parts):
                path = Path(foot.points(pivot), length, rate)
                contacts[pivot] = find_contacts(path, _as_wanted(criteria, sensitivity, shortest))
            found.append(contacts)
            seen.append(foot)
        legs = [i for i, chain in enumerate(chains) if is_of_leg(feet.figure, feet.tip(chain))]
        surface = yield from part(feet.look_at([chains[i] for i in legs]), 0.8, 0.95)
        rests = [_rests(feet, chains[i], seen[i], found[i], surface) for i in legs]
        for i, contacts in zip(legs, without_held(rests), strict=True):
            found[i] = contacts
        for chain, contacts in zip(chains, found, strict=True):
            undo.callback(contact_keys.write(feet.tip(chain), contacts, feet.times))
        yield 0.95
        before.restore()
    return sum(len(runs(np.asarray(contacts.any(axis=0)))) for contacts in found)


def _rests(feet: Feet, chain: Chain, foot: Foot, contacts: Bools, surface: Ground | None) -> Rests:
    """Return how high and how tilted a foot rests."""
    points, length = np.stack([foot.points(pivot) for pivot in range(2)], axis=1), feet.length(chain)
    above = None if surface is None else surface.heights(points).T / length
    way = points[:, 1] - points[:, 0]
    return Rests(contacts, points[..., 2].T / length, above, np.abs(way[:, 2]) / np.maximum(lengths_of(way), 1e-300))


def _as_wanted(criteria: Criteria, sensitivity: float, shortest: float) -> Criteria:
    limits = ("slow", "fast", "leaving", "still", "high", "low")
    return criteria._replace(shortest=shortest, **{name: sensitivity * getattr(criteria, name) for name in limits})
