"""The ground an armature was planted on, remembered so that a bake with fewer keys stays above it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import bpy
import numpy as np

from ..bake.sampling import stepped, world_of
from ..core.settings import object_of
from ..core.steps import part
from ..solve.problem import Floats
from . import ground_object
from .original_keys import PROPERTY, note

GROUND = "ground"


@dataclass(frozen=True)
class Floor:
    """An object that points must stay above; implements `bake.reducing.Floor`."""

    view_layer: bpy.types.ViewLayer
    ob: bpy.types.Object

    def read_heights(
        self, frames: Sequence[int], points: Floats, reach: float
    ) -> Generator[float, None, Callable[[Floats], Floats]]:
        """Sample the object on frames; yields progress (0 to 1). See `bake.reducing.Floor`."""
        worlds = None
        if not ground_object.is_still(self.ob):
            worlds = np.array((yield from part(stepped(self.view_layer, frames, partial(world_of, self.ob)), 0.0, 0.5)))
        looking = ground_object.read_ground(
            self.view_layer, self.ob, frames, worlds, ground_object.still(len(frames)), points, reach
        )
        surface = yield from part(looking, 0.5, 1.0)
        every = np.arange(len(frames))

        def heights(found: Floats) -> Floats:
            return np.stack([-surface.look(every, own)[0] for own in np.moveaxis(found, 1, 0)], axis=1)

        return heights


def keep(ob: bpy.types.Object, on: bpy.types.Object | None, undo: ExitStack) -> None:
    """Note what an armature is planted on (None: nothing), if it has an action; `undo` takes it back.

    The armature object holds it, and its action names it: an action that held it would bring it along to other files.
    """
    action = _action(ob)
    if action is not None:
        undo.callback(_write, ob, action, object_of(ob).ground, _named(action))
        _write(ob, action, on, "" if on is None else on.name)


def of(view_layer: bpy.types.ViewLayer, ob: bpy.types.Object) -> Floor | None:
    """Return what an armature was planted on, if that object still exists in the view layer."""
    on = _read(ob)
    is_there = on is not None and view_layer.objects.get(on.name) == on
    return Floor(view_layer, on) if on is not None and is_there else None


def _action(ob: bpy.types.Object) -> Any:
    return None if ob.animation_data is None else ob.animation_data.action


def _read(ob: bpy.types.Object) -> bpy.types.Object | None:
    """Return what the action of an armature was planted on, also if that was renamed since."""
    on, action = object_of(ob).ground, _action(ob)
    name = "" if action is None else _named(action)
    return on if name and on is not None and (on.name == name or name not in bpy.data.objects) else None


def _named(action: Any) -> str:
    name = action.get(PROPERTY, {}).get(GROUND, "")
    return name if isinstance(name, str) else ""


def _write(ob: bpy.types.Object, action: Any, on: bpy.types.Object | None, name: str) -> None:
    object_of(ob).ground = on
    note(action, GROUND, name)
