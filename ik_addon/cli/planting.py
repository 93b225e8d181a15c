"""Planting feet from the command line: finds contacts where there are none, and makes the feet hold them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import bpy
import numpy as np

from ..anatomy.figure import Figure
from ..bake.selection import time_scale
from ..core import contact_keys
from ..core.keyframes import use_new_action
from ..core.steps import part
from ..feet import find_contacts, floor, plant
from ..feet.pivots import is_of_leg
from ..feet.plant_report import Planted, as_saved
from ..targets import snap
from ..targets.movable import target_of


@dataclass(frozen=True)
class PlantReport:
    """The result of planting an armature's feet."""

    chains: tuple[str, ...]
    """Names of the tip bones of the legs."""
    found: tuple[str, ...]
    """Names of those tip bones whose contacts were found now; the other legs already had contacts."""
    snapped: tuple[str, ...]
    """Names of the tip bones of all chains whose targets had no keys and were snapped to the pose."""
    planted: Planted | None
    """The result of planting; None if there was no contact."""

    def as_saved(
        self, context: bpy.types.Context, ob: bpy.types.Object, frames: Sequence[int], options: plant.Options
    ) -> Generator[float, None, PlantReport]:
        """Return the report with slide and depth measured as the baked keys play; yields progress (0 to 1)."""
        if self.planted is None:
            return self
        times = time_scale(context.scene) * np.array(frames, dtype=np.float64)
        kept = floor.of(context.view_layer, ob)
        every = [ob.pose.bones[tip] for tip in self.chains]
        touching = [tip for tip in every if contact_keys.read(tip, times).any() or kept is not None]
        found = yield from as_saved(context, ob, touching, frames, self.planted, on=options.support, floor=kept)
        return replace(self, planted=found)

    @property
    def message(self) -> str:
        """The report as sentences."""
        return "No contacts found, so nothing was planted" if self.planted is None else self.planted.message

    @property
    def entry(self) -> dict[str, Any]:
        """The entry in the JSON report. Distances are fractions of the length of the leg."""
        found: dict[str, Any] = {"chains": self.chains, "found": self.found, "snapped": self.snapped, "contacts": 0}
        done = self.planted
        if done is not None:
            found |= {"contacts": done.contacts, "slide_before": done.slide[0], "slide": done.slide[1]}
            if done.has_ground:
                found |= {"depth_before": done.depth[0], "depth": done.depth[1]}
            found |= {"knees_before": done.knees[0], "knees": done.knees[1]}
            found |= {name: getattr(done, name) for name in ("hips", "short", "short_frames", "remarks")}
        return {**found, "message": self.message}


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
) -> Generator[float, None, PlantReport]:
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
    report = partial(
        PlantReport,
        chains=tuple(tip.name for tip in legs),
        found=tuple(tip.name for tip in bare),
        snapped=tuple(tip.name for tip in loose),
    )
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
            undo.pop_all()
            return report(planted=None)
        done = yield from part(plant.plant_feet(context, ob, legs, frames, options), 0.5, 1.0)
        undo.pop_all()
    return report(planted=done)
