"""Put a chain on a bone, with target and pole, give it another target, and change the side to which it bends."""

import math
import re
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import filterfalse

import bpy
import numpy as np
from bpy.types import Collection, Context, Depsgraph, Object, PoseBone, ViewLayer
from mathutils import Matrix, Vector

from ..anatomy import limbs
from ..anatomy.chain_ends import end_below
from ..anatomy.figure import Figure
from ..anatomy.parts import side_of
from ..core import compat
from ..core.chain_settings import IKAddonChain, on_rotation_switched
from ..core.channels import is_finite, rotation_field, turned
from ..core.constraints import active_constraints, steered_bones
from ..core.goals import Goal
from ..core.names import chain_name
from ..core.settings import ROLES, chain_of, goal_of, reset, stored_folds, unusable
from ..core.skeleton import STRAIGHT, Skeleton, inverse, matrix_array, moved, orthonormal, rest_of
from ..core.skeleton import size_of as scale_of
from ..core.translation.sentences import UserError, say
from ..rig.plan import chain as chains
from ..rig.plan.followers import borrowed, followers, mark
from ..rig.plan.limits import hinge_of, knee_hinge
from ..rig.plan.presence import is_in, why_unplaced
from ..rig.read import fcurves
from ..rig.read.sample import axes_between, target_rotation
from ..solve import pole_angle
from ..solve.limb.two_bones import Hinge, unfollowed_by
from ..solve.maths.rotations import unit
from ..solve.problem import Floats
from . import bend_side, make_controls
from .current_pose import Limb, read_poses, target_of
from .make_controls import Control, Controls, parent_bone_of

PREFIX = "IK Target "
"""What the name of a target begins with; `label_of` the tip follows."""
SIDE = re.compile(r"left|right|左|右|(?<![a-z])[lr](?![a-z])|(?-i:^[lr](?=[A-Z]))", re.IGNORECASE)
"""What names the side within the name of a bone."""

SHORTEST = 0.25
"""A tip bone shorter than this part of its chain gets controls as if it were that long."""
NO_ANGLE = 1e-6
"""Radians: a smaller pole angle is rounding and is not shown to the user."""


def label_of(tip: str) -> str:
    """Return what the controls of a chain are named after: the tip, with its side where Blender's Paste Flipped looks.

    That looks at the ends of a name alone: it would not find the other side of `mixamorig:LeftLeg` or `J_Bip_L_Hand`.
    """
    side, bare = side_of(tip), SIDE.sub("", tip, count=1)
    if side == 0 or bare == tip or bpy.utils.flip_name(PREFIX + tip) != PREFIX + tip:
        return tip
    bare = re.sub(r"([ _.:-])\1+", r"\1", bare)
    return f"{bare}.{'L' if side > 0 else 'R'}"


def why_unusable(tip: PoseBone) -> str:
    """Say why a chain can't be used; empty if it can. A file made by hand may hold any value."""
    for _name, label in unusable(chain_of(tip)):
        not_allowed = "'{label}' of the chain on '{tip}' has a value that is not allowed. Reset this setting"
        return say(not_allowed, label=label, tip=chain_name(tip))
    return ""


def add_chain(
    context: Context, tip: PoseBone, length: int, with_pole: bool, controls: Controls, with_body: bool = False
) -> list[PoseBone]:
    """Put a chain on `tip` that keeps the current pose; return its bones, root first.

    The target is made at the tip, or at the hand or foot below it, which then turns with the target. If that bone is
    animated, End Rotation stays off (`waiting_end`). A chain of two bones, or of a whole arm or leg, gets a pole
    in the plane in which it bends, if wanted, unless it bends to all sides.

    Args:
        context: provides the scene for empties.
        tip: a bone without a chain.
        length: number of bones, clamped to those that exist; 0: up to the armature's root.
        with_pole: make a pole if the chain is a limb.
        controls: what target and pole are made as. Making bones invalidates all pose bones of the armature.
        with_body: attach the target, like the pole, to the bone that carries the chain.

    Raises:
        UserError: if the chain can't be added; nothing is made then.
    """
    ob, bones = tip.id_data, [tip, *tip.parent_recursive][: length or None][::-1]
    if chain_of(tip).is_chain:
        raise UserError("Bone '{tip}' already has a chain. Change its settings, or remove it first", tip=tip.name)
    chains.check_bones(active_constraints(ob), bones)
    depsgraph = context.evaluated_depsgraph_get()
    world = ob.evaluated_get(depsgraph).matrix_world.copy()
    check_world(ob, world)
    end = find_end(ob, bones)
    limb = _limb(ob.evaluated_get(depsgraph), bones, end)
    found = bend_side.find(ob, bones, end, depsgraph)
    last = tip if end is None else end
    target = target_control(ob.evaluated_get(depsgraph), tip, limb, last, np.eye(3))
    pole_place = None
    middle = _middle(limb, bones)
    if with_pole and middle is not None and not found.both_ways:
        pole_place = world @ Vector((limb.joints[middle] + limb.length * _bend(limb, middle, found.side)).tolist())
    angle = _pole_angle(limb, world, target.world.translation, pole_place, found, knee_hinge(bones))
    make_controls.check(context, ob, controls)

    parent_bone = parent_bone_of(ob, bones)
    wanted = [target._replace(parent_bone=parent_bone) if with_body else target]
    if pole_place is not None:
        place = Matrix.Translation(pole_place)
        size = 0.1 * size_of(tip, limb, world)
        wanted.append(Control(f"IK Pole {label_of(tip.name)}", place, "SPHERE", size, parent_bone))
    names, last_name = [bone.name for bone in bones], last.name
    goals = make_controls.make(context, ob, controls, wanted)
    bones = [ob.pose.bones[name] for name in names]
    tip, chain = bones[-1], chain_of(bones[-1])
    reset(chain)
    chain.chain_length = min(length, len(bones))
    chain.bend_side, chain.bends_both_ways, chain.folds = found.side, found.both_ways, stored_folds(found.folds)
    chain.target, chain.target_bone = goals[0].ob, goals[0].bone
    if pole_place is not None:
        chain.pole, chain.pole_bone = goals[1].ob, goals[1].bone
        chain.pole_angle = angle
    context.view_layer.update()
    if end is not None:
        chain.end_bone = last_name
        is_fit = fit_end(tip, context.view_layer.depsgraph)
        chain.use_end_rotation = is_fit and not are_animated(ob.pose.bones[last_name])
    chain.is_chain = True
    # Live solves now, so that everything is one undo step.
    context.view_layer.update()
    return bones


def target_control(seen: Object, tip: PoseBone, limb: Limb, turned: PoseBone, axes: Floats) -> Control:
    """Return the target to make for a chain on `tip`, so that solving moves nothing.

    Args:
        seen: the evaluated armature object.
        tip: the tip bone.
        limb: the bones of the chain in their current pose.
        turned: the tip or end bone, which turns with the target.
        axes: (3, 3) its axes in those of the target.
    """
    world = seen.matrix_world.copy()
    place = world @ Vector(target_of(Limb(limb.joints[None], limb.frames[None]))[0].tolist())
    turn = target_rotation(world, pose_of(seen.pose.bones[turned.name]), axes)
    size = 0.15 * size_of(tip, limb, world)
    return Control(f"{PREFIX}{label_of(tip.name)}", Matrix.LocRotScale(place, turn, None), "CUBE", size)


def set_bend_side(context: Context, tip: PoseBone, side: Floats) -> list[str]:
    """Store the side (3,) to which the chain on `tip` bends and move its pole there; return remarks on what opposes it.

    Raises:
        UserError: if the armature has no usable pose; nothing is changed then.
    """
    remarks = _turn_to(tip, side, tip.id_data.evaluated_get(context.evaluated_depsgraph_get()))
    context.view_layer.update()
    return remarks


def _turn_to(tip: PoseBone, side: Floats, evaluated: Object) -> list[str]:
    """Do the work of `set_bend_side` for a pose that is already evaluated."""
    ob, chain, bones = tip.id_data, chain_of(tip), chains.bending_bones(tip)
    limb = _limb(evaluated, bones, chains.bending_end(tip))
    world = evaluated.matrix_world.copy()
    chain.bend_side = side
    remarks = []
    middle = _middle(limb, bones)
    pole = chain.pole
    if pole is not None and middle is not None:
        goal = Goal(pole, chain.pole_bone)
        if goal.is_made and make_controls.is_free(goal, ob) and math.isfinite(chain.pole_angle):
            line, hinge = Vector((limb.joints[-1] - limb.joints[0]).tolist()), hinge_of(tip)
            rolls = [0.0] if hinge is None else unfollowed_by(limb.joints[None], limb.frames[None], hinge)
            bend = Matrix.Rotation(-chain.pole_angle - float(np.nan_to_num(rolls[0])), 3, line) @ Vector(
                _bend(limb, middle, side).tolist()
            )
            make_controls.place(goal, world @ (Vector(limb.joints[middle].tolist()) + float(limb.length) * bend))
        else:
            remarks.append(say("The pole '{pole}' stays where it is, and the chain bends towards it", pole=pole.name))
    if bend_side.opposed_by_limits(tip, side):
        remarks.append(say("Its limits only allow the other bend direction. Change them, or apply its preset again"))
    return remarks


def _rotation_switched(chain: IKAddonChain) -> None:
    """Update the side of a chain when Rotation is switched: the tip then leaves the bones that bend, or joins them."""
    ob, side = chain.id_data, np.array(chain.bend_side)
    tip = next((tip for tip in chains.tips(ob) if chain_of(tip) == chain), None)
    if tip is None or len(chains.chain_bones(tip)) < 3 or not (side.any() and np.isfinite(side).all()):
        return
    bones, depsgraph = chains.chain_bones(tip), bpy.context.view_layer.depsgraph
    both = (bones[:-1], tip), (bones, chains.end_of(tip))
    was, found = (bend_side.find(ob, *own, depsgraph) for own in (both[::-1] if chain.use_rotation else both))
    if not (was.both_ways or found.both_ways):
        if chain.pole is not None and Goal(chain.pole, chain.pole_bone).is_made:
            chain.pole_angle = 0.0  # measured for other bones; the pole moves to where none is needed
        _turn_to(tip, found.side if side.dot(was.side) >= 0.0 else -found.side, ob.evaluated_get(depsgraph))


# ---- checks, before anything is made


def check_world(ob: Object, world: Matrix) -> None:
    """Raise UserError if positions can't be converted to the space of an object with this world matrix."""
    if reason := why_unplaced(ob, matrix_array(world)):
        raise UserError(reason)


def size_of(tip: PoseBone, limb: Limb, world: Matrix) -> float:
    """Return the length in world space to which controls are proportional.

    It is that of the tip bone at rest, so that controls of a hidden bone can be seen; on the last, short bone of a long
    chain, such as a recorded spine, they would be too small to click.
    """
    return float(max(tip.bone.length, SHORTEST * limb.length) * scale_of(matrix_array(world)))


# ---- the limb, its target and its pole


def _limb(ob: Object, bones: list[PoseBone], end: PoseBone | None) -> Limb:
    """Read bones, and the position of an end bone below them, from the evaluated armature object."""
    posed = [ob.pose.bones[bone.name] for bone in bones]
    last = posed[-1].tail if end is None else ob.pose.bones[end.name].head
    joints = np.array([bone.head for bone in posed] + [last], dtype=np.float64)
    for bone, head, tail in zip(posed, joints, joints[1:], strict=False):
        if not (np.isfinite(head).all() and np.isfinite(tail).all()):
            cause = next(filterfalse(is_finite, (bone, *bone.parent_recursive)), bone)
            raise UserError("The transform of bone '{bone}' is not a finite number. Reset it", bone=cause.name)
    # As the solver sees it: a mirrored bone keeps its rotation.
    frames = [np.array(bone.matrix.to_3x3()) * np.where(np.array(bone.scale) < 0.0, -1.0, 1.0) for bone in posed]
    limb = Limb(joints, orthonormal(np.array(frames, dtype=np.float64)))
    if not limb.length > 0.0:
        for bone in posed[0].parent_recursive:
            if not all(bone.scale[:]):
                raise UserError("'{object}' is scaled to zero. Reset its scale", object=bone.name)
        no_length = "The chain that ends in '{bone}' has no length in this pose. Reset its bones"
        raise UserError(no_length, bone=bones[-1].name)
    return limb


def _middle(limb: Limb, bones: list[PoseBone]) -> int | None:
    """Return the index of the joint at which the lower half of a limb, arm or leg begins; None if bones are neither."""
    long = np.flatnonzero(limb.segments > 1e-6 * limb.length)
    if len(long) == 2:  # the joint between the two segments that have length
        return int(long[1])
    figure = Figure.of(bones[0].id_data)
    return limbs.elbow(figure, [figure.names.index(bone.name) for bone in bones])


def _bend(limb: Limb, middle: int, side: Floats) -> Floats:
    """Return the unit vector (3,) from the line between root and tip in which the middle joint bends to a side (3,)."""
    line, upper = unit(limb.line), limb.joints[middle] - limb.joints[0]
    across = (upper - upper.dot(line) * line) / limb.length
    own = unit(np.cross(line, np.cross(limb.frames[0].dot(side), upper)))
    return unit(across) if np.linalg.norm(across) >= STRAIGHT and across.dot(own) >= 0.0 else own


def _pole_angle(
    limb: Limb, world: Matrix, target: Vector, pole: Vector | None, found: bend_side.Found, hinge: Hinge | None
) -> float:
    """Return the pole angle that keeps a limb as it is, with goals as precise as Blender stores their positions.

    Args:
        limb: in object space.
        world: matrix from object to world space.
        target: in world space.
        pole: in world space.
        found: how the chain bends.
        hinge: its knee, see `solve.pole_angle`.

    Raises:
        UserError: if world space is too coarse to place a target there.
    """
    with np.errstate(all="ignore"):
        points = moved(inverse(matrix_array(world)), np.array([target, target if pole is None else pole]))
    if not np.linalg.norm(points[0] - limb.joints[-1]) < 0.1 * limb.length:
        raise UserError("The armature is too far from the world's origin, or scaled too much, to place a target")
    if pole is None:
        return 0.0
    own, folds = limb.frames[0].dot(found.side)[None], bool(found.folds)
    places = points[0][None], points[1][None]
    angle = float(pole_angle(limb.joints[None], limb.frames[None], *places, own, folds=folds, hinge=hinge)[0])
    return angle if abs(angle) > NO_ANGLE else 0.0


LISTENERS = ((on_rotation_switched, _rotation_switched),)


# ---- other targets: for a chain that can't use its own, or an armature that was copied without them


def make_target(context: Context, tip: PoseBone) -> None:
    """Give the chain on `tip` an empty as its target, where the tip is now and oriented so that no bone turns.

    Raises:
        UserError: if the target can't be made; nothing is changed then.
    """
    ob, depsgraph = tip.id_data, context.evaluated_depsgraph_get()
    seen = ob.evaluated_get(depsgraph)
    check_world(ob, seen.matrix_world)
    make_controls.check(context, ob, Controls.EMPTIES)
    limb = Limb.on(tip, Skeleton.of(ob), read_poses(ob, depsgraph))
    wanted = target_control(seen, tip, limb, chains.turning_end(tip) or tip, chains.end_axes(tip))
    follow(tip, *make_controls.make(context, ob, Controls.EMPTIES, [wanted]))


def make_own(context: Context, ob: Object) -> None:
    """Give the chains of an armature copies of all targets and poles that belong to another one, with their animation.

    A copy that is not animated is where the other one is as seen from the other armature.

    Raises:
        UserError: if nothing can be made; nothing is changed then.
    """
    make_controls.check(context, ob, Controls.EMPTIES)
    shared = {goal: other for tip in chains.tips(ob) for goal, other in borrowed(tip).items()}
    collection = make_controls.collection_of(context, ob)
    own = {goal: _copy(ob, goal, other, collection) for goal, other in shared.items()}
    for tip in chains.tips(ob):
        chain = chain_of(tip)
        for role in ROLES:
            goal, _bone = goal_of(chain, role)
            if goal in own:
                setattr(chain, role, own[goal])
    context.view_layer.update()


def _copy(ob: Object, source: Object, other: Object, collection: Collection) -> Object:
    """Return a copy in a collection of an empty that belongs to another armature, for this one."""
    copy = source.copy()
    mark(copy, ob)
    if (action := compat.action_of(copy)) is not None:
        compat.use_copy_of_action(copy, action.name, ExitStack())
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


def left_for(tip: PoseBone, view_layer: ViewLayer) -> Goal | None:
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
        named = labels.get(named) or labels.get(chains.NUMBER.sub("", named), "")
        if named == tip.name:
            return goal
        is_own = goal.ob == ob or (home is not None and is_in(home.objects, goal.ob))
        if is_own and not named:
            stray.append(goal)
    place = ob.matrix_world @ tip.tail
    return min(stray, key=lambda goal: (goal.world(view_layer.depsgraph).translation - place).length, default=None)


def follow(tip: PoseBone, goal: Goal) -> None:
    """Have the chain on `tip` follow an object or bone."""
    chain_of(tip).target, chain_of(tip).target_bone = goal.ob, goal.bone


# ---- the hand or foot at the end of a chain: which bone it is, and its rotation relative to the target


def find_end(ob: Object, bones: Sequence[PoseBone]) -> PoseBone | None:
    """Return the hand or foot of a limb, given its bones, root first; None if a chain on them can't turn it."""
    figure = Figure.of(ob, steered_bones(ob))
    found = end_below(figure, [figure.names.index(bone.name) for bone in bones])
    if found is None:
        return None
    end = ob.pose.bones[figure.names[found]]
    try:
        chains.check_bones(active := active_constraints(ob), [end])
        chains.check_between(active, bones[-1], end)
    except UserError:
        return None
    is_taken = any(end in chains.posed_bones(tip) for tip in chains.tips(ob) if tip != bones[-1])
    return None if is_taken else end


def pose_of(bone: PoseBone) -> Matrix:
    """Return the pose of an evaluated bone; of one that is scaled to zero, to hide it, as it would be without scale."""
    if all(bone.scale[:]):
        return bone.matrix
    mode = bone.rotation_mode
    turn = Matrix(rest_of(bone).tolist()) @ turned(getattr(bone, rotation_field(mode)), mode)
    return Matrix.Translation(bone.head) @ turn.to_4x4()


def fit_end(tip: PoseBone, depsgraph: Depsgraph) -> bool:
    """Set the end offset of a chain to the current rotation from its target to its end bone, which then stays as it is.

    Return False, and change nothing, if the end bone or the target has no orientation, below something scaled to zero.
    """
    ob, chain, end = tip.id_data, chain_of(tip), chains.end_of(tip)
    seen = ob.evaluated_get(depsgraph)
    target = Goal(chain.target, chain.target_bone).world(depsgraph)
    axes = axes_between(seen.matrix_world, target, pose_of(seen.pose.bones[end.name]))
    is_fit = bool(np.isfinite(axes).all())
    if is_fit:
        chains.set_end_axes(tip, axes)
    return is_fit


def turn_end(context: Context, tip: PoseBone) -> PoseBone:
    """Make the end bone of a chain turn with the target from their current orientations; return the end bone.

    Raises:
        UserError: there is no end bone, or it can't be turned; the caller puts settings of the chain back.
    """
    ob, chain = tip.id_data, chain_of(tip)
    end = chains.end_of(tip) or find_end(ob, chains.chain_bones(tip))
    if end is None:
        raise UserError("There is no hand or foot below '{tip}'. Choose an End Bone", tip=tip.name)
    chain.end_bone = end.name
    if not fit_end(tip, context.evaluated_depsgraph_get()):
        raise UserError("'{end}' or its target is scaled to zero. Reset the scale", end=end.name)
    chain.use_end_rotation = True
    context.view_layer.update()
    return end


def are_animated(*bones: PoseBone) -> bool:
    """Return whether bones are animated; a static target would override that animation."""
    ob = bones[0].id_data
    return bool(fcurves.animated(ob, np.array([ob.pose.bones.find(bone.name) for bone in bones])).any())


def waiting_end(tip: PoseBone) -> PoseBone | None:
    """Return the end bone of a chain if it does not take the target's orientation yet because it is animated."""
    end = chains.end_of(tip)
    return end if end is not None and chains.turning_end(tip) is None and are_animated(end) else None
