"""Plotting feet and hips before and after a bake as an SVG picture, which any browser shows."""

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from bpy.types import Context, Object, PoseBone

from ..anatomy.body import root_of
from ..anatomy.figure import Figure
from ..bake.restore import over_frames
from ..bake.sampling import played
from ..bake.selection import time_scale
from ..core import contact_keys
from ..core.skeleton import moved
from ..feet import pivots
from ..rig.plan.chain import chain_bones, end_of
from ..solve.maths.runs import runs
from ..solve.problem import Bools, Floats


@dataclass(frozen=True)
class Tracks:
    """C legs and the hips on F frames."""

    frames: list[int]
    legs: list[str]
    """Names of the tip bones."""
    foot_speed: Floats
    """(C, F) speed in scene units per second, of the heel or the toe: whichever is slower."""
    contacts: Bools
    """(C, 2, F) whether heel and toe touch."""
    hips: Floats
    """(F,) height in scene units."""


def sample(
    context: Context, ob: Object, legs: Sequence[PoseBone], frames: Sequence[int]
) -> Generator[float, None, Tracks]:
    """Play successive frames and sample legs and hips; yields progress (0 to 1)."""
    scene = context.scene
    figure, names = Figure.of(ob), ob.pose.bones.keys()
    feet = [end_of(tip) or tip for tip in legs]
    hips = root_of(figure, figure.names.index(chain_bones(legs[0])[0].name))
    rows = np.array([names.index(name) for name in (*(foot.name for foot in feet), figure.names[hips])], dtype=np.int64)
    with over_frames(context.view_layer, ob) as (_undo, before):
        poses, _ = yield from played(context.view_layer, ob, rows, frames)
        before.restore()
    rate = scene.render.fps / scene.render.fps_base
    pivot = np.array([pivots.of(figure, tip) if end_of(tip) is not None else np.zeros((2, 3)) for tip in legs])
    points = moved(poses[:, :-1, None], pivot)
    steps = np.gradient(points, axis=0) if len(frames) > 1 else np.zeros_like(points)
    at = time_scale(scene) * np.array(frames, dtype=np.float64)
    return Tracks(
        frames=list(frames),
        legs=[tip.name for tip in legs],
        foot_speed=rate * np.linalg.norm(steps, axis=-1).min(axis=-1).T,
        contacts=np.array([contact_keys.read(tip, at) for tip in legs]),
        hips=poses[:, -1, 2, 3],
    )


WIDTH, HEIGHT = 900.0, 130.0
"""Width and height of a panel, without its labels."""
LEFT, TOP, GAP = 70.0, 80.0, 56.0
GRAY, BLUE = "#999999", "#1f6fb2"
HEEL, TOE = "#f5d9a8", "#cfe3c3"
LEGEND = {"before": GRAY, "after": BLUE, "heel touches": HEEL, "toe touches": TOE}
LABELS = 5
"""Approximate number of labels on the vertical axis; the horizontal axis has twice as many."""


def plot(title: str, before: Tracks, after: Tracks, unit: str, scale: float) -> str:
    """Return an SVG plot of the speed of the feet, their contacts, and the height of the hips.

    Args:
        title: the title of the plot.
        before: motion before the bake.
        after: motion after the bake.
        unit: the unit of lengths, as text.
        scale: how many of these make a scene unit.
    """
    frames = after.frames
    panels = [
        _panel(
            f"Foot of '{leg}': speed of heel or toe, whichever is slower, in {unit}/s",
            frames,
            (scale * before.foot_speed[i], scale * after.foot_speed[i]),
            after.contacts[i],
        )
        for i, leg in enumerate(after.legs)
    ]
    panels.append(_panel(f"Height of the hips in {unit}", frames, (scale * before.hips, scale * after.hips)))
    legend = (f'<tspan fill="{color}">\u25a0</tspan> {text}\u2003' for text, color in LEGEND.items())
    height = TOP + len(panels) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20:.0f} {height:.0f}" '
        'font-family="sans-serif" font-size="12" fill="#222222">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{LEFT:.0f}" y="20" font-size="15">{escape(title)}</text>',
        f'<text x="{LEFT:.0f}" y="40">{"".join(legend)}</text>',
    ]
    for i, panel in enumerate(panels):
        parts.append(f'<g transform="translate({LEFT:.0f} {TOP + i * (HEIGHT + GAP):.1f})">')
        parts += panel
        parts.append("</g>")
    parts.append(f'<text x="{LEFT + 0.5 * WIDTH:.0f}" y="{height - 12:.0f}" text-anchor="middle">frame</text></svg>')
    return "\n".join(parts) + "\n"


def _panel(
    title: str, frames: list[int], curves: tuple[Floats, Floats], contacts: Bools | None = None
) -> Iterator[str]:
    """Yield the SVG elements of a panel with two curves over frames, at its own origin.

    Args:
        title: the title of the panel.
        frames: the F frames.
        curves: values (F,) before and after.
        contacts: (2, F) whether heel and toe touch, for speeds, which begin at zero.
    """
    values = np.concatenate(curves)
    low, high = (float(values.min()) if contacts is None else 0.0), float(values.max())
    labels = ticks(low, high)
    low, high = min(low, labels[0]), max(high, labels[-1])
    first, last = frames[0], max(frames[-1], frames[0] + 1)

    def across(frame: float) -> float:
        return WIDTH * (frame - first) / (last - first)

    def up(value: float) -> float:
        return HEIGHT * (1.0 - (value - low) / (high - low))

    yield f'<text x="0" y="-8" font-weight="bold">{escape(title)}</text>'
    if contacts is not None:
        for row, color in enumerate((HEEL, TOE)):
            for start, end in runs(np.asarray(contacts[row], dtype=bool)):
                x, right = across(frames[start]), across(frames[end - 1])
                yield (
                    f'<rect x="{x:.1f}" y="{0.5 * HEIGHT * row:.1f}" width="{max(right - x, 1.0):.1f}" '
                    f'height="{0.5 * HEIGHT:.1f}" fill="{color}"/>'
                )
    for value in labels:
        yield f'<path d="M0 {up(value):.1f}H{WIDTH:.0f}" stroke="#dddddd"/>'
        yield f'<text x="-6" y="{up(value) + 4.0:.1f}" text-anchor="end" font-size="11">{value:g}</text>'
    for frame in ticks(first, last, 2 * LABELS):
        if first <= frame <= last:
            x = across(frame)
            yield f'<path d="M{x:.1f} {HEIGHT:.0f}v4" stroke="#888888"/>'
            yield f'<text x="{x:.1f}" y="{HEIGHT + 16:.0f}" text-anchor="middle" font-size="11">{frame:g}</text>'
    yield f'<path d="M0 0V{HEIGHT:.0f}H{WIDTH:.0f}" fill="none" stroke="#888888"/>'
    for curve, color in zip(curves, (GRAY, BLUE), strict=True):
        points = " ".join(f"{across(f):.1f},{up(v):.1f}" for f, v in zip(frames, curve.tolist(), strict=True))
        yield f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>'


def ticks(low: float, high: float, about: int = LABELS) -> list[float]:
    """Return evenly spaced round numbers that cover `low` to `high` in roughly `about` steps or fewer."""
    span = max(high - low, 1e-6 * max(abs(high), 1.0))
    power = 10.0 ** math.floor(math.log10(span / about))
    step = next(own for own in (power, 2.0 * power, 5.0 * power, 10.0 * power) if span / own <= about)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 10) for i in range(first, max(last, first + 1) + 1)]


def file_name(stem: str, armature: str) -> str:
    """Return the file name of an armature's plot."""
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in armature)
    return f"{stem}-{safe}.svg"
