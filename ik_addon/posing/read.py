"""From an armature as it stands to the arrays of a body."""

from __future__ import annotations

from dataclasses import dataclass

import bpy
import numpy as np

from ..pose import channels
from ..pose.skeleton import Skeleton, orthonormal
from ..rig.plan.chain import ChainError
from ..rig.plan.limits import ranges_of, stiffness_of
from ..solve import Body
from ..solve.maths.products import determinants
from ..solve.problem import Floats, Ints


@dataclass(frozen=True)
class Stand:
    """An armature as it stands, parents first."""

    skeleton: Skeleton
    order: Ints
    """(n,) which pose bone each bone of the body is."""
    index: dict[str, int]
    """The bone of the body by name."""
    pose: Floats
    """(n, 4, 4) pose matrices."""
    body: Body

    @classmethod
    def of(cls, ob: bpy.types.Object, root: str, gives: dict[str, float]) -> Stand:
        """Read an evaluated armature.

        Args:
            ob: the object.
            root: name of the bone that moves freely; empty: none does.
            gives: how readily bones come along, by name; others as their sizes say.

        Raises:
            ChainError: its bones cannot be posed.
        """
        skeleton = Skeleton.of(ob)
        order = np.argsort(skeleton.depths, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        parents = np.where(skeleton.parents[order] >= 0, place[skeleton.parents[order]], -1)
        pose = channels.read_pose(ob, order)
        frames = orthonormal(pose[:, :3, :3])
        if not np.isfinite(frames).all():
            raise ChainError("A bone is scaled to nothing. Scale it up to pose the body")
        if (determinants(frames) < 0.0).any():
            raise ChainError("A bone has a negative scale. Apply or clear it to pose the body")
        bones = [ob.pose.bones[i] for i in order.tolist()]
        ranges = np.array([ranges_of(bone) for bone in bones]).reshape(len(bones), 6)
        index = {bone.name: i for i, bone in enumerate(bones)}
        give = None
        body = Body(
            parents,
            pose[:, :3, 3],
            frames,
            root=index.get(root),
            rest=orthonormal(skeleton.offsets[order][:, :3, :3]),
            cones=ranges[:, :4],
            twist=ranges[:, 4:],
            stiffness=np.array([stiffness_of(bone) for bone in bones]),
            give=give,
        )
        return cls(skeleton, order, index, pose, body)
