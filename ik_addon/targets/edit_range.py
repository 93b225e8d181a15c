"""An edit that reaches over a range of frames: what it changes is added to the keys around it, less and less."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import NamedTuple

import numpy as np
from bpy.types import Scene

from ..bake.scene import time_scale
from ..core import contact_keys, keyframes
from ..core.channels import FIELDS, WIDTH, Row
from ..core.falloff import changed, weights
from ..core.fk_keys import is_same
from ..core.goals import Goal, curves_on
from ..core.key_curve import SAME_FRAME, keyed_within, put_values, read_keys, write_keys
from ..core.settings import chain_of, goal_of, overlay_of
from ..core.untyped import Struct
from ..rig.plan.followers import followers
from ..solve.problem import Floats
from .movable import channels_of


class EditRange(NamedTuple):
    """How far an edit reaches."""

    frames: int = 0
    """How many frames before and after the edit; 0: it reaches no other frame."""
    falloff: str = "SMOOTH"
    """One of `FALLOFFS`."""
    every_frame: bool = False
    """Key what is edited on every frame of the range."""

    @classmethod
    def of(cls, settings: Struct) -> EditRange:
        """Return how far the edit of an operator reaches."""
        return cls(settings.range, settings.falloff, getattr(settings, "every_frame", False))

    @classmethod
    def of_scene(cls, scene: Scene) -> EditRange:
        """Return how far edits by hand reach."""
        return cls(overlay_of(scene).edit_range, overlay_of(scene).edit_falloff)

    def spreads(self, scene: Scene, goals: Mapping[int, Goal]) -> dict[int, Spread]:
        """Return what has keys of objects and bones that are edited on the current frame; none if nothing is reached.

        Their keys have to be as before the edit.
        """
        found = {i: Spread(scene, goal, self) for i, goal in goals.items()} if self.frames else {}
        return {i: own for i, own in found.items() if own.curves}


HERE = EditRange()
"""An edit that reaches no other frame."""


class Spread:
    """The keys of one object or bone around an edit on the current frame."""

    def __init__(self, scene: Scene, goal: Goal, reach: EditRange) -> None:
        """Find the keys that an edit reaches.

        Args:
            scene: the scene.
            goal: what is edited.
            reach: how far the edit reaches.
        """
        self.goal, self._reach = goal, reach
        self._now, self._scale = scene.frame_current_final, time_scale(scene)
        found = ((FIELDS[field].start, own) for field in goal.fields for own in curves_on(goal.holder, field))
        self.curves = {first + i: curve for first, (i, curve) in found if len(curve.keyframe_points)}
        """The F-curves of what is edited, by column of the channels."""
        self._old = {column: read_keys(curve) for column, curve in self.curves.items()}
        self._is_begun = False
        self.before: Row = self.keyed(np.array([self._now]))[0]
        """(17,) the channels on the current frame before the edit."""

    def put(self, undo: ExitStack, after: Row | None = None, rows: Row | None = None) -> None:
        """Add what has changed on the current frame, if anything has, to the keys in the range.

        Args:
            undo: takes them back.
            after: (17,) the channels on the current frame after the edit; None: those that it has.
            rows: (F, 17) what keys on `frames` get; None: their share of the change.

        Raises:
            UserError: keys can't be written.
        """
        own, after = list(self.curves), self.goal.row() if after is None else after
        if rows is None and not self._is_begun and is_same(after[own], self.before[own]).all():
            return
        channels = channels_of(self.goal, after[None])
        keyframes.check(self.goal.ob, [own for own in channels if FIELDS[own.field].start + own.index in self.curves])
        if self._is_begun:  # an edit that goes on begins anew
            self._put_back()
        self._is_begun = True
        undo.callback(self._put_back)
        if rows is None:
            before = np.where(np.isin(np.arange(WIDTH), own), self.before, after)
            mode, shares = self.goal.holder.rotation_mode if self.goal.turns else None, self.shares(self.frames)
            rows = changed(self.keyed(self.frames), before[None], after[None], shares, mode)
        for column, curve in self.curves.items():
            frames = self._frames_of[column]
            values = rows[np.searchsorted(self.frames, frames - 1e-6), column].astype(np.float64)
            values[np.abs(frames - self._now) < SAME_FRAME] = after[column]
            put_values(curve, frames * self._scale, values)

    def _put_back(self) -> None:
        """Put back the keys from before."""
        for column, curve in self.curves.items():
            write_keys(curve, self._old[column])

    def keyed(self, frames: Floats) -> Row:
        """Return the channels (F, 17) on frames (F,), as keyed."""
        return self.goal.keyed(frames * self._scale)

    @cached_property
    def _span(self) -> tuple[Floats, Floats]:
        """Frames (n,) from the first to the last one that the edit reaches, and how much of it each takes (n,).

        The contacts of a dragged hand or foot move as a whole: time stands still in them, and the range is counted from
        the ends of the one at the current frame.
        """
        own, scale = (self.goal.ob, self.goal.bone), self._scale
        touching = [tip for tip in followers(*own) if goal_of(chain_of(tip), "target") == own]
        first = last = self._now
        for start, end in filter(None, (contact_keys.whole(tip, self._now * scale) for tip in touching)):
            first, last = min(first, start / scale), max(last, end / scale - 1.0)
        keyed = np.concatenate([keys["co"][:, 0] for keys in self._old.values()]) / scale  # contacts may be endless
        first = max(first, min(self._now, float(keyed.min()))) - self._reach.frames
        last = min(last, max(self._now, float(keyed.max()))) + self._reach.frames
        frames = np.unique([first, *range(math.ceil(first), math.floor(last) + 1), self._now, last])
        still = [contact_keys.read(tip, frames * scale).any(axis=0) for tip in touching]
        return frames, weights(frames, self._now, self._reach.falloff, np.any(still, axis=0) if still else None)

    def shares(self, frames: Floats) -> Floats:
        """Return how much (F,) of the edit frames (F,) take."""
        return np.interp(frames, *self._span)

    @cached_property
    def _frames_of(self) -> dict[int, Floats]:
        """The frames of the keys that each F-curve has in the range then: no new ones but here and at its ends."""
        every, found = self._span[0], {}
        for column, keys in self._old.items():
            own = keys["co"][:, 0].astype(np.float64) / self._scale
            ends = every[[0, -1]][[own[0] < every[0], own[-1] > every[-1]]]
            new = np.array([self._now, *(every if self._reach.every_frame else ends)])
            new = new[np.abs(own[:, None] - new).min(axis=0) > SAME_FRAME]
            inside = own[keyed_within(keys, every[0] * self._scale, every[-1] * self._scale)]
            found[column] = np.unique(np.append(inside, new))
        return found

    @cached_property
    def frames(self) -> Floats:
        """All frames (F,) that get keys."""
        return np.unique(np.concatenate([*self._frames_of.values()]))
