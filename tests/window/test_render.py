"""Rendering from a window with Lock Interface: what is rendered is the solved pose, and the file stays as it was."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.window.driving import INSIDE, Window, changed, differences, pixels
from tools.window import Program

FIRST, LAST = 10, 14
"""Of the small scene."""


@pytest.fixture
def small(window: Window, scene: Path) -> Window:
    """The window with the small scene, Lock Interface on, on a frame that is not rendered."""
    window.inside.open_file(str(scene))
    window.show_tab()
    window.inside.go_to(30)
    return window


def render(window: Window, keys: str) -> None:
    """Render by the keys for it and wait for the end; the window that shows the render is closed."""
    before = window.inside.count_renders()
    window.key(keys)
    window.wait(lambda: window.inside.count_renders() > before, 120.0)
    window.shot("rendered")
    window.inside.close_other_windows()
    window.rest()


def expected(
    program: Program, user: Path, baked: Path, engine: str, frames: Iterable[int]
) -> dict[int, NDArray[np.int16]]:
    """Frames of the baked scene, rendered without the extension and without a window."""
    paths = {frame: baked.with_name(f"expected-{engine}-{frame}.png") for frame in frames}
    jobs = {str(path): (engine, frame) for frame, path in paths.items() if not path.exists()}
    if jobs:
        program.ask(user, baked, INSIDE, "render_stills", jobs)
    return {frame: pixels(path) for frame, path in paths.items()}


@pytest.mark.parametrize("engine", ["WORKBENCH", "EEVEE", "CYCLES"])
def test_a_still_shows_the_solved_pose(
    small: Window, program: Program, nobody: Path, baked: Path, scratch: Path, engine: str
) -> None:
    small.inside.choose_engine(engine)
    before = small.state("before")
    pictures = expected(program, nobody, baked, engine, (FIRST, LAST))
    assert changed(pictures[FIRST], pictures[LAST]) > 100, "a wrong pose would be seen"
    for frame in (LAST, FIRST):
        small.inside.go_to(frame)
        render(small, "F12")
        path = scratch / f"{engine}-{frame}.png"
        small.inside.save_render(str(path))
        assert changed(pixels(path), pictures[frame]) == 0
    small.inside.go_to(before["frame"])
    assert not differences(small.state("after"), before)


def test_an_animation_shows_the_solved_poses(
    small: Window, program: Program, nobody: Path, baked: Path, scratch: Path
) -> None:
    small.inside.choose_engine("WORKBENCH")
    small.inside.set_output(str(scratch / "animation-"))
    before = small.state("before")
    render(small, "ctrl+F12")
    assert not differences(small.state("after"), before)
    for frame, picture in expected(program, nobody, baked, "WORKBENCH", range(FIRST, LAST + 1)).items():
        assert changed(pixels(scratch / f"animation-{frame:04}.png"), picture) == 0, f"frame {frame}"


def test_every_frame_and_subframe_has_the_pose_of_the_viewport(small: Window) -> None:
    small.inside.choose_recorder()
    before = small.state("before")
    render(small, "ctrl+F12")
    assert not differences(small.state("after"), before)
    found = small.inside.recorded()
    assert [frame for frame, _rendered, _shown in found] == [FIRST + i / 2.0 for i in range(2 * (LAST - FIRST + 1))]
    for frame, rendered, shown in found:
        assert not differences(rendered, shown, 1e-6), f"frame {frame}"
