"""Baking without a window, one file or many: `blender -b FILE --command ik_bake`, see docs/command_line.md."""

import argparse
import math
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import bpy

from ..core.untyped import Json, Struct
from . import exits
from .exits import CommandError, GoOn, InterruptError, complain
from .one_file import NAME, as_text, bake_shot
from .outputs import KINDS, Files, Output, report_to

UNITS = r"km|m|dm|cm|mm|um|µm|mi|yd|ft|'|in|\""
"""Units of length, as a regular expression."""

NEEDED = {
    "on": "plant",
    "ground": "plant",
    "root": "skeleton",
    "export": "skeleton",
    "root_height": "root",
    "root_turn": "root",
}
"""Options that have no effect without another one."""


def main(arguments: Sequence[str]) -> int:
    """Bake chains of the open file, or of the files named, as the command line says; return the exit code."""
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as done:  # after --help, or after printing what is wrong
        return exits.DONE if done.code in (None, 0) else exits.REFUSED
    try:
        with exits.interruptible() as go_on:
            return exits.guarded(lambda: _run(options, go_on))
    except InterruptError as error:
        complain(NAME, str(error) or "Interrupted; nothing was written")
        return exits.INTERRUPTED
    except CommandError as error:
        complain(NAME, str(error))
    return exits.REFUSED


def _run(options: argparse.Namespace, go_on: GoOn) -> int:
    """Bake, save and report; `go_on` raises when the user interrupts."""
    _check(options)
    return bake_files(options, go_on) if options.files else bake_shot(options, Files(NAME, options), go_on)[0]


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
    add = parser.add_argument
    flag = partial(add, action="store_true")
    add(
        "files",
        nargs="*",
        type=Path,
        metavar="SHOT.blend",
        help="files to bake one after the other, instead of the open one; --output is then a folder",
    )
    add(
        "--armature",
        action="append",
        metavar="NAME",
        help="an armature object, linked ones as 'Rig [library.blend]'; may be repeated (default: all)",
    )
    add("--chains", nargs="+", metavar="TIP", help="tip bones of the chains (default: all enabled)")
    frames = parser.add_mutually_exclusive_group()
    frames.add_argument("--range", nargs=2, type=int, metavar=("FIRST", "LAST"), help="the frames from FIRST to LAST")
    choose = partial(frames.add_argument, dest="frames", action="store_const", default="SCENE")
    choose("--scene", const="SCENE", help="the frame range of the scene (default)")
    choose("--preview", const="PREVIEW", help="the preview range of the scene")
    choose("--action", const="ACTION", help="the frames of each armature's action")
    add("--step", type=int, default=1, metavar="N", help="key every Nth frame, and the last one")
    flag("--new-action", help="key into a copy of the action")
    flag("--smooth", help="avoid jumps by choosing other solutions that reach the targets")
    add(
        "--reduce",
        type=_distance,
        metavar="DISTANCE",
        help="use as few keys as possible with all joints within this distance of the full bake, such as 1mm",
    )
    flag("--plant", help="before the bake, find where feet touch and keep them still there")
    add("--on", metavar="OBJECT", help="moving object that the feet stand on, such as a lift or a horse")
    add("--ground", metavar="OBJECT", help="what feet rest on: a mesh, or the XY plane of any other object")
    flag("--skeleton", help="after the bake, make an armature of only the deform bones, with keys")
    add("--root", metavar="BONE", help="the bone of the skeleton that gets the motion of the hips")
    flag("--root-height", help="the root also moves up and down")
    flag("--root-turn", help="the root also turns about the vertical")
    add("--export", choices=sorted(KINDS), help="export the skeletons beside the saved file")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--output", type=Path, metavar="FILE.blend", help="save the result to this file")
    place.add_argument("--overwrite", action="store_true", help="save the result over the open file")
    add("--report", type=Path, metavar="FILE.json", help="write a report to this file")
    flag("--strict", help="exit with 1 if a target was not reached or the keys play differently")
    return parser


_registered: Struct = None


def register() -> None:
    """Register the command with Blender."""
    global _registered
    _registered = bpy.utils.register_cli_command(NAME, main)


def unregister() -> None:
    """Unregister the command."""
    bpy.utils.unregister_cli_command(_registered)


# ---- many files, with one report: a file that fails doesn't stop the others


def bake_files(options: argparse.Namespace, go_on: GoOn) -> int:
    """Bake the files named by the options; return the exit code.

    Raises:
        CommandError: the options can't be used; no file was opened.
        InterruptError: the user pressed Ctrl-C; files baked before are saved.
    """
    places = _places(options)
    report = None
    if options.report is not None:
        inputs = [(path, "one of the files") for path in options.files]
        report = report_to(options.report, inputs + [(path, "a result") for path in places if path])
    done: list[Json] = []
    is_complete = True
    for i, (path, place) in enumerate(zip(options.files, places, strict=True)):
        print(f"[{i + 1}/{len(options.files)}] {path}", flush=True)
        try:
            done.append(_baked(path, place, options, go_on))
        except InterruptError:
            kept = f"{sum(one['exit_code'] != exits.REFUSED for one in done)} of {len(options.files)} files"
            raise InterruptError(f"Interrupted in '{path}', after baking {kept}") from None
        failed = [one["file"] for one in done if one["exit_code"] == exits.REFUSED]
        if report is not None:  # after each file, so that a crash of Blender keeps what is known of earlier files
            reached = all(one.get("reached", False) for one in done)
            is_complete = _write(report, as_text({"reached": reached, "failed": failed, "files": done}))
    codes = {one["exit_code"] for one in done}
    print(f"Baked {len(done) - len(failed)} of {len(done)} files", flush=True)
    if failed:
        complain(NAME, f"{len(failed)} of {len(done)} files were not baked: {', '.join(failed)}")
    if codes == {exits.REFUSED}:
        return exits.REFUSED
    if codes & {exits.REFUSED, exits.INCOMPLETE} or not is_complete:
        return exits.INCOMPLETE
    return exits.MISSED if exits.MISSED in codes else exits.DONE


def _places(options: argparse.Namespace) -> list[Path | None]:
    """Return where each file is saved; None if it isn't, or is overwritten."""
    folder: Path | None = options.output
    if folder is None:
        return [None] * len(options.files)
    stems = [path.stem for path in options.files]
    for i, stem in enumerate(stems):
        if stem in stems[:i]:
            raise CommandError(f"Two of the files are called '{stem}'. Bake them one after the other")
    if not folder.is_dir():
        raise CommandError(f"When files are named, --output must be an existing folder, not '{folder}'")
    places = [folder / path.name for path in options.files]
    for place in places:
        Output(place, "--output").keep_apart((other, f"'{other}'") for other in options.files)
    return list(places)


def _baked(path: Path, place: Path | None, options: argparse.Namespace, go_on: GoOn) -> Json:
    """Bake a file and return its report."""
    own = argparse.Namespace(**{**vars(options), "output": place, "report": None})

    def work() -> tuple[int, Json]:
        go_on()
        # With its interface, whatever the preferences say: it has the active view layer, and is saved along.
        bpy.ops.wm.open_mainfile(filepath=str(path.absolute()), load_ui=True)
        return bake_shot(own, Files(f"{NAME}: {path}", own), go_on)

    try:
        code, report = exits.guarded(work)
    except CommandError as error:
        complain(f"{NAME}: {path}", str(error))
        return {"file": str(path.absolute()), "exit_code": exits.REFUSED, "saved": None, "error": str(error)}
    return {**report, "exit_code": code}


def _write(report: Output, text: str) -> bool:
    """Write a report; return whether that succeeded."""
    try:
        report.fill(text)
        report.put_in_place()
    except OSError as error:
        complain(NAME, f"The report '{report.path}' could not be written: {error}")
        return False
    finally:
        report.discard()
    return True
