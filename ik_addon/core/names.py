"""What the list and messages call chains: by their limbs, or else by their tip bones."""

from collections import Counter
from collections.abc import Callable, Hashable

from bpy.types import Object, PoseBone

from ..anatomy.body import Region, chest_of, find_members, head_of, parent_bone_of
from ..anatomy.figure import Figure
from .constraints import steered_bones
from .translation.sentences import marked, say

MANY = 16
_labels: dict[Hashable, dict[str, str]] = {}
"""Labels by bone, of up to `MANY` figures: finding them takes long."""


def _labels_of(ob: Object, find: Callable[[Figure], dict[str, str]]) -> dict[str, str]:
    figure = Figure.of(ob, steered_bones(ob))
    key = find, figure.names, figure.parents, figure.heads.tobytes(), figure.tails.tobytes(), str(figure.steered)
    if key not in _labels:
        if len(_labels) == MANY:
            _labels.clear()
        _labels[key] = find(figure)
    return _labels[key]


def _of_trunk(figure: Figure) -> dict[str, str]:
    legs = [list(member.row) for member in find_members(figure) if member.region is Region.LEG and not member.is_fore]
    parts = {parent_bone_of(figure, leg): marked("Hips") for leg in legs}
    parts |= {chest_of(figure): marked("Chest"), head_of(figure): marked("Head")}
    return {figure.names[bone]: name for bone, name in parts.items() if bone is not None}


def _of_members(figure: Figure) -> dict[str, str]:
    return {figure.names[member.row[-1]]: member.label for member in find_members(figure)}


def trunk_names(ob: Object) -> dict[str, str]:
    """Return the names of hips, chest and head by their bones."""
    return {bone: say(label) for bone, label in _labels_of(ob, _of_trunk).items()}


def names_by_tip(ob: Object) -> dict[str, str]:
    """Return the names of limbs, chest and head by the tip bone that their chains have, without those of several."""
    labels = _labels_of(ob, _of_members)
    often = Counter(labels.values())
    return {tip: say(label) for tip, label in labels.items() if often[label] == 1}


def chain_name(tip: PoseBone) -> str:
    """Return what the list and messages call a chain, given its tip bone: its limb if it has a name, or this bone."""
    return names_by_tip(tip.id_data).get(tip.name, tip.name)
