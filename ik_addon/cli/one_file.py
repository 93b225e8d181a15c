"""Baking the open file from the command line, with feet planted if requested."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import bpy

from ..bake import BakeReport, baking, selection, skeleton
from ..bake.skeleton_motion import RootMotion
from ..core.steps import finished
from ..feet import floor
from ..feet.plant import Options
from ..targets.snap import in_fk
from . import planting, plots, skeletons
from .exits import DONE, INCOMPLETE, MISSED, CommandError, GoOn
from .jobs import Job, LeftOut, jobs_of
from .outputs import Files, Further, Output
from .planting import PlantReport
from .plots import Tracks

NAME = "ik_bake"


@dataclass(frozen=True)
class Done:
    """An armature that was baked."""

    ob: bpy.types.Object
    bake: BakeReport
    plant: PlantReport | None = None
    skeleton: skeleton.Made | None = None
    played: tuple[Tracks, Tracks] | None = None
    """Motion of feet and hips before and after, if it is plotted."""

    @property
    def is_unplanted(self) -> bool:
        """Whether planting was requested, but there was nothing to plant."""
        return self.plant is not None and self.plant.planted is None

    @property
    def entry(self) -> dict[str, Any]:
        """The entry of the armature in the report."""
        found = {"armature": self.ob.name_full, **asdict(self.bake), "message": self.bake.message}
        if self.plant is not None:
            found["plant"] = self.plant.entry
        if self.skeleton is not None:
            made = self.skeleton
            found["skeleton"] = {"armature": made.ob.name_full, "frames": made.frames, "remarks": made.remarks}
        return found


def bake_shot(
    options: argparse.Namespace, files: Files, go_on: GoOn, pictures: Path | None = None
) -> tuple[int, dict[str, Any]]:
    """Bake the open file, save it and write its report; return the exit code and the report.

    Args:
        options: the command-line options.
        files: the files to write.
        go_on: raises when the user interrupts.
        pictures: how the names of plots begin; None for no plots.

    Raises:
        CommandError, UserError, OSError, RuntimeError: the bake failed; nothing was written.
    """
    export = _export(options)
    jobs, left_out = jobs_of(options)
    for ob, reason in left_out:
        files.complain(f"'{ob.name_full}' was left out. {reason}")
    done = [_done(job, options, go_on) for job in jobs]
    for one in done:
        if one.is_unplanted:
            files.complain(f"'{one.ob.name_full}': {one.plant.message}")
    report = _report(files, done, left_out)
    is_complete = files.write(
        as_text(report), go_on, further=[*_exports(export, options, done), *_plots(done, pictures)]
    )
    if left_out or not is_complete or any(one.is_unplanted for one in done):
        return INCOMPLETE, report
    is_missed = options.strict and not (report["reached"] and report["plays_alike"])
    return MISSED if is_missed else DONE, report


def as_text(report: dict[str, Any]) -> str:
    """Return a report as JSON text."""
    return json.dumps(report, indent=2, default=float) + "\n"


def _done(job: Job, options: argparse.Namespace, go_on: GoOn) -> Done:
    legs = planting.legs_of(job.ob, job.tips) if options.plant or options.plots else []
    new_action = options.new_action
    plant = None
    before = _recorded(job, legs, options, go_on) if legs and options.plots else None
    if legs and options.plant:
        frames = _frames(job, options, step=1)
        work = planting.plant_stepwise(bpy.context, job.ob, job.tips, frames, _planting(options), new_action=new_action)
        plant = finished(work, go_on)
        new_action = False  # planting made a copy already
    bake = _baked(job, _frames(job, options), options, go_on, new_action=new_action)
    if plant is not None:
        work = plant.as_saved(bpy.context, job.ob, _frames(job, options, step=1), _planting(options))
        plant = finished(work, go_on)
        print(f"{job.ob.name_full}: {plant.message}", flush=True)
    made = _skeleton(job, options, go_on) if options.skeleton else None
    played = None if before is None else (before, _tracks(job, legs, options, go_on))
    return Done(job.ob, bake, plant, made, played)


def _recorded(job: Job, legs: list[bpy.types.PoseBone], options: argparse.Namespace, go_on: GoOn) -> Tracks:
    """Return the motion of legs before the bake: in FK if their targets get their first keys by planting."""
    is_fresh = options.plant and any(map(planting.is_loose, legs))
    with in_fk(bpy.context, job.ob, legs) if is_fresh else nullcontext():
        return _tracks(job, legs, options, go_on)


def _tracks(job: Job, legs: list[bpy.types.PoseBone], options: argparse.Namespace, go_on: GoOn) -> Tracks:
    return finished(plots.sample(bpy.context, job.ob, legs, _frames(job, options, step=1)), go_on)


def _plots(done: Sequence[Done], pictures: Path | None) -> list[Further]:
    """Return the plots of feet and hips to write, one per armature."""
    units = bpy.context.scene.unit_settings
    unit, scale = ("units", 1.0) if units.system == "NONE" else ("m", units.scale_length)
    found = []
    for one in done:
        if one.played is not None and pictures is not None:
            title = f"{one.ob.name_full} in '{Path(bpy.data.filepath).name or 'an unsaved file'}'"
            text = plots.plot(title, *one.played, unit, scale)
            place = Output(pictures.with_name(plots.file_name(pictures.name, one.ob.name_full)), "--plots")
            found.append(Further(place, "its plot", partial(Output.fill, text=text)))
    return found


def _skeleton(job: Job, options: argparse.Namespace, go_on: GoOn) -> skeleton.Made:
    root = RootMotion(options.root, options.root_height, options.root_turn) if options.root else None
    frames = _frames(job, options, step=1)
    made = finished(skeleton.make_stepwise(bpy.context, job.ob, frames, skeleton.Options(root=root)), go_on)
    print(". ".join([f"{job.ob.name_full}: Baked {len(frames)} frames to '{made.ob.name}'", *made.remarks]), flush=True)
    return made


def _export(options: argparse.Namespace) -> Output | None:
    """Return where the skeletons are exported; None if they aren't."""
    if options.export is None:
        return None
    skeletons.check(options.export)
    saved = options.output or Path(bpy.data.filepath)
    return Output(saved.with_suffix(f".{options.export}"), "--export")


def _exports(export: Output | None, options: argparse.Namespace, done: Sequence[Done]) -> list[Further]:
    """Return the export of the skeletons to write, if it is requested."""
    made = [one.skeleton for one in done if one.skeleton is not None]
    if export is None:
        return []
    return [Further(export, "its export", skeletons.exporting(options.export, made))]


def _baked(
    job: Job,
    frames: list[int],
    options: argparse.Namespace,
    go_on: GoOn,
    *,
    new_action: bool,
) -> BakeReport:
    work = baking.bake_stepwise(
        bpy.context,
        job.ob,
        job.tips,
        frames,
        new_action=new_action,
        smooth=options.smooth,
        reduce=(options.reduce or 0.0) / bpy.context.scene.unit_settings.scale_length,
        floor=floor.of(bpy.context.view_layer, job.ob),
    )
    report = finished(work, go_on)
    print(f"{job.ob.name_full}: {report.message}", flush=True)
    return report


def _frames(job: Job, options: argparse.Namespace, step: int | None = None) -> list[int]:
    first, last = options.range or selection.frame_range(bpy.context.scene, job.ob, options.frames)
    return selection.frames_between(first, last, step or options.step)


def _planting(options: argparse.Namespace) -> Options:
    """Return the planting options."""
    return Options(on=_object(options.on, "the feet to stand on"), ground=_object(options.ground, "the ground"))


def _object(name: str | None, use: str) -> bpy.types.Object | None:
    """Return the object of that name in the view layer, or None; `use` says in the error what it is for."""
    if name is None:
        return None
    found: bpy.types.Object | None = bpy.context.view_layer.objects.get(name)
    if found is None:
        raise CommandError(f"There is no object '{name}' in the view layer for {use}")
    return found


def _report(files: Files, done: list[Done], left_out: Sequence[LeftOut]) -> dict[str, Any]:
    return {
        "file": bpy.data.filepath,
        "saved": files.saved,
        "reached": not any(one.bake.missed for one in done),
        "plays_alike": all(one.bake.plays_alike for one in done),
        "left_out": [{"armature": ob.name_full, "reason": reason} for ob, reason in left_out],
        "armatures": [one.entry for one in done],
    }
