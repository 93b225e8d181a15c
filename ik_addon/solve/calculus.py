"""What is written once for both kernels, of one chain in plain floats and of many in arrays, does not have in common.

A number is a float of one chain, or an array (B,) with one for each of many. What joints have each is a row: a list
with an item for each joint of one chain, or with a single item, of arrays (n, B), for all joints of many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .cones import Cone, nearest_swing
from .line_single import nearest_swing_of_one
from .rotations import stacked
from .tuples import Number, Quaternion, added, multiply
from .twist import total

Pair = tuple[Number, Number]


class Calculus(Protocol):
    """What floats and arrays do not have in common."""

    def sqrt(self, number: Number, /) -> Number:
        """Return the root."""

    def where(self, chosen: Number, one: Number, other: Number, /) -> Number:
        """Return the one number where it is chosen, elsewhere the other one."""

    def any(self, number: Number, /) -> bool:
        """Return whether anything is true."""

    def least(self, one: Number, other: Number, /) -> Number:
        """Return the smaller number."""

    def most(self, one: Number, other: Number, /) -> Number:
        """Return the larger number."""

    def each(self, function: Callable[..., Any], /, *rows: list[Number]) -> list[Number]:
        """Return a function of numpy of the numbers of rows: sines of the standard library have other bits."""

    def nearest_swing(self, x: Number, z: Number, low: Pair, high: Pair, /) -> Pair:
        """See `cones.nearest_swing`."""

    def apart(self, row: list[Any], /) -> list[Any]:
        """Return the vectors of a row, one for each joint."""

    def above(self, row: list[Any], root: Any, /) -> list[Any]:
        """Return for each joint the vector of the joint above, for the first one that of the root."""

    def sums(self, row: list[Any], /) -> list[Any]:
        """Return for each joint the sum of the vectors of a row up to its own."""

    def products(self, row: list[Quaternion], /) -> list[Quaternion]:
        """Return for each joint the product of the quaternions of a row up to its own."""

    def after_first(self, row: list[Number], /) -> Number:
        """Return the sum of the numbers of a row without that of the first joint."""


class _One:
    """One chain, of floats."""

    sqrt, any = staticmethod(math.sqrt), staticmethod(bool)
    least, most = staticmethod(min), staticmethod(max)

    def where(self, chosen: Number, one: Number, other: Number) -> Number:
        return one if chosen else other

    def each(self, function: Callable[..., Any], *rows: list[Number]) -> list[Number]:
        found: list[Number] = function(*map(np.array, rows)).tolist()
        return found

    def nearest_swing(self, x: Number, z: Number, low: Pair, high: Pair) -> Pair:
        return nearest_swing_of_one(x, z, low, high)

    def apart(self, row: list[Any]) -> list[Any]:
        return row

    def above(self, row: list[Any], root: Any) -> list[Any]:
        return [root, *row[:-1]]

    def sums(self, row: list[Any]) -> list[Any]:
        found = row[:1]
        for vector in row[1:]:
            found.append(tuple(a + b for a, b in zip(found[-1], vector, strict=True)))
        return found

    def products(self, row: list[Quaternion]) -> list[Quaternion]:
        found = row[:1]
        for turn in row[1:]:
            found.append(multiply(found[-1], turn))
        return found

    def after_first(self, row: list[Number]) -> Number:
        return added(row[1:])


class _Many:
    """Many chains, of arrays."""

    def sqrt(self, number: Number) -> Number:
        return np.sqrt(number)

    def where(self, chosen: Number, one: Number, other: Number) -> Number:
        return np.where(chosen, one, other)

    def any(self, number: Number) -> bool:
        return bool(np.any(number))

    def least(self, one: Number, other: Number) -> Number:
        return np.minimum(one, other)

    def most(self, one: Number, other: Number) -> Number:
        return np.maximum(one, other)

    def each(self, function: Callable[..., Any], *rows: list[Number]) -> list[Number]:
        return [function(*numbers) for numbers in zip(*rows, strict=True)]

    def nearest_swing(self, x: Number, z: Number, low: Pair, high: Pair) -> Pair:
        lows, highs = np.stack(low), np.stack(high)
        nearest = nearest_swing(stacked(x, z), Cone(lows, highs, lows, highs))
        return nearest[0], nearest[1]

    def apart(self, row: list[Any]) -> list[Any]:
        return list(zip(*row[0], strict=True))

    def above(self, row: list[Any], root: Any) -> list[Any]:
        moved = [np.empty_like(part) for part in row[0]]
        for new, part, first in zip(moved, row[0], root, strict=True):
            new[0], new[1:] = first, part[:-1]
        return [tuple(moved)]

    def sums(self, row: list[Any]) -> list[Any]:
        return [tuple(np.cumsum(part, axis=0) for part in row[0])]

    def products(self, row: list[Quaternion]) -> list[Quaternion]:
        w, x, y, z = row[0]
        # As matrices, by which the product with all numbers of the other quaternion is one multiplication.
        turns = np.stack([[w, -x, -y, -z], [x, w, z, -y], [y, -z, w, x], [z, y, -x, w]])
        found = np.empty((4, *w.shape))
        found[:, 0] = turns[:, 0, 0]
        for i in range(1, len(w)):
            parts = turns[:, :, i] * found[:, i - 1]
            np.add(parts[:, 0], parts[:, 1], out=found[:, i])
            found[:, i] += parts[:, 2]
            found[:, i] += parts[:, 3]
        return [tuple(found)]

    def after_first(self, row: list[Number]) -> Number:
        return total(row[0][1:])


ONE: Calculus = _One()
MANY: Calculus = _Many()
