"""Solve the chains of an armature in order, for F frames at once: sampled arrays in, posed arrays out."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import repeat

import numpy as np
from bpy.types import Object

from ...core.channels import Row
from ...core.skeleton import flat_inverse, inverse, moved
from ...solve.maths.products import applied, lengths_of, times
from ...solve.maths.turns import transposed
from ...solve.problem import Aim, Bools, Floats, Ints
from ..plan.groups import ChainPlan, Wave
from ..plan.plan import Plan
from ..read.sample import Goals, Sample, displaced
from .alone import Input, LoneWave, Output
from .limb import Limbs
from .solving import Outcomes, solve_limbs


@dataclass(frozen=True)
class Posed:
    """The solved pose of the live bones of one armature on F frames."""

    channels: Row
    """(F, k, 17) channels of `Plan.live` in this pose."""
    outcomes: Outcomes
    """For each of `Plan.chains`."""
    poses_on: Callable[[slice | Ints], Floats]
    """Returns the pose matrices (f, k, 4, 4) of `Plan.live` in armature space, on some of the frames."""

    @cached_property
    def poses(self) -> Floats:
        """(F, k, 4, 4) pose matrices of `Plan.live` in armature space, on all frames."""
        return self.poses_on(slice(None))


@dataclass
class Last:
    """What the waves of a plan were solved from last on a single frame, and the solution: only changes are solved."""

    alone: dict[int, LoneWave | None] = field(default_factory=dict)
    """The waves whose chains are solved one by one, by their index in the plan; None for the others."""
    together: dict[tuple[int, bytes], tuple[Limbs, Goals, Limbs, Outcomes]] = field(default_factory=dict)
    """The groups that are solved together, by their wave and which ones they are: in FK, their goals, and solved."""


def pose(
    ob: Object,
    plan: Plan,
    sample: Sample,
    last: Last | None = None,
    *,
    hurried: bool = False,
    smooth: Collection[str] = (),
) -> Posed:
    """Solve all chains of a plan on the sampled frames. A chain that cannot be solved on a frame keeps its FK pose.

    Args:
        ob: the armature object.
        plan: what is solved, in which order.
        sample: the frames.
        last: if F is 1, the last solution by the same plan, which is replaced by this one.
        hurried: see `solve_limbs`.
        smooth: see `solve_limbs`.
    """
    current = _Poses(ob, plan, sample)
    outcomes = Outcomes(plan, len(sample.world))
    if len(sample.world) > 1 or smooth:
        for wave in plan.waves:
            limbs, goals = current.limbs(wave), current.goals(wave)
            if limbs.still is not None and goals.stand:
                first = outcomes.frames(slice(1))
                posed = solve_limbs(limbs.still, members_of(wave, goals.members(slice(1))), first, hurried=hurried)
                outcomes.keep(wave, first)
                current.put(posed.on_frames(limbs.group))
            else:
                goals = members_of(wave, goals)
                current.put(solve_limbs(limbs, goals, outcomes, hurried=hurried, smooth=smooth))
    else:
        last = Last() if last is None else last
        for w, wave in enumerate(plan.waves):
            if w not in last.alone:
                last.alone[w] = LoneWave.of(plan, wave)
            goals = current.goals(wave)
            left = current.solve_alone(last.alone[w], goals, outcomes, hurried=hurried)
            if left.any():
                current.solve_together(last, (w, left.tobytes()), wave.some(left), goals[left], outcomes, hurried)
    for bone in plan.rows.keys() - plan.solved:  # which no chain poses
        current.poses[:, plan.rows[bone]] = current(bone)
    return Posed(current.rows, outcomes, lambda chosen: current.poses[chosen])


def misses(ob: Object, plan: Plan, sample: Sample) -> Floats:
    """Return how far (F, C) each chain's tip is from its target in the sampled pose, in chain lengths."""
    current = _Poses(ob, plan, sample)
    found = np.full(sample.goals.target.shape[:2], np.nan)
    for wave in plan.waves:
        limbs = current.limbs(wave)
        current.put(limbs)
        if not wave.shape.is_end:
            joints = limbs.joints()
            gaps = lengths_of(joints[:, wave.bones.shape[1] :] - members_of(wave, sample.goals[wave.chains]).target)
            lengths = limbs.lengths(joints)  # of a chain without length nothing is known
            found[:, wave.chains] = wave.as_frames(gaps / np.where(lengths > 0.0, lengths, np.nan))
    return found


class _Poses:
    """The pose of an armature on F frames while its chains are solved, one wave after the other."""

    def __init__(self, ob: Object, plan: Plan, sample: Sample) -> None:
        self.rows = sample.channels.copy()
        """(F, k, 17) channels of `Plan.live`."""
        self._put: list[tuple[Ints, Callable[[], Floats]]] = []
        """Rows of solved bones, and what returns their pose matrices (F, ..., 4, 4)."""
        self._ob = ob
        self._plan = plan
        self._basis, self._goals, self._sample = sample.basis[:, plan.numbers.live], sample.goals, sample
        self._poses = np.empty_like(self._basis)
        self._known: dict[int, Floats] = {}
        self._first = _Poses(ob, plan, sample.frames(slice(1))) if len(self.rows) > 1 else None
        """The first of several frames."""

    @property
    def poses(self) -> Floats:
        """(F, k, 4, 4) the pose matrices of `Plan.live`, as far as they are solved."""
        for rows, poses in self._put:
            self._poses[:, rows] = poses()
        self._put.clear()
        return self._poses

    def limbs(self, wave: Wave) -> Limbs:
        """Return the FK pose of a wave's groups, whose parents are already solved."""
        frames = len(self.rows)
        group = np.repeat(np.arange(len(wave.rows)), frames)
        parents = self._plan.skeleton.parents[wave.bones[:, 0]].tolist()
        if self._first is not None and self._stands(wave, [parent for parent in parents if parent >= 0]):
            return self._first.limbs(wave).on_frames(group)
        root = [np.broadcast_to(np.eye(4), (frames, 4, 4)) if p < 0 else self(p) for p in parents]
        rows, basis = (wave.as_members(array[:, wave.rows]) for array in (self.rows, self._basis))
        reach = wave.reaches[group]
        for g, e in np.argwhere(wave.loose).tolist():
            reach[group == g, e] = self._reach(self._plan.chains[wave.chains[g, e]])
        return Limbs(self._ob, self._plan, wave, group, np.concatenate(root), rows, basis, reach)

    def _stands(self, wave: Wave, parents: list[int]) -> bool:
        """Whether a wave has the same FK pose on all frames, below parents that no solution moves."""
        if any(map(self._plan.moves, parents)) or wave.loose.any():
            return False
        sample, inputs = self._sample, self._plan.numbers
        own = (sample.channels, wave.rows), (sample.basis, inputs.live[wave.rows])
        above = sample.poses, np.array([inputs.places[parent] for parent in parents], dtype=np.int64)
        return all(one.strides[0] == 0 or (one[:, some] == one[:1, some]).all() for one, some in (*own, above))

    def _reach(self, chain: ChainPlan) -> Floats:
        """Return the position (F, 3) of the head of a chain's end bone, in the axes of the tip."""
        skeleton, tip, end = self._plan.skeleton, chain.bones[-1], chain.end
        assert end is not None
        local = self._basis[:, self._plan.rows[end]]
        parent = int(skeleton.parents[end])
        if parent == tip:
            return np.asarray(applied(skeleton.offsets[end], local[:, :, 3])[:, :3])
        # Mechanism bones between the two move rigidly with the tip.
        head = skeleton.to_pose(self._ob, end, local, self._sampled(parent))[:, :3, 3]
        found = moved(inverse(self._sampled(tip)), head)
        return np.where(np.isfinite(found), found, chain.reach)

    def goals(self, wave: Wave) -> Goals:
        """Return the goals (F, G, E) of a wave, where solved bones have moved them."""
        plan, goals = self._plan, self._goals[wave.chains]
        for g, e in np.ndindex(wave.chains.shape) if plan.goals_are_moved else ():
            chain = plan.chains[wave.chains[g, e]]
            under_target, under_pole = plan.rides[wave.chains[g, e]]
            if under_target >= 0 and plan.moves(under_target):
                move = self.displacement(under_target)
                goals.target[:, g, e] = moved(move, goals.target[:, g, e])
                if chain.takes_rotation:
                    goals.rotation[:, g, e] = displaced(move[:, :3, :3], goals.rotation[:, g, e])
            if under_pole >= 0 and plan.moves(under_pole):
                goals.pole[:, g, e] = moved(self.displacement(under_pole), goals.pole[:, g, e])
        return goals

    def solve_alone(self, alone: LoneWave | None, goals: Goals, outcomes: Outcomes, *, hurried: bool) -> Bools:
        """Solve the chains of a wave one by one on the only frame; return which groups (G,) are left."""
        left = np.ones(goals.target.shape[1], dtype=bool)
        if alone is None:
            return left
        wave = alone.wave
        channels, basis = self.rows[0, wave.rows].tolist(), self._basis[0, wave.rows].tolist()
        targets, settings = goals.target[0, :, 0].tolist(), goals.settings[0, :, 0].tolist()
        poles = goals.pole[0, :, 0].tolist() if wave.shape.poles[0] else repeat(None)
        rotations = map(transposed, goals.turned[0, :, 0].tolist()) if wave.shape.turns[0] else repeat(None)
        solved: list[Output] = []
        each = zip(alone.lone, targets, poles, rotations, settings, strict=False)
        for g, (lone, target, pole, rotation, numbers) in enumerate(each):
            angle, softness, push_limit, tolerance, influence, *_ = numbers
            if influence < 1.0:
                continue
            reach = self._reach(lone.chain)[0].tolist() if lone.chain.is_loose else lone.chain.reach
            root = None if lone.parent < 0 else self(lone.parent)[0].tolist()
            aim = Aim(target, pole, angle, rotation, softness, push_limit, tolerance)
            found = alone.solve(g, Input(root, channels[g], basis[g], reach), aim, hurried=hurried)
            if found is not None:
                left[g] = False
                posed, output = found
                solved.append(output)
                self._put.append((wave.rows[g], partial(posed.poses, output)))
        if solved:
            rows = wave.rows[~left]
            self.rows[0, rows] = [output.channels for output in solved]
            outcomes.put_alone(rows, wave.chains[~left, 0], solved)
        return left

    def solve_together(
        self, last: Last, key: tuple[int, bytes], wave: Wave, goals: Goals, outcomes: Outcomes, hurried: bool
    ) -> None:
        """Solve groups of a wave for goals (1, G, E), unless they were solved from the same before."""
        limbs, goals = self.limbs(wave), members_of(wave, goals)
        if key in last.together:
            fk, before, posed, ended = last.together[key]
            # The evaluated copy that an earlier solution read may be gone by now.
            if fk.ob == self._ob and fk.equals(limbs):
                limbs = fk  # what was computed of it is remembered
                if before.equals(goals):
                    outcomes.keep(wave, ended)
                    self.put(posed)
                    return
        posed = solve_limbs(limbs, goals, outcomes, hurried=hurried)
        self.put(posed)
        if not hurried:
            last.together[key] = limbs, goals, posed, outcomes

    def put(self, limbs: Limbs) -> None:
        """Set the pose of a wave's chains."""
        wave = limbs.wave
        self.rows[:, wave.rows] = wave.as_frames(limbs.rows)
        if wave.shape.plain:
            self._put.append((wave.rows, lambda: wave.as_frames(limbs.poses)))
        else:  # Blender poses these; the armature may be gone later
            self._poses[:, wave.rows] = wave.as_frames(limbs.poses)

    def displacement(self, bone: int) -> Floats:
        """Return how a bone, and what moves with it, was moved (F, 4, 4) since it was sampled, in armature space."""
        before, after = self._sampled(bone), self(bone)
        found = times(after, inverse(before))
        flat = ~np.isfinite(found).all(axis=(1, 2))
        if flat.any():
            found[flat] = times(after[flat], flat_inverse(before[flat]))
        return found

    def _sampled(self, bone: int) -> Floats:
        """Return the pose (F, 4, 4) in which a bone was sampled."""
        return self._sample.poses[:, self._plan.numbers.places[bone]]

    def __call__(self, bone: int) -> Floats:
        """Return the pose (F, 4, 4) of a solved or sampled bone."""
        if bone in self._plan.solved:
            return self.poses[:, self._plan.rows[bone]]
        if bone in self._known:
            return self._known[bone]
        found, parent = self._sampled(bone), int(self._plan.skeleton.parents[bone])
        if self._plan.moves(bone):  # a bone between two chains moves with its parent, which may have moved
            if bone in self._plan.riding:
                found = times(self.displacement(parent), found)
            else:
                own = self._sample.basis[:, self._plan.numbers.places[bone]]
                seen, found = found, self._plan.skeleton.to_pose(self._ob, bone, own, self(parent))
                flat = ~np.isfinite(found).all(axis=(1, 2))
                if flat.any():
                    found[flat] = times(self.displacement(parent), seen)[flat]
        self._known[bone] = found
        return found


def members_of(wave: Wave, goals: Goals) -> Goals:
    """Reshape goals (F, G, E) of the groups of a wave to those of its members (G F, E)."""
    return Goals(**{name: wave.as_members(value) for name, value in vars(goals).items()})
