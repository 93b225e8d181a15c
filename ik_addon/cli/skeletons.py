"""Exporting skeletons for other programs from the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import bpy

from ..bake import skeleton
from ..core.untyped import Json
from .exits import CommandError
from .outputs import Output

KINDS: dict[str, tuple[str, str, Json]] = {
    "glb": ("gltf", "io_scene_gltf2", {"export_animation_mode": "ACTIVE_ACTIONS", "export_frame_range": False}),
    "fbx": (
        "fbx",
        "io_scene_fbx",
        {
            "add_leaf_bones": False,
            "bake_anim_use_nla_strips": False,
            "bake_anim_use_all_actions": False,
            "bake_anim_simplify_factor": 0.0,
        },
    ),
}
"""By file extension: Blender's exporter, the add-on that provides it, and options that leave the keys alone."""


def check(kind: str) -> None:
    """Raise `CommandError` if Blender has no exporter for a kind of file."""
    name, addon, _options = KINDS[kind]
    if name not in dir(bpy.ops.export_scene):
        raise CommandError(f"Blender's exporter for '.{kind}' is not enabled. Enable the add-on {addon}")


def exporting(kind: str, made: Sequence[skeleton.Made]) -> Callable[[Output], None]:
    """Return a function that writes skeletons, with their meshes and all their keys, to a file."""

    def write(output: Output) -> None:
        name, _addon, options = KINDS[kind]
        scene = bpy.context.scene
        span = scene.frame_start, scene.frame_end
        for i, one in enumerate(made):
            skeleton.select(bpy.context, one, extend=i > 0)
        try:
            scene.frame_start, scene.frame_end = (
                min(one.first for one in made),
                max(one.first + one.frames - 1 for one in made),
            )
            export = getattr(bpy.ops.export_scene, name)
            export(filepath=str(output.new), use_selection=True, **options)
        finally:
            scene.frame_start, scene.frame_end = span
        if not output.new.is_file():
            raise CommandError(f"'{output.path}' could not be exported")

    return write
