"""The ground an armature was planted on, stored with its keys so that a bake with fewer keys stays above it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np

from ..bake.sampling import at_frame
from ..pose.skeleton import matrix_array
from ..pose.steps import part
from ..solve.problem import Floats
from . import ground
from .memory import PROPERTY

GROUND = "ground"


@dataclass(frozen=True)
class Floor:
    """An object that points must stay above; implements `bake.reducing.Floor`."""

    view_layer: bpy.types.ViewLayer
    ob: bpy.types.Object

    def steps(
        self, frames: Sequence[int], points: Floats, reach: float
    ) -> Generator[float, None, Callable[[Floats], Floats]]:
        """Sample the object on frames; yields progress (0 to 1). See `bake.reducing.Floor`."""
        worlds = None
        if not ground.is_still(self.ob):
            worlds = np.empty((len(frames), 4, 4))
            for i, frame in enumerate(frames):
                worlds[i] = matrix_array(self.ob.evaluated_get(at_frame(self.view_layer, frame)).matrix_world)
                yield 0.5 * (i + 1) / len(frames)
        looking = ground.steps(self.view_layer, self.ob, frames, worlds, ground.still(len(frames)), points, reach)
        surface = yield from part(looking, 0.5, 1.0)
        every = np.arange(len(frames))

        def heights(found: Floats) -> Floats:
            return np.stack([-surface.look(every, own)[0] for own in np.moveaxis(found, 1, 0)], axis=1)

        return heights


def keep(ob: bpy.types.Object, on: bpy.types.Object | None, undo: ExitStack) -> None:
    """Store in the armature's action, if it has one, what it is planted on (None: nothing); `undo` takes it back."""
    action = _action(ob)
    if action is not None:
        undo.callback(_write, action, _read(ob))
        _write(action, on)


def of(view_layer: bpy.types.ViewLayer, ob: bpy.types.Object) -> Floor | None:
    """Return what an armature was planted on, if that object still exists in the view layer."""
    on = _read(ob)
    is_there = on is not None and view_layer.objects.get(on.name) == on
    return Floor(view_layer, on) if on is not None and is_there else None


def _action(ob: bpy.types.Object) -> Any:
    return None if ob.animation_data is None else ob.animation_data.action


def _read(ob: bpy.types.Object) -> bpy.types.Object | None:
    action = _action(ob)
    found = None if action is None else action.get(PROPERTY, {}).get(GROUND)
    return found if isinstance(found, bpy.types.Object) else None


def _write(action: Any, on: bpy.types.Object | None) -> None:
    if on is not None:
        if PROPERTY not in action:
            action[PROPERTY] = {}
        action[PROPERTY][GROUND] = on
    elif PROPERTY in action and GROUND in action[PROPERTY]:
        del action[PROPERTY][GROUND]
        if not len(action[PROPERTY]):
            del action[PROPERTY]
