"""How much the tab shows: little at first, and the rest folded."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import bpy
import pytest

from tests import rigs, rigs_named
from tests.panels import Panel, sidebar
from tests.reliability.states import activate
from tests.rigs_named import RIGS

if TYPE_CHECKING:
    from tests.conftest import Addon

__all__ = ["sidebar"]
TAB = "VIEW3D_PT_ik_addon"
LETTERS = 38
"""Letters in a line of a message."""


class Layout:
    """Takes what panels draw and counts rows and controls: without a window there is no other layout."""

    def __init__(self, beside: bool = False) -> None:
        self.__dict__.update(beside=beside, parts=[], controls=0)

    def __setattr__(self, name: str, value: object) -> None:
        pass

    @property
    def rows(self) -> int:
        """The rows that it takes: those of its highest part, or of all of them."""
        heights = [part.rows if isinstance(part, Layout) else part for part in self.parts]
        return max(heights, default=0) if self.beside else sum(heights)

    @property
    def whole(self) -> int:
        """The number of controls in it."""
        return self.controls + sum(part.whole for part in self.parts if isinstance(part, Layout))

    def __getattr__(self, kind: str) -> Any:
        def draw(*arguments: Any, **options: Any) -> Any:
            if kind in {"row", "split", "column", "box"}:
                part = Layout(kind in {"row", "split"})
                self.parts.append(part)
                return part
            if kind not in {"separator", "separator_spacer"}:
                self.parts.append(options["rows"] if kind == "template_list" else 1)
                self.__dict__["controls"] += kind != "label"
            return Layout()  # takes the settings of an operator

        return draw


def panels() -> Iterator[Any]:
    """Yield the panels of the tab, parents before the panels in them."""
    every = [cls for name in dir(bpy.types) if name.startswith(TAB) and (cls := getattr(bpy.types, name))]

    def below(name: str) -> Iterator[Any]:
        for cls in every:
            if getattr(cls, "bl_parent_id", "") == name:
                yield cls
                yield from below(cls.bl_idname)

    yield getattr(bpy.types, TAB)
    yield from below(TAB)


def size(every_fold: bool) -> tuple[int, int]:
    """Return how many rows and controls the tab shows, with folded panels closed or open; a header is one row."""
    rows = controls = 0
    closed: set[str] = set()
    for cls in panels():
        is_hidden = hasattr(cls, "poll") and not cls.poll(bpy.context)
        if is_hidden or getattr(cls, "bl_parent_id", "") in closed:
            closed.add(cls.bl_idname)
            continue
        rows += 1
        if "DEFAULT_CLOSED" in getattr(cls, "bl_options", set()) and not every_fold:
            closed.add(cls.bl_idname)
            continue
        layout = Layout()
        Panel(cls, layout).draw(bpy.context)
        rows, controls = rows + layout.rows, controls + layout.whole
    return rows, controls


@pytest.fixture
def figure(addon: Addon, monkeypatch: pytest.MonkeyPatch, sidebar: None) -> bpy.types.Object:
    """Return a figure in Pose Mode, drawn in the sidebar of a viewport as wide as Blender opens it."""
    monkeypatch.setattr(addon.module("ui.text"), "wrapped", lambda text, _width, _of: textwrap.wrap(text, LETTERS))
    for module in ("chain", "main", "limits"):
        monkeypatch.setattr(addon.module(f"ui.panels.{module}"), "is_narrow", lambda _context: False)
    ob = rigs_named.build(RIGS["Mixamo"])
    activate(ob, "mixamorig:LeftForeArm")
    bpy.ops.object.mode_set(mode="POSE")
    return ob


def test_without_chains_the_tab_shows_how_to_begin(figure: bpy.types.Object) -> None:
    rows, controls = size(every_fold=False)
    assert controls == 3, "Set Up Character, Add Chain, Pose Body"
    assert rows <= 6
    find: Any = bpy.utils.preset_find  # the stubs do not know its result
    bpy.ops.ik_addon.preset_apply(filepath=find("Human_Elbow", "ik_addon"))
    assert size(every_fold=False) == (rows, controls), "Limits is folded, with limits or without"


def test_with_an_arm_the_tab_shows_what_everybody_needs(figure: bpy.types.Object) -> None:
    assert bpy.ops.ik_addon.chain_add() == {"FINISHED"}
    rows, controls = size(every_fold=False)
    assert rows <= 22
    assert controls <= 20
    assert size(every_fold=True)[0] <= 60


def test_the_tab_names_its_armature_where_several_are_posed(figure: bpy.types.Object) -> None:
    alone = size(every_fold=False)
    other, _target = rigs.arm()
    bpy.context.view_layer.objects.active = other
    bpy.ops.object.mode_set(mode="POSE")
    bpy.context.view_layer.objects.active = figure
    assert other.mode == figure.mode == "POSE"
    assert size(every_fold=False) == (alone[0] + 1, alone[1])
