"""The limits and the reach of a chain as lines and triangles in armature space; no gpu.

Limits are drawn with the functions that clamp joints, so the overlay shows exactly what the solver does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...solve.maths.cones import cone_of, joint_rotation, nearest_swing, swing_twist
from ...solve.maths.rotations import quaternions, rotate
from ...solve.problem import Floats
from .colors import Color, Palette, faded
from .shown import Bend, Joint, Plane

SIDES = 64
"""Corners on the edge of a cone; a multiple of `SPOKES`."""
SPOKES = 8
"""Lines from the joint to the edge; a multiple of 4, so that they include the extremes of both axes."""
ARC = 48
"""Segments of a twist arc."""
CIRCLE = 96
"""Corners of the reach circle."""
CONE_SIZE = 0.55
"""Radius of a cone, in lengths of its bone."""
TWIST_PLACE = 0.35
"""Position of the twist arc along a bone, from head (0) to tail (1)."""
TWIST_SIZE = 0.24
"""Radius of the twist arc, in lengths of its bone."""
SURFACE, SIDE = 0.12, 0.05
"""Opacity of flat surfaces, and of the sides of cones: the view passes through two sides, which must not look solid."""
EDGE, SPOKE = 0.8, 0.3
"""Opacity of edges, and of the spokes, which make a cone look different from a disc when seen from above."""

ARROW = 0.12
"""Length of the arrow to the bend side, in chain lengths."""

AXES = np.eye(3)[:, :, None]
"""Unit vectors (3, 1), shaped to be rotated by many rotations at once."""

Part = tuple[Floats, Color]
"""Corners (k, 3) of lines or triangles, and their color."""


def limit(joint: Joint, palette: Palette) -> tuple[list[Part], list[Part]]:
    """Return the edges and faces of the limits of a joint."""
    edges: list[Part] = []
    faces: list[Part] = []
    if np.isfinite(joint.cone).any() and not joint.has_arc:
        color = palette.at_limit if joint.at_limit else palette.swing
        edge = joint.head + CONE_SIZE * joint.length * (directions(joint.cone) @ joint.rest.T)
        edges.append((_loop(edge), faded(color, EDGE)))
        edges.append((_spokes(joint.head, edge[:: SIDES // SPOKES]), faded(color, SPOKE)))
        faces.append((_fan(joint.head, np.concatenate([edge, edge[:1]])), faded(color, SIDE)))
    if np.isfinite(joint.twist).any() and joint.twist != (0.0, 0.0):
        color = palette.at_limit if joint.at_limit else palette.twist
        center = joint.head + TWIST_PLACE * joint.length * joint.frame[:, 1]
        across, current = twist_arc(joint)
        arc = center + TWIST_SIZE * joint.length * across
        edges.append((_spokes(center, arc[[0, -1]]), faded(color, EDGE)))
        edges.append((_strip(arc), faded(color, EDGE)))
        edges.append((np.stack([center, center + 1.25 * TWIST_SIZE * joint.length * current]), faded(color, 1.0)))
        faces.append((_fan(center, arc), faded(color, SURFACE)))
    return edges, faces


def plane(flat: Plane, palette: Palette) -> tuple[list[Part], list[Part]]:
    """Return the edges and the face of the disc that a planar chain can reach, with a cross through its root."""
    ring = flat.center + flat.radius * circle(flat.normal)
    quarters = ring[:: len(ring) // 4]
    edges = [(_loop(ring), faded(palette.reach, EDGE)), (_spokes(flat.center, quarters), faded(palette.reach, EDGE))]
    return edges, [(_fan(flat.center, np.concatenate([ring, ring[:1]])), faded(palette.reach, SURFACE / 0.35))]


def arrow(bend: Bend) -> Floats:
    """Return the lines (6, 3) of an arrow from the middle joint of a chain to its bend side."""
    end = bend.joint + ARROW * bend.size * bend.side
    back, wide = (0.3 * ARROW * bend.size * direction for direction in (bend.side, bend.across))
    return np.stack([bend.joint, end, end, end - back + wide, end, end - back - wide])


def circle(normal: Floats) -> Floats:
    """Return points (CIRCLE, 3) on the unit circle about the origin, perpendicular to a unit vector (3,)."""
    helper = np.eye(3)[np.argmin(np.abs(normal))]
    u = np.cross(normal, helper)
    u = u / np.linalg.norm(u)
    angle = np.arange(CIRCLE) * (2.0 * np.pi / CIRCLE)
    return np.asarray(np.cos(angle)[:, None] * u + np.sin(angle)[:, None] * np.cross(normal, u))


def directions(cone: Sequence[float]) -> Floats:
    """Return the edge (SIDES, 3) of the cone of directions that a bone may point in, relative to its rest frame.

    Args:
        cone: the limits, as in `Joint`.
    """
    around = np.arange(SIDES) * (2.0 * np.pi / SIDES)
    limits = cone_of(np.array([cone]), np.array([[-np.inf, np.inf]]))
    edge = nearest_swing(np.stack([np.sin(around), np.cos(around)]), limits)
    return rotate(joint_rotation(edge, np.zeros(SIDES)), AXES[1]).T


def twist_arc(joint: Joint) -> tuple[Floats, Floats]:
    """Return the X axis in armature space at the allowed twists (ARC + 1, 3), and at the current twist (3,)."""
    swing, _ = swing_twist(quaternions(joint.rest.T @ joint.frame))
    limits = cone_of(np.zeros((1, 4)), np.array([joint.twist]))
    angles = np.linspace(limits.twist_low[0], limits.twist_high[0], ARC + 1)
    turns = joint_rotation(np.broadcast_to(swing[:, None], (2, ARC + 1)), angles)
    return np.asarray(rotate(turns, AXES[0]).T @ joint.rest.T), joint.frame[:, 0]


def _loop(points: Floats) -> Floats:
    """Return the lines (2 k, 3) of a closed curve (k, 3)."""
    return _strip(np.concatenate([points, points[:1]]))


def _strip(points: Floats) -> Floats:
    """Return the lines (2 (k-1), 3) of an open curve (k, 3)."""
    return np.stack([points[:-1], points[1:]], axis=1).reshape(-1, 3)


def _spokes(center: Floats, points: Floats) -> Floats:
    """Return the lines (2 k, 3) from one point to others (k, 3)."""
    return np.stack([np.broadcast_to(center, points.shape), points], axis=1).reshape(-1, 3)


def _fan(center: Floats, points: Floats) -> Floats:
    """Return the triangles (3 (k-1), 3) between one point and a curve (k, 3)."""
    return np.stack([np.broadcast_to(center, points[1:].shape), points[:-1], points[1:]], axis=1).reshape(-1, 3)


def reach(center: Floats, radius: float, eye: Floats) -> Floats:
    """Return the visible outline of a sphere as lines (2 CIRCLE, 3), or (0, 3) if the eye is inside it.

    Outlines stay outlines under affine transforms, so this works in armature space with the eye transformed to it.

    Args:
        center: (3,) center of the sphere.
        radius: radius of the sphere.
        eye: (4,) homogeneous position of the eye; the last component is 0 in an orthographic view.
    """
    seen = eye[:3] - eye[3] * center
    distance = float(np.linalg.norm(seen))
    if not distance > 0.0 or (eye[3] != 0.0 and distance <= radius * abs(eye[3])):
        return np.zeros((0, 3))  # a sphere has no outline from inside
    normal = seen / distance
    nearer = radius * abs(eye[3]) / distance
    points = center + radius * (nearer * normal + np.sqrt(1.0 - nearer**2) * circle(normal))
    return _loop(points)
