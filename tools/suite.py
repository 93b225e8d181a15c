"""Running the tests on several Blenders at once and adding up what they say."""

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
WINDOW_TESTS = "tests/window"
"""They run only where they are named, see `norecursedirs` in pyproject.toml: once, not on each Blender."""
HEADLESS_TESTS = f"{WINDOW_TESTS}/test_headless.py"
"""Those of them that open no window."""
SOLVER_TESTS = "tests/solve"
"""They need numpy alone, and run under other kernels with each Blender's version of it."""
TEXT_TESTS = (
    "tests/extension/test_imports.py",
    "tests/extension/test_mirror.py",
    "tests/extension/test_rooms.py",
    "tests/extension/test_version.py",
    "tests/extension/test_words.py",
    "tests/translation",
)
"""They read what the project says, which is the same on each Blender, and run on one."""
PARTS = (
    ("tests/reliability",),
    ("tests/bake", "tests/clip", "tests/convert", "tests/drag", "tests/export", "tests/extension", "tests/planting"),
    ("tests/goals", "tests/live", "tests/rig", "tests/setup"),
    (SOLVER_TESTS,),
)
"""What each Blender is started for by itself, after everything else, which takes longest; the shortest is last, so that
all cores are busy to the end. A crash loses the rest of its part alone."""
AT_ONCE = min(max(os.cpu_count() or 2, 2), 4) + 1
"""How many of them run at the same time, each of which takes up to a gigabyte of memory: one more than there are cores,
for what has a window waits again and again, and the last ones end together."""
CRASH_TEXT = 5000
"""How many characters of what a crashed run printed are shown."""
NO_TESTS = 5
"""The exit code of a pytest that had nothing to run."""


@dataclass(frozen=True)
class Outcome:
    """How many tests did what."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    crashed: int = 0
    """How many processes were killed by a signal."""

    def __add__(self, other: Outcome) -> Outcome:
        """Both together."""
        return Outcome(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.crashed + other.crashed,
        )

    def __str__(self) -> str:
        """The line that ends a run."""
        crashes = f", {self.crashed} crashed" if self.crashed else ""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped{crashes}"


@dataclass(frozen=True)
class Run:
    """One pytest among others."""

    name: str
    """As it is told."""
    folder: str
    """The name of what it writes, below `build`."""
    interpreter: Path
    arguments: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)
    """What is added to the environment."""

    def part(self, name: str, arguments: tuple[str, ...]) -> Run:
        """A part of this run, with arguments of its own."""
        return replace(self, name=f"{self.name}: {name}", arguments=arguments)


def chosen(versions: Sequence[str]) -> list[Blender]:
    """The Blenders whose version starts as one of `versions`, or all."""
    found = [blender for blender in BLENDERS if not versions or blender.version.startswith(tuple(versions))]
    if not found:
        supported = ", ".join(blender.version for blender in BLENDERS)
        raise ToolError(f"There are no tests for Blender {' or '.join(versions)}: choose from {supported}.")
    return found


def parts() -> Iterator[tuple[str, tuple[str, ...]]]:
    """The parts of the suite that run on each Blender: what each is called, and pytest's arguments for it."""
    once = tuple(map(without, TEXT_TESTS))
    yield "other tests", (*once, *(without(folder) for folders in PARTS for folder in folders))
    for folders in PARTS:
        yield ", ".join(folders), (*folders, *once)


def without(path: str) -> str:
    """The option that keeps pytest from running the tests in a folder or a file."""
    return f"--ignore={path}"


def in_parts(whole: Sequence[Run]) -> Iterator[Run]:
    """The parts of whole suites on several Blenders, the oldest first, which alone gets what runs once."""
    for name, arguments in parts():
        for run in whole:
            yield run.part(name, arguments)
    yield whole[0].part("texts of the project", TEXT_TESTS)


def test(blenders: Sequence[Blender], arguments: Sequence[str], *, with_window: bool) -> int:
    """Run pytest with `arguments` on each of `blenders`, then the tests in the real program; return an exit code.

    Without arguments the suite is run in `parts` on each of the Blenders, and these take turns with
    `linear_algebra.KERNELS` and those of this machine. None of them decides a bit of a solution, which a test of the
    solvers compares, so each runs under one of them.
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
        # What has a window mostly waits, so it begins first and runs beside all the others.
        program = Run("In the real program", "window", ensure(NEWEST.environment), ())
        runs.insert(0, program.part("windows", (WINDOW_TESTS, f"--ignore={HEADLESS_TESTS}")))
        runs.append(program.part("no window", (HEADLESS_TESTS,)))
    # By itself, pytest says on the terminal how far it is.
    total = together(runs, live=len(runs) == 1)
    print(total, flush=True)
    return 1 if total.failed or not total.passed else 0


def test_window(arguments: Sequence[str]) -> int:
    """Run the tests in the real program with `arguments` and return an exit code; skipped is no failure."""
    BUILD.mkdir(exist_ok=True)
    named = () if any(argument.startswith(WINDOW_TESTS) for argument in arguments) else (WINDOW_TESTS,)
    outcome, _text = _test(Run("", "window", ensure(NEWEST.environment), (*named, *arguments)), None)
    return 1 if outcome.failed else 0


def test_without_blas(arguments: Sequence[str]) -> int:
    """Run the tests of the solvers with a numpy that has no BLAS, and return an exit code."""
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
    """Do runs of pytest, some at once, and add up how they went.

    Where they do not print on the terminal themselves, `live`, say how far they are and then what they printed.
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
    """Run pytest, and once more if it was killed, whatever the reason: the old wheels crash now and then.

    Seen was, once in a dozen runs, 4.2.23 in Python's garbage collector between two tests; the same tests pass with
    freed memory overwritten and a collection after each. What crashes twice is a failure.
    """
    outcome, text = _test(run, watch)
    if not outcome.crashed:
        return outcome, text
    print(f"{run.name} crashed and is run again:\n{text[-CRASH_TEXT:]}", flush=True)
    again, text = _test(run, watch)
    return replace(again, crashed=again.crashed + outcome.crashed), text


def _test(run: Run, watch: progress.Watch | None) -> tuple[Outcome, str]:
    """Run pytest; return how it went, and what it printed where there is a `watch`: else it prints on the terminal."""
    # Its own folder for all that it writes, so that nothing stays behind even where it crashes.
    with tempfile.TemporaryDirectory(prefix=f"{run.folder}-", dir=BUILD) as folder:
        report, log, notes = Path(folder, "report.xml"), Path(folder, "log.txt"), Path(folder, "progress.txt")
        options = [f"--junitxml={report}", "-o", f"cache_dir={BUILD / 'pytest' / run.folder}"]
        variables = {"TMPDIR": folder, **window.chosen(), **run.variables}
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
    """Add up a JUnit report, which is missing where pytest did not come to its end."""
    outcome = Outcome()
    if report.is_file():
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            count = {key: int(suite.get(key, "0")) for key in ("tests", "failures", "errors", "skipped")}
            failed = count["failures"] + count["errors"]
            passed = max(0, count["tests"] - failed - count["skipped"])
            outcome += Outcome(passed, failed, count["skipped"])
    return outcome
