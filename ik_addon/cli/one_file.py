"""Baking the open file from the command line, with feet planted if requested."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import bpy

from ..bake import BakeReport, baking, selection, skeleton
from ..bake.skeleton_motion import RootMotion
from ..core.steps import finished
from ..core.untyped import Json
from ..feet import floor
from ..feet.plant import Options
from ..feet.plant_report import Planted
from ..targets.snap import in_fk
from . import outputs, planting, plots
from .exits import DONE, INCOMPLETE, MISSED, CommandError, GoOn
from .jobs import Job, LeftOut, jobs_of
from .outputs import Files, Filling, Output
from .plots import Tracks

NAME = "ik_bake"


@dataclass(frozen=True)
class Done:
    """An armature that was baked."""

    ob: bpy.types.Object
    bake: BakeReport
    plant: Planted | None = None
    skeleton: skeleton.Made | None = None
    played: tuple[Tracks, Tracks] | None = None
    """Motion of feet and hips before and after, if it is plotted."""

    @property
    def is_unplanted(self) -> bool:
        """Whether planting was requested, but there was nothing to plant."""
        return self.plant is not None and not self.plant.contacts

    @property
    def entry(self) -> Json:
        """The entry of the armature in the report."""
        parts = {"plant": self.plant, "skeleton": self.skeleton}
        found = {name: part.entry for name, part in parts.items() if part is not None}
        return {"armature": self.ob.name_full, **self.bake.entry, **found}


def bake_shot(options: argparse.Namespace, files: Files, go_on: GoOn, pictures: Path | None = None) -> tuple[int, Json]:
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
    done = [_Work(job, options, go_on).done() for job in jobs]
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


def as_text(report: Json) -> str:
    """Return a report as JSON text."""
    return json.dumps(report, indent=2, default=float) + "\n"


@dataclass(frozen=True)
class _Work:
    """An armature that is baked."""

    job: Job
    options: argparse.Namespace
    go_on: GoOn

    def done(self) -> Done:
        """Plant feet, bake, make a skeleton and measure, as far as requested."""
        options, ob, tips = self.options, self.job.ob, self.job.tips
        legs = planting.legs_of(ob, tips) if options.plant or options.plots else []
        new_action, plant = options.new_action, None
        before = self._recorded(legs) if legs and options.plots else None
        if legs and options.plant:
            how = Options(on=_object(options.on, "the feet to stand on"), ground=_object(options.ground, "the ground"))
            work = planting.plant_stepwise(bpy.context, ob, tips, self._frames(), how, new_action=new_action)
            plant = finished(work, self.go_on)
            new_action = False  # planting made a copy already
        bake = self._baked(new_action)
        if plant is not None:
            work = planting.measured(bpy.context, ob, self._frames(), how, plant)
            plant = finished(work, self.go_on)
            self._say(plant.message)
        made = self._skeleton() if options.skeleton else None
        return Done(ob, bake, plant, made, None if before is None else (before, self._tracks(legs)))

    def _say(self, message: str) -> None:
        print(f"{self.job.ob.name_full}: {message}", flush=True)

    def _frames(self, step: int = 1) -> list[int]:
        options = self.options
        first, last = options.range or selection.frame_range(bpy.context.scene, self.job.ob, options.frames)
        return selection.frames_between(first, last, step)

    def _recorded(self, legs: list[bpy.types.PoseBone]) -> Tracks:
        """Return the motion of legs before the bake: in FK if their targets get their first keys by planting."""
        is_fresh = self.options.plant and any(map(planting.is_loose, legs))
        with in_fk(bpy.context, self.job.ob, legs) if is_fresh else nullcontext():
            return self._tracks(legs)

    def _tracks(self, legs: list[bpy.types.PoseBone]) -> Tracks:
        return finished(plots.sample(bpy.context, self.job.ob, legs, self._frames()), self.go_on)

    def _baked(self, new_action: bool) -> BakeReport:
        options, job = self.options, self.job
        work = baking.bake_stepwise(
            bpy.context,
            job.ob,
            job.tips,
            self._frames(options.step),
            new_action=new_action,
            smooth=options.smooth,
            reduce=(options.reduce or 0.0) / bpy.context.scene.unit_settings.scale_length,
            floor=floor.of(bpy.context.view_layer, job.ob),
        )
        report = finished(work, self.go_on)
        self._say(report.message)
        return report

    def _skeleton(self) -> skeleton.Made:
        options, frames = self.options, self._frames()
        root = RootMotion(options.root, options.root_height, options.root_turn) if options.root else None
        work = skeleton.make_stepwise(bpy.context, self.job.ob, frames, skeleton.Options(root=root))
        made = finished(work, self.go_on)
        self._say(made.message)
        return made


def _plots(done: Sequence[Done], pictures: Path | None) -> list[Filling]:
    """Return the plots of feet and hips to write, one per armature."""
    units = bpy.context.scene.unit_settings
    unit, scale = ("units", 1.0) if units.system == "NONE" else ("m", units.scale_length)
    found: list[Filling] = []
    for one in done:
        if one.played is not None and pictures is not None:
            title = f"{one.ob.name_full} in '{Path(bpy.data.filepath).name or 'an unsaved file'}'"
            text = plots.plot(title, *one.played, unit, scale)
            place = Output(pictures.with_name(plots.file_name(pictures.name, one.ob.name_full)), "--plots")
            found.append((place, partial(Output.fill, text=text)))
    return found


def _export(options: argparse.Namespace) -> Output | None:
    """Return where the skeletons are exported; None if they aren't."""
    if options.export is None:
        return None
    outputs.check(options.export)
    saved = options.output or Path(bpy.data.filepath)
    return Output(saved.with_suffix(f".{options.export}"), "--export")


def _exports(export: Output | None, options: argparse.Namespace, done: Sequence[Done]) -> list[Filling]:
    """Return the export of the skeletons to write, if it is requested."""
    made = [one.skeleton for one in done if one.skeleton is not None]
    return [] if export is None else [(export, outputs.exporting(options.export, made))]


def _object(name: str | None, use: str) -> bpy.types.Object | None:
    """Return the object of that name in the view layer, or None; `use` says in the error what it is for."""
    if name is None:
        return None
    found: bpy.types.Object | None = bpy.context.view_layer.objects.get(name)
    if found is None:
        raise CommandError(f"There is no object '{name}' in the view layer for {use}")
    return found


def _report(files: Files, done: list[Done], left_out: Sequence[LeftOut]) -> Json:
    return {
        "file": bpy.data.filepath,
        "saved": files.saved,
        "reached": not any(one.bake.missed for one in done),
        "plays_alike": all(one.bake.plays_alike for one in done),
        "left_out": [{"armature": ob.name_full, "reason": reason} for ob, reason in left_out],
        "armatures": [one.entry for one in done],
    }
