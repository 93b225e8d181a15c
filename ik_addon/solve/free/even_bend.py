"""Bend chains of any number of bones like a bow: turn them to the target as a whole, then bend them by one number.

A chain whose tip is at the right distance from its root only needs to be turned to the target. The first guess is an
arc pulled along its line, which already solves most chains; Newton's method on the distance finishes the others. Where
its first pass does not, one pass of FABRIK loosens the shape, see `fabrik`.

Chains start at the origin; bones are unit directions (3, n, B) and lengths (n, B), in chain lengths.
"""

from __future__ import annotations

import numpy as np

from ..maths.numbers import MANY
from ..maths.rotations import between, cross, dot, norm, reject, rotate, stacked, unit
from ..maths.vectors import Vector
from ..problem import Bools, Floats, Ints
from .arc import FARTHER, LEAST, SLACK, bow_of, pull_of
from .axes import Axes, tip_of
from .fabrik import FINEST, pass_once
from .two_bone import triangle

REACHING = 1
"""The pass that is done by FABRIK; the one before it and those after it are Newton's."""
PATIENCE = 24
"""Passes after which a chain is laid out by construction: bones folded flat hardly move each other."""
NO_CHORD = 1e-7
"""A tip nearer to the root than this fraction of the chain is not turned to its line: rounding would say from where."""


def first_guess(
    directions: Floats, lengths: Floats, own: Axes, axes: Axes, distance: Floats, *, bow: bool = True
) -> Floats:
    """Return directions (3, n, B) that bring the tip to about the wanted distance and keep the character of the pose.

    A chain that must get shorter is bent about its normal like an arc; one that must get longer is pulled straight. At
    the current distance nothing changes.

    Args:
        directions: (3, n, B) unit directions of the bones.
        lengths: (n, B) their lengths.
        own: the axes that the chains have.
        axes: the axes that they should have.
        distance: (B,) wanted distance from root to tip.
        bow: False: chains that must get shorter are pushed along their line, which bends most where they are bent.
    """
    ends = np.cumsum(lengths, axis=0)
    whole = ends[-1]
    chord = norm(tip_of(directions, lengths)) / whole
    wanted = distance / whole
    x, y, z = (dot(directions, axis[:, None]) for axis in own)
    along = x
    changed = np.flatnonzero(np.abs(chord - wanted) > SLACK)
    if len(changed):
        some = changed if len(changed) < len(wanted) else np.s_[:]
        places = (ends[:, some] - lengths[:, some] / 2.0) / whole[some] - 0.5
        parts = lengths[:, some] / whole[some]
        right, up, out, before, after = x[:, some], y[:, some], z[:, some], chord[some], wanted[some]
        if bow:
            turn = bow_of(right, parts, before, after) * places
            cosine, sine = np.cos(turn), np.sin(turn)
            right, up = right * cosine + up * sine, up * cosine - right * sine
            x[:, some], y[:, some] = right, up
        along = x.copy()
        along[:, some] += pull_of(right, up, out, parts, before, after, LEAST if bow else FARTHER)
    size = np.sqrt(along * along + y * y + z * z)
    if size.min() <= 1e-12:  # pulled back as far as the bone points ahead
        along, size = np.where(size > 1e-12, along, x), np.where(size > 1e-12, size, 1.0)
    along, y, z = along / size, y / size, z / size
    guess = along * axes.line[:, None]
    guess += y * axes.bend[:, None]
    guess += z * axes.normal[:, None]
    return flattened(guess, lengths, axes.line, distance)


def flattened(directions: Floats, lengths: Floats, line: Floats, distance: Floats) -> Floats:
    """Return the directions (3, n, B), with chains at the ends of their reach laid along the line (3, B).

    Those need no search. Folded flat, the longest bone points towards the target and all others point back.

    Args:
        directions: (3, n, B) unit directions of the bones.
        lengths: (n, B) their lengths.
        line: (3, B) from root to target.
        distance: (B,) between them.
    """
    whole, longest = np.cumsum(lengths, axis=0)[-1], lengths.max(axis=0)
    straight = distance / whole >= 1.0 - SLACK
    folded = (2.0 * longest > whole) & (2.0 * longest - whole >= distance - SLACK)
    if straight.any() or folded.any():
        flat = np.where(straight | (lengths == longest), 1.0, -1.0) * line[:, None]
        directions = np.where(straight | folded, flat, directions)
    return directions


def apart(directions: Floats) -> list[Vector]:
    """Return directions (3, n, B) as a list of vectors, one for each bone."""
    return [(x, y, z) for x, y, z in directions.transpose(1, 0, 2)]


def together(directions: list[Vector]) -> Floats:
    """Return a list of vectors, one for each bone, as directions (3, n, B): the inverse of `apart`."""
    return stacked(*(stacked(*direction) for direction in directions)).swapaxes(0, 1)


def solve_directions(
    start: Floats,
    lengths: Floats,
    axes: Axes,
    distance: Floats,
    tolerance: Floats,
    iterations: int,
    begun: int = 0,
) -> tuple[Floats, Ints]:
    """Return bone directions (3, n, B) of chains that end at `distance` along their line, and the passes (B,) used.

    The FABRIK pass starts from chains turned to the target, so that doing it or stopping before it makes no more
    difference than the tolerance: the result moves smoothly with the target.

    Args:
        start: (3, n, B) unit directions to start from.
        lengths: (n, B) bone lengths.
        axes: axes that the chains should have; `line` points at the target.
        distance: (B,) from root to target, within reach.
        tolerance: (B,) distance from tip to target that is near enough.
        iterations: maximum number of passes.
        begun: passes already spent.
    """
    solved = start.copy()
    used = np.zeros(start.shape[2], dtype=np.int64)
    running = _Running(start, lengths, axes, distance, np.maximum(tolerance, FINEST * lengths.sum(axis=0)))
    for done in range(begun, iterations + 1):
        ended = running.gap() <= running.tolerance
        if done == iterations:
            ended[:] = True
        if ended.any():
            solved[:, :, running.members[ended]] = running.directions[:, :, ended]
            used[running.members[ended]] = done
            running.keep(~ended)
        if not len(running.members):
            break
        if done == REACHING:
            running.fabrik_pass()
        elif done < PATIENCE:
            running.newton_pass()
        else:
            running.construct()
    return _turned_to_line(solved, lengths, axes.line, axes.normal), used


def _turned_to_line(directions: Floats, lengths: Floats, line: Floats, normal: Floats) -> Floats:
    """Return the directions (3, n, B) with each chain turned as a whole to have its tip on the line (3, B)."""
    end = tip_of(directions, lengths)
    tip = unit(end)
    turn = between(tip, line, unit(reject(normal, tip)))
    return np.where(norm(end) > NO_CHORD, rotate(turn[:, None], directions), directions)


class _Running:
    """The members of a batch that have not arrived yet, and the passes that bring them nearer."""

    def __init__(self, start: Floats, lengths: Floats, axes: Axes, distance: Floats, tolerance: Floats) -> None:
        """Start with all members."""
        self.members = np.arange(len(distance))
        self.directions = start
        self.lengths = lengths
        self.line, self.bend, self.normal = axes
        self.distance = distance
        self.tolerance = tolerance
        self.tip = tip_of(start, lengths)
        self.step = np.ones_like(distance)

    def gap(self) -> Floats:
        """Return how far the tips (B,) are from the sphere around the root on which the target lies."""
        return np.asarray(np.abs(self.distance - norm(self.tip)))

    def keep(self, chosen: Bools) -> None:
        """Drop all members but the chosen (B,)."""
        for name, value in vars(self).items():
            setattr(self, name, value[..., chosen])

    def fabrik_pass(self) -> None:
        """Do one FABRIK pass: backward from the target, then forward from the root."""
        directions = _turned_to_line(self.directions, self.lengths, self.line, self.normal)
        x, y, z = self.line * self.distance
        turned, tip = pass_once(MANY, apart(directions), list(self.lengths), (x, y, z))
        self.directions, self.tip = together(turned), stacked(*tip)

    def newton_pass(self) -> None:
        """Pull all bones alike along the line from root to tip: Newton's method on the distance between them.

        A bone counts by its length, so that it moves as its two halves would, and this is the least turning that
        changes the distance. The tip also moves sideways, which matters near the root: the pull is chosen so that the
        tip, moving straight, meets the sphere of the target.
        """
        line = unit(self.tip)
        give = reject(line[:, None], self.directions)
        speed = tip_of(give, self.lengths)
        along, square = dot(self.tip, speed), dot(speed, speed)
        shortfall = self.distance**2 - dot(self.tip, self.tip)
        pull = shortfall / np.maximum(along + np.sqrt(np.maximum(along**2 + square * shortfall, 0.0)), 1e-30)
        tried = unit(self.directions + self.step * np.clip(pull, -1.0, 1.0) * give)
        tip = tip_of(tried, self.lengths)
        better = np.abs(self.distance - norm(tip)) < self.gap()
        self.step = np.where(better, np.minimum(2.0 * self.step, 1.0), self.step / 2.0)
        self.directions = np.where(better, tried, self.directions)
        self.tip = np.where(better, tip, self.tip)

    def construct(self) -> None:
        """Lay the chain out in its plane as at most three straight pieces, exactly.

        The middle piece is the bone at the middle of the chain. With the line to the target the pieces make a
        quadrilateral; of its possible diagonals, the mean of the shortest and the longest is taken.
        """
        ends = np.cumsum(self.lengths, axis=0)
        middle = np.argmax(2.0 * ends >= ends[-1], axis=0)
        members = np.arange(len(middle))
        own = self.lengths[middle, members]
        before, after = ends[middle, members] - own, ends[-1] - ends[middle, members]
        shortest = np.maximum(np.abs(own - after), np.abs(before - self.distance))
        longest = np.minimum(own + after, before + self.distance)
        diagonal = (shortest + longest) / 2.0
        first, rest = _triangles(before, diagonal, self.distance, self.line, self.bend)
        second, third = _triangles(own, after, diagonal, rest, cross(rest, cross(self.line, self.bend)))
        bone = np.arange(len(self.lengths))[:, None]
        pieces = np.where(bone < middle, first[:, None], np.where(bone == middle, second[:, None], third[:, None]))
        self.directions = pieces
        self.tip = tip_of(pieces, self.lengths)


def _triangles(first: Floats, second: Floats, distance: Floats, line: Floats, bend: Floats) -> tuple[Floats, Floats]:
    """See `two_bone.triangle`; here vectors are arrays (3, B)."""
    one, other = triangle(MANY, first, second, distance, tuple(line), tuple(bend))
    return stacked(*one), stacked(*other)
