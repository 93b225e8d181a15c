"""Entry point of the extension: the code is in `ik_addon`."""

from .ik_addon import register, unregister

__all__ = ["register", "unregister"]
