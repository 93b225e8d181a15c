"""Whatever is animated, a pose depends on the frame alone: not on where a session began, nor on what evaluates it.

Each property that Blender can animate is keyed in turn on a small character: on its bones, its constraints, its
targets and everything that these are attached to. The resulting poses, in sessions that begin on different frames, in
renders and after a bake, are compared with the poses where the same value is set by hand.
"""

import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from numpy.typing import NDArray

from tests import rigs
from tests.animatable import BEGIN, NEVER, TURN, Animatable, reason, walk
from tests.conftest import Addon
from tests.renders import Recorder, registered, set_up

LAST = 20
FRAMES = (BEGIN, TURN - 1, TURN, LAST)
"""The first and last frame of each of the two values."""
SAME = 1e-6
"""Tolerance, in lengths of the shorter chain."""
CHAINS = ("upper", "lower", "tail1", "tail2", "tail3", "tail4")
"""The bones of all chains of all armatures."""
SWITCH, STATE = "Switch", "state"
"""The object and its custom property that all drivers read: 0 before frame `TURN`, 1 from there on."""
ARMATURES = ("Other", "Third", "Rig")
"""In an order in which they can be baked: targets of the later ones may be attached to the first."""

Poses = dict[float, NDArray[np.float64]]
"""All pose matrices of all armatures, by frame."""

EXCEPTIONS = {
    **NEVER,
    '*"hips"].rotation_mode': "where the rotation is keyed Blender converts what it finds, from the frame before",
    "objects/Rig/hide_viewport": "Blender evaluates no pose that is not shown, and leaves what was there",
    "objects/Other/hide_viewport": "likewise",
    "objects/Third/hide_viewport": "likewise",
}
"""Patterns of properties that are not compared, and why. Even with Live off, they depend on the previous frame."""
DRIVEN = {
    **{f'*/pose.bones["{bone}"].rotation_quaternion*': "a chain whose bones are driven is refused" for bone in CHAINS},
    'objects/Other/pose.bones["hand"].rotation_quaternion*': "likewise",
    "*/pose_position": "Blender may evaluate the pose before the driver",
}
"""Patterns of properties that are not compared when driven, and why."""
APART = {
    "rendered": {
        "*/hide_viewport": "it is meant for viewports alone",
        "*/hide_render": "it is meant for renders alone",
    },
    "baked": {
        "*/pose_position": "a bake refuses an armature that is shown in its rest position",
        '*"].rotation_mode': "a bake refuses bones whose mode is animated, beside which Blender plays no keys reliably",
    },
}
"""Patterns of properties that are not compared for some `ways`, and why, by the first word of the name of the way."""


# ---- the character


def build() -> None:
    """Build an arm with a pole, a tail with limits, and two arms, one with a hand; targets are attached in all ways."""
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = BEGIN, LAST
    point = rigs.empty("Point")
    point.parent = rigs.empty("Stand", (0.1, -0.1, 0.2))
    other = _arm("Other", 2.0, point)
    rigs.add_bones(other, [(2.0, 0.0, 2.0), (2.0, -0.1, 2.3)], ["hand"], parent="lower")
    rigs.chain(other, "lower", point, 2, end_bone="hand", use_end_rotation=True)
    mark = rigs.empty("Mark", (3.5, 0.5, 1.0))
    _arm("Third", 3.0, mark)
    ob = rigs.limb([(0.0, 0.0, 1.0), (0.0, 0.0, 1.3), (0.0, 0.05, 1.8)], ["hips", "chest"], name="Rig")
    rigs.add_bones(ob, [(0.0, -0.3, 1.5), (0.0, -0.5, 1.5)], ["handle"], parent="hips")
    arm = [(0.2, 0.0, 1.8), (0.9, 0.15, 1.8), (1.6, 0.0, 1.8), (1.8, 0.0, 1.8)]
    rigs.add_bones(ob, arm, ["upper", "lower", "hand"], parent="chest")
    tail = [(0.0, 0.1, 1.0), (0.0, 0.5, 0.9), (0.0, 0.9, 0.9), (0.0, 1.3, 1.0), (0.0, 1.7, 1.2)]
    rigs.add_bones(ob, tail, ["tail1", "tail2", "tail3", "tail4"], parent="hips")
    hand, lure, elbow = rigs.empty("Hand"), rigs.empty("Lure"), rigs.empty("Elbow", (0.4, 0.6, 0.3))
    prop, guide = rigs.empty("Prop", (0.3, -0.2, 0.4)), rigs.empty("Guide")
    guide.rotation_euler = (0.2, 0.5, -0.3)
    _carry(hand, prop)
    for target in (lure, mark):
        _carry(target, other, "lower").influence = 0.0
    lure.parent = prop
    elbow.parent, elbow.parent_type, elbow.parent_bone = ob, "BONE", "handle"
    for name, kind, aim in (("chest", "COPY_ROTATION", guide), ("upper", "COPY_ROTATION", guide), ("hand", "IK", prop)):
        rigs.constrain(ob.pose.bones[name], kind, target=aim, influence=0.5, mute=name != "chest")
    ob.pose.bones["hand"].constraints[0].chain_count = 3
    rigs.chain(ob, "lower", hand, 2, pole=elbow)
    rigs.chain(ob, "tail4", lure, 4, tolerance=1e-8)
    for bone in ob.pose.bones:
        _limit(bone)
        if bone.name not in {"hips", "handle"}:
            bone.rotation_quaternion = (0.98, 0.05, -0.08, 0.1)
    _animate(ob)


def _arm(name: str, x: float, target: bpy.types.Object) -> bpy.types.Object:
    ob = rigs.limb([(x, 0.0, 0.0), (x, -0.2, 1.0), (x, 0.0, 2.0)], ["upper", "lower"], name=name)
    rigs.chain(ob, "lower", target, 2)
    return ob


def _carry(ob: bpy.types.Object, carrier: bpy.types.Object, bone: str = "") -> Any:
    constraint = rigs.constrain(ob, "CHILD_OF", target=carrier, subtarget=bone)
    bpy.context.view_layer.update()
    frame = carrier.matrix_world @ carrier.pose.bones[bone].matrix if bone else carrier.matrix_world
    constraint.inverse_matrix = frame.inverted()
    return constraint


def _limit(bone: bpy.types.PoseBone) -> None:
    """Give a bone narrow limits; only those about X are enabled, and only on two bones of the tail."""
    for axis in "xyz":
        setattr(bone, f"ik_min_{axis}", -0.3)
        setattr(bone, f"ik_max_{axis}", 0.2)
    bone.use_ik_limit_x = bone.name in {"tail2", "tail3"}
    bone.ik_stiffness_x = 0.2 if bone.name == "tail3" else 0.0


def _animate(ob: bpy.types.Object) -> None:
    moves = {
        "Point": {1: (2.6, 0.4, 1.0), 20: (1.6, 0.9, 0.9)},
        "Hand": {1: (0.9, 0.3, 2.2), 20: (0.8, -0.6, 1.4)},
        "Lure": {1: (0.3, 1.5, 0.3), 20: (-0.4, 1.2, 1.1)},
        "Prop": {1: (0.3, -0.2, 0.4), 20: (0.1, 0.1, 0.6)},
    }
    for name, places in moves.items():
        rigs.key(bpy.data.objects[name], "location", dict(places))
    rigs.key(bpy.data.objects["Prop"], "rotation_euler", {1: (0.0, 0.0, 0.0), 20: (0.1, -0.3, 0.2)})
    hips: Any = ob.pose.bones["hips"]
    rigs.key(hips, "rotation_quaternion", {1: (1.0, 0.0, 0.0, 0.0), 20: (0.95, 0.1, 0.2, -0.1)})


@dataclass(frozen=True)
class Character:
    """The character saved in a file with Live off, and its animatable properties."""

    file: Path
    properties: dict[str, Animatable]
    """By name."""
    animated: frozenset[str]
    """Names of the properties that are keyed in the file."""
    size: float
    """Length of the shorter chain."""
    expected: dict[str, Poses] = field(default_factory=dict, repr=False)
    """Cache of the poses of `by_hand`, by the change made to the file."""

    def compared(self, driven: bool = False) -> list[Animatable]:
        """Return the properties without the exceptions."""
        exceptions = EXCEPTIONS | (DRIVEN if driven else {})
        return [prop for prop in self.properties.values() if reason(exceptions, prop.change) is None]


def in_file(folder: Path) -> Character:
    """Build the character in an empty file and save it; discards the open file."""
    rigs.new_file()
    build()
    bpy.context.scene.frame_set(BEGIN)
    found = [prop for ob in list(bpy.data.objects) for prop in walk(ob)]
    found += [prop for armature in bpy.data.armatures for prop in walk(armature)]
    animated = frozenset(prop.name for prop in found if prop.is_keyed())
    size = rigs.length(bpy.data.objects["Rig"], "lower", 2)
    _add_switch()
    set_up(bpy.context.scene, folder)
    file = folder / "character.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(file))
    return Character(file, {prop.name: prop for prop in found}, animated, size)


# ---- ways to a pose


def _add_switch() -> None:
    switch: Any = rigs.empty(SWITCH)
    for frame, state in ((BEGIN, 0.0), (TURN - 1, 0.0), (TURN, 1.0)):
        switch[STATE] = state
        switch.keyframe_insert(f'["{STATE}"]', frame=frame)


def _pose(depsgraph: bpy.types.Depsgraph) -> NDArray[np.float64]:
    return np.concatenate([rigs.pose(bpy.data.objects[name], depsgraph) for name in ARMATURES]).astype(np.float64)


def _played(frames: Iterable[int]) -> Poses:
    return rigs.on_frames(frames, lambda: _pose(bpy.context.evaluated_depsgraph_get()))


def _rendered(frames: Iterable[int]) -> Poses:
    scene: Any = bpy.context.scene
    scene.render.engine = Recorder.bl_idname
    Recorder.note, Recorder.seen = staticmethod(_pose), []
    Recorder.parts = [frame - scene.frame_current for frame in frames]
    bpy.ops.render.render()
    scene.render.engine = "BLENDER_WORKBENCH"
    return {frame: pose for _scene, _layer, frame, pose in Recorder.seen}


def _baked(frames: Sequence[int]) -> Poses:
    """Bake consecutive frames, one armature after the other, and play them with Live off."""
    for name in ARMATURES:
        bpy.context.view_layer.objects.active = bpy.data.objects[name]
        bpy.ops.ik_addon.bake(frame_range="CUSTOM", frame_start=min(frames), frame_end=max(frames))
    _live(False)
    return _played(frames)


def _live(live: bool) -> None:
    for name in ARMATURES:
        bpy.data.objects[name].ik_addon.live = live


def by_hand(character: Character, prop: Animatable) -> tuple[Poses, Poses]:
    """Return the poses with each of two values of a property, set by hand and not animated."""
    first, second = prop.values
    # The first value is that of the file, so nothing changes except where keys are removed.
    unchanged = prop.name if prop.name in character.animated else ""
    return _with(character, unchanged, prop, first), _with(character, prop.change, prop, second)


def _with(character: Character, change: str, prop: Animatable, value: Any) -> Poses:
    if change not in character.expected:
        bpy.ops.wm.open_mainfile(filepath=str(character.file))
        prop.release()
        prop.set(value)
        _live(True)
        character.expected[change] = _played(FRAMES)
    return character.expected[change]


def ways(folder: Path) -> Iterator[tuple[str, Callable[[], Poses]]]:
    """Yield each way to pose the open character, with its name; call one before asking for the next."""
    first, last = folder / "first.blend", folder / "last.blend"
    for frame, file in ((LAST, last), (BEGIN, first)):
        _live(False)
        bpy.context.scene.frame_set(frame)
        _live(True)
        bpy.context.view_layer.update()
        bpy.ops.wm.save_as_mainfile(filepath=str(file))
    bpy.ops.wm.open_mainfile(filepath=str(first))
    yield "rendered from the first frame", lambda: _rendered(FRAMES)
    yield "played from the first frame", lambda: _played(FRAMES)
    yield "baked", lambda: _baked(FRAMES[1:3])
    bpy.ops.wm.open_mainfile(filepath=str(last))
    yield "rendered from the last frame", lambda: _rendered(FRAMES[::-1])
    yield "played from the last frame, in disorder", lambda: _played((LAST, BEGIN, TURN, TURN - 1))


def check_property(character: Character, prop: Animatable, folder: Path, driven: bool = False) -> list[str]:
    """Key a property, or drive it by a keyed one, and compare the poses of all ways with those set by hand.

    Returns:
        The differences, a sentence for each way.
    """
    first, second = by_hand(character, prop)
    expected = {frame: (first if frame < TURN else second)[frame] for frame in FRAMES}
    bpy.ops.wm.open_mainfile(filepath=str(character.file))
    if driven:
        prop.drive(bpy.data.objects[SWITCH], STATE)
    else:
        prop.key()
    wrong = []
    for way, poses in ways(folder):
        try:
            differs = _difference(character, poses(), expected)
        except RuntimeError as error:  # a bake is refused
            differs = str(error)
        if differs and reason(APART.get(way.split()[0], {}), prop.change) is None:
            wrong.append(f"{way}: {differs}")
    return wrong


def _difference(character: Character, found: Poses, expected: Poses, same: float = SAME) -> str:
    """Say in a sentence how far poses are from the expected ones; empty if they are the same."""
    off = {f: float(np.abs(pose - expected[f]).max()) / character.size for f, pose in sorted(found.items())}
    if max(off.values()) <= same:  # false if any is NaN
        return ""
    return ", ".join(f"frame {frame} is off by {distance:.1e}" for frame, distance in off.items())


# ---- tests


@cache
def _cases() -> tuple[Character, list[tuple[Animatable, bool]], Path]:
    """The character, its properties (each keyed and driven) in random order, and a folder for files."""
    folder = Path(tempfile.mkdtemp(prefix="animated-"))
    with registered():
        character = in_file(folder)
    cases = [(prop, driven) for driven in (False, True) for prop in character.compared(driven)]
    random.Random(0).shuffle(cases)
    return character, cases, folder


def check_seed(seed: int) -> None:
    """Key or drive one property and compare all ways to its poses; as many seeds as there are cases try them all."""
    character, cases, folder = _cases()
    prop, driven = cases[seed % len(cases)]
    with registered():
        wrong = check_property(character, prop, folder, driven)
    assert not wrong, f"{prop.change}, {'driven' if driven else 'keyed'}: {wrong}"


REPORTED = (
    'objects/Mark/constraints["Child Of"].influence',
    "objects/Hand/hide_viewport",
    "objects/Point/matrix_parent_inverse[12]",
    'objects/Rig/pose.bones["chest"].constraints["Copy Rotation"].influence',
    'objects/Rig/pose.bones["upper"].constraints["Copy Rotation"].mute',
    'objects/Rig/pose.bones["hand"].constraints["IK"].mute',
    'objects/Rig/pose.bones["upper"].rotation_mode',
    'objects/Other/pose.bones["hand"].rotation_mode',
    'objects/Rig/pose.bones["lower"].use_ik_limit_x',
    'objects/Rig/pose.bones["tail3"].ik_max_x',
    'objects/Rig/pose.bones["lower"].ik_addon.influence',
    'objects/Rig/pose.bones["tail4"].ik_addon.softness',
    'armatures/Rig/bones["upper"].use_inherit_rotation',
    'armatures/Rig/bones["tail1"].inherit_scale',
)
"""Properties that were once read only at the start of a session, or that are animated most often."""
DRIVEN_ONES = (
    "objects/Hand/hide_viewport",
    'objects/Rig/pose.bones["upper"].constraints["Copy Rotation"].mute',
    'objects/Rig/pose.bones["tail3"].ik_max_x',
    'objects/Rig/pose.bones["lower"].ik_addon.influence',
    'armatures/Rig/bones["upper"].use_inherit_rotation',
)
"""Some of `REPORTED`; `make fuzz ARGS=animated` drives all properties."""
SAMPLE = 3
"""Number of other properties that a run tests; each Blender version tests different ones."""


@pytest.fixture(scope="module")
def character(addon: Addon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Character]:
    """The character in a file, with the engine to render it registered."""
    with registered():
        yield in_file(tmp_path_factory.mktemp("character"))


def sample(character: Character, count: int) -> list[Animatable]:
    """Return random properties, each of a different kind; the choice is fixed for a Blender version."""
    kinds: dict[str, list[Animatable]] = {}
    for prop in character.compared():
        part, _, identifier = prop.path.rpartition(".")
        if part:
            kinds.setdefault(f"{prop.kind} {identifier}", []).append(prop)
    chosen = random.Random(bpy.app.version_string)
    return [chosen.choice(kinds[kind]) for kind in chosen.sample(sorted(kinds), count)]


@pytest.mark.parametrize(("name", "driven"), [*product(REPORTED, [False]), *product(DRIVEN_ONES, [True])])
def test_a_setting_is_read_on_each_frame(character: Character, name: str, driven: bool, tmp_path: Path) -> None:
    assert not check_property(character, character.properties[name], tmp_path, driven)


def test_any_keyed_property_is_read_on_each_frame(character: Character, tmp_path: Path) -> None:
    for prop in sample(character, SAMPLE):
        assert not check_property(character, prop, tmp_path), prop.name


@pytest.mark.usefixtures("character")
def test_an_armature_with_refused_chains_renders_as_it_plays(tmp_path: Path) -> None:
    in_file(tmp_path)
    third: Any = bpy.data.objects["Third"]
    rigs.constrain(third.pose.bones["upper"], "CHILD_OF", target=bpy.data.objects["Point"])
    third.driver_add("show_empty_image_orthographic").driver.expression = "frame > 10"
    _live(True)
    order = (LAST, TURN, BEGIN)
    rendered, played = _rendered(order), _played(order)
    assert all(np.abs(rendered[frame] - played[frame]).max() < SAME for frame in order)
