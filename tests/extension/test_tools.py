"""The development tools: what they say if something is missing, how they count tests, and how they show progress."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools import environments, linear_algebra, progress, suite, window
from tools.environments import ToolError, find_python

THIS = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def no_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is the whole PATH of a machine without Python and pyenv."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    return tmp_path


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="the stand-ins are shell scripts")
class TestFindPython:
    def test_a_broken_shim_is_not_taken_for_python(self, no_python: Path) -> None:
        program(no_python / "python3.99", "echo 'pyenv: python3.99: command not found' >&2; exit 127")
        with pytest.raises(ToolError, match=r"Python 3\.99 .* was not found.*pyenv install 3\.99"):
            find_python("3.99")

    def test_another_version_under_that_name_is_not_taken(self, no_python: Path) -> None:
        program(no_python / "python3.99", "echo 3.98")
        with pytest.raises(ToolError, match=r"Python 3\.99"):
            find_python("3.99")

    def test_python_is_found_on_the_path(self, no_python: Path) -> None:
        program(no_python / "python3.99", "echo 3.99")
        assert find_python("3.99") == no_python / "python3.99"

    def test_python_is_found_in_pyenv_despite_a_broken_shim(self, no_python: Path) -> None:
        program(no_python / "python3.99", "exit 127")
        kept = no_python / ".pyenv" / "versions" / "3.99.2" / "bin" / "python"
        program(kept, "echo 3.99")
        assert find_python("3.99") == kept


def test_the_running_python_is_used_if_it_fits() -> None:
    assert environments.python_version(find_python(THIS)) == THIS


def test_the_last_line_of_a_run_totals_all_versions(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite tests="9" failures="1" errors="2" skipped="3"/></testsuites>', encoding="utf-8"
    )
    assert str(suite.read_report(report) + suite.Outcome(passed=10)) == "13 passed, 3 failed, 3 skipped"


def test_a_run_without_a_report_has_passed_nothing(tmp_path: Path) -> None:
    assert suite.read_report(tmp_path / "missing.xml") == suite.Outcome()


SUITE = """
import pytest, time

def test_a(): pass

@pytest.fixture
def broken(): raise ValueError

def test_b(broken): pass

@pytest.mark.parametrize("x", [1, 2])
def test_c(x):
    assert x == 2

@pytest.mark.skip
def test_d(): pass

def test_e():
    time.sleep(3)
"""


def test_a_run_reports_progress_and_failures_while_it_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LONG", 0.0)
    (tmp_path / "test_it.py").write_text(SUITE, encoding="utf-8")
    notes = tmp_path / "notes.txt"
    tests = [sys.executable, "-m", "pytest", "--rootdir", tmp_path, *progress.options(notes), tmp_path]
    with progress.Watch(every=0.2) as watch:
        watch.begin("Blender 9.9", notes)
        while not (first := capsys.readouterr().out):  # before the run has logged anything
            time.sleep(0.05)
        ended = subprocess.run(tests, cwd=environments.ROOT, capture_output=True, text=True, check=False)
        said = (first + capsys.readouterr().out).splitlines()
        watch.end(notes)
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stdout
    assert said[0] == "Blender 9.9: collecting tests"
    failed = [line.partition("FAILED ")[2] for line in said if "FAILED" in line]
    assert failed == ["test_it.py::test_b", "test_it.py::test_c[1]"]
    assert "Blender 9.9: 83% (5 of 6), 2 failed, 0 s in test_it.py::test_e" in said
    assert capsys.readouterr().out == "Blender 9.9: 100% (6 of 6), 2 failed\n"


def test_tests_that_fail_to_collect_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_it.py").write_text("import nothing_of_that_name", encoding="utf-8")
    notes = tmp_path / "notes.txt"
    tests = [sys.executable, "-m", "pytest", "--rootdir", tmp_path, *progress.options(notes), tmp_path]
    with progress.Watch() as watch:
        watch.begin("Blender 9.9", notes)
        subprocess.run(tests, cwd=environments.ROOT, capture_output=True, check=False)
        watch.end(notes)
    assert "Blender 9.9: FAILED test_it.py\n" in capsys.readouterr().out


CRASH = """
import os

def test_a(): pass

def test_b(): os._exit(139)

def test_c(): pass
"""


def test_a_part_that_crashes_is_a_failure_naming_its_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = []
    for name, text in (("sound", "def test_a(): pass"), ("broken", CRASH)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "test_it.py").write_text(text, encoding="utf-8")
        arguments = ("--rootdir", str(folder), str(folder))
        runs.append(suite.Run("Blender 9.9", name, Path(sys.executable), ()).part(name, arguments))
    suite.BUILD.mkdir(exist_ok=True)
    assert suite.together(runs, live=False) == suite.Outcome(passed=1, failed=1)
    said = capsys.readouterr().out
    assert "Blender 9.9: sound: 1 passed, 0 failed, 0 skipped" in said
    assert "Blender 9.9: broken: 0 passed, 1 failed, 0 skipped" in said
    assert "ended with exit code 139 " in said
    assert "It was in test_it.py::test_b; tests still to run: 1." in said


KILLED = """
import os, signal
from pathlib import Path

def test_a():
    times = Path(__file__).with_name("times")
    with times.open("a") as file:
        file.write("x")
    if len(times.read_text()) <= {times}:
        os.kill(os.getpid(), signal.SIGSEGV)

def test_b(): pass
"""


@pytest.mark.skipif(os.name != "posix", reason="there are no signals")
@pytest.mark.parametrize(("times", "passed"), [(1, 2), (2, 0)])
def test_a_killed_part_is_run_once_more(
    times: int, passed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_it.py").write_text(KILLED.replace("{times}", str(times)), encoding="utf-8")
    arguments = ("--rootdir", str(tmp_path), str(tmp_path))
    run = suite.Run("Blender 9.9", "killed", Path(sys.executable), arguments)
    suite.BUILD.mkdir(exist_ok=True)
    expected = suite.Outcome(passed=passed, failed=0 if passed else 1, crashed=times)
    assert suite.together([run], live=False) == expected
    said = capsys.readouterr().out
    assert "Blender 9.9 crashed and is run again" in said
    assert "It was in test_it.py::test_a; tests still to run: 1." in said


def test_parts_of_the_suite_cover_all_of_it() -> None:
    (_name, others), *named = suite.parts()
    folders = [path for _name, chosen in named for path in chosen if not path.startswith("--")]
    once = suite.TEXT_TESTS
    assert sorted(suite.without(path) for path in (*folders, *once)) == sorted(others)
    assert len({*folders, *once}) == len(folders) + len(once)
    for path in (*folders, *once):
        found = environments.ROOT / path
        assert found.is_file() or list(found.rglob("test_*.py")), path
    for _name, chosen in named:
        assert {suite.without(path) for path in once} < set(chosen)


def test_each_part_runs_on_each_blender_and_tests_of_texts_on_one() -> None:
    whole = [suite.Run(name, name, Path(sys.executable), ()) for name in "abc"]
    runs = list(suite.in_parts(whole))
    for _name, arguments in suite.parts():
        assert [run.folder for run in runs if run.arguments == arguments] == ["a", "b", "c"]
    for path in suite.TEXT_TESTS:
        assert [run.folder for run in runs if path in run.arguments] == ["a"]
    assert len(runs) == 3 * len(list(suite.parts())) + 1


@pytest.mark.skipif(os.name != "posix", reason="the stand-ins are shell scripts")
class TestKernels:
    def test_kernels_the_processor_cannot_run_are_left_out(self, tmp_path: Path) -> None:
        program(tmp_path / "python", "kill -ILL $$")
        assert linear_algebra.why_not(tmp_path / "python", "Haswell") == "this processor cannot run the Haswell kernels"

    def test_a_numpy_that_uses_other_kernels_is_left_out(self, tmp_path: Path) -> None:
        program(tmp_path / "python", "echo none")
        reason = "numpy was asked for the Prescott kernels and uses none"
        assert linear_algebra.why_not(tmp_path / "python", "Prescott") == reason

    def test_a_broken_numpy_is_an_error(self, tmp_path: Path) -> None:
        program(tmp_path / "python", "echo 'No module named numpy' >&2; exit 1")
        with pytest.raises(ToolError, match="No module named numpy"):
            linear_algebra.why_not(tmp_path / "python", "Haswell")

    @pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="other processors have other kernels")
    def test_a_numpy_that_uses_the_kernels_is_accepted(self) -> None:
        python = Path(sys.executable)
        if linear_algebra.ask(python) == linear_algebra.NONE:
            pytest.skip("this numpy has no kernels to choose from")
        assert linear_algebra.why_not(python, "Prescott") is None


def test_building_from_source_without_compilers_says_what_is_missing(no_python: Path) -> None:
    with pytest.raises(ToolError, match=r"numpy is built from source.*none of cc, gcc, clang, cl is on the PATH"):
        environments.check_compilers("numpy")


def test_without_a_driver_the_window_tests_are_skipped_with_the_reason(tmp_path: Path) -> None:
    tests = [sys.executable, "-m", "pytest", "-q", "tests/window"]
    variables = {**os.environ, window.RUNNER: str(tmp_path / "nothing")}
    ended = subprocess.run(tests, cwd=environments.ROOT, env=variables, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"There is no driver for a Blender with a window: {window.RUNNER} names {tmp_path}" in ended.stdout
    assert " skipped in" in ended.stdout.splitlines()[-1]
    assert " passed" not in ended.stdout.splitlines()[-1]
