"""Baking without a window: `blender -b FILE --command ik_bake`, see docs/command_line.md."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Any

import bpy

from ..data.settings import chain_of, goal_of
from ..rig.plan.attachments import attachments_of
from ..rig.plan.chain import tips, why_closed
from ..rig.plan.dependencies import between
from ..rig.plan.order import in_order
from ..rig.plan.plan import Plan
from . import baking, command_line, selection
from .bake_report import BakeReport
from .command_line import DONE, INCOMPLETE, MISSED, CommandError, Files, GoOn, add_file_options, armatures, named

NAME = "ik_bake"

Job = tuple[bpy.types.Object, list[str]]
"""An armature object with the tips of its chains."""


def main(arguments: Sequence[str]) -> int:
    """Bake chains of the open file as the command line says; return the exit code."""
    return command_line.run(NAME, _parser(), arguments, _run)


def _run(options: argparse.Namespace, go_on: GoOn) -> int:
    """Bake, save and report; `go_on` raises where the user interrupts."""
    files = Files(NAME, options)
    jobs, left_out = _jobs(options)
    for ob, reason in left_out:
        command_line.complain(NAME, f"'{ob.name_full}' was left out. {reason}")
    baked = [(ob, _baked(ob, chosen, options, go_on)) for ob, chosen in jobs]
    complete = files.write(_report(files, baked, left_out), go_on)
    if left_out or not complete:
        return INCOMPLETE
    return MISSED if options.strict and any(outcome.missed for _ob, outcome in baked) else DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"blender -b FILE --command {NAME}",
        description="Bake IK chains to keyframes, which play without the add-on. Without --output or --overwrite "
        "nothing is saved; the bake only checks whether the chains can be baked and reach their targets.",
        epilog="Exit codes: 0 baked; 1 with --strict, a target was not reached; 2 nothing was written; 3 baked and "
        "saved, but an armature was left out or the report could not be written; 130 Ctrl-C, nothing was written. "
        "A sentence on stderr says why.",
    )
    parser.add_argument(
        "--armature",
        action="append",
        metavar="NAME",
        help="an armature object, linked ones as 'Rig [library.blend]'; may be repeated (default: all)",
    )
    parser.add_argument("--chains", nargs="+", metavar="TIP", help="tip bones of the chains (default: all enabled)")
    frames = parser.add_mutually_exclusive_group()
    frames.add_argument("--range", nargs=2, type=int, metavar=("FIRST", "LAST"), help="the frames from FIRST to LAST")
    for which, text in (
        ("scene", "the frame range of the scene (default)"),
        ("preview", "the preview range of the scene"),
        ("action", "the frames of each armature's action"),
    ):
        frames.add_argument(
            f"--{which}", dest="frames", action="store_const", const=which.upper(), default="SCENE", help=text
        )
    parser.add_argument("--step", type=int, default=1, metavar="N", help="key every N-th frame, and the last one")
    parser.add_argument("--new-action", action="store_true", help="key into a copy of the action")
    parser.add_argument("--smooth", action="store_true", help="avoid jumps by other solutions that reach the targets")
    parser.add_argument(
        "--reduce",
        type=_distance,
        metavar="DISTANCE",
        help="keep as few keys as leave all joints within a distance of the full bake, such as 1mm",
    )
    add_file_options(parser)
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target was not reached")
    return parser


def _distance(text: str) -> float:
    """A distance in metres, from a number with its unit."""
    try:
        metres = float(bpy.utils.units.to_value("METRIC", "LENGTH", text))
    except ValueError:
        metres = 0.0
    if not 0.0 < metres < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is no distance. Write a number with its unit, such as 1mm")
    return metres


# ---- what to bake


def _jobs(options: argparse.Namespace) -> tuple[list[Job], list[tuple[bpy.types.Object, str]]]:
    """What to bake, the armatures that others follow first; and the armatures that are left out, with the reason."""
    chosen = _armatures(options)
    found = [(ob, own) for ob in chosen if (own := _chosen_tips(ob, options))]
    for tip in options.chains or ():
        if not any(tip in own for _ob, own in found):
            raise CommandError(f"There is no chain on a bone '{tip}'. The chains are on {_known(chosen)}")
    left_out = [(ob, reason) for ob, _own in found if (reason := why_closed(ob))]
    jobs = {ob.session_uid: (ob, own) for ob, own in found if not why_closed(ob)}
    for ob, reason in left_out:
        if options.armature or not jobs:
            raise CommandError(f"'{ob.name_full}' can't be baked. {reason}")
    if not jobs:
        raise CommandError("There is no enabled IK chain to bake")
    needs = {uid: _followed(ob).intersection(jobs) for uid, (ob, _own) in jobs.items()}
    ordered, mutual = in_order(jobs, needs)
    if mutual:
        layer = bpy.context.view_layer
        plans = {uid: Plan.of(jobs[uid][0], layer.depsgraph) for uid in mutual}
        mutual.sort(key=lambda uid: bool(between(plans, uid, jobs[uid][1])))
    return [jobs[uid] for uid in (*ordered, *mutual)], left_out


def _armatures(options: argparse.Namespace) -> list[bpy.types.Object]:
    """The armatures of the scene, or those that are named."""
    if not options.armature:
        return armatures()
    chosen = [named(name) for name in options.armature]
    return [ob for ob in armatures() if ob in chosen]


def _chosen_tips(ob: bpy.types.Object, options: argparse.Namespace) -> list[str]:
    if options.chains is None:
        return [tip.name for tip in tips(ob) if chain_of(tip).enabled]
    return [tip.name for tip in tips(ob) if tip.name in options.chains]


def _known(armatures: list[bpy.types.Object]) -> str:
    return ", ".join(f"'{tip.name}'" for ob in armatures for tip in tips(ob)) or "no bone"


def _followed(ob: bpy.types.Object) -> set[int]:
    """`session_uid` of the other armatures that this one, or goals of it, are attached to."""
    settings = [chain_of(tip) for tip in tips(ob)]
    goals = [goal_of(chain, role) for chain in settings for role in ("target", "pole")]
    armatures = {parent.armature for held in ((ob, ""), *goals) for parent, _turns in attachments_of(*held)}
    return armatures - {ob.session_uid}


# ---- results


def _baked(ob: bpy.types.Object, chosen: list[str], options: argparse.Namespace, go_on: GoOn) -> BakeReport:
    first, last = options.range or selection.frame_range(bpy.context.scene, ob, options.frames)
    frames = selection.frames_between(first, last, options.step)
    for tip in chosen:
        if not chain_of(ob.pose.bones[tip]).enabled:
            raise CommandError(f"The chain on '{tip}' of '{ob.name_full}' is disabled. Enable it to bake it")
    reduce = (options.reduce or 0.0) / bpy.context.scene.unit_settings.scale_length
    todo = baking.steps(
        bpy.context, ob, chosen, frames, new_action=options.new_action, smooth=options.smooth, reduce=reduce
    )
    with closing(todo) as steps:
        while True:
            go_on()
            try:
                next(steps)
            except StopIteration as done:
                report: BakeReport = done.value
                break
    print(f"{ob.name_full}: {report.message}", flush=True)
    return report


def _report(
    files: Files, baked: list[tuple[bpy.types.Object, BakeReport]], left_out: list[tuple[bpy.types.Object, str]]
) -> str:
    content: dict[str, Any] = {
        "file": bpy.data.filepath,
        "saved": files.saved,
        "reached": not any(outcome.missed for _ob, outcome in baked),
        "left_out": [{"armature": ob.name_full, "reason": reason} for ob, reason in left_out],
        "armatures": [
            {"armature": ob.name_full, **asdict(outcome), "message": outcome.message} for ob, outcome in baked
        ],
    }
    return json.dumps(content, indent=2, default=float) + "\n"


command = command_line.Registered(NAME, main)
