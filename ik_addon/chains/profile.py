"""The contents of a preset: the joints of a limb in terms of its bend, and settings of the chain.

A preset refers to no bones and no axes. It says how far a joint bends, tilts to the side and twists. Applied to a
chain, these become limits about the axes that its bones have; the bend axis comes from the rest pose.
"""

import ast
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import bpy
import numpy as np
from bpy import props
from bpy.types import Context, PoseBone, PropertyGroup

from ..anatomy import chain_ends, limbs
from ..anatomy.figure import Figure
from ..core import compat
from ..core.chain_settings import OUT_OF_REACH, SOLVERS
from ..core.settings import LAYOUT, chain_of
from ..core.skeleton import Skeleton, matrix_array, orthonormal
from ..core.translation.sentences import UserError, marked, quoted, say
from ..core.untyped import Declared, Struct, Value
from ..rig.plan.chain import chain_bones, chain_with, end_of
from ..rig.plan.limits import ranges_of
from ..solve.maths.cones import cone_of, nearest_direction, nearest_twist, swing_twist
from ..solve.maths.rotations import cross, quaternions
from ..solve.problem import Floats
from .bend_side import MANY, animated_bases

SUBDIR = "ik_addon"
"""Blender looks for presets in a folder of this name below `presets/`."""
FOLDER = Path(__file__).resolve().parents[1] / "core"
"""Where Blender finds the shipped `presets/`."""
SHIPPED = FOLDER / "presets" / SUBDIR
WAYS = ("bend", "side", "twist")
SETTINGS = ("solver", "use_limits", "out_of_reach", "softness", "bend_lead", "iterations", "planar")
"""Settings of a chain that a preset may hold."""
STRAIGHT = math.radians(0.5)
"""A limb that bends by less than this in its rest pose shows no bend axis."""
SLANTED = math.radians(20.0)
"""If the bend axis is farther than this from an axis of the bone, the user is told."""
CENTERED = 0.01
"""A chain or bone closer to the middle of the armature than this, in its own lengths, is on neither side."""


def _range() -> Declared:
    return props.FloatVectorProperty(size=2, subtype="EULER", default=(-math.pi, math.pi))


def _ways() -> Declared:
    items = [(way, way.title(), way.title()) for way in WAYS]
    return props.EnumProperty(items=items, options={"ENUM_FLAG"}, default=set())


class IKAddonJoint(PropertyGroup):
    """How far one joint may turn, and how willingly. Nobody sees these settings, so they have no tooltips."""

    from_straight: props.BoolProperty()
    """Measure the bend from the straight limb instead of the rest pose, as for elbows and knees."""
    bend: _range()
    """Minimum and maximum rotation about the axis about which the limb bends."""
    side: _range()
    """The same about the axis across that one, on the left side of the body."""
    twist: _range()
    """The same about the length of the bone, on the left side of the body."""
    limited: _ways()
    """The rotations that have limits."""
    locked: _ways()
    """The rotations that are locked."""
    stiffness: props.FloatVectorProperty(size=3, min=0.0, max=0.99)
    """Stiffness of bend, side and twist."""


class IKAddonProfile(PropertyGroup):
    """The settings in a preset file; only those that the file sets are applied."""

    joints: props.CollectionProperty(type=IKAddonJoint)
    """Joints from the root of the limb; the last one applies to all remaining bones."""
    spread: props.BoolProperty()
    """Spread the joints over the whole chain, the first at its root and the last at its tip."""
    layout: props.IntProperty(min=0)
    """The layout of the settings, see `LAYOUT`."""

    # As in the settings of a chain.
    solver: props.EnumProperty(items=SOLVERS)
    use_limits: props.BoolProperty(default=True)
    out_of_reach: props.EnumProperty(items=OUT_OF_REACH)
    softness: props.FloatProperty(min=0.0, max=1.0)
    bend_lead: props.FloatProperty(min=-1.0, max=1.0)
    iterations: props.IntProperty(min=1, default=100)
    planar: props.BoolProperty()


def register() -> None:
    """Add the property that preset files set; its classes must be registered first."""
    bpy.types.WindowManager.ik_addon_profile = props.PointerProperty(type=IKAddonProfile)


def unregister() -> None:
    """Remove the property."""
    del bpy.types.WindowManager.ik_addon_profile


def profile_of(context: Context) -> IKAddonProfile:
    """Return the profile that preset files set and are written from."""
    return context.window_manager.ik_addon_profile


def clear(profile: IKAddonProfile) -> None:
    """Reset what the last preset set."""
    for name in profile.bl_rna.properties.keys():  # noqa: SIM118 - a collection, not a dict
        if name not in {"rna_type", "name"}:
            profile.property_unset(name)


# ---- a profile on a chain


class _Axes(NamedTuple):
    """The axes of a bone that stand for bend, side and twist, and the bend of its joint at rest."""

    ways: list[tuple[str, str, float]]
    """Each of `WAYS` with its axis, and 1 if a positive rotation about that is a positive one, -1 if a negative one."""
    rest: float
    """Angle in radians by which the joint is bent in the rest pose."""
    slant: float
    """Angle in radians between the bend axis of the limb and the bone's axis for it."""
    aside: float
    """Angle in radians between the bone and its segment; 0 if that has no length."""


def apply(profile: IKAddonProfile, bones: Sequence[PoseBone]) -> list[str]:
    """Apply the limits of a profile to bones, root first, and its settings if they are a chain.

    Returns:
        Sentences about what does not fit.
    """
    chain = chain_of(bones[-1])
    for name in SETTINGS:
        if chain.is_chain and profile.is_property_set(name):
            setattr(chain, name, getattr(profile, name))
    if not len(profile.joints):
        return []
    joints = [None if i is None else profile.joints[i] for i in _places(bones, len(profile.joints), profile.spread)]
    hinged = [i for i, joint in enumerate(joints) if i and joint is not None and joint.from_straight]
    slanted, aside = {}, []
    for bone, joint, axes in zip(bones, joints, axes_of_chain(bones, hinged, np.array(chain.bend_side)), strict=True):
        if joint is None:
            continue
        for i, (way, letter, sign) in enumerate(axes.ways):
            offset = axes.rest if way == "bend" and joint.from_straight else 0.0
            low, high = sorted(sign * (value - offset) for value in getattr(joint, way))
            setattr(bone, f"lock_ik_{letter}", way in joint.locked)
            setattr(bone, f"use_ik_limit_{letter}", way in joint.limited)
            setattr(bone, f"ik_min_{letter}", min(low, 0.0))
            setattr(bone, f"ik_max_{letter}", max(high, 0.0))
            setattr(bone, f"ik_stiffness_{letter}", joint.stiffness[i])
        if axes.aside > SLANTED and (joint.limited or joint.locked):
            aside.append(bone.name)
        elif axes.slant > SLANTED and "side" in joint.locked:
            slanted[bone.name] = math.degrees(axes.slant)
    compat.tag(bones[0].id_data)
    if aside:
        text = (
            "{names} don't point at the next joint, so limits about their axes don't fit. "
            "Import the file again with Automatic Bone Orientation"
        )
        return [say(text, names=quoted(aside))]
    text = (
        "The limb bends up to {angle}° off the axes of {names}. "
        "Recalculate the roll in Edit Mode, press Find Bend Side and apply the preset again"
    )
    return [say(text, angle=f"{max(slanted.values()):.0f}", names=quoted(slanted))] if slanted else []


def _places(bones: Sequence[PoseBone], count: int, spread: bool) -> list[int | None]:
    """Return the index of the profile's joint for each bone of a chain; None for a bone that stays as it is."""
    if spread:
        last = max(len(bones) - 1, 1)
        return [round(i * (count - 1) / last) for i in range(len(bones))]
    figure = Figure.of(bones[0].id_data)
    row = [figure.names.index(bone.name) for bone in bones]
    elbow = limbs.elbow(figure, row)
    if elbow is not None:
        # Of a limb with more than two bones, only shoulder and elbow are joints.
        limb = limbs.limb_of(figure, row[-1])
        after = range(row.index(limb[-1]) + 1, len(bones))
        rest = {i: min(i - after.start + 2, count - 1) for i in after}
        return [{row.index(limb[0]): 0, elbow: min(1, count - 1), **rest}.get(i) for i in range(len(bones))]
    above = len(bones) - min(len(chain_ends.find_above(figure, row[-1])), len(bones))
    return [None if i < above else min(i - above, count - 1) for i in range(len(bones))]


def axes_of_chain(bones: Sequence[PoseBone], hinged: Sequence[int], side: Floats) -> list[_Axes]:
    """Return the axes of the bones of a chain, root first.

    Args:
        bones: the bones of the chain.
        hinged: indices of the joints whose rest pose shows how the limb bends; if empty, all of them do.
        side: (3,) the bend side of the chain; zero if none is stored.
    """
    heads = [np.array(bone.bone.head_local, dtype=np.float64) for bone in bones]
    end = end_of(bones[-1])
    last = bones[-1].bone.tail_local if end is None else end.bone.head_local
    segments = np.diff([*heads, np.array(last, dtype=np.float64)], axis=0)
    sizes = np.linalg.norm(segments, axis=1)
    segments = segments / np.where(sizes > 0.0, sizes, 1.0)[:, None]
    frames = [orthonormal(matrix_array(bone.bone.matrix_local)[:3, :3]) for bone in bones]
    turns = np.cross(segments[:-1], segments[1:])
    bend = turns[[i - 1 for i in hinged]].sum(axis=0) if hinged else turns.sum(axis=0)
    size = float(np.linalg.norm(bend))
    bend = bend / size if size > STRAIGHT else np.zeros(3)
    if side.any():
        skeleton = Skeleton.of(bones[0].id_data)
        indices = [skeleton.names.index(bone.name) for bone in bones]
        own = frames[0].dot(skeleton.bend_axes(indices, side)[0])
        bend = bend if bend.dot(own) > 0.0 else own / np.linalg.norm(own)
    elif not bend.any():
        # A straight limb without a side bends about the X axis of its root, as in the solver.
        bend = frames[0][:, 0]
    hand = -1.0 if np.mean([head[0] for head in heads]) < -CENTERED * sizes.sum() else 1.0
    rests = [0.0, *(math.atan2(float(np.cross(a, b) @ bend), float(a @ b)) for a, b in pairwise(segments))]
    return [_axes_of(*own, bend, hand) for own in zip(frames, segments, rests, strict=True)]


def _axes_of(frame: Floats, segment: Floats, rest: float, bend: Floats, side: float) -> _Axes:
    """Return the axes of a bone with a rest frame (3, 3), given its segment (3,) and a bend axis (3,) in that space."""
    x, _, z = frame.T @ bend
    about_x = abs(x) >= abs(z)
    sign = math.copysign(1.0, x if about_x else z)
    across = sign if about_x else -sign  # sign of the bend axis cross Y
    return _Axes(
        ways=list(zip(WAYS, "xzy" if about_x else "zxy", (sign, side * across, side), strict=True)),
        rest=rest,
        slant=math.acos(min(1.0, abs(float(x if about_x else z)))),
        aside=math.acos(min(1.0, float(frame[:, 1] @ segment))) if segment.any() else 0.0,
    )


# ---- a chain as a profile


def take(profile: IKAddonProfile, tip: PoseBone) -> None:
    """Set a profile from the chain on `tip`, with a joint for each bone."""
    clear(profile)
    chain, bones = chain_of(tip), chain_bones(tip)
    for name in SETTINGS:
        setattr(profile, name, getattr(chain, name))
    profile.layout = LAYOUT
    # A joint with a single unlocked axis, X or Z, is a hinge.
    hinged = [i for i, bone in enumerate(bones) if i and bone.lock_ik_x != bone.lock_ik_z]
    for i, (bone, axes) in enumerate(zip(bones, axes_of_chain(bones, hinged, np.array(chain.bend_side)), strict=True)):
        joint = profile.joints.add()
        joint.from_straight = i in hinged
        joint.limited = {way for way, letter, _ in axes.ways if getattr(bone, f"use_ik_limit_{letter}")}
        joint.locked = {way for way, letter, _ in axes.ways if getattr(bone, f"lock_ik_{letter}")}
        joint.stiffness = [getattr(bone, f"ik_stiffness_{letter}") for _, letter, _ in axes.ways]
        for way, letter, sign in axes.ways:
            offset = axes.rest if way == "bend" and joint.from_straight else 0.0
            ends_of = (getattr(bone, f"ik_min_{letter}"), getattr(bone, f"ik_max_{letter}"))
            setattr(joint, way, sorted(sign * value + offset for value in ends_of))


# ---- a preset of Blender's preset system, read without running it: it is a list of settings, written as Python
#
# profile = bpy.context.window_manager.ik_addon_profile
# joint = profile.joints.add()
# joint.bend = (math.radians(0), math.radians(150))

NAME = "profile"
LARGEST = 1_000_000
"""Bytes: larger than a preset for a chain of a thousand bones."""
SHOWN = 30
"""Maximum number of characters of an invalid value that a message shows."""
WRONG = (ValueError, TypeError, AttributeError, OverflowError, RecursionError, MemoryError)
"""Exceptions raised for invalid values; the last two come from values that are nested too deeply."""


def read_file(path: Path, profile: IKAddonProfile) -> None:
    """Set a profile from a preset file.

    Raises:
        UserError: if the file can't be read.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise UserError("it is larger than {size} MB", size=LARGEST // 1_000_000)
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError("it is not text") from None
    except OSError as error:
        raise UserError(str(error.strerror)) from None
    read(text, profile)


def read(text: str, profile: IKAddonProfile) -> None:
    """Set a profile from the text of a preset.

    Raises:
        UserError: if the text holds anything but settings, or a value is invalid.
    """
    try:
        lines = [(line, ast.unparse(line)) for line in ast.parse(text).body]
    except SyntaxError as error:
        raise UserError("line {line} is not a setting of a preset", line=error.lineno or 1) from None
    except WRONG:
        raise UserError("it is nested too deeply") from None
    owners: dict[str, Struct] = {NAME: profile}
    for line, written in lines:
        match line:
            case ast.Import() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute()) if name == NAME:
                pass
            case ast.Expr() if written == f"{NAME}.joints.clear()":
                profile.joints.clear()
            case ast.Assign(targets=[ast.Name(id=name)]) if written == f"{name} = {NAME}.joints.add()":
                owners[name] = profile.joints.add()
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=name), attr=setting)], value=value) if (
                name in owners and setting in owners[name].bl_rna.properties
            ):
                try:
                    setattr(owners[name], setting, _literal(value))
                except WRONG:
                    source = (ast.get_source_segment(text, value) or "").partition("\n")[0]
                    shown = source if len(source) <= SHOWN else f"{source[:SHOWN]}…"
                    invalid = "line {line}: '{setting}' can't be {value}"
                    raise UserError(invalid, line=line.lineno, setting=setting, value=shown) from None
            case _:
                raise UserError("line {line} is not a setting of a preset", line=line.lineno)


def _literal(value: ast.expr) -> Value:
    """Evaluate a finite number, text, boolean, tuple, set, or an angle given in degrees."""
    match value:
        case ast.Tuple(elts=parts):
            return tuple(map(_literal, parts))
        case ast.Set(elts=parts):
            return set(map(_literal, parts))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr="radians"), args=[degrees], keywords=[]):
            return math.radians(_literal(degrees))
        case ast.Call(func=ast.Name(id="set"), args=[], keywords=[]):
            return set()
    found = ast.literal_eval(value)
    if isinstance(found, int | float) and not math.isfinite(found):
        raise ValueError
    return found


# ---- limits that the animation of a chain goes beyond

BEYOND = math.radians(3.0)
"""Limits are widened by at most this, as for a knee that locks. Those that an animation leaves by more don't fit it."""
ROUNDING = 1e-5
"""Rounding may turn a joint beyond its limits by this many radians; limits are widened by as much more than needed."""
OUTWARD = np.array([-1.0, 1.0])


def exceeded(tip: PoseBone) -> dict[PoseBone, Floats]:
    """Return limits (3, 2) that hold the animation, as in `ranges_of`, for the bones that it turns beyond theirs.

    They are infinite for bones that it turns far beyond them.
    """
    ob, bones = tip.id_data, chain_bones(tip)
    bases = animated_bases(ob, [ob.pose.bones.find(bone.name) for bone in bones], MANY)
    found = {}
    for bone, basis in zip(bones, () if bases is None else bases.swapaxes(0, 1), strict=False):
        ranges = np.array(ranges_of(bone))
        grown = _lacking(ranges, quaternions(orthonormal(basis[:, :3, :3]).transpose(1, 2, 0)))
        if grown.any():
            found[bone] = ranges + OUTWARD * (grown if grown.max() < BEYOND else np.inf)
    return found


def _lacking(ranges: Floats, turns: Floats) -> Floats:
    """Return by how many radians (3, 2) limits (3, 2) are too narrow for rotations (4, F); `BEYOND` or more: by far."""
    swing, twist = swing_twist(turns)
    grown = np.zeros((3, 2))
    while grown.max() < BEYOND:
        wider = ranges + OUTWARD * grown
        cone = cone_of(wider[:2].reshape(1, 4), wider[2:])
        swung = 2.0 * (np.arcsin(swing) - np.arcsin(nearest_direction(swing, cone)))
        away = np.stack([*swung, twist - nearest_twist(twist, cone)])
        over = np.stack([-away.min(axis=1), away.max(axis=1)], axis=1)
        if over.max() <= ROUNDING:
            break
        grown += np.where(over > ROUNDING, over + ROUNDING, 0.0)
    return grown


def fit(limits: Mapping[PoseBone, Floats]) -> None:
    """Give joints these limits (3, 2), and none where they are infinite."""
    for bone, ranges in limits.items():
        for axis, (low, high) in zip("xzy", ranges.tolist(), strict=True):
            if low < high:
                setattr(bone, f"lock_ik_{axis}", False)
                setattr(bone, f"use_ik_limit_{axis}", math.isfinite(high - low))
            if math.isfinite(high - low):
                setattr(bone, f"ik_min_{axis}", low)
                setattr(bone, f"ik_max_{axis}", high)


# ---- the rotations of a joint in words, by what they do to its limb

DIRECTIONS = {"UP": ("x", 1.0), "DOWN": ("x", -1.0), "LEFT": ("z", 1.0), "RIGHT": ("z", -1.0)}
"""Axis and sign of the rotations that change where a bone points, by the names that scripts use."""
TWISTS = {"TWIST_MAX": marked("Twist"), "TWIST_MIN": marked("Twist Back")}
MOVES = (
    (marked("Left"), marked("Right")),
    (marked("Back"), marked("Forward")),
    (marked("Up"), marked("Down")),
)
"""Directions along and against each axis of an armature, for a character that faces Blender's front view."""
SIDEWAYS = (marked("Outward"), marked("Inward"))
BEND = (marked("Bend"), marked("Straighten"))


def names_of(bone: PoseBone) -> dict[str, str]:
    """Return the user's names for the directions of a joint's limits, by the names that scripts use.

    The hinge of a limb bends and extends. Other directions are named after where the bone moves from its rest pose.
    """
    frame = orthonormal(matrix_array(bone.bone.matrix_local)[:3, :3])
    # Where (3,) in armature space the tail moves when the bone turns about one of its axes.
    turned = {axis: np.array(cross(frame[:, "xyz".index(axis)], frame[:, 1])) for axis in "xz"}
    moved = {name: sign * turned[axis] for name, (axis, sign) in DIRECTIONS.items()}
    names = {**_hinge(bone), **TWISTS}
    middle = (bone.bone.head_local.x + bone.bone.tail_local.x) / 2.0
    sideways = SIDEWAYS if middle > 0.0 else SIDEWAYS[::-1]
    sideways = MOVES[0] if abs(middle) <= CENTERED * bone.bone.length else sideways
    left = [name for name in ("UP", "LEFT") if name not in names]
    # The two rotations get different words: the clearer one chooses first.
    taken: list[int] = []
    for name in sorted(left, key=lambda own: -float(np.abs(moved[own]).max())):
        sizes = np.abs(moved[name])
        sizes[taken] = -1.0
        way = int(sizes.argmax())
        taken.append(way)
        words = sideways if way == 0 else MOVES[way]
        opposite = {"UP": "DOWN", "LEFT": "RIGHT"}[name]
        names[name], names[opposite] = words if moved[name][way] > 0.0 else words[::-1]
    return {name: say(word) for name, word in names.items()}


def _hinge(bone: PoseBone) -> dict[str, str]:
    """Name the directions of an elbow, a knee or a joint of a finger, which bends about one of its axes."""
    tip = chain_with(bone)
    bones = [] if tip is None else chain_bones(tip)
    if tip is None or bone not in bones[1:] or not any(chain_of(tip).bend_side):
        return {}
    axes = axes_of_chain(bones, [], np.array(chain_of(tip).bend_side))[bones.index(bone)]
    if max(axes.slant, axes.aside) > SLANTED:
        return {}
    _way, letter, sign = axes.ways[0]
    names = ("UP", "DOWN") if letter == "x" else ("LEFT", "RIGHT")
    return dict(zip(names, BEND if sign > 0.0 else BEND[::-1], strict=True))
