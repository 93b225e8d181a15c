"""What the handlers know of the open file from one call to the next: nothing that a solve would not find out again.

It holds no reference to Blender's data, only names, libraries and `session_uid`s, and is forgotten on undo and loading.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import bpy

from ..data import versions
from ..data.settings import chain_of, object_of
from ..rig.plan import chain
from ..rig.plan.plan import Plan
from ..rig.plan.presence import Layer, with_sets
from ..rig.plan.reference import Reference
from . import reports
from .rig import Moment, Rig
from .state import State


@dataclass
class LiveArmature:
    """What is known of one armature object."""

    rig: Rig | None = None
    """Its states in the view layers, and all that is known with them."""
    state: State = State.UNKNOWN
    """What holds in every view layer where there is no rig: it is FAILED or READ_ONLY, or was not planned yet."""
    is_stale: bool = False
    """Its settings or bones changed."""
    failed: dict[str, str] = field(default_factory=dict)
    """Chains, by tip bone, that raised an error nobody expected, and that error; the others go on."""
    owed: set[Layer] = field(default_factory=set)
    """View layers that Blender will update only because the add-on wrote to the channels for another one."""


class Registry:
    """All live armatures, and the signs by which it is known that some were added or removed."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.pauses = 0
        """How many callers keep the handlers from solving anything."""
        self.is_hurried = False
        """A first attempt will do, as the next one comes soon."""
        self.paused_rigs: list[int] = []
        """The armatures, by `session_uid`, that are not to be solved."""
        self.forget()

    def forget(self) -> None:
        """Forget everything but what is paused."""
        self.armatures: dict[int, LiveArmature] = {}
        """By `session_uid` of the object."""
        self.live: dict[int, list[Reference]] = {}
        """The live armatures, by `session_uid` of the scene."""
        self.all_objects = 0
        """How many objects the file had: the sign of a live armature that was appended or copied."""
        self.objects: dict[Layer, int] = {}
        """How many objects a view layer had: the sign of a deleted target."""
        self.is_changing = False
        """A frame change has begun and is not solved yet."""
        self.flushed: Moment | None = None
        """The last frame whose evaluation Blender wrote back to the original objects."""

    def rigs(self) -> Iterator[tuple[int, Rig]]:
        """All that were planned, by `session_uid` of the object."""
        for uid, own in self.armatures.items():
            if own.rig is not None:
                yield uid, own.rig

    def is_leading(self, ob: bpy.types.Object) -> bool:
        """Whether another armature stands as bones of this one decide: what these show before the solve matters."""
        uid = ob.session_uid
        return any(uid in rig.plan.leaders for _uid, rig in self.rigs())

    def of(self, ob: bpy.types.Object) -> LiveArmature:
        """What is known of an armature object, which may be nothing yet."""
        uid = ob.session_uid
        own = self.armatures.get(uid)
        if own is None:
            own = self.armatures[uid] = LiveArmature()
        return own


registry = Registry()


def clear() -> None:
    """Forget everything that is known of the scene, after which it is read anew."""
    registry.forget()
    reports.clear()


def state_of(ob: bpy.types.Object, view_layer: bpy.types.ViewLayer) -> State:
    """What the channels of a live armature hold, as a view layer knows it."""
    own = registry.armatures.get(ob.session_uid, LiveArmature())
    if own.rig is None:
        return own.state
    view = own.rig.views.get(Layer.of(view_layer))
    return State.UNKNOWN if view is None else view.state


def has_prefetched(ob: bpy.types.Object, frame: float) -> bool:
    """Whether a frame of a live armature is solved before it is played."""
    rig = registry.of(ob).rig
    return rig is not None and rig.view.playback is not None and rig.view.playback.has_prefetched(frame)


@contextmanager
def paused(ob: bpy.types.Object | None = None) -> Iterator[None]:
    """Keep the handlers from solving one armature, or all, while the caller steps through frames or writes poses."""
    if ob is None:
        registry.pauses += 1
    else:
        registry.paused_rigs.append(ob.session_uid)
    uid = None if ob is None else ob.session_uid
    try:
        yield
    finally:
        if uid is None:
            registry.pauses -= 1
        else:
            registry.paused_rigs.remove(uid)


@contextmanager
def hurried() -> Iterator[None]:
    """Have large bodies answer with their first attempt: something is dragged, and will be solved to the end later."""
    before, registry.is_hurried = registry.is_hurried, True
    try:
        yield
    finally:
        registry.is_hurried = before


def snapshot(ob: bpy.types.Object) -> Rig | None:
    """What is known of an armature at this moment."""
    rig = registry.of(ob).rig
    return None if rig is None else rig.copy()


def put_back(ob: bpy.types.Object, rig: Rig | None) -> None:
    """Go back to a `snapshot` of an armature: frame, channels, FK store and settings are as they were then."""
    own = registry.of(ob)
    own.rig, own.is_stale = rig, rig is not None


def live_armatures(scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """The armature objects of a scene, and of those shown behind it, that are solved live."""
    count = len(bpy.data.objects)
    if count != registry.all_objects:
        registry.all_objects = count
        registry.live.clear()
        versions.bring_up_all()
    known = registry.live.get(scene.session_uid)
    if known is not None:
        found: list[bpy.types.Object] = []
        for reference in known:
            ob = reference.find()
            if ob is None or ob.name != reference.name:
                break
            found.append(ob)
        else:
            return found
    objects = {
        ob.session_uid: ob
        for shown in with_sets(scene)
        for ob in shown.objects
        if ob.type == "ARMATURE" and ob.pose is not None and object_of(ob).live
    }
    registry.live[scene.session_uid] = [Reference.of(ob) for ob in objects.values()]
    return list(objects.values())


def plans_beside(ob: bpy.types.Object) -> dict[int, Plan]:
    """By which plans all live armatures but one were solved last, by `session_uid`."""
    found = ((uid, rig.plan) for uid, rig in registry.rigs() if uid != ob.session_uid)
    return {uid: plan for uid, plan in found if not plan.is_elsewhere}


def is_solved(scene: bpy.types.Scene) -> bool:
    """Whether the handlers solve any chain when the frame of a scene changes."""
    return any(chain_of(tip).enabled for ob in unpaused(scene) for tip in chain.tips(ob))


def unpaused(scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """The live armatures that may be solved now."""
    armatures = () if registry.pauses else live_armatures(scene)
    return [ob for ob in armatures if ob.session_uid not in registry.paused_rigs]


def state_of_channels(ob: bpy.types.Object) -> State:
    """What the channels of an armature hold, as the view layer knows it that solved it last."""
    own = registry.of(ob)
    return own.state if own.rig is None else own.rig.state
