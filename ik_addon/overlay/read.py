"""From the evaluated scene to what the overlay shows: arrays, and a signature that tells whether anything changed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import bpy
import numpy as np
from numpy.typing import NDArray

from .. import reports
from ..rig import chain as chains
from ..rig import channels
from ..rig.chain import ChainError
from ..rig.limits import FREE, ranges_of
from ..rig.plan import has_plane
from ..rig.skeleton import Skeleton, matrix_array
from ..settings import chain_of
from ..solve import Status
from ..solve.problem import Floats, Ints
from .geometry import Chains, Joint, Plane, State
from .joints import frame_of, rest_of

STALE = 1e-3
"""A tip that is farther from its target than this, in chain lengths, is not where a report of success left it."""

STATES = {
    Status.REACHED: State.REACHED,
    Status.LIMITED: State.HELD,
    Status.TOO_FAR: State.OUT_OF_REACH,
    Status.TOO_NEAR: State.OUT_OF_REACH,
    Status.NOT_CONVERGED: State.OUT_OF_REACH,
    Status.INVALID: State.FAILED,
}


@dataclass(frozen=True)
class Rig:
    """One armature as the overlay shows it."""

    world: Floats
    """(4, 4)"""
    chains: Chains
    limits: tuple[Joint, ...]
    """The bones with limits of the active chain, in armature space."""
    reach: tuple[Floats, float] | None
    """Root (3,) and length of the active chain, in armature space."""
    plane: Plane | None
    """In which the active chain stays, in armature space."""


@dataclass(frozen=True)
class _Layout:
    """Which bones the enabled chains of an armature have."""

    count: int
    """How many bones the armature has."""
    tips: tuple[tuple[int, str], ...]
    """Index and name of each tip."""
    owner: dict[str, int]
    """Index of the chain that each bone belongs to."""
    bones: Ints
    """(J,) the bone at each joint; that of a chain's end is its tip."""
    names: tuple[str, ...]
    """Names of these bones."""
    ends: Ints
    """(C,) index of the end of each chain's tip."""
    lengths: Floats
    """(C,) rest length of each tip."""
    normals: dict[int, Floats]
    """Normal (3,) at rest of each chain that is planar and shares no bones, by its index."""

    @classmethod
    def of(cls, ob: bpy.types.Object) -> _Layout:
        """Read it from an armature object."""
        index = {bone.name: i for i, bone in enumerate(ob.pose.bones)}
        tips = [bone for bone in chains.tips(ob) if chain_of(bone).enabled]
        paths = [[bone.name for bone in chains.chain_bones(tip)] for tip in tips]
        names = tuple(name for path in paths for name in (*path, path[-1]))
        flat = [
            i
            for i, (tip, path) in enumerate(zip(tips, paths, strict=True))
            if chain_of(tip).planar
            and not any(other is not path and not set(path).isdisjoint(other) for other in paths)
        ]
        skeleton = Skeleton.of(ob) if flat else None
        through = {name: i for i, path in reversed([*enumerate(paths)]) for name in path}
        return cls(
            count=len(index),
            tips=tuple((index[tip.name], tip.name) for tip in tips),
            owner=through | {tip.name: i for i, tip in enumerate(tips)},
            bones=np.array([index[name] for name in names], dtype=np.int64),
            names=names,
            ends=np.cumsum([len(path) + 1 for path in paths], dtype=np.int64) - 1,
            lengths=np.array([tip.bone.length for tip in tips], dtype=np.float64),
            normals={i: skeleton.normal_at_rest([index[name] for name in paths[i]]) for i in flat},
        )

    def fits(self, ob: bpy.types.Object) -> bool:
        """Whether the armature still has these tips; that no chain changed must be known otherwise."""
        bones = ob.pose.bones
        return len(bones) == self.count and all(bones[i].name == name for i, name in self.tips)


@dataclass
class Reader:
    """Reads what the overlay shows; keeps what stays the same until a chain is changed, see `forget`."""

    _layouts: dict[int, _Layout] = field(default_factory=dict)

    def forget(self) -> None:
        """Chains were changed, or all data by undo or by loading a file."""
        self._layouts.clear()

    def read(
        self, view_layer: bpy.types.ViewLayer, space: bpy.types.SpaceView3D | None, limits: bool, reach: bool
    ) -> tuple[Hashable, list[Rig]]:
        """Read all armatures that are shown in a viewport.

        Args:
            view_layer: what the viewport shows, evaluated.
            space: the viewport.
            limits: read the limits of the active chain.
            reach: read the reach of the active chain.

        Returns:
            A signature, equal where everything that is shown is equal, and the armatures.
        """
        depsgraph = view_layer.depsgraph
        rigs, signature = [], []
        if depsgraph is None:
            return (), []
        for ob in view_layer.objects:
            if ob.type != "ARMATURE" or not ob.visible_get(viewport=space):
                continue
            if ob.mode == "EDIT":
                self._layouts.pop(ob.session_uid, None)
                continue
            layout = self._layout(ob)
            if not layout.tips:
                continue
            with np.errstate(all="ignore"):  # a pose may hold anything
                rig = _rig(ob, layout, depsgraph, view_layer.objects.active, limits, reach)
            rigs.append(rig)
            signature.append(_signature(rig))
        return tuple(signature), rigs

    def _layout(self, ob: bpy.types.Object) -> _Layout:
        known = self._layouts.get(ob.session_uid)
        if known is None or not known.fits(ob):
            known = self._layouts[ob.session_uid] = _Layout.of(ob)
        return known


def _rig(
    ob: bpy.types.Object,
    layout: _Layout,
    depsgraph: bpy.types.Depsgraph,
    active: bpy.types.Object | None,
    limits: bool,
    reach: bool,
) -> Rig:
    evaluated = ob.evaluated_get(depsgraph)
    world = matrix_array(evaluated.matrix_world)
    poses = channels.read_pose(evaluated, layout.bones)
    joints = poses[:, :3, 3].copy()
    tips = poses[layout.ends]
    joints[layout.ends] = tips[:, :3, 3] + tips[:, :3, 1] * layout.lengths[:, None]
    placed = joints @ world[:3, :3].T + world[:3, 3]
    settings = [chain_of(ob.pose.bones[i]) for i, _ in layout.tips]
    goals = [(chain.target, chain.pole) for chain in settings]
    targets, poles = (
        np.array([_place(pair[k], bone, depsgraph) for pair, bone in zip(goals, bones, strict=True)])
        for k, bones in enumerate(zip(*((chain.target_bone, chain.pole_bone) for chain in settings), strict=True))
    )
    found = [reports.get(ob, name) for _, name in layout.tips]
    starts = np.concatenate([[0], layout.ends[:-1] + 1])
    lengths = np.add.reduceat(_steps(placed, layout.ends), starts)
    stale = np.linalg.norm(placed[layout.ends] - targets, axis=1) > STALE * lengths
    states = [
        _state(report, bool(away) and chain.influence == 1.0)
        for report, chain, away in zip(found, settings, stale, strict=True)
    ]
    stand = np.zeros(len(joints), dtype=bool)
    for start, end, report in zip(starts, layout.ends, found, strict=True):
        if report is not None and report.at_limit:
            stand[start:end] = [name in report.at_limit for name in layout.names[start:end]]
    shown = Chains(placed, layout.ends, targets, poles, np.array(states, dtype=np.int64), stand)
    i = _active(ob, layout, goals, active)
    if i is None:
        return Rig(world, shown, (), None, None)
    own = slice(int(starts[i]), int(layout.ends[i]) + 1)
    size = float(_steps(joints[own], np.array([own.stop - own.start - 1])).sum())
    bones = [ob.pose.bones[int(bone)] for bone in layout.bones[own][:-1]]
    flat = None
    if limits and i in layout.normals and has_plane(bones):
        parent = bones[0].parent
        frame = np.eye(3) if parent is None else frame_of(evaluated.pose.bones[parent.name])
        flat = Plane(joints[own.start], frame @ layout.normals[i], size)
    return Rig(
        world,
        shown,
        tuple(_limits(bones, evaluated, found[i])) if limits and settings[i].use_limits else (),
        (joints[own.start], size) if reach else None,
        flat,
    )


def _active(
    ob: bpy.types.Object,
    layout: _Layout,
    goals: Sequence[tuple[bpy.types.Object | None, bpy.types.Object | None]],
    active: bpy.types.Object | None,
) -> int | None:
    """Index of the chain that the active bone belongs to, or that follows the active object."""
    if active is None:
        return None
    if active != ob:
        return next((i for i, pair in enumerate(goals) if active in pair), None)
    bone = ob.data.bones.active
    return None if bone is None else layout.owner.get(bone.name)


def _steps(joints: Floats, ends: Ints) -> Floats:
    """Distance (J,) of each joint to the next of its chain, 0 at the ends."""
    steps = np.zeros(len(joints))
    steps[:-1] = np.linalg.norm(np.diff(joints, axis=0), axis=1)
    steps[ends] = 0.0
    return steps


def _state(report: reports.Report | None, away: bool) -> State:
    if report is None:
        return State.UNKNOWN
    if report.failed:
        return State.FAILED
    return State.UNKNOWN if report.reached and away else STATES[report.status]


def _place(goal: bpy.types.Object | None, bone: str, depsgraph: bpy.types.Depsgraph) -> tuple[float, ...]:
    """World position of a target or pole; not a number where there is none."""
    if goal is None:
        return (np.nan,) * 3
    evaluated = goal.evaluated_get(depsgraph)
    pose_bone = evaluated.pose.bones.get(bone) if bone and evaluated.type == "ARMATURE" else None
    if pose_bone is None:
        return evaluated.matrix_world.translation.to_tuple()
    return (evaluated.matrix_world @ pose_bone.head).to_tuple()


def _limits(
    bones: Sequence[bpy.types.PoseBone], evaluated: bpy.types.Object, report: reports.Report | None
) -> Iterator[Joint]:
    for bone in bones:
        try:
            x, z, y = ranges_of(bone)
        except ChainError:
            continue  # the chain's row says what is wrong with it
        if (x, z, y) == (FREE,) * 3 or (x, z, y) == ((0.0, 0.0),) * 3:
            continue
        stands = evaluated.pose.bones[bone.name]
        yield Joint(
            head=np.array(stands.head),
            length=float((stands.tail - stands.head).length),
            rest=rest_of(stands),
            frame=frame_of(stands),
            cone=(*x, *z),
            twist=y,
            at_limit=report is not None and bone.name in report.at_limit,
        )


def _signature(rig: Rig) -> Hashable:
    def bits(array: NDArray[np.generic]) -> int:
        return hash(array.tobytes())

    chains = tuple(bits(array) for array in vars(rig.chains).values())
    limits = tuple(
        tuple(bits(value) if isinstance(value, np.ndarray) else value for value in vars(joint).values())
        for joint in rig.limits
    )
    plane = () if rig.plane is None else (bits(rig.plane.centre), bits(rig.plane.normal), rig.plane.radius)
    return bits(rig.world), chains, limits, plane
