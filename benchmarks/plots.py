"""Put the results of `benchmarks.quality` into `docs/lab/quality.md`: small SVGs, and the tables.

    python -m benchmarks.plots

from the project's folder, after `python -m benchmarks.quality`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .quality import OUTPUT, PATHS

FOLDER = Path("docs/images")
PAGE = Path("docs/lab/quality.md")
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"
"""The page's tables are between these lines."""
CASES = ("limits-30", "limits-45", "limits-90", "limits-asym", "limits-tight", "hinges", "limits-random")
SOLVERS = {"blender": ("Blender's IK", "#d9792b"), "ours": ("this add-on", "#1f6fb2")}
"""Name and color of each solver; the last one is drawn on top."""
WIDTH, HEIGHT = 190, 130
"""Size of a panel's axes."""
LEFT, TOP, GAP = 60, 56, 62

Row = dict[str, Any]
Points = Sequence[tuple[float, float]]


class Axis(NamedTuple):
    """A scale from values to positions."""

    ticks: Sequence[float]
    scale: Callable[[float], float]
    """`float` or `math.log`."""
    unit: str = ""

    def __call__(self, value: float) -> float:
        """Return the position of a value; the first tick is at 0 and the last at 1."""
        first, last = self.scale(self.ticks[0]), self.scale(self.ticks[-1])
        return min(max((self.scale(value) - first) / (last - first), 0.0), 1.0)


def text(x: float, y: float, words: str, anchor: str = "middle", size: int = 11, extra: str = "") -> str:
    """Return a line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{extra}>{words}</text>'


def panel(title: str, x: Axis, y: Axis, lines: dict[str, Points]) -> list[str]:
    """Return a panel with its upper left corner at the origin; `lines` has the points of each solver."""
    parts = [text(WIDTH / 2, -8, title, size=12, extra=' font-weight="bold"')]
    for tick in y.ticks:
        at = HEIGHT * (1.0 - y(tick))
        parts.append(f'<path d="M0 {at:.1f}H{WIDTH}" stroke="#dddddd"/>')
        parts.append(text(-5, at + 4, f"{tick:g}{y.unit}", "end"))
    parts += [text(WIDTH * x(tick), HEIGHT + 15, f"{tick:g}{x.unit}") for tick in x.ticks]
    parts.append(f'<path d="M0 0V{HEIGHT}H{WIDTH}" fill="none" stroke="#666666"/>')
    for solver, points in lines.items():
        color = SOLVERS[solver][1]
        places = [(WIDTH * x(a), HEIGHT * (1.0 - y(b))) for a, b in points]
        way = "L".join(f"{a:.1f} {b:.1f}" for a, b in places)
        parts.append(f'<path d="M{way}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{color}"/>' for a, b in places]
    return parts


def picture(title: str, panels: Sequence[list[str]], columns: int = 4) -> str:
    """Return an SVG of panels in rows, with a title and a legend."""
    rows = -(-len(panels) // columns)
    width = LEFT + columns * (WIDTH + GAP) - GAP + 20
    height = TOP + rows * (HEIGHT + GAP) - GAP + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"',
        ' font-family="sans-serif" fill="#222222">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        text(12, 20, title, "start", 14),
    ]
    x = width - 16.0
    for name, color in SOLVERS.values():
        parts.append(text(x, 20, name, "end", 12))
        x -= 7.0 * len(name) + 8.0
        parts.append(f'<path d="M{x - 18:.1f} 16H{x:.1f}" stroke="{color}" stroke-width="3"/>')
        x -= 40.0
    for i, one in enumerate(panels):
        left, top = LEFT + i % columns * (WIDTH + GAP), TOP + i // columns * (HEIGHT + GAP)
        parts += [f'<g transform="translate({left} {top})">', *one, "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def reached(rows: Sequence[Row], within: str, ticks: Sequence[float], title: str) -> str:
    """Plot how many targets each solver reaches against the length of the chain."""
    panels = []
    for case in CASES:
        of_case = sorted((row for row in rows if row["case"] == case), key=lambda row: int(row["bones"]))
        bones = [float(row["bones"]) for row in of_case]
        lines = {
            s: [(b, 100.0 * row[s][f"within_{within}"]) for b, row in zip(bones, of_case, strict=True)] for s in SOLVERS
        }
        panels.append(panel(case, Axis((2, 3, 5, 9, 20), math.log), Axis(ticks, float, " %"), lines))
    return picture(title, panels)


def smooth(rows: Sequence[Row]) -> str:
    """Plot the share of a path's frames in which a bone turns by more than a given number of degrees."""
    panels = []
    paths = [row for row in rows if row["case"] == "smooth-paths"]
    for row in sorted(paths, key=lambda row: int(row["bones"])):
        lines = {}
        for solver in SOLVERS:
            figures, frames = row[solver], row["solves"] - PATHS
            above = [(float(step), 100.0 * count / frames) for step, count in figures["frames_above"].items() if count]
            lines[solver] = [*above, (figures["largest_step"], 100.0 / frames)]
        x, y = Axis((1, 3, 10, 30, 180), math.log, "°"), Axis((0.008, 0.1, 1, 10, 100), math.log, " %")
        panels.append(panel(f"{row['limits']}, {row['bones']} bones", x, y, lines))
    return picture("Frames of smooth paths in which a bone turns by more than so much", panels)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the table in Markdown, with ours before Blender's in each cell."""
    yield "| case | bones | solves | within 1e-3 L | within 1e-4 L | within 1e-6 L | violations | worst error, L |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows:
        ours, theirs = row["ours"], row["blender"]
        cells = [f"{row['case']} {row.get('limits', '')}".strip(), str(row["bones"]), str(row["solves"])]
        for limit in ("1e-3", "1e-4", "1e-6"):
            shares = [100.0 * solver[f"within_{limit}"] for solver in (ours, theirs)]
            cells.append(f"**{shares[0]:.2f}** / {shares[1]:.2f} %")
        cells.append(f"{ours['violations']} / {theirs['violations']}")
        cells.append(f"{ours['worst_error']:.0e} / {theirs['worst_error']:.0e}")
        yield f"| {' | '.join(cells)} |"


def path_table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the smooth paths' table."""
    yield "| case | bones | frames | largest turn in a frame | frames above 30° | turns below 10° |"
    yield "|---|---|---|---|---|---|"
    for row in sorted(rows, key=lambda row: str(row["case"])):
        if "largest_step" in row["ours"]:
            ours, theirs = row["ours"], row["blender"]
            yield (
                f"| {row['case']} {row['limits']} | {row['bones']} | {row['solves']} "
                f"| **{ours['largest_step']:.1f}** / {theirs['largest_step']:.1f}° "
                f"| **{ours['frames_above_30']}** / {theirs['frames_above_30']} "
                f"| **{100.0 * ours['below_10']:.2f}** / {100.0 * theirs['below_10']:.2f} % |"
            )


def write_page(tables: Sequence[Iterator[str]]) -> None:
    """Replace the tables on the page."""
    parts = PAGE.read_text(encoding="utf-8").split(BEGIN)
    for i, lines in enumerate(tables, 1):
        _, _, rest = parts[i].partition(END)
        parts[i] = "\n".join(["", *lines, "", END]) + rest
    PAGE.write_text(BEGIN.join(parts), encoding="utf-8")


def main() -> None:
    """Draw and write."""
    rows = [row for row in json.loads(OUTPUT.read_text(encoding="utf-8")) if "ours" in row]
    pictures = {
        "reached": reached(
            rows, "1e-3", (75, 80, 85, 90, 95, 100), "Targets reached within 1e-3 L, by number of bones"
        ),
        "exact": reached(rows, "1e-6", (0, 25, 50, 75, 100), "Targets reached within 1e-6 L, by number of bones"),
        "smooth": smooth(rows),
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, content in pictures.items():
        (FOLDER / f"quality-{name}.svg").write_text(content, encoding="utf-8")
    write_page([path_table(rows), table(rows)])


if __name__ == "__main__":
    main()
