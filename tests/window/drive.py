"""Use the panel as a user does, with mouse and keyboard: `python3 tests/window/drive.py DRIVER [SCREENSHOTS]`.

DRIVER is the folder of `gui_drive.py`, see `tools/window.py`. Ends with an assertion where something is not as it
should be; the screenshots are for looking at.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# Started as a script, Python looks for imports beside this file; `tools` is two folders up.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tools import window
from tools.pictures import SELECT_TARGET

STATE = """
rig = bpy.data.objects['metarig']
tip = rig.pose.bones['forearm.L']
goal = tip.ik_addon.target
result = {
    'chain': tip.ik_addon.is_chain,
    'objects': len(bpy.data.objects),
    'live': rig.ik_addon.live,
    'tip': [round(x, 3) for x in rig.matrix_world @ tip.tail],
    'target': goal and [round(x, 3) for x in goal.matrix_world.translation],
    'length': tip.ik_addon.chain_length,
}
"""


def drive(session: Any, screenshots: Path | None) -> None:
    """Add a chain, solve it live, drag the target, restore the pose, and take each of them back."""
    session.call(window.METARIG)
    session.idle(1.0)

    def state(name: str) -> dict[str, Any]:
        session.idle(0.5)
        if screenshots is not None:
            session.shot(str(screenshots / f"{name}.png"))
        return dict(session.call(STATE))

    def key(keys: str) -> None:
        view = session.call("result = rects()['WINDOW']")
        session.move(view["x"] + view["w"] // 3, view["y"] + view["h"] // 2)
        session.key(keys)

    bare = state("bare")
    session.click_button("ik_addon.chain_add")
    added = state("added")
    assert added["chain"]
    assert added["live"], "the first chain is live at once"
    assert added["tip"] == bare["tip"] == added["target"]
    key("ctrl+z")
    assert state("add undone") == bare
    key("ctrl+shift+z")
    assert state("add redone") == added

    session.click_button("ik_addon.live")
    off = state("live off")
    assert off == {**added, "live": False}
    key("ctrl+z")
    live = state("live off undone")
    assert live == added

    session.call(SELECT_TARGET + "bpy.ops.ed.undo_push(message='Select')")
    window.drag(session, -100, -150)
    dragged = state("dragged")
    assert dragged["target"] != live["target"]
    assert dragged["tip"] == dragged["target"]
    key("ctrl+z")
    assert state("drag undone") == live
    key("ctrl+shift+z")
    assert state("drag redone") == dragged

    session.click_button("ik_addon.restore_pose")
    restored = state("restored")
    assert restored == {**dragged, "live": False, "tip": bare["tip"]}
    key("ctrl+z")
    assert state("restore undone") == dragged
    key("ctrl+shift+z")
    assert state("restore redone") == restored

    session.click_button("ik_addon.solve")
    assert state("solved") == {**dragged, "live": False}
    key("ctrl+z")
    assert state("solve undone") == restored
    sidebar = session.call("result = rects()['UI']")
    session.click_button("ik_addon.chain_remove", x=sidebar["x"] + 2 * sidebar["w"] // 3)
    assert state("removed") == bare
    key("ctrl+z")
    assert state("remove undone") == restored

    log = Path(session.log).read_text(encoding="utf-8")
    assert "Traceback" not in log, log


def main(driver: str, screenshots: str | None = None) -> None:
    """Open a Blender and drive it."""
    with window.opened(driver) as session:
        drive(session, None if screenshots is None else Path(screenshots))
    print("Everything was as it should be.")


if __name__ == "__main__":
    main(*sys.argv[1:])
