"""Running the tests on several Blenders at once and adding up what they say."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tools import window
from tools.environments import BLENDERS, NEWEST, ROOT, Blender, ToolError, ensure
from tools.processes import TIME_LIMIT, run

BUILD = ROOT / "build"
WINDOW_TESTS = "tests/window"
"""They run only where they are named, see `norecursedirs` in pyproject.toml: once, not on each Blender."""
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


def chosen(versions: Sequence[str]) -> list[Blender]:
    """The Blenders whose version starts as one of `versions`, or all."""
    found = [blender for blender in BLENDERS if not versions or blender.version.startswith(tuple(versions))]
    if not found:
        supported = ", ".join(blender.version for blender in BLENDERS)
        raise ToolError(f"There are no tests for Blender {' or '.join(versions)}: choose from {supported}.")
    return found


def test(blenders: Sequence[Blender], arguments: Sequence[str], *, with_window: bool) -> int:
    """Run pytest with `arguments` on each of `blenders`, then the tests in the real program; return an exit code."""
    interpreters = {blender: ensure(blender.environment) for blender in blenders}
    BUILD.mkdir(exist_ok=True)
    total = Outcome()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = {
            pool.submit(_test, blender.environment.name, interpreter, arguments, live=len(blenders) == 1): blender
            for blender, interpreter in interpreters.items()
        }
        for finished in as_completed(runs):
            outcome, text = finished.result()
            print(f"\n======== Blender {runs[finished].version}: {outcome} ========\n{text}", flush=True)
            total += outcome
    if with_window:
        # By themselves: what is clicked while two others use the processor may come late.
        outcome, text = _test("window", ensure(NEWEST.environment), [WINDOW_TESTS], live=False)
        print(f"\n======== In the real program: {outcome} ========\n{text}", flush=True)
        total += outcome
    print(total, flush=True)
    return 1 if total.failed or not total.passed else 0


def test_window(arguments: Sequence[str]) -> int:
    """Run the tests in the real program with `arguments` and return an exit code; skipped is no failure."""
    BUILD.mkdir(exist_ok=True)
    outcome, _text = _test("window", ensure(NEWEST.environment), [WINDOW_TESTS, *arguments], live=True)
    return 1 if outcome.failed else 0


def _test(name: str, interpreter: Path, arguments: Sequence[str], *, live: bool) -> tuple[Outcome, str]:
    """Run pytest with an interpreter; return how it went and what it printed, if it was not `live` on the terminal."""
    # Its own folder for all that it writes, so that nothing stays behind even where it crashes.
    with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=BUILD) as folder:
        report, log = Path(folder, "report.xml"), Path(folder, "log.txt")
        options = [f"--junitxml={report}", "-o", f"cache_dir={BUILD / 'pytest' / name}"]
        if not live and sys.stdout.isatty():
            options.append("--color=yes")
        command = [str(interpreter), "-m", "pytest", *options, *arguments]
        variables = {"TMPDIR": folder, **window.chosen()}
        if live:
            code, text = run(command, variables), ""
        else:
            with log.open("w") as file:
                code = run(command, variables, stdout=file, stderr=subprocess.STDOUT)
            text = log.read_text(errors="replace")
        outcome = _read(report)
    if code is None:
        text += f"\nIt was ended after {TIME_LIMIT // 60} minutes: a test hangs, or the suite has become too slow.\n"
    elif code == NO_TESTS:
        text += "\nNo test was chosen: check the arguments.\n"
    elif code and not outcome.failed:
        text += f"\nIt ended with exit code {code} though no test failed: see above, or it crashed.\n"
    if code != 0 and not outcome.failed:
        outcome += Outcome(failed=1)
    return outcome, text


def _read(report: Path) -> Outcome:
    """Add up a JUnit report, which is missing where pytest did not come to its end."""
    outcome = Outcome()
    if report.is_file():
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            count = {key: int(suite.get(key, "0")) for key in ("tests", "failures", "errors", "skipped")}
            failed = count["failures"] + count["errors"]
            passed = max(0, count["tests"] - failed - count["skipped"])
            outcome += Outcome(passed, failed, count["skipped"])
    return outcome
