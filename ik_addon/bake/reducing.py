"""Reduce the keys of a bake to as few as keep every joint near the full bake, checked in playback.

Keys begin on the first and the last frame. Where a point is too far off, the channel with the largest share in that
gets another key, until no point is. Then every other key is removed again, as far as possible. Between keys, curves are
cubic; the values and slopes of keys are fitted by least squares.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, zip_longest
from typing import NamedTuple

import numpy as np
from bpy.types import Depsgraph, Object, PoseBone, ViewLayer

from ..core import compat, transforms
from ..core.chain_settings import HEEL, TOE
from ..core.channels import FIELDS, read_pose, rotation_field
from ..core.key_curve import keyed_within, read_keys, write_curve
from ..core.keyframes import Channel, curves_of
from ..core.settings import chain_of
from ..core.skeleton import Skeleton, inverse, moved, size_of
from ..core.steps import part
from ..core.translation.sentences import UserError
from ..rig.plan.chain import chain_bones, end_of, tips
from ..solve.maths.products import applied, lengths_of, times
from ..solve.problem import Bools, Floats, Ints
from .bake_report import KeyReport
from .sampling import stepped, world_of
from .scene import time_scale

# ---- which frames of a clip to key; numpy alone

WORST, NEAR = 0.9, 250
"""A key is added where a channel's share is at least this fraction of its largest share within so many frames."""
PASSES = 4
"""Number of passes that try to remove every other key."""
TRIES = 30
"""How many times some of these keys are put back before all of them are."""
LOOSE = 1e-7
"""Weight of the slope between neighboring values, for slopes that no other value determines."""
PINNED = 1e6
"""Weight of a value that a curve should pass through."""

Place = tuple[int, int]
"""A channel: the index of its part, and its index among the part's channels."""


class Part(NamedTuple):
    """A bone whose channels are keyed, on F frames."""

    parent: int
    """Index of the nearest part above it; -1 if there is none."""
    values: Floats
    """(F, c) values of its channels."""
    displacement: Callable[[Floats], Floats]
    """Return how other values (F, c) displace the bone and what it carries, (F, 4, 4) in armature space, while all
    other bones keep their pose."""


class _Keys(NamedTuple):
    """The keys of a channel."""

    frames: Ints
    """(K,) indices of the keyed frames."""
    pinned: Bools
    """(K,) whether the curve passes through the channel's own value there."""

    def kept(self, chosen: Bools) -> _Keys:
        return _Keys(self.frames[chosen], self.pinned[chosen])

    def equals(self, other: _Keys) -> bool:
        return np.array_equal(self.frames, other.frames) and np.array_equal(self.pinned, other.pinned)

    def added(self, frames: Ints) -> _Keys:
        """Return keys with more frames added; frames that already have a key are pinned."""
        pinned = self.frames[self.pinned | np.isin(self.frames, frames)]
        every = np.union1d(self.frames, frames)
        return _Keys(every, np.isin(every, pinned))


class Reduction:
    """The keys of parts that carry points, and how far they displace these points."""

    def __init__(self, parts: Sequence[Part], points: Floats, owners: Ints, world: Floats) -> None:
        """Key the first frame and the last one.

        Args:
            parts: the parts, parents before their children.
            points: (F, m, 3) in armature space.
            owners: (m,) indices of the parts that carry the points.
            world: (F, 3, 3) takes distances to the space in which they are measured.
        """
        self._parts = parts
        self._points = np.ascontiguousarray(points.transpose(2, 1, 0))
        """(3, m, F)"""
        self._owners = owners
        self._world = world
        ends = _Keys(np.array([0, len(points) - 1]), np.ones(2, dtype=bool))
        self._keys = {(p, c): ends for p, part in enumerate(parts) for c in range(part.values.shape[1])}
        self._curves: dict[Place, Curve] = {}
        self._fitted = [part.values.copy() for part in parts]
        self._displacements = [np.empty((0, 4, 4)) for _ in parts]
        self._alone: dict[Place, Floats] = {}
        """(3, 4, F) as from `_motion`, for channels whose keys have not changed since, each alone."""
        self._key(self._keys)

    def curves(self, part: int) -> list[Curve]:
        """Return the curves of the channels of a part."""
        return [self._curves[part, column] for column in range(self._parts[part].values.shape[1])]

    def refine(self, bounds: Floats) -> Generator[None]:
        """Add keys until no point is off by more than its bound; yields now and then.

        Bounds are (m,), or (F, m) if they differ from frame to frame. Once every frame is keyed, only rounding is left.
        """
        while off := self._off(bounds):
            more = {place: self._keys[place].added(self._worst(place, share)) for place, share in off.items()}
            more = {place: keys for place, keys in more.items() if not keys.equals(self._keys[place])}
            if not more:
                return
            self._key(more)
            yield

    def thin(self, bounds: Floats) -> Generator[None]:
        """Remove keys as long as all points stay within their bounds; yields now and then."""
        for number in range(PASSES):
            before = dict(self._keys)
            # Every other key, never the first or the last; odd and even ones alternate.
            out = {place: np.arange(len(keys.frames)) % 2 == (number + 1) % 2 for place, keys in before.items()}
            for own in out.values():
                own[[0, -1]] = False
            for attempt in range(TRIES):
                self._key({place: keys.kept(~out[place]) for place, keys in before.items()})
                off = self._off(bounds)
                yield
                if not off:
                    break
                for place, share in off.items():
                    frames = np.flatnonzero(share)
                    if not _put_back(out[place], before[place].frames, frames, 1):
                        for other, keys in before.items():
                            _put_back(out[other], keys.frames, frames, 1 + attempt)
            else:
                self._key(before)

    def _off(self, bounds: Floats) -> dict[Place, Floats]:
        """Return the channels with the largest share in points too far off, and how far (F,) each moves them."""
        whole: list[Floats] = []
        for moving, own in zip(self._parts, self._displacements, strict=True):
            whole.append(own if moving.parent < 0 else times(whole[moving.parent], own))
        found: dict[Place, Floats] = {}
        bounds = np.broadcast_to(bounds, self._points.shape[2:0:-1]).T
        for owner in np.unique(self._owners).tolist():
            points = np.flatnonzero(self._owners == owner)
            off = self._moved(self._motion(whole[owner]), points, np.s_[:]) > bounds[points]
            frames = np.flatnonzero(off.any(axis=0))
            if not len(frames):
                continue
            off, path = off[:, frames], self._channels_of(owner)
            for place in path:
                if place not in self._alone:
                    part, column = place
                    values = self._parts[part].values.copy()
                    values[:, column] = self._fitted[part][:, column]
                    self._alone[place] = self._motion(self._parts[part].displacement(values))
            shares = np.stack([self._moved(self._alone[place], points, frames) for place in path])
            most = shares.argmax(axis=0)
            for k in np.unique(most[off]).tolist():
                known = found.setdefault(path[k], np.zeros(len(bounds.T)))
                known[frames] = np.maximum(known[frames], np.where(off & (most == k), shares[k], 0.0).max(axis=0))
        return found

    def _channels_of(self, part: int) -> list[Place]:
        """Return the channels of a part and of the parts above it."""
        found = []
        while part >= 0:
            found += [(part, column) for column in range(self._parts[part].values.shape[1])]
            part = self._parts[part].parent
        return found

    def _motion(self, displacement: Floats) -> Floats:
        """Return what a displacement (F, 4, 4) adds to the place of a point, (3, 4, F), as matrices times the point."""
        return np.ascontiguousarray(times(self._world, displacement[:, :3] - np.eye(3, 4)).transpose(1, 2, 0))

    def _moved(self, motion: Floats, points: Ints, frames: Ints | slice) -> Floats:
        """Return how far (p, f) a motion moves points on some frames."""
        x, y, z = self._points[:, points][..., frames]
        return np.asarray(np.sqrt(sum((a * x + b * y + c * z + d) ** 2 for a, b, c, d in motion[..., frames])))

    def _worst(self, place: Place, share: Floats) -> Ints:
        """Return the frames between keys of a channel on which its share (F,) in the error is largest."""
        found = []
        for start, end in pairwise(self._keys[place].frames.tolist()):
            frame = start + int(share[start:end].argmax())
            if share[frame] >= WORST * share[max(frame - NEAR, 0) : frame + NEAR].max() > 0.0:
                found.append(frame)
        return np.array(found, dtype=np.int64)

    def _key(self, keys: dict[Place, _Keys]) -> None:
        """Give channels new keys."""
        changed = set()
        for place, own in keys.items():
            part, column = place
            if place not in self._curves or own is not self._keys[place]:
                self._curves[place] = fitted(self._parts[part].values[:, column], own.frames, own.pinned)
                self._fitted[part][:, column] = self._curves[place].on_frames()
                self._alone.pop(place, None)
                changed.add(part)
        self._keys = {**self._keys, **keys}
        for part in changed:
            self._displacements[part] = self._parts[part].displacement(self._fitted[part])


def _put_back(out: Bools, keys: Ints, frames: Ints, reach: int) -> bool:
    """Put back keys removed from `keys` (K,) within `reach` keys of `frames`; return whether there were any."""
    near = np.searchsorted(keys, frames)[:, None] + np.arange(-reach, reach + 1)
    near = np.unique(np.clip(near, 0, len(keys) - 1))
    was_out = bool(out[near].any())
    out[near] = False
    return was_out


# ---- curves


class Curve(NamedTuple):
    """A curve over F frames that is keyed on K of them."""

    keys: Ints
    """(K,) indices of the keyed frames, ascending from the first frame to the last."""
    values: Floats
    """(K,) values on the keys."""
    slopes: Floats
    """(K,) change per frame on the keys. Between keys on successive frames, the curve is a straight line."""

    @property
    def lines(self) -> Bools:
        """Whether (K - 1,) the curve is a straight line from each key to the next."""
        return np.asarray(np.diff(self.keys) == 1)

    def on_frames(self) -> Floats:
        """Return the values (F,) on all frames."""
        own, length, (start, rising, end, falling) = _segments(self.keys)
        across = start * self.values[own] + end * self.values[own + 1]
        return np.asarray(across + length * (rising * self.slopes[own] + falling * self.slopes[own + 1]))


def fitted(values: Floats, keys: Ints, pinned: Bools) -> Curve:
    """Return the curve with keys `keys` that is nearest to values (F,) and passes through those on `pinned` keys (K,).

    The unknowns are value and slope of each key in turn. Adjacent segments share them, so each key's pair is coupled to
    the next key's: the normal equations have four bands.
    """
    count, (own, length, weights) = len(keys), _segments(keys)
    weights[1::2] *= length
    blocks = np.zeros((3, 2, 2, count))  # couples a key to itself, as start and as end, and to the next one
    wanted = np.zeros((count, 2))
    strength = np.ones(len(values))
    strength[keys[pinned]] = PINNED
    for i in range(2):
        for k in range(2):
            pairs = (weights[i], weights[k]), (weights[2 + i], weights[2 + k]), (weights[i], weights[2 + k])
            for block, (a, b) in zip(blocks, pairs, strict=True):
                block[i, k] = np.bincount(own, strength * a * b, count)
        pulls = strength * values
        wanted[:, i] = np.bincount(own, weights[i] * pulls, count) + np.bincount(own + 1, weights[2 + i] * pulls, count)
    itself, ends, beside = blocks
    itself[..., 1:] += ends[..., :-1]
    after, before = np.minimum(keys + 1, len(values) - 1), np.maximum(keys - 1, 0)
    itself[1, 1] += LOOSE
    wanted[:, 1] += LOOSE * (values[after] - values[before]) / (after - before)
    pairs_of_bands = ((itself[0, 0], itself[1, 1]), (itself[0, 1], beside[1, 0]), (beside[0, 0], beside[1, 1]))
    bands = np.array([np.ravel(pair, order="F") for pair in (*pairs_of_bands, (beside[0, 1], np.zeros(count)))])
    found = _solved(bands, wanted.ravel()).reshape(-1, 2)
    found[pinned, 0] = values[keys[pinned]]
    return Curve(keys, found[:, 0], found[:, 1])


def _segments(keys: Ints) -> tuple[Ints, Ints, Floats]:
    """Return, for each frame, its segment (F,), the segment's length (F,), and the weights (4, F) of its ends.

    Weights are of value and slope at the start, then at the end; slopes are per whole segment.
    """
    frames = np.arange(keys[-1] + 1)
    own = np.minimum(np.searchsorted(keys, frames, side="right") - 1, len(keys) - 2)
    length = np.diff(keys)[own]
    t = (frames - keys[own]) / length
    end = t * t * (3.0 - 2.0 * t)
    return own, length, np.stack([1.0 - end, t * (1.0 - t) ** 2, end, -t * t * (1.0 - t)])


def _solved(bands: Floats, wanted: Floats) -> Floats:
    """Solve a symmetric system with four bands (4, n), the diagonal first, by elimination; right-hand side (n,)."""
    padding = len(bands) - 1
    rows, sides = bands.T.tolist() + [[1.0, 0.0, 0.0, 0.0]] * padding, wanted.tolist() + [0.0] * padding
    for i in range(len(wanted)):
        size, *ties = rows[i]
        for k, tie in enumerate(ties, start=1):
            if tie:
                share, below = tie / size, rows[i + k]
                rows[i + k] = [own - share * other for own, other in zip_longest(below, ties[k - 1 :], fillvalue=0.0)]
                sides[i + k] -= share * sides[i]
    for i in reversed(range(len(wanted))):
        size, a, b, c = rows[i]
        sides[i] = (sides[i] - a * sides[i + 1] - b * sides[i + 2] - c * sides[i + 3]) / size
    return np.array(sides[:-padding])


# ---- the keys of a bake

ROOM = 0.98
"""Keys are chosen for this fraction of the bound, because Blender computes in single precision."""
HELD = 4e-5
"""Points in contact stay within this fraction of the limb's length of where they were, so they don't slide."""
FLAT = 0.25
"""Points of a flat foot, and its joint, stay within this fraction of that distance, so the foot doesn't turn."""
ROUNDING = 1e-6
"""Points may always be off by this fraction of their distance from the origin."""
SUNK = 0.5
"""The bound of a point that is deeper in the ground than before nevertheless is multiplied by this."""
LEVER = 0.05
"""A keyed bone turns by no more than if it were this long and half as wide, in sizes of the figure."""
ATTEMPTS = 6
"""How often keys are added if playback is farther off than computed."""


class _Played(NamedTuple):
    """Playback of an armature on F frames."""

    poses: Floats
    """(F, n, 4, 4) poses of the keyed bones in armature space."""
    points: Floats
    """(F, m, 3) the points of `_points_of` in world space."""
    world: Floats
    """(F, 4, 4) world matrices of the object."""
    touching: Bools
    """(F, t, 2) whether heel and toe of each chain are in contact."""


Height = Callable[[Floats], Floats]
"""Returns the height (F, n) of points (F, n, 3); NaN where there is no ground."""

Floor = Callable[[Sequence[int], Floats, float], Generator[float, None, Height]]
"""Samples a ground: takes F frames, points (F, n, 3) in world space, and about the length of a leg; yields progress (0
to 1). Returns the height of points near these."""


class KeyReducer:
    """Reduces the keys that a bake has written."""

    def __init__(self, view_layer: ViewLayer, ob: Object, keyed: Sequence[Channel], frames: Sequence[int]) -> None:
        """Read the keys that were written.

        Args:
            view_layer: where they play.
            ob: the armature object.
            keyed: the channels that were keyed on the frames.
            frames: these frames, two or more.
        """
        self._view_layer = view_layer
        self._ob = ob
        self._frames = np.arange(frames[0], frames[-1] + 1)
        self._times: Floats = self._frames * np.float64(time_scale(view_layer.id_data))
        self._skeleton = Skeleton.of(ob)
        order = {name: index for index, name in enumerate(self._skeleton.names)}
        self._bones = sorted({order[channel.bone] for channel in keyed})
        curves = curves_of(ob)
        self._channels: list[list[Channel]] = [[] for _ in self._bones]
        self._before = 0
        for channel in keyed:
            curve = curves[channel.data_path, channel.index]
            self._before += int(keyed_within(read_keys(curve), self._times[0], self._times[-1]).sum())
            values = np.array([curve.evaluate(time) for time in self._times.tolist()])
            self._channels[self._bones.index(order[channel.bone])].append(replace(channel, values=values))
        self._owners, self._places, self._local = _points_of(ob, self._skeleton, self._bones)
        self._tips = [tip for tip in tips(ob) if end_of(tip) is not None]
        # In the order of `_points_of`.
        self._pivots = 2 * len(ob.pose.bones) + np.arange(2 * len(self._tips))
        self._joints = slice(0, 2 * (len(ob.pose.bones) + len(self._tips)))

    def reduce(self, bound: float, floor: Floor | None) -> Generator[float, None, KeyReport]:
        """Keep as few keys as hold all joints within a distance, in Blender units; yields progress (0 to 1).

        Heels and toes that are above a floor stay above it.

        Raises:
            UserError: no keys keep to the distance.
        """
        before = yield from self._played(0.0, 0.4)
        heights = (yield from self._heights(floor, before)) if floor is not None and len(self._pivots) else None
        inside = np.flatnonzero(self._owners >= 0)
        points = before.points[:, inside] - before.world[:, None, :3, 3]
        points = applied(inverse(before.world)[:, None, :3, :3], points)
        reduction = Reduction(self._parts(before), points, self._owners[inside], before.world[:, :3, :3])
        limits = np.minimum(self._holding(before), bound)
        if heights is not None:
            height, above, rounding = heights
            room = np.where(above >= 0.0, np.maximum(above, rounding), np.inf)  # none is lost below the floor
            limits[:, self._pivots] = np.minimum(limits[:, self._pivots], room)
        bounds = ROOM * limits[:, inside]
        for attempt in range(ATTEMPTS):
            for _step in reduction.refine(bounds):
                yield 0.5
            if not attempt:
                for _step in reduction.thin(bounds):
                    yield 0.5
            curves = [reduction.curves(part) for part in range(len(self._bones))]
            self._write(curves)
            after = yield from self._played(0.6, 1.0)
            away = lengths_of(after.points - before.points)
            distances = away.max(axis=0)
            sunk = np.zeros(away.shape, dtype=bool)
            if heights is not None:  # deeper below the floor than before
                sunk[:, self._pivots] = height(after.points[:, self._pivots]) < np.minimum(above, 0.0) - rounding
            is_held = (away <= limits)[:, inside].all() and not sunk[:, inside].any()
            if distances.max() <= bound and (is_held or attempt == ATTEMPTS - 1):
                meters = float(distances[self._joints].max()) * self._view_layer.id_data.unit_settings.scale_length
                return KeyReport(self._before, sum(len(curve.keys) for part in curves for curve in part), meters)
            bounds[sunk[:, inside]] *= SUNK
            bounds *= np.minimum(ROOM * limits / np.maximum(away, 1e-30), 1.0)[:, inside].min(axis=0)
            if distances[self._owners < 0].max(initial=0.0) > bound:
                bounds *= 0.5
            if attempt == ATTEMPTS - 2:
                bounds[:] = 0.0  # all keys: only what moves differently each time is still off
        raise UserError(
            "The keys of '{object}' can't be reduced, because it moves differently each time it plays. Bake all keys",
            object=self._ob.name,
        )

    def _heights(self, floor: Floor, played: _Played) -> Generator[float, None, tuple[Height, Floats, float]]:
        """Return the height over a floor, that (F, P) of heels and toes, and its rounding; yields progress (0 to 1)."""
        points = played.points[:, self._pivots]
        reach = max(sum(bone.bone.length for bone in chain_bones(tip)) for tip in self._tips)
        reach *= float(size_of(played.world[0]))
        height = yield from part(floor(self._frames.tolist(), points, reach), 0.4, 0.4)
        return height, height(points), ROUNDING * float(np.abs(points).max())

    def _played(self, first: float, last: float) -> Generator[float, None, _Played]:
        """Play all frames; yields progress, from `first` to `last`."""
        everything = np.arange(len(self._ob.pose.bones))

        def read(depsgraph: Depsgraph) -> tuple[Floats, Floats, Floats, Bools]:
            seen, world = self._ob.evaluated_get(depsgraph), world_of(self._ob, depsgraph)
            pose = read_pose(seen, everything)
            points = moved(world, moved(pose[self._places], self._local))
            contacts = [chain_of(seen.pose.bones[tip.name]).contact for tip in self._tips]
            touching = np.array([[name in contact for name in (HEEL, TOE)] for contact in contacts], dtype=bool)
            return pose[self._bones], points, world, touching.reshape(-1, 2)

        found = yield from part(stepped(self._view_layer, self._frames.tolist(), read), first, last)
        return _Played(*map(np.array, zip(*found, strict=True)))

    def _holding(self, played: _Played) -> Floats:
        """How far (F, m) points may move without contacts sliding or turning; infinite without contact."""
        found = np.full(played.points.shape[:2], np.inf)
        size = size_of(played.world)
        rounding = ROUNDING * np.abs(played.points).max(axis=(1, 2))
        for row, tip in enumerate(self._tips):
            heel, toe = played.touching[:, row].T
            is_flat = heel & toe
            held = HELD * sum(bone.bone.length for bone in chain_bones(tip)) * size
            held = np.maximum(np.where(is_flat, FLAT * held, held), rounding)
            pivot = 2 * (len(self._ob.pose.bones) + row)  # in the order of `_points_of`
            joint = 2 * self._ob.pose.bones.find(end_of(tip).name)
            for point, touches in ((joint, is_flat), (pivot, heel), (pivot + 1, toe)):
                found[touches, point] = held[touches]
        return found

    def _parts(self, played: _Played) -> list[Part]:
        """Return the keyed bones, as they move in playback."""
        bones, parts = self._ob.pose.bones, []
        for index, (bone, keyed) in enumerate(zip(self._bones, self._channels, strict=True)):
            values = np.stack([channel.values for channel in keyed], axis=1)
            basis = partial(_basis, bones[bone], keyed)
            own = inverse(played.poses[:, index])
            parents = times(played.poses[:, index], inverse(basis(values)))
            above = [self._bones.index(b) for b in self._skeleton.ancestors(bone) if b in self._bones]
            parts.append(Part(above[0] if above else -1, values, partial(_displacement, parents, basis, own)))
        return parts

    def _write(self, reduced: Sequence[Sequence[Curve]]) -> None:
        """Write reduced curves for the channels of each bone."""
        curves = curves_of(self._ob)
        pace = float(self._times[1] - self._times[0])
        for keyed, found in zip(self._channels, reduced, strict=True):
            for channel, own in zip(keyed, found, strict=True):
                curve = curves.get((channel.data_path, channel.index))
                if curve is None:
                    raise UserError("The action of '{object}' is gone. Bake again", object=self._ob.name)
                write_curve(curve, self._times[own.keys], own.values, own.slopes / pace, own.lines)
        compat.tag(self._ob)


def _points_of(ob: Object, skeleton: Skeleton, keyed: Sequence[int]) -> tuple[Ints, Ints, Floats]:
    """Return the points that should keep their places: heads and tails of all bones, and pivots of hands and feet.

    Bones that carry too little to show how they turn get a point along them, and one beside them.

    Returns:
        owners: (m,) index of the keyed bone that moves each point; -1: none.
        bones: (m,) the bone that each point belongs to.
        local: (m, 3) each point in the axes of that bone.
    """
    points: list[tuple[int, Sequence[float]]] = []
    for index, length in enumerate(skeleton.lengths.tolist()):
        points += [(index, (0.0, 0.0, 0.0)), (index, (0.0, length, 0.0))]
    for tip in tips(ob):
        end, chain = end_of(tip), chain_of(tip)
        if end is not None:
            points += [(skeleton.names.index(end.name), pivot[:]) for pivot in (chain.heel_pivot, chain.toe_pivot)]
    points += _levers(skeleton, keyed)
    owners = []
    for index, _local in points:
        carriers = [bone for bone in (index, *skeleton.ancestors(index)) if bone in keyed]
        owners.append(keyed.index(carriers[0]) if carriers else -1)
    return np.array(owners), np.array([index for index, _ in points]), np.array([local for _, local in points])


def _basis(bone: PoseBone, keyed: Sequence[Channel], values: Floats) -> Floats:
    """Return the basis matrices (F, 4, 4) of a bone from the values (F, c) of its keyed channels."""
    own = {field: np.tile(np.array(getattr(bone, field)[:], np.float64), (len(values), 1)) for field in FIELDS}
    for column, channel in enumerate(keyed):
        own[channel.field][:, channel.index] = values[:, column]
    turns = transforms.rotations(own[rotation_field(bone.rotation_mode)], bone.rotation_mode)
    return transforms.matrices(own["location"], turns, own["scale"])


def _displacement(parents: Floats, basis: Callable[[Floats], Floats], own: Floats, values: Floats) -> Floats:
    """Return how values (F, c) displace a bone in armature space, as matrices (F, 4, 4).

    Args:
        parents: (F, 4, 4) poses that the basis is applied to.
        basis: makes basis matrices from values.
        own: (F, 4, 4) inverse of the bone's poses in the full bake.
        values: (F, c) values of its keyed channels.
    """
    return times(times(parents, basis(values)), own)


def _levers(skeleton: Skeleton, keyed: Sequence[int]) -> list[tuple[int, Sequence[float]]]:
    """Return points, as bones and places in their axes, for keyed bones that carry too little to show how they turn."""
    heads, found = skeleton.rest[:, :3, 3], list[tuple[int, Sequence[float]]]()
    tails = heads + skeleton.rest[:, :3, 1] * skeleton.lengths[:, None]
    size = LEVER * float(np.ptp(heads, axis=0).max())
    above = {bone: {bone, *skeleton.ancestors(bone)} for bone in range(len(heads))}
    for index in keyed:
        carried = [bone for bone, own in above.items() if index in own]
        if any(bone in keyed for bone in carried if bone != index):
            continue
        places = (np.concatenate([heads[carried], tails[carried]]) - heads[index]) @ skeleton.rest[index, :3, :3]
        if np.linalg.norm(places, axis=1).max() < size:
            found.append((index, (0.0, size, 0.0)))
        if np.linalg.norm(places[:, [0, 2]], axis=1).max() < 0.5 * size:
            found.append((index, (0.5 * size, 0.0, 0.0)))
    return found
