"""Rigify's metarigs as plain armatures; Rigify comes with Blender."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from typing import Any

import bpy
from mathutils import Matrix


@dataclass(frozen=True)
class RestBone:
    """A bone at rest."""

    name: str
    parent: str
    """Empty for none."""
    connected: bool
    length: float
    matrix: Matrix
    """In the armature's space."""


def human() -> tuple[RestBone, ...]:
    """Return the bones of the human metarig, see `bones_of`."""
    return bones_of("human")


@cache
def bones_of(kind: str) -> tuple[RestBone, ...]:
    """Return the bones of a metarig, parents first. Replaces the open file with an empty one."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    addon_utils: Any = importlib.import_module("addon_utils")
    addon_utils.enable("rigify", default_set=True)
    getattr(bpy.ops.object, f"armature_{kind}_metarig_add")()
    bones = tuple(
        RestBone(
            bone.name,
            "" if bone.parent is None else bone.parent.name,
            bone.use_connect,
            bone.length,
            bone.matrix_local.copy(),
        )
        for bone in bpy.context.object.data.bones
    )
    addon_utils.disable("rigify", default_set=True)
    # Rigify leaves handlers behind that fail on files opened later.
    for handler in [h for h in bpy.app.handlers.load_post if h.__module__.startswith("rigify")]:
        bpy.app.handlers.load_post.remove(handler)
    return bones


def add_human(name: str) -> bpy.types.Object:
    """Add an armature object with the bones of the human metarig to the scene and make it active."""
    return add_metarig("human", name)


def add_metarig(kind: str, name: str = "metarig") -> bpy.types.Object:
    """Add an armature object with the bones of a metarig to the scene and make it active."""
    bones = bones_of(kind)
    data = bpy.data.armatures.new(name)
    ob = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(ob)
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="EDIT")
    for bone in bones:
        edited = data.edit_bones.new(bone.name)
        edited.head, edited.tail = (0.0, 0.0, 0.0), (0.0, bone.length, 0.0)
        edited.matrix = bone.matrix
        if bone.parent:
            edited.parent = data.edit_bones[bone.parent]
            edited.use_connect = bone.connected
    bpy.ops.object.mode_set(mode="OBJECT")
    return ob
