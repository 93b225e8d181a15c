"""How a command ends without a window: exit codes, sentences on stderr, and Ctrl-C."""

import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from ..core.steps import Result
from ..core.translation.sentences import UserError

DONE, MISSED, REFUSED, INCOMPLETE, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes: done; with --strict, a target was not reached or keys play differently; nothing was written; saved, but
not everything that was requested was done; Ctrl-C, nothing was written. See docs/command_line.md."""

GoOn = Callable[[], None]
"""Raises `InterruptError` if Ctrl-C was pressed."""


class CommandError(Exception):
    """The command can't do what was requested; the message says why and what to do."""


class InterruptError(BaseException):
    """The user pressed Ctrl-C; like Python's own, no failure of the work."""


def guarded(work: Callable[[], Result]) -> Result:
    """Run some work and return its result.

    Raises:
        CommandError: the work can't be done, for whatever reason.
        InterruptError: the user pressed Ctrl-C.
    """
    try:
        return work()
    except (CommandError, UserError, OSError, RuntimeError) as error:
        raise CommandError(str(error).strip()) from error
    except Exception as error:  # Blender would exit with 1, which means that the result was not as requested
        traceback.print_exc()
        raise CommandError("Internal error, see above. Nothing was written") from error


def complain(name: str, sentence: str) -> None:
    """Print on stderr what is wrong."""
    print(f"{name}: {sentence}", file=sys.stderr, flush=True)


@contextmanager
def interruptible() -> Iterator[GoOn]:
    """Catch Ctrl-C meanwhile; yields a function that raises `InterruptError` if it was pressed.

    Without a window, Blender only notes the first Ctrl-C, and an exception raised inside a handler would be printed and
    lost. A second Ctrl-C ends the process at once.
    """
    pressed: list[int] = []

    def press(number: int, _frame: FrameType | None) -> None:
        pressed.append(number)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def go_on() -> None:
        if pressed:
            raise InterruptError

    before = signal.signal(signal.SIGINT, press)
    try:
        yield go_on
    finally:
        # Blender's own handler can't be set from Python; all it would do is wait for the second Ctrl-C.
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
