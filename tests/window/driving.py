"""The hands and eyes of the window tests."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.environments import ROOT
from tools.window import Inside

SAMPLES = ROOT / "sample_blends"
INSIDE = Path(__file__).with_name("inside.py")
"""What runs in the program itself."""
WHEEL_DOWN = 5
"""A button of the mouse."""
TURNS = 2
"""How often the program goes around its main loop to come to rest: it handles events, then draws what came of them."""
ROW = 12
"""Pixels from one place to the next where a button is looked for. Most buttons, which are 20 high, are so seen twice: a
busy program says now and then that there is nothing."""
REACHED = 1e-4
"""In chain lengths: a tip that is nearer to its target is there."""
ROUNDED = 1e-6
"""What a channel, a float of 32 bits, may be off."""


class Window:
    """A Blender in a window, used as by its user."""

    def __init__(self, session: Any, pictures: Path) -> None:
        """Take over a session of the driver; screenshots go to `pictures`."""
        self.session = session
        self.inside = Inside(session, INSIDE)
        self._pictures = pictures
        self.clicks = 0
        """How often a button of the mouse was pressed since the test began."""
        self._places: dict[tuple[Any, ...], tuple[int, int]] = {}
        """Where buttons were found last."""
        self._name = "start"
        self._read = 0

    def begin(self, name: str) -> None:
        """A test begins: its name is that of its screenshots, and what was printed before it is not its own."""
        self.clicks = 0
        self._name = re.sub(r"\W+", "-", name.removeprefix("test_")).strip("-")
        self.printed()

    def printed(self) -> str:
        """What Blender has printed since this was last asked for."""
        text = Path(self.session.log).read_text(encoding="utf-8", errors="replace")
        new, self._read = text[self._read :], len(text)
        return new

    # ---- files

    def open_sample(self, name: str, bone: str) -> None:
        """Open a sample, with the extension's tab in front and a bone active."""
        self.inside.open_file(str(SAMPLES / f"{name}.blend"))
        self.inside.activate(bone)
        self.show_tab()

    def show_tab(self) -> None:
        """Bring the extension's tab to the front."""
        if not self.inside.has_tab_in_front("IK"):
            self.session.call("open_sidebar()")
            self.rest()  # before it was drawn there are no tabs
            self.inside.show_sidebar("IK")
            self.rest()

    # ---- eyes

    def shot(self, name: str, crop: str | None = None) -> Path:
        """Keep a screenshot, of a part of the screen as in "200x100+5+7"; return its path."""
        path = self._pictures / f"{self._name}-{name}.png"
        self.session.shot(str(path), crop=crop)
        return path

    def state(self, name: str) -> dict[str, Any]:
        """All that can be changed, once the program has come to rest; keeps a screenshot."""
        self.rest()
        self.shot(name)
        return dict(self.inside.state())

    def rest(self) -> None:
        """Let the program do what it was told, however long that takes."""
        self.session.x("getmouselocation")  # an answer from the screen: what was sent to it before has been passed on
        for _ in range(TURNS):
            self.session.call("pass")

    def wait(self, for_what: Callable[[], object], seconds: float = 60.0) -> None:
        """Wait until something is so."""
        end = time.monotonic() + seconds
        while not for_what():
            assert time.monotonic() < end, f"waited {seconds:.0f} s in vain; see the screenshot"
            time.sleep(0.1)

    def is_reached(self) -> bool:
        """Whether all tips are on their targets."""
        return bool(max(self.inside.misses().values()) < REACHED)

    # ---- hands

    def press(self, operator: str) -> None:
        """Find the button of an operator, or of a setting, in the sidebar and click it."""
        self.click_at(*self.find(operator))

    def find(self, what: str, step: int = ROW, **where: Any) -> tuple[int, int]:
        """Where in the sidebar a button is, to within a `step`, with the mouse over it; scrolls down to it."""
        for _ in range(5):
            with contextlib.suppress(LookupError):
                return self._seek(what, step, **where)
            self.session.x("click", "--repeat", 8, WHEEL_DOWN)
            self.rest()
        raise AssertionError(f"There is no {what} in the sidebar, see the screenshot")

    def find_right(self, what: str) -> tuple[int, int]:
        """Where at the right edge of the sidebar a button is, without scrolling."""
        sidebar = self.session.call("result = rects()['UI']")
        try:
            return self._seek(what, ROW, x=sidebar["x"] + sidebar["w"] - 50)
        except LookupError as error:
            raise AssertionError(f"There is no {what}: {error}") from None

    def _seek(self, what: str, step: int, **where: Any) -> tuple[int, int]:
        # To look for a button is to move the mouse down the sidebar: first see whether it is where it was last.
        key = (what, *where.items())
        if key in self._places and self.is_at(what, *self._places[key]):
            return self._places[key]
        # On a busy machine the driver's answers lag behind the mouse, and a place may be a row off: look again.
        for _ in range(5):
            place: tuple[int, int] = self.session.find_button(what, step=step, **where)
            if self.is_at(what, *place):
                self._places[key] = place
                return place
        raise LookupError(f"{what} was seen near {place}, and is not there")

    def is_at(self, what: str, x: int, y: int) -> bool:
        """Whether the button of an operator, or of a setting, is at a place in the sidebar; the mouse is there then."""
        self.move(x, y)
        return what in (self.session.call("result = hovered()") or "")

    def middle(self) -> tuple[int, int]:
        """A place over the viewport, left of the sidebar."""
        view = self.session.call("result = rects()['WINDOW']")
        return view["x"] + view["w"] // 3, view["y"] + view["h"] // 2

    def move(self, x: int, y: int) -> None:
        """Move the mouse to a place."""
        self.session.move(x, y, settle=0.0)
        self.rest()

    def key(self, keys: str) -> None:
        """Press a key, or keys as in "ctrl+z", with the mouse over the viewport."""
        self.move(*self.middle())
        self.tap(keys)

    def tap(self, *keys: str) -> None:
        """Press keys one after the other where the mouse is."""
        self.session.key(*keys, settle=0.0)
        self.rest()

    def paste(self, text: str) -> None:
        """Paste a text where one is entered: Blender draws once, not after each letter."""
        self.session.call(f"bpy.context.window_manager.clipboard = {text!r}")
        self.tap("ctrl+v")

    def click(self, button: int = 1) -> None:
        """Click where the mouse is, slowly enough for a program that takes long to draw: 1 is left, 3 is right."""
        self.clicks += 1
        self.session.x("mousedown", button)
        self.rest()
        self.session.x("mouseup", button)
        self.rest()

    def click_at(self, x: int, y: int) -> None:
        """Click at a place."""
        self.move(x, y)
        self.click()

    def sweep(self, x: int, y: int) -> None:
        """Move the mouse from the middle by so many pixels."""
        self._glide(self.middle(), x, y)

    def pull(self, start: tuple[int, int], x: int, y: int) -> None:
        """Press the left button at a place and move the mouse by so many pixels; `release` ends it."""
        self.move(*start)
        self.clicks += 1
        self.session.x("mousedown", 1)
        self._glide(start, x, y)

    def _glide(self, start: tuple[int, int], x: int, y: int, steps: int = 6) -> None:
        for step in range(1, steps + 1):
            self.session.move(start[0] + x * step // steps, start[1] + y * step // steps, settle=0.0)
            self.session.call("pass")
        self.rest()

    def release(self) -> None:
        """Release the left button."""
        self.session.x("mouseup", 1)
        self.rest()

    def grab(self, operator: str, x: int, y: int) -> None:
        """Start an operator with the mouse over the middle, and sweep."""
        self.move(*self.middle())
        self.inside.start(operator)
        self.sweep(x, y)


def pixels(picture: Path) -> NDArray[np.int16]:
    """The colours of a picture, (pixels, 3), 0 to 255."""
    command = ["convert", str(picture), "-alpha", "off", "-depth", "8", "rgb:-"]
    raw = subprocess.run(command, check=True, capture_output=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, 3).astype(np.int16)


def changed(a: NDArray[np.int16], b: NDArray[np.int16]) -> int:
    """How many pixels of two pictures are clearly different."""
    return int(np.count_nonzero(np.abs(a - b).max(axis=1) > 8))


def differences(a: Any, b: Any, within: float = 0.0, path: str = "") -> list[str]:
    """Where two states differ, readable, for whole states are long; numbers may differ by so much."""
    if isinstance(a, dict) and isinstance(b, dict):
        names: Iterable[Any] = sorted({*a, *b})
        return [line for name in names for line in differences(a.get(name), b.get(name), within, f"{path}.{name}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        found = [differences(x, y, within, f"{path}[{i}]") for i, (x, y) in enumerate(zip(a, b, strict=True))]
        return [line for lines in found for line in lines]
    if a == b or (isinstance(a, float) and isinstance(b, float) and abs(a - b) <= within):
        return []
    return [f"{path}: {a} is not {b}"]
