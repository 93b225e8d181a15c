"""Bodies in pairs: one is live while things happen, its twin only afterwards, so that it knows nothing of them.

A spine that is live carries a collar bone that is not, and that carries a live arm.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np

from tests import rigs
from tests.live.carried import driven

LAST = 40
KEYED = (1, 14, 27, LAST)
RIG, TWIN = "Rig", "Twin"

Edit = Callable[[bpy.types.Object], object]
"""Changes a body, or what belongs to it."""


@dataclass(frozen=True)
class Body:
    """How a body is made."""

    keyed: str = "all"
    """Which channels have keys: "all", "none", "half" (some components of all bones), or the names of bones."""
    spine: bool = True
    """The spine is live."""
    reach: str = "EXTEND"
    """What the arm does when its target is too far, on some frames."""
    more: Edit | None = None
    """Done to the body once it is built."""

    def build(self, name: str) -> bpy.types.Object:
        """Return the body; it is not live. What belongs to it is named after it."""
        ob = rigs.limb([(0, 0, 0), (0, 0.03, 0.5), (0, 0, 1)], ["spine1", "spine2"], name=name)
        rigs.add_bones(ob, [(0, 0, 1), (0.2, 0, 1)], ["collar"], parent="spine2")
        rigs.add_bones(
            ob, [(0.2, 0, 1), (0.6, -0.1, 0.9), (1, 0, 0.9)], ["upper", "lower"], parent="collar", connect=False
        )
        rigs.add_bones(ob, [(1, 0, 0.9), (1.1, 0, 0.9)], ["hand"], parent="lower")
        self._pose(ob)
        hand = rigs.empty(f"{name} hand")
        rigs.key(hand, "location", {f: (0.8 - 0.004 * f, -0.3, 0.7 + 0.02 * (f % 9)) for f in range(1, LAST, 5)})
        chain = rigs.chain(ob, "lower", hand, 2, out_of_reach=self.reach, push_limit=0.3)
        if self.reach == "STRETCH":
            chain.ik_stretch = ob.pose.bones["upper"].ik_stretch = 0.5
        if self.spine:
            bend = rigs.empty(f"{name} bend")
            rigs.key(bend, "location", {1: (0.0, 0.1, 0.95), 20: (0.2, -0.5, 0.7), LAST: (-0.2, 0.1, 0.9)})
            rigs.chain(ob, "spine2", bend, 2)
        if self.more is not None:
            self.more(ob)
        bpy.context.view_layer.update()
        return ob

    def _pose(self, ob: bpy.types.Object) -> None:
        rng = np.random.default_rng(5)
        for bone in ob.pose.bones:
            for frame in KEYED:
                bone.location = rng.normal(scale=0.02, size=3)
                bone.rotation_quaternion = (1.0, *rng.normal(scale=0.15, size=3))
                self._key(bone, frame)

    def _key(self, bone: bpy.types.PoseBone, frame: int) -> None:
        if self.keyed == "half":
            bone.keyframe_insert("location", index=1, frame=frame)
            for index in (0, 2):
                bone.keyframe_insert("rotation_quaternion", index=index, frame=frame)
        elif self.keyed == "all" or bone.name in self.keyed.split():
            bone.keyframe_insert("location", frame=frame)
            bone.keyframe_insert("rotation_quaternion", frame=frame)


def pair(body: Body, frame: int = 1) -> bpy.types.Object:
    """Build a live body and its twin on a frame; return the body."""
    for name in (RIG, TWIN):
        body.build(name)
    bpy.context.scene.frame_set(frame)
    rigs.go_live(rig())
    return rig()


def rig() -> bpy.types.Object:
    """Return the body that is live."""
    return bpy.data.objects[RIG]


def twin() -> bpy.types.Object:
    """Return its twin."""
    return bpy.data.objects[TWIN]


def both(edit: Edit) -> None:
    """Do the same to both."""
    for ob in (rig(), twin()):
        edit(ob)


def apart_from_twin(frames: Sequence[int]) -> dict[float, float]:
    """Return how far the body is from its twin on frames, which the twin shows backward; Live is off in the end.

    Also asserts that both have the same FK pose.
    """
    found = rigs.poses_at(rig(), frames)
    shown = bpy.context.scene.frame_current
    rigs.go_live(twin())
    expected = rigs.poses_at(twin(), frames[::-1])
    bpy.context.scene.frame_set(shown)
    rig().ik_addon.live = twin().ik_addon.live = False
    bpy.context.scene.frame_set(shown)
    assert np.array_equal(rigs.channels(rig()), rigs.channels(twin())), "the FK pose"
    return rigs.apart(found, expected)


def driver(ob: bpy.types.Object, bone: str = "collar", path: str = "rotation_quaternion", index: int = 2) -> Any:
    """Let the height of an empty of its own drive a channel of a bone; return the driver's curve."""
    source = bpy.data.objects.get(f"{ob.name} source")
    if source is None:
        source = rigs.empty(f"{ob.name} source")
        rigs.key(source, "location", {1: (0.0, 0.0, -0.2), LAST: (0.0, 0.0, 0.4)})
    for curve in rigs.fcurves(ob, f'"{bone}"].{path}'):
        if curve.array_index == index:
            rigs.curve_owner(ob).fcurves.remove(curve)
    return driven(ob.pose.bones[bone], path, index, source, transform_type="LOC_Z")
