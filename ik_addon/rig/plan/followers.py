"""Who follows a target or pole: that alone says to which armature it belongs, whatever any of them is called.

An armature that was copied without its targets follows those of the original. What Add Chain made for an armature
has its `identity`, and a copy that follows the same gets another one, as long as `session_uid` tells which came first.
"""

from collections.abc import Iterator
from secrets import randbelow

import bpy
from bpy.app.handlers import persistent
from bpy.types import Depsgraph, Object, PoseBone, Scene

from ...core import chain_settings, hooks
from ...core.goals import MADE, Goal
from ...core.settings import ROLES, chain_of, goal_of, is_tip, object_of
from ...core.untyped import Struct
from .presence import Reference, are_related_anew
from .sources import uid_of

_index: dict[tuple[int, str], list[tuple[Reference, str]]] = {}
"""The armatures and tips that follow each goal, by its `_key`. Checked when it is used, so what it has is right."""
_counted = 0
"""How many objects the file had when the index was made; 0: it has to be made anew, since something may be absent."""
_told_apart = 0
"""How many objects the file had when copies of armatures were looked for."""


def followers(goal: Object, bone: str = "") -> list[PoseBone]:
    """Return the tips of all chains in the file whose target or pole is an object, or a bone of it.

    The armature to which the goal belongs comes first: one of this file before a linked one, then the one for which it
    was made, then the one that the goal, or the other goal of its chain, is parented to, else the one that came first
    into the file.
    """
    key = _key(goal, bone)
    if _counted != len(bpy.data.objects):
        _make()
    found = _following(key)
    if None in found:
        _make()
        found = _following(key)

    def rank(tip: PoseBone) -> tuple[bool, bool, bool, int]:
        ob = tip.id_data
        carries = any(ob in (own.ob, own.ob.parent) for own in goals_of(tip))
        return ob.library is not None, object_of(ob).identity != _made_for(goal), not carries, ob.session_uid

    return sorted(filter(None, found), key=rank)


def _following(key: tuple[int, str]) -> list[PoseBone | None]:
    """Return the tips that follow a goal according to the index; None for each that does not any more."""
    found = []
    for rig, name in _index.get(key, ()):
        ob = rig.find()
        tip = None if ob is None or ob.pose is None else ob.pose.bones.get(name)
        found.append(tip if tip is not None and is_tip(tip) and key in _keys(tip) else None)
    return found


def follower_in(rig: Object, goal: Object, bone: str = "") -> PoseBone | None:
    """Return the tip of the chain of an armature object whose target or pole is an object, or one of its bones."""
    return next((tip for tip in followers(goal, bone) if tip.id_data == rig), None)


def owner_of(goal: Object, bone: str = "") -> Object | None:
    """Return the armature object to which a target or pole belongs; None if no chain follows it."""
    return next((tip.id_data for tip in followers(goal, bone)), None)


def borrowed(tip: PoseBone) -> dict[Object, Object]:
    """Return the empties made for another armature that a chain follows, as after copying its own, each with the other.

    Control bones are copied with their armature.
    """
    goals = (goal.ob for goal in goals_of(tip) if goal.is_made and not goal.is_bone)
    owners = ((goal, owner_of(goal)) for goal in goals)
    return {goal: owner for goal, owner in owners if owner is not None and owner != tip.id_data}


def goals_of(tip: PoseBone) -> Iterator[Goal]:
    """Yield the target and the pole of the chain on `tip`, as far as it has them."""
    for role in ROLES:
        goal, bone = goal_of(chain_of(tip), role)
        if goal is not None:
            yield Goal(goal, bone)


def mark(empty: Object, rig: Object) -> None:
    """Note on an empty that it was made for an armature object."""
    holder: Struct = empty
    holder[MADE] = object_of(rig).identity or _new_identity(rig)


def _new_identity(rig: Object) -> int:
    object_of(rig).identity = 2 + randbelow(2**31 - 2)  # 1 is True, which control bones have
    return object_of(rig).identity


def _made_for(goal: Object) -> int | None:
    """Return the identity of the armature for which an empty was made; None if Add Chain didn't make it."""
    return goal.get(MADE)


def _key(goal: Object, bone: str) -> tuple[int, str]:
    return uid_of(goal), bone if goal.type == "ARMATURE" else ""


def _keys(tip: PoseBone) -> list[tuple[int, str]]:
    return [_key(goal.ob, goal.bone) for goal in goals_of(tip)]


def _make() -> None:
    global _counted
    _index.clear()
    for ob in bpy.data.objects:
        for tip in filter(is_tip, ob.pose.bones) if ob.pose is not None else ():
            for key in _keys(tip):
                _index.setdefault(key, []).append((Reference.of(ob), tip.name))
    _counted = len(bpy.data.objects)


@persistent
def _forget(_changed: object, _unused: object = None) -> None:
    global _counted
    _counted = 0


# ---- copies


@persistent
def _tell_apart(_file: object = None, _unused: object = None) -> None:
    """Give armatures that follow what was made for another one, and are copies of it, an identity of their own.

    Before saving, and after undo, redo and loading brought back what they were.
    """
    global _told_apart
    _told_apart = len(bpy.data.objects)
    for goal in bpy.data.objects:
        with hooks.apart(goal.name):
            made_for = _made_for(goal)
            rigs = dict.fromkeys(tip.id_data for tip in followers(goal)) if made_for else ()
            alike = [rig for rig in rigs if rig.library is None and object_of(rig).identity == made_for]
            for copy in alike[1:]:
                _new_identity(copy)
                for own in (own.ob for tip in filter(is_tip, copy.pose.bones) for own in goals_of(tip)):
                    if _made_for(own) == made_for and owner_of(own) == copy and own.is_editable:  # it was copied along
                        mark(own, copy)


@persistent
def _after_update(_scene: Scene, depsgraph: Depsgraph) -> None:
    if are_related_anew(depsgraph) and len(bpy.data.objects) != _told_apart:
        _tell_apart()


HANDLERS = (
    *((name, _forget) for name in ("undo_post", "redo_post", "load_post")),
    *((name, _tell_apart) for name in ("undo_post", "redo_post", "load_post", "save_pre")),
    ("depsgraph_update_post", _after_update),
)


LISTENERS = ((chain_settings.on_chain_changed, _forget),)


def unregister() -> None:
    """Forget who follows what."""
    _forget(None)
