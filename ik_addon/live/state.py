"""What the channels of a live armature hold, as far as one view layer knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import bpy

from ..rig.plan.plan import Plan
from ..rig.plan.watch import Value
from ..rig.read.frames import Frames
from ..rig.write.waves import Last
from .memory import Memory

PLANS = 32
"""Maximum number of plans that a view keeps for settings that change from frame to frame."""


class State(Enum):
    """The states of an armature in a view layer; `docs/live.md` has the table of what happens in each."""

    UNKNOWN = "unknown"
    """It is unknown what the channels hold: after loading, undo, or a solve on another frame or in another scene."""
    SOLVED = "solved"
    """The channels hold the solution, and the FK pose of the frame is known."""
    FAILED = "failed"
    """An unexpected error was raised: the channels are left alone until a setting changes."""
    READ_ONLY = "read-only"
    """Blender lets nobody pose the armature: it is linked, or its library override is not editable."""


@dataclass
class View:
    """An armature in one view layer: its plan there, and what saves solving it again."""

    plan: Plan
    state: State = State.UNKNOWN
    memory: Memory = field(default_factory=Memory)
    last: Last = field(default_factory=Last)
    """What was solved last."""
    frames: Frames | None = None
    """The last frame, before it was solved."""
    plans: dict[Value, Plan] = field(default_factory=dict)
    """The plans, by the values of what they watch."""

    def find(self, depsgraph: bpy.types.Depsgraph) -> Plan | None:
        """Return the plan for the frame at which a depsgraph is evaluated, if it was made before."""
        return self.plan if not self.plan.watch else self.plans.get(self.plan.watch.values(depsgraph))

    def take(self, plan: Plan) -> None:
        """Go on with a plan, for other values of what is watched."""
        if plan is not self.plan:
            self.plan, self.memory, self.last, self.frames = plan, Memory(), Last(), None
        if plan.watch and plan.seen not in self.plans:
            if len(self.plans) >= PLANS:
                self.plans.clear()
            self.plans[plan.seen] = plan
