"""Blender itself from Debian's packages, kept apart from the system's own: `python3 tools/dev.py window-setup`.

Needs Linux with apt, and root or sudo while it is set up. Debian's unstable suite has the newest Blender; if it can't
be installed one day, the stable one has an older one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.environments import ToolError, locked

SUITES = ("sid", "trixie")
"""The suites of Debian that Blenders come from, newest first."""
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ik-addon"
"""The folder of the suites, about 1.4 GB each."""
PROGRAMS = {
    "debootstrap": "debootstrap",
    "bwrap": "bubblewrap",
    "Xvfb": "xvfb",
    "xdotool": "xdotool",
    "import": "imagemagick",
}
"""What this machine needs, with the package of each: the last three are screen, hands and eyes."""
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
PACKAGES = (
    "blender",
    # Blender's extensions import this, and Debian's Blender does not ask for it.
    *("python3-cattr", "python3-numpy", "python3-requests", "python3-zstandard"),
    # Drawing without a graphics card, and libraries that are loaded at run time.
    *("libegl1", "libgl1", "libgl1-mesa-dri", "libglx-mesa0", "libsm6", "libx11-6", "libxcursor1", "libxfixes3"),
    *("libxi6", "libxinerama1", "libxkbcommon0", "libxrandr2", "libxrender1", "libxxf86vm1", "fonts-dejavu-core"),
)
FOLDERS = ("bin", "etc", "lib", "lib64", "sbin", "usr", "var")
"""The folders of a suite that programs see, read-only."""


def install(suite: str) -> None:
    """Install Blender from a suite, unless that is done already.

    Raises:
        ToolError: it failed; the message has the output.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    root, stamp = CACHE / suite, CACHE / f"{suite}.txt"
    wanted = "\n".join(PACKAGES)
    with locked(CACHE / f"{suite}.lock"):
        if stamp.is_file() and stamp.read_text() == wanted:
            return
        _install_programs()
        mirror = _mirror()
        print(f"Setting up Blender from Debian {suite} in {root}", flush=True)
        # debootstrap keeps its own files in this folder until it is done.
        if not (root / "var").is_dir() or (root / "debootstrap").exists():
            _as_root("rm", "-rf", "--one-file-system", root)
            _as_root("debootstrap", "--variant=minbase", f"--keyring={KEYRING}", suite, root, mirror)
        # The lists of a mirror that stands still expire. Without services, man pages and syncing it is fast.
        sources = f"deb [check-valid-until=no] {mirror} {suite} main"
        script = (
            f"echo '{sources}' > /etc/apt/sources.list; ln -sf /proc/self/mounts /etc/mtab; "
            "printf 'force-unsafe-io\\npath-exclude=/usr/share/man/*\\n' > /etc/dpkg/dpkg.cfg.d/small; "
            "printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d; "
            'apt-get update -qq && apt-get install -qq --yes --no-install-recommends "$@" && apt-get clean'
        )
        box = ("bwrap", "--cap-add", "ALL", "--bind", root, "/", "--dev", "/dev", "--proc", "/proc")
        names = ("--perms", "1777", "--tmpfs", "/tmp", "--ro-bind", "/etc/resolv.conf", "/etc/resolv.conf")
        clean = ("env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
        _as_root(*box, *names, *clean, "sh", "-c", script, "sh", *PACKAGES)
        stamp.write_text(wanted)


def is_installed(suite: str) -> bool:
    """Whether `install` has been run for a suite, and the tools of this machine are still there."""
    return (CACHE / f"{suite}.txt").is_file() and all(map(shutil.which, PROGRAMS))


def command(suite: str, folders: Sequence[Path], variables: Mapping[str, str], *arguments: str | Path) -> list[str]:
    """Return the command that starts a suite's Blender, which sees `folders` at their own paths and may write there."""
    root, screens = CACHE / suite, "/tmp/.X11-unix"
    parts: list[str | Path] = [
        "bwrap",
        "--die-with-parent",
        "--clearenv",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
    ]
    for name in FOLDERS:
        parts += ["--ro-bind-try", root / name, f"/{name}"]
    parts += ["--ro-bind-try", screens, screens]
    for folder in folders:
        parts += ["--bind", folder, folder]
    fixed = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "LIBGL_ALWAYS_SOFTWARE": "1", "GALLIUM_DRIVER": "llvmpipe"}
    for name, value in {**fixed, **variables}.items():
        parts += ["--setenv", name, value]
    parts += ["--chdir", folders[0], "blender", *arguments]
    return [str(part) for part in parts]


def _install_programs() -> None:
    lacking = {package for program, package in PROGRAMS.items() if not shutil.which(program)}
    if not KEYRING.is_file():
        lacking.add("debian-archive-keyring")
    if lacking and not shutil.which("apt-get"):
        raise ToolError(f"Install {', '.join(sorted(lacking))}: there is no apt-get here to do it.")
    if lacking:
        _as_root("apt-get", "update", "-qq")
        _as_root("apt-get", "install", "-qq", "--yes", "--no-install-recommends", *sorted(lacking))


def _mirror() -> str:
    """Return this machine's own mirror of Debian, if it has one."""
    ask = ["apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages"]
    told = subprocess.run(ask, capture_output=True, text=True, check=False).stdout.splitlines()
    return next((line.split()[1] for line in told if line.startswith("Debian ")), "http://deb.debian.org/debian")


def _as_root(*command: str | Path) -> None:
    """Run a command, whose output is only shown if it fails."""
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    ended = subprocess.run(
        [*sudo, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if ended.returncode:
        raise ToolError(f"Could not set up Blender, {command[0]} failed:\n{ended.stdout[-3000:]}")
