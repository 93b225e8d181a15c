"""Why a chain can't follow a target or pole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import bpy

from ...core.translation.sentences import say
from .sources import Part, uid_of

if TYPE_CHECKING:
    from .presence import Presence


def why_absent(goal: bpy.types.Object, role: str, presence: Presence) -> str:
    """Return why a target or pole is not in the view layer, and what to do; empty if it is.

    A chain still holds an object that was deleted.
    """
    if uid_of(goal) in presence.present:
        return ""
    if goal.library is not None and not goal.users_scene:  # linked only because the chain points to it
        return say(
            {
                "target": "The target '{goal}' was not linked with the character. "
                "In '{library}', move its collection into the character's, or choose another target",
                "pole": "The pole '{goal}' was not linked with the character. "
                "In '{library}', move its collection into the character's, or choose another pole",
            }[role],
            goal=goal.name,
            library=goal.library.name,
        )
    return say(
        {
            "target": "The target '{goal}' was deleted or is excluded from this view layer. Choose another target",
            "pole": "The pole '{goal}' was deleted or is excluded from this view layer. Choose another pole",
        }[role],
        goal=goal.name,
    )


def why_unfit(
    ob: bpy.types.Object,
    bones: Sequence[bpy.types.PoseBone],
    goal: bpy.types.Object,
    goal_bone: str,
    role: str,
    presence: Presence,
) -> str:
    """Return why the bones of a chain can't follow a target or pole, and what to do; empty if they can."""
    if absent := why_absent(goal, role, presence):
        return absent
    if not presence.evaluates(goal):
        return say(
            {
                "target": "The target '{goal}' or its collection is disabled in viewports. "
                "Enable it, and hide it with the eye icon if needed",
                "pole": "The pole '{goal}' or its collection is disabled in viewports. "
                "Enable it, and hide it with the eye icon if needed",
            }[role],
            goal=goal.name,
        )
    if goal_bone and goal.type == "ARMATURE" and goal_bone not in goal.pose.bones:
        return say(
            {
                "target": "The target armature '{goal}' has no bone '{goal_bone}'. Choose another bone",
                "pole": "The pole armature '{goal}' has no bone '{goal_bone}'. Choose another bone",
            }[role],
            goal=goal.name,
            goal_bone=goal_bone,
        )
    moving = presence.sources.carriers([Part(goal, goal_bone)])
    own = next((bone.name for bone in reversed(bones) if (uid_of(ob), bone.name) in moving), None)
    if own is None:
        return ""
    return say(
        {
            "target": "The target '{goal}' is attached to '{own}', part of this chain. Attach it to something else",
            "pole": "The pole '{goal}' is attached to '{own}', part of this chain. Attach it to something else",
        }[role],
        goal=goal.name,
        own=own,
    )
