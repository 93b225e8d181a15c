"""Lines and surfaces of the overlay, from arrays to arrays: no bpy and no gpu in here.

Limits are drawn by the functions that clamp, so what is shown is what holds. Points are in armature space unless said
otherwise; colours are RGBA.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ..solve.cones import cone_of, joint_rotation, nearest_swing, swing_twist
from ..solve.problem import Bools, Floats, Ints
from ..solve.rotations import quaternions, rotate

Colour = tuple[float, float, float, float]
Singles = NDArray[np.float32]

SIDES = 64
"""Corners of the edge of a cone; a multiple of 4, so that the ends of both axes are among them."""
RINGS = 8
"""Rings of the surface within the edge."""
ARC = 48
"""Parts of the arc of a twist."""
DASHES = 12
"""Dashes of a line to a target or a pole."""
ARRIVED = 1e-3
"""A tip that is nearer to its target than this, in lengths of its last bone, needs no line to it."""
CIRCLE = 96
"""Corners of the circle of reach."""
CONE_SIZE = 0.55
"""Radius of a cone in lengths of its bone."""
TWIST_PLACE = 0.35
"""Where on a bone the arc of its twist is, from head (0) to tail (1)."""
TWIST_SIZE = 0.24
"""Radius of the arc in lengths of its bone."""
SURFACE, SIDE = 0.12, 0.06
"""Opacity of the surface of allowed directions, and of the sides of the cone below it."""
EDGE = 0.8
"""Opacity of edges."""


class State(IntEnum):
    """How a chain fares, as a colour."""

    UNKNOWN = 0
    REACHED = 1
    HELD = 2
    """Limits, or the targets of other chains, keep the tip from its target."""
    OUT_OF_REACH = 3
    FAILED = 4


@dataclass(frozen=True)
class Palette:
    """The colours of the overlay."""

    states: tuple[Colour, ...]
    """One for each `State`."""
    swing: Colour
    twist: Colour
    at_limit: Colour
    reach: Colour


@dataclass(frozen=True)
class Chains:
    """C chains with J joints in all, in world space."""

    joints: Floats
    """(J, 3) the joints of the first chain, root first, with the tip's end; then those of the next."""
    ends: Ints
    """(C,) index of the end of each chain's tip."""
    targets: Floats
    """(C, 3), not a number where there is none."""
    poles: Floats
    """(C, 3), likewise."""
    states: Ints
    """(C,) values of `State`."""
    at_limit: Bools
    """(J,) joints that stand at a limit."""


@dataclass(frozen=True)
class Joint:
    """A bone with limits."""

    head: Floats
    """(3,)"""
    length: float
    rest: Floats
    """(3, 3) the frame from which its limits are measured, columns are X, Y and Z."""
    frame: Floats
    """(3, 3) the frame in which it stands."""
    cone: tuple[float, float, float, float]
    """Least and greatest rotation about X, then about Z, in radians; infinite: no limit."""
    twist: tuple[float, float]
    """Least and greatest rotation about Y."""
    at_limit: bool


@dataclass(frozen=True)
class Plane:
    """The plane that a planar chain stays in."""

    centre: Floats
    """(3,) the root of the chain."""
    normal: Floats
    """(3,) of length 1."""
    radius: float
    """How far the chain reaches."""


@dataclass(frozen=True)
class Active:
    """What is shown of an active chain alone, in the space of its armature."""

    world: Floats
    """(4, 4) from there to world space."""
    limits: tuple[Joint, ...]
    """The bones with limits."""
    reach: tuple[Floats, float] | None
    """Root (3,) and length of the chain."""
    plane: Plane | None
    """In which the chain stays."""


@dataclass(frozen=True)
class Lines:
    """Lines between each two points."""

    points: Singles
    """(2 k, 3)"""
    colours: Singles
    """(2 k, 4)"""


@dataclass(frozen=True)
class Faces:
    """Triangles."""

    points: Singles
    """(3 k, 3)"""
    colours: Singles
    """(3 k, 4)"""


@dataclass(frozen=True)
class Drawing:
    """All that is drawn and does not depend on the view, in world space."""

    segments: Lines
    """To be drawn wide."""
    edges: Lines
    """To be drawn thin."""
    faces: Faces
    dots: Singles
    """(k, 3) joints that stand at a limit."""


def drawing(chains: Chains, actives: Sequence[Active], palette: Palette) -> Drawing:
    """Return the geometry of chains, and of the limits of those that are active."""
    moved: list[Part] = []
    filled: list[Part] = []
    with np.errstate(all="ignore"):  # what is not a number is left out below
        for active in actives:
            parts = [limit(joint, palette) for joint in active.limits]
            parts += [] if active.plane is None else [plane(active.plane, palette)]
            moved += [(transformed(active.world, points), colour) for edges, _ in parts for points, colour in edges]
            filled += [(transformed(active.world, points), colour) for _, faces in parts for points, colour in faces]
        dashed, wide = goal_lines(chains, palette), segments(chains, palette)
    edges, faces = _painted(moved), _painted(filled)
    return Drawing(
        segments=wide,
        edges=Lines(np.concatenate([dashed.points, edges[0]]), np.concatenate([dashed.colours, edges[1]])),
        faces=Faces(*faces),
        dots=chains.joints[chains.at_limit & np.isfinite(chains.joints).all(axis=1)].astype(np.float32),
    )


def transformed(matrix: Floats, points: Floats) -> Floats:
    """Return points (..., 3) under an affine matrix (4, 4)."""
    return np.asarray(points @ matrix[:3, :3].T + matrix[:3, 3])


# ---- chains


def segments(chains: Chains, palette: Palette) -> Lines:
    """Return the segments of all chains in the colours of their states."""
    is_start = np.ones(len(chains.joints), dtype=bool)
    is_start[chains.ends] = False
    first = np.flatnonzero(is_start)
    joints = chains.joints.astype(np.float32)
    counts = np.diff(chains.ends, prepend=-1) - 1
    colours = np.repeat(_state_colours(chains, palette).astype(np.float32), counts, axis=0)
    return _finite_lines(np.stack([joints[first], joints[first + 1]], axis=1), colours)


def goal_lines(chains: Chains, palette: Palette) -> Lines:
    """Return dashed lines from each tip to its target, and from the middle of each chain to its pole."""
    starts = np.concatenate([[0], chains.ends[:-1] + 1]).astype(np.int64)[: len(chains.ends)]
    middle = (starts + chains.ends) // 2
    colours = _state_colours(chains, palette)
    tips = chains.joints[chains.ends]
    arrived = np.linalg.norm(chains.targets - tips, axis=1) < ARRIVED * np.linalg.norm(
        tips - chains.joints[chains.ends - 1], axis=1
    )
    away = np.flatnonzero(~arrived & np.isfinite(chains.targets).all(axis=1))
    bent = np.flatnonzero(np.isfinite(chains.poles).all(axis=1))
    points = np.concatenate(
        [dashes(tips[away], chains.targets[away]), dashes(chains.joints[middle[bent]], chains.poles[bent])]
    )
    faint = colours[bent] * [1.0, 1.0, 1.0, 0.5]
    tints = np.repeat(np.concatenate([colours[away], faint]), DASHES, axis=0)
    return _finite_lines(points.reshape(-1, 2, 3).astype(np.float32), tints.astype(np.float32))


def dashes(start: Floats, end: Floats) -> Floats:
    """Return the ends (k, 2 DASHES, 3) of the dashes of lines between points (k, 3)."""
    share = np.arange(2 * DASHES) / (2 * DASHES - 1)
    return np.asarray(start[:, None] + share[:, None] * (end - start)[:, None])


def _state_colours(chains: Chains, palette: Palette) -> Floats:
    return np.array(palette.states)[chains.states]


def _finite_lines(points: Singles, colours: Singles) -> Lines:
    """Lines between pairs of points (k, 2, 3) in colours (k, 4), without those that have no place."""
    if not np.isfinite(points).all():
        keep = np.isfinite(points).all(axis=(1, 2))
        points, colours = points[keep], colours[keep]
    return Lines(points.reshape(-1, 3), np.repeat(colours, 2, axis=0))


# ---- limits

Part = tuple[Floats, Colour]
"""Corners (k, 3) of lines or triangles, and their colour."""


def limit(joint: Joint, palette: Palette) -> tuple[list[Part], list[Part]]:
    """Return the edges and faces of the limits of a joint."""
    edges: list[Part] = []
    faces: list[Part] = []
    if np.isfinite(joint.cone).any():
        colour = palette.at_limit if joint.at_limit else palette.swing
        surface = joint.head + CONE_SIZE * joint.length * (directions(joint.cone) @ joint.rest.T)
        edge = surface[-1]
        edges.append((_loop(edge), _faded(colour, EDGE)))
        edges.append((_spokes(joint.head, edge[:: SIDES // 4]), _faded(colour, 0.4 * EDGE)))
        faces.append((_grid(surface), _faded(colour, SURFACE)))
        faces.append((_fan(joint.head, np.concatenate([edge, edge[:1]])), _faded(colour, SIDE)))
    if np.isfinite(joint.twist).any() and joint.twist != (0.0, 0.0):
        colour = palette.at_limit if joint.at_limit else palette.twist
        centre = joint.head + TWIST_PLACE * joint.length * joint.frame[:, 1]
        across, present = twist_arc(joint)
        arc = centre + TWIST_SIZE * joint.length * across
        edges.append((_spokes(centre, arc[[0, -1]]), _faded(colour, EDGE)))
        edges.append((_strip(arc), _faded(colour, EDGE)))
        edges.append((np.stack([centre, centre + 1.25 * TWIST_SIZE * joint.length * present]), _faded(colour, 1.0)))
        faces.append((_fan(centre, arc), _faded(colour, SURFACE)))
    return edges, faces


def plane(flat: Plane, palette: Palette) -> tuple[list[Part], list[Part]]:
    """Return the edges and the face of the disc that a planar chain can reach, with a cross through its root."""
    ring = flat.centre + flat.radius * circle(flat.normal)
    quarters = ring[:: len(ring) // 4]
    edges = [(_loop(ring), _faded(palette.reach, EDGE)), (_spokes(flat.centre, quarters), _faded(palette.reach, EDGE))]
    return edges, [(_fan(flat.centre, np.concatenate([ring, ring[:1]])), _faded(palette.reach, SURFACE / 0.35))]


def circle(normal: Floats) -> Floats:
    """Return points (CIRCLE, 3) of the unit circle about the origin across a unit vector (3,)."""
    helper = np.eye(3)[np.argmin(np.abs(normal))]
    u = np.cross(normal, helper)
    u = u / np.linalg.norm(u)
    angle = np.arange(CIRCLE) * (2.0 * np.pi / CIRCLE)
    return np.asarray(np.cos(angle)[:, None] * u + np.sin(angle)[:, None] * np.cross(normal, u))


def directions(cone: Sequence[float]) -> Floats:
    """Return the surface (RINGS + 1, SIDES, 3) of the directions that a bone may point in, seen from its rest frame.

    It grows from the bone's Y axis, where all sides meet, to the edge.

    Args:
        cone: as in `Joint`.
    """
    around = np.arange(SIDES) * (2.0 * np.pi / SIDES)
    limits = cone_of(np.array([cone]), np.array([[-np.inf, np.inf]]))
    edge = nearest_swing(np.stack([np.sin(around), np.cos(around)]), limits)
    swings = edge[:, None] * (np.arange(RINGS + 1) / RINGS)[:, None]
    turns = joint_rotation(swings, np.zeros(swings.shape[1:]))
    return np.moveaxis(rotate(turns, _axis(1, 2)), 0, -1)


def twist_arc(joint: Joint) -> tuple[Floats, Floats]:
    """Return where the allowed twists (ARC + 1, 3) and the present twist (3,) take the X axis, in armature space."""
    swing, _ = swing_twist(quaternions(joint.rest.T @ joint.frame))
    limits = cone_of(np.zeros((1, 4)), np.array([joint.twist]))
    angles = np.linspace(limits.twist_low[0], limits.twist_high[0], ARC + 1)
    turns = joint_rotation(np.broadcast_to(swing[:, None], (2, ARC + 1)), angles)
    return np.asarray(rotate(turns, _axis(0, 1)).T @ joint.rest.T), joint.frame[:, 0]


def _axis(axis: int, behind: int) -> Floats:
    """A unit vector that broadcasts against (3, ...) with so many axes behind."""
    return np.eye(3)[axis].reshape(3, *(1,) * behind)


def _loop(points: Floats) -> Floats:
    """The lines (2 k, 3) around a closed curve (k, 3)."""
    return np.stack([points, np.roll(points, -1, axis=0)], axis=1).reshape(-1, 3)


def _strip(points: Floats) -> Floats:
    """The lines (2 (k-1), 3) along an open curve (k, 3)."""
    return np.stack([points[:-1], points[1:]], axis=1).reshape(-1, 3)


def _spokes(centre: Floats, points: Floats) -> Floats:
    """The lines (2 k, 3) from one point to others (k, 3)."""
    return np.stack([np.broadcast_to(centre, points.shape), points], axis=1).reshape(-1, 3)


def _fan(centre: Floats, points: Floats) -> Floats:
    """The triangles (3 (k-1), 3) between one point and a curve (k, 3)."""
    return np.stack([np.broadcast_to(centre, points[1:].shape), points[:-1], points[1:]], axis=1).reshape(-1, 3)


def _grid(points: Floats) -> Floats:
    """The triangles of rings (r, k, 3) that are closed."""
    near, far = points[:-1], points[1:]
    near_next, far_next = np.roll(near, -1, axis=1), np.roll(far, -1, axis=1)
    return np.stack([near, far, far_next, near, far_next, near_next], axis=2).reshape(-1, 3)


def _faded(colour: Colour, opacity: float) -> Colour:
    return *colour[:3], colour[3] * opacity


def _painted(parts: Sequence[Part]) -> tuple[Singles, Singles]:
    """The points of all parts and the colour of each, without lines and faces that have no place."""
    if not parts:
        return np.zeros((0, 3), dtype=np.float32), np.zeros((0, 4), dtype=np.float32)
    usable = [(points, colour) for points, colour in parts if np.isfinite(points).all()]
    points = [points for points, _ in usable] or [np.zeros((0, 3))]
    colours = [np.tile(colour, (len(points), 1)) for points, colour in usable] or [np.zeros((0, 4))]
    return np.concatenate(points).astype(np.float32), np.concatenate(colours).astype(np.float32)


# ---- reach


def reach(centre: Floats, radius: float, eye: Floats) -> Floats:
    """Return the outline (2 CIRCLE, 3) of a sphere as it is seen, as lines.

    Outlines stay outlines under any affine transform, so this may be done in armature space with the eye taken there.

    Args:
        centre: (3,) of the sphere.
        radius: of the sphere.
        eye: (4,) homogeneous position of the eye; the last component is 0 where the view has no perspective.
    """
    seen = eye[:3] - eye[3] * centre
    distance = float(np.linalg.norm(seen))
    if not distance > 0.0 or (eye[3] != 0.0 and distance <= radius * abs(eye[3])):
        return np.zeros((0, 3))  # from inside a sphere has no outline
    normal = seen / distance
    nearer = radius * abs(eye[3]) / distance
    points = centre + radius * (nearer * normal + np.sqrt(1.0 - nearer**2) * circle(normal))
    return _loop(points)
