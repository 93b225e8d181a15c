"""Poses a body: what is pinned stays, what is dragged goes to its target, and everything else stays as it can.

The pose has the least cost of all those within limits in which pins hold: joints cost the square of how far they turned
from the body as it was, each by its own weight, and the distance of the dragged point from its target costs what a
force of limited strength would. So a target is reached wherever that strength suffices, and approached smoothly where
it does not. The cost is brought down from the body as it was while the target moves away from where it was dragged, so
the pose depends on the target alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..maths.cones import Cone, cone_of
from ..maths.products import applied, back_applied, back_times, times
from ..maths.rotations import cross, dot, matrices, multiply, norm, quaternions, stacked
from ..problem import Floats, Ints
from .limits import Bounds, JointLimits, coordinate_changes
from .problem import Body, Grab, Pin, PosedBody
from .tree import Posed, Tree

STRENGTH = 6.0
"""Of what drags: a joint of weight 1 turns by as many radians under a lever arm as long as the body."""
STEP = 0.08
"""The target moves away in steps of this part of the body's size."""
PASSES = 28
"""Passes, at most."""
SETTLED = 2e-5
"""In radians: a pass that turns no joint by more ends the search."""
YIELD = 1e-7
"""By how much pins give way to unit forces: what keeps equations solvable that say the same twice."""
FARTHEST = 0.5
"""Radians that a joint turns in a pass, at most."""
SOFTEST = 0.2
"""A joint is never taken to be softer than this, of what it is without forces."""
STIFFER = (0.0, 0.3, 1.0)
"""Shares of what makes sure that no joint turns over."""
ROUNDS = 4
"""Choices, in a pass, of the limits that hold."""


class Poser:
    """A body, its pins and what is grabbed, made ready to be posed for many targets."""

    def __init__(self, body: Body, pins: Sequence[Pin], grabs: Sequence[Grab]) -> None:
        """Take the body as it stands; the targets of `grabs` are not looked at yet.

        Raises:
            ValueError: if shapes do not fit together or a bone is not there.
        """
        self.body = body
        self.heads, self.frames = np.asarray(body.heads, np.float64), np.asarray(body.frames, np.float64)
        inside = _below(body)
        self._read_ends([pin for pin in pins if pin.bone in inside], grabs)
        limited, cones, locked = _limits_of(body)
        joints = self._joints(np.all(locked, axis=0))
        self.tree = Tree.of(body, joints, self._ends, limited)
        of_joint = [i for i, bone in enumerate(joints) if bone in limited and not (self.tree.has_root and i == 0)]
        chosen = np.array([joints[i] for i in of_joint], dtype=np.int64)
        self.limits = JointLimits.of(
            np.array(of_joint, dtype=np.int64),
            Cone(*(part[..., chosen] for part in cones)),
            locked[:, chosen],
            self.tree.turns[:, of_joint],
        )
        begin = self.tree.posed(self.tree.turns, np.zeros(3))
        self._begin = begin
        self.size = self._size(begin)
        self._target_turns = begin.frames  # replaced below for what is asked
        self._root = 1.0 / np.sqrt(self._costs(joints))
        self._back = _inverse(self.tree.turns)
        self._columns = (3 * self.limits.joints[:, None] + np.arange(3)).ravel()

    # ---- set-up

    def _read_ends(self, pins: Sequence[Pin], grabs: Sequence[Grab]) -> None:
        bones = len(self.heads)
        places, orientations, yields, self._ends = [], [], [], []
        turn_yields = []
        for pin in pins:
            _check(pin.bone, bones)
            give = YIELD if np.isinf(pin.weight) else 1.0 / pin.weight
            if pin.location:
                places.append(len(self._ends))
                yields.append(give)
            if pin.rotation:
                orientations.append(len(self._ends))
                turn_yields.append(give)
            self._ends.append((pin.bone, self.heads[pin.bone]))
        self.pinned = len(self._ends)
        self.hard_places = [e for e, y in zip(places, yields, strict=True) if y == YIELD]
        self.hard_turns = [e for e, y in zip(orientations, turn_yields, strict=True) if y == YIELD]
        self._turned_grabs = [i for i, grab in enumerate(grabs) if grab.rotation is not None]
        for i, grab in enumerate(grabs):
            _check(grab.bone, bones)
            places.append(len(self._ends))
            yields.append(0.0)
            if i in self._turned_grabs:
                orientations.append(len(self._ends))
                turn_yields.append(YIELD)
            point = self.heads[grab.bone] if grab.point is None else np.asarray(grab.point, np.float64)
            self._ends.append((grab.bone, point))
        self.places, self.orientations = np.array(places, np.int64), np.array(orientations, np.int64)
        self._yields = np.repeat(np.array([*yields, *turn_yields]), 3)
        self._dragged = np.array([p >= self.pinned for p in places])

    def _joints(self, locked: Floats) -> list[int]:
        """The bones that have a part in it, parents first."""
        body, parents = self.body, np.asarray(self.body.parents).tolist()
        give, inside = body.give, _below(body)
        found = set() if body.root is None else {body.root}
        for bone, _ in self._ends:
            while bone in inside:
                if not locked[bone] and (give is None or give[bone] > 0.0):
                    found.add(bone)
                bone = parents[bone]
        return sorted(found)

    def _size(self, begin: Posed) -> float:
        """The longest way from the first joint to an end."""
        heads = begin.heads
        ways = [0.0] * len(self.tree.parents)
        for i, parent in enumerate(self.tree.parents):
            if parent >= 0:
                ways[i] = ways[parent] + float(norm(heads[:, i] - heads[:, parent]))
        longest = 0.0
        for e, (joint, _) in enumerate(self.tree.ends):
            if joint >= 0:
                longest = max(longest, ways[joint] + float(norm(begin.ends[:, e] - heads[:, joint])))
        return longest if longest > 0.0 else 1.0

    def _costs(self, joints: list[int]) -> Floats:
        """Weights (3 m + 3,) of turning about the axes of each joint, and of moving the root by the body's size."""
        body = self.body
        give = gives_of(body) if body.give is None else np.asarray(body.give, np.float64)
        per_joint = 1.0 / give[joints]
        axes = np.repeat(per_joint, 3)
        if body.stiffness is not None:
            axes = axes / (1.0 - np.asarray(body.stiffness, np.float64)[joints]).ravel()
        costs = np.concatenate([axes, np.full(3, ROOT_MOVES)])
        if self.tree.has_root:
            costs[:3] = ROOT_TURNS
        return costs

    # ---- posing

    def pose(self, targets: Sequence[Floats], rotations: Sequence[Floats] = ()) -> PosedBody:
        """Return the body with its dragged points at `targets`, one (3,) for each grab, or as near as can be.

        Args:
            targets: where the dragged points should go.
            rotations: (3, 3) for each grab that was made with one.
        """
        goals = self._begin.ends.copy()
        goals[:, self.pinned :] = np.array(targets, np.float64).T
        turns = np.array(self._end_turns(self._begin))
        for i, rotation in zip(self._turned_grabs, rotations, strict=True):
            turns[:, self.pinned + i] = quaternions(
                times(np.asarray(rotation, np.float64), self._bone_offset(self.pinned + i))
            )
        state = _State(self.tree.turns.copy(), np.zeros(3))
        far = float(norm(goals - self._begin.ends).max()) / self.size
        steps = max(1, int(np.ceil(far / STEP)))
        steps = min(steps, PASSES // 2)
        forces = np.zeros(len(self._yields))
        passes = 0
        for passes in range(1, PASSES + 1):
            share = min(1.0, passes / steps)
            way = self._begin.ends + share * (goals - self._begin.ends)
            state, forces, moved = self._pass(state, way, turns, forces)
            if share == 1.0 and moved < SETTLED:
                break
        return self._posed(state, goals, turns, passes)

    def _bone_offset(self, end: int) -> Floats:
        bone = self._ends[end][0]
        joint = self.tree.ends[end][0]
        own = matrices(self._begin.frames[:, joint])
        return times(np.ascontiguousarray(self.frames[bone].T), own)

    def _end_turns(self, posed: Posed) -> Floats:
        return np.asarray(posed.frames[:, [joint for joint, _ in self.tree.ends]])

    def _pass(self, state: _State, goals: Floats, turns: Floats, forces: Floats) -> tuple[_State, Floats, float]:
        """Take one step from a state towards goals; return what comes of it, the forces, and the largest turn."""
        tree, limits, k = self.tree, self.limits, len(self.limits.joints)
        posed = tree.posed(state.turns, state.offset)
        rows = tree.jacobian(posed, self.places, self.orientations)
        count = 3 * len(self.places)
        root = self._root
        rows[:count] /= self.size
        rows[:, -3:] *= self.size
        gaps = (goals - posed.ends)[:, self.places] / self.size
        left = _turns_between(posed.frames, [tree.ends[e][0] for e in self.orientations], turns[:, self.orientations])
        residual = np.concatenate([gaps.T.ravel(), left.T.ravel()])
        away = np.concatenate([_vectors(multiply(state.turns, self._back)).T.ravel(), state.offset / self.size])
        yields = self._yields.copy()
        yields[:count] += np.repeat(np.where(self._dragged, norm(gaps), 0.0) / STRENGTH, 3) + YIELD
        scaled = rows * root
        pull = away / root
        bend = self._bend(posed, forces) * root * root[:, None] + _curvature(away)
        columns = self._columns
        if k:
            now = limits.coordinates(state.turns[:, limits.joints])
            changes = coordinate_changes(now) * root[columns].reshape(k, 3).T
            bounds = limits.locks()
        for _ in range(ROUNDS):
            project = fixed = None
            if k:
                project, fixed = _projection(changes, bounds)
            step, forces, pushed = self._step(scaled, bend, pull, residual, yields, project, fixed)
            turn = step * root
            largest = float(np.abs(turn).max())
            if largest > FARTHEST:
                turn *= FARTHEST / largest
            new = _State(_turned(turn[:-3].reshape(-1, 3).T, state.turns), state.offset + turn[-3:] * self.size)
            if not k:
                break
            reached = limits.coordinates(new.turns[:, limits.joints])
            released = _released(changes, bounds, pushed[columns].reshape(k, 3).T)
            before, bounds = bounds, limits.with_limits(released, now, reached)
            if bounds is before:
                break
        if k:
            new.turns[:, limits.joints] = limits.rotation(limits.allowed(reached))
        return new, forces, float(np.abs(turn).max())

    def _step(
        self,
        rows: Floats,
        bend: Floats,
        pull: Floats,
        residual: Floats,
        yields: Floats,
        project: Floats | None,
        fixed: Floats | None,
    ) -> tuple[Floats, Floats, Floats]:
        """Return the step, the forces at the ends, and what pushes joints on against their limits."""
        n, columns = len(pull), self._columns
        whole = np.zeros(n)
        hessian = bend + np.eye(n)
        gradient = pull
        own = rows
        if project is not None and fixed is not None:
            k = len(project)
            whole[columns] = fixed.T.ravel()
            gradient = pull + applied(hessian, whole)
            residual = residual - applied(rows, whole)
            own = rows.copy()
            own[:, columns] = _by_joint(rows[:, columns].reshape(-1, k, 3), project).reshape(-1, 3 * k)
            inner = hessian.copy()
            inner[:, columns] = _by_joint(inner[:, columns].reshape(-1, k, 3), project).reshape(-1, 3 * k)
            inner[columns] = _by_joint(inner[columns].T.reshape(-1, k, 3), project).reshape(-1, 3 * k).T
            for i in range(k):
                at = columns[3 * i : 3 * i + 3]
                inner[at[:, None], at] += np.eye(3) - project[i]
            right = gradient.copy()
            right[columns] = _by_joint(gradient[columns].reshape(1, k, 3), project).ravel()
        else:
            inner, right = hessian, gradient
        step, forces = _solved(inner, own, yields, right, residual)
        pushed = back_applied(rows, forces) - gradient - applied(hessian, step)
        return step + whole, forces, pushed

    def _bend(self, posed: Posed, forces: Floats) -> Floats:
        """How much stiffer or softer forces at the ends make the joints (3 m + 3, 3 m + 3).

        A joint that turns as well turns by how much a joint below it moves an end.
        """
        tree, m = self.tree, len(self.tree.parents)
        out = np.zeros((3 * m + 3, 3 * m + 3))
        if not forces.any():
            return out
        places = 3 * len(self.places)
        pulls, torques = forces[:places].reshape(-1, 3).T, forces[places:].reshape(-1, 3).T
        lever_arms = (posed.ends[:, self.places, None] - posed.heads[:, None, :]) / self.size * tree.moved[self.places]
        along = dot(lever_arms, pulls[:, :, None]).sum(axis=0)
        blocks = -(lever_arms[:, None] * pulls[None, :, :, None]).sum(axis=2)  # component, component, joint
        for axis in range(3):
            blocks[axis, axis] += along
        torque = 0.5 * (torques[:, :, None] * tree.moved[self.orientations]).sum(axis=1)
        for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            blocks[j, i] += torque[k]
            blocks[i, j] -= torque[k]
        axes = matrices(posed.rest_frames).transpose(2, 0, 1)
        own = times(np.ascontiguousarray(blocks.transpose(2, 0, 1)), axes)
        for j in range(m):
            i = j
            while i >= 0:
                block = back_times(axes[i], own[j])
                if i == j:
                    block = 0.5 * (block + block.T)
                out[3 * i : 3 * i + 3, 3 * j : 3 * j + 3] = block
                out[3 * j : 3 * j + 3, 3 * i : 3 * i + 3] = block.T
                i = tree.parents[i]
        return out

    def _posed(self, state: _State, goals: Floats, turns: Floats, passes: int) -> PosedBody:
        tree, body = self.tree, self.body
        posed = tree.posed(state.turns, state.offset)
        count = len(self.heads)
        heads, frames = self.heads.copy(), self.frames.copy()
        turned = multiply(posed.frames, _inverse(self._begin.frames))
        spun = matrices(turned).transpose(2, 0, 1)
        index = {bone: i for i, bone in enumerate(tree.bones.tolist())}
        parents = np.asarray(body.parents).tolist()
        owner = [-1] * count
        for bone in range(count):
            owner[bone] = index.get(bone, owner[parents[bone]] if parents[bone] >= 0 else -1)
        chosen = np.array([bone for bone in range(count) if owner[bone] >= 0], dtype=np.int64)
        if len(chosen):
            own = np.array([owner[bone] for bone in chosen])
            away = self.heads[chosen] - self._begin.heads.T[own]
            heads[chosen] = posed.heads.T[own] + applied(np.ascontiguousarray(spun[own]), away)
            frames[chosen] = times(spun[own], self.frames[chosen])
        gaps = norm(goals - posed.ends)
        pin_turns = norm(_turns_between(posed.frames, [tree.ends[e][0] for e in self.hard_turns], turns[:, self.hard_turns]))
        at_limit = np.zeros(count, dtype=bool)
        return PosedBody(
            heads,
            frames,
            float(gaps[self.pinned :].max(initial=0.0)),
            float(gaps[self.hard_places].max(initial=0.0)),
            float(pin_turns.max(initial=0.0)),
            passes,
            at_limit,
        )


ROOT_TURNS = 6.0
ROOT_MOVES = 8.0


@dataclass(frozen=True)
class _State:
    turns: Floats
    """(4, m)"""
    offset: Floats
    """(3,)"""


def gives_of(body: Body) -> Floats:
    """Return how readily bones (n,) come along: the less of the body they carry, and the longer they are for it."""
    parents = np.asarray(body.parents).tolist()
    heads = np.asarray(body.heads, np.float64)
    carried = np.zeros(len(parents))
    for bone in reversed(range(len(parents))):
        if parents[bone] >= 0:
            carried[parents[bone]] += carried[bone] + float(norm(heads[bone] - heads[parents[bone]]))
    return np.asarray(1.0 / (1.0 + 4.0 * carried / max(float(carried.max()), 1e-30)))


def pose_body(body: Body, pins: Sequence[Pin], grabs: Sequence[Grab]) -> PosedBody:
    """Return the pose of a body in which what is grabbed is at its target, or as near as can be, while pins hold.

    Raises:
        ValueError: if shapes do not fit together or a bone is not there.
    """
    rotations = [grab.rotation for grab in grabs if grab.rotation is not None]
    return Poser(body, pins, grabs).pose([grab.target for grab in grabs], rotations)


def _check(bone: int, bones: int) -> None:
    if not 0 <= bone < bones:
        raise ValueError(f"bone must be the index of one of the {bones} bones, not {bone}")


def _below(body: Body) -> set[int]:
    """The bones that may move: the root and all below it."""
    found: set[int] = set()
    for bone, parent in enumerate(np.asarray(body.parents).tolist()):
        if body.root is None or bone == body.root or parent in found:
            found.add(bone)
    return found


def _limits_of(body: Body) -> tuple[Ints, Cone, Floats]:
    bones = len(body.parents)
    if body.rest is None or body.cones is None or body.twist is None:
        free = np.tile([-np.inf, np.inf], (bones, 1))
        nothing = np.zeros((3, bones), dtype=bool)
        return np.zeros(0, dtype=np.int64), cone_of(np.concatenate([free, free], axis=1), free), nothing
    ranges = np.concatenate([body.cones, body.twist], axis=1).astype(np.float64)
    limited = np.flatnonzero(np.isfinite(ranges).any(axis=1))
    locked = (ranges[:, ::2] == 0.0) & (ranges[:, 1::2] == 0.0)
    return limited, cone_of(ranges[:, :4], ranges[:, 4:]), locked.T


def _projection(changes: Floats, bounds: Bounds) -> tuple[Floats, Floats]:
    """Return projections (k, 3, 3) onto the steps that bounds leave open, and the steps (3, k) that they ask for."""
    k = changes.shape[-1]
    directions = []
    fixed = np.zeros((3, k))
    project = np.tile(np.eye(3)[:, :, None], (1, 1, k))
    for normal, wanted in zip(bounds.normals, bounds.steps, strict=True):
        if not normal.any():
            continue
        row = normal[0] * changes[0] + normal[1] * changes[1] + normal[2] * changes[2]
        size = norm(row)
        rest = row
        for direction in directions:
            rest = rest - dot(rest, direction) * direction
        length = norm(rest)
        clear = length > 1e-6 * np.maximum(size, 1e-200)
        direction = np.where(clear, rest / np.where(clear, length, 1.0), 0.0)
        short = np.where(clear, (wanted - dot(row, fixed)) / np.where(clear, dot(row, direction), 1.0), 0.0)
        fixed = fixed + short * direction
        project -= direction[:, None] * direction[None]
        directions.append(direction)
    return project.transpose(2, 0, 1), fixed


def _released(changes: Floats, bounds: Bounds, free: Floats) -> Bounds:
    """Return bounds without the limits from which joints would turn away by themselves."""
    if not bounds.held.any():
        return bounds
    go = (bounds.normals[:, 0] * dot(changes[0], free), bounds.normals[:, 1] * dot(changes[1], free))
    outward = go[0] + go[1] + bounds.normals[:, 2] * dot(changes[2], free)
    leave = bounds.held & (outward < bounds.steps - 1e-12)
    if not leave.any():
        return bounds
    return Bounds(
        np.where(leave[:, None], 0.0, bounds.normals), np.where(leave, 0.0, bounds.steps), bounds.held & ~leave
    )


def _by_joint(blocks: Floats, project: Floats) -> Floats:
    """Return rows (r, k, 3) of joints multiplied by matrices (k, 3, 3)."""
    return np.asarray(np.einsum("rki,kij->rkj", np.ascontiguousarray(blocks), np.ascontiguousarray(project)))


def _curvature(away: Floats) -> Floats:
    """Return by how much less (3 m + 3, 3 m + 3) joints that are turned far cost about other axes than that of the turn."""
    vectors = away[:-3].reshape(-1, 3)
    out = np.zeros((len(away), len(away)))
    half = 0.5 * np.sqrt((vectors * vectors).sum(axis=1))
    small = half < 1e-3
    safe = np.where(small, 1.0, half)
    less = np.where(small, 0.0, (1.0 - safe / np.tan(safe)) / (4.0 * safe * safe))
    for i, (vector, share, size) in enumerate(zip(vectors, less, half, strict=True)):
        out[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = share * (vector[:, None] * vector - 4.0 * size * size * np.eye(3))
    return out


def _solved(hessian: Floats, rows: Floats, yields: Floats, pull: Floats, residual: Floats) -> tuple[Floats, Floats]:
    """Return the step that brings what is asked of ends at the least cost, and the forces at the ends.

    What ends ask for are springs, those of pins nearly rigid. Joints on which forces act so that they would turn over
    by themselves are made stiffer.
    """
    count = len(hessian)
    stiff = rows.T / yields
    begin = np.empty((count, count + 1))
    begin[:, :count] = times(np.ascontiguousarray(stiff), rows)
    begin[:, count] = applied(stiff, residual) - pull
    at = np.arange(count)
    for share in STIFFER:
        m = begin.copy()
        m[:, :count] += hessian
        if share:
            off = np.abs(hessian).sum(axis=1) - np.abs(hessian[at, at])
            m[at, at] += np.maximum(share * (off - hessian[at, at] + 1.0), 0.0)
        for k in range(count):
            row = m[k, k + 1 :]
            if m[k, k] < SOFTEST:
                break
            m[k + 1 :, k + 1 :] -= (row[:-1] / m[k, k])[:, None] * row
        else:
            break
    step = m[:, count].copy()
    for k in range(count - 1, -1, -1):
        step[k] /= m[k, k]
        step[:k] -= m[:k, k] * step[k]
    return step, (residual - applied(rows, step)) / yields


def _inverse(q: Floats) -> Floats:
    out = -q
    out[0] = q[0]
    return out


def _vectors(q: Floats) -> Floats:
    """Return the rotation vectors (3, ...) of unit quaternions (4, ...), not longer than half a turn."""
    q = np.where(q[0] < 0.0, -q, q)
    size = norm(q[1:])
    small = size < 1e-9
    return np.asarray(q[1:] * np.where(small, 2.0, 2.0 * np.arctan2(size, q[0]) / np.where(small, 1.0, size)))


def _turned(vectors: Floats, turns: Floats) -> Floats:
    """Return rotations (4, m) turned by rotation vectors (3, m)."""
    angle = norm(vectors)
    half = 0.5 * angle
    small = angle < 1e-9
    share = np.where(small, 0.5, np.sin(half) / np.where(small, 1.0, angle))
    out = multiply(stacked(np.cos(half), *(vectors * share)), turns)
    return np.asarray(out / np.sqrt((out * out).sum(axis=0)))


def _turns_between(frames: Floats, joints: Sequence[int], wanted: Floats) -> Floats:
    """Return the rotation vectors (3, e) from the orientations of joints to those that are wanted."""
    return _vectors(multiply(wanted, _inverse(frames[:, list(joints)])))
