"""The settings of a chain: properties on its tip bone (`pose_bone.ik_addon`)."""

from __future__ import annotations

import math
from collections.abc import Callable

import bpy
from bpy.props import (
    BoolProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from . import compat
from .choices import OUT_OF_REACH, PINS, SOLVERS
from .contact_settings import OVERRIDABLE, ContactSettings
from .notices import is_set, tell
from .translation.sentences import CONTEXT
from .untyped import Json

FOLDS = 32
"""Maximum number of joints with a fold of their own; Blender's vector properties can't be longer."""


on_chain_changed: list[Callable[[bpy.types.Object], None]] = []
"""Called with the armature object when a setting changes that decides what is solved, or what a chain follows."""
on_rotation_switched: list[Callable[[IKAddonChain], None]] = []
"""Called with the settings of a chain when Rotation is switched, before `on_chain_changed`."""
on_pin_changed: list[Callable[[bpy.types.Object], None]] = []
"""Called with the armature object when a bone is pinned or released."""


def _changed(group: bpy.types.PropertyGroup, _context: bpy.types.Context) -> None:
    is_set(group)
    tell(on_chain_changed, group.id_data)


def _rotation_switched(group: IKAddonChain, context: bpy.types.Context) -> None:
    """Only one of the tip and the end bone takes the target's orientation."""
    if group.use_rotation and group.use_end_rotation:
        group.use_end_rotation = False
    tell(on_rotation_switched, group)
    _changed(group, context)


def _end_rotation_switched(group: IKAddonChain, context: bpy.types.Context) -> None:
    if group.use_end_rotation and group.use_rotation:
        group.use_rotation = False
    _changed(group, context)


def _pin_changed(group: bpy.types.PropertyGroup, _context: bpy.types.Context) -> None:
    is_set(group)
    tell(on_pin_changed, group.id_data)


def _number_changed(group: bpy.types.PropertyGroup, _context: bpy.types.Context) -> None:
    is_set(group)
    compat.tag(group.id_data)


SWITCH: Json = {"override": OVERRIDABLE, "translation_context": CONTEXT, "update": _changed}
"""Property arguments of settings that decide what is solved, or what a chain follows."""
STRUCTURE: Json = {**SWITCH, "options": set()}
"""Property arguments of such settings that can't be animated."""
NUMBER: Json = {"override": OVERRIDABLE, "translation_context": CONTEXT, "update": _number_changed}
"""Property arguments of numbers that a solve reads on each frame."""


class IKAddonFKStore(bpy.types.PropertyGroup):
    """The FK store of a bone: its channels before the first solution was written into them."""

    stored: BoolProperty(options={"HIDDEN"}, override=OVERRIDABLE)
    rotation_mode: StringProperty(options={"HIDDEN"}, override=OVERRIDABLE)
    channels: FloatVectorProperty(size=17, options={"HIDDEN"}, override=OVERRIDABLE)
    """Location 3, quaternion 4, Euler 3, axis-angle 4, scale 3."""
    noted: BoolProperty(options={"HIDDEN"}, override=OVERRIDABLE)
    """Whether `written` is valid. Live keeps these values in memory instead of storing them on every frame."""
    written: FloatVectorProperty(size=17, options={"HIDDEN"}, override=OVERRIDABLE)
    """The channels as Solve IK wrote them. Where they differ from the current ones, the bone was moved by hand."""


class IKAddonChain(ContactSettings, bpy.types.PropertyGroup):
    """An IK chain, stored on its tip bone."""

    resting: StringProperty(options={"HIDDEN"}, override=OVERRIDABLE)
    """JSON: names of the bones from this one up, with their distance from it if their FK pose is the rest pose."""
    is_chain: BoolProperty(options={"HIDDEN"}, override=OVERRIDABLE, update=_changed)
    enabled: BoolProperty(
        name="Enabled",
        description="Solve this chain; when off, its bones return to their FK pose",
        default=True,
        **STRUCTURE,
    )
    solver: EnumProperty(
        name="Solver",
        description="How the chain is solved",
        items=SOLVERS,
        default="AUTO",
        options=set(),
        override=OVERRIDABLE,
        update=_changed,
    )
    chain_length: IntProperty(
        name="Chain Length",
        description="Number of bones, counted from the tip; 0 goes up to the armature's root",
        default=0,
        min=0,
        soft_max=64,
        **STRUCTURE,
    )
    target: PointerProperty(
        name="Target",
        description="The object that the tip of the chain follows",
        type=bpy.types.Object,
        **SWITCH,
    )
    target_bone: StringProperty(
        name="Target Bone",
        description="The bone of the target armature whose head the tip follows",
        **SWITCH,
    )
    pole: PointerProperty(
        name="Pole",
        description="The object that the chain bends towards",
        type=bpy.types.Object,
        **SWITCH,
    )
    pole_bone: StringProperty(
        name="Pole Bone",
        description="The bone of the pole armature whose head the chain bends towards",
        **SWITCH,
    )
    pole_angle: FloatProperty(
        name="Pole Angle",
        description="Turns the bend about the line from the root to the target",
        subtype="ANGLE",
        soft_min=-math.pi,
        soft_max=math.pi,
        **NUMBER,
    )
    use_pole: BoolProperty(
        name="Use Pole",
        description="Bend towards the pole; when off, the chain bends like its FK pose",
        default=True,
        **SWITCH,
    )
    bend_side: FloatVectorProperty(
        name="Bend Side",
        description="Direction in which the middle of the chain bends, in the axes of its root bone at rest; if zero, "
        "bends like the FK pose, or about the root bone's X axis if straight",
        size=3,
        subtype="XYZ",
        **STRUCTURE,
    )
    bends_both_ways: BoolProperty(
        name="Bends Both Ways",
        description="Bend like the FK pose, and to the bend side only where the FK pose is straight, for spines and "
        "tails",
        **STRUCTURE,
    )
    folds: FloatVectorProperty(
        name="Folds",
        description="How much each joint folds as the chain shortens, compared with the others, from the tip up: "
        "positive to the bend side, negative to the opposite side, 0 as posed; if all are 0, the chain bends evenly",
        size=FOLDS,
        min=-1.0,
        max=1.0,
        **STRUCTURE,
    )
    iterations: IntProperty(
        name="Iterations",
        description="Maximum passes per frame; the solver stops as soon as the tolerance is reached",
        default=100,
        min=1,
        soft_max=500,
        **STRUCTURE,
    )
    tolerance: FloatProperty(
        name="Tolerance",
        description="The largest error that counts as reached, as a fraction of the chain's length",
        default=1e-6,
        min=1e-9,
        soft_max=0.01,
        max=1.0,
        precision=6,
        step=0.001,
        **NUMBER,
    )
    out_of_reach: EnumProperty(
        name="Out of Reach",
        description="What the chain does when the target is too far away or too close",
        items=OUT_OF_REACH,
        default="EXTEND",
        **STRUCTURE,
    )
    softness: FloatProperty(
        name="Softness",
        description="The last part of the reach, over which the chain eases into extension, so the knee doesn't pop",
        subtype="FACTOR",
        default=0.0,
        min=0.0,
        max=1.0,
        soft_max=0.3,
        **NUMBER,
    )
    push_limit: FloatProperty(
        name="Push Limit",
        description="How far the root may be pushed, as a fraction of the chain's length",
        default=0.25,
        min=0.0,
        soft_max=1.0,
        **NUMBER,
    )
    use_limits: BoolProperty(
        name="Limits",
        description="Keep the bones within their IK limits, locks and stiffness (Bone properties, Inverse Kinematics)",
        default=True,
        **STRUCTURE,
    )
    use_rotation: BoolProperty(
        name="Rotation",
        description="Turn the tip with the target",
        options=set(),
        override=OVERRIDABLE,
        update=_rotation_switched,
    )
    end_bone: StringProperty(
        name="End Bone",
        description="The hand or foot: a bone below the tip, whose head the chain brings to the target",
        **SWITCH,
    )
    use_end_rotation: BoolProperty(
        name="End Rotation",
        description="Turn the end bone with the target, so that a foot stays level and a hand stays put",
        options=set(),
        override=OVERRIDABLE,
        update=_end_rotation_switched,
    )
    end_offset: FloatVectorProperty(
        name="End Offset",
        description="Rotation from the target's axes to those of the end bone",
        size=4,
        subtype="QUATERNION",
        default=(1.0, 0.0, 0.0, 0.0),
        **STRUCTURE,
    )
    planar: BoolProperty(
        name="Stay in Plane",
        description="Keep the chain in the plane of its rest pose, for flat characters and mechanisms",
        **STRUCTURE,
    )
    weight: FloatProperty(
        name="Weight",
        description="How strongly this chain pulls, compared with other chains that share its bones",
        default=1.0,
        min=0.001,
        soft_max=10.0,
        **STRUCTURE,
    )
    bend_lead: FloatProperty(
        name="Bend Near Root or Tip",
        description="Which joints of an even bend turn most: those near the root (-1) or near the tip (1)",
        subtype="FACTOR",
        default=0.0,
        min=-1.0,
        max=1.0,
        **STRUCTURE,
    )
    influence: FloatProperty(
        name="Influence",
        description="Blends between the FK pose (0) and the solved pose (1)",
        subtype="FACTOR",
        default=1.0,
        min=0.0,
        max=1.0,
        **NUMBER,
    )
    pin: EnumProperty(
        name="Pin",
        description="What this bone keeps while other bones are dragged",
        items=PINS,
        default=set(),
        options={"ENUM_FLAG"},
        override=OVERRIDABLE,
        update=_pin_changed,
    )
    give: FloatProperty(
        name="Follows Easily",
        description="How readily this bone follows when other bones are dragged; 0 keeps it as it is",
        default=1.0,
        min=0.0,
        soft_max=10.0,
        options=set(),
        override=OVERRIDABLE,
        update=is_set,
    )
    stamp: IntProperty(options={"HIDDEN"}, override=OVERRIDABLE)
    """Changes with the settings of the bone, see `stamps`; 0: not known to the armature object."""
    base: PointerProperty(type=IKAddonFKStore, override=OVERRIDABLE)
