"""Posing without a window: `blender -b FILE --command ik_pose GOALS.json`, see docs/command_line.md."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import bpy

from ..bake import command_line
from ..bake.command_line import DONE, INCOMPLETE, MISSED, CommandError, Files, GoOn, add_file_options, armatures, named
from .frames import FramesReport, pose_frames
from .script import Script, ScriptError, read

NAME = "ik_pose"

Job = tuple[Path, bpy.types.Object, Script]
"""A file of goals, the armature object that it poses, and its content."""


def main(arguments: Sequence[str]) -> int:
    """Pose bodies of the open file by files of goals; return the exit code."""
    return command_line.run(NAME, _parser(), arguments, _run)


def _run(options: argparse.Namespace, go_on: GoOn) -> int:
    """Pose, save and report; `go_on` raises if the user interrupts."""
    try:
        files = Files(NAME, options, [(path, "a file of goals") for path in options.goals])
        posed = [(job, _posed(job, options, go_on)) for job in _jobs(options.goals)]
    except ScriptError as error:
        raise CommandError(str(error)) from error
    complete = files.write(_report(files, posed), go_on)
    if not complete:
        return INCOMPLETE
    return MISSED if options.strict and any(report.missed for _job, report in posed) else DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"blender -b FILE --command {NAME}",
        description="Pose whole bodies: move bones to the goals in files, keep pins in place, let the bodies follow, "
        "and key the result. Without --output or --overwrite nothing is saved; the command only checks whether the "
        "goals are reached.",
        epilog="Exit codes: 0 posed; 1 with --strict, a goal was not reached or a pin did not hold; 2 nothing was "
        "written; 3 posed and saved, but the report could not be written; 130 Ctrl-C, nothing was written. A sentence "
        "on stderr says why.",
    )
    parser.add_argument(
        "goals",
        nargs="+",
        type=Path,
        metavar="GOALS.json",
        help="goals and pins by frame; one file per armature",
    )
    parser.add_argument("--new-action", action="store_true", help="key into a copy of the action")
    add_file_options(parser)
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 if a goal was not reached or a pin did not hold"
    )
    return parser


def _jobs(paths: Sequence[Path]) -> list[Job]:
    """Return all jobs, read and checked before any of them is done."""
    found: list[Job] = []
    for path in paths:
        script = read(path)
        ob = _armature(path) if script.armature is None else named(script.armature)
        for other, posed, _script in found:
            if posed == ob:
                raise CommandError(f"'{other}' and '{path}' both pose '{ob.name_full}'. Put their frames into one file")
        found.append((path, ob, script))
    return found


def _armature(path: Path) -> bpy.types.Object:
    """Return the only armature of the scene."""
    every = armatures()
    if len(every) != 1:
        known = ", ".join(f"'{ob.name_full}'" for ob in every) or "none"
        raise CommandError(f"'{path}' has no 'armature', and the scene doesn't have exactly one. It has {known}")
    return every[0]


def _posed(job: Job, options: argparse.Namespace, go_on: GoOn) -> FramesReport:
    path, ob, script = job
    try:
        report = pose_frames(bpy.context, ob, script, new_action=options.new_action, go_on=go_on)
    except ScriptError as error:
        raise ScriptError(f"'{path}': {error}") from error
    print(f"{ob.name_full}: {report.message}", flush=True)
    return report


def _report(files: Files, posed: list[tuple[Job, FramesReport]]) -> str:
    content = {
        "file": bpy.data.filepath,
        "saved": files.saved,
        "reached": not any(report.missed for _job, report in posed),
        "armatures": [
            {
                "armature": ob.name_full,
                "goals": str(path),
                "frames": len(report.each),
                "missed": report.missed,
                **asdict(report),
                "message": report.message,
            }
            for (path, ob, _script), report in posed
        ],
    }
    return json.dumps(content, indent=2) + "\n"


command = command_line.Registered(NAME, main)
