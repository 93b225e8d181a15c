"""The chains of a plan: those that share bones grouped into trees, and independent groups of one shape into waves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from bpy.types import Object, PoseBone
from numpy.typing import NDArray

from ...core.chain_settings import IKAddonChain
from ...core.constraints import drivers_on
from ...core.names import chain_name, names_by_tip
from ...core.settings import chain_of, folds_of
from ...core.skeleton import Skeleton
from ...core.translation.sentences import marked, say
from ...core.untyped import Column, Value
from ...solve import OutOfReach, Solver
from ...solve.problem import Bools, Floats, Ints, Problem
from .chain import check_seen, end_axes, is_connected, out_of_reach_paths, reach_of
from .limits import FREE, check_numbers, has_plane, ranges_of, stiffness_of
from .order import in_order
from .presence import Presence
from .sources import Carrier, Part

LOOP = marked("Dependency loop with {others}. Give one of the chains a different target")
LOOP_OF_ARMATURES = marked("Dependency loop between {names}. Give a chain of one of them a different target")
"""The faults of chains that need each other's solution."""
END_SHARED = marked(
    "The chain on '{tip}' also poses the end bone '{name}'. Set Follow Rotation of one to None, or shorten the other"
)
END_HELD = marked(
    "The chain on '{tip}' poses '{bone}', which keeps the end bone '{end}' from following this chain. "
    "Set Follow Rotation to None, or choose another end bone"
)


@dataclass(frozen=True)
class ChainPlan:
    """A chain that can be solved."""

    tip: str
    """Name of the tip bone."""
    bones: tuple[int, ...]
    """Indices in `pose.bones`, root first."""
    end: int | None
    """Index of the end bone, if it takes the target's orientation."""
    end_axes: tuple[tuple[float, float, float], ...]
    """(3, 3) see `chain.end_axes`."""
    reach: tuple[float, float, float]
    """The end effector in the rest axes of the tip: the tail of the tip, or the head of the end bone."""
    is_loose: bool
    """Whether an end bone takes the target's orientation without being a connected child of the tip."""
    remarks: tuple[str, ...]
    """Remarks on settings that can't be followed."""
    carriers: frozenset[Carrier]
    """The bones that move the target or the pole, of this armature or others, in any way."""
    root_carriers: frozenset[Carrier]
    """The bones that move the root in any way."""
    has_pole: bool
    turns: bool
    """Whether the tip takes the target's orientation."""
    bend_side: tuple[float, float, float]
    """The side to bend to, in the rest axes of the root bone; zero if it has none."""
    bends_both_ways: bool
    """Whether it keeps the bend of the FK pose, and bends to its side only where that is straight."""
    folds: tuple[tuple[float, float, float], ...]
    """How much each bone folds, in the rest axes of the bone above; empty for an even bend. See `Problem.folds`."""

    @classmethod
    def of(cls, tip: PoseBone, path: tuple[int, ...], end: int | None, presence: Presence, skeleton: Skeleton) -> Self:
        """Plan the chain on a tip bone; raise `UserError` if it can't be solved."""
        ob: Object = tip.id_data
        remarks = check_seen(ob, tip, presence)
        settings, posed = chain_of(tip), presence.posed(ob).pose.bones
        bones = [posed[bone] for bone in path]
        last = None if end is None else posed[end]
        for bone in (*bones, *([] if last is None else [last])):
            check_numbers(bone, limits=settings.use_limits)
        if settings.planar and not has_plane(bones):
            remarks.append(say("Stay in Plane has no effect with limits or rotation. Lock axes instead"))
        use_pole = settings.pole is not None and chain_of(bones[-1]).use_pole  # Use Pole may be animated or driven
        above = bones[0].parent
        goals = [Part(settings.target, settings.target_bone)]
        if use_pole:
            goals.append(Part(settings.pole, settings.pole_bone))
        return cls(
            tip=tip.name,
            bones=path,
            end=end,
            end_axes=tuple((x, y, z) for x, y, z in end_axes(tip).tolist()),
            reach=reach_of(tip).to_tuple(),
            is_loose=last is not None and not (last.bone.use_connect and last.parent == bones[-1]),
            remarks=tuple(remarks),
            carriers=presence.sources.carriers(goals),
            root_carriers=presence.sources.carriers([Part(ob, "" if above is None else above.name)]),
            has_pole=use_pole,
            turns=settings.use_rotation,
            bend_side=tuple(settings.bend_side),
            bends_both_ways=settings.bends_both_ways,
            folds=_folds(settings, path, skeleton),
        )

    @property
    def posed(self) -> tuple[int, ...]:
        """Indices of the bones that the chain poses, root first, its end bone last."""
        return self.bones if self.end is None else (*self.bones, self.end)

    @property
    def takes_rotation(self) -> bool:
        """Whether the tip or the end bone takes the target's orientation."""
        return self.turns or self.end is not None


def _folds(settings: IKAddonChain, path: tuple[int, ...], skeleton: Skeleton) -> tuple[tuple[float, float, float], ...]:
    """Return the folds of a chain, from the root on; empty if it has none."""
    shares = folds_of(settings, len(path))
    if not (any(shares) and any(settings.bend_side)):
        return ()
    axes = skeleton.bend_axes(path, np.array(settings.bend_side))
    size = np.linalg.norm(axes[0])
    if not size > 0.0:
        return ()
    return tuple((x, y, z) for x, y, z in (axes / size * np.array(shares)[:, None]).tolist())


class Shape(NamedTuple):
    """What groups must have in common to be solved as one batch; names shared with `Problem` mean the same."""

    parents: tuple[int, ...]
    """(n,) the parent of each bone within the group, -1 for the root."""
    segments: tuple[int, ...]
    """(E,) the bone of each effector."""
    poles: tuple[bool, ...]
    """(E,) whether each chain bends towards a pole."""
    turns: tuple[bool, ...]
    """(E,) whether the tip of each chain takes the target's orientation."""
    inherits: tuple[bool, ...]
    stretch_weights: tuple[float, ...]
    limits: tuple[tuple[float, ...], ...] | None
    """(n, 6) minimum and maximum angle about X, Z and Y."""
    plain: bool
    """Whether no bone has special inheritance flags, see `Skeleton.plain`."""
    solver: Solver = Solver.AUTO
    out_of_reach: OutOfReach = OutOfReach.EXTEND
    iterations: int = 0
    weights: tuple[float, ...] = (1.0,)
    """(E,)"""
    stiffness: tuple[tuple[float, ...], ...] | None = None
    """(n, 3) about X, Y and Z."""
    bend_lead: float = 0.0
    planar: bool = False
    """Whether a free chain stays in the plane of its rest pose."""
    is_end: bool = False
    """Whether each group is the end bone of a chain, which takes the target's orientation."""

    def given(self) -> dict[str, Value]:
        """Return what a `Problem` takes as it is, by names that both have."""
        shared = ((name, getattr(self, name)) for name in SHARED)
        return {name: np.array(value) if isinstance(value, tuple) else value for name, value in shared}

    @property
    def is_chain(self) -> bool:
        """Whether the bones are a single chain and not a tree."""
        return len(self.segments) == 1

    @property
    def is_bound(self) -> bool:
        """Whether there are limits, or an orientation to reach."""
        return self.limits is not None or any(self.turns)

    @property
    def is_limb(self) -> bool:
        """Whether it is a chain of two bones, or of three if the last one takes an orientation."""
        return self.is_chain and len(self.parents) == 2 + self.turns[0]


SHARED = [each.name for each in fields(Problem) if each.name in {*Shape._fields} - {"parents", "limits"}]
"""Names of settings in `Shape` and in `Problem`."""


@lru_cache(maxsize=1024)
def paths(parents: tuple[int, ...], segments: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the points from the root to each effector: bones by index, effectors counted on from the last bone."""
    found = []
    for e, segment in enumerate(segments):
        path, bone = [len(parents) + e], segment
        while bone >= 0:
            path.append(bone)
            bone = parents[bone]
        found.append(tuple(path[::-1]))
    return tuple(found)


@lru_cache(maxsize=1024)
def above(parents: tuple[int, ...]) -> tuple[slice | list[int], slice | list[int]]:
    """Return the indices of bones with a parent in their group, and of the parents; slices for a single chain."""
    if parents == tuple(range(-1, len(parents) - 1)):
        return slice(1, None), slice(-1)
    below = [bone for bone, parent in enumerate(parents) if parent >= 0]
    return below, [parents[bone] for bone in below]


@dataclass(frozen=True)
class Group:
    """A chain, or chains that share bones."""

    chains: tuple[int, ...]
    """Indices of the chains, in the order of their effectors."""
    bones: tuple[int, ...]
    """Indices in `pose.bones`, parents before children."""
    is_end: bool = False
    """Whether it is only the end bone of its one chain."""


Node = tuple[int, int]
"""A group as (`session_uid` of the armature, index of the group)."""


@dataclass(frozen=True)
class Wave:
    """G independent groups of one shape: n bones and E chains each."""

    shape: Shape
    chains: Ints
    """(G, E) indices into `Plan.chains`."""
    bones: Ints
    """(G, n) indices in `pose.bones`, parents before children."""
    rows: Ints
    """(G, n) positions in `Plan.live`."""
    modes: NDArray[np.str_]
    """(G, n) rotation modes."""
    reaches: Floats
    """(G, E, 3) the end effector of each chain, in the rest axes of its tip."""
    loose: Bools
    """(G, E) whether an end bone with orientation is unconnected, so that its location moves the end effector."""

    def some(self, chosen: Bools) -> "Wave":
        """Return the wave with only the chosen groups (G,)."""
        return Wave(self.shape, *(array[chosen] for name, array in vars(self).items() if name != "shape"))

    def as_members(self, array: Column) -> Column:
        """Reshape an array (F, G, ...) of groups to that of the members of a batch (G F, ...), group by group."""
        if len(array) == 1:
            return np.ascontiguousarray(array[0])
        return np.ascontiguousarray(array.swapaxes(0, 1)).reshape(-1, *array.shape[2:])

    def as_frames(self, members: Column) -> Column:
        """Reshape an array of members (G F, ...) back to (F, G, ...); the inverse of `as_members`."""
        if len(members) == len(self.rows):
            return members[None]
        return members.reshape(len(self.rows), -1, *members.shape[1:]).swapaxes(0, 1)


def shape_of(ob: Object, seen: Object, skeleton: Skeleton, group: Group, own: list[ChainPlan]) -> Shape:
    """Return the shape of a group of chains of an armature object; `seen` is its evaluated copy."""
    bones = [seen.pose.bones[bone] for bone in group.bones]
    place = {bone: i for i, bone in enumerate(group.bones)}
    settings = [chain_of(ob.pose.bones[chain.tip]) for chain in own]
    limited = {bone for chain, s in zip(own, settings, strict=True) if s.use_limits for bone in chain.posed}
    ranges = [ranges_of(bone) if i in limited else (FREE,) * 3 for bone, i in zip(bones, group.bones, strict=True)]
    shape = Shape(
        parents=tuple(place.get(int(skeleton.parents[bone]), -1) for bone in group.bones),
        segments=(0,),
        poles=(False,),
        turns=(True,),
        inherits=tuple(bone.bone.use_inherit_rotation for bone in bones),
        stretch_weights=(0.0,),
        limits=tuple((*x, *z, *y) for x, z, y in ranges) if any(r != (FREE,) * 3 for r in ranges) else None,
        plain=bool(skeleton.plain[list(group.bones)].all()),
        is_end=group.is_end,
    )
    if group.is_end:
        return shape
    stiffness = [stiffness_of(bone) if i in limited else (0.0,) * 3 for bone, i in zip(bones, group.bones, strict=True)]
    first, is_tree = settings[0], len(own) > 1
    is_kept = is_tree or is_connected(first, bones[0]) or drivers_on(ob, out_of_reach_paths(first, bones))
    return shape._replace(
        solver=_solver(settings),
        out_of_reach=OutOfReach.EXTEND if is_kept else OutOfReach(first.out_of_reach),
        iterations=max(s.iterations for s in settings),
        segments=tuple(place[chain.bones[-1]] for chain in own),
        weights=tuple(s.weight for s in settings) if is_tree else (1.0,),
        poles=tuple(chain.has_pole for chain in own),
        turns=tuple(chain.turns for chain in own),
        stretch_weights=tuple(bone.ik_stretch for bone in bones),
        stiffness=tuple(stiffness) if any(map(any, stiffness)) else None,
        bend_lead=0.0 if is_tree else first.bend_lead,
        planar=first.planar and not is_tree,
    )


def _solver(settings: Sequence[IKAddonChain]) -> Solver:
    """Return the solver of chains that are solved together: FABRIK if one of them asks for it."""
    asked = [Solver(chain.solver) for chain in settings]
    if Solver.FABRIK in asked:
        return Solver.FABRIK
    # Two-Bone chains are checked elsewhere; on a frame where a bone has no length, another solver has to do.
    return Solver.EVEN_BEND if asked[0] is Solver.EVEN_BEND else Solver.AUTO


def groups_of(chains: Sequence[Iterable[int]], skeleton: Skeleton) -> list[Group]:
    """Group chains, given by their bones, that share bones directly or through others."""
    found: list[tuple[list[int], set[int]]] = []
    for i, bones in enumerate(chains):
        meeting = [other for other in found if not other[1].isdisjoint(bones)]
        members = sorted(sum((own for own, _bones in meeting), [i]))
        all_bones = set(bones).union(*(own for _members, own in meeting))
        found = [*(other for other in found if other not in meeting), (members, all_bones)]
    return [
        Group(tuple(members), tuple(sorted(bones, key=lambda bone: (skeleton.depths[bone], bone))))
        for members, bones in sorted(found)
    ]


def without_shared_ends(ob: Object, skeleton: Skeleton, planned: list[ChainPlan], faults: dict[str, str]) -> None:
    """Remove chains whose end bone, or a bone between the two, is posed by another chain, and add their faults."""
    owners = {bone: chain for chain in reversed(planned) for bone in chain.posed}
    owners |= {bone: chain for chain in reversed(planned) for bone in chain.bones}
    for chain in planned:
        if chain.end is None:
            continue
        above = skeleton.ancestors(chain.end)
        posed = next((bone for bone in above[: above.index(chain.bones[-1])] if bone in owners), None)
        end = skeleton.names[chain.end]
        if owners[chain.end] is not chain:
            faults[chain.tip] = say(END_SHARED, tip=chain_name(ob.pose.bones[owners[chain.end].tip]), name=end)
        elif posed is not None:
            other = chain_name(ob.pose.bones[owners[posed].tip])
            faults[chain.tip] = say(END_HELD, tip=other, bone=skeleton.names[posed], end=end)
    planned[:] = [chain for chain in planned if chain.tip not in faults]


def without_loops(
    ob: Object, skeleton: Skeleton, planned: list[ChainPlan], faults: dict[str, str]
) -> tuple[list[Group], dict[Node, set[Node]]]:
    """Return groups of chains and what each needs; remove chains in dependency loops from `planned` and add faults."""
    while True:
        groups = groups_of([chain.bones for chain in planned], skeleton)
        groups += [Group((i,), (c.end,), is_end=True) for i, c in enumerate(planned) if c.end is not None]
        needs = needs_of({ob.session_uid: (skeleton, planned, groups)})
        _, loop = in_order(needs, needs)
        mutual = {i for _uid, g in loop for i in groups[g].chains}
        if not mutual:
            return groups, needs
        names = names_by_tip(ob)
        for i in mutual:
            others = " and ".join(f"'{names.get(planned[j].tip, planned[j].tip)}'" for j in sorted(mutual - {i}))
            faults[planned[i].tip] = say(LOOP, others=others)
        planned[:] = [chain for i, chain in enumerate(planned) if i not in mutual]


def needs_of(rigs: Mapping[int, tuple[Skeleton, Sequence[ChainPlan], Sequence[Group]]]) -> dict[Node, set[Node]]:
    """Return for each group of chains the groups that move its root or a goal, of its armature or another.

    `rigs` has the skeleton, the chains and the groups of each armature, by its `session_uid`.
    """
    owners: dict[Carrier, Node] = {}
    for uid, (skeleton, _chains, groups) in rigs.items():
        for g, group in enumerate(groups):
            owners |= {Carrier(uid, skeleton.names[bone]): (uid, g) for bone in group.bones}
    needs: dict[Node, set[Node]] = {}
    for uid, (skeleton, chains, groups) in rigs.items():
        for g, group in enumerate(groups):
            above = {Carrier(uid, skeleton.names[bone]) for bone in skeleton.ancestors(group.bones[0])}
            roots = above.union(*(chains[i].root_carriers for i in group.chains))
            goals = frozenset[Carrier]().union(*(chains[i].carriers for i in group.chains))
            needs[uid, g] = {owners[own] for own in roots if own in owners} - {(uid, g)}
            needs[uid, g] |= {owners[own] for own in goals if own in owners}
    return needs


def in_waves(
    groups: Sequence[Group],
    shapes: Sequence[Shape],
    needs: Mapping[Node, set[Node]],
    rows: Mapping[int, int],
    modes: Sequence[str],
    planned: Sequence[ChainPlan],
) -> tuple[Wave, ...]:
    """Return all groups as waves, in the order in which they are solved.

    Args:
        groups: groups without dependency loops.
        shapes: the shape of each group.
        needs: for each group, the groups that move its root or a goal.
        rows: position of each bone in `Plan.live`.
        modes: rotation modes of `Plan.live`.
        planned: the chains.
    """
    level: dict[Node, int] = {}
    batches: dict[tuple[int, Shape], list[Group]] = {}
    for node in in_order(needs, needs)[0]:
        level[node], (_uid, g) = 1 + max((level[other] for other in needs[node]), default=-1), node
        batches.setdefault((level[node], shapes[g]), []).append(groups[g])
    waves = []
    for (_, shape), batch in sorted(batches.items(), key=lambda item: item[0][0]):
        own = np.array([[rows[bone] for bone in group.bones] for group in batch], dtype=np.int64)
        waves.append(
            Wave(
                shape,
                chains=np.array([group.chains for group in batch], dtype=np.int64),
                bones=np.array([group.bones for group in batch], dtype=np.int64),
                rows=own,
                modes=np.array(modes)[own],
                reaches=np.array([[planned[i].reach for i in group.chains] for group in batch]),
                loose=np.array([[planned[i].is_loose and not group.is_end for i in group.chains] for group in batch]),
            )
        )
    return tuple(waves)
