"""Drag the target or pole of a chain: the chain follows, and cancelling restores everything."""

from __future__ import annotations

from contextlib import nullcontext

import bpy
from mathutils import Matrix, Quaternion, Vector

from ..bake.restore import PoseSnapshot
from ..data.settings import chain_of, goal_of, object_of
from ..goals.autokey import auto_key
from ..goals.movable import MovableGoal, why_lacking
from ..live import registry, reports, solving
from ..rig.plan.chain import ChainError, check
from ..translation.sentences import say
from .handle import Handle


class Drag:
    """A drag of a chain's target or pole."""

    turns_in_place = False

    def __init__(
        self, context: bpy.types.Context, tip: bpy.types.PoseBone, role: str = "target", *, turns: bool = False
    ) -> None:
        """Start the drag.

        Args:
            context: gives the view layer.
            tip: the tip bone of the chain.
            role: the goal to move, "target" or "pole".
            turns: the goal will only be turned.

        Raises:
            ChainError: the chain can't be solved, or its goal is missing or can't be moved.
        """
        self.ob: bpy.types.Object = tip.id_data
        self.tip = tip.name
        context.view_layer.update()
        check(self.ob, tip, context.view_layer)
        goal, bone = goal_of(chain_of(tip), role)
        if goal is None:
            raise ChainError(why_lacking(tip, role))
        self.handle = Handle(MovableGoal(goal, bone, turns))
        self._before, self._report = PoseSnapshot(self.ob), reports.get(self.ob, self.tip)

    @property
    def world(self) -> Matrix:
        """The world matrix of the goal at the start of the drag."""
        return self.handle.world

    def move(
        self, context: bpy.types.Context, offset: Vector, turn: Quaternion | None = None, *, hurried: bool = False
    ) -> reports.Report | None:
        """Move the goal by an offset from its start, turn it by a rotation, both in world space, and solve.

        If `hurried`, a large body may return its first attempt; call `settle` afterwards.
        """
        self.handle.move(offset, turn)
        with registry.hurried() if hurried else nullcontext():
            self._solve(context)
        return reports.get(self.ob, self.tip)

    def settle(self, context: bpy.types.Context) -> None:
        """Solve to full accuracy, which gives the pose that a frame change would give."""
        self.handle.owner.id_data.update_tag(refresh={"OBJECT"})
        self._solve(context)

    def _solve(self, context: bpy.types.Context) -> None:
        context.view_layer.update()  # solves if Live is on
        if not object_of(self.ob).live:
            solving.solve_now(self.ob, context.evaluated_depsgraph_get(), [self.tip])
            context.view_layer.update()

    @property
    def done(self) -> str:
        """The report at the end of the drag."""
        report = reports.get(self.ob, self.tip)
        return "" if report is None else f"'{self.tip}': {report.message}"

    def finish(self, context: bpy.types.Context) -> list[str]:
        """End the drag, and key the goal if auto keying is on.

        Returns:
            Sentences about problems with the chain.
        """
        auto_key(context, self.handle.owner, self.handle.moved)
        report = reports.get(self.ob, self.tip)
        if report is None:
            return [say("The target was moved, but not solved")]
        return [report.message] if report.failed else []

    def cancel(self, context: bpy.types.Context) -> None:
        """Restore everything exactly."""
        self.handle.put_back()
        context.view_layer.update()
        self._before.put_back()
        reports.put(self.ob, self.tip, self._report)
        context.view_layer.update()
