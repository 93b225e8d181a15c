"""Input and result of posing a body: plain arrays, without Blender."""

from dataclasses import dataclass, field

import numpy as np

from ..problem import Bools, Floats, Ints

STRENGTH = 100.0
"""Maximum force on a dragged end. With a lever arm as long as the body, it turns a joint by this many radians."""


@dataclass(frozen=True)
class Body:
    """A skeleton of n bones, parents first, in its pose at the start of a drag."""

    parents: Ints
    """(n,) index of each bone's parent, which comes before the bone; -1: no parent."""
    heads: Floats
    """(n, 3) heads of the bones, in any unit."""
    frames: Floats
    """(n, 3, 3) orientations, orthonormal and right-handed; the columns are the X, Y and Z axes."""
    root: int | None = None
    """The free root: moves and turns whatever its limits; bones that are not below it stay. None: all joints may
    turn, but the body does not move as a whole."""
    rest: Floats | None = None
    """(n, 3, 3) rest orientation in the parent bone's axes, from which limits are measured, and about whose axes joints
    are stiff; None: no limits, and the axes are those of the bones."""
    cones: Floats | None = None
    """(n, 4) minimum and maximum rotation about X, then about Z, in radians, as in `Limits`."""
    twist: Floats | None = None
    """(n, 2) minimum and maximum twist, in radians. A bone that is outside its limits may stay as far outside."""
    stiffness: Floats | None = None
    """(n, 3) stiffness of joints about X, Y and Z, from 0 to 0.99."""
    hardening: Floats | None = None
    """(n,) how much stiffer a joint becomes when turned by a radian; None: not at all. The root does not harden."""
    give: Floats | None = None
    """(n,) how readily each bone follows, compared with what its size suggests; 0: not at all. None: 1."""
    bends: Floats | None = None
    """(n, 3) rotations in radians by which straight joints begin to bend, which have no side of their own; they stay
    straight where that is nearer to the initial pose. None: none."""


@dataclass(frozen=True)
class Pin:
    """A bone that keeps its place in the body, its orientation, or both."""

    bone: int
    location: bool = True
    """The head of the bone, or `point`, stays where it is."""
    rotation: bool = True
    """The bone keeps its orientation."""
    strength: float = np.inf
    """The largest force with which it holds: it gives way where more is needed; infinite: never. A dragged bone is
    pulled with `STRENGTH`."""
    point: Floats | None = None
    """(3,) the point of the bone that stays, instead of its head."""


@dataclass(frozen=True)
class Grab:
    """A bone that is dragged by one of its points, turned, or both."""

    bone: int
    target: Floats | None
    """(3,) where the dragged point should go; None: anywhere, only the orientation counts."""
    point: Floats | None = None
    """(3,) where the dragged point is in the body; None: the head of the bone."""
    rotation: Floats | None = None
    """(3, 3) orientation that the bone should have; None: any."""
    limb: int | None = None
    """The first bone of the limb that the bone is part of: where the limb alone reaches, the body hardly follows.
    None: all joints follow by their size."""


@dataclass(frozen=True)
class PosedBody:
    """The pose of a body under a drag."""

    heads: Floats
    """(n, 3)"""
    frames: Floats
    """(n, 3, 3)"""
    error: float
    """Largest distance from a dragged point to its target."""
    pin_error: float
    """Largest distance from a pinned point to its place, pins of limited strength left out."""
    pin_turn: float
    """Largest angle between a pinned bone and its orientation, in radians, pins of limited strength left out."""
    iterations: int
    """Number of passes used."""
    at_limit: Bools = field(repr=False)
    """(n,) bones that a limit held back in the last pass."""
    held_by: tuple[int, ...] = ()
    """Bones of the pins that hold the body back, if a dragged point is not at its target: those that never give way."""


def check_shape(body: Body) -> None:
    """Raise ValueError, naming the array at fault, if the arrays of a body do not fit together."""
    n = len(body.parents)
    shapes = [("heads", body.heads, (n, 3)), ("frames", body.frames, (n, 3, 3)), ("rest", body.rest, (n, 3, 3))]
    shapes += [("cones", body.cones, (n, 4)), ("twist", body.twist, (n, 2))]
    shapes += [("stiffness", body.stiffness, (n, 3)), ("hardening", body.hardening, (n,)), ("give", body.give, (n,))]
    shapes.append(("bends", body.bends, (n, 3)))
    for name, array, shape in shapes:
        if array is not None and np.shape(array) != shape:
            raise ValueError(f"{name} must have the shape {shape} to go with the parents, not {np.shape(array)}")
        if array is not None and name not in ("cones", "twist") and not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite")
    if (np.asarray(body.parents) >= np.arange(n)).any():
        raise ValueError("parents must name an earlier bone for each bone, or -1")
    if body.root is not None and not 0 <= body.root < n:
        raise ValueError(f"root must be the index of one of the {n} bones, not {body.root}")
