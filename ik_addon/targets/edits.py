"""What an edit of a solved bone means, the same everywhere: this module decides it, `live` asks on every update.

| who edits | what happens |
|---|---|
| a hand: transform or paste of a tip, hand or foot | its target takes the place, and the orientation; FK stays |
| a hand: transform of another bone of a limb | its pole follows, where there is one; else FK |
| a hand: paste of a limb | target and pole match the pasted pose |
| any of these, with an influence between 0 and 1 | the FK pose of the chain goes there, too: the blend shows it there |
| a hand: another bone of a spine, tail or tree | FK, its keys in the range included, and the status line says so |
| a script, an action, a driver, another rotation mode | FK, see `LiveBones.absorb_edits` |
| where the influence is 0, the chain is off, or the target can't be moved | FK |
| Insert Keyframe, auto keying | FK is keyed, see `core.fk_keys`; auto keying also keys the goals that moved |
| Esc, undo, redo | FK and goals as before |

It is a hand if one of Blender's own operators that transform or paste poses is running in a window, or has just ended
and can be repeated. Scripts call the same operators without leaving them to be repeated.

Blender's undo step is made when the operator ends, and a handler hears of the last change only after that. What follows
here is therefore taken back before the next undo or redo, which keeps what it takes to be unchanged, and done again
where they come back to the same step. Steps that are made later have it, and a mark on the armature tells them.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from secrets import randbelow
from typing import NamedTuple, Self

import bpy
import numpy as np
from bpy.app.handlers import persistent
from bpy.types import Depsgraph, FCurve, Object, Scene

from ..core import channels, compat, fk_keys, fk_store
from ..core.channels import Row
from ..core.falloff import falloff_setting, range_setting
from ..core.goals import Goal, curves_on, insert_key
from ..core.key_curve import SAME_FRAME, Keys, read_keys, write_keys
from ..core.settings import chain_of, object_of, overlay_of
from ..core.skeleton import inverse, moved
from ..core.translation.sentences import UserError, say
from ..core.untyped import Struct
from ..live import handlers, reports
from ..live.live_bones import LiveBones
from ..live.registry import paused, registry
from ..live.rig import Rig
from ..rig.plan.chain import bending_bones
from ..rig.plan.plan import Plan
from ..rig.plan.presence import Reference
from ..rig.read.sample import sample
from ..rig.write.waves import pose
from ..solve.maths.products import applied
from ..solve.problem import Floats, Ints
from .autokey import auto_key
from .edit_range import EditRange, Spread
from .movable import locked
from .places import bend_turn, on_one_side, turned_about
from .snap import Poles, Sampled, Snap, rows_of

TRANSFORMS = "TRANSFORM_OT_"
"""Blender's operators that transform bones begin with this."""
PASTES = frozenset({"POSE_OT_paste", "POSELIB_OT_apply_pose_asset", "POSELIB_OT_blend_pose_asset"})
"""Blender's operators that paste poses."""
ADJUSTABLE = {"edit_range": range_setting, "edit_falloff": falloff_setting}
"""Settings that Blender's operators get after edits that reach over a range."""
REMEMBERED = 64
"""Maximum number of edits that undo and redo may come back to."""


# ---- what follows


class Meaning(NamedTuple):
    """What an edit means for one chain."""

    tip: str
    rows: frozenset[int]
    """The edited bones that don't become FK, as rows of the live bones."""
    target: bool
    """Whether the target follows."""
    pole: bool
    """Whether the pole follows."""


class Follower:
    """The goals of one chain that follow an edit."""

    def __init__(self, depsgraph: Depsgraph, ob: Object, meaning: Meaning, *, matches: bool) -> None:
        """Prepare to follow.

        Args:
            depsgraph: of the view layer with the armature and its goals.
            ob: the armature object.
            meaning: what follows.
            matches: whether a pole is placed to match the pose; else it turns about the limb with the edited bone.

        Raises:
            UserError: the goals can't be moved.
        """
        self.tip, self.rows = meaning.tip, meaning.rows
        self._target, self._pole, self._matches = meaning.target, meaning.pole, matches
        poles = Poles.MATCH if meaning.pole else Poles.KEEP
        self._snap = Snap.of(depsgraph.view_layer, ob, [ob.pose.bones[meaning.tip]], True, poles)
        if not matches:  # a hand puts the target itself somewhere
            self._snap = replace(self._snap, chains=[replace(own, is_soft=False) for own in self._snap.chains])
        for goal in self.goals:
            if all(goal.holder.lock_location) and (not goal.turns or any(goal.holder.lock_rotation)):
                raise UserError(
                    "The location of '{owner}' is locked. Unlock it in its Transform panel", owner=goal.holder.name
                )
        self._wanted: Floats | None = None
        """(1, g, 3) where the goals were moved to, in world space."""
        self._start: tuple[Floats, Floats] | None = None
        """The joints (1, 3, 3) of the limb in armature space, and the pole (1, 3) in world space, before the edit."""

    @property
    def lacks_start(self) -> bool:
        """Whether `begin` needs to see the pose before the edit."""
        return self._pole and not self._matches and self._start is None

    @property
    def goals(self) -> list[Goal]:
        """The goals that follow."""
        return [goal for goal, follows in zip(self._snap.goals, (self._target, self._pole), strict=False) if follows]

    def begin(self, depsgraph: Depsgraph) -> None:
        """Note the pose before the edit, if needed; the depsgraph shows it."""
        if self.lacks_start:
            sampled = self._snap.sampler.here(depsgraph)
            self._start = self._joints(sampled), sampled.goals[:, 1, :3, 3].copy()

    def _joints(self, sampled: Sampled) -> Floats:
        """Return hip, knee and ankle, or shoulder, elbow and wrist, (1, 3, 3) in armature space."""
        return self._snap.knee(sampled, self._snap.chains[0]).joints[:, :3]

    def follow(self, depsgraph: Depsgraph) -> None:
        """Move the goals to match the pose that a depsgraph shows, and key them if auto keying is on."""
        sampled = self._snap.sampler.here(depsgraph)
        rows, wanted = self._snap.rows(sampled, self._snap.distances(sampled))
        if self._start is not None:
            before, pole = self._start
            inner = applied(inverse(sampled.world)[:, :3], np.append(pole, [[1.0]], axis=1))
            inner = turned_about(before, inner, bend_turn(before, self._joints(sampled)))
            wanted[:, 1] = applied(sampled.world[:, :3], np.append(inner, [[1.0]], axis=1))
            rows = rows_of(self._snap.goals, sampled, wanted, {})
        elif self._pole:  # a pasted pose that bends to where the pole is leaves it there
            to_object, now = inverse(sampled.world), sampled.goals[:, 1, :3, 3]
            if on_one_side(self._joints(sampled), moved(to_object, wanted[:, 1]), moved(to_object, now)).all():
                wanted[:, 1], rows[0, 1] = now, self._snap.goals[1].row()
        self._wanted = wanted
        row_of = dict(zip(self._snap.goals, rows[0], strict=True))
        for goal in self.goals:
            goal.set_row(locked(goal, goal.row(), row_of[goal]))
            auto_key(bpy.context, goal.holder, goal.fields)

    def is_held(self, depsgraph: Depsgraph) -> bool:
        """Whether a constraint or driver keeps a goal from the place that it was moved to."""
        assert self._wanted is not None
        held = self._snap.held(self._snap.sampler.here(depsgraph), self._wanted)
        return any(goal.name in held and not any(goal.holder.lock_location) for goal in self.goals)


@dataclass(frozen=True)
class Control:
    """A goal's channels and its keys on the current frame, to put them back."""

    ob: Reference
    goal: str
    """The name of its bone; empty for an object."""
    turns: bool
    row: Row
    keys: dict[tuple[str, int], float]
    """The values of its keys on the frame, by field and index."""
    curves: dict[tuple[str, int], Keys]
    """All its keys, if an edit reaches more frames."""
    frame: float
    action: int | None
    """`session_uid` of the action of its object; None if it has none."""

    @classmethod
    def of(cls, goal: Goal) -> Self:
        """Return the current state of a goal."""
        frame, action = bpy.context.scene.frame_current_final, compat.action_of(goal.ob)
        uid = None if action is None else action.session_uid
        reaches = overlay_of(bpy.context.scene).edit_range > 0
        curves = {place: read_keys(curve) for place, curve in _curves(goal)} if reaches else {}
        return cls(Reference.of(goal.ob), goal.bone, goal.turns, goal.row(), _keys(goal, frame), curves, frame, uid)

    def _found(self) -> Goal | None:
        ob = self.ob.find()
        goal = None if ob is None else Goal(ob, self.goal, self.turns)
        return None if goal is None or goal.is_bone != bool(self.goal) else goal

    def is_there(self) -> bool:
        """Whether the goal has these channels now."""
        goal = self._found()
        return goal is not None and np.array_equal(goal.row(), self.row)

    def put_back(self) -> Self:
        """Give the goal these channels and keys, and return its state: it may have another action now."""
        goal = self._found()
        if goal is None:
            return self
        holder = goal.holder
        kept = next((own for own in bpy.data.actions if own.session_uid == self.action), None)
        # The step has it, but Blender kept the goal without it.
        if kept is not None and compat.action_of(goal.ob) is None:
            compat.use_action(goal.ob, kept)
        now = _keys(goal, self.frame)
        for name, index in now.keys() - self.keys.keys():
            holder.keyframe_delete(name, index=index, frame=self.frame)
        goal.set_row(self.row)
        for (name, index), value in self.keys.items():
            if now.get((name, index)) != value:
                insert_key(holder, name, index, value, self.frame)
        for place, curve in _curves(goal):
            if place in self.curves:
                write_keys(curve, self.curves[place])
        action = compat.action_of(goal.ob)
        if action is not None and self.action is None and not len(compat.curves_of(goal.ob)):
            goal.ob.animation_data_clear()
            bpy.data.actions.remove(action)
            action = None
        return replace(self, action=None if action is None else action.session_uid)


def _keys(goal: Goal, frame: float) -> dict[tuple[str, int], float]:
    """Return the values of the keys of a goal on a frame, by field and index."""
    time = fk_keys.time_of(goal.ob, frame)
    keys = ((place, key.co) for place, curve in _curves(goal) for key in curve.keyframe_points)
    return {place: co.y for place, co in keys if abs(co.x - time) < SAME_FRAME}


def _curves(goal: Goal) -> Iterator[tuple[tuple[str, int], FCurve]]:
    """Yield the F-curves of a goal, each with its field and index."""
    for name in goal.fields:
        for index, curve in curves_on(goal.holder, name):
            yield (name, index), curve


# ---- edits


class Operator(NamedTuple):
    """An operator with which a user edits a pose."""

    address: int
    pastes: bool
    is_running: bool


@dataclass
class Gesture:
    """One edit by hand, from its first change to its end."""

    ob: Reference
    operator: int
    live: Ints
    start: Row
    """(k, 17) the solution before."""
    fk: Row
    """(k, 17) the FK pose before."""
    stored: Row
    """(k, 17) the stored FK pose before."""
    reach: EditRange
    """How far it reaches."""
    edited: dict[int, Row] = field(default_factory=dict)
    """The channels that the operator gave to bones, by row; it computes them from where it began."""
    followers: dict[Meaning, Follower | None] = field(default_factory=dict)
    """None: the goals can't be moved."""
    before: dict[tuple[int, str], Control] = field(default_factory=dict)
    """The goals before, by `session_uid` of their object and name of their bone."""
    spreads: list[Spread] = field(default_factory=list)
    """The keys of the goals in the range that the edit reaches."""
    fk_spreads: dict[int, Spread] = field(default_factory=dict)
    """Those of bones whose edit becomes FK, by row."""
    blended: set[int] = field(default_factory=set)
    """The bones, by row, whose FK pose followed as well."""


@dataclass
class Edit:
    """An edit whose last change came after Blender's undo step."""

    ob: Reference
    bones: Ints
    edited: Row
    """(e, 17) the channels of edited bones in that step."""
    before: list[Control]
    """The goals in that step."""
    after: list[Control]
    """The goals that followed."""
    left: Ints
    """The bones whose FK pose is another one since."""
    mark: int
    """The random number that it left on the armature."""
    fk: Row | None = None
    """(l, 17) their stored FK pose after that."""
    solved: Row | None = None
    """(e, 17) the channels of the edited bones once the goals had followed."""


_adjustable: list[tuple[type, str]] = []
"""The properties that `ADJUSTABLE` has given to Blender's operators."""
_gestures: dict[int, Gesture] = {}
_edits: list[Edit] = []
_ended = 0
"""Address of the last operator that has ended and that handlers know of."""
_keying = 0
"""Address of the operator that moves keys in an editor of animation; 0 if none does."""
_latest: tuple[list[Edit], int] | None = None
"""The edits, one per armature, that the current undo step doesn't have, and the last operator that had ended then."""


# ---- who edits


def operator_at_work() -> Operator | None:
    """Return the operator with which a user edits a pose now, or has edited it since the last update."""
    manager = bpy.context.window_manager
    for running in _running():
        return Operator(running.as_pointer(), running.bl_idname in PASTES, True)
    last = manager.operators[-1] if manager.operators else None
    if last is None or last.as_pointer() == _ended or not _edits_poses(last.bl_idname):
        return None
    return Operator(last.as_pointer(), last.bl_idname in PASTES, False)


def _running() -> Iterator[bpy.types.Operator]:
    for window in bpy.context.window_manager.windows:
        running = filter(None, window.modal_operators)  # None: its class was unregistered meanwhile
        yield from (operator for operator in running if _edits_poses(operator.bl_idname))


def _edits_poses(name: str) -> bool:
    return name.startswith(TRANSFORMS) or name in PASTES


def last_operator() -> int:
    """Return the address of the last operator that has ended and can be repeated; 0 if there is none."""
    operators = bpy.context.window_manager.operators
    return operators[-1].as_pointer() if operators else 0


def _moves_keys(operator: Operator, depsgraph: Depsgraph, *, begins: bool) -> bool:
    """Return whether an operator moves keys in an editor of animation, where Blender's transforms have the same names.

    It edits actions from the beginning; a transform of bones does so when it ends, with auto keying.
    """
    global _keying
    is_auto = depsgraph.scene.tool_settings.use_keyframe_insert_auto
    if begins and not operator.pastes and (operator.is_running or not is_auto) and depsgraph.id_type_updated("ACTION"):
        _keying = operator.address
    return operator.address == _keying


def _reach(scene: Scene, operator: Operator) -> EditRange:
    """Return how far an edit reaches: as Adjust Last Operation says, or else the scene."""
    settings = None if operator.is_running else bpy.context.window_manager.operators[-1].properties
    if settings is None or "edit_range" not in settings.bl_rna.properties or not settings.is_property_set("edit_range"):
        return EditRange.of_scene(scene)
    return EditRange(settings.edit_range, settings.edit_falloff)


def _offer(reach: EditRange) -> None:
    """Let Adjust Last Operation change how far the edit reaches that has ended, if it reaches other frames."""
    if not reach.frames:
        return
    settings: Struct = bpy.context.window_manager.operators[-1].properties
    for name, setting in ADJUSTABLE.items():
        if name not in settings.bl_rna.properties:
            setattr(type(settings), name, setting())
            _adjustable.append((type(settings), name))
    settings.edit_range, settings.edit_falloff = reach.frames, reach.falloff


# ---- taking edits


def take(ob: Object, rig: Rig, depsgraph: Depsgraph) -> set[int]:
    """Let goals follow bones that a hand moved on a still frame; return the `session_uid` of what moved.

    What is left for `absorb_edits` becomes FK.
    """
    bones, live = rig.bones, rig.plan.live
    present = channels.read(ob, live)
    changed = np.flatnonzero((present != bones.written).any(axis=1)).tolist()
    if not changed:
        return set()
    gesture, operator = _gestures.pop(ob.session_uid, None), operator_at_work()
    if gesture is not None and not np.array_equal(gesture.live, live):
        gesture = None
    if operator is None:
        is_cancelled = gesture is not None and np.array_equal(present[changed], gesture.start[changed])
        return _cancel(ob, gesture, bones, present, depsgraph) if gesture is not None and is_cancelled else set()
    begins = gesture is None or gesture.operator != operator.address
    if _moves_keys(operator, depsgraph, begins=begins):
        return set()
    if gesture is None or begins:
        # What Blender has only rounded, as pasting the pose shown does, is no edit.
        rounded = fk_keys.is_same(present, bones.written).all(axis=1)
        bones.written[rounded] = present[rounded]
        changed = [k for k in changed if not rounded[k]]
        if not changed:
            return set()
        assert bones.fk is not None
        start, reach = bones.written.copy(), _reach(depsgraph.scene, operator)
        gesture = Gesture(Reference.of(ob), operator.address, live, start, bones.fk, bones.stored, reach)
    gesture.edited |= {k: present[k] for k in changed}
    followers = list(_followers(ob, rig.plan, depsgraph, gesture, pastes=operator.pastes))
    found = [Control.of(goal) for follower in followers for goal in follower.goals]
    if followers and not _follow(ob, gesture, followers, depsgraph):
        for control in found:
            control.put_back()
        followers, found = [], []
    _blend(ob, rig, depsgraph, gesture, followers)
    followed = {row for follower in followers for row in follower.rows} | gesture.blended
    left = sorted(set(gesture.edited) - followed)
    notes = _notes(ob, rig.plan, left)
    _reach_fk(ob, rig.plan, depsgraph, gesture, left)
    found += [Control.of(spread.goal) for spread in gesture.fk_spreads.values()]
    if found:
        tips = *(follower.tip for follower in followers), *notes, rig.plan.chains[0].tip
        notes |= _spread(gesture, tips[0])
    if gesture.fk_spreads:  # Blender animates the armature once more
        every = np.arange(len(ob.pose.bones))
        shown = channels.read(ob, every)
        _evaluate(depsgraph)
        channels.write(ob, every, shown)
    reports.note(ob, notes, depsgraph.scene.frame_current_final)
    if not operator.is_running:
        _offer(gesture.reach)
        rows, changed = sorted(gesture.edited), sorted({*left, *gesture.blended})
        after = [Control.of(goal) for follower in followers for goal in follower.goals]
        after += [Control.of(spread.goal) for spread in gesture.fk_spreads.values()]
        object_of(ob).edit = mark = 1 + randbelow(2**31 - 1)
        _remember(Edit(Reference.of(ob), live[rows], present[rows], found, after, live[changed], mark))
    if not found:
        return set()
    written, bones.written = bones.written, channels.read(ob, live)
    bones.written[left] = written[left]
    gesture.before = {(control.ob.uid, control.goal): control for control in found} | gesture.before
    if operator.is_running:
        _gestures[ob.session_uid] = gesture
    return {control.ob.uid for control in found}


def _cancel(ob: Object, gesture: Gesture, bones: LiveBones, present: Row, depsgraph: Depsgraph) -> set[int]:
    """Put back the goals after Esc, which has put back the bones."""
    for control in gesture.before.values():
        control.put_back()
    followed = sorted({row for follower in filter(None, gesture.followers.values()) for row in follower.rows})
    bones.written[followed] = present[followed]
    bones.set_fk(ob, gesture.blended, gesture.fk, gesture.stored)
    _evaluate(depsgraph)
    channels.write(ob, gesture.live, present)
    return {control.ob.uid for control in gesture.before.values()}


def _give_up() -> None:
    """Put back what was before the gestures that are still running: nobody will hear of their end."""
    running = {operator.as_pointer() for operator in _running()}
    for gesture in _gestures.values():
        ob = gesture.ob.find()
        rig = None if ob is None or gesture.operator not in running else registry.of(ob).rig
        if ob is not None and rig is not None and rig.plan.skeleton.matches(ob):
            for control in gesture.before.values():
                control.put_back()
            channels.write(ob, gesture.live, gesture.start)
            rig.bones.set_fk(ob, gesture.blended, gesture.fk, gesture.stored)


def _followers(ob: Object, plan: Plan, depsgraph: Depsgraph, gesture: Gesture, *, pastes: bool) -> Iterator[Follower]:
    """Yield what follows the edited bones; other edits become FK, and those with goals that can't be moved."""
    edited = set(gesture.edited)
    for chain in plan.chains:
        tip, posed = ob.pose.bones[chain.tip], [plan.rows[bone] for bone in chain.posed]
        is_limb = len(bending_bones(tip)) == 2
        at_end, within = edited.intersection(posed[-1:]), edited.intersection(posed[:-1] if is_limb else ())
        target = bool(at_end) or (pastes and bool(within))
        pole = bool(within or (pastes and at_end)) and is_limb and chain.has_pole
        if chain_of(tip).influence == 0.0 or not (target or pole):
            continue
        meaning = Meaning(chain.tip, frozenset(at_end | (within if pole else set())), target, pole)
        if meaning not in gesture.followers:
            gesture.followers[meaning] = None
            with suppress(UserError):
                made = gesture.followers[meaning] = Follower(depsgraph, ob, meaning, matches=pastes)
                gesture.spreads += gesture.reach.spreads(depsgraph.scene, dict(enumerate(made.goals))).values()
        follower = gesture.followers[meaning]
        if follower is not None:
            yield follower


def _follow(ob: Object, gesture: Gesture, followers: Sequence[Follower], depsgraph: Depsgraph) -> bool:
    """Move goals to where the edited bones are; return False if something else holds one of them."""
    # The operator gives bones the channels that they would have in the pose before the gesture.
    wanted = gesture.start.copy()
    wanted[list(gesture.edited)] = list(gesture.edited.values())
    if any(follower.lacks_start for follower in followers):
        _show(ob, gesture.live, gesture.start, depsgraph)
    for follower in followers:
        follower.begin(depsgraph)
    _show(ob, gesture.live, wanted, depsgraph)
    for follower in followers:
        follower.follow(depsgraph)
    _evaluate(depsgraph)
    return bool(gesture.before) or not any(follower.is_held(depsgraph) for follower in followers)


def _reach_fk(ob: Object, plan: Plan, depsgraph: Depsgraph, gesture: Gesture, left: Collection[int]) -> None:
    """Find the keys in the range of bones, given by their rows, whose edit becomes FK."""
    names, rows = plan.skeleton.names, set(left).difference(gesture.fk_spreads)
    goals = {row: Goal(ob, names[plan.live[row]], turns=True) for row in rows}
    for row, spread in gesture.reach.spreads(depsgraph.scene, goals).items():
        spread.before = gesture.fk[row]  # auto keying may have keyed the edit
        gesture.fk_spreads[row] = spread


def _spread(gesture: Gesture, tip: str) -> dict[str, str]:
    """Add what a gesture changed to the keys in its range; return why that is not possible, by the tip of its chain."""
    with ExitStack() as undo:
        try:
            for spread in gesture.spreads:
                spread.put(undo)
            for row, spread in gesture.fk_spreads.items():
                spread.put(undo, gesture.edited[row])
        except UserError as error:
            return {tip: str(error)}
        undo.pop_all()
    return {}


def _blend(ob: Object, rig: Rig, depsgraph: Depsgraph, gesture: Gesture, followers: Sequence[Follower]) -> None:
    """Where chains that follow are between FK and IK, make what their goals ask for their FK pose as well."""
    plan, tips = rig.plan, {follower.tip for follower in followers}
    partly = {tip for tip in tips if chain_of(ob.pose.bones[tip]).influence < 1.0}
    chosen = [i for i, chain in enumerate(plan.chains) if chain.tip in partly]
    rows = {plan.rows[bone] for i in chosen for bone in plan.chains[i].posed}
    gesture.blended |= rows
    fk = gesture.fk.copy()
    for row in rows.intersection(gesture.edited).difference(*(follower.rows for follower in followers)):
        fk[row] = gesture.edited[row]
    rig.bones.set_fk(ob, gesture.blended, fk, gesture.stored)
    if chosen:
        frame = sample(ob, plan, depsgraph, rig.bones.fk)
        goals = replace(frame.goals, settings=frame.goals.settings.copy())
        goals.value.influence[:, chosen] = 1.0
        solution = pose(ob, plan, replace(frame, goals=goals)).channels[0]
        rig.bones.set_fk(ob, rows, solution, solution)


def _notes(ob: Object, plan: Plan, left: Collection[int]) -> dict[str, str]:
    """Return sentences about bones, given by their rows, whose edit became FK, by the tip bone of their chain."""
    found = {}
    for chain in plan.chains:
        names = [plan.skeleton.names[bone] for bone in chain.posed if plan.rows[bone] in left]
        if names and chain_of(ob.pose.bones[chain.tip]).influence > 0.0:
            found[chain.tip] = say("Changed the FK pose of '{bone}' beneath the solution", bone=names[0])
    return found


def _show(ob: Object, live: Ints, rows: Row, depsgraph: Depsgraph) -> None:
    """Evaluate the pose that channels (k, 17) give."""
    if channels.write(ob, live, rows):
        _evaluate(depsgraph)


def _evaluate(depsgraph: Depsgraph) -> None:
    with paused():
        compat.update_in_handler(depsgraph)


# ---- undo and redo


def _remember(edit: Edit) -> None:
    global _latest
    _edits.append(edit)
    del _edits[:-REMEMBERED]
    # The same operator may have edited other armatures, in this update: what followed there is not read yet.
    beside = [other for other in _latest[0] if other.solved is None] if _latest is not None else []
    _latest = [*beside, edit], last_operator()


def _is_in_step(operator: int) -> bool:
    """Whether the undo step of an operator that ended later has what followed the edit of one, given by its address."""
    operators = bpy.context.window_manager.operators
    for later in reversed(operators):
        if later.as_pointer() == operator:
            return False
        module, name = later.bl_idname.split("_OT_")
        if getattr(getattr(bpy.ops, module.lower()), name).bl_options & {"UNDO", "UNDO_GROUPED"}:
            return True
    return len(operators) > 0  # Blender forgets the first ones, and at times all of them


@persistent
def _after_update(_scene: Scene, _depsgraph: Depsgraph) -> None:
    """Note which operators have ended, and what the edit that was just taken has led to."""
    global _ended, _keying, _latest
    if registry.is_paused:
        return  # another handler is at work, which evaluates in between
    before, _ended = _ended, last_operator()
    if before != _ended:
        for gesture in _gestures.values():
            if gesture.operator == _ended:
                _offer(gesture.reach)
    if _keying not in {0, _ended} and not any(_running()):
        _keying = 0  # Blender may give its address to another operator
    if _latest is None:
        return
    edits, operator = _latest
    if _is_in_step(operator):
        _latest = None
        return
    for edit in edits:
        if edit.solved is None and (ob := edit.ob.find()) is not None:
            edit.solved = channels.read(ob, edit.bones)
            rig = registry.of(ob).rig
            if rig is not None and set(edit.left.tolist()) <= rig.plan.rows.keys():
                edit.fk = rig.bones.stored[[rig.plan.rows[bone] for bone in edit.left.tolist()]]


@persistent
def _before_undo(_file: object, _unused: object = None) -> None:
    """Take back what Blender's current undo step doesn't have."""
    if _latest is not None and not _is_in_step(_latest[1]):
        for control in (control for edit in _latest[0] for control in edit.before):
            control.put_back()


@persistent
def _after_undo(_file: object, _unused: object = None) -> None:
    """Let goals follow again where undo and redo come back to a step from which they had followed."""
    global _ended, _latest
    _gestures.clear()
    _ended = 0  # Adjust Last Operation runs the operator again
    latest = [] if _latest is None else _latest[0]
    found: set[int] = set()
    steps = []
    for edit in reversed(_edits):
        ob = None if edit.ob.uid in found else edit.ob.find()
        if ob is None or ob.pose is None or len(ob.pose.bones) <= edit.bones.max():
            continue
        now, is_later = channels.read(ob, edit.bones), object_of(ob).edit == edit.mark
        known = edit.solved if any(edit is last for last in latest) else None
        known = known if is_later else edit.edited
        if known is not None and np.array_equal(now, known) and all(c.is_there() for c in edit.before):
            edit.after = [control.put_back() for control in edit.after]
            object_of(ob).edit = edit.mark
            if edit.fk is not None and not is_later:
                fk_store.store(ob, edit.left.tolist(), edit.fk)
            found.add(edit.ob.uid)
            steps += [] if is_later else [edit]
    _latest = (steps, last_operator()) if steps else None


@persistent
def _after_load(_file: object, _unused: object = None) -> None:
    global _ended, _keying, _latest
    _gestures.clear()
    _edits.clear()
    _ended, _keying, _latest = last_operator(), 0, None


HANDLERS = (
    ("depsgraph_update_post", _after_update),
    ("undo_pre", _before_undo),
    ("redo_pre", _before_undo),
    ("undo_post", _after_undo),
    ("redo_post", _after_undo),
    ("load_post", _after_load),
)


LISTENERS = ((handlers.on_edit, take),)


def unregister() -> None:
    """Forget what was edited, and stop adjusting edits."""
    _give_up()
    _after_load(None)
    while _adjustable:
        delattr(*_adjustable.pop())
