"""One-click fixes for problems that keep a chain from being solved, where a fix is simple and safe."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator
from functools import partial

import bpy
from bpy.props import StringProperty

from ....chains.exceeded import exceeded, fit
from ....chains.make_controls import can_be_made, editing
from ....chains.mirror import mirror_chain
from ....chains.new_chain import make_own
from ....core import compat
from ....core.channels import rotation_field
from ....core.constraints import drivers_on, fighting_constraints
from ....core.settings import chain_of, object_of, unset, unusable
from ....core.translation.sentences import UserError, is_one_of, say
from ....live import reports
from ....rig.plan import chain as chains
from ....rig.plan.followers import borrowed
from ....rig.plan.groups import LOOP, LOOP_OF_ARMATURES
from ....solve import Status
from ....targets.snap import goes_beyond_limits
from ..active import ArmatureOperator, candidate
from ..settings import given
from .fix import Fix, mute_label, set_all
from .targets import fixes_in_renders, fixes_of_goal, fixes_of_loop, fixes_of_transforms

LOCKS = ("lock_ik_x", "lock_ik_y", "lock_ik_z")


def fix_of(tip: bpy.types.PoseBone, report: reports.Report | None, view_layer: bpy.types.ViewLayer) -> Fix | None:
    """Return a fix for the last report on the chain on `tip`; None: no simple fix, or nothing is wrong."""
    if report is None:
        return next(_fixes_of_sharing(tip), None)
    if report.failed:
        if _is_in_loop(report):
            return next(fixes_of_loop(tip, lambda other: _is_in_loop(reports.get(tip.id_data, other))), None)
        return next(_fixes(tip.id_data, tip, view_layer), None)
    chain = chain_of(tip)
    if not report.reached:
        # If the solver stopped with iterations left, more of them change nothing.
        if report.status is Status.NOT_CONVERGED and report.iterations >= chain.iterations:
            more = 2 * chain.iterations
            return Fix(say("Increase Iterations to {count}", count=more), lambda: setattr(chain, "iterations", more))
        locked = [bone for bone in chains.chain_bones(tip) if all(getattr(bone, name) for name in LOCKS)]
        if report.status is Status.LIMITED and chain.use_limits and locked:
            one = say("Unlock '{bone}'", bone=locked[0].name)
            label = one if len(locked) == 1 else say("Unlock {count} Bones", count=len(locked))
            return Fix(label, partial(set_all, locked, LOCKS, False))
    return next(itertools.chain(fixes_in_renders(chain, view_layer), _fixes_of_remarks(tip)), None)


def _is_in_loop(report: reports.Report | None) -> bool:
    return report is not None and is_one_of(report.message, LOOP, LOOP_OF_ARMATURES)


def _fixes(ob: bpy.types.Object, tip: bpy.types.PoseBone, view_layer: bpy.types.ViewLayer) -> Iterator[Fix]:
    """Yield fixes in the order in which `rig.plan.chain.check`, and after it the plan, find the problems."""
    chain, bones = chain_of(tip), chains.chain_bones(tip)
    for name, label in unusable(chain):
        yield Fix(say("Reset {setting}", setting=say(label)), partial(unset, chain, name))
        return
    if ob.data.pose_position == "REST":
        yield Fix(say("Switch to Pose Position"), lambda: setattr(ob.data, "pose_position", "POSE"))
    for role in ("target", "pole"):
        yield from fixes_of_goal(tip, role, view_layer)
    if chain.end_bone and chains.end_of(tip) is None:
        yield Fix(say("Clear End Bone"), lambda: setattr(chain, "end_bone", ""))
    fighting = [constraint for _, constraint in fighting_constraints(ob, chains.posed_bones(tip))]
    end = chains.turning_end(tip)
    if end is not None:
        fighting += [constraint for _, constraint in chains.holding_constraints(ob, tip, end)]
    if fighting:
        yield Fix(mute_label(fighting), partial(set_all, fighting, ("mute",), True))
    paths = {f"{bone.path_from_id()}.{rotation_field(bone.rotation_mode)}" for bone in chains.posed_bones(tip)}
    yield from _fixes_of_drivers(ob, paths)
    if end is not None and chains.upright_between(tip, end):
        yield Fix(say("Clear End Bone"), lambda: setattr(chain, "end_bone", ""))
    if chain.solver == "TWO_BONE" and len(bones) != 2:
        yield Fix(say("Use Automatic Solver"), lambda: setattr(chain, "solver", "AUTO"))
    yield from _fixes_of_bones(bones, limited=chain.use_limits)
    yield from fixes_of_transforms(tip)
    others = [other for other in chains.tips(ob) if other != tip and chain_of(other).enabled]
    led = set() if end is None else {end, *chains.between(tip, end)}
    if any(not led.isdisjoint(chains.posed_bones(other)) for other in others):
        yield Fix(say("Turn Off End Rotation"), lambda: setattr(chain, "use_end_rotation", False))
    if chain.solver == "TWO_BONE":
        yield Fix(say("Use Automatic Solver"), lambda: setattr(chain, "solver", "AUTO"))


def _fixes_of_bones(bones: list[bpy.types.PoseBone], *, limited: bool) -> Iterator[Fix]:
    """Yield fixes for Blender's own IK settings of bones that are not finite."""
    for bone in bones:
        names = [f"ik_stiffness_{axis}" for axis in "xyz" if limited] + ["ik_stretch"]
        broken = [name for name in names if not math.isfinite(getattr(bone, name))]
        if broken:
            yield Fix(say("Reset IK of '{bone}'", bone=bone.name), partial(set_all, [bone], broken, 0.0))


def _fixes_of_remarks(tip: bpy.types.PoseBone) -> Iterator[Fix]:
    """Yield fixes for remarks on a solved chain."""
    yield from _fixes_of_sharing(tip)
    chain, bones = chain_of(tip), chains.chain_bones(tip)
    other = chains.mirrored_from(tip)
    if other is not None:
        label = say("Mirror '{other}'", other=other.name)
        yield Fix(label, partial(mirror_chain, bpy.context, other))
    if goes_beyond_limits(tip):
        yield Fix(say("Fit Limits to Animation"), lambda: fit(exceeded(tip)))
    if chain.chain_length > len(bones):
        count = len(bones)
        label = say("Set Chain Length to {count}", count=count)
        yield Fix(label, lambda: setattr(chain, "chain_length", count))
    root, ob = bones[0], tip.id_data
    if chains.is_connected(chain, root) and can_be_made(bpy.context, ob) and ob.data.users == 1:
        yield Fix(say("Disconnect '{bone}'", bone=root.name), partial(_disconnect, ob, root.name))
    yield from _fixes_of_drivers(ob, chains.out_of_reach_paths(chain, bones))


def _fixes_of_sharing(tip: bpy.types.PoseBone) -> Iterator[Fix]:
    """Yield a fix for an armature that was copied without its targets."""
    if borrowed(tip):
        yield Fix(say("Make Own Targets"), partial(make_own, bpy.context, tip.id_data))


def _fixes_of_drivers(ob: bpy.types.Object, paths: Collection[str]) -> Iterator[Fix]:
    """Yield a fix that mutes the drivers on data paths."""
    driving = drivers_on(ob, paths)
    if driving:
        yield Fix(say("Mute Drivers"), partial(set_all, driving, ("mute",), True))


def _disconnect(ob: bpy.types.Object, bone: str) -> None:
    with editing(bpy.context, ob) as bones:
        bones[bone].use_connect = False


class IK_ADDON_OT_chain_fix(ArmatureOperator):
    """Fix a problem that keeps a chain from being solved."""

    bl_idname = "ik_addon.chain_fix"
    bl_label = "Fix Chain"
    bl_description = "Fix what keeps this chain from being solved, as the button says"
    bl_options = {"REGISTER", "UNDO", "INTERNAL"}  # noqa: RUF012 - as Blender wants it

    tip: given(StringProperty, "Tip", "The tip bone of the chain")

    @classmethod
    def description(cls, context: bpy.types.Context, properties: bpy.types.OperatorProperties) -> str:
        """Return the label of the fix as a tooltip, since the button may be too small to show it."""
        fix = _fix_on(context, getattr(properties, "tip", ""))
        return say(cls.bl_description) if fix is None else fix.label

    def perform_on(self, context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Apply the fix, and solve the chain again if Live is on."""
        fix = _fix_on(context, self.tip)
        if fix is None:
            raise UserError("Nothing to fix on '{tip}'", tip=self.tip)
        try:
            fix.apply()
        except RuntimeError as error:
            return self.refuse(str(error))
        reports.clear(ob, [self.tip])
        compat.tag(ob)
        context.view_layer.update()  # solves if Live is on
        return self.done(f"'{self.tip}': {fix.label}")


def _fix_on(context: bpy.types.Context, name: str) -> Fix | None:
    ob = candidate(context)
    tip = None if ob is None or ob.pose is None else ob.pose.bones.get(name)
    return None if tip is None else fix_of(tip, reports.get(ob, name), context.view_layer)


def needs_lock(context: bpy.types.Context) -> bool:
    """Whether rendering an animation in a window is unsafe: there are live chains, and the interface is not locked."""
    scene = context.scene
    if scene.render.use_lock_interface or scene.camera is None or scene.frame_start == scene.frame_end:
        return False
    return any(
        ob.type == "ARMATURE" and object_of(ob).live and any(chain_of(tip).enabled for tip in chains.tips(ob))
        for ob in context.view_layer.objects
    )


class IK_ADDON_OT_lock_interface(bpy.types.Operator):
    """Lock the interface while rendering."""

    bl_idname = "ik_addon.lock_interface"
    bl_label = "Lock Interface"
    bl_description = (
        "Lock the interface during rendering (Render > Lock Interface): live chains set poses while frames "
        "render, and drawing them in the viewport at the same time can crash Blender"
    )
    bl_options = {"REGISTER", "UNDO", "INTERNAL"}  # noqa: RUF012 - as Blender wants it

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Turn on Lock Interface."""
        context.scene.render.use_lock_interface = True
        return {"FINISHED"}
