"""Running the tests on several Blenders at once and adding up what they say."""

from __future__ import annotations

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
"""They need numpy alone."""
PARTS = (
    ("tests/reliability",),
    (SOLVER_TESTS,),
    ("tests/goals", "tests/live", "tests/rig", "tests/setup"),
)
"""What a Blender is started for by itself, the longest first, so that two cores are busy to the end; once more for
everything else. A crash loses the rest of its part alone."""
AT_ONCE = 2
NO_TESTS = 5
"""The exit code of a pytest that had nothing to run."""


@dataclass(frozen=True)
class Outcome:
    """How many tests did what."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        """Both together."""
        return Outcome(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        """The line that ends a run."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


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
    """The parts of the whole suite: what each is called, and pytest's arguments for it."""
    for folders in PARTS:
        yield ", ".join(folders), folders
    yield "other tests", tuple(f"--ignore={folder}" for folders in PARTS for folder in folders)


def test(blenders: Sequence[Blender], arguments: Sequence[str], *, with_window: bool) -> int:
    """Run pytest with `arguments` on each of `blenders`, then the tests in the real program; return an exit code.

    Without arguments the suite is run in `parts`, and the Blenders take turns with `linear_algebra.KERNELS` and those
    of this machine. None of them decides a bit of a solution, which a test of the solvers compares on each Blender, so
    each runs under one of them.
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
    runs = whole if arguments else [run.part(name, options) for name, options in parts() for run in whole]
    program = Run("In the real program", "window", ensure(NEWEST.environment), ())
    if with_window:
        runs.append(program.part("no window", (HEADLESS_TESTS,)))
    # By itself, pytest says on the terminal how far it is.
    total = together(runs, live=len(runs) == 1)
    if with_window:
        # By themselves: what is clicked while two others use the processor may come late.
        windows = program.part("windows", (WINDOW_TESTS, f"--ignore={HEADLESS_TESTS}"))
        total += together([windows], live=False)
    print(total, flush=True)
    return 1 if total.failed or not total.passed else 0


def test_window(arguments: Sequence[str]) -> int:
    """Run the tests in the real program with `arguments` and return an exit code; skipped is no failure."""
    BUILD.mkdir(exist_ok=True)
    outcome, _text = _test(Run("", "window", ensure(NEWEST.environment), (WINDOW_TESTS, *arguments)), None)
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
            started = {pool.submit(_test, run, None if live else watch): run for run in runs}
            for finished in as_completed(started):
                outcome, text = finished.result()
                print(f"\n======== {started[finished].name}: {outcome} ========\n{text}", flush=True)
                total += outcome
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return total


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
    if code != 0 and not outcome.failed:
        outcome += Outcome(failed=1)
    return outcome, text


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
