"""Remember objects between frames without references to Blender's data, which undo and deletion free."""

from __future__ import annotations

from typing import Any, NamedTuple

import bpy
import numpy as np


class Reference(NamedTuple):
    """A reference to one object. A name is not enough: a local and a linked object may share it."""

    name: str
    library: str | None
    uid: int
    """`session_uid`, which no other object gets until Blender is closed."""

    @classmethod
    def of(cls, ob: bpy.types.Object) -> Reference:
        """Return a reference to an object, or to the original of an evaluated one."""
        original = ob.original
        return cls(original.name, original.library.filepath if original.library else None, original.session_uid)

    def find(self) -> bpy.types.Object | None:
        """Return the object, even if it was renamed; None if it was deleted."""
        objects: Any = bpy.data.objects
        ob = objects.get((self.name, self.library))
        if ob is not None and ob.session_uid == self.uid:
            return ob
        return next((other for other in objects if other.session_uid == self.uid), None)


def uids(objects: Any) -> set[int]:
    """Return the `session_uid` of each object in one of Blender's object collections."""
    found = np.empty(len(objects), dtype=np.int32)
    objects.foreach_get("session_uid", found)
    return set(found.tolist())
