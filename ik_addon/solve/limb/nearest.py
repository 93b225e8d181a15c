"""The pose in which a limb comes nearest to a target at which its hip cannot point.

The upper bone is then on the edge of the hip's cone, and its place on that edge is the one unknown. For each place the
lower bone comes as near to the target as the hip's twist and the knee allow: in closed form, except for the nearest
point of the knee's own edge. The derivative along the edge is known too, so only its zeros have to be found.
"""

from __future__ import annotations

from math import atan2, cos, inf, sin, sqrt
from operator import itemgetter

from ..maths.numbers import Vector, cross, dot, minus, norm, over, plus, times, unit
from .cone_arcs import SLACK, Circle, arcs_inside, nearest_of, wrapped
from .cone_edge import EdgePoint, best_on_edge, nearest_direction, peaks_towards
from .frames import Frame, applied, product, seen
from .pose import Pose, Side, Work, pose_of
from .two_bones import Foot, Limb

EQUAL = 1e-12
"""Cosines and merits that differ by less are the same: then the order decides, and not rounding."""
_ROUNDED = 1e-7
"""A lower bound on a distance is this much less, in lengths of the limb, as the bends of its knee are rounded."""
_UP: Vector = (0.0, 1.0, 0.0)


def best_pose(limb: Limb, target: Vector, side: Side | None, foot: Foot | None) -> Pose | None:
    """Return the pose whose end is at the target, or as near as limits allow.

    Args:
        limb: its bones and limits; must be `is_straightforward`.
        target: position relative to the root.
        side: where the knee should point; None: the limb keeps the roll of its FK pose.
        foot: the child of the lower bone. With a foot, only a pose that reaches the target counts; None if there is
            none.
    """
    work = Work.of(limb, target, foot)
    pose = work.solved(side)
    if pose is not None or foot is not None:
        return pose
    # If the hip can point at the target, the end misses it only along the line to it, by what the knee can't make up.
    along, (first, second) = seen(limb.rest, unit(limb.upper)), limb.lengths

    def lack(way: Vector) -> float:
        return abs(norm(plus(times(along, first), times(way, second))) - norm(target))

    ways = sorted(limb.turning_points, key=lack)
    for way in ways:
        pose = Work.of(limb, target).solved_at(way, side)
        if pose is not None:
            break
    if pose is not None and way == ways[0] and not work.knee_allows:
        return pose
    on_edge = _pose_on_edge(limb, target)
    if pose is None or _missed(limb, on_edge, target) < _missed(limb, pose, target) - SLACK:
        return on_edge
    return pose


def _missed(limb: Limb, pose: Pose, target: Vector) -> float:
    return norm(minus(target, plus(applied(pose.upper, limb.upper), applied(pose.lower, limb.lower))))


def _pose_on_edge(limb: Limb, target: Vector) -> Pose:
    """Return the pose nearest to a target among those with the hip on the edge of its cone."""
    search = EdgeSearch(limb, target)
    merit, point = best_on_edge(limb.hip, search.merit, least=search.least)[0]
    swing, twist, way = search.lower_bone(point)
    # If the lower bone can point straight at the target, only the distance from the knee to the target counts.
    size = norm(search.target)
    for sign in (1.0, -1.0) if size > 0.0 else ():
        for _, other in peaks_towards(times(search.target, sign / size), limb.hip, every=True):
            merit, swing, twist, way = search.straight(other, merit) or (merit, swing, twist, way)
    upper = product(limb.zero, product(swing, _twisted(twist)))
    return pose_of(limb, upper, way, cross(way, (way[1], way[2], way[0])))


class EdgeSearch:
    """The search along the edge of a limb's hip cone for the pose nearest to a target."""

    def __init__(self, limb: Limb, target: Vector) -> None:
        """Prepare the search for a target relative to the root."""
        self.limb, self.target = limb, seen(limb.zero, target)
        self.first, self.second = limb.lengths
        self.rest = tuple(seen(limb.rest, axis) for axis in ((1.0, 0.0, 0.0), _UP, (0.0, 0.0, 1.0)))
        fk = seen(limb.upper_fk, applied(limb.lower_fk, limb.lower))
        self.side = atan2(fk[0], fk[2])
        self.bends = (*limb.bends[0], 1.0), (*limb.bends[1], -1.0)

    def merit(self, point: EdgePoint) -> tuple[float, float]:
        """Return the merit of an edge point, minus half the squared distance, and its derivative along the edge."""
        swing, twist, way = self.lower_bone(point)
        lower = times(applied(_twisted(twist), applied(self.limb.rest, way)), self.second)
        end = applied(swing, plus((0.0, self.first, 0.0), lower))
        missed = minus(self.target, end)
        return -0.5 * dot(missed, missed), dot(missed, cross(point.speed, end))

    def least(self, point: EdgePoint) -> float:
        """Return a lower bound on the distance from the end to the target: that of a hip which may twist freely.

        Target, upper and lower bone are then in one plane, in which the knee bends between its least and greatest bend.
        """
        along, across = dot(point.direction, self.target) - self.first, norm(cross(point.direction, self.target))
        for cosine, sine, sign in self.bends:
            if sign * (along * sine - across * cosine) > 0.0:
                along, across = along - self.second * cosine, across - self.second * sine
                return sqrt(along * along + across * across) - _ROUNDED
        return abs(sqrt(along * along + across * across) - self.second)

    def lower_bone(self, point: EdgePoint) -> tuple[Frame, float, Vector]:
        """Return the hip's swing, its twist, and the direction of the lower bone in the axes of the knee at rest."""
        swing, wanted, _ = self._wanted(point)
        return swing, *self._pointed(wanted)

    def straight(self, point: EdgePoint, least: float) -> tuple[float, Frame, float, Vector] | None:
        """Return the merit and the result of `lower_bone` for a lower bone that points straight at the target.

        Return None if the lower bone can't point there, or the merit is not clearly greater than `least`.
        """
        swing, wanted, distance = self._wanted(point)
        merit = -0.5 * (distance - self.second) ** 2
        if merit <= least + EQUAL:
            return None
        hip = self.limb.hip
        across, azimuth = sqrt(wanted[0] * wanted[0] + wanted[2] * wanted[2]), atan2(wanted[0], wanted[2])
        x, y, z = self.rest
        circle = Circle(times(y, wanted[1]), times(z, across), times(x, across))
        arcs = [(a - self.side, b - self.side) for a, b in arcs_inside(circle, self.limb.knee)]
        turn = nearest_of(arcs, azimuth - self.side, hip.twist_low, hip.twist_high)
        if turn is None:
            return None
        twist = min(max(wrapped(azimuth - turn - self.side), hip.twist_low), hip.twist_high)
        return merit, swing, twist, circle.at(turn + self.side)

    def _wanted(self, point: EdgePoint) -> tuple[Frame, Vector, float]:
        """Return the hip's swing, and in its axes the direction and distance from the knee to the target."""
        swing = _swung(point)
        offset = minus(seen(swing, self.target), (0.0, self.first, 0.0))
        size = norm(offset)
        return swing, over(offset, size) if size > 1e-12 else _UP, size

    def _pointed(self, wanted: Vector) -> tuple[float, Vector]:
        """Return the hip's twist and the lower bone's direction, in the knee's axes, nearest to a wanted direction."""
        limb = self.limb
        low, high = limb.hip.twist_low, limb.hip.twist_high
        if low == high:
            return low, self._nearest_way(low, wanted)
        found: list[tuple[float, float, Vector]] = []
        azimuth = atan2(wanted[0], wanted[2])
        for way in limb.turning_points:
            lower = applied(limb.rest, way)
            twist = wrapped(azimuth - atan2(lower[0], lower[2]))
            if low <= twist <= high:
                found.append((dot(applied(_twisted(twist), lower), wanted), twist, way))
        # Also try both ends of the twist's range; a hip that twists freely has none.
        for twist in (low, high) if low != -inf else ():
            way = self._nearest_way(twist, wanted)
            found.append((dot(applied(_twisted(twist), applied(limb.rest, way)), wanted), twist, way))
        best = max(found, key=itemgetter(0))[0]
        return next(known[1:] for known in found if known[0] > best - EQUAL)

    def _nearest_way(self, twist: float, wanted: Vector) -> Vector:
        """Return the direction of the lower bone that is nearest to `wanted` for a given twist of the hip."""
        return nearest_direction(seen(self.limb.rest, seen(_twisted(twist), wanted)), self.limb.knee)


def _twisted(twist: float) -> Frame:
    c, s = cos(twist), sin(twist)
    return (c, 0.0, -s), _UP, (s, 0.0, c)


def _swung(point: EdgePoint) -> Frame:
    x, z = point.x, point.z
    w = sqrt(max(1.0 - x * x - z * z, 0.0))
    xx, zz, xz, wx, wz = 2.0 * x * x, 2.0 * z * z, 2.0 * x * z, 2.0 * w * x, 2.0 * w * z
    return (1.0 - zz, wz, xz), (-wz, 1.0 - xx - zz, wx), (xz, -wx, 1.0 - xx)
