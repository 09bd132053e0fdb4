"""Published benchmarks, labelled: how many the engine decides, beside what tools answered.

    .venv/bin/python benchmarks/published.py FOLDER… --out RECORDS [--seconds 60] [--every 3]
        [--results RESULTS]

Each folder is a benchmark as VNN-COMP publishes them. An instance has `--seconds` of CPU time on one
thread, the check of its proof included, loading torch excluded; the proof is then checked once more, and
timed. Every record is a line of RECORDS, so that an interrupted run goes on where it stopped; the table is
made from all records there are. `--every K` takes each K-th instance. `--results` names published results
(a folder for each tool), whose answers are counted on the same instances; an answer counts unless our
label, or a witness that violates exactly, contradicts it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from dokimos.checker.check import prove
from dokimos.core.errors import DokimosError
from dokimos.core.parallel import keep_freed_memory
from dokimos.engine.label import find_label
from dokimos.judging.published_results import find_results
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.folder import read_suite

Record = dict[str, object]


def main() -> None:
    """Label what has no record yet, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    keep_freed_memory()
    import_module("dokimos.engine.differentiable")
    known = records(given.out)
    for folder in given.folders:
        for entry in list(read_suite(folder))[given.first :: given.every]:
            if (category(folder), entry.name) not in {(r["category"], r["name"]) for r in known}:
                found = labelled(folder, entry, given.seconds)
                known.append(found)
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")
                print(*(f"{key}={value}" for key, value in found.items() if value != ""), flush=True)
    answers = published(given.results) if given.results else {}
    for line in table(known, answers):
        print(line)


def category(folder: Path) -> str:
    """The name of a benchmark: that of its folder, without the version of VNN-LIB."""
    return folder.parent.name if folder.name in ("1.0", "2.0") else folder.name


def records(path: Path) -> list[Record]:
    """What earlier runs have found."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def labelled(folder: Path, entry: SuiteEntry, seconds: float) -> Record:
    """One instance, searched; and its proof, checked again."""
    found: Record = {
        "category": category(folder),
        "name": entry.name,
        "label": "",
        "kind": "",
        "by": "",
        "reason": "",
    }
    began, checking = time.process_time(), 0.0
    try:
        instance = entry.read_instance()
        result = find_label(instance, seconds=seconds)
        used = time.process_time() - began
        if (truth := result.truth) is not None:
            found |= {"label": truth.label.value, "kind": truth.certificate.kind, "by": result.by}
            began = time.process_time()
            prove(instance, truth.certificate, truth.label, truth.witness)
            checking = time.process_time() - began
            found["bytes"] = len(json.dumps(truth.certificate.data, default=str))
        found |= {"reason": result.reason, "bound": result.bound}
    except DokimosError as error:
        used = time.process_time() - began
        found["reason"] = str(error)
    return found | {"seconds": round(used, 2), "checking": round(checking, 3)}


def published(folder: Path) -> dict[str, dict[str, Counter[str]]]:
    """For each category and tool how often it gave which answer."""
    found: dict[str, dict[str, Counter[str]]] = {}
    for each in find_results(folder):
        rows = each.path.read_text(encoding="utf-8").splitlines()
        answers = Counter(row.split(",")[4] for row in rows if row.count(",") >= 5)
        found.setdefault(each.category, {})[each.tool] = answers
    return found


def table(known: Sequence[Record], answers: dict[str, dict[str, Counter[str]]]) -> Iterator[str]:
    """A line for each category, and one for each tool that was published on it."""
    yield f"{'category':28} asked  sat  unsat  open  CPU-s (median)  check/find of unsat (median)"
    for name in dict.fromkeys(str(record["category"]) for record in known):
        own = [record for record in known if record["category"] == name]
        labels = Counter(str(record["label"]) for record in own)
        spent = [float(str(r["seconds"])) for r in own if r["label"]]
        ratios = [
            float(str(r["checking"])) / max(float(str(r["seconds"])) - float(str(r["checking"])), 1e-9)
            for r in own
            if r["label"] == "unsat"
        ]
        middle = f"{statistics.median(spent):.2f}" if spent else "-"
        share = f"{statistics.median(ratios):.3f}" if ratios else "-"
        yield (
            f"{name:28} {len(own):5} {labels['sat']:4} {labels['unsat']:6} {labels['']:5}  {middle:>14}"
            f"  {share:>10}"
        )
        for tool, counted in answers.get(name, {}).items():
            yield f"  {tool:26} {sum(counted.values()):5} {counted['sat']:4} {counted['unsat']:6}"


if __name__ == "__main__":
    main()
