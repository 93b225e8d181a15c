"""Renders from a window with Lock Interface show the solved pose and leave the file unchanged."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.window.driving import INSIDE, Window, changed, differences, pixels
from tools.window import Program

FIRST, LAST = 10, 14
"""Frame range of the small scene."""


@pytest.fixture
def small(window: Window, scene: Path) -> Window:
    """Open the small scene, with Lock Interface on, on a frame that is not rendered."""
    window.inside.open_file(str(scene))
    window.show_tab()
    window.inside.go_to(30)
    return window


def render(window: Window, keys: str) -> None:
    """Render with a shortcut, wait for the end, and close the render window."""
    before = window.inside.count_renders()
    window.key(keys)
    window.wait(lambda: window.inside.count_renders() > before, 120.0)
    window.shot("rendered")
    window.inside.close_other_windows()
    window.rest()


@pytest.fixture(scope="session")
def expected(program: Program, nobody: Path, baked: Path) -> dict[tuple[str, int], NDArray[np.int16]]:
    """Pictures of the baked scene by engine and frame, rendered in the background without the extension."""
    wanted = [("CYCLES", frame) for frame in (FIRST, LAST)]
    wanted += [("WORKBENCH", frame) for frame in range(FIRST, LAST + 1)]
    paths = {(engine, frame): baked.with_name(f"expected-{engine}-{frame}.png") for engine, frame in wanted}
    program.ask(nobody, baked, INSIDE, "render_stills", {str(path): job for job, path in paths.items()})
    return {job: pixels(path) for job, path in paths.items()}


def stills(window: Window, engine: str, path: Path) -> dict[int, NDArray[np.int16]]:
    """Render the last and the first frame of the open scene and check that the scene is unchanged."""
    window.inside.choose_engine(engine)
    before = window.state("before")
    found = {}
    for frame in (LAST, FIRST):
        window.inside.go_to(frame)
        render(window, "F12")
        window.inside.save_render(str(path))
        found[frame] = pixels(path)
    window.inside.go_to(before["frame"])
    assert not differences(window.state("after"), before)
    assert changed(found[FIRST], found[LAST]) > 100, "a wrong pose would be seen"
    return found


def test_a_still_shows_the_solved_pose(
    small: Window, expected: dict[tuple[str, int], NDArray[np.int16]], scratch: Path
) -> None:
    for frame, picture in stills(small, "CYCLES", scratch / "still.png").items():
        assert changed(picture, expected["CYCLES", frame]) == 0


def test_an_eevee_still_shows_the_solved_pose(window: Window, scene: Path, baked: Path, scratch: Path) -> None:
    """Compared with the baked scene in the same process, because compiling the shaders takes long in each one."""
    found = []
    for file in (baked, scene):
        window.inside.open_file(str(file))
        window.show_tab()
        window.inside.go_to(30)
        found.append(stills(window, "EEVEE", scratch / "still.png"))
    for frame in (FIRST, LAST):
        assert changed(found[0][frame], found[1][frame]) == 0


def test_an_animation_shows_the_solved_poses(
    small: Window, expected: dict[tuple[str, int], NDArray[np.int16]], scratch: Path
) -> None:
    small.inside.choose_engine("WORKBENCH")
    small.inside.set_output(str(scratch / "animation-"))
    before = small.state("before")
    render(small, "ctrl+F12")
    assert not differences(small.state("after"), before)
    for frame in range(FIRST, LAST + 1):
        picture = pixels(scratch / f"animation-{frame:04}.png")
        assert changed(picture, expected["WORKBENCH", frame]) == 0, f"frame {frame}"


def test_every_frame_and_subframe_is_rendered_as_the_viewport_shows_it(small: Window) -> None:
    small.inside.choose_recorder()
    before = small.state("before")
    render(small, "ctrl+F12")
    assert not differences(small.state("after"), before)
    found = small.inside.recorded()
    assert [frame for frame, _rendered, _shown in found] == [FIRST + i / 2.0 for i in range(2 * (LAST - FIRST + 1))]
    for frame, rendered, shown in found:
        assert not differences(rendered, shown, 1e-6), f"frame {frame}"
