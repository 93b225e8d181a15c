"""Settings for where the hand or foot of a chain touches; a solve reads none of them."""

from __future__ import annotations

from typing import Literal

from bpy.props import EnumProperty, FloatVectorProperty

from .notices import is_set
from .untyped import Declared

OVERRIDABLE: set[Literal["LIBRARY_OVERRIDABLE"]] = {"LIBRARY_OVERRIDABLE"}
HEEL, TOE = "HEEL", "TOE"
CONTACTS = (
    (HEEL, "Heel", "The heel, the wrist, or the end of a chain without either touches", 1),
    (TOE, "Toe", "The ball of the foot or the fingers touch", 2),
)
"""The last numbers are the values of keys, added if both touch."""


def _pivot(name: str, description: str) -> Declared:
    return FloatVectorProperty(
        name=name,
        description=description,
        size=3,
        subtype="XYZ",
        unit="LENGTH",
        options=set(),
        override=OVERRIDABLE,
        update=is_set,
    )


class ContactSettings:
    """The part of a chain's settings that is about contacts."""

    contact: EnumProperty(
        name="Contact",
        description="What touches the ground or an object on the current frame. Lock Feet holds it still",
        items=CONTACTS,
        default=set(),
        options={"ENUM_FLAG", "ANIMATABLE"},
        override=OVERRIDABLE,
        update=is_set,
    )
    heel_pivot: _pivot(
        "Heel Pivot",
        "Where the heel touches, in the axes of the end bone at rest, from its head. "
        "While both pivots are zero, they are found from the bones",
    )
    toe_pivot: _pivot(
        "Toe Pivot", "Where the ball of the foot touches, in the axes of the end bone at rest, from its head"
    )
