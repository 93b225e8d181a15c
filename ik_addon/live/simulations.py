"""Physics that depend on a live armature: Blender simulates a frame before it is solved, unless it can be foretold."""

import logging
from collections.abc import Iterator

import bpy
from bpy.app.handlers import persistent
from bpy.types import Object, PointCache, Scene

from ..core.settings import chain_of, object_of
from ..core.translation.sentences import say
from ..core.untyped import Struct
from ..rig.plan.chain import tips
from ..rig.plan.order import all_needs
from .registry import registry

log = logging.getLogger(__name__)
OBSTACLES = {"CLOTH", "SOFT_BODY", "PARTICLE_SYSTEM"}
"""Modifiers whose simulation collides with other objects, and feels force fields."""
NAMED = 3
"""Maximum number of simulations that a message names."""


def warning(ob: Object, scene: Scene) -> str:
    """Return what to do about simulations in a scene that are not baked, and depend on the pose of an armature object.

    An empty string if there are none.
    """
    every = list(_simulated(scene))
    world = scene.rigidbody_world
    if not every and world is None:
        return ""
    # Whatever refers to the object, directly or through others: children, skins, constraints, drivers.
    data: Struct = bpy.data
    moved = all_needs(ob, data.user_map(key_types={"OBJECT"}, value_types={"OBJECT"})) - {ob}
    pushes = any(map(_is_obstacle, moved.intersection(scene.objects)))
    found = [(name, owner.name) for owner, name, kind in every if owner in moved or (pushes and kind in OBSTACLES)]
    if world is not None and world.enabled and not world.point_cache.is_baked:
        bodies = () if world.collection is None else world.collection.all_objects
        if any(body in moved for body in bodies):
            found.append((say("Rigid Body World"), scene.name))
    if not found:
        return ""
    names = [say("'{field}' of '{object}'", field=name, object=owner) for name, owner in found]
    shown = ", ".join([*names[:NAMED], *(["…"] if len(names) > NAMED else [])])
    return say("Physics don't see what Live solves: {simulations}. Bake IK first, then simulate", simulations=shown)


def is_solving(ob: Object) -> bool:
    """Whether an object is an armature with chains that are solved live."""
    return ob.type == "ARMATURE" and object_of(ob).live and any(chain_of(tip).enabled for tip in tips(ob))


def is_late(ob: Object) -> bool:
    """Whether an object is an armature that is solved live once Blender has simulated the frame."""
    rig = registry.of(ob).rig if is_solving(ob) else None
    return is_solving(ob) and (rig is None or not rig.is_early)


def _simulated(scene: Scene) -> Iterator[tuple[Object, str, str]]:
    """Yield objects of a scene with simulations that are not baked, with the name and the kind of each."""
    for owner in scene.objects:
        for modifier in owner.modifiers:
            if any(not cache.is_baked for cache in _caches(modifier)):
                yield owner, modifier.name, modifier.type


def _caches(modifier: Struct) -> list[PointCache]:
    """Return the point caches of a modifier; none if it simulates nothing."""
    if modifier.type in {"CLOTH", "SOFT_BODY"}:
        return [modifier.point_cache]
    if modifier.type == "PARTICLE_SYSTEM":
        system = modifier.particle_system
        moves = system.settings.type == "EMITTER" or system.use_hair_dynamics
        return [system.point_cache] if moves else []
    if modifier.type == "DYNAMIC_PAINT" and modifier.canvas_settings is not None:
        return [surface.point_cache for surface in modifier.canvas_settings.canvas_surfaces]
    return []


def _is_obstacle(ob: Object) -> bool:
    has_field = ob.field is not None and ob.field.type != "NONE"
    return has_field or any(modifier.type == "COLLISION" for modifier in ob.modifiers)


@persistent
def _before_render(scene: Scene, _unused: object = None) -> None:
    """Say before a render what it will show wrong."""
    for ob in filter(is_late, scene.objects):
        if text := warning(ob, scene):
            log.warning("%s: %s", ob.name, text)


HANDLERS = (("render_init", _before_render),)
