"""How long commands take to start, against bare Python, in one run.

python benchmarks/command_start.py [ROUNDS]

CPU seconds of processes, the least of some rounds in turn: `python -c pass`, and the command with the words
below, which end before there is anything to do. Bytecode is kept, as it is where Dokimos is installed.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

COMMAND = (str(Path(sys.executable).with_name("dokimos")),)
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
CALLS = {
    "bare Python": (sys.executable, "-c", "pass"),
    "--help": (*COMMAND, "--help"),
    "gate --help": (*COMMAND, "gate", "--help"),
    "judge of no campaign": (*COMMAND, "judge", "/nonexistent"),
    "check of no suite": (*COMMAND, "check", "/nonexistent"),
}


def cpu_seconds(command: tuple[str, ...]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(rounds: int) -> None:
    taken: dict[str, list[float]] = {name: [] for name in CALLS}
    for _ in range(rounds):
        for name, command in CALLS.items():
            taken[name].append(cpu_seconds(command))
    bare = min(taken["bare Python"])
    for name, each in taken.items():
        print(f"{name}: {1000 * min(each):.0f} ms of CPU time, {min(each) / bare:.1f} times bare Python")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
