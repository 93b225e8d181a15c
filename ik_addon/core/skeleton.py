"""Rest data of an armature and its forward kinematics, for many frames at once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from bpy.types import Bone, Object, PoseBone
from mathutils import Matrix

from ..solve.maths.cones import swing_twist
from ..solve.maths.products import applied, times, times_back
from ..solve.maths.rotations import cross, dot, norm, quaternions, reject
from ..solve.problem import Bools, Floats, Ints


def matrix_array(matrix: Matrix) -> Floats:
    """Convert a mathutils matrix to a (4, 4) array."""
    return np.array(matrix, dtype=np.float64)


def affine(matrices: Floats) -> Floats:
    """Make matrices (..., 4, 4) affine: Blender ignores their last row, which keys may set to anything."""
    found = matrices.copy()
    found[..., 3, :] = (0.0, 0.0, 0.0, 1.0)
    return found


def moved(matrices: Floats, points: Floats) -> Floats:
    """Transform points (..., 3) by affine matrices (..., 4, 4)."""
    return np.asarray(applied(matrices[..., :3, :3], points) + matrices[..., :3, 3])


def size_of(matrices: Floats) -> Floats:
    """Return the mean scale (...) of matrices (..., 4, 4)."""
    return np.asarray(np.cbrt(np.abs(np.linalg.det(matrices[..., :3, :3]))))


FARTHEST = 1e30
"""Blender turns an infinite location into the largest float, whose square overflows."""
FLAT = 1e6
"""Condition number above which the smallest axis of a matrix in single precision is only rounding."""


def inverse(matrices: Floats) -> Floats:
    """Inverse of affine matrices (..., 4, 4); NaN for those that are not finite, or flat in single precision."""
    with np.errstate(all="ignore"):
        usable = np.abs(np.linalg.det(matrices)) > 1e-30
        found = np.linalg.inv(np.where(usable[..., None, None], matrices, np.eye(4)))
        spread = (matrices[..., :3, :3] ** 2).sum(axis=(-2, -1)) * (found[..., :3, :3] ** 2).sum(axis=(-2, -1))
        usable &= spread < FLAT**2
    return np.asarray(np.where(usable[..., None, None], found, np.nan))


def flat_inverse(matrices: Floats) -> Floats:
    """Pseudoinverse of flat affine matrices (F, 4, 4): it inverts them on all points that they can reach."""
    found = np.tile(np.eye(4), (len(matrices), 1, 1))
    linear = np.nan_to_num(matrices[:, :3, :3], posinf=0.0, neginf=0.0)
    found[:, :3, :3] = np.linalg.pinv(linear, rcond=1.0 / FLAT)
    found[:, :3, 3] = -applied(found[:, :3, :3], matrices[:, :3, 3])
    return found


@lru_cache(maxsize=64)
def _inverse_of(matrix: bytes) -> Floats:
    return inverse(np.frombuffer(matrix).reshape(4, 4))


def inverse_of_one(matrix: Floats) -> Floats:
    """`inverse` of one matrix (4, 4), cached: most objects do not move between frames."""
    return _inverse_of(matrix.tobytes())


def is_flat(matrix: Floats) -> bool:
    """Whether a finite affine matrix (4, 4) scales to zero, on an axis or on all, apart from rounding."""
    if not np.isfinite(matrix).all() or np.isfinite(inverse_of_one(matrix)).all():
        return False
    return bool(np.linalg.svd(matrix[:3, :3], compute_uv=False)[-1] < 1.0)  # else the other axes are far too large


def is_usable(matrix: Floats) -> bool:
    """Whether positions can be converted between the spaces of an affine matrix (4, 4) in single precision."""
    return bool(np.isfinite(inverse_of_one(matrix)).all() and np.abs(matrix).max() < FARTHEST)


ROUNDING = 1e-7
"""Directions closer together than this are the same in single precision."""
FLATTENED = 1e-6
"""A matrix flattens, apart from rounding, if its determinant is below this fraction of the product of its columns'
lengths."""


def orthonormal(linear: Floats) -> Floats:
    """Return the nearest frames (..., 3, 3) that keep the direction of the Y axis, mirrored where the input is.

    Flat input does not count as mirrored: rounding would decide that. NaN if two axes differ by no more than rounding,
    as below a bone that is scaled to a line.
    """
    out = np.empty(linear.shape)
    x, y, z = linear.T  # columns; components come first, as in the functions called here
    with np.errstate(all="ignore"):
        y = y / norm(y)
        width = norm(x)
        x = reject(x, y)
        left = norm(x)
        x = x / np.where(left > ROUNDING * width, left, np.nan)
        across = cross(x, y)
        is_mirrored = dot(across, z) * left < -FLATTENED * width * norm(z)
        across *= np.where(is_mirrored, -1.0, 1.0)
    out.T[0], out.T[1], out.T[2] = x, y, across
    return out


def unscaled(matrices: Floats) -> Floats:
    """Return affine matrices (..., 4, 4) without scale and shear, see `orthonormal`."""
    found = affine(matrices)
    found[..., :3, :3] = orthonormal(matrices[..., :3, :3])
    return found


NO_SEGMENT = 1e-6
"""A segment shorter than this, in lengths of its chain, has no direction."""
SKEWED = 3e-7
"""A matrix that is this close to a rotation is one in single precision."""
STRAIGHT = 1e-4
"""A chain whose joints leave their line by less than this fraction of its length shows no bend, and has no plane."""


@dataclass(frozen=True)
class Skeleton:
    """The bones of an armature in the order of `pose.bones`, at rest. Lengths in the armature's unit."""

    names: tuple[str, ...]
    parents: Ints
    """(m,) index of each bone's parent, -1 where there is none."""
    depths: Ints
    """(m,) number of ancestors."""
    rest: Floats
    """(m, 4, 4) rest matrices in armature space."""
    offsets: Floats
    """(m, 4, 4) rest matrices in the parent's rest space."""
    lengths: Floats
    """(m,) rest length."""
    inherits_rotation: Bools
    """(m,) `use_inherit_rotation`."""
    inherits_scale: Bools
    """(m,) whether the parent's uniform scale reaches the bone."""
    plain: Bools
    """(m,) whether the pose matrix is parent @ offset @ basis, without any special inheritance flags."""

    @classmethod
    def of(cls, ob: Object) -> "Skeleton":
        """Read the rest data of an armature object."""
        bones = [pose_bone.bone for pose_bone in ob.pose.bones]
        index = {bone.name: i for i, bone in enumerate(bones)}
        parents = np.array([index[parent.name] if (parent := bone.parent) else -1 for bone in bones], dtype=np.int64)
        # Pose and armature may list bones in a different order.
        place = {name: i for i, name in enumerate(ob.data.bones.keys())}
        matrices = np.empty((len(bones), 16), dtype=np.float32)
        ob.data.bones.foreach_get("matrix_local", matrices.ravel())
        rest = matrices[[place[name] for name in index]].reshape(-1, 4, 4).swapaxes(1, 2).astype(np.float64)
        offsets = rest.copy()
        child = parents >= 0
        offsets[child] = inverse(rest[parents[child]]) @ rest[child]
        depths, above = np.zeros_like(parents), parents
        while (above >= 0).any():
            depths += above >= 0
            above = np.where(above >= 0, parents[above], -1)
        return cls(
            names=tuple(index),
            parents=parents,
            depths=depths,
            rest=rest,
            offsets=offsets,
            lengths=np.array([b.length for b in bones], dtype=np.float64),
            inherits_rotation=np.array([b.use_inherit_rotation for b in bones], dtype=bool),
            inherits_scale=np.array([b.inherit_scale not in {"NONE", "NONE_LEGACY"} for b in bones], dtype=bool),
            plain=np.array(
                [b.use_inherit_rotation and b.inherit_scale == "FULL" and b.use_local_location for b in bones],
                dtype=bool,
            ),
        )

    @cached_property
    def skews(self) -> Floats:
        """(m, 3, 3) deviations from rotations of rest matrices in the parent's rest space; zero for rotations."""
        rest = self.offsets[:, :3, :3]
        off = times_back(rest, orthonormal(rest)) - np.eye(3)
        return np.where((np.abs(off).max(axis=(1, 2)) > SKEWED)[:, None, None], off, 0.0)

    @cached_property
    def joint_rests(self) -> Floats:
        """(m, 3, 3) rest orientations in the parent's rest space; in armature space if no rotation is inherited."""
        inherited = self.inherits_rotation[:, None, None]
        return orthonormal(np.where(inherited, self.offsets[:, :3, :3], self.rest[:, :3, :3]))

    def matches(self, ob: Object) -> bool:
        """Return whether the armature object still has these bones, in this order."""
        return tuple(ob.pose.bones.keys()) == self.names

    def to_pose(self, ob: Object, bone: int, basis: Floats, parent: Floats | None) -> Floats:
        """Pose matrices (F, 4, 4) of a bone in armature space, from its basis and its parent's pose matrices."""
        if self.plain[bone]:
            local = times(self.offsets[bone], basis)
            return local if parent is None else times(parent, local)
        return self._convert(ob, bone, basis, parent, invert=False)

    def to_basis(self, ob: Object, bone: int, pose: Floats, parent: Floats | None) -> Floats:
        """Basis matrices (F, 4, 4) that give a bone these pose matrices; the inverse of `to_pose`.

        NaN below a parent that is flat.
        """
        if self.plain[bone]:
            rest = self.offsets[bone] if parent is None else times(parent, self.offsets[bone])
            return times(inverse(rest), pose)
        found = self._convert(ob, bone, pose, parent, invert=True)
        if parent is not None:
            found[~np.isfinite(np.broadcast_to(inverse(parent), found.shape)).all(axis=(1, 2))] = np.nan
        return found

    def _convert(self, ob: Object, bone: int, m: Floats, parent: Floats | None, invert: bool) -> Floats:
        # Blender's own conversion handles every inheritance flag, one matrix at a time.
        rna_bone, rest = ob.data.bones[self.names[bone]], Matrix(self.rest[bone])
        if parent is None:
            return np.array([rna_bone.convert_local_to_pose(Matrix(x), rest, invert=invert) for x in m])
        parent_rest = Matrix(self.rest[self.parents[bone]])  # the bone may have another parent by now
        return np.array(
            [
                rna_bone.convert_local_to_pose(
                    Matrix(x), rest, parent_matrix=Matrix(p), parent_matrix_local=parent_rest, invert=invert
                )
                for x, p in zip(*np.broadcast_arrays(m, parent), strict=True)
            ]
        )

    def joints(self, bones: Sequence[int]) -> Floats:
        """Joints (n + 1, 3) of a chain at rest: the heads of its bones, and the tail of the last one."""
        tail = self.rest[bones[-1], :3, 3] + self.rest[bones[-1], :3, 1] * self.lengths[bones[-1]]
        return np.concatenate([self.rest[list(bones), :3, 3], tail[None]])

    def normal_at_rest(self, bones: Sequence[int]) -> Floats:
        """Unit normal (3,) of the plane in which a chain, root first, lies at rest, in its parent's rest frame.

        A straight chain lies in many planes; the one across the Z axis of its root bone is used.
        """
        joints, z = self.joints(bones), self.rest[bones[0], :3, 2]
        _u, sizes, axes = np.linalg.svd(joints - joints.mean(axis=0))
        normal = axes[2] if sizes[1] > STRAIGHT * sizes[0] else z - (z @ axes[0]) * axes[0]
        normal = normal / np.linalg.norm(normal) * (-1.0 if normal @ z < 0.0 else 1.0)
        parent = self.parents[bones[0]]
        return np.asarray(normal if parent < 0 else self.rest[parent, :3, :3].T @ normal)

    def bend_axes(self, bones: Sequence[int], side: Floats) -> Floats:
        """Return axes (n, 3) about which positive rotations bend a chain to its side.

        Args:
            bones: the bones of the chain, root first, of any lengths.
            side: (3,) bend side in the rest axes of the root bone.

        Returns:
            The axis of each bone in the rest axes of the bone above; that of the root in its own.
        """
        frames = orthonormal(self.rest[list(bones), :3, :3])
        normal = frames[0] @ np.cross(side, self.first_segment(bones))
        return np.asarray((frames[[0, *range(len(bones) - 1)]].swapaxes(-1, -2) * normal).sum(axis=-1))

    def first_segment(self, bones: Sequence[int]) -> Floats:
        """Direction (3,) of the first segment of a chain that has a length, in the rest axes of the root bone."""
        steps = np.diff(self.joints(bones), axis=0)
        sizes = np.linalg.norm(steps, axis=1)
        long = np.flatnonzero(sizes > NO_SEGMENT * sizes.sum())
        frame = orthonormal(self.rest[bones[0], :3, :3])
        local = frame.T @ (steps[long[0]] if len(long) else frame[:, 1])
        return np.asarray(local / np.linalg.norm(local))

    def ancestors(self, bone: int) -> list[int]:
        """Return the indices of a bone's ancestors, nearest first."""
        found = []
        parent = int(self.parents[bone])
        while parent >= 0:
            found.append(parent)
            parent = int(self.parents[parent])
        return found


# ---- evaluated bones, measured the way the solver does


def frame_of(bone: PoseBone) -> Floats:
    """Return the orthonormal frame (3, 3) of an evaluated pose bone in armature space, ignoring negative scale."""
    linear = matrix_array(bone.matrix)[:3, :3]
    return orthonormal(linear * np.where(np.array(bone.scale) < 0.0, -1.0, 1.0))


def rest_of(bone: PoseBone) -> Floats:
    """Return the frame (3, 3) of an evaluated pose bone at rest relative to its parent, in armature space."""
    rest = matrix_array(bone.bone.matrix_local)[:3, :3]
    if bone.parent is None or not bone.bone.use_inherit_rotation:
        return orthonormal(rest)
    return frame_of(bone.parent) @ orthonormal(
        np.linalg.inv(matrix_array(bone.parent.bone.matrix_local)[:3, :3]) @ rest
    )


def angles_of(bone: PoseBone) -> tuple[float, float, float]:
    """Return the rotation of an evaluated pose bone from rest about its X, Y and Z axes, in radians.

    Each angle is the limit about that axis alone that the bone would just meet.
    """
    swing, twist = swing_twist(quaternions(rest_of(bone).T @ frame_of(bone)))
    x, z = (2.0 * math.asin(min(1.0, max(-1.0, float(part)))) for part in swing)
    return x, float(twist), z


# ---- reflection across the X axis of an armature, as Blender's Symmetrize and X-Axis Mirror do it

ACROSS = np.array([-1.0, 1.0, 1.0])
"""Signs of the components of a vector that is mirrored."""


def across_bones(bone: Bone, image: Bone) -> Floats:
    """Return the reflection (3, 3) from the axes of a bone to those of its mirror image.

    For bones at rest that are mirror images it is diag(-1, 1, 1). A bone with a different roll also has its axes
    swapped or reversed. Negated it takes a rotation vector, which turns about X as before and the opposite way about
    the other axes.
    """
    own, other = (np.array(each.matrix_local.to_3x3()) for each in (bone, image))
    return np.asarray((other.T * ACROSS) @ own)


def mirrored_matrix(matrix: Matrix, plane: Matrix) -> Matrix:
    """Mirror a matrix across the X axis of another one, both in world space."""
    reflection = Matrix.Diagonal((*ACROSS.tolist(), 1.0))
    return plane @ reflection @ plane.inverted_safe() @ matrix @ reflection
