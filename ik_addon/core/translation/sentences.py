"""Sentences in the language of the interface.

Code writes each sentence where it is used, whole and in English, with named fields for what varies:
`say("'{bone}' is hidden", bone=name)`. Blender itself translates labels, tooltips and names of settings.
"""

from collections.abc import Iterable
from gettext import c2py

from bpy.app.translations import pgettext_rpt

CONTEXT = "IK Chains"
"""Translation context for words that Blender itself translates in another sense, such as Extend."""


PLURALS = "Plural-Forms"
"""Stands for gettext's rule for plurals in a catalog; form N of a plural has the context "IK Chains N"."""


class Said(str):
    """A sentence in the language of the interface. It knows which one it is, also after the language is changed."""

    __slots__ = ("source",)
    source: str
    """The sentence as it is written in the code."""


def say(sentence: str, /, **fields: object) -> str:
    """Return a sentence in the language of the interface, with its fields filled in; see also `is_one_of`."""
    translated = _translated(sentence, CONTEXT)
    if translated == sentence:
        translated = _translated(sentence)
    return _said(sentence, translated, fields)


def count(number: int, one: str, more: str) -> str:
    """Return the sentence for one thing or for `{count}` things, by the plural rule of the interface's language."""
    rule = _translated(PLURALS, CONTEXT)
    if rule != PLURALS:
        translated = _translated(more, f"{CONTEXT} {c2py(rule)(number)}")
        if translated != more:
            return _said(one if number == 1 else more, translated, {"count": number})
    return say(one if number == 1 else more, count=number)


def _translated(text: str, context: str = "*") -> str:
    translated: str = pgettext_rpt(text, context)
    return translated


def _said(sentence: str, translated: str, fields: dict[str, object]) -> Said:
    said = Said(translated.format(**fields) if fields else translated)
    said.source = sentence
    return said


def quoted(names: Iterable[str]) -> str:
    """Return names in quotes, separated by commas."""
    return ", ".join(f"'{name}'" for name in names)


def marked(sentence: str, /) -> str:
    """Mark a sentence as translatable and return it unchanged; `say` translates it later."""
    return sentence


def source_of(text: str) -> str:
    """Return the sentence that a text was said as, as it is written in the code; empty for any other text."""
    return text.source if isinstance(text, Said) else ""


def is_one_of(text: str, *sentences: str) -> bool:
    """Whether a text was said as one of these sentences, which are given as they are written in the code."""
    return source_of(text) in sentences


class UserError(Exception):
    """Raised when something can't be done; the message says why, and what to do."""

    def __init__(self, sentence: str, /, **fields: object) -> None:
        """Translate the message and fill in its fields, as `say` does, unless that was done before."""
        self.message = sentence if isinstance(sentence, Said) else say(sentence, **fields)
        super().__init__(self.message)
