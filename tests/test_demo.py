"""The scene of `make demo`, without its pictures."""

from __future__ import annotations

from tools import demo


def test_demo_bake_matches_its_live_solution() -> None:
    """All five chains reach their targets on every frame, and the bake moves no joint."""
    rig = demo.new_scene()
    demo.set_live(rig, True)
    live = demo.play(rig)

    demo.OPERATORS.ik_addon.bake()
    demo.set_live(rig, False)

    assert list(demo.complaints(live, demo.play(rig))) == []
    assert all(error > 0.0 for error in live.errors.values())
