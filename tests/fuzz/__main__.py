"""Long runs of random cases on all cores: `make fuzz`, or `make fuzz BPY=5.2.3 ARGS="solver --count 5000"`.

Every case is made from its seed alone: `make fuzz ARGS="rigs --case 77"` runs only the case of seed 77.
The seed also decides which kernels of OpenBLAS numpy uses, so they change from process to process.
Cases run in separate processes, so that a case that crashes or hangs is reported without ending the run. To share a
run among machines, give each its part with `--seed` and `--count`.
"""

import argparse
import faulthandler
import importlib
import importlib.metadata
import os
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tools import blender, linear_algebra

EVERY = 15.0
"""Least number of seconds between two lines of progress."""


@dataclass(frozen=True)
class Kind:
    """A kind of case that is made from a seed and checked."""

    module: str
    """Module below `tests` whose function `check_seed(seed)` raises if something is wrong."""
    count: int
    """Number of cases in a full run."""
    chunk: int
    """Number of cases per process."""
    limit: int
    """Seconds that a case may take."""
    needs_blender: bool

    def kernels(self, seed: int) -> str:
        """Return the OpenBLAS kernels that a case runs with; "" for the machine's own."""
        choices = ("", *linear_algebra.KERNELS)
        return choices[seed // self.chunk % len(choices)]

    def chunks(self, seeds: range) -> list[range]:
        """Split seeds into one range per process; all cases of a process run with the same kernels."""
        starts = [seeds.start, *range((seeds.start // self.chunk + 1) * self.chunk, seeds.stop, self.chunk)]
        return [range(*ends) for ends in pairwise([*starts, seeds.stop])]


KINDS = {
    "solver": Kind("fuzz.verdict", 100_000, 500, 600, needs_blender=False),
    "frames": Kind("fuzz.frames", 1, 1, 1200, needs_blender=True),
    "rigs": Kind("fuzz.edits", 2_000, 20, 600, needs_blender=True),
    "sessions": Kind("fuzz.sessions", 2_000, 20, 600, needs_blender=True),
    "productions": Kind("fuzz.productions", 2_000, 20, 600, needs_blender=True),
    "undo": Kind("reliability.test_undo_random", 100, 5, 600, needs_blender=True),
    "everyday": Kind("fuzz.everyday", 500, 10, 600, needs_blender=True),
    "animated": Kind("reliability.test_animated_settings", 7_009, 50, 600, needs_blender=True),
}


MAY_CRASH = {"undo", "everyday"}
"""Where Blender alone crashes now and then, see "addresses" in docs/lab/reliability: such a case is repeated once."""


def set_up_numpy(kernels: str) -> None:
    """Make numpy use one thread and, where possible, the given OpenBLAS kernels; call it before numpy is imported."""
    # Threads that wait for each other on busy cores take hundreds of times as long.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    if kernels and linear_algebra.ask(Path(sys.executable), kernels):
        os.environ[linear_algebra.CHOICE] = kernels


def work(kind: Kind, seeds: range) -> int:
    """Run the cases of a chunk one after another in this process; return how many failed."""
    set_up_numpy(kind.kernels(seeds.start))
    if kind.needs_blender:
        blender.enable()
    check_seed: Any = importlib.import_module(f"tests.{kind.module}").check_seed
    failed = 0
    for seed in seeds:
        print(f"begin {seed}", flush=True)
        faulthandler.dump_traceback_later(kind.limit, exit=True)
        try:
            check_seed(seed)
        except Exception:
            failed += 1
            traceback.print_exc(file=sys.stdout)
            print(f"failed {seed}", flush=True)
        else:
            print(f"passed {seed}", flush=True)
        faulthandler.cancel_dump_traceback_later()
    return failed


def watched(name: str, seeds: range) -> list[tuple[int, str]]:
    """Run cases in another process, and in a new one if it ends early; return the failed seeds with their output."""
    failures = []
    left, repeated = seeds, -1
    while left:
        command = [sys.executable, "-m", "tests.fuzz", name, "--work", str(left.start), str(left.stop)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        assert process.stdout is not None
        seed, done = left.start, left.start
        said: list[str] = []
        for line in process.stdout:
            word, _, number = line.strip().partition(" ")
            if word == "begin" and number.isdecimal():
                seed, said = int(number), []
            elif word in {"passed", "failed"} and number == str(seed):
                done = seed + 1
                if word == "failed":
                    failures.append((seed, "".join(said)))
            else:
                said.append(line)
        code = process.wait()
        if done < left.stop and code < 0 and name in MAY_CRASH and seed != repeated:
            done = repeated = seed
            print(f"{name} {seed} crashed and is repeated", flush=True)
        elif done < left.stop:
            failures.append((seed, "".join(said) + f"The process ended with code {code}.\n"))
            done = seed + 1
        left = range(done, left.stop)
    return failures


def run(name: str, seeds: range, jobs: int) -> int:
    """Run cases on several cores, printing progress and the result; return how many cases failed."""
    kind, begun = KINDS[name], time.monotonic()
    # The argument that gave this run of `make fuzz` its Blender.
    version = f"BPY={importlib.metadata.version('bpy')} "
    done, failed, due = 0, 0, begun + EVERY
    with ThreadPoolExecutor(jobs) as pool:
        started = {pool.submit(watched, name, chunk): chunk for chunk in kind.chunks(seeds)}
        for finished in as_completed(started):
            done += len(started[finished])
            for seed, said in finished.result():
                failed += 1
                again = f"make fuzz {version}ARGS='{name} --case {seed}'"
                print(f"\n{name} {seed} failed:\n{said}To repeat: {again}", flush=True)
            if time.monotonic() >= due:
                due = time.monotonic() + EVERY
                print(f"{name}: {done} of {len(seeds)}, {failed} failed", flush=True)
    minutes = (time.monotonic() - begun) / 60.0
    print(
        f"{name}: {len(seeds)} cases, starting at seed {seeds.start}, {failed} failed, {minutes:.1f} minutes",
        flush=True,
    )
    return failed


def main() -> int:
    """Run the cases that the arguments select; return an exit code."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("kind", nargs="?", choices=list(KINDS), help="all kinds if none is given")
    parser.add_argument("--count", type=int, help="number of cases")
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    parser.add_argument("--case", type=int, help="run only this case, in this process")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="number of parallel processes")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.kind and (chosen.work or chosen.case is not None):
        seeds = range(*chosen.work) if chosen.work else range(chosen.case, chosen.case + 1)
        return min(work(KINDS[chosen.kind], seeds), 1)
    names = [chosen.kind] if chosen.kind else list(KINDS)
    runs = {name: range(chosen.seed, chosen.seed + (chosen.count or KINDS[name].count)) for name in names}
    return min(sum(run(name, own, chosen.jobs) for name, own in runs.items()), 1)


if __name__ == "__main__":
    blender.leave(main())
