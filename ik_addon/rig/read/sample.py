"""Read an evaluated armature and its goals into arrays: everything that the solve of a frame depends on.

`Frames` has forward kinematics from the numbers that determine frames, the same for one frame and for many.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from bpy.types import Depsgraph, Object
from mathutils import Matrix, Quaternion

from ...core import channels, compat, transforms
from ...core.channels import FIELDS, WIDTH, Row
from ...core.data_paths import set_at, value_at
from ...core.settings import chain_of
from ...core.skeleton import FARTHEST, FLATTENED, affine, inverse, inverse_of_one, matrix_array, moved, orthonormal
from ...core.untyped import Column, Struct
from ...solve.maths.products import determinants, times
from ...solve.problem import Bools, Floats, Ints
from ..plan.facts import Settings
from ..plan.inputs import MATRIX, Bones, Inputs, Numbers, Spot
from ..plan.plan import Plan
from ..plan.presence import Reference


class Frames:
    """Forward kinematics of F frames. The first axis of arrays is F, or 1 where all frames are the same."""

    def __init__(self, inputs: Inputs, numbers: Numbers, like: Frames | None = None) -> None:
        """Compute the poses of bones.

        Args:
            inputs: describes the numbers.
            numbers: (F, w)
            like: other frames of the same inputs, whose bone poses are reused if their channels are the same.
        """
        self.inputs = inputs
        start = inputs.rows.start
        given = _once(numbers[:, inputs.given]).astype(np.float64)
        given = given.reshape(len(given), len(inputs.opaque), 4, 4)
        matrices = numbers[:, :start].reshape(len(numbers), len(inputs.objects), 4, 4).astype(np.float64)
        self._locals: list[Floats] = [_once(matrices[:, item]) for item in range(len(inputs.objects))]
        self._worlds: dict[int, Floats] = {}
        self.rows: Row = _once(numbers[:, inputs.rows].reshape(len(numbers), len(inputs.modes), WIDTH))
        """(F, n, 17) the channels of all bones."""
        self.basis: Floats
        """(F, n, 4, 4) basis matrices of these channels."""
        self.poses: Floats
        """(F, n, 4, 4) in armature space, of the bones whose pose is needed; 0 for the others."""
        self._given = given
        if like is not None and np.array_equal(self.rows, like.rows) and np.array_equal(given, like._given):
            self.basis, self.poses = like.basis, like.poses
        else:
            self.basis = transforms.basis(self.rows, inputs.modes, inputs.connected)
            self.poses = np.zeros((max(len(self.rows), len(given)), *self.basis.shape[1:]))
            own = dict(zip(inputs.opaque, given.swapaxes(0, 1), strict=True))
            if own:
                self.poses[:, inputs.opaque] = given
            with np.errstate(all="ignore"):
                local = inputs.offsets @ self.basis  # the matrices that bones would have relative to their parents
                for bone, parent in inputs.posed:
                    above = None if parent < 0 else self.poses[:, parent]
                    if above is not None and bone in inputs.riding:
                        self.poses[:, bone] = above @ own[bone]
                    elif not inputs.plain[bone]:
                        self.poses[:, bone] = inputs.to_pose(bone, self.basis[:, bone], above)
                    else:
                        self.poses[:, bone] = local[:, bone] if above is None else above @ local[:, bone]
        settings = numbers[:, inputs.settings].astype(np.float64)
        self.settings = settings.reshape(len(numbers), len(inputs.tips), len(Settings._fields))
        """(F, C, S) `Settings` of the chains."""

    def world(self, item: int) -> Floats:
        """Return world matrices (F, 4, 4) of an object."""
        if item not in self._worlds:
            placed, local = self.inputs.objects[item], self._locals[item]
            if not placed.is_opaque and placed.above is not None:
                parent = self.at(placed.above)
                parent[:, :3, 3] += placed.reach * parent[:, :3, 1]
                local = times(times(parent, placed.unparented[None]), local)
            self._worlds[item] = local
        return self._worlds[item]

    def at(self, spot: Spot) -> Floats:
        """Return world matrices (F, 4, 4) of an object, or of its bone at the head."""
        world = self.world(spot.item)
        return world.copy() if spot.bone < 0 else times(world, self.poses[:, spot.bone])

    def basis_at(self, spot: Spot) -> Floats:
        """Return basis matrices (F, 4, 4) of an object or its bone, from its own channels."""
        return self._locals[spot.item] if spot.bone < 0 else self.basis[:, spot.bone]


def _once(numbers: Column) -> Column:
    """Return numbers (F, ...), reduced to (1, ...) if they are the same on all frames."""
    return numbers[:1] if len(numbers) > 1 and (numbers == numbers[:1]).all() else numbers


@dataclass(frozen=True)
class Goals:
    """The goals of C chains on F frames."""

    target: Floats
    """(F, C, 3) in the armature's object space; not finite if the chain has no target."""
    rotation: Floats
    """(F, C, 3, 3) orientation of the target in the armature's object space, if the tip or the end bone takes it;
    otherwise the identity."""
    end_axes: Floats
    """(F, C, 3, 3) axes of the bone that turns with the target, in those of the target."""
    pole: Floats
    """(F, C, 3) in the armature's object space; zero if the chain has no pole."""
    settings: Floats
    """(F, C, S) `Settings`"""

    @property
    def value(self) -> Settings:
        """The same (F, C) one by one."""
        return Settings.of(self.settings)

    @property
    def turned(self) -> Floats:
        """(F, C, 3, 3) the orientation that the tip or the end bone should take, as `rotation`."""
        return times(self.rotation, self.end_axes)

    def __getitem__(self, chosen: int | Bools | Ints) -> Goals:
        """Return the goals of the chosen chains: an index, or an array of indices of any shape (...), for (F, ...)."""
        return Goals(**{name: value[:, chosen] for name, value in vars(self).items()})

    def members(self, chosen: slice | Bools | Ints) -> Goals:
        """Return the goals on the chosen frames, or of the chosen members (B,) of a batch."""
        return Goals(**{name: value[chosen] for name, value in vars(self).items()})

    @property
    def stand(self) -> bool:
        """Whether they are the same on all frames."""
        return all((value == value[:1]).all() for value in vars(self).values())

    def equals(self, other: Goals) -> bool:
        """Whether other goals are the same."""
        return all(np.array_equal(value, vars(other)[name]) for name, value in vars(self).items())


@dataclass(frozen=True)
class Sample:
    """The FK pose of the live bones of one armature and the goals of its chains, on F frames."""

    world: Floats
    """(F, 4, 4) world matrix of the armature object."""
    channels: Row
    """(F, k, 17) FK channels of `Plan.live`."""
    basis: Floats
    """(F, n, 4, 4) basis matrices of the bones of `Inputs`, as in `Frames`."""
    poses: Floats
    """(F, n, 4, 4) pose matrices of those whose pose is needed, in armature space."""
    goals: Goals
    """(F, C) goals of `Plan.chains`."""

    def frames(self, chosen: slice | Bools | Ints) -> Sample:
        """Return the sample of some of the frames."""
        own = {name: value[chosen] for name, value in vars(self).items() if name != "goals"}
        return Sample(**own, goals=self.goals.members(chosen))


def numbers_now(
    inputs: Inputs, depsgraph: Depsgraph, fk: Row | None = None, *, fields: Collection[str] = FIELDS
) -> Numbers:
    """Return the numbers (1, w) of an evaluated frame; not finite where an object is gone.

    Args:
        inputs: describes the numbers.
        depsgraph: evaluated at the frame.
        fk: (k, 17) FK channels of the live bones, if the evaluated ones differ from them.
        fields: the channels that are read; the others are 0.
    """
    originals = [placed.reference.find() for placed in inputs.objects]
    seen = [None if original is None else original.evaluated_get(depsgraph) for original in originals]
    numbers = np.empty((1, inputs.width), dtype=np.float32)
    found: list[float] = []
    for placed, shown in zip(inputs.objects, seen, strict=True):
        if shown is None:
            found += [np.nan] * MATRIX
        else:
            found += _elements(shown.matrix_world if placed.is_opaque else shown.matrix_basis)
    numbers[0, : inputs.rows.start] = found
    numbers[0, : inputs.rows.start] += 0.0  # turns -0.0 into 0.0
    rows = numbers[0, inputs.rows].reshape(len(inputs.modes), WIDTH)
    start = inputs.given.start
    for bones in inputs.armatures:
        ob, given = seen[bones.item], slice(start, start + MATRIX * len(bones.opaque))
        start, count = given.stop, 0 if ob is None or ob.pose is None else len(ob.pose.bones)
        if ob is None or count != len(bones.skeleton.names):
            rows[bones.place], numbers[0, given] = np.nan, np.nan
        else:
            rows[bones.place] = channels.read(ob, bones.indices, bones.skeleton.names, fields)
            if len(bones.opaque):
                numbers[0, given] = _poses(inputs, ob, bones).ravel()
    if fk is not None:
        rows[inputs.live] = fk
    shown = seen[inputs.own]
    if shown is not None and shown.pose is not None:
        settings = [chain_of(shown.pose.bones[tip]) for tip in inputs.tips]
        numbers[0, inputs.settings] = [getattr(chain, name) for chain in settings for name in Settings._fields]
    return numbers


def own_transforms(plan: Plan, depsgraph: Depsgraph | None = None) -> bytes:
    """Return the transforms of objects and bones that place goals and chains, apart from live bones.

    Those of the evaluated copies, or of the originals if there is no depsgraph.
    """
    inputs, found = plan.numbers, []

    def seen(reference: Reference) -> Object | None:
        original = reference.find()
        return original if original is None or depsgraph is None else original.evaluated_get(depsgraph)

    for placing in filter(None, map(seen, plan.placing)):
        found += _elements(placing.matrix_basis)
    for bones in inputs.armatures:
        ob, count = seen(inputs.objects[bones.item].reference), len(bones.skeleton.names)
        if ob is not None and ob.pose is not None and len(ob.pose.bones) == count:
            rows = channels.read(ob, bones.indices, bones.skeleton.names)
            found += (np.delete(rows, inputs.live, axis=0) if bones.item == inputs.own else rows).ravel().tolist()
    return (np.array(found, dtype=np.float32) + 0.0).tobytes()


def _poses(inputs: Inputs, ob: Object, bones: Bones) -> Floats:
    """Return the poses (m, 4, 4) of the opaque bones of an armature, relative to the parents for those that ride."""
    indices, names = bones.indices[bones.opaque - bones.place.start], bones.skeleton.names
    poses = channels.read_pose(ob, indices, names)
    riding = np.array([bone in inputs.riding for bone in bones.opaque.tolist()])
    if riding.any():
        above = bones.skeleton.parents[indices[riding]]
        poses[riding] = times(inverse(channels.read_pose(ob, above, names)), poses[riding])
    return poses


def _elements(matrix: Matrix) -> list[float]:
    """Return the elements of a matrix (4, 4), row by row."""
    matrix = matrix.copy()  # of a property, Blender would compute it again for each row
    return [*matrix[0][:], *matrix[1][:], *matrix[2][:], *matrix[3][:]]


def sample(ob: Object, plan: Plan, depsgraph: Depsgraph, fk: Row | None = None) -> Sample:
    """Read one frame (F = 1) from the evaluated copies of the armature and its goals.

    Args:
        ob: the armature object, the original one.
        plan: its plan.
        depsgraph: evaluated at the frame.
        fk: FK channels (k, 17) of the live bones, if the evaluated channels are not the FK pose.
    """
    return sample_of(plan, Frames(plan.numbers, numbers_now(plan.numbers, depsgraph, fk)))


def sample_of(plan: Plan, frames: Frames) -> Sample:
    """Return the sample of F frames that are computed from numbers."""
    inputs, count, chains = frames.inputs, len(frames.settings), len(plan.chains)
    world = affine(frames.world(inputs.own))
    to_object = inverse_of_one(world[0])[None] if len(world) == 1 else inverse(world)
    places = np.zeros((count, 2, chains, 3))  # of targets and of poles
    rotation = np.empty((count, chains, 3, 3))
    rotation[:] = np.eye(3)
    turning = [c for c, chain in enumerate(plan.chains) if chain.takes_rotation]
    seen = np.empty((count, len(turning), 4, 4))
    for c, (aim, side) in enumerate(zip(inputs.targets, inputs.poles, strict=True)):
        goal = frames.at(aim)
        places[:, 0, c] = goal[:, :3, 3]
        if c in turning:
            seen[:, turning.index(c)] = goal
        if side is not None:
            places[:, 1, c] = frames.at(side)[:, :3, 3]
    if turning:
        rotation[:, turning] = orientation(times(to_object[:, None], seen))
    with np.errstate(all="ignore"):
        places = moved(to_object[:, None, None], places)
        places = np.where(np.abs(places) < FARTHEST, places, np.nan)  # too far away for Blender's single precision
    for c, side in enumerate(inputs.poles):
        if side is None:
            places[:, 1, c] = 0.0

    def of_all(values: Column) -> Column:
        return values if len(values) == count else np.broadcast_to(values, (count, *values.shape[1:]))

    return Sample(
        world=of_all(world),
        channels=of_all(frames.rows[:, inputs.live]),
        basis=of_all(frames.basis),
        poses=of_all(frames.poses),
        goals=Goals(places[:, 0], rotation, of_all(plan.end_axes[None]), places[:, 1], frames.settings),
    )


def take_animated(ob: Object, depsgraph: Depsgraph) -> None:
    """Set the animated properties of the original armature object, and of its armature, to their evaluated values.

    In a render the originals are on the frame of the viewport. Writing to them makes Blender copy them again without
    animating the copies, so everything but the written channels would be rendered as on another frame.
    """
    seen = ob.evaluated_get(depsgraph)
    own: Struct
    for own, evaluated in ((ob, seen), (ob.data, seen.data)):
        paths = {curve.data_path for curve in compat.animating(own)}
        # Rotation modes first: setting one converts the rotation.
        for path in sorted(paths, key=lambda path: not path.endswith("rotation_mode")):
            value = value_at(evaluated, path)
            with suppress(ValueError, AttributeError, TypeError, KeyError):  # an F-curve's property may not exist
                set_at(own, path, value)


# ---- the orientation of targets and bones as solvers use it: in the object space of the armature, right-handed


def orientation(matrices: Floats) -> Floats:
    """Return orientations (..., 3, 3) of matrices (..., 4, 4); the X axis of mirrored ones is flipped."""
    frames = orthonormal(matrices[..., :3, :3])
    with np.errstate(invalid="ignore"):
        frames[..., 0] *= np.where(np.linalg.det(frames) < 0.0, -1.0, 1.0)[..., None]
    return frames


def displaced(moves: Floats, rotations: Floats) -> Floats:
    """Return orientations (..., 3, 3) after they are moved by matrices (..., 3, 3) that may scale, mirror or flatten.

    A matrix that flattens does not count as mirrored, as where orientations are read from matrices.
    """
    frames = times(moves, rotations)
    sizes = np.linalg.norm(moves, axis=-2).prod(axis=-1)
    with np.errstate(invalid="ignore"):
        frames[..., 0] *= np.where(determinants(moves) < -FLATTENED * sizes, -1.0, 1.0)[..., None]
        frames[..., 2] = np.cross(frames[..., 0], frames[..., 1])
    return orthonormal(frames)


def axes_between(world: Matrix, target: Matrix, bone: Matrix) -> Floats:
    """Return the axes (3, 3) of a bone in its pose, in those of a target; NaN if undefined. See `chain.end_axes`.

    Args:
        world: world matrix of the armature object.
        target: world matrix of the target.
        bone: pose of the bone in the armature's object space.
    """
    seen = orientation(inverse_of_one(matrix_array(world)) @ matrix_array(target))
    return seen.T.dot(orientation(matrix_array(bone)))


def target_rotations(world: Floats, bones: Floats, axes: Floats) -> Floats:
    """Return world rotations (F, 3, 3) of a target that keep a bone in its pose; inverts `axes_between`.

    Args:
        world: (F, 4, 4) world matrices of the armature object.
        bones: (F, 4, 4) poses of the bone in the armature's object space.
        axes: (..., 3, 3) axes of the bone in those of the target.
    """
    seen = times(orientation(bones), np.swapaxes(axes, -1, -2))
    linear = world[:, :3, :3]
    seen[:, :, 0] *= np.where(np.linalg.det(linear) < 0.0, -1.0, 1.0)[:, None]
    turns = orthonormal(times(linear, seen))
    return np.where(np.isfinite(turns).all(axis=(1, 2), keepdims=True), turns, np.eye(3))


def target_rotation(world: Matrix, bone: Matrix, axes: Floats) -> Quaternion:
    """Return the rotation of `target_rotations` for a single pose."""
    turn = target_rotations(matrix_array(world)[None], matrix_array(bone)[None], axes)[0]
    return Matrix(turn.tolist()).to_quaternion()
