"""The joints of a body that take part in a drag, and where they put pinned and dragged points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..maths.numbers import Quaternion, Vector, plus, rotate
from ..maths.products import applied, back_applied, back_times, times
from ..maths.rotations import inverse, matrices, norm, quaternions
from ..maths.rotations import multiply as multiply_all
from ..problem import Bools, Floats, Ints
from .ends import Ends
from .problem import Body


@dataclass(frozen=True)
class Tree:
    """The m joints that turn, parents first; if the body has a free root it is the first of them.

    A joint turns about the axes of its rest frame: its rest orientation, carried by the joint above.
    """

    bones: Ints
    """(m,) bones of the joints."""
    parents: tuple[int, ...]
    """The joint above each; -1: none."""
    has_root: bool
    rest: list[Quaternion]
    """Rest orientation in the frame of the joint above; in space if there is none."""
    heads: list[Vector]
    """Heads in the frame of the joint above; in space if there is none."""
    turns: Floats
    """(4, m) rotations of the joints in the body's initial pose."""
    ends: list[tuple[int, Vector]]
    """Pinned and dragged points: the joint that carries each, -1 if none moves it, and the point in that joint's
    frame, or in space."""
    places: Ints
    """Ends with a place to keep or reach."""
    orientations: Ints
    """Ends with an orientation to keep or reach."""
    carriers: Ints
    """(ends,) the joint that carries each; -1: none."""
    moved: Floats
    """(places + orientations, m) 1 where a joint moves the end, 0 elsewhere."""
    dragging: Bools
    """(m,) joints that move a dragged end."""

    @classmethod
    def of(cls, body: Body, joints: Sequence[int], ends: Ends) -> Tree:
        """Return the tree whose joints are the bones `joints`, in this order."""
        index = {bone: i for i, bone in enumerate(joints)}
        parents = np.asarray(body.parents).tolist()

        def joint_of(bone: int) -> int:
            while bone >= 0 and bone not in index:
                bone = parents[bone]
            return index[bone] if bone >= 0 else -1

        heads, frames = np.asarray(body.heads, np.float64), np.asarray(body.frames, np.float64)
        above = [joint_of(parents[bone]) for bone in joints]
        has_root = bool(joints) and joints[0] == body.root

        def seen(point: Floats, joint: int) -> Vector:
            if joint < 0:
                x, y, z = point.tolist()
            else:
                x, y, z = back_applied(frames[joints[joint]], point - heads[joints[joint]]).tolist()
            return x, y, z

        rest_frames = np.tile(np.eye(3), (len(joints), 1, 1))
        turns = np.tile(np.eye(3), (len(joints), 1, 1))
        for i, bone in enumerate(joints):
            parent = parents[bone]
            if i == 0 and has_root:
                turns[i] = frames[bone]
                continue
            at_rest = frames[bone]
            if body.rest is not None:
                at_rest = np.asarray(body.rest[bone], np.float64)
                if parent >= 0:
                    at_rest = times(frames[parent], at_rest)
            rest_frames[i] = at_rest if above[i] < 0 else back_times(frames[joints[above[i]]], at_rest)
            turns[i] = back_times(at_rest, frames[bone])
        carried = [(joint_of(bone), point) for bone, point in ends.points]
        wanted = [*ends.places.tolist(), *ends.orientations.tolist()]
        moved = np.zeros((len(wanted), len(joints)))
        for i, end in enumerate(wanted):
            joint = carried[end][0]
            while joint >= 0:
                moved[i, joint] = 1.0
                joint = above[joint]
        rows = quaternions(rest_frames.transpose(1, 2, 0)).T.tolist()
        return cls(
            np.array(joints, dtype=np.int64),
            tuple(above),
            has_root,
            [(w, x, y, z) for w, x, y, z in rows],
            [seen(heads[bone], joint) for bone, joint in zip(joints, above, strict=True)],
            quaternions(turns.transpose(1, 2, 0)),
            [(joint, seen(point, joint)) for joint, point in carried],
            ends.places,
            ends.orientations,
            np.array([joint for joint, _ in carried], np.int64),
            moved,
            np.asarray(moved[ends.dragged].any(axis=0)),
        )

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """All pairs of a joint and one that it carries: the upper joints, and the lower ones."""
        found = []
        for j, parent in enumerate(self.parents):
            while parent >= 0:
                found.append((parent, j))
                parent = self.parents[parent]
        upper, lower = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return upper, lower

    @cached_property
    def order(self) -> list[int]:
        """The order in which joints are swept, each after all joints below it, numbered as in `children`.

        Joints that carry only dragged ends come first: these are the ones that turn over, so a sweep that must fail
        fails early.
        """
        alone = self.dragging.copy()
        for i, parent in reversed(list(enumerate(self.parents))):
            if parent >= 0 and not alone[i]:
                alone[parent] = False
        joints = range(len(self.parents), 0, -1)
        return [*(i for i in joints if alone[i - 1]), *(i for i in joints if not alone[i - 1]), 0]

    @cached_property
    def children(self) -> list[list[int]]:
        """The joints directly below each, last ones first. Number 0 is the root's offset, joint i has number i + 1."""
        found: list[list[int]] = [[] for _ in range(len(self.parents) + 1)]
        for i, parent in reversed(list(enumerate(self.parents, 1))):
            found[parent + 1].append(i)
        return found

    @cached_property
    def wanted(self) -> Ints:
        """(places + orientations,) the ends with a place, then those with an orientation."""
        return np.concatenate([self.places, self.orientations])

    def size(self, posed: Posed) -> float:
        """Return the greatest length of a path along joints to an end, or 1 if there is none."""
        ways = [0.0] * len(self.parents)
        for i, parent in enumerate(self.parents):
            if parent >= 0:
                ways[i] = ways[parent] + float(norm(posed.heads[:, i] - posed.heads[:, parent]))
        longest = 0.0
        for e, (joint, _) in enumerate(self.ends):
            if joint >= 0:
                longest = max(longest, ways[joint] + float(norm(posed.ends[:, e] - posed.heads[:, joint])))
        return longest if longest > 0.0 else 1.0

    def carried(self, body: Body, begin: Posed, posed: Posed) -> tuple[Floats, Floats]:
        """Return the heads (n, 3) and orientations (n, 3, 3) of all bones of a body as its joints carry them.

        Args:
            body: in its initial pose.
            begin: the joints in that pose.
            posed: the joints in the new pose.
        """
        heads, frames = (np.array(part, np.float64) for part in (body.heads, body.frames))
        index = {bone: i for i, bone in enumerate(self.bones.tolist())}
        owner: list[int] = []
        for bone, parent in enumerate(np.asarray(body.parents).tolist()):
            owner.append(index.get(bone, owner[parent] if parent >= 0 else -1))
        taken = np.flatnonzero(np.array(owner) >= 0)
        by = np.array(owner)[taken]
        turned = matrices(multiply_all(posed.frames, inverse(begin.frames))).transpose(2, 0, 1)[by]
        heads[taken] = posed.heads.T[by] + applied(turned, heads[taken] - begin.heads.T[by])
        frames[taken] = times(turned, frames[taken])
        return heads, frames

    def posed(self, turns: Floats, offset: Floats) -> Posed:
        """Return the pose for joint rotations (4, m) and an offset (3,) of the root."""
        rest_frames: list[Quaternion] = []
        frames: list[Quaternion] = []
        points: list[Vector] = []
        for parent, rest, head, turn in zip(self.parents, self.rest, self.heads, turns.T.tolist(), strict=True):
            rest_frame, point = rest, head
            if parent >= 0:
                # The same as `multiply`, `rotate` and `plus`, written out: takes half the time.
                (a, b, c, d), (w, x, y, z), (u, v, t) = frames[parent], rest, head
                p, q, r = c * t - d * v, d * u - b * t, b * v - c * u
                i, j, k = points[parent]
                point = (
                    i + (u + 2.0 * (a * p + (c * r - d * q))),
                    j + (v + 2.0 * (a * q + (d * p - b * r))),
                    k + (t + 2.0 * (a * r + (b * q - c * p))),
                )
                rest_frame = (
                    a * w - b * x - c * y - d * z,
                    a * x + b * w + c * z - d * y,
                    a * y - b * z + c * w + d * x,
                    a * z + b * y - c * x + d * w,
                )
            elif self.has_root:
                x, y, z = offset.tolist()
                point = plus(head, (x, y, z))
            (a, b, c, d), (w, x, y, z) = rest_frame, turn
            rest_frames.append(rest_frame)
            frames.append(
                (
                    a * w - b * x - c * y - d * z,
                    a * x + b * w + c * z - d * y,
                    a * y - b * z + c * w + d * x,
                    a * z + b * y - c * x + d * w,
                )
            )
            points.append(point)
        ends = [point if joint < 0 else plus(points[joint], rotate(frames[joint], point)) for joint, point in self.ends]
        return Posed(np.array(rest_frames).T, np.array(frames).T, np.array(points).T, np.array(ends).T)


@dataclass(frozen=True)
class Posed:
    """The joints and ends of a body in a pose, components first."""

    rest_frames: Floats
    """(4, m) orientations that the joints would have at rest, with the joints above as posed."""
    frames: Floats
    """(4, m) orientations of the joints."""
    heads: Floats
    """(3, m) positions of the joints."""
    ends: Floats
    """(3, ends) positions of the ends."""
