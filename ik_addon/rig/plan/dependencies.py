"""Which chains depend on which, across all armatures: what moves their roots and their goals."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .order import all_needs, in_order
from .plan import Plan

Node = tuple[int, int, int]
"""Chains that are solved together: their armature, and their place among its waves and in one of them."""


def in_loops(plans: Mapping[int, Plan]) -> set[int]:
    """Those armatures of which chains are in a dependency loop, also through other armatures.

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
                of_goals = (attachment for c in chosen for attachment in plan.chains[c].goal_attachments)
                for parent, _turns in (*plan.root_attachments, *of_goals):
                    names = plans[parent.armature].skeleton.names if parent.armature in plans else ()
                    if parent.bone in names:
                        found |= moving(parent.armature, names.index(parent.bone))
                needs[uid, w, g] = found
    return needs
