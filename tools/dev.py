"""The project's tasks: `python3 tools/dev.py TASK [OPTIONS] [ARGUMENTS]`, each with everything it needs set up.

Tasks:
  test          run the tests on every supported Blender; ARGUMENTS go to pytest. Without any, two of them run with the
                linear algebra of other processors, see tools/linear_algebra.py, tests of the project's texts run on
                the oldest alone, and `window` runs as well
  test-without-blas
                run the tests of the solvers with a numpy that has only its own linear algebra, as in the official
                Blender for Linux and Windows. Builds that numpy once, in some minutes; ARGUMENTS go to pytest
  window        run the tests in the real program, with and without a window, if there is a driver for it, see
                tools/window.py; ARGUMENTS go to pytest
  fuzz          run many random cases on every supported Blender; ARGUMENTS go to tests/fuzz
  lint          check style and types
  build         build the extension's zip in build/, with this Python alone
  demo          install the extension into a fresh user folder and run tools/demo.py there
  bench         measure the speed against Blender's own IK, on the newest Blender; ARGUMENTS go to
                benchmarks/performance.py
  bench-quality measure against Blender's own IK, on the newest Blender; ARGUMENTS go to benchmarks/quality.py
  samples       build the sample files with the oldest supported Blender, so that every version opens them
  version       print the extension's version; ARGUMENTS begin a new one (0.3.0) or release it (0.3.0 2027-01-31), see
                tools/version.py
  translations  count the entries that catalogs of translations lack; list them for the languages in ARGUMENTS
  pictures      render the picture of the samples and the animated one; ARGUMENTS go to tools/sample_pictures.py. If
                there is a driver, see tools/window.py, take the pictures of the window as well
  environments  only make the virtual environments that `lint` and `test` otherwise make on demand
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

# A script finds imports only beside itself; the package `tools` is one folder up.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import extension, suite, version, window
from tools.environments import BLENDERS, LINT, NEWEST, OLDEST, ROOT, Blender, ToolError, ensure
from tools.processes import TIME_LIMIT, run

BUILD = ROOT / "build"


def test(versions: Sequence[str], arguments: Sequence[str]) -> int:
    """Run the tests on Blenders whose version starts with one of `versions`, or on all."""
    return suite.test(suite.chosen(versions), arguments, with_window=not versions and not arguments)


def fuzz(versions: Sequence[str], arguments: Sequence[str]) -> int:
    """Run random cases on Blenders whose version starts with one of `versions`, or on all, one after another."""
    codes = []
    for blender in suite.chosen(versions):
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
    for environment in (LINT, *(blender.environment for blender in BLENDERS)):
        ensure(environment)
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
        window.driver()
    except ToolError as error:
        print(f"The pictures of the window stay as they are. {error}", flush=True)
        return code
    of_windows = ROOT / "tools" / "window_pictures.py"
    return code or subprocess.run([sys.executable, str(of_windows)], check=False).returncode


def main(arguments: Sequence[str]) -> int:
    """Run the task named by `arguments`."""
    options, rest = list(arguments), []
    if "--" in options:
        split = options.index("--")
        options, rest = options[:split], options[split + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = (
        "test",
        "test-without-blas",
        "window",
        "fuzz",
        "lint",
        "build",
        "demo",
        "bench",
        "bench-quality",
        "samples",
        "version",
        "translations",
        "pictures",
        "environments",
    )
    parser.add_argument("task", choices=tasks)
    parser.add_argument("--bpy", action="append", default=[], metavar="VERSION", help="test on this Blender only")
    parser.add_argument("arguments", nargs="*", help="for the task; after `--` where they begin with a dash")
    chosen = parser.parse_args(options)
    rest = [*chosen.arguments, *rest]
    try:
        if chosen.task == "test":
            return test(chosen.bpy, rest)
        if chosen.task == "test-without-blas":
            return suite.test_without_blas(rest)
        if chosen.task == "window":
            return suite.test_window(rest)
        if chosen.task == "fuzz":
            return fuzz(chosen.bpy, rest)
        if chosen.task == "lint":
            return lint()
        if chosen.task == "build":
            return build()
        if chosen.task == "demo":
            return with_extension(NEWEST, ROOT / "tools" / "demo.py", rest)
        if chosen.task == "bench":
            return benchmark("performance", rest)
        if chosen.task == "bench-quality":
            return benchmark("quality", rest)
        if chosen.task == "pictures":
            return pictures(rest)
        if chosen.task == "translations":
            return with_extension(NEWEST, ROOT / "tools" / "translations.py", rest)
        if chosen.task == "environments":
            return environments()
        if chosen.task == "version":
            return version.main(rest)
        return with_extension(OLDEST, ROOT / "sample_blends" / "build_samples.py", rest)
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
