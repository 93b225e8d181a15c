"""A scene of its own to step through frames in: it holds what chains need and none of what only takes time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import bpy

from . import live
from .rig import chain
from .settings import chain_of, goal_of


@contextmanager
def stage(scene: bpy.types.Scene, ob: bpy.types.Object) -> Iterator[bpy.types.Scene]:
    """A copy of a scene with an armature object and what its chains follow, to step through frames with.

    Blender adds by itself whatever these depend on: parents, targets of constraints, what drivers read. All else stays
    out, and is not evaluated on each frame. It is the scene itself where there is nothing else, and where it is bound
    to be.
    """
    found = (goal_of(chain_of(tip), role)[0] for tip in chain.tips(ob) for role in ("target", "pole"))
    goals = {goal for goal in found if goal is not None}
    if is_bound(scene) or {ob, *goals}.issuperset(scene.objects):
        yield scene
        return
    copy = scene.copy()
    try:
        everything = copy.collection
        for child in everything.children[:]:
            everything.children.unlink(child)
        for other in everything.objects[:]:
            everything.objects.unlink(other)
        for needed in {ob, *goals}:
            everything.objects.link(needed)
        yield copy
    finally:
        bpy.data.batch_remove([copy])  # `scenes.remove` crashes Blender 4.2 where it has no window, as in a command


def is_bound(scene: bpy.types.Scene) -> bool:
    """Whether a copy of a scene would show something else, and its frames depend on more than animation.

    A simulation goes on only where it began, and what live solving writes after a frame was evaluated would undo, in a
    scene that is not shown, the animation of everything else on the same object.
    """
    return scene.rigidbody_world is not None or live.is_solved(scene)
