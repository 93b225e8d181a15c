"""An object as ground, sampled on each frame: the surface of a mesh, or the XY plane of any other object.

What an armature was planted on is remembered, so that a bake with fewer keys stays above it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

import bpy
import numpy as np
from bpy.types import Action, Object, ViewLayer
from mathutils import Vector
from mathutils.bvhtree import BVHTree

from ..bake.reducing import Floor
from ..bake.sampling import at_frame, stepped, world_of
from ..core import compat
from ..core.settings import object_of
from ..core.skeleton import inverse, unscaled
from ..core.steps import part
from ..solve.maths.products import applied, back_applied, lengths_of, times
from ..solve.problem import Bools, Floats, Ints
from . import original_keys

SOLID = {"MESH", "CURVE", "SURFACE", "META", "FONT"}
"""Types of objects that have a surface; any other object counts as its XY plane."""
STILL = {"BEVEL", "DECIMATE", "EDGE_SPLIT", "MULTIRES", "REMESH", "SOLIDIFY", "SUBSURF", "TRIANGULATE"}
STILL |= {"WEIGHTED_NORMAL", "WELD"}
"""Types of modifiers that depend only on the mesh and their own settings."""
ALIKE = 1e-6
"""Directions that differ by less than this count as the same."""
AGAIN = 1e-5
"""A ray continues this far beyond what it hit, as a fraction of `Mesh.reach`."""
FARTHEST = 1e6
"""Maximum length of a ray."""
PILED = 100
"""Maximum number of nested parts of a mesh that a ray passes through."""
STEEP = 1e-3
"""A surface counts as ground or ceiling only if the vertical part of its unit normal exceeds this."""
UP = np.array([0.0, 0.0, 1.0])
GROUND = "ground"


class Mesh(NamedTuple):
    """A surface made of triangles."""

    tree: BVHTree
    bounds: Floats
    """(8, 3) the corners of its bounding box."""
    reach: float
    """About the length of a leg. Floors are assumed to be at least this far apart."""

    @classmethod
    def of(
        cls, corners: Floats, triangles: Ints, up: Floats, reach: float, way: tuple[Floats, Floats] | None = None
    ) -> Mesh:
        """Build a surface from triangles (t, 3) and corners (v, 3), flipped if its normals point down or inwards.

        `way`, if given, holds points (n, 3) and their up directions (n, 3); triangles far to the side are left out.
        """
        a, b, c = (corners[triangles[:, i]] for i in range(3))
        areas = np.cross(b - a, c - a)
        total, size = areas.sum(axis=0), lengths_of(areas).sum()
        is_closed = float(np.abs(total).max(initial=0.0)) < 1e-4 * size
        if ((a * np.cross(b, c)) if is_closed else total * up).sum() < 0.0:
            triangles = triangles[:, ::-1]
        ends = (corners.min(axis=0), corners.max(axis=0)) if len(corners) else np.zeros((2, 3))
        bounds = np.array([[ends[i][0], ends[j][1], ends[k][2]] for i, j, k in np.ndindex(2, 2, 2)])
        if way is not None and np.abs(way[1] - way[1][0]).max() < ALIKE:
            triangles = triangles[_beside(corners, triangles, *way, reach)]
            used, triangles = np.unique(triangles, return_inverse=True)
            corners, triangles = corners[used], triangles.reshape(-1, 3)
        return cls(BVHTree.FromPolygons(corners.tolist(), triangles.tolist()), bounds, reach)

    def look(self, points: Floats, ups: Floats, only_inside: bool) -> tuple[Floats, Floats]:
        """See `standing.Surface`; everything is in the object's own axes."""
        gaps, normals = np.full(len(points), np.nan), ups.copy()
        tops = (self.bounds * ups[:, None]).sum(axis=-1).max(axis=-1)
        over = (points * ups).sum(axis=-1) > tops
        for i in np.flatnonzero(~over | (not only_inside)).tolist():
            gaps[i], normal = self._above(Vector(points[i]), Vector(ups[i]), is_over=bool(over[i]))
            if normal is not None:
                normals[i] = normal[:]
        return gaps, normals

    def _above(self, point: Vector, up: Vector, *, is_over: bool) -> tuple[float, Vector | None]:
        """Return how far above a point the ground is, and its normal; `is_over`: the whole mesh is below the point."""
        _place, below, _index, depth = self.tree.ray_cast(point, -up)
        stands = below is not None and below.dot(up) > STEEP
        # Between two floors, a point belongs to the lower one unless it is near the upper one.
        far = self.reach if stands and depth < self.reach else FARTHEST
        found, normal = 0.0, None
        for _ in range(0 if is_over else PILED):
            _place, hit, _index, distance = self.tree.ray_cast(point + found * up, up, far)
            if hit is None or hit.dot(up) <= STEEP:
                break
            found, normal, far = found + distance + AGAIN * self.reach, hit, self.reach
        if normal is not None:
            return found - AGAIN * self.reach, normal
        return (-depth, below) if stands else (math.nan, None)


class Plane:
    """The XY plane of an object."""

    def look(self, points: Floats, ups: Floats, _only_inside: bool) -> tuple[Floats, Floats]:
        """See `standing.Surface`; everything is in the object's own axes."""
        sides = np.where(ups[:, 2] < 0.0, -1.0, 1.0)
        rises = np.abs(ups[:, 2])
        with np.errstate(divide="ignore"):
            gaps = np.where(rises > STEEP, -points[:, 2] * sides / rises, np.nan)
        return gaps, sides[:, None] * UP


class Ground(NamedTuple):
    """An object on F frames, in the space of what the feet stand on; implements `standing.Surface`."""

    shapes: Sequence[Mesh | Plane]
    """One shape for all frames, or one per frame."""
    place: Floats
    """(F, 4, 4) from the object's own axes, without scale, to the space of what the feet stand on."""
    up: Floats
    """(F, 3) world up, in the space of what the feet stand on."""

    def look(self, frames: Ints, points: Floats, *, only_inside: bool = False) -> tuple[Floats, Floats]:
        """See `standing.Surface`."""
        own = self.place[frames]
        inside = back_applied(own[:, :3, :3], points - own[:, :3, 3])
        ups = back_applied(own[:, :3, :3], self.up[frames])
        if len(self.shapes) == 1:
            gaps, normals = self.shapes[0].look(inside, ups, only_inside)
        else:
            each = [
                self.shapes[f].look(inside[i, None], ups[i, None], only_inside) for i, f in enumerate(frames.tolist())
            ]
            gaps, normals = (np.concatenate(part) for part in zip(*each, strict=True))
        return gaps, applied(own[:, :3, :3], normals)

    def heights(self, points: Floats) -> Floats:
        """Return the heights (F, n) of points (F, n, 3) above the surface; NaN where there is none."""
        frames = np.arange(len(points))
        return np.stack([-self.look(frames, own)[0] for own in np.moveaxis(points, 1, 0)], axis=1)


def _beside(corners: Floats, triangles: Ints, points: Floats, ups: Floats, reach: float) -> Bools:
    """Return which triangles (t,) are within `reach` of the bounding box of points (n, 3), at any height."""
    across = np.linalg.svd(ups[:1])[2][1:]
    found = np.ones(len(triangles), dtype=bool)
    for axis in across:
        own, there = (corners * axis).sum(axis=1)[triangles], (points * axis).sum(axis=1)
        found &= (own.max(axis=1) > there.min() - reach) & (own.min(axis=1) < there.max() + reach)
    return found


def still(frames: int) -> Floats:
    """Return matrices (F, 4, 4) of something that stays at the origin."""
    return np.tile(np.eye(4), (frames, 1, 1))


def is_still(ob: Object) -> bool:
    """Return whether nothing moves or deforms an object, so that sampling it once is enough."""
    has_own = ob.animation_data is None and not ob.constraints and ob.rigid_body is None and ob.parent is None
    return has_own and not changes_shape(ob)


def changes_shape(ob: Object) -> bool:
    """Return whether an object may change its shape from frame to frame."""
    data = ob.data
    if ob.type not in SOLID:
        return False
    is_modified = any(own.type not in STILL or ob.animation_data is not None for own in ob.modifiers)
    return is_modified or data.animation_data is not None or getattr(data, "shape_keys", None) is not None


def read_ground(
    view_layer: ViewLayer, ob: Object, worlds: Floats, frames: Sequence[int], support: Floats, way: Floats, reach: float
) -> Generator[float, None, Ground]:
    """Sample an object on frames; yields progress (0 to 1).

    Args:
        view_layer: the view layer to evaluate.
        ob: the object.
        worlds: (F, 4, 4) its world matrices.
        frames: ascending frames.
        support: (F, 4, 4) world matrices of what the feet stand on, without scale.
        way: (F, n, 3) points that the feet pass, in the space of what they stand on.
        reach: about the length of a leg.
    """
    own = unscaled(worlds)
    axes = own[:, :3, :3]
    axes *= np.where(np.linalg.det(axes) < 0.0, -1.0, 1.0)[:, None, None]
    seen = inverse(support)
    place, up = times(seen, own), applied(seen[:, :3, :3], np.broadcast_to(UP, (len(frames), 3)))
    shapes: list[Mesh | Plane] = []
    if ob.type not in SOLID:
        shapes.append(Plane())
    else:
        near = back_applied(place[:, None, :3, :3], way - place[:, None, :3, 3])
        ups = back_applied(place[:, :3, :3], up)
        linear = times(np.swapaxes(axes, -1, -2), worlds[:, :3, :3])
        is_one = not changes_shape(ob) and bool(np.abs(linear - linear[:1]).max() < 1e-5 * np.abs(linear[:1]).max())
        known: tuple[bytes, bytes] | None = None
        for i in range(1 if is_one else len(frames)):
            depsgraph = view_layer.depsgraph if is_one else at_frame(view_layer, frames[i])
            corners, triangles = _triangles(ob.evaluated_get(depsgraph))
            corners = applied(np.broadcast_to(linear[i], (len(corners), 3, 3)), corners)
            key = corners.astype(np.float32).tobytes(), triangles.tobytes()
            if key != known:
                shape = Mesh.of(corners, triangles, axes[i, 2], reach, (near.reshape(-1, 3), ups))
            shapes.append(shape)
            known = key
            yield (i + 1) / len(frames)
    return Ground(shapes, place, up)


def _triangles(seen: Object) -> tuple[Floats, Ints]:
    """Return corners (v, 3) and triangles (t, 3) of an evaluated object."""
    mesh = seen.to_mesh()
    if mesh is None:  # such as a curve without points
        return np.empty((0, 3)), np.empty((0, 3), dtype=np.int64)
    try:
        mesh.calc_loop_triangles()
        corners = np.empty(3 * len(mesh.vertices), dtype=np.float32)
        mesh.vertices.foreach_get("co", corners)
        triangles = np.empty(3 * len(mesh.loop_triangles), dtype=np.int32)
        mesh.loop_triangles.foreach_get("vertices", triangles)
    finally:
        seen.to_mesh_clear()
    return corners.reshape(-1, 3).astype(np.float64), triangles.reshape(-1, 3).astype(np.int64)


# ---- what an armature was planted on


def read_heights(
    view_layer: ViewLayer, ob: Object, frames: Sequence[int], points: Floats, reach: float
) -> Generator[float, None, Callable[[Floats], Floats]]:
    """Sample an object that points must stay above; yields progress (0 to 1). See `bake.reducing.Floor`."""
    worlds = [world_of(ob, view_layer.depsgraph)] * len(frames)
    if not is_still(ob):
        worlds = yield from part(stepped(view_layer, frames, partial(world_of, ob)), 0.0, 0.5)
    looking = read_ground(view_layer, ob, np.array(worlds), frames, still(len(frames)), points, reach)
    return (yield from part(looking, 0.5, 1.0)).heights


def remember(ob: Object, on: Object | None, undo: ExitStack) -> None:
    """Note what an armature is planted on (None: nothing), if it has an action; `undo` takes it back.

    The armature object holds it, and its action names it: an action that held it would bring it along to other files.
    """
    action = compat.action_of(ob)
    if action is not None:
        undo.callback(_write, ob, action, object_of(ob).ground, _named(action))
        _write(ob, action, on, "" if on is None else on.name)


def planted_on(view_layer: ViewLayer, ob: Object) -> Floor | None:
    """Return what an armature was planted on, if that object still exists in the view layer."""
    on, action = object_of(ob).ground, compat.action_of(ob)
    name = "" if action is None else _named(action)
    if not name or on is None or (on.name != name and name in bpy.data.objects):  # it may have been renamed
        return None
    return partial(read_heights, view_layer, on) if view_layer.objects.get(on.name) == on else None


def _named(action: Action) -> str:
    name = action.get(original_keys.PROPERTY, {}).get(GROUND, "")
    return name if isinstance(name, str) else ""


def _write(ob: Object, action: Action, on: Object | None, name: str) -> None:
    object_of(ob).ground = on
    original_keys.note(action, GROUND, name)
