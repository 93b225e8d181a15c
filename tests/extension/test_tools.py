"""The development tools: what they say if something is missing, which tests they choose, and how they count them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import sampled
from tests.fuzz.__main__ import KINDS
from tools import environments, suite, version
from tools.environments import ROOT, Environment, ToolError, find_python
from tools.suite import Outcome, Run
from tools.window import debian

THIS = f"{sys.version_info.major}.{sys.version_info.minor}"


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="the stand-ins are shell scripts")
def test_python_is_found_by_what_it_says_and_not_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    kept = tmp_path / ".pyenv" / "versions" / "3.99.2" / "bin" / "python"
    # A shim of pyenv without a Python behind it, and a Python of another version.
    for text in ("exit 127", "echo 3.98"):
        program(tmp_path / "python3.99", text)
        with pytest.raises(ToolError, match=r"Python 3\.99 .* was not found.*pyenv install 3\.99"):
            find_python("3.99")
        program(kept, "echo 3.99")
        assert find_python("3.99") == kept
        kept.unlink()
    program(tmp_path / "python3.99", "echo 3.99")
    assert find_python("3.99") == tmp_path / "python3.99"


@pytest.mark.parametrize("ci", ["", "true"])
def test_blenders_without_a_python_are_left_out_and_named(
    ci: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found(version: str) -> Path:
        if version != environments.NEWEST.python:
            raise environments.NoPythonError(version)
        return Path(sys.executable)

    monkeypatch.setattr(environments, "find_python", found)
    monkeypatch.setenv("CI", ci)
    assert environments.usable() == (environments.NEWEST,)
    assert suite.finish(Outcome(passed=3)) == (1 if ci else 0)
    expected = "3 passed, 0 failed, 0 skipped; without Blender 4.2.23, 4.5.15, whose Python was not found\n"
    assert capsys.readouterr().out == expected


SUITE = """
import os, signal, pytest
from pathlib import Path

def test_a(): pass

@pytest.fixture
def broken(): raise ValueError

@pytest.mark.skip(reason="the moon is missing")
def test_b(): pass
"""
ENDS = {
    "": Outcome(1, 0, 1),
    "def test_c(): assert False\ndef test_d(broken): pass": Outcome(1, 2, 1),
    "import nothing_of_that_name": Outcome(0, 1, 0),
    "def test_c(): os._exit(7)": Outcome(0, 1, 0),
    "def test_c(): os.kill(os.getpid(), signal.SIGSEGV)": Outcome(0, 1, 0, 1),
}
"""Endings of a suite, and what is counted."""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Environment:
    """An environment that is this Python."""
    monkeypatch.setattr(suite, "ensure", lambda _environment: Path(sys.executable))
    return Environment("4.2 here", THIS, ())


def run_of(folder: Path, text: str, environment: Environment) -> Run:
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    return Run("It", environment, ("-ra", "--rootdir", str(folder), str(folder)))


@pytest.mark.skipif(os.name != "posix", reason="there are no signals")
def test_results_are_counted_and_a_crash_is_a_failure(
    here: Environment, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    runs = []
    for number, end in enumerate(ENDS):
        (tmp_path / str(number)).mkdir()
        runs.append(run_of(tmp_path / str(number), SUITE + end, here))
    assert suite.together(runs) == sum(ENDS.values(), Outcome())
    said = capfd.readouterr().out
    assert "the moon is missing" in said
    assert "It ended with exit code 7, though no test failed" in said
    assert str(Outcome(1, 2, 3, 1)) == "1 passed, 2 failed, 3 skipped, 1 crashed"
    assert suite.counted("rigs: 20 cases, starting at seed 0, 3 failed, 0.2 minutes\n") == Outcome(17, 3)


CRASH = """
import os, signal
from pathlib import Path

def test_a():
    times = Path(__file__).with_name("times")
    times.write_text(times.read_text() + "x" if times.exists() else "x")
    if len(times.read_text()) < 2:
        code = "def visit(): os.kill(os.getpid(), signal.SIGSEGV)"
        names = {"os": os, "signal": signal}
        exec(compile(code, "/4.2/scripts/addons_core/MODULE/exporter.py", "exec"), names)
        names["visit"]()
"""


@pytest.mark.skipif(os.name != "posix", reason="there are no signals")
@pytest.mark.parametrize(("module", "expected"), [("io_scene_gltf2", (1, 0, 0, 1)), ("io_other", (0, 1, 0, 1))])
def test_only_a_known_crash_inside_a_module_of_blender_is_run_again(
    module: str, expected: tuple[int, ...], here: Environment, tmp_path: Path
) -> None:
    run = run_of(tmp_path, CRASH.replace("MODULE", module), here)
    assert suite.together([run]) == Outcome(*expected)


def test_every_test_belongs_to_a_run() -> None:
    (*_older, newest) = environments.BLENDERS
    tests = {path.relative_to(suite.ROOT).as_posix() for path in (suite.ROOT / "tests").rglob("test_*.py")}
    with_blender = [
        name for run in suite.split(suite.on(newest, suite.tests_with_blender()), 4) for name in run.arguments
    ]
    elsewhere = {name for name in tests if name.startswith((suite.SOLVERS, suite.WINDOWS))}
    assert sorted(with_blender) == sorted(tests - elsewhere)
    named = {*suite.API, *(path for paths in suite.ELSEWHERE.values() for path in paths), suite.HEADLESS}
    assert [path for path in named if not (suite.ROOT / path).exists()] == []


def test_a_sample_leaves_no_test_out(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytestconfig.option, "sample", 4)
    assert [len(sampled(range(count), pytestconfig)) for count in (1, 4, 5, 9)] == [1, 1, 2, 3]
    assert sampled(range(99), pytestconfig) == sampled(range(99), pytestconfig)


def test_the_workflow_runs_every_part_of_everything() -> None:
    text = (suite.ROOT / ".github" / "workflows" / "everything.yml").read_text(encoding="utf-8")
    (line,) = re.findall(r"^ +part: \[(.*)\]$", text, re.MULTILINE)
    assert sorted(line.split(", ")) == sorted(suite.parts())
    assert suite.FUZZ.keys() == KINDS.keys()


def test_a_change_chooses_the_tests_of_its_room() -> None:
    chosen = {
        "ik_addon/live/handlers.py": ["tests/live"],
        "ik_addon/core/compat.py": [
            *("tests/core", "tests/live", "tests/reliability/test_base.py", "tests/reliability/test_safety.py")
        ],
        "ik_addon/solve/solver.py": ["tests/solve"],
        "tests/targets/test_drag.py": ["tests/targets/test_drag.py"],
        "tools/suite.py": ["tests/extension"],
        "docs/guide/limbs.md": ["tests/test_docs.py"],
    }
    assert {name: list(suite.tests_of(name)) for name in chosen} == chosen


def test_where_blender_is_not_set_up_the_window_tests_are_skipped_with_the_reason(tmp_path: Path) -> None:
    tests = [sys.executable, "-m", "pytest", "-q", "tests/window"]
    variables = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    ended = subprocess.run(tests, cwd=environments.ROOT, env=variables, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert (
        f"There is no Blender with a window from Debian {' or '.join(debian.SUITES)}: run `make window`" in ended.stdout
    )
    assert " skipped in" in ended.stdout.splitlines()[-1]
    assert " passed" not in ended.stdout.splitlines()[-1]


# ---- the version is the same everywhere


def test_every_place_names_the_current_version() -> None:
    for name, pattern in version.PLACES:
        found = re.findall(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert set(found) == {version.current()}, name
    assert version.sections()[0][0] == version.current()
