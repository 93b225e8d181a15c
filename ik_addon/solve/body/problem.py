"""What a body is posed from, and the pose that comes of it: plain arrays, without Blender."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..problem import Bools, Floats, Ints


@dataclass(frozen=True)
class Body:
    """A skeleton of n bones, parents first, as it stands when a drag begins."""

    parents: Ints
    """(n,) the parent of each bone, an earlier one, or -1."""
    heads: Floats
    """(n, 3) where the bones begin; any unit."""
    frames: Floats
    """(n, 3, 3) orientations, orthonormal and right-handed; the columns are the X, Y and Z axes."""
    root: int | None = None
    """The bone that moves and turns freely, whatever its limits; bones that are not below it stay. None: no bone moves,
    all joints turn."""
    rest: Floats | None = None
    """(n, 3, 3) rest orientation seen from the parent bone, from which limits are measured; None: there are none."""
    cones: Floats | None = None
    """(n, 4) least and greatest rotation about X, then about Z, in radians, as in `Limits`."""
    twist: Floats | None = None
    """(n, 2) least and greatest twist. A bone that is outside of its limits may stay as far outside."""
    stiffness: Floats | None = None
    """(n, 3) how little joints turn about X, Y and Z, from 0 to 0.99."""
    hardening: Floats | None = None
    """(n,) by how much stiffer a joint is that is turned by a radian. None: not at all. The root never is."""
    give: Floats | None = None
    """(n,) how readily each bone follows, compared with what its size suggests; 0: not at all. None: 1."""


@dataclass(frozen=True)
class Pin:
    """A bone that keeps the place and the orientation that it has in the body, or one of them."""

    bone: int
    location: bool = True
    """The head of the bone stays."""
    rotation: bool = True
    """The bone keeps its orientation."""
    weight: float = np.inf
    """Infinite: it holds. Less: it gives way, like a spring of this strength."""
    point: Floats | None = None
    """(3,) the place that stays in place of the head."""


@dataclass(frozen=True)
class Grab:
    """A bone that is dragged, by a point of it, or that is turned."""

    bone: int
    target: Floats | None
    """(3,) where it should go; None: anywhere, it has an orientation alone."""
    point: Floats | None = None
    """(3,) where it is in the body; None: the head of the bone."""
    rotation: Floats | None = None
    """(3, 3) orientation that the bone should have; None: any."""


@dataclass(frozen=True)
class PosedBody:
    """The body as it follows its drag."""

    heads: Floats
    """(n, 3)"""
    frames: Floats
    """(n, 3, 3)"""
    error: float
    """Largest distance from a dragged point to its target."""
    pin_error: float
    """Largest distance of a pinned head to its place."""
    pin_turn: float
    """Largest angle of a pinned bone to its orientation, in radians."""
    iterations: int
    """Passes that were used."""
    at_limit: Bools = field(repr=False)
    """(n,) bones that a limit held back in the last pass."""


def check_shape(body: Body) -> None:
    """Raise ValueError, saying what does not fit, if the arrays of a body do not fit together."""
    n = len(body.parents)
    shapes = [("heads", body.heads, (n, 3)), ("frames", body.frames, (n, 3, 3)), ("rest", body.rest, (n, 3, 3))]
    shapes += [("cones", body.cones, (n, 4)), ("twist", body.twist, (n, 2))]
    shapes += [("stiffness", body.stiffness, (n, 3)), ("hardening", body.hardening, (n,)), ("give", body.give, (n,))]
    for name, array, shape in shapes:
        if array is not None and np.shape(array) != shape:
            raise ValueError(f"{name} must have the shape {shape} to go with the parents, not {np.shape(array)}")
        if array is not None and name not in ("cones", "twist") and not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite")
    if (np.asarray(body.parents) >= np.arange(n)).any():
        raise ValueError("parents must name an earlier bone for each bone, or -1")
    if body.root is not None and not 0 <= body.root < n:
        raise ValueError(f"root must be the index of one of the {n} bones, not {body.root}")
