"""From the evaluated scene to what the overlay shows: arrays, and a signature that tells whether anything changed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

import bpy
import numpy as np
from numpy.typing import NDArray

from .. import reports
from ..rig import chain as chains
from ..rig import channels
from ..rig.chain import ChainError
from ..rig.limits import FREE, ranges_of
from ..rig.skeleton import matrix_array
from ..settings import chain_of
from ..solve import Status
from ..solve.problem import Floats, Ints
from .geometry import Chains, Joint, State
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


@dataclass(frozen=True)
class _Layout:
    """Which bones the chains of an armature have."""

    tips: tuple[str, ...]
    bones: Ints
    """(J,) the bone at each joint; that of a chain's end is its tip."""
    ends: Ints
    """(C,) index of the end of each chain's tip."""
    lengths: Floats
    """(C,) rest length of each tip."""


@dataclass
class Reader:
    """Reads what the overlay shows; keeps what stays the same between two redraws."""

    _layouts: dict[int, tuple[Hashable, _Layout]] = field(default_factory=dict)

    def read(
        self,
        context: bpy.types.Context,
        space: bpy.types.SpaceView3D,
        tip: bpy.types.PoseBone | None,
        limits: bool,
        reach: bool,
    ) -> tuple[Hashable, list[Rig]]:
        """Read all armatures that are shown in a viewport.

        Args:
            context: for the view layer, which must be evaluated.
            space: the viewport.
            tip: of the active chain.
            limits: read the limits of the active chain.
            reach: read the reach of the active chain.

        Returns:
            A signature, equal where everything that is shown is equal, and the armatures.
        """
        depsgraph = context.view_layer.depsgraph
        rigs, signature = [], []
        if depsgraph is None:
            return (), []
        for ob in context.view_layer.objects:
            if ob.type != "ARMATURE" or ob.mode == "EDIT" or not ob.visible_get(viewport=space):
                continue
            layout = self._layout(ob)
            if not layout.tips:
                continue
            evaluated = ob.evaluated_get(depsgraph)
            active = tip if tip is not None and tip.id_data == ob and tip.name in layout.tips else None
            with np.errstate(all="ignore"):  # a pose may hold anything
                rig = _rig(ob, evaluated, layout, depsgraph, active, limits, reach)
            rigs.append(rig)
            signature.append(_signature(rig))
        return tuple(signature), rigs

    def _layout(self, ob: bpy.types.Object) -> _Layout:
        """Which bones the enabled chains have; found out anew when a chain or the bones change."""
        bones = ob.pose.bones
        tips = [bone for bone in chains.tips(ob) if chain_of(bone).enabled]
        key = (len(bones), tuple((tip.name, chain_of(tip).chain_length, tip.length) for tip in tips))
        known = self._layouts.get(ob.session_uid)
        if known is not None and known[0] == key:
            return known[1]
        index = {bone.name: i for i, bone in enumerate(bones)}
        paths = [[index[bone.name] for bone in chains.chain_bones(tip)] for tip in tips]
        joints = [bone for path in paths for bone in (*path, path[-1])]
        layout = _Layout(
            tips=tuple(tip.name for tip in tips),
            bones=np.array(joints, dtype=np.int64),
            ends=np.cumsum([len(path) + 1 for path in paths], dtype=np.int64) - 1,
            lengths=np.array([tip.bone.length for tip in tips], dtype=np.float64),
        )
        self._layouts[ob.session_uid] = key, layout
        return layout


def _rig(
    ob: bpy.types.Object,
    evaluated: bpy.types.Object,
    layout: _Layout,
    depsgraph: bpy.types.Depsgraph,
    active: bpy.types.PoseBone | None,
    limits: bool,
    reach: bool,
) -> Rig:
    world = matrix_array(evaluated.matrix_world)
    poses = channels.read_pose(evaluated, layout.bones)
    joints = poses[:, :3, 3].copy()
    tips = poses[layout.ends]
    joints[layout.ends] = tips[:, :3, 3] + tips[:, :3, 1] * layout.lengths[:, None]
    placed = joints @ world[:3, :3].T + world[:3, 3]
    settings = [chain_of(ob.pose.bones[tip]) for tip in layout.tips]
    targets = np.array([_place(chain.target, chain.target_bone, depsgraph) for chain in settings])
    poles = np.array([_place(chain.pole, chain.pole_bone, depsgraph) for chain in settings])
    found = [reports.get(ob, tip) for tip in layout.tips]
    starts = np.concatenate([[0], layout.ends[:-1] + 1])
    lengths = np.add.reduceat(_steps(placed, layout.ends), starts)
    gaps = np.linalg.norm(placed[layout.ends] - targets, axis=1)
    stale = gaps > STALE * lengths
    states = [
        _state(report, bool(away) and chain.influence == 1.0)
        for report, chain, away in zip(found, settings, stale, strict=True)
    ]
    stand = np.zeros(len(joints), dtype=bool)
    for start, end, report in zip(starts, layout.ends, found, strict=True):
        if report is not None and report.at_limit:
            names = [ob.pose.bones[int(bone)].name for bone in layout.bones[start:end]]
            stand[start:end] = [name in report.at_limit for name in names]
    shown = Chains(placed, layout.ends, targets, poles, np.array(states, dtype=np.int64), stand)
    if active is None:
        return Rig(world, shown, (), None)
    i = layout.tips.index(active.name)
    own = slice(int(starts[i]), int(layout.ends[i]) + 1)
    size = float(_steps(joints[own], np.array([own.stop - own.start - 1])).sum())
    return Rig(
        world,
        shown,
        tuple(_limits(active, evaluated, found[i])) if limits and chain_of(active).use_limits else (),
        (joints[own.start], size) if reach else None,
    )


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


def _limits(tip: bpy.types.PoseBone, evaluated: bpy.types.Object, report: reports.Report | None) -> Iterator[Joint]:
    for bone in chains.chain_bones(tip):
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
    return bits(rig.world), chains, limits
