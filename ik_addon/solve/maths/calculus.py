"""Operations in which the two kernels differ: one member in plain floats, many members in arrays.

All other code is written once for both. A number is a float for one member, or an array (B,) for many. Data per joint
is a row: for one member a list with one item per joint; for many members a list with a single item, made of arrays
(n, B). Vectors and matrices are tuples of numbers; for many members they may also be arrays, components first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from .vectors import Number, Quaternion

Pair = tuple[Number, Number]
Row = list[Any]
"""Data per joint."""
Path = tuple[int, ...] | None
"""The indices of the joints that something depends on; None: all joints."""


def whole_path(path: tuple[int, ...], joints: int) -> Path:
    """Return a path as the kernels want it: None if it has all joints."""
    return None if len(path) == joints else path


def runs_of(free: Sequence[bool], bones: Sequence[int]) -> tuple[range, ...]:
    """Return the runs of a path's bones, by position in it: a joint turns only those after it in its run.

    A bone that does not inherit rotation, one of `free`, begins a run. Empty if there is only one run.
    """
    first = [i for i, bone in enumerate(bones) if i == 0 or free[bone]]
    return tuple(map(range, first, [*first[1:], len(bones)])) if len(first) > 1 else ()


class Calculus(Protocol):
    """The operations in which floats and arrays differ."""

    # ---- numbers

    def sqrt(self, number: Number, /) -> Number:
        """Return the square root."""

    def sin(self, angle: Number, /) -> Number:
        """Return the sine."""

    def cos(self, angle: Number, /) -> Number:
        """Return the cosine."""

    def tan(self, angle: Number, /) -> Number:
        """Return the tangent."""

    def arcsin(self, sine: Number, /) -> Number:
        """Return the angle with a sine."""

    def arctan2(self, sine: Number, cosine: Number, /) -> Number:
        """Return the angle with a multiple of a sine and a cosine."""

    def expm1(self, number: Number, /) -> Number:
        """Return the exponential minus one."""

    def where(self, chosen: Number, one: Number, other: Number, /) -> Number:
        """Return `one` where `chosen` is true, and `other` elsewhere."""

    def any(self, number: Number, /) -> bool:
        """Return whether any member is true."""

    def least(self, one: Number, other: Number, /) -> Number:
        """Return the smaller number."""

    def most(self, one: Number, other: Number, /) -> Number:
        """Return the larger number."""

    def nearest_swing(self, x: Number, z: Number, low: Pair, high: Pair, /) -> Pair:
        """See `cones.nearest_swing`."""

    # ---- rows

    def apart(self, row: Row, /) -> Row:
        """Return the vectors of a row, one for each joint."""

    def together(self, vectors: Row, /) -> Row:
        """Return vectors, one for each joint, as a row."""

    def above(self, row: Row, root: Any, /, free: Sequence[int] = ()) -> Row:
        """Return for each joint the vector of the joint above; for the first and the `free` ones, `root`."""

    def sums(self, row: Row, /) -> Row:
        """Return for each joint the sum of a row's vectors up to and including its own."""

    def products(self, row: list[Quaternion], /, free: Sequence[int] = ()) -> list[Quaternion]:
        """Return for each joint the product of a row's quaternions up to its own, starting anew at `free` joints."""

    def after_first(self, row: list[Number], /) -> Number:
        """Return the sum of a row's numbers without the first joint's."""

    def totals(self, row: list[list[Number]], /) -> list[Number]:
        """Return the sums over all joints of each of their numbers."""

    def largest(self, row: list[Number], /) -> Number:
        """Return the largest number of a row."""

    def of(self, row: Row, joint: int, /) -> Any:
        """Return a row's value for one joint."""

    def each_joint(self, row: Row, /) -> list[Any]:
        """Return a row's value, of any form, for each joint."""

    def on(self, row: Row, path: Path, /) -> Row:
        """Return the part of a row for the joints of a path."""

    def with_path(self, row: Row, path: Path, part: Row, /) -> Row:
        """Return a row with the part for the joints of a path replaced."""

    def added_on(self, joints: int, paths: Sequence[Path], parts: Sequence[Row], /) -> Row:
        """Return a row for all joints that sums up the parts, each of which is for the joints of its path."""

    def solved(self, matrix: list[list[Number]], wanted: list[Number], /) -> list[Number]:
        """Return the solution of equations with a symmetric positive matrix, given by its lower half.

        Uses Cholesky's decomposition without square roots.
        """

    # ---- vectors and matrices (3, 3) of one joint: tuples for one member; for many, single arrays, components first

    no_vector: Any
    no_matrix: Any
    """A matrix of zeros, as `no_vector` is a vector of zeros."""

    def columns(self, row: Row, /) -> list[Any]:
        """Return the vectors that a row has for each joint."""

    def plus(self, one: Any, other: Any, /) -> Any:
        """Return the sum of two vectors."""

    def minus(self, one: Any, other: Any, /) -> Any:
        """Return the difference of two vectors."""

    def times(self, vector: Any, factor: Number, /) -> Any:
        """Return a vector times a number."""

    def dot(self, one: Any, other: Any, /) -> Number:
        """Return the scalar product of two vectors."""

    def turned(self, matrix: Any, vector: Any, /) -> Any:
        """Return a matrix times a vector."""

    def with_dyad(self, matrix: Any, column: Any, row: Any, /) -> Any:
        """Return the sum of a matrix and the product of a column with a row."""

    # ---- members

    def members(self, value: Any, chosen: Any, /) -> Any:
        """Return the chosen members of a structure of numbers."""

    def marked(self, row: list[Number], /) -> Any:
        """Return the members for which anything in a row is true, or all if most are; None if there are none."""

    def put(self, row: Row, chosen: Any, new: Row, /) -> Row:
        """Return a row with the chosen members replaced by `new`; the row may be overwritten."""

    def choose(self, chosen: Number, one: Any, other: Any, /) -> Any:
        """Return `one` where chosen and `other` elsewhere, for any structure of numbers; `one` may be overwritten."""
