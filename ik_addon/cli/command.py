"""Baking without a window: `blender -b FILE --command ik_bake`, see docs/command_line.md."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from pathlib import Path

import bpy

from ..core.untyped import Returning, Struct
from . import many_files
from .exits import DONE, INTERRUPTED, REFUSED, CommandError, GoOn, InterruptError, complain, guarded, interruptible
from .one_file import NAME, bake_shot
from .outputs import Files
from .skeletons import KINDS

UNITS = r"km|m|dm|cm|mm|um|µm|mi|yd|ft|'|in|\""
"""Units of length, as a regular expression."""

NEEDED = {
    "on": "plant",
    "ground": "plant",
    "root": "skeleton",
    "export": "skeleton",
    "root_height": "root",
    "root_turn": "root",
    "plots": "report",
}
"""Options that have no effect without another one."""


def main(arguments: Sequence[str]) -> int:
    """Bake chains of the open file, or of the files named, as the command line says; return the exit code."""
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as done:  # after --help, or after printing what is wrong
        return DONE if done.code in (None, 0) else REFUSED
    try:
        with interruptible() as go_on:
            return guarded(lambda: _run(options, go_on))
    except InterruptError as error:
        complain(NAME, str(error) or "Interrupted; nothing was written")
        return INTERRUPTED
    except CommandError as error:
        complain(NAME, str(error))
    return REFUSED


def _run(options: argparse.Namespace, go_on: GoOn) -> int:
    """Bake, save and report; `go_on` raises when the user interrupts."""
    _check(options)
    if options.files:
        return many_files.bake_files(options, go_on)
    pictures = options.report.with_suffix("") if options.plots else None
    code, _report = bake_shot(options, Files(NAME, options), go_on, pictures)
    return code


def _check(options: argparse.Namespace) -> None:
    """Raise `CommandError` if options don't go together."""
    if options.export and not (options.output or options.overwrite):
        raise CommandError("--export writes beside the saved file, so it needs --output or --overwrite")
    for name, needed in NEEDED.items():
        if getattr(options, name) and not getattr(options, needed):
            raise CommandError(f"--{name.replace('_', '-')} needs --{needed}")


def _distance(text: str) -> float:
    """Parse a distance into meters. A unit is required, as a bare number would be taken for meters.

    Blender's own parser takes any text for Python and prints a traceback if it isn't.
    """
    found = re.fullmatch(rf"(.+?)\s*({UNITS})", text.strip())
    try:
        meters = float(found[1]) * bpy.utils.units.to_value("METRIC", "LENGTH", f"1{found[2]}") if found else 0.0
    except ValueError:
        meters = 0.0
    if not 0.0 < meters < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a distance. Write a number with its unit, such as 1mm")
    return meters


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"blender -b FILE --command {NAME}",
        description="Bake IK chains to keyframes, which play without the add-on, in the open file or in each named "
        "file. Without --output or --overwrite nothing is saved; the bake only checks whether the chains can be baked "
        "and reach their targets.",
        epilog="Exit codes: 0 baked; 1 with --strict, a target was not reached or the keys play differently; 2 nothing "
        "was written; 3 baked and saved, but an armature was left out or not planted, or the report could not be "
        "written; 130 Ctrl-C, nothing was written. A sentence on stderr says why.",
    )
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="SHOT.blend",
        help="files to bake one after the other, instead of the open one; --output is then a folder",
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
    parser.add_argument("--step", type=int, default=1, metavar="N", help="key every Nth frame, and the last one")
    parser.add_argument("--new-action", action="store_true", help="key into a copy of the action")
    parser.add_argument(
        "--smooth", action="store_true", help="avoid jumps by choosing other solutions that reach the targets"
    )
    parser.add_argument(
        "--reduce",
        type=_distance,
        metavar="DISTANCE",
        help="use as few keys as possible with all joints within this distance of the full bake, such as 1mm",
    )
    parser.add_argument(
        "--plant", action="store_true", help="before the bake, find where feet touch and keep them still there"
    )
    parser.add_argument(
        "--on", metavar="OBJECT", help="moving object that the feet stand on, such as a lift or a horse"
    )
    parser.add_argument(
        "--ground",
        metavar="OBJECT",
        help="what feet rest on: a mesh, or the XY plane of any other object",
    )
    parser.add_argument(
        "--skeleton", action="store_true", help="after the bake, make an armature of only the deform bones, with keys"
    )
    parser.add_argument("--root", metavar="BONE", help="the bone of the skeleton that gets the motion of the hips")
    parser.add_argument("--root-height", action="store_true", help="the root also moves up and down")
    parser.add_argument("--root-turn", action="store_true", help="the root also turns about the vertical")
    parser.add_argument("--export", choices=sorted(KINDS), help="export the skeletons beside the saved file")
    parser.add_argument("--plots", action="store_true", help="draw feet and hips as SVG pictures beside the report")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--output", type=Path, metavar="FILE.blend", help="save the result to this file")
    place.add_argument("--overwrite", action="store_true", help="save the result over the open file")
    parser.add_argument("--report", type=Path, metavar="FILE.json", help="write a report to this file")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 if a target was not reached or the keys play differently"
    )
    return parser


_registered: Struct = None


def register() -> None:
    """Register the command with Blender."""
    global _registered
    add: Returning = bpy.utils.register_cli_command
    _registered = add(NAME, main)


def unregister() -> None:
    """Unregister the command."""
    bpy.utils.unregister_cli_command(_registered)
