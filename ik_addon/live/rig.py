"""An armature object during live solving: its state in each view layer, and the steps of a solve.

The steps, in order: `absorb_edits` (what the user moved by hand becomes the FK pose), `restore_fk` (before Blender
evaluates a frame), `read_fk` (after it), `solve` and `write`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from types import MappingProxyType

import bpy
import numpy as np

from .. import compat
from ..data.neighbors import others_handle_frames
from ..data.settings import chain_of
from ..pose import channels
from ..pose.channels import Row
from ..rig.plan.plan import Plan
from ..rig.plan.presence import Layer
from ..rig.plan.watch import is_animated
from ..rig.read import fcurves
from ..rig.read.goals import Still
from ..rig.read.keyed import Keyed
from ..rig.read.sample import Sample, sample
from ..rig.write.held_armature import HeldArmature
from ..rig.write.waves import Moves, Posed, pose
from .live_bones import LiveBones
from .playback import Playback, Source
from .state import State, View

Moment = tuple[int, float]
"""A scene, by `session_uid`, and its frame."""


def moment_of(depsgraph: bpy.types.Depsgraph) -> Moment:
    """Return the scene and the frame at which a depsgraph is evaluated."""
    return depsgraph.scene.original.session_uid, depsgraph.scene.frame_current_final


def _is_free(goal: bpy.types.Object) -> bool:
    """Return whether an object is moved by nothing but its own F-curves."""
    data = goal.animation_data
    return goal.type != "ARMATURE" and goal.parent is None and not goal.constraints and not (data and data.drivers)


class Rig:
    """What is known of one armature object between two solves. Refers to objects by `Reference` alone.

    The channels are the same in all view layers, so what they hold is kept once; plans and states are kept per layer.
    """

    def __init__(self, ob: bpy.types.Object, plan: Plan, layer: Layer, bones: LiveBones | None = None) -> None:
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
        self._before: View | None = None
        """The armature in the view layer that solved the previous frame."""
        self._address = 0
        """Address of the view layer that solves now; 0 until it was seen."""
        self.at: Moment | None = None
        """The frame of `fk` and `solution`; None if unknown."""
        self.is_still = True
        """Whether the frame stands still, so that a user may have inserted keys since."""
        self.solution: Row | None = None
        """(k, 17) the solution of that frame."""
        self.bones = LiveBones(ob, plan) if bones is None else bones
        if self.bones.are_new:
            self.view.state = State.SOLVED  # nothing is solved yet: the channels hold the FK pose itself

    @property
    def plan(self) -> Plan:
        """The plan in the view layer that solves now."""
        return self.view.plan

    def turn_to(self, layer: Layer, plan: Plan) -> None:
        """Go on in a view layer with a plan for it, which has the same live bones."""
        if layer not in self.views:
            self.views[layer] = View(plan, self.view.state)
        if plan.modes != self.plan.modes:
            self.bones.fk = None  # in other rotation modes the same channels are another pose
        if self.view is not self.views[layer]:
            self.view, self._address = self.views[layer], 0
        self.view.take(plan)

    def is_seen_by(self, depsgraph: bpy.types.Depsgraph) -> bool:
        """Return whether a depsgraph belongs to the view layer that solves now; a new address is looked up by name."""
        address = depsgraph.view_layer.as_pointer()
        if address != self._address and self.views.get(Layer.of(depsgraph.view_layer)) is self.view:
            self._address = address
        return address == self._address

    def enter(self, state: State) -> None:
        """Set what the channels hold now: in the view layer that solves, and consequently in all others.

        Only the layer that solves may be in PLAYBACK. Layers of other scenes are on other frames.
        """
        for layer, view in self.views.items():
            view.state = state
            if view is not self.view and state in {State.SOLVED, State.PLAYBACK}:
                same = self.at is not None and layer.scene == self.at[0]
                view.state = State.SOLVED if same else State.UNKNOWN
            if view.state is not State.PLAYBACK:
                view.playback = None

    @property
    def state(self) -> State:
        """What the channels hold."""
        return self.view.state

    def planned_anew(self, ob: bpy.types.Object, plan: Plan, layer: Layer) -> Rig:
        """Return the rig after its bones or settings changed, keeping what is known of bones that stay."""
        matches = self.plan.skeleton.matches(ob)
        bones = self.bones.planned_anew(ob, plan, is_restored=self.state is State.RESTORED)
        after = Rig(ob, plan, layer, bones)
        after.view.state = self.state if self.state is not State.PLAYBACK else State.SOLVED
        after.is_still = self.is_still
        if matches:
            after.at = self.at
        return after

    def copy(self) -> Rig:
        """Return a copy of the current state, to go back to when the channels are put back."""
        known = copy(self)
        known.bones = self.bones.copy()
        known.views = {layer: copy(view) for layer, view in self.views.items()}
        known.view = next(known.views[layer] for layer, view in self.views.items() if view is self.view)
        for view in known.views.values():
            view.playback = None
            view.state = State.SOLVED if view.state is State.PLAYBACK else view.state
        return known

    def absorb_edits(self, ob: bpy.types.Object, evaluated: Sequence[bpy.types.Depsgraph] = ()) -> None:
        """Make manual edits since the last write part of the FK pose; see `LiveBones.absorb_edits`."""
        if self.bones.are_as_written(ob):
            return
        if self.state is State.UNKNOWN:
            self.bones.fk = None  # the known FK pose is that of another frame
        self.bones.absorb_edits(ob, evaluated)

    def key_fk(self, ob: bpy.types.Object, shown: Row) -> bool:
        """Put FK into keys that were just inserted, while the channels held `shown` (k, 17); return whether any were.

        Blender animates the evaluated copy once more then.
        """
        is_known = self.at is not None and self.state is not State.UNKNOWN and self.bones.fk is not None
        return is_known and self.bones.key_fk(ob, self.at[1], shown)

    def restore_fk(self, ob: bpy.types.Object, present: Row | None = None) -> None:
        """Write the stored FK pose to the channels; see `LiveBones.restore`."""
        self.bones.restore(ob, present)
        self.is_still = False
        self.enter(State.RESTORED)

    def evaluate_fk(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> None:
        """Evaluate the current frame again, from a stored FK pose that was restored after Blender evaluated it."""
        ob.update_tag(refresh={"OBJECT", "DATA", "TIME"})
        compat.update_in_handler(depsgraph)

    def read_fk(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> Sample:
        """Sample a frame that was evaluated from the stored FK pose."""
        self.bones.forget_edits()
        frame = sample(ob, self.plan, depsgraph)
        self.bones.fk, self.at = frame.channels[0], moment_of(depsgraph)
        return frame

    def keep_fk(self, depsgraph: bpy.types.Depsgraph) -> None:
        """Keep the known FK pose as that of the frame at which a depsgraph is evaluated."""
        self.at = moment_of(depsgraph)

    def stands_alone(self, ob: bpy.types.Object) -> bool:
        """Whether the FK pose is the stored one on every frame, and all goals exist and don't depend on the pose.

        Then the FK pose need not be restored before Blender evaluates, which takes as long as evaluating the solution.
        """
        if self.bones.fk is None or not self.plan.is_static or self.plan.watch or is_animated(ob):
            return False
        if not np.array_equal(self.bones.fk, self.bones.stored):
            return False
        bones = ob.pose.bones
        settings = [chain_of(bones[chain.tip]) for chain in self.plan.chains]
        poles = [chain.pole for chain, plan in zip(settings, self.plan.chains, strict=True) if plan.has_pole]
        return all(goal is not None and _is_free(goal) for goal in (*(chain.target for chain in settings), *poles))

    def read_known_fk(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> Sample:
        """Sample the current frame again, while the channels may hold a solution."""
        now = moment_of(depsgraph)
        if self.bones.has_released:  # chains and goals may be below these bones
            ob.update_tag(refresh={"OBJECT"})
            compat.update_in_handler(depsgraph)
            self.bones.has_released = False
        if self.bones.fk is None or self.at not in {None, now} or self.state in {State.UNKNOWN, State.RESTORED}:
            self.bones.fk = self._recovered_fk(ob, depsgraph)
        self.at = now
        return sample(ob, self.plan, depsgraph, self.bones.fk)

    def _recovered_fk(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> Row:
        """Return the FK pose of the current frame after loading or undo, when only the stored one is known.

        If more than F-curves animates the pose, the frame is evaluated once more.
        """
        everything = np.arange(len(ob.pose.bones))
        present = channels.read(ob, everything)
        try:
            fk = fcurves.at_frame(ob, self.plan.live, self.bones.stored, depsgraph.scene.frame_current_final)
        except fcurves.NotDetermined:
            self.restore_fk(ob)
            self.evaluate_fk(ob, depsgraph)
            fk = channels.read(ob.evaluated_get(depsgraph), self.plan.live)
            # Unkeyed edits of other bones must survive the evaluation.
            channels.write(ob, everything, present)
        self.bones.written = present[self.plan.live]
        return fk

    def solve(
        self,
        ob: bpy.types.Object,
        depsgraph: bpy.types.Depsgraph,
        frame: Sample,
        moves: Moves = MappingProxyType({}),
        *,
        hurried: bool = False,
    ) -> Posed:
        """Solve all chains, or return the last solution if nothing moved; `moves` and `hurried` as in `pose`."""
        view = self.view
        alone = len(frame.world) == 1 and self.plan.is_alone and not self.plan.goals_are_moved
        if alone and view.solved is not None and view.solved[0].equals(frame):
            return replace(view.solved[1], moves=moves)
        held = self.held(ob, frame)
        if held is None:
            # Inheritance flags may be animated: the evaluated copy has those of this frame.
            seen = ob.evaluated_get(depsgraph) if self.plan.watch else ob
            before = view.solved if alone and not self.plan.watch else None
            posed = pose(seen, self.plan, frame, moves, before, hurried=hurried)
        else:
            posed = replace(held.solve(ob, frame, hurried=hurried), moves=moves)
        if not hurried:
            view.solved = (frame, posed) if alone else None
        return posed

    def held(self, ob: bpy.types.Object, frame: Sample) -> HeldArmature | None:
        """Return what solves frames with a frame's FK pose from their goals alone; None: they need `pose`."""
        view = self.view
        if not self.plan.is_static or is_animated(ob) or others_handle_frames():
            return None
        if view.held is None or not view.held.fits(frame):
            fk = view.solved[1].fk if view.solved is not None and view.solved[0] is frame else {}
            view.held = HeldArmature(ob, self.plan, frame.frames(slice(0, 1)), fk)
        return view.held if view.held.works and view.held.fits(frame) else None

    def begin_playback(self, ob: bpy.types.Object, frame: Sample) -> None:
        """Enter PLAYBACK, so that `play` poses the next frames, if the numbers of a frame are all it depends on.

        Call this when the frame is solved and written.
        """
        before, self._before = self._before, self.view
        if (len(self.views) > 1 and before is not self.view) or not self.plan.chains or others_handle_frames():
            return  # each frame is evaluated in several view layers, or other add-ons set the FK pose of each frame
        if (source := self._source(ob, frame)) is not None:
            self.view.playback = Playback(ob, self.plan, source, self.held(ob, frame), self.view.solved)
            self.enter(State.PLAYBACK)

    def _source(self, ob: bpy.types.Object, frame: Sample) -> Source | None:
        """Return where the numbers of frames come from, for the same samples as from `sample`; None if unknown."""
        inputs = self.plan.determined
        is_still = not any(chain.takes_rotation for chain in self.plan.chains) and self.stands_alone(ob)
        if is_still and (inputs is None or ob.parent is None):  # Blender multiplies parents in single precision
            return Still(ob, self.plan, frame)
        if inputs is None or not (is_still or self._is_keyed(ob)):
            return None
        return Keyed(self.plan, inputs, self.bones.stored, fcurves.animated(ob, self.plan.live))

    def _is_keyed(self, ob: bpy.types.Object) -> bool:
        """Return whether F-curves alone determine all that frames are computed from, independently of the pose."""
        inputs, view = self.plan.determined, self.view
        if inputs is None or not self.plan.is_alone or self.plan.watch or not view.may_be_keyed:
            return False
        self.bones.animated = fcurves.animated(ob, self.plan.live)
        try:
            fcurves.numbers_at(inputs, self.bones.stored, [0.0])
        except fcurves.NotDetermined:
            view.may_be_keyed = False
        return view.may_be_keyed

    def pose_early(self, ob: bpy.types.Object, frame: float) -> None:
        """Pose a frame before Blender evaluates it, if its solution is known; `play` checks it afterwards."""
        if self.view.playback is not None:
            self.view.playback.pose_early(ob, frame, self.bones.written)

    def play(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, *, in_step: bool) -> Playback | None:
        """Pose a new frame that was evaluated from a solution; None: `absorb_edits` and solve it instead.

        `in_step` says whether the original objects are at this frame, too.
        """
        playback = self.view.playback
        if playback is None or others_handle_frames():
            return None
        fk = playback.step(ob, depsgraph, self.bones.written, in_step=in_step)
        if fk is None:
            return None
        self.bones.fk, self.at, self.solution = fk, moment_of(depsgraph), self.bones.written
        return playback

    def play_again(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, *, hurried: bool) -> Playback | None:
        """Pose the last posed frame again, after only goals moved; None: solve it instead."""
        playback = self.view.playback
        if playback is None or self.bones.fk is None or self.at != moment_of(depsgraph):
            return None
        done = playback.pose_again(ob, depsgraph, self.bones.written, self.bones.fk, hurried=hurried)
        return playback if done else None

    def stop_playback(self) -> None:
        """Have the next frame evaluated from the stored FK pose: a setting or a relation between objects changed."""
        self.view.playback = None
        if self.state is State.PLAYBACK:
            self.enter(State.SOLVED)

    def write(self, ob: bpy.types.Object, rows: Row, shown: Row | None = None) -> None:
        """Write channels (k, 17), a solved frame or the FK pose, to the original object.

        An evaluated copy outside the windows, or one whose animation was evaluated since, may differ from the original:
        where `shown` (k, 17), what it shows, differs from the channels, Blender is made to copy the original again.
        """
        if not channels.write(ob, self.plan.live, rows) and shown is not None and (shown != rows).any():
            channels.tag(ob, int(self.plan.live[0]))
        self.bones.written = rows.copy()
        self.solution = self.bones.written
        if self.plan.watch:
            self.bones.take_modes(ob)
        self.enter(State.SOLVED)

    def stand_by(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, *, is_shown: bool) -> None:
        """Leave a frame to the view layer that has all goals, and write its solution of the frame, if it has one."""
        if self.solution is None or (is_shown and self.at != moment_of(depsgraph)):
            return
        seen = channels.read(ob.evaluated_get(depsgraph), self.plan.live) if is_shown else None
        self.write(ob, self.solution, seen)
