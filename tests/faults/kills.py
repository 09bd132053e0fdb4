"""Kills all long commands again and again, and resumes: `python -m tests.faults.kills COUNT DONE`.

A line of the file DONE is one work of a stage of `test_kills.py` that was killed four times and then
finished: its stage, its seed, and what was lost. Those that are there are not done again. The exit code is
1 if anything was lost.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from itertools import count, islice
from pathlib import Path

from tests.faults.test_kills import STAGES, strangers, survive

KILLS = 4


def main(wanted: int, done: Path) -> int:
    lines = [json.loads(line) for line in done.read_text().splitlines()] if done.exists() else []
    known = {(line["stage"], line["seed"]) for line in lines}
    lost = sum(bool(line["lost"]) for line in lines)
    works = islice(((name, seed) for seed in count() for name in STAGES), -(-wanted // KILLS))
    for name, seed in works:
        if (name, seed) in known:
            continue
        problem = ""
        with tempfile.TemporaryDirectory(prefix="dokimos-kills-") as folder:
            try:
                survive(STAGES[name], Path(folder), KILLS, seed)
            except AssertionError as error:
                problem = f"{error}" or "an assertion"
                lost += 1
            except subprocess.TimeoutExpired:  # a machine that is too busy: the next call does it again
                for left in strangers(Path(folder)):
                    left.kill()
                print(f"{name}, seed {seed}: did not end in time", flush=True)
                continue
        line = {"stage": name, "seed": seed, "lost": problem}
        with done.open("a") as file:
            file.write(json.dumps(line) + "\n")
        known.add((name, seed))
        print(f"{KILLS * len(known)} kills, {lost} lost: {name}, seed {seed} {problem}", flush=True)
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Path(sys.argv[2])))
