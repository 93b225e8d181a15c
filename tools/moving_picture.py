"""Render the README's animated picture, the demo solved live: part of `python3 tools/dev.py pictures`.

Needs no window: Cycles renders on the CPU, for some minutes.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import bpy
import numpy as np
from numpy.typing import NDArray

from tools import animated_png, blender, demo, scenery
from tools.environments import ROOT

PICTURE = ROOT / "docs" / "images" / "demo.png"
WIDTH, HEIGHT = 360, 405
STEP = 2
"""Frame interval between the pictures."""
COLORS = 96
TOLERANCE = 8
"""Changes up to this value, of 255, are noise."""


def render(frames: range, samples: int, size: tuple[int, int] = (WIDTH, HEIGHT)) -> NDArray[np.uint8]:
    """Render frames of the scene; return their pixels (count, height, width, 3), top row first."""
    scene = bpy.context.scene
    scenery.crop(*size)
    scene.cycles.samples = samples
    scene.render.use_persistent_data = True  # only the pose changes
    pictures = []
    with tempfile.TemporaryDirectory() as folder:
        for frame in frames:
            scene.frame_set(frame)
            scene.render.filepath = str(Path(folder) / f"{frame}.png")
            with demo.quiet():
                bpy.ops.render.render(write_still=True)
            pictures.append(demo.load(scene.render.filepath)[::-1, :, :3])
    return np.round(255.0 * np.stack(pictures)).astype(np.uint8)


def main() -> None:
    """Render the picture."""
    parser = argparse.ArgumentParser(description="Render the moving picture of the README.")
    parser.add_argument("--samples", type=int, default=12, help="how often each pixel is sampled; more is smoother")
    parser.add_argument("--output", type=Path, default=PICTURE, help="where the picture goes")
    options = parser.parse_args()
    blender.enable()
    rig = demo.new_scene()
    demo.set_live(rig, True)
    demo.dress(rig)
    # The last frame repeats the first.
    frames = range(demo.FRAMES[0], demo.FRAMES[-1], STEP)
    milliseconds = round(1000 * STEP / bpy.context.scene.render.fps)
    file = animated_png.encode(render(frames, options.samples), milliseconds, COLORS, TOLERANCE)
    options.output.write_bytes(file)
    print(f"Rendered {options.output.name}, {len(file) // 1024} kB")


if __name__ == "__main__":
    main()
    blender.leave(0)
