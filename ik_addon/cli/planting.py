"""Planting feet from the command line: finds contacts where there are none, and makes the feet hold them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import replace

import bpy
import numpy as np

from ..anatomy.figure import Figure
from ..bake.selection import time_scale
from ..core import contact_keys
from ..core.keyframes import use_new_action
from ..core.steps import part
from ..feet import find_contacts, ground_object, plant
from ..feet.pivots import is_of_leg
from ..feet.plant_report import Planted, as_saved
from ..targets import snap
from ..targets.movable import target_of


def measured(
    context: bpy.types.Context, ob: bpy.types.Object, frames: Sequence[int], options: plant.Options, planted: Planted
) -> Generator[float, None, Planted]:
    """Return the result with slide and depth as the baked keys play; yields progress (0 to 1)."""
    if not planted.contacts:
        return planted
    times = time_scale(context.scene) * np.array(frames, dtype=np.float64)
    kept = ground_object.planted_on(context.view_layer, ob)
    every = [ob.pose.bones[tip] for tip in planted.chains]
    touching = [tip for tip in every if contact_keys.read(tip, times).any() or kept is not None]
    return (yield from as_saved(context, ob, touching, frames, planted, on=options.support, floor=kept))


def legs_of(ob: bpy.types.Object, tips: Sequence[str]) -> list[bpy.types.PoseBone]:
    """Return the tip bones, among these, whose chains are on legs."""
    figure = Figure.of(ob)
    return [bone for tip in tips if is_of_leg(figure, bone := ob.pose.bones[tip])]


def is_loose(tip: bpy.types.PoseBone) -> bool:
    """Return whether a chain has a target without keys."""
    target = target_of(tip)
    return target is not None and not target.is_keyed


def plant_stepwise(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    tips: Sequence[str],
    frames: Sequence[int],
    options: plant.Options,
    *,
    new_action: bool,
) -> Generator[float, None, Planted]:
    """Plant legs on a range of frames; yields progress (0 to 1).

    Existing contacts of a leg on these frames and existing keys of targets stay as they are. If the target of a leg has
    no keys, the chains were only just made, and all targets without keys are snapped to the pose. An error leaves what
    was done before it in place, as the file is not saved then.

    Args:
        context: gives the scene and the view layer.
        ob: the armature object.
        tips: names of the tip bones of the baked chains, some of which are legs.
        frames: ascending frames.
        options: how to plant.
        new_action: key into a copy of the armature's action.

    Raises:
        UserError: the legs can't be planted.
    """
    times = time_scale(context.scene) * np.array(frames, dtype=np.float64)
    legs = legs_of(ob, tips)
    bare = [tip for tip in legs if not contact_keys.read(tip, times).any()]
    loose = [tip for name in tips if is_loose(tip := ob.pose.bones[name])]
    if not any(tip in loose for tip in legs):
        loose = []
    with ExitStack() as undo:
        if new_action:
            use_new_action(ob, undo)
        if loose:  # first: with keyed targets, feet that turn with them are sampled as a whole
            yield from part(snap.key_range(context, ob, loose, frames), 0.0, 0.3)
        if bare:
            yield from part(
                find_contacts.key_contacts(context, ob, bare, frames, on=options.support, floor=options.ground),
                0.3,
                0.5,
            )
        if not any(contact_keys.read(tip, times).any() for tip in legs):
            done = Planted(())
        else:
            done = yield from part(plant.plant_feet(context, ob, legs, frames, options), 0.5, 1.0)
        undo.pop_all()
    chains, found, snapped = (tuple(tip.name for tip in own) for own in (legs, bare, loose))
    return replace(done, chains=chains, found=found, snapped=snapped)
