"""Draw the icon of the tool Pose Body: a figure pulled by a hand. Writes it in the format of Blender's toolbar."""

from __future__ import annotations

import itertools
import math

from tools.environments import ROOT

PATH = ROOT / "ik_addon" / "ui" / "pose_body.dat"
LIGHT, ACCENT = (229, 229, 229, 255), (217, 175, 245, 255)
"""The colors of Blender's own icons for posing."""
AROUND = 20
"""Corners of a circle."""
WIDTH = 15.0

Point = tuple[float, float]
Triangle = tuple[Point, Point, Point]
HEAD, NECK, HIPS, HAND = (104.0, 196.0), (108.0, 166.0), (112.0, 102.0), (212.0, 190.0)
LIMBS = (
    (NECK, HIPS),
    (NECK, (158.0, 156.0), HAND),
    (NECK, (72.0, 136.0), (60.0, 94.0)),
    (HIPS, (142.0, 66.0), (134.0, 20.0)),
    (HIPS, (88.0, 64.0), (70.0, 20.0)),
)
"""The joints of each line of the figure, in an image of 255 x 255, Y up."""


def disc(center: Point, radius: float) -> list[Triangle]:
    """Return the triangles of a disc."""
    angles = [2.0 * math.pi * i / AROUND for i in range(AROUND + 1)]
    edge = [(center[0] + radius * math.cos(a), center[1] + radius * math.sin(a)) for a in angles]
    return [(center, a, b) for a, b in itertools.pairwise(edge)]


def line(a: Point, b: Point) -> list[Triangle]:
    """Return the triangles of a line with round ends."""
    x, y = b[0] - a[0], b[1] - a[1]
    scale = 0.5 * WIDTH / math.hypot(x, y)
    across = (-y * scale, x * scale)
    p, q, r, s = [(end[0] + k * across[0], end[1] + k * across[1]) for end in (a, b) for k in (1.0, -1.0)]
    return [(p, q, r), (q, s, r), *disc(a, 0.5 * WIDTH), *disc(b, 0.5 * WIDTH)]


def shape() -> tuple[list[Triangle], list[Triangle]]:
    """Return the triangles of the figure, and of the hand that pulls it."""
    bones = (bone for limb in LIMBS for bone in itertools.pairwise(limb))
    return disc(HEAD, 26.0) + [each for a, b in bones for each in line(a, b)], disc(HAND, 24.0)


def main() -> None:
    """Write the icon."""
    body, held = shape()
    corners = bytes(round(value) for triangle in body + held for point in triangle for value in point)
    colors = bytes(LIGHT * 3 * len(body) + ACCENT * 3 * len(held))
    PATH.write_bytes(b"VCO\0" + bytes((255, 255, 0, 0)) + corners + colors)


if __name__ == "__main__":
    main()
