"""Files with goals for a body: their contents are read, and errors say where they are."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.documents import DOCS

if TYPE_CHECKING:
    from tests.conftest import Addon

HAND = {"bone": "hand.L", "location": [1, 2.5, 0]}


def read(addon: Addon, path: Path, content: Any) -> Any:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return addon.module("posing.script").read(path)


def test_reads_all_fields(addon: Addon, tmp_path: Path) -> None:
    content = {
        "armature": "Rig",
        "space": "ARMATURE",
        "root": "hips",
        "pins": [{"bone": "foot.L"}, {"bone": "foot.R", "rotation": False}],
        "frames": [
            {"frame": -3, "goals": [HAND, {**HAND, "use_tail": True, "rotation": [0, 2, 0, 0]}]},
            {"frame": 10, "pins": []},
        ],
    }
    script = read(addon, tmp_path / "goals.json", content)
    assert (script.armature, script.space.value, script.root) == ("Rig", "ARMATURE", "hips")
    first, second = script.frames
    assert (first.number, second.number) == (-3, 10)
    assert first.pins == {"foot.L": {"LOCATION", "ROTATION"}, "foot.R": {"LOCATION"}}
    assert second.pins == {}
    head, tail = first.goals
    assert (head.bone, head.location, head.rotation, head.use_tail) == ("hand.L", (1.0, 2.5, 0.0), None, False)
    assert (tail.rotation, tail.use_tail) == ((0.0, 1.0, 0.0, 0.0), True)
    assert script.bones == {"hips", "foot.L", "foot.R", "hand.L"}


def test_the_example_in_the_documentation_is_valid(addon: Addon, tmp_path: Path) -> None:
    page = (DOCS / "command_line.md").read_text(encoding="utf-8").partition("## Posing whole bodies")[2]
    blocks = [textwrap.dedent(block) for block in re.findall(r"(?:^ {4}.*\n)+", page, re.MULTILINE)]
    (example,) = (block for block in blocks if block.startswith("{"))
    script = read(addon, tmp_path / "goals.json", example)
    assert [frame.number for frame in script.frames] == [1, 12, 24]
    assert script.frames[2].pins["head"] == {"ROTATION"}


def test_omitted_fields_are_left_to_pose_body(addon: Addon, tmp_path: Path) -> None:
    script = read(addon, tmp_path / "goals.json", {"frames": [{"frame": 1, "goals": [HAND]}]})
    assert (script.armature, script.space.value, script.root.value) == (None, "WORLD", "FOUND")
    assert script.frames[0].pins is None
    assert read(addon, tmp_path / "goals.json", {"root": None, "frames": [{"frame": 1}]}).root.value == "NONE"


def framed(**fields: Any) -> dict[str, Any]:
    return {"frames": [{"frame": 1, "goals": [{**HAND, **fields}]}]}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "is not JSON: Expecting property name"),
        ("\N{NO-BREAK SPACE}", "is not JSON"),
        (100_000 * "[", "is not JSON"),
        ([], "the file must be an object in braces, not []"),
        ({}, "the file has no 'frames'"),
        ({"frames": []}, "'frames' is empty"),
        ({"frames": {}}, "frames must be a list in brackets, not {}"),
        ({"frames": [{}]}, "frames[0] has no 'frame'"),
        ({"frames": [{"frame": 1.5}]}, "frames[0].frame must be a whole number"),
        ({"frames": [{"frame": True}]}, "frames[0].frame must be a whole number"),
        ({"frames": [{"frame": 10**9}]}, "frames[0].frame must be a whole number from -1048574 to 1048574"),
        (
            {"frames": [{"frame": 2}, {"frame": 2}]},
            "frames[1] (frame 2) follows frame 2. List frames in ascending order",
        ),
        ({"frames": [{"frame": 1}], "bones": []}, "has an unknown field 'bones'. Known fields: 'frames', "),
        ({"frames": [{"frame": 1}], "space": "LOCAL"}, '\'space\' must be "WORLD" or "ARMATURE", not "LOCAL"'),
        ({"frames": [{"frame": 1}], "space": []}, "'space' must be"),
        ({"frames": [{"frame": 1}], "armature": ""}, "armature must be the name of an armature object"),
        ({"frames": [{"frame": 1}], "root": 1}, "root must be null, or the name of a bone, not 1"),
        ({"frames": [{"frame": 1}], "pins": [{"bone": "a"}, {"bone": "a"}]}, "pins has the pin of 'a' twice"),
        ({"frames": [{"frame": 1, "pins": [{"bone": "a", "location": 1}]}]}, "pins[0].location must be true or false"),
        ({"frames": [{"frame": 1, "goals": [HAND, HAND]}]}, "frames[0].goals has the head of 'hand.L' twice"),
        ({"frames": [{"frame": 1, "goals": [{"bone": "a"}]}]}, "goals[0] has neither a 'location' nor a 'rotation'"),
        (
            framed(location=None, rotation=[1, 0, 0, 0], use_tail=True),
            "frames[0].goals[0] has 'use_tail', but no 'location' for the tail",
        ),
        (framed(location=[1, 2]), "frames[0].goals[0].location must be a list of 3 finite numbers, not [1, 2]"),
        (framed(location=[1, 2, float("nan")]), "location must be a list of 3 finite numbers"),
        (framed(location=[1, 2, True]), "location must be a list of 3 finite numbers"),
        (framed(location=[1, 2, 10**400]), "location must be a list of 3 finite numbers"),
        (framed(rotation=[0, 0, 0, 0]), "frames[0].goals[0].rotation must be a nonzero quaternion"),
        (framed(rotation=[0, 0, 0]), "rotation must be a list of 4 finite numbers"),
        (framed(locaton=1), "has an unknown field 'locaton'"),
        (framed(bone=7), "frames[0].goals[0].bone must be the name of a bone, not 7"),
    ],
)
def test_errors_say_where_they_are(addon: Addon, tmp_path: Path, content: Any, sentence: str) -> None:
    path = tmp_path / "goals.json"
    with pytest.raises(addon.module("posing.script").ScriptError) as error:
        read(addon, path, content)
    assert str(error.value).startswith(f"'{path}'")
    assert sentence in str(error.value)
    assert len(str(error.value)) < 400


def test_a_missing_or_binary_file_is_reported(addon: Addon, tmp_path: Path) -> None:
    script = addon.module("posing.script")
    with pytest.raises(script.ScriptError, match=r"can't be read \(No such file"):
        script.read(tmp_path / "nowhere.json")
    (tmp_path / "picture.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(script.ScriptError, match="is not JSON"):
        script.read(tmp_path / "picture.json")
