"""Poles that follow the knees and elbows of a body that is posed over a range of frames."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import bpy
import numpy as np

from ..core.channels import Row
from ..core.falloff import changed
from ..core.settings import chain_of
from ..core.skeleton import inverse, moved
from ..rig.plan.limits import hinge_of
from ..solve import pole_angle
from ..solve.maths.products import applied
from ..solve.problem import Floats, Ints
from ..targets.edit_range import EditRange
from ..targets.limb_frames import Sampled
from ..targets.places import turned_about
from ..targets.snapped import Chain, Poles, Snap, rows_of


class PoleRange:
    """The keys of the poles of live limbs around a drag."""

    def __init__(
        self, context: bpy.types.Context, ob: bpy.types.Object, tips: Sequence[bpy.types.PoseBone], reach: EditRange
    ) -> None:
        """Find them, before the drag is kept, for the chains on these tip bones."""
        self._context = context
        self._snap = Snap.of(context.view_layer, ob, tips, True, Poles.MATCH)
        self._spreads = {
            chain.pole: (chain, spread)
            for chain in self._snap.chains
            if chain.pole is not None
            for spread in reach.spreads(context.scene, [self._snap.goals[chain.pole]])
        }
        frames = [spread.frames for _, spread in self._spreads.values()]
        self.frames: Floats = np.unique(np.concatenate(frames)) if frames else np.zeros(0)
        """(F,) the frames of their keys."""

    @property
    def bones(self) -> Ints:
        """Indices of the pose bones of the limbs."""
        return self._snap.sampler.bones

    def sampled(self, rows: Row) -> Sampled | None:
        """Return the poles and their limbs on these frames, from unanimated channels (m, 17); None: more decides."""
        sampler = self._snap.sampler
        foretell = sampler.foretelling(self._context.view_layer, rows[sampler.bones])
        return foretell(self.frames.tolist()) if self._spreads else None

    def spread(self, before: Sampled, now: Sampled, poses: Floats, undo: ExitStack) -> None:
        """Key poles so that limbs bend to them as before.

        Args:
            before: the limbs before the drag.
            now: the poles, and what they follow, with the keys that the drag has changed.
            poses: (F, m, 4, 4) the poses to which limbs bend.
            undo: takes the keys back.
        """
        posed = Sampled(**{**vars(now), "poses": poses[:, self._snap.sampler.bones]})
        wanted = now.goals[:, :, :3, 3].copy()
        for pole, (chain, _) in self._spreads.items():
            inner, own = (moved(inverse(sampled.world), sampled.goals[:, pole, :3, 3]) for sampled in (before, posed))
            turn = self._beside(posed, chain, own) - self._beside(before, chain, inner)
            joints = self._snap.knee(posed, chain).joints[:, [0, 1, -1]]
            wanted[:, pole] = moved(posed.world, turned_about(joints, own, turn))
        rows = rows_of(self._snap.goals, now, wanted, {})
        for pole, (_, spread) in self._spreads.items():
            spread.begin(undo)
            here = int(np.argmin(np.abs(self.frames - self._context.scene.frame_current_final)))
            change, shares = (rows[here, None, pole], spread.after[None]), spread.shares(self.frames)
            spread.put(self.frames, changed(rows[:, pole], *change, shares, None))

    def _beside(self, sampled: Sampled, chain: Chain, poles: Floats) -> Floats:
        """Return the angles (F,) from poles (F, 3) in object space to where their limbs bend, about their lines."""
        limbs, tip = self._snap.knee(sampled, chain), self._snap.ob.pose.bones[chain.tip]
        sides = applied(limbs.frames[:, 0], np.broadcast_to(chain_of(tip).bend_side, (len(poles), 3)))
        folds, hinge = any(chain_of(tip).folds), hinge_of(tip)
        return pole_angle(limbs.joints, limbs.frames, limbs.joints[:, -1], poles, sides, folds=folds, hinge=hinge)
