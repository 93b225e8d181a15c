"""The side to which a limb bends, as far as a skeleton at rest shows it.

Knees point where the toes point, elbows away from the chest's front, those of front legs too; fingers bend towards
the palm, spines forward. A side is the direction in which the middle of a bent limb moves. Vectors are in the
armature's object space.
"""

from __future__ import annotations

import numpy as np

from ..solve.maths.rotations import unit
from ..solve.problem import Floats
from .end_bones import joints_of
from .figure import Figure
from .limbs import elbow, extremity_of, limb_of, part_of, tops, way_down
from .parts import ARM, LEG, Part, is_front, is_thumb, side_of

CLEAR = 0.3
"""A direction with a smaller part than this across a limb shows no side."""
ALONG = 0.9
"""Cosine of the largest angle between a bone and the segment that it stands for."""
TOGETHER = 0.5
"""Limbs show a common direction if their sum is longer than this fraction of the sum of their lengths."""
FOOT = 0.04
"""A foot reaches farther than this sideways from the line of its leg, in lengths of the leg."""


def can_have_side(figure: Figure, row: list[int]) -> bool:
    """Return whether a chain has joints that bend to one side: arms, legs and fingers do, spines and tails do not.

    A chain of two bones counts as a limb unless names say that it is a neck or spine.
    """
    return (len(row) == 2 and not is_trunk(figure, row)) or elbow(figure, row) is not None or _is_finger(figure, row)


def side_of_row(figure: Figure, row: list[int]) -> Floats | None:
    """Return the side (3,) of a chain by anatomy, root first: a unit vector across it at rest; None if unknown."""
    if _is_finger(figure, row):
        towards = _back_of_hand(figure, row)
    elif is_trunk(figure, row):
        return _back(figure, row)
    elif elbow(figure, row) is None:
        return None
    elif part_of(figure, row[0]) in LEG and not is_front(figure.labels[row[0]]):
        towards = toes_of(figure, row)
        towards = front_of(figure) if towards is None else towards
    else:
        towards = _away_from_chest(figure, row)
    return None if towards is None else _across(_line(figure, row), towards)


def is_trunk(figure: Figure, row: list[int]) -> bool:
    """Return whether the bones of a chain are those of a spine or a neck."""
    parts = {part_of(figure, bone) for bone in row}
    return parts <= {Part.SPINE, Part.NECK, Part.GIRDLE} and not parts <= {Part.GIRDLE}


def toes_of(figure: Figure, leg: list[int]) -> Floats | None:
    """Return the direction (3,) in which the toes of a leg point, across its line; None if it has no foot."""
    foot = extremity_of(figure, leg)
    if foot is None:
        return None
    line = unit(_line(figure, leg))
    size = float(np.linalg.norm(_line(figure, leg)))
    below = [bone for bone in figure.below(foot) if bone != foot]
    # In many imported skeletons only the positions of joints are reliable, not the directions of bones.
    for points in (figure.heads[below], *([figure.tails[[foot, *below]]] if points_down(figure, leg) else [])):
        steps = points - figure.heads[foot]
        steps = steps - np.outer(steps.dot(line), line)
        sizes = np.linalg.norm(steps, axis=1)
        if len(sizes) and sizes.max() > FOOT * size:
            return unit(steps[int(sizes.argmax())])
    return None


def points_down(figure: Figure, row: list[int]) -> bool:
    """Return whether the bones of a chain, root first, point at its joints, so that their directions mean something."""
    steps = np.diff(joints_of(figure, row), axis=0)
    own = figure.tails[row] - figure.heads[row]
    sizes = np.linalg.norm(steps, axis=1) * np.linalg.norm(own, axis=1)
    return bool(((steps * own).sum(axis=1) > ALONG * sizes)[sizes > 0.0].all())


def is_leg(figure: Figure, row: list[int]) -> bool:
    """Return whether a chain, root first, begins with a bone of a leg, or of an arm on which an animal stands."""
    if part_of(figure, row[0]) not in ARM:
        return part_of(figure, row[0]) in LEG
    # The front paws of Rigify's cat are hands with toes.
    end = extremity_of(figure, row)
    return end is not None and any(part_of(figure, bone) is Part.FOOT for bone in figure.below(end))


def front_of(figure: Figure) -> Floats | None:
    """Return the direction (3,) that a figure faces, from its feet, or from its left and right; None if unknown."""
    limbs = [way_down(figure, top) for top in tops(figure)]
    toes = [toes_of(figure, limb) for limb in limbs if part_of(figure, limb[0]) in LEG]
    total = np.sum([direction for direction in toes if direction is not None], axis=0)
    if np.linalg.norm(total) > 0.5:
        return unit(total)
    places = {
        side: [figure.heads[limb[0]] for limb in limbs if side_of(figure.labels[limb[0]]) == side] for side in (1, -1)
    }
    up = up_of(figure)
    if up is None or not (places[1] and places[-1]):
        return None
    left = np.mean(places[1], axis=0) - np.mean(places[-1], axis=0)
    return unit(np.cross(left, up))


def up_of(figure: Figure) -> Floats | None:
    """Return the up direction (3,) of a figure: feet to hips or, without legs, root to arms; None if unknown.

    Some importers make rest poses in which each leg points in a direction of its own, which show nothing.
    """
    limbs = [way_down(figure, top) for top in tops(figure)]
    steps = [-_line(figure, limb) for limb in limbs if part_of(figure, limb[0]) in LEG]
    steps = steps or [figure.heads[limb[0]] - figure.heads[list(figure.up(limb[0]))[-1]] for limb in limbs]
    total = np.sum(steps, axis=0)
    return unit(total) if np.linalg.norm(total) > TOGETHER * np.linalg.norm(steps, axis=-1).sum() else None


def _away_from_chest(figure: Figure, arm: list[int]) -> Floats | None:
    """Return where the elbow of an arm points: backward, or down if the arm itself points to the front."""
    front, up = front_of(figure), up_of(figure)
    if front is None:
        return None
    line = unit(_line(figure, arm))
    return -up if up is not None and abs(float(front.dot(line))) > np.cos(np.radians(30.0)) else -front


def _back(figure: Figure, trunk: list[int]) -> Floats | None:
    """Return where the middle of a spine or neck moves in a forward bend: backward, or up if the trunk lies flat."""
    line, front, up = _line(figure, trunk), front_of(figure), up_of(figure)
    for towards in (None if front is None else -front, up):
        found = None if towards is None else _across(line, towards)
        if found is not None:
            return found
    return None


def _is_finger(figure: Figure, row: list[int]) -> bool:
    return all(part_of(figure, bone) is Part.FINGER for bone in row)


def _back_of_hand(figure: Figure, finger: list[int]) -> Floats | None:
    """Return where the joints of a finger move when it bends towards the palm; None if unknown."""
    hands = [bone for bone in figure.up(finger[0]) if part_of(figure, bone) is Part.HAND]
    limb = limb_of(figure, hands[-1]) if hands else []
    side = side_of(figure.labels[limb[0]]) if limb else 0
    if not side or part_of(figure, limb[0]) not in ARM:
        return None
    roots = [
        bone
        for bone in figure.below(hands[-1])
        if part_of(figure, bone) is Part.FINGER and part_of(figure, figure.parents[bone]) is not Part.FINGER
    ]
    thumbs = [figure.heads[bone] for bone in roots if is_thumb(figure.labels[bone])]
    others = [figure.heads[bone] for bone in roots if not is_thumb(figure.labels[bone])]
    if not thumbs or not others:
        return None
    to_thumb = np.mean(thumbs, axis=0) - np.mean(others, axis=0)
    if is_thumb(figure.labels[finger[0]]):
        return unit(to_thumb)
    return unit(side * np.cross(to_thumb, _line(figure, finger)))


def _line(figure: Figure, row: list[int]) -> Floats:
    points = joints_of(figure, row)
    return np.asarray(points[-1] - points[0])


def _across(line: Floats, towards: Floats) -> Floats | None:
    """Return the part of a unit direction across a line, as a unit vector; None if it is too small."""
    line = unit(line)
    found = towards - towards.dot(line) * line
    return unit(found) if np.linalg.norm(found) > CLEAR else None
