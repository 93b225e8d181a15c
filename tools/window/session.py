"""A Blender in a window on a screen of its own, with a mouse, a keyboard, and Python inside it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tools.environments import ToolError

AGENT = Path(__file__).with_name("agent.py")
PATIENCE = 120
"""Seconds that Blender gets to start, and for each answer."""
SETTLE = 0.3
"""Seconds that Blender gets by default to handle input."""
TAB = 16
"""Pixels between the places where a tab is looked for."""


class Session:
    """A running Blender; a context manager that ends it."""

    def __init__(self, command: Callable[[Sequence[str | Path], str], list[str]], size: str, log: Path) -> None:
        """Start a screen of a `size` such as "1000x700x24", and Blender on it, whose output goes to `log`.

        Args:
            command: returns the command that starts Blender with arguments, on a display.
            size: width, height and depth.
            log: the file.

        Raises:
            ToolError: the screen or Blender does not start.
        """
        self.log = log
        self._started: list[subprocess.Popen[bytes]] = []
        try:
            self._display = self._screen(size)
            with socket.create_server(("127.0.0.1", 0)) as server:
                server.settimeout(0.2)
                arguments = ("--python", AGENT, "--", str(server.getsockname()[1]))
                with log.open("w") as output:
                    blender = subprocess.Popen(
                        command(arguments, self._display), stdout=output, stderr=subprocess.STDOUT
                    )
                self._started.append(blender)
                self._link = self._accept(server, blender)
            self._link.settimeout(PATIENCE)
            self._replies = self._link.makefile("rb")
            self.call("pass")
        except BaseException:
            self.close()
            raise

    def _screen(self, size: str) -> str:
        """Start an X server without hardware and return its display."""
        told, tell = os.pipe()
        options = ("-displayfd", str(tell), "-screen", "0", size, "-nolisten", "tcp", "-dpi", "96")
        try:
            self._started.append(
                subprocess.Popen(
                    ["Xvfb", *options], pass_fds=[tell], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )
        finally:
            os.close(tell)
        with os.fdopen(told) as number:
            display = number.readline().strip()
        if not display:
            raise ToolError("There is no screen: Xvfb does not start.")
        return f":{display}"

    def _accept(self, server: socket.socket, blender: subprocess.Popen[bytes]) -> socket.socket:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and blender.poll() is None:
            try:
                return server.accept()[0]
            except TimeoutError:
                continue
        raise ToolError(f"Blender does not answer:\n{self._tail()}")

    def _tail(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-3000:]

    def __enter__(self) -> Session:
        """Return itself."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """End Blender."""
        self.close()

    def close(self) -> None:
        """End Blender and its screen."""
        for process in reversed(self._started):
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._started.clear()

    # ---- Python

    def call(self, code: str) -> Any:
        """Run code in Blender's main loop, with the functions of `agent`, and return what it assigns to `result`.

        Raises:
            ToolError: the code raised an error, or Blender has ended.
        """
        self._link.sendall(json.dumps({"code": code}).encode() + b"\n")
        reply = self._replies.readline()
        if not reply:
            raise ToolError(f"Blender has ended:\n{self._tail()}")
        found = json.loads(reply)
        if "error" in found:
            raise ToolError(found["error"])
        return found["result"]

    def idle(self, seconds: float = SETTLE) -> None:
        """Wait, then until Blender handles requests."""
        time.sleep(seconds)
        self.call("pass")

    # ---- hands and eyes

    def x(self, *arguments: object) -> str:
        """Run xdotool with arguments and return what it prints."""
        return self._on_screen("xdotool", *arguments)

    def _on_screen(self, *command: object) -> str:
        variables = {**os.environ, "DISPLAY": self._display}
        return subprocess.run(
            [str(part) for part in command], env=variables, check=True, capture_output=True, text=True
        ).stdout

    def move(self, x: int, y: int, *, settle: float = 0.1) -> None:
        """Move the mouse to a place, from beside it, because Blender looks at what is under a mouse that moves."""
        self.x("mousemove", x + 1, y, "mousemove", x, y)
        time.sleep(settle)

    def key(self, *keys: str, settle: float = SETTLE) -> None:
        """Press keys, or combinations such as "ctrl+z", one after the other."""
        self.x("key", *keys)
        time.sleep(settle)

    def shot(self, path: str, crop: str | None = None) -> None:
        """Save a picture of the screen, or of a part such as "200x100+5+7"."""
        self._on_screen("import", "-window", "root", *(("-crop", crop, "+repage") if crop else ()), path)

    # ---- the sidebar

    def click_tab(self, name: str) -> None:
        """Click a tab of the sidebar, found by clicking all of them from the top.

        Raises:
            LookupError: there is none of that name.
        """
        self.call("open_sidebar()")
        self.idle()
        strip = self.call("result = rects()['UI']")
        for y in range(strip["y"] + TAB, strip["y"] + strip["h"], TAB):
            self.move(strip["x"] + strip["w"] - 10, y)
            self.x("click", 1)
            self.idle(0.1)
            if self.call("result = tab()") == name:
                self.idle()
                return
        raise LookupError(f"The sidebar has no tab {name}.")

    def find_button(self, what: str, step: int = 6, x: int | None = None) -> tuple[int, int]:
        """Move the mouse down the sidebar until it has crossed a button, and return the place in its middle.

        Args:
            what: a part of what `hovered` tells of the button.
            step: pixels between the places where it is looked for.
            x: the column; by default the middle of the panels.

        Raises:
            LookupError: it is not there; the message tells what is.
        """
        sidebar = self.call("result = rects()['UI']")
        column = sidebar["x"] + sidebar["w"] // 2 - 10 if x is None else x
        seen: list[str] = []
        rows: list[int] = []
        found = ""
        for y in range(sidebar["y"] + 2, sidebar["y"] + sidebar["h"], step):
            self.move(column, y, settle=0.03)
            here = self.call("result = hovered()") or ""
            if rows and here != found:  # the next row may hold a button like it
                break
            if what in here:
                found = here
                rows.append(y)
            seen += [here] if here and here not in seen[-1:] else []
        if not rows:
            raise LookupError(f"{what} is not at x = {column}; this is: {seen}")
        return column, (rows[0] + rows[-1]) // 2
