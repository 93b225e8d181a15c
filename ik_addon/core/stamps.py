"""What an armature object knows of the settings on its bones, to put them back after Paste Pose.

Blender's pose clipboard carries the settings of bones along: those of another time, side or character, and without
their objects. So each bone with settings has a stamp, a random number that changes with them, and the armature object
keeps stamps, settings and objects once more. Where a bone shows another stamp, or lacks an object that the armature
object has, it was pasted over. A deleted object is gone from both.

Whoever sets a setting makes the object forget (`forget`), and the handlers let it learn again (`check`), so nothing but
a paste makes them differ. The knowledge is stored with the object, because the undo step of a paste holds what was
pasted. Where it was made for other bones, for the object in a library, or by nobody yet, the bones are right.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from secrets import randbelow

import bpy
from bpy.app.handlers import persistent
from bpy.types import Armature, Depsgraph, Object, PoseBone, Scene

from . import chain_settings, compat, hooks
from .chain_settings import IKAddonChain, IKAddonFKStore
from .settings import OBJECTS, chain_of, object_of, value_of
from .untyped import Json, Struct

FORGOTTEN = "-"
"""In place of what the object knows: a setting was set since. Empty if it never had settings to know."""


@dataclass(frozen=True)
class _Known:
    """What an armature object knows."""

    origin: int
    """How many libraries override one another up to this object: an override gets the knowledge of its library."""
    names: str
    """Digest of the names of all bones, in order."""
    bones: dict[str, tuple[int, Json]]
    """Stamps and settings, as JSON can hold them, of the bones that have some."""


_read: dict[int, tuple[str, _Known]] = {}
"""What armature objects know, by `session_uid`, with the text that it was read from."""
_plain: dict[int, str] = {}
"""Digests of the names of all bones of armature objects without settings, by `session_uid`."""
_changed: set[int] = set()
"""Armature objects, by `session_uid`, that have to learn again."""


# ---- learning


def _origin(ob: Struct) -> int:
    count = 0
    while ob.override_library is not None and ob.override_library.reference is not None:
        ob, count = ob.override_library.reference, count + 1
    return count


def _digest(names: Iterable[str]) -> str:
    return blake2b("\n".join(names).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _knowledge(ob: Object) -> _Known | None:
    """Return what an armature object knows; None if that is nothing, or if it is not about this object."""
    uid = ob.session_uid
    try:
        text = object_of(ob).known
        if uid not in _read or _read[uid][0] != text:
            origin, names, stored = json.loads(text)
            bones = {name: (int(stamp), dict(kept)) for name, (stamp, kept) in stored.items()}
            _read[uid] = text, _Known(origin, names, bones)
    except (ValueError, TypeError, AttributeError):  # nothing, or a file made by hand
        return None
    known = _read[uid][1]
    return known if known.origin == _origin(ob) else None


def _learn(ob: Object, names: str) -> None:
    """Take the settings on the bones as they are; `names` is the digest of all names."""
    own, uid = object_of(ob), ob.session_uid
    before = _read[uid][1].bones if uid in _read else {}
    bones: dict[str, tuple[int, Json]] = {}
    used: set[int] = set()
    goals: dict[str, IKAddonChain] = {}
    for bone in [bone for bone in ob.pose.bones if bone.is_property_set("ik_addon")]:
        name, chain = bone.name, chain_of(bone)
        stamp, kept = chain.stamp, before.get(name)
        if kept is None or kept[0] != stamp or chain.is_chain:
            settings = content(chain)
            if not settings:
                continue
            if not stamp or stamp in used:
                stamp = chain.stamp = 1 + randbelow(2**31 - 1)
            kept = stamp, settings
        used.add(stamp)
        bones[name] = kept
        if chain.is_chain and any(map(_goals_of(chain).get, OBJECTS)):
            goals[name] = chain
    _changed.discard(uid)
    if not bones and not own.known:
        _plain[uid] = names
        return
    known = _Known(_origin(ob), names, bones)
    text = json.dumps([known.origin, known.names, known.bones])
    _read[uid] = text, known
    if own.known != text:
        own.known = text
    while len(own.goals) > len(goals) and ob.override_library is None:  # else the library may have made them
        own.goals.remove(len(own.goals) - 1)
    while len(own.goals) < len(goals):
        own.goals.add()
    wanted = [("", dict.fromkeys(OBJECTS))] * len(own.goals)
    wanted[: len(goals)] = [(tip, _goals_of(chain)) for tip, chain in goals.items()]
    for kept, (tip, objects) in zip(own.goals, wanted, strict=True):
        for name, value in {"tip": tip, **objects}.items():
            if getattr(kept, name) != value:
                setattr(kept, name, value)


def _known_goals(ob: Object) -> dict[str, dict[str, Object | None]]:
    return {kept.tip: {name: getattr(kept, name) for name in OBJECTS} for kept in object_of(ob).goals}


def _goals_of(chain: IKAddonChain) -> dict[str, Object | None]:
    goals = {name: getattr(chain, name) for name in OBJECTS}  # a file made by hand may hold another data-block
    return {name: goal if isinstance(goal, Object) else None for name, goal in goals.items()}


@cache
def _names(kind: str) -> tuple[tuple[str, bool], ...]:
    """Return the settings that a group of the type of this name keeps, and whether they are a group of their own."""
    apart = {"rna_type", "name", "stamp", *OBJECTS}
    rna = {cls.__name__: cls for cls in (IKAddonChain, IKAddonFKStore)}[kind]
    settings = [each for each in rna.bl_rna.properties if each.identifier not in apart]
    return tuple((each.identifier, each.type == "POINTER") for each in settings)


def content(group: Struct) -> Json:
    """Return the settings of a group that were ever set, as JSON can hold them."""
    found: Json = {}
    for name, is_group in _names(type(group).__name__):
        if not group.is_property_set(name):
            continue
        value = value_of(group, name)
        if value is None:
            continue
        if is_group:
            value = content(value)
            if not value:
                continue
        elif isinstance(value, set):
            value = sorted(value)
        elif not isinstance(value, str | int | float):
            value = list(value)
        found[name] = value
    return found


# ---- forgetting


def forget(chain: IKAddonChain) -> None:
    """Let the bone be right about its settings: they are about to change, or changed, by no paste."""
    ob = chain.id_data
    if chain.stamp:
        chain.stamp = 0
    _forget_all(ob)
    if object_of(ob).known != FORGOTTEN:
        object_of(ob).known = FORGOTTEN


def _forget_all(ob: Object) -> None:
    if object_of(ob).known not in {"", FORGOTTEN}:
        object_of(ob).known = FORGOTTEN
    _plain.pop(ob.session_uid, None)
    _changed.add(ob.session_uid)


def _setting_set(chain: IKAddonChain) -> None:
    forget(chain)
    compat.tag(chain.id_data)  # so that the handlers let it learn before anything is pasted


# ---- putting back


def check(ob: Object) -> None:
    """Put settings back that were pasted over, else learn what changed; for any armature object that was updated."""
    if ob.mode == "EDIT" and ob.is_editable:
        _forget_all(ob)  # Symmetrize copies settings from bone to bone
    if not _is_known(ob):
        return
    bones = ob.pose.bones
    digest, known = _digest(bones.keys()), _knowledge(ob)
    if object_of(ob).known == "":
        known = _Known(0, digest, {}) if _plain.get(ob.session_uid) == digest else None
    if known is None or known.names != digest:
        _learn(ob, digest)
        return
    pasted, goals = [], _known_goals(ob)
    having = {bone.name: bone for bone in bones if bone.is_property_set("ik_addon")}
    is_same = having.keys() >= known.bones.keys()
    for name, bone in having.items():
        kept, chain = known.bones.get(name), chain_of(bone)
        stamp = chain.stamp
        if stamp and (kept is None or kept[0] != stamp):
            pasted.append(bone)
        elif kept is not None:
            is_same = is_same and stamp != 0  # what was pasted has no stamp: nobody can tell
            if not chain.is_chain:
                continue
            own, wanted = _goals_of(chain), goals.get(name, {})
            if any(wanted.get(name) is not None and own[name] is None for name in OBJECTS):
                pasted.append(bone)
            is_same = is_same and all(wanted.get(name) == own[name] for name in OBJECTS)
            is_same = is_same and content(chain) == kept[1]  # animation sets settings without notice
    if pasted:
        _put_back(ob, pasted, known)
    if pasted or not is_same:
        _learn(ob, digest)


def _put_back(ob: Object, bones: Collection[PoseBone], known: _Known) -> None:
    animated, goals = {curve.data_path for curve in compat.animating(ob)}, _known_goals(ob)
    with chain_settings.unheard():
        for bone in bones:
            if bone.name not in known.bones:
                bone.property_unset("ik_addon")
                continue
            stamp, settings = known.bones[bone.name]
            chain = chain_of(bone)
            for pointer in OBJECTS:  # before the names of bones, which go with them
                setattr(chain, pointer, goals.get(bone.name, {}).get(pointer))
            set_content(chain, settings, f"{bone.path_from_id()}.ik_addon", animated)
            chain.stamp = stamp
    for listener in chain_settings.on_chain_changed:
        listener(ob)
    compat.tag(ob)


def set_content(group: Struct, kept: Json, path: str = "", animated: Collection[str] = ()) -> None:
    """Give a group these settings and no others; what is animated stays, like pasted channels."""
    for name, is_group in _names(type(group).__name__):
        with suppress(TypeError, ValueError):  # from a newer version, or a file made by hand
            if name not in kept:
                group.property_unset(name)
            elif is_group:
                set_content(getattr(group, name), kept[name], f"{path}.{name}", animated)
            elif f"{path}.{name}" not in animated:
                value = kept[name]
                setattr(group, name, set(value) if group.bl_rna.properties[name].is_enum_flag else value)


# ---- armature objects, and when they are checked


def _armatures() -> Iterator[Object]:
    return (ob for ob in bpy.data.objects if ob.type == "ARMATURE")


def _is_known(ob: Object) -> bool:
    """Return whether an object has bones to know: those of linked ones can't change, in Edit Mode they are old."""
    return ob.pose is not None and ob.mode != "EDIT" and ob.is_editable


@persistent
def after_update(_scene: Scene, depsgraph: Depsgraph) -> None:
    """Check the armature objects that an update concerns, before anything is solved; forget those that were deleted."""
    originals = {update.id.original for update in depsgraph.updates}
    own = {ob for ob in originals if isinstance(ob, Object) and ob.type == "ARMATURE"}
    shared = {data for data in originals if isinstance(data, Armature)}
    if shared:
        own.update(ob for ob in _armatures() if ob.data in shared)
    if depsgraph.id_type_updated("COLLECTION"):
        for uid in (_read.keys() | _plain.keys()) - {ob.session_uid for ob in _armatures()}:
            _read.pop(uid, None)
            _plain.pop(uid, None)
    _check_each(own)


def _check_each(obs: Iterable[Object]) -> None:
    for ob in obs:
        with hooks.apart(ob.name):
            check(ob)


@persistent
def after_undo(_file: object, _unused: object = None) -> None:
    """Check all armature objects: the step of a paste holds what was pasted."""
    _check_each(_armatures())


@persistent
def after_load(_file: object, _unused: object = None) -> None:
    """Forget what was read from another file, and check all armature objects of this one."""
    unregister()
    after_undo(_file)


@persistent
def learn(_scene: Scene, _depsgraph: object) -> None:
    """Let the armature objects learn that forgot; after the handlers that store FK poses."""
    if _changed:
        for ob in _armatures():
            with hooks.apart(ob.name):
                if ob.session_uid in _changed and _is_known(ob):
                    _learn(ob, _digest(ob.pose.bones.keys()))


def unregister() -> None:
    """Forget what was read from the file."""
    for memory in (_read, _plain, _changed):
        memory.clear()


LISTENERS = ((chain_settings.on_set, _setting_set),)
