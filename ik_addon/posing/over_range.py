"""A drag of a body that reaches over a range of frames: pins hold on each of its keyed frames, and poles follow."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from bpy.types import Context, Object, PoseBone

from ..core.channels import Row, slerp
from ..core.falloff import changed
from ..core.goals import Goal
from ..core.key_curve import SAME_FRAME
from ..core.report import percent
from ..core.skeleton import inverse, moved, unscaled
from ..core.transforms import basis
from ..core.translation.sentences import say
from ..solve import Body, Pin
from ..solve.body.holding import Holding, gaps_of
from ..solve.body.posing import HELD
from ..solve.maths.products import lengths_of, times, times_back
from ..solve.maths.rotations import dot, quaternions, unit
from ..solve.problem import Floats, Ints
from ..targets.edit_range import EditRange
from ..targets.places import turned_about
from ..targets.snap import Poles, Sampler, Snap, rows_of
from .read import Stand

SLIPS = 1e-3
"""A pin that slips by more than this between keys, in sizes of the body, is reported."""

SHOWS = np.sin(np.radians(1.2))
"""The sine of the angle by which FK has to bend a limb to decide its plane in live solving, see `solve.free.axes`."""


class Dragged(NamedTuple):
    """What a drag moved."""

    ob: Object
    before: Row
    """(m, 17) the channels of all pose bones before the drag."""
    stand: Stand
    body: Body
    bones: Ints
    """The bones of the body that moved."""
    pins: Sequence[Pin]
    size: float
    solved: Ints
    """The bones that live chains pose."""

    def placed(self, poses: Floats) -> Floats:
        """Return the places of pins (..., p, 4, 4), see `Holding`, in poses (..., n, 4, 4)."""
        bones, start = [pin.bone for pin in self.pins], self.stand.pose
        at = np.array([start[pin.bone, :3, 3] if pin.point is None else pin.point for pin in self.pins]).reshape(-1, 3)
        there = poses[..., bones, :, :]
        found = unscaled(there)
        found[..., :3, 3] = moved(there, moved(inverse(start[bones]), at))
        return found


class BodyRange:
    """The keys around a drag of a body, on K frames."""

    def __init__(self, context: Context, dragged: Dragged, tips: Sequence[PoseBone], reach: EditRange) -> None:
        """Note keys and poses of the range before the drag is kept.

        Args:
            context: gives the scene and the view layer.
            dragged: what it moved.
            tips: the tip bones of the live chains that follow.
            reach: how far the drag reaches.
        """
        self._view_layer, self._dragged, ob = context.view_layer, dragged, dragged.ob
        self._snap = snap = Snap.of(context.view_layer, ob, tips, True, Poles.USED)
        stand, order = dragged.stand, dragged.stand.order
        goals = reach.spreads(context.scene, dict(enumerate(snap.goals)))
        bent = {chain.pole: chain for chain in snap.chains}
        self._targets = [spread for goal, spread in goals.items() if goal not in bent]
        self._poles = {goal: (bent[goal], spread) for goal, spread in goals.items() if goal in bent}
        moving = {bone: Goal(ob, stand.skeleton.names[order[bone]], turns=True) for bone in dragged.bones.tolist()}
        self._spreads = reach.spreads(context.scene, moving)
        written = *self._spreads.values(), *(spread for _, spread in self._poles.values())
        self._keyed = np.unique(np.concatenate([np.zeros(0), *(spread.frames for spread in written)]))
        """(K,) the frames on which keys get other values, and the body is posed."""
        self._here = int(np.searchsorted(self._keyed, context.scene.frame_current_final - SAME_FRAME))
        """The index of the current frame."""
        whole = np.arange(np.ceil(self._keyed[0]), self._keyed[-1] + 1e-3) if written else self._keyed
        self._frames = np.union1d(self._keyed, whole)
        """(F,) these and all whole frames between them."""
        self._is_hard = np.isinf([pin.strength for pin in dragged.pins])
        """(p,) which of the pins never give way."""
        some = {*snap.sampler.bones.tolist(), *order[[*dragged.bones, *(pin.bone for pin in dragged.pins)]].tolist()}
        self._sampler = Sampler.of(ob, [], [], True, some.union(*map(stand.skeleton.ancestors, some)))
        self._needed = np.flatnonzero(np.isin(order, self._sampler.bones))
        """The bones that moved, are pinned or belong to limbs, and those above them, parents first."""
        self._before = self._foretold(dragged.before) if self._spreads else None
        """(F, n, 4, 4) the poses before the drag; None if more than keys decides."""

    def _foretold(self, rows: Row) -> Floats | None:
        """Return the poses (F, n, 4, 4) that keys give, and the unanimated channels (m, 17) of all bones."""
        stand, sampled = self._dragged.stand, self._sampler.foretold(self._view_layer, self._frames, rows)
        if sampled is None:
            return None
        poses = np.repeat(stand.pose[None], len(self._frames), axis=0)
        poses[:, self._needed] = sampled.poses[:, self._sampler.rows(stand.order[self._needed].tolist())]
        return poses

    def spread(self, rows: Row, undo: ExitStack) -> list[str]:
        """Add what the drag changed to the keys of the range, and hold pins there.

        Args:
            rows: (m, 17) the channels of all pose bones after the drag.
            undo: takes the keys back.

        Returns:
            Sentences about what does not hold.

        Raises:
            UserError: keys can't be written.
        """
        dragged, stand = self._dragged, self._dragged.stand
        for spread in self._targets:
            spread.put(undo)
        if self._before is None:
            for bone, spread in self._spreads.items():
                spread.put(undo, rows[stand.order[bone]])
            alone = say("More than keys moves '{rig}', so pins hold on this frame alone", rig=dragged.ob.name)
            return [alone] if self._spreads else []
        held, posed = self._held(rows, self._before[np.searchsorted(self._frames, self._keyed)])
        for bone, spread in self._spreads.items():
            own = stand.order[bone]
            spread.put(undo, rows[own], held[np.searchsorted(self._keyed, spread.frames), own])
        if self._poles:
            self._bend(rows, posed, undo)
        after = posed if len(self._keyed) == len(self._frames) else self._foretold(rows)
        assert after is not None, "what decides is the same as before"
        goals = dragged.placed(self._before)
        slips = lengths_of(self._gaps(after, goals)[:, :, 0]).max(axis=0, initial=0.0) * self._is_hard
        if slips.max(initial=0.0) <= SLIPS:
            return []
        bone = stand.skeleton.names[stand.order[dragged.pins[int(np.argmax(slips))].bone]]
        worst = percent(slips.max())
        return [say("'{bone}' slips by up to {distance} of the body's size between keys", bone=bone, distance=worst)]

    def _gaps(self, poses: Floats, goals: Floats) -> Floats:
        """Return what pins lack (F, p, 2, 3) in poses (F, n, 4, 4) to be where they should (F, p, 4, 4)."""
        return gaps_of(self._dragged.pins, self._dragged.placed(poses), goals, self._dragged.size)

    def _held(self, rows: Row, poses: Floats) -> tuple[Row, Floats]:
        """Return channels (K, m, 17) and poses (K, n, 4, 4) with a share of the drag, and pins where they were.

        Args:
            rows: (m, 17) the channels after the drag.
            poses: (K, n, 4, 4) the poses before the drag.
        """
        dragged, stand, ob, frames, now = self._dragged, self._dragged.stand, self._dragged.ob, self._keyed, self._here
        own = stand.order[dragged.bones]
        modes = [ob.pose.bones[i].rotation_mode for i in own.tolist()]
        shares = next(iter(self._spreads.values())).shares(frames)

        def shared(start: Row) -> Row:
            pairs = zip(own.tolist(), modes, strict=True)
            each = (changed(start[:, i], start[now, None, i], rows[None, i], shares, mode) for i, mode in pairs)
            return np.stack(list(each), axis=1)

        fk = np.repeat(dragged.before[None], len(frames), axis=0)
        for bone, spread in self._spreads.items():
            columns = list(spread.curves)
            fk[:, stand.order[bone], columns] = spread.keyed(frames)[:, columns]
        found = stand.rows(ob, fk, poses, dragged.solved, None)
        found[:, own] = shared(found)
        wish = self._posed(poses, basis(found[:, own], modes, np.zeros(len(own), dtype=bool)))
        kept, posed = self._kept(dragged.placed(poses), dragged.placed(wish[now]), shares), wish.copy()
        left = lengths_of(self._gaps(wish, kept)).max(axis=(1, 2), initial=0.0) >= HELD
        solved = left.copy()
        # Where a hand can't reach its place, it lets go rather than lift the feet.
        for chosen in (np.arange(len(dragged.pins)), np.flatnonzero(self._is_hard)):
            if left.any():
                held, start = [dragged.pins[i] for i in chosen.tolist()], unscaled(wish[left])
                pinned = dragged.placed(wish[left])[:, chosen]
                holding = Holding(dragged.body, held, dragged.size, self._needed.tolist(), start, pinned)
                posed[left] = times(times(holding.brought(kept[left][:, chosen]), inverse(start)), wish[left])
                gaps = self._gaps(posed, kept)[:, self._is_hard]
                left &= lengths_of(gaps).max(axis=(1, 2), initial=0.0) >= 10.0 * HELD
        found[solved] = stand.rows(ob, found[solved], posed[solved], dragged.bones, dragged.body.root)
        # FK beneath live limbs: what pins ask of a straight limb would turn it, and what FK can't show stays straight.
        live = np.isin(dragged.bones, dragged.solved)
        knees = [knee for chain, _ in self._poles.values() for knee in chain.bones[1:2]]
        upper, lower = (wish[:, bones, :3, 1] for bones in (dragged.body.parents[dragged.bones], dragged.bones))
        straight = np.isin(own, knees) & (lengths_of(np.cross(upper, lower)).T < SHOWS)
        straight[now] = False
        found[:, own[live]] = np.where(straight[..., None], fk[:, own], shared(fk))[:, live]
        return found, posed

    def _kept(self, was: Floats, led: Floats, shares: Floats) -> Floats:
        """Return the places (K, p, 4, 4) where pins belong: most stay, and hands may have let go.

        Args:
            was: (K, p, 4, 4) where they were before the drag.
            led: (p, 4, 4) where the drag led them.
            shares: (K,) how much of the drag frames take.
        """
        found, here = was.copy(), was[self._here]
        turns = times_back(led[..., :3, :3], here[..., :3, :3])
        found[..., :3, :3] = times(slerp(np.eye(3)[None, None], turns[None], shares[:, None]), was[..., :3, :3])
        found[..., 3] += shares[:, None, None] * (led - here)[..., 3]
        return found

    def _posed(self, poses: Floats, own: Floats) -> Floats:
        """Return poses (K, n, 4, 4) with other basis matrices (K, b, 4, 4) of the bones that moved."""
        stand, ob, found = self._dragged.stand, self._dragged.ob, poses.copy()
        places = {bone: i for i, bone in enumerate(self._dragged.bones.tolist())}
        for bone in self._needed.tolist():
            above = int(self._dragged.body.parents[bone])
            parent = None if above < 0 else found[:, above]
            if bone in places:
                found[:, bone] = stand.skeleton.to_pose(ob, int(stand.order[bone]), own[:, places[bone]], parent)
            elif parent is not None:
                found[:, bone] = times(times(parent, inverse(poses[:, above])), poses[:, bone])
        return found

    def _bend(self, rows: Row, poses: Floats, undo: ExitStack) -> None:
        """Key poles so that limbs turn about their lines as in poses (K, n, 4, 4).

        Args:
            rows: (m, 17) the channels of all pose bones after the drag, whose keys have their shares.
            poses: the poses in which pins hold.
            undo: takes the keys back.
        """
        snap = self._snap
        now = snap.sampler.foretold(self._view_layer, self._keyed, rows)
        if now is None:
            return
        held = replace(now, poses=poses[:, np.argsort(self._dragged.stand.order)[snap.sampler.bones]])
        wanted = now.goals[:, :, :3, 3].copy()
        for pole, (chain, _) in self._poles.items():
            limbs = snap.knee(now, chain)
            joints = limbs.joints[:, [0, 1, -1]]
            turned = times_back(snap.knee(held, chain).frames[:, 0], limbs.frames[:, 0])
            turned = quaternions(np.moveaxis(turned, 0, -1))
            turn = 2.0 * np.arctan2(dot(turned[1:], unit((joints[:, 2] - joints[:, 0]).T)), turned[0])
            place = moved(inverse(now.world), now.goals[:, pole, :3, 3])
            wanted[:, pole] = moved(now.world, turned_about(joints, place, turn))
        found = rows_of(snap.goals, now, wanted, {})
        for pole, (_, spread) in self._poles.items():
            own = np.searchsorted(self._keyed, spread.frames)
            change = found[self._here, None, pole], spread.goal.row()[None]
            spread.put(undo, None, changed(found[own, pole], *change, spread.shares(spread.frames), None))
