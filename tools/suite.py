"""Run the tests on several Blenders at once and add up the results."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from itertools import cycle
from pathlib import Path

from tools import linear_algebra, processes, progress, window
from tools.environments import BLENDERS, NEWEST, ROOT, WITHOUT_BLAS, Blender, ToolError, ensure
from tools.processes import TIME_LIMIT

BUILD = ROOT / "build"
COMPILED = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(BUILD / "compiled")}
"""Keep compiled modules, outside the source tree: many tests start processes of their own."""
WINDOW_TESTS = "tests/window"
"""Run only when named (see `norecursedirs` in pyproject.toml), and once, not on each Blender."""
HEADLESS_TESTS = f"{WINDOW_TESTS}/test_headless.py"
"""The window tests that open no window."""
SOLVER_TESTS = "tests/solve"
"""Need only numpy, in the version of each Blender; each Blender runs them under different kernels."""
TEXT_TESTS = (
    "tests/extension/test_imports.py",
    "tests/extension/test_mirror.py",
    "tests/extension/test_rooms.py",
    "tests/extension/test_version.py",
    "tests/extension/test_words.py",
    "tests/translation",
)
"""Check the texts of the project, which are the same for each Blender, so one Blender runs them."""
PARTS = (
    ("tests/reliability",),
    ("tests/bake", "tests/clip", "tests/convert", "tests/drag", "tests/export", "tests/extension", "tests/planting"),
    ("tests/goals", "tests/live", "tests/rig", "tests/setup"),
    (SOLVER_TESTS,),
)
"""Folders that each Blender runs in a process per part, after a first part with all other tests, which takes longest.
The shortest part is last, so that all cores are busy to the end. A crash loses only the rest of its part."""
AT_ONCE = min(max(os.cpu_count() or 2, 2), 4) + 1
"""Number of runs at the same time, each with up to a gigabyte of memory. One more than there are cores, because
tests with a window often wait, and so that the last runs end together."""
CRASH_TEXT = 5000
"""Characters of the output of a crashed run that are shown."""
NO_TESTS = 5
"""Exit code of pytest when no test was selected."""


@dataclass(frozen=True)
class Outcome:
    """Numbers of tests by result."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    crashed: int = 0
    """Number of processes that a signal killed."""

    def __add__(self, other: Outcome) -> Outcome:
        """Return the sum of both."""
        return Outcome(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.crashed + other.crashed,
        )

    def __str__(self) -> str:
        """Return the line that ends a run."""
        crashes = f", {self.crashed} crashed" if self.crashed else ""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped{crashes}"


@dataclass(frozen=True)
class Run:
    """One process of pytest."""

    name: str
    """Name shown to the user."""
    folder: str
    """Name for its files and folders below `build`."""
    interpreter: Path
    arguments: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)
    """Variables added to the environment."""

    def part(self, name: str, arguments: tuple[str, ...]) -> Run:
        """Return a part of this run, with its own arguments."""
        return replace(self, name=f"{self.name}: {name}", arguments=arguments)


def chosen(versions: Sequence[str]) -> list[Blender]:
    """Return the Blenders whose version starts with one of `versions`; all if there are none."""
    found = [blender for blender in BLENDERS if not versions or blender.version.startswith(tuple(versions))]
    if not found:
        supported = ", ".join(blender.version for blender in BLENDERS)
        raise ToolError(f"There are no tests for Blender {' or '.join(versions)}: choose from {supported}.")
    return found


def parts() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the parts of the suite that run on each Blender: the name of each and its arguments for pytest."""
    once = tuple(map(without, TEXT_TESTS))
    yield "other tests", (*once, *(without(folder) for folders in PARTS for folder in folders))
    for folders in PARTS:
        yield ", ".join(folders), (*folders, *once)


def without(path: str) -> str:
    """Return the option with which pytest ignores a folder or file."""
    return f"--ignore={path}"


def in_parts(whole: Sequence[Run]) -> Iterator[Run]:
    """Yield the parts of whole suites; only the first Blender, the oldest, runs the tests of texts."""
    for name, arguments in parts():
        for run in whole:
            yield run.part(name, arguments)
    yield whole[0].part("texts of the project", TEXT_TESTS)


def test(blenders: Sequence[Blender], arguments: Sequence[str], *, with_window: bool) -> int:
    """Run pytest with `arguments` on each of `blenders`, and the window tests if `with_window`; return an exit code.

    Without arguments, each Blender runs the suite in `parts`, under one of `linear_algebra.KERNELS` or the kernels of
    this machine, in turn. One is enough, because solutions do not depend on the kernels, not even in the last bit: a
    test of the solvers checks that.
    """
    BUILD.mkdir(exist_ok=True)
    whole = []
    for blender, kernels in zip(blenders, cycle([*linear_algebra.KERNELS, ""]), strict=False):
        name, interpreter, variables = f"Blender {blender.version}", ensure(blender.environment), {}
        if kernels and not arguments:
            reason = linear_algebra.why_not(interpreter, kernels)
            if reason is None:
                name, variables = f"{name}, {kernels} kernels", {linear_algebra.CHOICE: kernels}
            else:
                print(f"{name} runs under the kernels of this machine: {reason}", flush=True)
        whole.append(Run(name, blender.environment.name, interpreter, tuple(arguments), variables))
    runs = whole if arguments else list(in_parts(whole))
    if with_window:
        # Tests with a window mostly wait, so they start first and run beside all the others.
        program = Run("In the real program", "window", ensure(NEWEST.environment), ())
        runs.insert(0, program.part("windows", (WINDOW_TESTS, f"--ignore={HEADLESS_TESTS}")))
        runs.append(program.part("no window", (HEADLESS_TESTS,)))
    # A single run shows its own progress on the terminal.
    total = together(runs, live=len(runs) == 1)
    print(total, flush=True)
    return 1 if total.failed or not total.passed else 0


def test_window(arguments: Sequence[str]) -> int:
    """Run the window tests with `arguments` and return an exit code; skipped tests are not failures."""
    BUILD.mkdir(exist_ok=True)
    named = () if any(argument.startswith(WINDOW_TESTS) for argument in arguments) else (WINDOW_TESTS,)
    outcome, _text = _test(Run("", "window", ensure(NEWEST.environment), (*named, *arguments)), None)
    return 1 if outcome.failed else 0


def test_without_blas(arguments: Sequence[str]) -> int:
    """Run the solver tests with a numpy built without BLAS and return an exit code."""
    interpreter = ensure(WITHOUT_BLAS)
    used = linear_algebra.ask(interpreter)
    if used != linear_algebra.NONE:
        raise ToolError(f"numpy in .venv/{WITHOUT_BLAS.name} uses {used}: delete that folder and run this again.")
    print("numpy has nothing but its own linear algebra.", flush=True)
    BUILD.mkdir(exist_ok=True)
    outcome, _text = _test(Run("", WITHOUT_BLAS.name, interpreter, (SOLVER_TESTS, *arguments)), None)
    print(outcome, flush=True)
    return 1 if outcome.failed or not outcome.passed else 0


def together(runs: Sequence[Run], *, live: bool) -> Outcome:
    """Run several processes of pytest, `AT_ONCE` at a time, and return the sum of their outcomes.

    With `live` they print on the terminal themselves; otherwise this prints their progress, then their output.
    """
    total = Outcome()
    with ThreadPoolExecutor(AT_ONCE) as pool, progress.Watch() as watch:
        try:
            started = {pool.submit(_test if live else _test_twice, run, None if live else watch): run for run in runs}
            for finished in as_completed(started):
                outcome, text = finished.result()
                print(f"\n======== {started[finished].name}: {outcome} ========\n{text}", flush=True)
                total += outcome
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return total


def _test_twice(run: Run, watch: progress.Watch | None) -> tuple[Outcome, str]:
    """Run pytest, and once more if a signal killed it, because the old wheels crash now and then.

    Once in a dozen runs, 4.2.23 crashed in Python's garbage collector between two tests; the same tests pass with freed
    memory overwritten and a collection after each test. A run that crashes twice has failed.
    """
    outcome, text = _test(run, watch)
    if not outcome.crashed:
        return outcome, text
    print(f"{run.name} crashed and is run again:\n{text[-CRASH_TEXT:]}", flush=True)
    again, text = _test(run, watch)
    return replace(again, crashed=again.crashed + outcome.crashed), text


def _test(run: Run, watch: progress.Watch | None) -> tuple[Outcome, str]:
    """Run pytest; return its outcome and, with a `watch`, its output, which otherwise goes to the terminal."""
    # All its files go to a temporary folder, so that nothing is left behind even if it crashes.
    with tempfile.TemporaryDirectory(prefix=f"{run.folder}-", dir=BUILD) as folder:
        report, log, notes = Path(folder, "report.xml"), Path(folder, "log.txt"), Path(folder, "progress.txt")
        options = [f"--junitxml={report}", "-o", f"cache_dir={BUILD / 'pytest' / run.folder}"]
        variables = {"TMPDIR": folder, **COMPILED, **window.chosen(), **run.variables}
        command = [str(run.interpreter), "-m", "pytest", *options]
        if watch is None:
            code, text = processes.run([*command, *run.arguments], variables), ""
        else:
            color = ["--color=yes"] if sys.stdout.isatty() else []
            watch.begin(run.name, notes)
            with log.open("w") as file:
                command += [*color, *progress.options(notes), *run.arguments]
                code = processes.run(command, variables, stdout=file, stderr=subprocess.STDOUT)
            watch.end(notes)
            text = log.read_text(errors="replace")
        outcome = read_report(report)
        where = progress.place(notes)
    if code is None:
        text += f"\nIt was ended after {TIME_LIMIT // 60} minutes: a test hangs, or the suite is too slow.{where}\n"
    elif code == NO_TESTS:
        text += "\nNo test was chosen: check the arguments.\n"
    elif code and not outcome.failed:
        text += f"\nIt ended with exit code {code} though no test failed: see above, or it crashed.{where}\n"
    crashed = int(code is not None and code < 0)
    if code != 0 and not outcome.failed:
        outcome += Outcome(failed=1)
    return replace(outcome, crashed=crashed), text


def read_report(report: Path) -> Outcome:
    """Add up a JUnit report; it is missing if pytest did not finish."""
    outcome = Outcome()
    if report.is_file():
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            count = {key: int(suite.get(key, "0")) for key in ("tests", "failures", "errors", "skipped")}
            failed = count["failures"] + count["errors"]
            passed = max(0, count["tests"] - failed - count["skipped"])
            outcome += Outcome(passed, failed, count["skipped"])
    return outcome
