"""Pins: marks on bones that keep their location or rotation while the body is posed."""

from collections.abc import Iterable

import bpy
from bpy.types import Object

from ..anatomy.body import Region, ends_of
from ..anatomy.figure import Figure
from ..core.constraints import steered_bones
from ..core.settings import chain_of, has_settings

FLAGS = frozenset(("LOCATION", "ROTATION"))
EXTREMITIES = {"FEET": Region.LEG, "HANDS": Region.ARM}
"""The limbs whose ends can be pinned together."""


def stored_pins(ob: Object) -> dict[str, frozenset[str]]:
    """Return the stored pins by bone name, in the order of the armature."""
    if ob.pose is None:
        return {}  # Blender has not evaluated it yet
    marked = (bone for bone in ob.pose.bones if has_settings(bone) and chain_of(bone).pin)
    return {bone.name: frozenset(chain_of(bone).pin) for bone in marked}


def set_pins(ob: Object, names: Iterable[str], flags: Iterable[str]) -> None:
    """Pin bones, and with X-Axis Mirror those on the other side too; no flags: unpin them."""
    for bone in filter(None, (own for name in names for own in (name, image_of(ob, name)))):
        chain_of(ob.pose.bones[bone]).pin = set(flags)


def image_of(ob: Object, name: str) -> str:
    """Return the bone on the other side that X-Axis Mirror also changes; empty if it is off or there is none."""
    other = bpy.utils.flip_name(name) if ob.pose.use_mirror_x else name
    return other if other != name and other in ob.pose.bones else ""


def extremities(ob: Object, which: str) -> list[str]:
    """Return the `EXTREMITIES` of a figure, by name."""
    figure = Figure.of(ob, steered_bones(ob))
    return [figure.names[bone] for bone in ends_of(figure, EXTREMITIES[which])]
