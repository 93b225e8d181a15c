"""The project's tasks: `python3 tools/dev.py TASK [OPTIONS] [ARGUMENTS]`, each with everything it needs set up.

Tasks:
  quick         check style and run tests of what was changed, a test through the whole extension on the newest Blender,
                and those of the solvers: a minute
  test          run all tests on the newest Blender, and on older ones those that reach what differs between versions.
                With a version or ARGUMENTS, which go to pytest, only what they choose, on every Blender
  everything    run all tests on every Blender, with other linear algebra too, and many random cases: an hour. ARGUMENTS
                choose parts: windows, solvers, a version such as 5.2.3, fuzz-5.2.3
  window        set up Blender itself from Debian's packages, and run the tests in it, with and without a window;
                ARGUMENTS go to pytest
  window-setup  only set it up
  fuzz          run many random cases on every Blender; ARGUMENTS go to tests/fuzz
  lint          check style and types
  build         build the extension's zip in build/
  demo          install the extension into a fresh user folder and run tools/demo.py there
  bench         measure the speed against Blender's own IK, on the newest Blender; ARGUMENTS go to
                benchmarks/performance.py
  bench-quality measure against Blender's own IK, on the newest Blender; ARGUMENTS go to benchmarks/quality.py
  samples       build the sample files with the oldest supported Blender, so that every version opens them
  version       print the extension's version; ARGUMENTS begin a new one (0.3.0) or release it (0.3.0 2027-01-31), see
                tools/version.py
  translations  count the entries that catalogs of translations lack; list them for the languages in ARGUMENTS
  pictures      render the pictures of the docs, and take those of the window if `window-setup` was done; ARGUMENTS go
                to tools/sample_pictures.py
  environments  only make the virtual environments that `lint` and `test` otherwise make on demand
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

# A script finds imports only beside itself; the package `tools` is one folder up.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import extension, suite, version, window
from tools.environments import LINT, NEWEST, OLDEST, ROOT, Blender, ToolError, ensure, usable
from tools.processes import TIME_LIMIT, run

BUILD = ROOT / "build"
Task = Callable[[Sequence[str], Sequence[str]], int]
"""Takes the versions of Blender and the arguments, and returns an exit code."""


def test(versions: Sequence[str], arguments: Sequence[str]) -> int:
    """Run the tests of a commit, or those that `arguments` choose on Blenders whose version starts as in `versions`."""
    return suite.some(suite.matching(versions), arguments) if versions or arguments else suite.test()


def windows(arguments: Sequence[str]) -> int:
    """Run the tests of the real program, which is set up first."""
    window.set_up()
    named = () if any(argument.startswith(suite.WINDOWS) for argument in arguments) else (suite.WINDOWS,)
    return suite.some([usable()[-1]], (*named, *arguments))


def window_setup() -> int:
    """Set up the real program."""
    print(f"Blender {window.set_up().version} is ready.")
    return 0


def fuzz(versions: Sequence[str], arguments: Sequence[str]) -> int:
    """Run random cases on Blenders whose version starts with one of `versions`, or on all, one after another."""
    codes = []
    for blender in suite.matching(versions):
        python = ensure(blender.environment)
        BUILD.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fuzz-", dir=BUILD) as folder:
            variables = extension.install(python, extension.build(Path(folder)), Path(folder))
            print(f"======== Blender {blender.version} ========", flush=True)
            codes.append(run([str(python), "-m", "tests.fuzz", *arguments], variables, limit=None))
    return 1 if any(codes) else 0


def lint() -> int:
    """Check style and types; all checks run, even after one has failed."""
    python = str(ensure(LINT))
    checks = (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"])
    failed = [" ".join(check) for check in checks if run([python, "-m", *check])]
    if failed:
        print(f"Found something to repair: {', '.join(failed)}.", flush=True)
    return len(failed)


def build() -> int:
    """Build the extension's zip."""
    package = extension.build(BUILD)
    print(f"Built {package.relative_to(ROOT)}")
    return 0


def environments() -> int:
    """Make the virtual environments of `lint` and `test`."""
    for blender in usable():
        ensure(blender.environment)
        ensure(blender.without_blender)
    ensure(LINT)
    return 0


def benchmark(name: str, arguments: Sequence[str]) -> int:
    """Run a module of `benchmarks` on the newest Blender."""
    python = ensure(NEWEST.environment)
    code = run([str(python), "-m", f"benchmarks.{name}", *arguments])
    if code is None:
        raise ToolError(f"The benchmark was ended: it took more than {TIME_LIMIT // 60} minutes; ask for less of it.")
    return code


def with_extension(blender: Blender, script: Path, arguments: Sequence[str]) -> int:
    """Run `script` in `blender` with a fresh user folder in which the extension is installed.

    The script calls `tools.blender.enable()` after importing bpy, and ends in `tools.blender.leave(code)`.
    """
    name = script.relative_to(ROOT)
    if not script.is_file():
        raise ToolError(f"There is no {name} to run; is this checkout complete?")
    python = ensure(blender.environment)
    BUILD.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{script.stem}-", dir=BUILD))
    try:
        variables = extension.install(python, extension.build(folder), folder)
        code = run([str(python), str(script), *arguments], variables)
        if code is None:
            raise ToolError(f"{name} was ended: it took more than {TIME_LIMIT // 60} minutes.")
        return code
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def pictures(arguments: Sequence[str]) -> int:
    """Retake the pictures of the documentation."""
    code = with_extension(NEWEST, ROOT / "tools" / "sample_pictures.py", arguments)
    for script in ("moving_picture.py", "posing_pictures.py"):
        code = code or with_extension(NEWEST, ROOT / "tools" / script, ())
    try:
        window.program()
    except ToolError as error:
        print(f"The pictures of the window stay as they are. {error}", flush=True)
        return code
    for script in ("window_pictures.py", "store_pictures.py"):
        code = code or subprocess.run([sys.executable, str(ROOT / "tools" / script)], check=False).returncode
    return code


def main(arguments: Sequence[str]) -> int:
    """Run the task named by `arguments`."""
    options, rest = list(arguments), []
    if "--" in options:
        split = options.index("--")
        options, rest = options[:split], options[split + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--bpy", action="append", default=[], metavar="VERSION", help="test on this Blender only")
    parser.add_argument("arguments", nargs="*", help="for the task; after `--` where they begin with a dash")
    chosen = parser.parse_args(options)
    try:
        return TASKS[chosen.task](chosen.bpy, [*chosen.arguments, *rest])
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def script(name: str, oldest: bool = False) -> Task:
    """Return the task that runs a script with the extension, on the oldest Blender or on the newest that is usable."""
    return lambda _versions, rest: with_extension(OLDEST if oldest else usable()[-1], ROOT / name, rest)


TASKS: dict[str, Task] = {
    "quick": lambda _versions, _rest: suite.quick(),
    "test": test,
    "everything": lambda _versions, rest: suite.everything(rest),
    "window": lambda _versions, rest: windows(rest),
    "window-setup": lambda _versions, _rest: window_setup(),
    "fuzz": fuzz,
    "lint": lambda _versions, _rest: lint(),
    "build": lambda _versions, _rest: build(),
    "demo": script("tools/demo.py"),
    "bench": lambda _versions, rest: benchmark("performance", rest),
    "bench-quality": lambda _versions, rest: benchmark("quality", rest),
    "samples": script("sample_blends/build_samples.py", oldest=True),
    "version": lambda _versions, rest: version.main(rest),
    "translations": script("tools/translations.py"),
    "pictures": lambda _versions, rest: pictures(rest),
    "environments": lambda _versions, _rest: environments(),
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
