"""A bone of an armature being dragged: the body follows, pins hold, and everything can be undone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import ExitStack
from dataclasses import replace
from enum import Enum
from typing import NamedTuple

import numpy as np
from bpy.types import Context, Object, PoseBone
from mathutils import Matrix, Quaternion, Vector

from ..anatomy.body import Region, ends_of, find_members, root_of
from ..anatomy.chain_ends import end_below
from ..anatomy.figure import Figure
from ..anatomy.limbs import limb_of, part_of
from ..anatomy.parts import EXTREMITIES
from ..chains.new_chain import check_world
from ..core import channels
from ..core.channels import FIELDS, Row
from ..core.constraints import steered_bones
from ..core.goals import Goal
from ..core.report import percent
from ..core.settings import chain_of, object_of
from ..core.skeleton import ACROSS, orthonormal
from ..core.translation.sentences import UserError, say
from ..live import registry
from ..rig.plan.chain import end_of, posed_bones, reach_of, tips, turning_end
from ..solve import Grab, Pin, PosedBody, Poser
from ..solve.body.tree import movable_bones
from ..solve.maths.products import times, times_back
from ..solve.problem import Floats
from ..targets.autokey import auto_key, left_out, reverting
from ..targets.edit_range import HERE, EditRange
from ..targets.movable import parents_of, target_of
from ..targets.snap import Poles, goals_to_snap, in_fk, snap_here
from .over_range import BodyRange, Dragged
from .pins import FLAGS, image_of, stored_pins
from .read import Stand

MISSED = 1e-3
"""A dragged joint farther from its place than this, in sizes of the body, counts as not having reached it."""
NAMED = 3
"""Maximum number of joints at a limit that a message names."""

HOLDING = 25.0
"""The largest force with which a target holds a hand: enough to bend an arm, too little to hold back the body."""


class Free(Enum):
    """What holds a figure without pins."""

    FEET = "FEET"
    """Its feet stay in place."""
    ROOT = "ROOT"
    """Its root stays in place, and the joints from there to the dragged joint turn."""
    CHAIN = "CHAIN"
    """Only the connected bones up from the dragged joint turn, as with Blender's Auto IK."""


class Ask(NamedTuple):
    """The bone to drag, and what holds the body."""

    bone: str
    use_tail: bool = False
    """Whether to drag the tail of the bone instead of its head."""
    pins: dict[str, frozenset[str]] | None = None
    """Pins by the name of their bone, as `FLAGS`; None: those stored on the bones."""
    without_pins: Free = Free.FEET
    length: int = 0
    """How many bones turn, counted up from the dragged joint; 0: the whole body follows."""
    reach: EditRange = HERE
    """How many frames around the current one the drag reaches."""


def _steered(bone: str) -> UserError:
    return UserError("A constraint or driver moves '{bone}'. Mute it, or drag what the bone follows", bone=bone)


class Extent(NamedTuple):
    """The part of an armature that may move."""

    root: str
    """The bone that moves freely; empty: none."""
    turning: frozenset[str] | None
    """The bones that may turn; None: all."""
    length: int
    """How many bones turn, counted up from the dragged joint; 0: the whole body follows."""
    longest: int
    """The largest such number: up to the root, and including it."""


class _Held(NamedTuple):
    """A joint that is dragged, or its mirror image."""

    bone: int
    start: Floats
    """(3,) where it is at the start, in armature space."""
    point: Floats | None
    """(3,) the same; None: it is the head of the bone."""
    limb: int | None
    """The first bone of the limb that it is part of; None: it is part of none."""
    rests: Floats | None
    """(2, 3, 3) rest orientations of the bone that the user drags and of this one, its image; None: it is that bone."""
    is_relative: bool
    """Whether the image's motion mirrors that of the other; if not, its pose does."""

    def place(self, target: Floats, start: Floats) -> Floats:
        """Return where (3,) it goes with a target for the joint that the user drags, which was at `start`."""
        if self.rests is None:
            return target
        return np.asarray(self.start + ACROSS * (target - start) if self.is_relative else ACROSS * target)

    def orientation(self, target: Floats, start: Floats, own: Floats) -> Floats:
        """Return its orientation (3, 3) likewise, given its `own` at the start."""
        if self.rests is None:
            return target
        start, own = (start, own) if self.is_relative else (self.rests[0], self.rests[1])
        return times(times_back(target, start) * ACROSS * ACROSS[:, None], own)


class BodyDrag:
    """A bone being dragged."""

    turns_in_place = True

    def __init__(self, context: Context, ob: Object, ask: Ask) -> None:
        """Take hold of the bone.

        Raises:
            UserError: the bone can't be dragged.
        """
        context.view_layer.update()
        if ob.pose.bones.get(ask.bone) is None:
            raise UserError("'{rig}' has no bone '{bone}'. Choose one of its bones", rig=ob.name, bone=ask.bone)
        check_world(ob, ob.matrix_world)
        steered = steered_bones(ob)
        if ask.bone in steered:
            raise _steered(ask.bone)
        self.ob, self.bone, self._ask = ob, ask.bone, ask
        self.reach = ask.reach
        self._figure = Figure.of(ob, steered)
        image = image_of(ob, ask.bone)
        self._names = [ask.bone, *([image] if image and image not in steered else [])]
        self._pinned = dict(stored_pins(ob) if ask.pins is None else ask.pins)
        if not self._pinned and ask.without_pins is Free.FEET:
            self._pinned = {self._figure.names[foot]: FLAGS for foot in ends_of(self._figure, Region.LEG)}
        self.extent = self._extent(ask.length)
        above = [bone.name for bone in ob.pose.bones[ask.bone].parent_recursive]
        if self.extent.root in above and not ask.use_tail and steered.keys() >= {*above}:
            raise _steered(above[0])
        self.stand = Stand.of(context.evaluated_depsgraph_get(), ob, self.extent.root)
        self._steered = {self.stand.index[name] for name in steered}
        self._held = [self._hold(name) for name in self._names]
        self._turning: Poser | None = None
        """Like `_poser`, for when the dragged bone gets an orientation too; made when first needed."""
        self._placed: tuple[tuple[float, ...], Floats] | None = None
        """The last target without an orientation, and the frames of the body posed for it."""
        self._make_ready()
        self.size, self.done = self._poser.size, say("Posed the body by '{bone}'", bone=self.bone)
        """Size of the body, in the armature's unit, and the message that is shown after the drag."""
        self._before: Row = channels.read(ob, np.arange(len(ob.pose.bones)))
        self._rows = self._before
        self._asked: tuple[Vector, Quaternion | None] = (Vector(), None)
        self.start = ob.matrix_world @ Vector(self._held[0].start.tolist())
        """Where the dragged joint was at the start, in world space."""
        self.goal = Goal(ob, self.bone)
        self.world = Matrix.LocRotScale(self.start, (ob.matrix_world @ self.goal.holder.matrix).to_quaternion(), None)
        self._posed: PosedBody | None = None
        """The result of the last move."""
        self.moved: list[int] = []
        """Indices of pose bones that turned or moved."""

    def _why_short(self, posed: PosedBody) -> str:
        """Say by how much the dragged joint fell short of its place, and what held it back.

        That is parts of the body, bones that belong to none, and joints at a limit.
        """
        parts, names = {}, list(self.stand.index)
        for member in find_members(self._figure):
            end = end_below(self._figure, list(member.row))
            for bone in (*member.row, *(() if end is None else (end,))):
                parts[self._figure.names[bone]] = say(member.words)
        holding = dict.fromkeys(parts.get(names[bone], names[bone]) for bone in posed.held_by)
        limited = [bone for bone, index in self.stand.index.items() if posed.at_limit[index]]
        short = percent(posed.error / self.size)
        texts = [say("'{bone}' stopped short by {short} of the body's size", bone=self.bone, short=short)]
        if holding:
            texts.append(say("Held by: {parts}", parts=", ".join(holding)))
        if limited:
            texts.append(say("At a limit: {joints}", joints=", ".join(limited[:NAMED])))
        return ". ".join(texts if len(texts) > 1 else [*texts, say("It is out of reach")])

    def move(self, context: Context, offset: Vector, turn: Quaternion | None = None) -> PosedBody:
        """Bring the dragged joint to an offset from its start, or as near as possible, and pose the bones.

        Args:
            context: a context with the view layer.
            offset: the offset, in world space.
            turn: rotation in world space, applied to the orientation that place alone gives; None: place alone.

        Raises:
            UserError: the offset is not finite.
        """
        self._asked = offset.copy(), None if turn is None else turn.copy()
        to_world = self.ob.matrix_world
        own = np.array(to_world.inverted() @ (self.start + offset))
        if not np.isfinite(own).all():
            raise UserError("The place for '{bone}' is not a finite number", bone=self.bone)
        start = self._held[0].start
        targets = [held.place(own, start) for held in self._held]
        poser, rotations = self._poser, []
        if turn is not None:
            if self._turning is None:
                dragged = {held.bone for held in self._held}
                others = [pin for pin in self._pins if pin.bone not in dragged]
                self._turning = Poser(self._body, others, self._grabs(np.eye(3)))
            poser = self._turning
            space = to_world.to_quaternion()
            rotations = self._rotations(np.array((space.inverted() @ turn @ space).to_matrix()), targets)
        posed = self._posed = poser.pose(targets, rotations)
        self._write(context, posed, poser)
        return posed

    def extend(self, context: Context, by: int) -> None:
        """Let `by` more bones follow, up to the whole body, or fewer; the dragged joint stays where it is."""
        length = min(max(1, (self.extent.length or self.extent.longest) + by), self.extent.longest)
        self.extent, before = self._extent(length), self.extent
        if self.extent == before:
            return
        self._make_ready()
        offset, turn = self._asked
        self.move(context, offset, turn)

    def settle(self, context: Context) -> None:
        """Do nothing: no work is left when the mouse rests."""

    def finish(self, context: Context) -> list[str]:
        """End the drag: chains keep the pose, and keys are set if auto keying is on.

        Returns:
            Messages about what was not reached, and changes that will not stay.

        Raises:
            UserError: the keys in the range can't be written.
        """
        remarks = []
        if self._posed is not None and self._posed.error > MISSED * self.size:
            remarks.append(self._why_short(self._posed))
        if self._ask.without_pins is Free.FEET and not (self._pinned or _solved_chains(self.ob) or self._ask.length):
            remarks.append(say("No feet were found, so nothing holds the body. Pin the bones that should stay"))
        tips_ = [tip for tip in _solved_chains(self.ob) if not _bones_of([tip]).isdisjoint(self.moved)]
        goals = list(dict.fromkeys(goal for tip in tips_ for goal in goals_to_snap(tip, Poles.USED)))
        body = BodyRange(context, self._what_moved(), tips_, self.reach) if self.reach.frames else None
        places = [(goal, goal.row()) for goal in goals]
        posed = _bones_of(tips_)
        if tips_:
            own = np.array(sorted(posed.union(self.moved)), dtype=np.int64)
            with in_fk(context, self.ob, tips_):
                channels.write(self.ob, own, self._rows[own])
                context.view_layer.update()
            remarks += snap_here(context, tips_, poles=Poles.USED, keyed=False)
        if body is not None:
            with ExitStack() as undo:
                for place in places:
                    undo.callback(Goal.set_row, *place)
                remarks += body.spread(self._rows, undo)
                undo.pop_all()
        different = channels.read(self.ob, np.arange(len(self._before))) != self._before
        fields = {i: [field for field, columns in FIELDS.items() if different[i][columns].any()] for i in self.moved}
        moved = {i: (self.ob.pose.bones[i], changed) for i, changed in fields.items()}
        controls = [(goal.holder, goal.fields) for goal in goals]
        for holder, changed in [*controls, *moved.values()]:
            auto_key(context, holder, changed)
        remarks += left_out(context, [goal.holder for goal in goals])
        # The bones of chains revert together with the targets, which are what a user keys.
        return remarks + reverting(context, [*controls, *(own for i, own in moved.items() if i not in posed)])

    def cancel(self, context: Context) -> None:
        """Restore everything exactly."""
        with registry.paused(self.ob):
            channels.write(self.ob, np.arange(len(self._before)), self._before)
            context.view_layer.update()

    def _what_moved(self) -> Dragged:
        """Return what the drag moved, and the pins, the ends of all live chains among them."""
        movable = movable_bones(self._body)
        order, pins = self.stand.order, [pin for pin in self._all_pins(()) if pin.bone in movable]
        posed = list(_bones_of(_solved_chains(self.ob)))
        moved, solved = (np.flatnonzero(np.isin(order, own)) for own in (self.moved, posed))
        return Dragged(self.ob, self._before, self.stand, self._body, moved, pins, self.size, solved)

    def _extent(self, length: int) -> Extent:
        """Return what may move if at most `length` bones turn, counted up; 0: as `without_pins` says."""
        figure, bones, free = self._figure, self.ob.data.bones, None if self._pinned else self._ask.without_pins
        grabbed = [figure.names.index(name) for name in self._names]
        root = root_of(figure, grabbed[0])
        fixed = set(figure.up(root))
        # Turning a bone does not move its own head, unless the bone moves freely.
        rows = [list(figure.up(bone))[0 if self._ask.use_tail or bone in fixed else 1 :] for bone in grabbed]
        longest = sum(bone not in fixed for bone in rows[0]) + 1
        if length == 0 and free is Free.CHAIN:
            loose = (count for count, bone in enumerate(rows[0], 1) if not bones[figure.names[bone]].use_connect)
            length = next(loose, len(rows[0]))
        if 0 < length < longest:
            tops = {row[min(length, len(row)) - 1] for row in rows} - fixed
            turning = frozenset(figure.names[bone] for top in tops for bone in figure.below(top))
            return Extent("", turning, length, longest)
        if free is Free.ROOT and root != grabbed[0]:
            return Extent("", None, 0, longest)
        # A connected bone can't move away from its parent.
        above = (bones[figure.names[bone]] for bone in figure.up(root))
        movable = next(bone.name for bone in above if bone.parent is None or not bone.use_connect)
        return Extent(movable, None, 0, longest)

    def _hold(self, name: str) -> _Held:
        stand, bone, bones = self.stand, self.stand.index[name], self.ob.data.bones
        point = stand.tail(bone) if self._ask.use_tail else None
        rests = orthonormal(np.array([np.array(bones[own].matrix_local)[:3, :3] for own in (self.bone, name)]))
        limb = limb_of(self._figure, self._figure.names.index(name))
        first = stand.index[self._figure.names[limb[0]]] if limb else None
        start = stand.pose[bone, :3, 3] if point is None else point
        return _Held(bone, start, point, first, None if name == self.bone else rests, self.ob.pose.use_mirror_relative)

    def _grabs(self, rotation: Floats | None = None) -> list[Grab]:
        return [Grab(held.bone, np.zeros(3), held.point, rotation, held.limb) for held in self._held]

    def _rotations(self, turn: Floats, targets: list[Floats]) -> list[Floats]:
        """Return orientations of the dragged bones: those from place alone, then turned in armature space."""
        place = tuple(targets[0].tolist())
        if self._placed is None or self._placed[0] != place:
            self._placed = place, self._poser.pose(targets).frames
        frames = self._placed[1]
        image = frames[self._held[0].bone]
        return [held.orientation(times(turn, image), image, frames[held.bone]) for held in self._held]

    def _make_ready(self) -> None:
        """Prepare posers for what may move of the body; dragged joints that can't move are dropped."""
        root, turning, body = self.extent.root, self.extent.turning, self.stand.body
        give = body.give
        if turning is not None and give is not None:
            give = np.where([name in turning for name in self.stand.index], give, 0.0)
        self._body = replace(body, root=self.stand.index.get(root), give=give)
        movable = movable_bones(self._body)
        self._held = [held for held in self._held if held.bone in movable]
        self._pins = self._all_pins({held.bone for held in self._held})
        self._poser = Poser(self._body, self._pins, self._grabs())
        self._turning = self._placed = None

    def _all_pins(self, grabbed: Collection[int]) -> list[Pin]:
        """Return all pins, and the ends of live chains, which targets hold, except for chains with a grabbed bone.

        What is dragged keeps no place, and the toes of a dragged foot or paw go with it. An end whose target goes along
        with the body does so too. Of the others feet hold, and hands let go where they would keep the dragged joint
        from its place.
        """
        stand, ob, figure, index = self.stand, self.ob, self._figure, self.stand.index
        ends = [bone for bone in map(figure.names.index, self._names) if part_of(figure, bone) in EXTREMITIES]
        loose = {index[figure.names[toe]] for foot in ends for toe in figure.below(foot)}
        loose |= {held.bone for held in self._held}
        pinned = ((index[name], flags) for name, flags in self._pinned.items())
        pins = [Pin(bone, "LOCATION" in own and bone not in loose, "ROTATION" in own) for bone, own in pinned]
        found = [pin for pin in pins if pin.location or pin.rotation]
        body = {Goal(ob, name) for name, bone in index.items() if bone in movable_bones(self._body)}
        feet = {figure.names[foot] for foot in ends_of(figure, Region.LEG)}
        for tip in _solved_chains(ob):
            own, end, goal = posed_bones(tip), end_of(tip), target_of(tip)
            whole = [*own, *([] if end is None else [end])]
            is_carried = goal is not None and not body.isdisjoint(parents_of(goal.ob, goal.bone))
            if is_carried or not {index[bone.name] for bone in whole}.isdisjoint(grabbed):
                continue
            strength = HOLDING if feet.isdisjoint(bone.name for bone in whole) else np.inf
            last = index[tip.name]
            place = stand.pose[last] @ np.array(reach_of(tip).to_4d())
            found.append(Pin(last, rotation=chain_of(tip).use_rotation, strength=strength, point=place[:3]))
            if turning_end(tip) is not None:
                found.append(Pin(index[own[-1].name], location=False, strength=strength))
        return found

    def _write(self, context: Context, posed: PosedBody, poser: Poser) -> None:
        stand, ob, bones, pose = self.stand, self.ob, poser.tree.bones, self.stand.pose.copy()
        pose[:, :3, :3] = times(times_back(posed.frames, stand.body.frames), pose[:, :3, :3])
        pose[:, :3, 3] = posed.heads
        last, self.moved = self.moved, stand.order[bones].tolist()
        written = np.array(sorted({*last, *self.moved}), dtype=np.int64)

        def write() -> None:
            self._rows = stand.rows(ob, self._before, pose, bones, self._body.root)
            channels.write(ob, written, self._rows[written])
            context.view_layer.update()

        with registry.paused(ob):  # chains follow in `finish`
            write()
            if not self._steered.isdisjoint(np.asarray(stand.body.parents)[bones].tolist()):
                # Constraints place what carries some of these, such as the swing of a leg that Rigify made.
                others = np.delete(np.arange(len(pose)), bones)
                pose[others] = channels.read_pose(ob, stand.order[others])
                write()


def _solved_chains(ob: Object) -> list[PoseBone]:
    """Return the tips of the chains that live solving poses now."""
    return [tip for tip in tips(ob) if chain_of(tip).enabled] if object_of(ob).live else []


def _bones_of(tips: Iterable[PoseBone]) -> set[int]:
    """Return the indices of pose bones that chains pose."""
    return {tip.id_data.pose.bones.find(bone.name) for tip in tips for bone in posed_bones(tip)}
