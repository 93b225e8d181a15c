"""Fewer keys for a bake: as few as keep every joint near where the full bake has it, checked as they play."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import bpy
import numpy as np

from .. import compat
from ..clip.reduction import Part, Reduction
from ..clip.spline import Curve
from ..data.contact_settings import HEEL, TOE
from ..data.settings import chain_of
from ..pose import channels, transforms
from ..pose.channels import FIELDS, rotation_field
from ..pose.key_curve import keyed_within, write_curve
from ..pose.keyframes import Channel, curves_of, read_keys
from ..pose.skeleton import Skeleton, inverse, matrix_array
from ..pose.steps import part
from ..rig.plan.chain import chain_bones, end_of, tips
from ..solve.maths.products import applied, determinants, lengths_of, times
from ..solve.problem import Bools, Floats, Ints
from .bake_report import KeyReport
from .sampling import at_frame
from .selection import BakeError, time_scale

ROOM = 0.98
"""The part of the bound that keys are chosen for: Blender computes with single precision."""
HELD = 4e-5
"""What touches stays within this fraction of a limb's length of where it was, both ways: so it still stands still."""
FLAT = 0.25
"""A foot that stands flat stays within this part of that, with its joint: so it doesn't turn."""
ROUNDING = 1e-6
"""By this fraction of how far they are from the origin, points may be off anyway."""
SUNK = 0.5
"""Where a foot is deeper in the ground than before all the same, points may go no farther than this part of it."""
ATTEMPTS = 6
"""How often keys are added where what plays is farther off than what was computed."""


@dataclass(frozen=True)
class _Above:
    """How far P points are above a floor on F frames."""

    look: Callable[[Floats], Floats]
    before: Floats
    """(F, P) not a number where there is no floor."""
    rounding: float

    @property
    def room(self) -> Floats:
        """How far (F, P) points may go; infinite where they are below it anyway."""
        return np.where(self.before >= 0.0, np.maximum(self.before, self.rounding), np.inf)

    def sunk(self, points: Floats) -> Bools:
        """Which (F, P) of the points (F, P, 3) are deeper below it than they were."""
        return np.asarray(self.look(points) < np.minimum(self.before, 0.0) - self.rounding)


@dataclass(frozen=True)
class _Played:
    """An armature as it plays on F frames."""

    poses: Floats
    """(F, n, 4, 4) of the keyed bones in armature space."""
    points: Floats
    """(F, m, 3) in world space."""
    world: Floats
    """(F, 4, 4) of the object."""
    touching: Bools
    """(F, t, 2) whether heel and toe of each chain touch."""


class Floor(Protocol):
    """What knows a ground."""

    def steps(
        self, frames: Sequence[int], points: Floats, reach: float
    ) -> Generator[float, None, Callable[[Floats], Floats]]:
        """Look at it on frames; yields the share that is done.

        Args:
            frames: F.
            points: (F, n, 3) in world space, what it is asked about is near to these.
            reach: about the length of a leg.

        Returns:
            What tells how high (F, n) points (F, n, 3) are above it; not a number where there is none.
        """


class KeyReducer:
    """What a bake has keyed, and how to key less of it."""

    def __init__(
        self, view_layer: bpy.types.ViewLayer, ob: bpy.types.Object, keyed: Sequence[Channel], frames: Sequence[int]
    ) -> None:
        """Read the keys that were written.

        Args:
            view_layer: where they play.
            ob: the armature object.
            keyed: what was keyed, from the first to the last of some frames.
            frames: these frames, two or more.
        """
        self._view_layer = view_layer
        self._ob = ob
        self._frames = np.arange(frames[0], frames[-1] + 1)
        scene: Any = view_layer.id_data
        self._times: Floats = self._frames * np.float64(time_scale(scene))
        self._skeleton = Skeleton.of(ob)
        order = {name: index for index, name in enumerate(self._skeleton.names)}
        self._bones = sorted({order[channel.bone] for channel in keyed})
        curves = curves_of(compat.curve_owner(ob))
        self._channels: list[list[Channel]] = [[] for _ in self._bones]
        self._before = 0
        for channel in keyed:
            curve = curves[channel.data_path, channel.index]
            self._before += int(keyed_within(read_keys(curve), self._times[0], self._times[-1]).sum())
            values = np.array([curve.evaluate(time) for time in self._times.tolist()])
            own = Channel(channel.bone, channel.field, channel.index, values)
            self._channels[self._bones.index(order[channel.bone])].append(own)
        self._owners, self._places, self._local = _points_of(ob, self._skeleton, self._bones)
        self._tips = [tip for tip in tips(ob) if end_of(tip) is not None]
        self._pivots = np.arange(2 * len(ob.pose.bones), len(self._places))  # as `_points_of` has them

    def steps(self, bound: float, floor: Floor | None = None) -> Generator[float, None, KeyReport]:
        """Key as little as keeps all joints within a distance in Blender units; yields the share that is done.

        Heels and toes that are above a floor stay above it.

        Raises:
            BakeError: it cannot be kept.
        """
        before = yield from self._played(0.0, 0.4)
        above = (yield from self._heights(floor, before)) if floor is not None and len(self._pivots) else None
        inside = np.flatnonzero(self._owners >= 0)
        points = applied(
            inverse(before.world)[:, None, :3, :3], before.points[:, inside] - before.world[:, None, :3, 3]
        )
        reduction = Reduction(self._parts(before), points, self._owners[inside], before.world[:, :3, :3])
        limits = np.minimum(self._holding(before), bound)
        if above is not None:
            limits[:, self._pivots] = np.minimum(limits[:, self._pivots], above.room)
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
            if above is not None:
                sunk[:, self._pivots] = above.sunk(after.points[:, self._pivots])
            is_held = (away <= limits)[:, inside].all() and not sunk[:, inside].any()
            if distances.max() <= bound and (is_held or attempt == ATTEMPTS - 1):
                scene: Any = self._view_layer.id_data
                metres = float(distances.max()) * scene.unit_settings.scale_length
                return KeyReport(self._before, sum(len(curve.keys) for part in curves for curve in part), metres)
            bounds[sunk[:, inside]] *= SUNK
            bounds *= np.minimum(ROOM * limits / np.maximum(away, 1e-30), 1.0)[:, inside].min(axis=0)
            if distances[self._owners < 0].max(initial=0.0) > bound:
                bounds *= 0.5
        raise BakeError(
            "The keys of '{object}' can't be reduced: other things move it differently each time. Bake all keys",
            object=self._ob.name,
        )

    def _heights(self, floor: Floor, played: _Played) -> Generator[float, None, _Above]:
        """How far heels and toes are above a floor."""
        points = played.points[:, self._pivots]
        reach = max(sum(bone.bone.length for bone in chain_bones(tip)) for tip in self._tips)
        reach *= float(np.cbrt(np.abs(determinants(played.world[:1, :3, :3])))[0])
        heights = yield from part(floor.steps(self._frames.tolist(), points, reach), 0.4, 0.4)
        return _Above(heights, heights(points), ROUNDING * float(np.abs(points).max()))

    def _played(self, first: float, last: float) -> Generator[float, None, _Played]:
        """Play all frames; yields shares from the first to the last."""
        count, everything = len(self._frames), np.arange(len(self._ob.pose.bones))
        poses, world = np.empty((count, len(self._bones), 4, 4)), np.empty((count, 4, 4))
        points, touching = np.empty((count, len(self._places), 3)), np.zeros((count, len(self._tips), 2), dtype=bool)
        for i, frame in enumerate(self._frames.tolist()):
            evaluated = self._ob.evaluated_get(at_frame(self._view_layer, frame))
            pose = channels.read_pose(evaluated, everything)
            world[i], poses[i] = matrix_array(evaluated.matrix_world), pose[self._bones]
            seen = pose[self._places]
            points[i] = applied(world[i, :3, :3], applied(seen[:, :3, :3], self._local) + seen[:, :3, 3])
            points[i] += world[i, :3, 3]
            for row, tip in enumerate(self._tips):
                contact = chain_of(evaluated.pose.bones[tip.name]).contact
                touching[i, row] = [name in contact for name in (HEEL, TOE)]
            yield first + (last - first) * (i + 1) / count
        return _Played(poses, points, world, touching)

    def _holding(self, played: _Played) -> Floats:
        """How far (F, m) points may go without what touches sliding or turning; infinite where nothing touches."""
        found = np.full(played.points.shape[:2], np.inf)
        size = np.cbrt(np.abs(determinants(played.world[:, :3, :3])))
        rounding = ROUNDING * np.abs(played.points).max(axis=(1, 2))
        for row, tip in enumerate(self._tips):
            heel, toe = played.touching[:, row].T
            is_flat = heel & toe
            held = HELD * sum(bone.bone.length for bone in chain_bones(tip)) * size
            held = np.maximum(np.where(is_flat, FLAT * held, held), rounding)
            pivot = 2 * (len(self._ob.pose.bones) + row)  # as `_points_of` has them
            joint = 2 * self._ob.pose.bones.find(end_of(tip).name)
            for point, touches in ((joint, is_flat), (pivot, heel), (pivot + 1, toe)):
                found[touches, point] = held[touches]
        return found

    def _parts(self, played: _Played) -> list[Part]:
        """The keyed bones, as they play."""
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
        """Write the curves of the channels of each bone."""
        curves = curves_of(compat.curve_owner(self._ob))
        pace = float(self._times[1] - self._times[0])
        for keyed, found in zip(self._channels, reduced, strict=True):
            for channel, own in zip(keyed, found, strict=True):
                curve = curves.get((channel.data_path, channel.index))
                if curve is None:
                    raise BakeError("The action of '{object}' is gone. Bake again", object=self._ob.name)
                write_curve(curve, self._times[own.keys], own.values, own.slopes / pace, own.lines)
        self._ob.update_tag()


def _points_of(ob: bpy.types.Object, skeleton: Skeleton, keyed: Sequence[int]) -> tuple[Ints, Ints, Floats]:
    """The points that are to stay where they are: heads and tails of all bones, and the pivots of hands and feet.

    Returns:
        owners: (m,) the index of the keyed bone that each goes with; -1: none.
        bones: (m,) the bone that it belongs to.
        local: (m, 3) where it is in the axes of that bone.
    """
    points: list[tuple[int, Sequence[float]]] = []
    for index, length in enumerate(skeleton.lengths.tolist()):
        points += [(index, (0.0, 0.0, 0.0)), (index, (0.0, length, 0.0))]
    for tip in tips(ob):
        end, chain = end_of(tip), chain_of(tip)
        if end is not None:
            points += [(skeleton.names.index(end.name), pivot[:]) for pivot in (chain.heel_pivot, chain.toe_pivot)]
    owners = []
    for index, _local in points:
        carriers = [bone for bone in (index, *skeleton.ancestors(index)) if bone in keyed]
        owners.append(keyed.index(carriers[0]) if carriers else -1)
    return np.array(owners), np.array([index for index, _ in points]), np.array([local for _, local in points])


def _basis(bone: bpy.types.PoseBone, keyed: Sequence[Channel], values: Floats) -> Floats:
    """The basis matrices (F, 4, 4) that values (F, c) of the keyed channels of a bone make."""
    own = {field: np.tile(np.array(getattr(bone, field)[:], np.float64), (len(values), 1)) for field in FIELDS}
    for column, channel in enumerate(keyed):
        own[channel.field][:, channel.index] = values[:, column]
    turns = transforms.rotations(own[rotation_field(bone.rotation_mode)], bone.rotation_mode)
    return transforms.matrices(own["location"], turns, own["scale"])


def _displacement(parents: Floats, basis: Callable[[Floats], Floats], own: Floats, values: Floats) -> Floats:
    """What values (F, c) displace, given the poses (F, 4, 4) that the basis is added to, and the inverse of its own."""
    return times(times(parents, basis(values)), own)
