"""One step of a body: the least cost that brings its ends where they should be, in linear equations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..maths.products import applied, back_applied, times
from ..maths.rotations import dot, norm
from ..problem import Floats, Ints
from .branches import Branches
from .limits import Bounds

STIFFER = ((0.0, 0.05), (0.03, 0.2), (0.1, 0.3), (0.3, 1.0), (1.0, 0.2))
"""Shares of what makes sure that no joint turns over by itself, and how soft joints may be then, of what they are
without forces; the first that suffices is taken. The last always does."""


class Equations(NamedTuple):
    """What a step is to bring about; n is three for each joint, and three for the offset of the root."""

    rows: Floats
    """(r, n) how ends move."""
    hessian: Floats
    """(n, n) second derivative of the cost."""
    pull: Floats
    """(n,) its derivative."""
    residual: Floats
    """(r,) what ends are off."""
    yields: Floats
    """(r,) by how much each of them gives way to a unit force."""
    columns: Ints
    """(3 k,) the places of the k joints with limits among the n."""
    branches: Branches
    """Which of the n have to do with each other."""


def step_of(wanted: Equations, project: Floats, fixed: Floats, stiffer: int) -> tuple[Floats, Floats, Floats, int]:
    """Return a step that limits allow.

    Args:
        wanted: the equations without limits.
        project: (k, 3, 3) projections of joints with limits onto what is open to them.
        fixed: (3, k) steps that their limits ask for.
        stiffer: which of `STIFFER` to try first.

    Returns:
        The step (n,), the forces (r,) at the ends, what pushes on after the step (n,), against limits, and which of
        `STIFFER` was taken.
    """
    rows, hessian, pull, residual, yields, columns, branches = wanted
    k, joints = len(project), len(branches.ways)
    own, matrix, gradient = rows, branches.along(hessian), pull
    whole = np.zeros(len(pull))
    if k:
        whole[columns] = fixed.T.ravel()
        gradient = pull + applied(hessian, whole)
        residual = residual - applied(rows, whole)
        every = np.tile(np.eye(3), (joints, 1, 1))
        every[columns[::3] // 3] = project
        own = rows.copy()
        own[:, columns] = _by_joint(rows[:, columns], project)
        matrix = branches.projected(matrix, every)
        matrix[np.arange(joints)[:, None, None], np.arange(3)[:, None], branches.own[:, None]] += np.eye(3) - every
        right = gradient.copy()
        right[columns] = _by_joint(gradient[columns][None], project)[0]
    else:
        right = gradient
    offset = hessian[-3:, -3:] + times(rows[:, -3:].T / yields, rows[:, -3:])
    right = back_applied(own, residual / yields) - right
    step, stiffer = _solved(branches, matrix, branches.squared(own, yields), offset, right, stiffer)
    forces = (residual - applied(own, step)) / yields
    pushed = back_applied(rows, forces) - gradient - applied(hessian, step)
    return step + whole, forces, pushed, stiffer


def projection(changes: Floats, bounds: Bounds) -> tuple[Floats, Floats]:
    """Return what bounds leave open to joints, and the steps that they ask for, see `step_of`.

    Args:
        changes: (3, 3, k) how the coordinates of each joint change with its step.
        bounds: of these coordinates.
    """
    fixed = np.zeros(changes.shape[1:])
    project = np.tile(np.eye(3)[:, :, None], (1, 1, changes.shape[-1]))
    directions: list[Floats] = []
    for normal, wanted in zip(bounds.normals, bounds.steps, strict=True):
        if not normal.any():
            continue
        row = normal[0] * changes[0] + normal[1] * changes[1] + normal[2] * changes[2]
        rest = row
        for direction in directions:
            rest = rest - dot(rest, direction) * direction
        length = norm(rest)
        clear = length > 1e-6 * np.maximum(norm(row), 1e-200)
        direction = np.where(clear, rest / np.where(clear, length, 1.0), 0.0)
        left = (wanted - dot(row, fixed)) / np.where(clear, length, 1.0)
        fixed = fixed + np.where(clear, left, 0.0) * direction
        project -= direction[:, None] * direction[None]
        directions.append(direction)
    return project.transpose(2, 0, 1), fixed


def released(changes: Floats, bounds: Bounds, pushed: Floats) -> Bounds:
    """Return bounds without the limits from which joints (3, k) are pushed away; the same where there are none."""
    if not bounds.held.any():
        return bounds
    swings = bounds.normals[:, 0] * dot(changes[0], pushed) + bounds.normals[:, 1] * dot(changes[1], pushed)
    outward = swings + bounds.normals[:, 2] * dot(changes[2], pushed)
    leave = bounds.held & (outward < -1e-12)
    if not leave.any():
        return bounds
    normals, steps = np.where(leave[:, None], 0.0, bounds.normals), np.where(leave, 0.0, bounds.steps)
    return Bounds(normals, steps, bounds.held & ~leave)


def pressure_of(changes: Floats, bounds: Bounds, pushed: Floats) -> Floats:
    """Return how strongly joints (k,) are pushed against the limits of their swings, for the unit of a coordinate."""
    held = np.where(bounds.held[:2], bounds.normals[:2, :2].transpose(1, 0, 2), 0.0).sum(axis=1)
    row = held[0] * changes[0] + held[1] * changes[1]
    size = dot(row, row)
    return np.asarray(np.maximum(dot(row, pushed), 0.0) / np.where(size > 0.0, size, np.inf))


def resistance(vectors: Floats, hardening: Floats) -> tuple[Floats, Floats]:
    """Return what joints that are turned by rotation vectors (3, m) set against it.

    A joint turned by an angle a costs a^2 / 2 + h a^4 / 4, where h is its hardening (m,): the farther it is turned, the
    less it gives, so that those beside it take over.

    Returns:
        The first derivative (3, m) of the cost, and the second (m, 3, 3).
    """
    angle = norm(vectors)
    small = angle < 2e-3
    half = 0.5 * np.where(small, 1.0, angle)
    # Across the axis the cost of an angle grows slower than along it.
    across = np.where(small, 1.0, half / np.tan(half))
    stretch = 1.0 + hardening * angle * angle
    along = np.where(small, 0.0, (1.0 - across) / (4.0 * half * half)) * stretch + 2.0 * hardening
    second = along * vectors[:, None] * vectors[None] + across * stretch * np.eye(3)[:, :, None]
    return vectors * stretch, second.transpose(2, 0, 1)


def _by_joint(rows: Floats, project: Floats) -> Floats:
    """Return rows (r, 3 k) multiplied by the matrices (k, 3, 3) of their joints."""
    blocks = np.ascontiguousarray(rows).reshape(len(rows), -1, 3)
    return times(blocks.transpose(1, 0, 2), project).transpose(1, 0, 2).reshape(len(rows), -1)


def _solved(
    branches: Branches, hessian: Floats, springs: Floats, offset: Floats, right: Floats, stiffer: int
) -> tuple[Floats, int]:
    """Return the step, and how much stiffer joints were made.

    What holds the ends are springs, those of pins nearly rigid. Where forces would let joints turn over by themselves,
    all joints are made stiffer.
    """
    step = None
    while step is None:
        share, least = STIFFER[stiffer]
        matrix = hessian + springs
        if share:
            at = np.arange(len(hessian))[:, None], np.arange(3), branches.own
            own = hessian[at]
            matrix[at] += np.maximum(share * (branches.sums(np.abs(hessian)) - own - np.abs(own) + 1.0), 0.0)
        step = branches.solved(matrix, offset, right, least)
        stiffer += step is None
    return step, stiffer
