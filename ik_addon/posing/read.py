"""From the current pose of an armature to the arrays of a body, and how its joints fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from bpy.types import Depsgraph, Object, PoseBone

from ..anatomy.body import LIMBS, Region, find_members
from ..anatomy.chain_ends import joints_of
from ..anatomy.figure import Figure
from ..anatomy.limbs import elbow
from ..anatomy.sides import side_of_row
from ..chains import bend_side
from ..chains.new_chain import find_end
from ..core import channels
from ..core.channels import FIELDS, Row
from ..core.constraints import steered_bones
from ..core.settings import chain_of
from ..core.skeleton import Skeleton, inverse, orthonormal
from ..core.translation.sentences import UserError
from ..rig.plan.limits import is_free, ranges_of, stiffness_of
from ..solve import Body
from ..solve.maths.products import back_times, determinants, times
from ..solve.problem import Floats, Ints

HARDENING = 0.5
"""Stiffness that a radian of rotation adds to a joint of a spine or neck."""
SIDEWAYS = 0.5
"""Stiffness of an elbow, a knee or a spine across the axis about which it folds."""
BENT = np.sin(np.radians(5.0))
"""A joint bent at rest by more than this, as the sine of the angle, shows how it folds."""
STRAIGHT = np.radians(6.0)
"""A knee or elbow that is bent by less than this to its side begins to bend there."""


@dataclass(frozen=True)
class Stand:
    """An armature in its current pose. Bones are in the order of its body, parents first."""

    skeleton: Skeleton
    order: Ints
    """(n,) the index of each bone in `pose.bones`."""
    index: dict[str, int]
    """Index of each bone, by name."""
    pose: Floats
    """(n, 4, 4) pose matrices."""
    body: Body

    @classmethod
    def of(cls, depsgraph: Depsgraph, ob: Object, root: str) -> Stand:
        """Read an armature.

        Args:
            depsgraph: evaluates the current pose.
            ob: the object.
            root: name of the bone that moves freely; empty: none.

        Raises:
            UserError: its bones can't be posed.
        """
        skeleton = Skeleton.of(ob)
        order = np.argsort(skeleton.depths, kind="stable")
        place = np.argsort(order)
        parents = np.where(skeleton.parents[order] >= 0, place[skeleton.parents[order]], -1)
        pose = channels.read_pose(ob, order)
        frames = orthonormal(pose[:, :3, :3])
        bones = [ob.pose.bones[i] for i in order.tolist()]
        usable = np.isfinite(frames).all(axis=(1, 2)) & (determinants(frames) > 0.0)
        if not usable.all():
            name = bones[int(np.argmin(usable))].name
            raise UserError("Bone '{name}' has a negative or zero scale. Change its scale to pose the body", name=name)
        ranges = np.array([ranges_of(bone) for bone in bones]).reshape(len(bones), 6)
        steered = steered_bones(ob)
        figure = Figure.of(ob)
        folds = {figure.names[bone]: fold for bone, fold in folds_of(figure).items()}
        rest, stiffness = _joints(bones, folds, skeleton.offsets[order])
        body = Body(
            parents,
            pose[:, :3, 3],
            frames,
            rest=rest,
            cones=ranges[:, :4],
            twist=ranges[:, 4:],
            stiffness=stiffness,
            hardening=np.array([HARDENING * (bone.name in folds and folds[bone.name].hardens) for bone in bones]),
            give=np.array([0.0 if bone.name in steered else chain_of(bone).give for bone in bones]),
            bends=_bends(depsgraph, ob, figure, dict(zip((bone.name for bone in bones), frames, strict=True))),
            root={bone.name: i for i, bone in enumerate(bones)}.get(root),
        )
        return cls(skeleton, order, {bone.name: i for i, bone in enumerate(bones)}, pose, body)

    def tail(self, bone: int) -> Floats:
        """Return the tail (3,) of a bone."""
        return np.asarray(self.pose[bone, :3, 3] + self.pose[bone, :3, 1] * self.skeleton.lengths[self.order[bone]])

    def rows(self, ob: Object, rows: Row, pose: Floats, bones: Ints, root: int | None) -> Row:
        """Return the channels of all m pose bones after posing some of them.

        Args:
            ob: the armature object.
            rows: (..., m, 17) the channels before posing.
            pose: (..., n, 4, 4) pose matrices.
            bones: the bones that turned or moved.
            root: the bone that moved; None: there is none.
        """
        rows, own, above = rows.copy(), self.order[bones], np.asarray(self.body.parents)[bones]
        rest = np.broadcast_to(self.skeleton.offsets[own], (*pose.shape[:-3], len(own), 4, 4)).copy()
        rest[..., above >= 0, :, :] = times(pose[..., above[above >= 0], :, :], rest[..., above >= 0, :, :])
        basis = times(inverse(rest), pose[..., bones, :, :])
        for i in np.flatnonzero(~self.skeleton.plain[own]).tolist():
            parent = None if above[i] < 0 else pose[..., above[i], :, :].reshape(-1, 4, 4)
            posed = pose[..., bones[i], :, :].reshape(-1, 4, 4)
            found = self.skeleton.to_basis(ob, int(own[i]), posed, parent)
            basis[..., i, :, :] = found.reshape(basis[..., i, :, :].shape)
        modes = np.array([ob.pose.bones[i].rotation_mode for i in own.tolist()], dtype=np.str_)
        turned, before = channels.basis_rotation(basis, rows[..., own, :]), rows[..., own, :]
        rows[..., own, :] = channels.with_rotation(before, turned, np.broadcast_to(modes, before.shape[:-1]))
        for i in np.flatnonzero(bones == root).tolist():
            rows[..., own[i], FIELDS["location"]] = basis[..., i, :3, 3]
        return rows


def _joints(bones: Sequence[PoseBone], folds: Mapping[str, Fold], offsets: Floats) -> tuple[Floats, Floats]:
    """Return the axes (n, 3, 3) of bones at rest, in those of the parent, and their stiffness about these (n, 3).

    Stiffness is as set, and higher across the axis about which a joint folds. A joint without limits turns about the
    axes of its fold, whatever the roll of its bone.
    """
    rest, found = orthonormal(offsets[:, :3, :3]), np.array([stiffness_of(bone) for bone in bones]).reshape(-1, 3)
    for i, bone in enumerate(bones):
        fold = folds.get(bone.name)
        if fold is not None:
            along = back_times(np.array(bone.bone.matrix_local.to_3x3(), dtype=np.float64), fold.axes)
            if is_free(bone) and not found[i].any():
                rest[i], along = times(rest[i], along), np.eye(3)
            across = 1.0 - along[:, 0] ** 2
            if fold.twists:
                across[1] = 0.0
            found[i] = 1.0 - (1.0 - found[i]) * (1.0 - SIDEWAYS * across)
    return rest, found


def _bends(depsgraph: Depsgraph, ob: Object, figure: Figure, frames: Mapping[str, Floats]) -> Floats:
    """Return the rotations (n, 3) by which straight knees and elbows begin to bend, in object space.

    They bend to the side of their chain, or to the one that a new chain would get.
    """
    found = dict.fromkeys(frames, np.zeros(3))
    for limb in find_members(figure):
        row = list(limb.row)
        lower = elbow(figure, row)
        if limb.region not in LIMBS or lower is None:
            continue
        bones = [ob.pose.bones[figure.names[bone]] for bone in row]
        bend = bend_side.to_bend(ob, bones, find_end(ob, bones), depsgraph, STRAIGHT)
        found[bones[lower].name] = frames[bones[0].name] @ bend
    return np.array(list(found.values()))


# ---- how joints fold


class Fold(NamedTuple):
    """How an elbow, knee or hock folds, or a joint of a spine or neck."""

    axes: Floats
    """(3, 3) in its columns, at rest: the unit axis about which it folds, the direction of the segment below, across
    the first, and the axis across both."""
    twists: bool
    """Whether the bone can twist too, as forearms and spines do."""
    hardens: bool = False
    """Whether it gets stiffer the farther it bends, so that the whole spine bends."""


def folds_of(figure: Figure) -> dict[int, Fold]:
    """Return how joints fold: elbows, knees and hocks by the bone below, spine and neck bones forward and back.

    Joints whose fold is unknown are left out.
    """
    found = {}
    for limb in find_members(figure):
        row = list(limb.row)
        side, points = side_of_row(figure, row), joints_of(figure, row)
        line, segments = points[-1] - points[0], np.diff(points, axis=0)
        across = np.zeros(3) if side is None else np.cross(side, line)
        if limb.region not in LIMBS:
            if side is not None:
                found.update(dict.fromkeys(row, Fold(_axes(across, line), twists=True, hardens=True)))
            continue
        lower = elbow(figure, row)
        for bone, before, after in zip(row[1:], segments, segments[1:], strict=False):
            axis = np.cross(before, after)
            if np.linalg.norm(axis) <= BENT * np.linalg.norm(before) * np.linalg.norm(after):
                axis = across if lower is not None and bone == row[lower] else np.zeros(3)  # a split bone does not fold
            if axis.any():
                found[bone] = Fold(_axes(axis, after), limb.region is Region.ARM)
    return found


def _axes(axis: Floats, along: Floats) -> Floats:
    """Return the axes (3, 3) of a fold about an axis (3,) whose segment points along a direction (3,)."""
    z = np.cross(axis, along)
    x, z = axis / np.linalg.norm(axis), z / np.linalg.norm(z)
    return np.stack([x, np.cross(z, x), z], axis=1)
