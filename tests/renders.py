"""A render engine that draws nothing and notes what it is given."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bpy
import pytest

from tests import rigs


class Recorder(bpy.types.RenderEngine):
    """Draws nothing; notes the pose of the armature in each scene, view layer, frame and sub-frame that it renders."""

    bl_idname = "IK_TEST_RECORDER"
    bl_label = "Recorder"
    bl_use_preview = False

    note: Callable[[bpy.types.Depsgraph], Any]
    """What is noted; by default the pose of the scene's first armature."""
    parts: Sequence[float]
    """Offsets from a frame that are sampled, as for motion blur."""
    seen: list[tuple[str, str, float, Any]]
    """Scene, view layer, frame, and what was noted."""

    def render(self, depsgraph: bpy.types.Depsgraph) -> None:
        """Take the notes."""
        own, scene, layer = type(self), depsgraph.scene, depsgraph.view_layer.name
        frame = scene.frame_current_final
        for part in own.parts:
            if len(own.parts) > 1:
                self._go_to(frame + part)
            own.seen.append((scene.name, layer, frame + part, own.note(depsgraph)))
        self._go_to(frame)

    def _go_to(self, frame: float) -> None:
        self.frame_set(math.floor(frame), frame - math.floor(frame))


def _pose(depsgraph: bpy.types.Depsgraph) -> Any:
    return rigs.pose(next(ob for ob in depsgraph.scene.objects if ob.type == "ARMATURE"), depsgraph)


@contextmanager
def registered() -> Iterator[type[Recorder]]:
    """Yield the engine, registered; `set_up` makes a scene render through it."""
    bpy.utils.register_class(Recorder)
    Recorder.note, Recorder.parts, Recorder.seen = staticmethod(_pose), (0.0,), []
    try:
        yield Recorder
    finally:
        other: Any = "BLENDER_WORKBENCH"
        for scene in bpy.data.scenes:
            scene.render.engine = other
        bpy.utils.unregister_class(Recorder)


@pytest.fixture
def recorder() -> Iterator[type[Recorder]]:
    """Return the engine, registered."""
    with registered() as engine:
        yield engine


def set_up(scene: bpy.types.Scene, folder: Path, engine: Any = Recorder.bl_idname, size: int = 8) -> None:
    """Make a scene render with an engine into a folder, small, through a camera that looks along -X."""
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    camera.location, camera.rotation_euler = (6.0, 0.0, 1.0), (math.pi / 2, 0.0, math.pi / 2)
    scene.collection.objects.link(camera)
    scene.camera, scene.render.engine = camera, engine
    scene.render.resolution_x = scene.render.resolution_y = size
    scene.render.filepath = str(folder / "####")


def render(first: int, last: int, scene: bpy.types.Scene | None = None) -> None:
    """Render the animation of a scene, by default the current one, from the first frame to the last."""
    scene = scene or bpy.context.scene
    scene.frame_start, scene.frame_end = first, last
    bpy.ops.render.render(scene=scene.name, animation=True)
