"""The channels of an armature's live bones: stored FK pose, FK pose of the frame, and what the add-on wrote last.

Rows (k, 17) are the channels of the live bones, in the order of `Plan.live`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property

import numpy as np
from bpy.types import Depsgraph, Object

from ..core import channels, fk_keys, fk_store
from ..core.channels import Row
from ..rig.plan.plan import Plan
from ..rig.read import fcurves
from ..solve.problem import Bools


class LiveBones:
    """The live bones of one armature object. Holds no references to Blender's data."""

    def __init__(self, ob: Object, plan: Plan) -> None:
        """Load the FK pose of the bones of all chains, or store it where none is stored yet.

        Args:
            ob: the armature object.
            plan: the plan of its chains.
        """
        self.indices = plan.live
        self._rows = plan.rows
        self._skeleton = plan.skeleton
        present = channels.read(ob, plan.live)
        self.written: Row = fk_store.take_written(ob, plan.live, present)
        """(k, 17) what the add-on wrote last; differs from the channels where someone else moved a bone."""
        self.stored, new = fk_store.load(ob, plan.live, present)
        """(k, 17) the stored FK pose, which holds where channels are not animated."""
        self.fk: Row | None = None
        """(k, 17) channels of the FK pose; None if unknown."""
        self.modes = [ob.pose.bones[bone].rotation_mode for bone in plan.live.tolist()]
        """Their rotation modes, which may be animated."""
        self.before_edit: dict[tuple[int, str, bytes], tuple[Row, Row]] = {}
        """The stored and the FK pose that channels with these values had, in case an edit is cancelled."""
        self._never_solved = set(new)
        self.animated: Bools = fcurves.animated(ob, plan.live)
        """(k, 17) whether F-curves, strips or drivers set each channel."""
        self.keys = fk_keys.count(ob, plan.live)
        """How many keys the F-curves of the channels have."""
        self._sampled: Row | None = None
        """(k, 17) the FK pose sampled from F-curves, used until that of a frame is known."""
        self.are_edited = False
        """Whether edits were absorbed that Blender has not evaluated yet."""
        self.has_released = False
        """Whether bones were put back into their FK pose, and Blender may not have evaluated them since."""
        self.are_new = len(new) == len(plan.live)
        """Whether no bone had a stored FK pose before, because no chain has posed them yet."""
        if self.are_new:
            self.fk = present

    def copy(self) -> LiveBones:
        """Return a copy of the current state, to go back to when the channels are put back."""
        known = copy(self)
        known.written = self.written.copy()
        known.before_edit = dict(self.before_edit)
        return known

    @property
    def _last_fk(self) -> Row | None:
        """FK channels (k, 17), as far as they are known."""
        return self._sampled if self.fk is None else self.fk

    @cached_property
    def animated_fields(self) -> frozenset[str]:
        """The fields of which animation sets any channel."""
        return frozenset(name for name, columns in channels.FIELDS.items() if self.animated[:, columns].any())

    @cached_property
    def are_keyed(self) -> bool:
        """Whether animation sets channels that a solution writes, so that it would overwrite one written early."""
        turned = [channels.FIELDS[channels.rotation_field(mode)] for mode in self.modes]
        return any(own[columns].any() for own, columns in zip(self.animated, turned, strict=True))

    def _are_other(self) -> None:
        """Find out anew what follows from rotation modes, and from what is animated."""
        for name in ("are_keyed", "animated_fields"):
            vars(self).pop(name, None)

    def begin(self, ob: Object, frame: float) -> None:
        """Take over an armature of which nothing but its stored data is known, for instance after undo.

        Bones that no longer belong to a chain go back to their FK pose on this frame. For the others, the channels that
        F-curves determine are sampled, in case the F-curves are removed before a frame is solved.
        """
        unused = np.array(sorted(set(fk_store.stored_bones(ob)).difference(self.indices.tolist())), dtype=np.int64)
        rows, _new = fk_store.load(ob, unused, channels.read(ob, unused))
        with suppress(fcurves.NotDetermined):
            self._sampled = fcurves.at_frames(ob, self.indices, self.stored, [frame])[0]
            rows = fcurves.at_frames(ob, unused, rows, [frame])[0]
        self.has_released = channels.write(ob, unused, rows)
        fk_store.forget(ob, unused.tolist())

    def planned_anew(self, ob: Object, plan: Plan, seen: Object | None) -> LiveBones:
        """Return the live bones after chains, bones or settings changed, keeping what is known of bones that stay.

        Bones that no longer belong to a chain go back to their FK pose; `seen` is the evaluated copy if Blender has
        evaluated another frame since that was known.
        """
        matches = self._skeleton.matches(ob)
        if not matches:
            self._store_what_was_noted(ob)
        else:
            self.take_animation(ob)
            if seen is not None:
                self.fk = self.fk_beneath(channels.read(seen, self.indices), is_same_frame=False)
        after = LiveBones(ob, plan)
        if matches:
            self.release(ob, self._rows.keys() - plan.rows.keys())
            after.has_released = self.has_released
        fk_store.release(ob, set(fk_store.stored_bones(ob)).difference(plan.live.tolist()))
        if not matches:
            return after  # a renamed bone may now have another bone's old name
        after.before_edit, after.keys, after.are_edited = self.before_edit, self.keys, self.are_edited
        pairs = [(new, self._rows[bone]) for bone, new in plan.rows.items() if bone in self._rows]
        kept = [(new, old) for new, old in pairs if self.modes[old] == after.modes[new]]
        new_rows, old_rows = [new for new, _ in kept], [old for _, old in kept]
        after.written[new_rows] = self.written[old_rows]
        if kept and self.fk is None and self._sampled is not None:
            after._sampled = after.stored.copy()
            after._sampled[new_rows] = self._sampled[old_rows]
        if self.fk is not None and after.fk is None and len(after._never_solved.union(new_rows)) == len(plan.live):
            after.fk = channels.read(ob, plan.live)
            after.fk[new_rows] = self.fk[old_rows]
        return after

    def _store_what_was_noted(self, ob: Object) -> None:
        """Store again the FK poses that were noted on tip bones, if those tips were deleted."""
        names, bones = self._skeleton.names, ob.pose.bones
        if not set(bones.keys()) < set(names):
            return  # a renamed bone may now have another bone's old name
        stored = fk_store.stored_bones(ob)
        left = [(i, row) for bone, row in self._rows.items() if (i := bones.find(names[bone])) not in {-1, *stored}]
        fk_store.store(ob, [bone for bone, _ in left], [self.stored[row] for _, row in left])

    def release(self, ob: Object, bones: Collection[int]) -> None:
        """Put live bones back into their FK pose of the current frame and drop it from the FK store."""
        own = [bone for bone in fk_store.stored_bones(ob) if bone in bones]
        last = self._last_fk
        if last is not None and own:
            rows = last[[self._rows[bone] for bone in own]]
            for k, bone in enumerate(own):
                before, mode = self.modes[self._rows[bone]], ob.pose.bones[bone].rotation_mode
                rows[k] = channels.convert_rotation(rows[k], before, mode)
            self.has_released |= channels.write(ob, np.array(own, dtype=np.int64), rows)
            fk_store.forget(ob, own)

    def absorb_edits(self, ob: Object, evaluated: Sequence[Depsgraph] = ()) -> None:
        """Make channels that were changed by hand or animation since the last write part of the FK pose.

        Before a frame change, values already in an evaluated copy were written by another add-on, not the user. Keep
        them out of the FK store, where they would add up from frame to frame.
        """
        live = self.indices
        present = channels.read(ob, live)
        for depsgraph in evaluated:
            seen = ob.evaluated_get(depsgraph)
            if seen.pose is not None and len(seen.pose.bones) == len(ob.pose.bones):
                self.written = np.where(channels.read(seen, live) == present, present, self.written)
        rows, fk_rows = self.stored.copy(), (self.stored if self.fk is None else self.fk).copy()
        animated = fcurves.animated(ob, live)
        for k, before_mode, mode in self._new_modes(ob):
            # Blender has converted the solution to the new mode, so the FK poses are converted too.
            self.written[k] = channels.as_converted(self.written[k], before_mode, present[k], mode)
            rows[k] = channels.convert_rotation(rows[k], before_mode, mode)
            fk_rows[k] = channels.convert_rotation(fk_rows[k], before_mode, mode)
        for k, bone in enumerate(live.tolist()):
            for name, columns in channels.FIELDS.items():
                old, new = self.written[k, columns], present[k, columns]
                if np.array_equal(old, new):
                    continue
                if (animated | self.animated)[k, columns].any():
                    # Re-evaluated animation leaves the solution in the elements that it does not set.
                    new = np.where(~animated[k, columns] & (old == new), fk_rows[k, columns], new)
                # A cancelled modal operator restores the earlier channels, so restore their FK pose, too.
                before = self.before_edit.get((bone, name, new.tobytes()))
                self.before_edit[bone, name, old.tobytes()] = self.stored[k, columns], fk_rows[k, columns].copy()
                rows[k, columns], fk_rows[k, columns] = before or (new, new)
        self._store(ob, rows)
        self.written, self.are_edited = present, True
        if self.fk is not None:
            channels.write(ob, live, fk_rows)
            self.written = fk_rows
            self.fk = fk_rows

    def set_fk(self, ob: Object, rows: Collection[int], fk: Row, stored: Row) -> None:
        """Give live bones, by their rows, another FK pose and stored FK pose (k, 17); the FK pose must be known."""
        assert self.fk is not None
        chosen = [*rows]
        kept = self.stored.copy()
        self.fk = self.fk.copy()
        self.fk[chosen], kept[chosen] = fk[chosen], stored[chosen]
        self._store(ob, kept)

    def _store(self, ob: Object, rows: Row) -> None:
        """Store the rows (k, 17) that changed."""
        changed = np.flatnonzero((rows != self.stored).any(axis=1))
        fk_store.store(ob, self.indices[changed].tolist(), rows[changed])
        self.stored = rows

    def take_animation(self, ob: Object) -> None:
        """Find out anew what is animated; channels that are not any more keep their last value, as in Blender."""
        animated, last = fcurves.animated(ob, self.indices), self._last_fk
        if last is not None:
            self._store(ob, np.where(self.animated & ~animated, last, self.stored))
        self.animated = animated
        self._are_other()

    def fk_beneath(self, shown: Row, *, is_same_frame: bool, foretold: Row | None = None) -> Row:
        """Return the FK channels (k, 17) of a frame whose evaluated copy shows `shown` (k, 17).

        Animation has overwritten what was written last. Where nothing has, the stored value holds, on the same frame
        the known one, and the foretold one (k, 17) if keys were muted.
        """
        if self.fk is None:
            return np.where(self.animated, shown, self.stored)
        same = shown == self.written
        known = self.fk if is_same_frame else foretold
        if known is not None:
            return np.where(same, known, shown)
        return np.where(same & ~self.animated, self.stored, shown)

    def take_modes(self, ob: Object) -> None:
        """Convert the stored FK pose of bones whose rotation mode was changed by animation to the new mode."""
        self.stored = self.stored.copy()
        for k, before, mode in self._new_modes(ob):
            self.stored[k] = channels.convert_rotation(self.stored[k], before, mode)

    def _new_modes(self, ob: Object) -> Iterator[tuple[int, str, str]]:
        """Take over the rotation modes; yield the row, the old and the new mode of each bone with another one."""
        for k, bone in enumerate(channels.some(ob, self.indices, self._skeleton.names)):
            before, mode = self.modes[k], bone.rotation_mode
            if before != mode:
                self.modes[k] = mode
                self._are_other()
                yield k, before, mode
