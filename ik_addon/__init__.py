"""Inverse kinematics for Blender armatures.

Importing this package does not import bpy, so that `ik_addon.solve` works in any Python with numpy.
"""


def register() -> None:
    """Add the extension's classes, properties and handlers to Blender."""
    from . import registration

    registration.register()


def unregister() -> None:
    """Remove everything that `register` added."""
    from . import registration

    registration.unregister()
