"""An armature object as the add-on drives it: base and FK pose, what was written, and the steps of a solve.

The steps, in this order: `absorb_edits` (what the user moved by hand becomes the base), `restore_base` (before
Blender evaluates a frame), `read_fk` (after it), `solve` and `write`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from types import MappingProxyType

import bpy
import numpy as np

from ..data import fk_store
from ..data.neighbours import others_handle_frames
from ..data.settings import chain_of
from ..pose import channels
from ..pose.channels import Row
from ..rig.plan.plan import Plan
from ..rig.plan.presence import Layer
from ..rig.read import fcurves
from ..rig.read.goals import Still
from ..rig.read.sample import Sample, sample
from ..rig.write.waves import Moves, Posed, pose
from .keyed import Keyed
from .lookup import Steady
from .playback import Following, Source
from .state import State, View

RESTLESS = 20
"""How often an FK pose is tabulated; one that a script sets on each frame is not worth it."""

Moment = tuple[int, float]
"""A scene, by `session_uid`, and its frame."""


def moment_of(depsgraph: bpy.types.Depsgraph) -> Moment:
    """The scene and the frame at which a depsgraph is evaluated."""
    return depsgraph.scene.original.session_uid, depsgraph.scene.frame_current_final


def _is_free(goal: bpy.types.Object) -> bool:
    """Whether an object goes nowhere but where its own F-curves take it."""
    data = goal.animation_data
    return goal.type != "ARMATURE" and goal.parent is None and not goal.constraints and not (data and data.drivers)


def is_animated(ob: bpy.types.Object) -> bool:
    """Whether anything but the user may change an object's pose from frame to frame."""
    data = ob.animation_data
    return data is not None and bool(data.action or data.nla_tracks or data.drivers)


class Rig:
    """What is known of one armature object between two solves. It holds no reference to Blender's data.

    The channels are the same in all view layers, so what they hold is known once; plans and states are of each layer.
    """

    def __init__(self, ob: bpy.types.Object, plan: Plan, layer: Layer) -> None:
        """Load (or store, where new) the base of the bones of all chains.

        Args:
            ob: the armature object.
            plan: of its chains.
            layer: the view layer that was planned.
        """
        self.view = View(plan)
        """The view layer that solves now."""
        self.views = {layer: self.view}
        self._before: View | None = None
        """The view layer that solved the frame before."""
        self._address = 0
        """Of the view layer that solves now, once it was seen."""
        self.at: Moment | None = None
        """Of which frame `fk` and `solution` are; None: of none that is known."""
        self.solution: Row | None = None
        """(k, 17) what was solved then."""
        present = channels.read(ob, plan.live)
        self.written: Row = fk_store.take_written(ob, plan.live, present)
        """(k, 17) what the add-on wrote last; differs from the channels where somebody else moved a bone."""
        self.base, new = fk_store.load(ob, plan.live, present)
        self.fk: Row | None = None
        """(k, 17) channels of the FK pose; None: not known."""
        self._modes = [ob.pose.bones[bone].rotation_mode for bone in plan.live.tolist()]
        self._before_edit: dict[tuple[str, str, bytes], tuple[Row, Row]] = {}
        self._never_solved = set(new)
        self._animated = fcurves.animated(ob, plan.live)
        self._told: Row | None = None
        if len(new) == len(plan.live):
            self.fk = present
            self.view.state = State.SOLVED  # by nobody yet: the FK pose itself

    @property
    def plan(self) -> Plan:
        """The plan in the view layer that solves now."""
        return self.view.plan

    def turn_to(self, layer: Layer, plan: Plan) -> None:
        """Solve in a view layer by a plan, which has the same live bones."""
        if layer not in self.views:
            self.views[layer] = View(plan, self.view.state)
        if plan.modes != self.plan.modes:
            self.fk = None  # the same channels are another pose
        if self.view is not self.views[layer]:
            self.view, self._address = self.views[layer], 0
        self.view.take(plan)

    def is_seen_by(self, depsgraph: bpy.types.Depsgraph) -> bool:
        """Whether a depsgraph is of the view layer that solves now; where its address is new, its name is asked."""
        address = depsgraph.view_layer.as_pointer()
        if address != self._address and self.views.get(Layer.of(depsgraph.view_layer)) is self.view:
            self._address = address
        return address == self._address

    def enter(self, state: State) -> None:
        """Note what the channels hold now, in the view layer that solves and so in all others.

        Only this one may follow its goals. In other scenes the frame is another one.
        """
        for layer, view in self.views.items():
            view.state = state
            if view is not self.view and state in {State.SOLVED, State.FOLLOWING}:
                same = self.at is not None and layer.scene == self.at[0]
                view.state = State.SOLVED if same else State.UNKNOWN
            if view.state is not State.FOLLOWING:
                view.following = None

    @property
    def state(self) -> State:
        """What the channels hold."""
        return self.view.state

    def planned_anew(self, ob: bpy.types.Object, plan: Plan, layer: Layer) -> Rig:
        """The rig after its bones or settings changed; bones that stay keep what is known of them.

        The base of bones that no longer belong to a chain is restored.
        """
        matches = self.plan.skeleton.matches(ob)
        if not matches:
            self._store_what_was_noted(ob)
        after = Rig(ob, plan, layer)
        after.view.state = self.state if self.state is not State.FOLLOWING else State.SOLVED
        names = {after.plan.skeleton.names[bone] for bone in after.plan.live}
        if matches:
            self.release(ob, [bone for bone in self.plan.rows if self.plan.skeleton.names[bone] not in names])
        fk_store.release(ob, set(fk_store.stored_bones(ob)).difference(after.plan.live.tolist()))
        if not matches:
            return after  # a bone that was renamed may have the name of another by now
        after._before_edit, after.at = self._before_edit, self.at
        row_of = {self.plan.skeleton.names[bone]: row for bone, row in self.plan.rows.items()}
        kept = [
            (new, row_of[name])
            for bone, new in after.plan.rows.items()
            if (name := after.plan.skeleton.names[bone]) in row_of and self._modes[row_of[name]] == after._modes[new]
        ]
        if kept:
            new_rows, old_rows = (list(rows) for rows in zip(*kept, strict=True))
            after.written[new_rows] = self.written[old_rows]
            last = self._last_fk
            if last is not None:
                # What is no longer animated stays as it was last, as Blender leaves it.
                ceased = self._animated[old_rows] & ~after._animated[new_rows]
                rows = after.base.copy()
                rows[new_rows] = np.where(ceased, last[old_rows], rows[new_rows])
                after._set_base(ob, rows)
                if self.fk is None:
                    after._told = after.base.copy()
                    after._told[new_rows] = last[old_rows]
        if self.fk is not None and after.fk is None:
            known = set(new_rows if kept else []) | after._never_solved
            if len(known) == len(after.plan.live):
                after.fk = channels.read(ob, after.plan.live)
                after.fk[new_rows] = self.fk[old_rows]
        return after

    def _store_what_was_noted(self, ob: bpy.types.Object) -> None:
        """Store bases again that were noted on tips, where those were deleted."""
        names, bones = self.plan.skeleton.names, ob.pose.bones
        if not set(bones.keys()) < set(names):
            return  # a bone that was renamed may have the name of another by now
        stored = fk_store.stored_bones(ob)
        left = [(i, row) for bone, row in self.plan.rows.items() if (i := bones.find(names[bone])) not in {-1, *stored}]
        fk_store.store(ob, [bone for bone, _ in left], [self.base[row] for _, row in left])

    def begin(self, ob: bpy.types.Object, frame: float) -> None:
        """Take over an armature of which nothing else is known, after undo, say, on the present frame.

        Bones that belong to no chain any more go back to their FK pose. Of the others, what F-curves alone tell is
        noted, in case they are removed before a frame is solved.
        """
        unused = np.array(sorted(set(fk_store.stored_bones(ob)).difference(self.plan.live.tolist())), dtype=np.int64)
        rows, _new = fk_store.load(ob, unused, channels.read(ob, unused))
        with suppress(fcurves.Untold):
            self._told = fcurves.at_frame(ob, self.plan.live, self.base, frame)
            rows = fcurves.at_frame(ob, unused, rows, frame)
        channels.write(ob, unused, rows)
        fk_store.forget(ob, unused.tolist())

    @property
    def _last_fk(self) -> Row | None:
        """FK channels (k, 17) as far as they are known."""
        return self._told if self.fk is None else self.fk

    def copy(self) -> Rig:
        """What is known at this moment, to go back to when the channels are put back."""
        known = copy(self)
        known.written = self.written.copy()
        known._before_edit = dict(self._before_edit)
        known.views = {layer: copy(view) for layer, view in self.views.items()}
        known.view = next(known.views[layer] for layer, view in self.views.items() if view is self.view)
        for view in known.views.values():
            view.following = None
            view.state = State.SOLVED if view.state is State.FOLLOWING else view.state
        return known

    def release(self, ob: bpy.types.Object, bones: Collection[int]) -> None:
        """Put live bones back into their FK pose of the present frame and forget their base, where they have one."""
        own = [bone for bone in fk_store.stored_bones(ob) if bone in bones]
        last = self._last_fk
        if last is not None and own:
            rows = last[[self.plan.rows[bone] for bone in own]]
            for k, bone in enumerate(own):
                before, mode = self._modes[self.plan.rows[bone]], ob.pose.bones[bone].rotation_mode
                rows[k] = rows[k] if mode == before else channels.convert_rotation(rows[k], before, mode)
            channels.write(ob, np.array(own, dtype=np.int64), rows)
            fk_store.forget(ob, own)

    def absorb_edits(self, ob: bpy.types.Object, evaluated: Sequence[bpy.types.Depsgraph] = ()) -> None:
        """Take channels that were changed by hand (or animated) since the last write as new base and FK pose.

        Before a frame changes, what is `evaluated` already is no edit: of those the add-on was told. It was written by
        others after the frame before was solved, and would pile up in the base from frame to frame.
        """
        live = self.plan.live
        present = channels.read(ob, live)
        if np.array_equal(present, self.written):
            return
        if self.state is State.UNKNOWN:
            self.fk = None  # it is of another frame
        for depsgraph in evaluated:
            copy = ob.evaluated_get(depsgraph)
            if copy.pose is not None and len(copy.pose.bones) == len(ob.pose.bones):
                self.written = np.where(channels.read(copy, live) == present, present, self.written)
        rows, fk_rows = self.base.copy(), (self.base if self.fk is None else self.fk).copy()
        animated = fcurves.animated(ob, live)
        for k, bone in enumerate(live.tolist()):
            before_mode, mode = self._modes[k], ob.pose.bones[bone].rotation_mode
            if before_mode != mode:
                # Blender has converted the solution: so are the base and the FK pose that it stands for.
                self._modes[k] = mode
                self.written[k] = channels.as_converted(self.written[k], before_mode, present[k], mode)
                rows[k] = channels.convert_rotation(rows[k], before_mode, mode)
                fk_rows[k] = channels.convert_rotation(fk_rows[k], before_mode, mode)
            for name, columns in channels.FIELDS.items():
                old, new = self.written[k, columns], present[k, columns]
                if np.array_equal(old, new):
                    continue
                if (animated | self._animated)[k, columns].any():
                    # Animation that was evaluated again leaves the solution in the numbers that it does not set.
                    new = np.where(~animated[k, columns] & (old == new), fk_rows[k, columns], new)
                # A gesture that is cancelled puts back what was written before it: so does the base of that time.
                key = self.plan.skeleton.names[bone], name
                before = self._before_edit.get((*key, new.tobytes()))
                self._before_edit[*key, old.tobytes()] = self.base[k, columns], fk_rows[k, columns].copy()
                rows[k, columns], fk_rows[k, columns] = before or (new, new)
        self._set_base(ob, rows)
        self.written = present
        if self.fk is not None:
            channels.write(ob, live, fk_rows)
            self.written = fk_rows
            self.fk = fk_rows

    def _set_base(self, ob: bpy.types.Object, rows: Row) -> None:
        """Make rows (k, 17) the base, and store those that are new."""
        changed = np.flatnonzero((rows != self.base).any(axis=1))
        fk_store.store(ob, self.plan.live[changed].tolist(), rows[changed])
        self.base = rows

    def restore_base(self, ob: bpy.types.Object, present: Row | None = None) -> None:
        """Put the base into the channels, so that what is not animated is evaluated from there.

        What the channels hold at `present` (k, 17) saves reading them.
        """
        channels.write(ob, self.plan.live, self.base, present)
        self.written = self.base.copy()
        self.enter(State.AT_BASE)

    def evaluate_base(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> None:
        """Have Blender evaluate the current frame with the base, which was put back too late for that.

        This calls the handlers of `depsgraph_update_post` in turn.
        """
        ob.update_tag(refresh={"OBJECT", "DATA", "TIME"})
        # Blender before 5.0 loses its list of objects in an update within one that concerns the scene, and
        # crashes on the next; tagged, the scene makes the list again.
        depsgraph.scene.update_tag()
        depsgraph.view_layer.update()

    def read_fk(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> Sample:
        """Sample a frame that was evaluated from the base."""
        self._before_edit.clear()
        frame = sample(ob, self.plan, depsgraph)
        self.fk, self.at = frame.channels[0], moment_of(depsgraph)
        return frame

    def keep_fk(self, depsgraph: bpy.types.Depsgraph) -> None:
        """Take the FK pose that is known for that of the frame at which a depsgraph is evaluated."""
        self.at = moment_of(depsgraph)

    def stands_alone(self, ob: bpy.types.Object) -> bool:
        """Whether the FK pose is the base on every frame, all goals are there, and none depends on the pose.

        Then the base need not be put back for Blender to evaluate, which takes as long as a pose with the solution.
        """
        if self.fk is None or not self.plan.stands or self.plan.watch or is_animated(ob):
            return False
        if not np.array_equal(self.fk, self.base):
            return False
        bones = ob.pose.bones
        settings = [chain_of(bones[chain.tip]) for chain in self.plan.chains]
        poles = [chain.pole for chain, plan in zip(settings, self.plan.chains, strict=True) if plan.has_pole]
        return all(goal is not None and _is_free(goal) for goal in (*(chain.target for chain in settings), *poles))

    def read_known_fk(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> Sample:
        """Sample the current frame again, on which the channels hold a solution by now."""
        now = moment_of(depsgraph)
        if self.fk is None or self.at not in {None, now} or self.state in {State.UNKNOWN, State.AT_BASE}:
            self.fk = self._recovered_fk(ob, depsgraph)
        self.at = now
        return sample(ob, self.plan, depsgraph, self.fk)

    def _recovered_fk(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> Row:
        """The FK pose of the current frame after loading a file or undo, when only the base is known.

        Where more than F-curves animates it, it is evaluated once more, which calls the handlers of
        `depsgraph_update_post` in turn.
        """
        everything = np.arange(len(ob.pose.bones))
        present = channels.read(ob, everything)
        try:
            fk = fcurves.at_frame(ob, self.plan.live, self.base, depsgraph.scene.frame_current_final)
        except fcurves.Untold:
            self.restore_base(ob)
            self.evaluate_base(ob, depsgraph)
            fk = channels.read(ob.evaluated_get(depsgraph), self.plan.live)
            # What the user changed on other bones and did not key yet must survive that.
            channels.write(ob, everything, present)
        self.written = present[self.plan.live]
        return fk

    def solve(
        self,
        ob: bpy.types.Object,
        depsgraph: bpy.types.Depsgraph,
        frame: Sample,
        moves: Moves = MappingProxyType({}),
    ) -> Posed:
        """Solve all chains; `moves` as in `pose`. Where nothing moved since the last solve, its result is taken."""
        view = self.view
        alone = len(frame.world) == 1 and not self.plan.carriers and not self.plan.followed
        # Tables are worth while for many frames only: whoever plays or bakes makes them.
        steady = self.steady(ob, frame, make=len(frame.world) > 1)
        by_tables = steady is not None
        if alone and view.solved is not None and view.solved[2] == by_tables and view.solved[0].equals(frame):
            return replace(view.solved[1], moves=moves)
        if steady is None:
            # The evaluated copy knows the flags of inheritance of this frame.
            seen = ob.evaluated_get(depsgraph) if self.plan.watch else ob
            before = view.solved[:2] if alone and view.solved and not (view.solved[2] or self.plan.watch) else None
            posed = pose(seen, self.plan, frame, moves, before)
        else:
            posed = replace(steady.solve(ob, frame), moves=moves)
        view.solved = (frame, posed, by_tables) if alone else None
        return posed

    def steady(self, ob: bpy.types.Object, frame: Sample, make: bool = True) -> Steady | None:
        """The short way to solve frames with the same FK pose; None: there is none, or it would have to be made."""
        view = self.view
        if not self.plan.stands or is_animated(ob) or view.restless > RESTLESS or others_handle_frames():
            return None
        if view.steady is None or not view.steady.fits(frame):
            if not make:
                return None
            view.restless += 1
            view.steady = Steady(ob, self.plan, frame.frames(slice(0, 1)))
        return view.steady if view.steady.works and view.steady.fits(frame) else None

    def begin_to_follow(self, ob: bpy.types.Object, frame: Sample, *, is_aside: bool = False) -> None:
        """Pose the next frames by `follow`, if nothing is needed for it but what they are computed from.

        Call it when this frame was solved and written. `is_aside` says that only goals were moved on it: where tables
        are worth while, they are made by the next frame.
        """
        before = self._before
        self._before = self.view
        if (len(self.views) > 1 and before is not self.view) or not self.plan.chains or others_handle_frames():
            return  # each frame is evaluated in several view layers, or others set the FK pose of each
        source: Source | None = None
        if not any(chain.turns for chain in self.plan.chains) and self.stands_alone(ob):
            source = Still(ob, self.plan, frame)
        elif self._is_keyed(ob):
            assert self.plan.determined is not None
            source = Keyed(self.plan, self.plan.determined, self.base, self._animated)
        if source is not None:
            last = None if self.view.solved is None else self.view.solved[:2]
            steady = self.steady(ob, frame, make=not is_aside)
            self.view.following = Following(ob, self.plan, source, steady, last)
            self.view.is_aside = is_aside and self.plan.stands and steady is None
            self.enter(State.FOLLOWING)

    def _is_keyed(self, ob: bpy.types.Object) -> bool:
        """Whether F-curves alone determine all that frames are computed from, and none of it depends on the pose."""
        inputs, view = self.plan.determined, self.view
        if inputs is None or not self.plan.is_alone or self.plan.watch or not view.may_be_keyed:
            return False
        self._animated = fcurves.animated(ob, self.plan.live)
        try:
            fcurves.foreseen(inputs, self.base, [0.0])
        except fcurves.Untold:
            view.may_be_keyed = False
        return view.may_be_keyed

    def lead(self, ob: bpy.types.Object, frame: float) -> None:
        """Pose a frame before Blender evaluates it, where that can be foreseen; `follow` corrects it."""
        if self.view.following is not None:
            self.view.following.lead(ob, frame, self.written)

    def follow(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, *, in_step: bool) -> Following | None:
        """Pose a new frame that was evaluated without the base; None: it must be solved, `absorb_edits` first.

        `in_step` says whether the original objects are at this frame, too.
        """
        following = self.view.following
        if following is None or self.view.is_aside or others_handle_frames():
            return None
        fk = following.step(ob, depsgraph, self.written, in_step=in_step)
        if fk is None:
            return None
        self.fk, self.at, self.solution = fk, moment_of(depsgraph), self.written
        return following

    def follow_aside(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> Following | None:
        """Pose the frame that was posed last anew, on which only goals were moved since; None: it must be solved."""
        following = self.view.following
        if following is None or self.fk is None or self.at != moment_of(depsgraph):
            return None
        return following if following.step_aside(ob, depsgraph, self.written, self.fk) else None

    def stop_following(self) -> None:
        """Have the next frame evaluated from the base: a setting or a relation between objects changed."""
        self.view.following = None
        if self.state is State.FOLLOWING:
            self.enter(State.SOLVED)

    def write(self, ob: bpy.types.Object, rows: Row, shown: Row | None = None) -> None:
        """Write channels (k, 17), a solved frame or the FK pose, into the original object.

        What an evaluated copy shows that is no window's, or whose animation was evaluated since, may differ from the
        original: where `shown` (k, 17) does, Blender is told to copy it again.
        """
        if not channels.write(ob, self.plan.live, rows) and shown is not None and (shown != rows).any():
            channels.tag(ob, int(self.plan.live[0]))
        self.written = rows.copy()
        self.solution = self.written
        if self.plan.watch:
            self._take_modes(ob)
        self.enter(State.SOLVED)

    def _take_modes(self, ob: bpy.types.Object) -> None:
        """Have the base stand for the same rotations where animation has changed the mode of a bone."""
        rows = self.base.copy()
        for k, bone in enumerate(self.plan.live.tolist()):
            mode = ob.pose.bones[bone].rotation_mode
            if mode != self._modes[k]:
                rows[k] = channels.convert_rotation(rows[k], self._modes[k], mode)
                self._modes[k] = mode
        self.base = rows

    def stand_by(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, *, is_shown: bool) -> None:
        """Leave a frame to another view layer, which has all goals: put back what that one solved, if it has."""
        if self.solution is None or (is_shown and self.at != moment_of(depsgraph)):
            return
        seen = channels.read(ob.evaluated_get(depsgraph), self.plan.live) if is_shown else None
        self.write(ob, self.solution, seen)
