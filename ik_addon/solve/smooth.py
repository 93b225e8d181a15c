"""Choosing, among the solutions of each frame of a clip, those with which bones turn least from frame to frame.

Where the solved sequence jumps, alternative solutions are followed along the frames: from before the jump onward, and
from after it backward. Each frame is solved from the pose of its neighbor instead of the FK pose, moved a little
towards the existing solution, until the two meet. The shortest path through all solutions found is taken (as in
IKLink). No solution misses its goals by more than the one it replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import numpy as np

from . import Goal, Problem, Solution, pole_angle, solve
from .maths.products import back_times, determinants, lengths_of, times, times_back
from .maths.rotations import about_vectors, inverse, matrices, multiply, norm, quaternions, vectors_of
from .maths.runs import runs
from .problem import Bools, Floats, Ints, chain_lengths
from .solver import posed_by

ABRUPT = np.radians(5.0)
"""A turn that exceeds those of the frames around it by this angle, in radians, is a jump."""
AROUND = 4
"""How many frames on each side count as around it."""
PACE = np.radians(4.0)
"""Radians per frame by which a followed solution moves towards the existing one."""
LONGEST = 60
"""Maximum number of frames for which a solution is followed."""
MET = np.radians(0.3)
"""Solutions that differ by no more than this angle, in radians, are the same."""
ROUNDS = 2
"""Number of times the chosen sequence is searched for jumps."""
FEW, SHARE = 10, 60
"""Number of jumps of a clip worked on per round, largest first; or one per so many frames, if that is more."""
REACHED = 3e-7
"""Distance a solver leaves when it reaches its target, in chain lengths."""
ALIKE = 1e-4
"""Radians by which a solution may miss an orientation or a pole by more than the one it replaces."""


def smoothed(problem: Problem, solution: Solution, frames: int) -> Solution:
    """Return the solution, for clips of `frames` frames one after the other, that turns bones least.

    Args:
        problem: its members are the frames of all clips.
        solution: the solution of each frame by itself.
        frames: the number of frames of each clip.
    """
    given, count = solution, len(solution.status)
    for _ in range(ROUNDS):
        own = _orientations(problem, solution)
        jumps = _jumps(_turns_in(own, frames))
        if not len(jumps):
            break
        found, members = _Clip(problem, solution, frames).alternatives(jumps)
        orientations = np.concatenate([own, _orientations(problem.members(members), found)])
        chosen = _shortest(orientations, members, frames)
        is_new = chosen >= count
        if not is_new.any():
            break
        solution = solution.replaced(is_new, found.members(chosen[is_new] - count))
    before, after = (_turns_in(_orientations(problem, own), frames).max(axis=1) for own in (given, solution))
    worse = np.repeat(after > before, frames)
    return solution.replaced(worse, given.members(worse))


def _jumps(turns: Floats) -> Ints:
    """Return the members at which a turn (G, F) to the clip's next frame is a jump; of each clip only the largest."""
    padded = np.pad(turns, ((0, 0), (AROUND, AROUND)), mode="edge")
    around = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * AROUND + 1, axis=1), axis=-1)
    clips, frames = turns.shape
    largest = np.argsort(-turns, axis=1, kind="stable")[:, : max(FEW, frames // SHARE)]
    chosen = (largest + frames * np.arange(clips)[:, None]).ravel()
    found: Ints = chosen[(turns > ABRUPT + around).ravel()[chosen]]
    return found


@dataclass(frozen=True)
class _Clip:
    """Clips of `frames` frames each, and their solution."""

    problem: Problem
    solution: Solution
    frames: int

    def alternatives(self, jumps: Ints) -> tuple[Solution, Ints]:
        """Return alternative solutions that lead over jumps (J,) to the next frame, and the members (K,) they solve."""
        found, members = [self.solution.members(jumps[:0])], [jumps[:0]]
        for step in (1, -1):
            for some, own in self._followed(jumps if step > 0 else jumps + 1, step):
                found.append(some)
                members.append(own)
        names = [field.name for field in fields(Solution)]
        joined = {name: np.concatenate([getattr(some, name) for some in found]) for name in names}
        return Solution(**joined), np.concatenate(members)

    def _followed(self, start: Ints, step: int) -> list[tuple[Solution, Ints]]:
        """Return the solutions found by following those of the members `start`, one frame per step."""
        found = []
        own = quaternions(self._in_own_axes(start, self.solution.rotations[start]))
        last = start // self.frames * self.frames + (self.frames - 1 if step > 0 else 0)
        for _ in range(LONGEST):
            goes_on = start != last
            start, own, last = start[goes_on] + step, own[..., goes_on], last[goes_on]
            if not len(start):
                break
            there = quaternions(self._in_own_axes(start, self.solution.rotations[start]))
            own = _nearer(own, there)
            frames = np.asarray(self.problem.frames, dtype=np.float64)[start]
            begin = times_back(times(frames, matrices(own).transpose(3, 2, 0, 1)), frames)
            some = self.problem.members(start)
            solved = solve(replace(posed_by(some, begin), is_first_attempt=True))
            solved = replace(solved, rotations=times(solved.rotations, begin))
            own = quaternions(self._in_own_axes(start, solved.rotations))
            is_new = _angles(own, there).max(axis=0) > MET
            goes_on = is_new & does_as_well(some, solved, self.solution.members(start))
            start, own, last = start[goes_on], own[..., goes_on], last[goes_on]
            found.append((solved.members(goes_on), start))
        return found

    def _in_own_axes(self, members: Ints, rotations: Floats) -> Floats:
        """Return rotations of bones in their own FK axes, as matrices (3, 3, n, B)."""
        frames = np.asarray(self.problem.frames, dtype=np.float64)[members]
        return back_times(frames, times(rotations, frames)).transpose(2, 3, 1, 0)


def _nearer(own: Floats, there: Floats) -> Floats:
    """Return rotations (4, n, B) of bones moved towards others, by at most `PACE`."""
    away = vectors_of(multiply(inverse(own), there))
    farthest = norm(away).max(axis=0)
    return multiply(own, about_vectors(away * np.minimum(1.0, PACE / np.maximum(farthest, 1e-9))))


def _angles(a: Floats, b: Floats) -> Floats:
    """Return the angles (n, B) between rotations (4, n, B)."""
    return norm(vectors_of(multiply(inverse(a), b)))


def _orientations(problem: Problem, solution: Solution) -> Floats:
    """Return quaternions (B, n, 4) of the solved bones; mirrored bones have left-handed axes, which are negated."""
    frames = times(solution.rotations, np.asarray(problem.frames, dtype=np.float64))
    upright = frames * np.sign(determinants(frames))[..., None, None]
    return quaternions(upright.transpose(2, 3, 1, 0)).T


def _turns_in(orientations: Floats, frames: int) -> Floats:
    """Return the largest angles (G, F) by which a bone turns from each frame of a clip to the next; zero at its end."""
    turns = np.append(_turns((orientations[1:] * orientations[:-1]).sum(axis=-1)).max(axis=1), 0.0)
    turns[frames - 1 :: frames] = 0.0
    return turns.reshape(-1, frames)


def _turns(cosines: Floats) -> Floats:
    """Return the angles between orientations from the dot products of their quaternions."""
    return 2.0 * np.asarray(np.arccos(np.minimum(np.abs(cosines), 1.0)))


def _shortest(orientations: Floats, members: Ints, frames: int) -> Ints:
    """Return which solution of each member turns least from frame to frame.

    Args:
        orientations: (B + K, n, 4) of the bones in the current solution of B members, and in K alternatives.
        members: (K,) the member that each alternative solves.
        frames: the number of frames of each clip.
    """
    count = len(orientations) - len(members)
    layers = [[member] for member in range(count)]
    for other, member in enumerate(members.tolist(), start=count):
        layers[member].append(other)

    def cost(before: Ints, after: Ints) -> Floats:
        cosines = np.einsum("ani,bni->abn", orientations[before], orientations[after])
        return np.asarray((_turns(cosines) ** 2).sum(axis=2) ** 2)

    chosen = np.arange(count)
    for first in range(0, count, frames):
        several = np.array([len(layer) > 1 for layer in layers[first : first + frames]])
        for start, end in runs(several):
            # The frames just outside have a single solution, which fixes both ends of the path.
            around = np.s_[first + max(start - 1, 0) : first + min(end + 1, frames)]
            chosen[around] = shortest([np.array(layer) for layer in layers[around]], cost)
    return chosen


def does_as_well(problem: Problem, found: Solution, present: Solution) -> Bools:
    """Return whether (B,) a solution meets the goals of a problem as well as the current one."""
    longest = chain_lengths(problem).max(axis=0)

    def is_near(new: Floats, old: Floats) -> Bools:
        slack = REACHED * (longest if new.ndim == 1 else longest[:, None])
        good = np.asarray(new <= np.maximum(old, slack))
        return np.asarray(good if good.ndim == 1 else good.all(axis=1))

    as_well = (found.status == present.status) & is_near(found.error, present.error)
    pushed = [lengths_of(solution.joints[:, 0] - np.asarray(problem.joints)[:, 0]) for solution in (found, present)]
    as_well &= is_near(*pushed)
    is_chain = problem.parents is None and not problem.others
    for goal in problem.goals:
        if goal.rotation is not None:
            as_well &= _turned_away(problem, goal, found) <= _turned_away(problem, goal, present) + ALIKE
        if goal.pole is not None:
            if not is_chain:
                return np.zeros(len(as_well), dtype=bool)
            as_well &= _rolled_away(problem, goal, found) <= _rolled_away(problem, goal, present) + ALIKE
    return np.asarray(as_well)


def _turned_away(problem: Problem, goal: Goal, solution: Solution) -> Floats:
    """Return the angles (B,) between the bone of a goal and its wanted orientation."""
    bone = -1 if goal.segment is None else goal.segment
    frames = times(solution.rotations[:, bone], np.asarray(problem.frames, dtype=np.float64)[:, bone])
    away = times_back(frames, np.asarray(goal.rotation, dtype=np.float64))
    return lengths_of(vectors_of(quaternions(away.transpose(1, 2, 0))).T)


def _rolled_away(problem: Problem, goal: Goal, solution: Solution) -> Floats:
    """Return the angles (B,) between the bend of a chain and its pole."""
    assert goal.pole is not None
    frames = times(solution.rotations, np.asarray(problem.frames, dtype=np.float64))
    needed = pole_angle(solution.joints, frames, goal.target, goal.pole)
    wanted = 0.0 if goal.pole_angle is None else goal.pole_angle
    return np.asarray(np.abs((needed - wanted + np.pi) % (2.0 * np.pi) - np.pi))


def shortest(layers: Sequence[Ints], cost: Callable[[Ints, Ints], Floats]) -> Ints:
    """Return the candidate of each layer on the path whose steps have the least total cost.

    Args:
        layers: the candidates' numbers, one array (K,) per layer, none of them empty.
        cost: the cost (K, L) of the steps between candidates (K,) and those (L,) of the next layer.
    """
    total, came_from = np.zeros(len(layers[0])), []
    for before, after in pairwise(layers):
        sums = total[:, None] + cost(before, after)
        best = sums.argmin(axis=0)
        came_from.append(best)
        total = sums[best, np.arange(len(after))]
    place = int(total.argmin())
    path = [int(layers[-1][place])]
    for layer, best in zip(layers[-2::-1], came_from[::-1], strict=True):
        place = int(best[place])
        path.append(int(layer[place]))
    return np.array(path[::-1], dtype=np.int64)
