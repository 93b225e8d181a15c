"""Time a drag of the hips of a human that Set Up Character made, in a window: `python3 -m benchmarks.hips`.

A step is what a user waits for after a move of the mouse: the pose is solved and written, Blender evaluates it and
draws its whole window. Needs the Blender of `python3 tools/dev.py window-setup`. That draws without a graphics card, so
drawing is timed alone as well, and before the character is set up.
"""

from __future__ import annotations

import importlib
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

STEPS = 120
"""Moves of the mouse: down, to the side, and back."""
DEPTH, SIDEWAYS = 0.25, 0.1
"""How far the hips go down and to the side, in lengths of the leg."""
FEET = ("foot.L", "foot.R")


def main() -> None:
    """Open the window, drag, and print the figures."""
    from tools import extension, window

    with tempfile.TemporaryDirectory(dir=window.ROOT / "build") as folder:
        user = Path(folder) / "user"
        package = extension.build(user)
        with window.program().opened(user) as session:
            inside = window.Inside(session, Path(__file__))
            inside.add_human(str(package))
            session.idle(2.0)
            bare = inside.draw()
            inside.set_up()
            session.idle(2.0)
            found = {"drawing without chains, ms": bare, **inside.measure()}
    for name, (median, worst) in found.items():
        print(f"{name:27} median {median:9.4g}   worst {worst:9.4g}")


# ---- inside Blender


def add_human(package: str) -> None:
    """Install the extension, and add a human to a new file."""
    from tools import inside

    assert inside.install(package)
    inside.new_file()
    inside.metarig()


def set_up() -> None:
    """Set up the human."""
    import bpy

    from tools import inside

    operators: Any = bpy.ops
    with bpy.context.temp_override(**inside.viewport()):
        operators.ik_addon.character_setup("EXEC_DEFAULT", True)
    inside.activate("spine")


def draw() -> tuple[float, float]:
    """Return median and worst milliseconds of drawing the window."""
    import bpy

    from tools import inside

    redraw: Any = bpy.ops.wm.redraw_timer
    found = []
    with bpy.context.temp_override(**inside.viewport()):
        for _ in range(STEPS // 4):
            start = time.perf_counter()
            redraw(type="DRAW_WIN", iterations=1)
            found.append(1000.0 * (time.perf_counter() - start))
    return statistics.median(found), max(found)


def measure() -> dict[str, tuple[float, float]]:
    """Return medians and worst values of milliseconds, and of what hips and feet miss."""
    import bpy
    from mathutils import Vector

    from tools import inside

    drags: Any = importlib.import_module(f"{inside.PACKAGE}.ik_addon.posing.drag")
    redraw: Any = bpy.ops.wm.redraw_timer
    ob: Any = bpy.context.object

    def heads() -> dict[str, Vector]:
        return {bone.name: bone.head.copy() for bone in ob.evaluated_get(bpy.context.view_layer.depsgraph).pose.bones}

    at_rest = heads()
    leg = sum((at_rest[a] - at_rest[b]).length for a, b in (("thigh.L", "shin.L"), ("shin.L", "foot.L")))
    moves, drawings, steps, hips, feet = [], [], [], [], []
    with bpy.context.temp_override(**inside.viewport()):
        drag = drags.BodyDrag(bpy.context, ob, drags.Ask("spine"))
        for i in range(STEPS):
            share = 1.0 - abs(2.0 * i / (STEPS - 1) - 1.0)
            offset = Vector((SIDEWAYS, 0.0, -DEPTH)) * leg * share
            start = time.perf_counter()
            drag.move(bpy.context, offset)
            moved = time.perf_counter()
            redraw(type="DRAW_WIN", iterations=1)
            end = time.perf_counter()
            moves.append(1000.0 * (moved - start))
            drawings.append(1000.0 * (end - moved))
            steps.append(1000.0 * (end - start))
            now = heads()
            hips.append(1000.0 * (now["spine"] - at_rest["spine"] - offset).length)
            feet.append(max((now[foot] - at_rest[foot]).length for foot in FEET) / leg)
        drag.cancel(bpy.context)
    found = {
        "step, ms": steps,
        "without drawing, ms": moves,
        "drawing, ms": drawings,
        "hips off, mm": hips,
        "feet off, legs": feet,
    }
    return {name: (statistics.median(values), max(values)) for name, values in found.items()}


if __name__ == "__main__":
    main()
