"""What the command line bakes: which armatures, in which order, and which of their chains."""

from __future__ import annotations

import argparse
from typing import NamedTuple

import bpy

from ..core.settings import chain_of
from ..rig.plan.chain import tips
from ..rig.plan.followers import goals_of
from ..rig.plan.order import in_order
from ..rig.plan.plan import Plan, between
from ..rig.plan.presence import why_closed
from ..rig.plan.sources import Part, Sources
from .exits import CommandError


class Job(NamedTuple):
    """The chains to bake of an armature."""

    ob: bpy.types.Object
    tips: list[str]
    """Names of the tip bones of the chains."""


class LeftOut(NamedTuple):
    """An armature that is not baked."""

    ob: bpy.types.Object
    reason: str


def jobs_of(options: argparse.Namespace) -> tuple[list[Job], list[LeftOut]]:
    """Return what to bake, ordered so that an armature comes after those it follows, and what is left out.

    Raises:
        CommandError: something named doesn't exist, or there is nothing to bake.
    """
    chosen = _armatures(options)
    found = [Job(ob, own) for ob in chosen if (own := _chosen_tips(ob, options)) or _why_unread(ob)]
    reasons = [why_closed(job.ob) or _why_unreadable(job) for job in found]
    left_out = [LeftOut(job.ob, reason) for job, reason in zip(found, reasons, strict=True) if reason]
    jobs = {job.ob.session_uid: job for job, reason in zip(found, reasons, strict=True) if not reason}
    for ob, reason in left_out:
        if options.armature or not jobs:
            raise CommandError(f"'{ob.name_full}' can't be baked. {reason}")
    for tip in options.chains or ():
        if not any(tip in job.tips for job in found):
            raise CommandError(f"There is no chain on bone '{tip}'. The chains are on {_known(chosen)}")
    if not jobs:
        raise CommandError("There is no enabled IK chain to bake")
    for job in jobs.values():
        for tip in job.tips:
            if not chain_of(job.ob.pose.bones[tip]).enabled:
                raise CommandError(f"The chain on '{tip}' of '{job.ob.name_full}' is disabled. Enable it to bake it")
    needs = {uid: _followed(job.ob).intersection(jobs) for uid, job in jobs.items()}
    ordered, mutual = in_order(jobs, needs)
    if mutual:
        layer = bpy.context.view_layer
        plans = {uid: Plan.of(jobs[uid].ob, layer.depsgraph) for uid in mutual}
        mutual.sort(key=lambda uid: bool(between(plans, uid, jobs[uid].tips)))
    return [jobs[uid] for uid in (*ordered, *mutual)], left_out


def _why_unreadable(job: Job) -> str:
    """Say what is missing from a library; empty if the armature and all targets and poles were read."""
    goals = (goal.ob for tip in tips(job.ob) if tip.name in job.tips for goal in goals_of(tip))
    return next(filter(None, map(_why_unread, (job.ob, *goals))), "")


def _why_unread(ob: bpy.types.Object) -> str:
    """Say if Blender put a placeholder in the place of a linked object, or of what an override was made from.

    A placeholder has no animation, and an armature's has no bones.
    """
    for block in (ob, ob.data):
        override = None if block is None else block.override_library
        linked = block if override is None else override.reference
        if linked is not None and linked.is_missing:
            return (
                f"'{linked.name_full}' could not be read from its library '{linked.library.filepath}'. "
                "Make the library available, or correct its path in the shot"
            )
    return ""


def _armatures(options: argparse.Namespace) -> list[bpy.types.Object]:
    """Return the armatures of the scene, or those named by the options."""
    if not options.armature:
        return _armatures_of_scene()
    chosen = [_named(name) for name in options.armature]
    return [ob for ob in _armatures_of_scene() if ob in chosen]


def _armatures_of_scene() -> list[bpy.types.Object]:
    return [ob for ob in bpy.context.scene.objects if ob.type == "ARMATURE"]


def _named(name: str) -> bpy.types.Object:
    """Return the armature of this name, which for a linked one may include its library to distinguish it.

    Raises:
        CommandError: there is none, or more than one.
    """
    every = _armatures_of_scene()
    found = [ob for ob in every if ob.name_full == name] or [ob for ob in every if ob.name == name]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"'{ob.name_full}'" for ob in found or every) or "none"
    if found:
        raise CommandError(f"Several armatures are called '{name}': {known}. Use one of these names, or rename one")
    raise CommandError(f"The scene '{bpy.context.scene.name}' has no armature '{name}'. It has {known}")


def _chosen_tips(ob: bpy.types.Object, options: argparse.Namespace) -> list[str]:
    if options.chains is None:
        return [tip.name for tip in tips(ob) if chain_of(tip).enabled]
    return [tip.name for tip in tips(ob) if tip.name in options.chains]


def _known(armatures: list[bpy.types.Object]) -> str:
    return ", ".join(f"'{tip.name}'" for ob in armatures for tip in tips(ob)) or "no bone"


def _followed(ob: bpy.types.Object) -> set[int]:
    """Return the `session_uid` of the other armatures that this one or its goals are attached to."""
    parts = [Part(ob), *(Part(goal.ob, goal.bone) for tip in tips(ob) for goal in goals_of(tip))]
    return {carrier.armature for carrier in Sources().carriers(parts)} - {ob.session_uid}
