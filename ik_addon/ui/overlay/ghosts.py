"""What a drag over a range of frames shows: ghosts of the skeleton, and the trail of what is in hand; no gpu.

Poses of other frames are foretold from F-curves, with live chains solved; no frame is set. Where more than that
decides, nothing is shown.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from bpy.types import Context

from ...core import channels, compat
from ...core.falloff import weights
from ...core.goals import Goal
from ...core.skeleton import inverse, matrix_array, moved
from ...solve.maths.products import times
from ...solve.problem import Bools, Floats
from ...targets.cursor import Held
from ...targets.snapped import Sampler

SHOWN = (-1.0, -0.5, 0.5, 1.0)
"""The frames of the ghosts, as parts of the range."""


class Ghosts(NamedTuple):
    """The frames around a drag, as they are without it; positions in world space."""

    bones: Floats
    """(k, 3) lines from heads to tails of the visible bones but control bones, on the frames of `SHOWN`."""
    trail: Floats
    """(F, 3) where the point in hand is."""
    shares: Floats
    """(F,) how much of the drag each frame takes."""
    keyed: Bools
    """(F,) which frames have keys."""

    @classmethod
    def of(cls, context: Context, drag: Held) -> Ghosts | None:
        """Foretell them; None if F-curves alone don't decide, or the drag reaches no other frame."""
        ob, goal, reach, scene = drag.ob, drag.goal, drag.reach, context.scene
        now = scene.frame_current_final
        frames = np.unique([now, *np.arange(np.ceil(now - reach.frames), now + reach.frames + 1e-3)])
        here = int(np.searchsorted(frames, now))
        chosen = np.unique(np.rint(now + reach.frames * np.array(SHOWN)))
        layer, rows = context.view_layer, channels.read(ob, np.arange(len(ob.pose.bones)))
        seen = {
            i: bone.bone.length
            for i, bone in enumerate(ob.pose.bones)
            if compat.is_visible(bone) and not Goal(ob, bone.name).is_made
        }
        # Few frames need more than what is in hand.
        trail = Sampler.of(ob, [], [goal], True).foretold(layer, frames, rows)
        shown = Sampler.of(ob, [], [], True, seen).foretold(layer, chosen, rows)
        if trail is None or shown is None or not reach.frames:
            return None
        point = inverse(trail.goals[here, 0]) @ np.append(matrix_array(drag.world)[:3, 3], 1.0)
        lengths = np.array(list(seen.values()))
        heads = times(shown.world[:, None], shown.poses)
        tails = heads[..., :3, 3] + heads[..., :3, 1] * lengths[:, None]
        keyed = np.concatenate([np.zeros(0), *(own.frames for own in reach.spreads(scene, {0: goal}).values())])
        return cls(
            np.stack([heads[..., :3, 3], tails], axis=-2).reshape(-1, 3),
            moved(trail.goals[:, 0], np.broadcast_to(point[:3], (len(frames), 3))),
            weights(frames, now, reach.falloff),
            np.isin(frames, keyed),
        )

    def moved(self, offset: Floats) -> Floats:
        """Return the trail (F, 3) once what is in hand has moved by an offset (3,)."""
        return np.asarray(self.trail + self.shares[:, None] * offset)
