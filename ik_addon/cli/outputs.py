"""Files that a command writes: checked before it starts, and either all replaced as a whole, or none."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

import bpy

from ..bake import skeleton
from ..core.untyped import Json
from .exits import CommandError, GoOn, complain


class Output:
    """A file to write, first to a temporary file beside it, so that the old one stays until everything is written."""

    def __init__(self, path: Path, option: str) -> None:
        """Check that the file can be written, without changing it.

        Args:
            path: as the user gave it; a symbolic link stands for the file it leads to.
            option: the option that named it, for messages.

        Raises:
            CommandError: the file can't be written.
        """
        self.path = path.resolve()
        self.new = self.path.with_name(f".ik_bake-{uuid4().hex}{self.path.suffix}")
        """The temporary file."""
        self.option = option
        if not self.path.parent.is_dir():
            raise CommandError(f"Can't write '{path.name}': the folder '{path.parent}' does not exist")
        try:
            with suppress(FileNotFoundError):
                self.path.stat()
                if not self.path.is_file():
                    raise CommandError(f"{option} names '{path}', which is a folder or device. Name a file")
                self.path.open("ab").close()  # fails if the file is read-only or another program holds it
            self.new.touch(exist_ok=False)
            self.new.unlink()
        except OSError as error:
            raise CommandError(f"{option} can't write '{path}' ({error.strerror}). Choose another place") from error

    def keep_apart(self, others: Iterable[tuple[Path, str]]) -> None:
        """Raise `CommandError` if this is one of some other files under any name; each is given with what it is."""
        for other, what in others:
            if self.path == other.resolve() or (self.path.exists() and other.exists() and self.path.samefile(other)):
                raise CommandError(f"{self.option} would replace {what}. Choose another file")

    def fill(self, text: str) -> None:
        """Write a text to the temporary file."""
        self.new.write_text(text, encoding="utf-8")

    def put_in_place(self, *, with_backup: bool = False) -> None:
        """Replace the file with what was written, keeping the old one as Blender does if asked; all or nothing.

        Raises:
            OSError: nothing was replaced.
        """
        backup = self.path.with_name(f"{self.path.name}1") if with_backup and self.path.exists() else None
        if backup is not None:
            self.path.replace(backup)
        try:
            self.new.replace(self.path)
        except OSError:
            if backup is not None:
                backup.replace(self.path)
            raise

    def discard(self) -> None:
        """Remove what was written but not put in place."""
        self.new.unlink(missing_ok=True)


def report_to(path: Path, inputs: Sequence[tuple[Path, str]]) -> Output:
    """Return the output for a report; it must not replace `inputs`, files that are each given with what they are.

    Raises:
        CommandError: the report can't be written there.
    """
    report = Output(path, "--report")
    report.keep_apart(inputs)
    if report.path.suffix.lower() != ".json":  # resolved, in case it is a symbolic link
        raise CommandError(f"--report must end in '.json', not '{report.path.name}'")
    return report


def _save_open_file(blend: Output) -> None:
    """Save a copy beside the requested file, which replaces it only if it can be read.

    On a full disk Blender 5 replaces a file with an incomplete one, and reports that it was saved.
    """
    bpy.ops.wm.save_as_mainfile(filepath=str(blend.new), copy=True)
    with suppress(OSError), bpy.data.libraries.load(str(blend.new)) as (found, _wanted):
        if bpy.context.scene.name in found.scenes:
            return
    raise CommandError(f"'{blend.path}' could not be saved completely and is unchanged. Is the disk full?")


Filling = tuple[Output, Callable[[Output], None]]
"""A file, and what writes its temporary file."""


class Files:
    """The result, the report and other files of a command: either all are written completely, or none."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        """Check that everything can be written, before hours of work; nothing is written yet.

        Args:
            name: name of the command, for messages.
            options: the command-line options.

        Raises:
            CommandError: one of the files can't be written.
        """
        self._name, self._overwrite = name, bool(options.overwrite)
        opened = Path(bpy.data.filepath) if bpy.data.filepath else None
        if options.overwrite and opened is None:
            raise CommandError("--overwrite needs a file: name one after -b, or use --output")
        self._output: Output | None = None
        inputs = [(Path(bpy.path.abspath(library.filepath)), "a linked library") for library in bpy.data.libraries]
        if opened is not None:
            inputs.append((opened, "the open file"))
        if options.output is not None:
            if options.output.suffix != ".blend":
                raise CommandError(f"--output must end in '.blend', not '{options.output}'")
            self._output = Output(options.output, "--output")
            self._output.keep_apart(inputs)
            inputs.append((options.output, "the --output file"))
        elif opened is not None and options.overwrite:
            self._output = Output(opened, "--overwrite")
        self._report = None if options.report is None else report_to(options.report, inputs)
        self.saved = bpy.data.filepath if options.overwrite else options.output and str(options.output.absolute())
        """Where the result is saved; None if nowhere."""

    def complain(self, sentence: str) -> None:
        """Print on stderr what is wrong."""
        complain(self._name, sentence)

    def write(self, report: str, go_on: GoOn, further: Sequence[Filling] = ()) -> bool:
        """Save the open file and a report, if requested; return whether everything was written.

        Args:
            report: text of the report.
            go_on: raises if the user interrupts.
            further: other files to write.

        Raises:
            CommandError, OSError, RuntimeError: nothing was written.
        """
        result: list[Filling] = [] if self._output is None else [(self._output, _save_open_file)]
        others = [*further] if self._report is None else [*further, (self._report, partial(Output.fill, text=report))]
        try:
            for output, fill in (*result, *others):
                fill(output)
            go_on()
            if self._output is not None:
                keeps = bpy.context.preferences.filepaths.save_version > 0
                self._output.put_in_place(with_backup=self._overwrite and keeps)
            is_complete = True
            for other, _ in others:
                try:
                    other.put_in_place()
                except OSError as error:
                    if self._output is None:
                        raise
                    lost = f"its {other.option[2:]} '{other.path}'"
                    self.complain(f"'{self._output.path}' was saved, but {lost} could not be written: {error}")
                    is_complete = False
            return is_complete
        finally:
            for output, _ in (*result, *others):
                output.discard()


# ---- skeletons for other programs

KINDS: dict[str, tuple[str, str, Json]] = {
    "glb": ("gltf", "io_scene_gltf2", {"export_animation_mode": "ACTIVE_ACTIONS", "export_frame_range": False}),
    "fbx": (
        "fbx",
        "io_scene_fbx",
        {
            "add_leaf_bones": False,
            "bake_anim_use_nla_strips": False,
            "bake_anim_use_all_actions": False,
            "bake_anim_simplify_factor": 0.0,
        },
    ),
}
"""By file extension: Blender's exporter, the add-on that provides it, and options that leave the keys alone."""


def check(kind: str) -> None:
    """Raise `CommandError` if Blender has no exporter for a kind of file."""
    name, addon, _options = KINDS[kind]
    if name not in dir(bpy.ops.export_scene):
        raise CommandError(f"Blender's exporter for '.{kind}' is not enabled. Enable the add-on {addon}")


def export(output: Output, kind: str, made: Sequence[skeleton.Made]) -> None:
    """Write skeletons, with their meshes and all their keys, to a file."""
    name, _addon, options = KINDS[kind]
    scene = bpy.context.scene
    span = scene.frame_start, scene.frame_end
    skeleton.select(bpy.context, [ob for one in made for ob in (one.ob, *one.meshes)])
    try:
        scene.frame_start = min(one.first for one in made)
        scene.frame_end = max(one.first + one.frames - 1 for one in made)
        getattr(bpy.ops.export_scene, name)(filepath=str(output.new), use_selection=True, **options)
    finally:
        scene.frame_start, scene.frame_end = span
    if not output.new.is_file():
        raise CommandError(f"'{output.path}' could not be exported")
