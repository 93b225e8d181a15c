"""Poles that follow the knees and elbows of a body that is posed over a range of frames."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

import bpy
import numpy as np

from ..core.channels import Row
from ..core.falloff import FALLOFFS, changed
from ..core.settings import chain_of
from ..core.skeleton import inverse, moved
from ..rig.plan.limits import hinge_of
from ..solve import pole_angle
from ..solve.maths.products import applied
from ..solve.maths.rotations import cross, norm, unit
from ..solve.problem import Floats, Ints
from ..targets.edit_range import EditRange
from ..targets.limb_frames import Sampled, Sampler
from ..targets.places import turned_about
from ..targets.snapped import Chain, Poles, Snap, rows_of

BENT = np.sin(np.radians(15.0))
"""The sine of the angle from which a limb shows to which side pins bend it; a straight one bends as its share says."""


class PoleRange:
    """The keys of the poles of live limbs around a drag."""

    def __init__(
        self, context: bpy.types.Context, ob: bpy.types.Object, tips: Sequence[bpy.types.PoseBone], reach: EditRange
    ) -> None:
        """Find them, before the drag is kept, for the chains on these tip bones."""
        self._context = context
        self._snap = Snap.of(context.view_layer, ob, tips, True, Poles.MATCH)
        self.goals = self._snap.goals
        """The targets and poles of these chains."""
        self._spreads = {
            chain.pole: (chain, spread)
            for chain in self._snap.chains
            if chain.pole is not None
            for spread in reach.spreads(context.scene, [self.goals[chain.pole]])
        }
        frames = [spread.frames for _, spread in self._spreads.values()]
        self.frames: Floats = np.unique(np.concatenate(frames)) if frames else np.zeros(0)
        """(F,) the frames of their keys."""

    @property
    def bones(self) -> Ints:
        """Indices of the pose bones of the limbs."""
        return self._snap.sampler.bones

    @property
    def knees(self) -> list[int]:
        """Indices of the lower bones of the limbs."""
        return [chain.bones[1] for chain, _ in self._spreads.values() if len(chain.bones) > 1]

    def sampled(self, rows: Row) -> Sampled | None:
        """Return the poles on these frames, from unanimated channels (m, 17); None: more than keys decides."""
        if not self._spreads:
            return None
        sampler = Sampler.of(self._snap.ob, [], self.goals, True)
        return sampler.foretelling(self._context.view_layer, rows[sampler.bones])(self.frames.tolist())

    def spread(self, before: Sampled, now: Sampled, poses: Floats, undo: ExitStack) -> None:
        """Key poles so that limbs bend to them as before.

        Args:
            before: the poles before the drag.
            now: the poles, and what they follow, with the keys that the drag has changed.
            poses: (3, F, m, 4, 4) the poses before the drag, those with a share of it, and those in which pins hold.
            undo: takes the keys back.
        """
        wanted = now.goals[:, :, :3, 3].copy()
        pairs = zip((before, now, now), poses, strict=True)
        was, shared, held = (replace(own, poses=pose[:, self.bones]) for own, pose in pairs)
        for pole, (chain, _) in self._spreads.items():
            turn, more = self._turn(was, shared, chain, pole), self._turn(was, held, chain, pole)
            joints = self._snap.knee(held, chain).joints[:, [0, 1, -1]]
            upper, lower = (unit(line.T) for line in (joints[:, 1] - joints[:, 0], joints[:, 2] - joints[:, 1]))
            shows = FALLOFFS["SMOOTH"](np.minimum(1.0, norm(cross(upper, lower)) / BENT))
            turn += shows * (np.remainder(more - turn + np.pi, 2.0 * np.pi) - np.pi)
            place = moved(inverse(now.world), now.goals[:, pole, :3, 3])
            wanted[:, pole] = moved(now.world, turned_about(joints, place, turn))
        rows = rows_of(self.goals, now, wanted, {})
        for pole, (_, spread) in self._spreads.items():
            spread.begin(undo)
            here = int(np.argmin(np.abs(self.frames - self._context.scene.frame_current_final)))
            change, shares = (rows[here, None, pole], spread.after[None]), spread.shares(self.frames)
            spread.put(self.frames, changed(rows[:, pole], *change, shares, None))

    def _turn(self, before: Sampled, after: Sampled, chain: Chain, pole: int) -> Floats:
        """Return the angles (F,) by which a limb turned away from its pole, about its line."""
        found, tip = [], self._snap.ob.pose.bones[chain.tip]
        folds, hinge = any(chain_of(tip).folds), hinge_of(tip)
        for own in (before, after):
            limbs, place = self._snap.knee(own, chain), moved(inverse(own.world), own.goals[:, pole, :3, 3])
            sides = applied(limbs.frames[:, 0], np.broadcast_to(chain_of(tip).bend_side, place.shape))
            goals = limbs.joints[:, -1], place, sides
            found.append(pole_angle(limbs.joints, limbs.frames, *goals, folds=folds, hinge=hinge))
        return np.asarray(found[1] - found[0])
