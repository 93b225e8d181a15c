"""A linked rig keeps its FK pose through overrides, saving, resyncing and Make Local, and reports what it cannot do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import bpy
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.rigs import save_and_open

FRAME = 9
"""The frame on which FK poses are compared."""

Channels = dict[str, tuple[Any, ...]]
"""By bone: rotation mode, location, rotation in that mode, scale."""


def channels(ob: bpy.types.Object) -> Channels:
    """Return the channels of a rig."""
    fields = {"QUATERNION": "rotation_quaternion", "XYZ": "rotation_euler"}
    bones: Any = ob.pose.bones
    return {
        bone.name: (bone.rotation_mode, *bone.location, *getattr(bone, fields[bone.rotation_mode]), *bone.scale)
        for bone in bones
    }


def character() -> bpy.types.Object:
    """A rig and its target in a collection: two bones posed by hand, in two rotation modes, and one keyed."""
    ob = rigs.limb(rigs.bent(4), ["root", "keyed", "upper", "lower"])
    target = rigs.empty("Target")
    rigs.key(target, "location", {1: (0.9, 0.5, 2.5), 20: (0.2, 1.1, 1.9)})
    rigs.key(ob.pose.bones["keyed"], "rotation_quaternion", {1: (1, 0, 0, 0), 20: (0.9, 0.1, 0.3, 0.0)})
    upper, lower = ob.pose.bones["upper"], ob.pose.bones["lower"]
    upper.rotation_mode, upper.rotation_euler = "XYZ", (0.2, 0.1, 0.0)
    lower.rotation_quaternion = (0.98, 0.0, 0.17, 0.1)
    rigs.chain(ob, "lower", target, 3)
    rigs.in_collection("Character", ob, target)
    return ob


def in_library(folder: Path) -> tuple[Path, Channels]:
    """Save the live character as a library; return the path and its FK channels. An empty file is open afterwards."""
    ob = character()
    bpy.context.scene.frame_set(FRAME)
    fk = channels(ob)
    rigs.go_live(ob)
    assert channels(ob) != fk
    path = folder / "library.blend"
    rigs.into_library(path)
    bpy.context.scene.frame_set(FRAME)
    return path, fk


def link(path: Path, shown: bool) -> bpy.types.Collection:
    """Link the character into the scene; if `shown`, update and change frames at once, as in a window."""
    collection: bpy.types.Collection
    (collection,) = rigs.from_library(path, "collections", "Character")
    bpy.context.scene.collection.children.link(collection)
    if shown:
        bpy.context.view_layer.update()
        bpy.context.scene.frame_set(3)
        bpy.context.scene.frame_set(FRAME)
    return collection


def linked_rig() -> bpy.types.Object:
    (ob,) = (ob for ob in bpy.data.objects if ob.type == "ARMATURE" and ob.library is not None)
    return ob


def own_rig() -> bpy.types.Object:
    """The rig in the scene that belongs to this file: the override, or the one made local."""
    (ob,) = (ob for ob in bpy.context.scene.objects if ob.type == "ARMATURE" and ob.library is None)
    return ob


def _of_collection(collection: bpy.types.Collection, editable: bool) -> None:
    scene, layer = bpy.context.scene, bpy.context.view_layer
    collection.override_hierarchy_create(scene, layer, do_fully_editable=editable)
    scene.collection.children.unlink(collection)


def _of_object(collection: bpy.types.Collection, editable: bool) -> None:
    scene, layer = bpy.context.scene, bpy.context.view_layer
    ob = linked_rig()
    scene.collection.objects.link(ob)
    scene.collection.children.unlink(collection)
    ob.override_hierarchy_create(scene, layer, do_fully_editable=editable)


def _alone(collection: bpy.types.Collection, _editable: bool) -> None:
    ob = linked_rig()
    bpy.context.scene.collection.objects.link(ob)
    bpy.context.scene.collection.children.unlink(collection)
    ob.override_create(remap_local_usages=True)


def _by_operator(collection: bpy.types.Collection, _editable: bool) -> None:
    bpy.context.scene.collection.children.unlink(collection)
    instance = rigs.empty("Instance")
    instance.instance_type, instance.instance_collection = "COLLECTION", collection
    rigs.select(instance)
    bpy.ops.object.make_override_library(collection=collection.session_uid)


Override = Callable[[bpy.types.Collection, bool], None]
WAYS: dict[str, tuple[Override, bool, bool]] = {
    "the collection": (_of_collection, True, False),
    "the object": (_of_object, True, False),
    "the object alone": (_alone, True, False),
    "the operator": (_by_operator, True, False),
    **{
        f"{name}, {'made editable' if later else 'not editable'}": (way, False, later)
        for name, way in (("the collection", _of_collection), ("the object", _of_object))
        for later in (True, False)
    },
}
"""Ways to make an override, whether it is editable at once, of everything or of what was chosen, and whether later."""

shown_or_not = pytest.mark.parametrize("shown", [True, False], ids=["shown", "not shown"])
saved = pytest.mark.parametrize("saves", [0, 2])


def fk_of(ob: bpy.types.Object) -> Channels:
    """Turn Live off; return the channels on `FRAME`."""
    ob.ik_addon.live = False
    bpy.context.scene.frame_set(FRAME)
    return channels(ob)


def message(addon: Addon, ob: bpy.types.Object) -> str:
    """The message that the panel shows for the chain."""
    told: str = addon.report(ob).message
    return told


def make_editable(ob: bpy.types.Object) -> None:
    """Make an override editable, as Library Override > Make > Editable in the Outliner does."""
    library: Any = ob.override_library
    library.is_system_override = False
    ob.update_tag()
    bpy.context.view_layer.update()


def shot(folder: Path, way: Override | None, editable: bool, shown: bool, saves: int) -> Channels:
    """Bring the live character into another file, by an override or linked, and go on; return its FK channels."""
    library, fk = in_library(folder)
    collection = link(library, shown)
    if way is not None:
        way(collection, editable)
    bpy.context.view_layer.update()
    bpy.context.scene.frame_set(12)
    save_and_open(folder / "shot.blend", saves)
    return fk


@saved
@shown_or_not
@pytest.mark.parametrize("way", WAYS)
def test_the_fk_pose_of_an_override_is_restored(way: str, shown: bool, saves: int, tmp_path: Path) -> None:
    override, editable, later = WAYS[way]
    fk = shot(tmp_path, override, editable, shown, saves)
    ob = own_rig()
    assert ob.ik_addon.live
    assert ob.override_library is not None
    assert ob.override_library.is_system_override is not editable
    if later:
        make_editable(ob)
        save_and_open(tmp_path / "shot.blend", saves)
    assert fk_of(own_rig()) == fk


@pytest.mark.parametrize("editable", [True, False], ids=["editable", "not editable"])
@shown_or_not
def test_the_fk_pose_of_a_resynced_override_is_restored(shown: bool, editable: bool, tmp_path: Path) -> None:
    library, fk = in_library(tmp_path)
    _of_collection(link(library, shown), editable)
    bpy.context.view_layer.update()
    override: Any = own_rig().override_library
    assert override.resync(bpy.context.scene)
    bpy.context.view_layer.update()
    bpy.context.scene.frame_set(12)
    save_and_open(tmp_path / "shot.blend", 1)
    ob = own_rig()
    make_editable(ob)
    assert fk_of(ob) == fk


def test_the_fk_pose_is_restored_after_the_library_changed(tmp_path: Path) -> None:
    library, fk = in_library(tmp_path)
    _of_collection(link(library, shown=True), True)
    save_and_open(tmp_path / "shot.blend", 1)
    bpy.ops.wm.open_mainfile(filepath=str(library))
    bpy.data.objects["Rig"].ik_addon.live = False
    bpy.data.collections["Character"].objects.link(bpy.data.objects.new("Hat", None))
    rigs.change(bpy.data.objects["Rig"].ik_addon, live=True)
    bpy.ops.wm.save_as_mainfile(filepath=str(library))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    assert fk_of(own_rig()) == fk


@pytest.mark.parametrize("brought", ["linked", "editable", "not editable"])
@pytest.mark.parametrize("saves", [0, 1])
@shown_or_not
def test_the_fk_pose_is_restored_after_make_local(shown: bool, saves: int, brought: str, tmp_path: Path) -> None:
    fk = shot(tmp_path, None if brought == "linked" else _of_collection, brought == "editable", shown, saves)
    bpy.ops.object.make_local(type="ALL")
    bpy.context.view_layer.update()
    bpy.context.scene.frame_set(5)
    ob = own_rig()
    assert ob.override_library is None
    assert ob.ik_addon.live
    save_and_open(tmp_path / "shot.blend", saves)
    assert fk_of(own_rig()) == fk


@pytest.mark.parametrize("way", ["the collection, not editable", "the object, not editable"])
@pytest.mark.parametrize("saves", [0, 1])
def test_an_override_that_is_not_editable_reports_it(addon: Addon, saves: int, way: str, tmp_path: Path) -> None:
    library, _ = in_library(tmp_path)
    WAYS[way][0](link(library, shown=True), False)
    bpy.context.view_layer.update()
    save_and_open(tmp_path / "shot.blend", saves)
    for frame in (None, 12, FRAME):
        if frame is not None:
            bpy.context.scene.frame_set(frame)
        assert "editable" in message(addon, own_rig())
    target = next(ob for ob in bpy.data.objects if ob.name == "Target" and ("object" in way or not ob.library))
    rigs.shift(target, x=-0.3)
    assert "editable" in message(addon, own_rig())


def test_an_override_made_editable_is_solved_at_once(addon: Addon, tmp_path: Path) -> None:
    library, _ = in_library(tmp_path)
    _of_collection(link(library, shown=True), False)
    bpy.context.view_layer.update()
    ob = own_rig()
    make_editable(ob)
    for frame in (FRAME, 12, 3):
        bpy.context.scene.frame_set(frame)
        assert message(addon, ob) == "Reached"
        assert rigs.miss(ob) < 1e-5


def test_a_linked_rig_reports_what_to_do_and_never_that_it_reached_its_target(addon: Addon, tmp_path: Path) -> None:
    library, _ = in_library(tmp_path)
    link(library, shown=False)
    before = channels(linked_rig())
    for frame in (FRAME, 12, 3):
        bpy.context.scene.frame_set(frame)
        bpy.context.view_layer.update()
        assert "override" in message(addon, linked_rig())
        after = channels(linked_rig())
        assert (after["upper"], after["lower"]) == (before["upper"], before["lower"])


# ---- what is saved of an override


def as_override(folder: Path, shown: bool = False) -> bpy.types.Object:
    """Save the file as a library; return the rig of an editable override of its character, in an empty file."""
    rigs.into_library(folder / "library.blend")
    _of_collection(link(folder / "library.blend", shown), True)
    bpy.context.view_layer.update()
    return own_rig()


def plain(folder: Path) -> bpy.types.Object:
    """Return an override of a linked rig whose bones have no settings."""
    ob = rigs.limb(rigs.bent(4), ["root", "keyed", "upper", "lower"])
    rigs.in_collection("Character", ob)
    return as_override(folder, shown=True)


def overridden() -> set[str]:
    """The data paths that the override differs in, as Blender stored them."""
    override: Any = own_rig().override_library
    return {difference.rna_path for difference in override.properties}


def test_an_override_without_chains_is_saved_as_without_the_extension(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plain(tmp_path).pose.bones["upper"].location = (1.0, 0.0, 0.0)
    for _ in range(3):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        assert overridden() == {'pose.bones["upper"].location'}
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    assert "expected ID type" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("side", ["linked", "override"])
def test_reading_the_settings_of_a_bone_is_not_saved_as_a_change(
    side: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ob = plain(tmp_path)
    for nested in (False, True):
        settings: Any = (ob if side == "override" else linked_rig()).pose.bones["upper"]
        _ = settings.ik_addon.base.stored if nested else settings.ik_addon.is_chain
        for _again in range(2):
            bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
            assert overridden() == set()
            bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
        ob = own_rig()
    assert "expected ID type" not in "".join(capfd.readouterr())


def test_a_chain_added_to_an_override_is_saved(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rigs.chain(plain(tmp_path), "lower", rigs.empty("Target", (0.5, 0.9, 1.5)), 2)
    for _ in range(3):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        assert {path for path in overridden() if "ik_addon" in path} <= {
            "ik_addon.layout",
            "ik_addon.goals",
            *(f'pose.bones["lower"].ik_addon.{own}' for own in ("is_chain", "chain_length", "target_object", "stamp")),
        }
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
        chain = own_rig().pose.bones["lower"].ik_addon
        assert chain.is_chain
        assert (chain.chain_length, chain.target) == (2, bpy.data.objects["Target"])
    assert "expected ID type" not in "".join(capfd.readouterr())


def test_an_override_of_a_live_rig_is_opened_without_errors(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    library, _ = in_library(tmp_path)
    _of_collection(link(library, shown=True), True)
    for _ in range(3):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        assert not [path for path in overridden() if path.endswith((".ik_addon", ".base"))]
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
        bpy.context.scene.frame_set(12)
    assert "expected ID type" not in "".join(capfd.readouterr())
