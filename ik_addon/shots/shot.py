"""The open file baked from the command line: planted if that is asked for, baked, saved and reported."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from typing import Any

import bpy

from ..bake import BakeReport, baking, selection
from ..bake.command_line import DONE, INCOMPLETE, MISSED, CommandError, Files, GoOn, finished
from . import planted
from .jobs import Job, LeftOut, jobs_of
from .planted import PlantReport

NAME = "ik_bake"


@dataclass(frozen=True)
class Done:
    """An armature that was baked."""

    ob: bpy.types.Object
    bake: BakeReport
    plant: PlantReport | None

    @property
    def is_unplanted(self) -> bool:
        """Whether nothing was planted that should have been."""
        return self.plant is not None and not self.plant.contacts

    @property
    def entry(self) -> dict[str, Any]:
        """It in the report."""
        found = {"armature": self.ob.name_full, **asdict(self.bake), "message": self.bake.message}
        if self.plant is not None:
            found["plant"] = {**asdict(self.plant), "message": self.plant.message}
        return found


def bake_shot(options: argparse.Namespace, files: Files, go_on: GoOn) -> tuple[int, dict[str, Any]]:
    """Bake the open file, save it and write its report; return the exit code, and the report.

    Raises:
        CommandError, UserError, OSError, RuntimeError: nothing was written.
    """
    jobs, left_out = jobs_of(options)
    for ob, reason in left_out:
        files.complain(f"'{ob.name_full}' was left out. {reason}")
    done = [_done(job, options, go_on) for job in jobs]
    for one in done:
        if one.is_unplanted:
            files.complain(f"'{one.ob.name_full}': {one.plant.message}")
    report = _report(files, done, left_out)
    is_complete = files.write(as_text(report), go_on)
    if left_out or not is_complete or any(one.is_unplanted for one in done):
        return INCOMPLETE, report
    return MISSED if options.strict and not report["reached"] else DONE, report


def as_text(report: dict[str, Any]) -> str:
    """A report as it is written."""
    return json.dumps(report, indent=2, default=float) + "\n"


def _done(job: Job, options: argparse.Namespace, go_on: GoOn) -> Done:
    ob, scene = job.ob, bpy.context.scene
    first, last = options.range or selection.frame_range(scene, ob, options.frames)
    legs = planted.legs_of(ob, job.tips) if options.plant else []
    new_action = options.new_action
    plant = None
    if legs:
        frames = selection.frames_between(first, last)
        work = planted.steps(bpy.context, ob, legs, frames, _ground(options), new_action=new_action)
        plant = finished(work, go_on)
        new_action = False  # it has one now
        print(f"{ob.name_full}: {plant.message}", flush=True)
    frames = selection.frames_between(first, last, options.step)
    bake = finished(baking.steps(bpy.context, ob, job.tips, frames, new_action=new_action), go_on)
    print(f"{ob.name_full}: {bake.message}", flush=True)
    return Done(ob, bake, plant)


def _ground(options: argparse.Namespace) -> bpy.types.Object | None:
    """What the feet stand on; None: on what doesn't move."""
    if options.on is None:
        return None
    found = bpy.context.view_layer.objects.get(options.on)
    if found is None:
        raise CommandError(f"There is no object '{options.on}' in the view layer for feet to stand on")
    return found


def _report(files: Files, done: list[Done], left_out: list[LeftOut]) -> dict[str, Any]:
    return {
        "file": bpy.data.filepath,
        "saved": files.saved,
        "reached": not any(one.bake.missed for one in done),
        "left_out": [{"armature": ob.name_full, "reason": reason} for ob, reason in left_out],
        "armatures": [one.entry for one in done],
    }
