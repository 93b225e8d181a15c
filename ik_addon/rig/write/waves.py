"""Solve the chains of an armature in order, for F frames at once: sampled arrays in, posed arrays out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import bpy
import numpy as np

from ...core.channels import FIELDS, Row
from ...core.skeleton import flat_inverse, inverse
from ...solve.maths.products import applied, lengths_of, times
from ...solve.maths.rotations import matrices
from ...solve.problem import Floats, Ints
from ..plan.chain_plan import ChainPlan
from ..plan.groups import Wave
from ..plan.plan import Plan
from ..read.orientation import displaced as displaced_rotations
from ..read.sample import Goals, Sample
from .changes import Changes
from .limb import Limbs
from .outcomes import OUTCOMES, Outcomes
from .solving import solve_limbs


@dataclass(frozen=True)
class Posed:
    """The solved pose of the live bones of one armature on F frames."""

    channels: Row
    """(F, k, 17) channels of `Plan.live` in this pose."""
    outcomes: Outcomes
    """For each of `Plan.chains`."""
    poses_on: Callable[[slice | Ints], Floats]
    """Returns the pose matrices (f, k, 4, 4) of `Plan.live` in armature space, on some of the frames."""
    fk: Mapping[int, Limbs] = field(default_factory=dict)
    """The FK pose of whole waves, by their index in the plan, as far as known; empty if F is not 1."""

    @cached_property
    def poses(self) -> Floats:
        """(F, k, 4, 4) pose matrices of `Plan.live` in armature space, on all frames."""
        return self.poses_on(slice(None))


def pose(
    ob: bpy.types.Object,
    plan: Plan,
    sample: Sample,
    before: tuple[Sample, Posed] | None = None,
    *,
    hurried: bool = False,
    smooth: Collection[str] = (),
) -> Posed:
    """Solve all chains of a plan on the sampled frames. A chain that cannot be solved on a frame keeps its FK pose.

    Args:
        ob: the armature object.
        plan: what is solved, in which order.
        sample: the frames.
        before: another frame and its solution by the same plan. If F is 1, chains for which nothing has changed since
            are not solved again.
        hurried: see `solve_limbs`; do not pass the result on as `before`.
        smooth: see `solve_limbs`.
    """
    current = _Poses(ob, plan, sample)
    changes = None if before is None else Changes(plan, sample, before[0])
    may_move = plan.goals_are_moved
    outcomes = Outcomes(plan, len(sample.world))
    fk: dict[int, Limbs] = {}
    for w, whole in enumerate(plan.waves):
        wave, limbs = whole, None
        if before is not None and changes is not None:
            again, posed_anew = changes.concern(whole)
            if not again.all():
                current.keep(whole.some(~again), before[1], outcomes)
                wave = whole.some(again)
            if w in before[1].fk and not posed_anew.any():
                fk[w] = before[1].fk[w]
                limbs = fk[w].groups(again)
            if not again.any():
                continue
        goals = sample.goals[wave.chains]
        if may_move:
            for g, e in np.ndindex(wave.chains.shape):
                chain = plan.chains[wave.chains[g, e]]
                under_target, under_pole = plan.rides[wave.chains[g, e]]
                if under_target >= 0 and plan.moves(under_target):
                    moved = current.displacement(under_target)
                    goals.target[:, g, e] = _moved(moved, goals.target[:, g, e])
                    if chain.takes_rotation:
                        goals.rotation[:, g, e] = displaced_rotations(moved[:, :3, :3], goals.rotation[:, g, e])
                if under_pole >= 0 and plan.moves(under_pole):
                    goals.pole[:, g, e] = _moved(current.displacement(under_pole), goals.pole[:, g, e])
        if limbs is None:
            limbs = current.limbs(wave)
            if wave is whole and len(sample.world) == 1:
                fk[w] = limbs
        current.put(solve_limbs(limbs, members_of(wave, goals), outcomes, hurried=hurried, smooth=smooth))
    current.put_fk()
    return Posed(current.rows, outcomes, lambda chosen: current.poses[chosen], fk)


def with_ends_turned(ob: bpy.types.Object, plan: Plan, sample: Sample, rows: Row, outcomes: Outcomes) -> Row:
    """Return channels (F, k, 17) with unit quaternions, after turning end bones to their chains' targets."""
    current = _posed(ob, plan, sample, rows)
    for wave in plan.waves:
        limbs = current.limbs(wave)
        turns = wave.shape.is_end
        current.put(solve_limbs(limbs, members_of(wave, sample.goals[wave.chains]), outcomes) if turns else limbs)
    return current.rows


def misses(ob: bpy.types.Object, plan: Plan, sample: Sample) -> Floats:
    """Return how far (F, C) each chain's tip is from its target in the sampled pose, in chain lengths."""
    current = _Poses(ob, plan, sample)
    found = np.full(sample.goals.target.shape[:2], np.nan)
    for wave in plan.waves:
        limbs = current.limbs(wave)
        current.put(limbs)
        if not wave.shape.is_end:
            joints = limbs.joints()
            gaps = lengths_of(joints[:, wave.bones.shape[1] :] - members_of(wave, sample.goals[wave.chains]).target)
            found[:, wave.chains] = wave.as_frames(gaps / limbs.lengths(joints))
    return found


def fk_limbs(ob: bpy.types.Object, plan: Plan, sample: Sample, wave: Wave) -> Limbs:
    """Return the FK pose of a wave that depends on no other."""
    return _Poses(ob, plan, sample).limbs(wave)


def posed_by(ob: bpy.types.Object, plan: Plan, sample: Sample, rows: Row) -> Floats:
    """Return the pose matrices (F, k, 4, 4) of `Plan.live` for channels (F, k, 17) with unit quaternions."""
    current = _posed(ob, plan, sample, rows)
    for wave in plan.waves:
        current.put(current.limbs(wave))
    current.put_fk()
    return current.poses


def _posed(ob: bpy.types.Object, plan: Plan, sample: Sample, rows: Row) -> _Poses:
    """Return the pose given by channels (F, k, 17) with unit quaternions, with no wave posed yet."""
    basis = sample.basis.copy()
    turns = rows[..., FIELDS["rotation_quaternion"]].astype(np.float64)
    basis[..., :3, :3] = matrices(turns.T).transpose(3, 2, 0, 1) * rows[..., None, FIELDS["scale"]]
    return _Poses(ob, plan, replace(sample, channels=rows, basis=basis))


def _displaced(before: Floats, after: Floats) -> Floats:
    """Return the transformation between two poses of a bone (F, 4, 4), for anything that moves with it."""
    moved = times(after, inverse(before))
    flat = ~np.isfinite(moved).all(axis=(1, 2))
    if flat.any():
        moved[flat] = times(after[flat], flat_inverse(before[flat]))
    return moved


def _moved(moves: Floats, points: Floats) -> Floats:
    """Return points (F, 3) moved by matrices (F, 4, 4)."""
    return np.asarray(applied(moves[:, :3, :3], points) + moves[:, :3, 3])


class _Poses:
    """The pose of an armature on F frames while its chains are solved, one wave after the other."""

    def __init__(self, ob: bpy.types.Object, plan: Plan, sample: Sample) -> None:
        self.rows = sample.channels.copy()
        """(F, k, 17) channels of `Plan.live`."""
        self._poses = np.empty_like(sample.basis)
        self._put: list[Limbs] = []
        """Solved waves whose pose matrices are computed on demand."""
        self._ob = ob
        self._plan = plan
        self._basis = sample.basis
        self._sampled = {int(bone): sample.poses[:, i] for i, bone in enumerate(plan.sampled)}
        self._own = {int(bone): sample.sampled_basis[:, i] for i, bone in enumerate(plan.sampled)}
        self._known: dict[int, Floats] = {}

    @property
    def poses(self) -> Floats:
        """(F, k, 4, 4) the pose matrices of `Plan.live`, as far as they are solved."""
        for limbs in self._put:
            self._poses[:, limbs.wave.rows] = limbs.wave.as_frames(limbs.poses)
        self._put.clear()
        return self._poses

    def limbs(self, wave: Wave) -> Limbs:
        """Return the FK pose of a wave's groups, whose parents are already solved."""
        frames = len(self.rows)
        parents = self._plan.skeleton.parents[wave.bones[:, 0]].tolist()
        root = [np.broadcast_to(np.eye(4), (frames, 4, 4)) if p < 0 else self(p) for p in parents]
        group = np.repeat(np.arange(len(root)), frames)
        rows, basis = (wave.as_members(array[:, wave.rows]) for array in (self.rows, self._basis))
        reach = wave.reaches[group]
        for g, e in np.argwhere(wave.loose).tolist():
            reach[group == g, e] = self._reach(self._plan.chains[wave.chains[g, e]])
        return Limbs(self._ob, self._plan, wave, group, np.concatenate(root), rows, basis, reach)

    def _reach(self, chain: ChainPlan) -> Floats:
        """Return the position (F, 3) of the head of a chain's end bone, in the axes of the tip."""
        skeleton, tip, end = self._plan.skeleton, chain.bones[-1], chain.end
        assert end is not None
        local = self._basis[:, self._plan.rows[end]]
        parent = int(skeleton.parents[end])
        if parent == tip:
            return np.asarray(applied(skeleton.offsets[end], local[:, :, 3])[:, :3])
        # Mechanism bones between the two move rigidly with the tip.
        head = skeleton.to_pose(self._ob, end, local, self._sampled[parent])[:, :3, 3]
        found = _moved(inverse(self._sampled[tip]), head)
        return np.where(np.isfinite(found), found, chain.reach)

    def put(self, limbs: Limbs) -> None:
        """Set the pose of a wave's chains."""
        self.rows[:, limbs.wave.rows] = limbs.wave.as_frames(limbs.rows)
        if limbs.wave.shape.plain:
            self._put.append(limbs)
        else:  # Blender poses these; the armature may be gone later
            self._poses[:, limbs.wave.rows] = limbs.wave.as_frames(limbs.poses)

    def keep(self, wave: Wave, posed: Posed, outcomes: Outcomes) -> None:
        """Set the pose and the outcomes of a wave's chains to those of an earlier solution."""
        self.rows[:, wave.rows], self.poses[:, wave.rows] = posed.channels[:, wave.rows], posed.poses[:, wave.rows]
        for name in OUTCOMES:
            chosen = wave.rows if name == "at_limit" else wave.chains
            getattr(outcomes, name)[:, chosen] = getattr(posed.outcomes, name)[:, chosen]

    def put_fk(self) -> None:
        """Set the pose of the live bones that no chain poses, once all chains are solved."""
        for bone in self._plan.rows.keys() - self._plan.solved:
            self.poses[:, self._plan.rows[bone]] = self(bone)

    def displacement(self, bone: int) -> Floats:
        """Return the displacement (F, 4, 4) of a bone of `Plan.rides` since it was sampled, in armature space."""
        return _displaced(self._sampled[bone], self(bone))

    def __call__(self, bone: int) -> Floats:
        """Return the pose (F, 4, 4) of a solved or sampled bone."""
        if bone in self._plan.solved:
            return self.poses[:, self._plan.rows[bone]]
        if bone not in self._known:
            self._known[bone] = self._follow(bone)
        return self._known[bone]

    def _follow(self, bone: int) -> Floats:
        skeleton = self._plan.skeleton
        seen = self._sampled[bone]
        if not self._plan.moves(bone):
            return seen
        # A bone between two chains moves with its parent, which may have moved.
        parent = int(skeleton.parents[bone])
        if bone in self._plan.riding:
            return times(self.displacement(parent), seen)
        posed = skeleton.to_pose(self._ob, bone, self._own[bone], self(parent))
        flat = ~np.isfinite(posed).all(axis=(1, 2))
        if flat.any():
            posed[flat] = times(self.displacement(parent), seen)[flat]
        return posed


def members_of(wave: Wave, goals: Goals) -> Goals:
    """Reshape goals (F, G, E) of the groups of a wave to those of its members (G F, E)."""
    return Goals(**{name: wave.as_members(value) for name, value in vars(goals).items()})
