"""Which chains depend on which, across all armatures, because they move each other's roots or goals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from .order import all_needs, in_order
from .plan import Plan
from .sources import Carrier

Node = tuple[int, int, int]
"""Chains that are solved together, as (`session_uid` of the armature, index of the wave, index of the group in it)."""


def in_loops(plans: Mapping[int, Plan]) -> set[int]:
    """Return the armatures that have chains in a dependency loop, also through other armatures.

    `plans` and the result are by the `session_uid` of the armature.
    """
    needs = _needs(plans)
    return {uid for uid, _, _ in in_order(needs, needs)[1]}


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
        return [plan.chains[c].tip for c in plan.waves[node[1]].chains[node[2]].tolist()]

    start = [node for node in needs if node[0] == uid and not set(tips).isdisjoint(of(node))]
    followed = {other for node in start for other in all_needs(node, needs) if other[0] != uid}
    found = [other for other in followed if any(back[0] == uid for back in all_needs(other, needs))]
    return sorted((other[0], tip) for other in found for tip in of(other))


def _needs(plans: Mapping[int, Plan]) -> dict[Node, set[Node]]:
    """Return, for each group of chains of all armatures, the groups that move its roots or goals."""
    owners: dict[tuple[int, int], Node] = {}
    for uid, plan in plans.items():
        for w, wave in enumerate(plan.waves):
            owners.update(((uid, bone), (uid, w, g)) for g, bones in enumerate(wave.bones.tolist()) for bone in bones)

    def moving(uid: int, bone: int) -> set[Node]:
        path = (bone, *plans[uid].skeleton.ancestors(bone))
        return {owners[uid, own] for own in path if (uid, own) in owners}

    def posing(carriers: Iterable[Carrier]) -> set[Node]:
        found: set[Node] = set()
        for uid, bone in carriers:
            names = plans[uid].skeleton.names if uid in plans else ()
            if bone in names:
                found |= moving(uid, names.index(bone))
        return found

    needs: dict[Node, set[Node]] = {}
    for uid, plan in plans.items():
        for w, wave in enumerate(plan.waves):
            for g, (bones, chosen) in enumerate(zip(wave.bones.tolist(), wave.chains.tolist(), strict=True)):
                found = moving(uid, bones[0]) - {(uid, w, g)}
                found |= posing(carrier for c in chosen for carrier in plan.chains[c].root_carriers) - {(uid, w, g)}
                found |= posing(carrier for c in chosen for carrier in plan.chains[c].carriers)
                needs[uid, w, g] = found
    return needs
