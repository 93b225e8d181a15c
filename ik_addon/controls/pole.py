"""The bone that carries a chain and its pole, so that the limb keeps its bend wherever the body goes."""

from __future__ import annotations

import bpy
from mathutils import Matrix

from ..anatomy import body
from ..anatomy.figure import Figure
from ..rig.plan.chain import chain_bones, tips


def parent_bone_of(ob: bpy.types.Object, bones: list[bpy.types.PoseBone]) -> str:
    """Return the bone that carries a chain, whose bones are given root first; empty if nothing is above the chain."""
    figure = Figure.of(ob)
    index = {name: i for i, name in enumerate(figure.names)}
    solved = {index[name] for name in _solved_with(ob, {bone.name for bone in bones})}
    parent_bone = body.parent_bone_of(figure, [index[bone.name] for bone in bones], solved)
    return "" if parent_bone is None else figure.names[parent_bone]


def attach(ob: bpy.types.Object, parent_bone: str, pole: bpy.types.Object) -> None:
    """Parent an object to a bone without moving it."""
    bone = ob.pose.bones[parent_bone]
    pole.parent, pole.parent_type, pole.parent_bone = ob, "BONE", parent_bone
    tail = bone.matrix @ Matrix.Translation((0.0, bone.bone.length, 0.0))  # children of bones are placed at the tail
    pole.matrix_parent_inverse = (ob.matrix_world @ tail).inverted_safe()


def _solved_with(ob: bpy.types.Object, bones: set[str]) -> set[str]:
    """Return the bones of all chains that share bones with these, directly or through other chains."""
    chains = [{bone.name for bone in chain_bones(tip)} for tip in tips(ob)]
    found = set(bones)
    while any(not found.isdisjoint(own) and not own <= found for own in chains):
        found = found.union(*(own for own in chains if not found.isdisjoint(own)))
    return found
