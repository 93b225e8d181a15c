"""Random scenes with armatures, chains and targets, one per seed.

Objects have a rank: parents, constraints and drivers refer only to objects of lower rank, so that Blender itself never
has a dependency cycle. Goals of chains may be any object.
"""

from typing import Any

import bpy
import numpy as np
from mathutils import Euler, Vector
from numpy.random import Generator

from tests.live.carried import driven

from .known import rotation_field

MODES = ("QUATERNION", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX", "AXIS_ANGLE")
INHERIT_SCALE = ("FULL", "FIX_SHEAR", "ALIGNED", "AVERAGE", "NONE", "NONE_LEGACY")
NAMES = ("Rig", 'Rig "quoted"', "Arm.L", "Ärmel 🦾", "a\\b", "x" * 63)
BONE_NAMES = ("bone", "Arm.L", 'b "q"', "ü🦴", "a\\b['x']", "n" * 63)


def choose(rng: Generator, items: Any) -> Any:
    """Return one of the items, unconverted."""
    items = list(items)
    return items[int(rng.integers(len(items)))]


def numbers(rng: Generator, size: float = 1.0, count: int = 3) -> tuple[float, ...]:
    """Normally distributed numbers around zero."""
    return tuple(float(x) for x in rng.normal(size=count) * size)


def scale(rng: Generator) -> tuple[float, float, float]:
    """A scale: mostly 1, else any, including mirrored and flat."""
    kind = rng.random()
    if kind < 0.7:
        return 1.0, 1.0, 1.0
    if kind < 0.8:
        return (float(rng.uniform(0.3, 2.0)),) * 3
    values = [float(x) for x in rng.uniform(0.3, 2.0, 3)]
    if kind < 0.92:
        return values[0], values[1], values[2]
    values[int(rng.integers(3))] *= -1.0 if kind < 0.97 else 0.0
    return values[0], values[1], values[2]


def rank(ob: Any) -> int:
    """The rank of an object, 0 if it has none."""
    return int(ob.get("rank", 0))


def scene_objects() -> list[bpy.types.Object]:
    """The objects of the scene, lowest rank first."""
    return sorted(bpy.context.scene.objects, key=rank)


def link(rng: Generator, name: str, data: bpy.types.ID | None) -> bpy.types.Object:
    """Add an object of the next rank at a random place."""
    ob = bpy.data.objects.new(name, data)
    ob["rank"] = 1 + max(map(rank, bpy.data.objects), default=0)
    bpy.context.scene.collection.objects.link(ob)
    ob.location, ob.rotation_euler = numbers(rng), numbers(rng)
    return ob


def build(rng: Generator) -> None:
    """Fill an empty scene with goals, armatures and chains."""
    for _ in range(int(rng.integers(2, 5))):
        animated(rng, hang(rng, link(rng, "Goal", None)), ("location",))
    for _ in range(choose(rng, [1, 1, 1, 2, 2, 3])):
        add_armature(rng)
        for _ in range(int(rng.integers(0, 3))):
            animated(rng, hang(rng, link(rng, "Goal", None)), ("location",))
    for ob in armatures():
        for _ in range(choose(rng, [1, 1, 2, 3])):
            add_chain(rng, ob)


def armatures() -> list[bpy.types.Object]:
    """The armature objects of the scene."""
    return [ob for ob in scene_objects() if ob.type == "ARMATURE"]


def below(ob: bpy.types.Object) -> list[bpy.types.Object]:
    """The objects that an object may depend on."""
    return [other for other in scene_objects() if rank(other) < rank(ob)]


def hang(rng: Generator, ob: bpy.types.Object) -> bpy.types.Object:
    """Give an object a parent, a constraint, a driver, or nothing."""
    others = below(ob)
    if not others or rng.random() < 0.5:
        return ob
    other, kind = choose(rng, others), rng.random()
    bone = choose(rng, other.data.bones).name if other.type == "ARMATURE" and len(other.data.bones) else ""
    if kind < 0.5:
        ob.parent = other
        if bone and rng.random() < 0.7:
            ob.parent_type, ob.parent_bone = "BONE", bone
    elif kind < 0.9:
        constraint = ob.constraints.new(
            choose(rng, ["CHILD_OF", "COPY_LOCATION", "COPY_TRANSFORMS", "DAMPED_TRACK", "LIMIT_DISTANCE"])
        )
        constraint.target, constraint.subtarget = other, bone
        constraint.influence = choose(rng, [1.0, 1.0, 0.5, 0.0])
        constraint.mute = rng.random() < 0.1
    else:
        driver(ob, "location", int(rng.integers(3)), other)
    return ob


def driver(owner: Any, path: str, index: int, source: bpy.types.Object) -> None:
    """Drive a channel by the X location of an object."""
    driven(owner, path, index, source, transform_type="LOC_X").driver.type = "SUM"


def animated(rng: Generator, owner: Any, paths: tuple[str, ...], chance: float = 0.4) -> Any:
    """Perhaps key channels of an object or bone on some frames."""
    if rng.random() < chance:
        for path in paths:
            before = np.array(getattr(owner, path))
            for frame in (1, 8, 20):
                setattr(owner, path, before + rng.normal(size=len(before)) * 0.4)
                owner.keyframe_insert(path, frame=frame)
    return owner


def add_armature(rng: Generator) -> bpy.types.Object:
    """Add a posed armature with bones in a random hierarchy."""
    ob = link(rng, choose(rng, NAMES), bpy.data.armatures.new("Data"))
    ob.scale = scale(rng)
    hang(rng, ob)
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="EDIT")
    bones = ob.data.edit_bones
    made: list[str] = []
    for _ in range(int(rng.integers(1, 11))):
        bone = bones.new(choose(rng, BONE_NAMES))
        parent = None
        if made and rng.random() < 0.9:
            parent = bones[made[-1] if rng.random() < 0.7 else choose(rng, made)]
        start = parent.tail if parent else Vector(numbers(rng))
        if parent and rng.random() < 0.4:
            start = start + Vector(numbers(rng, 0.3))
        step = Vector(numbers(rng)) if rng.random() < 0.7 else Vector((0.0, 0.0, 1.0))
        bone.head, bone.tail = start, start + step * 0.6 + Vector((0.0, 0.01, 0.02))
        bone.roll = float(rng.normal())
        bone.parent = parent
        bone.use_connect = parent is not None and (bone.head - parent.tail).length < 1e-6 and rng.random() < 0.7
        bone.use_inherit_rotation = rng.random() < 0.85
        bone.use_local_location = rng.random() < 0.8
        if rng.random() < 0.3:
            bone.inherit_scale = choose(rng, INHERIT_SCALE)
        made.append(bone.name)
    bpy.ops.object.mode_set(mode="OBJECT")
    limited = rng.random() < 0.2
    for bone in ob.pose.bones:
        pose_bone(rng, ob, bone)
        if limited:
            limit(rng, bone)
    animated(rng, ob, ("location", "rotation_euler"), 0.2)
    return ob


def pose_bone(rng: Generator, ob: bpy.types.Object, bone: bpy.types.PoseBone) -> None:
    """Pose a bone, perhaps key it, and sometimes give it a constraint or a driver."""
    bone.rotation_mode = choose(rng, MODES)
    if rng.random() < 0.6:
        set_rotation(bone, numbers(rng, choose(rng, [0.3, 3.0])))
    if rng.random() < 0.3:
        bone.location = numbers(rng, 0.3)
    bone.scale = scale(rng)
    animated(rng, bone, (rotation_field(bone.rotation_mode), "location")[: choose(rng, [1, 2])], 0.25)
    bone.ik_stretch = choose(rng, [0.0, 0.0, 0.3])
    others = below(ob)
    if others and rng.random() < 0.08:
        constraint = bone.constraints.new(
            choose(rng, ["COPY_ROTATION", "DAMPED_TRACK", "LIMIT_ROTATION", "COPY_LOCATION", "CHILD_OF", "IK"])
        )
        if hasattr(constraint, "target"):
            constraint.target = choose(rng, others)
        constraint.mute = rng.random() < 0.3
    if others and rng.random() < 0.06:
        path = choose(rng, [rotation_field(bone.rotation_mode), "scale", "location"])
        driver(bone, path, int(rng.integers(3)), choose(rng, others))


def limit(rng: Generator, bone: bpy.types.PoseBone) -> None:
    """Limit, lock or stiffen some axes of a joint."""
    for axis in "xyz":
        if rng.random() < 0.2:
            setattr(bone, f"use_ik_limit_{axis}", True)
            # The extension refuses a minimum above zero, with a message.
            setattr(bone, f"ik_min_{axis}", -abs(float(rng.normal())) if rng.random() < 0.95 else 0.2)
            setattr(bone, f"ik_max_{axis}", abs(float(rng.normal())))
        setattr(bone, f"lock_ik_{axis}", bool(rng.random() < 0.06))
        setattr(bone, f"ik_stiffness_{axis}", choose(rng, [0.0] * 8 + [0.5, 0.99]))


def set_rotation(bone: bpy.types.PoseBone, angles: tuple[float, ...]) -> str:
    """Rotate a bone in its own rotation mode; return the channel."""
    path, quaternion = rotation_field(bone.rotation_mode), Euler(angles).to_quaternion()
    if path == "rotation_quaternion":
        bone.rotation_quaternion = quaternion
    elif path == "rotation_axis_angle":
        axis, angle = quaternion.to_axis_angle()
        bone.rotation_axis_angle = (angle, axis.x, axis.y, axis.z)
    else:
        bone.rotation_euler = angles
    return path


def add_chain(rng: Generator, ob: bpy.types.Object) -> None:
    """Make a random bone the tip of a chain with random settings."""
    if not len(ob.pose.bones):
        return
    bone = choose(rng, ob.pose.bones)
    chain = bone.ik_addon
    chain.chain_length = choose(rng, [0, 1, 2, 2, 3, 3, 4, 6])
    for role, chance in (("target", 0.95), ("pole", 0.3)):
        if rng.random() < chance:
            goal = choose(rng, scene_objects())
            setattr(chain, role, goal)
            if goal.type == "ARMATURE" and len(goal.data.bones) and rng.random() < 0.8:
                setattr(chain, f"{role}_bone", choose(rng, goal.data.bones).name)
    if len(bone.children) and rng.random() < 0.5:
        chain.end_bone, chain.use_end_rotation = choose(rng, bone.children).name, True
        chain.end_offset = Euler(rng.uniform(-3.0, 3.0, 3).tolist()).to_quaternion()
    for _ in range(int(rng.integers(0, 5))):
        change_setting(rng, bone)
    chain.is_chain = True


SETTINGS: dict[str, tuple[Any, ...]] = {
    "solver": ("AUTO", "AUTO", "EVEN_BEND", "FABRIK", "TWO_BONE"),
    "pole_angle": (0.0, 1.0, -3.0),
    "iterations": (100, 20, 1),
    "tolerance": (1e-6, 1e-4, 1.0),
    "out_of_reach": ("EXTEND", "STRETCH", "PUSH_ROOT"),
    "softness": (0.0, 0.1, 1.0),
    "push_limit": (0.25, 0.0, 2.0),
    "use_limits": (True, False),
    "use_rotation": (True, False, False, False, False),
    "use_end_rotation": (True, True, False),
    "end_bone": ("", "", "missing"),
    "planar": (True, False, False),
    "weight": (1.0, 0.1),
    "influence": (1.0, 0.5, 0.0),
    "chain_length": (0, 1, 2, 3, 5),
    "bend_lead": (0.0, 0.6, -0.6),
    "bends_both_ways": (True, False),
    "use_pole": (True, False),
    "bend_side": ((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.3, -1.0, 0.5)),
}


def change_setting(rng: Generator, bone: bpy.types.PoseBone) -> str:
    """Change a random setting of a chain; return what was set."""
    name = choose(rng, SETTINGS)
    value = choose(rng, SETTINGS[name])
    setattr(bone.ik_addon, name, value)
    return f"{name} = {value}"
