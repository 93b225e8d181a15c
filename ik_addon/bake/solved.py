"""The solved frames of a bake: what is keyed, in single precision, and what the report tells."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..chains.current_pose import largest_turn
from ..core import keyframes
from ..core.channels import FIELDS, WIDTH, Row, rotation_field
from ..core.transforms import nearest, turns
from ..live.reports import NEAR, has_reached
from ..rig.plan.plan import Plan
from ..rig.write.waves import Posed
from ..solve import Status
from ..solve.problem import Floats, Ints
from .bake_report import BakeReport, ChainReport, LimitReport

PARTS = 96
"""Maximum number of parts of the range for which the report says how fast joints turn."""
USED = 1e-6
"""Minimum change for which a pushed root (in chain lengths) or a stretched bone (as a factor) is keyed."""


class Solved:
    """Channels, outcomes and poses of the baked chains of a plan, on F frames."""

    def __init__(self, plan: Plan, baked: Sequence[str], frames: int, played: Sequence[int]) -> None:
        """Begin without any solved frame.

        Args:
            plan: the plan of the chains.
            baked: tip bones of the chains that are keyed.
            frames: the number F of frames.
            played: indices of the frames, ascending, on which playback will be compared.
        """
        self._plan = plan
        self.baked = baked
        """Tip bones of the chains that are keyed."""
        self._bones = _bones_of(plan, baked)
        self.rows: Ints = np.array([plan.rows[bone] for bone in self._bones], dtype=np.int64)
        """(n,) positions in `Plan.live` of the bones that are keyed."""
        lengths = {bone: plan.length(tip) for tip in baked for bone in plan.paths[tip]}
        self._lengths = np.array([lengths[bone] for bone in self._bones])
        self._names = [plan.skeleton.names[bone] for bone in self._bones]
        self._modes = [plan.modes[row] for row in self.rows.tolist()]
        self.played = np.array(played, dtype=np.int64)
        self.poses = np.empty((len(played), len(self.rows), 3, 4), dtype=np.float32)
        """(P, n, 3, 4) pose matrices, without their last row, on the P `played` frames."""
        self._status = np.full((frames, len(baked)), Status.INVALID, dtype=np.int8)
        self.errors = np.full((frames, len(baked)), np.nan)
        """(F, C) distance of each chain from its target, in chain lengths; NaN where it can't be solved."""
        self._blended = np.zeros((frames, len(baked)), dtype=bool)
        self._at_limit = np.zeros(len(plan.live), dtype=np.int64)
        self._live_turn: float | None = None
        self._channels = np.empty((frames, len(self.rows), WIDTH), dtype=np.float32)
        self._changes = np.zeros((len(self.rows), WIDTH), dtype=np.float32)
        """(n, 17) the largest differences from the FK pose."""

    def put(self, start: int, fk: Row, influence: Floats, posed: Posed, plan: Plan) -> None:
        """Add a batch of frames (b, ...) that begins at the index `start`, solved with this plan.

        Where the influence (b, C) of a chain is below 1, no target counts.
        """
        batch = slice(start, start + len(fk))
        found = self._channels[batch] = posed.channels[:, self.rows]
        self._changes = np.maximum(self._changes, np.abs(found - fk[:, self.rows]).max(axis=0))
        own = slice(*np.searchsorted(self.played, (batch.start, batch.stop)))
        if own.start < own.stop:
            self.poses[own] = posed.poses_on(self.played[own] - start)[:, self.rows, :3]
        for c, keyed in self._own(plan):
            self._status[batch, keyed] = posed.outcomes.status[:, c]
            self.errors[batch, keyed] = posed.outcomes.error[:, c]
            self._blended[batch, keyed] = influence[:, c] < 1.0
        self._at_limit += posed.outcomes.at_limit.sum(axis=0)

    def _own(self, plan: Plan) -> list[tuple[int, int]]:
        """Return the indices of the keyed chains among those of a plan, each with that among the keyed ones."""
        return [(c, self.baked.index(chain.tip)) for c, chain in enumerate(plan.chains) if chain.tip in self.baked]

    def note_live(self, posed: Posed, frames: Sequence[int]) -> None:
        """Remember how fast joints turn in the live solution of all frames, when another one is baked."""
        self._live_turn = float(self._turns(frames, posed.channels[:, self.rows])[0].max(initial=0.0))

    def note_shown(self, index: int, plan: Plan, misses: Floats, influence: Floats) -> bool:
        """Take how far (C,) tips of a plan are from their targets where Blender shows both, with full influence (C,).

        Returns:
            Whether a target is missed that the solution reaches.
        """
        is_missed = False
        for c, own in self._own(plan):
            if influence[c] == 1.0 and misses[c] > self.errors[index, own] + NEAR:
                self.errors[index, own], self._status[index, own] = misses[c], Status.NOT_CONVERGED
                is_missed = True
        return is_missed

    def is_never_solved(self, tip: str) -> bool:
        """Whether the chain on a tip bone was not solved on any frame."""
        return tip in self.baked and bool((self._status[:, self.baked.index(tip)] == Status.INVALID).all())

    def channels(self) -> list[keyframes.Channel]:
        """Return the channels to key; each rotation is the equivalent one nearest to the frame before."""
        for mode, own in self._bones_by_mode:
            columns = np.s_[:, own, FIELDS[rotation_field(mode)]]
            self._channels[columns] = nearest(self._channels[columns], mode)
        found: list[keyframes.Channel] = []
        for k, name in enumerate(self._names):
            rotation, units = rotation_field(self._modes[k]), {"location": self._lengths[k], "scale": 1.0}
            for field in (rotation, *units):
                if field == rotation or self._changes[k, FIELDS[field]].max() > USED * units[field]:
                    values = np.ascontiguousarray(self._channels[:, k, FIELDS[field]].T)
                    found += [keyframes.Channel(name, field, i, own) for i, own in enumerate(values)]
        return found

    def difference(self, index: int, played: Floats) -> tuple[float, float]:
        """Compare poses (k, 4, 4) of `Plan.live` in playback of a frame with the solution.

        Args:
            index: index of the frame among those that are played.
            played: the poses.

        Returns:
            The largest distance of heads and tails, in chain lengths, and the largest angle, in radians.
        """
        a, b = played[self.rows], self.poses[index]
        heads = a[:, :3, 3] - b[:, :3, 3]
        tails = heads + (a[:, :3, 1] - b[:, :3, 1]) * self._plan.skeleton.lengths[self._bones, None]
        gaps = np.maximum(np.linalg.norm(heads, axis=1), np.linalg.norm(tails, axis=1))
        return float((gaps / self._lengths).max()), largest_turn(_directions(a), _directions(b))

    def report(
        self, frames: Sequence[int], action: str, found: tuple[float, float], limbs: Mapping[str, str]
    ) -> BakeReport:
        """Return the report on the bake.

        Args:
            frames: the keyed frames.
            action: the name of the action that holds the keys.
            found: the largest differences in position and angle, see `difference`.
            limbs: names of chains by their tip bones, as far as these have any.
        """
        position, angle = found
        blended = self._blended & (self._status != Status.INVALID)
        missed = ~(has_reached(self._status, self.errors) | blended)
        solved = np.isfinite(self.errors) & ~blended
        counts, errors = solved.sum(axis=0), np.where(solved, self.errors, 0.0)
        largest, means = errors.max(axis=0, initial=0.0), errors.sum(axis=0) / np.maximum(counts, 1)
        limited = self._at_limit[self.rows]
        most = [k for k in np.lexsort((self.rows, -limited)).tolist() if limited[k]]
        angles, bones = self._turns(frames, self._channels)
        worst = int(angles.argmax()) if len(angles) else -1
        parts = np.array_split(angles, min(PARTS, len(angles)) or 1)
        return BakeReport(
            chains=tuple(self.baked),
            frames=len(frames),
            action=action,
            missed=int(missed.any(axis=1).sum()),
            blended=int(blended.any(axis=1).sum()),
            error=float(largest.max(initial=0.0)),
            mean_error=float(errors.sum(axis=0).sum() / max(counts.sum(), 1)),
            each=tuple(
                ChainReport(name, int(missed[:, c].sum()), float(largest[c]), float(means[c]), limbs.get(name, name))
                for c, name in enumerate(self.baked)
            ),
            limited=tuple(LimitReport(self._names[k], int(limited[k])) for k in most),
            turn=float(angles.max(initial=0.0)),
            turning_bone=self._names[bones[worst]] if len(angles) else "",
            turning_frames=(frames[max(worst, 0)], frames[worst + 1]),
            turns=tuple(float(part.max()) for part in parts if len(part)),
            ends=(frames[0], frames[-1]),
            position=position,
            angle=angle,
            live_turn=self._live_turn,
        )

    @property
    def _bones_by_mode(self) -> list[tuple[str, Ints]]:
        """The rotation modes, each with its bones (k,), as positions among those that are keyed."""
        return [(mode, np.flatnonzero(np.array(self._modes) == mode)) for mode in dict.fromkeys(self._modes)]

    def _turns(self, frames: Sequence[int], values: Row) -> tuple[Floats, Ints]:
        """Return the largest turn of any joint between frames (F-1,), in degrees, and its index; from (F, n, 17)."""
        angles, joints = np.zeros(len(frames) - 1), np.full(len(frames) - 1, -1)
        for mode, own in self._bones_by_mode if len(frames) > 1 else ():
            columns = FIELDS[rotation_field(mode)]
            found, bones = turns(values[:, own, columns], mode, np.diff(np.array(frames, dtype=np.float64)))
            more = (joints < 0) | (found > angles)
            angles = np.where(more, found, angles)
            joints = np.where(more, own[bones], joints)
        return np.degrees(angles), joints


def rotations_of(plan: Plan, baked: Sequence[str]) -> Iterator[keyframes.Channel]:
    """Yield the channels that are always keyed for the chains on these tip bones, without values."""
    for bone in _bones_of(plan, baked):
        field = rotation_field(plan.modes[plan.rows[bone]])
        for i in range(FIELDS[field].stop - FIELDS[field].start):
            yield keyframes.Channel(plan.skeleton.names[bone], field, i, np.empty(0))


def _bones_of(plan: Plan, baked: Sequence[str]) -> list[int]:
    """Return the bones of chains, each once."""
    return list(dict.fromkeys(bone for tip in baked for bone in plan.paths[tip]))


def _directions(matrices: Floats) -> Floats:
    """Return the axes (..., 3, 3) of matrices (..., 4, 4), without scale."""
    axes = matrices[..., :3, :3]
    return np.asarray(axes / np.maximum(np.linalg.norm(axes, axis=-2, keepdims=True), 1e-30))
