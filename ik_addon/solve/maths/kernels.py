"""The two kernels: one member in plain floats, and many in arrays; see `calculus`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..problem import Bools, Ints
from . import vectors
from .calculus import Calculus, Pair, Path, Row
from .cones import Cone, nearest_swing, nearest_swing_of_one
from .rotations import dot, stacked
from .vectors import Number, Quaternion, multiply

_CROWD, _FEW = 0.75, 32
_ALL = slice(None)


def is_crowd(left: int, members: int) -> bool:
    """Return whether to go on with all members although only `left` of them are unfinished.

    Picking members out takes as long as a step, and a step takes as long for a few members as for one.
    """
    return left >= _CROWD * members or members - left < _FEW


def is_everyone(chosen: Bools | Ints, members: int) -> bool:
    """Return whether the chosen ones are all of the members, in their order."""
    if len(chosen) != members:
        return False
    return bool((chosen if chosen.dtype == np.bool_ else chosen == np.arange(members)).all())


class _One:
    """One member, in floats."""

    sqrt, sin, cos, tan = (staticmethod(each) for each in (math.sqrt, math.sin, math.cos, math.tan))
    arcsin, arctan2, expm1 = (staticmethod(each) for each in (math.asin, math.atan2, math.expm1))
    any = staticmethod(bool)
    least, most = staticmethod(min), staticmethod(max)

    @staticmethod
    def where(chosen: Number, one: Number, other: Number) -> Number:
        return one if chosen else other

    nearest_swing = staticmethod(nearest_swing_of_one)

    def apart(self, row: Row) -> Row:
        return row

    together = each_joint = columns = apart

    def above(self, row: Row, root: Any, free: Sequence[int] = ()) -> Row:
        found = [root, *row[:-1]]
        for i in free:
            found[i] = root
        return found

    def sums(self, row: Row) -> Row:
        found = row[:1]
        for vector in row[1:]:
            found.append(tuple(a + b for a, b in zip(found[-1], vector, strict=True)))
        return found

    def products(self, row: list[Quaternion], free: Sequence[int] = ()) -> list[Quaternion]:
        found = row[:1]
        for i, turn in enumerate(row[1:], start=1):
            found.append(turn if i in free else multiply(found[-1], turn))
        return found

    def after_first(self, row: list[Number]) -> Number:
        return sum(row[1:])

    def largest(self, row: list[Number]) -> Number:
        return max(row)

    def totals(self, row: list[list[Number]]) -> list[Number]:
        found = row[0] if row else []
        for numbers in row[1:]:
            found = [a + b for a, b in zip(found, numbers, strict=True)]
        return found

    def of(self, row: Row, joint: int) -> Any:
        return row[joint]

    def on(self, row: Row, path: Path) -> Row:
        return row if path is None else [row[i] for i in path]

    def with_path(self, row: Row, path: Path, part: Row) -> Row:
        if path is None:
            return part
        found = list(row)
        for i, value in zip(path, part, strict=True):
            found[i] = value
        return found

    def added_on(self, joints: int, paths: Sequence[Path], parts: Sequence[Row]) -> Row:
        if len(parts) == 1 and paths[0] is None:
            return parts[0]
        found: Row = [None] * joints
        for path, part in zip(paths, parts, strict=True):
            for i, own in zip(range(joints) if path is None else path, part, strict=True):
                there = found[i]
                found[i] = own if there is None else [a + b for a, b in zip(there, own, strict=True)]
        return [(0.0,) * len(parts[0][0]) if own is None else own for own in found]

    def solved(self, matrix: list[list[Number]], wanted: list[Number]) -> list[Number]:
        found, rows = list(wanted), [list(row) for row in matrix]
        for k in range(len(found)):
            pivot, column, first = rows[k][k], [row[k] for row in rows[k + 1 :]], found[k]
            for i, value in enumerate(column, start=k + 1):
                row, factor = rows[i], value / pivot
                for j in range(k + 1, i + 1):
                    row[j] -= factor * column[j - k - 1]
                row[k] = factor
                found[i] -= factor * first
        found = [value / row[k] for k, (value, row) in enumerate(zip(found, rows, strict=True))]
        for k in range(len(found) - 1, 0, -1):
            row, value = rows[k], found[k]
            for j in range(k):
                found[j] -= row[j] * value
        return found

    no_vector = (0.0,) * 3
    no_matrix = (no_vector,) * 3
    plus, minus, times = staticmethod(vectors.plus), staticmethod(vectors.minus), staticmethod(vectors.times)
    dot, turned = staticmethod(vectors.dot), staticmethod(vectors.turned)
    with_dyad = staticmethod(vectors.with_dyad)

    def members(self, value: Any, _chosen: Any) -> Any:
        return value

    def marked(self, row: list[Number]) -> Any:
        return True if True in row else None

    def put(self, _row: Row, _chosen: Any, new: Row) -> Row:
        return new

    def choose(self, chosen: Number, one: Any, other: Any) -> Any:
        return one if chosen else other


class _Many:
    """Many members, in arrays."""

    sqrt, sin, cos, tan = (staticmethod(each) for each in (np.sqrt, np.sin, np.cos, np.tan))
    arcsin, arctan2, expm1 = (staticmethod(each) for each in (np.arcsin, np.arctan2, np.expm1))
    where, least, most = (staticmethod(each) for each in (np.where, np.minimum, np.maximum))

    @staticmethod
    def any(number: Number) -> bool:
        return bool(np.count_nonzero(number))

    @staticmethod
    def nearest_swing(x: Number, z: Number, low: Pair, high: Pair) -> Pair:
        lows, highs = np.asarray(low), np.asarray(high)
        nearest = nearest_swing(stacked(x, z), Cone(lows, highs, lows, highs))
        return nearest[0], nearest[1]

    def apart(self, row: Row) -> Row:
        return list(zip(*row[0], strict=True))

    def together(self, vectors: Row) -> Row:
        return [tuple(stacked(*parts) for parts in zip(*vectors, strict=True))]

    def above(self, row: Row, root: Any, free: Sequence[int] = ()) -> Row:
        moved = [np.empty_like(part) for part in row[0]]
        for new, part, first in zip(moved, row[0], root, strict=True):
            new[0], new[1:] = first, part[:-1]
            new[list(free)] = first
        return [tuple(moved)]

    def sums(self, row: Row) -> Row:
        return [tuple(np.cumsum(part, axis=0) for part in row[0])]

    def products(self, row: list[Quaternion], free: Sequence[int] = ()) -> list[Quaternion]:
        w, x, y, z = row[0]
        # As matrices, so that the product with all components of the other quaternion is one multiplication.
        turns = np.stack([[w, -x, -y, -z], [x, w, z, -y], [y, -z, w, x], [z, y, -x, w]])
        found = np.empty((4, *w.shape))
        found[:, 0] = turns[:, 0, 0]
        for i in range(1, len(w)):
            if i in free:
                found[:, i] = turns[:, 0, i]
                continue
            parts = turns[:, :, i] * found[:, i - 1]
            np.add(parts[:, 0], parts[:, 1], out=found[:, i])
            found[:, i] += parts[:, 2]
            found[:, i] += parts[:, 3]
        return [tuple(found)]

    def after_first(self, row: list[Number]) -> Number:
        return row[0][1:].sum(axis=-2)

    def totals(self, row: list[list[Number]]) -> list[Number]:
        return list(stacked(*row[0]).sum(axis=-2)) if row else []

    def largest(self, row: list[Number]) -> Number:
        return row[0].max(axis=0)

    def each_joint(self, row: Row) -> list[Any]:
        return _apart(row[0])

    def of(self, row: Row, joint: int) -> Any:
        return _each_array(row[0], lambda part: part[..., joint, :])

    def on(self, row: Row, path: Path) -> Row:
        return row if path is None else [_each_array(row[0], lambda part: part[..., list(path), :])]

    def with_path(self, row: Row, path: Path, part: Row) -> Row:
        if path is None:
            return part
        found = tuple(each.copy() for each in row[0])
        for whole, own in zip(found, part[0], strict=True):
            whole[list(path)] = own
        return [found]

    def added_on(self, joints: int, paths: Sequence[Path], parts: Sequence[Row]) -> Row:
        if len(parts) == 1 and paths[0] is None:
            return parts[0]
        found = [np.zeros((joints, part.shape[-1])) for part in parts[0][0]]
        for path, part in zip(paths, parts, strict=True):
            for whole, own in zip(found, part[0], strict=True):
                whole[slice(None) if path is None else list(path)] += own
        return [tuple(found)]

    def solved(self, matrix: list[list[Number]], wanted: list[Number]) -> list[Number]:
        found = stacked(*wanted)
        rows = np.zeros((len(found), *found.shape))
        for row, values in zip(rows, matrix, strict=True):
            for j, value in enumerate(values):
                row[j] = value
        for k in range(len(found) - 1):
            column = rows[k + 1 :, k].copy()
            factors = column / rows[k, k]
            rows[k + 1 :, k + 1 :] -= factors[:, None] * column
            rows[k + 1 :, k] = factors
            found[k + 1 :] -= factors * found[k]
        diagonal = np.arange(len(found))
        found /= rows[diagonal, diagonal]
        for k in range(len(found) - 1, 0, -1):
            found[:k] -= rows[k, :k] * found[k]
        return list(found)

    no_vector, no_matrix = np.zeros((3, 1)), np.zeros((3, 3, 1))
    plus, minus, times, dot = (staticmethod(each) for each in (np.add, np.subtract, np.multiply, dot))

    def columns(self, row: Row) -> list[Any]:
        packed = np.array(row[0])
        return list(np.moveaxis(packed, 2, 0))

    @staticmethod
    def turned(matrix: Any, vector: Any) -> Any:
        parts = matrix * vector
        found = parts[:, 0] + parts[:, 1]
        found += parts[:, 2]
        return found

    @staticmethod
    def with_dyad(matrix: Any, column: Any, row: Any) -> Any:
        return matrix + column[:, None] * row

    def members(self, value: Any, chosen: Any) -> Any:
        if chosen is _ALL:
            return value
        return chosen if value is _ALL else _each_array(value, lambda part: part[..., chosen])

    def marked(self, row: list[Number]) -> Any:
        found = np.flatnonzero(row[0].any(axis=0))
        if not len(found):
            return None
        return _ALL if is_crowd(len(found), row[0].shape[-1]) else found

    def put(self, row: Row, chosen: Any, new: Row) -> Row:
        for part, values in zip(row[0], new[0], strict=True):
            part[..., chosen] = values
        return row

    def choose(self, chosen: Number, one: Any, other: Any) -> Any:
        rejected = np.flatnonzero(~chosen)
        if len(rejected):
            _overwrite(one, other, rejected)
        return one


def _apart(value: Any) -> list[Any]:
    """Split nested lists and tuples of arrays (n, ...) into n of the same form, along the first axis."""
    return list(value) if isinstance(value, np.ndarray) else list(zip(*map(_apart, value), strict=True))


def _each_array(value: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function to each array in nested lists, tuples and dictionaries."""
    if isinstance(value, np.ndarray):
        return function(value)
    if isinstance(value, tuple):
        parts = [_each_array(part, function) for part in value]
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    if isinstance(value, list):
        return [_each_array(part, function) for part in value]
    if isinstance(value, dict):
        return {key: _each_array(part, function) for key, part in value.items()}
    return value


def _overwrite(value: Any, source: Any, chosen: Any) -> None:
    """Copy the chosen members from `source` to `value`, nested lists and tuples of arrays of the same form.

    A dictionary keeps only what is in both.
    """
    if isinstance(value, np.ndarray):
        value[..., chosen] = source[..., chosen]
    elif isinstance(value, tuple | list):
        for part, other in zip(value, source, strict=True):
            _overwrite(part, other, chosen)
    elif isinstance(value, dict):
        for key in list(value):
            if key in source:
                _overwrite(value[key], source[key], chosen)
            else:
                del value[key]


ONE: Calculus = _One()
MANY: Calculus = _Many()
