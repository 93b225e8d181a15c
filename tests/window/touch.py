"""Drag targets, set limits and switch the overlay by hand: `python3 tests/window/touch.py DRIVER [SCREENSHOTS]`.

DRIVER and SCREENSHOTS as for `drive.py`.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# Started as a script, Python looks for imports beside this file; `tools` is two folders up.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tools import window

STATE = """
rig = bpy.data.objects['metarig']
tip = rig.pose.bones['forearm.L']
goal = tip.ik_addon.target
result = {
    'tip': list(rig.matrix_world @ tip.tail),
    'target': list(goal.matrix_world.translation),
    'channels': [list(c) for b in rig.pose.bones for c in (b.location, b.rotation_quaternion, b.scale)],
    'bases': [b.ik_addon.base.stored for b in rig.pose.bones],
    'up': tip.ik_max_x, 'limited': tip.use_ik_limit_x,
    'overlay': bpy.context.scene.ik_addon.show_overlay,
}
"""

KEYS_TAKEN = """
result = [
    (keymap.name, item.idname)
    for keymap in bpy.context.window_manager.keyconfigs.default.keymaps
    if keymap.name in {'Pose', '3D View', '3D View Generic', 'Window', 'Screen', 'Animation', 'Object Non-modal'}
    for item in keymap.keymap_items
    if item.type == 'I' and item.shift and item.alt
]
"""


def touch(session: Any, screenshots: Path) -> None:
    """Drag with Live off and on, cancel, confirm, undo; then the pie menu, a limit from the pose, and the overlay."""
    session.call(window.METARIG)
    session.call("bpy.ops.object.mode_set(mode='POSE')")
    session.click_button("ik_addon.chain_add")

    def state(name: str) -> dict[str, Any]:
        session.idle(0.7)
        session.shot(str(screenshots / f"{name}.png"))
        return dict(session.call(STATE))

    def middle() -> tuple[int, int]:
        view = session.call("result = rects()['WINDOW']")
        return view["x"] + view["w"] // 3, view["y"] + view["h"] // 2

    def drag(x: int, y: int) -> None:
        """Take hold of the target by the menu's operator, over the viewport, and move by so many pixels."""
        start = middle()
        session.move(*start)
        session.call(
            "window, area, region, _sidebar = view3d()\n"
            "with bpy.context.temp_override(window=window, area=area, region=region):\n"
            "    bpy.ops.ik_addon.drag_target('INVOKE_DEFAULT')"
        )
        for step in range(1, 9):
            session.move(start[0] + x * step // 8, start[1] + y * step // 8, settle=0.1)
        session.idle(0.5)

    def is_reached(now: dict[str, Any]) -> bool:
        return max(abs(a - b) for a, b in zip(now["tip"], now["target"], strict=True)) < 1e-4

    for live in (False, True):
        session.click_button("ik_addon.live")  # which Add Chain switched on
        before = state(f"before, live {live}")
        for key in ("Escape", 3):
            drag(-60, -50)
            moving = state(f"dragging, live {live}")
            assert moving["target"] != before["target"]
            assert is_reached(moving), (moving["tip"], moving["target"])
            if key == 3:
                session.x("click", 3)
            else:
                session.key(key)
            assert state(f"cancelled, live {live}") == before
        drag(-60, -50)
        session.key("x")
        along = state(f"along X, live {live}")
        assert along["target"][1:] == before["target"][1:]
        assert along["target"][0] < before["target"][0]
        session.key("x")
        session.x("click", 1)
        done = state(f"confirmed, live {live}")
        assert is_reached(done)
        assert done["target"][0] < before["target"][0]
        assert done["target"][2] > before["target"][2]
        session.move(*middle())
        session.key("ctrl+z")
        assert state(f"undone, live {live}") == before
        session.key("ctrl+shift+z")
        assert state(f"redone, live {live}") == done
        session.key("ctrl+z")

    # From its button the target goes to the mouse, not the way that the mouse had to go.
    before = state("before the button")
    session.click_button("ik_addon.drag_target")
    assert state("at the button")["target"] == before["target"]
    session.key("Escape")
    assert state("button cancelled") == before

    assert session.call(KEYS_TAKEN) == []
    session.move(*middle())
    session.key("shift+alt+i")
    state("pie menu")
    session.key("9")  # by its place on the numeric pad: the overlay
    off = state("overlay off")
    assert not off["overlay"]
    without = viewport(session, screenshots)
    session.key("ctrl+z")
    session.call("bpy.context.scene.ik_addon.show_overlay = True; redraw()")
    session.idle(1.0)
    assert viewport(session, screenshots) != without

    session.call(
        "from mathutils import Quaternion\n"
        "rig = bpy.context.object; rig.ik_addon.live = False\n"
        "rig.pose.bones['forearm.L'].rotation_quaternion = Quaternion((1, 0, 0), 0.5)\n"
        "bpy.ops.ed.undo_push(message='Pose')"
    )
    session.idle(0.5)
    session.move(*middle())
    session.key("shift+alt+i")
    session.idle(0.5)
    session.key("1")
    limited = state("limit from pose")
    assert limited["limited"]
    assert abs(limited["up"] - 0.5) < 1e-4

    log = Path(session.log).read_text(encoding="utf-8")
    assert "Traceback" not in log, log
    assert "overlay is off" not in log, log


def viewport(session: Any, folder: Path) -> str:
    """What the left half of the viewport looks like."""
    view = session.call("result = rects()['WINDOW']")
    picture = folder / "viewport.png"
    session.shot(str(picture), crop=f"{view['w'] // 2}x{view['h']}+{view['x']}+{view['y']}")
    pixels = subprocess.run(["convert", picture, "rgb:-"], check=True, capture_output=True).stdout
    return hashlib.sha256(pixels).hexdigest()


def main(driver: str, screenshots: str | None = None) -> None:
    """Open a Blender and touch it."""
    with tempfile.TemporaryDirectory() as scratch, window.opened(driver) as session:
        touch(session, Path(screenshots or scratch))
    print("Everything was as it should be.")


if __name__ == "__main__":
    main(*sys.argv[1:])
