"""What limbs reach: frames solved as a bake would solve them, without keying anything."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from ..bake.sampling import Frames
from ..bake.solved import Solved
from ..core import fk_store
from ..core.channels import Row
from ..core.settings import object_of
from ..core.skeleton import moved
from ..live import registry
from ..live.reports import NEAR
from ..rig.plan.plan import Plan
from ..rig.write.waves import Posed
from ..solve.maths.products import lengths_of
from ..solve.problem import Bools, Floats, Ints
from ..targets.snapped import Chain
from .foot_track import Foot
from .sampled_feet import Feet

FOLLOWS = 0.01
"""A target that stays this close to the end of its limb in FK, in lengths of the limb, was made from the FK motion."""


@dataclass(frozen=True)
class Reached:
    """Where C chains end on F frames; NaN on frames not solved yet, and for chains that can't be solved."""

    errors: Floats
    """(F, C) distances from their targets, in chain lengths."""
    ends: Floats
    """(F, C, 3) positions of the ends, in pose space."""
    turned: Floats
    """(F, C, 4, 4) poses of the bones that take the target's orientation."""
    bones: list[Floats]
    """For each chain, the poses (F, n, 4, 4) of its bones."""

    @classmethod
    def nowhere(cls, feet: Feet) -> Reached:
        """Return an empty result, with nothing solved yet."""
        frames, chains = len(feet.frames), feet.snap.chains
        errors, ends, turned = (np.full((frames, len(chains), *shape), np.nan) for shape in ((), (3,), (4, 4)))
        return cls(errors, ends, turned, [np.full((frames, len(chain.bones), 4, 4), np.nan) for chain in chains])

    def feet(self, feet: Feet) -> list[Foot]:
        """Return the hands and feet, in the space of what they stand on, without contacts."""
        return [
            feet.foot(chain)
            if np.isnan(self.ends[:, c]).all()
            else feet.shown(chain, self.ends[:, c], self.turned[:, c])
            for c, chain in enumerate(feet.snap.chains)
        ]


def solve(feet: Feet, reached: Reached, some: Bools) -> Generator[float, None, None]:
    """Solve the chains on some (F,) of the frames and write the results to `reached`; yields progress (0 to 1)."""
    ob, view_layer, own = feet.snap.ob, feet.view_layer, np.flatnonzero(some)
    only = None if object_of(ob).live else [chain.tip for chain in feet.snap.chains]
    plan = Plan.of(ob, view_layer.depsgraph, only)
    planned = {chain.tip for chain in plan.chains}
    chosen = {c: chain for c, chain in enumerate(feet.snap.chains) if chain.tip in planned}
    solved = _Ends(plan, reached, own, chosen)
    numbers = [feet.frames[i] for i in own.tolist()]
    work = Frames(view_layer, ob, plan, only, fk_store.held(ob, plan.live), numbers, changes_order=False)
    with registry.paused(ob):
        yield from work.solve(solved, foretold=work.are_foretold)
    reached.errors[np.ix_(own, np.array([*chosen], dtype=np.int64))] = solved.errors


@dataclass(frozen=True)
class Record:
    """A chain on F frames before planting."""

    poses: Floats
    """(F, n, 4, 4) poses of its bones."""
    reached: Bools
    """(F,) whether it reached its target."""


def recorded(feet: Feet) -> Generator[float, None, list[Record]]:
    """Return each chain before planting; yields progress (0 to 1).

    Its poses are FK poses if all targets follow the FK pose, as those of a recording do; otherwise solved poses.
    """
    chains, snap, everywhere = feet.snap.chains, feet.snap, np.ones(len(feet.frames), dtype=bool)
    found = [feet.sampled.poses[:, snap.sampler.rows(chain.bones)] for chain in chains]
    gaps = [lengths_of(feet.ends(chain) - feet.sampled.goals[:, chain.target, :3, 3]) for chain in chains]
    if all(float(gap.max()) < FOLLOWS * feet.length(chain) for gap, chain in zip(gaps, chains, strict=True)):
        return [Record(fk, everywhere) for fk in found]
    reached = Reached.nowhere(feet)
    yield from solve(feet, reached, everywhere)
    return [
        Record(np.where(np.isnan(own), fk, own), np.asarray(errors < NEAR))
        for own, fk, errors in zip(reached.bones, found, reached.errors.T, strict=True)
    ]


class _Ends(Solved):
    """Solved frames that also fill in where the chains end."""

    def __init__(self, plan: Plan, reached: Reached, frames: Ints, chains: dict[int, Chain]) -> None:
        """Begin with the frames, by index, and the chains, by their index in `reached`."""
        super().__init__(plan, [chain.tip for chain in chains.values()], len(frames), [])
        self._reached, self._frames, self._chains = reached, frames, chains
        self._own_rows = plan.rows
        self._reaches = {chain.tip: chain.reach for chain in plan.chains}

    def put(self, start: int, fk: Row, posed: Posed, plan: Plan) -> None:
        super().put(start, fk, posed, plan)
        reached, at = self._reached, self._frames[start : start + len(fk)]
        for c, chain in self._chains.items():
            turned: Floats = posed.poses[:, self._own_rows[chain.turning]].astype(np.float64)
            reach = (0.0, 0.0, 0.0) if chain.turning == chain.end else self._reaches[chain.tip]
            reached.turned[at, c] = turned
            reached.ends[at, c] = moved(turned, np.broadcast_to(reach, (len(at), 3)))
            reached.bones[c][at] = posed.poses[:, [self._own_rows[bone] for bone in chain.bones]]
