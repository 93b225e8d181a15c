"""The joints of the chains of armatures, cached until a chain changes because the overlay is drawn often."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import bpy
import numpy as np

from ...core.settings import chain_of
from ...core.skeleton import Skeleton
from ...posing.pins import stored_pins
from ...rig.plan import chain as chains
from ...solve.problem import Floats, Ints


@dataclass(frozen=True)
class Layout:
    """The bones of an armature's C enabled chains, with J joints in all."""

    count: int
    """Number of bones in the armature."""
    tips: tuple[str, ...]
    """Names of the tip bones."""
    owner: dict[str, int]
    """Index of the chain that a bone belongs to, by the bone's name."""
    bones: Ints
    """(J,) the bone at each joint; at the end of a chain its end bone, or its tip bone if it has none."""
    names: tuple[str, ...]
    """Names of these bones."""
    ends: Ints
    """(C,) index of each chain's end effector among the joints."""
    lengths: Floats
    """(C,) distance of the end effector from the head of the bone there, along its Y axis."""
    normals: dict[int, Floats]
    """Rest-pose normal (3,) of each planar chain that shares no bones, by the chain's index."""
    pins: dict[str, frozenset[str]]
    """Flags of pinned bones (`LOCATION`, `ROTATION`), by name."""

    @classmethod
    def of(cls, ob: bpy.types.Object, without: Collection[str] = ()) -> Layout:
        """Read the layout of an armature object, without the chains on some tip bones."""
        index = {bone.name: i for i, bone in enumerate(ob.pose.bones)}
        tips = [bone for bone in chains.tips(ob) if chain_of(bone).enabled and bone.name not in without]
        paths = [[bone.name for bone in chains.chain_bones(tip)] for tip in tips]
        lasts = [chains.end_of(tip) for tip in tips]
        at_ends = [tip if end is None else end for tip, end in zip(tips, lasts, strict=True)]
        names = tuple(name for path, end in zip(paths, at_ends, strict=True) for name in (*path, end.name))
        flat = [
            i
            for i, (tip, path) in enumerate(zip(tips, paths, strict=True))
            if chain_of(tip).planar
            and not any(other is not path and not set(path).isdisjoint(other) for other in paths)
        ]
        skeleton = Skeleton.of(ob) if flat else None
        through = {end.name: i for i, end in reversed([*enumerate(at_ends)])}
        through |= {name: i for i, path in reversed([*enumerate(paths)]) for name in path}
        return cls(
            count=len(index),
            tips=tuple(tip.name for tip in tips),
            owner=through | {tip.name: i for i, tip in enumerate(tips)},
            bones=np.array([index[name] for name in names], dtype=np.int64),
            names=names,
            ends=np.cumsum([len(path) + 1 for path in paths], dtype=np.int64) - 1,
            lengths=np.array([b.bone.length if b == tip else 0.0 for tip, b in zip(tips, at_ends, strict=True)], float),
            pins=stored_pins(ob),
            normals={i: skeleton.normal_at_rest([index[name] for name in paths[i]]) for i in flat},
        )

    def joints_of(self, chain: int) -> slice:
        """Return where the joints of a chain are, given its index."""
        return slice(0 if chain == 0 else int(self.ends[chain - 1]) + 1, int(self.ends[chain]) + 1)

    def fits(self, ob: bpy.types.Object) -> bool:
        """Whether the armature still has these bones; changes of chains must be tracked by the caller."""
        bones = ob.pose.bones
        # Look bones up by name: by index, Blender walks the list.
        return len(bones) == self.count and all(name in bones for name in {*self.names, *self.tips, *self.pins})
