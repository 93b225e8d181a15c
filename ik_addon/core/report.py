"""What came of some work, in sentences and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from .translation.sentences import count
from .untyped import Json


class Remark(str):
    """A sentence that needs attention."""

    __slots__ = ()


@dataclass(frozen=True)
class Report:
    """What came of some work. The fields are those of its JSON."""

    def sentences(self) -> Iterator[str]:
        """Yield sentences, those that need attention as remarks."""
        raise NotImplementedError

    @property
    def message(self) -> str:
        """The whole report in sentences."""
        return ". ".join(self.sentences())

    @property
    def needs_attention(self) -> bool:
        """Whether any sentence does."""
        return any(isinstance(sentence, Remark) for sentence in self.sentences())

    @property
    def entry(self) -> Json:
        """The report as JSON can hold it."""
        return {**asdict(self), "message": self.message}


def count_of_frames(number: int) -> str:
    """Return a number of frames in words."""
    return count(number, "1 frame", "{count} frames")


def percent(fraction: float) -> str:
    """Format a fraction as a percentage, with only as many digits as are meaningful."""
    value = 100.0 * fraction
    return ">1000%" if value > 1000.0 else f"{rounded(value)}%"


def rounded(value: float) -> str:
    """Format a percentage, or an angle in degrees, with only as many digits as are meaningful."""
    if 0.0 < value < 0.1:
        return "<0.1"
    return f"{value:.0f}" if value >= 10.0 else f"{value:.2g}"
