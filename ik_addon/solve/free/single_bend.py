"""The axes and the even bend of one chain, in plain floats.

Every operation is that of `axes`, `even_bend` and `arc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, inf, sin, sqrt

from ..maths.numbers import ONE, between
from ..maths.vectors import (
    Vector,
    cross,
    dot,
    norm,
    plus,
    reject,
    rotate,
    times,
    unit,
)
from . import arc, even_bend, fabrik
from .axes import ALONG, STRAIGHT
from .fabrik import joints_of

Axes = tuple[Vector, Vector, Vector]
"""Line, bend and normal of a chain, see `axes.Axes`."""


def centroid(joints: list[Vector], lengths: list[float]) -> Vector:
    """Return the centroid of a chain as a curve; the lengths have the sum 1."""
    x = y = z = 0.0
    for i, length in enumerate(lengths):
        (ax, ay, az), (bx, by, bz), half = joints[i], joints[i + 1], length / 2.0
        x, y, z = x + (bx + ax) * half, y + (by + ay) * half, z + (bz + az) * half
    return x, y, z


def chain_axes(
    directions: list[Vector], lengths: list[float], root_frame: Sequence[Sequence[float]], side: Vector | None = None
) -> Axes | None:
    """See `axes.chain_axes`: line, bend and normal; None for a closed chain."""
    joints = joints_of(directions, lengths)
    if norm(joints[-1]) < STRAIGHT:
        return None
    line = unit(joints[-1])
    bend = reject(centroid(joints, lengths), line)
    if norm(bend) < STRAIGHT:
        across = None if side is None else reject(side, line)
        is_clear = across is not None and norm(across) > ALONG
        bend = across if across is not None and is_clear else cross(line, hinge(root_frame, line))
    bend = unit(bend)
    return line, bend, cross(bend, line)


def hinge(frame: Sequence[Sequence[float]], direction: Vector) -> Vector:
    """See `rotations.hinge`."""
    (xx, _, zx), (xy, _, zy), (xz, _, zz) = frame
    across = reject((xx, xy, xz), direction)
    return unit(across if norm(across) > 1e-4 else cross(direction, (zx, zy, zz)))


def tip_of(directions: list[Vector], lengths: list[float]) -> Vector:
    """Return the end of a chain that starts at 0."""
    x = y = z = 0.0
    for (dx, dy, dz), length in zip(directions, lengths, strict=True):
        x += dx * length
        y += dy * length
        z += dz * length
    return x, y, z


Plane = list[tuple[float, float, float]]
"""Directions of bones along the chain's line, towards its bend and along its normal."""


def _bowed(plane: Plane, turn: float, places: list[float]) -> Plane:
    found = []
    for (x, y, z), place in zip(plane, places, strict=True):
        c, s = cos(turn * place), sin(turn * place)
        found.append((x * c + y * s, y * c - x * s, z))
    return found


def _pull_of(plane: Plane, parts: list[float], chord: float, wanted: float, least: float) -> float:
    """See `arc.pull_of`."""
    slack = max(1.0 - wanted, arc.SLACK)
    goal = 1.0 / sqrt(slack)
    pull = sqrt(max(max(1.0 - chord, arc.SLACK) / slack, 1.0)) - 1.0
    low, high = least, inf
    across = [y * y + z * z for _x, y, z in plane]
    for _ in range(arc.STEPS):
        tip_x = tip_y = tip_z = slope_x = slope_y = slope_z = 0.0
        for (x, y, z), part, beside in zip(plane, parts, across, strict=True):
            along = x + pull
            length = max(sqrt(along * along + beside), 1e-12)
            share = part / length
            right, up, out = share * along, share * y, share * z
            tip_x, tip_y, tip_z = tip_x + right, tip_y + up, tip_z + out
            drift = along / (length * length)
            slope_x, slope_y, slope_z = slope_x + (share - drift * right), slope_y + drift * up, slope_z + drift * out
        size = sqrt(tip_x * tip_x + tip_y * tip_y + tip_z * tip_z)
        shortfall = size - wanted
        if not abs(shortfall) > arc.PRECISE:
            break
        low, high = (pull, high) if shortfall < 0.0 else (low, pull)
        slope = (tip_x * slope_x - tip_y * slope_y - tip_z * slope_z) / max(size, 1e-200)
        now = max(1.0 - size, 1e-16)
        guessed = pull + (goal - 1.0 / sqrt(now)) * (2.0 * now * sqrt(now)) / max(slope, 1e-30)
        if not (low < guessed < high and guessed < 4.0 * pull + 3.0):
            guessed = min((low + high) / 2.0, 4.0 * low + 3.0)
        pull = guessed
    return pull


def first_guess(
    directions: list[Vector], lengths: list[float], own: Axes, axes: Axes, distance: float, *, bow: bool = True
) -> list[Vector]:
    """See `even_bend.first_guess`."""
    line, bend, normal = axes
    ends = []
    total = 0.0
    for length in lengths:
        total += length
        ends.append(total)
    tip = tip_of(directions, lengths)
    chord, wanted = norm(tip) / total, distance / total
    flat = flattened(lengths, line, distance)
    if flat is not None:
        return flat
    plane = [(dot(direction, own[0]), dot(direction, own[1]), dot(direction, own[2])) for direction in directions]
    pull = 0.0
    if abs(chord - wanted) > arc.SLACK:
        parts = [length / total for length in lengths]
        if bow:
            places = [(end - length / 2.0) / total - 0.5 for end, length in zip(ends, lengths, strict=True)]
            give = sum(part * (1.0 - x * x) for part, (x, _y, _z) in zip(parts, plane, strict=True))
            turn = max(
                arc.arc_of(ONE, wanted) - arc.arc_of(ONE, chord),
                arc.KICK if give < arc.STIFF and chord < arc.FOLDED else 0.0,
            )
            plane = _bowed(plane, turn, places)
        pull = _pull_of(plane, parts, chord, wanted, arc.LEAST if bow else arc.FARTHER)
    guess = []
    for x, y, z in plane:
        along = x + pull
        size = sqrt(along * along + y * y + z * z)
        if not size > 1e-12:
            along, size = x, 1.0
        a, b, c = along / size, y / size, z / size
        guess.append(
            (
                a * line[0] + b * bend[0] + c * normal[0],
                a * line[1] + b * bend[1] + c * normal[1],
                a * line[2] + b * bend[2] + c * normal[2],
            )
        )
    return guess


def flattened(lengths: list[float], line: Vector, distance: float) -> list[Vector] | None:
    """See `even_bend.flattened`; None: the chain is not at an end of its reach."""
    total, longest = sum(lengths), max(lengths)
    straight = distance / total >= 1.0 - arc.SLACK
    if straight or (2.0 * longest > total and 2.0 * longest - total >= distance - arc.SLACK):
        back = (-1.0 * line[0], -1.0 * line[1], -1.0 * line[2])
        return [line if straight or length == longest else back for length in lengths]
    return None


def solve_directions(
    start: list[Vector],
    lengths: list[float],
    line: Vector,
    normal: Vector,
    distance: float,
    tolerance: float,
    iterations: int,
    begun: int = 0,
) -> tuple[list[Vector], int] | None:
    """See `even_bend.solve_directions`; None if the chain must be laid out by construction."""
    directions, tip, step = start, tip_of(start, lengths), 1.0
    done, tolerance = begun, max(tolerance, fabrik.FINEST * sum(lengths))
    while not (abs(distance - norm(tip)) <= tolerance or done == iterations):
        if done == even_bend.REACHING:
            directions = _turned_to_line(directions, lengths, line, normal)
            directions, tip = fabrik.pass_once(ONE, directions, lengths, times(line, distance))
        elif done < even_bend.PATIENCE:
            directions, tip, step = _newton(directions, lengths, tip, distance, step)
        else:
            return None
        done += 1
    return _turned_to_line(directions, lengths, line, normal), done


def _turned_to_line(directions: list[Vector], lengths: list[float], line: Vector, normal: Vector) -> list[Vector]:
    end = tip_of(directions, lengths)
    if norm(end) <= even_bend.NO_CHORD:
        return directions
    tip = unit(end)
    turn = between(ONE, tip, line, unit(reject(normal, tip)))
    return [rotate(turn, direction) for direction in directions]


def _newton(
    directions: list[Vector], lengths: list[float], tip: Vector, distance: float, step: float
) -> tuple[list[Vector], Vector, float]:
    """See `even_bend._Running.newton_pass`."""
    line = unit(tip)
    give = [reject(line, direction) for direction in directions]
    speed = tip_of(give, lengths)
    along, square = dot(tip, speed), dot(speed, speed)
    shortfall = distance * distance - dot(tip, tip)
    pull = shortfall / max(along + sqrt(max(along * along + square * shortfall, 0.0)), 1e-30)
    size = step * min(max(pull, -1.0), 1.0)
    tried = [unit(plus(direction, times(give[i], size))) for i, direction in enumerate(directions)]
    end = tip_of(tried, lengths)
    if abs(distance - norm(end)) < abs(distance - norm(tip)):
        return tried, end, min(2.0 * step, 1.0)
    return directions, tip, step / 2.0
