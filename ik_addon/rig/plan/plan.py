"""What to solve on an armature, and in which order.

A plan holds structure. It is built once and kept until the rig or a setting changes, or until an animated setting that
it was made from has another value on another frame. The bones that chains pose are the same on all frames.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType

import numpy as np
from bpy.types import Depsgraph, Object

from ...core.settings import chain_of
from ...core.skeleton import Skeleton
from ...core.translation.sentences import UserError
from ...solve.problem import Floats, Ints
from . import chain as chains
from .facts import Origin, Values, Watched, facts_of, own_facts, values_of, watch
from .followers import goals_of
from .groups import ChainPlan, Group, Node, Wave, in_waves, needs_of, shape_of, without_loops, without_shared_ends
from .inputs import Inputs
from .order import all_needs, in_order
from .presence import Presence, Reference
from .sources import related, uid_of


@dataclass(frozen=True, eq=False)
class Plan:
    """The plan of one armature's chains."""

    skeleton: Skeleton
    chains: tuple[ChainPlan, ...]
    """The chains that can be solved."""
    groups: tuple[Group, ...]
    """These chains, those together that share bones."""
    waves: tuple[Wave, ...]
    """These groups, in the order in which they are solved."""
    paths: dict[str, tuple[int, ...]]
    """The bones that each enabled chain poses, solvable or not, by its tip bone: indices in `pose.bones`, root first,
    an end bone that takes an orientation last."""
    faults: dict[str, str]
    """Why a chain can't be solved, and what to do, by its tip bone."""
    live: Ints
    """(k,) indices of the bones of all enabled chains, ascending, including chains that can't be solved now."""
    rows: dict[int, int]
    """Position of each bone in `live`."""
    solved: frozenset[int]
    """The live bones that are solved; the others stay in their FK pose."""
    given: frozenset[int]
    """Bones whose pose only Blender knows, and that no chain poses or moves."""
    riding: frozenset[int]
    """Bones that only Blender can place relative to their parent, which chains move."""
    modes: tuple[str, ...]
    """Rotation mode of each live bone."""
    inputs: frozenset[int]
    """`session_uid` of everything whose change requires a new solve."""
    leaders: frozenset[int]
    """`session_uid` of the other armatures whose bones move this one or its goals."""
    rides: tuple[tuple[int, ...], ...]
    """For each chain, the bones of this armature from which target and pole hang, by parents alone; -1: none."""
    asks: bool
    """Whether bones of chains of this armature, posed or back in FK, move something that only Blender can place."""
    asked: frozenset[int]
    """`session_uid` of the other armatures whose bones do that, if they are live."""
    watch: tuple[Watched, ...]
    """The animated settings among those that the plan was made from."""
    seen: Values
    """The watched values that the plan was made from; it fits frames with the same values."""
    numbers: Inputs
    """The numbers that frames are computed from."""
    origins: Mapping[int, Origin]
    """The objects that the plan was made from, by `session_uid`: the armature object, and everything that
    targets and poles depend on."""
    goals: tuple[Reference, ...]
    """The targets and poles of the enabled chains."""
    has_all: tuple[bool, ...]
    """Whether view layers have the armature and all goals, see `Presence.has_all`."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether this view layer lacks the armature or a goal, and leaves the pose to another that has all of them."""
        return not self.has_all[0] and any(self.has_all)

    @cached_property
    def goals_are_moved(self) -> bool:
        """Whether chains move a bone of this armature from which a goal hangs."""
        return any(bone >= 0 and self.moves(bone) for pair in self.rides for bone in pair)

    @cached_property
    def end_axes(self) -> Floats:
        """(C, 3, 3) the axes of the bones that turn with the targets of chains, see `chain.end_axes`."""
        return np.array([chain.end_axes for chain in self.chains], dtype=np.float64).reshape(-1, 3, 3)

    @cached_property
    def is_searched(self) -> bool:
        """Whether a search finds chains one by one, so that many frames take as long as each by itself."""
        shapes = [wave.shape for wave in self.waves if not wave.shape.is_end]
        return any(not shape.is_chain or (shape.is_bound and not shape.is_limb) for shape in shapes)

    @cached_property
    def closed(self) -> list[int]:
        """The limbs that are solved one by one in closed form: together, frames take two thirds of their time alone."""
        own = [wave.chains[:, 0] for wave in self.waves if wave.shape.is_limb and wave.shape.limits is not None]
        return [int(chain) for chains in own for chain in chains]

    @cached_property
    def placing(self) -> list[Reference]:
        """The objects that place goals and chains."""
        placed = {own.reference.uid: own.reference for own in self.numbers.objects}
        return [*(placed | {uid: origin.reference for uid, origin in self.origins.items()}).values()]

    def moves(self, bone: int) -> bool:
        """Whether a bone is posed by a chain, or moves along with one that is."""
        while bone >= 0 and bone not in self.solved and bone not in self.given:
            bone = int(self.skeleton.parents[bone])
        return bone in self.solved

    def length(self, tip: str) -> float:
        """Return the length at rest of the chain on a tip bone."""
        path = self.paths[tip]
        last = [self.skeleton.names[bone] for bone in path].index(tip)
        return float(self.skeleton.lengths[list(path[: last + 1])].sum())

    @classmethod
    def of(
        cls,
        ob: Object,
        depsgraph: Depsgraph,
        only: Collection[str] | None = None,
        aside: Mapping[str, str] = MappingProxyType({}),
    ) -> "Plan":
        """Plan the enabled chains of an armature object.

        Args:
            ob: the armature object, the original one.
            depsgraph: gives the settings as animated on its frame; goals must be in its view layer.
            only: tip bones to plan, enabled or not; None: all enabled chains.
            aside: chains that are set aside, by tip bone, and why.
        """
        presence = Presence(depsgraph.view_layer, depsgraph)
        seen = presence.posed(ob)
        skeleton = Skeleton.of(seen)

        # What is solved.
        planned, paths, faults = _checked(ob, skeleton, presence, only, aside)
        without_shared_ends(ob, skeleton, planned, faults)
        groups, needs = without_loops(ob, skeleton, planned, faults)
        shapes = [shape_of(ob, seen, skeleton, group, [planned[i] for i in group.chains]) for group in groups]

        # Which bones that poses.
        solved = frozenset(bone for group in groups for bone in group.bones)
        bones = {bone for path in paths.values() for bone in path}
        live = np.array(sorted(bones), dtype=np.int64)
        rows = {int(bone): row for row, bone in enumerate(live)}
        modes = tuple(seen.pose.bones[int(bone)].rotation_mode for bone in live)

        # What it depends on.
        goals = [(goal.ob, goal.bone) for tip in paths for goal in goals_of(ob.pose.bones[tip])]
        carriers = {carrier for chain in planned for carrier in chain.carriers | chain.root_carriers}
        leaders = frozenset(carrier.armature for carrier in carriers) - {ob.session_uid}
        roots = {bone for group in groups for bone in skeleton.ancestors(group.bones[0])[:1]}
        numbers = Inputs.of(ob, presence, skeleton, live, roots | (bones - solved), [chain.tip for chain in planned])
        rides = tuple(tuple(map(numbers.ridden, own)) for own in zip(numbers.targets, numbers.poles, strict=True))
        ridden = {bone for pair in rides for bone in pair} - {-1}
        above = {other for bone in bones | ridden for other in (bone, *skeleton.ancestors(bone))}
        others = {uid_of(other): other for goal, bone in [*goals, (ob, "")] for other in related(goal, bone)}
        of_own = partial(own_facts, live.tolist(), sorted(above - bones))
        read = [(uid, other, of_own if other == ob else facts_of) for uid, other in others.items()]
        watched = watch(ob, {skeleton.names[bone] for bone in above}, others.values())
        inputs = {ob.session_uid, ob.data.session_uid, *(goal.session_uid for goal, _bone in goals)}
        whole = {goal.session_uid: goal for goal, _bone in goals}.values()

        return cls(
            skeleton=skeleton,
            chains=tuple(planned),
            groups=tuple(groups),
            waves=in_waves(groups, shapes, needs, rows, modes, planned),
            paths=paths,
            faults=faults,
            live=live,
            rows=rows,
            solved=solved,
            given=numbers.own_opaque(riding=False) - solved,
            riding=numbers.own_opaque(riding=True) - solved,
            modes=modes,
            inputs=frozenset(inputs | {placed.reference.uid for placed in numbers.objects} | leaders),
            leaders=leaders,
            rides=rides,
            asks=any((ob.session_uid, skeleton.names[bone]) in numbers.asked for bone in bones),
            asked=frozenset(carrier.armature for carrier in numbers.asked) - {ob.session_uid},
            watch=watched,
            seen=values_of(watched, depsgraph),
            numbers=numbers,
            origins={uid: Origin(Reference.of(other), own, own(other)) for uid, other, own in read},
            goals=tuple(map(Reference.of, whole)),
            has_all=presence.has_all(ob, whole),
        )

    def is_as_made_from(self, uids: Iterable[int]) -> bool:
        """Whether nothing but transforms has changed on those of the objects that the plan was made from."""
        return all(self.origins[uid].is_same() for uid in self.origins.keys() & uids)

    def is_shown_alike(self, ob: Object, presence: Presence) -> bool:
        """Whether the view layer that the plan was made for has the armature and the goals that it had then."""
        found = [goal for reference in self.goals if (goal := reference.find()) is not None]
        return len(found) == len(self.goals) and presence.has_all(ob, found) == self.has_all


def _checked(
    ob: Object, skeleton: Skeleton, presence: Presence, only: Collection[str] | None, aside: Mapping[str, str]
) -> tuple[list[ChainPlan], dict[str, tuple[int, ...]], dict[str, str]]:
    """Check each enabled chain of an armature object by itself, see `Plan.of`.

    Returns:
        The chains that can be solved, and `Plan.paths` and `Plan.faults` of all.
    """
    planned: list[ChainPlan] = []
    paths: dict[str, tuple[int, ...]] = {}
    faults: dict[str, str] = {}
    index = {name: i for i, name in enumerate(skeleton.names)}
    for tip in chains.tips(ob):
        if not (chain_of(tip).enabled if only is None else tip.name in only):
            continue
        path = tuple(index[bone.name] for bone in chains.chain_bones(tip))
        last = chains.turning_end(tip)
        end = None if last is None else index[last.name]
        paths[tip.name] = path if end is None else (*path, end)
        try:
            if tip.name in aside:
                raise UserError(aside[tip.name])
            planned.append(ChainPlan.of(tip, path, end, presence, skeleton))
        except UserError as error:
            faults[tip.name] = error.message
    return planned, paths, faults


# ---- plans of several armatures


def in_loops(plans: Mapping[int, Plan]) -> set[int]:
    """Return the armatures that have chains in a dependency loop, also through other armatures.

    `plans` and the result are by the `session_uid` of the armature.
    """
    needs = _needs(plans)
    return {uid for uid, _g in in_order(needs, needs)[1]}


def between(plans: Mapping[int, Plan], uid: int, tips: Collection[str]) -> list[tuple[int, str]]:
    """Return chains of other armatures that given chains of one armature follow, and that follow chains of it in turn.

    Args:
        plans: plans by the `session_uid` of the armature.
        uid: the `session_uid` of the one armature.
        tips: tip bones of the given chains.

    Returns:
        Armature and tip bone of each chain.
    """
    needs = _needs(plans)

    def of(node: Node) -> list[str]:
        plan = plans[node[0]]
        return [plan.chains[i].tip for i in plan.groups[node[1]].chains]

    start = [node for node in needs if node[0] == uid and not set(tips).isdisjoint(of(node))]
    followed = {other for node in start for other in all_needs(node, needs) if other[0] != uid}
    found = [other for other in followed if any(back[0] == uid for back in all_needs(other, needs))]
    return sorted((other[0], tip) for other in found for tip in of(other))


def _needs(plans: Mapping[int, Plan]) -> dict[Node, set[Node]]:
    return needs_of({uid: (plan.skeleton, plan.chains, plan.groups) for uid, plan in plans.items()})
