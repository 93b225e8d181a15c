"""Feet planted from the command line: their contacts found where there are none yet, and held."""

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
from ..data.settings import chain_of
from ..goals import snap
from ..goals.movable import goals_of
from ..planting import contact_keys, find, floor, plant
from ..planting.outcome import Planted, as_saved
from ..planting.pivots import is_of_leg
from ..pose.new_action import use_new_action
from ..pose.steps import part


@dataclass(frozen=True)
class PlantReport:
    """What was planted of an armature."""

    chains: tuple[str, ...]
    """Tip bones of the legs."""
    found: tuple[str, ...]
    """Those of them whose contacts were found; the others had some."""
    snapped: tuple[str, ...]
    """Tip bones of the chains, on legs or not, whose targets had no keys, and now move as the pose did."""
    planted: Planted | None
    """What became of it; None: there was no contact."""

    def as_saved(
        self, context: bpy.types.Context, ob: bpy.types.Object, frames: Sequence[int], options: plant.Options
    ) -> Generator[float, None, PlantReport]:
        """The report with what is measured as the keys play that were baked since; yields the share that is done."""
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
        """The report in sentences."""
        return "Found no contact, so nothing was planted" if self.planted is None else self.planted.message

    @property
    def entry(self) -> dict[str, Any]:
        """It in the report. Distances are fractions of the length of the leg."""
        found: dict[str, Any] = {"chains": self.chains, "found": self.found, "snapped": self.snapped, "contacts": 0}
        done = self.planted
        if done is not None:
            found |= {"contacts": done.contacts, "slide_before": done.slide[0], "slide": done.slide[1]}
            if done.has_ground:
                found |= {"depth_before": done.depth[0], "depth": done.depth[1]}
            found |= {name: getattr(done, name) for name in ("hips", "short", "short_frames", "remarks")}
        return {**found, "message": self.message}


def legs_of(ob: bpy.types.Object, tips: Sequence[str]) -> list[bpy.types.PoseBone]:
    """Those of the chains on these tip bones that are legs."""
    figure = Figure.of(ob)
    return [bone for tip in tips if is_of_leg(figure, bone := ob.pose.bones[tip])]


def is_loose(tip: bpy.types.PoseBone) -> bool:
    """Whether the target of a chain has no keys."""
    return chain_of(tip).target is not None and not goals_of(tip)[0].is_keyed


def steps(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    tips: Sequence[str],
    frames: Sequence[int],
    options: plant.Options,
    *,
    new_action: bool,
) -> Generator[float, None, PlantReport]:
    """Plant legs on a range of frames; yields the share that is done.

    Contacts that a leg has on these frames are left as they are, and so are the keys of a target. Where the target of a
    leg has none, the chains were only just made: all targets without keys are snapped to the pose. What was done before
    an error stays: the file is not saved then.

    Args:
        context: for the scene and the view layer.
        ob: the armature object.
        tips: of the chains that are baked; some are legs.
        frames: ascending.
        options: how feet are planted.
        new_action: key into a copy of the armature's action.

    Raises:
        UserError: it can't be done.
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
        if loose:  # first: feet that turn with their targets are looked at as a whole
            yield from part(snap.steps(context, ob, loose, frames), 0.0, 0.3)
        if bare:
            yield from part(find.steps(context, ob, bare, frames, on=options.support, floor=options.ground), 0.3, 0.5)
        if not any(contact_keys.read(tip, times).any() for tip in legs):
            undo.pop_all()
            return report(planted=None)
        done = yield from part(plant.steps(context, ob, legs, frames, options), 0.5, 1.0)
        undo.pop_all()
    return report(planted=done)
