"""The preferences: what they change, and that an operator's explicit options override them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import bpy
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.faults import Limb
from tests.panels import Layout, Panel
from tests.reliability.states import activate, add


@pytest.fixture
def preferences(addon: Addon) -> Iterator[Any]:
    """Return the user's preferences; the defaults are restored afterwards."""
    own = bpy.context.preferences.addons[addon.package].preferences
    assert own is not None
    yield own
    own = bpy.context.preferences.addons[addon.package].preferences
    for name in own.bl_rna.properties.keys():  # noqa: SIM118 - a collection of Blender
        if name not in {"rna_type", "bl_idname"}:
            own.property_unset(name)
    addon.module("core.preferences").rename()


def test_panels_move_to_another_tab_and_back(addon: Addon, preferences: Any) -> None:
    every = addon.module("registration").CLASSES
    panels = [cls for cls in every if issubclass(cls, bpy.types.Panel) and hasattr(cls, "bl_category")]
    assert len(panels) > 5
    for name, shown in (("Animation", "Animation"), ("  Rig ", "Rig"), ("", "IK")):
        preferences.tab = name
        assert {panel.bl_category for panel in panels} == {shown}
        assert all(panel.is_registered for panel in panels)
        assert getattr(bpy.types, "VIEW3D_PT_ik_addon_chain").bl_parent_id == "VIEW3D_PT_ik_addon"  # noqa: B009


def test_the_chosen_tab_is_used_when_the_extension_is_enabled_again(addon: Addon, preferences: Any) -> None:
    registration = addon.module("registration")
    preferences.tab = "Animation"
    registration.unregister()
    registration.register()
    assert bpy.types.VIEW3D_PT_ik_addon.bl_category == "Animation"


def test_the_extension_can_be_enabled_again_after_an_error(addon: Addon, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("no room")

    registration = addon.module("registration")
    registration.unregister()
    with monkeypatch.context() as patch:
        patch.setattr(registration.bake_command, "register", fail)
        with pytest.raises(OSError, match="no room"):
            registration.register()
    assert not hasattr(bpy.types, "VIEW3D_PT_ik_addon")
    registration.register()
    assert hasattr(bpy.types, "VIEW3D_PT_ik_addon")


def test_add_chain_takes_omitted_options_from_the_preferences(addon: Addon, preferences: Any, limb: Limb) -> None:
    bpy.ops.ik_addon.chain_remove()
    preferences.with_pole, preferences.controls = False, "BONES"
    chain = add(limb.ob, "lower")
    assert (chain.pole, chain.target, bool(chain.target_bone)) == (None, limb.ob, True)
    bpy.ops.ik_addon.chain_remove()
    bpy.ops.ik_addon.chain_add(with_pole=True, controls="EMPTIES")
    assert chain.pole is not None
    assert chain.target not in (None, limb.ob)


def test_set_up_character_takes_omitted_options_from_the_preferences(addon: Addon, preferences: Any) -> None:
    ob = rigs.limb([(0.2, 0, 1), (0.2, -0.05, 0.5), (0.2, 0, 0.1)], ["thigh.L", "shin.L"])
    rigs.add_bones(ob, [(-0.2, 0, 1), (-0.2, -0.05, 0.5), (-0.2, 0, 0.1)], ["thigh.R", "shin.R"])
    activate(ob, "thigh.L")
    preferences.with_pole = False
    bpy.ops.ik_addon.character_setup(live=False)
    chain = ob.pose.bones["shin.L"].ik_addon
    assert chain.target is not None
    assert chain.pole is None


def test_colors_are_the_themes_until_changed(addon: Addon, preferences: Any) -> None:
    colors, theme = addon.module("ui.overlay.geometry"), bpy.context.preferences.themes[0]
    assert colors.palette(theme, preferences) == colors.themed(theme)
    preferences.use_theme = False
    preferences.color_reached, preferences.color_reach = (0.25, 0.5, 0.75), (0.5, 0.25, 1.0)
    found = colors.palette(theme, preferences)
    assert found.states[addon.module("ui.overlay.geometry").State.REACHED] == (0.25, 0.5, 0.75, 1.0)
    assert found.reach[:3] == (0.5, 0.25, 1.0)
    assert found.reach[3] < 1.0


def test_sizes_scale_with_the_resolution(addon: Addon, preferences: Any) -> None:
    preferences.line_width, preferences.point_size = 4.0, 9.0
    sizes = addon.module("ui.overlay.geometry").Sizes.of(preferences, 2.0)
    assert (sizes.wide, sizes.thin, sizes.dot) == (8.0, 3.0, 18.0)


def test_without_an_entry_in_blenders_preferences_defaults_are_used(addon: Addon) -> None:
    """A script can register the extension without enabling it."""
    data = addon.module("core.preferences")
    defaults = data._defaults()
    own = bpy.context.preferences.addons[addon.package].preferences
    assert (defaults.tab, defaults.controls, defaults.with_pole) == (own.tab, own.controls, own.with_pole)
    assert tuple(defaults.color_reached) == tuple(own.color_reached)
    assert defaults.line_width == own.line_width


def test_keys_can_be_shown_and_assigned_in_the_keymap(addon: Addon) -> None:
    keymap = addon.module("core.preferences")
    keymaps = bpy.context.window_manager.keyconfigs.addon.keymaps
    found = {item.idname: item for item in keymaps["Pose"].keymap_items}
    assert set(keymap.UNASSIGNED) < set(found)
    assert {found[operator].type for operator in keymap.UNASSIGNED} == {"NONE"}, "no key is taken without being asked"
    known = {cls.bl_idname for cls in addon.module("registration").CLASSES if hasattr(cls, "bl_idname")}
    assert known.issuperset({*keymap.UNASSIGNED, keymap.PIE})


def test_the_guide_opens_on_this_computer(addon: Addon, monkeypatch: pytest.MonkeyPatch) -> None:
    preferences, texts = addon.module("core.preferences"), list[str]()
    Panel(bpy.types.IK_ADDON_MT_pose, Layout(texts)).draw(bpy.context)
    assert texts == ["Guide"]
    page = Path(url2pathname(urlsplit(preferences.guide()).path))
    assert "Coming from Blender" in page.read_text(encoding="utf-8")
    assert page.name == "guide.html"
    monkeypatch.setattr(preferences, "GUIDE", page.with_name("nothing.html"))  # as in a checkout used as an extension
    assert preferences.guide().endswith("/docs/guide.md")
