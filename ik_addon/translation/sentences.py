"""Sentences in the language of the interface.

Each is written where it is said, whole and in English, with named fields for what changes: `say("'{bone}' is hidden",
bone=name)`. Blender itself translates labels, tooltips and the names of settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from string import Formatter
from typing import Any

from bpy.app.translations import pgettext_rpt


def say(sentence: str, /, **fields: object) -> str:
    """A sentence in the language of the interface, with its fields filled in."""
    translate: Any = pgettext_rpt  # the stubs know of no result
    translated: str = translate(sentence)
    return translated.format(**fields) if fields else translated


def count(number: int, one: str, more: str) -> str:
    """A number of things, by the sentence for one or that for `{count}` of them."""
    return say(one if number == 1 else more, count=number)


def quoted(names: Iterable[str]) -> str:
    """Names, as a sentence has them."""
    return ", ".join(f"'{name}'" for name in names)


def marked(sentence: str, /) -> str:
    """A sentence that is translated where it is said, not where it stands."""
    return sentence


def is_like(said: str, sentence: str) -> bool:
    """Whether something that was said is a sentence with its fields filled in, told by what stands around them."""
    around = (re.escape(literal) for literal, *_field in Formatter().parse(say(sentence)))
    return re.match(".+".join(around), said, re.DOTALL) is not None


class UserError(Exception):
    """Something can't be done: the sentences say why, and what to do."""

    def __init__(self, sentence: str, /, **fields: object) -> None:
        """Say it as `say` does."""
        super().__init__(say(sentence, **fields))
