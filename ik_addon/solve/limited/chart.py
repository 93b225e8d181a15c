"""From where the angles of joints without limits are measured, so that they stay clear of half a turn.

There the coordinates of a swing say least about where a bone points, and steps get short.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..maths.cones import joint_rotation
from ..maths.rotations import inverse, matrices, multiply
from ..maths.vectors import product
from ..problem import Floats
from .body import Body, angles_of


@dataclass(frozen=True)
class Chart:
    """Bodies whose joints without limits are measured from another pose."""

    body: Body
    swings: Floats
    """(4, n, B) swings of the joints in the first bodies at which these are at rest."""
    first: Body

    @classmethod
    def at(cls, body: Body, angles: Floats) -> Chart:
        """Measure joints without limits from where angles (3, n, B) swing them."""
        swings = joint_rotation(angles[:2], np.zeros_like(angles[2]))
        swings = np.where(body.is_unlimited[:, None], swings, np.array([1.0, 0.0, 0.0, 0.0])[:, None, None])
        rest: Any = body.rest
        turn: Any = matrices(swings)
        return cls(replace(body, rest=np.array(product(rest, turn))), swings, body)

    def enter(self, angles: Floats) -> Floats:
        """Return angles (3, n, B) of the first bodies as angles of these."""
        return self._turned(self.body, inverse(self.swings), angles)

    def leave(self, angles: Floats) -> Floats:
        """Return angles (3, n, B) of these bodies as angles of the first ones."""
        return self._turned(self.first, self.swings, angles)

    def _turned(self, body: Body, swings: Floats, angles: Floats) -> Floats:
        turns = multiply(swings, joint_rotation(angles[:2], angles[2]))
        return np.where(body.is_unlimited[:, None], angles_of(body, turns), angles)
