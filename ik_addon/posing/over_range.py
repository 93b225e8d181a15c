"""A drag of a body that reaches over a range of frames: pins hold on each of its keyed frames."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import bpy
import numpy as np

from ..core.channels import Row
from ..core.skeleton import orthonormal
from ..core.translation.sentences import say
from ..live.reports import percent
from ..rig.read import fcurves
from ..solve import Body, Pin, Poser
from ..solve.maths.products import applied, times_back
from ..solve.problem import Floats, Ints
from ..targets.edit_range import EditRange
from ..targets.limb_frames import Sampler
from ..targets.movable import MovableGoal
from .read import Stand

HELD = 1e-6
"""A pin that is off by less than this on a frame, in sizes of the body and in radians, holds there."""
SLIPS = 1e-3
"""A pin that slips by more than this between keys, in sizes of the body, is reported."""


@dataclass(frozen=True)
class Moved:
    """What a drag moved."""

    stand: Stand
    body: Body
    bones: Ints
    """The bones of the body that moved."""
    pins: Sequence[Pin]
    size: float


class BodyRange:
    """The keys around a drag of a body."""

    def __init__(
        self, context: bpy.types.Context, ob: bpy.types.Object, moved: Moved, before: Row, reach: EditRange
    ) -> None:
        """Note keys and poses of the range before the drag is kept.

        Args:
            context: gives the scene and the view layer.
            ob: the armature object.
            moved: what moved.
            before: (m, 17) the channels of all pose bones before the drag.
            reach: how far the drag reaches.
        """
        self._context, self._ob, self._moved, self._reach = context, ob, moved, reach
        names = moved.stand.skeleton.names
        self._spreads = {
            bone: spread
            for bone in moved.bones.tolist()
            for spread in reach.spreads(context.scene, [MovableGoal(ob, names[moved.stand.order[bone]], turns=True)])
        }
        frames = [*(spread.frames for spread in self._spreads.values())]
        whole = [np.arange(np.ceil(own[0]), own[-1] + 1e-3) for own in frames]
        self._frames = np.unique(np.concatenate([*frames, *whole])) if frames else np.zeros(0)
        self._poses = self._foretold(before)

    def _foretold(self, stored: Row) -> Floats | None:
        """Return the pose matrices (F, n, 4, 4) of the range, from unanimated channels (m, 17) and keys.

        None if more than that decides.
        """
        scene, stand = self._context.scene, self._moved.stand
        if not len(self._frames) or not fcurves.decide_alone(scene):
            return None
        parents = np.asarray(self._moved.body.parents).tolist()
        needed: set[int] = set()
        for bone in (*self._moved.bones.tolist(), *(pin.bone for pin in self._moved.pins)):
            while bone >= 0 and bone not in needed:
                needed.add(bone)
                bone = parents[bone]
        own = stand.order[sorted(needed)]
        sampler = Sampler.of(self._ob, [], [], True, own.tolist())
        sampled = sampler.foretelling(self._context.view_layer, stored[sampler.bones])(self._frames.tolist())
        if sampled is None:
            return None
        poses = np.repeat(stand.pose[None], len(self._frames), axis=0)
        poses[:, sorted(needed)] = sampled.poses[:, sampler.rows(own)]
        return poses

    def spread(self, rows: Row, undo: ExitStack) -> list[str]:
        """Add what the drag changed to the keys of the range, and hold pins there.

        Args:
            rows: (m, 17) the channels of all pose bones after the drag, FK where live solving poses them.
            undo: takes the keys back.

        Returns:
            Sentences about what does not hold.

        Raises:
            KeysError: keys can't be written.
        """
        order = self._moved.stand.order
        for bone, spread in self._spreads.items():
            spread.add(undo, rows[order[bone]])
        pins = self._moved.pins
        if not (self._spreads and pins):
            return []
        wish = None if self._poses is None else self._foretold(rows)
        if self._poses is None or wish is None:
            return [say("More than keys moves '{rig}', so pins hold on this frame alone", rig=self._ob.name)]
        self._hold(rows, wish)
        posed = self._foretold(rows)
        assert posed is not None, "it was foretold before"
        slips = self._gaps(posed)[0].max(axis=0)
        worst = int(np.argmax(slips))
        if slips[worst] <= SLIPS:
            return []
        name = self._moved.stand.skeleton.names[order[pins[worst].bone]]
        slip = percent(slips[worst])
        return [say("'{bone}' slips by up to {distance} of the body's size between keys", bone=name, distance=slip)]

    def _gaps(self, poses: Floats) -> tuple[Floats, Floats]:
        """Return how far pins (F, p) are from where they were, in sizes of the body, and in radians."""
        places, turns = [], []
        for pin in self._moved.pins:
            one, other = (own[:, pin.bone] for own in (self._poses, poses))
            places.append(np.linalg.norm((one - other)[:, :3, 3], axis=1) * pin.location)
            both = times_back(orthonormal(one[:, :3, :3]), orthonormal(other[:, :3, :3]))
            turns.append(np.linalg.norm(both - np.eye(3), axis=(1, 2)) * pin.rotation)
        return np.array(places).T / self._moved.size, np.array(turns).T

    def _hold(self, rows: Row, wish: Floats) -> None:
        """Pose the body anew on each keyed frame (F,) where a pin left its place in a pose (F, n, 4, 4)."""
        moved, stand, poses = self._moved, self._moved.stand, self._poses
        assert poses is not None
        frames = np.unique(np.concatenate([spread.frames for spread in self._spreads.values()]))
        at = np.searchsorted(self._frames, frames)
        every = np.repeat(rows[None], len(frames), axis=0)
        for bone, spread in self._spreads.items():
            every[:, stand.order[bone]] = spread.keyed(frames)
        places, turns = self._gaps(wish)
        bends = moved.body.bends
        for f, k in enumerate(at.tolist()):
            if max(places[k].max(), turns[k].max()) < HELD:
                continue
            axes, begin = orthonormal(wish[k, :, :3, :3]), orthonormal(poses[k, :, :3, :3])
            turned = None if bends is None else applied(times_back(axes, moved.body.frames), bends)
            body = replace(moved.body, heads=wish[k, :, :3, 3], frames=axes, bends=turned)
            poser = Poser(body, moved.pins, [])
            held = poser.hold(poses[k, :, :3, 3], begin)
            here = replace(stand, pose=wish[k], body=body)
            every[f] = here.rows(self._ob, every[f], here.posed(held), poser.tree.bones, body.root)
        for bone, spread in self._spreads.items():
            spread.put(frames, every[:, stand.order[bone]])
