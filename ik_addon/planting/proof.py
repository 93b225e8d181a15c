"""What limbs reach: their frames solved as a bake solves them, without keying anything."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import bpy
import numpy as np

from ..bake.sampling import Frames, Method
from ..bake.solved import Solved
from ..data import fk_store
from ..data.settings import object_of
from ..live import registry
from ..rig.plan.plan import Plan
from ..solve.problem import Floats


def errors(
    view_layer: bpy.types.ViewLayer, ob: bpy.types.Object, tips: Sequence[str], frames: Sequence[int]
) -> Generator[float, None, Floats]:
    """How far (F, C) chains are from their targets, in chain lengths; not a number where one can't be solved.

    Yields the share that is done.
    """
    found = np.full((len(frames), len(tips)), np.nan)
    with registry.paused(ob):
        only = None if object_of(ob).live else list(tips)
        plan = Plan.of(ob, view_layer.depsgraph, only)
        solvable = [tip for tip in tips if any(chain.tip == tip for chain in plan.chains)]
        solved = Solved(plan, solvable, len(frames), [])
        work = Frames(view_layer, ob, plan, only, fk_store.held(ob, plan.live), list(frames), changes_order=False)
        for method in [Method.SCENE] if plan.watch else Method:
            if (yield from work.solve(solved, method)):
                break
    found[:, [tips.index(tip) for tip in solvable]] = solved.errors
    return found
