"""Read what the overlay shows from the evaluated scene, as arrays with a signature that changes when they do."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from bpy.types import Context, Depsgraph, Object, PoseBone, SpaceView3D, ViewLayer

from ...core import channels, compat
from ...core.chain_settings import IKAddonChain
from ...core.falloff import weights
from ...core.goals import Goal
from ...core.settings import chain_of, goal_of, object_of
from ...core.skeleton import Skeleton, frame_of, inverse, matrix_array, moved, rest_of
from ...core.translation.sentences import UserError
from ...live import reports
from ...posing.pins import stored_pins
from ...rig.plan.chain import chain_bones, end_of, tips, turning_end
from ...rig.plan.limits import FREE, has_plane, ranges_of
from ...solve import Status
from ...solve.maths.products import times
from ...solve.maths.rotations import norm, reject
from ...solve.problem import Bools, Floats, Ints
from ...targets.cursor import Held
from ...targets.snap import Sampler
from .geometry import DIAMOND, RING, Active, Chains, Joint, Plane, Shown, State, arrow


class Layout(NamedTuple):
    """The bones of an armature's C enabled chains, with J joints in all."""

    size: int
    """Number of bones in the armature."""
    tips: tuple[str, ...]
    """Names of the tip bones."""
    owner: dict[str, int]
    """Index of the chain that a bone belongs to, by the bone's name."""
    bones: Ints
    """(J,) the bone at each joint; at the end of a chain its end bone, or its tip bone if it has none."""
    names: tuple[str, ...]
    """Names of these bones."""
    ends: Ints
    """(C,) index of each chain's end effector among the joints."""
    lengths: Floats
    """(C,) distance of the end effector from the head of the bone there, along its Y axis."""
    normals: dict[int, Floats]
    """Rest-pose normal (3,) of each planar chain that shares no bones, by the chain's index."""
    pins: dict[str, frozenset[str]]
    """Flags of pinned bones (`LOCATION`, `ROTATION`), by name."""

    @classmethod
    def of(cls, ob: Object, without: Collection[str] = ()) -> Layout:
        """Read the layout of an armature object, without the chains on some tip bones."""
        index = {bone.name: i for i, bone in enumerate(ob.pose.bones)}
        own = [tip for tip in tips(ob) if chain_of(tip).enabled and tip.name not in without]
        paths = [[bone.name for bone in chain_bones(tip)] for tip in own]
        at_ends = [end_of(tip) or tip for tip in own]
        names = tuple(name for path, end in zip(paths, at_ends, strict=True) for name in (*path, end.name))
        uses = Counter(itertools.chain.from_iterable(paths))
        flat = [i for i, path in enumerate(paths) if chain_of(own[i]).planar and all(uses[name] == 1 for name in path)]
        skeleton = Skeleton.of(ob) if flat else None
        through = {end.name: i for i, end in reversed([*enumerate(at_ends)])}
        through |= {name: i for i, path in reversed([*enumerate(paths)]) for name in path}
        return cls(
            size=len(index),
            tips=tuple(tip.name for tip in own),
            owner=through | {tip.name: i for i, tip in enumerate(own)},
            bones=np.array([index[name] for name in names], dtype=np.int64),
            names=names,
            ends=np.cumsum([len(path) + 1 for path in paths], dtype=np.int64) - 1,
            lengths=np.array([b.bone.length if b == tip else 0.0 for tip, b in zip(own, at_ends, strict=True)], float),
            pins=stored_pins(ob),
            normals={i: skeleton.normal_at_rest([index[name] for name in paths[i]]) for i in flat},
        )

    def joints_of(self, chain: int) -> slice:
        """Return where the joints of a chain are, given its index."""
        return slice(0 if chain == 0 else int(self.ends[chain - 1]) + 1, int(self.ends[chain]) + 1)

    def fits(self, ob: Object) -> bool:
        """Whether the armature still has these bones; changes of chains must be tracked by the caller."""
        bones = ob.pose.bones
        # Look bones up by name: by index, Blender walks the list.
        return len(bones) == self.size and all(name in bones for name in {*self.names, *self.tips, *self.pins})


STALE = 1e-3
"""A chain reported as solved whose tip is farther from its target than this, in chain lengths, is out of date."""

Place = tuple[float, ...]
NOWHERE: Place = (np.nan,) * 3

STATES = dict.fromkeys(Status, State.OUT_OF_REACH) | {
    Status.REACHED: State.REACHED,
    Status.LIMITED: State.HELD,
    Status.INVALID: State.FAILED,
}


class Wanted(NamedTuple):
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

    def forget(self) -> None:
        """Discard layouts and faults after chains change, or after undo or loading a file changes all data."""
        self._layouts.clear()
        self.faults.clear()

    def hide_faulty(
        self, view_layer: ViewLayer, wanted: Wanted, attempt: Callable[[Shown], object]
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
            for name in [tip.name for tip in tips(ob) if tip.name not in known] if ob.type == "ARMATURE" else ():
                try:
                    alone = Layout.of(ob, {other.name for other in tips(ob)} - {name})
                    if alone.tips:
                        attempt(_shown([(ob, alone)], view_layer, wanted))
                except Exception as error:  # whatever it is, the others are to be shown
                    found[name] = self.faults.setdefault(ob.session_uid, {})[name] = error
                    self._layouts.pop(ob.session_uid, None)
        return found

    def why_hidden(self, tip: PoseBone) -> str:
        """Return the error because of which the chain on `tip` is not shown; empty if it is shown."""
        error = self.faults.get(tip.id_data.session_uid, {}).get(tip.name)
        return "" if error is None else f"{type(error).__name__}: {error}"

    def rigs(self, view_layer: ViewLayer, space: SpaceView3D | None) -> list[tuple[Object, Layout]]:
        """Return the armatures visible in a viewport, outside Edit Mode, with their layouts."""
        found = []
        for ob in view_layer.objects if view_layer.depsgraph is not None else ():
            if ob.type != "ARMATURE" or ob.pose is None or not ob.visible_get(viewport=space):
                continue
            if ob.mode == "EDIT":
                self._layouts.pop(ob.session_uid, None)
                continue
            layout = self._layouts.get(ob.session_uid)
            if layout is None or not layout.fits(ob):
                layout = self._layouts[ob.session_uid] = Layout.of(ob, self.faults.get(ob.session_uid, {}))
            found.append((ob, layout))
        return found

    def read(
        self, view_layer: ViewLayer, rigs: Sequence[tuple[Object, Layout]], wanted: Wanted
    ) -> tuple[Hashable, Shown | None]:
        """Read the chains of armatures.

        Args:
            view_layer: the viewport's view layer, evaluated.
            rigs: the armatures in it, as `rigs` returns them.
            wanted: what to read of the active chain.

        Returns:
            A signature, equal if everything shown is equal, and what is shown, or None if there are no chains.
        """
        rigs = [(ob, layout) for ob, layout in rigs if layout.tips]
        if not rigs:
            return (), None
        shown = _shown(rigs, view_layer, wanted)
        return _signature(shown), shown


@np.errstate(all="ignore")  # a pose may hold anything
def _shown(rigs: Sequence[tuple[Object, Layout]], view_layer: ViewLayer, wanted: Wanted) -> Shown:
    posed = [_Posed(ob, layout, view_layer) for ob, layout in rigs]
    firsts = np.cumsum([0, *(len(own.joints) for own in posed)])
    chains = Chains(
        np.concatenate([moved(own.world, own.joints) for own in posed]),
        np.concatenate([own.layout.ends + first for own, first in zip(posed, firsts, strict=False)]),
        np.array([target for own in posed for target in own.targets]),
        np.array([pole for own in posed for pole in own.poles]),
        np.array([state for own in posed for state in own.states], dtype=np.int64),
        np.concatenate([own.joints_at_limit() for own in posed]),
        np.array([i == own.active for own in posed for i in range(len(own.states))]),
    )
    return Shown(chains, tuple(own.shown(own.active, wanted) for own in posed if own.active is not None))


class _Posed:
    """The chains of an armature as they are posed now."""

    def __init__(self, ob: Object, layout: Layout, view_layer: ViewLayer) -> None:
        """Read them."""
        depsgraph = view_layer.depsgraph
        self.ob, self.layout, self.evaluated = ob, layout, ob.evaluated_get(depsgraph)
        self.active = _active(ob, layout, view_layer.objects.active)
        self.world = matrix_array(self.evaluated.matrix_world)
        poses = np.empty(16 * layout.size, dtype=np.float32)
        self.evaluated.pose.bones.foreach_get("matrix", poses)
        columns = poses.reshape(-1, 4, 4)[layout.bones]  # Blender stores columns
        self.joints = columns[:, 3, :3].astype(np.float64)
        """(J, 3) in armature space."""
        self.joints[layout.ends] += columns[layout.ends, 1, :3] * layout.lengths[:, None]
        self.targets, self.poles, self.states, self.at_limit = zip(*self._tips(depsgraph), strict=True)

    def _tips(self, depsgraph: Depsgraph) -> Iterator[tuple[Place, Place, State, Collection[str]]]:
        """Yield target, pole, state and bones at a limit of each chain; only the active chain has a pole."""
        bones, is_live, names = self.ob.pose.bones, object_of(self.ob).live, self.layout.tips
        for i, (name, standing) in enumerate(zip(names, reports.standing(self.ob, names), strict=True)):
            status, at_limit = standing
            # Live keeps the tip at a target that it reached, so no line to the target is needed.
            is_there = is_live and status is Status.REACHED
            target = NOWHERE if is_there else _place(chain_of(bones[name]), "target", depsgraph)
            pole = _place(chain_of(bones[name]), "pole", depsgraph) if i == self.active else NOWHERE
            state = State.UNKNOWN if status is None else STATES[status]
            if state is State.REACHED and not is_there:
                joints = moved(self.world, self.joints[self.layout.joints_of(i)])
                if norm(joints[-1] - target) > STALE * _length(joints):  # the target has moved since
                    state = State.UNKNOWN
            yield target, pole, state, at_limit

    def joints_at_limit(self) -> Bools:
        """Return which joints (J,) are at a limit."""
        found = np.zeros(len(self.joints), dtype=bool)
        for chain, bones in enumerate(self.at_limit):
            if bones:
                own = self.layout.joints_of(chain)
                names = self.layout.names[own]
                found[own] = [name in bones for name in names]
                found[own.stop - 1] &= names[-1] != names[-2]
        return found

    def shown(self, chain: int, wanted: Wanted) -> Active:
        """Return what is shown of the active chain, given its index."""
        layout, evaluated = self.layout, self.evaluated.pose.bones
        state, at_limit = self.states[chain], self.at_limit[chain]
        own = layout.joints_of(chain)
        root = self.joints[own.start]
        size = _length(self.joints[own])
        bones = [self.ob.pose.bones[name] for name in layout.names[own][:-1]]
        settings, turning = chain_of(bones[-1]), turning_end(bones[-1])
        with_limits = bones if turning is None else [*bones, turning]
        flat = None
        if wanted.limits and chain in layout.normals and has_plane(bones):
            parent = bones[0].parent
            frame = np.eye(3) if parent is None else frame_of(evaluated[parent.name])
            flat = Plane(root, frame @ layout.normals[chain], size)
        has_limits, is_missed = wanted.limits and settings.use_limits, state in (State.OUT_OF_REACH, State.HELD)
        end = end_of(bones[-1])
        frame = frame_of(evaluated[bones[0].name])
        return Active(
            world=self.world,
            limits=tuple(_limits(with_limits, self.evaluated, at_limit)) if has_limits else (),
            state=int(state),
            reach=(root, size) if wanted.reach and (wanted.is_dragging or is_missed) else None,
            bend=_bend(self.joints[own], frame.dot(np.array(settings.bend_side)), size),
            end=None if end is None else np.array([evaluated[end.name].head[:], evaluated[end.name].tail[:]]),
            plane=flat,
        )


def _bend(joints: Floats, side: Floats, size: float) -> Floats | None:
    """Return the arrow from joints (n + 1, 3) of a chain to a side (3,); None for one bone or without a stored side."""
    line = joints[-1] - joints[0]
    line = line / norm(line)
    side = reject(side, line)
    length = float(norm(side))
    # The middle joint of a one-bone chain is its tip, which does not bend.
    if len(joints) < 3 or not length > 1e-6:
        return None
    return arrow(joints[len(joints) // 2], side / length, line, size)


def _active(ob: Object, layout: Layout, active: Object | None) -> int | None:
    """Return the index of the chain that contains the active bone, or whose target or pole is active; None if none."""
    bone = ob.data.bones.active if active == ob else None
    if active is None or (active == ob and bone is None):
        return None
    if bone is not None and bone.name in layout.owner:
        return layout.owner[bone.name]
    goal = (active, "" if bone is None else bone.name)
    chains = [chain_of(ob.pose.bones[name]) for name in layout.tips]
    return next((i for i, c in enumerate(chains) if goal in (goal_of(c, "target"), goal_of(c, "pole"))), None)


def _length(joints: Floats) -> float:
    """Return the length of a chain with joints (n + 1, 3)."""
    return float(np.linalg.norm(np.diff(joints, axis=0), axis=1).sum())


def _place(chain: IKAddonChain, role: str, depsgraph: Depsgraph) -> Place:
    """Return the world position of a target or pole, NaN if there is none."""
    goal, bone = goal_of(chain, role)
    return NOWHERE if goal is None else Goal(goal, bone).world(depsgraph).translation[:]


def _limits(bones: Sequence[PoseBone], evaluated: Object, at_limit: Collection[str]) -> Iterator[Joint]:
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


def has_arc(bone: PoseBone) -> bool:
    """Whether Blender itself draws arcs for the limits of a bone, as it does for selected bones in Pose Mode."""
    return (bone.use_ik_limit_x or bone.use_ik_limit_z) and bone.id_data.mode == "POSE" and compat.is_selected(bone)


def _signature(shown: object) -> Hashable:
    """Return a value that is equal for everything that is shown alike."""
    if isinstance(shown, np.ndarray):
        return hash(shown.tobytes())
    return tuple(map(_signature, shown)) if isinstance(shown, tuple) else shown


def pinned(rigs: Sequence[tuple[Object, Layout]], depsgraph: Depsgraph) -> dict[float, Floats]:
    """Return the world positions (k, 3) of the marks on pinned bones, by their radius."""
    found: dict[float, list[tuple[float, ...]]] = {DIAMOND: [], RING: []}
    for ob, layout in rigs:
        evaluated = ob.evaluated_get(depsgraph)
        for name, flags in layout.pins.items():
            place = (evaluated.matrix_world @ evaluated.pose.bones[name].head).to_tuple()
            for flag, radius in (("LOCATION", DIAMOND), ("ROTATION", RING)):
                if flag in flags:
                    found[radius].append(place)
    return {radius: np.array(places).reshape(-1, 3) for radius, places in found.items()}


# ---- other frames, during a drag over a range of them

SHOWN = (-1.0, -0.5, 0.5, 1.0)
"""The frames of the ghosts, as parts of the range."""


class Ghosts(NamedTuple):
    """The frames around a drag, as they are without it; positions in world space."""

    bones: Floats
    """(k, 3) lines from heads to tails of the visible bones but control bones, on the frames of `SHOWN`."""
    trail: Floats
    """(F, 3) where the point in hand is."""
    shares: Floats
    """(F,) how much of its offset in the drag each frame takes."""
    keyed: Bools
    """(F,) which frames have keys."""

    @classmethod
    def of(cls, context: Context, drag: Held) -> Ghosts | None:
        """Foretell them; None if F-curves alone don't decide, or the drag reaches no other frame."""
        ob, goal, reach, scene = drag.ob, drag.goal, drag.reach, context.scene
        now = scene.frame_current_final
        frames = np.unique([now, *np.arange(np.ceil(now - reach.frames), now + reach.frames + 1e-3)])
        here = int(np.searchsorted(frames, now))
        chosen = np.unique(np.rint(now + reach.frames * np.array(SHOWN)))
        layer, rows = context.view_layer, channels.read(ob, np.arange(len(ob.pose.bones)))
        seen = {
            i: bone.bone.length
            for i, bone in enumerate(ob.pose.bones)
            if compat.is_visible(bone) and not Goal(ob, bone.name).is_made
        }
        # Few frames need more than what is in hand.
        trail = Sampler.of(ob, [], [goal], True).foretold(layer, frames, rows)
        shown = Sampler.of(ob, [], [], True, seen).foretold(layer, chosen, rows)
        if trail is None or shown is None or not reach.frames:
            return None
        point = inverse(trail.goals[here, 0]) @ np.append(matrix_array(drag.world)[:3, 3], 1.0)
        heads = times(shown.world[:, None], shown.poses)
        tails = heads[..., :3, 3] + heads[..., :3, 1] * np.array(list(seen.values()))[:, None]
        keyed = np.concatenate([np.zeros(0), *(own.frames for own in reach.spreads(scene, {0: goal}).values())])
        return cls(
            np.stack([heads[..., :3, 3], tails], axis=-2).reshape(-1, 3),
            moved(trail.goals[:, 0], np.broadcast_to(point[:3], (len(frames), 3))),
            weights(frames, now, reach.falloff),
            np.isin(frames, keyed),
        )
