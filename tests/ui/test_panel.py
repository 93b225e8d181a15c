"""What the panel shows, and when; drawing it is tested in a window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import bpy
import pytest

from tests import rigs
from tests.reliability.states import activate, add

if TYPE_CHECKING:
    from tests.conftest import Addon

PANELS = ("VIEW3D_PT_ik_addon", "VIEW3D_PT_ik_addon_chain", "VIEW3D_PT_ik_addon_bend", "VIEW3D_PT_ik_addon_solver")


def shown() -> list[str]:
    """Return the panels that are shown now."""
    classes: list[Any] = [getattr(bpy.types, name) for name in PANELS]
    return [cls.__name__ for cls in classes if not hasattr(cls, "poll") or cls.poll(bpy.context)]


def test_settings_are_shown_for_the_active_chain() -> None:
    bpy.context.view_layer.objects.active = None
    assert shown() == list(PANELS[:1])
    ob, target = rigs.arm()
    activate(ob, None)
    assert shown() == list(PANELS[:1])
    activate(ob, "upper")
    assert shown() == list(PANELS)
    with rigs.edit_mode(ob):
        assert shown() == list(PANELS[:1])
    bpy.context.view_layer.objects.active = rigs.empty("Stray")
    assert shown() == list(PANELS[:1])
    bpy.context.view_layer.objects.active = target
    assert shown() == list(PANELS)


def test_the_button_that_keys_a_setting_shows_where_it_is_keyed(addon: Addon) -> None:
    ob, _target = rigs.arm()
    path = 'pose.bones["lower"].ik_addon.influence'

    def icons() -> list[str]:
        return [addon.module("ui.panels.chain").key_icon(ob, path, frame) for frame in (1.0, 7.0, 7.5)]

    assert icons() == ["DECORATE", "DECORATE", "DECORATE"]
    bpy.context.scene.frame_set(7)
    assert bpy.ops.ik_addon.setting_key(tip="lower", setting="influence") == {"FINISHED"}
    assert icons() == ["DECORATE_ANIMATE", "DECORATE_KEYFRAME", "DECORATE_ANIMATE"]


def test_each_state_of_a_chain_has_a_text(addon: Addon) -> None:
    panel, reports = addon.module("ui.panels.chain"), addon.module("live.reports")
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
    assert state() == ("ERROR", "No target. Pick an object for the tip to follow")
    tip.ik_addon.enabled = False
    assert state() == ("CHECKBOX_DEHLT", "Off")


@pytest.mark.parametrize(
    ("points", "pole"),
    [
        pytest.param([(0.153 + 0.271 * i, 0.0, 1.437) for i in range(3)], True, id="arm in a T-pose"),
        pytest.param([(0.0, 0.13 * i, 1.03 + 0.071 * i) for i in range(13)], False, id="tail"),
    ],
)
def test_a_straight_chain_counts_as_reached_from_the_start(
    addon: Addon, points: list[tuple[float, float, float]], pole: bool
) -> None:
    """Its target is, by rounding, beyond its tip, so that it bends the same way whenever the target comes nearer."""
    panel, reports = addon.module("ui.panels.chain"), addon.module("live.reports")
    status = addon.module("solve").Status
    names = [f"bone {i}" for i in range(len(points) - 1)]
    ob = rigs.limb(points, names)
    add(ob, names[-1], tip=names[-1], chain_length=len(names), with_pole=pole, live=True)
    report, tip = reports.get(ob, names[-1]), ob.pose.bones[names[-1]]
    assert report.status is status.TOO_FAR, "this is for scripts"
    assert 1e-6 < report.error < 1e-5
    assert panel.state_of(tip, report) == ("CHECKMARK", "Reached")
    assert addon.fix(tip) is None
    assert [verdict for verdict, *_ in reports.standing(ob, [tip.name])] == [status.REACHED]
    bpy.ops.ik_addon.solve()  # a warning would raise an error in a script


@pytest.mark.parametrize(("beyond", "reached"), [(0.9e-4, True), (1.1e-4, False)])
def test_every_place_agrees_on_what_counts_as_reached(addon: Addon, beyond: float, reached: bool) -> None:
    """These are the panel, the overlay, the message of Solve IK, and the report of a bake."""
    panel, reports = addon.module("ui.panels.chain"), addon.module("live.reports")
    status = addon.module("solve").Status
    ob, target = rigs.arm(straight_rest=True)
    target.location = (0.0, 0.0, 2.0 * (1.0 + beyond))
    bpy.ops.ik_addon.solve()
    report = reports.get(ob, "lower")
    assert abs(report.error - beyond) < 1e-6
    assert report.message == ("Reached" if reached else "Too far by <0.1% of its length")
    assert (panel.state_of(ob.pose.bones["lower"], report)[0] == "CHECKMARK") == reached
    assert [verdict is status.REACHED for verdict, *_ in reports.standing(ob, ["lower"])] == [reached]
    addon.module("bake").bake(bpy.context, ob, ["lower"], [1, 2, 3])
    baked = addon.module("bake.bake_report").last(ob)
    assert (baked.missed == 0) == reached
    assert abs(baked.error - beyond) < 1e-6


def test_motion_paths_of_live_bones_get_a_remark_until_baked(addon: Addon) -> None:
    """Blender calls no handler while it calculates motion paths."""
    has_blind_paths = addon.module("ui.panels.main").has_blind_paths
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 10: (-0.6, 0.5, 1.4)})
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 10
    ob.ik_addon.live = True
    scene.frame_set(1)

    def path() -> list[tuple[float, ...]]:
        bpy.ops.pose.paths_calculate(display_type="RANGE", range="SCENE", bake_location="TAILS")
        return [tuple(point.co) for point in ob.pose.bones["lower"].motion_path.points]

    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="SELECT")
    assert not has_blind_paths(ob)
    assert len(set(path())) == 1, "it is frozen: otherwise the remark is wrong"
    assert has_blind_paths(ob)
    ob.ik_addon.live = False
    assert not has_blind_paths(ob)
    ob.ik_addon.live = True
    bpy.ops.ik_addon.bake()
    assert len(set(path())) > 5
    assert not has_blind_paths(ob)


def test_the_panel_says_when_live_has_no_enabled_chain(addon: Addon) -> None:
    live_texts = addon.module("ui.panels.main").live_texts
    ob, _target = rigs.arm()
    assert live_texts(ob) == ["Live"]
    ob.ik_addon.live = True
    assert live_texts(ob) == ["Live"]
    ob.pose.bones["lower"].ik_addon.enabled = False
    assert "No Enabled Chain" in live_texts(ob)
    ob.ik_addon.live = False
    assert live_texts(ob) == ["Live"]


def test_the_row_of_the_active_chain_is_not_dimmed(addon: Addon) -> None:
    is_bright = addon.module("ui.panels.chain").is_bright
    ob, _target = rigs.arm()
    tip = ob.pose.bones["lower"]
    activate(ob, None)
    assert is_bright(bpy.context, tip)
    tip.ik_addon.enabled = False
    assert not is_bright(bpy.context, tip)
    activate(ob, "lower")
    assert is_bright(bpy.context, tip)


def test_the_list_shows_only_chains_and_follows_the_active_bone() -> None:
    ob, _target = rigs.arm()
    rigs.add_arm(ob, 2, ["upper 2", "lower 2"], "Second")
    manager: Any = bpy.context.window_manager
    activate(ob, "upper 2")
    assert ob.pose.bones[manager.ik_addon_chain].name == "lower 2"
    manager.ik_addon_chain = ob.pose.bones.find("lower")
    assert ob.data.bones.active.name == "lower"
    activate(ob, None)
    assert manager.ik_addon_chain == -1
    bpy.context.view_layer.objects.active = None
    assert manager.ik_addon_chain == -1


def test_the_state_of_a_chain_has_shorter_texts(addon: Addon) -> None:
    panel, reports = addon.module("ui.panels.chain"), addon.module("live.reports")
    ob, target = rigs.arm()
    tip = ob.pose.bones["lower"]
    tip.use_ik_limit_x, tip.ik_min_x, tip.ik_max_x = True, -0.1, 0.1

    def line(*location: float) -> list[str]:
        target.location = location
        bpy.ops.ik_addon.solve()
        return list(panel.texts_of(tip, reports.get(ob, "lower")))

    assert line(0.0, 0.0, 9.0)[-1] == "342%"
    tip.lock_ik_y = tip.lock_ik_z = True
    held = line(0.0, 0.1, 0.3)
    assert held[0].endswith("short (limits or other chains). At a limit: lower")
    assert held[-1].endswith("%")
    assert len(held[-1]) <= 5
    assert line(0.0, 0.0, 1.99)[-1] == "Reached"


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0.0, "0%"), (1e-7, "<0.1%"), (0.00099, "<0.1%"), (0.013, "1.3%"), (0.128, "13%"), (4.0, "400%"), (1e9, ">1000%")],
)
def test_percentages_are_rounded_sensibly(addon: Addon, fraction: float, text: str) -> None:
    assert addon.module("core.report").percent(fraction) == text


def test_the_last_bake_stays_when_its_chain_is_removed(addon: Addon) -> None:
    shown_report = addon.module("ui.panels.bake_report").shown
    ob, _target = rigs.arm()
    bpy.ops.ik_addon.bake(frame_range="CUSTOM", frame_start=1, frame_end=3)
    assert shown_report(ob) is not None
    bpy.ops.ik_addon.chain_remove()
    assert shown_report(ob) is not None
