"""The development tools: what they tell where something is missing, and how they count tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import environments, suite, window
from tools.environments import ToolError, find_python

THIS = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def no_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH of a machine without Python and pyenv."""
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
    def test_a_shim_that_does_not_run_is_no_python(self, no_python: Path) -> None:
        program(no_python / "python3.99", "echo 'pyenv: python3.99: command not found' >&2; exit 127")
        with pytest.raises(ToolError, match=r"Python 3\.99 .* was not found.*pyenv install 3\.99"):
            find_python("3.99")

    def test_another_version_of_that_name_is_not_taken(self, no_python: Path) -> None:
        program(no_python / "python3.99", "echo 3.98")
        with pytest.raises(ToolError, match=r"Python 3\.99"):
            find_python("3.99")

    def test_is_found_on_the_path(self, no_python: Path) -> None:
        program(no_python / "python3.99", "echo 3.99")
        assert find_python("3.99") == no_python / "python3.99"

    def test_is_found_in_pyenv_though_the_shim_does_not_run(self, no_python: Path) -> None:
        program(no_python / "python3.99", "exit 127")
        kept = no_python / ".pyenv" / "versions" / "3.99.2" / "bin" / "python"
        program(kept, "echo 3.99")
        assert find_python("3.99") == kept


def test_the_running_python_will_do() -> None:
    assert environments._version(find_python(THIS)) == THIS


def test_last_line_of_a_run_adds_up_all_versions(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite tests="9" failures="1" errors="2" skipped="3"/></testsuites>', encoding="utf-8"
    )
    assert str(suite._read(report) + suite.Outcome(passed=10)) == "13 passed, 3 failed, 3 skipped"


def test_a_run_without_report_has_passed_nothing(tmp_path: Path) -> None:
    assert suite._read(tmp_path / "missing.xml") == suite.Outcome()


def test_without_a_driver_the_window_tests_are_skipped_with_the_reason(tmp_path: Path) -> None:
    tests = [sys.executable, "-m", "pytest", "-q", "tests/window"]
    variables = {**os.environ, window.RUNNER: str(tmp_path / "nothing")}
    ended = subprocess.run(tests, cwd=environments.ROOT, env=variables, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"There is no driver for a Blender with a window: {window.RUNNER} names {tmp_path}" in ended.stdout
    assert " skipped in" in ended.stdout.splitlines()[-1]
    assert " passed" not in ended.stdout.splitlines()[-1]
