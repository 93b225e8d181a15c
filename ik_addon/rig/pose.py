"""Solve the chains of an armature in order, for F frames at once: sampled arrays in, posed arrays out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import bpy
import numpy as np

from ..solve import Goal, Problem, Solution, solve
from ..solve.problem import Floats
from .carrier import Carrier
from .channels import Row
from .limb import Limb
from .plan import Plan
from .read import GoalSample, Sample
from .skeleton import inverse

REFINEMENTS = 4
"""How often a chain is solved again where inherited scale made the written pose miss the solved one."""
WRITTEN_TOLERANCE = 1e-7
"""The miss, in chain lengths, from which that is worth while."""


Moves = Mapping[Carrier, Floats]
"""Displacement (F, 4, 4) in world space of bones that goals hang on, from where they were sampled to their solution."""


@dataclass(frozen=True)
class Posed:
    """The solved pose of the live bones of one armature on F frames."""

    channels: Row
    """(F, k, 17) channels of `Plan.live` that make this pose."""
    poses: Floats
    """(F, k, 4, 4) pose matrices of `Plan.live` in armature space."""
    solutions: tuple[Solution, ...]
    """One for each of `Plan.chains`."""
    moves: Moves
    """What the solution did to the bones of `Plan.followed`, and what was known of other armatures before."""


def pose(ob: bpy.types.Object, plan: Plan, sample: Sample, moves: Moves = MappingProxyType({})) -> Posed:
    """Solve all chains of a plan on the sampled frames. A chain that cannot be solved on a frame keeps its FK pose.

    Args:
        ob: the armature object.
        plan: what is solved, in which order.
        sample: the frames.
        moves: of other armatures' bones that were solved before.
    """
    rows = sample.channels.copy()
    basis = sample.basis
    current = _Poses(ob, plan, sample)
    to_object = inverse(sample.world)
    known = dict(moves)

    def follow(point: Floats, carrier: Carrier | None) -> Floats:
        """A goal (F, 3) in object space, taken along with what became of the bone that it hangs on."""
        if carrier is None:
            return point
        if carrier.armature == ob.session_uid and carrier.bone in plan.skeleton.names:
            moved = current.displacement(plan.skeleton.names.index(carrier.bone))
        elif carrier in known:
            moved = to_object @ known[carrier] @ sample.world
        else:
            return point
        return np.asarray((moved[:, :3, :3] @ point[:, :, None])[..., 0] + moved[:, :3, 3])

    solutions = []
    for chain, goal in zip(plan.chains, sample.goals, strict=True):
        own = [plan.rows[bone] for bone in chain.bones]
        goal = replace(
            goal,
            target=follow(goal.target, chain.target_carrier),
            pole=None if goal.pole is None else follow(goal.pole, chain.pole_carrier),
        )
        poses = np.stack([current(bone) for bone in chain.bones], axis=1)
        fk = Limb(ob, plan, chain, current.parent(chain.bones[0]), rows[:, own], basis[:, own], poses)
        solution, limb = _pose_limb(fk, goal)
        rows[:, own] = limb.rows
        for i, bone in enumerate(chain.bones):
            current.put(bone, limb.poses[:, i])
        solutions.append(solution)
    poses = np.stack([current(int(bone)) for bone in plan.live], axis=1) if len(plan.live) else basis
    for bone in plan.followed:
        moved = sample.world @ current.displacement(bone) @ to_object
        known[Carrier(ob.session_uid, plan.skeleton.names[bone])] = moved
    return Posed(channels=rows, poses=poses, solutions=tuple(solutions), moves=known)


class _Poses:
    """Pose matrices (F, 4, 4) of bones, with the chains that are already solved."""

    def __init__(self, ob: bpy.types.Object, plan: Plan, sample: Sample) -> None:
        self._ob = ob
        self._plan = plan
        self._basis = sample.basis
        self._sampled = {int(bone): sample.poses[:, i] for i, bone in enumerate(plan.sampled)}
        self._known: dict[int, Floats] = {}

    def put(self, bone: int, matrices: Floats) -> None:
        """Set the pose of a solved bone."""
        self._known[bone] = matrices

    def parent(self, bone: int) -> Floats | None:
        """Pose of the parent of a bone, None at the armature's root."""
        parent = int(self._plan.skeleton.parents[bone])
        return None if parent < 0 else self(parent)

    def displacement(self, bone: int) -> Floats:
        """What became of a bone of `Plan.followed` since it was sampled, in armature space."""
        return np.asarray(self(bone) @ inverse(self._sampled[bone]))

    def __call__(self, bone: int) -> Floats:
        """Pose of a bone."""
        if bone not in self._known:
            self._known[bone] = self._follow(bone)
        return self._known[bone]

    def _follow(self, bone: int) -> Floats:
        skeleton, live = self._plan.skeleton, self._plan.rows
        if bone in live:
            return skeleton.to_pose(self._ob, bone, self._basis[:, live[bone]], self.parent(bone))
        seen = self._sampled[bone]
        if live.keys().isdisjoint(skeleton.ancestors(bone)):
            return seen
        # Between two chains: it stands to its parent as it was sampled, and the parent may have been moved.
        local = skeleton.to_basis(self._ob, bone, seen, self._sampled[int(skeleton.parents[bone])])
        return skeleton.to_pose(self._ob, bone, local, self.parent(bone))


def _pose_limb(limb: Limb, goal: GoalSample) -> tuple[Solution, Limb]:
    """Solve a chain and put the solution into its channels."""
    solution, posed = _solve_once(limb, goal)
    for _ in range(REFINEMENTS):
        missed = posed.misses(solution, WRITTEN_TOLERANCE)
        if not missed.any():
            break
        # Inherited non-uniform scale changes the lengths as the bones turn: go on from what became of the pose.
        better, again = _solve_once(posed.frames_of(missed), goal.frames_of(missed))
        posed.put(missed, again)
        for name in ("joints", "error", "status"):
            getattr(solution, name)[missed] = getattr(better, name)
    return solution, posed


def _solve_once(limb: Limb, goal: GoalSample) -> tuple[Solution, Limb]:
    chain, frames = limb.chain, limb.frames()
    solution = solve(
        Problem(
            joints=limb.joints(),
            frames=frames,
            goal=Goal(target=goal.target, pole=goal.pole, pole_angle=goal.pole_angle),
            inherits=chain.inherits,
            solver=chain.solver,
            out_of_reach=chain.out_of_reach,
            softness=goal.softness,
            push_limit=goal.push_limit,
            stretch_weights=chain.stretch_weights,
            tolerance=goal.tolerance,
            iterations=chain.iterations,
        )
    )
    return solution, limb.solved(solution.rotations @ frames, solution)
