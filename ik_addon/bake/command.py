"""Baking without a window: `blender -b FILE --command ik_bake`, see docs/command_line.md."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import bpy

from ..data.settings import chain_of, goal_of
from ..pose.keyframes import KeysError
from ..rig.plan.attachments import attachments_of
from ..rig.plan.chain import tips, why_closed
from ..rig.plan.dependencies import between
from ..rig.plan.order import in_order
from ..rig.plan.plan import Plan
from . import baking, selection
from .bake_report import BakeReport
from .outputs import Output, OutputError

NAME = "ik_bake"
DONE, MISSED, REFUSED, INCOMPLETE, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes: baked; with --strict a target was not reached; nothing was written; baked and saved, but not all that was
asked for; Ctrl-C, nothing was written. See docs/command_line.md."""

Job = tuple[bpy.types.Object, list[str]]
"""An armature object with the tips of its chains."""


class CommandError(Exception):
    """The command cannot do what was asked for; the message says why and what to do."""


class InterruptError(Exception):
    """The user pressed Ctrl-C."""


def main(arguments: Sequence[str]) -> int:
    """Bake chains of the open file as the command line says; return the exit code."""
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as done:  # after --help, or after a sentence on what is wrong
        return DONE if done.code in (None, 0) else REFUSED
    try:
        with _watching_for_interrupts() as go_on:
            return _run(options, go_on)
    except InterruptError:
        _complain("Interrupted; nothing was written")
        return INTERRUPTED
    except (CommandError, OutputError, selection.BakeError, KeysError, OSError, RuntimeError) as error:
        _complain(str(error).strip())
    except Exception:  # Blender would end with 1, which says that a target was not reached
        traceback.print_exc()
        _complain("Internal error, see above. Nothing was written")
    return REFUSED


def _run(options: argparse.Namespace, go_on: Callable[[], None]) -> int:
    """Bake, save and report; `go_on` raises where the user interrupts."""
    blend, report = _outputs(options)
    jobs, left_out = _jobs(options)
    for ob, reason in left_out:
        _complain(f"'{ob.name_full}' was left out. {reason}")
    baked = [(ob, _baked(ob, chosen, options, go_on)) for ob, chosen in jobs]
    try:
        if blend is not None:
            _save(blend)
        if report is not None:
            report.new.write_text(_report(options, baked, left_out), encoding="utf-8")
        go_on()
        complete = _put_in_place(options, blend, report)
    finally:
        for output in (blend, report):
            if output is not None:
                output.discard()
    if left_out or not complete:
        return INCOMPLETE
    return MISSED if options.strict and any(outcome.missed for _ob, outcome in baked) else DONE


def _complain(sentence: str) -> None:
    print(f"{NAME}: {sentence}", file=sys.stderr, flush=True)


@contextmanager
def _watching_for_interrupts() -> Iterator[Callable[[], None]]:
    """Take Ctrl-C for a while; gives a function that raises `InterruptError` after it was pressed.

    Blender without a window only takes note of the first one, and an exception in the middle of a handler would be
    printed and lost. A second Ctrl-C ends the process at once.
    """
    pressed = False

    def press(_number: int, _frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def go_on() -> None:
        if pressed:
            raise InterruptError

    before = signal.signal(signal.SIGINT, press)
    try:
        yield go_on
    finally:
        # Blender's own cannot be set from Python; all it would do is to wait for the second Ctrl-C.
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


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
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--output", type=Path, metavar="FILE.blend", help="save the result there")
    place.add_argument("--overwrite", action="store_true", help="save the result over the file that was opened")
    parser.add_argument("--report", type=Path, metavar="FILE.json", help="write a report on the bake there")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target was not reached")
    return parser


def _outputs(options: argparse.Namespace) -> tuple[Output | None, Output | None]:
    """The file and the report to write; what cannot be written is found before hours of baking.

    Raises:
        CommandError, OutputError: one of them cannot be written.
    """
    opened = Path(bpy.data.filepath) if bpy.data.filepath else None
    if options.overwrite and opened is None:
        raise CommandError("--overwrite needs a file: name one after -b, or use --output")
    blend = report = None
    inputs = [(Path(bpy.path.abspath(library.filepath)), "a linked library") for library in bpy.data.libraries]
    if opened is not None:
        inputs.append((opened, "the file that was opened"))
    if options.output is not None:
        if options.output.suffix != ".blend":
            raise CommandError(f"--output must end in '.blend', not '{options.output}'")
        blend = Output(options.output, "--output")
        blend.keep_apart(inputs)
        inputs.append((options.output, "the file that --output names"))
    elif opened is not None and options.overwrite:
        blend = Output(opened, "--overwrite")
    if options.report is not None:
        report = Output(options.report, "--report")
        report.keep_apart(inputs)
        if report.path.suffix.lower() != ".json":  # behind a symbolic link, too
            raise CommandError(f"--report must end in '.json', not '{report.path.name}'")
    return blend, report


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
    armatures = [ob for ob in bpy.context.scene.objects if ob.type == "ARMATURE"]
    if not options.armature:
        return armatures
    chosen = [_named(name, armatures) for name in options.armature]
    return [ob for ob in armatures if ob in chosen]


def _named(name: str, armatures: list[bpy.types.Object]) -> bpy.types.Object:
    """The armature of a name: linked ones have their library's behind it, needed where names are the same."""
    found = [ob for ob in armatures if ob.name_full == name] or [ob for ob in armatures if ob.name == name]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"'{ob.name_full}'" for ob in found or armatures) or "none"
    if found:
        raise CommandError(f"Several armatures are called '{name}': {known}. Name one of them, or rename it")
    raise CommandError(f"The scene '{bpy.context.scene.name}' has no armature '{name}'. It has {known}")


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


def _baked(
    ob: bpy.types.Object, chosen: list[str], options: argparse.Namespace, go_on: Callable[[], None]
) -> BakeReport:
    first, last = options.range or selection.frame_range(bpy.context.scene, ob, options.frames)
    frames = selection.frames_between(first, last, options.step)
    for tip in chosen:
        if not chain_of(ob.pose.bones[tip]).enabled:
            raise CommandError(f"The chain on '{tip}' of '{ob.name_full}' is disabled. Enable it to bake it")
    with closing(baking.steps(bpy.context, ob, chosen, frames, new_action=options.new_action)) as steps:
        while True:
            go_on()
            try:
                next(steps)
            except StopIteration as done:
                report: BakeReport = done.value
                break
    print(f"{ob.name_full}: {report.message}", flush=True)
    return report


def _save(blend: Output) -> None:
    """Save beside the requested file, to replace it only with one that can be read.

    On a full disk Blender 5 replaces a file by a part of it, and says that it was saved.
    """
    bpy.ops.wm.save_as_mainfile(filepath=str(blend.new), copy=True)
    if not _is_whole(blend.new):
        raise CommandError(f"'{blend.path}' could not be saved completely and is unchanged. Is the disk full?")


def _is_whole(path: Path) -> bool:
    """Whether Blender can read the current scene from a file."""
    libraries: Any = bpy.data.libraries
    try:
        with libraries.load(str(path)) as (found, _wanted):
            return bpy.context.scene.name in found.scenes
    except OSError:
        return False


def _put_in_place(options: argparse.Namespace, blend: Output | None, report: Output | None) -> bool:
    """Replace the files by what was written; whether all were.

    Raises:
        OSError: none was.
    """
    if blend is not None:
        backups: Any = bpy.context.preferences.filepaths
        keep = options.overwrite and backups.save_version > 0
        blend.put_in_place(Path(f"{blend.path}1") if keep else None)
    if report is not None:
        try:
            report.put_in_place()
        except OSError as error:
            if blend is None:
                raise
            _complain(f"'{blend.path}' was saved, but its report '{report.path}' could not be written: {error}")
            return False
    return True


def _report(
    options: argparse.Namespace,
    baked: list[tuple[bpy.types.Object, BakeReport]],
    left_out: list[tuple[bpy.types.Object, str]],
) -> str:
    saved = bpy.data.filepath if options.overwrite else options.output and str(options.output.absolute())
    content: dict[str, Any] = {
        "file": bpy.data.filepath,
        "saved": saved,
        "reached": not any(outcome.missed for _ob, outcome in baked),
        "left_out": [{"armature": ob.name_full, "reason": reason} for ob, reason in left_out],
        "armatures": [
            {"armature": ob.name_full, **asdict(outcome), "message": outcome.message} for ob, outcome in baked
        ],
    }
    return json.dumps(content, indent=2, default=float) + "\n"


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
