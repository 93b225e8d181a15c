"""What a chain knows of where its hand or foot touches: nothing that a solve reads."""

from __future__ import annotations

from bpy.props import EnumProperty, FloatVectorProperty

OVERRIDABLE = {"LIBRARY_OVERRIDABLE"}
HEEL, TOE = "HEEL", "TOE"
CONTACTS = (
    (HEEL, "Heel", "The heel, the root of the hand, or the end of a chain without either touches", 1),
    (TOE, "Toe", "The ball of the foot or the fingers touch", 2),
)
"""The last numbers are those that keys hold, added where both touch."""


class ContactSettings:
    """Part of the settings of a chain."""

    contact: EnumProperty(
        name="Contact",
        description="What touches the ground or an object on the current frame. Plant holds it still",
        items=CONTACTS,
        default=set(),
        options={"ENUM_FLAG", "ANIMATABLE"},
        override=OVERRIDABLE,
    )
    heel_pivot: FloatVectorProperty(
        name="Heel Pivot",
        description="Where the heel touches, in the axes of the end bone at rest, from its head. "
        "While both pivots are zero, they are found from the bones",
        size=3,
        subtype="XYZ",
        unit="LENGTH",
        options=set(),
        override=OVERRIDABLE,
    )
    toe_pivot: FloatVectorProperty(
        name="Toe Pivot",
        description="Where the ball of the foot touches, in the axes of the end bone at rest, from its head",
        size=3,
        subtype="XYZ",
        unit="LENGTH",
        options=set(),
        override=OVERRIDABLE,
    )
