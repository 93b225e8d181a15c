"""What the panels show, when, and how much; drawing them is tested in a window."""

import textwrap
from collections.abc import Iterator
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs, rigs_named
from tests.conftest import Addon
from tests.faults import Limb
from tests.panels import Layout, Panel, drawn, sidebar
from tests.reliability.states import activate, add, refused, said
from tests.rigs_named import RIGS

__all__ = ["sidebar"]
TAB = "VIEW3D_PT_ik_addon"
PANELS = (TAB, f"{TAB}_chain", f"{TAB}_bend", f"{TAB}_solver")


def shown() -> list[str]:
    """Return the panels that are shown now."""
    classes: list[Any] = [getattr(bpy.types, name) for name in PANELS]
    return [cls.__name__ for cls in classes if not hasattr(cls, "poll") or cls.poll(bpy.context)]


def test_settings_are_shown_for_the_active_chain(limb: Limb) -> None:
    for active in (None, rigs.empty("Stray"), limb.target):
        bpy.context.view_layer.objects.active = active
        assert shown() == list(PANELS if active == limb.target else PANELS[:1])
    activate(limb.ob, None)
    assert shown() == list(PANELS[:1])
    activate(limb.ob, "upper")
    assert shown() == list(PANELS)
    with rigs.edit_mode(limb.ob):
        assert shown() == list(PANELS[:1])


def test_the_button_that_keys_a_setting_shows_where_it_is_keyed(addon: Addon, limb: Limb) -> None:
    path = 'pose.bones["lower"].ik_addon.influence'

    def icons() -> list[str]:
        return [addon.module("ui.panels.chain").key_icon(limb.ob, path, frame) for frame in (1.0, 7.0, 7.5)]

    assert icons() == ["DECORATE", "DECORATE", "DECORATE"]
    bpy.context.scene.frame_set(7)
    assert bpy.ops.ik_addon.setting_key(tip="lower", setting="influence") == {"FINISHED"}
    assert icons() == ["DECORATE_ANIMATE", "DECORATE_KEYFRAME", "DECORATE_ANIMATE"]


def test_each_state_of_a_chain_has_a_text(addon: Addon, limb: Limb) -> None:

    def state() -> tuple[str, str]:
        icon, text = addon.module("ui.panels.chain").state_of(limb.lower, addon.report(limb.ob))
        return icon, text

    assert state() == ("RADIOBUT_OFF", "Not solved yet")
    bpy.ops.ik_addon.solve()
    assert state() == ("RADIOBUT_OFF", "Last solve: Reached"), "who knows what has changed since"
    rigs.go_live(limb.ob)
    assert state() == ("CHECKMARK", "Reached")
    rigs.change(limb.target, location=(0.0, 0.0, 9.0))
    assert state()[0] == "TRACKER"
    assert state()[1].startswith("Too far by")
    rigs.change(limb.chain, target=None)
    assert state() == ("ERROR", "No target. Pick an object for the tip to follow")
    limb.chain.enabled = False
    assert state() == ("CHECKBOX_DEHLT", "Off")


@pytest.mark.usefixtures("sidebar")
def test_what_live_does_by_itself_has_no_button(limb: Limb) -> None:
    activate(limb.ob, "upper")
    for live in (False, True):
        rigs.change(limb.ob.ik_addon, live=live)
        assert any("FK Pose" in text for text in drawn()) is not live


STRAIGHT = {
    "arm in a T-pose": [(0.153 + 0.271 * i, 0.0, 1.437) for i in range(3)],
    "tail": [(0.0, 0.13 * i, 1.03 + 0.071 * i) for i in range(13)],
}


@pytest.mark.parametrize("kind", STRAIGHT)
def test_a_straight_chain_counts_as_reached_from_the_start(addon: Addon, kind: str) -> None:
    """Its target is, by rounding, beyond its tip, so that it bends the same way whenever the target comes nearer."""
    panel, reports = addon.module("ui.panels.chain"), addon.module("live.reports")
    status, points = addon.module("solve").Status, STRAIGHT[kind]
    names = [f"bone {i}" for i in range(len(points) - 1)]
    ob = rigs.limb(points, names)
    add(ob, names[-1], tip=names[-1], chain_length=len(names), with_pole=kind != "tail", live=True)
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
    rigs.go_live(ob)
    report = reports.get(ob, "lower")
    assert abs(report.error - beyond) < 1e-6
    assert report.message == ("Reached" if reached else "Too far by <0.1% of its length")
    assert (panel.state_of(ob.pose.bones["lower"], report)[0] == "CHECKMARK") == reached
    assert [verdict is status.REACHED for verdict, *_ in reports.standing(ob, ["lower"])] == [reached]
    addon.module("bake").bake(bpy.context, ob, ["lower"], [1, 2, 3])
    baked = addon.module("bake.bake_report").last(ob)
    assert (baked.missed == 0) == reached
    assert abs(baked.error - beyond) < 1e-6


BLENDED = {0.5: "Blended with FK: Influence is 0.5", 0.0: "In FK: Influence is 0"}


@pytest.mark.parametrize("influence", BLENDED)
def test_no_place_says_that_a_blended_chain_reaches_or_misses(addon: Addon, influence: float) -> None:
    ob, target = rigs.arm()
    target.location, ob.pose.bones["lower"].ik_addon.influence = (0.0, 0.6, 9.0), influence
    rigs.go_live(ob)
    report, words = addon.report(ob), BLENDED[influence]
    assert addon.module("ui.panels.chain").state_of(ob.pose.bones["lower"], report) == ("RADIOBUT_OFF", words)
    assert [status for status, _bones in addon.module("live.reports").standing(ob, ["lower"])] == [None]
    assert addon.module("ui.operators.solve").verdict({"lower": report}) == ("INFO", f"'lower': {words}")
    baked = addon.module("bake").bake(bpy.context, ob, ["lower"], [1, 2, 3])
    assert (baked.missed, baked.error, baked.blended) == (0, 0.0, 3)


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


def test_the_panel_says_when_live_has_no_enabled_chain(addon: Addon, limb: Limb) -> None:
    for live, enabled in ((False, True), (True, True), (True, False), (False, False)):
        limb.ob.ik_addon.live, limb.chain.enabled = live, enabled
        found = addon.module("ui.panels.main").live_texts(limb.ob)
        assert ("No Enabled Chain" in found) if live > enabled else found == ["Live"]


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


def test_the_list_shows_only_chains_and_follows_the_active_bone(limb: Limb) -> None:
    rigs.add_arm(limb.ob, 2, ["upper 2", "lower 2"], "Second")
    manager: Any = bpy.context.window_manager
    activate(limb.ob, "upper 2")
    assert limb.ob.pose.bones[manager.ik_addon_chain].name == "lower 2"
    manager.ik_addon_chain = limb.ob.pose.bones.find("lower")
    assert limb.ob.data.bones.active.name == "lower"
    activate(limb.ob, None)
    assert manager.ik_addon_chain == -1
    bpy.context.view_layer.objects.active = None
    assert manager.ik_addon_chain == -1


@pytest.mark.usefixtures("sidebar")
def test_a_row_says_what_its_chain_follows_or_fk(addon: Addon, limb: Limb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addon.module("ui.panels.chain"), "is_narrow", lambda _context: False)  # a region has no width
    for way, followed in (("FK", "FK"), ("IK", "World")):
        bpy.ops.ik_addon.switch_ik_fk(to=way)
        texts: list[str] = []
        cls: Any = bpy.types.IK_ADDON_UL_chains
        Panel(cls, None).draw_row(bpy.context, Layout(texts), limb.lower)
        assert texts == ["lower", followed]


def test_the_state_of_a_chain_has_shorter_texts(addon: Addon, limb: Limb) -> None:
    limb.lower.use_ik_limit_x, limb.lower.ik_min_x, limb.lower.ik_max_x = True, -0.1, 0.1
    rigs.go_live(limb.ob)

    def line(*location: float) -> list[str]:
        limb.target.location = location
        bpy.context.view_layer.update()
        return list(addon.module("ui.panels.chain").texts_of(limb.lower, addon.report(limb.ob)))

    assert line(0.0, 0.0, 9.0)[-1] == "342%"
    limb.lower.lock_ik_y = limb.lower.lock_ik_z = True
    held = line(0.0, 0.1, 0.3)
    assert held[0].endswith("short (limits or other chains). At a limit: lower")
    assert held[-1].endswith("%")
    assert len(held[-1]) <= 5
    assert line(0.0, 0.0, 1.99)[-1] == "Reached"
    rigs.change(limb.target, location=(0.0, 0.0, 1.98))
    with addon.module("live.registry").paused(limb.ob):
        assert line(0.0, 0.0, 1.0)[1:] == ["48% missed", "48%"], "another add-on moved it"


PERCENT = {0.0: "0%", 1e-7: "<0.1%", 0.00099: "<0.1%", 0.013: "1.3%", 0.128: "13%", 4.0: "400%", 1e9: ">1000%"}


def test_percentages_are_rounded_sensibly(addon: Addon) -> None:
    assert {fraction: addon.module("core.report").percent(fraction) for fraction in PERCENT} == PERCENT


def test_the_last_bake_stays_when_its_chain_is_removed(addon: Addon) -> None:
    shown_report = addon.module("ui.panels.bake_report").shown
    ob, _target = rigs.arm()
    bpy.ops.ik_addon.bake(frame_range="CUSTOM", frame_start=1, frame_end=3)
    assert shown_report(ob) is not None
    bpy.ops.ik_addon.chain_remove()
    assert shown_report(ob) is not None


# ---- how much the tab shows: little at first, and the rest folded

LETTERS = 38
"""Letters in a line of a message."""


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
        layout = Layout([])
        Panel(cls, layout).draw(bpy.context)
        rows, controls = rows + layout.rows, controls + layout.whole
    return rows, controls


@pytest.fixture
def figure(addon: Addon, monkeypatch: pytest.MonkeyPatch, sidebar: None) -> bpy.types.Object:
    """Return a figure in Pose Mode, drawn in the sidebar of a viewport as wide as Blender opens it."""
    monkeypatch.setattr(addon.module("ui.text"), "wrapped", lambda text, _width, _of: textwrap.wrap(text, LETTERS))
    for module in ("chain", "main", "folded"):
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
    figure.pose.bones["mixamorig:LeftForeArm"].ik_addon.pole = None
    assert size(every_fold=False) == (rows, controls + 1), "beside the object, a bone of the armature"


def test_messages_name_a_chain_as_the_list_does(figure: bpy.types.Object, capfd: pytest.CaptureFixture[str]) -> None:
    bpy.ops.ik_addon.chain_add()
    assert "the chain on 'Left Arm'" in said(capfd, bpy.ops.ik_addon.flip_bend)
    figure.pose.bones["mixamorig:LeftForeArm"].ik_addon.enabled = False
    with refused("The chain on 'Left Arm' is disabled"):
        bpy.ops.ik_addon.bake(chains="ACTIVE")


def test_the_tab_names_its_armature_where_several_are_posed(figure: bpy.types.Object) -> None:
    alone = size(every_fold=False)
    other, _target = rigs.arm()
    bpy.context.view_layer.objects.active = other
    bpy.ops.object.mode_set(mode="POSE")
    bpy.context.view_layer.objects.active = figure
    assert other.mode == figure.mode == "POSE"
    assert size(every_fold=False) == (alone[0] + 1, alone[1])


# ---- while the animation plays, panels find out little, however large the rig: Blender draws them on every frame


def play(on: bool) -> None:
    if bpy.context.screen.is_animation_playing != on:
        bpy.ops.screen.animation_play()
    assert bpy.context.screen.is_animation_playing == on


def body(bones: int) -> bpy.types.Object:
    """Return a live arm in an armature with more bones, active in Pose Mode."""
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 50: (-0.5, 0.9, 0.8)})
    with rigs.edit_mode(ob) as made:
        for number in range(bones):
            bone = made.new(f"x{number}")
            bone.head, bone.tail = (0.1 * number, 3.0, 0.0), (0.1 * number, 3.0, 0.5)
    for bone in list(ob.pose.bones)[2:]:
        bone.keyframe_insert("rotation_quaternion", frame=1)
    rigs.go_live(ob)
    return ob


@pytest.mark.usefixtures("sidebar")
def test_a_verdict_never_outlives_its_frame(addon: Addon) -> None:
    ob = body(2)
    assert "Reached" in drawn()
    play(True)
    bpy.data.objects["Target"].animation_data_clear()
    bpy.data.objects["Target"].location = (0.0, 0.0, 9.0)
    bpy.context.scene.frame_set(3)
    assert not any("Reached" in text or "%" in text for text in drawn())
    play(False)
    assert any(text.endswith(("%", "too far", "of its length")) for text in drawn())
    assert addon.module("ui.panels.chain").texts_of(ob.pose.bones["lower"], addon.report(ob))[1].endswith("too far")
    assert ob.ik_addon.live


@pytest.mark.usefixtures("sidebar")
def test_in_playback_a_fault_shows_soon_and_another_chain_at_once(
    addon: Addon, monkeypatch: pytest.MonkeyPatch
) -> None:
    ob = body(2)
    fault = "No target. Pick an object for the tip to follow"
    play(True)
    drawn()
    ob.pose.bones["lower"].ik_addon.target = None
    assert fault not in " ".join(drawn())
    monkeypatch.setattr(addon.module("ui.panel"), "PATIENCE", -1.0)
    assert fault in " ".join(drawn())
    monkeypatch.undo()
    with_chain = len(drawn())
    activate(ob, "x0")
    assert len(drawn()) < with_chain, "no chain is active"
    play(False)


# ---- texts and the small graph in the Last Bake panel


WRAPPED: dict[tuple[str, int], list[str]] = {
    ("", 10): [],
    ("short", 10): ["short"],
    ("exactly 10", 10): ["exactly 10"],
    ("exactly 10 and", 10): ["exactly 10", "and"],
    ("a word-that-is-longer than a line", 10): ["a", "word-that-is-longer", "than a", "line"],
    ("anything", 0): ["anything"],
}
"""Lines by text and width."""
FITTING = {20: "12% of its length", 17: "12% of its length", 16: "12% off", 6: "12%", 1: "12%"}


def test_texts_are_wrapped_between_words_or_the_longest_that_fits_is_chosen(addon: Addon) -> None:
    module = addon.module("ui.text")
    assert {given: module.wrapped(*given, len) for given in WRAPPED} == WRAPPED
    texts = ["12% of its length", "12% off", "12%"]
    assert {width: module.fitting(texts, width, len) for width in FITTING} == FITTING


@pytest.mark.parametrize("values", [[3.0, 12.0, 0.5, 6.0], [1.0], list(range(96)), [0.0, 0.0]])
def test_the_height_of_each_part_shows_its_value(addon: Addon, values: list[float]) -> None:
    graph = addon.module("ui.panels.bake_report")
    pixels = graph.pixels(values)
    assert pixels.shape == (graph.HEIGHT, graph.WIDTH, 4)
    # The middle of each part is not affected by the steps between parts.
    middles = ((np.arange(len(values)) + 0.5) * graph.WIDTH / len(values)).astype(int)
    heights = [np.flatnonzero(pixels[:, column, 3])[-1] / (graph.HEIGHT - 1) for column in middles]
    assert np.allclose(heights, np.array(values) / (max(values) or 1.0), atol=0.03)
