"""Operations in which the kernels differ: of one member in plain floats, and of many in arrays.

Everything else is written once for both. A number is a float of one member, or an array (B,) with one for each of
many. What joints have each is a row: a list with an item for each joint of one member, or with a single item, of arrays
(n, B), for all joints of many. Vectors and matrices are tuples of numbers; of many they may be arrays, components
first. Both kernels take every sum in the same order and every function from numpy, so that they come to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .vectors import Number, Quaternion

Pair = tuple[Number, Number]
Row = list[Any]
"""What joints have each."""
Path = tuple[int, ...] | None
"""The joints that something depends on; None: all of them."""


class Calculus(Protocol):
    """What floats and arrays do not have in common."""

    # ---- numbers

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

    # ---- rows

    def apart(self, row: Row, /) -> Row:
        """Return the vectors of a row, one for each joint."""

    def together(self, vectors: Row, /) -> Row:
        """Return vectors, one for each joint, as a row."""

    def above(self, row: Row, root: Any, /, free: Sequence[int] = ()) -> Row:
        """Return for each joint the vector of the joint above, for the first one and free ones that of the root."""

    def sums(self, row: Row, /) -> Row:
        """Return for each joint the sum of the vectors of a row up to its own."""

    def products(self, row: list[Quaternion], /, free: Sequence[int] = ()) -> list[Quaternion]:
        """Return for each joint the product of the quaternions of a row up to its own, from the last free one on."""

    def after_first(self, row: list[Number], /) -> Number:
        """Return the sum of the numbers of a row without that of the first joint."""

    def totals(self, row: list[list[Number]], /) -> list[Number]:
        """Return the sum of each of the numbers that joints have."""

    def largest(self, row: list[Number], /) -> Number:
        """Return the largest number of a row."""

    def of(self, row: Row, joint: int, /) -> Any:
        """Return what a row has for one joint."""

    def each_joint(self, row: Row, /) -> list[Any]:
        """Return what a row has for each joint, of any form."""

    def on(self, row: Row, path: Path, /) -> Row:
        """Return the part of a row that belongs to the joints of a path."""

    def with_path(self, row: Row, path: Path, part: Row, /) -> Row:
        """Return a row with what belongs to the joints of a path replaced."""

    def added_on(self, joints: int, paths: Sequence[Path], parts: Sequence[Row], /) -> Row:
        """Return for each of all joints the sum of what parts have, that belong to the joints of paths."""

    def solved(self, matrix: list[list[Number]], wanted: list[Number], /) -> list[Number]:
        """Return the solution of equations with a symmetric positive matrix, of which the lower half is given.

        Cholesky's way, without roots.
        """

    # ---- vectors and matrices (3, 3) of one joint: tuples of one member, of many single arrays, components first

    no_vector: Any
    no_matrix: Any
    """Of zeros."""

    def columns(self, row: Row, /) -> list[Any]:
        """Return for each joint the vectors that a row has for it."""

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
        """Return the chosen members of anything made of numbers."""

    def marked(self, row: list[Number], /) -> Any:
        """Return the members of which anything in a row is true, or all where most are; None: there are none."""

    def put(self, row: Row, chosen: Any, new: Row, /) -> Row:
        """Return a row with that of the chosen members replaced; it may be overwritten."""

    def choose(self, chosen: Number, one: Any, other: Any, /) -> Any:
        """Return anything made of numbers where it is chosen, elsewhere the other; the one may be overwritten."""
