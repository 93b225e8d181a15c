"""Settings for how far an edit reaches, on scenes and operators."""

from __future__ import annotations

from bpy.props import BoolProperty, EnumProperty, IntProperty

from .untyped import Declared

FALLOFFS = (
    ("SMOOTH", "Smooth", "Begins and ends gently", "SMOOTHCURVE", 0),
    ("SPHERE", "Sphere", "Begins gently and ends steeply", "SPHERECURVE", 1),
    ("ROOT", "Root", "Ends steeply", "ROOTCURVE", 2),
    ("INVERSE_SQUARE", "Inverse Square", "Begins gently", "INVERSESQUARECURVE", 3),
    ("SHARP", "Sharp", "Begins steeply and ends gently", "SHARPCURVE", 4),
    ("LINEAR", "Linear", "Changes by the same amount on each frame", "LINCURVE", 5),
    ("CONSTANT", "Constant", "The whole range takes the whole edit", "NOCURVE", 6),
)
"""Blender's proportional falloffs."""


def range_setting() -> Declared:
    """Return a property for how many frames an edit reaches."""
    return IntProperty(
        name="Range",
        description="How many frames before and after the current one an edit reaches: it is added to the keys there, "
        "less and less. What is pinned or planted holds. If 0, it reaches no other frame",
        default=0,
        min=0,
        soft_max=100,
        options={"SKIP_SAVE"},
    )


def falloff_setting() -> Declared:
    """Return a property for how an edit falls off over its range."""
    return EnumProperty(
        name="Falloff",
        description="How an edit falls off to the ends of its range",
        items=FALLOFFS,
        default="SMOOTH",
        options={"SKIP_SAVE"},
    )


def every_frame_setting() -> Declared:
    """Return a property for keys on every frame of the range, between which pins would slip."""
    return BoolProperty(
        name="Key Every Frame in Range",
        description="Key what moves on every frame of the range, so that pins don't slip between keys",
        default=False,
        options={"SKIP_SAVE"},
    )
