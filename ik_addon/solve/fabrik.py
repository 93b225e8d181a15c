"""FABRIK for a batch of chains of any number of bones, with a Newton finish.

Forward and backward reaching after A. Aristidou and J. Lasenby, "FABRIK: A fast, iterative solver for the Inverse
Kinematics problem", Graphical Models 73(5), 2011, doi 10.1016/j.gmod.2011.05.003. Near full extension its passes crawl,
so after a few of them Newton's method on the bone directions takes over.

Chains start at the origin; bones are unit directions (3, n, B) and lengths (n, B).
"""

from __future__ import annotations

import numpy as np

from .problem import Floats, Ints
from .rotations import about, dot, norm, reject, rotate, unit
from .twist import Axes, joints_of, tip_of

_PASSES = 4
"""FABRIK passes before the Newton finish."""


def first_guess(directions: Floats, lengths: Floats, axes: Axes, distance: Floats) -> Floats:
    """Return directions (3, n, B) that bring the tip to about the wanted distance and keep the character of the pose.

    A chain that is to become shorter is bent about its normal as an arc is, one that is to become longer is pulled
    straight. At the present distance nothing changes. FABRIK then has little left to do, and what it does is smooth:
    started from a straight chain it would leave one sharp bend.

    Args:
        directions: (3, n, B) unit directions of the bones.
        lengths: (n, B) their lengths, in chain lengths.
        axes: the chains' axes.
        distance: (B,) wanted distance from root to tip, in chain lengths.
    """
    total = np.cumsum(lengths, axis=0)
    chord = norm(tip_of(directions, lengths)) / total[-1]
    wanted = distance / total[-1]
    turn = np.maximum(_arc_of(wanted) - _arc_of(chord), 0.0)
    along = (total - lengths / 2.0) / total[-1] - 0.5
    bent = rotate(about(axes.normal[:, None], turn * along), directions)
    slack = np.maximum(1.0 - wanted, 1e-12) / np.maximum(1.0 - chord, 1e-12)
    pull = 1.0 / np.sqrt(np.minimum(slack, 1.0)) - 1.0
    return unit(bent + pull * axes.line[:, None])


def _arc_of(chord: Floats) -> Floats:
    """Return the angles that arcs of length 1 turn through, from their chords; to a percent."""
    missing = 1.0 - np.clip(chord, 0.0, 1.0)
    return np.asarray(2.0 * np.sqrt(6.0 * missing) * (1.0 + 0.15 * missing + 0.1325 * missing**3))


def solve_directions(
    start: Floats, lengths: Floats, target: Floats, tolerance: Floats, iterations: int, passes=_PASSES
) -> tuple[Floats, Ints]:
    """Return bone directions (3, n, B) whose chains end at their targets, and the passes (B,) they took.

    Args:
        start: (3, n, B) unit directions to start from.
        lengths: (n, B) bone lengths, in chain lengths.
        target: (3, B) seen from the root, within reach.
        tolerance: (B,) distance from tip to target that is near enough.
        iterations: cap on the passes.
    """
    solved = start.copy()
    used = np.zeros(start.shape[2], dtype=np.int64)
    members = np.arange(start.shape[2])
    now = start
    error = target - tip_of(now, lengths)
    gain = np.ones(len(members))
    for k in range(iterations + 1):
        open_ = norm(error) > tolerance
        if not open_.all():
            solved[:, :, members[~open_]] = now[:, :, ~open_]
            members, now, error, gain = members[open_], now[:, :, open_], error[:, open_], gain[open_]
            lengths, target, tolerance = lengths[:, open_], target[:, open_], tolerance[open_]
        if not len(members) or k == iterations:
            break
        used[members] += 1
        if k < passes:
            now = _reach(now, lengths, target)
            error = target - tip_of(now, lengths)
        else:
            step = _newton_step(now, lengths, error)
            tried = unit(now + gain * step)
            left = target - tip_of(tried, lengths)
            better = norm(left) < norm(error)
            now = np.where(better, tried, now)
            error = np.where(better, left, error)
            gain = np.where(better, np.minimum(2.0 * gain, 1.0), gain / 2.0)
    solved[:, :, members] = now
    return solved, used


def _reach(directions: Floats, lengths: Floats, target: Floats) -> Floats:
    """Return the directions after one backward pass from the target and one forward pass from the root."""
    joints = joints_of(directions, lengths)
    end = target
    for i in range(len(lengths) - 1, -1, -1):
        # A joint that meets its neighbour shows no direction: step keeps the bone as it was.
        end = end + lengths[i] * _towards(joints[:, i] - end, -directions[:, i])
        joints[:, i] = end
    turned = np.empty_like(directions)
    joint = np.zeros_like(target)
    for i in range(len(lengths)):
        goal = joints[:, i + 1] if i + 1 < len(lengths) else target
        turned[:, i] = _towards(goal - joint, directions[:, i])
        joint = joint + lengths[i] * turned[:, i]
    return turned


def _towards(offset: Floats, otherwise: Floats) -> Floats:
    size = norm(offset)
    if size.min() > 1e-12:
        return offset / size
    return np.where(size > 1e-12, offset / np.maximum(size, 1e-12), otherwise)


def _newton_step(directions: Floats, lengths: Floats, error: Floats) -> Floats:
    """Return the change of directions (3, n, B) that cancels `error` (3, B) to first order with the least turning.

    With the turning weighted by length (so that a bone counts as much as two halves of it) every bone is pulled by the
    same vector: the solution of sum(l (1 - d d^T)) pull = error, 3 equations whatever the number of bones.
    """
    x, y, z = directions
    lx, ly, lz = lengths * x, lengths * y, lengths * z
    total = np.cumsum(lengths, axis=0)[-1]
    products = np.stack([lx * x, ly * y, lz * z, lx * y, lx * z, ly * z])
    xx, yy, zz, xy, xz, yz = np.cumsum(products, axis=1)[:, -1]
    damping = 1e-14
    a, b, c = total - xx + damping, total - yy + damping, total - zz + damping
    d, e, f = -xy, -xz, -yz
    # Cramer's rule on the symmetric matrix ((a, d, e), (d, b, f), (e, f, c)).
    rows = np.stack(
        [
            np.stack([b * c - f * f, e * f - d * c, d * f - e * b]),
            np.stack([e * f - d * c, a * c - e * e, d * e - a * f]),
            np.stack([d * f - e * b, d * e - a * f, a * b - d * d]),
        ]
    )
    determinant = a * rows[0, 0] + d * rows[0, 1] + e * rows[0, 2]
    pull = np.stack([dot(rows[0], error), dot(rows[1], error), dot(rows[2], error)]) / np.maximum(determinant, 1e-30)
    return reject((pull / np.maximum(norm(pull), 1.0))[:, None], directions)
