"""The points where a foot or hand touches: heel and ball of a foot, root and fingers of a hand."""

from __future__ import annotations

import numpy as np

from ..solve.problem import Floats
from .end_bones import joints_of
from .figure import Figure
from .parts import words
from .sides import front_of, is_leg, points_down, toes_of, up_of

LONGEST = 0.35
"""Tails of the bones of a foot that are farther from its ankle than this, in lengths of the leg, are made up."""
USUAL = 0.14
"""Such a tail is taken to be as far away as the ball of a human foot is."""
BEHIND = 0.25
"""Distance of a heel without a bone behind the ankle, as a fraction of the distance from ankle to ball."""
FORWARD = 0.3
"""A joint farther ahead of the ankle than this, in lengths of the foot, is the ball."""
HEEL = "heel"


def pivots_of(figure: Figure, row: list[int], end: int) -> tuple[Floats, Floats]:
    """Return the points (3,) and (3,) at which the heel and the toe of a limb touch, with its hand or foot at rest.

    Args:
        figure: the skeleton.
        row: the bones of the limb, root first.
        end: its hand or foot.
    """
    ankle, tip = figure.heads[end], figure.tails[end]
    up = up_of(figure)
    if up is None or not is_leg(figure, row):
        return ankle, tip
    below = [bone for bone in figure.below(end) if bone != end]
    # Importers make up the tails of bones without children, some as long as a shin, and all tails in some files.
    leg = float(np.linalg.norm(np.diff(joints_of(figure, row), axis=0), axis=1).sum())
    tails = [end, *below] if points_down(figure, row) or not below else []
    ways = figure.tails[tails] - ankle
    far = np.linalg.norm(ways, axis=1)
    ways *= np.where(far > LONGEST * leg, USUAL * leg / np.maximum(far, 1e-300), 1.0)[:, None]
    points = ankle + np.concatenate([ways, figure.heads[below] - ankle])
    tip = points[0]
    towards = toes_of(figure, row)
    if towards is None:
        towards = front_of(figure)
    towards = tip - ankle if towards is None else towards
    towards = towards - towards.dot(up) * up
    front = towards / max(float(np.linalg.norm(towards)), 1e-300)
    sole = float((points - ankle).dot(up).min())
    length = float((points - ankle).dot(front).max())
    joints = [figure.heads[bone] for bone in figure.children[end]]
    balls = [joint for joint in joints if (joint - ankle).dot(front) > FORWARD * length]
    ball = min(balls, key=lambda joint: float((joint - ankle).dot(front)), default=tip)
    heels = [bone for bone in below if HEEL in words(figure.labels[bone])]
    if heels:
        heel = 0.5 * (figure.heads[heels[0]] + figure.tails[heels[0]])
    else:
        heel = ankle - BEHIND * float((ball - ankle).dot(front)) * front
    heel, ball = (point + (sole - float((point - ankle).dot(up))) * up for point in (heel, ball))
    return heel, ball
