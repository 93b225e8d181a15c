"""Report the progress of pytest runs while they last.

Each run loads this module as a plugin, which logs to a file what the run does. A `Watch` reads those files, prints a
line for each run every few seconds, and prints each failure at once.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

OPTION = "--progress-file"
EVERY = 10.0
"""Seconds between lines."""
LONG = 30.0
"""Seconds after which an unfinished test is named."""


# ---- in the run


def options(file: Path) -> list[str]:
    """Return the options that make pytest log its progress to `file`."""
    return ["-p", "tools.progress", f"{OPTION}={file}"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file."""
    parser.addoption(OPTION, required=True, type=Path, help="where to note what the run does")


def pytest_configure(config: pytest.Config) -> None:
    """Start the log."""
    path: Path = config.getoption(OPTION)
    config.pluginmanager.register(_Notes(path.open("w", encoding="utf-8", buffering=1)))


class _Notes:
    """Logs a word and a test, or a number, on each line."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def _note(self, word: str, what: str | int) -> None:
        print(word, what, file=self._file)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._note("total", len(session.items))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._note("failed", report.nodeid)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._note("begun", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._note("failed", report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._note("ended", nodeid)


# ---- beside the runs


def place(file: Path) -> str:
    """Return where the run that logs to `file` is, as a sentence to append; empty if it is in no test."""
    run = _Run("", file, EVERY)
    run.read()
    return f" It was in {run.test}; tests still to run: {run.left}." if run.test else ""


class Watch:
    """Prints how far runs are from its own thread, for the duration of a `with` statement."""

    def __init__(self, every: float = EVERY) -> None:
        """Print every `every` seconds."""
        self._every = every
        self._runs: list[_Run] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watch:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        """Stop the thread."""
        self._over.set()
        self._thread.join()

    def begin(self, name: str, file: Path) -> None:
        """Watch the run that logs to `file`."""
        with self._lock:
            self._runs.append(_Run(name, file, self._every))

    def end(self, file: Path) -> None:
        """Stop watching it, after printing its last entries."""
        with self._lock:
            for run in [run for run in self._runs if run.file == file]:
                run.look(last=True)
                self._runs.remove(run)

    def _watch(self) -> None:
        while not self._over.wait(min(1.0, self._every)):
            with self._lock:
                for run in self._runs:
                    run.look()


class _Run:
    """State of one run."""

    def __init__(self, name: str, file: Path, every: float) -> None:
        self.file = file
        self._name, self._every = name, every
        self._read = 0
        self._total, self._ended, self._failed = 0, 0, set[str]()
        self.test, self._since = "", time.monotonic()
        self._due = time.monotonic() + every

    @property
    def left(self) -> int:
        """Return how many tests have not ended, without the current one."""
        return self._total - self._ended - bool(self.test)

    def look(self, last: bool = False) -> None:
        """Read new entries; print failed tests, and the run's progress if that is due or this is the last look."""
        for failed in self.read():
            print(f"{self._name}: FAILED {failed}", flush=True)
        now = time.monotonic()
        if last or now >= self._due:
            self._due = now + self._every
            print(self, flush=True)

    def read(self) -> list[str]:
        """Read new entries, and return the tests that failed since the last call."""
        failed = []
        for word, what in self._news():
            if word == "total":
                self._total = int(what)
            elif word == "begun":
                self.test, self._since = what, time.monotonic()
            elif word == "ended":
                self.test, self._ended = "", self._ended + 1
            elif what not in self._failed:
                self._failed.add(what)
                failed.append(what)
        return failed

    def _news(self) -> list[tuple[str, str]]:
        if not self.file.is_file():
            return []
        with self.file.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        # The last line may be incomplete.
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        lines = (line.partition(" ") for line in whole.decode(errors="replace").split("\n")[:-1])
        return [(word, what) for word, _space, what in lines]

    def __str__(self) -> str:
        if not self._total:
            return f"{self._name}: collecting tests"
        part = f"{100 * self._ended // self._total}% ({self._ended} of {self._total})"
        lasting = time.monotonic() - self._since
        slow = f", {lasting:.0f} s in {self.test}" if self.test and lasting >= LONG else ""
        return f"{self._name}: {part}, {len(self._failed)} failed{slow}"
