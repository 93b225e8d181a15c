"""The side to which a chain bends whatever its FK pose: knees forward, elbows backward.

A chain with a bend side stays on it, even where its FK pose is hyperextended or straight. The FK pose only affects the
plane of the bend, and does so by how far it bends to the right side: a pose passing through straight shows no plane, so
nothing flips there. How far FK bends is compared with how far the solved chain will bend: as long as the solved chain
bends no more, its plane is that of FK, and a chain whose target is at its FK tip keeps its pose.

Written once for one chain in plain floats and for many in arrays, see `numbers`.
"""

from __future__ import annotations

from ..maths.numbers import Number, Numbers, Vector, cross, dot, plus, reject, times

NO_BEND = 1e-4
"""Radians: a chain that bends by less shows no plane, as the bend could be rounding in single precision."""
CLEAR = 0.017
"""Radians: a chain that bends to its side by more than this, about a degree, bends in the plane of its FK pose."""
LEAST = 1e-3
"""Radians: the smallest bend with which the bend of FK is compared."""
SHARE = 0.5
"""Fraction of the solved bend that FK must bend to its side to decide the plane: in the FK pose, up to 60° off."""
ASKEW = 1e-3
"""A hinge with less than this across the line from root to tip gives no side."""


def side_bend(
    do: Numbers, line: Vector, bend: Vector, side: Vector, first: Vector, chord: Number, distance: Number
) -> tuple[Vector, Number, Number]:
    """Return the direction in which chains with a bend side bend, relative to their line in the FK pose.

    Args:
        do: for one chain or for many.
        line: unit vector from root to tip in the FK pose.
        bend: unit vector across the line, the direction in which the FK pose bends.
        side: bend side of the root bone in the FK pose; zero: none.
        first: unit direction of the first segment in the FK pose.
        chord: distance from root to tip in the FK pose, in chain lengths.
        distance: the same in the solved pose.

    Returns:
        The direction, a unit vector across the line; whether it is exactly that of the FK pose; and how far FK bends to
        the side, roughly in radians.
    """
    # The hinge is the same however far the chain bends; the side would lean over with the upper bone.
    hinge = reject(cross(side, first), line)
    size = do.sqrt(dot(hinge, hinge))
    known = size > ASKEW
    room = do.most(size, ASKEW)
    own = cross(line, (hinge[0] / room, hinge[1] / room, hinge[2] / room))
    right = _bent(do, chord) * dot(bend, own)
    needed = do.most(do.least(SHARE * _bent(do, distance), CLEAR), LEAST)
    weight = do.least(do.most((right - NO_BEND) / (needed - NO_BEND), 0.0), 1.0)
    weight = weight * weight * (3.0 - 2.0 * weight)
    x, y, z = plus(times(bend, weight), times(own, 1.0 - weight))
    length = do.most(do.sqrt(x * x + y * y + z * z), ASKEW)
    kept = (weight == 1.0) | (known == False)  # noqa: E712 - of an array as of a single one
    found = (x / length, y / length, z / length)
    chosen = [do.where(kept, b, f) for b, f in zip(bend, found, strict=True)]
    return (chosen[0], chosen[1], chosen[2]), kept, do.where(known, right, CLEAR)


def _bent(do: Numbers, chord: Number) -> Number:
    """Return how far a chain with a given chord bends: for two equal bones the chord of the angle."""
    return 2.0 * do.sqrt(do.most(1.0 - chord * chord, 0.0))
