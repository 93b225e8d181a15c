"""Take the installed extension through its life cycle and record what Blender contains after each step.

Started by `test_lifecycle.py` in a separate process: everything Blender prints comes from this script, and the
extension has never been enabled before. Arguments: the zip, a scratch folder, the file to write.
"""

import importlib
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools import blender

OPEN: Counter[str] = Counter()
"""Additions that Blender keeps no list of: a name, and how many more times it was added than removed."""

TIMERS: list[Callable[..., Any]] = []
"""Every function that has ever been registered as a timer."""


def count(owner: Any, add: str, remove: str) -> None:
    """Count in `OPEN` the calls of `owner`'s functions `add` and `remove`."""

    def counted(function: Callable[..., Any], step: int) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            result = function(*arguments, **options)
            OPEN[f"{owner.__name__}.{add}"] += step
            return result

        return call

    setattr(owner, add, counted(getattr(owner, add), 1))
    setattr(owner, remove, counted(getattr(owner, remove), -1))


def remember_timers() -> None:
    """Record in `TIMERS` which functions become timers; Blender itself drops some of them when it loads a file."""
    import bpy

    timers: Any = bpy.app.timers
    register = timers.register

    def remembered(function: Callable[..., Any], **options: Any) -> None:
        if function not in TIMERS:
            TIMERS.append(function)
        register(function, **options)

    timers.register = remembered


def is_blenders(file: str | None) -> bool:
    """Return whether the module in `file` comes with Blender."""
    import bpy

    return file is not None and Path(bpy.utils.resource_path("LOCAL")).resolve() in Path(file).resolve().parents


def describe(function: Callable[..., Any]) -> str | None:
    """Return a name for `function`, or None if it is Blender's own."""
    if is_blenders(getattr(sys.modules.get(function.__module__), "__file__", None)):
        return None
    return f"{function.__module__}.{getattr(function, '__qualname__', function)}"


def look() -> list[str]:
    """Return everything that an extension may add to Blender, one line each."""
    import bpy

    found = [f"{name}: open {number}" for name, number in OPEN.items() if number]
    found += [f"timer {function.__name__}" for function in TIMERS if bpy.app.timers.is_registered(function)]
    for name in dir(bpy.app.handlers):
        handlers = getattr(bpy.app.handlers, name)
        if isinstance(handlers, list):
            found += [f"handler {name} {function}" for function in map(describe, handlers) if function]
    for name in dir(bpy.types):
        kind = getattr(bpy.types, name)
        found.append(f"type {name}")
        if hasattr(kind, "bl_rna"):
            found += [f"property {name}.{key}" for key in kind.bl_rna.properties.keys()]  # noqa: SIM118
        drawn = getattr(getattr(kind, "draw", None), "_draw_funcs", ())
        found += [f"drawn in {name}: {function}" for function in map(describe, drawn) if function]
    for base in (bpy.types.PropertyGroup, bpy.types.AddonPreferences):
        # Registered classes of these kinds are not in `bpy.types`.
        found += [f"type {kind.__module__}.{kind.__name__}" for kind in base.__subclasses__() if kind.is_registered]
    for module in dir(bpy.ops):
        found += [f"operator {module}.{name}" for name in dir(getattr(bpy.ops, module))]
    for configuration in bpy.context.window_manager.keyconfigs:
        for keymap in configuration.keymaps:
            found += [f"key {configuration.name} {keymap.name} {item.idname}" for item in keymap.keymap_items]
    return sorted(found)


def outside_modules() -> list[str]:
    """Return top-level modules that are neither Python's nor numpy's, and do not come with Blender."""
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    found = {name.partition(".")[0] for name, file in files.items() if file and not is_blenders(file)}
    return sorted(found - sys.stdlib_module_names - {"bpy", "numpy", "bl_ext", "__main__", "tools"})


def main(package: str, folder: str, report: str) -> None:
    """Go through the extension's life cycle and write the report."""
    blender.prepare(Path(folder))
    import bpy

    count(bpy.types.SpaceView3D, "draw_handler_add", "draw_handler_remove")
    count(bpy.utils, "register_cli_command", "unregister_cli_command")
    remember_timers()

    # Installing needs Blender's own extension manager, which makes its own additions.
    importlib.import_module("addon_utils").enable("bl_pkg")
    steps: dict[str, list[str]] = {}
    path, modules = list(sys.path), outside_modules()
    steps["before"] = look()
    blender.install(Path(package))
    steps["installed"] = look()
    steps["outside modules"] = [name for name in outside_modules() if name not in modules]
    steps["outside modules"] += [entry for entry in sys.path if entry not in path]

    bpy.ops.wm.read_homefile(use_empty=True)
    steps["file loaded"] = look()
    blender.disable()
    steps["disabled"] = look()

    for _ in range(3):
        blender.enable()
        steps["enabled thrice"] = look()
        blender.disable()
        steps["disabled thrice"] = look()

    extension = importlib.import_module(blender.PACKAGE)
    extension.register()
    extension.register()
    steps["registered twice"] = look()
    extension.unregister()
    extension.unregister()
    steps["unregistered twice"] = look()

    blender.enable()
    bpy.ops.wm.read_factory_settings(use_empty=True)
    steps["factory settings"] = look()
    importlib.import_module("addon_utils").enable("bl_pkg")
    blender.enable()
    steps["enabled after factory settings"] = look()
    blender.disable()
    Path(report).write_text(json.dumps(steps), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
    blender.leave(0)
