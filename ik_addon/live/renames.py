"""Keep targets, poles and end bones on their bones when these are renamed, as Blender does for its own constraints.

A bone counts as renamed if its old name is gone, and the bone in its place in the armature has a new name and the same
rest pose. Bones that Join or Duplicate adds get other names if theirs are taken; their chains then keep to those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import bpy
import numpy as np
from bpy.types import Armature, Object, PoseBone
from numpy.typing import NDArray

from ..core import hooks
from ..core.settings import chain_of, goal_of, text_of
from ..core.untyped import Struct
from ..rig.plan.chain import NUMBER, end_of, tips


@dataclass(frozen=True)
class _Bones:
    names: tuple[str, ...]
    rest: NDArray[np.float32]
    """(n, 16) rest matrices."""

    @classmethod
    def of(cls, armature: Armature) -> _Bones:
        rest = np.empty(16 * len(armature.bones), dtype=np.float32)
        armature.bones.foreach_get("matrix_local", rest)
        return cls(tuple(armature.bones.keys()), rest.reshape(-1, 16))

    def renamed(self, after: _Bones) -> dict[str, str]:
        """Return the new names of renamed bones, by their old names."""
        if len(after.names) != len(self.names):
            return {}
        lost, found = set(self.names).difference(after.names), set(after.names).difference(self.names)
        return {
            old: new
            for i, (old, new) in enumerate(zip(self.names, after.names, strict=True))
            if old in lost and new in found and np.array_equal(self.rest[i], after.rest[i])
        }

    def came_along(self, after: _Bones, tip: str, name: str) -> str:
        """Return what a bone is called now that was added with a tip bone, and used to have this name.

        Blender adds bones in the order of those that it copies: of another armature, or of this one.
        """
        added = [each for each in after.names if each not in self.names]
        if tip not in added or name not in self.names:
            return name
        plain = sorted(map(_plain, added))
        copied = next((own for own in _known.values() if sorted(map(_plain, own.names)) == plain), self).names
        tips, tips_copied = _alike(added, tip), _alike(copied, tip)
        found, there = _alike(added, name), _alike(copied, name)
        if name not in there or not tips_copied:
            return name
        place = tips.index(tip) // len(tips_copied) * len(there) + there.index(name)
        return found[place] if place < len(found) else name


def _plain(name: str) -> str:
    """Return the name of a bone without the number that Blender adds if it is taken."""
    return NUMBER.sub("", name)


def _alike(names: Iterable[str], name: str) -> list[str]:
    """Return the names that differ from one by their number alone."""
    return [each for each in names if _plain(each) == _plain(name)]


_known: dict[int, _Bones] = {}
"""By `session_uid` of the armature; kept across undo, which may bring a name back."""


def clear() -> None:
    """Forget all names, when another file is opened."""
    _known.clear()


def remember(ob: Object) -> None:
    """Remember the bones of the armatures that hold goals of an armature object's chains."""
    for _tip, _setting, named in _bones_named([ob]):
        armature: Struct = named.data
        if armature.session_uid not in _known:
            _known[armature.session_uid] = _Bones.of(armature)


def follow(armatures: Iterable[Armature]) -> None:
    """Update bone names in the chains of all objects after bones of these armatures were renamed."""
    for armature in armatures:
        before = _known.get(armature.session_uid)
        if before is None:
            continue
        with hooks.apart(armature.name):
            after = _known[armature.session_uid] = _Bones.of(armature)
            _settle(armature)  # also where no name is new: after Symmetrize, chains come with a later update than bones
            names, is_larger = before.renamed(after), len(after.names) > len(before.names)
            for tip, setting, named in list(_bones_named(bpy.data.objects)) if names or is_larger else ():
                name = getattr(chain_of(tip), setting)
                now = before.came_along(after, tip.name, name) if tip.id_data.data == armature else name
                if named.data == armature and names.get(name, now) != name:
                    setattr(chain_of(tip), setting, names.get(name, now))


def _settle(armature: Armature) -> None:
    """Store the end bones that chains take after Symmetrize or Join, so that the panel names them."""
    for ob in bpy.data.objects:
        for tip in tips(ob) if ob.data == armature else ():
            end = end_of(tip)
            if end is not None and end.name != text_of(chain_of(tip), "end_bone"):
                chain_of(tip).end_bone = end.name


def _bones_named(objects: Iterable[Object]) -> Iterator[tuple[PoseBone, str, Object]]:
    """Yield each tip whose chain names a bone, the setting that does, and the armature object of that bone."""
    for ob in objects:
        for tip in tips(ob) if ob.type == "ARMATURE" else ():
            for role in ("target", "pole"):
                goal, bone = goal_of(chain_of(tip), role)
                if goal is not None and goal.type == "ARMATURE" and bone:
                    yield tip, f"{role}_bone", goal
            if text_of(chain_of(tip), "end_bone"):
                yield tip, "end_bone", ob
