"""An armature object during live solving: its state in each view layer, and the steps of a frame.

The steps, in order: `read` what determines the frame, `solved`, and `put` the solution into the channels.
"""

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
from bpy.types import Depsgraph, Object

from ..core import channels, compat, fk_keys
from ..core.channels import FIELDS, WIDTH, Row
from ..core.hooks import others_follow_frames, others_handle_frames
from ..rig.plan.facts import Values, values_of
from ..rig.plan.inputs import Numbers
from ..rig.plan.plan import Plan
from ..rig.plan.presence import Layer
from ..rig.read import fcurves
from ..rig.read.sample import Frames, Sample, numbers_now, sample_of, take_animated
from ..rig.write.waves import Last, Posed, pose
from ..solve.problem import Bools
from . import reports
from .live_bones import LiveBones
from .memory import BLOCK, CLOSED, SURPRISES, Known, Memory

PLANS = 32
"""Maximum number of plans that a view keeps for settings that change from frame to frame."""

Moment = tuple[int, float]
"""A scene, by `session_uid`, and its frame."""


def moment_of(depsgraph: Depsgraph) -> Moment:
    """Return the scene and the frame at which a depsgraph is evaluated."""
    return depsgraph.scene.original.session_uid, depsgraph.scene.frame_current_final


class State(Enum):
    """The states of an armature in a view layer; `docs/live.md` has the table of what happens in each."""

    UNKNOWN = "unknown"
    """It is unknown what the channels hold: after loading, undo, or a solve on another frame or in another scene."""
    SOLVED = "solved"
    """The channels hold the solution, and the FK pose of the frame is known."""
    FAILED = "failed"
    """An unexpected error was raised: the FK pose was put back, and stays until the armature or a setting changes."""
    READ_ONLY = "read-only"
    """Blender lets nobody pose the armature: it is linked, or its library override is not editable."""


@dataclass
class View:
    """An armature in one view layer: its plan there, and what saves solving it again."""

    plan: Plan
    state: State = State.UNKNOWN
    memory: Memory = field(default_factory=Memory)
    last: Last = field(default_factory=Last)
    """What was solved last."""
    frames: Frames | None = None
    """The last frames, before they were solved."""
    plans: dict[Values, Plan] = field(default_factory=dict)
    """The plans, by the values of what they watch."""

    def find(self, depsgraph: Depsgraph) -> Plan | None:
        """Return the plan for the frame at which a depsgraph is evaluated, if it was made before."""
        return self.plan if not self.plan.watch else self.plans.get(values_of(self.plan.watch, depsgraph))

    def take(self, plan: Plan) -> None:
        """Go on with a plan, for other values of what is watched."""
        if plan is not self.plan:
            self.plan, self.memory, self.last, self.frames = plan, Memory(), Last(), None
        if plan.watch and plan.seen not in self.plans:
            if len(self.plans) >= PLANS:
                self.plans.clear()
            self.plans[plan.seen] = plan


class Rig:
    """What is known of one armature object between two solves. Refers to objects by `Reference` alone.

    The channels are the same in all view layers, so what they hold is kept once; plans and states are kept per layer.
    """

    def __init__(self, ob: Object, plan: Plan, layer: Layer, bones: LiveBones | None = None) -> None:
        """Begin with the bones of all chains.

        Args:
            ob: the armature object.
            plan: the plan of its chains.
            layer: the view layer for which the plan was made.
            bones: its live bones, if already loaded; None: load them.
        """
        self.view = View(plan)
        """The armature in the view layer that solves now."""
        self.views = {layer: self.view}
        self.is_stale = False
        """Whether settings or bones changed since it was planned."""
        self.at: Moment | None = None
        """The frame of `LiveBones.fk` and `solution`; None if unknown."""
        self.is_still = True
        """Whether the frame stands still, so that a user may have inserted keys since."""
        self.is_read = False
        """Whether the frame that Blender evaluated last has been read."""
        self.originals: bytes | None = None
        """The originals' `own_transforms` before the last frame was evaluated, if other add-ons may change them."""
        self.numbers: Numbers | None = None
        """(1, w) what the last solution was computed from."""
        self.known: Known | None = None
        """The last solution."""
        self.graph = 0
        """The address of the depsgraph that was read last."""
        self.is_untagged = False
        """Whether only the copy in that depsgraph has what was written last."""
        self._mutes: tuple[Bools, Bools] | None = None
        """How the keys of live bones are muted, so that they don't overwrite what is written early."""
        self.foretold: Row | None = None
        """(k, 17) the FK pose of the frame that is being evaluated, while keys of live bones are muted."""
        self.bones = LiveBones(ob, plan) if bones is None else bones
        if self.bones.are_new:
            self.view.state = State.SOLVED  # nothing is solved yet: the channels hold the FK pose itself

    @property
    def plan(self) -> Plan:
        """The plan in the view layer that solves now."""
        return self.view.plan

    @property
    def state(self) -> State:
        """What the channels hold."""
        return self.view.state

    def enter(self, state: State) -> None:
        """Set what the channels hold now, in all view layers. Those of other scenes are on other frames."""
        for layer, view in self.views.items():
            same = view is self.view or (self.at is not None and layer.scene == self.at[0])
            view.state = state if same else State.UNKNOWN

    def planned_anew(self, ob: Object, plan: Plan, layer: Layer, depsgraph: Depsgraph) -> "Rig":
        """Return the rig after its bones or settings changed, keeping what is known of bones that stay."""
        matches = self.plan.skeleton.matches(ob)
        seen = None if self.at in {None, moment_of(depsgraph)} else ob.evaluated_get(depsgraph)
        after = Rig(ob, plan, layer, self.bones.planned_anew(ob, plan, seen))
        after.view.state, after.is_still, after.is_read = self.state, self.is_still, self.is_read
        after.graph, after.is_untagged = self.graph, self.is_untagged
        if matches:
            after.at = self.at
        return after

    def copy(self) -> "Rig":
        """Return a copy of the current state, to go back to when the channels are put back."""
        known = copy(self)
        known.bones = self.bones.copy()
        known.views = {layer: copy(view) for layer, view in self.views.items()}
        known.view = next(known.views[layer] for layer, view in self.views.items() if view is self.view)
        return known

    # ---- edits

    def absorb_edits(self, ob: Object, evaluated: Sequence[Depsgraph] = ()) -> None:
        """Make others' edits since the last write part of the FK pose; see `LiveBones.absorb_edits`."""
        if np.array_equal(channels.read(ob, self.plan.live, self.plan.skeleton.names), self.bones.written):
            return
        if self.state is State.UNKNOWN:
            self.bones.fk = None  # the known FK pose is that of another frame
        self.bones.absorb_edits(ob, evaluated)

    def key_fk(self, ob: Object, shown: Row) -> bool:
        """Put FK into keys that were just inserted, while the channels held `shown` (k, 17); return whether any were.

        Blender animates the evaluated copy once more then.
        """
        bones = self.bones
        if self.at is None or self.state is State.UNKNOWN or bones.fk is None:
            return False
        bones.keys, is_changed = fk_keys.put_fk(ob, self.plan.live, bones.keys, shown, bones.fk, self.at[1])
        return is_changed

    # ---- a frame

    def catch_up(self, ob: Object, depsgraph: Depsgraph) -> None:
        """Take the FK pose of a frame that another add-on had Blender evaluate before our handlers heard of it.

        Call this before edits are absorbed, while the channels still hold what was written last.
        """
        now = moment_of(depsgraph)
        is_known = self.bones.fk is not None and self.state is State.SOLVED
        if is_known and self.at is not None and self.at != now and self.at[0] == now[0]:
            self.bones.take_animation(ob)
            shown = channels.read(ob.evaluated_get(depsgraph), self.plan.live)
            self.bones.fk, self.at = self.bones.fk_beneath(shown, is_same_frame=False), now
            self.bones.before_edit.clear()

    def read(self, ob: Object, depsgraph: Depsgraph) -> tuple[Numbers, Row]:
        """Read a frame that Blender has just evaluated; also one that it evaluated again after a solution was written.

        May have Blender evaluate more, so the caller pauses the handlers.

        Returns:
            The numbers (1, w) that determine it, and what its live bones show (k, 17).
        """
        self._evaluate_released(ob, depsgraph)
        numbers, shown = self._shown(ob, depsgraph)
        now = moment_of(depsgraph)
        is_same = self.is_read and self.at == now and self.state is State.SOLVED
        fk = self.bones.fk_beneath(shown, is_same_frame=is_same, foretold=self.foretold)
        self.foretold, self.is_read = None, True
        numbers[0, self.plan.numbers.rows].reshape(-1, WIDTH)[self.plan.numbers.live] = fk
        if self.at != now:  # no edit can be cancelled any more
            self.bones.before_edit.clear()
        self.bones.fk, self.at = fk, now
        return numbers, shown

    def read_still(self, ob: Object, depsgraph: Depsgraph) -> tuple[Numbers, Row]:
        """Read the current frame again, while the channels hold a solution; the rest as in `read`."""
        now = moment_of(depsgraph)
        self.doubt()
        self._evaluate_released(ob, depsgraph)
        if self.bones.fk is None or self.at not in {None, now} or self.state is State.UNKNOWN:
            self.bones.fk = self._recovered_fk(ob, depsgraph)
        self.at, self.is_read = now, True
        numbers, shown = self._shown(ob, depsgraph)
        # Driven channels have new values, unless the copy is older than edits.
        if not self.bones.are_edited:
            is_new = self.bones.animated & (shown != self.bones.written)
            self.bones.fk = np.where(is_new, shown, self.bones.fk)
        self.bones.are_edited = False
        numbers[0, self.plan.numbers.rows].reshape(-1, WIDTH)[self.plan.numbers.live] = self.bones.fk
        return numbers, self.bones.written

    def _evaluate_released(self, ob: Object, depsgraph: Depsgraph) -> None:
        """Have Blender pose bones that went back to their FK pose: chains and goals may be below these.

        Also an armature of which only the copy in another depsgraph has the pose that was written.
        """
        before, self.graph = self.graph, depsgraph.as_pointer()
        is_behind = self.is_untagged and self.graph != before
        if is_behind:
            take_animated(ob, depsgraph)
        if self.bones.has_released or is_behind:
            ob.update_tag(refresh={"OBJECT"})
            compat.update_in_handler(depsgraph)
            self.bones.has_released = self.is_untagged = False

    def _shown(self, ob: Object, depsgraph: Depsgraph) -> tuple[Numbers, Row]:
        """Return the numbers (1, w) with the live bones as shown, and these (k, 17)."""
        inputs, fields = self.plan.numbers, self._fields
        numbers = numbers_now(inputs, depsgraph, fields=fields)
        shown = inputs.fk(numbers)[0]
        for name in FIELDS.keys() - set(fields):
            shown[:, FIELDS[name]] = self.bones.written[:, FIELDS[name]]
        return numbers, shown

    @property
    def _fields(self) -> Collection[str]:
        """The channels to read: not those of other rotation modes, which stay as they are, unless they are animated."""
        used = self.plan.numbers.fields
        return used if self.bones.animated_fields.issubset(used) else FIELDS

    def _recovered_fk(self, ob: Object, depsgraph: Depsgraph) -> Row:
        """Return the FK pose of the current frame after loading or undo, when only the stored one is known.

        If more than F-curves animates the pose, the frame is evaluated once more.
        """
        everything = np.arange(len(ob.pose.bones))
        present = channels.read(ob, everything)
        try:
            frame = depsgraph.scene.frame_current_final
            fk = fcurves.at_frames(ob, self.plan.live, self.bones.stored, [frame])[0]
        except fcurves.NotDetermined:
            channels.write(ob, self.plan.live, self.bones.stored)
            ob.update_tag(refresh={"OBJECT", "DATA", "TIME"})
            compat.update_in_handler(depsgraph)
            fk = channels.read(ob.evaluated_get(depsgraph), self.plan.live)
            # Unkeyed edits of other bones must survive the evaluation.
            channels.write(ob, everything, present)
        self.bones.written = present[self.plan.live]
        return fk

    def solved(self, ob: Object, depsgraph: Depsgraph, numbers: Numbers, *, hurried: bool = False) -> Known:
        """Return the solution for the numbers (1, w) of a frame; `hurried` as in `pose`."""
        # Inheritance flags may be animated: the evaluated copy has those of this frame.
        seen = ob.evaluated_get(depsgraph) if self.plan.watch else ob
        self.numbers, self.known = numbers, self._solution(seen, numbers, hurried=hurried)
        return self.known

    def _solution(self, seen: Object, numbers: Numbers, *, hurried: bool = False) -> Known:
        known = self.view.memory.find(numbers)
        if known is None:
            frame = self._sample(numbers)
            posed = pose(seen, self.plan, frame, self.view.last, hurried=hurried)
            known = Known(posed.channels[0], posed.outcomes)
            if not hurried:
                self.view.memory.remember(numbers, known)
                known = replace(known, solved=(frame, posed))
        return known

    def _sample(self, numbers: Numbers) -> Sample:
        self.view.frames = Frames(self.plan.numbers, numbers, self.view.frames)
        return sample_of(self.plan, self.view.frames)

    def put(self, ob: Object, rows: Row, shown: Row, *, in_step: bool = True, seen: Object | None = None) -> bool:
        """Write channels (k, 17), a solved frame or the FK pose; return whether Blender has to evaluate them.

        Args:
            ob: the armature object.
            rows: the channels.
            shown: (k, 17) what the evaluated copy shows.
            in_step: whether the originals should show that, too, unless another handler has moved bones since.
            seen: the evaluated copy, if it is evaluated next anyway: it is written, too, so that Blender need not make
                another one, which takes as long as posing it.
        """
        different = (rows != shown).any(axis=0)
        is_written = bool(different.any())
        if is_written or in_step:
            self.bones.written = rows.copy()
        live, names = self.plan.live, self.plan.skeleton.names
        if (self.is_still or others_follow_frames()) if in_step else is_written:
            moved = channels.read(ob, live, names, self._fields) != rows
            for name in self._fields:
                different[FIELDS[name]] |= moved[:, FIELDS[name]].any(axis=0)
        for name, columns in FIELDS.items():
            if different[columns].any():
                for own in filter(None, (ob, seen)):
                    channels.put(own, live, name, rows, names)
                is_written = True
        if is_written and seen is None:
            # Tag as if the object had moved: the pose is evaluated again, but the armature is not copied.
            ob.update_tag(refresh={"OBJECT"})
            self.is_untagged = False
        if self.plan.watch:
            self.bones.take_modes(ob)
        self.enter(State.SOLVED)
        return is_written

    def put_early(self, ob: Object, frame: float, graphs: Sequence[Depsgraph]) -> None:
        """Write the solution of a frame that Blender has yet to evaluate, if it can be foretold.

        Skins are then deformed once, and simulations see the solved pose. Keys of the bones themselves would overwrite
        it: they are muted in the evaluated copy meanwhile, as long as frames come as expected.
        """
        if self.state is not State.SOLVED or not self._is_played_alike:
            return
        memory = self.view.memory
        # Renders and exports have copies of their own; as a rule they begin with a frame that nobody expects.
        is_going_on = [graph.as_pointer() for graph in graphs] == [self.graph] and (
            memory.is_sure or memory.is_next(frame)
        )
        if self.is_early and memory.expected(frame) is None:
            self._expect(ob, [frame])
        numbers = memory.expected(frame)
        if numbers is None or (self.bones.are_keyed and not (is_going_on and self._mute(ob, graphs[0], numbers))):
            return
        seen = ob.evaluated_get(graphs[0]) if is_going_on and fcurves.have_posed(ob) else None
        self.is_untagged |= seen is not None
        self.put(ob, self._solution(ob, numbers).channels, self.bones.written, seen=seen)

    def _mute(self, ob: Object, depsgraph: Depsgraph, numbers: Numbers) -> bool:
        """Mute the keys of live bones in the evaluated copy, for a frame with these numbers; return whether it can be.

        A foretold FK pose is then not compared with the evaluated one, so the frame before must have come as expected.
        """
        if not self.view.memory.is_sure or others_handle_frames():
            return False
        if self._mutes is None:
            self._mutes = fcurves.mutes(ob, {self.plan.skeleton.names[bone] for bone in self.plan.live.tolist()})
        if not fcurves.mute(ob.evaluated_get(depsgraph), self._mutes[1]):
            return False
        self.foretold = self.plan.numbers.fk(numbers)[0]
        return True

    def unmute(self, ob: Object, graphs: Sequence[Depsgraph]) -> None:
        """Have the keys of live bones animate them again."""
        if self._mutes is not None and self.foretold is not None:
            for graph in graphs:
                fcurves.mute(ob.evaluated_get(graph), self._mutes[0])

    def doubt(self, frame: float | None = None) -> None:
        """Foretell anew: something was edited; see `Memory.doubt`."""
        self._mutes = None
        for view in self.views.values():
            view.memory.doubt(frame)

    @property
    def _is_played_alike(self) -> bool:
        """Whether no frame depends on what was solved, so that one may be again what it was when it was played last."""
        return not (self.plan.leaders or self.plan.asks or self.plan.asked)

    @property
    def _can_foretell(self) -> bool:
        """Whether F-curves may determine frames, as far as is known."""
        plan, surprises = self.plan, self.view.memory.surprises
        return self._is_played_alike and not (surprises >= SURPRISES or plan.watch or plan.numbers.is_opaque)

    @property
    def is_early(self) -> bool:
        """Whether frames are written before Blender evaluates them."""
        return self._can_foretell and not self.bones.are_keyed

    def foretell(self, ob: Object, frame: float) -> None:
        """After a frame was played, foretell others, see `Memory.played`, and solve them in advance."""
        assert self.numbers is not None
        assert self.known is not None
        plan, memory = self.plan, self.view.memory
        self._expect(ob, memory.played(frame, self.numbers))
        if not plan.is_searched:
            count = BLOCK
            if plan.closed:
                # Limits may keep a limb from its closed form: a step of the search takes as long as another limb.
                steps = int(self.known.outcomes.iterations[0, plan.closed].sum())
                count = CLOSED * len(plan.closed) // (len(plan.closed) + steps)
            memory.solve_ahead(count, lambda some: pose(ob, plan, self._sample(some), self.view.last))

    def _expect(self, ob: Object, frames: Sequence[float]) -> None:
        """Sample frames in advance if F-curves alone determine them."""
        if not frames or not self._can_foretell:
            return
        try:
            numbers = fcurves.numbers_at(self.plan.numbers, self.bones.stored, frames, self._fields)
        except fcurves.NotDetermined:
            self.view.memory.surprises = SURPRISES
        else:
            self.view.memory.expect(frames, numbers)

    def report(self, ob: Object) -> None:
        """Have the solution reported to whoever asks, until the next one."""
        plan, numbers, known = self.plan, self.numbers, self.known
        assert numbers is not None
        assert known is not None

        def solved(ob: Object) -> tuple[Sample, Posed]:
            if known.solved is not None:
                return known.solved
            frame = sample_of(plan, Frames(plan.numbers, numbers))
            return frame, Posed(known.channels[None], known.outcomes, lambda some: pose(ob, plan, frame).poses_on(some))

        reports.update(ob, plan, solved)
