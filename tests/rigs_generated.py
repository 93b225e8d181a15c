"""Rigs that Rigify generates: each of them once, for that takes seconds, and then from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bpy
import pytest

Generated = Callable[[str], bpy.types.Object]
"""Gives the rig that Rigify makes of one of its metarigs, in Pose Mode."""


@pytest.fixture
def rigify() -> Iterator[None]:
    """Rigify, enabled."""
    import addon_utils

    addon_utils.enable("rigify", default_set=True)
    yield
    addon_utils.disable("rigify", default_set=True)
    for handler in [h for h in bpy.app.handlers.load_post if h.__module__.startswith("rigify")]:
        bpy.app.handlers.load_post.remove(handler)


def armature_of(kind: str) -> bpy.types.Object:
    """One of Rigify's metarigs."""
    getattr(bpy.ops.object, f"armature_{kind}_metarig_add")()
    ob: Any = bpy.context.object
    return ob


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the rigs are kept that were generated."""
    return tmp_path_factory.mktemp("generated")


@pytest.fixture
def generated(rigify: None, kept: Path) -> Generated:
    """The rigs that Rigify generates, see `Generated`."""

    def take(kind: str) -> bpy.types.Object:
        file = kept / f"{kind}.blend"
        if not file.exists():
            _generate(kind, file)
        libraries: Any = bpy.data.libraries  # the stubs know of no result
        with libraries.load(str(file)) as (there, here):
            here.objects = there.objects[:]
        ob: bpy.types.Object
        (ob,) = [ob for ob in here.objects if ob.type == "ARMATURE"]
        bpy.context.scene.collection.objects.link(ob)
        bpy.context.view_layer.objects.active = ob
        bpy.ops.object.mode_set(mode="POSE")
        return ob

    return take


def _generate(kind: str, file: Path) -> None:
    meta = armature_of(kind)
    _remove_face(meta)
    bpy.ops.pose.rigify_generate()
    (ob,) = [ob for ob in bpy.data.objects if ob.type == "ARMATURE" and ob != meta]
    bpy.data.libraries.write(str(file), {ob})
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)


def _remove_face(meta: bpy.types.Object) -> None:
    """Remove the bones of a face, for which Rigify takes most of the time."""
    if "face" in meta.data.bones:
        bpy.ops.object.mode_set(mode="EDIT")
        bones = meta.data.edit_bones
        for bone in [bones["face"], *bones["face"].children_recursive]:
            bones.remove(bone)
        bpy.ops.object.mode_set(mode="OBJECT")
