"""To which side a limb bends, as far as a skeleton at rest tells.

Knees go where the toes point, elbows away from the front of the chest, fingers bend towards the palm, spines forward. A
side is the direction to which the middle of a bent limb goes. Vectors are in the armature's object space.
"""

from __future__ import annotations

import numpy as np

from ..solve.problem import Floats
from .figure import Figure
from .limbs import elbow, extremity_of, limb_of, part_of, tops, way_down
from .parts import ARM, LEG, Part, is_thumb, side_of

CLEAR = 0.3
"""A direction of which less than this part is across a limb shows no side of it."""
FOOT = 0.04
"""A foot reaches farther than this beside the line of its leg, in lengths of the leg."""


def can_have_side(figure: Figure, row: list[int]) -> bool:
    """Whether a chain has joints that bend to one side: arms, legs and fingers do, spines and tails do not.

    A chain of two bones may be anything, and is taken for a limb unless names say that it is a neck or spine.
    """
    return (len(row) == 2 and not is_trunk(figure, row)) or elbow(figure, row) is not None or _is_finger(figure, row)


def side_of_row(figure: Figure, row: list[int]) -> Floats | None:
    """The side (3,), a unit vector across the chain at rest, that anatomy gives a chain, root first; None: unknown."""
    if _is_finger(figure, row):
        towards = _back_of_hand(figure, row)
    elif is_trunk(figure, row):
        return _back(figure, row)
    elif elbow(figure, row) is None:
        return None
    elif part_of(figure, row[0]) in LEG:
        towards = toes_of(figure, row)
        towards = front_of(figure) if towards is None else towards
    else:
        towards = _away_from_chest(figure, row)
    return None if towards is None else _across(_line(figure, row), towards)


def is_trunk(figure: Figure, row: list[int]) -> bool:
    """Whether the bones of a chain are those of a spine or a neck."""
    parts = {part_of(figure, bone) for bone in row}
    return parts <= {Part.SPINE, Part.NECK, Part.GIRDLE} and not parts <= {Part.GIRDLE}


def toes_of(figure: Figure, leg: list[int]) -> Floats | None:
    """Where (3,) the toes of a leg point, across its line; None where it has no foot."""
    foot = extremity_of(figure, leg)
    if foot is None:
        return None
    line = _unit(_line(figure, leg))
    size = float(np.linalg.norm(_line(figure, leg)))
    below = [bone for bone in figure.below(foot) if bone != foot]
    # Where bones point is left to chance in many imported skeletons, where joints are is not.
    for points in (figure.heads[below], figure.tails[[foot, *below]]):
        steps = points - figure.heads[foot]
        steps = steps - np.outer(steps.dot(line), line)
        sizes = np.linalg.norm(steps, axis=1)
        if len(sizes) and sizes.max() > FOOT * size:
            return _unit(steps[int(sizes.argmax())])
    return None


def is_leg(figure: Figure, row: list[int]) -> bool:
    """Whether a chain, root first, begins with a bone of a leg."""
    return part_of(figure, row[0]) in LEG


def front_of(figure: Figure) -> Floats | None:
    """Where (3,) a figure faces: where its feet point, or to the left of up from its right; None: not to be seen."""
    limbs = [way_down(figure, top) for top in tops(figure)]
    toes = [toes_of(figure, limb) for limb in limbs if part_of(figure, limb[0]) in LEG]
    total = np.sum([direction for direction in toes if direction is not None], axis=0)
    if np.linalg.norm(total) > 0.5:
        return _unit(total)
    places = {
        side: [figure.heads[limb[0]] for limb in limbs if side_of(figure.names[limb[0]]) == side] for side in (1, -1)
    }
    up = up_of(figure)
    if up is None or not (places[1] and places[-1]):
        return None
    left = np.mean(places[1], axis=0) - np.mean(places[-1], axis=0)
    return _unit(np.cross(left, up))


def up_of(figure: Figure) -> Floats | None:
    """Up (3,) for a figure: from feet to hips; without legs, from hips to arms; None: not to be seen."""
    limbs = [way_down(figure, top) for top in tops(figure)]
    legs = [-_line(figure, limb) for limb in limbs if part_of(figure, limb[0]) in LEG]
    if legs:
        return _unit(np.sum(legs, axis=0))
    arms = [figure.heads[limb[0]] - figure.heads[list(figure.up(limb[0]))[-1]] for limb in limbs]
    return _unit(np.sum(arms, axis=0)) if arms else None


def _away_from_chest(figure: Figure, arm: list[int]) -> Floats | None:
    """Where the elbow of an arm points: backwards, and downwards where the arm itself points to the front."""
    front, up = front_of(figure), up_of(figure)
    if front is None:
        return None
    line = _unit(_line(figure, arm))
    return -up if up is not None and abs(float(front.dot(line))) > np.cos(np.radians(30.0)) else -front


def _back(figure: Figure, trunk: list[int]) -> Floats | None:
    """Where the middle of a spine or neck goes when it bends forward: to the back, which is up where it lies flat."""
    line, front, up = _line(figure, trunk), front_of(figure), up_of(figure)
    for towards in (None if front is None else -front, up):
        found = None if towards is None else _across(line, towards)
        if found is not None:
            return found
    return None


def _is_finger(figure: Figure, row: list[int]) -> bool:
    return all(part_of(figure, bone) is Part.FINGER for bone in row)


def _back_of_hand(figure: Figure, finger: list[int]) -> Floats | None:
    """Where the joints of a finger go when it bends towards the palm."""
    hands = [bone for bone in figure.up(finger[0]) if part_of(figure, bone) is Part.HAND]
    limb = limb_of(figure, hands[-1]) if hands else []
    side = side_of(figure.names[limb[0]]) if limb else 0
    if not side or part_of(figure, limb[0]) not in ARM:
        return None
    roots = [
        bone
        for bone in figure.below(hands[-1])
        if part_of(figure, bone) is Part.FINGER and part_of(figure, figure.parents[bone]) is not Part.FINGER
    ]
    thumbs = [figure.heads[bone] for bone in roots if is_thumb(figure.names[bone])]
    others = [figure.heads[bone] for bone in roots if not is_thumb(figure.names[bone])]
    if not thumbs or not others:
        return None
    to_thumb = np.mean(thumbs, axis=0) - np.mean(others, axis=0)
    if is_thumb(figure.names[finger[0]]):
        return _unit(to_thumb)
    return _unit(side * np.cross(to_thumb, _line(figure, finger)))


def _line(figure: Figure, row: list[int]) -> Floats:
    return np.asarray(figure.tails[row[-1]] - figure.heads[row[0]])


def _across(line: Floats, towards: Floats) -> Floats | None:
    """The part of a unit direction across a line, as a unit vector; None where there is too little of it."""
    line = _unit(line)
    found = towards - towards.dot(line) * line
    return _unit(found) if np.linalg.norm(found) > CLEAR else None


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-300))
