"""The numbers that determine the FK pose and the goals of a frame: a frame is a vector.

The numbers are transform channels of bones, transforms of objects relative to their parents, and settings of chains.
Blender stores them in single precision and sets each from one F-curve, so F-curves determine them exactly. Everything
else follows from our own forward kinematics, so a frame is the same whether its numbers were read from evaluated copies
or from F-curves.

What more than that places, a constraint for instance, is opaque: its evaluated matrix is among the numbers. It can be
read, but not foretold. An opaque bone below a live bone is described relative to its parent, so that it moves along.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple, Self

import numpy as np
from bpy.types import Object
from numpy.typing import NDArray

from ...core.channels import WIDTH, Row, rotation_field
from ...core.constraints import carrying, is_on
from ...core.data_paths import below_bone
from ...core.settings import chain_of
from ...core.skeleton import Skeleton, matrix_array
from ...solve.problem import Bools, Floats, Ints
from .facts import OBJECT_FIELDS, READ, Settings
from .presence import Presence, Reference
from .sources import Carrier, Part, driving, uid_of

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
    """An object, placed by its own transform and its parent, or opaque."""

    reference: Reference
    is_opaque: bool
    """Whether its numbers are its world matrix, and not its own transform."""
    above: Spot | None
    """Its parent, or what carries it just as a parent would, or None."""
    reach: float
    """Distance from the parent bone's head, along the bone, to the point that the object is attached to."""
    unparented: Floats
    """(4, 4) the inverse matrix kept with that."""


class Bones(NamedTuple):
    """Bones of one armature."""

    item: int
    """Index of the armature object in `Inputs.objects`."""
    skeleton: Skeleton
    indices: Ints
    """(b,) in `pose.bones`."""
    place: slice
    """Where these are among the n bones of `Inputs`."""
    opaque: Ints
    """Which of them are opaque, as indices among these n."""


@dataclass(frozen=True)
class Inputs:
    """What determines the frames of one armature: objects, n bones (m opaque), settings of C chains."""

    objects: tuple[Placed, ...]
    """Parents before children."""
    own: int
    """Index of the chains' armature object."""
    armatures: tuple[Bones, ...]
    """The n bones, armature by armature, those of the chains' own first."""
    posed: tuple[tuple[int, int], ...]
    """The bones whose pose is computed, parents first, each with its parent, by index; -1: no parent."""
    riding: frozenset[int]
    """Those of the opaque bones that are described relative to their parent, as they are below a live bone."""
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
    places: Mapping[int, int]
    """Index of each bone of the chains' armature, by its index in `pose.bones`."""
    targets: tuple[Spot, ...]
    """(C,) where the target of each chain is."""
    poles: tuple[Spot | None, ...]
    """(C,) where the pole of each chain is."""
    tips: tuple[str, ...]
    """(C,) the tip bone of each chain."""
    others: tuple[Spot, ...]
    """Where other requested objects or bones are."""
    asked: frozenset[Carrier]
    """The bones that Blender has to pose before the numbers can be read, if they are live: they move opaque parts,
    belong to another armature, or are read by drivers."""

    @classmethod
    def of(
        cls,
        ob: Object,
        presence: Presence,
        skeleton: Skeleton,
        live: Ints,
        needed: Iterable[int],
        tips: Sequence[str],
        others: Sequence[tuple[Object, str]] = (),
    ) -> Self:
        """Collect what determines the frames.

        Args:
            ob: the armature object, the original one.
            presence: gives the evaluated copies, and what moves them.
            skeleton: the armature's bones at rest.
            live: as in `Plan`.
            needed: bones of the armature whose pose is needed.
            tips: tip bones of the chains.
            others: other objects or bones whose place is requested.
        """
        chains = [chain_of(ob.pose.bones[tip]) for tip in tips]
        found = _Collected(presence, ob, live)
        own = found.armature(ob, skeleton)
        for bone in needed:
            found.pose(own, bone)
        targets = [found.spot(chain.target, chain.target_bone) for chain in chains]
        poles = [None if chain.pole is None else found.spot(chain.pole, chain.pole_bone) for chain in chains]
        elsewhere = [found.spot(other, bone) for other, bone in others]

        every: list[tuple[_Posed, int]] = []
        listed: list[Bones] = []
        for known in sorted(found.armatures.values(), key=lambda known: known is not own):
            bones = sorted(known.needed.union(live.tolist() if known is own else ()))
            place = slice(len(every), len(every) + len(bones))
            opaque = np.flatnonzero([bone in known.needed and bone in known.opaque for bone in bones])
            indices = np.array(bones, dtype=np.int64)
            listed.append(Bones(known.item, known.skeleton, indices, place, place.start + opaque))
            every += [(known, bone) for bone in bones]
        places = {(known.item, bone): i for i, (known, bone) in enumerate(every)}
        # Poses that follow from that of the parent.
        posed = [
            i for i, (k, bone) in enumerate(every) if bone in k.riding or (bone in k.needed and bone not in k.opaque)
        ]
        posed.sort(key=lambda i: every[i][0].skeleton.depths[every[i][1]])
        parents = [places.get((known.item, int(known.skeleton.parents[bone])), -1) for known, bone in every]

        def there(spot: Spot) -> Spot:
            return spot if spot.bone < 0 else Spot(spot.item, places[spot.item, spot.bone])

        pose_bones = [known.seen.pose.bones[bone] for known, bone in every]
        return cls(
            objects=tuple(p if p.above is None else p._replace(above=there(p.above)) for _ob, p in found.objects),
            own=own.item,
            armatures=tuple(listed),
            posed=tuple((i, parents[i]) for i in posed),
            riding=frozenset(i for i, (known, bone) in enumerate(every) if bone in known.riding),
            offsets=np.array([known.skeleton.offsets[bone] for known, bone in every]).reshape(-1, 4, 4),
            plain=np.array([known.skeleton.plain[bone] for known, bone in every], dtype=bool),
            modes=tuple(bone.rotation_mode for bone in pose_bones),
            connected=np.array([bone.bone.use_connect for bone in pose_bones], dtype=bool),
            live=np.array([places[own.item, bone] for bone in live.tolist()], dtype=np.int64),
            places={bone: place for (item, bone), place in places.items() if item == own.item},
            targets=tuple(map(there, targets)),
            poles=tuple(None if pole is None else there(pole) for pole in poles),
            tips=tuple(tips),
            others=tuple(map(there, elsewhere)),
            asked=found.asked(own, tips),
        )

    @property
    def width(self) -> int:
        """The number w of values per frame."""
        return self.settings.stop

    @cached_property
    def rows(self) -> slice:
        """The slice of the numbers with the channels (n, 17) of bones, after the matrices of objects."""
        start = MATRIX * len(self.objects)
        return slice(start, start + WIDTH * len(self.modes))

    @cached_property
    def given(self) -> slice:
        """The slice of the numbers with the poses (m, 4, 4) of opaque bones: in object space, or below their parent."""
        return slice(self.rows.stop, self.rows.stop + MATRIX * len(self.opaque))

    @cached_property
    def settings(self) -> slice:
        """The slice of the numbers with the `Settings` (C, S) of chains."""
        return slice(self.given.stop, self.given.stop + len(Settings._fields) * len(self.tips))

    def ridden(self, spot: Spot | None) -> int:
        """Return the bone of the chains' armature from which a place hangs by what carries it alone; -1: none."""
        while spot is not None and spot.item != self.own:
            spot = self.objects[spot.item].above
        return -1 if spot is None or spot.bone < 0 else int(self.armatures[0].indices[spot.bone])

    def own_opaque(self, *, riding: bool) -> frozenset[int]:
        """Return indices in `pose.bones` of the opaque bones of the chains' armature: those riding, or the others."""
        chosen = [bone for bone in self.armatures[0].opaque.tolist() if (bone in self.riding) is riding]
        return frozenset(self.armatures[0].indices[chosen].tolist())

    @cached_property
    def opaque(self) -> list[int]:
        """Indices among the n bones of the m opaque ones."""
        return [bone for own in self.armatures for bone in own.opaque.tolist()]

    @cached_property
    def is_opaque(self) -> bool:
        """Whether anything is opaque, so that frames can't be foretold."""
        return any(placed.is_opaque for placed in self.objects) or bool(self.opaque)

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The channels that pose the bones, in their rotation modes."""
        return ("location", *dict.fromkeys(map(rotation_field, self.modes)), "scale")

    def originals(self) -> list[Object] | None:
        """Return the original objects; None if one is gone, or an armature's number of bones changed."""
        found = [original for placed in self.objects if (original := placed.reference.find()) is not None]
        if len(found) < len(self.objects):
            return None
        return found if all(len(found[b.item].pose.bones) == len(b.skeleton.names) for b in self.armatures) else None

    def to_pose(self, bone: int, basis: Floats, parent: Floats | None) -> Floats:
        """Return pose matrices (F, 4, 4) of a bone with special inheritance flags; see `Skeleton.to_pose`.

        A report on an earlier frame may ask for a bone that is gone by now.
        """
        bones = next(bones for bones in self.armatures if bone < bones.place.stop)
        ob, own = self.objects[bones.item].reference.find(), int(bones.indices[bone - bones.place.start])
        if ob is None or bones.skeleton.names[own] not in ob.data.bones:
            return basis
        return bones.skeleton.to_pose(ob, own, basis, parent)

    def fk(self, numbers: Numbers) -> Row:
        """Return the FK channels (F, k, 17) of the live bones from the numbers of F frames."""
        return numbers[:, self.rows].reshape(len(numbers), len(self.modes), WIDTH)[:, self.live]


@dataclass(frozen=True)
class _Posed:
    """An armature while inputs are collected; bones are indices in `pose.bones`."""

    ob: Object
    seen: Object
    """Its evaluated copy."""
    item: int
    skeleton: Skeleton
    opaque: set[int]
    """Its opaque bones, whether they are needed or not."""
    needed: set[int] = field(default_factory=set)
    """The bones whose pose is needed."""
    riding: set[int] = field(default_factory=set)
    """Those of the opaque ones that are below live bones."""


class _Collected:
    """Collects inputs. Its spots refer to bones by their index in `pose.bones`."""

    def __init__(self, presence: Presence, rig: Object, live: Ints) -> None:
        self._presence, self._sources = presence, presence.sources
        self._rig, self._live = rig, set(live.tolist())
        self._items: dict[int, int] = {}
        self.objects: list[tuple[Object, Placed]] = []
        self.armatures: dict[int, _Posed] = {}
        """By the index of the object."""

    def armature(self, ob: Object, skeleton: Skeleton | None = None) -> _Posed:
        """Add an armature object; its skeleton may be known."""
        item = self.item(ob)
        if item not in self.armatures:
            seen = self._presence.posed(ob)
            skeleton = skeleton or Skeleton.of(seen)
            data = ob.data.animation_data
            # The rest pose may be animated, or shown.
            is_rest = seen.data.pose_position == "REST" or (
                data is not None and bool(data.action or data.drivers or data.nla_tracks)
            )
            opaque = {i for i, name in enumerate(skeleton.names) if is_rest or self._sources.is_held(ob, name)}
            self.armatures[item] = _Posed(ob, seen, item, skeleton, opaque)
        return self.armatures[item]

    def item(self, ob: Object) -> int:
        """Add an object after its ancestors; return its index."""
        uid = ob.session_uid
        if uid not in self._items:
            seen = self._presence.seen(ob)
            above, reach, is_opaque = None, 0.0, _is_opaque(ob, seen)
            inverse, carrier = seen.matrix_parent_inverse, None if is_opaque else _above(ob, seen)
            if carrier is not None:
                above = self.spot(*carrier)
                if ob.parent is None:
                    inverse = carrying(seen).inverse_matrix
                elif above.bone >= 0:
                    bone = ob.parent.data.bones[ob.parent_bone]
                    reach = bone.length * getattr(seen, "parent_bone_head_tail_factor", 1.0)
            self._items[uid] = len(self.objects)
            # From the evaluated copy, because in a render the original is on another frame.
            self.objects.append((ob, Placed(Reference.of(ob), is_opaque, above, reach, matrix_array(inverse))))
        return self._items[uid]

    def spot(self, ob: Object, name: str) -> Spot:
        """Add an object, or its bone of this name if there is one; return its spot."""
        index = ob.pose.bones.find(name) if name and ob.type == "ARMATURE" and ob.pose is not None else -1
        if index < 0:
            return Spot(self.item(ob), -1)
        armature = self.armature(ob)
        self.pose(armature, index)
        return Spot(armature.item, index)

    def pose(self, armature: _Posed, bone: int) -> None:
        """Add a bone whose pose is needed, and its ancestors up to one that is opaque."""
        for own in (bone, *armature.skeleton.ancestors(bone)):
            if own in armature.needed:
                return
            armature.needed.add(own)
            if own in armature.opaque:
                if armature.ob != self._rig or self._live.isdisjoint(armature.skeleton.ancestors(own)):
                    return
                armature.riding.add(own)

    def asked(self, own: _Posed, tips: Sequence[str]) -> frozenset[Carrier]:
        """Return `Inputs.asked`."""
        parts: list[Part] = []
        found: set[Carrier] = set()
        for ob, placed in self.objects:
            parts += [Part(ob)] if placed.is_opaque else driving(ob, OBJECT_FIELDS.__contains__)
        for known in self.armatures.values():
            ob, named = known.ob, known.skeleton.names
            names = {named[bone] for bone in known.needed - known.opaque}
            if known is own:
                names |= {named[bone] for bone in self._live} | set(tips)
            else:
                found.update(Carrier(uid_of(ob), name) for name in names)
            for bone in known.needed & known.opaque:
                local = self._sources.local(ob, named[bone]) if bone in known.riding else None
                parts += [Part(ob, named[bone])] if local is None else local
            parts += driving(ob, partial(_is_read, names))
        return frozenset(found) | self._sources.carriers(parts)


def _above(ob: Object, seen: Object) -> tuple[Object, str] | None:
    """Return what carries an object that is not opaque, and the name of its bone; None if nothing does."""
    own = carrying(seen)
    if own is not None and own.target is not None:
        return own.target.original, own.subtarget
    return None if ob.parent is None else (ob.parent, ob.parent_bone if ob.parent_type == "BONE" else "")


def _is_opaque(ob: Object, seen: Object) -> bool:
    """Whether more than its own transform and what carries it places an object; `seen` is its evaluated copy."""
    if ob.rigid_body is not None or (any(map(is_on, seen.constraints)) and carrying(seen) is None):
        return True
    if ob.parent is None:
        return False
    if ob.parent_type not in RIDDEN or ob.parent.type == "CURVE":
        return True
    bone = ob.parent.data.bones.get(ob.parent_bone) if ob.parent_type == "BONE" else None
    return bone is not None and bone.use_relative_parent


def _is_read(names: Collection[str], path: str) -> bool:
    """Whether a data path concerns numbers of bones with these names."""
    name, rest = below_bone(path)
    return rest in READ and name in names
