"""All settings: a chain on its tip bone (`chain_settings`), Live on the armature object (`object.ik_addon`)."""

from collections.abc import Callable, Iterator, Sequence

import bpy
from bpy.app.handlers import persistent
from bpy.props import BoolProperty, CollectionProperty, IntProperty, PointerProperty, StringProperty
from bpy.types import ID, Object, PoseBone, PropertyGroup, Scene

from .chain_settings import FOLDS, HIDDEN, OVERRIDABLE, IKAddonChain, is_set, tell
from .falloff import falloff_setting, range_setting
from .untyped import Declared, Struct, Value

LAYOUT = 2
"""The form in which this version stores settings; a version that changes it counts up."""

on_live_switched: list[Callable[[Object], None]] = []
"""Called with the armature object when Live is switched on or off."""
on_overlay_switched: list[Callable[[Scene], None]] = []
"""Called with the scene when the overlay is switched on or off."""


class IKAddonGoals(PropertyGroup):
    """Target and pole of a chain as the armature object knows them, see `stamps`."""

    tip: StringProperty(**HIDDEN)
    target_object: PointerProperty(type=Object, **HIDDEN)
    pole_object: PointerProperty(type=Object, **HIDDEN)


class IKAddonObject(PropertyGroup):
    """Settings of an armature object."""

    known: StringProperty(options={"HIDDEN"})
    """What the object knows of its bones, see `stamps`."""
    goals: CollectionProperty(type=IKAddonGoals, options={"HIDDEN"}, override={"LIBRARY_OVERRIDABLE", "USE_INSERTION"})

    identity: IntProperty(**HIDDEN)
    """A random number that tells an armature from its copies, see `rig.plan.followers`; 0: nothing was made for it."""
    edit: IntProperty(**HIDDEN)
    """A random number that the last edit by hand left once its goals had followed, see `targets.edits`."""
    layout: IntProperty(**HIDDEN)
    """The `LAYOUT` of the version that set the chains of this object last; 0 if none has."""
    ground: PointerProperty(type=Object, **HIDDEN)
    """What the keys of the armature were planted on, see `feet.ground_object`."""
    live: BoolProperty(
        name="Live",
        description="Solve on every frame and whenever a target moves; when off, the bones return to their FK pose",
        options=set(),
        override=OVERRIDABLE,
        update=lambda group, _context: tell(on_live_switched, group.id_data),
    )


def _shown(name: str, description: str, **rest: Declared) -> Declared:
    return BoolProperty(name=name, description=description, default=True, options=set(), **rest)


class IKAddonScene(PropertyGroup):
    """Settings of a scene."""

    show_overlay: _shown(
        "IK Chains",
        "Show chains in the viewport: green where the target is reached, orange where it is out of reach",
        update=lambda group, _context: tell(on_overlay_switched, group.id_data),
    )
    show_limits: _shown("Limits", "Show the directions and twists that the limits of the active chain's bones allow")
    show_pins: _shown("Pins", "Show which bones are pinned: a diamond for location, a ring for rotation")
    show_reach: _shown(
        "Reach",
        "Show how far the active chain reaches, as the outline of a sphere around its root, while something is dragged "
        "and when the target is missed",
    )
    edit_range: range_setting()
    edit_falloff: falloff_setting()


def register() -> None:
    """Add the settings to pose bones, objects and scenes; their classes must be registered first."""
    bpy.types.PoseBone.ik_addon = PointerProperty(type=IKAddonChain, override=OVERRIDABLE)
    bpy.types.Object.ik_addon = PointerProperty(type=IKAddonObject, override=OVERRIDABLE)
    bpy.types.Scene.ik_addon = PointerProperty(type=IKAddonScene)


def registered_by() -> str | None:
    """Return the package that registered the settings of pose bones; None if they have none."""
    setting = getattr(PoseBone, "ik_addon", None)
    if setting is None:
        return None
    return str(setting.keywords["type"].__module__).removesuffix(".chain_settings").removesuffix(".core")


def unregister() -> None:
    """Remove the settings; the data in files stays."""
    del bpy.types.Scene.ik_addon
    del bpy.types.Object.ik_addon
    del bpy.types.PoseBone.ik_addon


ROLES = ("target", "pole")
"""What a chain may follow; its settings have these names."""
OBJECTS = ("target_object", "pole_object")
"""The settings that point to them, unless they are bones of the same armature."""
OF_BONES = frozenset({"pin", "give"})
"""The settings of `IKAddonChain` that any bone may have, with or without a chain."""
WITH_AXES = frozenset({"XYZ", "XYZ_LENGTH", "QUATERNION"})
"""Subtypes of settings that are in the axes of a bone."""


def has_settings(bone: PoseBone) -> bool:
    """Return whether a bone has settings. Reading the settings of a bone without any makes Blender create them."""
    return bone.is_property_set("ik_addon")


def chain_of(bone: PoseBone) -> IKAddonChain:
    """Return the chain settings of a pose bone. Each bone has them; `is_chain` says whether it is a tip."""
    return bone.ik_addon


def is_tip(bone: PoseBone) -> bool:
    """Return whether a bone is the tip of a chain."""
    return has_settings(bone) and chain_of(bone).is_chain


def folds_of(chain: IKAddonChain, length: int) -> tuple[float, ...]:
    """Return the folds of a chain of `length` bones, root first; 0 for the root bone, which has none."""
    own = tuple(chain.folds)[: max(length - 1, 0)]
    return (0.0,) * (length - len(own)) + own[::-1]


def mirrored() -> dict[str, float]:
    """Return the settings that the mirror image of a chain has as well, each with its sign there: angles change it.

    What is in the axes of a bone, or is an object or a name, takes more than a sign.
    """
    apart = OF_BONES | {"contact"}
    own = [each for each in IKAddonChain.bl_rna.properties if each.identifier not in apart and not each.is_hidden]
    plain = [each for each in own if each.type not in {"POINTER", "STRING"} and each.subtype not in WITH_AXES]
    return {each.identifier: -1.0 if each.subtype == "ANGLE" else 1.0 for each in plain}


def stored_folds(folds: Sequence[float]) -> tuple[float, ...]:
    """Return what `folds` stores for these folds, root first; all 0 if there are none. The inverse of `folds_of`."""
    own = tuple(folds[1:][::-1]) if len(folds) <= FOLDS else ()
    return (*own, *(0.0,) * (FOLDS - len(own)))


def unusable(chain: IKAddonChain) -> Iterator[tuple[str, str]]:
    """Yield identifier and label of settings whose values can't be set in Blender: a file may be made by hand."""
    for setting in IKAddonChain.bl_rna.properties:  # looked up each time: Blender frees them with other classes
        if not _accepts(setting, value_of(chain, setting.identifier)):
            yield setting.identifier, setting.name


def reset(chain: IKAddonChain) -> None:
    """Reset the settings of a chain to their defaults; keep those that belong to the bone."""
    for name in chain.bl_rna.properties.keys():  # noqa: SIM118
        if name not in {"rna_type", "name", "is_chain", "base", "resting", "stamp"} | OF_BONES:
            chain.property_unset(name)
    is_set(chain)


def unset(chain: IKAddonChain, name: str) -> None:
    """Reset one setting of a chain to its default."""
    chain.property_unset(name)
    is_set(chain)


def goal_of(chain: IKAddonChain, role: str) -> tuple[Object | None, str]:
    """Return the target or pole of a chain and its bone; (None, "") if a file made by hand holds something else."""
    goal, bone = value_of(chain, role), value_of(chain, f"{role}_bone")
    return (goal, bone) if isinstance(goal, Object) and bone is not None else (None, "")


def text_of(group: Struct, name: str) -> str:
    """Return the text of a setting; empty if a file made by hand holds something else."""
    return value_of(group, name) or ""


def value_of(group: Struct, name: str) -> Value:
    """Return the value of a setting; None if it should be text, and a file made by hand holds something else."""
    try:
        return getattr(group, name)
    except UnicodeDecodeError:
        return None


def _accepts(setting: Struct, value: Value) -> bool:
    """Return whether a value is valid for a setting of a chain."""
    if setting.type in {"INT", "FLOAT"}:
        low, high = setting.hard_min, setting.hard_max
        return all(low <= number <= high for number in (value if setting.is_array else (value,)))  # not true of NaN
    if setting.type == "STRING":
        return value is not None
    if setting.type == "ENUM":
        return isinstance(value, set) if setting.is_enum_flag else bool(value)
    return not isinstance(value, ID) or isinstance(value, Object)


def object_of(ob: Object) -> IKAddonObject:
    """Return the add-on's settings of an object."""
    return ob.ik_addon


@persistent
def _keep_overrides(_file: object, _unused: object = None) -> None:
    """Where only one of a linked bone and its override has settings, give the other one the same, at their defaults.

    Blender 5 stores an overridden setting as a difference to the linked one. If only one of them has settings at all,
    it stores something that it can't read back, even if nobody changed anything. Reading the settings of a bone makes
    Blender create them. Bones without any stay without, so armatures without chains are saved as they are.
    """
    for ob in bpy.data.objects:
        linked = None if ob.override_library is None else ob.override_library.reference
        if not isinstance(linked, Object) or ob.pose is None or linked.pose is None:
            continue
        for own in ob.pose.bones:
            other: PoseBone | None = linked.pose.bones.get(own.name)
            if other is not None and (has_settings(own) or has_settings(other)):
                _ = chain_of(own).base.stored, chain_of(other).base.stored


HANDLERS = (("save_pre", _keep_overrides),)


def overlay_of(scene: Scene) -> IKAddonScene:
    """Return the overlay settings of a scene."""
    return scene.ik_addon
