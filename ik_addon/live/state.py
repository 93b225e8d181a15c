"""What the channels of a live armature hold, as one view layer knows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import bpy

from ..rig.plan.plan import Plan
from ..rig.plan.watch import Value
from ..rig.read.sample import Sample
from ..rig.write.lookup import Lookup
from ..rig.write.waves import Posed
from .playback import Playback

PLANS = 32
"""How many plans a view keeps for settings that change from frame to frame."""


class State(Enum):
    """The states of an armature in a view layer; `docs/live.md` has the table of what happens in each."""

    UNKNOWN = "unknown"
    """The channels hold who knows what: after loading, undo, or a solve on another frame or in another scene."""
    RESTORED = "restored"
    """The channels hold the stored FK pose; Blender is about to evaluate the frame from it."""
    SOLVED = "solved"
    """The channels hold the solution, and the FK pose of the frame is known."""
    PLAYBACK = "playback"
    """The channels hold the solution, and F-curves determine all frames: the next is posed without the FK pose."""
    FAILED = "failed"
    """An error nobody expected: the channels are left alone until a setting changes."""
    READ_ONLY = "read-only"
    """Blender lets nobody pose the armature: it is linked, or its library override is not editable."""


@dataclass
class View:
    """An armature in one view layer: its plan there, and what saves solving it again."""

    plan: Plan
    state: State = State.UNKNOWN
    solved: tuple[Sample, Posed, bool] | None = None
    """The last frame that was solved, where all that it depends on is in the sample; and whether by tables."""
    lookup: Lookup | None = None
    tables_made: int = 0
    """How often an FK pose was tabulated."""
    playback: Playback | None = None
    is_dragged: bool = False
    """It follows goals that are moved on one frame."""
    may_be_keyed: bool = True
    """Nothing was found that keeps it from being followed by its F-curves."""
    plans: dict[Value, Plan] = field(default_factory=dict)
    """By the values of what they watch."""

    def find(self, depsgraph: bpy.types.Depsgraph) -> Plan | None:
        """The plan for the frame at which a depsgraph is evaluated, if it was made before."""
        return self.plan if not self.plan.watch else self.plans.get(self.plan.watch.values(depsgraph))

    def take(self, plan: Plan) -> None:
        """Go on with a plan for other values of what is watched."""
        if plan is not self.plan:
            self.plan, self.solved, self.lookup, self.playback = plan, None, None, None
        if plan.watch and plan.seen not in self.plans:
            if len(self.plans) >= PLANS:
                self.plans.clear()
            self.plans[plan.seen] = plan
