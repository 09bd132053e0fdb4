"""A hostile run over all readers and all kinds of proof, in parts that are kept, so that it resumes.

    python -m tests.fuzz.hostile FOLDER [PARTS [FILES]]

Part k puts the kinds to 200 networks, covers to 200 statements about trees, and 12 files to every reader,
all drawn with the seed k; 28 parts are about 100,000 certificates and files. With FILES, a part is so many
files for every reader and nothing else: 40 parts of 1,000 are more than a million. What each part found is
a line of FOLDER/parts.json; the sums and every fault are printed at the end.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

from tests.fuzz.fuzzing import ROOT, fuzz
from tests.fuzz.kinds import put_to_all
from tests.fuzz.readers import READERS
from tests.fuzz.trees import put_to_trees

NETWORKS, STATEMENTS, FILES = 200, 200, 12
#: Seeds of this run begin here, so that no test has drawn the same.
FIRST = 20_000


def part(number: int, files: int | None) -> dict[str, object]:
    """One part: how many of each were tried and accepted, and the faults."""
    seed = FIRST + number
    tally = put_to_all(seed, NETWORKS if files is None else 0)
    tried, accepted, faults = put_to_trees(seed, STATEMENTS if files is None else 0)
    read, broken = fuzz(list(READERS), seed=str(seed), count=FILES if files is None else files)
    return {
        "part": number,
        "certificates": sum(tally.tried.values()),
        "accepted": sum(tally.accepted.values()),
        "about trees": tried,
        "accepted about trees": accepted,
        "files": len(read),
        "faults": [*tally.faults, *faults, *map(str, broken)],
    }


def seconds() -> float:
    """The CPU time of this process and of those that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main(folder: Path, parts: int, files: int | None) -> None:
    """All parts that are not there yet, and then the sums."""
    folder.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    journal = folder / "parts.json"
    lines = journal.read_text().splitlines() if journal.exists() else []
    found = [each for each in map(json.loads, lines) if each["commit"] == commit]
    for number in sorted(set(range(parts)) - {each["part"] for each in found}):
        before = seconds()
        made = {"commit": commit, **part(number, files)}
        made["seconds"] = round(seconds() - before, 1)
        found.append(made)
        print(f"part {number}: {made['files']:,} files, {made['seconds']} CPU-s", flush=True)
        with journal.open("a") as file:
            file.write(json.dumps(made) + "\n")
    keys = ("certificates", "accepted", "about trees", "accepted about trees", "files", "seconds")
    print(f"commit {commit}, {len(found)} parts: ", end="")
    print(", ".join(f"{sum(each[key] for each in found):,.0f} {key}" for key in keys))
    for fault in (fault for each in found for fault in each["faults"]):
        print(fault)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[2:]]
    main(Path(sys.argv[1]), given[0] if given else 28, given[1] if given[1:] else None)
