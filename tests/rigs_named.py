"""Characters with the bone names and the hierarchies of common rigs.

A rig is text: bones, each as `NAME PLACE`. On a line `>` leads to a child, `|` to a sibling of the line's first bone;
a line that is indented further has children of the last bone above it. `{s}` in a name stands for the side, and such a
bone is made twice; `~` is a space. A place is one of `PLACES`, optionally with an offset after `+` for small bones
beside a limb.

The rigs are in `tests/skeletons`, with a blank line between them. The first line of each has its name and what `{s}`
stands for, on the left and on the right. After the bones, a line `= CHAIN : ALSO` has the bones of a chain that Add
Chain should find, root first, and names of other bones that lead to it; a line `@ PLACE X Y Z` overrides a place, for
all rigs of the file where it stands at the top.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import bpy
from mathutils import Matrix, Vector

from tests import rigs

Places = Mapping[str, tuple[float, float, float]]
SKELETONS = Path(__file__).with_name("skeletons")


def _places(lines: Sequence[str]) -> Places:
    """Return the places that lines of a file name."""
    rows = [line.split()[1:] for line in lines if line.startswith("@")]
    return {place: (float(x), float(y), float(z)) for place, x, y, z in rows}


PLACES, STRAIGHT = (
    _places(block.splitlines()) for block in (SKELETONS / "places.txt").read_text("utf-8").split("\n\n")
)
"""Where a human's bones begin, and the places of exactly straight arms and legs."""


@dataclass(frozen=True)
class NamedRig:
    """The bones of a rig, and the chains that Add Chain should find."""

    sides: tuple[str, str]
    """What replaces `{s}` on the left and on the right."""
    bones: str
    chains: Mapping[str, str]
    """By the bone names of a chain, root first: names of other bones that lead to the same chain."""
    places: Places = field(default_factory=dict)
    """Overrides `PLACES`."""

    def named(self, names: str) -> list[list[str]]:
        """Return these names for the left and for the right; once if they have no side."""
        both = [spaced(names.replace("{s}", side).split()) for side in self.sides]
        return both[:1] if "{s}" not in names else both


def spaced(names: Sequence[str]) -> list[str]:
    """Return the names with their spaces restored."""
    return [name.replace("~", " ") for name in names]


@dataclass
class _Line:
    name: str
    place: Vector
    parent: int
    is_helper: bool


def build(rig: NamedRig, *, is_straight: bool = False, turn: Matrix | None = None) -> bpy.types.Object:
    """Build the armature of a rig, facing -Y unless turned; bones point at their first child that is not a helper."""
    places = {**PLACES, **(STRAIGHT if is_straight else {}), **rig.places}
    lines = _lines(rig, {name: Vector(place) for name, place in places.items()})
    ob = rigs.armature("Rig")
    bpy.ops.object.mode_set(mode="EDIT")
    made: list[bpy.types.EditBone] = []
    turn = turn or Matrix.Identity(4)
    for i, line in enumerate(lines):
        bone = ob.data.edit_bones.new(line.name)
        assert bone.name == line.name, "names are unique and not too long"
        after = [other for other in lines if other.parent == i and not other.is_helper]
        above = lines[line.parent].place if line.parent >= 0 else line.place - Vector((0.0, 0.0, 0.1))
        step = after[0].place - line.place if after else 0.5 * (line.place - above)
        if step.length < 0.01:
            step = Vector((0.0, 0.0, 0.03))
        bone.head, bone.tail = turn @ line.place, turn @ (line.place + step)
        bone.parent = made[line.parent] if line.parent >= 0 else None
        made.append(bone)
    bpy.ops.object.mode_set(mode="OBJECT")
    return ob


def _lines(rig: NamedRig, places: Mapping[str, Vector]) -> list[_Line]:
    found: list[_Line] = []
    above: list[tuple[int, dict[str, int]]] = []  # indentation, and the bone of each side
    for text in rig.bones.strip("\n").splitlines():
        indent = len(text) - len(text.lstrip())
        siblings = [entry for entry in above if entry[0] >= indent]
        assert not siblings or siblings[0][0] == indent, f"{text!r} is indented like none of the lines above"
        above = above[: len(above) - len(siblings)]
        for sibling in text.split("|"):
            parents = above[-1][1] if above else {}
            for bone in sibling.split(">"):
                name, place = spaced(bone.split())
                key, *offsets = place.split("+")
                at = places[key] + Vector([float(v) for v in offsets[0].split(",")] if offsets else (0.0, 0.0, 0.0))
                made: dict[str, int] = {}
                for side, sign in zip(rig.sides if "{s}" in name else ("",), (1.0, -1.0), strict=False):
                    made[side] = len(found)
                    head, parent = Vector((sign * at.x, at.y, at.z)), parents.get(side, parents.get("", -1))
                    found.append(_Line(name.replace("{s}", side), head, parent, bool(offsets)))
                parents = made
        above.append((indent, made))
    return found


def both(rig: NamedRig) -> Sequence[tuple[list[str], list[str]]]:
    """Return each chain on each side, with all bones that lead to it."""
    found = []
    for chain, also in rig.chains.items():
        for bones in rig.named(chain):
            side = rig.sides[rig.named(chain).index(bones)]
            found.append((bones, [*bones, *spaced(also.replace("{s}", side).split())]))
    return found


def place(rig: NamedRig, ob: bpy.types.Object, bone: str) -> str:
    """Return the place nearest to where a bone of a rig begins."""
    head = ob.data.bones[bone].head_local
    at = Vector((abs(head.x), head.y, head.z))
    places = {**PLACES, **rig.places}
    return min(places, key=lambda name: (Vector(places[name]) - at).length)


def limbs(rig: NamedRig, ob: bpy.types.Object) -> list[list[str]]:
    """Return the chains of a rig that are arms and legs, judged by where they begin."""
    starts = [Vector(PLACES[place]) for place in ("hip", "shoulder")]

    def begins(name: str) -> bool:
        head = ob.data.bones[name].head_local
        return any((Vector((abs(head.x), head.y, head.z)) - start).length < 1e-3 for start in starts)

    return [chain for chain, _meant in both(rig) if begins(chain[0])]


def read(kind: str) -> dict[str, NamedRig]:
    """Return the rigs in a file of `tests/skeletons`, by name."""
    top, *blocks = (SKELETONS / f"{kind}.txt").read_text("utf-8").split("\n\n")
    found = {}
    for block in blocks:
        head, *lines = block.rstrip("\n").splitlines()
        name, _, sides = head.partition(": ")
        left, right = sides.split()
        bones = "\n".join(line for line in lines if line[0] not in "=@")
        chains = [line[2:].partition(" :") for line in lines if line.startswith("=")]
        named = {chain: also.strip() for chain, _, also in chains}
        found[name] = NamedRig((left, right), bones, named, _places([*top.splitlines(), *lines]))
    return found


def mixamo(prefix: str) -> NamedRig:
    """Return Mixamo's skeleton with another prefix: some files number it, Ready Player Me omits it."""
    chains = {
        chain.replace("mixamorig:", prefix): also.replace("mixamorig:", prefix)
        for chain, also in RIGS["Mixamo"].chains.items()
    }
    return replace(RIGS["Mixamo"], bones=RIGS["Mixamo"].bones.replace("mixamorig:", prefix), chains=chains)


RIGS = read("named")
GAMES = {**read("games"), "Mixamo, numbered": mixamo("mixamorig12:"), "Ready Player Me": mixamo("")}
FOREIGN = read("foreign")
ANIMALS = read("animals")
