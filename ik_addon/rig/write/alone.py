"""Chains on one frame, each alone, in plain floats: from FK channels to solved channels.

numpy takes a microsecond for each call, however little there is to compute, so arrays pay for many frames only. What is
rare on a frame is left to them: trees, end bones, stretch, special inheritance flags, uneven scale, partial influence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from math import frexp, isfinite, ldexp, sqrt
from typing import NamedTuple

import numpy as np
from mathutils import Euler, Matrix

from ...core.channels import FIELDS, rotation_field
from ...core.skeleton import ROUNDING
from ...solve import Goal, Limits, OutOfReach, Problem, Solver, Status
from ...solve.free.chains import Bent, Chain
from ...solve.legs import can_fold
from ...solve.limb.limb import solved_limb
from ...solve.limb.two_bones import KnownLimbs, Member
from ...solve.limited.search import Alone
from ...solve.maths.numbers import ONE
from ...solve.maths.rotations import is_straight, quaternion_of
from ...solve.maths.turns import Frame, applied, back_product, product, transposed
from ...solve.maths.vectors import Vector, minus, norm, plus, times, unit
from ...solve.problem import Aim, Floats, Solved
from ...solve.solver import begin_on_side
from ..plan.groups import ChainPlan, Wave
from ..plan.plan import Plan
from .limb import SINGLE_STEPS, STRAIGHT, UNIFORM, WRITTEN_TOLERANCE

_FARTHEST = 1e50
"""A target farther away than this, in chain lengths, counts as invalid, see `solver.valid_members`."""
_LEAST = 1e-100
"""A chain shorter than this has no length."""
_TINY, _DIGITS = float(np.finfo(np.float32).tiny), 24
"""The least number in single precision, and how many binary digits it has."""
_NOWHERE: Vector = (0.0, 0.0, 0.0)
_UNSCALED = [1.0, 1.0, 1.0]
_AXES: Frame = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
_SCALE = FIELDS["scale"]

Affine = tuple[Vector, Vector, Vector, Vector]
"""The axes X, Y and Z of a bone, and its head."""
Rows = list[list[float]]


class Input(NamedTuple):
    """What a chain is solved from, besides its goal."""

    root: Rows | None
    """(4, 4) pose of the root's parent; None if there is none."""
    channels: Rows
    """(n, 17) in FK."""
    basis: list[Rows]
    """(n, 4, 4) basis matrices of these channels."""
    reach: Vector
    """The end effector in the axes of the tip."""


class Output(NamedTuple):
    """A solved chain."""

    channels: Rows
    """(n, 17)"""
    turns: list[Frame]
    """The rotations of these channels."""
    status: int
    error: float
    """In chain lengths."""
    iterations: int
    at_limit: list[bool]


class Lone(NamedTuple):
    """What stays the same for one chain of a plan."""

    chain: ChainPlan
    parent: int
    """Index in `pose.bones` of the root's parent; -1: none."""
    offsets: list[Affine]
    """The bones at rest, relative to their parents."""
    modes: list[str]
    skew: Frame | None
    """As in `Skeleton.skews`, of the root bone; None: no skew."""
    rests: list[Frame]
    """As in `Skeleton.joint_rests`."""


@dataclass
class LoneWave:
    """The chains of one wave, each with its last solution: mostly only one of several targets moves."""

    wave: Wave
    settings: Problem
    """A problem with the settings of a chain, and its joints in one place."""
    limbs: KnownLimbs | None
    """Solves two bones within limits, and those with a foot; None: not that kind."""
    is_searched: bool
    """Whether a search, of which a first attempt can be had, finds what is not such a limb."""
    lone: list[Lone]
    last: dict[int, tuple[Input, LoneInFK | None]] = field(default_factory=dict)
    """What each chain was solved from last."""

    @classmethod
    def of(cls, plan: Plan, wave: Wave) -> LoneWave | None:
        """Lay out the chains of a wave; return None if they are left to arrays."""
        shape, skeleton = wave.shape, plan.skeleton
        is_usual = shape.is_chain and shape.plain and shape.out_of_reach is not OutOfReach.PUSH_ROOT
        if not is_usual or shape.is_end or shape.planar or "AXIS_ANGLE" in wave.modes:
            return None
        lone = []
        parts = wave.bones.tolist(), wave.modes.tolist(), wave.chains[:, 0].tolist()
        for bones, modes, index in zip(*parts, strict=True):
            skew = skeleton.skews[bones[0]]
            lone.append(
                Lone(
                    plan.chains[index],
                    int(skeleton.parents[bones[0]]),
                    [affine_of(offset) for offset in skeleton.offsets[bones].tolist()],
                    modes,
                    transposed(skew.tolist()) if skew.any() else None,
                    [transposed(rest) for rest in skeleton.joint_rests[bones].tolist()],
                )
            )
        at, limits = np.tile(np.eye(3), (1, len(shape.parents), 1, 1)), None
        if shape.limits is not None:
            angles = np.array(shape.limits)
            limits = Limits(at[0], at[:, 0], angles[:, :4], angles[:, 4:])
        nowhere = np.zeros((1, len(shape.parents) + 1, 3))
        settings = Problem(nowhere, at, Goal(nowhere[:, 0]), limits=limits, **shape.given())
        limbs = KnownLimbs.of(settings) if shape.is_bound and shape.is_limb else None
        is_searched = shape.is_bound and shape.solver is not Solver.FABRIK and len(shape.parents) > 1
        is_searched &= shape.out_of_reach is OutOfReach.EXTEND
        if shape.is_bound and limbs is None and not is_searched:
            return None
        return cls(wave, settings, limbs, is_searched, lone)

    def solve(self, g: int, given: Input, aim: Aim, *, hurried: bool = False) -> tuple[LoneInFK, Output] | None:
        """Solve the chain g for a goal; None: it is left to arrays. `hurried` as in `solve_limbs`."""
        before, posed = self.last.get(g, (None, None))
        if before != given:
            posed = LoneInFK.of(self, self.lone[g], given)
            self.last[g] = given, posed
        found = None if posed is None else posed.solved(aim, hurried=hurried)
        return None if posed is None or found is None else (posed, found)


@dataclass
class LoneInFK:
    """A chain in one FK pose, which is nearly rigid."""

    whole: LoneWave
    lone: Lone
    given: Input
    joints: list[Vector]
    """Without skew, like the frames."""
    frames: list[Frame]
    kept: list[Frame]
    """See `Limbs.kept`."""
    root: Frame
    """Frame of the root's parent."""
    skew: Frame | None
    near: float
    """How near the tip a target counts as on it, see `solving.tips_of`."""
    lengths: list[float]
    """Of the bones, from head to head."""
    bend_side: Vector | None
    folds: list[Vector] | None
    aim: Aim | None = None
    """The last goal."""
    found: Output | None = None
    """Its solution."""

    @classmethod
    def of(cls, whole: LoneWave, lone: Lone, given: Input) -> LoneInFK | None:
        """Pose a chain in FK; None if it is not rigid, or not finite."""
        sizes = [channels[_SCALE] for channels in given.channels]
        if not all(map(_is_uniform, sizes)):
            return None
        above = None if given.root is None else affine_of(given.root)
        root = _AXES
        if above is not None and (lone.skew is not None or whole.settings.limits is not None):
            rigid = rigid_frame(above, UNIFORM)
            if rigid is None:
                return None
            root = rigid
        skew = None if lone.skew is None else product(product(root, lone.skew), transposed(root))
        poses: list[Affine] = []
        frames: list[Frame] = []
        kept: list[Frame] = []
        for i, offset in enumerate(lone.offsets):
            basis = x, y, z, _ = affine_of(given.basis[i])
            local = below(offset, basis)
            above = local if above is None else below(above, local)
            poses.append(above)
            frame = rigid_frame(above if skew is None else _without(skew, above), WRITTEN_TOLERANCE / 2.0)
            if frame is None:
                return None
            turn = (x, y, z) if sizes[i] == _UNSCALED else (unit(x), unit(y), unit(z))
            own = product(turn, transposed(frame))
            kept.append(own if i == 0 else product(own, frames[-1]))
            frames.append(frame)
        x, y, z, place = poses[-1]
        joints = [*(pose[3] for pose in poses), plus(applied((x, y, z), given.reach), place)]
        lengths = [norm(minus(b, a)) for a, b in pairwise(joints)]
        if skew is not None:
            joints = [_straightened(skew, joints[0], joint) for joint in joints]
        farthest = max(map(abs, chain.from_iterable(joints)))
        if not (isfinite(farthest) and sum(lengths) > _LEAST):
            return None
        side = None
        if any(lone.chain.bend_side):
            keeps_bend = lone.chain.bends_both_ways and not is_straight(np.array([joints]), STRAIGHT)[0]
            side = _NOWHERE if keeps_bend else applied(frames[0], lone.chain.bend_side)
        folds = None
        if any(map(any, lone.chain.folds)):
            folds = [applied(frames[max(i - 1, 0)], fold) for i, fold in enumerate(lone.chain.folds)]
        near = SINGLE_STEPS * ldexp(1.0, frexp(max(farthest, _TINY))[1] - _DIGITS)
        return cls(whole, lone, given, joints, frames, kept, root, skew, near, lengths, side, folds)

    def solved(self, aim: Aim, *, hurried: bool = False) -> Output | None:
        """Return the solution for a goal, perhaps the last one; None: it is left to arrays."""
        if self.aim == aim:
            return self.found
        found = self._solved(aim, hurried=hurried)
        is_attempt = hurried and self.whole.is_searched and (found is None or found.iterations > 0)
        if not is_attempt:
            self.aim, self.found = aim, found
        return found

    def _solved(self, aim: Aim, *, hurried: bool) -> Output | None:
        root, farthest = self.joints[0], _FARTHEST * sum(self.lengths)
        for place in (aim.target, aim.pole):
            if place is not None and not _is_near(place, root, farthest):
                return None
        turned = 0.0 if aim.rotation is None else sum(map(sum, aim.rotation))
        if not (isfinite(aim.softness + aim.pole_angle + turned) and aim.push_limit + aim.tolerance >= 0.0):
            return None
        target = aim.target if self.skew is None else _straightened(self.skew, root, aim.target)
        if _is_near(target, self.joints[-1], self.near):
            target = self.joints[-1]
        if target is not aim.target:
            aim = aim._replace(target=target)
        if self.whole.limbs is not None and self._member is not None:
            limb = solved_limb(self.whole.settings, self.whole.limbs, self._member, aim)
            if limb is not None:
                return self._output(aim, limb.frames, limb, limb.at_limit)
        if self.whole.wave.shape.is_bound:
            if not self.whole.is_searched or self._search is None:
                return None
            problem, search, begins_on_side = self._search
            start: Floats | None = None
            if begins_on_side:
                if aim.rotation is not None:
                    return None
                start = np.array(self._without_limits(aim).turns)
            found = search.solved(problem, (aim,), is_first_attempt=hurried, turns=start)
            return self._output(aim, found.frames, found, found.at_limit)
        bent = self._without_limits(aim)
        frames = list(map(back_product, bent.turns, self.frames))  # the rows of a turn are the columns of its inverse
        return self._output(aim, frames, bent, [False] * len(frames))

    def _without_limits(self, aim: Aim) -> Bent:
        """Return the solution of the chain for a place, as if its joints were free."""
        settings, rows = self.whole.settings, list(map(transposed, self.frames))
        free = Chain.of(ONE, self.joints, rows, aim, self.bend_side, self.folds)
        solver = next(solver for solver, suits in free.kinds(settings.solver, True) if suits)
        return free.solved(settings, solver)

    @cached_property
    def _member(self) -> Member | None:
        """The chain as a limb."""
        assert self.whole.limbs is not None
        return self.whole.limbs.read_one(self.joints, self.frames, self.lone.rests, self.root, self.bend_side)

    @cached_property
    def _search(self) -> tuple[Problem, Alone, bool] | None:
        """The chain as a problem, laid out for a search, and whether that begins on its side; None if it may fold."""
        limits = self.whole.settings.limits
        if limits is not None:
            rest: Floats = np.array(self.lone.rests).swapaxes(1, 2)
            limits = replace(limits, rest=rest, root=np.array(self.root).T[None])
        problem = replace(
            self.whole.settings,
            joints=np.array([self.joints]),
            frames=np.array([self.frames]).swapaxes(2, 3),
            limits=limits,
            bend_side=None if self.bend_side is None else np.array([self.bend_side]),
            folds=None if self.folds is None else np.array([self.folds]),
        )
        if can_fold(problem).any():
            return None
        return problem, Alone.of(problem, np.array([0]))[0], bool(begin_on_side(problem).any())

    def _output(self, aim: Aim, frames: list[Frame], ended: Solved | Bent, at_limit: list[bool]) -> Output:
        """Turn solved frames into channels, each nearest to FK."""
        turns = [product(self.kept[0], frames[0])]
        for kept, (above, frame) in zip(self.kept[1:], pairwise(frames), strict=True):
            turns.append(product(kept, back_product(above, frame)))
        rows, lengths = [channels.copy() for channels in self.given.channels], self.lengths
        if set(ended.stretch) != {1.0}:
            for row, (before, stretch) in zip(rows, pairwise([1.0, *ended.stretch]), strict=True):
                row[_SCALE] = [size * (stretch / before) for size in row[_SCALE]]
            lengths = [size * stretch for size, stretch in zip(lengths, ended.stretch, strict=True)]
        for row, turn, mode in zip(rows, turns, self.lone.modes, strict=True):
            columns = FIELDS[rotation_field(mode)]
            row[columns] = _rotation(turn, mode, row[columns])
        error = ended.error / sum(lengths)
        status = Status.REACHED if error <= aim.tolerance else ended.status
        return Output(rows, turns, status, error, ended.iterations, at_limit)

    def poses(self, solved: Output) -> Floats:
        """Return the solved poses (n, 4, 4) of the bones."""
        poses: list[Affine] = []
        above = None if self.given.root is None else affine_of(self.given.root)
        parts = zip(self.lone.offsets, solved.turns, solved.channels, self.given.basis, strict=True)
        for offset, (x, y, z), channels, basis in parts:
            a, b, c = channels[_SCALE]
            local = below(offset, (times(x, a), times(y, b), times(z, c), affine_of(basis)[3]))
            above = local if above is None else below(above, local)
            poses.append(above)
        found = np.zeros((len(poses), 4, 4))
        found[:, :3], found[:, 3, 3] = np.array(poses).swapaxes(1, 2), 1.0
        return found


def _rotation(turn: Frame, mode: str, old: Sequence[float]) -> Sequence[float]:
    """Return a rotation channel, nearest to the old one."""
    (xx, yx, zx), (xy, yy, zy), (xz, yz, zz) = turn
    if mode != "QUATERNION":
        return Matrix(((xx, xy, xz), (yx, yy, yz), (zx, zy, zz))).to_euler(mode, Euler(old, mode))[:]
    w, x, y, z = quaternion_of((xx, xy, xz, yx, yy, yz, zx, zy, zz))
    near = w * old[0] + x * old[1] + y * old[2] + z * old[3]
    return (-w, -x, -y, -z) if near < 0.0 or (near == 0.0 and w < 0.0) else (w, x, y, z)


def affine_of(matrix: Rows) -> Affine:
    """Return an affine matrix (4, 4), given row by row."""
    (ax, bx, cx, x), (ay, by, cy, y), (az, bz, cz, z), _ = matrix
    return (ax, ay, az), (bx, by, bz), (cx, cy, cz), (x, y, z)


def below(above: Affine, local: Affine) -> Affine:
    """Return a pose given relative to another."""
    (ax, ay, az), (bx, by, bz), (cx, cy, cz), (px, py, pz) = above
    (ux, uy, uz), (vx, vy, vz), (wx, wy, wz), (x, y, z) = local
    return (
        (ax * ux + bx * uy + cx * uz, ay * ux + by * uy + cy * uz, az * ux + bz * uy + cz * uz),
        (ax * vx + bx * vy + cx * vz, ay * vx + by * vy + cy * vz, az * vx + bz * vy + cz * vz),
        (ax * wx + bx * wy + cx * wz, ay * wx + by * wy + cy * wz, az * wx + bz * wy + cz * wz),
        (ax * x + bx * y + cx * z + px, ay * x + by * y + cy * z + py, az * x + bz * y + cz * z + pz),
    )


def rigid_frame(pose: Affine, most: float) -> Frame | None:
    """Return the orthonormal frame of a pose as `skeleton.orthonormal` does; None if that strains it by more."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz), _ = pose
    size, width = sqrt(yx * yx + yy * yy + yz * yz), sqrt(xx * xx + xy * xy + xz * xz)
    if not size > 0.0:
        return None
    yx, yy, yz = yx / size, yy / size, yz / size
    along = xx * yx + xy * yy + xz * yz
    xx, xy, xz = xx - along * yx, xy - along * yy, xz - along * yz
    left = sqrt(xx * xx + xy * xy + xz * xz)
    if not left > ROUNDING * width:
        return None
    xx, xy, xz = xx / left, xy / left, xz / left
    ax, ay, az = xy * yz - xz * yy, xz * yx - xx * yz, xx * yy - xy * yx
    one, two, depth = xx * zx + xy * zy + xz * zz, yx * zx + yy * zy + yz * zz, ax * zx + ay * zy + az * zz
    scale = (left + size + depth) / 3.0
    if not scale > 0.0:
        return None
    strain = (left - scale) ** 2 + (size - scale) ** 2 + (depth - scale) ** 2 + along * along + one * one + two * two
    return ((xx, xy, xz), (yx, yy, yz), (ax, ay, az)) if strain <= (most * scale) ** 2 else None


def _is_near(a: Vector, b: Vector, most: float) -> bool:
    """Whether the coordinates of two points differ by no more."""
    return abs(a[0] - b[0]) <= most and abs(a[1] - b[1]) <= most and abs(a[2] - b[2]) <= most


def _is_uniform(size: Sequence[float]) -> bool:
    """Whether a bone is scaled alike along its axes, and not mirrored or flat."""
    x, y, z = size
    return x == y == z > 0.0 or (min(size) > 0.0 and max(size) - min(size) <= UNIFORM * x)


def _without(skew: Frame, pose: Affine) -> Affine:
    """Return a pose with the skew of its axes removed."""
    x, y, z, place = pose
    return minus(x, applied(skew, x)), minus(y, applied(skew, y)), minus(z, applied(skew, z)), place


def _straightened(skew: Frame, head: Vector, point: Vector) -> Vector:
    """Return a point with the skew about a head removed."""
    return minus(point, applied(skew, minus(point, head)))
