"""Remember objects between frames, though undo and deletion free them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import bpy
import numpy as np


@dataclass(slots=True)
class Reference:
    """A reference to one object. A name is not enough: a local and a linked object may share it."""

    name: str
    library: str | None
    uid: int
    """`session_uid`, which no other object gets until Blender is closed."""
    _known: bpy.types.Object = field(repr=False, compare=False)
    """The object as Blender last gave it; finding it by name takes Blender longer, the more objects there are."""

    @classmethod
    def of(cls, ob: bpy.types.Object) -> Reference:
        """Return a reference to an object, or to the original of an evaluated one."""
        original = ob.original
        library = original.library.filepath if original.library else None
        return cls(original.name, library, original.session_uid, original)

    def find(self) -> bpy.types.Object | None:
        """Return the object, even if it was renamed; None if it was deleted."""
        try:
            if self._known.session_uid == self.uid:
                return self._known
        except ReferenceError:  # Blender freed it, but may have read it anew
            pass
        objects: Any = bpy.data.objects
        ob = objects.get((self.name, self.library))
        if ob is None or ob.session_uid != self.uid:
            ob = next((other for other in objects if other.session_uid == self.uid), None)
        if ob is not None:
            self._known = ob
        return ob


def uids(objects: Any) -> set[int]:
    """Return the `session_uid` of each object in one of Blender's object collections."""
    found = np.empty(len(objects), dtype=np.int32)
    objects.foreach_get("session_uid", found)
    return set(found.tolist())
