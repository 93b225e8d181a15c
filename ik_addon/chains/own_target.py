"""Targets of a chain's own: for one that has none or can't use it, or for an armature that was copied without them."""

from __future__ import annotations

from contextlib import ExitStack

import bpy

from ..core import compat
from ..core.goals import Goal
from ..core.settings import ROLES, chain_of, goal_of
from ..core.skeleton import Skeleton
from ..rig.plan.chain import NUMBER, end_axes, tips, turning_end
from ..rig.plan.followers import borrowed, followers, mark
from ..rig.plan.presence import is_in
from . import make_controls
from .current_pose import Limb, read_poses
from .make_controls import Controls
from .new_chain import PREFIX, check_world, label_of, target_control


def make_target(context: bpy.types.Context, tip: bpy.types.PoseBone) -> None:
    """Give the chain on `tip` an empty as its target, where the tip is now and oriented so that no bone turns.

    Raises:
        UserError: if the target can't be made; nothing is changed then.
    """
    ob, depsgraph = tip.id_data, context.evaluated_depsgraph_get()
    seen = ob.evaluated_get(depsgraph)
    check_world(ob, seen.matrix_world)
    make_controls.check(context, ob, Controls.EMPTIES)
    limb = Limb.on(tip, Skeleton.of(ob), read_poses(ob, depsgraph))
    wanted = target_control(seen, tip, limb, turning_end(tip) or tip, end_axes(tip))
    take(tip, *make_controls.make(context, ob, Controls.EMPTIES, [wanted]))


def make_own(context: bpy.types.Context, ob: bpy.types.Object) -> None:
    """Give the chains of an armature copies of all targets and poles that belong to another one, with their animation.

    A copy that is not animated is where the other one is as seen from the other armature.

    Raises:
        UserError: if nothing can be made; nothing is changed then.
    """
    make_controls.check(context, ob, Controls.EMPTIES)
    shared = {goal: other for tip in tips(ob) for goal, other in borrowed(tip).items()}
    collection = make_controls.collection_of(context, ob)
    own = {goal: _copy(ob, goal, other, collection) for goal, other in shared.items()}
    for tip in tips(ob):
        chain = chain_of(tip)
        for role in ROLES:
            goal, _bone = goal_of(chain, role)
            if goal in own:
                setattr(chain, role, own[goal])
    context.view_layer.update()


def _copy(
    ob: bpy.types.Object, source: bpy.types.Object, other: bpy.types.Object, collection: bpy.types.Collection
) -> bpy.types.Object:
    """Return a copy in a collection of an empty that belongs to another armature, for this one."""
    copy = source.copy()
    mark(copy, ob)
    if copy.animation_data is not None and copy.animation_data.action is not None:
        compat.use_copy_of_action(copy, copy.animation_data.action.name, ExitStack())
    if copy.parent == other:
        copy.parent = ob
        for name in ("parent_type", "parent_bone", "matrix_parent_inverse"):  # a new parent resets these
            setattr(copy, name, getattr(source, name))
    for constraint in copy.constraints:
        if getattr(constraint, "target", None) == other:
            setattr(constraint, "target", ob)  # noqa: B010 - not all kinds have one
    collection.objects.link(copy)
    if copy.parent is None and not make_controls.is_moved(Goal(copy)):
        copy.matrix_world = ob.matrix_world @ other.matrix_world.inverted_safe() @ source.matrix_world
    return copy


def left_for(tip: bpy.types.PoseBone, view_layer: bpy.types.ViewLayer) -> Goal | None:
    """Return the target that Add Chain made for the chain on `tip`, if no chain follows it now.

    It is named after the tip. If the tip was renamed since, it is the nearest one of the armature that is named after
    no bone of today.
    """
    ob, home = tip.id_data, make_controls.made_collection(tip.id_data)
    goals = [Goal(ob, bone) for bone in ob.data.bones.keys()]  # noqa: SIM118
    goals += [Goal(own) for own in view_layer.objects if own.type == "EMPTY"]
    labels = {label_of(name): name for name in ob.pose.bones.keys()}  # noqa: SIM118
    stray = []
    for goal in goals:
        name = goal.name
        if not (name.startswith(PREFIX) and goal.is_made) or followers(goal.ob, goal.bone):
            continue
        named = name.removeprefix(PREFIX)
        named = labels.get(named) or labels.get(NUMBER.sub("", named), "")
        if named == tip.name:
            return goal
        is_own = goal.ob == ob or (home is not None and is_in(home.objects, goal.ob))
        if is_own and not named:
            stray.append(goal)
    place = ob.matrix_world @ tip.tail
    return min(stray, key=lambda goal: (goal.world(view_layer.depsgraph).translation - place).length, default=None)


def take(tip: bpy.types.PoseBone, goal: Goal) -> None:
    """Have the chain on `tip` follow an object or bone."""
    chain = chain_of(tip)
    chain.target, chain.target_bone = goal.ob, goal.bone
