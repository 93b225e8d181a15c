"""Everyday edits of several characters in random order: after each, all chains are where they belong.

Copying and pasting poses, also flipped and from one character to another; renaming, duplicating, joining and
symmetrizing; keys, settings, chains added and removed; undo, redo, saving and opening.
"""

import contextlib
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import bpy

from tests import rigs
from tests.reliability.test_undo_random import ConfusedError

STEPS = 40
KEPT = 20
"""Number of undo steps that Blender keeps."""
SIDES = ("L", "R")
Wire = tuple[Any, ...]
Wires = dict[str, dict[str, Wire]]
"""What each bone with settings has, by armature and bone: target, pole, and some settings."""


class WiresError(AssertionError):
    """Chains are not as they should be."""

    def __init__(self, done: list[str], wanted: Wires, found: Wires) -> None:
        different = [
            f"{name} {bone}: {wanted.get(name, {}).get(bone)} is {found.get(name, {}).get(bone)}"
            for name in wanted.keys() | found.keys()
            for bone in wanted.get(name, {}).keys() | found.get(name, {}).keys()
            if wanted.get(name, {}).get(bone) != found.get(name, {}).get(bone)
        ]
        super().__init__("\n".join([f"after {', '.join(done)}:", *different, *sorted(wanted.keys() ^ found.keys())]))


def armatures() -> list[bpy.types.Object]:
    return [ob for ob in bpy.data.objects if ob.type == "ARMATURE"]


def wires() -> Wires:
    """Return what all bones have now, without making Blender create settings."""
    return {
        ob.name: {bone.name: wire for bone in ob.pose.bones if (wire := _wire(bone)) is not None} for ob in armatures()
    }


def _wire(bone: bpy.types.PoseBone) -> Wire | None:
    if not bone.is_property_set("ik_addon"):
        return None
    own = bone.ik_addon
    if not (own.is_chain or own.pin):
        return None
    goals = [goal and goal.name for goal in (own.target, own.pole)]
    return own.is_chain, *goals, own.chain_length, round(own.softness, 4), own.enabled, tuple(sorted(own.pin))


def _character(name: str, x: float, sides: str) -> None:
    ob = rigs.armature(name)
    ob.location.x = x
    rigs.add_bones(ob, [(0, 0, 0), (0, 0, 1)], ["spine"])
    for side, y in (("L", 0.3), ("R", -0.3)):
        points = [(y, 0, 1), (y, -0.1, 0.6), (y, 0, 0.2), (y, -0.2, 0.2)]
        rigs.add_bones(ob, points, [f"{bone}.{side}" for bone in ("upper", "lower", "hand")], "spine")
        if side in sides:
            target = rigs.empty(f"Target {name} {side}", (x + y, -0.2, 0.4))
            pole = rigs.empty(f"Pole {name} {side}", (x + y, -2.0, 0.6))
            rigs.chain(ob, f"lower.{side}", target, 2, pole=pole, softness=0.1)
        if side not in sides:
            ob.pose.bones[f"hand.{side}"].ik_addon.pin = {"LOCATION"}
    ob.pose.bones["upper.L"].rotation_quaternion = (0.9, 0.1, 0.2, 0.3)


class Session:
    """A file, and what is done in it."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = random.Random(seed)
        self.file = folder / "everyday.blend"
        self.copied = False
        self.done: list[str] = []
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        bpy.context.preferences.edit.undo_steps = KEPT + 2
        for k, (name, sides) in enumerate((("Rig", "L"), ("Other", "LR"), ("Plain", ""))):
            _character(name, 3.0 * k, sides)
        bpy.context.view_layer.update()
        self.begin()

    def begin(self) -> None:
        """Begin with the file as it is: nothing can be undone."""
        bpy.ops.ed.undo_push(message="begin")
        self.states, self.at = [wires()], 0

    # ---- helpers

    def choose(self, *, mode: str) -> bpy.types.Object:
        """Make any armature the only selected one, and active, in a mode."""
        ob = self.rng.choice(armatures())
        rigs.select(ob)
        bpy.ops.object.mode_set(mode=mode)
        return ob

    def select_bones(self, ob: bpy.types.Object) -> None:
        """Select all bones in Pose Mode, or some."""
        bpy.ops.pose.select_all(action="SELECT")
        if self.rng.random() < 0.5:
            rigs.select_bones(ob, *(bone.name for bone in ob.pose.bones if self.rng.random() < 0.6))

    # ---- edits: each is given what there is and changes it to what is wanted; False: it was not possible

    def copy(self, _wanted: Wires) -> None:
        """Copy a pose."""
        self.select_bones(self.choose(mode="POSE"))
        with contextlib.suppress(RuntimeError):  # nothing selected
            bpy.ops.pose.copy()
            self.copied = True

    def paste(self, _wanted: Wires) -> bool:
        """Paste a pose, as it is or flipped; the undo step is made before the update that follows."""
        if not self.copied:
            return False
        self.select_bones(self.choose(mode="POSE"))
        flipped, only = self.rng.random() < 0.5, self.rng.random() < 0.3
        try:
            bpy.ops.pose.paste("EXEC_DEFAULT", True, flipped=flipped, selected_mask=only)
        except RuntimeError:  # no bone of this name
            return False
        return True

    def rename_bone(self, wanted: Wires) -> None:
        """Rename a bone."""
        ob = self.rng.choice(armatures())
        bone = self.rng.choice(list(ob.data.bones))
        old, bone.name = bone.name, self.rng.choice(["forearm.L", "forearm.R", "shin.L", "x", "Arm"])
        own = wanted[ob.name]
        if old in own:
            own[bone.name] = own.pop(old)

    def swap_sides(self, wanted: Wires) -> None:
        """Swap the names of two bones."""
        ob = self.rng.choice(armatures())
        one, two = self.rng.sample(list(ob.data.bones), 2)
        first, second = one.name, two.name
        one.name, two.name, one.name = "aside", first, second
        own = wanted[ob.name]
        had = {name: own.pop(name, None) for name in (first, second)}
        own.update({new: had[old] for old, new in ((first, second), (second, first)) if had[old] is not None})

    def rename_object(self, wanted: Wires) -> None:
        """Rename an armature or a goal."""
        ob = self.rng.choice(list(bpy.data.objects))
        old, ob.name = ob.name, self.rng.choice(["Hero", "Villain", "Thing"])
        if old in wanted:
            wanted[ob.name] = wanted.pop(old)
        for own in wanted.values():
            own.update(_with_goals(own, {old: ob.name}))

    def duplicate(self, wanted: Wires) -> bool:
        """Duplicate an armature, with its goals or without."""
        if len(armatures()) > 4:
            return False
        ob = self.choose(mode="OBJECT")
        for other in bpy.data.objects:
            other["origin"] = other.name
        if self.rng.random() < 0.6:
            chains = [bone.ik_addon for bone in ob.pose.bones if bone.is_property_set("ik_addon")]
            for goal in [goal for chain in chains for goal in (chain.target, chain.pole) if goal is not None]:
                if goal.name in bpy.context.view_layer.objects:
                    goal.select_set(True)
        known = {other.name for other in bpy.data.objects}
        bpy.ops.object.duplicate()
        copies = {other["origin"]: other.name for other in bpy.data.objects if other.name not in known}
        own = wanted[ob.name if ob.name in wanted else ob["origin"]]
        wanted[copies[ob["origin"]]] = _with_goals(own, copies)
        return True

    def join(self, wanted: Wires) -> bool:
        """Join two armatures. Bones get new names where both have one of a name."""
        if len(armatures()) < 3:
            return False
        into, other = self.rng.sample(armatures(), 2)
        rigs.select(into, other)
        count, gone = len(into.pose.bones), other.name
        bpy.ops.object.join()
        bpy.context.view_layer.update()
        joined = [bone.name for bone in into.pose.bones][count:]
        moved, found = wanted.pop(gone), wires()[into.name]
        new = {bone: wire for bone, wire in found.items() if bone in joined}
        assert Counter(new.values()) == Counter(moved.values()), (moved, found)
        wanted[into.name].update(new)
        return True

    def symmetrize(self, wanted: Wires) -> bool:
        """Copy one side of an armature to the other."""
        ob = self.choose(mode="OBJECT")
        ends = (".L", ".R")
        for bone in ob.data.bones:
            # Blender makes a bone its own ancestor where sides cross or the root has one, and loses bones.
            if bone.name.endswith(ends) and (
                bone.parent is None or bone.parent.name[-2:] in {*ends} - {bone.name[-2:]}
            ):
                return False
        side = self.rng.choice(SIDES)
        with rigs.edit_mode(ob) as bones, contextlib.suppress(RuntimeError):
            rigs.select_edit_bones(bones, f".{side}")
            bpy.ops.armature.symmetrize()
        bpy.context.view_layer.update()
        # Blender before 5 moves a connected bone to its parent's new tail, and drops it where no length is left.
        own = {bone: wire for bone, wire in wanted[ob.name].items() if bone in ob.pose.bones}
        after = wires()[ob.name]
        for bone in own.keys() | after.keys():
            if own.get(bone) != after.get(bone):
                source = bpy.utils.flip_name(bone)
                assert source.endswith(f".{side}"), (bone, own, after)
                assert after.get(bone) == own.get(source), (bone, own, after)
        wanted[ob.name] = after
        return True

    def bones_edited(self, wanted: Wires) -> None:
        """Duplicate a bone in Edit Mode: the copy has the same settings."""
        ob = self.choose(mode="OBJECT")
        names = [bone.name for bone in ob.pose.bones]
        name = self.rng.choice(names)
        with rigs.edit_mode(ob) as bones:
            for bone in bones:
                bone.select = bone.select_head = bone.select_tail = bone.name == name
            bpy.ops.armature.duplicate()
        bpy.context.view_layer.update()
        own = wanted[ob.name]
        if name in own:
            own.update({bone.name: own[name] for bone in ob.pose.bones if bone.name not in names})

    def key(self, _wanted: Wires) -> None:
        """Key a bone, or the influence of a chain."""
        ob = self.choose(mode="POSE")
        bone = self.rng.choice(list(ob.pose.bones))
        frame = self.rng.randint(1, 20)
        bpy.context.scene.frame_set(frame)
        bone.keyframe_insert("rotation_quaternion", frame=frame)
        if bone.is_property_set("ik_addon") and bone.ik_addon.is_chain:
            ob.keyframe_insert(f"{bone.path_from_id()}.ik_addon.influence", frame=frame)

    def frame(self, _wanted: Wires) -> None:
        """Go to another frame."""
        bpy.context.scene.frame_set(self.rng.randint(1, 20))

    def live(self, _wanted: Wires) -> None:
        """Switch Live."""
        ob = self.rng.choice(armatures())
        ob.ik_addon.live = not ob.ik_addon.live

    def setting(self, wanted: Wires) -> bool:
        """Set settings of a chain."""
        found = [bone for ob in armatures() for bone in ob.pose.bones if (_wire(bone) or [False])[0]]
        if not found:
            return False
        bone = self.rng.choice(found)
        bone.ik_addon.softness = self.rng.random()
        if self.rng.random() < 0.2:
            bone.ik_addon.target = self.rng.choice([None, *(each for each in bpy.data.objects if each.type == "EMPTY")])
        self.take(wanted, bone)
        return True

    def pin(self, wanted: Wires) -> None:
        """Pin a bone or release it."""
        bone = self.rng.choice(list(self.rng.choice(armatures()).pose.bones))
        bone.ik_addon.pin = {"ROTATION"} if bone.ik_addon.pin else {"LOCATION"}
        self.take(wanted, bone)

    def take(self, wanted: Wires, bone: bpy.types.PoseBone) -> None:
        """Want what a bone has now."""
        wire = _wire(bone)
        own = wanted[bone.id_data.name]
        own.pop(bone.name, None)
        if wire is not None:
            own[bone.name] = wire

    def delete_goal(self, wanted: Wires) -> None:
        """Delete a target or pole."""
        ob = self.rng.choice([ob for ob in bpy.data.objects if ob.type == "EMPTY"])
        for own in wanted.values():
            own.update(_with_goals(own, {ob.name: None}))
        bpy.data.objects.remove(ob)

    def add_or_remove(self, wanted: Wires) -> None:
        """Add a chain to a bone or remove it."""
        ob = self.choose(mode="POSE")
        bone = self.rng.choice(list(ob.pose.bones))
        name, had = bone.name, (_wire(bone) or [False])[0]
        ob.data.bones.active = bone.bone
        operators: Any = bpy.ops.ik_addon
        try:
            done = (
                operators.chain_remove() if had else operators.chain_add(chain_length=2, live=self.rng.random() < 0.5)
            )
        except RuntimeError:
            return
        if done == {"FINISHED"}:
            assert (_wire(ob.pose.bones[name]) or [False])[0] is not had
            self.take(wanted, ob.pose.bones[name])

    def solve(self, _wanted: Wires) -> None:
        """Press Solve IK."""
        self.choose(mode="POSE")
        with contextlib.suppress(RuntimeError):
            bpy.ops.ik_addon.solve()

    # ---- all of it

    def step(self) -> None:
        """Make, undo or redo an edit, or save the file and open it again; check what there is."""
        chance = self.rng.random()
        if chance < 0.15 and self.at > 0:
            self.at -= 1
            bpy.ops.ed.undo()
            self.check("undo", self.states[self.at])
        elif chance < 0.25 and self.at < len(self.states) - 1:
            self.at += 1
            bpy.ops.ed.redo()
            self.check("redo", self.states[self.at])
        elif chance < 0.3:
            rigs.save_and_open(self.file)
            self.check("save and open", self.states[self.at])
            self.begin()
        else:
            edit = self.rng.choice(EDITS)
            wanted = wires()
            if edit(self, wanted) is False:
                return
            if edit is not Session.paste:
                bpy.context.view_layer.update()
                bpy.ops.ed.undo_push(message=edit.__name__)
                bpy.context.view_layer.update()
            self.check(edit.__name__, wanted)
            self.at += 1
            self.states[self.at :] = [wanted]
            if self.at > KEPT:
                self.states, self.at = self.states[1:], self.at - 1

    def check(self, what: str, wanted: Wires) -> None:
        """Assert that chains are as wanted."""
        self.done.append(what)
        found = wires()
        if found == wanted:
            return
        if what in {"undo", "redo"} and _without_goals(found) == _without_goals(wanted):
            raise ConfusedError(what)
        raise WiresError(self.done, wanted, found)


def _with_goals(own: Mapping[str, Wire], names: Mapping[str, str | None]) -> dict[str, Wire]:
    """Return the wires of an armature with other goals in place of some."""
    return {bone: (wire[0], *(names.get(goal, goal) for goal in wire[1:3]), *wire[3:]) for bone, wire in own.items()}


def _without_goals(found: Wires) -> Any:
    """Return the wires with no more than whether there are goals."""
    return {
        name: {bone: [wire[0], *(goal is not None for goal in wire[1:3]), wire[3:]] for bone, wire in own.items()}
        for name, own in found.items()
    }


EDITS: list[Callable[[Session, Wires], bool | None]] = [
    *[Session.copy] * 3,
    *[Session.paste] * 8,
    Session.rename_bone,
    Session.swap_sides,
    Session.rename_object,
    *[Session.duplicate] * 2,
    Session.join,
    *[Session.symmetrize] * 2,
    Session.bones_edited,
    *[Session.key] * 2,
    *[Session.frame] * 2,
    *[Session.live] * 2,
    *[Session.setting] * 2,
    Session.pin,
    Session.delete_goal,
    *[Session.add_or_remove] * 2,
    Session.solve,
]


def check_seed(seed: int) -> None:
    """Run one session. Nothing is known where Blender confuses objects, see docs/reliability.md."""
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(ConfusedError):
        session = Session(seed, Path(folder))
        for _ in range(STEPS):
            session.step()
