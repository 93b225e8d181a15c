"""Where the user guide is on this computer."""

from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "guide.html"
"""What the build makes of the source."""
SOURCE = Path(__file__).parents[2] / "docs" / "guide.md"
"""What a checkout has."""


def url() -> str:
    """Return the address of the guide."""
    return (PAGE if PAGE.exists() else SOURCE).as_uri()
