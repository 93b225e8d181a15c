"""What a user sets: a chain on its tip bone (`pose_bone.ik_addon`), live per armature (`object.ik_addon`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

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

OVERRIDABLE = {"LIBRARY_OVERRIDABLE"}

SOLVERS = (
    ("AUTO", "Automatic", "Two-bone for chains of two bones, an even bend for all others"),
    ("TWO_BONE", "Two-Bone", "Exact solution for a limb: upper and lower bone"),
    ("FABRIK", "FABRIK", "The tip leads: a small move turns the joints next to it, and the root rests"),
    ("EVEN_BEND", "Even Bend", "The chain turns to the target as a whole, and all joints share the bend"),
)
OUT_OF_REACH = (
    ("EXTEND", "Extend", "The chain points straight at a target that it cannot reach"),
    ("PUSH_ROOT", "Push Root", "The root moves so that the tip still arrives; the root bone must not be connected"),
    ("STRETCH", "Stretch", "The bones lengthen so that the tip still arrives"),
)


on_chain_changed: list[Callable[[bpy.types.Object], None]] = []
"""Called with the armature object when a setting that decides what is solved, or what it follows, has changed."""
on_solver_changed: list[Callable[[IKAddonChain], None]] = []
"""Called with the settings of a chain when its solver was chosen, before `on_chain_changed`."""
on_number_changed: list[Callable[[bpy.types.Object], None]] = []
"""Called with the armature object when a number that a solve reads on each frame was set, by hand or by a script."""
on_live_switched: list[Callable[[bpy.types.Object], None]] = []
"""Called with the armature object when Live was switched on or off."""
on_overlay_switched: list[Callable[[], None]] = []
"""Called when the overlay was switched on or off."""


def _changed(group: bpy.types.PropertyGroup, _context: bpy.types.Context) -> None:
    for listener in on_chain_changed:
        listener(group.id_data)


def _solver_changed(group: IKAddonChain, context: bpy.types.Context) -> None:
    for listener in on_solver_changed:
        listener(group)
    _changed(group, context)


def _number_changed(group: bpy.types.PropertyGroup, _context: bpy.types.Context) -> None:
    for listener in on_number_changed:
        listener(group.id_data)
    group.id_data.update_tag()


def _live_changed(group: bpy.types.PropertyGroup, _context: bpy.types.Context) -> None:
    for listener in on_live_switched:
        listener(group.id_data)


class IKAddonBase(bpy.types.PropertyGroup):
    """The FK base of a bone: what its channels held before the first solution was written into them."""

    stored: BoolProperty(options={"HIDDEN"}, override=OVERRIDABLE)
    rotation_mode: StringProperty(options={"HIDDEN"}, override=OVERRIDABLE)
    channels: FloatVectorProperty(size=17, options={"HIDDEN"}, override=OVERRIDABLE)
    """location 3, quaternion 4, Euler 3, axis-angle 4, scale 3."""
    noted: BoolProperty(options={"HIDDEN"}, override=OVERRIDABLE)
    """`written` holds; Live, which would have to note it on every frame, keeps it in memory instead."""
    written: FloatVectorProperty(size=17, options={"HIDDEN"}, override=OVERRIDABLE)
    """The channels as Solve IK left them: where they differ by now, the bone was moved by hand since."""


class IKAddonChain(bpy.types.PropertyGroup):
    """An IK chain, stored on its tip bone."""

    resting: StringProperty(options={"HIDDEN"}, override=OVERRIDABLE)
    """Names of the bones up from this one as JSON; of those whose FK base is the rest pose, the distance from here."""
    stiff_as_limited: BoolProperty(options={"HIDDEN"}, override=OVERRIDABLE, update=_changed)
    """Without limits its stiffness acts as in 0.1.0, see `versions.stiffness_is_shared`."""

    is_chain: BoolProperty(options={"HIDDEN"}, override=OVERRIDABLE, update=_changed)
    enabled: BoolProperty(
        name="Enabled",
        description="Solve this chain; when off, its bones go back to their FK pose",
        default=True,
        options=set(),
        override=OVERRIDABLE,
        update=_changed,
    )
    solver: EnumProperty(
        name="Solver",
        description="How the chain is solved",
        items=SOLVERS,
        default="AUTO",
        options=set(),
        override=OVERRIDABLE,
        update=_solver_changed,
    )
    chain_length: IntProperty(
        name="Chain Length",
        description="How many bones the chain has, counted from the tip up; 0: up to the armature's root",
        default=0,
        min=0,
        soft_max=64,
        options=set(),
        override=OVERRIDABLE,
        update=_changed,
    )
    target: PointerProperty(
        name="Target",
        description="The object that the tip of the chain follows",
        type=bpy.types.Object,
        override=OVERRIDABLE,
        update=_changed,
    )
    target_bone: StringProperty(
        name="Target Bone",
        description="The bone of the target armature whose head the tip follows",
        override=OVERRIDABLE,
        update=_changed,
    )
    pole: PointerProperty(
        name="Pole",
        description="The object towards which the chain bends",
        type=bpy.types.Object,
        override=OVERRIDABLE,
        update=_changed,
    )
    pole_bone: StringProperty(
        name="Pole Bone",
        description="The bone of the pole armature towards whose head the chain bends",
        override=OVERRIDABLE,
        update=_changed,
    )
    pole_angle: FloatProperty(
        name="Pole Angle",
        description="Turns the bend about the line from the root to the target",
        subtype="ANGLE",
        soft_min=-math.pi,
        soft_max=math.pi,
        override=OVERRIDABLE,
        update=_number_changed,
    )
    bend_side: FloatVectorProperty(
        name="Bend Side",
        description="Direction to which the middle of the chain bends, in the axes of its root bone at rest; "
        "zero: as the FK pose bends, and a straight one about the root bone's X axis",
        size=3,
        subtype="XYZ",
        options=set(),
        override=OVERRIDABLE,
        update=_changed,
    )
    iterations: IntProperty(
        name="Iterations",
        description="Maximum passes per frame; the solver stops as soon as the tolerance is reached",
        default=100,
        min=1,
        soft_max=500,
        options=set(),
        override=OVERRIDABLE,
    )
    tolerance: FloatProperty(
        name="Tolerance",
        description="The error that counts as reached, as a fraction of the chain's length",
        default=1e-6,
        min=1e-9,
        soft_max=0.01,
        max=1.0,
        precision=6,
        step=0.001,
        override=OVERRIDABLE,
        update=_number_changed,
    )
    out_of_reach: EnumProperty(
        name="Out of Reach",
        description="What the chain does when the target is too far away or too near",
        items=OUT_OF_REACH,
        default="EXTEND",
        options=set(),
        override=OVERRIDABLE,
        update=_changed,
    )
    softness: FloatProperty(
        name="Softness",
        description="The last part of the reach over which the chain eases into extension, so that no knee snaps",
        subtype="FACTOR",
        default=0.0,
        min=0.0,
        max=1.0,
        soft_max=0.3,
        override=OVERRIDABLE,
        update=_number_changed,
    )
    push_limit: FloatProperty(
        name="Push Limit",
        description="How far the root may be pushed, as a fraction of the chain's length",
        default=0.25,
        min=0.0,
        soft_max=1.0,
        override=OVERRIDABLE,
        update=_number_changed,
    )
    use_limits: BoolProperty(
        name="Limits",
        description="Keep the bones within their IK limits, locks and stiffness (Bone properties, Inverse Kinematics)",
        default=True,
        options=set(),
        override=OVERRIDABLE,
        update=_changed,
    )
    use_rotation: BoolProperty(
        name="Rotation",
        description="The tip takes over the target's orientation",
        options=set(),
        override=OVERRIDABLE,
        update=_changed,
    )
    planar: BoolProperty(
        name="Planar",
        description="Keep the chain in the plane of its rest pose, for flat characters and mechanisms",
        options=set(),
        override=OVERRIDABLE,
        update=_changed,
    )
    weight: FloatProperty(
        name="Weight",
        description="How much this chain counts where it shares bones with others that pull elsewhere",
        default=1.0,
        min=0.001,
        soft_max=10.0,
        options=set(),
        override=OVERRIDABLE,
        update=_changed,
    )
    bend_lead: FloatProperty(
        name="Bend Lead",
        description="Which joints of an even bend turn most: those next to the root (-1) or next to the tip (1)",
        subtype="FACTOR",
        default=0.0,
        min=-1.0,
        max=1.0,
        options=set(),
        override=OVERRIDABLE,
        update=_changed,
    )
    influence: FloatProperty(
        name="Influence",
        description="Blends between the FK pose (0) and the solved pose (1)",
        subtype="FACTOR",
        default=1.0,
        min=0.0,
        max=1.0,
        override=OVERRIDABLE,
        update=_number_changed,
    )
    base: PointerProperty(type=IKAddonBase, override=OVERRIDABLE)


class IKAddonObject(bpy.types.PropertyGroup):
    """Settings of an armature object."""

    layout: IntProperty(options={"HIDDEN"}, override=OVERRIDABLE)
    """In which layout the settings of this object and its bones are stored, see `versions`."""
    live: BoolProperty(
        name="Live",
        description="Solve on every frame and whenever a target moves; when off, the bones go back to their FK pose",
        options=set(),
        override=OVERRIDABLE,
        update=_live_changed,
    )


def _overlay_switched(_group: bpy.types.PropertyGroup, _context: bpy.types.Context) -> None:
    for listener in on_overlay_switched:
        listener()


class IKAddonScene(bpy.types.PropertyGroup):
    """Settings of a scene."""

    show_overlay: BoolProperty(
        name="IK Chains",
        description="Show chains over the viewport: green where the target is reached, orange where it is out of reach",
        default=True,
        options=set(),
        update=_overlay_switched,
    )
    show_limits: BoolProperty(
        name="Limits",
        description="Show the directions and twists that the limits of the active chain's bones allow",
        default=True,
        options=set(),
    )
    show_reach: BoolProperty(
        name="Reach",
        description="Show how far the active chain reaches, as the outline of a sphere about its root",
        default=True,
        options=set(),
    )


CLASSES = (IKAddonBase, IKAddonChain, IKAddonObject, IKAddonScene)


def register() -> None:
    """Put the settings on pose bones and objects; the classes are registered before."""
    bpy.types.PoseBone.ik_addon = PointerProperty(type=IKAddonChain, override=OVERRIDABLE)
    bpy.types.Object.ik_addon = PointerProperty(type=IKAddonObject, override=OVERRIDABLE)
    bpy.types.Scene.ik_addon = PointerProperty(type=IKAddonScene)


def registered_by() -> str | None:
    """The package whose settings pose bones have now; None where they have none."""
    setting: Any = getattr(bpy.types.PoseBone, "ik_addon", None)
    if setting is None:
        return None
    return str(setting.keywords["type"].__module__).removesuffix(".settings").removesuffix(".data")


def unregister() -> None:
    """Take the settings off again; what files hold stays in them."""
    del bpy.types.Scene.ik_addon
    del bpy.types.Object.ik_addon
    del bpy.types.PoseBone.ik_addon


def has_settings(bone: bpy.types.PoseBone) -> bool:
    """Whether a bone holds any; looking at those of one that has none makes Blender create them."""
    return bone.is_property_set("ik_addon")


def chain_of(bone: bpy.types.PoseBone) -> IKAddonChain:
    """The chain settings of a pose bone (each bone has them; `is_chain` says whether it is a tip)."""
    return bone.ik_addon


def unusable(chain: IKAddonChain) -> Iterator[tuple[str, str]]:
    """Identifier and label of settings that hold what nobody could have set: a file may be made by hand."""
    for name, label, accepts in _acceptable():
        try:
            usable = accepts(getattr(chain, name))
        except UnicodeDecodeError:
            usable = False
        if not usable:
            yield name, label


def goal_of(chain: IKAddonChain, role: str) -> tuple[bpy.types.Object | None, str]:
    """The target or pole of a chain with its bone; none where a file that was made by hand holds something else."""
    try:
        goal, bone = getattr(chain, role), getattr(chain, f"{role}_bone")
    except UnicodeDecodeError:
        return None, ""
    return (goal, bone) if isinstance(goal, bpy.types.Object) else (None, "")


@cache
def _acceptable() -> list[tuple[str, str, Callable[[Any], bool]]]:
    """Identifier and label of each setting of a chain, and what tells whether it can have a value."""
    found: list[tuple[str, str, Callable[[Any], bool]]] = []
    for setting in IKAddonChain.bl_rna.properties:
        accepts: Callable[[Any], bool]
        if isinstance(setting, bpy.types.IntProperty | bpy.types.FloatProperty):
            accepts = partial(_is_between, setting.hard_min, setting.hard_max)
            if setting.is_array:
                accepts = partial(_is_each, accepts)
        elif isinstance(setting, bpy.types.EnumProperty):
            accepts = bool
        else:
            accepts = _is_object
        found.append((setting.identifier, setting.name, accepts))
    return found


def _is_between(least: float, most: float, value: float) -> bool:
    return least <= value <= most  # neither holds for what is not a number


def _is_each(accepts: Callable[[Any], bool], values: Any) -> bool:
    return all(map(accepts, values))


def _is_object(value: object) -> bool:
    return not isinstance(value, bpy.types.ID) or isinstance(value, bpy.types.Object)


def object_of(ob: bpy.types.Object) -> IKAddonObject:
    """The add-on's settings of an object."""
    return ob.ik_addon


def overlay_of(scene: bpy.types.Scene) -> IKAddonScene:
    """What the overlay shows in a scene."""
    return scene.ik_addon
