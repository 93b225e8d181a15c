"""What is to be solved on an armature and in which order.

A plan holds structure: built once, kept until the rig or a setting changes, or until an animated setting that it was
made of has another value on another frame. The bones that chains pose are the same on all of these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import bpy
import numpy as np

from ...data.settings import IKAddonChain, chain_of, goal_of
from ...data.versions import solver_of, stiffness_is_shared
from ...pose.skeleton import Skeleton
from ...solve import OutOfReach, Solver
from ...solve.problem import Bools, Ints
from . import chain as chains
from .attachments import Carrier, Hold, all_needs, holds_of, in_order, related, uid_of
from .chain import ChainError
from .groups import Group, Shape, Wave, groups_of, in_waves
from .inputs import Inputs
from .limits import FREE, check_numbers, is_free, ranges_of, stiffness_of
from .presence import Presence
from .watch import Facts, Value, Watch, facts_of

Node = tuple[int, int, int]
"""Chains that are solved together: their armature, and their place among its waves and in one of them."""


@dataclass(frozen=True)
class ChainPlan:
    """One chain that can be solved."""

    tip: str
    """Name of the tip bone."""
    bones: tuple[int, ...]
    """Indices in `pose.bones`, root first."""
    remarks: tuple[str, ...]
    """Sentences about settings that cannot be followed."""
    target_holds: tuple[Hold, ...]
    """The bones that the target hangs on, of this armature or others, nearest first."""
    pole_holds: tuple[Hold, ...]
    has_pole: bool
    turns: bool
    """The tip takes the target's rotation."""
    bend_side: tuple[float, float, float]
    """In the rest axes of the root bone; zero: none."""

    @property
    def goal_holds(self) -> tuple[Hold, ...]:
        """The bones that the target or the pole hang on."""
        return *self.target_holds, *self.pole_holds


@dataclass(frozen=True)
class Plan:
    """The chains of one armature."""

    skeleton: Skeleton
    chains: tuple[ChainPlan, ...]
    """Those that can be solved."""
    waves: tuple[Wave, ...]
    """All of these, in the order in which they are solved."""
    paths: dict[str, tuple[int, ...]]
    """The bones of each enabled chain, solvable or not, by its tip bone: indices in `pose.bones`, root first."""
    faults: dict[str, str]
    """Tip bone of each chain that cannot be solved: why, and what to do."""
    live: Ints
    """(k,) indices of the bones of all enabled chains, ascending, also of those that cannot be solved now."""
    rows: dict[int, int]
    """Position of each bone in `live`."""
    solved: frozenset[int]
    """The live bones that chains pose; the others stay in their FK pose."""
    modes: tuple[str, ...]
    """Rotation mode of each live bone."""
    connected: Bools
    """(k,) live bones whose location Blender leaves out."""
    sampled: Ints
    """(s,) indices of the other bones whose pose is needed: what the chains hang on."""
    inputs: frozenset[int]
    """`session_uid` of everything whose change asks for a new solve."""
    root_holds: tuple[Hold, ...]
    """Bones that the armature object itself hangs on, nearest first."""
    carriers: frozenset[Carrier]
    """Bones that goals or the armature object hang on, of this armature and others."""
    followed: tuple[int, ...]
    """Indices of the bones whose solved pose goals need."""
    stands: bool
    """No parent of a chain moves during a solve, and neither a goal nor the armature rides on a bone."""
    watch: Watch
    """What is animated of the settings that the plan was made of."""
    seen: Value
    """Its values then: the plan fits where they are the same."""
    determined: Inputs | None
    """The numbers that frames are computed from; None where Blender's matrices are needed."""
    is_alone: bool
    """No bone of another armature carries anything of this one, nor the other way round."""
    facts: Mapping[int, Facts]
    """What decided it of objects other than the armature's, by `session_uid`."""
    is_elsewhere: bool
    """A goal is missing in this view layer, and another layer of the scene has all of them: it decides the pose."""

    def moves(self, bone: int) -> bool:
        """Whether a bone is posed by a chain, or below one that is."""
        return not self.solved.isdisjoint((bone, *self.skeleton.ancestors(bone)))

    def length(self, tip: str) -> float:
        """The length of the chain on a tip bone at rest."""
        return float(self.skeleton.lengths[list(self.paths[tip])].sum())

    @classmethod
    def of(
        cls,
        ob: bpy.types.Object,
        depsgraph: bpy.types.Depsgraph,
        only: Collection[str] | None = None,
        followed: Collection[str] = (),
        aside: Mapping[str, str] = MappingProxyType({}),
    ) -> Plan:
        """Plan the enabled chains of an armature object.

        Args:
            ob: the armature object, the original one.
            depsgraph: its evaluated copies tell settings that may be animated, and goals must be in its view layer.
            only: tip bones to plan, enabled or not; None: all enabled chains.
            followed: bones of this armature that goals of other armatures are attached to.
            aside: tip bones of chains that are not solved, and why.
        """
        seen = ob.evaluated_get(depsgraph)
        if seen.pose is None or seen.pose.bones.keys() != ob.pose.bones.keys():
            seen = ob  # it was edited, and is not evaluated since
        skeleton = Skeleton.of(seen)
        index = {name: i for i, name in enumerate(skeleton.names)}
        presence = Presence(depsgraph.view_layer, depsgraph)
        faults: dict[str, str] = {}
        planned: list[ChainPlan] = []
        paths: dict[str, tuple[int, ...]] = {}
        goals: list[tuple[bpy.types.Object, str]] = []
        constrained = [bone for bone in seen.pose.bones if bone.constraints]
        for tip in chains.tips(ob):
            settings = chain_of(tip)
            if not (settings.enabled if only is None else tip.name in only):
                continue
            path = paths[tip.name] = tuple(index[bone.name] for bone in chains.chain_bones(tip))
            try:
                if tip.name in aside:
                    raise ChainError(aside[tip.name])
                planned.append(_checked(ob, tip, [seen.pose.bones[bone] for bone in path], path, constrained, presence))
            except ChainError as error:
                faults[tip.name] = str(error)
            for goal, bone in (goal_of(settings, "target"), goal_of(settings, "pole")):
                if goal is not None:
                    goals.append((goal, bone))
        inputs = {ob.session_uid, ob.data.session_uid, *(goal.session_uid for goal, _bone in goals)}
        bones = {bone for path in paths.values() for bone in path}
        groups, needs = _without_circles(ob, skeleton, index, planned, faults)
        live = np.array(sorted(bones), dtype=np.int64)
        rows = {int(bone): row for row, bone in enumerate(live)}
        solved = frozenset(bone for group in groups for bone in group.bones)
        modes = tuple(seen.pose.bones[int(bone)].rotation_mode for bone in live)
        shapes = [_shape(ob, seen, skeleton, group, [planned[i] for i in group.chains]) for group in groups]
        root_holds = holds_of(seen)
        of_goals = (hold for chain in planned for hold in chain.goal_holds)
        carriers = frozenset(hold.carrier for hold in (*root_holds, *of_goals))
        own = {carrier.bone for carrier in carriers if carrier.armature == ob.session_uid}
        wanted = sorted({index[name] for name in own.union(followed) if name in index})
        others = {uid_of(other): other for goal, bone in [*goals, (ob, "")] for other in related(goal, bone)}
        above = {name for bone in bones for name in (bone, *skeleton.ancestors(bone))}
        watch = Watch.of(ob, {skeleton.names[bone] for bone in above.union(wanted)}, others.values())
        whole = {goal.session_uid: goal for goal, _bone in goals}.values()
        sampled = _sampled(skeleton, groups, solved, [*wanted, *sorted(bones - solved)])
        return cls(
            skeleton=skeleton,
            chains=tuple(planned),
            waves=in_waves(groups, shapes, needs, rows, modes),
            paths=paths,
            faults=faults,
            live=live,
            rows=rows,
            solved=solved,
            modes=modes,
            connected=np.array([seen.pose.bones[int(bone)].bone.use_connect for bone in live], dtype=bool),
            sampled=sampled,
            inputs=frozenset(inputs | {carrier.armature for carrier in carriers}),
            root_holds=root_holds,
            carriers=carriers,
            followed=tuple(wanted),
            stands=not carriers and not wanted and _stands(ob, skeleton, groups, solved),
            watch=watch,
            seen=watch.values(depsgraph),
            is_alone=not followed and all(carrier.armature == ob.session_uid for carrier in carriers),
            determined=Inputs.of(ob, depsgraph, skeleton, live, sampled, [chain.tip for chain in planned]),
            facts={uid: facts_of(other) for uid, other in others.items() if uid != ob.session_uid},
            is_elsewhere=not _has(presence, ob, whole) and any(_has(other, ob, whole) for other in presence.others()),
        )

    def is_outdated(self, updated: Iterable[bpy.types.ID]) -> bool:
        """Whether something else than where they are was changed on goals, or on what carries them."""
        objects = (ob for ob in updated if isinstance(ob, bpy.types.Object) and ob.session_uid in self.facts)
        return any(facts_of(ob) != self.facts[ob.session_uid] for ob in objects)

    def fits(self, depsgraph: bpy.types.Depsgraph) -> bool:
        """Whether what the plan was made of is the same where a depsgraph is evaluated."""
        return not self.watch or self.watch.values(depsgraph) == self.seen


def in_a_circle(plans: Mapping[int, Plan]) -> set[int]:
    """Those armatures of which chains follow each other in a circle, also through other armatures.

    Armatures by `session_uid`, with their plans.
    """
    needs = _needs(plans)
    return {uid for uid, _, _ in in_order(needs, needs)[1]}


def between(plans: Mapping[int, Plan], uid: int, tips: Collection[str]) -> list[tuple[int, str]]:
    """Chains of other armatures that some chains of one follow, and that follow chains of the same one in turn.

    Args:
        plans: of armatures, by `session_uid`.
        uid: the one.
        tips: tip bones of these chains of it.

    Returns:
        Armature and tip bone of each.
    """
    needs = _needs(plans)

    def of(node: Node) -> list[str]:
        plan = plans[node[0]]
        return [plan.chains[c].tip for c in plan.waves[node[1]].chains[node[2]].tolist()]

    start = [node for node in needs if node[0] == uid and not set(tips).isdisjoint(of(node))]
    followed = {other for node in start for other in all_needs(node, needs) if other[0] != uid}
    found = [other for other in followed if any(back[0] == uid for back in all_needs(other, needs))]
    return sorted((other[0], tip) for other in found for tip in of(other))


def _needs(plans: Mapping[int, Plan]) -> dict[Node, set[Node]]:
    """What moves the roots or the goals of chains, of all armatures."""
    owners: dict[tuple[int, int], Node] = {}
    for uid, plan in plans.items():
        for w, wave in enumerate(plan.waves):
            owners.update(((uid, bone), (uid, w, g)) for g, bones in enumerate(wave.bones.tolist()) for bone in bones)

    def moving(uid: int, bone: int) -> set[Node]:
        path = (bone, *plans[uid].skeleton.ancestors(bone))
        return {owners[uid, own] for own in path if (uid, own) in owners}

    needs: dict[Node, set[Node]] = {}
    for uid, plan in plans.items():
        for w, wave in enumerate(plan.waves):
            for g, (bones, chosen) in enumerate(zip(wave.bones.tolist(), wave.chains.tolist(), strict=True)):
                found = moving(uid, bones[0]) - {(uid, w, g)}
                of_goals = (hold for c in chosen for hold in plan.chains[c].goal_holds)
                for carrier, _turns in (*plan.root_holds, *of_goals):
                    names = plans[carrier.armature].skeleton.names if carrier.armature in plans else ()
                    if carrier.bone in names:
                        found |= moving(carrier.armature, names.index(carrier.bone))
                needs[uid, w, g] = found
    return needs


def has_plane(bones: Sequence[bpy.types.PoseBone]) -> bool:
    """Whether Planar has an effect on a chain, root first: limits and rotation lead out of the plane."""
    settings = chain_of(bones[-1])
    return not (settings.use_rotation or is_limited(bones))


def is_limited(bones: Sequence[bpy.types.PoseBone]) -> bool:
    """Whether the bones of a chain, root first, are solved within limits, or by stiffness as if there were some."""
    settings = chain_of(bones[-1])
    if not settings.use_limits:
        return False
    return not all(map(is_free, bones)) or has_old_stiffness(bones)


def has_old_stiffness(bones: Sequence[bpy.types.PoseBone]) -> bool:
    """Whether stiffness acts on a chain without limits, root first, as it did in 0.1.0."""
    settings = chain_of(bones[-1])
    if not settings.use_limits or stiffness_is_shared(settings):
        return False
    return any(any(stiffness_of(bone)) for bone in bones) and all(map(is_free, bones))


def _has(presence: Presence, ob: bpy.types.Object, goals: Collection[bpy.types.Object]) -> bool:
    """Whether a view layer has an armature object and moves all goals of its chains."""
    return ob.session_uid in presence.present and all(map(presence.evaluates, goals))


def _checked(
    ob: bpy.types.Object,
    tip: bpy.types.PoseBone,
    bones: list[bpy.types.PoseBone],
    path: tuple[int, ...],
    constrained: list[bpy.types.PoseBone],
    presence: Presence,
) -> ChainPlan:
    """Plan the chain on a tip bone, whose bones are seen as evaluated; raise `ChainError` where it cannot be solved."""
    settings = chain_of(tip)
    remarks = chains.check_seen(ob, tip, bones, constrained, presence)
    for bone in bones:
        check_numbers(bone, limits=settings.use_limits)
    if settings.planar and not has_plane(bones):
        remarks.append("Planar has no effect beside limits and rotation; lock the axes that shall not turn instead")
    return ChainPlan(
        tip=tip.name,
        bones=path,
        remarks=tuple(remarks),
        target_holds=holds_of(presence.seen(settings.target), settings.target_bone),
        pole_holds=() if settings.pole is None else holds_of(presence.seen(settings.pole), settings.pole_bone),
        has_pole=settings.pole is not None,
        turns=settings.use_rotation,
        bend_side=tuple(settings.bend_side),
    )


def _without_circles(
    ob: bpy.types.Object,
    skeleton: Skeleton,
    index: dict[str, int],
    planned: list[ChainPlan],
    faults: dict[str, str],
) -> tuple[list[Group], dict[int, set[int]]]:
    """Groups of chains and what each needs; chains that follow each other are taken out of `planned`, with a fault."""
    while True:
        groups = groups_of([chain.bones for chain in planned], skeleton)
        owner = {bone: g for g, group in enumerate(groups) for bone in group.bones}
        needs: dict[int, set[int]] = {g: set() for g in range(len(groups))}
        for g, group in enumerate(groups):
            needs[g].update(owner[bone] for bone in skeleton.ancestors(group.bones[0]) if bone in owner)
            for i in group.chains:
                followed = _moving(ob, skeleton, index, planned[i])
                needs[g].update(owner[bone] for bone in followed if bone in owner)
        _, circle = in_order(range(len(groups)), needs)
        mutual = {i for g in circle for i in groups[g].chains}
        if not mutual:
            return groups, needs
        for i in mutual:
            others = " and ".join(f"'{planned[j].tip}'" for j in sorted(mutual - {i}))
            faults[planned[i].tip] = f"This chain and {others} follow each other in a circle; give one another target"
        planned[:] = [chain for i, chain in enumerate(planned) if i not in mutual]


def _moving(ob: bpy.types.Object, skeleton: Skeleton, index: dict[str, int], chain: ChainPlan) -> list[int]:
    """The bones of this armature that take the goals of a chain along."""
    found = []
    for carrier, _turns in chain.goal_holds:
        if carrier.armature == ob.session_uid and carrier.bone in index:
            bone = index[carrier.bone]
            found += [bone, *skeleton.ancestors(bone)]
    return found


def _shape(
    ob: bpy.types.Object, seen: bpy.types.Object, skeleton: Skeleton, group: Group, own: list[ChainPlan]
) -> Shape:
    bones = [seen.pose.bones[bone] for bone in group.bones]
    place = {bone: i for i, bone in enumerate(group.bones)}
    settings = [chain_of(ob.pose.bones[chain.tip]) for chain in own]
    limited = {bone for chain, s in zip(own, settings, strict=True) if s.use_limits for bone in chain.bones}
    ranges = [ranges_of(bone) if i in limited else (FREE,) * 3 for bone, i in zip(bones, group.bones, strict=True)]
    stiffness = [stiffness_of(bone) if i in limited else (0.0,) * 3 for bone, i in zip(bones, group.bones, strict=True)]
    policy = OutOfReach(settings[0].out_of_reach) if len(own) == 1 else OutOfReach.EXTEND
    if policy is OutOfReach.PUSH_ROOT and bones[0].parent is not None and bones[0].bone.use_connect:
        policy = OutOfReach.EXTEND
    is_stiff = any(any(s) for s in stiffness)
    # What 0.1.0 made of stiffness alone is what limits make of it that let everything through.
    as_limited = is_stiff and len(own) == 1 and not stiffness_is_shared(settings[0])
    is_bounded = as_limited or any(r != (FREE,) * 3 for r in ranges)
    limits = tuple((*x, *z, *y) for x, z, y in ranges) if is_bounded else None
    return Shape(
        solver=_solver(settings),
        out_of_reach=policy,
        iterations=max(s.iterations for s in settings),
        parents=tuple(place.get(int(skeleton.parents[bone]), -1) for bone in group.bones),
        segments=tuple(place[chain.bones[-1]] for chain in own),
        weights=tuple(s.weight for s in settings) if len(own) > 1 else (1.0,),
        poles=tuple(chain.has_pole for chain in own),
        turns=tuple(chain.turns for chain in own),
        inherits=tuple(bone.bone.use_inherit_rotation for bone in bones),
        stretch_weights=tuple(bone.ik_stretch for bone in bones),
        limits=limits,
        stiffness=tuple(stiffness) if is_stiff else None,
        bend_lead=settings[0].bend_lead if len(own) == 1 else 0.0,
        planar=settings[0].planar and len(own) == 1,
        plain=bool(skeleton.plain[list(group.bones)].all()),
    )


def _solver(settings: Sequence[IKAddonChain]) -> Solver:
    """The solver of chains that are solved together: FABRIK where one of them asks for it."""
    asked = [solver_of(chain) for chain in settings]
    if Solver.FABRIK in asked:
        return Solver.FABRIK
    # A chain for the two-bone solver was checked; on a frame on which a bone has no length another one must do.
    return Solver.EVEN_BEND if asked[0] is Solver.EVEN_BEND else Solver.AUTO


def _stands(ob: bpy.types.Object, skeleton: Skeleton, groups: list[Group], live: Collection[int]) -> bool:
    """Whether all that the groups hang on stays where it is, unless it is animated."""
    above = {bone for group in groups for bone in skeleton.ancestors(group.bones[0])}
    return above.isdisjoint(live) and not any(ob.pose.bones[bone].constraints for bone in above)


def _sampled(skeleton: Skeleton, groups: list[Group], solved: Collection[int], wanted: list[int]) -> Ints:
    """Parents of groups, and the bones that are wanted."""
    sampled = set(wanted)
    for path in (
        *(skeleton.ancestors(group.bones[0]) for group in groups),
        *([bone, *skeleton.ancestors(bone)] for bone in wanted),
    ):
        first = next((i for i, bone in enumerate(path) if bone in solved), None)
        if first is None:
            sampled.update(path[:1])
        elif first:
            # The bones in between follow the solved one as they stand to it now, so that one is needed as well.
            sampled.update(path[: first + 1])
    return np.array(sorted(sampled), dtype=np.int64)
