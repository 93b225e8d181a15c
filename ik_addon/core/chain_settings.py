"""The settings of a chain: properties on its tip bone (`pose_bone.ik_addon`), and who is told when one is set.

Blender tells nobody when it pastes or animates a setting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from bpy.props import (
    BoolProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)
from bpy.types import Context, Object, PropertyGroup

from . import compat
from .translation.sentences import CONTEXT
from .untyped import Declared, Json, Struct

# ---- choices: identifiers, names, tooltips

SOLVERS = (
    ("AUTO", "Automatic", "Two-Bone for chains of two bones, Arc for all others"),
    ("TWO_BONE", "Two-Bone", "Exact solution for a limb: upper and lower bone"),
    ("FABRIK", "Tip Leads (FABRIK)", "The tip leads: small moves only turn the joints near it"),
    ("EVEN_BEND", "Arc (Even Bend)", "The chain turns to the target as a whole, and all joints share the bend"),
)
OUT_OF_REACH = (
    ("EXTEND", "Extend", "The chain points straight at a target that it can't reach"),
    (
        "PUSH_ROOT",
        "Push Root",
        "The root moves so that the tip still reaches the target; the root bone must not be connected",
    ),
    ("STRETCH", "Stretch", "The bones lengthen so that the tip still reaches the target"),
)
ROLES = (
    ("TARGET", "Target", "What the tip of the chain follows"),
    ("POLE", "Pole", "What the chain bends towards"),
)
PINS = (
    ("LOCATION", "Location", "The head of the bone stays in place"),
    ("ROTATION", "Rotation", "The bone keeps its orientation"),
)
HEEL, TOE = "HEEL", "TOE"
CONTACTS = (
    (HEEL, "Heel", "The heel, the wrist, or the end of a chain without either touches", 1),
    (TOE, "Toe", "The ball of the foot or the fingers touch", 2),
)
"""The last numbers are the values of keys, added if both touch."""
FOLDS = 32
"""Maximum number of joints with a fold of their own; Blender's vector properties can't be longer."""

# ---- who is told

on_set: list[Callable[[Struct], None]] = []
"""Called with the settings of a bone when any of them is set."""
on_chain_changed: list[Callable[[Object], None]] = []
"""Called with the armature object when a setting changes that decides what is solved, or what a chain follows."""
on_rotation_switched: list[Callable[[IKAddonChain], None]] = []
"""Called with the settings of a chain when Rotation is switched, before `on_chain_changed`."""
on_pin_changed: list[Callable[[Object], None]] = []
"""Called with the armature object when a bone is pinned or released."""
_unheard = 0


def tell(listeners: list[Callable[[Struct], None]], of: Struct) -> None:
    """Call listeners, unless settings are being put back."""
    if not _unheard:
        for listener in listeners:
            listener(of)


def is_set(group: Struct, _context: object = None) -> None:
    """Tell that a setting in this group was set; as an `update` function, or after `property_unset`."""
    tell(on_set, group)


@contextmanager
def unheard() -> Iterator[None]:
    """Set settings without telling anybody."""
    global _unheard
    _unheard += 1
    try:
        yield
    finally:
        _unheard -= 1


def _changed(group: PropertyGroup, _context: Context) -> None:
    is_set(group)
    tell(on_chain_changed, group.id_data)


def _rotation_switched(group: IKAddonChain, context: Context) -> None:
    """Only one of the tip and the end bone takes the target's orientation."""
    if group.use_rotation and group.use_end_rotation:
        group.use_end_rotation = False
    tell(on_rotation_switched, group)
    _changed(group, context)


def _end_rotation_switched(group: IKAddonChain, context: Context) -> None:
    if group.use_end_rotation and group.use_rotation:
        group.use_rotation = False
    _changed(group, context)


def _pin_changed(group: PropertyGroup, _context: Context) -> None:
    is_set(group)
    tell(on_pin_changed, group.id_data)


def _number_changed(group: PropertyGroup, _context: Context) -> None:
    is_set(group)
    compat.tag(group.id_data)


# ---- kinds of settings

OVERRIDABLE: set[Literal["LIBRARY_OVERRIDABLE"]] = {"LIBRARY_OVERRIDABLE"}
HIDDEN: Json = {"options": {"HIDDEN"}, "override": OVERRIDABLE}
"""Property arguments of what no user sees."""


def _setting(kind: Callable[..., Declared], name: str, description: str, **rest: Declared) -> Declared:
    """Return a setting that can't be animated, unless `options` say so."""
    return kind(name=name, description=description, override=OVERRIDABLE, **{"options": set(), **rest})


def _structure(kind: Callable[..., Declared], name: str, description: str, **rest: Declared) -> Declared:
    """Return a setting that decides what is solved, or what a chain follows, and can't be animated."""
    return _setting(kind, name, description, translation_context=CONTEXT, update=_changed, **rest)


def _switch(kind: Callable[..., Declared], name: str, description: str, **rest: Declared) -> Declared:
    """Return such a setting that can be animated."""
    return _structure(kind, name, description, options={"ANIMATABLE"}, **rest)


def _number(name: str, description: str, **rest: Declared) -> Declared:
    """Return a number that a solve reads on each frame."""
    own: Json = {"options": {"ANIMATABLE"}, "translation_context": CONTEXT, "update": _number_changed}
    return _setting(FloatProperty, name, description, **own, **rest)


def _goal_object(role: str, name: str, description: str) -> Declared:
    """Return the setting that points to the target or pole, unless that is a bone of the same armature.

    An armature that points to itself stays in the file when it is deleted: it has a user.
    """

    def picked(group: PropertyGroup, context: Context) -> None:
        goal = getattr(group, f"{role}_object")
        if goal == group.id_data:
            group.property_unset(f"{role}_object")
        elif goal is None or goal.type != "ARMATURE":
            group.property_unset(f"{role}_bone")
        _changed(group, context)

    return _setting(PointerProperty, name, description, type=Object, translation_context=CONTEXT, update=picked)


def _goal(role: str) -> Declared:
    """Return the attribute for the object of the target or pole: without one, a bone belongs to the same armature."""

    def get(chain: IKAddonChain) -> Object | None:
        goal: Object | None = getattr(chain, f"{role}_object")
        return chain.id_data if goal is None and getattr(chain, f"{role}_bone") else goal

    return property(get, lambda chain, goal: setattr(chain, f"{role}_object", goal))


def _pivot(name: str, description: str) -> Declared:
    return _setting(FloatVectorProperty, name, description, size=3, subtype="XYZ", unit="LENGTH", update=is_set)


class IKAddonFKStore(PropertyGroup):
    """The FK store of a bone: its channels before the first solution was written into them."""

    stored: BoolProperty(**HIDDEN)
    rotation_mode: StringProperty(**HIDDEN)
    channels: FloatVectorProperty(size=17, **HIDDEN)
    """Location 3, quaternion 4, Euler 3, axis-angle 4, scale 3."""
    noted: BoolProperty(**HIDDEN)
    """Whether `written` is valid. Live keeps these values in memory instead of storing them on every frame."""
    written: FloatVectorProperty(size=17, **HIDDEN)
    """The channels as Solve IK wrote them. Where they differ from the current ones, the bone was moved by hand."""


class IKAddonChain(PropertyGroup):
    """An IK chain, stored on its tip bone."""

    resting: StringProperty(**HIDDEN)
    """JSON: names of the bones from this one up, with their distance from it if their FK pose is the rest pose."""
    is_chain: BoolProperty(update=_changed, **HIDDEN)
    enabled: _structure(
        BoolProperty, "Enabled", "Solve this chain; when off, its bones return to their FK pose", default=True
    )
    solver: _setting(EnumProperty, "Solver", "How the chain is solved", items=SOLVERS, default="AUTO", update=_changed)
    chain_length: _structure(
        IntProperty,
        "Chain Length",
        "Number of bones, counted from the tip; 0 goes up to the armature's root",
        min=0,
        soft_max=64,
    )
    target_object: _goal_object("target", "Target", "The object that the tip of the chain follows")
    target_bone: _structure(
        StringProperty, "Target Bone", "The bone whose head the tip follows, of this armature if no object is picked"
    )
    target = _goal("target")
    pole_object: _goal_object("pole", "Pole", "The object that the chain bends towards")
    pole_bone: _structure(
        StringProperty,
        "Pole Bone",
        "The bone whose head the chain bends towards, of this armature if no object is picked",
    )
    pole = _goal("pole")
    pole_angle: _number(
        "Pole Angle",
        "Turns the bend about the line from the root to the target",
        subtype="ANGLE",
        soft_min=-math.pi,
        soft_max=math.pi,
    )
    use_pole: _switch(
        BoolProperty, "Use Pole", "Bend towards the pole; when off, the chain bends like its FK pose", default=True
    )
    bend_side: _structure(
        FloatVectorProperty,
        "Bend Side",
        "Direction in which the middle of the chain bends, in the axes of its root bone at rest; if zero, "
        "bends like the FK pose, or about the root bone's X axis if straight",
        size=3,
        subtype="XYZ",
    )
    bends_both_ways: _structure(
        BoolProperty,
        "Bends Both Ways",
        "Bend like the FK pose, and to the bend side only where the FK pose is straight, for spines and tails",
    )
    folds: _structure(
        FloatVectorProperty,
        "Folds",
        "How much each joint folds as the chain shortens, compared with the others, from the tip up: "
        "positive to the bend side, negative to the opposite side, 0 as posed; if all are 0, the chain bends evenly",
        size=FOLDS,
        min=-1.0,
        max=1.0,
    )
    iterations: _structure(
        IntProperty,
        "Iterations",
        "Maximum passes per frame; the solver stops as soon as the tolerance is reached",
        default=100,
        min=1,
        soft_max=500,
    )
    tolerance: _number(
        "Tolerance",
        "The largest error that counts as reached, as a fraction of the chain's length",
        default=1e-6,
        min=1e-9,
        soft_max=0.01,
        max=1.0,
        precision=6,
        step=0.001,
    )
    out_of_reach: _structure(
        EnumProperty,
        "Out of Reach",
        "What the chain does when the target is too far away or too close",
        items=OUT_OF_REACH,
        default="EXTEND",
    )
    softness: _number(
        "Softness",
        "The last part of the reach, over which the chain eases into extension, so the knee doesn't pop",
        subtype="FACTOR",
        min=0.0,
        max=1.0,
        soft_max=0.3,
    )
    push_limit: _number(
        "Push Limit",
        "How far the root may be pushed, as a fraction of the chain's length",
        default=0.25,
        min=0.0,
        soft_max=1.0,
    )
    use_limits: _structure(
        BoolProperty,
        "Limits",
        "Keep the bones within their IK limits, locks and stiffness (Bone properties, Inverse Kinematics)",
        default=True,
    )
    use_rotation: _setting(BoolProperty, "Rotation", "Turn the tip with the target", update=_rotation_switched)
    end_bone: _structure(
        StringProperty,
        "End Bone",
        "The hand or foot: a bone below the tip, whose head the chain brings to the target",
    )
    use_end_rotation: _setting(
        BoolProperty,
        "End Rotation",
        "Turn the end bone with the target, so that a foot stays level and a hand stays put",
        update=_end_rotation_switched,
    )
    end_offset: _structure(
        FloatVectorProperty,
        "End Offset",
        "Rotation from the target's axes to those of the end bone",
        size=4,
        subtype="QUATERNION",
        default=(1.0, 0.0, 0.0, 0.0),
    )
    planar: _structure(
        BoolProperty,
        "Stay in Plane",
        "Keep the chain in the plane of its rest pose, for flat characters and mechanisms",
    )
    weight: _structure(
        FloatProperty,
        "Weight",
        "How strongly this chain pulls, compared with other chains that share its bones",
        default=1.0,
        min=0.001,
        soft_max=10.0,
    )
    bend_lead: _structure(
        FloatProperty,
        "Bend Near Root or Tip",
        "Which joints of an even bend turn most: those near the root (-1) or near the tip (1)",
        subtype="FACTOR",
        min=-1.0,
        max=1.0,
    )
    influence: _number(
        "Influence",
        "Blends between the FK pose (0) and the solved pose (1)",
        subtype="FACTOR",
        default=1.0,
        min=0.0,
        max=1.0,
    )
    contact: _setting(
        EnumProperty,
        "Contact",
        "What touches the ground or an object on the current frame. Lock Feet holds it still",
        items=CONTACTS,
        options={"ENUM_FLAG", "ANIMATABLE"},
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
    pin: _setting(
        EnumProperty,
        "Pin",
        "What this bone keeps while other bones are dragged",
        items=PINS,
        options={"ENUM_FLAG"},
        update=_pin_changed,
    )
    give: _setting(
        FloatProperty,
        "Follows Easily",
        "How readily this bone follows when other bones are dragged; 0 keeps it as it is",
        default=1.0,
        min=0.0,
        soft_max=10.0,
        update=is_set,
    )
    stamp: IntProperty(**HIDDEN)
    """Changes with the settings of the bone, see `stamps`; 0: not known to the armature object."""
    base: PointerProperty(type=IKAddonFKStore, override=OVERRIDABLE)
