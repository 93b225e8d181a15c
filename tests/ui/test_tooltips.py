"""Everything under the mouse has a tooltip, and every disabled button says why it is disabled."""

from collections.abc import Iterator
from typing import Any

import bpy
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import activate
from tools.texts import UNSEEN

ANYWHERE = {"ik_addon.lock_interface", "ik_addon.fix"}
"""Operators that need no armature."""


def classes(addon: Addon, base: type) -> list[Any]:
    """Return the classes that the extension registers of one kind."""
    return [cls for cls in addon.module("registration").CLASSES if issubclass(cls, base)]


def described(properties: Any) -> Iterator[tuple[str, str]]:
    """Yield names and descriptions of visible properties, and of the choices they offer."""
    for prop in properties:
        if prop.is_hidden or prop.identifier in {"rna_type", "name"}:
            continue
        yield prop.identifier, prop.description
        if prop.type == "ENUM":
            yield from ((f"{prop.identifier}: {item.identifier}", item.description) for item in prop.enum_items)


def assert_said(texts: dict[str, str]) -> None:
    silent = [name for name, text in texts.items() if not text or text.endswith(".") or text[0].islower()]
    assert not silent, silent


def test_operators_have_tooltips(addon: Addon) -> None:
    found = classes(addon, bpy.types.Operator)
    assert len(found) > 15
    for cls in found:
        name = cls.bl_idname.split(".")[1]
        rna = getattr(bpy.ops.ik_addon, name).get_rna_type()
        assert_said({name: rna.description})
        assert_said({f"{name}.{prop}": text for prop, text in described(rna.properties)})


def test_settings_have_tooltips(addon: Addon) -> None:
    found = [cls for cls in classes(addon, bpy.types.PropertyGroup) if cls.__name__ not in UNSEEN]
    assert len(found) >= 4
    for cls in found:
        texts = dict(described(cls.bl_rna.properties))
        assert_said({f"{cls.__name__}.{name}": text for name, text in texts.items() if name != "base"})


def test_labels_are_in_title_case(addon: Addon) -> None:
    small = {"to", "of", "by", "from", "and", "or", "in", "the", "at", "for", "a"}
    for cls in [*classes(addon, bpy.types.Operator), *classes(addon, bpy.types.Panel), *classes(addon, bpy.types.Menu)]:
        words = cls.bl_label.split()
        assert words, cls.__name__
        assert all(word[0].isupper() or word in small for word in words), cls.bl_label


@pytest.mark.parametrize("state", ["nothing", "a mesh", "no bone", "no chain"])
def test_disabled_buttons_say_why(addon: Addon, state: str) -> None:
    if state == "a mesh":
        bpy.context.view_layer.objects.active = rigs.mesh("Mesh", [], [])
    if state in ("no bone", "no chain"):
        ob = rigs.limb(rigs.straight(2), ["a", "b"])
        activate(ob, "b" if state == "no chain" else None)
    disabled = 0
    for cls in classes(addon, bpy.types.Operator):
        operator = getattr(bpy.ops.ik_addon, cls.bl_idname.split(".")[1])
        if cls.bl_idname in ANYWHERE or operator.poll():
            continue
        disabled += 1
        with pytest.raises(RuntimeError) as said:
            operator()
        reason = str(said.value).split("poll() ", 1)[1].strip()
        assert len(reason) > 10, (cls.bl_idname, reason)
        assert "failed, context is incorrect" not in reason, cls.bl_idname
    assert disabled > 3
