"""What the overlay shows, as arrays, and its geometry as lines, triangles and points, with their colors; no gpu.

Limits are drawn with the functions that clamp joints, so the overlay shows exactly what the solver does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from bpy.types import RegionView3D, Theme
from numpy.typing import NDArray

from ...core.preferences import IKAddonPreferences
from ...core.skeleton import matrix_array, moved
from ...core.untyped import Value
from ...solve.maths.cones import cone_of, joint_rotation, nearest_swing, swing_twist
from ...solve.maths.rotations import quaternions, rotate
from ...solve.problem import Bools, Floats, Ints

# ---- colors and sizes, from the preferences; by default the colors of Blender's theme

Color = tuple[float, float, float, float]
"""RGBA"""
REACH = 0.35
"""Opacity of the reach circle."""


class Palette(NamedTuple):
    """The colors of the overlay."""

    states: tuple[Color, ...]
    """One color for each `State`, in its order."""
    swing: Color
    twist: Color
    at_limit: Color
    reach: Color
    pin: Color


class Sizes(NamedTuple):
    """The sizes of the overlay in pixels."""

    wide: float
    """Width of the lines along chains."""
    thin: float
    dot: float

    @classmethod
    def of(cls, own: IKAddonPreferences, scale: float) -> Sizes:
        """Return the sizes in the add-on's preferences, multiplied by a resolution scale."""
        return cls(wide=own.line_width * scale, thin=own.outline_width * scale, dot=own.point_size * scale)


def palette(theme: Theme, own: IKAddonPreferences) -> Palette:
    """Return the colors of the overlay from the theme or from the add-on's preferences, depending on `use_theme`."""
    if own.use_theme:
        return themed(theme)
    states = (own.color_unsolved, own.color_reached, own.color_limited, own.color_out_of_reach, own.color_failed)
    return _palette(states, own.color_swing, own.color_twist, own.color_reach, own.color_pin)


def themed(theme: Theme) -> Palette:
    """Return colors derived from the theme."""
    interface, view = theme.user_interface, theme.view_3d
    warning = _opaque(interface.gizmo_primary)
    between = [0.35 * a + 0.65 * b for a, b in zip(warning, (1.0, 0.4, 0.1), strict=False)]
    states = (view.bone_pose, _lighter(interface.gizmo_a), warning, between, _lighter(interface.gizmo_b))
    return _palette(states, interface.gizmo_secondary, interface.axis_y, view.bone_pose, interface.gizmo_view_align)


def _palette(states: Sequence[Value], swing: Value, twist: Value, reach: Value, pin: Value) -> Palette:
    """Return these colors as a palette; the color of chains that limits hold back is also that of their joints."""
    shown = tuple(map(_opaque, states))
    return Palette(shown, _opaque(swing), _opaque(twist), shown[2], faded(_opaque(reach), REACH), _opaque(pin))


def _opaque(color: Value) -> Color:
    return float(color[0]), float(color[1]), float(color[2]), 1.0


def _lighter(color: Value) -> list[float]:
    """Return a gizmo color at full brightness, so that it shows as a line over a shaded body."""
    top = max(color)
    return [min(1.0, part / top) if top > 0.0 else part for part in color]


def faded(color: Color, opacity: float) -> Color:
    """Return a color with its opacity multiplied."""
    return *color[:3], color[3] * opacity


# ---- what is shown


class State(IntEnum):
    """Outcome of a chain's last solve; each value has a color."""

    UNKNOWN = 0
    REACHED = 1
    HELD = 2
    """Limits or the targets of other chains keep the tip from its target."""
    OUT_OF_REACH = 3
    FAILED = 4


class Chains(NamedTuple):
    """C chains with J joints in all, in world space."""

    joints: Floats
    """(J, 3) joints of the first chain, from its root to its end effector, then those of the next chain."""
    ends: Ints
    """(C,) index of each chain's end effector among the joints."""
    targets: Floats
    """(C, 3) positions; NaN for a chain without target."""
    poles: Floats
    """(C, 3) positions, for active chains only; NaN for all others."""
    states: Ints
    """(C,) values of `State`."""
    at_limit: Bools
    """(J,) whether a joint is at a limit."""
    active: Bools
    """(C,) whether a chain is active."""


class Joint(NamedTuple):
    """A bone with limits."""

    head: Floats
    """(3,)"""
    length: float
    rest: Floats
    """(3, 3) frame from which the limits are measured; its columns are X, Y and Z."""
    frame: Floats
    """(3, 3) current frame."""
    cone: tuple[float, float, float, float]
    """Minimum and maximum rotation about X, then about Z, in radians; infinite: no limit."""
    twist: tuple[float, float]
    """Minimum and maximum rotation about Y, in radians; infinite: no limit."""
    at_limit: bool
    has_arc: bool
    """Blender draws arcs for the same limits."""


class Plane(NamedTuple):
    """The plane that a planar chain stays in."""

    center: Floats
    """(3,) the root of the chain."""
    normal: Floats
    """(3,) unit vector."""
    radius: float
    """Length of the chain."""


class Active(NamedTuple):
    """What is shown only of an active chain, in armature space."""

    world: Floats
    """(4, 4) matrix from armature space to world space."""
    limits: tuple[Joint, ...]
    """The bones with limits."""
    state: int
    """A value of `State`."""
    reach: tuple[Floats, float] | None
    """Root (3,) and length of the chain, shown during a drag and while the target is missed."""
    bend: Floats | None
    """(6, 3) lines of an arrow to the side to which it bends."""
    end: Floats | None
    """(2, 3) head and tail of the end bone."""
    plane: Plane | None
    """The plane in which a planar chain stays."""


class Shown(NamedTuple):
    """What a viewport shows for all armatures."""

    chains: Chains
    actives: tuple[Active, ...]
    """The active chain, or the chains that follow the active object, at most one per armature."""


# ---- lines, triangles and points

Singles = NDArray[np.float32]

DASHES = 12
"""Number of dashes in a line to a target or pole."""
ARRIVED = 1e-3
"""A tip closer to its target than this, in lengths of its last segment, gets no line to it."""
_IS_CALM = np.isin(list(State), (State.UNKNOWN, State.REACHED))
"""For each state, whether a chain in it needs no attention."""
FAINT = 0.4
"""Opacity of inactive chains in those states."""


@dataclass(frozen=True)
class Painted:
    """Lines, each from two points in a row, or triangles from three."""

    points: Singles
    """(k, 3)"""
    colors: Singles
    """(k, 4)"""

    def __add__(self, other: Painted) -> Painted:
        """Concatenate the points and colors of both."""
        return Painted(np.concatenate([self.points, other.points]), np.concatenate([self.colors, other.colors]))


class Drawing(NamedTuple):
    """All geometry that does not depend on the view, in world space."""

    segments: Painted
    """Wide lines."""
    edges: Painted
    """Thin lines."""
    faces: Painted
    dots: Singles
    """(k, 3) joints at a limit."""


def drawing(shown: Shown, palette: Palette) -> Drawing:
    """Return the geometry of all chains, with the limits of the active ones."""
    chains = shown.chains
    lines: list[Part] = []
    filled: list[Part] = []
    ends: list[Part] = []
    with np.errstate(all="ignore"):  # NaN is left out below
        for active in shown.actives:
            parts = [limit(joint, palette) for joint in active.limits]
            parts += [] if active.plane is None else [plane(active.plane, palette)]
            parts += [] if active.bend is None else [([(active.bend, palette.states[active.state])], [])]
            lines += [(moved(active.world, points), color) for edges, _ in parts for points, color in edges]
            filled += [(moved(active.world, points), color) for _, faces in parts for points, color in faces]
            if active.end is not None:
                ends.append((moved(active.world, active.end), palette.states[active.state]))
        dashed, wide = goal_lines(chains, palette), segments(chains, palette)
    return Drawing(
        segments=wide + _painted(ends),
        edges=dashed + _painted(lines),
        faces=_painted(filled),
        dots=chains.joints[chains.at_limit & np.isfinite(chains.joints).all(axis=1)].astype(np.float32),
    )


# ---- chains


def segments(chains: Chains, palette: Palette) -> Painted:
    """Return the segments of all chains in the colors of their states."""
    first = np.delete(np.arange(len(chains.joints)), chains.ends)
    joints = chains.joints.astype(np.float32)
    counts = np.diff(chains.ends, prepend=-1) - 1
    colors = np.repeat(_state_colors(chains, palette).astype(np.float32), counts, axis=0)
    return _finite_lines(np.stack([joints[first], joints[first + 1]], axis=1), colors)


def goal_lines(chains: Chains, palette: Palette) -> Painted:
    """Return dashed lines from each tip to its target, and from the middle of each chain to its pole."""
    starts = np.concatenate([[0], chains.ends[:-1] + 1]).astype(np.int64)[: len(chains.ends)]
    middle = (starts + chains.ends) // 2
    colors = _state_colors(chains, palette)
    tips = chains.joints[chains.ends]
    last = tips - chains.joints[chains.ends - 1]
    arrived = np.linalg.norm(chains.targets - tips, axis=1) < ARRIVED * np.linalg.norm(last, axis=1)
    away = np.flatnonzero(~arrived & np.isfinite(chains.targets).all(axis=1))
    bent = np.flatnonzero(np.isfinite(chains.poles).all(axis=1))
    start = np.concatenate([tips[away], chains.joints[middle[bent]]])[:, None]
    end = np.concatenate([chains.targets[away], chains.poles[bent]])[:, None]
    points = start + (np.arange(2 * DASHES) / (2 * DASHES - 1))[:, None] * (end - start)
    tints = np.concatenate([colors[away], colors[bent] * [1.0, 1.0, 1.0, 0.5]]).repeat(DASHES, axis=0)
    return _finite_lines(points.reshape(-1, 2, 3).astype(np.float32), tints.astype(np.float32))


def _state_colors(chains: Chains, palette: Palette) -> Floats:
    """Return the color (C, 4) of each chain; inactive ones in a calm state are faint, so that others stand out."""
    colors = np.array(palette.states)[chains.states]
    colors[~chains.active & _IS_CALM[chains.states], 3] *= FAINT
    return colors


def _finite_lines(points: Singles, colors: Singles) -> Painted:
    """Return lines between pairs of points (k, 2, 3) in colors (k, 4), leaving out those that are not finite."""
    keep = np.isfinite(points).all(axis=(1, 2))
    return Painted(points[keep].reshape(-1, 3), np.repeat(colors[keep], 2, axis=0))


def _painted(parts: Sequence[Part]) -> Painted:
    """Return the points of all parts in their colors, leaving out parts that are not finite."""
    usable = [(points, color) for points, color in parts if np.isfinite(points).all()]
    points = [np.zeros((0, 3)), *(points for points, _ in usable)]
    colors = [np.zeros((0, 4)), *(np.tile(color, (len(points), 1)) for points, color in usable)]
    return Painted(np.concatenate(points).astype(np.float32), np.concatenate(colors).astype(np.float32))


# ---- limits, planes, bends and reach, in armature space

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
        spokes = _spokes(joint.head, edge[:: SIDES // SPOKES])
        edges += [(loop(edge), faded(color, EDGE)), (spokes, faded(color, SPOKE))]
        faces.append((_fan(joint.head, np.concatenate([edge, edge[:1]])), faded(color, SIDE)))
    if np.isfinite(joint.twist).any() and joint.twist != (0.0, 0.0):
        color = palette.at_limit if joint.at_limit else palette.twist
        center = joint.head + TWIST_PLACE * joint.length * joint.frame[:, 1]
        across, current = twist_arc(joint)
        arc = center + TWIST_SIZE * joint.length * across
        edges.append((_spokes(center, arc[[0, -1]]), faded(color, EDGE)))
        edges.append((strip(arc), faded(color, EDGE)))
        edges.append((np.stack([center, center + 1.25 * TWIST_SIZE * joint.length * current]), faded(color, 1.0)))
        faces.append((_fan(center, arc), faded(color, SURFACE)))
    return edges, faces


def plane(flat: Plane, palette: Palette) -> tuple[list[Part], list[Part]]:
    """Return the edges and the face of the disc that a planar chain can reach, with a cross through its root."""
    edge = flat.center + flat.radius * circle(flat.normal)
    quarters = edge[:: len(edge) // 4]
    edges = [(loop(edge), faded(palette.reach, EDGE)), (_spokes(flat.center, quarters), faded(palette.reach, EDGE))]
    return edges, [(_fan(flat.center, np.concatenate([edge, edge[:1]])), faded(palette.reach, SURFACE / 0.35))]


def arrow(joint: Floats, side: Floats, across: Floats, size: float) -> Floats:
    """Return the lines (6, 3) of an arrow to the side to which a chain bends.

    Args:
        joint: (3,) its middle joint.
        side: (3,) unit vector in which the joint moves when the chain bends.
        across: (3,) unit vector from root to tip.
        size: length of the chain.
    """
    end = joint + ARROW * size * side
    back, wide = (0.3 * ARROW * size * direction for direction in (side, across))
    return np.stack([joint, end, end, end - back + wide, end, end - back - wide])


def circle(normal: Floats) -> Floats:
    """Return points (CIRCLE, 3) on the unit circle about the origin, perpendicular to a unit vector (3,)."""
    u = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    u = u / np.linalg.norm(u)
    return ring(u, np.cross(normal, u), CIRCLE)


def ring(u: Floats, v: Floats, sides: int) -> Floats:
    """Return the corners (sides, 3) of a polygon around the origin, given two vectors (3,) from there."""
    angles = np.arange(sides) * (2.0 * np.pi / sides)
    return np.asarray(np.cos(angles)[:, None] * u + np.sin(angles)[:, None] * v)


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


def loop(points: Floats) -> Floats:
    """Return the lines (2 k, 3) of a closed curve (k, 3)."""
    return strip(np.concatenate([points, points[:1]]))


def strip(points: Floats) -> Floats:
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
    return loop(center + radius * (nearer * normal + np.sqrt(1.0 - nearer**2) * circle(normal)))


# ---- marks that have one size on the screen: a diamond for a pinned location, a ring for a pinned rotation

DOT, DIAMOND, RING = 1.5, 6.0, 9.0
"""Radii of the marks, in pixels at a resolution scale of 1."""
MARK_SIDES = {DOT: 4, DIAMOND: 4, RING: 24}


def marks(places: dict[float, Floats], view: RegionView3D, width: float, scale: float) -> Floats:
    """Return the lines (k, 3) of the marks in world space; all marks have the same size on the screen.

    Args:
        places: where (k, 3) the marks are, by their radius.
        view: the view of the scene.
        width: width of the region in pixels.
        scale: resolution scale.
    """
    to_clip = matrix_array(view.perspective_matrix)
    right, up = matrix_array(view.view_matrix)[:2, :3]
    across = np.sqrt((to_clip[0, :3] * to_clip[0, :3]).sum())
    found = []
    for radius, own in places.items():
        depths = own.dot(to_clip[3, :3]) + to_clip[3, 3]
        sizes = radius * scale * np.where(depths > 0.0, 2.0 * depths / (width * across), np.nan)  # NaN: behind the eye
        keep = np.isfinite(own).all(axis=1) & np.isfinite(sizes)
        corners = loop(ring(right, up, MARK_SIDES[radius]))
        found.append((own[keep, None] + sizes[keep, None, None] * corners).reshape(-1, 3))
    return np.concatenate(found)
