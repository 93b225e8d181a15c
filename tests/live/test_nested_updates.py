"""Add-ons that update the view layer within their frame handlers change no pose, and hide no edit by a script."""

from __future__ import annotations

import bpy
import pytest

from tests import rigs
from tests.live.bodies import KEYED, apart_from_twin, both, pair, rig
from tests.live.scripted import STRUCTURE
from tests.live.test_pure import AFTER, BEFORE, BODIES, EDITS
from tests.reliability.test_neighbors import Add, handlers

__all__ = ["handlers"]
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


@pytest.mark.parametrize(("where", "first"), NESTED)
@pytest.mark.parametrize(
    ("name", "edit"),
    [
        *(("pushed root", edit) for edit in STRUCTURE),
        *(("F-curves", edit) for edit in EDITS["F-curves"] if "keys are moved" in edit or "driver is" in edit),
        *((name, edit) for name in ("F-curves", "drivers", "NLA strip") for edit in EDITS[name] if "muted" in edit),
    ],
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
