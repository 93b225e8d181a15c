"""One-click fixes for what keeps chains from being solved, or operators from running, where one is simple and safe."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import bpy
import numpy as np
from bpy.props import StringProperty
from bpy.types import ArmatureModifier, Constraint, Context, LayerCollection, Object, PoseBone, ViewLayer

from ...bake.skeleton import select
from ...chains.make_controls import can_be_made, editing
from ...chains.mirror import mirror_chain
from ...chains.new_chain import follow, left_for, make_own, make_target
from ...chains.profile import exceeded, fit
from ...core import compat
from ...core.channels import FIELDS, REST, is_finite, rotation_field
from ...core.constraints import active_constraints, drivers_on, fighting_constraints, is_on, targets_of
from ...core.goals import Goal, Holder
from ...core.names import chain_name
from ...core.settings import ROLES, chain_of, goal_of, unset, unusable
from ...core.skeleton import FARTHEST, is_flat, is_usable, matrix_array
from ...core.translation.sentences import UserError, is_one_of, say, source_of
from ...core.untyped import Struct
from ...live import reports, simulations
from ...rig.plan import chain as chains
from ...rig.plan import groups, limits, presence
from ...rig.plan.chain import posed_bones, tips
from ...rig.plan.followers import borrowed, goals_of
from ...rig.plan.sources import Part, Sources, uid_of
from ...solve import Status
from ...targets.snap import goes_beyond_limits
from .active import InternalStep, ReportingOperator, armature, candidate, given, obstacle


class Fix(NamedTuple):
    """A fix for one problem."""

    label: str
    """Text of the button, in the language of the interface."""
    apply: Callable[[], object]


def set_all(owners: Iterable[bpy.types.bpy_struct], names: Iterable[str], value: object) -> None:
    """Set properties of all owners to a value."""
    for owner in owners:
        for name in names:
            setattr(owner, name, value)


def setting(label: str, owners: Collection[bpy.types.bpy_struct], value: object, *names: str) -> Fix | None:
    """Return the fix that sets properties of all owners to a value; None without owners."""
    return Fix(label, partial(set_all, owners, names, value)) if owners else None


def muting(constraints: Iterable[tuple[PoseBone, Constraint]]) -> Fix | None:
    """Return the fix that mutes one or more constraints, each given with its bone; None without constraints."""
    own = [constraint for _bone, constraint in constraints]
    return setting(mute_label(own), own, True, "mute")


def mute_label(constraints: Sequence[Constraint]) -> str:
    """Return the label of a button that mutes one or more constraints."""
    if len(constraints) == 1:
        return say("Mute '{constraint}'", constraint=constraints[0].name)
    return say("Mute {count} Constraints", count=len(constraints))


LOCKS = ("lock_ik_x", "lock_ik_y", "lock_ik_z")
NUMBERS = ("ik_stiffness_x", "ik_stiffness_y", "ik_stiffness_z", "ik_stretch")


def fix_of(tip: PoseBone, report: reports.Report | None, view_layer: ViewLayer, fault: str = "") -> Fix | None:
    """Return a fix for a fault of the chain on `tip`, or for its last report; None: none is simple, or all is well."""
    fault = fault or (report.message if report is not None and report.failed else "")
    if fault:
        return _fix_for(fault, tip, view_layer) or _fix_of_transforms(tip)
    if report is None:
        return _own_targets(tip)
    chain = chain_of(tip)
    if not report.reached:
        # If the solver stopped with iterations left, more of them change nothing.
        if report.status is Status.NOT_CONVERGED and report.iterations >= chain.iterations:
            more = 2 * chain.iterations
            return setting(say("Increase Iterations to {count}", count=more), [chain], more, "iterations")
        locked = [bone for bone in chains.chain_bones(tip) if all(getattr(bone, name) for name in LOCKS)]
        if report.status is Status.LIMITED and chain.use_limits and locked:
            one = say("Unlock '{bone}'", bone=locked[0].name)
            label = one if len(locked) == 1 else say("Unlock {count} Bones", count=len(locked))
            return setting(label, locked, False, *LOCKS)
    found = next(filter(None, (_fix_for(remark, tip, view_layer) for remark in report.remarks)), None)
    if found is None and goes_beyond_limits(tip):
        return Fix(say("Fit Limits to Animation"), lambda: fit(exceeded(tip)))
    return found


def _fix_for(text: str, tip: PoseBone, view_layer: ViewLayer) -> Fix | None:
    """Return the fix for what a report or remark says about the chain on `tip`; None: no simple fix."""
    ob, chain, bones = tip.id_data, chain_of(tip), chains.chain_bones(tip)
    match sentence := source_of(text):
        case chains.AT_REST:
            return setting(say("Switch to Pose Position"), [ob.data], "POSE", "pose_position")
        case chains.UNUSABLE:
            for name, label in unusable(chain):
                return Fix(say("Reset {setting}", setting=say(label)), partial(unset, chain, name))
        case chains.NO_TARGET if chain.target is None:
            left = left_for(tip, view_layer)
            if left is None:
                return Fix(say("Make Target"), partial(make_target, bpy.context, tip))
            return Fix(say("Use '{target}'", target=left.name), partial(follow, tip, left))
        case presence.ABSENT | presence.NOT_LINKED | presence.DISABLED | presence.NO_BONE | presence.ATTACHED:
            return _fix_of_goal(sentence, tip, view_layer)
        case chains.NOT_BELOW | chains.UPRIGHT:
            return setting(say("Clear End Bone"), [chain], "", "end_bone")
        case chains.FOUGHT:
            return muting(fighting_constraints(active_constraints(ob), chains.posed_bones(tip)))
        case chains.HELD if (end := chains.turning_end(tip)) is not None:
            return muting(chains.holding_constraints(active_constraints(ob), tip, end))
        case chains.DRIVEN:
            paths = {f"{bone.path_from_id()}.{rotation_field(bone.rotation_mode)}" for bone in chains.posed_bones(tip)}
            return setting(say("Mute Drivers"), drivers_on(ob, paths), True, "mute")
        case chains.NOT_TWO:
            return setting(say("Use Automatic Solver"), [chain], "AUTO", "solver")
        case limits.STIFFNESS | limits.STRETCH:
            for bone in chains.posed_bones(tip):
                if names := [name for name in NUMBERS if not math.isfinite(getattr(bone, name))]:
                    return setting(say("Reset IK of '{bone}'", bone=bone.name), [bone], 0.0, *names)
        case groups.END_SHARED | groups.END_HELD:
            return setting(say("Set Follow Rotation to None"), [chain], False, "use_end_rotation")
        case groups.LOOP | groups.LOOP_OF_ARMATURES:
            return _fix_of_loop(tip)
        case chains.NO_RENDERS:
            for role in ROLES:
                goal, _bone = goal_of(chain, role)
                if goal is not None and (off := disabled(goal, view_layer.layer_collection, "hide_render")):
                    return setting(say(IN_RENDERS[role]), off, False, "hide_render")
        case chains.BORROWED:
            return _own_targets(tip)
        case chains.OF_OTHER_SIDE if (other := chains.mirrored_from(tip)) is not None:
            return Fix(say("Mirror '{other}'", other=chain_name(other)), partial(mirror_chain, bpy.context, other))
        case chains.TOO_LONG:
            length = len(bones)
            return setting(say("Set Chain Length to {count}", count=length), [chain], length, "chain_length")
        case chains.CONNECTED if can_be_made(bpy.context, ob) and ob.data.users == 1:
            return Fix(say("Disconnect '{bone}'", bone=bones[0].name), partial(_disconnect, ob, bones[0].name))
        case chains.ROOT_DRIVEN | chains.SCALE_DRIVEN:
            paths = set(chains.out_of_reach_paths(chain, bones))
            return setting(say("Mute Drivers"), drivers_on(ob, paths), True, "mute")
    return None


def _own_targets(tip: PoseBone) -> Fix | None:
    """Return the fix for an armature that was copied without its targets."""
    return Fix(say("Make Own Targets"), partial(make_own, bpy.context, tip.id_data)) if borrowed(tip) else None


def _disconnect(ob: Object, bone: str, *, clears_parent: bool = False) -> None:
    with editing(bpy.context, ob) as bones:
        bones[bone].use_connect = False
        if clears_parent:
            bones[bone].parent = None


class IK_ADDON_OT_fix(InternalStep, ReportingOperator):
    """Fix what keeps chains from being solved or edited, as the button says."""

    bl_label = "Fix"

    tip: given(StringProperty, "Tip", "The tip bone of the chain; empty: the armature")

    @classmethod
    def description(cls, context: Context, properties: Struct) -> str:
        """Return the label of the fix as a tooltip, since the button may be too small to show it."""
        fix = _fix_on(context, properties.tip)
        return say(cls.bl_description) if fix is None else fix.label

    def perform(self, context: Context) -> set[str]:
        """Apply the fix; solve a chain again if Live is on."""
        fix = _fix_on(context, self.tip)
        if fix is None:
            return self.refuse(obstacle(context) or say("Nothing to fix"))
        try:
            fix.apply()
        except RuntimeError as error:
            return self.refuse(str(error))
        if not self.tip:
            return self.done(fix.label)
        reports.clear(armature(context), [self.tip])
        compat.tag(armature(context))
        context.view_layer.update()  # solves if Live is on
        return self.done(f"'{chain_name(armature(context).pose.bones[self.tip])}': {fix.label}")


def _fix_on(context: Context, tip: str) -> Fix | None:
    """Return the fix for the chain on a bone of the active armature, or for the armature if no bone is named."""
    if not tip or obstacle(context):
        return None if tip else rig_fix_of(context)
    ob = armature(context)
    bone: PoseBone | None = ob.pose.bones.get(tip)
    if bone is None:
        return None
    fault = ""
    try:
        chains.check(ob, bone, context.view_layer)
    except UserError as error:
        fault = error.message
    return fix_of(bone, reports.get(ob, tip), context.view_layer, fault)


def needs_lock(context: Context) -> bool:
    """Whether rendering an animation in a window is unsafe: there are live chains, and the interface is not locked."""
    scene = context.scene
    if scene.render.use_lock_interface or scene.camera is None or scene.frame_start == scene.frame_end:
        return False
    return any(map(simulations.is_solving, context.view_layer.objects))


class IK_ADDON_OT_lock_interface(InternalStep):
    """Lock the interface during rendering (Render > Lock Interface): live chains set poses while frames render, and
    drawing them in the viewport at the same time can crash Blender.
    """

    bl_label = "Lock Interface"

    def execute(self, context: Context) -> set[str]:
        """Turn on Lock Interface."""
        context.scene.render.use_lock_interface = True
        return {"FINISHED"}


# ---- targets and poles

IN_VIEWPORTS = {"target": "Enable Target in Viewports", "pole": "Enable Pole in Viewports"}
IN_RENDERS = {"target": "Enable Target in Renders", "pole": "Enable Pole in Renders"}
"""Labels of buttons, by the role of the goal."""


def _fix_of_goal(sentence: str, tip: PoseBone, view_layer: ViewLayer) -> Fix | None:
    """Return the fix for the target or pole of which this is said; None: it is true of neither any more."""
    ob, layer, here = tip.id_data, view_layer.layer_collection, presence.Presence(view_layer)
    for role in ROLES:
        goal, bone = goal_of(chain_of(tip), role)
        if goal is None or not is_one_of(presence.why_unfit(ob, posed_bones(tip), Goal(goal, bone), here), sentence):
            continue
        match sentence:
            case presence.ABSENT:
                for own in presence.all_layers(layer):
                    if own.exclude and presence.is_in(own.collection.objects, goal):
                        return setting(say("Include '{collection}'", collection=own.name), [own], False, "exclude")
            case presence.DISABLED:
                return setting(say(IN_VIEWPORTS[role]), disabled(goal, layer, "hide_viewport"), False, "hide_viewport")
            case presence.ATTACHED:
                return _detached(tip, goal, bone, role)
        return _without(tip, role)
    return None


def _fix_of_loop(tip: PoseBone) -> Fix | None:
    """Return the fix that breaks a dependency loop: give the chain on `tip`, or another in the loop, its own target.

    A chain in the loop because of its pole loses the pole; if none of this helps, the chain on `tip` is disabled.
    """
    ob = tip.id_data
    on = [other for other in tips(ob) if chain_of(other).enabled]
    for own in (tip, *(other for other in on if other != tip)):
        chain, report = chain_of(own), reports.get(ob, own.name)
        if own != tip and not (report and is_one_of(report.message, groups.LOOP, groups.LOOP_OF_ARMATURES)):
            continue
        moved = {bone.name for other in on if other != own for bone in posed_bones(other)}
        if chain.target is not None and _rides_on(chain.target, chain.target_bone, moved, ob):
            for_other = say("Make Own Target for '{tip}'", tip=chain_name(own))
            return Fix(say("Make Own Target") if own == tip else for_other, partial(make_target, bpy.context, own))
        if chain.pole is not None and _rides_on(chain.pole, chain.pole_bone, moved, ob):
            for_other = say("Clear Pole for '{tip}'", tip=chain_name(own))
            return setting(say("Clear Pole") if own == tip else for_other, [chain], None, "pole")
    return setting(say("Turn Off '{tip}'", tip=chain_name(tip)), [chain_of(tip)], False, "enabled")


def _fix_of_transforms(tip: PoseBone) -> Fix | None:
    """Return the fix that resets transforms with which nothing can be solved: not finite, too large, or zero scale."""
    ob, posed = tip.id_data, posed_bones(tip)
    world = matrix_array(ob.matrix_world)
    if is_flat(world):
        return Fix(say("Reset Scale of '{object}'", object=ob.name), partial(_reset, [ob], ("scale",)))
    bones = list({bone.name: bone for bone in (*posed, *posed[0].parent_recursive)}.values())
    lost = [goal.ob for goal in goals_of(tip) if not (np.abs(matrix_array(goal.ob.matrix_world)) < FARTHEST).all()]
    broken = [] if is_usable(world) else [ob]
    broken = broken or [bone for bone in bones if not is_finite(bone)] or lost[:1]
    broken = broken or [bone for bone in bones if not all(bone.scale[:])]
    if not broken:
        return None
    label = say("Reset {count} Bones", count=len(broken))
    if len(broken) == 1:
        name = broken[0].name
        is_bone = isinstance(broken[0], PoseBone)
        label = say("Reset '{bone}'", bone=name) if is_bone else say("Reset Transform of '{object}'", object=name)
    return Fix(label, partial(_reset, broken))


def _rides_on(goal: Object, bone: str, moved: set[str], ob: Object) -> bool:
    """Whether a goal follows any of the `moved` bones of an armature, or a bone of another armature."""
    return any(own.bone in moved or own.armature != uid_of(ob) for own in Sources().carriers([Part(goal, bone)]))


def _detached(tip: PoseBone, goal: Object, bone: str, role: str) -> Fix | None:
    """Return the fix that detaches a goal from the bones of its own chain and keeps it in place; None if it can't."""
    if not goal.is_editable:
        return None
    is_bone = bool(bone) and goal.type == "ARMATURE"
    holder: Struct = goal.pose.bones[bone] if is_bone else goal
    holding = [c for c in holder.constraints if is_on(c) and any(own == tip.id_data for own, _name in targets_of(c))]
    if holding and is_bone:
        return setting(mute_label(holding), holding, True, "mute")
    if holding:
        return Fix(mute_label(holding), partial(_free, goal, holding))
    if not is_bone and goal.parent is not None:
        return Fix(say("Clear Parent"), partial(_free, goal))
    if not is_bone or holder.parent is None or holder in posed_bones(tip):
        return _without(tip, role)
    if goal == tip.id_data and can_be_made(bpy.context, goal):
        return Fix(say("Clear Parent"), partial(_disconnect, goal, bone, clears_parent=True))
    return None


def _without(tip: PoseBone, role: str) -> Fix | None:
    """Return the fix that does without a goal: another target, or no pole."""
    if role == "target":
        return Fix(say("Make New Target"), partial(make_target, bpy.context, tip))
    return setting(say("Clear Pole"), [chain_of(tip)], None, "pole")


def _free(goal: Object, constraints: Sequence[Constraint] = ()) -> None:
    """Mute constraints of a goal, or clear its parent if there are none; it stays in place."""
    world = goal.matrix_world.copy()
    set_all(constraints, ("mute",), True)
    if constraints:
        bpy.context.view_layer.update()
    else:
        goal.parent = None
    goal.matrix_world = world


def _reset(owners: Iterable[Holder], what: tuple[str, ...] = ("location", "rotation", "scale")) -> None:
    for owner in owners:
        for name in what:
            field = rotation_field(owner.rotation_mode) if name == "rotation" else name
            setattr(owner, field, REST[FIELDS[field]].tolist())


# ---- disabled objects


def disabled(goal: Object, layer: LayerCollection, switch: str) -> list[Object | bpy.types.Collection]:
    """Return what keeps an object from being evaluated: the object, or collections on one path to it.

    The list is empty if the object is evaluated.
    """
    own = [goal] if getattr(goal, switch) else []
    return [*own, *min(_disabled_above(goal, layer, switch), key=len, default=[])]


def _disabled_above(goal: Object, layer: LayerCollection, switch: str) -> Iterator[list[bpy.types.Collection]]:
    """Yield the disabled collections on each path from a layer collection to an object."""
    if layer.exclude:
        return
    off = [layer.collection] if getattr(layer.collection, switch) else []
    if presence.is_in(layer.collection.objects, goal):
        yield off
    for child in layer.children:
        yield from ([*off, *below] for below in _disabled_above(goal, child, switch))


# ---- what keeps the operators from running on an armature


def rig_fix_of(context: Context) -> Fix | None:
    """Return a fix for the obstacle that the panel shows; None: no simple fix."""
    ob = candidate(context)
    if not obstacle(context):
        return None
    if ob is None or ob.type != "ARMATURE":
        followed: list[Object | None] = []
        if ob is not None:
            shown = ob.instance_collection
            for own in shown.all_objects if shown is not None and shown.library is not None else ():
                if own.type == "ARMATURE":
                    return Fix(say("Make Library Override"), partial(_override, context, own, ob))
            followed = [*(m.object for m in ob.modifiers if isinstance(m, ArmatureModifier)), ob.parent]
        rig = next((found for found in followed if found is not None and found.type == "ARMATURE"), None)
        if rig is None or not rig.visible_get():  # any that is visible, preferably one with chains
            rigs = [found for found in context.view_layer.objects if found.type == "ARMATURE" and found.visible_get()]
            rig = min(rigs, key=lambda rig: not tips(rig), default=None)
        return None if rig is None else Fix(say("Select '{object}'", object=rig.name), partial(select, context, [rig]))
    if ob.mode not in {"POSE", "OBJECT"}:
        return Fix(say("Pose Mode"), partial(bpy.ops.object.mode_set, mode="POSE"))
    if not ob.is_editable:
        return Fix(say("Make Library Override"), partial(_override, context, ob))
    if ob.override_library is not None and ob.override_library.is_system_override:
        return setting(say("Make Override Editable"), [ob.override_library], False, "is_system_override")
    return None


def _override(context: Context, ob: Object, empty: Object | None = None) -> None:
    """Override a linked armature, together with the collection it was linked in, and select the override.

    The collection replaces the `empty` that instances it, if there is one.

    Raises:
        UserError: Blender can't override it.
    """
    scene, view_layer = context.scene, context.view_layer
    holders = [own for own in (scene.collection, *bpy.data.collections) if own.is_editable] if empty is None else []
    roots = (child for own in holders for child in own.children if child.library is not None)
    root = next((child for child in roots if presence.is_in(child.all_objects, ob)), None)
    linked: Struct = (root or ob) if empty is None else empty.instance_collection
    made = linked.override_hierarchy_create(scene, view_layer, reference=empty, do_fully_editable=True)
    found = (own for own in view_layer.objects if own.override_library and own.override_library.reference == ob)
    rig = next(found, None)
    if made is None or rig is None:
        refused = "Blender can't override '{object}'. Choose Library Override > Make in the Object menu"
        raise UserError(refused, object=ob.name)
    select(context, [rig])
    if empty is not None:
        bpy.data.objects.remove(empty)
    for own in holders:
        if root is not None and root in own.children.values():
            own.children.unlink(root)
