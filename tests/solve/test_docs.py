"""Examples of docs/scripting.md that need no Blender."""

import pytest

from tests.documents import Example, examples

EXAMPLES = [example for example in examples("scripting.md") if not example.needs_blender]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_example_prints_what_the_page_says(example: Example) -> None:
    assert example.printed
    assert example.run() == example.printed
