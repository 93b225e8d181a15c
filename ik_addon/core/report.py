"""What came of some work, in sentences and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from .translation.sentences import count


@dataclass(frozen=True)
class Report:
    """What came of some work. The fields are those of its JSON."""

    def sentences(self) -> Iterator[tuple[str, bool]]:
        """Yield sentences, and whether each needs attention."""
        raise NotImplementedError

    @property
    def message(self) -> str:
        """The whole report in sentences."""
        return ". ".join(text for text, _is_remarkable in self.sentences())

    @property
    def entry(self) -> dict[str, Any]:
        """The report as JSON can hold it."""
        return {**asdict(self), "message": self.message}


def count_of_frames(number: int) -> str:
    """Return a number of frames in words."""
    return count(number, "1 frame", "{count} frames")
