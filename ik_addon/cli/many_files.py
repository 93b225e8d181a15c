"""Baking many files one after the other, with one report; a file that fails doesn't stop the others."""

from __future__ import annotations

import argparse
from pathlib import Path

import bpy

from ..core.untyped import Json
from .exits import DONE, INCOMPLETE, MISSED, REFUSED, CommandError, GoOn, InterruptError, complain, guarded
from .one_file import NAME, as_text, bake_shot
from .outputs import Files, Output, report_to


def bake_files(options: argparse.Namespace, go_on: GoOn) -> int:
    """Bake the files named by the options; return the exit code.

    Raises:
        CommandError: the options can't be used; no file was opened.
        InterruptError: the user pressed Ctrl-C; files baked before are saved.
    """
    places = _places(options)
    report = None
    if options.report is not None:
        inputs = [
            *((path, "one of the files") for path in options.files),
            *((path, "a result") for path in places if path),
        ]
        report = report_to(options.report, inputs)
    done: list[Json] = []
    is_complete = True
    for i, (path, place) in enumerate(zip(options.files, places, strict=True)):
        print(f"[{i + 1}/{len(options.files)}] {path}", flush=True)
        try:
            pictures = options.report.with_name(f"{options.report.stem}-{path.stem}") if options.plots else None
            done.append(_baked(path, place, options, go_on, pictures))
        except InterruptError:
            kept = len([one for one in done if one["exit_code"] != REFUSED])
            raise InterruptError(
                f"Interrupted in '{path}', after baking {kept} of {len(options.files)} files"
            ) from None
        if report is not None:  # after each file, so that a crash of Blender keeps what is known of earlier files
            is_complete = _write(report, as_text(_report(done)))
    codes = {one["exit_code"] for one in done}
    failed = [one["file"] for one in done if one["exit_code"] == REFUSED]
    print(f"Baked {len(done) - len(failed)} of {len(done)} files", flush=True)
    if failed:
        complain(NAME, f"{len(failed)} of {len(done)} files were not baked: {', '.join(failed)}")
    if codes == {REFUSED}:
        return REFUSED
    if codes & {REFUSED, INCOMPLETE} or not is_complete:
        return INCOMPLETE
    return MISSED if MISSED in codes else DONE


def _places(options: argparse.Namespace) -> list[Path | None]:
    """Return where each file is saved; None if it isn't, or is overwritten."""
    folder: Path | None = options.output
    stems = [path.stem for path in options.files]
    for i, stem in enumerate(stems):
        if stem in stems[:i] and (folder is not None or options.plots):
            raise CommandError(f"Two of the files are called '{stem}'. Bake them one after the other")
    if folder is None:
        return [None] * len(options.files)
    if not folder.is_dir():
        raise CommandError(f"When files are named, --output must be an existing folder, not '{folder}'")
    places = [folder / path.name for path in options.files]
    for place in places:
        Output(place, "--output").keep_apart((other, f"'{other}'") for other in options.files)
    return list(places)


def _baked(path: Path, place: Path | None, options: argparse.Namespace, go_on: GoOn, pictures: Path | None) -> Json:
    """Bake a file and return its report; names of its plots begin with `pictures`."""
    own = argparse.Namespace(**{**vars(options), "output": place, "report": None})

    def work() -> tuple[int, Json]:
        go_on()
        # With its interface, whatever the preferences say: it has the active view layer, and is saved along.
        bpy.ops.wm.open_mainfile(filepath=str(path.absolute()), load_ui=True)
        return bake_shot(own, Files(f"{NAME}: {path}", own), go_on, pictures)

    try:
        code, report = guarded(work)
    except CommandError as error:
        complain(f"{NAME}: {path}", str(error))
        return {"file": str(path.absolute()), "exit_code": REFUSED, "saved": None, "error": str(error)}
    return {**report, "exit_code": code}


def _report(done: list[Json]) -> Json:
    return {
        "reached": all(one.get("reached", False) for one in done),
        "failed": [one["file"] for one in done if one["exit_code"] == REFUSED],
        "files": done,
    }


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
