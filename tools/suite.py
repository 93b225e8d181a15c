"""Run the tests in tiers, several processes at a time, and add up the results.

- `quick`: a minute, while writing: the solvers, one scene through the whole extension, and the rooms that were changed.
- `test`: before a commit: everything on the newest Blender, and on the older ones what reaches Blender's API.
- `everything`: before a release: all tests on each Blender, with all kinds of linear algebra, and long random runs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools import extension, linear_algebra, processes, window
from tools.environments import (
    BLENDERS,
    LINT,
    NEWEST,
    OLDEST,
    ROOT,
    WITHOUT_BLAS,
    Blender,
    Environment,
    ToolError,
    ensure,
    usable,
)

BUILD = ROOT / "build"
COMPILED = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(BUILD / "compiled")}
"""Keep compiled modules, outside the source tree: many tests start processes of their own."""
SOLVERS = "tests/solve"
"""Need numpy alone."""
WINDOWS = "tests/window"
HEADLESS = f"{WINDOWS}/test_headless.py"
"""The window tests that open no window."""
SMOKE = "tests/test_smoke.py"
API = (
    *("tests/bake", "tests/chains/test_convert.py", "tests/chains/test_switches.py", "tests/core", "tests/live"),
    *("tests/rig", "tests/ui", "tests/extension/test_lifecycle.py", "tests/extension/test_package.py", SMOKE),
    *("tests/reliability/test_files.py", "tests/reliability/test_libraries.py", "tests/reliability/test_rendering.py"),
)
"""What reaches parts of Blender that differ between versions, so that the older ones run it too."""
SAMPLE = 4
"""Of tests that are run with many values, older Blenders and numpys run one in so many; `everything` runs all."""
ELSEWHERE = {
    "core": ("tests/core", "tests/live", "tests/reliability/test_base.py", "tests/reliability/test_safety.py"),
    "registration.py": ("tests/extension/test_lifecycle.py",),
}
"""The tests of what has no folder of its own in `tests`, for `quick`."""
FUZZ = {
    "solver": 6_000,
    "frames": 1,
    "rigs": 150,
    "sessions": 150,
    "productions": 600,
    "undo": 25,
    "everyday": 60,
    "animated": 250,
}
"""The number of random cases of each kind for each Blender, in `everything`."""
CRASHES = {
    r"4\.2.*io_scene_gltf2": "the glTF exporter of 4.2 frees objects that Python's garbage collector visits later",
}
"""Crashes in modules of Blender, which are run once more: patterns of the version and the innermost place in Python."""
AT_ONCE = min(max(os.cpu_count() or 2, 2), 4) + 1
"""Number of processes at a time, each with up to a gigabyte of memory. One more than there are cores, because tests
with a window often wait."""
NO_TESTS = 5
"""Exit code of pytest when no test was selected."""


@dataclass(frozen=True)
class Outcome:
    """Numbers of tests by result, and of processes that crashed."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    crashed: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        """Return the sum of both."""
        return Outcome(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    def __str__(self) -> str:
        """Return the line that ends a run."""
        crashes = f", {self.crashed} crashed" if self.crashed else ""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped{crashes}"


@dataclass(frozen=True)
class Run:
    """A process that runs tests: pytest with `arguments`, or random cases of `tests.fuzz`."""

    name: str
    environment: Environment
    arguments: tuple[str, ...]
    module: str = "pytest"
    variables: dict[str, str] = field(default_factory=dict)
    sample: int = 1
    """See `pytest_collection_modifyitems` of the tests."""


# ---- the tiers


def quick() -> int:
    """Run the first tier; return an exit code."""
    changed = list(changes())
    python = [name for name in changed if name.endswith(".py") and (ROOT / name).is_file()]
    lint = [str(ensure(LINT)), "-m", "ruff"]
    wrong = [processes.run([*lint, *check, *python]) for check in (["check", "-q"], ["format", "--check"]) if python]
    newest = usable()[-1]
    rooms = sorted({path for name in changed for path in tests_of(name)} - {SOLVERS, WINDOWS})
    print(f"Smoke test, the solvers, and what belongs to the changes: {', '.join(rooms) or 'nothing'}", flush=True)
    runs = [*split(solvers(newest), 4), *split(on(newest, (SMOKE, *rooms)), 1)]
    return finish(together(runs) + Outcome(failed=int(any(wrong))))


def test() -> int:
    """Run the second tier; return an exit code."""
    *older, newest = usable()
    runs = [
        *split(on(newest, tests_with_blender()), 4),
        solvers(newest),
        *(replace(on(blender, API), sample=SAMPLE) for blender in older),
        *(replace(solvers(blender), sample=SAMPLE) for blender in older[:1]),
    ]
    return finish(together(runs))


def everything(chosen: Sequence[str]) -> int:
    """Run the third tier, or its parts that are `chosen`, by the names that `parts` gives; return an exit code."""
    if not chosen or "windows" in chosen:
        window.set_up()
    known = parts()
    for name in chosen:
        if name not in known:
            raise ToolError(f"There is no part {name}: choose from {', '.join(known)}.")
    return finish(together([run for name in chosen or known for run in known[name]]))


def parts() -> dict[str, list[Run]]:
    """Return the runs of `everything`, by the part that they belong to."""
    found = {
        "windows": [
            Run("Windows", NEWEST.environment, (WINDOWS, f"--ignore={HEADLESS}")),
            Run("Blender without a window", NEWEST.environment, (HEADLESS,)),
        ]
    }
    for blender in BLENDERS:
        found[blender.version] = list(split(on(blender, tests_with_blender()), 4))
        found[f"fuzz-{blender.version}"] = [
            Run(
                f"Blender {blender.version}: fuzz {kind}",
                blender.environment,
                (kind, "--count", str(count), "--jobs", "1"),
                "tests.fuzz",
            )
            for kind, count in FUZZ.items()
        ]
    found["solvers"] = [
        *(solvers(blender, kernels) for blender in (OLDEST, NEWEST) for kernels in ("", *linear_algebra.KERNELS)),
        Run("Solvers without BLAS", WITHOUT_BLAS, (SOLVERS,)),
    ]
    return found


def some(blenders: Sequence[Blender], arguments: Sequence[str]) -> int:
    """Run pytest with `arguments` on some Blenders; return an exit code."""
    return finish(together([on(blender, arguments) for blender in blenders]))


def matching(versions: Sequence[str]) -> list[Blender]:
    """Return the usable Blenders whose version starts with one of `versions`; all if there are none."""
    found = [blender for blender in usable() if not versions or blender.version.startswith(tuple(versions))]
    if not found:
        supported = ", ".join(blender.version for blender in usable())
        raise ToolError(f"There is no Blender {' or '.join(versions)} here: choose from {supported}.")
    return found


# ---- their runs


def tests_with_blender() -> list[str]:
    """Return all files and folders of tests that need a Blender but no window."""
    paths = (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests").iterdir()))
    return [path for path in paths if path not in (SOLVERS, WINDOWS)]


def on(blender: Blender, paths: Iterable[str]) -> Run:
    """Return a run of tests on a Blender."""
    return Run(f"Blender {blender.version}", blender.environment, tuple(paths))


def split(run: Run, count: int) -> Iterator[Run]:
    """Yield the files of a run in `count` runs, about as long as each other, so that all cores have work to the end."""
    sizes = {file: file.stat().st_size for path in run.arguments for file in files(path)}
    shares: list[list[Path]] = [[] for _ in range(count)]
    for file in sorted(sizes, key=lambda file: (-sizes[file], file)):
        min(shares, key=lambda share: sum(sizes[each] for each in share)).append(file)
    for number, share in enumerate(shares, 1):
        names = sorted(file.relative_to(ROOT).as_posix() for file in share)
        yield replace(run, name=f"{run.name}, {number} of {count}", arguments=tuple(names))


def files(path: str) -> Iterator[Path]:
    """Yield the test modules of a file or folder."""
    place = ROOT / path
    yield from (place.rglob("test_*.py") if place.is_dir() else [place] if place.name.startswith("test_") else [])


def solvers(blender: Blender, kernels: str = "") -> Run:
    """Return the run of the solvers with nothing but a Blender's numpy, and with some of `linear_algebra.KERNELS`."""
    name = f"Solvers, numpy {blender.numpy}{f', {kernels} kernels' if kernels else ''}"
    variables = {linear_algebra.CHOICE: kernels} if kernels else {}
    return Run(name, blender.without_blender, (SOLVERS,), variables=variables)


def changes() -> Iterator[str]:
    """Yield the files that differ from the branch main, or from the last commit on main itself."""

    def git(*arguments: str) -> list[str]:
        told = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return told.stdout.splitlines()

    base = git("merge-base", "HEAD", "main") or ["HEAD"]
    yield from git("diff", "--name-only", base[0])
    yield from git("ls-files", "--others", "--exclude-standard")


def tests_of(changed: str) -> Iterator[str]:
    """Yield the tests that belong to a file of the project."""
    top, _, rest = changed.partition("/")
    room = rest.partition("/")[0]
    if top == "ik_addon":
        folder = f"tests/{room}"
        yield from ELSEWHERE.get(room, (folder,) if (ROOT / folder).is_dir() else ())
    elif top == "tests" and Path(changed).name.startswith("test_") and (ROOT / changed).is_file():
        yield from () if changed.startswith(WINDOWS) else (changed,)
    elif top == "tools" or changed == "pyproject.toml":
        yield "tests/extension"
    elif top in ("docs", "README.md", "CONTRIBUTING.md", "Makefile"):
        yield "tests/test_docs.py"


# ---- running them


def finish(total: Outcome) -> int:
    """Print the line that ends a tier, with the Blenders that have no Python here, and return an exit code."""
    without = [blender.version for blender in BLENDERS if blender not in usable()]
    note = f"; without Blender {', '.join(without)}, whose Python was not found" if without else ""
    print(f"{total}{note}", flush=True)
    is_partial = bool(without) and os.environ.get("CI") == "true"
    return int(bool(total.failed) or not total.passed or is_partial)


def together(runs: Sequence[Run]) -> Outcome:
    """Run several processes, `AT_ONCE` at a time, and return the sum of their outcomes.

    A single one prints on the terminal itself. Of several, this prints what failed or was skipped, and how it ended.
    """
    BUILD.mkdir(exist_ok=True)
    allow_dumps()
    total = Outcome()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            begun = time.monotonic()
            started = {pool.submit(_run, run, live=len(runs) == 1): run for run in runs}
            for finished in as_completed(started):
                outcome, text = finished.result()
                total += outcome
                if len(runs) > 1:
                    reasons = Counter[str]()
                    for number, reason in re.findall(r"^SKIPPED \[(\d+)\] \S+ (.*)", text, re.MULTILINE):
                        reasons[reason] += int(number)
                    skipped = [f"Skipped {number}: {reason}" for reason, number in reasons.items()]
                    ended = (
                        f"{started[finished].name}: {outcome} (after {(time.monotonic() - begun) / 60.0:.1f} minutes)"
                    )
                    print(*([text] if outcome.failed else skipped), ended, sep="\n", flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return total


def _run(run: Run, *, live: bool) -> tuple[Outcome, str]:
    """Run a process, and once more after a crash that is one of `CRASHES`; return its outcome and its output."""
    try:
        code, text = _start(run, live=live)
    except ToolError as error:
        return Outcome(failed=1), str(error)
    crashed = int(has_crashed(code, text))
    reason = excuse(run.environment.name, text) if crashed else None
    if reason:
        print(f"{run.name} crashed and is run again: {reason}", flush=True)
        code, text = _start(run, live=live)
        crashed += int(has_crashed(code, text))
    outcome = counted(text)
    if code is None:
        text += f"\nIt was ended after {processes.TIME_LIMIT // 60} minutes: a test hangs, or takes too long.\n"
    elif code == NO_TESTS:
        text += "\nNo test was chosen: check the arguments.\n"
    elif code and not outcome.failed:
        text += f"\nIt ended with exit code {code}, though no test failed: see above, or it crashed.\n"
    if code != 0 and not outcome.failed:
        outcome += Outcome(failed=1)
    return outcome + Outcome(crashed=crashed), text


def _start(run: Run, *, live: bool) -> tuple[int | None, str]:
    """Run a process; return its exit code, None if it took too long, and its output."""
    interpreter = ensure(run.environment)
    # All its files go to a temporary folder, so that nothing is left behind even if it crashes.
    with tempfile.TemporaryDirectory(prefix=f"{run.environment.name}-", dir=BUILD) as folder:
        variables = {"TMPDIR": folder, **COMPILED, **run.variables}
        if run.module == "pytest":
            options = ["-o", f"cache_dir={BUILD / 'pytest' / run.environment.name}"]
            options += [f"--sample={run.sample}"] if run.sample > 1 else []
        else:
            options, place = [], Path(folder)
            variables |= extension.install(interpreter, extension.build(place), place)
        command = [str(interpreter), "-m", run.module, *options, *run.arguments]
        log = Path(folder, "log.txt")
        begun = time.time()
        code, text = processes.run(command, variables, log, live=live), log.read_text(errors="replace")
        return code, text + native_stack(interpreter, begun)


def allow_dumps() -> None:
    """Let processes that crash leave their memory in a file, where the system can."""
    if os.name == "posix":
        import resource

        _soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def native_stack(interpreter: Path, since: float) -> str:
    """Return the native stacks of processes that crashed after `since`, as far as they left their memory; delete that.

    Python's fault handler tells only where in Python it was. Without a debugger there is nothing to return.
    """
    debugger, told = shutil.which("gdb"), ""
    for dump in (path for path in ROOT.glob("core*") if path.is_file() and path.stat().st_mtime >= since):
        if debugger:
            command = [debugger, "-batch", "-ex", "set print frame-arguments none", "-ex", "bt 25"]
            command += ["-c", str(dump), str(interpreter)]
            found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False).stdout
            frames = [line for line in found.splitlines() if line.startswith("#")]
            told += "\n".join(["", "The native stack:", *frames, ""])
        dump.unlink(missing_ok=True)
    return told


def has_crashed(code: int | None, text: str) -> bool:
    """Whether a process was ended by a fault in native code."""
    return (code is not None and code < 0) or "\nFatal Python error: " in text


def excuse(environment: str, text: str) -> str | None:
    """Return why a crash is Blender's own, by what Python's fault handler says of its innermost place, or None."""
    places = re.findall(r"^Current thread .*\n(?:  Garbage-collecting\n)?  File (.*)$", text, re.MULTILINE)
    found = (
        reason for pattern, reason in CRASHES.items() for place in places if re.search(pattern, environment + place)
    )
    return next(found, None)


def counted(text: str) -> Outcome:
    """Add up the results in the last lines of pytest, or in those of `tests.fuzz`."""
    outcome = Outcome()
    for cases, failed in re.findall(r"^\w+: (\d+) cases, .* (\d+) failed, ", text, re.MULTILINE):
        outcome += Outcome(int(cases) - int(failed), int(failed))
    for line in re.findall(r"^=* ?(\d+ \w+.*) in [\d.]+s", text, re.MULTILINE)[-1:]:
        numbers = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", line)}
        failed = sum(numbers.get(word, 0) for word in ("failed", "error", "errors"))
        passed = numbers.get("passed", 0) + numbers.get("xfailed", 0)
        outcome += Outcome(passed, failed, numbers.get("skipped", 0))
    return outcome
