"""A skin for the human metarig: tubes around its larger bones, deformed by it and subdivided."""

from __future__ import annotations

import math

import bpy
import numpy as np

from ik_addon.solve.problem import Floats

AROUND, ALONG = 25, 40
"""Vertices around and along a tube."""
TUBES = (
    "spine",
    "spine.001",
    "spine.002",
    "spine.003",
    "spine.004",
    "spine.006",
    *(f"{name}.{side}" for name in ("shoulder", "upper_arm", "forearm", "hand") for side in "LR"),
    *(f"{name}.{side}" for name in ("thigh", "shin", "foot") for side in "LR"),
)
"""The bones that get a tube: twenty tubes, of a thousand vertices each."""


def add_skin(ob: bpy.types.Object) -> bpy.types.Object:
    """Add a skin to an armature object, with each vertex weighted to a bone and its parent; return the skin."""
    places: list[Floats] = []
    faces = []
    for bone in (ob.data.bones[name] for name in TUBES):
        frame, start = np.array(bone.matrix_local), len(places) * AROUND
        for row in range(ALONG):
            angles = np.arange(AROUND) * (2.0 * math.pi / AROUND)
            ring = np.stack(
                [0.05 * np.cos(angles), np.full(AROUND, bone.length * row / (ALONG - 1)), 0.05 * np.sin(angles)]
            )
            places.append((frame[:3, :3] @ ring + frame[:3, 3:]).T)
        for row in range(ALONG - 1):
            for i in range(AROUND):
                a, b = start + row * AROUND + i, start + row * AROUND + (i + 1) % AROUND
                faces.append((a, b, b + AROUND, a + AROUND))
    mesh = bpy.data.meshes.new("skin")
    mesh.from_pydata(np.concatenate(places).tolist(), [], faces)
    skin = bpy.data.objects.new("skin", mesh)
    bpy.context.scene.collection.objects.link(skin)
    for name in TUBES:
        skin.vertex_groups.new(name=name)
    for tube, name in enumerate(TUBES):
        parent = ob.data.bones[name].parent
        for row in range(ALONG):
            first = (tube * ALONG + row) * AROUND
            ring_of = list(range(first, first + AROUND))
            own = 0.5 + 0.5 * row / (ALONG - 1)
            skin.vertex_groups[name].add(ring_of, own, "REPLACE")
            if parent is not None and parent.name in skin.vertex_groups:
                skin.vertex_groups[parent.name].add(ring_of, 1.0 - own, "REPLACE")
    skin.parent = ob
    armature = skin.modifiers.new("armature", "ARMATURE")
    armature.object = ob
    skin.modifiers.new("subdivision", "SUBSURF").levels = 1
    return skin
