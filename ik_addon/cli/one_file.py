"""Baking the open file from the command line: which armatures and chains, and with feet planted if requested."""

from __future__ import annotations

import argparse
import json
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import bpy
import numpy as np
from bpy.types import Object, PoseBone

from ..anatomy.figure import Figure
from ..bake import BakeReport, baking, skeleton
from ..bake.scene import frame_range, frames_between, time_scale
from ..core import contact_keys
from ..core.keyframes import use_new_action
from ..core.settings import chain_of
from ..core.steps import Result, finished
from ..core.untyped import Json
from ..feet import ground_object
from ..feet.contacts import key_contacts
from ..feet.plant import Options, Planted, as_saved, plant_feet
from ..feet.sampled_feet import is_of_leg
from ..rig.plan.chain import tips
from ..rig.plan.followers import goals_of
from ..rig.plan.order import in_order
from ..rig.plan.plan import Plan, between
from ..rig.plan.presence import why_closed
from ..rig.plan.sources import Part, Sources
from ..solve.problem import Floats
from ..targets import snap
from ..targets.movable import target_of
from . import outputs
from .exits import DONE, INCOMPLETE, MISSED, CommandError, GoOn
from .outputs import Files, Output

NAME = "ik_bake"


class Done(NamedTuple):
    """An armature that was baked."""

    ob: Object
    bake: BakeReport
    plant: Planted | None = None
    skeleton: skeleton.Made | None = None

    @property
    def entry(self) -> Json:
        """The entry of the armature in the report."""
        parts = {"plant": self.plant, "skeleton": self.skeleton}
        found = {name: part.entry for name, part in parts.items() if part is not None}
        return {"armature": self.ob.name_full, **self.bake.entry, **found}


def bake_shot(options: argparse.Namespace, files: Files, go_on: GoOn) -> tuple[int, Json]:
    """Bake the open file, save it and write its report; return the exit code and the report.

    Args:
        options: the command-line options.
        files: the files to write.
        go_on: raises when the user interrupts.

    Raises:
        CommandError, UserError, OSError, RuntimeError: the bake failed; nothing was written.
    """
    export: list[Output] = []
    if options.export is not None:
        outputs.check(options.export)
        saved = options.output or Path(bpy.data.filepath)
        export.append(Output(saved.with_suffix(f".{options.export}"), "--export"))
    jobs, left_out = jobs_of(options, go_on)
    for ob, reason in left_out:
        files.complain(f"'{ob.name_full}' was left out. {reason}")
    done = [job.done() for job in jobs]
    unplanted = {one.ob.name_full: one.plant.message for one in done if one.plant and not one.plant.contacts}
    for name, message in unplanted.items():
        files.complain(f"'{name}': {message}")
    report = {
        "file": bpy.data.filepath,
        "saved": files.saved,
        "reached": not any(one.bake.missed for one in done),
        "plays_alike": all(one.bake.plays_alike for one in done),
        "left_out": [{"armature": ob.name_full, "reason": reason} for ob, reason in left_out],
        "armatures": [one.entry for one in done],
    }
    fill = partial(outputs.export, kind=options.export, made=[one.skeleton for one in done if one.skeleton is not None])
    is_complete = files.write(as_text(report), go_on, [(output, fill) for output in export])
    if left_out or not is_complete or unplanted:
        return INCOMPLETE, report
    return MISSED if options.strict and not (report["reached"] and report["plays_alike"]) else DONE, report


def as_text(report: Json) -> str:
    """Return a report as JSON text."""
    return json.dumps(report, indent=2, default=float) + "\n"


class Job(NamedTuple):
    """An armature to bake."""

    ob: Object
    tips: list[str]
    """Names of the tip bones of the chains."""
    options: argparse.Namespace
    go_on: GoOn

    def done(self) -> Done:
        """Plant feet, bake, make a skeleton and measure, as far as requested."""
        options, ob = self.options, self.ob
        legs, planted, made = [], None, None
        if options.plant:
            figure = Figure.of(ob)
            legs = [bone for tip in self.tips if is_of_leg(figure, bone := ob.pose.bones[tip])]
        if legs:
            how = Options(on=_object(options.on, "the feet to stand on"), ground=_object(options.ground, "the ground"))
            planted = self._planted(legs, how)
        bake = self._baked(options.new_action and not legs)  # planting made a copy already
        if planted is not None:
            planted = self._measured(planted, how)
            self._say(planted.message)
        if options.skeleton:
            root = skeleton.RootMotion(options.root, options.root_height, options.root_turn) if options.root else None
            made = self._run(skeleton.make_stepwise(bpy.context, ob, self._frames(), skeleton.Options(root=root)))
            self._say(made.message)
        return Done(ob, bake, planted, made)

    def _run(self, steps: Generator[float, None, Result]) -> Result:
        return finished(steps, self.go_on)

    def _say(self, message: str) -> None:
        print(f"{self.ob.name_full}: {message}", flush=True)

    def _frames(self, step: int = 1) -> list[int]:
        options = self.options
        first, last = options.range or frame_range(bpy.context.scene, self.ob, options.frames)
        return frames_between(first, last, step)

    def _times(self) -> Floats:
        """Return the frames (F,) as times of actions."""
        return time_scale(bpy.context.scene) * np.array(self._frames(), dtype=np.float64)

    def _planted(self, legs: list[PoseBone], how: Options) -> Planted:
        """Find contacts of legs where there are none, and make the feet hold them.

        Existing contacts of a leg on these frames and existing keys of targets stay as they are. If the target of a leg
        has no keys, the chains were only just made, and all targets without keys are snapped to the pose. An error
        leaves what was done before it in place, as the file is not saved then.
        """
        ob, frames, times = self.ob, self._frames(), self._times()
        bare = [tip for tip in legs if not contact_keys.read(tip, times).any()]
        targets = [(tip := ob.pose.bones[name], target_of(tip)) for name in self.tips]
        loose = [tip for tip, target in targets if target is not None and not target.is_keyed]
        if not any(tip in loose for tip in legs):
            loose = []
        planted = Planted(())
        with ExitStack() as undo:
            if self.options.new_action:
                use_new_action(ob, undo)
            if loose:  # first: with keyed targets, feet that turn with them are sampled as a whole
                self._run(snap.key_range(bpy.context, loose, frames))
            if bare:
                self._run(key_contacts(bpy.context, bare, frames, on=how.support, floor=how.ground))
            if any(contact_keys.read(tip, times).any() for tip in legs):
                planted = self._run(plant_feet(bpy.context, ob, legs, frames, how))
            undo.pop_all()
        chains, found, snapped = (tuple(tip.name for tip in own) for own in (legs, bare, loose))
        return replace(planted, chains=chains, found=found, snapped=snapped)

    def _measured(self, planted: Planted, how: Options) -> Planted:
        """Return the result with slide and depth as the baked keys play."""
        if not planted.contacts:
            return planted
        ob, times = self.ob, self._times()
        kept = ground_object.planted_on(bpy.context.view_layer, ob)
        every = [ob.pose.bones[tip] for tip in planted.chains]
        touching = [tip for tip in every if contact_keys.read(tip, times).any() or kept is not None]
        return self._run(as_saved(bpy.context, touching, self._frames(), planted, on=how.support, floor=kept))

    def _baked(self, new_action: bool) -> BakeReport:
        options = self.options
        work = baking.bake_stepwise(
            bpy.context,
            self.ob,
            self.tips,
            self._frames(options.step),
            new_action=new_action,
            smooth=options.smooth,
            reduce=(options.reduce or 0.0) / bpy.context.scene.unit_settings.scale_length,
            floor=ground_object.planted_on(bpy.context.view_layer, self.ob),
        )
        report = self._run(work)
        self._say(report.message)
        return report


def _object(name: str | None, use: str) -> Object | None:
    """Return the object of that name in the view layer, or None; `use` says in the error what it is for."""
    if name is None:
        return None
    found: Object | None = bpy.context.view_layer.objects.get(name)
    if found is None:
        raise CommandError(f"There is no object '{name}' in the view layer for {use}")
    return found


# ---- which armatures are baked, in which order, and which of their chains


def jobs_of(options: argparse.Namespace, go_on: GoOn) -> tuple[list[Job], list[tuple[Object, str]]]:
    """Return what to bake, ordered so that an armature comes after those it follows, and what is left out, with why.

    Raises:
        CommandError: something named doesn't exist, or there is nothing to bake.
    """
    own = {ob: _chosen_tips(ob, options) for ob in _armatures(options)}
    found = [Job(ob, names, options, go_on) for ob, names in own.items() if names or _why_unread(ob)]
    jobs: dict[int, Job] = {}
    left_out = []
    for job in found:
        goals = (goal.ob for tip in job.tips for goal in goals_of(job.ob.pose.bones[tip]))
        if reason := why_closed(job.ob) or next(filter(None, map(_why_unread, (job.ob, *goals))), ""):
            left_out.append((job.ob, reason))
        else:
            jobs[job.ob.session_uid] = job
    for ob, reason in left_out:
        if options.armature or not jobs:
            raise CommandError(f"'{ob.name_full}' can't be baked. {reason}")
    for tip in options.chains or ():
        if not any(tip in job.tips for job in found):
            known = ", ".join(f"'{found.name}'" for ob in own for found in tips(ob)) or "no bone"
            raise CommandError(f"There is no chain on bone '{tip}'. The chains are on {known}")
    if not jobs:
        raise CommandError("There is no enabled IK chain to bake")
    for job in jobs.values():
        for tip in job.tips:
            if not chain_of(job.ob.pose.bones[tip]).enabled:
                raise CommandError(f"The chain on '{tip}' of '{job.ob.name_full}' is disabled. Enable it to bake it")
    ordered, mutual = in_order(jobs, {uid: _followed(job.ob).intersection(jobs) for uid, job in jobs.items()})
    if mutual:
        plans = {uid: Plan.of(jobs[uid].ob, bpy.context.view_layer.depsgraph) for uid in mutual}
        mutual.sort(key=lambda uid: bool(between(plans, uid, jobs[uid].tips)))
    return [jobs[uid] for uid in (*ordered, *mutual)], left_out


def _why_unread(ob: Object) -> str:
    """Say if Blender put a placeholder in the place of a linked object, or of what an override was made from.

    A placeholder has no animation, and an armature's has no bones.
    """
    for block in (ob, ob.data):
        override = None if block is None else block.override_library
        linked = block if override is None else override.reference
        if linked is not None and linked.is_missing:
            return (
                f"'{linked.name_full}' could not be read from its library '{linked.library.filepath}'. "
                "Make the library available, or correct its path in the shot"
            )
    return ""


def _armatures(options: argparse.Namespace) -> list[Object]:
    """Return the armatures of the scene, or those named by the options."""
    every = [ob for ob in bpy.context.scene.objects if ob.type == "ARMATURE"]
    chosen = [_named(name, every) for name in options.armature or ()]
    return [ob for ob in every if ob in chosen or not options.armature]


def _named(name: str, every: list[Object]) -> Object:
    """Return the armature of this name, which for a linked one may include its library to distinguish it.

    Raises:
        CommandError: there is none, or more than one.
    """
    found = [ob for ob in every if ob.name_full == name] or [ob for ob in every if ob.name == name]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"'{ob.name_full}'" for ob in found or every) or "none"
    if found:
        raise CommandError(f"Several armatures are called '{name}': {known}. Use one of these names, or rename one")
    raise CommandError(f"The scene '{bpy.context.scene.name}' has no armature '{name}'. It has {known}")


def _chosen_tips(ob: Object, options: argparse.Namespace) -> list[str]:
    if options.chains is None:
        return [tip.name for tip in tips(ob) if chain_of(tip).enabled]
    return [tip.name for tip in tips(ob) if tip.name in options.chains]


def _followed(ob: Object) -> set[int]:
    """Return the `session_uid` of the other armatures that this one or its goals are attached to."""
    parts = [Part(ob), *(Part(goal.ob, goal.bone) for tip in tips(ob) for goal in goals_of(tip))]
    return {carrier.armature for carrier in Sources().carriers(parts)} - {ob.session_uid}
