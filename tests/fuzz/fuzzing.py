"""Fuzzes readers in processes of their own.

    python -m tests.fuzz.fuzzing READERS [SEEDS [COUNT]]

READERS are separated by commas, or "all". SEEDS are, too; with "named", or without any, the inputs that
have a name are read.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
#: Where mutants are written: in memory if the system has such a place; a disk costs more than reading.
PLACE = next((place for place in ("/dev/shm",) if os.access(place, os.W_OK)), None)


@dataclass(frozen=True)
class Fault:
    """A file that a reader could not cope with: which one, and what came of it."""

    case: str
    problem: str

    def __str__(self) -> str:
        return f"{self.case}: {self.problem}"


def fuzz(readers: Sequence[str], *, seed: str, count: int = 0) -> tuple[list[str], list[Fault]]:
    """All cases that were read, and the faults among them. A case that ends the process is one, too."""
    read: list[str] = []
    faults: list[Fault] = []
    with tempfile.TemporaryDirectory(prefix="dokimos-home-", dir=PLACE) as home:
        given = {"DOKIMOS_HOME": home, "TMPDIR": home, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        environment = {**os.environ, **given}
        while True:
            command = [sys.executable, "-m", "tests.fuzz.worker"]
            command += [",".join(readers), seed, str(count), str(len(read))]
            with Path(home, "stderr").open("w+b") as file:  # the worker looks whether readers write to it
                done = subprocess.run(
                    command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=file, check=False
                )
                file.seek(0)
                said = file.read().decode(errors="replace").strip()[-2000:]
            lines = done.stdout.decode().splitlines()
            begun = [line.removeprefix("at ") for line in lines if line.startswith("at ")]
            read += begun
            faults += [Fault(**json.loads(line)) for line in lines if line.startswith("{")]
            if lines and lines[-1] == "done":
                return read, faults
            problem = f"the process ended with {done.returncode}: {said}"
            faults.append(Fault(begun[-1] if begun else "before the first case", problem))
            if not begun:
                return read, faults


if __name__ == "__main__":
    from tests.fuzz.readers import READERS

    names = list(READERS) if sys.argv[1] == "all" else sys.argv[1].split(",")
    seed, count = [*sys.argv[2:], *("named", "0")[len(sys.argv) - 2 :]]
    all_read, found = fuzz(names, seed=seed, count=int(count))
    print(f"{len(all_read)} files read, {len(found)} faults")
    for fault in found:
        print(fault)
