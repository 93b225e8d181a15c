"""What the handlers remember of the open file between calls; a solve could find out all of it again.

Refers to objects by `Reference` and `session_uid` alone, and is forgotten on undo and loading.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import bpy
from bpy.types import Object, Scene

from ..core import hooks
from ..core.channels import Row
from ..core.settings import object_of
from ..rig.plan.plan import Plan
from ..rig.plan.presence import Layer, Reference, with_sets
from . import reports
from .rig import Moment, Rig, State


@dataclass
class LiveArmature:
    """What is known of one armature object."""

    reference: Reference
    rig: Rig | None = None
    """Its states in the view layers, and what is known in each."""
    state: State = State.UNKNOWN
    """The state in every view layer while there is no rig: FAILED, READ_ONLY, or not planned yet."""
    failed: dict[str, str] = field(default_factory=dict)
    """Tip bones of chains that raised an unexpected error, and the error; the other chains are still solved."""
    owed: set[Layer] = field(default_factory=set)
    """View layers that Blender will update only because the add-on wrote channels for another one."""


class Registry:
    """All live armatures."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.is_hurried = False
        """Whether a first attempt is enough, because the next solve follows soon."""
        self.paused: list[int | None] = []
        """`session_uid` of the armatures that are not to be solved, once for each caller; None: all of them."""
        self.forget()

    def forget(self) -> None:
        """Forget everything except what is paused."""
        self.armatures: dict[int, LiveArmature] = {}
        """By `session_uid` of the object."""
        self.live: dict[int, list[Reference]] = {}
        """The live armatures, by `session_uid` of the scene."""
        self.count = 0
        """How many armatures the file had; a change may mean that a live one was added."""
        self.order: tuple[list[Plan], tuple[list[int], list[int], set[int]]] | None = None
        """The plans of the last solve, and in which order their armatures are solved; see `solving`."""
        self.is_changing = False
        """Whether a frame change has begun and is not solved yet."""
        self.is_edited = False
        """Whether bones or relations were edited and evaluated while a frame change had begun."""
        self.undone: dict[int, Row] = {}
        """All channels of live armatures right after undo, by `session_uid` of the object, until the next update."""
        self.flushed: Moment | None = None
        """The last frame whose evaluation Blender wrote back to the original objects."""

    @property
    def is_paused(self) -> bool:
        """Whether the handlers solve nothing."""
        return None in self.paused

    def rigs(self) -> Iterator[tuple[int, Rig]]:
        """Yield all planned armatures as (`session_uid`, rig)."""
        for uid, own in self.armatures.items():
            if own.rig is not None:
                yield uid, own.rig

    def objects(self) -> list[Object]:
        """Return all armature objects of which anything is known."""
        return [ob for own in self.armatures.values() if (ob := own.reference.find()) is not None]

    def forget_deleted(self) -> None:
        """Forget which armatures are live, and all that is known of deleted ones; relations between objects changed."""
        self.live.clear()
        for uid in [uid for uid, own in self.armatures.items() if own.reference.find() is None]:
            del self.armatures[uid]
            reports.forget(uid)

    def of(self, ob: Object) -> LiveArmature:
        """Return what is known of an armature object, which may be nothing yet."""
        uid = ob.session_uid
        own = self.armatures.get(uid)
        if own is None:
            own = self.armatures[uid] = LiveArmature(Reference.of(ob))
        return own


registry = Registry()


def clear() -> None:
    """Forget everything that is known of the open file, and all reports; the next solve reads it again."""
    registry.forget()
    reports.clear()


@contextmanager
def paused(ob: Object | None = None) -> Iterator[None]:
    """Keep the handlers from solving one armature, or all, while the caller steps through frames or writes poses."""
    uid = None if ob is None else ob.session_uid
    registry.paused.append(uid)
    try:
        yield
    finally:
        registry.paused.remove(uid)


@contextmanager
def hurried() -> Iterator[None]:
    """Accept the first attempt for large bodies: something is being dragged, and will be solved to the end later."""
    before, registry.is_hurried = registry.is_hurried, True
    try:
        yield
    finally:
        registry.is_hurried = before


def snapshot(ob: Object) -> Rig | None:
    """Return a copy of what is known of an armature now; None if it was not planned."""
    rig = registry.of(ob).rig
    return None if rig is None else rig.copy()


def put_back(ob: Object, rig: Rig | None) -> None:
    """Go back to a `snapshot` of an armature, after frame, channels, FK store and settings were put back."""
    registry.of(ob).rig = rig
    if rig is not None:
        rig.is_stale = True


def live_armatures(scene: Scene) -> list[Object]:
    """Return the live armature objects of a scene and of its background scenes."""
    if (number := len(bpy.data.armatures)) != registry.count:  # appended or copied; counting objects takes longer
        registry.count = number
        registry.live.clear()
    known = registry.live.get(scene.session_uid)
    found = [ob for reference in known or () if (ob := reference.find()) is not None]
    if known is not None and len(found) == len(known):
        return found
    every = {ob.session_uid: ob for shown in with_sets(scene) for ob in shown.objects if ob.type == "ARMATURE"}
    references, asked = [], 0
    for ob in every.values():
        with hooks.apart(ob.name):
            if ob.pose is not None and object_of(ob).live:
                references.append(Reference.of(ob))
            asked += 1
    if asked == len(every):  # a fault is not remembered
        registry.live[scene.session_uid] = references
    return [every[reference.uid] for reference in references]


def plans_beside(ob: Object) -> dict[int, Plan]:
    """Return the plans of all live armatures except this one, by `session_uid`."""
    uid = ob.session_uid
    return {other: rig.plan for other, rig in registry.rigs() if other != uid and not rig.plan.is_elsewhere}


def unpaused(scene: Scene) -> list[Object]:
    """Return the live armatures that may be solved now."""
    armatures = () if registry.is_paused else live_armatures(scene)
    return [ob for ob in armatures if ob.session_uid not in registry.paused]
