"""Sample frames, and solve those of a bake.

Where F-curves alone decide, frames are foretold, and proven on a few of them. Otherwise Blender steps through the scene
itself, and each frame is read.
"""

import itertools
import math
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from bpy.types import Depsgraph, Object, Scene, ViewLayer

from ..core import channels
from ..core.skeleton import matrix_array
from ..core.steps import Result
from ..live import registry, solving
from ..live.rig import View
from ..rig.plan.inputs import MATRIX, Inputs, Numbers
from ..rig.plan.plan import Plan
from ..rig.read import fcurves
from ..rig.read.sample import Frames as Poses
from ..rig.read.sample import Sample, numbers_now, sample_of
from ..rig.write.waves import misses, pose
from ..solve.maths.products import times
from ..solve.problem import Floats, Ints
from .scene import check_order, evaluated_for
from .solved import Solved

BATCH = 1000
"""Maximum number of chains times frames solved at once: enough for speed, few enough for caches and cancelling."""
BONES = 250_000
"""Maximum number of bones times frames that are sampled before they are solved, and so in memory at once."""
STEPPED = 100
"""Maximum number of frames in a batch if Blender evaluates them one by one."""
PROOFS = (0.0, 0.29, 0.62, 1.0)
"""Frames, as fractions of the range, on which what is foretold, and playback of the keys, are compared with Blender."""
SIMULATED = {"CLOTH", "SOFT_BODY", "FLUID", "DYNAMIC_PAINT", "PARTICLE_SYSTEM"}
"""Modifiers that continue from the previous frame; those of geometry nodes that do so have `bakes`."""


def proofs(count: int) -> list[int]:
    """Return the indices of the frames, out of `count`, on which Blender is always asked."""
    return sorted({round(part * (count - 1)) for part in PROOFS})


def simulates(scene: Scene) -> bool:
    """Whether anything in a scene is simulated, so that jumping between frames would disturb it."""
    modifiers = (modifier for known in evaluated_for(scene) for modifier in getattr(known, "modifiers", ()))
    return scene.rigidbody_world is not None or any(
        modifier.type in SIMULATED or getattr(modifier, "bakes", ()) for modifier in modifiers
    )


def may_be_foretold(scene: Scene) -> bool:
    """Whether F-curves may decide frames of a scene, and some can be visited to prove that."""
    return fcurves.decide_alone(scene) and not simulates(scene)


def follow_live(ob: Object, inputs: Inputs, scene: Scene) -> bool:
    """Whether the handlers solve another armature that places anything in the frames of this one."""
    asked = {carrier.armature for carrier in inputs.asked}
    return any(other != ob and other.session_uid in asked for other in registry.unpaused(scene))


class Held:
    """The FK pose of bones, put back before frames are stepped through; animation sets the rest on each frame."""

    def __init__(self, ob: Object, bones: Ints, rows: channels.Row) -> None:
        """Put back all channels (k, 17) of bones, by index (k,)."""
        self._ob, self._bones, self._rows = ob, bones, rows
        self._animated = fcurves.animated(ob, bones)
        channels.write(ob, bones, rows)

    def put_back(self) -> None:
        """Put back the channels that nothing animates, if somebody else changed them."""
        present = channels.read(self._ob, self._bones)
        channels.write(self._ob, self._bones, np.where(self._animated, present, self._rows), present)


@dataclass(frozen=True)
class Frames:
    """The frames on which chains of an armature are baked."""

    view_layer: ViewLayer
    """The view layer in which the keys will play."""
    ob: Object
    plan: Plan
    """The plan of the current frame; plans of other frames differ in what is watched."""
    only: list[str] | None
    """Tip bones of the chains to plan; None: all enabled ones."""
    stored: channels.Row
    """(k, 17) FK channels of `Plan.live`, used where they are not animated."""
    numbers: list[int]
    """F frames, ascending."""
    changes_order: bool
    """Whether the order in which armatures are solved may change from frame to frame."""
    smooth: Collection[str] = ()
    """Tip bones of chains that are solved with the least turning from frame to frame."""

    @property
    def is_watched(self) -> bool:
        """Whether each frame may need its own plan or another order of the armatures."""
        return bool(self.plan.watch) or self.changes_order

    @property
    def are_foretold(self) -> bool:
        """Whether F-curves alone decide all frames, as far as can be seen; playback of the keys proves it."""
        return may_be_foretold(self.view_layer.id_data) and self._foretold(self.numbers[:1]) is not None

    def solve(self, solved: Solved, *, foretold: bool) -> Generator[float, None, None]:
        """Solve all frames, which are foretold or stepped through; yields progress (0 to 1)."""
        yield from self._solve_foretold(solved) if foretold else self._solve_stepped(solved)

    def differences(self, solved: Solved, *, foretold: bool) -> Generator[float, None, tuple[float, float] | None]:
        """Compare playback of the keys with the solution, and tips with targets; yields progress (0 to 1).

        All frames are played if jumping would disturb a simulation, if only Blender knows what bones carry, or once a
        tip is not where it was solved for; otherwise some of them.

        Returns:
            The largest distance, in chain lengths, and the largest angle, in radians, between them; None if frames that
            were foretold are different ones.
        """
        position, angle, progress, kept = 0.0, 0.0, 0.0, solved.played.tolist()
        everything = [*range(len(self.numbers))]
        told = self._foretold([self.numbers[index] for index in kept]) if foretold else None
        asks = any(plan.asks for plan in (self.plan, *self._view.plans.values()))
        waiting = everything if asks or simulates(self.view_layer.id_data) else kept.copy()
        for done, index in enumerate(waiting, start=1):
            depsgraph = at_frame(self.view_layer, self.numbers[index])
            seen = self.ob.evaluated_get(depsgraph)
            if index in kept:
                i = kept.index(index)
                if foretold and (told is None or not self._is_as_foretold(depsgraph, told[i : i + 1])):
                    return None
                gap, turn = solved.difference(i, channels.read_pose(seen, self.plan.live))
                position, angle = max(position, gap), max(angle, turn)
            plan = self._view.find(depsgraph)
            if plan is not None:
                shown = self._sample(plan, numbers_now(plan.numbers, depsgraph))
                is_missed = solved.note_shown(index, plan, misses(seen, plan, shown)[0], shown.goals.value.influence[0])
                if is_missed and len(waiting) == len(kept):
                    waiting += [other for other in everything if other not in kept]
            progress = max(progress, done / len(waiting))
            yield progress
        return position, angle

    @cached_property
    def _view(self) -> View:
        """The plans of the frames."""
        view = View(self.plan)
        view.take(self.plan)
        return view

    def _in_memory(self) -> int:
        """Return how many sampled frames are in memory at once; all with Smooth, as they depend on each other."""
        return len(self.numbers) if self.smooth else max(1, BONES // len(self.plan.live))

    def _foretold(self, frames: Sequence[int]) -> Numbers | None:
        """Return the numbers (F, w) of frames from F-curves; None if more than these decides."""
        if not (self.is_watched or follow_live(self.ob, self.plan.numbers, self.view_layer.id_data)):
            with suppress(fcurves.NotDetermined):
                return fcurves.numbers_at(self.plan.numbers, self.stored, frames)
        return None

    def _is_as_foretold(self, depsgraph: Depsgraph, foretold: Numbers) -> bool:
        """Whether a frame (1, w) is as foretold, within single-precision noise and apart from bones that are solved."""
        inputs = self.plan.numbers
        found, size = numbers_now(inputs, depsgraph, inputs.fk(foretold)[0]), np.ones(inputs.width)
        largest = np.abs(foretold[0, : inputs.rows.start]).reshape(-1, MATRIX).max(axis=1, initial=1.0)
        size[: inputs.rows.start] = np.repeat(largest, MATRIX)
        near = np.abs(found - foretold) <= fcurves.NOISE * np.maximum(size, np.abs(foretold))
        return bool((near | (np.isnan(found) & np.isnan(foretold))).all())

    def _sample(self, plan: Plan, numbers: Numbers) -> Sample:
        return sample_of(plan, Poses(plan.numbers, numbers))

    def _solve_foretold(self, solved: Solved) -> Generator[float, None, None]:
        """Solve all frames from F-curves; yields progress (0 to 1)."""
        count, some = len(self.numbers), self._in_memory()
        size = some if self.smooth else max(1, BATCH // len(self.plan.chains))
        for first in range(0, count, some):
            yield first / count
            numbers = self._foretold(self.numbers[first : first + some])
            assert numbers is not None, "what decides is the same on all frames"
            for start in range(0, len(numbers), size):
                self._put(solved, first + start, self.ob, self.plan, numbers[start : start + size])
                yield min(1.0, (first + start + size) / count)

    def _solve_stepped(self, solved: Solved) -> Generator[float, None, None]:
        """Solve frames that Blender evaluates, successive ones with the same plan at once; yields progress (0 to 1)."""
        count, view, indices = len(self.numbers), self._view, itertools.count()
        size = self._in_memory() if self.smooth else min(STEPPED, self._in_memory())
        waiting: list[Numbers] = []

        def put(ob: Object, end: int) -> None:
            self._put(solved, end - len(waiting), ob, view.plan, np.concatenate(waiting))
            waiting.clear()

        def read(depsgraph: Depsgraph) -> None:
            i = next(indices)
            if self.is_watched:
                plan = view.find(depsgraph) or Plan.of(self.ob, depsgraph, self.only)
                if plan is not view.plan and waiting:
                    put(self.ob, i)
                view.take(plan)
                check_order(self.ob, plan, solved.baked, registry.plans_beside(self.ob))
            waiting.append(self._read(depsgraph, view.plan))
            if any(own.is_data for own in view.plan.watch):  # what bones inherit is known on this frame alone
                put(self.ob.evaluated_get(depsgraph), i + 1)
            elif len(waiting) == size or i + 1 == count:
                put(self.ob, i + 1)

        yield from stepped(self.view_layer, self.numbers, read, Held(self.ob, self.plan.live, self.stored))

    def _read(self, depsgraph: Depsgraph, plan: Plan) -> Numbers:
        """Return the numbers (1, w) of the frame at which a depsgraph is evaluated, in its FK pose.

        If solved bones move what only Blender can place, it is asked where that is in the solved pose.
        """
        if not plan.asks:
            return numbers_now(plan.numbers, depsgraph, fields=plan.numbers.fields)
        numbers = numbers_now(plan.numbers, depsgraph)
        fk = plan.numbers.fk(numbers)[0]

        def write() -> bool:
            return channels.write(self.ob, plan.live, pose(self.ob, plan, self._sample(plan, numbers)).channels[0])

        def again() -> bool:
            nonlocal numbers
            before, numbers = numbers, numbers_now(plan.numbers, depsgraph, fk)
            return not solving.are_alike(before, numbers) and write()

        write()
        solving.until_still(depsgraph, [plan], again)
        channels.write(self.ob, plan.live, fk)  # the file may be saved meanwhile
        return numbers

    def _put(self, solved: Solved, start: int, ob: Object, plan: Plan, numbers: Numbers) -> None:
        """Solve a batch of frames (f, w) that begins at the index `start`."""
        fk = self._sample(plan, numbers)
        posed = pose(ob, plan, fk)
        if self.smooth:
            solved.note_live(posed, self.numbers)
            posed = pose(ob, plan, fk, smooth=self.smooth)
        solved.put(start, fk.channels, fk.goals.value.influence, posed, plan)


def at_frame(view_layer: ViewLayer, frame: float) -> Depsgraph:
    """Go to a frame and return a view layer's depsgraph, evaluated there."""
    whole = math.floor(frame)
    view_layer.id_data.frame_set(whole, subframe=frame - whole)
    return view_layer.depsgraph


def stepped(
    view_layer: ViewLayer, frames: Sequence[int], read: Callable[[Depsgraph], Result], held: Held | None = None
) -> Generator[float, None, list[Result]]:
    """Go to one frame after the other and return what `read` finds on each, evaluated; yields progress (0 to 1).

    Bones that are `held` are in their FK pose on each frame.
    """
    found = []
    for i, frame in enumerate(frames, start=1):
        if held is not None:
            held.put_back()
        found.append(read(at_frame(view_layer, frame)))
        yield i / len(frames)
    return found


def world_of(ob: Object, depsgraph: Depsgraph) -> Floats:
    """Return the evaluated world matrix (4, 4) of an object."""
    return matrix_array(ob.evaluated_get(depsgraph).matrix_world)


def played(
    view_layer: ViewLayer, ob: Object, bones: Ints, frames: Sequence[int], others: Sequence[Object] = ()
) -> Generator[float, None, tuple[Floats, Floats]]:
    """Play frames; yields progress (0 to 1).

    Returns:
        World matrices (F, n, 4, 4) of bones, given by index (n,), and (F, o, 4, 4) of other objects.
    """

    def read(depsgraph: Depsgraph) -> tuple[Floats, list[Floats]]:
        poses = channels.read_pose(ob.evaluated_get(depsgraph), bones)
        return times(world_of(ob, depsgraph), poses), [world_of(other, depsgraph) for other in others]

    found = yield from stepped(view_layer, frames, read)
    return np.array([poses for poses, _ in found]), np.array([worlds for _, worlds in found])
