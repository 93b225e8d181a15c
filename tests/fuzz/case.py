"""Random edits of a random scene, and what must hold after each of them."""

from __future__ import annotations

import contextlib
import importlib
import io
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from numpy.random import Generator

from tests.rigs import curve_owner
from tools import blender

from . import rigs
from .known import REST, Known, animated, channels, driven_fields
from .rigs import armatures, choose

SAME_POSE = 1e-3
"""Largest difference allowed for a pose that is solved again, solved from itself, or applied as FK pose."""
STEPS = 14


class Case:
    """One scene, from building it to the last check."""

    def __init__(self, rng: Generator, folder: Path, log: list[str]) -> None:
        self.rng, self.folder, self.log = rng, folder, log
        self.known = Known(())
        self.steps: list[Known] = []
        """What was known at each step of undo."""
        self.at = -1
        package: Any = blender.PACKAGE
        self.reports, self.chain, self.base = (
            importlib.import_module(f"{package}.ik_addon.{name}")
            for name in ("live.reports", "rig.plan.chain", "core.fk_store")
        )

    def run(self, edits: list[Callable[[Case], None]]) -> None:
        """Build the scene, turn chains on, edit, and turn them off."""
        rigs.build(self.rng)
        bpy.context.view_layer.update()
        self.known = Known(armatures())
        self.go(choose(self.rng, [1, 2, 5, 8, 13, 20, 25]), choose(self.rng, [0.0, 0.0, 0.0, 0.25, 0.5]))
        self.settle("build")
        for ob in armatures():
            if self.rng.random() < 0.85:
                ob.ik_addon.live = True
        self.settle("live")
        for _ in range(STEPS):
            edit = choose(self.rng, edits)
            name = edit.__name__
            self.log.append(name)
            if not hasattr(edit, "in_edit_mode"):
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
            assert not any(bone.ik_addon.base.stored for bone in ob.pose.bones), "an FK pose is still stored"
            assert not self.base.stored_bones(ob), "the FK store still lists a bone"

    # ---- what is known

    def animated(self, ob: bpy.types.Object) -> dict[tuple[str, str, int], float]:
        """Values of an armature's F-curves on the current frame, by bone, channel and index."""
        owner = curve_owner(ob)
        return animated(ob, owner, bpy.context.scene.frame_current_final) if owner else {}

    def take_animated(self) -> None:
        """Set the known values of keyed channels to those of their F-curves on the current frame."""
        for ob in armatures():
            for (bone, field, index), value in self.animated(ob).items():
                self.known.rows[ob.name, bone][field][index] = value

    def solved(self, ob: bpy.types.Object) -> set[str]:
        """Names of the bones that may hold a solution."""
        found: set[str] = set()
        if not ob.ik_addon.live:
            return found
        for tip in self.chain.tips(ob):
            report = self.reports.get(ob, tip.name)
            if tip.ik_addon.enabled and not (report is not None and report.failed):
                found.update(bone.name for bone in self.chain.posed_bones(tip))
        return found

    # ---- steps and checks

    def settle(self, step: str) -> None:
        """Update the view layer, check everything, and push an undo step."""
        bpy.context.view_layer.update()
        self.known.keep(armatures())
        self.check(step)
        if not any(ob.mode == "EDIT" for ob in armatures()):
            bpy.ops.ed.undo_push(message=step)
            self.steps[self.at + 1 :] = [self.known.copy()]
            # Blender keeps 32 undo steps.
            self.steps = self.steps[-25:]
            self.at = len(self.steps) - 1

    def check(self, step: str) -> None:
        """Assert what must always hold."""
        for ob in armatures():
            for tip in self.chain.tips(ob):
                report = self.reports.get(ob, tip.name)
                assert report is None or "Internal error" not in report.message, f"{step}: {report.message}"
            solved, driven = self.solved(ob), driven_fields(ob)
            for bone in ob.pose.bones:
                now = channels(bone)
                for field, row in now.items():
                    assert np.isfinite(row).all(), f"{step}: {field} of {bone.name} is {row}"
                if bone.name in solved or ob.mode == "EDIT":
                    continue
                for field in REST:
                    if (bone.name, field) in driven:
                        continue
                    wanted = self.known.rows[ob.name, bone.name][field]
                    if not np.array_equal(wanted, now[field]):
                        # Blender may have evaluated the animation again, for example after a new key.
                        for (name, path, index), value in self.animated(ob).items():
                            if (name, path) == (bone.name, field):
                                wanted[index] = value
                    held = np.array_equal(wanted, now[field])
                    assert held, f"{step}: {field} of bone {bone.name!r} of {ob.name!r} is {now[field]}, not {wanted}"

    def go(self, frame: int, part: float) -> None:
        """Go to a frame or sub-frame."""
        self.log[-1:] = [*self.log[-1:], f"to {frame + part}"]
        bpy.context.scene.frame_set(frame, subframe=part)
        if not any(ob.mode == "EDIT" for ob in armatures()):
            self.take_animated()

    def leave_edit_mode(self) -> None:
        """Go back to Object Mode."""
        active = bpy.context.view_layer.objects.active
        if active is not None and active.mode == "EDIT":
            bpy.ops.object.mode_set(mode="OBJECT")
            self.after_edit_mode()

    def after_edit_mode(self) -> None:
        """Update and change frames: frame changes made in Edit Mode take effect with the next one."""
        bpy.context.view_layer.update()
        self.go(choose(self.rng, [3, 9]), 0.0)

    def edit_bones(self, change: Callable[[Any], None]) -> None:
        """Change the bones of an armature in Edit Mode."""
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

    def some_bone(self) -> tuple[bpy.types.Object, bpy.types.PoseBone | None]:
        """Return an armature and a bone of it that is not driven, or None for the bone."""
        ob = choose(self.rng, armatures())
        driven = {name for name, _ in driven_fields(ob)}
        bones = [bone for bone in ob.pose.bones if bone.name not in driven]
        return ob, (choose(self.rng, bones) if bones and ob.mode != "EDIT" else None)


def begin() -> None:
    """Open an empty file with the extension enabled."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    if not blender.is_enabled():
        blender.enable()


@contextlib.contextmanager
def watched(log: list[str]) -> Iterator[Path]:
    """Yield a folder for files, in an empty file; an exception that Blender prints and any warning are errors.

    An error says what the log has.
    """
    begin()
    said = io.StringIO()
    with contextlib.redirect_stderr(said), warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("error", RuntimeWarning)
        try:
            yield Path(folder)
            assert "Traceback" not in said.getvalue(), "an exception was printed"
        except Exception as error:
            error.add_note("After: " + "; ".join(log) + "\n" + said.getvalue()[-3000:])
            raise


def check(seed: int, edits: list[Callable[[Case], None]]) -> None:
    """Build the scene of a seed, edit it, and raise AssertionError if anything is wrong."""
    log: list[str] = []
    with watched(log) as folder:
        Case(np.random.default_rng([30, seed]), folder, log).run(edits)
