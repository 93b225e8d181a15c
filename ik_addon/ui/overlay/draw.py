"""The gpu calls of the overlay: few, from batches that are kept until their content changes."""

import logging
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import bpy
import gpu
import numpy as np
from bpy.app.handlers import persistent
from bpy.types import Context, Object, RegionView3D, Scene, SpaceView3D
from gpu_extras.batch import batch_for_shader

from ...core import chain_settings, compat, hooks, preferences, settings
from ...core.settings import overlay_of
from ...core.skeleton import inverse, matrix_array, moved
from ...core.untyped import Column, Struct
from ...solve.problem import Floats
from ...targets import cursor
from ...targets.cursor import MACROS, CursorDrag
from .geometry import DIAMOND, DOT, Color, Drawing, Palette, Sizes, drawing, faded, marks, palette, reach, strip
from .read import Ghosts, Reader, Wanted, pinned

Batch = gpu.types.GPUBatch | None
Batches = tuple[Batch, Batch, Batch, Batch]
"""Faces, thin edges, wide segments and dots, ready to be drawn; None where there is nothing to draw."""
GHOST = 0.4
"""Opacity of ghosts."""
log = logging.getLogger(__name__)


@dataclass
class State:
    """The state of drawing."""

    handle: object = None
    broken: str = ""
    """The unexpected error that drawing raised; it stays off until the overlay is turned on again."""
    reader: Reader = field(default_factory=Reader)
    ghosts: tuple[Hashable, Ghosts | None] = None, None
    """What the drag in progress shows of other frames, by the drag and its range."""
    kept: dict[int, tuple[Hashable, Batches]] = field(default_factory=dict)
    """The last signature and batches, by the address of the viewport."""


state = State()


def register() -> None:
    """Start drawing in every viewport."""
    state.handle = bpy.types.SpaceView3D.draw_handler_add(draw_viewport, (), "WINDOW", "POST_VIEW")


def unregister() -> None:
    """Stop drawing and discard all batches."""
    global state
    bpy.types.SpaceView3D.draw_handler_remove(state.handle, "WINDOW")
    state = State()


def switched(_scene: Scene) -> None:
    """Respond to the overlay being turned on or off: clear errors and discard all batches."""
    state.broken = ""
    state.reader = Reader()
    state.kept.clear()


def _chains_changed(_ob: Object) -> None:
    state.reader.forget()


@persistent
def _data_changed(_file: object, _unused: object = None) -> None:
    state.reader.forget()
    state.kept.clear()


LISTENERS: tuple[tuple[list[Callable[..., None]], Callable[..., None]], ...] = (
    (settings.on_overlay_switched, switched),
    (chain_settings.on_chain_changed, _chains_changed),
    (chain_settings.on_pin_changed, _chains_changed),
)
"""The lists of callbacks for changes, each with the callback to add to it."""
HANDLERS = (("undo_post", _data_changed), ("redo_post", _data_changed), ("load_post", _data_changed))


def draw_viewport() -> None:
    """Draw into the viewport of the context.

    After an error, log it and hide the chain that raised it, or stop if it was no chain, until the overlay is turned on
    again.
    """
    hooks.put_back()
    if state.broken:
        return
    context = bpy.context
    try:
        _draw(context)
    except Exception as error:  # log it once, not on every redraw
        if not _hide_faulty(context):
            state.broken = f"{type(error).__name__}: {error}"
            log.exception("The IK overlay is off until it is switched on again")
        if context.area is not None:
            context.area.tag_redraw()


def _hide_faulty(context: Context) -> bool:
    """After an error, hide the chains that raise one; return whether there are any."""
    colors = palette(context.preferences.themes[0], preferences.preferences())
    try:
        found = state.reader.hide_faulty(context.view_layer, _wanted(context), lambda shown: drawing(shown, colors))
    except Exception:  # it was no chain; the caller reports the first error
        return False
    for name, error in found.items():
        log.error("The IK overlay hides the chain on '%s' until it is switched on again", name, exc_info=error)
    return bool(found)


def _wanted(context: Context) -> Wanted:
    # A transform may be moving a target.
    running = [operator.bl_idname for operator in filter(None, context.window.modal_operators)]
    is_dragging = any(name in MACROS or name.startswith("TRANSFORM_OT_") for name in running)
    return Wanted(overlay_of(context.scene).show_limits, overlay_of(context.scene).show_reach, is_dragging)


def _draw(context: Context) -> None:
    space, view = context.space_data, context.region_data
    options = overlay_of(context.scene)
    if not (view and options.show_overlay and isinstance(space, SpaceView3D) and space.overlay.show_overlays):
        return
    rigs = state.reader.rigs(context.view_layer, space)
    own = preferences.preferences()
    colors = palette(context.preferences.themes[0], own)
    scale = context.preferences.system.ui_scale
    if options.show_pins and any(layout.pins for _, layout in rigs):
        lines = marks(pinned(rigs, context.view_layer.depsgraph), view, context.region.width, scale)
        draw_lines(lines, colors.pin, Sizes.of(own, scale).thin)
    held = cursor.current
    if held is not None and held.drag.reach.frames:
        _draw_ghosts(context, view, held, colors, Sizes.of(own, scale).thin)
    signature, shown = state.reader.read(context.view_layer, rigs, _wanted(context))
    if shown is None:
        return
    known = state.kept.get(space.as_pointer())
    if known is None or known[0] != (signature, colors):
        known = (signature, colors), batches(drawing(shown, colors))
        state.kept[space.as_pointer()] = known
    outlines = [outline(active.world, *active.reach, view) for active in shown.actives if active.reach is not None]
    draw(known[1], outlines, colors, Sizes.of(own, scale))


def _draw_ghosts(context: Context, view: RegionView3D, held: CursorDrag, colors: Palette, width: float) -> None:
    """Draw the frames around a drag: ghosts, and a trail with a dot for each frame and a diamond for each key."""
    drag, scale = held.drag, context.preferences.system.ui_scale
    if state.ghosts[0] != (id(held), drag.reach):
        state.ghosts = (id(held), drag.reach), Ghosts.of(context, drag)
    ghosts = state.ghosts[1]
    if ghosts is None:
        return
    draw_lines(ghosts.bones, faded(colors.pin, GHOST), width)
    trail = ghosts.trail + ghosts.shares[:, None] * np.array(held.offset)
    dots = marks({DOT: trail, DIAMOND: trail[ghosts.keyed]}, view, context.region.width, scale)
    draw_lines(np.concatenate([strip(trail), dots]), colors.pin, width)


def outline(world: Floats, center: Floats, radius: float, view: RegionView3D) -> Floats:
    """Return the outline of a chain's reach as seen in a view: lines (k, 3) in world space."""
    eye = matrix_array(view.view_matrix.inverted())[:, 3 if view.is_perspective else 2]
    with np.errstate(all="ignore"):
        circle = moved(world, reach(center, radius, inverse(world) @ eye))
    return circle[np.repeat(np.isfinite(circle).reshape(-1, 6).all(axis=1), 2)]


# ---- gpu


def batches(shown: Drawing) -> Batches:
    """Upload geometry to the GPU."""
    return (
        _batch("SMOOTH_COLOR", "TRIS", pos=shown.faces.points, color=shown.faces.colors),
        _batch("POLYLINE_FLAT_COLOR", "LINES", pos=shown.edges.points, color=shown.edges.colors),
        _batch("POLYLINE_FLAT_COLOR", "LINES", pos=shown.segments.points, color=shown.segments.colors),
        _batch(compat.POINT_SHADER, "POINTS", pos=shown.dots),
    )


def draw(kept: Batches, outlines: list[Floats], colors: Palette, sizes: Sizes) -> None:
    """Draw batches, and lines (k, 3) in the reach color, into the bound framebuffer; reset the blend mode."""
    line, fill, point = (_shader(name) for name in ("POLYLINE_FLAT_COLOR", "SMOOTH_COLOR", compat.POINT_SHADER))
    faces, edges, segments, dots = kept
    with _on_top():
        if faces is not None:
            fill.bind()
            faces.draw(fill)
        for points in outlines:
            draw_lines(points, colors.reach, sizes.thin)
        for batch, width in ((edges, sizes.thin), (segments, sizes.wide)):
            if batch is not None:
                _set_line(line, width)
                batch.draw(line)
        if dots is not None:
            gpu.state.point_size_set(sizes.dot)
            point.bind()
            point.uniform_float("color", colors.at_limit)
            dots.draw(point)
            gpu.state.point_size_set(1.0)


def draw_lines(lines: Floats, color: Color, width: float) -> None:
    """Draw lines (k, 3) in one color, on top of everything."""
    if len(lines):
        shader = _shader("POLYLINE_UNIFORM_COLOR")
        with _on_top():
            _set_line(shader, width)
            shader.uniform_float("color", color)
            batch_for_shader(shader, "LINES", {"pos": np.asarray(lines, dtype=np.float32)}).draw(shader)


@contextmanager
def _on_top() -> Iterator[None]:
    """Draw over everything, and blend; put back the blend mode that was set."""
    gpu.state.depth_test_set("NONE")
    gpu.state.depth_mask_set(False)
    before = gpu.state.blend_get()
    gpu.state.blend_set("ALPHA")
    try:
        yield
    finally:
        gpu.state.blend_set(before)


def _set_line(shader: Struct, width: float) -> None:
    shader.bind()
    shader.uniform_float("viewportSize", gpu.state.viewport_get()[2:])
    shader.uniform_float("lineWidth", width)
    shader.uniform_bool("lineSmooth", [True])


def _batch(shader: str, kind: str, **content: Column) -> Batch:
    return batch_for_shader(_shader(shader), kind, content) if len(content["pos"]) else None


def _shader(name: str) -> gpu.types.GPUShader:
    # Blender caches its shaders; before 5.2 they don't exist without a window, so request them only when drawing.
    return gpu.shader.from_builtin(name)
