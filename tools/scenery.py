"""Scenery for the demo and the samples: bodies on bones, balls, a floor, lights and a camera."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import bpy
from mathutils import Matrix, Vector

Color = tuple[float, float, float]
Point = Sequence[float]

SEGMENTS = 24
"""Vertices of a ring around a bone."""
CAP_RINGS = 5
"""Rings of a half sphere."""


@dataclass(frozen=True)
class Part:
    """The shape of one bone: a cone with round ends."""

    bone: str
    head: float
    """Radius at the bone's head."""
    tail: float
    """Radius at its tail."""
    material: bpy.types.Material
    width: float = 1.0
    """Factor along the bone's X axis, for parts that are wider than deep."""
    span: float = 1.0
    """Share of the bone's length that the cone covers, starting at the head."""


def material(name: str, color: Color, roughness: float = 0.45, glow: float = 0.0) -> bpy.types.Material:
    """Make a plain material; colors are linear RGB."""
    made = bpy.data.materials.new(name)
    shader = _nodes(made).nodes["Principled BSDF"]
    shader.inputs["Base Color"].default_value = (*color, 1.0)
    shader.inputs["Roughness"].default_value = roughness
    shader.inputs["Emission Color"].default_value = (*color, 1.0)
    shader.inputs["Emission Strength"].default_value = glow
    made.diffuse_color = (*color, 1.0)  # shown by solid shading
    return made


def body(rig: bpy.types.Object, parts: Sequence[Part]) -> bpy.types.Object:
    """Make one mesh that shows the bones in their current pose; each part follows its bone alone."""
    points: list[Vector] = []
    faces: list[tuple[int, ...]] = []
    slots: list[int] = []
    owned: dict[str, list[int]] = {}
    materials = list(dict.fromkeys(part.material for part in parts))
    for part in parts:
        bone = rig.data.bones[part.bone]
        first = len(points)
        around, along = _capsule(part.span * bone.length, part)
        points += [bone.matrix_local @ point for point in around]
        faces += [tuple(first + corner for corner in face) for face in along]
        slots += [materials.index(part.material)] * len(along)
        owned.setdefault(part.bone, []).extend(range(first, len(points)))
    body = bpy.data.objects.new(f"{rig.name} body", _mesh(f"{rig.name} body", points, faces))
    for each in materials:
        body.data.materials.append(each)
    body.data.polygons.foreach_set("material_index", slots)
    for name, own in owned.items():
        body.vertex_groups.new(name=name).add(own, 1.0, "REPLACE")
    modifier = body.modifiers.new("Armature", "ARMATURE")
    modifier.object = rig
    body.parent = rig
    return _link(body)


def ball(name: str, radius: float, location: Point, look: bpy.types.Material) -> bpy.types.Object:
    """Make a ball, for example to show a target."""
    rings = 2 * CAP_RINGS
    points = [Vector((0.0, 0.0, -radius)), Vector((0.0, 0.0, radius))]
    for ring in range(1, rings):
        height, size = -math.cos(math.pi * ring / rings), math.sin(math.pi * ring / rings)
        points += [radius * Vector((size * c, size * s, height)) for c, s in _circle()]
    ball = bpy.data.objects.new(name, _mesh(name, points, _rings_to_faces(rings - 1)))
    ball.data.materials.append(look)
    ball.location = location
    return _link(ball)


def box(name: str, size: Point, location: Point, look: bpy.types.Material) -> bpy.types.Object:
    """Make a box with slightly rounded edges."""
    x, y, z = (0.5 * side for side in size)
    points = [Vector((sx * x, sy * y, sz * z)) for sx in (-1, 1) for sy in (-1, 1) for sz in (-1, 1)]
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    mesh = _mesh(name, points, faces)
    mesh.polygons.foreach_set("use_smooth", [False] * len(mesh.polygons))
    mesh.materials.append(look)
    box = bpy.data.objects.new(name, mesh)
    edges = box.modifiers.new("Edges", "BEVEL")
    edges.width, edges.segments = 0.06 * min(size), 2
    box.location = location
    return _link(box)


def stage(eye: Point, look_at: Point, lens: float = 50.0, ground: float = 0.0) -> None:
    """Add a floor at height `ground`, lights and a camera at `eye`, and render settings that need no GPU."""
    scene = bpy.context.scene
    floor = _mesh(
        "Floor",
        [Vector((x, y, ground)) for x, y in ((-400, -400), (400, -400), (400, 400), (-400, 400))],
        [(0, 1, 2, 3)],
    )
    floor.materials.append(material("Floor", (0.30, 0.33, 0.37), roughness=0.9))
    _link(bpy.data.objects.new("Floor", floor))
    _light("Sun", "SUN", 2.6, (-2.6, -3.0, 5.0), angle=0.15)
    _light("Rim", "AREA", 220.0, (3.4, 2.4, 3.6), size=2.0)
    scene.world = bpy.data.worlds.new("World")
    sky = _nodes(scene.world).nodes["Background"]
    sky.inputs["Color"].default_value = (0.45, 0.52, 0.62, 1.0)
    sky.inputs["Strength"].default_value = 0.55
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    camera.data.lens = lens
    camera.location = eye
    camera.rotation_euler = _aimed(eye, look_at)
    scene.camera = _link(camera)
    render: Any = scene.render  # the stubs know one engine
    render.engine = "CYCLES"
    scene.cycles.device = "CPU"
    scene.cycles.use_denoising = False  # not every build of Blender has the denoiser
    scene.cycles.max_bounces = 1
    scene.cycles.samples = 24
    scene.render.dither_intensity = 0.0  # its noise would triple the size of the files
    scene.render.image_settings.compression = 90
    scene.render.resolution_x, scene.render.resolution_y = 960, 540
    scene.view_settings.view_transform = "Standard"


def crop(width: int, height: int) -> None:
    """Render at this size in pixels: the picture keeps its height and is cropped at the sides."""
    render, camera = bpy.context.scene.render, bpy.context.scene.camera.data
    camera.sensor_fit = "VERTICAL"
    camera.sensor_height = camera.sensor_width * render.resolution_y / render.resolution_x
    render.resolution_x, render.resolution_y = width, height


def _light(name: str, kind: str, power: float, location: Point, **settings: float) -> None:
    light = bpy.data.lights.new(name, kind)
    light.energy = power
    for setting, value in settings.items():
        setattr(light, setting, value)
    ob = bpy.data.objects.new(name, light)
    ob.location = location
    ob.rotation_euler = _aimed(location, (0.0, 0.0, 1.0))
    _link(ob)


def _aimed(eye: Point, look_at: Point) -> Any:
    return (Vector(look_at) - Vector(eye)).to_track_quat("-Z", "Y").to_euler()


def _nodes(owner: Any) -> Any:
    if owner.node_tree is None:  # newer versions create it with its owner and deprecate the switch
        owner.use_nodes = True
    return owner.node_tree


def _link(ob: bpy.types.Object) -> bpy.types.Object:
    bpy.context.scene.collection.objects.link(ob)
    return ob


def _mesh(name: str, points: Sequence[Vector], faces: Sequence[tuple[int, ...]]) -> bpy.types.Mesh:
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata([tuple(point) for point in points], [], faces)
    mesh.polygons.foreach_set("use_smooth", [True] * len(mesh.polygons))
    return mesh


def _circle() -> list[tuple[float, float]]:
    return [(math.cos(2.0 * math.pi * i / SEGMENTS), math.sin(2.0 * math.pi * i / SEGMENTS)) for i in range(SEGMENTS)]


def _rings_to_faces(rings: int) -> list[tuple[int, ...]]:
    """Return the faces between rings around a line, closed by points 0 (before the first) and 1 (after the last)."""
    faces: list[tuple[int, ...]] = []
    for i in range(SEGMENTS):
        j = (i + 1) % SEGMENTS
        first, last = 2, 2 + (rings - 1) * SEGMENTS
        faces += [(0, first + j, first + i), (1, last + i, last + j)]
        for lower in range(first, last, SEGMENTS):
            upper = lower + SEGMENTS
            faces.append((lower + i, lower + j, upper + j, upper + i))
    return faces


def _capsule(length: float, part: Part) -> tuple[list[Vector], list[tuple[int, ...]]]:
    """Return the points and faces of a part in its bone's own space, where the bone lies along Y."""
    # Half a sphere before the head and half a sphere after the tail, each without its pole.
    angles = [0.5 * math.pi * (ring / CAP_RINGS) for ring in range(1, CAP_RINGS + 1)]
    profile = [(-part.head * math.cos(a), part.head * math.sin(a)) for a in angles]
    profile += [(length + part.tail * math.cos(a), part.tail * math.sin(a)) for a in reversed(angles)]
    points = [Vector((0.0, -part.head, 0.0)), Vector((0.0, length + part.tail, 0.0))]
    for along, radius in profile:
        points += [Vector((radius * s, along, radius * c)) for c, s in _circle()]
    wide = Matrix.Diagonal((part.width, 1.0, 1.0))
    return [wide @ point for point in points], _rings_to_faces(len(profile))
