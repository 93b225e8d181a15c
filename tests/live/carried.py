"""An arm whose target a live spine carries, in all the ways that Blender has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import bpy

from tests import rigs

FRAMES = tuple(range(1, 22, 4))
"""Frames on which the spine bends; after the last key nothing moves."""
PLACE = (0.3, -0.2, 0.6)


@dataclass(frozen=True)
class Carried:
    """A spine of two bones that follows a keyed target, and an arm."""

    spine: bpy.types.Object
    arm: bpy.types.Object
    """The armature of the arm: that of the spine, or another one."""
    bend: bpy.types.Object
    """The target of the spine."""
    target: bpy.types.Object
    """The target of the arm."""


def build(carry: Carry, *, shared: bool = True) -> Carried:
    """Return an arm and a spine that are not live yet.

    Args:
        carry: attaches the target.
        shared: whether the arm is a part of the same armature, attached to the spine.
    """
    spine = rigs.limb([(0, 0, 0), (0, 0.02, 0.5), (0, 0, 1)], ["spine1", "spine2"], name="Spine")
    arm = spine if shared else rigs.armature("Arm")
    parent = "spine2" if shared else None
    rigs.add_bones(arm, [(0.2, 0, 1), (0.6, -0.1, 0.9), (1, 0, 0.9)], ["upper", "lower"], parent=parent, connect=False)
    bend = rigs.empty("Bend")
    rigs.chain(spine, "spine2", bend, 2)
    rigs.key(bend, "location", {1: (0.0, 0.0, 1.0), 20: (0.2, -0.5, 0.7)})
    bpy.context.scene.frame_set(1)
    target = rigs.empty("Hand", PLACE)
    found = Carried(spine, arm, bend, target)
    rigs.chain(arm, "lower", target, 2, out_of_reach="STRETCH")
    carry(found)
    bpy.context.view_layer.update()
    return found


Carry = Callable[[Carried], object]


def constraint(owner: Any, kind: str, rig: bpy.types.Object, bone: str = "spine2", **values: object) -> Any:
    """Add a constraint that refers to a bone, by default of the spine."""
    made = rigs.constrain(owner, kind, **values)
    aim = made.targets.new() if kind == "ARMATURE" else made
    aim.target, aim.subtarget = rig, bone
    return made


def _by(kind: str, **values: object) -> Carry:
    return lambda own: constraint(own.target, kind, own.spine, **values)


def _by_parent(kind: str, **values: object) -> Carry:
    """Let a helper follow the spine, and parent the target to it."""

    def carry(own: Carried) -> None:
        helper = rigs.empty("Helper", PLACE)
        constraint(helper, kind, own.spine, **values)
        own.target.parent, own.target.location = helper, (0.0, 0.0, 0.2)

    return carry


def to_bone(child: bpy.types.Object, rig: bpy.types.Object, bone: str = "spine2") -> None:
    """Parent an object to a bone."""
    child.parent, child.parent_type, child.parent_bone = rig, "BONE", bone


def _to_bone(own: Carried) -> None:
    to_bone(own.target, own.spine)
    own.target.location = (0.3, -0.2, -0.4)


def _copies_a_child(own: Carried) -> None:
    helper = rigs.empty("Helper", PLACE)
    to_bone(helper, own.spine)
    rigs.constrain(own.target, "COPY_LOCATION", target=helper)


def _on_path(own: Carried) -> None:
    curve: Any = bpy.data.curves.new("Path", "CURVE")
    curve.dimensions = "3D"
    points = curve.splines.new("POLY").points
    points.add(2)
    for point, z in zip(points, (0.5, 0.6, 0.7), strict=True):
        point.co = (0.3, -0.2, z, 1.0)
    path = bpy.data.objects.new("Path", curve)
    bpy.context.scene.collection.objects.link(path)
    to_bone(path, own.spine)
    own.target.location = (0.0, 0.0, 0.0)
    rigs.constrain(own.target, "FOLLOW_PATH", target=path, use_fixed_location=True, offset_factor=0.5)


def _bone_of_props(own: Carried) -> None:
    props = rigs.limb([PLACE, (0.3, -0.2, 0.8)], ["prop"], name="Props")
    constraint(props.pose.bones["prop"], "COPY_LOCATION", own.spine)
    chain = own.arm.pose.bones["lower"].ik_addon
    chain.target, chain.target_bone = props, "prop"


def add_skin(rig: bpy.types.Object, bone: str = "spine2") -> bpy.types.Object:
    """Return a triangle that one bone deforms."""
    skin = rigs.mesh("Skin", [PLACE, (-0.3, -0.2, 0.6), (0.0, -0.2, 0.9)], [(0, 1, 2)])
    return rigs.deform(skin, rig, {bone: range(3)})


def on_vertex(target: bpy.types.Object, skin: bpy.types.Object) -> None:
    """Parent an object to a vertex."""
    target.parent, target.parent_type, target.location = skin, "VERTEX", (0.0, 0.0, 0.0)
    target.parent_vertices[0] = 0


def on_skin(kind: str, part: str = "spine", bone: str = "spine2") -> Carry:
    """Attach the target to the skin of a bone of the spine, or of the arm, by a parent or a constraint."""

    def carry(own: Carried) -> None:
        skin = add_skin(getattr(own, part), bone)
        if kind == "VERTEX":
            on_vertex(own.target, skin)
        else:
            group = {"subtarget": bone} if kind == "COPY_LOCATION" else {}
            rigs.constrain(own.target, kind, target=skin, **group)

    return carry


def driven(owner: Any, path: str, index: int, by: bpy.types.Object, expression: str = "value", **aim: Any) -> Any:
    """Let a transform of an object, or of a bone of it, drive a channel; return the driver's curve."""
    curve = owner.driver_add(path, index)
    variable = curve.driver.variables.new()
    variable.name, variable.type, variable.targets[0].id = "value", "TRANSFORMS", by
    for name, value in aim.items():
        setattr(variable.targets[0], name, value)
    curve.driver.expression = expression
    return curve


def drive(target: bpy.types.Object, rig: bpy.types.Object, bone: str = "spine2") -> None:
    """Let drivers move an object along with the head of a bone."""
    for axis, (name, offset) in enumerate(zip("XYZ", (0.3, -0.2, 0.1), strict=True)):
        aim = {"bone_target": bone, "transform_space": "WORLD_SPACE", "transform_type": f"LOC_{name}"}
        driven(target, "location", axis, rig, f"value + {offset}", **aim)


KINDS: dict[str, Carry] = {
    "bone parent": _to_bone,
    "Child Of": _by("CHILD_OF"),
    "Child Of at half influence": _by("CHILD_OF", influence=0.5),
    "Armature": _by("ARMATURE"),
    "Copy Location": _by("COPY_LOCATION"),
    "Copy Location along X": _by("COPY_LOCATION", use_y=False, use_z=False),
    "Copy Location with offset": _by("COPY_LOCATION", use_offset=True),
    "Copy Transforms": _by("COPY_TRANSFORMS"),
    "Copy Rotation of its parent": _by_parent("COPY_ROTATION"),
    "Damped Track of its parent": _by_parent("DAMPED_TRACK"),
    "Transformation": _by(
        "TRANSFORM", from_min_x=-1, from_max_x=1, to_min_x=-1, to_max_x=1, from_min_z=0, from_max_z=1, to_min_z=0.3
    ),
    "Limit Distance": _by("LIMIT_DISTANCE", distance=0.3),
    "Floor": _by("FLOOR", floor_location="FLOOR_Z", offset=0.2),
    "Copy Location of a child": _copies_a_child,
    "Follow Path": _on_path,
    "bone of another armature": _bone_of_props,
    "vertex of a skin": on_skin("VERTEX"),
    "vertex group of a skin": on_skin("COPY_LOCATION"),
    "Shrinkwrap to a skin": on_skin("SHRINKWRAP"),
    "driver": lambda own: drive(own.target, own.spine),
}
"""Ways to carry the target of the arm along with the spine."""
