"""What moves an object or a bone as Blender evaluates it, back to the bones of armatures.

It follows parents, constraints and drivers. Where something is attached to points of a mesh, curve or lattice, it
follows the modifiers that deform these.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from bpy.types import ID, Constraint, Object

from ...core import compat
from ...core.channels import FIELDS
from ...core.constraints import SCALING, is_on, moved_by, targets_of
from ...core.data_paths import below_bone
from ...core.goals import Holder
from ...core.untyped import Struct

ON_SHAPE = {"SHRINKWRAP", "FOLLOW_PATH", "CLAMP_TO", "SPLINE_IK", "GEOMETRY_ATTRIBUTE"}
"""Constraints that read the shape of their target, deformed, and not only its transform."""
POSED = (*FIELDS, "matrix", "head", "tail", "center", "vector", "x_axis", "y_axis", "z_axis", "length")
"""What a driver may read of a pose bone, or of an object, that depends on where it is."""


class Carrier(NamedTuple):
    """A bone of an armature object that moves something."""

    armature: int
    """`session_uid` of the object."""
    bone: str


class Part(NamedTuple):
    """A place: an object, one of its bones, or points of its shape."""

    ob: Object
    bone: str = ""
    """Name of a bone; empty: the object itself."""
    points: tuple[int, ...] | None = None
    """Vertices of its shape; none of them: all. None: the transform is meant."""


def uid_of(ob: ID) -> int:
    """Return the `session_uid` of a data-block's original; evaluated copies have none of their own."""
    return ob.original.session_uid


class Sources:
    """Finds what moves parts. Asks Blender once for each part, so keep it no longer than nothing is edited."""

    def __init__(self, seen: Callable[[Object], Object] = lambda ob: ob) -> None:
        """Begin with nothing; `seen` returns the copy of an object whose constraints count, animated as they are."""
        self._seen = seen
        self._beyond: dict[tuple[object, ...], list[Part]] = {}
        self._movers: dict[int, dict[str, list[Part]]] = {}

    def carriers(self, parts: Iterable[Part]) -> frozenset[Carrier]:
        """Return all bones that move parts, directly or through others, these parts included."""
        found: set[Carrier] = set()
        visited: set[tuple[object, ...]] = set()
        waiting = list(parts)
        while waiting:
            part = waiting.pop()
            key = (uid_of(part.ob), *part[1:])
            if key in visited:
                continue
            visited.add(key)
            if part.bone and part.ob.type == "ARMATURE":
                found.add(Carrier(uid_of(part.ob), part.bone))
            if key not in self._beyond:
                self._beyond[key] = list(self._next(part))
            waiting += self._beyond[key]
        return frozenset(found)

    def is_held(self, ob: Object, bone: str) -> bool:
        """Whether constraints move a bone, on itself or below it."""
        return bone in self._holding(ob)

    def local(self, ob: Object, bone: str) -> list[Part] | None:
        """Return what the constraints on a bone read, if its parent takes the result along as it is; None if not."""
        constraints = list(filter(is_on, self._seen(ob).pose.bones[bone].constraints))
        if not constraints or not all(own.type in SCALING or own.owner_space == "LOCAL" for own in constraints):
            return None
        return [part for constraint in constraints for part in _read_by(constraint)]

    def _holding(self, ob: Object) -> dict[str, list[Part]]:
        """Return what the constraints that move bones read, on these or below them, by the bone that they move."""
        uid = uid_of(ob)
        if uid not in self._movers:
            found = self._movers[uid] = {}
            seen = self._seen(ob)
            for owner in seen.pose.bones if seen.pose is not None else ():
                for constraint in filter(is_on, owner.constraints):
                    for name in {owner.name, *moved_by(owner, constraint)}:
                        found.setdefault(name, []).extend(_read_by(constraint))
        return self._movers[uid]

    def _next(self, part: Part) -> Iterator[Part]:
        ob, name = part.ob, part.bone
        if part.points is not None:
            yield Part(ob)
            yield from _deforming(ob, part.points)
            return
        if name:
            bone = None if ob.pose is None else ob.pose.bones.get(name)
            yield Part(ob) if bone is None or bone.parent is None else Part(ob, bone.parent.name)
            if bone is not None:
                yield from self._holding(ob).get(name, ())
                yield from driving(ob, lambda path: below_bone(path)[0] == name)
            return
        yield from _above(ob)
        for constraint in filter(is_on, self._seen(ob).constraints):
            yield from _read_by(constraint)
        yield from driving(ob, lambda path: not below_bone(path)[0])


def related(ob: Object, bone: str = "") -> list[Object]:
    """Return an object and all objects whose settings may decide where it is: parents, constraint targets.

    Constraints that are off now count, too: what switches them may be animated.
    """
    found: dict[int, Object] = {}
    visited: set[tuple[int, str]] = set()
    waiting: list[tuple[Object | None, str]] = [(ob, bone)]
    while waiting:
        own, name = waiting.pop()
        if own is None or (uid_of(own), name) in visited:
            continue
        visited.add((uid_of(own), name))
        found[uid_of(own)] = own
        posed = own.pose.bones.get(name) if name and own.pose is not None else None
        owners: tuple[Holder, ...] = (own,) if posed is None else (own, posed, *posed.parent_recursive)
        waiting += [target for owner in owners for constraint in owner.constraints for target in targets_of(constraint)]
        waiting.append((own.parent, own.parent_bone if own.parent_type == "BONE" else ""))
    return list(found.values())


def _at(ob: Object | None, name: str, *, on_shape: bool = False) -> Iterator[Part]:
    """Yield the part that a target and its subtarget name: a bone, a vertex group or the object."""
    if ob is None:
        return
    if ob.type == "ARMATURE":
        yield Part(ob, name if name and ob.pose is not None and name in ob.pose.bones else "")
    elif on_shape or name:
        yield Part(ob, points=_in_group(ob, name))
    else:
        yield Part(ob)


def _above(ob: Object) -> Iterator[Part]:
    parent = ob.parent
    if parent is None:
        return
    if ob.parent_type in {"VERTEX", "VERTEX_3"}:
        count = 1 if ob.parent_type == "VERTEX" else 3
        yield Part(parent, points=tuple(ob.parent_vertices[:count]))
    else:
        yield from _at(parent, ob.parent_bone if ob.parent_type == "BONE" else "")
        if parent.type in {"CURVE", "LATTICE"}:
            yield Part(parent, points=())


def _read_by(constraint: Constraint) -> Iterator[Part]:
    """Yield what a constraint reads."""
    on_shape = constraint.type in ON_SHAPE
    for target, name in targets_of(constraint):
        yield from _at(target, name, on_shape=on_shape)
    yield from _at(getattr(constraint, "pole_target", None), getattr(constraint, "pole_subtarget", ""))
    yield from _at(getattr(constraint, "space_object", None), getattr(constraint, "space_subtarget", ""))


def _deforming(ob: Object, points: tuple[int, ...]) -> Iterator[Part]:
    """Yield what deforms points of an object; all of them if none are given."""
    modifiers: Struct = ob.modifiers
    for modifier in modifiers:
        if modifier.type == "ARMATURE" and modifier.object is not None:
            yield from _weighted(ob, modifier.object, points)
            continue
        pointers = (setting.identifier for setting in modifier.bl_rna.properties if setting.type == "POINTER")
        for value in [getattr(modifier, pointer) for pointer in pointers]:
            if isinstance(value, Object):
                yield from _at(value, getattr(modifier, "subtarget", ""), on_shape=True)
        for value in modifier.values() if modifier.type == "NODES" else ():
            if isinstance(value, Object):
                yield from _at(value, "", on_shape=True)
    if ob.parent is not None and ob.parent_type == "ARMATURE" and ob.parent.type == "ARMATURE":
        yield from _weighted(ob, ob.parent, points)
    keys = getattr(ob.data, "shape_keys", None)
    if keys is not None:
        yield from driving(keys, lambda _path: True)


def _weighted(ob: Object, armature: Object, points: tuple[int, ...]) -> Iterator[Part]:
    """Yield the bones of an armature that move points of an object in its skin."""
    vertices = getattr(ob.original.data, "vertices", None)
    if vertices is None:
        yield from (Part(armature, bone.name) for bone in armature.data.bones if bone.use_deform)
        return
    chosen = vertices if not points else [vertices[point] for point in points if point < len(vertices)]
    used = {element.group for vertex in chosen for element in vertex.groups if element.weight > 0.0}
    for group in ob.original.vertex_groups:
        if group.index in used and group.name in armature.data.bones:
            yield Part(armature, group.name)


def _in_group(ob: Object, name: str) -> tuple[int, ...]:
    """Return the vertices in a vertex group; empty, which means all of them, if there is no such group."""
    group = ob.original.vertex_groups.get(name) if name else None
    vertices = getattr(ob.original.data, "vertices", None)
    if group is None or vertices is None:
        return ()
    return tuple(v.index for v in vertices if any(element.group == group.index for element in v.groups))


def driving(owner: Struct, is_concerned: Callable[[str], bool]) -> Iterator[Part]:
    """Yield what the drivers of a data-block read that set certain data paths, through driven properties as well."""
    waiting: list[tuple[Struct, Callable[[str], bool]]] = [(owner, is_concerned)]
    visited: set[tuple[int, str]] = set()
    while waiting:
        block, concerned = waiting.pop()
        for driver in [own for own in compat.drivers_of(block) if not own.mute and concerned(own.data_path)]:
            for variable in driver.driver.variables:
                for target in variable.targets if variable.type != "CONTEXT_PROP" else ():
                    if target.id is None:
                        continue
                    if variable.type != "SINGLE_PROP":
                        yield from _at(target.id, target.bone_target)
                        continue
                    path = target.data_path
                    name, rest = below_bone(path)
                    if isinstance(target.id, Object) and (rest if name else path).startswith(POSED):
                        yield from _at(target.id, name)
                    elif (uid_of(target.id), path) not in visited:  # the property may be driven itself
                        visited.add((uid_of(target.id), path))
                        waiting.append((target.id, path.startswith))
