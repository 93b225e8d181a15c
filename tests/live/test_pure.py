"""A pose depends on its frame alone: not on what was shown before, nor on what was known before an edit by a script.

Each body has a twin that goes live only in the end, when all is done, and has to look the same.
"""

from dataclasses import replace
from pathlib import Path

import bpy
import pytest

from tests import rigs
from tests.live import scripted
from tests.live.bodies import KEYED, Body, Edit, apart_from_twin, both, pair, rig, twin
from tests.live.scripted import ANIMATION, CHILD_OF, DRIVERS, NLA, STRUCTURE, SWITCHED
from tests.reliability.test_neighbors import Add, handlers
from tests.renders import Recorder, recorder, render, set_up

__all__ = ["handlers", "recorder"]
BEFORE = (9, 2, 11, 3, 12, 7, 8, 4, 5, 6, 7)
"""Jumps, until all frames nearby are foretold, then steady playing up to one that was shown before."""
AFTER = (8, 9, 3)


BODIES = {
    "F-curves": Body(),
    "no keys": Body(keyed="none"),
    "half the components keyed": Body(keyed="half"),
    "only the collar keyed": Body(keyed="collar"),
    "all but the collar keyed": Body(keyed="spine1 spine2 upper lower hand"),
    "FK spine": Body(spine=False),
    "pushed root": Body(reach="PUSH_ROOT"),
    "pushed root, no keys": Body(keyed="none", reach="PUSH_ROOT"),
    "pushed root, half the components keyed": Body(keyed="half", reach="PUSH_ROOT"),
    "stretch": Body(reach="STRETCH"),
    "stretch, no keys": Body(keyed="none", reach="STRETCH"),
    "NLA strip": Body(more=scripted.strip),
    "muted NLA track": Body(more=scripted.muted_track),
    "action over an NLA strip": Body(more=scripted.over_strip),
    "drivers": Body(more=scripted.drivers),
    "constraint": Body(more=scripted.constrained),
    "constraint, no keys": Body(keyed="none", more=scripted.constrained),
    "Child Of": Body(more=scripted.child_of),
    "switched": Body(more=scripted.switched),
    "prop in a hand": Body(more=scripted.prop_in_hand),
    "prop in a hand, no keys": Body(keyed="none", more=scripted.prop_in_hand),
    "prop in a hand, pushed root": Body(reach="PUSH_ROOT", more=scripted.prop_in_hand),
}


EDITS: dict[str, dict[str, Edit]] = {
    "F-curves": {**STRUCTURE, **ANIMATION},
    "no keys": STRUCTURE,
    "half the components keyed": {**STRUCTURE, **ANIMATION},
    "pushed root": {**STRUCTURE, **ANIMATION},
    "stretch, no keys": STRUCTURE,
    "NLA strip": {**STRUCTURE, **NLA},
    "action over an NLA strip": {**NLA, "the action is unassigned": ANIMATION["the action is unassigned"]},
    "drivers": {**DRIVERS, **ANIMATION},
    "constraint": STRUCTURE,
    "Child Of": {**STRUCTURE, **CHILD_OF},
    "switched": SWITCHED,
    "prop in a hand": STRUCTURE,
}


ALL = [(name, edit) for name, edits in EDITS.items() for edit in edits]
FIRST = list({edit: (name, edit) for name, edit in reversed(ALL)}.values())
"""Each edit once, of the first body that has it."""
MANY = sorted({*FIRST, *ALL[::3]}, key=ALL.index)
"""Each edit once, and of several bodies where these have it."""


CASES = [*((*case, False) for case in MANY), *((*case, True) for case in FIRST)]


@pytest.mark.parametrize(("name", "edit", "update"), CASES)
def test_an_edit_by_a_script_counts_on_the_next_frame(name: str, edit: str, update: bool) -> None:
    pair(BODIES[name])
    rigs.poses_at(rig(), BEFORE)
    both(EDITS[name][edit])
    if update:
        bpy.context.view_layer.update()
    assert not apart_from_twin(AFTER)


@pytest.mark.parametrize("edit", STRUCTURE)
def test_an_edit_by_a_script_takes_effect_at_once(edit: str) -> None:
    pair(BODIES["no keys"], 7)
    both(STRUCTURE[edit])
    bpy.context.view_layer.update()
    shown = {7: rigs.pose(rig())}
    assert not rigs.apart(rigs.poses_at(rig(), [7]), shown)
    assert not apart_from_twin([7])


def test_what_an_nla_track_set_stays_once_it_is_gone() -> None:
    """It also sets the elements of a quaternion that no F-curve animates."""
    pair(BODIES["half the components keyed"])
    rigs.poses_at(rig(), BEFORE)
    both(scripted.soloed)
    rigs.poses_at(rig(), AFTER)
    both(NLA["the track is removed"])
    assert not apart_from_twin(AFTER)


def test_what_muted_curves_set_stays_after_loading(tmp_path: Path) -> None:
    pair(BODIES["F-curves"])
    for edit in (scripted.soloed, ANIMATION["F-curves of live bones are muted"]):
        rigs.poses_at(rig(), BEFORE)
        both(edit)
    rigs.poses_at(rig(), AFTER)
    rigs.save_and_open(tmp_path / "saved.blend")
    assert not apart_from_twin(AFTER)


@pytest.mark.parametrize(("name", "edit"), [case for case in MANY if case[0] in {"F-curves", "NLA strip", "drivers"}])
def test_a_render_in_the_background_shows_what_a_script_edited_before_it(
    name: str, edit: str, recorder: type[Recorder], tmp_path: Path
) -> None:
    """As in `blender -b file.blend -P edit.py -a`."""
    pair(BODIES[name], 4)
    rigs.save_and_open(tmp_path / "saved.blend")
    both(EDITS[name][edit])
    set_up(bpy.context.scene, tmp_path)
    recorder.note = lambda depsgraph: rigs.pose(rig(), depsgraph)
    render(8, 10)
    rendered = {frame: pose for _scene, _layer, frame, pose in recorder.seen}
    rigs.go_live(twin())
    assert not rigs.apart(rendered, rigs.poses_at(twin(), (8, 9, 10)))


def test_keys_muted_in_playback_animate_whoever_shares_them_and_the_armature_once_live_is_off() -> None:
    pair(BODIES["F-curves"])
    frames = range(1, 15)
    rigs.poses_at(rig(), frames)
    rig().ik_addon.live = False
    fk = rigs.poses_at(twin(), frames)
    assert not rigs.apart(rigs.poses_at(rig(), [14]), {14: fk[14]})
    other = rig().copy()
    bpy.context.scene.collection.objects.link(other)
    rigs.go_live(rig())
    assert not rigs.apart(rigs.poses_at(other, frames), fk)
    other.animation_data_clear()
    moves = {"transform_channel": "LOCATION_X", "min": 0.7, "max": 0.9, "frame_end": 10}
    data, hand = rig().animation_data, bpy.data.objects["Rig hand"]
    played = rigs.constrain(other.pose.bones["upper"], "ACTION", action=data.action, target=hand, **moves)
    if hasattr(played, "action_slot"):
        played.action_slot = data.action_slot
    rig().ik_addon.live = False
    posed = rigs.poses_at(other, frames)
    assert rigs.apart(posed, fk)
    rigs.go_live(rig())
    assert not rigs.apart(rigs.poses_at(other, frames), posed), "by an Action constraint"


# ---- bones that are renamed over a solution


@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize("bone", ["upper", "lower", "spine2", "collar", "control"])
@pytest.mark.parametrize("name", ["F-curves", "no keys", "half the components keyed"])
def test_a_bone_renamed_over_a_solution_keeps_its_pose_and_its_fk_pose(name: str, bone: str, update: bool) -> None:
    def with_control(ob: bpy.types.Object) -> None:
        rigs.add_bones(ob, [(0.7, -0.3, 0.8), (0.7, -0.3, 0.9)], ["control"])
        chain = ob.pose.bones["lower"].ik_addon
        chain.target, chain.target_bone = ob, "control"

    pair(replace(BODIES[name], more=with_control))
    expected = rigs.poses_at(rig(), (7, 3, 20))
    rigs.poses_at(rig(), BEFORE)
    rig().data.bones[bone].name = "renamed"
    if update:
        bpy.context.view_layer.update()
        rigs.change(rig().data.bones["renamed"], name="renamed again")
    assert not rigs.apart(rigs.poses_at(rig(), (7, 3, 20)), expected)
    assert not apart_from_twin((7, 3, 20))


# ---- beside add-ons that update the view layer within their frame handlers


NESTED = [(where, first) for where in ("frame_change_pre", "frame_change_post") for first in (True, False)]


def update_in(where: str, first: bool, handlers: Add) -> None:
    """Let another add-on update the view layer in its frame handler."""
    busy: list[bool] = []

    def update(*_arguments: object) -> None:
        if not busy:
            busy.append(True)
            bpy.context.view_layer.update()
            busy.clear()

    handlers(where, update, first)


@pytest.mark.parametrize(("where", "first"), NESTED)
@pytest.mark.parametrize("name", ["F-curves", "no keys", "pushed root", "NLA strip", "drivers", "prop in a hand"])
def test_a_frame_looks_the_same_beside_a_handler_that_updates(
    name: str, where: str, first: bool, handlers: Add
) -> None:
    pair(BODIES[name])
    expected = rigs.poses_at(rig(), (17, 3, 30, 9))
    update_in(where, first, handlers)
    assert not rigs.apart(rigs.poses_at(rig(), (9, 30, 17, 3)), expected)
    bpy.ops.ed.undo_push(message="before")
    both(lambda ob: setattr(ob, "location", (0.1, 0.2, 0.0)))
    bpy.context.scene.frame_set(12)
    bpy.ops.ed.undo_push(message="after")
    bpy.ops.ed.undo()
    assert not rigs.apart(rigs.poses_at(rig(), (3, 9, 30, 17)), expected), "after undo"
    assert not apart_from_twin((17, 3, 30, 9))


BESIDE = [
    *(("pushed root", edit) for edit in STRUCTURE),
    *(("F-curves", edit) for edit in EDITS["F-curves"] if "keys are moved" in edit or "driver is" in edit),
    *((name, edit) for name in ("F-curves", "drivers", "NLA strip") for edit in EDITS[name] if "muted" in edit),
]


@pytest.mark.parametrize(
    ("name", "edit", "where", "first"),
    [(*case, *NESTED[(i + more) % 4]) for i, case in enumerate(BESIDE) for more in (0, 1)],
)
def test_an_edit_by_a_script_counts_beside_a_handler_that_updates(
    name: str, edit: str, where: str, first: bool, handlers: Add
) -> None:
    pair(BODIES[name])
    update_in(where, first, handlers)
    rigs.poses_at(rig(), BEFORE)
    both(EDITS[name][edit])
    assert not apart_from_twin(AFTER)


def test_a_bone_posed_on_a_key_leaves_the_key_alone(handlers: Add) -> None:
    pair(BODIES["F-curves"])
    update_in("frame_change_pre", True, handlers)
    bpy.context.scene.frame_set(KEYED[1])
    both(STRUCTURE["a live bone is posed"])
    bpy.context.view_layer.update()
    assert not apart_from_twin((13, 11))


@pytest.mark.parametrize("setting", ["enabled", "bend_lead"])
def test_a_setting_changes_after_a_handler_has_evaluated_a_changed_scene(setting: str, handlers: Add) -> None:
    # Blender before 5.0 has then lost the list of objects that an unspecific tag looks into.
    ob, _target = rigs.animated_arm()
    moved, gone = rigs.empty("Moved"), rigs.empty("Gone")
    bpy.context.view_layer.update()
    handlers("frame_change_post", lambda *_arguments: setattr(moved, "location", (1.0, 0.0, 0.0)), False)
    update_in("frame_change_post", False, handlers)
    bpy.data.objects.remove(gone)
    bpy.context.scene.frame_set(9)
    chain = ob.pose.bones["lower"].ik_addon
    setattr(chain, setting, getattr(chain, setting))
    bpy.context.view_layer.update()
    assert rigs.miss(ob) < 1e-5
