"""Solve the chains of an armature in order, for F frames at once: sampled arrays in, posed arrays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..solve import Goal, Problem, Solution, Status, solve
from ..solve.problem import Bools, Floats, Ints
from .carrier import Carrier
from .channels import Row
from .grouping import Wave, paths
from .limb import Limbs
from .plan import Plan
from .read import GoalSample, Sample
from .skeleton import inverse, orthonormal

REFINEMENTS = 4
"""How often a chain is solved again where inherited scale made the written pose miss the solved one."""
WRITTEN_TOLERANCE = 1e-6
"""The miss, in chain lengths, from which that is worth while."""


Moves = Mapping[Carrier, Floats]
"""Displacement (F, 4, 4) in world space of bones that goals hang on, from where they were sampled to their solution."""


@dataclass(frozen=True)
class Outcome:
    """How the solves of one chain ended, on F frames."""

    status: NDArray[np.int8]
    """(F,) values of `Status`."""
    error: Floats
    """(F,) distance from tip to target, in chain lengths; not a number where INVALID."""
    iterations: Ints
    """(F,)"""
    at_limit: Bools
    """(F, n) which of the chain's bones, root first, stand at a limit."""

    def split(self, count: int) -> list[Outcome]:
        """Outcomes of `count` chains, whose frames stand one chain after the other."""
        parts = {name: np.split(value, count) for name, value in vars(self).items()}
        return [Outcome(**{name: part[i] for name, part in parts.items()}) for i in range(count)]


@dataclass(frozen=True)
class Posed:
    """The solved pose of the live bones of one armature on F frames."""

    channels: Row
    """(F, k, 17) channels of `Plan.live` that make this pose."""
    poses: Floats
    """(F, k, 4, 4) pose matrices of `Plan.live` in armature space."""
    outcomes: tuple[Outcome, ...]
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
    current = _Poses(ob, plan, sample)
    to_object = inverse(sample.world)
    known = dict(moves)

    def displaced(carrier: Carrier | None) -> Floats | None:
        """What became (F, 4, 4), in object space, of the bone that a goal hangs on; None: nothing."""
        if carrier is None:
            return None
        if carrier.armature == ob.session_uid and carrier.bone in plan.skeleton.names:
            return current.displacement(plan.skeleton.names.index(carrier.bone))
        return to_object @ known[carrier] @ sample.world if carrier in known else None

    def follow(point: Floats, carrier: Carrier | None) -> Floats:
        """A goal (F, 3) in object space, taken along with the bone that it hangs on."""
        moved = displaced(carrier)
        return point if moved is None else (moved[:, :3, :3] @ point[:, :, None])[..., 0] + moved[:, :3, 3]

    outcomes: dict[int, Outcome] = {}
    for wave in plan.waves:
        goals = []  # of each effector, those of all groups
        for column in wave.chains.T.tolist():
            parts = []
            for i in column:
                chain, goal = plan.chains[i], sample.goals[i]
                target = follow(goal.target, chain.target_carrier)
                rotation = goal.rotation
                if rotation is not None and (moved := displaced(chain.target_carrier)) is not None:
                    rotation = orthonormal(moved[:, :3, :3] @ rotation)
                pole = None if goal.pole is None else follow(goal.pole, chain.pole_carrier)
                parts.append(replace(goal, target=target, rotation=rotation, pole=pole))
            goals.append(GoalSample.joined(parts))
        limbs, found = _pose_limbs(current.limbs(wave), goals)
        current.put(limbs)
        for e, column in enumerate(wave.chains.T.tolist()):
            outcomes.update(zip(column, found[e].split(len(column)), strict=True))
    for bone in plan.followed:
        moved = sample.world @ current.displacement(bone) @ to_object
        known[Carrier(ob.session_uid, plan.skeleton.names[bone])] = moved
    ordered = tuple(outcomes[i] for i in range(len(plan.chains)))
    return Posed(channels=current.rows, poses=current.poses, outcomes=ordered, moves=known)


class _Poses:
    """The pose of an armature on F frames while its chains are solved one wave after the other."""

    def __init__(self, ob: bpy.types.Object, plan: Plan, sample: Sample) -> None:
        self.rows = sample.channels.copy()
        """(F, k, 17) channels of `Plan.live`."""
        self.poses = np.empty_like(sample.basis)
        """(F, k, 4, 4) their pose matrices, as far as they are solved."""
        self._ob = ob
        self._plan = plan
        self._basis = sample.basis
        self._sampled = {int(bone): sample.poses[:, i] for i, bone in enumerate(plan.sampled)}
        self._known: dict[int, Floats] = {}

    def limbs(self, wave: Wave) -> Limbs:
        """The FK pose of a wave's groups; what they hang on is solved already."""
        frames = len(self.rows)
        parents = self._plan.skeleton.parents[wave.bones[:, 0]].tolist()
        root = [np.broadcast_to(np.eye(4), (frames, 4, 4)) if p < 0 else self(p) for p in parents]
        group = np.repeat(np.arange(len(root)), frames)
        rows, basis = (_as_members(array, wave) for array in (self.rows, self._basis))
        return Limbs.fk(self._ob, self._plan, wave, group, np.concatenate(root), rows, basis)

    def put(self, limbs: Limbs) -> None:
        """Set the pose of a wave's chains."""
        self.rows[:, limbs.wave.rows] = _as_frames(limbs.rows, limbs.wave)
        self.poses[:, limbs.wave.rows] = _as_frames(limbs.poses, limbs.wave)

    def displacement(self, bone: int) -> Floats:
        """What became of a bone of `Plan.followed` since it was sampled, in armature space."""
        return np.asarray(self(bone) @ inverse(self._sampled[bone]))

    def __call__(self, bone: int) -> Floats:
        """Pose (F, 4, 4) of a bone that is solved, or sampled."""
        row = self._plan.rows.get(bone)
        if row is not None:
            return self.poses[:, row]
        if bone not in self._known:
            self._known[bone] = self._follow(bone)
        return self._known[bone]

    def _follow(self, bone: int) -> Floats:
        skeleton = self._plan.skeleton
        seen = self._sampled[bone]
        if self._plan.rows.keys().isdisjoint(skeleton.ancestors(bone)):
            return seen
        # Between two chains: it stands to its parent as it was sampled, and the parent may have been moved.
        parent = int(skeleton.parents[bone])
        local = skeleton.to_basis(self._ob, bone, seen, self._sampled[parent])
        return skeleton.to_pose(self._ob, bone, local, self(parent))


def _as_members(array: Any, wave: Wave) -> Any:
    """Rows (F, k, ...) of the live bones as those of the members (G F, n, ...) of a wave, chain by chain."""
    own = array[:, wave.rows].swapaxes(0, 1)
    return np.ascontiguousarray(own).reshape(-1, *own.shape[2:])


def _as_frames(members: Any, wave: Wave) -> Any:
    """The inverse of `_as_members`: (F, G, n, ...)."""
    return members.reshape(len(wave.rows), -1, *members.shape[1:]).swapaxes(0, 1)


def _pose_limbs(limbs: Limbs, goals: Sequence[GoalSample]) -> tuple[Limbs, list[Outcome]]:
    """Solve groups and put the solution into their channels; and what came of each of their E chains."""
    solution, posed = _solve_once(limbs, goals)
    for _ in range(REFINEMENTS):
        missed = posed.misses(solution, WRITTEN_TOLERANCE)
        if not missed.any():
            break
        # Inherited non-uniform scale changes the lengths as the bones turn: go on from what became of the pose.
        better, again = _solve_once(posed.members(missed), [goal.members(missed) for goal in goals])
        posed.put(missed, again)
        for name in ("joints", "error", "status", "at_limit"):
            getattr(solution, name)[missed] = getattr(better, name)
    outcomes = [_outcome(limbs, solution, goal, e) for e, goal in enumerate(goals)]
    if any((goal.influence < 1.0).any() for goal in goals):
        posed = posed.blended(limbs, _influence(limbs, goals))
    return posed, outcomes


def _solve_once(limbs: Limbs, goals: Sequence[GoalSample]) -> tuple[Solution, Limbs]:
    shape, frames = limbs.wave.shape, limbs.frames()
    tree = not shape.is_chain
    wanted = [
        Goal(
            target=goal.target,
            pole=goal.pole,
            pole_angle=goal.pole_angle,
            rotation=goal.rotation,
            segment=shape.segments[e] if tree else None,
            weight=shape.weights[e],
        )
        for e, goal in enumerate(goals)
    ]
    solution = solve(
        Problem(
            joints=limbs.joints(),
            frames=frames,
            goal=wanted[0],
            others=tuple(wanted[1:]),
            parents=np.array(shape.parents) if tree else None,
            inherits=np.array(shape.inherits),
            solver=shape.solver,
            out_of_reach=shape.out_of_reach,
            softness=0.0 if tree else goals[0].softness,
            push_limit=goals[0].push_limit,
            stretch_weights=np.array(shape.stretch_weights),
            tolerance=np.min([goal.tolerance for goal in goals], axis=0),
            iterations=shape.iterations,
            limits=limbs.limits(),
            stiffness=None if shape.stiffness is None else np.array(shape.stiffness),
        )
    )
    return solution, limbs.solved(solution.rotations @ frames, solution)


def _outcome(limbs: Limbs, solution: Solution, goal: GoalSample, e: int) -> Outcome:
    path = list(paths(limbs.wave.shape.parents, limbs.wave.shape.segments)[e][:-1])
    lengths = limbs.lengths(solution.joints)[:, e]
    distance = solution.error if limbs.wave.shape.is_chain else solution.error[:, e]
    with np.errstate(all="ignore"):
        error = distance / lengths
    status = solution.status.copy()
    # A tree has one status: of its chains some may have arrived all the same.
    status[(status != Status.INVALID) & (error <= goal.tolerance)] = Status.REACHED
    return Outcome(status, error, solution.iterations, solution.at_limit[:, path])


def _influence(limbs: Limbs, goals: Sequence[GoalSample]) -> Floats:
    """Influence (B, n) on each bone: that of its chain, the greatest where chains share it."""
    shape = limbs.wave.shape
    influence = np.zeros((len(limbs.group), len(shape.parents)))
    for path, goal in zip(paths(shape.parents, shape.segments), goals, strict=True):
        own = list(path[:-1])
        influence[:, own] = np.maximum(influence[:, own], goal.influence[:, None])
    return influence
