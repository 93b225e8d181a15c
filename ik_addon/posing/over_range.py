"""A drag of a body that reaches over a range of frames: pins hold on each of its keyed frames."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property

import bpy
import numpy as np

from ..core.channels import Row, slerp
from ..core.falloff import changed
from ..core.goals import Goal
from ..core.report import percent
from ..core.skeleton import inverse, orthonormal
from ..core.transforms import basis
from ..core.translation.sentences import say
from ..rig.read import fcurves
from ..solve.maths.products import applied, lengths_of, times, times_back
from ..solve.problem import Floats
from ..targets.edit_range import EditRange
from ..targets.limb_frames import Sampled, Sampler
from ..targets.movable import target_of
from .holding import HELD, Holding, Moved
from .pole_range import PoleRange

SLIPS = 1e-3
"""A pin that slips by more than this between keys, in sizes of the body, is reported."""
SHOWS = np.sin(np.radians(1.2))
"""The sine of the angle by which FK has to bend a limb to decide its plane in live solving, see `solve.free.axes`:
straighter limbs stay as straight as they are."""


class BodyRange:
    """The keys around a drag of a body."""

    def __init__(
        self,
        context: bpy.types.Context,
        ob: bpy.types.Object,
        moved: Moved,
        before: Row,
        tips: Sequence[bpy.types.PoseBone],
        reach: EditRange,
    ) -> None:
        """Note keys and poses of the range before the drag is kept.

        Args:
            context: gives the scene and the view layer.
            ob: the armature object.
            moved: what moved.
            before: (m, 17) the channels of all pose bones before the drag.
            tips: the tip bones of the live chains that follow.
            reach: how far the drag reaches.
        """
        self._context, self._ob, self._moved = context, ob, moved
        self._targets = reach.spreads(context.scene, filter(None, map(target_of, tips)))
        self._poles = PoleRange(context, ob, tips, reach)
        names = moved.stand.skeleton.names
        self._spreads = {
            bone: spread
            for bone in moved.bones.tolist()
            for spread in reach.spreads(context.scene, [Goal(ob, names[moved.stand.order[bone]], turns=True)])
        }
        self._keyed = np.unique(np.concatenate([self._poles.frames, *(own.frames for own in self._spreads.values())]))
        """(K,) the frames on which the body is posed."""
        whole = np.arange(np.ceil(self._keyed[0]), self._keyed[-1] + 1e-3) if len(self._keyed) else self._keyed
        self._frames = np.union1d(self._keyed, whole)
        self._before, self._limbs = before, self._sampled(before)
        self._poses = None if self._limbs is None else self._posed_in(self._limbs)

    def _sampled(self, stored: Row) -> Sampled | None:
        """Return the bones and poles on the frames of the range, from unanimated channels (m, 17) and keys.

        None if more than that decides.
        """
        if not len(self._frames) or not fcurves.decide_alone(self._context.scene):
            return None
        sampler = self._sampler
        return sampler.foretelling(self._context.view_layer, stored[sampler.bones])(self._frames.tolist())

    @cached_property
    def _sampler(self) -> Sampler:
        own = self._moved.stand.order[self._needed]
        return Sampler.of(self._ob, [], self._poles.goals, True, own.tolist())

    def _posed_in(self, sampled: Sampled) -> Floats:
        """Return the pose matrices (F, n, 4, 4) of samples."""
        stand = self._moved.stand
        own = stand.order[self._needed]
        poses = np.repeat(stand.pose[None], len(self._frames), axis=0)
        poses[:, self._needed] = sampled.poses[:, self._sampler.rows(own.tolist())]
        return poses

    @cached_property
    def _needed(self) -> list[int]:
        """The bones that moved, are pinned or belong to limbs with poles, and those above them, parents first."""
        found: set[int] = set()
        limbs = np.flatnonzero(np.isin(self._moved.stand.order, self._poles.bones)).tolist()
        for bone in (*self._moved.bones.tolist(), *limbs, *(pin.bone for pin in self._moved.pins)):
            while bone >= 0 and bone not in found:
                found.add(bone)
                bone = int(self._moved.body.parents[bone])
        return sorted(found)

    def spread(self, rows: Row, undo: ExitStack) -> list[str]:
        """Add what the drag changed to the keys of the range, and hold pins there.

        Args:
            rows: (m, 17) the channels of all pose bones after the drag.
            undo: takes the keys back.

        Returns:
            Sentences about what does not hold.

        Raises:
            KeysError: keys can't be written.
        """
        moved, poses = self._moved, self._poses
        order, pins = moved.stand.order, moved.pins
        for spread in self._targets:
            if spread.is_changed:
                spread.add(undo)
        for bone, spread in self._spreads.items():
            if poses is None:
                spread.add(undo, rows[order[bone]])
            else:
                spread.begin(undo, rows[order[bone]])
        if not self._spreads:
            return []
        if poses is None:
            return [say("More than keys moves '{rig}', so pins hold on this frame alone", rig=self._ob.name)]
        held, posed, wish = self._held(rows, self._keyed, poses[np.searchsorted(self._frames, self._keyed)])
        for bone, spread in self._spreads.items():
            spread.put(self._keyed, held[:, order[bone]])
        poles = self._poles.sampled(rows)
        if poles is not None and self._limbs is not None:
            every = np.empty((3, len(self._poles.frames), *posed.shape[1:]))
            own, now = (np.searchsorted(frames, self._poles.frames) for frames in (self._frames, self._keyed))
            every[:, :, order] = poses[own], wish[now], posed[now]
            self._poles.spread(self._limbs.frames(own.tolist()), poles, every, undo)
        is_sparse = len(self._keyed) < len(self._frames)
        sampled = self._sampled(rows) if is_sparse else None
        after = posed if sampled is None else self._posed_in(sampled)
        slips = lengths_of(moved.gaps(after, poses)[:, :, 0]).max(axis=0, initial=0.0)
        slips *= [pin.strength == np.inf for pin in pins]
        if slips.max(initial=0.0) <= SLIPS:
            return []
        worst = int(np.argmax(slips))
        name, slip = moved.stand.skeleton.names[order[pins[worst].bone]], percent(slips[worst])
        return [say("'{bone}' slips by up to {distance} of the body's size between keys", bone=name, distance=slip)]

    def _held(self, rows: Row, frames: Floats, poses: Floats) -> tuple[Row, Floats, Floats]:
        """Return channels (F, m, 17) and poses (F, n, 4, 4) with a share of the drag, and pins where they were.

        Also returns the poses before pins were brought there.

        Args:
            rows: (m, 17) the channels after the drag.
            frames: (F,) the frames.
            poses: (F, n, 4, 4) the poses before the drag.
        """
        moved, stand, ob = self._moved, self._moved.stand, self._ob
        found = np.repeat(self._before[None], len(frames), axis=0)
        for bone, spread in self._spreads.items():
            columns = list(spread.curves)
            found[:, stand.order[bone], columns] = spread.keyed(frames)[:, columns]
        fk = found
        found = stand.rows(ob, found, poses, np.array(sorted(moved.solved), dtype=np.int64), None)
        begin, own, body = found.copy(), stand.order[moved.bones], moved.body
        now = int(np.argmin(np.abs(frames - self._context.scene.frame_current_final)))
        shares = next(iter(self._spreads.values())).shares(frames)
        modes = [ob.pose.bones[i].rotation_mode for i in own.tolist()]
        taken, flat = np.tile(shares, (len(own), 1)), np.zeros(len(own), dtype=bool)
        for _ in range(2):
            for i, mode, some in zip(own.tolist(), modes, taken, strict=True):
                found[:, i] = changed(begin[:, i], begin[now, None, i], rows[None, i], some, mode)
            wish = self._posed(poses, basis(found[:, own], modes, flat))
            upper, lower = (wish[:, bones, :3, 1] for bones in (body.parents[moved.bones], moved.bones))
            bent = lengths_of(np.cross(upper, lower))  # (b, F)
            straight = np.isin(own, self._poles.knees)[:, None] & (bent < SHOWS) & (np.arange(len(frames)) != now)
            if not taken[straight].any():
                break
            taken[straight] = 0.0
        kept, posed, bones = self._kept(poses, wish[now], shares, now), wish.copy(), None
        is_hard = np.array([pin.strength == np.inf for pin in moved.pins], dtype=bool)
        left = lengths_of(moved.gaps(wish, kept)).max(axis=(1, 2), initial=0.0) >= HELD
        left[now] = False
        solved = np.flatnonzero(left)
        # Where a hand can't reach its place, it lets go rather than lift the feet.
        for pins in (moved.pins, [pin for pin in moved.pins if pin.strength == np.inf]):
            if left.any():
                holding = Holding(replace(moved, pins=pins), wish[left], self._needed)
                posed[left] = holding.brought(kept[left])
                bones = holding.joints if bones is None else bones
                left &= lengths_of(moved.gaps(posed, kept))[:, is_hard].max(axis=(1, 2), initial=0.0) >= 10.0 * HELD
        if bones is not None:
            found[solved] = stand.rows(ob, found[solved], posed[solved], bones, body.root)
        for bone, i, mode, some in zip(moved.bones.tolist(), own.tolist(), modes, taken, strict=True):
            if bone in moved.solved:  # what pins ask of a straight limb would turn it; live solving brings it there
                found[:, i] = changed(fk[:, i], fk[now, None, i], rows[None, i], some, mode)
        return found, posed, wish

    def _kept(self, poses: Floats, dragged: Floats, shares: Floats, now: int) -> Floats:
        """Return poses (F, n, 4, 4) with pinned bones where they belong: most stay, and hands may have let go.

        Args:
            poses: (F, n, 4, 4) the poses before the drag.
            dragged: (n, 4, 4) the pose that the drag led to.
            shares: (F,) how much of the drag frames take.
            now: the frame of the drag.
        """
        bones, found = [pin.bone for pin in self._moved.pins], poses.copy()
        own, was, at = poses[:, bones], self._moved.points(poses), self._moved.points(dragged)
        turns = times_back(*(orthonormal(each[..., :3, :3]) for each in (dragged[bones], own[now])))
        linear = times(slerp(np.eye(3)[None, None], turns[None], shares[:, None]), own[..., :3, :3])
        way = applied(times(linear, inverse(own)[..., :3, :3]), was - own[..., :3, 3])
        found[:, bones, :3, :3] = linear
        found[:, bones, :3, 3:] = (was + shares[:, None, None] * (at - was[now]) - way)[..., None]
        return found

    def _posed(self, poses: Floats, own: Floats) -> Floats:
        """Return poses (F, n, 4, 4) with other basis matrices (F, b, 4, 4) of the bones that moved."""
        stand, found = self._moved.stand, poses.copy()
        places = {bone: i for i, bone in enumerate(self._moved.bones.tolist())}
        for bone in self._needed:
            above = int(self._moved.body.parents[bone])
            parent = None if above < 0 else found[:, above]
            if bone in places:
                found[:, bone] = stand.skeleton.to_pose(self._ob, int(stand.order[bone]), own[:, places[bone]], parent)
            elif parent is not None:
                found[:, bone] = times(times(parent, inverse(poses[:, above])), poses[:, bone])
        return found
