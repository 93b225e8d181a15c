"""Snapshots of what a bake touches besides the keys, so that all of it can be put back."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

import bpy
import numpy as np
from bpy.types import Depsgraph, Object, Scene, ViewLayer

from ..core import channels, compat, fk_store
from ..core.data_paths import set_at, value_at
from ..core.settings import chain_of
from ..core.untyped import Struct
from ..live import registry
from ..rig.plan import chain
from ..rig.plan.presence import Reference
from .selection import check_armature


def evaluated_for(scene: Scene) -> set[Struct]:
    """Return the data-blocks that are evaluated in any view layer of a scene."""
    graphs = [layer.depsgraph for layer in scene.view_layers]
    return {known for depsgraph in graphs if depsgraph is not None for known in _evaluated_in(depsgraph)}


def _evaluated_in(depsgraph: Depsgraph) -> Iterator[Struct]:
    """Yield the data-blocks that are evaluated, some of them twice.

    `Depsgraph.ids` lacks data-blocks outside the view layer that something in it needs, but includes node trees that
    are part of other data-blocks.
    """
    yield from (evaluated.original for evaluated in depsgraph.ids)
    for kind in bpy.data.bl_rna.properties:
        if kind.type == "COLLECTION":
            everything = getattr(bpy.data, kind.identifier)
            yield from (known for known in everything if known.evaluated_get(depsgraph).is_evaluated)


class Edits:
    """Unkeyed edits of animated properties in a scene, which going to another frame and back would drop.

    Leaves out the bone channels of armatures that the bake writes or that are solved live.
    """

    def __init__(self, scene: Scene, posed: Collection[Object]) -> None:
        """Read everything that is evaluated, except the channels of the `posed` armatures."""
        self._values = [
            (owner, path, value_at(owner, path))
            for owner in evaluated_for(scene)
            if getattr(owner, "animation_data", None) is not None
            for path in {curve.data_path for curve in compat.animating(owner) if curve.driver is None}
            if not (owner in posed and channels.channel_of(path))
        ]

    def put_back(self) -> None:
        """Set values again that differ now; other add-ons may have deleted some of their owners."""
        for owner, path, value in self._values:
            with suppress(ReferenceError, ValueError, AttributeError, TypeError, KeyError):
                if value is not None and value_at(owner, path) != value:
                    set_at(owner, path, value)


class PoseSnapshot:
    """The pose of an armature, and what live solving knows of it."""

    def __init__(self, ob: Object) -> None:
        """Take a snapshot of an armature object's current pose."""
        self._ob = ob
        self._all_bones = np.arange(len(ob.pose.bones))
        self._rows = channels.read(ob, self._all_bones)
        self._stored = fk_store.snapshot(ob)
        self._live = registry.snapshot(ob)

    @property
    def is_unchanged(self) -> bool:
        """Whether the armature still has this pose."""
        return np.array_equal(channels.read(self._ob, self._all_bones), self._rows)

    def put_back(self) -> None:
        """Put back the pose, the FK store, and what live solving knew."""
        self.put_back_channels()
        fk_store.put_back(self._ob, self._stored)
        # Frames were solved since, for the comparison. Put back a copy, because live solving goes on to change it.
        registry.put_back(self._ob, None if self._live is None else self._live.copy())

    def put_back_channels(self, bones: Sequence[int] | None = None) -> None:
        """Put back the channels of some bones, or of all, including unkeyed edits of animated channels."""
        indices = self._all_bones if bones is None else np.array(bones, dtype=np.int64)
        channels.write(self._ob, indices, self._rows[indices])


class SceneSnapshot:
    """The frame, the pose of live armatures, which chains are enabled, and unkeyed edits of everything else."""

    def __init__(self, view_layer: ViewLayer, ob: Object) -> None:
        """Take a snapshot of a view layer's scene before chains of an armature object are baked."""
        self._view_layer = view_layer
        self._ob, self._reference = ob, Reference.of(ob)
        scene = view_layer.id_data
        others = [other for other in registry.live_armatures(scene) if other != ob]
        self._frame = scene.frame_current, scene.frame_subframe
        self._edits = Edits(scene, [ob, *others])
        self._enabled = {tip.name: chain_of(tip).enabled for tip in chain.tips(ob)}
        self.pose = PoseSnapshot(ob)
        """The pose of the armature whose chains are baked."""
        self._others = [PoseSnapshot(other) for other in others]

    def restore(self) -> None:
        """Put everything back that was not deleted meanwhile."""
        if self._reference.find() is None:
            self.show_frame()
            return
        with registry.paused(self._ob):
            for tip, enabled in self._enabled.items():
                settings = chain_of(self._ob.pose.bones[tip])
                if settings.enabled != enabled:
                    settings.enabled = enabled
            self.show_frame()
            self.pose.put_back()

    def show_frame(self) -> None:
        """Go back to the frame, and put back unkeyed edits and the pose of other armatures."""
        scene: Scene = self._view_layer.id_data
        frame, subframe = self._frame
        is_current = (scene.frame_current, scene.frame_subframe) == self._frame
        if is_current and not registry.live_armatures(scene):
            self._view_layer.update()  # doesn't evaluate everything that depends on time
        else:
            scene.frame_set(frame, subframe=subframe)
        self._edits.put_back()
        for other in self._others:
            with suppress(ReferenceError):  # another add-on deleted it
                if not other.is_unchanged:
                    other.put_back()


@contextmanager
def over_frames(view_layer: ViewLayer, ob: Object) -> Iterator[tuple[ExitStack, SceneSnapshot]]:
    """Let some work on an armature go through frames; if it fails or is cancelled, undo all of it.

    Yields callbacks that undo the work, and what the scene is like before it.

    Raises:
        UserError: the armature shows no pose.
    """
    view_layer.update()
    check_armature(ob, view_layer)
    with ExitStack() as undo:
        undo.callback(view_layer.update)
        before = SceneSnapshot(view_layer, ob)
        undo.callback(before.restore)
        yield undo, before
        undo.pop_all()
    view_layer.update()
