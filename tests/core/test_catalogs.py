"""Translated sentences, and the catalogs that they come from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from tests.conftest import Addon
from tools.texts import PRODUCT


@pytest.fixture
def catalogs(addon: Addon) -> Any:
    return addon.module("core.translation.catalogs")


def fields(text: str) -> Counter[str]:
    return Counter(name for _literal, name, _spec, _conversion in Formatter().parse(text) if name is not None)


def test_translations_have_the_fields_of_their_originals(catalogs: Any) -> None:
    paths = sorted((PRODUCT / "core" / "translation" / "catalogs").glob("*.po"))
    assert paths
    broken = []
    for path in paths:
        for english, other in catalogs.read(path).items():
            if fields(english) != fields(other):
                broken.append(f"{path.name}: {english!r} has the fields {sorted(fields(english))}, {other!r} has not")
    assert broken == []


def test_a_sentence_without_a_translation_is_english(addon: Addon) -> None:
    sentences = addon.module("core.translation.sentences")
    assert sentences.say("'{bone}' has {{no}} translation", bone="a{b}") == "'a{b}' has {no} translation"
    assert sentences.say("100% of {this} as it is") == "100% of {this} as it is"
    assert [sentences.count(n, "1 thing", "{count} things") for n in (0, 1, 2)] == ["0 things", "1 thing", "2 things"]
    assert str(sentences.UserError("'{bone}' is gone", bone="hand")) == "'hand' is gone"


def test_a_message_is_recognized_whatever_it_says_in_another_language(addon: Addon) -> None:
    sentences = addon.module("core.translation.sentences")
    loop, other = "{first} and {second} are in a loop", "{first} and {second} are fine"
    said = sentences.say(loop, first="'a'", second="'b'")
    assert said == "'a' and 'b' are in a loop"
    assert sentences.is_one_of(said, other, loop)
    assert not sentences.is_one_of(said, other)
    assert not sentences.is_one_of("'a' and 'b' are in a loop", loop), "anybody could write that"


def test_a_catalog_is_read_as_gettext_reads_it(catalogs: Any, tmp_path: Path) -> None:
    path = tmp_path / "xx.po"
    path.write_text(
        'msgid ""\nmsgstr ""\n"Language: xx\\n"\n\n#: a comment\nmsgid "One \\"thing\\""\nmsgstr "Ein »Ding«"\n'
        '\nmsgid ""\n"Two "\n"lines"\nmsgstr ""\n"Zwei "\n"Zeilen"\n\nmsgid "Not yet"\nmsgstr ""\n',
        encoding="utf-8",
    )
    assert catalogs.read(path) == {'One "thing"': "Ein »Ding«", "Two lines": "Zwei Zeilen"}


def test_a_broken_catalog_is_refused(catalogs: Any, tmp_path: Path) -> None:
    path = tmp_path / "xx.po"
    entry = 'msgid "a"\nmsgstr "b"\n'
    for text in ('msgid "a"\nmsgstr "b', 'msgstr "b"', '"b"', f'{entry}msgstr "c"', f"{entry}\n{entry}", "msgid a"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=r"xx\.po"):
            catalogs.read(path)
