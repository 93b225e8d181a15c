"""The side to which a limb bends, as far as a skeleton at rest shows it.

Knees point where the toes point, elbows away from the chest's front, those of front legs too; fingers bend towards
the palm, spines forward. A side is the direction in which the middle of a bent limb moves. Vectors are in the
armature's object space.
"""

from collections.abc import Sequence

import numpy as np

from ..solve.maths.rotations import unit
from ..solve.problem import Floats
from .chain_ends import joints_of
from .figure import Figure
from .limbs import elbow, extremity_of, limb_of, part_of, tops, way_down
from .parts import ARM, EXTREMITIES, FRONT, LEG, Part, is_thumb, side_of, stem

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
    elif part_of(figure, row[0]) in LEG and not FRONT.search(stem(figure.labels[row[0]])):
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
    ways = (None if front is None else -front, up)
    return next((side for way in ways if way is not None and (side := _across(line, way)) is not None), None)


def _is_finger(figure: Figure, row: list[int]) -> bool:
    return all(part_of(figure, bone) is Part.FINGER for bone in row)


def _back_of_hand(figure: Figure, finger: list[int]) -> Floats | None:
    """Return where the joints of a finger move when it bends towards the palm; None if unknown."""
    hands = [bone for bone in figure.up(finger[0]) if part_of(figure, bone) is Part.HAND]
    limb = limb_of(figure, hands[-1]) if hands else []
    side = side_of(figure.labels[limb[0]]) if limb else 0
    if not side or part_of(figure, limb[0]) not in ARM:
        return None
    fingers = [bone for bone in figure.below(hands[-1]) if part_of(figure, bone) is Part.FINGER]
    roots = [bone for bone in fingers if figure.parents[bone] not in fingers]
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


# ---- how the joints of a limb of more than two bones fold: stifle and hock to opposite sides, a split thigh not at all
#
# A limb folds to its bend side at its knee or elbow. Bones of the same segment, such as the two bones of a thigh, are
# rigid. Joints beyond the knee, such as the hock of a leg on its toes, fold the way they are bent, and to alternating
# sides where they are straight.

SHOWN = np.radians(2.0)
"""A joint bent by more than this shows to which side it folds."""
FOLDED = np.radians(10.0)
"""A joint bent by more than this at rest does fold, whatever the names of its bones say."""
LEAST = 0.5
"""Smallest share of a joint, as a fraction of the largest one, so that a joint that is straight at rest also folds."""
MOST = 6
"""A longer chain without informative names is a tail, whatever its shape."""


def leading_joint(figure: Figure, row: list[int], at_rest: Floats) -> int | None:
    """Return the joint whose side is the side of the chain: its knee or elbow, or the first of joints that alternate.

    Args:
        figure: the skeleton at rest.
        row: the bones of the chain, root first.
        at_rest: (n, 3) bend of each joint: its axis times its angle, in radians.

    Returns:
        The index of the bone that the joint turns; None where all joints together show the side.
    """
    found = elbow(figure, row)
    if found is not None or not 3 <= len(row) <= MOST or is_trunk(figure, row):
        return found
    # Joints that are clearly bent in one plane, to alternating sides, are those of a leg.
    angles = np.linalg.norm(at_rest[1:], axis=1)
    cosines = (at_rest[1:-1] * at_rest[2:]).sum(axis=1) / np.maximum(angles[:-1] * angles[1:], 1e-300)
    return 1 if angles.min() >= FOLDED and cosines.max() < -np.cos(np.radians(30.0)) else None


def folds_of(figure: Figure, row: list[int], shown: Sequence[Floats]) -> tuple[float, ...]:
    """Return how the joints of a chain fold, root first; empty if they all bend to its side.

    Args:
        figure: the skeleton at rest.
        row: the bones of the chain, root first.
        shown: arrays (n,) of the angles in radians by which joints are bent to the chain's side, the one at rest first,
            then less reliable ones.

    Returns:
        For each bone the share of its joint, the largest being 1: negative away from the side, 0 if rigid or the root.
    """
    bend, angles = elbow(figure, row), shown[0]
    if len(row) < 3:
        return ()
    if bend is None:
        shares = np.tan(angles / 2.0)
        shares[0] = 0.0
        alternate = (np.abs(angles[1:]) > FOLDED).all() and (angles[1:-1] * angles[2:] < 0.0).all()
        return _normal(shares) if alternate and len(row) <= MOST else ()
    limb = limb_of(figure, row[-1])
    begin = row.index(limb[0])
    end = max(row.index(bone) for bone in limb if part_of(figure, bone) not in EXTREMITIES)
    shares = np.zeros(len(row))
    for joint in (*range(bend, len(row)), *range(bend - 1, 0, -1)):
        if abs(angles[joint]) > FOLDED and joint != bend:
            shares[joint] = np.tan(angles[joint] / 2.0)
        elif joint == bend:
            shares[joint] = max(np.tan(angles[joint] / 2.0), 1e-3)
        elif joint > end:
            found = next((own[joint] for own in shown if abs(own[joint]) > SHOWN), 0.0)
            above = next((share for share in shares[:joint][::-1] if share), 1.0)
            shares[joint] = np.tan(found / 2.0) if found else -1e-3 * np.sign(above)
        elif joint <= begin:
            return ()  # a shoulder that is part of the chain, and shows no hinge
    return _normal(shares) if not (shares[1:] > 0.0).all() else ()


def _normal(shares: Floats) -> tuple[float, ...]:
    """Scale shares so that the largest is 1, and raise those that are too small to `LEAST`."""
    sizes = np.abs(shares) / np.abs(shares).max()
    return tuple((np.sign(shares) * np.where(shares == 0.0, 0.0, np.maximum(sizes, LEAST))).tolist())
