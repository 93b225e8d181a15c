"""Render one picture of all sample files for the README: part of `python3 tools/dev.py pictures`.

Needs no window: Cycles renders on the CPU. The samples are opened unchanged, and the extension solves them live.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np
from numpy.typing import NDArray

from tools import blender, demo, scenery
from tools.environments import ROOT

SAMPLES = ROOT / "sample_blends"
SHEET = ROOT / "docs" / "images" / "samples.jpg"
WIDTH, HEIGHT = 320, 270
"""Size of one cell, in pixels."""


@dataclass(frozen=True)
class Cell:
    """How a sample is shown."""

    name: str
    frame: int
    cells: int = 1
    """Width in cells."""
    zoom: float = 1.0
    shift: tuple[float, float] = (0.0, 0.0)
    """Camera shift to the right and up."""


ROWS = (
    (
        Cell("spider", 98, cells=2, zoom=0.9, shift=(0.0, -0.03)),
        Cell("flat_arm", 45, zoom=1.1),
        Cell("converted", 58, shift=(0.0, -0.06)),
    ),
    (
        Cell("two_bone_arm", 28, zoom=1.7, shift=(0.02, -0.1)),
        Cell("tentacle", 36, zoom=1.45, shift=(0.04, -0.17)),
        Cell("torso_tree", 30, zoom=1.3, shift=(0.0, 0.1)),
        Cell("finger_limits", 40, zoom=0.9),
    ),
    (
        Cell("horse", 86, cells=2),
        Cell("switches", 45, zoom=1.2),
        Cell("character", 22, zoom=1.1),
    ),
)
QUALITY = 90


def picture(cell: Cell, samples: int, folder: Path) -> NDArray[np.float32]:
    """Render a frame of a sample; return the pixels (height, width, 4)."""
    bpy.ops.wm.open_mainfile(filepath=str(SAMPLES / f"{cell.name}.blend"))
    scene = bpy.context.scene
    scene.frame_set(cell.frame)
    scene.cycles.samples = samples
    camera = scene.camera.data
    camera.lens *= cell.zoom
    camera.shift_x, camera.shift_y = cell.shift
    scenery.crop(cell.cells * WIDTH, HEIGHT)
    scene.render.filepath = str(folder / f"{cell.name}.png")
    with demo.quiet():
        bpy.ops.render.render(write_still=True)
    return demo.load(scene.render.filepath)


def save(pixels: NDArray[np.float32], path: Path) -> None:
    """Write pixels (height, width, 4) as a JPEG."""
    height, width, _channels = pixels.shape
    image = bpy.data.images.new(path.stem, width, height)
    image.pixels.foreach_set(np.ascontiguousarray(pixels).ravel())
    image.filepath_raw, image.file_format = str(path), "JPEG"
    image.save(quality=QUALITY)


def main() -> None:
    """Render the sheet."""
    parser = argparse.ArgumentParser(prog="make pictures", description="Render the picture of the sample files.")
    parser.add_argument("--samples", type=int, default=64, help="how often each pixel is sampled; more is smoother")
    parser.add_argument("--output", type=Path, default=SHEET, help="where the picture goes")
    options = parser.parse_args()
    blender.enable()
    with tempfile.TemporaryDirectory() as folder:
        rows = [np.concatenate([picture(cell, options.samples, Path(folder)) for cell in row], axis=1) for row in ROWS]
    # Blender's rows of pixels start at the bottom.
    save(np.concatenate(rows[::-1], axis=0), options.output)
    print(f"Rendered {options.output.name}, {options.output.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
    blender.leave(0)
