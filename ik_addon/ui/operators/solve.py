"""Operators that solve chains on the current frame, and that restore the FK pose."""

from typing import Literal

import numpy as np
from bpy.props import EnumProperty
from bpy.types import Context, Object, PoseBone

from ...chains import removal
from ...core import channels
from ...core.names import names_by_tip
from ...core.settings import chain_of, object_of
from ...core.translation.sentences import UserError, count, say
from ...live import reports, solving
from ...rig.plan.chain import tips
from .active import ChainedOperator, active_tip, armature, asked

CHAINS = (
    ("ALL", "All", "All chains of the armature"),
    ("ACTIVE", "Active", "The chain that the active bone belongs to"),
)


class ChainsOperator(ChainedOperator):
    """Base of operators on some chains of the active armature."""

    chains: asked(EnumProperty, "Chains", "The chains to work on", items=CHAINS, default="ALL")

    def chosen(self, context: Context) -> list[PoseBone]:
        """Return the tips of the chosen chains; raise `UserError` if there is none."""
        return [active_tip(context)] if self.chains == "ACTIVE" else tips(armature(context))


class IK_ADDON_OT_solve(ChainsOperator):
    """Solve the chains on the current frame, so that their tips reach their targets."""

    bl_label = "Solve IK"

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Solve, and report the outcome."""
        wanted = [tip.name for tip in self.chosen(context) if chain_of(tip).enabled]
        if not wanted:
            raise UserError("No chain of '{object}' is enabled. Enable one in the panel", object=ob.name)
        bones = np.arange(len(ob.pose.bones))
        before = channels.read(ob, bones)
        solving.solve_now(ob, context.evaluated_depsgraph_get(), None if self.chains == "ALL" else wanted)
        names = names_by_tip(ob)
        level, message = verdict({names.get(tip, tip): reports.get(ob, tip) for tip in wanted})
        self.report({level}, message)
        # A chain that was solved before and now fails is back in its FK pose, which needs an undo step.
        return {"FINISHED"} if level != "ERROR" or (channels.read(ob, bones) != before).any() else {"CANCELLED"}


def verdict(results: dict[str, reports.Report | None]) -> tuple[Literal["INFO", "WARNING", "ERROR"], str]:
    """Return level and text of an operator's report, given the reports on solved chains by their names."""
    known = {name: report for name, report in results.items() if report is not None}
    judged = [report for report in known.values() if not report.is_blended]
    reached = sum(report.reached for report in judged)
    to_name = {name: report for name, report in known.items() if report.is_blended or not report.reached}
    remarks = [f"'{name}': {report.message}" for name, report in to_name.items()]
    remarks += [f"'{name}': {remark}" for name, report in known.items() for remark in report.remarks]
    if all(report.failed for report in known.values()):
        return "ERROR", ". ".join([say("Nothing was solved"), *remarks])
    if reached == len(judged):
        summary = [count(reached, "1 chain reached", "{count} chains reached")] if judged else []
    else:
        some = say("{reached} of {count} chains reached", reached=reached, count=len(judged))
        summary = [some] if len(judged) > 1 else []
    return "INFO" if reached == len(judged) else "WARNING", ". ".join([*summary, *remarks])


class IK_ADDON_OT_restore_pose(ChainsOperator):
    """Return the bones of the chains to the FK pose they had before solving, and turn Live off."""

    bl_label = "Back to FK Pose"

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Restore the pose."""
        was_live = object_of(ob).live
        only = None if self.chains == "ALL" else self.chosen(context)
        restored = removal.restore_pose(ob, context.view_layer, only)
        said = [say("No chain is solved. The pose is unchanged")]
        if restored:
            said = [count(restored, "Restored the FK pose of 1 bone", "Restored the FK pose of {count} bones")]
        if was_live:
            said.append(say("Live turned off"))
        self.report({"INFO"}, ". ".join(said))
        return {"FINISHED"} if restored or was_live else {"CANCELLED"}
