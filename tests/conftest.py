"""How the tests meet Blender.

`make test` runs everything on each supported Blender; `make test BPY=5.2.3 ARGS="-k limits"` on one, and less.

Tests below `tests/solve` need numpy alone and import the source tree: `from ik_addon.solve import ...`.

All other tests run in a Blender (the `bpy` wheel) that has the built zip installed and enabled in a fresh user folder,
and each starts with an empty scene. They import `bpy` at the top as usual, and the extension's modules through the
fixture `addon`, so that they test what a user has installed:

    import bpy

    def test_solves(addon: Addon) -> None:
        live = addon.module("live.handlers")             # ik_addon/live/handlers.py of the installed extension
        bpy.ops.ik_addon.solve()

`Addon` is for annotations only: `from tests.conftest import Addon` below `if TYPE_CHECKING:`. Fixtures:

- `addon`: the installed extension, see `Addon`.
- `package`: the path of the built zip; needs no enabled extension.
- `clean_scene`: the scene of an empty file, with the extension enabled; in use without being asked for, but not below
  `tests/extension`, `tests/solve` and `tests/window`. It keeps no object, action, bone or handler of the test before.

Blender prints what a handler, timer or draw callback raises and goes on. A test fails where such a traceback was
printed while it ran; one that wants it says so with `@pytest.mark.expects_traceback`. A RuntimeWarning, as numpy's of
a division by zero, is an error.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tools import blender, extension
from tools.environments import ROOT

if TYPE_CHECKING:
    import bpy

SCRATCH = pytest.StashKey[Path]()
STATUS = pytest.StashKey[int]()

# Their tests ask for what they need: most need no Blender, or one of their own.
WITHOUT_SCENE = (ROOT / "tests" / "extension", ROOT / "tests" / "solve", ROOT / "tests" / "window")


@dataclass(frozen=True)
class Addon:
    """The extension as installed in this process."""

    package: str
    """Blender's name of the extension, as in `bpy.context.preferences.addons`."""
    zip: Path
    """The built extension."""

    def module(self, name: str) -> Any:
        """The installed `ik_addon.NAME`, for example `module("rig.read.sample")`."""
        return importlib.import_module(f"{self.package}.ik_addon.{name}")


@pytest.fixture(scope="session")
def package(pytestconfig: pytest.Config) -> Path:
    """The extension's zip, built from the source tree."""
    return extension.build(pytestconfig.stash[SCRATCH])


@pytest.fixture(scope="session")
def addon(package: Path) -> Iterator[Addon]:
    """The extension, installed into a fresh user folder and enabled."""
    blender.install(package)
    _save_startup_file()
    yield Addon(blender.PACKAGE, package)
    blender.disable()


def _save_startup_file() -> None:
    """Make the factory's startup file, with one workspace of its eleven, that of the user: it is read twice as fast."""
    import bpy

    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    bpy.data.batch_remove([other for other in bpy.data.workspaces if other != bpy.context.workspace])
    bpy.ops.wm.save_homefile()


@pytest.fixture
def clean_scene(addon: Addon) -> bpy.types.Scene:
    """The scene of an empty file with factory settings, the extension enabled."""
    import bpy

    # Unlike `read_factory_settings` this leaves extensions enabled, and takes 3 ms.
    bpy.ops.wm.read_homefile(use_empty=True)
    if not blender.is_enabled():
        blender.enable()
    return bpy.data.scenes[0]


@pytest.fixture(autouse=True)
def _clean_scene_for_blender_tests(request: pytest.FixtureRequest) -> None:
    if not any(folder in request.path.parents for folder in WITHOUT_SCENE):
        request.getfixturevalue("clean_scene")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the folders that Blender uses before any test imports bpy."""
    config.addinivalue_line("markers", "expects_traceback: Blender may print a traceback while this test runs.")
    config.stash[SCRATCH] = Path(tempfile.mkdtemp(prefix="ik-addon-tests-"))
    blender.prepare(config.stash[SCRATCH])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test during which Blender printed a traceback and went on."""
    report = yield
    swallowed = "Traceback (most recent call last)" in report.capstderr
    if report.when == "call" and report.passed and swallowed and not item.get_closest_marker("expects_traceback"):
        report.outcome = "failed"
        report.longrepr = "Blender printed an exception and went on: see what was captured from stderr."
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remember how it went for `pytest_unconfigure`."""
    session.config.stash[STATUS] = int(exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what was made and, where Blender is in the process, leave it at once: see `blender.leave`."""
    if SCRATCH in config.stash:
        shutil.rmtree(config.stash[SCRATCH], ignore_errors=True)
    if "bpy" in sys.modules:
        blender.leave(config.stash.get(STATUS, int(pytest.ExitCode.INTERNAL_ERROR)))
