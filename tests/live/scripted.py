"""How bodies are animated, and what scripts change of them between frames; see `bodies`."""

from collections.abc import Callable
from typing import Any

import bpy
from mathutils import Matrix

from tests import rigs
from tests.live.bodies import LAST, Edit, driver
from tests.rigs import HAS_SLOTS, fcurves, remove_curves


def strip(ob: bpy.types.Object) -> None:
    rigs.into_strip(ob)


def muted_track(ob: bpy.types.Object) -> None:
    data: Any = ob.animation_data
    track = data.nla_tracks.new()
    track.strips.new("old", 1, data.action.copy())
    track.mute = True


def over_strip(ob: bpy.types.Object) -> None:
    """Animate on top of an NLA strip."""
    rigs.into_strip(ob)
    rigs.key(ob.pose.bones["collar"], "rotation_quaternion", {1: (1.0, 0.1, 0.0, 0.0), LAST: (1.0, 0.5, 0.0, 0.0)})


def drivers(ob: bpy.types.Object) -> None:
    driver(ob)
    driver(ob, "upper", "location", 0)


def constrained(ob: bpy.types.Object) -> None:
    limits = {"use_limit_x": True, "min_x": -0.1, "max_x": 0.1, "owner_space": "LOCAL"}
    rigs.constrain(ob.pose.bones["collar"], "LIMIT_ROTATION", **limits)


def child_of(ob: bpy.types.Object) -> None:
    inverse = ob.data.bones["spine1"].matrix_local.inverted()
    rigs.constrain(hand_of(ob), "CHILD_OF", target=ob, subtarget="spine1", inverse_matrix=inverse)


def switched(ob: bpy.types.Object) -> None:
    """Let a script decide whether a bone is limited; it tells nobody when it changes its mind."""
    bpy.app.driver_namespace["is_limited"] = bool
    bone: Any = ob.pose.bones["lower"]
    bone.ik_max_x = 0.1
    bone.driver_add("use_ik_limit_x").driver.expression = "is_limited()"


def prop_in_hand(ob: bpy.types.Object) -> None:
    """Let a second arm follow a prop in the hand of the first."""
    points = [(-0.2, 0, 1), (-0.6, -0.1, 0.9), (-1, 0, 0.9)]
    rigs.add_bones(ob, points, ["upper.R", "lower.R"], parent="collar", connect=False)
    prop = rigs.empty(f"{ob.name} prop", (0.0, 0.05, 0.0))
    prop.parent, prop.parent_type, prop.parent_bone = ob, "BONE", "hand"
    rigs.chain(ob, "lower.R", prop, 2, out_of_reach="STRETCH")


# ---- edits by scripts


def keys_moved(ob: bpy.types.Object) -> None:
    for curve in fcurves(ob):
        for point in curve.keyframe_points:
            point.co[1] += 0.05
        curve.update()


def hand_of(ob: bpy.types.Object) -> bpy.types.Object:
    """Return the target of the arm."""
    return bpy.data.objects[f"{ob.name} hand"]


def carrier_of(ob: bpy.types.Object) -> Any:
    """Return the Child Of constraint on the target."""
    return hand_of(ob).constraints[0]


def on_collar(ob: bpy.types.Object) -> None:
    """Parent the target to a bone."""
    target = hand_of(ob)
    target.parent, target.parent_type, target.parent_bone = ob, "BONE", "collar"


def between(ob: bpy.types.Object) -> None:
    """Insert a parent of the target, which moves it, and constrain something else to it."""
    holder = rigs.empty(f"{ob.name} holder", (0.05, 0.1, 0.0))
    hand_of(ob).parent = holder
    rigs.empty(f"{ob.name} onlooker").constraints.new("COPY_LOCATION").target = hand_of(ob)


def inverse_changed(ob: bpy.types.Object) -> None:
    hand_of(ob).matrix_parent_inverse[2][3] = 0.1


def muted(part: str) -> Edit:
    def edit(ob: bpy.types.Object) -> None:
        for curve in fcurves(ob, part)[::2]:
            curve.mute = True

    return edit


def other_action(ob: bpy.types.Object) -> None:
    data: Any = ob.animation_data
    action = data.action.copy()
    data.action = action
    if HAS_SLOTS:
        data.action_slot = action.slots[0]
    for curve in fcurves(ob, "upper"):
        curve.keyframe_points[0].co[1] += 0.2
        curve.update()


def strip_of(ob: bpy.types.Object) -> Any:
    return ob.animation_data.nla_tracks[0].strips[0]


def soloed(ob: bpy.types.Object) -> None:
    """Solo another track, which is empty."""
    track: Any = ob.animation_data.nla_tracks.new()
    track.is_solo = True


def group_muted(ob: bpy.types.Object) -> None:
    for curve in [*fcurves(ob, "collar"), *fcurves(ob, "upper")]:
        if curve.group is not None:
            curve.group.mute = True


def strip_ends(ob: bpy.types.Object) -> None:
    strip = strip_of(ob)
    strip.extrapolation, strip.frame_end = "NOTHING", 6.0


def broken(ob: bpy.types.Object) -> None:
    for curve in ob.animation_data.drivers:
        curve.driver.variables[0].targets[0].id = None


def drivers_muted(ob: bpy.types.Object) -> None:
    for curve in ob.animation_data.drivers:
        curve.mute = True


def drivers_removed(ob: bpy.types.Object) -> None:
    ob.driver_remove('pose.bones["collar"].rotation_quaternion', 2)
    ob.driver_remove('pose.bones["upper"].location', 0)


def posed(*bones: str) -> Edit:
    def edit(ob: bpy.types.Object) -> None:
        for bone in bones:
            ob.pose.bones[bone].rotation_quaternion = (0.9, 0.2, 0.3, 0.1)

    return edit


def track_added(ob: bpy.types.Object) -> None:
    data: Any = ob.animation_data
    strip = data.nla_tracks.new().strips.new("added", 1, data.action.copy())
    strip.influence, strip.use_animated_influence = 1.0, False


def sets(owner: Callable[[bpy.types.Object], Any], **values: object) -> Edit:
    """Return an edit that sets values of the body or of something that belongs to it."""

    def edit(ob: bpy.types.Object) -> None:
        for name, value in values.items():
            setattr(owner(ob), name, value)

    return edit


def passing(owner: Callable[[bpy.types.Object], Any], name: str, value: object) -> Edit:
    """Return an edit that gives a property another value for one update, and then its own again."""

    def edit(ob: bpy.types.Object) -> None:
        before = getattr(owner(ob), name)
        setattr(owner(ob), name, value)
        bpy.context.view_layer.update()
        setattr(owner(ob), name, before)

    return edit


def unlinked(of: Callable[[bpy.types.Object], bpy.types.Object]) -> Edit:
    """Return an edit that takes an object out of the scene for one update."""

    def edit(ob: bpy.types.Object) -> None:
        objects = bpy.context.scene.collection.objects
        objects.unlink(of(ob))
        bpy.context.view_layer.update()
        objects.link(of(ob))

    return edit


def excluded(ob: bpy.types.Object) -> None:
    """Exclude the target's collection for one update, and disable it for another."""
    collection = rigs.in_collection(f"{ob.name} goals", hand_of(ob))
    layer = bpy.context.view_layer.layer_collection.children[collection.name]
    passing(lambda _ob: layer, "exclude", True)(ob)
    bpy.context.view_layer.update()
    passing(lambda _ob: collection, "hide_viewport", True)(ob)
    bpy.context.view_layer.update()


def longer(ob: bpy.types.Object) -> None:
    with rigs.edit_mode(ob) as bones:
        bones["lower"].tail *= 1.1


CHILD_OF: dict[str, Edit] = {
    "keys are moved": keys_moved,
    "half of its influence": sets(carrier_of, influence=0.5),
    "none of its influence": sets(carrier_of, influence=0.0),
    "another bone": sets(carrier_of, subtarget="collar"),
    "no location along X": sets(carrier_of, use_location_x=False),
    "another inverse": sets(carrier_of, inverse_matrix=Matrix.Translation((0.1, 0.0, 0.05))),
    "a second one": child_of,
    "a parent as well": between,
    "it is muted": sets(carrier_of, mute=True),
}


SWITCHED: dict[str, Edit] = {"an untold switch": lambda _ob: bpy.app.driver_namespace.update(is_limited=lambda: True)}
STRUCTURE: dict[str, Edit] = {
    "a limit": sets(lambda ob: ob.pose.bones["lower"], use_ik_limit_x=True, ik_min_x=-0.2, ik_max_x=0.3),
    "a constraint on the collar": constrained,
    "a constraint on the target": child_of,
    "the target's parent": between,
    "the target's parent is a bone": on_collar,
    "the target's parent inverse": inverse_changed,
    "the target is hidden": lambda ob: setattr(hand_of(ob), "hide_viewport", True),
    "the target is hidden and shown": passing(hand_of, "hide_viewport", True),
    "the target is unlinked and linked": unlinked(hand_of),
    "the target's collection is excluded and disabled for a while": excluded,
    "the armature is unlinked and linked": unlinked(lambda ob: ob),
    "the rest position is shown and left": passing(lambda ob: ob.data, "pose_position", "REST"),
    "an axis is locked": lambda ob: setattr(ob.pose.bones["upper"], "lock_ik_y", True),
    "a bone is longer": longer,
    "the target is deleted": lambda ob: bpy.data.objects.remove(hand_of(ob)),
    "a bone is scaled": lambda ob: setattr(ob.pose.bones["upper"], "scale", (0.9, 0.9, 0.9)),
    "a bone is renamed": lambda ob: setattr(ob.data.bones["upper"], "name", "thigh"),
    "the chain's length": lambda ob: setattr(ob.pose.bones["lower"].ik_addon, "chain_length", 1),
    "influence": lambda ob: setattr(ob.pose.bones["lower"].ik_addon, "influence", 0.5),
    "the chain is off": lambda ob: setattr(ob.pose.bones["lower"].ik_addon, "enabled", False),
    "a rotation mode": lambda ob: setattr(ob.pose.bones["collar"], "rotation_mode", "XYZ"),
    "an inherited rotation": lambda ob: setattr(ob.data.bones["upper"], "use_inherit_rotation", False),
    "the armature is moved": lambda ob: setattr(ob, "location", (0.1, 0.0, 0.05)),
    "a live bone is posed": posed("upper"),
    "a carrier is posed": posed("collar"),
    "everything is posed": posed("spine1", "spine2", "collar", "upper", "lower"),
}
ANIMATION: dict[str, Edit] = {
    "keys are moved": keys_moved,
    "the target's keys are moved": lambda ob: keys_moved(hand_of(ob)),
    "F-curves of live bones are muted": muted('"upper"'),
    "F-curves of a carrier are muted": muted('"collar"'),
    "all F-curves are muted": muted(""),
    "a group is muted": group_muted,
    "keys of a live bone are removed": lambda ob: remove_curves(ob, '"upper"'),
    "keys of a carrier are removed": lambda ob: remove_curves(ob, '"collar"'),
    "the action is unassigned": lambda ob: setattr(ob.animation_data, "action", None),
    "another action": other_action,
    "the action is pushed down": strip,
    "a track is added": track_added,
    "a driver is added to a live bone": lambda ob: driver(ob, "upper"),
    "a driver is added to a carrier": lambda ob: driver(ob, "collar"),
    **({"the slot is unassigned": sets(lambda ob: ob.animation_data, action_slot=None)} if HAS_SLOTS else {}),
}
NLA: dict[str, Edit] = {
    "the track is muted": lambda ob: setattr(ob.animation_data.nla_tracks[0], "mute", True),
    "the strip is muted": lambda ob: setattr(strip_of(ob), "mute", True),
    "the strip is moved": lambda ob: setattr(strip_of(ob), "frame_start_ui", 3.0),
    "the strip ends": strip_ends,
    "another track is soloed": soloed,
    "the NLA is off": lambda ob: setattr(ob.animation_data, "use_nla", False),
    "the track is removed": lambda ob: ob.animation_data.nla_tracks.remove(ob.animation_data.nla_tracks[0]),
}
DRIVERS: dict[str, Edit] = {
    "drivers are muted": drivers_muted,
    "drivers break": broken,
    "drivers are removed": drivers_removed,
}
