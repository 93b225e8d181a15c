"""Baking without a window: `blender -b FILE --command ik_bake`, see docs/command_line.md."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

import bpy

from . import bake
from .bake_report import BakeReport
from .rig.carrier import holds_of, in_order
from .rig.chain import tips
from .rig.keys import KeysError
from .rig.plan import Plan, between
from .settings import chain_of

NAME = "ik_bake"
DONE, MISSED, REFUSED = 0, 1, 2
"""Exit codes: baked; baked, but with --strict a target was not reached; nothing was baked or saved."""


class CommandError(Exception):
    """The command cannot do what was asked for; the message says why and what to do."""


def main(arguments: Sequence[str]) -> int:
    """Bake chains of the open file as the command line says; return the exit code."""
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as done:  # after --help, or after a sentence on what is wrong
        return DONE if done.code in (None, 0) else REFUSED
    try:
        _check_paths(options)
        jobs = _jobs(options)
        reports = [(ob, _baked(ob, chosen, options)) for ob, chosen in jobs]
        _save(options)
        missed = any(report.missed for _ob, report in reports)
        _write_report(options, reports)
    except (CommandError, bake.BakeError, KeysError, OSError, RuntimeError) as error:
        print(f"{NAME}: {str(error).strip()}", file=sys.stderr, flush=True)
        return REFUSED
    return MISSED if options.strict and missed else DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"blender -b FILE --command {NAME}",
        description="Bake IK chains to keyframes, which play without the add-on. Without --output or --overwrite "
        "nothing is saved: that tells only whether the chains can be baked and reach their targets.",
        epilog="Exit codes: 0 baked; 1 with --strict, a target was not reached; 2 nothing was baked or saved, and a "
        "sentence on stderr says why.",
    )
    parser.add_argument(
        "--armature", action="append", metavar="NAME", help="an armature object; may be repeated (default: all)"
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
    parser.add_argument("--new-action", action="store_true", help="key into a copy of the action, which stays as it is")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--output", type=Path, metavar="FILE.blend", help="save the result there")
    place.add_argument("--overwrite", action="store_true", help="save the result in place of the file that was opened")
    parser.add_argument("--report", type=Path, metavar="FILE.json", help="write what became of the bake there")
    parser.add_argument("--strict", action="store_true", help="end with 1 where a target was not reached")
    return parser


def _check_paths(options: argparse.Namespace) -> None:
    """Find out before hours of baking that the result cannot be saved."""
    if options.overwrite and not bpy.data.filepath:
        raise CommandError("--overwrite needs a file: name one after -b, or use --output")
    if options.output is not None and options.output.suffix != ".blend":
        raise CommandError(f"--output must end in '.blend', not '{options.output}'")
    for path in (options.output, options.report):
        if path is not None and not path.absolute().parent.is_dir():
            raise CommandError(f"There is no folder '{path.parent}' to write '{path.name}' into")


# ---- what to bake


def _jobs(options: argparse.Namespace) -> list[tuple[bpy.types.Object, list[str]]]:
    """The armatures to bake with the tips of their chains; those that others follow come first."""
    scene = bpy.context.scene
    armatures = {ob.name: ob for ob in scene.objects if ob.type == "ARMATURE"}
    for name in options.armature or ():
        if name not in armatures:
            known = ", ".join(f"'{known}'" for known in armatures) or "none"
            raise CommandError(f"The scene '{scene.name}' has no armature '{name}'; it has {known}")
    chosen = [ob for ob in armatures.values() if not options.armature or ob.name in options.armature]
    jobs = {ob.name: (ob, found) for ob in chosen if (found := _chosen_tips(ob, options))}
    for tip in options.chains or ():
        if not any(tip in found for _ob, found in jobs.values()):
            raise CommandError(f"There is no chain on a bone '{tip}'; the chains are on {_known(chosen)}")
    if not jobs:
        raise CommandError("There is no enabled IK chain to bake")
    needs = {name: _followed(ob).intersection(jobs) for name, (ob, _found) in jobs.items()}
    ordered, mutual = in_order(jobs, needs)
    if mutual:
        layer = bpy.context.view_layer
        plans = {jobs[name][0].session_uid: Plan.of(jobs[name][0], layer.depsgraph) for name in mutual}
        mutual.sort(key=lambda name: bool(between(plans, jobs[name][0].session_uid, jobs[name][1])))
    return [jobs[name] for name in (*ordered, *mutual)]


def _chosen_tips(ob: bpy.types.Object, options: argparse.Namespace) -> list[str]:
    if options.chains is None:
        return [tip.name for tip in tips(ob) if chain_of(tip).enabled]
    return [tip.name for tip in tips(ob) if tip.name in options.chains]


def _known(armatures: list[bpy.types.Object]) -> str:
    return ", ".join(f"'{tip.name}'" for ob in armatures for tip in tips(ob)) or "no bone"


def _followed(ob: bpy.types.Object) -> set[str]:
    """Names of the other armatures that this one or goals of it hang on."""
    settings = [chain_of(tip) for tip in tips(ob)]
    goals = [goal for s in settings for goal in ((s.target, s.target_bone), (s.pole, s.pole_bone))]
    carriers = {carrier.armature for held in ((ob, ""), *goals) for carrier, _turns in holds_of(*held)}
    return {other.name for other in bpy.context.scene.objects if other != ob and other.session_uid in carriers}


# ---- what becomes of it


def _baked(ob: bpy.types.Object, chosen: list[str], options: argparse.Namespace) -> BakeReport:
    first, last = options.range or bake.frame_range(bpy.context.scene, ob, options.frames)
    frames = bake.frames_between(first, last, options.step)
    for tip in chosen:
        if not chain_of(ob.pose.bones[tip]).enabled:
            raise CommandError(f"The chain on '{tip}' of '{ob.name}' is switched off; enable it to bake it")
    report = bake.bake(bpy.context, ob, chosen, frames, new_action=options.new_action)
    print(f"{ob.name}: {report.message}", flush=True)
    return report


def _save(options: argparse.Namespace) -> None:
    """Save beside the file that is asked for, and replace that only by what can be read.

    On a full disk Blender 5 replaces a file by a part of it, and says that it was saved.
    """
    if options.overwrite:
        path = Path(bpy.data.filepath)
    elif options.output is not None:
        path = options.output.absolute()
    else:
        return
    new = path.with_name(f".{path.stem}.{uuid4().hex}.blend")
    try:
        bpy.ops.wm.save_as_mainfile(filepath=str(new), copy=True)
        if not _is_whole(new):
            raise CommandError(f"'{path}' could not be saved whole, it is as it was; is the disk full?")
        backups: Any = bpy.context.preferences.filepaths
        if options.overwrite and backups.save_version > 0:
            path.replace(f"{path}1")
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _is_whole(path: Path) -> bool:
    """Whether Blender can read the present scene from a file."""
    libraries: Any = bpy.data.libraries
    try:
        with libraries.load(str(path)) as (found, _wanted):
            return bpy.context.scene.name in found.scenes
    except OSError:
        return False


def _write_report(options: argparse.Namespace, reports: list[tuple[bpy.types.Object, BakeReport]]) -> None:
    if options.report is None:
        return
    saved = bpy.data.filepath if options.overwrite else options.output and str(options.output.absolute())
    content: dict[str, Any] = {
        "file": bpy.data.filepath,
        "saved": saved,
        "reached": not any(report.missed for _ob, report in reports),
        "armatures": [{"armature": ob.name, **asdict(report), "message": report.message} for ob, report in reports],
    }
    options.report.write_text(json.dumps(content, indent=2, default=float) + "\n", encoding="utf-8")


# ---- Blender's command line

_command: Any = None


def register() -> None:
    """Make the command known to Blender."""
    global _command
    add: Any = bpy.utils.register_cli_command  # the stubs know of no result
    _command = add(NAME, main)


def unregister() -> None:
    """Take it back."""
    global _command
    bpy.utils.unregister_cli_command(_command)
    _command = None
