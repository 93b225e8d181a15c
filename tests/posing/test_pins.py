"""Pins are set, released, shown, and kept through all that can happen to a file; picking bones with the mouse."""

from types import SimpleNamespace
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Vector

from tests import rigs
from tests.conftest import Addon, Capture
from tests.reliability.states import activate, refused, said
from tests.rigs_generated import armature_of

BOTH = {"LOCATION", "ROTATION"}


def pinned(ob: bpy.types.Object) -> dict[str, set[str]]:
    return {bone.name: set(bone.ik_addon.pin) for bone in ob.pose.bones if bone.ik_addon.pin}


def test_pins_are_set_and_released(human: bpy.types.Object) -> None:
    feet, hands = (dict.fromkeys((f"{name}.L", f"{name}.R"), BOTH) for name in ("foot", "hand"))
    places = {hand: {"LOCATION"} for hand in hands}
    for options, pins in (
        ({}, {"hand.L": BOTH}),
        ({"what": "LOCATION"}, {"hand.L": {"LOCATION"}}),
        ({"what": "LOCATION"}, {}),
        ({"which": "FEET"}, feet),
        ({"which": "HANDS", "what": "LOCATION"}, feet | places),
        ({"which": "FEET"}, places),
    ):
        bpy.ops.ik_addon.pin(**options)
        assert pinned(human) == pins, options


def test_a_report_names_few_pins_and_counts_the_others(human: bpy.types.Object, capfd: Capture) -> None:
    assert "Pinned 'foot.L', 'foot.R'" in said(capfd, bpy.ops.ik_addon.pin, which="FEET")
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="SELECT")
    number = len(human.pose.bones)
    assert f" and {number - 6} more" in said(capfd, bpy.ops.ik_addon.pin)
    assert f" and {number - 6} more" in said(capfd, bpy.ops.ik_addon.pin_release)


@pytest.mark.usefixtures("rigify")
def test_a_horse_has_four_feet_and_no_hands() -> None:
    ob = armature_of("horse")
    activate(ob, "head")
    bpy.ops.ik_addon.pin(which="FEET")
    assert set(pinned(ob)) == {"r_toe.L", "r_toe.R", "f_toe.L", "f_toe.R"}
    with refused("No such bones found"):
        bpy.ops.ik_addon.pin(which="HANDS")


def test_one_pin_or_all_can_be_released(human: bpy.types.Object) -> None:
    with refused("No bone is pinned"):
        bpy.ops.ik_addon.pin_release()
    bpy.ops.ik_addon.pin(which="FEET")
    bpy.ops.ik_addon.pin(which="HANDS")
    bpy.ops.ik_addon.pin_release(bone="foot.L")
    assert set(pinned(human)) == {"foot.R", "hand.L", "hand.R"}
    with refused("'foot.L' is not pinned"):
        bpy.ops.ik_addon.pin_release(bone="foot.L")
    bpy.ops.ik_addon.pin_release()
    assert pinned(human) == {}


def test_pins_survive_saving_renaming_and_duplicating_the_armature(human: bpy.types.Object, tmp_path: Any) -> None:
    human.pose.bones["hand.R"].ik_addon.pin = {"ROTATION"}
    human.data.bones["hand.R"].name = "other"
    bpy.ops.object.duplicate()
    rigs.save_and_open(tmp_path / "pins.blend")
    pins = [pinned(ob) for ob in bpy.data.objects if ob.type == "ARMATURE"]
    assert pins == 2 * [{"other": {"ROTATION"}}]


def test_adding_and_removing_a_chain_keeps_the_pins_of_its_bones(human: bpy.types.Object) -> None:
    activate(human, "forearm.L")
    bones = [human.pose.bones[name] for name in ("forearm.L", "hand.L")]
    for bone in bones:
        bone.ik_addon.pin, bone.ik_addon.give = {"ROTATION"}, 0.5
    bpy.ops.ik_addon.chain_add()
    assert human.pose.bones["forearm.L"].ik_addon.is_chain
    bpy.ops.ik_addon.chain_remove()
    assert pinned(human) == {"forearm.L": {"ROTATION"}, "hand.L": {"ROTATION"}}
    assert [bone.ik_addon.give for bone in bones] == [0.5, 0.5]


@pytest.mark.parametrize("leave", ["Live off", "bake", "restore the pose", "remove the chain"])
def test_pins_and_give_of_posed_bones_survive(leave: str) -> None:
    """The FK pose is stored beside them, and dropped when it is put back."""
    ob, _target = rigs.arm()
    upper = ob.pose.bones["upper"]
    upper.rotation_quaternion = (0.9, 0.1, 0.2, 0.1)
    upper.ik_addon.pin, upper.ik_addon.give = BOTH, 0.25
    activate(ob, "lower")
    if leave in {"Live off", "bake"}:
        rigs.go_live(ob)
    else:
        bpy.ops.ik_addon.solve()
    assert upper.ik_addon.base.stored
    {
        "Live off": lambda: setattr(ob.ik_addon, "live", False),
        "bake": lambda: bpy.ops.ik_addon.bake(chains="ALL", frame_range="SCENE"),
        "restore the pose": bpy.ops.ik_addon.restore_pose,
        "remove the chain": bpy.ops.ik_addon.chain_remove,
    }[leave]()
    bpy.context.view_layer.update()
    assert not upper.ik_addon.base.stored
    assert (upper.ik_addon.pin, upper.ik_addon.give) == (BOTH, 0.25)


def test_mirror_chain_mirrors_the_pins_of_its_bones_and_hand(human: bpy.types.Object) -> None:
    activate(human, "forearm.L")
    bpy.ops.ik_addon.chain_add()
    human.pose.bones["hand.L"].ik_addon.pin = BOTH
    human.pose.bones["upper_arm.L"].ik_addon.give = 0.25
    activate(human, "forearm.L")
    bpy.ops.ik_addon.mirror_chain()
    assert human.pose.bones["forearm.R"].ik_addon.is_chain
    assert pinned(human) == {"hand.L": BOTH, "hand.R": BOTH}
    assert human.pose.bones["upper_arm.R"].ik_addon.give == 0.25


# ---- marks in the viewport


def marks(addon: Addon) -> dict[float, Any]:
    """Return the places of marks, as the overlay finds them."""
    view_layer = bpy.context.view_layer
    view_layer.update()
    rigs = addon.module("ui.overlay.draw").state.reader.rigs(view_layer, None)
    found: dict[float, Any] = addon.module("ui.overlay.read").pinned(rigs, view_layer.depsgraph)
    return found


def test_marks_are_where_pinned_bones_are(human: bpy.types.Object, addon: Addon) -> None:
    module = addon.module("ui.overlay.read")
    assert not any(len(places) for places in marks(addon).values())
    human.matrix_world = Matrix.Translation((1.0, 2.0, 3.0))
    human.pose.bones["hand.L"].ik_addon.pin = {"LOCATION"}
    human.pose.bones["foot.L"].ik_addon.pin = BOTH
    found = marks(addon)
    hand, foot = (np.array((1, 2, 3)) + human.pose.bones[name].head for name in ("hand.L", "foot.L"))
    assert np.allclose(sorted(found[module.DIAMOND].tolist()), sorted([hand.tolist(), foot.tolist()]), atol=1e-6)
    assert np.allclose(found[module.RING], [foot], atol=1e-6)
    human.pose.bones["foot.L"].ik_addon.pin = set()
    human.data.bones["hand.L"].name = "other"
    assert [len(places) for places in marks(addon).values()] == [1, 0]


@pytest.mark.parametrize("is_perspective", [False, True])
def test_marks_have_the_same_size_on_the_screen(addon: Addon, is_perspective: bool) -> None:
    module = addon.module("ui.overlay.geometry")
    last = (0, 0, -1, 0) if is_perspective else (0, 0, 0, 1)
    projection = Matrix([(0.5, 0, 0, 0), (0, 0.5, 0, 0), (0, 0, -1, -2), last])
    view = SimpleNamespace(view_matrix=Matrix.Identity(4), perspective_matrix=projection)
    places = np.array([(0.0, 0.0, -1.0), (0.3, 0.0, -4.0)])
    lines = module.marks({module.RING: places, module.DIAMOND: np.zeros((0, 3))}, view, 800.0, 2.0)
    clip = np.concatenate([lines, np.ones((len(lines), 1))], axis=1).dot(np.array(view.perspective_matrix).T)
    pixels = clip[:, 0] / clip[:, 3] * 400.0
    for part in np.split(pixels, 2):
        assert np.ptp(part) / 2.0 == pytest.approx(2.0 * module.RING, rel=1e-3)
    behind = module.marks({module.RING: np.array([(0.0, 0.0, 1.0)])}, view, 800.0, 1.0)
    assert len(behind) == (0 if is_perspective else 2 * module.MARK_SIDES[module.RING])


# ---- picking the bone under the mouse, by the lines that bones are on the screen


NEAR = 10.0


ARM = [[(0, 0, 0.5), (50, 0, 0.5)], [(50, 0, 0.5), (100, 0, 0.5)]]
NAN = float("nan")
BEHIND, BEFORE = [(0, 0, 0.7), (50, 0, 0.7)], [(0, 0, 0.3), (50, 0, 0.3)]
FOUND: Any = (
    (ARM, (20, 5), 0),
    (ARM, (80, -5), 1),
    (ARM, (50, 3), 1),  # a joint belongs to the child
    (ARM, (20, 11), None),
    (ARM, (-9, 0), 0),
    (ARM, (-11, 0), None),
    ([[(0, 0, 0.5), (500, 0, 0.5)]], (250, 40), 0),  # a long bone is as wide as it is drawn
    ([BEHIND, BEFORE], (20, 0), 1),  # of two bones the one nearer to the viewer
    ([BEFORE, BEHIND], (20, 0), 0),
    ([[(NAN, NAN, NAN), (50, 0, 0.5)]], (20, 0), None),  # behind the viewer
    ([[(20, 0, 0.5), (20, 0, 0.5)]], (25, 0), 0),  # of zero length
)
"""Lines of bones on the screen, a place, and the bone that is found there."""


def test_the_nearest_bone_is_found_within_some_pixels(addon: Addon) -> None:
    for lines, place, index in FOUND:
        found = addon.module("posing.pick").nearest(np.array(lines, dtype=float), np.array(place), NEAR)
        assert found == index, (lines, place)


@pytest.fixture
def seen(human: bpy.types.Object) -> Any:
    """Return the human metarig, seen from the front in a region of 1000 by 1000 pixels, with 400 pixels per meter."""
    bpy.ops.object.mode_set(mode="POSE")
    view = Matrix(((1, 0, 0, 0), (0, 0, 1, -1), (0, -1, 0, -10), (0, 0, 0, 1)))
    matrix = Matrix.Diagonal((0.8, 0.8, -0.01, 1.0)) @ view
    return SimpleNamespace(
        region=SimpleNamespace(width=1000, height=1000),
        region_data=SimpleNamespace(perspective_matrix=matrix),
        visible_pose_bones=bpy.context.visible_pose_bones,
        preferences=bpy.context.preferences,
    )


def test_bones_of_an_armature_are_found_in_a_view(addon: Addon, human: bpy.types.Object, seen: Any) -> None:
    module = addon.module("posing.pick")
    bone = human.pose.bones["forearm.L"]
    for share, use_tail in ((0.2, False), (0.8, True)):
        place = human.matrix_world @ bone.head.lerp(bone.tail, share)
        pixel = Vector((500.0 + 400.0 * place.x, 500.0 + 400.0 * (place.z - 1.0)))
        found = module.picked(seen, pixel)
        assert (found.bone.name, found.use_tail) == ("forearm.L", use_tail)
        ends = [(500.0 + 400.0 * end.x, 500.0 + 400.0 * (end.z - 1.0)) for end in (bone.head, bone.tail)]
        assert np.allclose(found.ends, ends, atol=1e-2)
    assert module.picked(seen, Vector((20.0, 20.0))) is None
    human.data.bones["forearm.L"].hide_select = True
    found = module.picked(seen, pixel)
    assert found is None or found.bone.name != "forearm.L"


def test_under_a_target_the_joint_that_follows_it_is_found(addon: Addon, human: bpy.types.Object, seen: Any) -> None:
    module = addon.module("posing.pick")
    assert bpy.ops.ik_addon.character_setup(regions={"ARM"}, controls="BONES") == {"FINISHED"}
    target = human.pose.bones["forearm.L"].ik_addon.target_bone
    assert module.target_bones([human])[human.pose.bones[target]].name == "forearm.L"
    view = SimpleNamespace(**{**vars(seen), "visible_pose_bones": list(human.pose.bones)})
    place, *ends = module.on_screen(view, [human.pose.bones[name] for name in (target, "forearm.L")])[:, :, :2]
    wrist, elbow = Vector(place[0]), Vector(ends[0][0])
    for share in (0.0, 8.0 / (elbow - wrist).length):  # at the wrist, and a few pixels up the arm
        found = module.picked(view, wrist.lerp(elbow, share))
        assert found is not None
        assert (found.bone.name, found.use_tail) == ("hand.L", False)
    found = module.picked(view, wrist.lerp(elbow, 0.3))
    assert found is not None
    assert (found.bone.name, found.use_tail) == ("forearm.L", True)
