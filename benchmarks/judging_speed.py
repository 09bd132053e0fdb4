"""Judging and reporting a large campaign: CPU seconds of both commands, and of neither's first start.

python benchmarks/judging_speed.py SUITE [RUNS] [VERIFIERS]

One verifier answers every instance of the suite rightly, in earnest. Its runs are then written down again
for copies of the instances under other names and for more verifiers, until there are 48,000 of 30
verifiers; a quarter of them, drawn by chance, are timeouts. Both commands are called on these.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).with_name("dokimos"))


def cpu_seconds(*words: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr[-500:]
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def copied_suite(suite: Path, folder: Path, copies: int) -> list[str]:
    """The instances of a suite, each under so many names; returns the first names."""
    names = []
    rows = []
    for row in suite.joinpath("instances.csv").read_text().splitlines():
        network, property_, limit = row.split(",")
        names.append(Path(network).stem)
        for k in range(copies):
            new = []
            for path in (network, property_, f"truth/{names[-1]}.json"):
                new.append(str(Path(path).with_stem(f"{names[-1]}-{k}")))
                folder.joinpath(new[-1]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(suite / path, folder / new[-1])
            rows.append(f"{new[0]},{new[1]},{limit}\n")
    folder.joinpath("instances.csv").write_text("".join(rows))
    return names


def multiplied(campaign: Path, suite: Path, copies: int, verifiers: int) -> None:
    """Write the campaign's runs down for the copies in the suite and for so many verifiers."""
    numbers = random.Random(0)
    manifest: dict[str, Any] = json.loads(campaign.joinpath("manifest.json").read_text())
    manifest["suites"][0] |= {"name": suite.name, "folder": str(suite), "version": ""}
    manifest["instances"] = [
        {**each, "suite": suite.name, "name": f"{each['name']}-{k}"}
        for each in manifest["instances"]
        for k in range(copies)
    ]
    (tool,) = manifest["verifiers"]
    manifest["verifiers"] = [{**tool, "name": f"tool-{v}"} for v in range(verifiers)]
    campaign.joinpath("manifest.json").write_text(json.dumps(manifest))
    lines = [json.loads(line) for line in campaign.joinpath("journal.jsonl").read_text().splitlines()]
    with campaign.joinpath("journal.jsonl").open("w") as journal:
        for line in (each for each in lines if "record" in each):
            record = line["record"]
            for k in range(copies):
                for v in range(verifiers):
                    late = numbers.random() < 0.25
                    changed = {
                        "job": f"{record['job'][:12]}{k:06}{v:06}",
                        "suite": suite.name,
                        "instance": f"{record['instance']}-{k}",
                        "verifier": f"tool-{v}",
                        "wall_seconds": 60.0 if late else numbers.uniform(0.1, 59.0),
                    }
                    if late:
                        changed |= {"answer": "timeout", "witness": None, "termination": "wall-limit"}
                    journal.write(json.dumps({**line, "record": {**record, **changed}}) + "\n")


def main(suite: Path, runs: int, verifiers: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = len(suite.joinpath("instances.csv").read_text().splitlines())
        copies = -(-runs // (count * verifiers))
        campaign, many = folder / "campaign", folder / "many"
        cpu_seconds("run", str(suite), "--verifier", "scripted", "--out", str(campaign))
        first = cpu_seconds("judge", str(campaign))
        copied_suite(suite, many, copies)
        multiplied(campaign, many, copies, verifiers)
        judged = cpu_seconds("judge", str(campaign))
        reported = cpu_seconds("report", str(campaign), "--html", str(folder / "report.html"))
        print(
            f"{copies * count * verifiers:,} runs, {verifiers} verifiers, {copies * count:,} instances: "
            f"judged in {judged:.1f}, reported in {reported:.1f} CPU seconds; {count} runs in {first:.2f}"
        )


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        int(sys.argv[2]) if len(sys.argv) > 2 else 48_000,
        int(sys.argv[3]) if len(sys.argv) > 3 else 30,
    )
