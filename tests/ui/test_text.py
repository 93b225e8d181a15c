from __future__ import annotations

import pytest

from tests.conftest import Addon


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 10, []),
        ("short", 10, ["short"]),
        ("exactly 10", 10, ["exactly 10"]),
        ("exactly 10 and", 10, ["exactly 10", "and"]),
        ("a word-that-is-longer than a line", 10, ["a", "word-that-is-longer", "than a", "line"]),
        ("anything", 0, ["anything"]),
    ],
)
def test_wraps_between_words(addon: Addon, text: str, width: int, lines: list[str]) -> None:
    assert addon.module("ui.text").wrapped(text, width, len) == lines


@pytest.mark.parametrize(
    ("width", "text"), [(20, "12% of its length"), (17, "12% of its length"), (16, "12% off"), (6, "12%"), (1, "12%")]
)
def test_the_longest_text_that_fits_is_chosen(addon: Addon, width: int, text: str) -> None:
    assert addon.module("ui.text").fitting(["12% of its length", "12% off", "12%"], width, len) == text
