"""What limbs reach: their frames solved as a bake solves them, without keying anything."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import bpy
import numpy as np

from ..bake.sampling import Frames, Method
from ..bake.solved import Solved
from ..clip.foot import Foot
from ..data import fk_store
from ..data.settings import object_of
from ..goals.snapped import Chain
from ..live import registry
from ..pose.channels import Row
from ..rig.plan.plan import Plan
from ..rig.write.waves import Posed
from ..solve.maths.products import applied
from ..solve.problem import Floats
from .feet import Feet


@dataclass(frozen=True)
class Reached:
    """Where C chains end on F frames."""

    errors: Floats
    """(F, C) how far they are from their targets, in chain lengths; not a number where one can't be solved."""
    feet: list[Foot]
    """Their hands and feet, as what they stand on sees them; they touch nothing."""
    bones: list[Floats]
    """(F, n, 4, 4) poses of their bones, for each of them; not a number where one can't be solved."""


class _Ends(Solved):
    """Solved frames, with the poses of the bones that end chains."""

    def __init__(self, plan: Plan, chains: Sequence[Chain], frames: int) -> None:
        super().__init__(plan, [chain.tip for chain in chains], frames, [])
        reaches = {chain.tip: chain.reach for chain in plan.chains}
        turning = [chain.turning == chain.end for chain in chains]
        self._rows = [plan.rows[chain.turning] for chain in chains]
        self._reaches = [
            (0.0, 0.0, 0.0) if at else reaches[chain.tip] for at, chain in zip(turning, chains, strict=True)
        ]
        self._posed = [[plan.rows[bone] for bone in chain.bones] for chain in chains]
        self.bones: list[Floats] = [np.empty((frames, len(chain.bones), 4, 4)) for chain in chains]
        """(F, n) of their bones, for each of them."""
        self.turned: Floats = np.empty((frames, len(chains), 4, 4))
        """(F, C) of the bones that take an orientation."""
        self.places: Floats = np.empty((frames, len(chains), 3))
        """(F, C) where chains end."""

    def put(self, start: int, fk: Row, posed: Posed, plan: Plan) -> None:
        super().put(start, fk, posed, plan)
        poses: Floats = posed.poses[:, self._rows].astype(np.float64)
        reaches = np.broadcast_to(self._reaches, (*poses.shape[:2], 3))
        for own, at in zip(self.bones, self._posed, strict=True):
            own[start : start + len(fk)] = posed.poses[:, at]
        self.turned[start : start + len(fk)] = poses
        self.places[start : start + len(fk)] = applied(poses[..., :3, :3], reaches) + poses[..., :3, 3]


def steps(view_layer: bpy.types.ViewLayer, feet: Feet, frames: Sequence[int]) -> Generator[float, None, Reached]:
    """Solve chains on frames; yields the share that is done."""
    ob, chains = feet.snap.ob, feet.snap.chains
    tips = [chain.tip for chain in chains]
    with registry.paused(ob):
        only = None if object_of(ob).live else tips
        plan = Plan.of(ob, view_layer.depsgraph, only)
        solvable = [chain for chain in chains if any(own.tip == chain.tip for own in plan.chains)]
        solved = _Ends(plan, solvable, len(frames))
        work = Frames(view_layer, ob, plan, only, fk_store.held(ob, plan.live), list(frames), changes_order=False)
        for method in [Method.SCENE] if plan.watch else Method:
            if (yield from work.solve(solved, method)):
                break
    errors, bones = np.full((len(frames), len(tips)), np.nan), []
    shown = []
    for c, chain in enumerate(chains):
        if chain in solvable:
            at = solvable.index(chain)
            errors[:, c] = solved.errors[:, at]
            bones.append(solved.bones[at])
            shown.append(feet.shown(chain, solved.places[:, at], solved.turned[:, at]))
        else:
            bones.append(np.full((len(frames), len(chain.bones), 4, 4), np.nan))
            shown.append(feet.foot(chain))
    return Reached(errors, shown, bones)
