"""From an armature as it stands to the arrays of a body."""

from __future__ import annotations

from dataclasses import dataclass

import bpy
import numpy as np

from ..data.settings import chain_of
from ..pose import channels
from ..pose.constraints import steered_bones
from ..pose.skeleton import Skeleton, orthonormal
from ..rig.plan.chain import ChainError
from ..rig.plan.limits import ranges_of, stiffness_of
from ..solve import Body
from ..solve.maths.products import determinants
from ..solve.problem import Floats, Ints


@dataclass(frozen=True)
class Stand:
    """An armature as it stands. Bones are in the order of its body, parents first."""

    skeleton: Skeleton
    order: Ints
    """(n,) which pose bone each bone is."""
    index: dict[str, int]
    """Bones by name."""
    pose: Floats
    """(n, 4, 4) pose matrices."""
    body: Body

    @classmethod
    def of(cls, ob: bpy.types.Object, root: str) -> Stand:
        """Read an armature.

        Args:
            ob: the object, up to date.
            root: name of the bone that moves freely; empty: none does.

        Raises:
            ChainError: its bones can't be posed.
        """
        skeleton = Skeleton.of(ob)
        order = np.argsort(skeleton.depths, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        parents = np.where(skeleton.parents[order] >= 0, place[skeleton.parents[order]], -1)
        pose = channels.read_pose(ob, order)
        frames = orthonormal(pose[:, :3, :3])
        bones = [ob.pose.bones[i] for i in order.tolist()]
        usable = np.isfinite(frames).all(axis=(1, 2)) & (determinants(frames) > 0.0)
        if not usable.all():
            name = bones[int(np.argmin(usable))].name
            raise ChainError(
                "The bone '{name}' has a negative scale or none. Change its scale to pose the body", name=name
            )
        ranges = np.array([ranges_of(bone) for bone in bones]).reshape(len(bones), 6)
        steered = steered_bones(ob)
        body = Body(
            parents,
            pose[:, :3, 3],
            frames,
            rest=orthonormal(skeleton.offsets[order][:, :3, :3]),
            cones=ranges[:, :4],
            twist=ranges[:, 4:],
            stiffness=np.array([stiffness_of(bone) for bone in bones]).reshape(len(bones), 3),
            give=np.array([0.0 if bone.name in steered else chain_of(bone).give for bone in bones]),
            root={bone.name: i for i, bone in enumerate(bones)}.get(root),
        )
        return cls(skeleton, order, {bone.name: i for i, bone in enumerate(bones)}, pose, body)
