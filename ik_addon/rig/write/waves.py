"""Solve the chains of an armature in order, for F frames at once: sampled arrays in, posed arrays out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ...pose.channels import FIELDS, Row
from ...pose.skeleton import inverse, orthonormal
from ...solve import Goal, Problem, Solution, Status, solve
from ...solve.problem import Bools, Floats, Ints
from ...solve.products import applied
from ...solve.rotations import matrices, norm
from ..plan.attachments import Carrier, Hold, uid_of
from ..plan.groups import Wave, paths
from ..plan.plan import Plan
from ..read.sample import Goals, Sample
from .limb import Limbs

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


OUTCOMES = ("status", "error", "iterations", "at_limit")


class Outcomes:
    """How the solves of all chains of a plan ended, on F frames."""

    def __init__(self, plan: Plan, frames: int) -> None:
        """Nothing is solved yet."""
        shape = frames, len(plan.chains)
        self.status = np.full(shape, Status.INVALID, dtype=np.int8)
        self.error = np.full(shape, np.nan)
        self.iterations = np.zeros(shape, dtype=np.int64)
        self.at_limit = np.zeros((frames, len(plan.live)), dtype=bool)
        """(F, k) which of `Plan.live` stand at a limit."""
        self._plan = plan

    def put(self, limbs: Limbs, solution: Solution, goals: Goals) -> None:
        """Set the outcomes of a wave, whose goals are (B, E)."""
        wave = limbs.wave
        lengths = limbs.lengths(solution.joints)
        distance = solution.error[:, None] if wave.shape.is_chain else solution.error
        with np.errstate(all="ignore"):
            error = distance / lengths
            reached = (solution.status != Status.INVALID)[:, None] & (error <= goals.tolerance)
        # A tree has one status: of its chains some may have arrived all the same.
        status = np.where(reached, Status.REACHED, solution.status[:, None])
        self.status[:, wave.chains] = _as_frames(status, wave)
        self.error[:, wave.chains] = _as_frames(error, wave)
        self.iterations[:, wave.chains] = _as_frames(np.broadcast_to(solution.iterations[:, None], error.shape), wave)
        self.at_limit[:, wave.rows] = _as_frames(solution.at_limit, wave)

    def put_frames(self, chosen: Bools, other: Outcomes) -> None:
        """Replace the outcomes on the chosen frames (F,) by others of the same chains."""
        for name in OUTCOMES:
            getattr(self, name)[chosen] = getattr(other, name)

    def frames(self, chosen: slice) -> Outcomes:
        """The outcomes on some of the frames alone."""
        some = Outcomes(self._plan, 0)
        for name in OUTCOMES:
            setattr(some, name, getattr(self, name)[chosen])
        return some

    def __getitem__(self, chain: int) -> Outcome:
        """The outcome of one chain, by its index in the plan."""
        rows = [self._plan.rows[bone] for bone in self._plan.chains[chain].bones]
        return Outcome(self.status[:, chain], self.error[:, chain], self.iterations[:, chain], self.at_limit[:, rows])


@dataclass(frozen=True)
class Posed:
    """The solved pose of the live bones of one armature on F frames."""

    channels: Row
    """(F, k, 17) channels of `Plan.live` that make this pose."""
    outcomes: Outcomes
    """One for each of `Plan.chains`."""
    moves: Moves
    """What the solution did to the bones of `Plan.followed`, and what was known of other armatures before."""
    poses_on: Callable[[slice | Ints], Floats]
    """(f, k, 4, 4) pose matrices of `Plan.live` in armature space, on some of the frames."""

    @cached_property
    def poses(self) -> Floats:
        """(F, k, 4, 4) the same on all frames."""
        return self.poses_on(slice(None))

    def frame(self, index: int) -> Posed:
        """One of the frames alone (F = 1), where no goal hangs on a bone."""
        chosen = slice(index, index + 1)
        return Posed(self.channels[chosen], self.outcomes.frames(chosen), {}, lambda some: self.poses_on(chosen)[some])


def pose(
    ob: bpy.types.Object,
    plan: Plan,
    sample: Sample,
    moves: Moves = MappingProxyType({}),
    before: tuple[Sample, Posed] | None = None,
) -> Posed:
    """Solve all chains of a plan on the sampled frames. A chain that cannot be solved on a frame keeps its FK pose.

    Args:
        ob: the armature object.
        plan: what is solved, in which order.
        sample: the frames.
        moves: of other armatures' bones that were solved before, in world space.
        before: a frame and its solution by the same plan, without such moves. Where F is 1, chains to which nothing
            differs from it are not solved again.
    """
    current = _Poses(ob, plan, sample)
    changes = None if before is None else _Changes(plan, sample, before[0])
    known = dict(moves)
    world = sample.world
    for hold in plan.root_holds:
        if hold.carrier in known:
            world = _taken(hold, known[hold.carrier], sample.world[:, :3, 3]) @ sample.world
            break
    to_object = inverse(world) if plan.carriers else world

    def displaced(holds: tuple[Hold, ...], points: Floats) -> Floats | None:
        """What became (F, 4, 4) of a goal at points (F, 3), all in object space; None: nothing."""
        rides = world is sample.world
        for hold in holds:
            carrier = hold.carrier
            if carrier.armature == uid_of(ob) and carrier.bone in plan.skeleton.names:
                bone = plan.skeleton.names.index(carrier.bone)
                if plan.moves(bone):
                    return _taken(hold, current.displacement(bone), points)
                rides = True
            elif carrier in known:
                moved = _taken(hold, known[carrier], _moved(sample.world, points))
                return to_object @ moved @ sample.world
        return None if rides else to_object @ sample.world

    outcomes = Outcomes(plan, len(sample.world))
    for whole in plan.waves:
        wave = whole
        if before is not None and changes is not None:
            again = changes.concern(whole)
            current.keep(whole.some(~again), before[1], outcomes)
            if not again.any():
                continue
            wave = whole.some(again)
        goals = sample.goals[wave.chains]
        if plan.carriers:
            for g, e in np.ndindex(wave.chains.shape):
                chain = plan.chains[wave.chains[g, e]]
                moved = displaced(chain.target_holds, goals.target[:, g, e])
                if moved is not None:
                    goals.target[:, g, e] = _moved(moved, goals.target[:, g, e])
                    if chain.turns:
                        goals.rotation[:, g, e] = orthonormal(moved[:, :3, :3] @ goals.rotation[:, g, e])
                moved = displaced(chain.pole_holds, goals.pole[:, g, e])
                if moved is not None:
                    goals.pole[:, g, e] = _moved(moved, goals.pole[:, g, e])
        current.put(_pose_limbs(current.limbs(wave), _members(goals), outcomes))
    current.put_fk()
    for bone in plan.followed if world is not sample.world else filter(plan.moves, plan.followed):
        known[Carrier(uid_of(ob), plan.skeleton.names[bone])] = current.displacement(bone, (sample.world, world))
    return Posed(current.rows, outcomes, known, lambda chosen: current.poses[chosen])


def fk_limbs(ob: bpy.types.Object, plan: Plan, sample: Sample, wave: Wave) -> Limbs:
    """The FK pose of a wave that hangs on no other."""
    return _Poses(ob, plan, sample).limbs(wave)


def posed_by(ob: bpy.types.Object, plan: Plan, sample: Sample, rows: Row) -> Floats:
    """Pose matrices (F, k, 4, 4) of `Plan.live` with unit quaternions, from channels (F, k, 17)."""
    basis = sample.basis.copy()
    turns = rows[..., FIELDS["rotation_quaternion"]].astype(np.float64)
    basis[..., :3, :3] = matrices(turns.T).transpose(3, 2, 0, 1) * rows[..., None, FIELDS["scale"]]
    current = _Poses(ob, plan, replace(sample, channels=rows, basis=basis))
    for wave in plan.waves:
        current.put(current.limbs(wave))
    current.put_fk()
    return current.poses


def _taken(hold: Hold, moves: Floats, points: Floats) -> Floats:
    """What becomes (F, 4, 4) of something at points (F, 3) when that moves which it hangs on."""
    if hold.turns:
        return moves
    shifts = np.repeat(np.eye(4)[None], len(points), axis=0)
    shifts[:, :3, 3] = _moved(moves, points) - points
    return shifts


def _moved(moves: Floats, points: Floats) -> Floats:
    """Points (F, 3) moved by matrices (F, 4, 4)."""
    return np.asarray(applied(moves[:, :3, :3], points) + moves[:, :3, 3])


class _Changes:
    """What differs between two frames, each by itself (F = 1)."""

    def __init__(self, plan: Plan, now: Sample, before: Sample) -> None:
        self._plan = plan
        self._everything = not (np.array_equal(now.world, before.world) and np.array_equal(now.poses, before.poses))
        self._rows = (now.channels != before.channels).any(axis=(0, 2))
        pairs = ((value, vars(before.goals)[name]) for name, value in vars(now.goals).items())
        self._goals = np.any([(a != b).any(axis=(0, *range(2, a.ndim))) for a, b in pairs], axis=0)
        self._solved: set[int] = set()

    def concern(self, wave: Wave) -> Bools:
        """Groups (G,) of a wave that must be solved again, waves in their order."""
        again = self._rows[wave.rows].any(axis=1) | self._goals[wave.chains].any(axis=1)
        if self._everything or (self._solved and any(map(self._plan.moves, self._plan.followed))):
            again[:] = True  # a goal may be carried by what is solved again
        for group, bones in enumerate(wave.bones.tolist()):
            again[group] |= not self._solved.isdisjoint(self._plan.skeleton.ancestors(bones[0]))
        self._solved.update(wave.bones[again].ravel().tolist())
        return again


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
        rows, basis = (_as_members(array[:, wave.rows]) for array in (self.rows, self._basis))
        return Limbs.fk(self._ob, self._plan, wave, group, np.concatenate(root), rows, basis)

    def put(self, limbs: Limbs) -> None:
        """Set the pose of a wave's chains."""
        self.rows[:, limbs.wave.rows] = _as_frames(limbs.rows, limbs.wave)
        self.poses[:, limbs.wave.rows] = _as_frames(limbs.poses, limbs.wave)

    def keep(self, wave: Wave, posed: Posed, outcomes: Outcomes) -> None:
        """Set the pose of a wave's chains, and how they ended, as they were posed before."""
        self.rows[:, wave.rows], self.poses[:, wave.rows] = posed.channels[:, wave.rows], posed.poses[:, wave.rows]
        for name in OUTCOMES:
            chosen = wave.rows if name == "at_limit" else wave.chains
            getattr(outcomes, name)[:, chosen] = getattr(posed.outcomes, name)[:, chosen]

    def put_fk(self) -> None:
        """Set the pose of the live bones that no chain poses now, once all chains are solved."""
        for bone in self._plan.rows.keys() - self._plan.solved:
            self.poses[:, self._plan.rows[bone]] = self(bone)

    def displacement(self, bone: int, worlds: tuple[Floats, Floats] | None = None) -> Floats:
        """What became (F, 4, 4) of a bone of `Plan.followed` since it was sampled, in armature space.

        Or in world space, with the world matrices of the armature then and now. Of what is flattened, and so shows no
        rotation, the way of its head.
        """
        before, after = self._sampled[bone], self(bone)
        if worlds is not None:
            before, after = worlds[0] @ before, worlds[1] @ after
        moved = np.asarray(after @ inverse(before))
        flat = ~np.isfinite(moved).all(axis=(1, 2))
        moved[flat] = np.eye(4)
        moved[flat, :3, 3] = (after - before)[flat, :3, 3]
        return moved

    def __call__(self, bone: int) -> Floats:
        """Pose (F, 4, 4) of a bone that is solved, or sampled."""
        if bone in self._plan.solved:
            return self.poses[:, self._plan.rows[bone]]
        if bone not in self._known:
            self._known[bone] = self._follow(bone)
        return self._known[bone]

    def _follow(self, bone: int) -> Floats:
        skeleton = self._plan.skeleton
        seen = self._sampled[bone]
        if self._plan.solved.isdisjoint(skeleton.ancestors(bone)):
            return seen
        # Between two chains: it stands to its parent as it was sampled, and the parent may have been moved.
        parent = int(skeleton.parents[bone])
        local = skeleton.to_basis(self._ob, bone, seen, self._sampled[parent])
        return skeleton.to_pose(self._ob, bone, local, self(parent))


def _as_members(array: Any) -> Any:
    """An array (F, G, ...) of the groups of a wave as that of its members (G F, ...), group by group."""
    return np.ascontiguousarray(array.swapaxes(0, 1)).reshape(-1, *array.shape[2:])


def _as_frames(members: Any, wave: Wave) -> Any:
    """The inverse of `_as_members`: (F, G, ...)."""
    return members.reshape(len(wave.rows), -1, *members.shape[1:]).swapaxes(0, 1)


def _members(goals: Goals) -> Goals:
    """Goals (F, G, E) of the groups of a wave as those of its members (G F, E)."""
    return Goals(**{name: _as_members(value) for name, value in vars(goals).items()})


def _pose_limbs(limbs: Limbs, goals: Goals, outcomes: Outcomes) -> Limbs:
    """Solve groups, whose goals are (B, E), put the solution into their channels and note what came of it."""
    solution, posed = _solve_once(limbs, goals)
    for _ in range(REFINEMENTS):
        missed = posed.misses(solution, WRITTEN_TOLERANCE)
        if not missed.any():
            break
        # Inherited non-uniform scale changes the lengths as the bones turn: go on from what became of the pose.
        better, again = _solve_once(posed.members(missed), goals.members(missed))
        # In the pose that came of it a chain may have no length any more: then it stays there.
        usable = better.status != Status.INVALID
        missed[missed] = usable
        posed.put(missed, again.members(usable))
        for name in ("joints", "error", "status", "at_limit"):
            getattr(solution, name)[missed] = getattr(better, name)[usable]
    else:
        missed = posed.misses(solution, WRITTEN_TOLERANCE)
    if missed.any():
        _tell_the_truth(solution, posed, goals, missed)
    outcomes.put(limbs, solution, goals)
    if (goals.influence < 1.0).any():
        posed = posed.blended(limbs, _influence(limbs, goals))
    return posed


def _tell_the_truth(solution: Solution, posed: Limbs, goals: Goals, missed: Bools) -> None:
    """Set how a solve ended where the pose that came of it is another one, for the members that `missed` (B,)."""
    joints = posed.joints()[:, posed.wave.bones.shape[1] :]
    distances = norm((joints - goals.target).T).T
    solution.error[missed] = (distances if solution.error.ndim == 2 else distances[:, 0])[missed]
    away = (distances > goals.tolerance * posed.lengths(posed.joints())).any(axis=1)
    solution.status[missed & away & (solution.status == Status.REACHED)] = Status.NOT_CONVERGED


def _solve_once(limbs: Limbs, goals: Goals) -> tuple[Solution, Limbs]:
    shape, frames = limbs.wave.shape, limbs.frames()
    tree = not shape.is_chain
    wanted = [
        Goal(
            target=goals.target[:, e],
            pole=goals.pole[:, e] if shape.poles[e] else None,
            pole_angle=goals.pole_angle[:, e],
            rotation=goals.rotation[:, e] if shape.turns[e] else None,
            segment=shape.segments[e] if tree else None,
            weight=shape.weights[e],
        )
        for e in range(len(shape.segments))
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
            softness=0.0 if tree else goals.softness[:, 0],
            push_limit=goals.push_limit[:, 0],
            stretch_weights=np.array(shape.stretch_weights),
            tolerance=goals.tolerance.min(axis=1),
            iterations=shape.iterations,
            limits=limbs.limits(),
            bend_side=limbs.bend_side(frames),
            plane=limbs.plane(),
            stiffness=None if shape.stiffness is None else np.array(shape.stiffness),
            bend_lead=shape.bend_lead,
        )
    )
    return solution, limbs.solved(solution.rotations @ frames, solution)


def _influence(limbs: Limbs, goals: Goals) -> Floats:
    """Influence (B, n) on each bone: that of its chain, the greatest where chains share it."""
    shape = limbs.wave.shape
    influence = np.zeros((len(limbs.group), len(shape.parents)))
    for e, path in enumerate(paths(shape.parents, shape.segments)):
        own = list(path[:-1])
        influence[:, own] = np.maximum(influence[:, own], goals.influence[:, e, None])
    return influence
