"""Random edits of a random scene, and what must hold after each of them.

The test knows of every bone what its channels hold without the add-on: what it set itself, or what the F-curves say.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tests import rigs as measure
from tools import blender

from . import rigs
from .rigs import armatures, choose, numbers

FIELDS = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "scale")
STEPS = 14
Channels = dict[str, NDArray[np.float32]]
"""The transform channels of one bone by name."""


def check_seed(seed: int) -> None:
    """Build the scene of a seed, edit it, and raise AssertionError where anything is wrong."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    if not blender.is_enabled():
        blender.enable()
    said = io.StringIO()
    with contextlib.redirect_stderr(said), warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("error", RuntimeWarning)
        case = Case(np.random.default_rng([30, seed]), Path(folder), said)
        try:
            case.run()
        except Exception as error:
            error.add_note("After: " + "; ".join(case.log) + "\n" + said.getvalue()[-3000:])
            raise


class Case:
    """One scene from its making to its end."""

    def __init__(self, rng: Generator, folder: Path, said: io.StringIO) -> None:
        self.rng = rng
        self.folder = folder
        self.said = said
        self.log: list[str] = []
        self.fk: dict[tuple[str, str], Channels] = {}
        """What the channels of each bone hold but for the solutions, by names of object and bone."""
        self.converted: set[tuple[str, str]] = set()
        """Bones whose rotation mode was changed while a solution stood in them: to be compared as rotations."""
        self.steps: list[tuple[dict[tuple[str, str], Channels], set[tuple[str, str]]]] = []
        """What was known at each step of undo."""
        self.at = -1
        package: Any = blender.PACKAGE
        self.compat = importlib.import_module(f"{package}.ik_addon.compat")
        self.reports = importlib.import_module(f"{package}.ik_addon.reports")
        self.chain = importlib.import_module(f"{package}.ik_addon.rig.chain")

    def run(self) -> None:
        """Make the scene, switch chains on, edit, and switch them off."""
        rigs.build(self.rng)
        bpy.context.view_layer.update()
        self.know()
        self.frame()
        self.settle("build")
        for ob in armatures():
            if self.rng.random() < 0.85:
                ob.ik_addon.live = True
        self.settle("live")
        for _ in range(STEPS):
            edit = choose(self.rng, EDITS)
            name = edit.__name__
            self.log.append(name)
            if edit not in IN_EDIT_MODE:
                self.leave_edit_mode()
                self.settle("leave Edit Mode")
            edit(self)
            self.settle(name)
        self.log.append("end")
        self.leave_edit_mode()
        for ob in armatures():
            ob.ik_addon.live = False
        self.settle("all off")
        for ob in armatures():
            assert not any(bone.ik_addon.base.stored for bone in ob.pose.bones), "a base is left"

    # ---- what is known

    def know(self) -> None:
        """Take the present channels as those without solutions: at the beginning, before anything is solved."""
        self.fk = {(ob.name, bone.name): channels(bone) for ob in armatures() for bone in ob.pose.bones}

    def take_animated(self) -> None:
        """Set what is known of keyed channels to what the F-curves say at the present frame."""
        for ob in armatures():
            for (bone, field, index), value in self.animated(ob).items():
                self.fk[ob.name, bone][field][index] = value

    def animated(self, ob: bpy.types.Object) -> dict[tuple[str, str, int], float]:
        """What the F-curves of an armature say at the present frame, by bone, channel and index."""
        names = {bone.path_from_id(): bone.name for bone in ob.pose.bones}
        owner, found = self.compat.curve_owner(ob), {}
        for curve in owner.fcurves if owner else ():
            prefix, _, field = curve.data_path.rpartition(".")
            if prefix in names and field in FIELDS:
                value = curve.evaluate(bpy.context.scene.frame_current_final)
                found[names[prefix], field, curve.array_index] = value
        return found

    def settle(self, step: str) -> None:
        """Let Blender evaluate, check everything, and make a step of undo."""
        bpy.context.view_layer.update()
        self.check(step)
        if not any(ob.mode == "EDIT" for ob in armatures()):
            bpy.ops.ed.undo_push(message=step)
            self.steps[self.at + 1 :] = [(self.copied(), set(self.converted))]
            # Blender keeps 32.
            self.steps = self.steps[-25:]
            self.at = len(self.steps) - 1

    def copied(self) -> dict[tuple[str, str], Channels]:
        """What is known, as of now."""
        return {key: {field: row.copy() for field, row in known.items()} for key, known in self.fk.items()}

    def check(self, step: str) -> None:
        """Assert what holds at any time."""
        assert "Traceback" not in self.said.getvalue(), f"{step}: an exception was printed"
        for ob in armatures():
            for tip in self.chain.tips(ob):
                report = self.reports.get(ob, tip.name)
                assert report is None or "Internal error" not in report.message, f"{step}: {report.message}"
            solved = self.solved(ob)
            driven = driven_fields(ob)
            for bone in ob.pose.bones:
                now = channels(bone)
                for field, row in now.items():
                    assert np.isfinite(row).all(), f"{step}: {field} of {bone.name} is {row}"
                if bone.name in solved or ob.mode == "EDIT":
                    continue
                known = self.fk[ob.name, bone.name]
                for field in FIELDS:
                    if (bone.name, field) in driven:
                        continue
                    if (ob.name, bone.name) in self.converted and field.startswith("rotation"):
                        continue
                    if not np.array_equal(now[field], known[field]):
                        # Blender may have evaluated the animation again, with a new key, say.
                        for (name, path, index), value in self.animated(ob).items():
                            if (name, path) == (bone.name, field):
                                known[field][index] = value
                    where = f"{step}: {field} of bone {bone.name!r} of {ob.name!r}"
                    assert np.array_equal(now[field], known[field]), f"{where} is {now[field]}, not {known[field]}"

    def solved(self, ob: bpy.types.Object) -> set[str]:
        """Names of the bones that may hold a solution."""
        found: set[str] = set()
        if not ob.ik_addon.live:
            return found
        for tip in self.chain.tips(ob):
            report = self.reports.get(ob, tip.name)
            if tip.ik_addon.enabled and not (report is not None and report.failed):
                found.update(bone.name for bone in self.chain.chain_bones(tip))
        return found

    # ---- edits

    def frame(self) -> None:
        """Go to some frame, forward or back, whole or not."""
        frame = choose(self.rng, [1, 2, 5, 8, 13, 20, 25])
        self.go(frame, choose(self.rng, [0.0, 0.0, 0.0, 0.25, 0.5]))

    def go(self, frame: int, part: float) -> None:
        self.log[-1:] = [*self.log[-1:], f"to {frame + part}"]
        bpy.context.scene.frame_set(frame, subframe=part)
        if not any(ob.mode == "EDIT" for ob in armatures()):
            self.take_animated()

    def frames_in_another_order(self) -> None:
        """Frames are the same to the bit whichever way they are reached."""
        if any(ob.mode == "EDIT" for ob in armatures()):
            return
        places = [(1, 0.0), (5, 0.25), (13, 0.0), (20, 0.0)]
        seen: dict[tuple[int, float], list[Any]] = {}
        for _ in range(2):
            for place in self.rng.permutation(len(places)).tolist():
                self.go(*places[place])
                now = [(ob.name, measure.channels(ob), measure.pose(ob)) for ob in armatures()]
                for before, after in zip(seen.setdefault(places[place], now), now, strict=True):
                    where = f"frame {places[place]} of {after[0]}"
                    assert np.array_equal(before[1], after[1]), f"{where} has other channels"
                    assert np.array_equal(before[2], after[2], equal_nan=True), f"{where} has another pose"

    def move_target(self) -> None:
        """Move an object."""
        ob = choose(self.rng, rigs.scene_objects())
        ob.location = numbers(self.rng)

    def move_bone(self) -> None:
        """Pose a bone by hand, or key it there."""
        ob, bone = self.some_bone()
        if bone is None:
            return
        field = rigs.set_rotation(bone, numbers(self.rng)) if self.rng.random() < 0.6 else "location"
        if field == "location":
            bone.location = numbers(self.rng, 0.3)
        self.fk[ob.name, bone.name][field] = channels(bone)[field]
        if field != "location":
            self.converted.discard((ob.name, bone.name))
        if self.rng.random() < 0.3 or self.is_keyed(ob, bone, field):
            bone.keyframe_insert(field, frame=bpy.context.scene.frame_current_final)

    def key_bone(self) -> None:
        """Key a bone as it stands, solution and all."""
        ob, bone = self.some_bone()
        if bone is not None and bone.name not in self.solved(ob):
            bone.keyframe_insert("location")

    def is_keyed(self, ob: bpy.types.Object, bone: bpy.types.PoseBone, field: str) -> bool:
        owner = self.compat.curve_owner(ob)
        return owner is not None and any(c.data_path == f"{bone.path_from_id()}.{field}" for c in owner.fcurves)

    def change_setting(self) -> None:
        """Change a chain's setting, switch it on or off, or give it another target."""
        ob = choose(self.rng, armatures())
        tips = self.chain.tips(ob)
        if not tips:
            return
        tip, kind = choose(self.rng, tips), self.rng.random()
        if kind < 0.5:
            self.log.append(rigs.change_setting(self.rng, tip))
        elif kind < 0.75:
            tip.ik_addon.enabled = not tip.ik_addon.enabled
        else:
            tip.ik_addon.target = choose(self.rng, [*rigs.scene_objects(), None])

    def add_chain(self) -> None:
        """One more chain."""
        ob = choose(self.rng, armatures())
        rigs.add_chain(self.rng, ob)

    def remove_chain(self) -> None:
        """One chain less."""
        ob = choose(self.rng, armatures())
        tips = self.chain.tips(ob)
        if tips and ob.mode != "EDIT":
            tip = choose(self.rng, tips)
            bpy.context.view_layer.objects.active = ob
            ob.data.bones.active = tip.bone
            if bpy.ops.ik_addon.chain_remove.poll():
                bpy.ops.ik_addon.chain_remove()

    def toggle_live(self) -> None:
        """Switch an armature on or off."""
        ob = choose(self.rng, armatures())
        ob.ik_addon.live = not ob.ik_addon.live

    def rename_bone(self) -> None:
        """Give a bone another name, perhaps that of another."""
        ob, bone = self.some_bone()
        if bone is None or ob.mode == "EDIT":
            return
        old = bone.name
        bone.bone.name = choose(self.rng, [*rigs.BONE_NAMES, "new"])
        new = bone.bone.name
        for user in armatures():
            if user.data == ob.data and old != new:
                self.fk[user.name, new] = self.fk.pop((user.name, old))
                if (user.name, old) in self.converted:
                    self.converted.remove((user.name, old))
                    self.converted.add((user.name, new))

    def rename_object(self) -> None:
        """Give an object another name."""
        ob = choose(self.rng, rigs.scene_objects())
        old = ob.name
        ob.name = choose(self.rng, [*rigs.NAMES, "Goal"])
        if ob.type == "ARMATURE" and ob.name != old:
            for name, bone in list(self.fk):
                if name == old:
                    self.fk[ob.name, bone] = self.fk.pop((name, bone))
            self.converted = {(ob.name if name == old else name, bone) for name, bone in self.converted}

    def delete_object(self) -> None:
        """Delete an object, a target perhaps; the last armature stays."""
        ob = choose(self.rng, rigs.scene_objects())
        if ob.mode != "EDIT" and (ob.type != "ARMATURE" or len(armatures()) > 1):
            bpy.data.objects.remove(ob)

    def hide_object(self) -> None:
        """Hide a target, disable it, or put it into a collection that is not there."""
        others = [ob for ob in rigs.scene_objects() if ob.type != "ARMATURE"]
        if not others:
            return
        ob, kind = choose(self.rng, others), self.rng.random()
        if kind < 0.3:
            ob.hide_set(not ob.hide_get()) if ob.name in bpy.context.view_layer.objects else None
        elif kind < 0.6:
            ob.hide_viewport = not ob.hide_viewport
        else:
            collection = bpy.data.collections.new("Apart")
            bpy.context.scene.collection.children.link(collection)
            collection.objects.link(ob)
            if kind < 0.9:
                bpy.context.scene.collection.objects.unlink(
                    ob
                ) if ob.name in bpy.context.scene.collection.objects else None
                bpy.context.view_layer.layer_collection.children[collection.name].exclude = kind < 0.75
            bpy.context.view_layer.update()

    def duplicate(self) -> None:
        """Copy an armature, with its bones or sharing them."""
        ob = choose(self.rng, armatures())
        if ob.mode == "EDIT" or len(armatures()) > 4:
            return
        new = ob.copy()
        new["rank"] = 1 + max(map(rigs.rank, rigs.scene_objects()))
        if self.rng.random() < 0.7:
            new.data = ob.data.copy()
        bpy.context.scene.collection.objects.link(new)
        for name, bone in list(self.fk):
            if name == ob.name:
                self.fk[new.name, bone] = {field: row.copy() for field, row in self.fk[name, bone].items()}
                if (name, bone) in self.converted:
                    self.converted.add((new.name, bone))

    def reparent_object(self) -> None:
        """Hang an object on something else."""
        ob = choose(self.rng, rigs.scene_objects())
        ob.parent, ob.parent_type = None, "OBJECT"
        rigs.hang(self.rng, ob)

    def delete_bone(self) -> None:
        """Delete a bone in Edit Mode."""
        self.edit_bones(lambda bones: bones.remove(choose(self.rng, bones)))

    def reparent_bone(self) -> None:
        """Hang a bone on another one that is none of its children, or on nothing."""

        def hang(bones: Any) -> None:
            bone = choose(self.rng, bones)
            others = [other for other in bones if other != bone and bone not in other.parent_recursive]
            bone.use_connect = False
            bone.parent = choose(self.rng, [*others, None])

        self.edit_bones(hang)

    def move_joint(self) -> None:
        """Change the rest pose."""

        def move(bones: Any) -> None:
            choose(self.rng, bones).tail += measure.Vector(numbers(self.rng, 0.2))

        self.edit_bones(move)

    def edit_bones(self, change: Callable[[Any], None]) -> None:
        self.leave_edit_mode()
        ob = choose(self.rng, armatures())
        if not len(ob.data.bones):
            return
        bpy.context.view_layer.objects.active = ob
        bpy.ops.object.mode_set(mode="EDIT")
        change(ob.data.edit_bones)
        bpy.ops.object.mode_set(mode="OBJECT")
        if not len(ob.data.bones):
            self.log.append("no bones left")
        self.after_edit_mode()

    def after_edit_mode(self) -> None:
        """Frames that passed in Edit Mode come into effect with the next one."""
        bpy.context.view_layer.update()
        self.go(choose(self.rng, [3, 9]), 0.0)

    def enter_mode(self) -> None:
        """Go to another mode, and perhaps stay there."""
        self.leave_edit_mode()
        ob = choose(self.rng, armatures())
        bpy.context.view_layer.objects.active = ob
        bpy.ops.object.mode_set(mode=choose(self.rng, ["POSE", "EDIT", "OBJECT"]))

    def leave_edit_mode(self) -> None:
        active = bpy.context.view_layer.objects.active
        if active is not None and active.mode == "EDIT":
            bpy.ops.object.mode_set(mode="OBJECT")
            self.after_edit_mode()

    def change_rotation_mode(self) -> None:
        """Change how a bone stores its rotation; Blender converts the channels."""
        ob, bone = self.some_bone()
        if bone is None or any(self.is_keyed(ob, bone, field) for field in FIELDS):
            return
        if any(field.startswith("rotation") for name, field in driven_fields(ob) if name == bone.name):
            return
        held = bone.ik_addon.base.stored
        bone.rotation_mode = choose(self.rng, rigs.MODES)
        if held:
            self.converted.add((ob.name, bone.name))
        else:
            for field in FIELDS[1:4]:
                self.fk[ob.name, bone.name][field] = channels(bone)[field]

    def undo(self) -> None:
        """Take some steps back, and perhaps some forward again."""
        self.leave_edit_mode()
        for _ in range(int(self.rng.integers(1, 4))):
            if self.at > 0:
                bpy.ops.ed.undo()
                self.at -= 1
        for _ in range(int(self.rng.integers(0, 3))):
            if self.at < len(self.steps) - 1:
                bpy.ops.ed.redo()
                self.at += 1
        fk, converted = self.steps[self.at]
        self.fk = {key: {field: row.copy() for field, row in known.items()} for key, known in fk.items()}
        self.converted = set(converted)

    def save_and_load(self) -> None:
        """Write the file and open it."""
        self.leave_edit_mode()
        path = str(self.folder / "file.blend")
        bpy.ops.wm.save_as_mainfile(filepath=path, check_existing=False)
        bpy.ops.wm.open_mainfile(filepath=path)
        self.steps, self.at = [], -1
        known = {(ob.name, bone.name) for ob in armatures() for bone in ob.pose.bones}
        self.fk = {key: row for key, row in self.fk.items() if key in known}

    def some_bone(self) -> tuple[bpy.types.Object, bpy.types.PoseBone | None]:
        """A bone that is not driven."""
        ob = choose(self.rng, armatures())
        driven = {name for name, _ in driven_fields(ob)}
        bones = [bone for bone in ob.pose.bones if bone.name not in driven]
        return ob, (choose(self.rng, bones) if bones and ob.mode != "EDIT" else None)


def channels(bone: bpy.types.PoseBone) -> Channels:
    """The transform channels of a bone."""
    return {field: np.array(getattr(bone, field), dtype=np.float32) for field in FIELDS}


PATH = re.compile(r'pose\.bones\["(?P<name>(?:[^"\\]|\\.)*)"\]\.(?P<field>\w+)')


def driven_fields(ob: bpy.types.Object) -> set[tuple[str, str]]:
    """Bones and channels that have drivers."""
    drivers: Iterator[Any] = iter(ob.animation_data.drivers if ob.animation_data else ())
    found = (PATH.fullmatch(curve.data_path) for curve in drivers)
    return {(bpy.utils.unescape_identifier(match["name"]), match["field"]) for match in found if match}


IN_EDIT_MODE = (Case.frame, Case.toggle_live, Case.move_target, Case.change_setting)
"""What a user can do while an armature is in Edit Mode; there is no step of undo for it here."""

EDITS: list[Callable[[Case], None]] = [
    *[Case.frame] * 3,
    *[Case.frames_in_another_order] * 2,
    *[Case.move_target] * 2,
    *[Case.move_bone] * 3,
    Case.key_bone,
    *[Case.change_setting] * 3,
    Case.add_chain,
    Case.remove_chain,
    *[Case.toggle_live] * 2,
    Case.rename_bone,
    Case.rename_object,
    Case.delete_object,
    Case.hide_object,
    Case.duplicate,
    Case.reparent_object,
    Case.delete_bone,
    Case.reparent_bone,
    Case.move_joint,
    Case.enter_mode,
    Case.change_rotation_mode,
    *[Case.undo] * 2,
    Case.save_and_load,
]
