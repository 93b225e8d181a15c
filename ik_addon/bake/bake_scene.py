"""The scenes in which a bake steps through frames: the real one, or a copy with only what the chains need."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import bpy

from .. import compat
from ..data.neighbors import others_handle_frames
from ..data.settings import chain_of, goal_of
from ..live import registry
from ..pose.channels import channel_of
from ..pose.data_paths import set_at, value_at
from ..rig.plan import chain

SIMULATED = {"CLOTH", "SOFT_BODY", "FLUID", "DYNAMIC_PAINT", "PARTICLE_SYSTEM"}
"""Modifiers that continue from the previous frame; those of geometry nodes that do so have `bakes`."""


def is_bound(scene: bpy.types.Scene) -> bool:
    """Whether frames of a scene depend on more than animation, so that a copy of it would show something else.

    A simulation only continues in the scene where it began. And in a scene that is not shown, writing a live solution
    after a frame was evaluated would undo the animation of everything else on the same object.
    """
    return scene.rigidbody_world is not None or registry.is_solved(scene)


@contextmanager
def bake_scene(view_layer: bpy.types.ViewLayer, ob: bpy.types.Object) -> Iterator[bpy.types.ViewLayer | None]:
    """Copy a scene, with only an armature object and the goals of its chains, to step through frames in it.

    Blender adds whatever these depend on: parents, constraint targets, what drivers read. Everything else is left out
    and not evaluated on each frame. Yields the view layer of the copy; None if frames might look different in it, or if
    there is nothing to leave out.
    """
    scene: Any = view_layer.id_data
    found = (goal_of(chain_of(tip), role)[0] for tip in chain.tips(ob) for role in ("target", "pole"))
    goals = {goal for goal in found if goal is not None}
    if is_bound(scene) or others_handle_frames() or {ob, *goals}.issuperset(scene.objects):
        yield None
        return
    copy = scene.copy()
    try:
        copy.background_set = None
        for layer in copy.view_layers[:]:
            if layer.name != view_layer.name:
                copy.view_layers.remove(layer)
        everything = copy.collection
        for child in everything.children[:]:
            everything.children.unlink(child)
        for other in everything.objects[:]:
            everything.objects.unlink(other)
        for needed in {ob, *goals}:
            everything.objects.link(needed)
        copied = copy.view_layers[0]
        copied.update()
        yield copied if is_self_contained(copied.depsgraph) else None
    finally:
        bpy.data.batch_remove([copy])  # in commands without a window, `scenes.remove` crashes Blender 4.2


def simulates(scene: bpy.types.Scene) -> bool:
    """Whether anything in a scene is simulated, so that jumping between frames would disturb it."""
    modifiers = (modifier for known in _evaluated_for(scene) for modifier in getattr(known, "modifiers", ()))
    return any(modifier.type in SIMULATED or getattr(modifier, "bakes", ()) for modifier in modifiers)


def is_self_contained(depsgraph: bpy.types.Depsgraph) -> bool:
    """Whether everything that is evaluated in a copy of a scene depends only on what is evaluated with it.

    A scene that a driver reads is added to the depsgraph, but as the original, which stays on its frame. It is unknown
    what other Python code reads, and modifiers may depend on a simulation or on the whole scene.
    """
    scene = depsgraph.scene
    return all(
        (not isinstance(known, bpy.types.Scene) or known == scene)
        and not getattr(known, "modifiers", ())
        and not any(map(_runs_python, _animating(known)))
        for known in _evaluated_in(depsgraph)
    )


def _evaluated_in(depsgraph: Any) -> Iterator[Any]:
    """Yield the data-blocks that are evaluated, some of them twice.

    `Depsgraph.ids` lacks data-blocks outside the view layer that something in it needs, but includes node trees that
    are part of other data-blocks.
    """
    yield from (evaluated.original for evaluated in depsgraph.ids)
    for kind in bpy.data.bl_rna.properties:
        if kind.type == "COLLECTION":
            everything = getattr(bpy.data, kind.identifier)
            yield from (known for known in everything if known.evaluated_get(depsgraph).is_evaluated)


def _evaluated_for(scene: bpy.types.Scene) -> set[Any]:
    """Return the data-blocks that are evaluated in any view layer of a scene."""
    graphs = [layer.depsgraph for layer in scene.view_layers]
    return {known for depsgraph in graphs if depsgraph is not None for known in _evaluated_in(depsgraph)}


def _animating(owner: Any) -> Iterator[bpy.types.FCurve]:
    """Yield the F-curves and drivers that Blender evaluates of a data-block."""
    if getattr(owner, "animation_data", None) is not None:
        yield from compat.animating(owner)


def _runs_python(curve: bpy.types.FCurve) -> bool:
    """Whether an F-curve is a driver that runs Python code, which may read anything."""
    driver: Any = curve.driver
    return driver is not None and driver.type == "SCRIPTED" and not driver.is_simple_expression


class Edits:
    """Unkeyed edits of animated properties in a scene, which going to another frame and back would drop.

    Leaves out the bone channels of armatures that the bake writes or that are solved live.
    """

    def __init__(self, scene: bpy.types.Scene, posed: Collection[bpy.types.Object]) -> None:
        """Read everything that is evaluated, except the channels of the `posed` armatures."""
        self._values = [
            (owner, path, value_at(owner, path))
            for owner in _evaluated_for(scene)
            for path in {curve.data_path for curve in _animating(owner) if curve.driver is None}
            if not (owner in posed and channel_of(path))
        ]

    def put_back(self) -> None:
        """Set values again that differ now; other add-ons may have deleted some of their owners."""
        for owner, path, value in self._values:
            with suppress(ReferenceError, ValueError, AttributeError, TypeError, KeyError):
                if value is not None and value_at(owner, path) != value:
                    set_at(owner, path, value)
