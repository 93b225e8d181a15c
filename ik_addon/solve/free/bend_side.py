"""The side to which a chain bends whatever its FK pose does: knees forward, elbows backward.

A chain with a bend side stays on it, also where its FK pose is hyperextended or straight. How the FK pose bends decides
the plane alone, and that by how far it bends to the right side: a pose on its way through straight shows no plane, so
nothing turns round when it passes there. Measured against how far the solved chain will bend: as long as it bends no
more than FK does, its plane is FK's, and a chain whose target stands at its FK tip keeps its pose.

Written once for one chain in plain floats and for many in arrays, see `calculus`.
"""

from __future__ import annotations

from ..maths.calculus import Calculus
from ..maths.vectors import Number, Vector, cross, dot, plus, reject, times

NO_BEND = 1e-4
"""Radians: a chain that bends by less shows no plane, it may be rounding in single precision."""
CLEAR = 0.017
"""Radians: a chain that bends by more to its side, about a degree, bends in the plane of its FK pose."""
LEAST = 1e-3
"""Radians that the bend of FK is measured against at least."""
SHARE = 0.5
"""Part of the solved bend that FK must bend to its side to decide the plane: in its own pose up to 60 degrees off."""
ASKEW = 1e-3
"""Where the hinge of the side stands along the line from root to tip but for this, there is no such side of it."""


def side_bend(
    calculus: Calculus, line: Vector, bend: Vector, side: Vector, first: Vector, chord: Number, distance: Number
) -> tuple[Vector, Number, Number]:
    """Return to where chains bend that have a side, seen from their line in the FK pose.

    Args:
        calculus: of one chain or of many.
        line: unit, from root to tip in the FK pose.
        bend: unit and across it, to where the FK pose bends.
        side: the bend side in the FK pose, of the root bone; zero: none.
        first: unit, of the first segment in the FK pose.
        chord: from root to tip in the FK pose, in chain lengths.
        distance: the same in the solved one.

    Returns:
        The direction, unit and across the line; whether that of the FK pose is kept exactly; and how far FK bends
        to the side, about in radians.
    """
    # The hinge is the same however far the chain bends; the side would lean over with the upper bone.
    hinge = reject(cross(side, first), line)
    size = calculus.sqrt(dot(hinge, hinge))
    known = size > ASKEW
    room = calculus.most(size, ASKEW)
    own = cross(line, (hinge[0] / room, hinge[1] / room, hinge[2] / room))
    right = _bent(calculus, chord) * dot(bend, own)
    needed = calculus.most(calculus.least(SHARE * _bent(calculus, distance), CLEAR), LEAST)
    weight = calculus.least(calculus.most((right - NO_BEND) / (needed - NO_BEND), 0.0), 1.0)
    weight = weight * weight * (3.0 - 2.0 * weight)
    x, y, z = plus(times(bend, weight), times(own, 1.0 - weight))
    length = calculus.most(calculus.sqrt(x * x + y * y + z * z), ASKEW)
    kept = (weight == 1.0) | (known == False)  # noqa: E712 - of an array as of a single one
    found = (x / length, y / length, z / length)
    chosen = [calculus.where(kept, b, f) for b, f in zip(bend, found, strict=True)]
    return (chosen[0], chosen[1], chosen[2]), kept, calculus.where(known, right, CLEAR)


def _bent(calculus: Calculus, chord: Number) -> Number:
    """Return how far a chain bends whose ends are so far apart: for two equal bones the chord of the angle."""
    return 2.0 * calculus.sqrt(calculus.most(1.0 - chord * chord, 0.0))
