"""Drive a Blender window: mouse, keys, screenshots and the state of the program."""

import contextlib
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.environments import ROOT
from tools.window import Inside
from tools.window.session import Session

SAMPLES = ROOT / "sample_blends"
INSIDE = Path(__file__).with_name("inside.py")
"""The module that runs inside Blender."""
WHEEL_UP, WHEEL_DOWN = 4, 5
"""Mouse buttons of X11."""
TURNS = 2
"""Passes of the main loop until Blender is idle: one handles events, the next draws the result."""
ROW = 12
"""Pixels between the places where a button is looked for. Most buttons are 20 high and so are probed about twice,
because a busy Blender sometimes reports that nothing is under the mouse."""
CANCELS = 5
"""How often Escape is pressed to end all running operators."""
SEEN = 1e-5
"""Rounding allowed in places and channels, in meters and radians."""
REACHED = 1e-4
"""A tip nearer to its target than this, in chain lengths, has reached it."""
ROUNDED = 1e-6
"""Rounding error allowed in a channel, which is a 32-bit float."""


class Window:
    """A Blender window, operated with mouse and keyboard as a user does."""

    def __init__(self, session: Session, pictures: Path) -> None:
        """Use a session; screenshots are saved in `pictures`."""
        self.session = session
        self.inside = Inside(session, INSIDE)
        self._pictures = pictures
        self.clicks = 0
        """Number of mouse button presses since the test began."""
        self._places: dict[tuple[Any, ...], tuple[int, int]] = {}
        """The places where buttons were last found."""
        self._name = "start"
        self._read = 0

    def begin(self, name: str) -> None:
        """Begin a test: name its screenshots after it and skip the output printed so far."""
        self.clicks = 0
        self._name = re.sub(r"\W+", "-", name.removeprefix("test_")).strip("-")
        self.printed()
        self.inside.draw_quickly()

    def cancel(self) -> None:
        """Cancel what a failed test has left running, so that the next one begins as usual."""
        self.release()
        for _ in range(CANCELS):
            if not self.inside.running():
                return
            self.tap("Escape")
        raise AssertionError(f"This can't be canceled: {self.inside.running()}")

    def printed(self) -> str:
        """Return what Blender has printed since the last call."""
        text = Path(self.session.log).read_text(encoding="utf-8", errors="replace")
        new, self._read = text[self._read :], len(text)
        return new

    # ---- files

    def open_sample(self, name: str, bone: str) -> None:
        """Open a sample, make a bone active and bring the extension's tab to the front."""
        self.inside.open_file(str(SAMPLES / f"{name}.blend"))
        self.inside.activate(bone)
        self.show_tab()
        self.rest()

    def open_metarig(self) -> None:
        """Open a new file with the human metarig in Pose Mode, and bring the extension's tab to the front."""
        self.inside.new_file()
        self.inside.metarig()
        self.show_tab()

    def show_tab(self) -> None:
        """Bring the extension's tab to the front."""
        if not self.inside.has_tab_in_front("IK"):
            self.session.call("open_sidebar()")
            self.rest()  # the tabs exist only once the sidebar is drawn
            self.inside.show_sidebar("IK")
            self.rest()

    # ---- eyes

    def shot(self, name: str, crop: str | None = None) -> Path:
        """Save a screenshot and return its path; `crop` is a part of the screen such as "200x100+5+7"."""
        path = self._pictures / f"{self._name}-{name}.png"
        self.session.shot(str(path), crop=crop)
        return path

    def state(self, name: str) -> dict[str, Any]:
        """Return everything that can be changed, once Blender is idle; saves a screenshot."""
        self.rest()
        self.shot(name)
        return dict(self.inside.state())

    def rect(self, region: str) -> dict[str, int]:
        """Return where a region such as "UI", the sidebar, is on the screen: x, y, w and h."""
        return dict(self.session.call(f"result = rects()[{region!r}]"))

    def rest(self) -> None:
        """Wait until Blender has handled all input, however long that takes."""
        self.session.x("getmouselocation")  # the X server answers once it has passed on earlier input
        for _ in range(TURNS):
            self.session.call("pass")

    def wait(self, for_what: Callable[[], object], seconds: float = 60.0) -> None:
        """Wait until a condition is true."""
        end = time.monotonic() + seconds
        while not for_what():
            assert time.monotonic() < end, f"this did not happen within {seconds:.0f} s; see the screenshot"
            time.sleep(0.1)

    def assert_undone(self, before: Any, after: Any = None, within: float = 0.0, times: int = 1) -> None:
        """Assert that undo leads back to a state, and redo forward to another one, as often as told."""
        for _ in range(times):
            self.key("ctrl+z")
            assert not differences(self.state("undone"), before, within)
            if after is not None:
                self.key("ctrl+shift+z")
                assert not differences(self.state("redone"), after, within)

    def is_reached(self) -> bool:
        """Return whether all tips have reached their targets."""
        return bool(max(self.inside.misses().values()) < REACHED)

    # ---- hands

    def press(self, operator: str) -> None:
        """Click the button of an operator or setting in the sidebar."""
        self.click_at(*self.find(operator))

    def find(self, what: str, step: int = ROW, **where: Any) -> tuple[int, int]:
        """Scroll down to a button in the sidebar, move the mouse over it and return its place, to within a `step`."""
        # On a busy machine it can be missed on the way down: then once more from the top.
        for scroll in 4 * [(8, WHEEL_DOWN)] + [(60, WHEEL_UP)] + 5 * [(8, WHEEL_DOWN)]:
            with contextlib.suppress(LookupError):
                return self._seek(what, step, **where)
            self.session.x("click", "--repeat", *scroll)
            self.rest()
        raise AssertionError(f"There is no {what} in the sidebar, see the screenshot")

    def find_right(self, what: str) -> tuple[int, int]:
        """Return the place of a button at the right edge of the sidebar, without scrolling."""
        sidebar = self.rect("UI")
        try:
            return self._seek(what, ROW, x=sidebar["x"] + sidebar["w"] - 50)
        except LookupError as error:
            raise AssertionError(f"There is no {what}: {error}") from None

    def _seek(self, what: str, step: int, **where: Any) -> tuple[int, int]:
        # The search moves the mouse down the whole sidebar, so try the last known place first.
        key = (what, *where.items())
        if key in self._places and self.is_at(what, *self._places[key]):
            return self._places[key]
        # On a busy machine Blender's answers lag behind the mouse, so a place may be a row off: retry.
        for _ in range(5):
            place: tuple[int, int] = self.session.find_button(what, step=step, **where)
            if self.is_at(what, *place):
                self._places[key] = place
                return place
        raise LookupError(f"{what} was seen near {place}, and is not there")

    def is_at(self, what: str, x: int, y: int) -> bool:
        """Move the mouse to a place; return whether it is over the button of an operator or setting in the sidebar."""
        self.move(x, y)
        return what in (self.session.call("result = hovered()") or "")

    def middle(self) -> tuple[int, int]:
        """Return a place in the viewport, left of the sidebar."""
        view = self.rect("WINDOW")
        return view["x"] + view["w"] // 3, view["y"] + view["h"] // 2

    def move(self, x: int, y: int) -> None:
        """Move the mouse to a place."""
        self.session.move(x, y, settle=0.0)
        self.rest()

    def key(self, keys: str) -> None:
        """Press a key, or a combination such as "ctrl+z", with the mouse over the viewport."""
        self.move(*self.middle())
        self.tap(keys)

    def tap(self, *keys: str) -> None:
        """Press keys one after the other where the mouse is."""
        self.session.key(*keys, settle=0.0)
        self.rest()

    def paste(self, text: str) -> None:
        """Paste into the text field being edited: unlike typing, this redraws Blender only once."""
        self.session.call(f"bpy.context.window_manager.clipboard = {text!r}")
        self.tap("ctrl+v")

    def click(self, button: int = 1) -> None:
        """Click at the mouse, waiting for Blender after press and release; button 1 is left, 3 is right."""
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
        """Move the mouse by (x, y) pixels from the `middle`."""
        self._glide(self.middle(), x, y)

    def pull(self, start: tuple[int, int], x: int, y: int) -> None:
        """Press the left button at a place and move the mouse by (x, y) pixels; `release` ends the drag."""
        self.move(*start)
        self.clicks += 1
        self.session.x("mousedown", 1)
        self._glide(start, x, y)

    def _glide(self, start: tuple[int, int], x: int, y: int, steps: int = 6) -> None:
        for step in range(1, steps + 1):
            self.session.move(start[0] + x * step // steps, start[1] + y * step // steps, settle=0.0)
            self.session.call("pass")
        self.rest()

    def drag(self, start: tuple[int, int], x: int, y: int) -> None:
        """Drag from a place by (x, y) pixels."""
        self.pull(start, x, y)
        self.release()

    @contextlib.contextmanager
    def holding(self, key: str) -> Iterator[None]:
        """Hold a key down while the code inside runs."""
        self.session.x("keydown", key)
        yield
        self.session.x("keyup", key)
        self.rest()

    def confirm(self, operator: str, **options: Any) -> None:
        """Start an operator as a menu does, and confirm its dialog."""
        self.move(*self.middle())
        self.inside.start(operator, options)
        self.rest()
        self.shot(operator.rpartition(".")[2])
        self.tap("Return")

    def release(self) -> None:
        """Release the left button."""
        self.session.x("mouseup", 1)
        self.rest()

    def grab(self, operator: str, x: int, y: int) -> None:
        """Start an operator with the mouse at the `middle`, then `sweep`."""
        self.move(*self.middle())
        self.inside.start(operator)
        self.sweep(x, y)


def pixels(picture: Path) -> NDArray[np.int16]:
    """Return the colors of a picture, (pixels, 3), 0 to 255."""
    command = ["convert", str(picture), "-alpha", "off", "-depth", "8", "rgb:-"]
    raw = subprocess.run(command, check=True, capture_output=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, 3).astype(np.int16)


def changed(a: NDArray[np.int16], b: NDArray[np.int16]) -> int:
    """Return the number of pixels that clearly differ between two pictures."""
    return int(np.count_nonzero(np.abs(a - b).max(axis=1) > 8))


def differences(a: Any, b: Any, within: float = 0.0, path: str = "") -> list[str]:
    """List the differences of two states, one readable line each; floats may differ by `within`."""
    if isinstance(a, dict) and isinstance(b, dict):
        names: Iterable[Any] = sorted({*a, *b})
        return [line for name in names for line in differences(a.get(name), b.get(name), within, f"{path}.{name}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        found = [differences(x, y, within, f"{path}[{i}]") for i, (x, y) in enumerate(zip(a, b, strict=True))]
        return [line for lines in found for line in lines]
    if a == b or (isinstance(a, float) and isinstance(b, float) and abs(a - b) <= within):
        return []
    return [f"{path}: {a} is not {b}"]
