"""Charts of how times grow, with both axes logarithmic, as SVG without any library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

COLORS = ("#1f77b4", "#d95f02")
WIDTH, HEIGHT, LEFT, TOP, GAP = 250, 200, 52, 34, 70
"""Sizes in pixels: of a panel, of the left and top margins, and of the gap between panels."""


@dataclass(frozen=True)
class Curve:
    """One line of a panel."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


def chart(panels: Mapping[str, Sequence[Curve]]) -> str:
    """Return the panels side by side; the keys are the labels of their x axes."""
    width, height = LEFT + len(panels) * (WIDTH + GAP), TOP + HEIGHT + 48
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for i, (title, curves) in enumerate(panels.items()):
        parts += _panel(LEFT + i * (WIDTH + GAP), title, curves)
    return "\n".join([*parts, "</svg>\n"])


def _panel(left: float, title: str, curves: Sequence[Curve]) -> list[str]:
    across = _decades([x for curve in curves for x in curve.x])
    up = _decades([y for curve in curves for y in curve.y])

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            left + WIDTH * (math.log10(x) - across[0]) / (across[-1] - across[0]),
            TOP + HEIGHT * (1.0 - (math.log10(y) - up[0]) / (up[-1] - up[0])),
        )

    parts = []
    for decade in across:
        x, y = place(10.0**decade, 10.0 ** up[0])
        parts.append(f'<path d="M{x:.1f} {TOP}V{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{10.0**decade:g}</text>')
    for decade in up:
        x, y = place(10.0 ** across[0], 10.0**decade)
        parts.append(f'<path d="M{x:.1f} {y:.1f}h{WIDTH}" stroke="#ddd"/>')
        parts.append(f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{10.0**decade:g}</text>')
    for k, (curve, color) in enumerate(zip(curves, COLORS, strict=False)):
        points = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in zip(curve.x, curve.y, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="{left + 8 + 60 * k}" y="{TOP - 10}" fill="{color}">{curve.name}</text>')
    parts.append(f'<text x="{left + WIDTH / 2}" y="{TOP + HEIGHT + 36}" text-anchor="middle">{title}</text>')
    return parts


def _decades(values: Sequence[float]) -> range:
    """Return the powers of ten that enclose all values."""
    return range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)
