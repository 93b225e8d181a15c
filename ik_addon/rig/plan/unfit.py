"""Why a chain can't follow a target or pole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import bpy

from ...core.goals import Goal
from ...core.translation.sentences import say
from .sources import Part, uid_of

if TYPE_CHECKING:
    from .presence import Presence


def why_absent(goal: bpy.types.Object, presence: Presence) -> str:
    """Return why a target or pole is not in the view layer, and what to do; empty if it is.

    A chain still holds an object that was deleted.
    """
    if uid_of(goal) in presence.present:
        return ""
    if goal.library is not None and not goal.users_scene:  # linked only because the chain points to it
        return say(
            "'{goal}' was not linked with the character. In '{library}', move its collection into the character's, "
            "or choose another object",
            goal=goal.name,
            library=goal.library.name,
        )
    return say(
        "'{goal}' was deleted or is excluded from this view layer. Choose another object",
        goal=goal.name,
    )


def why_unfit(ob: bpy.types.Object, bones: Sequence[bpy.types.PoseBone], goal: Goal, presence: Presence) -> str:
    """Return why the bones of a chain can't follow a target or pole, and what to do; empty if they can."""
    name, bone = goal.ob.name, goal.bone
    if absent := why_absent(goal.ob, presence):
        return absent
    if not presence.evaluates(goal.ob):
        return say(
            "'{goal}' or its collection is disabled in viewports. Enable it, and hide it with the eye icon if needed",
            goal=name,
        )
    if bone and goal.ob.type == "ARMATURE" and bone not in goal.ob.pose.bones:
        return say("'{goal}' has no bone '{bone}'. Choose another bone", goal=name, bone=bone)
    moving = presence.sources.carriers([Part(goal.ob, bone)])
    own = next((own.name for own in reversed(bones) if (uid_of(ob), own.name) in moving), None)
    if own is None:
        return ""
    return say("'{goal}' is attached to '{own}', part of this chain. Attach it to something else", goal=name, own=own)
