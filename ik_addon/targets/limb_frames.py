"""Sample limb poses, goals and the parents of goals on many frames, the way a bake samples them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from bpy.types import Depsgraph, Object, PoseBone, ViewLayer

from ..bake.sampling import Held, follow_live, may_be_foretold, proofs, stepped
from ..core import channels, fk_store
from ..core.channels import Row
from ..core.goals import Goal
from ..core.settings import chain_of, object_of
from ..core.skeleton import Skeleton, inverse, matrix_array
from ..core.steps import finished
from ..live import registry
from ..rig.plan.chain import posed_bones, tips
from ..rig.plan.inputs import Inputs, Numbers
from ..rig.plan.plan import Plan
from ..rig.plan.presence import Presence
from ..rig.plan.watch import Settings
from ..rig.read import fcurves
from ..rig.read.fcurves import NOISE
from ..rig.read.sample import Frames, sample_of
from ..rig.write.waves import pose
from ..solve.maths.products import times
from ..solve.problem import Floats, Ints
from .movable import parents_of

BATCH = 1000
"""Frames per batch: enough for speed, few enough that a user can cancel."""


def batches(frames: int) -> Iterator[slice]:
    """Split a number of frames into slices."""
    yield from (slice(start, min(start + BATCH, frames)) for start in range(0, frames, BATCH))


@dataclass(frozen=True)
class Sampled:
    """Samples of k bones of an armature, C of its chains, and their g goals, on F frames."""

    world: Floats
    """(F, 4, 4) world matrix of the armature object."""
    poses: Floats
    """(F, k, 4, 4) pose matrices in armature space."""
    settings: Floats
    """(F, C, S) `Settings` of the chains."""
    goals: Floats
    """(F, g, 4, 4) world matrices."""
    spaces: Floats
    """(F, g, 4, 4) matrices from a goal's own channels to world space; NaN where there is none."""
    parents: Ints
    """(F, g) index of the goal that a goal follows; -1 for none."""

    def is_same(self, other: Sampled) -> bool:
        """Whether two samples agree within single-precision noise."""
        pairs = [(own, vars(other)[name]) for name, own in vars(self).items()]
        return all(
            np.allclose(a, b, rtol=NOISE, atol=NOISE * max(1.0, float(np.abs(np.nan_to_num(a)).max(initial=0.0))))
            for a, b in pairs
            if np.isfinite(a).all() or np.isfinite(b).all()
        )

    def frames(self, chosen: slice | Sequence[int]) -> Sampled:
        """Return the samples of the chosen frames."""
        return Sampled(**{name: value[chosen] for name, value in vars(self).items()})

    @classmethod
    def stacked(cls, samples: Sequence[Sampled]) -> Sampled:
        """Join samples of consecutive frames into one."""
        return cls(**{name: np.concatenate([vars(sample)[name] for sample in samples]) for name in vars(samples[0])})


@dataclass(frozen=True)
class Sampler:
    """Samples chains of one armature with their goals."""

    ob: Object
    tips: Sequence[str]
    """Tip bones of C chains."""
    goals: Sequence[Goal]
    bones: Ints
    """(k,) ascending indices of all bones of the chains, and of any extra bones requested."""
    shown: bool
    """Sample the pose shown in the viewport instead of the FK pose."""

    @classmethod
    def of(
        cls, ob: Object, tips: Sequence[PoseBone], goals: Sequence[Goal], shown: bool, more: Collection[int] = ()
    ) -> Sampler:
        """Build a sampler for the chains of an armature object, given their tip bones, goals and extra bones."""
        bones = {ob.pose.bones.find(bone.name) for tip in tips for bone in posed_bones(tip)}.union(more)
        return cls(ob, [tip.name for tip in tips], goals, np.array(sorted(bones), dtype=np.int64), shown)

    def rows(self, bones: Sequence[int]) -> Ints:
        """Return the positions of bones within `self.bones`."""
        return np.searchsorted(self.bones, bones)

    def here(self, depsgraph: Depsgraph) -> Sampled:
        """Sample the frame at which a depsgraph is evaluated (F = 1)."""
        seen = self.ob.evaluated_get(depsgraph)
        goals = np.array([matrix_array(goal.world(depsgraph)) for goal in self.goals])
        held = [goal.ob.evaluated_get(depsgraph) for goal in self.goals]
        holders = [own.pose.bones[g.bone] if g.is_bone else own for own, g in zip(held, self.goals, strict=True)]
        own = np.array([matrix_array(holder.matrix_basis) for holder in holders])
        chains = [chain_of(seen.pose.bones[tip]) for tip in self.tips]
        settings = [[getattr(chain, name) for name in Settings._fields] for chain in chains]
        return Sampled(
            world=matrix_array(seen.matrix_world)[None],
            poses=channels.read_pose(seen, self.bones)[None],
            settings=np.array(settings).reshape(1, -1, len(Settings._fields)),
            goals=goals[None],
            spaces=times(goals, inverse(own))[None],
            parents=self._parents(held)[None],
        )

    def sample(self, view_layer: ViewLayer, frames: Sequence[int]) -> Generator[float, None, Sampled]:
        """Sample F frames; yields progress (0 to 1). The caller must pause live solving unless `is_solved`."""
        stored = (channels.read if self.shown else fk_store.held)(self.ob, self.bones)
        held = None if self.is_solved else Held(self.ob, self.bones, stored)

        step, foretell = partial(stepped, view_layer, read=self.here, held=held), self.foretelling(view_layer, stored)
        chosen = [frames[i] for i in proofs(len(frames))]
        foretold = foretell(chosen) if may_be_foretold(view_layer.id_data) else None
        if foretold is None or not foretold.is_same(Sampled.stacked(finished(step(chosen)))):
            return Sampled.stacked((yield from step(frames)))
        found = []
        for some in batches(len(frames)):
            sampled = foretell(frames[some])
            assert sampled is not None, "what decides is the same on all frames"
            found.append(sampled)
            yield some.stop / len(frames)
        return Sampled.stacked(found)

    def proof(self, view_layer: ViewLayer, frames: Sequence[int]) -> Iterator[tuple[int, Sampled]]:
        """Yield the indices of some frames, each with its sample (F = 1) as keys that were written play."""
        chosen = proofs(len(frames))
        found = finished(stepped(view_layer, [frames[i] for i in chosen], self.here))
        yield from zip(chosen, found, strict=True)

    @cached_property
    def is_solved(self) -> bool:
        """Whether live solving affects anything that is sampled."""
        if not object_of(self.ob).live:
            return False
        needed = {self.ob.pose.bones[bone] for bone in self.bones.tolist()}
        spots = (spot for goal in self.goals for spot in (goal, *parents_of(goal.ob, goal.bone)))
        needed |= {spot.holder for spot in spots if spot.ob == self.ob and spot.is_bone}
        needed |= {above for bone in needed for above in bone.parent_recursive}
        others = (tip for tip in tips(self.ob) if chain_of(tip).enabled and (self.shown or tip.name not in self.tips))
        return any(not needed.isdisjoint(posed_bones(tip)) for tip in others)

    @property
    def alone(self) -> AbstractContextManager[None]:
        """A context in which live solving rests, unless it affects what is sampled."""
        return nullcontext() if self.is_solved else registry.paused(self.ob)

    def foretold(self, view_layer: ViewLayer, frames: Floats, stored: Row) -> Sampled | None:
        """Return samples of frames (F,) from F-curves and from the unanimated channels (m, 17) of all bones.

        None if anything else affects the motion.
        """
        is_known = fcurves.decide_alone(view_layer.id_data)
        return self.foretelling(view_layer, stored[self.bones])(frames.tolist()) if is_known else None

    def foretelling(self, view_layer: ViewLayer, stored: Row) -> Callable[[Sequence[int]], Sampled | None]:
        """Return what samples frames from F-curves, or returns None if anything else affects the motion."""
        depsgraph, own = view_layer.depsgraph, [(goal.ob, goal.bone) for goal in self.goals]
        presence = Presence(view_layer, depsgraph)
        inputs = Inputs.of(self.ob, presence, Skeleton.of(self.ob), self.bones, self.bones.tolist(), self.tips, own)
        plan = Plan.of(self.ob, depsgraph) if self.is_solved else None
        is_moved = follow_live(self.ob, inputs, view_layer.id_data)
        is_moved |= bool(Plan.of(self.ob, depsgraph, self.tips).watch)
        is_moved |= plan is not None and (bool(plan.watch or plan.leaders) or plan.asks)

        def foretell(frames: Sequence[int]) -> Sampled | None:
            try:
                numbers = None if is_moved else fcurves.numbers_at(inputs, stored, frames)
                if numbers is not None and plan is not None:
                    self._solve(plan, inputs, numbers, frames)
            except fcurves.NotDetermined:
                return None
            return None if numbers is None else self._sampled_of(Frames(inputs, numbers), len(frames))

        return foretell

    def _solve(self, plan: Plan, inputs: Inputs, numbers: Numbers, frames: Sequence[int]) -> None:
        """Fill the solved channels of the bones of live chains into the numbers (F, w) of frames."""
        fk = fcurves.numbers_at(plan.numbers, fk_store.held(self.ob, plan.live), frames)
        solved = pose(self.ob, plan, sample_of(plan, Frames(plan.numbers, fk))).channels
        rows = numbers[:, inputs.rows].reshape(len(numbers), -1, channels.WIDTH)
        for i, bone in enumerate(inputs.armatures[0].indices.tolist()):  # the chains' armature comes first
            if bone in plan.rows:
                rows[:, i] = solved[:, plan.rows[bone]]
        numbers[:, inputs.rows] = rows.reshape(len(numbers), -1)

    def _sampled_of(self, posed: Frames, count: int) -> Sampled:
        """Compute samples of frames with our own forward kinematics."""

        def of_all(values: Floats) -> Floats:
            return np.asarray(np.broadcast_to(values, (count, *values.shape[1:])))

        own = posed.inputs.others
        goals = [of_all(posed.at(spot)) for spot in own]
        spaces = [times(goal, of_all(inverse(posed.basis_at(spot)))) for goal, spot in zip(goals, own, strict=True)]
        parents = self._parents([goal.ob for goal in self.goals])
        return Sampled(
            world=of_all(posed.world(posed.inputs.own)),
            poses=of_all(posed.poses[:, posed.inputs.live]),
            settings=of_all(posed.settings),
            goals=np.stack(goals, axis=1) if goals else np.empty((count, 0, 4, 4)),
            spaces=np.stack(spaces, axis=1) if spaces else np.empty((count, 0, 4, 4)),
            parents=np.broadcast_to(parents, (count, len(goals))),
        )

    def _parents(self, seen: Sequence[Object]) -> Ints:
        """Return the index (g,) of the nearest goal that each goal follows, or -1; `seen` has the goals' objects."""
        places = {(goal.ob.name_full, goal.bone): g for g, goal in enumerate(self.goals)}
        found = np.full(len(self.goals), -1, dtype=np.int64)
        for g, (goal, ob) in enumerate(zip(self.goals, seen, strict=True)):
            own = (places.get((above.ob.name_full, above.bone), -1) for above in parents_of(ob, goal.bone))
            found[g] = next((place for place in own if place >= 0 and place != g), -1)
        return found
