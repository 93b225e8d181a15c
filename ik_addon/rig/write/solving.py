"""Solve the chains or trees of one wave: FK limbs and their goals in, solved limbs and how the solves ended out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...solve import Goal, Known, OutOfReach, Problem, Solution, Status, check, solve
from ...solve.limb.end_rotation import turned
from ...solve.maths.products import times, times_back
from ...solve.maths.rotations import norm
from ...solve.problem import Bools, Floats, Ints
from ...solve.smooth import smoothed
from ..plan.groups import Wave, paths
from ..plan.plan import Plan
from ..read.sample import Goals
from .alone import Output
from .limb import SINGLE_STEPS, WRITTEN_TOLERANCE, Limbs, once

REFINEMENTS = 4
"""Maximum number of times a chain is solved again if inherited scale makes the written pose miss the solved one."""
CLEARLY_NEARER = 0.1
"""Solving again has helped if it leaves no more than this fraction of the first miss."""


def solve_limbs(
    limbs: Limbs, goals: Goals, outcomes: Outcomes, *, hurried: bool = False, smooth: Collection[str] = ()
) -> Limbs:
    """Solve groups for goals (B, E), write the solution to their channels and record the outcomes.

    If `hurried`, solvers that search take only their first attempt. Chains whose tips are in `smooth`, and trees
    whose chains all are, are smoothed over the frames: of the solutions found, those with which bones turn least from
    frame to frame are taken.
    """
    if limbs.wave.shape.is_end:
        return _turned_ends(limbs, goals, outcomes)
    solution, posed = _solve_once(limbs, goals, hurried, smooth=smooth)
    if not limbs.is_exact():
        posed, solution = _refined(posed, solution, goals, hurried)
    outcomes.put(limbs, solution, goals)
    if (goals.value.influence < 1.0).any():
        # Of each bone: that of its chain, or the largest if chains share it.
        shape, influence = limbs.wave.shape, np.zeros(limbs.rows.shape[:2])
        for e, path in enumerate(paths(shape.parents, shape.segments)):
            own = list(path[:-1])
            influence[:, own] = np.maximum(influence[:, own], goals.value.influence[:, e, None])
        posed = posed.blended(limbs, influence)
    return posed


def _refined(limbs: Limbs, solution: Solution, goals: Goals, hurried: bool) -> tuple[Limbs, Solution]:
    """Solve members again, starting from their written pose, if that pose missed the solved one.

    Inherited scale that is not uniform changes the lengths as bones turn. If solving again hardly helps, as below bones
    that are nearly flat, each time would only amplify rounding errors: such members keep their first pose. The outcome
    of those that still miss is that of the written pose.
    """
    allowed = WRITTEN_TOLERANCE * limbs.length()
    gaps = limbs.gaps(solution)
    missed = np.asarray((gaps > allowed).any(axis=1))
    if not missed.any():
        return limbs, solution
    everyone = np.ones(len(gaps), dtype=bool)
    posed, refined = limbs.members(everyone), solution.members(everyone)
    for _ in range(REFINEMENTS):
        better, again = _solve_once(posed.members(missed), goals.members(missed), hurried)
        # In its written pose a chain may have no length left; such a member keeps that pose.
        usable = better.status != Status.INVALID
        missed = missed.copy()
        missed[missed] = usable
        posed.put(missed, again.members(usable))
        for name in ("joints", "error", "status", "at_limit"):
            getattr(refined, name)[missed] = getattr(better, name)[usable]
        missed = np.asarray((posed.gaps(refined) > allowed).any(axis=1))
        if not missed.any():
            break
    worst, now = gaps.max(axis=1), posed.gaps(refined).max(axis=1)
    astray = missed & (now > CLEARLY_NEARER * worst)
    if astray.any():
        posed.put(astray, limbs.members(astray))
        refined = refined.replaced(astray, solution.members(astray))
    if missed.any():
        joints = posed.joints()
        distances = norm((joints[:, posed.wave.bones.shape[1] :] - goals.target).T).T
        refined.error[missed] = (distances if refined.error.ndim == 2 else distances[:, 0])[missed]
        away = (distances > goals.value.tolerance * posed.lengths(joints)).any(axis=1)
        refined.status[missed & away & (refined.status == Status.REACHED)] = Status.NOT_CONVERGED
    return posed, refined


@once
def tips_of(limbs: Limbs) -> tuple[Floats, Floats]:
    """Return the FK positions of the tips (B, E, 3), and how near (B, 1) a target counts as on the tip."""
    joints = limbs.skew().without(limbs.joints())
    sizes = np.maximum(np.abs(joints).max(axis=(1, 2)), np.finfo(np.float32).tiny).astype(np.float32)
    near = SINGLE_STEPS * np.spacing(sizes)
    return joints[:, limbs.wave.bones.shape[1] :], near.astype(np.float64)[:, None]


def goals_of(limbs: Limbs, goals: Goals) -> list[Goal]:
    """Return the solver's goals for limbs, from the goals of their chains (B, E)."""
    shape, (tips, near) = limbs.wave.shape, tips_of(limbs)
    targets = limbs.skew().without(goals.target)
    with np.errstate(invalid="ignore"):
        stand = np.abs(targets - tips).max(axis=2) <= near
    if stand.any():
        targets = np.where(stand[:, :, None], tips, targets)
    return [
        Goal(
            target=targets[:, e],
            pole=goals.pole[:, e] if shape.poles[e] else None,
            pole_angle=goals.value.pole_angle[:, e],
            rotation=goals.turned[:, e] if shape.turns[e] else None,
            segment=None if shape.is_chain else shape.segments[e],
            weight=shape.weights[e],
        )
        for e in range(len(shape.segments))
    ]


def fixed(limbs: Limbs, first: Goal, *others: Goal) -> tuple[Problem, Known | None]:
    """Return the problem of limbs with any goals, which are to be replaced, and what `check` found out about it."""
    if "fixed" not in limbs.remembered:
        shape = limbs.wave.shape
        problem = Problem(
            joints=limbs.skew().without(limbs.joints()),
            frames=limbs.frames(),
            goal=first,
            others=others,
            parents=None if shape.is_chain else np.array(shape.parents),
            limits=limbs.limits(),
            bend_side=limbs.bend_side(),
            folds=limbs.folds(),
            plane=limbs.plane(),
            **shape.given(),
        )
        limbs.remembered["fixed"] = problem, check(problem)
    found: tuple[Problem, Known | None] = limbs.remembered["fixed"]
    return found


def _allowed(values: Floats, most: float = np.inf) -> Floats:
    """Return settings, NaN where a script has stored what is not allowed: other limbs are solved nevertheless."""
    return np.where((values >= 0.0) & (values <= most), values, np.nan)


def _solve_once(limbs: Limbs, goals: Goals, hurried: bool, *, smooth: Collection[str] = ()) -> tuple[Solution, Limbs]:
    first, *others = goals_of(limbs, goals)
    (problem, known), frames = fixed(limbs, first, *others), limbs.frames()
    asked = {
        "goal": first,
        "others": tuple(others),
        "softness": _allowed(goals.value.softness[:, 0], 1.0) if limbs.wave.shape.is_chain else 0.0,
        "push_limit": _allowed(goals.value.push_limit[:, 0]),
        "tolerance": _allowed(goals.value.tolerance.min(axis=1)),
        "is_first_attempt": hurried,
    }
    problem = Problem(**{**vars(problem), **asked})
    solution, chains = solve(problem, known), limbs.plan.chains
    among = [all(chains[chain].tip in smooth for chain in group) for group in limbs.wave.chains.tolist()]
    if any(among):
        own = np.array(among)[limbs.group]
        clips = smoothed(problem.members(own), solution.members(own), len(frames) // len(limbs.wave.bones))
        solution = solution.replaced(own, clips)
    solution = replace(solution, joints=limbs.skew().put_on(solution.joints))
    return solution, limbs.solved(times(solution.rotations, frames), solution)


# ---- end bones


def _turned_ends(limbs: Limbs, goals: Goals, outcomes: Outcomes) -> Limbs:
    """Turn end bones, hands and feet, to goals (B, 1), write their channels and record which are at a limit.

    They take the orientation of their chain's target once the chain is posed. An end bone whose chain could not be
    solved keeps its FK pose.
    """
    wave, frames = limbs.wave, limbs.frames()[:, 0]
    limits = limbs.limits()
    if limits is not None and not wave.shape.inherits[0]:
        limits = replace(limits, root=np.broadcast_to(np.eye(3), limits.root.shape))
    wanted = goals.turned[:, 0]
    usable = np.isfinite(wanted).all(axis=(1, 2)) & np.isfinite(frames).all(axis=(1, 2))
    usable &= wave.as_members(outcomes.status[:, wave.chains])[:, 0] != Status.INVALID
    if limits is not None:  # below a bone that is scaled flat the limits have no axes
        usable &= np.isfinite(limits.root).all(axis=(1, 2))
        limits = replace(limits, root=np.where(usable[:, None, None], limits.root, np.eye(3)))
    upright = np.where(usable[:, None, None], wanted, np.eye(3))
    found, at_limit = turned(np.where(usable[:, None, None], frames, np.eye(3)), upright, limits)
    count = len(frames)
    solution = Solution(
        joints=limbs.joints(),
        rotations=times_back(found, frames)[:, None],
        stretch=np.ones((count, 1)),
        error=np.zeros(count),
        status=np.where(usable, Status.REACHED, Status.INVALID).astype(np.int8),
        iterations=np.zeros(count, dtype=np.int64),
        at_limit=at_limit[:, None],
    )
    outcomes.at_limit[:, wave.rows] = wave.as_frames((at_limit & usable)[:, None])
    posed = limbs.solved(found[:, None], solution)
    return posed.blended(limbs, goals.value.influence) if (goals.value.influence < 1.0).any() else posed


# ---- outcomes


class Outcomes:
    """How the solves of all chains of a plan ended, on F frames."""

    def __init__(self, plan: Plan, frames: int) -> None:
        """Begin with nothing solved."""
        shape = frames, len(plan.chains)
        self.status: NDArray[np.int8] = np.full(shape, Status.INVALID, dtype=np.int8)
        """(F, C) values of `Status`."""
        self.error: Floats = np.full(shape, np.nan)
        """(F, C) distance from effector to target, in chain lengths; NaN where INVALID."""
        self.iterations: Ints = np.zeros(shape, dtype=np.int64)
        """(F, C) number of solver steps."""
        self.at_limit: Bools = np.zeros((frames, len(plan.live)), dtype=bool)
        """(F, k) which bones of `Plan.live` are at a limit."""

    def put(self, limbs: Limbs, solution: Solution, goals: Goals) -> None:
        """Set the outcomes of a wave, whose goals are (B, E)."""
        wave = limbs.wave
        lengths, rigid = limbs.length(), limbs.rigid()
        if wave.shape.out_of_reach is OutOfReach.STRETCH or not rigid.any():
            lengths = limbs.lengths(solution.joints)
        elif not rigid.all():  # rigid chains keep their FK lengths
            lengths = np.where(rigid[:, None], lengths, limbs.lengths(solution.joints))
        distance = solution.error[:, None] if wave.shape.is_chain else solution.error
        with np.errstate(all="ignore"):
            error = distance / lengths
        # A tree has one status, but some of its chains may have reached their targets.
        reached, own = error <= goals.value.tolerance, solution.status[:, None]
        status = np.where(reached & (own != Status.INVALID), np.int8(Status.REACHED), own)
        self.status[:, wave.chains] = wave.as_frames(status)
        self.error[:, wave.chains] = wave.as_frames(error)
        self.iterations[:, wave.chains] = wave.as_frames(solution.iterations[:, None])
        self.at_limit[:, wave.rows] = wave.as_frames(solution.at_limit)

    def put_alone(self, rows: Ints, chains: Ints, found: Sequence[Output]) -> None:
        """Set the outcomes of single chains (G,) on the only frame; `rows` (G, n) are those of their bones."""
        status, error, iterations, at_limit = zip(*(each[2:] for each in found), strict=True)
        self.status[0, chains], self.error[0, chains], self.iterations[0, chains] = status, error, iterations
        self.at_limit[0, rows] = at_limit

    def keep(self, wave: Wave, before: Outcomes) -> None:
        """Set the outcomes of a wave's groups to earlier ones."""
        for name, own in vars(self).items():
            chosen = wave.rows if name == "at_limit" else wave.chains
            own[:, chosen] = getattr(before, name)[:, chosen]

    def frames(self, chosen: slice) -> Outcomes:
        """Return the outcomes on only some of the frames."""
        some = copy(self)
        vars(some).update({name: own[chosen] for name, own in vars(self).items()})
        return some
