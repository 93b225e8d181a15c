"""Objects from frame to frame: references to them, which view layers have them, and who may pose or follow them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import bpy
import numpy as np
from bpy.types import Depsgraph, LayerCollection, Object, PoseBone, Scene, ViewLayer

from ...core.constraints import Owned, active_constraints
from ...core.goals import Goal
from ...core.skeleton import is_flat, is_usable
from ...core.translation.sentences import marked, say
from ...solve.problem import Floats
from .sources import Part, Sources, uid_of

ABSENT = marked("'{goal}' was deleted or is excluded from this view layer. Choose another object")
NOT_LINKED = marked(
    "'{goal}' was not linked with the character. In '{library}', move its collection into the character's, "
    "or choose another object"
)
DISABLED = marked(
    "'{goal}' or its collection is disabled in viewports. Enable it, and hide it with the eye icon if needed"
)
NO_BONE = marked("'{goal}' has no bone '{bone}'. Choose another bone")
ATTACHED = marked("'{goal}' is attached to '{own}', part of this chain. Attach it to something else")
"""Why a chain can't follow a target or pole."""


@dataclass(slots=True)
class Reference:
    """A reference to one object, also across undo. A name is not enough: a local and a linked object may share it."""

    uid: int
    """`session_uid`, which no other object gets until Blender is closed."""
    _known: Object = field(repr=False, compare=False)
    """The object as Blender last gave it."""

    @classmethod
    def of(cls, ob: Object) -> Reference:
        """Return a reference to an object, or to the original of an evaluated one."""
        return cls(ob.original.session_uid, ob.original)

    def find(self) -> Object | None:
        """Return the object, even if it was renamed; None if it was deleted."""
        try:
            if self._known.session_uid == self.uid:
                return self._known
        except ReferenceError:  # Blender freed it, but may have read it anew
            pass
        ob = next((other for other in bpy.data.objects if other.session_uid == self.uid), None)
        if ob is not None:
            self._known = ob
        return ob


def uids(objects: bpy.types.bpy_prop_collection[Object]) -> set[int]:
    """Return the `session_uid` of each object in one of Blender's object collections."""
    found = np.empty(len(objects), dtype=np.int32)
    objects.foreach_get("session_uid", found)
    return set(found.tolist())


class Layer(NamedTuple):
    """A key that identifies a view layer."""

    scene: int
    """`session_uid` of the scene."""
    name: str

    @classmethod
    def of(cls, view_layer: ViewLayer) -> Layer:
        """Return the key of a view layer."""
        return cls(uid_of(view_layer.id_data), view_layer.name)


def with_sets(scene: Scene) -> Iterator[Scene]:
    """Yield a scene and its background scenes, which Blender evaluates along with it."""
    seen: set[int] = set()
    shown: Scene | None = scene
    while shown is not None and shown.session_uid not in seen:
        seen.add(shown.session_uid)
        yield shown
        shown = shown.background_set


def all_layers(layer: LayerCollection) -> Iterator[LayerCollection]:
    """Yield a layer collection and everything below it."""
    yield layer
    for child in layer.children:
        yield from all_layers(child)


def is_in(objects: bpy.types.bpy_prop_collection[Object], ob: Object) -> bool:
    """Whether an object is in one of Blender's object collections; another one of the same name doesn't count."""
    found = objects.get(ob.name)
    return found is not None and (found == ob or ob in objects.values())


def are_related_anew(depsgraph: Depsgraph) -> bool:
    """Whether relations between objects, or the objects of a view layer, changed.

    Blender then tags collections. It tags the scene as well, but also when something is selected, and on each frame if
    the scene is animated. In a render everything counts as new.
    """
    return depsgraph.id_type_updated("COLLECTION" if depsgraph.mode == "VIEWPORT" else "SCENE")


class Presence:
    """The objects of a view layer, and of the background scenes, by `session_uid`."""

    def __init__(self, view_layer: ViewLayer, depsgraph: Depsgraph | None = None) -> None:
        """Prepare the lookups, which run only when they are needed.

        Args:
            view_layer: of any scene.
            depsgraph: the one in which objects are evaluated; None: use the originals.
        """
        _scene, *sets = with_sets(view_layer.id_data)
        self._depsgraph = depsgraph
        self._enabled: dict[str, set[int]] = {}
        self._posed: dict[int, Object] = {}
        self._active: dict[int, list[Owned]] = {}
        self._layers = [view_layer, *(behind.view_layers[0] for behind in sets)]

    @cached_property
    def present(self) -> set[int]:
        """`session_uid` of all objects."""
        return set[int]().union(*(uids(layer.objects) for layer in self._layers))

    @cached_property
    def sources(self) -> Sources:
        """What moves objects and bones, as they are evaluated."""
        return Sources(self.seen)

    def enabled(self, switch: str) -> set[int]:
        """`session_uid` of the objects in a collection that no `hide_viewport` or `hide_render` disables."""
        if switch not in self._enabled:
            found = self._enabled[switch] = set()
            waiting = [layer.layer_collection for layer in self._layers]
            while waiting:
                layer = waiting.pop()
                if not layer.exclude and not getattr(layer.collection, switch):
                    found |= uids(layer.collection.objects)
                    waiting += layer.children
        return self._enabled[switch]

    def has(self, ob: Object) -> bool:
        """Whether an object is in the view layer; a depsgraph also holds others that properties point to."""
        # Looking for a name takes Blender longer, the more objects there are.
        return ob.visible_get(view_layer=self._layers[0]) or any(is_in(layer.objects, ob) for layer in self._layers)

    def seen(self, ob: Object) -> Object:
        """Return the evaluated copy of an object, or the original if there is no depsgraph."""
        return ob if self._depsgraph is None else ob.evaluated_get(self._depsgraph)

    def posed(self, ob: Object) -> Object:
        """Return the evaluated copy of an armature object; the original if it was edited, and not evaluated since."""
        if ob.session_uid not in self._posed:
            seen = self.seen(ob)
            is_older = seen.pose is None or seen.pose.bones.keys() != ob.pose.bones.keys()
            self._posed[ob.session_uid] = ob if is_older else seen
        return self._posed[ob.session_uid]

    def active_constraints(self, ob: Object) -> list[Owned]:
        """Return the constraints that have an effect on bones of an armature object, see `posed`."""
        if ob.session_uid not in self._active:
            self._active[ob.session_uid] = active_constraints(self.posed(ob))
        return self._active[ob.session_uid]

    def evaluates(self, goal: Object) -> bool:
        """Whether an object is in the view layer and evaluated in viewports."""
        uid = uid_of(goal)
        return uid in self.present and uid in self.enabled("hide_viewport") and not self.seen(goal).hide_viewport

    def has_all(self, ob: Object, goals: Collection[Object]) -> tuple[bool, ...]:
        """Return whether each view layer has an armature object and evaluates all goals of its chains.

        This layer comes first; the others of the scene follow only if it lacks something.
        """
        if self._has_all(ob, goals):
            return (True,)
        others = [Presence(layer) for layer in self._layers[0].id_data.view_layers if layer != self._layers[0]]
        return (False, *(other._has_all(ob, goals) for other in others))

    def _has_all(self, ob: Object, goals: Collection[Object]) -> bool:
        return ob.session_uid in self.present and all(map(self.evaluates, goals))


def why_closed(ob: Object) -> str:
    """Return why Blender lets nobody pose an armature object, and what to do; empty if it can be posed."""
    if not ob.is_editable:
        return say(
            "'{object}' is linked from another file and can't be posed. Make a library override of it", object=ob.name
        )
    if ob.override_library is not None and ob.override_library.is_system_override:
        return say(
            "The library override of '{object}' is not editable, so it can't be posed. "
            "Choose Library Override > Make > Selected in the Object menu",
            object=ob.name,
        )
    return ""


def why_unplaced(ob: Object, world: Floats) -> str:
    """Return why an armature object with a world matrix (4, 4) can't be posed, and what to do; empty if it can."""
    if not np.isfinite(world).all():
        return say(
            "The transform of '{object}' is not a finite number. Reset its location, rotation and scale", object=ob.name
        )
    if is_flat(world):
        return say("'{object}' is scaled to zero. Reset its scale", object=ob.name)
    if not is_usable(world):
        return say("'{object}' is too far away, or scaled too much. Reset its location and scale", object=ob.name)
    return ""


def why_absent(goal: Object, presence: Presence) -> str:
    """Return why a target or pole is not in the view layer, and what to do; empty if it is.

    A chain still holds an object that was deleted.
    """
    if uid_of(goal) in presence.present:
        return ""
    if goal.library is not None and not goal.users_scene:  # linked only because the chain points to it
        return say(NOT_LINKED, goal=goal.name, library=goal.library.name)
    return say(ABSENT, goal=goal.name)


def why_unfit(ob: Object, bones: Sequence[PoseBone], goal: Goal, presence: Presence) -> str:
    """Return why the bones of a chain can't follow a target or pole, and what to do; empty if they can."""
    name, bone = goal.ob.name, goal.bone
    if absent := why_absent(goal.ob, presence):
        return absent
    if not presence.evaluates(goal.ob):
        return say(DISABLED, goal=name)
    if bone and goal.ob.type == "ARMATURE" and bone not in goal.ob.pose.bones:
        return say(NO_BONE, goal=name, bone=bone)
    moving = presence.sources.carriers([Part(goal.ob, bone)])
    own = next((own.name for own in reversed(bones) if (uid_of(ob), own.name) in moving), None)
    return "" if own is None else say(ATTACHED, goal=name, own=own)
