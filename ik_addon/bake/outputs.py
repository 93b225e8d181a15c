"""Files that a command writes: checked before it starts, and replaced as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4


class OutputError(Exception):
    """A file cannot be written; the message says why and what to do."""


class Output:
    """A file to write: to a temporary file beside it first, so that the old one stays until all is written."""

    def __init__(self, path: Path, option: str) -> None:
        """Nothing is touched yet.

        Args:
            path: as the user gave it; behind a symbolic link the file itself is meant.
            option: by which it was given, for messages.

        Raises:
            OutputError: the file cannot be written.
        """
        self.path = path.resolve()
        self.new = self.path.with_name(f".ik_bake-{uuid4().hex}{self.path.suffix}")
        """Where it is written first."""
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
                self.path.open("ab").close()  # neither read-only nor held by another program
            self.new.touch(exist_ok=False)
            self.new.unlink()
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> OutputError:
        return OutputError(f"{self._option} can't write '{self._given}' ({error.strerror}). Choose another place")

    def keep_apart(self, others: Iterable[tuple[Path, str]]) -> None:
        """Raise `OutputError` if this is one of some other files, by whatever name; each comes with what it is."""
        for other, what in others:
            same = self.path == other.resolve()
            if same or (self.path.exists() and other.exists() and self.path.samefile(other)):
                raise OutputError(f"{self._option} would replace {what}. Choose another file")

    def fill(self, text: str) -> None:
        """Write a text, to be put in place."""
        self.new.write_text(text, encoding="utf-8")

    def put_in_place(self, backup: Path | None = None) -> None:
        """Replace the file by what was written, and keep the old one as `backup`; all or nothing.

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
        """Remove what was written and not put in place."""
        self.new.unlink(missing_ok=True)
