"""Armatures, targets and measurements for tests that need Blender."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import bpy
import numpy as np
from mathutils import Vector
from numpy.typing import NDArray

T = TypeVar("T")
Point = Sequence[float]
Poses = dict[float, NDArray[np.float32]]
"""Pose matrices of an armature, as `pose` returns them, by frame or sub-frame."""
HAS_SLOTS = bpy.app.version >= (4, 4, 0)
CHANNELS = {"location": 3, "rotation_quaternion": 4, "rotation_euler": 3, "rotation_axis_angle": 4, "scale": 3}
"""The transform channels of a bone, with the number of their components."""
SAME = 1e-6
"""Poses that differ by no more than this are the same; limbs are one to two units long."""


def armature(name: str = "Rig") -> bpy.types.Object:
    """Add an armature object without bones and make it active."""
    ob = bpy.data.objects.new(name, bpy.data.armatures.new(name))
    bpy.context.scene.collection.objects.link(ob)
    bpy.context.view_layer.objects.active = ob
    return ob


def add_bones(
    ob: bpy.types.Object, points: Sequence[Point], names: Sequence[str], parent: str | None = None, connect: bool = True
) -> None:
    """Add bones along points (one more than names), each the child of the previous one."""
    with edit_mode(ob) as bones:
        above = bones[parent] if parent else None
        for i, name in enumerate(names):
            bone = bones.new(name)
            bone.head, bone.tail = points[i], points[i + 1]
            bone.parent = above
            bone.use_connect = connect and above is not None and (bone.head - above.tail).length < 1e-6
            above = bone


def limb(points: Sequence[Point], names: Sequence[str], name: str = "Rig", connect: bool = True) -> bpy.types.Object:
    """Add an armature with bones along points and make it active, with its last bone."""
    ob = armature(name)
    add_bones(ob, points, names, connect=connect)
    ob.data.bones.active = ob.data.bones[names[-1]]
    return ob


@contextmanager
def edit_mode(ob: bpy.types.Object) -> Iterator[Any]:
    """Make an armature active and yield its edit bones, in Edit Mode while the code inside runs."""
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="EDIT")
    yield ob.data.edit_bones
    bpy.ops.object.mode_set(mode="OBJECT")


def roll_bones(ob: bpy.types.Object, roll: float, step: float = 0.0) -> None:
    """Set the roll of all bones, each `step` further than the one before."""
    with edit_mode(ob) as bones:
        for i, bone in enumerate(bones):
            bone.roll = roll + step * i


def straight(count: int, length: float = 1.0) -> list[Point]:
    """Return the points of a chain straight up."""
    return [(0.0, 0.0, length * i) for i in range(count + 1)]


def bent(count: int, length: float = 1.0, angle: float = 0.3) -> list[Point]:
    """Return the points of a chain that bends by `angle` at each joint, in the YZ plane."""
    points = [Vector((0.0, 0.0, 0.0))]
    for i in range(count):
        points.append(points[-1] + length * Vector((0.0, np.sin(angle * i), np.cos(angle * i))))
    return [tuple(p) for p in points]


def empty(name: str, location: Point = (0.0, 0.0, 0.0)) -> bpy.types.Object:
    """Add an empty to the scene."""
    ob = bpy.data.objects.new(name, None)
    ob.location = location
    bpy.context.scene.collection.objects.link(ob)
    return ob


def delete(ob: bpy.types.Object) -> None:
    """Delete an object as a user does: settings that name it still hold it."""
    for collection in ob.users_collection:
        collection.objects.unlink(ob)


def held(ob: bpy.types.Object) -> list[str]:
    """Return the names of bones with a stored FK pose, over which a solution was written."""
    stored = {bone.name for bone in ob.pose.bones if bone.ik_addon.base.stored}
    for bone in ob.pose.bones:
        noted = json.loads(bone.ik_addon.resting or "{}")
        stored.update(name for name, distance in noted.items() if distance is not None)
    return [bone.name for bone in ob.pose.bones if bone.name in stored]


def chain(
    ob: bpy.types.Object, tip: str, target: bpy.types.Object | None, length: int = 0, **settings: object
) -> bpy.types.PoseBone:
    """Add a chain to a bone."""
    bone = ob.pose.bones[tip]
    bone.ik_addon.chain_length = length
    bone.ik_addon.target = target
    for name, value in settings.items():
        setattr(bone.ik_addon, name, value)
    bone.ik_addon.is_chain = True
    return bone


def arm(straight_rest: bool = False) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a two-bone arm with a chain on 'lower', its active bone, and its target."""
    elbow = (0.0, 0.0 if straight_rest else -0.2, 1.0)
    ob = limb([(0, 0, 0), elbow, (0, 0, 2)], ["upper", "lower"])
    target = empty("Target", (0.6, 0.5, 1.0))
    chain(ob, "lower", target, 2)
    return ob, target


def animated_arm() -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a live arm whose upper bone is keyed and whose lower bone is not, and its moving target."""
    ob, target = arm()
    key(target, "location", {1: (0.6, 0.5, 1.0), 20: (-0.5, 0.9, 0.8), 50: (0.2, -0.7, 1.4)})
    upper = ob.pose.bones["upper"]
    key(upper, "rotation_quaternion", {1: (1, 0, 0, 0), 30: (0.9, 0.1, 0.3, 0.0), 50: (0.8, -0.2, 0, 0.3)})
    ob.pose.bones["lower"].rotation_quaternion = (0.98, 0.0, 0.17, 0.1)
    bpy.context.scene.frame_set(1)
    ob.ik_addon.live = True
    return ob, target


def add_arm(ob: bpy.types.Object, x: float, bones: Sequence[str], target: str, **settings: object) -> bpy.types.Object:
    """Add an arm of two bones with a chain to an armature, at an x; return its target, named as told."""
    add_bones(ob, [(x, 0, 0), (x, -0.2, 1), (x, 0, 2)], bones)
    goal = empty(target, (x + 0.6, 0.5, 1.0))
    chain(ob, bones[1], goal, 2, **settings)
    return goal


def mesh(name: str, points: Sequence[Point], faces: Sequence[Sequence[int]]) -> bpy.types.Object:
    """Add a mesh to the scene."""
    data = bpy.data.meshes.new(name)
    data.from_pydata([tuple(point) for point in points], [], [tuple(face) for face in faces])
    ob = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(ob)
    return ob


def deform(ob: bpy.types.Object, rig: bpy.types.Object, bones: Mapping[str, Iterable[int]]) -> bpy.types.Object:
    """Let bones deform vertices of a mesh; return the mesh."""
    for bone, vertices in bones.items():
        ob.vertex_groups.new(name=bone).add(list(vertices), 1.0, "REPLACE")
    modifier: Any = ob.modifiers.new("Armature", "ARMATURE")
    modifier.object = rig
    return ob


def select(*objects: bpy.types.Object) -> None:
    """Select objects and no others, in Object Mode; the first one is active."""
    if bpy.context.object is not None and bpy.context.object.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    for ob in bpy.context.view_layer.objects:
        ob.select_set(ob in objects)
    bpy.context.view_layer.objects.active = objects[0]


def select_bones(ob: bpy.types.Object, *names: str) -> None:
    """Select bones of an armature, and no others."""
    for bone in ob.pose.bones:
        holder: Any = bone if bpy.app.version >= (5, 0, 0) else bone.bone
        holder.select = bone.name in names


def select_edit_bones(bones: Any, side: str) -> None:
    """Select the edit bones whose names end like this, and no others."""
    for bone in bones:
        bone.select = bone.select_head = bone.select_tail = bone.name.endswith(side)


def in_collection(name: str, *objects: bpy.types.Object) -> bpy.types.Collection:
    """Move objects of the scene's collection into a new collection of the scene."""
    scene, collection = bpy.context.scene, bpy.data.collections.new(name)
    scene.collection.children.link(collection)
    for ob in objects:
        scene.collection.objects.unlink(ob)
        collection.objects.link(ob)
    return collection


def save_and_open(path: Path, times: int = 1) -> None:
    """Save the file and open it again."""
    for _ in range(times):
        bpy.ops.wm.save_as_mainfile(filepath=str(path))
        bpy.ops.wm.open_mainfile(filepath=str(path))


def new_file() -> None:
    """Open an empty file."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)


def into_library(path: Path) -> None:
    """Save the file, and open an empty one."""
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    new_file()


def from_library(path: Path, kind: str, *names: str, link: bool = True) -> list[Any]:
    """Link or append data-blocks of a kind, such as "objects", from a file; they are in no scene yet."""
    libraries: Any = bpy.data.libraries  # the stubs do not know its result
    with libraries.load(str(path), link=link) as (_found, wanted):
        setattr(wanted, kind, list(names))
    return list(getattr(wanted, kind))


def bake(ob: bpy.types.Object, first: int, last: int, **options: Any) -> None:
    """Bake a range of frames, as the button does."""
    bpy.context.view_layer.objects.active = ob
    assert bpy.ops.ik_addon.bake(frame_range="CUSTOM", frame_start=first, frame_end=last, **options) == {"FINISHED"}


def go_live(*obs: bpy.types.Object) -> None:
    """Turn Live on, and solve."""
    for ob in obs:
        ob.ik_addon.live = True
    bpy.context.view_layer.update()


def go_live_unmoved(ob: bpy.types.Object, within: float = 2e-6) -> None:
    """Turn Live on, and assert that no element of a pose matrix changes by more."""
    before = pose(ob)
    go_live(ob)
    assert np.abs(pose(ob) - before).max() < within, "going live moves nothing"


def change(owner: Any, **values: object) -> None:
    """Set properties of something, and let Blender evaluate it."""
    for name, value in values.items():
        setattr(owner, name, value)
    bpy.context.view_layer.update()


def shift(owner: Any, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> None:
    """Move an object or a bone by a step, and let Blender evaluate it."""
    change(owner, location=owner.location + Vector((x, y, z)))


def constrain(owner: Any, kind: str, **settings: object) -> Any:
    """Add a constraint to an object or a bone; return it."""
    made = owner.constraints.new(kind)
    for name, value in settings.items():
        setattr(made, name, value)
    return made


def limit(bone: bpy.types.PoseBone, **ranges: tuple[float, float]) -> None:
    """Limit a bone about axes x, y, z to ranges in degrees; (0, 0) locks."""
    for axis, (low, high) in ranges.items():
        setattr(bone, f"lock_ik_{axis}", low == high == 0.0)
        setattr(bone, f"use_ik_limit_{axis}", True)
        setattr(bone, f"ik_min_{axis}", math.radians(low))
        setattr(bone, f"ik_max_{axis}", math.radians(high))


def drive(owner: Any, path: str, index: int, expression: str, read: Any = None, read_path: str = "") -> Any:
    """Drive a number; `f` in the expression is a value read from an object or scene. Return the driver's curve."""
    curve = owner.driver_add(path, index)
    curve.driver.type, curve.driver.expression = "SCRIPTED", expression
    if read is not None:
        variable = curve.driver.variables.new()
        variable.name, variable.type = "f", "SINGLE_PROP"
        variable.targets[0].id_type = "SCENE" if isinstance(read, bpy.types.Scene) else "OBJECT"
        variable.targets[0].id, variable.targets[0].data_path = read, read_path
    return curve


def evaluated(ob: bpy.types.Object) -> bpy.types.Object:
    """Return the evaluated copy of an object, up to date."""
    return ob.evaluated_get(bpy.context.evaluated_depsgraph_get())


def tail(ob: bpy.types.Object, bone: str) -> NDArray[np.float64]:
    """Return the evaluated world position of a bone's tail."""
    done = evaluated(ob)
    return np.array(done.matrix_world @ done.pose.bones[bone].tail)


def head(ob: bpy.types.Object, bone: str) -> NDArray[np.float64]:
    """Return the evaluated world position of a bone's head."""
    done = evaluated(ob)
    return np.array(done.matrix_world @ done.pose.bones[bone].head)


def position(ob: bpy.types.Object) -> NDArray[np.float64]:
    """Return the evaluated world position of an object."""
    return np.array(evaluated(ob).matrix_world.translation)


def miss(ob: bpy.types.Object, tip: str = "lower") -> float:
    """Return the world distance from the tip of a chain to its target."""
    settings = ob.pose.bones[tip].ik_addon
    goal = head(settings.target, settings.target_bone) if settings.target_bone else position(settings.target)
    return float(np.linalg.norm(tail(ob, tip) - goal))


def on_frames(frames: Iterable[float], read: Callable[[], T]) -> dict[float, T]:
    """Go to frames or sub-frames in this order; return what is read on each."""
    found = {}
    for frame in frames:
        bpy.context.scene.frame_set(math.floor(frame), subframe=frame - math.floor(frame))
        found[frame] = read()
    return found


def vertices(ob: bpy.types.Object) -> NDArray[np.float64]:
    """Return the evaluated world positions (n, 3) of a mesh's vertices."""
    done: Any = evaluated(ob)
    return np.array([done.matrix_world @ vertex.co for vertex in done.data.vertices])


def missed(ob: bpy.types.Object, frames: Iterable[float], near: float = 1e-5) -> dict[float, float]:
    """Return the frames on which the tip of an arm is farther from its target, and how far."""
    return {frame: off for frame, off in on_frames(frames, lambda: miss(ob)).items() if not off < near}


def poses_at(ob: bpy.types.Object, frames: Iterable[float]) -> Poses:
    """Return the poses on frames or sub-frames, played in this order."""
    return on_frames(frames, lambda: pose(ob))


def apart(found: Poses, expected: Poses) -> dict[float, float]:
    """Return how far poses are from the expected ones of the same frames, where it is more than `SAME`."""
    assert found.keys() == expected.keys()
    distances = {frame: float(np.abs(pose - expected[frame]).max()) for frame, pose in found.items()}
    return {frame: distance for frame, distance in distances.items() if not distance <= SAME}


def pose(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph | None = None) -> NDArray[np.float32]:
    """Return all pose matrices of an armature as evaluated in a depsgraph, by default the current one."""
    bones = (ob.evaluated_get(depsgraph) if depsgraph else evaluated(ob)).pose.bones
    values = np.empty(16 * len(bones), dtype=np.float32)
    bones.foreach_get("matrix", values)
    return values


def channels(ob: bpy.types.Object) -> NDArray[np.float32]:
    """Return all transform channels of an armature's pose bones, not evaluated, for exact comparison."""
    parts = []
    for name, width in CHANNELS.items():
        values = np.empty(width * len(ob.pose.bones), dtype=np.float32)
        ob.pose.bones.foreach_get(name, values)
        parts.append(values)
    return np.concatenate(parts)


def length(ob: bpy.types.Object, tip: str, count: int) -> float:
    """Return the rest length of the chain of `count` bones that ends in `tip`, in object space, from head to head."""
    bones = [ob.data.bones[tip]]
    while len(bones) < count:
        bones.insert(0, bones[0].parent)
    points = [b.head_local for b in bones] + [bones[-1].tail_local]
    return sum((b - a).length for a, b in pairwise(points))


def key(ob: Any, path: str, values: dict[int, object]) -> None:
    """Key a property of an object or bone, or of a bone's chain such as "ik_addon.influence", on several frames."""
    part, _, name = path.rpartition(".")
    holder, owner = (ob.path_resolve(part), ob.id_data) if part else (ob, ob)
    path = f"{ob.path_from_id()}.{path}" if part else path
    for frame, value in values.items():
        setattr(holder, name, value)
        owner.keyframe_insert(path, frame=frame)


def fcurves(ob: bpy.types.Object, part: str = "") -> list[Any]:
    """Return the F-curves of an object's action, or those with this in their data path."""
    owner = curve_owner(ob)
    return [curve for curve in owner.fcurves if part in curve.data_path] if owner else []


def curve_owner(ob: bpy.types.Object) -> Any:
    """Return what holds the F-curves of an object: its action, or since 4.4 the bag of its slot, or None."""
    data: Any = ob.animation_data
    if data is None or data.action is None:
        return None
    return data.action.layers[0].strips[0].channelbag(data.action_slot) if HAS_SLOTS else data.action


def remove_curves(ob: bpy.types.Object, part: str = "") -> None:
    """Remove the F-curves with this in their data path."""
    for curve in fcurves(ob, part):
        curve_owner(ob).fcurves.remove(curve)


def into_strip(ob: bpy.types.Object, *, start: int = 1, meta: bool = False) -> bpy.types.NlaStrip:
    """Turn an object's action into an NLA strip from a frame on, optionally inside a meta strip; return the strip."""
    action = ob.animation_data.action
    strip = ob.animation_data.nla_tracks.new().strips.new(action.name, start, action)
    ob.animation_data.action = None
    if not meta:
        return strip
    window = bpy.context.window_manager.windows[0]
    area = window.screen.areas[0]
    area.type = "NLA_EDITOR"
    region = next(region for region in area.regions if region.type == "WINDOW")
    bpy.context.view_layer.objects.active = ob
    ob.select_set(True)
    with bpy.context.temp_override(window=window, screen=window.screen, area=area, region=region):
        assert bpy.ops.nla.meta_add() == {"FINISHED"}
    outer = ob.animation_data.nla_tracks[0].strips[0]
    assert outer.type == "META"
    return outer.strips[0]
