"""FABRIK: reach backward from the target and forward from the root, so that the tip leads the chain.

After A. Aristidou and J. Lasenby, "FABRIK: A fast, iterative solver for the Inverse Kinematics problem", Graphical
Models 73(5), 2011, doi 10.1016/j.gmod.2011.05.003. The passes start from the FK pose, so a small move of the target
turns the joints next to the tip and leaves the root at rest. Near full extension and near the root they converge
slowly: the small error of the distance from root to tip that is left after `PASSES` is removed by `even_bend`, starting
from the shape that the passes found.

Written once for one chain in plain floats and for many in arrays, see `numbers`. Chains start at the origin; bones
are unit directions, one vector for each, and lengths, in chain lengths.
"""

from collections.abc import Sequence

from ..maths.numbers import Number, Numbers
from ..maths.vectors import Vector, either, minus, plus, size_of, times
from .axes import joints_of

PASSES = 12
"""Passes after which `even_bend` removes the remaining error."""
FINEST = 1e-13
"""The smallest tolerance, as a fraction of the chain, which may be stretched: with a smaller one, rounding would decide
how many passes are made, and so the pose."""
MEET = 1e-12
"""Joints nearer to each other than this give no direction."""
LIMP = 1e-3
"""A chain whose bones leave its line by more than this, as the mean squared sine, folds by itself."""
SIDEWAYS = 10.0
"""How much more the target's offset to the side counts than its offset back along a straight chain."""


def pass_once(
    do: Numbers, directions: Sequence[Vector], lengths: Sequence[Number], target: Vector
) -> tuple[list[Vector], Vector]:
    """Return the directions and the tip after one pass, backward from the target and forward from the root."""
    joints = joints_of(directions, lengths)
    joint = target
    for i in range(len(lengths) - 1, -1, -1):
        x, y, z = directions[i]
        joint = plus(joint, times(_towards(do, minus(joints[i], joint), (-x, -y, -z)), lengths[i]))
        joints[i] = joint
    joints[-1] = target
    turned: list[Vector] = []
    joint = (0.0, 0.0, 0.0)
    for i, length in enumerate(lengths):
        turned.append(_towards(do, minus(joints[i + 1], joint), directions[i]))
        joint = plus(joint, times(turned[i], length))
    return turned, joint


def reach(
    do: Numbers, directions: Sequence[Vector], lengths: Sequence[Number], target: Vector, tolerance: Number, passes: int
) -> tuple[list[Vector], Number, Number]:
    """Return directions that bring the tip to the target, or as near as the passes get, and the number of passes.

    Args:
        do: for one chain or for many.
        directions: to start from.
        lengths: of the bones.
        target: point for the tip, within reach.
        tolerance: distance from tip to target that is near enough.
        passes: maximum number of passes.

    Returns:
        Directions, number of passes, and whether the tip is still farther off than the tolerance.
    """
    found = list(directions)
    tip, used = joints_of(found, lengths)[-1], 0 * tolerance
    for done in range(passes + 1):
        left = size_of(do, minus(target, tip)) > tolerance
        if done == passes or not do.any(left):
            break
        turned, end = pass_once(do, found, lengths, target)
        found = [either(do, left, one, other) for one, other in zip(turned, found, strict=True)]
        tip, used = either(do, left, end, tip), used + left
    return found, used, left


def folding(do: Numbers, lean: Number, back: Number, aside: Number) -> Number:
    """Return the share, from 0 to 1, of the shortening by which to bend a chain like a bow before the first pass.

    The passes leave a straight chain straight if its target is on its line, and crumple it if the target is slightly
    beside the line: such a chain is bent to its side first. If the target moves to the side, the tip leads the chain.

    Args:
        do: for one chain or for many.
        lean: mean squared sine of the bones' angles to the chain's line.
        back: how far the target lies behind the tip, along that line.
        aside: how far beside the line.
    """
    behind = do.most(back, 0.0)
    square = behind * behind
    beside = SIDEWAYS * aside
    share = square / do.most(square + beside * beside, 1e-200)
    return share * share * do.most(1.0 - do.most(lean, 0.0) / LIMP, 0.0)


def _towards(do: Numbers, offset: Vector, otherwise: Vector) -> Vector:
    """Return the unit vector along an offset, or `otherwise` where joints meet and give no direction."""
    x, y, z = offset
    size = do.sqrt(x * x + y * y + z * z)
    there = do.most(size, MEET)
    x, y, z = either(do, size > MEET, (x / there, y / there, z / there), otherwise)
    return x, y, z
