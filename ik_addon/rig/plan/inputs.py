"""The numbers that determine the FK pose and the goals of a frame, if nothing but these numbers affects them.

The numbers are transform channels of bones, transforms of objects relative to their parents, and settings of chains.
Blender stores them in single precision and sets each from one F-curve, so F-curves determine them exactly. Everything
else follows from our own forward kinematics, so a frame is the same whether its numbers were read from evaluated copies
or from F-curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import bpy
import numpy as np
from numpy.typing import NDArray

from ...data.settings import chain_of
from ...pose import channels
from ...pose.channels import WIDTH, Row
from ...pose.constraints import moved_by
from ...pose.skeleton import Skeleton, matrix_array
from ...solve.problem import Bools, Floats, Ints
from .presence import Reference, are_related_anew
from .watch import NUMBERS

Numbers = NDArray[np.float32]
"""(F, w) the numbers of F frames, in the order of `Inputs`; frames with the same bits are the same frame."""
MATRIX = 16
RIDDEN = {"OBJECT", "ARMATURE", "BONE"}
"""The parent types that pass on nothing but location, rotation and scale."""


class Spot(NamedTuple):
    """A place: an object, or one of its bones."""

    item: int
    """Index in `Inputs.objects`."""
    bone: int
    """Index among the n bones of `Inputs`; -1: the object itself."""


class Placed(NamedTuple):
    """An object that is placed only by its own transform and its parent."""

    reference: Reference
    above: Spot | None
    """Its parent, or None."""
    reach: float
    """Distance from the parent bone's head, along the bone, to the point that the object is attached to."""
    unparented: Floats
    """(4, 4) the parent inverse matrix."""


class Bones(NamedTuple):
    """Bones of one armature."""

    item: int
    """Index of the armature object in `Inputs.objects`."""
    skeleton: Skeleton
    indices: Ints
    """(n,) in `pose.bones`."""


class _NotPlaced(Exception):  # noqa: N818 - it is no error, only not known
    """Something is moved by more than its own transform and its parents."""


@dataclass(frozen=True)
class Inputs:
    """What determines the frames of one armature: o objects, n bones and the settings of C chains."""

    objects: tuple[Placed, ...]
    """Parents before children."""
    own: int
    """Index of the chains' armature object."""
    armatures: tuple[Bones, ...]
    """The n bones, armature by armature."""
    parents: Ints
    """(n,) index of each bone's parent; -1 if it has none, or if the bone's pose is not needed."""
    levels: tuple[Ints, ...]
    """Indices of the bones whose pose is needed, by depth."""
    offsets: Floats
    """(n, 4, 4) as in `Skeleton`."""
    plain: Bools
    """(n,) as in `Skeleton`."""
    modes: tuple[str, ...]
    """(n,) rotation modes."""
    connected: Bools
    """(n,) whether Blender ignores the bone's location, because it is connected."""
    live: Ints
    """(k,) indices of the `Plan.live` bones."""
    sampled: Ints
    """(s,) indices of the `Plan.sampled` bones."""
    targets: tuple[Spot, ...]
    """(C,) where the target of each chain is."""
    poles: tuple[Spot | None, ...]
    """(C,) where the pole of each chain is."""
    tips: tuple[str, ...]
    """(C,) the tip bone of each chain."""
    others: tuple[Spot, ...]
    """Where other requested objects or bones are."""

    @classmethod
    def of(
        cls,
        ob: bpy.types.Object,
        depsgraph: bpy.types.Depsgraph,
        skeleton: Skeleton,
        live: Ints,
        sampled: Ints,
        tips: Sequence[str],
        others: Sequence[tuple[bpy.types.Object, str]] = (),
    ) -> Inputs | None:
        """Collect what determines the frames; None if anything else does, so that Blender's matrices are needed.

        Args:
            ob: the armature object, the original one.
            depsgraph: gives the evaluated copies.
            skeleton: the armature's bones at rest.
            live: as in `Plan`.
            sampled: as in `Plan`.
            tips: tip bones of the chains.
            others: other objects or bones whose place is requested.
        """
        chains = [chain_of(ob.pose.bones[tip]) for tip in tips]
        found = _Collected(depsgraph)
        try:
            own = found.armature(ob, skeleton)
            for bone in sampled.tolist():
                found.pose(own, bone)
            targets = [found.spot(chain.target, chain.target_bone) for chain in chains]
            poles = [None if chain.pole is None else found.spot(chain.pole, chain.pole_bone) for chain in chains]
            elsewhere = [found.spot(other, bone) for other, bone in others]
        except _NotPlaced:
            return None
        return found.inputs(own, live, sampled, targets, poles, tips, elsewhere)

    @property
    def width(self) -> int:
        """The number w of values per frame."""
        return self.rows.stop + len(NUMBERS) * len(self.tips)

    @cached_property
    def rows(self) -> slice:
        """The slice of the numbers with the channels (n, 17) of bones, after the objects and before the settings."""
        start = MATRIX * len(self.objects)
        return slice(start, start + WIDTH * len(self.modes))

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The channels that pose the bones, in their rotation modes."""
        return ("location", *dict.fromkeys(map(channels.rotation_field, self.modes)), "scale")

    def originals(self) -> list[bpy.types.Object] | None:
        """Return the original objects; None if one is gone, or an armature's number of bones changed."""
        found = [original for placed in self.objects if (original := placed.reference.find()) is not None]
        if len(found) < len(self.objects):
            return None
        return found if all(len(found[b.item].pose.bones) == len(b.skeleton.names) for b in self.armatures) else None

    def to_pose(self, bone: int, basis: Floats, parent: Floats | None) -> Floats:
        """Return pose matrices (F, 4, 4) of a bone with special inheritance flags; see `Skeleton.to_pose`."""
        for bones in self.armatures:
            if bone < len(bones.indices):
                break
            bone -= len(bones.indices)
        ob = self.objects[bones.item].reference.find()
        return basis if ob is None else bones.skeleton.to_pose(ob, int(bones.indices[bone]), basis, parent)

    def fk(self, numbers: Numbers) -> Row:
        """Return the FK channels (F, k, 17) of the live bones from the numbers of F frames."""
        return numbers[:, self.rows].reshape(len(numbers), len(self.modes), WIDTH)[:, self.live]


def is_edited(depsgraph: bpy.types.Depsgraph) -> bool:
    """Whether bones were changed, which tags the armature, or relations."""
    return depsgraph.id_type_updated("ARMATURE") or are_related_anew(depsgraph)


class _Collected:
    """Collects inputs. Until `inputs` returns them, spots refer to bones by their index in `pose.bones`."""

    def __init__(self, depsgraph: bpy.types.Depsgraph) -> None:
        self._depsgraph = depsgraph
        self._items: dict[int, int] = {}
        self._objects: list[Placed] = []
        self._skeletons: dict[int, Skeleton] = {}
        self._shown: dict[int, bpy.types.Object] = {}
        self._posed: dict[int, set[int]] = {}
        self._constrained: dict[int, set[str]] = {}

    def armature(self, ob: bpy.types.Object, skeleton: Skeleton) -> int:
        """Add an armature object with a known skeleton; return its index."""
        item = self.item(ob)
        if item not in self._skeletons:
            seen = ob.evaluated_get(self._depsgraph)
            data = ob.data.animation_data
            if data is not None and (data.action or data.drivers or data.nla_tracks):
                raise _NotPlaced  # the rest pose may be animated
            if seen.pose is None or tuple(seen.pose.bones.keys()) != skeleton.names:
                seen = ob  # edited, and not evaluated since
            if seen.data.pose_position == "REST":
                raise _NotPlaced
            self._skeletons[item], self._shown[item] = skeleton, seen
            self._posed[item] = set()
            self._constrained[item] = _constrained(seen)
        return item

    def item(self, ob: bpy.types.Object) -> int:
        """Add an object after its ancestors; return its index."""
        uid = ob.session_uid
        if uid not in self._items:
            seen = ob.evaluated_get(self._depsgraph)
            if any(not constraint.mute for constraint in seen.constraints) or ob.rigid_body is not None:
                raise _NotPlaced
            above, reach = None, 0.0
            if ob.parent is not None:
                if ob.parent_type not in RIDDEN or ob.parent.type == "CURVE":
                    raise _NotPlaced
                above = self.spot(ob.parent, ob.parent_bone if ob.parent_type == "BONE" else "")
                if above.bone >= 0:
                    bone = ob.parent.data.bones[ob.parent_bone]
                    if bone.use_relative_parent:
                        raise _NotPlaced
                    reach = bone.length * getattr(seen, "parent_bone_head_tail_factor", 1.0)
            self._items[uid] = len(self._objects)
            # From the evaluated copy, because in a render the original is on another frame.
            self._objects.append(Placed(Reference.of(ob), above, reach, matrix_array(seen.matrix_parent_inverse)))
        return self._items[uid]

    def spot(self, ob: bpy.types.Object, name: str) -> Spot:
        """Add an object, or its bone of this name if there is one; return its spot."""
        index = ob.pose.bones.find(name) if name and ob.type == "ARMATURE" and ob.pose is not None else -1
        if index < 0:
            return Spot(self.item(ob), -1)
        known = self._skeletons.get(self._items.get(ob.session_uid, -1))
        item = self.armature(ob, Skeleton.of(ob.evaluated_get(self._depsgraph)) if known is None else known)
        self.pose(item, index)
        return Spot(item, index)

    def pose(self, item: int, bone: int) -> None:
        """Add a bone whose pose is needed, and its ancestors."""
        skeleton, posed = self._skeletons[item], self._posed[item]
        for own in (bone, *skeleton.ancestors(bone)):
            if own in posed:
                return
            if skeleton.names[own] in self._constrained[item]:
                raise _NotPlaced
            posed.add(own)

    def inputs(
        self,
        own: int,
        live: Ints,
        sampled: Ints,
        targets: Sequence[Spot],
        poles: Sequence[Spot | None],
        tips: Sequence[str],
        others: Sequence[Spot],
    ) -> Inputs:
        """Return the collected inputs."""
        armatures: list[Bones] = []
        place: dict[tuple[int, int], int] = {}
        for item, skeleton in self._skeletons.items():
            indices = sorted(self._posed[item].union(live.tolist() if item == own else ()))
            place.update({(item, bone): len(place) + i for i, bone in enumerate(indices)})
            armatures.append(Bones(item, skeleton, np.array(indices, dtype=np.int64)))
        every = [(bones.item, bones.skeleton, bone) for bones in armatures for bone in bones.indices.tolist()]
        depths = np.array([s.depths[bone] if bone in self._posed[item] else -1 for item, s, bone in every], dtype=int)

        def there(spot: Spot) -> Spot:
            return spot if spot.bone < 0 else Spot(spot.item, place[spot.item, spot.bone])

        objects = [p if p.above is None else p._replace(above=there(p.above)) for p in self._objects]
        pose_bones = [self._shown[item].pose.bones[bone] for item, _, bone in every]
        return Inputs(
            objects=tuple(objects),
            own=own,
            armatures=tuple(armatures),
            parents=np.array([place.get((item, int(s.parents[bone])), -1) for item, s, bone in every], dtype=np.int64),
            levels=tuple(np.flatnonzero(depths == depth) for depth in range(depths.max(initial=-1) + 1)),
            offsets=np.array([s.offsets[bone] for _, s, bone in every]).reshape(-1, 4, 4),
            plain=np.array([s.plain[bone] for _, s, bone in every], dtype=bool),
            modes=tuple(bone.rotation_mode for bone in pose_bones),
            connected=np.array([bone.bone.use_connect for bone in pose_bones], dtype=bool),
            live=np.array([place[own, bone] for bone in live.tolist()], dtype=np.int64),
            sampled=np.array([place[own, bone] for bone in sampled.tolist()], dtype=np.int64),
            targets=tuple(map(there, targets)),
            poles=tuple(None if pole is None else there(pole) for pole in poles),
            tips=tuple(tips),
            others=tuple(map(there, others)),
        )


def _constrained(seen: bpy.types.Object) -> set[str]:
    """Return the names of the bones of an armature object that constraints move."""
    found: set[str] = set()
    for owner in seen.pose.bones:
        for constraint in owner.constraints:
            if not constraint.mute:
                found.update((owner.name, *moved_by(owner, constraint)))
    return found
