"""The frames of a bake: sample FK poses and goals, solve them in batches, and compare playback of the keys."""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

import bpy
import numpy as np

from ..live import registry
from ..live.state import View
from ..pose import channels
from ..pose.channels import Row
from ..pose.skeleton import matrix_array
from ..rig.plan.plan import Plan
from ..rig.read import fcurves
from ..rig.read.sample import Sample, sample, stack
from ..rig.write.waves import pose
from ..solve.maths.products import times
from ..solve.problem import Floats, Ints
from .bake_scene import bake_scene, is_bound, simulates
from .selection import check_order
from .solved import Solved

BATCH = 1000
"""Maximum number of chains times frames solved at once: enough for speed, few enough for caches and cancelling."""
BONES = 250_000
"""Maximum number of bones times frames that are sampled before they are solved, and so in memory at once."""
STEPPED = 100
"""Maximum number of frames in a batch if Blender evaluates them one by one."""
PROOFS = (0.0, 0.29, 0.62, 1.0)
"""Frames, as fractions of the range, that are evaluated in the scene itself to check the other methods."""
KEPT = 4_000_000
"""Maximum number of bones times frames whose solution is kept, to compare it with playback of the keys."""


class Method(Enum):
    """How frames are sampled, fastest first; each method is the fallback for the one before it."""

    FCURVES = "F-curves are sampled, and Blender evaluates no frame"
    SCENE_COPY = "Blender evaluates each frame in a copy of the scene that holds only what the chains need"
    SCENE = "Blender evaluates each frame in the scene itself"


@contextmanager
def scenes(
    view_layer: bpy.types.ViewLayer, ob: bpy.types.Object, method: Method
) -> Iterator[tuple[bpy.types.ViewLayer | None, bpy.types.ViewLayer | None]]:
    """Yield the view layers in which frames are stepped through, and in which some are proven; None if impossible.

    Frames are proven in the scene itself, or in a self-contained copy if stepping would disturb a simulation.
    """
    is_disturbed = method is not Method.SCENE and simulates(view_layer.id_data)
    if method is Method.SCENE_COPY or is_disturbed:
        with bake_scene(view_layer, ob) as copy:
            yield copy, copy if is_disturbed else view_layer
    else:
        yield view_layer, view_layer


def proofs(count: int) -> set[int]:
    """Return the indices of the frames, out of `count`, that are evaluated in the scene itself with every method."""
    return {round(part * (count - 1)) for part in PROOFS}


@dataclass(frozen=True)
class Frames:
    """The frames on which chains of an armature are baked."""

    view_layer: bpy.types.ViewLayer
    """The view layer in which the keys will play."""
    ob: bpy.types.Object
    plan: Plan
    """The plan of the current frame; plans of other frames differ in what is watched."""
    only: list[str] | None
    """Tip bones of the chains to plan; None: all enabled ones."""
    stored: Row
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
    def scene(self) -> bpy.types.Scene:
        """The scene in which the keys will play."""
        return self.view_layer.id_data

    def played(self, method: Method) -> list[int]:
        """Return the indices of the frames that are played after keying, to compare them."""
        if method is Method.FCURVES:
            return sorted(self._proofs())
        every = math.ceil(len(self.numbers) * len(self.plan.live) / KEPT)
        return sorted({*range(0, len(self.numbers), every), *self._proofs()})

    def solve(self, solved: Solved, method: Method) -> Generator[float, None, bool]:
        """Solve all frames; yields progress (0 to 1).

        Returns:
            Whether they can be sampled with this method, and some agree with the scene itself.
        """
        with scenes(self.view_layer, self.ob, method) as (stepped, proven):
            if stepped is None or proven is None:
                return False
            if method is not Method.FCURVES:
                return (yield from self._solve_stepped(stepped, proven, solved))
            if is_bound(self.scene) or not fcurves.decide_alone(self.scene):
                return False
            return (yield from self._solve_from_fcurves(proven, solved))

    def differences(self, solved: Solved, method: Method) -> Generator[float, None, tuple[float, float]]:
        """Compare playback of the keys with the solution; yields progress (0 to 1).

        Returns:
            The largest distance, in chain lengths, and the largest angle, in radians, between them.
        """
        position = angle = 0.0
        proofs = self._proofs()
        with scenes(self.view_layer, self.ob, method) as (stepped, proven):
            for i, index in enumerate(solved.played.tolist()):
                view_layer = (proven if index in proofs else stepped) or self.view_layer
                depsgraph = at_frame(view_layer, self.numbers[index])
                played = channels.read_pose(self.ob.evaluated_get(depsgraph), self.plan.live)
                gap, turn = solved.difference(i, played)
                position, angle = max(position, gap), max(angle, turn)
                yield (i + 1) / len(solved.played)
        return position, angle

    def _proofs(self) -> set[int]:
        return proofs(len(self.numbers))

    def _in_memory(self) -> int:
        """Return how many sampled frames are in memory at once; all with Smooth, as they depend on each other."""
        if self.smooth:
            return len(self.numbers)
        return max(1, BONES // len(self.plan.live))

    def _sample(self, view_layer: bpy.types.ViewLayer, frame: int) -> Sample:
        """Sample the FK pose and the goals on a frame, as Blender evaluates them."""
        channels.write(self.ob, self.plan.live, self.stored)
        return sample(self.ob, self.plan, at_frame(view_layer, frame))

    def _solve_from_fcurves(self, proven: bpy.types.ViewLayer, solved: Solved) -> Generator[float, None, bool]:
        """Solve all frames from F-curves; yields progress (0 to 1). Return whether Blender evaluates some the same."""
        count, some = len(self.numbers), self._in_memory()
        for first in range(0, count, some):
            frames = self.numbers[first : first + some]
            try:
                fk = fcurves.sample_fcurves(self.ob, self.plan, self.stored, frames)
            except fcurves.NotDetermined:
                return False
            proofs = [i - first for i in solved.played.tolist() if first <= i < first + some]
            stepped = []
            for i in proofs:
                stepped.append(self._sample(proven, frames[i]))
                yield first / count
            if proofs and not fcurves.is_same(fk.frames(np.array(proofs)), stack(stepped)):
                return False
            size = len(frames) if self.smooth else max(1, BATCH // len(self.plan.chains))
            for start in range(0, len(frames), size):
                self._put(solved, first + start, fk.frames(slice(start, start + size)))
                yield min(1.0, (first + start + size) / count)
        return True

    def _solve_stepped(
        self, stepped: bpy.types.ViewLayer, proven: bpy.types.ViewLayer, solved: Solved
    ) -> Generator[float, None, bool]:
        """Solve frames that Blender evaluates one by one; yields progress (0 to 1). Return whether some are proven."""
        if self.is_watched:
            return (yield from self._solve_watched(stepped, solved))
        size = self._in_memory() if self.smooth else min(STEPPED, self._in_memory())
        proofs = self._proofs() if proven != stepped else ()
        for start in range(0, len(self.numbers), size):
            samples = []
            for i, frame in enumerate(self.numbers[start : start + size], start=start):
                samples.append(self._sample(stepped, frame))
                if i in proofs and not fcurves.is_same(samples[-1], self._sample(proven, frame)):
                    return False
                yield (i + 1) / len(self.numbers)
            self._put(solved, start, stack(samples))
        return True

    def _put(self, solved: Solved, start: int, fk: Sample) -> None:
        """Solve a batch of frames that begins at the index `start`."""
        posed = pose(self.ob, self.plan, fk)
        if self.smooth:
            solved.note_live(posed, self.numbers)
            posed = pose(self.ob, self.plan, fk, smooth=self.smooth)
        solved.put(start, fk.channels, posed, self.plan)

    def _solve_watched(self, stepped: bpy.types.ViewLayer, solved: Solved) -> Generator[float, None, bool]:
        """Solve frames by their own plans, consecutive ones with the same plan at once; yields progress (0 to 1)."""
        view = View(self.plan)
        view.take(self.plan)
        size = min(STEPPED, self._in_memory())
        waiting: list[Sample] = []
        for i, frame in enumerate(self.numbers):
            channels.write(self.ob, self.plan.live, self.stored)
            depsgraph = at_frame(stepped, frame)
            plan = view.find(depsgraph) or Plan.of(self.ob, depsgraph, self.only)
            is_new = plan is not view.plan
            if waiting and (is_new or len(waiting) == size):
                self._put_waiting(at_frame(stepped, self.numbers[i - 1]), solved, view.plan, waiting, i)
                channels.write(self.ob, self.plan.live, self.stored)
                depsgraph = at_frame(stepped, frame)
            view.take(plan)
            check_order(self.ob, plan, solved.baked, registry.plans_beside(self.ob))
            waiting.append(sample(self.ob, plan, depsgraph))
            if is_new:  # solve at once, so that no frame is evaluated again if settings change all the time
                self._put_waiting(depsgraph, solved, plan, waiting, i + 1)
            yield (i + 1) / len(self.numbers)
        if waiting:
            end = len(self.numbers)
            self._put_waiting(at_frame(stepped, self.numbers[-1]), solved, view.plan, waiting, end)
        return True

    def _put_waiting(
        self, depsgraph: bpy.types.Depsgraph, solved: Solved, plan: Plan, waiting: list[Sample], end: int
    ) -> None:
        """Solve the waiting frames, up to the index `end`, with the inheritance flags of an evaluated one."""
        fk = stack(waiting)
        posed = pose(self.ob.evaluated_get(depsgraph), plan, fk)
        solved.put(end - len(waiting), fk.channels, posed, plan)
        waiting.clear()


def at_frame(view_layer: bpy.types.ViewLayer, frame: float) -> bpy.types.Depsgraph:
    """Go to a frame and return a view layer's depsgraph, evaluated there."""
    whole = math.floor(frame)
    view_layer.id_data.frame_set(whole, subframe=frame - whole)
    return view_layer.depsgraph


@contextmanager
def same_frame(scene: bpy.types.Scene) -> Iterator[None]:
    """Go back to the current frame on leaving, whatever happens."""
    here = scene.frame_current, scene.frame_subframe
    try:
        yield
    finally:
        scene.frame_set(here[0], subframe=here[1])


def played(
    view_layer: bpy.types.ViewLayer,
    ob: bpy.types.Object,
    bones: Ints,
    frames: Sequence[int],
    others: Sequence[bpy.types.Object] = (),
) -> Generator[float, None, tuple[Floats, Floats]]:
    """Play frames; yields progress (0 to 1).

    Returns:
        World matrices (F, n, 4, 4) of bones, given by index (n,), and (F, o, 4, 4) of other objects.
    """
    poses, worlds = np.empty((len(frames), len(bones), 4, 4)), np.empty((len(frames), len(others), 4, 4))
    for i, frame in enumerate(frames):
        depsgraph = at_frame(view_layer, frame)
        seen = ob.evaluated_get(depsgraph)
        world = np.repeat(matrix_array(seen.matrix_world)[None], len(bones), axis=0)
        poses[i] = times(world, channels.read_pose(seen, bones))
        for o, other in enumerate(others):
            worlds[i, o] = matrix_array(other.evaluated_get(depsgraph).matrix_world)
        yield (i + 1) / len(frames)
    return poses, worlds
