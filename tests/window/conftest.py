"""The real program, with and without a window: `make window` sets it up and runs these tests.

They are skipped where it is not set up, see `tools/window`. All tests share one window, in which the built zip is
installed as a new user does it. Each test begins with its own file and checks Blender's data, never pixels alone.
Screenshots go to `build/window/`; if a test fails, one gets its name.
"""

import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.window.driving import INSIDE, SAMPLES, Window
from tools import window as tools_window
from tools.environments import ROOT, ToolError

PICTURES = ROOT / "build" / "window"
FAILED = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """A folder that the program sees under the same path."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=PICTURES) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def program() -> tools_window.Program:
    """The real program."""
    try:
        return tools_window.program()
    except ToolError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def zipped(package: Path, scratch: Path) -> Path:
    """Path of the extension's zip in a folder that the program can read."""
    return Path(shutil.copy(package, scratch))


@pytest.fixture(scope="session")
def farm(program: tools_window.Program, zipped: Path, scratch: Path) -> Path:
    """A user folder with the extension, installed from the command line."""
    user = scratch / "farm"
    ended = program.run(user, "--command", "extension", "install-file", "-r", "user_default", "--enable", zipped)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return user


@pytest.fixture(scope="session")
def nobody(scratch: Path) -> Path:
    """A user folder without the extension."""
    return scratch / "nobody"


@pytest.fixture(scope="session")
def scene(program: tools_window.Program, farm: Path, scratch: Path) -> Path:
    """The two-bone arm sample, made small and quick to render, with a keyed bone in its chain."""
    path = scratch / "scene.blend"
    program.ask(farm, SAMPLES / "two_bone_arm.blend", INSIDE, "make_small_scene", str(path))
    return path


@pytest.fixture(scope="session")
def baked(program: tools_window.Program, farm: Path, scene: Path, scratch: Path) -> Path:
    """The small scene, baked from the command line."""
    path = scratch / "baked.blend"
    ended = program.run(farm, "-b", scene, "--command", "ik_bake", "--output", path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return path


@pytest.fixture(scope="session")
def _window(program: tools_window.Program, zipped: Path, scratch: Path) -> Iterator[Window]:
    with program.opened(scratch / "user") as session:
        window = Window(session, PICTURES)
        assert window.inside.install(str(zipped))
        yield window


@pytest.fixture
def window(_window: Window, request: pytest.FixtureRequest) -> Iterator[Window]:
    """The window; asserts that no exception is printed while a test runs."""
    _window.begin(request.node.name)
    yield _window
    if request.node.stash.get(FAILED, False):
        _window.shot("failed")
        _window.cancel()
    assert "Traceback" not in _window.printed(), _window.printed()


@pytest.fixture
def arm(window: Window) -> Window:
    """The window with the two-bone arm sample, in Pose Mode."""
    window.open_sample("two_bone_arm", "forearm")
    return window


@pytest.fixture
def live(arm: Window) -> Window:
    """The same, live."""
    arm.inside.set_live(True)
    return arm


@pytest.fixture
def spider(window: Window) -> Window:
    """The window with the spider sample, in Pose Mode: eight legs and a keyed body."""
    window.open_sample("spider", "tibia.L.1")
    return window


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record for the fixtures that a test failed."""
    report = yield
    if report.when == "call" and report.failed:
        item.stash[FAILED] = True
    return report
