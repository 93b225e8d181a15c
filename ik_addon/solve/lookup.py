"""Look up the poses of free chains with an unchanging FK pose in a table made with `solve`.

The bend of such a chain depends only on the distance from its root to its target. The direction to the target turns
the chain as a whole, by the smallest rotation, and a pole rolls it about the line to the target. So the table holds
the joint rotations that `solve` finds at a range of distances, interpolated by polynomials of degree five.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .free.axes import STRAIGHT, chain_axes
from .free.bend_side import CLEAR, NO_BEND, side_bend
from .free.reach import inner_radius, soften
from .free.single import NO_LENGTH
from .lookup_table import POWERS, Nodes, Sides, root_of, share_of
from .maths.kernels import MANY
from .maths.products import combined
from .maths.rotations import cross, dot, multiply, norm, reject, rotate, unit
from .maths.sums import total
from .problem import Bools, Floats, Ints, Problem

NEAR = 0.02
"""Targets nearer to the root than this fraction of the FK pose's distance are left to `solve`."""
NEARLY_OPPOSITE = 1e-2
"""Where the unit vectors along the chain and to the target have a shorter sum than this, `solve` is used instead."""
MOST = 10_000
"""Maximum number of bones to tabulate; each takes 12 kB."""


class Found(NamedTuple):
    """The poses looked up for C chains on F frames."""

    turns: NDArray[np.float32]
    """(C, F, n, 4) quaternions of the joints."""
    distance: Floats
    """(C, F) distance from root to target, in chain lengths."""
    wanted: Floats
    """(C, F) distance from root to the solved tip, in chain lengths."""
    usual: Bools
    """(C, F) where the lookup is valid; other entries are meaningless and must be solved with `solve`."""


@dataclass(frozen=True)
class Tabulated:
    """The tables of C chains of n bones, each chain in its own space with the root at the origin."""

    scale: Floats
    """(C,) chain lengths."""
    line: Floats
    """(3, C) unit vectors from root to tip in the FK pose."""
    bend: Floats
    """(3, C) unit vectors towards which the chains bend."""
    first: Floats
    """(C, 4) quaternions of the root joints in the FK pose."""
    chord: Floats
    """(C,) distance from root to tip in the FK pose."""
    inner: Floats
    """(C,) smallest distance from the root that the tips can reach."""
    least: Floats
    """(C,) smallest distance in the table."""
    most: Floats
    """(C,) largest distance in the table."""
    roots: Floats
    """(3, C) square root of the slack (1 - distance) at the chord; then the factors that turn a difference from it into
    a fraction of the table, for longer and for shorter distances."""
    table: NDArray[np.float32]
    """(C, 2 k, 6, 4 n) polynomials for the joints' quaternions: k intervals longer than the chord, then k shorter."""

    @classmethod
    def of(cls, problem: Problem, fk: Floats, only: tuple[Floats, Floats] | None = None) -> Tabulated | None:
        """Tabulate chains; return None if any has no length, is closed, or does not extend smoothly to its full length.

        Args:
            problem: C free chains of one shape with their roots at the origin; of the goal, only whether it has a pole
                matters.
            fk: (C, n, 4) unit quaternions of the joints in the FK pose, which the solution turns further.
            only: targets and softness as in `look_up`, if nothing else will be looked up: the table then needs fewer
                solves.
        """
        count, bones = np.shape(problem.frames)[:2]
        joints = np.asarray(problem.joints, dtype=np.float64)
        segments = np.ascontiguousarray(np.diff(joints, axis=1).transpose(2, 1, 0))
        sizes = norm(segments)
        scale = total(sizes)
        if not (np.isfinite(sizes).all() and (scale > 1e-100).all() and count * bones <= MOST):
            return None
        directions, parts = unit(segments), sizes / scale
        tip = total(segments)
        chord = np.minimum(norm(tip) / scale, 1.0)
        if (chord < 10.0 * STRAIGHT).any():
            return None
        line, bend, _ = chain_axes(directions, parts, np.asarray(problem.frames)[:, 0].transpose(1, 2, 0))
        if problem.bend_side is not None:
            sided = _side_bend(problem.bend_side, directions, parts, line, bend, chord)
            if sided is None:
                return None
            bend = sided
        inner = inner_radius(parts)
        nodes = Nodes(problem, fk, chord, line, bend)
        least, most = np.maximum(inner, NEAR * chord), np.ones_like(chord)
        sides: Sides | None = None
        if only is not None:
            _, wanted = _distances(np.moveaxis(only[0] / scale[:, None, None], -1, 0), only[1], inner)
            low = np.maximum(least, np.minimum(np.where(np.isfinite(wanted), wanted, np.inf).min(axis=1), chord))
            high = np.maximum(np.where(np.isfinite(wanted), wanted, -np.inf).max(axis=1), chord)
            sides = nodes.few(np.minimum(low, chord), high)
        if sides is None:
            sides = nodes.both(least, most)
        if sides is None:
            return None
        least, most = sides.least, sides.most
        start = root_of(chord)
        shares = (share_of(start, root_of(most)), share_of(start, root_of(least)))
        return cls(
            scale=scale,
            line=line,
            bend=bend,
            first=fk[:, 0],
            chord=chord,
            inner=inner,
            least=least,
            most=most,
            roots=np.stack([start, *shares]),
            table=np.concatenate([sides.longer, sides.shorter], axis=1),
        )

    def look_up(
        self, target: Floats, softness: Floats, pole: Floats | None = None, pole_angle: Floats | None = None
    ) -> Found:
        """Return the poses that bring the tips to their targets, or as near as they can get.

        The result of a frame has the same bits whether it is looked up alone or with others.

        Args:
            target: (C, F, 3) targets relative to the roots.
            softness: (C, 1) or (C, F) last fraction of the reach, over which a chain eases into extension.
            pole: (C, F, 3) points to bend towards, relative to the roots.
            pole_angle: (C, F) radians by which to turn the bend plane.
        """
        with np.errstate(all="ignore"):
            place = np.moveaxis(target / self.scale[:, None, None], -1, 0)
            distance, wanted = _distances(place, softness, self.inner)
            usual = (wanted >= self.least[:, None]) & (wanted <= self.most[:, None])
            row, share = self._rows(wanted)
            powers = (share[..., None] ** POWERS).astype(np.float32)
            turns: NDArray[np.float32] = combined(powers, self.table[np.arange(len(wanted))[:, None], row]).reshape(
                *wanted.shape, -1, 4
            )
            # The smallest rotation to the target, not normalized yet.
            line = np.broadcast_to(self.line[:, :, None], place.shape)
            aim = np.concatenate([(distance + dot(line, place))[None], cross(line, place)])
            size = np.sqrt(_dot(aim, aim))
            usual &= size > NEARLY_OPPOSITE * distance
            if pole is not None:
                aim, rolled = self._rolled(aim / size, target, pole, pole_angle)
                usual &= rolled
            root = multiply(aim, np.moveaxis(turns[..., 0, :].astype(np.float64), -1, 0))
            size = np.sqrt(_dot(root, root))
            size = np.where(_dot(root, self.first.T[..., None]) < 0.0, -size, size)
            turns[..., 0, :] = np.moveaxis(root / size, 0, -1)
            return Found(turns, distance, wanted, usual)

    def _rows(self, wanted: Floats) -> tuple[Ints, Floats]:
        """Return the table rows (C, F) for distances, and the positions (C, F) within their intervals, from 0 to 1."""
        start, longer, shorter = self.roots[..., None]
        root = np.sqrt(np.maximum(1.0 - wanted, 0.0))
        beyond = root < start
        nodes = self.table.shape[1] // 2
        share = nodes * np.maximum((root - start) * np.where(beyond, longer, shorter), 0.0)
        node = np.clip(share.astype(np.int64), 0, nodes - 1)
        return np.where(beyond, node, node + nodes), share - node

    def _rolled(self, aim: Floats, target: Floats, pole: Floats, pole_angle: Floats | None) -> tuple[Floats, Bools]:
        """Return rotations (4, C, F) to the targets rolled to the poles, and where (C, F) a pole gives a direction."""
        line = unit(np.moveaxis(target, -1, 0))
        across = np.moveaxis(pole, -1, 0)
        wanted = reject(across, line)
        size = norm(wanted)
        bend = rotate(aim, np.broadcast_to(self.bend[:, :, None], line.shape))
        roll: Any = (dot(bend, wanted) + 1j * dot(cross(bend, wanted), line)) / size
        if pole_angle is not None:
            roll = roll * np.exp(1j * pole_angle)
        half = roll + 1.0
        length = np.abs(half)
        half = half / length
        turn = np.concatenate([half.real[None], half.imag * line])
        clear = size > 1e-6 * norm(across) + 1e-9 * self.scale[:, None]
        return multiply(turn, aim), clear & (length > NEARLY_OPPOSITE)


def _side_bend(
    side: Floats, directions: Floats, parts: Floats, line: Floats, bend: Floats, chord: Floats
) -> Floats | None:
    """Return the bends (3, C) of chains with bend sides (C, 3); None if any bend changes with the distance."""
    first = directions[:, np.argmax(parts > NO_LENGTH, axis=0), np.arange(len(chord))]
    vectors = tuple(line), tuple(bend), tuple(np.asarray(side, dtype=np.float64).T), tuple(first)
    (x, y, z), _, right = side_bend(MANY, *vectors, chord, np.zeros_like(chord))
    straight = 2.0 * np.sqrt(np.maximum(1.0 - chord * chord, 0.0)) <= NO_BEND
    return np.stack([x, y, z]) if (straight | (right >= CLEAR)).all() else None


def _distances(place: Floats, softness: Floats, inner: Floats) -> tuple[Floats, Floats]:
    """Return distances (C, F) from root to target (3, C, F), and from root to the solved tip, in chain lengths."""
    distance = norm(place)
    if softness.any():
        return distance, soften(MANY, distance, np.minimum(softness, 1.0 - inner[:, None]))
    return distance, np.minimum(distance, 1.0)


def _dot(p: Floats, q: Floats) -> Floats:
    """Return the dot products (...) of quaternions (4, ...)."""
    return np.asarray(p[0] * q[0] + dot(p[1:], q[1:]))
