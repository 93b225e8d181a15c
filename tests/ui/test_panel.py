"""What the panel shows, and when; that it can be drawn is seen in a window only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import bpy
import pytest

from tests import rigs
from tests.operators.states import activate

if TYPE_CHECKING:
    from tests.conftest import Addon

PANELS = ("VIEW3D_PT_ik_addon", "VIEW3D_PT_ik_addon_chains", "VIEW3D_PT_ik_addon_chain", "VIEW3D_PT_ik_addon_accuracy")


def shown() -> list[str]:
    """The panels that are shown now."""
    classes: list[Any] = [getattr(bpy.types, name) for name in PANELS]
    return [cls.__name__ for cls in classes if not hasattr(cls, "poll") or cls.poll(bpy.context)]


@pytest.mark.parametrize("name", PANELS)
def test_panels_are_in_the_tab(name: str) -> None:
    panel = getattr(bpy.types, name)
    assert (panel.bl_idname, panel.bl_category) == (name, "IK")
    assert (panel.bl_space_type, panel.bl_region_type) == ("VIEW_3D", "UI")


def test_without_an_armature_there_is_the_main_panel_alone() -> None:
    bpy.context.view_layer.objects.active = None
    assert shown() == list(PANELS[:1])


def test_settings_are_shown_for_the_active_chain() -> None:
    ob, target = rigs.arm()
    activate(ob, None)
    assert shown() == list(PANELS[:2])
    activate(ob, "upper")
    assert shown() == list(PANELS)
    bpy.ops.object.mode_set(mode="EDIT")
    assert shown() == list(PANELS[:1])
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = target
    assert shown() == list(PANELS[:1])


def test_settings_stay_while_a_target_of_add_chain_is_active() -> None:
    ob, _target = rigs.arm()
    activate(ob, "lower")
    bpy.ops.ik_addon.chain_remove()
    bpy.ops.ik_addon.chain_add()
    bpy.context.view_layer.objects.active = ob.pose.bones["lower"].ik_addon.target
    assert shown() == list(PANELS)


def test_states_of_a_chain(addon: Addon) -> None:
    panel, reports = addon.module("ui.panel"), addon.module("reports")
    ob, target = rigs.arm()
    tip = ob.pose.bones["lower"]

    def state() -> tuple[str, str]:
        icon, text = panel.state_of(tip, reports.get(ob, "lower"))
        return icon, text

    assert state() == ("RADIOBUT_OFF", "Not solved yet")
    bpy.ops.ik_addon.solve()
    assert state() == ("CHECKMARK", "Reached")
    target.location = (0.0, 0.0, 9.0)
    bpy.ops.ik_addon.solve()
    assert state()[0] == "TRACKER"
    assert state()[1].startswith("Too far by")
    tip.ik_addon.target = None
    with pytest.raises(RuntimeError):
        bpy.ops.ik_addon.solve()
    assert state() == ("ERROR", "No target: choose the object that the tip shall follow")
    tip.ik_addon.enabled = False
    assert state() == ("CHECKBOX_DEHLT", "Off")
