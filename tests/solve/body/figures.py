"""A figure with two arms and two legs, as plain arrays."""

from dataclasses import replace

import numpy as np

from ik_addon.solve import Body, PosedBody
from ik_addon.solve.maths.cones import cone_of
from ik_addon.solve.maths.rotations import about_vectors, matrices, quaternions
from ik_addon.solve.problem import Floats
from tests.solve.chains import violation

BONES = {
    "hips": ("", (0.0, 0.0, 1.0), (0.0, 0.0, 1.15)),
    "chest": ("hips", (0.0, 0.0, 1.15), (0.0, 0.0, 1.45)),
    "head": ("chest", (0.0, 0.0, 1.5), (0.0, 0.0, 1.75)),
    **{
        f"{name}.{side}": (f"{parent}.{side}" if parent not in ("hips", "chest") else parent, *places)
        for side, x in (("L", 1.0), ("R", -1.0))
        for name, parent, places in (
            ("thigh", "hips", ((0.1 * x, 0.0, 0.95), (0.1 * x, -0.02, 0.5))),
            ("shin", "thigh", ((0.1 * x, -0.02, 0.5), (0.1 * x, 0.0, 0.08))),
            ("foot", "shin", ((0.1 * x, 0.0, 0.08), (0.1 * x, -0.15, 0.02))),
            ("arm", "chest", ((0.2 * x, 0.0, 1.42), (0.45 * x, 0.02, 1.3))),
            ("forearm", "arm", ((0.45 * x, 0.02, 1.3), (0.7 * x, 0.0, 1.2))),
            ("hand", "forearm", ((0.7 * x, 0.0, 1.2), (0.8 * x, 0.0, 1.17))),
        )
    },
}
NAMES = tuple(BONES)
BONE = {name: i for i, name in enumerate(NAMES)}
LIMITS = {
    "chest": ((-40.0, 40.0), (-30.0, 30.0), (-40.0, 40.0)),
    "thigh.L": ((-120.0, 60.0), (-45.0, 45.0), (-45.0, 45.0)),
    "thigh.R": ((-120.0, 60.0), (-45.0, 45.0), (-45.0, 45.0)),
    "shin.L": ((0.0, 150.0), (0.0, 0.0), (0.0, 0.0)),
    "shin.R": ((0.0, 150.0), (0.0, 0.0), (0.0, 0.0)),
    "foot.L": ((-70.0, 70.0), (-35.0, 35.0), (0.0, 0.0)),
    "foot.R": ((-70.0, 70.0), (-35.0, 35.0), (0.0, 0.0)),
}
"""Limits about X, Z and Y, in degrees."""


def figure(*, limits: bool = True) -> Body:
    """Return the figure at rest. Its X axes point to its left, so knees bend about them."""
    parents = np.array([BONE.get(parent, -1) for parent, _, _ in BONES.values()])
    heads, tails = (np.array([bone[i] for bone in BONES.values()]) for i in (1, 2))
    y = tails - heads
    y /= np.linalg.norm(y, axis=1)[:, None]
    x = np.cross(y, [0.0, -1.0, 0.0])
    # The cross product vanishes for bones that point forward.
    x = np.where(np.abs(y[:, 1:2]) > 0.8, [1.0, 0.0, 0.0], x)
    x = x - (x * y).sum(axis=1)[:, None] * y
    x /= np.linalg.norm(x, axis=1)[:, None]
    x *= np.where(x[:, :1] < 0.0, -1.0, 1.0)
    frames = np.stack([x, y, np.cross(x, y)], axis=-1)
    body = Body(parents, heads, frames, root=0)
    if not limits:
        return body
    ranges = np.tile([-np.inf, np.inf], (len(parents), 3))
    for name, own in LIMITS.items():
        ranges[BONE[name]] = np.radians(own).ravel()
    return replace(body, rest=local(body.parents, frames), cones=ranges[:, :4], twist=ranges[:, 4:])


def local(parents: Floats, frames: Floats) -> Floats:
    """Return orientations (n, 3, 3) relative to those of the parents."""
    seen = frames.copy()
    for bone, parent in enumerate(parents.tolist()):
        if parent >= 0:
            seen[bone] = frames[parent].T @ frames[bone]
    return seen


def turned(body: Body, name: str, vector: tuple[float, float, float]) -> Body:
    """Return the body with a bone and all bones below it rotated about its head, by a rotation vector in world axes."""
    bone = BONE[name]
    turn = matrices(about_vectors(np.array(vector)[:, None]))[..., 0]
    heads, frames = body.heads.copy(), body.frames.copy()
    below = {bone}
    for other, parent in enumerate(body.parents.tolist()):
        if parent in below:
            below.add(other)
    for other in below:
        heads[other] = heads[bone] + turn @ (heads[other] - heads[bone])
        frames[other] = turn @ frames[other]
    return replace(body, heads=heads, frames=frames)


def broken(body: Body, posed: PosedBody | Body) -> Floats:
    """Return how far joints (n,) are outside of their limits, in radians."""
    assert body.rest is not None
    assert body.cones is not None
    assert body.twist is not None
    joints = np.einsum("nji,njk->nik", body.rest, local(body.parents, posed.frames))
    return violation(quaternions(joints.transpose(1, 2, 0)), cone_of(body.cones, body.twist))


def turns(body: Body, one: PosedBody | Body, other: PosedBody | Body) -> Floats:
    """Return the angles (n,) in degrees by which joints differ between two poses."""
    steps = np.einsum("nji,njk->nik", local(body.parents, one.frames), local(body.parents, other.frames))
    q = quaternions(steps.transpose(1, 2, 0))
    return np.degrees(2.0 * np.arctan2(np.linalg.norm(q[1:], axis=0), np.abs(q[0])))
