"""Operators that snap goals to the pose, and that make the solved pose the FK pose."""

from __future__ import annotations

from collections.abc import Generator

import bpy
from bpy.props import EnumProperty

from ....core.report import count_of_frames
from ....core.settings import chain_of
from ....core.translation.sentences import UserError, count, marked, quoted, say
from ....targets import ik_fk, snap
from ....targets.snapped import Poles
from ..clip.frame_range import FramesOperator

POSES = (
    ("AUTO", "Automatic", "The visible pose of solved chains; on a range of frames, the FK pose"),
    ("FK", "FK Pose", "The pose of the bones without this chain"),
    ("SHOWN", "Shown Pose", "The visible pose, with everything solved"),
)


POLES = (
    ("MATCH", "Match Pose", "Move poles to where the limbs bend in the pose"),
    ("TWIST", "Keep Twist", "Move poles so that limbs keep their twist when their FK keys are removed afterwards"),
    ("FOOT", "Follow Foot", "Move the poles of legs to where their toes point, and other poles to match the pose"),
    ("KEEP", "Leave Alone", "Leave poles where they are; the limbs bend towards them"),
)


class IK_ADDON_OT_snap_target(FramesOperator):
    """Move targets and poles to match the pose."""

    bl_label = "Targets to Pose"
    bl_description = "Move the target and the pole to match the visible pose, so that solving changes nothing"

    pose: EnumProperty(name="Pose", description="The pose to match", items=POSES, default="AUTO")
    poles: EnumProperty(name="Poles", description="What to do with poles", items=POLES, default="MATCH")

    first = ("chains", "pose", "poles")
    title = marked("Targets to Pose (Range)")
    confirm = marked("Snap")
    doing = marked("Snapping targets")
    cancelled = marked("Snapping cancelled. Nothing was changed")

    def steps(
        self, context: bpy.types.Context, ob: bpy.types.Object
    ) -> Generator[float, None, tuple[int, int | None, list[str]]]:
        """Snap goals; yields progress (0 to 1).

        Returns:
            Numbers of chains and of frames (None: the current frame), and remarks.
        """
        found = self.chosen(context)
        frames, poles = self.frames_or_now(context), Poles[self.poles]
        if frames is not None:
            remarks = yield from snap.key_range(context, ob, found, frames, shown=self.pose == "SHOWN", poles=poles)
            return len(found), len(frames), remarks
        remarks = []
        for shown in (True, False):
            own = [
                tip for tip in found if (snap.is_solved(tip) if self.pose == "AUTO" else self.pose == "SHOWN") == shown
            ]
            remarks += snap.snap_here(context, ob, own, shown=shown, poles=poles) if own else []
        return len(found), None, remarks

    def finish(self, result: tuple[int, int | None, list[str]]) -> set[str]:
        """Report the result of `steps`."""
        chains, frames, remarks = result
        done = count(chains, "Snapped the target", "Snapped the targets of {count} chains")
        if frames is not None:
            done = say("{done} on {frames}", done=done, frames=count_of_frames(frames))
        return self.done(done, remarks)


class IK_ADDON_OT_apply_pose(FramesOperator):
    """Make the solved pose the FK pose."""

    bl_label = "Solved Pose to FK"
    bl_description = "Make the solved pose the FK pose, so that it stays when the chain is disabled"

    confirm = marked("Apply")
    doing = marked("Applying the solved pose")
    cancelled = marked("Applying cancelled. Nothing was changed")

    def steps(self, context: bpy.types.Context, ob: bpy.types.Object) -> Generator[float, None, tuple[str, list[str]]]:
        """Apply the solved pose; yields progress (0 to 1).

        Returns:
            A sentence that says what was done, and remarks.
        """
        found = [tip for tip in self.chosen(context) if chain_of(tip).enabled]
        if not found:
            raise UserError("None of these chains is enabled. Select a bone of an enabled chain")
        done = say("Applied the solved pose to {names}", names=quoted(tip.name for tip in found))
        frames = self.frames_or_now(context)
        if frames is not None:
            report = yield from ik_fk.apply_range(context, ob, found, frames)
            done = say("{done} on {frames}", done=done, frames=count_of_frames(report.frames))
            return done, [] if report.plays_alike and not report.missed else [report.message]
        return done, ik_fk.apply_pose(context, ob, found)

    def finish(self, result: tuple[str, list[str]]) -> set[str]:
        """Report the result of `steps`."""
        message, remarks = result
        return self.done(message, remarks)
