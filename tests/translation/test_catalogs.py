"""Translation catalogs: entries that are missing, obsolete or broken."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

import pytest

from tests.translation import texts

if TYPE_CHECKING:
    from tests.conftest import Addon

CATALOGS = {path.stem: path for path in sorted((texts.PRODUCT / "translation" / "catalogs").glob("*.po"))}
COMPLETE = {"de"}
"""Languages in which everything is translated."""
IN_PIECES = {
    "controls/bones.py": "names of meshes",
    "registration.py": "the console",
    "setup/new_chain.py": "names of objects",
    "setup/own_target.py": "names of objects",
    "setup/profile.py": "tooltips that nobody sees",
}
"""Modules that build texts from pieces, and the purpose of those texts."""


@pytest.fixture
def catalogs(addon: Addon) -> Any:
    return addon.module("translation.catalogs")


@pytest.fixture
def shown(addon: Addon) -> set[str]:
    return texts.everything(addon)


def entry(text: str) -> str:
    """Return an untranslated entry, to be added to a catalog."""
    return f"\nmsgid {json.dumps(text, ensure_ascii=False)}\nmsgstr {json.dumps('')}"


def fields(text: str) -> Counter[str]:
    return Counter(name for _literal, name, _spec, _conversion in Formatter().parse(text) if name is not None)


def test_there_is_a_complete_language_and_an_incomplete_one() -> None:
    assert CATALOGS.keys() > COMPLETE


@pytest.mark.parametrize("language", sorted(COMPLETE))
def test_no_entry_is_missing(catalogs: Any, shown: set[str], language: str) -> None:
    assert len(shown) > 400
    missing = sorted(shown - catalogs.read(CATALOGS[language]).keys())
    assert not missing, f"{language}.po lacks {len(missing)} entries:\n" + "\n".join(map(entry, missing))


@pytest.mark.parametrize("language", CATALOGS)
def test_no_entry_is_obsolete(catalogs: Any, shown: set[str], language: str) -> None:
    extra = sorted(catalogs.read(CATALOGS[language]).keys() - shown)
    assert not extra, f"{language}.po has entries for what is not shown any more:\n" + "\n".join(map(entry, extra))


@pytest.mark.parametrize("language", CATALOGS)
def test_translations_have_the_originals_fields_and_punctuation(catalogs: Any, language: str) -> None:
    broken = []
    for english, other in catalogs.read(CATALOGS[language]).items():
        if fields(english) != fields(other):
            broken.append(f"{english!r} has the fields {sorted(fields(english))}, {other!r} {sorted(fields(other))}")
        if other != other.strip() or "  " in other or other.endswith(".") != english.endswith("."):
            broken.append(f"{other!r} has spaces or a full stop that {english!r} has not, or the other way round")
    assert not broken, "\n".join(broken)


def test_sentences_are_not_built_from_pieces() -> None:
    pieces = {name: lines for name, tree in texts.modules() if (lines := sorted(texts.put_together(tree)))}
    found = [f"{name}:{line}" for name, lines in pieces.items() if name not in IN_PIECES for line in lines]
    assert not found, f"say these with `say` and named fields: {found}"
    assert pieces.keys() >= IN_PIECES.keys(), "what is not needed any more"


def test_a_sentence_without_a_translation_is_english(addon: Addon) -> None:
    sentences = addon.module("translation.sentences")
    assert sentences.say("'{bone}' has {{no}} translation", bone="a{b}") == "'a{b}' has {no} translation"
    assert sentences.say("100% of {this} as it is") == "100% of {this} as it is"
    assert [sentences.count(n, "1 thing", "{count} things") for n in (0, 1, 2)] == ["0 things", "1 thing", "2 things"]
    assert str(sentences.UserError("'{bone}' is gone", bone="hand")) == "'hand' is gone"


def test_a_message_is_recognized_whatever_it_says_in_another_language(addon: Addon) -> None:
    sentences = addon.module("translation.sentences")
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


@pytest.mark.parametrize(
    "text",
    [
        'msgid "a"\nmsgstr "b',
        'msgstr "b"',
        '"b"',
        'msgid "a"\nmsgstr "b"\nmsgstr "c"',
        'msgid "a"\nmsgstr "b"\n\nmsgid "a"\nmsgstr "c"',
        "msgid a",
    ],
)
def test_a_broken_catalog_is_refused(catalogs: Any, tmp_path: Path, text: str) -> None:
    path = tmp_path / "xx.po"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"xx\.po"):
        catalogs.read(path)
