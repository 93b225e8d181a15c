"""Poses for a descent to start from: one near the FK pose that changes smoothly with the target, and a fixed table."""

from __future__ import annotations

import numpy as np

from .arc import arc_of
from .articulated import Body, allowed_angles, angles_of, joined, pose_of
from .problem import Floats
from .products import back_applied
from .rotations import about, between, cross, dot, multiply, norm, quaternions, reject, unit
from .twist import STRAIGHT, Axes, centroid, chain_axes, joints_of

BEND = 0.5
"""How much of the bend that would do a chain begins with; the descent brings the rest, at the joints that can."""
AIM = 0.6
"""How much of its turn towards the target a chain begins with."""
NEAR = 0.5
"""Closer to the root than this, in chain lengths, it begins with less, because there the direction says little."""
FLIP = 1.3
"""Past this many times the root's limit, on the side of the bend, a target asks for a bend on the other side."""
WIDTH = 1.8
"""Over how many times the root's limit a chain changes from the one bend to the other."""
FENCED = 1.2
"""Radians; a root that can turn farther does not force the bend to the other side."""
WAVE = 0.41
"""How far an S swings, for it to shorten a chain as much as a bend does."""
_CURL, _ROUND = 0.8, 1.5 * np.pi
"""How much of their limits the joints of a curled chain take, and the radians that it turns altogether at most."""
_WIDEST = np.pi / 2.0
"""Radians to which the poses of the table bend joints without limits."""


def bent_towards(body: Body, angles: Floats, target: Floats, pole: Floats | None = None) -> Floats:
    """Return joint angles (B, n, 3) of chains that are bent and turned a part of the way to their targets.

    At the FK tip nothing changes. Elsewhere the bend keeps to one side, whatever the direction of the target: a descent
    from the FK pose itself would bend a straight chain away from the target, this way or that way about its line.

    Args:
        body: B chains with one effector each, as long as 1.
        angles: (B, n, 3) FK pose within the limits.
        target: (B, 3) where the effector is to be.
        pole: (B, 3) where straight chains bend to; None: to where they have most room.
    """
    pose = pose_of(body, angles)
    path = body.path(0)
    joints = pose.points[[*path, len(body.parents)]].transpose(2, 0, 1)
    root = joints[:, 0]
    segments = joints[:, 1:] - joints[:, :-1]
    lengths, directions = norm(segments), unit(segments)
    total = np.cumsum(lengths, axis=0)
    sizes = lengths / np.maximum(total[-1], 1e-200)
    axes = chain_axes(directions, sizes, pose.frames[path[0]].transpose(1, 2, 0))
    straight = norm(reject(centroid(joints_of(directions, sizes), sizes), axes.line)) < STRAIGHT
    normal = np.where(straight, _roomiest(body, pose.zeros[path], path, axes), axes.normal)
    if pole is not None:
        away = cross(unit(reject(pole.T - root, axes.line)), axes.line)
        normal = np.where(straight & (norm(away) > 0.5), away, normal)
    offset = target.T - root
    distance = norm(offset)
    chord = norm(joints[:, -1] - root)
    reach = np.maximum(total[-1], 1e-200)
    turn = np.maximum(arc_of(np.minimum(distance / reach, 1.0)) - arc_of(np.minimum(chord / reach, 1.0)), 0.0)
    along = (total - lengths / 2.0) / reach - 0.5
    line = np.where(distance > 1e-12, unit(offset), axes.line)
    full = between(axes.line, line, normal)
    # A part of a rotation: by a part of its angle about the same axis.
    angle = 2.0 * np.arctan2(norm(full[1:]), full[0]) * AIM * np.minimum(1.0, distance / reach / NEAR)
    aim = about(unit(full[1:]), angle)
    bend = _bend(normal, axes.line, line, _root_room(body, pose.zeros[path[0]], normal), BEND * turn, along)
    turned = multiply(aim[:, None], bend)
    guess = angles_of(body, _joint_turns(body, pose.frames, turned, path))
    return allowed_angles(body, angles + (guess - angles) * body.ease)


def _bend(normal: Floats, along_line: Floats, line: Floats, room: Floats, turn: Floats, along: Floats) -> Floats:
    """Return the rotations (4, n, B) that bend chains to their side, away from it where the root has no room.

    A root at its limit cannot turn outwards to make room for a bend on that side: beyond its limit the bend must lie
    inwards. On the way from the one to the other a chain takes the shape of an S, so that nothing flips over.

    Args:
        normal: (3, B) axis about which chains bend.
        along_line: (3, B) from root to tip.
        line: (3, B) from root to target.
        room: (B,) radians that the root can turn to the side on which the bend lies.
        turn: (B,) how much to bend.
        along: (n, B) where the bones are, from -0.5 to 0.5.
    """
    side = cross(along_line, normal)
    across = reject(line, along_line)
    off = unit(across) * np.arctan2(norm(across), dot(line, along_line))
    pole = FLIP * room * side - off
    share = np.where(room < FENCED, pole / np.maximum(WIDTH * room, 1e-3), side)
    size = norm(share)
    share = share / np.maximum(size, 1.0)
    one = cross(share, along_line)
    two = np.sqrt(np.maximum(1.0 - dot(share, share), 0.0)) * normal
    wave = WAVE * np.cos(2.0 * np.pi * (along + 0.5))
    vector = turn * (one[:, None] * along + two[:, None] * wave)
    return about(unit(vector), norm(vector))


def _root_room(body: Body, zeros: Floats, normal: Floats) -> Floats:
    """Return by how many radians (B,) roots can turn backwards about axes (3, B)."""
    local = -back_applied(zeros, normal.T)[:, ::2].T
    root = int(np.argmax(body.parents < 0))
    low, high = body.cone.low[:, :, root], body.cone.high[:, :, root]
    sides = np.minimum(np.where(local < 0.0, low, high), 1.0)
    return np.asarray(2.0 * np.arcsin(np.minimum(np.abs(local[0]) * sides[0] + np.abs(local[1]) * sides[1], 1.0)))


def _joint_turns(body: Body, frames: Floats, turned: Floats, path: list[int]) -> Floats:
    """Return the joint rotations (4, B, n) of bodies whose bones on the path are turned by (4, k, B) in space."""
    bones, members = len(body.parents), frames.shape[1]
    world = np.empty((4, bones, members))
    world[:] = quaternions(frames.transpose(2, 3, 0, 1))
    world[:, path] = multiply(turned, world[:, path])
    rest = quaternions(body.rest.transpose(2, 3, 1, 0))
    turns = np.empty((4, members, bones))
    for i, parent in enumerate(body.parents):
        zero = rest[:, i] if body.free[i] else multiply(world[:, parent], rest[:, i])
        turns[:, :, i] = multiply(zero * np.array([1.0, -1.0, -1.0, -1.0])[:, None], world[:, i])
    return turns


def _roomiest(body: Body, zeros: Floats, path: list[int], axes: Axes) -> Floats:
    """Return the axes (3, B) about which the joints of straight chains have the most room to bend.

    Tried are the axis a straight chain bends about without limits, and the others in steps of a quarter turn about its
    line; the first of equals is taken.
    """
    low, high = np.minimum(body.cone.low[:, 0], 1.0), np.minimum(body.cone.high[:, 0], 1.0)
    best, room = axes.normal, np.full(axes.normal.shape[1], -1.0)
    for axis in (axes.normal, -axes.normal, cross(axes.line, axes.normal), cross(axes.normal, axes.line)):
        local = back_applied(zeros, axis.T)[..., ::2]
        sides = np.where(local < 0.0, low.T[path][:, None], high.T[path][:, None])
        found = np.cumsum((np.abs(local) * sides)[1:].sum(axis=-1), axis=0)[-1] if len(path) > 1 else room + 1.0
        more = found > room + 1e-6
        best, room = np.where(more, axis, best), np.where(more, found, room)
    return best


def table(body: Body, first: int, count: int) -> Floats:
    """Return `count` poses (count, n, 3) within the limits from a fixed list, beginning with number `first`.

    The first four are curled up, each to another side. The joint angles of the others are the points of a Kronecker
    sequence, evenly spread over what the limits allow.
    """
    bones = len(body.parents)
    steps = np.sqrt(_primes(3 * bones)).reshape(bones, 3)
    number = np.arange(first, first + count)[:, None]
    points = ((number[..., None] + 1) * steps) % 1.0
    cone = body.cone
    widest = np.sin(_WIDEST / 2.0)
    low, high = np.where(cone.low > 1.0, widest, cone.low), np.where(cone.high > 1.0, widest, cone.high)
    across = np.moveaxis(points[..., :2], -1, 0) * (high + low) - low
    # Between the limits lie what hinges need and coils; about rest, as many bends to one side as to the other.
    angle, radius = 2.0 * np.pi * points[..., 0], np.sqrt(points[..., 1])
    around = np.stack([np.cos(angle), np.sin(angle)]) * radius
    around = around * np.where(around < 0.0, low, high)
    swing = np.where(number % 2, across, around)
    side = np.stack([np.cos(number * np.pi / 2.0), np.sin(number * np.pi / 2.0)]).round()
    curled = np.minimum(_CURL * np.where(side < 0.0, low, high), np.sin(_ROUND / bones / 2.0))
    swing = np.where(number < 4, side * curled, swing)
    low, high = (
        np.where(np.isinf(cone.twist_low), -_WIDEST, cone.twist_low),
        np.where(np.isinf(cone.twist_high), _WIDEST, cone.twist_high),
    )
    twist = np.where(number < 4, 0.0, low + (high - low) * points[..., 2])
    return allowed_angles(body, joined(swing, twist))


def _primes(count: int) -> Floats:
    """Return the first primes (count,)."""
    primes: list[int] = []
    number = 2
    while len(primes) < count:
        if all(number % prime for prime in primes):
            primes.append(number)
        number += 1
    return np.array(primes, dtype=np.float64)
