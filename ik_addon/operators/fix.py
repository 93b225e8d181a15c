"""One click for what keeps a chain from being solved, where that is simple and safe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import bpy
from bpy.props import StringProperty

from .. import reports
from ..rig import chain as chains
from ..rig.channels import rotation_field
from ..settings import IKAddonChain, chain_of
from ..solve import Status
from .active import ArmatureOperator, armature


class Fix(NamedTuple):
    """What can be done about a chain."""

    label: str
    """Text of the button."""
    apply: Callable[[], None]


def fix_of(tip: bpy.types.PoseBone, report: reports.Report | None, view_layer: bpy.types.ViewLayer) -> Fix | None:
    """What can be done about the last report on the chain on `tip`; None: nothing simple, or nothing is wrong."""
    if report is None:
        return None
    if report.failed:
        return next(_fixes(tip.id_data, tip, view_layer), None)
    chain = chain_of(tip)
    if report.status is Status.NOT_CONVERGED:
        more = 2 * chain.iterations
        return Fix(f"Allow {more} Iterations", lambda: setattr(chain, "iterations", more))
    return None


def _fixes(ob: bpy.types.Object, tip: bpy.types.PoseBone, view_layer: bpy.types.ViewLayer) -> Iterator[Fix]:
    """Everything that can be put right, in the order in which `rig.chain.check` finds it."""
    chain, bones = chain_of(tip), chains.chain_bones(tip)
    if ob.data.pose_position == "REST":
        yield Fix("Switch to Pose Position", lambda: setattr(ob.data, "pose_position", "POSE"))
    for role in ("target", "pole"):
        yield from _goal_fixes(chain, role, view_layer)
    fighting = [constraint for _, constraint in chains.fighting_constraints(ob, bones)]
    if fighting:
        label = f"Mute '{fighting[0].name}'" if len(fighting) == 1 else f"Mute {len(fighting)} Constraints"
        yield Fix(label, lambda: _mute(fighting))
    paths = {f"{bone.path_from_id()}.{rotation_field(bone.rotation_mode)}" for bone in bones}
    drivers = ob.animation_data.drivers if ob.animation_data is not None else ()
    driving = [driver for driver in drivers if driver.data_path in paths and not driver.mute]
    if driving:
        yield Fix("Mute Drivers", lambda: _mute(driving))
    if chain.solver == "TWO_BONE":
        yield Fix("Use Automatic Solver", lambda: setattr(chain, "solver", "AUTO"))


def _goal_fixes(chain: IKAddonChain, role: str, view_layer: bpy.types.ViewLayer) -> Iterator[Fix]:
    goal, bone = getattr(chain, role), getattr(chain, f"{role}_bone")
    if goal is None:
        return
    if view_layer.objects.get(goal.name) != goal:
        yield Fix(f"Clear {role.title()}", lambda: setattr(chain, role, None))
    elif goal.hide_viewport:
        yield Fix(f"Enable {role.title()} in Viewports", lambda: setattr(goal, "hide_viewport", False))
    elif bone and goal.type == "ARMATURE" and bone not in goal.pose.bones:
        yield Fix(f"Clear {role.title()} Bone", lambda: setattr(chain, f"{role}_bone", ""))


def _mute(items: list[bpy.types.Constraint] | list[bpy.types.FCurve]) -> None:
    for item in items:
        item.mute = True


class IK_ADDON_OT_chain_fix(ArmatureOperator):
    """Put right what keeps a chain from being solved."""

    bl_idname = "ik_addon.chain_fix"
    bl_label = "Fix Chain"
    bl_description = "Put right what keeps this chain from being solved, as the button says"
    bl_options = {"REGISTER", "UNDO", "INTERNAL"}  # noqa: RUF012 - as Blender wants it

    tip: StringProperty(name="Tip", description="The bone that carries the chain", options={"HIDDEN", "SKIP_SAVE"})

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Do it, and let the chain be solved anew."""
        ob = armature(context)
        tip: bpy.types.PoseBone | None = ob.pose.bones.get(self.tip)
        fix = None if tip is None else fix_of(tip, reports.get(ob, self.tip), context.view_layer)
        if fix is None:
            self.report({"ERROR"}, f"There is nothing to fix on '{self.tip}'")
            return {"CANCELLED"}
        fix.apply()
        reports.clear(ob, [self.tip])
        ob.update_tag()
        context.view_layer.update()  # solves where Live is on
        self.report({"INFO"}, f"'{self.tip}': {fix.label}")
        return {"FINISHED"}


CLASSES = (IK_ADDON_OT_chain_fix,)
