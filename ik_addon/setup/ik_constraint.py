"""One of Blender's IK constraints: what it moves, what keeps it from being a chain, and the chain that replaces it."""

from __future__ import annotations

from collections.abc import Iterable

import bpy

from .. import compat
from ..data.settings import chain_of
from ..pose import keyframes
from ..pose.skeleton import Skeleton
from ..rig.plan.chain import chain_bones
from ..solve import pole_angle
from ..solve.problem import Floats
from .present import Limb, seen_from, world_of


def tip_of(owner: bpy.types.PoseBone, constraint: bpy.types.KinematicConstraint) -> bpy.types.PoseBone:
    """The last bone that a constraint moves; None where there is none."""
    return owner if constraint.use_tail else owner.parent


def bones_of(ob: bpy.types.Object, owner: bpy.types.PoseBone, constraint: bpy.types.KinematicConstraint) -> list[int]:
    """Indices of the bones that a constraint moves, root first."""
    tip = tip_of(owner, constraint)
    bones = [ob.pose.bones.find(bone.name) for bone in (tip, *tip.parent_recursive)]
    return bones[: constraint.chain_count or None][::-1]


def obstacle(
    ob: bpy.types.Object,
    owner: bpy.types.PoseBone,
    constraint: bpy.types.KinematicConstraint,
    made: Iterable[str],
) -> str:
    """Why a constraint cannot become a chain; empty where it can."""
    tip = tip_of(owner, constraint)
    if tip is None:
        return "it moves no bone, because Use Tail is off and its bone has no parent"
    if not constraint.is_valid or constraint.target is None:
        return "it has no valid target or pole, so it does nothing"
    if constraint.target.type != "ARMATURE" and constraint.subtarget:
        return "its target is a vertex group"
    if not constraint.use_location or constraint.weight == 0.0:
        return "it does not pull its tip to the target's position"
    if tip.name in made:
        return f"'{tip.name}' is the tip of another constraint"
    if chain_of(tip).is_chain:
        return f"'{tip.name}' already has a chain"
    path = constraint.path_from_id()
    if any(curve.data_path in {f"{path}.mute", f"{path}.enabled"} for curve in curves_of(ob)):
        return "its Enabled setting is animated or driven. Animate its influence instead"
    return ""


def make_chain(
    ob: bpy.types.Object,
    owner: bpy.types.PoseBone,
    constraint: bpy.types.KinematicConstraint,
    angle: float,
) -> list[str]:
    """Replace a constraint by a chain on its tip and mute the constraint; return what could not be transferred."""
    tip = tip_of(owner, constraint)
    chain = chain_of(tip)
    chain.chain_length = constraint.chain_count
    chain.target, chain.target_bone = constraint.target, constraint.subtarget
    chain.pole, chain.pole_bone = constraint.pole_target, constraint.pole_subtarget
    chain.pole_angle = angle
    chain.use_rotation = constraint.use_rotation
    chain.weight = constraint.weight
    chain.influence = constraint.influence
    chain.iterations = max(constraint.iterations, 1)
    chain.enabled = True
    if constraint.use_stretch and any(bone.ik_stretch > 0.0 for bone in chain_bones(tip)):
        chain.out_of_reach = "STRETCH"
    warnings = _transfer_animation(ob, owner, constraint, tip)
    bones = chain_bones(tip)
    if constraint.pole_target is not None and len(bones) == 2 and _is_limited(bones[0]):
        chain.use_limits = False
        warnings.append(
            f"Blender ignores the limits of '{bones[0].name}' because of the pole, so the chain on '{tip.name}' has "
            "Limits off to keep its pose"
        )
    constraint.mute = True
    chain.is_chain = True
    return warnings


def _is_limited(bone: bpy.types.PoseBone) -> bool:
    return any(getattr(bone, f"{name}_{axis}") for name in ("use_ik_limit", "lock_ik") for axis in "xyz")


def pole_angle_of(
    ob: bpy.types.Object,
    skeleton: Skeleton,
    owner: bpy.types.PoseBone,
    constraint: bpy.types.KinematicConstraint,
    poses: Floats,
    side: Floats,
    depsgraph: bpy.types.Depsgraph,
) -> float:
    """The pole angle of a chain that bends as the constraint does, in the pose (m, 4, 4) that it makes.

    Blender turns the root bone's X axis towards the pole, and the bend turns with it: that is the same angle between
    bend and pole wherever the target goes. It never stretches a limb out so far that the bend could not be seen.
    """
    if constraint.pole_target is None:
        return 0.0
    bones = bones_of(ob, owner, constraint)
    limb = Limb.of(skeleton, bones, poses)
    target, pole = (
        seen_from(ob, world_of(goal, bone, depsgraph).translation, depsgraph)
        for goal, bone in (
            (constraint.target, constraint.subtarget),
            (constraint.pole_target, constraint.pole_subtarget),
        )
    )
    own = limb.frames[0].dot(side)
    return float(pole_angle(limb.joints[None], limb.frames[None], target[None], pole[None], own[None])[0])


# ---- animation


def _transfer_animation(
    ob: bpy.types.Object,
    owner: bpy.types.PoseBone,
    constraint: bpy.types.KinematicConstraint,
    tip: bpy.types.PoseBone,
) -> list[str]:
    """Animate the influence of the chain as that of the constraint is; return what could not be transferred."""
    where = f"'{constraint.name}' on '{owner.name}'"
    path = constraint.path_from_id()
    warnings = []
    for curve in curves_of(ob):
        if not curve.data_path.startswith(f"{path}."):
            continue
        name = curve.data_path.rpartition(".")[2]
        if name != "influence":
            warnings.append(f"The animation of '{name}' of {where} was not transferred. The chain keeps its value")
        elif curve.driver is not None:
            copy = ob.animation_data.drivers.from_existing(src_driver=curve)
            copy.data_path = influence_path(tip)
        elif not curve.id_data.is_editable:
            warnings.append(f"The keys on the influence of {where} are linked and were not transferred")
        else:
            _copy_curve(ob, curve, influence_path(tip))
            if len(curve.modifiers):
                warnings.append(f"The F-curve modifiers on the influence of {where} were not transferred")
    if ob.animation_data is not None and ob.animation_data.nla_tracks:
        warnings.append(f"Keys in NLA tracks on the influence of {where}, if any, were not transferred")
    return warnings


def influence_path(tip: bpy.types.PoseBone) -> str:
    """The data path of the influence of the chain on a tip bone."""
    return f"{tip.path_from_id()}.ik_addon.influence"


def _copy_curve(ob: bpy.types.Object, curve: bpy.types.FCurve, path: str) -> None:
    owner = compat.curve_owner(ob)
    copy = owner.fcurves.find(path) or owner.fcurves.new(path)
    keyframes.write_keys(copy, keyframes.read_keys(curve))
    copy.extrapolation = curve.extrapolation


def drop_animation(ob: bpy.types.Object, tip: bpy.types.PoseBone) -> None:
    """Remove what `_transfer_animation` made."""
    path = influence_path(tip)
    for curve in [curve for curve in curves_of(ob) if curve.data_path == path]:
        if curve.driver is not None:
            ob.animation_data.drivers.remove(curve)
        else:
            compat.curve_owner(ob).fcurves.remove(curve)


def curves_of(ob: bpy.types.Object) -> list[bpy.types.FCurve]:
    """The F-curves and drivers of an object."""
    if ob.animation_data is None:
        return []
    owner = compat.curve_owner(ob)
    return [*([] if owner is None else owner.fcurves), *ob.animation_data.drivers]
