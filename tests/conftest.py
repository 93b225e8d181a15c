"""How the tests use Blender.

`make test` runs all tests on each supported Blender; `make test BPY=5.2.3 ARGS="-k limits"` runs some of them on one.

Tests in `tests/solve` need only numpy and import the source tree: `from ik_addon.solve import ...`.

All other tests run in a Blender (the `bpy` wheel) with the built zip installed and enabled in a fresh user folder, and
each starts with an empty scene. They import `bpy` at the top as usual, and the extension's modules through the fixture
`addon`, so that they test the installed extension:

    import bpy
    from tests.conftest import Addon

    def test_solves(addon: Addon) -> None:
        live = addon.module("live.handlers")             # ik_addon/live/handlers.py of the installed extension
        bpy.ops.ik_addon.solve()

`Addon` is for annotations, like `Capture`, the type of Pytest's fixture `capfd`. Fixtures:

- `addon`: the installed extension, see `Addon`.
- `rigify`: Blender's own add-on, enabled, for its metarigs: see `tests.rigs_generated`.
- `limb`: an arm with a chain, for tests that need no other.
- `package`: the path of the built zip; does not need the extension to be enabled.
- `clean_scene`: the scene of an empty file, with the extension enabled; used automatically, except in
  `tests/extension`, `tests/solve` and `tests/window`. No object, action, bone or handler of an earlier test remains.

When a handler, timer or draw callback raises an error, Blender prints the traceback and goes on. A test fails if a
traceback is printed while it runs, unless it is marked with `@pytest.mark.expects_traceback`. A RuntimeWarning, such as
numpy's about a division by zero, is an error.
"""

from __future__ import annotations

import importlib
import random
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from tools import blender, extension
from tools.environments import ROOT

if TYPE_CHECKING:
    import bpy

T = TypeVar("T")
Capture = pytest.CaptureFixture[str]
SCRATCH = pytest.StashKey[Path]()
STATUS = pytest.StashKey[int]()

# Tests in these folders request their fixtures: most need no Blender, or start their own.
WITHOUT_SCENE = (ROOT / "tests" / "extension", ROOT / "tests" / "solve", ROOT / "tests" / "window")


@dataclass(frozen=True)
class Addon:
    """The extension as installed in this process."""

    package: str
    """The extension's name in Blender, as in `bpy.context.preferences.addons`."""
    zip: Path
    """Path of the built extension."""

    def module(self, name: str) -> Any:
        """Return the installed `ik_addon.NAME`, for example `module("rig.read.sample")`."""
        return importlib.import_module(f"{self.package}.ik_addon.{name}")

    def report(self, ob: bpy.types.Object, tip: str = "lower") -> Any:
        """Return what the panel says of a chain; None if nothing."""
        return self.module("live.reports").get(ob, tip)

    def fix(self, tip: bpy.types.PoseBone) -> Any:
        """Return the help that the panel offers beside a chain."""
        import bpy

        report = self.report(tip.id_data, tip.name)
        return self.module("ui.operators.fixes").fix_of(tip, report, bpy.context.view_layer)


@pytest.fixture(scope="session")
def package(pytestconfig: pytest.Config) -> Path:
    """Return the extension's zip, built from the source tree."""
    return extension.build(pytestconfig.stash[SCRATCH])


@pytest.fixture(scope="session")
def addon(package: Path) -> Iterator[Addon]:
    """Install the extension into a fresh user folder and enable it."""
    import bpy

    # Up to 4.2, `bpy.context` belongs to the scene whose `layer_collection` was last read through it, as Rigify does,
    # and what is set through it is noted there: once another file is open, in memory that was freed.
    owned = bpy.app.handlers.persistent(lambda *_: bpy.context.layer_collection)
    bpy.app.handlers.load_post.append(owned)
    blender.install(package)
    yield Addon(blender.PACKAGE, package)
    blender.disable()
    bpy.app.handlers.load_post.remove(owned)


@pytest.fixture
def bake(addon: Addon) -> Any:
    """Return the room `bake` of the installed extension."""
    return addon.module("bake")


@pytest.fixture
def rigify() -> Iterator[None]:
    """Enable Rigify."""
    import addon_utils
    import bpy

    addon_utils.enable("rigify", default_set=True)
    yield
    addon_utils.disable("rigify", default_set=True)
    for handler in [h for h in bpy.app.handlers.load_post if h.__module__.startswith("rigify")]:
        bpy.app.handlers.load_post.remove(handler)


@pytest.fixture
def limb() -> Any:
    """Return an arm of two bones with a chain and a target, as a `tests.faults.Limb`."""
    from tests import faults, rigs

    return faults.Limb(rigs.arm()[0].pose.bones["lower"])


@pytest.fixture
def clean_scene(addon: Addon) -> bpy.types.Scene:
    """Open an empty file with factory settings and the extension enabled; return its scene."""
    import bpy

    # Unlike `read_factory_settings`, this leaves extensions enabled, and takes only 5 ms.
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    if not blender.is_enabled():
        blender.enable()
    return bpy.data.scenes[0]


@pytest.fixture(autouse=True)
def _clean_scene_for_blender_tests(request: pytest.FixtureRequest) -> None:
    if not any(folder in request.path.parents for folder in WITHOUT_SCENE):
        request.getfixturevalue("clean_scene")


def pytest_configure(config: pytest.Config) -> None:
    """Set the folders that Blender uses before any test imports bpy."""
    config.addinivalue_line("markers", "expects_traceback: Blender may print a traceback while this test runs.")
    config.stash[SCRATCH] = Path(tempfile.mkdtemp(prefix="ik-addon-tests-"))
    blender.prepare(config.stash[SCRATCH])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option to run a part of the cases."""
    parser.addoption("--sample", type=int, default=1, help="run one in so many of the values that a test is run with")


def sampled(values: Sequence[T], config: pytest.Config) -> list[T]:
    """Return the sample of some values that the option asks for: always the same, and at least one."""
    step: int = config.getoption("--sample")
    return list(values) if step == 1 else random.Random(0).sample(values, -(-len(values) // step))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the sample of each test's cases."""
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {item for family in families.values() for item in sampled(family, config)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test during which Blender printed a traceback and went on."""
    report = yield
    swallowed = "Traceback (most recent call last)" in report.capstderr
    if report.when == "call" and report.passed and swallowed and not item.get_closest_marker("expects_traceback"):
        report.outcome = "failed"
        report.longrepr = "Blender printed an exception and went on: see what was captured from stderr."
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Store the exit status for `pytest_unconfigure`."""
    session.config.stash[STATUS] = int(exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove temporary files and, if the process has loaded Blender, exit at once: see `blender.leave`."""
    if SCRATCH in config.stash:
        shutil.rmtree(config.stash[SCRATCH], ignore_errors=True)
    if "bpy" in sys.modules:
        blender.leave(config.stash.get(STATUS, int(pytest.ExitCode.INTERNAL_ERROR)))
