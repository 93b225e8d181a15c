"""Translated sentences, and the catalogs that they come from."""

import json
from collections import Counter
from pathlib import Path
from string import Formatter

import pytest

from tests.conftest import Addon
from tools import catalogs, texts
from tools.environments import ToolError


def fields(text: str) -> Counter[str]:
    return Counter(name for _literal, name, _spec, _conversion in Formatter().parse(text) if name is not None)


def compiled(folder: Path, text: str) -> dict[tuple[str, str], str]:
    """Return what the extension would ship of a catalog."""
    (folder / "xx.po").write_text(text, encoding="utf-8")
    catalogs.write(folder, folder)
    return {
        (context, english): other for context, english, other in json.loads((folder / "xx.json").read_text("utf-8"))
    }


def test_translations_have_the_fields_of_their_originals(addon: Addon) -> None:
    reader = addon.module("core.translation.catalogs")
    paths = sorted(reader.FOLDER.glob("*.json"))
    assert {path.stem for path in paths} >= {"de", "fr"}
    broken = []
    for path in paths:
        for (context, english), other in reader.read(path).items():
            plural = Counter({"count": 1}) if context[-1].isdigit() else Counter()  # one may be said without its number
            if fields(english) | plural != fields(other) | plural and english != "Plural-Forms":
                broken.append(f"{path.stem}: {english!r} has the fields {sorted(fields(english))}, {other!r} has not")
    assert broken == []


def test_german_is_whole(addon: Addon) -> None:
    """`python3 tools/dev.py translations de` lists what is missing, ready to be pasted."""
    reader = addon.module("core.translation.catalogs")
    assert texts.everything() - {english for _context, english in reader.read(reader.FOLDER / "de.json")} == set()


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


def test_a_catalog_is_read_as_gettext_reads_it(tmp_path: Path) -> None:
    text = (
        'msgid ""\nmsgstr ""\n"Language: xx\\n"\n\n#: a comment\nmsgid "One \\"thing\\""\nmsgstr "Ein »Ding«"\n'
        '\nmsgid ""\n"Two "\n"lines"\nmsgstr ""\n"Zwei "\n"Zeilen"\n\nmsgid "Not yet"\nmsgstr ""\n'
        '\n#, fuzzy\nmsgid "Guessed"\nmsgstr "Geraten"\n\nmsgctxt "Operator"\nmsgid "Lock"\nmsgstr "Sperren"\n'
        '\n#~ msgid "Gone"\n#~ msgstr "Weg"\n'
    )
    found = compiled(tmp_path, text)
    assert {english for _context, english in found} == {'One "thing"', "Two lines", "Lock"}
    assert found["*", "Two lines"] == "Zwei Zeilen"
    assert [context for context, english in found if english == "Lock"] == ["Operator"]


def test_plurals_follow_the_rule_of_their_language(
    addon: Addon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = addon.module("core.translation.sentences")
    rule = "nplurals=3; plural=n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2;"
    one, more = "1 test bone", "{count} test bones"
    entry = f'msgid "{one}"\nmsgid_plural "{more}"\n' + "".join(
        f'msgstr[{i}] "{{count}} {word}"\n' for i, word in enumerate(("кость", "кости", "костей"))
    )
    found = compiled(tmp_path, f'msgid ""\nmsgstr "Plural-Forms: {rule}\\n"\n\n{entry}')
    # Blender as a module has no languages.
    monkeypatch.setattr(sentences, "_translated", lambda text, context="*": found.get((context, text), text))
    said = [str(sentences.count(n, one, more)) for n in (1, 3, 5, 21)]
    assert said == ["1 кость", "3 кости", "5 костей", "21 кость"]


def test_a_broken_catalog_is_refused(tmp_path: Path) -> None:
    entry = 'msgid "a"\nmsgstr "b"\n'
    for text in ('"b"', 'msgstr "b"', f"{entry}\n{entry}"):
        with pytest.raises(ToolError):
            compiled(tmp_path, text)
