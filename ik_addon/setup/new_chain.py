"""Put a chain on a bone, with the empties that it follows, take it off again, and give back the FK pose."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ..anatomy import chain_ends
from ..anatomy.figure import Figure
from ..data import fk_store
from ..data.settings import IKAddonChain, chain_of, object_of, unusable
from ..live import handlers, reports
from ..live.rig import is_animated
from ..pose import channels
from ..pose.skeleton import matrix_array, orthonormal
from ..rig.plan import chain as chains
from ..rig.plan.chain import ChainError
from ..rig.read import fcurves
from ..solve import pole_angle
from ..solve.problem import Floats
from .present import Limb

MADE = "ik_addon_made"
"""Custom property of what Add Chain made, with the name of the armature: nothing else is ever deleted."""
STRAIGHT = 1e-5
"""A chain whose joints are off the line from root to tip by less than this fraction of its length is straight."""
BEYOND = 2e-6
"""By how much of its length the target of a straight chain is beyond its tip: far less than `reports.NEAR`, and more
than rounding, which would put it nearer and so bend the chain."""

NO_ANGLE = 1e-6
"""Radians: a smaller pole angle is rounding, of which a user should see nothing."""


def why_unposed(ob: bpy.types.Object) -> str:
    """Why an armature object has no bones to pose, and what to do; empty where it has."""
    if ob.pose is not None:
        return ""
    return f"'{ob.name}' has no pose before it is shown for the first time; enable it in viewports"


def why_unusable(tip: bpy.types.PoseBone) -> str:
    """Why a chain can't be worked with: a file that was made by hand may hold anything; empty where it can."""
    for _name, label in unusable(chain_of(tip)):
        return f"'{label}' of the chain on '{tip.name}' has a value that is not allowed; reset this setting"
    return ""


def add_chain(
    context: bpy.types.Context, ob: bpy.types.Object, tip: bpy.types.PoseBone, length: int, with_pole: bool
) -> list[bpy.types.PoseBone]:
    """Put a chain on `tip` that keeps the present pose; return its bones, root first.

    The target is made at the tip. A chain of two bones, or of a whole arm or leg, gets a pole in the plane in which it
    bends, if wanted.

    Args:
        context: for the scene into which the empties go.
        ob: the armature object.
        tip: a bone of it without a chain.
        length: how many bones the chain has, 0: up to the armature's root; clamped to the bones that are there.
        with_pole: make a pole where the chain is a limb.

    Raises:
        ChainError: if this cannot be done; nothing is made then.
    """
    bones = [tip, *tip.parent_recursive][: length or None][::-1]
    _check_bones(ob, tip, bones)
    depsgraph = context.evaluated_depsgraph_get()
    world = ob.evaluated_get(depsgraph).matrix_world.copy()
    check_world(ob, world)
    limb = _limb(ob.evaluated_get(depsgraph), bones)
    target_place = world @ Vector(_target_of(limb).tolist())
    pole_place = None
    middle = limb.middle or _elbow(ob, bones)
    if with_pole and middle is not None:
        pole_place = world @ Vector((limb.joints[middle] + limb.length * _bend(limb, middle)).tolist())
    angle = _pole_angle(limb, world, target_place, pole_place)
    _check_collection(context, ob)

    collection = _collection(context, ob)
    chain = chain_of(tip)
    _reset(chain)
    chain.chain_length = min(length, len(bones))
    size = (world @ tip.tail - world @ tip.head).length
    chain.target = _empty(context, f"IK Target {tip.name}", collection, "CUBE", 0.15 * size)
    chain.target.matrix_basis = Matrix.LocRotScale(target_place, (world @ tip.matrix).to_quaternion(), None)
    if pole_place is not None:
        chain.pole = _empty(context, f"IK Pole {tip.name}", collection, "SPHERE", 0.1 * size)
        chain.pole.location = pole_place
        chain.pole_angle = angle
    chain.is_chain = True
    # Live solves now, so that all of it is one step of undo.
    context.view_layer.update()
    return bones


def remove_chain(context: bpy.types.Context, tip: bpy.types.PoseBone, remove_goals: bool) -> list[str]:
    """Take the chain off `tip` and put its bones back into their FK pose.

    The target and the pole are deleted where Add Chain made them and nothing else needs them: other chains,
    constraints, children, keyframes.

    Args:
        context: for the view layer.
        tip: the bone that carries the chain.
        remove_goals: delete target and pole.

    Returns:
        The names of empties that Add Chain made and that were kept because they are in use.
    """
    ob = tip.id_data
    chain = chain_of(tip)
    goals = [goal for goal in {chain.target, chain.pole} if goal is not None and MADE in goal]
    solved = fk_store.stored_bones(ob)
    chain.is_chain = False
    _reset(chain)
    reports.clear(ob, [tip.name])
    # Live releases the bones now, so that all of it is one step of undo.
    context.view_layer.update()
    if not object_of(ob).live:
        evaluate_animation(ob, set(solved).difference(fk_store.stored_bones(ob)), context.view_layer)
    if not remove_goals:
        return []
    kept = [goal for goal in goals if _is_needed(goal)]
    for goal in goals:
        if goal not in kept:
            _delete(goal)
    return sorted(goal.name for goal in kept)


def restore_pose(
    ob: bpy.types.Object, view_layer: bpy.types.ViewLayer, only: list[bpy.types.PoseBone] | None = None
) -> int:
    """Put the bones of chains back into their FK pose and switch Live off; return how many bones that were.

    Args:
        ob: the armature object.
        view_layer: where it is evaluated.
        only: the tips of the chains; None: all chains. Live gives back the bones of all chains in any case.
    """
    bones = fk_store.stored_bones(ob)
    if object_of(ob).live:
        object_of(ob).live = False  # which gives back the FK pose of this frame, edits that are not keyed included
    else:
        if only is not None:
            names = {bone.name for tip in only for bone in chains.chain_bones(tip)}
            bones = [bone for bone in bones if ob.pose.bones[bone].name in names]
        fk_store.release(ob, bones)
        reports.clear(ob, None if only is None else [tip.name for tip in only])
        evaluate_animation(ob, bones, view_layer)
    return len(bones)


def evaluate_animation(ob: bpy.types.Object, bones: Collection[int], view_layer: bpy.types.ViewLayer) -> None:
    """Set the animated channels of these bones to their values on the present frame; all other bones stay."""
    if not bones or not is_animated(ob):
        return
    own = np.array(sorted(bones), dtype=np.int64)
    others = np.setdiff1d(np.arange(len(ob.pose.bones)), own)
    rows = channels.read(ob, others)
    with handlers.paused():
        try:
            frame = view_layer.id_data.frame_current_final
            channels.write(ob, own, fcurves.at_frame(ob, own, channels.read(ob, own), frame))
        except fcurves.Untold:
            ob.update_tag(refresh={"OBJECT", "DATA", "TIME"})
            view_layer.update()
            channels.write(ob, others, rows)
    view_layer.update()


# ---- checks, before anything is made


def _check_bones(ob: bpy.types.Object, tip: bpy.types.PoseBone, bones: list[bpy.types.PoseBone]) -> None:
    if chain_of(tip).is_chain:
        raise ChainError(f"Bone '{tip.name}' has a chain already; change its settings, or remove it first")
    chains.check_bones(ob, bones)


def check_world(ob: bpy.types.Object, world: Matrix) -> None:
    """Raise ChainError where no place can be told as an object with this world matrix sees it."""
    matrix = matrix_array(world)
    if not np.isfinite(matrix).all():
        raise ChainError(f"The transform of '{ob.name}' is not a finite number; reset its location, rotation and scale")
    if abs(np.linalg.det(matrix[:3, :3])) <= 1e-30:
        raise ChainError(f"'{ob.name}' is scaled to zero; give it a scale in which a target can be placed")


def _check_collection(context: bpy.types.Context, ob: bpy.types.Object) -> None:
    if not context.scene.is_editable:
        raise ChainError(f"The scene '{context.scene.name}' is linked from another file and can't hold a target")
    collection = _made_collection(ob)
    if collection is None:
        return
    layer = _layer_collection(context.view_layer.layer_collection, collection)
    if collection.hide_viewport or (layer is not None and layer.exclude):
        raise ChainError(
            f"The collection '{collection.name}' is disabled or excluded from this view layer, "
            "so a target in it would not move; enable it"
        )


# ---- the limb, its target and its pole


def _limb(ob: bpy.types.Object, bones: list[bpy.types.PoseBone]) -> Limb:
    """Read bones from the evaluated armature object."""
    posed = [ob.pose.bones[bone.name] for bone in bones]
    joints = np.array([bone.head for bone in posed] + [posed[-1].tail], dtype=np.float64)
    for bone, head, tail in zip(posed, joints, joints[1:], strict=False):
        if not (np.isfinite(head).all() and np.isfinite(tail).all()):
            raise ChainError(f"The transform of bone '{bone.name}' is not a finite number; reset it")
    # As the solver sees it: a mirrored bone keeps its rotation.
    frames = [np.array(bone.matrix.to_3x3()) * np.where(np.array(bone.scale) < 0.0, -1.0, 1.0) for bone in posed]
    limb = Limb(joints, orthonormal(np.array(frames, dtype=np.float64)))
    if not limb.length > 0.0:
        raise ChainError(f"The chain that ends in '{bones[-1].name}' has no length in this pose; reset its bones")
    return limb


def _elbow(ob: bpy.types.Object, bones: list[bpy.types.PoseBone]) -> int | None:
    """Index of the joint where the lower half of an arm or leg begins; None where bones are not one."""
    figure = Figure.of(ob)
    return chain_ends.elbow(figure, [figure.names.index(bone.name) for bone in bones])


def _target_of(limb: Limb) -> Floats:
    """Where the target (3,) keeps a limb as it is: at the tip."""
    line = _unit(limb.joints[-1] - limb.joints[0])
    beyond = BEYOND * limb.length * line if np.linalg.norm(_across(limb), axis=1).max() < STRAIGHT else 0.0
    return np.asarray(limb.joints[-1] + beyond)


def _across(limb: Limb) -> Floats:
    """How far (n+1, 3) the joints are off the line from root to tip, in lengths of the limb."""
    line = _unit(limb.joints[-1] - limb.joints[0])
    seen = (limb.joints - limb.joints[0]) / limb.length
    return np.asarray(seen - np.outer(seen @ line, line))


def _bend(limb: Limb, middle: int) -> Floats:
    """Unit vector (3,) from the line between root and tip towards the middle joint.

    A straight limb bends by a positive rotation about the X axis of its root bone, as the solver does it.
    """
    across = _across(limb)[middle]
    if np.linalg.norm(across) >= STRAIGHT:
        return _unit(across)
    line = _unit(limb.joints[-1] - limb.joints[0])
    across = np.cross(line, limb.frames[0, :, 0])
    return _unit(across) if np.linalg.norm(across) > STRAIGHT else np.array(Vector(line.tolist()).orthogonal())


def _unit(vector: Floats) -> Floats:
    size = np.linalg.norm(vector)
    return np.asarray(vector / size if size > 0.0 else vector)


def _pole_angle(limb: Limb, world: Matrix, target: Vector, pole: Vector | None) -> float:
    """The pole angle with which a limb stays as it is, for goals as exact as Blender stores their positions.

    Args:
        limb: in object space.
        world: from there to world space.
        target: in world space.
        pole: in world space.

    Raises:
        ChainError: if world space is too coarse to place a target in it.
    """
    to_object = np.linalg.inv(matrix_array(world))
    with np.errstate(all="ignore"):
        points = [
            to_object[:3, :3] @ np.array(place) + to_object[:3, 3]
            for place in (target, target if pole is None else pole)
        ]
    if not np.linalg.norm(points[0] - limb.joints[-1]) < 0.1 * limb.length:
        raise ChainError("The armature is too far from the world's origin, or scaled too much, to place a target")
    if pole is None:
        return 0.0
    angle = float(pole_angle(limb.joints[None], limb.frames[None], points[0][None], points[1][None])[0])
    return angle if abs(angle) > NO_ANGLE else 0.0


# ---- empties and their collection


def _made_collection(ob: bpy.types.Object) -> bpy.types.Collection | None:
    collections: Any = bpy.data.collections
    collection = collections.get((f"{ob.name} IK", None))  # not a linked one of that name
    return collection if collection is not None and MADE in collection and collection.is_editable else None


def _layer_collection(
    inside: bpy.types.LayerCollection, collection: bpy.types.Collection
) -> bpy.types.LayerCollection | None:
    if inside.collection == collection:
        return inside
    found = (_layer_collection(child, collection) for child in inside.children)
    return next((layer for layer in found if layer is not None), None)


def _collection(context: bpy.types.Context, ob: bpy.types.Object) -> bpy.types.Collection:
    """The collection for an armature's targets and poles, in the scene; made where there is none."""
    collection = _made_collection(ob)
    if collection is None:
        collection = bpy.data.collections.new(f"{ob.name} IK")
        collection[MADE] = ob.name
    if _layer_collection(context.view_layer.layer_collection, collection) is None:
        context.scene.collection.children.link(collection)
    return collection


def _empty(
    context: bpy.types.Context,
    name: str,
    collection: bpy.types.Collection,
    display: Literal["CUBE", "SPHERE"],
    size: float,
) -> bpy.types.Object:
    empty = bpy.data.objects.new(name, None)
    empty[MADE] = collection[MADE]
    empty.empty_display_type = display
    empty.empty_display_size = size
    empty.show_in_front = True
    collection.objects.link(empty)
    space = context.space_data
    if isinstance(space, bpy.types.SpaceView3D) and space.local_view is not None:
        empty.local_view_set(space, True)
    return empty


def _is_needed(goal: bpy.types.Object) -> bool:
    """Whether an empty holds a user's work, or anything but scenes and collections refers to it."""
    data = goal.animation_data
    if goal.constraints or (data is not None and (data.action or data.nla_tracks or data.drivers)):
        return True
    blend: Any = bpy.data  # the stubs take user_map's options for required
    users = blend.user_map(subset=[goal])[goal]
    places = (bpy.types.Collection, bpy.types.Scene, bpy.types.Screen, bpy.types.WorkSpace, bpy.types.WindowManager)
    return any(not isinstance(user, places) for user in users)


def _delete(goal: bpy.types.Object) -> None:
    """Delete an empty, and the collection made for it where that is empty by then."""
    collections: list[Any] = list(goal.users_collection)
    bpy.data.objects.remove(goal)
    for collection in collections:
        if MADE in collection and not collection.all_objects and not collection.children:
            bpy.data.collections.remove(collection)


def _reset(chain: IKAddonChain) -> None:
    """Bring the settings of a chain back to their defaults; the FK base of its bone is no setting."""
    for name in chain.bl_rna.properties.keys():  # noqa: SIM118
        if name not in {"rna_type", "name", "is_chain", "base", "resting"}:
            chain.property_unset(name)
