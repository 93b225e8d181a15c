"""A user's data before and after an operator, for comparison, and the operator's messages."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Quaternion, Vector

from tests import rigs
from tools import blender

HIDDEN = {"rna_type", "name", "base", "resting", "stamp", "known", "goals"}
"""Properties that are not settings: the FK store, and what an armature knows of the settings on its bones."""


def settings(bone: bpy.types.PoseBone) -> dict[str, Any]:
    """Return a chain's settings, objects by name and vectors as copies, since Blender's refer to their memory."""
    names = [p.identifier for p in bone.ik_addon.bl_rna.properties if p.identifier not in HIDDEN]
    values = {name: getattr(bone.ik_addon, name) for name in names}
    arrays = Quaternion, Vector, bpy.types.bpy_prop_array
    values = {name: tuple(value) if isinstance(value, arrays) else value for name, value in values.items()}
    return {name: getattr(value, "name", value) for name, value in values.items()}


def snapshot() -> dict[str, Any]:
    """Return everything in the file that an operator could change, with exact poses."""
    found: dict[str, Any] = {
        "objects": {ob.name: np.array(ob.matrix_world).tobytes() for ob in bpy.data.objects},
        "collections": {c.name: sorted(ob.name for ob in c.objects) for c in bpy.data.collections},
        "scene": sorted(ob.name for ob in bpy.context.scene.objects),
    }
    for ob in bpy.data.objects:
        if ob.type == "ARMATURE":
            found[ob.name] = (
                rigs.channels(ob).tobytes(),
                {bone.name: settings(bone) for bone in ob.pose.bones},
                ob.ik_addon.live,
                ob.mode,
            )
    return found


KINDS = ("objects", "armatures", "actions", "collections", "meshes", "texts")
VOLATILE = {"rna_type", "bl_rna", "depsgraph", "view_layers", "is_evaluated", "tag", "runtime_data", "session_uid"}
VOLATILE |= {"co_ui", "is_valid", "original", "preview", "is_updated", "is_updated_data", "display_settings"}
VOLATILE |= {"view_settings", "render", "last_slot_identifier", "storage_type"}


def whole_file() -> dict[str, Any]:
    """Return what Blender stores, by path, and the modes and selection."""
    found: dict[str, Any] = {}
    seen: set[tuple[type, int]] = set()
    for kind in KINDS:
        for own in getattr(bpy.data, kind):
            _walk(own, f"{kind}[{own.name_full}]", found, seen)
    scene = bpy.context.scene
    for name in ("cursor", "ik_addon"):  # not all of it: reading some of a scene crashes 4.2 without a window
        _walk(getattr(scene, name), f"scene.{name}", found, seen)
    found["frame"] = (scene.frame_current, scene.frame_subframe, scene.frame_start, scene.frame_end)
    found["scenes"] = [own.name for own in bpy.data.scenes]
    found["in scene"] = scene.objects.keys()
    objects = bpy.context.view_layer.objects
    found["modes"] = [(ob.name, ob.mode, ob.select_get()) for ob in objects]
    found["active"] = objects.active and objects.active.name
    return found


def whole_file_unsolved() -> dict[str, Any]:
    """Return the same without evaluated poses, which may be solved again with other rounding."""
    evaluated = (".matrix", ".matrix_channel", ".head", ".tail", ".length", ".bound_box", ".dimensions")
    return {path: value for path, value in whole_file().items() if not path.endswith(evaluated)}


def _walk(struct: Any, path: str, found: dict[str, Any], seen: set[tuple[type, int]]) -> None:
    key = type(struct), struct.as_pointer()
    if key in seen:
        return
    seen.add(key)
    if isinstance(struct, (bpy.types.ID, bpy.types.Bone)):
        holder: Any = struct
        found[f"{path}.custom"] = sorted(name for name in holder.keys() if "ik_addon_" in name)  # noqa: SIM118
    for prop in struct.bl_rna.properties:
        name = prop.identifier
        if name in VOLATILE or (name in HIDDEN and "ik_addon" in path):
            continue
        try:
            value = getattr(struct, name)
        except (AttributeError, UnicodeDecodeError):
            continue
        if prop.type == "COLLECTION":
            items = list(value)
            found[f"{path}.{name}"] = len(items)
            for i, item in enumerate(items):
                _visit(item, f"{path}.{name}[{i}]", found, seen)
        elif prop.type == "POINTER":
            _visit(value, f"{path}.{name}", found, seen)
        elif getattr(prop, "is_array", False):
            found[f"{path}.{name}"] = np.array(value).tobytes()
        else:
            found[f"{path}.{name}"] = repr(value)


def _visit(value: Any, path: str, found: dict[str, Any], seen: set[tuple[type, int]]) -> None:
    if isinstance(value, bpy.types.ID):
        found[path] = value.name_full
    elif isinstance(value, bpy.types.bpy_struct):
        _walk(value, path, found, seen)
    else:
        found[path] = repr(value)


@contextmanager
def refused(message: str) -> Iterator[None]:
    """Assert that the code inside raises `message`, a pattern, and changes nothing."""
    bpy.context.view_layer.update()
    before = snapshot()
    with pytest.raises(RuntimeError, match=message):
        yield
    assert snapshot() == before


@contextmanager
def disabled() -> Iterator[None]:
    """Disable the extension, as for somebody who does not have it."""
    blender.disable()
    try:
        yield
    finally:
        blender.enable()


class FaultError(Exception):
    """Raised at a chosen call."""


@contextmanager
def failing(at: int | None, counts: Callable[[FrameType], bool]) -> Iterator[list[str]]:
    """Raise a fault at one of the calls that count, numbered from 0, or at none; yield the names of those so far."""
    called: list[str] = []

    def trace(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and counts(frame):
            called.append(frame.f_code.co_name)
            if len(called) - 1 == at:
                sys.settrace(None)
                raise FaultError(frame.f_code.co_name)

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield called
    finally:
        sys.settrace(before)


def said(capfd: pytest.CaptureFixture[str], operator: Callable[..., set[str]], **options: Any) -> str:
    """Run an operator and return what it reported."""
    capfd.readouterr()
    operator(**options)
    return capfd.readouterr().out.strip()


def activate(ob: bpy.types.Object, bone: str | None) -> None:
    """Make an armature active, and one of its bones or none."""
    bpy.context.view_layer.objects.active = ob
    ob.data.bones.active = None if bone is None else ob.data.bones[bone]


def keyed(ob: bpy.types.Object) -> dict[tuple[str, int], list[float]]:
    """Return the frames of an object's keys, by path and index."""
    return {(c.data_path, c.array_index): [point.co[0] for point in c.keyframe_points] for c in rigs.fcurves(ob)}


def add(ob: bpy.types.Object, bone: str, **options: Any) -> Any:
    """Add a chain from a bone; return the settings that the bone has then, those of the chain on its tip."""
    activate(ob, bone)
    assert bpy.ops.ik_addon.chain_add(**options) == {"FINISHED"}
    return ob.pose.bones[bone].ik_addon


def joints(ob: bpy.types.Object) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the evaluated heads and tails (m, 2, 3) of all bones in armature space."""
    return np.array([(bone.head, bone.tail) for bone in rigs.evaluated(ob).pose.bones])


def turns(ob: bpy.types.Object) -> list[Any]:
    """Return the evaluated rotations of all bones in armature space."""
    return [bone.matrix.to_quaternion() for bone in rigs.evaluated(ob).pose.bones]
