"""Work under way, a bake or a drag, that is put back when somebody saves, opens a file or disables the extension.

None of these waits for the work: a file saved meanwhile would hold whatever frame or pose the work is just looking at.
"""

from collections.abc import Callable
from contextlib import suppress

from bpy.app.handlers import persistent

_under_way: list[Callable[[], None]] = []
"""What puts back each work, oldest first."""


def begin(put_back: Callable[[], None]) -> None:
    """Have `put_back` called when the work is interrupted; it must call `end`."""
    _under_way.append(put_back)


def end(put_back: Callable[[], None]) -> None:
    """Forget the work that `begin` announced; does nothing if it is forgotten."""
    if put_back in _under_way:
        _under_way.remove(put_back)


@persistent
def _interrupt(_file: object, _unused: object = None) -> None:
    """Put back all work under way, the last first."""
    while _under_way:
        with suppress(ReferenceError):  # what was worked on is deleted
            _under_way.pop()()


HANDLERS = (("save_pre", _interrupt), ("load_pre", _interrupt))


def unregister() -> None:
    """Put back all work under way."""
    _interrupt(None)
