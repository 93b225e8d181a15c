"""FABRIK for a batch of chains of any number of bones, with an exact finish.

Forward and backward reaching after A. Aristidou and J. Lasenby, "FABRIK: A fast, iterative solver for the Inverse
Kinematics problem", Graphical Models 73(5), 2011, doi 10.1016/j.gmod.2011.05.003. Its passes alone crawl near full
extension and near the inner reach, and where the tip has to move by more than a bone's length they crumple the bones
next to it. But only one number has to come right: a chain whose tip is at the right distance from its root needs no
more than to be turned to the target. Newton's method on that number brings the tip near first and finishes after the
reaching pass.

Chains start at the origin; bones are unit directions (3, n, B) and lengths (n, B), in chain lengths.
"""

from __future__ import annotations

import numpy as np

from .arc import SLACK, bow_of, pull_of
from .problem import Bools, Floats, Ints
from .rotations import between, cross, dot, norm, reject, rotate, unit
from .twist import Axes, joints_of, tip_of
from .two_bone import triangle

REACHING = 1
"""The pass that reaches backward and forward; the one before it and those after it are Newton's."""
PATIENCE = 24
"""Passes after which a chain is laid out by construction: bones folded flat on each other hardly move each other."""


def first_guess(directions: Floats, lengths: Floats, own: Axes, axes: Axes, distance: Floats) -> Floats:
    """Return directions (3, n, B) that bring the tip to about the wanted distance and keep the character of the pose.

    A chain that is to become shorter is bent about its normal as an arc is, one that is to become longer is pulled
    straight. At the present distance nothing changes. FABRIK then has little left to do, and what it does is smooth:
    started from a straight chain it would leave one sharp bend.

    Args:
        directions: (3, n, B) unit directions of the bones.
        lengths: (n, B) their lengths.
        own: the chains' axes.
        axes: the axes that they are to have.
        distance: (B,) wanted distance from root to tip.
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
        turn = bow_of(right, parts, before, after) * places
        cosine, sine = np.cos(turn), np.sin(turn)
        right, up = right * cosine + up * sine, up * cosine - right * sine
        x[:, some], y[:, some] = right, up
        along = x.copy()
        along[:, some] += pull_of(right, up, out, parts, before, after)
    size = np.sqrt(along * along + y * y + z * z)
    if size.min() <= 1e-12:  # pulled back as far as the bone points ahead
        along, size = np.where(size > 1e-12, along, x), np.where(size > 1e-12, size, 1.0)
    along, y, z = along / size, y / size, z / size
    guess = along * axes.line[:, None]
    guess += y * axes.bend[:, None]
    guess += z * axes.normal[:, None]
    # At the ends of the reach there is nothing to search for. Folded flat, the longest bone goes towards the target and
    # all others come back.
    longest = lengths.max(axis=0)
    straight = wanted >= 1.0 - SLACK
    folded = (2.0 * longest > whole) & (2.0 * longest - whole >= distance - SLACK)
    if straight.any() or folded.any():
        flat = np.where(straight | (lengths == longest), 1.0, -1.0) * axes.line[:, None]
        guess = np.where(straight | folded, flat, guess)
    return guess


def solve_directions(
    start: Floats, lengths: Floats, axes: Axes, distance: Floats, tolerance: Floats, iterations: int
) -> tuple[Floats, Ints]:
    """Return bone directions (3, n, B) whose chains end at `distance` along their line, and the passes (B,) it took.

    The reaching pass starts from chains that were turned to the target, so that having it or ending before it makes no
    more difference than the tolerance: the result moves smoothly with the target.

    Args:
        start: (3, n, B) unit directions to start from.
        lengths: (n, B) bone lengths.
        axes: where the chains are to lie; `line` points at the target.
        distance: (B,) from root to target, within reach.
        tolerance: (B,) distance from tip to target that is near enough.
        iterations: cap on the passes.
    """
    solved = start.copy()
    used = np.zeros(start.shape[2], dtype=np.int64)
    running = _Running(start, lengths, axes, distance, tolerance)
    for done in range(iterations + 1):
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
    """Return the directions (3, n, B) after each chain as a whole was turned to have its tip on the line (3, B)."""
    tip = unit(tip_of(directions, lengths))
    turn = between(tip, line, unit(reject(normal, tip)))
    return rotate(turn[:, None], directions)


class _Running:
    """The members of a batch that are not there yet, with the passes that bring them nearer."""

    def __init__(self, start: Floats, lengths: Floats, axes: Axes, distance: Floats, tolerance: Floats) -> None:
        """Begin with all members."""
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
        """Let the members go that are not chosen (B,)."""
        for name, value in vars(self).items():
            setattr(self, name, value[..., chosen])

    def fabrik_pass(self) -> None:
        """Do one FABRIK pass: backward from the target, then forward from the root."""
        lengths = self.lengths
        directions = _turned_to_line(self.directions, lengths, self.line, self.normal)
        joints = joints_of(directions, lengths)
        target = self.line * self.distance
        joint = target
        for i in range(len(lengths) - 1, -1, -1):
            joint = joint + lengths[i] * _towards(joints[:, i] - joint, -directions[:, i])
            joints[:, i] = joint
        joints[:, -1] = target
        turned = np.empty_like(directions)
        joint = np.zeros_like(target)
        for i in range(len(lengths)):
            turned[:, i] = _towards(joints[:, i + 1] - joint, directions[:, i])
            joint = joint + lengths[i] * turned[:, i]
        self.directions = turned
        self.tip = joint

    def newton_pass(self) -> None:
        """Pull all bones alike along the line from root to tip: Newton's method on the distance between them.

        A bone counts by its length, so that it moves as two halves of it would, and this is the least turning that
        changes the distance. The tip also goes sideways, which matters near the root: the pull is the one that has the
        straight motion of the tip meet the sphere of the target.
        """
        line = unit(self.tip)
        give = reject(line[:, None], self.directions)
        speed = tip_of(give, self.lengths)
        along, square = dot(self.tip, speed), dot(speed, speed)
        missing = self.distance**2 - dot(self.tip, self.tip)
        pull = missing / np.maximum(along + np.sqrt(np.maximum(along**2 + square * missing, 0.0)), 1e-30)
        tried = unit(self.directions + self.step * np.clip(pull, -1.0, 1.0) * give)
        tip = tip_of(tried, self.lengths)
        better = np.abs(self.distance - norm(tip)) < self.gap()
        self.step = np.where(better, np.minimum(2.0 * self.step, 1.0), self.step / 2.0)
        self.directions = np.where(better, tried, self.directions)
        self.tip = np.where(better, tip, self.tip)

    def construct(self) -> None:
        """Lay the chain out in its plane as at most three straight pieces, exactly.

        The middle piece is the bone across the middle of the chain. With the line to the target they make a
        quadrilateral; of all its diagonals the middle one is taken.
        """
        ends = np.cumsum(self.lengths, axis=0)
        middle = np.argmax(2.0 * ends >= ends[-1], axis=0)
        members = np.arange(len(middle))
        own = self.lengths[middle, members]
        before, after = ends[middle, members] - own, ends[-1] - ends[middle, members]
        shortest = np.maximum(np.abs(own - after), np.abs(before - self.distance))
        longest = np.minimum(own + after, before + self.distance)
        diagonal = (shortest + longest) / 2.0
        first, rest = triangle(before, diagonal, self.distance, self.line, self.bend)
        second, third = triangle(own, after, diagonal, rest, cross(rest, cross(self.line, self.bend)))
        bone = np.arange(len(self.lengths))[:, None]
        pieces = np.where(bone < middle, first[:, None], np.where(bone == middle, second[:, None], third[:, None]))
        self.directions = pieces
        self.tip = tip_of(pieces, self.lengths)


def _towards(offset: Floats, otherwise: Floats) -> Floats:
    """Return unit vectors (3, B) along the offsets; joints that meet show no direction, there take the other one."""
    size = norm(offset)
    if size.min() > 1e-12:
        return np.asarray(offset / size)
    return np.where(size > 1e-12, offset / np.maximum(size, 1e-12), otherwise)
