"""Files that a command writes: checked before it starts, and replaced as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4


class OutputError(Exception):
    """A file can't be written; the message says why and what to do."""


class Output:
    """A file to write, first to a temporary file beside it, so that the old one stays until everything is written."""

    def __init__(self, path: Path, option: str) -> None:
        """Check that the file can be written, without changing it.

        Args:
            path: as the user gave it; a symbolic link stands for the file it leads to.
            option: the option that named it, for messages.

        Raises:
            OutputError: the file can't be written.
        """
        self.path = path.resolve()
        self.new = self.path.with_name(f".ik_bake-{uuid4().hex}{self.path.suffix}")
        """The temporary file."""
        self._given = path
        self._option = option
        self._check()

    def _check(self) -> None:
        if not self.path.parent.is_dir():
            raise OutputError(f"Can't write '{self._given.name}': the folder '{self._given.parent}' does not exist")
        try:
            self.path.stat()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise self._unwritable(error) from error
        else:
            if not self.path.is_file():
                raise OutputError(f"{self._option} names '{self._given}', which is a folder or device. Name a file")
        try:
            if self.path.exists():
                self.path.open("ab").close()  # fails if the file is read-only or another program holds it
            self.new.touch(exist_ok=False)
            self.new.unlink()
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> OutputError:
        return OutputError(f"{self._option} can't write '{self._given}' ({error.strerror}). Choose another place")

    def keep_apart(self, others: Iterable[tuple[Path, str]]) -> None:
        """Raise `OutputError` if this is one of some other files under any name; each is given with what it is."""
        for other, what in others:
            same = self.path == other.resolve()
            if same or (self.path.exists() and other.exists() and self.path.samefile(other)):
                raise OutputError(f"{self._option} would replace {what}. Choose another file")

    def fill(self, text: str) -> None:
        """Write a text to the temporary file."""
        self.new.write_text(text, encoding="utf-8")

    def put_in_place(self, backup: Path | None = None) -> None:
        """Replace the file with what was written, keeping the old one as `backup` if given; all or nothing.

        Raises:
            OSError: nothing was replaced.
        """
        kept = backup is not None and self.path.exists()
        if backup is not None and kept:
            self.path.replace(backup)
        try:
            self.new.replace(self.path)
        except OSError:
            if backup is not None and kept:
                backup.replace(self.path)
            raise

    def discard(self) -> None:
        """Remove what was written but not put in place."""
        self.new.unlink(missing_ok=True)
