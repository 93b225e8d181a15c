"""What commands without a window share: exit codes, Ctrl-C, and the files that they write."""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TypeVar

import bpy

from ..translation.sentences import UserError
from .outputs import Output, OutputError

DONE, MISSED, REFUSED, INCOMPLETE, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes: done; with --strict, a target was not reached or keys play differently; nothing was written; saved, but
not everything that was requested was done; Ctrl-C, nothing was written. See docs/command_line.md."""

GoOn = Callable[[], None]
"""Raises `InterruptError` if Ctrl-C was pressed."""

Result = TypeVar("Result")


class CommandError(Exception):
    """The command can't do what was requested; the message says why and what to do."""


class InterruptError(Exception):
    """The user pressed Ctrl-C."""


def run(
    name: str,
    parser: argparse.ArgumentParser,
    arguments: Sequence[str],
    work: Callable[[argparse.Namespace, GoOn], int],
) -> int:
    """Run a command and return the exit code; if anything is wrong, print a sentence on stderr."""
    try:
        options = parser.parse_args(arguments)
    except SystemExit as done:  # after --help, or after printing what is wrong
        return DONE if done.code in (None, 0) else REFUSED
    try:
        with _watching_for_interrupts() as go_on:
            return guarded(lambda: work(options, go_on))
    except InterruptError as error:
        complain(name, str(error) or "Interrupted; nothing was written")
        return INTERRUPTED
    except CommandError as error:
        complain(name, str(error))
    return REFUSED


def guarded(work: Callable[[], Result]) -> Result:
    """Run some work and return its result.

    Raises:
        CommandError: the work can't be done, for whatever reason.
        InterruptError: the user pressed Ctrl-C.
    """
    try:
        return work()
    except InterruptError:
        raise
    except (CommandError, OutputError, UserError, OSError, RuntimeError) as error:
        raise CommandError(str(error).strip()) from error
    except Exception as error:  # Blender would exit with 1, which means that the result was not as requested
        traceback.print_exc()
        raise CommandError("Internal error, see above. Nothing was written") from error


def complain(name: str, sentence: str) -> None:
    """Print on stderr what is wrong."""
    print(f"{name}: {sentence}", file=sys.stderr, flush=True)


@contextmanager
def _watching_for_interrupts() -> Iterator[GoOn]:
    """Catch Ctrl-C meanwhile; yields a function that raises `InterruptError` if it was pressed.

    Without a window, Blender only notes the first Ctrl-C, and an exception raised inside a handler would be printed and
    lost. A second Ctrl-C ends the process at once.
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
        # Blender's own handler can't be set from Python; all it would do is wait for the second Ctrl-C.
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


def armatures() -> list[bpy.types.Object]:
    """Return the armature objects of the scene."""
    return [ob for ob in bpy.context.scene.objects if ob.type == "ARMATURE"]


def named(name: str) -> bpy.types.Object:
    """Return the armature of this name, which for a linked one may include its library to distinguish it.

    Raises:
        CommandError: there is none, or more than one.
    """
    every = armatures()
    found = [ob for ob in every if ob.name_full == name] or [ob for ob in every if ob.name == name]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"'{ob.name_full}'" for ob in found or every) or "none"
    if found:
        raise CommandError(f"Several armatures are called '{name}': {known}. Use one of these names, or rename one")
    raise CommandError(f"The scene '{bpy.context.scene.name}' has no armature '{name}'. It has {known}")


# ---- files


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """Add the options from which `Files` is made to a command."""
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--output", type=Path, metavar="FILE.blend", help="save the result to this file")
    place.add_argument("--overwrite", action="store_true", help="save the result over the open file")
    parser.add_argument("--report", type=Path, metavar="FILE.json", help="write a report to this file")


def report_to(path: Path, inputs: Sequence[tuple[Path, str]]) -> Output:
    """Return the output for a report; it must not replace `inputs`, files that are each given with what they are.

    Raises:
        CommandError, OutputError: the report can't be written there.
    """
    report = Output(path, "--report")
    report.keep_apart(inputs)
    if report.path.suffix.lower() != ".json":  # resolved, in case it is a symbolic link
        raise CommandError(f"--report must end in '.json', not '{report.path.name}'")
    return report


def save_open_file(blend: Output) -> None:
    """Save a copy beside the requested file, which replaces it only if it can be read.

    On a full disk Blender 5 replaces a file with an incomplete one, and reports that it was saved.
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


class Further(NamedTuple):
    """A file that is written in addition to the result."""

    output: Output
    what: str
    """What messages call it, for example "its export"."""
    fill: Callable[[Output], None]


class Files:
    """The result, the report and other files of a command: either all are written completely, or none."""

    def __init__(
        self, name: str, options: argparse.Namespace, read: Sequence[tuple[Path, str]] = (), suffix: str = ".blend"
    ) -> None:
        """Check that everything can be written, before hours of work; nothing is written yet.

        Args:
            name: name of the command, for messages.
            options: see `add_file_options`.
            read: further files that must not be replaced, each with what it is.
            suffix: the suffix that --output must have.

        Raises:
            CommandError, OutputError: one of the files can't be written.
        """
        self._name, self._overwrite = name, bool(options.overwrite)
        opened = Path(bpy.data.filepath) if bpy.data.filepath else None
        if options.overwrite and opened is None:
            raise CommandError("--overwrite needs a file: name one after -b, or use --output")
        self._output: Output | None = None
        self._report: Output | None = None
        inputs = [(Path(bpy.path.abspath(library.filepath)), "a linked library") for library in bpy.data.libraries]
        inputs += read
        if opened is not None:
            inputs.append((opened, "the open file"))
        if options.output is not None:
            if options.output.suffix != suffix:
                raise CommandError(f"--output must end in '{suffix}', not '{options.output}'")
            self._output = Output(options.output, "--output")
            self._output.keep_apart(inputs)
            inputs.append((options.output, "the --output file"))
        elif opened is not None and options.overwrite:
            self._output = Output(opened, "--overwrite")
        if options.report is not None:
            self._report = report_to(options.report, inputs)
        self.saved = bpy.data.filepath if options.overwrite else options.output and str(options.output.absolute())
        """Where the result is saved; None if nowhere."""

    def complain(self, sentence: str) -> None:
        """Print on stderr what is wrong."""
        complain(self._name, sentence)

    def write(
        self,
        report: str,
        go_on: GoOn,
        fill: Callable[[Output], None] = save_open_file,
        further: Sequence[Further] = (),
    ) -> bool:
        """Save the open file and a report, if requested; return whether everything was written.

        Args:
            report: text of the report.
            go_on: raises if the user interrupts.
            fill: writes the result, if it is not the open file.
            further: other files to write.

        Raises:
            CommandError, OSError, RuntimeError: nothing was written.
        """
        others = [*further]
        if self._report is not None:
            others.append(Further(self._report, "its report", lambda output: output.fill(report)))
        try:
            if self._output is not None:
                fill(self._output)
            for other in others:
                other.fill(other.output)
            go_on()
            return self._put_in_place(others)
        finally:
            for output in (self._output, *(other.output for other in others)):
                if output is not None:
                    output.discard()

    def _put_in_place(self, others: Sequence[Further]) -> bool:
        """Replace the files with what was written; return whether all were replaced.

        Raises:
            OSError: none was replaced.
        """
        output = self._output
        if output is not None:
            backups: Any = bpy.context.preferences.filepaths
            keep = self._overwrite and backups.save_version > 0
            output.put_in_place(Path(f"{output.path}1") if keep else None)
        is_complete = True
        for other in others:
            try:
                other.output.put_in_place()
            except OSError as error:
                if output is None:
                    raise
                said = (
                    f"'{output.path}' was saved, but {other.what} '{other.output.path}' could not be written: {error}"
                )
                self.complain(said)
                is_complete = False
        return is_complete


# ---- Blender's command line


class Registered:
    """A command that Blender knows while it is registered."""

    def __init__(self, name: str, main: Callable[[Sequence[str]], int]) -> None:
        """Create the command without registering it."""
        self._name, self._main = name, main
        self._command: Any = None

    def register(self) -> None:
        """Register the command with Blender."""
        add: Any = bpy.utils.register_cli_command  # the stubs have no return value
        self._command = add(self._name, self._main)

    def unregister(self) -> None:
        """Unregister the command."""
        bpy.utils.unregister_cli_command(self._command)
        self._command = None
