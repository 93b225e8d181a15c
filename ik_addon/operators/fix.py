"""One-click fixes for what keeps a chain from being solved, where that is simple and safe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import bpy
from bpy.props import StringProperty

from ..data.chain_settings import IKAddonChain
from ..data.settings import chain_of, object_of, unusable
from ..live import reports
from ..pose.channels import rotation_field
from ..rig.plan import chain as chains
from ..rig.plan.presence import is_in
from ..solve import Status
from .active import ArmatureOperator, armature

LOCKS = ("lock_ik_x", "lock_ik_y", "lock_ik_z")


class Fix(NamedTuple):
    """Something that can be done about a chain."""

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
    if not report.reached:
        # With iterations to spare, more of them change nothing.
        if report.status is Status.NOT_CONVERGED and report.iterations >= chain.iterations:
            more = 2 * chain.iterations
            return Fix(f"Increase Iterations to {more}", lambda: setattr(chain, "iterations", more))
        locked = [bone for bone in chains.chain_bones(tip) if all(getattr(bone, name) for name in LOCKS)]
        if report.status is Status.LIMITED and chain.use_limits and locked:
            label = f"Unlock '{locked[0].name}'" if len(locked) == 1 else f"Unlock {len(locked)} Bones"
            return Fix(label, lambda: _unlock(locked))
    still = (
        Fix(f"Enable {role.title()} in Renders", partial(_enable, off, "hide_render"))
        for role, goal in (("target", chain.target), ("pole", chain.pole))
        if goal is not None and (off := _disabled(goal, view_layer.layer_collection, "hide_render"))
    )
    return next(still, None)


def _fixes(ob: bpy.types.Object, tip: bpy.types.PoseBone, view_layer: bpy.types.ViewLayer) -> Iterator[Fix]:
    """Everything that can be fixed, in the order in which `rig.plan.chain.check` finds it."""
    chain, bones = chain_of(tip), chains.chain_bones(tip)
    for name, label in unusable(chain):
        yield Fix(f"Reset {label}", partial(chain.property_unset, name))
        return
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
    layer = view_layer.layer_collection
    if not is_in(view_layer.objects, goal):
        excluded = [found for found in _layers_of(goal, layer) if found.exclude]
        if excluded:
            yield Fix(f"Include '{excluded[0].name}'", lambda: setattr(excluded[0], "exclude", False))
        else:
            yield Fix(f"Clear {role.title()}", lambda: setattr(chain, role, None))
    elif off := _disabled(goal, layer, "hide_viewport"):
        yield Fix(f"Enable {role.title()} in Viewports", partial(_enable, off, "hide_viewport"))
    elif bone and goal.type == "ARMATURE" and bone not in goal.pose.bones:
        yield Fix(f"Clear {role.title()} Bone", lambda: setattr(chain, f"{role}_bone", ""))


def _layers_of(goal: bpy.types.Object, layer: bpy.types.LayerCollection) -> Iterator[bpy.types.LayerCollection]:
    """The collections of a view layer that an object is in itself."""
    if is_in(layer.collection.objects, goal):
        yield layer
    for child in layer.children:
        yield from _layers_of(goal, child)


def _disabled(
    goal: bpy.types.Object, layer: bpy.types.LayerCollection, switch: str
) -> list[bpy.types.Object | bpy.types.Collection]:
    """What keeps an object from being evaluated: itself, or the collections on one way to it; empty where it is."""
    own = [goal] if getattr(goal, switch) else []
    ways = list(_ways_to(goal, layer))
    off = [[found.collection for found in way if getattr(found.collection, switch)] for way in ways]
    return [*own, *min(off, key=len, default=[])]


def _ways_to(goal: bpy.types.Object, layer: bpy.types.LayerCollection) -> Iterator[list[bpy.types.LayerCollection]]:
    if layer.exclude:
        return
    if is_in(layer.collection.objects, goal):
        yield [layer]
    for child in layer.children:
        for way in _ways_to(goal, child):
            yield [layer, *way]


def _enable(items: list[bpy.types.Object | bpy.types.Collection], switch: str) -> None:
    for item in items:
        setattr(item, switch, False)


def _unlock(bones: list[bpy.types.PoseBone]) -> None:
    for bone in bones:
        for name in LOCKS:
            setattr(bone, name, False)


def _mute(items: list[bpy.types.Constraint] | list[bpy.types.FCurve]) -> None:
    for item in items:
        item.mute = True


class IK_ADDON_OT_chain_fix(ArmatureOperator):
    """Fix what keeps a chain from being solved."""

    bl_idname = "ik_addon.chain_fix"
    bl_label = "Fix Chain"
    bl_description = "Fix what keeps this chain from being solved, as the button says"
    bl_options = {"REGISTER", "UNDO", "INTERNAL"}  # noqa: RUF012 - as Blender wants it

    tip: StringProperty(name="Tip", description="The tip bone of the chain", options={"HIDDEN", "SKIP_SAVE"})

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Do it, and let the chain be solved anew."""
        ob = armature(context)
        tip: bpy.types.PoseBone | None = ob.pose.bones.get(self.tip)
        fix = None if tip is None else fix_of(tip, reports.get(ob, self.tip), context.view_layer)
        if fix is None:
            self.report({"ERROR"}, f"Nothing to fix on '{self.tip}'")
            return {"CANCELLED"}
        fix.apply()
        reports.clear(ob, [self.tip])
        ob.update_tag()
        context.view_layer.update()  # solves where Live is on
        self.report({"INFO"}, f"'{self.tip}': {fix.label}")
        return {"FINISHED"}


def needs_lock(context: bpy.types.Context) -> bool:
    """Whether rendering this scene in a window is unsafe: live chains, something to render, an unlocked interface."""
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
        """Lock it."""
        context.scene.render.use_lock_interface = True
        return {"FINISHED"}


CLASSES = (IK_ADDON_OT_chain_fix, IK_ADDON_OT_lock_interface)
