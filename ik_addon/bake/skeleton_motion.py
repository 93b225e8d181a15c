"""The motion of a skeleton as its keys need it: without scale, and with the travel of the body on its root."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.skeleton import inverse, orthonormal
from ..solve.maths.products import times
from ..solve.maths.rotations import matrices, quaternions
from ..solve.problem import Floats


@dataclass(frozen=True)
class RootMotion:
    """How the root of a skeleton takes over motion of the hips. It always takes the horizontal movement."""

    name: str
    """Name of the root bone, which is made if it doesn't exist."""
    height: bool = False
    """Whether it moves up and down as well."""
    turn: bool = False
    """Whether it turns about the vertical as well."""

    def of(self, hips: Floats, rest: Floats, root: Floats) -> Floats:
        """Return world matrices (F, 4, 4) of the root.

        Args:
            hips: (F, 4, 4) world matrices of the hips, without scale.
            rest: (4, 4) the same at rest.
            root: (4, 4) world matrix of the root at rest.
        """
        count = len(hips)
        moved = np.broadcast_to(np.eye(4), (count, 4, 4)).copy()
        if self.turn:
            turned = times(hips[:, :3, :3], np.broadcast_to(rest[:3, :3].T, (count, 3, 3)))
            w, _x, _y, z = quaternions(np.moveaxis(turned, 0, -1))
            angle = 2.0 * np.arctan2(z, w)
            moved[:, 0, 0] = moved[:, 1, 1] = np.cos(angle)
            moved[:, 1, 0] = np.sin(angle)
            moved[:, 0, 1] = -moved[:, 1, 0]
        kept = np.array([1.0, 1.0, 1.0 if self.height else 0.0])
        turned_rest = (moved[:, :3, :3] * (kept * rest[:3, 3])).sum(axis=-1)
        moved[:, :3, 3] = kept * hips[:, :3, 3] - turned_rest
        return times(moved, np.broadcast_to(root, (count, 4, 4)))


def rigid(poses: Floats) -> Floats:
    """Return poses (..., 4, 4) without scale and shear; Y axes keep their direction, and nothing is mirrored."""
    out = poses.copy()
    frames = orthonormal(poses[..., :3, :3])
    frames[..., 2] = np.cross(frames[..., 0], frames[..., 1])
    out[..., :3, :3] = frames
    return np.asarray(out)


def local(poses: Floats, rest: Floats, parents: Sequence[int]) -> tuple[Floats, Floats]:
    """Return locations (F, k, 3) and quaternions (F, k, 4) relative to parents, from world poses without scale.

    Blender's rest matrices of bones that point back along their parent are off by about 1e-5. Each bone is computed
    from where its parent's keys really put the parent, so joints still end up in place.

    Args:
        poses: (F, k, 4, 4) world matrices.
        rest: (k, 4, 4) rest matrices as Blender has them.
        parents: index of each bone's parent; -1 if it has none.
    """
    locations, turns = np.empty((*poses.shape[:2], 3)), np.empty((*poses.shape[:2], 4))
    played: dict[int, Floats] = {}
    while len(played) < len(parents):
        for bone, parent in enumerate(parents):
            if bone in played or (parent >= 0 and parent not in played):
                continue
            start = np.broadcast_to(rest[bone], poses[:, bone].shape)
            if parent >= 0:
                below = times(inverse(rest[parent][None]), rest[bone][None])
                start = times(played[parent], np.repeat(below, len(poses), axis=0))
            basis = times(inverse(start), poses[:, bone])
            q = quaternions(np.moveaxis(rigid(basis)[:, :3, :3], 0, -1)).astype(np.float32).astype(np.float64)
            q /= np.linalg.norm(q, axis=0)
            locations[:, bone], turns[:, bone] = basis[:, :3, 3], q.T
            basis[:, :3, :3] = np.moveaxis(matrices(q), -1, 0)
            played[bone] = times(start, basis)
    return locations, turns
