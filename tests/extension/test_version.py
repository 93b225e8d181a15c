"""The version is the same everywhere, and one command changes it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tools import version
from tools.environments import ROOT, ToolError

NAMED = [path for path, _pattern in version.PLACES]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the files that name the version to another folder."""
    for name in (*NAMED, version.CHANGELOG):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def texts(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text(encoding="utf-8") for name in (*NAMED, version.CHANGELOG)}


def test_every_place_names_the_current_version() -> None:
    for name, pattern in version.PLACES:
        found = re.findall(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert set(found) == {version.current()}, name
    assert version.sections()[0][0] == version.current()


def test_changelog_versions_descend_and_only_the_newest_is_unreleased() -> None:
    numbers = [tuple(map(int, number.split("."))) for number, _date in version.sections()]
    assert numbers == sorted(set(numbers), reverse=True)
    dates = [date for _number, date in version.sections() if date != version.UNRELEASED]
    assert dates == sorted(dates, reverse=True)
    assert len(dates) >= len(numbers) - 1
    headings = re.findall(r"^## .*$", (ROOT / version.CHANGELOG).read_text(encoding="utf-8"), re.MULTILINE)
    assert len(headings) == len(numbers)


def test_one_command_writes_a_version_everywhere_and_changes_nothing_else(copy: Path) -> None:
    before, old = texts(copy), version.current(copy)
    version.write("98.7.65", root=copy)
    after = texts(copy)
    assert version.current(copy) == "98.7.65"
    for name in NAMED:
        assert "98.7.65" in after[name]
        assert after[name].replace("98.7.65", old) == before[name]
    assert after[version.CHANGELOG].replace("## [98.7.65] - Unreleased\n\n", "") == before[version.CHANGELOG]
    assert version.sections(copy)[0] == ("98.7.65", "Unreleased")
    assert version.write("98.7.65", root=copy) == []


def test_a_date_releases_a_version_only_once(copy: Path) -> None:
    version.write("98.7.65", root=copy)
    assert "98.7.65" not in version.released(copy)
    assert version.write("98.7.65", "2099-12-31", copy) == [version.CHANGELOG]
    assert version.released(copy)[0] == "98.7.65"
    assert len([number for number, _date in version.sections(copy) if number == "98.7.65"]) == 1
    with pytest.raises(ToolError, match="released before"):
        version.write("98.7.65", root=copy)
