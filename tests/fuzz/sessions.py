"""One random scene and many ways to its frames: the poses are the same whatever evaluates them, in any order.

Anything in the scene may be keyed or driven; it may have several view layers, or come from a library. It is opened on
different frames, played in order and in random order, rendered, baked, and turned off.
"""

import contextlib
import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from bpy.app.handlers import persistent
from numpy.random import Generator
from numpy.typing import NDArray

from tests import rigs as scenes
from tests.animatable import NEVER, TURN, reason, walk
from tests.renders import Recorder, registered
from tools import blender

from . import rigs
from .case import watched
from .productions import added
from .rigs import armatures, choose

SAME = 1e-6
"""Largest difference allowed between poses, relative to the greatest of: length of all bones, values of the pose, 1."""
SLIDES = 1e-3
"""The same for baked trees that miss their targets: rounding may let them slide along their limits."""
FIRST, LAST = 1, 20
BEFORE, AFTER = TURN - 1, TURN
"""Keyed values change between these two frames, unless eased; these two frames are baked."""
PLACES = ((FIRST, 0.0), (6, 0.5), (BEFORE, 0.0), (AFTER, 0.0), (LAST, 0.0))
"""Frames and sub-frames on which poses are compared."""
ITERATIONS = 12
"""Maximum iterations of chains; whether they reach their targets does not matter here."""
LIBRARIES = (*[None] * 8, "editable", "fixed")
"""Kinds of library override that the scene may be: mostly none, else fully editable, or not editable."""
UNTRIED = {
    **NEVER,
    "armatures/*/pose_position": "Blender evaluates no pose for it: one that nothing else moves stays as it was",
    "*/animation_data.*": "it chooses what animates everything else, so it is another animation",
}
"""Patterns of properties that are never animated here, and why."""
SHOWN = {"objects/*/hide_viewport": "it is meant for viewports alone", "objects/*/hide_render": "for renders alone"}
"""Patterns of properties for which renders differ, and why."""
STEERING = re.compile(
    r"constraints\[.*|delta_.*|hide_viewport|ik_(min|max|stiffness)_.|ik_stretch|influence|inherit_scale|location|lock_ik_."
    r"|matrix_parent_inverse|parent_.*|pole_angle|pose_position|push_limit|rotation_.*|scale|softness|tolerance"
    r"|use_(ik_limit_.|inherit_rotation|local_location|relative_parent)"
)
"""Ends of data paths that affect poses; most properties that can be keyed only affect drawing."""
Place = tuple[int, float]
Poses = dict[tuple[Place, str, str], NDArray[np.float32]]
"""All pose matrices, by frame, view layer and armature."""


def _poses(place: Place, depsgraph: bpy.types.Depsgraph) -> Poses:
    layer, found = depsgraph.view_layer.name, {}
    for ob in armatures():
        seen = ob.evaluated_get(depsgraph)
        if ob.name in depsgraph.view_layer.objects and not seen.hide_viewport:  # hidden ones are not evaluated
            found[place, layer, ob.name] = scenes.pose(ob, depsgraph)
    return found


class DifferenceError(AssertionError):
    """A way to a frame leads to another pose."""

    def __init__(self, way: str, what: str) -> None:
        super().__init__(f"{way}: {what}")
        self.way = re.findall(r"\w+", way)[0]
        """Played, rendered, baked or switched, without the order."""


class Session:
    """A scene in a file, and the ways to its frames."""

    def __init__(self, rng: Generator, folder: Path, log: list[str]) -> None:
        self.rng, self.log = rng, log
        self.orders = [[PLACES[i] for i in rng.permutation(len(PLACES))] for _ in range(4)]
        """Random orders of the frames."""
        self.bakes = bool(rng.random() < 0.5)
        self.folder = folder
        self.file = folder / "scene.blend"
        self.changed: list[str] = []
        """Keyed or driven properties, as in `Animatable.change`."""
        self.turned = False
        """Whether the driving property is changed by hand, before chains are live or while they are."""
        self.library: str | None = None
        self.live: list[str] = []
        """Names of the armatures that should be live."""
        self.fk: Poses = {}
        package: Any = blender.PACKAGE
        self.reports, self.chain, self.bake_report = (
            importlib.import_module(f"{package}.ik_addon.{name}")
            for name in ("live.reports", "rig.plan.chain", "bake.bake_report")
        )

    # ---- the scene

    def make(self, live: bool) -> None:
        """Build and save the scene, with nothing solved yet; with `live`, choose armatures to be live."""
        rigs.build(self.rng)
        self.live = [ob.name for ob in armatures() if self.rng.random() < 0.85 and live]
        for ob in armatures():
            self.simplify(ob)
        bpy.context.view_layer.update()
        self.library = choose(self.rng, LIBRARIES)
        self.animate()
        if not self.library:
            self.add_view_layers()
        self.turn()
        self.fk = self.played(PLACES)
        bpy.data.objects["Switch"]["on"] = 0.0
        if self.library:
            self.into_library()
        scene = bpy.context.scene
        scene.frame_start, scene.frame_end = FIRST, LAST
        scene.camera = rigs.link(self.rng, "Camera", bpy.data.cameras.new("Camera"))
        scene.render.resolution_x = scene.render.resolution_y = 8
        scene.frame_set(FIRST)
        bpy.ops.wm.save_as_mainfile(filepath=str(self.file))

    def simplify(self, ob: bpy.types.Object) -> None:
        """Make an armature fast to solve: rarely trees, and few iterations."""
        trees, taken = self.rng.random() < 0.15, set[str]()
        for tip in self.chain.tips(ob):
            bones = {bone.name for bone in self.chain.posed_bones(tip)}
            tip.ik_addon.is_chain = trees or not taken & bones
            tip.ik_addon.iterations = min(tip.ik_addon.iterations, ITERATIONS)
            taken |= bones
            # A bone that starts at the target and tracks it gets its direction from rounding alone.
            for child in tip.children:
                for aim in [each for each in child.constraints if each.type == "DAMPED_TRACK"]:
                    if aim.target == tip.ik_addon.target:
                        child.constraints.remove(aim)

    def animate(self) -> None:
        """Key some random properties, and drive some by a property that is keyed or changed by hand."""
        steering: dict[str, list[Any]] = {}
        others: dict[str, list[Any]] = {}
        for prop in (prop for block in (*bpy.context.scene.objects, *bpy.data.armatures) for prop in walk(block)):
            end = re.sub(r'^(pose\.)?bones\["(\\.|[^"\\])*"\]\.|^ik_addon\.', "", prop.path)
            if reason(UNTRIED, prop.change) is None:
                found = steering if STEERING.fullmatch(end) else others
                found.setdefault(end, []).append(prop)
        switch = rigs.link(self.rng, "Switch", None)
        switch["on"] = 0.0
        # A property in a library cannot be changed.
        self.turned = self.library is None and bool(self.rng.random() < 0.4)
        for frame, value in () if self.turned else ((BEFORE, 0.0), (AFTER, 1.0)):
            switch["on"] = value
            switch.keyframe_insert('["on"]', frame=frame)
        for _ in range(choose(self.rng, [0, 1, 2, 3, 5, 8])):
            # Each kind of property is equally likely, however many bones have it.
            found = steering if self.rng.random() < 0.8 else others
            prop = choose(self.rng, found[choose(self.rng, found)])
            way = choose(self.rng, ["keyed", "eased", "driven"])
            if way == "keyed":
                prop.key()
            elif way == "driven":
                prop.drive(switch, "on")
            else:
                prop.release()
                for frame, value in zip((FIRST, LAST), prop.values, strict=True):
                    prop.set(value)
                    prop.block().keyframe_insert(prop.path, index=prop.index, frame=frame)
            self.changed.append(prop.change)
            self.log.append(f"{way} {prop.name} {prop.values}")

    def add_view_layers(self) -> None:
        """Sometimes add a second view layer, and exclude objects from one of the two."""
        if self.rng.random() < 0.6:
            return
        scene = bpy.context.scene
        layers = [scene.view_layers[0], scene.view_layers.new("Second")]
        for number in range(choose(self.rng, [0, 1, 1, 2])):
            apart = bpy.data.collections.new(f"Apart {number}")
            scene.collection.children.link(apart)
            for ob in rigs.scene_objects():
                if self.rng.random() < 0.35 and ob.name in scene.collection.objects:
                    scene.collection.objects.unlink(ob)
                    apart.objects.link(ob)
            layer = choose(self.rng, layers)
            layer.layer_collection.children[apart.name].exclude = True
            self.log.append(f"{[ob.name for ob in apart.objects]} not in {layer.name}")

    def into_library(self) -> None:
        """Save everything as a library, perhaps live, and make a new scene with an override of it."""
        scene = bpy.context.scene
        cast = bpy.data.collections.new("Cast")
        scene.collection.children.link(cast)
        for ob in rigs.scene_objects():
            scene.collection.objects.unlink(ob)
            cast.objects.link(ob)
        if self.rng.random() < 0.5:
            self.switch(True)
        bpy.context.view_layer.update()
        library = self.folder / "library.blend"
        bpy.ops.wm.save_as_mainfile(filepath=str(library))
        scenes.new_file()
        (linked,) = scenes.from_library(library, "collections", "Cast")
        scene = bpy.context.scene
        shown = self.rng.random() < 0.5
        if shown:
            scene.collection.children.link(linked)
            bpy.context.view_layer.update()
        linked.override_hierarchy_create(scene, bpy.context.view_layer, do_fully_editable=self.library == "editable")
        if shown:
            scene.collection.children.unlink(linked)
        self.log.append(f"override, {self.library}, {'shown' if shown else 'not shown'} before")

    # ---- ways to its frames

    def switch(self, live: bool) -> None:
        """Turn Live on for the chosen armatures, or off for all."""
        for ob in armatures():
            ob.ik_addon.live = live and ob.name in self.live

    def turn(self) -> None:
        """Change the driving property by hand, where it is not keyed."""
        if self.turned:
            switch = bpy.data.objects["Switch"]
            switch["on"] = 1.0
            switch.update_tag()
            bpy.context.view_layer.update()

    def begin(self, frame: int, *, turned_late: bool) -> None:
        """Open the scene, turn chains live on a frame, save and open again."""
        bpy.ops.wm.open_mainfile(filepath=str(self.file))
        if not turned_late:
            self.turn()
        bpy.context.scene.frame_set(frame)
        self.switch(True)
        bpy.context.view_layer.update()
        scenes.save_and_open(self.folder / f"{frame}.blend")
        if turned_late:
            self.turn()

    def played(self, places: Iterable[Place]) -> Poses:
        """Go to frames; return the poses."""
        scene, found = bpy.context.scene, {}
        for frame, part in places:
            scene.frame_set(frame, subframe=part)
            for layer in scene.view_layers:
                found.update(_poses((frame, part), layer.depsgraph))
        return found

    def rendered(self, places: Sequence[Place]) -> Poses:
        """Render frames; return the poses."""
        scene: Any = bpy.context.scene
        before, scene.render.engine = scene.render.engine, Recorder.bl_idname
        found: Poses = {}
        frames = {frame + part: (frame, part) for frame, part in places}

        def note(depsgraph: bpy.types.Depsgraph) -> None:
            found.update(_poses(frames[depsgraph.scene.frame_current_final], depsgraph))

        Recorder.note = staticmethod(note)
        Recorder.parts = [frame - scene.frame_current_final for frame in frames]
        bpy.ops.render.render()
        scene.render.engine = before
        return found

    def baked(self) -> Poses:
        """Bake one armature while the others stay live, go to the frames, and return its poses alone.

        Armatures that follow it are left out: they now read keys instead of the solution, which round differently.
        """
        name = choose(self.rng, self.live)
        ob = bpy.context.scene.objects[name]
        if ob.name not in bpy.context.view_layer.objects:
            return {}
        bpy.context.view_layer.objects.active = ob
        bake: Any = bpy.ops.ik_addon.bake
        try:
            bake(chains="ALL", frame_range="CUSTOM", frame_start=BEFORE, frame_end=AFTER)
        except RuntimeError as refused:
            self.log.append(f"{name} not baked: {str(refused).strip()}")
            return {}
        self.log.append(f"{name} baked")
        if not self.bake_report.last(ob).plays_alike and any(0.0 in bone.scale[:] for bone in ob.pose.bones):
            self.log.append("the bake says that bones scaled to zero do not play as they were solved")
            return {}
        return {key: pose for key, pose in self.played([(BEFORE, 0.0), (AFTER, 0.0)]).items() if key[2] == name}

    def ways(self) -> Iterator[tuple[str, Poses]]:
        """Yield the name of each way to the frames, and the poses; the first is the reference."""
        self.begin(FIRST, turned_late=False)
        yield "played in order, opened on the first frame", self.played(PLACES)
        yield "rendered after that", self.rendered(self.orders[0][:3])
        if self.live and self.bakes:
            yield "baked", self.baked()
        self.begin(LAST, turned_late=True)
        yield "rendered, opened on the last frame", self.rendered(self.orders[1][:3])
        yield "played in disorder, opened on the last frame", self.played(self.orders[2])

    # ---- what is expected

    def complete(self) -> set[tuple[str, str]]:
        """Pairs of view layer and armature where the layer has every object that affects the pose."""
        found: set[tuple[str, str]] = set()
        for layer in bpy.context.scene.view_layers:
            there = set(layer.objects)
            found |= {(layer.name, ob.name) for ob in armatures() if closure(ob) <= there}
        return found

    def check(self) -> None:
        """Raise DifferenceError if a way leads to other poses, and AssertionError if anything else is wrong."""
        reference: Poses = {}
        for name, poses in self.ways():
            reference = reference or poses
            self.check_reports(name)
            if not (name.startswith("rendered") and any(reason(SHOWN, change) for change in self.changed)):
                self.compare(name, poses, reference, SLIDES if name == "baked" and self.is_sliding() else SAME)
        for ob in armatures() if self.library else ():
            ob.override_library.is_system_override = False
        self.switch(False)
        bpy.context.view_layer.update()
        self.compare("switched off", self.played(self.orders[3]), self.fk)

    def compare(self, name: str, poses: Poses, reference: Poses, same: float = SAME) -> None:
        """Assert that poses equal the reference, in view layers that are complete."""
        complete = self.complete()
        for (place, layer, ob), now in poses.items():
            if (layer, ob) in complete:
                wanted = reference[place, layer, ob]
                lengths = float(np.sum([bone.length for bone in bpy.context.scene.objects[ob].data.bones]))
                size = max(1.0, lengths, float(np.nanmax(np.abs(wanted), initial=0.0)))
                both_nan = np.isnan(now) & np.isnan(wanted)  # some zero scales give NaN in Blender
                gap = float(np.abs(np.where(both_nan, 0.0, now - wanted)).max(initial=0.0))
                if not gap <= same * size:
                    raise DifferenceError(name, f"{ob!r} is off by {gap / size:.1e} on {place} in {layer!r}")

    def is_sliding(self) -> bool:
        """Whether a baked tree missed its targets: rounding may then decide its pose.

        Or a stretching chain missed its target, because the scale of its bones shears those below them: it is solved a
        few times, each time from the last pose, which amplifies rounding.
        """
        reports = [(ob, report) for ob in armatures() if (report := self.bake_report.last(ob)) is not None]
        return any(
            report.missed
            and (len(report.chains) > 1 or ob.pose.bones[report.chains[0]].ik_addon.out_of_reach == "STRETCH")
            for ob, report in reports
        )

    def check_reports(self, name: str) -> None:
        """Assert that there was no internal error, and that no chain that cannot be written is reported as reached."""
        for ob in armatures():
            for tip in self.chain.tips(ob):
                report = self.reports.get(ob, tip.name)
                assert report is None or "Internal error" not in report.message, f"{name}: {report.message}"
                fixed = self.library == "fixed" and ob.name in self.live
                assert report is None or not (fixed and report.reached), f"{name}: {ob.name!r} cannot be written"


def leaders(ob: bpy.types.Object) -> Iterator[Any]:
    """Yield objects that decide an object's transform, its FK pose or, through goals of chains, its solved pose."""
    yield ob.parent
    for owner in (ob, *(ob.pose.bones if ob.pose else ())):
        for constraint in owner.constraints:
            yield getattr(constraint, "target", None)
            yield getattr(constraint, "pole_target", None)
    for chain in (bone.ik_addon for bone in (ob.pose.bones if ob.pose else ())):
        if chain.is_chain:
            yield from (chain.target, chain.pole)
    for block in (ob, ob.data):
        curves: Any = block.animation_data.drivers if block and block.animation_data else ()
        yield from (aim.id for curve in curves for each in curve.driver.variables for aim in each.targets)


def closure(ob: bpy.types.Object) -> set[bpy.types.Object]:
    """Objects that an object's pose depends on, itself included."""
    found: set[bpy.types.Object] = set()
    left = [ob]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += [other for other in leaders(one) if isinstance(other, bpy.types.Object)]
    return found


@contextlib.contextmanager
def touching() -> Iterator[None]:
    """On each frame, write one unchanged channel of each armature, as scripts that pose bones do."""

    def touch(_scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph | None = None) -> None:
        for ob in armatures():
            if ob.pose is not None and ob.pose.bones and ob.library is None:
                bone = ob.pose.bones[0]
                bone.location = bone.location[:]

    with added([(where, persistent(touch), False) for where in ("frame_change_pre", "frame_change_post")]):
        yield


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Remove the extension's handlers while the context lasts."""
    found: Any = (getattr(bpy.app.handlers, name) for name in dir(bpy.app.handlers))
    lists = [each for each in found if isinstance(each, list)]
    kept = [list(each) for each in lists]
    for each in lists:
        each[:] = [handler for handler in each if not handler.__module__.startswith(blender.PACKAGE)]
    try:
        yield
    finally:
        for each, before in zip(lists, kept, strict=True):
            each[:] = before


def attempt(seed: int, *, live: bool, touched: bool = False, silent: bool = False) -> Session | None:
    """Try all ways to the frames of a seed's scene, with or without chains; `touched`: inside `touching`.

    `silent`: inside `silenced`, only where the extension cannot write anyway; elsewhere return None.
    """
    log: list[str] = []
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(watched(log))
        stack.enter_context(registered())
        session = Session(np.random.default_rng([31, seed]), folder, log)
        if touched:
            stack.enter_context(touching())
        session.make(live)
        if silent:
            if session.library != "fixed":
                return None
            stack.enter_context(silenced())
        session.check()
    return session


def check_seed(seed: int) -> None:
    """Build the scene of a seed and raise AssertionError if a way to its frames leads to other poses.

    It does not raise if the poses also differ with all chains off, with an unchanged channel written on each frame, or
    without handlers where nothing can be written: then the difference comes from Blender itself.
    """
    try:
        attempt(seed, live=True)
    except DifferenceError as found:
        for live, touched, silent in ((False, False, False), (False, True, False), (True, False, True)):
            try:
                attempt(seed, live=live, touched=touched, silent=silent)
            except DifferenceError as without:
                if (touched or silent) and without.way != found.way:
                    raise found from without
                print(f"{seed} is not compared, it differs without a chain: {without}; with them: {found}", flush=True)
                return
        raise
