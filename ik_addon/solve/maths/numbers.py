"""Numbers that are floats for one member or arrays (B,) for many.

Code that is written once for both takes the operations in which they differ as `do`. Whatever belongs to a joint is an
item of a list.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Number = Any
"""A float or a truth value, or an array (B,) of them: only a run knows, and their operators differ."""
Nested = Any
"""Numbers, or lists and tuples of them in any form: what a function returns has the form of what it is given."""
Pair = tuple[Number, Number]
STEPS = 6
"""Maximum number of Newton steps to the nearest point of an ellipse."""
_CROWD, _FEW = 0.75, 32


Operation = Callable[..., Number]


@dataclass(frozen=True, eq=False)
class Numbers:
    """The operations in which floats and arrays differ."""

    sqrt: Operation
    sin: Operation
    cos: Operation
    tan: Operation
    arcsin: Operation
    arctan2: Operation
    expm1: Operation
    isfinite: Operation
    any: Operation
    """Whether any member is true, or how many."""
    least: Operation
    """The smaller of two numbers."""
    most: Operation
    """The larger of two numbers."""
    where: Operation
    """`one` where `chosen` is true, and `other` elsewhere: (chosen, one, other)."""
    choose: Callable[[Number, Nested, Nested], Nested]
    """The same for nested lists and tuples of numbers."""
    redone: Callable[[Callable[..., Nested], Number, Nested, Nested], Nested]
    """A result as it is, and where chosen that of a function: (function, chosen, arguments, result)."""
    nearest_swing: Callable[[Number, Number, Pair, Pair], Pair]
    """The point of a cone, an ellipse per quadrant with half-axes, that is nearest to a swing: (x, z, low, high)."""


def _nearest_swing_of_one(x: float, z: float, low: Pair, high: Pair) -> Pair:
    a = low[0] if x < 0.0 else high[0]
    b = low[1] if z < 0.0 else high[1]
    # Not `max`, which takes longer than all the rest.
    p, q = x / (a if a > 1e-12 else 1e-12), z / (b if b > 1e-12 else 1e-12)
    return _nearest_of_ellipse(ONE, x, z, a, b) if p * p + q * q > 1.0 else (x, z)


def _nearest_swings(x: Number, z: Number, low: Pair, high: Pair) -> Pair:
    swing = np.array((x, z))
    axes = np.array((np.where(x < 0.0, low[0], high[0]), np.where(z < 0.0, low[1], high[1])))
    outside = ellipse_level(MANY, *swing, *axes) > 1.0
    if outside.any():
        swing[:, outside] = _nearest_of_ellipse(MANY, *swing[:, outside], *axes[:, outside])
    return swing[0], swing[1]


def ellipse_level(do: Numbers, x: Number, z: Number, a: Number, b: Number) -> Number:
    """Return the square of the factor by which an ellipse with two half-axes must grow to pass through a point."""
    p, q = x / do.most(a, 1e-12), z / do.most(b, 1e-12)
    return p * p + q * q


def _nearest_of_ellipse(do: Numbers, x: Number, z: Number, a: Number, b: Number) -> Pair:
    """Return the point nearest to one outside an ellipse with two half-axes, one of which may be 0.

    The nearest point is axes^2 * point / (t + axes^2) for the t that puts it on the ellipse. Newton's method gets there
    from the left without ever passing it, and sooner when it looks for the zero of one minus the inverse of the level's
    root, which is nearly a straight line (J. Moré and D. Sorensen, "Computing a trust region step", doi
    10.1137/0904038). It starts from the t for which both half-axes are as long as the longer one: for circles, the
    solution.
    """
    most, sqrt = do.most, do.sqrt
    aa, bb, p, q = a * a, b * b, a * abs(x), b * abs(z)
    t = most(most(p - aa, q - bb), most(sqrt(p * p + q * q) - most(aa, bb), 1e-100))
    for _ in range(STEPS):
        along, across = p / (t + aa), q / (t + bb)
        level = along * along + across * across
        over = most(sqrt(level) - 1.0, 0.0)
        if not do.any(over):
            break
        t = t + level * over / most(along * along / (t + aa) + across * across / (t + bb), 1e-200)
    x, z = x * (aa / (t + aa)), z * (bb / (t + bb))
    size = sqrt(most(ellipse_level(do, x, z, a, b), 1.0))
    return x / size, z / size


def _choose_members(chosen: Number, one: Nested, other: Nested) -> Nested:
    if chosen.all():
        return one
    return each_array(lambda a, b: np.where(chosen, a, b), one, other) if chosen.any() else other


def _redone_members(function: Callable[..., Nested], chosen: Number, arguments: Nested, result: Nested) -> Nested:
    if is_crowd(int(np.count_nonzero(chosen)), len(chosen)):
        return function(*arguments)
    index = np.flatnonzero(chosen)
    found = function(*members(arguments, index))

    def merged(whole: Number, part: Number) -> Number:
        whole = whole.copy()
        whole[..., index] = part
        return whole

    return each_array(merged, result, found)


def is_crowd(left: int, count: int) -> bool:
    """Return whether to go on with all members although only `left` of them need it.

    Picking members out takes as long as a step, and a step takes as long for a few members as for one.
    """
    return left >= _CROWD * count or count - left < _FEW


def members(value: Nested, chosen: Number) -> Nested:
    """Return the chosen members of all arrays (..., B) in nested lists and tuples."""
    return each_array(lambda part: part[..., chosen], value)


def member(value: Nested, index: int) -> Nested:
    """Return one member of all arrays (..., B) in nested lists and tuples, in floats."""
    return each_array(lambda part: part[..., index].tolist(), value)


def each_array(function: Operation, value: Nested, *others: Nested) -> Nested:
    """Apply a function to each array in nested lists and tuples of the same form; all else is that of the first."""
    if isinstance(value, np.ndarray):
        return function(value, *others)
    if isinstance(value, tuple | list) and not all(isinstance(part, float) for part in value):
        parts = [each_array(function, *each) for each in zip(value, *others, strict=True)]
        return parts if isinstance(value, list) else value._make(parts) if hasattr(value, "_make") else tuple(parts)
    return value


ONE = Numbers(
    *(math.sqrt, math.sin, math.cos, math.tan, math.asin, math.atan2, math.expm1, math.isfinite),
    *(bool, min, max),
    where=lambda chosen, one, other: one if chosen else other,
    choose=lambda chosen, one, other: one if chosen else other,
    redone=lambda function, _chosen, arguments, _result: function(*arguments),
    nearest_swing=_nearest_swing_of_one,
)
"""One member, in floats."""
MANY = Numbers(
    *(np.sqrt, np.sin, np.cos, np.tan, np.arcsin, np.arctan2, np.expm1, np.isfinite),
    *(np.count_nonzero, np.minimum, np.maximum, np.where, _choose_members, _redone_members, _nearest_swings),
)
"""Many members, in arrays."""
