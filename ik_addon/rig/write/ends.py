"""End bones of chains, hands and feet: they take the orientation of their chain's target once the chain is posed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...solve import Solution, Status
from ...solve.limb.end_rotation import turned
from ...solve.maths.products import times_back
from ..read.sample import Goals
from .limb import Limbs
from .outcomes import Outcomes


def turned_ends(limbs: Limbs, goals: Goals, outcomes: Outcomes) -> Limbs:
    """Turn end bones to goals (B, 1), write their channels and record which are at a limit.

    An end bone whose chain could not be solved keeps its FK pose.
    """
    wave, frames = limbs.wave, limbs.frames()[:, 0]
    limits = limbs.limits()
    if limits is not None and not wave.shape.inherits[0]:
        limits = replace(limits, root=np.broadcast_to(np.eye(3), limits.root.shape))
    wanted = goals.turned[:, 0]
    usable = np.isfinite(wanted).all(axis=(1, 2)) & np.isfinite(frames).all(axis=(1, 2))
    usable &= wave.as_members(outcomes.status[:, wave.chains])[:, 0] != Status.INVALID
    if limits is not None:  # below a bone that is scaled flat the limits have no axes
        usable &= np.isfinite(limits.root).all(axis=(1, 2))
        limits = replace(limits, root=np.where(usable[:, None, None], limits.root, np.eye(3)))
    upright = np.where(usable[:, None, None], wanted, np.eye(3))
    found, at_limit = turned(np.where(usable[:, None, None], frames, np.eye(3)), upright, limits)
    count = len(frames)
    solution = Solution(
        joints=limbs.joints(),
        rotations=times_back(found, frames)[:, None],
        stretch=np.ones((count, 1)),
        error=np.zeros(count),
        status=np.where(usable, Status.REACHED, Status.INVALID).astype(np.int8),
        iterations=np.zeros(count, dtype=np.int64),
        at_limit=at_limit[:, None],
    )
    outcomes.put_end(wave, at_limit & usable)
    posed = limbs.solved(found[:, None], solution)
    return posed.blended(limbs, goals.influence) if (goals.influence < 1.0).any() else posed
