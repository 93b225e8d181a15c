"""What Blender's type stubs can't tell, by name: the border at which types end, and why each of them does."""

from typing import Any

import bpy
from bpy.types import ID, Object
from numpy.typing import NDArray

Struct = Any
"""What of Blender has a type that only a run knows: it is reached by a name or path, its subtype decides, or the stubs
lack what it has."""
Value = Any
"""The value of a property of such a struct, or of an option or field that is reached by its name."""
Declared = Any
"""A property that a function declares: Blender reads the call itself, to which the stubs give no type."""
Versioned = Any
"""An action, its slots, layers and what is in them: other versions of Blender have other attributes."""
Shaped = Any
"""A number, or an array of as many as it is computed from."""
Column = NDArray[Any]
"""Numbers whose type is that of the attribute or array that they come from."""
Json = dict[str, Any]
"""What JSON can hold, under names."""


def has_mark(block: object, name: str) -> bool:
    """Whether a data-block or bone, if there is one, has a custom property: the stubs know of none."""
    holder: Struct = block
    return holder is not None and name in holder


def set_mark(block: object, name: str) -> None:
    """Give a data-block or bone a custom property that is true."""
    holder: Struct = block
    holder[name] = True


def users_of(block: ID) -> set[ID]:
    """Return the data-blocks that refer to one; the stubs require all options of `user_map`."""
    blend: Struct = bpy.data
    return blend.user_map(subset=[block])[block]


def own_object(name: str) -> Object | None:
    """Return the object of this name that is not linked; the stubs know of no pairs of name and library."""
    objects: Struct = bpy.data.objects
    return objects.get((name, None))
