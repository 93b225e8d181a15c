"""Solve the chains of an armature in order, for F frames at once: sampled arrays in, posed arrays out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import bpy
import numpy as np

from ..solve import Goal, OutOfReach, Problem, Solution, Status, solve
from ..solve.problem import Floats
from . import channels
from .carrier import Carrier
from .channels import FIELDS, Row
from .plan import ChainPlan, Plan
from .read import GoalSample, Sample
from .skeleton import inverse, orthonormal

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
        fk = _ChainPose(rows[:, own], basis[:, own], np.stack([current(bone) for bone in chain.bones], axis=1))
        solution, posed = _pose_chain(ob, plan, chain, goal, current.parent(chain.bones[0]), fk)
        rows[:, own] = posed.rows
        for i, bone in enumerate(chain.bones):
            current.put(bone, posed.poses[:, i])
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


@dataclass
class _ChainPose:
    """The bones of one chain on F frames, n bones."""

    rows: Row
    """(F, n, 17)"""
    basis: Floats
    """(F, n, 4, 4)"""
    poses: Floats
    """(F, n, 4, 4) in armature space."""


def _pose_chain(
    ob: bpy.types.Object, plan: Plan, chain: ChainPlan, goal: GoalSample, root: Floats | None, fk: _ChainPose
) -> tuple[Solution, _ChainPose]:
    """Solve one chain whose root's parent has the pose `root` (F, 4, 4)."""
    solution, posed = _solve_once(ob, plan, chain, goal, root, fk)
    first = solution
    for _ in range(REFINEMENTS):
        if _miss(plan, chain, solution, posed) <= WRITTEN_TOLERANCE:
            break
        # Inherited non-uniform scale changes the lengths as the bones turn: go on from what became of the pose.
        solution, posed = _solve_once(ob, plan, chain, goal, root, posed)
    return replace(solution, iterations=first.iterations), posed


def _joints(plan: Plan, chain: ChainPlan, poses: Floats) -> Floats:
    """Joint positions (F, n+1, 3) of a posed chain: the heads, and the tail of the tip."""
    length = plan.skeleton.lengths[chain.bones[-1]]
    tail = poses[:, -1, :3, 3] + poses[:, -1, :3, 1] * length
    return np.concatenate([poses[:, :, :3, 3], tail[:, None]], axis=1)


def _miss(plan: Plan, chain: ChainPlan, solution: Solution, posed: _ChainPose) -> float:
    """Largest distance between solved and posed tip, in chain lengths."""
    joints = _joints(plan, chain, posed.poses)
    length = np.linalg.norm(np.diff(joints, axis=1), axis=2).sum(axis=1)
    valid = (solution.status != Status.INVALID) & (length > 0.0)
    if not valid.any():
        return 0.0
    miss = np.linalg.norm(joints[valid, -1] - solution.joints[valid, -1], axis=1) / length[valid]
    return float(miss.max())


def _solve_once(
    ob: bpy.types.Object, plan: Plan, chain: ChainPlan, goal: GoalSample, root: Floats | None, fk: _ChainPose
) -> tuple[Solution, _ChainPose]:
    frames = _frames(ob, plan, chain, root, fk)
    solution = solve(
        Problem(
            joints=_joints(plan, chain, fk.poses),
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
    return solution, _apply(ob, plan, chain, root, fk, solution.rotations @ frames, solution)


def _frames(ob: bpy.types.Object, plan: Plan, chain: ChainPlan, root: Floats | None, fk: _ChainPose) -> Floats:
    """Orthonormal FK frames (F, n, 3, 3) in armature space, defined also where a bone is scaled to nothing."""
    turns = channels.basis_rotation(fk.basis, fk.rows)
    frames = np.empty_like(turns)
    for i, bone in enumerate(chain.bones):
        unscaled = fk.basis[:, i].copy()
        unscaled[:, :3, :3] = turns[:, i]
        parent = root if i == 0 else fk.poses[:, i - 1]
        frames[:, i] = orthonormal(plan.skeleton.to_pose(ob, bone, unscaled, parent)[:, :3, :3])
    return frames


def _apply(
    ob: bpy.types.Object,
    plan: Plan,
    chain: ChainPlan,
    root: Floats | None,
    fk: _ChainPose,
    frames: Floats,
    solution: Solution,
) -> _ChainPose:
    """Bring a solution, as frames (F, n, 3, 3) and joints, into the channels, and see which pose comes of it."""
    skeleton = plan.skeleton
    basis, poses = fk.basis.copy(), fk.poses.copy()
    rotations = np.empty_like(frames)
    scale = np.ones((len(basis), len(chain.bones)))
    parent = root
    for i, bone in enumerate(chain.bones):
        wanted = np.zeros_like(poses[:, i])
        wanted[:, :3, :3] = frames[:, i]
        wanted[:, :3, 3] = solution.joints[:, i]
        wanted[:, 3, 3] = 1.0
        local = skeleton.to_basis(ob, bone, wanted, parent)
        turn = orthonormal(local[:, :3, :3])
        usable = np.asarray(np.isfinite(turn).all(axis=(1, 2)))
        rotations[:, i] = np.where(usable[:, None, None], turn, np.eye(3))
        scale[:, i] = solution.stretch[:, i]
        if i and skeleton.inherits_scale[bone]:
            scale[:, i] /= solution.stretch[:, i - 1]
        size = fk.rows[:, i, FIELDS["scale"]] * scale[:, i, None]
        basis[:, i, :3, :3] = rotations[:, i] * size[:, None, :]
        if i == 0 and chain.out_of_reach is OutOfReach.PUSH_ROOT:
            basis[:, 0, :3, 3] = local[:, :3, 3]
        poses[:, i] = skeleton.to_pose(ob, bone, basis[:, i], parent)
        parent = poses[:, i]
    rows = _rows(plan, chain, fk.rows, rotations, scale, basis)
    finite = np.isfinite(poses).all(axis=(1, 2, 3)) & np.isfinite(rows).all(axis=(1, 2))
    keep = np.asarray(~finite | (solution.status == Status.INVALID))
    rows[keep], basis[keep], poses[keep] = fk.rows[keep], fk.basis[keep], fk.poses[keep]
    return _ChainPose(rows, basis, poses)


def _rows(plan: Plan, chain: ChainPlan, fk: Row, rotations: Floats, scale: Floats, basis: Floats) -> Row:
    """FK channels (F, n, 17) with what the solution changed: rotations always, location and scale where used."""
    modes = [plan.modes[plan.rows[bone]] for bone in chain.bones]
    rows = channels.with_rotation(fk, rotations, modes)
    if chain.out_of_reach is OutOfReach.STRETCH:
        rows[:, :, FIELDS["scale"]] *= scale[:, :, None].astype(np.float32)
    if chain.out_of_reach is OutOfReach.PUSH_ROOT:
        rows[:, 0, FIELDS["location"]] = basis[:, 0, :3, 3]
    return rows
