"""Installing, enabling and disabling the extension: silently, completely and without a trace."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tools.environments import ROOT


@dataclass(frozen=True)
class Life:
    """What `lifecycle.py` recorded."""

    steps: dict[str, list[str]] = field(repr=False)
    printed: str

    def added(self, step: str) -> list[str]:
        """Return what Blender contained at `step` that it had not contained before the installation."""
        return sorted((Counter(self.steps[step]) - Counter(self.steps["before"])).elements())

    def lost(self, step: str) -> list[str]:
        """Return what Blender no longer contained at `step`."""
        return sorted((Counter(self.steps["before"]) - Counter(self.steps[step])).elements())


@pytest.fixture(scope="module")
def life(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Life:
    folder = tmp_path_factory.mktemp("lifecycle")
    report = folder / "report.json"
    script = Path(__file__).with_name("lifecycle.py")
    run = subprocess.run(
        [sys.executable, str(script), str(package), str(folder / "blender"), str(report)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    if run.returncode:
        pytest.fail(run.stdout, pytrace=False)
    return Life(json.loads(report.read_text(encoding="utf-8")), run.stdout)


def test_only_the_installation_is_printed(life: Life) -> None:
    # Blender polls the installing process for messages, and misses the last one on a busy machine.
    assert set(life.printed.splitlines()) <= {'STATUS Installed "ik_addon"'}


def test_enabling_adds_the_public_names(life: Life) -> None:
    added = life.added("installed")
    assert "property PoseBone.ik_addon" in added
    assert "property Object.ik_addon" in added
    assert "operator ik_addon.solve" in added
    assert any(line.startswith("handler frame_change_post bl_ext.user_default.ik_addon.") for line in added)


def test_no_foreign_module_is_imported(life: Life) -> None:
    assert life.steps["outside modules"] == []


def test_handlers_survive_loading_a_file(life: Life) -> None:
    assert life.added("file loaded") == life.added("installed")


@pytest.mark.parametrize("step", ["disabled", "disabled thrice", "unregistered twice"])
def test_disabling_leaves_no_trace(life: Life, step: str) -> None:
    assert life.added(step) == []
    assert life.lost(step) == []


@pytest.mark.parametrize("step", ["enabled thrice", "registered twice", "enabled after factory settings"])
def test_enabling_again_adds_nothing_more(life: Life, step: str) -> None:
    assert life.added(step) == life.added("installed")


def test_factory_settings_leave_no_trace(life: Life) -> None:
    # Blender's own add-ons are enabled again by then, too.
    own = [line for line in life.added("factory settings") if "ik_addon" in line.lower()]
    assert own == []
