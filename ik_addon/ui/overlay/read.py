"""Read what the overlay shows from the evaluated scene, as arrays with a signature that changes when they do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import NamedTuple

import bpy
import numpy as np

from ...core import compat
from ...core.chain_settings import IKAddonChain
from ...core.goals import Goal
from ...core.settings import chain_of, goal_of, object_of
from ...core.skeleton import frame_of, matrix_array, rest_of
from ...core.translation.sentences import UserError
from ...live import reports
from ...rig.plan.chain import end_of, tips, turning_end
from ...rig.plan.chain_plan import has_plane
from ...rig.plan.limits import FREE, ranges_of
from ...solve import Status
from ...solve.maths.rotations import norm, reject
from ...solve.problem import Bools, Floats, Ints
from .layout import Layout, Layouts
from .shown import Active, Bend, Chains, Joint, Plane, Shown, State

STALE = 1e-3
"""A chain reported as solved whose tip is farther from its target than this, in chain lengths, is out of date."""

NOWHERE: tuple[float, ...] = (np.nan,) * 3

STATES = {
    Status.REACHED: State.REACHED,
    Status.LIMITED: State.HELD,
    Status.TOO_FAR: State.OUT_OF_REACH,
    Status.TOO_NEAR: State.OUT_OF_REACH,
    Status.NOT_CONVERGED: State.OUT_OF_REACH,
    Status.INVALID: State.FAILED,
}


@dataclass(frozen=True)
class Wanted:
    """What to read of the active chain."""

    limits: bool = True
    reach: bool = True
    """Read the reach, when it is useful."""
    is_dragging: bool = False
    """The user may be dragging a target."""


@dataclass
class Reader:
    """Reads what the overlay shows; caches layouts until `forget` is called."""

    faults: dict[int, dict[str, Exception]] = field(default_factory=dict)
    """Errors of chains that are not shown because of them, by `session_uid` of the armature object and tip bone."""
    _layouts: dict[int, Layout] = field(default_factory=dict)
    _whole: Layouts | None = None

    def forget(self) -> None:
        """Discard layouts and faults after chains change, or after undo or loading a file changes all data."""
        self._layouts.clear()
        self.faults.clear()
        self._whole = None

    def hide_faulty(
        self, view_layer: bpy.types.ViewLayer, wanted: Wanted, attempt: Callable[[Shown], object]
    ) -> dict[str, Exception]:
        """After an error, try each chain alone, and hide those that raise one.

        Args:
            view_layer: the viewport's view layer, evaluated.
            wanted: what to read of the active chain.
            attempt: does with what is read whatever may have raised the error.

        Returns:
            The errors of chains that are hidden from now on, by the names of their tips; none if it was no chain.
        """
        found = {}
        for ob in view_layer.objects:
            known = self.faults.get(ob.session_uid, {})
            names = [tip.name for tip in tips(ob) if tip.name not in known] if ob.type == "ARMATURE" else []
            for name in names:
                try:
                    alone = Layout.of(ob, {other.name for other in tips(ob)} - {name})
                    if alone.tips:
                        with np.errstate(all="ignore"):
                            attempt(_shown([ob], Layouts.of([alone]), view_layer, wanted))
                except Exception as error:  # whatever it is, the others are to be shown
                    found[name] = self.faults.setdefault(ob.session_uid, {})[name] = error
                    self._layouts.pop(ob.session_uid, None)
        return found

    def why_hidden(self, tip: bpy.types.PoseBone) -> str:
        """Return the error because of which the chain on `tip` is not shown; empty if it is shown."""
        error = self.faults.get(tip.id_data.session_uid, {}).get(tip.name)
        return "" if error is None else f"{type(error).__name__}: {error}"

    def rigs(
        self, view_layer: bpy.types.ViewLayer, space: bpy.types.SpaceView3D | None
    ) -> list[tuple[bpy.types.Object, Layout]]:
        """Return the armatures visible in a viewport, outside Edit Mode, with their layouts."""
        found = []
        for ob in view_layer.objects if view_layer.depsgraph is not None else ():
            if ob.type != "ARMATURE" or ob.pose is None or not ob.visible_get(viewport=space):
                continue
            if ob.mode == "EDIT":
                self._layouts.pop(ob.session_uid, None)
                continue
            found.append((ob, self._layout(ob)))
        return found

    def read(
        self, view_layer: bpy.types.ViewLayer, rigs: Sequence[tuple[bpy.types.Object, Layout]], wanted: Wanted
    ) -> tuple[Hashable, Shown | None]:
        """Read the chains of armatures.

        Args:
            view_layer: the viewport's view layer, evaluated.
            rigs: the armatures in it, as `rigs` returns them.
            wanted: what to read of the active chain.

        Returns:
            A signature, equal if everything shown is equal, and what is shown, or None if there are no chains.
        """
        obs, layouts = [ob for ob, layout in rigs if layout.tips], [layout for _, layout in rigs if layout.tips]
        if not obs:
            return (), None
        if self._whole is None or not self._whole.is_of(layouts):
            self._whole = Layouts.of(layouts)
        with np.errstate(all="ignore"):  # a pose may hold anything
            shown = _shown(obs, self._whole, view_layer, wanted)
        return _signature(shown), shown

    def _layout(self, ob: bpy.types.Object) -> Layout:
        known = self._layouts.get(ob.session_uid)
        if known is None or not known.fits(ob):
            known = self._layouts[ob.session_uid] = Layout.of(ob, self.faults.get(ob.session_uid, {}))
        return known


def _shown(obs: Sequence[bpy.types.Object], whole: Layouts, view_layer: bpy.types.ViewLayer, wanted: Wanted) -> Shown:
    depsgraph = view_layer.depsgraph
    rigs = list(zip(obs, whole.layouts, strict=True))
    active = [_active(ob, layout, view_layer.objects.active) for ob, layout in rigs]
    worlds, joints = _posed(obs, whole, depsgraph)
    found = [tip for rig, at in zip(rigs, active, strict=True) for tip in _tips(*rig, at, depsgraph)]
    chains = Chains(
        _in_world(joints, worlds, whole),
        whole.ends,
        np.array([tip.target for tip in found]),
        np.array([tip.pole for tip in found]),
        np.array([tip.state for tip in found], dtype=np.int64),
        _at_limit(whole, [tip.at_limit for tip in found]),
        np.concatenate([np.arange(len(own.tips)) == at for own, at in zip(whole.layouts, active, strict=True)]),
    )
    _mark_stale(chains, obs, whole)
    actives = []
    first = joint = 0
    for (ob, layout), at, world in zip(rigs, active, worlds, strict=True):
        if at is not None:
            own, state = joints[joint : joint + len(layout.bones)], State(chains.states[first + at])
            evaluated, at_limit = ob.evaluated_get(depsgraph), found[first + at].at_limit
            actives.append(_of_active(ob, evaluated, layout, at, world, own, at_limit, state, wanted))
        first, joint = first + len(layout.tips), joint + len(layout.bones)
    return Shown(chains, tuple(actives))


def _posed(obs: Sequence[bpy.types.Object], whole: Layouts, depsgraph: bpy.types.Depsgraph) -> tuple[Floats, Floats]:
    """Return the armatures' world matrices (rigs, 4, 4), and all chains' joints (J, 3) in their armatures' spaces."""
    worlds = np.empty((len(obs), 4, 4))
    poses = np.empty(16 * whole.starts[-1], dtype=np.float32)
    for i, ob in enumerate(obs):
        evaluated = ob.evaluated_get(depsgraph)
        worlds[i] = matrix_array(evaluated.matrix_world)
        evaluated.pose.bones.foreach_get("matrix", poses[16 * whole.starts[i] : 16 * whole.starts[i + 1]])
    columns = poses.reshape(-1, 4, 4)  # Blender stores columns
    joints = columns[:, 3, :3][whole.bones].astype(np.float64)
    joints[whole.ends] += columns[:, 1, :3][whole.bones[whole.ends]] * whole.lengths[:, None]
    return worlds, joints


def _in_world(joints: Floats, worlds: Floats, whole: Layouts) -> Floats:
    """Return world positions (J, 3) of joints, given the world matrices of their armatures."""
    if len(worlds) == 1:
        return joints @ worlds[0, :3, :3].T + worlds[0, :3, 3]
    turned = worlds[whole.rigs]
    return (turned[:, :3, :3] @ joints[:, :, None])[:, :, 0] + turned[:, :3, 3]


class _Tip(NamedTuple):
    """The tip of a chain, its goals, and how it was solved."""

    target: tuple[float, ...]
    pole: tuple[float, ...]
    state: State
    at_limit: Collection[str]
    """Names of the chain's bones that are at a limit."""


def _tips(ob: bpy.types.Object, layout: Layout, active: int | None, depsgraph: bpy.types.Depsgraph) -> Iterator[_Tip]:
    """Yield the tips of an armature's chains; only the active chain, given by its index, has a pole."""
    bones, is_live = ob.pose.bones, object_of(ob).live
    for i, (name, standing) in enumerate(zip(layout.tips, reports.standing(ob, layout.tips), strict=True)):
        status, at_limit, is_whole = standing
        # Live keeps the tip at a target that it reached, so no line to the target is needed.
        is_there = is_live and is_whole and status is Status.REACHED
        target = NOWHERE if is_there else _place(chain_of(bones[name]), "target", depsgraph)
        pole = _place(chain_of(bones[name]), "pole", depsgraph) if i == active else NOWHERE
        yield _Tip(target, pole, State.UNKNOWN if status is None else STATES[status], at_limit)


def _at_limit(whole: Layouts, stand: Sequence[Collection[str]]) -> Bools:
    """Return which joints (J,) are at a limit, given the names of the bones at a limit for each chain."""
    found = np.zeros(len(whole.bones), dtype=bool)
    if any(stand):
        names = [name for layout in whole.layouts for name in layout.names]
        start = 0
        for end, bones in zip(whole.ends.tolist(), stand, strict=True):
            if bones:
                found[start:end] = [name in bones for name in names[start:end]]
                found[end] = names[end] != names[end - 1] and names[end] in bones
            start = end + 1
    return found


def _mark_stale(found: Chains, obs: Sequence[bpy.types.Object], whole: Layouts) -> None:
    """Mark chains as UNKNOWN that reached their target before, but whose target has moved since."""
    if np.isnan(found.targets).all():
        return
    starts = np.concatenate([[0], found.ends[:-1] + 1])
    lengths = np.add.reduceat(_steps(found.joints, found.ends), starts)
    away = np.linalg.norm(found.joints[found.ends] - found.targets, axis=1) > STALE * lengths
    stale = np.flatnonzero(away & (found.states == State.REACHED))
    if not len(stale):
        return
    bones = [ob.pose.bones[name] for ob, layout in zip(obs, whole.layouts, strict=True) for name in layout.tips]
    for i in stale.tolist():
        if chain_of(bones[i]).influence == 1.0:
            found.states[i] = State.UNKNOWN


def _of_active(
    ob: bpy.types.Object,
    evaluated: bpy.types.Object,
    layout: Layout,
    chain: int,
    world: Floats,
    joints: Floats,
    at_limit: Collection[str],
    state: State,
    wanted: Wanted,
) -> Active:
    """Return what is shown of an active chain, given its index in the layout and all joints of its armature."""
    own = slice(0 if chain == 0 else int(layout.ends[chain - 1]) + 1, int(layout.ends[chain]) + 1)
    root = joints[own.start]
    size = float(np.linalg.norm(np.diff(joints[own], axis=0), axis=1).sum())
    bones = [ob.pose.bones[name] for name in layout.names[own][:-1]]
    settings, turning = chain_of(bones[-1]), turning_end(bones[-1])
    with_limits = bones if turning is None else [*bones, turning]
    flat = None
    if wanted.limits and chain in layout.normals and has_plane(bones):
        parent = bones[0].parent
        frame = np.eye(3) if parent is None else frame_of(evaluated.pose.bones[parent.name])
        flat = Plane(root, frame @ layout.normals[chain], size)
    is_missed = state in (State.OUT_OF_REACH, State.HELD)
    end = end_of(bones[-1])
    frame = frame_of(evaluated.pose.bones[bones[0].name])
    return Active(
        world=world,
        limits=tuple(_limits(with_limits, evaluated, at_limit)) if wanted.limits and settings.use_limits else (),
        state=int(state),
        reach=(root, size) if wanted.reach and (wanted.is_dragging or is_missed) else None,
        bend=_bend(joints[own], frame.dot(np.array(settings.bend_side)), size),
        end=None if end is None else _ends(evaluated.pose.bones[end.name]),
        plane=flat,
    )


def _ends(bone: bpy.types.PoseBone) -> Floats:
    """Return head and tail (2, 3) of an evaluated bone."""
    return np.array([bone.head[:], bone.tail[:]], dtype=np.float64)


def _bend(joints: Floats, side: Floats, size: float) -> Bend | None:
    """Return the bend of a chain with joints (n + 1, 3) to a side (3,); None for one bone or without a stored side."""
    line = joints[-1] - joints[0]
    line = line / norm(line)
    side = reject(side, line)
    length = float(norm(side))
    # The middle joint of a one-bone chain is its tip, which does not bend.
    if len(joints) < 3 or not length > 1e-6:
        return None
    return Bend(joints[len(joints) // 2], side / length, line, size)


def _active(ob: bpy.types.Object, layout: Layout, active: bpy.types.Object | None) -> int | None:
    """Return the index of the chain that contains the active bone, or whose target or pole is active; None if none."""
    if active is None:
        return None
    bone = ob.data.bones.active if active == ob else None
    if active == ob and bone is None:
        return None
    if bone is not None and bone.name in layout.owner:
        return layout.owner[bone.name]
    goal = (active, "" if bone is None else bone.name)
    chains = [chain_of(ob.pose.bones[name]) for name in layout.tips]
    return next((i for i, c in enumerate(chains) if goal in (goal_of(c, "target"), goal_of(c, "pole"))), None)


def _steps(joints: Floats, ends: Ints) -> Floats:
    """Return the distance (J,) from each joint to the next of its chain, 0 at the ends."""
    steps = np.zeros(len(joints))
    steps[:-1] = np.linalg.norm(np.diff(joints, axis=0), axis=1)
    steps[ends] = 0.0
    return steps


def _place(chain: IKAddonChain, role: str, depsgraph: bpy.types.Depsgraph) -> tuple[float, ...]:
    """Return the world position of a target or pole, NaN if there is none."""
    goal, bone = goal_of(chain, role)
    return NOWHERE if goal is None else Goal(goal, bone).world(depsgraph).translation[:]


def _limits(
    bones: Sequence[bpy.types.PoseBone], evaluated: bpy.types.Object, at_limit: Collection[str]
) -> Iterator[Joint]:
    for bone in bones:
        try:
            x, z, y = ranges_of(bone)
        except UserError:
            continue  # the chain's row in the panel shows the error
        if (x, z, y) == (FREE,) * 3 or (x, z, y) == ((0.0, 0.0),) * 3:
            continue
        posed = evaluated.pose.bones[bone.name]
        yield Joint(
            head=np.array(posed.head),
            length=float((posed.tail - posed.head).length),
            rest=rest_of(posed),
            frame=frame_of(posed),
            cone=(*x, *z),
            twist=y,
            at_limit=bone.name in at_limit,
            has_arc=has_arc(bone),
        )


def has_arc(bone: bpy.types.PoseBone) -> bool:
    """Whether Blender itself draws arcs for the limits of a bone, as it does for selected bones in Pose Mode."""
    is_limited = bone.use_ik_limit_x or bone.use_ik_limit_z
    return is_limited and bone.id_data.mode == "POSE" and compat.is_selected(bone)


def _signature(shown: object) -> Hashable:
    """Return a value that is equal for everything that is shown alike."""
    if isinstance(shown, np.ndarray):
        return hash(shown.tobytes())
    if isinstance(shown, tuple):
        return tuple(map(_signature, shown))
    if is_dataclass(shown):
        return tuple(map(_signature, vars(shown).values()))
    return shown
