"""Settings that an older version of the extension wrote are brought up to date when they are seen first.

An armature object with chains says in which layout its settings are (`object.ik_addon.layout`). Files come by opening
and by appending, linking and undoing, so each new object is looked at, whichever way it came.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import bpy

from . import fk_store
from .settings import chain_of, has_settings, object_of


def _from_0(ob: bpy.types.Object) -> None:
    """0.1.0 stored no number, and the base of each bone on the bone, also where it is the rest pose."""
    fk_store.compact(ob)


STEPS: Final[list[Callable[[bpy.types.Object], None]]] = [_from_0]
"""The step at n brings an armature object from layout n to layout n + 1; what is not there must not disturb it."""


def newest() -> int:
    """The layout that this version of the extension writes."""
    return len(STEPS)


def bring_up(ob: bpy.types.Object) -> None:
    """Bring the settings of an armature object up to date; those of a newer version are left as they are."""
    settings = object_of(ob)
    for number in range(max(0, settings.layout), newest()):
        STEPS[number](ob)
        settings.layout = number + 1


def bring_up_all() -> None:
    """Bring all armature objects with chains up to date."""
    for ob in bpy.data.objects:
        is_old = ob.type == "ARMATURE" and ob.pose is not None and object_of(ob).layout < newest()
        if is_old and any(has_settings(bone) and chain_of(bone).is_chain for bone in ob.pose.bones):
            bring_up(ob)


def is_newer(ob: bpy.types.Object) -> bool:
    """Whether a newer version of the extension wrote the settings of an armature object."""
    return object_of(ob).layout > newest()
